//! The request target and its parts (RFC 9112 §3.2), and the one spelling of a path that is used for routing and keys (RFC 3986 §6.2.2).
//!
//! Different spellings of a path must not become different stored responses, and a path that reaches the cache under one name must not mean
//! another to the origin. So a path is brought into one form, once, and the origin is sent that form. What would change the meaning is left
//! alone: `%2F` stays, empty segments stay, a lone `%` stays.

use std::{borrow::Cow, fmt, net::Ipv6Addr};

use crate::{percent, request::Scheme};

/// The longest authority that is accepted: no DNS name with a port is longer.
pub const AUTHORITY_BYTES_MAX: usize = 255;

/// The reason why a request target was refused. The client is at fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadTarget {
    /// The target has none of the four forms, or its path does not begin with `/`.
    Form,
    /// The target contains this byte, which no target may: control, space, `#`, or beyond ASCII; in a path also `?`.
    Byte(u8),
    /// The authority is not a host with an optional port.
    Authority,
}

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("the request target has none of the forms of RFC 9112 section 3.2"),
            Self::Byte(byte) => write!(f, "the request target contains the byte 0x{byte:02x}"),
            Self::Authority => f.write_str("the authority is not a host with an optional port"),
        }
    }
}

impl std::error::Error for BadTarget {}

/// The four forms of a request target (RFC 9112 §3.2). Paths are as sent: see [`normal_path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// The origin form: `/path?query`.
    Origin {
        /// The path, which begins with `/`.
        path: &'a str,
        /// The query after the `?`.
        query: Option<&'a str>,
    },
    /// The absolute form, as proxies get it: `scheme://authority/path?query`. Its authority wins over `Host` (§3.2.2).
    Absolute {
        /// The scheme, in any case.
        scheme: &'a str,
        /// The authority, which passes [`valid_authority`].
        authority: &'a str,
        /// The path. It begins with `/`, even if none was sent.
        path: &'a str,
        /// The query after the `?`.
        query: Option<&'a str>,
    },
    /// The authority form, `host:port`, only for CONNECT.
    Authority(&'a str),
    /// The asterisk form, `*`, only for OPTIONS.
    Asterisk,
}

/// Reads a request target. The caller checks whether the form suits the method.
///
/// # Errors
/// Returns [`BadTarget`], which means 400.
pub fn parse_target(target: &str) -> Result<Target<'_>, BadTarget> {
    if classes(target.as_bytes()) & FORBIDDEN != 0 {
        return Err(BadTarget::Byte(target.bytes().find(|&byte| forbidden(byte)).unwrap_or_default()));
    }
    if target.starts_with('/') {
        let (path, query) = split_query(target);
        return Ok(Target::Origin { path, query });
    }
    if target == "*" {
        return Ok(Target::Asterisk);
    }
    if let Some((scheme, rest)) = target.split_once("://").filter(|(scheme, _)| valid_scheme(scheme)) {
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if !valid_authority(authority) {
            return Err(BadTarget::Authority);
        }
        let (path, query) = split_query(rest);
        return Ok(Target::Absolute { scheme, authority, path: if path.is_empty() { "/" } else { path }, query });
    }
    // CONNECT needs a port (RFC 9110 §9.3.6).
    if valid_authority(target) && port(target).is_some_and(|port| !port.is_empty()) {
        return Ok(Target::Authority(target));
    }
    Err(BadTarget::Form)
}

fn split_query(target: &str) -> (&str, Option<&str>) {
    match memchr::memchr(b'?', target.as_bytes()) {
        None => (target, None),
        Some(at) => (&target[..at], Some(&target[at + 1..])),
    }
}

/// The class of bytes that no target contains.
const FORBIDDEN: u8 = 1;
/// The class of bytes that may make work when a path is brought into normal form.
const NOTABLE: u8 = 2;

/// The class of each byte.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 256")]
        let value = byte as u8;
        if forbidden(value) {
            classes[byte] = FORBIDDEN;
        } else if matches!(value, b'%' | b'?' | b'.') {
            classes[byte] = NOTABLE;
        }
        byte += 1;
    }
    classes
};

