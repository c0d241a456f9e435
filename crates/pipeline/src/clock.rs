//! The one clock. Everything behind the pipeline gets its time as an argument.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use semantics::Timestamp;

/// The source of the time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock: wall time at the start, carried on by the monotonic clock, so that a corrected wall clock ages nothing.
    System {
        /// The moment when the clock was made.
        began: Instant,
        /// The time on the wall clock at that moment.
        at: Timestamp,
    },
    /// A test's clock: milliseconds since the Unix epoch.
    Simulated(Arc<AtomicU64>),
}

impl Clock {
    /// Makes the machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    pub fn system() -> Self {
        Self::System { began: Instant::now(), at: SystemTime::now().into() }
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// Returns the time at an instant in nanoseconds since the Unix epoch, for whoever measures more finely than a [`Timestamp`] says.
    #[must_use]
    pub fn nanos_at(&self, instant: Instant) -> u64 {
        let millis = |at: Timestamp| at.as_millis().saturating_mul(1_000_000);
        match self {
            Self::System { began, at } => {
                let since = instant.saturating_duration_since(*began).as_nanos();
                millis(*at).saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
            }
            Self::Simulated(_) => millis(self.at(instant)),
        }
    }

    /// Returns the time at an instant that was taken already.
    #[must_use]
    pub fn at(&self, instant: Instant) -> Timestamp {
        match self {
            Self::System { began, at } => *at + instant.saturating_duration_since(*began),
            Self::Simulated(millis) => Timestamp::from_millis(millis.load(Ordering::Relaxed)),
        }
    }
}
