//! The tier at work: files are written, read, listed and unlinked.

use std::fs;
use std::io::{self, IoSlice, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::folder::{Folder, private};
use super::format::{Head, HeadParts, Pieces};
use super::index::{File, FileId, Index, IndexTotals, Located};
use super::io::{Batch, Io};
use super::mark::Mark;
use super::packs::{NewEntry, NotWritten, PackExtent, Packs};
use super::purge_log::History;
use super::sites::SiteNumbers;
use super::{DiskOptions, DiskState, Trouble};
use crate::content::Content;
use crate::hash::{KeyHash, Secret};
use crate::options::StoreOptions;
use crate::purge::{Generation, PurgeTable};
use crate::resource::{Record, Stored};
use crate::spool::DiskBody;

/// The number of responses that are not written after a failure, before another one is tried. This crate has no clock; a disk that is full
/// is tried again as soon as there is something to write to it, but not every time.
const SKIPPED: u32 = 32;
/// The most small responses that are written by one call to the system, and the bytes after which no further one is added to them: more
/// would hardly be cheaper.
const GATHERED: usize = 32;
const GATHERED_BYTES: usize = 256 << 10;
/// The number of bits that number the files of one start: more than a process can use up.
const SEQUENCES: u32 = 40;

/// The disk tier; see the module.
pub(crate) struct Disk {
    folder: Folder,
    io: Arc<Io>,
    packs: Packs,
    /// Whether the packs are in the index.
    packs_are_listed: Mutex<bool>,
    index: Index,
    sequence: AtomicU64,
    /// The locks of the buckets, so that each is listed once.
    buckets: Box<[Mutex<bool>]>,
    /// Whether the files of each bucket are in the index.
    listed: Box<[AtomicBool]>,
    loading: AtomicBool,
    closing: AtomicBool,
    /// Small responses that are about to be written together.
    gathered: Mutex<Gathered>,
    /// Files that the index has forgotten, to be unlinked.
    doomed: Mutex<Vec<Located>>,
    sweep_is_queued: AtomicBool,
    health: Mutex<Health>,
    sites: Mutex<Option<SiteNumbers>>,
    counts: Counts,
    object_max: u64,
    report: Arc<dyn Fn(&Trouble) + Send + Sync>,
}

/// Small responses that are about to be written, and their bytes.
#[derive(Default)]
struct Gathered {
    entries: Vec<Staged>,
    bytes: usize,
}

struct Staged {
    entry: NewEntry,
    ended: WhenWritten,
}

/// The work that is due when a response has been written at a place, or could not be. It is told the bytes that the response takes there.
type WhenWritten = Box<dyn FnOnce(&Disk, Option<PackExtent>, u64) + Send>;

/// A response on its way to the disk.
enum Prepared {
    /// Its body, and what stands behind it: it goes into a pack.
    Small(Bytes, Vec<u8>),
    /// It has a file of its own.
    Written(File),
}

#[derive(Default)]
struct Health {
    state: DiskState,
    skip: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) writes: AtomicU64,
    pub(crate) write_failures: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) loads: AtomicU64,
}

