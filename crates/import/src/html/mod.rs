//! HTML into Markdown, for a reader that is Seawall's own blog.
//!
//! Whatever has a form in Markdown gets it; the rest stays HTML, so that nothing of a text is lost. What editors such as Ghost's and WordPress's
//! make of their cards and blocks is in [`cards`].

mod cards;
mod dom;
mod raw;
mod table;
#[cfg(test)]
mod tests;

use markup5ever_rcdom::{Handle, NodeData};

pub(crate) use self::raw::{escape, escape_text};
use self::{
    dom::{all, attribute, children, first, has_class, holds_block, is_blank, is_block, tag, text},
    raw::{raw, raw_block, start_tag, without_blank_lines},
};

/// Tells where the addresses of a text lead now.
pub(crate) trait Targets {
    /// Returns the target of a link.
    fn link(&self, url: &str) -> String;
    /// Returns the target of a picture in Markdown: relative to the text, if it is a file of the blog.
    fn picture(&self, url: &str) -> String;
    /// Returns an address for HTML, which the blog does not change: from the root.
    fn address(&self, url: &str) -> String;
    /// Notes what the author should look at.
    fn note(&self, note: String);
}

/// Turns an HTML fragment into Markdown.
pub(crate) fn markdown(html: &str, targets: &dyn Targets) -> String {
    let Some(fragment) = dom::parse(html) else {
        targets.note("its HTML is nested too deeply to become Markdown, and is kept as it was".to_owned());
        return format!("<div>\n{}\n</div>\n", without_blank_lines(html));
    };
    let blocks = Writer { targets }.blocks(&children(&fragment.root));
    if blocks.is_empty() { String::new() } else { blocks.join("\n\n") + "\n" }
}

/// Addresses that the blog shows as a card when they stand alone in a paragraph.
const CARDS: [&str; 7] = ["youtube.com", "youtu.be", "vimeo.com", "gist.github.com", "twitter.com", "x.com", "codepen.io"];

/// Scripts that only turn a quotation or a link into a card.
const SCRIPTS_OF_CARDS: [&str; 9] = [
    "platform.twitter.com",
    "platform.x.com",
    "www.instagram.com/embed.js",
    "www.tiktok.com/embed.js",
    "embed.redditmedia.com",
    "embed.reddit.com",
    "connect.facebook.net",
    "assets.pinterest.com",
    "embed.bsky.app",
];

/// Says what surrounds a run of text.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    /// Whether the text must stay on one line.
    is_line: bool,
    /// Whether it is a cell of a table.
    is_cell: bool,
    /// The character that follows, if it is known.
    after: Option<char>,
}

struct Writer<'t> {
    targets: &'t dyn Targets,
}

