//! PNG: the chunks that say how the picture looks and moves are kept, and of the compressed pixels what is needed.

mod stream;

use std::io::{Read, Seek};

use super::{Scan, exif_of};
use crate::{Fault, facts::exif_orientation};
use stream::{Layout, Stream};

/// Every chunk that is kept, with the most bytes that it may have (PNG §11). Texts, times, Exif, and what no standard names are not among them.
const KEPT: [(&[u8; 4], u64); 18] = [
    (b"IHDR", 13),
    (b"PLTE", 768),
    (b"IDAT", u64::MAX),
    (b"tRNS", 256),
    (b"cHRM", 32),
    (b"gAMA", 4),
    (b"iCCP", u64::MAX),
    (b"sBIT", 4),
    (b"sRGB", 1),
    (b"cICP", 4),
    (b"mDCV", 24),
    (b"cLLI", 8),
    (b"bKGD", 6),
    (b"hIST", 512),
    (b"pHYs", 9),
    (b"acTL", 8),
    (b"fcTL", 26),
    (b"fdAT", u64::MAX),
];

/// The last chunk, which has no content.
const END: [u8; 12] = *b"\0\0\0\0IEND\xae\x42\x60\x82";

/// The largest Exif block that is looked at.
const EXIF_BYTES_MAX: u64 = 1024 * 1024;

/// The most bytes of pixels that are unpacked to find their end. A picture of [`PIXELS_MAX`](crate::PIXELS_MAX) has a fifth of that at most, and 250 frames as
/// large as a screen have as much.
const UNPACKED_BYTES_MAX: u64 = 2 << 30;

/// The bytes of compressed pixels that are read at once.
const PIECE_BYTES: u64 = 16 * 1024;

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    scan.go_to(8)?;
    scan.keep(0..8)?;
    let (mut orientation, mut header_end, mut has_pixels) = (None, None, false);
    let mut pixels = Pixels::default();
    while let Some([a, b, c, d, kind @ ..]) = scan.array::<8>()? {
        let start = scan.at - 8;
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        let end = scan.at + length + 4;
        if &kind == b"IDAT" && !std::mem::replace(&mut has_pixels, true) && !scan.begin_pixels() {
            return Ok(());
        }
        if &kind == b"IHDR" && length != 13 {
            return Err(Fault::damaged("its header has another length"));
        }
        if &kind == b"eXIf" && length <= EXIF_BYTES_MAX && !has_pixels && orientation.is_none() {
            orientation = exif_orientation(&scan.some(length)?);
        }
        match &kind {
            b"IHDR" | b"fcTL" => pixels.announce(&kind, &scan.some(length.min(26))?),
            b"IDAT" | b"fdAT" if pixels.left > 0 => {
                pixels.keep(scan, start, kind, length)?;
                scan.go_to(end)?;
                continue;
            }
            _ => {}
        }
        if KEPT.iter().any(|(kept, most)| **kept == kind && length <= *most) {
            scan.keep(start..end)?;
        }
        scan.go_to(end)?;
        if &kind == b"IHDR" && header_end.is_none() {
            header_end = Some(end);
        }
        if &kind == b"IEND" {
            if length == 0 {
                scan.keep(start..end)?;
            } else {
                scan.add(END.to_vec())?;
            }
            break;
        }
    }
    // The header has to be the first chunk; another file is broken, and shown by nobody.
    if let Some(orientation) = orientation.filter(|&orientation| orientation > 1 && header_end == Some(33)) {
        let exif = exif_of(orientation);
        let mut chunk = u32::try_from(exif.len()).expect("it has 26 bytes").to_be_bytes().to_vec();
        chunk.extend_from_slice(b"eXIf");
        chunk.extend_from_slice(&exif);
        let sum = crc32fast::hash(&chunk[4..]);
        chunk.extend_from_slice(&sum.to_be_bytes());
        super::split_first(&mut scan.cleaned, 33);
        scan.put_at(1, chunk);
    }
    Ok(())
}

/// The compressed pixels of a file, as far as they were read.
struct Pixels {
    header: Option<Layout>,
    /// The layout of the frame whose pixels follow.
    frame: Option<Layout>,
    stream: Option<Stream>,
    /// The number of bytes that may still be unpacked.
    left: u64,
}

impl Default for Pixels {
    fn default() -> Self {
        Self { header: None, frame: None, stream: None, left: UNPACKED_BYTES_MAX }
    }
}

impl Pixels {
    /// Takes note of the content of a chunk that says what pixels follow: a header or the head of a frame.
    fn announce(&mut self, kind: &[u8; 4], content: &[u8]) {
        let number = |at: usize| Some(u32::from_be_bytes(*content.get(at..)?.first_chunk()?));
        if kind == b"IHDR" {
            let layout = |&[depth, colours, _, _, interlaced]: &[u8; 5]| {
                Some(Layout { width: number(0)?, height: number(4)?, depth, colours, is_interlaced: interlaced == 1 })
            };
            self.header = content.get(8..).and_then(|rest| rest.first_chunk()).and_then(layout);
        } else {
            let size = number(4).zip(number(8));
            self.frame = self.header.zip(size).map(|(header, (width, height))| Layout { width, height, ..header });
            self.stream = None;
        }
    }

    /// Keeps what is needed of a chunk with pixels, which begins at `start`. The reader stands before its content.
    fn keep<R: Read + Seek>(&mut self, scan: &mut Scan<R>, start: u64, kind: [u8; 4], length: u64) -> Result<(), Fault> {
        let layout = if &kind == b"IDAT" { self.header } else { self.frame };
        let stream = self.stream.get_or_insert_with(|| Stream::new(layout.map_or(u64::MAX, Layout::bytes)));
        if stream.is_over() {
            return Ok(());
        }
        let before = stream.unpacked();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&kind);
        // The number of the frame's part.
        let number = if &kind == b"fdAT" { 4 } else { 0 };
        let (begin, end) = (scan.at + number, scan.at + length);
        sum.update(&scan.some(number.min(length))?);
        while scan.at < end && !stream.is_over() && stream.unpacked() - before < self.left {
            let (at, bytes) = (scan.at, scan.some(PIECE_BYTES.min(end - scan.at))?);
            let needed = stream.take(&bytes);
            sum.update(&bytes[..needed]);
            scan.go_to(at + needed as u64)?;
            if bytes.is_empty() || needed == 0 {
                break;
            }
        }
        self.left = self.left.saturating_sub(stream.unpacked() - before);
        if !stream.is_over() || scan.at == end {
            return scan.keep(start..end + 4);
        }
        if scan.at <= begin {
            return Ok(());
        }
        let needed = scan.at;
        let Ok(length) = u32::try_from(needed - begin + number) else { return Err(Fault::TooLong) };
        scan.add([length.to_be_bytes(), kind].concat())?;
        scan.keep(start + 8..needed)?;
        scan.add(sum.finalize().to_be_bytes().to_vec())
    }
}
