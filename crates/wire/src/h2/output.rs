//! The output that is ready to leave: frames in the order in which they will be sent, contents where they lie.

use std::{collections::VecDeque, io::IoSlice};

use bytes::Buf;

use super::piece::Piece;

/// The number of slices that are handed over at once.
pub const SLICES: usize = 32;

/// The number of sent bytes that are kept before what follows them moves up.
const SENT_MAX: usize = 32 * 1024;

/// The room that is made at first: the heads of a few responses fit.
const AT_FIRST: usize = 2048;

/// The size of the buffer that an idle connection may keep.
const KEPT: usize = 1024;

/// Holds what is ready to leave, in order.
#[derive(Debug)]
pub struct Output<H> {
    /// Frames without contents, and the heads of those with.
    bytes: Vec<u8>,
    /// The number of their bytes that have left.
    at: usize,
    segments: VecDeque<Segment<H>>,
    len: usize,
}

#[derive(Debug)]
enum Segment<H> {
    /// The first bytes of the piece, so many.
    Bytes(usize),
    Piece(Piece<H>),
}

impl<H: AsRef<[u8]>> Output<H> {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), at: 0, segments: VecDeque::new(), len: 0 }
    }

    /// Returns how many bytes have not left.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether everything has left.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends what `write` appends to the buffer that it is given.
    pub(crate) fn write<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = self.bytes.len();
        if before == 0 {
            self.bytes.reserve(AT_FIRST);
        }
        let written = write(&mut self.bytes);
        let more = self.bytes.len() - before;
        self.len += more;
        match self.segments.back_mut() {
            Some(Segment::Bytes(len)) => *len += more,
            _ => self.segments.push_back(Segment::Bytes(more)),
        }
        written
    }

    /// Appends a piece of content.
    pub(crate) fn piece(&mut self, piece: Piece<H>) {
        self.len += piece.remaining();
        self.segments.push_back(Segment::Piece(piece));
    }

    /// Fills `slices` with what leaves next. Returns how many there are.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let mut at = self.at;
        let mut filled = 0;
        for (segment, slice) in self.segments.iter().zip(slices.iter_mut()) {
            *slice = IoSlice::new(match segment {
                Segment::Bytes(len) => {
                    at += len;
                    self.bytes.get(at - len..at).unwrap_or_default()
                }
                Segment::Piece(piece) => piece.chunk(),
            });
            filled += 1;
        }
        filled
    }

    /// Notes that so many bytes have left.
    pub(crate) fn advance(&mut self, mut sent: usize) {
        self.len -= sent;
        while let Some(segment) = self.segments.front_mut() {
            let here = match segment {
                Segment::Bytes(len) => *len,
                Segment::Piece(piece) => piece.remaining(),
            };
            if here > sent {
                match segment {
                    Segment::Bytes(len) => {
                        *len -= sent;
                        self.at += sent;
                    }
                    Segment::Piece(piece) => piece.advance(sent),
                }
                break;
            }
            if let Segment::Bytes(len) = segment {
                self.at += *len;
            }
            sent -= here;
            self.segments.pop_front();
        }
        if self.segments.is_empty() {
            self.at = 0;
            self.bytes.clear();
        } else if self.at > SENT_MAX {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    /// Gives back memory that is not needed while nothing happens.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() && (self.bytes.capacity() > KEPT || self.segments.capacity() > 16) {
            *self = Self::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_however_it_is_taken() {
        let page = Rc::new(b"abcdefghij".to_vec());
        for step in 1..30 {
            let mut output = Output::new();
            output.write(|bytes| bytes.extend_from_slice(b"one"));
            output.write(|bytes| bytes.extend_from_slice(b"two"));
            output.piece(Piece::Part(Rc::clone(&page), 2, 5));
            output.write(|bytes| bytes.extend_from_slice(b"three"));
            output.piece(Piece::Bytes(bytes::Bytes::from_static(b"four")));
            output.piece(Piece::Stored(b"stored".to_vec(), 0));
            let mut seen = Vec::new();
            while !output.is_empty() {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let filled = output.slices(&mut slices);
                let whole: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(whole.len(), output.len());
                let taken = step.min(whole.len());
                seen.extend_from_slice(&whole[..taken]);
                output.advance(taken);
            }
            assert_eq!(seen, b"onetwocdethreefourstored", "{step} at a time");
        }
    }
}