impl Writer<'_> {
    /// Writes nodes as blocks, which are then separated by blank lines.
    fn blocks(&self, nodes: &[Handle]) -> Vec<String> {
        let mut blocks: Vec<String> = Vec::new();
        let (mut run, mut kept): (Vec<Handle>, Option<Vec<Handle>>) = (Vec::new(), None);
        for node in nodes {
            if let NodeData::Comment { contents } = &node.data {
                match contents.trim() {
                    "kg-card-begin: html" => kept = Some(Vec::new()),
                    "kg-card-end: html" => {
                        self.paragraph(&mut run, &mut blocks);
                        blocks.extend(kept.take().and_then(|kept| self.html_card(&kept)));
                    }
                    _ => {}
                }
            } else if let Some(kept) = &mut kept {
                kept.push(node.clone());
            } else if is_block(node) || holds_block(node) {
                self.paragraph(&mut run, &mut blocks);
                let list = matches!(tag(node), "ul" | "ol" | "menu" | "dir");
                // Two lists with the same marks would become one.
                let follows_list = list && blocks.last().is_some_and(|block| begins_list(block));
                blocks.extend(if list { self.list(node, follows_list) } else { self.block(node) });
            } else {
                run.push(node.clone());
            }
        }
        run.extend(kept.into_iter().flatten());
        self.paragraph(&mut run, &mut blocks);
        blocks.retain(|block| !block.trim().is_empty());
        blocks
    }

    /// Writes the run of text before a block as a paragraph.
    fn paragraph(&self, run: &mut Vec<Handle>, blocks: &mut Vec<String>) {
        let text = self.inline(run, Around::default());
        run.clear();
        blocks.extend(as_paragraph(&text));
    }

    /// Keeps what an author wrote as HTML.
    fn html_card(&self, nodes: &[Handle]) -> Option<String> {
        let html = nodes.iter().map(|node| raw(node, self.targets)).collect::<String>();
        if html.trim().is_empty() {
            return None;
        }
        if nodes.iter().any(|node| first(node, |node| tag(node) == "script").is_some()) {
            self.targets.note("has a script of its own, kept as HTML: look whether it still does what it should".to_owned());
        }
        Some(match nodes.iter().find(|node| !is_blank(node)) {
            Some(only) if nodes.iter().filter(|node| !is_blank(node)).count() == 1 => raw_block(only, self.targets),
            _ => format!("<div>\n{}\n</div>", without_blank_lines(&html)),
        })
    }

    fn block(&self, node: &Handle) -> Vec<String> {
        if let Some(blocks) = self.card(node) {
            return blocks;
        }
        match tag(node) {
            "p" | "address" if !children(node).iter().any(holds_block) => {
                as_paragraph(&self.inline(&children(node), Around::default())).into_iter().collect()
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(node).into_iter().collect(),
            "ul" | "ol" | "menu" | "dir" => self.list(node, false).into_iter().collect(),
            "blockquote" => self.quotation(node).into_iter().collect(),
            "pre" => vec![self.code_block(node, None)],
            "hr" => vec!["---".to_owned()],
            "table" => self.table(node),
            "figure" => self.figure(node),
            "iframe" => vec![self.frame(node)],
            "script" => self.script(node).into_iter().collect(),
            "noscript" | "template" => Vec::new(),
            "details" => self.details(node),
            "video" | "audio" => vec![raw_block(node, self.targets)],
            "style" | "form" | "object" | "canvas" | "dialog" | "fieldset" => {
                self.targets.note(format!("has a <{}>, kept as HTML: look whether it still does what it should", tag(node)));
                vec![raw_block(node, self.targets)]
            }
            "dl" | "svg" => vec![raw_block(node, self.targets)],
            _ => self.blocks(&children(node)),
        }
    }

    fn heading(&self, node: &Handle) -> Option<String> {
        let level = tag(node).as_bytes().get(1).map_or(2, |digit| usize::from(digit - b'0'));
        let inline = self.inline(&children(node), Around { is_line: true, ..Around::default() });
        let heading = inline.trim();
        if heading.is_empty() {
            return None;
        }
        // A closing run of `#` would not be shown, and braces at the end would be attributes.
        let heading = heading.replace('{', "\\{");
        let heading = if heading.ends_with('#') { format!("{}\\#", &heading[..heading.len() - 1]) } else { heading };
        let id = attribute(node, "id").filter(|id| !id.is_empty() && id.chars().all(|c| c.is_alphanumeric() || "-_".contains(c)));
        let id = id.filter(|id| *id != crate::slug::slugify(&text(node))).map(|id| format!(" {{#{id}}}")).unwrap_or_default();
        Some(format!("{} {heading}{id}", "#".repeat(level)))
    }

    fn list(&self, node: &Handle, follows_list: bool) -> Vec<String> {
        let mut number: Option<u64> =
            (tag(node) == "ol").then(|| attribute(node, "start").and_then(|start| start.trim().parse().ok()).unwrap_or(1).min(999_999_999));
        let mut items: Vec<Vec<String>> = Vec::new();
        for child in children(node).iter().filter(|child| !is_blank(child)) {
            match tag(child) {
                "li" => items.push(self.blocks(&children(child))),
                // A list in a list without an item of its own belongs to the item before.
                _ => {
                    let more = self.blocks(std::slice::from_ref(child));
                    match items.last_mut() {
                        Some(item) => item.extend(more),
                        None => items.push(more),
                    }
                }
            }
        }
        let is_tight = items.iter().all(|blocks| blocks.iter().skip(1).all(|block| begins_list(block)));
        let between = if is_tight { "\n" } else { "\n\n" };
        let mut lines = Vec::new();
        for blocks in &items {
            let mark = match &mut number {
                Some(number) => {
                    let mark = format!("{number}{} ", if follows_list { ")" } else { "." });
                    *number += 1;
                    mark
                }
                None => if follows_list { "* " } else { "- " }.to_owned(),
            };
            lines.push(indented(&blocks.join(between), &mark, &" ".repeat(mark.len())));
        }
        if lines.is_empty() { Vec::new() } else { vec![lines.join(between)] }
    }

    fn quotation(&self, node: &Handle) -> Option<String> {
        let is_post = ["twitter-tweet", "instagram-media", "tiktok-embed", "bluesky-embed", "twitter-video"]
            .iter()
            .any(|class| has_class(node, class));
        if is_post {
            let of_post = |node: &Handle| tag(node) == "a" && attribute(node, "href").is_some_and(|href| href.contains("/status/"));
            let url = all(node, of_post).last().and_then(|link| attribute(link, "href"));
            if let Some(url) = url.or_else(|| attribute(node, "cite")).or_else(|| attribute(node, "data-instgrm-permalink")) {
                return Some(card_of(url.split('?').next().unwrap_or(&url)));
            }
        }
        quoted(&self.blocks(&children(node)))
    }

    fn code_block(&self, node: &Handle, title: Option<&str>) -> String {
        if has_class(node, "wp-block-verse") {
            return as_paragraph(&self.inline_with_lines(&children(node))).unwrap_or_default();
        }
        let code = text(node);
        let code = code.strip_prefix('\n').unwrap_or(&code).trim_end();
        let inner = first(node, |node| tag(node) == "code");
        let language = [Some(node.clone()), inner].into_iter().flatten().find_map(|node| language_of(&node)).unwrap_or_default();
        let title = title.map(|title| title.replace('"', "'")).filter(|title| !title.trim().is_empty());
        let title = title.map(|title| format!(" title=\"{}\"", title.split_whitespace().collect::<Vec<_>>().join(" "))).unwrap_or_default();
        let language = if language.is_empty() && !title.is_empty() { "text".to_owned() } else { language };
        fenced(&language, &title, code)
    }

    fn figure(&self, node: &Handle) -> Vec<String> {
        let caption = first(node, |node| tag(node) == "figcaption");
        let is_here = |wanted: &str| first(node, |node| tag(node) == wanted);
        if let Some(code) = is_here("pre") {
            return vec![self.code_block(&code, caption.as_ref().map(text).as_deref())];
        }
        let mut blocks = if let Some(table) = is_here("table") {
            self.table(&table)
        } else if let Some(frame) = is_here("iframe") {
            vec![self.frame(&frame)]
        } else if let Some(player) = is_here("video").or_else(|| is_here("audio")) {
            return vec![self.player(&player, caption.as_ref())];
        } else if is_here("blockquote").is_some() || is_here("img").is_none() {
            let inner: Vec<Handle> = children(node).into_iter().filter(|child| tag(child) != "figcaption").collect();
            self.blocks(&inner)
        } else {
            let pictures: Vec<String> = all(node, |node| tag(node) == "img")
                .iter()
                .filter(|picture| {
                    caption.as_ref().is_none_or(|caption| all(caption, |other| std::rc::Rc::ptr_eq(other, picture)).is_empty())
                })
                .filter_map(|picture| self.linked_picture(node, picture))
                .collect();
            return self.pictures(&pictures, caption.as_ref());
        };
        if let Some(caption) = caption {
            blocks.extend(as_paragraph(&self.inline(&children(&caption), Around::default())));
        }
        blocks
    }

    /// Writes pictures as one block, with their caption.
    fn pictures(&self, pictures: &[String], caption: Option<&Handle>) -> Vec<String> {
        if pictures.is_empty() {
            return Vec::new();
        }
        let pictures = pictures.join("\n");
        let html = caption.map(|caption| children(caption).iter().map(|node| raw(node, self.targets)).collect::<String>());
        match html.map(|html| without_blank_lines(&html)).filter(|html| !html.is_empty()) {
            // Markdown has no captions. Between blank lines, what is in an element of HTML is Markdown again.
            Some(caption) => vec![format!("<figure>\n\n{pictures}\n\n<figcaption>{caption}</figcaption>\n</figure>")],
            None => vec![pictures],
        }
    }

    /// Writes a picture, and the link around it.
    fn linked_picture(&self, within: &Handle, picture: &Handle) -> Option<String> {
        let image = self.image(picture)?;
        let around = |node: &Handle| tag(node) == "a" && first(node, |other| std::rc::Rc::ptr_eq(other, picture)).is_some();
        let href = first(within, around).and_then(|link| attribute(&link, "href"));
        let href = href.map(|href| self.targets.link(&href));
        // WordPress links pictures to themselves.
        let href = href.filter(|href| !href.is_empty() && !image.ends_with(&format!("]({})", destination(href))) && !is_picture(href));
        Some(match href {
            Some(href) => format!("[{image}]({})", destination(&href)),
            None => image,
        })
    }

    fn player(&self, player: &Handle, caption: Option<&Handle>) -> String {
        let source =
            attribute(player, "src").or_else(|| first(player, |node| tag(node) == "source").and_then(|node| attribute(&node, "src")));
        let source = source.map(|source| self.targets.address(&source)).unwrap_or_default();
        let mut html = format!("<figure>\n<{} src=\"{}\" controls preload=\"metadata\"", tag(player), escape(&source));
        for key in ["poster", "width", "height"] {
            if let Some(value) = attribute(player, key).filter(|value| !value.is_empty() && !value.contains("spacergif.org")) {
                let value = if key == "poster" { self.targets.address(&value) } else { value };
                html += &format!(" {key}=\"{}\"", escape(&value));
            }
        }
        html += &format!("></{}>", tag(player));
        if let Some(caption) = caption.map(|caption| children(caption).iter().map(|node| raw(node, self.targets)).collect::<String>()) {
            html += &format!("\n<figcaption>{}</figcaption>", without_blank_lines(&caption));
        }
        html + "\n</figure>"
    }

    fn frame(&self, node: &Handle) -> String {
        let source = attribute(node, "src").or_else(|| attribute(node, "data-src")).unwrap_or_default();
        if let Some(url) = page_of_frame(&source) {
            return card_of(&url);
        }
        self.targets.note(format!("shows a page of another site, kept as HTML: {}", shortened(&source)));
        raw_block(node, self.targets)
    }

    fn script(&self, node: &Handle) -> Option<String> {
        let source = attribute(node, "src").unwrap_or_default();
        if let Some(gist) = source.strip_prefix("https://gist.github.com/").and_then(|rest| rest.split(".js").next()) {
            return Some(card_of(&format!("https://gist.github.com/{gist}")));
        }
        if SCRIPTS_OF_CARDS.iter().any(|known| source.contains(known)) {
            return None;
        }
        self.targets.note("has a script of its own, kept as HTML: look whether it still does what it should".to_owned());
        Some(raw_block(node, self.targets))
    }

    fn details(&self, node: &Handle) -> Vec<String> {
        let summary = first(node, |node| tag(node) == "summary");
        let head = summary.as_ref().map(|summary| children(summary).iter().map(|node| raw(node, self.targets)).collect::<String>());
        let inner: Vec<Handle> = children(node).into_iter().filter(|child| tag(child) != "summary").collect();
        vec![folded(&head.unwrap_or_default(), &self.blocks(&inner))]
    }

    /// Writes nodes as one run of text.
    fn inline(&self, nodes: &[Handle], around: Around) -> String {
        let mut out = String::new();
        self.inline_into(nodes, around, &mut out);
        out
    }

    /// Writes nodes as one run of text in which the ends of lines are meant.
    fn inline_with_lines(&self, nodes: &[Handle]) -> String {
        let text: String = nodes.iter().map(text).collect();
        text.trim().lines().map(|line| escaped(line.trim_end(), Around::default())).collect::<Vec<_>>().join("\\\n")
    }

    fn inline_into(&self, nodes: &[Handle], around: Around, out: &mut String) {
        for (at, node) in nodes.iter().enumerate() {
            let after = following(&nodes[at + 1..]).or(around.after);
            match &node.data {
                NodeData::Text { contents } => push_text(out, &contents.borrow(), around),
                NodeData::Element { .. } => self.element_into(node, Around { after, ..around }, out),
                NodeData::Document | NodeData::Doctype { .. } | NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. } => {}
            }
        }
    }

    fn element_into(&self, node: &Handle, around: Around, out: &mut String) {
        let inner = children(node);
        match tag(node) {
            "br" if around.is_line => out.push_str(if around.is_cell { "<br>" } else { " " }),
            "br" => {
                out.truncate(out.trim_end_matches(' ').len());
                // A break at the beginning breaks nothing, and a second one would end the paragraph.
                if !out.is_empty() && !out.ends_with("\\\n") {
                    out.push_str("\\\n");
                }
            }
            "strong" | "b" => self.marked(node, "**", "strong", around, out),
            "em" | "i" => self.marked(node, "*", "em", around, out),
            "s" | "del" | "strike" => self.marked(node, "~~", "del", around, out),
            "code" | "tt" => self.code(node, around, out),
            "a" => self.link(node, around, out),
            "img" => {
                if has_class(node, "wp-smiley") || has_class(node, "emoji") {
                    push_text(out, &attribute(node, "alt").unwrap_or_default(), around);
                } else if let Some(image) = self.image(node) {
                    out.push_str(&image);
                }
            }
            "input" if attribute(node, "type").as_deref() == Some("checkbox") => {
                out.push_str(if attribute(node, "checked").is_some() { "[x] " } else { "[ ] " });
            }
            "script" | "noscript" | "template" | "style" => {}
            "sub" | "sup" | "kbd" | "mark" | "small" | "u" | "ins" | "cite" | "q" | "abbr" | "time" | "var" | "dfn" | "samp" | "ruby"
            | "rt" | "rp" | "bdo" => {
                let content = self.inline(&inner, Around { after: Some('<'), ..around });
                if content.trim().is_empty() {
                    push_space(out, !content.is_empty());
                } else {
                    out.push_str(&start_tag(node, self.targets));
                    out.push_str(content.trim_end_matches("\\\n"));
                    out.push_str(&format!("</{}>", tag(node)));
                }
            }
            "button" | "select" | "input" | "textarea" | "map" | "math" | "progress" | "meter" => {
                out.push_str(&without_blank_lines(&raw(node, self.targets)).replace('\n', " "));
            }
            _ => self.inline_into(&inner, around, out),
        }
    }

    /// Writes emphasis. Where CommonMark's marks would not be seen as such, it is written as HTML.
    fn marked(&self, node: &Handle, mark: &str, html: &str, around: Around, out: &mut String) {
        let inner = self.inline(&children(node), Around { after: mark.chars().next(), ..around });
        let content = inner.trim().trim_end_matches("\\\n").trim_end_matches('\\').trim();
        let (Some(first), Some(last)) = (content.chars().next(), content.chars().next_back()) else {
            return push_space(out, !inner.is_empty());
        };
        push_space(out, inner.starts_with(' '));
        let follows = inner.ends_with(' ').then_some(' ').or(around.after);
        let is_open = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || is_punctuation(c));
        let marks = ['*', '_', '~'];
        let before = out.chars().next_back();
        let is_seen = (!is_punctuation(first) || is_open(before))
            && (!is_punctuation(last) || is_open(follows))
            && !before.is_some_and(|c| marks.contains(&c))
            && !follows.is_some_and(|c| marks.contains(&c))
            && !marks.contains(&first)
            && !marks.contains(&last)
            && content.ends_with('\\') == content.ends_with("\\\\");
        if is_seen {
            out.push_str(&format!("{mark}{content}{mark}"));
        } else {
            out.push_str(&format!("<{html}>{content}</{html}>"));
        }
        push_space(out, inner.ends_with(' '));
    }

    fn code(&self, node: &Handle, around: Around, out: &mut String) {
        let is_plain =
            first(node, |node| matches!(tag(node), "a" | "strong" | "em" | "b" | "i" | "mark" | "img" | "sub" | "sup")).is_none();
        if !is_plain {
            let content = self.inline(&children(node), Around { after: Some('<'), ..around });
            out.push_str(&format!("<code>{}</code>", content.trim()));
            return;
        }
        let code = text(node).split(['\n', '\r']).collect::<Vec<_>>().join(" ");
        if code.trim().is_empty() {
            return push_space(out, !code.is_empty());
        }
        let code = if around.is_cell { code.replace('|', "\\|") } else { code };
        let fence = "`".repeat(longest_run(&code, '`') + 1);
        let is_padded = code.starts_with('`') || code.ends_with('`') || code.starts_with(' ') && code.ends_with(' ');
        let pad = if is_padded { " " } else { "" };
        if out.ends_with('`') {
            out.push_str("<!-- -->");
        }
        out.push_str(&format!("{fence}{pad}{code}{pad}{fence}"));
    }

    fn link(&self, node: &Handle, around: Around, out: &mut String) {
        let inner = self.inline(&children(node), Around { after: Some(']'), ..around });
        let content = inner.trim().trim_end_matches("\\\n").trim();
        let name = attribute(node, "id").or_else(|| attribute(node, "name"));
        let href = attribute(node, "href").map(|href| href.trim().to_owned()).filter(|href| !href.is_empty());
        let Some(href) = href else {
            if let Some(name) = name {
                out.push_str(&format!("<a id=\"{}\"></a>", escape(&name)));
            }
            out.push_str(&inner);
            return;
        };
        if content.is_empty() {
            return push_space(out, !inner.is_empty());
        }
        if href.to_ascii_lowercase().starts_with("javascript:") {
            self.targets.note("has a link that only runs a script; its text is kept without it".to_owned());
            out.push_str(&inner);
            return;
        }
        let plain = text(node);
        let target = self.targets.link(&href);
        push_space(out, inner.starts_with(' '));
        if target.starts_with("http") && plain.trim() == target && !target.contains(['<', '>', ' ']) {
            out.push_str(&format!("<{target}>"));
        } else {
            let is_themselves = content.starts_with("![")
                && is_picture(&target)
                && content.ends_with(&format!("({})", destination(&self.targets.picture(&href))));
            if is_themselves {
                out.push_str(content);
            } else {
                let title = attribute(node, "title").map(|title| titled(&title)).unwrap_or_default();
                out.push_str(&format!("[{content}]({}{title})", destination(&target)));
            }
        }
        push_space(out, inner.ends_with(' '));
    }

    fn image(&self, node: &Handle) -> Option<String> {
        let source = |key: &str| attribute(node, key).map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
        let direct = source("src").filter(|url| !url.starts_with("data:"));
        let source = direct.or_else(|| source("data-src")).or_else(|| source("data-lazy-src")).or_else(|| source("src"))?;
        let alt = attribute(node, "alt").unwrap_or_default();
        if source.starts_with("data:") {
            self.targets.note("has a picture inside its text, kept as HTML".to_owned());
            return Some(format!("<img src=\"{}\" alt=\"{}\">", escape(&source), escape(&alt)));
        }
        let title = attribute(node, "title").filter(|title| *title != alt).map(|title| titled(&title)).unwrap_or_default();
        let alt = escaped(&alt.split_whitespace().collect::<Vec<_>>().join(" "), Around::default());
        Some(format!("![{alt}]({}{title})", destination(&self.targets.picture(&source))))
    }
}

