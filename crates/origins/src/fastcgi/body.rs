//! The content of a response, as it comes.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use super::{
    connection::{Broken, Connection},
    record::Piece,
    server::HeldForRequest,
};
use crate::{Fault, OriginError, server::Lease};

/// The hold of a response on its connection while its content comes.
pub(super) type ConnectionLease = Lease<Box<Connection>, Box<Connection>>;

/// A response's content with a limit on its pauses.
///
/// It is whole when the server says that the request has ended, and never because the connection is closed or because as many bytes came as
/// were announced.
pub(super) struct ResponseBody {
    /// The content that came with the head.
    first: Bytes,
    /// The number of bytes that were announced and are still to come.
    left: Option<u64>,
    lease: Option<(ConnectionLease, HeldForRequest)>,
    /// The time since which a read has been pending. Time in which nobody asks for the next frame is not the server's.
    pending_since: Option<Instant>,
}

impl ResponseBody {
    pub(super) const fn new(first: Bytes, length: Option<u64>, lease: ConnectionLease, held: HeldForRequest) -> Self {
        Self { first, left: length, lease: Some((lease, held)), pending_since: None }
    }

    /// Takes note of a piece, or says what is wrong with it.
    fn count(&mut self, piece: &Bytes) -> Result<(), Broken> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(piece.len() as u64).ok_or(Broken::new(Fault::ProtocolError, "more content than was announced"))?;
        }
        Ok(())
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let first = std::mem::take(&mut self.first);
        if !first.is_empty() {
            self.count(&first)?;
            return Poll::Ready(Ok(Some(first)));
        }
        let Some((lease, _)) = &mut self.lease else { return Poll::Ready(Ok(None)) };
        match ready!(lease.connection.poll_piece(cx))? {
            Piece::Output(piece) => {
                self.count(&piece)?;
                Poll::Ready(Ok(Some(piece)))
            }
            _ if self.left.is_some_and(|left| left > 0) => {
                Poll::Ready(Err(Broken::new(Fault::ConnectionTerminated, "less content than was announced")))
            }
            _ => Poll::Ready(Ok(None)),
        }
    }
}

/// Ends the lease of a connection whose response has ended: it is handed to whoever waits longest in this worker, or kept if nobody waits at all. It is closed
/// when it has held its child for long, so that the child takes the next connection in the server's queue, whoever has made that one.
pub(super) fn end(mut lease: ConnectionLease, held: HeldForRequest) {
    if lease.keep.is_none() || !lease.connection.is_clean() {
        return;
    }
    lease.connection.reused = true;
    let (held_for, somebody_waits) = (lease.connection.held_for(), !held.line.is_empty());
    if somebody_waits && held_for < held.server.times.handed && lease.connection.ask_whether_free() {
        // If the last of them has left at this moment, it is closed.
        let _ = held.line.give(Ok(lease.connection));
        return;
    }
    let keeps = !somebody_waits && held_for < held.server.times.held && held.may_keep() && lease.connection.ask_whether_free();
    let address = lease.address;
    let pool = std::sync::Arc::clone(&lease.pool);
    lease.end(keeps);
    // Somebody may have begun to wait for a child meanwhile.
    if keeps && !held.may_keep() {
        pool.forget_idle(address);
    }
}

/// Ends the lease of a response without content, if its end has come already. Otherwise the connection is closed: whatever the script still says is for
/// nobody.
pub(super) fn end_now(mut lease: ConnectionLease, held: HeldForRequest) {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..PIECES_SKIPPED_MAX {
        match lease.connection.poll_piece(&mut cx) {
            Poll::Ready(Ok(Piece::Output(_))) => {}
            Poll::Ready(Ok(_)) => return end(lease, held),
            Poll::Ready(Err(_)) | Poll::Pending => return,
        }
    }
}

/// Pieces of content that are read over where there should be none.
const PIECES_SKIPPED_MAX: usize = 16;

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let this = &mut *self;
        match this.poll_next(cx) {
            Poll::Ready(Ok(Some(piece))) => {
                this.pending_since = None;
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Poll::Ready(Ok(None)) => {
                if let Some((lease, held)) = this.lease.take() {
                    end(lease, held);
                }
                Poll::Ready(None)
            }
            Poll::Ready(Err(broken)) => {
                let (lease, _held) = this.lease.take().expect("only a connection breaks");
                Poll::Ready(Some(Err(broken.into_error("response body from", lease.origin()))))
            }
            Poll::Pending => {
                let (lease, _) = this.lease.as_mut().expect("only a connection is waited for");
                let timeout = lease.pool.options().between_bytes_timeout;
                let since = *this.pending_since.get_or_insert_with(Instant::now);
                // A long upload that is still being read is not a pause.
                let deadline = since.max(lease.connection.sent_at) + timeout;
                ready!(lease.connection.poll_alarm(cx, deadline));
                let detail = format!("{} paused for {timeout:?}", lease.origin());
                this.lease = None;
                Poll::Ready(Some(Err(OriginError::new(Fault::BodyTimeout, detail))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none() && self.first.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
