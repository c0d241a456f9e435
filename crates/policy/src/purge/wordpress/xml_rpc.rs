//! The calls of XML-RPC, and what its answers say of them. Anybody can write a text that looks like a call: what counts stands at its place.

use std::borrow::Cow;

use super::WriteEffect;

/// The deepest nesting that is read; what is deeper is not a call.
const DEPTH_MAX: usize = 64;

/// The calls in the content of a request, as far as it is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    names: Vec<String>,
    are_several: bool,
}

impl Calls {
    /// Reads the calls in the content of a request.
    pub(super) fn of(content: &[u8]) -> Self {
        let tree = Tree::of(content);
        let Some(call) = tree.root("methodCall") else { return Self::default() };
        let name = tree.children(call, "methodName").last().map(|name| tree.text(name)).unwrap_or_default();
        if name != "system.multicall" {
            return Self { names: vec![name], are_several: false };
        }
        let name_of = |value: usize| {
            let mut members = tree.down(value, &["struct", "member"]).into_iter();
            let is_name = |&member: &usize| tree.children(member, "name").any(|name| tree.text(name) == "methodName");
            let value = members.rfind(is_name).and_then(|member| tree.children(member, "value").last());
            value.map(|value| tree.text(value)).unwrap_or_default()
        };
        let values = tree.down(call, &["params", "param", "value", "array", "data", "value"]);
        Self { names: values.into_iter().map(name_of).collect(), are_several: true }
    }

    /// Returns whether one of the calls writes.
    pub(super) fn write(&self) -> bool {
        self.names.iter().any(|name| accepted(name) != WriteEffect::Nothing)
    }

    /// Finds out by the answer what the calls came to. The answer to several calls has one value for each, in their order: a list of one value for a
    /// success, a structure for a fault.
    pub(super) fn accepted(&self, answer: &[u8]) -> WriteEffect {
        let tree = Tree::of(answer);
        let Some(answer) = tree.root("methodResponse") else { return WriteEffect::Nothing };
        let Some(params) = tree.children(answer, "params").next() else { return WriteEffect::Nothing };
        if tree.children(answer, "fault").next().is_some() {
            return WriteEffect::Nothing;
        }
        let succeeded: Vec<bool> = if self.are_several {
            let values = tree.down(params, &["param", "value", "array", "data", "value"]).into_iter();
            values.map(|value| tree.children(value, "array").next().is_some()).collect()
        } else {
            vec![true]
        };
        let done = || self.names.iter().zip(&succeeded).filter(|(_, succeeded)| **succeeded).map(|(name, _)| accepted(name));
        if done().any(|accepted| accepted == WriteEffect::Everything) {
            WriteEffect::Everything
        } else if done().any(|accepted| accepted == WriteEffect::Perhaps) {
            WriteEffect::Perhaps
        } else {
            WriteEffect::Nothing
        }
    }
}

/// Returns what a call of this name comes to if it succeeds.
fn accepted(name: &str) -> WriteEffect {
    let verb = name.rsplit('.').next().unwrap_or_default();
    if matches!(verb, "editProfile" | "newComment") {
        // Every user of the site can do that.
        return WriteEffect::Perhaps;
    }
    let writes = ["new", "edit", "delete", "set", "publish", "upload", "restore"].iter().any(|beginning| verb.starts_with(beginning));
    if writes { WriteEffect::Everything } else { WriteEffect::Nothing }
}

/// The elements of a document, which may be cut off, and what is within each.
#[derive(Debug, Default)]
struct Tree(Vec<Element>);

#[derive(Debug)]
struct Element {
    name: String,
    text: String,
    within: Vec<usize>,
}

impl Tree {
    fn of(content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content);
        let mut rest = text.as_ref();
        let (mut tree, mut open) = (Self::default(), Vec::new());
        while !rest.is_empty() {
            let Some((before, markup)) = rest.split_once('<') else { break };
            tree.say(&open, &unescaped(before));
            let after = |markup: &str, end: &str| markup.find(end).map(|at| at + end.len());
            let skipped = if let Some(data) = markup.strip_prefix("![CDATA[") {
                let (data, _) = data.split_once("]]>").unwrap_or((data, ""));
                tree.say(&open, data);
                after(markup, "]]>")
            } else if let Some(comment) = markup.strip_prefix("!--") {
                after(comment, "-->").map(|at| at + "!--".len())
            } else if markup.starts_with('?') {
                after(markup, "?>")
            } else {
                let end = end_of_tag(markup);
                if let Some(end) = end {
                    tree.mark(&mut open, &markup[..end]);
                }
                end.map(|end| end + 1)
            };
            let Some(skipped) = skipped else { break };
            rest = &markup[skipped..];
        }
        tree
    }

    /// Adds text to the element that is open.
    fn say(&mut self, open: &[usize], text: &str) {
        if let Some(&at) = open.last() {
            self.0[at].text.push_str(text);
        }
    }

    /// Reads a tag.
    fn mark(&mut self, open: &mut Vec<usize>, tag: &str) {
        let name = |tag: &str| tag.split(|c: char| c.is_ascii_whitespace() || c == '/').next().unwrap_or_default().to_owned();
        if let Some(closed) = tag.strip_prefix('/') {
            if open.last().is_some_and(|&at| self.0[at].name == name(closed)) {
                open.pop();
            }
        } else if !tag.starts_with('!') && open.len() < DEPTH_MAX {
            let at = self.0.len();
            if let Some(&of) = open.last() {
                self.0[of].within.push(at);
            }
            self.0.push(Element { name: name(tag), text: String::new(), within: Vec::new() });
            if !tag.ends_with('/') {
                open.push(at);
            }
        }
    }

    fn root(&self, name: &str) -> Option<usize> {
        self.0.first().filter(|first| first.name == name).map(|_| 0)
    }

    fn children<'a>(&'a self, of: usize, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.0[of].within.iter().copied().filter(move |&at| self.0[at].name == name)
    }

    /// Returns the elements that are reached by these names, one below the other.
    fn down(&self, of: usize, names: &[&str]) -> Vec<usize> {
        names.iter().fold(vec![of], |reached, name| reached.into_iter().flat_map(|at| self.children(at, name)).collect())
    }

    /// Returns the text of an element, or that of the only element in it: a value may say its type.
    fn text(&self, of: usize) -> String {
        let own = self.0[of].text.trim();
        let typed = self.0[of].within.first().filter(|_| own.is_empty());
        typed.map_or(own, |&typed| self.0[typed].text.trim()).to_owned()
    }
}

/// Returns where a tag ends: attributes may have its sign within quotes.
fn end_of_tag(markup: &str) -> Option<usize> {
    let mut quote = None;
    markup.bytes().position(|byte| {
        match quote {
            Some(open) if open == byte => quote = None,
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            Some(_) | None => {}
        }
        quote.is_none() && byte == b'>'
    })
}

/// Returns a text without its references to characters.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let known = piece.split_once(';').and_then(|(name, rest)| Some((character(name)?, rest)));
        let rest = known.map_or(piece, |(_, rest)| rest);
        plain.push(known.map_or('&', |(character, _)| character));
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}

fn character(name: &str) -> Option<char> {
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        name => name.strip_prefix("#x").map_or_else(|| number(name.strip_prefix('#')?, 10), |digits| number(digits, 16)),
    }
}
