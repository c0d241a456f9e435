//! The bounds that clients are held to, with their worst case.

use std::time::Duration;

use wire::HeadLimits;

use crate::connection::Allowance;

/// The limits of what a client may ask of us, in bytes, numbers and time.
///
/// Worst case in memory: `connections` times (`header_bytes` while a head is incomplete, under 1 KiB while idle), plus one read buffer
/// of 64 KiB for each worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most connections of all workers together; one more is answered 503 and closed.
    pub connections: usize,
    /// The most connections from one address (IPv6: one /64); loopback and trusted proxies are exempt.
    pub connections_per_address: usize,
    /// The largest request head: request line and fields. More is 431.
    pub header_bytes: usize,
    /// The most field lines in a request. More is 431. At most 256.
    pub header_fields: usize,
    /// The longest request-target. More is 414.
    pub target_bytes: usize,
    /// The largest content of a request. More is 413.
    pub body_bytes: u64,
    /// The time that a head may take from its first byte to its end; then 408.
    pub header_timeout: Duration,
    /// The time for which a client may pause between two pieces of a request's content; then 408.
    pub body_timeout: Duration,
    /// The time for which a client may take nothing of a response; then the connection is closed.
    pub write_timeout: Duration,
    /// The time for which a connection may wait for its next request.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let HeadLimits { header_bytes, header_fields, target_bytes, body_bytes } = HeadLimits::default();
        Self {
            connections: 20_000,
            connections_per_address: 256,
            header_bytes,
            header_fields,
            target_bytes,
            body_bytes,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
        }
    }
}

/// The limits in time as the sweep counts them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowances {
    pub(crate) header: Allowance,
    pub(crate) write: Allowance,
    pub(crate) idle: Allowance,
    /// The time for which a closed connection may still send.
    pub(crate) linger: Allowance,
    /// The time for which an upgraded connection may be silent in both directions.
    pub(crate) tunnel: Allowance,
}

const LINGER: Duration = Duration::from_secs(2);
pub(crate) const TUNNEL_IDLE: Duration = Duration::from_hours(1);

impl Limits {
    /// Returns how often to look at deadlines: often enough that the shortest timeout is kept to within a quarter.
    pub(crate) fn sweep_interval(&self) -> Duration {
        let shortest = self.header_timeout.min(self.write_timeout).min(self.idle_timeout);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_millis(500))
    }

    /// Returns the limits of a request head.
    pub(crate) const fn head(&self) -> HeadLimits {
        HeadLimits {
            header_bytes: self.header_bytes,
            header_fields: self.header_fields,
            target_bytes: self.target_bytes,
            body_bytes: self.body_bytes,
        }
    }

    /// Returns the limits in time as the sweep counts them.
    pub(crate) fn allowances(&self) -> Allowances {
        let allow = |limit| Allowance::new(limit, self.sweep_interval());
        Allowances {
            header: allow(self.header_timeout),
            write: allow(self.write_timeout),
            idle: allow(self.idle_timeout),
            linger: allow(LINGER),
            tunnel: allow(TUNNEL_IDLE),
        }
    }
}
