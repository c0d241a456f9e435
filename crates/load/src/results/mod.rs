//! The results of a run. The names of the JSON form stay, because people's scripts read them: `doc/bench-json.md` describes them.
//!
//! Whatever a later version adds has a default, so that it reads the results of earlier ones.

mod encoded;
mod machine;
mod read;
mod run;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    answer::Outcome,
    find_limit::SearchResult,
    record::{Distribution, ErrorClass, Tally},
};

pub(crate) use self::read::checked;
pub use self::{
    encoded::{Encoded, NotEncoded},
    machine::Machine,
    read::Unreadable,
    run::{Kind, Run, URLS_NAMED},
};

/// Holds what a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The run that these results are of.
    #[serde(default)]
    pub run: Run,
    /// The machine that the load came from.
    #[serde(default)]
    pub machine: Machine,
    /// The seconds that were measured: without the warm-up.
    pub duration: f64,
    /// Requests that have ended, well or not.
    pub requests: u64,
    /// The requests with a whole answer, whatever its status.
    pub answered: u64,
    /// Answers a second, whatever their status.
    pub rate: f64,
    /// Requests that were answered without any error.
    #[serde(default)]
    pub good: u64,
    /// Good answers a second.
    #[serde(default)]
    pub good_rate: f64,
    /// The seconds that had been measured when somebody ended the run before its end; none: it went to its end.
    #[serde(default)]
    pub ended_early: Option<f64>,
    /// Bytes that came.
    pub bytes: u64,
    /// Failures by class; those that did not occur are zero.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The time from the intended moment to the last byte.
    pub latency: Times,
    /// The time from the moment of sending to the last byte.
    pub latency_uncorrected: Times,
    /// The time from the moment of sending to the first byte.
    pub first_byte: Times,
    /// The time that it took to be connected.
    pub connect: Times,
    /// The part of TLS in it.
    pub handshake: Times,
    /// TLS handshakes that resumed an earlier session.
    #[serde(default)]
    pub resumed: u64,
    /// The delay with which the generator sent what was due.
    pub send_lag: Times,
    /// Requests that were due, and never sent.
    pub missed: u64,
    /// The figures by what the cache did.
    pub cache: BTreeMap<Outcome, CacheResult>,
    /// The part of the answers for which the origin behind the cache was asked, 0 to 1, among those that say it; none: no answer says whether it was.
    #[serde(default)]
    pub origin_share: Option<f64>,
    /// Answers that say whether the origin was asked.
    #[serde(default)]
    pub origin_known: u64,
    /// The time that whole pages took, with all that belongs to them. Empty unless pages were asked.
    #[serde(default)]
    pub page: Times,
    /// Parts of pages that were not asked, because they belong to servers that the run does not load.
    #[serde(default)]
    pub left_out: u64,
    /// Answers that carried what belongs to another client: the first ones.
    #[serde(default)]
    pub leaks: Vec<Leak>,
    /// The figures of the warm-up. They are part of nothing else but `seconds`.
    #[serde(default)]
    pub warm_up: WarmUp,
    /// The figures of the load tester itself.
    #[serde(default)]
    pub generator: Generator,
    /// The most clients at a time.
    pub clients: u32,
    /// Second by second, with those of the warm-up.
    pub seconds: Vec<Second>,
    /// The verdict on who was the bottleneck.
    pub verdict: Verdict,
    /// The search that these results belong to, if the highest rate was searched: they are then those of the rate that was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<SearchResult>,
    /// The distributions themselves, so that results can be added exactly.
    #[serde(default)]
    pub histograms: Histograms,
}

/// An answer that carried what belongs to another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    /// The URL that was asked.
    pub url: String,
    /// The number of the client that asked it.
    pub client: u64,
    /// The client whose marker came; none: it is that of a client of an earlier run.
    pub owner: Option<u64>,
    /// The place of the marker: `body`, or the name of a field.
    pub place: String,
}

/// Says what was done before the measurement began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WarmUp {
    /// The length in seconds.
    pub seconds: f64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Failures among them.
    pub errors: u64,
}

