//! What came of a purge, for whoever ordered it.

use std::fmt;

use store::Generation;

/// A purge that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The generation that it raised the store to: a fetch that begins now is not covered.
    pub generation: Generation,
    /// The number of stored responses that it found, if that was counted.
    pub variants: Option<usize>,
    /// Whether that is all it covered. There may be more of which only addresses are known, because it is on the disk.
    pub complete: bool,
    /// What it covered, with hosts and paths as they stand in keys.
    pub covered: Vec<Covered>,
}

impl Receipt {
    /// Says what was covered in words, for the operator.
    #[must_use]
    pub fn in_words(&self) -> String {
        self.covered.iter().map(Covered::in_words).collect::<Vec<_>>().join(", ")
    }
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
