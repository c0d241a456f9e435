//! A body that is still arriving, read by many while one writes.
//!
//! It begins *whole*: every byte is kept, so that it can be stored and whoever comes late starts at the first byte. When it outgrows what
//! may be stored (or the budget of all growing bodies is used up) it becomes *windowed* for good: nobody may join any more, chunks that
//! every reader has passed are dropped, and the writer waits while the slowest reader lags by more than [`WINDOW`].
//!
//! Readers are woken by the writer's bytes, never by a timer. One lock per body, held for a few pointer moves.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use thiserror::Error;

use crate::wakers::{self, Place, Wakers};

/// How far the slowest reader of a windowed body may lag, in bytes, before its writer waits. The caller must drop readers whose client
/// does not read: they hold up everybody else.
pub const WINDOW: u64 = 1 << 20;

/// Chunks below this length are copied: a chunk of a few bytes may be a slice that keeps a whole read buffer alive.
const COPY_BELOW: usize = 2_048;
/// What a chunk costs beside its bytes: its line in the list, the counters behind `Bytes`, an allocation.
const CHUNK: u64 = 96;

/// Why a body ended early.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Broken<E> {
    /// The origin broke off.
    #[error("the origin broke off in the middle of the body")]
    Failed(E),
    /// The fetch was given up without a reason: its task was dropped.
    #[error("the fetch was given up in the middle of the body")]
    Abandoned,
}

/// The body can no longer be stored and nobody reads it: the fetch should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the body is too long to be stored and nobody reads it")]
pub struct Unread;

/// One reader of a growing body. Dropping it is how a client leaves.
pub struct Reader<E> {
    growing: Arc<Growing<E>>,
    offset: u64,
    place: Place,
    ended: bool,
}

impl<E: Clone> Reader<E> {
    /// The next bytes, shared with every other reader; `None` at the end. All bytes that arrived come before an error, and after an error
    /// comes the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken<E>>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = self.growing.poll_chunk(&mut self.offset, &mut self.place, cx);
        self.ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    /// [`poll_chunk`](Self::poll_chunk) as a future. Cancel-safe: a chunk is taken only when it is returned.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Broken<E>>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }
}

impl<E> Reader<E> {
    /// The length of the whole body, as the origin announced it.
    #[must_use]
    pub fn length_hint(&self) -> Option<u64> {
        self.growing.length_hint
    }

    /// Takes over a reader that [`Growing::enter`] or [`Growing::new`] has counted.
    pub(crate) const fn entered(growing: Arc<Growing<E>>) -> Self {
        Self { growing, offset: 0, place: None, ended: false }
    }
}

impl<E> Drop for Reader<E> {
    fn drop(&mut self) {
        self.growing.leave(self.offset, &mut self.place);
    }
}

