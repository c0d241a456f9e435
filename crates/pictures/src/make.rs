//! Makes the variants of a file: decode once, make smaller, turn, and encode.
//!
//! What is made has no metadata. Colours are converted to sRGB, which every screen shows, and need no profile then.

mod colours;

use std::{borrow::Cow, io::Cursor};

use base64::Engine as _;
use fast_image_resize::{
    PixelType, Resizer,
    images::{Image, ImageRef},
};
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder as _, ImageEncoder as _, ImageFormat, ImageReader, Limits,
    codecs::{
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType, PngEncoder},
    },
    metadata::Orientation,
};
use moxcms::ColorProfile;
use webp::{PixelLayout, WebPConfig};

use crate::{Facts, Fault, Form, Format, SIDE_MAX, Source, Variant, clean};

/// The number of bytes that a decoder may allocate. A picture of [`PIXELS_MAX`](crate::PIXELS_MAX) with sixteen bits for each of four
/// channels fits.
const DECODER_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The quality of photographs in WebP: differences are seen side by side and enlarged, not alone.
const PHOTO_QUALITY: f32 = 78.0;
/// The quality of graphics in WebP, where they are encoded with loss: letters and lines show it first.
const GRAPHIC_QUALITY: f32 = 90.0;
/// The quality of a variant that would be larger than the author's own file.
const SMALL_QUALITY: f32 = 60.0;
const JPEG_QUALITY: u8 = 82;

/// Files in formats without loss that need fewer bits for each pixel are graphics; photographs need twelve and more.
const GRAPHIC_BITS_PER_PIXEL: u64 = 6;

/// The longest placeholder. One takes about 120 bytes.
const PLACEHOLDER_BYTES_MAX: usize = 200;

/// A decoded picture, as large as its widest variant.
///
/// Every variant is made of it, whichever others are: so one is the same bytes whether somebody asked for it alone or all of them were made.
pub(crate) struct Master<'s> {
    source: &'s Source,
    content: Vec<u8>,
    pixels: Pixels,
}

/// Pixels of three or four bytes.
struct Pixels {
    width: u32,
    height: u32,
    has_alpha: bool,
    /// Whether the file has one channel of colours, which is all three here.
    is_grey: bool,
    bytes: Vec<u8>,
}

impl<'s> Master<'s> {
    /// Decodes a picture.
    pub(crate) fn new(source: &'s Source) -> Result<Self, Fault> {
        if let Some(fault) = source.fault() {
            return Err(fault);
        }
        let content = source.content()?;
        let facts = source.facts();
        let (decoded, profile) = decode(&content, facts)?;
        let (stored_width, stored_height) = if facts.orientation >= 5 { (facts.height, facts.width) } else { (facts.width, facts.height) };
        if (decoded.width, decoded.height) != (stored_width, stored_height) {
            return Err(Fault::damaged("it has another size than its head says"));
        }
        // Everything that follows is done with as few pixels as all variants allow. For a small one alone, fewer would do: that would save
        // milliseconds beside decoding, and make other bytes of it.
        let widest = source.variants().iter().max_by_key(|variant| variant.width);
        let (width, height) = widest.map_or((facts.width, facts.height), |variant| (variant.width, variant.height));
        let (width, height) = if facts.orientation >= 5 { (height, width) } else { (width, height) };
        let mut pixels = decoded.resized(width, height)?;
        if let Some(profile) = profile {
            pixels.convert(&profile);
        }
        Ok(Self { source, content, pixels: pixels.turned(facts.orientation)?.without_needless_alpha() })
    }

