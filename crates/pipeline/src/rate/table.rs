//! The buckets of all addresses, in bounded memory.
//!
//! An address is found by a number that a secret makes of it, so that nobody can choose where it lies, and what machines tell each other names nobody.
//! Two addresses have the same number once in 2^64; they share a bucket, then.

use std::fmt;

use parking_lot::Mutex;

use super::{LimitSharing, Rate, bucket::Bucket};

/// The sets of buckets. One request looks at one set.
const SETS: usize = 1 << 13;
/// The buckets of a set. With all sets full there are 65,536 buckets of 96 bytes: 6.3 MiB at most.
const OF_SET: usize = 8;

/// The buckets.
pub(super) struct Table(Box<[Mutex<Vec<Bucket>>]>);

impl Table {
    /// Makes an empty table, which grows with the addresses.
    pub(super) fn new() -> Self {
        Self((0..SETS).map(|_| Mutex::default()).collect())
    }

    /// Does something with the bucket of an address. If there is none, one is made; in a full set, the one that owes least makes room.
    pub(super) fn with<T>(&self, tag: u64, rate: Rate, together: LimitSharing, now: u64, act: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut set = self.set(tag).lock();
        let at = set.iter().position(|bucket| bucket.tag == tag).unwrap_or_else(|| {
            let new = Bucket::new(tag, rate, together, now);
            let fullest = (0..set.len()).max_by(|a, b| set[*a].fullness(rate, now).total_cmp(&set[*b].fullness(rate, now)));
            match fullest.filter(|_| set.len() >= OF_SET) {
                Some(at) => {
                    set[at] = new;
                    at
                }
                None => {
                    set.push(new);
                    set.len() - 1
                }
            }
        });
        act(&mut set[at])
    }

    /// Does something with the bucket of an address, if there is one.
    pub(super) fn find<T>(&self, tag: u64, act: impl FnOnce(&mut Bucket) -> T) -> Option<T> {
        self.set(tag).lock().iter_mut().find(|bucket| bucket.tag == tag).map(act)
    }

    fn set(&self, tag: u64) -> &Mutex<Vec<Bucket>> {
        // The number is as good as random.
        &self.0[usize::try_from(tag % SETS as u64).unwrap_or_default()]
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 1.0, burst: 3.0 };

    /// An address that owes is remembered, however many others come by; and there are never more buckets than there is room for.
    #[test]
    fn a_crowd_of_addresses_does_not_wash_away_those_that_owe() {
        let table = Table::new();
        let ask = |tag| table.with(tag, RATE, LimitSharing::Alone, 1_000, |bucket| bucket.ask(RATE, LimitSharing::Alone, 1_000));
        let owing = 7;
        for _ in 0..3 {
            assert_eq!(ask(owing), Ok(()));
        }
        assert!(ask(owing).is_err());
        // All of them lie in the set of the one that owes.
        for other in 1..1_000 {
            assert_eq!(ask(owing + other * SETS as u64), Ok(()));
        }
        assert!(ask(owing).is_err());
        assert_eq!(table.set(owing).lock().len(), OF_SET);
    }
}
