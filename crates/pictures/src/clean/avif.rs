//! AVIF, and what else consists of such boxes. Positions in the file must still hold in the copy, so nothing is taken out: what is not known to be
//! part of the picture is overwritten with zeros, and with padding within coded pixels.
//!
//! Everything that is kept is listed: boxes, kinds of items, their properties, and of the bytes of the content those that belong to a picture.

mod coded;
mod film;
mod items;

use std::{
    collections::BTreeMap,
    io::{Read, Seek},
    ops::Range,
};

use super::{
    Cleaned, PIECES_MAX, Scan,
    boxes::{Child, children},
    exif_of,
};
use crate::Fault;
use coded::Run;
use items::Items;

/// The largest `meta` or `moov` box that is read.
const DESCRIPTION_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The name of boxes that decoders pass over (ISO/IEC 14496-12 §8.1.2).
const FREE: &[u8; 4] = b"free";

pub(super) fn clean<R: Read + Seek>(scan: &mut Scan<R>) -> Result<(), Fault> {
    let mut parts = Parts::default();
    let (mut boxes, mut has_type, mut has_items, mut has_film) = (0, false, false, false);
    while let Some(found) = scan.file_box()? {
        boxes += 1;
        if boxes > PIECES_MAX {
            return Err(Fault::damaged("it has too many parts"));
        }
        let content = found.content.clone();
        match &found.kind {
            b"ftyp" if !has_type => has_type = true,
            b"meta" if !has_items => {
                has_items = true;
                parts.items(&description(scan, &content)?, content.start)?;
            }
            b"moov" if !has_film => {
                has_film = true;
                let read = description(scan, &content)?;
                film::read(&read, content.start, &mut parts).ok_or_else(unreadable)?;
            }
            b"mdat" => parts.contents.push(content.clone()),
            // Which of their bytes are pixels, only the parts themselves say.
            b"moof" => return Err(Fault::damaged("it is a film in fragments")),
            _ => parts.free(found.start, content.clone()),
        }
        scan.go_to(content.end)?;
    }
    if !has_items && !has_film {
        // Pixels may stand before what says which bytes are pixels.
        return Err(Fault::Truncated);
    }
    // Too little for a box is part of none.
    parts.zeros.push(scan.at..scan.bytes);
    let runs = coded::ordered(std::mem::take(&mut parts.runs), &merged(parts.hidden.clone()));
    let runs = runs.ok_or_else(|| Fault::damaged("its parts overlap"))?;
    parts.write(scan)?;
    if !scan.begin_pixels() {
        return Ok(());
    }
    for run in runs {
        coded::clean(&run, scan, &mut parts)?;
    }
    scan.cleaned = Cleaned::default();
    parts.write(scan)
}

/// Reads the content of a box that describes the picture.
fn description<R: Read + Seek>(scan: &mut Scan<R>, content: &Range<u64>) -> Result<Vec<u8>, Fault> {
    let length = content.end - content.start;
    if length > DESCRIPTION_BYTES_MAX {
        return Err(Fault::damaged("its description is too long"));
    }
    let read = scan.some(length)?;
    if read.len() as u64 == length { Ok(read) } else { Err(Fault::Truncated) }
}

fn unreadable() -> Fault {
    Fault::damaged("its description cannot be read")
}

/// The bytes of a file by their purpose, as far as they were read.
#[derive(Clone, Default)]
struct Parts {
    /// The bytes that are overwritten with zeros.
    zeros: Vec<Range<u64>>,
    /// The bytes that are written into the zeros, by the place where they begin.
    patches: BTreeMap<u64, Vec<u8>>,
    /// The ranges in which the pixels of pictures lie.
    pixels: Vec<Range<u64>>,
    /// The runs in which coded pixels lie, and what says how they are coded.
    runs: Vec<Run>,
    /// The ranges in which items that are not pictures lie.
    hidden: Vec<Range<u64>>,
    /// The ranges in which pixels may lie: the contents of the boxes `mdat` and `idat`.
    contents: Vec<Range<u64>>,
}

