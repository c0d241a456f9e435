//! GIF: comments and the blocks of applications go, except those that make it move in a circle or name its colours.

use std::io::{Read, Seek};

use super::Scan;
use crate::Fault;

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    scan.go_to(10)?;
    let Some([flags, _, _]) = scan.array()? else { return scan.keep(0..scan.bytes) };
    let end = scan.at + colours(flags);
    scan.go_to(end)?;
    scan.keep(0..end)?;
    while let Some(introducer) = scan.byte()? {
        let start = scan.at - 1;
        let is_kept = match introducer {
            b'!' => match scan.byte()? {
                Some(0xf9 | 0x01) => true,
                Some(0xff) => {
                    let at = scan.at;
                    let Some(length) = scan.byte()? else { break };
                    let name = scan.some(length.into())?;
                    scan.go_to(at)?;
                    matches!(name.as_slice(), b"NETSCAPE2.0" | b"ANIMEXTS1.0" | b"ICCRGBG1012")
                }
                Some(_) => false,
                None => break,
            },
            b',' => {
                if !scan.begin_pixels() {
                    return Ok(());
                }
                let Some([.., flags]) = scan.array::<9>()? else { break };
                scan.go_to(scan.at + colours(flags) + 1)?;
                true
            }
            // The end; what follows it is no part of the picture.
            b';' => {
                scan.keep(start..scan.at)?;
                break;
            }
            // No decoder reads on here.
            _ => break,
        };
        while let Some(length) = scan.byte()? {
            if length == 0 {
                break;
            }
            scan.go_to(scan.at + u64::from(length))?;
        }
        if is_kept {
            scan.keep(start..scan.at)?;
        }
    }
    Ok(())
}

/// Returns the length of the table of colours that `flags` announce.
fn colours(flags: u8) -> u64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}
