//! How the running server is doing: the answers to `GET /healthz` and `GET /status`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{cluster::ClusterState, metrics::MetricFamily, seeing::AlertLine};

/// Says whether the server takes new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    /// New requests are welcome.
    Ok,
    /// A shutdown has begun: the last requests end, and a balancer should go elsewhere.
    Draining,
}

/// Answers `GET /healthz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Whether the server takes new requests.
    pub status: Readiness,
}

/// Answers `GET /status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Whether the server takes new requests.
    pub status: Readiness,
    /// The version of Seawall.
    pub version: String,
    /// Seconds since the process began to serve.
    pub uptime_seconds: f64,
    /// The number of worker threads.
    pub workers: usize,
    /// The places where visitors are served: addresses, or `unix:` and a path.
    pub listening: Vec<String>,
    /// Whether a client on this machine is believed when it says that its reader came over TLS.
    pub trusts_loopback: bool,
    /// Lists the places of `listening` again, each with the protocol that is spoken there.
    pub listeners: Vec<ListenerHealth>,
    /// The sites, in the order of the configuration.
    pub sites: Vec<SiteHealth>,
    /// The addresses of every server behind the sites.
    pub origins: Vec<OriginHealth>,
    /// How full the cache is, and how often it was enough.
    pub cache: CacheHealth,
    /// How the cluster is doing of which the server is a part. Left out if it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterState>,
    /// The alerts that stand, the oldest first.
    #[serde(default)]
    pub alerts: Vec<AlertLine>,
    /// The metrics, by name.
    #[serde(default)]
    pub metrics: BTreeMap<String, MetricFamily>,
}

/// Describes one listener for visitors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerHealth {
    /// An address, or `unix:` and a path.
    pub address: String,
    /// `http`, `https`, or `http3`.
    pub protocol: String,
}

/// Describes the state of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheHealth {
    /// Bytes of stored responses in memory.
    pub memory_bytes: u64,
    /// The most bytes of stored responses that memory may hold.
    pub memory_bytes_max: u64,
    /// Stored target URIs in memory.
    pub resources: u64,
    /// `working`, `off`, or what is wrong with the disk.
    pub disk: String,
    /// Bytes of stored responses on the disk.
    pub disk_bytes: u64,
    /// The most bytes of stored responses that the disk may hold.
    pub disk_bytes_max: u64,
    /// Stored responses on the disk.
    pub disk_objects: u64,
    /// Requests that came as far as the cache, since the start: those that passed it, too. What was answered before, such as by a redirect to https, is left out.
    pub requests: u64,
    /// Requests that the cache answered without waiting for an origin.
    pub hits: u64,
}

/// Describes an address of a server behind a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginHealth {
    /// The site's name.
    pub site: String,
    /// The part of the site that the server answers for; left out if it answers for the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The address.
    pub address: String,
    /// Whether requests go there: an only address, if it could be connected to when that was tried last; one of several, unless connecting has
    /// failed several times in a row.
    pub up: bool,
    /// Whether a request was sent to it, or to another address of the same server, since the start or the last change of its settings.
    #[serde(default = "yes")]
    pub asked: bool,
}

/// Returns `true`, the default for servers too old to send the field.
const fn yes() -> bool {
    true
}

/// Describes one site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteHealth {
    /// Its name in the configuration.
    pub name: String,
    /// Its host names; none: every host.
    pub hosts: Vec<String>,
    /// Names whose visitors are sent to the first of these.
    pub redirect_from: Vec<String>,
    /// The source of its responses: the addresses of a server, or a folder.
    pub source: String,
    /// `generic`, `ghost`, `wordpress`, `php`, `static`, or `blog`.
    pub kind: String,
    /// How the kind is known, in words. `None`, and then left out, if it follows from the form of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_known: Option<String>,
    /// The address that its readers use, as its software says. `None`, and then left out, if that is not known.
    #[serde(default, alias = "ghost_url", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What an operator should do something about, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Whether its origin could be connected to when that was tried last. `None`, and then left out, if there is no server behind it (a folder,
    /// a blog)
    /// or it was not asked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_up: Option<bool>,
    /// The schedule of its software, if Seawall runs that. `None`, and then left out, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleHealth>,
    /// The changes of which its origin has told since the start. `None`, and then left out, if its kind tells of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<SignalHealth>,
}

/// Describes the schedule of a site's software, such as WordPress's `wp-cron.php`, which Seawall runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleHealth {
    /// Seconds between two runs.
    pub every_seconds: u64,
    /// Seconds since the last run that succeeded. Left out if there was none since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_seconds_ago: Option<u64>,
    /// Runs that succeeded since the start.
    pub runs: u64,
    /// Runs that failed since the start.
    pub failures: u64,
    /// Why the last run failed. Left out if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What Seawall's plugin in it says of itself, such as `wordpress/1.0.0`. Left out if it was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

/// Describes how the origin of a site tells that something has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalHealth {
    /// The last purge by a field of an answer to an editor. Left out if there was none since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_path: Option<Publication>,
    /// The last purge by a webhook. Left out if there was none since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Publication>,
    /// Seconds since the last webhook, whatever it said. Left out if none came since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_seconds_ago: Option<u64>,
    /// The pages that were fetched again since the last of these purges, before anybody asked for them.
    pub refilled: u64,
}

/// Describes a purge of which the origin itself has told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// Seconds since it was carried out.
    pub seconds_ago: u64,
    /// A description of what it covered, in words.
    pub covered: String,
    /// Whether what it covered is never served again. Otherwise it became stale.
    pub hard: bool,
}
