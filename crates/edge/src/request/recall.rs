//! Heads that come again, byte for byte.
//!
//! A crowd asks for few pages with few kinds of browsers, and a monitor or a load generator sends the very same bytes each time. Reading a
//! head is a third of what a hit costs, or more than half if the head is a browser's; comparing it with one that was read before is one
//! `memcmp`. What was concluded from the same bytes under the same limits is the same; so nothing here decides anything, it remembers
//! decisions. What they were based on beside the head, the service knows and asks itself ([`Service::again`](crate::Service::again)).
//!
//! Of heads that differ between browsers, what is left without the differences comes again ([`essentials`](wire::head::essentials)): where the answer rests on nothing
//! else, that is remembered, too.
//!
//! Only hits are remembered: GET and HEAD without content, of which nothing was refused. What is compared is everything that was read, so
//! a head with another one behind it is read as always.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
    ops::Range,
    rc::Rc,
};

use http::{Method, Version};
use semantics::Scheme;
use wire::head::essentials::{Incidentals, essentials};

use super::{head::http1_version, log_line::LogLine};
use crate::{service::Again, worker::Terms};

/// The number of sets. A head belongs to one.
const SETS: usize = 1024;
/// The number of heads that a set can remember.
const WAYS: usize = 4;
/// The number of heads that a set has seen lately and does not remember.
const SEEN: usize = 2 * WAYS;
/// The worth of coming again once against newcomers, each of whom halves what is there.
const WARMTH: u8 = 4;
/// The length of the longest head that is first looked for as a whole: a monitor's, or a load generator's.
const SHORT: usize = 256;
/// The length of the longest head that is remembered: longer ones have cookies that nobody else has.
const HEAD_MAX: usize = 1024;
/// The most bytes of all remembered heads. With the places (72 KiB) and the service's part, this is one worker's worst case.
const BYTES_MAX: usize = 1 << 20;
/// The bytes that a remembered head costs beside its own.
const PLACE: usize = size_of::<RememberedHead<[usize; 5]>>() + 3 * 8;
/// The number of sets that are looked at for something to forget, for the sake of one head that is to be remembered.
const ROOM_SETS: usize = 8;

/// The heads that one worker remembers.
pub(crate) struct Recall<K> {
    /// The limits under which they passed.
    terms: Rc<Terms>,
    sets: Box<[Set<K>]>,
    bytes: usize,
    /// The set in which something to forget is looked for next.
    hand: usize,
    /// The essentials of the head that was looked for last.
    essentials: RefCell<Vec<u8>>,
}

/// A head that is like one that is remembered.
pub(crate) struct RecallHit<'r, 'h, K> {
    repeated: &'r RememberedHead<K>,
    /// Holds what the head says beside its essentials; `None` if the head was recognised as a whole.
    incidentals: Option<Incidentals<'h>>,
    head_len: usize,
}

impl<'r, 'h: 'r, K> RecallHit<'r, 'h, K> {
    /// Returns what the service found out about such heads.
    pub(crate) const fn known(&self) -> &'r K {
        &self.repeated.known
    }

    /// Returns whether the client wants the connection kept.
    pub(crate) const fn keep_alive(&self) -> bool {
        self.repeated.keep_alive
    }

    /// Returns the length of the head in bytes, with the empty line.
    pub(crate) const fn head_len(&self) -> usize {
        self.head_len
    }

    /// Returns what the log wants to know, as a request of HTTP/1.
    pub(crate) fn log_line(&self) -> LogLine<'r> {
        let line = self.repeated.log_line();
        match self.incidentals {
            Some(Incidentals { referer, user_agent, .. }) => LogLine { referer, user_agent, ..line },
            None => line,
        }
    }

    /// Returns how the head may be remembered again, after the service no longer accepted the remembered facts.
    pub(crate) const fn as_miss(&self) -> RecallMiss {
        RecallMiss { has_essentials: self.incidentals.is_some() }
    }
}

/// The parts of an unrecognised head by which [`Recall`] may remember it: its bytes, and perhaps its essentials, which the [`Recall`] holds until
/// it looks for another head.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecallMiss {
    has_essentials: bool,
}

/// The text of a head that was not recognised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadText<'a> {
    /// All bytes of the head, with the empty line.
    pub(crate) bytes: &'a [u8],
    /// The result of [`Recall::recognise`] for it.
    pub(crate) unrecognised: RecallMiss,
}

/// The part of a head by which it is compared. Essentials are never taken for a head, however much a half head looks like them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComparedPart {
    /// All bytes of a head, with the empty line.
    Head,
    /// Its [essential lines](wire::head::essentials).
    Essentials,
}

/// The bytes by which a head is compared with those that are remembered.
#[derive(Debug, Clone, Copy)]
struct ComparedBytes<'a> {
    compared: ComparedPart,
    bytes: &'a [u8],
}

struct Set<K> {
    places: [Option<Box<RememberedHead<K>>>; WAYS],
    /// Heads seen last and not remembered, by their hash, as a ring. One that is seen again while it stands here is: most never are.
    seen: [u32; SEEN],
    next: u8,
}

