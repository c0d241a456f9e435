//! Sums over the requests of one site, or of all together, for this period and the one before.

use admin_api::{Latency, Line, Totals};

use crate::{
    amount::Lately,
    facts::{BUCKET_MICROS, BUCKETS, CLASSES, CacheResult, RESULT_NAMES, RESULTS, Row, Sum},
};

/// The results of requests that the cache answered without waiting for an origin.
const HITS: std::ops::Range<usize> = 0..3;
/// The results of requests that waited for an origin.
const FETCHED: std::ops::Range<usize> = 3..7;
/// The results of requests that asked the cache.
const LOOKUPS: std::ops::Range<usize> = 0..6;

/// The sums of one site.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) lately: Lately<Period>,
    pub(crate) latencies: Latencies,
}

/// The sums of one period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) by_result: [Sum; RESULTS.len()],
    pub(crate) by_class: [Sum; CLASSES.len()],
    /// The sums of each class: the requests that hit, the requests that waited for the origin, and how long the origin took for these.
    pub(crate) saved: [(u64, u64, u64); CLASSES.len()],
    /// Errors of servers and of clients; the origin's requests, failures and microseconds.
    pub(crate) others: [u64; 5],
    /// The time that the slowest response of each result took, in microseconds; zero: that is not known.
    pub(crate) slowest: [u64; RESULTS.len()],
}

/// Counts responses by result and by how long they took. Counts of 32 bits: when one is full, all of its result are halved, which moves no
/// percentile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Latencies(pub(crate) [[u32; BUCKETS]; RESULTS.len()]);

impl Default for Latencies {
    fn default() -> Self {
        Self([[0; BUCKETS]; RESULTS.len()])
    }
}

impl Sum {
    fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            bytes: self.bytes.saturating_add(other.bytes),
            origin_micros: self.origin_micros.saturating_add(other.origin_micros),
        }
    }

    fn of<'a>(sums: impl IntoIterator<Item = &'a Self>) -> Self {
        sums.into_iter().fold(Self::default(), |sum, of| sum.plus(*of))
    }
}

impl Sums {
    pub(crate) fn add(&mut self, row: &Row) {
        let period = &mut self.lately.now;
        for (result, classes) in row.sums.iter().enumerate() {
            period.by_result[result] = period.by_result[result].plus(Sum::of(classes));
            if result == CacheResult::Refused.place() {
                continue;
            }
            for (class, sum) in classes.iter().enumerate() {
                period.by_class[class] = period.by_class[class].plus(*sum);
                let saved = &mut period.saved[class];
                if HITS.contains(&result) {
                    saved.0 = saved.0.saturating_add(sum.requests);
                } else if FETCHED.contains(&result) {
                    saved.1 = saved.1.saturating_add(sum.requests);
                    saved.2 = saved.2.saturating_add(sum.origin_micros);
                }
            }
        }
        let others = [row.server_errors, row.client_errors, row.origin_requests, row.origin_failures, row.origin_micros];
        for (sum, other) in period.others.iter_mut().zip(others) {
            *sum = sum.saturating_add(other);
        }
        for (slowest, new) in period.slowest.iter_mut().zip(row.slowest) {
            *slowest = new.max(*slowest);
        }
        self.latencies.add(&row.latencies);
    }

    pub(crate) fn turn(&mut self) {
        self.lately.turn();
        for bucket in self.latencies.0.iter_mut().flatten() {
            *bucket /= 2;
        }
    }

    /// Returns the requests that have ended.
    pub(crate) fn requests(&self) -> u64 {
        let of = |period: &Period| Sum::of(&period.by_class).requests;
        of(&self.lately.now).saturating_add(of(&self.lately.before))
    }

