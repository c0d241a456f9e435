//! A scripted FastCGI server, byte by byte as the FastCGI specification (version 1.0, 1996) has it: it hears records and says records.

use std::{collections::BTreeMap, path::PathBuf, task::Poll};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};

use crate::patiently;

const BEGIN_REQUEST: u8 = 1;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const END_REQUEST: u8 = 3;
const GET_VALUES: u8 = 9;
const GET_VALUES_RESULT: u8 = 10;

/// A FastCGI server on a Unix socket in a folder of its own. It accepts when it is told to.
#[derive(Debug)]
pub struct FastCgiServer {
    listener: UnixListener,
    folder: TempDir,
}

/// A request as a FastCGI server hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastCgiRequest {
    /// The parameters.
    pub params: BTreeMap<String, String>,
    /// The content.
    pub stdin: Vec<u8>,
    /// Whether the connection is to stay open behind it.
    pub keep: bool,
    /// The bytes of each record of parameters.
    pub params_records: Vec<usize>,
}

impl FastCgiRequest {
    /// Returns a parameter; empty if it is not there.
    #[must_use]
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }
}

/// The server's end of a connection.
#[derive(Debug)]
pub struct FastCgiPeer(UnixStream);

impl FastCgiServer {
    /// Starts a server on a socket in a folder of its own.
    ///
    /// # Panics
    /// Panics if there is no place for the socket.
    #[must_use]
    pub fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("fpm.sock")).expect("a socket");
        Self { listener, folder }
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("fpm.sock")
    }

    /// Waits for a connection.
    ///
    /// # Panics
    /// Panics if none comes.
    pub async fn accept(&self) -> FastCgiPeer {
        FastCgiPeer(patiently("a connection", self.listener.accept()).await.expect("a connection").0)
    }

    /// Returns whether nobody waits to be accepted.
    pub async fn is_idle(&self) -> bool {
        tokio::task::yield_now().await;
        std::future::poll_fn(|cx| Poll::Ready(self.listener.poll_accept(cx).is_pending())).await
    }
}

impl FastCgiPeer {
    /// Waits for a record: its type, its request and its content.
    async fn record(&mut self) -> Option<(u8, u16, Vec<u8>)> {
        let mut header = [0; 8];
        self.0.read_exact(&mut header).await.ok()?;
        let [version, kind, id_high, id_low, length_high, length_low, padding, _] = header;
        assert_eq!(version, 1, "the version of a record");
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        let mut content = vec![0; length + usize::from(padding)];
        self.0.read_exact(&mut content).await.ok()?;
        content.truncate(length);
        Some((kind, u16::from_be_bytes([id_high, id_low]), content))
    }

    /// Waits for a whole request, and answers questions before it.
    ///
    /// # Panics
    /// Panics if what comes is not a request, or begins a pair in one record and ends it in the next, as php-fpm does not take that.
    pub async fn request(&mut self) -> FastCgiRequest {
        patiently("a request", async {
            let mut request = self.parameters().await;
            loop {
                let (kind, id, content) = self.record().await.expect("content");
                assert_eq!((kind, id), (STDIN, 1));
                if content.is_empty() {
                    return request;
                }
                request.stdin.extend(content);
            }
        })
        .await
    }

    /// Waits for a request up to its content, and answers questions before it.
    ///
    /// # Panics
    /// Panics as [`FastCgiPeer::request`] does.
    pub async fn parameters(&mut self) -> FastCgiRequest {
        let mut begin = self.record().await.expect("a request");
        while begin.0 == GET_VALUES {
            self.say(GET_VALUES_RESULT, 0, b"").await;
            begin = self.record().await.expect("a request");
        }
        let (kind, id, content) = begin;
        assert_eq!((kind, id, content.len()), (BEGIN_REQUEST, 1, 8), "the beginning of a request");
        assert_eq!(content[..2], [0, 1], "the role of a responder");
        let mut request =
            FastCgiRequest { params: BTreeMap::new(), stdin: Vec::new(), keep: content[2] & 1 == 1, params_records: Vec::new() };
        loop {
            let (kind, id, content) = self.record().await.expect("parameters");
            assert_eq!((kind, id), (PARAMS, 1));
            if content.is_empty() {
                return request;
            }
            request.params_records.push(content.len());
            let mut rest = &content[..];
            while !rest.is_empty() {
                let (name_bytes, value_bytes) = (length(&mut rest), length(&mut rest));
                let (name, tail) = rest.split_at(name_bytes);
                let (value, tail) = tail.split_at(value_bytes);
                rest = tail;
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(request.params.insert(text(name), text(value)), None, "{} twice", text(name));
            }
        }
    }

