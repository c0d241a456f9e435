//! Reads one line of a log in the Common or Combined Log Format, as nginx, Apache, Caddy and Seawall write it.
//!
//! `192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 "referer" "agent"`, and whatever follows. Apache's `vhost_combined` has the
//! host before it.

use std::{borrow::Cow, net::IpAddr};

use jiff::{civil, tz::Offset};

/// A line of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The address of the client that asked.
    pub(super) client: &'a [u8],
    /// The time, as it is written.
    pub(super) time: &'a [u8],
    /// The request line, with its escapes undone.
    pub(super) request: Cow<'a, [u8]>,
    pub(super) status: u16,
    pub(super) referer: Option<Cow<'a, [u8]>>,
    pub(super) agent: Option<Cow<'a, [u8]>>,
}

impl<'a> Line<'a> {
    /// Reads a line without its end. None: it is not in the format.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let (before, rest) = split(line, b" [")?;
        let (time, rest) = split(rest, b"] \"")?;
        let (request, rest) = quoted(rest)?;
        let mut words = before.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let (first, second) = (words.next()?, words.next());
        // A name of a user may have spaces, but is not an address.
        let client = second.filter(|word| std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok())).unwrap_or(first);
        let mut numbers = rest.trim_ascii_start().split(|byte| *byte == b' ');
        let status = std::str::from_utf8(numbers.next()?).ok()?.parse().ok().filter(|status| (100..1000).contains(status))?;
        let size = numbers.next()?;
        if size != b"-" && !size.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut field = rest;
        let mut next = || {
            let (text, rest) = quoted(split(field, b" \"")?.1)?;
            field = rest;
            (*text != *b"-" && !text.is_empty()).then_some(text)
        };
        let referer = next();
        Some(Self { client, time, request, status, referer, agent: next() })
    }

    /// Returns the method and the target, if the request line is one of HTTP. TLS sent to a plain port and other noise is logged as a request, too.
    pub(super) fn asked(&self) -> Option<(&str, &str)> {
        let text = std::str::from_utf8(&self.request).ok()?;
        let mut words = text.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next());
        let is_method = !method.is_empty() && method.len() <= 20 && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let is_http = version.is_none_or(|version| version.starts_with("HTTP/")) && words.next().is_none();
        // A proxy is asked with the whole URL; what is wanted is path and query.
        let path = match target.split_once("://") {
            Some((_, rest)) if !target.starts_with('/') => rest.find('/').map(|at| &rest[at..])?,
            _ => target,
        };
        let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
        (is_method && is_http && is_path).then_some((method, path))
    }
}

