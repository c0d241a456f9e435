//! Many small responses in one file.
//!
//! To create, rename and close a file costs a disk's thread several times what it costs to write a page. So a response of up to [`ENTRY_MAX`]
//! bytes shares a file with those that were written before and after it:
//!
//! ```text
//! objects/packs/<number>   entry, entry, ...    each begins at a block of 4 KiB
//! entry: label (48 bytes), then what a file of its own would hold (format.rs)
//! label: magic, length of what follows, key hash, sequence, seal
//! ```
//!
//! A pack is written from front to back by one process, and never continued by the next one. What leaves it is cut out as a hole, so the
//! system has its blocks back at once and nothing is ever moved; a pack of which nothing is left is unlinked. Where the file system makes no
//! holes, there are no packs.
//!
//! The labels say what there is, so the list is made by reading them. An entry that `kill -9` has torn ends before its footer, and is cut out
//! when the pack is listed. A label is sealed with the folder's secret: behind a torn entry's label stands what somebody's server sent, and a page
//! must not be able to hold other entries.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Buf;
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, pwritev};

use super::folder::private;
use super::index::{BLOCK, File as Entry, Located};
use crate::hash::{KeyHash, Secret};

/// The most bytes of an entry, with its label.
pub(crate) const ENTRY_MAX: usize = 64 << 10;
/// The bytes after which a pack is full. Fewer would mean more files, more would mean that a single page keeps a larger one.
const PACK_MAX: u64 = 4 << 20;
/// The bytes of a block.
const BLOCK_LEN: usize = 4 << 10;
/// The blocks in which an entry can begin: a pack is full with the one that reaches [`PACK_MAX`].
const BLOCKS: usize = (4 << 20) / BLOCK_LEN;
/// The bytes of a label.
pub(crate) const LABEL: usize = 48;
/// Those of them that the seal covers.
const SEALED: usize = LABEL - 8;

const MAGIC: [u8; 8] = *b"seapack\x1a";
const NOTHING: [u8; BLOCK_LEN] = [0; BLOCK_LEN];

/// Where an entry begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pack: NonZeroU32,
    block: u32,
}

/// The packs of a folder; see the module.
pub(crate) struct Packs {
    folder: PathBuf,
    /// Whether new entries are accepted: the file system makes holes.
    is_on: bool,
    secret: Secret,
    /// The packs below this number are of earlier processes.
    first: NonZeroU32,
    state: Mutex<State>,
}

struct State {
    open: Option<Open>,
    next: NonZeroU32,
    /// Where the entries of each pack begin.
    live: HashMap<NonZeroU32, Beginnings>,
}

/// The pack that is being written.
struct Open {
    number: NonZeroU32,
    file: File,
    end: u64,
}

/// One bit for each block of a pack in which an entry begins: 128 bytes.
#[derive(Clone)]
struct Beginnings(Box<[u64; BLOCKS.div_ceil(64)]>);

impl Beginnings {
    fn none() -> Self {
        Self(Box::new([0; BLOCKS.div_ceil(64)]))
    }

    fn set(&mut self, block: u32) {
        if let Some(word) = self.0.get_mut(block as usize / 64) {
            *word |= 1 << (block % 64);
        }
    }

