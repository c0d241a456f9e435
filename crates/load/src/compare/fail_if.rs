//! Bounds that results must keep, for programs that test a site: `p99>200ms`, `errors>0.1%,rate<1000`.

use std::fmt;

use crate::{
    Results,
    answer::Outcome,
    output::quantity::{count, milliseconds, number},
};

/// The exit code of a run that exceeds a bound.
pub const EXIT_CODE: u8 = 3;

/// The names that can stand before `<` or `>`.
pub const METRICS: &str =
    "p50, p75, p90, p95, p99, p99.9, mean, max (times: 200ms), rate (1000), errors (5 or 0.1%), requests, missed, hits (90%)";

/// A bound: results that are as it says have failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailIf {
    metric: Metric,
    comparison: Comparison,
    value: f64,
    /// Whether a share is meant, and not a number.
    is_share: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    P50,
    P75,
    P90,
    P95,
    P99,
    P99_9,
    Mean,
    Max,
    Rate,
    Errors,
    Requests,
    Missed,
    Hits,
}

/// Names, and the unit of what they are compared with.
const NAMES: &[(&str, Metric, Unit)] = &[
    ("p50", Metric::P50, Unit::Time),
    ("p75", Metric::P75, Unit::Time),
    ("p90", Metric::P90, Unit::Time),
    ("p95", Metric::P95, Unit::Time),
    ("p99", Metric::P99, Unit::Time),
    ("p99.9", Metric::P99_9, Unit::Time),
    ("p99_9", Metric::P99_9, Unit::Time),
    ("mean", Metric::Mean, Unit::Time),
    ("max", Metric::Max, Unit::Time),
    ("rate", Metric::Rate, Unit::Rate),
    ("errors", Metric::Errors, Unit::NumberOrShare),
    ("requests", Metric::Requests, Unit::Number),
    ("missed", Metric::Missed, Unit::NumberOrShare),
    ("hits", Metric::Hits, Unit::Share),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Time,
    Rate,
    Number,
    Share,
    NumberOrShare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// Tells why a text is not a bound, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}, character {place}: {why}")]
pub struct FailIfError {
    text: String,
    place: usize,
    why: String,
}

impl FailIf {
    /// Reads one bound, or several with commas between them.
    ///
    /// # Errors
    /// When the text is not a bound; the error names the place.
    pub fn read(text: &str) -> Result<Vec<Self>, FailIfError> {
        let mut place = 0;
        text.split(',')
            .map(|part| {
                let begin = place;
                place += part.len() + 1;
                Self::one(part).map_err(|(at, why)| FailIfError {
                    text: text.to_owned(),
                    place: text[..begin + at].chars().count() + 1,
                    why,
                })
            })
            .collect()
    }

    /// Reads one bound. An error is the place in bytes, and what is wrong there.
    fn one(text: &str) -> Result<Self, (usize, String)> {
        let begin = text.len() - text.trim_start().len();
        let Some(at) = text.find(['<', '>']) else {
            return Err((begin, "a bound is a name, < or >, and a value: p99>200ms".to_owned()));
        };
        let name = text[begin..at].trim_end();
        let Some((_, metric, unit)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            return Err((begin, format!("{name:?} is not one of {METRICS}")));
        };
        let (comparison, length) = match (&text[at..=at], text[at + 1..].starts_with('=')) {
            (">", false) => (Comparison::More, 1),
            (">", true) => (Comparison::AtLeast, 2),
            (_, false) => (Comparison::Less, 1),
            (_, true) => (Comparison::AtMost, 2),
        };
        let behind = &text[at + length..];
        let value_at = at + length + (behind.len() - behind.trim_start().len());
        let (value, is_share) = value(behind.trim(), *unit).map_err(|why| (value_at, why))?;
        Ok(Self { metric: *metric, comparison, value, is_share })
    }

    /// Says how results fail the bound, for people. None: they keep it. What nobody has measured fails it, for nothing says that it is kept.
    #[must_use]
    pub fn failure(&self, results: &Results) -> Option<String> {
        let Some(measured) = self.measured(results) else { return Some(format!("{} is not known: nothing was answered", self.name())) };
        let fails = match self.comparison {
            Comparison::More => measured > self.value,
            Comparison::AtLeast => measured >= self.value,
            Comparison::Less => measured < self.value,
            Comparison::AtMost => measured <= self.value,
        };
        let words = match self.comparison {
            Comparison::More => "more than",
            Comparison::AtLeast => "not less than",
            Comparison::Less => "less than",
            Comparison::AtMost => "not more than",
        };
        fails.then(|| format!("{} is {}, {words} {}", self.name(), self.shown(measured), self.shown(self.value)))
    }

    fn measured(&self, results: &Results) -> Option<f64> {
        let latency = &results.latency;
        let time = |time: f64| (latency.count > 0).then_some(time);
        let part = |count: u64, of: u64| if self.is_share { (of > 0).then(|| count as f64 / of as f64) } else { Some(count as f64) };
        match self.metric {
            Metric::P50 => time(latency.p50),
            Metric::P75 => time(latency.p75),
            Metric::P90 => time(latency.p90),
            Metric::P95 => time(latency.p95),
            Metric::P99 => time(latency.p99),
            Metric::P99_9 => time(latency.p99_9),
            Metric::Mean => time(latency.mean),
            Metric::Max => time(latency.max),
            Metric::Rate => Some(results.rate),
            Metric::Errors => part(results.errors_count(), results.requests),
            Metric::Requests => Some(results.requests as f64),
            Metric::Missed => part(results.missed, results.requests + results.missed),
            Metric::Hits => {
                let hits = results.cache.get(&Outcome::Hit).map_or(0, |hits| hits.requests);
                (results.answered > 0).then(|| hits as f64 / results.answered as f64)
            }
        }
    }

    fn name(&self) -> &'static str {
        NAMES.iter().find(|(_, metric, _)| *metric == self.metric).map_or("", |(name, ..)| *name)
    }

    fn shown(&self, value: f64) -> String {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole, and not negative")]
        match self.metric {
            _ if self.is_share => format!("{} %", number(value * 100.0)),
            Metric::Rate => format!("{}/s", number(value)),
            Metric::Errors | Metric::Requests | Metric::Missed => count(value as u64),
            Metric::P50
            | Metric::P75
            | Metric::P90
            | Metric::P95
            | Metric::P99
            | Metric::P99_9
            | Metric::Mean
            | Metric::Max
            | Metric::Hits => milliseconds(value),
        }
    }
}

