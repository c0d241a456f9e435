//! Markdown into HTML: CommonMark with tables, footnotes, strikethrough, task lists and alerts.
//!
//! One pass over the parser's events rewrites what a blog wants different: headings get anchors, links to `.md` files become the
//! addresses of their posts, images beside a post are found, code blocks carry a caption (```` ```toml title="seawall.toml" ````).

use std::{collections::HashMap, path::Path};

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;

use crate::{
    error::Problem,
    escape::{escape, is_xml_char},
    feed::BASE,
    footnotes::{Footnotes, Spanned},
    slug,
    targets::Targets,
};

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
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) file: &'a Path,
    /// The folder of `file` relative to the blog's folder, with `/` between names and none at the end.
    pub(crate) folder: &'a str,
    pub(crate) body: &'a str,
    /// The line of the file on which `body` begins.
    pub(crate) body_line: usize,
    /// BCP 47 language tag of the text. It decides about quotation marks, and about the names of alerts, tables and footnotes.
    pub(crate) language: &'a str,
    /// The title in the front matter. If there is none, a heading at the beginning becomes the title and leaves the text.
    pub(crate) title: Option<&'a str>,
    /// Whether `$…$` may be a formula.
    pub(crate) has_math: bool,
    /// Whether the text begins with a table of its contents.
    pub(crate) has_toc: bool,
}

/// Renders `text`. A link to a file that does not exist is a problem.
pub(crate) fn render(text: &Text<'_>, targets: &Targets) -> Result<Rendered, Vec<Problem>> {
    let mut options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_GFM;
    options.set(Options::ENABLE_SMART_PUNCTUATION, text.language.starts_with("en"));
    let mut events: Vec<Spanned<'_>> = Parser::new_ext(text.body, options).into_offset_iter().collect();

    let heading = first_heading(&events);
    if text.title.is_none() && matches!(events.first(), Some((Event::Start(Tag::Heading { .. }), _))) {
        let end = events.iter().position(|(event, _)| matches!(event, Event::End(TagEnd::Heading(_)))).map_or(0, |at| at + 1);
        events.drain(..end);
    }
    let summary = summary(&events);
    let minutes = minutes(&events);
    let mut page = Writer::new(text, targets, false);
    let html = page.write(events.clone());
    if !page.problems.is_empty() {
        return Err(page.problems);
    }
    let warnings = page.warnings;
    let feed_html = Writer::new(text, targets, true).write(events);
    Ok(Rendered { html, feed_html, heading, summary, minutes, warnings, ..Rendered::default() })
}

