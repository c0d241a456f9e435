//! Decides when to try for a certificate, and when to try again: a value and functions of it, without a clock.

use std::{
    hash::{Hash as _, Hasher as _},
    time::Duration,
};

use semantics::Timestamp;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The most attempts in any hour, whatever happens, restarts included. Let's Encrypt refuses a name for an hour after five failed
/// validations.
const ATTEMPTS_AN_HOUR: usize = 4;

/// The times from the first, second, ... failure in a row to the next attempt; the last holds for all further ones.
const BACK_OFF: [Duration; 6] = [
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    HOUR,
    Duration::from_secs(3 * 3600),
    Duration::from_secs(6 * 3600),
];

/// The longest lifetime that counts as short. Such a certificate is renewed in the middle of it: a third would not outlast a weekend's
/// outage.
const SHORT_LIVED: Duration = Duration::from_secs(10 * 24 * 60 * 60);

/// The longest wait that an authority can impose by "come back later".
const TOLD_MAX: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The beginning.
    pub not_before: Timestamp,
    /// The end.
    pub not_after: Timestamp,
}

/// The time in which the authority would like a certificate to be renewed (RFC 9773 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The earliest moment.
    pub start: Timestamp,
    /// The latest moment.
    pub end: Timestamp,
}

/// The attempts for a name. They are stored on disk, so that they outlast a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The times of the last attempts in seconds since the Unix epoch, oldest first; at most [`ATTEMPTS_AN_HOUR`].
    #[serde(default)]
    attempts: Vec<u64>,
    /// The second before which the authority wants no further order.
    #[serde(default)]
    told_to_wait_until: Option<u64>,
    /// The error of the last attempt, in words; `None` after a success.
    #[serde(default)]
    pub last_error: Option<String>,
}

impl History {
    /// Notes that an attempt begins.
    pub fn attempt(&mut self, now: Timestamp) {
        self.attempts.push(now.as_secs());
        if self.attempts.len() > ATTEMPTS_AN_HOUR {
            self.attempts.remove(0);
        }
    }

    /// Notes that the attempt failed; `wait` is how long the authority wants no further one.
    pub fn failed(&mut self, now: Timestamp, error: String, wait: Option<Duration>) {
        self.told_to_wait_until = wait.map(|wait| (now + wait.min(TOLD_MAX)).as_secs());
        self.last_error = Some(error);
    }

    /// Notes that the attempt succeeded.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Adds the attempts that other machines made.
    fn join(&mut self, other: &Self) {
        self.attempts.extend(&other.attempts);
        self.attempts.sort_unstable();
        self.attempts.dedup();
        let too_many = self.attempts.len().saturating_sub(ATTEMPTS_AN_HOUR);
        self.attempts.drain(..too_many);
        self.told_to_wait_until = self.told_to_wait_until.max(other.told_to_wait_until);
        if other.last_error.is_some() {
            self.last_error.clone_from(&other.last_error);
        }
    }

    fn free_from(&self, now: Timestamp) -> Timestamp {
        let told = self.told_to_wait_until.map(Timestamp::from_secs).filter(|told| *told <= now + TOLD_MAX).unwrap_or_default();
        let used_up = self.attempts.len() >= ATTEMPTS_AN_HOUR;
        // A clock that was put back must not lock a name out for years.
        let oldest = self.attempts.first().copied().map(Timestamp::from_secs).filter(|oldest| used_up && *oldest <= now);
        told.max(oldest.map_or_else(Timestamp::default, |oldest| oldest + HOUR))
    }
}

/// The data that decides when a certificate is ordered.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The lifetime of the current certificate.
    pub validity: Option<Validity>,
    /// The time that its authority suggests.
    pub window: Option<Window>,
    /// Whether it was revoked, or its names are no longer those that are wanted: there is then no reason to wait.
    pub replace: bool,
    /// The attempts so far.
    pub history: History,
    /// The number of failures in a row since this process began, and the time of the last one.
    failures: u32,
    last_failure: Timestamp,
    /// A number from 0 to 1000 that spreads the names of one server, and servers of one kind, over time.
    spread: u32,
}

impl Schedule {
    /// Creates the schedule of a name. `secret` differs between servers, so that they do not all renew `example.org` at once.
    #[must_use]
    pub fn new(name: &str, secret: u64) -> Self {
        let mut hasher = SipHasher13::new_with_keys(secret, 0);
        name.hash(&mut hasher);
        Self { spread: u32::try_from(hasher.finish() % 1001).unwrap_or_default(), ..Self::default() }
    }

