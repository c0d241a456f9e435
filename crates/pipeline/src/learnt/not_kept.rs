//! Why answers were not kept: the last reason for each key, for whoever asks.
//!
//! Written once per fetch whose answer was not kept, never on a hit. At most [`REASONS_MAX`] keys of 72 bytes: 0.3 MiB. When there are
//! more, the older half is forgotten, which costs an explanation its reason and nothing else.

use std::collections::HashMap;

use http::StatusCode;
use parking_lot::Mutex;
use semantics::Timestamp;
use store::{AsIs, KeyHash};

use crate::{Shared, question::Question};

/// Keys whose last reason is remembered.
const REASONS_MAX: usize = 4_096;

/// An answer that was not kept, or a fetch that brought none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason {
    /// The name of the rule against it, or of the proxy error (RFC 9209 §2.3).
    pub(crate) rule: &'static str,
    /// The origin's status; none if it did not answer.
    pub(crate) status: Option<u16>,
    /// The time when the origin answered, or failed.
    pub(crate) at: Timestamp,
}

/// The last reason of each key.
#[derive(Debug, Default)]
pub(crate) struct Reasons(Mutex<HashMap<KeyHash, Reason, AsIs>>);

impl Reasons {
    pub(crate) fn note(&self, key: KeyHash, reason: Reason) {
        let mut reasons = self.0.lock();
        if reasons.len() >= REASONS_MAX && !reasons.contains_key(&key) {
            let mut times: Vec<Timestamp> = reasons.values().map(|reason| reason.at).collect();
            let middle = *times.select_nth_unstable(REASONS_MAX / 2).1;
            reasons.retain(|_, reason| reason.at > middle);
        }
        reasons.insert(key, reason);
    }

    /// Forgets why answers for a key were not kept: now one is.
    pub(crate) fn forget(&self, key: KeyHash) {
        self.0.lock().remove(&key);
    }

    pub(crate) fn get(&self, key: KeyHash) -> Option<Reason> {
        self.0.lock().get(&key).copied()
    }
}

/// Remembers, for an operator who asks why, that nothing came of a lookup.
pub(crate) fn remember(shared: &Shared, question: &Question, reason: &'static str, status: Option<StatusCode>, at: Timestamp) {
    // A request that passes has no key.
    if !question.key.is_empty() {
        shared.not_kept.note(question.hash, Reason { rule: reason, status: status.map(|status| status.as_u16()), at });
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
        let reason = |rule, n: usize| Reason { rule, status: Some(200), at: Timestamp::from_secs(n as u64) };
        let reasons = Reasons::default();
        assert_eq!(reasons.get(key(0)), None);
        reasons.note(key(0), reason("private", 0));
        reasons.note(key(0), reason("set-cookie", 1));
        assert_eq!(reasons.get(key(0)), Some(reason("set-cookie", 1)));
        reasons.forget(key(0));
        assert_eq!(reasons.get(key(0)), None);
        for n in 0..=REASONS_MAX {
            reasons.note(key(n), reason("private", n));
        }
        assert!(reasons.0.lock().len() <= REASONS_MAX);
        assert_eq!((reasons.get(key(0)), reasons.get(key(REASONS_MAX)).is_some()), (None, true));
    }
}