struct Writer<'t> {
    text: &'t Text<'t>,
    targets: &'t Targets,
    is_feed: bool,
    ids: HashMap<String, usize>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl<'t> Writer<'t> {
    fn new(text: &'t Text<'t>, targets: &'t Targets, is_feed: bool) -> Self {
        Self { text, targets, is_feed, ids: HashMap::new(), problems: Vec::new(), warnings: Vec::new() }
    }

    fn write(&mut self, events: Vec<Spanned<'_>>) -> String {
        let (mut notes, body) = Footnotes::extract(events);
        let mut out = String::with_capacity(self.text.body.len() * 3 / 2);
        html::push_html(&mut out, self.rewrite(&body, &mut notes).into_iter());

        let mut index = 0;
        while let Some(definition) = notes.definition(index) {
            if index == 0 {
                out.push_str("<section class=\"footnotes\" aria-label=\"Footnotes\">\n<ol>\n");
            }
            index += 1;
            let mut note = String::new();
            html::push_html(&mut note, self.rewrite(&definition, &mut notes).into_iter());
            let back = format!(" <a href=\"#fnref-{index}\" class=\"back\" aria-label=\"Back to the text\">↩</a>");
            let at = note.trim_end().strip_suffix("</p>").map_or(note.len(), str::len);
            note.insert_str(at, &back);
            out.push_str(&format!("<li id=\"fn-{index}\">\n{note}</li>\n"));
        }
        if index > 0 {
            out.push_str("</ol>\n</section>\n");
        }
        out
    }

    fn rewrite<'a>(&mut self, events: &[Spanned<'a>], notes: &mut Footnotes<'a>) -> Vec<Event<'a>> {
        let mut out = Vec::with_capacity(events.len());
        let raw = |out: &mut Vec<Event<'a>>, html: String| out.push(Event::Html(html.into()));
        let mut at = 0;
        while let Some((event, range)) = events.get(at) {
            match event {
                Event::Start(Tag::Heading { level, id, .. }) => {
                    let id = self.unique_id(id.as_deref().map_or_else(|| slug::slugify(&plain(&events[at..])), str::to_owned));
                    raw(&mut out, format!("<{level} id=\"{}\">", escape(&id)));
                    if !self.is_feed {
                        let link = slug::encode_path(&id);
                        let anchor = format!("<a class=\"anchor\" href=\"#{link}\" aria-label=\"Link to this section\">#</a>");
                        raw(&mut out, anchor);
                    }
                }
                Event::End(TagEnd::Heading(level)) => raw(&mut out, format!("</{level}>\n")),
                Event::Start(Tag::CodeBlock(kind)) => {
                    let (code, end) = text_until_end(events, at);
                    raw(&mut out, code_block(kind, &code));
                    at = end;
                }
                Event::Start(Tag::Image { dest_url, title, .. }) => {
                    let (alt, end) = (plain(&events[at..]), end_of(events, at));
                    let source = self.link(dest_url, range.start, true);
                    let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(title)) };
                    let lazy = if self.is_feed { "" } else { " loading=\"lazy\" decoding=\"async\"" };
                    out.push(Event::InlineHtml(format!("<img src=\"{source}\" alt=\"{}\"{title}{lazy}>", escape(&alt)).into()));
                    at = end;
                }
                Event::Start(Tag::Link { dest_url, title, link_type, .. }) => {
                    let mail = if matches!(link_type, pulldown_cmark::LinkType::Email) { "mailto:" } else { "" };
                    let target = self.link(&format!("{mail}{dest_url}"), range.start, false);
                    let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(title)) };
                    out.push(Event::InlineHtml(format!("<a href=\"{target}\"{title}>").into()));
                }
                Event::End(TagEnd::Link) => out.push(Event::InlineHtml(CowStr::Borrowed("</a>"))),
                Event::Start(Tag::Table(_)) => {
                    raw(&mut out, "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">\n".to_owned());
                    out.push(event.clone());
                }
                Event::End(TagEnd::Table) => {
                    out.push(event.clone());
                    raw(&mut out, "</div>\n".to_owned());
                }
                Event::Start(Tag::BlockQuote(Some(kind))) => {
                    let (class, title) = alert(*kind);
                    raw(&mut out, format!("<aside class=\"alert {class}\">\n<p class=\"alert-title\">{title}</p>\n"));
                }
                Event::End(TagEnd::BlockQuote(Some(_))) => raw(&mut out, "</aside>\n".to_owned()),
                Event::FootnoteReference(label) => out.push(Event::InlineHtml(notes.mention(label).into())),
                Event::Html(html) => out.push(Event::Html(xml_chars(html))),
                Event::InlineHtml(html) => out.push(Event::InlineHtml(xml_chars(html))),
                Event::Text(text) => out.push(Event::Text(xml_chars(text))),
                Event::Code(text) => out.push(Event::Code(xml_chars(text))),
                other => out.push(other.clone()),
            }
            at += 1;
        }
        out
    }

    /// Returns `id`, or `id-2`, `id-3`, … if it was used before.
    fn unique_id(&mut self, id: String) -> String {
        let id = if id.is_empty() { "section".to_owned() } else { id };
        let count = self.ids.entry(id.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { id } else { format!("{id}-{count}") }
    }

    /// Returns the escaped target of a link or an image.
    fn link(&mut self, url: &str, offset: usize, is_image: bool) -> String {
        let target = self.target(url, offset, is_image);
        let base = if self.is_feed && target.starts_with('/') && !target.starts_with("//") { BASE } else { "" };
        format!("{base}{}", escape(&target))
    }

    fn target(&mut self, url: &str, offset: usize, is_image: bool) -> String {
        let is_elsewhere = url.is_empty() || url.starts_with(['/', '#', '?']) || has_scheme(url);
        if is_elsewhere {
            return url.to_owned();
        }
        let end = url.find(['#', '?']).unwrap_or(url.len());
        let (path, suffix) = url.split_at(end);
        let decoded = slug::decode_path(path).unwrap_or_else(|| path.to_owned());
        let name = join(self.text.folder, &decoded);
        let line = || self.text.body_line + slug::line_at(self.text.body, offset) - 1;
        if let Some(target) = name.as_ref().and_then(|name| self.targets.text(name).or_else(|| self.targets.file(name))) {
            // A link from draft to draft is relative: both are seen in the same place.
            if !target.is_published && target.address.starts_with('/') {
                let message = format!("link to {url:?}: it is not published yet, so readers will find nothing there");
                self.warnings.push(Problem::warning(self.text.file, line(), message));
            }
            return format!("{}{suffix}", slug::encode_path(&target.address));
        }
        if is_image || is_markdown(&decoded) {
            let what = if is_image { "there is no such file to show" } else { "no published post or page has that name" };
            self.problems.push(Problem::new(self.text.file, line(), format!("link to {url:?}: {what}; paths are relative to this file")));
        }
        url.to_owned()
    }
}

