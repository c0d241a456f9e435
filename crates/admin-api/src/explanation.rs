//! Why a request would be answered as it would: the answer to an [`ExplainCommand`](crate::ExplainCommand).
//!
//! Values of cookies and credentials never appear here.

use serde::{Deserialize, Serialize};

/// Tells how a request is judged, what is stored for it, and what would happen now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The request's method.
    pub method: String,
    /// The target URI: as it is in the key if there is one, else as it was asked.
    pub url: String,
    /// The site that the request is for.
    pub site: SiteRules,
    /// Each rule of its policy that was tried, in order.
    pub rules: Vec<Rule>,
    /// `lookup`, `pass`, `purge`, `malformed`; or `redirect` or `answered`, if one of the first steps answers it.
    pub verdict: String,
    /// The key under which the store is asked, if it is asked.
    pub key: Option<Key>,
    /// Each step of the lookup, in order.
    pub lookup: Vec<Rule>,
    /// The responses that are stored under the key, newest first.
    pub stored: Vec<Variant>,
    /// Whether something is stored for the same address under the other scheme.
    pub stored_under_other_scheme: bool,
    /// The seconds for which requests for this key still go to the origin one by one, as its answer could not be shared.
    pub uncacheable_seconds: Option<u64>,
    /// The reason why the last answer for this key was not kept.
    pub not_kept: Option<NotKept>,
    /// A fetch under way that this request would follow.
    pub flight: Option<Flight>,
    /// The seconds for which the origin still counts as down.
    pub origin_down_seconds: Option<u64>,
    /// The response that would be given now.
    pub now: Now,
}

/// Describes a site, as far as that explains something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRules {
    /// The name of the site, as configured.
    pub name: String,
    /// The kind of its source, which is the name of a preset.
    pub kind: String,
    /// How the kind is known, in words. `None` if it follows from the form of the source, or another server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_known: Option<String>,
    /// The hosts of the site. If there are none, it serves every host.
    pub hosts: Vec<String>,
    /// The path of the part that another server answers for, if the request is for one.
    #[serde(default)]
    pub route: Option<String>,
}

/// Tells what came of trying a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The name of the rule.
    pub rule: String,
    /// Whether it ended the judgement.
    pub decided: bool,
    /// The words for what the rule saw.
    pub detail: String,
}

/// Shows the parts of a cache key.
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

/// Describes one stored response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Whether this request selects it: it fits, and may answer such a request.
    pub selected: bool,
    /// The rule of the lookup that refuses it although it fits.
    #[serde(default)]
    pub refused: Option<String>,
    /// Its status.
    pub status: u16,
    /// The fields that `Vary` nominated, with the value in the request that it was stored for. `None` means that the request had no such field.
    pub vary: Vec<(String, Option<String>)>,
    /// Seconds since the origin made or confirmed it.
    pub age_seconds: u64,
    /// Its freshness lifetime in seconds.
    pub lifetime_seconds: u64,
    /// Whether it is fresh now, purges aside.
    pub fresh: bool,
    /// The seconds for which it is still fresh. A negative number says for how long it has been stale.
    pub fresh_seconds: i64,
    /// The origin of its lifetime: `explicit`, `heuristic`, `hold` or `none`.
    pub freshness_source: String,
    /// Whether it is validated each time, whatever its lifetime (`no-cache`).
    pub validate_always: bool,
    /// The seconds after its lifetime in which it may be served while it is validated.
    pub stale_while_revalidate_seconds: u64,
    /// The seconds after its lifetime in which it may be served when the origin fails; 0 if it must not.
    pub stale_if_error_seconds: u64,
    /// `no`, `soft` or `hard`.
    pub purged: String,
    /// The purges that cover it.
    pub purges: Vec<Purge>,
    /// The tags by which a purge finds it.
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
    /// Whether it may answer requests that carry cookies.
    pub for_cookies: bool,
    /// Whether it may answer requests that carry `Authorization`.
    pub for_authorization: bool,
    /// The tiers that hold it.
    pub tiers: Vec<String>,
}

/// Describes a purge that covers a stored response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// The kind of its target: `url`, `prefix`, `tag`, `site` or `all`.
    pub target: String,
    /// `soft` or `hard`.
    pub hardness: String,
}

/// Says why an answer was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotKept {
    /// The name of the rule, or of the proxy error if there was no answer.
    pub reason: String,
    /// The origin's status; none if it did not answer.
    pub status: Option<u16>,
    /// The seconds that have passed since then.
    pub seconds_ago: u64,
    /// The cookie that the answer sets, where that is the reason: its name, or how it begins and a `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
    /// The owner of the cookie in words, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_of: Option<String>,
    /// The first difference between what two visitors were given, where that is the reason: its offset, and a short excerpt of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// Describes a fetch that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// Requests that wait for it or read along.
    pub followers: usize,
    /// Whether its head is here and its content is arriving.
    pub arriving: bool,
}

/// Describes the response that would be given now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The beginning of its `Cache-Status`.
    pub cache_status: String,
    /// The value of its `X-Cache`.
    pub x_cache: String,
    /// The sentences that say what would happen, the outcome first, then what leads to it.
    pub words: Vec<String>,
}
