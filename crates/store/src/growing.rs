//! A body that is still arriving, read by many while one writes.
//!
//! It begins *whole*: every byte is kept in memory, so that it can be stored and whoever comes late starts at the first byte. When it
//! outgrows what memory may hold (or the budget of all growing bodies is used up), it becomes
//!
//! - *spooled*, if there is a disk tier that takes it: chunks are written to a [file](crate::spool), and dropped once they are there. Whoever
//!   keeps up reads chunks, whoever lags or comes late reads the file, and nobody waits for anybody; the writer waits for the disk alone,
//!   while more than [`WINDOW`] is not written yet. Or else
//! - *windowed*, for good: it will not be stored, nobody may join any more, chunks that every reader has passed are dropped, and the writer
//!   waits while the slowest reader lags by more than [`WINDOW`]. So does a spooled body that the disk fails or that outgrows the disk
//!   as well; what is in its file by then is still read from there.
//!
//! Readers are woken by the writer's bytes, never by a timer. One lock per body, held for a few pointer moves.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future as _;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use thiserror::Error;

use crate::spool::{Reading, Spool, SpoolFile};
use crate::wakers::{self, WakerSlot, Wakers};

/// The number of bytes by which the slowest reader of a windowed body may lag before its writer waits: see [`Writer::drop_slowest`]. It is
/// also how much of a spooled body may wait for the disk.
///
/// [`Writer::drop_slowest`]: crate::Writer::drop_slowest
pub const WINDOW: u64 = 1 << 20;

/// The bytes that are written to the file at once, if as much has arrived; fewer when the body ends or the writer waits.
const BATCH: u64 = 256 << 10;
/// The bytes that one read of the file brings.
const READ: u64 = 64 << 10;

/// The length below which chunks are copied: a chunk of a few bytes may be a slice that keeps a whole read buffer alive.
const COPY_BELOW: usize = 2_048;
/// The cost of a chunk beside its bytes: its line in the list, the counters behind `Bytes`, an allocation.
const CHUNK: u64 = 96;

/// The reason why a body ended early.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Broken<E> {
    /// The origin broke off.
    #[error("the origin broke off in the middle of the body")]
    Failed(E),
    /// The fetch was given up without a reason: its task was dropped.
    #[error("the fetch was given up in the middle of the body")]
    Abandoned,
    /// This reader has held up all the others for too long.
    #[error("the reader was too slow for those who read with it")]
    TooSlow,
    /// The file that it reads from cannot be read.
    #[error("the disk failed in the middle of the body")]
    Unreadable,
}

/// The body can no longer be stored and nobody reads it: the fetch should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the body is too long to be stored and nobody reads it")]
pub struct NobodyReads;

/// One reader of a growing body. Dropping it is how a client leaves.
pub struct Reader<E> {
    growing: Arc<Growing<E>>,
    offset: u64,
    slot: WakerSlot,
    /// The pending read of the file, at `offset`.
    reading: Option<Reading>,
    ended: bool,
}

impl<E: Clone> Reader<E> {
    /// Returns the next bytes, shared with every other reader; `None` at the end. All bytes that arrived come before an error, and after an
    /// error comes the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken<E>>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = self.poll_next(cx);
        self.ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken<E>>>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let read = ready!(Pin::new(reading).poll(cx));
                self.reading = None;
                let Ok(bytes) = read else { return Poll::Ready(Some(Err(Broken::Unreadable))) };
                self.growing.advance(&mut self.offset, bytes.len() as u64);
                return Poll::Ready(Some(Ok(bytes)));
            }
            match ready!(self.growing.poll_chunk(&mut self.offset, &mut self.slot, cx)) {
                Next::Chunk(chunk) => return Poll::Ready(Some(Ok(chunk))),
                Next::InFile(file, range) => {
                    let io = Arc::clone(file.io());
                    self.reading = Some(Reading::begin(&io, file, range));
                }
                Next::End => return Poll::Ready(None),
                Next::Broken(broken) => return Poll::Ready(Some(Err(broken))),
            }
        }
    }

    /// Waits for [`poll_chunk`](Self::poll_chunk). Cancel-safe: a chunk is taken only when it is returned.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Broken<E>>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }
}

impl<E> Reader<E> {
    /// Returns the length of the whole body, as the origin announced it.
    #[must_use]
    pub fn length_hint(&self) -> Option<u64> {
        self.growing.length_hint
    }

