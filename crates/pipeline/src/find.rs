//! The finding of what is stored for a request, and whether it may be used.

use std::{sync::Arc, time::Duration};

use policy::{Silent, TIER_RULE, Trace};
use semantics::{
    Timestamp,
    cache_status::Forwarded,
    freshness::LifetimeSource,
    reuse::{Reuse, SoftPurge, Stale, reuse},
    vary::Vary,
};
use store::Purged;

use crate::{Record, Resource, Shared, Stored, collapse::ErrorScope, learnt::tier_proof, parts, question::Question};

/// The time for which a request waits for the disk before it goes to the origin. A disk that is slower than this is slower than most origins.
const DISK_WAIT: Duration = Duration::from_secs(2);

/// The result of a lookup.
pub(crate) enum LookupResult {
    Fresh(Arc<Stored>),
    WhileRevalidating(Arc<Stored>),
    Stale(Arc<Stored>, Stale),
    /// The client wants nothing from the origin, and what is stored will not do.
    Forbidden,
    /// Nothing is stored that would do.
    Nothing(Forwarded, AskReason),
}

/// The reason why the origin is asked: what is missing, or what is against the stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskReason {
    /// Nothing is stored yet.
    Cold,
    /// The stored response cannot be read.
    Damaged,
    /// The stored variants are for other fields.
    Vary,
    /// The stored response is not for requests with cookies.
    ForCookies,
    /// The stored response is not for requests with `Authorization`.
    ForAuthorization,
    /// The stored response is stale.
    Stale(Stale),
}

impl AskReason {
    /// Returns the name of the reason, as the log and the counters have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Damaged => "damaged",
            Self::Vary => "vary",
            Self::ForCookies => "for cookies",
            Self::ForAuthorization => "for authorization",
            Self::Stale(why) => why.name(),
        }
    }
}

/// Finds what is stored for a request, in memory and then on the disk, and returns when that was. A disk that does not answer in time has nothing.
pub(crate) async fn find(shared: &Shared, question: &Question) -> (LookupResult, Timestamp) {
    let now = shared.clock.now();
    match find_in_memory(shared, question, now) {
        LookupResult::Nothing(..) if shared.store.may_be_on_disk(question.hash) => {
            let load = shared.store.load(question.hash, &question.key);
            let resource = tokio::time::timeout(DISK_WAIT, load).await.ok().flatten();
            // Meanwhile a lifetime or a lease may have ended.
            let now = shared.clock.now();
            (find_in(shared, resource.as_deref(), question, now), now)
        }
        found => (found, now),
    }
}

/// Finds what is stored for a request in memory.
pub(crate) fn find_in_memory(shared: &Shared, question: &Question, now: Timestamp) -> LookupResult {
    find_in(shared, shared.store.get(question.hash, &question.key).as_deref(), question, now)
}

/// Finds the variant for a request, or the stored part that it asks for.
fn find_in(shared: &Shared, resource: Option<&Resource>, question: &Question, now: Timestamp) -> LookupResult {
    match found_in(shared, resource, question, now, &mut Silent) {
        found @ LookupResult::Nothing(Forwarded::UriMiss | Forwarded::VaryMiss, _) => {
            parts::part(shared, question, now).map_or(found, LookupResult::Fresh)
        }
        found => found,
    }
}

