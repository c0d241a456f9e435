//! A client that can send anything, well-formed or not, and reads answers strictly.
//!
//! Written by hand on a socket: an HTTP library would refuse to send what these tests are about.

mod answer;
mod request;
mod stream;

pub use answer::{Answer, Interim};
pub use request::Req;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, ToSocketAddrs, UnixStream};

use std::collections::VecDeque;
use std::fmt::Debug;
use std::path::Path;

use crate::patiently;
use crate::wire::{Fault, Rest, Wire};
use stream::Stream;

/// One connection to the server under test. Every wait for the server ends after [`PATIENCE`](crate::PATIENCE) with a panic.
#[derive(Debug)]
pub struct Client {
    wire: Wire<Stream>,
    host: String,
    /// The methods of requests that have not been answered: the answer to HEAD has no content whatever its fields say.
    unanswered: VecDeque<String>,
    /// The rest of the content whose head has been read.
    rest: Rest,
    cut_short: Option<String>,
}

impl Client {
    /// Connects by TCP. `Host` will be that address unless [`with_host`](Self::with_host) sets another.
    ///
    /// # Panics
    /// Panics if the connection is refused.
    pub async fn connect(addr: impl ToSocketAddrs + Debug) -> Self {
        let what = format!("to connect to {addr:?}");
        let stream = patiently(&what, TcpStream::connect(&addr)).await.unwrap_or_else(|error| panic!("connecting to {addr:?}: {error}"));
        stream.set_nodelay(true).expect("a connected socket takes options");
        let host = stream.peer_addr().expect("a connected socket has a peer").to_string();
        Self::over(Stream::Tcp(stream), host)
    }

    /// Connects to a Unix socket. `Host` will be `localhost`.
    ///
    /// # Panics
    /// Panics if the connection is refused.
    pub async fn connect_unix(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let stream = UnixStream::connect(path).await.unwrap_or_else(|error| panic!("connecting to {}: {error}", path.display()));
        Self::over(Stream::Unix(stream), "localhost".to_owned())
    }

    /// Returns whether a TCP connection to `addr` is refused now.
    pub async fn is_refused(addr: impl ToSocketAddrs + Debug) -> bool {
        patiently(&format!("to connect to {addr:?}, or to be refused"), TcpStream::connect(&addr)).await.is_err()
    }

    fn over(stream: Stream, host: String) -> Self {
        Self { wire: Wire::new(stream), host, unanswered: VecDeque::new(), rest: Rest::Nothing, cut_short: None }
    }

    /// Sends `host` as `Host` in all later requests.
    #[must_use]
    pub fn with_host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    /// Sends a GET and reads its answer.
    pub async fn get(&mut self, target: &str) -> Answer {
        self.request(Req::get(target)).await
    }

    /// Sends a HEAD and reads its answer.
    pub async fn head(&mut self, target: &str) -> Answer {
        self.request(Req::head(target)).await
    }

    /// Sends a request and reads its answer.
    ///
    /// # Panics
    /// Panics if the server closes instead, or answers with something malformed. Content that is cut short is not a panic: see
    /// [`Answer::truncated`].
    pub async fn request(&mut self, request: Req) -> Answer {
        self.send(request).await;
        self.read_answer().await
    }

    /// Sends a request without waiting for its answer: for pipelining, and for answers that are read in parts.
    pub async fn send(&mut self, request: Req) {
        let bytes = request.to_bytes(&self.host);
        self.unanswered.push_back(request.into_method());
        self.send_raw(bytes).await;
    }

