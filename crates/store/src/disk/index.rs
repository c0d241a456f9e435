//! The index, in memory, of the files that there are: under which hash, how large, and which of them goes next.
//!
//! An entry is a key's files (nearly always one): 56 bytes, some 80 with its place in the table, and not above 150 while the table is half
//! empty. Their number is bounded: each counts with at least `size_max / objects_max` bytes, so the size bounds it.
//!
//! What to evict is decided by the same kind of table as in memory, which a scan does not empty: what was never asked for goes first. But
//! the disk is asked only for what memory does not hold, so the most popular pages look cold from here. Hence a second chance: what would
//! be evicted while it is *in memory* is put back, and being put back makes it hot. Memory's judgement counts for the disk.
//!
//! Beginning: the folders are listed in the background, and until all are, what they hold lies in a plain table (`found`), where nothing
//! is evicted. Then it moves into the real one by age, the newest into the hot part: so the order of eviction survives a restart.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use smallvec::SmallVec;

use super::folder::Folder;
use super::packs::PackExtent;
use crate::hash::{AsIs, KeyHash};

/// The unit of space on a disk: sizes are counted in whole blocks.
const BLOCK: u64 = 4 << 10;
/// The share of the table for keys that were asked for again, by the table's own default: see [`Index::settle`].
const HOT: f64 = 0.97;
/// A limit that was lowered, as the disk had less room than expected, rises by one byte for so many that are written.
const WIDENED: u64 = 16;
/// The number of times in a row that one write may give another key its second chance.
const CHANCES: usize = 8;

/// One file of a key, or its entry in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) sequence: u64,
    blocks: u32,
    /// The place in a pack where it lies, if it is not a file of its own.
    pub(crate) extent: Option<PackExtent>,
}

impl File {
    pub(crate) fn new(sequence: u64, bytes: u64, extent: Option<PackExtent>) -> Self {
        Self { sequence, blocks: u32::try_from(bytes.div_ceil(BLOCK)).unwrap_or(u32::MAX), extent }
    }

    /// Returns the bytes that the file takes on the disk.
    pub(crate) const fn bytes(self) -> u64 {
        self.blocks as u64 * BLOCK
    }
}

/// The files of one key, newest first.
pub(crate) type Files = SmallVec<[File; 1]>;

/// The identity of one file: its key's hash and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) hash: KeyHash,
    pub(crate) sequence: u64,
}

impl FileId {
    pub(crate) fn bucket(self) -> u8 {
        self.hash.words().0.to_be_bytes()[0]
    }

    pub(crate) fn path(self, folder: &Folder) -> PathBuf {
        let (first, second) = self.hash.words();
        folder.bucket(self.bucket()).join(format!("{first:016x}{second:016x}-{:016x}", self.sequence))
    }

    /// Reads a file name; returns `None` if [`path`](Self::path) does not make such a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (hash, sequence) = name.split_once('-')?;
        let (first, second) = hash.split_at_checked(16)?;
        let word = |text: &str| {
            let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
            digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        Some(Self { hash: KeyHash::from_words(word(first)?, word(second)?), sequence: word(sequence)? })
    }
}

/// A file, and whose it is: all that is needed to unlink it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) hash: KeyHash,
    pub(crate) file: File,
}

impl Located {
    pub(crate) const fn id(self) -> FileId {
        FileId { hash: self.hash, sequence: self.file.sequence }
    }
}

/// The index of the files on the disk; see the module.
pub(crate) struct Index {
    table: Cache<KeyHash, Files, Weigh, AsIs, Pushed>,
    /// The lock for every change. It is never held during an operation of the disk.
    edit: Mutex<Edit>,
    /// The files that the table pushed out, or replaced, during the current change.
    pushed: Arc<Mutex<Vec<(KeyHash, Files)>>>,
    found_any: AtomicBool,
    variants_max: usize,
    objects_max: usize,
    size_max: u64,
}

#[derive(Default)]
struct Edit {
    /// The files that the listing has found so far. It is emptied for good when the listing ends.
    found: HashMap<KeyHash, Files, AsIs>,
    /// Keys that were forgotten before their folder was listed, and up to which number: files of theirs that are found later must not come
    /// back.
    forgotten: HashMap<KeyHash, u64, AsIs>,
    held: IndexTotals,
}

