//! The leader's hand on a growing body.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::content::Content;
use crate::flight::{Failure, FlightGuard, Seat};
use crate::growing::{Broken, Growing, NobodyReads, Reader, Retention};
use crate::purge::Generation;
use crate::resource::Record;

/// Writes the body that a flight's followers read. Belongs to the fetch, not to a client: no reader's departure is noticed here, except
/// when the body is too long to be stored and the last reader has gone, or when the fetch [asks](Self::give_up_unread).
///
/// Dropping it breaks the body off: readers get [`Broken::Abandoned`] after the bytes that arrived.
pub struct Writer<R: Record, E: Failure> {
    growing: Arc<Growing<E>>,
    /// The seat, as long as the flight has followers that may read the body, and it may be stored.
    seat: Option<Seat<R, E>>,
    begun: Generation,
    /// Whether the body has come to an end, so that dropping knows whether readers still wait for one.
    ended: bool,
}

impl<R: Record, E: Failure> Writer<R, E> {
    pub(crate) fn new(growing: Arc<Growing<E>>, seat: Seat<R, E>) -> Self {
        let begun = seat.begun();
        if growing.is_windowed() {
            seat.close();
        }
        Self { growing, seat: Some(seat), begun, ended: false }
    }

    /// Returns the generation at which the fetch began.
    pub fn begun(&self) -> Generation {
        self.begun
    }

    /// Returns a reader from the first byte, for the leader's own client. `None` if the first bytes are gone already, which cannot be
    /// before the first [`push`](Self::push).
    pub fn reader(&self) -> Option<Reader<E>> {
        self.growing.enter(usize::MAX).ok().map(|()| Reader::entered(Arc::clone(&self.growing)))
    }

    /// Lets the followers in that were [held back](crate::Lead::serve_leader), and those who join until the flight ends. Call it before the body
    /// outgrows memory: with its first bytes gone, they have to join again.
    pub fn let_in(&self, record: Arc<R>) {
        if let Some(seat) = &self.seat {
            seat.let_in(record, &self.growing);
        }
    }

    /// Tells the followers that were [held back](crate::Lead::serve_leader) that the answer may not be shared, while the leader's own client reads
    /// on. Nothing is stored then. Mark the key as uncacheable before, so that latecomers do not wait again.
    pub fn uncacheable(&mut self) {
        if let Some(seat) = self.seat.take() {
            seat.uncacheable();
        }
    }

    /// Adds bytes. Returns at once as long as the body is kept in memory; after that it waits for the disk. If the body cannot be stored, it
    /// waits for the slowest reader, and fails if there is none.
    ///
    /// The bytes are taken before the wait, so cancelling it loses none; but pushing again without having [waited](Self::room) gives up the
    /// bound on memory.
    pub async fn push(&mut self, chunk: Bytes) -> Result<(), NobodyReads> {
        match self.growing.append(chunk) {
            Retention::Whole => Ok(()),
            Retention::Spooled => self.room().await,
            Retention::Windowed => {
                // Followers who are still held back would wait for a body that cannot be stored: they join again.
                if self.seat.as_ref().is_some_and(|seat| seat.waiting() > 0) {
                    self.seat = None;
                }
                if let Some(seat) = &self.seat {
                    seat.close();
                }
                self.room().await
            }
        }
    }

    /// Waits as [`push`](Self::push) does; for use after that was cancelled.
    pub async fn room(&self) -> Result<(), NobodyReads> {
        std::future::poll_fn(|cx| self.growing.poll_room(cx)).await
    }

    /// Drops the readers that the writer waits for, so that the others can go on: they get [`Broken::TooSlow`]. Returns how many; none if
    /// it waits for no reader. Call it when a push has taken longer than one client may hold up all the others.
    pub fn drop_slowest(&self) -> usize {
        self.growing.drop_slowest()
    }

    /// Gives the fetch up if nobody reads it. Whoever asks meanwhile either keeps it going or begins another one, never reads half a body.
    #[must_use]
    pub fn give_up_unread(&mut self) -> bool {
        if self.seat.as_ref().is_some_and(|seat| seat.waiting() > 0) {
            return false;
        }
        let unread = self.growing.break_off_unread();
        if unread {
            self.seat = None;
            self.ended = true;
        }
        unread
    }

    /// Completes the body, so that readers come to its end. Returns all of it, in an allocation of exactly its size or, once all is written, in a
    /// file; and the guard of a flight that can still be joined: store the response, then drop the guard, and there is no moment in which a
    /// request finds neither.
    ///
    /// Returns `None` if the body outgrew what may be stored, or the disk failed. Cancelling it stores nothing; the readers have come to
    /// the end all the same.
    pub async fn complete(mut self) -> Option<(Content, FlightGuard<R, E>)> {
        let (seat, whole) = (self.seat.take(), self.growing.complete());
        self.ended = true;
        let seat = seat?;
        let whole = match whole {
            Some(whole) => Content::Memory(whole),
            None => Content::Disk(self.growing.spooled().await?),
        };
        Some((whole, FlightGuard::new(seat)))
    }

    /// Ends the body because the origin broke off: readers get the error after the bytes that arrived.
    pub fn fail(mut self, error: E) {
        if let Some(seat) = self.seat.take() {
            seat.fail(error.clone());
        }
        self.end(Broken::Failed(error));
    }

    /// Breaks the body off. It leaves the table first, so that a request that learns of the end and asks again finds no broken flight.
    fn end(&mut self, broken: Broken<E>) {
        self.seat = None;
        if !self.ended {
            self.ended = true;
            self.growing.break_off(broken);
        }
    }
}

impl<R: Record, E: Failure> Drop for Writer<R, E> {
    fn drop(&mut self) {
        self.end(Broken::Abandoned);
    }
}

impl<R: Record, E: Failure> fmt::Debug for Writer<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("begun", &self.begun).finish_non_exhaustive()
    }
}