    /// Returns when the next attempt is due; a time in the past means now.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Timestamp {
        self.wanted().max(self.free_from(now))
    }

    /// Returns when the certificate should be renewed if nothing prevented it; the beginning of time if there is none.
    #[must_use]
    pub fn wanted(&self) -> Timestamp {
        let Some(validity) = self.validity.filter(|_| !self.replace) else { return Timestamp::default() };
        let by_age = self.by_age(validity);
        // A window that ends after the certificate is a mistake that must not take the site down.
        match self.window.filter(|window| window.start <= window.end && window.start < validity.not_after) {
            Some(window) => (window.start + self.share(window.end.since(window.start))).min(validity.not_after),
            None => by_age,
        }
    }

    /// Returns when to renew by age: with a third of the lifetime left, or half of a short one, and up to a thirtieth of it earlier, so
    /// that names do not come all at once.
    fn by_age(&self, validity: Validity) -> Timestamp {
        let lifetime = validity.not_after.since(validity.not_before);
        let left = if lifetime <= SHORT_LIVED { lifetime / 2 } else { lifetime / 3 };
        validity.not_after - left - self.share(lifetime / 30)
    }

    /// Learns what became of other machines' attempts. A failure before `began` is no reason to wait: whoever restarts a machine has mended something.
    pub(crate) fn learn(&mut self, history: &History, failures: u32, failed_at: Timestamp, began: Timestamp, now: Timestamp) {
        self.history.join(history);
        if failures > 0 && failed_at.as_secs() >= began.as_secs() && failed_at.as_secs() > self.last_failure.as_secs() {
            self.failures = failures;
            // Their clock may be ahead.
            self.last_failure = failed_at.min(now);
        }
    }

    /// Returns the moment before which no attempt may be made, however urgent it is.
    pub(crate) fn free_from(&self, now: Timestamp) -> Timestamp {
        let backed_off = match self.failures {
            0 => Timestamp::default(),
            n => {
                let step = BACK_OFF[(n as usize - 1).min(BACK_OFF.len() - 1)];
                self.last_failure + step + self.share(step / 10)
            }
        };
        backed_off.max(self.history.free_from(now))
    }

    fn share(&self, of: Duration) -> Duration {
        of.mul_f64(f64::from(self.spread) / 1000.0)
    }

    /// Notes that an attempt begins.
    pub fn attempt(&mut self, now: Timestamp) {
        self.history.attempt(now);
    }

    /// Notes that the attempt failed.
    pub fn failed(&mut self, now: Timestamp, error: String, wait: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = now;
        self.history.failed(now, error, wait);
    }

    /// Notes that the attempt succeeded, with the lifetime of the new certificate.
    pub fn succeeded(&mut self, validity: Validity) {
        self.failures = 0;
        self.validity = Some(validity);
        self.window = None;
        self.replace = false;
        self.history.succeeded();
    }

    /// Returns when the last attempt failed; the beginning of time if none did.
    pub(crate) const fn last_failure(&self) -> Timestamp {
        self.last_failure
    }

    /// Returns the number of failures in a row since this process began.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