    /// Creates a reader that [`Growing::enter`] or [`Growing::new`] has counted.
    pub(crate) const fn entered(growing: Arc<Growing<E>>) -> Self {
        Self { growing, offset: 0, slot: None, reading: None, ended: false }
    }
}

impl<E> Drop for Reader<E> {
    fn drop(&mut self) {
        self.growing.leave(self.offset, &mut self.slot);
    }
}

impl<E> fmt::Debug for Reader<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("offset", &self.offset).field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// The budget of bytes held by all growing bodies of a store.
pub(crate) struct Budget {
    held: AtomicU64,
    max: u64,
}

impl Budget {
    pub(crate) const fn new(max: u64) -> Self {
        Self { held: AtomicU64::new(0), max }
    }

    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes `bytes` and returns whether they were within the budget. They are taken in any case: the chunk is here already, and a windowed
    /// body is bounded by its window.
    fn take(&self, bytes: u64) -> bool {
        self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    fn give(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The reason why a body cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The body has as many readers as it may.
    Full,
    /// Its first bytes are gone, or it broke.
    Gone,
}

/// The bounds of a body, and where it goes when it is too long for memory.
pub(crate) struct Bounds {
    /// The longest body that is kept in memory.
    pub(crate) memory_max: u64,
    /// The disk tier, and the longest body that may go there.
    pub(crate) spool: Option<(Arc<Spool>, u64)>,
    pub(crate) budget: Arc<Budget>,
}

/// The body itself, shared by the writer and its readers.
pub(crate) struct Growing<E> {
    length_hint: Option<u64>,
    bounds: Bounds,
    body: Mutex<Body<E>>,
}

struct Body<E> {
    /// The chunks in memory, each with its offset in the whole. They are contiguous, and end at `total`.
    chunks: VecDeque<(u64, Bytes)>,
    total: u64,
    /// The bytes that `chunks` took from the budget.
    taken: u64,
    spooled: Option<Spooled>,
    windowed: bool,
    end: Option<Result<(), Broken<E>>>,
    /// The number of readers at each offset. The first offset is what the window must keep; a plain list of readers would have to be
    /// searched for it by each of them at each chunk.
    offsets: BTreeMap<u64, usize>,
    /// The offset before which readers were dropped. Those are not in `offsets` any more.
    dropped_before: u64,
    readers: usize,
    waiting: Wakers,
    writer: Option<Waker>,
}

/// The part of a body that is in its file.
struct Spooled {
    file: Arc<SpoolFile>,
    /// The bytes that can be read from it.
    written: u64,
    /// Whether more are being written: by one job at a time.
    writing: bool,
}

/// The next data for a reader at its offset.
enum Next<E> {
    Chunk(Bytes),
    InFile(Arc<SpoolFile>, Range<u64>),
    End,
    Broken(Broken<E>),
}

/// Says where a body is kept after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    /// The body is in memory, whole.
    Whole,
    /// The body is in memory and in its file, whole.
    Spooled,
    /// The body is not whole.
    Windowed,
}

impl<E> Growing<E> {
    /// Creates a body that `readers` already wait for. One that is announced as too long for memory is spooled or windowed from its first
    /// byte.
    pub(crate) fn new(length_hint: Option<u64>, bounds: Bounds, readers: usize) -> Self {
        let mut body = Body {
            chunks: VecDeque::new(),
            total: 0,
            taken: 0,
            spooled: None,
            windowed: false,
            end: None,
            offsets: BTreeMap::new(),
            dropped_before: 0,
            readers: 0,
            waiting: Wakers::default(),
            writer: None,
        };
        if length_hint.is_some_and(|length| length > bounds.memory_max) {
            body.outgrow(&bounds, length_hint);
        }
        if readers > 0 {
            body.offsets.insert(0, readers);
            body.readers = readers;
        }
        Self { length_hint, bounds, body: Mutex::new(body) }
    }

    /// Returns the number of readers.
    pub(crate) fn readers(&self) -> usize {
        self.body.lock().readers
    }

    /// Counts one more reader at the first byte, which then becomes a [`Reader::entered`].
    pub(crate) fn enter(&self, readers_max: usize) -> Result<(), Refused> {
        let mut body = self.body.lock();
        // A windowed body that still has its first bytes may be entered: its leader's own client comes in after it was announced as too
        // long. Its flight is closed, so nobody else tries.
        let gone = body.first() > 0 && (body.windowed || body.spooled.is_none());
        if gone || matches!(body.end, Some(Err(_))) {
            return Err(Refused::Gone);
        }
        if body.readers >= readers_max {
            return Err(Refused::Full);
        }
        body.readers += 1;
        *body.offsets.entry(0).or_default() += 1;
        Ok(())
    }

