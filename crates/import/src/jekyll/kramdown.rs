//! Takes out what kramdown adds to Markdown, and the blog does not know: attributes, extensions, and the place of the table of contents.

use crate::markdown::fenced_lines;

/// The classes of boxes in themes that many blogs have (Chirpy's `prompt-tip`, Minimal Mistakes' `notice--warning`), and the alert that each becomes.
const BOXES: [(&str, &str); 11] = [
    ("prompt-tip", "TIP"),
    ("prompt-info", "NOTE"),
    ("prompt-warning", "WARNING"),
    ("prompt-danger", "CAUTION"),
    ("notice", "NOTE"),
    ("notice--primary", "NOTE"),
    ("notice--info", "NOTE"),
    ("notice--success", "TIP"),
    ("notice--warning", "WARNING"),
    ("notice--danger", "CAUTION"),
    ("notice--important", "IMPORTANT"),
];

/// A text without kramdown's own marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) text: String,
    /// The number of attributes that are gone, such as `{: .lead}`.
    pub(super) attributes: usize,
}

/// Removes attributes but for the ids of headings and the classes of boxes, and what stands in comments. The mark for a table of contents becomes `[TOC]`.
pub(super) fn without_marks(text: &str) -> Plain {
    if !text.contains("{:") {
        return Plain { text: text.to_owned(), attributes: 0 };
    }
    let is_code = fenced_lines(text);
    let (mut lines, mut attributes): (Vec<String>, usize) = (Vec::new(), 0);
    let (mut is_comment, mut is_toc) = (false, false);
    for (at, line) in text.split('\n').enumerate() {
        let trimmed = line.trim();
        let is_mark = trimmed.starts_with("{:") && trimmed.ends_with('}') && trimmed.matches('}').count() == 1;
        if is_comment {
            is_comment = !matches!(trimmed, "{:/comment}" | "{:/}");
        } else if is_code[at] || line.starts_with("    ") {
            lines.push(line.to_owned());
        } else if is_toc && is_of_list(line) {
            // The list is only the place of the table.
        } else if !is_mark {
            is_toc = false;
            lines.push(without_attributes(line, &mut attributes));
        } else if trimmed.starts_with("{::comment") {
            is_comment = !trimmed.ends_with("/}");
        } else if trimmed.starts_with("{::") || trimmed.starts_with("{:/") {
            // Options, and where Markdown ends and begins.
        } else if words(trimmed).any(|word| word == "toc") {
            is_toc = lines.last().is_none_or(|line| !is_of_list(line));
            while lines.last().is_some_and(|line| is_of_list(line)) {
                lines.pop();
            }
            lines.extend(["", "[TOC]", ""].map(str::to_owned));
        } else if let (Some(id), Some(heading)) = (id_of(trimmed), lines.last_mut().filter(|line| line.starts_with('#'))) {
            heading.push_str(&format!(" {{#{id}}}"));
        } else if let Some(kind) = box_of(trimmed).filter(|_| !is_code[at.saturating_sub(1)]) {
            attributes += usize::from(!make_alert(&mut lines, kind));
        } else {
            attributes += 1;
        }
    }
    Plain { text: lines.join("\n"), attributes }
}

/// Tells whether a line is an item of a list, or goes on with one.
fn is_of_list(line: &str) -> bool {
    let item = line.trim_start();
    let number = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < item.len() && number.starts_with(". ");
    is_numbered || item.starts_with(['*', '-', '+']) && item[1..].starts_with(' ') || line.starts_with("  ") && !item.is_empty()
}

/// Splits attributes.
fn words(attributes: &str) -> impl Iterator<Item = &str> {
    attributes.trim_matches(['{', '}', ':', ' ']).split_whitespace()
}

/// Returns the alert that stands for the box among attributes.
fn box_of(attributes: &str) -> Option<&'static str> {
    let classes = || words(attributes).flat_map(|word| word.split('.'));
    BOXES.iter().find(|(class, _)| classes().any(|word| word == *class)).map(|(_, kind)| *kind)
}

