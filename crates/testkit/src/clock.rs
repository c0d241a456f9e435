//! A clock that moves only when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The time at which a clock starts: 2026-01-01T00:00:00Z, in milliseconds since the epoch.
const START: u64 = 1_767_225_600_000;

/// A simulated clock: milliseconds since the epoch, shared by all its clones, starting at 2026-01-01T00:00:00Z.
#[derive(Clone, Debug)]
pub struct TestClock(Arc<AtomicU64>);

impl TestClock {
    /// Creates a clock of its own, at the start.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(START)))
    }

    /// Returns the milliseconds since the epoch.
    #[must_use]
    pub fn millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns the seconds since the epoch, rounded down.
    #[must_use]
    pub fn secs(&self) -> u64 {
        self.millis() / 1000
    }

    /// Moves the clock forward for everybody who holds it. Parts of a millisecond are lost.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).expect("no test waits for 500 million years");
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// Moves the clock backward, as an operator or NTP may.
    pub fn set_back(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).expect("no test waits for 500 million years");
        self.0.fetch_sub(by, Ordering::SeqCst);
    }

    /// Returns the cell behind the clock, for a production clock that reads its milliseconds from one.
    #[must_use]
    pub fn cell(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0)
    }

    /// Returns the current time as `Date` writes it (RFC 9110 §5.6.7).
    #[must_use]
    pub fn http_date(&self) -> String {
        self.http_date_in(Duration::ZERO)
    }

    /// Returns the time `ahead` from now as `Expires` writes it.
    #[must_use]
    pub fn http_date_in(&self, ahead: Duration) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(self.millis()) + ahead)
    }

    /// Returns the time `ago` before now as `Last-Modified` writes it.
    #[must_use]
    pub fn http_date_ago(&self, ago: Duration) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(self.millis()) - ago)
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a duration of `n` seconds.
#[must_use]
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Returns a duration of `n` milliseconds.
#[must_use]
pub const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_with_the_year_2026_and_moves_for_every_holder() {
        let clock = TestClock::new();
        let other = clock.clone();
        assert_eq!(clock.http_date(), "Thu, 01 Jan 2026 00:00:00 GMT");
        clock.advance(secs(11));
        other.advance(millis(500));
        assert_eq!(clock.millis(), START + 11_500);
        assert_eq!(other.secs(), START / 1000 + 11);
        clock.set_back(millis(500));
        assert_eq!(other.http_date(), "Thu, 01 Jan 2026 00:00:11 GMT");
        assert_eq!(other.http_date_in(secs(60)), "Thu, 01 Jan 2026 00:01:11 GMT");
        assert_eq!(other.http_date_ago(secs(11)), "Thu, 01 Jan 2026 00:00:00 GMT");
    }
}