/// Shows the bound as it could have been written.
impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparison = match self.comparison {
            Comparison::More => ">",
            Comparison::AtLeast => ">=",
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
        };
        let value = self.shown(self.value).replace([' ', ','], "").replace("/s", "");
        write!(f, "{}{comparison}{value}", self.name())
    }
}

/// Reads a value: times in milliseconds, shares from 0 to 1. Says, too, whether it is a share.
fn value(text: &str, unit: Unit) -> Result<(f64, bool), String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = (text[..digits].parse::<f64>(), text[digits..].trim_start());
    let Ok(number) = number else { return Err(format!("{text:?} is not a number")) };
    let time = match suffix {
        "us" | "µs" => Some(0.001),
        "ms" => Some(1.0),
        "s" => Some(1_000.0),
        "m" | "min" => Some(60_000.0),
        _ => None,
    };
    match (unit, suffix) {
        (Unit::Time, _) => {
            time.map(|unit| (number * unit, false)).ok_or_else(|| format!("{text:?} is not a time with a unit: write 200ms or 1s"))
        }
        (Unit::Rate, "" | "/s") | (Unit::Number | Unit::NumberOrShare, "") => Ok((number, false)),
        (Unit::Share | Unit::NumberOrShare, "%") if number <= 100.0 => Ok((number / 100.0, true)),
        (Unit::Share | Unit::NumberOrShare, "%") => Err(format!("{text} is more than all")),
        (Unit::Share, _) => Err(format!("{text:?} is not a share: write 90%")),
        (Unit::NumberOrShare, _) => Err(format!("{text:?} is not a number or a share: write 5 or 0.1%")),
        (Unit::Rate | Unit::Number, _) => Err(format!("{text:?} is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        record::{ErrorClass, Tally},
        results::{CacheResult, Limit, Run, Times, Verdict},
    };

    fn results() -> Results {
        let verdict = Verdict { limit: Limit::Server, at_least: false, reason: String::new(), hint: None };
        let mut results = Results::new(Run::default(), Duration::from_secs(10), &Tally::new(), Vec::new(), verdict);
        results.requests = 10_000;
        results.answered = 9_990;
        results.rate = 999.0;
        results.missed = 20;
        results.errors.insert(ErrorClass::Timeout, 10);
        results.latency =
            Times { count: 10_000, mean: 20.0, p50: 10.0, p90: 90.0, p99: 312.0, p99_9: 900.0, max: 30_000.0, ..Times::default() };
        results.cache.insert(Outcome::Hit, CacheResult { requests: 8_991, share: 0.9, latency: Times::default() });
        results
    }

    #[test]
    fn results_fail_a_bound_that_they_exceed() {
        for (bound, failure) in [
            ("p99>200ms", Some("p99 is 312 ms, more than 200 ms")),
            ("p99>312ms", None),
            ("p99>=312ms", Some("p99 is 312 ms, not less than 312 ms")),
            ("p99.9 > 1s", None),
            ("p99_9>0.5s", Some("p99.9 is 900 ms, more than 500 ms")),
            ("p50>10000us", None),
            ("max>20s", Some("max is 30 s, more than 20 s")),
            ("mean>0.5m", None),
            ("rate<1000", Some("rate is 999/s, less than 1,000/s")),
            ("rate<900/s", None),
            ("errors>0", Some("errors is 10, more than 0")),
            ("errors>0.1%", None),
            ("errors>=0.1%", Some("errors is 0.10 %, not less than 0.10 %")),
            ("requests<=10000", Some("requests is 10,000, not more than 10,000")),
            ("missed>0", Some("missed is 20, more than 0")),
            ("missed>1%", None),
            ("hits<90%", None),
            ("hits<95%", Some("hits is 90.0 %, less than 95.0 %")),
        ] {
            let bounds = FailIf::read(bound).expect(bound);
            assert_eq!(bounds[0].failure(&results()).as_deref(), failure, "{bound}");
        }
    }

    #[test]
    fn nothing_is_kept_by_a_server_that_has_answered_nothing() {
        let mut results = results();
        results.latency = Times::default();
        results.answered = 0;
        results.requests = 0;
        for (bound, failure) in [
            ("p99>200ms", "p99 is not known: nothing was answered"),
            ("hits<1%", "hits is not known: nothing was answered"),
            ("errors>99%", "errors is not known: nothing was answered"),
        ] {
            assert_eq!(FailIf::read(bound).expect(bound)[0].failure(&results).as_deref(), Some(failure));
        }
    }

    #[test]
    fn several_bounds_stand_with_commas_between_them() {
        let bounds = FailIf::read("p99>200ms, errors>0.1% ,rate<1000").expect("three");
        assert_eq!(bounds.iter().map(ToString::to_string).collect::<Vec<_>>(), ["p99>200ms", "errors>0.10%", "rate<1000"]);
    }

    #[test]
    fn what_is_no_bound_is_refused_with_the_place() {
        for (text, error) in [
            ("", "\"\", character 1: a bound is a name, < or >, and a value: p99>200ms".to_owned()),
            ("p99", "\"p99\", character 1: a bound is a name, < or >, and a value: p99>200ms".to_owned()),
            ("p99=200ms", "\"p99=200ms\", character 1: a bound is a name, < or >, and a value: p99>200ms".to_owned()),
            ("rate<5,p98>1s", format!("\"rate<5,p98>1s\", character 8: \"p98\" is not one of {METRICS}")),
            ("p99>200", "\"p99>200\", character 5: \"200\" is not a time with a unit: write 200ms or 1s".to_owned()),
            ("p99> fast", "\"p99> fast\", character 6: \"fast\" is not a number".to_owned()),
            ("p99>-1ms", "\"p99>-1ms\", character 5: \"-1ms\" is not a number".to_owned()),
            ("hits<90", "\"hits<90\", character 6: \"90\" is not a share: write 90%".to_owned()),
            ("hits<900%", "\"hits<900%\", character 6: 900% is more than all".to_owned()),
            ("errors>5ms", "\"errors>5ms\", character 8: \"5ms\" is not a number or a share: write 5 or 0.1%".to_owned()),
            ("rate<1k", "\"rate<1k\", character 6: \"1k\" is not a number".to_owned()),
            ("p99>1ms,", "\"p99>1ms,\", character 9: a bound is a name, < or >, and a value: p99>200ms".to_owned()),
        ] {
            assert_eq!(FailIf::read(text).expect_err(text).to_string(), error);
        }
    }
}
