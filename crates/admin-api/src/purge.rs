//! A purge as JSON: what `POST /purge` takes and what `seawall purge` sends.
//!
//! `{"url": "https://blog.example.org/hello/"}`, and likewise `prefix`, `host`, `tag` and `"all": true`; `"hard": false` for a soft purge. Unknown
//! keys are refused: a purge that understood half of its command would leave pages in place that its sender believes gone.
//!
//! What is read is the order of an operator, as whoever sends it has the token. Nobody can say in this JSON that somebody else gave the order.

use policy::purge::{BadWhat, Order, What};
use serde::{Deserialize, Serialize};

/// The remedy for an address or a host that means nothing here.
const AS_VISITORS_SEE_IT: &str =
    "write the address as visitors see it, such as https://blog.example.org/hello/; GET /status lists the sites";

/// A purge that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeDone {
    /// The generation that it raised the store to.
    pub generation: u64,
    /// How many stored responses it found, unless there are too many to be counted.
    pub variants: Option<usize>,
    /// Whether that is all: the disk may have more, of which only addresses are known.
    pub complete: bool,
    /// Describes what the purge covered, in words for the operator.
    pub covered: String,
    /// How far it went, where there are other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<crate::Spread>,
}

/// Why a purge did not happen: the operator named something that is not a URL, or that this server does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PurgeRefused(String);

impl PurgeRefused {
    /// Makes a refusal with this reason, which is a sentence without a full stop.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Returns what the operator can do about the refusal.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        AS_VISITORS_SEE_IT
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Wire {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hard: Option<bool>,
}

/// Why a text is not a purge command.
#[derive(Debug, thiserror::Error)]
pub enum BadCommand {
    /// It is not JSON, not an object, or has a key that means nothing here.
    #[error("the body is not a purge command: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no target.
    #[error("the command names nothing to purge")]
    NoTarget,
    /// It has several targets.
    #[error("the command names more than one target")]
    SeveralTargets,
    /// It has a target of no characters.
    #[error("\"{0}\" is empty")]
    Empty(&'static str),
    /// It has a target that is neither an address nor a host.
    #[error("{0}")]
    Target(BadWhat),
}

impl BadCommand {
    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Target(_) => AS_VISITORS_SEE_IT,
            Self::Json(_) | Self::NoTarget | Self::SeveralTargets | Self::Empty(_) => {
                "send one of {\"url\": \"https://…\"}, {\"prefix\": \"https://…\"}, {\"host\": \"…\"}, {\"tag\": \"…\"} or {\"all\": true}; \
                 \"hard\": false keeps old copies until new ones are there"
            }
        }
    }
}

/// Reads the order of an operator. Without `hard` it is hard, as on the command line: the next visitor gets what the origin says now.
///
/// # Errors
/// When it is not JSON, has unknown keys, or has not exactly one target that means something.
pub fn order(json: &[u8]) -> Result<Order, BadCommand> {
    type Read = fn(&str) -> Result<What, BadWhat>;
    let wire: Wire = serde_json::from_slice(json)?;
    let named: [(&str, Option<String>, Read); 5] = [
        ("url", wire.url, What::url),
        ("prefix", wire.prefix, What::prefix),
        ("host", wire.host, What::host),
        ("tag", wire.tag, What::tag),
        ("all", wire.all.unwrap_or_default().then(String::new), |_| Ok(What::Everything)),
    ];
    let mut named = named.into_iter().filter_map(|(key, text, read)| Some((key, text?, read)));
    let (key, text, read) = named.next().ok_or(BadCommand::NoTarget)?;
    if named.next().is_some() {
        return Err(BadCommand::SeveralTargets);
    }
    let what = read(&text).map_err(|error| match error {
        // An empty prefix would be everything, by what is more likely an unset variable in somebody's script.
        BadWhat::Empty => BadCommand::Empty(key),
        error @ (BadWhat::Address(_) | BadWhat::Host(_)) => BadCommand::Target(error),
    })?;
    Ok(Order::by_operator(what, wire.hard.unwrap_or(true)))
}

/// Writes what [`order`] reads.
#[must_use]
pub fn json(what: &What, hard: bool) -> String {
    let mut wire = Wire { hard: Some(hard), ..Wire::default() };
    match what {
        What::Url(address) => wire.url = Some(address.to_string()),
        What::Prefix(address) => wire.prefix = Some(address.to_string()),
        What::Host(host) => wire.host = Some(host.to_string()),
        What::Tag(tag) => wire.tag = Some(tag.clone()),
        What::Everything => wire.all = Some(true),
    }
    serde_json::to_string(&wire).expect("strings and booleans are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_exactly_one_target() {
        let command = |what: Result<What, BadWhat>, hard| Ok(Order::by_operator(what.expect("a target"), hard));
        let url = || What::url("https://a/b");
        let cases = [
            (r#"{"url": "https://a/b"}"#, command(url(), true)),
            (r#"{"url": "https://a/b", "hard": true}"#, command(url(), true)),
            (r#"{"url": "https://a/b", "hard": false, "all": false, "tag": null}"#, command(url(), false)),
            (r#"{"prefix": "https://a/"}"#, command(What::prefix("https://a/"), true)),
            (r#"{"host": "a:8080"}"#, command(What::host("a:8080"), true)),
            (r#"{"host": ""}"#, Err("\"host\" is empty")),
            (r#"{"tag": "post-1"}"#, command(What::tag("post-1"), true)),
            (r#"{"all": true}"#, command(Ok(What::Everything), true)),
            ("{}", Err("names nothing")),
            (r#"{"all": false}"#, Err("names nothing")),
            (r#"{"hard": true}"#, Err("names nothing")),
            (r#"{"all": true, "tag": "a"}"#, Err("more than one")),
            (r#"{"url": "https://a/", "prefix": "https://a/"}"#, Err("more than one")),
            (r#"{"prefix": ""}"#, Err("\"prefix\" is empty")),
            (r#"{"url": ""}"#, Err("\"url\" is empty")),
            (r#"{"tag": ""}"#, Err("\"tag\" is empty")),
            (r#"{"url": "a"}"#, Err("a is not an address; write it as http")),
            (r#"{"prefix": "/a/"}"#, Err("/a/ is not an address; write it as http")),
            (r#"{"host": "https://a"}"#, Err("https://a is not a host name")),
            (r#"{"url": "a", "all": true}"#, Err("more than one")),
            (r#"{"all": true, "by": "plugin"}"#, Err("unknown field `by`")),
            (r#"{"uri": "https://a/"}"#, Err("unknown field `uri`")),
            (r#"{"all": true, "soft": true}"#, Err("unknown field `soft`")),
            (r#"{"tag": "a", "tag": "b"}"#, Err("duplicate field `tag`")),
            (r#"{"all": "true"}"#, Err("invalid type")),
            (r#"{"all": true} {"all": true}"#, Err("trailing")),
            ("all", Err("not a purge command")),
            ("", Err("not a purge command")),
        ];
        for (text, expected) in cases {
            match (order(text.as_bytes()), expected) {
                (Ok(read), Ok(expected)) => {
                    assert_eq!(read, expected, "{text}");
                    let sent = json(&read.what[0], read.hard);
                    assert_eq!(order(sent.as_bytes()).expect(text), expected, "{text} once more");
                }
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{text}: {error}"),
                (outcome, _) => panic!("{text}: {outcome:?}"),
            }
        }
    }
}
