//! Line ends, field lines and the bytes within them (RFC 9112 §2.2, §5; RFC 9110 §5.5, §5.6.2).

use super::{HOST, Malformed, PATH, get_with, get_without_host, row};

pub(super) fn rows() -> Vec<Malformed> {
    let mut rows = line_ends();
    rows.extend(field_names());
    rows.extend(field_values());
    rows.extend(unfinished());
    rows
}

fn line_ends() -> Vec<Malformed> {
    let line = |name, bytes: String| row(name, "RFC 9112 §2.2", bytes);
    vec![
        line("a request line that ends in a bare LF", format!("GET {PATH} HTTP/1.1\nHost: {HOST}\r\n\r\n")).wise(),
        line("a field line that ends in a bare LF", format!("GET {PATH} HTTP/1.1\r\nHost: {HOST}\n\r\n")).wise(),
        line("a head that ends in a bare LF", format!("GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\n\n")).wise(),
        line("a request with bare LFs only", format!("GET {PATH} HTTP/1.1\nHost: {HOST}\n\n")).wise(),
        line("a request with bare CRs only", format!("GET {PATH} HTTP/1.1\rHost: {HOST}\r\r")).half_close().or_closed(),
        line("a request line that ends in CR CR LF", format!("GET {PATH} HTTP/1.1\r\r\nHost: {HOST}\r\n\r\n")),
        line("a field line that ends in CR CR LF", get_with("X-A: b\r")).wise(),
        line("whitespace before the first field line", format!("GET {PATH} HTTP/1.1\r\n X-A: b\r\nHost: {HOST}\r\n\r\n")).wise(),
        line("Host behind whitespace as the only field line", format!("GET {PATH} HTTP/1.1\r\n Host: {HOST}\r\n\r\n")),
        line("whitespace before the request line", format!(" GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\n\r\n")),
        line("a field line of nothing but whitespace", get_with("X-A: b\r\n \t\r\nX-C: d")).wise(),
    ]
}

fn field_names() -> Vec<Malformed> {
    let name = |name, fields| row(name, "RFC 9112 §5, §5.1", get_with(fields));
    vec![
        name("a space before the colon", "X-A : b"),
        name("a tab before the colon", "X-A\t: b"),
        name("a space within a field name", "X A: b"),
        name("an empty field name", ": b"),
        name("a field line without a colon", "X-A"),
        name("a field name in brackets", "X[A]: b"),
        name("a field name with a slash", "X/A: b"),
        name("a field name in quotes", "\"X-A\": b"),
        name("a bare CR in a field name", "X\rA: b"),
        name("a NUL in a field name", "X\0A: b"),
        name("a control character in a field name", "X\x01A: b"),
        name("DEL in a field name", "X\x7fA: b"),
        name("a field name that is not ASCII", "X-\u{c4}: b"),
    ]
}

fn field_values() -> Vec<Malformed> {
    // RFC 9110 says "either reject the message or replace": refusing is therefore wise throughout.
    let value = |name, fields| row(name, "RFC 9110 §5.5", get_with(fields)).wise();
    vec![
        value("a bare CR in a field value", "X-A: b\rc"),
        value("a bare CR and a line that looks like a field", "X-A: b\rX-C: d"),
        value("a NUL in a field value", "X-A: b\0c"),
        value("a field value that is a NUL", "X-A: \0"),
        value("a control character in a field value", "X-A: b\x01c"),
        value("a backspace in a field value", "X-A: b\x08c"),
        value("a vertical tab in a field value", "X-A: b\x0bc"),
        value("an escape character in a field value", "X-A: \x1b[31m"),
        value("DEL in a field value", "X-A: b\x7fc"),
        row("a field value continued on the next line with a space", "RFC 9112 §5.2", get_with("X-A: b\r\n c")).wise(),
        row("a field value continued on the next line with a tab", "RFC 9112 §5.2", get_with("X-A: b\r\n\tc")).wise(),
        row("Host continued on the next line", "RFC 9112 §5.2", get_without_host(&format!("Host:\r\n {HOST}"))).wise(),
    ]
}

/// Returns the rows of a client that leaves in the middle of a head, or says nothing at all.
fn unfinished() -> Vec<Malformed> {
    use super::Expect;

    let unfinished = |name, bytes: String| row(name, "RFC 9112 §8", bytes).status(&[400, 408]).or_closed().half_close();
    let nothing = |name, bytes: &str| Malformed { expect: Expect::Closed, ..row(name, "RFC 9112 §2.2, §9.6", bytes) }.half_close();
    vec![
        unfinished("a request line cut off, then a close", format!("GET {PATH}")),
        unfinished("a request line alone, then a close", format!("GET {PATH} HTTP/1.1\r\n")),
        unfinished("a field name cut off, then a close", format!("GET {PATH} HTTP/1.1\r\nHos")),
        unfinished("a head without its empty line, then a close", format!("GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\n")),
        unfinished("a head with half its last line end, then a close", format!("GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\n\r")),
        nothing("nothing at all, then a close", ""),
        nothing("an empty line, then a close", "\r\n"),
    ]
}
