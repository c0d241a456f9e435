//! The tier that machines share, between the room that knows the server and the one that knows pages.

use std::time::Duration;

use bytes::Bytes;
use pipeline::{FetchTurn, Later, TIER_HEAD_MAX, Tier, TierLookup, TierPage};

const _: () = assert!(TIER_HEAD_MAX == cluster::tier::HEAD_BYTES_MAX, "the two rooms mean the same by a page");

/// The tier of a cluster, as the pipeline sees it.
#[derive(Debug)]
pub(crate) struct SharedTier(pub(crate) cluster::tier::Tier);

impl Tier for SharedTier {
    fn page_bytes_max(&self) -> usize {
        self.0.page_bytes_max()
    }

    fn look(&self, name: &[u8], known: Option<u128>, waited: Duration) -> Later<TierLookup> {
        let looked = self.0.look(name, known, waited);
        Box::pin(async move {
            match looked.await {
                cluster::tier::LookOutcome::Found(page) => {
                    let cluster::tier::Page { page, since, rested, mark } = page;
                    TierLookup::Found(TierPage { page, since, rested, mark })
                }
                cluster::tier::LookOutcome::Turn(turn) => TierLookup::Turn(Box::new(Turn(turn))),
                cluster::tier::LookOutcome::Wait(interval) => TierLookup::Wait(Box::pin(tokio::time::sleep(interval))),
                cluster::tier::LookOutcome::Away => TierLookup::Away,
            }
        })
    }

    fn put(&self, name: &[u8], page: Bytes, begun: u64, lasts: Duration) {
        self.0.put(name, &page, begun, lasts);
    }

    fn remove(&self, name: &[u8]) {
        self.0.remove(name);
    }
}

struct Turn(cluster::tier::Turn);

impl FetchTurn for Turn {
    fn refuse(self: Box<Self>) {
        self.0.refuse();
    }
}
