//! The connections to Valkey or Redis: the only room that knows its protocol.
//!
//! All keys begin with `seawall:{NAME}:`, so that a cluster keeps them on one shard, and all but the stream expire. A key is:
//!
//! | key | what |
//! |---|---|
//! | `purges` | the stream: entries of purges, trimmed at [`ENTRIES_MAX`](crate::stream::ENTRIES_MAX) |
//! | `machines` | a hash: machines by `NAME/SESSION`; and `born`, a random word of whoever made the hash. Whoever begins the stream deletes the hash in the same step, so that there is never a stream that is younger than its `born` |
//! | `confirmed` | a stream of confirmations, which only makes acknowledgements quicker; trimmed |
//! | `shelf:...` | sealed values: certificates, tickets, limits |
//! | `tier:...` | stored responses |
//! | `lock:...` | who fetches or orders right now; with an expiry |

mod address;
mod connection;
mod engine;
mod error;
mod examine;
mod mend;
mod reply;
mod seal;
mod sentinels;
mod steps;
mod values;
mod waiter;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::{
    address::{Address, BadAddress},
    engine::{Engine, EngineOptions, Server},
    error::LinkError,
    examine::{Examination, USER_RULES},
    seal::{BadSecret, Seals, Secret},
    steps::Link,
    values::{Value, Values},
    waiter::Waiter,
};
pub(crate) use self::{engine::trust, seal::random_word, values::Reply};
use crate::stream::{Entry, EntryId, EntryMaker, Position, Run};

/// The most bytes that an entry may have under its seal. A longer order is to be split by what it covers. With all entries as long as this, the
/// stream takes 1 GiB of the server's memory; with those of a few hundred bytes that there usually are, 20 MiB.
pub const ENTRY_BYTES_MAX: usize = 16 * 1024;
/// The most entries that one round reads, and that are appended in one step: so many of the longest are far from [`REPLY_BYTES_MAX`].
pub const ENTRIES_AT_ONCE_MAX: usize = 128;
/// The most bytes that one reply of the server may have. A longer one ends the connection before it is read.
pub const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest lease that a machine may have.
pub const LEASE_MAX: Duration = Duration::from_secs(30);

/// The field of an entry.
const ENTRY: &str = "e";
/// The field of a confirmation.
const CONFIRMATION: &str = "c";

/// Up to where a machine has applied a stream, as it tells the others. Ids of another run or of another hash of machines say nothing: a stream
/// that was made anew could give the same ones again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The run of the server.
    pub run: Run,
    /// The word of whoever made the hash of machines, in the round that this was learnt from.
    pub born: String,
    /// The last entry that it has applied, all before it included.
    pub id: EntryId,
}

/// A confirmation, as the waiting connection brings it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The field of the machine in the hash of machines.
    pub field: String,
    /// Up to where it has applied the stream.
    pub confirmed: Confirmed,
}

/// Holds what a machine says of itself in the hash of machines. Its field there is `NAME/SESSION`: two processes of one name must not
/// overwrite each other, as each may have a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The session of its process.
    pub session: String,
    /// A number that each round raises: whoever sees it rise knows that the machine is alive.
    pub beat: u64,
    /// Up to where it has applied the stream; `None` before its first round.
    pub confirmed: Option<Confirmed>,
    /// The lease of the machine, in milliseconds.
    pub lease_ms: u64,
    /// The time that it shows in doubt what its origin was asked for, in milliseconds.
    pub hold_ms: u64,
    /// The version of Seawall.
    pub version: String,
    /// Whether it had a lease when it wrote this.
    pub leased: bool,
}

/// Holds what one step of the server found, in which nothing else happened: the machine was written among the members, and the stream was
/// read.
#[derive(Debug, Clone)]
pub struct Round {
    /// The time at which the question was sent: before its first byte was written. A lease counts from here.
    pub sent: Instant,
    /// The run of the server.
    pub run: Run,
    /// Whether the position that was asked about is in the stream, made by whom it should be. Also `false` if none was given.
    pub continuous: bool,
    /// The entries after the position, oldest first, at most so many as were asked for; none if it was not continuous. Without a position, the
    /// first ones of the stream.
    pub entries: Vec<Entry>,
    /// The last entry of the stream.
    pub end: Entry,
    /// All machines by their fields, this one included as it has just been written. One that another version wrote under the seal, and that cannot
    /// be read, has the longest lease.
    pub members: BTreeMap<String, Member>,
    /// The fields among the machines that do not bear this cluster's seal.
    pub strangers: Vec<Stranger>,
    /// The word of whoever made the hash of machines: another one means that members were forgotten.
    pub born: String,
    /// The number of replicas that have taken over this machine's entry in the hash, where the server has replicas and that was asked for.
    pub replicated: bool,
}

/// Says what appending entries came to: one step of the server, too. It never makes the stream (`NOMKSTREAM`): that is an error, and the
/// next round begins the stream.
#[derive(Debug, Clone)]
pub struct Appended {
    /// The time at which the reply was here. The lease of whoever does not know of the entries ends before this and the lease.
    pub replied: Instant,
    /// The run of the server.
    pub run: Run,
    /// The ids of the entries, in the order in which they were given.
    pub ids: Vec<EntryId>,
    /// All machines that were registered in that step, by their fields.
    pub members: BTreeMap<String, Member>,
    /// The fields among the machines that do not bear this cluster's seal. One of them may be a machine that serves the same sites with another
    /// secret: it refuses the entries, and nothing holds there.
    pub strangers: Vec<Stranger>,
    /// The word of whoever made the hash of machines.
    pub born: String,
    /// Whether so many replicas have the entries as the options want.
    pub replicated: bool,
}

/// A field among the machines that does not bear the seal of this cluster: a machine with another secret, or garbage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The name of the machine, as far as it can be read.
    pub name: String,
    /// The name of the field.
    pub field: Bytes,
    /// The bytes that were written there.
    pub written: Bytes,
}

/// Says what the waiting connection was woken by.
#[derive(Debug, Clone, Default)]
pub struct Woken {
    /// Whether there are entries that were not there when the waiting began.
    pub entries: bool,
    /// Confirmations under the seal.
    pub confirmations: Vec<Confirmation>,
}

/// A question for a [`Round`].
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The field of this machine in the hash of machines: `NAME/SESSION`.
    pub field: &'a str,
    /// The state of this machine, as it tells it.
    pub member: &'a Member,
    /// Up to where it has applied the stream.
    pub position: Option<&'a Position>,
    /// The most entries that it takes; never more than [`ENTRIES_AT_ONCE_MAX`].
    pub entries_max: usize,
}

/// An entry to be appended.
#[derive(Debug, Clone)]
pub struct Append {
    /// The machine that made it, and its number.
    pub made: EntryMaker,
    /// The order, as JSON under the seal.
    pub sealed: Bytes,
}
