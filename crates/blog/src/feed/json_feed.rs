//! JSON Feed 1.1 (jsonfeed.org).

use serde_json::{Map, Value, json};

use super::{BASE, Feed, address, content, enclosure};
use crate::{
    json::{self, Place, clean},
    model::author_path,
    post::Post,
    slug::encode_path,
};

pub(super) fn write(feed: &Feed<'_>) -> String {
    let settings = &feed.model.settings;
    let mut top = Map::new();
    top.insert("version".to_owned(), "https://jsonfeed.org/version/1.1".into());
    top.insert("title".to_owned(), clean(&feed.title).into());
    top.insert("home_page_url".to_owned(), format!("{BASE}{}", feed.home).into());
    top.insert("feed_url".to_owned(), format!("{BASE}{}", feed.path).into());
    if let Some(description) = &settings.description {
        top.insert("description".to_owned(), clean(description).into());
    }
    if let Some(icon) = &feed.model.icon {
        top.insert("favicon".to_owned(), format!("{BASE}{}", encode_path(icon)).into());
    }
    top.insert("authors".to_owned(), vec![author(feed, &settings.author)].into());
    top.insert("language".to_owned(), settings.language.as_str().into());
    top.insert("items".to_owned(), feed.posts.iter().map(|post| item(feed, post)).collect());
    json::write(&top, Place::File)
}

fn item(feed: &Feed<'_>, post: &Post) -> Value {
    let url = address(post);
    let mut item = Map::new();
    item.insert("id".to_owned(), url.as_str().into());
    item.insert("url".to_owned(), url.into());
    item.insert("title".to_owned(), clean(&post.title).into());
    item.insert("content_html".to_owned(), content(post).into());
    if !post.summary.is_empty() {
        item.insert("summary".to_owned(), clean(&post.summary).into());
    }
    if let Some((cover, _)) = enclosure(post) {
        item.insert("image".to_owned(), cover.url.into_owned().into());
    }
    item.insert("date_published".to_owned(), format!("{:.0}", post.date.instant).into());
    item.insert("date_modified".to_owned(), format!("{:.0}", post.changed()).into());
    let authors = post.authors(&feed.model.settings);
    item.insert("authors".to_owned(), authors.into_iter().map(|name| author(feed, name)).collect());
    if !post.tags.is_empty() {
        item.insert("tags".to_owned(), post.tags.iter().map(|tag| Value::from(clean(tag))).collect());
    }
    item.insert("language".to_owned(), post.language(&feed.model.settings.language).into());
    item.into()
}

fn author(feed: &Feed<'_>, name: &str) -> Value {
    let path = author_path(name);
    if feed.model.authors.contains_key(&path) {
        json!({ "name": clean(name), "url": format!("{BASE}{}", encode_path(&path)) })
    } else {
        json!({ "name": clean(name) })
    }
}
