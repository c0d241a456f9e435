//! The decision on what a lookup finds, apart from the doing, so that it can be explained without being done.

use std::{rc::Rc, sync::Arc};

use semantics::{
    Timestamp,
    cache_status::{Forwarded, Outcome},
    reuse::Stale,
};

use crate::{
    Shared, Stored,
    find::{AskReason, LookupResult},
    learnt::trouble::{Failures, Trouble},
    question::Question,
    stale::may_stand_in,
};

/// The next thing to do for a request.
pub(crate) enum Next {
    /// Answer with what is stored; where that is stale, it is refreshed in the background.
    Deliver(Arc<Stored>, Outcome),
    /// Say that nothing is stored that would do (RFC 9111 §5.2.1.7).
    OnlyIfCached,
    /// Ask the origin: whether what is stored still holds, or for the whole.
    Ask {
        /// The stored response that may be confirmed.
        candidate: Option<Arc<Stored>>,
        /// The reason in the words of RFC 9211 §2.2.
        forwarded: Forwarded,
        reason: AskReason,
        /// The request that is sent once for all who ask the same; `None` means that each goes alone.
        together: Option<Rc<Question>>,
    },
}

/// Decides what is to be done with what was found.
pub(crate) fn next(shared: &Shared, question: &Rc<Question>, found: LookupResult, now: Timestamp) -> Next {
    let ask = |candidate: Option<Arc<Stored>>, forwarded, reason| {
        let fetched = if candidate.is_some() { Rc::clone(question) } else { question.to_fetch() };
        let is_shared = fetched.is_shareable() && !shared.store.uncacheable(question.hash, now.as_millis());
        Next::Ask { candidate, forwarded, reason, together: is_shared.then_some(fetched) }
    };
    match found {
        LookupResult::Fresh(stored) => Next::Deliver(stored, Outcome::Hit),
        LookupResult::WhileRevalidating(stored) => Next::Deliver(stored, Outcome::Updating),
        LookupResult::Forbidden => Next::OnlyIfCached,
        LookupResult::Stale(stored, why)
            if is_in_trouble(shared, question, &stored, why, now) && may_stand_in(shared, question, &stored, now) =>
        {
            Next::Deliver(stored, Outcome::Stale { forwarded: false })
        }
        LookupResult::Stale(stored, why) if why.is_by_request() => ask(Some(stored), Forwarded::Request, AskReason::Stale(why)),
        LookupResult::Stale(stored, why) => ask(Some(stored), Forwarded::Stale, AskReason::Stale(why)),
        LookupResult::Nothing(..) if question.wants.directives.only_if_cached => Next::OnlyIfCached,
        LookupResult::Nothing(why, reason) => ask(None, why, reason),
    }
}

/// Returns whether the origin is known to fail this request: it could not be connected to, or the page's last refresh failed.
///
/// Where nobody sees what was purged before it is validated, only what failed after the purge counts.
fn is_in_trouble(shared: &Shared, question: &Question, stored: &Stored, why: Stale, now: Timestamp) -> bool {
    let site = question.site.origin_state.failures();
    if site.at(now) == Trouble::Due && question.member.is_some() {
        // It is time to try, and nobody refreshes a page in the background for a member.
        return false;
    }
    let withheld = why == Stale::Purged && !question.site.policy.shows_what_was_purged();
    let counts = |failures: Failures| {
        let is_before_purge = || failures.begun().is_none_or(|begun| shared.store.is_purged(stored.scope(), begun));
        failures.at(now) != Trouble::None && !(withheld && is_before_purge())
    };
    counts(site) || (!why.is_by_request() && counts(shared.trouble.of(question.hash)))
}