/// Reads a moment: `10/Oct/2000:13:55:36 -0700`, in seconds since 1970.
pub(super) fn seconds(time: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(time).ok()?;
    let [day, month, year, hour, minute, second, zone] = [0..2, 3..6, 7..11, 12..14, 15..17, 18..20, 21..26].map(|part| text.get(part));
    if text.len() != 26
        || [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')].iter().any(|(at, mark)| time[*at] != *mark)
    {
        return None;
    }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = i8::try_from(months.iter().position(|name| Some(*name) == month)?).ok()? + 1;
    // A leap second counts as the one before it.
    let second = second?.parse::<i8>().ok()?.min(59);
    let at = civil::DateTime::new(year?.parse().ok()?, month, day?.parse().ok()?, hour?.parse().ok()?, minute?.parse().ok()?, second, 0);
    let (sign, digits) = match zone?.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<i32>().ok()?;
    let offset = Offset::from_seconds(sign * (digits / 100 * 60 + digits % 100) * 60);
    Some(offset.ok()?.to_timestamp(at.ok()?).ok()?.as_second())
}

fn split<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Reads up to the closing quote, and undoes the escapes of nginx (`\x22`) and Apache (`\"`, `\\`, `\t`). Returns what follows the quote, too.
fn quoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', text)?;
    if text[end] == b'"' {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let (mut plain, mut at) = (text[..end].to_vec(), end);
    loop {
        match *text.get(at)? {
            b'"' => return Some((Cow::Owned(plain), &text[at + 1..])),
            b'\\' => {
                at += 2;
                plain.push(match *text.get(at - 1)? {
                    b'x' => {
                        let digits = std::str::from_utf8(text.get(at..at + 2)?).ok()?;
                        at += 2;
                        u8::from_str_radix(digits, 16).ok()?
                    }
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'r' => b'\r',
                    other => other,
                });
            }
            byte => {
                plain.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_the_usual_servers_are_read() {
        for (line, client, asked, status, referer, agent) in [
            (
                r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.1" 200 2326 "https://news.example/" "Mozilla/5.0 (X11)""#,
                "192.0.2.1",
                Some(("GET", "/a?b=c")),
                200,
                Some("https://news.example/"),
                Some("Mozilla/5.0 (X11)"),
            ),
            (
                r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "HEAD /a HTTP/1.0" 304 -"#,
                "127.0.0.1",
                Some(("HEAD", "/a")),
                304,
                None,
                None,
            ),
            (
                r#"2001:db8::1 - - [10/Oct/2000:13:55:36 +0000] "POST /b HTTP/2.0" 302 0 "-" "say \x22hi\x22" rt=0.14 HIT"#,
                "2001:db8::1",
                Some(("POST", "/b")),
                302,
                None,
                Some("say \"hi\""),
            ),
            (
                r#"blog.example:443 192.0.2.9 - a b [10/Oct/2000:13:55:36 +0000] "GET http://blog.example/x HTTP/1.1" 200 9 "" "a \"b\" \\ c""#,
                "192.0.2.9",
                Some(("GET", "/x")),
                200,
                None,
                Some("a \"b\" \\ c"),
            ),
            (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "\x16\x03\x01" 400 150 "-" "-""#, "192.0.2.1", None, 400, None, None),
            (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "-" 408 0 "-" "-""#, "192.0.2.1", None, 408, None, None),
            (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a b HTTP/1.1" 400 0 "-" "-""#, "192.0.2.1", None, 400, None, None),
            (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "OPTIONS * HTTP/1.1" 200 0 "-" "-""#, "192.0.2.1", None, 200, None, None),
            (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a\r\nX:y HTTP/1.1" 200 0 "-" "-""#, "192.0.2.1", None, 200, None, None),
        ] {
            let read = Line::read(line.as_bytes()).expect(line);
            let text = |field: &Option<Cow<'_, [u8]>>| field.as_ref().map(|field| String::from_utf8_lossy(field).into_owned());
            assert_eq!(
                (read.client, read.asked(), read.status, text(&read.referer).as_deref(), text(&read.agent).as_deref()),
                (client.as_bytes(), asked, status, referer, agent),
                "{line}"
            );
        }
    }

    #[test]
    fn other_lines_are_not_read() {
        for line in [
            "",
            "hello",
            "{\"time\":\"2026-11-23\"}",
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1"#,
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200"#,
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" OK 5"#,
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 five"#,
            r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /\x2" 200 5"#,
        ] {
            assert_eq!(Line::read(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        /// Logs hold what strangers have sent.
        #[test]
        fn no_line_stops_the_reader(
            time in "[0-9/:A-Za-z +€-]{0,30}", request in "[ -~€\\\\x\"]{0,40}", rest in "[ -~€]{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let _ = seconds(time.as_bytes());
            let _ = Line::read(&bytes);
            if let Some(line) = Line::read(format!("192.0.2.1 - - [{time}] \"{request}\" {rest}").as_bytes()) {
                let _ = (line.asked(), seconds(line.time));
            }
        }
    }

    #[test]
    fn moments_have_their_zone() {
        for (text, second) in [
            ("10/Oct/2000:13:55:36 -0700", Some(971_211_336)),
            ("10/Oct/2000:20:55:36 +0000", Some(971_211_336)),
            ("11/Oct/2000:02:25:36 +0530", Some(971_211_336)),
            ("01/Jan/1970:00:00:00 +0000", Some(0)),
            ("31/Dec/2016:23:59:60 +0000", Some(1_483_228_799)),
            ("31/Feb/2016:23:59:59 +0000", None),
            ("10/Oct/2000 13:55:36 +0000", None),
            ("10/Oct/2000:13:55:36", None),
            ("10/Okt/2000:13:55:36 +0000", None),
            ("10/Oct/2000:13:55:36 00000", None),
            ("2000-10-10T13:55:36.00000Z", None),
            ("€€€€€€€€€.", None),
            ("10/Oct/2000:13:55:36 é000", None),
            ("10/Oct/2000:13:55:36 +é00", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), second, "{text}");
        }
    }
}
