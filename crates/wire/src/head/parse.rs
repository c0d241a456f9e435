//! The head of an HTTP/1 request, and everything that is refused in it (RFC 9112).
//!
//! Every head passes here exactly once, whoever serves the request afterwards: what is ambiguous never reaches a second reader. This is
//! stricter than the RFC allows a server to be, on purpose: a bare LF, two ways of giving a length, or two hosts have no honest sender.

use std::mem::MaybeUninit;

use http::Method;
use semantics::{
    RequestFields,
    request::Slot,
    target::{Target, parse_target, valid_authority},
};

use crate::limits::{FIELDS_CEILING, HeadLimits};

/// The parser's table of field lines. It lives on the stack and is never initialised as a whole.
pub type FieldTable<'b> = [MaybeUninit<httparse::Header<'b>>; FIELDS_CEILING];

/// Makes room for the table that [`parse`] needs.
#[must_use]
pub const fn field_table<'b>() -> FieldTable<'b> {
    [const { MaybeUninit::uninit() }; FIELDS_CEILING]
}

/// Says why a message is refused, and with which status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reject {
    /// The status of the answer.
    pub status: u16,
    /// The description of what is wrong with the message, for its sender and for the log.
    pub reason: &'static str,
}

const fn bad(reason: &'static str) -> Reject {
    Reject { status: 400, reason }
}

/// Says where the content of a request ends (RFC 9112 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no content.
    None,
    /// The content has this many bytes.
    Length(u64),
    /// The content is chunked: it says its end itself.
    Chunked,
}

/// A complete head that passed.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The length of the head in bytes, with the empty line.
    pub len: usize,
    /// The method.
    pub method: Method,
    /// The request-target as sent.
    pub target: &'a str,
    /// The authority: that of the target if it is in absolute-form (RFC 9112 §3.2.2), else `Host`.
    pub authority: &'a str,
    /// The path as sent; `*` stands for the whole server.
    pub path: &'a str,
    /// The query as sent, without the `?`.
    pub query: Option<&'a str>,
    /// The number behind `HTTP/1.`.
    pub minor_version: u8,
    /// The way in which the end of the content is found.
    pub framing: Framing,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
    /// Whether `Upgrade` or `Expect` is there.
    pub negotiates: bool,
}

/// Says what a buffer begins with.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack for one call; a box would cost an allocation per request")]
#[derive(Debug)]
pub enum Parsed<'a> {
    /// It begins with a part of a head, in which nothing is wrong so far.
    Partial,
    /// It begins with a whole head, whose field lines are here too.
    Complete(Head<'a>, RequestFields<'a>),
}

/// Reads the head at the start of `bytes`. A `Host` equal to `known_host`, which was found valid before, is not looked at again.
///
/// # Errors
/// Fails when the message is malformed, ambiguous or beyond a limit. It must be answered with the refusal, and an HTTP/1 connection closed.
pub fn parse<'a>(bytes: &'a [u8], table: &'a mut FieldTable<'a>, known_host: &'a str, limits: &HeadLimits) -> Result<Parsed<'a>, Reject> {
    let fields_max = limits.header_fields.min(FIELDS_CEILING);
    let mut request = httparse::Request::new(&mut []);
    let len = match request.parse_with_uninit_headers(bytes, &mut table[..fields_max]) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return partial(bytes, limits),
        Err(error) => return Err(refuse(error, bytes, limits)),
    };
    if len > limits.header_bytes {
        return Err(Reject { status: 431, reason: "the head is larger than allowed" });
    }
    if !lines_end_in_crlf(&bytes[..len], &request) {
        check_line_ends(&bytes[..len])?;
    }
    let (Some(method), Some(target), Some(minor_version)) = (request.method, request.path, request.version) else {
        return Err(bad("the request line is incomplete"));
    };
    if target.len() > limits.target_bytes {
        return Err(Reject { status: 414, reason: "the request-target is longer than allowed" });
    }
    let method = method_of(method)?;
    let fields = RequestFields::from_raw(request.headers);
    let (authority, path, query) = effective_target(&method, target, (minor_version, known_host), &fields)?;
    let framing = framing(minor_version, &fields, limits)?;
    match fields.expect {
        Slot::Absent => {}
        Slot::One(value) if value.eq_ignore_ascii_case(b"100-continue") => {}
        Slot::One(_) | Slot::Many => {
            return Err(Reject { status: 417, reason: "the only expectation that can be met is 100-continue" });
        }
    }
    let keep_alive = keep_alive(minor_version, &fields);
    let negotiates = fields.upgrade.is_present() || fields.expect.is_present();
    Ok(Parsed::Complete(Head { len, method, target, authority, path, query, minor_version, framing, keep_alive, negotiates }, fields))
}

