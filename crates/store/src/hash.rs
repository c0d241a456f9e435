//! Hashes with a secret: keys come from strangers, who must not be able to choose their bucket.
//!
//! 128 bits, so that two keys never meet by chance; the full key is compared all the same ([`Store::get`](crate::Store::get)). A table
//! that holds such a hash needs no second hashing, see [`AsIs`].

use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher13};

/// The secret 128-bit hash of a cache key. It finds the bucket, and never decides alone. It means nothing to another store; without a disk
/// tier, which keeps the secret, it means nothing after a restart either.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct KeyHash(u64, u64);

/// The secret of one store, for SipHash-1-3 with a 128-bit result.
#[derive(Clone, Copy)]
pub(crate) struct Secret {
    empty: SipHasher13,
}

impl Secret {
    /// Draws a secret from the entropy behind [`RandomState`]: its keys come from the operating system, and a keyed hash of a constant
    /// reveals them no more than any other of its outputs.
    pub(crate) fn new() -> Self {
        Self::of(Self::draw())
    }

    /// Returns two words that nobody can guess, to be stored with the hashes.
    pub(crate) fn draw() -> [u64; 2] {
        let word = |nonce: u64| RandomState::new().hash_one(nonce);
        [word(1), word(2)]
    }

    /// Returns the secret that these words stand for.
    pub(crate) fn of(words: [u64; 2]) -> Self {
        Self { empty: SipHasher13::new_with_keys(words[0], words[1]) }
    }

    /// Returns the hash of a cache key.
    pub(crate) fn key(&self, key: &[u8]) -> KeyHash {
        finish(self.empty.hash(key))
    }

    /// Returns the name of a URL or tag of a site. The kind and the site come first, with a fixed length, so two names never read the same.
    pub(crate) fn name(&self, kind: u8, site: u16, name: &[u8]) -> KeyHash {
        let mut hasher = self.empty;
        let [low, high] = site.to_le_bytes();
        hasher.write(&[kind, low, high]);
        hasher.write(name);
        finish(hasher.finish128())
    }
}

fn finish(hash: siphasher::sip128::Hash128) -> KeyHash {
    let (first, second) = hash.as_u64();
    KeyHash(first, second)
}

impl KeyHash {
    /// Returns the hash as two words, to be written down beside the secret that made it.
    pub(crate) const fn words(self) -> (u64, u64) {
        (self.0, self.1)
    }

    /// Returns the hash that [`words`](Self::words) turned into these words.
    pub(crate) const fn from_words(first: u64, second: u64) -> Self {
        Self(first, second)
    }

    /// Returns which of `count` stripes this hash belongs to.
    #[must_use]
    pub fn stripe(self, count: usize) -> usize {
        usize::try_from(self.0 % count as u64).expect("a remainder is below a usize")
    }

    /// Returns a short mark of this hash, never zero. Two keys may have the same mark.
    pub(crate) fn mark(self) -> u32 {
        u32::try_from(self.1 >> 32).unwrap_or_default() | 1
    }
}

/// A hasher for tables whose keys are secret hashes already: it uses the last word as it is.
#[derive(Debug, Default, Clone, Copy)]
pub struct AsIsHasher(u64);

/// The builder of [`AsIsHasher`], for a table by [`KeyHash`].
pub type AsIs = BuildHasherDefault<AsIsHasher>;

impl Hasher for AsIsHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    /// Mixes bytes in. [`KeyHash`] is two words, so this is not called, but a `Hasher` must accept bytes.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_do_not_share_a_secret() {
        assert_ne!(Secret::new().key(b"/"), Secret::new().key(b"/"));
    }

    #[test]
    fn a_name_depends_on_kind_site_and_bytes() {
        let secret = Secret::new();
        let one = secret.name(0, 1, b"a");
        for (kind, site, name) in [(1, 1, &b"a"[..]), (0, 2, b"a"), (0, 0x100, b"a"), (0, 1, b""), (0, 1, b"ab")] {
            assert_ne!(one, secret.name(kind, site, name), "{kind} {site} {name:?}");
        }
        assert_eq!(one, secret.name(0, 1, b"a"));
    }
}
