//! The meanings of the names of the JSON form, in words.

use crate::{
    answer::Outcome,
    find_limit::TriedRate,
    record::ErrorClass,
    results::{Limit, Results, Run},
};

use super::quantity::{count, counted, milliseconds, number, seconds, share, whole};

/// Says what failed, as the end of "3 ...".
pub(super) const fn failure(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Resolve => "names that lead nowhere",
        ErrorClass::Refused => "connections refused",
        ErrorClass::Connect => "connections that could not be made",
        ErrorClass::Tls => "TLS handshakes failed",
        ErrorClass::Reset => "connections reset or closed by the server",
        ErrorClass::Timeout => "timeouts",
        ErrorClass::Unfinished => "requests unanswered when the run ended",
        ErrorClass::Truncated => "answers cut short",
        ErrorClass::Protocol => "answers that are not HTTP",
        ErrorClass::Status => "answers with an unexpected status",
        ErrorClass::Body => "answers with unexpected content",
        ErrorClass::Field => "answers with an unexpected field",
        ErrorClass::Leak => "answers with what belongs to another client",
    }
}

/// Names an outcome.
pub(super) const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Hit => "hit",
        Outcome::Stale => "stale",
        Outcome::Miss => "miss",
        Outcome::Bypass => "bypass",
        Outcome::Unknown => "not said",
    }
}

/// Says in one sentence what the verdict is.
pub(super) fn verdict(results: &Results) -> String {
    if let Some(found) = &results.found {
        return format!("The server keeps up with {found}.");
    }
    match results.verdict.limit {
        Limit::Schedule => "The server kept up with all that the schedule asked for.".to_owned(),
        Limit::Server if results.verdict.at_least => {
            "The server was the bottleneck, with what the load tester left it: it can do at least this.".to_owned()
        }
        Limit::Server => "The server was the bottleneck: this is what it can do.".to_owned(),
        Limit::Unknown => "It is not known yet what was the bottleneck.".to_owned(),
        other => {
            let name = match other {
                Limit::PortsOrDescriptors => "Ports or descriptors were",
                Limit::Generator => "The load tester itself was",
                Limit::Network => "The network was",
                Limit::Machine | Limit::Server | Limit::Schedule | Limit::Unknown => "The machine was",
            };
            let rest = if results.verdict.at_least { ": the server can do at least this." } else { "." };
            format!("{name} the bottleneck{rest}")
        }
    }
}

/// Says why that is the verdict, and what to do about it: a sentence or two each.
pub(super) fn reasons(results: &Results) -> impl Iterator<Item = String> {
    // The rate of a search is one that was asked for: what limits such a run limits no server.
    let is_limit = results.found.as_ref().is_some_and(|found| !found.at_least);
    std::iter::once(&results.verdict.reason)
        .chain(&results.verdict.hint)
        .filter(move |text| !is_limit && !text.is_empty())
        .map(|text| printable(text))
}

/// The share of failed requests from which a headline is a warning, and no lower bound of anything.
const BAD: f64 = 0.01;

/// Holds what a result says first.
pub(super) struct Headline {
    /// The text before the figure: `at least`, `the highest rate:`. It may be empty.
    pub(super) before: String,
    /// The figure, and what it counts.
    pub(super) text: String,
    /// The text that must not be overlooked beside it. It may be empty.
    pub(super) after: String,
    /// Whether so much failed that the figure alone would mislead.
    pub(super) bad: bool,
}

impl Headline {
    /// Words what a run has found. An answer that failed is not one that anybody wanted, so only the good ones count.
    pub(super) fn new(results: &Results) -> Self {
        if let Some((found, highest)) = results.found.as_ref().and_then(|found| Some((found, found.rate?))) {
            let at_least = if found.at_least { " at least" } else { "" };
            let beyond = found.beyond.as_ref().map(ToString::to_string);
            return Self {
                before: format!("the highest rate:{at_least}"),
                text: a_second(&whole(highest), "request"),
                after: beyond.unwrap_or_default(),
                bad: false,
            };
        }
        let failed = failed(results);
        let (at_least, is_bad) = (results.verdict.at_least, failed >= BAD);
        let before = if at_least && !is_bad { "at least".to_owned() } else { String::new() };
        if results.errors_count() == 0 {
            return Self { before, text: a_second(&number(results.rate), "request"), after: String::new(), bad: false };
        }
        let good = good_rate(results);
        // Failures without an answer are not in the rate of answers.
        let all =
            if number(good) == number(results.rate) { String::new() } else { format!("{}; ", a_second(&number(results.rate), "answer")) };
        Self { before, text: a_second(&number(good), "good answer"), after: format!("{all}{} failed", share(failed)), bad: is_bad }
    }
}

