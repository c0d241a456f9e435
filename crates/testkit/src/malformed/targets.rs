//! Request lines: methods, targets, versions (RFC 9112 §2.3, §3), `Host` (§3.2, RFC 9110 §7.2), and what is not HTTP/1.x at all.

use super::{HOST, Malformed, PATH, get_without_host, request_line, row};

pub(super) fn rows() -> Vec<Malformed> {
    let mut rows = methods();
    rows.extend(targets());
    rows.extend(versions());
    rows.extend(hosts());
    rows.extend(other_protocols());
    rows
}

/// Returns the names of the rows that are refused for what they mean: as messages they are well-formed.
#[cfg(test)]
pub(super) fn well_formed() -> impl Iterator<Item = &'static str> {
    ["a method in lower case", "a method of ten thousand letters"].into_iter()
}

fn methods() -> Vec<Malformed> {
    let method = |name, method: &str| row(name, "RFC 9112 §3.1, RFC 9110 §9.1", request_line(&format!("{method} {PATH} HTTP/1.1")));
    vec![
        method("a method in lower case", "get").status(&[400, 405, 501]).wise().may_stay_open(),
        method("a method of ten thousand letters", &"A".repeat(10_000))
            .status(&[400, 405, 414, 431, 501])
            .or_closed()
            .wise()
            .may_stay_open(),
        method("a method with a space within", "GE T"),
        method("a method with a parenthesis", "GET("),
        method("a method in quotes", "\"GET\""),
        method("a method with a colon", "GET:"),
        method("a method with a control character", "G\x01T"),
        method("a method with a NUL", "G\0T"),
        method("a method that is not ASCII", "G\u{c9}T"),
        row("no method", "RFC 9112 §3", request_line(&format!(" {PATH} HTTP/1.1"))),
    ]
}

fn targets() -> Vec<Malformed> {
    let line = |name, target: &str| row(name, "RFC 9112 §3, §3.2", request_line(&format!("GET {target} HTTP/1.1")));
    let connect = |name, target: &str| {
        row(name, "RFC 9112 §3.2.3", request_line(&format!("CONNECT {target} HTTP/1.1"))).status(&[400, 403, 405, 501]).may_stay_open()
    };
    vec![
        row("no target", "RFC 9112 §3", request_line("GET HTTP/1.1")),
        row("an empty target between two spaces", "RFC 9112 §3", request_line("GET  HTTP/1.1")),
        row("two spaces before the target", "RFC 9112 §3", request_line(&format!("GET  {PATH} HTTP/1.1"))).wise(),
        row("two spaces before the version", "RFC 9112 §3", request_line(&format!("GET {PATH}  HTTP/1.1"))).wise(),
        row("tabs instead of spaces", "RFC 9112 §3", request_line(&format!("GET\t{PATH}\tHTTP/1.1"))).wise(),
        line("a space within the target", "/mal formed"),
        line("a tab within the target", "/mal\tformed"),
        line("a NUL within the target", "/mal\0formed"),
        line("a control character within the target", "/mal\x01formed"),
        line("a bare CR within the target", "/mal\rformed"),
        line("DEL within the target", "/mal\x7fformed"),
        line("a target that is not ASCII", "/malform\u{e9}").wise(),
        row(
            "a target that is not UTF-8",
            "RFC 9112 §3.2",
            [b"GET /\xff\xfe HTTP/1.1\r\nHost: ".as_slice(), HOST.as_bytes(), b"\r\n\r\n"].concat(),
        )
        .wise(),
        line("a target with a fragment", "/malformed#part").wise(),
        line("a target without a slash", "malformed"),
        line("a target that begins with a question mark", "?malformed"),
        line("a target that begins with a backslash", "\\malformed"),
        line("an asterisk with GET", "*"),
        line("authority form with GET", "blog.example:80"),
        line("absolute form without a host", "http:///malformed"),
        line("absolute form with an empty host and a port", "http://:80/malformed"),
        line("absolute form with user information", "http://user:secret@blog.example/malformed").wise(),
        line("absolute form with a port that is not a number", "http://blog.example:eighty/malformed"),
        line("absolute form with a port beyond 16 bits", "http://blog.example:65536/malformed").status(&[400, 421]).wise(),
        line("absolute form with an unclosed bracket", "http://[::1/malformed"),
        line("absolute form with a space in the host", "http://blog example/malformed"),
        line("absolute form with a scheme that is not HTTP", "ftp://blog.example/malformed").status(&[400, 421]).wise(),
        connect("CONNECT to an authority", "blog.example:443"),
        connect("CONNECT to somebody else's mail server", "mail.example:25"),
        connect("CONNECT with origin form", "/malformed"),
        connect("CONNECT without a port", "blog.example"),
    ]
}

