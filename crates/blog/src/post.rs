//! A post or page: a Markdown file with its title, date, address and HTML.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::Date};

use crate::{
    config::Settings,
    error::Problem,
    folder::Folder,
    front_matter::{self, FrontMatter, Moment, Split},
    markdown::{self, Targets, Text},
    slug,
};

/// First segments of addresses that the site needs for itself.
const RESERVED: [&str; 3] = ["page", "tags", "theme"];

/// A text that is published.
#[derive(Debug)]
pub(crate) struct Post {
    /// The address, beginning and ending with a slash, not percent-encoded.
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) date: Moment,
    pub(crate) updated: Option<Moment>,
    pub(crate) tags: Vec<String>,
    pub(crate) summary: String,
    pub(crate) html: String,
    pub(crate) feed_html: String,
    pub(crate) minutes: usize,
}

impl Post {
    /// Returns when the post last changed, as the author says.
    pub(crate) fn changed(&self) -> Timestamp {
        self.updated.map_or(self.date.instant, |updated| updated.instant.max(self.date.instant))
    }
}

/// Reads the posts, newest first, and the pages, by file name. Collects every problem of every file.
pub(crate) fn read_all(folder: &Folder, settings: &Settings) -> Result<(Vec<Post>, Vec<Post>), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut drafts = Vec::new();
    let mut parsed = Vec::new();
    for source in &folder.sources {
        match Parsed::new(&source.name, &source.text) {
            Ok(text) if text.split.front.draft => drafts.push(text),
            Ok(text) => parsed.push((text, source.modified)),
            Err(more) => problems.extend(more),
        }
    }
    tracing::debug!(drafts = drafts.len(), published = parsed.len(), "texts read");

    let mut taken: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (text, _) in &parsed {
        if let Some(other) = taken.insert(text.path.clone(), text.file.clone()) {
            let message = format!("has the same address {} as {}; give one of them another `slug`", text.path, other.display());
            problems.push(Problem::new(&text.file, 1, message));
        }
    }
    let targets = Targets {
        posts: parsed.iter().map(|(text, _)| (text.name.to_owned(), text.path.clone())).collect(),
        files: folder.files.iter().map(|file| file.name.clone()).collect(),
    };
    let (mut posts, mut pages) = (Vec::new(), Vec::new());
    for (text, modified) in parsed {
        let is_page = text.is_page();
        let modified = i64::try_from(modified.as_secs()).ok().and_then(|secs| Timestamp::from_second(secs).ok()).unwrap_or_default();
        match text.publish(settings, &targets, modified) {
            Ok(post) if is_page => pages.push(post),
            Ok(post) => posts.push(post),
            Err(more) => problems.extend(more),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    posts.sort_by(|a, b| b.date.instant.cmp(&a.date.instant).then_with(|| a.path.cmp(&b.path)));
    Ok((posts, pages))
}

/// A file with its front matter read. Its text is rendered when all addresses are known.
struct Parsed<'a> {
    name: &'a str,
    file: PathBuf,
    path: String,
    prefix_date: Option<Date>,
    split: Split<'a>,
}

impl<'a> Parsed<'a> {
    fn new(name: &'a str, text: &'a str) -> Result<Self, Vec<Problem>> {
        let file = PathBuf::from(name);
        let split = front_matter::split(&file, text)?;
        let (prefix_date, stem) = date_prefix(stem(&file));
        let slug = split.front.slug.clone().unwrap_or_else(|| slug::slugify(stem));
        if slug.is_empty() {
            return Err(vec![Problem::new(&file, 1, "the file name has no letters to make an address of; set `slug`")]);
        }
        if RESERVED.contains(&slug.as_str()) {
            return Err(vec![Problem::new(&file, 1, format!("the address /{slug}/ is taken by the blog itself; set another `slug`"))]);
        }
        Ok(Self { name, path: format!("/{slug}/"), prefix_date, split, file })
    }

    fn is_page(&self) -> bool {
        self.split.front.page || self.name.starts_with("pages/")
    }

    fn publish(self, settings: &Settings, targets: &Targets, modified: Timestamp) -> Result<Post, Vec<Problem>> {
        let Split { front, body, body_line } = self.split;
        let FrontMatter { title, date, updated, tags, summary, .. } = front;
        let text = Text {
            file: &self.file,
            folder: self.name.rsplit_once('/').map_or("", |(folder, _)| folder),
            body,
            body_line,
            is_english: settings.is_english(),
            is_titled: title.is_some(),
        };
        let rendered = markdown::render(&text, targets)?;
        let title = title.or(rendered.heading).ok_or_else(|| {
            vec![Problem::new(&self.file, 1, "has no title; set `title` in the front matter or begin the text with `# A heading`")]
        })?;
        let named = self.prefix_date.and_then(|day| Moment::parse(&day.to_string()));
        Ok(Post {
            path: self.path,
            title,
            date: date.or(named).unwrap_or_else(|| Moment::of_instant(modified)),
            updated,
            tags,
            summary: summary.unwrap_or(rendered.summary),
            html: rendered.html,
            feed_html: rendered.feed_html,
            minutes: rendered.minutes,
        })
    }
}

/// Returns the name of a post: `sea` for both `posts/sea.md` and `posts/sea/index.md`.
fn stem(file: &Path) -> &str {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let parent = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    match parent {
        Some(parent) if stem == "index" => parent,
        _ => stem,
    }
}

/// Splits a date such as `2026-03-01-` off a name.
fn date_prefix(stem: &str) -> (Option<Date>, &str) {
    let parts = stem.get(..10).zip(stem.get(10..)).and_then(|(date, rest)| Some((date.parse().ok()?, rest.strip_prefix('-')?)));
    parts.filter(|(_, rest)| !rest.is_empty()).map_or((None, stem), |(date, rest)| (Some(date), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_dates_and_slugs() {
        let cases = [
            ("2026-03-01-hello.md", Some("2026-03-01"), "hello"),
            ("posts/2026-03-01-hello/index.md", Some("2026-03-01"), "hello"),
            ("2026-13-01-hello.md", None, "2026-13-01-hello"),
            ("2026-03-01.md", None, "2026-03-01"),
            ("hello.md", None, "hello"),
            ("äöüäöüäöü.md", None, "äöüäöüäöü"),
            ("index.md", None, "index"),
        ];
        for (file, date, slug) in cases {
            let got = date_prefix(stem(Path::new(file)));
            assert_eq!((got.0.map(|d| d.to_string()).as_deref(), got.1), (date, slug), "{file}");
        }
    }
}
