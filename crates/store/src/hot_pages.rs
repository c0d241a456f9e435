//! A worker's own table of the pages it serves most: a hit in it takes no lock and writes to nothing that another core reads.
//!
//! What many cores hit at once is one page, and then the shard's lock word and the page's reference count are the two words that all of
//! them fight for. A page that stands here costs one look at a counter that only changes write ([`changes`](crate::changes)), and is
//! handed out by a reference count of the worker's own.
//!
//! It keeps resources, not judgements: whether a purge covers what is found is still asked of the store
//! ([`Store::verdict`](crate::Store::verdict)). What it keeps may have been evicted a moment ago, so its bytes are bounded and swept.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::changes::AsOf;
use crate::flight::Failure;
use crate::hash::KeyHash;
use crate::resource::{Record, Resource};
use crate::store::Store;

/// The number of sets of places; a key belongs to one set.
const SETS: usize = 512;
/// The places of a set.
const WAYS: usize = 4;
/// The number of missed keys that a set remembers. They are more than it has places; otherwise, if one page too many is read in turn, none
/// would be recognised.
const MISSED: usize = 2 * WAYS;
/// The protection that one hit gives a page against newcomers; each newcomer halves it.
const WARMTH: u8 = 4;
/// The number of hits here that count as one for the memory tier: often enough that pages read here are not evicted there.
const TOUCH: u32 = 32;
/// The number of sets that one search for room looks at.
const ROOM_SETS: usize = 8;

/// The pages that one worker serves most.
pub struct HotPages<R> {
    sets: Box<[Set<R>]>,
    bytes: u64,
    bytes_max: u64,
    /// The set where room is looked for next.
    hand: usize,
}

struct Set<R> {
    places: [Option<Rc<Page<R>>>; WAYS],
    /// The keys that were missed last, as a ring. Only a key that is missed again while it is in the ring takes a place, so that a
    /// crawler's walk through the whole site changes nothing.
    missed: [u32; MISSED],
    next: u8,
}

/// A resource among the hot pages.
pub struct Page<R> {
    hash: KeyHash,
    kept: AsOf<Arc<Resource<R>>>,
    hits: Cell<u32>,
    /// The recent hits, halved whenever its place is wanted.
    warmth: Cell<u8>,
}

/// A resource that was found, among the hot pages or in the store.
#[derive(Debug)]
pub enum HotOrStored<R> {
    /// A hot page, by the worker's own reference.
    Hot(Rc<Page<R>>),
    /// A resource in the store, by a shared reference.
    Store(Arc<Resource<R>>),
}

impl<R> HotOrStored<R> {
    /// Returns the resource.
    #[inline]
    pub fn resource(&self) -> &Resource<R> {
        match self {
            Self::Hot(page) => page.resource(),
            Self::Store(resource) => resource,
        }
    }
}

impl<R> Page<R> {
    /// Returns the resource.
    #[inline]
    pub fn resource(&self) -> &Resource<R> {
        &self.kept.value
    }
}

impl<R: Record> Page<R> {
    /// Returns whether the store still holds this under its key. Counts as a hit.
    #[inline]
    pub fn is_current<E: Failure>(&self, store: &Store<R, E>) -> bool {
        let hits = self.hits.get().wrapping_add(1);
        self.hits.set(hits);
        self.warmth.set(self.warmth.get().saturating_add(WARMTH));
        self.kept.is_current(store.changes.of(self.hash)) && !hits.is_multiple_of(TOUCH) || self.look_again(store)
    }

    /// Asks the memory tier, to count a hit there or because something of this stripe has changed.
    #[cold]
    fn look_again<E: Failure>(&self, store: &Store<R, E>) -> bool {
        self.confirm(store, || store.get(self.hash, self.resource().key()))
    }

    fn confirm<E: Failure>(&self, store: &Store<R, E>, look: impl FnOnce() -> Option<Arc<Resource<R>>>) -> bool {
        let now = AsOf::read(store.changes.of(self.hash), look);
        let same = now.value.as_ref().is_some_and(|stored| Arc::ptr_eq(stored, &self.kept.value));
        if same {
            self.kept.confirm(&now);
        }
        same
    }
}

