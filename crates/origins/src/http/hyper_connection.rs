//! A connection that hyper's client serves: for content that is still coming from its client, and for upgrades.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{Builder, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::AbortHandle,
};

use super::{outgoing::Outgoing, read_buffer_bytes_max};
use crate::{
    Fault, OriginError,
    server::{Address, ServerOptions, Stream},
};

/// An open connection that hyper serves. Dropping it closes it, whatever is still on its way.
#[derive(Debug)]
pub(super) struct HyperConnection {
    sender: SendRequest<Outgoing>,
    heard: Arc<AtomicBool>,
    /// The task that reads and writes; none once the connection belongs to an upgraded protocol.
    task: Option<AbortHandle>,
    /// Whether it has carried a request before: only then may it have died of old age.
    pub(super) reused: bool,
}

impl HyperConnection {
    pub(super) async fn open(stream: Stream, address: &Address, options: &ServerOptions) -> Result<Self, OriginError> {
        let (stream, heard) = WatchedStream::new(stream);
        let mut builder = Builder::new();
        builder.max_header_size(options.response_header_bytes_max).max_buf_size(read_buffer_bytes_max(options));
        if options.response_fields_max != HYPER_FIELDS_MAX {
            builder.max_headers(options.response_fields_max);
        }
        let (sender, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|e| OriginError::new(Fault::Internal, format!("HTTP/1.1 on {address}")).because(e))?;
        // What goes wrong on a connection is told to the request it carries; an idle one that ends is not an event.
        let task = tokio::task::spawn_local(async move {
            let _ = connection.with_upgrades().await;
        });
        Ok(Self { sender, heard, task: Some(task.abort_handle()), reused: false })
    }

    /// Sends a request. The error carries it when nothing of it was written.
    pub(super) fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Outgoing>>>> + use<> {
        self.heard.store(false, Ordering::Relaxed);
        self.sender.try_send_request(request)
    }

    /// Returns whether any byte came since the request was sent.
    pub(super) fn heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Leaves the socket to the upgraded protocol.
    pub(super) fn hand_over(mut self) {
        self.task = None;
    }
}

/// The number of field lines that hyper reads without allocating for it.
const HYPER_FIELDS_MAX: usize = 100;

impl Drop for HyperConnection {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// A stream that remembers whether anything came from the origin since it was last asked: a request may be sent again only if not.
#[derive(Debug)]
struct WatchedStream {
    stream: Stream,
    heard: Arc<AtomicBool>,
}

impl WatchedStream {
    fn new(stream: Stream) -> (Self, Arc<AtomicBool>) {
        let heard = Arc::new(AtomicBool::new(false));
        (Self { stream, heard: Arc::clone(&heard) }, heard)
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
