//! A body on its way in, as a file that is read while it is written.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::read::Source;
use super::{DiskBody, Name};
use crate::disk::format::Pieces;
use crate::disk::io::Io;

/// A file in which a body grows. It is written by one job at a time, from front to back, and can be read anywhere in the written part.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    io: Arc<Io>,
    name: Arc<Name>,
    /// The file, which is created with the first write.
    file: OnceLock<Arc<File>>,
    sums: Mutex<Pieces>,
}

impl SpoolFile {
    pub(super) fn new(io: Arc<Io>, name: Arc<Name>) -> Self {
        Self { io, name, file: OnceLock::new(), sums: Mutex::default() }
    }

    pub(crate) const fn io(&self) -> &Arc<Io> {
        &self.io
    }

    /// Writes the next bytes, which begin at `offset`. Call it on a thread of the disk. After an error, the bytes written before are still
    /// valid.
    pub(crate) fn write(&self, mut offset: u64, chunks: &[Bytes]) -> io::Result<()> {
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let create =
                    |path: &std::path::Path| OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path);
                let file = self.name.at(create)?;
                self.file.get_or_init(|| Arc::new(file))
            }
        };
        let mut sums = self.sums.lock();
        for chunk in chunks {
            file.write_all_at(chunk, offset)?;
            sums.push(chunk);
            offset += chunk.len() as u64;
        }
        Ok(())
    }

    /// Returns the body, when all of it is in the file. `None` if it is not this long, which would be our own fault.
    pub(crate) fn into_body(self: &Arc<Self>, length: u64) -> Option<DiskBody> {
        let pieces = std::mem::take(&mut *self.sums.lock()).finish();
        let file = self.file.get()?;
        DiskBody::spooled(&self.io, &self.name, file, length, pieces)
    }
}

impl Source for SpoolFile {
    /// Reads a range without verifying it: this process has just written it, and it mostly comes from the system's memory.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let file = self.file.get().ok_or(io::ErrorKind::NotFound)?;
        read_at(file, range)
    }
}

/// Returns these bytes of a file, all of them.
pub(super) fn read_at(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    let length = usize::try_from(range.end - range.start).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.into())
}
