//! Which credentials were right, so that a hash that takes a tenth of a second is computed once and not for every picture of a page.
//!
//! What is remembered is a keyed digest of name, password and stored hash: it says nothing without the key, which is made anew in each
//! process, and it is worth nothing once the hash in the file is another.

use std::collections::{HashSet, VecDeque};

use aws_lc_rs::{
    hmac::{HMAC_SHA256, Key, sign},
    rand::SystemRandom,
};

use crate::{Credentials, hash::Hash};

/// The most credentials that are remembered, the newest; 64 KiB with their places.
const REMEMBERED_MAX: usize = 1024;

type Digest = [u8; 32];

/// The credentials that were right for one file.
#[derive(Debug)]
pub(crate) struct Memo {
    key: Key,
    digests: HashSet<Digest>,
    order: VecDeque<Digest>,
}

impl Memo {
    /// Creates an empty memo. Returns `None` if the system has no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new()).ok()?;
        Some(Self { key, digests: HashSet::new(), order: VecDeque::new() })
    }

    pub(crate) fn has(&self, credentials: &Credentials, hash: &Hash) -> bool {
        self.digests.contains(&self.digest(credentials, hash))
    }

    pub(crate) fn remember(&mut self, credentials: &Credentials, hash: &Hash) {
        let digest = self.digest(credentials, hash);
        if !self.digests.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.digests.remove(&oldest);
        }
    }

    fn digest(&self, credentials: &Credentials, hash: &Hash) -> Digest {
        let mut text = Vec::with_capacity(256);
        for part in [credentials.user().as_bytes(), credentials.password(), hash.as_bytes()] {
            text.extend_from_slice(&part.len().to_be_bytes());
            text.extend_from_slice(part);
        }
        let tag = sign(&self.key, &text);
        let mut digest = Digest::default();
        digest.copy_from_slice(tag.as_ref());
        digest
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    fn said(user: &str, password: &str) -> Credentials {
        Credentials::basic(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).as_bytes()).expect("credentials")
    }

    #[test]
    fn only_the_very_same_is_remembered() {
        let mut memo = Memo::new().expect("random bytes");
        let (one, two) = (Hash::Sha1([1; 20]), Hash::Sha1([2; 20]));
        memo.remember(&said("ada", "bc"), &one);
        assert!(memo.has(&said("ada", "bc"), &one));
        assert!(!memo.has(&said("ada", "bc"), &two), "the file says another hash now");
        assert!(!memo.has(&said("adab", "c"), &one) && !memo.has(&said("ada", ""), &one));
    }

    #[test]
    fn the_oldest_go() {
        let mut memo = Memo::new().expect("random bytes");
        let hash = Hash::Sha1([1; 20]);
        for number in 0..=REMEMBERED_MAX {
            memo.remember(&said(&number.to_string(), "x"), &hash);
        }
        assert_eq!(memo.digests.len(), REMEMBERED_MAX);
        assert!(!memo.has(&said("0", "x"), &hash) && memo.has(&said("1", "x"), &hash));
    }
}
