//! Finds the highest rate that a server can do within bounds: of latency, and of failed requests.
//!
//! [`Search`] decides which rate comes next, and [`find_limit`] runs each as a run of its own. It comes from below, never asks for much more than what
//! the server did well, and holds the rate that it found for a minute before it says so.

mod search;

use std::{
    fmt,
    ops::ControlFlow,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use self::search::{Next, Range, Search};
use crate::{
    Error, Plan, Results, Schedule, Stop, Watch,
    output::quantity::{milliseconds, seconds, share, whole},
    results::{Limit, Second, Verdict},
    schedule::{Profile, Spacing},
};

/// The latency that counts as too slow, unless another is given: a p99 of half a second is what a reader of a page notices.
pub const P99: Duration = Duration::from_millis(500);

/// The share of failed requests that counts as too many, unless another is given: one in a thousand.
pub const ERRORS: f64 = 0.001;

/// The delay of a request, in milliseconds, above which the load tester has stalled.
const STALL: f64 = 20.0;

/// The delay of one request in a hundred, in milliseconds, above which the latency is not the server's alone.
const LATE: f64 = 10.0;

/// The connections of a step, at least and at most. Between them there are as many as are needed if each answer takes as long as it may.
const CONNECTIONS: (f64, f64) = (16.0, 10_000.0);

/// The bounds within which a step is still good.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The longest p99 of the latency, measured from the intended moment. In JSON: milliseconds.
    #[serde(serialize_with = "to_milliseconds", deserialize_with = "from_milliseconds")]
    pub p99: Duration,
    /// The largest share of requests that fail, 0 to 1. A request that was due and never sent counts, too.
    pub errors: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { p99: P99, errors: ERRORS }
    }
}

/// Writes a time as all latencies are written in JSON.
fn to_milliseconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_nanos() as f64 / 1e6)
}

/// Reads a time in milliseconds, or in parts, as earlier versions wrote it: `{"secs": 0, "nanos": 500000000}`.
fn from_milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Milliseconds(f64),
        Parts(Duration),
    }
    match Written::deserialize(from)? {
        Written::Milliseconds(milliseconds) => Duration::try_from_secs_f64(milliseconds / 1e3).map_err(D::Error::custom),
        Written::Parts(time) => Ok(time),
    }
}

/// A rate to be tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Requests a second.
    pub rate: f64,
    /// The time for which the rate is tried.
    pub time: Duration,
    /// A pause before it, in which what waits in the server can drain.
    pub pause: Duration,
    /// Whether this is the rate that was found, and is held.
    pub is_hold: bool,
}

/// Holds what a step has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Requests that ended.
    pub requests: u64,
    /// The seconds that the step was meant to take, or took until it was given up.
    pub seconds: f64,
    /// Latency from the intended moment. In JSON: milliseconds.
    #[serde(serialize_with = "to_milliseconds", deserialize_with = "from_milliseconds")]
    pub p99: Duration,
    /// The share of requests that failed, or were never sent.
    pub failed: f64,
    /// Requests a second that were answered well, in the second half of the step.
    pub well: f64,
    /// Whether the load tester itself was at its limit.
    pub generator: bool,
    /// Whether the load tester stood still for a moment: what was due then left all at once.
    pub stalled: bool,
}

impl StepResult {
    /// Returns whether the server did clearly less than it was asked for: by more than the number of requests varies by itself. What it does not answer
    /// waits, and the latency will exceed its bound, even if it has not yet.
    fn is_behind(&self, asked: f64, spacing: Spacing) -> bool {
        let counted = (self.seconds / 2.0).max(1.0);
        let varies = match spacing {
            Spacing::Even => 2.0 / counted,
            Spacing::Poisson => 3.0 * (self.well / counted).sqrt(),
        };
        self.well + varies < asked * 0.99
    }

    /// Says who did too little.
    const fn behind(&self) -> Excess {
        if self.generator { Excess::Generator } else { Excess::Behind(self.well) }
    }

