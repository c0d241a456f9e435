//! The head of a request that came as fields: it becomes the text of an HTTP/1 head (RFC 9113 §8, RFC 9114 §4).
//!
//! So what is malformed, ambiguous or too much is judged in one place for all versions (`parse.rs`), and a head that comes again can be known
//! by the same bytes. Here is what only HTTP/2 and 3 have: pseudo-fields, names in small letters, cookies in crumbs, fields that would belong
//! to a connection. A text that is made here has no line end within a line: every name and value is looked at first.

use std::ops::Range;

use super::Reject;
use crate::HeadLimits;

/// The number of bytes of buffers that may be kept while a connection is idle.
const KEPT: usize = 1024;

/// Says what the fields that a [`HeadBuilder`] took turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Built {
    /// They are a request, whose text is in [`HeadText::bytes`].
    Request {
        /// Whether the request asks for a tunnel (RFC 8441). Its text asks for it with `Upgrade`.
        is_websocket: bool,
    },
    /// They stand behind a request's content. What they say is not passed on.
    Trailers,
    /// They are a request that is to be answered with a refusal.
    Refused(Reject),
    /// They are not a request at all: their stream is to be reset (RFC 9113 §8.1.1).
    Malformed(&'static str),
}

/// The fields that begin with a colon, as far as they have come.
#[derive(Debug, Default)]
struct Pseudo {
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    path: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    protocol: Option<Range<usize>>,
}

/// Holds the text of one head at a time, in buffers that are used again for the next.
#[derive(Debug, Default)]
pub struct HeadText {
    /// The head as HTTP/1 writes it.
    text: Vec<u8>,
    /// The values of pseudo-fields.
    pseudo: Vec<u8>,
    /// The cookies, put together again: clients send them in crumbs for the sake of compression (§8.2.3).
    cookies: Vec<u8>,
    /// The `Priority` field (RFC 9218), for the connection to look at.
    priority: Vec<u8>,
}

impl HeadText {
    /// Returns the head as HTTP/1 writes it, with the empty line.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Gives back the memory that a long head needed.
    pub fn shrink(&mut self) {
        let buffers = [&mut self.text, &mut self.pseudo, &mut self.cookies, &mut self.priority];
        if buffers.iter().map(|buffer| buffer.capacity()).sum::<usize>() > KEPT {
            *self = Self::default();
        }
    }

    /// Returns the value of the `Priority` field (RFC 9218), or nothing.
    pub(crate) fn priority(&self) -> &[u8] {
        &self.priority
    }
}

/// Writes a head as HTTP/1 does: it takes every field in order, then [`HeadBuilder::end`] says what the fields were.
#[derive(Debug)]
pub struct HeadBuilder<'t> {
    into: &'t mut HeadText,
    limits: &'t HeadLimits,
    pseudo: Pseudo,
    is_trailers: bool,
    /// Whether the request line is written: then no pseudo-field may follow.
    begun: bool,
    is_websocket: bool,
    host_seen: bool,
    fields: usize,
    bytes: usize,
    fault: Option<Built>,
}

const fn bad(reason: &'static str) -> Built {
    Built::Refused(Reject { status: 400, reason })
}

/// Marks the letters that a field name may have (RFC 9110 §5.6.2), without capitals (RFC 9113 §8.2.1).
const fn name_bytes() -> [bool; 256] {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "less than 256")]
        let letter = byte as u8;
        allowed[byte] = matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    allowed
}

static NAME_BYTES: [bool; 256] = name_bytes();

/// Returns whether `value` has only bytes that a field value may have (RFC 9110 §5.5).
fn is_value(value: &[u8]) -> bool {
    !may_have_control(value) || !value.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
}

/// Returns whether a byte looks like a control character. It looks at eight at a time, and is never wrong when it says no.
#[inline]
fn may_have_control(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // A byte below a blank borrows; 0x7f is the only one that 1 makes negative.
    let look = |word: u64| (word.wrapping_sub(ONES * 0x20) | (word & !HIGH).wrapping_add(ONES)) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut found = words.iter().fold(0, |found, word| found | look(u64::from_le_bytes(*word)));
    if let Some(last) = bytes.last_chunk::<8>() {
        found |= look(u64::from_le_bytes(*last));
    } else {
        let mut word = [b' '; 8];
        word[..rest.len()].copy_from_slice(rest);
        found |= look(u64::from_le_bytes(word));
    }
    found != 0
}

/// Returns whether `value` may stand in a request line between its blanks.
fn is_word(value: &[u8]) -> bool {
    !value.iter().fold(value.is_empty(), |found, &byte| found | (byte <= b' ') | (byte == 0x7f))
}

impl<'t> HeadBuilder<'t> {
    /// Begins a head, or the trailers behind a content, in `into`.
    pub fn new(into: &'t mut HeadText, limits: &'t HeadLimits, is_trailers: bool) -> Self {
        for buffer in [&mut into.text, &mut into.pseudo, &mut into.cookies, &mut into.priority] {
            buffer.clear();
        }
        Self {
            into,
            limits,
            pseudo: Pseudo::default(),
            is_trailers,
            begun: false,
            is_websocket: false,
            host_seen: false,
            fields: 0,
            bytes: 0,
            fault: None,
        }
    }

