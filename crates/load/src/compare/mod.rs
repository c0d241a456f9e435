//! Compares: two servers alternately ([`compare`]), two results that were kept ([`differences`]), results with what they should be ([`FailIf`]); and adds
//! results of several machines ([`merge`]).
//!
//! A difference is claimed only if its interval excludes that there is none. For [`compare`] that is an interval of ratios within pairs of rounds, so
//! what changes slowly on the machine does not count.

mod differences;
mod fail_if;
mod interval;
mod merge;
mod rounds;
mod start_at;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::interval::VALUES_MIN;
pub use self::{
    differences::{Change, Differences, differences},
    fail_if::{EXIT_CODE, FailIf, FailIfError, METRICS},
    interval::Ratio,
    merge::{MergeError, merge},
    rounds::{CompareWatch, PAIRS, TIME, TIME_MIN, compare},
    start_at::{START_MAX, StartError, start_at, wait},
};
use crate::{
    Results,
    output::quantity::{capital, milliseconds, number},
    results::{self, Limit, NotEncoded, Unreadable},
};

/// One of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// Holds what a comparison of two servers found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// All rounds of A together. A row of `seconds` is a round.
    pub a: Results,
    /// All rounds of B together.
    pub b: Results,
    /// B divided by A.
    pub ratio: Ratios,
    /// Pair by pair.
    pub rounds: Vec<Round>,
    /// The claim that follows from the ratios.
    pub verdict: Claim,
    /// Whether A went past the cache of the server of B (`--direct`).
    #[serde(default)]
    pub direct: bool,
    /// Whether somebody ended the comparison before all pairs of rounds were made.
    #[serde(default)]
    pub ended_early: bool,
}

/// The factors by which B's values are as large as A's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name says which percentile of the latency it is")]
pub struct Ratios {
    /// Requests a second that were answered without an error; none: one side has answered too little.
    pub rate: Option<Ratio>,
    pub p50: Option<Ratio>,
    pub p90: Option<Ratio>,
    pub p99: Option<Ratio>,
}

/// A pair of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Whether A came first.
    pub a_first: bool,
    /// The measurements of A's round.
    pub a: Measured,
    /// The measurements of B's round.
    pub b: Measured,
}

/// Holds what one round measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Requests a second that were answered without an error. Where clients get less than 100 answers in a round, it is clients divided by the mean
    /// latency, as a count would be too coarse.
    pub rate: f64,
    /// Latency in milliseconds.
    pub p50: f64,
    /// Latency in milliseconds.
    pub p90: f64,
    /// Latency in milliseconds.
    pub p99: f64,
}

/// States what is claimed of two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Whether a difference was found. It is looked for in one value only, so that chance has one try.
    pub differs: bool,
    /// The value: `rate` where clients ask as fast as they are answered, `p50` where the schedule sets the rate.
    pub by: By,
    /// The side that is better.
    pub better: Option<Side>,
    /// The findings, in words for people.
    pub said: String,
    /// The doubts about it, for people.
    pub warnings: Vec<String>,
}

/// A value by which sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Requests a second that were answered without an error.
    Rate,
    /// The median latency.
    P50,
}

/// The answers of a client in a round below which the rate is not counted. A count is whole: of `n` answers, it is wrong by up to one in `n`, and clients
/// that begin together are wrong together.
const ANSWERS_MIN: u64 = 100;

/// Returns whether counting the answers of short rounds is too coarse. Then the rate follows from how long answers take (Little's law), which loses nothing
/// at the ends of a round. That holds where each client always waits for one answer: not where a schedule sends or whole pages are asked; nor where
/// requests fail, as nobody knows how long those took.
fn is_coarse(sides: [&[Results]; 2]) -> bool {
    let waits = |round: &Results| !round.run.open && round.page.count == 0 && round.errors_count() == 0;
    let few = |rounds: &[Results]| {
        let clients: u64 = rounds.iter().map(|round| u64::from(round.clients)).sum();
        rounds.iter().map(|round| round.requests).sum::<u64>() < ANSWERS_MIN * clients
    };
    sides.iter().all(|rounds| rounds.iter().all(waits)) && sides.iter().any(|rounds| few(rounds))
}

