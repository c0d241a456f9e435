//! The seconds of a run as points of a chart: not more than a picture can show, and none of them flattered.
//!
//! When several seconds share a point, its rate is their mean, with the lowest and the highest second beside it, and its percentiles come from the
//! distributions of its seconds put together. A longest latency is never lost.

use std::collections::BTreeMap;

use super::lines::name_of;
use crate::{
    answer::Outcome,
    record::{Distribution, ErrorClass},
    results::{Results, Second},
};

/// The most points of a chart.
pub(super) const POINTS_MAX: usize = 600;

/// The length in seconds below which the rest of a run is not shown by itself: its rate would say nothing.
const SHORT: f64 = 0.5;

/// One or more seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    /// The time at which it begins, in seconds from the beginning of the run.
    pub(super) begin: f64,
    /// The time that was measured in it, in seconds.
    pub(super) length: f64,
    /// Answers a second: mean, lowest and highest.
    pub(super) rate: [f64; 3],
    /// Latency in milliseconds: 50 %, 90 %, 99 %, longest. None if nothing was answered.
    pub(super) latency: Option<[f64; 4]>,
    /// Failures a second, by class.
    pub(super) errors: BTreeMap<ErrorClass, f64>,
    /// The most clients.
    pub(super) clients: u32,
    /// Answers a second, by outcome.
    pub(super) cache: BTreeMap<Outcome, f64>,
}

impl Point {
    /// Returns when it ends.
    pub(super) fn end(&self) -> f64 {
        self.begin + self.length
    }

    /// Returns all failures a second.
    pub(super) fn errors_rate(&self) -> f64 {
        self.errors.values().sum()
    }

    /// Returns the share of an outcome, 0 to 1.
    pub(super) fn share(&self, outcome: Outcome) -> f64 {
        let all: f64 = self.cache.values().sum();
        if all > 0.0 { self.cache.get(&outcome).copied().unwrap_or_default() / all } else { 0.0 }
    }

    fn of(seconds: &[Second]) -> Self {
        let length: f64 = seconds.iter().map(|second| second.length).sum();
        let each_second = |amount: u64| if length > 0.0 { amount as f64 / length } else { 0.0 };
        let rates = seconds.iter().filter(|second| second.length >= SHORT || seconds.len() == 1).map(Second::rate);
        let mut errors = BTreeMap::<_, u64>::new();
        let mut cache = BTreeMap::<_, u64>::new();
        for second in seconds {
            second.errors.iter().for_each(|(class, count)| *errors.entry(*class).or_default() += count);
            second.cache.iter().for_each(|(outcome, count)| *cache.entry(*outcome).or_default() += count);
        }
        let (low, high) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
        Self {
            begin: seconds.first().map_or(0.0, |second| second.second as f64),
            length,
            rate: [each_second(seconds.iter().map(|second| second.answered).sum()), if low.is_finite() { low } else { 0.0 }, high],
            latency: latency(seconds),
            errors: errors.into_iter().map(|(class, count)| (class, each_second(count))).collect(),
            clients: seconds.iter().map(|second| second.clients).max().unwrap_or_default(),
            cache: cache.into_iter().map(|(outcome, count)| (outcome, each_second(count))).collect(),
        }
    }
}

fn latency(seconds: &[Second]) -> Option<[f64; 4]> {
    let answered: Vec<_> = seconds.iter().filter(|second| second.latency.count > 0).collect();
    if let [one] = answered.as_slice() {
        return Some([one.latency.p50, one.latency.p90, one.latency.p99, one.latency.max]);
    }
    let longest = answered.iter().map(|second| second.latency.max).reduce(f64::max)?;
    let mut whole = Distribution::new(2);
    for second in &answered {
        // A file without the distributions shows the worst of its seconds.
        if second.histogram.is_empty() || second.histogram.add_to(&mut whole).is_err() {
            let worst = |of: fn(&Second) -> f64| answered.iter().map(|second| of(second)).fold(0.0, f64::max);
            return Some([
                worst(|second| second.latency.p50),
                worst(|second| second.latency.p90),
                worst(|second| second.latency.p99),
                longest,
            ]);
        }
    }
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|quantile| quantile_of(&whole, quantile));
    Some([p50, p90, p99, longest])
}

fn quantile_of(times: &Distribution, quantile: f64) -> f64 {
    times.nanoseconds().value_at_quantile(quantile) as f64 / 1e6
}

