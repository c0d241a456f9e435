//! The store itself: the memory tier, with purges and flights beside it.
//!
//! Reads take one shard's read lock. Writes first take the writer lock of their key (one of a few dozen stripes), copy the resource, and
//! put the copy in place; so two variants stored at once under one key both survive. What a write evicts is accounted for afterwards,
//! under the evicted key's own writer lock, never under two at a time.
//!
//! Memory decides. With a disk tier beneath it, what is stored here is written there as well, and what goes from here for a reason of its
//! own (replaced, purged hard) goes there too; what memory evicts stays on the disk, and is [loaded](Store::load) when it is asked for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use smallvec::SmallVec;

use crate::changes::{Changes, Counter};
use crate::content::Content;
use crate::disk::DiskState;
use crate::disk::load::Loads;
use crate::disk::tier::Disk;
use crate::fetches::{Fetches, Fetching};
use crate::flight::{Failure, FlightView, Flights, Joined, Moment};
use crate::hash::{AsIs, KeyHash, Secret};
use crate::index::UrlIndex;
use crate::marks::Marks;
use crate::options::StoreOptions;
use crate::purge::{Generation, Hardness, PurgeReceipt, PurgeTable, PurgeTarget, Purged, PurgedBy};
use crate::resource::{Record, Resource, Scope, Stored};

/// The number of writer locks. Two keys that share one wait for each other's copying, some microseconds.
const WRITERS: usize = 64;
/// The most query forms of one URL that its purge counts and, if hard, frees. Further ones are purged like all others, and evicted in time.
const PURGE_FORMS_MAX: usize = 4_096;
/// The typical weight of a resource. It sizes the memory tier's tables, which grow if it is wrong.
const RESOURCE_TYPICAL: u64 = 32 << 10;

/// The stored responses, and the fetches that will become stored responses. There is one for the process. `R` is the data that the pipeline
/// keeps beside a body, `E` the reason why a fetch failed.
pub struct Store<R: Record, E: Failure> {
    secret: Secret,
    /// The memory tier. It is shared with jobs of the disk, which ask what is in memory.
    memory: Arc<Memory<R>>,
    writers: Box<[Mutex<()>]>,
    /// The counters of changes, for the hot pages of the workers. They are raised after every change, under the changed key's writer lock.
    pub(crate) changes: Changes,
    urls: UrlIndex,
    purges: PurgeTable,
    fetches: Arc<Fetches>,
    flights: Arc<Flights<R, E>>,
    uncacheable: Marks,
    evicted: AtomicU64,
    variants_max: usize,
    object_max: u64,
    resource_max: u64,
    disk: Option<Arc<Disk>>,
    loads: Loads<R>,
    /// Whether responses may come back that neither memory nor disk knows of: see [`Store::adopt`].
    adopts: AtomicBool,
}

type Memory<R> = Cache<KeyHash, Arc<Resource<R>>, ByWeight, AsIs, Evictions>;

/// The current content of a store. The numbers are read one after another, so under load they need not add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The bytes of stored responses, overhead included.
    pub bytes: u64,
    /// The number of stored resources.
    pub resources: usize,
    /// The bytes of bodies that are still growing, or are still being read after that.
    pub growing_bytes: u64,
    /// The number of running fetches.
    pub flights: usize,
    /// The number of requests that wait for the outcome of a fetch.
    pub followers: usize,
    /// The number of resources evicted since the start, for lack of room.
    pub evicted: u64,
    /// The number of lines in the purge table.
    pub purges: usize,
    /// The number of invalidated URLs that are remembered until older fetches have ended.
    pub invalidations: usize,
    /// The number of keys remembered as uncacheable, expired ones included.
    pub uncacheable: usize,
    /// The state of the disk tier.
    pub disk: DiskState,
    /// The bytes of its files, in whole blocks. While it is still being listed, those found so far.
    pub disk_bytes: u64,
    /// The number of its files, each a stored response.
    pub disk_objects: u64,
    /// The number of responses written since the start.
    pub disk_writes: u64,
    /// The number of responses read back into memory.
    pub disk_loads: u64,
    /// The number of responses that could not be written.
    pub disk_write_failures: u64,
    /// The number of responses that were not written because too many waited already, or the disk had just failed.
    pub disk_dropped: u64,
    /// The number of files that were damaged, or not ours, and were removed.
    pub disk_damaged: u64,
    /// Whether its folders are still being listed. Their content is found all the same.
    pub disk_is_loading: bool,
}

