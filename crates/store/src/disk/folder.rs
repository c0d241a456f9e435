//! The cache's folder: whose it is, that only one process uses it, and the few small files that everything in it depends on.
//!
//! `seawall-cache` says which version wrote the folder and how often it was opened; `secret` is what the file names are hashed with. Both
//! are synced: they are written once per start, and without them a million files mean nothing. Stored responses are not synced, see
//! [`tier`](super::tier). A folder that is somebody else's is never touched.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Trouble, format};
use crate::hash::Secret;

const MARKER: &str = "seawall-cache";
const LOCK: &str = "lock";
const SECRET: &str = "secret";
const OBJECTS: &str = "objects";
const TEMPORARY: &str = "tmp";
const PACKS: &str = "packs";
/// The names that may be in a folder of ours; `lost+found` is one because the folder may be the top of a disk, the others because the process keeps
/// there what is to outlive it, also where it stores no response: pictures of blogs, what was seen of the traffic, alerts, software, machines.
const OURS: [&str; 19] = [
    MARKER,
    LOCK,
    SECRET,
    OBJECTS,
    TEMPORARY,
    super::sites::FILE,
    super::PURGES,
    "purges.new",
    "lost+found",
    "pictures",
    "seen",
    "seen.new",
    "alerts.json",
    "seen.of",
    "alerts.json.new",
    "recognised.json",
    "recognised.json.new",
    "cluster.json",
    "cluster.json.new",
];
/// The most bytes of a small file that are read; ours are shorter.
const SMALL: u64 = 4 << 20;

/// The folder of the disk tier, held by this process for as long as this value lives.
pub(crate) struct Folder {
    path: PathBuf,
    /// The lock file. The system releases the lock when the process ends, however it ends.
    _lock: File,
    pub(crate) secret: Secret,
    /// The number of times that the folder was opened, this time included. Numbers that begin with it are younger than all that were there
    /// before.
    pub(crate) starts: u64,
    /// The reason why the earlier content could not be used, if so.
    pub(crate) emptied: Option<&'static str>,
}

impl Folder {
    /// Takes the folder, creates what is missing, and removes what cannot be used.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        let failed = |error: io::Error| Trouble::Unusable { dir: path.to_owned(), error: error.to_string() };
        create_dir(path, true).map_err(failed)?;
        if !is_ours(path).map_err(failed)? {
            return Err(Trouble::NotOurs { dir: path.to_owned() });
        }
        let lock = private().create(true).truncate(false).open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Trouble::InUse { dir: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Self::prepare(path, lock).map_err(failed)
    }