    /// Returns whether an entry began there.
    fn clear(&mut self, block: u32) -> bool {
        let Some(word) = self.0.get_mut(block as usize / 64) else { return false };
        let before = *word;
        *word &= !(1 << (block % 64));
        *word != before
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

impl Packs {
    /// Opens the packs below `objects`. What earlier processes have written is not known until it is [listed](Self::list).
    pub(crate) fn open(folder: PathBuf, secret: Secret, is_wanted: bool) -> io::Result<Self> {
        let last = numbers(&folder)?.max();
        let next = last.map_or(Some(NonZeroU32::MIN), |last| last.checked_add(1));
        let is_on = is_wanted && next.is_some() && makes_holes(&folder);
        let first = next.unwrap_or(NonZeroU32::MAX);
        Ok(Self { folder, is_on, secret, first, state: Mutex::new(State { open: None, next: first, live: HashMap::new() }) })
    }

    /// Returns whether a response lies in a pack that takes so many bytes with its head.
    pub(crate) const fn take(&self, length: usize) -> bool {
        self.is_on && length <= ENTRY_MAX - LABEL
    }

    /// Writes an entry, in one call to the system nearly always. Call it on the thread that writes.
    pub(crate) fn append(&self, hash: KeyHash, sequence: u64, body: &[u8], tail: &[u8]) -> io::Result<Place> {
        let open = self.state.lock().open.take();
        let mut open = match open {
            Some(open) if open.end < PACK_MAX => open,
            full => {
                full.into_iter().for_each(|full| self.close(&full));
                self.create()?
            }
        };
        let length = body.len() + tail.len();
        let label = Label { length: u32::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?, hash, sequence }.encode(&self.secret);
        let block = u32::try_from(open.end / BLOCK).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // What is left of the last block stays as it is: nothing.
        let written = write_all(&open.file, [&label, body, tail], open.end);
        let place = Place { pack: open.number, block };
        if let Err(error) = written {
            // The next entry begins a pack of its own, so that none stands behind a torn one.
            let _ = cut(&open.file, open.end, ENTRY_MAX as u64);
            self.close(&open);
            return Err(error);
        }
        open.end += (LABEL + length).next_multiple_of(BLOCK_LEN) as u64;
        let mut state = self.state.lock();
        state.live.entry(open.number).or_insert_with(Beginnings::none).set(block);
        state.open = Some(open);
        Ok(place)
    }

    fn create(&self) -> io::Result<Open> {
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next = number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            number
        };
        let file = private().create_new(true).open(self.path(number))?;
        Ok(Open { number, file, end: 0 })
    }

    /// Ends a pack. It goes if nothing is left of it.
    fn close(&self, open: &Open) {
        let mut state = self.state.lock();
        if state.live.get(&open.number).is_none_or(Beginnings::is_empty) {
            state.live.remove(&open.number);
            drop(state);
            let _ = fs::remove_file(self.path(open.number));
        }
    }

    /// Reads what a file of its own would hold. Not found: the entry was removed since it was looked up.
    pub(crate) fn read(&self, place: Place, hash: KeyHash, sequence: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let mut entry = vec![0; usize::try_from(bytes).map_or(ENTRY_MAX, |bytes| bytes.min(ENTRY_MAX))];
        let file = File::open(self.path(place.pack))?;
        let at = u64::from(place.block) * BLOCK;
        // The last block of a pack may be cut short, by a power cut.
        let read = read_at_most(&file, &mut entry, at)?;
        entry.truncate(read);
        let Some((label, rest)) = entry.split_at_checked(LABEL) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        if label == &NOTHING[..LABEL] {
            return Err(io::ErrorKind::NotFound.into());
        }
        let label = Label::parse(label, &self.secret)
            .filter(|label| label.hash == hash && label.sequence == sequence)
            .ok_or(io::ErrorKind::InvalidData)?;
        let whole = LABEL + label.length as usize;
        if rest.len() < label.length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        entry.truncate(whole);
        entry.drain(..LABEL);
        Ok(entry)
    }

    /// Cuts an entry out. To remove it again does nothing.
    pub(crate) fn remove(&self, place: Place, bytes: u64) {
        let is_over = {
            let mut state = self.state.lock();
            let Some(live) = state.live.get_mut(&place.pack) else { return };
            if !live.clear(place.block) {
                return;
            }
            // While an entry is being written, its pack is not `open`: then it has a beginning that is not set yet, and stays.
            let is_over = live.is_empty() && state.next.get() - 1 != place.pack.get();
            if is_over {
                state.live.remove(&place.pack);
            }
            is_over
        };
        let path = self.path(place.pack);
        if is_over {
            let _ = fs::remove_file(path);
        } else if let Ok(file) = File::options().write(true).open(path) {
            let _ = cut(&file, u64::from(place.block) * BLOCK, bytes);
        }
    }

    /// Lists the entries that earlier processes have left, with the bytes that each takes. What is none is cut out. Call it once, and
    /// before anything is removed.
    pub(crate) fn list(&self) -> Vec<Located> {
        let mut found = Vec::new();
        for number in numbers(&self.folder).into_iter().flatten().filter(|number| *number < self.first) {
            let mut live = Beginnings::none();
            let before = found.len();
            // What cannot be read now may be read by the next start.
            let Ok(()) = self.list_pack(number, &mut live, &mut found) else { continue };
            if found.len() == before {
                let _ = fs::remove_file(self.path(number));
            } else {
                self.state.lock().live.insert(number, live);
            }
        }
        found
    }

    fn list_pack(&self, number: NonZeroU32, live: &mut Beginnings, found: &mut Vec<Located>) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(self.path(number))?;
        let length = file.metadata()?.len();
        let mut at = 0;
        while let Ok(data) = seek(&file, SeekFrom::Data(at)) {
            at = data / BLOCK * BLOCK;
            let mut label = [0; LABEL];
            let read = read_at_most(&file, &mut label, at)?;
            let label = Label::parse(&label[..read], &self.secret).filter(|label| at + label.whole() <= length);
            let (Some(label), Ok(block)) = (label, u32::try_from(at / BLOCK)) else {
                let _ = cut(&file, at, BLOCK);
                at += BLOCK;
                continue;
            };
            live.set(block);
            let place = Place { pack: number, block };
            found.push(Located { hash: label.hash, file: Entry::new(label.sequence, label.whole(), Some(place)) });
            at += label.whole().next_multiple_of(BLOCK);
        }
        Ok(())
    }

