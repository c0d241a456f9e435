//! The stream of purges: ids, positions and entries, as values.

use std::{fmt, str::FromStr};

use policy::purge::Order;
use serde::{Deserialize, Serialize};

/// The most entries that the stream keeps. Whoever has fallen behind further cannot know what was purged.
pub const ENTRIES_MAX: usize = 65_536;
/// The version of what is written into an entry. A machine that meets another one treats it as a purge of everything.
pub const VERSION: u32 = 1;

/// The id of an entry, as the server gave it: it only rises within a stream. It has milliseconds of the server's wall clock in it, which are
/// never compared with any clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct EntryId {
    /// The first number.
    pub millis: u64,
    /// The second number.
    pub sequence: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.sequence)
    }
}

/// A text that is not an id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not an id of an entry, such as 1700000000000-0")]
pub struct BadEntryId;

impl FromStr for EntryId {
    type Err = BadEntryId;

    fn from_str(text: &str) -> Result<Self, BadEntryId> {
        let (millis, sequence) = text.split_once('-').ok_or(BadEntryId)?;
        let number = |digits: &str| digits.parse().map_err(|_| BadEntryId);
        Ok(Self { millis: number(millis)?, sequence: number(sequence)? })
    }
}

/// A run of the server as a primary: its `run_id`, a slash, and its `master_replid`. A restarted server, another primary and a restored dump have
/// another one. The second half changes when a replica becomes the primary: one that was the primary before, and lost writes meanwhile, has another
/// run then, although its process is the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run(pub String);

/// The maker of an entry, and the entry's number among all that this machine has made since its start. An entry that was appended twice is known by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EntryMaker {
    /// The session of the machine: random for each start of the process.
    pub session: String,
    /// The number.
    pub number: u64,
}

/// Says what an entry tells the machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent {
    /// The stream begins here: a position always names an entry that exists.
    Begun,
    /// A purge.
    Purge(Order),
    /// An entry that this version cannot read, or that does not bear this cluster's seal. The machine that meets it treats it as a purge of
    /// everything (softly) if another version wrote it under the seal, and leaves it out if it bears no seal.
    Unreadable {
        /// Whether it bears the seal of this cluster.
        sealed: bool,
        /// The reason why it cannot be read.
        why: String,
    },
}

/// An entry of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The id of the entry.
    pub id: EntryId,
    /// The maker; `None` if that cannot be read.
    pub made: Option<EntryMaker>,
    /// The content.
    pub said: EntryContent,
}

/// Up to where a machine has applied the stream. It is kept with the disk tier, so that a restarted machine can go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The run of the server.
    pub run: Run,
    /// The last entry applied.
    pub id: EntryId,
    /// The maker of that entry, as ids could come again in a stream that was made anew.
    pub made: Option<EntryMaker>,
}
