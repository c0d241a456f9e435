//! Pictures for the tests, made as cameras and programs make them.

use std::io::Cursor;

use image::{ExtendedColorType, ImageEncoder as _, Rgb, RgbImage, RgbaImage, codecs};

/// Returns a picture with soft colours and some noise, as a photograph has.
pub(crate) fn photo(width: u32, height: u32) -> RgbImage {
    let mut seed = 1_u32;
    RgbImage::from_fn(width, height, |x, y| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (seed >> 28) as u8;
        let part = |of: u32, all: u32| u8::try_from(u64::from(of) * 200 / u64::from(all.max(1))).expect("below 200");
        Rgb([part(x, width) + noise, part(y, height) + noise, 90 + noise])
    })
}

pub(crate) fn jpeg(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 90)
        .write_image(picture.as_raw(), picture.width(), picture.height(), ExtendedColorType::Rgb8)
        .expect("encoded");
    bytes
}

pub(crate) fn png(picture: &RgbaImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), image::ImageFormat::Png).expect("encoded");
    bytes
}

pub(crate) fn png_of(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), image::ImageFormat::Png).expect("encoded");
    bytes
}

pub(crate) fn webp(picture: &RgbImage) -> Vec<u8> {
    webp::Encoder::from_rgb(picture.as_raw(), picture.width(), picture.height()).encode(70.0).to_vec()
}

/// Returns a GIF with so many frames.
pub(crate) fn gif(width: u16, height: u16, frames: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = codecs::gif::GifEncoder::new(&mut bytes);
    for frame in 0..frames {
        let shade = u8::try_from(frame * 40).expect("few frames");
        let picture = RgbaImage::from_pixel(width.into(), height.into(), image::Rgba([shade, 10, 10, 255]));
        encoder.encode_frame(image::Frame::new(picture)).expect("encoded");
    }
    drop(encoder);
    bytes
}

/// Returns the Exif data that a camera writes: its name, how it was held, and where it was.
pub(crate) fn exif(orientation: u8) -> Vec<u8> {
    let mut tiff = b"II\x2a\0\x08\0\0\0".to_vec();
    let entry = |tag: u16, kind: u16, count: u32, value: u32| {
        let mut entry = tag.to_le_bytes().to_vec();
        entry.extend(kind.to_le_bytes());
        entry.extend(count.to_le_bytes());
        entry.extend(value.to_le_bytes());
        entry
    };
    // The directory has three entries and ends at 8 + 2 + 36 + 4 = 50; the name follows it, and then where the camera was.
    tiff.extend(3_u16.to_le_bytes());
    tiff.extend(entry(0x010f, 2, 14, 50));
    tiff.extend(entry(0x0112, 3, 1, orientation.into()));
    tiff.extend(entry(0x8825, 4, 1, 64));
    tiff.extend(0_u32.to_le_bytes());
    tiff.extend(b"SECRET CAMERA\0");
    tiff.extend(2_u16.to_le_bytes());
    tiff.extend(entry(1, 2, 2, u32::from_le_bytes(*b"N\0\0\0")));
    tiff.extend(entry(2, 5, 3, 94));
    tiff.extend(0_u32.to_le_bytes());
    for number in [48_u32, 1, 12, 1, 30, 1] {
        tiff.extend(number.to_le_bytes());
    }
    tiff.extend(b"SECRET PLACE");
    tiff
}

/// Puts a segment behind the beginning of a JPEG.
pub(crate) fn with_segment(jpeg: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let mut with = vec![0xff, 0xd8, 0xff, marker];
    with.extend(u16::try_from(content.len() + 2).expect("short").to_be_bytes());
    with.extend(content);
    with.extend(&jpeg[2..]);
    with
}

pub(crate) fn with_exif(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    with_segment(jpeg, 0xe1, &[b"Exif\0\0", exif(orientation).as_slice()].concat())
}

/// Puts a chunk behind the header of a PNG.
pub(crate) fn with_chunk(png: &[u8], kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut with = png[..33].to_vec();
    with.extend(u32::try_from(content.len()).expect("short").to_be_bytes());
    with.extend(kind);
    with.extend(content);
    with.extend(crc32fast::hash(&[kind, content].concat()).to_be_bytes());
    with.extend(&png[33..]);
    with
}

/// Makes an extended WebP of a simple one, with chunks behind the pixels.
pub(crate) fn with_chunks(webp: &[u8], width: u32, height: u32, flags: u8, chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut content = b"WEBPVP8X\x0a\0\0\0".to_vec();
    content.extend([flags, 0, 0, 0]);
    content.extend(&(width - 1).to_le_bytes()[..3]);
    content.extend(&(height - 1).to_le_bytes()[..3]);
    content.extend(&webp[12..]);
    for (kind, chunk) in chunks {
        content.extend(*kind);
        content.extend(u32::try_from(chunk.len()).expect("short").to_le_bytes());
        content.extend(*chunk);
        content.extend(vec![0; chunk.len() % 2]);
    }
    let mut with = b"RIFF".to_vec();
    with.extend(u32::try_from(content.len()).expect("short").to_le_bytes());
    with.extend(content);
    with
}

pub(crate) fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut boxed = u32::try_from(content.len() + 8).expect("short").to_be_bytes().to_vec();
    boxed.extend(kind);
    boxed.extend(content);
    boxed
}

/// A frame as it is coded (AV1 §5.3): its kind, that its length follows, the length, and what nobody decodes.
pub(crate) const PIXELS: &[u8] = b"\x32\x06PIXELS";

/// Returns the boxes of an AVIF around pixels that nobody decodes: item 1 is the picture, item 2 its Exif data.
pub(crate) fn avif(width: u32, height: u32, turns: u8) -> Vec<u8> {
    avif_of(b"avif\0\0\0\0avifmif1", width, height, turns)
}

