//! What a run found. The names of the JSON form stay: people's scripts read them.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    answer::Outcome,
    record::{Distribution, ErrorClass, Tally},
};

/// What a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The seconds that were measured: without the warm-up.
    pub duration: f64,
    /// Requests that have ended, well or not.
    pub requests: u64,
    /// Those with a whole answer, whatever its status.
    pub answered: u64,
    /// Answers a second.
    pub rate: f64,
    /// Bytes that came.
    pub bytes: u64,
    /// Failures by class; those that did not occur are zero.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// From the intended moment to the last byte.
    pub latency: Times,
    /// From the moment of sending to the last byte.
    pub latency_uncorrected: Times,
    /// From the moment of sending to the first byte.
    pub first_byte: Times,
    /// How long it took to be connected.
    pub connect: Times,
    /// The part of TLS in it.
    pub handshake: Times,
    /// How late the generator sent what was due.
    pub send_lag: Times,
    /// Requests that were due, and never sent.
    pub missed: u64,
    /// What the cache did.
    pub cache: BTreeMap<Outcome, CacheResult>,
    /// The part of the answers for which the origin behind the cache was asked, 0 to 1; none: no answer says whether it was.
    #[serde(default)]
    pub origin_share: Option<f64>,
    /// How long whole pages took, with all that belongs to them. Empty unless pages were asked.
    #[serde(default)]
    pub page: Times,
    /// Answers that carried what belongs to another client: the first ones.
    #[serde(default)]
    pub leaks: Vec<Leak>,
    /// The most clients at a time.
    pub clients: u32,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Who was the bottleneck.
    pub verdict: Verdict,
}

/// A distribution of times, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name says which percentile it is")]
pub struct Times {
    /// How many were counted.
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
            mean: times.mean() / 1e6,
            stdev: times.stdev() / 1e6,
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

/// What the cache did to a part of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheResult {
    /// How many.
    pub requests: u64,
    /// Their part of all answers, 0 to 1.
    pub share: f64,
    /// Their latency.
    pub latency: Times,
}

/// An answer that carried what belongs to another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    /// What was asked.
    pub url: String,
    /// Who asked it.
    pub client: u64,
    /// Whose marker came; none: that of a client of an earlier run.
    pub owner: Option<u64>,
    /// Where the marker was: `body`, or the name of a field.
    pub place: String,
}

/// One second of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Second {
    /// Which one, from 0; those of the warm-up are among them.
    pub second: u64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Those with a whole answer.
    pub answered: u64,
    /// Failures.
    pub errors: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Clients at its end.
    pub clients: u32,
    /// Latency.
    pub latency: Times,
    /// Answers by what the cache did.
    pub cache: BTreeMap<Outcome, u64>,
}

impl Second {
    /// What one second brought to all workers.
    #[must_use]
    pub fn new(second: u64, tally: &Tally) -> Self {
        Self {
            second,
            requests: tally.requests,
            answered: tally.answered,
            errors: tally.errors.values().sum(),
            bytes: tally.bytes,
            clients: tally.clients,
            latency: (&tally.latency).into(),
            cache: tally.outcomes.iter().map(|(outcome, times)| (*outcome, times.nanoseconds().len())).collect(),
        }
    }
}

/// Who was the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whose limit was measured.
    pub limit: Limit,
    /// Whether the server could do more than what was measured.
    pub at_least: bool,
    /// The reason, for people.
    pub reason: String,
}

/// Whose limit a run measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The server's.
    Server,
    /// The load tester's own: CPU, late or missed sends.
    Generator,
    /// The network's: the rate is clients divided by the round trip.
    Network,
    /// Ports, or descriptors.
    PortsOrDescriptors,
    /// The machine's: its host took the CPU away, or its clock jumped.
    Machine,
    /// Nobody's: the schedule asked for no more.
    Schedule,
}

impl Results {
    /// Sums up a run of `duration`.
    #[must_use]
    pub fn new(duration: Duration, tally: &Tally, seconds: Vec<Second>, verdict: Verdict) -> Self {
        let duration = duration.as_secs_f64();
        Self {
            duration,
            requests: tally.requests,
            answered: tally.answered,
            rate: if duration > 0.0 { tally.answered as f64 / duration } else { 0.0 },
            bytes: tally.bytes,
            errors: ErrorClass::ALL.map(|class| (class, tally.errors.get(&class).copied().unwrap_or_default())).into(),
            statuses: tally.statuses.clone(),
            latency: (&tally.latency).into(),
            latency_uncorrected: (&tally.latency_uncorrected).into(),
            first_byte: (&tally.first_byte).into(),
            connect: (&tally.connect).into(),
            handshake: (&tally.handshake).into(),
            send_lag: (&tally.lag).into(),
            missed: tally.missed,
            cache: tally
                .outcomes
                .iter()
                .map(|(outcome, times)| {
                    let requests = times.nanoseconds().len();
                    (*outcome, CacheResult { requests, share: requests as f64 / tally.answered.max(1) as f64, latency: times.into() })
                })
                .collect(),
            origin_share: (tally.origin_reached.1 > 0).then(|| tally.origin_reached.0 as f64 / tally.origin_reached.1 as f64),
            page: (&tally.page).into(),
            leaks: Vec::new(),
            clients: tally.clients,
            seconds,
            verdict,
        }
    }
}