    /// Removes one reader.
    pub(crate) fn leave(&self, offset: u64, slot: &mut WakerSlot) {
        let mut body = self.body.lock();
        let own = body.waiting.leave(slot);
        body.readers -= 1;
        if offset >= body.dropped_before {
            body.depart(offset);
        }
        let writer = self.trim(&mut body);
        drop(body);
        drop(own);
        wakers::wake(Vec::from_iter(writer));
    }

    /// Adds bytes and wakes the readers.
    pub(crate) fn append(&self, chunk: Bytes) -> Retention {
        let chunk = if chunk.len() < COPY_BELOW { Bytes::copy_from_slice(&chunk) } else { chunk };
        let length = chunk.len() as u64;
        let mut body = self.body.lock();
        if length == 0 {
            return body.kept();
        }
        let within = self.bounds.budget.take(length + CHUNK);
        body.taken += length + CHUNK;
        let at = body.total;
        body.chunks.push_back((at, chunk));
        body.total += length;
        if !within || body.total > self.bounds.memory_max {
            body.outgrow(&self.bounds, self.length_hint);
        }
        let (kept, readers) = (body.kept(), body.waiting.take());
        let writer = self.trim(&mut body);
        drop(body);
        drop(writer);
        wakers::wake(readers);
        kept
    }

    /// Drops the readers that the writer waits for: those at the slowest offset. They get [`Broken::TooSlow`] if they ever ask again.
    /// Returns their number.
    pub(crate) fn drop_slowest(&self) -> usize {
        let mut body = self.body.lock();
        if !body.windowed || body.lag() <= WINDOW {
            return 0;
        }
        let Some((offset, count)) = body.offsets.pop_first() else { return 0 };
        body.dropped_before = offset + 1;
        let writer = self.trim(&mut body);
        drop(body);
        wakers::wake(Vec::from_iter(writer));
        count
    }

    pub(crate) fn is_windowed(&self) -> bool {
        self.body.lock().windowed
    }

    /// Ends the body. If it was kept whole in memory, it is joined into one allocation of exactly its size, which the readers share after
    /// that.
    pub(crate) fn complete(&self) -> Option<Bytes> {
        let chunks = {
            let body = self.body.lock();
            let chunks = || body.chunks.iter().map(|(_, chunk)| chunk.clone()).collect::<SmallVec<[Bytes; 4]>>();
            if body.windowed || body.spooled.is_some() { None } else { Some(chunks()) }
        };
        // The chunks are joined outside the lock: only the writer adds chunks, and it is here. A long body takes milliseconds, and readers
        // go on meanwhile.
        let whole = chunks.map(|chunks| {
            let mut whole = Vec::with_capacity(chunks.iter().map(Bytes::len).sum());
            chunks.iter().for_each(|chunk| whole.extend_from_slice(chunk));
            Bytes::from(whole)
        });
        let mut body = self.body.lock();
        if let Some(whole) = &whole {
            let surplus = body.taken - whole.len() as u64;
            self.bounds.budget.give(surplus);
            body.taken -= surplus;
            body.chunks.clear();
            if !whole.is_empty() {
                body.chunks.push_back((0, whole.clone()));
            }
        }
        body.end = Some(Ok(()));
        let readers = body.waiting.take();
        drop(body);
        wakers::wake(readers);
        whole
    }

    /// Ends the body early if it has no readers. It gets none afterwards.
    pub(crate) fn break_off_unread(&self) -> bool {
        let mut body = self.body.lock();
        if body.readers > 0 || body.end.is_some() {
            return false;
        }
        body.end = Some(Err(Broken::Abandoned));
        true
    }

    /// Ends the body early.
    pub(crate) fn break_off(&self, broken: Broken<E>) {
        let mut body = self.body.lock();
        body.end = Some(Err(broken));
        let readers = body.waiting.take();
        drop(body);
        wakers::wake(readers);
    }

    /// Drops the bytes that nobody needs in memory any more, and returns the writer's waker if it may go on.
    fn trim(&self, body: &mut Body<E>) -> Option<Waker> {
        let written = body.spooled.as_ref().map_or(0, |spooled| spooled.written);
        let passed = if body.windowed { body.slowest().max(written) } else { written };
        while let Some((at, chunk)) = body.chunks.front() {
            let length = chunk.len() as u64;
            if at + length > passed {
                break;
            }
            body.chunks.pop_front();
            body.taken -= length + CHUNK;
            self.bounds.budget.give(length + CHUNK);
        }
        let room = if body.windowed { body.lag() <= WINDOW } else { body.unwritten() <= WINDOW };
        if room { body.writer.take() } else { None }
    }

