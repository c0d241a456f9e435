//! Recognition: which software a server runs, as far as Seawall has rules for it.
//!
//! A server is asked one question, and only a Ghost answers it as a Ghost does ([`ask`]). What was found is a value ([`Known`]) from which the
//! settings are made, so that presets, defaults and fingerprints follow from it. It is asked again while Seawall runs ([`keeper`]), and it is
//! remembered for a start at which the server is away ([`memory`]).
//!
//! Absent: guesses. What a page says of its generator decides nothing: exports and imitations say the same.

pub(crate) mod ask;
mod ghost_site;
pub(crate) mod keeper;
pub(crate) mod memory;
mod past;
mod sitemap;

use std::collections::BTreeMap;

pub use ghost_site::GhostSite;
pub(crate) use past::{leads_past, sends_to_https};
use sitemap::Seen;

use crate::config::settings::{Kind, OriginAddress, OriginHost, Settings, Site, Source};

/// Which server is asked, and under which name: the same server may answer as different software for different hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The first address of the server.
    pub source: String,
    /// The host that is asked for. `None`: the one in the address.
    pub host: Option<String>,
}

impl Question {
    /// Makes the question for a site with these hosts.
    #[must_use]
    pub fn new(address: &OriginAddress, hosts: &[String], host: &OriginHost) -> Self {
        let host = match host {
            OriginHost::Name(name) => Some(name.clone()),
            OriginHost::Client => hosts.iter().find(|host| !host.starts_with('*')).cloned(),
            OriginHost::Origin => None,
        };
        Self { source: address.to_string(), host }
    }

    /// Makes the question for a site, if its kind depends on the answer or more about it does.
    pub(crate) fn of(site: &Site) -> Option<Self> {
        let Source::Http(addresses) = &site.source else { return None };
        let address = addresses.first()?;
        (!site.kind_is_given || site.kind == Kind::Ghost).then(|| Self::new(address, &site.hosts, &site.origin.host))
    }
}

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finding {
    /// It was not asked.
    #[default]
    Unasked,
    /// It has not answered. The words say why.
    Silent(String),
    /// It is no Ghost. The words say what it answered.
    Other(String),
    /// It is a Ghost.
    Ghost {
        /// What it says of itself.
        site: GhostSite,
        /// Whether this is from the last time that it was asked by another process.
        remembered: bool,
    },
}

impl Finding {
    /// Returns what the Ghost says of itself, if it is one.
    #[must_use]
    pub const fn ghost(&self) -> Option<&GhostSite> {
        match self {
            Self::Ghost { site, .. } => Some(site),
            Self::Unasked | Self::Silent(_) | Self::Other(_) => None,
        }
    }

    /// Returns whether an answer replaces what is known. A server that is known as a Ghost stays one, and so does one that is only remembered: it
    /// may be behind a page for maintenance. What is stored for it must not be lost for that, and its members' pages must not be taken for everybody's.
    fn gives_way_to(&self, newer: &Self) -> bool {
        match (self, newer) {
            (_, Self::Unasked) => false,
            (Self::Ghost { .. }, Self::Silent(_) | Self::Other(_)) | (Self::Other(_), Self::Silent(_)) => false,
            (before, newer) => before != newer,
        }
    }
}

/// What is known of every server that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    findings: BTreeMap<Question, Finding>,
    /// The sitemaps of Ghosts, as they were seen last.
    seen: BTreeMap<Question, Seen>,
}

impl Known {
    /// Returns what is known of a server.
    #[must_use]
    pub fn of(&self, question: &Question) -> Finding {
        self.findings.get(question).cloned().unwrap_or_default()
    }

    /// Takes an answer. Returns whether it changes what is known.
    pub fn take(&mut self, question: Question, finding: Finding) -> bool {
        let before = self.findings.entry(question).or_default();
        let changes = before.gives_way_to(&finding);
        if changes {
            *before = finding;
        }
        changes
    }

    /// Takes an answer that has been the same for so long that even a remembered Ghost gives way to it. Returns whether it changes what is known.
    fn take_settled(&mut self, question: Question, finding: Finding) -> bool {
        if matches!((self.findings.get(&question), &finding), (Some(Finding::Ghost { remembered: true, .. }), Finding::Other(_))) {
            self.findings.remove(&question);
        }
        self.take(question, finding)
    }

    /// Takes how the sitemap of a Ghost looks. Returns whether that is new.
    fn take_seen(&mut self, question: Question, seen: Seen) -> bool {
        self.seen.insert(question, seen) != Some(seen)
    }

    /// Returns the servers that are Ghosts, and their sitemaps as they were seen last.
    fn ghosts(&self) -> impl Iterator<Item = (&Question, &GhostSite, Option<Seen>)> {
        self.findings.iter().filter_map(|(question, finding)| Some((question, finding.ghost()?, self.seen.get(question).copied())))
    }

    /// Forgets servers that none of these sites has.
    pub(crate) fn keep_for(&mut self, settings: &Settings) {
        let wanted: Vec<Question> = settings.sites.iter().filter_map(Question::of).collect();
        self.findings.retain(|question, _| wanted.contains(question));
        self.seen.retain(|question, _| wanted.contains(question));
    }
}

/// Says in a few words how the kind of a site is known. Returns `None` if it follows from the form of the source.
pub(crate) fn how_known(site: &Site) -> Option<String> {
    let given = site.kind_is_given;
    match &site.finding {
        Finding::Ghost { site: ghost, remembered: true } => Some(format!("remembered: {ghost}")),
        Finding::Ghost { site: ghost, remembered: false } if given => Some(format!("set by you: {ghost}")),
        Finding::Ghost { site: ghost, remembered: false } => Some(format!("recognised: {ghost}")),
        Finding::Silent(why) if given => Some(format!("set by you; it does not answer yet: {why}")),
        Finding::Silent(why) => Some(format!("not asked yet, as it does not answer: {why}")),
        Finding::Other(what) if given => Some(format!("set by you, but it answers otherwise: {what}")),
        Finding::Other(what) => Some(format!("no Ghost: {what}")),
        Finding::Unasked => given.then(|| "set by you".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question { source: "http://127.0.0.1:2368".to_owned(), host: None }
    }

    fn ghost(version: &str, remembered: bool) -> Finding {
        Finding::Ghost { site: GhostSite::new(version, "https://blog.example/").expect("a Ghost"), remembered }
    }

    #[test]
    fn an_answer_replaces_what_is_known_only_where_it_says_more() {
        let silent = || Finding::Silent("refused".to_owned());
        let other = || Finding::Other("404".to_owned());
        for (before, after, changes) in [
            (Finding::Unasked, silent(), true),
            (Finding::Unasked, other(), true),
            (silent(), ghost("6.65", false), true),
            (other(), ghost("6.65", false), true),
            (other(), silent(), false),
            (ghost("6.65", false), ghost("6.65", false), false),
            (ghost("6.65", false), ghost("6.66", false), true),
            (ghost("6.65", false), silent(), false),
            (ghost("6.65", false), other(), false),
            (ghost("6.65", true), silent(), false),
            (ghost("6.65", true), ghost("6.65", false), true),
            (ghost("6.65", true), other(), false),
        ] {
            let mut known = Known::default();
            known.take(question(), before.clone());
            assert_eq!(known.take(question(), after.clone()), changes, "{before:?} {after:?}");
            assert_eq!(known.of(&question()), if changes { after } else { before });
        }
        for (before, changes) in [(ghost("6.65", true), true), (ghost("6.65", false), false)] {
            let mut known = Known::default();
            known.take(question(), before);
            assert_eq!(known.take_settled(question(), other()), changes);
        }
    }
}
