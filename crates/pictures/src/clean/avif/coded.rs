//! Coded pixels: what of them a decoder needs (AV1 Bitstream & Decoding Process Specification, §5.3 to §5.8). Everything else, such as what a program or a camera
//! says of a picture, becomes padding of the same length.

use std::{
    cmp::Reverse,
    io::{Read, Seek},
    ops::Range,
};

use super::{super::Scan, Parts};
use crate::Fault;

/// Bytes of a file that are decoded one after the other: those of an item or of a sample, by the places where they lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run(Vec<Range<u64>>);

/// The kinds of parts of coded pixels (§6.2.2).
const SEQUENCE: u8 = 1;
const DELIMITER: u8 = 2;
const FRAME_HEADER: u8 = 3;
const TILES: u8 = 4;
const METADATA: u8 = 5;
const FRAME: u8 = 6;
const SAME_FRAME_HEADER: u8 = 7;
const PADDING: u8 = 15;

/// The metadata that says how light the colours are, with its lengths: its kind, its values, and a byte that ends them (§5.8.3, §5.8.4).
const LIGHT: [(u8, u64); 2] = [(1, 1 + 4 + 1), (2, 1 + 24 + 1)];

/// Bits of the first byte of a part.
const FORBIDDEN: u8 = 0x80;
const HAS_EXTENSION: u8 = 0x04;
const HAS_LENGTH: u8 = 0x02;

impl Run {
    pub(super) fn new(range: Range<u64>) -> Self {
        Self(vec![range])
    }

    /// Adds where it goes on.
    pub(super) fn extend(&mut self, range: Range<u64>) {
        match self.0.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => self.0.push(range),
        }
    }

    /// Returns where it begins, and where its first place ends.
    fn first(&self) -> (u64, Reverse<u64>) {
        self.0.first().map_or((0, Reverse(0)), |first| (first.start, Reverse(first.end)))
    }
}

/// Orders runs, and leaves out those that are a beginning of another one. Returns `None` if others overlap, or something that is `hidden`: a byte is then
/// more than one thing.
pub(super) fn ordered(mut runs: Vec<Run>, hidden: &[Range<u64>]) -> Option<Vec<Run>> {
    runs.iter_mut().for_each(|run| run.0.retain(|range| !range.is_empty()));
    runs.retain(|run| !run.0.is_empty());
    runs.sort_by_key(Run::first);
    runs.dedup_by(|run, before| run == before || run.first().0 == before.first().0 && run.0.len() == 1);
    let mut all: Vec<_> = runs.iter().flat_map(|run| &run.0).chain(hidden).collect();
    all.sort_by_key(|range| range.start);
    all.is_sorted_by(|one, next| one.end <= next.start).then_some(runs)
}

/// Has everything in a run overwritten that a decoder does not need.
pub(super) fn clean<R: Read + Seek>(run: &Run, scan: &mut Scan<R>, parts: &mut Parts) -> Result<(), Fault> {
    let mut ahead = Ahead { ranges: &run.0, at: 0, left: run.0.iter().map(|range| range.end - range.start).sum() };
    while let Some((at, head)) = ahead.byte(scan)? {
        let behind_head = ahead.clone();
        let (length, is_needed) = part(head, &mut ahead, scan)?;
        // Nobody can decode what is longer than what it is in, or begins as nothing does. It becomes padding that goes on to the end.
        let (head, length) = match length {
            Some(length) => (head, length),
            None => {
                ahead = behind_head;
                (0, ahead.left)
            }
        };
        let content = ahead.pass(length);
        if is_needed {
            continue;
        }
        let Some(last) = content.last().map(|range| range.end - 1) else {
            if head == 0 {
                overwrite(at, PADDING << 3, parts);
            }
            continue;
        };
        overwrite(at, PADDING << 3 | head & (HAS_EXTENSION | HAS_LENGTH), parts);
        parts.zeros.extend(content);
        // The end of padding is a bit, and the rest of its byte (§5.3.4).
        overwrite(last, 0x80, parts);
    }
    Ok(())
}

fn overwrite(at: u64, byte: u8, parts: &mut Parts) {
    parts.zeros.push(at..at + 1);
    parts.patches.insert(at, vec![byte]);
}