/// Returns how long to wait before the renewal information is asked for again: what the server said, within limits (RFC 9773 §4.3.2
/// suggests a minute and a day).
#[must_use]
pub(crate) fn ask_again(told: Duration) -> Duration {
    told.clamp(MINUTE, DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const NONE: Duration = Duration::ZERO;

    fn days(days: u64) -> Duration {
        DAY * u32::try_from(days).expect("small")
    }

    fn valid(from: Timestamp, lifetime: Duration) -> Option<Validity> {
        Some(Validity { not_before: from, not_after: from + lifetime })
    }

    fn schedule(validity: Option<Validity>) -> Schedule {
        Schedule { validity, ..Schedule::default() }
    }

    #[test]
    fn what_is_not_there_is_due_at_once() {
        assert!(schedule(None).due(NOW) <= NOW);
    }

    /// Let's Encrypt advises this: with a third of ninety days left, or half of six.
    #[test]
    fn by_age_a_third_is_left_and_half_of_a_short_life() {
        assert_eq!(schedule(valid(NOW, days(90))).due(NOW), NOW + days(60));
        assert_eq!(schedule(valid(NOW, days(6))).due(NOW), NOW + days(3));
        let latest = Schedule { spread: 1000, ..schedule(valid(NOW, days(90))) };
        assert_eq!(latest.due(NOW), NOW + days(57), "spread over three days");
    }

    /// RFC 9773 §4.2: the client chooses a random time within the window; a time that has passed means at once.
    #[test]
    fn the_authoritys_window_goes_before_age() {
        let window = Window { start: NOW + days(10), end: NOW + days(12) };
        for (spread, expected) in [(0, NOW + days(10)), (500, NOW + days(11)), (1000, NOW + days(12))] {
            let schedule = Schedule { window: Some(window), spread, ..schedule(valid(NOW, days(90))) };
            assert_eq!(schedule.due(NOW), expected);
        }
        let revoked = Window { start: NOW - days(2), end: NOW - days(1) };
        let schedule = Schedule { window: Some(revoked), ..schedule(valid(NOW - days(3), days(90))) };
        assert!(schedule.due(NOW) <= NOW);
    }

    #[test]
    fn a_window_that_would_let_the_certificate_end_is_not_believed() {
        for (start, end) in [(days(91), days(95)), (days(50), days(40))] {
            let window = Some(Window { start: NOW + start, end: NOW + end });
            assert_eq!(Schedule { window, ..schedule(valid(NOW, days(90))) }.due(NOW), NOW + days(60));
        }
        let window = Some(Window { start: NOW + days(89), end: NOW + days(99) });
        assert_eq!(Schedule { window, spread: 1000, ..schedule(valid(NOW, days(90))) }.due(NOW), NOW + days(90));
    }

    #[test]
    fn failures_are_answered_with_longer_and_longer_waits() {
        let mut schedule = schedule(None);
        let mut now = NOW;
        let mut waits = Vec::new();
        for _ in 0..8 {
            schedule.attempt(now);
            schedule.failed(now, "no".to_owned(), None);
            let due = schedule.due(now);
            waits.push(due.since(now).as_secs() / 60);
            now = due;
        }
        assert_eq!(waits, [2, 10, 30, 60, 180, 360, 360, 360], "minutes");
        schedule.attempt(now);
        schedule.succeeded(Validity { not_before: now, not_after: now + days(90) });
        assert_eq!((schedule.due(now), schedule.failures()), (now + days(60), 0));
        assert_eq!(schedule.history, History::default());
    }

    /// Let's Encrypt allows five failed validations per name and hour. A restart forgets the back-off, so that an operator who has fixed
    /// something need not wait, but it does not forget the attempts.
    #[test]
    fn a_restart_loop_makes_four_attempts_an_hour_and_no_more() {
        let mut history = History::default();
        let mut attempts = 0;
        for second in 0..3 * 3600 {
            let now = NOW + Duration::from_secs(second);
            let mut restarted = Schedule { history: history.clone(), ..schedule(None) };
            if restarted.due(now) <= now {
                attempts += 1;
                restarted.attempt(now);
                restarted.failed(now, "no".to_owned(), None);
            }
            history = restarted.history;
        }
        assert_eq!(attempts, 3 * ATTEMPTS_AN_HOUR);
    }

    #[test]
    fn an_authority_that_says_later_is_obeyed_over_restarts_too() {
        let mut schedule = schedule(None);
        schedule.attempt(NOW);
        schedule.failed(NOW, "too many".to_owned(), Some(HOUR * 30));
        assert_eq!(schedule.due(NOW), NOW + HOUR * 30);
        let restarted = Schedule { history: schedule.history.clone(), ..Schedule::default() };
        assert_eq!(restarted.due(NOW + MINUTE), NOW + HOUR * 30);
        schedule.failed(NOW, "for ever".to_owned(), Some(days(1000)));
        assert_eq!(schedule.due(NOW), NOW + TOLD_MAX);
    }

    /// The machine's clock was in the future when the attempts were written down.
    #[test]
    fn a_clock_that_was_put_back_locks_nobody_out() {
        let mut schedule = schedule(None);
        let future = NOW + days(4000);
        for _ in 0..ATTEMPTS_AN_HOUR {
            schedule.history.attempt(future);
        }
        schedule.history.failed(future, "no".to_owned(), Some(HOUR));
        assert!(schedule.due(NOW) <= NOW);
    }

    #[test]
    fn names_and_servers_are_spread() {
        let of = |name, secret| Schedule::new(name, secret).spread;
        assert_eq!(of("a.example.org", 1), of("a.example.org", 1));
        assert!(of("a.example.org", 1) != of("b.example.org", 1) && of("a.example.org", 1) != of("a.example.org", 2));
    }

    #[test]
    fn renewal_information_is_asked_for_within_reason() {
        for (told, expected) in [(NONE, MINUTE), (HOUR * 6, HOUR * 6), (days(30), DAY)] {
            assert_eq!(ask_again(told), expected);
        }
    }

    #[test]
    fn the_attempts_of_all_machines_count_together() {
        let (mut one, mut other) = (schedule(None), schedule(None));
        for minute in 0..3 {
            one.attempt(NOW + MINUTE * minute);
        }
        other.attempt(NOW + MINUTE * 3);
        // What is known already does not count twice.
        for _ in 0..2 {
            other.learn(&one.history, 0, Timestamp::default(), NOW, NOW + MINUTE * 4);
        }
        assert_eq!(other.due(NOW + MINUTE * 4), NOW + HOUR);
    }

    #[test]
    fn a_failure_elsewhere_is_a_reason_to_wait_unless_it_was_before_the_start() {
        let mut failed = schedule(None);
        failed.attempt(NOW);
        failed.failed(NOW, "no".to_owned(), None);
        let learnt = |began: Timestamp| {
            let mut other = schedule(None);
            other.learn(&failed.history, failed.failures(), failed.last_failure(), began, NOW + MINUTE);
            (other.due(NOW + MINUTE), other.failures())
        };
        assert_eq!(learnt(NOW - MINUTE), (NOW + 2 * MINUTE, 1));
        assert_eq!(learnt(NOW + MINUTE), (Timestamp::default(), 0));
        // Its clock is an hour ahead.
        let mut other = schedule(None);
        other.learn(&failed.history, 1, NOW + HOUR, NOW - MINUTE, NOW);
        assert_eq!(other.due(NOW), NOW + 2 * MINUTE);
    }
}
