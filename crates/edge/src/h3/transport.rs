//! What the transport's types lack to be a [`wire::h3`] stream.

use std::{
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use quinn::VarInt;
use wire::h3::{Code, Fault, Source};

/// Returns `code` as the transport sends it.
pub(super) const fn varint(code: Code) -> VarInt {
    VarInt::from_u32(code as u32)
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct Receiving(quinn::RecvStream);

impl Receiving {
    pub(super) const fn new(stream: quinn::RecvStream) -> Self {
        Self(stream)
    }

    /// Tells the client that nobody reads on. A stream that is over needs no such word.
    pub(super) fn stop(&mut self, code: Code) {
        let _ = self.0.stop(varint(code));
    }
}

impl Source for Receiving {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        // The future holds nothing but the stream, so it may be made anew each time. What is read leaves the window at once.
        let chunk = ready!(pin!(self.0.read_chunk(usize::MAX, true)).poll(cx));
        Poll::Ready(chunk.map(|chunk| chunk.map(|chunk| chunk.bytes)).map_err(|_| Fault::Gone))
    }
}
