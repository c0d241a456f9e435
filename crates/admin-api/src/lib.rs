//! What both sides of the admin API say: each command and each answer is one type here, which the server writes and the client reads, or the
//! other way round. The token that a client shows is here too.
//!
//! Absent from this room: sockets, HTTP, the cache. Of the other rooms it uses `policy` alone, and of that the [order](policy::purge::Order) of a
//! purge alone: what is read here must be the value that everybody else makes. A type says what stands in the JSON and nothing of how it came to be known.
//!
//! A newer command may ask an older server, and an older command a newer server. So a reader ignores keys that it does not know, and a
//! key that is added to an answer has a default. In commands, unknown keys are refused: half a command must not be taken for a whole one.

mod alerts;
mod certificates;
mod cluster;
mod direct;
mod explain;
pub mod explanation;
mod metrics;
pub mod purge;
mod refusal;
mod reload;
mod seeing;
mod status;
mod stored;
mod token;
mod warm;

pub use alerts::{AlertTestRefused, AlertTried, AlertWay, AlertsState, AlertsTested};
pub use certificates::{BadRevocation, CertificateState, OWN_ROOT, RevokeCommand, RevokeRefused};
pub use cluster::{ClusterState, LimitsState, MachineState, OriginPlaces, Spread, TierState};
pub use direct::{BadDirect, DIRECT_SECONDS_MAX, DirectCommand, DirectField, DirectRefused};
pub use explain::{BadQuestion, ExplainCommand, ExplainRefused};
pub use explanation::Explanation;
pub use metrics::{Histogram, MetricFamily, MetricKind, MetricSample, Value};
pub use purge::{BadCommand, PurgeDone, PurgeRefused};
pub use refusal::Refusal;
pub use reload::{ReloadDone, ReloadRefused};
pub use seeing::{
    AlertLine, BadExpression, COLUMNS, CookieLine, ErrorLine, Latency, Line, Moment, NamedCount, Outage, PageLine, PurgeLine, Reason,
    Recent, RequestLine, Seen, Series, Totals,
};
pub use status::{
    CacheHealth, ListenerHealth, OriginHealth, Publication, Readiness, Ready, ScheduleHealth, SignalHealth, SiteHealth, Status,
};
pub use stored::{Inventory, StoredCommand, StoredPage, StoredState};
pub use token::{Token, TokenError};
pub use warm::{BadWarm, WarmCommand, WarmRefused, Warming};