/// Holds what the load tester itself needed, which tells whether its measurements can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Generator {
    /// CPU time of the process, in seconds.
    pub cpu_seconds: f64,
    /// CPU time of the process for each request, in µs.
    pub cpu_us_per_request: f64,
    /// The share of its time in which the busiest worker had a CPU, 0 to 1.
    pub busiest_worker: f64,
    /// The share of its time in which a worker could have worked and others had the CPU, 0 to 1: the most of all workers.
    pub waiting_worker: f64,
    /// The most memory that the process had, in bytes.
    pub memory_max: u64,
    /// The share of the machine's CPU time that its host gave to others, 0 to 1.
    pub steal: f64,
    /// The time by which the system's clock jumped during the run, in seconds.
    pub clock_jump: f64,
    /// The descriptors that the process may have.
    pub descriptors_max: u64,
    /// Connections that could not be made because no descriptor was free.
    pub descriptors_exhausted: u64,
    /// Connections that could not be made because no port was free.
    pub ports_exhausted: u64,
    /// Requests that were sent again, because the server had closed a connection that it had kept when they came. They are not errors.
    pub resent: u64,
}

/// The distributions of a run. Unit: nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "they are those of `Results`, by the same names")]
pub struct Histograms {
    pub latency: Encoded,
    pub latency_uncorrected: Encoded,
    pub first_byte: Encoded,
    pub page: Encoded,
    pub connect: Encoded,
    pub handshake: Encoded,
    pub send_lag: Encoded,
    pub cache: BTreeMap<Outcome, Encoded>,
}

/// A distribution of times, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "each name says which percentile it is")]
pub struct Times {
    /// The number of values that were counted.
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub stdev: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

impl From<&Distribution> for Times {
    fn from(times: &Distribution) -> Self {
        let times = times.nanoseconds();
        if times.is_empty() {
            return Self::default();
        }
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e6;
        Self {
            count: times.len(),
            min: times.min() as f64 / 1e6,
            // No more digits than nanoseconds.
            mean: times.mean().round() / 1e6,
            stdev: times.stdev().round() / 1e6,
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            max: times.max() as f64 / 1e6,
        }
    }
}

/// Holds the figures of the requests for which the cache did the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheResult {
    /// The number of these requests.
    pub requests: u64,
    /// The part of these requests in all answers, 0 to 1.
    pub share: f64,
    /// The latency of these requests.
    pub latency: Times,
}

/// One second of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// The number of the second, from 0; those of the warm-up are among them.
    pub second: u64,
    /// The part of it that was measured, 0 to 1: the last second of a run is rarely whole.
    pub length: f64,
    /// Requests that ended in it.
    pub requests: u64,
    /// The requests with a whole answer.
    pub answered: u64,
    /// Failures by class: those that occurred.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// Bytes that came.
    pub bytes: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Clients at its end.
    pub clients: u32,
    /// Latency.
    pub latency: Times,
    /// Answers by what the cache did.
    pub cache: BTreeMap<Outcome, u64>,
    /// The distribution of its latency.
    #[serde(skip_serializing_if = "Encoded::is_empty")]
    pub histogram: Encoded,
}

impl Second {
    /// Makes the row of what one second brought to all workers.
    #[must_use]
    pub fn new(second: u64, length: Duration, tally: &Tally) -> Self {
        Self {
            second,
            length: length.as_secs_f64(),
            requests: tally.requests,
            answered: tally.answered,
            errors: tally.errors.iter().filter(|(_, count)| **count > 0).map(|(class, count)| (*class, *count)).collect(),
            bytes: tally.bytes,
            connections: tally.connect.nanoseconds().len(),
            clients: tally.clients,
            latency: (&tally.latency).into(),
            cache: tally.outcomes.iter().map(|(outcome, times)| (*outcome, times.nanoseconds().len())).collect(),
            histogram: (&tally.latency).into(),
        }
    }

    /// Returns the number of all failures.
    #[must_use]
    pub fn errors_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Answers a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.length > 0.0 { self.answered as f64 / self.length } else { 0.0 }
    }

    /// Returns the number of requests that were answered without any error.
    #[must_use]
    pub fn good(&self) -> u64 {
        self.requests.saturating_sub(self.errors_count())
    }

    /// Returns the good answers a second.
    #[must_use]
    pub fn good_rate(&self) -> f64 {
        if self.length > 0.0 { self.good() as f64 / self.length } else { 0.0 }
    }
}

/// Says who was the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The limit that was measured.
    pub limit: Limit,
    /// Whether the server could do more than what was measured.
    pub at_least: bool,
    /// The reason, for people.
    pub reason: String,
    /// The advice what to do about it, for people.
    #[serde(default)]
    pub hint: Option<String>,
}

/// Says whose limit a run measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The limit is the server's.
    Server,
    /// The limit is the load tester's own: CPU, late or missed sends.
    Generator,
    /// The limit is the network's: the rate is clients divided by the round trip.
    Network,
    /// Ports, or descriptors.
    PortsOrDescriptors,
    /// The limit is the machine's: its host took the CPU away, or its clock jumped.
    Machine,
    /// The limit is nobody's: the schedule asked for no more.
    Schedule,
    /// The limit is not known: the run was too short to tell.
    Unknown,
}

