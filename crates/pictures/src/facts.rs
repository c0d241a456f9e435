//! The facts that the head of a file tells about the picture in it. Nothing is decoded, and little is read.

mod avif;
mod bmp;
mod gif;
mod head;
mod jpeg;
mod png;
mod svg;
mod webp;

use std::io::{Read, Seek};

use image::metadata::Orientation;

use crate::fault::Fault;
use head::Head;
pub(crate) use jpeg::is_frame;

/// The bytes at the beginning of a file that tell its format. Those of an AVIF list the formats that it keeps to; real ones have less than a hundred.
pub(crate) const START_BYTES: u64 = 256;

/// Kinds of picture files, told by their content and never by their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JPEG.
    Jpeg,
    /// PNG, animated or not.
    Png,
    /// GIF, animated or not.
    Gif,
    /// WebP, animated or not.
    WebP,
    /// AVIF. It is not decoded, so there are no variants of it.
    Avif,
    /// A Windows bitmap.
    Bmp,
    /// SVG. It is not drawn, so there are no variants of it.
    Svg,
}

/// The facts that the head of a picture tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    /// The kind of the file.
    pub format: Format,
    /// The width in pixels, as the picture is shown: after it was turned as the camera says.
    pub width: u32,
    /// The height in pixels, as the picture is shown.
    pub height: u32,
    /// The way in which the stored pixels have to be turned, as Exif numbers it: 1 to 8, and 1 means not at all.
    pub orientation: u8,
    /// Whether the picture moves.
    pub animated: bool,
    /// Whether parts of the picture may be transparent.
    pub alpha: bool,
}

impl Facts {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// When the file is not a picture of a known kind, ends before its size is told, or contradicts its format.
    pub fn read(file: impl Read + Seek) -> Result<Self, Fault> {
        let mut head = Head::new(file)?;
        if head.bytes() == 0 {
            return Err(Fault::Empty);
        }
        let start = head.peek(START_BYTES)?;
        let facts = match Format::of(&start) {
            Some(Format::Jpeg) => jpeg::read(&mut head),
            Some(Format::Png) => png::read(&mut head),
            Some(Format::Gif) => gif::read(&mut head),
            Some(Format::WebP) => webp::read(&mut head),
            Some(Format::Avif) => avif::read(&mut head),
            Some(Format::Bmp) => bmp::read(&mut head),
            Some(Format::Svg) | None => svg::read(&mut head),
        }?;
        if facts.width == 0 || facts.height == 0 {
            return Err(Fault::NoSize);
        }
        Ok(if facts.orientation >= 5 { Self { width: facts.height, height: facts.width, ..facts } } else { facts })
    }

    /// Returns the facts of a still picture without transparency, as it is stored.
    const fn plain(format: Format, width: u32, height: u32) -> Self {
        Self { format, width, height, orientation: 1, animated: false, alpha: false }
    }
}

impl Format {
    /// Tells the format by the first [`START_BYTES`] of a file. An SVG is told by more than that.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] if is_avif(start) => Some(Self::Avif),
            [b'B', b'M', ..] => Some(Self::Bmp),
            _ => None,
        }
    }

    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
            Self::Avif => "image/avif",
            Self::Bmp => "image/bmp",
            Self::Svg => "image/svg+xml",
        }
    }

    /// Returns the extension of files of this format.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Gif => "gif",
            Self::WebP => "webp",
            Self::Avif => "avif",
            Self::Bmp => "bmp",
            Self::Svg => "svg",
        }
    }
}

/// Tells whether a file with this `ftyp` box is an AVIF: its first brand may be a general one, such as `mif1`, and AVIF one of the others (ISO/IEC 14496-12
/// §4.3).
fn is_avif(start: &[u8]) -> bool {
    let length = start.first_chunk().and_then(|length| usize::try_from(u32::from_be_bytes(*length)).ok()).unwrap_or(0);
    let others = start.get(16..length.min(start.len())).unwrap_or_default();
    let mut brands = start.get(8..12).into_iter().chain(others.chunks_exact(4));
    brands.any(|brand| matches!(brand, b"avif" | b"avis"))
}

/// Returns the orientation that a block of Exif data tells: 1 to 8, or nothing.
pub(crate) fn exif_orientation(exif: &[u8]) -> Option<u8> {
    // Some cameras begin the block as in a JPEG wherever it stands.
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_chunk(exif).map(Orientation::to_exif)
}

#[cfg(test)]
mod tests;
