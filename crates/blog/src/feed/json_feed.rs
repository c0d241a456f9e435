//! JSON Feed 1.1 (jsonfeed.org).

use serde_json::{Map, Value, json};

use super::{Author, BASE, Entry, Feed};
use crate::json::{self, Container, clean};

pub(super) fn write(feed: &Feed<'_>) -> String {
    let Feed { title, description, path, home, language, author, icon, updated: _, entries } = feed;
    let mut top = Map::new();
    let mut set = |key: &str, value: Value| top.insert(key.to_owned(), value);
    set("version", "https://jsonfeed.org/version/1.1".into());
    set("title", clean(title).into());
    set("home_page_url", format!("{BASE}{home}").into());
    set("feed_url", format!("{BASE}{path}").into());
    if let Some(description) = description {
        set("description", clean(description).into());
    }
    if let Some(icon) = icon {
        set("favicon", format!("{BASE}{icon}").into());
    }
    if let Some(author) = author {
        set("authors", vec![of_author(author)].into());
    }
    set("language", (*language).into());
    set("items", entries.iter().map(|entry| item(entry, language)).collect());
    json::write(&top, Container::File)
}

fn item(entry: &Entry<'_>, of_feed: &str) -> Value {
    let Entry { url, title, summary, published, updated, language, authors, tags, cover, content } = entry;
    let mut item = Map::new();
    let mut set = |key: &str, value: Value| item.insert(key.to_owned(), value);
    set("id", url.as_str().into());
    set("url", url.as_str().into());
    set("title", clean(title).into());
    set("content_html", content.html().into());
    if !summary.is_empty() {
        set("summary", clean(summary).into());
    }
    if let Some(cover) = cover {
        set("image", cover.url.clone().into());
    }
    set("date_published", format!("{published:.0}").into());
    set("date_modified", format!("{updated:.0}").into());
    set("authors", authors.iter().map(of_author).collect());
    if !tags.is_empty() {
        set("tags", tags.iter().map(|tag| Value::from(clean(tag))).collect());
    }
    set("language", language.unwrap_or(of_feed).into());
    item.into()
}

fn of_author(Author { name, url }: &Author<'_>) -> Value {
    match url {
        Some(url) => json!({ "name": clean(name), "url": url }),
        None => json!({ "name": clean(name) }),
    }
}
