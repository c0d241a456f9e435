//! Atom (RFC 4287).

use super::{Author, BASE, Entry, Feed, Format, escape_with_base, push_escaped_with_base};
use crate::escape::escape;

pub(super) fn write(feed: &Feed<'_>) -> String {
    let Feed { title, description, path, home, language, author, icon, updated, entries } = feed;
    let (home, path) = (escape(home), escape(path));
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    xml += &format!("<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:lang=\"{}\" xml:base=\"{BASE}/\">\n", escape(language));
    xml += &format!("<id>{BASE}{home}</id>\n<title>{}</title>\n", escape(title));
    if let Some(description) = description {
        xml += &format!("<subtitle>{}</subtitle>\n", escape(description));
    }
    xml += &format!("<updated>{updated:.0}</updated>\n");
    if let Some(author) = author {
        push_author(&mut xml, author);
    }
    xml += &format!("<link rel=\"alternate\" type=\"text/html\" href=\"{BASE}{home}\"/>\n");
    xml += &format!("<link rel=\"self\" type=\"{}\" href=\"{BASE}{path}\"/>\n", Format::Atom.media_type());
    if let Some(icon) = icon {
        xml += &format!("<icon>{BASE}{}</icon>\n", escape(icon));
    }
    xml += "<generator>Seawall</generator>\n";
    for entry in entries {
        push_entry(&mut xml, entry);
    }
    xml + "</feed>\n"
}

fn push_entry(xml: &mut String, entry: &Entry<'_>) {
    let Entry { url, title, summary, published, updated, language, authors, tags, cover, content } = entry;
    let url = escape_with_base(url);
    let lang = language.map_or_else(String::new, |language| format!(" xml:lang=\"{}\"", escape(language)));
    *xml += &format!("<entry xml:base=\"{url}\"{lang}>\n<id>{url}</id>\n<title>{}</title>\n", escape(title));
    *xml += &format!("<link rel=\"alternate\" type=\"text/html\" href=\"{url}\"/>\n");
    if let Some(cover) = cover {
        let (media_type, url) = (cover.media_type, escape_with_base(&cover.url));
        *xml += &format!("<link rel=\"enclosure\" type=\"{media_type}\" href=\"{url}\"/>\n");
    }
    *xml += &format!("<published>{published:.0}</published>\n<updated>{updated:.0}</updated>\n");
    for author in authors {
        push_author(xml, author);
    }
    for tag in *tags {
        *xml += &format!("<category term=\"{}\"/>\n", escape(tag));
    }
    if !summary.is_empty() {
        *xml += &format!("<summary>{}</summary>\n", escape(summary));
    }
    *xml += "<content type=\"html\">";
    push_escaped_with_base(xml, &content.html());
    *xml += "</content>\n</entry>\n";
}

fn push_author(xml: &mut String, Author { name, url }: &Author<'_>) {
    let uri = url.as_deref().map_or_else(String::new, |url| format!("<uri>{}</uri>", escape_with_base(url)));
    *xml += &format!("<author><name>{}</name>{uri}</author>\n", escape(name));
}
