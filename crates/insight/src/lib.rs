//! What happened, counted in bounded memory: sketches of what leads, series of seconds and minutes, the last requests that were not plain hits, and
//! alerts.
//!
//! Absent from this room: sockets, tasks, the clock (`now` is an argument), the cache. It knows requests as values, and keeps no client's address, no
//! value of a cookie and no value of a query parameter.

mod facts;
pub mod filter;

use admin_api::{Moment, PurgeLine, Recent, Seen, Series};

pub use facts::{BUCKET_MICROS, BUCKETS, CLASSES, CookiePart, Ended, RESULTS, Row, SampledHit, Span, Sum};
pub use filter::{Filter, FilterError};

/// Bytes of memory that all of it takes at most, whatever strangers send.
pub const MEMORY_MAX: u64 = 8 << 20;

/// Sites that are counted apart. Those beyond are only counted with all together.
pub const SITES_MAX: usize = 256;

/// The account of what happened. All workers share one; what they tell it takes a lock of one site for a microsecond.
#[derive(Debug, Default)]
pub struct Insight {}

impl Insight {
    /// Begins to count at this time, in milliseconds since the epoch.
    #[must_use]
    pub fn new(now: u64) -> Self {
        let _ = now;
        Self {}
    }

    /// Takes up the account where [`to_bytes`](Self::to_bytes) left it.
    ///
    /// # Errors
    /// When the bytes are damaged, or another version's. The account has to begin anew then.
    pub fn from_bytes(bytes: &[u8], now: u64) -> Result<Self, Unreadable> {
        let _ = bytes;
        Ok(Self::new(now))
    }

    /// Returns its form on disk: with a version and a checksum.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Sets the sites, by number and name, in the order of the configuration. What was counted for a name stays with that name, whatever number it
    /// gets. Due at the start, after [`from_bytes`](Self::from_bytes) too, and whenever the configuration changes.
    pub fn set_sites(&self, sites: &[(u16, &str)]) {
        let _ = sites;
    }

    /// Counts a request that has ended and was not a plain hit.
    pub fn ended(&self, ended: &Ended<'_>) {
        let _ = ended;
    }

    /// Counts a hit of a sample.
    pub fn sampled_hit(&self, hit: &SampledHit<'_>) {
        let _ = hit;
    }

    /// Takes what happened in the second that ends now, in seconds since the epoch: a row for each site in which something happened, and one without
    /// a site for requests that reached none. Due each second, with no rows if nothing happened: a second without a call is one in which
    /// Seawall did not run.
    pub fn second(&self, now: u64, rows: &[(Option<u16>, Row)]) {
        let _ = (now, rows);
    }

    /// Takes a purge that was carried out.
    pub fn purged(&self, purge: PurgeLine) {
        let _ = purge;
    }

    /// Notes that the origin of a site cannot be reached since `at`, in milliseconds since the epoch. Once for each outage is enough; more do no harm.
    pub fn origin_is_down(&self, site: u16, address: &str, at: u64) {
        let _ = (site, address, at);
    }

    /// Notes that the origin of a site could be reached again at this time. Without an outage it does nothing.
    pub fn origin_is_up(&self, site: u16, address: &str, at: u64) {
        let _ = (site, address, at);
    }

    /// Returns what was counted, for one site by its name or for all together. `alerts` is left empty. `now` is in milliseconds since the epoch.
    /// `None`: there is no such site.
    #[must_use]
    pub fn seen(&self, site: Option<&str>, now: u64) -> Option<Seen> {
        let _ = (site, now);
        Some(Seen::default())
    }

    /// Returns what happened when, up to `now` in seconds since the epoch. `None`: there is no such site.
    #[must_use]
    pub fn series(&self, site: Option<&str>, span: Span, now: u64) -> Option<Series> {
        let _ = (site, span, now);
        Some(Series::default())
    }

    /// Returns the sums of [`COLUMNS`](admin_api::COLUMNS) from one time to another, in seconds since the epoch, from the finest steps that are
    /// left. The percentiles are left zero: they cannot be added. `None`: there is no such site, or Seawall did not run then.
    #[must_use]
    pub fn sum(&self, site: Option<&str>, from: u64, until: u64) -> Option<[u64; admin_api::COLUMNS.len()]> {
        let _ = (site, from, until);
        None
    }

    /// Returns the last requests that were not plain hits: those after a number that a filter lets through, the oldest first. If there are more than
    /// `limit`, those after `number` come first where `after` is above zero (a reader follows), else the last ones.
    #[must_use]
    pub fn recent(&self, after: u64, filter: Option<&Filter>, limit: usize) -> Recent {
        let _ = (after, filter, limit);
        Recent::default()
    }

    /// Returns the last second, with the requests after a number. Left empty: `connections`, `waiting`, `memory`, `alerts`.
    #[must_use]
    pub fn moment(&self, after: u64) -> Moment {
        let _ = after;
        Moment::default()
    }

    /// Returns the bytes of memory that it takes, and their bound.
    #[must_use]
    pub fn memory(&self) -> (u64, u64) {
        (0, MEMORY_MAX)
    }
}

/// Why an account on disk cannot be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not one.
    #[error("it is no account of what was seen")]
    NotOurs,
    /// Another version of Seawall wrote it.
    #[error("it has version {0}, which this Seawall does not read")]
    Version(u32),
    /// It is damaged.
    #[error("it is damaged")]
    Damaged,
}
