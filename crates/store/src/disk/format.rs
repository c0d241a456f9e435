//! One stored response as one file, or as an entry of a [pack](super::packs).
//!
//! ```text
//! body | head | footer
//! head:   key, URL, tags, record, and a checksum of every piece of the body
//! footer: 64 bytes: magic, version, all lengths, generation, sequence, checksum of the head, checksum of itself
//! ```
//!
//! The body comes first, so that one of unknown length is written as it arrives and finished by appending; and the footer last, so that a
//! file cut short anywhere has none. The lengths must add up to the file's own length before anything is allocated by them: a file can
//! claim nothing that is not there. CRC-32 finds every burst of up to 32 flipped bits and all but one in 2^32 of other damage. It is no
//! defence against somebody who may write into the folder; the folder's permissions are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Buf;

use crate::purge::Generation;
use crate::resource::Scope;

/// The version of this layout. A file with another one belongs to another version: it is a miss, and is removed.
pub(crate) const VERSION: u16 = 1;
/// The bytes of the body under one checksum: a range is verified without reading the whole.
pub(crate) const PIECE: usize = 64 << 10;
/// The longest head that is written or accepted, without the checksums of pieces. Heads of origins and keys are kilobytes.
pub(crate) const HEAD_MAX: usize = 4 << 20;
/// The bytes of the footer.
pub(crate) const FOOTER: usize = 64;
/// The bytes that suffice for most records.
const RECORD_USUAL: usize = 1 << 10;

const MAGIC: [u8; 8] = *b"seawall\x1a";

/// All data about a stored response except its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) key: Box<[u8]>,
    pub(crate) scope: Scope,
    pub(crate) begun: Generation,
    /// The number of the file, unique among all that were ever written to the folder.
    pub(crate) sequence: u64,
    /// The record, as [`Record::encode`](crate::Record::encode) wrote it.
    pub(crate) record: Vec<u8>,
    pub(crate) body_len: u64,
    /// The checksums, one for each [`PIECE`] of the body; the last piece may be shorter.
    pub(crate) pieces: Vec<u32>,
}

/// All data about a stored response except its body, where it is kept.
pub(crate) struct HeadParts<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) scope: &'a Scope,
    pub(crate) begun: Generation,
    /// See [`Head::sequence`].
    pub(crate) sequence: u64,
    /// Appends the record.
    pub(crate) record: &'a dyn Fn(&mut Vec<u8>),
    pub(crate) body_len: u64,
    /// See [`Head::pieces`].
    pub(crate) pieces: &'a [u32],
}

impl HeadParts<'_> {
    /// Returns the bytes that follow the body: head and footer. `None` if they are too long to be accepted when they are read.
    pub(crate) fn tail(&self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.key.len() + self.scope.url.len() + RECORD_USUAL + self.pieces.len() * 4 + FOOTER);
        out.extend_from_slice(self.key);
        out.extend_from_slice(&self.scope.url);
        let tags = out.len();
        for tag in &self.scope.tags {
            out.extend_from_slice(&u32::try_from(tag.len()).ok()?.to_le_bytes());
            out.extend_from_slice(tag.as_bytes());
        }
        let tags = out.len() - tags;
        let record = out.len();
        (self.record)(&mut out);
        let record = out.len() - record;
        if out.len() > HEAD_MAX {
            return None;
        }
        for piece in self.pieces {
            out.extend_from_slice(&piece.to_le_bytes());
        }
        let head = crc32fast::hash(&out);
        let footer = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.scope.site.to_le_bytes());
        for length in [self.key.len(), self.scope.url.len(), tags, record] {
            out.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
        }
        out.extend_from_slice(&head.to_le_bytes());
        for number in [self.body_len, self.begun.0, self.sequence] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&crc32fast::hash(&out[footer..]).to_le_bytes());
        Some(out)
    }
}

impl Head {
    /// Returns the bytes that follow the body, as [`HeadParts::tail`] does.
    #[cfg(test)]
    pub(crate) fn tail(&self) -> Option<Vec<u8>> {
        let parts = HeadParts {
            key: &self.key,
            scope: &self.scope,
            begun: self.begun,
            sequence: self.sequence,
            record: &|out| out.extend_from_slice(&self.record),
            body_len: self.body_len,
            pieces: &self.pieces,
        };
        parts.tail()
    }

