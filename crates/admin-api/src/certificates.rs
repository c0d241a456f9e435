//! Certificates: which there are, and that one is to be replaced and revoked.
//!
//! `{"name": "blog.example.org"}` revokes. Nothing but the name: of the reasons that authorities know, a key that somebody else may have is
//! the one for which there is a hurry.

use serde::{Deserialize, Serialize};

/// Describes the certificate for one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateState {
    /// The name.
    pub name: String,
    /// The one who certifies it: an authority's directory, [`OWN_ROOT`], or the path of a file.
    pub authority: String,
    /// The time at which it ends, in seconds since 1970. `None` means that there is no certificate yet.
    pub not_after: Option<u64>,
    /// The time of the next attempt to get or renew it, in seconds since 1970. `None` means that whoever writes the file renews it.
    pub next: Option<u64>,
    /// The reason why the last attempt failed.
    pub last_error: Option<String>,
}

/// The [`authority`](CertificateState::authority) of a certificate that a root of this machine's own certifies. Such a root keeps no list of what it
/// takes back.
pub const OWN_ROOT: &str = "this machine's own root";

/// Names the certificate that is to be replaced and revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeCommand {
    /// The name.
    pub name: String,
}

impl RevokeCommand {
    /// Reads a command.
    ///
    /// # Errors
    /// When it is not JSON, or has other keys.
    pub fn from_json(json: &[u8]) -> Result<Self, BadRevocation> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Writes what [`from_json`](Self::from_json) reads.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a string is always JSON")
    }
}

/// Says why a text names no certificate.
#[derive(Debug, thiserror::Error)]
#[error("the body names no certificate: {0}")]
pub struct BadRevocation(#[from] serde_json::Error);

impl BadRevocation {
    /// Says what to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        "send {\"name\": \"blog.example.org\"}; GET /certificates lists the names"
    }
}

/// Says why a certificate was not replaced and revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevokeRefused {
    /// Seawall gets no certificate for this name by itself.
    #[error("Seawall has no automatic certificate for {0}")]
    Unknown(String),
    /// The authority or the way to it failed.
    #[error("{0}")]
    Failed(String),
    /// The authority has not answered yet.
    #[error("the certificate authority is slow: a new certificate is still being ordered")]
    Slow,
}

impl RevokeRefused {
    /// Says what to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "GET /certificates lists the names; a certificate from a file is revoked by whoever got it",
            Self::Failed(_) => "the certificate that was there is still shown; try again when the reason is gone",
            Self::Slow => "it goes on; GET /certificates, or `seawall certificates`, shows when the new one is there",
        }
    }
}
