//! Streams without a connection: what their bytes are taken for.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::Bytes;

use super::{
    code::{Code, Fault},
    control,
    message::{Message, Source},
    purse::Purse,
    qpack, request,
};
use crate::{head::Text, limits::Limits};

/// What a stream, or as much of it as there is, is taken for. Codes are those of RFC 9114 §8.1 and RFC 9204 §6.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InspectedStream {
    /// The head of the request that is let through, as HTTP/1 writes it.
    pub text: Option<Vec<u8>>,
    /// The status with which we answer ourselves.
    pub refused: Option<u16>,
    /// Its content, as far as it was read.
    pub content: Vec<u8>,
    /// With this code the stream is reset, and nothing else.
    pub reset: Option<u32>,
    /// With this code the connection is closed.
    pub closed: Option<u32>,
}

/// A stream that comes in pieces of `cut` bytes, and then ends or not.
struct Pieces<'a> {
    rest: &'a [u8],
    cut: usize,
    ends: bool,
}

impl Source for Pieces<'_> {
    fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let (piece, rest) = self.rest.split_at(self.cut.min(self.rest.len()));
        self.rest = rest;
        match piece.is_empty() {
            true if self.ends => Poll::Ready(Ok(None)),
            true => Poll::Pending,
            false => Poll::Ready(Ok(Some(Bytes::copy_from_slice(piece)))),
        }
    }
}

impl InspectedStream {
    /// Reads a request's stream that has come in pieces of `cut` bytes; `ends`: and has ended.
    #[must_use]
    pub fn request(bytes: &[u8], cut: usize, ends: bool, limits: &Limits) -> Self {
        let mut this = Self::default();
        if let Err(fault) = this.read(bytes, cut, ends, limits) {
            this.fail(fault);
        }
        this
    }

    fn read(&mut self, bytes: &[u8], cut: usize, ends: bool, limits: &Limits) -> Result<(), Fault> {
        let source = Pieces { rest: bytes, cut: cut.max(1), ends };
        let mut message = Message::new(source, Arc::new(Purse::new(Instant::now())), limits.header_bytes);
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(section) = message.poll_head(cx)? else { return Ok(()) };
        let Some(section) = section else {
            self.refused = Some(431);
            return Ok(());
        };
        let mut text = Text::default();
        if let Some(reject) = request::spell(&section, &mut text, limits)? {
            self.refused = Some(reject.status);
            return Ok(());
        }
        self.text = Some(text.bytes().to_vec());
        while let Poll::Ready(Some(data)) = message.poll_data(cx)? {
            self.content.extend_from_slice(&data);
        }
        Ok(())
    }

    /// Reads a client's stream in one direction.
    #[must_use]
    pub fn unidirectional(bytes: &[u8], cut: usize, ends: bool) -> Self {
        let mut this = Self::default();
        let purse = Arc::new(Purse::new(Instant::now()));
        let opened = control::Opened::default();
        let mut listening = pin!(control::listen(Pieces { rest: bytes, cut: cut.max(1), ends }, &opened, purse));
        if let Poll::Ready((_, Err(fault))) = listening.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            this.fail(fault);
        }
        this
    }

    const fn fail(&mut self, fault: Fault) {
        match fault {
            // There is nobody who could go.
            Fault::Gone => self.reset = Some(Code::RequestCancelled as u32),
            Fault::Stream(code) => self.reset = Some(code as u32),
            Fault::Connection(code) => self.closed = Some(code as u32),
        }
    }
}

/// The fields of a section, names and values. `None`: the connection would be closed.
#[must_use]
pub fn inspect_section(section: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut fields = Vec::new();
    let read = qpack::decode(section, |name, value, _| fields.push((name.to_vec(), value.to_vec())));
    read.is_ok().then_some(fields)
}

/// The section of a response; names in lower case.
#[must_use]
pub fn write_section<'a>(status: u16, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut section = Vec::new();
    qpack::begin(&mut section);
    qpack::status(status, &mut section);
    for (name, value) in fields {
        qpack::field(name, value, &mut section);
    }
    section
}
