//! The body of a stored response, in its file.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use thiserror::Error;

use super::Name;
use super::file::read_at;
use super::read::{Reading, Source};
use crate::disk::format::{Head, PIECE};
use crate::disk::io::Io;
use crate::disk::mark::Mark;

/// The error when a file cannot be read, or does not hold what was stored: a miss. The response should be [removed](crate::Store::remove).
#[derive(Debug, Error)]
#[error("the stored body cannot be read")]
pub struct Unreadable(#[from] io::Error);

/// A body that is in a file. It is cheap to clone: all clones are one body.
///
/// It keeps the name, not the open file: there are thousands of stored bodies, and there must not be as many open files. Those who deliver
/// it at the same time share one open file.
#[derive(Clone)]
pub struct DiskBody(Arc<Inner>);

struct Inner {
    io: Arc<Io>,
    name: Arc<Name>,
    open: Mutex<Weak<File>>,
    length: u64,
    pieces: Box<[u32]>,
    damaged: AtomicBool,
    mark: Mark,
}

impl DiskBody {
    /// Creates the body of a file that has its final name.
    pub(crate) fn stored(io: &Arc<Io>, path: PathBuf, head: &Head) -> Self {
        let name = Name::lasting(Arc::clone(io), path);
        Self::new(io, name, Weak::new(), (head.body_len, &head.pieces), Mark::written(head.sequence))
    }

    /// Creates the body of a file that is still temporary. `None` if its checksums do not fit a body of this length.
    pub(super) fn spooled(io: &Arc<Io>, name: &Arc<Name>, file: &Arc<File>, length: u64, pieces: Vec<u32>) -> Option<Self> {
        let fits = length.div_ceil(PIECE as u64) == pieces.len() as u64;
        fits.then(|| Self::new(io, Arc::clone(name), Arc::downgrade(file), (length, &pieces), Mark::default()))
    }

    fn new(io: &Arc<Io>, name: Arc<Name>, open: Weak<File>, (length, pieces): (u64, &[u32]), mark: Mark) -> Self {
        let (io, open, pieces) = (Arc::clone(io), Mutex::new(open), pieces.into());
        Self(Arc::new(Inner { io, name, open, length, pieces, damaged: AtomicBool::new(false), mark }))
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.length
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a read has found it damaged or missing: then it must not be used any more.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Opens the file, to be read for one response or many. An open file can be read to its end, whatever happens to its name.
    pub async fn open(&self) -> Result<OpenBody, Unreadable> {
        let open = self.0.open.lock().upgrade();
        let file = match open {
            Some(file) => file,
            None => {
                let inner = Arc::clone(&self.0);
                let done = self.0.io.read(move || inner.open()).map_err(|busy| io::Error::new(io::ErrorKind::ResourceBusy, busy))?;
                done.await.unwrap_or_else(|| Err(io::Error::other("the disk's threads have ended")))?
            }
        };
        Ok(OpenBody(Arc::new(OpenedBody { file, body: Arc::clone(&self.0) })))
    }

    /// Returns whether both bodies are one file.
    #[must_use]
    pub fn same_file(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the checksums of all pieces.
    pub(crate) fn pieces(&self) -> Vec<u32> {
        self.0.pieces.to_vec()
    }

    /// Returns the place on the disk: of the file, not of the response, because a freshened response shares the file of the stale one.
    pub(crate) fn mark(&self) -> &Mark {
        &self.0.mark
    }

    /// Returns the bytes that it takes in memory.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Inner>() + size_of::<Name>() + 4 * self.0.pieces.len() + self.0.name.at(|path| path.as_os_str().len())
    }

    /// Returns whether the file of this body has its head and its final name.
    #[cfg(test)]
    pub(crate) fn is_finished(&self) -> bool {
        !self.0.name.is_temporary()
    }

    /// Appends the head and moves the file to `path`. Returns the length of the file. Call it on a thread of the disk. If it fails, the
    /// file stays temporary and readable, and is removed with the body.
    pub(crate) fn finish(&self, tail: &[u8], path: &Path) -> io::Result<u64> {
        let file = self.0.name.at(|path| File::options().write(true).open(path))?;
        file.write_all_at(tail, self.0.length)?;
        self.0.name.settle(path)?;
        Ok(self.0.length + tail.len() as u64)
    }
}

impl Inner {
    /// Opens the file. Call it on a thread of the disk.
    fn open(&self) -> io::Result<Arc<File>> {
        let opened = self.name.at(|path| File::open(path)).and_then(|file| {
            // A file that is shorter than its own body was cut off since its head was read.
            if file.metadata()?.len() < self.length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(file) }
        });
        match opened {
            Ok(file) => {
                let file = Arc::new(file);
                *self.open.lock() = Arc::downgrade(&file);
                Ok(file)
            }
            Err(error) => {
                self.give_up(&error);
                Err(error)
            }
        }
    }

    /// Marks the body as damaged for good, unless this process merely has too many files open.
    fn give_up(&self, error: &io::Error) {
        use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        if matches!(error.kind(), InvalidData | NotFound | UnexpectedEof) && !self.damaged.swap(true, Ordering::Relaxed) {
            let _ = self.name.at(|path| fs::remove_file(path));
        }
    }
}

/// An open body.
#[derive(Clone)]
pub struct OpenBody(Arc<OpenedBody>);

struct OpenedBody {
    file: Arc<File>,
    body: Arc<Inner>,
}

impl OpenBody {
    /// Returns the length of the whole body.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.body.length
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins to read the front of `range`: at least a byte of it, at most 64 KiB. The bytes are verified; damage is an error, and the file
    /// is removed. A range that is empty or outside of the body is an error as well.
    pub fn read(&self, range: &Range<u64>) -> Reading {
        let piece = range.start / PIECE as u64;
        let end = range.end.min((piece + 1).saturating_mul(PIECE as u64));
        Reading::begin(&self.0.body.io, Arc::clone(&self.0) as Arc<dyn Source>, range.start..end)
    }
}

impl Source for OpenedBody {
    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let read = self.piece(&range);
        if let Err(error) = &read {
            self.body.give_up(error);
        }
        read
    }
}

impl OpenedBody {
    /// Returns a range within one piece. The whole piece is read: it has one checksum.
    fn piece(&self, range: &Range<u64>) -> io::Result<Bytes> {
        if range.is_empty() || range.end > self.body.length {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let number = range.start / PIECE as u64;
        let start = number * PIECE as u64;
        let piece = read_at(&self.file, start..self.body.length.min(start + PIECE as u64))?;
        let sum = usize::try_from(number).ok().and_then(|number| self.body.pieces.get(number));
        if sum != Some(&crc32fast::hash(&piece)) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let inside = |at: u64| usize::try_from(at - start).map_err(|_| io::ErrorKind::InvalidInput);
        Ok(piece.slice(inside(range.start)?..inside(range.end)?))
    }
}

impl fmt::Debug for DiskBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskBody").field("length", &self.0.length).field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenBody").field("length", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