    /// Sends exactly these bytes. A server that has closed meanwhile is not a failure: reading will show it.
    pub async fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        let what = format!("for the server to take {} bytes", bytes.as_ref().len());
        let _ = patiently(&what, self.wire.send(bytes.as_ref())).await;
    }

    /// Sends exactly these bytes, one per write.
    pub async fn send_byte_by_byte(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            self.send_raw([*byte]).await;
        }
    }

    /// Reads the answer to the oldest request that has none, content included. After [`send_raw`](Self::send_raw) it is read as the answer
    /// to a GET.
    ///
    /// # Panics
    /// Panics as [`request`](Self::request) does.
    pub async fn read_answer(&mut self) -> Answer {
        let answer = self.try_read_answer().await;
        answer.unwrap_or_else(|| panic!("the server closed the connection instead of answering"))
    }

    /// Reads an answer, or `None` if the server closes the connection before the first byte of one.
    ///
    /// # Panics
    /// Panics if the server answers with something malformed.
    pub async fn try_read_answer(&mut self) -> Option<Answer> {
        let mut answer = self.try_read_head().await?;
        let mut content = BytesMut::new();
        while let Some(piece) = self.read_body_chunk().await {
            content.extend_from_slice(&piece);
        }
        answer.content = content.freeze();
        answer.cut_short = self.cut_short.clone();
        Some(answer)
    }

    /// Reads an answer's head, interim responses included; its content is left for [`read_body_chunk`](Self::read_body_chunk).
    ///
    /// # Panics
    /// Panics as [`request`](Self::request) does.
    pub async fn read_head(&mut self) -> Answer {
        let answer = self.try_read_head().await;
        answer.unwrap_or_else(|| panic!("the server closed the connection instead of answering"))
    }

    async fn try_read_head(&mut self) -> Option<Answer> {
        assert_eq!(self.rest, Rest::Nothing, "the content of the last answer has not been read");
        let method = self.unanswered.pop_front().unwrap_or_else(|| "GET".to_owned());
        let mut interim = Vec::new();
        loop {
            let (line, fields) = match patiently(&format!("for the answer to a {method}"), self.wire.head()).await {
                Ok(Some(head)) => head,
                // A reset says as clearly as an orderly close that there will be no answer.
                Ok(None) | Err(Fault::Lost(_)) => {
                    assert!(interim.is_empty(), "the server closed after an interim response: {interim:?}");
                    return None;
                }
                Err(fault) => panic!("the answer to a {method}: {fault}"),
            };
            let answer = Answer::from_head(&line, fields).unwrap_or_else(|what| panic!("the answer to a {method}: {what}"));
            if matches!(answer.code, 100..=199) && answer.code != 101 {
                interim.push(Interim { code: answer.code, fields: answer.fields });
                continue;
            }
            self.cut_short = None;
            self.rest = answer.framing(&method).unwrap_or_else(|fault| panic!("the answer to a {method}: {fault}\n{answer}"));
            return Some(Answer { interim, ..answer });
        }
    }

    /// Reads the next piece of content, as it arrives and without its chunked coding; `None` when it is complete or cut short
    /// ([`is_cut_short`](Self::is_cut_short)).
    ///
    /// # Panics
    /// Panics if its chunked coding is malformed.
    pub async fn read_body_chunk(&mut self) -> Option<Bytes> {
        let what = format!("for the next piece of content ({:?})", self.rest);
        match patiently(&what, self.wire.piece(&mut self.rest)).await {
            Ok(piece) => piece,
            Err(fault @ Fault::Malformed(_)) => panic!("the answer's content: {fault}"),
            Err(fault @ (Fault::BrokenOff | Fault::Lost(_))) => {
                self.rest = Rest::Nothing;
                self.cut_short = Some(fault.to_string());
                None
            }
        }
    }

    /// Reads content until at least `n` bytes of it have come.
    ///
    /// # Panics
    /// Panics if it ends before that.
    pub async fn read_body_bytes(&mut self, n: usize) -> Bytes {
        let mut content = BytesMut::new();
        while content.len() < n {
            let piece = self.read_body_chunk().await;
            let piece = piece.unwrap_or_else(|| panic!("content ended after {} bytes, not {n}: {content:?}", content.len()));
            content.extend_from_slice(&piece);
        }
        content.freeze()
    }

    /// Returns whether the connection ended before the content that was read last.
    #[must_use]
    pub const fn is_cut_short(&self) -> bool {
        self.cut_short.is_some()
    }

    /// Reads exactly `n` bytes, whatever they are: for what follows a 101.
    ///
    /// # Panics
    /// Panics if the connection ends before.
    pub async fn read_raw(&mut self, n: usize) -> Bytes {
        let what = format!("for {n} bytes");
        patiently(&what, self.wire.exactly(n)).await.unwrap_or_else(|fault| panic!("reading {n} bytes: {fault}"))
    }

    /// Reads everything until the server closes, unparsed.
    pub async fn read_to_close(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Ok(Some(bytes)) = patiently("for the server to close the connection", self.wire.some()).await {
            all.extend_from_slice(&bytes);
        }
        all
    }

    /// Waits until the server has closed the connection. Returns whether it did so without sending anything more.
    ///
    /// # Panics
    /// Panics if it stays open for [`PATIENCE`](crate::PATIENCE).
    pub async fn is_closed(&mut self) -> bool {
        self.read_to_close().await.is_empty()
    }

    /// Closes the sending side (FIN) and goes on reading.
    pub async fn half_close(&mut self) {
        // The server may have closed before us.
        let _ = self.wire.stream.shutdown().await;
    }

    /// Closes the connection with a reset (RST).
    ///
    /// # Panics
    /// Panics on a Unix socket, which cannot be reset.
    pub fn reset(self) {
        match self.wire.stream {
            Stream::Tcp(stream) => stream.set_zero_linger().expect("a connected socket takes options"),
            Stream::Unix(_) => panic!("a Unix socket cannot be reset"),
        }
    }
}
