//! Copies of files without what is not for readers: where a photograph was taken, when, with what camera, by whom, and what it showed before it
//! was cropped. Pixels are copied as they are; only the orientation and the colour profile are kept of what describes them.
//!
//! What is kept is listed, and all else is left out: a new kind of metadata must not get out because nobody has heard of it here.

mod avif;
mod bmp;
mod boxes;
mod gif;
mod ico;
mod jpeg;
mod jxl;
mod png;
mod svg;
mod webp;

use std::{
    io::{self, BufReader, Read, Seek, SeekFrom},
    ops::Range,
};

use crate::{Fault, Format, facts::START_BYTES};

/// The most pieces of which a copy consists. Files that need more are refused, so that a copy's plan holds a megabyte at most.
const PIECES_MAX: usize = 32_768;

/// One part of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Bytes of the file.
    Of(Range<u64>),
    /// Bytes that are not in the file.
    New(Vec<u8>),
    /// This number of bytes that are zero.
    Zeros(u64),
}

impl Piece {
    /// Returns its length in bytes.
    const fn bytes(&self) -> u64 {
        match self {
            Self::Of(range) => range.end - range.start,
            Self::New(bytes) => bytes.len() as u64,
            Self::Zeros(count) => *count,
        }
    }
}

/// A plan how to copy a file: the parts of the copy, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    pieces: Vec<Piece>,
    bytes: u64,
}

/// Plans a copy of a picture file without its metadata. Reads the whole file once, and the pixels of a JPEG without its end twice, and holds none of it.
///
/// The content decides about the kind of a file, and not its name. What a drawing (SVG) says in words stays, as its author can see it. Formats that have
/// no room for metadata are copied as they are.
///
/// # Errors
/// When the file cannot be read, consists of too many parts, or is of a kind whose metadata is not known here, as TIFF is.
pub fn clean(file: impl Read + Seek) -> Result<Cleaned, Fault> {
    let mut scan = Scan::new(file)?;
    scan.plan()?;
    Ok(scan.cleaned)
}

/// Tells whether a picture file can be copied without its metadata. Reads what describes the picture, and not its coded pixels: of a
/// photograph, that is less than a megabyte.
///
/// # Errors
/// Fails as [`clean`] does.
pub fn check_clean(file: impl Read + Seek) -> Result<(), Fault> {
    let mut scan = Scan::new(file)?;
    scan.stops_at_pixels = true;
    scan.plan()
}

/// Tells whether a file that begins so is text. The last character may be cut off.
fn is_text(start: &[u8]) -> bool {
    let is_utf8 = std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_utf8 && start.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
}

/// Reads a JPEG to the end of its picture. Returns whether that is there.
pub(crate) fn has_jpeg_end(file: impl Read + Seek) -> Result<bool, Fault> {
    jpeg::clean(&mut Scan::new(file)?)
}

impl Cleaned {
    /// Returns the length of the copy.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tells whether the copy is the file itself, which has `bytes` bytes.
    #[must_use]
    pub fn is_whole(&self, bytes: u64) -> bool {
        self.pieces == [Piece::Of(0..bytes)] || bytes == 0
    }

    /// Copies a file that is held in memory.
    ///
    /// # Errors
    /// When `content` is shorter than the file that was planned for.
    pub fn of(&self, content: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut copy = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        for piece in &self.pieces {
            match piece {
                Piece::New(bytes) => copy.extend_from_slice(bytes),
                Piece::Zeros(count) => copy.resize(copy.len() + usize::try_from(*count).map_err(|_| Fault::TooLong)?, 0),
                Piece::Of(range) => {
                    let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
                    let kept = range.and_then(|(start, end)| content.get(start..end)).ok_or(Fault::Changed)?;
                    copy.extend_from_slice(kept);
                }
            }
        }
        Ok(copy)
    }

