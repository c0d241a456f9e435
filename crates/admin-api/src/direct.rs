//! Going past the cache for a while: the command that `POST /direct` takes, and the answer, a field that the load tester sends with its requests.

use serde::{Deserialize, Serialize};

/// The longest time for which a field is signed, in seconds.
pub const DIRECT_SECONDS_MAX: u32 = 3_600;

/// Asks for a field that lets requests go past the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DirectCommand {
    /// The time for which it counts, in seconds: from 1 to [`DIRECT_SECONDS_MAX`].
    pub seconds: u32,
}

/// Holds a field that lets requests go past the cache of the server that signed it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectField {
    /// The name of the field.
    pub field: String,
    /// Its value.
    pub value: String,
    /// The time at which it counts no longer, in seconds since 1970.
    pub until: u64,
}

/// Never shows the value: it is as good as a key while it counts.
impl std::fmt::Debug for DirectField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectField").field("field", &self.field).field("until", &self.until).finish_non_exhaustive()
    }
}

impl DirectCommand {
    /// Reads a command.
    ///
    /// # Errors
    /// When it is not JSON, has other keys, or asks for too long a time.
    pub fn from_json(json: &[u8]) -> Result<Self, BadDirect> {
        let command: Self = serde_json::from_slice(json)?;
        if (1..=DIRECT_SECONDS_MAX).contains(&command.seconds) { Ok(command) } else { Err(BadDirect::Seconds) }
    }

    /// Writes what [`from_json`](Self::from_json) reads.
    #[must_use]
    pub fn to_json(self) -> String {
        serde_json::to_string(&self).expect("a number is always JSON")
    }
}

/// Says why a text does not say for how long requests should go past the cache.
#[derive(Debug, thiserror::Error)]
pub enum BadDirect {
    /// It is not JSON, or has a key that means nothing here.
    #[error("the body does not say for how long: {0}")]
    Json(#[from] serde_json::Error),
    /// The time is zero, or too long.
    #[error("seconds is a number from 1 to {DIRECT_SECONDS_MAX}")]
    Seconds,
}

impl BadDirect {
    /// Says what to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        "send {\"seconds\": 600}; for a longer run, ask again"
    }
}

/// Says why no field was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random bytes for a key")]
pub struct DirectRefused;

impl DirectRefused {
    /// Says what to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        "try again; if this goes on, look at the machine: other programs get no random bytes either"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_for_how_long() {
        let command = DirectCommand { seconds: 600 };
        assert_eq!(DirectCommand::from_json(command.to_json().as_bytes()).expect("a command"), command);
        for bad in ["", "{}", r#"{"seconds": 0}"#, r#"{"seconds": 3601}"#, r#"{"seconds": -1}"#, r#"{"seconds": 1, "host": "a"}"#] {
            assert!(DirectCommand::from_json(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
