//! Purges: every one is an order, and is carried out here.
//!
//! 1. Somebody makes an [`Order`], which names sites by name and hosts as people write them: the operator through the admin API, a plugin
//!    by a request on the site's own address ([`request`]; [`permission`] says who may), the answer to an unsafe method ([`invalidation`]),
//!    a write that a Ghost or a WordPress accepted ([`write`](self::write)), the fields of any answer ([`fields`]), a [`webhook`], a folder that
//!    changed, a new configuration.
//! 2. [`Shared::purge`] takes it. [`resolve`] makes of it what the store understands, or refuses the whole of it.
//! 3. The store purges. That is counted and logged with who ordered it, and whoever [watches](Purging::watch) is told.
//! 4. The other machines of a cluster are told, unless they see the reason themselves; what they tell is [applied](Shared::apply).
//! 5. Whoever made the order gets a [`Receipt`], and later word of [how far it went](crate::Elsewhere).

mod fields;
mod invalidation;
mod once;
mod permission;
mod privacy;
mod receipt;
mod request;
mod resolve;
pub(crate) mod ripple;
mod signal_log;
mod webhook;
pub(crate) mod write;

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use http::HeaderMap;
use ipnet::IpNet;
use parking_lot::Mutex;
use policy::purge::{Dialect, Maker, Order, Sites, What};
use semantics::Timestamp;
use store::{Hardness, PurgeReceipt, PurgeTarget};

use crate::{Elsewhere, Router, Shared};
use permission::Permission;
pub use permission::TokenCheck;
pub use receipt::{Covered, Receipt};
pub use resolve::Unresolved;
use resolve::{Directory, Resolved};
pub use signal_log::{SignalLog, SignalledPurge, SiteSignals};
pub use webhook::WebhookSecret;

/// The most stored target URIs that are looked at to count what a purge covers: a tenth of a second's work.
const COUNTED_MAX: usize = 200_000;

/// The part of purging that all workers share: the sites, those who may send purge requests, and the numbers of purges.
#[derive(Debug, Default)]
pub struct Purging {
    directory: ArcSwap<Directory>,
    permission: Permission,
    by_maker: [AtomicU64; Maker::NAMES.len()],
    by_dialect: [AtomicU64; Dialect::ALL.len()],
    /// The time of the last purge that announces pages, in milliseconds; 0: never.
    last: AtomicU64,
    announced: Mutex<AnnouncedCounts>,
    watcher: OnceLock<Watcher>,
}

/// A function that is told of purges: see [`Purging::watch`].
struct Watcher(Box<dyn Fn(&Purge<'_>) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// A purge that was carried out, for whoever watches.
#[derive(Debug, Clone, Copy)]
pub struct Purge<'a> {
    /// The time at which it was carried out.
    pub at: Timestamp,
    /// The order.
    pub order: &'a Order,
    /// The receipt for it.
    pub receipt: &'a Receipt,
}

/// The machine to which an order was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderedAt {
    Here,
    Elsewhere,
}

/// The number of times that somebody has said that a whole site changed.
#[derive(Debug, Default)]
struct AnnouncedCounts {
    everywhere: u64,
    /// By the name of the site, which only a configuration gives.
    by_site: BTreeMap<String, u64>,
}

impl Purging {
    /// Makes the sites of this router those that orders can name. It must be called before a worker serves by a new configuration; for the
    /// first one, the workers do.
    pub fn know_sites(&self, router: &Router) {
        self.directory.rcu(|before| Arc::new(before.followed_by(router)));
    }

    /// Makes the sites of this router those that orders can name, if none are known yet.
    pub(crate) fn know_first_sites(&self, router: &Router) {
        if self.directory.load().is_empty() {
            self.know_sites(router);
        }
    }

    /// Takes purge requests from these addresses alone, beside those with a token.
    pub fn allow(&self, addresses: Vec<IpNet>) {
        self.permission.allow(addresses);
    }

    /// Takes purge requests from whoever has the token. Only the first call counts.
    pub fn accept_token(&self, is_token: TokenCheck) {
        self.permission.accept_token(is_token);
    }

    /// Tells `watcher` of every purge, on the thread that carries it out, but of none that a stranger can cause: they would fill its list. Only the
    /// first call counts.
    pub fn watch(&self, watcher: impl Fn(&Purge<'_>) + Send + Sync + 'static) {
        let _ = self.watcher.set(Watcher(Box::new(watcher)));
    }

    /// Returns how many purges there were, by who ordered them.
    pub fn by_maker(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Maker::NAMES.into_iter().zip(&self.by_maker).map(|(name, count)| (name, count.load(Relaxed)))
    }

    /// Returns how many purge requests of plugins were obeyed, by dialect.
    pub fn by_dialect(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Dialect::ALL.iter().zip(&self.by_dialect).map(|(dialect, count)| (dialect.name(), count.load(Relaxed)))
    }

    /// Returns how many purge requests came from somebody who may not purge.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.permission.refused()
    }

