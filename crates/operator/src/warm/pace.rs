//! Decides how fast to ask: no faster than wanted, and slower when the server says so or seems to.

use std::time::{Duration, Instant};

/// The pause after a first failure that names none; doubled with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause, whatever `Retry-After` says: somebody sits and waits.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The number of failures in a row after which it makes no sense to go on.
const FAILURES_MAX: u32 = 8;

/// Decides when the next request may start.
#[derive(Debug)]
pub(super) struct Pace {
    gap: Duration,
    next: Instant,
    failures: u32,
}

impl Pace {
    /// Makes a pace of at most `rate` requests a second.
    pub(super) fn new(rate: Option<f64>, now: Instant) -> Self {
        Self { gap: rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate)), next: now, failures: 0 }
    }

    /// Returns when the next request may start. The one after it may not start before the gap is over.
    pub(super) fn turn(&mut self, now: Instant) -> Instant {
        let at = self.next.max(now);
        self.next = at + self.gap;
        at
    }

    /// Takes note of a request that was answered as it should be.
    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Takes note of a server that has too much to do or is down. Returns how long nothing is asked.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>, now: Instant) -> Duration {
        let doubled = PAUSE_MIN * (1 << self.failures.min(6));
        self.failures += 1;
        let pause = retry_after.unwrap_or(doubled).min(PAUSE_MAX);
        self.next = self.next.max(now + pause);
        pause
    }

    /// Tells whether it failed so often in a row that the rest would fail too.
    pub(super) const fn is_hopeless(&self) -> bool {
        self.failures >= FAILURES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_their_distance() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut pace = Pace::new(Some(4.0), start);
        assert_eq!([pace.turn(start), pace.turn(start), pace.turn(at(100))], [start, at(250), at(500)]);
        // Who comes late gets no turns back: the server would get them all at once.
        assert_eq!([pace.turn(at(5_000)), pace.turn(at(5_000))], [at(5_000), at(5_250)]);
        let mut free = Pace::new(None, start);
        assert_eq!([free.turn(start), free.turn(start)], [start, start]);
    }

    /// RFC 9110 §10.2.3: Retry-After says how long to wait.
    #[test]
    fn a_failing_server_is_left_alone_for_longer_and_longer() {
        let start = Instant::now();
        let mut pace = Pace::new(None, start);
        let pauses: Vec<u64> = (0..FAILURES_MAX).map(|_| pace.failed(None, start).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pace.turn(start), start + Duration::from_secs(60));
        assert!(pace.is_hopeless());
        pace.succeeded();
        assert!(!pace.is_hopeless());
        assert_eq!(pace.failed(Some(Duration::from_secs(7)), start).as_secs(), 7);
        assert_eq!(pace.failed(Some(Duration::from_secs(86_400)), start), PAUSE_MAX);
    }
}