impl Measured {
    /// Takes the rate from the latency instead of the count ([`is_coarse`]).
    fn rate_by_latency(&mut self, results: &Results) {
        if results.latency.mean > 0.0 {
            self.rate = f64::from(results.clients) / (results.latency.mean / 1e3);
        }
    }

    fn new(results: &Results) -> Self {
        let well = results.requests.saturating_sub(results.errors_count());
        Self {
            rate: if results.duration > 0.0 { well as f64 / results.duration } else { 0.0 },
            p50: results.latency.p50,
            p90: results.latency.p90,
            p99: results.latency.p99,
        }
    }
}

impl Round {
    fn new(a_first: bool, a: &Results, b: &Results) -> Self {
        Self { a_first, a: Measured::new(a), b: Measured::new(b) }
    }
}

impl Comparison {
    /// Sums up the rounds of both sides.
    ///
    /// # Errors
    /// When a histogram of a round is not readable.
    fn new(a: &[Results], b: &[Results], mut rounds: Vec<Round>, seed: u64) -> Result<Self, NotEncoded> {
        let coarse = is_coarse([a, b]);
        if coarse {
            for ((round, a), b) in rounds.iter_mut().zip(a).zip(b) {
                round.a.rate_by_latency(a);
                round.b.rate_by_latency(b);
            }
        }
        let (a, b) = (merge::one_after_another(a)?, merge::one_after_another(b)?);
        let ratio = |of: fn(&Measured) -> f64| {
            let pairs = rounds.iter().map(|round| (of(&round.a), of(&round.b))).filter(|(a, b)| *a > 0.0 && *b > 0.0);
            let differences: Vec<f64> = pairs.map(|(a, b)| (b / a).ln()).collect();
            // Where one side often has no value, the rest says nothing of both.
            if differences.len() * 10 < rounds.len() * 9 { None } else { Ratio::paired(&differences, seed) }
        };
        let ratio = Ratios {
            rate: ratio(|round| round.rate),
            p50: ratio(|round| round.p50),
            p90: ratio(|round| round.p90),
            p99: ratio(|round| round.p99),
        };
        let mut verdict = Claim::new(&a, &b, &ratio);
        if coarse && ratio.rate.is_some() {
            let why = "A client gets few answers in a round: the ratio of the rates is that of the mean latencies, as a count would be too coarse.";
            verdict.warnings.push(why.to_owned());
        }
        Ok(Self { a, b, ratio, rounds, verdict, direct: false, ended_early: false })
    }

    /// Returns the claim in a sentence that calls the sides by these names.
    #[must_use]
    pub fn said(&self, names: [&str; 2]) -> String {
        let ratio = if self.verdict.by == By::Rate { self.ratio.rate } else { self.ratio.p50 };
        match ratio {
            Some(ratio) if !self.ended_early || self.rounds.len() >= VALUES_MIN => sentence(self.verdict.by, ratio, &self.ratio, names),
            Some(_) | None => self.verdict.said.clone(),
        }
    }

    /// Says that somebody ended the comparison before its end, and how sure is what was found.
    fn end_early(&mut self) {
        self.ended_early = true;
        if self.rounds.is_empty() {
            // They are about sides of which nothing was measured.
            self.verdict.warnings.clear();
        }
        let ended = format!("You ended the comparison after {} of {PAIRS} pairs of rounds", self.rounds.len());
        if self.rounds.len() < VALUES_MIN {
            self.verdict.said = format!("{ended}, and {VALUES_MIN} are needed to compare the two.");
        } else {
            let doubt = "the intervals are wider than after all of them, and a small difference is easily missed";
            self.verdict.warnings.insert(0, format!("{ended}: {doubt}."));
        }
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// When it has another form, or numbers that no run finds.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        Ok(Self::deserialize(results::checked(text)?)?)
    }
}

