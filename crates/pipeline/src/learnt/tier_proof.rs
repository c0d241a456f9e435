//! Whether members of one tier get the same page: what a member was answered, until another one was answered the same.
//!
//! Ghost says for which tier it has made a page, but a theme may still greet the reader by name. So a page is stored for a tier only after two
//! different members were answered with the same bytes, with no purge in between; and where two were answered differently, it is nobody else's
//! for a while. There is a difference that means nothing: the first time that Ghost renders a post, it names another size of the post's picture
//! than ever after. So if the first of the two asks again and is answered as the second one was, both have the same page after all. It is written once
//! per answer to a member that is not stored yet, never on a hit. At most [`PAGES_MAX`] pages of some 110 bytes: 0.5 MiB.
//! When there are more, the oldest is forgotten, which costs its members one more request to the origin.
//!
//! A signature says what Ghost once told a browser. In Ghost 6.65 it is wrong for members with a complimentary or gifted tier: "who am I?" hands them
//! the cookie of the free tier, and with it they would get the free tier's pages. So each member's first request in an hour goes to the origin, and
//! only who was answered for the tier of the cookie is answered from the store. At most [`MEMBERS_MAX`] members of some 24 bytes: 1.5 MiB; when there
//! are more, the older half is asked about again. What comes back for such a request also tells whether the stored page is right for one member
//! more.
//!
//! No session is kept here, only a number made of it with a secret of this process.

use std::{collections::HashMap, hash::BuildHasher, sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use policy::{Member, answer_digest};
use semantics::Timestamp;
use store::{Generation, KeyHash, Scope};

use crate::{Shared, Stored, packed::is_content_of, question::Question};

/// The pages of tiers that are remembered.
const PAGES_MAX: usize = 4_096;

/// The time for which an answer waits for another member's.
const ANSWER_KEPT: Duration = Duration::from_secs(600);

/// The time for which a page is left alone that two members were answered differently.
const PERSONAL: Duration = Duration::from_secs(600);

/// The members whose tier is remembered as the origin's own word.
const MEMBERS_MAX: usize = 65_536;

/// The time for which the origin's word on a member's tier holds: that of Ghost's own cookie.
const CONFIRMED: Duration = Duration::from_secs(3_600);

/// The members whom the origin has answered for the tier of their cookie, by number, and when that was.
#[derive(Debug, Default)]
pub(crate) struct ConfirmedMembers(Mutex<HashMap<u64, Timestamp>>);

impl ConfirmedMembers {
    fn note(&self, member: u64, now: Timestamp) {
        let mut members = self.0.lock();
        if members.len() >= MEMBERS_MAX && !members.contains_key(&member) {
            let mut times: Vec<Timestamp> = members.values().copied().collect();
            let middle = *times.select_nth_unstable(MEMBERS_MAX / 2).1;
            members.retain(|_, at| *at > middle);
        }
        members.insert(member, now);
    }

    fn forget(&self, member: u64) {
        self.0.lock().remove(&member);
    }

    fn have(&self, member: u64, now: Timestamp) -> bool {
        self.0.lock().get(&member).is_some_and(|at| now.since(*at) < CONFIRMED)
    }
}

/// Returns whether the origin has answered this member for the tier of the cookie within the last hour.
pub(crate) fn is_confirmed(shared: &Shared, member: &Member, now: Timestamp) -> bool {
    shared.confirmed_members.have(number_with_tier(shared, member), now)
}

/// Learns from an answer to a member whether the tier of the cookie is the member's.
pub(crate) fn confirm(shared: &Shared, member: &Member, status: StatusCode, headers: &HeaderMap, now: Timestamp) {
    let number = number_with_tier(shared, member);
    // A redirect or an error says nothing of tiers.
    match status {
        StatusCode::OK | StatusCode::NOT_MODIFIED if member.is_of_tier(headers) => shared.confirmed_members.note(number, now),
        StatusCode::OK | StatusCode::NOT_MODIFIED => shared.confirmed_members.forget(number),
        _ => {}
    }
}

fn number_with_tier(shared: &Shared, member: &Member) -> u64 {
    shared.secret.hash_one((member.session(), member.tier()))
}

/// The knowledge of a page of a tier that is not stored.
#[derive(Debug, Clone, Copy)]
struct Page {
    at: Timestamp,
    known: MemberAnswers,
}

#[derive(Debug, Clone, Copy)]
enum MemberAnswers {
    /// One member was answered so.
    Answered { member: u64, digest: [u8; 32], begun: Generation },
    /// Two members were answered differently: this one first, and another one so.
    Differed { first: u64, digest: [u8; 32], begun: Generation },
    /// The page names its reader.
    Personal,
}

impl Page {
    fn is_over(&self, now: Timestamp) -> bool {
        let kept = match self.known {
            MemberAnswers::Answered { .. } => ANSWER_KEPT,
            MemberAnswers::Differed { .. } | MemberAnswers::Personal => PERSONAL,
        };
        now.since(self.at) >= kept
    }
}

/// The pages of tiers that are not proven to be the same for all members.
#[derive(Debug, Default)]
pub(crate) struct TierProofs(Mutex<HashMap<KeyHash, Page>>);

impl TierProofs {
    /// Returns whether members were answered differently a while ago, and the answer to the member of this number can tell nothing more.
    fn is_personal(&self, key: KeyHash, member: u64, now: Timestamp) -> bool {
        self.0.lock().get(&key).filter(|page| !page.is_over(now)).is_some_and(|page| match page.known {
            MemberAnswers::Answered { .. } => false,
            MemberAnswers::Differed { first, .. } => first != member,
            MemberAnswers::Personal => true,
        })
    }

    fn note(&self, key: KeyHash, page: Page) {
        let mut pages = self.0.lock();
        if pages.len() >= PAGES_MAX && !pages.contains_key(&key) {
            pages.retain(|_, known| !known.is_over(page.at));
            let oldest = pages.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| *key);
            if let Some(oldest) = oldest.filter(|_| pages.len() >= PAGES_MAX) {
                pages.remove(&oldest);
            }
        }
        pages.insert(key, page);
    }

    fn take(&self, key: KeyHash) -> Option<Page> {
        self.0.lock().remove(&key)
    }
}