    /// Notes that a reader has read so many bytes from the file.
    fn advance(&self, offset: &mut u64, bytes: u64) {
        let mut body = self.body.lock();
        body.go_on(offset, bytes);
        let writer = self.trim(&mut body);
        drop(body);
        wakers::wake(Vec::from_iter(writer));
    }
}

impl<E: Clone> Growing<E> {
    fn poll_chunk(&self, offset: &mut u64, slot: &mut WakerSlot, cx: &Context<'_>) -> Poll<Next<E>> {
        let mut body = self.body.lock();
        if *offset < body.dropped_before {
            return Poll::Ready(Next::Broken(Broken::TooSlow));
        }
        if let Some(chunk) = body.at(*offset) {
            body.go_on(offset, chunk.len() as u64);
            let writer = self.trim(&mut body);
            drop(body);
            wakers::wake(Vec::from_iter(writer));
            return Poll::Ready(Next::Chunk(chunk));
        }
        if let Some(spooled) = body.spooled.as_ref().filter(|spooled| *offset < spooled.written) {
            let range = *offset..spooled.written.min(*offset + READ);
            return Poll::Ready(Next::InFile(Arc::clone(&spooled.file), range));
        }
        match &body.end {
            Some(Ok(())) => Poll::Ready(Next::End),
            Some(Err(broken)) => Poll::Ready(Next::Broken(broken.clone())),
            None => {
                let before = body.waiting.wait(slot, cx.waker());
                drop(body);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl<E> Drop for Growing<E> {
    fn drop(&mut self) {
        self.bounds.budget.give(self.body.get_mut().taken);
    }
}

impl<E> Body<E> {
    /// Returns the offset of the first byte that is held.
    fn first(&self) -> u64 {
        self.chunks.front().map_or(self.total, |(at, _)| *at)
    }

    /// Returns the offset of the slowest reader; the end, if there is none.
    fn slowest(&self) -> u64 {
        self.offsets.first_key_value().map_or(self.total, |(offset, _)| *offset)
    }

    fn lag(&self) -> u64 {
        self.total - self.slowest()
    }

    /// Returns the bytes that are not in the file yet.
    fn unwritten(&self) -> u64 {
        self.total - self.spooled.as_ref().map_or(0, |spooled| spooled.written)
    }

    /// Handles a body that became too long for memory: it goes to the disk if that is possible, else through the window.
    fn outgrow(&mut self, bounds: &Bounds, length_hint: Option<u64>) {
        let length = length_hint.unwrap_or(0).max(self.total);
        match &bounds.spool {
            Some((spool, max)) if length <= *max => {
                if self.spooled.is_none() {
                    self.spooled = Some(Spooled { file: spool.file(), written: 0, writing: false });
                }
            }
            Some(_) | None => self.windowed = true,
        }
    }

    const fn kept(&self) -> Retention {
        match &self.spooled {
            _ if self.windowed => Retention::Windowed,
            Some(_) => Retention::Spooled,
            None => Retention::Whole,
        }
    }

    /// Moves a reader.
    fn go_on(&mut self, offset: &mut u64, bytes: u64) {
        // A dropped reader is not in the list any more; it stays where it is, and learns of it when it asks again.
        if *offset >= self.dropped_before {
            let before = *offset;
            *offset += bytes;
            // In this order, as a tree that becomes empty gives its memory back.
            *self.offsets.entry(*offset).or_default() += 1;
            self.depart(before);
        }
    }

    fn depart(&mut self, offset: u64) {
        if let Some(readers) = self.offsets.get_mut(&offset) {
            *readers -= 1;
            if *readers == 0 {
                self.offsets.remove(&offset);
            }
        }
    }

    /// Returns the bytes from `offset` on, as far as their chunk goes. A reader stands between chunks, except after they were joined into
    /// one.
    fn at(&self, offset: u64) -> Option<Bytes> {
        if offset >= self.total {
            return None;
        }
        let index = self.chunks.partition_point(|(at, _)| *at <= offset).checked_sub(1)?;
        let (at, chunk) = self.chunks.get(index)?;
        let inside = usize::try_from(offset - at).expect("an offset inside a chunk is below its length");
        Some(chunk.slice(inside..))
    }
}

mod spooled;

#[cfg(test)]
mod tests;