    /// Sums up the results of a step.
    #[must_use]
    pub fn new(step: &Step, results: &Results) -> Self {
        let failed: u64 = results.errors_count() + results.missed;
        let asked = results.requests + results.missed;
        // Full seconds of the step alone: the last row may be short, or behind the end.
        let full = usize::try_from(step.time.as_secs()).unwrap_or(usize::MAX).min(results.seconds.len().saturating_sub(1)).max(1);
        let rows = &results.seconds[..full.min(results.seconds.len())];
        let rows = &rows[rows.len() / 2..];
        let well: u64 = rows.iter().map(|row| row.requests.saturating_sub(row.errors_count())).sum();
        Self {
            requests: results.requests,
            seconds: step.time.as_secs_f64().min(results.duration),
            p99: Duration::from_secs_f64(results.latency.p99.max(0.0) / 1e3),
            failed: failed as f64 / asked.max(1) as f64,
            well: well as f64 / rows.len().max(1) as f64,
            generator: results.verdict.limit == Limit::Generator || results.send_lag.p99 > LATE,
            stalled: results.send_lag.max > STALL,
        }
    }
}

/// The reason why a rate is too high.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// The p99 of the latency, in milliseconds.
    P99(f64),
    /// The share of requests that failed.
    Errors(f64),
    /// The server answered fewer requests than came, so many a second: a queue grew.
    Behind(f64),
    /// The load tester cannot do more.
    Generator,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::P99(ms) => write!(f, "the p99 of the latency was {}", milliseconds(*ms)),
            Self::Errors(part) => write!(f, "{} of the requests failed", share(*part)),
            Self::Behind(well) => write!(f, "only {} were answered", PerSecond(*well)),
            Self::Generator => write!(f, "the load tester itself was at its limit"),
        }
    }
}

/// A rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedRate {
    /// Requests a second.
    pub rate: f64,
    /// The number of seconds for which the rate was tried.
    pub seconds: f64,
    /// The result of the step.
    pub seen: StepResult,
    /// The bound that it exceeded.
    pub excess: Option<Excess>,
}

impl fmt::Display for TriedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", PerSecond(self.rate))?;
        let p99 = milliseconds(self.seen.p99.as_secs_f64() * 1e3);
        match self.excess {
            None => write!(f, "p99 {p99}, good"),
            Some(Excess::P99(_)) => write!(f, "p99 {p99}, too slow"),
            Some(Excess::Errors(part)) => write!(f, "{} failed, too many", share(part)),
            Some(Excess::Behind(well)) => write!(f, "only {} were answered, too few", PerSecond(well)),
            Some(Excess::Generator) => write!(f, "p99 {p99}, but the load tester itself was at its limit"),
        }
    }
}

/// A rate that was too high, and why.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Beyond {
    /// Requests a second.
    pub rate: f64,
    /// The bound that it exceeded.
    pub excess: Excess,
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}, {}", PerSecond(self.rate), self.excess)
    }
}

/// Holds what a search has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The highest rate within the bounds; none: no rate is.
    pub rate: Option<f64>,
    /// The seconds for which it was held; none: no rate could be held.
    pub held: Option<f64>,
    /// Whether the server could do more: the highest rate that may be asked for was reached, the load tester was at its limit, or somebody ended the search
    /// before a rate was too high.
    pub at_least: bool,
    /// Whether somebody ended the search before its end.
    #[serde(default)]
    pub ended_early: bool,
    /// The bounds.
    pub bounds: Bounds,
    /// The lowest rate that was beyond them, and why.
    pub beyond: Option<Beyond>,
    /// All rates that were tried, in their order.
    pub tried: Vec<TriedRate>,
}

impl fmt::Display for SearchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.rate else {
            f.write_str(if self.ended_early {
                "not known: you ended the search before a rate was good"
            } else {
                "no rate is within the bounds"
            })?;
            return self.beyond.as_ref().map_or(Ok(()), |beyond| write!(f, ": {beyond}"));
        };
        // A rate that was good for a moment may live on reserves, so it is not a lower bound.
        let (least, rate) = (if self.at_least && !self.ended_early { "at least " } else { "" }, PerSecond(rate));
        match self.held {
            Some(held) => write!(
                f,
                "{least}{rate}, held for {} with a p99 of at most {} and at most {} of failed requests",
                seconds(held),
                milliseconds(self.bounds.p99.as_secs_f64() * 1e3),
                share(self.bounds.errors)
            )?,
            None if self.ended_early => {
                write!(f, "{rate}, which was good for {}; you ended the search before a rate was held", seconds(self.was_good_for()))?;
            }
            None => write!(f, "{least}{rate} for some seconds only; no rate could be held")?,
        }
        match &self.beyond {
            Some(beyond) => write!(f, "; {beyond}"),
            None if self.ended_early => write!(f, ", and before one was too high"),
            None => write!(f, "; more was not allowed to be asked for"),
        }
    }
}

