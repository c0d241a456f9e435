//! The cluster, as the rest of the program sees it.

use std::{future::Future, sync::Arc, time::Duration};

use admin_api::{ClusterState, Spread};
use policy::purge::Order;

use crate::{link::EngineOptions, local::Local, shelf::Shelf, stream::Position};

/// What a machine needs to know to take part in a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the server is reached; the name of the cluster, its secret, and how many replicas have to have what is written.
    pub engine: EngineOptions,
    /// The name of this machine: no other machine of the cluster has it.
    pub machine: String,
    /// The version of Seawall, for other machines to show.
    pub version: String,
    /// For how long a machine shows what it has stored without news of the stream: 0.5 s to 30 s.
    pub lease: Duration,
    /// For how long in doubt a page is fresh, from when its origin was asked.
    pub doubt_hold: Duration,
    /// Up to where the stream was applied to what is stored, as [`Local::keep`] kept it; `None` if nothing is stored or that is not known.
    pub position: Option<Position>,
}

/// A machine's part in the cluster. It runs on a thread of its own, from [`start`](Self::start) to [`stop`](Self::stop).
#[derive(Debug)]
pub struct Cluster {}

impl Cluster {
    /// Starts to take part. Returns at once; the first lease comes when the server has answered.
    #[must_use]
    pub fn start(options: Options, local: Arc<dyn Local>) -> Self {
        let _ = (options, local);
        Self {}
    }

    /// Tells the other machines of an order that was carried out here before. Returns at once; what it returns resolves when it is known how far
    /// the order went, at most [`Options::lease`] and 1.5 s later. It need not be awaited: the order goes its way.
    ///
    /// For an operator, who wants to know, it may take as long as the larger of lease and `doubt_hold`, and 1.5 s.
    pub fn purged(&self, order: &Order) -> impl Future<Output = Spread> + Send + 'static {
        let _ = order;
        std::future::ready(Spread::default())
    }

    /// Returns how the cluster is doing.
    #[must_use]
    pub fn state(&self) -> ClusterState {
        ClusterState::default()
    }

    /// Returns the shelf: small sealed values that all machines share, and locks.
    #[must_use]
    pub fn shelf(&self) -> Shelf {
        unimplemented!()
    }

    /// Returns up to where this machine has applied the stream; `None` while it has no lease.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        None
    }

    /// Ends taking part: the fence closes, and this machine is taken from the list of machines, so that nobody waits for it. Takes two seconds at
    /// most. Dropping a cluster stops it, too.
    pub fn stop(&self) {}
}
