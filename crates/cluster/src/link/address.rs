//! Where the server is, as the operator wrote it.

/// Where the server is: one of `redis://`, `rediss://`, `redis+sentinel://host,host/NAME` and `redis+cluster://host,host`, or a list of the first
/// two. `valkey` may stand for `redis`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {}

/// Why a text is no address of a server, as a sentence without a full stop. It has no password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(pub String);

impl Address {
    /// Reads one address, or several of the same kind.
    ///
    /// # Errors
    /// When one of them cannot be read, or they do not go together.
    pub fn read<S: AsRef<str>>(urls: &[S]) -> Result<Self, BadAddress> {
        let _ = urls;
        todo!()
    }

    /// Returns whether every server of it is this machine, by the loopback addresses.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        todo!()
    }

    /// Returns whether connections are made with TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        todo!()
    }

    /// Returns whether a password is given.
    #[must_use]
    pub fn has_password(&self) -> bool {
        todo!()
    }
}

/// Writes the address without user and password.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let _ = f;
        todo!()
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
