//! The summary at the end of a run.

use super::{
    quantity::{bytes, count, counted, milliseconds, seconds, share},
    table::columns,
    words,
};
use crate::{
    answer::Outcome,
    record::ErrorClass,
    results::{Limit, Results, Times, WarmUp},
};

/// Says whether text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    /// It has none.
    #[default]
    Plain,
    /// It has those of a terminal.
    Coloured,
}

impl Ink {
    /// Chooses colours for a terminal, unless `NO_COLOR` is set (no-color.org) or the terminal has none.
    #[must_use]
    pub fn for_terminal(is_terminal: bool) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_terminal && !set("NO_COLOR") && !dumb { Self::Coloured } else { Self::Plain }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }
}

/// Writes the summary that people read, without colours.
#[must_use]
pub fn summary(results: &Results) -> String {
    summary_in(results, Ink::Plain)
}

/// Writes the summary that people read.
#[must_use]
pub fn summary_in(results: &Results, ink: Ink) -> String {
    let mut text = format!("{}\n{}\n\n", ink.bold(&words::target(&results.run)), words::how(&results.run));
    let rate = ink.bold(&words::rate(results));
    let words::Headline { bad, before, .. } = words::Headline::new(results);
    let rate = match before.as_str() {
        _ if bad => ink.red(&rate),
        "at least" => ink.yellow(&rate),
        _ => rate,
    };
    text += &format!("  {rate}\n\n");
    text += &counts(results, ink);
    text += &latency(results, ink);
    text += &cache(results, ink);
    text += &steps(results);
    text += &verdict(results, ink);
    text
}

/// Says what was tried to find the highest rate.
fn steps(results: &Results) -> String {
    let Some(found) = &results.found else { return String::new() };
    let head = words::STEPS.map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(found.tried.iter().map(words::step)).collect();
    format!("\n{}", columns(&rows, "  "))
}

/// Writes a line with a name on its left.
fn line(ink: Ink, name: &str, what: &str) -> String {
    format!("{} {what}\n", ink.bold(&format!("{name:<12}")))
}

fn counts(results: &Results, ink: Ink) -> String {
    let mut text = line(ink, "Requests", &format!("{} in {}", count(results.requests), seconds(results.duration)));
    if let Some(early) = words::ended_early(results) {
        text += &line(ink, "Ended", &ink.yellow(&early));
    }
    text += &failures(results, ink);
    if results.run.leak_check && results.errors.get(&ErrorClass::Leak).is_none_or(|leaks| *leaks == 0) {
        text += &line(ink, "Leaks", &ink.green(&words::no_leak(results)));
    }
    if results.missed > 0 {
        text += &line(ink, "Never sent", &ink.yellow(&words::never_sent(results)));
    }
    if let Some(resent) = words::resent(results) {
        text += &line(ink, "Sent again", &resent);
    }
    let per_second = if results.duration > 0.0 { results.bytes as f64 / results.duration } else { 0.0 };
    text += &line(ink, "Received", &format!("{}, {} a second", bytes(results.bytes as f64), bytes(per_second)));
    let connect = &results.connect;
    if connect.count > 0 {
        let times =
            format!("median {}, 99 % {}, longest {}", milliseconds(connect.p50), milliseconds(connect.p99), milliseconds(connect.max));
        text += &line(ink, "Connections", &format!("{}, each made within: {times}", count(connect.count)));
    }
    let handshake = &results.handshake;
    if handshake.count > 0 {
        let times = format!("median {}, 99 % {}", milliseconds(handshake.p50), milliseconds(handshake.p99));
        let resumed = format!("{} of {} resumed", count(results.resumed), count(handshake.count));
        text += &line(ink, "TLS", &format!("{times}; {resumed}"));
    }
    if results.statuses.keys().any(|status| *status != 200) {
        let statuses: Vec<_> = results.statuses.iter().map(|(status, times)| format!("{status}: {}", count(*times))).collect();
        text += &line(ink, "Statuses", &statuses.join(", "));
    }
    if results.warm_up.requests > 0 {
        let WarmUp { requests, errors, .. } = results.warm_up;
        let failed = if errors > 0 { format!(", {} failed", count(errors)) } else { String::new() };
        text += &line(ink, "Warm-up", &format!("{}{failed}, not counted here", counted(requests, "request")));
    }
    text
}

