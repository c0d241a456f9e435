//! AVIF, and what else consists of such boxes: all items but the pictures are overwritten, and so are the boxes that show nothing. What is left
//! refers to positions in the file, so nothing may move.

use std::{
    collections::{HashMap, HashSet},
    io::{Read, Seek},
    ops::Range,
};

use super::{Scan, exif_of};
use crate::Fault;

/// The largest `meta` box that is read.
const META_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The most bytes of metadata that are overwritten.
const ZEROS_MAX: u64 = 16 * 1024 * 1024;

/// The boxes at the top of a file that a picture needs. All others, such as those with a history of changes, are overwritten.
const KEPT: [&[u8; 4]; 8] = [b"ftyp", b"styp", b"meta", b"mdat", b"moov", b"moof", b"mfra", b"sidx"];

/// The items that are parts of a picture (ISO/IEC 23008-12 §6, AVIF §2, and what HEIC has). All others are overwritten.
const PICTURES: [&[u8; 4]; 12] =
    [b"av01", b"grid", b"iovl", b"iden", b"tmap", b"hvc1", b"hev1", b"vvc1", b"avc1", b"jpeg", b"j2k1", b"unci"];

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    let mut found = Found::default();
    let (mut boxes, mut described, mut is_whole) = (0, false, true);
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
        is_whole = end <= scan.bytes;
        let (at, length) = (scan.at, end.min(scan.bytes).saturating_sub(scan.at));
        if matches!(&kind, b"meta" | b"moov") {
            if length > META_BYTES_MAX {
                return Err(Fault::damaged("its description is too long"));
            }
            let content = scan.some(length)?;
            if &kind == b"meta" {
                described = true;
                found.meta(&content, at)?;
            } else {
                found.film(&content, at, false)?;
            }
        } else if &kind == b"mdat" {
            found.contents.push(scan.at..end);
        } else if !KEPT.contains(&&kind) {
            found.hidden.push(at..at + length);
        }
        scan.go_to(end)?;
    }
    // Pixels may stand before what says which bytes are pixels.
    if !described && !is_whole {
        return Err(Fault::Truncated);
    }
    let Found { mut hidden, items, exif, contents } = found;
    // Anywhere else, zeros would change what the boxes are.
    if items.iter().any(|item| !contents.iter().any(|content| content.start <= item.start && item.end <= content.end)) {
        return Err(Fault::damaged("its description points out of its content"));
    }
    hidden.extend(items);
    hidden.retain(|range| range.start < range.end && range.start < scan.bytes);
    hidden.sort_by_key(|range| range.start);
    let mut at = 0;
    for range in hidden {
        let range = range.start.max(at)..range.end.min(scan.bytes);
        let length = range.end.saturating_sub(range.start);
        if length > ZEROS_MAX {
            return Err(Fault::damaged("its metadata is too long"));
        }
        if length > 0 {
            scan.keep(at..range.start)?;
            let mut overwritten = vec![0; usize::try_from(length).expect("it is bounded")];
            if exif.contains(&range.start) {
                // Some decoders refuse a picture whose Exif data does not begin as it should (ISO/IEC 23008-12 §A.2.1).
                let nothing = [vec![0; 4], exif_of(1)].concat();
                let length = nothing.len().min(overwritten.len());
                overwritten[..length].copy_from_slice(&nothing[..length]);
            }
            scan.add(overwritten)?;
            at = range.end;
        }
    }
    scan.keep(at..scan.bytes)
}

/// What was found in a file.
#[derive(Default)]
struct Found {
    /// What is overwritten in any case.
    hidden: Vec<Range<u64>>,
    /// The items that are overwritten, which have to lie in `contents`.
    items: Vec<Range<u64>>,
    /// Where those of the items begin that are Exif data.
    exif: HashSet<u64>,
    /// Where items may lie.
    contents: Vec<Range<u64>>,
}

impl Found {
    /// Takes note of the items of a `meta` box. `at` is where its content lies in the file.
    fn meta(&mut self, content: &[u8], at: u64) -> Result<(), Fault> {
        let meta = Meta::read(content, at).ok_or_else(|| Fault::damaged("its description cannot be read"))?;
        self.items.extend(meta.hidden.places);
        self.exif.extend(meta.hidden.exif);
        self.contents.extend(meta.inside);
        Ok(())
    }

