//! Why answers were not kept: the last reason for each key, for whoever asks.
//!
//! Written once per fetch whose answer was not kept, never on a hit. At most [`REASONS_MAX`] keys of 48 bytes: 192 KiB. A key has [`WAYS`] places; when
//! others have them all, the oldest reason is forgotten, which costs an explanation its reason and nothing else.

use http::StatusCode;
use parking_lot::Mutex;
use policy::CookieName;
use semantics::Timestamp;
use store::KeyHash;

use crate::{Shared, failure::ErrorReason, keep::NotStored, question::Question};

/// The most keys whose last reason is remembered.
const REASONS_MAX: usize = 4_096;

/// The number of places in which a key may stand.
const WAYS: usize = 8;

/// The cause for which nothing was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An answer came, and is not stored.
    NotStored(NotStored),
    /// No answer came.
    Failed(ErrorReason),
}

impl Cause {
    /// Returns the name of the rule, without a cookie, or of the proxy error (RFC 9209 §2.3).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotStored(why) => why.rule(),
            Self::Failed(reason) => reason.name(),
        }
    }

    /// Returns what that means, in a sentence about the answer; `None`: none came.
    pub(crate) const fn words(self) -> Option<&'static str> {
        match self {
            Self::NotStored(why) => Some(why.words()),
            Self::Failed(_) => None,
        }
    }

    /// Returns the cookie that the answer sets, if that is the cause.
    pub(crate) fn cookie(self) -> Option<CookieName> {
        match self {
            Self::NotStored(why) => why.cookie(),
            Self::Failed(_) => None,
        }
    }
}

/// An answer that was not kept, or a fetch that brought none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) cause: Cause,
    /// The origin's status; none if it did not answer.
    pub(crate) status: Option<u16>,
    /// The time when the origin answered, or failed.
    pub(crate) at: Timestamp,
}

/// A slot of the table: empty, or with a key and its last reason.
type Slot = Option<(KeyHash, Reason)>;

/// The last reason of each key.
#[derive(Debug)]
pub(crate) struct NotKeptReasons(Mutex<Box<[Slot]>>);

impl Default for NotKeptReasons {
    fn default() -> Self {
        Self(Mutex::new(vec![None; REASONS_MAX].into()))
    }
}

impl NotKeptReasons {
    pub(crate) fn note(&self, key: KeyHash, reason: Reason) {
        let mut reasons = self.0.lock();
        let places = &mut reasons[of(key)];
        let place = places.iter().position(|place| is(place, key)).or_else(|| {
            let age = |at: &usize| places[*at].map(|(_, reason)| reason.at);
            (0..WAYS).min_by_key(age)
        });
        if let Some(place) = place {
            places[place] = Some((key, reason));
        }
    }

    /// Forgets why answers for a key were not kept: now one is.
    pub(crate) fn forget(&self, key: KeyHash) {
        if let Some(place) = self.0.lock()[of(key)].iter_mut().find(|place| is(place, key)) {
            *place = None;
        }
    }

    pub(crate) fn get(&self, key: KeyHash) -> Option<Reason> {
        self.0.lock()[of(key)].iter().flatten().find(|(other, _)| *other == key).map(|(_, reason)| *reason)
    }
}

/// Returns which places a key has.
fn of(key: KeyHash) -> std::ops::Range<usize> {
    let first = key.stripe(REASONS_MAX / WAYS) * WAYS;
    first..first + WAYS
}

fn is(place: &Slot, key: KeyHash) -> bool {
    place.as_ref().is_some_and(|(other, _)| *other == key)
}

/// Remembers, for an operator who asks why, that nothing came of a lookup.
pub(crate) fn remember(shared: &Shared, question: &Question, cause: Cause, status: Option<StatusCode>, at: Timestamp) {
    // A request that passes has no key.
    if !question.key.is_empty() {
        shared.not_kept.note(question.hash, Reason { cause, status: status.map(|status| status.as_u16()), at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn the_last_reason_of_each_key_is_remembered_within_a_bound() {
        let shared = Shared::new(store::StoreOptions::with_memory(1 << 20), Clock::system());
        let key = |n: usize| shared.store.hash(n.to_string().as_bytes());
        let reason = |why, n: usize| Reason { cause: Cause::NotStored(why), status: Some(200), at: Timestamp::from_secs(n as u64) };
        let reasons = NotKeptReasons::default();
        assert_eq!(reasons.get(key(0)), None);
        reasons.note(key(0), reason(NotStored::Unproven, 0));
        reasons.note(key(0), reason(NotStored::TooLarge, 1));
        assert_eq!(reasons.get(key(0)), Some(reason(NotStored::TooLarge, 1)));
        reasons.forget(key(0));
        assert_eq!(reasons.get(key(0)), None);
        let last = 8 * REASONS_MAX;
        for n in 0..=last {
            reasons.note(key(n), reason(NotStored::Unproven, n));
        }
        let left = (0..=last).filter(|n| reasons.get(key(*n)).is_some()).count();
        assert_eq!(left, REASONS_MAX, "all places are taken, and no more");
        assert_eq!((reasons.get(key(0)), reasons.get(key(last))), (None, Some(reason(NotStored::Unproven, last))));
    }
}