    /// Takes the next field. `is_known` says that its name stands in the RFC's table. After a fault, fields are not looked at any more.
    pub fn take(&mut self, name: &[u8], value: &[u8], is_known: bool) {
        if self.fault.is_none() {
            self.fault = self.judge(name, value, is_known).err();
        }
    }

    fn judge(&mut self, name: &[u8], value: &[u8], is_known: bool) -> Result<(), Built> {
        self.bytes += name.len() + value.len();
        self.fields += 1;
        if self.bytes > self.limits.header_bytes {
            return Err(Built::Refused(Reject { status: 431, reason: "the head is larger than allowed" }));
        }
        // Five are not fields.
        if self.fields > self.limits.header_fields.saturating_add(5) {
            return Err(Built::Refused(Reject { status: 431, reason: "more field lines than allowed" }));
        }
        if !is_value(value) {
            return Err(Built::Malformed("malformed field value"));
        }
        if name.first() == Some(&b':') {
            return self.take_pseudo(name, value);
        }
        if !is_known && (name.is_empty() || !name.iter().all(|&byte| NAME_BYTES[usize::from(byte)])) {
            return Err(Built::Malformed("malformed field name"));
        }
        if value.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) || value.last().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            return Err(bad("malformed field value"));
        }
        if self.is_trailers {
            return Ok(());
        }
        if !self.begun {
            self.begin()?;
        }
        self.take_field(name, value)
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), Built> {
        if self.begun || self.is_trailers {
            return Err(Built::Malformed("a pseudo-field in the wrong place"));
        }
        let place = match name {
            b":method" => &mut self.pseudo.method,
            b":scheme" => &mut self.pseudo.scheme,
            b":path" => &mut self.pseudo.path,
            b":authority" => &mut self.pseudo.authority,
            b":protocol" => &mut self.pseudo.protocol,
            _ => return Err(Built::Malformed("an unknown pseudo-field")),
        };
        let from = self.into.pseudo.len();
        self.into.pseudo.extend_from_slice(value);
        if place.replace(from..from + value.len()).is_some() {
            return Err(Built::Malformed("a pseudo-field twice"));
        }
        Ok(())
    }

    /// Writes the request line and `Host` (§8.3.1).
    fn begin(&mut self) -> Result<(), Built> {
        self.begun = true;
        let part = |range: &Option<Range<usize>>| range.clone().and_then(|range| self.into.pseudo.get(range));
        let Pseudo { method, scheme, path, authority, protocol } = &self.pseudo;
        let (Some(method), authority) = (part(method), part(authority)) else { return Err(Built::Malformed("no :method")) };
        let mut method = method;
        if method == b"CONNECT" {
            match part(protocol) {
                None if part(path).is_none() && part(scheme).is_none() => {
                    return Err(Built::Refused(Reject { status: 405, reason: "this is not a tunnel" }));
                }
                None => return Err(Built::Malformed("a CONNECT with a path")),
                Some(b"websocket") => {
                    self.is_websocket = true;
                    method = b"GET";
                }
                Some(_) => return Err(Built::Refused(Reject { status: 501, reason: "the only protocol of tunnels is websocket" })),
            }
        } else if protocol.is_some() {
            return Err(Built::Malformed("a :protocol without CONNECT"));
        }
        let (Some(path), Some(scheme)) = (part(path), part(scheme)) else { return Err(Built::Malformed("a pseudo-field is missing")) };
        if path.is_empty() || scheme.is_empty() {
            return Err(Built::Malformed("a pseudo-field is empty"));
        }
        if !is_word(method) {
            return Err(Built::Malformed("malformed method"));
        }
        if !is_word(path) || !(path[0] == b'/' || path == b"*") {
            return Err(bad("malformed request-target"));
        }
        let text = &mut self.into.text;
        for part in [method, b" ", path, b" HTTP/1.1\r\n"] {
            text.extend_from_slice(part);
        }
        if let Some(authority) = authority {
            if authority.is_empty() {
                return Err(bad("malformed :authority"));
            }
            for part in [b"host: ", authority, b"\r\n"] {
                text.extend_from_slice(part);
            }
        }
        Ok(())
    }

    fn take_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Built> {
        match name {
            // This says something about this connection alone (RFC 9110 §10.1.4).
            b"te" if value.eq_ignore_ascii_case(b"trailers") => return Ok(()),
            b"te" => return Err(Built::Malformed("a TE other than trailers")),
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                return Err(Built::Malformed("a field of HTTP/1 connections"));
            }
            // It stands there already, if there is an :authority; then both must agree (§8.3.1).
            b"host" => {
                if let Some(authority) = self.pseudo.authority.clone() {
                    let agrees = self.into.pseudo.get(authority) == Some(value) && !self.host_seen;
                    self.host_seen = true;
                    return if agrees { Ok(()) } else { Err(bad("Host is not what :authority says")) };
                }
            }
            b"cookie" => {
                if !self.into.cookies.is_empty() {
                    self.into.cookies.extend_from_slice(b"; ");
                }
                self.into.cookies.extend_from_slice(value);
                return Ok(());
            }
            b"priority" => self.into.priority.extend_from_slice(value),
            _ => {}
        }
        self.line(name, value);
        Ok(())
    }

    fn line(&mut self, name: &[u8], value: &[u8]) {
        let text = &mut self.into.text;
        text.reserve(name.len() + value.len() + 4);
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }

    /// Returns whether the result is known already, so that further fields need not be brought.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Ends the head: there are no more fields.
    #[must_use]
    pub fn end(mut self) -> Built {
        if self.fault.is_none() && !self.begun && !self.is_trailers {
            self.fault = self.begin().err();
        }
        if let Some(fault) = self.fault {
            return fault;
        }
        if self.is_trailers {
            return Built::Trailers;
        }
        if !self.into.cookies.is_empty() {
            let cookies = std::mem::take(&mut self.into.cookies);
            self.line(b"cookie", &cookies);
            self.into.cookies = cookies;
        }
        self.into.text.extend_from_slice(b"\r\n");
        Built::Request { is_websocket: self.is_websocket }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines<'a> = &'a [(&'static str, &'a str)];

    const REQUEST: Built = Built::Request { is_websocket: false };

    fn built(fields: Lines<'_>) -> (Built, String) {
        let mut text = HeadText::default();
        let limits = HeadLimits::default();
        let mut builder = HeadBuilder::new(&mut text, &limits, false);
        for (name, value) in fields {
            builder.take(name.as_bytes(), value.as_bytes(), false);
        }
        let built = builder.end();
        (built, String::from_utf8(text.bytes().to_vec()).expect("text"))
    }

    const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":path", "/a?b"), (":authority", "blog.example:8443")];

    /// RFC 9113 §8.2.3, §8.3.1; RFC 9110 §10.1.4.
    #[test]
    fn what_passes_is_written_as_http_1_would_write_it() {
        let more = [("cookie", "a=1"), ("te", "trailers"), ("accept", "*/*"), ("host", "blog.example:8443"), ("cookie", "b=2")];
        let text = "GET /a?b HTTP/1.1\r\nhost: blog.example:8443\r\naccept: */*\r\ncookie: a=1; b=2\r\n\r\n";
        assert_eq!(built(&[&GET[..], &more].concat()), (REQUEST, text.to_owned()));
        assert_eq!(built(&GET), (REQUEST, "GET /a?b HTTP/1.1\r\nhost: blog.example:8443\r\n\r\n".to_owned()));
        let text = "GET /a?b HTTP/1.1\r\nhost: a\r\n\r\n";
        assert_eq!(built(&[&GET[..3], &[("host", "a")]].concat()), (REQUEST, text.to_owned()));
    }

    /// RFC 8441 §4.
    #[test]
    fn an_extended_connect_asks_for_a_tunnel() {
        let connect = [(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], GET[3]];
        let (head, text) = built(&connect);
        assert_eq!(head, Built::Request { is_websocket: true });
        assert!(text.starts_with("GET /a?b HTTP/1.1\r\n"), "{text}");
        assert!(matches!(
            built(&[connect[0], (":protocol", "connect-udp"), GET[1], GET[2], GET[3]]).0,
            Built::Refused(Reject { status: 501, .. })
        ));
        assert!(matches!(built(&[connect[0], (":authority", "a:443")]).0, Built::Refused(Reject { status: 405, .. })));
        assert!(matches!(built(&[connect[0], GET[1], GET[2], GET[3]]).0, Built::Malformed(_)));
        assert!(matches!(built(&[&GET[..], &[(":protocol", "websocket")]].concat()).0, Built::Malformed(_)));
    }

    /// RFC 9110 §5.5, byte by byte, wherever the byte stands.
    #[test]
    fn a_value_has_no_control_characters() {
        for len in 1..20 {
            for at in 0..len {
                for byte in 0..=255_u8 {
                    let mut value = vec![b'a'; len];
                    value[at] = byte;
                    let allowed = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
                    assert_eq!(is_value(&value), allowed, "{byte:#x} at {at} of {len}");
                }
            }
        }
        assert!(is_value(b""));
    }

    /// RFC 9113 §8.2.1: a value cannot become a line, nor a path a version.
    #[test]
    fn no_text_has_more_lines_than_fields() {
        for (name, value) in [
            (":path", "/ HTTP/1.1\r\nx: y"),
            (":method", "GET /\r\n"),
            (":authority", "a\r\nx: y"),
            ("x", "a\r\ny: z"),
            ("x\r\ny", "z"),
            ("x: y", "z"),
        ] {
            let mut fields = GET.to_vec();
            fields.retain(|(kept, _)| *kept != name);
            fields.push((name, value));
            assert!(matches!(built(&fields).0, Built::Malformed(_) | Built::Refused(_)), "{name} {value:?}");
        }
    }
}
