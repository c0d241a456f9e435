//! The facts that this room is told: one request that has ended, one hit of a sample, and the sums of one second.

use std::time::Duration;

/// Says what the cache did for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheResult {
    /// It answered with a fresh stored response.
    Hit,
    /// It answered with a stale one, which is refreshed meanwhile.
    Updating,
    /// It answered with a stale one, as the origin failed.
    Stale,
    /// The origin said that what is stored is still right.
    Revalidated,
    /// The stored response was stale, and the origin answered anew.
    Expired,
    /// Nothing was stored that fits, and the origin answered.
    Miss,
    /// It was not asked.
    Bypass,
    /// The message was refused before it was a request.
    Refused,
    /// The request never got to it.
    #[default]
    None,
}

/// All results of the cache, in the order of the columns of [`Row::sums`].
pub const RESULTS: [CacheResult; 9] = {
    use CacheResult::{Bypass, Expired, Hit, Miss, None, Refused, Revalidated, Stale, Updating};
    [Hit, Updating, Stale, Revalidated, Expired, Miss, Bypass, Refused, None]
};

/// The names of [`RESULTS`], in their order.
pub(crate) const RESULT_NAMES: [&str; RESULTS.len()] =
    ["hit", "updating", "stale", "revalidated", "expired", "miss", "bypass", "refused", "none"];

impl CacheResult {
    /// Returns the name, as it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        RESULT_NAMES[self.place()]
    }

    /// Returns the place in [`RESULTS`].
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    /// Returns whether the response waited for the origin.
    pub(crate) const fn is_fetched(self) -> bool {
        matches!(self, Self::Revalidated | Self::Expired | Self::Miss | Self::Bypass)
    }
}

/// The classes of content, by the names and in the order of the columns of [`Row::sums`].
pub const CLASSES: [&str; 8] = ["document", "feed", "script", "style", "picture", "media", "api", "other"];

/// The upper bounds of the buckets in which durations are counted, in microseconds. One bucket without a bound follows.
pub const BUCKET_MICROS: [u64; 20] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];

/// The number of buckets.
pub const BUCKETS: usize = BUCKET_MICROS.len() + 1;

/// A request that has ended and was not a plain hit.
///
/// All of it is borrowed: what is kept is copied, shortened, without values of query parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndedRequest<'a> {
    /// The time at which it ended, in milliseconds since the epoch.
    pub at: u64,
    /// The id of the request, as the access log has it; empty if it has none.
    pub id: &'a str,
    /// The trace of the request, 32 hexadecimal digits; empty if it has none.
    pub trace: &'a str,
    /// The number of its site, as in [`Insight::set_sites`](crate::Insight::set_sites); `None` if it reached none.
    pub site: Option<u16>,
    /// `https` or `http`.
    pub scheme: &'a str,
    /// The host that it asked for.
    pub host: &'a str,
    /// The method of the request.
    pub method: &'a str,
    /// Path and query as they were asked for. The values of the query's parameters are hidden here.
    pub target: &'a str,
    /// `1.0`, `1.1`, `2.0` or `3.0`.
    pub version: &'a str,
    /// The status that was sent.
    pub status: u16,
    /// The result at the cache.
    pub result: CacheResult,
    /// The rule or the failure that decided, without a cookie's name; `cold` where nothing was stored yet; empty if none did.
    pub rule: &'a str,
    /// The reason why the origin was asked, where `rule` says something else; otherwise empty, or `rule`.
    pub reason: &'a str,
    /// The name of the cookie, parameter or field that it was; empty if that is not known.
    pub detail: &'a str,
    /// The part that a cookie had, if `detail` is the name of one.
    pub cookie: Option<CookiePart>,
    /// The class of its content, one of [`CLASSES`].
    pub class: &'static str,
    /// Whether it shared another request's way to the origin.
    pub collapsed: bool,
    /// Whether the response reached its end.
    pub complete: bool,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// The time from its arrival to its end.
    pub took: Duration,
    /// The time that the origin took until the head of its response; `None` if it was not asked for this request.
    pub origin_time: Option<Duration>,
    /// `User-Agent`, as it was sent.
    pub agent: &'a str,
    /// `Referer`, as it was sent.
    pub referrer: &'a str,
}

/// The way in which a cookie kept something from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookiePart {
    /// The request carried it, and passed or was not answered from the cache for that.
    Carried,
    /// The response set it, and was not stored for that.
    Set,
}

/// A fetch that has ended after the client that began it had left. The request itself was told of when its client left.
#[derive(Clone, Copy, Debug, Default)]
pub struct InVain<'a> {
    /// The number of its site.
    pub site: u16,
    /// `https` or `http`.
    pub scheme: &'a str,
    /// The host that it asked for.
    pub host: &'a str,
    /// Path and query as the origin was asked for them.
    pub target: &'a str,
    /// The rule that decided, without a cookie's name, or the reason why the origin was asked.
    pub rule: &'a str,
    /// The name of the cookie that it was; empty if that is not known.
    pub detail: &'a str,
    /// The part that the cookie had, if `detail` is the name of one.
    pub cookie: Option<CookiePart>,
    /// The time that the origin took until the head of its response.
    pub origin_time: Duration,
}

/// A plain hit that stands for several.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampledHit<'a> {
    /// The number of its site.
    pub site: Option<u16>,
    /// `https` or `http`.
    pub scheme: &'a str,
    /// The host that it asked for.
    pub host: &'a str,
    /// Path and query as they were asked for.
    pub target: &'a str,
    /// The class of its content, one of [`CLASSES`].
    pub class: &'static str,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// `User-Agent`, as it was sent.
    pub agent: &'a str,
    /// `Referer`, as it was sent.
    pub referrer: &'a str,
    /// The number of hits that it stands for: one of so many is told.
    pub stands_for: u32,
}

/// Sums over the requests of one result and one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Requests that have ended.
    pub requests: u64,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// The time that origins took for them until the heads of their responses, in microseconds.
    pub origin_micros: u64,
}

/// Counts what happened at one site in one second: differences, not sums since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Sums by result ([`RESULTS`]) and class ([`CLASSES`]). Those of `refused` are not requests: they only stand in `by_result`.
    pub sums: [[Sum; CLASSES.len()]; RESULTS.len()],
    /// The number of responses by result and by the bucket of the time that they took ([`BUCKET_MICROS`]).
    pub latencies: [[u64; BUCKETS]; RESULTS.len()],
    /// The time that the slowest of them took, by result, in microseconds; zero: that is not known.
    pub slowest: [u64; RESULTS.len()],
    /// Requests whose responses had a status of 500 and above.
    pub server_errors: u64,
    /// Requests whose responses had a status of 400 to 499, or whose clients left before there was one.
    pub client_errors: u64,
    /// Requests that were sent to the origin: those in the background, too, and those that were given up.
    pub origin_requests: u64,
    /// The requests that were sent to the origin and got no response.
    pub origin_failures: u64,
    /// The time that they took until the heads of their responses, or until they were given up, in microseconds.
    pub origin_micros: u64,
}

/// A stretch of time that is shown at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The last hour, in seconds.
    Hour,
    /// The last day, in minutes.
    Day,
    /// The last week, in steps of ten minutes.
    Week,
    /// The last week, in minutes: as far as the bound on memory has left them.
    WeekInMinutes,
}

impl Span {
    /// Finds a span by its name in the admin API: `hour`, `day`, `week`, `week-in-minutes`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            "week-in-minutes" => Self::WeekInMinutes,
            _ => return None,
        })
    }
}
