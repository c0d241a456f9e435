//! GIF: the frames are kept, and of the extensions those that say how they are shown one after the other.

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
            b'!' => {
                match scan.byte()? {
                    // How long a frame is shown, and what is transparent.
                    Some(0xf9) => extension(scan, start, None, 4)?,
                    // How often all are shown.
                    Some(0xff) => {
                        let at = scan.at;
                        let Some(length) = scan.byte()? else { break };
                        let name = scan.some(length.into())?;
                        scan.go_to(at)?;
                        if matches!(name.as_slice(), b"NETSCAPE2.0" | b"ANIMEXTS1.0") {
                            extension(scan, start, Some(11), 3)?;
                        }
                    }
                    Some(_) => {}
                    None => break,
                }
                false
            }
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

/// Keeps an extension that begins at `start`: the block with its name, which has so many bytes, if it has one, and its first block of `length` bytes.
/// What has other lengths is left out. The reader stands before the blocks then, as it did before.
fn extension<R: Read + Seek>(scan: &mut Scan<R>, start: u64, name: Option<u8>, length: u8) -> Result<(), Fault> {
    let at = scan.at;
    let mut fits = true;
    for expected in name.into_iter().chain([length]) {
        fits &= scan.byte()? == Some(expected) && scan.at + u64::from(expected) <= scan.bytes;
        scan.go_to(scan.at + u64::from(expected))?;
    }
    let end = scan.at;
    if fits && scan.byte()? == Some(0) {
        scan.keep(start..scan.at)?;
    } else if fits {
        scan.keep(start..end)?;
        scan.add(vec![0])?;
    }
    scan.go_to(at)
}

/// Returns the length of the table of colours that `flags` announce.
fn colours(flags: u8) -> u64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}
