//! Content that nobody reads to its end.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use ::h2::RecvStream;
use bytes::Bytes;

/// What a client may still send when its request is answered, and for how long.
const LEFT_MAX: usize = 256 * 1024;
const LEFT_TIMEOUT: Duration = Duration::from_secs(2);

/// The content of a request. Given up before its end, it is not reset, which some clients take for the end of the response too, but put by
/// for its connection to read to the end.
#[derive(Debug)]
pub(crate) struct Unread {
    stream: Option<RecvStream>,
    put_by: Left,
}

/// Where it is put by.
#[derive(Debug, Clone, Default)]
pub(super) struct Left(Arc<Mutex<Option<RecvStream>>>);

impl Unread {
    pub(super) fn new(stream: RecvStream) -> (Self, Left) {
        let left = Left::default();
        (Self { stream: Some(stream), put_by: left.clone() }, left)
    }

    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ::h2::Error>>> {
        self.stream.as_mut().map_or(Poll::Ready(None), |stream| poll_data(stream, cx))
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.stream.as_ref().is_none_or(RecvStream::is_end_stream)
    }
}

fn poll_data(stream: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ::h2::Error>>> {
    let data = ready!(stream.poll_data(cx));
    if let Some(Ok(data)) = &data {
        // What is passed on makes room for more; what waits with us is bounded by the window.
        let _ = stream.flow_control().release_capacity(data.len());
    }
    Poll::Ready(data)
}

impl Drop for Unread {
    fn drop(&mut self) {
        if !self.is_end_stream() {
            *self.put_by.0.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
        }
    }
}

impl Left {
    /// Reads what is still coming, within limits.
    pub(super) async fn read(self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut stream) = stream else { return };
        let mut left = LEFT_MAX;
        let to_the_end = async {
            while let Some(Ok(data)) = poll_fn(|cx| poll_data(&mut stream, cx)).await {
                let Some(less) = left.checked_sub(data.len()) else { return };
                left = less;
            }
        };
        let _ = tokio::time::timeout(LEFT_TIMEOUT, to_the_end).await;
    }
}
