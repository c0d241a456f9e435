//! Keeps all workers together below a permitted rate.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::permission::Cap;

/// Requests that may leave at once after a pause, and at the beginning.
const BURST: u64 = 5;

/// A bucket of tokens that fills at the permitted rate. Each request takes one.
///
/// It has the moment at which the bucket would be full again: that is one number, so workers need no lock.
#[derive(Debug)]
pub struct Throttle {
    /// Nanoseconds from token to token.
    every: u64,
    /// The time at which the bucket is full, in nanoseconds.
    full_at: AtomicU64,
    /// The most connections of all workers together.
    connections: u32,
}

impl Throttle {
    pub(super) fn new(cap: Cap) -> Self {
        Self { every: 1_000_000_000 / u64::from(cap.rate.max(1)), full_at: AtomicU64::new(0), connections: cap.clients.max(1) }
    }

    /// Takes a token for a request.
    ///
    /// # Errors
    /// When nothing is left: says when there will be one, if nobody else takes it.
    pub fn take(&self, now: Duration) -> Result<(), Duration> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let after = |full_at: u64| full_at.max(now) + self.every;
        let most = now.saturating_add(BURST * self.every);
        let take = |full_at: u64| Some(after(full_at)).filter(|after| *after <= most);
        match self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(full_at) => Err(Duration::from_nanos(after(full_at) - BURST * self.every)),
        }
    }

    /// Takes a token for a request that cannot wait. Others wait for it.
    pub fn charge(&self) {
        self.full_at.fetch_add(self.every, Ordering::Relaxed);
    }

    /// Gives a token back that no request needed.
    pub fn give_back(&self) {
        self.full_at.fetch_sub(self.every, Ordering::Relaxed);
    }

    /// Returns the most connections of one worker.
    #[must_use]
    pub fn connections(&self, worker: u32, of: u32) -> usize {
        (self.connections / of + u32::from(worker < self.connections % of)).max(1) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_requests_leave_at_once_and_the_others_at_the_rate() {
        let throttle = Throttle::new(Cap { rate: 100, clients: 50 });
        let mut taken = Vec::new();
        for now in (0..2000).map(Duration::from_millis) {
            while throttle.take(now).is_ok() {
                taken.push(now);
            }
        }
        assert!(taken.len() >= 200 && taken.len() <= 200 + 5, "{}", taken.len());
        assert!(taken[..5].iter().all(Duration::is_zero) && !taken[5].is_zero(), "{taken:?}");
    }

    #[test]
    fn a_pause_saves_no_more_than_a_few_tokens_and_who_is_refused_is_told_when() {
        let throttle = Throttle::new(Cap { rate: 100, clients: 50 });
        let now = Duration::from_secs(60);
        assert_eq!((0..100).filter(|_| throttle.take(now).is_ok()).count(), 5);
        let then = throttle.take(now).expect_err("empty");
        assert_eq!(then, now + Duration::from_millis(10));
        assert!(throttle.take(then).is_ok());
        throttle.give_back();
        assert!(throttle.take(then).is_ok());
        throttle.charge();
        assert_eq!(throttle.take(then), Err(then + Duration::from_millis(20)));
    }

    #[test]
    fn workers_together_have_the_connections_of_the_cap() {
        let throttle = Throttle::new(Cap { rate: 100, clients: 50 });
        for of in [1, 2, 3, 7, 50] {
            assert_eq!((0..of).map(|worker| throttle.connections(worker, of)).sum::<usize>(), 50);
        }
    }
}
