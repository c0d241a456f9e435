//! Stale responses: when one may stand in for the origin, and how it is refreshed behind.

use std::{rc::Rc, sync::Arc};

use semantics::{Timestamp, reuse::allowed_on_error};
use store::Joined;

use crate::{
    Pipeline, Stored, collapse::flight_of_those_who_say, fetch::STALE_IF_ERROR, learnt::refill, learnt::trouble::Trouble,
    question::Question,
};

impl Pipeline {
    /// Validates a stale response behind the scenes, unless somebody does already.
    ///
    /// Where that has just failed, it is asked for now and then, and by a request of the site's own: nobody's fields keep a page old.
    pub(crate) fn refresh(self: &Rc<Self>, question: &Rc<Question>, stored: &Arc<Stored>) {
        let (store, now) = (&self.shared.store, self.shared.clock.now());
        let (site, page) = (question.site.down.at(now), self.shared.trouble.at(question.hash, now));
        if site == Trouble::Pause || page == Trouble::Pause || (page == Trouble::Due && !self.shared.trouble.tries(question.hash, now)) {
            return;
        }
        let own = if site == Trouble::Due || page == Trouble::Due {
            refill::question(&question.site, (question.hash, &question.key), stored).map(Rc::new)
        } else {
            None
        };
        let (question, flight) = match own {
            Some(own) => {
                let flight = flight_of_those_who_say(&own.key, self.said(&own, Some(stored)));
                (own, flight)
            }
            // Nobody's cookies go out for all; the next reader without any refreshes it.
            None if !question.is_shareable() => return,
            None => (Rc::clone(question), self.flight_key(question)),
        };
        if let Joined::Lead(lead) = store.join_for(store.hash(&flight), &flight, question.url()) {
            // Nobody waits for it who could be told of interim responses.
            let told = self.begin_fetch(Rc::clone(&question), lead, Some(Arc::clone(stored)), None);
            // For so long it is as good as read: pages would stay old if a refresh always had to make way.
            let wait = question.site.collapse.wait();
            self.tasks.spawn_local(async move { drop(tokio::time::timeout(wait, told).await) });
        }
    }

    /// Whether a stale response may be served because the origin failed.
    pub(crate) fn stands_in(&self, question: &Question, stored: &Stored, now: Timestamp) -> bool {
        let default = question.site.policy.settings().stale_if_error.unwrap_or(STALE_IF_ERROR);
        allowed_on_error(&question.asks.directives, &stored.record.freshness, now, default)
    }
}
