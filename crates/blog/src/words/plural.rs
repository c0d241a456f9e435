//! Plural forms: which form of a word stands with a whole number (CLDR, "Language Plural Rules", cardinals).

use serde::Serialize;

/// A text in all plural forms of a language, each with `{n}` in place of the number. Where a language lacks a form, it has the most general
/// one, so a script can take any form by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Plurals {
    pub(crate) one: &'static str,
    pub(crate) few: &'static str,
    pub(crate) many: &'static str,
    pub(crate) other: &'static str,
}

impl Plurals {
    /// Makes a text of a language that has a singular and a plural.
    pub(super) const fn two(one: &'static str, other: &'static str) -> Self {
        Self { one, few: other, many: other, other }
    }

    /// Makes a text that is the same with every number.
    pub(super) const fn same(other: &'static str) -> Self {
        Self { one: other, few: other, many: other, other }
    }

    /// Makes a text of a Slavic language: with 1, with 2 to 4, and with further whole numbers. Fractions do not occur here.
    pub(super) const fn three(one: &'static str, few: &'static str, many: &'static str) -> Self {
        Self { one, few, many, other: many }
    }

    pub(super) const fn form(&self, category: Category) -> &'static str {
        match category {
            Category::One => self.one,
            Category::Few => self.few,
            Category::Many => self.many,
            Category::Other => self.other,
        }
    }
}

/// The plural categories of CLDR that the languages here use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    One,
    Few,
    Many,
    Other,
}

/// Plural rules. A rule serves every language for which CLDR gives the same one for whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// One form: Japanese, Korean, Chinese.
    None,
    /// The singular with 1: English and most languages of Europe.
    One,
    /// The singular with 0 and 1: French, Portuguese.
    ZeroOne,
    Czech,
    Polish,
    /// Russian and Ukrainian.
    EastSlavic,
}

impl Rule {
    pub(super) const fn category(self, n: usize) -> Category {
        let few = matches!(n % 10, 2..=4) && !matches!(n % 100, 12..=14);
        match self {
            Self::One if n == 1 => Category::One,
            Self::ZeroOne if n <= 1 => Category::One,
            Self::None | Self::One | Self::ZeroOne => Category::Other,
            Self::Czech => match n {
                1 => Category::One,
                2..=4 => Category::Few,
                _ => Category::Other,
            },
            Self::Polish if n == 1 => Category::One,
            Self::EastSlavic if n % 10 == 1 && n % 100 != 11 => Category::One,
            Self::Polish | Self::EastSlavic if few => Category::Few,
            Self::Polish | Self::EastSlavic => Category::Many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Category::*, *};

    /// The samples that CLDR gives with each rule, and the numbers beside them where rules usually go wrong.
    #[test]
    fn the_form_of_a_word_follows_its_number() {
        let cases: &[(Rule, &[(usize, Category)])] = &[
            (Rule::None, &[(0, Other), (1, Other), (2, Other)]),
            (Rule::One, &[(0, Other), (1, One), (2, Other), (21, Other), (101, Other)]),
            (Rule::ZeroOne, &[(0, One), (1, One), (2, Other), (17, Other)]),
            (Rule::Czech, &[(0, Other), (1, One), (2, Few), (4, Few), (5, Other), (22, Other), (101, Other)]),
            (
                Rule::Polish,
                &[(0, Many), (1, One), (2, Few), (4, Few), (5, Many), (12, Many), (21, Many), (22, Few), (101, Many), (112, Many)],
            ),
            (
                Rule::EastSlavic,
                &[
                    (0, Many),
                    (1, One),
                    (2, Few),
                    (5, Many),
                    (11, Many),
                    (14, Many),
                    (21, One),
                    (22, Few),
                    (101, One),
                    (111, Many),
                    (113, Many),
                ],
            ),
        ];
        for (rule, numbers) in cases {
            for &(number, expected) in *numbers {
                assert_eq!(rule.category(number), expected, "{rule:?}: {number}");
            }
        }
    }
}
