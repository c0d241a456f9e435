//! GIF: its screen, and whether a second picture follows the first.

use std::io::{Read, Seek};

use super::{Facts, Format, head::Head};
use crate::fault::Fault;

/// A first picture longer than this is not read to its end. The file is left as it is then, as if it moved.
const FIRST_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    head.skip(6)?;
    let (width, height) = (head.le16()?, head.le16()?);
    let [flags, _, _] = head.array()?;
    skip_colours(head, flags)?;
    let mut facts = Facts::plain(Format::Gif, width.into(), height.into());
    let mut pictures = 0;
    // A picture that is cut off has a size all the same.
    let _ = scan(head, &mut facts, &mut pictures);
    Ok(facts)
}

fn scan<R: Read + Seek>(head: &mut Head<R>, facts: &mut Facts, pictures: &mut u32) -> Result<(), Fault> {
    loop {
        match head.byte()? {
            b'!' => match head.byte()? {
                0xff => {
                    let length = head.byte()?;
                    let name = head.block(length.into())?;
                    if name == b"NETSCAPE2.0" || name == b"ANIMEXTS1.0" {
                        facts.animated = true;
                        return Ok(());
                    }
                    skip_blocks(head, facts)?;
                }
                0xf9 => {
                    let [length, flags] = head.array()?;
                    facts.alpha |= flags & 1 == 1;
                    head.skip(u64::from(length.saturating_sub(1)))?;
                    skip_blocks(head, facts)?;
                }
                _ => skip_blocks(head, facts)?,
            },
            b',' => {
                *pictures += 1;
                if *pictures > 1 {
                    facts.animated = true;
                    return Ok(());
                }
                head.skip(8)?;
                let flags = head.byte()?;
                skip_colours(head, flags)?;
                head.skip(1)?;
                skip_blocks(head, facts)?;
            }
            _ => return Ok(()),
        }
    }
}

fn skip_colours<R: Read + Seek>(head: &mut Head<R>, flags: u8) -> Result<(), Fault> {
    if flags & 0x80 == 0 { Ok(()) } else { head.skip(3 << ((flags & 7) + 1)) }
}

fn skip_blocks<R: Read + Seek>(head: &mut Head<R>, facts: &mut Facts) -> Result<(), Fault> {
    let start = head.at();
    loop {
        head.piece()?;
        match head.byte()? {
            0 => return Ok(()),
            length => head.skip(length.into())?,
        }
        if head.at() - start > FIRST_BYTES_MAX {
            facts.animated = true;
            return Err(Fault::Truncated);
        }
    }
}
