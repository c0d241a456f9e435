//! Footnotes: numbered in the order of their first mention, gathered at the end, each with a way back.
//!
//! Labels are the same in large and small letters, as for links.

use std::collections::{HashMap, HashSet};

/// The numbers of the footnotes of a text.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    defined: HashSet<String>,
    /// The labels that the text mentions, in order.
    in_text: Vec<String>,
    /// The labels that each footnote mentions.
    in_notes: HashMap<String, Vec<String>>,
    numbers: HashMap<String, usize>,
}

impl Numbers {
    pub(super) fn define(&mut self, label: &str) {
        self.defined.insert(label.to_lowercase());
    }

    /// Takes note of a mention of `label`, in the text or in the footnote `within`.
    pub(super) fn mention(&mut self, within: Option<&str>, label: &str) {
        let list = match within {
            Some(within) => self.in_notes.entry(within.to_lowercase()).or_default(),
            None => &mut self.in_text,
        };
        list.push(label.to_lowercase());
    }

    /// Gives numbers: first to what the text mentions, then to what those footnotes mention, and so on.
    pub(super) fn number(&mut self) {
        let mut order = std::mem::take(&mut self.in_text);
        let mut at = 0;
        while at < order.len() {
            let label = std::mem::take(&mut order[at]);
            at += 1;
            if !self.defined.contains(&label) || self.numbers.contains_key(&label) {
                continue;
            }
            order.append(self.in_notes.get_mut(&label).unwrap_or(&mut Vec::new()));
            self.numbers.insert(label, self.numbers.len() + 1);
        }
        self.in_notes.clear();
    }

    /// Returns the number of the footnote, if it is defined and mentioned.
    pub(super) fn of(&self, label: &str) -> Option<usize> {
        self.numbers.get(&label.to_lowercase()).copied()
    }

    /// Returns how many footnotes have numbers.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_reader() {
        let mut numbers = Numbers::default();
        for label in ["a", "b", "c", "unread"] {
            numbers.define(label);
        }
        for label in ["b", "a", "b", "undefined"] {
            numbers.mention(None, label);
        }
        numbers.mention(Some("a"), "c");
        numbers.mention(Some("b"), "b");
        numbers.mention(Some("unread"), "unread");
        numbers.number();
        let found: Vec<_> = ["B", "a", "c", "unread", "undefined"].map(|label| numbers.of(label)).into();
        assert_eq!(found, [Some(1), Some(2), Some(3), None, None]);
        assert_eq!(numbers.count(), 3);
    }
}
