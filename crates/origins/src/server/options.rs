//! The options that say how a server is reached, and how long it is waited for.

use std::{fmt, sync::Arc, time::Duration};

use super::{Address, HealthOptions, health::Health};

/// Says how to reach a server and how long to wait for it. [`ServerOptions::new`] has the defaults.
#[derive(Clone)]
pub struct ServerOptions {
    addresses: Vec<Address>,
    /// The health of each address, as all workers together know it.
    known: Arc<[Health]>,
    /// The client side of TLS, for https addresses: see [`tls_config`](super::tls_config).
    pub tls: Arc<rustls::ClientConfig>,
    /// The time for the name, the connection and TLS together: 5 s.
    pub connect_timeout: Duration,
    /// The time from the last byte of the request to the whole response head: 60 s. It stands still while a client pauses in its upload.
    pub first_byte_timeout: Duration,
    /// The longest pause in a response body: 60 s. Time in which nobody reads it does not count.
    pub between_bytes_timeout: Duration,
    /// Idle connections kept per worker and address: 256, as many as requests there may be at once by default. With fewer, a crowd on pages
    /// that are passed through opens a connection for each request; more cost the server.
    pub pool_idle_max: usize,
    /// The time that an idle connection is kept, unless the server names a shorter time: 55 s, below the minute after which many servers
    /// and firewalls forget one.
    pub pool_idle_timeout: Duration,
    /// The largest response head: 64 KiB.
    pub response_header_bytes_max: usize,
    /// The most field lines in a response head: 100, which are read on the stack; a higher number costs two allocations per response.
    pub response_fields_max: usize,
    /// The rules by which an address counts as down.
    pub health: HealthOptions,
}

impl ServerOptions {
    /// Returns the defaults for a server at these addresses; there must be one at least. Several take turns, and stand in for each other
    /// when one is down.
    #[must_use]
    pub fn new(addresses: Vec<Address>, tls: Arc<rustls::ClientConfig>) -> Self {
        Self {
            known: addresses.iter().map(|_| Health::default()).collect(),
            addresses,
            tls,
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(60),
            between_bytes_timeout: Duration::from_secs(60),
            pool_idle_max: 256,
            pool_idle_timeout: Duration::from_secs(55),
            response_header_bytes_max: 64 * 1024,
            response_fields_max: 100,
            health: HealthOptions::default(),
        }
    }

    /// Returns the addresses at which the server listens.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns each address, and whether requests go there as to any other, by what all workers know.
    pub fn known(&self) -> impl Iterator<Item = (&Address, bool)> {
        self.addresses.iter().zip(&*self.known).map(|(address, health)| (address, health.is_up()))
    }

    /// Notes that somebody has connected to an address without a request.
    pub fn reached(&self, address: &str) {
        for (known, health) in self.addresses.iter().zip(&*self.known) {
            if known.to_string() == address {
                health.connected(known, None);
            }
        }
    }

    pub(super) fn health_of(&self, address: usize) -> &Health {
        &self.known[address]
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
