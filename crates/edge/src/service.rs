//! What answers: the seam between the protocol and everything behind it.

use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use semantics::{RequestHead, Scheme};
use tokio::time::Sleep;

use crate::{h1, h3, send_file::FileRegion};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The address, unless the connection came over a Unix socket.
    pub address: Option<SocketAddr>,
    /// How the connection is spoken over: `https` where it is encrypted.
    pub scheme: Scheme,
}

/// A stored response that is being sent: the head is in the buffer that [`Service::hit`] was given, the content is here.
#[derive(Debug)]
pub struct Hit<H, N, K> {
    /// The status in the head.
    pub status: u16,
    /// The content; `None` where the message has none (HEAD, 304).
    pub body: Option<H>,
    /// What the service wants back in [`Service::done`].
    pub note: N,
    /// What [`Service::again`] needs, should a head of the same bytes come again; `None` if the bytes alone do not decide.
    pub known: Option<K>,
}

/// The hit of a service.
pub type HitOf<S> = Hit<<S as Service>::Stored, <S as Service>::Note, <S as Service>::Known>;

/// One request and what became of it, for logs and counters.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The other end.
    pub peer: Peer,
    /// The method as sent.
    pub method: &'a str,
    /// The request-target as sent.
    pub target: &'a str,
    /// In which it was sent.
    pub version: http::Version,
    /// The `Host` field as sent, or nothing.
    pub host: &'a [u8],
    /// The `Referer` field, or nothing.
    pub referer: &'a [u8],
    /// The `User-Agent` field, or nothing.
    pub user_agent: &'a [u8],
    /// The status sent.
    pub status: u16,
    /// Content bytes sent, without framing.
    pub body_bytes: u64,
    /// When the head was complete.
    pub started: Instant,
    /// When the last byte was handed to the kernel, or the client was given up.
    pub ended: Instant,
    /// Whether the whole response was sent.
    pub complete: bool,
}

/// Is told of an interim response's status and its end-to-end fields.
pub type Interim = Rc<dyn Fn(http::StatusCode, &http::HeaderMap)>;

/// Answers requests. One instance belongs to one worker and never leaves its thread.
pub trait Service: 'static {
    /// Content of a stored response, kept until it is written.
    type Stored: AsRef<[u8]>;
    /// Content of any other response.
    type Body: Body<Data = Bytes, Error: fmt::Display + Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + 'static;
    /// What the service wants to know again when the exchange has ended.
    type Note: Default;
    /// What the service has found out about a head that it answered with a hit. Kept with the head while that comes again and again.
    type Known: 'static;

    /// Answers at once from what is stored, or not at all.
    ///
    /// Writes the status line and the fields, each with its line end, but not the empty line: the connection's own fields follow. Called
    /// for GET and HEAD without content only. Must not block.
    fn hit(&self, peer: Peer, head: &RequestHead<'_>, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>>;

    /// As [`Service::hit`], for a head that is byte for byte one that was a hit before, over the same scheme. `None`: the head is to be
    /// parsed and judged as if it were new.
    fn again(&self, peer: Peer, known: &Self::Known, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>>;

    /// Answers in its own time. The request's URI is in origin-form, its authority in `Host`. Interim responses may be told before the
    /// answer is ready, unless there is nothing to tell them to: a client of HTTP/1.0 would take one for the answer (RFC 9110 §15.2).
    fn call(
        &self,
        peer: Peer,
        request: http::Request<RequestBody>,
        started: Instant,
        interim: Option<Interim>,
    ) -> impl Future<Output = (http::Response<Self::Body>, Self::Note)>;

    /// The same content, for whoever keeps it until it has arrived at the client: a reference, not a copy.
    fn share(stored: &Self::Stored) -> Bytes;

    /// Takes the next content of `body`, if that lies in a file: whoever takes it sends it, before anything else of the body. Asked for again
    /// after each piece.
    fn take_file(body: &mut Self::Body) -> Option<FileRegion>;

    /// An exchange has ended.
    fn done(&self, exchange: &Exchange<'_>, note: Self::Note);

    /// A message was refused before there was a request; `status` was sent if the client still listened.
    fn refused(&self, peer: Peer, status: u16, reason: &'static str);
}

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

/// Content as it comes from the wire.
#[derive(Debug)]
pub(crate) enum Incoming {
    Http1(h1::Content),
    /// And its length, if the head says it: the protocol sees to it that it is so.
    Http2(wire::h2::Content, Option<u64>),
    /// The same.
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

/// Why the content of a request could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// It is larger than [`crate::Limits::body_bytes`].
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
    /// No content.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

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