/// Returns the classes of all bytes together. It costs one load a byte and no branch: targets are short.
fn classes(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |found, &byte| found | CLASSES[usize::from(byte)])
}

fn valid_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

const fn forbidden(byte: u8) -> bool {
    !byte.is_ascii_graphic() || byte == b'#'
}

/// Brings an absolute path into normal form (RFC 3986 §6.2.2): percent-encoded octets in upper case, those of unreserved characters decoded,
/// dot segments removed, also percent-encoded ones (§5.2.4).
///
/// The result begins with `/`, has no dot segments, and is its own normal form. It borrows if there was nothing to do. A `%` that begins no
/// escape is kept. An octet that would complete such a `%` to an escape stays encoded, or normalising twice would decode twice. The result
/// may begin with `//`: put an authority before it when it goes into a `Location`.
///
/// # Errors
/// Returns [`BadTarget::Form`] if `path` does not begin with `/`; [`BadTarget::Byte`] for a byte that no path contains.
pub fn normal_path(path: &str) -> Result<Cow<'_, str>, BadTarget> {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') {
        return Err(BadTarget::Form);
    }
    if classes(bytes) == 0 {
        return Ok(Cow::Borrowed(path));
    }
    let mut is_normal = true;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'%' => is_normal = is_normal && is_normal_escape(&bytes[at + 1..]),
            b'.' if bytes[at - 1] == b'/' => is_normal = is_normal && !is_dot_segment(&bytes[at..]),
            b'?' => return Err(BadTarget::Byte(byte)),
            _ if forbidden(byte) => return Err(BadTarget::Byte(byte)),
            _ => {}
        }
    }
    if is_normal {
        return Ok(Cow::Borrowed(path));
    }
    let normal = normalised(bytes);
    // An octet that has to stay encoded after a lone `%` looked like work, so the result may equal `path` here.
    Ok(if normal == path { Cow::Borrowed(path) } else { Cow::Owned(normal) })
}

/// Returns whether the text after a `%` is left as it is.
fn is_normal_escape(rest: &[u8]) -> bool {
    percent::octet(rest).is_none_or(|octet| !unreserved(octet) && !rest[..2].iter().any(u8::is_ascii_lowercase))
}

/// Returns whether `rest`, which begins a segment, begins with a whole segment `.` or `..`.
fn is_dot_segment(rest: &[u8]) -> bool {
    matches!(rest, [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..])
}

const fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns the normal form of a path whose bytes are allowed. It is written segment by segment; a finished dot segment is taken back at
/// once.
fn normalised(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    out.push('/');
    // These are the beginning of the segment being written, and the position of the last written `%` that begins no escape.
    let mut segment = 1;
    let mut lone_percent = None;
    let mut at = 1;
    while at < path.len() {
        match path[at] {
            b'/' => {
                if !take_back_dot_segment(&mut out, segment) {
                    out.push('/');
                }
                segment = out.len();
                lone_percent = None;
                at += 1;
            }
            b'%' => match percent::octet(&path[at + 1..]) {
                None => {
                    lone_percent = Some(out.len());
                    out.push('%');
                    at += 1;
                }
                Some(octet) => {
                    if unreserved(octet) && !(octet.is_ascii_hexdigit() && awaits_digit(&out, lone_percent)) {
                        out.push(char::from(octet));
                    } else {
                        out.push('%');
                        out.push(char::from(path[at + 1].to_ascii_uppercase()));
                        out.push(char::from(path[at + 2].to_ascii_uppercase()));
                    }
                    at += 3;
                }
            },
            byte => {
                out.push(char::from(byte));
                at += 1;
            }
        }
    }
    take_back_dot_segment(&mut out, segment);
    out
}

/// Returns whether a hexadecimal digit, written now, would become part of an escape begun by the lone `%`.
fn awaits_digit(out: &str, lone_percent: Option<usize>) -> bool {
    lone_percent.is_some_and(|at| match &out.as_bytes()[at + 1..] {
        [] => true,
        [digit] => digit.is_ascii_hexdigit(),
        _ => false,
    })
}

