//! The parts that any server behind a site needs, whatever protocol it speaks: where it listens and how it is connected to, how much is
//! asked of it at once, which of its addresses are up, and the connections that wait for the next request.
//!
//! Absent from here: every protocol. A client of one (`http`) brings its connections, and what is said on them.

mod address;
mod connect;
mod health;
mod limit;
mod options;
mod pool;
mod tls;

pub use address::{Address, AddressError};
pub(crate) use connect::Stream;
pub use health::{BACKOFF_MAX, HealthOptions};
pub use limit::{Budget, Permit};
pub use options::ServerOptions;
pub use pool::AddressStatus;
pub(crate) use pool::{Connection, Failed, Lease, Pool};
pub use tls::tls_config;
#[cfg(test)]
pub(crate) use tls::with_roots;
