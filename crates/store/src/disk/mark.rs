//! Says where a response in memory is on the disk: one word that a worker and the writing thread agree by.
//!
//! A response is replaced or purged while its file may be anywhere between "queued" and "written". Whoever takes it out of the store marks
//! it dead; the writer, when the file stands, asks the mark before it tells anybody. One of the two sees the other, so no file is left
//! behind that nobody knows, and no lock is held while the disk works.

use std::sync::atomic::{AtomicU64, Ordering};

const NONE: u64 = 0;
const QUEUED: u64 = 1;
const WRITTEN: u64 = 2;
const DEAD: u64 = 3;
/// The state of a response that is never to be written, because the caller said so.
const OFF: u64 = 4;
const BITS: u32 = 3;

/// The state, and the sequence number of the file. See the module.
#[derive(Debug, Default)]
pub(crate) struct Mark(AtomicU64);

impl Mark {
    /// Creates the mark of a response that was read from the file of this number.
    pub(crate) const fn written(sequence: u64) -> Self {
        Self(AtomicU64::new(sequence << BITS | WRITTEN))
    }

    /// Notes that the response was read from the file of this number.
    pub(crate) fn set_written(&self, sequence: u64) {
        self.0.store(sequence << BITS | WRITTEN, Ordering::Release);
    }

    /// Returns a mark that says the same for another response in the same place of the store. `None` while the file is being written, as the writer
    /// knows this mark alone, and for a response that was taken out. Call it with the key's writer lock held: nothing else begins to write or
    /// takes out.
    pub(crate) fn settled(&self) -> Option<Self> {
        let word = self.0.load(Ordering::Acquire);
        matches!(word & 7, NONE | WRITTEN | OFF).then(|| Self(AtomicU64::new(word)))
    }

    /// Notes that the response must never be written.
    pub(crate) fn keep_off(&self) {
        self.0.store(OFF, Ordering::Relaxed);
    }

    /// Notes that the response is about to be queued under this number. Returns `false` if it must not be written.
    pub(crate) fn queue(&self, sequence: u64) -> bool {
        self.0.compare_exchange(NONE, sequence << BITS | QUEUED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Notes that the queue did not accept the response, or that it could not be written.
    pub(crate) fn unqueue(&self) {
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| (word & 7 == QUEUED).then_some(NONE));
    }

    /// Notes that the file is complete. Returns `false` if the response was marked dead before: then the file must be removed.
    pub(crate) fn write(&self) -> bool {
        let written = |word| (word & 7 == QUEUED).then_some((word & !7) | WRITTEN);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, written).is_ok()
    }

    /// Notes that the response was taken out of the store. Returns the number of its file, if that is written.
    pub(crate) fn kill(&self) -> Option<u64> {
        let word = self.0.swap(DEAD, Ordering::AcqRel);
        (word & 7 == WRITTEN).then_some(word >> BITS)
    }

    /// Returns whether the response was taken out of the store.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) & 7 == DEAD
    }

    /// Returns the number of the file, if that is written.
    pub(crate) fn sequence(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        (word & 7 == WRITTEN).then_some(word >> BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_writer_and_killer_takes_the_file_away() {
        let mark = Mark::default();
        assert!(mark.queue(5));
        assert_eq!(mark.sequence(), None);
        assert!(mark.write());
        assert_eq!((mark.sequence(), mark.kill(), mark.kill()), (Some(5), Some(5), None));

        let mark = Mark::default();
        assert!(mark.queue(6));
        assert_eq!(mark.kill(), None, "the writer will see it");
        assert!(!mark.write() && mark.is_dead());
    }

    #[test]
    fn what_is_dead_or_kept_off_is_not_queued() {
        let (dead, off, again) = (Mark::default(), Mark::default(), Mark::default());
        let _ = dead.kill();
        off.keep_off();
        assert!(!dead.queue(1) && !off.queue(1));
        assert!(again.queue(1) && !again.queue(2));
        again.unqueue();
        assert!(again.queue(3));
        assert!(again.settled().is_none() && dead.settled().is_none(), "a writer or nobody would see the copy");
        assert!(again.write());
        assert_eq!(again.settled().map(|mark| mark.kill()), Some(Some(3)));
        assert!(off.settled().is_some_and(|mark| !mark.queue(1)) && Mark::default().settled().is_some());
        let read = Mark::default();
        read.set_written(7);
        assert_eq!(read.sequence(), Some(7));
    }
}
