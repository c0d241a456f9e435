//! Writes of which nobody knows what came of them: the origin may have carried them out, although no answer says so.

use std::{sync::Arc, time::Duration};

use policy::purge::{Maker, Order, What};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use crate::{Pipeline, Shared, Site, fence::PendingPurges};

/// The time between two purges because writes were not answered: who sends such writes keeps no page colder than that.
const KNOWN_EVERY: Duration = Duration::from_secs(10);

/// The time between two such purges for those who were not seen to be editors: every user of the site, or everybody, can send such writes.
const OTHERS_EVERY: Duration = Duration::from_secs(60);

/// The interval at which a purge that is put off looks whether the server stops.
const LOOKS_WHILE_PUT_OFF: Duration = Duration::from_millis(200);

/// The sender of a write with an unknown outcome. Those who are not known cannot defer a purge for those who are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::purge) enum Writer {
    Known,
    Other,
}

impl Writer {
    /// Returns the time between two purges of a site for such senders.
    pub(in crate::purge) const fn every(self) -> Duration {
        match self {
            Self::Known => KNOWN_EVERY,
            Self::Other => OTHERS_EVERY,
        }
    }
}

/// Whoever purges for such writes of a site.
pub(super) struct UnansweredWrites {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    site: u16,
    site_name: String,
}

impl Pipeline {
    pub(super) fn unanswered(&self, site: &Site) -> UnansweredWrites {
        UnansweredWrites { shared: Arc::clone(&self.shared), tasks: self.tasks.clone(), site: site.id, site_name: site.name.clone() }
    }
}

impl UnansweredWrites {
    /// Purges softly for a write of which nobody knows what came of it: at once, or when the last such purge is long enough ago.
    pub(super) fn purge(self, writer: Writer, by: Maker, caused: &PendingPurges) {
        let Some(wait) = self.shared.signalled.unanswered(&self.site_name, writer, self.shared.clock.now()) else { return };
        if wait.is_zero() {
            return self.purge_now(by, caused);
        }
        let tasks = self.tasks.clone();
        tasks.spawn(async move {
            // When the server stops it is time, as what is on the disk outlives it.
            let due = Instant::now() + wait;
            while Instant::now() < due && !self.tasks.is_closed() {
                sleep(due.saturating_duration_since(Instant::now()).min(LOOKS_WHILE_PUT_OFF)).await;
            }
            // Nobody waits for it any more.
            self.purge_now(by, &PendingPurges::default());
        });
    }

    fn purge_now(&self, by: Maker, caused: &PendingPurges) {
        tracing::info!(site = %self.site_name, "a write may have been carried out: everything may have changed");
        match self.shared.purge_with_acknowledgement(&Order::for_site(&self.site_name, vec![What::Everything], false, by)) {
            Ok((_, elsewhere)) => caused.add(elsewhere),
            Err(why) => tracing::warn!(site = %self.site_name, %why, "could not purge for a write that may have been carried out"),
        }
        self.shared.ripple_of_everything(self.site);
    }
}
