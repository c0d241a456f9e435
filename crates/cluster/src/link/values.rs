//! Single values by name, with an expiry, read within bounds and a deadline.

use std::time::Duration;

use bytes::Bytes;

use super::LinkError;

/// Single values of the cluster, by name: `tier:...`, `lock:...`, `shelf:...`. They are not sealed here. A clone is the same one; any runtime may
/// use it. At most [`AT_ONCE_MAX`](Self::AT_ONCE_MAX) steps are under way at a time; others wait for them within their deadline. While the server
/// cannot be reached, everything fails at once; it is looked for every half second.
#[derive(Debug, Clone)]
pub struct Values {}

/// What is written under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// There is nothing.
    None,
    /// All of it.
    Whole(Bytes),
    /// It is longer than was asked for, and was not read.
    TooLong,
}

impl Values {
    /// The most steps that are under way at a time.
    pub const AT_ONCE_MAX: usize = 16;
    /// The most bytes that a value may have.
    pub const BYTES_MAX: usize = 1024 * 1024 + 64 * 1024;

    /// Reads a value of at most `bytes_max` bytes (and never more than [`BYTES_MAX`](Self::BYTES_MAX)). A longer one is not read.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses.
    pub async fn get(&self, name: &str, bytes_max: usize, deadline: Duration) -> Result<Value, LinkError> {
        let _ = (name, bytes_max, deadline);
        todo!()
    }

    /// Writes a value, whatever is there. It expires after `lifetime`.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been written.
    pub async fn put(&self, name: &str, value: &[u8], lifetime: Duration, deadline: Duration) -> Result<(), LinkError> {
        let _ = (name, value, lifetime, deadline);
        todo!()
    }

    /// Writes a value if there is none. Returns whether it did.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been written.
    pub async fn put_if_absent(&self, name: &str, value: &[u8], lifetime: Duration, deadline: Duration) -> Result<bool, LinkError> {
        let _ = (name, value, lifetime, deadline);
        todo!()
    }

    /// Removes a value, whatever it is. Returns whether there was one.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been removed.
    pub async fn remove(&self, name: &str, deadline: Duration) -> Result<bool, LinkError> {
        let _ = (name, deadline);
        todo!()
    }

    /// Removes a value if it begins with `beginning`. Returns whether it did.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been removed.
    pub async fn remove_if(&self, name: &str, beginning: &[u8], deadline: Duration) -> Result<bool, LinkError> {
        let _ = (name, beginning, deadline);
        todo!()
    }
}
