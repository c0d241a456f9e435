//! The shelf that machines share, as certificates need it: small sealed values by name, and locks.
//!
//! What it is made of is somebody else's affair: here it may be absent, slow, or forget everything at any moment. So nothing depends on it alone;
//! what a machine needs is on its own disk too.

use std::{pin::Pin, time::Duration};

/// The future of what a shelf does, with its outcome.
pub type Shelving<'a, T> = Pin<Box<dyn Future<Output = Result<T, ShelfError>> + Send + 'a>>;

/// The reason why the shelf did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShelfError {
    /// The shelf cannot be reached, or does not answer in time: it may or may not have done it.
    #[error("what the machines share cannot be reached: {0}")]
    Unreachable(String),
    /// There is something under this name that was not put there by these machines, or that is damaged.
    #[error("what the machines share is not theirs: {0}")]
    Foreign(String),
}

/// The version of a value: it differs after each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub [u8; 12]);

/// A value on the shelf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelved {
    /// The value.
    pub value: Vec<u8>,
    /// The version of the value.
    pub version: Version,
}

/// A shelf that several machines share. Everything on it expires. Each call ends within bounded time.
pub trait Shelf: Send + Sync + 'static {
    /// Returns what is under a name.
    fn get<'a>(&'a self, name: &'a str) -> Shelving<'a, Option<Shelved>>;
    /// Puts a value under a name, whatever is there.
    fn put<'a>(&'a self, name: &'a str, value: Vec<u8>, keep: Duration) -> Shelving<'a, ()>;
    /// Puts a value in place of another one, or where nothing is. Returns `false` if something else is there.
    fn swap<'a>(&'a self, name: &'a str, before: Option<&'a Version>, value: Vec<u8>, keep: Duration) -> Shelving<'a, bool>;
    /// Takes a lock for so long. Returns `None` if another machine has it.
    fn lock<'a>(&'a self, name: &'a str, keep: Duration) -> Shelving<'a, Option<Box<dyn ShelfLock>>>;
}

/// A lock that this machine has taken. It ends by itself if it is not renewed, so that a machine that dies keeps nothing locked.
pub trait ShelfLock: Send + Sync {
    /// Returns its fencing number: a later lock of this name has a higher one, unless the shelf has forgotten it.
    fn number(&self) -> u64;
    /// Keeps it for so long from now. Returns `false` if it has ended.
    fn renew(&self, keep: Duration) -> Shelving<'_, bool>;
    /// Gives it back.
    fn release(self: Box<Self>) -> Shelving<'static, ()>;
}
