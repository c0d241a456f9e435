//! Several machines that act as one: a purge holds everywhere when it is acknowledged.
//!
//! The engine between them is Valkey or Redis. What a machine believes of the others, and when it may serve what it has stored, is decided by
//! values and pure functions ([`machine`]); time is an argument there. [`link`] alone knows the server and its protocol.
//!
//! - **The stream.** Every purge is an entry of one stream. All machines apply all entries, in its order.
//! - **The lease.** A machine serves stored pages as fresh only while it has a lease: for so long after the *sending* of a [`link::Round`] that
//!   found it at the end of the stream. Without one it is *in doubt*: what it has stored is validated before it is shown.
//! - **The acknowledgement.** Whoever purges knows, by the same step that appended the entry, which machines could have a lease. The purge holds
//!   everywhere when each of them has confirmed it, or when the lease has passed since, on the purger's own monotonic clock. No two clocks
//!   are ever compared.
//! - **Continuity.** A machine goes on from where it was only if the last entry that it applied is still there, in a server that was not started
//!   since. Otherwise everything that it stored before its next lease is in doubt.

mod cluster;
pub mod limits;
pub mod link;
mod local;
pub mod machine;
mod run;
pub mod shelf;
pub mod stream;
pub mod tickets;
pub mod tier;

pub use self::{
    cluster::{Cluster, Options},
    local::Local,
};
