//! Icons and cursors (ICO, CUR): some pictures with a directory. Those that are a PNG are cleaned as one.

use std::io::{Cursor, Read, Seek};

use super::Scan;
use crate::Fault;

/// The largest file of icons that is read.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The bytes of the head, and of an entry of the directory.
const HEAD: usize = 6;
const ENTRY: usize = 16;

/// Tells whether a file may be an icon or a cursor, by its beginning.
pub(super) fn is_icon(start: &[u8]) -> bool {
    matches!(start, [0, 0, 1 | 2, 0, ..])
}

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    if scan.bytes > BYTES_MAX {
        return Err(Fault::TooLong);
    }
    let content = scan.some(scan.bytes)?;
    // Other kinds of files begin so, too.
    let pictures = pictures(&content).ok_or(Fault::Unknown)?;
    let mut directory = content[..HEAD + ENTRY * pictures.len()].to_vec();
    let mut copies = Vec::new();
    for (picture, entry) in pictures.iter().zip(directory[HEAD..].chunks_exact_mut(ENTRY)) {
        let offset = content_begin(pictures.len()) + copies.len();
        let copy = if picture.starts_with(b"\x89PNG") { super::clean(Cursor::new(picture))?.of(picture)? } else { picture.to_vec() };
        entry[8..12].copy_from_slice(&number(copy.len())?);
        entry[12..].copy_from_slice(&number(offset)?);
        copies.extend(copy);
    }
    directory.extend(copies);
    // A file that lost nothing stays as it is.
    if directory == content { scan.keep(0..scan.bytes) } else { scan.add(directory) }
}

/// Lists the pictures of a file. Returns `None` if it is not an icon.
fn pictures(content: &[u8]) -> Option<Vec<&[u8]>> {
    let count = usize::from(u16::from_le_bytes(content.get(4..HEAD)?.try_into().ok()?));
    let directory = content.get(HEAD..content_begin(count)).filter(|directory| !directory.is_empty())?;
    let picture = |entry: &[u8]| {
        let number = |at: usize| Some(u32::from_le_bytes(entry.get(at..at + 4)?.try_into().ok()?) as usize);
        let (bytes, offset) = (number(8)?, number(12)?);
        (offset >= content_begin(count)).then(|| content.get(offset..offset.checked_add(bytes)?)).flatten()
    };
    directory.chunks_exact(ENTRY).map(picture).collect()
}

const fn content_begin(count: usize) -> usize {
    HEAD + ENTRY * count
}

fn number(value: usize) -> Result<[u8; 4], Fault> {
    u32::try_from(value).map(u32::to_le_bytes).map_err(|_| Fault::TooLong)
}
