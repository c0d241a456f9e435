//! What an operator sees of the traffic: the answers to `GET /seen`, `/series` and `/recent`, and the events of `GET /events`.
//!
//! No client's address, no value of a cookie and no value of a query parameter stands in any of them. Paths, agents, names of hosts and tags are what
//! strangers sent: text to be shown, never markup, and shortened.

use serde::{Deserialize, Serialize};

/// Columns of a [`Series`], in the order of a row of [`Moment`].
pub const COLUMNS: [&str; 14] = [
    "requests",
    "hits",
    "stale",
    "misses",
    "passes",
    "server_errors",
    "client_errors",
    "bytes",
    "hit_bytes",
    "origin_requests",
    "origin_failures",
    "origin_micros",
    "p50_micros",
    "p99_micros",
];

/// Answers `GET /seen?site=NAME`: sums since counting began, and what leads them. Without `site`: all sites together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// The time of the answer, in milliseconds since the epoch.
    pub at: u64,
    /// The time at which counting began, in milliseconds since the epoch. Restarts do not begin it anew.
    pub since: u64,
    /// The site that is shown; `None`: all together.
    pub site: Option<String>,
    /// The names of all sites, in the order of the configuration.
    pub sites: Vec<String>,
    /// Sums over everything.
    pub totals: Totals,
    /// Holds the same sums by what the cache did: `hit`, `updating`, `stale`, `revalidated`, `expired`, `miss`, `bypass`, `none`.
    pub by_result: Vec<Line>,
    /// Holds the same sums by class of content: `document`, `feed`, `script`, `style`, `picture`, `media`, `api`, `other`.
    pub by_class: Vec<Line>,
    /// How long responses took, by what the cache did.
    pub latencies: Vec<Latency>,
    /// The reasons why the origin was asked, those that cost most of its time first.
    pub reasons: Vec<Reason>,
    /// The pages that missed, those that cost most of the origin's time first.
    pub missed: Vec<PageLine>,
    /// The pages that are read most. Their counts are estimates of a sample.
    pub hot: Vec<PageLine>,
    /// The cookies that keep something from the cache, the worst first.
    pub cookies: Vec<CookieLine>,
    /// The programs that ask, by the name that they give themselves. Estimates of a sample.
    pub agents: Vec<NamedCount>,
    /// The hosts that readers come from. Estimates of a sample.
    pub referrers: Vec<NamedCount>,
    /// The errors that readers got or would have got, the most frequent first.
    pub errors: Vec<ErrorLine>,
    /// The last purges, the newest first.
    pub purges: Vec<PurgeLine>,
    /// The times at which a site's origin could not be reached, the newest first.
    pub outages: Vec<Outage>,
    /// The alerts that stand, and those that ended last.
    pub alerts: Vec<AlertLine>,
    /// What the counting takes: bytes of memory, and its bound.
    pub memory: (u64, u64),
}

/// Sums over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Requests that have ended.
    pub requests: u64,
    /// The requests that the cache answered without waiting for an origin: hit, updating, stale.
    pub hits: u64,
    /// The requests that asked the cache: all but those that passed (`bypass`) or never got to it (`none`).
    pub lookups: u64,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// The bytes of content that came from the cache.
    pub hit_bytes: u64,
    /// Requests that were sent to origins.
    pub origin_requests: u64,
    /// The requests that were sent to origins and got no response.
    pub origin_failures: u64,
    /// The time that origins took until the heads of their responses, in microseconds.
    pub origin_micros: u64,
    /// The time that they would have taken in addition without the cache, in microseconds: each hit at the mean of what its class costs the origin.
    pub saved_micros: u64,
    /// Responses with a status of 500 and above.
    pub server_errors: u64,
    /// Responses with a status of 400 to 499.
    pub client_errors: u64,
}

/// Sums over the requests that have something in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Names what they have in common.
    pub name: String,
    /// Requests that have ended.
    pub requests: u64,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// The time that origins took for them, in microseconds.
    pub origin_micros: u64,
}