impl SearchResult {
    /// Says whose limit was found. The verdict of the rate that was held says less: the server kept up with that one.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let generator = "Use several machines and `seawall bench merge`.";
        let (limit, hint) = match &self.beyond {
            Some(Beyond { excess: Excess::Generator, .. }) => (Limit::Generator, Some(generator.to_owned())),
            Some(_) => (Limit::Server, None),
            None => (Limit::Schedule, None),
        };
        let mut reason = match self.rate {
            Some(rate) => format!("The highest rate within the bounds is {}.", PerSecond(rate)),
            None => "No rate is within the bounds.".to_owned(),
        };
        reason += &match &self.beyond {
            Some(Beyond { rate, excess }) => format!(" At {}, {excess}.", PerSecond(*rate)),
            None => " More was not allowed to be asked for.".to_owned(),
        };
        Verdict { limit, at_least: self.at_least, reason, hint }
    }

    /// Returns the seconds of the longest step in which the rate that was found was good.
    fn was_good_for(&self) -> f64 {
        let good = self.tried.iter().filter(|tried| tried.excess.is_none() && Some(tried.rate) == self.rate);
        good.map(|tried| tried.seconds).fold(0.0, f64::max)
    }
}

/// A rate for people.
#[derive(Debug, Clone, Copy)]
pub struct PerSecond(pub f64);

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", whole(self.0))
    }
}

/// Looks on while a search goes on.
pub trait SearchWatch: Watch {
    /// Tells that a step begins.
    fn step(&mut self, step: &Step);

    /// Tells that a step has ended. `again` means that the same rate is tried once more.
    fn tried(&mut self, tried: &TriedRate, again: bool) {
        let _ = (tried, again);
    }
}

impl SearchWatch for () {
    fn step(&mut self, _: &Step) {}
}

/// Searches for the highest rate that the server of a plan can do within bounds. The plan's schedule, stop, timeout and warm-up are replaced for each
/// step. Returns what was found, and the results of the rate that was held.
///
/// # Errors
/// When a step cannot be run at all.
pub fn find_limit(
    plan: &Plan,
    spacing: Spacing,
    bounds: Bounds,
    range: Range,
    watch: &mut dyn SearchWatch,
) -> Result<(SearchResult, Option<Results>), Error> {
    let mut search = Search::new(bounds, range, spacing);
    let (mut last, mut held) = (None, None);
    let mut before: Option<Step> = None;
    loop {
        let next = search.next(last.as_ref());
        if let Some(before) = before {
            let again = matches!(&next, Next::Step(step) if step.is_hold == before.is_hold && step.rate.to_bits() == before.rate.to_bits());
            let tried = match &next {
                Next::Step(_) => search.tried(),
                Next::Done(found) => &found.tried,
            };
            if let Some(tried) = tried.last() {
                watch.tried(tried, again);
            }
        }
        let step = match next {
            Next::Done(found) => {
                let held = held.filter(|_| found.held.is_some()).map(|held: Results| Results {
                    verdict: found.verdict(),
                    found: Some(found.clone()),
                    ..held
                });
                return Ok((found, held));
            }
            Next::Step(step) => step,
        };
        before = Some(step);
        pause(step.pause, &mut *watch);
        watch.step(&step);
        let mut plan = plan.clone();
        plan.schedule =
            Schedule::Rate { rate: Profile::constant(step.rate, Some(step.time)), spacing, clients: connections(step.rate, bounds.p99) };
        // The end of the profile is the end: whatever was asked until then is waited for, so that the next step meets an idle server.
        plan.stop = Stop::default();
        plan.warm_up = Duration::ZERO;
        // A request that takes much longer than the bound is as bad as one without an answer.
        plan.timeout = plan.timeout.min((bounds.p99 * 4).max(Duration::from_secs(1)));
        let mut look = StepWatch { hopeless: Hopeless::new(&step, bounds), watch: &mut *watch, stopped: false };
        let results = crate::run(&plan, &mut look)?;
        if look.stopped {
            return Ok((search.stop(), None));
        }
        last = Some(look.hopeless.judge(StepResult::new(&step, &results)));
        held = step.is_hold.then_some(results);
    }
}

/// Returns the connections that a rate needs if each answer takes as long as it may.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between the constants")]
fn connections(rate: f64, p99: Duration) -> u32 {
    (rate * p99.as_secs_f64() * 1.2).clamp(CONNECTIONS.0, CONNECTIONS.1) as u32
}

