//! Content of an origin, or for one, that is read in passing: it goes on as it came, and somebody [listens](Listener).

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::{Body, OriginError};
use tokio::time::timeout;

/// Whoever reads content in passing.
pub(crate) trait Listener: Unpin + Send + 'static {
    /// Hears the next bytes.
    fn data(&mut self, _data: &[u8]) {}

    /// Hears that the content was whole. This may be told more than once, and not at all if its length was announced and nobody asked for its end.
    fn end(&mut self) {}

    /// Hears that the content broke off.
    fn broken(&mut self) {}
}

/// Has a listener hear content that streams. Content at hand is heard at once.
pub(crate) fn heard(body: Body, mut listener: impl Listener) -> Body {
    match body {
        Body::Empty => {
            listener.end();
            Body::Empty
        }
        Body::Full(bytes) => {
            listener.data(&bytes);
            listener.end();
            Body::Full(bytes)
        }
        body @ (Body::File(_) | Body::Stream(_)) => Body::stream(Heard { body, listener }),
    }
}

struct Heard<L> {
    body: Body,
    listener: L,
}

impl<L: Listener> HttpBody for Heard<L> {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    this.listener.data(data);
                }
                // Whoever knows that it is whole need not ask once more.
                if this.body.is_end_stream() {
                    this.listener.end();
                }
            }
            Poll::Ready(None) => this.listener.end(),
            Poll::Ready(Some(Err(_))) => this.listener.broken(),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads content to see what it says, and puts it back. `None`: it has more bytes than `bytes_max`, broke off, or did not come `within` that time.
pub(crate) async fn read_and_put_back(body: &mut Body, bytes_max: usize, within: Duration) -> Option<Vec<u8>> {
    let mut whole = Some(Vec::new());
    let mut begun = VecDeque::new();
    let mut rest = std::mem::take(body);
    let read = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut rest).poll_frame(cx)).await {
            let is_broken = frame.is_err();
            if let Some(data) = frame.as_ref().ok().and_then(Frame::data_ref) {
                whole = whole.take().filter(|whole| whole.len() + data.len() <= bytes_max).map(|mut whole: Vec<u8>| {
                    whole.extend_from_slice(data);
                    whole
                });
            }
            begun.push_back(frame);
            if is_broken {
                whole = None;
            }
            if whole.is_none() {
                return false;
            }
        }
        true
    };
    let is_whole = timeout(within, read).await.unwrap_or(false);
    *body = Body::stream(PartlyRead { begun, rest: (!is_whole).then_some(rest) });
    whole.filter(|_| is_whole)
}

/// Content of which the beginning was read before it goes on.
struct PartlyRead {
    begun: VecDeque<Result<Frame<Bytes>, OriginError>>,
    /// `None`: there is no more.
    rest: Option<Body>,
}

impl HttpBody for PartlyRead {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        if let Some(frame) = self.begun.pop_front() {
            return Poll::Ready(Some(frame));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let begun: usize = self.begun.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref()).map(Bytes::len).sum();
        let mut hint = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint);
        let begun = begun as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(begun));
        }
        hint.set_lower(hint.lower().saturating_add(begun));
        hint
    }
}
