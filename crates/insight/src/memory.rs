//! The bound on memory, and its parts.
//!
//! | part | at most |
//! |---|---|
//! | series of all sites ([`bytes_max`](crate::series::bytes_max)) | 3 MiB, with 256 sites 1.7 MiB |
//! | the last 4,096 requests ([`recent`](crate::recent)) | 1.2 MiB |
//! | sums and latencies of 256 sites ([`totals`](crate::totals)) | 0.5 MiB |
//! | reasons and errors of 256 sites, and their examples | 1.1 MiB |
//! | pages that missed, pages that are read, cookies, agents, referrers of 256 sites | 1.6 MiB |
//! | sketches of all others | 0.7 MiB |
//!
//! A test fills all of it with the longest texts and 256 sites.

/// Bytes of memory that all of it takes at most, whatever strangers send.
pub const MEMORY_MAX: u64 = 8 << 20;

/// The bytes that an allocator takes beside each text.
const OVERHEAD: usize = 16;

/// Returns the bytes that a text of its own takes.
pub(crate) const fn of_text(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len() + OVERHEAD }
}
