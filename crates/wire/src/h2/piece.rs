//! Content on its way out: parts of stored pages, where they lie, or bytes of our own.

use std::rc::Rc;

use bytes::{Buf, Bytes};

/// A piece of content.
#[derive(Debug)]
pub enum Piece<H> {
    /// A stored page, from this byte to its end.
    Stored(H, usize),
    /// A part of a stored page: from the first byte to before the second.
    Part(Rc<H>, usize, usize),
    /// Bytes that are nowhere else.
    Bytes(Bytes),
}

impl<H: AsRef<[u8]>> Piece<H> {
    /// Returns how many bytes are here and nowhere else.
    pub(crate) fn own_len(&self) -> usize {
        if let Self::Bytes(bytes) = self { bytes.len() } else { 0 }
    }

    /// Takes off what fits into `room`, and returns whether that was all of it.
    pub(crate) fn take(&mut self, room: usize) -> (Self, bool) {
        let is_whole = self.remaining() <= room;
        let taken = match self {
            Self::Part(page, from, to) => {
                let cut = (*from + room).min(*to);
                let taken = Self::Part(Rc::clone(page), *from, cut);
                *from = cut;
                taken
            }
            Self::Bytes(bytes) => Self::Bytes(bytes.split_to(room.min(bytes.len()))),
            // Only whole ones are sent so.
            Self::Stored(_, _) => Self::Bytes(Bytes::new()),
        };
        (taken, is_whole)
    }
}

impl<H: AsRef<[u8]>> Buf for Piece<H> {
    fn remaining(&self) -> usize {
        self.chunk().len()
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Self::Stored(page, from) => page.as_ref().get(*from..),
            Self::Part(page, from, to) => (**page).as_ref().get(*from..*to),
            Self::Bytes(bytes) => Some(bytes.as_ref()),
        }
        .unwrap_or_default()
    }

    fn advance(&mut self, n: usize) {
        match self {
            Self::Stored(_, from) | Self::Part(_, from, _) => *from += n,
            Self::Bytes(bytes) => bytes.advance(n),
        }
    }
}
