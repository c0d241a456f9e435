//! Seals: what bears one was written by a machine that knows the cluster's secret.

use policy::purge::Order;

use super::{Append, Member};
use crate::stream::{EntryId, Made, Said};

/// The secret of a cluster. It is never shown.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// Why a text is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has less than 16 bytes; make one with: openssl rand -hex 32")]
pub struct BadSecret;

impl Secret {
    /// Takes a secret: at least 16 bytes, without the white space around it.
    ///
    /// # Errors
    /// When it is shorter.
    pub fn new(text: &str) -> Result<Self, BadSecret> {
        let text = text.trim().as_bytes();
        if text.len() < 16 { Err(BadSecret) } else { Ok(Self(text.to_vec())) }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The keys that are made of the secret.
#[derive(Clone)]
pub struct Seals {}

impl std::fmt::Debug for Seals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seals")
    }
}

impl Seals {
    /// Makes the keys for a cluster.
    #[must_use]
    pub fn new(cluster: &str, secret: &Secret) -> Self {
        let _ = (cluster, secret);
        todo!()
    }

    /// Seals an order as an entry. Returns `None` if it is longer than [`ENTRY_BYTES_MAX`](super::ENTRY_BYTES_MAX): then it is to be split.
    #[must_use]
    pub fn purge(&self, made: Made, order: &Order) -> Option<Append> {
        let _ = (made, order);
        todo!()
    }

    /// Reads an entry.
    #[must_use]
    pub fn read_entry(&self, sealed: &[u8]) -> (Option<Made>, Said) {
        let _ = sealed;
        todo!()
    }

    /// Seals what a machine says of itself.
    #[must_use]
    pub fn member(&self, name: &str, member: &Member) -> Vec<u8> {
        let _ = (name, member);
        todo!()
    }

    /// Reads what a machine says of itself; `None` without the seal.
    #[must_use]
    pub fn read_member(&self, name: &str, sealed: &[u8]) -> Option<Member> {
        let _ = (name, sealed);
        todo!()
    }

    /// Seals a confirmation.
    #[must_use]
    pub fn confirmation(&self, name: &str, session: &str, id: EntryId) -> Vec<u8> {
        let _ = (name, session, id);
        todo!()
    }

    /// Reads a confirmation; `None` without the seal.
    #[must_use]
    pub fn read_confirmation(&self, sealed: &[u8]) -> Option<(String, String, EntryId)> {
        let _ = sealed;
        todo!()
    }
}