/// Judges an incomplete head: it may only grow so far, and what is there must already make sense.
fn partial<'a>(bytes: &[u8], limits: &HeadLimits) -> Result<Parsed<'a>, Reject> {
    if let Some(line_end) = memchr::memchr(b'\n', bytes) {
        check_line_ends(&bytes[..=line_end])?;
    } else if bytes.len() > limits.target_bytes.saturating_add(64) {
        return Err(Reject { status: 414, reason: "the request-target is longer than allowed" });
    }
    if bytes.len() >= limits.header_bytes {
        return Err(Reject { status: 431, reason: "the head is larger than allowed" });
    }
    Ok(Parsed::Partial)
}

fn refuse(error: httparse::Error, bytes: &[u8], limits: &HeadLimits) -> Reject {
    match error {
        httparse::Error::TooManyHeaders => Reject { status: 431, reason: "more field lines than allowed" },
        httparse::Error::Version if names_a_version(bytes) => Reject { status: 505, reason: "only HTTP/1.0 and HTTP/1.1 are spoken here" },
        httparse::Error::Token | httparse::Error::Version if bytes.starts_with(&[0x16, 0x03]) => {
            bad("this port speaks plain HTTP, not TLS")
        }
        httparse::Error::Version if bytes.len() > limits.target_bytes => {
            Reject { status: 414, reason: "the request-target is longer than allowed" }
        }
        httparse::Error::HeaderName => bad("malformed field name"),
        httparse::Error::HeaderValue => bad("malformed field value"),
        httparse::Error::NewLine => bad("malformed line end"),
        httparse::Error::Status | httparse::Error::Token | httparse::Error::Version => bad("malformed request line"),
    }
}

/// Returns whether the request line ends in a well-formed `HTTP/x.y` (RFC 9112 §2.3), so that 505 is the honest answer.
fn names_a_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|&b| b == b'\r' || b == b'\n').next().unwrap_or_default();
    let mut parts = line.split(|&b| b == b' ');
    let (Some(_), Some(_), Some(version), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else { return false };
    matches!(version, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit())
}

/// Returns whether every line of a head that the parser accepted visibly ends in CR LF. It looks only where lines end, which the parser has
/// found already. It does not recognise a line with blanks at its end; then the whole head has to be looked through.
fn lines_end_in_crlf(head: &[u8], request: &httparse::Request<'_, '_>) -> bool {
    const VERSION: usize = " HTTP/1.1".len();
    let begin = head.as_ptr().addr();
    let ends_at = |part: &[u8]| (part.as_ptr().addr() + part.len()).wrapping_sub(begin);
    let is_cr = |at: usize| head.get(at) == Some(&b'\r');
    head.first().is_some_and(|&byte| byte > b' ')
        && request.path.is_some_and(|target| is_cr(ends_at(target.as_bytes()) + VERSION))
        && request.headers.iter().all(|line| is_cr(ends_at(line.value)))
        && head.len() >= 4
        && is_cr(head.len() - 2)
}

/// Checks that every LF follows a CR, and that every CR precedes an LF (RFC 9112 §2.2).
fn check_line_ends(head: &[u8]) -> Result<(), Reject> {
    // Without an early exit this is a few vector instructions. The parser strips leading empty lines; they are allowed, as CRLF.
    let lone = head
        .iter()
        .zip(head.get(1..).unwrap_or_default())
        .fold(0, |found, (&before, &byte)| found | (u8::from(byte == b'\n') & u8::from(before != b'\r')));
    if lone != 0 || head.first() == Some(&b'\n') {
        return Err(bad("a line ends in LF without CR"));
    }
    Ok(())
}

fn method_of(method: &str) -> Result<Method, Reject> {
    match method {
        "GET" => Ok(Method::GET),
        "HEAD" => Ok(Method::HEAD),
        // Methods are case-sensitive (RFC 9110 §9.1), and all that are registered are in capitals: an origin that takes `get` for GET would
        // answer something else than what was judged here.
        _ if method.len() > 32 || method.bytes().any(|b| b.is_ascii_lowercase()) => Err(Reject { status: 501, reason: "no such method" }),
        _ => Method::from_bytes(method.as_bytes()).map_err(|_| bad("malformed method")),
    }
}

