//! The numbers that a verdict is drawn from.

use std::net::SocketAddr;

use crate::{
    Results,
    engine::Observations,
    output::quantity::{counted, share},
    record::ErrorClass,
    results::{Kind, Second},
};

/// The idle part of a machine's CPU time below which it has nothing left.
const IDLE_MIN: f64 = 0.1;

/// The part of a machine's CPU time that the load tester must have used, for the server to miss it.
const OWN_MIN: f64 = 0.1;

/// The least share of all requests for which a kind of failure is told beside others.
const SHOWN_MIN: f64 = 0.000_5;

/// The words for failures of all other kinds together.
const OTHERWISE: &str = "failed otherwise";

/// Holds what a run has shown. Times are in milliseconds, shares from 0 to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RunFigures {
    /// Requests that ended.
    pub(super) requests: u64,
    /// Seconds.
    pub(super) duration: f64,
    /// Answers a second.
    pub(super) rate: f64,
    /// Requests that were answered without an error.
    pub(super) good: u64,
    pub(super) good_rate: f64,
    /// Seconds of warm-up.
    pub(super) warm_up: f64,
    /// Whether requests came whether or not earlier ones were answered.
    pub(super) open: bool,
    pub(super) replay: bool,
    /// The most clients at a time.
    pub(super) clients: u32,
    pub(super) no_keepalive: bool,
    pub(super) missed: u64,
    pub(super) timeouts: u64,
    /// Answers that say that the server could not or would not do more: 429, and 5xx. Those that were expected are not among them.
    pub(super) refusals: u64,
    /// The statuses of these answers.
    pub(super) refused_with: Vec<u16>,
    /// All failures.
    pub(super) errors: u64,
    /// Connections that were refused, reset or could not be made for a reason that is not this machine's.
    pub(super) unreachable: u64,
    /// Requests for which there was no port or descriptor.
    pub(super) unequipped: u64,
    pub(super) latency: [f64; 2],
    pub(super) latency_min: f64,
    pub(super) latency_mean: f64,
    /// The quickest connection: what the way takes. Others may have waited for the server to accept them.
    pub(super) connect_min: f64,
    pub(super) lag: [f64; 3],
    /// The median latency of the first and of the last third of the run.
    pub(super) begin_end: Option<(f64, f64)>,
    /// The busiest worker.
    pub(super) busy: f64,
    pub(super) waiting: f64,
    pub(super) idle: f64,
    pub(super) workers: usize,
    pub(super) cpus: usize,
    /// The idle part of the machine's CPU time; none: not known.
    pub(super) machine_idle: Option<f64>,
    /// The part of the machine's CPU time that the load tester used.
    pub(super) own_share: f64,
    pub(super) steal: f64,
    pub(super) clock_jump: f64,
    pub(super) ports_exhausted: u64,
    pub(super) descriptors_exhausted: u64,
    pub(super) descriptors_max: u64,
    /// Connections that were made.
    pub(super) connections: u64,
    /// Whether all that was asked is on this machine.
    pub(super) local: bool,
}

impl RunFigures {
    pub(super) fn new(results: &Results, seen: &Observations) -> Self {
        let error = |class| results.errors.get(&class).copied().unwrap_or_default();
        let refuses = |status: u16| status == 429 || (500..600).contains(&status);
        let refusals: u64 = results.statuses.iter().filter(|(status, _)| refuses(**status)).map(|(_, count)| count).sum();
        let exhausted = seen.ports_exhausted + seen.descriptors_exhausted;
        let unconnected = error(ErrorClass::Refused) + error(ErrorClass::Reset) + error(ErrorClass::Connect);
        let whole = seen.workers.iter().map(|worker| worker.wall).fold(results.duration, f64::max);
        Self {
            requests: results.requests,
            duration: results.duration,
            rate: results.rate,
            good: results.good,
            good_rate: results.good_rate,
            warm_up: results.warm_up.seconds,
            open: results.run.open,
            replay: results.run.kind == Kind::Replay,
            clients: results.clients,
            no_keepalive: results.run.no_keepalive,
            missed: results.missed,
            timeouts: error(ErrorClass::Timeout) + error(ErrorClass::Unfinished),
            refusals: refusals.min(error(ErrorClass::Status)),
            refused_with: results.statuses.keys().copied().filter(|status| refuses(*status)).collect(),
            errors: results.errors_count(),
            unreachable: unconnected.saturating_sub(exhausted),
            unequipped: unconnected.min(exhausted),
            latency: [results.latency.p50, results.latency.p99],
            latency_min: results.latency.min,
            latency_mean: results.latency.mean,
            connect_min: results.connect.min,
            lag: [results.send_lag.p50, results.send_lag.p99, results.send_lag.max],
            begin_end: begin_end(&results.seconds, results.warm_up.seconds),
            busy: seen.busy_share(),
            waiting: seen.waiting_share(),
            idle: seen.idle_share(),
            workers: seen.workers.len(),
            cpus: seen.cpus.max(1),
            machine_idle: (seen.machine_idle_share > 0.0 || seen.cpu_seconds > 0.0).then_some(seen.machine_idle_share),
            own_share: if whole > 0.0 { (seen.cpu_seconds / whole / seen.cpus.max(1) as f64).min(1.0) } else { 0.0 },
            steal: seen.steal_share,
            clock_jump: seen.clock_jump,
            ports_exhausted: seen.ports_exhausted,
            descriptors_exhausted: seen.descriptors_exhausted,
            descriptors_max: seen.descriptors_max,
            connections: results.connect.count,
            local: !seen.targets.is_empty() && seen.targets.iter().all(|target| is_local(target)),
        }
    }