    /// Makes a variant.
    pub(crate) fn make(&self, variant: &Variant) -> Result<Vec<u8>, Fault> {
        let resized;
        let pixels = if (variant.width, variant.height) == (self.pixels.width, self.pixels.height) {
            &self.pixels
        } else {
            resized = self.pixels.resized_ref(variant.width, variant.height)?;
            &resized
        };
        let facts = self.source.facts();
        // The author's own file, as it may be sent, if nobody gains by another one.
        let own = || (variant.width == facts.width).then(|| clean(Cursor::new(&self.content)).and_then(|own| own.of(&self.content)));
        match variant.form {
            Form::WebP => {
                let made = if is_graphic(facts, self.source.bytes()) {
                    let (exact, lossy) = (webp(pixels, 75.0, true)?, webp(pixels, GRAPHIC_QUALITY, false)?);
                    if exact.len() <= lossy.len() { exact } else { lossy }
                } else {
                    webp(pixels, PHOTO_QUALITY, false)?
                };
                match own() {
                    Some(own) if facts.format == Format::WebP && own.as_ref().is_ok_and(|own| own.len() <= made.len()) => own,
                    Some(_) if made.len() as u64 > self.source.bytes() => {
                        let smaller = webp(pixels, SMALL_QUALITY, false)?;
                        Ok(if smaller.len() < made.len() { smaller } else { made })
                    }
                    _ => Ok(made),
                }
            }
            Form::Jpeg | Form::Png => {
                let made = if variant.form == Form::Jpeg { jpeg(pixels)? } else { png(pixels)? };
                let is_own = matches!((variant.form, facts.format), (Form::Jpeg, Format::Jpeg) | (Form::Png, Format::Png));
                match own() {
                    // One that has to be turned is turned wrongly by some programs.
                    Some(Ok(own)) if is_own && facts.orientation == 1 && own.len() <= made.len() => Ok(own),
                    _ => Ok(made),
                }
            }
        }
    }

    /// Makes the placeholder: an address that holds the picture in a dozen pixels, which a browser blurs as it enlarges them. One that is
    /// transparent has none, as it would be seen through the picture.
    pub(crate) fn placeholder(&self) -> Result<Option<String>, Fault> {
        if self.pixels.has_alpha {
            return Ok(None);
        }
        let (width, height) = if self.pixels.width >= self.pixels.height { (4, 3) } else { (3, 4) };
        let tiny = self.pixels.resized_ref(width, height)?;
        let (lossy, exact) = (webp(&tiny, 40.0, false)?, webp(&tiny, 75.0, true)?);
        let smaller = if exact.len() < lossy.len() { exact } else { lossy };
        let data = format!("data:image/webp;base64,{}", base64::engine::general_purpose::STANDARD.encode(smaller));
        Ok(Some(data).filter(|data| data.len() <= PLACEHOLDER_BYTES_MAX))
    }
}

/// Tells whether a picture was drawn rather than photographed, by how well it could be compressed without loss.
const fn is_graphic(facts: &Facts, bytes: u64) -> bool {
    let pixels = facts.width as u64 * facts.height as u64;
    match facts.format {
        Format::Png | Format::Gif => bytes * 8 <= pixels * GRAPHIC_BITS_PER_PIXEL || bytes <= 16 * 1024,
        Format::Bmp => true,
        Format::Jpeg | Format::WebP | Format::Avif | Format::Svg => false,
    }
}

/// Decodes a picture. Returns the profile of its colours, if they are not those of sRGB.
fn decode(content: &[u8], facts: &Facts) -> Result<(Pixels, Option<ColorProfile>), Fault> {
    let format = match facts.format {
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Png => ImageFormat::Png,
        Format::Gif => ImageFormat::Gif,
        Format::WebP => ImageFormat::WebP,
        Format::Bmp => ImageFormat::Bmp,
        Format::Avif | Format::Svg => return Err(Fault::Unknown),
    };
    let mut reader = ImageReader::with_format(Cursor::new(content), format);
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(SIDE_MAX), Some(SIDE_MAX));
    limits.max_alloc = Some(DECODER_BYTES_MAX);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(undecodable)?;
    let icc = decoder.icc_profile().ok().flatten();
    let profile = colours::profile(Some(content).filter(|_| facts.format == Format::Png), icc.as_deref());
    let image = DynamicImage::from_decoder(decoder).map_err(undecodable)?;
    let (width, height, has_alpha) = (image.width(), image.height(), image.color().has_alpha());
    let is_grey = !image.color().has_color();
    let bytes = if has_alpha { image.into_rgba8().into_raw() } else { image.into_rgb8().into_raw() };
    Ok((Pixels { width, height, has_alpha, is_grey, bytes }, profile))
}

