//! The coded pixels of a scan (ITU-T T.81, annexes F and G): how many bytes its blocks need. It is only told how long each code is, and not what it means.
//!
//! Left out are scans that refine what others have told, whose codes can be read with all of those alone, and arithmetic coding, which browsers do not show.

use std::{
    io::{Read, Seek},
    rc::Rc,
};

use super::super::Scan;
use crate::Fault;

/// Holds what the segments before a scan say of how it is coded.
#[derive(Clone, Default)]
pub(super) struct Tables {
    frame: Option<Frame>,
    /// The codes of the first coefficients of blocks, and of all others.
    codes: [[Option<Rc<Codes>>; 4]; 2],
    /// The number of units that stand between two restarts.
    restart: u64,
}

#[derive(Clone)]
struct Frame {
    is_progressive: bool,
    width: u64,
    height: u64,
    /// The number of each component, and how many of its blocks stand beside and above each other in a unit.
    components: Rc<[(u8, u64, u64)]>,
}

/// Codes by their lengths (§C.2).
struct Codes {
    counts: [u8; 16],
    values: Vec<u8>,
}

/// Says where the coded pixels of a scan end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// They go on to the end of the bytes, and some are missing.
    Missing,
    /// All are there, or what follows cannot be read, up to this place.
    At(u64),
    /// The end cannot be found.
    Unknown,
}

impl Tables {
    /// Takes note of the content of a segment.
    pub(super) fn read(&mut self, marker: u8, content: &[u8]) {
        match marker {
            0xc4 => drop(self.read_codes(content)),
            0xdd => self.restart = content.first_chunk().map_or(0, |count| u16::from_be_bytes(*count).into()),
            marker if super::is_frame(marker) => self.frame = Frame::read(marker, content),
            _ => {}
        }
    }

    fn read_codes(&mut self, mut content: &[u8]) -> Option<()> {
        while let Some((&place, rest)) = content.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let (values, rest) = rest.split_at_checked(counts.iter().map(|&count| usize::from(count)).sum())?;
            let slot = self.codes.get_mut(usize::from(place >> 4))?.get_mut(usize::from(place & 15))?;
            *slot = Some(Rc::new(Codes { counts: *counts, values: values.to_vec() }));
            content = rest;
        }
        Some(())
    }

    /// Finds the end of the coded pixels of a scan with this head. The reader stands before them.
    pub(super) fn end<R: Read + Seek>(&self, head: &[u8], scan: &mut Scan<R>) -> Result<End, Fault> {
        let Some(plan) = self.plan(head) else { return Ok(End::Unknown) };
        let mut bits = Bits { scan, held: 0, count: 0, is_over: false };
        let mut end = bits.scan.at;
        let mut done = 0;
        while done < plan.units {
            let is_restart = self.restart > 0 && done > 0 && done.is_multiple_of(self.restart);
            let read = if is_restart && !bits.restart()? { None } else { plan.unit(&mut bits)? };
            let Some(further) = read else {
                return Ok(if bits.is_over { End::Missing } else { End::At(end) });
            };
            // Where blocks have nothing, one code says so of many of them.
            let most = if self.restart > 0 { self.restart - done % self.restart } else { u64::MAX };
            done += (1 + further).min(most);
            end = bits.scan.at;
        }
        Ok(End::At(end))
    }

    fn plan(&self, head: &[u8]) -> Option<Plan> {
        let frame = self.frame.as_ref()?;
        let (&count, rest) = head.split_first()?;
        let (named, rest) = rest.split_at_checked(usize::from(count) * 2)?;
        let &[first, last, refined, ..] = rest else { return None };
        let components: Option<Vec<_>> = named
            .chunks_exact(2)
            .map(|named| {
                let &(_, beside, above) = frame.components.iter().find(|(number, ..)| *number == named[0])?;
                let codes = |of: usize, place: u8| self.codes[of].get(usize::from(place)).cloned().flatten();
                Some((beside, above, [codes(0, named[1] >> 4), codes(1, named[1] & 15)]))
            })
            .collect();
        let components = components.filter(|components| !components.is_empty())?;
        let kind = match (frame.is_progressive, first, last, refined >> 4) {
            (false, ..) => Kind::Whole,
            (true, 0, 0, 0) => Kind::First,
            (true, 0, 0, _) => Kind::FirstRefined,
            (true, 1.., _, 0) if last < 64 && first <= last && components.len() == 1 => Kind::Others(first, last),
            _ => return None,
        };
        let most = |side: fn(&(u8, u64, u64)) -> u64| frame.components.iter().map(side).max();
        let (beside, above) = (most(|component| component.1)?, most(|component| component.2)?);
        let is_single = components.len() == 1;
        let mut blocks = Vec::new();
        let mut units = frame.width.div_ceil(8 * beside) * frame.height.div_ceil(8 * above);
        for (own_beside, own_above, codes) in components {
            if is_single {
                // The blocks of one component stand line by line (§A.2.2).
                units = (frame.width * own_beside).div_ceil(beside).div_ceil(8) * (frame.height * own_above).div_ceil(above).div_ceil(8);
            }
            let count = if is_single { 1 } else { own_beside * own_above };
            blocks.extend((0..count).map(|_| codes.clone()));
        }
        Some(Plan { kind, units, blocks })
    }
}

