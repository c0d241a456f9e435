//! JPEG (ITU T.81): segments up to the frame header.

use std::io::{Read, Seek};

use super::{Facts, Format, exif_orientation, head::Head};
use crate::fault::Fault;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    head.skip(2)?;
    let mut orientation = None;
    loop {
        head.piece()?;
        match marker(head)? {
            0x01 | 0xd0..=0xd8 => {}
            0xd9 | 0xda => return Err(Fault::NoSize),
            marker if is_frame(marker) => {
                let (length, _precision) = (head.be16()?, head.byte()?);
                if length < 8 {
                    return Err(Fault::damaged("its frame header is too short"));
                }
                let (height, width) = (head.be16()?, head.be16()?);
                let orientation = orientation.unwrap_or(1);
                return Ok(Facts { orientation, ..Facts::plain(Format::Jpeg, width.into(), height.into()) });
            }
            marker => {
                let length = u64::from(head.be16()?);
                let rest = length.checked_sub(2).ok_or_else(|| Fault::damaged("a segment is shorter than its own length"))?;
                if marker == 0xe1 {
                    let segment = head.block(rest)?;
                    // Browsers take the first that says how to turn the picture.
                    orientation = orientation.or_else(|| segment.strip_prefix(b"Exif\0\0").and_then(exif_orientation));
                } else {
                    head.skip(rest)?;
                }
            }
        }
    }
}

/// Tells whether a frame header follows a marker. The three left out are tables and an extension (§B.1.1.3).
pub(crate) const fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf)
}

/// Reads up to the next marker. What lies before it is passed over, as decoders do.
fn marker<R: Read + Seek>(head: &mut Head<R>) -> Result<u8, Fault> {
    let mut passed = 0_u32;
    loop {
        let mut byte = head.byte()?;
        if byte == 0xff {
            while byte == 0xff {
                byte = head.byte()?;
            }
            if byte != 0 {
                return Ok(byte);
            }
        }
        passed += 1;
        if passed > 64 * 1024 {
            return Err(Fault::damaged("there is no frame header"));
        }
    }
}
