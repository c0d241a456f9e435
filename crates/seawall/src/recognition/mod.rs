//! Recognition: which software a server runs, as far as Seawall has rules for it.
//!
//! A server is asked one question for each software, and only that software answers it as it does ([`ask`]). What was found is a value ([`Findings`])
//! from which the settings are made, so that presets, defaults and fingerprints follow from it. It is asked again while Seawall runs ([`keeper`]), and
//! it is remembered for a start at which the server is away ([`memory`]). What a folder holds is seen in it ([`folder`]).
//!
//! Absent: guesses. What a page says of its generator decides nothing: exports and imitations say the same.

pub(crate) mod ask;
pub(crate) mod folder;
pub(crate) mod keeper;
pub(crate) mod memory;
mod past;
mod product;
pub(crate) mod schedule;
mod sitemap;
mod software;
mod totals;

use std::{collections::BTreeMap, path::Path};

use policy::SourceForm;

pub(crate) use past::{leads_past, sends_to_https};
pub(crate) use product::{kept, kept_a_while, name_of};
use sitemap::ListingDigest;
pub use software::Software;

use crate::config::settings::{Kind, OriginAddress, OriginHost, Settings, Site, Source};

/// Says which server is asked, and under which name: the same server may answer as different software for different hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The first address of the server, or the folder.
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

    /// Makes the question for a site whose software is in this folder.
    #[must_use]
    pub fn of_folder(folder: &Path, hosts: &[String]) -> Self {
        Self { source: folder.display().to_string(), host: hosts.iter().find(|host| !host.starts_with('*')).cloned() }
    }

    /// Makes the question for a site, if its kind depends on the answer or more about it does.
    pub(crate) fn of(site: &Site) -> Option<Self> {
        match &site.source {
            Source::Http(addresses) => {
                let address = addresses.first()?;
                (!site.kind_is_given || site.kind.product().is_some()).then(|| Self::new(address, &site.hosts, &site.origin.host))
            }
            Source::Php(folder) => site.kind.product().is_some().then(|| Self::of_folder(folder, &site.hosts)),
            Source::Files(_) | Source::Blog(_) => None,
        }
    }
}

/// Says what is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finding {
    /// It was not asked.
    #[default]
    Unasked,
    /// It has not answered. The words say why.
    Silent(String),
    /// It is not software that is known here. The words say what it answered.
    Other(String),
    /// It has said what it is.
    Recognised {
        /// The software that it says it is.
        software: Software,
        /// Whether this is from the last time that it was asked by another process.
        remembered: bool,
    },
}

impl Finding {
    /// Returns what the software says of itself, if it has.
    #[must_use]
    pub const fn software(&self) -> Option<&Software> {
        match self {
            Self::Recognised { software, .. } => Some(software),
            Self::Unasked | Self::Silent(_) | Self::Other(_) => None,
        }
    }

    /// Returns what the software says of itself, if it makes sites of this kind.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> Option<&Software> {
        self.software().filter(|software| software.kind() == kind)
    }

    /// Returns whether an answer replaces what is known. A server that was recognised stays what it is, also if that is only remembered: it may be
    /// behind a page for maintenance. What is stored for it must not be lost for that, and its members' pages must not be taken for everybody's.
    fn gives_way_to(&self, newer: &Self) -> bool {
        match (self, newer) {
            (_, Self::Unasked) => false,
            (Self::Recognised { .. }, Self::Silent(_) | Self::Other(_)) | (Self::Other(_), Self::Silent(_)) => false,
            (before, newer) => before != newer,
        }
    }
}

/// Holds what is known of every server that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    findings: BTreeMap<Question, Finding>,
    /// The digest of what lists the pages of each, as it was seen last.
    seen: BTreeMap<Question, ListingDigest>,
}

impl Findings {
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

    /// Takes an answer that has been the same for so long that even remembered software gives way to it. Returns whether it changes what is known.
    fn take_settled(&mut self, question: Question, finding: Finding) -> bool {
        if matches!((self.findings.get(&question), &finding), (Some(Finding::Recognised { remembered: true, .. }), Finding::Other(_))) {
            self.findings.remove(&question);
        }
        self.take(question, finding)
    }

    /// Returns what lists the pages of a site, as it was seen last.
    fn seen_of(&self, question: &Question) -> Option<ListingDigest> {
        self.seen.get(question).copied()
    }

    /// Takes how what lists the pages of a site looks. Returns whether that is new.
    fn take_seen(&mut self, question: Question, seen: ListingDigest) -> bool {
        self.seen.insert(question, seen) != Some(seen)
    }

    /// Returns the servers that were recognised, and what lists their pages as it was seen last.
    fn recognised(&self) -> impl Iterator<Item = (&Question, &Software, Option<ListingDigest>)> {
        self.findings.iter().filter_map(|(question, finding)| Some((question, finding.software()?, self.seen.get(question).copied())))
    }

    /// Forgets servers that none of these sites has.
    pub(crate) fn keep_for(&mut self, settings: &Settings) {
        let wanted: Vec<Question> = settings.sites.iter().filter_map(Question::of).collect();
        self.findings.retain(|question, _| wanted.contains(question));
        self.seen.retain(|question, _| wanted.contains(question));
    }
}

/// Returns what the software of a site says of itself, if it is what the site is treated as.
pub(crate) fn software(site: &Site) -> Option<&Software> {
    site.finding.of_kind(site.kind)
}

/// Returns whether a site may be of this kind: it is, or its server could not be asked yet.
pub(crate) fn may_be(site: &Site, kind: Kind) -> bool {
    let is_unknown = !site.kind_is_given
        && site.source.form() == SourceForm::Server
        && !matches!(site.finding, Finding::Other(_) | Finding::Recognised { .. });
    site.kind == kind || is_unknown
}

/// Says in a few words how the kind of a site is known. Returns `None` if it follows from the form of the source.
pub(crate) fn how_known(site: &Site) -> Option<String> {
    let given = site.kind_is_given;
    if let (Source::Php(_), false) = (&site.source, given) {
        let found = folder::of(site)?;
        let at = software(site).map(|software| format!(" at {}", software.url())).unwrap_or_default();
        return Some(format!("found in the folder: WordPress {}{at}", found.version));
    }
    match &site.finding {
        Finding::Recognised { software, remembered: true } => Some(format!("remembered: {software}")),
        Finding::Recognised { software, .. } if given && software.kind() != site.kind => {
            Some(format!("set by you, but it answers otherwise: {software}"))
        }
        Finding::Recognised { software, remembered: false } if given => Some(format!("set by you: {software}")),
        Finding::Recognised { software, remembered: false } => Some(format!("recognised: {software}")),
        Finding::Silent(why) if given => Some(format!("set by you; it does not answer yet: {why}")),
        Finding::Silent(why) => Some(format!("not asked yet, as it does not answer: {why}")),
        Finding::Other(what) if given => Some(format!("set by you, but it answers otherwise: {what}")),
        Finding::Other(what) => Some(format!("neither a Ghost nor a WordPress: {what}")),
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
        Finding::Recognised { software: Software::ghost(version, "https://blog.example/").expect("a Ghost"), remembered }
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
            let mut known = Findings::default();
            known.take(question(), before.clone());
            assert_eq!(known.take(question(), after.clone()), changes, "{before:?} {after:?}");
            assert_eq!(known.of(&question()), if changes { after } else { before });
        }
        for (before, changes) in [(ghost("6.65", true), true), (ghost("6.65", false), false)] {
            let mut known = Findings::default();
            known.take(question(), before);
            assert_eq!(known.take_settled(question(), other()), changes);
        }
    }
}
