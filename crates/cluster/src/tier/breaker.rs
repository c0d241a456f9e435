//! Leaves a slow tier alone for a while.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// The number of failures in a row after which the tier is left alone.
const FAILURES: u32 = 3;
/// The time for which it is left alone. Then one question tries it.
const PAUSE: Duration = Duration::from_secs(1);

/// Remembers how the tier's last questions ended.
#[derive(Debug)]
pub(super) struct Breaker {
    start: Instant,
    failures: AtomicU32,
    /// Milliseconds from the start until when it is left alone.
    until: AtomicU64,
}

impl Breaker {
    pub(super) fn new(start: Instant) -> Self {
        Self { start, failures: AtomicU32::new(0), until: AtomicU64::new(0) }
    }

    /// Makes one that begins as if there had been failures: the tier is left alone until it has answered.
    pub(super) fn open(start: Instant) -> Self {
        Self { failures: AtomicU32::new(FAILURES), ..Self::new(start) }
    }

    /// Returns whether the tier may be asked now. Of those who ask when a pause has ended, one may.
    pub(super) fn admits(&self, now: Instant) -> bool {
        if self.failures.load(Relaxed) < FAILURES {
            return true;
        }
        let (now, until) = (self.millis(now), self.until.load(Relaxed));
        now >= until && self.until.compare_exchange(until, now + millis(PAUSE), Relaxed, Relaxed).is_ok()
    }

    /// Returns whether the tier is left alone.
    pub(super) fn is_open(&self) -> bool {
        self.failures.load(Relaxed) >= FAILURES
    }

    /// Notes an answer in time.
    pub(super) fn answered(&self) {
        self.failures.store(0, Relaxed);
    }

    /// Notes that there was no answer in time. Returns whether the tier is left alone from now on, and was not before.
    pub(super) fn failed(&self, now: Instant) -> bool {
        let before = self.failures.fetch_update(Relaxed, Relaxed, |failures| Some(failures.saturating_add(1))).unwrap_or_default();
        if before + 1 >= FAILURES {
            self.until.store(self.millis(now) + millis(PAUSE), Relaxed);
        }
        before + 1 == FAILURES
    }

    /// Returns the milliseconds since the start.
    pub(super) fn now(&self) -> u64 {
        self.millis(Instant::now())
    }

    fn millis(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.start))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_are_a_pause_and_then_one_tries() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let breaker = Breaker::new(start);
        for _ in 0..2 {
            assert!(!breaker.failed(at(0)));
        }
        assert!(breaker.admits(at(0)));
        breaker.answered();
        for opens in [false, false, true, false] {
            assert_eq!(breaker.failed(at(10)), opens);
        }
        assert!(breaker.is_open());
        assert!(!breaker.admits(at(1009)));
        assert!(breaker.admits(at(1010)), "one");
        assert!(!breaker.admits(at(1011)), "and no other before that is known");
        breaker.failed(at(1050));
        assert!(!breaker.admits(at(2049)));
        assert!(breaker.admits(at(2050)));
        breaker.answered();
        assert!(!breaker.is_open() && breaker.admits(at(2051)) && breaker.admits(at(2051)));
    }
}
