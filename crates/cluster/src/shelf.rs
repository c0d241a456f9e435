//! The shelf: small sealed values by name, with an expiry, and locks. Certificates, their keys and tickets are kept here.
//!
//! Values are sealed by AES-256-GCM with a key from the cluster's secret; the name is part of the seal, so that none can be put under another
//! name. Whoever can read the server sees names and lengths.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;

use crate::link::{LinkError, Seals, Value, Values, random_word};

/// The most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of a name.
pub const NAME_BYTES_MAX: usize = 512;
/// The number of bytes that a seal adds to a value, at most.
const SEAL_BYTES_MAX: usize = 64;

/// The shelf of a cluster. A clone is the same one; any runtime may use it. Each step takes the deadline of a round trip at most.
#[derive(Debug, Clone)]
pub struct Shelf {
    seals: Seals,
    values: Values,
    deadline: Duration,
    refused: Arc<AtomicU64>,
}

/// A value, and which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedValue {
    /// The value that was put there.
    pub value: Bytes,
    /// The version of the value.
    pub version: Version,
}

/// Identifies a version of a value: each put makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub [u8; 12]);

/// The reason why something was not kept or not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShelfError {
    /// The server did not do it, or it is not known whether it did.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The value is not this cluster's: it is too long, damaged, sealed with another secret, or put under another name.
    #[error("what is kept as {name} is refused: {why}")]
    Refused {
        /// The name of the value.
        name: String,
        /// The reason why it is refused.
        why: &'static str,
    },
    /// The value has more than [`VALUE_BYTES_MAX`], or its name more than [`NAME_BYTES_MAX`].
    #[error("{0} is longer than what is kept: 1 MiB, or a name of 512 bytes")]
    TooLong(String),
}

/// A lock that this machine has, until it expires. Dropping it does not release it: that takes an answer of the server.
#[derive(Debug)]
pub struct Lock {
    values: Values,
    deadline: Duration,
    name: String,
    /// The word that this holder alone has written there.
    word: String,
    number: u64,
}

impl Shelf {
    pub(crate) fn new(seals: Seals, values: Values, deadline: Duration) -> Self {
        Self { seals, values, deadline, refused: Arc::default() }
    }

    /// Returns a value.
    ///
    /// # Errors
    /// When the server does not answer, or what is there is refused.
    pub async fn get(&self, name: &str) -> Result<Option<VersionedValue>, ShelfError> {
        let place = place(name)?;
        let why = match self.values.get(&place, VALUE_BYTES_MAX + SEAL_BYTES_MAX, self.deadline).await {
            Err(LinkError::Refused { why, .. }) if why.starts_with("WRONGTYPE") => "it is a key of another kind",
            Err(error) => return Err(error.into()),
            Ok(value) => match value {
                Value::None => return Ok(None),
                Value::TooLong => "it is longer than 1 MiB",
                Value::Whole(kept) => match self.seals.open(name, &kept) {
                    Ok((value, number)) => return Ok(Some(VersionedValue { value, version: Version(number) })),
                    Err(why) => why,
                },
            },
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(ShelfError::Refused { name: name.to_owned(), why })
    }

    /// Puts a value, whatever is there.
    ///
    /// # Errors
    /// When it is too long, or the server does not answer; it may have been put then.
    pub async fn put(&self, name: &str, value: &[u8], lifetime: Duration) -> Result<Version, ShelfError> {
        let (place, kept, version) = self.seal(name, value)?;
        self.values.put(&place, &kept, lifetime, self.deadline).await?;
        Ok(version)
    }

    /// Puts a value if there is none. Returns `None` if there is one.
    ///
    /// # Errors
    /// When it is too long, or the server does not answer; it may have been put then.
    pub async fn put_if_absent(&self, name: &str, value: &[u8], lifetime: Duration) -> Result<Option<Version>, ShelfError> {
        let (place, kept, version) = self.seal(name, value)?;
        let done = self.values.put_if_absent(&place, &kept, lifetime, self.deadline).await?;
        Ok(done.then_some(version))
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
        let (place, kept, next) = self.seal(name, value)?;
        let beginning = Seals::kept_beginning(&version.0);
        let done = self.values.put_if(&place, &beginning, &kept, lifetime, self.deadline).await?;
        Ok(done.then_some(next))
    }

    /// Removes a value. Returns whether there was one.
    ///
    /// # Errors
    /// When the server does not answer; it may have been removed then.
    pub async fn remove(&self, name: &str) -> Result<bool, ShelfError> {
        Ok(self.values.remove(&place(name)?, self.deadline).await?)
    }

    /// Takes a lock for `lifetime`, unless somebody has it: `None` then.
    ///
    /// # Errors
    /// When the server does not answer. It may be locked then, until it expires.
    pub async fn lock(&self, name: &str, lifetime: Duration) -> Result<Option<Lock>, ShelfError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(ShelfError::TooLong("the name of a lock".to_owned()));
        }
        let word = random_word();
        let (name, number) = (format!("lock:{name}"), format!("number:{name}"));
        let number = self.values.put_numbered(&name, &number, word.as_bytes(), lifetime, self.deadline).await?;
        Ok(number.map(|number| Lock { values: self.values.clone(), deadline: self.deadline, name, word, number }))
    }

    /// Returns how many values were refused since the start.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn seal(&self, name: &str, value: &[u8]) -> Result<(String, Vec<u8>, Version), ShelfError> {
        let place = place(name)?;
        if value.len() > VALUE_BYTES_MAX {
            return Err(ShelfError::TooLong(name.to_owned()));
        }
        let (kept, number) = self.seals.keep(name, value);
        Ok((place, kept, Version(number)))
    }
}

impl Lock {
    /// Returns its fencing number: greater than that of whoever had the lock before. After the server has forgotten everything, or nobody has taken
    /// the lock for 30 days, it begins again.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Holds it for `lifetime` from now. Returns `false` if it is lost.
    ///
    /// # Errors
    /// When the server does not answer. It may be held or lost.
    pub async fn renew(&self, lifetime: Duration) -> Result<bool, ShelfError> {
        Ok(self.values.renew_if(&self.name, self.word.as_bytes(), lifetime, self.deadline).await?)
    }

    /// Releases it, if it is still held. Returns whether it was.
    ///
    /// # Errors
    /// When the server does not answer. It expires, then.
    pub async fn release(self) -> Result<bool, ShelfError> {
        Ok(self.values.remove_if(&self.name, self.word.as_bytes(), self.deadline).await?)
    }
}

/// Returns the name among all values of the cluster.
fn place(name: &str) -> Result<String, ShelfError> {
    if name.len() > NAME_BYTES_MAX { Err(ShelfError::TooLong("a name".to_owned())) } else { Ok(format!("shelf:{name}")) }
}
