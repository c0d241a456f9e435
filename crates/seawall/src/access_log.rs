//! Access log lines, written into a buffer of the worker's own and handed on in large pieces.
//!
//! Formatting happens between a response and the next request, so it is written to cost little: the time of day is formatted once a
//! second, and most text is copied after one look for characters that need escaping.

use std::{
    io::Write as _,
    net::IpAddr,
    time::{Duration, Instant},
};

use edge::Exchange;
use http::Version;
use pipeline::Note;
use semantics::{Scheme, Timestamp, cache_status::Outcome, date::civil, decimal, target::canonical_authority};

use crate::{
    config::settings::LogFormat,
    writer::{Piece, Sink},
};

/// The length at which a buffer is handed on. One more line may exceed it by at most the limits on a request's head.
const BUFFER: usize = 32 * 1024;

/// Collects lines of the access log for the writer.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: LogFormat,
    sink: Sink,
    buffer: Vec<u8>,
    lines: u64,
    /// The beginning of the last line and its client. The next line of the same client in the same second begins in the same way.
    opening: Vec<u8>,
    opening_ends: Instant,
    client: Option<IpAddr>,
}

impl AccessLog {
    pub(crate) fn new(format: LogFormat, sink: Sink) -> Self {
        let buffer = Vec::with_capacity(BUFFER + 4096);
        Self { format, sink, buffer, lines: 0, opening: Vec::new(), opening_ends: Instant::now(), client: None }
    }

    /// Adds a line to the log, of a request that took so long.
    pub(crate) fn write(&mut self, exchange: &Exchange<'_>, took: Duration, note: &Note, wall_clock: impl FnOnce(Instant) -> Timestamp) {
        let client = note.client.or_else(|| exchange.peer.address.map(|address| address.ip()));
        if exchange.ended >= self.opening_ends || client != self.client {
            let now = wall_clock(exchange.ended);
            self.client = client;
            // The rest of this second.
            self.opening_ends = exchange.ended + Duration::from_millis(1000 - now.as_millis() % 1000);
            self.opening.clear();
            open_line(&mut self.opening, self.format, client, now);
        }
        self.buffer.extend_from_slice(&self.opening);
        match self.format {
            LogFormat::Combined => combined(&mut self.buffer, exchange, took, note),
            LogFormat::Json => json(&mut self.buffer, exchange, took, note),
        }
        self.lines += 1;
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    /// Hands the collected lines on to the writer.
    pub(crate) fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.lines);
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER + 4096));
        self.sink.send(Piece { bytes, lines });
    }
}

/// One field of a line: its place in the combined format, its name in the JSON format, and its meaning.
#[cfg(test)]
struct Field {
    combined: &'static str,
    json: &'static str,
    meaning: &'static str,
}

