//! Compares two results that were kept. Each is of one run, and says only how much its seconds differed among themselves: what changed between the two
//! runs on the machine or on the way to the server cannot be told from what changed in the server.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Ratio;
use crate::{
    Results,
    output::{
        printable,
        quantity::{milliseconds, number, seconds},
    },
    results::Second,
};

/// Says how two results differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Differences {
    /// Good answers a second.
    pub rate: Change,
    /// The median latency, in milliseconds.
    pub p50: Change,
    /// Latency, in milliseconds.
    pub p90: Change,
    /// Latency, in milliseconds.
    pub p99: Change,
    /// The share of requests that failed, 0 to 1.
    pub errors: Change,
    /// The facts that were not the same in the two runs, and so may be the cause.
    pub not_the_same: Vec<String>,
    /// The sentence about what cannot be known from the two results.
    pub unknown: String,
}

/// A value before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The value of the old result.
    pub old: f64,
    /// The value of the new result.
    pub new: f64,
    /// New divided by old, with the interval that the seconds of both runs allow; none: there are too few seconds.
    pub ratio: Option<Ratio>,
}

/// Says how two results differ.
#[must_use]
pub fn differences(old: &Results, new: &Results) -> Differences {
    let change = |of_results: fn(&Results) -> f64, of_second: fn(&Second) -> f64| {
        let ratio = Ratio::unpaired(&logarithms(old, of_second), &logarithms(new, of_second), 0);
        Change { old: of_results(old), new: of_results(new), ratio }
    };
    let failed = |results: &Results| results.errors_count() as f64 / results.requests.max(1) as f64;
    let good = |results: &Results| results.requests.saturating_sub(results.errors_count()) as f64 / results.duration.max(f64::MIN_POSITIVE);
    let rate = change(good, Second::good_rate);
    Differences {
        p50: change(|results| results.latency.p50, |second| second.latency.p50),
        p90: change(|results| results.latency.p90, |second| second.latency.p90),
        p99: change(|results| results.latency.p99, |second| second.latency.p99),
        errors: Change { old: failed(old), new: failed(new), ratio: None },
        not_the_same: not_the_same(old, new),
        unknown: unknown(rate.ratio.is_none()),
        rate,
    }
}

/// Returns the logarithms of a value of all whole seconds that were measured.
fn logarithms(results: &Results, of: fn(&Second) -> f64) -> Vec<f64> {
    let measured = results.seconds.iter().filter(|row| row.second as f64 >= results.warm_up.seconds && row.length > 0.99);
    measured.map(of).filter(|value| *value > 0.0).map(f64::ln).collect()
}

fn not_the_same(old: &Results, new: &Results) -> Vec<String> {
    let (one, two) = (&old.run, &new.run);
    let pairs = [
        ("The URL", one.urls.join(" "), two.urls.join(" ")),
        ("The schedule", one.schedule.clone(), two.schedule.clone()),
        ("The protocol", one.protocol.clone(), two.protocol.clone()),
        ("The warm-up", seconds(one.warm_up), seconds(two.warm_up)),
        ("The timeout", seconds(one.timeout), seconds(two.timeout)),
        ("Connections for one request only", yes(one.no_keepalive), yes(two.no_keepalive)),
        ("The version of Seawall's load tester", one.seawall.clone(), two.seawall.clone()),
        ("The machine", machine(old), machine(new)),
        ("The bottleneck", format!("{:?}", old.verdict.limit).to_lowercase(), format!("{:?}", new.verdict.limit).to_lowercase()),
    ];
    let differ = pairs.into_iter().filter(|(_, one, two)| one != two);
    let incomparable = (one.open != two.open).then(|| {
        "The two cannot be compared: in one run clients waited for their answers, and so the server set the rate; in the other the schedule set it."
            .to_owned()
    });
    incomparable.into_iter().chain(differ.map(|(what, one, two)| printable(&format!("{what}: {one} then, {two} now.")))).collect()
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    format!("{}, {} cores, {}", machine.cpu, machine.cores, machine.kernel)
}

fn unknown(too_few: bool) -> String {
    let few = if too_few { " At least one run is too short for intervals: measure for 30 s or more." } else { "" };
    format!(
        "Each result is of one run. Its intervals cover what changed from second to second, not what changed from run to run: other load on the \
         machines, a warmer cache, the time of day. Only `--compare`, which runs both alternately, can tell such changes from a difference of the \
         servers.{few}"
    )
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8}{:>14}{:>14}   new / old", "", "old", "new")?;
        let per_second = |value: f64| format!("{}/s", number(value));
        let share = |value: f64| format!("{} %", number(value * 100.0));
        let rows = [
            ("rate", &self.rate, per_second as fn(f64) -> String),
            ("p50", &self.p50, milliseconds),
            ("p90", &self.p90, milliseconds),
            ("p99", &self.p99, milliseconds),
            ("errors", &self.errors, share),
        ];
        for (name, change, shown) in rows {
            write!(f, "{name:<8}{:>14}{:>14}", shown(change.old), shown(change.new))?;
            match change.ratio {
                Some(ratio) => {
                    let said = if ratio.differs() { "" } else { ", no difference" };
                    writeln!(f, "   {:.2} ({:.2} to {:.2}{said})", ratio.ratio, ratio.low, ratio.high)?;
                }
                None if change.old > 0.0 => writeln!(f, "   {:.2}, no interval", change.new / change.old)?,
                None => writeln!(f)?,
            }
        }
        for what in &self.not_the_same {
            writeln!(f, "{what}")?;
        }
        writeln!(f, "{}", self.unknown)
    }
}
