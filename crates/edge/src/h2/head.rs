//! The head of an HTTP/2 request, and everything that is refused in it beyond what the library refuses (RFC 9113 §8).
//!
//! The same rules as for HTTP/1 (`h1/head.rs`): what would be malformed, ambiguous or too much there is not let through here, where it would
//! become HTTP/1 on its way to the origin.

use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use semantics::target::{Target, parse_target, valid_authority};

use crate::{
    h1::head::{Reject, method_of},
    limits::Limits,
};

const fn bad(reason: &'static str) -> Reject {
    Reject { status: 400, reason }
}

/// What the head says beside its fields.
#[derive(Debug)]
pub(super) struct Judged {
    /// The length of the content, if it was said.
    pub(super) length: Option<u64>,
    /// The client waits for a 100 before it sends its content.
    pub(super) expects: bool,
}

/// Lets a head through, made ready for the service: `Host` is there, cookies are one line, the target is in origin-form.
///
/// # Errors
/// When the message is malformed, ambiguous or beyond a limit.
pub(super) fn judge(parts: &mut Parts, limits: &Limits) -> Result<Judged, Reject> {
    if parts.method == Method::CONNECT {
        return Err(Reject { status: 405, reason: "this is not a tunnel" });
    }
    method_of(parts.method.as_str())?;
    if parts.headers.len() > limits.header_fields {
        return Err(Reject { status: 431, reason: "more field lines than allowed" });
    }
    // RFC 9113 §8.2.1. Control characters never come this far.
    let is_padded = |value: &HeaderValue| value.as_bytes().trim_ascii().len() != value.len();
    if parts.headers.values().any(is_padded) {
        return Err(bad("malformed field value"));
    }
    effective_target(parts, limits)?;
    join_cookies(&mut parts.headers);
    let length = content_length(&parts.headers, limits)?;
    let expects = match parts.headers.remove(header::EXPECT) {
        None => false,
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => true,
        Some(_) => return Err(Reject { status: 417, reason: "the only expectation that can be met is 100-continue" }),
    };
    // Says something of this connection alone (RFC 9110 §10.1.4).
    parts.headers.remove(header::TE);
    Ok(Judged { length, expects })
}

/// RFC 9113 §8.3.1: `:authority` and `Host` must agree, and one of them must be there.
fn effective_target(parts: &mut Parts, limits: &Limits) -> Result<(), Reject> {
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    if target.len() > limits.target_bytes {
        return Err(Reject { status: 414, reason: "the request-target is longer than allowed" });
    }
    match parse_target(target).map_err(|_| bad("malformed request-target"))? {
        Target::Origin { .. } => {}
        Target::Asterisk if parts.method == Method::OPTIONS => {}
        Target::Asterisk | Target::Absolute { .. } | Target::Authority(_) => {
            return Err(bad("this form of request-target does not fit the method"));
        }
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = hosts.next().cloned();
    if hosts.next().is_some() {
        return Err(bad("more than one Host field"));
    }
    let authority = match (parts.uri.authority(), host) {
        (Some(authority), Some(host)) if host.as_bytes() != authority.as_str().as_bytes() => {
            return Err(bad("Host is not what :authority says"));
        }
        (_, Some(host)) => host,
        (Some(authority), None) => HeaderValue::from_str(authority.as_str()).map_err(|_| bad("malformed :authority"))?,
        (None, None) => return Err(bad("a request needs an :authority")),
    };
    if !authority.to_str().is_ok_and(valid_authority) {
        return Err(bad("malformed :authority"));
    }
    if let Some(path_and_query) = parts.uri.path_and_query().cloned().filter(|_| parts.uri.authority().is_some()) {
        parts.uri = path_and_query.into();
    }
    parts.headers.insert(header::HOST, authority);
    Ok(())
}

/// Clients send cookies in crumbs for the sake of compression (RFC 9113 §8.2.3); as HTTP/1 has them, they are one line.
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(header::COOKIE).iter();
    if crumbs.next().is_none() || crumbs.next().is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    // Of valid values and "; ", so it is one.
    if let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(header::COOKIE, whole);
    }
}

fn content_length(headers: &HeaderMap, limits: &Limits) -> Result<Option<u64>, Reject> {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else { return Ok(None) };
    if lengths.next().is_some() {
        return Err(bad("more than one Content-Length"));
    }
    let digits = length.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(bad("malformed Content-Length"));
    }
    let length = length.to_str().ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| bad("Content-Length overflows"))?;
    if length > limits.body_bytes {
        return Err(Reject { status: 413, reason: "the request's content is larger than allowed" });
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    type Lines<'a> = &'a [(&'static str, &'a str)];

    fn parts(method: &str, uri: &str, lines: Lines<'_>) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn what_is_refused_in_http_1_is_refused_here() {
        let long = format!("https://a/{}", "x".repeat(9_000));
        let refused: [(&str, &str, Lines<'_>, u16); 16] = [
            ("CONNECT", "a:443", &[], 405),
            ("get", "https://a/", &[], 501),
            ("GET", "/", &[], 400),
            ("GET", "https://a/", &[("host", "b")], 400),
            ("GET", "https://a/", &[("host", "a"), ("host", "a")], 400),
            ("GET", "/", &[("host", "a b")], 400),
            ("GET", "/", &[("host", "")], 400),
            ("GET", "https://u@a/", &[], 400),
            ("GET", "https://a/", &[("x", " a")], 400),
            ("GET", "https://a/", &[("x", "a\t")], 400),
            ("GET", &long, &[], 414),
            ("POST", "https://a/", &[("content-length", "1"), ("content-length", "1")], 400),
            ("POST", "https://a/", &[("content-length", "+1")], 400),
            ("POST", "https://a/", &[("content-length", "99999999999999999999")], 400),
            ("POST", "https://a/", &[("content-length", "1099511627776")], 413),
            ("POST", "https://a/", &[("expect", "200-ok")], 417),
        ];
        for (method, uri, lines, status) in refused {
            let judged = judge(&mut parts(method, uri, lines), &Limits::default());
            assert_eq!(judged.map(|_| ()).map_err(|reject| reject.status), Err(status), "{method} {uri} {lines:?}");
        }
        let many: Vec<(&'static str, &str)> = vec![("x", "a"); 101];
        assert_eq!(judge(&mut parts("GET", "https://a/", &many), &Limits::default()).map_err(|reject| reject.status).err(), Some(431));
    }

    #[test]
    fn what_passes_is_as_http_1_would_have_it() {
        let lines = [("cookie", "a=1"), ("te", "trailers"), ("cookie", "b=2"), ("content-length", "5"), ("expect", "100-continue")];
        let mut parts = parts("POST", "https://blog.example:8443/a?b", &lines);
        let judged = judge(&mut parts, &Limits::default()).expect("it is fine");
        assert_eq!((judged.length, judged.expects), (Some(5), true));
        assert_eq!(parts.uri, "/a?b");
        let mut lines: Vec<(&str, &[u8])> = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        lines.sort_unstable();
        assert_eq!(lines, [("content-length", &b"5"[..]), ("cookie", b"a=1; b=2"), ("host", b"blog.example:8443")]);
    }
}
