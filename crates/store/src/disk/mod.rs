//! The disk tier: stored responses that outlive the process and the memory tier.
//!
//! ```text
//! seawall-cache  lock  secret  sites  purges     what the folder is, whose, and what was purged (folder.rs, sites.rs, purge_log.rs)
//! objects/packs/<number>                         many small stored responses (packs.rs)
//! objects/<xx>/<key hash>-<sequence>             one file per larger one (format.rs); all of them are listed in memory (index.rs)
//! tmp/                                           what is being written
//! ```
//!
//! The store decides, this obeys: what is stored in memory is written here as well, what is replaced or purged there is unlinked here, and
//! what memory has lost is read back. All of it on threads of its own (`io.rs`); between them and a worker stands a [mark] on each
//! response.
//!
//! **Nothing stored is synced.** `kill -9` cannot hurt what the system has in its memory, and what is not whole has no end that fits it.
//! What a power cut tears, the checksums find. An fsync per response would cost more than fetching it again.
//!
//! **Errors of the disk are nobody's errors.** A file that cannot be read is a miss; a disk that takes nothing leaves the memory tier
//! alone, says so once, and is tried again now and then.

pub(crate) mod folder;
pub(crate) mod format;
pub(crate) mod index;
pub(crate) mod io;
pub(crate) mod load;
pub(crate) mod mark;
pub(crate) mod packs;
pub(crate) mod purge_log;
pub(crate) mod sites;
pub(crate) mod tier;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

pub use sites::{NumbersSpent, SiteNumber, SiteNumbers};

/// The name of the purge log.
const PURGES: &str = "purges";

/// The options of a store's disk tier.
#[derive(Clone)]
pub struct DiskOptions {
    /// The folder. It is created if missing; else it must be empty or a cache of ours.
    pub dir: PathBuf,
    /// The most bytes of files, in whole blocks of 4 KiB.
    pub size_max: u64,
    /// The most stored responses, at some 150 bytes of memory each. To keep to that, a file counts with at least `size_max / objects_max` bytes.
    pub objects_max: usize,
    /// Whether small responses share files, where the file system can cut a part out of one.
    pub packs: bool,
    /// A function that is told what an operator should know: once per event, from any thread, never for each response.
    pub report: Arc<dyn Fn(&Trouble) + Send + Sync>,
}

impl DiskOptions {
    /// Creates options for a folder of so many bytes, with room for 250,000 responses (38 MB of memory if there are that many), that report to
    /// nobody.
    #[must_use]
    pub fn new(dir: PathBuf, size_max: u64) -> Self {
        Self { dir, size_max, objects_max: 250_000, packs: true, report: Arc::new(|_| {}) }
    }
}

impl fmt::Debug for DiskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskOptions").field("dir", &self.dir).field("size_max", &self.size_max).finish_non_exhaustive()
    }
}

/// An event of the disk tier that an operator should know. None of them keeps the server from serving.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Trouble {
    /// The folder cannot be used.
    #[error("{} cannot be used for stored responses ({error}): they are kept in memory alone", dir.display())]
    Unusable {
        /// The folder.
        dir: PathBuf,
        /// The error.
        error: String,
    },
    /// The folder holds something else.
    #[error("{} is not a cache of Seawall's and not empty, so it is left alone: stored responses are kept in memory alone", dir.display())]
    NotOurs {
        /// The folder.
        dir: PathBuf,
    },
    /// Another process uses it.
    #[error("another process uses {}: stored responses are kept in memory alone; give each its own folder", dir.display())]
    InUse {
        /// The folder.
        dir: PathBuf,
    },
    /// The earlier content could not be used.
    #[error("the stored responses in {} were given up: {why}", dir.display())]
    Emptied {
        /// The folder.
        dir: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// A response could not be written.
    #[error("{} takes no more stored responses ({error}): new ones are kept in memory alone until it does", dir.display())]
    Failing {
        /// The folder.
        dir: PathBuf,
        /// The error.
        error: String,
    },
    /// Responses can be written again.
    #[error("{} takes stored responses again", dir.display())]
    Recovered {
        /// The folder.
        dir: PathBuf,
    },
}

/// The state of the disk tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskState {
    /// There is no disk tier.
    #[default]
    Off,
    /// The disk works.
    Working,
    /// The disk is full.
    Full,
    /// The disk is read-only.
    ReadOnly,
    /// The disk fails in another way.
    Failing,
}

/// The tiers that a resource is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Whether it is in memory.
    pub memory: bool,
    /// Whether its newest variant is on the disk, whole and under its final name: it then survives the process.
    pub disk: bool,
    /// The bytes of its files, in whole blocks.
    pub disk_bytes: u64,
}
