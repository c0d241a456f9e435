//! Every bound of the front, with its worst case.

use std::time::Duration;

/// The most fields a head may have, whatever is configured: the parser's table is on the stack (32 bytes a field).
pub(crate) const FIELDS_CEILING: usize = 256;

/// What a client may ask of us, in bytes, numbers and time.
///
/// Worst case in memory: `connections` times (`header_bytes` while a head is incomplete, under 1 KiB while idle), plus one read buffer
/// of 64 KiB for each worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all workers together; one more is answered 503 and closed.
    pub connections: usize,
    /// Connections from one address (IPv6: one /64); loopback and trusted proxies are exempt.
    pub connections_per_address: usize,
    /// A request head: request line and fields. More is 431.
    pub header_bytes: usize,
    /// Field lines in a request. More is 431. At most 256.
    pub header_fields: usize,
    /// The request-target. More is 414.
    pub target_bytes: usize,
    /// The content of a request. More is 413.
    pub body_bytes: u64,
    /// From the first byte of a head to its end; then 408.
    pub header_timeout: Duration,
    /// Between two pieces of a request's content; then 408.
    pub body_timeout: Duration,
    /// How long a client may take nothing of a response; then the connection is closed.
    pub write_timeout: Duration,
    /// How long a connection may wait for its next request.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            connections_per_address: 256,
            header_bytes: 32 * 1024,
            header_fields: 100,
            target_bytes: 8 * 1024,
            body_bytes: 1 << 30,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
        }
    }
}
