//! What came of a purge, for whoever ordered it.

use std::fmt;

use admin_api::Spread;
use store::Generation;

/// The most tags that are named in words: a change of one post purges dozens.
const TAGS_NAMED: usize = 3;

/// A purge that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The generation that it raised the store to: a fetch that begins now is not covered.
    pub generation: Generation,
    /// The number of stored responses that it found, if that was counted.
    pub variants: Option<usize>,
    /// Whether that is all it covered. There may be more of which only addresses are known, because it is on the disk.
    pub complete: bool,
    /// The things that it covered, with hosts and paths as they stand in keys.
    pub covered: Vec<Covered>,
}

impl Receipt {
    /// Says what was covered in words, for the operator.
    #[must_use]
    pub fn in_words(&self) -> String {
        in_words(&self.covered)
    }
}

/// Says in words how far a purge went, for whoever sent it.
pub(super) fn spread_in_words(spread: &Spread) -> String {
    let names = |names: &[String]| names.join(", ");
    let expired = match spread.expired.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} did not answer, and validates what it has stored before it shows it"),
        many => format!("; {} did not answer, and validate what they have stored before they show it", names(many)),
    };
    if spread.everywhere {
        return format!("everywhere: {}{expired}", names(&spread.confirmed));
    }
    let missing = if spread.missing.is_empty() { String::new() } else { format!(" ({})", names(&spread.missing)) };
    let why = spread.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("not known to hold on every machine{missing}{why}{expired}")
}

/// Says in words what a purge covered, with many tags as their number and the first of them.
fn in_words(covered: &[Covered]) -> String {
    let tags: Vec<&str> = covered.iter().filter_map(Covered::as_tag).collect();
    if tags.len() < 2 {
        return covered.iter().map(Covered::in_words).collect::<Vec<_>>().join(", ");
    }
    let named = tags.iter().take(TAGS_NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if tags.len() > TAGS_NAMED { ", ..." } else { "" };
    let of_tags = format!("every page with one of {} tags ({named}{more})", tags.len());
    let others = covered.iter().filter(|covered| covered.as_tag().is_none()).map(Covered::in_words);
    std::iter::once(of_tags).chain(others).collect::<Vec<_>>().join(", ")
}

/// One thing that a purge covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Covered {
    /// A page in every variant and with every query: its host and path.
    Url(String),
    /// All pages whose host and path begin so.
    Prefix(String),
    /// All pages of a host.
    Host(String),
    /// All pages with a tag.
    Tag(String),
    /// All pages of the site with this name.
    Site(String),
    /// All pages.
    Everything,
}

impl Covered {
    fn as_tag(&self) -> Option<&str> {
        if let Self::Tag(tag) = self { Some(tag) } else { None }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Url(url) => format!("{url} in all its forms"),
            Self::Prefix(url) => format!("every page below {url}"),
            Self::Host(host) => format!("every page of {host}"),
            Self::Tag(tag) => format!("every page with the tag {tag}"),
            Self::Site(name) => format!("every page of the site {name}"),
            Self::Everything => "everything that was stored".to_owned(),
        }
    }
}

/// Writes the short form, as plugins and the log get it.
impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Prefix(url) => write!(f, "{url}*"),
            Self::Host(host) => write!(f, "host {host}"),
            Self::Tag(tag) => write!(f, "tag {tag}"),
            Self::Site(name) => write!(f, "site {name}"),
            Self::Everything => f.write_str("everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use admin_api::Spread;

    use super::{Covered, in_words, spread_in_words};

    #[test]
    fn how_far_a_purge_went_is_said_in_words() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let spread = |everywhere, [confirmed, expired, missing]: [&[&str]; 3], why: Option<&str>| Spread {
            everywhere,
            confirmed: names(confirmed),
            expired: names(expired),
            missing: names(missing),
            why: why.map(str::to_owned),
            took_ms: 0,
        };
        for (spread, words) in [
            (spread(true, [&["a", "b"], &[], &[]], None), "everywhere: a, b"),
            (
                spread(true, [&["a"], &["b"], &[]], None),
                "everywhere: a; b did not answer, and validates what it has stored before it shows it",
            ),
            (
                spread(false, [&["a"], &[], &["b", "c"]], Some("10.0.0.5 does not answer; they are told when it does")),
                "not known to hold on every machine (b, c): 10.0.0.5 does not answer; they are told when it does",
            ),
            (spread(false, [&["a"], &[], &[]], None), "not known to hold on every machine"),
        ] {
            assert_eq!(spread_in_words(&spread), words);
        }
    }

    #[test]
    fn many_tags_are_a_number_and_the_first_three() {
        let tag = |tag: &str| Covered::Tag(tag.to_owned());
        let url = || Covered::Url("a.example/feed/".to_owned());
        for (covered, words) in [
            (vec![tag("list")], "every page with the tag list"),
            (vec![tag("post-1"), tag("list")], "every page with one of 2 tags (post-1, list)"),
            (
                vec![tag("post-1"), url(), tag("list"), tag("term-3"), tag("home")],
                "every page with one of 4 tags (post-1, list, term-3, ...), a.example/feed/ in all its forms",
            ),
            (vec![url(), Covered::Everything], "a.example/feed/ in all its forms, everything that was stored"),
        ] {
            assert_eq!(in_words(&covered), words);
        }
    }
}
