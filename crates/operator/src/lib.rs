//! Commands that talk to a running Seawall: each asks its admin API, and says in words what came of it.
//!
//! | module | command |
//! |---|---|
//! | [`status`] | `seawall status` |
//! | [`purge`] | `seawall purge` |
//! | [`explain`] | `seawall explain` |
//! | [`warm`] | `seawall warm`: also asks for pages, through the listeners that the server names |
//! | [`top`] | `seawall top` |
//! | [`log`] | `seawall log` |
//! | [`reload`] | `seawall reload` |
//! | [`certificates`] | `seawall certificates` |
//! | [`cluster`] | `seawall cluster` |
//! | [`alerts`] | `seawall alerts` |
//!
//! Absent from this room: the server, the cache and the configuration. Whoever calls gives an address and a token.

pub mod address;
pub mod admin_client;
pub mod alerts;
pub mod certificates;
pub mod cluster;
pub mod explain;
pub mod foreign;
pub mod log;
pub mod purge;
pub mod reload;
pub mod status;
pub mod terminal;
pub mod top;
mod units;
pub mod warm;

pub use admin_client::{AdminClient, AdminError};
