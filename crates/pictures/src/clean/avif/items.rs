//! The items of a picture: what its `meta` box says of them (ISO/IEC 14496-12 §8.11, ISO/IEC 23008-12).

use std::{collections::HashMap, ops::Range};

use super::{
    super::boxes::{Child, children, number},
    Parts,
    coded::Run,
    place,
};

/// The items that are parts of a picture (ISO/IEC 23008-12 §6 and annexes, AVIF §2), and have no room for metadata. A JPEG within has.
const PICTURES: [&[u8; 4]; 10] = [b"av01", b"grid", b"iovl", b"iden", b"tmap", b"hvc1", b"hev1", b"vvc1", b"avc1", b"unci"];

/// The items that are made of others, and need no bytes of their own.
const DERIVED: [&[u8; 4]; 4] = [b"grid", b"iovl", b"iden", b"tmap"];

/// The properties that say how a picture is decoded and shown. Others say what it is called, when it was taken, and how the camera was set.
const PROPERTIES: [&[u8; 4]; 34] = [
    b"ispe", b"pixi", b"colr", b"pasp", b"clap", b"irot", b"imir", b"rloc", b"iscl", b"auxC", b"lsel", b"subs", b"rref", b"av1C", b"a1op",
    b"a1lx", b"hvcC", b"lhvC", b"oinf", b"tols", b"vvcC", b"avcC", b"uncC", b"cmpd", b"cpal", b"cpat", b"splz", b"icef", b"cmpC", b"clli",
    b"mdcv", b"cclv", b"amve", b"ndwt",
];

/// The groups of items that say which of them is shown: alternatives, and the two of a stereo picture.
const GROUPS: [&[u8; 4]; 3] = [b"altr", b"ster", b"eqiv"];

/// The most extents of items that are read.
const EXTENTS_MAX: usize = 65_536;

/// The items of a picture, in places of the file.
#[derive(Default)]
pub(super) struct Items {
    pub(super) pixels: Vec<Range<u64>>,
    /// The pixels that are coded as AV1.
    pub(super) coded: Vec<Run>,
    pub(super) exif: Vec<Range<u64>>,
    /// Items that are neither.
    pub(super) hidden: Vec<Range<u64>>,
    kinds: HashMap<u64, [u8; 4]>,
    primary: Option<u64>,
    /// The number of bytes of the primary item.
    primary_bytes: u64,
}

impl Items {
    /// Reads the content of a `meta` box, which lies at `at`, and tells `parts` what to overwrite in it. Returns `None` if it cannot be said where
    /// all items lie.
    pub(super) fn read(content: &[u8], at: u64, parts: &mut Parts) -> Option<Self> {
        let (content, at) = (content.get(4..)?, at + 4);
        let mut items = Self::default();
        let (mut places, mut inside, mut has_kinds) = (None, None, false);
        for child in children(content)? {
            let inner = &content[child.content.clone()];
            let start = at + child.content.start as u64;
            match &child.kind {
                // The name of the program stands behind the kind. What stands around that is zero.
                b"hdlr" => parts.zeros.extend([start + 4..start + 8, start + 12..start + inner.len() as u64]),
                b"iref" => {}
                b"pitm" => items.primary = Some(number(inner.get(4..).filter(|id| matches!(id.len(), 2 | 4))?)),
                b"iinf" if !std::mem::replace(&mut has_kinds, true) => items.read_kinds(inner, start, parts)?,
                b"iloc" if places.is_none() => places = Some(inner),
                b"idat" if inside.is_none() => inside = Some(place(at, &child.content)),
                // Two of them contradict each other.
                b"iinf" | b"iloc" | b"idat" => return None,
                b"iprp" => properties(inner, start, parts)?,
                b"grpl" => listed_boxes(inner, start, &GROUPS, parts)?,
                _ => parts.free_child(at, &child),
            }
        }
        parts.contents.extend(inside.clone());
        if !has_kinds {
            return None;
        }
        items.read_places(places?, inside.as_ref())?;
        Some(items)
    }

    /// Tells whether the picture is of a kind that is overwritten.
    pub(super) fn has_other_picture(&self) -> bool {
        self.primary.is_some_and(|primary| !self.is_picture(primary))
    }

