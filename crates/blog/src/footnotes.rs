//! Footnotes: numbered in the order of their first mention, gathered at the end, each with a way back.

use std::{collections::HashMap, ops::Range};

use pulldown_cmark::{Event, Tag, TagEnd};

/// An event and the bytes it came from.
pub(crate) type Spanned<'a> = (Event<'a>, Range<usize>);

/// The definitions of one text.
#[derive(Debug, Default)]
pub(crate) struct Footnotes<'a> {
    definitions: HashMap<String, Vec<Spanned<'a>>>,
    mentioned: Vec<String>,
}

impl<'a> Footnotes<'a> {
    /// Takes the definitions out of `events` and returns the rest.
    pub(crate) fn extract(events: Vec<Spanned<'a>>) -> (Self, Vec<Spanned<'a>>) {
        let mut notes = Self::default();
        let mut rest = Vec::with_capacity(events.len());
        let mut open: Option<(String, Vec<Spanned<'a>>)> = None;
        for (event, range) in events {
            match (event, &mut open) {
                (Event::Start(Tag::FootnoteDefinition(label)), _) => open = Some((label.to_string(), Vec::new())),
                (Event::End(TagEnd::FootnoteDefinition), _) => {
                    if let Some((label, events)) = open.take() {
                        notes.definitions.entry(label).or_insert(events);
                    }
                }
                (event, Some((_, events))) => events.push((event, range)),
                (event, None) => rest.push((event, range)),
            }
        }
        (notes, rest)
    }

    /// The mark in the text. Only the first mention is the target of the way back.
    pub(crate) fn mention(&mut self, label: &str) -> String {
        if !self.definitions.contains_key(label) {
            return String::new();
        }
        let known = self.mentioned.iter().position(|other| other == label);
        let number = known.map_or(self.mentioned.len() + 1, |index| index + 1);
        if known.is_some() {
            return format!("<sup class=\"fnref\"><a href=\"#fn-{number}\">{number}</a></sup>");
        }
        self.mentioned.push(label.to_owned());
        format!("<sup class=\"fnref\" id=\"fnref-{number}\"><a href=\"#fn-{number}\">{number}</a></sup>")
    }

    /// The definition of the mention numbered `index + 1`. Asked for in turn, because one footnote may mention another.
    pub(crate) fn definition(&self, index: usize) -> Option<Vec<Spanned<'a>>> {
        self.definitions.get(self.mentioned.get(index)?).cloned()
    }
}