fn failures(results: &Results, ink: Ink) -> String {
    let all = results.errors_count();
    if all == 0 {
        return line(ink, "Failures", &ink.green("none"));
    }
    let mut text = line(ink, "Failures", &ink.red(&format!("{} ({})", count(all), share(all as f64 / results.requests.max(1) as f64))));
    let rows: Vec<_> =
        results.errors.iter().filter(|(_, times)| **times > 0).map(|(class, times)| (count(*times), said(results, *class))).collect();
    let width = rows.iter().map(|(times, _)| times.len()).max().unwrap_or_default();
    for (times, what) in rows {
        text += &format!("  {}\n", ink.red(&format!("{times:>width$} {what}")));
    }
    for leak in &results.leaks {
        let owner = leak.owner.map_or_else(|| "a client of an earlier run".to_owned(), |owner| format!("client {owner}"));
        let place = words::printable(&leak.place);
        text += &format!("    {}: client {} got what belongs to {owner} ({place})\n", words::printable(&leak.url), leak.client);
    }
    text
}

/// Says what failed, with what is known of it.
fn said(results: &Results, class: ErrorClass) -> String {
    let words = words::failure(class);
    match class {
        ErrorClass::Timeout if results.run.timeout > 0.0 => format!("{words}, after {}", seconds(results.run.timeout)),
        _ => words.to_owned(),
    }
}

/// Returns the percentiles that people are shown: those beyond which there are requests at all.
pub(super) fn percentiles(times: &Times) -> Vec<(&'static str, f64)> {
    let beyond = |part: f64| times.count as f64 * part >= 1.0;
    [
        (true, "50 %", times.p50),
        (beyond(0.25), "75 %", times.p75),
        (beyond(0.1), "90 %", times.p90),
        (beyond(0.05), "95 %", times.p95),
        (beyond(0.01), "99 %", times.p99),
        (beyond(0.001), "99.9 %", times.p99_9),
        (true, "longest", times.max),
    ]
    .into_iter()
    .filter(|(shown, ..)| *shown)
    .map(|(_, name, value)| (name, value))
    .collect()
}

fn latency(results: &Results, ink: Ink) -> String {
    if results.latency.count == 0 {
        return format!("\n{}\n", line(ink, "Latency", "no request was answered").trim_end());
    }
    let mut columns_shown = vec![("last byte", &results.latency)];
    if results.run.open {
        columns_shown.push(("uncorrected", &results.latency_uncorrected));
    }
    if results.first_byte.count > 0 {
        columns_shown.push(("first byte", &results.first_byte));
    }
    if results.page.count > 0 {
        columns_shown.push(("whole page", &results.page));
    }
    let row = |name: &str, cells: &mut dyn Iterator<Item = String>| std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>();
    let mut rows = vec![row("Latency", &mut columns_shown.iter().map(|(name, _)| (*name).to_owned()))];
    for (name, value) in percentiles(&results.latency) {
        let others = columns_shown[1..].iter().map(|(_, times)| {
            let value = percentiles(times).into_iter().find(|(other, _)| *other == name).map(|(_, value)| milliseconds(value));
            value.unwrap_or_else(|| "-".to_owned())
        });
        rows.push(row(name, &mut std::iter::once(milliseconds(value)).chain(others)));
    }
    rows.push(row("mean", &mut columns_shown.iter().map(|(_, times)| milliseconds(times.mean))));
    format!("\n{}  {}\n", columns(&rows, "  "), ink.dim(words::correction(results.run.open)))
}

fn cache(results: &Results, ink: Ink) -> String {
    let known = results.cache.keys().any(|outcome| *outcome != Outcome::Unknown);
    if !known {
        return String::new();
    }
    let mut rows = vec![["Cache", "share", "requests", "50 %", "99 %"].map(str::to_owned).to_vec()];
    for (outcome, part) in &results.cache {
        rows.push(vec![
            words::outcome(*outcome).to_owned(),
            share(part.share),
            count(part.requests),
            milliseconds(part.latency.p50),
            milliseconds(part.latency.p99),
        ]);
    }
    let mut text = format!("\n{}", columns(&rows, "  "));
    if let Some(reached) = results.origin_share {
        let shared = words::shared(results).map_or_else(String::new, |shared| format!(" {shared}"));
        text += &format!("  {}\n", ink.dim(&format!("{} of the answers reached the origin.{shared}", share(reached))));
    }
    text
}

fn verdict(results: &Results, ink: Ink) -> String {
    let said = words::verdict(results);
    let said = match results.verdict.limit {
        _ if results.found.is_some() => ink.green(&said),
        Limit::Server | Limit::Schedule => ink.green(&said),
        Limit::Generator | Limit::Network | Limit::PortsOrDescriptors | Limit::Machine | Limit::Unknown => ink.yellow(&said),
    };
    let mut text = format!("\n{}", line(ink, "Verdict", &said));
    for more in words::reasons(results) {
        text += &format!("{:13}{more}\n", "");
    }
    text
}
