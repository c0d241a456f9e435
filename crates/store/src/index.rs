//! Knows which keys belong to a URL. A purge needs no search to take effect; this index only lets a URL purge say how many variants it met,
//! and a hard one free them at once.
//!
//! It holds one pair of hashes per stored resource, weighed with the resource, so it is bounded by the memory tier. One lock: it is taken
//! when a response is stored or evicted, never on a hit.

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;

use crate::hash::{AsIs, KeyHash};

/// The index from a URL (its secret hash) to the keys of its resources.
#[derive(Default)]
pub(crate) struct UrlIndex {
    urls: Mutex<HashMap<KeyHash, Keys, AsIs>>,
}

/// The keys of one URL. Most URLs have one. A URL with thousands of query forms must still forget one of them without a scan, hence a set;
/// it is boxed, as it would double every place.
enum Keys {
    One(KeyHash),
    Many(Box<HashSet<KeyHash, AsIs>>),
}

impl UrlIndex {
    pub(crate) fn add(&self, url: KeyHash, key: KeyHash) {
        let mut urls = self.urls.lock();
        match urls.get_mut(&url) {
            None => {
                urls.insert(url, Keys::One(key));
            }
            Some(Keys::Many(keys)) => {
                keys.insert(key);
            }
            Some(Keys::One(first)) if *first == key => {}
            Some(one @ Keys::One(_)) => {
                let mut keys = Box::new(HashSet::with_hasher(AsIs::default()));
                if let Keys::One(first) = one {
                    keys.insert(*first);
                }
                keys.insert(key);
                *one = Keys::Many(keys);
            }
        }
    }

    pub(crate) fn remove(&self, url: KeyHash, key: KeyHash) {
        let mut urls = self.urls.lock();
        let empty = match urls.get_mut(&url) {
            None => false,
            Some(Keys::One(only)) => *only == key,
            Some(Keys::Many(keys)) => {
                keys.remove(&key);
                keys.is_empty()
            }
        };
        if empty {
            urls.remove(&url);
        }
    }

    /// Returns at most `max` keys of `url`.
    pub(crate) fn keys(&self, url: KeyHash, max: usize) -> Vec<KeyHash> {
        match self.urls.lock().get(&url) {
            None => Vec::new(),
            Some(Keys::One(key)) => vec![*key],
            Some(Keys::Many(keys)) => keys.iter().take(max).copied().collect(),
        }
    }

    /// Returns the number of pairs held: as many as there are stored resources.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let urls = self.urls.lock();
        urls.values().map(|keys| if let Keys::Many(keys) = keys { keys.len() } else { 1 }).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;

    #[test]
    fn keys_come_and_go() {
        let (secret, index) = (Secret::new(), UrlIndex::default());
        let [url, a, b, c] = [b"u", b"a", b"b", b"c"].map(|name| secret.key(name));
        assert!(index.keys(url, 9).is_empty());
        for key in [a, a, b, b, c] {
            index.add(url, key);
        }
        let mut keys = index.keys(url, 9);
        keys.sort_unstable();
        let mut expected = vec![a, b, c];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(index.keys(url, 2).len(), 2);
        index.remove(url, b);
        index.remove(url, b);
        index.remove(b, url);
        assert_eq!(index.len(), 2);
        index.remove(url, a);
        index.remove(url, c);
        assert_eq!(index.len(), 0);
        index.add(url, a);
        index.remove(url, b);
        assert_eq!(index.keys(url, 9), [a]);
    }
}
