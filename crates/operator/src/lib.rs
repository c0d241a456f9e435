//! Commands that talk to a running Seawall: each asks its admin API, and says in words what came of it.
//!
//! Absent from this room: the server, the cache and the configuration. Whoever calls gives an address and a token.

pub mod admin_client;
pub mod purge;

pub use admin_client::{AdminClient, AdminError};