    pub(crate) fn totals(&self) -> Totals {
        let [now, before] = [&self.lately.now, &self.lately.before].map(Period::totals);
        let mut totals = Totals {
            requests: now.requests.saturating_add(before.requests),
            hits: now.hits.saturating_add(before.hits),
            lookups: now.lookups.saturating_add(before.lookups),
            bytes: now.bytes.saturating_add(before.bytes),
            hit_bytes: now.hit_bytes.saturating_add(before.hit_bytes),
            origin_requests: now.origin_requests.saturating_add(before.origin_requests),
            origin_failures: now.origin_failures.saturating_add(before.origin_failures),
            origin_micros: now.origin_micros.saturating_add(before.origin_micros),
            saved_micros: 0,
            server_errors: now.server_errors.saturating_add(before.server_errors),
            client_errors: now.client_errors.saturating_add(before.client_errors),
        };
        totals.saved_micros = self.saved_micros();
        totals
    }

    /// Returns the time that hits would have cost the origin: each the mean of what its class costs, or of what all cost while nothing of its class was
    /// fetched. What was fetched for several at once counts for each of them, so that this is rather too low than too high.
    fn saved_micros(&self) -> u64 {
        let add = |a: (u64, u64, u64), b: (u64, u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1), a.2.saturating_add(b.2));
        let classes: [_; CLASSES.len()] = std::array::from_fn(|class| add(self.lately.now.saved[class], self.lately.before.saved[class]));
        let (_, fetched, micros) = classes.iter().fold((0, 0, 0), |sum, class| add(sum, *class));
        let saved = classes.iter().map(|(hits, of_class, took)| {
            let (count, took) = if *of_class > 0 { (*of_class, *took) } else { (fetched, micros) };
            u128::from(*hits) * u128::from(took) / u128::from(count.max(1))
        });
        u64::try_from(saved.sum::<u128>()).unwrap_or(u64::MAX)
    }

    pub(crate) fn by_result(&self) -> Vec<Line> {
        lines(&RESULT_NAMES, &self.lately.now.by_result, &self.lately.before.by_result)
    }

    pub(crate) fn by_class(&self) -> Vec<Line> {
        lines(&CLASSES, &self.lately.now.by_class, &self.lately.before.by_class)
    }

    pub(crate) fn latencies(&self) -> Vec<Latency> {
        let by_result = self.by_result();
        let of = |(result, buckets): (usize, &[u32; BUCKETS])| {
            let line = by_result.iter().find(|line| line.name == RESULT_NAMES[result])?;
            let buckets = buckets.map(u64::from);
            let slowest = self.lately.now.slowest[result].max(self.lately.before.slowest[result]);
            (buckets.iter().sum::<u64>() > 0).then(|| Latency {
                name: line.name.clone(),
                count: line.requests,
                p50: percentile(&buckets, 50, slowest),
                p95: percentile(&buckets, 95, slowest),
                p99: percentile(&buckets, 99, slowest),
            })
        };
        self.latencies.0.iter().enumerate().filter_map(of).collect()
    }
}

impl Period {
    fn totals(&self) -> Totals {
        let all = Sum::of(&self.by_class);
        let hits = Sum::of(&self.by_result[HITS]);
        let [server_errors, client_errors, origin_requests, origin_failures, origin_micros] = self.others;
        Totals {
            requests: all.requests,
            hits: hits.requests,
            lookups: Sum::of(&self.by_result[LOOKUPS]).requests,
            bytes: all.bytes,
            hit_bytes: hits.bytes,
            origin_requests,
            origin_failures,
            origin_micros,
            saved_micros: 0,
            server_errors,
            client_errors,
        }
    }
}

impl Latencies {
    fn add(&mut self, latencies: &[[u64; BUCKETS]; RESULTS.len()]) {
        for (buckets, new) in self.0.iter_mut().zip(latencies) {
            // One row is of a second: it does not fill a count of 32 bits.
            if buckets.iter().zip(new).any(|(bucket, new)| u64::from(*bucket) + new > u64::from(u32::MAX)) {
                buckets.iter_mut().for_each(|bucket| *bucket /= 2);
            }
            for (bucket, new) in buckets.iter_mut().zip(new) {
                *bucket = bucket.saturating_add(u32::try_from(*new).unwrap_or(u32::MAX));
            }
        }
    }
}

