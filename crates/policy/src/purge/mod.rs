//! Purges: the order that everybody makes who wants something purged, and the dialects in which plugins ask for one.

mod dialect;

pub use dialect::{Dialect, KEYS_MAX, Misunderstood, PurgeRequest, PurgeWhat};
pub(crate) use dialect::{below, is_purge};
