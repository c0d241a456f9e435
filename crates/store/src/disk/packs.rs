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
//! A pack is written from front to back by one process, several entries at a time where several wait, and never continued by the next one. What leaves it is cut out as a hole, so nothing is ever
//! moved; a pack of which nothing is left is unlinked. **What was removed must not come back**, and the list of the next start knows only what stands in
//! the file: so a pack that cannot be cut is unlinked with all that is left in it, which is fetched again.
//!
//! Only file systems that are known to give the blocks of a hole back have packs ([`gives_back`]). btrfs, for one, keeps them while anything near is in use.
//!
//! The labels say what there is, so the list is made by reading them. An entry that `kill -9` has torn ends before its footer, and is cut out
//! when the pack is listed. A label is sealed with the folder's secret, for its place: behind a torn entry's label stands what somebody's server sent, and
//! a page must not be able to hold other entries.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstatfs, seek};
use rustix::io::{Errno, pwritev};
use smallvec::SmallVec;

use super::folder::private;
use super::index::{File as Entry, Located};
use crate::hash::{KeyHash, Secret};

/// The most bytes of an entry, with its label.
pub(crate) const ENTRY_MAX: usize = 64 << 10;
/// The bytes of a block.
const BLOCK_LEN: usize = 4 << 10;
const BLOCK: u64 = BLOCK_LEN as u64;
/// The blocks in which an entry can begin: a pack is full with the one that goes beyond them, after 4 MiB. Fewer would mean more files, more would mean
/// that a single page keeps a larger one.
const BLOCKS: usize = 1_024;
/// The bytes of these blocks.
const PACK: u64 = BLOCKS as u64 * BLOCK;
/// File systems that are known to give the blocks of a hole back, by the numbers in statfs(2): ext2 to ext4, XFS, tmpfs, F2FS.
const GIVING_BACK: [u64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0xf2f5_2010];
/// The bytes of a label.
pub(crate) const LABEL: usize = 48;
/// Those of them that the seal covers.
const SEALED: usize = LABEL - 8;

/// The most entries of one call to the system, which takes 1,024 pieces: each is four of them.
const TOGETHER: usize = 256;

const MAGIC: [u8; 8] = *b"seapack\x1a";
const NOTHING: [u8; LABEL] = [0; LABEL];
/// What stands between an entry and the next block.
const ZEROS: [u8; BLOCK_LEN] = [0; BLOCK_LEN];

/// Where an entry begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pack: NonZeroU32,
    block: u32,
}

/// An entry that is to be written.
pub(crate) struct NewEntry {
    pub(crate) hash: KeyHash,
    pub(crate) sequence: u64,
    pub(crate) body: Bytes,
    /// What stands behind the body.
    pub(crate) tail: Vec<u8>,
}

impl NewEntry {
    /// Returns the bytes that it takes, with its label.
    pub(crate) fn bytes(&self) -> usize {
        LABEL + self.body.len() + self.tail.len()
    }
}

/// The last of some entries could not be written: so many, for this reason.
#[derive(Debug)]
pub(crate) struct NotWritten {
    pub(crate) entries: u64,
    pub(crate) error: io::Error,
}

/// The packs of a folder; see the module.
pub(crate) struct Packs {
    folder: PathBuf,
    /// Whether new entries are accepted: the file system makes holes.
    is_on: bool,
    secret: Secret,
    /// The packs of earlier processes.
    earlier: Vec<NonZeroU32>,
    state: Mutex<State>,
}

