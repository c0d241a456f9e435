//! Limits on what is read: no piece of an export is held in memory beyond a bound.

use std::{
    cell::Cell,
    io::{self, BufRead, Read},
    rc::Rc,
};

/// The largest single text in an export.
pub(crate) const PIECE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A reader of JSON that refuses a string that is too long to hold.
#[derive(Debug)]
pub(crate) struct ShortStrings<R> {
    inner: R,
    is_in_string: bool,
    is_escaped: bool,
    length: usize,
}

impl<R> ShortStrings<R> {
    pub(crate) const fn new(inner: R) -> Self {
        Self { inner, is_in_string: false, is_escaped: false, length: 0 }
    }
}

impl<R: Read> Read for ShortStrings<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for &byte in &buffer[..count] {
            if !self.is_in_string {
                self.is_in_string = byte == b'"';
                self.length = 0;
                continue;
            }
            self.length += 1;
            if self.is_escaped {
                self.is_escaped = false;
            } else if byte == b'\\' {
                self.is_escaped = true;
            } else if byte == b'"' {
                self.is_in_string = false;
            }
        }
        if self.length > PIECE_BYTES_MAX { Err(too_long()) } else { Ok(count) }
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("one text in it is longer than {} MiB", PIECE_BYTES_MAX / 1024 / 1024))
}

/// A reader that refuses to be read further than a bound, until its mark is reset: a piece that never ends fills no memory. It counts lines as well.
#[derive(Debug)]
pub(crate) struct Pieces<R> {
    inner: R,
    count: Rc<Cell<usize>>,
    lines: Rc<Cell<usize>>,
}

/// Resets the bound of [`Pieces`], and tells the line.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    count: Rc<Cell<usize>>,
    lines: Rc<Cell<usize>>,
}

impl Mark {
    pub(crate) fn reset(&self) {
        self.count.set(0);
    }

    /// Returns the number of the line that is read, from 1.
    pub(crate) fn line(&self) -> usize {
        self.lines.get() + 1
    }
}

impl<R> Pieces<R> {
    pub(crate) fn new(inner: R) -> (Self, Mark) {
        let (count, lines) = (Rc::default(), Rc::default());
        let mark = Mark { count: Rc::clone(&count), lines: Rc::clone(&lines) };
        (Self { inner, count, lines }, mark)
    }
}

impl<R: BufRead> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Pieces<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.count.get() > PIECE_BYTES_MAX {
            return Err(too_long());
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Ok(buffer) = self.inner.fill_buf() {
            let consumed = &buffer[..amount.min(buffer.len())];
            let breaks = consumed.iter().filter(|&&byte| byte == b'\n').count();
            self.lines.set(self.lines.get() + breaks);
        }
        self.count.set(self.count.get() + amount);
        self.inner.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_is_too_long_is_refused() {
        let long = io::repeat(b'a').take(PIECE_BYTES_MAX as u64 + 100_000);
        let mut reader = ShortStrings::new(io::Cursor::new(b"{\"a\":\"").chain(long));
        let error = io::copy(&mut reader, &mut io::sink()).expect_err("refused");
        assert!(error.to_string().contains("longer than 64 MiB"), "{error}");
        let many = b"\"abc\\\"\",".repeat(100);
        assert_eq!(io::copy(&mut ShortStrings::new(many.as_slice()), &mut io::sink()).expect("fine"), many.len() as u64);
    }

    #[test]
    fn a_piece_that_never_ends_is_refused() {
        let (mut reader, mark) = Pieces::new(io::BufReader::new(io::repeat(b'\n').take(3 * PIECE_BYTES_MAX as u64)));
        let mut half = vec![0; PIECE_BYTES_MAX / 2];
        reader.read_exact(&mut half).expect("read");
        assert_eq!(mark.line(), PIECE_BYTES_MAX / 2 + 1);
        mark.reset();
        assert!(io::copy(&mut reader, &mut io::sink()).is_err());
    }
}
