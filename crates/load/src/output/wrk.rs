//! The result in the layout of wrk, with its latency distribution, for scripts that read its lines.

use super::{
    ab::{at, distribution},
    words::printable,
};
use crate::{
    record::ErrorClass,
    results::{Results, Second},
};

/// Writes the result as `wrk --latency` does.
#[must_use]
pub fn wrk(results: &Results) -> String {
    let Results { duration, answered, rate, bytes, .. } = *results;
    let threads = results.run.workers.max(1);
    let target = results.run.urls.first().map_or_else(String::new, |url| printable(url));
    let mut text = format!("Running {} test @ {target}\n", whole_seconds(duration));
    text += &format!("  {threads} threads and {} connections\n", results.clients);
    text += &format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    let latency = distribution(&results.histograms.latency);
    let (mean, stdev) = (results.latency.mean, results.latency.stdev);
    let near = if latency.nanoseconds().is_empty() {
        0.0
    } else {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds of at most an hour; it saturates")]
        let nanoseconds = |milliseconds: f64| (milliseconds * 1e6) as u64;
        latency.nanoseconds().count_between(nanoseconds(mean - stdev), nanoseconds(mean + stdev)) as f64
            / latency.nanoseconds().len() as f64
    };
    text += &stats("Latency", time(mean), time(stdev), time(results.latency.max), near);
    let rates: Vec<_> = measured(results).map(|second| second.rate() / f64::from(threads)).collect();
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let stdev = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count).sqrt();
    let near = rates.iter().filter(|rate| (*rate - mean).abs() <= stdev).count() as f64 / count;
    text += &stats("Req/Sec", metric(mean), metric(stdev), metric(rates.iter().copied().fold(0.0, f64::max)), near);
    text += "  Latency Distribution\n";
    for percent in [50_u32, 75, 90, 99] {
        text += &format!("{percent:7}%{}\n", padded(&time(at(&latency, f64::from(percent) / 100.0)), 10));
    }
    text += &format!("  {answered} requests in {}, {}B read\n", time(duration * 1e3), binary(bytes as f64));
    let errors = |classes: &[ErrorClass]| classes.iter().filter_map(|class| results.errors.get(class)).sum::<u64>();
    let connect = errors(&[ErrorClass::Resolve, ErrorClass::Refused, ErrorClass::Connect, ErrorClass::Tls]);
    let read = errors(&[ErrorClass::Reset, ErrorClass::Truncated, ErrorClass::Protocol]);
    let timeout = errors(&[ErrorClass::Timeout, ErrorClass::Unfinished]);
    if connect + read + timeout > 0 {
        text += &format!("  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}\n");
    }
    let other = results.statuses.iter().filter(|(status, _)| **status >= 400).map(|(_, times)| times).sum::<u64>();
    if other > 0 {
        text += &format!("  Non-2xx or 3xx responses: {other}\n");
    }
    text += &format!("Requests/sec: {rate:9.2}\n");
    text += &format!("Transfer/sec: {:>10}B\n", binary(if duration > 0.0 { bytes as f64 / duration } else { 0.0 }));
    text
}

/// Returns the whole seconds after the warm-up.
fn measured(results: &Results) -> impl Iterator<Item = &Second> {
    let warm_up = results.warm_up.seconds;
    results.seconds.iter().filter(move |second| second.second as f64 >= warm_up && second.length > 0.5)
}

fn stats(name: &str, mean: String, stdev: String, max: String, near: f64) -> String {
    let [mean, stdev, max] = [(mean, 8), (stdev, 10), (max, 9)].map(|(text, width)| padded(&text, width));
    format!("    {name:<10}{mean}{stdev}{max}{:8.2}%\n", near * 100.0)
}

/// Puts a value into a column: digits stand below digits, units of one or two letters beside them.
fn padded(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take_while(|letter| !letter.is_ascii_digit()).count().min(2);
    let pad = 2 - letters;
    format!("{text:>width$}{:pad$}", "", width = width - pad)
}

fn whole_seconds(seconds: f64) -> String {
    format!("{}s", seconds.round())
}

fn time(milliseconds: f64) -> String {
    match milliseconds {
        _ if milliseconds < 1.0 => format!("{:.2}us", milliseconds * 1e3),
        _ if milliseconds < 1e3 => format!("{milliseconds:.2}ms"),
        _ if milliseconds < 60e3 => format!("{:.2}s", milliseconds / 1e3),
        _ if milliseconds < 3600e3 => format!("{:.2}m", milliseconds / 60e3),
        _ => format!("{:.2}h", milliseconds / 3600e3),
    }
}

fn metric(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G"])
}

fn binary(value: f64) -> String {
    scaled(value, 1024.0, &["", "K", "M", "G", "T", "P"])
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    // A sum of nothing is -0.0, and -0.0 + 0.0 is 0.0.
    let mut value = value + 0.0;
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!((metric(-0.0), binary(-0.0)), ("0.00".to_owned(), "0.00".to_owned()));
    }
}
