//! The second reading of a text: every event becomes HTML, for the page and for feeds at once.
//!
//! The page has what its theme styles: anchors, colours, formulas, cards. A feed has plain elements with absolute addresses ([`BASE`]), as its
//! readers drop what they do not know.

use std::{collections::VecDeque, fmt::Write as _, ops::Range};

use pulldown_cmark::{Alignment, BlockQuoteKind, CodeBlockKind, Event, LinkType, Parser, Tag, TagEnd};

use super::{
    Text, autolinks, code, contents,
    embeds::Card,
    fence::Fence,
    lines::Lines,
    links::{self, Links},
    math, options,
    quotes::{Marks, Typesetter},
    special::Special,
    survey::{Survey, said},
};
use crate::{
    escape::{escape, is_xml_char, push_text},
    feed::BASE,
    slug,
    targets::Targets,
    words::Words,
};

/// The largest number of ways back that one footnote has.
const WAYS_BACK_MAX: usize = 20;

/// A Markdown event and the bytes from which it was parsed.
type Spanned<'a> = (Event<'a>, Range<usize>);

/// The events of a text. What was read ahead is put back.
struct Events<'a> {
    ahead: VecDeque<Spanned<'a>>,
    parser: Box<dyn Iterator<Item = Spanned<'a>> + 'a>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Option<Spanned<'a>> {
        self.ahead.pop_front().or_else(|| self.parser.next())
    }

    /// Returns the next event if it is text.
    fn next_text(&mut self) -> Option<Spanned<'a>> {
        if self.ahead.is_empty() {
            self.ahead.extend(self.parser.next());
        }
        if matches!(self.ahead.front(), Some((Event::Text(_), _))) { self.ahead.pop_front() } else { None }
    }

    /// Reads up to the end of the element that was just begun, and returns the events in it.
    fn inner(&mut self) -> Vec<Spanned<'a>> {
        let (mut depth, mut inner) = (0_usize, Vec::new());
        while let Some(spanned) = self.next() {
            match spanned.0 {
                Event::Start(_) => depth += 1,
                Event::End(_) if depth == 0 => break,
                Event::End(_) => depth -= 1,
                _ => {}
            }
            inner.push(spanned);
        }
        inner
    }

    /// Takes the title of an alert off the quote that was just begun: what stands behind `[!NOTE]` in its first line. Returns `None` if the quote
    /// does not begin with a paragraph, if nothing stands there, or if something begins in that line and ends in another.
    fn title(&mut self) -> Option<Vec<Spanned<'a>>> {
        let begun = self.next()?;
        if begun.0 != Event::Start(Tag::Paragraph) {
            self.ahead.push_front(begun);
            return None;
        }
        let range = begun.1;
        let mut inner = self.inner();
        let end = inner.iter().position(|(event, _)| matches!(event, Event::SoftBreak | Event::HardBreak)).unwrap_or(inner.len());
        let line = &inner[..end];
        let count = |is: fn(&Event<'_>) -> bool| line.iter().filter(|(event, _)| is(event)).count();
        let is_whole = count(|event| matches!(event, Event::Start(_))) == count(|event| matches!(event, Event::End(_)));
        let title = behind_mark(line).filter(|title| is_whole && !title.is_empty());
        if title.is_some() {
            inner.drain(..(end + 1).min(inner.len()));
        }
        if let Some(start) = inner.first().map(|(_, range)| range.start) {
            self.ahead.push_front((Event::End(TagEnd::Paragraph), range.clone()));
            inner.into_iter().rev().for_each(|spanned| self.ahead.push_front(spanned));
            self.ahead.push_front((Event::Start(Tag::Paragraph), start..range.end));
        }
        title
    }

    /// Reads up to the end of the element that was just begun, and returns its plain text.
    fn plain(&mut self) -> String {
        let (mut depth, mut text) = (0_usize, String::new());
        while let Some((event, _)) = self.next() {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) if depth == 0 => break,
                Event::End(_) => depth -= 1,
                event => text.push_str(said(&event)),
            }
        }
        text
    }
}

/// HTML for the page and for feeds.
#[derive(Debug, Default)]
struct Html {
    page: String,
    feed: String,
}

