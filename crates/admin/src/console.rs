//! The interface to the rest of Seawall, as one trait and plain values.

use std::time::Duration;

use admin_api::{
    AlertTestRefused, AlertsState, AlertsTested, BadExpression, CacheHealth, CertificateState, ClusterState, DirectField, DirectRefused,
    ExplainCommand, ExplainRefused, Explanation, Inventory, ListenerHealth, MetricKind, Moment, OriginHealth, PurgeDone, PurgeRefused,
    Recent, ReloadDone, ReloadRefused, RevokeRefused, Seen, Series, SiteHealth, StoredCommand, Value, WarmCommand, WarmRefused, Warming,
};
use policy::purge::Order;

/// Stands for the running server, as the admin API sees it. Calls come from the admin listener's thread and should take microseconds: read counters,
/// leave a command, return.
pub trait Console: Send + Sync + 'static {
    /// Lists every metric with its present values.
    fn metrics(&self) -> Vec<Metric>;

    /// Tells how the server is doing.
    fn health(&self) -> Health;

    /// Lists the addresses of every server behind the sites, as the workers see them. Called on a thread that may wait: up to some seconds.
    fn origins(&self) -> Vec<OriginHealth>;

    /// Reads the configuration again and takes it over. Called on a thread that may wait: for most of a minute.
    ///
    /// # Errors
    /// When it cannot be taken over; then everything stays as it was.
    fn reload(&self) -> Result<ReloadDone, ReloadRefused>;

    /// Carries out an order to purge. Called on a thread that may wait: what is covered is counted, and in a cluster it waits for word of how far the
    /// purge went, for half a minute at most. When this returns, no fetch that began earlier can bring the purged responses back.
    ///
    /// # Errors
    /// When the order names something that this server does not have.
    fn purge(&self, order: &Order) -> Result<PurgeDone, PurgeRefused>;

    /// Says how a request would be judged, and what is stored for it. Called on a thread that may wait: up to some seconds.
    ///
    /// # Errors
    /// When no site has the host, or no worker has time.
    fn explain(&self, command: &ExplainCommand) -> Result<Explanation, ExplainRefused>;

    /// Lists what is stored and no longer fresh. Called on a thread that may wait: everything that is stored is looked at.
    fn stored(&self, command: &StoredCommand) -> Inventory;

    /// Begins to fetch the pages of a host's sitemap, and returns at once. A server that cannot ask itself refuses.
    ///
    /// # Errors
    /// When no site has the host, or others are being fetched.
    fn warm(&self, _command: &WarmCommand) -> Result<(), WarmRefused> {
        Err(WarmRefused::Unable)
    }

    /// Says how far the fetching is that began last.
    fn warming(&self) -> Warming {
        Warming::default()
    }

    /// Signs a field that lets requests go past the cache for `time`.
    ///
    /// # Errors
    /// When the system has no random bytes for a key.
    fn direct(&self, time: Duration) -> Result<DirectField, DirectRefused>;

    /// Lists the certificates, by name.
    fn certificates(&self) -> Vec<CertificateState>;

    /// Says how the cluster is doing of which this server is a part. `None`: it stands alone.
    fn cluster(&self) -> Option<ClusterState> {
        None
    }

    /// Sums up what was counted, of one site or of all together. Called on a thread that may wait. `None`: there is no such site.
    fn seen(&self, site: Option<&str>) -> Option<Seen>;

    /// Lists what happened when, in rows of so many seconds: 1 (the last hour), 60 (the last day) or 600 (the last week). `None`: there is no such site.
    fn series(&self, site: Option<&str>, step: u64) -> Option<Series>;

    /// Lists the last requests that were not plain hits, after this number: at most `limit` of those that an expression means. If there are more, a
    /// reader who follows (`after` is above zero) gets the first ones, and others the last ones.
    ///
    /// # Errors
    /// When the expression cannot be understood.
    fn recent(&self, after: u64, expression: Option<&str>, limit: usize) -> Result<Recent, BadExpression>;

    /// Says what happened in the last whole second.
    fn moment(&self) -> Moment;

    /// Says which alerts stand, and how they are sent. A server that watches nothing has none.
    fn alerts(&self) -> AlertsState {
        AlertsState::default()
    }

    /// Sends a test to whoever is told of alerts. Called on a thread that may wait: for most of a minute.
    ///
    /// # Errors
    /// When nobody is told.
    fn test_alerts(&self) -> Result<AlertsTested, AlertTestRefused> {
        Err(AlertTestRefused::NoWay)
    }

    /// Gets another certificate for a name, and has the one that was there revoked. Called on a thread that may wait: for most of a minute.
    ///
    /// # Errors
    /// When there is none, the authority refuses, or it takes longer; then it goes on.
    fn revoke(&self, name: &str) -> Result<CertificateState, RevokeRefused>;
}

/// Holds one metric: its meaning, and a value for each set of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name: `[a-zA-Z_:][a-zA-Z0-9_:]*`, such as `seawall_requests_total`.
    pub name: &'static str,
    /// The meaning, in a sentence.
    pub help: &'static str,
    /// The way in which it moves.
    pub kind: MetricKind,
    /// The values of the metric.
    pub samples: Vec<Sample>,
}

impl Metric {
    /// Makes a metric. The name of a counter should end in `_total`.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, kind: MetricKind, samples: Vec<Sample>) -> Self {
        Self { name, help, kind, samples }
    }
}

/// Holds one value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names, `[a-zA-Z_][a-zA-Z0-9_]*`, and values, which may be any text.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

impl Sample {
    /// Makes the one value of a metric.
    pub fn plain(value: impl Into<Value>) -> Self {
        Self { labels: Vec::new(), value: value.into() }
    }

    /// Makes one value of several, which a label tells apart.
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

/// Says how the server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether new requests are welcome; no longer so once a shutdown has begun.
    pub ready: bool,
    /// The version of Seawall.
    pub version: String,
    /// The time since the process began to serve.
    pub uptime: Duration,
    /// The number of worker threads.
    pub workers: usize,
    /// The places where visitors are served: addresses, or `unix:` and a path.
    pub listening: Vec<String>,
    /// Lists the places of `listening` again, each with the protocol that is spoken there.
    pub listeners: Vec<ListenerHealth>,
    /// Whether a client on this machine is believed when it says that its reader came over TLS.
    pub trusts_loopback: bool,
    /// The sites, in the order of the configuration.
    pub sites: Vec<SiteHealth>,
    /// The state of the cache: how full it is, and how often it was enough.
    pub cache: CacheHealth,
}