fn a_second(rate: &str, what: &str) -> String {
    match rate {
        "1" | "1.00" => format!("1 {what} a second"),
        rate => format!("{rate} {what}s a second"),
    }
}

/// Returns the share of the requests that failed.
pub(super) fn failed(results: &Results) -> f64 {
    results.errors_count() as f64 / results.requests.max(1) as f64
}

/// Returns the good answers a second. They are counted again, because results of earlier versions do not say them.
pub(super) fn good_rate(results: &Results) -> f64 {
    let good = results.requests.saturating_sub(results.errors_count());
    if results.duration > 0.0 { good as f64 / results.duration } else { 0.0 }
}

/// Writes the headline in one line: `13,464 requests a second`, `204 good answers a second (49,350 answers a second; 99.59 % failed)`.
pub(super) fn rate(results: &Results) -> String {
    let Headline { before, text, after, .. } = Headline::new(results);
    let before = if before.is_empty() { before } else { before + " " };
    let after = if after.is_empty() { after } else { format!(" ({after})") };
    format!("{before}{text}{after}")
}

/// Says that somebody ended the run before its end: `by you, after 3 s of 30 s`.
pub(super) fn ended_early(results: &Results) -> Option<String> {
    let after = seconds(results.ended_early?);
    let of = results.run.seconds.map_or_else(String::new, |all| format!(" of {}", seconds(all)));
    Some(format!("by you, after {after}{of}"))
}

/// Says how many requests were due and never sent.
pub(super) fn never_sent(results: &Results) -> String {
    let was = if results.missed == 1 { "was" } else { "were" };
    format!("{} that {was} due", counted(results.missed, "request"))
}

/// Says what was sent again, and why that is not a failure. None: nothing was.
pub(super) fn resent(results: &Results) -> Option<String> {
    let resent = results.generator.resent;
    // With streams, the server may have refused those (REFUSED_STREAM, H3_REQUEST_REJECTED), and kept the connection.
    let has_streams = ["HTTP/2", "HTTP/3"].iter().any(|protocol| results.run.protocol.starts_with(protocol));
    let did = match (has_streams, resent) {
        (false, 1) => "closed its connection",
        (false, _) => "closed their connections",
        (true, 1) => "turned it away",
        (true, _) => "turned them away",
    };
    (resent > 0).then(|| format!("{}: the server {did} without looking at what was asked; no failures", counted(resent, "request")))
}

/// Says that a check for leaks has found none, and how much it has looked at.
pub(super) fn no_leak(results: &Results) -> String {
    format!("none: {} answers were searched for the markers of other clients", count(results.answered))
}

/// Says how many misses got the answer to another's request. None: each asked the origin itself, or it is not known.
pub(super) fn shared(results: &Results) -> Option<String> {
    let reached = results.origin_share? * results.origin_known as f64;
    let of = |outcome| results.cache.get(&outcome).map_or(0, |part| part.requests);
    let (misses, bypasses) = (of(Outcome::Miss), of(Outcome::Bypass));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the count that the share was made from")]
    let shared = (misses + bypasses).checked_sub(reached.round() as u64).filter(|shared| *shared > 0 && *shared <= misses)?;
    (results.origin_known == results.answered)
        .then(|| format!("{} of {} misses shared the answer to another's request.", count(shared), count(misses)))
}

/// Names the columns of [`step`].
pub(super) const STEPS: [&str; 5] = ["Step", "for", "99 % within", "failed", "outcome"];

/// Says what a step of a search has shown.
pub(super) fn step(tried: &TriedRate) -> Vec<String> {
    let outcome = tried.excess.as_ref().map_or_else(|| "kept up".to_owned(), ToString::to_string);
    let p99 = milliseconds(tried.seen.p99.as_secs_f64() * 1e3);
    vec![format!("{}/s", whole(tried.rate)), seconds(tried.seconds), p99, share(tried.seen.failed), outcome]
}

/// Says what was asked: `https://example.org/ and 19 more`.
pub(super) fn target(run: &Run) -> String {
    match (run.urls.first(), run.urls_count.saturating_sub(1)) {
        (None, _) => String::new(),
        (Some(url), 0) => printable(url),
        (Some(url), more) => format!("{} and {} more", printable(url), count(more)),
    }
}