    /// Returns how often all pages of a site were purged because somebody said that they had changed.
    ///
    /// What Seawall finds out by itself is not counted, nor is what strangers can cause.
    #[must_use]
    pub fn announced(&self, site: &str) -> u64 {
        let announced = self.announced.lock();
        announced.everywhere + announced.by_site.get(site).copied().unwrap_or_default()
    }

    fn note_announced(&self, order: &Order) {
        if !order.by.is_announcement() {
            return;
        }
        if !order.what.iter().any(|what| matches!(what, What::Everything | What::Host(_))) {
            return;
        }
        let mut announced = self.announced.lock();
        match &order.sites {
            Sites::All => announced.everywhere += 1,
            Sites::Named(name) => *announced.by_site.entry(name.clone()).or_default() += 1,
        }
    }

    fn admit(&self, headers: &HeaderMap, address: Option<IpAddr>) -> Result<(), String> {
        self.permission.admit(headers, address)
    }

    fn resolve(&self, order: &Order) -> Result<Resolved, Unresolved> {
        self.directory.load().resolve(order)
    }

    fn resolve_elsewheres(&self, order: &Order) -> (Resolved, Option<Unresolved>) {
        self.directory.load().resolve_elsewheres(order)
    }

    /// Counts a purge, and logs it. What strangers and programs cause by themselves is logged at a level that is usually off: strangers
    /// would write the log.
    fn count_and_log(&self, order: &Order, covered: &[Covered], at: OrderedAt) {
        self.by_maker[order.by.index()].fetch_add(1, Relaxed);
        let dialect = order.by.dialect();
        if let Some(dialect) = dialect {
            self.by_dialect[dialect as usize].fetch_add(1, Relaxed);
        }
        let (by, dialect) = (order.by.name(), dialect.map(Dialect::name));
        let site = match &order.sites {
            Sites::All => None,
            Sites::Named(name) => Some(name.as_str()),
        };
        let covered = || covered.iter().map(ToString::to_string).collect::<Vec<_>>();
        if at == OrderedAt::Elsewhere {
            return tracing::debug!(by, dialect, site, covered = ?covered(), hard = order.hard, "purged, as another machine was told to");
        }
        if order.by.is_announcement() {
            tracing::info!(by, dialect, site, covered = ?covered(), hard = order.hard, "purged");
        } else {
            tracing::debug!(by, dialect, site, covered = ?covered(), hard = order.hard, "purged");
        }
    }
}

impl Shared {
    /// Carries out an order. The receipt has the number of stored responses only where the store finds them anyway, which is for pages
    /// named by their addresses; so a worker can afford this.
    ///
    /// # Errors
    /// When the order cannot be understood: then nothing is purged.
    pub fn purge(&self, order: &Order) -> Result<Receipt, Unresolved> {
        self.purge_with_acknowledgement(order).map(|(receipt, _)| receipt)
    }

    /// Carries out an order like [`purge`](Self::purge), for whoever wants to know how far it went.
    ///
    /// # Errors
    /// When the order cannot be understood: then nothing is purged.
    pub fn purge_with_acknowledgement(&self, order: &Order) -> Result<(Receipt, Elsewhere), Unresolved> {
        let resolved = self.purging.resolve(order)?;
        let (receipts, elsewhere) = self.carry_out_and_tell_machines(order, &resolved);
        let receipt = self.receipt(receipts, resolved);
        self.tell_watcher(order, &receipt);
        Ok((receipt, elsewhere))
    }

    fn receipt(&self, receipts: Vec<PurgeReceipt>, resolved: Resolved) -> Receipt {
        let variants: usize = receipts.iter().filter_map(|receipt| receipt.variants).sum();
        let is_counted = receipts.iter().all(|receipt| receipt.variants.is_some());
        Receipt {
            generation: receipts.last().map_or_else(|| self.store.generation(), |receipt| receipt.generation),
            variants: receipts.iter().any(|receipt| receipt.variants.is_some()).then_some(variants),
            complete: is_counted && self.store.usage().disk_objects == 0,
            covered: resolved.covered,
        }
    }

