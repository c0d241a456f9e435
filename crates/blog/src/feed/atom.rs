//! Atom (RFC 4287).

use super::{BASE, Feed, Format, address, content, enclosure, escape_with_base, push_escaped_with_base};
use crate::{escape::escape, model::author_path, slug::encode_path};

pub(super) fn write(feed: &Feed<'_>) -> String {
    let settings = &feed.model.settings;
    let (home, path) = (escape(&feed.home), escape(&feed.path));
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    xml += &format!("<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:lang=\"{}\" xml:base=\"{BASE}/\">\n", escape(&settings.language));
    xml += &format!("<id>{BASE}{home}</id>\n<title>{}</title>\n", escape(&feed.title));
    if let Some(description) = &settings.description {
        xml += &format!("<subtitle>{}</subtitle>\n", escape(description));
    }
    xml += &format!("<updated>{:.0}</updated>\n", feed.updated());
    // RFC 4287 §4.1.1: without it, every entry must name its author.
    xml += &author(feed, &settings.author);
    xml += &format!("<link rel=\"alternate\" type=\"text/html\" href=\"{BASE}{home}\"/>\n");
    xml += &format!("<link rel=\"self\" type=\"{}\" href=\"{BASE}{path}\"/>\n", Format::Atom.media_type());
    if let Some(icon) = &feed.model.icon {
        xml += &format!("<icon>{BASE}{}</icon>\n", escape(&encode_path(icon)));
    }
    xml += "<generator>Seawall</generator>\n";
    for post in &feed.posts {
        let url = escape_with_base(&address(post));
        let language = feed.language(post);
        let lang = if language == settings.language { String::new() } else { format!(" xml:lang=\"{}\"", escape(language)) };
        xml += &format!("<entry xml:base=\"{url}\"{lang}>\n<id>{url}</id>\n<title>{}</title>\n", escape(&post.title));
        xml += &format!("<link rel=\"alternate\" type=\"text/html\" href=\"{url}\"/>\n");
        if let Some((cover, media_type)) = enclosure(post) {
            xml += &format!("<link rel=\"enclosure\" type=\"{media_type}\" href=\"{}\"/>\n", escape_with_base(&cover.url));
        }
        xml += &format!("<published>{:.0}</published>\n<updated>{:.0}</updated>\n", post.date.instant, post.changed());
        for name in &post.front.authors {
            xml += &author(feed, name);
        }
        for tag in &post.tags {
            xml += &format!("<category term=\"{}\"/>\n", escape(tag));
        }
        if !post.summary.is_empty() {
            xml += &format!("<summary>{}</summary>\n", escape(&post.summary));
        }
        xml += "<content type=\"html\">";
        push_escaped_with_base(&mut xml, &content(post));
        xml += "</content>\n</entry>\n";
    }
    xml + "</feed>\n"
}

fn author(feed: &Feed<'_>, name: &str) -> String {
    let path = author_path(name);
    let uri = if feed.model.authors.contains_key(&path) {
        format!("<uri>{BASE}{}</uri>", escape(&encode_path(&path)))
    } else {
        String::new()
    };
    format!("<author><name>{}</name>{uri}</author>\n", escape(name))
}
