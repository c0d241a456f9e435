//! The errors that can occur between a machine and the server, by who has to do something about it.

use std::time::Duration;

/// The reason why a step did not happen, or is not known to have happened. The text never has a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The options cannot be used.
    #[error("{0}")]
    Options(String),
    /// There is no connection: nobody listens, the name has no address, TLS failed, or it was cut.
    #[error("{server} cannot be reached: {why}")]
    Unreachable {
        /// The server, without secrets.
        server: String,
        /// The description of what happened.
        why: String,
    },
    /// The server took too long. The step may have happened, or may happen yet.
    #[error("{server} did not answer within {} ms", .after.as_millis())]
    TooLate {
        /// The server, without secrets.
        server: String,
        /// The time that it had.
        after: Duration,
    },
    /// The server refuses the user, or the user may not do this.
    #[error("{server} does not let us in: {why}")]
    Denied {
        /// The server, without secrets.
        server: String,
        /// The server's words.
        why: String,
    },
    /// The server takes no writes for our keys: it is a replica, or another one has them.
    #[error("{server} is not the primary: {why}")]
    NotPrimary {
        /// The server, without secrets.
        server: String,
        /// The server's words, or what the server is.
        why: String,
    },
    /// The server did not do it, and the connection is as good as before: it is full, it is still loading, a key holds something else.
    #[error("{server} refuses: {why}")]
    Refused {
        /// The server, without secrets.
        server: String,
        /// The server's words.
        why: String,
    },
    /// A reply, or what was to be written, is longer than it may be.
    #[error("{server}: {what} is longer than the {bytes_max} bytes that are read or written at once")]
    TooLong {
        /// The server, without secrets.
        server: String,
        /// The thing that is too long.
        what: String,
        /// The number of bytes that it may have.
        bytes_max: usize,
    },
    /// The reply is not one that this command has: something else listens there, or the key holds what others wrote.
    #[error("{server} answered what cannot be understood: {why}")]
    Garbled {
        /// The server, without secrets.
        server: String,
        /// The description of what was expected.
        why: String,
    },
}

impl LinkError {
    /// Returns whether the connection is of no use after this error, so that another one is to be made.
    #[must_use]
    pub const fn ends_link(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::Options(_))
    }
}
