//! Chunked content that is not (RFC 9112 §7.1).
//!
//! That a bare LF may end a line (§2.2) is said of start lines and field lines, not of these.
//!
//! A proxy that streams may have sent the request's head to the origin by the time it finds out. It must then break that request off, not
//! complete it; to the client it answers 400 or closes.

use super::{Malformed, row, smuggling};

pub(super) fn rows() -> Vec<Malformed> {
    let chunked = |name, content: &str| row(name, "RFC 9112 §7.1", smuggling("Transfer-Encoding: chunked", content)).or_closed();
    let long = "a".repeat(1 << 20);
    vec![
        chunked("an empty chunk size", "\r\nhello\r\n0\r\n\r\n"),
        chunked("a negative chunk size", "-5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size with a plus sign", "+5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size with an underscore", "0_5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size that is not a number", "five\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size of seventeen digits f", "fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size with spaces before it", "  5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size with spaces after it", "5  \r\nhello\r\n0\r\n\r\n").wise(),
        chunked("a chunk size with a space within", "0 5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size with a NUL after it", "5\0\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size and a comma", "5,\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size line that ends in a bare LF", "5\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size line that ends in a bare CR", "5\rhello\r\n0\r\n\r\n"),
        chunked("a chunk size line that ends in CR and something else", "5\rXhello\r\n0\r\n\r\n"),
        chunked("no CRLF after a chunk's data", "5\r\nhello0\r\n\r\n"),
        chunked("two other bytes where CRLF belongs after a chunk's data", "5\r\nhelloXX0\r\n\r\n"),
        chunked("a bare LF after a chunk's data", "5\r\nhello\n0\r\n\r\n"),
        chunked("a chunk longer than its size", "5\r\nhello world\r\n0\r\n\r\n"),
        chunked("a chunk extension with a bare LF", "5;a\nhello\r\n0\r\n\r\n"),
        chunked("a chunk extension with a bare LF and a whole chunk behind it", "5;a=b\n5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk extension with a bare CR", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk extension with a NUL", "5;a=\0\r\nhello\r\n0\r\n\r\n").wise(),
        chunked("a huge chunk extension", &format!("5;{long}\r\nhello\r\n0\r\n\r\n")).status(&[400, 413]).or_closed().wise(),
        chunked("a last chunk that ends in bare LFs", "5\r\nhello\r\n0\n\n"),
        chunked("a last chunk with a sign", "5\r\nhello\r\n-0\r\n\r\n"),
        chunked("a trailer line without a colon", "5\r\nhello\r\n0\r\nno colon\r\n\r\n").wise(),
        chunked("a trailer line with a bare CR", "5\r\nhello\r\n0\r\na: b\rc\r\n\r\n").wise(),
        chunked("a trailer line of a megabyte", &format!("5\r\nhello\r\n0\r\na: {long}\r\n\r\n"))
            .status(&[400, 413, 431])
            .or_closed()
            .wise(),
        truncated("a chunk size line cut off, then a close", "5"),
        truncated("a chunk cut off, then a close", "5\r\nhel"),
        truncated("a chunk without its CRLF, then a close", "5\r\nhello"),
        truncated("chunks without a last one, then a close", "5\r\nhello\r\n"),
        truncated("a last chunk without its final CRLF, then a close", "5\r\nhello\r\n0\r\n"),
    ]
}

/// Returns a row whose content does not end. Nothing can hide behind it, so these rows have no second request.
fn truncated(name: &'static str, content: &str) -> Malformed {
    let head = smuggling("Transfer-Encoding: chunked", "");
    let head = head.split_inclusive("\r\n\r\n").next().unwrap_or_default();
    row(name, "RFC 9112 §8", format!("{head}{content}")).status(&[400, 408]).or_closed().half_close()
}
