//! The first reading of a text: what has to be known before the first line of it can be written.
//!
//! A table of contents stands before the headings that it names, and a footnote has its number from its first mention, which may stand behind
//! its definition. So a text is read twice, and its events are never held: of five megabytes of Markdown they would make half a gigabyte.

use std::collections::{BTreeSet, HashMap};

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::{SUMMARY_CHARS_MAX, Text, WORDS_PER_MINUTE, footnotes::Numbers, options, special::Special};
use crate::slug;

/// Anchors that the pages of the theme have for themselves.
const RESERVED: [&str; 2] = ["content", "search"];

/// Holds what one reading of a text tells.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The headings, without the one that is the title.
    pub(super) headings: Vec<Section>,
    /// The text of the first heading.
    pub(super) title: Option<String>,
    /// Whether the text begins with a heading that is the title of the page, and is left out here.
    pub(super) begins_with_title: bool,
    pub(super) summary: String,
    pub(super) minutes: usize,
    /// The anchors to which links may lead.
    pub(super) anchors: BTreeSet<String>,
    pub(super) notes: Numbers,
    /// Whether the author says where the table of contents belongs.
    pub(super) has_contents_mark: bool,
    words: usize,
    /// The number of headings so far.
    seen: usize,
}

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// The level in the page, whose title has level 1.
    pub(super) level: u8,
    pub(super) id: String,
    pub(super) text: String,
    /// Whether it stands outside of quotes, lists and footnotes.
    pub(super) is_top: bool,
}

impl Survey {
    pub(super) fn new(text: &Text<'_>) -> Self {
        let mut survey = Self::default();
        let mut ids = Ids::default();
        let mut depth = 0_usize;
        let mut heading: Option<Section> = None;
        let mut paragraph: Option<String> = None;
        let mut notes = Vec::new();
        let mut pictures = 0_usize;
        for (index, (event, range)) in Parser::new_ext(text.body, options(text.has_math)).into_offset_iter().enumerate() {
            survey.count(&event);
            let said = said(&event);
            if let Some(heading) = &mut heading {
                heading.text.push_str(said);
            }
            // The words of a picture are not a summary.
            if let Some(paragraph) = &mut paragraph
                && pictures == 0
            {
                paragraph.push_str(said);
            }
            match event {
                Event::Start(tag) => {
                    match tag {
                        Tag::Heading { level, id, .. } => {
                            if index == 0 {
                                survey.begins_with_title = text.title.is_none() || level == HeadingLevel::H1;
                            }
                            let id = id.map(|id| id.to_string()).unwrap_or_default();
                            heading = Some(Section { level: level as u8, id, text: String::new(), is_top: depth == 0 });
                        }
                        Tag::Paragraph if depth == 0 => match Special::of(&text.body[range]) {
                            Special::Contents => survey.has_contents_mark = true,
                            Special::Card(_) => {}
                            Special::Reference | Special::Formula | Special::Nothing if survey.summary.is_empty() => {
                                paragraph = Some(String::new())
                            }
                            Special::Reference | Special::Formula | Special::Nothing => {}
                        },
                        Tag::FootnoteDefinition(label) => {
                            survey.notes.define(&label);
                            notes.push(label);
                        }
                        Tag::Image { .. } => pictures += 1,
                        _ => {}
                    }
                    depth += 1;
                }
                Event::End(tag) => {
                    depth = depth.saturating_sub(1);
                    match tag {
                        TagEnd::Heading(_) => survey.end_heading(heading.take(), text, &mut ids),
                        TagEnd::Paragraph => {
                            if depth == 0
                                && let Some(words) = paragraph.take()
                            {
                                survey.summary = shorten(words.trim());
                            }
                        }
                        TagEnd::FootnoteDefinition => {
                            notes.pop();
                        }
                        TagEnd::Image => pictures = pictures.saturating_sub(1),
                        _ => {}
                    }
                }
                Event::FootnoteReference(label) => survey.notes.mention(notes.last().map(|label| &**label), &label),
                Event::Html(html) | Event::InlineHtml(html) => {
                    for id in html_ids(&html) {
                        ids.take(id);
                        survey.anchors.insert(id.to_owned());
                    }
                }
                _ => {}
            }
        }
        survey.minutes = survey.words.div_ceil(WORDS_PER_MINUTE).max(1);
        survey.finish()
    }

