//! Says who was the bottleneck: whose limit a run has measured.
//!
//! One rule after the other is asked, in the order of how surely it can be told: what this machine ran out of, what its host took away, the load
//! tester's own CPU, and only then whether the server, the way to it, or the schedule itself set the pace. Each rule looks at numbers that a run
//! left behind and names them. Rules are pure; absent is any measuring.

mod rules;
mod shown;

use self::shown::Shown;
use crate::{
    Results,
    engine::Observations,
    results::{Limit, Verdict},
};

/// The requests that a verdict needs.
const REQUESTS_MIN: u64 = 20;

/// Says whose limit `results` show.
#[must_use]
pub fn judge(results: &Results, seen: &Observations) -> Verdict {
    let shown = Shown::new(results, seen);
    let rules = [
        rules::exhausted,
        rules::machine,
        rules::generator,
        rules::refused,
        rules::lost,
        rules::late,
        rules::behind,
        rules::kept_up,
        rules::alone,
        rules::network,
    ];
    let mut verdict = rules.iter().find_map(|rule| rule(&shown)).unwrap_or_else(|| rules::server(&shown));
    if matches!(verdict.limit, Limit::Server) && shown.shares_cores() {
        verdict.at_least = true;
        verdict.reason.push(' ');
        verdict.reason.push_str(&shown.sharing());
        verdict.hint = Some("Run the load tester on another machine, so that the server has its cores to itself.".to_owned());
    }
    if results.requests < REQUESTS_MIN {
        let what = if results.requests == 0 {
            "No request has ended.".to_owned()
        } else {
            format!("There are only {} requests.", results.requests)
        };
        verdict.reason = format!("{what} {}", verdict.reason);
        verdict.hint.get_or_insert_with(|| "Run longer, for a verdict that can be relied on.".to_owned());
    }
    verdict
}

#[cfg(test)]
mod tests;
