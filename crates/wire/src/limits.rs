//! The bounds of a request head.

/// The most field lines that a head may have, whatever is configured: the parser's table is on the stack (32 bytes a field).
pub(crate) const FIELDS_CEILING: usize = 256;

/// The limits of how large a request may be. What is beyond a limit is refused with the status that stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of a head: request line and fields. More is 431.
    pub header_bytes: usize,
    /// Field lines of a head. More is 431. At most 256 count.
    pub header_fields: usize,
    /// Bytes of the request-target. More is 414.
    pub target_bytes: usize,
    /// Bytes of content that a head may announce. More is 413.
    pub body_bytes: u64,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { header_bytes: 32 * 1024, header_fields: 100, target_bytes: 8 * 1024, body_bytes: 1 << 30 }
    }
}
