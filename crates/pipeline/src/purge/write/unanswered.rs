//! Writes of which nobody knows what came of them: the origin may have carried them out, although no answer says so.

use std::{rc::Rc, time::Duration};

use policy::purge::{Maker, Order, What};
use tokio::time::{Instant, sleep};

use crate::{Pipeline, Site, fence::PendingPurges};

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

impl Pipeline {
    /// Purges softly for a write of which nobody knows what came of it: at once, or when the last such purge is long enough ago.
    pub(super) fn purge_for_unanswered(self: &Rc<Self>, site: &Rc<Site>, writer: Writer, by: Maker, caused: &PendingPurges) {
        let Some(wait) = self.shared.signalled.unanswered(&site.name, writer, self.shared.clock.now()) else { return };
        let order = Order::for_site(&site.name, vec![What::Everything], false, by);
        if wait.is_zero() {
            self.purge_unanswered(site, &order, caused);
        } else {
            let (pipeline, site) = (Rc::clone(self), Rc::clone(site));
            self.tasks.spawn_local(async move {
                // When the server stops it is time, as what is on the disk outlives it.
                let due = Instant::now() + wait;
                while Instant::now() < due && !pipeline.tasks.is_closed() {
                    sleep(due.saturating_duration_since(Instant::now()).min(LOOKS_WHILE_PUT_OFF)).await;
                }
                // Nobody waits for it any more.
                pipeline.purge_unanswered(&site, &order, &PendingPurges::default());
            });
        }
    }

    fn purge_unanswered(&self, site: &Site, order: &Order, caused: &PendingPurges) {
        tracing::info!(site = %site.name, "a write may have been carried out: everything may have changed");
        match self.shared.purge_telling(order) {
            Ok((_, elsewhere)) => caused.add(elsewhere),
            Err(why) => tracing::warn!(site = %site.name, %why, "could not purge for a write that may have been carried out"),
        }
        self.ripple_of_write(site, false);
    }
}
