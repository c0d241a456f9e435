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
    /// Why it is listed.
    pub state: StoredState,
}

/// Says why a stored response is not fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredState {
    /// It is older than its lifetime.
    Stale,
    /// It was purged.
    Purged,
    /// Another machine of the cluster may have purged it.
    #[serde(rename = "in doubt")]
    InDoubt,
    /// A newer server said a word that is not known here.
    #[serde(other)]
    Unknown,
}

/// Lists stored responses that are not fresh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// The stored responses, in no order.
    pub pages: Vec<StoredPage>,
    /// The number of responses that were left off the list.
    pub left_off: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn the_words_in_json_stay_the_same_and_new_ones_are_not_an_error() {
        let states = [StoredState::Stale, StoredState::Purged, StoredState::InDoubt];
        let words = json!(["stale", "purged", "in doubt"]);
        assert_eq!(to_value(states).expect("JSON"), words);
        assert_eq!(from_value::<[StoredState; 3]>(words).expect("words"), states);
        assert_eq!(from_value::<StoredState>(json!("a new word")).expect("a word"), StoredState::Unknown);
    }
}