impl Html {
    fn both(&mut self, html: &str) {
        self.page.push_str(html);
        self.feed.push_str(html);
    }

    /// Begins a line, unless one has just begun.
    fn line(&mut self) {
        for out in [&mut self.page, &mut self.feed] {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
        }
    }
}

/// A footnote: its HTML, and how often the text mentions it.
#[derive(Debug, Default)]
struct Note {
    html: Option<Html>,
    mentions: usize,
}

/// The columns of the table that is being written.
#[derive(Debug, Default)]
struct Columns {
    alignments: Vec<Alignment>,
    at: usize,
    is_head: bool,
    /// The places where the cell begins in the page and in the feed; `open` is where its content begins in the page.
    begun: (usize, usize),
    open: usize,
}

/// Says what a block quote was written as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Plain,
    Alert,
}

pub(super) struct Writer<'t> {
    text: &'t Text<'t>,
    survey: &'t Survey,
    words: &'static Words,
    pub(super) links: Links<'t>,
    out: Html,
    /// The output that was being written where a footnote began, and the number of the footnote. Without a number, the footnote is left
    /// out.
    around: Vec<(Html, Option<usize>)>,
    notes: Vec<Note>,
    /// The quotes that are open.
    quotes: Vec<Quote>,
    typesetter: Typesetter,
    /// The number of headings so far.
    headings: usize,
    columns: Columns,
    /// The place for attributes in the item of a list that has just begun.
    item: Option<usize>,
    is_in_label: bool,
    is_in_link: bool,
    /// Whether raw HTML has begun a link: addresses in it are not linked once more.
    is_in_raw_link: bool,
    has_contents: bool,
    has_picture: bool,
    /// The bytes of code that may still be highlighted.
    code_left: usize,
}

impl<'t> Writer<'t> {
    pub(super) fn new(text: &'t Text<'t>, survey: &'t Survey, targets: &'t Targets, lines: Lines<'t>) -> Self {
        let room = || String::with_capacity(text.body.len() * 5 / 4);
        Self {
            text,
            survey,
            words: text.words,
            links: Links::new(text, targets, lines),
            out: Html { page: room(), feed: room() },
            around: Vec::new(),
            notes: (0..survey.notes.count()).map(|_| Note::default()).collect(),
            quotes: Vec::new(),
            typesetter: Typesetter::new(Marks::of(text.language)),
            headings: 0,
            columns: Columns::default(),
            item: None,
            is_in_label: false,
            is_in_link: false,
            is_in_raw_link: false,
            has_contents: false,
            has_picture: text.has_cover,
            code_left: code::TEXT_BYTES_MAX,
        }
    }

    /// Writes the whole text. Returns the HTML of the page and of feeds.
    pub(super) fn write(&mut self) -> (String, String) {
        if self.text.has_toc && !self.survey.has_contents_mark {
            self.contents();
        }
        let body = self.text.body;
        let parser = Parser::new_ext(body, options(self.text.has_math)).into_offset_iter();
        let mut events = Events { ahead: VecDeque::new(), parser: Box::new(parser) };
        if self.survey.begins_with_title {
            events.next();
            events.plain();
        }
        while let Some((event, range)) = events.next() {
            self.event(event, range, &mut events);
        }
        self.footnotes();
        self.links.check_own(&self.survey.anchors);
        (std::mem::take(&mut self.out.page), std::mem::take(&mut self.out.feed))
    }

