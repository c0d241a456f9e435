//! Says what became of each page, and of all of them.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    foreign::visible,
    terminal::{Style, styled},
};

/// Says what became of one page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was stored, or what was stored was confirmed.
    Stored,
    /// It was there already, and fresh.
    Hit,
    /// It is stale, was answered so, and is being refreshed behind.
    Refreshing,
    /// It was answered and not stored, by the rule of this name.
    NotStored(String),
    /// There was no answer, or none that a page should have: a status, or what happened.
    Failed(String),
    /// It was not asked for: it is on a host that this server does not serve, or it is not an address.
    Skipped(String),
}

impl Outcome {
    /// Reads what became of a page from its status, `X-Cache` and our member of `Cache-Status` (RFC 9211).
    #[must_use]
    pub fn of(status: u16, x_cache: &str, cache_status: &str) -> Self {
        if status >= 400 {
            return Self::Failed(format!("status {status}"));
        }
        // Caches nearer the origin come first; ours is the last.
        let member = cache_status.rfind("seawall").map_or("", |at| &cache_status[at..]);
        // A parameter without a value is true (RFC 9651 §3.1.2).
        let parameter = |name: &str| {
            let mut parameters = member.split(';').skip(1).map(str::trim).map(|text| text.split_once('=').unwrap_or((text, "")));
            parameters.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if parameter("hit").is_some() {
            // RFC 9211 has no word for this: what was purged softly may have a lifetime left.
            return if x_cache == "UPDATING" { Self::Refreshing } else { Self::Hit };
        }
        if parameter("stored").is_some() {
            return Self::Stored;
        }
        let why = parameter("detail").or_else(|| parameter("fwd")).unwrap_or("no Cache-Status");
        Self::NotStored(why.trim_matches('"').to_owned())
    }

    /// Returns the word at the beginning of a line.
    const fn word(&self) -> (&'static str, Style) {
        match self {
            Self::Stored => ("stored", Style::Green),
            Self::Hit => ("hit", Style::Green),
            Self::Refreshing => ("refreshing", Style::Yellow),
            Self::NotStored(_) => ("not stored", Style::Yellow),
            Self::Failed(_) => ("failed", Style::Red),
            Self::Skipped(_) => ("skipped", Style::Dim),
        }
    }

    /// Returns what became of it in words, such as `stored` or `not stored: set-cookie`.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.word().0, self.detail()) {
            (word, "") => word.to_owned(),
            (word, detail) => format!("{word}: {detail}"),
        }
    }

    fn detail(&self) -> &str {
        match self {
            Self::Stored | Self::Hit | Self::Refreshing => "",
            Self::NotStored(why) | Self::Failed(why) | Self::Skipped(why) => why,
        }
    }

    /// Writes a line about one page.
    #[must_use]
    pub fn line(&self, url: &str, colour: bool) -> String {
        let (word, style) = self.word();
        let detail = self.detail();
        let detail = if detail.is_empty() { String::new() } else { format!("   ({})", visible(detail)) };
        let url = visible(url);
        format!("{}{url}{detail}", styled(format_args!("{word:12}"), style, colour))
    }
}

/// Counts what became of all pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    counts: BTreeMap<Outcome, usize>,
    /// The number of pages that were not asked for any more, and why.
    pub stopped: Option<(usize, String)>,
}

impl Summary {
    pub(super) fn count(&mut self, outcome: Outcome) {
        *self.counts.entry(outcome).or_default() += 1;
    }

    /// Returns how many pages came out so.
    #[must_use]
    pub fn of(&self, outcome: &Outcome) -> usize {
        self.counts.get(outcome).copied().unwrap_or_default()
    }

    /// Returns how many pages were answered.
    fn answered(&self) -> usize {
        let answered = |outcome: &Outcome| !matches!(outcome, Outcome::Failed(_) | Outcome::Skipped(_));
        self.counts.iter().filter(|(outcome, _)| answered(outcome)).map(|(_, count)| count).sum()
    }

    /// Tells whether everything that was to be asked was answered. Nothing to be asked is a success; nothing that may be asked is none.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.stopped.is_none()
            && (self.answered() > 0 || self.counts.is_empty())
            && !self.counts.keys().any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    /// Writes a table.
    #[must_use]
    pub fn table(&self, colour: bool) -> String {
        let mut table = String::new();
        for (outcome, count) in &self.counts {
            let (word, style) = outcome.word();
            // Padded only where something follows.
            let detail = outcome.detail();
            let width = if detail.is_empty() { 0 } else { 12 };
            let _ = writeln!(table, "{count:>8}  {}{}", styled(format_args!("{word:width$}"), style, colour), visible(detail));
        }
        if let Some((left, why)) = &self.stopped {
            let _ = writeln!(table, "{left:>8}  {:12}{why}", "not asked");
        }
        if table.is_empty() { "There is nothing to warm.\n".to_owned() } else { table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9211 §2: parameters of our own member, the last one.
    #[test]
    fn cache_status_tells_what_became_of_a_page() {
        let not_stored = |why: &str| Outcome::NotStored(why.to_owned());
        assert_eq!(Outcome::of(200, "UPDATING", "seawall; hit; ttl=60"), Outcome::Refreshing);
        for (status, cache_status, expected) in [
            (200, "seawall; hit; ttl=60", Outcome::Hit),
            (200, "seawall; fwd=uri-miss; fwd-status=200; stored", Outcome::Stored),
            (200, "seawall; fwd=stale; fwd-status=304; ttl=60; stored", Outcome::Stored),
            (200, "origin-cache; hit, seawall; fwd=uri-miss; fwd-status=200; stored", Outcome::Stored),
            (200, "seawall; fwd=uri-miss; fwd-status=200; detail=private", not_stored("private")),
            (200, "seawall; fwd=bypass; detail=\"a rule\"", not_stored("a rule")),
            (200, "seawall; fwd=uri-miss", not_stored("uri-miss")),
            (302, "", not_stored("no Cache-Status")),
            (404, "seawall; hit; ttl=60", Outcome::Failed("status 404".to_owned())),
            (503, "", Outcome::Failed("status 503".to_owned())),
        ] {
            assert_eq!(Outcome::of(status, "", cache_status), expected, "{status} {cache_status}");
        }
    }

    #[test]
    fn a_summary_is_a_table_and_a_success_or_not() {
        let mut summary = Summary::default();
        assert!(summary.is_success());
        assert_eq!(summary.table(false), "There is nothing to warm.\n");
        summary.count(Outcome::Skipped("another host".to_owned()));
        assert!(!summary.is_success());
        let mut summary = Summary::default();
        for outcome in [Outcome::Hit, Outcome::Stored, Outcome::NotStored("private".to_owned()), Outcome::Stored] {
            summary.count(outcome);
        }
        assert!(summary.is_success());
        assert_eq!(summary.table(false), "       2  stored\n       1  hit\n       1  not stored  private\n");
        summary.count(Outcome::Failed("status 404".to_owned()));
        assert!(!summary.is_success());
        assert_eq!(Outcome::Hit.line("http://a/", false), "hit         http://a/");
        assert_eq!(Outcome::Failed("status 404".to_owned()).line("http://a/", false), "failed      http://a/   (status 404)");
    }
}
