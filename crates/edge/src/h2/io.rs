//! The byte stream as the protocol's library reads and writes it, while the connection keeps a hand on it.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::guard::Guard;
use crate::stream::Stream;

/// A stream in two hands: the library's, and the connection's, which flushes it when all that is ready has been written.
#[derive(Debug, Clone)]
pub(super) struct Io(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    stream: Stream,
    /// Read before it was known that HTTP/2 is spoken.
    begun: Vec<u8>,
    guard: Guard,
    /// Bytes written, for whoever wants to know whether the client still takes any.
    written: u64,
}

impl Io {
    pub(super) fn new(stream: Stream, begun: Vec<u8>) -> Self {
        Self(Rc::new(RefCell::new(Inner { stream, begun, guard: Guard::new(), written: 0 })))
    }

    /// Hands everything that was written to the kernel.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().stream.poll_flush(cx)
    }

    pub(super) fn written(&self) -> u64 {
        self.0.borrow().written
    }

    /// A request was answered to its end: its client is worth some patience.
    pub(super) fn answered(&self) {
        self.0.borrow_mut().guard.answered();
    }

    /// Time has passed.
    pub(super) fn tick(&self, seconds: u32) {
        self.0.borrow_mut().guard.tick(seconds);
    }

    /// Whether the connection ended because its client only kept us busy.
    pub(super) fn is_flooded(&self) -> bool {
        self.0.borrow().guard.is_flooded()
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.0.borrow_mut();
        let unfilled = buf.initialize_unfilled();
        let n = if inner.begun.is_empty() {
            std::task::ready!(inner.stream.poll_read(cx, unfilled))?
        } else {
            let n = inner.begun.len().min(unfilled.len());
            unfilled[..n].copy_from_slice(&inner.begun[..n]);
            inner.begun.drain(..n);
            n
        };
        if !inner.guard.passes(&unfilled[..n]) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "more control frames than any honest client sends")));
        }
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let inner = &mut *self.0.borrow_mut();
        let poll = inner.stream.poll_keep(cx, bufs);
        if let Poll::Ready(Ok(n)) = poll {
            inner.written = inner.written.wrapping_add(n as u64);
            inner.guard.sent(n);
        }
        poll
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The connection flushes when all its streams have had their turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().stream.poll_shutdown(cx)
    }
}
