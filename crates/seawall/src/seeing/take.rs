//! The difference between two times at which the workers' counters were read, as rows.

use std::{array, collections::BTreeMap};

use insight::{Insight, Row};
use pipeline::{CacheOutcome, Durations, SiteSnapshot, Snapshot};

use crate::plan::Plan;

// What is counted there has the same columns here.
const _: () = assert!(insight::RESULTS.len() == pipeline::OUTCOMES.len());
const _: () = assert!(insight::CLASSES.len() == pipeline::CLASSES.len());
const _: () = assert!(insight::BUCKET_MICROS.len() == pipeline::BUCKET_MICROS.len());

/// Holds what was taken last.
#[derive(Debug, Default)]
pub(super) struct LastReading {
    /// The counters of each site, and of requests that reached none.
    sites: BTreeMap<Option<u16>, SiteSnapshot>,
    /// Whether each address of each site could be reached.
    origins: BTreeMap<(u16, String), bool>,
    /// The number of the last request that viewers were told of.
    pub(super) told: u64,
}

impl LastReading {
    /// Returns a row for each site in which something happened since the last call. `slowest` has the longest durations since then, by site and result.
    pub(super) fn rows(
        &mut self,
        counted: &Snapshot,
        slowest: &BTreeMap<Option<u16>, [u64; insight::RESULTS.len()]>,
    ) -> Vec<(Option<u16>, Row)> {
        let sites = counted.sites.iter().map(|(number, site)| (Some(*number), site));
        let mut rows = Vec::new();
        for (number, now) in sites.chain([(None, &counted.siteless)]) {
            let before = self.sites.entry(number).or_default();
            let slowest = slowest.get(&number);
            if before != now || slowest.is_some() {
                rows.push((number, Row { slowest: slowest.copied().unwrap_or_default(), ..row(before, now) }));
                before.clone_from(now);
            }
        }
        rows
    }

    /// Tells which origins have gone, or are back.
    pub(super) fn look_at_origins(&mut self, plan: &Plan, insight: &Insight, at: u64) {
        let mut gone = std::mem::take(&mut self.origins);
        for site in &plan.sites {
            for server in site.servers().filter(|server| server.asked) {
                for (address, is_up) in server.addresses {
                    let key = (site.id, address);
                    // An outage that a restart has interrupted may be over: so a state that is new is told, whichever it is.
                    if gone.remove(&key) != Some(is_up) {
                        if is_up { insight.origin_is_up(key.0, &key.1, at) } else { insight.origin_is_down(key.0, &key.1, at) }
                    }
                    self.origins.insert(key, is_up);
                }
            }
        }
        for ((site, address), is_up) in gone {
            if !is_up {
                insight.origin_is_up(site, &address, at);
            }
        }
    }
}

fn row(before: &SiteSnapshot, now: &SiteSnapshot) -> Row {
    let mut row = Row::default();
    for ((result, class), tally) in &now.tallies {
        let nothing = pipeline::Tally::default();
        let before = before.tallies.get(&(*result, *class)).unwrap_or(&nothing);
        let durations = difference(&before.durations, &tally.durations);
        let sum = &mut row.sums[*result][*class];
        sum.requests = durations.iter().sum();
        sum.bytes = tally.body_bytes - before.body_bytes;
        sum.origin_micros = tally.origin_micros.wrapping_sub(before.origin_micros);
        for (to, from) in row.latencies[*result].iter_mut().zip(durations) {
            *to += from;
        }
    }
    // Refusals have no tally: there was no request.
    let refused = CacheOutcome::Refused.place();
    if let Some(last) = row.sums[refused].last_mut() {
        last.requests = now.outcomes[refused] - before.outcomes[refused];
    }
    row.client_errors = now.responses[4] - before.responses[4];
    row.server_errors = now.responses[5] - before.responses[5];
    let origin = difference(&before.origin_durations, &now.origin_durations).iter().sum::<u64>();
    row.origin_failures = now.origin_failures - before.origin_failures;
    row.origin_requests = origin + row.origin_failures + (now.origin_given_up - before.origin_given_up);
    let given_up = now.origin_given_up_micros.wrapping_sub(before.origin_given_up_micros);
    row.origin_micros = now.origin_durations.micros.wrapping_sub(before.origin_durations.micros).saturating_add(given_up);
    row
}

fn difference(before: &Durations, now: &Durations) -> [u64; insight::BUCKETS] {
    array::from_fn(|bucket| now.buckets[bucket] - before.buckets[bucket])
}