impl Parts {
    /// Makes a box one that decoders pass over, with nothing in it.
    fn free(&mut self, start: u64, content: Range<u64>) {
        self.zeros.extend([start + 4..start + 8, content]);
        self.patches.insert(start + 4, FREE.to_vec());
    }

    /// Makes such a box of the child of a box whose content lies at `at` in the file.
    fn free_child(&mut self, at: u64, child: &Child) {
        self.free(at + child.start as u64, place(at, &child.content));
    }

    /// Takes note of what the boxes in a content, which lies at `at`, say of how pixels are coded. That is coded as pixels are, behind four bytes (AV1 in ISO
    /// Base Media File Format, §2.3.3).
    fn settings(&mut self, content: &[u8], at: u64) -> Option<()> {
        let coded = children(content)?.into_iter().filter(|child| &child.kind == b"av1C");
        self.runs.extend(coded.map(|child| place(at, &child.content)).map(|place| Run::new((place.start + 4).min(place.end)..place.end)));
        Some(())
    }

    /// Takes note of the items of a `meta` box whose content lies at `at`.
    fn items(&mut self, content: &[u8], at: u64) -> Result<(), Fault> {
        let items = Items::read(content, at, self).ok_or_else(unreadable)?;
        if items.has_other_picture() {
            return Err(Fault::damaged("its picture is of a kind that may have metadata of its own"));
        }
        if items.has_no_pixels() {
            return Err(Fault::damaged("its description does not say where its pixels are"));
        }
        for range in items.exif {
            // Some decoders refuse a picture whose Exif data does not begin as it should (ISO/IEC 23008-12 §A.2.1).
            let nothing = [vec![0; 4], exif_of(1)].concat();
            let length = nothing.len().min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
            self.patches.insert(range.start, nothing[..length].to_vec());
            self.hidden.push(range);
        }
        self.hidden.extend(items.hidden);
        self.pixels.extend(items.pixels);
        self.runs.extend(items.coded);
        Ok(())
    }

    /// Plans the copy.
    fn write<R: Read + Seek>(&self, scan: &mut Scan<R>) -> Result<(), Fault> {
        let Self { mut zeros, patches, pixels, hidden, mut contents, .. } = self.clone();
        contents.sort_by_key(|content| content.start);
        let is_in_content = |range: &Range<u64>| {
            let next = contents.partition_point(|content| content.start <= range.start);
            next.checked_sub(1).is_some_and(|index| range.end <= contents[index].end)
        };
        let (pixels, hidden) = (merged(pixels), merged(hidden));
        // Anywhere else, zeros would change what the boxes are, and pixels could be anything.
        if !pixels.iter().chain(&hidden).all(is_in_content) {
            return Err(Fault::damaged("its description points out of its content"));
        }
        let mut at = 0;
        for content in contents {
            let mut start = content.start;
            while let Some(range) = pixels.get(at).filter(|range| range.start < content.end) {
                zeros.push(start..range.start);
                start = range.end;
                at += 1;
            }
            zeros.push(start..content.end);
        }
        zeros.extend(hidden);
        let mut at = 0;
        for range in merged(zeros) {
            let range = range.start.min(scan.bytes)..range.end.min(scan.bytes);
            scan.keep(at..range.start)?;
            at = range.start;
            for (&start, bytes) in patches.range(range.clone()) {
                let length = usize::try_from(range.end - start).unwrap_or(usize::MAX).min(bytes.len());
                scan.zeros(start.saturating_sub(at))?;
                scan.add(bytes[..length].to_vec())?;
                at = start + length as u64;
            }
            scan.zeros(range.end - at)?;
            at = range.end;
        }
        scan.keep(at..scan.bytes)
    }
}

/// Orders ranges and joins those that touch each other.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged
}

/// Returns where in the file a part of a content lies that begins at `at`.
fn place(at: u64, part: &Range<usize>) -> Range<u64> {
    at + part.start as u64..at + part.end as u64
}
