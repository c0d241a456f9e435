//! The keys of TLS tickets that the machines share, so that a session of one resumes at another.
//!
//! They are random, sealed on the shelf, and change every six hours. A key is known to all machines for hours before the first ticket is sealed with
//! it, and is gone hours after the last one: so nobody misses a change, and whoever finds a key later can read no session from before.
//! When to change is decided by the server's clock alone: a mark on the shelf expires, and whoever puts it there again changes the keys.

use std::{
    fmt,
    time::{Duration, Instant},
};

use crate::shelf::{Shelf, ShelfError};

/// The length of a key's name.
pub const NAME_LEN: usize = 16;
/// The length of a key.
pub const KEY_LEN: usize = 32;
/// The time between two changes.
const CHANGE: Duration = Duration::from_secs(6 * 60 * 60);
/// The time that keys stay that nobody changes.
const KEEP: Duration = Duration::from_secs(48 * 60 * 60);
/// The time that a machine uses keys without hearing of them. Then it has keys of its own.
const UNHEARD: Duration = Duration::from_secs(12 * 60 * 60);
/// The version of what is written.
const VERSION: u8 = 1;
/// The most keys: the next one, the current one, and the one before.
const KEYS_MAX: usize = 3;

const PLACE: &str = "tickets/keys";
const MARK: &str = "tickets/changed";

/// The name of a key, and the key.
pub type Key = ([u8; NAME_LEN], [u8; KEY_LEN]);

/// The keys: the next one, the current one, and from the first change on the one before.
#[derive(Clone, PartialEq, Eq)]
pub struct Ring(Vec<Key>);

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring({} keys)", self.0.len())
    }
}

/// There is no randomness to make keys of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no randomness")]
pub struct NoRandomness;

impl Ring {
    fn new() -> Result<Self, NoRandomness> {
        Ok(Self(vec![random_key()?, random_key()?]))
    }

    /// Returns the key that seals new tickets.
    #[must_use]
    pub fn current(&self) -> &Key {
        &self.0[1]
    }

    /// Returns the other keys, whose tickets are accepted too: other machines may have changed already, or not yet.
    #[must_use]
    pub fn accepted(&self) -> Vec<Key> {
        self.0.iter().enumerate().filter(|(n, _)| *n != 1).map(|(_, key)| *key).collect()
    }

    fn changed(&self) -> Result<Self, NoRandomness> {
        let mut keys = vec![random_key()?];
        keys.extend(self.0.iter().take(KEYS_MAX - 1));
        Ok(Self(keys))
    }

    fn encode(&self) -> Vec<u8> {
        let keys = self.0.iter().flat_map(|(name, key)| name.iter().chain(key));
        std::iter::once(&VERSION).chain(keys).copied().collect()
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (version, keys) = value.split_first()?;
        let (keys, rest) = keys.as_chunks::<{ NAME_LEN + KEY_LEN }>();
        let is_valid = *version == VERSION && rest.is_empty() && (2..=KEYS_MAX).contains(&keys.len());
        let key = |bytes: &[u8; NAME_LEN + KEY_LEN]| {
            let (name, key) = bytes.split_at(NAME_LEN);
            Some((name.try_into().ok()?, key.try_into().ok()?))
        };
        if is_valid { keys.iter().map(key).collect::<Option<_>>().map(Self) } else { None }
    }
}

fn random_key() -> Result<Key, NoRandomness> {
    let mut key = ([0; NAME_LEN], [0; KEY_LEN]);
    aws_lc_rs::rand::fill(&mut key.0).and_then(|()| aws_lc_rs::rand::fill(&mut key.1)).map_err(|_| NoRandomness)?;
    Ok(key)
}

/// A machine's share in the keys.
#[derive(Debug)]
pub struct Tickets {
    shelf: Shelf,
    ring: Option<Ring>,
    heard: Option<Instant>,
    has_complained: bool,
}

impl Tickets {
    /// Makes a machine's share. It has no keys yet.
    #[must_use]
    pub const fn new(shelf: Shelf) -> Self {
        Self { shelf, ring: None, heard: None, has_complained: false }
    }

