//! Which pages were the same for two visitors, and which were not: what the [two-visitor proofs](crate::proof) have shown.
//!
//! Written once for each page that is stored or proven, never on a hit. Forgetting a page costs one more request to its origin.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use semantics::Timestamp;
use store::KeyHash;

use crate::proof::Difference;

/// Proven pages that are remembered, at some 24 bytes each: 1.5 MiB. When there are more, half of those that share a stripe are forgotten.
pub(crate) const PROVEN_MAX: usize = 65_536;
const STRIPES: usize = 16;

/// A proven page is proven again with one in this many later storings: a template may have changed since.
const SAMPLE: u8 = 64;

/// Pages that differ and are remembered, with excerpts of less than 1 KiB each: 1 MiB. When there are more, the older half is forgotten.
const DIFFERING_MAX: usize = 1_024;

/// Sites whose last warning is remembered.
const SITES_MAX: usize = 4_096;

/// A page that was not the same for two visitors.
#[derive(Debug, Clone)]
struct Differing {
    at: Timestamp,
    until: Timestamp,
    difference: Arc<Difference>,
}

/// The results of two-visitor proofs.
#[derive(Debug)]
pub(crate) struct Proofs {
    /// The proven pages, each with the number of times that it was stored since.
    proven: [Mutex<HashMap<KeyHash, u8>>; STRIPES],
    differing: Mutex<HashMap<KeyHash, Differing>>,
    /// The time from which each site may be warned about again.
    warned: Mutex<HashMap<u16, Timestamp>>,
}

impl Default for Proofs {
    fn default() -> Self {
        Self { proven: std::array::from_fn(|_| Mutex::default()), differing: Mutex::default(), warned: Mutex::default() }
    }
}

impl Proofs {
    /// Returns whether a page that is about to be stored is to be proven: it never was, or it is this storing's turn. Counts the storing.
    pub(crate) fn is_due(&self, page: KeyHash) -> bool {
        self.stripe(page).lock().get_mut(&page).is_none_or(|storings| {
            *storings = storings.saturating_add(1);
            *storings >= SAMPLE
        })
    }

    /// Returns whether a page was the same for two visitors when that was tried last.
    pub(crate) fn is_proven(&self, page: KeyHash) -> bool {
        self.stripe(page).lock().contains_key(&page)
    }

    /// Notes that a page is the same for two visitors.
    pub(crate) fn same(&self, page: KeyHash) {
        let mut proven = self.stripe(page).lock();
        if proven.len() >= PROVEN_MAX / STRIPES && !proven.contains_key(&page) {
            let mut nth = 0_usize;
            proven.retain(|_, _| {
                nth += 1;
                nth.is_multiple_of(2)
            });
        }
        proven.insert(page, 0);
        drop(proven);
        self.differing.lock().remove(&page);
    }

    /// Notes that a page is not the same for two visitors. Until then it is not to be stored.
    pub(crate) fn differs(&self, page: KeyHash, difference: Arc<Difference>, at: Timestamp, until: Timestamp) {
        self.stripe(page).lock().remove(&page);
        let mut differing = self.differing.lock();
        if differing.len() >= DIFFERING_MAX && !differing.contains_key(&page) {
            let mut times: Vec<Timestamp> = differing.values().map(|differing| differing.at).collect();
            let middle = *times.select_nth_unstable(DIFFERING_MAX / 2).1;
            differing.retain(|_, differing| differing.at > middle);
        }
        differing.insert(page, Differing { at, until, difference });
    }

    /// Returns whether a page is known to differ from visitor to visitor.
    pub(crate) fn is_differing(&self, page: KeyHash, now: Timestamp) -> bool {
        self.differing.lock().get(&page).is_some_and(|differing| now < differing.until)
    }

    /// Returns in which way a page differed when that was tried last.
    pub(crate) fn difference(&self, page: KeyHash) -> Option<Arc<Difference>> {
        self.differing.lock().get(&page).map(|differing| Arc::clone(&differing.difference))
    }

    /// Returns whether a site may be warned about now. If so, it may not again until `next`.
    pub(crate) fn may_warn(&self, site: u16, now: Timestamp, next: Timestamp) -> bool {
        let mut warned = self.warned.lock();
        if warned.get(&site).is_some_and(|next| now < *next) {
            return false;
        }
        if warned.len() >= SITES_MAX {
            warned.clear();
        }
        warned.insert(site, next);
        true
    }

    fn stripe(&self, page: KeyHash) -> &Mutex<HashMap<KeyHash, u8>> {
        &self.proven[page.stripe(STRIPES)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Shared, proof::difference};

    fn shared() -> Shared {
        Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system())
    }

    #[test]
    fn a_page_is_proven_at_its_first_storing_and_then_at_one_in_sixty_four() {
        let (shared, proofs) = (shared(), Proofs::default());
        let page = shared.store.hash(b"page");
        for _ in 0..2 {
            assert!(proofs.is_due(page));
            assert!(!proofs.is_proven(page), "it is due as long as no proof came to an end");
        }
        for _ in 0..3 {
            proofs.same(page);
            let storings: Vec<bool> = (1..=64).map(|_| proofs.is_due(page)).collect();
            assert_eq!(storings.iter().position(|due| *due), Some(63));
            assert!(proofs.is_due(page), "a proof that was skipped is made up for");
        }
    }

    #[test]
    fn a_page_that_differs_is_not_proven_any_more() {
        let (shared, proofs) = (shared(), Proofs::default());
        let page = shared.store.hash(b"page");
        let at = |second: u64| Timestamp::from_secs(1_000 + second);
        let difference = Arc::new(difference(b"for Anna", b"for Bert").expect("they differ"));
        proofs.same(page);
        proofs.differs(page, difference, at(0), at(600));
        assert!(!proofs.is_proven(page));
        assert_eq!((proofs.is_differing(page, at(599)), proofs.is_differing(page, at(600))), (true, false));
        proofs.same(page);
        assert!(proofs.is_proven(page) && !proofs.is_differing(page, at(1)) && proofs.difference(page).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (shared, proofs) = (shared(), Proofs::default());
        let page = |n: usize| shared.store.hash(n.to_string().as_bytes());
        (0..PROVEN_MAX + PROVEN_MAX / 2).for_each(|n| proofs.same(page(n)));
        assert!(proofs.proven.iter().map(|stripe| stripe.lock().len()).sum::<usize>() <= PROVEN_MAX);
        assert!(proofs.is_proven(page(PROVEN_MAX + PROVEN_MAX / 2 - 1)), "the last one is remembered");
        let difference = Arc::new(difference(b"a", b"b").expect("they differ"));
        for n in 0..=DIFFERING_MAX {
            let at = Timestamp::from_secs(n as u64);
            proofs.differs(page(n), Arc::clone(&difference), at, at + std::time::Duration::from_secs(1));
        }
        assert!(proofs.differing.lock().len() <= DIFFERING_MAX);
        assert!(proofs.difference(page(DIFFERING_MAX)).is_some() && proofs.difference(page(0)).is_none());
    }

    #[test]
    fn a_site_is_warned_about_once_in_a_while() {
        let proofs = Proofs::default();
        let at = Timestamp::from_secs;
        assert!(proofs.may_warn(1, at(0), at(60)) && !proofs.may_warn(1, at(59), at(119)) && proofs.may_warn(1, at(60), at(120)));
        assert!(proofs.may_warn(2, at(60), at(120)), "another site");
    }
}
