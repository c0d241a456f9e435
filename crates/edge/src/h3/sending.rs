//! The sending half of a request's stream: frames on their way, as the client takes them.

use std::{
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use wire::{
    h3::{Code, Fault, frame},
    qpack,
};

use super::transport::varint;

/// The fields that belong to HTTP/1 alone (RFC 9114 §4.2).
const OF_THE_CONNECTION: [&[u8]; 5] = [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// A stream that is answered on. If it is given up without an end, it is reset: a client must not take what it has for the whole.
#[derive(Debug)]
pub(super) struct Sending {
    stream: quinn::SendStream,
    /// The bytes that the transport has not taken yet: at most a head and a piece of content.
    queue: [Bytes; 2],
    /// The number of bytes that it has taken.
    taken: u64,
    /// The number of bytes that were put here and are no content.
    framing: u64,
    is_over: bool,
}

impl Sending {
    pub(super) fn new(stream: quinn::SendStream) -> Self {
        Self { stream, queue: [Bytes::new(), Bytes::new()], taken: 0, framing: 0, is_over: false }
    }

    /// Returns how many bytes of content the transport has taken. This is exact when everything has left.
    pub(super) const fn content_taken(&self) -> u64 {
        self.taken.saturating_sub(self.framing)
    }

    /// Puts frames, and content behind them, in line. Everything before has left, or is short.
    pub(super) fn put(&mut self, framing: Vec<u8>, content: Bytes) {
        self.framing += framing.len() as u64;
        if self.queue.iter().all(Bytes::is_empty) {
            self.queue = [framing.into(), content];
            return;
        }
        let [first, second] = std::mem::take(&mut self.queue);
        self.queue = [[&first[..], &second, &framing].concat().into(), content];
    }

    /// Puts a head in line.
    pub(super) fn put_head(&mut self, status: StatusCode, fields: &HeaderMap) {
        let mut section = Vec::with_capacity(64 + fields.len() * 48);
        begin_headers(&mut section);
        qpack::begin(&mut section);
        qpack::status(status.as_u16(), &mut section);
        for (name, value) in fields {
            if !OF_THE_CONNECTION.contains(&name.as_str().as_bytes()) {
                qpack::field(name.as_str().as_bytes(), value.as_bytes(), &mut section);
            }
        }
        end_headers(&mut section);
        self.put(section, Bytes::new());
    }

    /// Puts content in line.
    pub(super) fn put_content(&mut self, content: Bytes) {
        let mut head = Vec::with_capacity(10);
        frame::write_head(frame::DATA, content.len(), &mut head);
        self.put(head, content);
    }

    /// Hands on to the transport as much as it takes: it holds so much of each connection, and no more, until the client has it.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        loop {
            let Some(first) = self.queue.iter().position(|bytes| !bytes.is_empty()) else { return Poll::Ready(Ok(())) };
            match ready!(pin!(self.stream.write_chunks(&mut self.queue[first..])).poll(cx)) {
                Ok(written) => self.taken += written.bytes as u64,
                Err(_) => {
                    // The client wants no more of it, or is gone.
                    self.is_over = true;
                    return Poll::Ready(Err(Fault::Gone));
                }
            }
        }
    }

    /// Hands on everything to the transport. A client that takes nothing for as long as `patience` is given up.
    pub(super) async fn flush(&mut self, patience: Duration) -> Result<(), Fault> {
        let mut waiting = None;
        std::future::poll_fn(|cx| {
            let before = self.taken;
            let flushed = self.poll_flush(cx);
            if flushed.is_ready() {
                return flushed;
            }
            if self.taken != before {
                waiting = None;
            }
            let waiting = waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
            waiting.as_mut().poll(cx).map(|()| {
                self.reset(Code::RequestCancelled);
                Err(Fault::Gone)
            })
        })
        .await
    }

    /// Ends the stream. `true` means that the client can have all of it.
    pub(super) fn finish(&mut self) -> bool {
        self.is_over = true;
        self.stream.finish().is_ok()
    }

    pub(super) fn reset(&mut self, code: Code) {
        self.is_over = true;
        let _ = self.stream.reset(varint(code));
    }

    /// Resolves when the client has all of it, or wants none of it.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let stopped = self.stream.stopped();
        async move { drop(stopped.await) }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_over {
            self.reset(Code::InternalError);
        }
    }
}

/// The length of a HEADERS frame's head, in which four bytes are left for the payload's length.
const HEADERS_HEAD: usize = 5;

fn begin_headers(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x1, 0x80, 0, 0, 0]);
}

/// Writes the length of a head, which those who make it bound, far below 2^30 bytes.
fn end_headers(out: &mut [u8]) {
    let length = u32::try_from(out.len() - HEADERS_HEAD).unwrap_or(u32::MAX >> 2);
    out[1..HEADERS_HEAD].copy_from_slice(&(length | 0x8000_0000).to_be_bytes());
}

/// Makes the frame of a stored response's head, which is kept as HTTP/1 writes it, and the head of its content's frame.
pub(super) fn stored_head(status: u16, text: &[u8], content_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 32);
    begin_headers(&mut out);
    qpack::begin(&mut out);
    qpack::status(status, &mut out);
    let mut short = [0_u8; 48];
    // The status line is said otherwise here.
    let mut rest = memchr::memchr(b'\n', text).map_or(&[][..], |end| &text[end + 1..]);
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let value = line[colon + 1..].trim_ascii();
        let long;
        let name = match short.get_mut(..colon) {
            Some(name) => {
                name.copy_from_slice(&line[..colon]);
                name.make_ascii_lowercase();
                &*name
            }
            None => {
                long = line[..colon].to_ascii_lowercase();
                &long
            }
        };
        if !OF_THE_CONNECTION.contains(&name) {
            qpack::field(name, value, &mut out);
        }
    }
    end_headers(&mut out);
    if content_bytes > 0 {
        frame::write_head(frame::DATA, content_bytes, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_head_becomes_fields_without_those_of_the_connection() {
        let name = "X-A-Name-That-Is-Longer-Than-Any-Name-Has-Ever-Been-In-Practice";
        let text = format!("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nSet-Cookie: a=1\r\nConnection: close\r\nAge: 3\r\n{name}: 1\r\n");
        let bytes = stored_head(200, text.as_bytes(), 300);
        let (kind, at) = frame::integer(&bytes).expect("a type");
        let (length, width) = frame::integer(&bytes[at..]).expect("a length");
        let section = &bytes[at + width..at + width + usize::try_from(length).expect("short")];
        let mut fields = Vec::new();
        qpack::decode(section, |name, value, _| fields.push((name.to_vec(), value.to_vec()))).expect("a section");
        let name = name.to_ascii_lowercase();
        let expected = [(":status", "200"), ("content-type", "text/css"), ("set-cookie", "a=1"), ("age", "3"), (name.as_str(), "1")];
        assert_eq!(kind, frame::HEADERS);
        assert_eq!(fields, expected.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())));
        assert_eq!(bytes[at + width + section.len()..], [0x0, 0x41, 0x2c]);
    }
}