/// Makes a paragraph of a run of text: what would begin a block at the start of a line is escaped.
fn as_paragraph(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\n', '\t']);
    let text = text
        .strip_suffix("\\\n")
        .or_else(|| text.strip_suffix('\\').filter(|rest| !rest.ends_with('\\') && text.ends_with("\n\\")))
        .unwrap_or(text);
    let text = text.trim_end_matches("\\\n").trim();
    if text.is_empty() || text == "\\" {
        return None;
    }
    Some(text.split('\n').map(|line| start_escaped(line.trim_start_matches([' ', '\t']))).collect::<Vec<_>>().join("\n"))
}

fn start_escaped(line: &str) -> String {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &line[digits..];
    if (1..=9).contains(&digits) && rest.starts_with(['.', ')']) && (rest.len() == 1 || rest[1..].starts_with([' ', '\t', '\\'])) {
        return format!("{}\\{rest}", &line[..digits]);
    }
    let is_rule = |c: char| line.trim_end().trim_end_matches('\\').chars().all(|other| other == c || other == ' ');
    let begins_block = match line.chars().next() {
        Some('#') => line.trim_start_matches('#').starts_with([' ', '\t']) || line.chars().all(|c| c == '#'),
        Some('-' | '+') => line.len() == 1 || line[1..].starts_with([' ', '\t', '\\']) || is_rule('-') || line.starts_with("+++"),
        Some('=') => is_rule('='),
        Some('>' | '|') => true,
        Some(':') => line[1..].starts_with([' ', ':']),
        Some('~') => line.starts_with("~~~"),
        _ => false,
    };
    if begins_block { format!("\\{line}") } else { line.to_owned() }
}

