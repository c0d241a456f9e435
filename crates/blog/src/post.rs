//! A post or page: a Markdown file with its title, date, address and HTML.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{Timestamp, civil::Date};

use crate::{
    config::Settings,
    digest::fingerprint,
    error::Problem,
    folder::Folder,
    front_matter::{self, FrontMatter, Moment, Split},
    markdown::{self, Targets, Text},
    slug,
};

/// First segments of addresses that the site needs for itself.
const RESERVED: [&str; 3] = ["page", "tags", "theme"];

/// Whether readers see a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    Published,
    /// Its author has not finished it.
    Draft,
    /// Its time has not come.
    Due(Timestamp),
}

/// A text that can be shown.
#[derive(Debug, Clone)]
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
    /// The Markdown of the text, without its front matter.
    pub(crate) markdown: String,
    /// The path of the file in the folder, with `/` between names.
    pub(crate) name: String,
    pub(crate) is_page: bool,
    pub(crate) standing: Standing,
    /// BCP 47 language tag of the text, if it is another than the blog's: as the front matter or the name (`hello.de.md`) says.
    pub(crate) lang: Option<String>,
    /// The key that joins translations: as the front matter says, or the path of the file without its language.
    pub(crate) translation: String,
    /// A number that differs if [`Post::html`] does.
    pub(crate) html_fingerprint: u128,
    /// What else the author set.
    pub(crate) front: FrontMatter,
    /// A number that differs if anything in the post does.
    pub(crate) fingerprint: u128,
}

impl Post {
    /// Returns when the post last changed, as the author says.
    pub(crate) fn changed(&self) -> Timestamp {
        self.updated.map_or(self.date.instant, |updated| updated.instant.max(self.date.instant))
    }

    /// Returns the authors: those whom the post names, or the blog's own.
    pub(crate) fn authors<'p>(&'p self, settings: &'p Settings) -> Vec<&'p str> {
        if self.front.authors.is_empty() { vec![&settings.author] } else { self.front.authors.iter().map(String::as_str).collect() }
    }

    /// Returns the language of the text in a blog whose language is `default`.
    pub(crate) fn language<'p>(&'p self, default: &'p str) -> &'p str {
        self.lang.as_deref().unwrap_or(default)
    }
}

/// The texts of a folder, and what is wrong with those that are left out.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The published posts, newest first.
    pub(crate) posts: Vec<Arc<Post>>,
    /// The pages, by file name.
    pub(crate) pages: Vec<Arc<Post>>,
    /// Every problem of every file.
    pub(crate) problems: Vec<Problem>,
    /// The time at which the next post becomes due.
    pub(crate) next_due: Option<Timestamp>,
}

/// Reads all texts of the folder. A text with a problem is left out; a post whose date lies after `now` is not published yet.
pub(crate) fn read_all(folder: &Folder, settings: &Settings, now: Timestamp) -> Texts {
    let mut texts = Texts::default();
    let mut drafts = 0;
    let mut parsed = Vec::new();
    for source in &folder.sources {
        match Parsed::new(&source.name, &source.text) {
            Ok(text) if text.split.front.draft => drafts += 1,
            Ok(text) => parsed.push((text, source.modified)),
            Err(more) => texts.problems.extend(more),
        }
    }
    tracing::debug!(drafts, published = parsed.len(), "texts read");

    let mut taken: BTreeMap<String, PathBuf> = BTreeMap::new();
    parsed.retain(|(text, _)| {
        let Some(other) = taken.get(&text.path) else {
            taken.insert(text.path.clone(), text.file.clone());
            return true;
        };
        let message = format!("has the same address {} as {}; give one of them another `slug`", text.path, other.display());
        texts.problems.push(Problem::new(&text.file, 1, message));
        false
    });
    let targets = Targets {
        posts: parsed.iter().map(|(text, _)| (text.name.to_owned(), text.path.clone())).collect(),
        files: folder.files.iter().map(|file| file.name.clone()).collect(),
    };
    for (text, modified) in parsed {
        let is_page = text.is_page();
        let modified = i64::try_from(modified.as_secs()).ok().and_then(|secs| Timestamp::from_second(secs).ok()).unwrap_or_default();
        // A text without a date has that of its file, which nobody chose.
        let modified = modified.min(now);
        match text.publish(settings, &targets, modified) {
            Ok(post) if !is_page && post.date.instant > now => {
                texts.next_due = Some(texts.next_due.map_or(post.date.instant, |due| due.min(post.date.instant)));
            }
            Ok(post) if is_page => texts.pages.push(Arc::new(post)),
            Ok(post) => texts.posts.push(Arc::new(post)),
            Err(more) => texts.problems.extend(more),
        }
    }
    texts.posts.sort_by(|a, b| b.date.instant.cmp(&a.date.instant).then_with(|| a.path.cmp(&b.path)));
    texts
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
        let FrontMatter { title, date, updated, tags, summary, .. } = front.clone();
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
        let date = date.or(named).unwrap_or_else(|| Moment::of_instant(modified));
        let summary = summary.unwrap_or(rendered.summary);
        let fingerprint = fingerprint(&(&self.path, &title, &front, (date, updated), &tags, &summary, &rendered.html, &rendered.feed_html));
        Ok(Post {
            path: self.path,
            title,
            date,
            updated,
            tags,
            summary,
            html: rendered.html,
            feed_html: rendered.feed_html,
            minutes: rendered.minutes,
            name: self.name.to_owned(),
            front,
            fingerprint,
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