/// Returns an [`avif`] that says that it is of these brands.
pub(crate) fn avif_of(brands: &[u8], width: u32, height: u32, turns: u8) -> Vec<u8> {
    let ispe = |width: u32, height: u32| boxed(b"ispe", &[[0; 4], width.to_be_bytes(), height.to_be_bytes()].concat());
    let properties = [ispe(7, 7), ispe(width, height), boxed(b"irot", &[turns])].concat();
    let exif = [[0; 4].as_slice(), &exif(1)].concat();
    Heif { brands, items: &[(b"av01", PIXELS), (b"Exif", &exif)], properties: &properties, more: &[] }.file()
}

/// A picture in boxes, whose first item is the one that is shown.
#[derive(Clone, Copy)]
pub(crate) struct Heif<'h> {
    pub(crate) brands: &'h [u8],
    /// The kinds and contents of the items, which have the numbers from 1 on.
    pub(crate) items: &'h [(&'h [u8; 4], &'h [u8])],
    /// The boxes of the properties. The first item has the second and the third.
    pub(crate) properties: &'h [u8],
    /// Further boxes in the description.
    pub(crate) more: &'h [u8],
}

impl Heif<'_> {
    /// Returns the file, in which the pixels follow the description.
    pub(crate) fn file(&self) -> Vec<u8> {
        let length = self.start(0).len();
        [self.start(length + 8), self.content()].concat()
    }

    /// Returns the file, in which the pixels stand before the description.
    pub(crate) fn pixels_first(&self) -> Vec<u8> {
        let ftyp = boxed(b"ftyp", self.brands);
        [ftyp.clone(), self.content(), boxed(b"meta", &self.meta(ftyp.len() + 8))].concat()
    }

    fn start(&self, content: usize) -> Vec<u8> {
        [boxed(b"ftyp", self.brands), boxed(b"meta", &self.meta(content))].concat()
    }

    fn content(&self) -> Vec<u8> {
        boxed(b"mdat", &self.items.iter().flat_map(|(_, content)| content.iter().copied()).collect::<Vec<_>>())
    }

    fn meta(&self, mut content: usize) -> Vec<u8> {
        let count = u16::try_from(self.items.len()).expect("few").to_be_bytes();
        let mut iinf = [[0; 4].as_slice(), &count].concat();
        let mut iloc = [[0, 0, 0, 0, 0x44, 0].as_slice(), &count].concat();
        for ((kind, item), number) in self.items.iter().zip(1_u16..) {
            let number = number.to_be_bytes();
            let name = b"SECRET NAME\0\0";
            iinf.extend(boxed(b"infe", &[&[2, 0, 0, 0], number.as_slice(), &[0, 0], kind.as_slice(), name].concat()));
            iloc.extend(number);
            iloc.extend([0, 0, 0, 1]);
            iloc.extend(u32::try_from(content).expect("short").to_be_bytes());
            iloc.extend(u32::try_from(item.len()).expect("short").to_be_bytes());
            content += item.len();
        }
        let hdlr = boxed(b"hdlr", &[[0; 8].as_slice(), b"pict", &[0; 12], b"SECRET PROGRAM\0"].concat());
        let pitm = boxed(b"pitm", &[0, 0, 0, 0, 0, 1]);
        let ipma = boxed(b"ipma", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 2, 0x82, 0x83]);
        let iprp = boxed(b"iprp", &[boxed(b"ipco", self.properties), ipma].concat());
        [vec![0; 4], hdlr, pitm, boxed(b"iloc", &iloc), boxed(b"iinf", &iinf), iprp, self.more.to_vec()].concat()
    }
}

/// The two samples of a film: the second is a frame.
pub(crate) const SAMPLES: &[u8] = b"\x12\0\x32\x06PIXELS";

/// Returns a film of one track with this handler, in one chunk of so many bytes, of which the first sample has two.
pub(crate) fn moov(handler: &[u8; 4], chunk: u32, bytes: u32, more: &[u8]) -> Vec<u8> {
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    // The times at which it was made, of version 0: seconds since 1904.
    let head = |kind: &[u8; 4], rest: usize| boxed(kind, &[[0; 4].as_slice(), b"SECRETMT", &vec![0; rest]].concat());
    let hdlr = boxed(b"hdlr", &[[0; 8].as_slice(), handler, &[0; 12], b"SECRET HANDLER\0"].concat());
    let coding = [[0; 42].as_slice(), b"\x0dSECRET CODING", &[0; 22], &boxed(b"av1C", b"\x81\0\0\0"), &boxed(b"uuid", b"SECRET")].concat();
    assert_eq!(coding.len(), 78 + 12 + 14);
    let stsd = boxed(b"stsd", &[numbers(&[0, 1]), boxed(b"av01", &coding)].concat());
    let tables = [
        stsd,
        boxed(b"stsc", &numbers(&[0, 1, 1, 2, 1])),
        boxed(b"stsz", &numbers(&[0, 0, 2, 2, bytes - 2])),
        boxed(b"stco", &numbers(&[0, 1, chunk])),
        boxed(b"uuid", b"SECRET"),
    ];
    let minf = boxed(b"minf", &[boxed(b"vmhd", &[0; 12]), boxed(b"stbl", &tables.concat())].concat());
    let mdia = boxed(b"mdia", &[head(b"mdhd", 12), hdlr, minf].concat());
    let trak = boxed(b"trak", &[head(b"tkhd", 72), mdia, more.to_vec()].concat());
    boxed(b"moov", &[head(b"mvhd", 88), trak, more.to_vec()].concat())
}
