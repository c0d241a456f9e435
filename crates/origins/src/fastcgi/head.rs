//! The head of a response as CGI has it (RFC 3875 §6): fields, and a status that may be missing. No sockets here.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::LOCATION};
use semantics::hop_by_hop::strip_hop_by_hop;

use crate::{Fault, http::settle_length};

/// The largest head of a response. Applications that set hundreds of cookies or report to a debugger in fields come to 70 KB.
pub const HEAD_BYTES_MAX: usize = 256 * 1024;
/// The most field lines of a head.
pub const FIELDS_MAX: usize = 2048;

/// The head of a response.
#[derive(Debug)]
pub struct Head {
    /// The status that the script said, or that its fields mean.
    pub status: StatusCode,
    /// The end-to-end fields.
    pub fields: HeaderMap,
}

/// The reason why a head is refused.
pub type Refused = (Fault, &'static str);

/// Returns the length of a head with the empty line at its end, if that has come. Nothing before `from` is looked at again.
#[must_use]
pub fn length(bytes: &[u8], from: usize) -> Option<usize> {
    // A line may end with or without a carriage return (RFC 3875 §6.2).
    let mut at = from.saturating_sub(3);
    if at == 0 {
        if bytes.starts_with(b"\n") {
            return Some(1);
        }
        if bytes.starts_with(b"\r\n") {
            return Some(2);
        }
    }
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\n')) {
        at += found + 1;
        match bytes.get(at..) {
            Some([b'\n', ..]) => return Some(at + 1),
            Some([b'\r', b'\n', ..]) => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Reads a whole head: `bytes` end with its empty line.
///
/// A head without a status is that of a 200, or of a 302 if it says `Location`. A `Location` that is only a path is for the client as well: RFC 3875
/// §6.2.2 would have us answer for that path ourselves, which no server in use does and no script expects.
///
/// # Errors
/// When it is not a head, contradicts itself, or has more lines than allowed.
pub fn read(bytes: &Bytes) -> Result<Head, Refused> {
    let malformed = |what| (Fault::ProtocolError, what);
    let (mut fields, mut status, mut lines) = (HeaderMap::new(), None::<StatusCode>, 0);
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        lines += 1;
        if lines > FIELDS_MAX {
            return Err((Fault::ResponseTooLarge, "more field lines than allowed"));
        }
        if number == 0 && line.starts_with(b"HTTP/") {
            status = Some(status_of_line(line).ok_or_else(|| malformed("a malformed status line"))?);
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or_else(|| malformed("a line of the head without a colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"status") {
            let said = status_of(value).ok_or_else(|| malformed("a malformed Status"))?;
            if status.replace(said).is_some_and(|other| other != said) {
                return Err(malformed("two statuses that differ"));
            }
            continue;
        }
        let name = HeaderName::from_bytes(name).map_err(|_| malformed("a malformed field name"))?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(value)).map_err(|_| malformed("a malformed field value"))?;
        fields.try_append(name, value).map_err(|_| (Fault::ResponseTooLarge, "more fields than allowed"))?;
    }
    let status = status.unwrap_or_else(|| if fields.contains_key(LOCATION) { StatusCode::FOUND } else { StatusCode::OK });
    // Fields of a connection that PHP does not have: mostly copied from a server that a script has asked.
    strip_hop_by_hop(&mut fields);
    settle_length(&mut fields).map_err(malformed)?;
    Ok(Head { status, fields })
}

/// Reads the value of `Status`: a number, with or without words behind it; some write the whole line of HTTP.
fn status_of(value: &[u8]) -> Option<StatusCode> {
    if value.starts_with(b"HTTP/") {
        return status_of_line(value);
    }
    let (code, rest) = value.split_at_checked(3)?;
    let is_number = code.iter().all(u8::is_ascii_digit) && rest.first().is_none_or(|&byte| byte == b' ' || byte == b'\t');
    StatusCode::from_bytes(code).ok().filter(|status| is_number && (100..=599).contains(&status.as_u16()))
}

fn status_of_line(line: &[u8]) -> Option<StatusCode> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let rest = line[space..].trim_ascii_start();
    if rest.starts_with(b"HTTP/") { None } else { status_of(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Head, Refused> {
        assert_eq!(length(text.as_bytes(), 0), Some(text.len()), "{text:?}");
        read(&Bytes::copy_from_slice(text.as_bytes()))
    }

    /// RFC 3875 §6.3.3, and §6.2.4 for `Location` alone.
    #[test]
    fn a_status_is_understood_in_every_form() {
        for (text, status) in [
            ("Content-Type: text/html\r\n\r\n", 200),
            ("Status: 404 Not Found\r\n\r\n", 404),
            ("Status: 404\r\n\r\n", 404),
            ("status:404\n\n", 404),
            ("STATUS: \t503 \r\n\r\n", 503),
            ("Status: 404 Not Found\r\nStatus: 404\r\n\r\n", 404),
            ("Status: HTTP/1.1 410 Gone\r\n\r\n", 410),
            ("HTTP/1.1 404 Not Found\r\n\r\n", 404),
            ("HTTP/1.0 404\nX-A: b\n\n", 404),
            ("HTTP/1.1 404 Not Found\r\nStatus: 404 Not Found\r\n\r\n", 404),
            ("Location: /there\r\n\r\n", 302),
            ("Location: https://blog.example/\r\n\r\n", 302),
            ("Location: /there\r\nStatus: 301 Moved Permanently\r\n\r\n", 301),
            ("Location: /made\r\nStatus: 201\r\n\r\n", 201),
            ("Status: 103 Early Hints\r\nLink: </a.css>\r\n\r\n", 103),
        ] {
            assert_eq!(parsed(text).expect(text).status, status, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        let many = format!("{}\r\n", "A: b\r\n".repeat(FIELDS_MAX + 1));
        for text in [
            "Status: OK\r\n\r\n",
            "Status: 4040\r\n\r\n",
            "Status: 99\r\n\r\n",
            "Status: 600\r\n\r\n",
            "Status:\r\n\r\n",
            "Status: 200\r\nStatus: 404\r\n\r\n",
            "HTTP/1.1\r\n\r\n",
            "A: b\r\nHTTP/1.1 404 Not Found\r\n\r\n",
            "<br />\r\n\r\n",
            "A b: c\r\n\r\n",
            ": c\r\n\r\n",
            " A: folded\r\n\r\n",
            "A: b\r\n folded\r\n\r\n",
            "A: b\0c\r\n\r\n",
            "A: b\rc\r\n\r\n",
            "Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "Content-Length: -3\r\n\r\n",
            &many,
        ] {
            assert!(parsed(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn repeated_fields_stay_and_those_of_a_connection_go() {
        let head = parsed(
            "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
             Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nContent-Length: 05\r\nX-Powered-By: PHP\r\n\r\n",
        )
        .expect("a head");
        let cookies: Vec<_> = head.fields.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        assert_eq!(head.fields["content-length"], "5");
        assert_eq!(head.fields.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["set-cookie", "content-length", "x-powered-by"]);
    }

    #[test]
    fn a_head_ends_with_an_empty_line_however_it_comes() {
        for text in ["A: b\r\n\r\n", "A: b\n\n", "A: b\n\r\n", "\r\n", "\n"] {
            for end in 0..text.len() {
                assert_eq!(length(&text.as_bytes()[..end], end.saturating_sub(1)), None, "{text:?} to {end}");
            }
            for from in 0..text.len() {
                assert_eq!(length(text.as_bytes(), from), Some(text.len()), "{text:?} from {from}");
            }
            assert_eq!(length(format!("{text}more\n\n").as_bytes(), 0), Some(text.len()));
        }
    }
}
