//! The form of alerts that outlives the process, so that a restart sends nothing again: JSON with a version.
//!
//! What is suspected is not kept, as nobody has watched it meanwhile. What stands is kept until something is known of it again.

use std::collections::BTreeMap;

use admin_api::AlertLine;
use semantics::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Alerts,
    board::Board,
    traffic::{Traffic, Week},
};

/// The version of this form.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct SavedAlerts {
    version: u32,
    standing: Vec<AlertLine>,
    ended: Vec<AlertLine>,
    weeks: BTreeMap<String, Week>,
}

/// Says why a text holds no alerts.
#[derive(Debug)]
pub enum NotKept {
    /// It is torn, or something else.
    Unreadable(serde_json::Error),
    /// Another version of Seawall wrote it.
    Version(u32),
}

impl std::fmt::Display for NotKept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Version(version) => write!(f, "it has the form {version}, and this Seawall writes {VERSION}"),
        }
    }
}

impl std::error::Error for NotKept {}

impl Alerts {
    /// Writes what [`read`](Self::read) reads.
    #[must_use]
    pub fn kept(&self) -> String {
        let weeks = self.traffic.weeks().map(|(name, week)| (name.clone(), week.clone())).collect();
        let kept = SavedAlerts { version: VERSION, standing: self.standing(), ended: self.ended(), weeks };
        serde_json::to_string(&kept).expect("texts and numbers are always JSON")
    }

    /// Reads alerts that were kept.
    ///
    /// # Errors
    /// When they cannot be read, or another version wrote them.
    pub fn read(text: &str, now: Timestamp) -> Result<Self, NotKept> {
        #[derive(Deserialize)]
        struct Form {
            version: u32,
        }
        let Form { version } = serde_json::from_str(text).map_err(NotKept::Unreadable)?;
        if version != VERSION {
            return Err(NotKept::Version(version));
        }
        let SavedAlerts { standing, ended, weeks, .. } = serde_json::from_str(text).map_err(NotKept::Unreadable)?;
        Ok(Self { board: Board::of(standing, ended), traffic: Traffic::of(now, weeks), changes: 0 })
    }
}
