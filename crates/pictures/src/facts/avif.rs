//! AVIF (ISO/IEC 23008-12): the properties of its primary item.

use std::io::{Read, Seek};

use super::{Facts, Format, head::Head};
use crate::fault::Fault;

/// The largest `meta` box that is read. Real ones have a few hundred bytes, and a colour profile.
const META_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    let mut animated = false;
    loop {
        head.piece()?;
        let start = head.at();
        let (length, kind) = (u64::from(head.be32()?), head.array::<4>()?);
        let end = match length {
            0 => head.bytes(),
            1 => start.saturating_add(u64::from_be_bytes(head.array()?)),
            length => start + length,
        };
        if end < head.at() {
            return Err(Fault::damaged("a box is shorter than its own head"));
        }
        match &kind {
            b"ftyp" => animated = matches!(&head.array::<4>()?, b"avis" | b"msf1"),
            b"meta" if end - head.at() <= META_BYTES_MAX => {
                let meta = head.block(end - head.at())?;
                let meta = meta.get(4..).ok_or(Fault::Truncated)?;
                let mut facts = primary(meta).ok_or(Fault::NoSize)?;
                facts.animated = animated;
                return Ok(facts);
            }
            _ => {}
        }
        let at = head.at();
        head.skip(end.saturating_sub(at))?;
    }
}

/// Reads size and rotation of the primary item from the content of a `meta` box.
fn primary(meta: &[u8]) -> Option<Facts> {
    let id = match find(meta, b"pitm")? {
        [0, _, _, _, id @ ..] => u32::from(be16(id)?),
        [_, _, _, _, id @ ..] => be32(id)?,
        _ => return None,
    };
    let properties = find(meta, b"iprp")?;
    let all: Vec<_> = boxes(find(properties, b"ipco")?).collect();
    let mut facts = Facts::plain(Format::Avif, 0, 0);
    // Where the association cannot be read, the first size is that of the picture in all files that were seen.
    let of_item = associations(find(properties, b"ipma")?, id).unwrap_or_else(|| (1..=all.len()).collect());
    let mut turns = 0;
    for (kind, content) in of_item.iter().filter_map(|index| all.get(index.checked_sub(1)?)) {
        match kind {
            b"ispe" if facts.width == 0 => (facts.width, facts.height) = (be32(content.get(4..)?)?, be32(content.get(8..)?)?),
            b"irot" => turns = content.first()? & 3,
            b"auxC" => {}
            _ => {}
        }
    }
    if turns % 2 == 1 {
        (facts.width, facts.height) = (facts.height, facts.width);
    }
    // Transparency is another item; nothing depends on it, as no variants are made.
    facts.alpha = true;
    Some(facts)
}

/// Returns the properties of item `id`, counted from 1.
fn associations(ipma: &[u8], id: u32) -> Option<Vec<usize>> {
    let (version, wide) = (*ipma.first()?, ipma.get(3)? & 1 == 1);
    let count = be32(ipma.get(4..)?)?;
    let mut rest = ipma.get(8..)?;
    for _ in 0..count {
        let item = if version == 0 { u32::from(be16(rest)?) } else { be32(rest)? };
        rest = rest.get(if version == 0 { 2 } else { 4 }..)?;
        let (&properties, after) = rest.split_first()?;
        let length = usize::from(properties) * if wide { 2 } else { 1 };
        let (mine, after) = after.split_at_checked(length)?;
        if item == id {
            let indexes = if wide {
                mine.chunks_exact(2).map(|pair| usize::from(u16::from_be_bytes([pair[0], pair[1]]) & 0x7fff)).collect()
            } else {
                mine.iter().map(|&byte| usize::from(byte & 0x7f)).collect()
            };
            return Some(indexes);
        }
        rest = after;
    }
    None
}

/// Lists the boxes in `content`, up to one that is not whole.
fn boxes(mut content: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::try_from(be32(content)?).ok()?;
        let kind = <[u8; 4]>::try_from(content.get(4..8)?).ok()?;
        let (one, rest) = content.split_at_checked(length)?;
        content = rest;
        Some((kind, one.get(8..)?))
    })
}

fn find<'c>(content: &'c [u8], kind: &[u8; 4]) -> Option<&'c [u8]> {
    boxes(content).find(|(other, _)| other == kind).map(|(_, content)| content)
}

fn be16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

fn be32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