/// Writes a body and what stands behind it in its file: nearly always in one call to the system.
fn write_both(file: &mut fs::File, body: &[u8], tail: &[u8]) -> io::Result<()> {
    let written = match file.write_vectored(&[IoSlice::new(body), IoSlice::new(tail)]) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        written => written?,
    };
    file.write_all(body.get(written..).unwrap_or_default())?;
    file.write_all(tail.get(written.saturating_sub(body.len())..).unwrap_or_default())
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Disk {
    /// Opens the folder, and begins to list it in the background. Blocks for some small files: call it at the start, not on a worker.
    pub(crate) fn open(options: DiskOptions, store: &StoreOptions) -> Result<(Arc<Self>, PurgeTable), Trouble> {
        let failed = |error: io::Error| Trouble::Unusable { dir: options.dir.clone(), error: error.to_string() };
        let folder = Folder::open(&options.dir)?;
        let sites = SiteNumbers::open(folder.path().to_owned()).map_err(failed)?;
        let (purges, history) = PurgeTable::open(store.purge_targets_max, folder.secret, folder.path()).map_err(failed)?;
        let why = match history {
            _ if folder.emptied.is_some() => folder.emptied,
            _ if folder.starts == 1 => None,
            _ if sites.damaged() => Some("which site is which can no longer be read"),
            History::Lost => Some("what was purged can no longer be read"),
            History::Whole | History::Damaged => None,
        };
        let gone = if why.is_some() && folder.emptied.is_none() { Some(folder.empty().map_err(failed)?) } else { None };
        // The numbers are written only now: until nothing is left of what had a number, they must not look sound.
        sites.write().map_err(failed)?;
        if let Some(why) = why {
            (options.report)(&Trouble::Emptied { dir: options.dir.clone(), why });
        }
        let disk = Arc::new(Self {
            io: Arc::new(Io::start().map_err(failed)?),
            packs: Packs::open(folder.packs(), folder.secret, options.packs).map_err(failed)?,
            packs_are_listed: Mutex::default(),
            index: Index::new(options.size_max, options.objects_max, store.variants_max.max(1)),
            sequence: AtomicU64::new(folder.starts << SEQUENCES),
            buckets: (0..256).map(|_| Mutex::default()).collect(),
            listed: (0..256).map(|_| AtomicBool::default()).collect(),
            loading: AtomicBool::new(true),
            closing: AtomicBool::new(false),
            gathered: Mutex::default(),
            doomed: Mutex::default(),
            sweep_is_queued: AtomicBool::new(false),
            health: Mutex::new(Health { state: DiskState::Working, skip: 0 }),
            sites: Mutex::new(Some(sites)),
            counts: Counts::default(),
            object_max: store.object_max,
            report: options.report,
            folder,
        });
        if let Some(gone) = gone {
            let _ = disk.io.write(0, move || fs::remove_dir_all(gone));
        }
        disk.list_from(0);
        Ok((disk, purges))
    }

    pub(crate) fn secret(&self) -> Secret {
        self.folder.secret
    }

    pub(crate) fn io(&self) -> &Arc<Io> {
        &self.io
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn held(&self) -> IndexTotals {
        self.index.held()
    }

    pub(crate) fn state(&self) -> DiskState {
        self.health.lock().state
    }

    /// Returns whether folders are still being listed.
    pub(crate) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    /// Returns the folder in which bodies grow.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Returns the numbers of the sites, the first time it is called.
    pub(crate) fn take_sites(&self) -> Option<SiteNumbers> {
        self.sites.lock().take()
    }

    /// Returns whether the files of this key may not be in the index yet.
    pub(crate) fn is_unlisted(&self, hash: KeyHash) -> bool {
        self.is_loading() && !self.listed[usize::from(FileId { hash, sequence: 0 }.bucket())].load(Ordering::Acquire)
    }

    /// Returns the number of the next file.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// Queues a response that [`Mark::queue`] has numbered, and after it the unlinking of what it replaces. Never waits.
    pub(crate) fn write<R: Record>(
        self: &Arc<Self>,
        id: FileId,
        key: Arc<[u8]>,
        stored: Arc<Stored<R>>,
        replaced: Vec<Located>,
        in_memory: impl Fn(KeyHash) -> bool + Send + 'static,
    ) {
        // These are doomed first, so that a job that is never run loses none of them: the job unlinks them when its own file is complete.
        self.doomed.lock().extend(replaced);
        let skipped = {
            let mut health = self.health.lock();
            let skipped = health.skip > 0;
            health.skip = health.skip.saturating_sub(1);
            skipped
        };
        let weight = stored.weight();
        let queued = !skipped && {
            let (disk, stored) = (Arc::clone(self), Arc::clone(&stored));
            let job = move |batch| disk.write_now(id, &key, stored, in_memory, batch);
            self.io.write_gathered(weight, job).is_ok()
        };
        if !queued {
            stored.mark().unqueue();
            count(&self.counts.dropped);
            self.sweep_later();
        }
    }

    /// Writes a response, a small one with those that are queued behind it.
    fn write_now<R: Record>(
        &self,
        id: FileId,
        key: &[u8],
        stored: Arc<Stored<R>>,
        in_memory: impl Fn(KeyHash) -> bool + Send + 'static,
        batch: Batch,
    ) {
        let mut small = None;
        if !stored.mark().is_dead() {
            match self.prepare(id, key, &stored) {
                Ok(Prepared::Small(body, tail)) => {
                    let ended = Box::new(move |disk: &Self, extent: Option<PackExtent>, bytes| match extent {
                        Some(extent) => {
                            disk.written(Located { hash: id.hash, file: File::new(id.sequence, bytes, Some(extent)) }, &stored, in_memory)
                        }
                        None => stored.mark().unqueue(),
                    });
                    small = Some(Staged { entry: NewEntry { hash: id.hash, sequence: id.sequence, body, tail }, ended });
                }
                Ok(Prepared::Written(file)) => self.written(Located { hash: id.hash, file }, &stored, in_memory),
                Err(error) => {
                    stored.mark().unqueue();
                    let _ = fs::remove_file(self.folder.temporary(id.sequence));
                    self.failed(&error, 1);
                }
            }
        }
        let gathered = {
            let mut gathered = self.gathered.lock();
            gathered.bytes += small.as_ref().map_or(0, |small| small.entry.bytes());
            gathered.entries.extend(small);
            let is_full = gathered.bytes >= GATHERED_BYTES || gathered.entries.len() >= GATHERED;
            if batch == Batch::Ends || is_full { std::mem::take(&mut *gathered) } else { return }
        };
        self.write_gathered(gathered);
    }

    /// Writes what has gathered, and unlinks what it replaces.
    fn write_gathered(&self, Gathered { entries, .. }: Gathered) {
        let (entries, ended): (Vec<_>, Vec<_>) = entries.into_iter().map(|Staged { entry, ended }| (entry, ended)).unzip();
        let mut extents = Vec::with_capacity(entries.len());
        let written = self.packs.append(&entries, &mut extents);
        let mut extents = extents.into_iter();
        for (entry, ended) in entries.iter().zip(ended) {
            ended(self, extents.next(), entry.bytes() as u64);
        }
        if let Err(NotWritten { entries, error }) = written {
            self.failed(&error, entries);
        }
        self.sweep();
    }

    /// Adds a response that has been written to the index.
    fn written<R: Record>(&self, located: Located, stored: &Stored<R>, in_memory: impl Fn(KeyHash) -> bool) {
        count(&self.counts.writes);
        self.recovered();
        let gone = self.index.add(located, || stored.mark().write(), in_memory);
        if !gone.is_empty() {
            self.doomed.lock().extend(gone);
        }
    }

    /// Prepares a small response for a pack, and writes a larger one into a file under a temporary name, which is then renamed.
    fn prepare<R: Record>(&self, id: FileId, key: &[u8], stored: &Stored<R>) -> io::Result<Prepared> {
        let pieces = match &stored.body {
            Content::Memory(body) => Pieces::of(body),
            Content::Disk(body) => body.pieces(),
            // It has no number, so it is not written.
            Content::Packed { .. } => return Err(io::ErrorKind::FileTooLarge.into()),
        };
        let head = HeadParts {
            key,
            scope: stored.scope(),
            begun: stored.begun(),
            sequence: id.sequence,
            record: &|out| stored.record.encode(out),
            body_len: stored.body.len(),
            pieces: &pieces,
        };
        let tail = head.tail().ok_or(io::ErrorKind::FileTooLarge)?;
        match &stored.body {
            Content::Memory(body) if self.packs.accept(body.len() + tail.len()) => Ok(Prepared::Small(body.clone(), tail)),
            Content::Memory(body) => {
                let temporary = self.folder.temporary(id.sequence);
                let mut file = private().create(true).truncate(true).open(&temporary)?;
                write_both(&mut file, body, &tail)?;
                drop(file);
                fs::rename(&temporary, id.path(&self.folder))?;
                Ok(Prepared::Written(File::new(id.sequence, (body.len() + tail.len()) as u64, None)))
            }
            Content::Disk(body) => Ok(Prepared::Written(File::new(id.sequence, body.finish(&tail, &id.path(&self.folder))?, None))),
            Content::Packed { .. } => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    /// Forgets the file of a response that was taken out of the store. It is unlinked later; if it is being written, it will be removed.
    pub(crate) fn kill(&self, hash: KeyHash, mark: &Mark) -> Vec<Located> {
        self.index.take(hash, || mark.kill())
    }

    /// Forgets all files of a key, including those that are not listed yet.
    pub(crate) fn forget(self: &Arc<Self>, hash: KeyHash) -> Vec<Located> {
        let unlisted = self.is_unlisted(hash);
        let gone = self.index.take_all(hash, self.sequence.load(Ordering::Relaxed), unlisted);
        if unlisted {
            // This happens now, and not when its turn comes: the process may end before that, and the files would be back.
            let disk = Arc::clone(self);
            let _ = self.io.write(0, move || {
                disk.list(FileId { hash, sequence: 0 }.bucket());
                disk.sweep();
            });
        }
        gone
    }

    /// Unlinks files when there is time.
    pub(crate) fn doom(self: &Arc<Self>, files: Vec<Located>) {
        if !files.is_empty() {
            self.doomed.lock().extend(files);
            self.sweep_later();
        }
    }

    fn sweep_later(self: &Arc<Self>) {
        if !self.sweep_is_queued.swap(true, Ordering::AcqRel) {
            let disk = Arc::clone(self);
            // If the queue is full, one of its writes unlinks them.
            if self.io.write(0, move || disk.sweep()).is_err() {
                self.sweep_is_queued.store(false, Ordering::Release);
            }
        }
    }

    fn sweep(&self) {
        self.sweep_is_queued.store(false, Ordering::Release);
        let doomed = std::mem::take(&mut *self.doomed.lock());
        if !doomed.is_empty() {
            self.remove(&doomed);
        }
    }

    fn remove(&self, gone: &[Located]) {
        self.packs.remove(gone.iter().filter_map(|gone| gone.file.extent));
        for alone in gone.iter().filter(|gone| gone.file.extent.is_none()) {
            let _ = fs::remove_file(alone.id().path(&self.folder));
        }
    }

    /// Notes that so many responses could not be written.
    fn failed(&self, error: &io::Error, responses: u64) {
        self.counts.write_failures.fetch_add(responses, Ordering::Relaxed);
        let state = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskState::Full,
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => DiskState::ReadOnly,
            // A response that is too long for a file of ours says nothing about the disk.
            io::ErrorKind::FileTooLarge => return,
            _ => DiskState::Failing,
        };
        if state == DiskState::Full {
            let gone = self.index.shrink();
            self.doomed.lock().extend(gone);
        }
        let before = {
            let mut health = self.health.lock();
            health.skip = SKIPPED;
            std::mem::replace(&mut health.state, state)
        };
        if before == DiskState::Working {
            (self.report)(&Trouble::Failing { dir: self.folder.path().to_owned(), error: error.to_string() });
        }
    }

    fn recovered(&self) {
        let before = std::mem::replace(&mut self.health.lock().state, DiskState::Working);
        if before != DiskState::Working {
            (self.report)(&Trouble::Recovered { dir: self.folder.path().to_owned() });
        }
    }

    /// Reads the responses under a key, newest first, with at most `bytes_max` of bodies in memory. Blocks: call it on a thread of the
    /// disk.
    pub(crate) fn read<R: Record>(&self, hash: KeyHash, key: &[u8], bytes_max: u64, now: Generation) -> Vec<Stored<R>> {
        self.list(FileId { hash, sequence: 0 }.bucket());
        let mut read = Vec::new();
        let mut room = bytes_max;
        for file in self.index.files(hash) {
            let located = Located { hash, file };
            match self.read_file(located, key, &mut room, now) {
                Ok(Some(stored)) => {
                    count(&self.counts.loads);
                    read.push(stored);
                }
                Ok(None) => {}
                // A part of a pack can be cut out while it is read.
                Err(Unusable::Damaged) if file.extent.is_some() && !self.index.contains(located.id()) => {}
                Err(Unusable::Damaged) => {
                    count(&self.counts.damaged);
                    self.drop_file(located);
                }
                // The file was unlinked since it was looked up, by us or by somebody else; or the disk does not answer, which may do so
                // later.
                Err(Unusable::Io(error)) if error.kind() == io::ErrorKind::NotFound => self.drop_file(located),
                Err(Unusable::Io(_)) => count(&self.counts.damaged),
            }
        }
        read
    }

    fn read_file<R: Record>(&self, located: Located, key: &[u8], room: &mut u64, now: Generation) -> Result<Option<Stored<R>>, Unusable> {
        let id = located.id();
        let read = match located.file.extent {
            Some(extent) => {
                let bytes = self.packs.read(extent, id.hash, id.sequence)?;
                let (head, body) = Head::of_whole(&bytes).ok_or(Unusable::Damaged)?;
                ReadResponse { head, body: BodySource::Memory(body.into()) }
            }
            None => {
                let path = id.path(&self.folder);
                let file = fs::File::open(&path)?;
                ReadResponse { head: Head::read(&file)?.ok_or(Unusable::Damaged)?, body: BodySource::File(path, file) }
            }
        };
        let ReadResponse { head, body } = read;
        // Its fetch began in a future that no purge log knows: it cannot be judged.
        if head.sequence != id.sequence || head.begun > now {
            return Err(Unusable::Damaged);
        }
        if *head.key != *key {
            return Ok(None);
        }
        let record = R::decode(&head.record).ok_or(Unusable::Damaged)?;
        let body = match body {
            BodySource::File(path, _) if head.body_len > self.object_max => Content::Disk(DiskBody::stored(&self.io, path, &head)),
            _ if head.body_len > *room => return Ok(None),
            BodySource::File(_, file) => Content::Memory(head.read_body(&file)?.ok_or(Unusable::Damaged)?.into_boxed_slice().into()),
            BodySource::Memory(body) => Content::Memory(body.into()),
        };
        if matches!(body, Content::Memory(_)) {
            *room -= head.body_len;
        }
        Ok(Some(Stored::restored(record, body, head.begun, head.scope, id.sequence)))
    }

    fn drop_file(&self, located: Located) {
        self.remove(&self.index.take(located.hash, || Some(located.file.sequence)));
    }

    /// Lists the buckets one after another, with one job each, so that responses are written in between.
    fn list_from(self: &Arc<Self>, mut bucket: u8) -> bool {
        let disk = Arc::clone(self);
        let job = move || {
            loop {
                disk.list(bucket);
                let Some(next) = bucket.checked_add(1) else { break };
                // A full queue accepts no further job, so this one goes on.
                if disk.closing.load(Ordering::Relaxed) || disk.list_from(next) {
                    return;
                }
                bucket = next;
            }
            disk.doomed.lock().extend(disk.index.settle());
            disk.loading.store(false, Ordering::Release);
            disk.sweep();
        };
        self.io.write(0, job).is_ok()
    }

    /// Lists a bucket, unless it is listed already.
    fn list(&self, bucket: u8) {
        if !self.is_loading() {
            return;
        }
        self.list_packs();
        let mut done = self.buckets[usize::from(bucket)].lock();
        if *done {
            return;
        }
        let mut files = Vec::new();
        let mut foreign = Vec::new();
        let path = self.folder.bucket(bucket);
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(FileId::parse).filter(|id| id.bucket() == bucket);
            match (id, entry.metadata()) {
                (Some(FileId { hash, sequence }), Ok(metadata)) if metadata.is_file() => {
                    files.push(Located { hash, file: File::new(sequence, metadata.len(), None) });
                }
                (Some(_), Err(_)) => {}
                _ => foreign.push(entry.path()),
            }
        }
        for path in foreign {
            count(&self.counts.damaged);
            let _ = fs::remove_file(path);
        }
        let excess = self.index.note(files);
        self.doomed.lock().extend(excess);
        *done = true;
        self.listed[usize::from(bucket)].store(true, Ordering::Release);
    }

    /// Lists the packs, unless they are listed already.
    fn list_packs(&self) {
        let mut done = self.packs_are_listed.lock();
        if !*done {
            let (found, damaged) = self.packs.list();
            self.counts.damaged.fetch_add(damaged, Ordering::Relaxed);
            let excess = self.index.note(found);
            self.doomed.lock().extend(excess);
            *done = true;
        }
    }

    /// Waits on this thread until all that was queued before is done: for tests, and for callers that may block.
    pub(crate) fn settle(&self) {
        let (done, wait) = sync_channel(1);
        // This is not the job's own channel: that one may not be waited for within a runtime.
        if self.io.write(0, move || done.send(())).is_ok() {
            let _ = wait.recv();
        }
    }

    /// Accepts no more jobs, and waits for the queued ones. Returns `false` if it was closed before.
    pub(crate) fn close(&self, wait: Duration) -> bool {
        let first = !self.closing.swap(true, Ordering::Relaxed);
        if first {
            self.io.close(wait);
        }
        first
    }
}

/// Holds what was read of a stored response.
struct ReadResponse {
    head: Head,
    body: BodySource,
}

/// Says where the body of a stored response is.
enum BodySource {
    /// It was in a pack, and is verified.
    Memory(Box<[u8]>),
    File(PathBuf, fs::File),
}

/// The reason why a file cannot be used.
enum Unusable {
    Damaged,
    Io(io::Error),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}
