//! Boxes, of which AVIF, HEIC and JPEG XL consist (ISO/IEC 14496-12 §4.2).

use std::{
    io::{Read, Seek},
    ops::Range,
};

use super::{PIECES_MAX, Scan};
use crate::Fault;

/// A box at the top of a file.
pub(super) struct FileBox {
    pub(super) kind: [u8; 4],
    pub(super) start: u64,
    /// The range in which its content lies. In a file that was cut off, this ends behind the end of the file.
    pub(super) content: Range<u64>,
}

/// A box within another one.
pub(super) struct Child {
    pub(super) kind: [u8; 4],
    /// The place where the box begins in the content of its parent.
    pub(super) start: usize,
    /// The range in which the content of the box lies in the content of its parent.
    pub(super) content: Range<usize>,
}

impl<R: Read + Seek> Scan<R> {
    /// Reads the head of the next box. Returns `None` if too little is left for one.
    pub(super) fn file_box(&mut self) -> Result<Option<FileBox>, Fault> {
        let start = self.at;
        let Some([a, b, c, d, kind @ ..]) = self.array::<8>()? else { return Ok(None) };
        let end = match u32::from_be_bytes([a, b, c, d]) {
            // It goes on to the end of the file.
            0 => self.bytes,
            1 => start.saturating_add(self.array()?.map_or(u64::MAX, u64::from_be_bytes)),
            length => start + u64::from(length),
        };
        if end < self.at {
            return Err(Fault::damaged("a box is shorter than its own head"));
        }
        Ok(Some(FileBox { kind, start, content: self.at..end }))
    }
}

/// Lists the boxes in the content of another one. Returns `None` if they do not fill it: nobody knows what the rest is.
pub(super) fn children(content: &[u8]) -> Option<Vec<Child>> {
    let mut children = Vec::new();
    let mut start = 0;
    while start < content.len() {
        let head = &content[start..];
        let kind = *head.get(4..)?.first_chunk()?;
        // Only boxes at the top of a file may have the length 0.
        let (length, head_bytes) = match number(head.get(..4)?) {
            1 => (number(head.get(8..16)?), 16),
            length => (length, 8),
        };
        let length = usize::try_from(length).ok().filter(|length| (head_bytes..=head.len()).contains(length))?;
        children.push(Child { kind, start, content: start + head_bytes..start + length });
        if children.len() > PIECES_MAX {
            return None;
        }
        start += length;
    }
    Some(children)
}

/// Returns the number that up to eight bytes are.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_to_fill_their_parent() {
        let listed = |content: &[u8]| {
            let children = children(content)?;
            Some(children.into_iter().map(|child| (child.kind, child.start, child.content)).collect::<Vec<_>>())
        };
        assert_eq!(listed(b""), Some(Vec::new()));
        assert_eq!(listed(b"\0\0\0\x09aaaax\0\0\0\x08bbbb"), Some(vec![(*b"aaaa", 0, 8..9), (*b"bbbb", 9, 17..17)]));
        // ISO/IEC 14496-12 §4.2.2: a length of 1 means that 64 bits follow the kind.
        assert_eq!(listed(b"\0\0\0\x01aaaa\0\0\0\0\0\0\0\x12xy"), Some(vec![(*b"aaaa", 0, 16..18)]));
        for content in [
            &b"\0\0\0\x09aaaa"[..],
            b"\0\0\0\x08aaaax",
            b"\0\0\0\x08aaaa\0\0\0\x07bbbb",
            b"\0\0\0\0aaaa",
            b"\0\0\0\x01aaaa\0\0\0\0\0\0\0\x0f",
        ] {
            assert_eq!(listed(content), None, "{content:?}");
        }
    }
}
