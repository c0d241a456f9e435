//! An answer and what tests say about it. Every assertion returns the answer, so that one line says all that the client must see.

use bytes::Bytes;

use std::fmt;

use crate::Fields;
use crate::fields::{text, trim_ows};
use crate::wire::{Fault, Rest, framing};

/// How many bytes of the content a failed assertion prints.
const PRINTED_BYTES_MAX: usize = 2000;

/// A final response as the client read it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The version, `HTTP/1.1` or `HTTP/1.0`.
    pub version: String,
    /// The status code; to assert one, see [`status`](Self::status).
    pub code: u16,
    /// The reason phrase.
    pub reason: String,
    /// The field lines.
    pub fields: Fields,
    /// The content, without its chunked coding. Empty after [`Client::read_head`](super::Client::read_head).
    pub content: Bytes,
    /// The interim responses (1xx) before it.
    pub interim: Vec<Interim>,
    /// The reason why the content is not whole, if it is not.
    pub(super) cut_short: Option<String>,
}

/// An interim response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interim {
    /// The status code.
    pub code: u16,
    /// The field lines.
    pub fields: Fields,
}

/// Fails with a message, and the whole answer below it.
macro_rules! check {
    ($answer:expr, $condition:expr, $($message:tt)+) => {
        assert!($condition, "{}\nthe answer was:\n{}", format_args!($($message)+), $answer)
    };
}

impl Answer {
    /// Returns the combined value of the field lines of that name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        self.fields.combined(name)
    }

    /// Returns the content as text.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.content)
    }

    /// Asserts that the status code is `code`.
    #[track_caller]
    pub fn status(self, code: u16) -> Self {
        check!(self, self.code == code, "expected status {code}, not {}", self.code);
        self
    }

    /// Asserts that the content is whole and exactly `body`.
    #[track_caller]
    pub fn body(self, body: impl AsRef<[u8]>) -> Self {
        check!(self, self.cut_short.is_none(), "expected whole content");
        check!(self, self.content == body.as_ref(), "expected the content {:?}", head_of(body.as_ref()));
        self
    }

    /// Asserts that the content is whole and has `part` in it.
    #[track_caller]
    pub fn body_contains(self, part: &str) -> Self {
        check!(self, self.cut_short.is_none(), "expected whole content");
        check!(self, self.text().contains(part), "expected content with {part:?} in it");
        self
    }

    /// Asserts that the content was cut short: the connection ended before it did.
    #[track_caller]
    pub fn truncated(self) -> Self {
        check!(self, self.cut_short.is_some(), "expected content that is cut short");
        self
    }

    /// Returns whether the connection ended before the content did.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.cut_short.is_some()
    }

    /// Asserts that the combined value of that field is exactly `value`.
    #[track_caller]
    pub fn field(self, name: &str, value: &str) -> Self {
        let given = self.value(name);
        check!(self, given.as_deref() == Some(value), "expected {name}: {value}, not {given:?}");
        self
    }

    /// Asserts that the combined value of that field has `part` in it.
    #[track_caller]
    pub fn field_contains(self, name: &str, part: &str) -> Self {
        let given = self.value(name);
        check!(self, given.as_ref().is_some_and(|value| value.contains(part)), "expected {name} with {part:?} in it, not {given:?}");
        self
    }

    /// Asserts that there is a field of that name.
    #[track_caller]
    pub fn has_field(self, name: &str) -> Self {
        check!(self, self.fields.has(name), "expected a field {name}");
        self
    }

    /// Asserts that there is no field of that name.
    #[track_caller]
    pub fn no_field(self, name: &str) -> Self {
        check!(self, !self.fields.has(name), "expected no field {name}");
        self
    }

    /// Asserts that the last member of `Cache-Status` (RFC 9211) has all of these parameters, separated by semicolons, in any order and
    /// among others: `"fwd=uri-miss; stored"`. A parameter without a value stands for one with any value, `"ttl"`; the name of the cache
    /// counts as one.
    #[track_caller]
    pub fn cache_status(self, parameters: &str) -> Self {
        for wanted in parameters.split(';').map(str::trim) {
            check!(self, self.has_cache_parameter(wanted), "expected {wanted:?} in the last member of Cache-Status");
        }
        self
    }

    /// Asserts that the last member of `Cache-Status`, if any, has none of these parameters, written as for
    /// [`cache_status`](Self::cache_status).
    #[track_caller]
    pub fn no_cache_status(self, parameters: &str) -> Self {
        for unwanted in parameters.split(';').map(str::trim) {
            check!(self, !self.has_cache_parameter(unwanted), "expected no {unwanted:?} in the last member of Cache-Status");
        }
        self
    }

    /// Asserts that `X-Cache` is exactly `value`.
    #[track_caller]
    pub fn x_cache(self, value: &str) -> Self {
        self.field("x-cache", value)
    }

    fn has_cache_parameter(&self, wanted: &str) -> bool {
        let value = self.value("cache-status").unwrap_or_default();
        let last = split_outside_quotes(&value, ',').pop().unwrap_or_default();
        let parameters = split_outside_quotes(last, ';');
        parameters.iter().any(|given| *given == wanted || given.split_once('=').is_some_and(|(name, _)| name == wanted))
    }

    /// Reads a status line (RFC 9112 §4); the caller reads content and interim responses.
    pub(super) fn from_head(line: &[u8], fields: Fields) -> Result<Self, String> {
        let bad = || format!("status line {:?}", String::from_utf8_lossy(line));
        let line = text(line);
        // The space after the code is there even without a reason phrase.
        let mut parts = line.splitn(3, ' ');
        let (Some(version), Some(code), Some(reason)) = (parts.next(), parts.next(), parts.next()) else { return Err(bad()) };
        if reason.chars().any(|character| character.is_ascii_control() && character != '\t') {
            return Err(bad());
        }
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || code.len() != 3 || !code.starts_with(|first| matches!(first, '1'..='5')) {
            return Err(bad());
        }
        let code = code.parse().map_err(|_| bad())?;
        let (version, reason) = (version.to_owned(), reason.to_owned());
        Ok(Self { version, code, reason, fields, content: Bytes::new(), interim: Vec::new(), cut_short: None })
    }

    /// Returns where the content ends (RFC 9112 §6.3), given the method of the request. Fields that no server may send are a fault.
    pub(super) fn framing(&self, method: &str) -> Result<Rest, Fault> {
        let said = framing(&self.fields)?;
        let never_framed = matches!(self.code, 100..=199 | 204);
        if never_framed && said.is_some() {
            return Err(crate::wire::malformed(format!("a {} with framing fields (RFC 9110 §8.6, RFC 9112 §6.1)", self.code)));
        }
        if never_framed || self.code == 304 || method == "HEAD" || (method == "CONNECT" && self.code / 100 == 2) {
            return Ok(Rest::Nothing);
        }
        Ok(said.unwrap_or(Rest::ToClose))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for interim in &self.interim {
            writeln!(f, "(before it: {})\n{}", interim.code, interim.fields)?;
        }
        writeln!(f, "{} {} {}\n{}", self.version, self.code, self.reason, self.fields)?;
        write!(f, "{}", head_of(&self.content))?;
        self.cut_short.as_ref().map_or(Ok(()), |why| write!(f, "\n(cut short after {} bytes: {why})", self.content.len()))
    }
}

