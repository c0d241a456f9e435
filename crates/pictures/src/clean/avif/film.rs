//! The films of animated AVIF: what the `moov` box says of their tracks (ISO/IEC 14496-12 §8.2 to §8.7).

use std::ops::Range;

use super::{
    super::boxes::{Child, children, number},
    Parts,
    coded::Run,
    place,
};

/// The kinds of tracks that are kept, by what they show. Others say where the camera was, for example.
const HANDLERS: [&[u8; 4]; 3] = [b"pict", b"vide", b"auxv"];

/// The codings that the pixels of a track may have. Within those of other codings, cameras say when and where they were taken, and browsers
/// show none of them as a picture.
const CODINGS: [&[u8; 4]; 1] = [b"av01"];

/// The boxes in the description of a coding that say how it is decoded and shown.
const CODING_BOXES: [&[u8; 4]; 10] = [b"av1C", b"colr", b"pasp", b"clap", b"ccst", b"auxi", b"btrt", b"clli", b"mdcv", b"pixi"];

/// The tables of samples that are kept as they are.
const TABLES: [&[u8; 4]; 11] = [b"stts", b"ctts", b"cslg", b"stsc", b"stsz", b"stco", b"co64", b"stss", b"sgpd", b"sbgp", b"sdtp"];

/// The most samples of all tracks, of which each is looked at: two hours of pictures.
const SAMPLES_MAX: usize = 262_144;

/// The place where the boxes begin in the description of a coding, and where the name of the program stands (§12.1.3).
const CODING_BYTES: usize = 78;
const COMPRESSOR: Range<usize> = 42..74;

/// The length of the content of a `dinf` box that says that the samples are in this file.
const DINF_BYTES: usize = 28;

/// Reads the content of a `moov` box, which lies at `at`, and tells `parts` where pixels lie and what to overwrite. Returns `None` if that cannot be
/// said.
pub(super) fn read(moov: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
    for child in children(moov)? {
        let inner = &moov[child.content.clone()];
        let start = at + child.content.start as u64;
        match &child.kind {
            b"mvhd" => times(inner, start, parts)?,
            b"trak" if shows(inner)? => track(inner, start, parts)?,
            _ => parts.free_child(at, &child),
        }
    }
    Some(())
}

/// Has the times overwritten at which a film or a track was made and changed.
fn times(head: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
    let bytes = if *head.first()? == 0 { 8 } else { 16 };
    parts.zeros.push(at + 4..at + 4 + bytes);
    (head.len() as u64 >= 4 + bytes).then_some(())
}

/// Tells whether a track is a picture that moves. Returns `None` if its boxes cannot be read.
fn shows(trak: &[u8]) -> Option<bool> {
    let mut handlers = Vec::new();
    for media in children(trak)?.iter().filter(|child| &child.kind == b"mdia") {
        let media = &trak[media.content.clone()];
        handlers
            .extend(children(media)?.iter().filter(|child| &child.kind == b"hdlr").map(|child| media[child.content.clone()].get(8..12)));
    }
    Some(matches!(handlers[..], [Some(handler)] if HANDLERS.iter().any(|known| known.as_slice() == handler)))
}

fn track(content: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
    for child in children(content)? {
        let inner = &content[child.content.clone()];
        let start = at + child.content.start as u64;
        match &child.kind {
            b"tkhd" | b"mdhd" => times(inner, start, parts)?,
            b"mdia" | b"minf" => track(inner, start, parts)?,
            // The name of the program stands behind the kind. What stands around that is zero.
            b"hdlr" => parts.zeros.extend([start + 4..start + 8, start + 12..start + inner.len() as u64]),
            b"edts" | b"tref" | b"vmhd" => {}
            b"dinf" if inner.len() == DINF_BYTES => {}
            b"stbl" => table(inner, start, parts)?,
            _ => parts.free_child(at, &child),
        }
    }
    Some(())
}

/// Reads the table of the samples of a track.
fn table(stbl: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
    for child in children(stbl)? {
        let inner = &stbl[child.content.clone()];
        match &child.kind {
            b"stsd" => codings(inner, at + child.content.start as u64, parts)?,
            kind if TABLES.contains(&kind) => {}
            _ => parts.free_child(at, &child),
        }
    }
    chunks(stbl, parts)
}

/// Reads how the samples are coded from an `stsd` box.
fn codings(stsd: &[u8], at: u64, parts: &mut Parts) -> Option<()> {
    let (entries, at) = (stsd.get(8..)?, at + 8);
    for entry in children(entries)? {
        let coding = &entries[entry.content.clone()];
        let start = at + entry.content.start as u64;
        if !CODINGS.contains(&&entry.kind) {
            return None;
        }
        let boxes = coding.get(CODING_BYTES..)?;
        parts.zeros.push(place(start, &COMPRESSOR));
        let is_other = |child: &&Child| !CODING_BOXES.contains(&&child.kind);
        parts.settings(boxes, start + CODING_BYTES as u64)?;
        children(boxes)?.iter().filter(is_other).for_each(|child| parts.free_child(start + CODING_BYTES as u64, child));
    }
    Some(())
}

/// Tells `parts` where the samples lie, and the chunks of which they are parts (§8.7).
fn chunks(stbl: &[u8], parts: &mut Parts) -> Option<()> {
    let offsets: Vec<u64> = match (child(stbl, b"stco"), child(stbl, b"co64")) {
        (Some(offsets), None) => offsets.get(8..)?.chunks_exact(4).map(number).collect(),
        (None, Some(offsets)) => offsets.get(8..)?.chunks_exact(8).map(number).collect(),
        _ => return None,
    };
    // Each run of chunks with as many samples: its first chunk, from 1, and the number of samples in each.
    let runs: Vec<(u64, u64)> =
        child(stbl, b"stsc")?.get(8..)?.chunks_exact(12).map(|run| (number(&run[..4]), number(&run[4..8]))).collect();
    let sizes = child(stbl, b"stsz")?;
    let (same, each) = (number(sizes.get(4..8)?), sizes.get(12..)?);
    let (mut run, mut sample) = (0_usize, 0_usize);
    for (number_before, &offset) in (0_u64..).zip(&offsets) {
        while runs.get(run + 1).is_some_and(|(first, _)| *first <= number_before + 1) {
            run += 1;
        }
        let count = usize::try_from(runs.get(run)?.1).ok()?;
        let end = sample.checked_add(count)?;
        if count > SAMPLES_MAX.saturating_sub(parts.runs.len()) {
            return None;
        }
        let mut at = offset;
        for sample in sample..end {
            let bytes = if same > 0 { same } else { number(each.get(sample.checked_mul(4)?..)?.get(..4)?) };
            let next = at.checked_add(bytes)?;
            parts.runs.push(Run::new(at..next));
            at = next;
        }
        parts.pixels.push(offset..at);
        sample = end;
    }
    Some(())
}

/// Returns the content of the first child of this kind.
fn child<'c>(content: &'c [u8], kind: &[u8; 4]) -> Option<&'c [u8]> {
    let child = children(content)?.into_iter().find(|child| &child.kind == kind)?;
    content.get(child.content)
}