    fn end_heading(&mut self, heading: Option<Section>, text: &Text<'_>, ids: &mut Ids) {
        let Some(mut heading) = heading else { return };
        if self.title.is_none() && !heading.text.trim().is_empty() {
            self.title = Some(heading.text.clone());
        }
        self.seen += 1;
        if self.seen == 1 && self.begins_with_title {
            // With a title in the front matter, a heading that says something else stays.
            self.begins_with_title = text.title.is_none_or(|title| title.trim() == heading.text.trim());
            if self.begins_with_title {
                return;
            }
        }
        if heading.id.is_empty() {
            heading.id = slug::anchor(&heading.text);
            if heading.id.is_empty() || heading.id.starts_with("fn-") || heading.id.starts_with("fnref-") {
                heading.id = format!("section-{}", heading.id).trim_end_matches('-').to_owned();
            }
        }
        heading.id = ids.unique(heading.id);
        self.anchors.insert(heading.id.clone());
        self.headings.push(heading);
    }

    /// Makes room for the title: where an author begins sections with `#`, all headings go down by one level.
    fn finish(mut self) -> Self {
        if self.headings.iter().any(|heading| heading.level == 1) {
            for heading in &mut self.headings {
                heading.level = (heading.level + 1).min(6);
            }
        }
        self.notes.number();
        for number in 1..=self.notes.count() {
            self.anchors.extend([format!("fn-{number}"), format!("fnref-{number}")]);
        }
        self
    }

    /// Counts words. In scripts without spaces, two characters count as a word.
    fn count(&mut self, event: &Event<'_>) {
        if let Event::Text(text) | Event::Code(text) = event {
            let unspaced = text.chars().filter(|&c| c >= '\u{3040}' && c.is_alphabetic()).count();
            self.words += text.split_whitespace().count() + unspaced / 2;
        }
    }
}

/// Returns what an event adds to the plain text.
pub(super) fn said<'e>(event: &'e Event<'_>) -> &'e str {
    match event {
        Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => text,
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    }
}

pub(super) fn shorten(text: &str) -> String {
    let Some((limit, _)) = text.char_indices().nth(SUMMARY_CHARS_MAX) else { return text.to_owned() };
    let cut = text[..limit].rfind(' ').unwrap_or(limit);
    format!("{}…", text[..cut].trim_end_matches([' ', ',', ';', ':', '.']))
}

/// The anchors that are taken, each with the highest number that was put behind it.
#[derive(Debug)]
struct Ids(HashMap<String, usize>);

impl Default for Ids {
    fn default() -> Self {
        Self(RESERVED.iter().map(|id| ((*id).to_owned(), 0)).collect())
    }
}

impl Ids {
    fn take(&mut self, id: &str) {
        self.0.entry(id.to_owned()).or_insert(0);
    }

    /// Returns `id`, or `id-1`, `id-2`, … if it was used before, as GitHub and Hugo do. It goes on where it stopped: a hundred thousand headings with one name are no
    /// more work than as many names.
    fn unique(&mut self, id: String) -> String {
        let Some(&used) = self.0.get(&id) else {
            self.0.insert(id.clone(), 0);
            return id;
        };
        let mut number = used;
        loop {
            number += 1;
            let numbered = format!("{id}-{number}");
            if !self.0.contains_key(&numbered) {
                self.0.insert(id, number);
                self.0.insert(numbered.clone(), 0);
                return numbered;
            }
        }
    }
}

/// Returns the values of `id` and `name` in raw HTML: links may lead there.
fn html_ids(html: &str) -> impl Iterator<Item = &str> {
    [" id=", " name="].into_iter().flat_map(|mark| {
        html.split(mark).skip(1).filter_map(|rest| {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let value = match quote {
                Some(quote) => rest[1..].split(quote).next(),
                None => rest.split(|c: char| c.is_whitespace() || c == '>').next(),
            };
            value.filter(|id| !id.is_empty())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_end_at_a_word() {
        let long = "word ".repeat(100);
        let short = shorten(long.trim());
        assert!(short.ends_with("word…") && short.chars().count() <= SUMMARY_CHARS_MAX + 1, "{short}");
        assert!(shorten(&"日".repeat(300)).chars().count() <= SUMMARY_CHARS_MAX + 1);
    }

    #[test]
    fn no_anchor_is_there_twice() {
        let mut ids = Ids::default();
        let named: Vec<_> = ["a", "a-1", "a", "a", "content", "a-1"].into_iter().map(|id| ids.unique(id.to_owned())).collect();
        assert_eq!(named, ["a", "a-1", "a-2", "a-3", "content-1", "a-1-1"]);
    }

    #[test]
    fn anchors_in_raw_html_are_found() {
        let ids: Vec<_> = html_ids("<a id=\"x y\"><b class=c id='z'></b><i id=w>").chain(html_ids("<a name=old>")).collect();
        assert_eq!(ids, ["x y", "z", "w", "old"]);
    }
}
