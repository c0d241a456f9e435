//! Estimates of what each of any number of names has cost, in memory of a fixed size.
//!
//! The count-min sketch of Cormode and Muthukrishnan (2005) with conservative update: each name has one cell in each of [`ROWS`] rows, and its
//! estimate is the least of them. Others share the cells, so an estimate is never too low, and too high by what the others have put there: about the
//! mean of a row's cells. Names are hashed with keys of the process, so nobody can aim at another's cells.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::amount::Amount;

/// Rows. With four, the chance that a name shares all its cells with something large is one in a million.
const ROWS: usize = 4;

/// Estimates of costs by name. Shared by all sites; a name is only counted by one thread at a time, as its site is locked.
pub(crate) struct Sketch {
    /// The cells of one row are a power of two.
    width: usize,
    /// The cells of costs. Empty where nothing but requests is counted.
    costs: Box<[Cell]>,
    /// The counts of requests. Empty where costs are counted: they have the requests beside them.
    requests: Box<[AtomicU32]>,
    /// The sum of the cells of the first row.
    filled_micros: AtomicU64,
    filled_requests: AtomicU64,
}

/// Counts what the names that share a cell have cost together, in one line of memory.
#[derive(Debug, Default)]
struct Cell {
    micros: AtomicU64,
    requests: AtomicU32,
}

/// An estimate of what a name has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// The cost that it has most likely had.
    pub(crate) likely: Amount,
    /// The cost that it has had at least, but for rare chance.
    pub(crate) certain: Amount,
}

impl Sketch {
    pub(crate) fn of_costs(width: usize) -> Self {
        Self::new(width, true)
    }

    pub(crate) fn of_requests(width: usize) -> Self {
        Self::new(width, false)
    }

    fn new(width: usize, costs: bool) -> Self {
        let width = width.next_power_of_two();
        let cells = width * ROWS;
        Self {
            width,
            costs: (0..if costs { cells } else { 0 }).map(|_| Cell::default()).collect(),
            requests: (0..if costs { 0 } else { cells }).map(|_| AtomicU32::new(0)).collect(),
            filled_micros: AtomicU64::new(0),
            filled_requests: AtomicU64::new(0),
        }
    }

    /// Counts for a name, and returns what it has cost, this included.
    pub(crate) fn add(&self, hash: u64, amount: Amount) -> Estimate {
        let places = self.places(hash);
        let requests = self.add_requests(places, amount.requests);
        let micros = if self.costs.is_empty() { 0 } else { self.add_micros(places, amount.micros) };
        let width = self.width as u64;
        // What others have put into the cells of this one: on average the mean of all; twice of it nearly never.
        let noise = (self.filled_micros.load(Relaxed) / width, self.filled_requests.load(Relaxed) / width);
        let less = |times: u64| Amount {
            micros: micros.saturating_sub(noise.0.saturating_mul(times)).max(amount.micros),
            requests: requests.saturating_sub(noise.1.saturating_mul(times)).max(amount.requests),
            bytes: amount.bytes,
        };
        Estimate { likely: less(1), certain: less(2) }
    }

    fn add_micros(&self, places: [usize; ROWS], micros: u64) -> u64 {
        let cells = places.map(|at| &self.costs[at].micros);
        let least = cells.iter().map(|cell| cell.load(Relaxed)).min().unwrap_or(0);
        let estimate = least.saturating_add(micros);
        for (row, cell) in cells.into_iter().enumerate() {
            // Most cells are above it already, because of others: looking costs less than an exchange.
            if cell.load(Relaxed) < estimate {
                let before = cell.fetch_max(estimate, Relaxed);
                if row == 0 {
                    self.filled_micros.fetch_add(estimate.saturating_sub(before), Relaxed);
                }
            }
        }
        estimate
    }

