//! Keys whose answers may not be shared, each until a time.
//!
//! The table has a fixed size, and no lock. A key has [`WAYS`] slots in one line of the processor's cache, so that a site whose answers all differ
//! pays for one line of memory with each. A new mark takes an empty slot, or that of the mark that ends first.
//!
//! A slot is two words, which are written one after the other. The first one is the key's word XORed with the second: two halves of different marks
//! belong to no key (Hyatt and Mann, A lock-less transposition table implementation, 2002).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::hash::KeyHash;

/// Slots of a key.
const WAYS: usize = 4;

/// Marks of keys, by their secret hashes.
pub(crate) struct Marks {
    lines: Box<[Line]>,
    used: AtomicUsize,
}

#[repr(align(64))]
#[derive(Default)]
struct Line([Slot; WAYS]);

/// An empty slot is zero.
#[derive(Default)]
struct Slot {
    checked: AtomicU64,
    until: AtomicU64,
}

impl Slot {
    fn until(&self, word: u64) -> Option<u64> {
        let (checked, until) = (self.checked.load(Relaxed), self.until.load(Relaxed));
        (until != 0 && checked ^ until == word).then_some(until)
    }

    fn set(&self, word: u64, until: u64) {
        self.checked.store(word ^ until, Relaxed);
        self.until.store(until, Relaxed);
    }
}

impl Marks {
    /// Creates a table of at most `max` marks, and of four at least.
    pub(crate) fn new(max: usize) -> Self {
        Self { lines: (0..(max / WAYS).max(1)).map(|_| Line::default()).collect(), used: AtomicUsize::new(0) }
    }

    fn slots(&self, hash: KeyHash) -> (&[Slot; WAYS], u64) {
        let (first, second) = hash.words();
        // The upper half of the product is below the number of lines.
        let line = (u128::from(first) * self.lines.len() as u128) >> 64;
        (&self.lines[usize::try_from(line).expect("below a usize")].0, second)
    }

    /// Returns until when a key is marked, in the milliseconds that [`set`](Self::set) was given.
    pub(crate) fn until(&self, hash: KeyHash) -> Option<u64> {
        let (slots, word) = self.slots(hash);
        slots.iter().find_map(|slot| slot.until(word))
    }

    /// Marks a key until a time in milliseconds. A time of zero has passed, and marks nothing.
    pub(crate) fn set(&self, hash: KeyHash, until: u64) {
        let (slots, word) = self.slots(hash);
        let own = slots.iter().find(|slot| slot.until(word).is_some());
        let Some(slot) = own.or_else(|| slots.iter().min_by_key(|slot| slot.until.load(Relaxed))) else { return };
        if slot.until.load(Relaxed) == 0 && until != 0 {
            self.used.fetch_add(1, Relaxed);
        }
        slot.set(word, until);
    }

    /// Removes the mark of a key.
    pub(crate) fn remove(&self, hash: KeyHash) {
        let (slots, word) = self.slots(hash);
        if let Some(slot) = slots.iter().find(|slot| slot.until(word).is_some()) {
            slot.set(0, 0);
            self.used.fetch_sub(1, Relaxed);
        }
    }

    /// Returns the number of marks, those included whose time has passed.
    pub(crate) fn len(&self) -> usize {
        self.used.load(Relaxed).min(self.lines.len() * WAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a key in the line that `first` chooses.
    const fn key(first: u64, second: u64) -> KeyHash {
        KeyHash::from_words(first, second)
    }

    #[test]
    fn a_mark_is_found_until_it_is_removed() {
        let marks = Marks::new(64);
        assert_eq!((marks.until(key(1, 2)), marks.len()), (None, 0));
        marks.set(key(1, 2), 1_000);
        marks.set(key(1, 2), 2_000);
        marks.set(key(u64::MAX, 2), 3_000);
        assert_eq!((marks.until(key(1, 2)), marks.until(key(1, 3)), marks.len()), (Some(2_000), None, 2));
        marks.remove(key(1, 2));
        marks.remove(key(1, 2));
        assert_eq!((marks.until(key(1, 2)), marks.until(key(u64::MAX, 2)), marks.len()), (None, Some(3_000), 1));
    }

    #[test]
    fn what_ends_first_makes_room() {
        let marks = Marks::new(1);
        for (second, until) in [(1, 40), (2, 10), (3, 30), (4, 20), (5, 50), (6, 15)] {
            marks.set(key(0, second), until);
        }
        let left = [1, 2, 3, 4, 5, 6].map(|second| marks.until(key(0, second)));
        assert_eq!((left, marks.len()), ([Some(40), None, Some(30), None, Some(50), Some(15)], 4));
    }

    #[test]
    fn two_halves_of_different_marks_belong_to_nobody() {
        let marks = Marks::new(4);
        let (slots, _) = marks.slots(key(0, 7));
        slots[0].set(7, 1_000);
        // Another thread has written the first word of its mark.
        slots[0].checked.store(8 ^ 2_000, Relaxed);
        assert_eq!((marks.until(key(0, 7)), marks.until(key(0, 8))), (None, None));
        slots[0].until.store(2_000, Relaxed);
        assert_eq!((marks.until(key(0, 7)), marks.until(key(0, 8))), (None, Some(2_000)));
    }

    #[test]
    fn the_table_is_bounded_whatever_is_marked() {
        let marks = Marks::new(100);
        for n in 0..10_000_u64 {
            marks.set(key(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n + 1), n + 1);
        }
        assert_eq!(marks.len(), 100);
    }
}
