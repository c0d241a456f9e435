//! Names that stand for many: in the tables of presets, and in the settings of a site.

/// A set of names: some whole, some by how they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The names that are in the set as they stand here.
    pub whole: &'static [&'static str],
    /// All names that begin with one of these are in the set.
    pub beginnings: &'static [&'static str],
}

impl Names {
    /// The empty set.
    pub const NONE: Self = Self { whole: &[], beginnings: &[] };

    /// Returns whether the set has this name.
    #[must_use]
    pub fn have(&self, name: &str) -> bool {
        self.whole.contains(&name) || self.beginnings.iter().any(|beginning| name.starts_with(beginning))
    }
}

/// A name as an operator writes it: a `*` at its end stands for anything.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    is_beginning: bool,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(beginning) => Self { text: beginning.to_owned(), is_beginning: true },
            None => Self { text: text.to_owned(), is_beginning: false },
        }
    }

    /// Makes a list of patterns.
    pub(crate) fn all(texts: &[String]) -> Vec<Self> {
        texts.iter().map(|text| Self::new(text)).collect()
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        if self.is_beginning { name.starts_with(&self.text) } else { name == self.text }
    }
}
