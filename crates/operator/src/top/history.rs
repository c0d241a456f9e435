//! Keeps what happened in each second of the last hour, with what is made of it: rates, shares and curves.

use std::collections::VecDeque;

use admin_api::{COLUMNS, Moment, Series};

/// The seconds that are kept.
const KEPT: usize = 3_600;

/// The seconds of which a rate is the mean: one alone would jump on a site with few readers.
const MEAN: usize = 10;

/// The values of one second, in the order of [`COLUMNS`].
pub(super) type Second = [u64; COLUMNS.len()];

/// A column, by its place in [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Requests,
    Hits,
    ServerErrors = 5,
    ClientErrors,
    Bytes,
    HitBytes,
    OriginRequests,
    OriginFailures,
    OriginMicros,
    Median,
    P99,
}

/// The seconds of the last hour.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The end of the newest second, in seconds since the epoch.
    end: u64,
    /// The seconds, the oldest first. `None`: Seawall did not run, or nobody looked.
    seconds: VecDeque<Option<Second>>,
}

impl History {
    /// Begins with what the server has counted before.
    pub(super) fn of(series: &Series) -> Self {
        let places: Vec<Option<usize>> = COLUMNS.iter().map(|name| series.columns.iter().position(|column| column == name)).collect();
        let second = |row: &Option<Vec<u64>>| {
            let row = row.as_ref()?;
            Some(std::array::from_fn(|column| places[column].and_then(|place| row.get(place)).copied().unwrap_or_default()))
        };
        let skipped = series.rows.len().saturating_sub(KEPT);
        Self { end: series.from + series.rows.len() as u64, seconds: series.rows.iter().skip(skipped).map(second).collect() }
    }

    /// Adds the second of a moment, of all sites or of one. One that is there already is not added again.
    pub(super) fn add(&mut self, moment: &Moment, site: Option<&str>) {
        if moment.at <= self.end && !self.seconds.is_empty() {
            return;
        }
        let missing = moment.at.saturating_sub(self.end + 1);
        if self.seconds.is_empty() || missing >= KEPT as u64 {
            self.seconds.clear();
        } else {
            self.seconds.extend((0..missing).map(|_| None));
        }
        self.seconds.push_back(Some(of_site(moment, site)));
        self.end = moment.at;
        while self.seconds.len() > KEPT {
            self.seconds.pop_front();
        }
    }

    /// Returns the newest seconds, at most `count` of them, the oldest first.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = Option<&Second>> {
        self.seconds.iter().skip(self.seconds.len().saturating_sub(count)).map(Option::as_ref)
    }

    /// Sums up a column over the seconds of a mean, and says how many these are.
    pub(super) fn sum(&self, column: Column) -> (u64, u64) {
        self.last(MEAN).flatten().fold((0, 0), |(sum, seconds), second| (sum + second[column as usize], seconds + 1))
    }

    /// Returns how often something happens in a second, as a mean.
    pub(super) fn rate(&self, column: Column) -> f64 {
        let (sum, seconds) = self.sum(column);
        if seconds == 0 { 0.0 } else { sum as f64 / seconds as f64 }
    }

    /// Returns median and 99th percentile of the newest second in which somebody was answered, in microseconds.
    pub(super) fn latency(&self) -> Option<(u64, u64)> {
        let newest = self.seconds.iter().rev().take(MEAN).flatten().find(|second| second[Column::Requests as usize] > 0)?;
        Some((newest[Column::Median as usize], newest[Column::P99 as usize]))
    }
}

/// Returns what happened in a moment at one site, or at all together.
pub(super) fn of_site(moment: &Moment, site: Option<&str>) -> Second {
    let row = match site {
        None => Some(&moment.total),
        // A site in which nothing happened is not there.
        Some(site) => moment.sites.iter().find(|(name, _)| name == site).map(|(_, row)| row),
    };
    std::array::from_fn(|column| row.and_then(|row| row.get(column)).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at: u64, requests: u64) -> Moment {
        let mut total = vec![0; COLUMNS.len()];
        total[0] = requests;
        Moment { at, total: total.clone(), sites: vec![("a".to_owned(), total)], ..Moment::default() }
    }

    fn requests(history: &History) -> Vec<Option<u64>> {
        history.last(KEPT).map(|second| second.map(|second| second[0])).collect()
    }

    #[test]
    fn each_column_is_where_its_name_is() {
        for (column, name) in [
            (Column::Requests, "requests"),
            (Column::Hits, "hits"),
            (Column::ServerErrors, "server_errors"),
            (Column::ClientErrors, "client_errors"),
            (Column::Bytes, "bytes"),
            (Column::HitBytes, "hit_bytes"),
            (Column::OriginRequests, "origin_requests"),
            (Column::OriginFailures, "origin_failures"),
            (Column::OriginMicros, "origin_micros"),
            (Column::Median, "p50_micros"),
            (Column::P99, "p99_micros"),
        ] {
            assert_eq!(COLUMNS[column as usize], name);
        }
    }

    #[test]
    fn seconds_follow_the_series_and_none_counts_twice() {
        let series = Series {
            from: 100,
            step: 1,
            columns: vec!["new".to_owned(), "requests".to_owned()],
            rows: vec![Some(vec![9, 5]), None, Some(vec![9, 7])],
            ..Series::default()
        };
        let mut history = History::of(&series);
        assert_eq!(requests(&history), [Some(5), None, Some(7)]);
        // The second that ended at 103 is the newest of the series.
        for (at, count) in [(103, 1), (104, 2), (104, 3), (106, 4)] {
            history.add(&moment(at, count), None);
        }
        assert_eq!(requests(&history), [Some(5), None, Some(7), Some(2), None, Some(4)]);
        assert_eq!(history.rate(Column::Requests), 4.5, "a second that is not known is not a second without requests");
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let mut history = History::default();
        (1..=5_000).for_each(|at| history.add(&moment(at, at), None));
        assert_eq!(history.seconds.len(), KEPT);
        history.add(&moment(1_000_000, 1), None);
        assert_eq!(requests(&history), [Some(1)], "what was before is too long ago");
    }

    #[test]
    fn a_site_in_which_nothing_happened_has_zeros() {
        let mut history = History::default();
        history.add(&moment(1, 5), Some("a"));
        history.add(&moment(2, 5), Some("b"));
        assert_eq!(requests(&history), [Some(5), Some(0)]);
    }
}
