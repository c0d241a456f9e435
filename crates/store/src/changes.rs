//! Tells which keys have changed, with one counter for each of many stripes: whoever keeps a resource learns without a lock, and without
//! writing to anything shared, whether it still is the stored one.
//!
//! The protocol is two orders. Who changes something changes it first and counts then. Who keeps something reads the counter first and
//! what is stored then. If the counter is later still the same, then every change that was finished when it was read is in what is kept:
//! the count of such a change was there to be read, so it was there when the counter was read first, and the change before it. Any other
//! key of the stripe counts as well; that costs one look at the store and no more.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::KeyHash;

/// The number of counters. Of two keys that share one, each is looked up again when the other changes.
const STRIPES: usize = 512;

/// A counter of changes. In a store it is an atomic word; in a test, every interleaving of it is tried.
pub(crate) trait Counter {
    /// Reads the count. Data read from the store afterwards is not older than this count.
    fn read(&self) -> u64;
    /// Counts a change that is already made.
    fn raise(&self);
}

impl Counter for AtomicU64 {
    fn read(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn raise(&self) {
        self.fetch_add(1, Ordering::Release);
    }
}

/// A copy of something stored, with the count that was read before it.
#[derive(Debug)]
pub(crate) struct AsOf<T> {
    pub(crate) value: T,
    seen: Cell<u64>,
}

impl<T> AsOf<T> {
    /// Reads the counter, and then the stored value.
    pub(crate) fn read(counter: &impl Counter, stored: impl FnOnce() -> T) -> Self {
        let seen = counter.read();
        Self { value: stored(), seen: Cell::new(seen) }
    }

    /// Returns whether nothing has changed since the copy was made.
    pub(crate) fn is_current(&self, counter: &impl Counter) -> bool {
        counter.read() == self.seen.get()
    }

    /// Returns the same copy in another form.
    pub(crate) fn with<U>(self, value: U) -> AsOf<U> {
        AsOf { value, seen: self.seen }
    }

    /// Takes over the count of a later copy that found the same value: this copy is as current as that one.
    pub(crate) fn confirm<U>(&self, later: &AsOf<U>) {
        self.seen.set(later.seen.get());
    }
}

/// The counters of changes, one for each stripe of keys. Worst case: 32 KiB.
pub(crate) struct Changes {
    stripes: Box<[Line]>,
}

/// A counter with a cache line of its own: a change of one stripe does not slow down cores that read the others.
#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

impl Changes {
    pub(crate) fn new() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Line::default()).collect() }
    }

    /// Returns the counter of a key.
    pub(crate) fn of(&self, hash: KeyHash) -> &AtomicU64 {
        &self.stripes[hash.stripe(STRIPES)].0
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Word;
    use loom::thread;

    use super::*;

    impl Counter for Word {
        fn read(&self) -> u64 {
            self.load(Ordering::Acquire)
        }

        fn raise(&self) {
            self.fetch_add(1, Ordering::Release);
        }
    }

    /// A model of a store with one stripe and one key. Accesses to the stored value are relaxed: only the counter orders them.
    #[derive(Default)]
    struct Model {
        counter: Word,
        stored: Word,
        /// The version whose change was finished last, for readers that learn of it.
        finished: Word,
    }

    impl Model {
        fn change(&self, version: u64) {
            self.stored.store(version, Ordering::Relaxed);
            self.counter.raise();
            self.finished.store(version, Ordering::Release);
        }

        fn keep(&self) -> AsOf<u64> {
            AsOf::read(&self.counter, || self.stored.load(Ordering::Relaxed))
        }

        /// Returns the answer of a reader that has a copy, and the version that it must not be older than.
        fn answer(&self, kept: &mut AsOf<u64>) -> (u64, u64) {
            let finished = self.finished.load(Ordering::Acquire);
            if !kept.is_current(&self.counter) {
                *kept = self.keep();
            }
            (kept.value, finished)
        }
    }

    /// The promise of a purge or a replacement: once it has returned, a reader that learns of that never gets the earlier value.
    #[test]
    fn what_was_replaced_is_answered_by_nobody_who_knows() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let writer = thread::spawn({
                let model = Arc::clone(&model);
                move || {
                    model.change(1);
                    model.change(2);
                }
            });
            let mut kept = model.keep();
            for _ in 0..2 {
                let (answer, finished) = model.answer(&mut kept);
                assert!(answer >= finished, "{answer} after {finished}");
            }
            writer.join().expect("the writer ends");
            assert_eq!(model.answer(&mut kept).0, 2);
        });
    }

    /// Two writers of one stripe each change a key of their own, as the writer locks allow them to do at once.
    #[test]
    fn a_change_is_not_lost_among_others_of_its_stripe() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let mut kept = model.keep();
            let other = thread::spawn({
                let model = Arc::clone(&model);
                move || model.counter.raise()
            });
            let writer = thread::spawn({
                let model = Arc::clone(&model);
                move || model.change(1)
            });
            let (answer, finished) = model.answer(&mut kept);
            assert!(answer >= finished, "{answer} after {finished}");
            other.join().expect("the other ends");
            writer.join().expect("the writer ends");
            assert_eq!(model.answer(&mut kept).0, 1);
        });
    }

    /// The order matters, and the model would show it: if the change is counted first, an old copy passes for a new one.
    #[test]
    #[should_panic(expected = "0 after 1")]
    fn counting_before_changing_would_be_noticed() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let writer = thread::spawn({
                let model = Arc::clone(&model);
                move || {
                    model.counter.raise();
                    model.stored.store(1, Ordering::Relaxed);
                    model.finished.store(1, Ordering::Release);
                }
            });
            let mut kept = model.keep();
            let (answer, finished) = model.answer(&mut kept);
            assert!(answer >= finished, "{answer} after {finished}");
            writer.join().expect("the writer ends");
        });
    }
}
