//! The one clock. Everything behind the pipeline gets its time as an argument.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use semantics::Timestamp;

/// Where the time comes from.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's: wall time at the start, carried on by the monotonic clock, so that a corrected wall clock ages nothing.
    System {
        /// When the clock was made.
        began: Instant,
        /// What the wall clock said then.
        at: Timestamp,
    },
    /// A test's: milliseconds since the Unix epoch.
    Simulated(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    pub fn system() -> Self {
        Self::System { began: Instant::now(), at: SystemTime::now().into() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// The time at an instant that was taken already.
    #[must_use]
    pub fn at(&self, instant: Instant) -> Timestamp {
        match self {
            Self::System { began, at } => *at + instant.saturating_duration_since(*began),
            Self::Simulated(millis) => Timestamp::from_millis(millis.load(Ordering::Relaxed)),
        }
    }
}
