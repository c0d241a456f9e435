//! Metrics, purge and health, on a listener of their own.
//!
//! Absent from this room: the request path. What is read are snapshots, what is sent are commands, and both go through [`Console`]: this
//! crate knows neither the store nor a site. Commands and answers are types of `admin-api`, which the operator's commands use as well.
//!
//! | route | answer | token |
//! |---|---|---|
//! | `GET /` | the dashboard, for a browser (`Accept: text/html`) | never: it says nothing of the server |
//! | `GET /` | the list of routes, as text, for everybody else | not on loopback |
//! | `GET /assets/…` | the parts of the dashboard | never |
//! | `GET /session` | whether the browser has a session, and whether it may read without one, as JSON | never |
//! | `POST /session` | a session for whoever shows the token: a cookie, and a key in JSON | in the body |
//! | `DELETE /session` | ends the session | never |
//! | `GET /healthz` | `{"status":"ok"}`; with 503 `{"status":"draining"}` | not on loopback |
//! | `GET /metrics` | the metrics, in the Prometheus text format 0.0.4 | not on loopback |
//! | `GET /status` | what runs: sites, their servers, the cache, the metrics; as JSON | not on loopback |
//! | `GET /seen?site=NAME` | sums of what happened, and what leads them, as JSON | not on loopback |
//! | `GET /series?site=NAME&span=hour` | what happened when, for `hour`, `day` or `week`, as JSON | not on loopback |
//! | `GET /alerts` | what is wrong, and how that is sent, as JSON | not on loopback |
//! | `POST /alerts/test` | sends a test to whoever is told of alerts; what came of it, as JSON | always |
//! | `GET /cluster` | the machines of the cluster, and whether this one has a lease, as JSON | not on loopback |
//! | `GET /certificates` | names, who certifies them, until when, when they are renewed, as JSON | not on loopback |
//! | `POST /certificates/revoke` | gets another certificate for a name, and has this one revoked | always |
//! | `GET /recent?after=NUMBER&where=EXPRESSION&limit=N` | the last requests that were not plain hits, as JSON | not on loopback |
//! | `GET /events` | what happens, second by second, as server-sent events | not on loopback |
//! | `GET /moment` | what happened in the last second, as JSON: what an event of `GET /events` says | not on loopback |
//! | `POST /reload` | reads the configuration again; what needs a restart, as JSON | always |
//! | `POST /explain` | how a request is judged and what is stored for it, as JSON | always |
//! | `POST /stored` | what is stored and no longer fresh, as JSON | always |
//! | `POST /direct` | a field that lets requests of the load tester go past the cache for a while, as JSON | always |
//! | `GET /warm` | how far the fetching of a sitemap's pages is, as JSON | not on loopback |
//! | `POST /warm` | begins to fetch the pages of a host's sitemap; the same as JSON | always |
//! | `POST /purge` | what a purge covered, as JSON | always |
//!
//! A session stands for the token, for browsers: its cookie to read, its cookie and its key to change something (see `session.rs`).
//!
//! Errors are `{"error": what is wrong, "remedy": what to do}`.

mod connections;
mod console;
mod dashboard;
mod events;
mod exposition;
mod guard;
mod places;
mod refusal;
mod routes;
mod session;
#[cfg(test)]
mod tests;

// Whoever implements `Console` needs no other crate for what it takes and returns.
pub use admin_api::{
    AlertLine, AlertTestRefused, AlertTried, AlertWay, AlertsState, AlertsTested, BadCommand, BadDirect, BadExpression, BadQuestion,
    BadRevocation, BadWarm, CacheHealth, CertificateState, ClusterState, DIRECT_SECONDS_MAX, DirectCommand, DirectField, DirectRefused,
    ExplainCommand, ExplainRefused, Explanation, Histogram, Inventory, LimitsState, Line, ListenerHealth, MachineState, MetricKind, Moment,
    NamedCount, OWN_ROOT, OriginHealth, Publication, PurgeDone, PurgeLine, PurgeRefused, Recent, ReloadDone, ReloadRefused, RevokeCommand,
    RevokeRefused, ScheduleHealth, Seen, Series, SignalHealth, SiteHealth, Spread, StoredCommand, TierState, Token, TokenError, Value,
    WarmCommand, WarmRefused, Warming, explanation,
};
pub use connections::serve;
pub use console::{Console, Health, Metric, Sample};