    /// Takes note of the boxes that describe a film, of the content of a `moov` box and of its tracks. `at` is where that lies in the file.
    fn film(&mut self, content: &[u8], at: u64, is_track: bool) -> Result<(), Fault> {
        for (kind, inner) in boxes(content) {
            let (start, end) = (at + inner.start as u64, at + inner.end as u64);
            let inner = &content[inner];
            match &kind {
                b"udta" | b"uuid" | b"free" | b"skip" => self.hidden.push(start..end),
                b"trak" if !is_track => self.film(inner, start, true)?,
                b"meta" if inner.get(4..).is_some_and(|inner| child(inner, b"iinf").is_some()) => self.meta(inner, start)?,
                // Words about the film. Which kind of words must stay readable.
                b"meta" => {
                    let words = boxes(inner.get(4..).unwrap_or_default()).filter(|(kind, _)| kind != b"hdlr");
                    self.hidden.extend(words.map(|(_, words)| start + 4 + words.start as u64..start + 4 + words.end as u64));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a `meta` box tells of items, in places of the file.
struct Meta {
    hidden: Hidden,
    /// The place of items within the box itself, its `idat` box.
    inside: Option<Range<u64>>,
}

/// The items that are no pictures.
#[derive(Default)]
struct Hidden {
    places: Vec<Range<u64>>,
    /// Where those of them begin that are Exif data.
    exif: HashSet<u64>,
}

/// Kinds of items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Picture,
    Exif,
}

impl Meta {
    /// Reads the content of the box, which lies at `at`. Returns `None` if it cannot be said where all items lie.
    fn read(content: &[u8], at: u64) -> Option<Self> {
        let (content, at) = (content.get(4..)?, at + 4);
        let kinds = kinds(&content[child(content, b"iinf")?]);
        let places = &content[child(content, b"iloc")?];
        let inside = child(content, b"idat").map(|range| at + range.start as u64..at + range.end as u64);
        Some(Self { hidden: located(places, &kinds, inside.as_ref())?, inside })
    }
}

/// Returns the kinds of items by their numbers, of an `iinf` box. What has none of them is something else.
fn kinds(iinf: &[u8]) -> HashMap<u32, Kind> {
    let entries = if iinf.first() == Some(&0) { 6 } else { 8 };
    let mut rest = iinf.get(entries..).unwrap_or_default();
    let mut items = HashMap::new();
    while let Some((kind, content, after)) = first_box(rest) {
        rest = after;
        // infe (§8.11.6): version 2 has numbers of two bytes, version 3 of four.
        let wide = match content.first() {
            Some(2) => 2,
            Some(3) => 4,
            _ => continue,
        };
        let number = content.get(4..4 + wide).and_then(|bytes| u32::try_from(number(bytes)).ok());
        let of = match content.get(4 + wide + 2..4 + wide + 6) {
            Some(b"Exif") => Kind::Exif,
            Some(of) if PICTURES.iter().any(|kept| kept.as_slice() == of) => Kind::Picture,
            Some(_) | None => continue,
        };
        if &kind == b"infe" {
            items.extend(number.map(|number| (number, of)));
        }
    }
    items
}

/// Reads where all items but pictures lie from an `iloc` box (§8.11.3). `inside` is where the content of the `idat` box lies. Returns `None` if that
/// cannot be said of each of them.
fn located(iloc: &[u8], kinds: &HashMap<u32, Kind>, inside: Option<&Range<u64>>) -> Option<Hidden> {
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
    let mut hidden = Hidden::default();
    for _ in 0..count {
        let item = u32::try_from(take(wide)?).ok()?;
        let method = if version == 0 { 0 } else { take(2)? & 15 };
        take(2)?;
        let base = take(base_size)?;
        for part in 0..take(2)? {
            take(index_size)?;
            let (offset, length) = (take(offset_size)?, take(length_size)?);
            let kind = kinds.get(&item);
            if kind == Some(&Kind::Picture) {
                continue;
            }
            let start = match method {
                0 => 0,
                1 => inside?.start,
                // A part of another item.
                _ => return None,
            };
            let start = start.checked_add(base)?.checked_add(offset)?;
            // Without a length, an item is all that there is.
            if length == 0 {
                return None;
            }
            hidden.places.push(start..start.checked_add(length)?);
            if part == 0 && kind == Some(&Kind::Exif) {
                hidden.exif.insert(start);
            }
            if hidden.places.len() > 1024 {
                return None;
            }
        }
    }
    Some(hidden)
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

/// Lists the boxes in `content`, with the places of what is in them, up to one that is not whole.
fn boxes(content: &[u8]) -> impl Iterator<Item = ([u8; 4], Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (kind, inner, _) = first_box(&content[at..])?;
        let place = at + 8..at + 8 + inner.len();
        at = place.end;
        Some((kind, place))
    })
}

/// Returns where the content of a box lies in `content`.
fn child(content: &[u8], kind: &[u8; 4]) -> Option<Range<usize>> {
    boxes(content).find(|(other, _)| other == kind).map(|(_, place)| place)
}
