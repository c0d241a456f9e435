//! PNG: chunks up to the first one of pixels.

use std::io::{Read, Seek};

use super::{Facts, Format, exif_orientation, head::Head};
use crate::fault::Fault;

/// The largest Exif block that is looked at.
const EXIF_BYTES_MAX: u32 = 1024 * 1024;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    head.skip(8)?;
    let (length, kind) = (head.be32()?, head.array::<4>()?);
    if length < 13 || &kind != b"IHDR" {
        return Err(Fault::damaged("it does not begin with its size"));
    }
    let (width, height) = (head.be32()?, head.be32()?);
    let [_depth, colours] = head.array()?;
    let mut orientation = None;
    let mut facts = Facts::plain(Format::Png, width, height);
    facts.alpha = matches!(colours, 4 | 6);
    head.skip(u64::from(length) - 10 + 4)?;
    loop {
        head.piece()?;
        let (length, kind) = (head.be32()?, head.array::<4>()?);
        match &kind {
            b"IDAT" | b"IEND" => return Ok(Facts { orientation: orientation.unwrap_or(1), ..facts }),
            b"acTL" => facts.animated = true,
            b"tRNS" => facts.alpha = true,
            b"eXIf" if length <= EXIF_BYTES_MAX => {
                let exif = head.block(length.into())?;
                orientation = orientation.or_else(|| exif_orientation(&exif));
                head.skip(4)?;
                continue;
            }
            _ => {}
        }
        head.skip(u64::from(length) + 4)?;
    }
}
