//! Says who was the bottleneck: whose limit a run has measured.
//!
//! One rule after the other is asked, in the order of how surely it can be told: what this machine ran out of, what the server refused, what the host
//! of this machine took away, the load tester's own CPU, and only then whether the server, the way to it, or the schedule itself set the pace. Each rule looks at numbers that a run
//! left behind and names them. Rules are pure; absent is any measuring.

mod rules;
mod shown;

use self::shown::Shown;
use crate::{
    Results,
    engine::Observations,
    results::{Limit, Verdict},
};

/// Says whose limit `results` show.
#[must_use]
pub fn judge(results: &Results, seen: &Observations) -> Verdict {
    let shown = Shown::new(results, seen);
    let rules = [
        rules::exhausted,
        rules::refused,
        rules::nothing_good,
        rules::too_short,
        rules::machine,
        rules::generator,
        rules::lost,
        rules::behind,
        rules::late,
        rules::kept_up,
        rules::alone,
        rules::network,
    ];
    let mut verdict = rules.iter().find_map(|rule| rule(&shown)).unwrap_or_else(|| rules::server(&shown));
    // What refuses does so at a rate of its own, or has no CPU to waste: less load helps it, and not more cores.
    let refuses = rules::refused(&shown).or_else(|| rules::nothing_good(&shown)).is_some();
    if matches!(verdict.limit, Limit::Server) && !refuses && shown.shares_cores() {
        verdict.at_least = true;
        verdict.reason.push(' ');
        verdict.reason.push_str(&shown.sharing());
        verdict.hint = Some(rules::APART.to_owned());
    }
    verdict
}

#[cfg(test)]
mod tests;
