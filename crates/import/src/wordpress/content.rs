//! The text of a WordPress post: blocks of its editor, or what the earlier editor left to be guessed.

use serde_json::Value;

use super::shortcodes::{self, Attachments};
use crate::html::{Targets, escape_text};

/// Makes plain HTML of a post's content. `reusable` returns the content of a block that several posts share.
pub(super) fn html(
    content: &str,
    attachments: &dyn Attachments,
    reusable: &dyn Fn(&str) -> Option<String>,
    targets: &dyn Targets,
) -> String {
    let content = shortcodes::replace(content, attachments, targets);
    if content.contains("<!-- wp:") { blocks(&content, reusable, targets, 0) } else { paragraphs(&content) }
}

/// Returns the text before `<!--more-->`, as plain text.
pub(super) fn before_more(content: &str) -> Option<String> {
    let at = content.find("<!--more")?;
    let (mut text, mut is_tag) = (String::new(), false);
    for c in content[..at].chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => {
                is_tag = false;
                text.push(' ');
            }
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let text = text
        .replace("&nbsp;", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#8217;", "’")
        .replace("&amp;", "&");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",").replace(" .", ".");
    (!text.is_empty()).then_some(text)
}

/// Removes the marks of blocks. What stands between blocks is of the earlier editor.
fn blocks(content: &str, reusable: &dyn Fn(&str) -> Option<String>, targets: &dyn Targets, depth: usize) -> String {
    let mut out = String::with_capacity(content.len());
    let (mut rest, mut open): (&str, Vec<&str>) = (content, Vec::new());
    loop {
        let next = rest.find("<!-- wp:").into_iter().chain(rest.find("<!-- /wp:")).min();
        let before = &rest[..next.unwrap_or(rest.len())];
        let is_classic = open.is_empty() || open == ["freeform"];
        if is_classic && !before.trim().is_empty() {
            out.push_str(&paragraphs(before))
        } else {
            out.push_str(before)
        }
        let Some(at) = next else { return out };
        rest = &rest[at..];
        let Some(end) = rest.find("-->") else { return out };
        let mark = rest[4..end].trim();
        rest = &rest[end + 3..];
        if let Some(name) = mark.strip_prefix("/wp:") {
            if name.trim() == "html" {
                out.push_str("<!--kg-card-end: html-->");
            }
            open.pop();
            continue;
        }
        let mark = mark.strip_prefix("wp:").unwrap_or(mark);
        let (mark, is_empty) = mark.strip_suffix('/').map_or((mark, false), |mark| (mark.trim_end(), true));
        let (name, attributes) = mark.split_once(' ').unwrap_or((mark, ""));
        let name = name.strip_prefix("core/").unwrap_or(name);
        if is_empty {
            out.push_str(&empty_block(name, attributes, reusable, targets, depth));
            continue;
        }
        if name == "html" {
            out.push_str("<!--kg-card-begin: html-->");
        }
        open.push(name);
    }
}

/// Returns what stands for a block of which only the settings are in the text.
fn empty_block(name: &str, attributes: &str, reusable: &dyn Fn(&str) -> Option<String>, targets: &dyn Targets, depth: usize) -> String {
    let attributes: Value = serde_json::from_str(attributes).unwrap_or_default();
    match name {
        "block" => {
            let id = attributes.get("ref").map(ToString::to_string).unwrap_or_default();
            match reusable(&id).filter(|_| depth < 4) {
                Some(content) => return blocks(&content, reusable, targets, depth + 1),
                None => targets.note(format!("shares a block with others that is not in the export: {id}")),
            }
        }
        "embed" | "core-embed/youtube" => {
            if let Some(url) = attributes.get("url").and_then(Value::as_str) {
                return format!(
                    "<figure class=\"wp-block-embed\"><div class=\"wp-block-embed__wrapper\">{}</div></figure>",
                    escape_text(url)
                );
            }
        }
        "spacer" | "separator" | "more" | "nextpage" => {}
        other => targets.note(format!("had the block `{other}`, whose content WordPress makes when it is asked for")),
    }
    String::new()
}

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 34] = [
    "table",
    "thead",
    "tfoot",
    "caption",
    "colgroup",
    "tbody",
    "tr",
    "td",
    "th",
    "div",
    "dl",
    "dd",
    "dt",
    "ul",
    "ol",
    "li",
    "pre",
    "form",
    "map",
    "blockquote",
    "address",
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "fieldset",
    "section",
    "article",
    "figure",
    "iframe",
];

