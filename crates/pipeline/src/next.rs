//! The decision on what a lookup finds, apart from the doing, so that it can be explained without being done.

use std::{rc::Rc, sync::Arc};

use policy::Trace;
use semantics::{
    Timestamp,
    cache_status::{Forwarded, Outcome},
    freshness::LifetimeSource,
    reuse::{Reuse, Stale, reuse},
    vary::Vary,
};
use store::{Purged, Resource};

use crate::{Record, Shared, Stored, collapse::likeness, learnt::trouble::Trouble, question::Question, stale::may_stand_in};

/// The result of a lookup.
pub(crate) enum Found {
    Fresh(Arc<Stored>),
    WhileRevalidating(Arc<Stored>),
    Stale(Arc<Stored>, Stale),
    /// The client wants nothing from the origin, and what is stored will not do.
    Forbidden,
    Nothing(Forwarded),
}

/// The next thing to do for a request.
pub(crate) enum Next {
    /// Answer with what is stored; where that is stale, it is refreshed behind.
    Deliver(Arc<Stored>, Outcome),
    /// Say that nothing is stored that would do (RFC 9111 §5.2.1.7).
    OnlyIfCached,
    /// Ask the origin: whether what is stored still holds, or for the whole.
    Ask(Option<Arc<Stored>>, Forwarded),
}

/// Finds the variant for a request among what is stored under its key, and whether it may be used.
pub(crate) fn found_in(
    shared: &Shared,
    resource: Option<&Resource<Record>>,
    question: &Question,
    now: Timestamp,
    trace: &mut impl Trace,
) -> Found {
    let Some(resource) = resource else {
        trace.decides("stored", true, || "nothing under this key".to_owned());
        return Found::Nothing(Forwarded::UriMiss);
    };
    trace.notes("stored", || match resource.variants().len() {
        1 => "one variant under this key".to_owned(),
        variants => format!("{variants} variants under this key"),
    });
    let Some(stored) = resource.variants().iter().find(|stored| is_for(shared, question, &stored.record)) else {
        trace.decides("vary", true, || format!("none for what this request says in {}", nominated(resource).join(", ")));
        return Found::Nothing(Forwarded::VaryMiss);
    };
    trace.notes("vary", || "one fits the fields of this request".to_owned());
    let record = &stored.record;
    let cookie = question.carries.cookie && !record.for_cookies;
    if trace.decides("for cookies", cookie, || allowed(record, record.for_cookies, question.carries.cookie)) {
        return Found::Nothing(Forwarded::Bypass);
    }
    let authorization = question.carries.authorization && !record.for_authorization;
    if trace.decides("for authorization", authorization, || allowed(record, record.for_authorization, question.carries.authorization)) {
        return Found::Nothing(Forwarded::Bypass);
    }
    let purged = shared.store.verdict(stored);
    if trace.decides("purged", purged == Purged::Hard, || purged_name(purged).to_owned()) {
        return Found::Nothing(Forwarded::UriMiss);
    }
    if stored.body.is_damaged() {
        trace.decides("damaged", true, || "its file cannot be read".to_owned());
        return Found::Nothing(Forwarded::UriMiss);
    }
    let stored = Arc::clone(stored);
    let reuse = reuse(&question.wants.directives, &record.freshness, purged == Purged::Soft, now);
    trace.notes("reuse", || match reuse {
        Reuse::Fresh => "fresh".to_owned(),
        Reuse::WhileRevalidating => "stale, but may be served while it is validated".to_owned(),
        Reuse::AfterValidation(why) => format!("only after validation: {}", why.name()),
        Reuse::Forbidden(why) => format!("only after validation ({}), which only-if-cached forbids", why.name()),
    });
    match reuse {
        Reuse::Fresh => Found::Fresh(stored),
        Reuse::WhileRevalidating => Found::WhileRevalidating(stored),
        Reuse::AfterValidation(why) => Found::Stale(stored, why),
        Reuse::Forbidden(_) => Found::Forbidden,
    }
}

/// Whether a stored response answers requests that say what this one says.
pub(crate) fn is_for(shared: &Shared, question: &Question, record: &Record) -> bool {
    record.vary.matches(&question.fields()) && record.only_for.is_none_or(|alike| alike == likeness(shared, question))
}

/// Decides what is to be done with what was found.
pub(crate) fn next(shared: &Shared, question: &Question, found: Found, now: Timestamp) -> Next {
    match found {
        Found::Fresh(stored) => Next::Deliver(stored, Outcome::Hit),
        Found::WhileRevalidating(stored) => Next::Deliver(stored, Outcome::Updating),
        Found::Forbidden => Next::OnlyIfCached,
        Found::Stale(stored, why) if is_in_trouble(shared, question, why, now) && may_stand_in(question, &stored, now) => {
            Next::Deliver(stored, Outcome::Stale { forwarded: false })
        }
        Found::Stale(stored, why) if why.is_by_request() => Next::Ask(Some(stored), Forwarded::Request),
        Found::Stale(stored, _) => Next::Ask(Some(stored), Forwarded::Stale),
        Found::Nothing(_) if question.wants.directives.only_if_cached => Next::OnlyIfCached,
        Found::Nothing(why) => Next::Ask(None, why),
    }
}

/// Whether the origin is known to fail this request: it could not be connected to, or the page's last refresh failed.
fn is_in_trouble(shared: &Shared, question: &Question, why: Stale, now: Timestamp) -> bool {
    let page = || !why.is_by_request() && shared.trouble.at(question.hash, now) != Trouble::None;
    question.site.down.at(now) != Trouble::None || page()
}

/// Makes the request that is sent to the origin once for all who ask the same. Returns `None` if each goes alone.
pub(crate) fn shared_fetch(shared: &Shared, question: &Rc<Question>, candidate: Option<&Stored>, now: Timestamp) -> Option<Rc<Question>> {
    let fetched = if candidate.is_some() { Rc::clone(question) } else { question.to_fetch() };
    (fetched.is_shareable() && !shared.store.uncacheable(question.hash, now.as_millis())).then_some(fetched)
}

/// Names the fields by which the variants of a resource are chosen.
fn nominated(resource: &Resource<Record>) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for stored in resource.variants() {
        match &stored.record.vary {
            Vary::Star => names.push("*"),
            Vary::Nominated(fields) => names.extend(fields.iter().map(|(name, _)| name.as_str())),
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn allowed(record: &Record, allowed: bool, asked: bool) -> String {
    match (allowed, asked) {
        (true, _) => "it may answer such requests",
        (false, true) if record.freshness.source == LifetimeSource::Hold => {
            "the site's hold keeps it for longer than the origin said: that is for other requests alone"
        }
        (false, true) => "the origin did not say that it is for everybody",
        (false, false) => "it may not, and this request has none",
    }
    .to_owned()
}

pub(crate) const fn purged_name(purged: Purged) -> &'static str {
    match purged {
        Purged::No => "no",
        Purged::Soft => "soft",
        Purged::Hard => "hard",
    }
}
