//! The shelf: small sealed values by name, with an expiry, and locks. Certificates, their keys and tickets are kept here.
//!
//! Values are sealed by AES-256-GCM with a key from the cluster's secret; the name is part of the seal, so that none can be put under another
//! name. Whoever can read the server sees names and lengths.

use std::time::Duration;

use bytes::Bytes;

use crate::link::LinkError;

/// The most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// The shelf of a cluster. A clone is the same one; any runtime may use it.
#[derive(Debug, Clone)]
pub struct Shelf {}

/// A value, and which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What was put there.
    pub value: Bytes,
    /// Which version it is.
    pub version: Version,
}

/// Which version of a value it is: each put makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version([u8; 12]);

/// Why something was not kept or not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShelfError {
    /// The server did not do it, or it is not known whether it did.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// What is there is not of this cluster: too long, damaged, sealed with another secret, or put under another name.
    #[error("what is kept as {name} is refused: {why}")]
    Refused {
        /// Its name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// The value has more than [`VALUE_BYTES_MAX`].
    #[error("{0} is longer than 1 MiB")]
    TooLong(String),
}

/// A lock that this machine has, until it expires. Dropping it does not release it: that takes an answer of the server.
#[derive(Debug)]
pub struct Lock {}

impl Shelf {
    /// Returns a value.
    ///
    /// # Errors
    /// When the server does not answer, or what is there is refused.
    pub async fn get(&self, name: &str) -> Result<Option<Kept>, ShelfError> {
        let _ = name;
        todo!()
    }

    /// Puts a value, whatever is there.
    ///
    /// # Errors
    /// When it is too long, or the server does not answer; it may have been put then.
    pub async fn put(&self, name: &str, value: &[u8], lifetime: Duration) -> Result<Version, ShelfError> {
        let _ = (name, value, lifetime);
        todo!()
    }

    /// Puts a value if there is none. Returns `None` if there is one.
    ///
    /// # Errors
    /// When it is too long, or the server does not answer; it may have been put then.
    pub async fn put_if_absent(&self, name: &str, value: &[u8], lifetime: Duration) -> Result<Option<Version>, ShelfError> {
        let _ = (name, value, lifetime);
        todo!()
    }

    /// Puts a value in place of a version. Returns `None` if another one is there, or none.
    ///
    /// # Errors
    /// When it is too long, or the server does not answer; it may have been put then.
    pub async fn put_instead_of(
        &self,
        name: &str,
        version: Version,
        value: &[u8],
        lifetime: Duration,
    ) -> Result<Option<Version>, ShelfError> {
        let _ = (name, version, value, lifetime);
        todo!()
    }

    /// Puts a value if the lock is still held, in one step: whoever comes late is refused. Returns `None` then.
    ///
    /// # Errors
    /// When it is too long, or the server does not answer; it may have been put then.
    pub async fn put_holding(
        &self,
        lock: &Lock,
        name: &str,
        value: &[u8],
        lifetime: Duration,
    ) -> Result<Option<Version>, ShelfError> {
        let _ = (lock, name, value, lifetime);
        todo!()
    }

    /// Removes a value. Returns whether there was one.
    ///
    /// # Errors
    /// When the server does not answer; it may have been removed then.
    pub async fn remove(&self, name: &str) -> Result<bool, ShelfError> {
        let _ = name;
        todo!()
    }

    /// Takes a lock for `lifetime`, unless somebody has it: `None` then.
    ///
    /// # Errors
    /// When the server does not answer. It may be locked then, until it expires.
    pub async fn lock(&self, name: &str, lifetime: Duration) -> Result<Option<Lock>, ShelfError> {
        let _ = (name, lifetime);
        todo!()
    }

    /// Returns how many values were refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        todo!()
    }
}

impl Lock {
    /// Returns its fencing number: greater than that of whoever had the lock before.
    #[must_use]
    pub const fn number(&self) -> u64 {
        todo!()
    }

    /// Holds it for `lifetime` from now. Returns `false` if it is lost.
    ///
    /// # Errors
    /// When the server does not answer. It may be held or lost.
    pub async fn renew(&self, lifetime: Duration) -> Result<bool, ShelfError> {
        let _ = lifetime;
        todo!()
    }

    /// Releases it, if it is still held. Returns whether it was.
    ///
    /// # Errors
    /// When the server does not answer. It expires, then.
    pub async fn release(self) -> Result<bool, ShelfError> {
        todo!()
    }
}