    /// Returns the part of all that ended, or was due.
    pub(super) fn share(&self, count: u64) -> f64 {
        count as f64 / (self.requests + self.missed).max(1) as f64
    }

    /// Says what became of the requests that were not answered well, kind by kind, in shares of all. Kinds that hardly occurred are left out.
    pub(super) fn failing(&self) -> Vec<(String, String)> {
        let statuses: Vec<String> = self.refused_with.iter().map(u16::to_string).collect();
        let otherwise = self.errors.saturating_sub(self.refusals + self.unreachable + self.unequipped + self.timeouts);
        let kinds = [
            (self.refusals, format!("were answered with {}", statuses.join(", "))),
            (self.unreachable, "found their connection refused or reset".to_owned()),
            (self.timeouts, "were not answered in time".to_owned()),
            (self.unequipped, "found no port or descriptor free".to_owned()),
            // Connections that waited for answers are busy, and so are those that could not be made: beside other failures it is not known which it was.
            (self.missed, format!("were never sent, because no connection was free (of {})", counted(self.clients.into(), "client"))),
            (otherwise, OTHERWISE.to_owned()),
        ];
        let kinds = kinds.into_iter().map(|(count, what)| (self.share(count), what)).filter(|(part, _)| *part >= SHOWN_MIN);
        kinds.map(|(part, what)| (share(part), what)).collect()
    }

    /// Returns the part of the requests that were not answered well.
    pub(super) fn failed(&self) -> f64 {
        self.share(self.errors + self.missed)
    }

    /// Says what failed in a sentence.
    pub(super) fn failures(&self) -> String {
        match self.failing().as_slice() {
            [(part, what)] if what != OTHERWISE => format!("{part} of the requests {what}."),
            kinds @ [_, _, ..] => {
                let kinds: Vec<String> = kinds.iter().map(|(part, what)| format!("{part} {what}")).collect();
                format!("{} of the requests were not answered well: {}.", share(self.failed()), kinds.join(", "))
            }
            _ => format!("{} of the requests were not answered well.", share(self.failed())),
        }
    }

    /// Returns whether server and load tester had to share cores that had nothing left, and the server would have more without the load tester.
    pub(super) fn shares_cores(&self) -> bool {
        self.own_share >= OWN_MIN && self.uses_up_cores()
    }

    /// Returns whether the server is on this machine, whose cores had nothing left.
    pub(super) fn uses_up_cores(&self) -> bool {
        self.local && self.machine_idle.is_some_and(|idle| idle < IDLE_MIN)
    }

    /// Says how they shared them.
    pub(super) fn sharing(&self) -> String {
        format!(
            "Server and load tester both ran on this machine, and no CPU was left: the load tester used {} of it.",
            share(self.own_share)
        )
    }
}

/// Returns whether a target is on this machine: loopback, or a socket of the system.
fn is_local(target: &str) -> bool {
    target.parse::<SocketAddr>().map_or_else(|_| target.starts_with('/'), |address| address.ip().to_canonical().is_loopback())
}

/// Returns the median latency of the first and of the last third of the seconds that were measured.
fn begin_end(seconds: &[Second], warm_up: f64) -> Option<(f64, f64)> {
    let mut rows: Vec<_> = seconds.iter().filter(|row| row.second as f64 >= warm_up && row.latency.count > 0).collect();
    // The last second is short, and of an open schedule it is the one in which the last answers came.
    if rows.len() > 3 {
        rows.pop();
    }
    let third = rows.len() / 3;
    if third == 0 {
        return None;
    }
    let mean = |rows: &[&Second]| {
        let count: u64 = rows.iter().map(|row| row.latency.count).sum();
        rows.iter().map(|row| row.latency.p50 * row.latency.count as f64).sum::<f64>() / count as f64
    };
    Some((mean(&rows[..third]), mean(&rows[rows.len() - third..])))
}