    /// Tells whether it is not known where the pixels of the picture are.
    pub(super) fn has_no_pixels(&self) -> bool {
        let kind = self.primary.and_then(|primary| self.kinds.get(&primary));
        kind.is_some_and(|kind| !DERIVED.contains(&kind)) && self.primary_bytes == 0
    }

    fn is_picture(&self, item: u64) -> bool {
        self.kinds.get(&item).is_some_and(|kind| PICTURES.contains(&kind))
    }

    /// Reads the kinds of items from an `iinf` box (§8.11.6), and has their names overwritten.
    fn read_kinds(&mut self, iinf: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
        let head = if *iinf.first()? == 0 { 6 } else { 8 };
        let entries = iinf.get(head..)?;
        for child in children(entries)? {
            if &child.kind != b"infe" {
                parts.free_child(at + head as u64, &child);
                continue;
            }
            let entry = &entries[child.content.clone()];
            // Version 2 has numbers of two bytes, and version 3 of four. The older ones have no kinds.
            let (wide, names) = match *entry.first()? {
                2 => (2, 12),
                3 => (4, 14),
                _ => (2, 8),
            };
            let item = number(entry.get(4..4 + wide)?);
            if names > 8 {
                let kind = *entry.get(wide + 6..)?.first_chunk()?;
                // An item that is two things is none.
                if self.kinds.insert(item, kind).is_some() {
                    return None;
                }
            }
            let start = at + (head + child.content.start) as u64;
            parts.zeros.push(start + names..start + entry.len() as u64);
        }
        Some(())
    }

    /// Reads where items lie from an `iloc` box (§8.11.3). `inside` is where the content of the `idat` box lies.
    fn read_places(&mut self, iloc: &[u8], inside: Option<&Range<u64>>) -> Option<()> {
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
        let mut extents = 0;
        for _ in 0..take(wide)? {
            let item = take(wide)?;
            let method = if version == 0 { 0 } else { take(2)? & 15 };
            take(2)?;
            let base = take(base_size)?;
            let mut coded: Option<Run> = None;
            for _ in 0..take(2)? {
                extents += 1;
                if extents > EXTENTS_MAX {
                    return None;
                }
                take(index_size)?;
                let (offset, length) = (take(offset_size)?, take(length_size)?);
                // The standard takes that for the whole file, and decoders for nothing. exiftool writes it where it has removed an item.
                if length == 0 {
                    continue;
                }
                let start = match method {
                    0 => 0,
                    1 => inside?.start,
                    // It is a part of another item.
                    _ => return None,
                };
                let start = start.checked_add(base)?.checked_add(offset)?;
                let range = start..start.checked_add(length)?;
                if self.primary == Some(item) {
                    self.primary_bytes = self.primary_bytes.saturating_add(length);
                }
                if self.is_picture(item) {
                    match &mut coded {
                        Some(run) => run.extend(range.clone()),
                        None => coded = Some(Run::new(range.clone())),
                    }
                    self.pixels.push(range);
                } else if self.kinds.get(&item) == Some(b"Exif") {
                    self.exif.push(range);
                } else {
                    self.hidden.push(range);
                }
            }
            self.coded.extend(coded.filter(|_| self.kinds.get(&item) == Some(b"av01")));
        }
        Some(())
    }
}

/// Has everything in an `iprp` box overwritten but what says how pictures are shown, and which of them (ISO/IEC 23008-12 §9.3).
fn properties(iprp: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
    for child in children(iprp)? {
        match &child.kind {
            b"ipco" => {
                let (inner, start) = (&iprp[child.content.clone()], at + child.content.start as u64);
                listed_boxes(inner, start, &PROPERTIES, parts)?;
                parts.settings(inner, start)?;
            }
            b"ipma" => {}
            _ => parts.free_child(at, &child),
        }
    }
    Some(())
}

/// Has the boxes in `content` overwritten that are not `kept`. They are counted, so each stays a box.
fn listed_boxes(content: &[u8], at: u64, kept: &[&[u8; 4]], parts: &mut Parts) -> Option<()> {
    children(content)?.iter().filter(|child: &&Child| !kept.contains(&&child.kind)).for_each(|child| parts.free_child(at, child));
    Some(())
}