/// Makes an alert of the quotation or paragraph with which `lines` end. Returns whether there is one.
fn make_alert(lines: &mut Vec<String>, kind: &str) -> bool {
    let begin = lines.iter().rposition(|line| line.trim().is_empty()).map_or(0, |at| at + 1);
    let is_quote = lines.get(begin).is_some_and(|line| line.starts_with('>'));
    let is_alert = lines.get(begin).is_some_and(|line| line.starts_with("> [!"));
    let is_other = |line: &String| line.starts_with(['#', '|', '<', ' ', '\t', '`', '~']) || is_of_list(line);
    if begin == lines.len() || is_alert || !is_quote && lines[begin..].iter().any(is_other) {
        return false;
    }
    if !is_quote {
        lines[begin..].iter_mut().for_each(|line| line.insert_str(0, "> "));
    }
    lines.insert(begin, format!("> [!{kind}]"));
    true
}

/// Returns the id among attributes.
fn id_of(attributes: &str) -> Option<&str> {
    words(attributes).find_map(|word| word.strip_prefix('#')).filter(|id| !id.is_empty())
}

fn without_attributes(line: &str, attributes: &mut usize) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find("{:") {
        let is_comment = rest[at..].starts_with("{::comment}");
        let follows_mark = rest[..at].ends_with([')', '*', '_', '`', ']', '>']);
        let is_text = (out.matches('`').count() + rest[..at].matches('`').count()) % 2 == 0;
        let end = if is_comment {
            rest[at..].find("{:/").and_then(|close| Some(close + rest[at + close..].find('}')?))
        } else {
            rest[at..].find('}')
        };
        match end.filter(|_| is_text && (follows_mark || is_comment)) {
            Some(end) => {
                *attributes += usize::from(!is_comment);
                out.push_str(&rest[..at]);
                rest = &rest[at + end + 1..];
            }
            None => {
                out.push_str(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// kramdown's documentation, "Syntax": "Attribute List Definitions", "Extensions", and "Automatic Table of Contents".
    #[test]
    fn marks_are_gone_and_counted() {
        let cases = [
            ("* TOC\n{:toc}\n\n## A\n", "\n[TOC]\n\n\n## A\n", 0),
            ("## Contents\n1. this is replaced\n2. so is this\n{: toc .big}\n", "## Contents\n\n[TOC]\n\n", 0),
            ("{:toc}\n- TOC\n\ntext\n", "\n[TOC]\n\n\ntext\n", 0),
            ("## A\n{: .no_toc}\n", "## A\n", 1),
            ("## A\n{: #own .x}\n", "## A {#own}\n", 0),
            ("Text\n{: .lead #id}\n![a](b){: .big} and *c*{:.d}\n", "Text\n![a](b) and *c*\n", 3),
            ("> Mind it\n> well\n{: .prompt-warning }\n", "> [!WARNING]\n> Mind it\n> well\n", 0),
            ("Text\n\nMind it\nwell\n{: .notice--info}\n", "Text\n\n> [!NOTE]\n> Mind it\n> well\n", 0),
            ("> Mind it\n{: .big.prompt-tip #id}\n", "> [!TIP]\n> Mind it\n", 0),
            ("- one\n{: .notice}\n\n{: .notice}\n", "- one\n\n", 2),
            ("`{: .x}` and `a`{: .b} {: not}\n", "`{: .x}` and `a` {: not}\n", 1),
            ("```\n{: .x}\n* TOC\n{:toc}\n```\n\n    {: .y}\n", "```\n{: .x}\n* TOC\n{:toc}\n```\n\n    {: .y}\n", 0),
            ("a\n{::comment}\nnot for readers\n{:/comment}\nb {::comment}nor this{:/} c\n", "a\nb  c\n", 0),
            ("{::options parse_block_html=\"true\" /}\n{::nomarkdown}\n<b>x</b>\n{:/nomarkdown}\n", "<b>x</b>\n", 0),
        ];
        for (text, expected, attributes) in cases {
            assert_eq!(without_marks(text), Plain { text: expected.to_owned(), attributes }, "{text}");
        }
    }
}