/// A head that is remembered, and what is known about it.
pub(crate) struct RememberedHead<K> {
    hash: u64,
    scheme: Scheme,
    compared: ComparedPart,
    bytes: Box<[u8]>,
    method: Method,
    /// The target, and then the host. Apart from the bytes, as they are known to be text: looking again would cost a hundred instructions.
    text: Box<str>,
    target_len: u16,
    referer: Range<u16>,
    user_agent: Range<u16>,
    minor_version: u8,
    keep_alive: bool,
    /// Raised when it comes again, lowered when its place is wanted.
    warmth: Cell<u8>,
    known: K,
}

impl<K> RememberedHead<K> {
    /// Returns what the log wants to know, as a request of HTTP/1.
    fn log_line(&self) -> LogLine<'_> {
        let (target, host) = self.text.split_at(usize::from(self.target_len));
        let value = |range: &Range<u16>| self.bytes.get(usize::from(range.start)..usize::from(range.end)).unwrap_or_default();
        LogLine {
            method: &self.method,
            target: Cow::Borrowed(target),
            version: http1_version(self.minor_version),
            host: host.as_bytes(),
            referer: value(&self.referer),
            user_agent: value(&self.user_agent),
        }
    }

    fn is(&self, hash: u64, scheme: Scheme, text: ComparedBytes<'_>) -> bool {
        self.hash == hash && self.scheme == scheme && self.compared == text.compared && *self.bytes == *text.bytes
    }

    fn cost(&self) -> usize {
        PLACE + self.bytes.len() + self.text.len()
    }

    fn cool(&self) -> u8 {
        let warmth = self.warmth.get() / 2;
        self.warmth.set(warmth);
        warmth
    }
}

impl<K> Recall<K> {
    /// Makes a memory for heads that pass under these limits.
    pub(crate) fn new(terms: &Rc<Terms>) -> Self {
        let set = |_| Set { places: [const { None }; WAYS], seen: [0; SEEN], next: 0 };
        Self { terms: Rc::clone(terms), sets: (0..SETS).map(set).collect(), bytes: 0, hand: 0, essentials: RefCell::default() }
    }

    /// Finds the head at the start of `bytes`, if it is all of them and remembered, or if its essentials are; and if it passed under the limits
    /// of `terms`.
    ///
    /// # Errors
    /// When it has to be read: with what it may be remembered by.
    pub(crate) fn recognise<'r, 'h: 'r>(
        &'r self,
        terms: &Rc<Terms>,
        scheme: Scheme,
        bytes: &'h [u8],
    ) -> Result<RecallHit<'r, 'h, K>, RecallMiss> {
        if !Rc::ptr_eq(terms, &self.terms) {
            return Err(RecallMiss::default());
        }
        let whole = || {
            self.find(scheme, ComparedBytes { compared: ComparedPart::Head, bytes }).map(|repeated| RecallHit {
                repeated,
                incidentals: None,
                head_len: bytes.len(),
            })
        };
        // A long head is a browser's, and most of those are known by their essentials.
        let is_short = bytes.len() <= SHORT;
        if is_short && let Some(recognised) = whole() {
            return Ok(recognised);
        }
        let mut lines = self.essentials.borrow_mut();
        let incidentals = essentials(bytes, &terms.head_limits, &mut lines);
        let unrecognised = RecallMiss { has_essentials: incidentals.is_some() };
        if let Some(incidentals) = incidentals
            && let Some(repeated) = self.find(scheme, ComparedBytes { compared: ComparedPart::Essentials, bytes: &lines })
        {
            return Ok(RecallHit { repeated, incidentals: Some(incidentals), head_len: incidentals.head_len });
        }
        if is_short { Err(unrecognised) } else { whole().ok_or(unrecognised) }
    }

    fn find(&self, scheme: Scheme, text: ComparedBytes<'_>) -> Option<&RememberedHead<K>> {
        if text.bytes.len() > HEAD_MAX {
            return None;
        }
        let hash = hash(text);
        let repeated = self.sets[set_of(hash)].places.iter().flatten().find(|repeated| repeated.is(hash, scheme, text))?;
        repeated.warmth.set(repeated.warmth.get().saturating_add(WARMTH));
        Some(repeated)
    }

    /// Notes that a head was a hit. It is remembered from the second time on, and what is remembered about it already is replaced: by its
    /// essentials, if it has any and the answer rests on them alone, else by its bytes.
    ///
    /// `text` has what the last [`recognise`](Self::recognise) said of this very head.
    pub(crate) fn remember(
        &mut self,
        terms: &Rc<Terms>,
        scheme: Scheme,
        text: HeadText<'_>,
        line: &LogLine<'_>,
        keep_alive: bool,
        known: Again<K>,
    ) {
        if !Rc::ptr_eq(terms, &self.terms) {
            return;
        }
        let (known, by_essentials) = match known {
            Again::SameHead(known) => (known, false),
            Again::SameEssentials(known) => (known, text.unrecognised.has_essentials),
        };
        if by_essentials {
            let lines = self.essentials.take();
            debug_assert!({
                let mut again = Vec::new();
                essentials(text.bytes, &terms.head_limits, &mut again).is_some() && again == lines
            });
            self.keep(scheme, ComparedBytes { compared: ComparedPart::Essentials, bytes: &lines }, line, keep_alive, known);
            self.essentials = RefCell::new(lines);
        } else {
            self.keep(scheme, ComparedBytes { compared: ComparedPart::Head, bytes: text.bytes }, line, keep_alive, known);
        }
    }

    fn keep(&mut self, scheme: Scheme, text: ComparedBytes<'_>, line: &LogLine<'_>, keep_alive: bool, known: K) {
        let (Ok(target_len), Ok(host)) = (u16::try_from(line.target.len()), std::str::from_utf8(line.host)) else { return };
        let ComparedBytes { compared, bytes } = text;
        if bytes.len() > HEAD_MAX {
            return;
        }
        let hash = hash(text);
        let set = &mut self.sets[set_of(hash)];
        if let Some(repeated) = set.places.iter_mut().flatten().find(|repeated| repeated.is(hash, scheme, text)) {
            repeated.known = known;
            return;
        }
        if !set.seen_before(hash) {
            return;
        }
        let Some(at) = set.place() else { return };
        self.forget(set_of(hash), at);
        let cost = PLACE + bytes.len() + line.target.len() + host.len();
        self.make_room(cost);
        if self.bytes + cost > BYTES_MAX {
            return;
        }
        self.bytes += cost;
        let range = |part: &[u8]| range_in(bytes, part);
        self.sets[set_of(hash)].places[at] = Some(Box::new(RememberedHead {
            hash,
            scheme,
            compared,
            bytes: bytes.into(),
            method: line.method.clone(),
            text: [&*line.target, host].concat().into(),
            target_len,
            referer: range(line.referer),
            user_agent: range(line.user_agent),
            minor_version: u8::from(line.version != Version::HTTP_10),
            keep_alive,
            warmth: Cell::new(WARMTH),
            known,
        }));
    }

    /// Forgets what came least recently, but looks at a few sets only: the next that is to be remembered looks further.
    fn make_room(&mut self, bytes: usize) {
        for _ in 0..ROOM_SETS {
            if self.bytes + bytes <= BYTES_MAX {
                return;
            }
            self.hand = (self.hand + 1) % SETS;
            for at in 0..WAYS {
                if self.sets[self.hand].places[at].as_ref().is_some_and(|repeated| repeated.cool() == 0) {
                    self.forget(self.hand, at);
                }
            }
        }
    }

    fn forget(&mut self, set: usize, at: usize) {
        if let Some(repeated) = self.sets[set].places[at].take() {
            self.bytes -= repeated.cost();
        }
    }
}

