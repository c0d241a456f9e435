//! Markdown into HTML: CommonMark with tables, footnotes, strikethrough, tasks, alerts, definition lists, formulas, and what a blog wants
//! beside them.
//!
//! A text is read twice. The [first reading](survey) finds the headings, the order of the footnotes and the summary; the
//! [second](writer) writes the HTML for the page and for feeds. Each other concern has a room of its own.
//!
//! The time for a text is linear in its length, whatever is in it: what could cost more has a bound ([`nesting`], [`code`], [`math`]).

mod autolinks;
pub(crate) mod classes;
mod code;
mod contents;
mod embeds;
mod fence;
mod footnotes;
mod lines;
mod links;
mod math;
mod nesting;
mod quotes;
mod special;
mod survey;
mod writer;

#[cfg(test)]
mod suites;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, path::Path};

use pulldown_cmark::Options;
use serde::Serialize;

pub(crate) use self::links::{is_markdown, join, scheme};
use self::{lines::Lines, links::Links, survey::Survey, writer::Writer};
use crate::{error::Problem, slug, targets::Targets, words::Words};

/// The length at which a summary is cut, at the end of a word.
const SUMMARY_CHARS_MAX: usize = 240;

/// The number of words that an adult reads in a minute on a screen.
const WORDS_PER_MINUTE: usize = 220;

/// A rendered text, ready for its templates.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// The HTML for the page.
    pub(crate) html: String,
    /// The HTML for the feed, without anchors and with absolute links ([`BASE`]).
    pub(crate) feed_html: String,
    /// The text of the first heading.
    pub(crate) heading: Option<String>,
    /// The first paragraph as plain text, shortened.
    pub(crate) summary: String,
    /// The reading time in minutes; at least one.
    pub(crate) minutes: usize,
    /// The headings, in order.
    pub(crate) toc: Vec<Heading>,
    /// The anchors to which links may lead, in order.
    pub(crate) anchors: Vec<String>,
    /// The links to addresses of this site. Whether something is there is known when the site is ([`crate::links`]).
    pub(crate) links: Vec<OutLink>,
    /// Problems that do not keep the text from being published.
    pub(crate) warnings: Vec<Problem>,
}

/// A text that cannot be published, as far as it was understood.
#[derive(Debug, Default)]
pub(crate) struct Unpublished {
    /// The problems that keep it back, and the warnings beside them.
    pub(crate) problems: Vec<Problem>,
    /// Whether a heading could be its title.
    pub(crate) has_heading: bool,
    /// The links to addresses of this site.
    pub(crate) links: Vec<OutLink>,
    /// The anchors to which links may lead, in order, if they could be read.
    pub(crate) anchors: Option<Vec<String>>,
}

/// A heading of a text. Templates see a list of them as `post.toc`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Heading {
    /// The level, 2 to 6: the title of the page is the only heading of level 1.
    pub(crate) level: u8,
    /// The anchor, percent-encoded, to be put behind a `#`.
    pub(crate) id: String,
    /// The plain text.
    pub(crate) text: String,
}

/// A link of a text to an address of this site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OutLink {
    /// The path, percent-decoded. It begins with a slash.
    pub(crate) path: String,
    /// The anchor, percent-decoded.
    pub(crate) fragment: Option<String>,
    /// The line of the file.
    pub(crate) line: usize,
}

/// One Markdown text and its place in the folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) file: &'a Path,
    /// The folder of `file` relative to the blog's folder, with `/` between names and none at the end.
    pub(crate) folder: &'a str,
    pub(crate) body: &'a str,
    /// The line of the file on which `body` begins.
    pub(crate) body_line: usize,
    /// BCP 47 language tag of the text. It decides about quotation marks.
    pub(crate) language: &'a str,
    /// The words for what is in the text: the names of alerts, tables and footnotes.
    pub(crate) words: &'static Words,
    /// The title in the front matter. If there is none, a heading at the beginning becomes the title and leaves the text.
    pub(crate) title: Option<&'a str>,
    /// Whether `$…$` may be a formula.
    pub(crate) has_math: bool,
    /// Whether the text begins with a table of its contents.
    pub(crate) has_toc: bool,
    /// Whether the page shows a picture before the text.
    pub(crate) has_cover: bool,
}

/// Renders `text`. A link to a file that does not exist is a problem, and so is a text that nobody could read.
pub(crate) fn render(text: &Text<'_>, targets: &Targets) -> Result<Rendered, Unpublished> {
    // As an editor counts: a carriage return alone is not a line to most of them.
    let lines = Lines::new(text.body, text.body_line);
    // The parser does not know carriage returns alone as ends of lines, which CommonMark does.
    let body = with_line_feeds(text.body);
    let text = &Text { body: &body, ..*text };
    if let Some(at) = nesting::too_deep(&body) {
        let message = format!("more than {} quotes and lists lie in each other; part them", nesting::NESTING_MAX);
        // Nothing else is known, so nothing else is missing.
        return Err(Unpublished {
            problems: vec![Problem::new(text.file, lines.at(at), message)],
            has_heading: true,
            links: Vec::new(),
            anchors: None,
        });
    }
    let survey = Survey::new(text);
    let mut writer = Writer::new(text, &survey, targets, lines);
    let (html, feed_html) = writer.write();
    let Links { out: links, errors: mut problems, warnings, .. } = writer.links;
    if !problems.is_empty() {
        problems.extend(warnings);
        let anchors = Some(survey.anchors.into_iter().collect());
        return Err(Unpublished { problems, has_heading: survey.title.is_some(), links, anchors });
    }
    let heading =
        |section: &survey::Section| Heading { level: section.level, id: slug::encode_path(&section.id), text: section.text.clone() };
    Ok(Rendered {
        html,
        feed_html,
        toc: survey.headings.iter().filter(|section| section.is_top).map(heading).collect(),
        heading: survey.title,
        summary: survey.summary,
        minutes: survey.minutes,
        anchors: survey.anchors.into_iter().collect(),
        links,
        warnings,
    })
}

/// Makes line feeds of carriage returns that stand alone. Nothing moves.
fn with_line_feeds(body: &str) -> Cow<'_, str> {
    let is_alone = |at: usize| body.as_bytes()[at] == b'\r' && body.as_bytes().get(at + 1) != Some(&b'\n');
    if !body.contains('\r') || !(0..body.len()).any(is_alone) {
        return Cow::Borrowed(body);
    }
    Cow::Owned(body.char_indices().map(|(at, c)| if is_alone(at) { '\n' } else { c }).collect())
}

/// Returns what the parser reads beside CommonMark.
fn options(has_math: bool) -> Options {
    let mut options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_GFM;
    options.set(Options::ENABLE_MATH, has_math);
    options
}
