//! Why answers were not kept: the last reason for each key, for whoever asks.
//!
//! Written once per fetch whose answer was not kept, never on a hit. At most [`REFUSALS_MAX`] keys of 72 bytes: 0.3 MiB. When there are
//! more, the older half is forgotten, which costs an explanation its reason and nothing else.

use std::collections::HashMap;

use http::StatusCode;
use parking_lot::Mutex;
use semantics::Timestamp;
use store::KeyHash;

use crate::{Shared, question::Question};

/// Keys whose last refusal is remembered.
const REFUSALS_MAX: usize = 4_096;

/// An answer that was not kept, or a fetch that brought none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The name of the rule against it, or of the proxy error (RFC 9209 §2.3).
    pub(crate) reason: &'static str,
    /// The origin's status; none if it did not answer.
    pub(crate) status: Option<u16>,
    /// The time when the origin answered, or failed.
    pub(crate) at: Timestamp,
}

/// The last refusal of each key.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<KeyHash, Refusal>>);

impl Refusals {
    pub(crate) fn note(&self, key: KeyHash, refusal: Refusal) {
        let mut refusals = self.0.lock();
        if refusals.len() >= REFUSALS_MAX && !refusals.contains_key(&key) {
            let mut times: Vec<Timestamp> = refusals.values().map(|refusal| refusal.at).collect();
            let middle = *times.select_nth_unstable(REFUSALS_MAX / 2).1;
            refusals.retain(|_, refusal| refusal.at > middle);
        }
        refusals.insert(key, refusal);
    }

    /// Forgets why answers for a key were not kept: now one is.
    pub(crate) fn forget(&self, key: KeyHash) {
        self.0.lock().remove(&key);
    }

    pub(crate) fn get(&self, key: KeyHash) -> Option<Refusal> {
        self.0.lock().get(&key).copied()
    }
}

/// Remembers, for an operator who asks why, that nothing came of a lookup.
pub(crate) fn remember(shared: &Shared, question: &Question, reason: &'static str, status: Option<StatusCode>, at: Timestamp) {
    // A request that passes has no key.
    if !question.key.is_empty() {
        shared.refusals.note(question.hash, Refusal { reason, status: status.map(|status| status.as_u16()), at });
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
        let refusal = |reason, n: usize| Refusal { reason, status: Some(200), at: Timestamp::from_secs(n as u64) };
        let refusals = Refusals::default();
        assert_eq!(refusals.get(key(0)), None);
        refusals.note(key(0), refusal("private", 0));
        refusals.note(key(0), refusal("set-cookie", 1));
        assert_eq!(refusals.get(key(0)), Some(refusal("set-cookie", 1)));
        refusals.forget(key(0));
        assert_eq!(refusals.get(key(0)), None);
        for n in 0..=REFUSALS_MAX {
            refusals.note(key(n), refusal("private", n));
        }
        assert!(refusals.0.lock().len() <= REFUSALS_MAX);
        assert_eq!((refusals.get(key(0)), refusals.get(key(REFUSALS_MAX)).is_some()), (None, true));
    }
}