/// The number and size of the files in the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IndexTotals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Index {
    pub(crate) fn new(size_max: u64, objects_max: usize, variants_max: usize) -> Self {
        let objects_max = objects_max.max(1);
        let pushed = Arc::default();
        let options = OptionsBuilder::new()
            // There is one lock: it is taken for misses of the memory tier, and for nothing else.
            .shards(1)
            .estimated_items_capacity(objects_max.min(16_384))
            .weight_capacity(size_max)
            .build()
            .expect("both capacities are set");
        let weigh = Weigh { file_min: size_max / objects_max as u64 };
        let table = Cache::with_options(options, weigh, AsIs::default(), Pushed(Arc::clone(&pushed)));
        Self { table, edit: Mutex::default(), pushed, found_any: AtomicBool::new(false), variants_max, objects_max, size_max }
    }

    /// Returns the files of a key. The lookup keeps them from being evicted.
    pub(crate) fn files(&self, hash: KeyHash) -> Files {
        // This is read first: a file that moves from one to the other meanwhile must not be missed in both.
        let found_any = self.found_any.load(Ordering::Acquire);
        if let Some(files) = self.table.get(&hash) {
            return files;
        }
        if !found_any {
            return Files::new();
        }
        let edit = self.edit.lock();
        // It may have moved meanwhile.
        edit.found.get(&hash).cloned().or_else(|| self.table.get(&hash)).unwrap_or_default()
    }

    /// Returns whether there is such a file, without counting as a use of it.
    pub(crate) fn contains(&self, id: FileId) -> bool {
        self.peek(&self.edit.lock(), id.hash).iter().any(|file| file.sequence == id.sequence)
    }

    pub(crate) fn held(&self) -> IndexTotals {
        self.edit.lock().held
    }

    /// Adds a file that has just been written, if `alive` still says so. Returns the files to unlink: evicted ones, or this one.
    pub(crate) fn add(&self, added: Located, alive: impl FnOnce() -> bool, in_memory: impl Fn(KeyHash) -> bool) -> Vec<Located> {
        let mut edit = self.edit.lock();
        if !alive() {
            return vec![added];
        }
        let Located { hash, file } = added;
        let mut gone = Vec::new();
        let mut files = self.peek(&edit, hash);
        edit.found.remove(&hash);
        edit.held.add(&files, false);
        files.retain(|held| held.sequence != file.sequence);
        files.insert(0, file);
        files.sort_unstable_by_key(|file| std::cmp::Reverse(file.sequence));
        gone.extend(files.drain(self.variants_max.min(files.len())..).map(|file| Located { hash, file }));
        edit.held.add(&files, true);
        self.widen(file.bytes());
        self.replace(hash, files);
        self.collect(&mut edit, &mut gone, in_memory);
        gone
    }

    /// Raises a limit that was [lowered](Self::shrink), as so many bytes have been written without the disk being full: it may have room again.
    fn widen(&self, written: u64) {
        let limit = self.table.capacity();
        if limit < self.size_max {
            self.table.set_capacity((limit + written.div_ceil(WIDENED)).min(self.size_max));
        }
    }

    /// Forgets one file. Returns it if it was there, to be unlinked. `kill` says which, and is called between changes: a writer cannot add
    /// a file that `kill` has just forbidden.
    pub(crate) fn take(&self, hash: KeyHash, kill: impl FnOnce() -> Option<u64>) -> Vec<Located> {
        let mut edit = self.edit.lock();
        let Some(sequence) = kill() else { return Vec::new() };
        self.take_some(&mut edit, hash, |file| file.sequence == sequence)
    }

    /// Forgets all files of a key up to a number, including those that no listing has found yet. Returns those that were there.
    pub(crate) fn take_all(&self, hash: KeyHash, until: u64, unlisted: bool) -> Vec<Located> {
        let mut edit = self.edit.lock();
        if unlisted {
            edit.forgotten.insert(hash, until);
        }
        self.take_some(&mut edit, hash, |file| file.sequence <= until)
    }

    fn take_some(&self, edit: &mut Edit, hash: KeyHash, which: impl Fn(&File) -> bool) -> Vec<Located> {
        let files = self.peek(edit, hash);
        let (gone, kept): (Files, Files) = files.into_iter().partition(which);
        if gone.is_empty() {
            return Vec::new();
        }
        edit.held.add(&gone, false);
        let found = edit.found.remove(&hash).is_some();
        if kept.is_empty() {
            self.table.remove(&hash);
        } else if found {
            edit.found.insert(hash, kept);
        } else {
            // The new list is shorter, so nothing is pushed out.
            self.replace(hash, kept);
        }
        gone.into_iter().map(|file| Located { hash, file }).collect()
    }

    /// Adds the files that a listing found. Returns those that exceed the limit.
    pub(crate) fn note(&self, listed: Vec<Located>) -> Vec<Located> {
        let mut edit = self.edit.lock();
        self.found_any.store(true, Ordering::Release);
        let mut excess = Vec::new();
        for listed in listed {
            let Located { hash, file } = listed;
            let mut files = self.peek(&edit, hash);
            if files.iter().any(|held| held.sequence == file.sequence) {
                continue;
            }
            let forgotten = edit.forgotten.get(&hash).is_some_and(|until| file.sequence <= *until);
            if forgotten || edit.found.len() >= self.objects_max || files.len() >= self.variants_max {
                excess.push(listed);
                continue;
            }
            edit.held.add(&Files::from_elem(file, 1), true);
            files.push(file);
            files.sort_unstable_by_key(|file| std::cmp::Reverse(file.sequence));
            if edit.found.contains_key(&hash) || self.table.peek(&hash).is_none() {
                edit.found.insert(hash, files);
            } else {
                self.replace(hash, files);
                self.collect(&mut edit, &mut excess, |_| false);
            }
        }
        excess
    }

    /// Ends the listing: from now on, all files that it found can be evicted. Returns the files that do not fit.
    ///
    /// The table takes the first entries as hot. So the newest that fill its hot part come first, then the rest, both from old to new: the
    /// rest is evicted first, and in the order in which it came.
    pub(crate) fn settle(&self) -> Vec<Located> {
        let mut order: Vec<(u64, KeyHash, u64)> = {
            let edit = self.edit.lock();
            let weigh = |files: &Files| files.iter().map(|file| file.bytes().max(self.file_min())).sum::<u64>();
            edit.found.iter().map(|(hash, files)| (files.first().map_or(0, |file| file.sequence), *hash, weigh(files))).collect()
        };
        order.sort_unstable_by_key(|(sequence, ..)| *sequence);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a size")]
        let hot = (self.size_max as f64 * HOT) as u64;
        // Files written meanwhile are in it already.
        let mut room = hot.saturating_sub(self.table.weight());
        let fits = |(.., weight): &&(u64, KeyHash, u64)| {
            let fits = *weight <= room;
            room = room.saturating_sub(*weight);
            fits
        };
        let cold = order.len() - order.iter().rev().take_while(fits).count();
        order.rotate_left(cold);
        let mut gone = Vec::new();
        for (_, hash, _) in order {
            let mut edit = self.edit.lock();
            if let Some(files) = edit.found.remove(&hash) {
                self.table.insert(hash, files);
                self.collect(&mut edit, &mut gone, |_| false);
            }
        }
        let mut edit = self.edit.lock();
        (edit.found, edit.forgotten) = Default::default();
        self.found_any.store(false, Ordering::Release);
        gone
    }

    /// Lowers the limit to a sixteenth less than there is now, because the disk has less room than expected. It [rises](Self::widen) again with what is
    /// written. Returns the files to unlink.
    pub(crate) fn shrink(&self) -> Vec<Located> {
        let mut edit = self.edit.lock();
        let mut gone = Vec::new();
        let weight = self.table.weight();
        self.table.set_capacity((weight - weight / 16).max(self.size_max / 64));
        self.collect(&mut edit, &mut gone, |_| false);
        gone
    }

    fn file_min(&self) -> u64 {
        self.size_max / self.objects_max as u64
    }

    fn peek(&self, edit: &Edit, hash: KeyHash) -> Files {
        edit.found.get(&hash).cloned().or_else(|| self.table.peek(&hash)).unwrap_or_default()
    }

    /// Puts the files of a key into the table, and replaces those that may be there. The table reports replaced files to its owner like
    /// evicted ones, although none of them is gone.
    fn replace(&self, hash: KeyHash, files: Files) {
        let before = self.table.peek(&hash);
        self.table.insert(hash, files);
        if let Some(before) = before {
            let mut pushed = self.pushed.lock();
            if let Some(at) = pushed.iter().position(|pushed| *pushed == (hash, before.clone())) {
                pushed.remove(at);
            }
        }
    }

    /// Accounts for the files that the table pushed out, and puts back those that are in memory.
    fn collect(&self, edit: &mut Edit, gone: &mut Vec<Located>, in_memory: impl Fn(KeyHash) -> bool) {
        let mut chances = CHANCES;
        loop {
            let pushed = std::mem::take(&mut *self.pushed.lock());
            if pushed.is_empty() {
                return;
            }
            for (hash, files) in pushed {
                if chances > 0 && in_memory(hash) {
                    chances -= 1;
                    self.table.insert(hash, files);
                    continue;
                }
                edit.held.add(&files, false);
                gone.extend(files.into_iter().map(|file| Located { hash, file }));
            }
        }
    }
}

impl IndexTotals {
    fn add(&mut self, files: &Files, more: bool) {
        let bytes: u64 = files.iter().map(|file| file.bytes()).sum();
        let files = files.len() as u64;
        (self.files, self.bytes) = if more { (self.files + files, self.bytes + bytes) } else { (self.files - files, self.bytes - bytes) };
    }
}

#[derive(Clone)]
struct Weigh {
    file_min: u64,
}

impl Weighter<KeyHash, Files> for Weigh {
    fn weight(&self, _: &KeyHash, files: &Files) -> u64 {
        files.iter().map(|file| file.bytes().max(self.file_min)).sum()
    }
}

#[derive(Clone)]
struct Pushed(Arc<Mutex<Vec<(KeyHash, Files)>>>);

impl Lifecycle<KeyHash, Files> for Pushed {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), hash: KeyHash, files: Files) {
        self.0.lock().push((hash, files));
    }
}

#[cfg(test)]
mod tests;
