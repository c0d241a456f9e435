//! What is stored and no longer fresh: the command that `POST /stored` takes, and the answer.

use serde::{Deserialize, Serialize};

use crate::explain::BadQuestion;

/// Asks for a list of the stored responses that are stale or purged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StoredCommand {
    /// The host whose responses are listed; without it, those of every host.
    #[serde(default)]
    pub host: Option<String>,
}

impl StoredCommand {
    /// Reads a command.
    ///
    /// # Errors
    /// When it is not JSON or has unknown keys.
    pub fn from_json(json: &[u8]) -> Result<Self, BadQuestion> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Writes what [`from_json`](Self::from_json) reads.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings are always JSON")
    }
}

/// Names a stored response, and how to ask for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPage {
    /// Its target URI.
    pub url: String,
    /// The fields that select it: `Accept`, and what `Vary` nominated.
    pub fields: Vec<(String, String)>,
    /// `stale` or `purged`.
    pub state: String,
}

/// Lists stored responses that are not fresh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// The stored responses, in no order.
    pub pages: Vec<StoredPage>,
    /// The number of responses that were left off the list.
    pub left_off: usize,
}
