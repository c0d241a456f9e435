//! Metrics, purge and health, on a listener of their own.
//!
//! Absent from this room: the request path. What is read are snapshots, what is sent are commands, and both go through [`Console`]: this
//! crate knows neither the store nor a site. Of the other rooms it uses `policy` alone, and of that the [order](policy::purge::Order) of a
//! purge alone: what is read here must be the value that everybody else makes.
//!
//! | route | answer | token |
//! |---|---|---|
//! | `GET /` | the list of routes, as text | not on loopback |
//! | `GET /healthz` | `{"status":"ok"}`; with 503 `{"status":"draining"}` | not on loopback |
//! | `GET /metrics` | the metrics, in the Prometheus text format 0.0.4 | not on loopback |
//! | `GET /status` | what runs: sites, their servers, the cache, the metrics; as JSON | not on loopback |
//! | `POST /reload` | reads the configuration again; what needs a restart, as JSON | always |
//! | `POST /explain` | how a request is judged and what is stored for it, as JSON | always |
//! | `POST /stored` | what is stored and no longer fresh, as JSON | always |
//! | `POST /purge` | what a purge covered, as JSON | always |
//!
//! Errors are `{"error": what is wrong, "remedy": what to do}`.

mod certificates;
mod connections;
mod console;
mod explain;
mod exposition;
mod guard;
pub mod purge;
mod refusal;
mod reload;
mod routes;
#[cfg(test)]
mod tests;
mod token;

pub use certificates::{BadRevocation, CertificateState, RevokeCommand, RevokeRefused};
pub use connections::{CONNECTIONS_MAX, serve};
pub use console::{
    CacheHealth, Console, Health, Histogram, ListenerHealth, Metric, MetricKind, OriginHealth, PurgeDone, PurgeRefused, Sample, SiteHealth,
    Value,
};
pub use explain::{BadQuestion, ExplainCommand, ExplainRefused, StoredCommand};
pub use purge::BadCommand;
pub use reload::{ReloadDone, ReloadRefused};
pub use token::{Token, TokenError};
