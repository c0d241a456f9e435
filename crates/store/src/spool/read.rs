//! One read of a file, as a future that neither blocks nor loses its place in the queue.

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::disk::io::{Done, Io};

/// A source that can be read in parts.
pub(crate) trait Source: Send + Sync + 'static {
    /// Returns all bytes of a range that the caller knows to be there. Call it on a thread of the disk.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;
}

/// Bytes that are being read. Cancel-safe: they are returned by the poll that finds them. Dropping it removes the read from the queue.
#[must_use = "nothing comes of a read that nobody polls"]
pub struct Reading {
    io: Arc<Io>,
    source: Arc<dyn Source>,
    range: Range<u64>,
    /// The queued read; `None` while the queue has no room.
    queued: Option<Done<io::Result<Bytes>>>,
}

impl Reading {
    /// Begins a read, at once if there is room, without being polled.
    pub(crate) fn begin(io: &Arc<Io>, source: Arc<dyn Source>, range: Range<u64>) -> Self {
        let mut reading = Self { io: Arc::clone(io), source, range, queued: None };
        reading.enqueue();
        reading
    }

    fn enqueue(&mut self) -> bool {
        let (source, range) = (Arc::clone(&self.source), self.range.clone());
        self.queued = self.io.read(move || source.read(range)).ok();
        self.queued.is_some()
    }
}

impl Future for Reading {
    type Output = io::Result<Bytes>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        loop {
            if let Some(queued) = &mut self.queued {
                let read = ready!(Pin::new(queued).poll(cx));
                return Poll::Ready(read.unwrap_or_else(|| Err(io::Error::other("the disk's threads have ended"))));
            }
            if self.enqueue() {
                continue;
            }
            if self.io.is_closed() {
                return Poll::Ready(Err(io::Error::other("the disk's threads have ended")));
            }
            ready!(self.io.poll_read_room(cx));
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("range", &self.range).finish_non_exhaustive()
    }
}
