//! Reading ahead of the client: a script that has said all it has to say is done, however slowly its page is read.
//!
//! A child is held until the end of its response has been read. A task reads it, as far ahead of the client as the buffer goes.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::body::ResponseBody;
use crate::{Body, OriginError};

/// The most of a response that is read before its client has taken it, beside what came with its head, which is as much at most. What PHP says beyond
/// that waits in the socket, and the child with it.
pub const AHEAD_BYTES_MAX: usize = 256 * 1024;
/// The most pieces of a response that are read ahead: events have few bytes each.
const PIECES_MAX: usize = 256;

/// A piece, and its share of the buffer.
type Piece = (Result<Bytes, OriginError>, Option<OwnedSemaphorePermit>);

/// Begins to read a response. One that has come whole already is handed over whole, and its child is free.
///
/// # Errors
/// When it turns out at once that the response is broken.
pub(super) fn read(mut response: ResponseBody) -> Result<Body, OriginError> {
    let (mut there, mut cx) = (BytesMut::new(), Context::from_waker(Waker::noop()));
    while there.len() < AHEAD_BYTES_MAX {
        match Pin::new(&mut response).poll_frame(&mut cx) {
            Poll::Ready(Some(frame)) => there.extend_from_slice(&frame?.into_data().unwrap_or_default()),
            Poll::Ready(None) => return Ok(Body::from(there.freeze())),
            Poll::Pending => break,
        }
    }
    let size = response.size_hint().exact().map(|left| left + there.len() as u64);
    let (sender, pieces) = mpsc::channel(PIECES_MAX);
    tokio::task::spawn_local(pump(response, sender));
    Ok(Body::stream(ReadAhead { there: there.freeze(), pieces, left: size }))
}

/// Reads until the response ends, or its client has left.
async fn pump(mut response: ResponseBody, sender: mpsc::Sender<Piece>) {
    let room = Arc::new(Semaphore::new(AHEAD_BYTES_MAX));
    let left = sender.clone();
    let reading = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut response).poll_frame(cx)).await {
            let piece = frame.map(|frame| frame.into_data().unwrap_or_default());
            let share = piece.as_ref().map_or(0, |bytes| u32::try_from(bytes.len().min(AHEAD_BYTES_MAX)).unwrap_or(u32::MAX));
            let permit = Arc::clone(&room).acquire_many_owned(share).await.ok();
            if sender.send((piece, permit)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        // What is still to come is for nobody: dropping the response closes its connection.
        () = left.closed() => {}
    }
}

/// A response that is read ahead.
struct ReadAhead {
    there: Bytes,
    pieces: mpsc::Receiver<Piece>,
    left: Option<u64>,
}

impl HttpBody for ReadAhead {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let there = std::mem::take(&mut self.there);
        let piece = if there.is_empty() {
            match ready!(self.pieces.poll_recv(cx)) {
                Some((piece, _)) => piece?,
                None => return Poll::Ready(None),
            }
        } else {
            there
        };
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
