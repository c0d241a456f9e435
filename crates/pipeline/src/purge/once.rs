//! Signatures that have counted. Whoever has overheard a signed message may send it again as long as its time is accepted; it counts once.
//! Older Ghosts do not sign the time: with another time, the same message counts again.
//!
//! Each machine knows those that it has seen itself, and forgets them when it ends.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use semantics::Timestamp;

/// The most signatures that are remembered; beyond that, those are forgotten whose time is oldest. Only who knows the secret makes new ones. Some 1 MiB.
const SIGNATURES_MAX: usize = 16 << 10;

/// A signature that was used. Its order is that of the time until which it is accepted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UsedSignature {
    until: Timestamp,
    hash: [u8; 32],
}

/// The signatures that were used, sorted by the time until which they are accepted.
#[derive(Debug, Default)]
pub(super) struct UsedSignatures(Mutex<BTreeSet<UsedSignature>>);

impl UsedSignatures {
    /// Returns whether this is the first message whose signature has this hash, and is accepted `until` then.
    pub(super) fn is_first(&self, hash: [u8; 32], until: Timestamp, now: Timestamp) -> bool {
        let mut used = self.0.lock();
        while used.first().is_some_and(|oldest| oldest.until < now) {
            used.pop_first();
        }
        let is_first = used.insert(UsedSignature { until, hash });
        if used.len() > SIGNATURES_MAX {
            used.pop_first();
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn a_signature_counts_once_for_as_long_as_its_time_is_accepted() {
        let once = UsedSignatures::default();
        let is_first = |signature, now| once.is_first([signature; 32], at(1_300), at(now));
        assert!(is_first(1, 1_000) && is_first(2, 1_000));
        assert!(!is_first(1, 1_000) && !is_first(1, 1_300) && !is_first(2, 1_300));
    }

    #[test]
    fn what_is_not_accepted_any_more_is_forgotten() {
        let once = UsedSignatures::default();
        (0..100).for_each(|n| assert!(once.is_first([n; 32], at(1_300 + u64::from(n)), at(1_100))));
        assert_eq!(once.0.lock().len(), 100);
        assert!(once.is_first([200; 32], at(1_700), at(1_400)));
        assert_eq!(once.0.lock().len(), 1);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for_and_the_oldest_go_first() {
        let once = UsedSignatures::default();
        let signature = |n: u16| {
            let mut bytes = [0; 32];
            bytes[..2].copy_from_slice(&n.to_be_bytes());
            bytes
        };
        let is_first = |n: u16| once.is_first(signature(n), at(1_000 + u64::from(n)), at(1_000));
        let last = u16::try_from(SIGNATURES_MAX).expect("a small number");
        assert!((0..=last).all(is_first));
        assert_eq!(once.0.lock().len(), SIGNATURES_MAX);
        assert!(!is_first(1) && !is_first(last));
        assert!(is_first(0));
    }
}