/// Says how long responses took, in microseconds.
///
/// The percentiles are estimates from buckets that are wide above a second. None of them is longer than the slowest response took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// What the cache did.
    pub name: String,
    /// Responses that were counted.
    pub count: u64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// A reason why requests reached the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reason {
    /// The site.
    pub site: String,
    /// The rule, by the name that `Cache-Status` and `seawall explain` give it, such as `cookie` or `no-store`; `cold` where nothing was stored yet.
    pub rule: String,
    /// Which cookie, parameter or field it was, if that is known; else empty.
    pub detail: String,
    /// Requests.
    pub requests: u64,
    /// The time that they cost the origin, in microseconds.
    pub origin_micros: u64,
    /// The address of one of them, as `seawall explain` takes it.
    pub example: String,
    /// What would end it, in a sentence; empty if nothing should.
    pub remedy: String,
}

/// A page, and what was counted of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PageLine {
    /// The site.
    pub site: String,
    /// The address: scheme, host, path, and the names of its query parameters with `…` for their values.
    pub url: String,
    /// Requests.
    pub requests: u64,
    /// The most that this count may be too high by.
    pub error: u64,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// The time that it cost the origin, in microseconds.
    pub origin_micros: u64,
    /// The rule that decided most lately, as in [`Reason::rule`].
    pub rule: String,
}

/// A cookie that keeps something from the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CookieLine {
    /// The site.
    pub site: String,
    /// Its name, or how it begins.
    pub name: String,
    /// Requests that passed because they carried it.
    pub requests: u64,
    /// Responses that were not stored because they set it.
    pub answers: u64,
    /// The share of all requests for the site that it kept out, from 0 to 1.
    pub share: f64,
    /// The time that this cost the origin, in microseconds.
    pub origin_micros: u64,
    /// A page whose response sets it; empty if none was seen.
    pub set_by: String,
    /// The software that is known for it, such as `PHP sessions` or `WooCommerce`; empty if none is.
    pub known_for: String,
    /// What to do about it, in a sentence; empty if it is right as it is.
    pub remedy: String,
}

/// A name, and how often it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedCount {
    /// The name.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// The most that this count may be too high by.
    pub error: u64,
}

/// An error, and how often it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorLine {
    /// The site; empty for requests that reached none.
    pub site: String,
    /// The status that the reader got: below 500 if a stored page stood in.
    pub status: u16,
    /// The name of the failure, as `Proxy-Status` and `Cache-Status` have it; empty if the origin itself answered so.
    pub failure: String,
    /// Requests.
    pub requests: u64,
    /// The last of these, in milliseconds since the epoch.
    pub last: u64,
    /// The address of one of them.
    pub example: String,
}

/// A purge that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PurgeLine {
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// The site; empty if it covered all.
    pub site: String,
    /// Says who made the order, in words: `whoever has the admin token`, `Ghost, in an answer to an editor`, `a POST to /wp-comments-post.php`.
    pub by: String,
    /// Says what it covered, in words.
    pub covered: String,
    /// How many stored responses it covered; `None` if that was not counted.
    pub count: Option<u64>,
    /// Whether what it covered is never served again.
    pub hard: bool,
}

/// A time in which a site's origin could not be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outage {
    /// The site.
    pub site: String,
    /// The address of the origin.
    pub address: String,
    /// When it began, in milliseconds since the epoch.
    pub from: u64,
    /// When it ended; `None`: it lasts.
    pub until: Option<u64>,
}

/// An alert.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertLine {
    /// Its name: `origin-down`, `hit-ratio`, `certificate`, `disk`, `server-errors`.
    pub name: String,
    /// Names what it is about: a site, or a certificate; empty for the whole server.
    pub about: String,
    /// Says what is wrong, in a sentence.
    pub text: String,
    /// When it began, in milliseconds since the epoch.
    pub from: u64,
    /// When it ended; `None`: it stands.
    pub until: Option<u64>,
    /// The time since which all has been right while it still stands: it ends at that time if it stays so. `None`: it is wrong now, or nobody knows.
    pub right_since: Option<u64>,
}