    fn prepare(path: &Path, lock: File) -> io::Result<Self> {
        remove_tree(&path.join(TEMPORARY))?;
        create_dir(&path.join(TEMPORARY), false)?;
        let objects = path.join(OBJECTS);
        let had_objects = objects.exists();
        let marker = read_small(&path.join(MARKER))?.map(|text| Marker::parse(&text));
        let secret = read_small(&path.join(SECRET))?.and_then(|bytes| parse_secret(&bytes));
        let starts = marker.flatten().map(|marker| marker.starts);
        let emptied = match (marker, starts, secret) {
            (Some(None), ..) => Some("another version wrote it"),
            (_, None, _) | (.., None) if had_objects => Some("its secret or its marker is missing or damaged"),
            _ => None,
        };
        let starts = starts.filter(|_| emptied.is_none()).unwrap_or_default() + 1;
        let secret = secret.filter(|_| emptied.is_none());
        if secret.is_none() {
            // Without the old secret, the stored responses cannot be found, nor is it known what was purged, nor which number belonged to
            // which site.
            remove_tree(&objects)?;
            remove_file(&path.join(super::sites::FILE))?;
            remove_file(&path.join(super::PURGES))?;
        }
        let secret = match secret {
            Some(secret) => secret,
            None => {
                let words = Secret::draw();
                write_small(path, SECRET, &secret_bytes(words))?;
                Secret::of(words)
            }
        };
        write_small(path, MARKER, Marker { starts }.text().as_bytes())?;
        make_buckets(&objects)?;
        Ok(Self { path: path.to_owned(), _lock: lock, secret, starts, emptied })
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path where a file is written before it has its final name.
    pub(crate) fn temporary(&self, sequence: u64) -> PathBuf {
        self.path.join(TEMPORARY).join(format!("{sequence:016x}"))
    }

    /// Moves all stored responses away, to be removed when there is time. Returns their new path.
    pub(crate) fn empty(&self) -> io::Result<PathBuf> {
        let (objects, gone) = (self.path.join(OBJECTS), self.path.join(TEMPORARY).join(OBJECTS));
        remove_tree(&gone)?;
        fs::rename(&objects, &gone)?;
        make_buckets(&objects)?;
        Ok(gone)
    }

    /// Returns the path of the folder of packs.
    pub(crate) fn packs(&self) -> PathBuf {
        self.path.join(OBJECTS).join(PACKS)
    }

    /// Returns the path of one of the 256 folders of stored responses.
    pub(crate) fn bucket(&self, bucket: u8) -> PathBuf {
        bucket_path(&self.path.join(OBJECTS), bucket)
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Returns the options to create a file that nobody else may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Writes a small file whole or not at all, and waits until it is on the disk.
pub(crate) fn write_small(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = dir.join(TEMPORARY).join(name);
    let mut file = private().create(true).truncate(true).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(name))?;
    // This syncs the new name, too. A system that cannot sync a folder has at least the file.
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// Returns a small file's bytes; `None` if there is no such file.
pub(crate) fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(SMALL).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Returns a line after its checksum, so that a line torn by a power cut can be recognised.
pub(crate) fn sealed(text: &str) -> String {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// Returns the text of a [`sealed`] line, if it is one.
pub(crate) fn unseal(line: &str) -> Option<&str> {
    let (sum, text) = line.split_once(' ')?;
    (sum.len() == 8 && u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(text.as_bytes())).then_some(text)
}

fn make_buckets(objects: &Path) -> io::Result<()> {
    create_dir(objects, false)?;
    create_dir(&objects.join(PACKS), false)?;
    (0..=u8::MAX).try_for_each(|bucket| create_dir(&bucket_path(objects, bucket), false))
}

fn bucket_path(objects: &Path, bucket: u8) -> PathBuf {
    objects.join(format!("{bucket:02x}"))
}

fn create_dir(path: &Path, parents: bool) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).recursive(parents).create(path);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }?;
    only_ours_to_write(path)
}

/// Checks that nobody else may write here: they could give our readers any page.
fn only_ours_to_write(path: &Path) -> io::Result<()> {
    let (folder, ourselves) = (fs::metadata(path)?, fs::metadata("/proc/self"));
    let foreign = ourselves.is_ok_and(|ourselves| ourselves.uid() != folder.uid());
    if foreign || folder.mode() & 0o022 != 0 {
        let what = if foreign { "belongs to another user" } else { "may be written to by other users" };
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {what}", path.display())));
    }
    Ok(())
}

/// Returns whether the folder holds only names that we put there. The marker alone is not enough: a start that was cut short has none.
fn is_ours(path: &Path) -> io::Result<bool> {
    if path.join(MARKER).is_file() {
        return Ok(true);
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn remove_tree(path: &Path) -> io::Result<()> {
    ignore_missing(fs::remove_dir_all(path))
}

fn remove_file(path: &Path) -> io::Result<()> {
    ignore_missing(fs::remove_file(path))
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn secret_bytes(words: [u64; 2]) -> Vec<u8> {
    sealed(&format!("{:016x}{:016x}", words[0], words[1])).into_bytes()
}

fn parse_secret(bytes: &[u8]) -> Option<Secret> {
    let text = unseal(std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?)?;
    let (first, second) = text.split_at_checked(16)?;
    let word = |text: &str| (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
    Some(Secret::of([word(first)?, word(second)?]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marker {
    starts: u64,
}

impl Marker {
    fn text(self) -> String {
        sealed(&format!("seawall-cache {} {}", format::VERSION, self.starts))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = unseal(std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?)?;
        let (version, starts) = text.strip_prefix("seawall-cache ")?.split_once(' ')?;
        (version.parse() == Ok(format::VERSION)).then_some(Self { starts: starts.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn temporary() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    fn key(folder: &Folder) -> crate::KeyHash {
        folder.secret.key(b"/")
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        for shared in ["", "objects", "objects/7f", "tmp"] {
            let dir = temporary();
            let path = dir.path().join("cache");
            drop(Folder::open(&path).expect("opened"));
            fs::create_dir_all(path.join(shared)).expect("there");
            fs::set_permissions(path.join(shared), fs::Permissions::from_mode(0o777)).expect("ours");
            // The folder of temporary files is created again each time.
            assert_eq!(Folder::open(&path).is_ok(), shared == "tmp", "{shared}");
        }
    }

    #[test]
    fn the_secret_and_the_objects_stay() {
        let dir = temporary();
        let path = dir.path().join("a/b");
        let first = Folder::open(&path).expect("opened");
        let file = first.bucket(7).join("kept");
        fs::write(&file, "x").expect("written");
        fs::write(first.temporary(1), "half").expect("written");
        let (name, starts) = (key(&first), first.starts);
        drop(first);
        let second = Folder::open(&path).expect("opened");
        assert_eq!((key(&second), second.starts, second.emptied), (name, starts + 1, None));
        assert!(file.exists());
        assert!(!second.temporary(1).exists(), "what was not finished goes");
    }

    #[test]
    fn files_are_private() {
        let dir = temporary();
        let path = dir.path().join("cache");
        let folder = Folder::open(&path).expect("opened");
        for dir in [path.clone(), path.join(OBJECTS), path.join(TEMPORARY), folder.bucket(255)] {
            assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        }
        for file in [MARKER, LOCK, SECRET] {
            assert_eq!(mode(&path.join(file)), 0o600, "{file}");
        }
    }

    #[test]
    fn a_second_process_is_told_so() {
        let dir = temporary();
        let first = Folder::open(dir.path()).expect("opened");
        let error = Folder::open(dir.path()).expect_err("held");
        assert!(matches!(error, Trouble::InUse { .. }));
        assert!(error.to_string().contains(&dir.path().display().to_string()));
        drop(first);
        assert!(Folder::open(dir.path()).is_ok());
    }

    #[test]
    fn what_cannot_be_used_is_removed() {
        type Spoil = fn(&Path);
        let cases: [(&str, Spoil); 6] = [
            ("another version", |path| fs::write(path.join(MARKER), sealed("seawall-cache 999 1")).expect("written")),
            ("a torn marker", |path| fs::write(path.join(MARKER), "").expect("written")),
            ("no marker", |path| fs::remove_file(path.join(MARKER)).expect("removed")),
            ("a torn secret", |path| fs::write(path.join(SECRET), "12345").expect("written")),
            ("a wrong secret", |path| fs::write(path.join(SECRET), "00000000 0123456789abcdef0123456789abcdef\n").expect("written")),
            ("no secret", |path| fs::remove_file(path.join(SECRET)).expect("removed")),
        ];
        for (case, spoil) in cases {
            let dir = temporary();
            let first = Folder::open(dir.path()).expect("opened");
            let file = first.bucket(7).join("old");
            fs::write(&file, "x").expect("written");
            fs::write(dir.path().join(super::super::PURGES), "x").expect("written");
            let name = key(&first);
            drop(first);
            spoil(dir.path());
            let second = Folder::open(dir.path()).expect("opened");
            assert!(second.emptied.is_some(), "{case}");
            assert!(!file.exists() && !dir.path().join(super::super::PURGES).exists(), "{case}");
            assert_ne!(key(&second), name, "{case}");
            drop(second);
            assert_eq!(Folder::open(dir.path()).expect("opened").emptied, None, "{case}: once");
        }
    }

    #[test]
    fn a_folder_of_somebody_else_is_left_alone() {
        let dir = temporary();
        fs::write(dir.path().join("letter.txt"), "dear").expect("written");
        assert!(matches!(Folder::open(dir.path()), Err(Trouble::NotOurs { .. })));
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
        let file = dir.path().join("letter.txt");
        assert!(matches!(Folder::open(&file), Err(Trouble::Unusable { .. })));
        assert!(matches!(Folder::open(&file.join("below")), Err(Trouble::Unusable { .. })));
    }
}
