//! Says how a growing body comes into its file: in batches, one at a time, each begun by the writer or by the one before.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use smallvec::SmallVec;

use super::{BATCH, Growing, NobodyReads, WINDOW};
use crate::disk::io::Busy;
use crate::flight::Failure;
use crate::spool::{DiskBody, SpoolFile};
use crate::wakers;

impl<E: Failure> Growing<E> {
    /// Returns whether the writer may go on: the disk keeps up, or the readers of a windowed body do. Begins to write the bytes that are
    /// waiting.
    pub(crate) fn poll_room(self: &Arc<Self>, cx: &Context<'_>) -> Poll<Result<(), NobodyReads>> {
        loop {
            let mut body = self.body.lock();
            if body.windowed && body.offsets.is_empty() {
                return Poll::Ready(Err(NobodyReads));
            }
            let (lag, least) = match (&body.spooled, body.windowed) {
                (_, true) => (body.lag(), None),
                (Some(_), false) => (body.unwritten(), Some(BATCH)),
                (None, false) => return Poll::Ready(Ok(())),
            };
            let wait = lag > WINDOW;
            let before = if wait { body.writer.replace(cx.waker().clone()) } else { None };
            drop(body);
            drop(before);
            let written = least.map_or(Ok(()), |least| self.write_some(least));
            match (wait, written) {
                (false, _) => return Poll::Ready(Ok(())),
                (true, Ok(())) => return Poll::Pending,
                (true, Err(Busy)) => ready!(self.poll_disk(cx)),
            }
        }
    }

    /// Waits until all of a spooled body is in its file. Returns `None` if it cannot be stored. Call it when the last bytes are in.
    pub(crate) async fn spooled(self: &Arc<Self>) -> Option<DiskBody> {
        std::future::poll_fn(|cx| self.poll_written(cx)).await;
        let body = self.body.lock();
        let (file, total) = match &body.spooled {
            Some(spooled) if !body.windowed => (Arc::clone(&spooled.file), body.total),
            Some(_) | None => return None,
        };
        drop(body);
        file.into_body(total)
    }

    fn poll_written(self: &Arc<Self>, cx: &Context<'_>) -> Poll<()> {
        loop {
            let mut body = self.body.lock();
            if body.windowed || body.unwritten() == 0 || body.spooled.is_none() {
                return Poll::Ready(());
            }
            let before = body.writer.replace(cx.waker().clone());
            drop(body);
            drop(before);
            match self.write_some(1) {
                Ok(()) => return Poll::Pending,
                Err(Busy) => ready!(self.poll_disk(cx)),
            }
        }
    }

    /// Waits until the disk accepts more. A disk that never will has failed.
    fn poll_disk(&self, cx: &Context<'_>) -> Poll<()> {
        let file = self.body.lock().spooled.as_ref().map(|spooled| Arc::clone(&spooled.file));
        let Some(file) = file else { return Poll::Ready(()) };
        if file.io().is_closed() {
            self.batch_done(Err(()));
            return Poll::Ready(());
        }
        file.io().poll_room(cx)
    }

    /// Begins a batch, unless one is running or fewer than `least` bytes wait to be written.
    fn write_some(self: &Arc<Self>, least: u64) -> Result<(), Busy> {
        let mut body = self.body.lock();
        if body.windowed || body.unwritten() < least {
            return Ok(());
        }
        let Some(spooled) = body.spooled.as_mut().filter(|spooled| !spooled.writing) else { return Ok(()) };
        spooled.writing = true;
        let (file, from) = (Arc::clone(&spooled.file), spooled.written);
        let (mut chunks, mut bytes) = (SmallVec::<[Bytes; 16]>::new(), 0);
        // The chunks begin where the file ends: nothing else is dropped from the front of a spooled body, and chunks are written whole.
        for (at, chunk) in body.chunks.iter().skip_while(|(at, _)| *at < from) {
            debug_assert_eq!(*at, from + bytes, "a gap in a body");
            chunks.push(chunk.clone());
            bytes += chunk.len() as u64;
            if bytes >= WINDOW {
                break;
            }
        }
        drop(body);
        let io = Arc::clone(file.io());
        let batch = Batch { growing: Some(Arc::clone(self)), file, from, chunks, bytes };
        io.write(bytes, move || batch.write()).map(drop)
    }

    /// Notes that a batch is in the file: `result` says where that ends now. The writer, if it waits, begins the next one.
    fn batch_done(&self, result: Result<u64, ()>) {
        let mut body = self.body.lock();
        match (&mut body.spooled, result) {
            (Some(spooled), Ok(end)) => {
                spooled.written = end;
                spooled.writing = false;
            }
            (_, Err(())) => body.windowed = true,
            (None, Ok(_)) => {}
        }
        let trimmed = self.trim(&mut body);
        let writer = trimmed.or_else(|| body.writer.take());
        drop(body);
        wakers::wake(Vec::from_iter(writer));
    }

    /// Notes that a batch found no room in the queue, and must be begun again.
    fn batch_refused(&self) {
        if let Some(spooled) = &mut self.body.lock().spooled {
            spooled.writing = false;
        }
    }
}

/// Chunks on their way into the file. Nobody may wait for them in vain: when it is dropped without having been written, it reports why.
struct Batch<E: Failure> {
    growing: Option<Arc<Growing<E>>>,
    file: Arc<SpoolFile>,
    from: u64,
    chunks: SmallVec<[Bytes; 16]>,
    bytes: u64,
}

impl<E: Failure> Batch<E> {
    fn write(mut self) {
        let result = self.file.write(self.from, &self.chunks);
        self.chunks.clear();
        if let Some(growing) = self.growing.take() {
            growing.batch_done(result.map(|()| self.from + self.bytes).map_err(drop));
        }
    }
}

impl<E: Failure> Drop for Batch<E> {
    fn drop(&mut self) {
        let Some(growing) = self.growing.take() else { return };
        if self.file.io().is_closed() || std::thread::panicking() {
            growing.batch_done(Err(()));
        } else {
            growing.batch_refused();
        }
    }
}

#[cfg(test)]
mod tests;