/// Elements whose line ends mean something else, or nothing.
const WHOLE: [&str; 8] = ["pre", "script", "style", "textarea", "table", "figure", "svg", "iframe"];

/// Makes paragraphs of text with blank lines, as WordPress does when it shows a text of its earlier editor (`wpautop`).
pub(super) fn paragraphs(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut out, mut run, mut inside) = (String::new(), String::new(), 0_usize);
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        run.push_str(&rest[..at]);
        rest = &rest[at..];
        let whole = whole_length(rest);
        let Some(length) = whole.or_else(|| rest.find('>').map(|end| end + 1)) else { break };
        let (tag, after) = rest.split_at(length);
        rest = after;
        let name = name_of(tag);
        if whole.is_none() && !BLOCKS.contains(&name.as_str()) {
            run.push_str(tag);
            continue;
        }
        write_run(&std::mem::take(&mut run), inside > 0, &mut out);
        // Within a paragraph or a heading, line ends are breaks, and paragraphs would be wrong.
        if whole.is_none() && matches!(name.as_str(), "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" | "dt" | "caption") {
            inside = if tag.starts_with("</") { inside.saturating_sub(1) } else { inside + 1 };
        }
        out.push_str(tag);
    }
    run.push_str(rest);
    write_run(&run, inside > 0, &mut out);
    out
}

fn name_of(tag: &str) -> String {
    tag.trim_start_matches(['<', '/']).chars().take_while(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Writes text between blocks: as paragraphs, or with breaks where a paragraph is open already.
fn write_run(run: &str, is_inside: bool, out: &mut String) {
    if is_inside {
        return out.push_str(&run.trim_matches('\n').replace("<br />\n", "\n").replace("<br>\n", "\n").replace('\n', "<br>\n"));
    }
    let mut lines: Vec<&str> = Vec::new();
    for line in run.split('\n').chain([""]) {
        if line.trim().is_empty() {
            if !lines.is_empty() {
                out.push_str(&paragraph(lines.join("\n").trim()));
                lines.clear();
            }
        } else {
            lines.push(line);
        }
    }
}

fn paragraph(text: &str) -> String {
    if text.starts_with("http") && !text.contains(char::is_whitespace) && !text.contains('<') {
        return format!("<figure class=\"wp-block-embed\"><div class=\"wp-block-embed__wrapper\">{text}</div></figure>\n");
    }
    let is_comment = text.starts_with("<!--") && text.ends_with("-->") && text.matches("<!--").count() == 1;
    if is_comment {
        return format!("{text}\n");
    }
    // A break that was written stands before the end of its line.
    let lines =
        text.lines().map(str::trim_end).map(|line| line.trim_end_matches("<br>").trim_end_matches("<br />").trim_end_matches("<br/>"));
    format!("<p>{}</p>\n", lines.collect::<Vec<_>>().join("<br>\n"))
}

/// Returns the length of an element at the beginning that is taken as a whole.
fn whole_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let name = name_of(inner);
    if !WHOLE.contains(&name.as_str()) {
        return None;
    }
    let (mut depth, mut at) = (0_usize, 0);
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    loop {
        let rest = &text[at..];
        let (next_open, next_close) = (rest.find(&open), rest.find(&close)?);
        if next_open.is_some_and(|open| open < next_close) {
            depth += 1;
            at += next_open? + open.len();
        } else {
            depth = depth.checked_sub(1)?;
            at += next_close + close.len();
        }
        if depth == 0 {
            return Some(at);
        }
    }
}