/// Removes the last segment if it is `.`, and the one before it too if it is `..`; `out` then ends with `/`.
fn take_back_dot_segment(out: &mut String, segment: usize) -> bool {
    match &out[segment..] {
        "." => out.truncate(segment),
        ".." => {
            let parent = out[..segment - 1].rfind('/').map_or(1, |slash| slash + 1);
            out.truncate(parent);
        }
        _ => return false,
    }
    true
}

/// Returns whether `authority` is a host with an optional port: a name, an IPv4 address, or an IPv6 address in brackets; at most
/// [`AUTHORITY_BYTES_MAX`].
///
/// This is narrower than RFC 3986 §3.2. It allows no userinfo (RFC 9110 §4.2.4 calls it an error), and neither sub-delims nor
/// percent-encoding in names: no host has them, and they open ways to make one host look like another.
#[must_use]
pub fn valid_authority(authority: &str) -> bool {
    if authority.len() > AUTHORITY_BYTES_MAX {
        return false;
    }
    let host = host_without_port(authority);
    let valid_host = match host.strip_prefix('[') {
        Some(literal) => literal.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && host.bytes().all(unreserved),
    };
    let valid_port = match &authority[host.len()..] {
        "" | ":" => true,
        port => port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok()),
    };
    valid_host && valid_port
}

/// Returns the host of an authority, brackets included.
#[must_use]
pub fn host_without_port(authority: &str) -> &str {
    let bytes = authority.as_bytes();
    let from = if bytes.first() == Some(&b'[') { bytes.iter().position(|&b| b == b']').unwrap_or(0) } else { 0 };
    bytes[from..].iter().position(|&b| b == b':').map_or(authority, |colon| &authority[..from + colon])
}

/// Returns the port as written in the authority; empty after a lone colon.
fn port(authority: &str) -> Option<&str> {
    authority[host_without_port(authority).len()..].strip_prefix(':')
}

/// Returns the one spelling of an authority for a scheme: the host in lower case and without the root's dot, an IPv6 address as RFC 5952 writes
/// it, and a port only if it is not the scheme's own, without zeros before it (RFC 3986 §6.2.2.1, §6.2.3, RFC 9110 §4.2.3).
///
/// Two spellings of one origin must not become two pages, and what an origin is asked must be what stands in the key: it writes the host
/// into links and redirects, and compares it with its own name. So this form alone is used for routing and keys, and the origin is sent
/// it. It borrows if there was nothing to do, as it is nearly always.
///
/// `authority` should pass [`valid_authority`], or be empty; anything else is returned in lower case at most.
#[must_use]
pub fn canonical_authority(scheme: Scheme, authority: &str) -> Cow<'_, str> {
    // A name in lower case, perhaps with a port that has to be said: what nearly everybody sends.
    let (name, port) = match authority.bytes().position(|byte| byte == b':') {
        Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
        None => (authority, None),
    };
    let plain = |found: bool, &byte: &u8| found & !(byte.is_ascii_uppercase() | (byte == b'['));
    if name.as_bytes().iter().fold(true, plain) && !name.ends_with('.') && port.is_none_or(|port| is_to_be_said(scheme, port)) {
        return Cow::Borrowed(authority);
    }
    let host = host_without_port(authority);
    let port = canonical_port(scheme, &authority[host.len()..]);
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|address| address.parse::<Ipv6Addr>().ok());
    if let Some(address) = address {
        let is_canonical = port.len() == authority.len() - host.len() && is_written(address, &host[1..host.len() - 1]);
        return if is_canonical { Cow::Borrowed(authority) } else { Cow::Owned(format!("[{address}]{port}")) };
    }
    // A dot alone, behind another one or behind an address in brackets is not the root's.
    let name = host.strip_suffix('.').filter(|name| !name.is_empty() && !name.ends_with(['.', ']'])).unwrap_or(host);
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    match (is_lower, name.len() + port.len() == authority.len(), port.is_empty()) {
        (true, true, _) => Cow::Borrowed(authority),
        (true, false, true) => Cow::Borrowed(name),
        _ => Cow::Owned(name.to_ascii_lowercase() + &port),
    }
}

