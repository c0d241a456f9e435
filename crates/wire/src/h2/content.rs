//! The content of a request, from the connection that reads it to whoever takes it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

/// Holds what came and was not taken yet. The window that the client was given bounds it.
#[derive(Debug)]
struct Inbox {
    pieces: VecDeque<Vec<u8>>,
    /// Whether the last piece has come.
    ended: bool,
    /// Whether as much has come as the head promised, but not the end.
    awaits_end: bool,
    /// Whether the stream or the connection ended before the content did.
    broken: bool,
    /// The number of bytes that were taken since the connection last looked.
    taken: usize,
    /// Whether nobody wants the rest.
    abandoned: bool,
    reader: Option<Waker>,
    connection: Waker,
}

/// The room that a piece has at least: content that comes in crumbs must not cost more than its bytes.
const PIECE_MIN: usize = 512;

impl Inbox {
    fn keep(&mut self, data: &[u8]) {
        match self.pieces.back_mut() {
            Some(last) if last.capacity() - last.len() >= data.len() => last.extend_from_slice(data),
            _ => {
                let mut piece = Vec::with_capacity(data.len().max(PIECE_MIN));
                piece.extend_from_slice(data);
                self.pieces.push_back(piece);
            }
        }
    }
}

/// The inbox as both ends hold it. They are on one thread, but what goes on to an origin has to be `Send` for the library that sends it.
type Both = Arc<Mutex<Inbox>>;

fn lock(both: &Both) -> MutexGuard<'_, Inbox> {
    both.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The content of a request, at the end of whoever reads it.
#[derive(Debug)]
pub struct Content(Both);

/// The content of a request, at the end of the connection that receives it.
#[derive(Debug)]
pub struct Feed(Both);

/// The error of content that ended too early: the client took its request back, or went.
#[derive(Debug)]
pub struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client broke off its request")
    }
}

impl std::error::Error for BrokenOff {}

/// Makes both ends of one request's content. `connection` is woken when something was taken.
#[must_use]
pub fn content(connection: Waker) -> (Feed, Content) {
    let inbox = Inbox {
        pieces: VecDeque::new(),
        ended: false,
        awaits_end: false,
        broken: false,
        taken: 0,
        abandoned: false,
        reader: None,
        connection,
    };
    let both = Arc::new(Mutex::new(inbox));
    (Feed(Arc::clone(&both)), Content(both))
}

/// Says what became of content at its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentTaken {
    /// The number of bytes that were taken since this was last asked.
    pub(crate) bytes: usize,
    /// Whether no more will be taken.
    pub(crate) abandoned: bool,
}

impl Feed {
    /// Adds what has come; `ends` says that it is the last.
    pub(crate) fn push(&self, data: &[u8], ends: bool) {
        let mut inbox = lock(&self.0);
        if inbox.abandoned {
            inbox.taken += data.len();
        } else if !data.is_empty() {
            inbox.keep(data);
        }
        inbox.ended |= ends;
        if let Some(reader) = inbox.reader.take() {
            reader.wake();
        }
    }

    /// Notes that all the content has come that the head promised. Its last piece is given out when the end has come, too: whoever counts on the
    /// length does not ask again, and would take a malformed message for a whole one (RFC 9113 §8.1.1).
    pub(crate) fn await_end(&self) {
        lock(&self.0).awaits_end = true;
    }

    /// Returns for how many bytes there has to be room again when nobody asks [`Feed::taken`] any more: those that were taken, and those that
    /// never were.
    pub(crate) fn settle(&self) -> usize {
        let mut inbox = lock(&self.0);
        std::mem::take(&mut inbox.taken) + inbox.pieces.iter().map(Vec::len).sum::<usize>()
    }

    /// Returns what the reader has taken since this was last asked.
    pub(crate) fn taken(&self) -> ContentTaken {
        let mut inbox = lock(&self.0);
        ContentTaken { bytes: std::mem::take(&mut inbox.taken), abandoned: inbox.abandoned }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut inbox = lock(&self.0);
        inbox.broken |= !inbox.ended;
        if let Some(reader) = inbox.reader.take() {
            reader.wake();
        }
    }
}

impl Content {
    /// Takes the next piece; nothing at the end.
    ///
    /// # Errors
    /// Fails when the client broke off its request.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut inbox = lock(&self.0);
        let is_held = inbox.awaits_end && !inbox.ended && inbox.pieces.len() == 1;
        if !is_held && let Some(piece) = inbox.pieces.pop_front() {
            inbox.taken += piece.len();
            inbox.connection.wake_by_ref();
            return Poll::Ready(Some(Ok(piece.into())));
        }
        if inbox.ended {
            return Poll::Ready(None);
        }
        if inbox.broken {
            return Poll::Ready(Some(Err(BrokenOff)));
        }
        inbox.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns whether there is any content. It waits until that is known: until some of it has come, or its end.
    pub fn poll_begins(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut inbox = lock(&self.0);
        if inbox.ended || inbox.broken || !inbox.pieces.is_empty() {
            return Poll::Ready(!inbox.ended || !inbox.pieces.is_empty());
        }
        inbox.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns whether all of the content has been taken.
    #[must_use]
    pub fn is_end_stream(&self) -> bool {
        let inbox = lock(&self.0);
        inbox.ended && inbox.pieces.is_empty()
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        let mut inbox = lock(&self.0);
        inbox.abandoned = true;
        inbox.taken += inbox.pieces.drain(..).map(|piece| piece.len()).sum::<usize>();
        inbox.connection.wake_by_ref();
    }
}