impl<R: Record, E: Failure> Store<R, E> {
    /// Creates an empty store, with a secret of its own, in memory alone.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        let secret = Secret::new();
        let purges = PurgeTable::new(options.purge_targets_max, secret);
        Self::of(options, secret, purges, None)
    }

    fn of(options: StoreOptions, secret: Secret, purges: PurgeTable, disk: Option<Arc<Disk>>) -> Self {
        Self {
            secret,
            memory: Arc::new(memory(&options)),
            writers: (0..WRITERS).map(|_| Mutex::default()).collect(),
            changes: Changes::new(),
            urls: UrlIndex::default(),
            purges,
            fetches: Arc::default(),
            flights: Arc::new(Flights::new(&options)),
            uncacheable: Marks::new(options.uncacheable_max),
            evicted: AtomicU64::new(0),
            variants_max: options.variants_max.max(1),
            object_max: options.object_max,
            resource_max: options.resource_max(),
            disk,
            loads: Loads::default(),
            adopts: AtomicBool::new(false),
        }
    }

    /// Returns the hash of a cache key in this store.
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.secret.key(key)
    }

    /// Returns what is stored under a key, whether purged or not: ask [`verdict`](Self::verdict). It takes one read lock, and no
    /// allocation.
    pub fn get(&self, hash: KeyHash, key: &[u8]) -> Option<Arc<Resource<R>>> {
        self.memory.get(&hash).filter(|resource| *resource.key == *key)
    }

    /// Returns what is stored under a key, for somebody who only looks: unlike [`get`](Self::get), it does not protect it from eviction.
    pub fn peek(&self, hash: KeyHash, key: &[u8]) -> Option<Arc<Resource<R>>> {
        self.memory.peek(&hash).filter(|resource| *resource.key == *key)
    }

    /// Returns everything that is stored, in no order, for somebody who only looks. What is stored or evicted meanwhile may or may not be
    /// seen.
    pub fn resources(&self) -> impl Iterator<Item = Arc<Resource<R>>> + '_ {
        self.memory.iter().map(|(_, resource)| resource)
    }

    /// Returns whether a purge since `begun` covers `scope`, or may do so because of a [doubt](Self::doubt): for data that was learnt from a response and outlives it.
    pub fn is_purged(&self, scope: &Scope, begun: Generation) -> bool {
        self.purges.is_purged(scope, begun)
    }

    /// Returns whether there was a [doubt](Self::doubt) since the fetch of this response began. A soft purge does not end it: what may have been purged
    /// hard is validated before it is shown.
    pub fn is_doubted(&self, stored: &Stored<R>) -> bool {
        self.purges.is_doubted(stored.begun())
    }

    /// Returns the purges that cover this response, by the kind of their target.
    pub fn purged_by(&self, stored: &Stored<R>) -> Vec<(PurgedBy, Hardness)> {
        self.purges.covering(stored)
    }

    /// Returns the flight that [`join_for`](Self::join_for) would follow now, if there is one.
    pub fn flight(&self, hash: KeyHash, key: &[u8], (site, url): (u16, &[u8]), moment: Moment) -> Option<FlightView> {
        let name = self.purges.url(site, url);
        self.flights.view(hash, key, moment, |begun| self.overtook(name, begun))
    }

    /// Opens a fetch. Call it before the request is sent, and keep it until the response is stored. [`join`](Self::join) does so for its
    /// leader.
    pub fn begin(&self) -> Fetching {
        self.fetches.begin(&self.purges)
    }

    /// Remembers from this call on what is [invalidated](Self::invalidate) as long as purges are, because responses that were stored elsewhere
    /// before may be [adopted](Self::adopt) later.
    pub fn expect_others(&self) {
        self.adopts.store(true, Ordering::Release);
    }

    /// Makes a stored response of one that another store had, if no purge since generation `since` covers it: it then counts as fetched now.
    ///
    /// `since` is a generation of this store at which everything had been purged here that had been purged where the response was fetched, when
    /// its fetch began. Call [`expect_others`](Self::expect_others) before the first such generation. A doubt about what this store holds says
    /// nothing about the response.
    pub fn adopt(&self, record: R, body: impl Into<Content>, since: u64, scope: Scope) -> Option<Stored<R>> {
        let since = Generation(since);
        let name = self.purges.url(scope.site, &scope.url);
        let now = self.purges.uncovered(&scope, since).filter(|_| self.fetches.covering(name, since).is_none())?;
        Some(Stored::new(record, body, now, scope))
    }

    /// Returns the current generation.
    pub fn generation(&self) -> Generation {
        self.purges.generation()
    }

    /// Returns whether a purge covers this response. It costs one comparison, except for the first time after a purge of anything.
    pub fn verdict(&self, stored: &Stored<R>) -> Purged {
        self.purges.verdict(stored)
    }

    /// Stores a response as the newest variant under its key, in place of those that it `replaces`. Variants beyond the limit are removed,
    /// oldest first, and so are those purged hard.
    ///
    /// A response is not stored if it is too long, or if it was [invalidated](Self::invalidate) since its fetch began. Neither is it if a
    /// purge covers it already while the variant it would replace is newer than that purge: a slow fetch must not push out the page that
    /// was fetched after the edit. The response is returned in any case, for those who wait for it.
    pub fn insert(&self, hash: KeyHash, key: &[u8], stored: Stored<R>, replaces: impl Fn(&R) -> bool) -> Arc<Stored<R>> {
        let stored = Arc::new(stored);
        let mut evicted = Evicted::default();
        let (written, key) = {
            let _writer = self.writer(hash).lock();
            let before = self.memory.peek(&hash);
            let same = before.as_deref().filter(|resource| *resource.key == *key);
            let held = same.map_or(&[][..], |resource| resource.variants());
            let superseded = |held: &Arc<Stored<R>>| replaces(&held.record) && self.verdict(held) == Purged::No;
            if self.verdict(&stored) != Purged::No && held.iter().any(superseded) {
                return stored;
            }
            // An invalidation notes its line first and then looks into the index. This does both in the opposite order: either the line is
            // seen here, or this key is found there, and its visit waits for the lock.
            let name = self.name_of(&stored);
            self.urls.add(name, hash);
            let invalidated = self.fetches.covering(name, stored.begun()).is_some();
            let is_a_file = matches!(stored.body, Content::Disk(_));
            let fits = (is_a_file || stored.body.len() <= self.object_max)
                && stored.weight() + Resource::<R>::frame(key.len(), self.variants_max) <= self.resource_max;
            if (invalidated || !fits) && before.as_deref().is_none_or(|before| before.url != name) {
                self.urls.remove(name, hash);
            }
            if invalidated {
                return stored;
            }
            let gone = |held: &Arc<Stored<R>>| replaces(&held.record) || self.verdict(held) == Purged::Hard;
            let kept = held.iter().filter(|held| !gone(held));
            let variants = fits.then_some(&stored).into_iter().chain(kept).cloned();
            let key: Arc<[u8]> = same.map_or_else(|| key.into(), |resource| Arc::clone(&resource.key));
            self.put_named(
                hash,
                Arc::clone(&key),
                before.as_deref(),
                variants,
                |first| if Arc::ptr_eq(first, &stored) { name } else { self.name_of(first) },
                &mut evicted,
            );
            let mut files = self.forget_files(hash, held.iter().filter(|held| gone(held)), Some(&stored));
            if same.is_none() && !is_a_file {
                // These files were not read before this was fetched: nobody knows which of them it replaces.
                files.extend(self.forget_unread(hash));
            }
            (self.number(hash, &stored, fits, files), key)
        };
        self.account(evicted);
        self.write_to_disk(written, key, &stored);
        stored
    }

    /// Adds a form to a response that is stored under a key. Returns `false` if it is not stored any more, has that form, or would weigh
    /// too much with it: then nothing has changed.
    ///
    /// The memory tier learns the new weight, and the hot pages of the workers learn that there is a change. Only the body itself is on the
    /// disk: a form can be made again.
    pub fn add_form(&self, hash: KeyHash, key: &[u8], stored: &Arc<Stored<R>>, form: usize, bytes: Bytes) -> bool {
        let mut evicted = Evicted::default();
        {
            let _writer = self.writer(hash).lock();
            let Some(before) = self.memory.peek(&hash).filter(|resource| *resource.key == *key) else { return false };
            let variants = before.variants();
            let weight = variants.iter().map(|held| held.weight()).sum::<u64>() + stored.forms().weight_with(&bytes);
            if !variants.iter().any(|held| Arc::ptr_eq(held, stored))
                || Resource::<R>::frame(key.len(), self.variants_max) + weight > self.resource_max
                || !stored.forms().set(form, bytes)
            {
                return false;
            }
            self.put(hash, Arc::clone(&before.key), Some(&before), variants.iter().cloned(), &mut evicted);
        }
        self.account(evicted);
        true
    }

    /// Gives a response that is stored under a key another body of the same content: the body as it is, or none beside its forms. Returns the
    /// response in its new shape; `None` if it is not stored any more, its file is being written, or it would weigh too much: then nothing has
    /// changed.
    ///
    /// The memory tier learns the new weight, which does not count as use. The file on the disk is that of the new shape.
    pub fn replace_body(&self, hash: KeyHash, key: &[u8], stored: &Arc<Stored<R>>, body: Content) -> Option<Arc<Stored<R>>>
    where
        R: Clone,
    {
        let mut evicted = Evicted::default();
        let new = {
            let _writer = self.writer(hash).lock();
            let before = self.memory.peek(&hash).filter(|resource| *resource.key == *key)?;
            let at = before.variants().iter().position(|held| Arc::ptr_eq(held, stored))?;
            let new = Arc::new(stored.with_body(body)?);
            let mut variants: Box<[_]> = before.variants().into();
            variants[at] = Arc::clone(&new);
            let resource = Arc::new(Resource::new(Arc::clone(&before.key), before.url, variants));
            if resource.weight() > self.resource_max {
                return None;
            }
            // If it is evicted right now, its line in the index goes with it.
            self.memory.replace_with_lifecycle(hash, resource, true, &mut evicted).ok()?;
            self.changes.of(hash).raise();
            new
        };
        self.account(evicted);
        Some(new)
    }

    /// Returns whether exactly this response is stored under a key, as one of its variants.
    pub fn holds(&self, hash: KeyHash, key: &[u8], stored: &Arc<Stored<R>>) -> bool {
        self.peek(hash, key).is_some_and(|resource| resource.variants().iter().any(|held| Arc::ptr_eq(held, stored)))
    }

    /// Returns whether a URL in `scope` was [invalidated](Self::invalidate) after a fetch that began at `begun` and is still open.
    pub fn is_invalidated(&self, scope: &Scope, begun: Generation) -> bool {
        self.fetches.covering(self.purges.url(scope.site, &scope.url), begun).is_some()
    }

    /// Removes a key with all its variants.
    pub fn remove(&self, hash: KeyHash, key: &[u8]) {
        let _writer = self.writer(hash).lock();
        if let Some((_, resource)) = self.memory.remove_if(&hash, |resource| *resource.key == *key) {
            self.changes.of(hash).raise();
            self.urls.remove(resource.url, hash);
            self.unlink_all(hash, resource.variants());
        } else if self.memory.peek(&hash).is_none() {
            self.unlink_all(hash, &[]);
        }
    }

    /// Removes the variants under a key that `are_ended` by an answer to a fetch that began at `begun`. What was fetched later stays.
    pub fn end(&self, hash: KeyHash, key: &[u8], begun: Generation, are_ended: impl Fn(&R) -> bool) {
        let is_held = self.memory.peek(&hash).is_some_and(|resource| *resource.key == *key);
        if is_held {
            self.visit(hash, |held| held.begun() <= begun && are_ended(&held.record));
        } else {
            // What memory had no room for, or gave up since.
            self.remove(hash, key);
        }
    }

    /// Purges a target. After it returns, no worker serves as fresh what was fetched before the call.
    ///
    /// A hard purge of a URL frees its variants; other hard purges free what they cover when it is replaced or evicted.
    pub fn purge(&self, target: &PurgeTarget, hardness: Hardness) -> PurgeReceipt {
        let generation = self.purges.purge(target, hardness);
        let variants = match target {
            PurgeTarget::Url { site, url } => {
                let keys = self.urls.keys(self.purges.url(*site, url), PURGE_FORMS_MAX);
                let is_purged = |held: &Stored<R>| hardness == Hardness::Hard && self.verdict(held) == Purged::Hard;
                Some(keys.into_iter().map(|hash| self.visit(hash, is_purged)).sum())
            }
            PurgeTarget::Prefix { .. } | PurgeTarget::Tag { .. } | PurgeTarget::Site(_) | PurgeTarget::All => None,
        };
        PurgeReceipt { generation, variants }
    }

    /// Doubts everything whose fetch began before this call, as purges of it may have been lost: its verdict is [`Purged::Doubted`] unless it was
    /// purged. With a disk tier, the doubt outlives the process like a purge. After it returns, nobody follows a fetch that began before.
    pub fn doubt(&self) -> Generation {
        self.purges.doubt()
    }

    /// Purges a URL hard because anybody may have changed it (RFC 9111 §4.4). It leaves no line that would outlive the fetches that are
    /// open now, so that no stranger can fill the purge table.
    ///
    /// This relies on the index. Where the store holds responses that the index does not know, such as files not read yet,
    /// `index_is_complete` must be false: this is then the ordinary purge, with its line.
    pub fn invalidate(&self, site: u16, url: &[u8], index_is_complete: bool) -> PurgeReceipt {
        let purge = || self.purge(&PurgeTarget::Url { site, url: url.into() }, Hardness::Hard);
        if !index_is_complete {
            return purge();
        }
        let name = self.purges.url(site, url);
        // This comes before the index is searched: what an earlier fetch has stored is in it, or that fetch is still open. Responses that
        // are only on the disk are not in the index; there, the line is needed for good.
        let outlived = self.disk.is_some() || self.adopts.load(Ordering::Acquire);
        let noted = if outlived { Some(self.purges.invalidate(site, name)) } else { self.fetches.invalidate(name, &self.purges) };
        let generation = noted.unwrap_or_else(|| self.generation());
        let keys = self.urls.keys(name, PURGE_FORMS_MAX + 1);
        if keys.len() > PURGE_FORMS_MAX {
            return purge();
        }
        // With no fetch open the generation was not raised: all that is there is old. A response that is stored right now is removed, too.
        let is_old = |held: &Stored<R>| noted.is_none() || held.begun() < generation;
        let variants = keys.into_iter().map(|hash| self.visit(hash, is_old)).sum();
        PurgeReceipt { generation, variants: Some(variants) }
    }

    /// Counts the variants of a key, and frees those that are `gone`. A response stored meanwhile, by a fetch begun after a purge, stays.
    fn visit(&self, hash: KeyHash, gone: impl Fn(&Stored<R>) -> bool) -> usize {
        let mut evicted = Evicted::default();
        let count = {
            let _writer = self.writer(hash).lock();
            let Some(resource) = self.memory.peek(&hash) else { return 0 };
            if resource.variants().iter().any(|held| gone(held)) {
                let kept = resource.variants().iter().filter(|held| !gone(held)).cloned();
                self.put(hash, Arc::clone(&resource.key), Some(&resource), kept, &mut evicted);
                let files = self.forget_files(hash, resource.variants().iter().filter(|held| gone(held)), None);
                self.unlink(files);
            }
            resource.variants().len()
        };
        self.account(evicted);
        count
    }

    /// Makes the caller lead, follow or go alone: see [`Joined`]. It never follows a fetch that began before the last purge.
    pub fn join(&self, hash: KeyHash, key: &[u8]) -> Joined<R, E> {
        let now = self.generation();
        self.flights.join(hash, key, Moment::default(), |begun| begun < now, || self.begin())
    }

    /// Joins as [`join`](Self::join) does, for a key of the URL in its [`Scope`]. Invalidations of other URLs do not count then, so that
    /// one writer does not make requests for all other pages fetch again. A fetch from before [`Moment::since`] is not followed either.
    pub fn join_for(&self, hash: KeyHash, key: &[u8], (site, url): (u16, &[u8]), moment: Moment) -> Joined<R, E> {
        let name = self.purges.url(site, url);
        self.flights.join(hash, key, moment, |begun| self.overtook(name, begun), || self.begin())
    }

    /// Returns whether a fetch of a URL of a site that began at `begun` may bring what was purged or invalidated since.
    pub fn is_overtaken(&self, (site, url): (u16, &[u8]), begun: Generation) -> bool {
        self.overtook(self.purges.url(site, url), begun)
    }

    fn overtook(&self, name: KeyHash, begun: Generation) -> bool {
        self.purges.overtook(name, begun) || self.fetches.covering(name, begun).is_some()
    }

    /// Returns whether the key was marked as uncacheable until a time after `now`, both in the caller's milliseconds.
    pub fn uncacheable(&self, hash: KeyHash, now: u64) -> bool {
        self.uncacheable.until(hash).is_some_and(|until| now < until)
    }

    /// Returns until when the key is marked as uncacheable, in the caller's milliseconds; for somebody who only looks.
    pub fn uncacheable_until(&self, hash: KeyHash) -> Option<u64> {
        self.uncacheable.until(hash)
    }

    /// Remembers that answers to this key may not be shared, so that its requests do not wait for each other in vain. A mark that is pushed
    /// out by others only costs a few requests that wait once more.
    pub fn mark_uncacheable(&self, hash: KeyHash, until: u64) {
        self.uncacheable.set(hash, until);
    }

    /// Removes the mark: an answer could be shared after all.
    pub fn unmark_uncacheable(&self, hash: KeyHash) {
        self.uncacheable.remove(hash);
    }

    /// Returns the current content of the store in numbers.
    pub fn usage(&self) -> Usage {
        Usage {
            bytes: self.memory.weight(),
            resources: self.memory.len(),
            growing_bytes: self.flights.growing_bytes(),
            flights: self.flights.open(),
            followers: self.flights.followers(),
            evicted: self.evicted.load(Ordering::Relaxed),
            purges: self.purges.len(),
            invalidations: self.fetches.lines(),
            uncacheable: self.uncacheable.len(),
            ..self.disk_usage()
        }
    }

    /// Returns the name of a response's URL.
    fn name_of(&self, stored: &Stored<R>) -> KeyHash {
        self.purges.url(stored.scope().site, &stored.scope().url)
    }

    fn writer(&self, hash: KeyHash) -> &Mutex<()> {
        &self.writers[hash.stripe(WRITERS)]
    }

    /// Stores a resource of these variants, newest first, in the place of `before`; with no variants, removes it. The newest that fit are
    /// taken. Returns the resource, whether or not there was room. Call it with the key's writer lock held.
    fn put(
        &self,
        hash: KeyHash,
        key: Arc<[u8]>,
        before: Option<&Resource<R>>,
        variants: impl Iterator<Item = Arc<Stored<R>>>,
        evicted: &mut Evicted<R>,
    ) -> Option<Arc<Resource<R>>> {
        self.put_named(hash, key, before, variants, |first| self.name_of(first), evicted)
    }

    /// Stores a resource as [`put`](Self::put) does. `name` returns the name of a response's URL.
    fn put_named(
        &self,
        hash: KeyHash,
        key: Arc<[u8]>,
        before: Option<&Resource<R>>,
        variants: impl Iterator<Item = Arc<Stored<R>>>,
        name: impl Fn(&Arc<Stored<R>>) -> KeyHash,
        evicted: &mut Evicted<R>,
    ) -> Option<Arc<Resource<R>>> {
        let mut weight = Resource::<R>::frame(key.len(), self.variants_max);
        let variants: SmallVec<[_; 8]> = variants
            .take(self.variants_max)
            .take_while(|stored| {
                weight += stored.weight();
                weight <= self.resource_max
            })
            .collect();
        let url = variants.first().map(name);
        if let Some(old) = before.map(|resource| resource.url).filter(|old| Some(*old) != url) {
            self.urls.remove(old, hash);
        }
        let Some(url) = url else {
            self.memory.remove(&hash);
            self.changes.of(hash).raise();
            return None;
        };
        self.urls.add(url, hash);
        let resource = Arc::new(Resource::new(key, url, variants.into_iter().collect()));
        self.memory.insert_with_lifecycle(hash, Arc::clone(&resource), evicted);
        self.changes.of(hash).raise();
        Some(resource)
    }

    /// Takes evicted resources out of the index, unless they are back already. Call it without a writer lock.
    ///
    /// A resource that was merely replaced comes here as well.
    fn account(&self, evicted: Evicted<R>) {
        for (hash, gone) in evicted {
            let _writer = self.writer(hash).lock();
            match self.memory.peek(&hash) {
                Some(now) if now.url == gone.url => {}
                Some(_) => self.urls.remove(gone.url, hash),
                None => {
                    self.changes.of(hash).raise();
                    self.urls.remove(gone.url, hash);
                    self.evicted.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

fn memory<R: Record>(options: &StoreOptions) -> Memory<R> {
    let shards = options.shards();
    let estimate = usize::try_from(options.memory / RESOURCE_TYPICAL).unwrap_or(usize::MAX);
    let options = OptionsBuilder::new()
        .shards(shards)
        // With fewer than 32 in a shard, the table would merge shards.
        .estimated_items_capacity(estimate.max(32 * shards))
        .weight_capacity(options.shard_bytes() * shards as u64)
        .build()
        .expect("both capacities are set");
    Cache::with_options(options, ByWeight, AsIs::default(), Evictions)
}

/// Weighs a resource by the bytes it was made with.
#[derive(Clone)]
struct ByWeight;

impl<R: Record> Weighter<KeyHash, Arc<Resource<R>>> for ByWeight {
    fn weight(&self, _: &KeyHash, resource: &Arc<Resource<R>>) -> u64 {
        resource.weight()
    }
}

/// Collects the resources that a write pushed out, so that they are dropped after the shard's lock: freeing megabytes takes a while.
#[derive(Clone)]
struct Evictions;

type Evicted<R> = SmallVec<[(KeyHash, Arc<Resource<R>>); 4]>;

impl<R: Record> Lifecycle<KeyHash, Arc<Resource<R>>> for Evictions {
    type RequestState = Evicted<R>;

    fn on_evict(&self, evicted: &mut Evicted<R>, hash: KeyHash, resource: Arc<Resource<R>>) {
        evicted.push((hash, resource));
    }
}

impl<R: Record, E: Failure> fmt::Debug for Store<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

mod disk;

#[cfg(test)]
mod tests;