/// Returns the target URI's parts: authority, path, query (RFC 9112 §3.2, §3.3).
fn effective_target<'a>(
    method: &Method,
    target: &'a str,
    (minor_version, known_host): (u8, &'a str),
    fields: &RequestFields<'a>,
) -> Result<(&'a str, &'a str, Option<&'a str>), Reject> {
    let host = match fields.host {
        Slot::One(b"") if minor_version == 0 => "",
        // Nothing is known yet: an empty Host must not pass for it.
        Slot::One(host) if !known_host.is_empty() && host == known_host.as_bytes() => known_host,
        Slot::One(host) => match std::str::from_utf8(host) {
            Ok(host) if valid_authority(host) => host,
            _ => return Err(bad("malformed Host field")),
        },
        Slot::Absent if minor_version == 0 => "",
        Slot::Absent => return Err(bad("HTTP/1.1 needs a Host field")),
        Slot::Many => return Err(bad("more than one Host field")),
    };
    if *method == Method::CONNECT {
        return Err(Reject { status: 405, reason: "this is not a tunnel" });
    }
    match parse_target(target).map_err(|_| bad("malformed request-target"))? {
        Target::Origin { path, query } => Ok((host, path, query)),
        Target::Absolute { scheme, .. } if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            Err(bad("only http and https are spoken here"))
        }
        Target::Absolute { authority, path, query, .. } if valid_authority(authority) => Ok((authority, path, query)),
        Target::Absolute { .. } => Err(bad("malformed authority in the request-target")),
        Target::Asterisk if *method == Method::OPTIONS => Ok((host, "*", None)),
        Target::Asterisk | Target::Authority(_) => Err(bad("this form of request-target does not fit the method")),
    }
}

/// Finds where the content ends (RFC 9112 §6.3), and refuses everything that two readers could read in two ways.
fn framing(minor_version: u8, fields: &RequestFields<'_>, limits: &HeadLimits) -> Result<Framing, Reject> {
    match (fields.transfer_encoding, fields.content_length) {
        (Slot::Absent, Slot::Absent) => Ok(Framing::None),
        (Slot::Absent, Slot::One(length)) => {
            // Digits only: `parse` alone would take a sign.
            if length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
                return Err(bad("malformed Content-Length"));
            }
            let length =
                std::str::from_utf8(length).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| bad("Content-Length overflows"))?;
            if length > limits.body_bytes {
                return Err(Reject { status: 413, reason: "the request's content is larger than allowed" });
            }
            Ok(if length == 0 { Framing::None } else { Framing::Length(length) })
        }
        (Slot::Absent, Slot::Many) => Err(bad("more than one Content-Length")),
        (Slot::One(_) | Slot::Many, Slot::One(_) | Slot::Many) => Err(bad("both Transfer-Encoding and Content-Length")),
        (Slot::One(_) | Slot::Many, _) if minor_version == 0 => Err(bad("Transfer-Encoding in HTTP/1.0")),
        (Slot::One(coding), Slot::Absent) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (Slot::One(_), Slot::Absent) => Err(Reject { status: 501, reason: "the only transfer coding understood is chunked" }),
        (Slot::Many, Slot::Absent) => Err(bad("more than one Transfer-Encoding")),
    }
}

/// Returns whether the connection goes on after this request (RFC 9112 §9.3).
fn keep_alive(minor_version: u8, fields: &RequestFields<'_>) -> bool {
    match fields.connection {
        Slot::Absent => return minor_version == 1,
        // What browsers send. The list below would cost four hundred instructions to find nothing else in it.
        Slot::One(b"keep-alive") => return true,
        Slot::One(_) | Slot::Many => {}
    }
    let (mut close, mut keep) = (false, false);
    fields.lines.for_each("connection", |line| {
        for option in line.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            close |= option.eq_ignore_ascii_case(b"close");
            keep |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    });
    !close && (minor_version == 1 || keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_partial_let_through_or_refused() {
        let limits = HeadLimits::default();
        let whole = b"POST /a?b HTTP/1.1\r\nHost: blog.example\r\nContent-Length: 5\r\n\r\nhello";
        assert!(matches!(parse(&whole[..30], &mut field_table(), "", &limits), Ok(Parsed::Partial)));
        let mut table = field_table();
        let Ok(Parsed::Complete(head, _)) = parse(whole, &mut table, "", &limits) else { panic!("a head") };
        let expected = Head {
            len: whole.len() - 5,
            method: Method::POST,
            target: "/a?b",
            authority: "blog.example",
            path: "/a",
            query: Some("b"),
            minor_version: 1,
            framing: Framing::Length(5),
            keep_alive: true,
            negotiates: false,
        };
        assert_eq!(head, expected);
        let refused = parse(b"GET / HTTP/1.1\r\n\r\n", &mut field_table(), "", &limits).map(|_| ());
        assert_eq!(refused.map_err(|reject| reject.status), Err(400));
    }
}