impl<R: Record> HotPages<R> {
    /// Creates an empty table that keeps at most `bytes_max` bytes of resources from being freed.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        let set = |_| Set { places: [const { None }; WAYS], missed: [0; MISSED], next: 0 };
        Self { sets: (0..SETS).map(set).collect(), bytes: 0, bytes_max, hand: 0 }
    }

    /// Returns what is stored under a key, like [`Store::get`], from this table if it is here.
    pub fn get<E: Failure>(&mut self, store: &Store<R, E>, hash: KeyHash, key: &[u8]) -> Option<HotOrStored<R>> {
        let set = &self.sets[hash.stripe(SETS)];
        let at = set.places.iter().position(|place| place.as_ref().is_some_and(|page| page.hash == hash && page.resource().key() == key));
        if let Some(page) = at.and_then(|at| set.places[at].as_ref())
            && page.is_current(store)
        {
            return Some(HotOrStored::Hot(Rc::clone(page)));
        }
        self.fetch(store, hash, key, at)
    }

    /// Takes a resource from the store, and gives it a place if it is wanted often enough. `held` is the place of an older copy.
    fn fetch<E: Failure>(&mut self, store: &Store<R, E>, hash: KeyHash, key: &[u8], held: Option<usize>) -> Option<HotOrStored<R>> {
        let stripe = hash.stripe(SETS);
        if let Some(at) = held {
            self.free(stripe, at);
        }
        let kept = AsOf::read(store.changes.of(hash), || store.get(hash, key));
        let value = kept.value.clone()?;
        let weight = value.weight();
        let wanted = held.is_some() || self.sets[stripe].missed_before(hash);
        if !wanted || weight > self.bytes_max / 4 {
            return Some(HotOrStored::Store(value));
        }
        let Some(at) = held.or_else(|| self.sets[stripe].place()) else {
            return Some(HotOrStored::Store(value));
        };
        self.free(stripe, at);
        self.make_room(weight);
        if self.bytes + weight > self.bytes_max {
            return Some(HotOrStored::Store(value));
        }
        self.bytes += weight;
        let page = Rc::new(Page { hash, kept: kept.with(value), hits: Cell::new(0), warmth: Cell::new(WARMTH) });
        self.sets[stripe].places[at] = Some(Rc::clone(&page));
        Some(HotOrStored::Hot(page))
    }

    /// Frees the pages with the fewest recent hits until there is room, but looks at a few sets only: the next search looks further.
    fn make_room(&mut self, weight: u64) {
        for _ in 0..ROOM_SETS {
            if self.bytes + weight <= self.bytes_max {
                return;
            }
            self.hand = (self.hand + 1) % SETS;
            for at in 0..WAYS {
                if self.sets[self.hand].places[at].as_ref().is_some_and(|page| page.cool() == 0) {
                    self.free(self.hand, at);
                }
            }
        }
    }

    /// Releases pages that are no longer stored. Call it every second or so: until then, evicted bytes are kept from being freed.
    pub fn sweep<E: Failure>(&mut self, store: &Store<R, E>) {
        for stripe in 0..SETS {
            for at in 0..WAYS {
                let Some(page) = &self.sets[stripe].places[at] else { continue };
                // This is not a hit, so the memory tier must not count it as one.
                let is_stored = || page.confirm(store, || store.peek(page.hash, page.resource().key()));
                if !page.kept.is_current(store.changes.of(page.hash)) && !is_stored() {
                    self.free(stripe, at);
                }
            }
        }
    }

    /// Returns the bytes of the resources in it.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn free(&mut self, stripe: usize, at: usize) {
        if let Some(page) = self.sets[stripe].places[at].take() {
            self.bytes -= page.resource().weight();
        }
    }
}

impl<R> Page<R> {
    /// Halves the warmth, and returns the rest.
    fn cool(&self) -> u8 {
        let warmth = self.warmth.get() / 2;
        self.warmth.set(warmth);
        warmth
    }
}

impl<R> Set<R> {
    /// Returns a place for a newcomer: an empty one, or that of a page with fewer recent hits than newcomers came by. So where one page too
    /// many is read as often as the others, one of them has no place, and not each of them in turn.
    fn place(&self) -> Option<usize> {
        let mut cold = self.places.iter().position(Option::is_none);
        if cold.is_none() {
            // The loop visits all: each newcomer costs each of them half of its warmth.
            for (at, page) in self.places.iter().flatten().enumerate() {
                if page.cool() == 0 {
                    cold = Some(at);
                }
            }
        }
        cold
    }

    /// Returns whether this key was missed here a short while ago, and notes that it was missed now.
    fn missed_before(&mut self, hash: KeyHash) -> bool {
        let mark = hash.mark();
        if self.missed.contains(&mark) {
            return true;
        }
        self.missed[usize::from(self.next) % MISSED] = mark;
        self.next = self.next.wrapping_add(1);
        false
    }
}

impl<R> fmt::Debug for Page<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("resource", self.resource()).field("hits", &self.hits).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for HotPages<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HotPages").field("bytes", &self.bytes).field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
