//! Reading HTTP/1.1 from a stream, for the origin and the client alike: heads, and content in every framing (RFC 9112 §6.3, §7.1).
//!
//! Strict throughout, because a proxy has no excuse: bare CR or LF, a chunk size with a sign or a repeated framing field is a fault here,
//! even where a recipient may repair it. Written apart from the parsers under test, so that both cannot be wrong in the same way.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use std::{fmt, io};

use crate::fields::{Fields, is_token};

/// The longest head accepted. It is far above any limit under test, so that a test of a limit never fails on this one.
const HEAD_BYTES_MAX: usize = 4 << 20;

/// The longest trailer section accepted; no test sends a long one that is meant to pass.
const TRAILER_BYTES_MAX: usize = 64 << 10;

/// A stream and the bytes that have been read ahead (bounded by [`HEAD_BYTES_MAX`] plus one read).
#[derive(Debug)]
pub(crate) struct Wire<S> {
    pub(crate) stream: S,
    held: BytesMut,
    ended: bool,
}

/// The part of a message's content that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing; the message is complete.
    Nothing,
    /// This many bytes.
    Length(u64),
    /// This many bytes of the current chunk, then its CRLF, then more chunks.
    Chunk(u64),
    /// A chunk size line.
    ChunkSize,
    /// Everything until the peer closes.
    ToClose,
}

/// The reason why a message could not be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The peer sent something else than HTTP/1.1.
    Malformed(String),
    /// The peer closed in the middle of a message.
    BrokenOff,
    /// The connection failed.
    Lost(io::Error),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, held: BytesMut::new(), ended: false }
    }

    /// Sends `bytes`, all of them.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Reads some more bytes; returns `false` at the end of the stream. Cancel-safe: bytes read are kept.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        if !self.ended {
            self.held.reserve(16 << 10);
            self.ended = self.stream.read_buf(&mut self.held).await? == 0;
        }
        Ok(!self.ended)
    }

    /// Returns the bytes that have been read ahead, or else what the peer sends next; `None` at the end of the stream.
    pub(crate) async fn some(&mut self) -> io::Result<Option<Bytes>> {
        if self.held.is_empty() && !self.fill().await? {
            return Ok(None);
        }
        Ok(Some(self.held.split().freeze()))
    }

    /// Reads exactly `n` bytes.
    pub(crate) async fn exactly(&mut self, n: usize) -> Result<Bytes, Fault> {
        while self.held.len() < n {
            if !self.fill().await? {
                return Err(Fault::BrokenOff);
            }
        }
        Ok(self.held.split_to(n).freeze())
    }

    /// Waits until the peer has closed its side, or the connection is lost. Cancel-safe. Bytes that arrive meanwhile are kept, up to
    /// [`HEAD_BYTES_MAX`]; beyond that they are thrown away.
    pub(crate) async fn peer_closed(&mut self) {
        while matches!(self.fill().await, Ok(true)) {
            if self.held.len() > HEAD_BYTES_MAX {
                self.held.clear();
            }
        }
    }

    /// Reads the next line, and returns it without its CRLF.
    async fn line(&mut self) -> Result<Bytes, Fault> {
        let mut searched = 0;
        let end = loop {
            match self.held[searched..].iter().position(|&byte| byte == b'\n') {
                Some(found) => break searched + found,
                None if self.held.len() > HEAD_BYTES_MAX => return Err(malformed("a line without end")),
                None => searched = self.held.len(),
            }
            if !self.fill().await? {
                return Err(Fault::BrokenOff);
            }
        };
        let mut line = self.held.split_to(end + 1).freeze();
        line.truncate(end);
        match line.split_last() {
            Some((b'\r', _)) => line.truncate(end - 1),
            _ => return Err(malformed("a line that ends in a bare LF")),
        }
        if line.contains(&b'\r') { Err(malformed("a bare CR")) } else { Ok(line) }
    }

    /// Reads the next start line and its field lines; returns `None` if the peer closed instead, before the first byte.
    pub(crate) async fn head(&mut self) -> Result<Option<(Bytes, Fields)>, Fault> {
        if self.held.is_empty() && !self.fill().await? {
            return Ok(None);
        }
        let start = self.line().await?;
        let mut fields = Fields::default();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(Some((start, fields)));
            }
            fields.push_line(&line).map_err(Fault::Malformed)?;
        }
    }

    /// Reads the next piece of content as it arrives; returns `None` when the content is complete. Trailer fields are read and dropped.
    pub(crate) async fn piece(&mut self, rest: &mut Rest) -> Result<Option<Bytes>, Fault> {
        loop {
            match *rest {
                Rest::Nothing | Rest::Length(0) => {
                    *rest = Rest::Nothing;
                    return Ok(None);
                }
                Rest::Length(left) => {
                    let piece = self.at_most(left).await?;
                    *rest = Rest::Length(left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                Rest::Chunk(0) => {
                    if !self.line().await?.is_empty() {
                        return Err(malformed("a chunk longer than its size"));
                    }
                    *rest = Rest::ChunkSize;
                }
                Rest::Chunk(left) => {
                    let piece = self.at_most(left).await?;
                    *rest = Rest::Chunk(left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                Rest::ChunkSize => match chunk_size(&self.line().await?)? {
                    0 => {
                        self.trailers().await?;
                        *rest = Rest::Nothing;
                    }
                    size => *rest = Rest::Chunk(size),
                },
                Rest::ToClose => {
                    let piece = self.some().await?;
                    if piece.is_none() {
                        *rest = Rest::Nothing;
                    }
                    return Ok(piece);
                }
            }
        }
    }

    /// Reads all content that is still to come.
    pub(crate) async fn content(&mut self, mut rest: Rest) -> Result<Bytes, Fault> {
        let mut content = BytesMut::new();
        while let Some(piece) = self.piece(&mut rest).await? {
            content.extend_from_slice(&piece);
        }
        Ok(content.freeze())
    }

    async fn at_most(&mut self, left: u64) -> Result<Bytes, Fault> {
        if self.held.is_empty() && !self.fill().await? {
            return Err(Fault::BrokenOff);
        }
        let n = usize::try_from(left).map_or(self.held.len(), |left| left.min(self.held.len()));
        Ok(self.held.split_to(n).freeze())
    }

    async fn trailers(&mut self) -> Result<(), Fault> {
        let (mut fields, mut bytes) = (Fields::default(), 0);
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(());
            }
            bytes += line.len();
            if bytes > TRAILER_BYTES_MAX {
                return Err(malformed("trailer fields longer than any that are meant well"));
            }
            fields.push_line(&line).map_err(Fault::Malformed)?;
        }
    }
}

/// Returns where a message's content ends if its fields say so (RFC 9112 §6.3); `None` if they say nothing.
pub(crate) fn framing(fields: &Fields) -> Result<Option<Rest>, Fault> {
    let coding: Vec<&str> = fields.all("transfer-encoding").collect();
    let length: Vec<&str> = fields.all("content-length").collect();
    match (&coding[..], &length[..]) {
        ([], []) => Ok(None),
        ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Ok(Some(Rest::ChunkSize)),
        ([], [length]) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map(|length| Some(Rest::Length(length))).map_err(|_| malformed("a content-length beyond 64 bits"))
        }
        _ => Err(malformed(format!("framing by transfer-encoding {coding:?} and content-length {length:?}"))),
    }
}

