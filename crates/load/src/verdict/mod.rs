//! Says who was the bottleneck: whose limit a run has measured.
//!
//! One rule after the other is asked, in the order of how surely it can be told: what this machine ran out of, what the server refused, what the host
//! of this machine took away, the load tester's own CPU, and only then whether the server, the way to it, or the schedule itself set the pace. Each rule looks at numbers that a run
//! left behind and names them. Rules are pure; absent is any measuring.

mod rules;
mod shown;

use self::shown::RunFigures;
use crate::{
    Results,
    engine::Observations,
    results::{Limit, Verdict},
};

/// Says whose limit it was, if that is what it looks for.
type Rule = fn(&RunFigures) -> Option<Verdict>;

/// Says whose limit `results` show.
#[must_use]
pub fn judge(results: &Results, seen: &Observations) -> Verdict {
    let shown = RunFigures::new(results, seen);
    // Each rule, and whether its reason says itself what failed. What ran out here may be a part of that.
    let is_mixed = shown.failing().len() > 1;
    let rules: [(Rule, bool); 12] = [
        (rules::exhausted, !is_mixed),
        (rules::refused, true),
        (rules::nothing_good, true),
        (rules::too_short, false),
        (rules::machine, false),
        (rules::generator, false),
        (rules::lost, true),
        (rules::behind, false),
        (rules::late, false),
        (rules::kept_up, false),
        (rules::alone, false),
        (rules::network, false),
    ];
    let found = rules.iter().find_map(|(rule, says)| Some((rule(&shown)?, *says)));
    let (mut verdict, says) = found.unwrap_or_else(|| (rules::server(&shown), false));
    if !says && shown.failed() >= rules::FAILED {
        verdict.reason.push(' ');
        verdict.reason.push_str(&shown.failures());
    }
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
