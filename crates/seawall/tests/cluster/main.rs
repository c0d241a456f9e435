//! Several machines that act as one, judged from outside.
//!
//! The real binary runs three times, each in a network namespace of its own, around a real Valkey or Redis and in front of an origin whose
//! pages carry a version number. Readers ask all machines all the time and know, for each page, the last version of which a purge was said to
//! hold everywhere: an answer that was begun after that and shows an older one is wrong. Beside that, each fault is a test of its own, under
//! load and while everybody purges; it prints what was served, how stale it was, what the purges said, and how long it took until all was normal.
//!
//! `make test` runs what takes seconds; `make spec-cluster` (`SEAWALL_CLUSTER_LONG=1`) also what takes minutes. Network namespaces need root.
//! `SEAWALL_CLUSTER_ENGINE=redis` takes a Redis instead of a Valkey, `SEAWALL_CLUSTER_BIN` another binary than the one just built.

mod bounds;
mod clocks;
mod engine;
mod exact;
mod faults;
mod http;
mod itself;
mod ledger;
mod limits;
mod load;
mod machine;
mod network;
mod origin;
mod process;
mod random;
mod scene;
mod sites;
mod tier;

/// Returns whether tests run that take minutes.
fn long() -> bool {
    std::env::var_os("SEAWALL_CLUSTER_LONG").is_some()
}
