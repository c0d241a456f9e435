//! Alerts: what an operator should be told without asking.
//!
//! [`Alerts::step`] takes facts and the time, and returns what has begun and what has ended. It tells each alert twice: when it begins and when it ends.
//! `judge.rs` says whether something is wrong at this moment, `board.rs` how long that has to last, `traffic.rs` keeps what the rules about traffic
//! compare, and `kept.rs` is what survives a restart. Nothing here sends anything, and nothing here looks at a clock.

mod board;
mod judge;
mod kept;
mod notice;
mod traffic;

use std::time::Duration;

use admin_api::{AlertLine, CertificateState};
use semantics::Timestamp;

use self::{board::Board, traffic::Traffic};
pub use self::{
    board::{ALERTS_MAX, ENDED_MAX},
    kept::NotKept,
    notice::{Notice, State},
    traffic::{HOUR_LOOKUPS_MIN, SITES_MAX},
};

/// The rules by which Seawall raises alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The server behind a site cannot be connected to.
    OriginDown,
    /// A site's hit ratio is far below what it was in the same hour of the week before.
    HitRatio,
    /// A certificate ends soon, or could not be got.
    Certificate,
    /// A disk that Seawall writes to is nearly full, or takes nothing.
    Disk,
    /// Many of a site's responses are errors of the server.
    ServerErrors,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::OriginDown, Self::HitRatio, Self::Certificate, Self::Disk, Self::ServerErrors];

    /// Returns the name by which operators know it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OriginDown => "origin-down",
            Self::HitRatio => "hit-ratio",
            Self::Certificate => "certificate",
            Self::Disk => "disk",
            Self::ServerErrors => "server-errors",
        }
    }

    /// Finds the one that has this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The limits beyond which something is wrong, and how long it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The kinds that are not watched.
    pub off: Vec<Kind>,
    /// The time for which something has to be wrong, without a break, before an alert begins.
    pub after: Duration,
    /// The time for which it has to be right, without a break, before the alert ends.
    pub clear_after: Duration,
    /// The share of a site's responses in five minutes that may be errors of the server, in per cent.
    pub server_errors: u8,
    /// The number of percentage points by which a site's hit ratio may be below that of the week before.
    pub hit_ratio_fall: u8,
    /// The time before a certificate's end at which it should have been renewed.
    pub certificate: Duration,
    /// The bytes that should be free on a disk.
    pub disk_free: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            off: Vec::new(),
            after: Duration::from_secs(60),
            clear_after: Duration::from_secs(5 * 60),
            server_errors: 5,
            hit_ratio_fall: 20,
            certificate: Duration::from_secs(7 * 86_400),
            disk_free: 1 << 30,
        }
    }
}

/// Holds what is known at one moment. A list names all that there is of its kind: an alert about something that is no longer in it ends. A
/// list that is `None` was not looked at this time, and changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The servers behind the sites.
    pub origins: Option<&'a [OriginFact]>,
    /// The counts of what the sites were asked since they were looked at last.
    pub traffic: Option<&'a [TrafficFact]>,
    /// The certificates.
    pub certificates: Option<&'a [CertificateState]>,
    /// The disks to which Seawall writes.
    pub disks: Option<&'a [DiskFact]>,
}

/// A server behind a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginFact {
    /// The site, or the part of it for which the server answers: `blog.example`, `blog.example/api`.
    pub about: String,
    /// The addresses of the server.
    pub address: String,
    /// Whether it could be connected to when that was tried last; `None` if it was not tried yet.
    pub up: Option<bool>,
}

/// Counts what a site was asked since it was looked at last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficFact {
    /// The site.
    pub site: String,
    /// Requests that have ended.
    pub requests: u64,
    /// The requests that asked the cache.
    pub lookups: u64,
    /// The requests that the cache answered without waiting for an origin.
    pub hits: u64,
    /// Responses with a status of 500 and above.
    pub server_errors: u64,
}

/// A disk to which Seawall writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFact {
    /// The folder on it.
    pub folder: String,
    /// The bytes that Seawall could still write; `None` if the system does not say.
    pub free: Option<u64>,
    /// The words for what Seawall itself has met: `is full`, `is read-only`, `fails`.
    pub trouble: Option<&'static str>,
}

/// Everything that is watched, and what stands.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    board: Board,
    traffic: Traffic,
    changes: u64,
}

impl Alerts {
    /// Judges what is known now, and returns what has begun and what has ended since.
    pub fn step(&mut self, now: Timestamp, rules: &Rules, facts: &Facts<'_>) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut judge = |kind: Kind, subjects: Vec<(String, judge::Verdict)>| {
            // What is not watched is as what is not there.
            let subjects = if rules.off.contains(&kind) { Vec::new() } else { subjects };
            self.board.take(now, rules, kind, subjects, &mut notices);
        };
        if let Some(origins) = facts.origins {
            judge(Kind::OriginDown, origins.iter().map(judge::origin).collect());
        }
        if let Some(sites) = facts.traffic {
            self.traffic.add(now, sites);
            let traffic = &self.traffic;
            judge(Kind::ServerErrors, sites.iter().map(|fact| judge::errors(&fact.site, traffic.errors(now, &fact.site), rules)).collect());
            let ratios = |site: &str| (traffic.ratio(now, site), traffic.ratio_before(now, site));
            judge(Kind::HitRatio, sites.iter().map(|fact| judge::ratio(&fact.site, ratios(&fact.site), rules)).collect());
        }
        if let Some(certificates) = facts.certificates {
            judge(Kind::Certificate, certificates.iter().map(|state| judge::certificate(state, now, rules)).collect());
        }
        if let Some(disks) = facts.disks {
            judge(Kind::Disk, disks.iter().map(|disk| judge::disk(disk, rules)).collect());
        }
        self.changes += notices.len() as u64;
        notices
    }

    /// Lists the alerts that stand, the oldest first.
    #[must_use]
    pub fn standing(&self) -> Vec<AlertLine> {
        self.board.standing()
    }

    /// Lists the alerts that ended last, the newest first.
    #[must_use]
    pub fn ended(&self) -> Vec<AlertLine> {
        self.board.ended()
    }

    /// Returns how many alerts have begun or ended since this was made: whoever keeps alerts over a restart writes them down when it changes.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Estimates the bytes of memory that all this takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.board.bytes() + self.traffic.bytes()
    }
}

#[cfg(test)]
mod tests;
