//! WebP (RFC 9649): the chunks of pixels and colours are kept, and the head says so.
//!
//! A chunk of pixels is kept whole. Where its last code ends, only decoding all of it would tell.

use std::io::{Read, Seek};

use super::{Piece, Scan, exif_of};
use crate::{Fault, facts::exif_orientation};

const KEPT: [&[u8; 4]; 6] = [b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ICCP"];

/// The largest Exif block that is looked at.
const EXIF_BYTES_MAX: u64 = 1024 * 1024;

/// The bytes of a frame before its chunks.
const FRAME_BYTES: u64 = 16;

const HAS_EXIF: u8 = 0x08;
const HAS_XMP: u8 = 0x04;

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    let Some(head) = scan.array::<12>()? else { return scan.keep(0..scan.bytes) };
    let announced = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    // What lies behind the announced end is not part of the picture.
    let file_end = scan.bytes.min(announced.saturating_add(8));
    let (mut orientation, mut flags, mut has_profile) = (None, None, false);
    let mut kept: Vec<Piece> = Vec::new();
    while scan.at + 8 <= file_end
        && let Some([kind @ .., a, b, c, d]) = scan.array::<8>()?
    {
        let start = scan.at - 8;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        let end = (scan.at + length + (length & 1)).min(file_end);
        let is_announced = flags.is_some_and(|(_, flags)| flags & HAS_EXIF != 0);
        if &kind == b"EXIF" && length <= EXIF_BYTES_MAX && is_announced && orientation.is_none() {
            let exif = scan.some(length.min(file_end - scan.at))?;
            orientation = exif_orientation(&exif).filter(|_| exif.len() as u64 == length).or(Some(1));
        }
        if &kind == b"VP8X" && length == 10 && start == 12 {
            scan.go_to(start + 8)?;
            flags = scan.byte()?.map(|flags| (start + 8, flags));
        }
        // One of another length hides something, and so does a second profile.
        let is_hiding = match &kind {
            b"VP8X" => length != 10 || start != 12,
            b"ICCP" => std::mem::replace(&mut has_profile, true) || !has_signature(scan, length)?,
            _ => false,
        };
        if &kind == b"ANMF" {
            kept.extend(frame(scan, start, end)?);
        } else if KEPT.contains(&&kind) && !is_hiding {
            kept.push(Piece::Of(start..end));
        }
        if kept.len() >= super::PIECES_MAX {
            return Err(Fault::damaged("it has too many parts"));
        }
        scan.go_to(end)?;
    }
    let mut exif = Vec::new();
    if let Some((_, flags)) = &mut flags {
        *flags &= !(HAS_EXIF | HAS_XMP);
        if let Some(orientation) = orientation.filter(|&orientation| orientation > 1) {
            *flags |= HAS_EXIF;
            exif.extend_from_slice(b"EXIF\x1a\0\0\0");
            exif.extend_from_slice(&exif_of(orientation));
        }
    }
    let content: u64 = kept.iter().map(Piece::bytes).sum::<u64>() + exif.len() as u64;
    // A file that lost nothing stays as it is, with whatever its author announced.
    if content + 12 == scan.bytes && exif.is_empty() {
        return scan.keep(0..scan.bytes);
    }
    let size = u32::try_from(content + 4).map_err(|_| Fault::TooLong)?;
    let mut head = b"RIFF".to_vec();
    head.extend_from_slice(&size.to_le_bytes());
    head.extend_from_slice(b"WEBP");
    scan.add(head)?;
    for piece in kept {
        match (piece, flags) {
            (Piece::Of(range), Some((at, flags))) if range.contains(&at) => {
                scan.keep(range.start..at)?;
                scan.add(vec![flags])?;
                scan.keep(at + 1..range.end)?;
            }
            (Piece::Of(range), _) => scan.keep(range)?,
            (other, _) => scan.push(other)?,
        }
    }
    if exif.is_empty() { Ok(()) } else { scan.add(exif) }
}

/// Tells whether a colour profile of so many bytes, before which the reader stands, has the signature of one (ICC.1 §7.2.9).
fn has_signature<R: Read + Seek>(scan: &mut Scan<R>, length: u64) -> Result<bool, Fault> {
    Ok(scan.some(length.min(40))?.get(36..) == Some(b"acsp"))
}

/// Returns the parts of a frame of a picture that moves, which lies there: its place and time, and the chunks of its pixels (§2.7.1.5). Unknown chunks
/// may stand among them.
fn frame<R: Read + Seek>(scan: &mut Scan<R>, start: u64, end: u64) -> Result<Vec<Piece>, Fault> {
    let mut pixels = Vec::new();
    if start + 8 + FRAME_BYTES > end {
        return Ok(pixels);
    }
    scan.go_to(start + 8 + FRAME_BYTES)?;
    while scan.at + 8 <= end
        && let Some([kind @ .., a, b, c, d]) = scan.array::<8>()?
    {
        let at = scan.at - 8;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        // What does not fit could be anything.
        let chunk_end = scan.at + length + (length & 1);
        if chunk_end > end || pixels.len() >= super::PIECES_MAX {
            break;
        }
        if matches!(&kind, b"ALPH" | b"VP8 " | b"VP8L") {
            pixels.push(Piece::Of(at..chunk_end));
        }
        scan.go_to(chunk_end)?;
    }
    let bytes = FRAME_BYTES + pixels.iter().map(Piece::bytes).sum::<u64>();
    if start + 8 + bytes == end {
        return Ok(vec![Piece::Of(start..end)]);
    }
    let Ok(length) = u32::try_from(bytes) else { return Err(Fault::TooLong) };
    let head = [b"ANMF", length.to_le_bytes().as_slice()].concat();
    Ok([Piece::New(head), Piece::Of(start + 8..start + 8 + FRAME_BYTES)].into_iter().chain(pixels).collect())
}
