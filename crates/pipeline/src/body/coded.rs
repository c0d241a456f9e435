//! Content that is coded on its way to one client.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes};
use codings::Stream;
use http_body::{Body as HttpBody, Frame};
use semantics::coding::Coding;
use tokio::time::{Sleep, sleep};

use crate::{Body, body::BodyError};

/// The time for which content may wait for more, so that both are coded together: longer than the parts of one answer are apart, and too
/// short to be noticed where an origin shows what it has so far.
const FLUSH_AFTER: Duration = Duration::from_millis(10);
/// Bytes that are coded at once, and bytes that may go in before something comes out or another connection has its turn.
const PIECE: usize = 16 << 10;
const TURN: usize = 128 << 10;

/// Content that is coded on its way, piece by piece, and flushed when no more has come for a moment.
#[derive(Debug)]
pub struct CodedBody {
    inner: Body,
    /// The content that came and is not coded yet.
    waiting: Bytes,
    /// `None`: it has come to its end.
    stream: Option<Stream>,
    /// The moment when the content is flushed that has been pushed since something came out.
    flush: Option<Pin<Box<Sleep>>>,
    unflushed: bool,
}

impl CodedBody {
    /// Codes `inner` in `coding`. Returns `inner` itself if there is no coder to be had.
    pub(crate) fn new(coding: Coding, inner: Body) -> Result<Self, (io::Error, Body)> {
        match Stream::new(coding) {
            Ok(stream) => Ok(Self { inner, waiting: Bytes::new(), stream: Some(stream), flush: None, unflushed: false }),
            Err(error) => Err((error, inner)),
        }
    }

    /// Returns whether all of the content has been read.
    pub(crate) const fn is_over(&self) -> bool {
        self.stream.is_none()
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut turn = 0;
        loop {
            let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
            if !self.waiting.is_empty() {
                let piece = self.waiting.len().min(PIECE);
                if let Err(error) = stream.push(&self.waiting[..piece]) {
                    return Poll::Ready(Some(Err(error.into())));
                }
                self.waiting.advance(piece);
                self.unflushed = true;
                turn += piece;
                let coded = stream.take();
                if !coded.is_empty() {
                    return ready(coded);
                }
                if turn >= TURN {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                continue;
            }
            match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are not sent on: HTTP/1.1 would need them announced.
                    self.waiting = frame.into_data().unwrap_or_default();
                    self.flush = None;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    return match self.stream.take().map(Stream::finish) {
                        Some(Ok(rest)) if !rest.is_empty() => ready(rest),
                        Some(Err(error)) => Poll::Ready(Some(Err(error.into()))),
                        Some(Ok(_)) | None => Poll::Ready(None),
                    };
                }
                Poll::Pending if !self.unflushed => return Poll::Pending,
                Poll::Pending => {
                    let wait = self.flush.get_or_insert_with(|| Box::pin(sleep(FLUSH_AFTER)));
                    if wait.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    (self.flush, self.unflushed) = (None, false);
                    if let Err(error) = stream.flush() {
                        return Poll::Ready(Some(Err(error.into())));
                    }
                    let coded = stream.take();
                    return if coded.is_empty() { Poll::Pending } else { ready(coded) };
                }
            }
        }
    }
}

fn ready(coded: Vec<u8>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
    Poll::Ready(Some(Ok(Frame::data(Bytes::from(coded)))))
}