/// Returns the points of a run, at most `most`.
pub(super) fn points(results: &Results, most: usize) -> Vec<Point> {
    let seconds = &results.seconds;
    let each = seconds.len().div_ceil(most.max(1)).max(1);
    let mut groups: Vec<&[Second]> = seconds.chunks(each).collect();
    // The last second is rarely whole.
    if let [.., last] = groups.as_slice()
        && last.iter().map(|second| second.length).sum::<f64>() < SHORT
        && groups.len() > 1
    {
        groups.pop();
        let whole = (groups.len() - 1) * each;
        groups.pop();
        groups.push(&seconds[whole..]);
    }
    groups.into_iter().map(Point::of).filter(|point| point.length > 0.0).collect()
}

/// Returns the classes of errors that occurred, the most frequent first.
pub(super) fn classes(results: &Results) -> Vec<ErrorClass> {
    let mut classes: Vec<_> = results.errors.iter().filter(|(_, count)| **count > 0).map(|(class, count)| (*count, *class)).collect();
    classes.sort_by_key(|(count, class)| (std::cmp::Reverse(*count), *class));
    classes.into_iter().map(|(_, class)| class).collect()
}

/// Returns whether answers say what a cache did.
pub(super) fn has_cache(results: &Results) -> bool {
    results.cache.keys().any(|outcome| name_of(*outcome) != name_of(Outcome::Unknown))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{record::Tally, results::Encoded};

    fn second(number: u64, length: f64, answered: u64, longest: u64) -> Second {
        let mut tally = Tally::of_a_second();
        for n in 0..answered {
            tally.latency.record(Duration::from_millis(if n + 1 == answered { longest } else { 10 }));
        }
        tally.answered = answered;
        tally.requests = answered;
        Second { errors: [(ErrorClass::Timeout, 4)].into(), ..Second::new(number, Duration::from_secs_f64(length), &tally) }
    }

    fn results(seconds: Vec<Second>) -> Results {
        let verdict = crate::results::Verdict { limit: crate::results::Limit::Server, at_least: false, reason: String::new(), hint: None };
        Results::new(crate::results::Run::default(), Duration::from_secs(1), &Tally::new(), seconds, verdict)
    }

    #[test]
    fn seconds_that_share_a_point_lose_neither_their_extremes_nor_their_longest_latency() {
        let points = points(&results(vec![second(0, 1.0, 100, 10), second(1, 1.0, 300, 700), second(2, 1.0, 200, 10)]), 2);
        assert_eq!(points.len(), 2);
        assert_eq!(points[0].rate, [200.0, 100.0, 300.0]);
        let [median, .., longest] = points[0].latency.expect("answered");
        assert!((median - 10.0).abs() < 0.2, "{median}");
        assert!((longest - 700.0).abs() < 7.0, "{longest}");
        assert_eq!(points[0].errors[&ErrorClass::Timeout], 4.0);
        assert_eq!(points[1].rate, [200.0, 200.0, 200.0]);
    }

    #[test]
    fn percentiles_of_several_seconds_come_from_all_their_requests() {
        let all = results(vec![second(0, 1.0, 1, 1000), second(1, 1.0, 999, 10)]);
        // One of 1,000 took a second: 99 % took 10 ms. The mean of the two seconds' percentiles would be 505 ms.
        let [.., p99, _] = points(&all, 1)[0].latency.expect("answered");
        assert!((p99 - 10.0).abs() < 0.2, "{p99}");
        let mut without = all;
        without.seconds.iter_mut().for_each(|second| second.histogram = Encoded::default());
        let [.., p99, _] = points(&without, 1)[0].latency.expect("answered");
        assert!(p99 > 990.0, "without distributions, the worst second stands: {p99}");
    }

    #[test]
    fn the_rest_of_a_second_has_no_rate_of_its_own() {
        let points = points(&results(vec![second(0, 1.0, 100, 10), second(1, 1.0, 100, 10), second(2, 0.01, 20, 10)]), POINTS_MAX);
        assert_eq!(points.len(), 2);
        assert!((points[1].rate[0] - 120.0 / 1.01).abs() < 1e-9);
        assert!((points[1].rate[2] - 100.0).abs() < 1e-9);
    }

    #[test]
    fn there_are_never_more_points_than_asked_for() {
        for (seconds, most) in [(0, 600), (1, 600), (600, 600), (601, 600), (3601, 600), (7, 3)] {
            let all = (0..seconds).map(|number| second(number, 1.0, 1, 1)).collect();
            let points = points(&results(all), most);
            assert!(points.len() <= most && points.is_empty() == (seconds == 0), "{seconds}: {}", points.len());
        }
    }
}