/// Adds text to a run: white space becomes one space, and what Markdown would take for a mark is escaped.
fn push_text(out: &mut String, text: &str, around: Around) {
    const SPACES: [char; 5] = [' ', '\t', '\n', '\r', '\u{c}'];
    let words = text.split(SPACES).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    push_space(out, text.starts_with(SPACES));
    out.push_str(&escaped(&words, around));
    push_space(out, !words.is_empty() && text.ends_with(SPACES));
}

fn push_space(out: &mut String, is_wanted: bool) {
    if is_wanted && !out.ends_with([' ', '\n']) {
        out.push(' ');
    }
}

/// Escapes what Markdown would take for a mark.
fn escaped(text: &str, around: Around) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let all: Vec<char> = text.chars().collect();
    for (at, &c) in all.iter().enumerate() {
        let (before, after) = (at.checked_sub(1).map(|at| all[at]), all.get(at + 1).copied());
        let is_mark = match c {
            '\\' | '`' | '[' | ']' => true,
            // Between spaces it is not a mark.
            '*' => !(before.is_none_or(char::is_whitespace) && after.is_some_and(char::is_whitespace) && before.is_some()),
            '_' => !(before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)),
            '~' => before == Some('~') || after == Some('~'),
            '<' => after.is_some_and(|c| c.is_ascii_alphabetic() || "/!?".contains(c)),
            '&' => begins_entity(&all[at + 1..]),
            '|' => around.is_cell,
            _ => false,
        };
        if is_mark {
            out.push('\\');
        }
        out.push(c);
    }
    // A colon between two more begins a directive of other engines, and an emoji here and there: it is text.
    out
}

