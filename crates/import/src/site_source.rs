//! Sources of generated sites: a folder of texts with front matter, whatever the generator.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    error::ImportError,
    front_matter::{self, Start, Table, flag, instant, list, text, written},
    html::{Targets as _, markdown},
    job::{Author, Job},
    links::Links,
    location::Location,
    markdown::rewrite,
    report::{Entry, Outcome, TextEntry},
    slug::tag_slug,
    text::{Front, Kind},
};

/// The largest text that is read.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file with a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    /// The path in the site's folder.
    pub(crate) name: String,
    pub(crate) front: Table,
    pub(crate) date: Option<String>,
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) tags: Vec<String>,
    pub(crate) is_draft: bool,
    pub(crate) status: &'static str,
    /// The reason why readers did not see it, if it is not a draft of its author's.
    pub(crate) hidden: Option<String>,
    pub(crate) lang: Option<String>,
    pub(crate) translation: Option<String>,
    /// The addresses that led to it.
    pub(crate) aliases: Vec<String>,
}

/// Reads a text, whose front matter begins where its generator wants it.
pub(crate) fn read(path: &Path, name: &str, start: Start) -> Result<ReadSource, ImportError> {
    let bytes = fs::metadata(path).map_err(ImportError::read(path))?.len();
    if bytes > TEXT_BYTES_MAX {
        return Ok(ReadSource::Broken(format!("larger than {} MiB", TEXT_BYTES_MAX / 1024 / 1024)));
    }
    let content = fs::read(path).map_err(ImportError::read(path))?;
    let content = match String::from_utf8(content) {
        Ok(content) => content.replace("\r\n", "\n"),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            return Ok(ReadSource::Broken(format!("{name}:{line}: is not UTF-8; save it with that encoding")));
        }
    };
    match front_matter::split(&content, start) {
        Ok(Some(split)) => Ok(ReadSource::Text { line: split.line, body: split.body.to_owned(), front: split.front }),
        Ok(None) => Ok(ReadSource::Plain(content)),
        Err((line, message)) => Ok(ReadSource::Broken(format!("{name}:{line}: {message}"))),
    }
}

/// Says what a file is.
#[derive(Debug)]
pub(crate) enum ReadSource {
    Text {
        front: Table,
        body: String,
        line: usize,
    },
    /// It has no front matter.
    Plain(String),
    /// It cannot be read, for this reason.
    Broken(String),
}

/// Accounts for a text that is not in the blog.
pub(crate) fn leave_out(name: &str, kind: Kind, why: &str, job: &mut Job) {
    job.report.texts.push(TextEntry {
        kind: kind.name(),
        id: name.to_owned(),
        title: String::new(),
        status: String::new(),
        outcome: Outcome::LeftOut,
        old: None,
        new: None,
        file: None,
        comments: 0,
        notes: vec![why.to_owned()],
    });
}

/// Makes front matter, Markdown and account of a text whose body has no more marks of its generator in it.
pub(crate) fn converted(source: &Source, location: &Location, body: &str, is_html: bool, links: &Links<'_>) -> (Front, String, TextEntry) {
    let body = if is_html { markdown(body, links) } else { rewrite(body, links) };
    let front = &source.front;
    let (cover, cover_alt) = cover(front);
    let cover = cover.map(|url| links.picture(&url));
    let updated = text(front, &["lastmod", "updated", "last_modified_at", "last-modified-at", "modified"])
        .and_then(|text| instant(&text))
        .map(written);
    let authors = list(front, &["authors", "author"], &[',']);
    let mut seen = std::collections::HashSet::new();
    let tags = source.tags.iter().filter(|tag| seen.insert(tag_slug(tag))).cloned().collect();
    let is_unmapped = is_unmapped(front);
    let noindex = flag(front, "noindex") == Some(true) || text(front, &["robots"]).is_some_and(|robots| robots.contains("noindex"));
    if is_unmapped && !noindex {
        links.note("was not in the sitemap, so search engines are asked to leave it out (noindex)".to_owned());
    }
    let noindex = noindex || is_unmapped;
    let notes = links.notes.take();
    let written = Front {
        title: source.title.clone(),
        updated: updated.filter(|updated| source.date.as_ref().is_some_and(|date| updated > date)),
        date: source.date.clone(),
        draft: source.is_draft,
        tags,
        authors: authors.iter().map(|name| crate::slug::slugify(name)).filter(|name| !name.is_empty()).collect(),
        series: list(front, &["series"], &[]).into_iter().next(),
        summary: text(front, &["summary", "description", "excerpt", "subtitle"]),
        cover,
        cover_alt,
        aliases: source.aliases.clone(),
        noindex,
        lang: source.lang.clone(),
        translation: source.translation.clone(),
        math: ["math", "mathjax", "katex", "use_math"].iter().find_map(|key| flag(front, key)),
        ..Front::default()
    };
    let entry = TextEntry {
        kind: source.kind.name(),
        id: source.name.clone(),
        title: source.title.clone(),
        status: source.status.to_owned(),
        outcome: Outcome::Written,
        old: location.old.clone(),
        new: None,
        file: None,
        comments: 0,
        notes,
    };
    (written, body, entry)
}

/// Tells whether a text is not in the sitemap: jekyll-sitemap's `sitemap: false`, Hugo's `disable` in the table `sitemap`.
fn is_unmapped(front: &Table) -> bool {
    match front.get("sitemap") {
        Some(Value::Object(sitemap)) => flag(sitemap, "disable") == Some(true),
        _ => flag(front, "sitemap") == Some(false),
    }
}

/// Returns the address of the picture at the head of a text, and the words for it.
fn cover(front: &Table) -> (Option<String>, Option<String>) {
    for key in
        ["cover", "image", "featured_image", "featuredImage", "feature_image", "featureImage", "featured", "thumbnail", "header", "images"]
    {
        let found = match front.get(key) {
            Some(Value::String(url)) => (Some(url.clone()), None),
            Some(Value::Object(table)) => {
                let url = text(table, &["src", "path", "image", "url", "overlay_image", "teaser", "feature"]);
                (url, text(table, &["alt", "image_description"]))
            }
            Some(Value::Array(items)) => (items.first().and_then(Value::as_str).map(str::to_owned), None),
            _ => continue,
        };
        if let Some(url) = found.0.filter(|url| !url.trim().is_empty() && url.contains('.')) {
            return (Some(url), found.1.or_else(|| text(front, &["cover_alt", "image_alt", "imageAlt"])));
        }
    }
    (None, None)
}

/// Notes the authors whom a text names.
pub(crate) fn note_authors(front: &Table, job: &mut Job) {
    for name in list(front, &["authors", "author"], &[',']) {
        let key = crate::slug::slugify(&name);
        if key.is_empty() || job.settings.authors.contains_key(&key) {
            continue;
        }
        let new = Some(format!("/authors/{key}/"));
        job.report.authors.push(Entry { name: name.clone(), new, outcome: Outcome::Written, why: None });
        job.settings.authors.insert(key, Author { name, ..Author::default() });
    }
}