/// Returns the lines that say something.
fn lines<const N: usize>(names: &[&str; N], now: &[Sum; N], before: &[Sum; N]) -> Vec<Line> {
    let sums = now.iter().zip(before).map(|(now, before)| now.plus(*before));
    let lines = names.iter().zip(sums).filter(|(_, sum)| *sum != Sum::default());
    lines
        .map(|(name, sum)| Line { name: (*name).to_owned(), requests: sum.requests, bytes: sum.bytes, origin_micros: sum.origin_micros })
        .collect()
}

/// Returns the time in microseconds within which so many hundredths of the responses came; zero: there were none.
///
/// The times of a bucket count as if they were spread evenly over it. None counts as longer than `slowest`, unless that is zero, which means that it is not
/// known: buckets are wide above a second, and without that bound one response of 1.1 s would have a percentile of 2.5 s.
pub(crate) fn percentile(buckets: &[u64; BUCKETS], hundredths: u64, slowest: u64) -> u64 {
    let count: u64 = buckets.iter().sum();
    if count == 0 {
        return 0;
    }
    let wanted = (u128::from(count) * u128::from(hundredths)).div_ceil(100).max(1);
    let mut below = 0_u128;
    for (at, bucket) in buckets.iter().enumerate() {
        let within = u128::from(*bucket);
        if below + within >= wanted {
            let from = if at == 0 { 0 } else { BUCKET_MICROS[at - 1] };
            let until = match (BUCKET_MICROS.get(at), slowest) {
                (Some(bound), 0) => *bound,
                (Some(bound), slowest) => slowest.min(*bound),
                // Beyond the last bound only the slowest is known.
                (None, slowest) => slowest,
            };
            // The buckets forget more slowly than the slowest response, which may then lie below them.
            let until = until.max(from);
            let share = u128::from(until - from) * (wanted - below) / within;
            return from + u64::try_from(share).unwrap_or(u64::MAX);
        }
        below += within;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sums: &[(&str, &str, u64, u64, u64)]) -> Row {
        let mut row = Row::default();
        for (result, class, requests, bytes, origin_micros) in sums {
            let result = RESULT_NAMES.iter().position(|name| name == result).expect("a result");
            let class = CLASSES.iter().position(|name| name == class).expect("a class");
            row.sums[result][class] = Sum { requests: *requests, bytes: *bytes, origin_micros: *origin_micros };
        }
        row
    }

    #[test]
    fn requests_are_summed_up_by_what_the_cache_did_and_by_class() {
        let mut sums = Sums::default();
        sums.add(&row(&[
            ("hit", "document", 10, 1_000, 0),
            ("updating", "document", 2, 200, 0),
            ("miss", "document", 4, 400, 80_000),
            ("bypass", "api", 3, 30, 9_000),
            ("none", "other", 1, 5, 0),
            ("refused", "other", 7, 0, 0),
        ]));
        let totals = sums.totals();
        assert_eq!((totals.requests, totals.hits, totals.lookups), (20, 12, 16), "what is refused is not a request");
        assert_eq!((totals.bytes, totals.hit_bytes), (1_635, 1_200));
        let named = |lines: Vec<Line>| lines.into_iter().map(|line| (line.name, line.requests)).collect::<Vec<_>>();
        let expected = [("hit", 10), ("updating", 2), ("miss", 4), ("bypass", 3), ("refused", 7), ("none", 1)];
        assert_eq!(named(sums.by_result()), expected.map(|(name, n)| (name.to_owned(), n)));
        assert_eq!(named(sums.by_class()), [("document", 16), ("api", 3), ("other", 1)].map(|(name, n)| (name.to_owned(), n)));
    }

    #[test]
    fn a_hit_saves_what_its_class_costs_the_origin() {
        let mut sums = Sums::default();
        sums.add(&row(&[
            ("hit", "document", 10, 0, 0),
            ("miss", "document", 2, 0, 200_000),
            ("hit", "picture", 100, 0, 0),
            ("miss", "picture", 1, 0, 5_000),
            // Nothing of this class was fetched: the mean of all, 205 ms in 3 requests.
            ("hit", "style", 3, 0, 0),
        ]));
        assert_eq!(sums.totals().saved_micros, 10 * 100_000 + 100 * 5_000 + 205_000);
    }

    #[test]
    fn percentiles_are_those_of_the_buckets() {
        let mut buckets = [0; BUCKETS];
        assert_eq!(percentile(&buckets, 50, 0), 0);
        let bucket = |bound: u64| BUCKET_MICROS.iter().position(|of| *of == bound).expect("a bound");
        buckets[bucket(1_000)] = 98;
        buckets[bucket(10_000)] = 1;
        buckets[BUCKETS - 1] = 1;
        // From 500 to 1,000: the 50th of 98.
        assert_eq!(percentile(&buckets, 50, 0), 500 + 500 * 50 / 98);
        assert_eq!(percentile(&buckets, 99, 0), 10_000);
        assert_eq!(percentile(&buckets, 100, 0), 30_000_000);
        assert_eq!(percentile(&buckets, 100, 41_000_000), 41_000_000);
    }

    /// Issue 18: between 1 s and 2.5 s lies one bucket, and a percentile in it was shown as up to 2.5 s where nothing took longer than 1.1 s.
    #[test]
    fn no_percentile_is_longer_than_the_slowest_response_took() {
        let bucket = BUCKET_MICROS.iter().position(|bound| *bound == 2_500_000).expect("a bound");
        let result = CacheResult::Miss.place();
        let mut slow = row(&[("miss", "document", 4, 0, 0)]);
        (slow.latencies[result][bucket], slow.slowest[result]) = (4, 1_100_000);
        let mut sums = Sums::default();
        sums.add(&slow);
        let latency = &sums.latencies()[0];
        assert_eq!((latency.p50, latency.p95, latency.p99), (1_050_000, 1_100_000, 1_100_000));
        // One that was slower lies in the same bucket.
        (slow.latencies[result][bucket], slow.slowest[result]) = (1, 2_000_000);
        sums.add(&slow);
        assert_eq!(sums.latencies()[0].p99, 2_000_000);
        // After two periods it is forgotten; what is left of the buckets lies between their bounds.
        sums.turn();
        sums.turn();
        slow.latencies[result] = [0; BUCKETS];
        (slow.latencies[result][1], slow.slowest[result]) = (1, 20);
        sums.add(&slow);
        assert_eq!(sums.latencies()[0].p99, 1_000_000);
    }

    #[test]
    fn a_full_count_of_latencies_keeps_its_percentiles() {
        let mut sums = Sums::default();
        let mut busy = row(&[("hit", "document", 1, 0, 0)]);
        busy.latencies[0][0] = 900_000_000;
        busy.latencies[0][BUCKETS - 1] = 100_000_000;
        (0..20).for_each(|_| sums.add(&busy));
        let latency = &sums.latencies()[0];
        assert!(latency.p50 <= BUCKET_MICROS[0] && latency.p95 >= 30_000_000, "{latency:?}");
    }

    #[test]
    fn what_is_older_than_two_periods_is_forgotten() {
        let mut sums = Sums::default();
        sums.add(&row(&[("hit", "document", 1, 0, 0)]));
        sums.turn();
        sums.add(&row(&[("hit", "document", 10, 0, 0)]));
        assert_eq!(sums.totals().requests, 11);
        sums.turn();
        assert_eq!(sums.totals().requests, 10);
        sums.turn();
        assert_eq!(sums.totals().requests, 0);
    }
}