/// The fields of a line. The combined format is the first column, read from top to bottom.
#[cfg(test)]
const FIELDS: [Field; 21] = [
    Field {
        combined: "CLIENT",
        json: "client",
        meaning: "The client's address; the one that a trusted proxy names, if it came through one. `-` if there is none, as over a Unix socket.",
    },
    Field { combined: "- -", json: "", meaning: "Identity and user in the logs of other servers. Always `-`." },
    Field { combined: "[TIME]", json: "time", meaning: "When the response had been sent, in UTC." },
    Field { combined: "\"METHOD", json: "method", meaning: "The request's method." },
    Field { combined: "TARGET", json: "target", meaning: "The path and query, as the client sent them." },
    Field { combined: "HTTP/VERSION\"", json: "version", meaning: "The version of HTTP: `1.0`, `1.1`, `2.0` or `3.0`." },
    Field {
        combined: "STATUS",
        json: "status",
        meaning: "The status code that was sent. 499: the client left before there was a response.",
    },
    Field { combined: "BYTES", json: "body_bytes", meaning: "Bytes of content that were sent, compressed if the response was." },
    Field { combined: "\"REFERER\"", json: "referer", meaning: "The page that the client came from, if it says so." },
    Field { combined: "\"USER-AGENT\"", json: "user_agent", meaning: "The program that the client says it is." },
    Field {
        combined: "rt=SECONDS",
        json: "request_time",
        meaning: "Response time: seconds from the request's arrival until its response was handed to the system or the client had left.",
    },
    Field {
        combined: "ot=SECONDS",
        json: "origin_time",
        meaning: "Origin time: seconds from the request to the origin until the head of its response, or until the client left. `-` or `null`: the origin was not asked for this request, or its client left while it went on for others.",
    },
    Field {
        combined: "CACHE",
        json: "cache",
        meaning: "What the cache did, as in [`X-Cache`](x-cache.md). `-` or `null`: the request did not get to the cache.",
    },
    Field { combined: "", json: "host", meaning: "The `Host` that the client asked for." },
    Field { combined: "", json: "scheme", meaning: "`https` if the client's connection to Seawall is encrypted, else `http`." },
    Field {
        combined: "",
        json: "coding",
        meaning: "The content coding of the response: `gzip`, `br` or `zstd`. Left out if there is none.",
    },
    Field {
        combined: "",
        json: "cookie",
        meaning: "The cookie for which the response was not stored, or by which the request passed: its name or how it begins (`wp-postpass_*`), never its value. Left out if there is none.",
    },
    Field {
        combined: "",
        json: "request_id",
        meaning: "The id of the request, as `X-Request-Id` says it to the client and to the origin. Left out for a plain hit, of which nobody else has heard.",
    },
    Field {
        combined: "",
        json: "trace_id",
        meaning: "The trace that the request belongs to ([traces.md](traces.md)). Left out if it is not traced.",
    },
    Field { combined: "", json: "collapsed", meaning: "Whether the request shared the fetch of another one." },
    Field {
        combined: "",
        json: "complete",
        meaning: "Whether the response reached its end. `false`: the client left, or the origin broke off.",
    },
];

/// Writes the beginning of a line: the client and the time.
fn open_line(out: &mut Vec<u8>, format: LogFormat, client: Option<IpAddr>, now: Timestamp) {
    let client = client.map_or_else(|| "-".to_owned(), |client| client.to_canonical().to_string());
    match format {
        LogFormat::Combined => {
            out.extend_from_slice(client.as_bytes());
            out.extend_from_slice(b" - - ");
            combined_time(now, out);
            out.extend_from_slice(b" \"");
        }
        LogFormat::Json => {
            out.extend_from_slice(b"{\"time\":\"");
            json_time(now, out);
            out.extend_from_slice(b"\",\"client\":\"");
            out.extend_from_slice(client.as_bytes());
        }
    }
}

/// Writes a line in the combined format, `host ident user [time] "request" status bytes "referer" "user-agent"`, and three fields more: how
/// long it took, how long the origin took, and what the cache did.
fn combined(out: &mut Vec<u8>, exchange: &Exchange<'_>, took: Duration, note: &Note) {
    match exchange.method {
        "GET" => out.extend_from_slice(b"GET "),
        method => {
            escaped(out, method.as_bytes());
            out.push(b' ');
        }
    }
    escaped(out, exchange.target.as_bytes());
    out.extend_from_slice(match exchange.version {
        Version::HTTP_10 => b" HTTP/1.0\" ",
        Version::HTTP_2 => b" HTTP/2.0\" ",
        Version::HTTP_3 => b" HTTP/3.0\" ",
        _ => b" HTTP/1.1\" ",
    });
    decimal::write(u64::from(exchange.status), out);
    out.push(b' ');
    decimal::write(exchange.body_bytes, out);
    if exchange.referer.is_empty() && exchange.user_agent.is_empty() {
        out.extend_from_slice(b" \"-\" \"-\" rt=");
    } else {
        out.extend_from_slice(b" \"");
        or_dash(out, exchange.referer);
        out.extend_from_slice(b"\" \"");
        or_dash(out, exchange.user_agent);
        out.extend_from_slice(b"\" rt=");
    }
    seconds(out, took);
    match (note.origin_time, note.outcome) {
        (None, Some(Outcome::Hit)) => out.extend_from_slice(b" ot=- HIT\n"),
        (origin_time, outcome) => {
            out.extend_from_slice(b" ot=");
            match origin_time {
                Some(time) => seconds(out, time),
                None => out.push(b'-'),
            }
            out.push(b' ');
            out.extend_from_slice(outcome.map_or("-", Outcome::x_cache).as_bytes());
            out.push(b'\n');
        }
    }
}

