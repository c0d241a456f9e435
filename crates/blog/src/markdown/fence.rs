//! Reads what stands behind the three backticks of a code block: language, title, line numbers, marked lines.
//!
//! Other engines have their own ways to say it, and texts come from all of them: `{3,5-7}` and `showLineNumbers` (Docusaurus, Astro),
//! `{linenos=true,hl_lines=[8,"15-17"]}` (Hugo), `linenos,hl_lines=3-5 8` (Zola), `{.rust .numberLines}` (Pandoc).

use std::ops::RangeInclusive;

/// The largest number of ranges of marked lines. Further ones are ignored.
const MARKS_MAX: usize = 200;

/// The options of a code block.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    /// The language as the author wrote it; may be empty.
    pub(super) language: String,
    pub(super) title: Option<String>,
    /// The number of the first line, if lines are numbered.
    pub(super) first_line: Option<usize>,
    /// The marked lines, counted from 1 whatever [`Fence::first_line`] is.
    pub(super) marks: Vec<RangeInclusive<usize>>,
}

impl Fence {
    pub(super) fn parse(info: &str) -> Self {
        let info = info.trim();
        let end = info.find(|c: char| c.is_whitespace() || matches!(c, ',' | '{')).unwrap_or(info.len());
        let mut fence = Self { language: info[..end].to_owned(), ..Self::default() };
        fence.options(&info[end..]);
        fence
    }

    pub(super) fn is_marked(&self, line: usize) -> bool {
        self.marks.iter().any(|range| range.contains(&line))
    }

    /// Reads `name`, `name=value` and `{…}`, with spaces or commas between them. What nobody knows is for other programs.
    fn options(&mut self, text: &str) {
        let mut rest = text;
        let mut is_after_marks = false;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}'));
            if rest.is_empty() {
                return;
            }
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | '=')).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let Some(after) = after.strip_prefix('=') else {
                rest = after;
                let in_braces = text[..text.len() - after.len() - name.len()].ends_with('{') || is_after_marks;
                if in_braces && self.mark(name) {
                    is_after_marks = true;
                } else {
                    is_after_marks = false;
                    self.word(name);
                }
                continue;
            };
            let (value, after) = value(after);
            rest = after;
            is_after_marks = matches!(name, "hl_lines" | "mark" | "highlight");
            self.option(name, value);
        }
    }

    fn word(&mut self, word: &str) {
        match word {
            "linenos" | "lineNos" | "lineno" | "numbered" | "showLineNumbers" | ".numberLines" | ".number-lines" => {
                self.first_line.get_or_insert(1);
            }
            _ => {
                if let Some(class) = word.strip_prefix('.').filter(|_| self.language.is_empty()) {
                    class.clone_into(&mut self.language);
                }
            }
        }
    }

    fn option(&mut self, name: &str, value: &str) {
        match name {
            "title" | "name" | "caption" | "filename" => self.title = Some(value.to_owned()).filter(|title| !title.is_empty()),
            "linenos" | "lineNos" | "lineno" | "showLineNumbers" => {
                if value.eq_ignore_ascii_case("false") {
                    self.first_line = None;
                } else {
                    self.first_line = self.first_line.or_else(|| value.parse().ok()).or(Some(1));
                }
            }
            "linenostart" | "lineNoStart" | "startFrom" => self.first_line = value.parse().ok().or(self.first_line),
            "hl_lines" | "mark" | "highlight" => {
                for part in value.split(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '[' | ']' | '{' | '}')) {
                    self.mark(part);
                }
            }
            _ => {}
        }
    }

    /// Reads `3` or `5-7`. Returns whether it is such a range.
    fn mark(&mut self, part: &str) -> bool {
        let (first, last) = part.split_once(['-', ':']).unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse(), last.parse()) else { return false };
        if self.marks.len() < MARKS_MAX {
            self.marks.push(first..=last);
        }
        true
    }
}

/// Splits a value off, which may stand in quotes or brackets.
fn value(text: &str) -> (&str, &str) {
    let close = match text.chars().next() {
        Some('"') => Some('"'),
        Some('\'') => Some('\''),
        Some('[') => Some(']'),
        Some('{') => Some('}'),
        _ => None,
    };
    if let Some(parts) = close.and_then(|close| text[1..].split_once(close)) {
        return parts;
    }
    text.split_at(text.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}')).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_all_engines_are_understood() {
        let fence = |language: &str, title: Option<&str>, first_line: Option<usize>, marks: &[RangeInclusive<usize>]| Fence {
            language: language.to_owned(),
            title: title.map(str::to_owned),
            first_line,
            marks: marks.to_vec(),
        };
        let cases = [
            ("", fence("", None, None, &[])),
            ("rust", fence("rust", None, None, &[])),
            ("  c++  ", fence("c++", None, None, &[])),
            ("toml title=\"a b, c.toml\"", fence("toml", Some("a b, c.toml"), None, &[])),
            ("toml title='x'", fence("toml", Some("x"), None, &[])),
            ("toml title=x.toml linenos", fence("toml", Some("x.toml"), Some(1), &[])),
            ("js {1,4-6} title=\"x\" showLineNumbers", fence("js", Some("x"), Some(1), &[1..=1, 4..=6])),
            ("js{3}", fence("js", None, None, &[3..=3])),
            ("go {linenos=true,hl_lines=[8,\"15-17\"],linenostart=199}", fence("go", None, Some(199), &[8..=8, 15..=17])),
            ("go {linenos=false}", fence("go", None, None, &[])),
            ("go {linenos=table}", fence("go", None, Some(1), &[])),
            ("rust,linenos,hl_lines=3-5 8,name=main.rs", fence("rust", Some("main.rs"), Some(1), &[3..=5, 8..=8])),
            ("{.rust .numberLines}", fence("rust", None, Some(1), &[])),
            ("rust,ignore", fence("rust", None, None, &[])),
            ("sh 3 4", fence("sh", None, None, &[])),
            ("sh title=\"open", fence("sh", Some("\"open"), None, &[])),
            ("sh {1-99999999999999999999}", fence("sh", None, None, &[])),
        ];
        for (info, expected) in cases {
            assert_eq!(Fence::parse(info), expected, "{info:?}");
        }
    }

    #[test]
    fn marks_count_from_one() {
        let fence = Fence::parse("js {2,4-5}");
        assert_eq!((1..=6).filter(|&line| fence.is_marked(line)).collect::<Vec<_>>(), [2, 4, 5]);
    }
}
