//! The number of requests that may still be made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::schedule::Schedule;

/// The most permissions that a worker takes at a time.
const BATCH_MAX: u64 = 16;

/// A worker takes such a part of what is left, so that all workers have something to do until the end.
const PART: u64 = 64;

/// The number of requests that may still be made, for all workers together.
#[derive(Debug)]
pub struct Budget {
    left: Option<AtomicU64>,
    warm_up: Duration,
}

impl Budget {
    /// Makes a budget of `requests`; `None` means no limit. Requests that are meant to be sent within `warm_up` need no permission.
    #[must_use]
    pub fn new(requests: Option<u64>, warm_up: Duration) -> Self {
        Self { left: requests.map(AtomicU64::new), warm_up }
    }

    /// Returns the budget of each of `workers`, for `requests` in all.
    ///
    /// Clients that stay share one budget: whoever is answered first asks next. Where a rate says what is due, each worker has its part, because the
    /// first requests in time are alternately theirs: a worker that is behind then makes the requests that it owes, and no other one makes later ones
    /// in their place. The visitors of a log are not dealt out evenly, so its budget is shared.
    #[must_use]
    pub fn of_workers(schedule: &Schedule, requests: Option<u64>, warm_up: Duration, workers: u32) -> Vec<Arc<Self>> {
        match (schedule, requests) {
            (Schedule::Rate { .. } | Schedule::Arrivals { .. }, Some(requests)) => {
                let of = u64::from(workers);
                (0..of).map(|worker| Arc::new(Self::new(Some(requests / of + u64::from(worker < requests % of)), warm_up))).collect()
            }
            _ => {
                let shared = Arc::new(Self::new(requests, warm_up));
                vec![shared; workers as usize]
            }
        }
    }

    /// Returns whether a request that is meant to be sent at `intended` needs a permission.
    #[must_use]
    pub fn counts(&self, intended: Duration) -> bool {
        intended >= self.warm_up
    }

    /// Takes permissions into `mine`, a worker's own store of them, and one out of it. Returns whether a request may be made that is meant
    /// to be sent at `intended`.
    pub fn take(&self, mine: &mut u64, intended: Duration) -> bool {
        if !self.counts(intended) {
            return true;
        }
        if *mine == 0 {
            let Some(left) = &self.left else { return true };
            let batch = |left: u64| (left / PART).clamp(1, BATCH_MAX);
            let take = |left: u64| (left > 0).then(|| left - batch(left));
            let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) else { return false };
            *mine = batch(before);
        }
        *mine -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Profile, Spacing};

    #[test]
    fn workers_together_take_exactly_what_there_is_and_the_last_ones_alike() {
        let budget = Budget::new(Some(1000), Duration::ZERO);
        let (mut taken, mut stores) = ([0; 3], [0; 3]);
        // In turns, until nobody gets anything.
        loop {
            let before = taken;
            for (taken, mine) in taken.iter_mut().zip(&mut stores) {
                *taken += u32::from(budget.take(mine, Duration::ZERO));
            }
            if taken == before {
                break;
            }
        }
        assert_eq!(taken.iter().sum::<u32>(), 1000);
        assert!(taken.iter().all(|taken| (330..340).contains(taken)), "{taken:?}");
    }

    #[test]
    fn a_worker_ahead_of_time_makes_no_requests_that_another_one_owes() {
        let rate = || Profile::constant(200.0, None);
        let taken = |schedule: &Schedule| -> Vec<usize> {
            let budgets = Budget::of_workers(schedule, Some(11), Duration::ZERO, 3);
            budgets.iter().map(|budget| (0..1000).filter(|_| budget.take(&mut 0, Duration::ZERO)).count()).collect()
        };
        // Requests 0, 3, 6 and 9 are the first worker's, 1, 4, 7 and 10 the second one's.
        assert_eq!(taken(&Schedule::Rate { rate: rate(), spacing: Spacing::Even, clients: 10 }), [4, 4, 3]);
        assert_eq!(taken(&Schedule::Arrivals { rate: rate(), spacing: Spacing::Poisson }), [4, 4, 3]);
        assert_eq!(taken(&Schedule::Closed { clients: rate() }), [11, 0, 0]);
    }

    #[test]
    fn without_a_number_there_is_no_end() {
        let budget = Budget::new(None, Duration::ZERO);
        assert!((0..1000).all(|_| budget.take(&mut 0, Duration::ZERO)));
    }

    #[test]
    fn requests_of_the_warm_up_take_nothing_from_the_number_that_was_asked_for() {
        let budget = Budget::new(Some(50), Duration::from_secs(20));
        let mut mine = 0;
        let taken = |second, mine: &mut u64| (0..1000).filter(|_| budget.take(mine, Duration::from_secs(second))).count();
        assert_eq!([taken(0, &mut mine), taken(19, &mut mine), taken(20, &mut mine), taken(21, &mut mine)], [1000, 1000, 50, 0]);
    }
}
