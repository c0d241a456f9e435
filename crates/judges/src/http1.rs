//! As much of HTTP/1.1 as judges need: requests without content, and answers of bytes.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest head that is read.
const HEAD_MAX: usize = 64 << 10;

/// Reads one request after the other.
#[derive(Debug)]
pub(crate) struct Requests<S> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
}

impl<S: AsyncRead + Unpin> Requests<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Returns the next head, with its empty line; `None` when the client has ended.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            if self.buffer.len() > HEAD_MAX || !matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..)) {
                return None;
            }
        }
    }
}

/// Returns whether the client asked to close the connection.
pub(crate) fn closes(head: &[u8]) -> bool {
    let head = head.to_ascii_lowercase();
    head.windows(17).any(|part| part == b"connection: close") || head.windows(8).any(|part| part == b"http/1.0")
}

/// Makes an answer.
pub(crate) fn answer(status: u16, fields: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status} Said\r\nContent-Type: text/plain\r\n{fields}Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}
