//! Digests of contents: entity tags, addresses that change with their content, and what tells whether a page has to be made again.

use std::hash::{Hash, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

/// Returns a digest of `content`, as 32 hexadecimal digits. The same bytes have the same digest on every machine, so that restarts and
/// replicas do not invalidate readers' caches.
pub(crate) fn digest(content: &[u8]) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(content);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Returns a digest of a value: two values that differ have different ones. It holds within one process, as [`Hash`] promises no more.
pub(crate) fn fingerprint(value: &impl Hash) -> u128 {
    let mut hasher = SipHasher13::new();
    value.hash(&mut hasher);
    hasher.finish128().as_u128()
}

/// Returns a strong entity tag of `content`, with its quotes (RFC 9110 §8.8.3).
pub(crate) fn entity_tag(content: &[u8]) -> String {
    format!("\"{}\"", digest(content))
}