/// Answers `GET /series?site=NAME&span=hour|day|week`: what happened when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// The site; `None`: all together.
    pub site: Option<String>,
    /// Seconds from one row to the next: 1, 60 or 600.
    pub step: u64,
    /// The time of the first row's beginning, in seconds since the epoch.
    pub from: u64,
    /// The end of the last second that is counted, in seconds since the epoch. The last row ends there, although its step may not be over.
    pub until: u64,
    /// The names of the columns: [`COLUMNS`].
    pub columns: Vec<String>,
    /// The rows, the oldest first. A row in which Seawall did not run is `None`.
    pub rows: Vec<Option<Vec<u64>>>,
}

/// Answers `GET /recent?after=NUMBER&where=EXPRESSION&limit=N`: the last requests that were not plain hits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    /// The number to ask after the next time.
    pub next: u64,
    /// How many requests after that number had left the list before they were asked for.
    pub lost: u64,
    /// The requests, the oldest first.
    pub requests: Vec<RequestLine>,
}

/// Says what is wrong with the expression of `GET /recent?where=EXPRESSION`, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadExpression(String);

impl BadExpression {
    /// Makes it of a message, which may have several lines.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Says what to do.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        "write it as in: status >= 500 or rule = cookie"
    }
}

impl std::fmt::Display for BadExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadExpression {}

/// A request that was not a plain hit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestLine {
    /// Its number, which rises.
    pub number: u64,
    /// When it ended, in milliseconds since the epoch.
    pub at: u64,
    /// Its id: `request_id` of its line in the access log.
    pub id: String,
    /// Its trace, 32 hexadecimal digits; empty if it has none.
    pub trace: String,
    /// The site; empty if it reached none.
    pub site: String,
    /// `https` or `http`.
    pub scheme: String,
    /// The host that it asked for.
    pub host: String,
    /// Its method.
    pub method: String,
    /// Its path, and the names of its query parameters with `…` for their values.
    pub path: String,
    /// `1.0`, `1.1`, `2.0` or `3.0`.
    pub version: String,
    /// The status that was sent.
    pub status: u16,
    /// What the cache did, as in [`Seen::by_result`].
    pub result: String,
    /// The rule that decided, as in [`Reason::rule`]; empty if none did.
    pub rule: String,
    /// As [`Reason::detail`].
    pub detail: String,
    /// The class of its content, as in [`Seen::by_class`].
    pub class: String,
    /// Whether it shared another request's way to the origin.
    pub collapsed: bool,
    /// Whether the response reached its end.
    pub complete: bool,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// The time from its arrival to its end, in microseconds.
    pub micros: u64,
    /// The time that the origin took; `None` if it was not asked.
    pub origin_micros: Option<u64>,
    /// The program that asked, as in [`Seen::agents`].
    pub agent: String,
    /// The host that the reader came from; empty if it is the same, or not said.
    pub referrer: String,
}

/// Answers `GET /moment`, and is one event of `GET /events`, each second: what happened in the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moment {
    /// The end of the second, in seconds since the epoch.
    pub at: u64,
    /// The values of [`COLUMNS`], for all sites together.
    pub total: Vec<u64>,
    /// The values of [`COLUMNS`] for each site in which something happened.
    pub sites: Vec<(String, Vec<u64>)>,
    /// Connections of clients that are open.
    pub connections: u64,
    /// Requests that wait for an origin.
    pub waiting: u64,
    /// Sites whose origin cannot be reached.
    pub down: Vec<String>,
    /// Bytes of stored responses in memory, and their bound.
    pub memory: (u64, u64),
    /// The last requests that were not plain hits, at most 20, the oldest first.
    pub recent: Vec<RequestLine>,
    /// The alerts that stand.
    pub alerts: Vec<AlertLine>,
}