    fn event<'a>(&mut self, event: Event<'a>, range: Range<usize>, events: &mut Events<'a>) {
        match event {
            Event::Start(tag) => self.start(tag, range, events),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.run((Event::Text(text), range), events),
            Event::Code(code) => {
                let mut html = String::from("<code>");
                push_text(&mut html, &code);
                html.push_str("</code>");
                self.out.both(&html);
                self.typesetter.pass('x');
            }
            Event::InlineMath(formula) => {
                let before = self.text.body[..range.start].chars().next_back();
                let after = self.text.body[range.end..].chars().next();
                if math::is_inline_formula(before, &formula, after) {
                    self.formula(&formula, false, range.start);
                } else {
                    self.literal(&format!("${formula}$"));
                }
            }
            Event::DisplayMath(formula) if formula.trim().is_empty() => self.literal(&format!("$${formula}$$")),
            Event::DisplayMath(formula) => self.formula(&formula, true, range.start),
            Event::Html(html) | Event::InlineHtml(html) => {
                let html: String = html.chars().filter(|&c| is_xml_char(c)).collect();
                if html.contains("<a") || html.contains("</a") {
                    self.is_in_raw_link = html.rfind("<a ") > html.rfind("</a");
                }
                self.out.both(&html);
            }
            Event::FootnoteReference(label) => self.mention(&label),
            Event::SoftBreak => {
                self.out.both("\n");
                self.typesetter.pass('\n');
            }
            Event::HardBreak => {
                self.out.both("<br>\n");
                self.typesetter.pass('\n');
            }
            Event::Rule => {
                self.block();
                self.out.both("<hr>\n");
            }
            Event::TaskListMarker(is_done) => self.task(is_done),
        }
    }

    /// Begins a block: no element within lines goes on.
    fn block(&mut self) {
        self.end_label();
        self.out.line();
        self.typesetter.reset();
    }

    fn start<'a>(&mut self, tag: Tag<'a>, range: Range<usize>, events: &mut Events<'a>) {
        match tag {
            Tag::Paragraph => self.paragraph(range, events),
            Tag::Heading { .. } => {
                self.block();
                let Some(section) = self.survey.headings.get(self.headings) else { return };
                self.headings += 1;
                let (level, id) = (section.level, escape(&section.id));
                self.out.both(&format!("<h{level} id=\"{id}\">"));
                let _ = write!(
                    self.out.page,
                    "<a class=\"anchor\" href=\"#{}\" aria-label=\"{}\">#</a>",
                    escape(&slug::encode_path(&section.id)),
                    escape(self.words.section)
                );
            }
            Tag::BlockQuote(kind) => {
                self.block();
                let alert = match kind {
                    Some(kind) => Some((kind, None)),
                    None => alert_kind(&self.text.body[range]).and_then(|kind| Some((kind, Some(events.title()?)))),
                };
                self.quotes.push(if alert.is_some() { Quote::Alert } else { Quote::Plain });
                match alert {
                    None => self.out.both("<blockquote>\n"),
                    Some((kind, title)) => self.alert(kind, title),
                }
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let code = events.plain();
                self.code(&kind, &code, range.start);
            }
            Tag::HtmlBlock => self.block(),
            Tag::List(start) => {
                self.block();
                match start {
                    None => self.out.both("<ul>\n"),
                    Some(1) => self.out.both("<ol>\n"),
                    Some(start) => self.out.both(&format!("<ol start=\"{start}\">\n")),
                }
            }
            Tag::Item => {
                self.block();
                self.out.both("<li");
                self.item = Some(self.out.page.len());
                self.out.both(">");
            }
            Tag::FootnoteDefinition(label) => {
                self.block();
                // Of two definitions of one label, the first counts.
                let number = self.survey.notes.of(&label).filter(|number| self.notes[number - 1].html.is_none());
                let around = std::mem::take(&mut self.out);
                self.item = None;
                self.around.push((around, number));
            }
            Tag::DefinitionList => {
                self.block();
                self.out.both("<dl>\n");
            }
            Tag::DefinitionListTitle => {
                self.block();
                self.out.both("<dt>");
            }
            Tag::DefinitionListDefinition => {
                self.block();
                self.out.both("<dd>");
            }
            Tag::Table(alignments) => {
                self.block();
                self.columns = Columns { alignments, ..Columns::default() };
                let name = escape(self.words.table);
                let _ = write!(self.out.page, "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\">");
                self.out.both("<table>");
            }
            Tag::TableHead => {
                self.columns.is_head = true;
                self.columns.at = 0;
                self.out.both("<thead><tr>");
            }
            Tag::TableRow => {
                self.columns.at = 0;
                self.out.both("<tr>");
            }
            Tag::TableCell => {
                self.typesetter.reset();
                let name = if self.columns.is_head { "th" } else { "td" };
                let style = match self.columns.alignments.get(self.columns.at) {
                    Some(Alignment::Left) => " style=\"text-align:left\"",
                    Some(Alignment::Center) => " style=\"text-align:center\"",
                    Some(Alignment::Right) => " style=\"text-align:right\"",
                    Some(Alignment::None) | None => "",
                };
                self.columns.begun = (self.out.page.len(), self.out.feed.len());
                self.out.both(&format!("<{name}{style}>"));
                self.columns.open = self.out.page.len();
            }
            Tag::Emphasis => self.out.both("<em>"),
            Tag::Strong => self.out.both("<strong>"),
            Tag::Strikethrough => self.out.both("<del>"),
            Tag::Superscript => self.out.both("<sup>"),
            Tag::Subscript => self.out.both("<sub>"),
            Tag::Link { link_type, dest_url, title, .. } => {
                let mail = if matches!(link_type, LinkType::Email) { "mailto:" } else { "" };
                self.is_in_link = true;
                self.open_link(&format!("{mail}{dest_url}"), &title, range.start);
            }
            Tag::Image { dest_url, title, .. } => {
                let alt = events.plain();
                let html = self.picture(&dest_url, &alt, &title, range.start);
                self.put(&html);
                self.typesetter.pass('x');
            }
            Tag::MetadataBlock(_) => {
                events.plain();
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_label();
                self.out.both("</p>\n");
            }
            TagEnd::Heading(_) => {
                let level =
                    self.headings.checked_sub(1).and_then(|index| self.survey.headings.get(index)).map_or(2, |section| section.level);
                self.out.both(&format!("</h{level}>\n"));
            }
            TagEnd::BlockQuote(_) => {
                self.block();
                self.out.page.push_str(if self.quotes.pop() == Some(Quote::Alert) { "</div>\n" } else { "</blockquote>\n" });
                self.out.feed.push_str("</blockquote>\n");
            }
            TagEnd::List(is_ordered) => {
                self.block();
                self.out.both(if is_ordered { "</ol>\n" } else { "</ul>\n" });
            }
            TagEnd::Item => {
                self.end_label();
                self.item = None;
                self.out.both("</li>\n");
            }
            TagEnd::FootnoteDefinition => {
                self.block();
                let Some((around, number)) = self.around.pop() else { return };
                let html = std::mem::replace(&mut self.out, around);
                self.item = None;
                if let Some(number) = number {
                    self.notes[number - 1].html = Some(html);
                }
            }
            TagEnd::DefinitionList => self.out.both("</dl>\n"),
            TagEnd::DefinitionListTitle => self.out.both("</dt>\n"),
            TagEnd::DefinitionListDefinition => {
                self.end_label();
                self.out.both("</dd>\n");
            }
            TagEnd::Table => {
                self.out.both("</tbody></table>");
                self.out.page.push_str("</div>");
                self.out.both("\n");
            }
            TagEnd::TableHead => {
                self.columns.is_head = false;
                self.out.both("</tr></thead><tbody>\n");
            }
            TagEnd::TableRow => self.out.both("</tr>\n"),
            TagEnd::TableCell => {
                self.columns.at += 1;
                if self.columns.is_head && self.out.page.len() == self.columns.open {
                    // A cell without a word heads nothing: screen readers would announce it.
                    let (page, feed) = self.columns.begun;
                    self.out.page.truncate(page);
                    self.out.feed.truncate(feed);
                    self.out.both("<td></td>");
                } else {
                    self.out.both(if self.columns.is_head { "</th>" } else { "</td>" });
                }
            }
            TagEnd::Emphasis => self.out.both("</em>"),
            TagEnd::Strong => self.out.both("</strong>"),
            TagEnd::Strikethrough => self.out.both("</del>"),
            TagEnd::Superscript => self.out.both("</sup>"),
            TagEnd::Subscript => self.out.both("</sub>"),
            TagEnd::Link => {
                self.is_in_link = false;
                self.out.both("</a>");
            }
            // Their ends are read where they begin.
            TagEnd::CodeBlock | TagEnd::Image | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn put(&mut self, html: &Html) {
        self.out.page.push_str(&html.page);
        self.out.feed.push_str(&html.feed);
    }

    /// Writes a paragraph, or what stands for itself in one.
    fn paragraph<'a>(&mut self, range: Range<usize>, events: &mut Events<'a>) {
        self.block();
        let body: &'t str = self.text.body;
        match Special::of(&body[range.clone()]) {
            Special::Nothing => {}
            Special::Contents => {
                events.plain();
                return self.contents();
            }
            Special::Card(card) => {
                events.plain();
                return self.card(&card, "");
            }
            Special::Reference => {
                let inner = events.inner();
                if self.card_alone(&inner) || self.picture_alone(&inner) {
                    return;
                }
                events.ahead.push_front((Event::End(TagEnd::Paragraph), range));
                inner.into_iter().rev().for_each(|spanned| events.ahead.push_front(spanned));
            }
            Special::Formula => {
                let inner = events.inner();
                if let [(Event::DisplayMath(formula), range)] = inner.as_slice()
                    && !formula.trim().is_empty()
                {
                    return self.formula_alone(formula, range.start);
                }
                events.ahead.push_front((Event::End(TagEnd::Paragraph), range));
                inner.into_iter().rev().for_each(|spanned| events.ahead.push_front(spanned));
            }
        }
        self.out.both("<p>");
    }

    /// Writes a paragraph with nothing but a link or a picture of something that has a card. Returns whether it is one.
    fn card_alone(&mut self, inner: &[Spanned<'_>]) -> bool {
        let [(Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }), _), between @ .., (Event::End(_), _)] = inner else {
            return false;
        };
        if between.iter().any(|(event, _)| matches!(event, Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image))) {
            return false;
        }
        let Some(card) = Card::of(dest_url) else { return false };
        let title: String = between.iter().map(|(event, _)| said(event)).collect();
        self.card(&card, &title);
        true
    }

    /// Writes a paragraph with nothing but a picture, with its title as caption. Returns whether it is one.
    fn picture_alone(&mut self, inner: &[Spanned<'_>]) -> bool {
        let [(Event::Start(Tag::Image { dest_url, title, .. }), range), between @ .., (Event::End(TagEnd::Image), _)] = inner else {
            return false;
        };
        if between.iter().any(|(event, _)| matches!(event, Event::Start(Tag::Image { .. }))) {
            return false;
        }
        let alt: String = between.iter().map(|(event, _)| said(event)).collect();
        if title.is_empty() {
            return false;
        }
        let html = self.picture(dest_url, &alt, "", range.start);
        self.out.page.push_str("<figure class=\"picture\">");
        self.out.feed.push_str("<figure>");
        self.put(&html);
        self.out.both(&format!("<figcaption>{}</figcaption></figure>\n", escape(title)));
        true
    }

    fn card(&mut self, card: &Card<'_>, title: &str) {
        let html = Html { page: card.page_html(title, self.words), feed: card.feed_html(title) };
        self.put(&html);
    }

    /// Makes the element of a picture. The first one of a text comes at once, the others when a reader gets near them.
    fn picture(&mut self, url: &str, alt: &str, title: &str, offset: usize) -> Html {
        let resolved = self.links.resolve(url, offset, true);
        let is_first = !std::mem::replace(&mut self.has_picture, true);
        let Some(src) = resolved.href else { return Html { page: escape(alt), feed: escape(alt) } };
        if let Some(picture) = resolved.file.and_then(|file| self.links.picture(&file, alt)) {
            return Html { page: picture.html(title, is_first), feed: picture.feed_html(title) };
        }
        let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(title)) };
        let loading = if is_first { " fetchpriority=\"high\"" } else { " loading=\"lazy\"" };
        let described = format!(" alt=\"{}\"{title}", escape(alt));
        Html {
            page: format!("<img src=\"{}\"{described}{loading} decoding=\"async\">", escape(&src)),
            feed: format!("<img src=\"{}{}\"{described}>", base(&src), escape(&src)),
        }
    }

    fn open_link(&mut self, url: &str, title: &str, offset: usize) {
        let href = self.links.resolve(url, offset, false).href;
        let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(title)) };
        for (out, is_feed) in [(&mut self.out.page, false), (&mut self.out.feed, true)] {
            out.push_str("<a");
            if let Some(href) = &href {
                let base = if is_feed { base(href) } else { "" };
                let _ = write!(out, " href=\"{base}{}\"", escape(href));
            }
            out.push_str(&title);
            out.push('>');
        }
    }

    /// Writes the text up to the next element, with its quotes and dashes set and its addresses linked.
    fn run<'a>(&mut self, first: Spanned<'a>, events: &mut Events<'a>) {
        let body = self.text.body;
        let mut run = String::new();
        // What the author escaped or encoded stays as it is.
        let mut verbatim: Vec<Range<usize>> = Vec::new();
        let begin = first.1.start;
        let mut end = first.1.end;
        let mut next = Some(first);
        while let Some((Event::Text(text), range)) = next {
            let start = run.len();
            run.push_str(&text);
            end = range.end;
            if body.get(range.clone()) != Some(&*text) {
                verbatim.push(start..run.len());
            } else if range.start > 0 && body.as_bytes()[range.start - 1] == b'\\' && text.starts_with(|c: char| c.is_ascii_punctuation()) {
                verbatim.push(start..start + 1);
            }
            next = events.next_text();
        }
        for missing in missing_footnotes(&run).filter(|missing| !is_within(&verbatim, missing.start)) {
            let label = &run[missing];
            self.links
                .warn(begin, format!("footnote \"{label}\": nothing says what it is; write it in a paragraph that begins with {label}:"));
        }
        let after = body[end..].chars().next();
        let mut at = 0;
        let may_link = !self.is_in_link && !self.is_in_raw_link && ["://", "www.", "WWW.", "@"].iter().any(|mark| run.contains(mark));
        while may_link && let Some(found) = autolinks::find(&run, at, self.typesetter.before()) {
            // Whoever writes `me\@example.org` wants no link. In the address of a page, the sign need not be escaped, and some programs do so.
            let sign = run[found.clone()].find('@').filter(|_| autolinks::is_mail(&run[found.clone()])).map(|sign| found.start + sign);
            if sign.is_some_and(|sign| is_within(&verbatim, sign)) {
                self.set(&run, at..found.end, &verbatim, after);
                at = found.end;
                continue;
            }
            self.set(&run, at..found.start, &verbatim, Some('h'));
            let address = &run[found.clone()];
            let mut html = format!("<a href=\"{}\">", escape(&links::encode(&autolinks::target(address))));
            push_text(&mut html, address);
            html.push_str("</a>");
            self.out.both(&html);
            self.typesetter.pass('x');
            at = found.end;
        }
        self.set(&run, at..run.len(), &verbatim, after);
    }

    /// Sets the part `range` of `run`.
    fn set(&mut self, run: &str, range: Range<usize>, verbatim: &[Range<usize>], after: Option<char>) {
        let mut html = String::with_capacity(range.len() + 16);
        let mut at = range.start;
        let first = verbatim.partition_point(|fixed| fixed.end <= range.start);
        for fixed in verbatim[first..].iter().take_while(|fixed| fixed.start < range.end) {
            let (start, end) = (fixed.start.max(at), fixed.end.min(range.end));
            self.typesetter.write(&mut html, &run[at..start], run[start..].chars().next());
            self.typesetter.verbatim(&mut html, &run[start..end]);
            at = end;
        }
        let after = run[range.end..].chars().next().or(after);
        self.typesetter.write(&mut html, &run[at..range.end], after);
        self.out.both(&html);
    }

    fn literal(&mut self, text: &str) {
        let mut html = String::new();
        self.typesetter.verbatim(&mut html, text);
        self.out.both(&html);
    }

    /// Writes a formula within a paragraph.
    fn formula(&mut self, formula: &str, is_block: bool, offset: usize) {
        let sign = if is_block { "$$" } else { "$" };
        let source = format!("<code>{sign}{}{sign}</code>", escape(formula));
        match self.mathml(formula, is_block, offset) {
            Some(html) => self.out.page.push_str(&html),
            None => self.out.page.push_str(&source),
        }
        self.out.feed.push_str(&source);
        self.typesetter.pass('x');
    }

    /// Writes a formula that stands alone. A long one scrolls.
    fn formula_alone(&mut self, formula: &str, offset: usize) {
        let source = format!("<pre><code class=\"language-math\">{}</code></pre>\n", escape(formula.trim_matches('\n')));
        match self.mathml(formula, true, offset) {
            Some(html) => {
                let _ = writeln!(self.out.page, "<div class=\"math\" tabindex=\"0\">{html}</div>");
            }
            None => self.out.page.push_str(&source),
        }
        self.out.feed.push_str(&source);
    }

    fn mathml(&mut self, formula: &str, is_block: bool, offset: usize) -> Option<String> {
        match math::mathml(formula.trim(), is_block) {
            Ok(html) => Some(html),
            Err(reason) => {
                self.links.warn(offset, format!("the formula is shown as it is written: {reason}"));
                None
            }
        }
    }

    fn code(&mut self, kind: &CodeBlockKind<'_>, code: &str, offset: usize) {
        let fence = match kind {
            CodeBlockKind::Fenced(info) => Fence::parse(info),
            CodeBlockKind::Indented => Fence::default(),
        };
        if code::is_formula(&fence.language) && self.text.has_math && !code.trim().is_empty() {
            return self.formula_alone(code, offset);
        }
        let page = code::page_html(&fence, code, &mut self.code_left);
        self.put(&Html { page, feed: code::feed_html(&fence, code) });
    }

    /// Begins an alert, with its own title if it has one.
    fn alert(&mut self, kind: BlockQuoteKind, own: Option<Vec<Spanned<'_>>>) {
        let words = self.words;
        let (class, title) = match kind {
            BlockQuoteKind::Note => ("note", words.note),
            BlockQuoteKind::Tip => ("tip", words.tip),
            BlockQuoteKind::Important => ("important", words.important),
            BlockQuoteKind::Warning => ("warning", words.warning),
            BlockQuoteKind::Caution => ("caution", words.caution),
        };
        let _ = write!(self.out.page, "<div class=\"alert {class}\" role=\"note\">\n<p class=\"alert-title\">");
        self.out.feed.push_str("<blockquote>\n<p><strong>");
        match own {
            None => self.out.both(&escape(title)),
            Some(own) => {
                let mut events = Events { ahead: own.into(), parser: Box::new(std::iter::empty()) };
                while let Some((event, range)) = events.next() {
                    self.event(event, range, &mut events);
                }
                self.typesetter.reset();
            }
        }
        self.out.page.push_str("</p>\n");
        self.out.feed.push_str("</strong></p>\n");
    }

    /// Begins a task. Its words are the label of its box.
    fn task(&mut self, is_done: bool) {
        if let Some(place) = self.item.take() {
            self.out.page.insert_str(place, " class=\"task\"");
        }
        let checked = if is_done { " checked" } else { "" };
        let _ = write!(self.out.page, "<label><input type=\"checkbox\" disabled{checked}> ");
        self.out.feed.push_str(if is_done { "☑ " } else { "☐ " });
        self.is_in_label = true;
    }

    fn end_label(&mut self) {
        if std::mem::take(&mut self.is_in_label) {
            self.out.page.push_str("</label>");
        }
    }

    /// Writes the table of contents, once.
    fn contents(&mut self) {
        if !std::mem::replace(&mut self.has_contents, true) {
            self.out.page.push_str(&contents::html(&self.survey.headings, self.words));
        }
    }

    /// Writes the mark of a footnote.
    fn mention(&mut self, label: &str) {
        let Some(number) = self.survey.notes.of(label) else { return };
        let note = &mut self.notes[number - 1];
        note.mentions += 1;
        let id = if note.mentions <= WAYS_BACK_MAX { format!(" id=\"{}\"", mention_id(number, note.mentions)) } else { String::new() };
        self.out.both(&format!("<sup class=\"fnref\"{id}><a href=\"#fn-{number}\">{number}</a></sup>"));
        self.typesetter.pass('x');
    }

    /// Writes all footnotes, each with the ways back to its marks.
    fn footnotes(&mut self) {
        if self.notes.is_empty() {
            return;
        }
        self.block();
        self.out.both(&format!("<section class=\"footnotes\" aria-label=\"{}\">\n<ol>\n", escape(self.words.footnotes)));
        let label = escape(self.words.back);
        for (index, note) in std::mem::take(&mut self.notes).into_iter().enumerate() {
            let number = index + 1;
            let mut back = String::new();
            for mention in 1..=note.mentions.min(WAYS_BACK_MAX) {
                let (id, count) = (mention_id(number, mention), if mention == 1 { String::new() } else { format!("<sup>{mention}</sup>") });
                let _ = write!(back, " <a href=\"#{id}\" class=\"back\" aria-label=\"{label}\">↩{count}</a>");
            }
            let html = note.html.unwrap_or_default();
            for (out, mut note) in [(&mut self.out.page, html.page), (&mut self.out.feed, html.feed)] {
                let at = note.trim_end().strip_suffix("</p>").map_or(note.len(), str::len);
                note.insert_str(at, &back);
                let _ = writeln!(out, "<li id=\"fn-{number}\">\n{note}</li>");
            }
        }
        self.out.both("</ol>\n</section>\n");
    }
}

