//! Feeds of the newest posts, with their whole content: Atom (RFC 4287), RSS 2.0 and JSON Feed 1.1, of the blog and of each tag.
//!
//! They need absolute addresses. Where `base_url` is not set, scheme and host are known only when a request comes, so the texts are built with
//! [`BASE`] in their place and completed for each request; the cache in front keeps the result per host.

mod atom;
mod json_feed;
mod rss;

use crate::{
    digest::fingerprint,
    escape::push_escaped,
    head::{Cover, cover},
    markup,
    model::Model,
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

/// The content of a feed, in whatever format.
#[derive(Debug)]
struct Feed<'m> {
    model: &'m Model,
    title: String,
    /// The address of the feed, and that of the page with the same posts; percent-encoded.
    path: String,
    home: String,
    posts: Vec<&'m Post>,
}

/// Writes the feed of the blog, or that of the tag whose page is at `tag`. Absolute addresses in it begin with [`BASE`].
pub(crate) fn write(model: &Model, format: Format, tag: Option<&str>) -> String {
    let home = encode_path(tag.unwrap_or("/"));
    let title = match tag.and_then(|tag| model.tags.get(tag)) {
        Some(group) => format!("{} · {}", group.title, model.settings.title),
        None => model.settings.title.clone(),
    };
    let feed = Feed { model, title, path: format!("{home}{}", format.file_name()), home, posts: newest(model, tag).collect() };
    match format {
        Format::Atom => atom::write(&feed),
        Format::Rss => rss::write(&feed),
        Format::Json => json_feed::write(&feed),
    }
}

/// Returns a number that differs if the feed would differ.
pub(crate) fn feed_fingerprint(model: &Model, format: Format, tag: Option<&str>) -> u128 {
    let posts: Vec<_> = newest(model, tag).map(|post| post.fingerprint).collect();
    fingerprint(&(format, &model.settings, &model.icon, tag.and_then(|tag| model.tags.get(tag)).map(|group| &group.title), posts))
}

fn newest<'m>(model: &'m Model, tag: Option<&str>) -> impl Iterator<Item = &'m Post> {
    let indexes: Vec<usize> = match tag {
        Some(tag) => model.tags.get(tag).map(|group| group.posts.iter().copied().take(ENTRIES_MAX).collect()).unwrap_or_default(),
        None => (0..model.posts.len().min(ENTRIES_MAX)).collect(),
    };
    indexes.into_iter().map(|index| &*model.posts[index])
}

impl<'m> Feed<'m> {
    /// Returns when the newest change was.
    fn updated(&self) -> jiff::Timestamp {
        self.posts.iter().map(|post| post.changed()).max().unwrap_or_default()
    }

    fn language(&self, post: &'m Post) -> &'m str {
        post.language(&self.model.settings.language)
    }
}

/// The address of a post, its lasting identifier: it differs from post to post and stays when the post is edited.
fn address(post: &Post) -> String {
    format!("{BASE}{}", encode_path(&post.path))
}

fn content(post: &Post) -> String {
    markup::absolute(&post.feed_html, &post.path)
}

/// Returns the picture at the head of a post, with its media type as far as its name tells.
fn enclosure(post: &Post) -> Option<(Cover<'_>, &'static str)> {
    let cover = cover(post)?;
    let media_type = cover.media_type()?;
    Some((cover, media_type))
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
