//! Responses that no careful proxy passes on or stores (RFC 9112 §4, §5, §6; RFC 9110 §15): for [`raw`](fn@crate::raw) replies.

use std::sync::LazyLock;

use crate::{Reply, raw};

/// A malformed response. A proxy turns it into 502 Bad Gateway, or breaks it off where its head has been passed on already.
#[derive(Clone, Debug)]
pub struct MalformedResponse {
    /// What is wrong with it, as a sentence.
    pub name: &'static str,
    /// Everything the origin sends before it closes.
    pub bytes: Vec<u8>,
    /// Whether the head alone shows the error, so that the client must see 502 and nothing of this response. If not, the error comes later:
    /// the client must be able to tell that the content is cut short, and no part of it may be stored.
    pub in_head: bool,
}

impl MalformedResponse {
    /// Returns a reply that sends this response.
    pub fn reply(&self) -> Reply {
        raw(self.bytes.clone())
    }
}

/// Returns all malformed responses.
#[must_use]
pub fn responses() -> &'static [MalformedResponse] {
    static TABLE: LazyLock<Vec<MalformedResponse>> = LazyLock::new(|| heads().into_iter().chain(contents()).collect());
    &TABLE
}

/// Returns the responses that are malformed before the content begins.
fn heads() -> Vec<MalformedResponse> {
    let head = |name, bytes: &[u8]| MalformedResponse { name, bytes: bytes.to_vec(), in_head: true };
    let fields = |name, lines: &str| head(name, format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\nhello").as_bytes());
    let start = |name, line: &str| head(name, format!("{line}\r\nContent-Length: 5\r\n\r\nhello").as_bytes());
    vec![
        head("nothing at all", b""),
        head("an empty line", b"\r\n"),
        head("a banner of SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
        head("a page without a head", b"<!doctype html><title>hello</title>"),
        head("a TLS alert", b"\x15\x03\x01\x00\x02\x02\x46"),
        head("a head cut off in the status line", b"HTTP/1.1 20"),
        head("a head cut off in a field line", b"HTTP/1.1 200 OK\r\nContent-Le"),
        head("a head without its empty line", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"),
        head("an interim response and nothing more", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        start("a status of two digits", "HTTP/1.1 20 OK"),
        start("a status of four digits", "HTTP/1.1 2000 OK"),
        start("a status that is not a number", "HTTP/1.1 abc OK"),
        start("a negative status", "HTTP/1.1 -20 OK"),
        start("another protocol's status line", "ICY 200 OK"),
        start("HTTP/2 in a status line", "HTTP/2.0 200 OK"),
        start("101 that nobody asked for", "HTTP/1.1 101 Switching Protocols"),
        start("a NUL in the reason phrase", "HTTP/1.1 200 O\0K"),
        fields("a field line without a colon", "Content-Length: 5\r\nX-A"),
        fields("an empty field name", "Content-Length: 5\r\n: b"),
        fields("a space within a field name", "Content-Length: 5\r\nX A: b"),
        fields("a NUL in a field value", "Content-Length: 5\r\nX-A: b\0c"),
        fields("a bare CR in a field value", "Content-Length: 5\r\nX-A: b\rSet-Cookie: evil=1"),
        fields("two lengths that differ", "Content-Length: 5\r\nContent-Length: 6"),
        fields("a list of two lengths", "Content-Length: 5, 6"),
        fields("a negative length", "Content-Length: -5"),
        fields("a length with a plus sign", "Content-Length: +5"),
        fields("a length that is not a number", "Content-Length: five"),
        fields("a length of 2^64 + 5", "Content-Length: 18446744073709551621"),
    ]
}

/// Returns the responses that are malformed after the head.
fn contents() -> Vec<MalformedResponse> {
    let content = |name, fields: &str, content: &str| MalformedResponse {
        name,
        bytes: format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}\r\n\r\n{content}").into_bytes(),
        in_head: false,
    };
    let chunked = |name, chunks| content(name, "Transfer-Encoding: chunked", chunks);
    vec![
        content("content shorter than its length", "Content-Length: 10", "hello"),
        content("no content where a length promises some", "Content-Length: 5", ""),
        chunked("no chunks at all", ""),
        chunked("a chunk size that is not a number", "five\r\nhello\r\n0\r\n\r\n"),
        chunked("a negative chunk size", "-5\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunked("no CRLF after a chunk's data", "5\r\nhello0\r\n\r\n"),
        chunked("a chunk longer than its size", "5\r\nhello world\r\n0\r\n\r\n"),
        chunked("a chunk cut off", "5\r\nhel"),
        chunked("chunks without a last one", "5\r\nhello\r\n"),
        chunked("a last chunk without its final CRLF", "5\r\nhello\r\n0\r\n"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Origin, any};
    use std::collections::HashSet;

    /// The client reads more strictly than any proxy: a response that it accepts as whole is not malformed.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "awaited below")]
    async fn a_strict_reader_accepts_no_row() {
        let mut names = HashSet::new();
        for row in responses() {
            assert!(names.insert(row.name), "twice: {}", row.name);
            let origin = Origin::start();
            origin.on(any("/")).reply(row.reply());
            let mut client = Client::connect(origin.addr()).await;
            let read = tokio::spawn(async move {
                client.send(crate::Req::get("/")).await;
                client.try_read_answer().await
            });
            let accepted = matches!(read.await, Ok(Some(answer)) if !answer.is_truncated());
            assert!(!accepted, "{}", row.name);
        }
    }
}
