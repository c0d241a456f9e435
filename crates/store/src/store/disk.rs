//! The store with a disk tier beneath it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Evicted, Store, Usage};
use crate::content::Content;
use crate::disk::index::{FileId, Located};
use crate::disk::tier::Disk;
use crate::disk::{DiskOptions, DiskState, SiteNumbers, Tiers};
use crate::flight::Failure;
use crate::hash::KeyHash;
use crate::options::StoreOptions;
use crate::purge::Purged;
use crate::resource::{Record, Resource, Stored};
use crate::spool::Spool;

/// The time that the end of a store waits for responses that are still to be written.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

impl<R: Record, E: Failure> Store<R, E> {
    /// Creates a store with a disk tier, if that is possible. If not, the store is in memory alone, and [`DiskOptions::report`] is told
    /// why. The content of the folder is found at once, while it is still being listed.
    ///
    /// Blocks for some small files: call it at the start of a process.
    #[must_use]
    pub fn open(options: StoreOptions, disk: Option<DiskOptions>) -> Self {
        let Some(disk) = disk else { return Self::new(options) };
        let report = Arc::clone(&disk.report);
        match Disk::open(disk, &options) {
            Ok((disk, purges)) => {
                let store = Self::of(options, disk.secret(), purges, Some(Arc::clone(&disk)));
                store.flights.spool_to(Spool::new(Arc::clone(disk.io()), disk.temporary()));
                store
            }
            Err(trouble) => {
                report(&trouble);
                Self::new(options)
            }
        }
    }

    /// Returns the numbers of sites, which live as long as what is stored. They are returned once; after that, and without a disk tier, the
    /// numbers are for this process alone.
    #[must_use]
    pub fn site_numbers(&self) -> SiteNumbers {
        self.disk.as_ref().and_then(|disk| disk.take_sites()).unwrap_or_else(SiteNumbers::in_memory)
    }

    /// Returns whether [`load`](Self::load) may bring what [`get`](Self::get) does not find. It uses no disk, and no lock to wait for;
    /// without a disk tier it is `false` at once.
    pub fn may_be_on_disk(&self, hash: KeyHash) -> bool {
        let Some(disk) = &self.disk else { return false };
        if disk.is_unlisted(hash) {
            return true;
        }
        let files = disk.index().files(hash);
        if files.is_empty() {
            return false;
        }
        // Those that memory holds need not be read again.
        let Some(resource) = self.memory.peek(&hash) else { return true };
        let held = |sequence| resource.variants().iter().any(|stored| stored.mark().sequence() == Some(sequence));
        !files.iter().all(|file| held(file.sequence))
    }

    /// Reads the responses that the disk has under a key into memory, and returns what is stored then, even if memory had no room for it.
    /// All who ask for it meanwhile share one read. Also returns `None` if the disk is busy: ask the origin then.
    ///
    /// A file that is damaged, or belongs to another key or version, is not an error; one that was purged hard is unlinked. Cancel-safe. It
    /// waits for as long as the disk takes: the caller sets a limit.
    pub async fn load(&self, hash: KeyHash, key: &[u8]) -> Option<Arc<Resource<R>>> {
        let disk = self.disk.as_ref()?;
        let begin = |slot: crate::disk::load::Slot<R>| {
            let (disk, key, now, room) = (Arc::clone(disk), Box::<[u8]>::from(key), self.generation(), self.resource_max);
            disk.clone().io().read(move || slot.fill(disk.read(hash, &key, room, now)))
        };
        self.loads.join(hash, key, begin, |read| self.promote(disk, hash, key, read)).await
    }

    /// Returns the tiers that a resource is stored in.
    pub fn tiers(&self, hash: KeyHash, key: &[u8]) -> Tiers {
        let resource = self.memory.peek(&hash).filter(|resource| *resource.key == *key);
        let files = self.disk.as_ref().map(|disk| disk.index().files(hash)).unwrap_or_default();
        let newest = resource.as_deref().and_then(|resource| resource.variants().first());
        let on_disk = match newest {
            Some(stored) => stored.mark().sequence().is_some_and(|sequence| files.iter().any(|file| file.sequence == sequence)),
            None => !files.is_empty(),
        };
        Tiers { memory: resource.is_some(), disk: on_disk, disk_bytes: files.iter().map(|file| file.bytes()).sum() }
    }

    /// Waits on this thread until the disk has done all that was queued so far: for tests and tools, never for a worker.
    pub fn settle_disk(&self) {
        if let Some(disk) = &self.disk {
            disk.settle();
        }
    }

    /// Ends the disk tier: it accepts no more responses, and those still to be written are written. Waits for that on this thread, some
    /// seconds at most.
    pub fn close(&self) {
        if let Some(disk) = &self.disk
            && disk.close(CLOSE_WAIT)
        {
            self.purges.close();
        }
    }