impl Results {
    /// Sums up a run that measured for `duration`. What a tally does not know ([`Generator`], [`Leak`]s) is added by those who do.
    #[must_use]
    pub fn new(run: Run, duration: Duration, tally: &Tally, seconds: Vec<Second>, verdict: Verdict) -> Self {
        let duration = duration.as_secs_f64();
        let per_second = |count: u64| if duration > 0.0 { count as f64 / duration } else { 0.0 };
        let good = tally.requests.saturating_sub(tally.errors.values().sum());
        let cache = tally
            .outcomes
            .iter()
            .map(|(outcome, times)| {
                let requests = times.nanoseconds().len();
                (*outcome, CacheResult { requests, share: requests as f64 / tally.answered.max(1) as f64, latency: times.into() })
            })
            .collect();
        Self {
            warm_up: WarmUp { seconds: run.warm_up, requests: tally.warm_up, errors: tally.warm_up_errors },
            run,
            machine: Machine::here(),
            duration,
            requests: tally.requests,
            answered: tally.answered,
            rate: per_second(tally.answered),
            good,
            good_rate: per_second(good),
            ended_early: None,
            bytes: tally.bytes,
            errors: ErrorClass::ALL.map(|class| (class, tally.errors.get(&class).copied().unwrap_or_default())).into(),
            statuses: tally.statuses.clone(),
            latency: (&tally.latency).into(),
            latency_uncorrected: (&tally.latency_uncorrected).into(),
            first_byte: (&tally.first_byte).into(),
            connect: (&tally.connect).into(),
            handshake: (&tally.handshake).into(),
            resumed: tally.resumed,
            send_lag: (&tally.lag).into(),
            missed: tally.missed,
            cache,
            origin_share: (tally.origin_reached.1 > 0).then(|| tally.origin_reached.0 as f64 / tally.origin_reached.1 as f64),
            origin_known: tally.origin_reached.1,
            page: (&tally.page).into(),
            left_out: 0,
            leaks: Vec::new(),
            generator: Generator::default(),
            clients: tally.clients,
            seconds,
            verdict,
            found: None,
            histograms: Histograms {
                latency: (&tally.latency).into(),
                latency_uncorrected: (&tally.latency_uncorrected).into(),
                first_byte: (&tally.first_byte).into(),
                page: (&tally.page).into(),
                connect: (&tally.connect).into(),
                handshake: (&tally.handshake).into(),
                send_lag: (&tally.lag).into(),
                cache: tally.outcomes.iter().map(|(outcome, times)| (*outcome, times.into())).collect(),
            },
        }
    }

    /// Makes the tally again that these results were made from, so that results can be added exactly.
    ///
    /// # Errors
    /// When a histogram is not readable.
    pub fn tally(&self) -> Result<Tally, NotEncoded> {
        let mut tally = Tally::new();
        tally.requests = self.requests;
        tally.answered = self.answered;
        tally.bytes = self.bytes;
        tally.statuses.clone_from(&self.statuses);
        tally.errors = self.errors.iter().filter(|(_, count)| **count > 0).map(|(class, count)| (*class, *count)).collect();
        tally.resumed = self.resumed;
        tally.missed = self.missed;
        tally.clients = self.clients;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the count that the share was made from")]
        let reached = (self.origin_share.unwrap_or_default() * self.origin_known as f64).round() as u64;
        tally.origin_reached = (reached, self.origin_known);
        tally.warm_up = self.warm_up.requests;
        tally.warm_up_errors = self.warm_up.errors;
        for (text, times) in [
            (&self.histograms.latency, &mut tally.latency),
            (&self.histograms.latency_uncorrected, &mut tally.latency_uncorrected),
            (&self.histograms.first_byte, &mut tally.first_byte),
            (&self.histograms.page, &mut tally.page),
            (&self.histograms.connect, &mut tally.connect),
            (&self.histograms.handshake, &mut tally.handshake),
            (&self.histograms.send_lag, &mut tally.lag),
        ] {
            text.add_to(times)?;
        }
        for (outcome, text) in &self.histograms.cache {
            let mut times = Distribution::new(3);
            text.add_to(&mut times)?;
            tally.outcomes.insert(*outcome, times);
        }
        Ok(tally)
    }

    /// Returns the number of all failures.
    #[must_use]
    pub fn errors_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

#[cfg(test)]
mod tests;
