//! The tree of an HTML fragment, and questions about its elements.

use html5ever::{ParseOpts, QualName, driver::parse_fragment, local_name, ns, tendril::TendrilSink as _};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// The depth to which elements may be nested. Texts that people write stay far below; writing recurses, and so needs a bound.
const DEPTH_MAX: usize = 100;

/// Elements that are never closed.
pub(super) const VOID: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// Elements whose end is implied by what follows them: unclosed ones are ordinary, and do not nest.
const IMPLIED: [&str; 13] = ["p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "colgroup", "rt"];

/// A parsed fragment.
pub(super) struct Fragment {
    pub(super) root: Handle,
    /// A document that is dropped takes its elements apart, whoever holds them.
    _document: Handle,
}

/// Parses a fragment. Returns `None` if its elements are nested too deeply.
pub(super) fn parse(html: &str) -> Option<Fragment> {
    // The parser looks through all open elements at each tag, so that depth costs time with its square: the bound comes before it.
    if nesting(html) > 4 * DEPTH_MAX {
        return None;
    }
    let body = QualName::new(None, ns!(html), local_name!("body"));
    let dom = parse_fragment(RcDom::default(), ParseOpts::default(), body, Vec::new(), false).one(html);
    let root = dom.document.children.borrow().first().cloned()?;
    (depth(&root) <= DEPTH_MAX).then_some(Fragment { root, _document: dom.document })
}

/// Returns how deeply tags are nested in the text, seen without a parser.
fn nesting(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for part in html.split('<').skip(1) {
        if let Some(closed) = part.strip_prefix('/') {
            let name = name_of(closed);
            if !name.is_empty() && !IMPLIED.contains(&name.as_str()) {
                depth = depth.saturating_sub(1);
            }
            continue;
        }
        let name = name_of(part);
        if name.is_empty() || VOID.contains(&name.as_str()) || IMPLIED.contains(&name.as_str()) {
            continue;
        }
        let is_closed_at_once = part.split_once('>').is_some_and(|(tag, _)| tag.ends_with('/'));
        if !is_closed_at_once {
            depth += 1;
            deepest = deepest.max(depth);
        }
    }
    deepest
}

fn name_of(tag: &str) -> String {
    let end = tag.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tag.len());
    tag[..end].to_ascii_lowercase()
}

fn depth(root: &Handle) -> usize {
    let (mut deepest, mut open) = (0, vec![(root.clone(), 1)]);
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
    deepest
}

/// Returns the name of an element; an empty one for all other nodes.
pub(super) fn tag(node: &Handle) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

/// Returns the value of an attribute.
pub(super) fn attribute(node: &Handle, wanted: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|attribute| &*attribute.name.local == wanted).map(|attribute| attribute.value.to_string())
}

/// Tells whether an element has a class.
pub(super) fn has_class(node: &Handle, class: &str) -> bool {
    attribute(node, "class").is_some_and(|classes| classes.split_whitespace().any(|other| other == class))
}

pub(super) fn children(node: &Handle) -> Vec<Handle> {
    node.children.borrow().clone()
}

/// Returns the text of a node and everything in it.
pub(super) fn text(node: &Handle) -> String {
    let mut text = String::new();
    let mut open = vec![node.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        } else if tag(&node) == "br" {
            text.push('\n');
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    text
}

/// Returns every element below `root` for which `is_wanted` holds, in the order of the text.
pub(super) fn all(root: &Handle, is_wanted: impl Fn(&Handle) -> bool) -> Vec<Handle> {
    let (mut found, mut open) = (Vec::new(), vec![root.clone()]);
    while let Some(node) = open.pop() {
        open.extend(node.children.borrow().iter().rev().cloned());
        if is_wanted(&node) {
            found.push(node);
        }
    }
    found
}

pub(super) fn first(root: &Handle, is_wanted: impl Fn(&Handle) -> bool) -> Option<Handle> {
    all(root, is_wanted).into_iter().next()
}

/// Tells whether a node is white space between others, or a comment.
pub(super) fn is_blank(node: &Handle) -> bool {
    match &node.data {
        NodeData::Text { contents } => contents.borrow().trim_matches([' ', '\t', '\n', '\r']).is_empty(),
        NodeData::Comment { .. } => true,
        _ => false,
    }
}

const BLOCKS: [&str; 45] = [
    "address",
    "article",
    "aside",
    "audio",
    "blockquote",
    "canvas",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "iframe",
    "li",
    "main",
    "menu",
    "nav",
    "noscript",
    "object",
    "ol",
    "p",
    "pre",
    "script",
    "section",
    "style",
    "table",
    "template",
    "ul",
    "video",
    "svg",
];

/// Tells whether an element stands on lines of its own.
pub(super) fn is_block(node: &Handle) -> bool {
    BLOCKS.contains(&tag(node))
}

/// Tells whether an element is or holds one that stands on lines of its own.
pub(super) fn holds_block(node: &Handle) -> bool {
    first(node, is_block).is_some()
}
