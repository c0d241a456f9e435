//! The folder that is served, held open: whatever a request names is found beneath it or not at all.
//!
//! The root is opened once and then followed wherever it is moved, so that a request never sees two versions of a site that is being
//! swapped. Symbolic links are followed as far as they stay beneath it; where that is asked for ([`Links`]), others as well, if they belong to
//! whom they lead to.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Component, Path, PathBuf},
    sync::OnceLock,
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use crate::names::is_secret;

/// The most links that one name may go through, as in the system's own resolution.
const LINKS_MAX: usize = 40;

/// The flags for opening without waiting: opening a pipe would wait for somebody to write into it.
const OPEN: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The symbolic links that are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Links {
    /// Links that lead to something beneath the root.
    #[default]
    Beneath,
    /// Links that lead elsewhere, too, if the link and what it leads to have the same owner: nobody gives away what is somebody else's.
    /// Debian's packages are full of such links.
    OfOneOwner,
}

/// An opened root.
#[derive(Debug)]
pub(crate) struct Root {
    dir: OwnedFd,
    /// The path as it was given; links may be written with it.
    given: PathBuf,
    /// The path without links.
    path: PathBuf,
    id: FileId,
    links: Links,
    at_hand: AtHand,
}

/// Says whether a root finds only what the system has in memory.
#[derive(Debug)]
enum AtHand {
    /// It finds everything, and may have a twin that does not.
    All(OnceLock<Option<Box<Root>>>),
    /// It finds only that.
    Only,
}

/// The numbers by which the system knows a file.
type FileId = (u64, u64);

/// A file or folder below the root, opened.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
    /// The name below the root, as it was asked for.
    pub(crate) name: PathBuf,
    /// The name below the root, without links.
    pub(crate) real: PathBuf,
}

impl Entry {
    /// Returns whether the file is never sent, by its own name or by the one that it was asked for with.
    pub(crate) fn is_secret(&self) -> bool {
        [&self.name, &self.real].iter().any(|path| path.file_name().is_some_and(|name| is_secret(name, self.metadata.len())))
    }
}

impl Root {
    /// Opens the folder that `given` leads to.
    pub(crate) fn open(given: &Path) -> io::Result<Self> {
        Self::open_with(given, Links::default())
    }

    /// Opens the folder that `given` leads to. These links in it are followed.
    pub(crate) fn open_with(given: &Path, links: Links) -> io::Result<Self> {
        let path = given.canonicalize()?;
        let dir = rustix::fs::openat(CWD, &path, OPEN | OFlags::DIRECTORY, Mode::empty())?;
        fs::read_dir(&path)?;
        let id = id(&File::from(dir.try_clone()?).metadata()?);
        Ok(Self { dir, given: std::path::absolute(given)?, path, id, links, at_hand: AtHand::All(OnceLock::new()) })
    }

    /// Returns the same folder for a thread that must not wait: what is not in the system's memory, or behind a link, is an error of the kind
    /// `WouldBlock` there. `None`: this system cannot tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn at_hand(&self) -> Option<&Self> {
        let AtHand::All(twin) = &self.at_hand else { return Some(self) };
        let made = || {
            let (given, path) = (self.given.clone(), self.path.clone());
            let twin = Self { dir: self.dir.try_clone().ok()?, given, path, id: self.id, links: self.links, at_hand: AtHand::Only };
            // Kernels before 5.12 do not know the flag.
            matches!(twin.open_at(Path::new("")), Ok(_) | Err(Errno::AGAIN)).then(|| Box::new(twin))
        };
        twin.get_or_init(made).as_deref()
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn at_hand(&self) -> Option<&Self> {
        None
    }

    /// Returns whether whoever uses this root may wait for a disk.
    pub(crate) const fn may_wait(&self) -> bool {
        matches!(self.at_hand, AtHand::All(_))
    }

