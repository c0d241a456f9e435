//! The meaning of the stream's positions on this machine: the generations of its store.
//!
//! A page in the tier says up to which entry its machine had carried out the stream when its fetch began. This ring says which generation of this
//! machine's own store that was, so that the page is judged by the purges since, as if it had been fetched here.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::seal::{Mark, SealedPosition};
use crate::stream::{ENTRIES_MAX, EntryId, EntryMaker, Run};

/// The positions of the last entries that were carried out here: [`ENTRIES_MAX`] of 48 bytes, 3 MiB. A page from an older one is not used.
#[derive(Debug, Default)]
pub struct Ring(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    run: Option<Run>,
    lines: VecDeque<Line>,
    /// The last generation at which no purge was made here that had not come back by the stream.
    quiet: u64,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    id: EntryId,
    made: Mark,
    /// A generation before every purge of this machine's own that comes later in the stream: a page from this position is purged by what was purged
    /// here after it.
    since: u64,
    /// The generation when the entry had been carried out here: a fetch that began at it or later began after the entry.
    at: u64,
}

/// Says what a position is to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// The generation from which on purges count.
    Generation(u64),
    /// This machine has not come so far yet.
    Ahead,
    /// It is forgotten, or never was in this stream.
    Unknown,
}

impl Ring {
    /// Notes that this machine has carried out the stream up to an entry. `generation` is that of its store after it. `is_quiet` says that all purges
    /// that were made here have come back by the stream, up to this entry; read the generation first.
    pub fn applied(&self, run: &Run, id: EntryId, made: Option<&EntryMaker>, generation: u64, is_quiet: bool) {
        let mut ring = self.0.lock();
        if ring.run.as_ref() != Some(run) {
            *ring = Lines { run: Some(run.clone()), quiet: ring.quiet, ..Lines::default() };
        }
        let made = Mark::of(made);
        match ring.lines.back() {
            Some(last) if (last.id, last.made) == (id, made) => return,
            // It is another stream.
            Some(last) if last.id >= id => ring.lines.clear(),
            Some(_) | None => {}
        }
        if is_quiet {
            ring.quiet = generation;
        }
        if ring.lines.len() >= ENTRIES_MAX {
            ring.lines.pop_front();
        }
        let since = ring.quiet.min(generation);
        ring.lines.push_back(Line { id, made, since, at: generation });
    }

    /// Forgets everything: this machine does not know any more what it has missed.
    pub fn clear(&self) {
        self.0.lock().lines.clear();
    }

    /// Returns the position of a fetch that began at this generation; `None` if that is forgotten.
    pub(crate) fn position(&self, begun: u64) -> Option<SealedPosition> {
        let ring = self.0.lock();
        let behind = ring.lines.partition_point(|line| line.at <= begun);
        let line = ring.lines.get(behind.checked_sub(1)?)?;
        Some(SealedPosition { run: ring.run.clone()?, id: line.id, made: line.made })
    }

    /// Returns what a position is to this machine.
    pub(crate) fn since(&self, position: &SealedPosition) -> Since {
        let ring = self.0.lock();
        let Some(last) = ring.lines.back().filter(|_| ring.run.as_ref() == Some(&position.run)) else { return Since::Unknown };
        if last.id < position.id {
            return Since::Ahead;
        }
        match ring.lines.binary_search_by_key(&position.id, |line| line.id) {
            Ok(at) if ring.lines[at].made == position.made => Since::Generation(ring.lines[at].since),
            Ok(_) | Err(_) => Since::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> Run {
        Run(name.to_owned())
    }

    fn id(millis: u64) -> EntryId {
        EntryId { millis, sequence: 0 }
    }

    fn made(number: u64) -> EntryMaker {
        EntryMaker { session: "a".to_owned(), number }
    }

    fn applied(ring: &Ring, number: u64, generation: u64, is_quiet: bool) {
        ring.applied(&run("r"), id(number), Some(&made(number)), generation, is_quiet);
    }

    fn position(number: u64) -> SealedPosition {
        SealedPosition { run: run("r"), id: id(number), made: Mark::of(Some(&made(number))) }
    }

    /// A fetch is said to have begun after no entry that it may have begun before.
    #[test]
    fn a_fetch_has_the_position_of_the_last_entry_before_it() {
        let ring = Ring::default();
        assert_eq!(ring.position(9), None);
        applied(&ring, 1, 10, true);
        applied(&ring, 2, 11, true);
        applied(&ring, 3, 11, true);
        assert_eq!(ring.position(9), None);
        assert_eq!(ring.position(10), Some(position(1)));
        assert_eq!(ring.position(11), Some(position(3)), "an entry that purged nothing here");
        assert_eq!(ring.position(99), Some(position(3)));
    }

    /// A purge is carried out here before it is in the stream. A page from another machine that came into the stream between the two knows
    /// nothing of it.
    #[test]
    fn a_purge_of_this_machine_that_is_not_in_the_stream_yet_counts_for_pages_of_earlier_positions() {
        let ring = Ring::default();
        applied(&ring, 5, 9, true);
        // Generation 10 is our own purge, generation 11 an entry of another machine.
        applied(&ring, 6, 11, false);
        assert_eq!(ring.since(&position(6)), Since::Generation(9), "10 is purged for a page from there");
        assert_eq!(ring.position(11), Some(position(6)), "and yet a fetch of ours began after that entry");
        // Our own purge comes back.
        applied(&ring, 7, 11, true);
        assert_eq!(ring.since(&position(7)), Since::Generation(11));
        assert_eq!(ring.since(&position(6)), Since::Generation(9));
    }

    #[test]
    fn only_a_position_of_this_very_stream_is_known() {
        let ring = Ring::default();
        applied(&ring, 5, 9, true);
        assert_eq!(ring.since(&position(5)), Since::Generation(9));
        assert_eq!(ring.since(&position(6)), Since::Ahead);
        assert_eq!(ring.since(&position(4)), Since::Unknown);
        assert_eq!(ring.since(&SealedPosition { run: run("another"), ..position(5) }), Since::Unknown, "the server was started again");
        assert_eq!(
            ring.since(&SealedPosition { made: Mark::of(Some(&made(4))), ..position(5) }),
            Since::Unknown,
            "the stream was begun anew"
        );
        ring.applied(&run("r"), id(3), None, 12, true);
        assert_eq!((ring.since(&position(5)), ring.position(11)), (Since::Ahead, None), "an earlier entry is one of another stream");
        ring.clear();
        assert_eq!((ring.since(&position(5)), ring.position(99)), (Since::Unknown, None));
    }

    #[test]
    fn it_is_bounded() {
        let ring = Ring::default();
        for number in 1..=ENTRIES_MAX as u64 + 10 {
            applied(&ring, number, number, true);
        }
        assert_eq!(ring.0.lock().lines.len(), ENTRIES_MAX);
        assert_eq!(ring.since(&position(10)), Since::Unknown);
        assert_eq!(ring.since(&position(11)), Since::Generation(11));
    }
}
