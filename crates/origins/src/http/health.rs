//! Passive health: what an address's own answers say about it. Nothing is sent to find out.
//!
//! `failures` in a row mark an address down for `retry_after`; then one request goes there, alone, and its outcome decides: up again, or
//! down for twice as long, [`BACKOFF_MAX`] at most. Each worker has its own opinion: sharing it would cost a hot line per request, and
//! a worker learns within `failures` requests what the others know. What a status code says (503 during a restart) is not judged here, nor an
//! address that hangs up over a request's content: whoever finds one that makes it do so could else keep the site down for everybody.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time an address is left alone.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// When an address counts as down.
#[derive(Debug, Clone, Copy)]
pub struct HealthOptions {
    /// Failures in a row that mark an address down.
    pub failures: u32,
    /// How long it is left alone the first time.
    pub retry_after: Duration,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self { failures: 3, retry_after: Duration::from_secs(2) }
    }
}

/// What is known of one address.
#[derive(Debug)]
pub(super) enum Health {
    /// Takes requests; so many failures since the last success.
    Up { failures: u32 },
    /// Left alone until then.
    Down { until: Instant, backoff: Duration },
    /// One request is there to find out.
    Trial { backoff: Duration },
}

impl Health {
    pub(super) const fn new() -> Self {
        Self::Up { failures: 0 }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up { .. })
    }

    /// Whether a request may go there now. After a yes, [`Health::succeeded`], [`Health::failed`] or [`Health::given_up`] must follow.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        match *self {
            Self::Up { .. } => true,
            Self::Down { until, backoff } if until <= now => {
                *self = Self::Trial { backoff };
                true
            }
            Self::Down { .. } | Self::Trial { .. } => false,
        }
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::new();
    }

    pub(super) fn failed(&mut self, now: Instant, options: HealthOptions) {
        *self = match *self {
            Self::Up { failures } if failures + 1 < options.failures => Self::Up { failures: failures + 1 },
            Self::Up { .. } => Self::Down { until: now + options.retry_after, backoff: options.retry_after },
            Self::Trial { backoff } => {
                let backoff = (backoff * 2).min(BACKOFF_MAX);
                Self::Down { until: now + backoff, backoff }
            }
            // A request that began while it was up: nothing new.
            Self::Down { until, backoff } => Self::Down { until, backoff },
        };
    }

    /// The request ended without an answer to the question: its client left. The next request may ask again.
    pub(super) fn given_up(&mut self, now: Instant) {
        if let Self::Trial { backoff } = *self {
            *self = Self::Down { until: now, backoff };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: HealthOptions = HealthOptions { failures: 3, retry_after: Duration::from_secs(2) };

    #[tokio::test]
    async fn failures_in_a_row_mark_an_address_down_and_one_request_tries_again() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let mut health = Health::new();
        health.failed(at(0), OPTIONS);
        health.failed(at(0), OPTIONS);
        health.succeeded();
        health.failed(at(0), OPTIONS);
        health.failed(at(0), OPTIONS);
        assert!(health.admit(at(0)), "not in a row");
        health.failed(at(0), OPTIONS);
        assert!(!health.admit(at(1)), "down");
        health.failed(at(1), OPTIONS);
        assert!(health.admit(at(2)), "a late failure does not make it longer");
        assert!(!health.admit(at(2)), "one at a time");
        health.given_up(at(2));
        assert!(health.admit(at(2)), "the trial's client left: the next may try");

        // Twice as long each time, up to the longest.
        let mut now = 2;
        for pause in [4, 8, 10, 10] {
            health.failed(at(now), OPTIONS);
            assert!(!health.admit(at(now + pause - 1)));
            assert!(health.admit(at(now + pause)));
            now += pause;
        }
        health.succeeded();
        assert!(health.is_up());
        assert!(health.admit(at(now)) && health.admit(at(now)));
    }
}
