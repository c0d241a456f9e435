//! The response body on its way from the origin. Frames are passed on as they are.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::{fault, hyper_connection::HyperConnection, idle::Idle};
use crate::{Fault, OriginError, server::Lease};

/// The hold of a response on its connection while the content comes.
pub(super) struct UploadLease {
    pub(super) lease: Lease<HyperConnection, Idle>,
    /// Whether the request's body came from a client that may still be sending it.
    pub(super) uploading: bool,
}

impl UploadLease {
    /// Ends the lease, as the response has ended.
    pub(super) fn end(self) {
        // A response that overtook its request leaves a connection on which the rest of the request is still to come.
        let connection = &self.lease.connection;
        let is_clean = (!self.uploading || connection.is_ready()) && !connection.is_closed();
        self.lease.end(is_clean);
    }
}

/// A streaming response body with a limit on its pauses.
pub(super) struct ResponseBody {
    incoming: Incoming,
    lease: Option<UploadLease>,
    /// The time since which a read has been pending. Time in which nobody asks for the next frame is not the origin's.
    pending_since: Option<Instant>,
    /// The timer, made at the first pause, so that a body which is there at once costs no timer; when it rings early it is set anew, so
    /// that a body of many pauses does not touch the timer wheel at each.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl ResponseBody {
    pub(super) fn new(incoming: Incoming, lease: UploadLease) -> Self {
        Self { incoming, lease: Some(lease), pending_since: None, alarm: None }
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>, timeout: Duration) -> Poll<()> {
        let deadline = *self.pending_since.get_or_insert_with(Instant::now) + timeout;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while alarm.as_mut().poll(cx).is_ready() {
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let this = &mut *self;
        let Some(lease) = &this.lease else { return Poll::Ready(None) };
        match Pin::new(&mut this.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.pending_since = None;
                // The end is known with the last byte of a counted body: who read that may never ask again.
                if this.incoming.is_end_stream()
                    && let Some(lease) = this.lease.take()
                {
                    lease.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                if let Some(lease) = this.lease.take() {
                    lease.end();
                }
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                let error = fault::of_body(error, lease.lease.origin());
                this.lease = None;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Pending => {
                let timeout = lease.lease.pool.options().between_bytes_timeout;
                if this.poll_alarm(cx, timeout).is_pending() {
                    return Poll::Pending;
                }
                let detail = this.lease.take().map(|lease| format!("{} paused for {timeout:?}", lease.lease.origin()));
                Poll::Ready(Some(Err(OriginError::new(Fault::BodyTimeout, detail.unwrap_or_default()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none() || self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
