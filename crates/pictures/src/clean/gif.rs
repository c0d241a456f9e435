//! GIF: the frames are kept, and of the extensions those that say how they are shown one after the other.

mod codes;

use std::io::{Read, Seek};

use super::Scan;
use crate::Fault;
use codes::Codes;

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    scan.go_to(10)?;
    let Some([flags, _, _]) = scan.array()? else { return scan.keep(0..scan.bytes) };
    let end = scan.at + colours(flags);
    scan.go_to(end)?;
    scan.keep(0..end)?;
    while let Some(introducer) = scan.byte()? {
        let start = scan.at - 1;
        match introducer {
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
                blocks(scan)?;
            }
            b',' => {
                if !scan.begin_pixels() {
                    return Ok(());
                }
                let Some([_, _, _, _, a, b, c, d, flags]) = scan.array::<9>()? else { break };
                let pixels = u64::from(u16::from_le_bytes([a, b])) * u64::from(u16::from_le_bytes([c, d]));
                scan.go_to(scan.at + colours(flags))?;
                frame(scan, start, pixels)?;
            }
            // The end; what follows it is not part of the picture.
            b';' => {
                scan.keep(start..scan.at)?;
                break;
            }
            // No decoder reads on here.
            _ => break,
        }
    }
    Ok(())
}

/// Passes over blocks of data, up to and with the empty one that ends them.
fn blocks<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    while let Some(length) = scan.byte()?.filter(|&length| length > 0) {
        scan.go_to(scan.at + u64::from(length))?;
    }
    Ok(())
}

/// Keeps a frame that begins at `start`, up to the last code that its pixels need: decoders pass over what follows that. The reader stands before what says
/// how many bits a code has.
fn frame<R: Read + Seek>(scan: &mut Scan<R>, start: u64, pixels: u64) -> Result<(), Fault> {
    let codes = scan.byte()?.map(|colour_bits| Codes::new(colour_bits, pixels));
    let Some(codes) = codes else { return scan.keep(start..scan.at) };
    // Where the last block with something needed begins, and where that ends in it. Before the first block, there is none.
    let (mut block, mut needed) = (scan.at, scan.at);
    let mut is_cut = codes.is_none();
    if let Some(mut codes) = codes {
        while !codes.is_over() {
            let at = scan.at;
            let Some(length) = scan.byte()?.filter(|&length| length > 0) else { break };
            for (offset, byte) in (at + 2..).zip(scan.some(length.into())?) {
                if codes.take(byte) {
                    (block, needed) = (at, offset);
                }
            }
        }
        is_cut = codes.is_over() || codes.is_complete();
    }
    if !is_cut {
        return scan.keep(start..scan.at);
    }
    scan.go_to(block)?;
    let length = if needed > block { scan.byte()?.unwrap_or(0) } else { 0 };
    let kept = needed.saturating_sub(block + 1);
    if u64::from(length) == kept {
        scan.keep(start..needed)?;
        scan.go_to(needed)?;
        if scan.byte()? == Some(0) {
            return scan.keep(needed..scan.at);
        }
    } else {
        scan.keep(start..block)?;
        scan.add(vec![u8::try_from(kept).unwrap_or(u8::MAX)])?;
        scan.keep(block + 1..needed)?;
    }
    scan.add(vec![0])?;
    scan.go_to(block + u64::from(length > 0) + u64::from(length))?;
    blocks(scan)
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