impl Frame {
    /// Reads the head of a frame (§B.2.2). Returns `None` for one that is coded otherwise, or whose height is told later.
    fn read(marker: u8, content: &[u8]) -> Option<Self> {
        let &[_, a, b, c, d, count, ref rest @ ..] = content else { return None };
        let (height, width) = (u16::from_be_bytes([a, b]).into(), u16::from_be_bytes([c, d]).into());
        let of = |named: &[u8]| (named[0], u64::from(named[1] >> 4), u64::from(named[1] & 15));
        let components: Rc<[_]> = rest.get(..usize::from(count) * 3)?.chunks_exact(3).map(of).collect();
        let is_plain =
            components.len() <= 4 && components.iter().all(|(_, beside, above)| (1..=4).contains(beside) && (1..=4).contains(above));
        (matches!(marker, 0xc0..=0xc2) && height > 0 && is_plain).then_some(Self {
            is_progressive: marker == 0xc2,
            width,
            height,
            components,
        })
    }
}

/// Says what a scan tells of each block (§G.1.1.1).
enum Kind {
    Whole,
    First,
    FirstRefined,
    /// The coefficients from one to another.
    Others(u8, u8),
}

/// Says what a scan consists of.
struct Plan {
    kind: Kind,
    units: u64,
    /// The codes of the blocks of a unit: of their first coefficients, and of the others.
    blocks: Vec<[Option<Rc<Codes>>; 2]>,
}

impl Plan {
    /// Passes over a unit. Returns how many further ones have nothing of their own, or `None` if it cannot be read.
    fn unit<R: Read + Seek>(&self, bits: &mut Bits<'_, R>) -> Result<Option<u64>, Fault> {
        let mut empty = 0;
        for [firsts, others] in &self.blocks {
            let read = match self.kind {
                Kind::FirstRefined => bits.take(1)?.map(|_| 0),
                Kind::First => first(bits, firsts.as_deref())?,
                Kind::Whole => match first(bits, firsts.as_deref())? {
                    Some(_) => coefficients(bits, others.as_deref(), (1, 63), false)?,
                    None => None,
                },
                Kind::Others(from, to) => coefficients(bits, others.as_deref(), (from, to), true)?,
            };
            let Some(read) = read else { return Ok(None) };
            empty = read;
        }
        Ok(Some(empty))
    }
}

/// Passes over the first coefficient of a block (§F.1.2.1).
fn first<R: Read + Seek>(bits: &mut Bits<'_, R>, codes: Option<&Codes>) -> Result<Option<u64>, Fault> {
    let Some(count) = bits.code(codes)?.filter(|&count| count <= 16) else { return Ok(None) };
    Ok(bits.take(count)?.map(|_| 0))
}

/// Passes over some coefficients of a block (§F.1.2.2, §G.1.2.2). Returns how many blocks after it have none, which only some scans tell.
fn coefficients<R: Read + Seek>(
    bits: &mut Bits<'_, R>,
    codes: Option<&Codes>,
    (from, to): (u8, u8),
    has_runs: bool,
) -> Result<Option<u64>, Fault> {
    let mut at = from;
    while at <= to {
        let Some(code) = bits.code(codes)? else { return Ok(None) };
        let (zeros, count) = (code >> 4, code & 15);
        if count == 0 && zeros < 15 {
            if !has_runs {
                break;
            }
            return Ok(bits.take(zeros)?.map(|more| (1 << zeros) + u64::from(more) - 1));
        }
        at += zeros;
        if at > to || bits.take(count)?.is_none() {
            return Ok(None);
        }
        at += 1;
    }
    Ok(Some(0))
}

/// The bits of coded pixels. A byte is read when the first of its bits is needed.
struct Bits<'s, R> {
    scan: &'s mut Scan<R>,
    held: u8,
    count: u8,
    /// Whether the bytes have come to their end.
    is_over: bool,
}

impl<R: Read + Seek> Bits<'_, R> {
    fn bit(&mut self) -> Result<Option<u32>, Fault> {
        if self.count == 0 {
            let at = self.scan.at;
            let byte = self.scan.byte()?;
            // A zero is stuffed behind such a byte; anything else is a marker (§F.1.2.3).
            let stuffed = if byte == Some(0xff) { self.scan.byte()? } else { Some(0) };
            match (byte, stuffed) {
                (Some(byte), Some(0)) => (self.held, self.count) = (byte, 8),
                (_, mark) => {
                    self.is_over = !matches!(mark, Some(0xd0..=0xd7));
                    self.scan.go_to(at)?;
                    return Ok(None);
                }
            }
        }
        self.count -= 1;
        Ok(Some(u32::from(self.held >> self.count & 1)))
    }

    fn take(&mut self, count: u8) -> Result<Option<u32>, Fault> {
        let mut taken = 0;
        for _ in 0..count {
            let Some(bit) = self.bit()? else { return Ok(None) };
            taken = taken << 1 | bit;
        }
        Ok(Some(taken))
    }

    /// Reads a code (§F.2.2.3).
    fn code(&mut self, codes: Option<&Codes>) -> Result<Option<u8>, Fault> {
        let Some(codes) = codes else { return Ok(None) };
        let (mut code, mut first, mut before) = (0_u32, 0_u32, 0_usize);
        for &count in &codes.counts {
            let Some(bit) = self.bit()? else { return Ok(None) };
            code = code << 1 | bit;
            if let Some(index) = code.checked_sub(first).filter(|&index| index < count.into()) {
                return Ok(codes.values.get(before + index as usize).copied());
            }
            first = (first + u32::from(count)) << 1;
            before += usize::from(count);
        }
        Ok(None)
    }

    /// Passes over the mark of a restart. Returns whether there is one.
    fn restart(&mut self) -> Result<bool, Fault> {
        self.count = 0;
        let mut byte = self.scan.byte()?;
        let has_mark = byte == Some(0xff);
        while byte == Some(0xff) {
            byte = self.scan.byte()?;
        }
        self.is_over = byte.is_none();
        Ok(has_mark && matches!(byte, Some(0xd0..=0xd7)))
    }
}