fn begins_entity(rest: &[char]) -> bool {
    let end = rest.iter().take(34).position(|&c| c == ';');
    end.is_some_and(|end| end > 0 && rest[..end].iter().all(|c| c.is_ascii_alphanumeric() || *c == '#'))
}

/// Returns the first character of the text that follows.
fn following(nodes: &[Handle]) -> Option<char> {
    nodes.iter().find_map(|node| match tag(node) {
        "br" => Some(' '),
        "img" => Some('!'),
        "code" | "a" => Some('['),
        _ => text(node).chars().next(),
    })
}

/// Tells whether CommonMark sees a character as punctuation, where emphasis begins or ends.
fn is_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}

fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Writes a block of code.
pub(crate) fn fenced(language: &str, title: &str, code: &str) -> String {
    let fence = "`".repeat(longest_run(code, '`').max(2) + 1);
    format!("{fence}{language}{title}\n{code}\n{fence}")
}

fn language_of(node: &Handle) -> Option<String> {
    let clean =
        |name: &str| name.chars().filter(|c| c.is_ascii_alphanumeric() || "+#_.-".contains(*c)).collect::<String>().to_ascii_lowercase();
    for key in ["data-lang", "data-language", "data-enlighter-language", "lang"] {
        if let Some(name) = attribute(node, key).map(|name| clean(&name)).filter(|name| !name.is_empty()) {
            return Some(name);
        }
    }
    let classes = attribute(node, "class")?;
    if let Some(brush) = classes.split("brush:").nth(1) {
        return brush.split([';', ' ']).find(|name| !name.is_empty()).map(clean);
    }
    let named = classes.split_whitespace().find_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")));
    named.map(clean).filter(|name| !name.is_empty() && name != "none")
}

