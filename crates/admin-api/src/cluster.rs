//! What is said of the other machines of a cluster: how far a purge went, and how each machine is doing.

use serde::{Deserialize, Serialize};

/// How far a purge went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// Whether no machine shows as fresh what the purge covered. It is never `true` unless that is certain.
    pub everywhere: bool,
    /// The machines that have carried it out, this one first, by name.
    pub confirmed: Vec<String>,
    /// The machines that did not answer, and whose lease has passed since: they validate what they have stored before they show it.
    pub expired: Vec<String>,
    /// The machines of which neither is known. If even their names are unknown, it is empty and `why` says so.
    pub missing: Vec<String>,
    /// Why it is not known to hold everywhere, as a sentence without a full stop, and what happens next.
    pub why: Option<String>,
    /// Milliseconds from the order to this answer.
    pub took_ms: u64,
}

/// How the cluster is doing, as one of its machines sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterState {
    /// The name of the cluster.
    pub cluster: String,
    /// The name of this machine.
    pub machine: String,
    /// The server that it uses, without secrets, such as `redis://10.0.0.5:6379`, and the software's name and version.
    pub engine: String,
    /// Whether it has a lease: then it shows what it has stored. Otherwise it is in doubt, and validates that first.
    pub leased: bool,
    /// Why it has none, as a sentence without a full stop.
    pub why: Option<String>,
    /// Milliseconds since it last had a lease; 0 if it has one.
    pub in_doubt_ms: u64,
    /// How often it has lost its lease since its start.
    pub doubts: u64,
    /// How often it could not go on from where it was, so that everything stored was in doubt.
    pub breaks: u64,
    /// The last entry of the stream that it has applied.
    pub position: String,
    /// Entries that it has applied since its start.
    pub applied: u64,
    /// Entries that it has left out, as they did not bear the cluster's seal or could not be read, since its start.
    pub refused: u64,
    /// Its own purges that are not known to hold everywhere, and are appended again.
    pub pending: u64,
    /// Every machine of the cluster, this one included, by name.
    pub machines: Vec<MachineState>,
    /// Whether another machine has the same name; this one then has no lease.
    pub name_is_taken: bool,
    /// The shared tier, if there is one.
    pub tier: Option<TierState>,
    /// The limits that the machines share.
    pub limits: Option<LimitsState>,
}

/// A machine of the cluster, as it said itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineState {
    /// Its name.
    pub name: String,
    /// Its version of Seawall.
    pub version: String,
    /// Whether it said that it has a lease.
    pub leased: bool,
    /// The last entry of the stream that it has applied.
    pub position: String,
    /// How many entries that is behind the stream's end; `None` if that cannot be known.
    pub behind: Option<u64>,
    /// Milliseconds since it was last seen to change, on the clock of the machine that tells this.
    pub seen_ms: u64,
}

/// The limits that the machines of a cluster share, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsState {
    /// Whether it hears nothing of the others: it takes its part of each limit then.
    pub apart: bool,
    /// How many machines share the limits, this one included, when it last knew.
    pub machines: u32,
    /// Exchanges with the others since its start.
    pub answered: u64,
    /// Exchanges without an answer.
    pub failed: u64,
    /// The number of values that it has refused, as they did not bear the cluster's seal or could not be read.
    pub refused: u64,
    /// The places at the origins that they share.
    pub origins: Vec<OriginPlaces>,
}

/// A machine's places at an origin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginPlaces {
    /// The site, and the path if it answers for a part of it.
    pub origin: String,
    /// The places of all machines together.
    pub limit: u64,
    /// The places that this machine may use now.
    pub granted: u64,
    /// Its requests that are there or wait.
    pub needed: u64,
    /// Whether this machine takes its part, as the server does not answer.
    pub apart: bool,
}

/// The shared tier of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TierState {
    /// Where it is: `valkey` or the address of a bucket.
    pub place: String,
    /// Responses that were found there.
    pub hits: u64,
    /// Questions without an answer in time or at all.
    pub misses: u64,
    /// Responses that were written.
    pub written: u64,
    /// Responses that were found and not used: damaged, of another version, purged since.
    pub refused: u64,
    /// Whether it is left alone for a while, because it was too slow or failed.
    pub open: bool,
    /// Why it cannot be used, if that is known, as a sentence without a full stop.
    pub why: Option<String>,
}
