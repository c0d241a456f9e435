//! Filling the cache as a command: what `POST /warm` takes, and what it and `GET /warm` answer.
//!
//! `seawall warm` can do more, and does it from outside. This is for the dashboard: the pages of one host's sitemap, by the server itself.

use serde::{Deserialize, Serialize};

use crate::NamedCount;

/// Asks for the pages of a host's sitemap to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WarmCommand {
    /// The host, which a site must have.
    pub host: String,
}

/// Says how far the fetching is that began last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Warming {
    /// Its host; empty if none has begun.
    pub host: String,
    /// Whether it goes on.
    pub running: bool,
    /// The pages that are to be asked for; 0 until the sitemap was read.
    pub pages: u64,
    /// The pages that were asked for.
    pub done: u64,
    /// What became of them, in words, those that are most first. `error` is always 0.
    pub results: Vec<NamedCount>,
    /// The last words about it that an operator should read; empty if there are none.
    pub told: String,
}

/// Says why a text is not a command to warm.
#[derive(Debug, thiserror::Error)]
#[error("the body is not a command to warm: {0}")]
pub struct BadWarm(#[from] serde_json::Error);

impl BadWarm {
    /// Says what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        "send {\"host\": \"…\"}"
    }
}

impl WarmCommand {
    /// Reads a command.
    ///
    /// # Errors
    /// When it is not JSON, has unknown keys, or no host.
    pub fn from_json(json: &[u8]) -> Result<Self, BadWarm> {
        Ok(serde_json::from_slice(json)?)
    }
}

/// Says why nothing is fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WarmRefused {
    /// No site has that host.
    #[error("no site is served under {0}")]
    NoSite(String),
    /// One is under way.
    #[error("the pages of {0} are being fetched")]
    Busy(String),
    /// The server stops, or cannot ask itself.
    #[error("the server cannot fetch pages now")]
    Unable,
}

impl WarmRefused {
    /// Says what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoSite(_) => "GET /status lists the sites and their hosts",
            Self::Busy(_) => "wait until they are done",
            Self::Unable => "use `seawall warm`",
        }
    }
}