/// Writes blocks as a quotation.
fn quoted(blocks: &[String]) -> Option<String> {
    let text = blocks.join("\n\n");
    (!text.is_empty()).then(|| indented(&text, "> ", "> "))
}

/// Writes blocks that are shown when the reader opens them.
pub(crate) fn folded(summary: &str, blocks: &[String]) -> String {
    let summary = without_blank_lines(summary).replace('\n', " ");
    format!("<details>\n<summary>{summary}</summary>\n\n{}\n\n</details>", blocks.join("\n\n"))
}

/// Writes `first` before the first line and `other` before all others. Nothing stands at the end of a line.
pub(crate) fn indented(text: &str, first: &str, other: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let prefix = if at == 0 { first } else { other };
        out.push_str(if line.is_empty() { prefix.trim_end() } else { prefix });
        out.push_str(line);
    }
    out
}

fn begins_list(block: &str) -> bool {
    let digits = block.len() - block.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    block.starts_with("- ")
        || block.starts_with("* ")
        || digits > 0 && (block[digits..].starts_with(". ") || block[digits..].starts_with(") "))
}

/// Writes an address as the destination of a link.
pub(crate) fn destination(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            ' ' => out.push_str("%20"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '\\' => out.push_str("%5C"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    let is_balanced = {
        let mut depth = 0_i32;
        out.chars().all(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth >= 0
        }) && depth == 0
    };
    if is_balanced { out } else { out.replace('(', "%28").replace(')', "%29") }
}

fn titled(title: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() { title } else { format!(" \"{}\"", title.replace('\\', "\\\\").replace('"', "\\\"")) }
}

fn is_picture(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url).to_ascii_lowercase();
    [".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg"].iter().any(|extension| path.ends_with(extension))
}

