//! Hashes with a secret: names come from strangers, who must not be able to choose their cells and places.

use std::hash::{BuildHasher as _, RandomState};

use siphasher::sip::SipHasher13;

/// The secret of one process. A hash means nothing after a restart.
#[derive(Debug)]
pub(crate) struct Keys(SipHasher13);

impl Keys {
    /// Draws a secret from the entropy behind [`RandomState`], whose keys come from the operating system.
    pub(crate) fn new() -> Self {
        let word = |nonce: u64| RandomState::new().hash_one(nonce);
        Self(SipHasher13::new_with_keys(word(1), word(2)))
    }

    /// Returns the hash of a name. All of it is at hand, which costs half as much as a hasher that is fed in parts.
    pub(crate) fn hash(&self, name: &str) -> u64 {
        self.0.hash(name.as_bytes())
    }
}