    /// Returns the path of the root when it was opened, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the given path leads to another folder now. `None` while it leads nowhere.
    pub(crate) fn is_replaced(&self) -> Option<bool> {
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
    pub(crate) fn find(&self, below: &Path) -> io::Result<Option<Entry>> {
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
    pub(crate) fn find_file(&self, below: &Path) -> io::Result<Option<Entry>> {
        Ok(self.find(below)?.filter(|entry| entry.metadata.is_file()))
    }

    #[cfg(target_os = "linux")]
    fn open_at(&self, below: &Path) -> rustix::io::Result<Option<(OwnedFd, PathBuf)>> {
        use rustix::fs::ResolveFlags;
        let name = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let is_at_hand = !self.may_wait();
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let resolve = if is_at_hand { resolve | ResolveFlags::CACHED } else { resolve };
        // One call is enough where no link is on the way.
        match rustix::fs::openat2(&self.dir, name, OPEN, Mode::empty(), resolve) {
            Ok(file) => Ok(Some((file, below.to_owned()))),
            Err(Errno::LOOP | Errno::XDEV | Errno::AGAIN) if is_at_hand => Err(Errno::AGAIN),
            Err(e) if is_at_hand => Err(e),
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
    /// public, or belong to whom the link belongs to.
    fn walk(&self, below: &Path) -> rustix::io::Result<Option<(OwnedFd, PathBuf)>> {
        let mut todo: Vec<Step> = below.iter().rev().map(|name| Step::Asked(name.to_owned())).collect();
        let mut way: Vec<(OsString, OwnedFd)> = Vec::new();
        // The system's root, while the way is outside of ours.
        let mut outside: Option<OwnedFd> = None;
        let mut links = 0;
        while let Some(step) = todo.pop() {
            let name = match step {
                Step::Asked(name) if is_hidden(&name) => return Ok(None),
                Step::Linked(name) if name == ".." => {
                    if way.pop().is_none() && outside.is_none() {
                        if self.links == Links::Beneath {
                            return Ok(None);
                        }
                        outside = Some(system_root()?);
                        todo.push(Step::Linked(name));
                        todo.extend(names_of(&self.path).into_iter().rev());
                    }
                    continue;
                }
                Step::Linked(name) if is_hidden(&name) && outside.is_none() => return Ok(None),
                Step::Asked(name) | Step::Linked(name) => name,
                Step::Owner(owner) => {
                    let end = way.last().map_or_else(|| outside.as_ref().unwrap_or(&self.dir), |(_, file)| file);
                    if outside.is_some() && rustix::fs::fstat(end)?.st_uid != owner {
                        return Ok(None);
                    }
                    continue;
                }
            };
            let base = outside.as_ref().unwrap_or(&self.dir);
            let folder = way.last().map_or_else(|| base.as_fd(), |(_, folder)| folder.as_fd());
            match link(folder, &name) {
                Ok((to, owner)) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Ok(None);
                    }
                    todo.push(Step::Owner(owner));
                    if to.is_relative() {
                        todo.extend(names_of(&to).into_iter().rev());
                    } else if let Some(below) = self.below(&to) {
                        way.clear();
                        outside = None;
                        todo.extend(names_of(below).into_iter().rev());
                    } else if self.links == Links::OfOneOwner {
                        way.clear();
                        outside = Some(system_root()?);
                        todo.extend(names_of(&to).into_iter().rev());
                    } else {
                        return Ok(None);
                    }
                }
                Err(Errno::INVAL) => {
                    let file = rustix::fs::openat(folder, &name, OPEN | OFlags::NOFOLLOW, Mode::empty())?;
                    way.push((name, file));
                }
                Err(e) => return Err(e),
            }
        }
        let names: PathBuf = way.iter().map(|(name, _)| name).collect();
        let real = if outside.is_some() { Path::new("/").join(names) } else { names };
        let file = match way.pop() {
            Some((_, file)) => file,
            None => reopened(outside.as_ref().unwrap_or(&self.dir).as_fd())?,
        };
        let real = real.strip_prefix(&self.path).map(Path::to_owned).unwrap_or(real);
        Ok(Some((file, real)))
    }

    /// Returns what an absolute path names beneath the root. `None` if it is outside.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.given)).ok()
    }
}

/// The next step on the way to a file.
enum Step {
    /// The step is to follow a name that was asked for.
    Asked(OsString),
    /// The step is to follow a name that a link has.
    Linked(OsString),
    /// The step is to compare the owner of a link with that of what it led to.
    Owner(u32),
}

fn names_of(path: &Path) -> Vec<Step> {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.map(|part| Step::Linked(part.as_os_str().to_owned())).collect()
}

fn system_root() -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(CWD, "/", OPEN | OFlags::DIRECTORY, Mode::empty())
}

/// Returns what a link says, and who owns it: of the very same link, whoever replaces it meanwhile. `INVAL`: it is not a link.
#[cfg(target_os = "linux")]
fn link(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<(PathBuf, u32)> {
    let link = rustix::fs::openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let about = rustix::fs::fstat(&link)?;
    if rustix::fs::FileType::from_raw_mode(about.st_mode) != rustix::fs::FileType::Symlink {
        return Err(Errno::INVAL);
    }
    let to = rustix::fs::readlinkat(&link, "", Vec::new())?;
    Ok((OsStr::from_bytes(to.as_bytes()).into(), about.st_uid))
}

#[cfg(not(target_os = "linux"))]
fn link(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<(PathBuf, u32)> {
    let to = rustix::fs::readlinkat(folder, name, Vec::new())?;
    let about = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((OsStr::from_bytes(to.as_bytes()).into(), about.st_uid))
}

fn reopened(dir: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, ".", OPEN | OFlags::DIRECTORY, Mode::empty())
}

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Returns whether a name is private: `.git`, `.env`. Of the names with a dot, `.well-known` alone is public (RFC 8615).
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") && name != ".well-known"
}

/// Returns whether an error only means that nothing is there: a name too long, a file used as a folder, a loop of links.
fn is_nothing(error: Errno) -> bool {
    // A socket cannot be opened (`NXIO`), nor a device without its driver.
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP | Errno::INVAL | Errno::NXIO | Errno::NODEV)
}
