//! Reports what was found, what was written, and what was left out and why: everything that an export has is accounted for.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;

/// The account of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The engine that the export is of.
    pub engine: String,
    /// The engine's version, if the export says it.
    pub version: Option<String>,
    /// The files and folders that were read.
    pub sources: Vec<String>,
    /// The folder of the blog.
    pub folder: String,
    /// The blog's title.
    pub title: String,
    /// Every post and page.
    pub texts: Vec<TextEntry>,
    /// Every tag and category.
    pub tags: Vec<Entry>,
    /// Every author.
    pub authors: Vec<Entry>,
    /// Every picture and other file.
    pub files: Vec<Entry>,
    /// Old addresses of what is not a text, and where they lead.
    pub redirects: Vec<Redirect>,
    /// The comments.
    pub comments: Comments,
    /// The other items of the export, counted, with the reason why they are not in the blog.
    pub left_out: Vec<LeftOut>,
    /// The notes on what the author should know or look at.
    pub notes: Vec<String>,
}

/// Says what became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is in the blog, for everybody.
    Written,
    /// It is in the blog, as a draft that nobody sees.
    Draft,
    /// It is not in the blog.
    LeftOut,
}

/// A post or a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextEntry {
    /// `post` or `page`.
    pub kind: &'static str,
    /// The name that the export gives it: a number, a code or a file.
    pub id: String,
    /// The title.
    pub title: String,
    /// The state that the export gives it, such as `published` or `scheduled`.
    pub status: String,
    /// The outcome for it.
    pub outcome: Outcome,
    /// The address that it had, if it had one.
    pub old: Option<String>,
    /// The address that it has now.
    pub new: Option<String>,
    /// The file that was written.
    pub file: Option<String>,
    /// The number of its comments.
    pub comments: usize,
    /// The reason why it is a draft or left out, and what the author should look at.
    pub notes: Vec<String>,
}

/// Anything else with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The name, or the old address.
    pub name: String,
    /// The new address or file.
    pub new: Option<String>,
    /// The outcome for it.
    pub outcome: Outcome,
    /// The reason why it was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An old address, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// The old path or pattern.
    pub from: String,
    /// The new one.
    pub to: String,
}

/// The comments of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comments {
    /// The number of comments.
    pub count: usize,
    /// The file that keeps them, which is not published.
    pub file: Option<String>,
}

/// Items that were counted and not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The name of what they are.
    pub what: String,
    /// The number of these items.
    pub count: usize,
    /// The reason.
    pub why: String,
}

/// The largest number of lines of one kind in the text for a person. The file has all of them.
const LINES_MAX: usize = 20;

impl Report {
    pub(crate) fn left_out(&mut self, what: impl Into<String>, count: usize, why: impl Into<String>) {
        if count > 0 {
            self.left_out.push(LeftOut { what: what.into(), count, why: why.into() });
        }
    }

    /// Counts the texts of a kind by outcome: written, drafts, left out.
    #[must_use]
    pub fn counted(&self, kind: &str) -> (usize, usize, usize) {
        let of = |outcome| self.texts.iter().filter(|text| text.kind == kind && text.outcome == outcome).count();
        (of(Outcome::Written), of(Outcome::Draft), of(Outcome::LeftOut))
    }