    /// Returns a reader of the copy. It holds no more than what is asked for.
    pub const fn read<R: Read + Seek>(self, file: R) -> Reading<R> {
        Reading { file, cleaned: self, piece: 0, at: 0 }
    }
}

/// A reader of a copy. It takes each part from the file when it is asked for.
#[derive(Debug)]
pub struct Reading<R> {
    file: R,
    cleaned: Cleaned,
    piece: usize,
    /// The number of bytes of the piece that were read.
    at: u64,
}

impl<R: Read + Seek> Read for Reading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match self.cleaned.pieces.get(self.piece) {
                None => return Ok(0),
                Some(Piece::New(bytes)) => {
                    let rest = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                    let count = rest.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&rest[..count]);
                    count
                }
                Some(Piece::Zeros(length)) => {
                    let count = usize::try_from(length - self.at).unwrap_or(usize::MAX).min(buffer.len());
                    buffer[..count].fill(0);
                    count
                }
                Some(Piece::Of(range)) => {
                    let left = range.end - range.start - self.at;
                    let size = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                    if self.at == 0 {
                        self.file.seek(SeekFrom::Start(range.start))?;
                    }
                    let count = self.file.read(&mut buffer[..size])?;
                    if count == 0 && size > 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    count
                }
            };
            if count > 0 || buffer.is_empty() {
                self.at += count as u64;
                return Ok(count);
            }
            self.piece += 1;
            self.at = 0;
        }
    }
}

/// A file that is read once, from its beginning to its end, and the plan of its copy as far as it was read.
struct Scan<R> {
    file: BufReader<R>,
    at: u64,
    bytes: u64,
    cleaned: Cleaned,
    /// Whether only what stands before the coded pixels is looked at.
    stops_at_pixels: bool,
    /// Whether the coded pixels have begun.
    has_pixels: bool,
    /// Whether the copy ends here, as it would have too many pieces.
    is_full: bool,
}

