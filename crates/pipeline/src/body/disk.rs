//! Content that lies in a file, on its way to one client: read in verified pieces, at the client's pace.

use std::{
    collections::VecDeque,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use semantics::range::Part;
use store::{OpenBody, Reading};

use crate::BodyError;

/// Ranges of one stored body, and the text between them.
///
/// Holds a piece of at most 64 KiB while the client takes the one before: 128 KiB for a client that is slow.
#[derive(Debug)]
pub struct DiskStream {
    open: OpenBody,
    /// The parts that are left to send.
    parts: VecDeque<Part>,
    left: u64,
    /// The front of the first part.
    reading: Option<Reading>,
}

impl DiskStream {
    /// Begins to read.
    pub(crate) fn new(open: OpenBody, parts: impl IntoIterator<Item = Part>) -> Self {
        let parts: VecDeque<_> = parts.into_iter().collect();
        let left = parts.iter().map(length).sum();
        let mut stream = Self { open, parts, left, reading: None };
        stream.read_ahead();
        stream
    }

    pub(crate) fn of_range(open: OpenBody, range: Range<u64>) -> Self {
        Self::new(open, [Part::Slice(range)])
    }

    /// Bytes that are still to come.
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    /// Returns the next bytes. An error is the end: what was stored is damaged, and no byte of it is sent.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let piece = match (&mut self.reading, self.parts.front_mut()) {
            (Some(reading), Some(Part::Slice(range))) => match ready!(Pin::new(reading).poll(cx)) {
                Ok(piece) => {
                    range.start += piece.len() as u64;
                    piece
                }
                Err(error) => {
                    self.parts.clear();
                    self.reading = None;
                    self.left = 0;
                    return Poll::Ready(Some(Err(error.into())));
                }
            },
            (_, Some(Part::Text(text))) => Bytes::from(std::mem::take(text)),
            (None, Some(Part::Slice(_))) | (_, None) => return Poll::Ready(None),
        };
        self.left -= piece.len() as u64;
        self.read_ahead();
        Poll::Ready(Some(Ok(piece)))
    }

    /// Begins to read what comes next, without waiting for it.
    fn read_ahead(&mut self) {
        while self.parts.front().is_some_and(|part| length(part) == 0) {
            self.parts.pop_front();
        }
        self.reading = match self.parts.front() {
            Some(Part::Slice(range)) => Some(self.open.read(range)),
            Some(Part::Text(_)) | None => None,
        };
    }
}

fn length(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Slice(range) => range.end - range.start,
    }
}