/// Returns what kind of alert a quote is that has a title behind its mark (`> [!NOTE] Title`), as GitLab and Obsidian write it. The parser takes it for any
/// quote.
fn alert_kind(quote: &str) -> Option<BlockQuoteKind> {
    let (name, rest) = quote.trim_start().strip_prefix('>')?.trim_start_matches([' ', '\t']).strip_prefix("[!")?.split_once(']')?;
    let kind = match name {
        name if name.eq_ignore_ascii_case("note") => BlockQuoteKind::Note,
        name if name.eq_ignore_ascii_case("tip") => BlockQuoteKind::Tip,
        name if name.eq_ignore_ascii_case("important") => BlockQuoteKind::Important,
        name if name.eq_ignore_ascii_case("warning") => BlockQuoteKind::Warning,
        name if name.eq_ignore_ascii_case("caution") => BlockQuoteKind::Caution,
        _ => return None,
    };
    rest.strip_prefix(['-', '+']).unwrap_or(rest).starts_with([' ', '\t']).then_some(kind)
}

/// Returns what stands behind the mark `[!NOTE]` in the first line of a quote.
fn behind_mark<'a>(line: &[Spanned<'a>]) -> Option<Vec<Spanned<'a>>> {
    let closing = |(event, _): &Spanned<'a>| if let Event::Text(text) = event { text.find(']') } else { None };
    let (index, at) = line.iter().enumerate().find_map(|(index, spanned)| Some((index, closing(spanned)?)))?;
    let mut title: VecDeque<Spanned<'a>> = line[index..].iter().cloned().collect();
    let (mut passed, mut may_fold) = (at + 1, true);
    while let Some((Event::Text(text), range)) = title.front() {
        let text = &text[passed..];
        // Obsidian folds an alert with such a sign right behind the mark. Here it is open.
        let behind = if may_fold { text.strip_prefix(['-', '+']).unwrap_or(text) } else { text }.trim_start();
        may_fold &= text.is_empty();
        let first =
            (!behind.is_empty()).then(|| (Event::Text(behind.to_owned().into()), range.end.saturating_sub(behind.len())..range.end));
        title.pop_front();
        if let Some(first) = first {
            title.push_front(first);
            break;
        }
        passed = 0;
    }
    Some(title.into())
}

