//! Bodies too long for memory pass through a file.
//!
//! A [`SpoolFile`] takes a body while it arrives, in `tmp/` of the disk tier's folder, and is read by everybody who follows it, each at its
//! own pace: a client that reads slowly holds up nobody. Once whole, it is a [`DiskBody`]: the body of a stored response like any other,
//! delivered in pieces that are verified one by one. The file carries the response's head behind the body then, and moves to its place.
//!
//! Files are opened, read, written and removed on the [disk's threads](crate::disk::io) alone.

mod body;
mod file;
mod read;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub use body::{DiskBody, OpenBody, Unreadable};
pub(crate) use file::SpoolFile;
pub use read::Reading;

use crate::disk::io::Io;

/// The folder where bodies are spooled, and the threads that do it.
pub(crate) struct Spool {
    io: Arc<Io>,
    /// The folder. It is emptied when the disk tier opens, so numbers may begin at one in each process.
    dir: PathBuf,
    number: AtomicU64,
}

impl Spool {
    pub(crate) const fn new(io: Arc<Io>, dir: PathBuf) -> Self {
        Self { io, dir, number: AtomicU64::new(1) }
    }

    /// Returns a file with a name of its own, which does not exist yet.
    pub(crate) fn file(&self) -> Arc<SpoolFile> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("spool-{number:x}"));
        Arc::new(SpoolFile::new(Arc::clone(&self.io), Name::temporary(Arc::clone(&self.io), path)))
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// The name of a file. A temporary file is removed with its last owner.
pub(crate) struct Name {
    io: Arc<Io>,
    current: Mutex<SpoolPath>,
}

struct SpoolPath {
    path: PathBuf,
    temporary: bool,
}

impl Name {
    fn temporary(io: Arc<Io>, path: PathBuf) -> Arc<Self> {
        Arc::new(Self { io, current: Mutex::new(SpoolPath { path, temporary: true }) })
    }

    fn lasting(io: Arc<Io>, path: PathBuf) -> Arc<Self> {
        Arc::new(Self { io, current: Mutex::new(SpoolPath { path, temporary: false }) })
    }

    #[cfg(test)]
    fn is_temporary(&self) -> bool {
        self.current.lock().temporary
    }

    /// Calls `what` with the current path, which does not change meanwhile. Call it on a thread of the disk.
    fn at<T>(&self, what: impl FnOnce(&Path) -> T) -> T {
        what(&self.current.lock().path)
    }

    /// Moves the file to its final path. Call it on a thread of the disk.
    fn settle(&self, path: &Path) -> io::Result<()> {
        let mut current = self.current.lock();
        fs::rename(&current.path, path)?;
        *current = SpoolPath { path: path.to_owned(), temporary: false };
        Ok(())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let current = self.current.get_mut();
        if current.temporary {
            let path = std::mem::take(&mut current.path);
            // This is refused only when the disk is closed or hopelessly behind; the next start empties the folder.
            let _ = self.io.write(0, move || fs::remove_file(path));
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.current.lock();
        f.debug_struct("Name").field("path", &current.path).field("temporary", &current.temporary).finish_non_exhaustive()
    }
}