impl<E> fmt::Debug for Reader<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("offset", &self.offset).field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// Bytes held by all growing bodies of a store.
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

    /// Takes `bytes` and tells whether they were within the budget. They are taken in any case: the chunk is here already, and a windowed
    /// body is bounded by its window.
    fn take(&self, bytes: u64) -> bool {
        self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    fn give(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Why a body cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has as many readers as it may.
    Full,
    /// Its first bytes are gone, or it broke.
    Gone,
}

/// The body itself, shared by the writer and its readers.
pub(crate) struct Growing<E> {
    length_hint: Option<u64>,
    object_max: u64,
    budget: Arc<Budget>,
    body: Mutex<Body<E>>,
}

struct Body<E> {
    /// What is held, each chunk with its offset in the whole. Contiguous, ending at `total`.
    chunks: VecDeque<(u64, Bytes)>,
    total: u64,
    /// What `chunks` took from the budget.
    taken: u64,
    windowed: bool,
    end: Option<Result<(), Broken<E>>>,
    /// How many readers stand at each offset. The first offset is what the window must keep; a plain list of readers would have to be
    /// searched for it by each of them at each chunk.
    offsets: BTreeMap<u64, usize>,
    readers: usize,
    waiting: Wakers,
    writer: Option<Waker>,
}

impl<E> Growing<E> {
    /// A body that `readers` already wait for. One that is announced as too long to be stored is windowed from its first byte.
    pub(crate) fn new(length_hint: Option<u64>, object_max: u64, budget: Arc<Budget>, readers: usize) -> Self {
        let mut body = Body {
            chunks: VecDeque::new(),
            total: 0,
            taken: 0,
            windowed: length_hint.is_some_and(|length| length > object_max),
            end: None,
            offsets: BTreeMap::new(),
            readers: 0,
            waiting: Wakers::default(),
            writer: None,
        };
        if readers > 0 {
            body.offsets.insert(0, readers);
            body.readers = readers;
        }
        Self { length_hint, object_max, budget, body: Mutex::new(body) }
    }

    /// Readers now.
    pub(crate) fn readers(&self) -> usize {
        self.body.lock().readers
    }

    /// Counts one more reader at the first byte, to become a [`Reader::entered`].
    pub(crate) fn enter(&self, readers_max: usize) -> Result<(), Refused> {
        let mut body = self.body.lock();
        // A windowed body that still has its first bytes may be entered: its leader's own client comes in after it was announced as too
        // long. Its flight is closed, so nobody else tries.
        if body.first() > 0 || matches!(body.end, Some(Err(_))) {
            return Err(Refused::Gone);
        }
        if body.readers >= readers_max {
            return Err(Refused::Full);
        }
        body.readers += 1;
        *body.offsets.entry(0).or_default() += 1;
        Ok(())
    }

    /// Takes one reader away.
    pub(crate) fn leave(&self, offset: u64, place: &mut Place) {
        let mut body = self.body.lock();
        let own = body.waiting.leave(place);
        body.readers -= 1;
        body.depart(offset);
        let writer = self.trim(&mut body);
        drop(body);
        drop(own);
        wakers::wake(Vec::from_iter(writer));
    }

    /// Adds bytes and wakes the readers. Returns whether it is windowed now.
    pub(crate) fn append(&self, chunk: Bytes) -> bool {
        let chunk = if chunk.len() < COPY_BELOW { Bytes::copy_from_slice(&chunk) } else { chunk };
        let length = chunk.len() as u64;
        let mut body = self.body.lock();
        if length == 0 {
            return body.windowed;
        }
        let within = self.budget.take(length + CHUNK);
        body.taken += length + CHUNK;
        let at = body.total;
        body.chunks.push_back((at, chunk));
        body.total += length;
        body.windowed |= !within || body.total > self.object_max;
        let (windowed, readers) = (body.windowed, body.waiting.take());
        let writer = self.trim(&mut body);
        drop(body);
        drop(writer);
        wakers::wake(readers);
        windowed
    }

    /// Whether the writer may go on.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<Result<(), Unread>> {
        let mut body = self.body.lock();
        if !body.windowed {
            return Poll::Ready(Ok(()));
        }
        if body.readers == 0 {
            return Poll::Ready(Err(Unread));
        }
        if body.lag() <= WINDOW {
            return Poll::Ready(Ok(()));
        }
        let before = body.writer.replace(cx.waker().clone());
        drop(body);
        drop(before);
        Poll::Pending
    }

    pub(crate) fn is_windowed(&self) -> bool {
        self.body.lock().windowed
    }

    /// Ends the body. If it was kept whole, it is joined into one allocation of exactly its size, which the readers share from now on.
    pub(crate) fn complete(&self) -> Option<Bytes> {
        let chunks = {
            let body = self.body.lock();
            if body.windowed { None } else { Some(body.chunks.clone()) }
        };
        // Joined outside the lock: only the writer adds chunks, and it is here. A long body takes milliseconds, and readers go on meanwhile.
        let whole = chunks.map(|chunks| {
            let mut whole = Vec::with_capacity(chunks.iter().map(|(_, chunk)| chunk.len()).sum());
            chunks.iter().for_each(|(_, chunk)| whole.extend_from_slice(chunk));
            Bytes::from(whole)
        });
        let mut body = self.body.lock();
        if let Some(whole) = &whole {
            let surplus = body.taken - whole.len() as u64;
            self.budget.give(surplus);
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

    /// Ends the body early.
    pub(crate) fn break_off(&self, broken: Broken<E>) {
        let mut body = self.body.lock();
        body.end = Some(Err(broken));
        let readers = body.waiting.take();
        drop(body);
        wakers::wake(readers);
    }

    /// Drops what every reader has passed, if windowed, and returns the writer's waker if it may go on.
    fn trim(&self, body: &mut Body<E>) -> Option<Waker> {
        if !body.windowed {
            return None;
        }
        let passed = body.slowest();
        while let Some((at, chunk)) = body.chunks.front() {
            let length = chunk.len() as u64;
            if at + length > passed {
                break;
            }
            body.chunks.pop_front();
            body.taken -= length + CHUNK;
            self.budget.give(length + CHUNK);
        }
        if body.lag() <= WINDOW { body.writer.take() } else { None }
    }
}

impl<E: Clone> Growing<E> {
    fn poll_chunk(&self, offset: &mut u64, place: &mut Place, cx: &Context<'_>) -> Poll<Option<Result<Bytes, Broken<E>>>> {
        let mut body = self.body.lock();
        let Some(chunk) = body.at(*offset) else {
            return match &body.end {
                Some(Ok(())) => Poll::Ready(None),
                Some(Err(broken)) => Poll::Ready(Some(Err(broken.clone()))),
                None => {
                    let before = body.waiting.wait(place, cx.waker());
                    drop(body);
                    drop(before);
                    Poll::Pending
                }
            };
        };
        body.depart(*offset);
        *offset += chunk.len() as u64;
        *body.offsets.entry(*offset).or_default() += 1;
        let writer = self.trim(&mut body);
        drop(body);
        wakers::wake(Vec::from_iter(writer));
        Poll::Ready(Some(Ok(chunk)))
    }
}

impl<E> Drop for Growing<E> {
    fn drop(&mut self) {
        self.budget.give(self.body.get_mut().taken);
    }
}

impl<E> Body<E> {
    /// The offset of the first byte that is held.
    fn first(&self) -> u64 {
        self.chunks.front().map_or(self.total, |(at, _)| *at)
    }

    /// Where the slowest reader stands; the end, if there is none.
    fn slowest(&self) -> u64 {
        self.offsets.first_key_value().map_or(self.total, |(offset, _)| *offset)
    }

    fn lag(&self) -> u64 {
        self.total - self.slowest()
    }

    fn depart(&mut self, offset: u64) {
        if let Some(readers) = self.offsets.get_mut(&offset) {
            *readers -= 1;
            if *readers == 0 {
                self.offsets.remove(&offset);
            }
        }
    }

    /// The bytes from `offset` on, as far as their chunk goes. A reader stands between chunks, except after they were joined into one.
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

#[cfg(test)]
mod tests;
