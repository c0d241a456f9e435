//! Why a request would be answered as it would: the answer to an [`ExplainCommand`](crate::ExplainCommand).
//!
//! Values of cookies and credentials never appear here.

use serde::{Deserialize, Serialize};

/// How a request is judged, what is stored for it, and what would happen now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The request's method.
    pub method: String,
    /// The target URI: as it is in the key if there is one, else as it was asked.
    pub url: String,
    /// Whose request it is.
    pub site: SiteRules,
    /// Each rule of its policy that was tried, in order.
    pub rules: Vec<Rule>,
    /// `lookup`, `pass`, `purge`, `redirect` or `malformed`.
    pub verdict: String,
    /// What the store is asked for.
    pub key: Option<Key>,
    /// Each step of the lookup, in order.
    pub lookup: Vec<Rule>,
    /// What is stored under the key, newest first.
    pub stored: Vec<Variant>,
    /// Something is stored for the same address under the other scheme.
    pub stored_under_other_scheme: bool,
    /// For how many more seconds requests for this key go to the origin one by one, as its answer could not be shared.
    pub uncacheable_seconds: Option<u64>,
    /// Why the last answer for this key was not kept.
    pub not_kept: Option<NotKept>,
    /// A fetch under way that this request would follow.
    pub flight: Option<Flight>,
    /// For how many more seconds the origin counts as down.
    pub origin_down_seconds: Option<u64>,
    /// What would happen now.
    pub now: Now,
}

/// A site, as far as it explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRules {
    /// As configured.
    pub name: String,
    /// What its source is: a preset of policy.
    pub kind: String,
    /// Its hosts; none: every host.
    pub hosts: Vec<String>,
    /// The path of the part that another server answers for, if the request is for one.
    #[serde(default)]
    pub route: Option<String>,
}

/// A rule that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name.
    pub rule: String,
    /// Whether it ended the judgement.
    pub decided: bool,
    /// What it saw.
    pub detail: String,
}

/// The parts of a cache key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The scheme.
    pub scheme: String,
    /// The class of `Accept`.
    pub accept: String,
    /// The host.
    pub host: String,
    /// Path and query.
    pub target: String,
}

/// One stored response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Whether this request selects it: it fits, and may answer such a request.
    pub selected: bool,
    /// It fits, and this rule of the lookup refuses it all the same.
    #[serde(default)]
    pub refused: Option<String>,
    /// Its status.
    pub status: u16,
    /// What `Vary` nominated, with the value of the request it was stored for; `None`: without that field.
    pub vary: Vec<(String, Option<String>)>,
    /// Seconds since the origin made or confirmed it.
    pub age_seconds: u64,
    /// Its freshness lifetime in seconds.
    pub lifetime_seconds: u64,
    /// Whether it is fresh now, purges aside.
    pub fresh: bool,
    /// Seconds for which it is fresh yet; or, negative, since when it is not.
    pub fresh_seconds: i64,
    /// Who said so: `explicit`, `heuristic`, `hold` or `none`.
    pub freshness_source: String,
    /// It is validated each time, whatever its lifetime (`no-cache`).
    pub validate_always: bool,
    /// For how long after its lifetime it may be served while it is validated.
    pub stale_while_revalidate_seconds: u64,
    /// For how long after its lifetime it may be served when the origin fails; 0 if it must not.
    pub stale_if_error_seconds: u64,
    /// `no`, `soft` or `hard`.
    pub purged: String,
    /// The purges that cover it.
    pub purges: Vec<Purge>,
    /// What a purge by tag finds it by.
    pub tags: Vec<String>,
    /// Bytes of its serialised head.
    pub head_bytes: u64,
    /// Bytes of its content.
    pub body_bytes: u64,
    /// Bytes it weighs in the memory tier, everything included.
    pub weight_bytes: u64,
    /// Its media type.
    pub content_type: Option<String>,
    /// Its content coding.
    pub content_coding: Option<String>,
    /// Other forms of its content that are there, each with its coding and its length in bytes. `None`: it has none, and gets none.
    pub forms: Option<Vec<(String, u64)>>,
    /// Its entity tag.
    pub etag: Option<String>,
    /// It may answer requests that carry cookies.
    pub for_cookies: bool,
    /// It may answer requests that carry `Authorization`.
    pub for_authorization: bool,
    /// The tiers that hold it.
    pub tiers: Vec<String>,
}

/// A purge that covers a stored response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// The kind of its target: `url`, `prefix`, `tag`, `site` or `all`.
    pub target: String,
    /// `soft` or `hard`.
    pub hardness: String,
}

/// Why an answer was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotKept {
    /// The name of the rule, or of the proxy error if there was no answer.
    pub reason: String,
    /// The origin's status; none if it did not answer.
    pub status: Option<u16>,
    /// How long ago.
    pub seconds_ago: u64,
}

/// A fetch under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// Requests that wait for it or read along.
    pub followers: usize,
    /// Its head is here, and its content comes.
    pub arriving: bool,
}

/// What would happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// What `Cache-Status` would begin with.
    pub cache_status: String,
    /// What `X-Cache` would say.
    pub x_cache: String,
    /// The same in words, the outcome first, then what leads to it.
    pub words: Vec<String>,
}
