//! Knows which fetches are open, and what was invalidated while they were.
//!
//! An unsafe method invalidates its target (RFC 9111 §4.4), and any stranger may send one. Were each of them a line of the purge table,
//! which never forgets, some ten thousand of them to as many paths would fold into a purge of the whole site. But what is stored under a
//! URL can be freed at once, as long as the [index](crate::index) knows all of it. What is left to fear are the fetches that began before:
//! they may bring the old answer. So a line is needed only while one of those is open; with none open, none is needed at all.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::hash::{AsIs, KeyHash};
use crate::purge::{Generation, PurgeTable};

/// The most invalidated URLs that are told apart while older fetches are open. Beyond it the older half counts for every URL: what those
/// fetches bring is not stored, and costs one more fetch each. No stored response is lost.
pub(crate) const INVALIDATIONS_MAX: usize = 4_096;

/// The open fetches of a store.
#[derive(Default)]
pub(crate) struct Fetches(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The number of open fetches by the generation at which they began.
    open: BTreeMap<Generation, usize>,
    /// The generation at which each URL was invalidated last.
    lines: HashMap<KeyHash, Generation, AsIs>,
    /// The URLs in the order in which they can be forgotten; one that was invalidated again is in it twice.
    order: VecDeque<(Generation, KeyHash)>,
    /// The generation below which responses are not stored, whatever their URL: their fetches began too early.
    floor: Option<Generation>,
}

/// An open fetch: from before its request is sent until its response is stored, or is known not to be. Dropping it ends it.
pub struct Fetching {
    fetches: Arc<Fetches>,
    begun: Generation,
}

impl Fetching {
    /// Returns the generation at which the fetch began.
    #[must_use]
    pub const fn begun(&self) -> Generation {
        self.begun
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.fetches.end(self.begun);
    }
}

impl fmt::Debug for Fetching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetching").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl Fetches {
    /// Opens a fetch. The generation is read under the lock: an invalidation either sees this fetch, or comes before it.
    pub(crate) fn begin(self: &Arc<Self>, purges: &PurgeTable) -> Fetching {
        let mut inner = self.0.lock();
        let begun = purges.generation();
        *inner.open.entry(begun).or_default() += 1;
        Fetching { fetches: Arc::clone(self), begun }
    }

    fn end(&self, begun: Generation) {
        let mut inner = self.0.lock();
        if let Some(count) = inner.open.get_mut(&begun) {
            *count -= 1;
            if *count == 0 {
                inner.open.remove(&begun);
                inner.forget();
            }
        }
    }

    /// Notes that a URL was invalidated. Returns `None` if no fetch is open that could bring the old answer; then nothing was noted.
    pub(crate) fn invalidate(&self, name: KeyHash, purges: &PurgeTable) -> Option<Generation> {
        let mut inner = self.0.lock();
        if inner.open.is_empty() {
            return None;
        }
        let generation = purges.raise();
        inner.note(name, generation);
        Some(generation)
    }

    /// Returns the invalidation that covers a fetch of this URL that began at `begun`.
    pub(crate) fn covering(&self, name: KeyHash, begun: Generation) -> Option<Generation> {
        let inner = self.0.lock();
        inner.lines.get(&name).copied().max(inner.floor).filter(|invalidated| begun < *invalidated)
    }

    /// Returns the number of invalidations that are held.
    pub(crate) fn lines(&self) -> usize {
        self.0.lock().order.len()
    }
}

impl Inner {
    fn note(&mut self, name: KeyHash, generation: Generation) {
        if self.order.len() >= INVALIDATIONS_MAX {
            let lines = &self.lines;
            self.order.retain(|(generation, name)| lines.get(name) == Some(generation));
            while self.order.len() > INVALIDATIONS_MAX / 2 {
                self.floor = self.floor.max(self.drop_oldest());
            }
        }
        self.lines.insert(name, generation);
        self.order.push_back((generation, name));
    }

    /// Forgets the lines that are older than every open fetch.
    fn forget(&mut self) {
        let oldest = self.open.keys().next().copied();
        while self.order.front().is_some_and(|(generation, _)| oldest.is_none_or(|oldest| oldest >= *generation)) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) -> Option<Generation> {
        let (generation, name) = self.order.pop_front()?;
        // The URL may have been invalidated again since.
        if self.lines.get(&name) == Some(&generation) {
            self.lines.remove(&name);
        }
        Some(generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;

    fn table() -> (Arc<Fetches>, PurgeTable, Secret) {
        let secret = Secret::new();
        (Arc::default(), PurgeTable::new(16, secret), secret)
    }

    #[test]
    fn a_line_lives_as_long_as_an_older_fetch() {
        let (fetches, purges, secret) = table();
        let [a, b] = [b"a", b"b"].map(|name| secret.key(name));
        assert_eq!(fetches.invalidate(a, &purges), None, "nothing is open");
        let first = fetches.begin(&purges);
        let at = fetches.invalidate(a, &purges);
        assert!(at > Some(first.begun()));
        let second = fetches.begin(&purges);
        fetches.invalidate(b, &purges);
        assert_eq!(fetches.lines(), 2);
        assert_eq!(fetches.covering(a, first.begun()), at);
        assert_eq!(fetches.covering(a, second.begun()), None, "it began afterwards");
        assert!(fetches.covering(b, second.begun()).is_some());
        drop(first);
        assert_eq!(fetches.lines(), 1, "the second is younger than the first line");
        drop(second);
        assert_eq!(fetches.lines(), 0);
    }

    #[test]
    fn lines_are_bounded_whatever_is_invalidated() {
        let (fetches, purges, secret) = table();
        let old = fetches.begin(&purges);
        for n in 0..3 * INVALIDATIONS_MAX as u64 {
            fetches.invalidate(secret.key(&n.to_le_bytes()), &purges);
            assert!(fetches.lines() <= INVALIDATIONS_MAX);
        }
        let young = fetches.begin(&purges);
        let never_named = secret.key(b"never named");
        assert!(fetches.covering(secret.key(&0_u64.to_le_bytes()), old.begun()).is_some(), "forgotten by name, but not forgotten");
        assert!(fetches.covering(never_named, old.begun()).is_some(), "rather once too often than once too seldom");
        assert_eq!(fetches.covering(never_named, young.begun()), None);
        // The same URL again and again is one line in the end.
        for _ in 0..3 * INVALIDATIONS_MAX {
            fetches.invalidate(never_named, &purges);
            assert!(fetches.lines() <= INVALIDATIONS_MAX);
        }
        drop((old, young));
        assert_eq!(fetches.lines(), 0);
    }
}
