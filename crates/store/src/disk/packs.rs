//! Many small responses in one file.
//!
//! To create, rename and close a file costs a disk's thread several times what it costs to write a page. So a response of up to [`ENTRY_MAX`]
//! bytes shares a file with those that were written before and after it:
//!
//! ```text
//! objects/packs/<number>   entry, entry, ...    each begins at a unit of 512 bytes
//! entry: label (48 bytes), then what a file of its own would hold (format.rs)
//! label: magic, length of what follows, key hash, sequence, seal
//! ```
//!
//! A pack is written from front to back by one process, several entries at a time where several wait, and never continued by the next one. An entry begins
//! where the one before it ends, unless it would then lie in more blocks of the file system than it needs. So the blocks that each entry needs, added up,
//! are never fewer than the file takes, whoever is removed first. If each began at a block of its own, a page of 9 KB would have 12 KB written for it.
//!
//! What leaves a pack is cut out as a hole, so nothing is ever moved: its bytes read as zeros, and each block of which nothing is left goes back to the
//! system. A pack of which nothing is left is unlinked. **What was removed must not come back**, and the list of the next start knows only what stands in
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
use std::ops::Range;
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
/// The bytes of a block, which the file system gives and takes back.
const BLOCK_LEN: usize = 4 << 10;
const BLOCK: u64 = BLOCK_LEN as u64;
/// The bytes of a unit: entries begin at multiples of it.
const UNIT_LEN: usize = 512;
const UNIT: u64 = UNIT_LEN as u64;
/// The units of a block: one for each bit of a byte.
const UNITS: usize = BLOCK_LEN / UNIT_LEN;
/// The bytes in which an entry can begin: a pack is full with the one that goes beyond them. Fewer would mean more files, more would mean that a single
/// page keeps a larger one.
const PACK_LEN: usize = 4 << 20;
const PACK: u64 = PACK_LEN as u64;
/// The blocks of the longest pack: its last entry begins at its end.
const BLOCKS: usize = (PACK_LEN + ENTRY_MAX) / BLOCK_LEN;
/// File systems that are known to give the blocks of a hole back, by the numbers in statfs(2): ext2 to ext4, XFS, tmpfs, F2FS.
const GIVING_BACK: [u64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0xf2f5_2010];
/// The bytes of a label.
pub(crate) const LABEL: usize = 48;
/// The bytes of a label that the seal covers.
const SEALED: usize = LABEL - 8;

/// The most entries of one call to the system, which takes 1,024 pieces: each is four of them.
const TOGETHER: usize = 256;

const MAGIC: [u8; 8] = *b"seapack\x1b";
/// The bytes with which labels began while each entry began at a block. Such packs are read, and no longer written.
const MAGIC_OF_BLOCKS: [u8; 8] = *b"seapack\x1a";
const NOTHING: [u8; LABEL] = [0; LABEL];
/// The bytes between an entry and the next one.
const ZEROS: [u8; BLOCK_LEN] = [0; BLOCK_LEN];

/// The extent of an entry: these units of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackExtent {
    pack: NonZeroU32,
    first: u16,
    units: u16,
}

impl PackExtent {
    /// Returns the place of so many bytes that begin there. Fails if no entry can lie there.
    fn new(pack: NonZeroU32, at: u64, bytes: u64) -> io::Result<Self> {
        if at > PACK || bytes > ENTRY_MAX as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let units = |bytes: u64| u16::try_from(bytes / UNIT).map_err(|_| io::ErrorKind::InvalidData);
        Ok(Self { pack, first: units(at)?, units: units(bytes.next_multiple_of(UNIT))? })
    }

    fn at(self) -> u64 {
        u64::from(self.first) * UNIT
    }

    fn end(self) -> u64 {
        self.at() + self.bytes() as u64
    }

    fn bytes(self) -> usize {
        usize::from(self.units) * UNIT_LEN
    }

    /// Returns the blocks that it lies in, each with a bit for every unit that it takes there.
    fn blocks(self) -> impl Iterator<Item = (usize, u8)> {
        let (first, end) = (usize::from(self.first), usize::from(self.first) + usize::from(self.units));
        (first / UNITS..end.div_ceil(UNITS)).map(move |block| {
            let from = first.saturating_sub(block * UNITS);
            let to = (end - block * UNITS).min(UNITS);
            (block, (u8::MAX << from) & (u8::MAX >> (UNITS - to)))
        })
    }
}

