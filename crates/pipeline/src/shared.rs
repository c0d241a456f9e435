//! What all workers share.

use std::{
    fmt,
    hash::RandomState,
    sync::{Arc, OnceLock},
};

use crate::{
    Clock, Refilling, Store, admission::password::Verifying, body::storing::CopyBudget, learnt::dictionaries::Dictionaries,
    learnt::early_hints::EarlyHints, learnt::popularity::Popularity, learnt::refusals::Refusals, learnt::trouble::Pages, purge::Purging,
};
use codings::Workshop;

/// A worker's front may hold this part of the memory tier,
const FRONT_SHARE: u64 = 16;
/// and never more than this. Nearly all of it is stored as well; what is not goes with the next [`Pipeline::sweep`].
const FRONT_BYTES_MAX: u64 = 16 << 20;

/// What all workers share.
pub struct Shared {
    /// The stored responses.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Which sites a purge can name, who may send one, and how many there were.
    pub purging: Purging,
    /// What comes back by itself after a soft purge.
    pub refilling: Refilling,
    /// Where forms of stored responses are made.
    pub workshop: Workshop,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) early_hints: EarlyHints,
    pub(crate) popularity: Popularity,
    pub(crate) refusals: Refusals,
    /// Pages whose refresh failed a moment ago.
    pub(crate) trouble: Pages,
    /// For what requests say, in numbers.
    pub(crate) secret: RandomState,
    /// What a worker's front may keep from being freed, in bytes.
    pub(crate) front_bytes: u64,
    pub(crate) copying: Arc<CopyBudget>,
    pub(crate) verifying: Verifying,
    certified: OnceLock<Certified>,
}

/// Whether there is a certificate for a host.
type Certified = Box<dyn Fn(&str) -> bool + Send + Sync>;

impl Shared {
    /// An empty store, in memory alone.
    #[must_use]
    pub fn new(options: store::StoreOptions, clock: Clock) -> Self {
        Self::open(options, None, clock)
    }

    /// A store with what the disk has kept of it, if there is to be a disk tier.
    #[must_use]
    pub fn open(options: store::StoreOptions, disk: Option<store::DiskOptions>, clock: Clock) -> Self {
        let copying = Arc::new(CopyBudget::new(options.growing_max));
        let front_bytes = (options.memory / FRONT_SHARE).min(FRONT_BYTES_MAX);
        Self {
            store: Store::open(options, disk),
            clock,
            purging: Purging::default(),
            refilling: Refilling::default(),
            workshop: Workshop::default(),
            dictionaries: Dictionaries::default(),
            early_hints: EarlyHints::default(),
            popularity: Popularity::new(),
            refusals: Refusals::default(),
            trouble: Pages::default(),
            secret: RandomState::new(),
            front_bytes,
            copying,
            verifying: Verifying::default(),
            certified: OnceLock::new(),
        }
    }

    /// Says how to find out whether there is a certificate for a host. Asked for requests over plain http. Only the first call counts.
    pub fn tell_certified(&self, certified: Certified) {
        let _ = self.certified.set(certified);
    }

    pub(crate) fn is_certified(&self, host: &str) -> bool {
        self.certified.get().is_some_and(|certified| certified(host))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).field("early_hints", &self.early_hints).finish_non_exhaustive()
    }
}