fn versions() -> Vec<Malformed> {
    let version = |name, version: &str| row(name, "RFC 9112 §2.3, §3", request_line(&format!("GET {PATH} {version}"))).status(&[400, 505]);
    vec![
        version("HTTP/2.0 in a request line", "HTTP/2.0"),
        version("HTTP/3.0 in a request line", "HTTP/3.0"),
        version("HTTP/2 without a minor version", "HTTP/2"),
        version("HTTP/0.9 as a version", "HTTP/0.9"),
        version("HTTP/1 without a minor version", "HTTP/1"),
        version("HTTP/1. without a digit", "HTTP/1."),
        version("a version with something behind it", "HTTP/1.1x"),
        version("a version with two minor digits", "HTTP/1.10"),
        version("a version with a leading zero", "HTTP/01.1"),
        version("a version with a comma", "HTTP/1,1"),
        version("a version in lower case", "http/1.1"),
        version("a version with a space within", "HTTP/ 1.1"),
        version("a version of another protocol", "HTTPS/1.1"),
        version("a version with a NUL", "HTTP/1.1\0"),
        version("a word behind the version", "HTTP/1.1 x"),
        version("a space behind the version", "HTTP/1.1 ").wise(),
        version("a tab behind the version", "HTTP/1.1\t").wise(),
        row("a simple request of HTTP/0.9", "RFC 9112 §2.3", format!("GET {PATH}\r\n\r\n")).status(&[400, 505]).or_closed(),
    ]
}

/// Returns the rows with a wrong `Host`, after RFC 9112 §3.2: "a server MUST respond with a 400 (Bad Request)".
fn hosts() -> Vec<Malformed> {
    let host = |name, fields| row(name, "RFC 9112 §3.2", get_without_host(fields));
    vec![
        host("no Host", "Accept: */*"),
        host("the same Host twice", "Host: blog.example\r\nHost: blog.example"),
        host("two Hosts that differ", "Host: blog.example\r\nHost: evil.example"),
        host("two Hosts in different cases with a field in between", "host: blog.example\r\nAccept: */*\r\nHOST: evil.example"),
        host("an empty Host", "Host:"),
        host("a Host of nothing but a port", "Host: :80"),
        host("a Host with a space within", "Host: blog example"),
        host("a Host and another one behind a space", "Host: blog.example evil.example"),
        host("a list of Hosts", "Host: blog.example, evil.example"),
        host("a Host with user information", "Host: user@blog.example"),
        host("a Host with a port that is not a number", "Host: blog.example:eighty"),
        host("a Host with a negative port", "Host: blog.example:-80"),
        host("a Host with two ports", "Host: blog.example:80:80"),
        host("a Host with a port beyond 16 bits", "Host: blog.example:65536").status(&[400, 421]).wise(),
        host("a Host with a path", "Host: blog.example/evil"),
        host("a Host with a query", "Host: blog.example?evil"),
        host("a Host with a fragment", "Host: blog.example#evil"),
        host("a Host with a backslash", "Host: blog.example\\evil"),
        host("a Host that is a URI", "Host: http://blog.example"),
        host("a Host with an unclosed bracket", "Host: [::1"),
        host("a Host with something behind its bracket", "Host: [::1]evil"),
        host("a Host with a NUL", "Host: blog.example\0.evil.example"),
        host("a Host with angle brackets", "Host: <blog.example>"),
        row("no Host with absolute form", "RFC 9112 §3.2", format!("GET http://{HOST}{PATH} HTTP/1.1\r\nAccept: */*\r\n\r\n")),
    ]
}

/// Returns messages of other protocols that scanners and confused clients send to an HTTP port.
fn other_protocols() -> Vec<Malformed> {
    /// The start of a TLS 1.2 ClientHello: record header, handshake header, version, and a made-up random.
    const CLIENT_HELLO: &[u8] =
        b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\
        \x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x2a\x00\x00\x04\x13\x01\x13\x02\x01\x00\r\n\r\n";
    let foreign = |name, bytes: &[u8]| row(name, "RFC 9112 §3", bytes).status(&[400, 505]).or_closed();
    vec![
        foreign("a TLS ClientHello", CLIENT_HELLO),
        foreign("the banner of an SSH client", b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
        foreign("the greeting of a mail client", b"EHLO blog.example\r\n\r\n"),
        foreign("an RTSP request", b"OPTIONS rtsp://blog.example/ RTSP/1.0\r\nCSeq: 1\r\n\r\n"),
        foreign("a PROXY protocol line from a peer that is not a trusted proxy", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n\r\n"),
        foreign("a PROXY protocol signature from a peer that is not a trusted proxy", b"\r\n\r\n\0\r\nQUIT\n\x20\x11\0\0\r\n\r\n"),
        foreign("a FastCGI record", b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0\r\n\r\n"),
        foreign("a Redis command", b"*1\r\n$4\r\nPING\r\n\r\n"),
        foreign("bytes from nowhere", b"\x80\xff\x00\x13\x37\xde\xad\xbe\xef\r\n\r\n"),
        foreign("a response", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        // A server that speaks HTTP/2 without TLS continues in HTTP/2 instead, and then this row does not apply to it.
        foreign("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").wise(),
    ]
}