    /// Carries out an order that another machine has carried out. Nobody is told of it again.
    ///
    /// Where the configurations differ, pages are purged under whatever site serves their host here. A page that is served nowhere
    /// here is left out.
    ///
    /// # Errors
    /// When a part of it could not be carried out, as no site here has the name of that which it is for. The rest is carried out.
    pub fn apply(&self, order: &Order) -> Result<(), Unresolved> {
        let (resolved, missing) = self.purging.resolve_elsewheres(order);
        if !resolved.targets.is_empty() {
            let receipts = self.carry_out(order, &resolved, OrderedAt::Elsewhere);
            let receipt = self.receipt(receipts, resolved);
            self.remember_publication(order, &receipt);
            self.tell_watcher(order, &receipt);
        }
        missing.map_or(Ok(()), Err)
    }

    /// Doubts everything that was stored so far: purges of it may have been lost. It is validated before it is shown again, the pages that are
    /// read most at once. `why` is for the log.
    pub fn doubt(&self, why: &str) {
        self.store.doubt();
        self.refilling.ripples.forget();
        self.refilling.begin_anew();
        let usage = self.store.usage();
        if usage.resources == 0 && usage.disk_objects == 0 {
            return tracing::debug!(why, "nothing is stored of which purges may have been missed");
        }
        tracing::warn!(why, "what is stored is validated before it is shown again, as purges of it may have been missed");
    }

    /// Tells the watcher of a purge, unless a stranger can be behind it.
    fn tell_watcher(&self, order: &Order, receipt: &Receipt) {
        if order.by.may_be_stranger() {
            return;
        }
        if let Some(Watcher(watcher)) = self.purging.watcher.get() {
            watcher(&Purge { at: self.clock.now(), order, receipt });
        }
    }

    /// Carries out an order, and counts before what of it is stored. That looks at everything that is stored and can take a tenth of a
    /// second: not on a worker.
    ///
    /// # Errors
    /// When the order cannot be understood: then nothing is purged.
    pub fn purge_counted(&self, order: &Order) -> Result<(Receipt, Elsewhere), Unresolved> {
        let resolved = self.purging.resolve(order)?;
        // Before it: afterwards all of it is purged.
        let counted = self.covered(&resolved.targets, COUNTED_MAX);
        let (receipts, elsewhere) = self.carry_out_and_tell_machines(order, &resolved);
        let receipt = Receipt {
            generation: receipts.last().map_or_else(|| self.store.generation(), |receipt| receipt.generation),
            variants: counted.map(|counted| counted.responses),
            complete: counted.is_some_and(|counted| counted.complete),
            covered: resolved.covered,
        };
        self.tell_watcher(order, &receipt);
        Ok((receipt, elsewhere))
    }

    /// Carries out an order that was given to this machine, and tells the other machines.
    fn carry_out_and_tell_machines(&self, order: &Order, resolved: &Resolved) -> (Vec<PurgeReceipt>, Elsewhere) {
        let _untold = self.fence.begin();
        let receipts = self.carry_out(order, resolved, OrderedAt::Here);
        (receipts, self.fence.purged(order))
    }

    /// Purges the targets of a resolved order. What the answer to an unsafe method invalidates is noted in a table of its own, always hard, and
    /// does not announce new pages.
    fn carry_out(&self, order: &Order, resolved: &Resolved, at: OrderedAt) -> Vec<PurgeReceipt> {
        let hardness = if order.hard { Hardness::Hard } else { Hardness::Soft };
        let by_writer = order.by.may_be_stranger();
        if !by_writer {
            self.purging.last.store(self.clock.now().as_millis(), Relaxed);
        }
        let purge = |target: &PurgeTarget| match target {
            PurgeTarget::Url { site, url } if by_writer => self.store.invalidate(*site, url, true),
            target => self.store.purge(target, hardness),
        };
        let receipts = resolved.targets.iter().map(purge).collect();
        if !by_writer {
            // Whoever gets a signal says which pages a publication changes; of another machine's that is not known.
            if hardness == Hardness::Soft && !(order.by.is_signal() && at == OrderedAt::Here) {
                self.refilling.ripples.forget();
            }
            self.refilling.purged(hardness);
        }
        self.purging.note_announced(order);
        self.purging.count_and_log(order, &resolved.covered, at);
        receipts
    }

    /// Returns when something was purged last that announces pages; the epoch if never.
    pub(crate) fn purged_at(&self) -> Timestamp {
        Timestamp::from_millis(self.purging.last.load(Relaxed))
    }
}

#[cfg(test)]
mod tests;
