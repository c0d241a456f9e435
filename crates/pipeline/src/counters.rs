//! What a worker counts. Each worker has its own; a reader sums them up.
//!
//! A counter has one writer, so it is read and written, not added to atomically: a shared cache line per request is the classic way to
//! make many cores slower than one.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use parking_lot::Mutex;
use semantics::{
    cache_status::{Forwarded, Outcome},
    coding::Coding,
};

/// The outcomes, as they are named in metrics.
pub const OUTCOMES: [&str; 9] = ["hit", "updating", "stale", "revalidated", "expired", "miss", "bypass", "refused", "none"];

/// One worker's counters.
#[derive(Debug, Default)]
pub struct Counters {
    responses: [AtomicU64; 6],
    outcomes: [AtomicU64; OUTCOMES.len()],
    body_bytes: AtomicU64,
    collapsed: AtomicU64,
    aborted: AtomicU64,
    origin_requests: AtomicU64,
    origin_failures: AtomicU64,
    origin_millis: AtomicU64,
    coded: [AtomicU64; 3],
    hinted: AtomicU64,
    /// Refusals are rare, and a reader comes once in a while: the lock is free.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
}

/// The sum of several workers' counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Responses by the hundreds of their status; index 0: not HTTP.
    pub responses: [u64; 6],
    /// Responses by outcome, in the order of [`OUTCOMES`].
    pub outcomes: [u64; OUTCOMES.len()],
    /// Content bytes sent.
    pub body_bytes: u64,
    /// Requests that shared another's way to the origin.
    pub collapsed: u64,
    /// Responses that did not reach their end.
    pub aborted: u64,
    /// Requests sent to origins.
    pub origin_requests: u64,
    /// Those that failed.
    pub origin_failures: u64,
    /// Milliseconds waited for origins' response heads.
    pub origin_millis: u64,
    /// Responses by their content coding: gzip, br, zstd.
    pub coded: [u64; 3],
    /// Requests whose browser was told early what the page will need.
    pub hinted: u64,
    /// Messages and connections that were refused, by reason: as many entries as the program has reasons.
    pub refusals: BTreeMap<&'static str, u64>,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Counters {
    /// A response was sent.
    pub fn responded(&self, status: u16, body_bytes: u64, outcome: Option<Outcome>, collapsed: bool, complete: bool) {
        add(&self.responses[usize::from(status / 100).min(5)], 1);
        add(&self.outcomes[outcome.map_or(8, index)], 1);
        add(&self.body_bytes, body_bytes);
        if collapsed {
            add(&self.collapsed, 1);
        }
        if !complete {
            add(&self.aborted, 1);
        }
    }

    /// A response had this content coding.
    pub fn coded(&self, coding: Coding) {
        add(&self.coded[coding as usize], 1);
    }

    pub(crate) fn hinted(&self) {
        add(&self.hinted, 1);
    }

    /// A message was refused before it was a request, or a connection ended for what came on it.
    pub fn refused(&self, status: u16, reason: &'static str) {
        add(&self.responses[usize::from(status / 100).min(5)], 1);
        add(&self.outcomes[7], 1);
        *self.refusals.lock().entry(reason).or_default() += 1;
    }

    pub(crate) fn origin_answered(&self, millis: u64, failed: bool) {
        add(&self.origin_requests, 1);
        add(&self.origin_millis, millis);
        if failed {
            add(&self.origin_failures, 1);
        }
    }

    /// Adds what this worker has counted to `sum`.
    pub fn add_to(&self, sum: &mut Snapshot) {
        for (to, from) in sum.responses.iter_mut().zip(&self.responses).chain(sum.outcomes.iter_mut().zip(&self.outcomes)) {
            *to += from.load(Relaxed);
        }
        sum.body_bytes += self.body_bytes.load(Relaxed);
        sum.collapsed += self.collapsed.load(Relaxed);
        sum.aborted += self.aborted.load(Relaxed);
        sum.origin_requests += self.origin_requests.load(Relaxed);
        sum.origin_failures += self.origin_failures.load(Relaxed);
        sum.origin_millis += self.origin_millis.load(Relaxed);
        for (reason, count) in &*self.refusals.lock() {
            *sum.refusals.entry(reason).or_default() += count;
        }
        sum.hinted += self.hinted.load(Relaxed);
        for (to, from) in sum.coded.iter_mut().zip(&self.coded) {
            *to += from.load(Relaxed);
        }
    }
}

const fn index(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Hit => 0,
        Outcome::Updating => 1,
        Outcome::Stale { .. } => 2,
        Outcome::Revalidated => 3,
        Outcome::Forwarded(Forwarded::Stale) => 4,
        Outcome::Forwarded(Forwarded::UriMiss | Forwarded::VaryMiss | Forwarded::Miss | Forwarded::Partial) => 5,
        Outcome::Forwarded(Forwarded::Bypass | Forwarded::Method | Forwarded::Request) => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_all_workers_are_summed_up_by_reason() {
        let workers = [Counters::default(), Counters::default()];
        workers[0].refused(0, "a flood");
        workers[1].refused(0, "a flood");
        workers[1].refused(400, "no host");
        let mut sum = Snapshot::default();
        workers.iter().for_each(|worker| worker.add_to(&mut sum));
        assert_eq!(sum.refusals, BTreeMap::from([("a flood", 2), ("no host", 1)]));
        assert_eq!((sum.outcomes[7], sum.responses[0], sum.responses[4]), (3, 2, 1));
    }

    #[test]
    fn outcomes_have_the_names_of_x_cache() {
        for outcome in [
            Outcome::Hit,
            Outcome::Updating,
            Outcome::Stale { forwarded: true },
            Outcome::Revalidated,
            Outcome::Forwarded(Forwarded::Stale),
            Outcome::Forwarded(Forwarded::UriMiss),
            Outcome::Forwarded(Forwarded::Bypass),
        ] {
            assert_eq!(OUTCOMES[index(outcome)].to_uppercase(), outcome.x_cache());
        }
    }
}