/// Returns whether a port is a number in its one spelling that is not the scheme's own. One of five digits may be none: then it is left as it is.
fn is_to_be_said(scheme: Scheme, port: &str) -> bool {
    let default = match scheme {
        Scheme::Http => "80",
        Scheme::Https => "443",
    };
    matches!(port.as_bytes(), [b'1'..=b'9', ..]) && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()) && port != default
}

/// Returns the port with its colon if it is not the scheme's own, else nothing. What is not a port is left as it is.
fn canonical_port(scheme: Scheme, port: &str) -> Cow<'_, str> {
    let default = match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    let Some(digits) = port.strip_prefix(':') else { return Cow::Borrowed(port) };
    match digits.parse::<u16>() {
        _ if digits.is_empty() => Cow::Borrowed(""),
        Ok(number) if number == default => Cow::Borrowed(""),
        Ok(number) if digits.starts_with('0') && digits != "0" => Cow::Owned(format!(":{number}")),
        Ok(_) | Err(_) => Cow::Borrowed(port),
    }
}

/// Returns whether `text` is the address in its one spelling. Compares without an allocation, as hosts may be addresses on the way to a hit, too.
fn is_written(address: Ipv6Addr, text: &str) -> bool {
    struct Rest<'a>(&'a str);
    impl fmt::Write for Rest<'_> {
        fn write_str(&mut self, written: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(written).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(text);
    fmt::write(&mut rest, format_args!("{address}")).is_ok() && rest.0.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn paths_have_one_spelling() {
        let cases = [
            ("/", "/"),
            ("/a/b.html", "/a/b.html"),
            ("/.well-known/acme", "/.well-known/acme"),
            ("/a/...", "/a/..."),
            ("/a/..b/.c/d.", "/a/..b/.c/d."),
            ("/%E4%BD%A0", "/%E4%BD%A0"),
            // RFC 3986 §5.2.4 and §5.4.2
            ("/a/b/c/./../../g", "/a/g"),
            ("/b/c/..", "/b/"),
            ("/b/c/.", "/b/c/"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("/../../..", "/"),
            ("/.", "/"),
            ("/..", "/"),
            ("/b/c/g.", "/b/c/g."),
            ("/b/c/./g/.", "/b/c/g/"),
            ("/b/c/g/../h", "/b/c/h"),
            ("/b//../c", "/b/c"),
            ("/a//b/", "/a//b/"),
            ("/a/..//b", "//b"),
            // §6.2.2.1 and §6.2.2.2
            ("/%7esmith/home", "/~smith/home"),
            ("/%41%2d%5f%30", "/A-_0"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%2Fb", "/a%2Fb"),
            ("/%e4%bd%a0", "/%E4%BD%A0"),
            ("/%00", "/%00"),
            ("/%25%34%31", "/%2541"),
            ("/%2541", "/%2541"),
            ("/%2e/a", "/a"),
            ("/a/%2E%2e/b", "/b"),
            ("/a/.%2e/b", "/b"),
            ("/a/%2e%2e", "/"),
            ("/a/..%2fb", "/a/..%2Fb"),
            ("/a/%2e%2e%2fb", "/a/..%2Fb"),
            // A `%` that begins no escape
            ("/100%", "/100%"),
            ("/%zz/%", "/%zz/%"),
            ("/%4", "/%4"),
            ("/%%34%31", "/%%341"),
            ("/%4%31", "/%4%31"),
            ("/%%7e%34", "/%~4"),
            ("/%/%34%31", "/%/41"),
        ];
        for (given, expected) in cases {
            let found = normal_path(given).expect(given);
            assert_eq!(found, expected, "{given}");
            assert_eq!(matches!(found, Cow::Borrowed(_)), given == expected, "{given}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        assert_eq!(normal_path(""), Err(BadTarget::Form));
        assert_eq!(normal_path("a"), Err(BadTarget::Form));
        assert_eq!(normal_path("*"), Err(BadTarget::Form));
        for (path, byte) in [("/a b", b' '), ("/a\r\nb", b'\r'), ("/\0", 0), ("/\x7f", 0x7f), ("/é", 0xc3), ("/a#b", b'#'), ("/a?b", b'?')]
        {
            assert_eq!(normal_path(path), Err(BadTarget::Byte(byte)), "{path:?}");
        }
    }

    /// RFC 9112 §3.2, its examples first.
    #[test]
    fn four_forms() {
        let origin = |path, query| Ok(Target::Origin { path, query });
        let absolute = |scheme, authority, path, query| Ok(Target::Absolute { scheme, authority, path, query });
        let cases = [
            ("/where?q=now", origin("/where", Some("q=now"))),
            ("http://www.example.org/pub/WWW/TheProject.html", absolute("http", "www.example.org", "/pub/WWW/TheProject.html", None)),
            ("www.example.com:80", Ok(Target::Authority("www.example.com:80"))),
            ("*", Ok(Target::Asterisk)),
            ("/", origin("/", None)),
            ("/?", origin("/", Some(""))),
            ("/a?b?c", origin("/a", Some("b?c"))),
            ("//a/b", origin("//a/b", None)),
            ("/http://a/", origin("/http://a/", None)),
            ("HTTPS://a:443", absolute("HTTPS", "a:443", "/", None)),
            ("http://a?b", absolute("http", "a", "/", Some("b"))),
            ("http://[::1]:8080/a", absolute("http", "[::1]:8080", "/a", None)),
            ("http://user@a/", Err(BadTarget::Authority)),
            ("http:///a", Err(BadTarget::Authority)),
            ("http://", Err(BadTarget::Authority)),
            ("1http://a/", Err(BadTarget::Form)),
            ("", Err(BadTarget::Form)),
            ("a", Err(BadTarget::Form)),
            ("a:", Err(BadTarget::Form)),
            ("?a", Err(BadTarget::Form)),
            ("**", Err(BadTarget::Form)),
            ("/a b", Err(BadTarget::Byte(b' '))),
            ("/a?b\nc", Err(BadTarget::Byte(b'\n'))),
            ("/a#b", Err(BadTarget::Byte(b'#'))),
            ("/?é", Err(BadTarget::Byte(0xc3))),
        ];
        for (target, expected) in cases {
            assert_eq!(parse_target(target), expected, "{target}");
        }
    }

    #[test]
    fn authorities() {
        let long = "a".repeat(AUTHORITY_BYTES_MAX);
        for valid in
            ["a", "a.example", "A.example:8080", "a:", "a_b-c.d~e", "127.0.0.1:0", "a:65535", "[::1]", "[2001:db8::1]:443", "[::1]:", &long]
        {
            assert!(valid_authority(valid), "{valid}");
        }
        let too_long = "a".repeat(AUTHORITY_BYTES_MAX + 1);
        let invalid = [
            "",
            ":80",
            "a:65536",
            "a:b",
            "a:+1",
            "a:-1",
            "a:1:2",
            "u@a",
            "u:p@a",
            "a b",
            "a\t",
            "a\0",
            "é",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "a,b",
            "a%2eb",
            "::1",
            "[::1",
            "[::1]a",
            "[::1]80",
            "[]",
            "[a]",
            "[fe80::1%25eth0]",
            "[v1.a]",
            "a]",
            "[[::1]]",
            &too_long,
        ];
        for invalid in invalid {
            assert!(!valid_authority(invalid), "{invalid}");
        }
    }

    #[test]
    fn hosts_and_default_ports() {
        use Scheme::{Http, Https};
        let cases = [
            (Http, "a", "a", "a"),
            (Http, "a:80", "a", "a"),
            (Http, "a:0080", "a", "a"),
            (Http, "a:", "a", "a"),
            (Http, "a:443", "a", "a:443"),
            (Https, "a:443", "a", "a"),
            (Https, "a:80", "a", "a:80"),
            (Https, "a:8443", "a", "a:8443"),
            (Http, "[::1]", "[::1]", "[::1]"),
            (Http, "[::1]:80", "[::1]", "[::1]"),
            (Https, "[::1]:80", "[::1]", "[::1]:80"),
            (Http, "", "", ""),
        ];
        for (scheme, authority, host, canonical) in cases {
            assert_eq!(host_without_port(authority), host, "{authority}");
            assert_eq!(canonical_authority(scheme, authority), canonical, "{authority}");
        }
    }

    /// RFC 9110 §4.2.3, RFC 3986 §6.2.3, RFC 1034 §3.1 (the root's dot), RFC 5952 (IPv6).
    #[test]
    fn an_authority_has_one_spelling() {
        use Scheme::{Http, Https};
        let cases = [
            (Http, "Blog.Example", "blog.example"),
            (Http, "blog.example.", "blog.example"),
            (Https, "BLOG.example.:0443", "blog.example"),
            (Http, "blog.example.:8080", "blog.example:8080"),
            (Http, "a:08080", "a:8080"),
            (Http, "a:00443", "a:443"),
            (Https, "a:080", "a:80"),
            (Http, "a:0", "a:0"),
            (Http, "a:000", "a:0"),
            (Http, "a.:", "a"),
            // No root's dot: other names, of nobody.
            (Http, ".", "."),
            (Http, "a..", "a.."),
            (Http, "[2001:DB8:0:0:0:0:0:1]", "[2001:db8::1]"),
            (Http, "[2001:db8::1]:0080", "[2001:db8::1]"),
            (Https, "[2001:db8::1]:0080", "[2001:db8::1]:80"),
            (Http, "[::ffff:192.0.2.7]", "[::ffff:192.0.2.7]"),
            (Http, "[::FFFF:c000:207]", "[::ffff:192.0.2.7]"),
            (Http, "[::1]:", "[::1]"),
            (Http, "192.0.2.7:80", "192.0.2.7"),
        ];
        for (scheme, authority, expected) in cases {
            assert!(valid_authority(authority), "{authority}");
            let canonical = canonical_authority(scheme, authority);
            assert_eq!(canonical, expected, "{authority}");
            assert!(matches!(canonical_authority(scheme, expected), Cow::Borrowed(again) if again == expected), "{expected}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_normal_path_is_its_own_normal_form(rest in "([/.%]|%2[efEF]|%[0-9a-fA-F]{2}|%3[0-9]|%4|[0-9a-gA-G]|[!-~]){0,14}") {
            if let Ok(normal) = normal_path(&format!("/{rest}")) {
                prop_assert!(normal.starts_with('/'));
                prop_assert!(!normal.split('/').any(|segment| segment == "." || segment == ".."));
                prop_assert!(normal.len() <= rest.len() + 1);
                let again = normal_path(&normal).expect("a normal path");
                prop_assert_eq!(&again, &normal);
                prop_assert!(matches!(again, Cow::Borrowed(_)), "{normal}");
            }
        }

        #[test]
        fn any_text_is_read(text in any::<String>()) {
            let _ = normal_path(&text);
            let _ = normal_path(&format!("/{text}"));
            let _ = parse_target(&text);
            let _ = canonical_authority(Scheme::Http, &text);
            if valid_authority(&text) {
                prop_assert!(!host_without_port(&text).is_empty());
            }
        }

        #[test]
        fn any_authority_is_read(text in r"[\[\]:@a0.]{0,12}") {
            for scheme in [Scheme::Http, Scheme::Https] {
                let canonical = canonical_authority(scheme, &text);
                prop_assert_eq!(valid_authority(&canonical), valid_authority(&text));
                prop_assert!(!valid_authority(&text) || matches!(canonical_authority(scheme, &canonical), Cow::Borrowed(again) if again == canonical));
            }
            let host = host_without_port(&text);
            prop_assert!(text.starts_with(host));
            prop_assert_eq!(valid_authority(&text), valid_authority(host) && valid_authority(&format!("a{}", &text[host.len()..])));
        }
    }
}