fn head_of(content: &[u8]) -> String {
    match content.get(..PRINTED_BYTES_MAX) {
        Some(head) => format!("{}... ({} bytes)", text(head), content.len()),
        None => text(content),
    }
}

/// Returns the parts of a structured field that `separator` separates, trimmed. A separator within a quoted string does not count.
fn split_outside_quotes(value: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in value.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if character == separator && !quoted => {
                parts.push(&value[start..at]);
                start = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&value[start..]);
    parts.into_iter().map(|part| str::from_utf8(trim_ows(part.as_bytes())).expect("spaces and tabs are whole characters")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lines: &[&str]) -> Answer {
        let mut fields = Fields::default();
        lines.iter().try_for_each(|line| fields.push_line(line.as_bytes())).expect("valid lines");
        Answer::from_head(b"HTTP/1.1 200 OK", fields).expect("a status line")
    }

    #[test]
    fn cache_status_looks_at_the_last_member_whatever_the_order() {
        let answer =
            answer(&["cache-status: origin-cache; hit; ttl=30, seawall; fwd=uri-miss; key=\"a, b; hit\"; stored", "x-cache: MISS"]);
        let answer = answer.cache_status("stored; fwd=uri-miss").cache_status("fwd").cache_status("seawall").x_cache("MISS");
        answer.no_cache_status("hit; ttl; fwd=stale; origin-cache; b; fwd=uri");
    }

    #[test]
    #[should_panic(
        expected = "expected \"hit\" in the last member of Cache-Status\nthe answer was:\nHTTP/1.1 200 OK\ncache-status: a; hit, b"
    )]
    fn a_failed_assertion_prints_the_whole_answer() {
        answer(&["cache-status: a; hit, b"]).cache_status("hit");
    }

    #[test]
    fn status_lines_are_read_strictly() {
        for line in
            ["HTTP/1.1 200", "HTTP/1.1  200 OK", "HTTP/2 200 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 600 X", "HTTP/1.1 +20 X", "http/1.1 200 OK"]
        {
            assert!(Answer::from_head(line.as_bytes(), Fields::default()).is_err(), "{line:?}");
        }
        assert_eq!(Answer::from_head(b"HTTP/1.1 200 ", Fields::default()).expect("an empty reason").code, 200);
    }

    #[test]
    fn content_ends_where_rfc_9112_says() {
        for (code, method, line, expected) in [
            (200, "GET", "content-length: 5", Some(Rest::Length(5))),
            (200, "GET", "transfer-encoding: chunked", Some(Rest::ChunkSize)),
            (200, "GET", "x: y", Some(Rest::ToClose)),
            (200, "HEAD", "content-length: 5", Some(Rest::Nothing)),
            (304, "GET", "content-length: 5", Some(Rest::Nothing)),
            (204, "GET", "x: y", Some(Rest::Nothing)),
            (204, "GET", "content-length: 0", None),
            (200, "CONNECT", "x: y", Some(Rest::Nothing)),
        ] {
            let framing = Answer { code, ..answer(&[line]) }.framing(method).ok();
            assert_eq!(framing, expected, "{code} to {method} with {line}");
        }
    }
}
