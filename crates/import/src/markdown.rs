//! Markdown of other engines: what it links to becomes what the blog has.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};

use crate::html::{Targets, destination};

/// Rewrites the addresses in a Markdown text.
pub(crate) fn rewrite(body: &str, targets: &dyn Targets) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let parser = Parser::new_ext(body, options);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut pictures: Vec<String> = Vec::new();
    let definitions: Vec<(String, Range<usize>)> =
        parser.reference_definitions().iter().map(|(_, definition)| (definition.dest.to_string(), definition.span.clone())).collect();
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }) => {
                edit(body, &range, "](", &dest_url, &targets.link(&dest_url), &mut edits);
            }
            Event::Start(Tag::Image { link_type: LinkType::Inline, dest_url, .. }) => {
                edit(body, &range, "](", &dest_url, &targets.picture(&dest_url), &mut edits);
            }
            Event::Start(Tag::Image { dest_url, .. }) => pictures.push(dest_url.to_string()),
            Event::Html(_) | Event::InlineHtml(_) => attributes(body, range, targets, &mut edits),
            _ => {}
        }
    }
    for (address, span) in definitions {
        let new = if pictures.contains(&address) { targets.picture(&address) } else { targets.link(&address) };
        edit(body, &span, "]:", &address, &new, &mut edits);
    }
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::with_capacity(body.len()), 0);
    for (range, new) in edits {
        if range.start < at {
            continue;
        }
        out.push_str(&body[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&body[at..]);
    out
}

/// Notes that the address after the last `mark` in a range becomes another one.
fn edit(body: &str, range: &Range<usize>, mark: &str, old: &str, new: &str, edits: &mut Vec<(Range<usize>, String)>) {
    if old == new || old.is_empty() {
        return;
    }
    let source = &body[range.clone()];
    let Some(found) = (if mark == "](" { source.rfind(mark) } else { source.find(mark) }) else { return };
    let after = found + mark.len();
    let begin = after + source[after..].len() - source[after..].trim_start().len();
    let is_angled = source[begin..].starts_with('<');
    let start = begin + usize::from(is_angled);
    if source[start..].starts_with(old) {
        let end = start + old.len();
        let (start, end) = if is_angled && source[end..].starts_with('>') { (begin, end + 1) } else { (start, end) };
        edits.push((range.start + start..range.start + end, destination(new)));
    }
}

/// Notes the new addresses of the attributes in a piece of HTML.
fn attributes(body: &str, range: Range<usize>, targets: &dyn Targets, edits: &mut Vec<(Range<usize>, String)>) {
    let html = &body[range.clone()];
    for name in ["src", "href", "poster"] {
        for quote in ['"', '\''] {
            let mark = format!("{name}={quote}");
            let mut at = 0;
            while let Some(found) = html[at..].find(&mark) {
                let start = at + found + mark.len();
                let Some(length) = html[start..].find(quote) else { break };
                at = start + length;
                let is_whole = html[..start - mark.len()].ends_with(|c: char| c.is_whitespace());
                let old = html[start..at].replace("&amp;", "&");
                let new = targets.address(&old);
                if is_whole && new != old {
                    edits.push((range.start + start..range.start + at, crate::html::escape(&new)));
                }
            }
        }
    }
}

/// Tells whether each line of a text is in a block of code between fences.
pub(crate) fn fenced_lines(body: &str) -> Vec<bool> {
    let mut open: Option<(char, usize)> = None;
    body.split('\n')
        .map(|line| {
            let trimmed = line.trim_start();
            let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'));
            let length = mark.map_or(0, |mark| trimmed.chars().take_while(|c| *c == mark).count());
            match (open, mark) {
                (None, Some(mark)) if length >= 3 => {
                    open = Some((mark, length));
                    true
                }
                (Some((fence, least)), Some(mark)) if mark == fence && length >= least && trimmed.trim_end().chars().all(|c| c == mark) => {
                    open = None;
                    true
                }
                (state, _) => state.is_some(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Marked;

    impl Targets for Marked {
        fn link(&self, url: &str) -> String {
            if url.starts_with("http") { url.to_owned() } else { format!("L{url}") }
        }
        fn picture(&self, url: &str) -> String {
            format!("P{url}")
        }
        fn address(&self, url: &str) -> String {
            format!("A{url}")
        }
        fn note(&self, _: String) {}
    }

    #[test]
    fn addresses_are_rewritten_where_they_are_addresses() {
        let cases = [
            ("[a](b) ![c](d \"t\")", "[a](Lb) ![c](Pd \"t\")"),
            ("[![a](b)](c)", "[![a](Pb)](Lc)"),
            ("[a](<b c>)", "[a](Lb%20c)"),
            ("[a][r] ![x][i]\n\n[r]: /b\n[i]: y.png 'T'\n", "[a][r] ![x][i]\n\n[r]: L/b\n[i]: Py.png 'T'\n"),
            ("`[a](b)`\n\n    [a](b)\n\n```\n[a](b)\n```\n", "`[a](b)`\n\n    [a](b)\n\n```\n[a](b)\n```\n"),
            ("x <img alt=\"\" src=\"y.png\"> z", "x <img alt=\"\" src=\"Ay.png\"> z"),
            ("[a](http://x.test/) <http://y.test/>", "[a](http://x.test/) <http://y.test/>"),
        ];
        for (text, expected) in cases {
            assert_eq!(rewrite(text, &Marked), expected, "{text}");
        }
    }
}