    /// Puts the responses that were read below those in memory, which are newer.
    fn promote(&self, disk: &Arc<Disk>, hash: KeyHash, key: &[u8], read: Vec<Stored<R>>) -> Option<Arc<Resource<R>>> {
        let mut evicted = Evicted::default();
        let mut purged = Vec::new();
        let resource = {
            let _writer = self.writer(hash).lock();
            let before = self.memory.peek(&hash);
            let same = before.as_deref().filter(|resource| *resource.key == *key);
            let mut variants: Vec<Arc<Stored<R>>> = same.map(|resource| resource.variants().to_vec()).unwrap_or_default();
            let held = variants.len();
            for stored in read {
                let Some(sequence) = stored.mark().sequence() else { continue };
                let known = variants.iter().any(|held| held.mark().sequence() == Some(sequence));
                // The response was taken out of the store while it was read.
                if known || !disk.index().contains(FileId { hash, sequence }) {
                    continue;
                }
                let stored = Arc::new(stored);
                if self.verdict(&stored) == Purged::Hard {
                    purged.push(stored);
                } else {
                    variants.push(stored);
                }
            }
            let files = self.forget_files(hash, purged.iter(), None);
            self.unlink(files);
            if variants.len() > held {
                let key = same.map_or_else(|| key.into(), |resource| Arc::clone(&resource.key));
                self.put(hash, key, before.as_deref(), variants.into_iter(), &mut evicted)
            } else {
                before.as_ref().filter(|resource| *resource.key == *key).cloned()
            }
        };
        self.account(evicted);
        resource
    }

    /// Returns the number under which a response is to be written, and the files to be unlinked after that. Call it with the key's writer
    /// lock held.
    pub(super) fn number(&self, hash: KeyHash, stored: &Stored<R>, fits: bool, replaced: Vec<Located>) -> (Option<FileId>, Vec<Located>) {
        // What is here in its forms alone is not the body that a file has.
        let is_whole = !matches!(stored.body, Content::Packed { .. });
        let id = self.disk.as_ref().filter(|_| fits && is_whole).and_then(|disk| {
            let sequence = disk.next_sequence();
            stored.mark().queue(sequence).then_some(FileId { hash, sequence })
        });
        (id, replaced)
    }

    /// Queues the write and the unlinking that [`number`](Self::number) returned. Call it without any lock.
    pub(super) fn write_to_disk(&self, (id, replaced): (Option<FileId>, Vec<Located>), key: Arc<[u8]>, stored: &Arc<Stored<R>>) {
        let Some(disk) = &self.disk else { return };
        match id {
            None => disk.doom(replaced),
            Some(id) => {
                let memory = Arc::clone(&self.memory);
                disk.write(id, key, Arc::clone(stored), replaced, move |hash| memory.contains_key(&hash));
            }
        }
    }

    /// Forgets the files of responses that have left the store, except one whose body `new` shares. Returns those to unlink.
    pub(super) fn forget_files<'a>(
        &self,
        hash: KeyHash,
        gone: impl Iterator<Item = &'a Arc<Stored<R>>>,
        new: Option<&Stored<R>>,
    ) -> Vec<Located> {
        let Some(disk) = &self.disk else { return Vec::new() };
        let shared = |old: &Stored<R>| match (&old.body, new.map(|new| &new.body)) {
            (Content::Disk(old), Some(Content::Disk(new))) => new.same_file(old),
            _ => false,
        };
        gone.filter(|stored| !shared(stored)).flat_map(|stored| disk.kill(hash, stored.mark())).collect()
    }

    /// Forgets all files of a key of which memory holds nothing.
    pub(super) fn forget_unread(&self, hash: KeyHash) -> Vec<Located> {
        self.disk.as_ref().map(|disk| disk.forget(hash)).unwrap_or_default()
    }

    pub(super) fn unlink(&self, files: Vec<Located>) {
        if let Some(disk) = &self.disk {
            disk.doom(files);
        }
    }

    /// Unlinks all files of a key, including those that are still being written.
    pub(super) fn unlink_all(&self, hash: KeyHash, variants: &[Arc<Stored<R>>]) {
        if let Some(disk) = &self.disk {
            let mut files = self.forget_files(hash, variants.iter(), None);
            files.extend(disk.forget(hash));
            disk.doom(files);
        }
    }

    /// Returns the disk's part of [`usage`](Store::usage).
    pub(super) fn disk_usage(&self) -> Usage {
        let Some(disk) = &self.disk else { return Usage::default() };
        let (held, counts) = (disk.held(), disk.counts());
        Usage {
            disk: if self.purges.log_is_failing() { DiskState::Failing } else { disk.state() },
            disk_bytes: held.bytes,
            disk_objects: held.files,
            disk_writes: counts.writes.load(Ordering::Relaxed),
            disk_loads: counts.loads.load(Ordering::Relaxed),
            disk_write_failures: counts.write_failures.load(Ordering::Relaxed),
            disk_dropped: counts.dropped.load(Ordering::Relaxed),
            disk_damaged: counts.damaged.load(Ordering::Relaxed),
            disk_is_loading: disk.is_loading(),
            ..Usage::default()
        }
    }
}

/// Writes the responses that wait to be written, and ends the purge log in order.
impl<R: Record, E: Failure> Drop for Store<R, E> {
    fn drop(&mut self) {
        self.close();
    }
}
