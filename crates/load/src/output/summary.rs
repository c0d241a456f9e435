//! The summary at the end of a run.

use crate::results::Results;

/// Writes the summary that people read.
#[must_use]
pub fn summary(results: &Results) -> String {
    let Results { requests, duration, rate, latency, .. } = results;
    format!(
        "{requests} requests in {duration:.2} s, {rate:.0}/s\nlatency: median {:.2} ms, 99 % {:.2} ms, most {:.2} ms\n",
        latency.p50, latency.p99, latency.max
    )
}