/// Reads a part behind its first byte, up to its content. Returns how long that is, if it can be, and whether a decoder needs it.
fn part<R: Read + Seek>(head: u8, ahead: &mut Ahead<'_>, scan: &mut Scan<R>) -> Result<(Option<u64>, bool), Fault> {
    if head & FORBIDDEN != 0 || head & HAS_EXTENSION != 0 && ahead.byte(scan)?.is_none() {
        return Ok((None, false));
    }
    let mut length = ahead.left;
    if head & HAS_LENGTH != 0 {
        // Seven bits of each byte, the least first (§4.10.5).
        length = 0;
        for place in 0..8 {
            let Some((_, byte)) = ahead.byte(scan)? else { return Ok((None, false)) };
            length |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
            if place == 7 {
                return Ok((None, false));
            }
        }
    }
    if length > ahead.left {
        return Ok((None, false));
    }
    let is_needed = match head >> 3 & 15 {
        SEQUENCE | FRAME_HEADER | TILES | FRAME | SAME_FRAME_HEADER => true,
        DELIMITER => length == 0,
        METADATA => {
            let kind = ahead.clone().byte(scan)?.map(|(_, kind)| kind);
            LIGHT.iter().any(|&light| kind.is_some_and(|kind| light == (kind, length)))
        }
        _ => false,
    };
    Ok((Some(length), is_needed))
}

/// Holds what of a run was not read yet.
#[derive(Clone)]
struct Ahead<'r> {
    ranges: &'r [Range<u64>],
    /// The number of bytes of the first of them that were read.
    at: u64,
    left: u64,
}

impl Ahead<'_> {
    /// Passes over up to `most` bytes in one place, and returns where they lie.
    fn place(&mut self, most: u64) -> Option<Range<u64>> {
        while let [first, rest @ ..] = self.ranges {
            let start = first.start + self.at;
            if start < first.end {
                let place = start..first.end.min(start.saturating_add(most));
                self.at += place.end - place.start;
                self.left -= place.end - place.start;
                return Some(place);
            }
            (self.ranges, self.at) = (rest, 0);
        }
        None
    }

    /// Reads a byte, and returns where it lies.
    fn byte<R: Read + Seek>(&mut self, scan: &mut Scan<R>) -> Result<Option<(u64, u8)>, Fault> {
        let Some(Range { start, .. }) = self.place(1) else { return Ok(None) };
        scan.go_to(start)?;
        Ok(scan.byte()?.map(|byte| (start, byte)))
    }

    /// Passes over some bytes, and returns where they lie.
    fn pass(&mut self, mut length: u64) -> Vec<Range<u64>> {
        let mut places = Vec::new();
        while length > 0
            && let Some(place) = self.place(length)
        {
            length -= place.end - place.start;
            places.push(place);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An item may lie in many places. A byte belongs to two of them only if one is the beginning of the other.
    #[test]
    fn runs_do_not_overlap() {
        let count = |runs: &[&[(u64, u64)]], hidden: Range<u64>| {
            let run = |places: &&[(u64, u64)]| {
                let mut run = Run(Vec::new());
                places.iter().for_each(|&(start, end)| run.extend(start..end));
                run
            };
            ordered(runs.iter().map(run).collect(), &[hidden]).map(|runs| runs.len())
        };
        assert_eq!(count(&[&[(20, 30)], &[(0, 10)], &[(0, 10)], &[(0, 5)], &[(10, 20), (40, 50)], &[(60, 60)]], 50..60), Some(3));
        assert_eq!(count(&[&[(0, 10)], &[(5, 10)]], 50..60), None);
        assert_eq!(count(&[&[(0, 10)], &[(10, 20), (5, 7)]], 50..60), None);
        assert_eq!(count(&[&[(0, 10)]], 9..60), None);
    }

    /// A part of an item may lie in more than one of its places.
    #[test]
    fn parts_go_on_in_the_next_place() {
        let file = b"..\x2a.\x05....\x04SE..CR\x32\x01P";
        let mut scan = Scan::new(std::io::Cursor::new(file)).expect("readable");
        let mut parts = Parts::default();
        let mut run = Run::new(2..3);
        [4..5, 9..12, 14..16, 16..19].into_iter().for_each(|place| run.extend(place));
        clean(&run, &mut scan, &mut parts).expect("readable");
        let all = scan.bytes;
        parts.contents = [Range { start: 0, end: all }].into();
        parts.pixels = [Range { start: 0, end: all }].into();
        parts.write(&mut scan).expect("planned");
        assert_eq!(scan.cleaned.of(file).expect("copied"), b"..\x7a.\x05....\0\0\0..\0\x80\x32\x01P");
    }
}
