//! The table of contents of a text: its headings as lists within lists.

use std::fmt::Write as _;

use super::survey::Section;
use crate::{escape::escape, slug, words::Words};

/// Writes the table; nothing for a text without headings.
pub(super) fn html(sections: &[Section], words: &Words) -> String {
    let mut sections = sections.iter().filter(|section| section.is_top);
    let Some(first) = sections.next() else { return String::new() };
    let title = escape(words.contents);
    let mut out = format!("<nav class=\"toc\" aria-label=\"{title}\">\n<p>{title}</p>\n<ul>\n");
    let mut levels = vec![first.level];
    entry(&mut out, first);
    for section in sections {
        while levels.len() > 1 && levels.last().is_some_and(|&level| level > section.level) {
            out.push_str("</li>\n</ul>\n");
            levels.pop();
        }
        match levels.last_mut() {
            Some(level) if *level >= section.level => {
                *level = section.level;
                out.push_str("</li>\n");
            }
            _ => {
                out.push_str("\n<ul>\n");
                levels.push(section.level);
            }
        }
        entry(&mut out, section);
    }
    out.push_str(&"</li>\n</ul>\n".repeat(levels.len()));
    out.push_str("</nav>\n");
    out
}

fn entry(out: &mut String, section: &Section) {
    let _ = write!(out, "<li><a href=\"#{}\">{}</a>", escape(&slug::encode_path(&section.id)), escape(&section.text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(levels: &[u8]) -> String {
        let section = |&level: &u8| Section { level, id: format!("s{level}"), text: level.to_string(), is_top: true };
        let sections: Vec<_> = levels.iter().map(section).collect();
        let html = html(&sections, Words::of("en"));
        assert!(html.is_empty() || roxmltree::Document::parse(&html).is_ok(), "{html}");
        let mut tree = String::new();
        for part in html.split_inclusive('>') {
            match part.trim() {
                "<ul>" => tree.push('('),
                "</ul>" => tree.push(')'),
                part => tree.extend(part.strip_suffix("</a>").and_then(|text| text.chars().next())),
            }
        }
        tree
    }

    #[test]
    fn lists_lie_in_each_other_as_the_headings_do() {
        let cases: [(&[u8], &str); 7] = [
            (&[], ""),
            (&[2], "(2)"),
            (&[2, 3, 3, 2], "(2(33)2)"),
            (&[2, 4, 3, 2], "(2(4)(3)2)"),
            (&[4, 2, 3], "(42(3))"),
            (&[3, 2, 4, 5, 6, 2], "(32(4(5(6)))2)"),
            (&[2, 2], "(22)"),
        ];
        for (levels, expected) in cases {
            assert_eq!(tree(levels), expected, "{levels:?}");
        }
    }
}