fn json(out: &mut Vec<u8>, exchange: &Exchange<'_>, took: Duration, note: &Note) {
    // Lines of one host are to be found together, however strangers spell it.
    let host = canonical_authority(exchange.peer.scheme, std::str::from_utf8(exchange.host).unwrap_or_default());
    for (name, value) in [
        (&b"\",\"method\":\""[..], exchange.method.as_bytes()),
        (b"\",\"host\":\"", host.as_bytes()),
        (b"\",\"target\":\"", exchange.target.as_bytes()),
        (b"\",\"referer\":\"", exchange.referer),
        (b"\",\"user_agent\":\"", exchange.user_agent),
    ] {
        out.extend_from_slice(name);
        json_escaped(out, value);
    }
    out.extend_from_slice(match exchange.peer.scheme {
        Scheme::Http => b"\",\"scheme\":\"http",
        Scheme::Https => &b"\",\"scheme\":\"https"[..],
    });
    out.extend_from_slice(match exchange.version {
        Version::HTTP_10 => b"\",\"version\":\"1.0\",\"status\":",
        Version::HTTP_2 => b"\",\"version\":\"2.0\",\"status\":",
        Version::HTTP_3 => b"\",\"version\":\"3.0\",\"status\":",
        _ => b"\",\"version\":\"1.1\",\"status\":",
    });
    decimal::write(u64::from(exchange.status), out);
    out.extend_from_slice(b",\"body_bytes\":");
    decimal::write(exchange.body_bytes, out);
    out.extend_from_slice(b",\"request_time\":");
    seconds(out, took);
    out.extend_from_slice(b",\"origin_time\":");
    match note.origin_time {
        Some(time) => seconds(out, time),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"cache\":");
    match note.outcome {
        Some(outcome) => {
            out.push(b'"');
            out.extend_from_slice(outcome.x_cache().as_bytes());
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    if let Some(coding) = note.coding {
        out.extend_from_slice(b",\"coding\":\"");
        out.extend_from_slice(coding.token().as_bytes());
        out.push(b'"');
    }
    if let Some(cookie) = note.cookie {
        out.extend_from_slice(b",\"cookie\":\"");
        json_escaped(out, cookie.name().to_string().as_bytes());
        out.push(b'"');
    }
    if let Some(id) = note.id {
        let _ = write!(out, ",\"request_id\":\"{id}\"");
    }
    if let Some(ids) = note.trace {
        let _ = write!(out, ",\"trace_id\":\"{}\"", ids.trace);
    }
    out.extend_from_slice(if note.collapsed { b",\"collapsed\":true" } else { b",\"collapsed\":false" });
    out.extend_from_slice(if exchange.complete { b",\"complete\":true}\n" } else { b",\"complete\":false}\n" });
}

fn or_dash(out: &mut Vec<u8>, value: &[u8]) {
    if value.is_empty() {
        out.push(b'-');
    } else {
        escaped(out, value);
    }
}

/// Tells whether `value` is printable ASCII without `"` and `\`.
///
/// It looks at whole blocks, of which the last begins where it has to: the compiler makes a few vector instructions of each, and single bytes would cost
/// as much as a block. None ends it early, as nearly all values are plain.
fn is_plain(value: &[u8]) -> bool {
    // One comparison for all three: what is nothing for a special byte alone.
    let distance = |b: u8| (b ^ b'"').min(b ^ b'\\').min(0x5f_u8.saturating_sub(b.wrapping_sub(b' ')));
    let Some(end) = value.last_chunk::<16>() else {
        return match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
            (Some(start), Some(end)) => !start.iter().chain(end).fold(false, |found, &b| found | (distance(b) == 0)),
            (None, _) | (_, None) => value.iter().all(|&b| distance(b) != 0),
        };
    };
    let mut least = end.map(distance);
    for block in value.as_chunks::<16>().0 {
        for (least, &b) in least.iter_mut().zip(block) {
            *least = distance(b).min(*least);
        }
    }
    !least.iter().fold(false, |found, &least| found | (least == 0))
}

/// Appends `value` as nginx and Apache do: `"`, `\` and bytes that are not printable ASCII become `\xHH`, so that no client can write lines
/// of its own.
fn escaped(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        out.extend_from_slice(value);
    } else {
        escape(out, value);
    }
}

