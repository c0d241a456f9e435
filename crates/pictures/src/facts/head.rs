//! Reading numbers from the beginning of a file, with a bound on how much work a file can make.

use std::io::{BufReader, Read, Seek, SeekFrom};

use crate::fault::Fault;

/// The most pieces (segments, chunks, boxes, blocks) that are looked at in one file. Real pictures have a few dozen before their size is known.
const PIECES_MAX: u32 = 20_000;

/// A file that is read from its beginning.
pub(crate) struct Head<R> {
    file: BufReader<R>,
    at: u64,
    bytes: u64,
    pieces: u32,
}

impl<R: Read + Seek> Head<R> {
    pub(crate) fn new(mut file: R) -> Result<Self, Fault> {
        let bytes = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self { file: BufReader::with_capacity(4096, file), at: 0, bytes, pieces: 0 })
    }

    /// Returns where the next byte lies.
    pub(crate) const fn at(&self) -> u64 {
        self.at
    }

    /// Returns the length of the file.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts a piece of the file.
    pub(crate) fn piece(&mut self) -> Result<(), Fault> {
        self.pieces += 1;
        if self.pieces > PIECES_MAX { Err(Fault::damaged("it has too many parts")) } else { Ok(()) }
    }

    /// Returns up to `count` bytes from the beginning of the file, without moving on.
    pub(crate) fn peek(&mut self, count: u64) -> Result<Vec<u8>, Fault> {
        let mut start = Vec::new();
        self.file.by_ref().take(count).read_to_end(&mut start)?;
        self.go_to(self.at)?;
        Ok(start)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn be16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn be32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn le16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn le24(&mut self) -> Result<u32, Fault> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    pub(crate) fn le32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the next `count` bytes; the caller bounds them.
    pub(crate) fn block(&mut self, count: u64) -> Result<Vec<u8>, Fault> {
        if count > self.bytes.saturating_sub(self.at) {
            return Err(Fault::Truncated);
        }
        let mut block = Vec::new();
        self.file.by_ref().take(count).read_to_end(&mut block)?;
        self.at += block.len() as u64;
        if block.len() as u64 == count { Ok(block) } else { Err(Fault::Truncated) }
    }

    /// Passes over `count` bytes.
    pub(crate) fn skip(&mut self, count: u64) -> Result<(), Fault> {
        let to = self.at.saturating_add(count);
        if to > self.bytes {
            return Err(Fault::Truncated);
        }
        let offset = i64::try_from(count).map_err(|_| Fault::Truncated)?;
        self.file.seek_relative(offset)?;
        self.at = to;
        Ok(())
    }

    pub(crate) fn go_to(&mut self, at: u64) -> Result<(), Fault> {
        self.file.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }
}