/// Says how it was asked: `HTTP/1.1 over TLS, 500 clients that stay, 5,000 requests`.
pub(super) fn how(run: &Run) -> String {
    let mut parts = Vec::new();
    if !run.protocol.is_empty() {
        parts.push(if run.tls { format!("{} over TLS", run.protocol) } else { run.protocol.clone() });
    }
    if run.no_keepalive {
        parts.push("a connection for each request".to_owned());
    }
    if !run.shape.is_empty() {
        parts.push(format!("the shape {}", run.shape));
    }
    parts.extend([run.schedule.clone(), run.stop.clone()].into_iter().filter(|part| !part.is_empty()));
    parts.dedup();
    // A schedule that has an end says it already.
    if let [.., schedule, stop] = parts.as_slice()
        && format!("{schedule},").replace(" at ", ", ").contains(&format!(" {stop},"))
    {
        parts.pop();
    }
    if run.warm_up > 0.0 {
        parts.push(format!("after {} of warm-up", seconds(run.warm_up)));
    }
    printable(&parts.join(", "))
}

/// Says why latencies are, or are not, corrected for requests that were sent later than they were due.
pub(super) const fn correction(open: bool) -> &'static str {
    if open {
        "Latency counts from the moment when a request was due; uncorrected: when it was sent."
    } else {
        "Each client waits for its answer before it asks again, so no correction applies."
    }
}

/// Writes what others wrote so that a terminal shows it and does nothing else. Control characters, the C1 controls among them, and marks that change the
/// direction of the text around them are replaced.
#[must_use]
pub fn printable(text: &str) -> String {
    let acts = |letter: char| {
        letter.is_control() || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|letter| if acts(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Keeps numbers and their units in one line.
pub(super) fn tight(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        out.push_str(word);
        let unit = |next: &&str| {
            let next = next.trim_end_matches([',', '.', ';', ')']);
            ["µs", "ms", "s", "min", "%", "bytes", "kB", "MB", "GB", "TB", "GiB"].contains(&next)
        };
        match words.peek() {
            Some(next) if word.ends_with(|letter: char| letter.is_ascii_digit()) && unit(next) => out.push('\u{a0}'),
            Some(_) => out.push(' '),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_moves_no_cursor_and_turns_no_text_around() {
        for acting in "\0\t\n\u{1b}\u{7f}\u{80}\u{90}\u{9b}\u{9f}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}".chars() {
            assert_eq!(printable(&format!("a{acting}b")), "a\u{fffd}b", "{acting:?}");
        }
        for text in ["/ä?x=1 %", "\u{a0}µs", "שלום", "日本"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn what_was_sent_again_is_said_with_its_reason_and_is_no_failure() {
        let said = |protocol: &str, again: u64| {
            let json = format!(
                r#"{{"duration":1,"requests":9,"answered":9,"rate":9,"bytes":0,"errors":{{}},"statuses":{{}},"latency":{{}},"latency_uncorrected":{{}},
                "first_byte":{{}},"connect":{{}},"handshake":{{}},"send_lag":{{}},"missed":0,"cache":{{}},"clients":1,"seconds":[],
                "verdict":{{"limit":"server","at_least":false,"reason":""}},"run":{{"protocol":"{protocol}"}},"generator":{{"resent":{again}}}}}"#
            );
            resent(&Results::read(&json).expect("a result"))
        };
        for (protocol, requests, words) in [
            ("HTTP/1.1", 0, None),
            ("HTTP/2, 10 streams a connection", 0, None),
            ("HTTP/1.1", 1, Some("1 request: the server closed its connection without looking at what was asked; no failures")),
            ("HTTP/1.1", 7, Some("7 requests: the server closed their connections without looking at what was asked; no failures")),
            // It closes the connection, or refuses a stream (RFC 9113 §8.7, RFC 9114 §4.1.1), and which it was is not counted.
            ("HTTP/2", 1, Some("1 request: the server turned it away without looking at what was asked; no failures")),
            (
                "HTTP/3, 10 streams a connection",
                7,
                Some("7 requests: the server turned them away without looking at what was asked; no failures"),
            ),
        ] {
            assert_eq!(said(protocol, requests).as_deref(), words, "{protocol}");
        }
    }

    #[test]
    fn a_number_stays_beside_its_unit() {
        assert_eq!(tight("99 % within 16 s, then 5 more"), "99\u{a0}% within 16\u{a0}s, then 5 more");
    }

    #[test]
    fn an_end_that_the_schedule_says_is_not_said_twice() {
        let how = |schedule: &str, stop: &str| how(&Run { schedule: schedule.to_owned(), stop: stop.to_owned(), ..Run::default() });
        assert_eq!(how("500 clients that stay", "30 s"), "500 clients that stay, 30 s");
        for schedule in [
            "20 requests a second for 30 s",
            "clients that stay: 0 to 500 within 30 s",
            "20 requests a second for 30 s at random moments, over at most 5 connections",
        ] {
            assert_eq!(how(schedule, "30 s"), schedule);
        }
        assert_eq!(how("20 requests a second for 30 s", "0 s"), "20 requests a second for 30 s, 0 s");
    }
}