/// Returns whether the answer to this member, which is still to come, will be nobody else's.
pub(crate) fn is_personal(shared: &Shared, question: &Question, member: &Member, now: Timestamp) -> bool {
    shared.tier_proofs.is_personal(question.hash, number_of(shared, member), now)
}

/// Returns the number by which a member is remembered.
fn number_of(shared: &Shared, member: &Member) -> u64 {
    shared.secret.hash_one(member.session())
}

/// An answer to a member, whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberAnswer<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    /// The generation at which it was asked for.
    pub(crate) begun: Generation,
    pub(crate) scope: &'a Scope,
}

/// Returns whether the answer to a member is that of all members of the tier, as another one was answered the same. Otherwise it is
/// remembered for the next.
pub(crate) fn is_proven(shared: &Shared, question: &Question, member: &Member, answered: MemberAnswer<'_>) -> bool {
    let (now, proofs, key) = (shared.clock.now(), &shared.tier_proofs, question.hash);
    let MemberAnswer { headers, body, begun, scope } = answered;
    // What was purged meanwhile proves nothing about what is there now.
    if shared.store.is_purged(scope, begun) {
        return false;
    }
    if member.is_named_in(headers, body) {
        proofs.note(key, Page { at: now, known: MemberAnswers::Personal });
        return false;
    }
    // A page that is stored was proven. It is the same for one member more, or it never was for all.
    if let Some(stored) = current(shared, question, now) {
        // What lies in a file is left as it is.
        let Some(is_same) = is_content_of(&stored, body) else { return false };
        if !is_same {
            proofs.note(key, Page { at: now, known: MemberAnswers::Personal });
            shared.store.remove(key, &question.key);
        }
        return is_same;
    }
    let (number, digest) = (number_of(shared, member), answer_digest(headers, body));
    let is_current = |before: Generation| !shared.store.is_purged(scope, before);
    let known = match proofs.take(key).filter(|page| !page.is_over(now)).map(|page| page.known) {
        Some(MemberAnswers::Answered { member: other, digest: others, begun: before }) if other != number && is_current(before) => {
            if others == digest {
                return true;
            }
            MemberAnswers::Differed { first: other, digest, begun }
        }
        Some(MemberAnswers::Differed { first, digest: others, begun: before }) if is_current(before) => {
            if first == number && others == digest {
                return true;
            }
            MemberAnswers::Differed { first, digest: others, begun: before }
        }
        Some(MemberAnswers::Personal) => MemberAnswers::Personal,
        // Nobody else was answered, or something else was there then.
        Some(MemberAnswers::Answered { .. } | MemberAnswers::Differed { .. }) | None => {
            MemberAnswers::Answered { member: number, digest, begun }
        }
    };
    proofs.note(key, Page { at: now, known });
    false
}

/// Returns what is stored for a member's question, and was neither purged nor has expired. What is in doubt says nothing about the page.
fn current(shared: &Shared, question: &Question, now: Timestamp) -> Option<Arc<Stored>> {
    let resource = shared.store.peek(question.hash, &question.key)?;
    let fields = question.fields();
    let is_current = |stored: &&Arc<Stored>| {
        stored.record.vary.matches(&fields) && shared.is_current(stored, now) && stored.record.freshness.is_fresh(now)
    };
    resource.variants().iter().find(is_current).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn a_member_is_asked_about_once_an_hour_and_so_many_are_remembered() {
        let members = ConfirmedMembers::default();
        let at = |n: usize| Timestamp::from_millis(1_000_000 + n as u64);
        for n in 0..=MEMBERS_MAX {
            members.note(n as u64, at(n));
        }
        assert!(members.0.lock().len() <= MEMBERS_MAX / 2);
        assert_eq!([0, MEMBERS_MAX].map(|n| members.have(n as u64, at(n))), [false, true]);
        assert!(!members.have(MEMBERS_MAX as u64, at(MEMBERS_MAX) + CONFIRMED));
        members.forget(MEMBERS_MAX as u64);
        assert!(!members.have(MEMBERS_MAX as u64, at(MEMBERS_MAX)));
    }

    #[test]
    fn so_many_pages_are_remembered_and_the_oldest_goes_first() {
        let shared = Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system());
        let key = |n: usize| shared.store.hash(n.to_string().as_bytes());
        let proofs = TierProofs::default();
        let at = |n: usize| Timestamp::from_millis(1_000_000 + n as u64);
        for n in 0..=PAGES_MAX {
            proofs.note(key(n), Page { at: at(n), known: MemberAnswers::Personal });
        }
        let is_known = |n| proofs.is_personal(key(n), 0, at(n));
        assert_eq!(proofs.0.lock().len(), PAGES_MAX);
        assert_eq!([0, 1, PAGES_MAX].map(is_known), [false, true, true]);
        assert!(!proofs.is_personal(key(PAGES_MAX), 0, at(PAGES_MAX) + PERSONAL), "for ten minutes");
    }
}
