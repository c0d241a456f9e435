//! Stale responses: when one may stand in for the origin, and how it is refreshed in the background.

use std::{rc::Rc, sync::Arc, time::Duration};

use semantics::{
    Timestamp,
    cache_control::RequestDirectives,
    reuse::{Reuse, SoftPurge, allowed_on_error, reuse},
};
use store::{Generation, Joined, Purged};

use crate::{
    Failure, Pipeline, Shared, Stored,
    collapse::{RequestFingerprint, flight_of, flight_of_fingerprint},
    learnt::{refill, trouble::Trouble},
    question::Question,
};

/// The time for which a stale response may be served when the origin fails, if neither it nor the configuration says: disconnected, a cache
/// may go on (RFC 9111 §4.2.4).
pub(crate) const STALE_IF_ERROR: Duration = Duration::from_secs(7 * 86_400);

/// Returns whether a stale response, or one in doubt, may be served to this request because the origin failed.
pub(crate) fn may_stand_in(shared: &Shared, question: &Question, stored: &Stored, now: Timestamp) -> bool {
    stands_in(shared, &question.wants.directives, question, stored, now)
}

fn stands_in(shared: &Shared, wants: &RequestDirectives, question: &Question, stored: &Stored, now: Timestamp) -> bool {
    let is_allowed = allowed_on_error(wants, &stored.record.freshness, now, stale_if_error(question));
    // It may have been purged while the origin was asked.
    (is_allowed || is_only_in_doubt(shared, wants, stored, now)) && shared.store.verdict(stored) != Purged::Hard
}

/// Returns whether nothing is against a response but that other machines may have purged it. Then what its origin said about stale responses does not
/// matter, as it is not stale.
fn is_only_in_doubt(shared: &Shared, wants: &RequestDirectives, stored: &Stored, now: Timestamp) -> bool {
    let may_be_in_doubt = match shared.store.verdict(stored) {
        Purged::No => shared.fence.is_joined(),
        Purged::Doubted => true,
        Purged::Soft | Purged::Hard => false,
    };
    may_be_in_doubt && reuse(wants, &stored.record.freshness, SoftPurge::None, now) == Reuse::Fresh
}

/// Returns whether a stale response may be served to all who follow a fetch because the origin failed, whatever their requests say.
pub(crate) fn may_stand_in_for_all(shared: &Shared, question: &Question, stored: &Stored, now: Timestamp) -> bool {
    stands_in(shared, &RequestDirectives::NONE, question, stored, now)
}

/// Returns how long a site's stale responses may be served when its origin fails, if they do not say so themselves.
pub(crate) fn stale_if_error(question: &Question) -> Duration {
    question.site.policy.settings().stale_if_error.unwrap_or(STALE_IF_ERROR)
}

/// Remembers that a page could not be refreshed by a fetch that began at this generation, so that those who ask for it next need not wait for the same. Where the whole origin is
/// away, the site knows.
pub(crate) fn refresh_failed(shared: &Shared, question: &Question, candidate: Option<&Stored>, failure: &Failure, begun: Generation) {
    if candidate.is_some() && !failure.is_unreachable() {
        shared.trouble.failed(question.hash, shared.clock.now(), begun);
    }
}

/// Validates a stale response in the background, unless somebody does already.
///
/// Where that has just failed, it is asked for now and then, and by a request of the site's own: nobody's fields keep a page old.
pub(crate) fn refresh(pipeline: &Rc<Pipeline>, question: &Rc<Question>, stored: &Arc<Stored>) {
    let shared = &pipeline.shared;
    let (store, now) = (&shared.store, shared.clock.now());
    let (site, page) = (question.site.origin_state.at(now), shared.trouble.at(question.hash, now));
    if site == Trouble::Pause || page == Trouble::Pause || (page == Trouble::Due && !shared.trouble.tries(question.hash, now)) {
        return;
    }
    let own = if site == Trouble::Due || page == Trouble::Due {
        refill::question(shared, &question.site, question.hashed_key(), stored).map(Rc::new)
    } else {
        None
    };
    let (question, flight) = match own {
        Some(own) => {
            let flight = flight_of_fingerprint(&own.key, RequestFingerprint::of_shared(shared, &own, Some(stored)));
            (own, flight)
        }
        // Nobody's cookies go out for all; the next reader without any refreshes it.
        None if !question.is_shareable() => return,
        None => (Rc::clone(question), flight_of(store, question)),
    };
    if let Joined::Lead(lead) = store.join_for(store.hash(&flight), &flight, question.url(), shared.fence.moment(now)) {
        // Nobody waits for it who could be told of interim responses.
        let told = pipeline.begin_fetch(Rc::clone(&question), lead, Some(Arc::clone(stored)), None, None);
        // For so long it is as good as read: pages would stay old if a refresh always had to make way.
        let wait = question.site.collapse.wait();
        pipeline.tasks.spawn_local(async move { drop(tokio::time::timeout(wait, told).await) });
    }
}