    /// Reads and verifies the tail of an open file, without the body. `Ok(None)`: this is not a file of ours, or a damaged one.
    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let Some(at) = length.checked_sub(FOOTER as u64) else { return Ok(None) };
        let mut footer = [0; FOOTER];
        file.read_exact_at(&mut footer, at)?;
        let Some(footer) = Footer::parse(&footer, length) else { return Ok(None) };
        let mut head = vec![0; footer.head_len];
        file.read_exact_at(&mut head, footer.body_len)?;
        Ok(footer.head(&head))
    }

    /// Parses and verifies what a file holds, from all of its bytes. Returns the body, too. `None`: this is none of ours, or it is damaged.
    pub(crate) fn of_whole(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (rest, footer) = bytes.split_last_chunk()?;
        let footer = Footer::parse(footer, bytes.len() as u64)?;
        let (body, head) = rest.split_at_checked(usize::try_from(footer.body_len).ok()?)?;
        let head = footer.head(head)?;
        head.is_sound(body).then_some((head, body))
    }

    fn is_sound(&self, body: &[u8]) -> bool {
        body.chunks(PIECE).zip(&self.pieces).all(|(piece, sum)| crc32fast::hash(piece) == *sum)
    }

    /// Reads and verifies the whole body of an open file. `Ok(None)`: it is damaged.
    pub(crate) fn read_body(&self, file: &File) -> io::Result<Option<Vec<u8>>> {
        let Ok(length) = usize::try_from(self.body_len) else { return Ok(None) };
        let mut body = vec![0; length];
        file.read_exact_at(&mut body, 0)?;
        Ok(self.is_sound(&body).then_some(body))
    }
}

/// Computes the checksums of a body that comes in chunks.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    done: Vec<u32>,
    open: crc32fast::Hasher,
    filled: usize,
}

impl Pieces {
    /// Returns the checksums of a whole body.
    pub(crate) fn of(body: &[u8]) -> Vec<u32> {
        body.chunks(PIECE).map(crc32fast::hash).collect()
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.filled));
            self.open.update(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == PIECE {
                self.close();
            }
        }
    }

    /// Ends the body, and returns the checksums.
    pub(crate) fn finish(mut self) -> Vec<u32> {
        if self.filled > 0 {
            self.close();
        }
        self.done
    }

    fn close(&mut self) {
        self.done.push(std::mem::take(&mut self.open).finalize());
        self.filled = 0;
    }
}

/// The last bytes of a file, verified.
struct Footer {
    site: u16,
    key: usize,
    url: usize,
    tags: usize,
    record: usize,
    head_len: usize,
    head_sum: u32,
    body_len: u64,
    begun: u64,
    sequence: u64,
}

impl Footer {
    fn parse(bytes: &[u8; FOOTER], file_len: u64) -> Option<Self> {
        let (mut bytes, sum) = bytes.split_at(FOOTER - 4);
        if crc32fast::hash(bytes).to_le_bytes() != *sum || bytes.split_off(..MAGIC.len())? != MAGIC {
            return None;
        }
        if bytes.try_get_u16_le().ok()? != VERSION {
            return None;
        }
        let site = bytes.try_get_u16_le().ok()?;
        let mut size = || bytes.try_get_u32_le().ok().map(|size| size as usize);
        let [key, url, tags, record] = [size()?, size()?, size()?, size()?];
        let head_sum = bytes.try_get_u32_le().ok()?;
        let mut number = || bytes.try_get_u64_le().ok();
        let [body_len, begun, sequence] = [number()?, number()?, number()?];
        let parts = key.checked_add(url)?.checked_add(tags)?.checked_add(record)?;
        let pieces = usize::try_from(body_len.div_ceil(PIECE as u64)).ok()?.checked_mul(4)?;
        let head_len = parts.checked_add(pieces)?;
        let whole = body_len.checked_add(head_len as u64)?.checked_add(FOOTER as u64)?;
        (parts <= HEAD_MAX && whole == file_len).then_some(Self {
            site,
            key,
            url,
            tags,
            record,
            head_len,
            head_sum,
            body_len,
            begun,
            sequence,
        })
    }

    fn head(&self, mut bytes: &[u8]) -> Option<Head> {
        if crc32fast::hash(bytes) != self.head_sum {
            return None;
        }
        let (key, url) = (bytes.split_off(..self.key)?.into(), bytes.split_off(..self.url)?.into());
        let mut lines = bytes.split_off(..self.tags)?;
        let mut tags = Vec::new();
        while !lines.is_empty() {
            let length = lines.try_get_u32_le().ok()? as usize;
            tags.push(std::str::from_utf8(lines.split_off(..length)?).ok()?.into());
        }
        let record = bytes.split_off(..self.record)?.to_vec();
        let pieces = bytes.chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]])).collect();
        let scope = Scope { site: self.site, url, tags: tags.into() };
        Some(Head { key, scope, begun: Generation(self.begun), sequence: self.sequence, record, body_len: self.body_len, pieces })
    }
}

#[cfg(test)]
mod tests;