/// Reads a chunk size (RFC 9112 §7.1): one or more hexadecimal digits, then nothing or an extension.
fn chunk_size(line: &[u8]) -> Result<u64, Fault> {
    let bad = || malformed(format!("chunk size line {:?}", String::from_utf8_lossy(line)));
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extension) = line.split_at(digits);
    let extension_fits = match extension {
        [] => true,
        [b';', first, ..] => is_token(*first) && extension.len() <= 256 && extension.iter().all(|&byte| byte >= b' ' && byte != 0x7f),
        _ => false,
    };
    let size = str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
    size.filter(|_| extension_fits).ok_or_else(bad)
}

pub(crate) fn malformed(what: impl Into<String>) -> Fault {
    Fault::Malformed(what.into())
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "malformed: {what}"),
            Self::BrokenOff => write!(f, "the connection was closed in the middle of a message"),
            Self::Lost(error) => write!(f, "the connection was lost: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the wire of a peer that sends everything at once and then closes.
    fn sent(bytes: &[u8]) -> Wire<impl AsyncRead + AsyncWrite + Unpin> {
        Wire::new(tokio::io::join(bytes, tokio::io::sink()))
    }

    #[tokio::test]
    async fn reads_chunked_content_with_extensions_and_trailers() {
        let mut wire = sent(b"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nx: y\r\n\r\nnext");
        assert_eq!(wire.content(Rest::ChunkSize).await.expect("valid"), "hello world");
        assert_eq!(wire.exactly(4).await.expect("read no further"), "next");
    }

    #[tokio::test]
    async fn refuses_chunked_content_that_two_recipients_could_read_differently() {
        for case in [
            "\r\n",
            "-1\r\nx\r\n",
            "+1\r\nx\r\n",
            "0x1\r\nx\r\n",
            "1 \r\nx\r\n",
            " 1\r\nx\r\n",
            "1\nx\r\n",
            "1\r\nx\n0\r\n\r\n",
            "1\r\nxy\r\n0\r\n\r\n",
            "10000000000000000\r\n",
            "1;\r\nx\r\n",
            "1;a\nx\r\n",
            "0\r\nno trailer\r\n\r\n",
        ] {
            assert!(matches!(sent(case.as_bytes()).content(Rest::ChunkSize).await, Err(Fault::Malformed(_))), "{case:?}");
        }
        for case in ["", "5", "5\r\nhel", "5\r\nhello\r\n", "0\r\n"] {
            assert!(matches!(sent(case.as_bytes()).content(Rest::ChunkSize).await, Err(Fault::BrokenOff)), "{case:?}");
        }
    }

    #[test]
    fn framing_is_one_content_length_or_chunked_and_nothing_else() {
        let fields = |lines: &[&str]| {
            let mut fields = Fields::default();
            lines.iter().try_for_each(|line| fields.push_line(line.as_bytes())).expect("valid lines");
            framing(&fields)
        };
        assert_eq!(fields(&[]).expect("none"), None);
        assert_eq!(fields(&["content-length: 012"]).expect("length"), Some(Rest::Length(12)));
        assert_eq!(fields(&["Transfer-Encoding: Chunked"]).expect("chunked"), Some(Rest::ChunkSize));
        for lines in [
            &["content-length: 5", "transfer-encoding: chunked"][..],
            &["content-length: 5", "content-length: 5"],
            &["content-length: 5, 5"],
            &["content-length: +5"],
            &["content-length:"],
            &["content-length: 18446744073709551616"],
            &["transfer-encoding: chunked", "transfer-encoding: chunked"],
            &["transfer-encoding: gzip, chunked"],
        ] {
            assert!(fields(lines).is_err(), "{lines:?}");
        }
    }
}
