//! Paragraphs that stand for something else: the table of contents, a card, a picture with a caption, a formula of its own.

use super::embeds::Card;

/// The longest paragraph that is looked at.
const BYTES_MAX: usize = 16 * 1024;

/// Says what a paragraph stands for, as far as its source tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Special<'a> {
    /// `[TOC]` or `[[toc]]`.
    Contents,
    /// The address of something elsewhere, on a line of its own.
    Card(Card<'a>),
    /// Perhaps a picture or a link alone: it begins like one.
    Reference,
    /// Perhaps a formula alone: it begins and ends like one.
    Formula,
    Nothing,
}

impl<'a> Special<'a> {
    /// Looks at the source of a paragraph.
    pub(super) fn of(source: &'a str) -> Self {
        let source = source.trim();
        if source.len() > BYTES_MAX {
            return Self::Nothing;
        }
        if ["[toc]", "[[toc]]", "[[_toc_]]"].iter().any(|mark| source.eq_ignore_ascii_case(mark)) {
            return Self::Contents;
        }
        let url = source.strip_prefix('<').and_then(|url| url.strip_suffix('>')).unwrap_or(source);
        if let Some(card) = Card::of(url) {
            return Self::Card(card);
        }
        if source.starts_with("![") || source.starts_with('[') {
            Self::Reference
        } else if source.len() > 4 && source.starts_with("$$") && source.ends_with("$$") {
            Self::Formula
        } else {
            Self::Nothing
        }
    }
}
