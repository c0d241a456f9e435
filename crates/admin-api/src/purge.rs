//! A purge command as JSON: what `POST /purge` takes and what `seawall purge` sends.
//!
//! `{"url": "https://blog.example.org/hello/"}`, and likewise `prefix`, `host`, `tag` and `"all": true`; `"hard": false` for a soft purge. Unknown
//! keys are refused: a purge that understood half of its command would leave pages in place that its sender believes gone.

use serde::{Deserialize, Serialize};

/// A purge, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeCommand {
    /// What it covers.
    pub target: PurgeTarget,
    /// Never serve again what it covers. Otherwise that becomes stale: it may be served while it is refreshed, or if the origin is down.
    pub hard: bool,
}

/// What a purge covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeTarget {
    /// One target URI, in every variant.
    Url(String),
    /// Every target URI that begins so.
    Prefix(String),
    /// Every target URI of this host; without a port, on every port.
    Host(String),
    /// Every stored response that carries this tag.
    Tag(String),
    /// Every stored response.
    All,
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
        "write the address as visitors see it, such as https://blog.example.org/hello/; GET /status lists the sites"
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

/// Why a text is no purge command.
#[derive(Debug, thiserror::Error)]
pub enum BadCommand {
    /// Not JSON, not an object, or with a key that means nothing here.
    #[error("the body is no purge command: {0}")]
    Json(#[from] serde_json::Error),
    /// No target.
    #[error("the command names nothing to purge")]
    NoTarget,
    /// Several targets.
    #[error("the command names more than one target")]
    SeveralTargets,
    /// A target of no characters.
    #[error("\"{0}\" is empty")]
    Empty(&'static str),
}

impl BadCommand {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        "send one of {\"url\": \"https://…\"}, {\"prefix\": \"https://…\"}, {\"host\": \"…\"}, {\"tag\": \"…\"} or {\"all\": true}; \
         \"hard\": false keeps old copies until new ones are there"
    }
}

impl PurgeCommand {
    /// Reads a command. Without `hard` it is hard, as on the command line: the next visitor gets what the origin says now.
    ///
    /// # Errors
    /// When it is not JSON, has unknown keys, or has not exactly one target.
    pub fn from_json(json: &[u8]) -> Result<Self, BadCommand> {
        let wire: Wire = serde_json::from_slice(json)?;
        let targets = [
            wire.url.map(PurgeTarget::Url),
            wire.prefix.map(PurgeTarget::Prefix),
            wire.host.map(PurgeTarget::Host),
            wire.tag.map(PurgeTarget::Tag),
            wire.all.unwrap_or_default().then_some(PurgeTarget::All),
        ];
        let mut targets = targets.into_iter().flatten();
        let target = targets.next().ok_or(BadCommand::NoTarget)?;
        if targets.next().is_some() {
            return Err(BadCommand::SeveralTargets);
        }
        // An empty prefix would be everything, by what is more likely an unset variable in somebody's script.
        match &target {
            PurgeTarget::Url(text) if text.is_empty() => Err(BadCommand::Empty("url")),
            PurgeTarget::Prefix(text) if text.is_empty() => Err(BadCommand::Empty("prefix")),
            PurgeTarget::Host(text) if text.is_empty() => Err(BadCommand::Empty("host")),
            PurgeTarget::Tag(text) if text.is_empty() => Err(BadCommand::Empty("tag")),
            _ => Ok(Self { target, hard: wire.hard.unwrap_or(true) }),
        }
    }

    /// Writes what [`from_json`](Self::from_json) reads.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut wire = Wire { hard: Some(self.hard), ..Wire::default() };
        match &self.target {
            PurgeTarget::Url(url) => wire.url = Some(url.clone()),
            PurgeTarget::Prefix(prefix) => wire.prefix = Some(prefix.clone()),
            PurgeTarget::Host(host) => wire.host = Some(host.clone()),
            PurgeTarget::Tag(tag) => wire.tag = Some(tag.clone()),
            PurgeTarget::All => wire.all = Some(true),
        }
        serde_json::to_string(&wire).expect("strings and booleans are always JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_exactly_one_target() {
        let command = |target, hard| Ok(PurgeCommand { target, hard });
        let url = PurgeTarget::Url("https://a/b".to_owned());
        let cases = [
            (r#"{"url": "https://a/b"}"#, command(url.clone(), true)),
            (r#"{"url": "https://a/b", "hard": true}"#, command(url.clone(), true)),
            (r#"{"url": "https://a/b", "hard": false, "all": false, "tag": null}"#, command(url, false)),
            (r#"{"prefix": "https://a/"}"#, command(PurgeTarget::Prefix("https://a/".to_owned()), true)),
            (r#"{"host": "a:8080"}"#, command(PurgeTarget::Host("a:8080".to_owned()), true)),
            (r#"{"host": ""}"#, Err("\"host\" is empty")),
            (r#"{"tag": "post-1"}"#, command(PurgeTarget::Tag("post-1".to_owned()), true)),
            (r#"{"all": true}"#, command(PurgeTarget::All, true)),
            ("{}", Err("names nothing")),
            (r#"{"all": false}"#, Err("names nothing")),
            (r#"{"hard": true}"#, Err("names nothing")),
            (r#"{"all": true, "tag": "a"}"#, Err("more than one")),
            (r#"{"url": "https://a/", "prefix": "https://a/"}"#, Err("more than one")),
            (r#"{"prefix": ""}"#, Err("\"prefix\" is empty")),
            (r#"{"url": ""}"#, Err("\"url\" is empty")),
            (r#"{"tag": ""}"#, Err("\"tag\" is empty")),
            (r#"{"uri": "https://a/"}"#, Err("unknown field `uri`")),
            (r#"{"all": true, "soft": true}"#, Err("unknown field `soft`")),
            (r#"{"tag": "a", "tag": "b"}"#, Err("duplicate field `tag`")),
            (r#"{"all": "true"}"#, Err("invalid type")),
            (r#"{"all": true} {"all": true}"#, Err("trailing")),
            ("all", Err("no purge command")),
            ("", Err("no purge command")),
        ];
        for (json, expected) in cases {
            match (PurgeCommand::from_json(json.as_bytes()), expected) {
                (Ok(command), Ok(expected)) => {
                    assert_eq!(command, expected, "{json}");
                    assert_eq!(PurgeCommand::from_json(command.to_json().as_bytes()).expect(json), expected, "{json} once more");
                }
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{json}: {error}"),
                (outcome, _) => panic!("{json}: {outcome:?}"),
            }
        }
    }
}
