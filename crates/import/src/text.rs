//! A post or a page on its way into the blog: front matter and Markdown.

use std::fmt::Write as _;

/// Says whether a text is in the index and the feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    Post,
    Page,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Page => "page",
        }
    }
}

/// Holds what the front matter says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Front {
    pub(crate) title: String,
    pub(crate) date: Option<String>,
    pub(crate) updated: Option<String>,
    pub(crate) draft: bool,
    pub(crate) slug: Option<String>,
    pub(crate) permalink: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) authors: Vec<String>,
    pub(crate) series: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) cover: Option<String>,
    pub(crate) cover_alt: Option<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) noindex: bool,
    pub(crate) lang: Option<String>,
    pub(crate) translation: Option<String>,
    /// Whether `$…$` may be a formula; the blog takes it for one if nothing is said.
    pub(crate) math: Option<bool>,
    pub(crate) page: bool,
}

/// The longest summary in characters; a longer one is a text of its own.
const SUMMARY_CHARS_MAX: usize = 500;

impl Front {
    /// Writes the whole file.
    pub(crate) fn file(&self, body: &str) -> String {
        // Writing to a String cannot fail.
        let mut file = "+++\n".to_owned();
        let mut line = |key: &str, value: String| {
            let _ = writeln!(file, "{key} = {value}");
        };
        line("title", quoted(&self.title));
        for (key, value) in [("date", &self.date), ("updated", &self.updated)] {
            if let Some(value) = value {
                line(key, value.clone());
            }
        }
        let summary = self.summary.as_ref().map(|summary| shortened(summary)).filter(|summary| !summary.is_empty());
        let texts = [
            ("slug", &self.slug),
            ("permalink", &self.permalink),
            ("series", &self.series),
            ("summary", &summary),
            ("cover", &self.cover),
            ("cover_alt", &self.cover_alt),
            ("lang", &self.lang),
            ("translation", &self.translation),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                line(key, quoted(value));
            }
        }
        for (key, values) in [("tags", &self.tags), ("authors", &self.authors), ("aliases", &self.aliases)] {
            if !values.is_empty() {
                line(key, format!("[{}]", values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")));
            }
        }
        for (key, value) in [("page", self.page), ("draft", self.draft), ("noindex", self.noindex)] {
            if value {
                line(key, "true".to_owned());
            }
        }
        if let Some(math) = self.math {
            line("math", math.to_string());
        }
        file + "+++\n\n" + body.trim_matches('\n') + "\n"
    }
}

fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= SUMMARY_CHARS_MAX { text } else { text.chars().take(SUMMARY_CHARS_MAX).collect::<String>() + "…" }
}

/// Writes a text as a value of TOML, on one line.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stands_in_a_title_the_front_matter_is_toml() {
        for title in ["plain", "\"quoted\" \\ 'both'", "+++", "'''", "a\nb\u{1}", "# no comment", "日本"] {
            let front = Front { title: title.to_owned(), tags: vec![title.to_owned()], ..Front::default() };
            let file = front.file("Text");
            let block = file.strip_prefix("+++\n").and_then(|rest| rest.split_once("\n+++\n")).expect("two fences").0;
            let table: toml::Table = block.parse().expect(block);
            let expected = title.replace('\n', " ").replace('\u{1}', "");
            assert_eq!((table["title"].as_str(), table["tags"][0].as_str()), (Some(expected.as_str()), Some(expected.as_str())));
        }
    }
}