#[cold]
fn escape(out: &mut Vec<u8>, value: &[u8]) {
    let special = |b: u8| !(0x20..0x7f).contains(&b) || b == b'"' || b == b'\\';
    for &b in value {
        if special(b) {
            out.extend_from_slice(&[b'\\', b'x', hex(b >> 4), hex(b & 15)]);
        } else {
            out.push(b);
        }
    }
}

/// Appends `value` with JSON's escapes. Bytes that are not UTF-8 become U+FFFD.
fn json_escaped(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        out.extend_from_slice(value);
        return;
    }
    for c in String::from_utf8_lossy(value).chars() {
        match c {
            '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
            '\0'..='\x1f' | '\x7f' => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(c as u8 >> 4), hex(c as u8 & 15)]),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

const fn hex(nibble: u8) -> u8 {
    b"0123456789abcdef"[nibble as usize & 15]
}

fn padded(out: &mut Vec<u8>, n: u64, width: usize) {
    let mut digits = Vec::with_capacity(width);
    decimal::write(n, &mut digits);
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits.len())));
    out.extend_from_slice(&digits);
}

/// Appends a time in seconds with six decimals.
fn seconds(out: &mut Vec<u8>, time: Duration) {
    decimal::write(time.as_secs(), out);
    let micros = u64::from(time.subsec_micros());
    let [a, b] = decimal::pair(micros / 10_000);
    let [c, d] = decimal::pair(micros / 100);
    let [e, f] = decimal::pair(micros);
    out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
}

const MONTHS: [&[u8; 3]; 12] = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Appends a time such as `[21/Nov/2026:21:00:00 +0000]`.
fn combined_time(at: Timestamp, out: &mut Vec<u8>) {
    let (year, month, day) = civil(at.as_secs() / 86_400);
    out.push(b'[');
    padded(out, day, 2);
    out.push(b'/');
    out.extend_from_slice(MONTHS[usize::try_from(month - 1).unwrap_or_default()]);
    out.push(b'/');
    padded(out, year, 4);
    out.push(b':');
    time_of_day(at, out);
    out.extend_from_slice(b" +0000]");
}

/// Appends a time such as `2026-11-21T21:00:00Z` (RFC 3339).
fn json_time(at: Timestamp, out: &mut Vec<u8>) {
    let (year, month, day) = civil(at.as_secs() / 86_400);
    padded(out, year, 4);
    out.push(b'-');
    padded(out, month, 2);
    out.push(b'-');
    padded(out, day, 2);
    out.push(b'T');
    time_of_day(at, out);
    out.push(b'Z');
}

