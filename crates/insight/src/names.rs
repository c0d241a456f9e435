//! The names of rules, each kept once. They come from tables of the program, so they are few; what is beyond the bound has one name.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::{remedies, text::shortened};

/// Names that are told apart.
const NAMES_MAX: usize = 512;
/// Bytes of the longest.
pub(crate) const NAME_BYTES_MAX: usize = 40;
/// The name of those that are not told apart.
pub(crate) const OTHERS: &str = "(others)";

/// The number of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u16);

impl Name {
    /// The name of nothing.
    pub(crate) const NONE: Self = Self(0);
    /// The name of those that are not told apart.
    pub(crate) const OTHERS: Self = Self(1);
}

/// All names that were seen.
#[derive(Debug)]
pub(crate) struct Names(RwLock<NameTable>);

#[derive(Debug, Default)]
struct NameTable {
    /// The number of each, and whether it is the name of a failure.
    numbers: HashMap<Box<str>, (Name, bool)>,
    names: Vec<Box<str>>,
}

impl Default for Names {
    fn default() -> Self {
        let names = Self(RwLock::default());
        let fixed = [names.number(""), names.number(OTHERS)];
        debug_assert_eq!(fixed, [Name::NONE, Name::OTHERS]);
        names
    }
}

impl Names {
    /// Returns the number of a name.
    pub(crate) fn number(&self, name: &str) -> Name {
        self.rule(name).0
    }

    /// Returns the number of a rule's name, and whether it is a failure.
    pub(crate) fn rule(&self, name: &str) -> (Name, bool) {
        if let Some(rule) = self.0.read().numbers.get(name) {
            return *rule;
        }
        let mut known = self.0.write();
        let name = shortened(name, NAME_BYTES_MAX);
        if let Some(rule) = known.numbers.get(&*name) {
            return *rule;
        }
        let is_failure = remedies::is_failure(&name);
        match u16::try_from(known.names.len()) {
            Ok(number) if known.names.len() < NAMES_MAX => {
                known.numbers.insert(name.as_str().into(), (Name(number), is_failure));
                known.names.push(name.into());
                (Name(number), is_failure)
            }
            Ok(_) | Err(_) => (Name::OTHERS, is_failure),
        }
    }

    pub(crate) fn text(&self, name: Name) -> String {
        self.0.read().names.get(usize::from(name.0)).map(ToString::to_string).unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> usize {
        let known = self.0.read();
        known.names.iter().map(|name| 2 * (crate::memory::of_text(name) + size_of::<Box<str>>()) + 32).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_there_are_no_more_than_the_bound() {
        let names = Names::default();
        let cookie = names.number("cookie");
        assert_eq!((names.number("cookie"), &*names.text(cookie)), (cookie, "cookie"));
        for n in 0..2 * NAMES_MAX {
            names.number(&format!("rule {n}"));
        }
        assert_eq!(names.0.read().names.len(), NAMES_MAX);
        assert_eq!(names.number("another"), Name::OTHERS);
        assert_eq!(names.number("cookie"), cookie);
        assert_eq!((&*names.text(Name::NONE), &*names.text(Name::OTHERS)), ("", OTHERS));
    }
}
