//! Windows bitmaps.

use std::io::{Read, Seek};

use super::{Facts, Format, head::Head};
use crate::fault::Fault;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    head.skip(14)?;
    let (width, height) = match head.le32()? {
        12 => (head.le16()?.into(), head.le16()?.into()),
        // A negative height means that the first line is at the top.
        16.. => (signed(head.le32()?), signed(head.le32()?)),
        _ => return Err(Fault::Unknown),
    };
    Ok(Facts { alpha: true, ..Facts::plain(Format::Bmp, width, height) })
}

const fn signed(number: u32) -> u32 {
    number.cast_signed().unsigned_abs()
}
