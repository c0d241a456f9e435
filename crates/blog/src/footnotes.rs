//! Footnotes: numbered in the order of their first mention, gathered at the end, each with a way back.

use std::{collections::HashMap, ops::Range};

use pulldown_cmark::{Event, Tag, TagEnd};

/// A Markdown event and the bytes from which it was parsed.
pub(crate) type Spanned<'a> = (Event<'a>, Range<usize>);

/// The footnotes of one text.
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

    /// Returns the mark of a footnote for the text. The link back leads to the first mark only.
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

    /// Returns the definition of the mark numbered `index + 1`. Call it in the order of the marks, because one footnote may mention
    /// another.
    pub(crate) fn definition(&self, index: usize) -> Option<Vec<Spanned<'a>>> {
        self.definitions.get(self.mentioned.get(index)?).cloned()
    }
}
