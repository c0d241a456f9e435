//! Keeps what happened, counted in bounded memory: sketches of what leads, series of seconds and minutes, the last requests that were not
//! plain hits, and alerts.
//!
//! Absent from this room: sockets, tasks, the clock (`now` is an argument), the cache. It knows requests as values, and keeps no client's address, no
//! value of a cookie and no value of a query parameter.
//!
//! Each site has a lock of its own, so that what one site's strangers do does not delay another's, and places of its own in each list, so that they
//! do not push anything out there. Counts are sums of this period and the one before ([`PERIOD`]): what was mended is not blamed for ever.

mod address;
mod agents;
pub mod alerts;
mod amount;
mod disk;
mod errors;
mod facts;
pub mod filter;
mod insight;
mod keys;
mod leaders;
mod memory;
mod names;
mod outages;
mod reasons;
mod recent;
mod referrers;
mod remedies;
mod series;
mod shown;
mod site;
mod sketch;
mod text;
mod totals;

pub use facts::{BUCKET_MICROS, BUCKETS, CLASSES, CacheResult, CookiePart, EndedRequest, InVain, RESULTS, Row, SampledHit, Span, Sum};
pub use filter::{Filter, FilterError};
pub use insight::{Insight, PERIOD, SITES_MAX};
pub use memory::MEMORY_MAX;

/// The reason why an account on disk cannot be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file is not an account of Seawall's.
    #[error("it is not an account of what was seen")]
    NotOurs,
    /// Another version of Seawall wrote it.
    #[error("it has version {0}, which this Seawall does not read")]
    Version(u32),
    /// It is damaged.
    #[error("it is damaged")]
    Damaged,
}
