//! HTML that stays HTML: what has no form in Markdown.

use std::fmt::Write as _;

use markup5ever_rcdom::{Handle, NodeData};

use super::{
    Targets,
    dom::{VOID, tag},
};

/// Attributes that hold an address.
const ADDRESSES: [&str; 5] = ["src", "href", "poster", "action", "data"];

/// Writes a node as HTML, with the addresses in it as they are now.
pub(super) fn raw(node: &Handle, targets: &dyn Targets) -> String {
    let mut html = String::new();
    write(node, targets, &mut html);
    html
}

/// Writes a node as a block of HTML. A blank line would end the block (CommonMark §4.6), so there is none in it.
pub(super) fn raw_block(node: &Handle, targets: &dyn Targets) -> String {
    let html = without_blank_lines(&raw(node, targets));
    // Only the elements of CommonMark's list begin a block in any case.
    let begins =
        ["address", "article", "aside", "blockquote", "center", "details", "dialog", "div", "dl", "fieldset", "figure", "footer", "form"];
    let more =
        ["header", "iframe", "main", "nav", "ol", "section", "table", "ul", "pre", "script", "style", "h1", "h2", "h3", "h4", "h5", "h6"];
    if begins.contains(&tag(node)) || more.contains(&tag(node)) { html } else { format!("<div>\n{html}\n</div>") }
}

pub(super) fn without_blank_lines(html: &str) -> String {
    // Where blank lines can be seen, a written one takes the place of each.
    let is_seen = html.contains("<pre") || html.contains("<textarea");
    let lines = html.trim().lines().filter(|line| is_seen || !line.trim().is_empty());
    lines.map(|line| if line.trim().is_empty() { "&#10;" } else { line }).collect::<Vec<_>>().join("\n")
}

/// Writes the start tag of an element.
pub(super) fn start_tag(node: &Handle, targets: &dyn Targets) -> String {
    let NodeData::Element { name, attrs, .. } = &node.data else { return String::new() };
    let mut html = format!("<{}", name.local);
    for attribute in attrs.borrow().iter() {
        let key = &*attribute.name.local;
        if key.chars().any(|c| c.is_whitespace() || "<>\"'/=".contains(c)) {
            continue;
        }
        let value = if ADDRESSES.contains(&key) { targets.address(&attribute.value) } else { attribute.value.to_string() };
        let value = if key == "srcset" { source_set(&value, targets) } else { value };
        let _ = if value.is_empty() { write!(html, " {key}") } else { write!(html, " {key}=\"{}\"", escape(&value).replace('\n', " ")) };
    }
    html + ">"
}

fn source_set(value: &str, targets: &dyn Targets) -> String {
    let one = |source: &str| match source.trim().split_once(' ') {
        Some((url, width)) => format!("{} {width}", targets.address(url)),
        None => targets.address(source.trim()),
    };
    value.split(", ").map(one).collect::<Vec<_>>().join(", ")
}

fn write(node: &Handle, targets: &dyn Targets, html: &mut String) {
    match &node.data {
        NodeData::Text { contents } => html.push_str(&escape_text(&contents.borrow())),
        NodeData::Element { name, .. } => {
            html.push_str(&start_tag(node, targets));
            if VOID.contains(&&*name.local) {
                return;
            }
            let is_text = matches!(&*name.local, "script" | "style" | "iframe" | "noscript" | "xmp" | "noembed" | "noframes");
            for child in node.children.borrow().iter() {
                match &child.data {
                    NodeData::Text { contents } if is_text => html.push_str(&contents.borrow()),
                    _ => write(child, targets, html),
                }
            }
            let _ = write!(html, "</{}>", name.local);
        }
        NodeData::Document | NodeData::Doctype { .. } | NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. } => {}
    }
}

/// Escapes a text for an attribute.
pub(crate) fn escape(text: &str) -> String {
    escape_text(text).replace('"', "&quot;")
}

/// Escapes a text between tags.
pub(crate) fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
