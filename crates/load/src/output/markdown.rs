//! The result as tables of Markdown, for issues and posts.

use super::{
    quantity::{bytes, count, milliseconds, seconds, share},
    summary::percentiles,
    table, words,
};
use crate::{answer::Outcome, results::Results};

/// Writes the result as tables of Markdown.
#[must_use]
pub fn markdown(results: &Results) -> String {
    let mut text = format!("**{}**: {}  \n{}\n\n", words::rate(results), code(&words::target(&results.run)), words::how(&results.run));
    let mut rows = vec![["", "result"].map(str::to_owned).to_vec()];
    rows.extend(figures(results).into_iter().map(|(name, value)| vec![name, value]));
    text += &table::markdown(&rows);
    if results.cache.keys().any(|outcome| *outcome != Outcome::Unknown) {
        let mut rows = vec![["cache", "share", "requests", "50 %", "99 %"].map(str::to_owned).to_vec()];
        rows.extend(results.cache.iter().map(|(outcome, part)| {
            let times = [part.latency.p50, part.latency.p99].map(milliseconds);
            [vec![words::outcome(*outcome).to_owned(), share(part.share), count(part.requests)], times.to_vec()].concat()
        }));
        text += &format!("\n{}", table::markdown(&rows));
    }
    text += &format!("\n{}", words::verdict(results));
    for more in words::reasons(results) {
        text += &format!(" {more}");
    }
    text += "\n";
    if !results.run.command.is_empty() {
        text += &format!("\n{}\n", code(&words::printable(&results.run.command)));
    }
    text
}

/// Returns the names and values that a table has of one run.
pub(super) fn figures(results: &Results) -> Vec<(String, String)> {
    let words::Headline { before, .. } = words::Headline::new(results);
    let at_least = if before == "at least" { "at least " } else { "" };
    let mut rows = vec![
        ("good answers a second".to_owned(), format!("{at_least}{}", super::quantity::number(words::good_rate(results)))),
        ("requests".to_owned(), format!("{} in {}", count(results.requests), seconds(results.duration))),
        ("failures".to_owned(), count(results.errors_count())),
    ];
    if let Some(early) = words::ended_early(results) {
        rows.push(("ended".to_owned(), early));
    }
    if let Some(found) = &results.found {
        rows.extend(found.tried.iter().map(words::step).map(|step| (format!("tried {}", step[0]), step[1..].join(", "))));
    }
    for (class, times) in results.errors.iter().filter(|(_, times)| **times > 0) {
        rows.push((format!("- {}", words::failure(*class)), count(*times)));
    }
    if results.missed > 0 {
        rows.push(("never sent".to_owned(), count(results.missed)));
    }
    if results.latency.count > 0 {
        rows.extend(percentiles(&results.latency).into_iter().map(|(name, value)| (format!("latency, {name}"), milliseconds(value))));
    }
    if results.page.count > 0 {
        rows.push(("whole page, 50 %".to_owned(), milliseconds(results.page.p50)));
        rows.push(("whole page, 99 %".to_owned(), milliseconds(results.page.p99)));
    }
    if let Some(reached) = results.origin_share {
        rows.push(("answers that reached the origin".to_owned(), share(reached)));
    }
    rows.push(("received".to_owned(), bytes(results.bytes as f64)));
    rows
}

/// Writes text as code, whatever backticks are in it (CommonMark §6.1).
fn code(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}