/// Writes an address that the blog shows as a card, or as a link where it has no card for it.
pub(crate) fn card_of(url: &str) -> String {
    let host = url.split("://").nth(1).unwrap_or_default().split(['/', '?']).next().unwrap_or_default();
    let is_known = CARDS.iter().any(|known| host == *known || host.strip_suffix(known).is_some_and(|rest| rest.ends_with('.')));
    if is_known || !url.contains("://") { url.to_owned() } else { format!("<{}>", destination(url)) }
}

/// Returns the page to which a player in a frame belongs.
fn page_of_frame(source: &str) -> Option<String> {
    let source = source.strip_prefix("//").map_or_else(|| source.to_owned(), |rest| format!("https://{rest}"));
    let rest = source.split_once("://")?.1;
    let (host, path) = rest.split_once('/')?;
    let host = host.strip_prefix("www.").unwrap_or(host);
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    match host {
        "youtube.com" | "youtube-nocookie.com" => {
            let id = path.strip_prefix("embed/").filter(|id| is_name(id) && *id != "videoseries")?;
            Some(format!("https://www.youtube.com/watch?v={id}"))
        }
        "player.vimeo.com" => path.strip_prefix("video/").filter(|id| is_name(id)).map(|id| format!("https://vimeo.com/{id}")),
        "open.spotify.com" => path.strip_prefix("embed/").map(|path| format!("https://open.spotify.com/{path}")),
        "codepen.io" if path.contains("/embed/") => {
            Some(format!("https://codepen.io/{}", path.replace("/embed/preview/", "/pen/").replace("/embed/", "/pen/")))
        }
        _ => None,
    }
}

/// Shortens a text that is shown in a message.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= 100 { text } else { text.chars().take(100).collect::<String>() + "…" }
}