/// An entry that is to be written.
pub(crate) struct NewEntry {
    pub(crate) hash: KeyHash,
    pub(crate) sequence: u64,
    pub(crate) body: Bytes,
    /// The bytes that stand behind the body.
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
    open: Option<OpenPack>,
    /// The place where the next entry goes, also while one is being written.
    writing: Option<Writing>,
    next: NonZeroU32,
    /// The units of each pack that are taken, also by entries that are being written.
    taken: HashMap<NonZeroU32, TakenUnits>,
}

/// The number of the pack that is written, and where the next entry may begin.
#[derive(Clone, Copy)]
struct Writing {
    number: NonZeroU32,
    end: u64,
}

/// The pack that is written.
struct OpenPack {
    number: NonZeroU32,
    file: File,
}

impl State {
    /// Returns where the next entry may begin in this pack, if it is the one that is written.
    fn end_of(&self, number: NonZeroU32) -> Option<u64> {
        self.writing.filter(|writing| writing.number == number).map(|writing| writing.end)
    }

    /// Takes places in a pack for the first of some entries of these lengths, as many as there is room for. Returns `None` if the pack had to be given up.
    fn take(&mut self, number: NonZeroU32, entries: impl Iterator<Item = u64>) -> Option<Result<SmallVec<[PackExtent; 32]>, io::Error>> {
        let mut end = self.end_of(number)?;
        let taken = self.taken.entry(number).or_insert_with(TakenUnits::none);
        let mut extents = SmallVec::new();
        for bytes in entries {
            let at = beginning(end, bytes);
            if at >= PACK && !extents.is_empty() {
                break;
            }
            match PackExtent::new(number, at, bytes) {
                Ok(extent) => {
                    taken.take(extent);
                    end = extent.end();
                    extents.push(extent);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        self.writing = Some(Writing { number, end });
        Some(Ok(extents))
    }

    /// Frees the units of an entry. Returns the bytes of the pack that can be cut out now, or `None` if it was freed before.
    fn free(&mut self, extent: PackExtent) -> Option<Range<u64>> {
        let taken = self.taken.get_mut(&extent.pack)?;
        if !taken.free(extent) {
            return None;
        }
        let (first, last) = (extent.at() / BLOCK, (extent.end() - 1) / BLOCK);
        let at = if taken.is_free(first) { first * BLOCK } else { extent.at() };
        let end = if taken.is_free(last) { (last + 1) * BLOCK } else { extent.end() };
        // What is given back is not written: the next entry begins behind it.
        if let Some(writing) = self.writing.as_mut().filter(|writing| writing.number == extent.pack) {
            writing.end = if (at..end).contains(&writing.end) { end } else { writing.end };
        }
        Some(at..end)
    }
}

/// One bit for each unit of a pack that is taken by an entry, one byte for each block: 1,040 bytes.
#[derive(Clone)]
struct TakenUnits(Box<[u8; BLOCKS]>);

impl TakenUnits {
    fn none() -> Self {
        Self(Box::new([0; BLOCKS]))
    }

    fn take(&mut self, extent: PackExtent) {
        for (block, units) in extent.blocks() {
            if let Some(taken) = self.0.get_mut(block) {
                *taken |= units;
            }
        }
    }

    /// Returns whether the entry was there. Units are taken once, so the first of them says it.
    fn free(&mut self, extent: PackExtent) -> bool {
        let mut is_there = None;
        for (block, units) in extent.blocks() {
            let Some(taken) = self.0.get_mut(block) else { break };
            is_there = is_there.or(Some(*taken & units == units));
            *taken &= !units;
        }
        is_there.unwrap_or(false)
    }

    fn is_free(&self, block: u64) -> bool {
        usize::try_from(block).ok().and_then(|block| self.0.get(block)).is_none_or(|taken| *taken == 0)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|taken| *taken == 0)
    }
}

impl Packs {
    /// Opens the packs below `objects`. What earlier processes have written is not known until it is [listed](Self::list).
    pub(crate) fn open(folder: PathBuf, secret: Secret, is_wanted: bool) -> io::Result<Self> {
        let earlier = numbers(&folder)?;
        let next = earlier.iter().max().map_or(Some(NonZeroU32::MIN), |last| last.checked_add(1));
        let is_on = is_wanted && next.is_some() && gives_back(&folder).unwrap_or(false);
        let state = State { open: None, writing: None, next: next.unwrap_or(NonZeroU32::MAX), taken: HashMap::new() };
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
    pub(crate) fn append(&self, mut entries: &[NewEntry], extents: &mut Vec<PackExtent>) -> Result<(), NotWritten> {
        while !entries.is_empty() {
            let lost = |error| NotWritten { entries: entries.len() as u64, error };
            let number = self.append_some(entries, extents).map_err(lost)?;
            entries = &entries[number..];
        }
        Ok(())
    }

    /// Writes the first of these entries, as many as the pack has room for, and returns their number.
    fn append_some(&self, entries: &[NewEntry], extents: &mut Vec<PackExtent>) -> io::Result<usize> {
        loop {
            let (open, end) = {
                let mut state = self.state.lock();
                let open = state.open.take();
                let end = open.as_ref().and_then(|open| state.end_of(open.number)).unwrap_or(PACK);
                (open, end)
            };
            let open = match open {
                // A file without a name, whose folder somebody has removed, is lost with the process.
                Some(open) if end < PACK && open.file.metadata()?.nlink() > 0 => open,
                over => {
                    over.into_iter().for_each(|over| self.close(&over));
                    self.create()?
                }
            };
            let taken = self.state.lock().take(open.number, entries.iter().take(TOGETHER).map(|entry| entry.bytes() as u64));
            let Some(taken) = taken.transpose()? else { continue };
            let labels: SmallVec<[[u8; LABEL]; 32]> =
                taken.iter().zip(entries).map(|(extent, entry)| Label::of(entry).encode(*extent, &self.secret)).collect();
            let mut slices = Vec::with_capacity(4 * labels.len());
            for (number, ((extent, label), entry)) in taken.iter().zip(&labels).zip(entries).enumerate() {
                slices.extend([&label[..], &entry.body, &entry.tail].map(IoSlice::new));
                // The rest of the last unit is not written: it reads as zeros.
                if let Some(next) = taken.get(number + 1) {
                    slices.push(IoSlice::new(&ZEROS[..usize::from(next.first - extent.first) * UNIT_LEN - entry.bytes()]));
                }
            }
            if let Err(error) = write_all(&open.file, &mut slices, taken.first().map_or(0, |first| first.at())) {
                let mut state = self.state.lock();
                for extent in &taken {
                    state.free(*extent);
                }
                if let (Some(writing), Some(first)) =
                    (state.writing.as_mut().filter(|writing| writing.number == open.number), taken.first())
                {
                    writing.end = first.at();
                }
                drop(state);
                // The next entry begins a pack of its own, so that none stands behind a torn one.
                self.close(&open);
                return Err(error);
            }
            let mut state = self.state.lock();
            // It is another one if this pack had to be given up meanwhile.
            if state.end_of(open.number).is_some() {
                extents.extend(&taken);
                state.open = Some(open);
                return Ok(taken.len());
            }
        }
    }

    fn create(&self) -> io::Result<OpenPack> {
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next = number.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
            number
        };
        let file = private().create_new(true).open(self.path(number))?;
        self.state.lock().writing = Some(Writing { number, end: 0 });
        Ok(OpenPack { number, file })
    }

    /// Ends a pack, and cuts off what stands behind its last entry: what was torn, and what a file system has put there in advance. It goes if nothing is
    /// left of it.
    fn close(&self, open: &OpenPack) {
        let mut state = self.state.lock();
        let Some(end) = state.end_of(open.number) else { return };
        state.writing = None;
        let Some(taken) = state.taken.get(&open.number).filter(|taken| !taken.is_empty()) else {
            return self.give_up(&mut state, open.number);
        };
        let end = if taken.is_free(end / BLOCK) { end / BLOCK * BLOCK } else { end };
        if open.file.set_len(end).is_err() {
            self.give_up(&mut state, open.number);
        }
    }

    /// Unlinks a pack with all that is in it.
    fn give_up(&self, state: &mut State, number: NonZeroU32) {
        state.taken.remove(&number);
        if state.end_of(number).is_some() {
            (state.open, state.writing) = (None, None);
        }
        let _ = fs::remove_file(self.path(number));
    }

    /// Reads what a file of its own would hold. Not found: the entry was removed since it was looked up.
    pub(crate) fn read(&self, extent: PackExtent, hash: KeyHash, sequence: u64) -> io::Result<Vec<u8>> {
        let mut entry = vec![0; extent.bytes()];
        let file = File::open(self.path(extent.pack))?;
        // The last unit of a pack may be cut short.
        let read = read_at_most(&file, &mut entry, extent.at())?;
        entry.truncate(read);
        let Some((label, rest)) = entry.split_at_checked(LABEL) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        if *label == NOTHING {
            return Err(io::ErrorKind::NotFound.into());
        }
        let label = Label::parse(label, extent.pack, extent.at(), &self.secret)
            .map(|(label, _)| label)
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

    /// Cuts entries out. To remove one again does nothing.
    pub(crate) fn remove(&self, gone: impl IntoIterator<Item = PackExtent>) {
        let mut holes: BTreeMap<NonZeroU32, Vec<Range<u64>>> = BTreeMap::new();
        let mut state = self.state.lock();
        for extent in gone {
            if let Some(hole) = state.free(extent) {
                holes.entry(extent.pack).or_default().push(hole);
            }
        }
        // An empty pack is unlinked, so its entries need not be cut out. The pack that is written stays until it is full.
        holes.retain(|pack, _| {
            let is_over = state.end_of(*pack).is_none() && state.taken.get(pack).is_some_and(TakenUnits::is_empty);
            if is_over {
                self.give_up(&mut state, *pack);
            }
            !is_over
        });
        drop(state);
        for (pack, holes) in holes {
            let cut_all = || {
                let file = File::options().write(true).open(self.path(pack))?;
                holes.into_iter().try_for_each(|hole| cut(&file, hole))
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
            let mut taken = TakenUnits::none();
            let before = found.len();
            let read = self.list_pack(number, &mut taken, &mut found);
            damaged += *read.as_ref().unwrap_or(&1);
            if read.is_ok() && found.len() > before {
                self.state.lock().taken.insert(number, taken);
            } else {
                // What cannot be read cannot be cut either, and would be back with the next start.
                found.truncate(before);
                self.give_up(&mut self.state.lock(), number);
            }
        }
        (found, damaged)
    }

    fn list_pack(&self, number: NonZeroU32, taken: &mut TakenUnits, found: &mut Vec<Located>) -> io::Result<u64> {
        let file = File::options().read(true).write(true).open(self.path(number))?;
        let length = file.metadata()?.len();
        let (mut at, mut damaged, mut rest) = (0, 0, Gap::default());
        loop {
            let data = match seek(&file, SeekFrom::Data(at)) {
                Ok(data) => data / UNIT * UNIT,
                // There is nothing behind it.
                Err(Errno::NXIO) => {
                    damaged += rest.cut_out(&file, at)?;
                    return Ok(damaged);
                }
                Err(error) => return Err(error.into()),
            };
            if data > at {
                damaged += rest.cut_out(&file, at)?;
                at = data;
            }
            if at > PACK {
                // No entry begins here.
                damaged += rest.cut_out(&file, at)?;
                file.set_len(at)?;
                return Ok(damaged);
            }
            let mut block = [0; BLOCK_LEN];
            let left = usize::try_from(BLOCK - at % BLOCK).unwrap_or(BLOCK_LEN);
            let read = read_at_most(&file, &mut block[..left], at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut units = block[..read].chunks(UNIT_LEN).zip((at..).step_by(UNIT_LEN));
            let entry = units.find_map(|(unit, at)| match Label::parse(unit.get(..LABEL).unwrap_or_default(), number, at, &self.secret) {
                Some((label, unit)) => Some((at, label, unit)),
                None => {
                    rest.add(at, unit);
                    None
                }
            });
            let Some((begin, label, unit)) = entry else {
                at = (at / BLOCK + 1) * BLOCK;
                continue;
            };
            damaged += rest.cut_out(&file, begin)?;
            if begin + label.whole() > length {
                // The process was killed while it wrote this one, which is then the last.
                file.set_len(begin)?;
                return Ok(damaged);
            }
            let extent = PackExtent::new(number, begin, label.whole().next_multiple_of(unit))?;
            taken.take(extent);
            found.push(Located { hash: label.hash, file: Entry::new(label.sequence, label.whole(), Some(extent)) });
            at = extent.end();
        }
    }

    fn path(&self, number: NonZeroU32) -> PathBuf {
        self.folder.join(name_of(number))
    }
}

/// The bytes between entries when a pack is listed: zeros where one was cut out whose neighbours have stayed, or damage.
#[derive(Default)]
struct Gap {
    begin: Option<u64>,
    is_damage: bool,
}

impl Gap {
    fn add(&mut self, at: u64, unit: &[u8]) {
        self.begin.get_or_insert(at);
        self.is_damage |= unit.iter().take(LABEL).any(|byte| *byte != 0);
    }

    /// Cuts out what ends there, of zeros the whole blocks alone. Returns how many times there was damage: once, or not at all.
    fn cut_out(&mut self, file: &File, end: u64) -> io::Result<u64> {
        let Self { begin: Some(begin), is_damage } = std::mem::take(self) else { return Ok(0) };
        let rest = if is_damage { begin..end } else { begin.next_multiple_of(BLOCK)..end / BLOCK * BLOCK };
        if !rest.is_empty() {
            cut(file, rest)?;
        }
        Ok(u64::from(is_damage))
    }
}

/// Stands before an entry: its length, the hash of its key, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Label {
    /// The bytes behind the label.
    length: u32,
    hash: KeyHash,
    sequence: u64,
}

impl Label {
    /// Returns the label of an entry, which has a length that a pack accepts.
    fn of(entry: &NewEntry) -> Self {
        let length = u32::try_from(entry.bytes() - LABEL).unwrap_or(u32::MAX);
        Self { length, hash: entry.hash, sequence: entry.sequence }
    }

    const fn whole(&self) -> u64 {
        LABEL as u64 + self.length as u64
    }

    fn encode(&self, extent: PackExtent, secret: &Secret) -> [u8; LABEL] {
        let mut label = [0; LABEL];
        let (first, second) = self.hash.words();
        label[..8].copy_from_slice(&MAGIC);
        label[8..12].copy_from_slice(&self.length.to_le_bytes());
        label[16..24].copy_from_slice(&first.to_le_bytes());
        label[24..32].copy_from_slice(&second.to_le_bytes());
        label[32..SEALED].copy_from_slice(&self.sequence.to_le_bytes());
        let seal = seal(&label[..SEALED], extent.pack, u32::from(extent.first), secret);
        label[SEALED..].copy_from_slice(&seal);
        label
    }

    /// Parses what stands there in a pack. Returns in units of how many bytes the entry lies there, too.
    fn parse(label: &[u8], pack: NonZeroU32, at: u64, secret: &Secret) -> Option<(Self, u64)> {
        let (mut fields, sealed) = label.split_at_checked(SEALED)?;
        let unit = match fields.first_chunk()? {
            magic if *magic == MAGIC => UNIT,
            magic if *magic == MAGIC_OF_BLOCKS => BLOCK,
            _ => return None,
        };
        if !at.is_multiple_of(unit) || seal(fields, pack, u32::try_from(at / unit).ok()?, secret) != *sealed {
            return None;
        }
        fields.advance(8);
        let length = fields.get_u32_le();
        fields.advance(4);
        let hash = KeyHash::from_words(fields.get_u64_le(), fields.get_u64_le());
        let sequence = fields.get_u64_le();
        (length as usize <= ENTRY_MAX - LABEL).then_some((Self { length, hash, sequence }, unit))
    }
}

/// Returns what nobody else can compute for a label at this unit of a pack.
fn seal(fields: &[u8], pack: NonZeroU32, unit: u32, secret: &Secret) -> [u8; 8] {
    let mut sealed = [0; SEALED + 8];
    sealed[..SEALED].copy_from_slice(fields);
    sealed[SEALED..SEALED + 4].copy_from_slice(&pack.get().to_le_bytes());
    sealed[SEALED + 4..].copy_from_slice(&unit.to_le_bytes());
    secret.key(&sealed).words().0.to_le_bytes()
}

/// Returns the numbers of the packs in a folder. What has another name or is not a file is removed: nothing else belongs there.
fn numbers(folder: &Path) -> io::Result<Vec<NonZeroU32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| u32::from_str_radix(name, 16).ok()).and_then(NonZeroU32::new);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        match number.filter(|number| is_file && name == name_of(*number).as_str()) {
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
        cut(&file, 0..BLOCK)?;
        // `blocks` counts 512 bytes.
        Ok(GIVING_BACK.contains(&kind) && before.saturating_sub(file.metadata()?.blocks()) >= BLOCK / 512)
    };
    let gives_back = try_it();
    let _ = fs::remove_file(path);
    gives_back
}

/// Returns where an entry of so many bytes begins that follows what ends there: at the next block if it would lie in more blocks than it needs.
const fn beginning(end: u64, bytes: u64) -> u64 {
    let (lies_in, needs) = ((end % BLOCK + bytes).div_ceil(BLOCK), bytes.div_ceil(BLOCK));
    if lies_in > needs { end.next_multiple_of(BLOCK) } else { end }
}

/// Makes bytes of a file read as zeros, and gives whole blocks of them back to the system.
fn cut(file: &File, bytes: Range<u64>) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, bytes.start, bytes.end - bytes.start)?)
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