/// Tells whether a file of this name is Markdown.
pub(crate) fn is_markdown(name: &str) -> bool {
    let extension = Path::new(name).extension().map(|e| e.to_ascii_lowercase());
    extension.is_some_and(|e| e == "md" || e == "markdown")
}

fn has_scheme(url: &str) -> bool {
    let is_scheme =
        |s: &str| s.starts_with(|c: char| c.is_ascii_alphabetic()) && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    url.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// Resolves `path` from `folder`, without `.` and `..`. Returns `None` if it leaves the blog.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

fn xml_chars<'a>(text: &CowStr<'a>) -> CowStr<'a> {
    if text.chars().all(is_xml_char) { text.clone() } else { text.chars().filter(|&c| is_xml_char(c)).collect::<String>().into() }
}

fn alert(kind: BlockQuoteKind) -> (&'static str, &'static str) {
    match kind {
        BlockQuoteKind::Note => ("note", "Note"),
        BlockQuoteKind::Tip => ("tip", "Tip"),
        BlockQuoteKind::Important => ("important", "Important"),
        BlockQuoteKind::Warning => ("warning", "Warning"),
        BlockQuoteKind::Caution => ("caution", "Caution"),
    }
}

/// Renders a code block as a figure with its language and, from `title="…"` in the info string, a name.
fn code_block(kind: &CodeBlockKind<'_>, code: &str) -> String {
    let info = match kind {
        CodeBlockKind::Fenced(info) => info.trim(),
        CodeBlockKind::Indented => "",
    };
    let (language, rest) = info.split_once([' ', ',']).unwrap_or((info, ""));
    let title = rest.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(title, _)| escape(title));
    let language = escape(language);
    let caption = match (&title, language.as_str()) {
        (Some(title), _) => format!("<figcaption>{title}</figcaption>"),
        (None, "" | "text") => String::new(),
        (None, language) => format!("<figcaption class=\"language\">{language}</figcaption>"),
    };
    let class = if language.is_empty() { String::new() } else { format!(" class=\"language-{language}\"") };
    format!("<figure class=\"code\">{caption}<pre tabindex=\"0\"><code{class}>{}</code></pre></figure>\n", escape(code))
}

/// Returns the index of the event that ends the element that begins at `at`.
fn end_of(events: &[Spanned<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, (event, _)) in events[at..].iter().enumerate() {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + offset;
        }
    }
    events.len()
}

