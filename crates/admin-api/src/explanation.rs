//! Why a request would be answered as it would: the answer to an [`ExplainCommand`](crate::ExplainCommand).
//!
//! Values of cookies and credentials never appear here.
//!
//! A word that has few values is an enum. Each of them has an `Unknown` for the words of a newer server, so that an older client can still read
//! the rest of the answer.

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
    /// The way that the request takes, before the store is asked.
    pub verdict: ExplainedVerdict,
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

/// Says what is done with a request before anything that is stored is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainedVerdict {
    /// The cache is asked.
    Lookup,
    /// It goes to the origin, and the cache is not asked.
    Pass,
    /// It is a purge request.
    Purge,
    /// It is a webhook of the site's origin.
    Webhook,
    /// One of the first steps redirects it.
    Redirect,
    /// One of the first steps answers it.
    Answered,
    /// Its target cannot be understood.
    Malformed,
    /// A newer server said a word that is not known here.
    #[serde(other)]
    Unknown,
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
    /// Where its lifetime comes from.
    pub freshness_source: FreshnessSource,
    /// Whether it is validated each time, whatever its lifetime (`no-cache`).
    pub validate_always: bool,
    /// The seconds after its lifetime in which it may be served while it is validated.
    pub stale_while_revalidate_seconds: u64,
    /// The seconds after its lifetime in which it may be served when the origin fails; 0 if it must not.
    pub stale_if_error_seconds: u64,
    /// Whether it was purged, and how.
    pub purged: PurgedHow,
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

/// Says where a freshness lifetime comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreshnessSource {
    /// The origin said it.
    Explicit,
    /// It is a tenth of the time since `Last-Modified`.
    Heuristic,
    /// It is the hold of the site.
    Hold,
    /// Nobody gave a lifetime.
    None,
    /// A newer server said a word that is not known here.
    #[serde(other)]
    Unknown,
}

/// Says whether a stored response was purged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PurgedHow {
    /// It was not purged.
    No,
    /// Another machine of the cluster may have purged it.
    #[serde(rename = "in doubt")]
    InDoubt,
    /// It was purged softly: it is stale, whatever its lifetime says.
    Soft,
    /// It was purged hard: it is not used any more.
    Hard,
    /// A newer server said a word that is not known here.
    #[serde(other)]
    Unknown,
}

/// Describes a purge that covers a stored response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// The kind of its target.
    pub target: PurgeTargetKind,
    /// How thorough it was.
    pub hardness: PurgeHardness,
}

/// Names the kind of what a purge covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PurgeTargetKind {
    /// One address.
    Url,
    /// Everything below an address.
    Prefix,
    /// Everything with a tag.
    Tag,
    /// A whole site.
    Site,
    /// Everything that is stored.
    All,
    /// One address, which a write invalidated (RFC 9111 §4.4).
    Invalidation,
    /// A newer server said a word that is not known here.
    #[serde(other)]
    Unknown,
}

impl PurgeTargetKind {
    /// Returns the word for it, as JSON has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Prefix => "prefix",
            Self::Tag => "tag",
            Self::Site => "site",
            Self::All => "all",
            Self::Invalidation => "invalidation",
            Self::Unknown => "unknown",
        }
    }
}

/// Says how thorough a purge was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PurgeHardness {
    /// It marked what it covers stale.
    Soft,
    /// It made sure that what it covers is not used any more.
    Hard,
    /// A newer server said a word that is not known here.
    #[serde(other)]
    Unknown,
}

impl PurgeHardness {
    /// Returns the word for it, as JSON has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Hard => "hard",
            Self::Unknown => "unknown",
        }
    }
}

/// Says why an answer was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotKept {
    /// The name of the rule, or of the proxy error if there was no answer.
    pub reason: String,
    /// A sentence about the answer that says what the rule means; none if there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
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

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    /// Asserts that these values are written as these words, and read from them.
    fn are<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: Vec<T>, words: Value) {
        assert_eq!(to_value(&values).expect("JSON"), words);
        assert_eq!(from_value::<Vec<T>>(words).expect("words"), values);
    }

    /// The dashboard's script and the operators' own read these words.
    #[test]
    fn the_words_in_json_stay_the_same() {
        use ExplainedVerdict as V;
        use PurgeTargetKind as K;
        let verdicts = vec![V::Lookup, V::Pass, V::Purge, V::Webhook, V::Redirect, V::Answered, V::Malformed];
        are(verdicts, json!(["lookup", "pass", "purge", "webhook", "redirect", "answered", "malformed"]));
        let sources = vec![FreshnessSource::Explicit, FreshnessSource::Heuristic, FreshnessSource::Hold, FreshnessSource::None];
        are(sources, json!(["explicit", "heuristic", "hold", "none"]));
        are(vec![PurgedHow::No, PurgedHow::InDoubt, PurgedHow::Soft, PurgedHow::Hard], json!(["no", "in doubt", "soft", "hard"]));
        let kinds = vec![K::Url, K::Prefix, K::Tag, K::Site, K::All, K::Invalidation, K::Unknown];
        are(kinds.clone(), json!(kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>()));
        let hardness = vec![PurgeHardness::Soft, PurgeHardness::Hard, PurgeHardness::Unknown];
        are(hardness.clone(), json!(hardness.iter().map(|hardness| hardness.name()).collect::<Vec<_>>()));
    }

    #[test]
    fn a_word_of_a_newer_server_is_not_an_error() {
        fn read<T: DeserializeOwned>() -> T {
            from_value(json!("a new word")).expect("a word")
        }
        assert_eq!(read::<ExplainedVerdict>(), ExplainedVerdict::Unknown);
        assert_eq!(read::<FreshnessSource>(), FreshnessSource::Unknown);
        assert_eq!(read::<PurgedHow>(), PurgedHow::Unknown);
        assert_eq!(read::<PurgeTargetKind>(), PurgeTargetKind::Unknown);
        assert_eq!(read::<PurgeHardness>(), PurgeHardness::Unknown);
    }
}