    /// Waits for the question whether this end is free, and leaves it without an answer.
    ///
    /// # Panics
    /// Panics if something else comes.
    pub async fn question(&mut self) {
        let (kind, id, _) = patiently("a question", self.record()).await.expect("a question");
        assert_eq!((kind, id), (GET_VALUES, 0));
    }

    /// Answers a question that was heard.
    pub async fn free(&mut self) {
        self.say(GET_VALUES_RESULT, 0, b"").await;
    }

    /// Says a piece of the response.
    pub async fn stdout(&mut self, bytes: impl AsRef<[u8]>) {
        for piece in bytes.as_ref().chunks(65_535) {
            self.say(STDOUT, 1, piece).await;
        }
    }

    /// Says a piece of a message.
    pub async fn stderr(&mut self, bytes: impl AsRef<[u8]>) {
        for piece in bytes.as_ref().chunks(65_535) {
            self.say(STDERR, 1, piece).await;
        }
    }

    /// Ends the request with an exit status and a protocol status (FastCGI specification, 5.5).
    pub async fn end_with(&mut self, exit: u32, protocol: u8) {
        let [a, b, c, d] = exit.to_be_bytes();
        self.say(END_REQUEST, 1, &[a, b, c, d, protocol, 0, 0, 0]).await;
    }

    /// Ends the request well.
    pub async fn end(&mut self) {
        self.end_with(0, 0).await;
    }

    /// Says a whole response at once: whoever has read enough of it may close the connection, and nothing is left to be said then.
    pub async fn answer(&mut self, bytes: impl AsRef<[u8]>) {
        let pieces = bytes.as_ref().chunks(65_535).flat_map(|piece| record(STDOUT, 1, piece));
        self.raw(pieces.chain(record(END_REQUEST, 1, &[0; 8])).collect::<Vec<_>>()).await;
    }

    /// Says bytes as they are.
    ///
    /// # Panics
    /// Panics if the connection is closed.
    pub async fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        patiently("room for what is said", self.0.write_all(bytes.as_ref())).await.expect("said");
    }

    async fn say(&mut self, kind: u8, id: u16, content: &[u8]) {
        self.raw(record(kind, id, content)).await;
    }

    /// Waits for what comes next, and returns whether that is the end of the connection.
    pub async fn is_at_end(&mut self) -> bool {
        matches!(patiently("the end of a connection", self.0.read(&mut [0])).await, Ok(0) | Err(_))
    }

    /// Waits until the other end closes the connection; what comes before does not matter.
    pub async fn closed(mut self) {
        let mut rest = Vec::new();
        let _ = patiently("the end of a connection", self.0.read_to_end(&mut rest)).await;
    }
}

/// Makes a record (FastCGI specification, 3.3).
fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    // Padding that is not zero, as the specification allows.
    const PADDING: &[u8] = b"pad";
    let [id_high, id_low] = id.to_be_bytes();
    let [length_high, length_low] = u16::try_from(content.len()).expect("a record's content").to_be_bytes();
    let header = [1, kind, id_high, id_low, length_high, length_low, 3, 0];
    [&header, content, PADDING].concat()
}

/// Takes a length off a pair (FastCGI specification, 3.4).
fn length(rest: &mut &[u8]) -> usize {
    let first = rest[0];
    if first < 128 {
        *rest = &rest[1..];
        return usize::from(first);
    }
    let (bytes, tail) = rest.split_at(4);
    *rest = tail;
    usize::from(bytes[0] & 0x7f) << 24 | usize::from(bytes[1]) << 16 | usize::from(bytes[2]) << 8 | usize::from(bytes[3])
}