/// Waits, unless the watch ends the search. Nothing else is to be done on this thread, and no server has to be asked meanwhile.
fn pause(time: Duration, watch: &mut dyn SearchWatch) {
    let end = Instant::now() + time;
    while let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
        if watch.stops() {
            return;
        }
        thread::park_timeout(rest.min(Duration::from_millis(50)));
    }
}

/// Looks on during a step, and gives it up when it cannot stay within the bounds any more.
struct StepWatch<'a> {
    hopeless: Hopeless,
    watch: &'a mut dyn SearchWatch,
    stopped: bool,
}

impl Watch for StepWatch<'_> {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        if self.watch.second(second).is_break() {
            self.stopped = true;
            return ControlFlow::Break(());
        }
        if self.hopeless.after(second) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn stops(&mut self) -> bool {
        self.stopped |= self.watch.stops();
        self.stopped
    }
}

/// Tells when a step cannot stay within its bounds whatever follows. Without it, a minute would be spent on loading a server that fails.
#[derive(Debug)]
struct Hopeless {
    bounds: Bounds,
    /// The requests that the step makes in all.
    planned: f64,
    slow: f64,
    failed: f64,
    is_so: bool,
    /// Whether the step is long enough for this to be worth it. The seconds of a short one say what the server can do.
    applies: bool,
}

impl Hopeless {
    fn new(step: &Step, bounds: Bounds) -> Self {
        Self { bounds, planned: step.rate * step.time.as_secs_f64(), slow: 0.0, failed: 0.0, is_so: false, applies: step.is_hold }
    }

    fn after(&mut self, second: &Second) -> bool {
        let most = self.bounds.p99.as_secs_f64() * 1e3;
        let latency = &second.latency;
        // At least so many of its requests were too slow.
        let shares =
            [(latency.min, 1.0), (latency.p50, 0.5), (latency.p75, 0.25), (latency.p90, 0.1), (latency.p95, 0.05), (latency.p99, 0.01)];
        let share = shares.into_iter().find(|(at, _)| *at > most).map_or(0.0, |(_, share)| share);
        self.slow += share * latency.count as f64;
        self.failed += second.errors_count() as f64;
        // Twice as many as are allowed: the counts of a second are rounded.
        let is_lost = self.slow > 0.02 * self.planned + 2.0 || self.failed > 2.0 * self.bounds.errors * self.planned + 2.0;
        self.is_so |= self.applies && is_lost;
        self.is_so
    }