    fn add_requests(&self, places: [usize; ROWS], requests: u64) -> u64 {
        let cells = places.map(|at| if self.costs.is_empty() { &self.requests[at] } else { &self.costs[at].requests });
        let least = cells.iter().map(|cell| cell.load(Relaxed)).min().unwrap_or(0);
        let estimate = least.saturating_add(u32::try_from(requests).unwrap_or(u32::MAX));
        for (row, cell) in cells.into_iter().enumerate() {
            if cell.load(Relaxed) < estimate {
                let before = cell.fetch_max(estimate, Relaxed);
                if row == 0 {
                    self.filled_requests.fetch_add(u64::from(estimate.saturating_sub(before)), Relaxed);
                }
            }
        }
        u64::from(estimate)
    }

    fn places(&self, hash: u64) -> [usize; ROWS] {
        // Two halves of a hash make as many as are wanted (Kirsch and Mitzenmacher, 2006).
        let (first, step) = (hash, (hash >> 32) | 1);
        std::array::from_fn(|row| {
            let mixed = first.wrapping_add(step.wrapping_mul(row as u64));
            let in_row = usize::try_from(mixed & (self.width as u64 - 1)).expect("less than the width");
            row * self.width + in_row
        })
    }

    /// Makes everything worth half.
    pub(crate) fn halve(&self) {
        for cell in &self.costs {
            cell.micros.store(cell.micros.load(Relaxed) / 2, Relaxed);
        }
        for requests in self.costs.iter().map(|cell| &cell.requests).chain(&self.requests) {
            requests.store(requests.load(Relaxed) / 2, Relaxed);
        }
        for filled in [&self.filled_micros, &self.filled_requests] {
            filled.store(filled.load(Relaxed) / 2, Relaxed);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.costs) + size_of_val(&*self.requests)
    }
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sketch").field("width", &self.width).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        hash::{BuildHasher, RandomState},
    };

    use proptest::prelude::*;

    use super::*;

    fn one(micros: u64) -> Amount {
        Amount { micros, requests: 1, bytes: 0 }
    }

    #[test]
    fn without_others_an_estimate_is_exact() {
        let sketch = Sketch::of_costs(1_024);
        sketch.add(7, one(10));
        let estimate = sketch.add(7, one(5));
        assert_eq!((estimate.likely.requests, estimate.likely.micros), (2, 15));
    }

    #[test]
    fn a_name_that_comes_after_a_hundred_thousand_others_is_known_for_what_it_costs() {
        let (sketch, keys) = (Sketch::of_costs(8_192), RandomState::new());
        for n in 0..100_000 {
            sketch.add(keys.hash_one(n), one(5_000));
        }
        let mut last = sketch.add(keys.hash_one("late"), one(10_000));
        (1..300).for_each(|_| last = sketch.add(keys.hash_one("late"), one(10_000)));
        // It has cost 3 s; the others have put 61 ms into each cell on average.
        assert!((2_850_000..=3_000_000).contains(&last.certain.micros), "{last:?}");
        assert!((2_900_000..=3_100_000).contains(&last.likely.micros), "{last:?}");
        let stranger = sketch.add(keys.hash_one("a stranger"), one(5_000));
        assert!(stranger.certain.micros < 30_000, "{stranger:?}");
    }

    proptest! {
        /// The estimate before noise is taken off is never too low; `likely` and `certain` are never below what the call itself adds.
        #[test]
        fn an_estimate_is_between_what_was_said_and_what_was_counted(names in prop::collection::vec((0_u8..40, 1_u64..1_000), 1..400)) {
            let (sketch, keys, mut truth) = (Sketch::of_costs(64), RandomState::new(), HashMap::<u8, u64>::new());
            for (name, micros) in names {
                let sum = truth.entry(name).or_default();
                *sum += micros;
                let estimate = sketch.add(keys.hash_one(name), one(micros));
                let noise = sketch.filled_micros.load(Relaxed) / 64;
                prop_assert!(estimate.certain.micros <= estimate.likely.micros);
                prop_assert!(estimate.likely.micros + noise >= *sum);
                prop_assert!(estimate.certain.micros >= micros);
            }
        }
    }
}