impl Claim {
    fn new(a: &Results, b: &Results, ratios: &Ratios) -> Self {
        let by = if a.run.open { By::P50 } else { By::Rate };
        let ratio = if by == By::Rate { ratios.rate } else { ratios.p50 };
        let mut warnings = Vec::new();
        for (name, results) in [("A", a), ("B", b)] {
            let share = results.errors_count() as f64 / results.requests.max(1) as f64;
            if results.requests == 0 {
                warnings.push(format!("{name} has answered nothing."));
            } else if share >= 0.01 {
                warnings
                    .push(format!("{} of {name}'s requests failed; they do not count in its rate.", crate::output::quantity::share(share)));
            }
            if results.verdict.limit == Limit::Generator {
                warnings.push(format!(
                    "In most rounds of {name} the load tester was at its limit: the difference may be larger than it looks."
                ));
            }
            // What a round cuts off at its end are slow answers.
            let round = results.duration * 1e3 / results.seconds.len().max(1) as f64;
            if results.latency.p99 > round / 4.0 {
                let (p99, round) = (milliseconds(results.latency.p99), milliseconds(round));
                warnings.push(format!("{name}'s answers (p99 {p99}) take long for rounds of {round}: compare for a longer time (-d 5m)."));
            }
        }
        let Some(ratio) = ratio else {
            let said =
                "The two cannot be compared: there are too few rounds in which both have answered. Compare for a longer time (-d 5m)."
                    .to_owned();
            return Self { differs: false, by, better: None, said, warnings };
        };
        let b_is_better = (ratio.ratio > 1.0) == (by == By::Rate);
        let differs = ratio.differs();
        let said = sentence(by, ratio, ratios, ["A", "B"]);
        Self { differs, by, better: differs.then_some(if b_is_better { Side::B } else { Side::A }), said, warnings }
    }
}

/// Says what follows from a ratio, and calls the sides by these names.
fn sentence(by: By, ratio: Ratio, ratios: &Ratios, [first, second]: [&str; 2]) -> String {
    let [middle, low, high] = [ratio.ratio, ratio.low, ratio.high].map(times);
    match (ratio.differs(), by) {
        (true, By::Rate) => format!("{} is {middle} times as fast as {first} ({low} to {high}).", capital(second)),
        (true, By::P50) => format!("{} takes {middle} times as long as {first} ({low} to {high}), at the median.", capital(second)),
        (false, by) => {
            let of = if by == By::Rate { "the rate" } else { "the median latency" };
            let also = differing(by, ratios);
            let also = if also.is_empty() { String::new() } else { format!(" But it was found in {}.", also.join(", and in ")) };
            format!("No difference was found in {of}: {second} to {first} is {low} to {high}.{also}")
        }
    }
}

/// Names the values that differ beside the one that is compared. Several were looked at, so chance has as many tries.
fn differing(by: By, ratios: &Ratios) -> Vec<String> {
    let rate = ratios.rate.filter(|_| by != By::Rate);
    let p50 = ratios.p50.filter(|_| by != By::P50);
    let values =
        [("the rate", rate), ("the median latency", p50), ("the p90 of the latency", ratios.p90), ("the p99 of the latency", ratios.p99)];
    let differing = values.into_iter().filter_map(|(name, ratio)| Some((name, ratio.filter(Ratio::differs)?)));
    differing.map(|(name, Ratio { ratio, low, high })| format!("{name}: {} ({} to {})", times(ratio), times(low), times(high))).collect()
}

/// Writes a ratio: three digits that mean something, but not less than two after the point around 1.
fn times(ratio: f64) -> impl fmt::Display {
    if ratio < 0.1 {
        format!("{ratio:.3}")
    } else if ratio < 10.0 {
        format!("{ratio:.2}")
    } else {
        number(ratio)
    }
}

#[cfg(test)]
mod tests;
