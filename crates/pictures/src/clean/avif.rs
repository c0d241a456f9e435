//! AVIF: the items that hold Exif and XMP are overwritten with zeros. All else refers to positions in the file, so nothing may move.

use std::{
    io::{Read, Seek},
    ops::Range,
};

use super::Scan;
use crate::Fault;

/// The largest `meta` box that is read.
const META_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The most bytes of metadata that are overwritten.
const ZEROS_MAX: u64 = 16 * 1024 * 1024;

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    let mut hidden = Vec::new();
    let mut boxes = 0;
    while let Some([a, b, c, d, kind @ ..]) = scan.array::<8>()? {
        let start = scan.at - 8;
        let end = match u32::from_be_bytes([a, b, c, d]) {
            0 => scan.bytes,
            1 => start.saturating_add(scan.array()?.map_or(u64::MAX, u64::from_be_bytes)),
            length => start + u64::from(length),
        };
        boxes += 1;
        if end <= start || boxes > super::PIECES_MAX {
            return Err(Fault::damaged("its boxes make no sense"));
        }
        if &kind == b"meta" {
            let (at, length) = (scan.at, end.min(scan.bytes).saturating_sub(scan.at));
            if length > META_BYTES_MAX {
                return Err(Fault::damaged("its description is too long"));
            }
            let meta = scan.some(length)?;
            hidden.extend(metadata(&meta, at));
        }
        scan.go_to(end)?;
    }
    hidden.retain(|range| range.start < range.end && range.end <= scan.bytes);
    hidden.sort_by_key(|range| range.start);
    let mut at = 0;
    for range in hidden {
        let range = range.start.max(at)..range.end;
        let length = range.end.saturating_sub(range.start);
        if length > ZEROS_MAX {
            return Err(Fault::damaged("its metadata is too long"));
        }
        if length > 0 {
            scan.keep(at..range.start)?;
            scan.add(vec![0; usize::try_from(length).expect("it is bounded")])?;
            at = range.end;
        }
    }
    scan.keep(at..scan.bytes)
}

/// Returns where the Exif and XMP items of a `meta` box lie in the file. `at` is where the content of the box lies.
fn metadata(meta: &[u8], at: u64) -> Vec<Range<u64>> {
    let Some(content) = meta.get(4..) else { return Vec::new() };
    let at = at + 4;
    let Some(items) = child(content, b"iinf").map(|range| described(&content[range])) else { return Vec::new() };
    let Some(places) = child(content, b"iloc").map(|range| &content[range]) else { return Vec::new() };
    let inside = child(content, b"idat").map(|range| at + range.start as u64);
    located(places, &items, inside).unwrap_or_default()
}

/// Lists the numbers of the items that describe the picture, of an `iinf` box.
fn described(iinf: &[u8]) -> Vec<u32> {
    let entries = if iinf.first() == Some(&0) { 6 } else { 8 };
    let mut rest = iinf.get(entries..).unwrap_or_default();
    let mut items = Vec::new();
    while let Some((kind, content, after)) = first_box(rest) {
        rest = after;
        // infe (§8.11.6): version 2 has numbers of two bytes, version 3 of four.
        let wide = match content.first() {
            Some(2) => 2,
            Some(3) => 4,
            _ => continue,
        };
        let number = content.get(4..4 + wide).map(number);
        let of = content.get(4 + wide + 2..4 + wide + 6);
        if &kind == b"infe" && matches!(of, Some(b"Exif" | b"mime")) {
            items.extend(number.and_then(|number| u32::try_from(number).ok()));
        }
    }
    items
}

/// Reads where `items` lie from an `iloc` box (§8.11.3).
fn located(iloc: &[u8], items: &[u32], inside: Option<u64>) -> Option<Vec<Range<u64>>> {
    let version = *iloc.first()?;
    let (sizes, more) = (*iloc.get(4)?, *iloc.get(5)?);
    let (offset_size, length_size, base_size) = (sizes >> 4, sizes & 15, more >> 4);
    let index_size = if version == 0 { 0 } else { more & 15 };
    let mut rest = iloc.get(6..)?;
    let mut take = |size: u8| -> Option<u64> {
        let (taken, after) = rest.split_at_checked(size.into())?;
        rest = after;
        Some(number(taken))
    };
    let wide = if version < 2 { 2 } else { 4 };
    let count = take(wide)?;
    let mut places = Vec::new();
    for _ in 0..count {
        let item = u32::try_from(take(wide)?).ok()?;
        let method = if version == 0 { 0 } else { take(2)? & 15 };
        take(2)?;
        let base = take(base_size)?;
        for _ in 0..take(2)? {
            take(index_size)?;
            let (offset, length) = (take(offset_size)?, take(length_size)?);
            let start = match method {
                0 => Some(0),
                1 => inside,
                _ => None,
            };
            if let Some(start) = start.filter(|_| items.contains(&item)) {
                let start = start.checked_add(base)?.checked_add(offset)?;
                places.push(start..start.checked_add(length)?);
            }
            if places.len() > 1024 {
                return None;
            }
        }
    }
    Some(places)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn first_box(content: &[u8]) -> Option<([u8; 4], &[u8], &[u8])> {
    let length = usize::try_from(number(content.get(..4)?)).ok()?;
    let kind = <[u8; 4]>::try_from(content.get(4..8)?).ok()?;
    let (one, rest) = content.split_at_checked(length)?;
    Some((kind, one.get(8..)?, rest))
}

/// Returns where the content of a box lies in `content`.
fn child(content: &[u8], kind: &[u8; 4]) -> Option<Range<usize>> {
    let mut at = 0;
    while let Some((other, inner, _)) = first_box(&content[at..]) {
        if &other == kind {
            return Some(at + 8..at + 8 + inner.len());
        }
        at += 8 + inner.len();
    }
    None
}