fn time_of_day(at: Timestamp, out: &mut Vec<u8>) {
    let second = at.as_secs() % 86_400;
    padded(out, second / 3600, 2);
    out.push(b':');
    padded(out, second / 60 % 60, 2);
    out.push(b':');
    padded(out, second % 60, 2);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use edge::Peer;
    use semantics::trace_context::TraceParent;

    use super::*;
    use crate::page;

    fn line(format: LogFormat, target: &str, user_agent: &[u8]) -> String {
        let (started, took) = (Instant::now(), Duration::from_micros(1_234));
        let exchange = Exchange {
            peer: Peer { address: "192.0.2.7:4711".parse().ok(), scheme: Scheme::Http },
            method: "GET",
            target,
            version: Version::HTTP_11,
            // However it was spelt: the line has its one name.
            host: b"Blog.Example.:0080",
            referer: b"",
            user_agent,
            status: 200,
            body_bytes: 5120,
            started,
            ended: started + took,
            complete: true,
        };
        let coding = Some(semantics::coding::Coding::Gzip);
        let cookie = Some(pipeline::DecidingCookie::Carried(policy::CookieName::whole("a\"b")));
        let id = semantics::RequestId::parse(b"0123456789abcdef0123456789abcdef");
        let parent = TraceParent::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("valid");
        let TraceParent { trace, span, flags } = parent;
        let trace = Some(semantics::TraceIds { trace, span, parent: None, flags });
        let origin_time = Some(Duration::from_millis(45));
        let note = Note { outcome: Some(Outcome::Hit), origin_time, coding, cookie, id, trace, ..Note::default() };
        // 29 February 2024, 23:59:59.
        let at = Timestamp::from_secs(1_709_251_199);
        let mut out = Vec::new();
        open_line(&mut out, format, exchange.peer.address.map(|address| address.ip()), at);
        match format {
            LogFormat::Combined => combined(&mut out, &exchange, took, &note),
            LogFormat::Json => json(&mut out, &exchange, took, &note),
        }
        String::from_utf8(out).expect("log lines are text")
    }

    #[test]
    fn the_combined_form_is_what_log_readers_expect() {
        assert_eq!(
            line(LogFormat::Combined, "/a?b", b"curl/8"),
            "192.0.2.7 - - [29/Feb/2024:23:59:59 +0000] \"GET /a?b HTTP/1.1\" 200 5120 \"-\" \"curl/8\" rt=0.001234 ot=0.045000 HIT\n"
        );
    }

    #[test]
    fn a_json_line_is_json() {
        let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, "/\"\\", b"\xff\x01\"")).expect("JSON");
        assert_eq!(value["time"], "2024-02-29T23:59:59Z");
        assert_eq!(value["target"], "/\"\\");
        assert_eq!(value["user_agent"], "\u{fffd}\u{1}\"");
        assert_eq!(value["request_time"], 0.001_234);
        assert_eq!(value["origin_time"], 0.045);
        assert_eq!(value["cache"], "HIT");
        assert_eq!(value["cookie"], "a\"b");
        assert_eq!(value["request_id"], "0123456789abcdef0123456789abcdef");
        assert_eq!(value["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    }

    #[test]
    fn the_page_in_doc_lists_every_field() {
        let row = |Field { combined, json, meaning }: &Field| {
            let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
            format!("| {} | {} | {meaning} |\n", code(combined), code(json))
        };
        let rows: String = FIELDS.iter().map(row).collect();
        page::holds("log.md", "fields", &format!("\n| combined | JSON | what it is |\n|---|---|---|\n{rows}\n"));
    }

    #[test]
    fn a_json_line_has_the_fields_of_the_table_and_no_others() {
        let line: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, "/a?b", b"curl/8")).expect("JSON");
        let written: BTreeSet<&str> = line.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(written, FIELDS.iter().map(|field| field.json).filter(|name| !name.is_empty()).collect());
    }

    /// Word by word: what is written small stands there as it is, what is in capitals stands for a value.
    #[test]
    fn a_combined_line_has_the_fields_of_the_table_and_no_others() {
        let line = line(LogFormat::Combined, "/a?b", b"curl/8").replace(" +0000", "");
        let template = FIELDS.iter().map(|field| field.combined).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let (words, expected): (Vec<&str>, Vec<&str>) = (line.trim_end().split(' ').collect(), template.split(' ').collect());
        assert_eq!(words.len(), expected.len(), "{line} for {template}");
        for (word, expected) in words.iter().zip(expected) {
            let value = |c: char| c.is_ascii_uppercase() || c == '-';
            let (before, after) = (expected.split(char::is_uppercase).next(), expected.rsplit(value).next());
            let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
            assert!(word.starts_with(before.trim_end_matches("HTTP/")) && word.ends_with(after), "{word} for {expected} in {line}");
        }
    }

    #[test]
    fn a_client_cannot_write_lines_of_its_own() {
        let line = line(LogFormat::Combined, "/", b"x\" 200\n1.2.3.4 \\ \xc3");
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.contains("\"x\\x22 200\\x0a1.2.3.4 \\x5c \\xc3\""), "{line}");
    }

    #[test]
    fn every_special_byte_is_seen_wherever_it_stands() {
        for byte in 0..=255_u8 {
            let plain = (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            for length in [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 21, 32, 45] {
                for at in 0..length {
                    let mut value = vec![b'a'; length];
                    value[at] = byte;
                    assert_eq!(is_plain(&value), plain, "{byte} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (text, days) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2024-12-31", 20_088), ("2026-11-21", 20_778)] {
            let (year, month, day) = civil(days);
            assert_eq!(format!("{year:04}-{month:02}-{day:02}"), text);
        }
    }
}