fn undecodable(error: image::ImageError) -> Fault {
    match error {
        image::ImageError::IoError(error) => error.into(),
        error => Fault::damaged(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

impl Pixels {
    const fn kind(&self) -> PixelType {
        if self.has_alpha { PixelType::U8x4 } else { PixelType::U8x3 }
    }

    fn resized(self, width: u32, height: u32) -> Result<Self, Fault> {
        if (width, height) == (self.width, self.height) { Ok(self) } else { self.resized_ref(width, height) }
    }

    fn resized_ref(&self, width: u32, height: u32) -> Result<Self, Fault> {
        let failed = |error: &dyn std::fmt::Display| Fault::Encoder(error.to_string());
        let from = ImageRef::new(self.width, self.height, &self.bytes, self.kind()).map_err(|error| failed(&error))?;
        let mut to = Image::new(width, height, self.kind());
        Resizer::new().resize(&from, &mut to, None).map_err(|error| failed(&error))?;
        Ok(Self { width, height, bytes: to.into_vec(), ..*self })
    }

    /// Turns the pixels as the camera was held.
    fn turned(self, orientation: u8) -> Result<Self, Fault> {
        let Some(orientation) = Orientation::from_exif(orientation).filter(|&orientation| orientation != Orientation::NoTransforms) else {
            return Ok(self);
        };
        let Self { width, height, has_alpha, is_grey, bytes } = self;
        let image = if has_alpha {
            image::RgbaImage::from_raw(width, height, bytes).map(DynamicImage::from)
        } else {
            image::RgbImage::from_raw(width, height, bytes).map(DynamicImage::from)
        };
        let mut image = image.ok_or_else(|| Fault::Encoder("the pixels do not fit".to_owned()))?;
        image.apply_orientation(orientation);
        let (width, height) = (image.width(), image.height());
        Ok(Self { width, height, has_alpha, is_grey, bytes: image.into_bytes() })
    }

    /// Leaves transparency out where nothing is transparent.
    fn without_needless_alpha(self) -> Self {
        if !self.has_alpha || self.bytes.chunks_exact(4).any(|pixel| pixel[3] != u8::MAX) {
            return self;
        }
        let bytes = self.bytes.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Self { has_alpha: false, bytes, ..self }
    }
}

fn webp(pixels: &Pixels, quality: f32, exact: bool) -> Result<Vec<u8>, Fault> {
    let mut config = WebPConfig::new().map_err(|()| Fault::Encoder("WebP has another version".to_owned()))?;
    config.quality = quality;
    config.lossless = i32::from(exact);
    config.method = 4;
    // Edges of drawings keep their colour.
    config.use_sharp_yuv = i32::from(!exact && quality >= GRAPHIC_QUALITY);
    let layout = if pixels.has_alpha { PixelLayout::Rgba } else { PixelLayout::Rgb };
    let encoder = webp::Encoder::new(&pixels.bytes, layout, pixels.width, pixels.height);
    encoder.encode_advanced(&config).map(|made| made.to_vec()).map_err(|error| Fault::Encoder(format!("{error:?}")))
}

fn jpeg(pixels: &Pixels) -> Result<Vec<u8>, Fault> {
    let mut made = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut made, JPEG_QUALITY);
    // JPEG has no transparency, and what was JPEG never had any.
    let opaque = |bytes: &[u8]| bytes.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect::<Vec<_>>();
    let bytes = if pixels.has_alpha { Cow::Owned(opaque(&pixels.bytes)) } else { Cow::Borrowed(&pixels.bytes) };
    encoder.encode(&bytes, pixels.width, pixels.height, ExtendedColorType::Rgb8).map_err(|error| Fault::Encoder(error.to_string()))?;
    Ok(made)
}

fn png(pixels: &Pixels) -> Result<Vec<u8>, Fault> {
    let mut made = Vec::new();
    let colours = if pixels.has_alpha { ExtendedColorType::Rgba8 } else { ExtendedColorType::Rgb8 };
    let encoder = PngEncoder::new_with_quality(&mut made, CompressionType::Default, FilterType::Adaptive);
    encoder.write_image(&pixels.bytes, pixels.width, pixels.height, colours).map_err(|error| Fault::Encoder(error.to_string()))?;
    Ok(made)
}

#[cfg(test)]
mod tests;
