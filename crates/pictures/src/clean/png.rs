//! PNG: the chunks that say how the picture looks and moves are kept.

use std::io::{Read, Seek};

use super::{Scan, exif_of};
use crate::{Fault, facts::exif_orientation};

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

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    scan.go_to(8)?;
    scan.keep(0..8)?;
    let (mut orientation, mut header_end, mut has_pixels) = (None, None, false);
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
