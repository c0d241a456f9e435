//! JPEG: the segments of the picture are kept, and those that say how its pixels are meant. All others go, and so does what follows the picture:
//! phones hide films and second pictures there.

mod coded;

use std::{
    io::{Read, Seek},
    ops::Range,
};

use super::{Scan, exif_of};
use crate::{
    Fault,
    facts::{exif_orientation, is_frame},
};
use coded::{End, Tables};

/// Plans the copy. Returns whether the picture has its end.
pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<bool, Fault> {
    let (mut orientation, mut has_frame, mut has_end) = (None, false, false);
    let (mut tables, mut last) = (Tables::default(), None);
    scan.go_to(2)?;
    scan.keep(0..2)?;
    while let Some((start, marker)) = marker(scan)? {
        match marker {
            // Markers without a segment.
            0x01 | 0xd0..=0xd8 => scan.keep(start..scan.at)?,
            0xd9 => {
                scan.keep(start..scan.at)?;
                has_end = true;
                break;
            }
            _ => {
                let Some(length) = scan.array()?.map(u16::from_be_bytes) else { break };
                let end = scan.at + u64::from(length).saturating_sub(2);
                if marker == 0xda && !scan.begin_pixels() {
                    return Ok(true);
                }
                // How many lines there are, and how far restarts are apart, are two bytes.
                if is_of_picture(marker) && (length == 4 || !matches!(marker, 0xdc | 0xdd)) {
                    has_frame |= is_frame(marker);
                    let content = scan.some(end - scan.at)?;
                    tables.read(marker, &content);
                    if marker == 0xda {
                        last = Some(Coded { start, content, tables: tables.clone(), pixels: end..end });
                    }
                    scan.keep(start..end)?;
                } else {
                    let content = scan.some(end - scan.at)?;
                    // What says how to turn the picture stands before it. Browsers take the first that does.
                    if marker == 0xe1 && !has_frame {
                        orientation = orientation.or_else(|| content.strip_prefix(b"Exif\0\0").and_then(exif_orientation));
                    }
                    let segment = match marker {
                        0xe0 => jfif(&content),
                        0xee => adobe(&content),
                        _ => None,
                    };
                    match segment {
                        Some(segment) if segment[4..] != content => scan.add(segment)?,
                        Some(_) => scan.keep(start..end)?,
                        None if marker == 0xe2 && is_profile(&content) => scan.keep(start..end)?,
                        None => {}
                    }
                }
                scan.go_to(end)?;
                if marker == 0xda {
                    let pixels = entropy_coded(scan)?;
                    last = last.map(|last| Coded { pixels, ..last });
                }
            }
        }
    }
    if let Some(last) = last.filter(|_| !has_end) {
        last.end(scan)?;
    }
    if let Some(orientation) = orientation.filter(|&orientation| orientation > 1) {
        let exif = exif_of(orientation);
        let length = u16::try_from(2 + 6 + exif.len()).expect("it has 34 bytes");
        let mut segment = vec![0xff, 0xe1];
        segment.extend_from_slice(&length.to_be_bytes());
        segment.extend_from_slice(b"Exif\0\0");
        segment.extend_from_slice(&exif);
        // Behind the mark of the beginning, which may be one piece with what follows it.
        super::split_first(&mut scan.cleaned, 2);
        scan.put_at(1, segment);
    }
    Ok(has_end)
}

/// Tells whether a segment with this marker is a part of the picture (ITU-T T.81, table B.1): frames, tables, scans and their lengths.
const fn is_of_picture(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xc7 | 0xc9..=0xcf | 0xda..=0xdd)
}

/// Returns a JFIF segment with the density of the pixels (JFIF 1.02): a small picture may follow, which shows what was cut off since.
fn jfif(content: &[u8]) -> Option<Vec<u8>> {
    let density = content.strip_prefix(b"JFIF\0")?.get(..7)?;
    Some([b"\xff\xe0\0\x10JFIF\0", density, b"\0\0"].concat())
}

/// Returns an Adobe segment, which says what the colours are: nothing may follow.
fn adobe(content: &[u8]) -> Option<Vec<u8>> {
    let fields = content.strip_prefix(b"Adobe")?.get(..7)?;
    Some([b"\xff\xee\0\x0eAdobe", fields].concat())
}

/// Tells whether a segment holds a part of a colour profile (ICC.1 §B.4). The first has the profile's signature.
fn is_profile(content: &[u8]) -> bool {
    match content.strip_prefix(b"ICC_PROFILE\0") {
        Some([1, _, profile @ ..]) => profile.get(36..40) == Some(b"acsp"),
        Some([number, _, ..]) => *number > 1,
        _ => false,
    }
}

/// Passes over what stands before the next marker, and returns where that begins and what it is.
fn marker<R: Read + Seek>(scan: &mut Scan<R>) -> Result<Option<(u64, u8)>, Fault> {
    loop {
        let Some(mut byte) = scan.byte()? else { return Ok(None) };
        if byte != 0xff {
            continue;
        }
        while byte == 0xff {
            let Some(next) = scan.byte()? else { return Ok(None) };
            byte = next;
        }
        if byte != 0 {
            return Ok(Some((scan.at - 2, byte)));
        }
    }
}

/// A scan whose picture may have no end.
struct Coded {
    start: u64,
    content: Vec<u8>,
    tables: Tables,
    pixels: Range<u64>,
}

impl Coded {
    /// Ends the copy with this scan, which is the last one, where its pixels end. What follows could be anything, and no mark says where it begins. Where
    /// that cannot be told, the scan is left out: the picture is then what those before it say.
    fn end<R: Read + Seek>(self, scan: &mut Scan<R>) -> Result<(), Fault> {
        scan.go_to(self.pixels.start)?;
        let end = match self.tables.end(&self.content, scan)? {
            End::Missing => return Ok(()),
            End::At(end) if end >= self.pixels.end => return Ok(()),
            End::At(end) => end,
            End::Unknown => self.start,
        };
        scan.cut(end);
        scan.add(vec![0xff, 0xd9])
    }
}

/// Takes over coded pixels, up to the next marker that ends them (§B.1.1.5). Returns where they lie.
fn entropy_coded<R: Read + Seek>(scan: &mut Scan<R>) -> Result<Range<u64>, Fault> {
    let start = scan.at;
    let mut was_mark = false;
    let end = loop {
        use std::io::BufRead as _;
        let buffer = scan.file.fill_buf()?;
        if buffer.is_empty() {
            break scan.at;
        }
        let mut found = None;
        let mut at = 0;
        while at < buffer.len() {
            if was_mark {
                match buffer[at] {
                    0xff => {}
                    0x00 | 0xd0..=0xd7 => was_mark = false,
                    _ => {
                        found = Some(at);
                        break;
                    }
                }
                at += 1;
                continue;
            }
            match buffer[at..].iter().position(|&byte| byte == 0xff) {
                Some(offset) => (was_mark, at) = (true, at + offset + 1),
                None => at = buffer.len(),
            }
        }
        let passed = found.unwrap_or(buffer.len());
        scan.file.consume(passed);
        scan.at += passed as u64;
        if found.is_some() {
            break scan.at - 1;
        }
    };
    scan.keep(start..end)?;
    scan.go_to(end)?;
    Ok(start..end)
}