/// Returns the places in a text where a footnote is mentioned that has no number: the parser leaves it as it is typed.
///
/// A class of a regular expression, such as `[^a-z]` or `[^,]+`, looks alike. So the label has to be a word or a number, and nothing that repeats
/// may follow.
fn missing_footnotes(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("[^").filter_map(|(at, _)| {
        let label = text[at + 2..].split([']', '[', ' ']).next()?;
        let end = at + 2 + label.len();
        let repeats = text[end..].strip_prefix(']')?.starts_with(['+', '*', '{']);
        let is_word = !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'));
        let is_range = label.chars().nth(1) == Some('-') && label.chars().count() > 2;
        (is_word && !is_range && !repeats).then_some(at..end + 1)
    })
}

/// Tells whether the byte `at` is in one of `ranges`, which are in order.
fn is_within(ranges: &[Range<usize>], at: usize) -> bool {
    ranges.get(ranges.partition_point(|range| range.end <= at)).is_some_and(|range| range.start <= at)
}

/// Returns the anchor of the mark that mentions the footnote `number` for the `mention`th time.
fn mention_id(number: usize, mention: usize) -> String {
    if mention == 1 { format!("fnref-{number}") } else { format!("fnref-{number}-{mention}") }
}

/// Returns what makes an address absolute.
fn base(href: &str) -> &'static str {
    if href.starts_with('/') && !href.starts_with("//") { BASE } else { "" }
}
