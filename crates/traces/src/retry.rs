//! Decides what to do after an attempt to send a batch, by the rules of OTLP/HTTP: a pure function of what came back and of how long it
//! took.

use std::time::Duration;

/// The most attempts for one batch.
pub(crate) const ATTEMPTS_MAX: u32 = 5;
/// The time after which a batch is not tried again.
pub(crate) const RETRY_FOR: Duration = Duration::from_secs(30);
/// The wait before the second attempt, where the collector names none. It doubles with each further one.
const BACKOFF: Duration = Duration::from_secs(1);

/// Says what came back from the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectorAnswer {
    /// It has taken the batch, but for so many of its spans.
    Taken {
        /// The spans that it has refused.
        refused: usize,
    },
    /// It refuses the batch, and will do so again.
    Refused,
    /// It cannot take it now. It may say when to come again.
    NotNow(Option<Duration>),
    /// Nothing came back.
    Nothing,
}

impl CollectorAnswer {
    /// Reads a status (OTLP 1.x, "OTLP/HTTP response"): four of them mean that the same request may succeed later.
    pub(crate) const fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..=299 => Self::Taken { refused: 0 },
            429 | 502..=504 => Self::NotNow(retry_after),
            _ => Self::Refused,
        }
    }
}

/// Returns how long to wait before the next attempt; `None`: the batch is given up.
///
/// `attempts` were made in `took`. `chance` is any number: it spreads the waits of many servers that lost the same collector between half and the
/// whole of the time, as OTLP wants. A wait that the collector names is not shortened.
pub(crate) fn wait(answered: CollectorAnswer, attempts: u32, took: Duration, chance: u64) -> Option<Duration> {
    let named = match answered {
        CollectorAnswer::Taken { .. } | CollectorAnswer::Refused => return None,
        CollectorAnswer::NotNow(named) => named,
        CollectorAnswer::Nothing => None,
    };
    if attempts >= ATTEMPTS_MAX {
        return None;
    }
    let wait = named.unwrap_or_else(|| {
        let whole = BACKOFF * 2_u32.pow(attempts.saturating_sub(1).min(4));
        let half = whole / 2;
        let rest = u64::try_from(half.as_millis()).unwrap_or(u64::MAX);
        half + Duration::from_millis(chance % (rest + 1))
    });
    (took.saturating_add(wait) < RETRY_FOR).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// <https://opentelemetry.io/docs/specs/otlp/#failures-1>
    #[test]
    fn only_four_statuses_are_worth_another_attempt() {
        for status in [429, 502, 503, 504] {
            assert_eq!(CollectorAnswer::of_status(status, Some(secs(7))), CollectorAnswer::NotNow(Some(secs(7))), "{status}");
        }
        for status in [200, 202, 204] {
            assert_eq!(CollectorAnswer::of_status(status, None), CollectorAnswer::Taken { refused: 0 }, "{status}");
        }
        for status in [301, 308, 400, 401, 403, 404, 408, 413, 415, 500, 501, 505] {
            assert_eq!(CollectorAnswer::of_status(status, None), CollectorAnswer::Refused, "{status}");
        }
    }

    #[test]
    fn the_collector_says_when_to_come_again_and_the_batch_has_its_time() {
        let not_now = |after: u64| CollectorAnswer::NotNow(Some(secs(after)));
        for (answered, attempts, took, expected) in [
            (not_now(7), 1, 0, Some(7)),
            (not_now(0), 1, 0, Some(0)),
            (not_now(7), 4, 0, Some(7)),
            (not_now(7), 5, 0, None),
            (not_now(29), 1, 0, Some(29)),
            (not_now(30), 1, 0, None),
            (not_now(7), 2, 23, None),
            (not_now(3_600), 1, 0, None),
            (CollectorAnswer::Refused, 1, 0, None),
            (CollectorAnswer::Taken { refused: 3 }, 1, 0, None),
            (CollectorAnswer::Nothing, 5, 0, None),
            (CollectorAnswer::Nothing, 2, 30, None),
        ] {
            assert_eq!(wait(answered, attempts, secs(took), 12_345), expected.map(secs), "{answered:?} {attempts} {took}");
        }
    }

    #[test]
    fn waits_double_and_are_spread() {
        for (attempts, longest) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000)] {
            for chance in [0, 1, 499, 500, 12_345, u64::MAX] {
                let wait = wait(CollectorAnswer::Nothing, attempts, Duration::ZERO, chance).expect("another attempt").as_millis();
                assert!((longest / 2..=longest).contains(&wait), "{attempts} {chance}: {wait}");
            }
        }
    }
}
