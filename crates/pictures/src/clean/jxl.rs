//! JPEG XL: of its boxes (ISO/IEC 18181-2), only those that a decoder needs are kept. Bare codestreams have no room for metadata.

use std::io::{Read, Seek};

use super::Scan;
use crate::Fault;

/// The first box, which is the same in all files.
pub(super) const SIGNATURE: &[u8] = b"\0\0\0\x0cJXL \r\n\x87\n";

/// The boxes that are kept: the signature, the type, the level, the index of frames, and the picture.
const KEPT: [&[u8; 4]; 6] = [b"JXL ", b"ftyp", b"jxll", b"jxli", b"jxlc", b"jxlp"];

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    while let Some([a, b, c, d, kind @ ..]) = scan.array::<8>()? {
        let start = scan.at - 8;
        let end = match u32::from_be_bytes([a, b, c, d]) {
            0 => scan.bytes,
            1 => start.saturating_add(scan.array()?.map_or(u64::MAX, u64::from_be_bytes)),
            length => start + u64::from(length),
        };
        if end < scan.at {
            return Err(Fault::damaged("its boxes make no sense"));
        }
        if KEPT.contains(&&kind) {
            scan.keep(start..end)?;
        }
        scan.go_to(end)?;
    }
    Ok(())
}
