//! The fence: whether this machine may show what it has stored as fresh, although other machines may have purged it.
//!
//! A machine that stands alone always may. One of a cluster may while it has a lease. Without a lease it is *in doubt*: only what its origin has
//! confirmed a few seconds ago is fresh, and everything else is validated first, once for all who wait; if the origin fails, it stands in.
//!
//! What a lease is and who gets one is the business of `cluster`, which this room does not know.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use admin_api::Spread;
use policy::purge::Order;
use semantics::Timestamp;

/// The other machines, as whoever purges sees them.
pub trait Machines: Send + Sync + 'static {
    /// Tells the other machines of an order that was carried out here a moment ago. Returns at once.
    fn purged(&self, order: &Order) -> Acknowledgement;
}

/// What comes when it is known how far a purge went. It is bounded in time by the cluster's lease, and a little.
pub type Acknowledgement = Pin<Box<dyn Future<Output = Spread> + Send>>;

/// The fence. It opens and closes by time alone, so that a machine that was cut off or frozen closes it without anybody's doing.
pub struct Fence {
    /// The end of the lease, in milliseconds of [`Clock`](crate::Clock). `u64::MAX`: there is no cluster.
    until: AtomicU64,
    /// The milliseconds for which a page counts as fresh in doubt, from when its origin was asked.
    doubt_hold: AtomicU64,
    machines: OnceLock<Box<dyn Machines>>,
}

impl Default for Fence {
    fn default() -> Self {
        Self { until: AtomicU64::new(u64::MAX), doubt_hold: AtomicU64::new(0), machines: OnceLock::new() }
    }
}

impl Fence {
    /// Joins a cluster, without a lease yet. Only the first call counts.
    pub fn join(&self, machines: Box<dyn Machines>, doubt_hold: Duration) {
        if self.machines.set(machines).is_ok() {
            self.doubt_hold.store(u64::try_from(doubt_hold.as_millis()).unwrap_or(u64::MAX), Relaxed);
            self.until.store(0, Relaxed);
        }
    }

    /// Extends the lease. It is never shortened, but by its end.
    pub fn lease(&self, until: Timestamp) {
        if self.machines.get().is_some() {
            self.until.fetch_max(until.as_millis(), Relaxed);
        }
    }

    /// Gives the lease up at once.
    pub fn give_up(&self) {
        if self.machines.get().is_some() {
            self.until.store(0, Relaxed);
        }
    }

    /// Returns whether what is stored may be shown as fresh.
    #[inline]
    pub fn holds(&self, now: Timestamp) -> bool {
        now.as_millis() < self.until.load(Relaxed)
    }

    /// Returns for how long a page is fresh in doubt, from when its origin was asked.
    pub fn doubt_hold(&self) -> Duration {
        Duration::from_millis(self.doubt_hold.load(Relaxed))
    }

    /// Tells the other machines of an order, if there are any.
    pub fn purged(&self, order: &Order) -> Option<Acknowledgement> {
        self.machines.get().map(|machines| machines.purged(order))
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("until", &self.until).finish_non_exhaustive()
    }
}