struct State {
    /// The pack that is written; none while an entry is being written, and before the first one.
    open: Option<Open>,
    /// Its number, also while an entry is being written.
    writing: Option<NonZeroU32>,
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
        let earlier = numbers(&folder)?;
        let next = earlier.iter().max().map_or(Some(NonZeroU32::MIN), |last| last.checked_add(1));
        let is_on = is_wanted && next.is_some() && gives_back(&folder).unwrap_or(false);
        let state = State { open: None, writing: None, next: next.unwrap_or(NonZeroU32::MAX), live: HashMap::new() };
        Ok(Self { folder, is_on, secret, earlier, state: Mutex::new(state) })
    }

    /// Returns whether a response lies in a pack that takes so many bytes with its head.
    pub(crate) const fn accept(&self, length: usize) -> bool {
        self.is_on && length <= ENTRY_MAX - LABEL
    }

    /// Writes entries, as many as the pack has room for in one call to the system, and appends their places, in the same order. Call it on the thread that
    /// writes: one call comes after another.
    ///
    /// If it fails, the places say which of the first have been written; nothing is left of the others.
    pub(crate) fn append(&self, mut entries: &[NewEntry], places: &mut Vec<Place>) -> Result<(), NotWritten> {
        while !entries.is_empty() {
            let lost = |error| NotWritten { entries: entries.len() as u64, error };
            let number = self.append_some(entries, places).map_err(lost)?;
            entries = &entries[number..];
        }
        Ok(())
    }

    /// Writes the first of these entries, as many as the pack has room for, and returns their number.
    fn append_some(&self, entries: &[NewEntry], places: &mut Vec<Place>) -> io::Result<usize> {
        loop {
            let open = self.state.lock().open.take();
            let mut open = match open {
                // A file without a name, whose folder somebody has removed, is lost with the process.
                Some(open) if open.end < PACK && open.file.metadata()?.nlink() > 0 => open,
                over => {
                    over.into_iter().for_each(|over| self.close(&over));
                    self.create()?
                }
            };
            let begin = open.end;
            let mut labels: SmallVec<[(Place, [u8; LABEL]); 32]> = SmallVec::new();
            for entry in entries.iter().take(TOGETHER) {
                if open.end >= PACK {
                    break;
                }
                let block = u32::try_from(open.end / BLOCK).map_err(|_| io::ErrorKind::FileTooLarge)?;
                let length = u32::try_from(entry.body.len() + entry.tail.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
                let place = Place { pack: open.number, block };
                labels.push((place, Label { length, hash: entry.hash, sequence: entry.sequence }.encode(place, &self.secret)));
                open.end += entry.bytes().next_multiple_of(BLOCK_LEN) as u64;
            }
            let mut slices = Vec::with_capacity(4 * labels.len());
            for ((_, label), entry) in labels.iter().zip(entries) {
                let fill = entry.bytes().next_multiple_of(BLOCK_LEN) - entry.bytes();
                slices.extend([&label[..], &entry.body, &entry.tail, &ZEROS[..fill]].map(IoSlice::new));
            }
            // The rest of the last block is not written: it reads as zeros.
            slices.pop();
            if let Err(error) = write_all(&open.file, &mut slices, begin) {
                // The next entry begins a pack of its own, so that none stands behind a torn one.
                self.close(&Open { end: begin, ..open });
                return Err(error);
            }
            let mut state = self.state.lock();
            // It is another one if this pack had to be given up meanwhile.
            if state.writing == Some(open.number) {
                let live = state.live.entry(open.number).or_insert_with(Beginnings::none);
                labels.iter().for_each(|(place, _)| live.set(place.block));
                places.extend(labels.iter().map(|(place, _)| *place));
                state.open = Some(open);
                return Ok(labels.len());
            }
        }
    }

    fn create(&self) -> io::Result<Open> {
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next = number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            number
        };
        let file = private().create_new(true).open(self.path(number))?;
        self.state.lock().writing = Some(number);
        Ok(Open { number, file, end: 0 })
    }

    /// Ends a pack, cuts off what stands behind its last entry, and what a file system has put there in advance. It goes if nothing is left of it.
    fn close(&self, open: &Open) {
        let is_cut = open.file.set_len(open.end).is_ok();
        let mut state = self.state.lock();
        state.writing = None;
        if !is_cut || state.live.get(&open.number).is_none_or(Beginnings::is_empty) {
            self.give_up(&mut state, open.number);
        }
    }

    /// Unlinks a pack with all that is in it.
    fn give_up(&self, state: &mut State, number: NonZeroU32) {
        state.live.remove(&number);
        if state.writing == Some(number) {
            (state.open, state.writing) = (None, None);
        }
        let _ = fs::remove_file(self.path(number));
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
        if *label == NOTHING {
            return Err(io::ErrorKind::NotFound.into());
        }
        let label = Label::parse(label, place, &self.secret)
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

    /// Cuts entries out, each with the bytes that it takes. To remove one again does nothing.
    pub(crate) fn remove(&self, gone: impl IntoIterator<Item = (Place, u64)>) {
        let mut holes: BTreeMap<NonZeroU32, Vec<(u32, u64)>> = BTreeMap::new();
        let mut state = self.state.lock();
        for (Place { pack, block }, bytes) in gone {
            if state.live.get_mut(&pack).is_some_and(|live| live.clear(block)) {
                holes.entry(pack).or_default().push((block, bytes));
            }
        }
        // An empty pack is unlinked, so its entries need not be cut out. The pack that is written stays until it is full.
        holes.retain(|pack, _| {
            let is_over = state.writing != Some(*pack) && state.live.get(pack).is_some_and(Beginnings::is_empty);
            if is_over {
                self.give_up(&mut state, *pack);
            }
            !is_over
        });
        drop(state);
        for (pack, holes) in holes {
            let cut_all = || {
                let file = File::options().write(true).open(self.path(pack))?;
                holes.iter().try_for_each(|(block, bytes)| cut(&file, u64::from(*block) * BLOCK, *bytes))
            };
            if cut_all().is_err() {
                self.give_up(&mut self.state.lock(), pack);
            }
        }
    }

    /// Lists the entries that earlier processes have left, with the bytes that each takes, and counts the places where something else stood. That is cut
    /// out. Call it once.
    pub(crate) fn list(&self) -> (Vec<Located>, u64) {
        let (mut found, mut damaged) = (Vec::new(), 0);
        for number in self.earlier.iter().copied() {
            let mut live = Beginnings::none();
            let before = found.len();
            let read = self.list_pack(number, &mut live, &mut found);
            damaged += *read.as_ref().unwrap_or(&1);
            if read.is_ok() && found.len() > before {
                self.state.lock().live.insert(number, live);
            } else {
                // What cannot be read cannot be cut either, and would be back with the next start.
                found.truncate(before);
                self.give_up(&mut self.state.lock(), number);
            }
        }
        (found, damaged)
    }

    fn list_pack(&self, number: NonZeroU32, live: &mut Beginnings, found: &mut Vec<Located>) -> io::Result<u64> {
        let file = File::options().read(true).write(true).open(self.path(number))?;
        let length = file.metadata()?.len();
        let (mut at, mut damaged, mut is_in_damage) = (0, 0, false);
        loop {
            at = match seek(&file, SeekFrom::Data(at)) {
                Ok(data) => data / BLOCK * BLOCK,
                // There is nothing behind it.
                Err(Errno::NXIO) => return Ok(damaged),
                Err(error) => return Err(error.into()),
            };
            let mut label = [0; LABEL];
            let read = read_at_most(&file, &mut label, at)?;
            let block = u32::try_from(at / BLOCK).map_err(|_| io::ErrorKind::InvalidData)?;
            let place = Place { pack: number, block };
            let Some(label) = Label::parse(&label[..read], place, &self.secret) else {
                damaged += u64::from(!is_in_damage);
                is_in_damage = true;
                cut(&file, at, BLOCK)?;
                at += BLOCK;
                continue;
            };
            is_in_damage = false;
            if at + label.whole() > length {
                // The process was killed while it wrote this one, which is then the last.
                file.set_len(at)?;
                return Ok(damaged);
            }
            live.set(block);
            found.push(Located { hash: label.hash, file: Entry::new(label.sequence, label.whole(), Some(place)) });
            at += label.whole().next_multiple_of(BLOCK);
        }
    }

    fn path(&self, number: NonZeroU32) -> PathBuf {
        self.folder.join(name_of(number))
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

    fn encode(&self, place: Place, secret: &Secret) -> [u8; LABEL] {
        let mut label = [0; LABEL];
        let (first, second) = self.hash.words();
        label[..8].copy_from_slice(&MAGIC);
        label[8..12].copy_from_slice(&self.length.to_le_bytes());
        label[16..24].copy_from_slice(&first.to_le_bytes());
        label[24..32].copy_from_slice(&second.to_le_bytes());
        label[32..SEALED].copy_from_slice(&self.sequence.to_le_bytes());
        let seal = seal(&label[..SEALED], place, secret);
        label[SEALED..].copy_from_slice(&seal);
        label
    }

    fn parse(label: &[u8], place: Place, secret: &Secret) -> Option<Self> {
        let (mut fields, sealed) = label.split_at_checked(SEALED)?;
        if fields.get(..8)? != MAGIC || seal(fields, place, secret) != *sealed {
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

/// Returns what nobody else can compute for a label at this place.
fn seal(fields: &[u8], place: Place, secret: &Secret) -> [u8; 8] {
    let mut sealed = [0; SEALED + 8];
    sealed[..SEALED].copy_from_slice(fields);
    sealed[SEALED..SEALED + 4].copy_from_slice(&place.pack.get().to_le_bytes());
    sealed[SEALED + 4..].copy_from_slice(&place.block.to_le_bytes());
    secret.key(&sealed).words().0.to_le_bytes()
}

/// Returns the numbers of the packs in a folder. What has another name is removed: nothing else belongs there.
fn numbers(folder: &Path) -> io::Result<Vec<NonZeroU32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| u32::from_str_radix(name, 16).ok()).and_then(NonZeroU32::new);
        match number.filter(|number| name == name_of(*number).as_str()) {
            Some(number) => numbers.push(number),
            None => drop(fs::remove_file(entry.path())),
        }
    }
    Ok(numbers)
}

fn name_of(number: NonZeroU32) -> String {
    format!("{number:08x}")
}

/// Returns whether the file system gives blocks back that are cut out of a file, each of 4 KiB: it is one that is known to, and does so here.
fn gives_back(folder: &Path) -> io::Result<bool> {
    let path = folder.join("hole");
    let mut file = private().create(true).truncate(true).open(&path)?;
    let mut try_it = || {
        #[expect(clippy::cast_sign_loss, reason = "a magic number")]
        let kind = fstatfs(&file)?.f_type as u64;
        file.write_all(&[b'.'; 2 * BLOCK_LEN])?;
        let before = file.metadata()?.blocks();
        cut(&file, 0, BLOCK)?;
        // `blocks` counts 512 bytes.
        Ok(GIVING_BACK.contains(&kind) && before.saturating_sub(file.metadata()?.blocks()) >= BLOCK / 512)
    };
    let gives_back = try_it();
    let _ = fs::remove_file(path);
    gives_back
}

/// Gives blocks back to the system. They read as zeros from now on.
fn cut(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes.next_multiple_of(BLOCK))?)
}

fn write_all(file: &File, mut rest: &mut [IoSlice<'_>], mut at: u64) -> io::Result<()> {
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
