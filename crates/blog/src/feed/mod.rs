//! Feeds of the newest posts, with their whole content: Atom (RFC 4287), RSS 2.0 and JSON Feed 1.1, of the blog and of each tag.
//!
//! They need absolute addresses. Where `base_url` is not set, scheme and host are known only when a request comes, so the texts are built with
//! [`BASE`] in their place and completed for each request; the cache in front keeps the result per host.

mod atom;
mod json_feed;
mod rss;

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
};

use jiff::Timestamp;

use crate::{
    digest::fingerprint,
    escape::push_escaped,
    head::{Cover, cover},
    markup,
    model::{Model, author_path},
    post::Post,
    slug::encode_path,
};

/// Placeholder for scheme and authority. XML forbids the character and [`crate::escape::escape`] drops it, so no text of an author can
/// contain it.
pub(crate) const BASE: &str = "\u{1}";

/// The number of posts in a feed.
const ENTRIES_MAX: usize = 20;

/// Formats of feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Atom,
    Rss,
    Json,
}

impl Format {
    pub(crate) const ALL: [Self; 3] = [Self::Atom, Self::Rss, Self::Json];

    /// Returns the name of the file, below `/` or below the address of a tag.
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::Atom => "feed.xml",
            Self::Rss => "rss.xml",
            Self::Json => "feed.json",
        }
    }

    /// Returns the media type, without parameters: RFC 4287 §7, the custom of RSS, and JSON Feed 1.1 ("Discovery").
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Atom => "application/atom+xml",
            Self::Rss => "application/rss+xml",
            Self::Json => "application/feed+json",
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Atom => "application/atom+xml; charset=utf-8",
            Self::Rss => "application/rss+xml; charset=utf-8",
            Self::Json => "application/feed+json; charset=utf-8",
        }
    }
}

/// Everything that a feed shows. Its fingerprint tells whether the feed would differ, so what a format does not show is left out.
#[derive(Debug, Hash)]
struct Feed<'m> {
    title: String,
    description: Option<&'m str>,
    /// The address of the feed, and that of the page with the same posts; percent-encoded.
    path: String,
    home: String,
    language: &'m str,
    /// The author of the blog, where the format names one.
    author: Option<Author<'m>>,
    /// The address of the blog's icon, percent-encoded.
    icon: Option<String>,
    /// The time of the newest change.
    updated: Timestamp,
    entries: Vec<Entry<'m>>,
}

#[derive(Debug, Hash)]
struct Entry<'m> {
    /// The address, which is the lasting identifier as well: it differs from post to post and stays when the post is edited. It begins with
    /// [`BASE`].
    url: String,
    title: &'m str,
    summary: &'m str,
    published: Timestamp,
    updated: Timestamp,
    /// The language, if it is another than that of the feed.
    language: Option<&'m str>,
    authors: Vec<Author<'m>>,
    tags: &'m [String],
    cover: Option<Enclosure<'m>>,
    content: Content<'m>,
}

#[derive(Debug, Hash)]
struct Author<'m> {
    name: &'m str,
    /// The address of the page with the author's posts.
    url: Option<String>,
}

/// The picture at the head of a post, with its media type as far as its name tells.
#[derive(Debug, Hash)]
struct Enclosure<'m> {
    url: Cow<'m, str>,
    media_type: &'static str,
}

/// The text of a post. Its fingerprint stands for it, as it is long.
#[derive(Debug)]
struct Content<'m> {
    post: &'m Post,
}

impl Hash for Content<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.post.feed_fingerprint.hash(state);
    }
}

impl Content<'_> {
    /// Returns the text as HTML whose links are all absolute.
    fn html(&self) -> String {
        markup::absolute(&self.post.feed_html, &self.post.path)
    }
}

/// Writes the feed of the blog, or that of the tag whose page is at `tag`. Absolute addresses in it begin with [`BASE`].
pub(crate) fn write(model: &Model, format: Format, tag: Option<&str>) -> String {
    let feed = Feed::new(model, format, tag);
    match format {
        Format::Atom => atom::write(&feed),
        Format::Rss => rss::write(&feed),
        Format::Json => json_feed::write(&feed),
    }
}

/// Returns a number that differs if the feed would differ.
pub(crate) fn feed_fingerprint(model: &Model, format: Format, tag: Option<&str>) -> u128 {
    fingerprint(&(format, Feed::new(model, format, tag)))
}

impl<'m> Feed<'m> {
    fn new(model: &'m Model, format: Format, tag: Option<&str>) -> Self {
        let settings = &model.settings;
        let group = tag.and_then(|tag| model.tags.get(tag));
        let home = encode_path(tag.unwrap_or("/"));
        let posts: Vec<&Post> = match group {
            Some(group) => model.posts_of(group).take(ENTRIES_MAX).map(|post| &**post).collect(),
            None => model.posts.iter().take(ENTRIES_MAX).map(|post| &**post).collect(),
        };
        Self {
            title: group.map_or_else(|| settings.title.clone(), |group| format!("{} · {}", group.title, settings.title)),
            description: settings.description.as_deref(),
            path: format!("{home}{}", format.file_name()),
            home,
            language: &settings.language,
            author: (format != Format::Rss).then(|| Author::new(model, format, &settings.author)),
            icon: model.icon.as_deref().filter(|_| format != Format::Rss).map(encode_path),
            updated: posts.iter().map(|post| post.changed()).max().unwrap_or_default(),
            entries: posts.into_iter().map(|post| Entry::new(model, format, post)).collect(),
        }
    }
}

impl<'m> Entry<'m> {
    fn new(model: &'m Model, format: Format, post: &'m Post) -> Self {
        let settings = &model.settings;
        let enclosure = |cover: Cover<'m>| Some(Enclosure { media_type: cover.media_type()?, url: cover.url });
        Self {
            url: format!("{BASE}{}", encode_path(&post.path)),
            title: &post.title,
            summary: &post.summary,
            published: post.date.instant,
            updated: post.changed(),
            language: Some(post.language(&settings.language)).filter(|language| *language != settings.language),
            authors: post.authors(settings).into_iter().map(|name| Author::new(model, format, name)).collect(),
            tags: &post.tags,
            cover: cover(post).and_then(enclosure),
            content: Content { post },
        }
    }
}

impl<'m> Author<'m> {
    fn new(model: &'m Model, format: Format, name: &'m str) -> Self {
        let path = author_path(name);
        // RSS has no place for it.
        let has_page = format != Format::Rss && model.has_authors() && model.authors.contains_key(&path);
        Self { name: model.settings.author_name(name), url: has_page.then(|| format!("{BASE}{}", encode_path(&path))) }
    }
}

/// Appends the escaped `text` to `out`, as [`push_escaped`] does, and keeps the [`BASE`] of its addresses.
pub(crate) fn push_escaped_with_base(out: &mut String, text: &str) {
    for (index, part) in text.split(BASE).enumerate() {
        if index > 0 {
            out.push_str(BASE);
        }
        push_escaped(out, part);
    }
}

fn escape_with_base(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    push_escaped_with_base(&mut out, text);
    out
}
