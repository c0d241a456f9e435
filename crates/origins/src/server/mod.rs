//! What any server behind a site needs, whatever it is spoken to in: where it listens, how it is connected to, what may be asked of it at
//! once, and whether it is there.

mod address;
pub(crate) mod connect;
pub(crate) mod health;
pub(crate) mod limit;
mod tls;

pub use address::{Address, AddressError};
pub use health::{BACKOFF_MAX, HealthOptions};
pub use limit::{Budget, Permit};
pub use tls::tls_config;
#[cfg(test)]
pub(crate) use tls::with_roots;
