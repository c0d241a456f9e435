//! What is read most, in bounded memory: who comes back first after a purge.
//!
//! The space-saving counts of Metwally, Agrawal and El Abbadi (2005), in small sets: a key belongs to one set of [`WAYS`] places; where all
//! are taken, a newcomer takes over the place with the least count and goes on from there. What the count owes to its predecessors is kept
//! as its error, so that a crawler's long tail does not pass for popular. Counts are halved as time goes by, counted in requests: the
//! favourites of last week make room.
//!
//! Hits are counted one in [`HIT_SAMPLE`]: on their path there is room for a few instructions, not for a lock.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use parking_lot::Mutex;
use store::KeyHash;

/// The number of hits of which one is counted, for all of them.
const HIT_SAMPLE: u32 = 16;

/// The number of sets. Together they have 1,024 keys: more than a refill gets to before its pages are read anyway.
const SETS: usize = 128;
const WAYS: usize = 8;

/// Bytes of the longest key that is counted: with this bound, all of them take 1 MiB at most.
const KEY_BYTES_MAX: usize = 1_024;

/// The number of requests after which every count is worth half.
const HALF_LIFE: u64 = 65_536;

/// Counts of the keys that are asked for most. Shared by all workers.
pub(crate) struct Popularity {
    sets: Box<[Mutex<Set>]>,
    observed: AtomicU64,
}

#[derive(Default)]
struct Set {
    halved: u64,
    places: Vec<CountedKey>,
}

struct CountedKey {
    hash: KeyHash,
    key: Box<[u8]>,
    count: u32,
    /// At most so much of the count belongs to keys that had this place before.
    error: u32,
}

impl Popularity {
    pub(crate) fn new() -> Self {
        Self { sets: (0..SETS).map(|_| Mutex::default()).collect(), observed: AtomicU64::new(0) }
    }

    /// Counts a request for this key that went the long way.
    pub(crate) fn looked_up(&self, hash: KeyHash, key: &[u8]) {
        self.count(hash, key, 1);
    }

    fn count(&self, hash: KeyHash, key: &[u8], weight: u32) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        let halved = self.observed.fetch_add(u64::from(weight), Relaxed) / HALF_LIFE;
        let mut set = self.sets[hash.stripe(SETS)].lock();
        set.halve(halved);
        if let Some(place) = set.places.iter_mut().find(|place| place.hash == hash) {
            place.count = place.count.saturating_add(weight);
        } else if set.places.len() < WAYS {
            set.places.push(CountedKey { hash, key: key.into(), count: weight, error: 0 });
        } else if let Some(least) = set.places.iter_mut().min_by_key(|place| place.count) {
            let error = least.count;
            *least = CountedKey { hash, key: key.into(), count: error.saturating_add(weight), error };
        }
    }

    /// Returns the keys, those first that were certainly asked for most.
    pub(crate) fn most(&self) -> Vec<(KeyHash, Box<[u8]>)> {
        let halved = self.observed.load(Relaxed) / HALF_LIFE;
        let mut all = Vec::new();
        for set in &self.sets {
            let mut set = set.lock();
            set.halve(halved);
            all.extend(set.places.iter().map(|place| (place.count - place.error, place.count, place.hash, place.key.clone())));
        }
        all.sort_by(|a, b| (b.0, b.1, &a.3).cmp(&(a.0, a.1, &b.3)));
        all.into_iter().map(|(_, _, hash, key)| (hash, key)).collect()
    }
}

impl Set {
    fn halve(&mut self, halved: u64) {
        // Another thread may have seen a later count.
        let times = halved.saturating_sub(self.halved).min(31);
        self.halved = self.halved.max(halved);
        if times > 0 {
            for place in &mut self.places {
                // In this order the error never exceeds the count.
                place.error >>= times;
                place.count >>= times;
            }
        }
    }
}

impl std::fmt::Debug for Popularity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Popularity").field("observed", &self.observed).finish_non_exhaustive()
    }
}

/// One worker's turn-taking, which decides which of its hits are counted.
#[derive(Debug, Default)]
pub(crate) struct Sampler(Cell<u32>);

impl Sampler {
    /// Counts a hit, if it is its turn. Mostly one addition and one comparison; `hash` is asked for only when it is this one's turn.
    #[inline]
    pub(crate) fn hit(&self, popularity: &Popularity, key: &[u8], hash: impl FnOnce(&[u8]) -> KeyHash) {
        let turn = self.0.get() + 1;
        if turn < HIT_SAMPLE {
            self.0.set(turn);
        } else {
            self.0.set(0);
            popularity.count(hash(key), key, HIT_SAMPLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use store::StoreOptions;

    use super::*;
    use crate::Store;

    fn names(popularity: &Popularity, n: usize) -> Vec<String> {
        popularity.most().into_iter().take(n).map(|(_, key)| String::from_utf8_lossy(&key).into_owned()).collect()
    }

    fn store() -> Store {
        Store::new(StoreOptions::with_memory(1 << 20))
    }

    #[test]
    fn the_most_read_come_first_in_spite_of_a_crawler() {
        let (store, popularity) = (store(), Popularity::new());
        let ask = |key: &str| popularity.looked_up(store.hash(key.as_bytes()), key.as_bytes());
        for round in 0..40 {
            for (page, times) in [("home", 8), ("post", 4), ("about", 2)] {
                (0..times).for_each(|_| ask(page));
            }
            // Two hundred pages that nobody asks for again.
            (0..200).for_each(|n| ask(&format!("old-{round}-{n}")));
        }
        assert_eq!(names(&popularity, 3), ["home", "post", "about"]);
        assert!(popularity.most().len() <= SETS * WAYS);
    }

    #[test]
    fn yesterdays_favourite_makes_room() {
        let (store, popularity) = (store(), Popularity::new());
        let ask = |key: &str, times: u64| (0..times).for_each(|_| popularity.looked_up(store.hash(key.as_bytes()), key.as_bytes()));
        ask("yesterday", HALF_LIFE / 2);
        ask("filler", 3 * HALF_LIFE);
        ask("today", HALF_LIFE / 4);
        assert_eq!(names(&popularity, 3), ["filler", "today", "yesterday"]);
    }

    #[test]
    fn hits_are_sampled_and_weigh_accordingly() {
        let (store, popularity, sampler) = (store(), Popularity::new(), Sampler::default());
        for _ in 0..HIT_SAMPLE * 3 {
            sampler.hit(&popularity, b"hit", |key| store.hash(key));
        }
        (0..HIT_SAMPLE * 3 - 1).for_each(|_| popularity.looked_up(store.hash(b"miss"), b"miss"));
        assert_eq!(popularity.observed.load(Relaxed), u64::from(HIT_SAMPLE * 6 - 1));
        assert_eq!(names(&popularity, 2), ["hit", "miss"]);
    }

    #[test]
    fn a_key_of_any_length_costs_no_more_than_its_bound() {
        let (store, popularity) = (store(), Popularity::new());
        let long = vec![b'a'; KEY_BYTES_MAX + 1];
        popularity.looked_up(store.hash(&long), &long);
        assert!(popularity.most().is_empty());
    }
}