impl<R: Read + Seek> Scan<R> {
    fn new(mut file: R) -> Result<Self, Fault> {
        let bytes = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self {
            file: BufReader::with_capacity(64 * 1024, file),
            at: 0,
            bytes,
            cleaned: Cleaned::default(),
            stops_at_pixels: false,
            has_pixels: false,
            is_full: false,
        })
    }

    /// Plans the copy by the kind of the file.
    fn plan(&mut self) -> Result<(), Fault> {
        let start = self.peek(START_BYTES)?;
        match Format::of(&start) {
            // HEIC under another name, for example, has the same boxes as AVIF.
            None if start.get(4..8) == Some(b"ftyp".as_slice()) => avif::clean(self)?,
            None if start.starts_with(jxl::SIGNATURE) => jxl::clean(self)?,
            Some(Format::Jpeg) => drop(jpeg::clean(self)?),
            Some(Format::Png) => png::clean(self)?,
            Some(Format::Gif) => gif::clean(self)?,
            Some(Format::WebP) => webp::clean(self)?,
            Some(Format::Avif) => avif::clean(self)?,
            Some(Format::Bmp) => bmp::clean(self)?,
            None if start.starts_with(jxl::CODESTREAM) => self.keep(0..self.bytes)?,
            None if ico::is_icon(&start) => ico::clean(self)?,
            Some(Format::Svg) => svg::clean(self)?,
            None if is_text(&start) => svg::clean(self)?,
            None => return Err(Fault::Unknown),
        }
        Ok(())
    }

    /// Says that the file is read up to its coded pixels. Returns whether it should be read any further.
    const fn begin_pixels(&mut self) -> bool {
        self.has_pixels = true;
        !self.stops_at_pixels
    }

    fn peek(&mut self, count: u64) -> Result<Vec<u8>, Fault> {
        let start = self.some(count)?;
        self.go_to(0)?;
        Ok(start)
    }

    const fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.at)
    }

    /// Reads the next `N` bytes, or returns nothing if the file has fewer.
    fn array<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Fault> {
        if self.left() < N as u64 {
            return Ok(None);
        }
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(Some(bytes))
    }

    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        Ok(self.array::<1>()?.map(|[byte]| byte))
    }

    /// Reads up to `count` bytes; the caller bounds them.
    fn some(&mut self, count: u64) -> Result<Vec<u8>, Fault> {
        let mut some = Vec::new();
        self.file.by_ref().take(count).read_to_end(&mut some)?;
        self.at += some.len() as u64;
        Ok(some)
    }

    fn go_to(&mut self, at: u64) -> Result<(), Fault> {
        let at = at.min(self.bytes);
        let offset = i64::try_from(at).unwrap_or(i64::MAX) - i64::try_from(self.at).unwrap_or(i64::MAX);
        self.file.seek_relative(offset)?;
        self.at = at;
        Ok(())
    }

    /// Adds bytes of the file to the copy. What lies behind the end of the file is ignored.
    fn keep(&mut self, range: Range<u64>) -> Result<(), Fault> {
        let range = range.start..range.end.min(self.bytes);
        if range.is_empty() || self.is_full {
            return Ok(());
        }
        if let Some(Piece::Of(last)) = self.cleaned.pieces.last_mut()
            && last.end == range.start
        {
            last.end = range.end;
            self.cleaned.bytes += range.end - range.start;
            return Ok(());
        }
        self.push(Piece::Of(range))
    }

    fn add(&mut self, bytes: Vec<u8>) -> Result<(), Fault> {
        if bytes.is_empty() { Ok(()) } else { self.push(Piece::New(bytes)) }
    }

    fn zeros(&mut self, count: u64) -> Result<(), Fault> {
        if count == 0 { Ok(()) } else { self.push(Piece::Zeros(count)) }
    }

    fn push(&mut self, piece: Piece) -> Result<(), Fault> {
        if self.cleaned.pieces.len() >= PIECES_MAX {
            // No picture has so many parts within its pixels. A fault there would be known only when all of the file was read.
            self.is_full = self.has_pixels;
            return if self.is_full { Ok(()) } else { Err(Fault::damaged("it has too many parts")) };
        }
        self.cleaned.bytes += piece.bytes();
        self.cleaned.pieces.push(piece);
        Ok(())
    }

    /// Ends the copy before a place of the file.
    fn cut(&mut self, at: u64) {
        while let Some(piece) = self.cleaned.pieces.pop() {
            self.cleaned.bytes -= piece.bytes();
            if let Piece::Of(range) = piece
                && range.start < at
            {
                let kept = Piece::Of(range.start..range.end.min(at));
                self.cleaned.bytes += kept.bytes();
                self.cleaned.pieces.push(kept);
                break;
            }
        }
    }

    /// Inserts bytes before the part with this index.
    fn put_at(&mut self, index: usize, bytes: Vec<u8>) {
        self.cleaned.bytes += bytes.len() as u64;
        self.cleaned.pieces.insert(index, Piece::New(bytes));
    }
}

/// Splits the first part of a plan after `length` bytes, so that something can be inserted there.
fn split_first(cleaned: &mut Cleaned, length: u64) {
    if let Some(Piece::Of(first)) = cleaned.pieces.first().cloned()
        && first.end - first.start > length
    {
        let at = first.start + length;
        cleaned.pieces[0] = Piece::Of(first.start..at);
        cleaned.pieces.insert(1, Piece::Of(at..first.end));
    }
}

/// Returns Exif data with the orientation of the picture alone.
fn exif_of(orientation: u8) -> Vec<u8> {
    let mut exif = Vec::with_capacity(26);
    // TIFF 6.0 §2: little-endian, one directory at 8 with one entry, of tag 0x0112, a short.
    exif.extend_from_slice(b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0");
    exif.extend_from_slice(&[orientation, 0, 0, 0]);
    exif.extend_from_slice(&[0; 4]);
    exif
}

#[cfg(test)]
mod tests;