    fn path(&self, number: NonZeroU32) -> PathBuf {
        self.folder.join(format!("{number:08x}"))
    }
}

/// What stands before an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Label {
    /// The bytes behind the label.
    length: u32,
    hash: KeyHash,
    sequence: u64,
}

impl Label {
    const fn whole(&self) -> u64 {
        LABEL as u64 + self.length as u64
    }

    fn encode(&self, secret: &Secret) -> [u8; LABEL] {
        let mut label = [0; LABEL];
        let (first, second) = self.hash.words();
        label[..8].copy_from_slice(&MAGIC);
        label[8..12].copy_from_slice(&self.length.to_le_bytes());
        label[16..24].copy_from_slice(&first.to_le_bytes());
        label[24..32].copy_from_slice(&second.to_le_bytes());
        label[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        let seal = secret.key(&label[..SEALED]).words().0;
        label[SEALED..].copy_from_slice(&seal.to_le_bytes());
        label
    }

    fn parse(label: &[u8], secret: &Secret) -> Option<Self> {
        let (mut fields, seal) = label.split_at_checked(SEALED)?;
        if fields.get(..8)? != MAGIC || secret.key(fields).words().0.to_le_bytes() != *seal {
            return None;
        }
        fields.advance(8);
        let length = fields.get_u32_le();
        fields.advance(4);
        let hash = KeyHash::from_words(fields.get_u64_le(), fields.get_u64_le());
        let sequence = fields.get_u64_le();
        (length as usize <= ENTRY_MAX - LABEL).then_some(Self { length, hash, sequence })
    }
}

/// Returns the numbers of the packs in a folder. What has another name is removed: nothing else belongs there.
fn numbers(folder: &Path) -> io::Result<impl Iterator<Item = NonZeroU32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let number = entry.file_name().to_str().filter(|name| name.len() == 8).and_then(|name| u32::from_str_radix(name, 16).ok());
        match number.and_then(NonZeroU32::new) {
            Some(number) => numbers.push(number),
            None => drop(fs::remove_file(entry.path())),
        }
    }
    Ok(numbers.into_iter())
}

/// Returns whether the file system gives blocks back that are cut out of a file.
fn makes_holes(folder: &Path) -> bool {
    let path = folder.join("hole");
    let made = private().create(true).truncate(true).open(&path).and_then(|mut file| {
        file.write_all(&NOTHING)?;
        file.write_all(&NOTHING)?;
        cut(&file, 0, BLOCK)
    });
    let _ = fs::remove_file(path);
    made.is_ok()
}

/// Gives blocks back to the system. They read as zeros from now on.
fn cut(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes.next_multiple_of(BLOCK))?)
}

fn write_all(file: &File, parts: [&[u8]; 3], mut at: u64) -> io::Result<()> {
    let mut slices = parts.map(IoSlice::new);
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match pwritev(file, rest, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn read_at_most(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
