//! What this crate asks of the rest of Seawall, as one trait and plain values.

use std::time::Duration;

use policy::purge::Order;
use serde::{Deserialize, Serialize};

use crate::{
    certificates::{CertificateState, RevokeRefused},
    explain::{ExplainCommand, ExplainRefused, StoredCommand},
    reload::{ReloadDone, ReloadRefused},
};

/// The running server, as the admin API sees it. Calls come from the admin listener's thread and should take microseconds: read counters,
/// leave a command, return.
pub trait Console: Send + Sync + 'static {
    /// Every metric with its present values.
    fn metrics(&self) -> Vec<Metric>;

    /// How the server is doing.
    fn health(&self) -> Health;

    /// Lists the addresses of every server behind the sites, as the workers see them. Called on a thread that may wait: up to some seconds.
    fn origins(&self) -> Vec<OriginHealth>;

    /// Reads the configuration again and takes it over. Called on a thread that may wait: for most of a minute.
    ///
    /// # Errors
    /// When it cannot be taken over; then everything stays as it was.
    fn reload(&self) -> Result<ReloadDone, ReloadRefused>;

    /// Carries out an order to purge. Called on a thread that may wait: what is covered is counted. When this returns, no fetch that began
    /// earlier can bring the purged responses back.
    ///
    /// # Errors
    /// When the order names something that this server does not have.
    fn purge(&self, order: &Order) -> Result<PurgeDone, PurgeRefused>;

    /// Says how a request would be judged, and what is stored for it, as JSON whose form is the console's own. Called on a thread that may
    /// wait: up to some seconds.
    ///
    /// # Errors
    /// When no site has the host, or no worker has time.
    fn explain(&self, command: &ExplainCommand) -> Result<serde_json::Value, ExplainRefused>;

    /// Lists what is stored and no longer fresh, likewise.
    fn stored(&self, command: &StoredCommand) -> serde_json::Value;

    /// Lists the certificates, by name.
    fn certificates(&self) -> Vec<CertificateState>;

    /// Gets another certificate for a name, and has the one that was there revoked. Called on a thread that may wait: for most of a minute.
    ///
    /// # Errors
    /// When there is none, the authority refuses, or it takes longer; then it goes on.
    fn revoke(&self, name: &str) -> Result<CertificateState, RevokeRefused>;
}

/// One metric: its meaning, and a value for each set of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What it is called: `[a-zA-Z_:][a-zA-Z0-9_:]*`, such as `seawall_requests_total`.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// How it moves.
    pub kind: MetricKind,
    /// Its values.
    pub samples: Vec<Sample>,
}

impl Metric {
    /// A metric. The name of a counter should end in `_total`.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, kind: MetricKind, samples: Vec<Sample>) -> Self {
        Self { name, help, kind, samples }
    }
}

/// How a metric moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// It only rises while the process lives.
    Counter,
    /// It rises and falls.
    Gauge,
    /// It counts observations by their size; every value is a [`Value::Histogram`].
    Histogram,
}

impl MetricKind {
    /// The name that the exposition format has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names, `[a-zA-Z_][a-zA-Z0-9_]*`, and values, which may be any text.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

impl Sample {
    /// The one value of a metric.
    pub fn plain(value: impl Into<Value>) -> Self {
        Self { labels: Vec::new(), value: value.into() }
    }

    /// One value of several, told apart by a label.
    pub fn labelled(name: &'static str, label: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::plain(value).and(name, label)
    }

    /// Adds a label.
    #[must_use]
    pub fn and(mut self, name: &'static str, label: impl Into<String>) -> Self {
        self.labels.push((name, label.into()));
        self
    }
}

/// A number. Counters are kept whole: as a float, a count of bytes would lose its last digits beyond 2^53.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// Seconds, ratios.
    Real(f64),
    /// What was observed, by size.
    Histogram(Histogram),
}

/// Observations, counted by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// Upper bounds in rising order, each with the number of observations that do not exceed it. The last bound is
    /// infinite in the text format and left out here: its count is `count`.
    pub buckets: Vec<(f64, u64)>,
    /// All observations added up.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<Histogram> for Value {
    fn from(value: Histogram) -> Self {
        Self::Histogram(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

/// How the server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether new requests are welcome; no longer so once a shutdown has begun.
    pub ready: bool,
    /// Of Seawall.
    pub version: String,
    /// Since the process began to serve.
    pub uptime: Duration,
    /// How many there are.
    pub workers: usize,
    /// Where visitors are served: addresses, or `unix:` and a path.
    pub listening: Vec<String>,
    /// Lists the same places with the protocol that is spoken there.
    pub listeners: Vec<ListenerHealth>,
    /// Whether a client on this machine is believed when it says that its reader came over TLS.
    pub trusts_loopback: bool,
    /// In the order of the configuration.
    pub sites: Vec<SiteHealth>,
    /// Tells how full the cache is, and how often it was enough.
    pub cache: CacheHealth,
}

/// One listener for visitors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerHealth {
    /// An address, or `unix:` and a path.
    pub address: String,
    /// `http`, `https`, or `http3`.
    pub protocol: String,
}

/// The state of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheHealth {
    /// Bytes of stored responses in memory.
    pub memory_bytes: u64,
    /// At most so many.
    pub memory_bytes_max: u64,
    /// Stored target URIs in memory.
    pub resources: u64,
    /// `working`, `off`, or what is wrong with the disk.
    pub disk: String,
    /// Bytes of stored responses on the disk.
    pub disk_bytes: u64,
    /// At most so many.
    pub disk_bytes_max: u64,
    /// Stored responses on the disk.
    pub disk_objects: u64,
    /// Requests for which the cache was asked, since the start.
    pub requests: u64,
    /// Requests that the cache answered without waiting for an origin.
    pub hits: u64,
}

/// An address of a server behind a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginHealth {
    /// The site's name.
    pub site: String,
    /// The part of the site that the server answers for; left out if it answers for the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Where it is.
    pub address: String,
    /// Whether requests go there: an only address, if it could be connected to when that was tried last; one of several, unless connecting has
    /// failed several times in a row.
    pub up: bool,
}

/// How one site is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteHealth {
    /// As configured.
    pub name: String,
    /// Its host names; none: every host.
    pub hosts: Vec<String>,
    /// Names whose visitors are sent to the first of these.
    pub redirect_from: Vec<String>,
    /// The source of its responses: the addresses of a server, or a folder.
    pub source: String,
    /// `generic`, `static`, or `blog`.
    pub kind: String,
    /// Whether its origin could be connected to when that was tried last. `None`, and then left out, if there is no server behind it (a folder, a blog)
    /// or it was not asked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_up: Option<bool>,
}

/// A purge that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeDone {
    /// The generation that it raised the store to.
    pub generation: u64,
    /// How many stored responses it found, unless there are too many to be counted.
    pub variants: Option<usize>,
    /// Whether that is all: the disk may have more, of which only addresses are known.
    pub complete: bool,
    /// What it covered, in words for the operator.
    pub covered: String,
}

/// Why a purge did not happen: the operator named something that is no URL, or that this server does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PurgeRefused(String);

impl PurgeRefused {
    /// For the reason that is given, a sentence without a full stop.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        AS_VISITORS_SEE_IT
    }
}

/// The remedy for an address or a host that means nothing here.
pub(crate) const AS_VISITORS_SEE_IT: &str =
    "write the address as visitors see it, such as https://blog.example.org/hello/; GET /status lists the sites";
