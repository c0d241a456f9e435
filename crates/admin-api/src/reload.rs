//! Reading the configuration again, on command.

use serde::{Deserialize, Serialize};

/// Says what came of a configuration that was taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadDone {
    /// Keys that have changed and take effect after a restart alone.
    pub needs_restart: Vec<String>,
}

/// Says why a configuration was not taken over. The one before it stays in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadRefused {
    /// It has errors: each with its place and what to do.
    #[error("the configuration has errors, and stays as it was\n\n{0}")]
    Wrong(String),
    /// It names something that cannot be used, such as a folder that cannot be read.
    #[error("the configuration stays as it was: {0}")]
    Failed(String),
    /// The server stops, or takes no such command.
    #[error("the server cannot reload now")]
    Busy,
}

impl ReloadRefused {
    /// Says what to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Wrong(_) | Self::Failed(_) => "put it right, look at it with `seawall check`, and reload again",
            Self::Busy => "try again; if this goes on, the server is stopping",
        }
    }
}