impl<K> Set<K> {
    /// Finds a place for a newcomer: an empty one, or that of a head that came less often recently than newcomers did.
    fn place(&self) -> Option<usize> {
        let mut cold = self.places.iter().position(Option::is_none);
        if cold.is_none() {
            // All are looked at: each newcomer costs each of them half of its warmth.
            for (at, repeated) in self.places.iter().flatten().enumerate() {
                if repeated.cool() == 0 {
                    cold = Some(at);
                }
            }
        }
        cold
    }

    fn seen_before(&mut self, hash: u64) -> bool {
        let mark = u32::try_from(hash >> 16 & u64::from(u32::MAX)).unwrap_or_default();
        if self.seen.contains(&mark) {
            return true;
        }
        self.seen[usize::from(self.next) % SEEN] = mark;
        self.next = self.next.wrapping_add(1);
        false
    }
}

/// Returns where a part of the head lies. Heads are at most [`HEAD_MAX`] long; a part that is not part of it (an empty one) is an empty range.
fn range_in(bytes: &[u8], part: &[u8]) -> Range<u16> {
    let start = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
    match (u16::try_from(start), u16::try_from(start.wrapping_add(part.len()))) {
        (Ok(start), Ok(end)) if usize::from(end) <= bytes.len() => start..end,
        _ => 0..0,
    }
}

fn set_of(hash: u64) -> usize {
    usize::try_from(hash % SETS as u64).unwrap_or_default()
}

/// Returns a hash of the length, the beginning and the end: request line, host, and what differs between browsers. It only finds the set:
/// heads that somebody makes to meet there push each other out, and are read as always.
fn hash(text: ComparedBytes<'_>) -> u64 {
    const BEGIN: usize = 96;
    const END: usize = 64;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let ComparedBytes { compared, bytes } = text;
    let mix = |hash: u64, word: &[u8; 8]| (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    let begin = bytes.get(..BEGIN).unwrap_or(bytes);
    let (words, _) = begin.as_chunks::<8>();
    let mut hash = words.iter().fold((bytes.len() * 2 + compared as usize) as u64, mix);
    if bytes.len() > BEGIN {
        let (words, _) = bytes[bytes.len().saturating_sub(END)..].as_chunks::<8>();
        hash = words.iter().fold(hash, mix);
    } else if let Some(last) = bytes.last_chunk::<8>() {
        hash = mix(hash, last);
    }
    (hash ^ (hash >> 32)).wrapping_mul(FACTOR) >> 16
}

impl<K> fmt::Debug for Recall<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