    /// Returns the keys to be used; `None`: the machine's own.
    #[must_use]
    pub const fn ring(&self) -> Option<&Ring> {
        self.ring.as_ref()
    }

    /// Looks for the keys, makes or changes them if that is due, and returns whether [`ring`](Self::ring) is another one since. Call it every few
    /// seconds.
    pub async fn look(&mut self, now: Instant) -> bool {
        let before = self.ring.clone();
        match self.try_look().await {
            Ok(ring) => {
                (self.ring, self.heard) = (Some(ring), Some(now));
                if std::mem::take(&mut self.has_complained) {
                    tracing::info!("the keys of TLS tickets are shared again");
                }
            }
            Err(why) => {
                if self.heard.is_some_and(|heard| now.saturating_duration_since(heard) >= UNHEARD) {
                    (self.ring, self.heard) = (None, None);
                }
                if !std::mem::replace(&mut self.has_complained, true) {
                    tracing::warn!(
                        "the keys of TLS tickets cannot be shared for now, so sessions resume at their own machine alone: {why}"
                    );
                }
            }
        }
        self.ring != before
    }

    async fn try_look(&self) -> Result<Ring, String> {
        let kept = match self.shelf.get(PLACE).await {
            Ok(kept) => kept,
            Err(ShelfError::Refused { name, why }) => {
                tracing::warn!("the keys of TLS tickets are made anew, as what is kept as {name} is refused: {why}");
                let ring = Ring::new().map_err(text)?;
                self.shelf.put(PLACE, &ring.encode(), KEEP).await.map_err(text)?;
                return Ok(ring);
            }
            Err(error) => return Err(text(error)),
        };
        let Some(kept) = kept else {
            let ring = Ring::new().map_err(text)?;
            // The mark comes first: the keys are new enough.
            let _ = self.shelf.put(MARK, b"", CHANGE).await.map_err(text)?;
            let is_put = self.shelf.put_if_absent(PLACE, &ring.encode(), KEEP).await.map_err(text)?.is_some();
            return if is_put { Ok(ring) } else { Err("another machine makes them at this moment".to_owned()) };
        };
        let Some(ring) = Ring::decode(&kept.value) else { return Err("another version of Seawall wrote them".to_owned()) };
        let is_due = self.shelf.put_if_absent(MARK, b"", CHANGE).await.map_err(text)?.is_some();
        if is_due {
            let changed = ring.changed().map_err(text)?;
            if self.shelf.put_instead_of(PLACE, kept.version, &changed.encode(), KEEP).await.map_err(text)?.is_some() {
                tracing::debug!("changed the keys of TLS tickets");
                return Ok(changed);
            }
        }
        Ok(ring)
    }
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_before_it_is_used_and_accepted_for_one_change_after() {
        let first = Ring::new().expect("randomness");
        let second = first.changed().expect("randomness");
        let third = second.changed().expect("randomness");
        // Whoever has not heard of a change yet accepts what the others seal, and the other way round.
        for (before, after) in [(&first, &second), (&second, &third)] {
            assert!(before.accepted().contains(after.current()));
            assert!(after.accepted().contains(before.current()));
        }
        assert!(!third.accepted().contains(first.current()) && third.current() != first.current());
        assert_eq!((first.0.len(), second.0.len(), third.0.len()), (2, 3, 3));
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for ring in [Ring::new().expect("randomness"), Ring::new().and_then(|ring| ring.changed()).expect("randomness")] {
            let written = ring.encode();
            assert_eq!(Ring::decode(&written), Some(ring));
            for cut in 0..written.len() {
                // Three keys without the last one are two keys: the seal on the shelf sees to that.
                assert!(Ring::decode(&written[..cut]).is_none() || cut == 1 + 2 * (NAME_LEN + KEY_LEN), "{cut}");
            }
            let mut newer = written.clone();
            newer[0] = 2;
            assert_eq!(Ring::decode(&newer), None);
            assert_eq!(Ring::decode(&[&written[..], &[0; 48], &[0; 48]].concat()), None);
        }
    }
}
