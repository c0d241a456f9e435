//! WebP (RFC 9649): the first chunk has the size, and of an extended file also what else is in it.

use std::io::{Read, Seek};

use super::{Facts, Format, exif_orientation, head::Head};
use crate::fault::Fault;

/// The largest Exif block that is looked at.
const EXIF_BYTES_MAX: u32 = 1024 * 1024;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    head.skip(4)?;
    let end = u64::from(head.le32()?) + 8;
    head.skip(4)?;
    let (kind, length) = (head.array::<4>()?, head.le32()?);
    if 20 + u64::from(length) > end {
        return Err(Fault::damaged("its first chunk is longer than the file says it is itself"));
    }
    match &kind {
        b"VP8 " => {
            let [_, _, _, a, b, c] = head.array()?;
            if [a, b, c] != [0x9d, 0x01, 0x2a] {
                return Err(Fault::damaged("it does not begin with a whole frame"));
            }
            let (width, height) = (head.le16()? & 0x3fff, head.le16()? & 0x3fff);
            Ok(Facts::plain(Format::WebP, width.into(), height.into()))
        }
        b"VP8L" => {
            if head.byte()? != 0x2f {
                return Err(Fault::damaged("it does not begin with its signature"));
            }
            let bits = head.le32()?;
            let (width, height) = ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1);
            Ok(Facts { alpha: bits >> 28 & 1 == 1, ..Facts::plain(Format::WebP, width, height) })
        }
        b"VP8X" if length == 10 => {
            let [flags, _, _, _] = head.array()?;
            let (width, height) = (head.le24()? + 1, head.le24()? + 1);
            let mut facts = Facts::plain(Format::WebP, width, height);
            (facts.animated, facts.alpha) = (flags & 0x02 != 0, flags & 0x10 != 0);
            if flags & 0x08 != 0 {
                // It stands behind the pixels. A file that is cut off has a size all the same.
                facts.orientation = orientation(head, end).ok().flatten().unwrap_or(1);
            }
            Ok(facts)
        }
        _ => Err(Fault::damaged("it does not begin with its size")),
    }
}

/// Looks for the orientation in the chunks up to `end`.
fn orientation<R: Read + Seek>(head: &mut Head<R>, end: u64) -> Result<Option<u8>, Fault> {
    while head.at() + 8 <= end {
        head.piece()?;
        let (kind, length) = (head.array::<4>()?, head.le32()?);
        if &kind == b"EXIF" && length <= EXIF_BYTES_MAX {
            if head.at() + u64::from(length) > end {
                return Ok(None);
            }
            return Ok(exif_orientation(&head.block(length.into())?));
        }
        head.skip(u64::from(length) + u64::from(length & 1))?;
    }
    Ok(None)
}
