//! The part of the pipeline that all workers share.

use std::{
    fmt,
    hash::RandomState,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use crate::{
    Clock, Fence, InVain, Refilling, Store, Stored, Tier,
    admission::password::Verifying,
    body::storing::CopyBudget,
    direct::Direct,
    identity::Ids,
    learnt::cookies::{CookieCount, Cookies},
    learnt::dictionaries::Dictionaries,
    learnt::early_hints::EarlyHints,
    learnt::not_kept::NotKeptReasons,
    learnt::popularity::Popularity,
    learnt::proofs::Proofs,
    learnt::tier_proof::{ConfirmedMembers, TierProofs},
    learnt::trouble::TroubledPages,
    login::Logins,
    packed::Packing,
    purge::{Purging, SignalLog},
    rate::Rates,
};
use codings::Workshop;
use policy::CookieName;
use semantics::Timestamp;
use store::Purged;

/// A worker's hot pages may hold one part in this many of the memory tier.
const HOT_SHARE: u64 = 16;
/// The most bytes that a worker's hot pages may hold, however large the memory tier is. Nearly all of it is stored as well; what is not goes with
/// the next [`Pipeline::sweep`].
const HOT_BYTES_MAX: u64 = 16 << 20;

/// The part of the pipeline that all workers share.
pub struct Shared {
    /// The stored responses.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Whether what is stored may be shown although other machines may have purged it.
    pub fence: Fence,
    /// The sites that a purge can name, those who may send one, and the number of purges.
    pub purging: Purging,
    /// The signals of origins that say what has changed.
    pub signalled: SignalLog,
    /// The refills after soft purges.
    pub refilling: Refilling,
    /// The watcher of what the origin did for clients that had left.
    pub in_vain: InVain,
    /// The threads that make forms of stored responses.
    pub workshop: Workshop,
    /// The packing of content that is stored in its forms alone.
    pub packing: Packing,
    /// The rule by which requests of the load tester go past the cache.
    pub direct: Direct,
    /// The number of requests that each address has sent.
    pub rates: Rates,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) early_hints: EarlyHints,
    pub(crate) popularity: Popularity,
    pub(crate) not_kept: NotKeptReasons,
    /// The cookies that kept something from the cache.
    pub(crate) cookies: Cookies,
    /// The pages that were the same for two visitors, and those that were not.
    pub(crate) proofs: Proofs,
    /// Pages whose refresh failed a moment ago.
    pub(crate) trouble: TroubledPages,
    pub(crate) tier_proofs: TierProofs,
    pub(crate) confirmed_members: ConfirmedMembers,
    /// The secret of the numbers that stand for what requests say.
    pub(crate) secret: RandomState,
    /// The ids of requests and spans.
    pub(crate) ids: Ids,
    /// Bytes that a worker's hot pages may keep from being freed.
    pub(crate) hot_bytes: u64,
    pub(crate) copying: Arc<CopyBudget>,
    pub(crate) verifying: Verifying,
    pub(crate) logins: Logins,
    /// The tier that machines share, if there is one.
    pub(crate) tier: OnceLock<Box<dyn Tier>>,
    certified: OnceLock<Certified>,
    challenges: OnceLock<Challenges>,
    challenge_look_ups: OnceLock<ChallengeLookUps>,
}

/// A function that tells whether there is a certificate for a host.
type Certified = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// A function that returns the proof for a certificate authority that asks for a path (RFC 8555 §8.3); `None` if there is none.
type Challenges = Box<dyn Fn(&str) -> Option<Arc<str>> + Send + Sync>;

/// A function that returns what to wait for before the proof for a path is asked for, if another machine may have it. The wait is bounded.
type ChallengeLookUps = Box<dyn Fn(&str) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync>;

impl Shared {
    /// Makes an empty store, in memory alone.
    #[must_use]
    pub fn new(options: store::StoreOptions, clock: Clock) -> Self {
        Self::open(options, None, clock)
    }

    /// Opens a store with what the disk has kept of it, if there is to be a disk tier.
    #[must_use]
    pub fn open(options: store::StoreOptions, disk: Option<store::DiskOptions>, clock: Clock) -> Self {
        let copying = Arc::new(CopyBudget::new(options.growing_max));
        let packing = Packing::new(options.memory, clock.now());
        let hot_bytes = (options.memory / HOT_SHARE).min(HOT_BYTES_MAX);
        Self {
            store: Store::open(options, disk),
            clock,
            fence: Fence::default(),
            purging: Purging::default(),
            signalled: SignalLog::default(),
            refilling: Refilling::default(),
            in_vain: InVain::default(),
            workshop: Workshop::default(),
            packing,
            direct: Direct::default(),
            rates: Rates::default(),
            dictionaries: Dictionaries::default(),
            early_hints: EarlyHints::default(),
            popularity: Popularity::new(),
            not_kept: NotKeptReasons::default(),
            cookies: Cookies::default(),
            proofs: Proofs::default(),
            trouble: TroubledPages::default(),
            tier_proofs: TierProofs::default(),
            confirmed_members: ConfirmedMembers::default(),
            secret: RandomState::new(),
            ids: Ids::default(),
            hot_bytes,
            copying,
            verifying: Verifying::default(),
            logins: Logins::default(),
            tier: OnceLock::new(),
            certified: OnceLock::new(),
            challenges: OnceLock::new(),
            challenge_look_ups: OnceLock::new(),
        }
    }

    /// Returns whether nobody is known, or must be feared, to have purged a stored response. Its lifetime is another matter.
    #[inline]
    pub(crate) fn is_current(&self, stored: &Stored, now: Timestamp) -> bool {
        // The fence is asked first: a lease rests on purges that were carried out before.
        self.fence.shows(now, stored.record.freshness.request_time) && self.store.verdict(stored) == Purged::No
    }

    /// Tells how to find out whether there is a certificate for a host. It is asked for requests over plain http. Only the first call
    /// counts.
    pub fn tell_certified(&self, certified: Certified) {
        let _ = self.certified.set(certified);
    }

    /// Returns the cookies that kept something of a site from the cache, those that did so most often first.
    #[must_use]
    pub fn cookies(&self, site: u16) -> Vec<(CookieName, CookieCount)> {
        self.cookies.of(site)
    }

    /// Returns the cookies that kept something from the cache, of all sites that were ever served, by the site's number.
    #[must_use]
    pub fn cookies_of_all(&self) -> Vec<(u16, CookieName, CookieCount)> {
        self.cookies.all()
    }

    pub(crate) fn is_certified(&self, host: &str) -> bool {
        self.certified.get().is_some_and(|certified| certified(host))
    }

    /// Tells where the proofs are that certificate authorities ask for. They are answered for every host. Only the first call counts.
    pub fn tell_challenges(&self, challenges: Challenges) {
        let _ = self.challenges.set(challenges);
    }

    /// Tells how proofs that other machines have are looked up before they are asked for. Only the first call counts.
    pub fn tell_challenge_look_ups(&self, look_ups: ChallengeLookUps) {
        let _ = self.challenge_look_ups.set(look_ups);
    }

    /// Waits until the proof for a path has been looked up at the other machines, if there are any.
    pub(crate) async fn look_up_challenge(&self, path: &str) {
        if let Some(looking) = self.challenge_look_ups.get().and_then(|look_up| look_up(path)) {
            looking.await;
        }
    }

    pub(crate) fn challenge(&self, path: &str) -> Option<Arc<str>> {
        self.challenges.get().and_then(|proof| proof(path))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).field("early_hints", &self.early_hints).finish_non_exhaustive()
    }
}
