//! The place where variants are kept: a folder, or memory, with a bound in bytes. What was used longest ago goes first.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::digest::checksum;

/// The beginning of every file on the shelf. A checksum of the content follows it, then the content: a file of which a crash left half is known,
/// and made again.
const MARK: [u8; 8] = *b"swpict\x01\n";
const HEAD_BYTES: usize = MARK.len() + 16;

/// The beginning of the names of files that are being written.
const UNFINISHED: &str = ".unfinished-";

/// The most pieces on a shelf; its index takes about 200 bytes for each.
const PIECES_MAX: usize = 500_000;

/// Variants that were made, by name. Methods read and write files: do not call them on a worker's loop.
#[derive(Debug)]
pub struct Shelf {
    /// The folder; `None` is memory.
    folder: Option<PathBuf>,
    bytes_max: u64,
    index: Mutex<Index>,
    written: AtomicU64,
    /// Whether the last attempt to write failed.
    is_broken: AtomicBool,
}

#[derive(Debug, Default)]
struct Index {
    pieces: HashMap<String, Piece>,
    /// The names by their last use.
    by_use: BTreeMap<u64, String>,
    bytes: u64,
    uses: u64,
}

#[derive(Debug)]
struct Piece {
    bytes: u64,
    used: u64,
    /// The content, on a shelf in memory.
    content: Option<Bytes>,
}

impl Shelf {
    /// Makes a shelf in memory.
    #[must_use]
    pub fn in_memory(bytes_max: u64) -> Self {
        Self { folder: None, bytes_max, index: Mutex::default(), written: AtomicU64::new(0), is_broken: AtomicBool::new(false) }
    }

    /// Opens a shelf in a folder, which is made when there is something to keep. Only files with names of this shelf are ever touched.
    ///
    /// # Errors
    /// When there is a folder that cannot be read.
    pub fn open(folder: impl Into<PathBuf>, bytes_max: u64) -> io::Result<Self> {
        let folder = folder.into();
        let mut found = Vec::new();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            if name.starts_with(UNFINISHED) && metadata.is_file() && !is_of_the_living(&name) {
                let _ = fs::remove_file(entry.path());
            } else if is_name(&name) && metadata.is_file() {
                found.push((metadata.modified().ok(), name, metadata.len()));
            }
        }
        // The time of the last use is not on disk: what was made first goes first.
        found.sort();
        let mut index = Index::default();
        for (_, name, bytes) in found {
            index.put(name, bytes, None);
        }
        let shelf = Self {
            folder: Some(folder),
            bytes_max,
            index: Mutex::new(index),
            written: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
        };
        shelf.make_room(&mut shelf.index.lock(), 0);
        Ok(shelf)
    }

    /// Returns how many bytes are on the shelf.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.index.lock().bytes
    }

    /// Tells whether something of this name is on the shelf. It may still turn out to be damaged.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.index.lock().pieces.contains_key(name)
    }

    /// Tells whether the shelf takes `bytes` more without giving anything up.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        let index = self.index.lock();
        !self.is_broken.load(Ordering::Relaxed) && index.bytes + bytes <= self.bytes_max && index.pieces.len() < PIECES_MAX
    }

    /// Returns what has this name. A file that is damaged is removed.
    #[must_use]
    pub fn take(&self, name: &str) -> Option<Bytes> {
        let held = self.index.lock().touch(name)?;
        let Some(folder) = &self.folder else { return held };
        let path = folder.join(name);
        let content = fs::read(&path).ok().and_then(whole);
        if content.is_none() {
            tracing::debug!(file = %path.display(), "damaged or gone; it is made again");
            self.index.lock().remove(name);
            let _ = fs::remove_file(path);
        }
        content
    }

    /// Puts something on the shelf, and gives up what was not used for longest if there is no room. What cannot be written is not kept.
    pub fn put(&self, name: &str, content: Bytes) {
        debug_assert!(is_name(name), "{name}");
        let bytes = content.len() as u64 + HEAD_BYTES as u64;
        if bytes > self.bytes_max {
            return;
        }
        if let Some(folder) = &self.folder {
            let written = self.write(folder, name, &content);
            let was_broken = self.is_broken.swap(written.is_err(), Ordering::Relaxed);
            if let Err(error) = written {
                if !was_broken {
                    tracing::warn!(folder = %folder.display(), %error, "pictures that were made cannot be kept");
                }
                return;
            }
        }
        let mut index = self.index.lock();
        index.remove(name);
        self.make_room(&mut index, bytes);
        index.put(name.to_owned(), bytes, self.folder.is_none().then_some(content));
    }

    fn write(&self, folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let unfinished = folder.join(format!("{UNFINISHED}{}-{number}", std::process::id()));
        let write = || {
            let mut file = match fs::File::create(&unfinished) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(folder).and_then(|()| fs::File::create(&unfinished))
                }
                created => created,
            }?;
            file.write_all(&MARK)?;
            file.write_all(&checksum(content).to_le_bytes())?;
            file.write_all(content)?;
            fs::rename(&unfinished, folder.join(name))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
    }

    fn make_room(&self, index: &mut Index, bytes: u64) {
        while index.bytes + bytes > self.bytes_max || index.pieces.len() >= PIECES_MAX {
            let Some((_, name)) = index.by_use.pop_first() else { return };
            index.remove(&name);
            if let Some(folder) = &self.folder {
                let _ = fs::remove_file(folder.join(name));
            }
        }
    }
}