    /// Writes the account for a person.
    #[must_use]
    pub fn text(&self) -> String {
        // Writing to a String cannot fail.
        let version = self.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let mut text = format!("{}{version}: {}\n\n", self.engine, if self.title.is_empty() { "(no title)" } else { &self.title });
        let _ = writeln!(text, "  {:<10} {:>7} {:>9} {:>7} {:>9}", "", "found", "published", "drafts", "left out");
        let mut line = |what: &str, (written, drafts, left): (usize, usize, usize)| {
            let _ = writeln!(text, "  {what:<10} {:>7} {written:>9} {drafts:>7} {left:>9}", written + drafts + left);
        };
        line("posts", self.counted("post"));
        line("pages", self.counted("page"));
        for (what, entries) in [("tags", &self.tags), ("authors", &self.authors), ("files", &self.files)] {
            let of = |outcome| entries.iter().filter(|entry| entry.outcome == outcome).count();
            line(what, (of(Outcome::Written), of(Outcome::Draft), of(Outcome::LeftOut)));
        }
        line("comments", (0, 0, self.comments.count));
        let _ = writeln!(text);
        if let Some(file) = &self.comments.file {
            let _ = writeln!(text, "The blog shows no comments. They are kept in {}/{file}, which is never published.\n", self.folder);
        }
        self.write_texts(&mut text);
        section(&mut text, "Files that are not in the blog", &by_reason(&self.files));
        section(&mut text, "Tags that are not in the blog", &by_reason(&self.tags));
        let left: Vec<String> = self.left_out.iter().map(|left| format!("{} ({}): {}", left.what, left.count, left.why)).collect();
        section(&mut text, "Left out", &left);
        section(&mut text, "Notes", &self.notes);
        let moved = self.texts.iter().filter(|text| text.outcome == Outcome::Written && text.old.is_some() && text.old != text.new).count();
        let kept = self.texts.iter().filter(|text| text.outcome == Outcome::Written && text.old.is_some() && text.old == text.new).count();
        let _ = writeln!(
            text,
            "Addresses of texts: {kept} as before, {moved} with a redirect from the old one. Other redirects in _redirects: {}.",
            self.redirects.len()
        );
        text
    }

    fn write_texts(&self, text: &mut String) {
        let drafts = self.texts.iter().filter(|entry| entry.outcome == Outcome::Draft && entry.status != "draft");
        let hidden: Vec<String> =
            drafts.map(|entry| format!("{}: {}", name_of(entry), entry.notes.first().map_or("", String::as_str))).collect();
        section(text, "Kept from readers, as drafts", &hidden);
        let left = self.texts.iter().filter(|entry| entry.outcome == Outcome::LeftOut);
        let left: Vec<String> =
            left.map(|entry| format!("{}: {}", name_of(entry), entry.notes.first().map_or("", String::as_str))).collect();
        section(text, "Texts that are not in the blog", &left);
        let look = self.texts.iter().filter(|entry| entry.outcome != Outcome::LeftOut);
        let look: Vec<String> = look
            .flat_map(|entry| {
                let is_reason = usize::from(entry.outcome == Outcome::Draft && entry.status != "draft");
                entry.notes.iter().skip(is_reason).map(|note| format!("{}: {note}", name_of(entry)))
            })
            .collect();
        section(text, "Look at these", &look);
    }
}

fn name_of(entry: &TextEntry) -> &str {
    entry.file.as_deref().unwrap_or(if entry.title.is_empty() { &entry.id } else { &entry.title })
}

fn by_reason(entries: &[Entry]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.outcome == Outcome::LeftOut) {
        reasons.entry(entry.why.as_deref().unwrap_or_default()).or_default().push(&entry.name);
    }
    let one = |(why, names): (&str, Vec<&str>)| match names.as_slice() {
        [name] => format!("{name}: {why}"),
        [name, ..] => format!("{} such as {name}: {why}", names.len()),
        [] => String::new(),
    };
    reasons.into_iter().map(one).collect()
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}:");
    for line in lines.iter().take(LINES_MAX) {
        let _ = writeln!(text, "  - {line}");
    }
    if lines.len() > LINES_MAX {
        let _ = writeln!(text, "  - and {} more: --report FILE has them all", lines.len() - LINES_MAX);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row is no "1 rows": a number stands behind what it counts.
    #[test]
    fn numbers_of_one_and_of_many_read_alike() {
        for count in [1, 12] {
            let left_out = vec![LeftOut { what: "rows of labels".to_owned(), count, why: "they are for members".to_owned() }];
            let to_the_tag = |n: usize| Redirect { from: format!("/old/{n}/"), to: "/tags/sea/".to_owned() };
            let report = Report { left_out, redirects: (0..count).map(to_the_tag).collect(), ..Report::default() };
            let text = report.text();
            assert!(text.contains(&format!("  - rows of labels ({count}): they are for members\n")), "{text}");
            assert!(
                text.ends_with(&format!("0 as before, 0 with a redirect from the old one. Other redirects in _redirects: {count}.\n")),
                "{text}"
            );
        }
    }
}