fn text_until_end(events: &[Spanned<'_>], at: usize) -> (String, usize) {
    let end = end_of(events, at);
    let texts = events[at..end].iter().filter_map(|(event, _)| if let Event::Text(text) = event { Some(&**text) } else { None });
    (texts.collect(), end)
}

/// Returns the plain text of the element that begins with the first of `events`.
fn plain(events: &[Spanned<'_>]) -> String {
    let mut text = String::new();
    for (event, _) in &events[..end_of(events, 0).min(events.len())] {
        match event {
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    text
}

fn first_heading(events: &[Spanned<'_>]) -> Option<String> {
    let at = events.iter().position(|(event, _)| matches!(event, Event::Start(Tag::Heading { .. })))?;
    Some(plain(&events[at..])).filter(|text| !text.trim().is_empty())
}

fn summary(events: &[Spanned<'_>]) -> String {
    let mut at = 0;
    while let Some((event, _)) = events.get(at) {
        let text = if matches!(event, Event::Start(Tag::Paragraph)) { plain(&events[at..]) } else { String::new() };
        if !text.trim().is_empty() {
            return shorten(text.trim());
        }
        at = if matches!(event, Event::Start(_)) { end_of(events, at) + 1 } else { at + 1 };
    }
    String::new()
}

fn shorten(text: &str) -> String {
    let Some((limit, _)) = text.char_indices().nth(SUMMARY_CHARS_MAX) else { return text.to_owned() };
    let cut = text[..limit].rfind(' ').unwrap_or(limit);
    format!("{}…", text[..cut].trim_end_matches([' ', ',', ';', ':', '.']))
}

/// Estimates the reading time in minutes. In scripts without spaces, two characters count as a word.
fn minutes(events: &[Spanned<'_>]) -> usize {
    let mut words = 0;
    for (event, _) in events {
        if let Event::Text(text) | Event::Code(text) = event {
            let unspaced = text.chars().filter(|&c| c >= '\u{3040}' && c.is_alphabetic()).count();
            words += text.split_whitespace().count() + unspaced / 2;
        }
    }
    words.div_ceil(WORDS_PER_MINUTE).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        error::Severity,
        targets::{Known, Target},
    };

    fn text(body: &str) -> Text<'_> {
        Text {
            file: Path::new("posts/a.md"),
            folder: "posts",
            body,
            body_line: 5,
            language: "en",
            title: Some("T"),
            has_math: true,
            has_toc: false,
        }
    }

    fn targets() -> Targets {
        let target = |name: &str, address: &str| {
            (name.to_owned(), Target { address: address.to_owned(), is_published: address != "/later/", version: 0 })
        };
        let texts = [target("posts/b.md", "/b-post/"), target("pages/über.md", "/über/"), target("posts/later.md", "/later/")];
        let files = [target("posts/cat photo.jpg", "/posts/cat photo.jpg"), target("top.png", "/top.png")];
        Targets::new(Arc::new(Known { texts: texts.into(), files: files.into() }))
    }

    #[test]
    fn a_link_to_what_is_not_published_yet_is_a_warning_with_a_line() {
        let rendered = render(&text("Text\n\n[x](later.md)"), &targets()).expect("renders");
        assert!(rendered.html.contains("href=\"/later/\""), "{}", rendered.html);
        let told: Vec<_> = rendered.warnings.iter().map(|warning| (warning.severity, warning.line)).collect();
        assert_eq!(told, [(Severity::Warning, Some(7))]);
    }

    fn page(body: &str) -> String {
        render(&text(body), &targets()).expect("renders").html
    }

    #[test]
    fn constructs() {
        let cases = [
            ("## A *b*", "<h2 id=\"a-b\"><a class=\"anchor\" href=\"#a-b\""),
            ("## A {#own}", "<h2 id=\"own\">"),
            ("## A\n\n## A", "<h2 id=\"a-2\">"),
            ("~~x~~", "<del>x</del>"),
            ("- [x] y", "checked=\"\""),
            ("|a|b|\n|-|-|\n|1|2|", "<div class=\"table\""),
            ("> [!WARNING]\n> x", "<aside class=\"alert warning\">\n<p class=\"alert-title\">Warning</p>\n<p>x</p>"),
            ("> x", "<blockquote>\n<p>x</p>"),
            (
                "```toml title=\"a<b.toml\"\nx = 1\n```",
                "<figcaption>a&lt;b.toml</figcaption><pre tabindex=\"0\"><code class=\"language-toml\">x = 1\n",
            ),
            ("    <x>", "<pre tabindex=\"0\"><code>&lt;x&gt;"),
            ("\"a\" -- b", "“a” – b"),
            ("<https://x.test/?a=1&b=2>", "<a href=\"https://x.test/?a=1&amp;b=2\">"),
            ("<a@x.test>", "<a href=\"mailto:a@x.test\">"),
            ("[x](<javascript:alert(\"1\")>)", "<a href=\"javascript:alert(&quot;1&quot;)\">"),
        ];
        for (body, expected) in cases {
            let html = page(body);
            assert!(html.contains(expected), "{body:?}: {html}");
        }
    }

    #[test]
    fn links_between_files_become_addresses() {
        let cases = [
            ("[x](b.md)", "href=\"/b-post/\""),
            ("[x](./b.md#part)", "href=\"/b-post/#part\""),
            ("[x](../pages/%C3%BCber.md)", "href=\"/%C3%BCber/\""),
            ("![x](<cat photo.jpg>)", "src=\"/posts/cat%20photo.jpg\" alt=\"x\""),
            ("![*x*](../top.png \"T\")", "src=\"/top.png\" alt=\"x\" title=\"T\""),
            ("[x](/b-post/)", "href=\"/b-post/\""),
            ("[x](#part)", "href=\"#part\""),
            ("![x](https://x.test/y.png)", "src=\"https://x.test/y.png\""),
        ];
        for (body, expected) in cases {
            let html = page(body);
            assert!(html.contains(expected), "{body:?}: {html}");
        }
    }

    #[test]
    fn links_to_nothing_are_problems_with_a_line() {
        for body in ["Text\n\n[x](gone.md)", "Text\n\n![x](gone.png)", "Text\n\n![x](../../etc/passwd)"] {
            let problems = render(&text(body), &targets()).expect_err(body);
            assert_eq!((problems.len(), problems[0].line), (1, Some(7)), "{body:?}");
        }
    }

    #[test]
    fn the_feed_has_absolute_links_and_no_anchors() {
        let feed = render(&text("## A\n\n[x](b.md) ![y](../top.png) [z](//x.test/)"), &targets()).expect("renders").feed_html;
        assert!(feed.contains(&format!("href=\"{BASE}/b-post/\"")) && feed.contains(&format!("src=\"{BASE}/top.png\"")), "{feed}");
        assert!(feed.contains("href=\"//x.test/\"") && !feed.contains("anchor"), "{feed}");
    }

    #[test]
    fn footnotes_are_numbered_by_first_mention() {
        let html = page("A[^b] B[^a] A[^b] C[^gone]\n\n[^a]: Note a\n[^b]: Note b");
        let order = ["id=\"fnref-1\"", "id=\"fnref-2\"", "<li id=\"fn-1\">\n<p>Note b <a href=\"#fnref-1\"", "<li id=\"fn-2\">\n<p>Note a"];
        let found: Vec<_> = order.iter().map(|part| html.find(part)).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{html}");
    }

    #[test]
    fn an_opening_heading_can_be_the_title() {
        let untitled = Text { title: None, ..text("# Hello `x`\n\nFirst *words*.\n\nMore.") };
        let rendered = render(&untitled, &targets()).expect("renders");
        assert_eq!((rendered.heading.as_deref(), rendered.summary.as_str()), (Some("Hello x"), "First words."));
        assert!(!rendered.html.contains("<h1"), "{}", rendered.html);
    }

    #[test]
    fn summaries_end_at_a_word() {
        let long = "word ".repeat(100);
        let short = shorten(long.trim());
        assert!(short.ends_with("word…") && short.chars().count() <= SUMMARY_CHARS_MAX + 1, "{short}");
        assert!(shorten(&"日".repeat(300)).chars().count() <= SUMMARY_CHARS_MAX + 1);
    }

    #[test]
    fn control_characters_leave_the_text() {
        assert!(!page("a\u{1}b `c\u{2}` <i>\u{3}</i>").contains(['\u{1}', '\u{2}', '\u{3}']));
    }
}
