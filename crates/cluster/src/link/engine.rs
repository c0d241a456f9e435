//! The server as a place that one connects to, and the steps of the stream.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;

use super::{Address, Append, Appended, Ask, LinkError, Member, Round, Seals, Secret, Stranger, Values, Waiter};
use crate::{shelf::Shelf, stream::EntryId};

/// How the server is reached, and what is said there.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Where it is.
    pub address: Address,
    /// The name of the cluster: letters, digits, `.`, `_` and `-`, at most 64.
    pub cluster: String,
    /// The secret that seals everything.
    pub secret: Secret,
    /// How many replicas must have an entry before it counts as written.
    pub replicas: u32,
    /// How long one round trip may take, and one step of connecting.
    pub deadline: Duration,
    /// The certificates of authorities that are trusted in place of the system's, PEM.
    pub authorities: Option<Vec<u8>>,
}

/// The server as a place that one connects to. A clone is the same one.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {}

/// The software that a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its address, without secrets, such as `redis://10.0.0.5:6379`.
    pub address: String,
    /// The software, such as `valkey` or `redis`.
    pub software: String,
    /// Its version.
    pub version: String,
}

/// A connection to the primary that has this cluster's keys. One step is under way at a time, in the order in which they were begun; each has
/// the deadline of [`EngineOptions::deadline`]. After an error whose [`ends_link`](LinkError::ends_link) is `true`, it is of no use any more.
#[derive(Debug, Clone)]
pub struct Link(Arc<()>);

impl Engine {
    /// Prepares what all connections have in common. Nothing is sent.
    ///
    /// # Errors
    /// When the name of the cluster or the certificates cannot be used.
    pub fn new(options: EngineOptions) -> Result<Self, LinkError> {
        let _ = options;
        todo!()
    }

    /// Returns the seals of this cluster.
    #[must_use]
    pub fn seals(&self) -> &Seals {
        todo!()
    }

    /// Finds the primary and connects to it.
    ///
    /// It takes the deadline for each server that is asked at most. It is to be called in the runtime that the connection shall live in.
    ///
    /// # Errors
    /// When there is none.
    pub async fn connect(&self) -> Result<Link, LinkError> {
        todo!()
    }

    /// Connects once more, to wait there for entries and confirmations.
    ///
    /// # Errors
    /// When there is no primary.
    pub async fn waiter(&self) -> Result<Waiter, LinkError> {
        todo!()
    }

    /// Returns the single values of this cluster, over one more connection that `runtime` drives. It is made when it is first needed, and anew
    /// when it is lost.
    #[must_use]
    pub fn values(&self, runtime: Handle) -> Values {
        let _ = runtime;
        todo!()
    }

    /// Returns the shelf of this cluster, over such values.
    #[must_use]
    pub fn shelf(&self, runtime: Handle) -> Shelf {
        let _ = runtime;
        todo!()
    }
}

impl Link {
    /// Returns the server that it leads to.
    #[must_use]
    pub fn server(&self) -> &Server {
        todo!()
    }

    /// Makes a round: one step in which the machine is written among the members and the stream is read. If there is no stream, it is begun.
    ///
    /// # Errors
    /// When that did not happen, or is not known to have happened.
    pub async fn round(&self, ask: Ask<'_>) -> Result<Round, LinkError> {
        let _ = ask;
        todo!()
    }

    /// Appends entries in one step, at most [`ENTRIES_AT_ONCE_MAX`](super::ENTRIES_AT_ONCE_MAX).
    ///
    /// # Errors
    /// When that is not known to have happened. It may have happened.
    pub async fn append(&self, entries: &[Append]) -> Result<Appended, LinkError> {
        let _ = entries;
        todo!()
    }

    /// Tells the others that a machine has applied everything up to an entry.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn confirm(&self, field: &str, confirmed: &super::Confirmed) -> Result<(), LinkError> {
        let _ = (field, confirmed);
        todo!()
    }

    /// Removes a machine from the members if it is still of the same session and beat. Returns whether it did.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn remove_member_if_unchanged(&self, name: &str, member: &Member) -> Result<bool, LinkError> {
        let _ = (name, member);
        todo!()
    }

    /// Removes a machine from the members if it is still of the same session, whatever its beat: its own clean stop. Returns whether it did.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn remove_member(&self, field: &str) -> Result<bool, LinkError> {
        let _ = field;
        todo!()
    }

    /// Removes a field that does not bear the seal, if it is still the same. Returns whether it did.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn remove_stranger_if_unchanged(&self, stranger: &Stranger) -> Result<bool, LinkError> {
        let _ = stranger;
        todo!()
    }
}
