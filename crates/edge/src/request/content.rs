//! The content of a request, as the service reads it: within its limits, whichever protocol it comes over.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;
use wire::h2;

use crate::{h1, h3};

/// The content of a request, with its limits.
#[derive(Debug, Default)]
pub struct RequestBody(Option<Box<Limited>>);

#[derive(Debug)]
struct Limited {
    inner: Incoming,
    left: u64,
    between_bytes: Duration,
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
}

/// Content as a protocol brings it.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Content of HTTP/1, as hyper reads it.
    Http1(h1::Content),
    /// Content of HTTP/2, and its length, if the head says it: the protocol sees to it that it is so.
    Http2(h2::Content, Option<u64>),
    /// Content of HTTP/3, and its length in the same way.
    Http3(Box<h3::Content>, Option<u64>),
}

impl Incoming {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self {
            Self::Http1(body) => body.poll_frame(cx).map_err(Into::into),
            Self::Http2(content, _) => content.poll_data(cx).map(|data| data.map(|data| Ok(Frame::data(data?)))),
            Self::Http3(content, _) => content.poll_data(cx).map(|data| data.map(|data| Ok(Frame::data(data?)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(content, _) => content.is_end_stream(),
            Self::Http3(content, _) => content.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(_, length) | Self::Http3(_, length) => length.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

type Broken = Box<dyn std::error::Error + Send + Sync>;

/// Says why the content of a request could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// The content is larger than [`crate::Limits::body_bytes`].
    #[error("the request's content is larger than allowed")]
    TooLarge,
    /// The client paused longer than [`crate::Limits::body_timeout`].
    #[error("the client stopped sending its request's content")]
    Timeout,
    /// The client broke off or its framing is wrong.
    #[error("the request's content broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl RequestBody {
    /// Makes no content.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Makes content of at most `bytes_max` bytes, whose client may pause for `between_bytes`.
    pub(crate) fn limited(inner: Incoming, bytes_max: u64, between_bytes: Duration) -> Self {
        if inner.is_end_stream() {
            return Self(None);
        }
        Self(Some(Box::new(Limited {
            inner,
            left: bytes_max,
            between_bytes,
            deadline: Box::pin(tokio::time::sleep(between_bytes)),
            waiting: false,
        })))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let frame = match body.inner.poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if !body.waiting {
                    body.waiting = true;
                    let until = tokio::time::Instant::now() + body.between_bytes;
                    body.deadline.as_mut().reset(until);
                }
                if body.deadline.as_mut().poll(cx).is_ready() {
                    self.0 = None;
                    return Poll::Ready(Some(Err(RequestBodyError::Timeout)));
                }
                return Poll::Pending;
            }
        };
        body.waiting = false;
        match frame {
            Some(Ok(frame)) => {
                let len = frame.data_ref().map_or(0, |data| data.len() as u64);
                if len > body.left {
                    self.0 = None;
                    return Poll::Ready(Some(Err(RequestBodyError::TooLarge)));
                }
                body.left -= len;
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.0 = None;
                Poll::Ready(Some(Err(RequestBodyError::Broken(error))))
            }
            None => {
                self.0 = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|body| body.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), |body| body.inner.size_hint())
    }
}
