//! Counts and distributions that can be added.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;

use super::{ErrorClass, Handshake, Sample};
use crate::answer::Outcome;

/// The longest time that is told apart: an hour. Longer ones count as an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// Times, with the precision of three digits: how often each occurred. 270 KB.
#[derive(Debug, Clone)]
pub struct Distribution(Histogram<u64>);

impl Distribution {
    /// Makes an empty distribution. Times are told apart to so many digits: [`Tally::new`] has three, [`Tally::of_a_second`] two.
    #[must_use]
    pub fn new(digits: u8) -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, digits).expect("the bounds are valid, and at most five digits"))
    }

    /// Counts a time.
    pub fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    /// Adds all that another one has counted.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// Adds all that a histogram of nanoseconds has counted.
    ///
    /// # Errors
    /// When it holds times that are too long for this one.
    pub fn add_histogram(&mut self, times: &Histogram<u64>) -> Result<(), hdrhistogram::AdditionError> {
        self.0.add(times)
    }

    /// Returns the times, in nanoseconds.
    #[must_use]
    pub const fn nanoseconds(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// Counts and distributions of requests. Tallies of several workers, machines or seconds can be added.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Requests that have ended, well or not.
    pub requests: u64,
    /// The requests that have a whole answer.
    pub answered: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by class.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// The time from the intended moment to the last byte. Timeouts and answers with a wrong status are part of it.
    pub latency: Distribution,
    /// The time from the moment of sending to the last byte.
    pub latency_uncorrected: Distribution,
    /// The time from the moment of sending to the first byte.
    pub first_byte: Distribution,
    /// The latency of answers by what the cache did, corrected.
    pub outcomes: BTreeMap<Outcome, Distribution>,
    /// Answers that say that the origin behind the cache was asked for them, and answers that say whether it was.
    pub origin_reached: (u64, u64),
    /// The time that whole pages took, with all that belongs to them.
    pub page: Distribution,
    /// The time that it took to be connected.
    pub connect: Distribution,
    /// The part of TLS in it.
    pub handshake: Distribution,
    /// TLS handshakes that resumed a session.
    pub resumed: u64,
    /// The delay with which the generator sent what was due.
    pub lag: Distribution,
    /// Requests that were due and never sent.
    pub missed: u64,
    /// Requests that were sent again, because the server had closed a connection that it had kept when they came. They are not errors.
    pub resent: u64,
    /// Connections that could not be made because no port was free.
    pub ports_exhausted: u64,
    /// Connections that could not be made because no descriptor was free.
    pub descriptors_exhausted: u64,
    /// The most clients at a time.
    pub clients: u32,
    /// Requests that ended in the warm-up. They are counted nowhere else.
    pub warm_up: u64,
    /// Failures among them.
    pub warm_up_errors: u64,
    /// The time at which the recording ended, from the beginning of the run. Of several workers: the time at which the last one ended.
    pub ended_at: Duration,
    digits: u8,
}

impl Tally {
    /// Makes a tally of a run.
    #[must_use]
    pub fn new() -> Self {
        Self::with(3)
    }

    /// Makes a tally of a second: two digits are enough for a chart.
    #[must_use]
    pub fn of_a_second() -> Self {
        Self::with(2)
    }

    fn with(digits: u8) -> Self {
        let times = || Distribution::new(digits);
        Self {
            requests: 0,
            answered: 0,
            bytes: 0,
            statuses: BTreeMap::new(),
            errors: BTreeMap::new(),
            latency: times(),
            latency_uncorrected: times(),
            first_byte: times(),
            outcomes: BTreeMap::new(),
            origin_reached: (0, 0),
            page: times(),
            connect: times(),
            handshake: times(),
            resumed: 0,
            lag: times(),
            missed: 0,
            resent: 0,
            ports_exhausted: 0,
            descriptors_exhausted: 0,
            clients: 0,
            warm_up: 0,
            warm_up_errors: 0,
            ended_at: Duration::ZERO,
            digits,
        }
    }

    pub(super) fn ended(&mut self, sample: &Sample) {
        self.requests += 1;
        self.bytes += sample.bytes;
        if let Some(class) = sample.error {
            *self.errors.entry(class).or_default() += 1;
        }
        let whole = matches!(sample.error, None | Some(ErrorClass::Status | ErrorClass::Body | ErrorClass::Field | ErrorClass::Leak));
        let latency = sample.ended.saturating_sub(sample.intended);
        if whole {
            self.answered += 1;
            *self.statuses.entry(sample.status).or_default() += 1;
            let digits = self.digits;
            self.outcomes.entry(sample.outcome).or_insert_with(|| Distribution::new(digits)).record(latency);
            if let Some(reached) = sample.origin_reached {
                self.origin_reached.0 += u64::from(reached);
                self.origin_reached.1 += 1;
            }
        }
        if whole || matches!(sample.error, Some(ErrorClass::Timeout | ErrorClass::Unfinished)) {
            self.latency.record(latency);
            self.latency_uncorrected.record(sample.ended.saturating_sub(sample.sent));
        }
        if let Some(page) = sample.page {
            self.page.record(page);
        }
        if let Some(first) = sample.first_byte {
            self.first_byte.record(first.saturating_sub(sample.sent));
        }
    }

    pub(super) fn connected(&mut self, took: Duration, handshake: Option<Handshake>) {
        self.connect.record(took);
        if let Some(handshake) = handshake {
            self.handshake.record(handshake.took);
            self.resumed += u64::from(handshake.resumed);
        }
    }

    pub(super) fn lag(&mut self, lag: Duration) {
        self.lag.record(lag);
    }

    /// Adds all that another one has counted. Clients of workers are beside each other.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.answered += other.answered;
        self.bytes += other.bytes;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (class, count) in &other.errors {
            *self.errors.entry(*class).or_default() += count;
        }
        self.latency.add(&other.latency);
        self.latency_uncorrected.add(&other.latency_uncorrected);
        self.first_byte.add(&other.first_byte);
        let digits = self.digits;
        for (outcome, times) in &other.outcomes {
            self.outcomes.entry(*outcome).or_insert_with(|| Distribution::new(digits)).add(times);
        }
        self.origin_reached.0 += other.origin_reached.0;
        self.origin_reached.1 += other.origin_reached.1;
        self.page.add(&other.page);
        self.connect.add(&other.connect);
        self.handshake.add(&other.handshake);
        self.resumed += other.resumed;
        self.lag.add(&other.lag);
        self.missed += other.missed;
        self.resent += other.resent;
        self.ports_exhausted += other.ports_exhausted;
        self.descriptors_exhausted += other.descriptors_exhausted;
        self.ended_at = self.ended_at.max(other.ended_at);
        self.clients += other.clients;
        self.warm_up += other.warm_up;
        self.warm_up_errors += other.warm_up_errors;
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}
