//! The folder that is served, held open: whatever a request names is found beneath it or not at all.
//!
//! The root is opened once and then followed wherever it is moved, so that a request never sees two versions of a site that is being
//! swapped. Symbolic links are followed as far as they stay beneath it.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

/// The most links that one name may go through, as in the system's own resolution.
const LINKS_MAX: usize = 40;

/// The flags for opening without waiting: opening a pipe would wait for somebody to write into it.
const OPEN: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An opened root.
#[derive(Debug)]
pub(super) struct Root {
    dir: OwnedFd,
    /// The path as it was given; links may be written with it.
    given: PathBuf,
    /// The path without links.
    path: PathBuf,
    id: FileId,
}

/// The numbers by which the system knows a file.
type FileId = (u64, u64);

/// A file or folder below the root, opened.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    /// The name below the root, as it was asked for.
    pub(super) name: PathBuf,
    /// The name below the root, without links.
    pub(super) real: PathBuf,
}

impl Root {
    /// Opens the folder that `given` leads to.
    pub(super) fn open(given: &Path) -> io::Result<Self> {
        let path = given.canonicalize()?;
        let dir = rustix::fs::openat(CWD, &path, OPEN | OFlags::DIRECTORY, Mode::empty())?;
        fs::read_dir(&path)?;
        let id = id(&File::from(dir.try_clone()?).metadata()?);
        Ok(Self { dir, given: std::path::absolute(given)?, path, id })
    }

    /// Returns the path of the root when it was opened, without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the given path leads to another folder now. `None` while it leads nowhere.
    pub(super) fn is_replaced(&self) -> Option<bool> {
        let path = self.given.canonicalize().ok()?;
        let now = fs::metadata(&path).ok().filter(Metadata::is_dir)?;
        Some(path != self.path || id(&now) != self.id)
    }

    /// Returns the kind of file system, if it is one that does not report changes made elsewhere.
    #[cfg(target_os = "linux")]
    pub(super) fn silent_file_system(&self) -> Option<&'static str> {
        const SILENT: [(u32, &str); 10] = [
            (0x6969, "NFS"),
            (0x517b, "SMB"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB"),
            (0x6573_5546, "FUSE"),
            (0x0102_1997, "9p"),
            (0x00c3_6400, "Ceph"),
            (0x5346_414f, "AFS"),
            (0x786f_4256, "a shared folder of VirtualBox"),
            (0x7c7c_6673, "a shared folder of Parallels"),
        ];
        let kind = u32::try_from(rustix::fs::fstatfs(&self.dir).ok()?.f_type & 0xffff_ffff).ok()?;
        SILENT.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn silent_file_system(&self) -> Option<&'static str> {
        None
    }

    /// Returns the file or folder at `below`, whose components are plain names. `None` if there is nothing for the public.
    ///
    /// # Errors
    /// Returns `PermissionDenied`, and errors that say that the system is in trouble.
    pub(super) fn find(&self, below: &Path) -> io::Result<Option<Entry>> {
        let found = match self.open_at(below) {
            Ok(Some((file, real))) => (File::from(file), real),
            Ok(None) => return Ok(None),
            Err(e) if is_nothing(e) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let (file, real) = found;
        let metadata = file.metadata()?;
        Ok(Some(Entry { file, metadata, name: below.to_owned(), real }))
    }

    /// Returns the file at `below`, like [`find`](Self::find), if it is a regular file.
    pub(super) fn find_file(&self, below: &Path) -> io::Result<Option<Entry>> {
        Ok(self.find(below)?.filter(|entry| entry.metadata.is_file()))
    }

    #[cfg(target_os = "linux")]
    fn open_at(&self, below: &Path) -> rustix::io::Result<Option<(OwnedFd, PathBuf)>> {
        use rustix::fs::ResolveFlags;
        let name = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        // One call is enough where no link is on the way.
        match rustix::fs::openat2(&self.dir, name, OPEN, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
            Ok(file) => Ok(Some((file, below.to_owned()))),
            // Old kernels and some sandboxes do not have this call.
            Err(Errno::LOOP | Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => self.walk(below),
            Err(e) => Err(e),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_at(&self, below: &Path) -> rustix::io::Result<Option<(OwnedFd, PathBuf)>> {
        self.walk(below)
    }

    /// Opens one name at a time, so that every link is seen before it is followed. The target of a link must be beneath the root and
    /// public.
    fn walk(&self, below: &Path) -> rustix::io::Result<Option<(OwnedFd, PathBuf)>> {
        let mut todo: Vec<OsString> = below.iter().rev().map(OsStr::to_owned).collect();
        let mut way: Vec<(OsString, OwnedFd)> = Vec::new();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == ".." {
                if way.pop().is_none() {
                    return Ok(None);
                }
                continue;
            }
            if is_hidden(&name) {
                return Ok(None);
            }
            let folder = way.last().map_or_else(|| self.dir.as_fd(), |(_, folder)| folder.as_fd());
            match rustix::fs::readlinkat(folder, &name, Vec::new()) {
                Ok(to) => {
                    links += 1;
                    let to = PathBuf::from(OsStr::from_bytes(to.as_bytes()));
                    let Some(to) = self.relative(&to).filter(|_| links <= LINKS_MAX) else { return Ok(None) };
                    if to.1 {
                        way.clear();
                    }
                    let names = to.0.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
                    let names: Vec<_> = names.map(|part| part.as_os_str().to_owned()).collect();
                    todo.extend(names.into_iter().rev());
                }
                Err(Errno::INVAL) => {
                    let file = rustix::fs::openat(folder, &name, OPEN | OFlags::NOFOLLOW, Mode::empty())?;
                    way.push((name, file));
                }
                Err(e) => return Err(e),
            }
        }
        let real = way.iter().map(|(name, _)| name).collect();
        let file = match way.pop() {
            Some((_, file)) => file,
            None => reopened(self.dir.as_fd())?,
        };
        Ok(Some((file, real)))
    }

    /// Returns the target of a link, and whether it begins at the root. `None` if it is outside.
    fn relative(&self, to: &Path) -> Option<(PathBuf, bool)> {
        if to.is_relative() {
            return Some((to.to_owned(), false));
        }
        let below = to.strip_prefix(&self.path).or_else(|_| to.strip_prefix(&self.given)).ok()?;
        Some((below.to_owned(), true))
    }
}

fn reopened(dir: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, ".", OPEN | OFlags::DIRECTORY, Mode::empty())
}

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Returns whether a name is private: `.git`, `.env`. Of the names with a dot, `.well-known` alone is public (RFC 8615).
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") && name != ".well-known"
}

/// Returns whether an error only means that nothing is there: a name too long, a file used as a folder, a loop of links.
fn is_nothing(error: Errno) -> bool {
    // A socket cannot be opened (`NXIO`), nor a device without its driver.
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP | Errno::INVAL | Errno::NXIO | Errno::NODEV)
}
