//! The cluster, as the rest of the program sees it.

use std::{future::Future, sync::Arc, time::Duration};

use admin_api::{ClusterState, Spread};
use policy::purge::Order;

use crate::{
    limits,
    link::Engine,
    local::Local,
    run::Running,
    shelf::Shelf,
    stream::Position,
    tier::{Tier, TierOptions, bucket::BucketError},
};

/// Holds what a machine needs to know to take part in a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server. Its deadline should be at most half of the lease, so that one that hangs does not cost the next round its lease.
    pub engine: Engine,
    /// The name of the cluster, for [`Cluster::state`].
    pub cluster: String,
    /// The name of this machine: no other machine of the cluster has it. There is no `/` in it.
    pub machine: String,
    /// The version of Seawall, for other machines to show.
    pub version: String,
    /// The time that a machine shows what it has stored without news of the stream: 0.5 s to 30 s.
    pub lease: Duration,
    /// The time for which a page is fresh in doubt, from when its origin was asked: at most 30 s.
    pub doubt_hold: Duration,
    /// Up to where the stream was applied to what is stored, as [`Local::keep`] kept it; `None` if nothing is stored or that is not known.
    pub position: Option<Position>,
}

/// A machine's part in the cluster. It runs on a thread of its own, from [`start`](Self::start) to [`stop`](Self::stop).
#[derive(Debug)]
pub struct Cluster {
    running: Running,
}

impl Cluster {
    /// Starts to take part. Returns at once; the first lease comes when the server has answered.
    #[must_use]
    pub fn start(options: Options, local: Arc<dyn Local>) -> Self {
        Self { running: Running::start(options, None, local).expect("there is no bucket whose options could be wrong") }
    }

    /// Starts to take part as [`start`](Self::start) does, with a [tier](Self::tier) that all machines share.
    ///
    /// # Errors
    /// When the options of the tier's bucket cannot be used. The bucket is not asked yet.
    pub fn start_with_tier(options: Options, tier: TierOptions, local: Arc<dyn Local>) -> Result<Self, BucketError> {
        Ok(Self { running: Running::start(options, Some(tier), local)? })
    }

    /// Returns the tier, if it was started with one.
    #[must_use]
    pub fn tier(&self) -> Option<&Tier> {
        self.running.tier()
    }

    /// Begins to share limits with the other machines. Only the first call counts.
    pub fn share_limits(&self, shared: Arc<dyn limits::Shared>) {
        self.running.share_limits(shared);
    }

    /// Tells the other machines of an order that was carried out here before. Returns at once. What it returns resolves when it is known how far
    /// the order went, at most [`Options::lease`] and 1.5 s later; it need not be awaited: the order goes its way.
    ///
    /// An operator wants to be certain. So for an order by one it may take as long as the larger of lease and `doubt_hold`, and 1.5 s: a machine
    /// that is cut off may show for so long what it validated before the purge. Others hear at once that it is cut off, as readers wait for them.
    pub fn purged(&self, order: &Order) -> impl Future<Output = Spread> + Send + 'static + use<> {
        self.running.purged(order)
    }

    /// Returns how the cluster is doing.
    #[must_use]
    pub fn state(&self) -> ClusterState {
        self.running.state()
    }

    /// Returns the shelf: small sealed values that all machines share, and locks.
    #[must_use]
    pub fn shelf(&self) -> Shelf {
        self.running.shelf()
    }

    /// Returns up to where this machine has applied the stream; `None` while it has no lease.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.running.position()
    }

    /// Ends taking part: the fence closes, and this machine is taken from the list of machines, so that nobody waits for it. Takes two seconds at
    /// most. Call it when nothing is served any more: other machines do not reckon with this one after it. Dropping a cluster stops it, too.
    pub fn stop(&self) {
        self.running.stop();
    }
}
