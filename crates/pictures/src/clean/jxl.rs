//! JPEG XL: of its boxes (ISO/IEC 18181-2), only those that a decoder needs are kept. Bare codestreams have no room for metadata;
//! where one ends, only decoding it would tell.

use std::io::{Read, Seek};

use super::Scan;
use crate::Fault;

/// The first box, which is the same in all files.
pub(super) const SIGNATURE: &[u8] = b"\0\0\0\x0cJXL \r\n\x87\n";

/// The beginning of a bare codestream (ISO/IEC 18181-1 §D.1).
pub(super) const CODESTREAM: &[u8] = b"\xff\x0a";

/// The boxes that are kept: the signature, the type, the level, the index of frames, and the picture.
const KEPT: [&[u8; 4]; 6] = [b"JXL ", b"ftyp", b"jxll", b"jxli", b"jxlc", b"jxlp"];

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    while let Some(found) = scan.file_box()? {
        if KEPT.contains(&&found.kind) {
            scan.keep(found.start..found.content.end)?;
        }
        scan.go_to(found.content.end)?;
    }
    Ok(())
}