    /// Corrects what was seen of a step that was given up: what would have followed could not have made it good.
    fn judge(&self, mut seen: StepResult) -> StepResult {
        if self.is_so && self.bounds.excess(&seen).is_none() {
            seen.p99 = seen.p99.max(self.bounds.p99 * 2);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::ErrorClass, results::Times};

    #[test]
    fn a_step_is_hopeless_when_more_requests_have_failed_than_all_of_it_may() {
        let step = Step { rate: 100.0, time: Duration::from_secs(60), pause: Duration::ZERO, is_hold: true };
        let row = |errors, p90, p99| Second {
            requests: 100,
            errors: [(ErrorClass::Status, errors)].into(),
            latency: Times { count: 100, min: 1.0, p50: 2.0, p75: 3.0, p90, p95: p90, p99, ..Times::default() },
            ..Second::default()
        };
        // 6,000 requests: 6 may fail, and 60 may be slow; it ends at twice as many.
        for (rows, hopeless) in [
            (vec![row(0, 5.0, 6.0); 60], false),
            (vec![row(6, 5.0, 6.0), row(0, 5.0, 6.0)], false),
            (vec![row(6, 5.0, 6.0), row(9, 5.0, 6.0)], true),
            (vec![row(0, 600.0, 600.0); 12], false),
            (vec![row(0, 600.0, 600.0); 13], true),
            (vec![row(0, 5.0, 600.0); 59], false),
        ] {
            let mut judge = Hopeless::new(&step, Bounds::default());
            let is_so = rows.iter().fold(false, |_, row| judge.after(row));
            assert_eq!(is_so, hopeless, "{} rows like {:?}", rows.len(), rows[0]);
        }
    }

    #[test]
    fn a_rate_has_the_connections_that_it_needs_when_answers_are_slow() {
        assert_eq!([10.0, 5_000.0, 1e6].map(|rate| connections(rate, P99)), [16, 3_000, 10_000]);
    }

    #[test]
    fn what_was_found_is_said_with_its_bounds_and_what_came_above() {
        let found = SearchResult {
            rate: Some(4900.4),
            held: Some(60.0),
            at_least: false,
            ended_early: false,
            bounds: Bounds::default(),
            beyond: Some(Beyond { rate: 5120.0, excess: Excess::Errors(0.0234) }),
            tried: Vec::new(),
        };
        assert_eq!(
            found.to_string(),
            "4,900/s, held for 60 s with a p99 of at most 500 ms and at most 0.10 % of failed requests; at 5,120/s, 2.3 % of the requests failed"
        );
        let least = SearchResult { at_least: true, beyond: Some(Beyond { rate: 5120.0, excess: Excess::Generator }), ..found };
        assert!(least.to_string().starts_with("at least 4,900/s, held"), "{least}");
        assert!(least.to_string().ends_with("; at 5,120/s, the load tester itself was at its limit"), "{least}");
    }

    #[test]
    fn bounds_are_said_as_they_were_meant() {
        let found = |p99, errors, held| SearchResult {
            rate: Some(2.56),
            held: Some(held),
            at_least: false,
            ended_early: false,
            bounds: Bounds { p99, errors },
            beyond: Some(Beyond { rate: 4.1, excess: Excess::Errors(0.000_4) }),
            tried: Vec::new(),
        };
        for (found, said) in [
            (
                found(Duration::from_micros(2_500), 0.07, 0.5),
                "2.56/s, held for 500 ms with a p99 of at most 2.50 ms and at most 7.0 % of failed requests; at 4.10/s, 0.04 % of the requests failed",
            ),
            (
                found(Duration::from_secs(3), 0.0, 90.0),
                "2.56/s, held for 90 s with a p99 of at most 3 s and at most 0 % of failed requests; at 4.10/s, 0.04 % of the requests failed",
            ),
        ] {
            assert_eq!(found.to_string(), said);
        }
    }

    #[test]
    fn a_search_that_somebody_ended_says_so_and_how_sure_its_rate_is() {
        let tried = |rate, seconds, excess| TriedRate {
            rate,
            seconds,
            seen: StepResult {
                requests: 1000,
                seconds,
                p99: Duration::from_millis(3),
                failed: 0.0,
                well: rate,
                generator: false,
                stalled: false,
            },
            excess,
        };
        let found = |rate, beyond, tried| SearchResult {
            rate,
            held: None,
            at_least: true,
            ended_early: true,
            bounds: Bounds::default(),
            beyond,
            tried,
        };
        let failing = Excess::Errors(0.5);
        for (found, said) in [
            (
                found(Some(51.2), None, vec![tried(32.0, 1.0, None), tried(51.2, 1.0, None)]),
                "51/s, which was good for 1 s; you ended the search before a rate was held, and before one was too high",
            ),
            (
                found(
                    Some(51.2),
                    Some(Beyond { rate: 82.0, excess: failing }),
                    vec![tried(51.2, 1.0, None), tried(82.0, 2.0, Some(failing)), tried(51.2, 3.0, None)],
                ),
                "51/s, which was good for 3 s; you ended the search before a rate was held; at 82/s, 50.0 % of the requests failed",
            ),
            (found(None, None, Vec::new()), "not known: you ended the search before a rate was good"),
            (
                found(None, Some(Beyond { rate: 20.0, excess: failing }), vec![tried(20.0, 2.0, Some(failing))]),
                "not known: you ended the search before a rate was good: at 20/s, 50.0 % of the requests failed",
            ),
        ] {
            assert_eq!(found.to_string(), said);
        }
    }

    #[test]
    fn the_json_of_a_search_has_plain_numbers_latencies_in_milliseconds() {
        let seen = StepResult {
            requests: 20,
            seconds: 1.0,
            p99: Duration::from_nanos(1_403_903),
            failed: 0.0,
            well: 20.0,
            generator: false,
            stalled: false,
        };
        let found = SearchResult {
            rate: Some(20.0),
            held: Some(60.0),
            at_least: false,
            ended_early: false,
            bounds: Bounds::default(),
            beyond: Some(Beyond { rate: 32.0, excess: Excess::P99(640.5) }),
            tried: vec![TriedRate { rate: 20.0, seconds: 1.0, seen, excess: None }],
        };
        let json = serde_json::json!({
            "rate": 20.0,
            "held": 60.0,
            "at_least": false,
            "ended_early": false,
            "bounds": {"p99": 500.0, "errors": 0.001},
            "beyond": {"rate": 32.0, "excess": {"p99": 640.5}},
            "tried": [{
                "rate": 20.0,
                "seconds": 1.0,
                "seen": {"requests": 20, "seconds": 1.0, "p99": 1.403903, "failed": 0.0, "well": 20.0, "generator": false, "stalled": false},
                "excess": null,
            }],
        });
        assert_eq!(serde_json::to_value(&found).expect("JSON"), json);
        assert_eq!(serde_json::from_value::<SearchResult>(json.clone()).expect("what was written"), found);
        // Earlier versions wrote times in parts, and what was beyond as a pair.
        let mut earlier = json;
        earlier["bounds"]["p99"] = serde_json::json!({"secs": 0, "nanos": 500_000_000});
        earlier["beyond"] = serde_json::json!([32.0, {"p99": 640.5}]);
        earlier["tried"][0]["seen"]["p99"] = serde_json::json!({"secs": 0, "nanos": 1_403_903});
        assert_eq!(serde_json::from_value::<SearchResult>(earlier).expect("what was written"), found);
        let negative = serde_json::from_str::<Bounds>(r#"{"p99": -1, "errors": 0}"#);
        assert!(negative.is_err(), "{negative:?}");
    }

    #[test]
    fn the_verdict_of_a_search_is_the_limit_that_was_found_and_why_the_next_rate_failed() {
        let found = |rate, beyond: Option<(f64, Excess)>| SearchResult {
            rate,
            held: rate.map(|_| 60.0),
            at_least: beyond.is_none_or(|(_, excess)| excess == Excess::Generator),
            ended_early: false,
            bounds: Bounds::default(),
            beyond: beyond.map(|(rate, excess)| Beyond { rate, excess }),
            tried: Vec::new(),
        };
        for (found, limit, at_least, reason) in [
            (
                found(Some(195.0), Some((210.0, Excess::Errors(0.038)))),
                Limit::Server,
                false,
                "The highest rate within the bounds is 195/s. At 210/s, 3.8 % of the requests failed.",
            ),
            (
                found(Some(36_893.0), Some((40_000.0, Excess::Generator))),
                Limit::Generator,
                true,
                "The highest rate within the bounds is 36,893/s. At 40,000/s, the load tester itself was at its limit.",
            ),
            (
                found(Some(500.0), None),
                Limit::Schedule,
                true,
                "The highest rate within the bounds is 500/s. More was not allowed to be asked for.",
            ),
            (
                found(None, Some((1.0, Excess::P99(900.0)))),
                Limit::Server,
                false,
                "No rate is within the bounds. At 1/s, the p99 of the latency was 900 ms.",
            ),
        ] {
            let verdict = found.verdict();
            assert_eq!((verdict.limit, verdict.at_least, verdict.reason.as_str()), (limit, at_least, reason));
        }
    }

    #[test]
    fn a_step_is_said_with_its_outcome() {
        let seen = |ms| StepResult {
            requests: 1000,
            seconds: 1.0,
            p99: Duration::from_millis(ms),
            failed: 0.0,
            well: 100.0,
            generator: false,
            stalled: false,
        };
        for (rate, ms, excess, said) in [
            (20.0, 3, None, "20/s: p99 3.00 ms, good"),
            (36_893.4, 640, Some(Excess::P99(640.0)), "36,893/s: p99 640 ms, too slow"),
            (210.0, 3, Some(Excess::Errors(0.038)), "210/s: 3.8 % failed, too many"),
            (210.0, 3, Some(Excess::Behind(190.0)), "210/s: only 190/s were answered, too few"),
            (210.0, 900, Some(Excess::Generator), "210/s: p99 900 ms, but the load tester itself was at its limit"),
        ] {
            assert_eq!(TriedRate { rate, seconds: 1.0, seen: seen(ms), excess }.to_string(), said);
        }
    }

    #[test]
    fn a_search_says_how_long_it_takes_at_most() {
        // From 20/s to 2,000/s: 10 steps and the first one, a step of 2 s, and eleven of 3 s.
        let range = Range { from: 20.0, most: 2_000.0, ..Range::default() };
        assert_eq!(range.search_time(), Duration::from_secs(46));
    }
}