impl Index {
    fn put(&mut self, name: String, bytes: u64, content: Option<Bytes>) {
        self.remove(&name);
        self.uses += 1;
        self.by_use.insert(self.uses, name.clone());
        self.bytes += bytes;
        self.pieces.insert(name, Piece { bytes, used: self.uses, content });
    }

    fn remove(&mut self, name: &str) {
        if let Some(piece) = self.pieces.remove(name) {
            self.by_use.remove(&piece.used);
            self.bytes -= piece.bytes;
        }
    }

    /// Notes a use. Returns the content of a piece that is in memory, or nothing if there is no such piece.
    fn touch(&mut self, name: &str) -> Option<Option<Bytes>> {
        let piece = self.pieces.get_mut(name)?;
        self.uses += 1;
        if let Some(name) = self.by_use.remove(&piece.used) {
            self.by_use.insert(self.uses, name);
        }
        piece.used = self.uses;
        Some(piece.content.clone())
    }
}

/// Returns the content of a file of the shelf, if it is whole.
fn whole(file: Vec<u8>) -> Option<Bytes> {
    let file = Bytes::from(file);
    let sum = file.get(MARK.len()..HEAD_BYTES)?.try_into().map(u128::from_le_bytes).ok()?;
    let is_whole = file.starts_with(&MARK) && checksum(&file[HEAD_BYTES..]) == sum;
    is_whole.then(|| file.slice(HEAD_BYTES..))
}

/// Tells whether a file is being written by a process that may still run: this one. Another one at work on the same folder loses a variant at
/// worst, and makes it again.
fn is_of_the_living(name: &str) -> bool {
    name.strip_prefix(UNFINISHED).and_then(|rest| rest.split('-').next()) == Some(&std::process::id().to_string())
}

/// Tells whether a file of this name belongs to a shelf: a digest, what it is, and how it is encoded.
fn is_name(name: &str) -> bool {
    let parts = name.split_once('-').and_then(|(digest, rest)| Some((digest, rest.split_once('.')?)));
    parts.is_some_and(|(digest, (what, form))| {
        digest.len() == 16
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
            && what.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && matches!(form, "webp" | "jpg" | "png" | "txt")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef-480.webp";
    const B: &str = "0123456789abcdef-800.webp";
    const C: &str = "fedcba9876543210-800.jpg";

    fn content(byte: u8) -> Bytes {
        Bytes::from(vec![byte; 1000 - HEAD_BYTES])
    }

    fn both() -> (tempfile::TempDir, [Shelf; 2]) {
        let folder = tempfile::tempdir().expect("a folder");
        let on_disk = Shelf::open(folder.path(), 2000).expect("opened");
        (folder, [on_disk, Shelf::in_memory(2000)])
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let (folder, shelves) = both();
        for shelf in &shelves {
            shelf.put(A, content(1));
            shelf.put(B, content(2));
            assert_eq!(shelf.take(A), Some(content(1)));
            assert!(!shelf.has_room(1));
            shelf.put(C, content(3));
            assert_eq!((shelf.take(A), shelf.take(B), shelf.take(C)), (Some(content(1)), None, Some(content(3))));
            assert_eq!(shelf.bytes(), 2000);
            shelf.put(A, content(4));
            assert_eq!((shelf.take(A), shelf.bytes()), (Some(content(4)), 2000));
            shelf.put(B, Bytes::from(vec![0; 2000]));
            assert!(!shelf.has(B), "what is larger than the shelf does not empty it");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 2);
    }

    #[test]
    fn a_shelf_in_a_folder_is_there_after_a_restart() {
        let (folder, [shelf, _]) = both();
        shelf.put(A, content(1));
        shelf.put(C, content(2));
        drop(shelf);
        let shelf = Shelf::open(folder.path(), 2000).expect("opened");
        assert_eq!((shelf.take(A), shelf.take(C), shelf.bytes()), (Some(content(1)), Some(content(2)), 2000));
        drop(shelf);
        let smaller = Shelf::open(folder.path(), 1500).expect("opened");
        assert_eq!((smaller.bytes(), fs::read_dir(folder.path()).expect("read").count()), (1000, 1));
    }

    #[test]
    fn broken_and_half_written_files_are_made_again() {
        let (folder, [shelf, _]) = both();
        shelf.put(A, content(1));
        shelf.put(B, content(2));
        let path = folder.path().join(A);
        let mut bytes = fs::read(&path).expect("read");
        *bytes.last_mut().expect("not empty") ^= 1;
        fs::write(&path, &bytes).expect("written");
        fs::write(folder.path().join(B), "").expect("written");
        fs::write(folder.path().join(format!("{UNFINISHED}1-1")), "half").expect("written");
        let shelf = Shelf::open(folder.path(), 9000).expect("opened");
        assert!(shelf.has(A));
        assert_eq!((shelf.take(A), shelf.take(B)), (None, None));
        assert!(!shelf.has(A) && shelf.bytes() == 0);
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
        shelf.put(A, content(3));
        assert_eq!(shelf.take(A), Some(content(3)));
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["holiday.jpg", "0123.webp", ".profile", "0123456789abcdef-480.gif"] {
            fs::write(folder.path().join(name), vec![0; 5000]).expect("written");
        }
        let shelf = Shelf::open(folder.path(), 2000).expect("opened");
        for _ in 0..5 {
            shelf.put(A, content(1));
            shelf.put(B, content(1));
            shelf.put(C, content(1));
        }
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 4 + 2);
    }
}
