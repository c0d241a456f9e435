//! The request body on its way to the origin, and how far it has come.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Body, OriginError};

/// A request body as hyper takes it.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// The content is in memory and can be sent again.
    Whole(Bytes),
    /// The content comes from the client, and can be sent only once.
    Upload { body: UnsyncBoxBody<Bytes, OriginError>, progress: Arc<Progress> },
}

/// The progress of an upload, shared with whoever waits for the response to it.
#[derive(Debug)]
pub(super) struct Progress(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The time at which the origin last took a frame.
    taken: Instant,
    /// Whether it is the client we wait for. How long that may last is for the edge to say.
    client_pauses: bool,
}

impl Progress {
    /// Returns until when the origin may still stay silent: its time counts from the last frame it took, and stands still while the client
    /// pauses.
    pub(super) fn deadline(&self, timeout: Duration) -> Instant {
        let state = self.0.lock();
        (if state.client_pauses { Instant::now() } else { state.taken }) + timeout
    }
}

impl Outgoing {
    /// Makes a body for hyper; and its progress, if it is an upload.
    pub(super) fn new(body: Body) -> (Self, Option<Arc<Progress>>) {
        match body {
            Body::Empty => (Self::Whole(Bytes::new()), None),
            Body::Full(bytes) => (Self::Whole(bytes), None),
            Body::File(file) => Self::new(Body::stream(*file)),
            Body::Stream(body) => {
                let progress = Arc::new(Progress(Mutex::new(State { taken: Instant::now(), client_pauses: false })));
                (Self::Upload { body, progress: Arc::clone(&progress) }, Some(progress))
            }
        }
    }

    /// Returns the same body once more, if it can be had.
    pub(super) fn again(&self) -> Option<Self> {
        match self {
            Self::Whole(bytes) => Some(Self::Whole(bytes.clone())),
            Self::Upload { .. } => None,
        }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Upload { body, progress } => {
                let frame = Pin::new(body).poll_frame(cx);
                let mut state = progress.0.lock();
                state.client_pauses = frame.is_pending();
                if frame.is_ready() {
                    state.taken = Instant::now();
                }
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Upload { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Upload { body, .. } => body.size_hint(),
        }
    }
}