/// Finds the variant for a request among what is stored under its key, and whether it may be used.
pub(crate) fn found_in(
    shared: &Shared,
    resource: Option<&Resource>,
    question: &Question,
    now: Timestamp,
    trace: &mut impl Trace,
) -> LookupResult {
    let Some(resource) = resource else {
        trace.decides("stored", true, || "nothing under this key".to_owned());
        return LookupResult::Nothing(Forwarded::UriMiss, AskReason::Cold);
    };
    trace.notes("stored", || match resource.variants().len() {
        1 => "one variant under this key".to_owned(),
        variants => format!("{variants} variants under this key"),
    });
    let Some(stored) = resource.variants().iter().find(|stored| is_for(shared, question, &stored.record)) else {
        trace.decides(AskReason::Vary.name(), true, || format!("none for what this request says in {}", nominated(resource).join(", ")));
        return LookupResult::Nothing(Forwarded::VaryMiss, AskReason::Vary);
    };
    trace.notes(AskReason::Vary.name(), || "one fits the fields of this request".to_owned());
    let record = &stored.record;
    let cookie = question.carries.cookie && !record.for_cookies;
    let for_cookies = || match &question.member {
        Some(_) => "the tier, which the member's cookies have proved, is part of the key".to_owned(),
        None => allowed(record, record.for_cookies, question.carries.cookie, "a cookie that may change the page"),
    };
    if trace.decides(AskReason::ForCookies.name(), cookie, for_cookies) {
        return LookupResult::Nothing(Forwarded::Bypass, AskReason::ForCookies);
    }
    let authorization = question.carries.authorization && !record.for_authorization;
    if trace.decides(AskReason::ForAuthorization.name(), authorization, || {
        allowed(record, record.for_authorization, question.carries.authorization, "one")
    }) {
        return LookupResult::Nothing(Forwarded::Bypass, AskReason::ForAuthorization);
    }
    // The fence is asked first: a lease rests on purges that were carried out before.
    let is_shown = shared.fence.shows(now, record.freshness.request_time);
    let purged = shared.store.verdict(stored);
    if trace.decides("purged", purged == Purged::Hard, || purged_in_words(shared, question, purged, now)) {
        return LookupResult::Nothing(Forwarded::UriMiss, AskReason::Stale(Stale::Purged));
    }
    if stored.body.is_damaged() {
        trace.decides(AskReason::Damaged.name(), true, || "its file cannot be read".to_owned());
        return LookupResult::Nothing(Forwarded::UriMiss, AskReason::Damaged);
    }
    let stored = Arc::clone(stored);
    let purge = match purged {
        Purged::Soft if question.site.policy.shows_what_was_purged() => SoftPurge::Shown,
        Purged::Soft => SoftPurge::Withheld,
        Purged::No | Purged::Doubted | Purged::Hard => SoftPurge::None,
    };
    let mut reuse = reuse(&question.wants.directives, &record.freshness, purge, now);
    // Nobody but a member can refresh what members share.
    if reuse == Reuse::WhileRevalidating && question.member.is_some() {
        reuse = Reuse::AfterValidation(if purged == Purged::Soft { Stale::Purged } else { Stale::Expired });
    }
    let unconfirmed = question.member.as_ref().is_some_and(|member| !tier_proof::is_confirmed(shared, member, now));
    if unconfirmed && reuse == Reuse::Fresh {
        trace.notes(TIER_RULE, || "the origin has not said in the last hour that the member is of this tier".to_owned());
        reuse = Reuse::AfterValidation(Stale::Expired);
    }
    // A soft purge says that a page is old, and a doubt that it may have to be hidden: so a doubt counts beneath it, too.
    let is_doubted = purged == Purged::Doubted || purged == Purged::Soft && shared.store.is_doubted(&stored);
    if shared.fence.is_joined() || is_doubted {
        trace.notes("in doubt", || doubted_in_words(is_shown, shared.fence.holds(now), is_doubted).to_owned());
        if !is_shown || is_doubted {
            reuse = reuse.in_doubt(&question.wants.directives);
        }
    }
    trace.notes("reuse", || match reuse {
        Reuse::Fresh => "fresh".to_owned(),
        Reuse::WhileRevalidating => "stale, but may be served while it is validated".to_owned(),
        Reuse::AfterValidation(why) => format!("only after validation: {}", why.name()),
        Reuse::Forbidden(why) => format!("only after validation ({}), which only-if-cached forbids", why.name()),
    });
    match reuse {
        Reuse::Fresh => LookupResult::Fresh(stored),
        Reuse::WhileRevalidating => LookupResult::WhileRevalidating(stored),
        Reuse::AfterValidation(why) => LookupResult::Stale(stored, why),
        Reuse::Forbidden(_) => LookupResult::Forbidden,
    }
}

/// Returns whether a stored response fits the fields of this request.
pub(crate) fn is_for(shared: &Shared, question: &Question, record: &Record) -> bool {
    question.is_answered_by(&record.vary) && record.only_for.is_none_or(|scope| scope == ErrorScope::of(shared, question))
}

/// Names the fields by which the variants of a resource are chosen.
fn nominated(resource: &Resource) -> Vec<&str> {
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

fn allowed(record: &Record, allowed: bool, asked: bool, sign: &str) -> String {
    match (allowed, asked) {
        (true, _) => "it may answer such requests",
        (false, true) if record.freshness.source == LifetimeSource::Hold => {
            "the site's hold keeps it for longer than the origin said: that is for other requests alone"
        }
        (false, true) => "the origin did not say that it is for everybody",
        (false, false) => return format!("it may not answer requests with {sign}, but this request has none"),
    }
    .to_owned()
}

/// Says whether other machines may have purged a response.
const fn doubted_in_words(is_shown: bool, has_lease: bool, is_doubted: bool) -> &'static str {
    match (is_shown, has_lease, is_doubted) {
        (_, _, true) => "it was stored before this machine had missed purges, or may have; it has not been validated since",
        (false, ..) => "this machine has no lease of its cluster: another one may have purged it",
        (true, false, _) => "this machine has no lease of its cluster, but the origin was asked a moment ago",
        (true, true, _) => "no: this machine has a lease of its cluster",
    }
}

/// Says whether a response was purged, and where its origin tells of changes, when and how it did so last.
fn purged_in_words(shared: &Shared, question: &Question, purged: Purged, now: Timestamp) -> String {
    let told = shared.signalled.of(&question.site.name);
    match told.last().filter(|_| purged != Purged::No) {
        Some((by, last)) => {
            format!(
                "{}; last word of the origin: {}, by {}, {} s ago",
                purged_name(purged),
                last.covered,
                by.name(),
                now.since(last.at).as_secs()
            )
        }
        None => purged_name(purged).to_owned(),
    }
}

const fn purged_name(purged: Purged) -> &'static str {
    match purged {
        Purged::No => "no",
        Purged::Doubted => "in doubt",
        Purged::Soft => "soft",
        Purged::Hard => "hard",
    }
}
