//! Alerts: which stand, how they are sent, and what came of a test.

use serde::{Deserialize, Serialize};

use crate::AlertLine;

/// Answers `GET /alerts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertsState {
    /// The alerts that stand, the oldest first.
    pub standing: Vec<AlertLine>,
    /// The alerts that ended last, the newest first.
    pub ended: Vec<AlertLine>,
    /// The ways by which they are sent; none if nobody is told.
    pub ways: Vec<AlertWay>,
}

/// Describes a way by which alerts are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertWay {
    /// `webhook` or `command`.
    pub way: String,
    /// Where it leads: scheme and host of a webhook, whose path may be a secret; the path of a program.
    pub to: String,
    /// Notices that arrived since the start.
    pub sent: u64,
    /// Notices that did not, after all attempts.
    pub failed: u64,
    /// Notices that were never tried, because too many waited.
    pub lost: u64,
    /// Notices that wait.
    pub waiting: u64,
    /// Why the last attempt failed; left out if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// Answers `POST /alerts/test`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertsTested {
    /// What came of it, by each way.
    pub ways: Vec<AlertTried>,
}

/// Says what came of a test by one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertTried {
    /// As [`AlertWay::way`].
    pub way: String,
    /// As [`AlertWay::to`].
    pub to: String,
    /// Why it failed; left out if it arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Says why no test was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertTestRefused {
    /// Nobody is told of alerts.
    #[error("nobody is told of alerts: there is neither a webhook nor a command")]
    NoWay,
    /// This machine has no room for it.
    #[error("the test could not begin: {0}")]
    Failed(String),
}

impl AlertTestRefused {
    /// Says what to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NoWay => {
                "write webhook = \"https://...\" or command = [\"/path/of/a/program\"] into [alerts] of seawall.toml, and reload"
            }
            Self::Failed(_) => "try again",
        }
    }
}
