//! BMP: its heads, its colours and its pixels are kept. Profiles stand behind the pixels, and something else may stand before them.

use std::io::{Read, Seek};

use super::Scan;
use crate::Fault;

/// The bytes of the head of the file.
const HEAD: u64 = 14;
/// The lengths of the head of the picture: the oldest, and the least of all others.
const CORE: u64 = 12;
const INFO: u64 = 40;
/// The bytes with the bits of each colour that may stand behind a head of [`INFO`] bytes.
const MASKS: u64 = 16;

/// A way to name a file of colours, which is a path on its maker's disk: "LINK".
const LINKED: &[u8] = b"KNIL";

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    let start = scan.peek(HEAD + 124)?;
    let parts = parts(&start).ok_or_else(|| Fault::damaged("its head says nothing of its pixels"))?;
    if parts.heads > parts.pixels {
        return Err(Fault::damaged("its colours and its pixels overlap"));
    }
    if start.get(70..74) == Some(LINKED) && parts.heads >= HEAD + 124 {
        return Err(Fault::damaged("it names a file with its colours"));
    }
    scan.keep(0..parts.heads)?;
    // Where pixels begin is written in the head, so nothing may move.
    scan.zeros(parts.pixels.min(scan.bytes).saturating_sub(parts.heads))?;
    scan.keep(parts.pixels..parts.end)
}

/// Says where the parts of a picture end and begin.
struct Parts {
    /// The end of heads and colours.
    heads: u64,
    pixels: u64,
    end: u64,
}

fn parts(start: &[u8]) -> Option<Parts> {
    let short = |at: usize| Some(u64::from(u16::from_le_bytes(start.get(at..at + 2)?.try_into().ok()?)));
    let long = |at: usize| Some(u32::from_le_bytes(start.get(at..at + 4)?.try_into().ok()?));
    let (pixels, head) = (u64::from(long(10)?), u64::from(long(14)?));
    let (width, height, bits, compression, bytes, colours, each) = if head == CORE {
        (short(18)?, short(20)?, short(24)?, 0, 0, 0, 3)
    } else if head >= INFO {
        let size = |at| Some(u64::from(long(at)?.cast_signed().unsigned_abs()));
        (size(18)?, size(22)?, short(28)?, long(30)?, u64::from(long(34)?), u64::from(long(46)?), 4)
    } else {
        return None;
    };
    let colours = if colours == 0 && bits <= 8 { 1 << bits } else { colours };
    let masks = if head == INFO && matches!(compression, 3 | 6) { MASKS } else { 0 };
    let row = width.checked_mul(bits)?.div_ceil(32) * 4;
    // Coded pixels have their own length.
    let bytes = if matches!(compression, 0 | 3 | 6) { row.checked_mul(height)? } else { bytes };
    let heads = HEAD + head + masks + colours.checked_mul(each)?;
    // Three masks are a fourth shorter than four.
    let heads = if masks > 0 && heads > pixels { heads - 4 } else { heads };
    Some(Parts { heads, pixels, end: pixels.checked_add(bytes)? })
}
