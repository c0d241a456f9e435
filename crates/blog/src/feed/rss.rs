//! RSS 2.0 (rssboard.org), with the extensions that readers expect: `content:encoded`, `dc:creator`, `media:content`, `atom:link`.

use jiff::Timestamp;

use super::{BASE, Entry, Feed, Format, escape_with_base, push_escaped_with_base};
use crate::escape::escape;

const OPENING: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\" \
                       xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
                       xmlns:media=\"http://search.yahoo.com/mrss/\">\n<channel>\n";

pub(super) fn write(feed: &Feed<'_>) -> String {
    let Feed { title, description, path, home, language, author: _, icon: _, updated, entries } = feed;
    let mut xml = String::from(OPENING);
    // The three elements that a channel must have.
    xml += &format!("<title>{}</title>\n<link>{BASE}{}</link>\n", escape(title), escape(home));
    xml += &format!("<description>{}</description>\n", escape(description.unwrap_or(title)));
    xml += &format!("<atom:link rel=\"self\" type=\"{}\" href=\"{BASE}{}\"/>\n", Format::Rss.media_type(), escape(path));
    xml += &format!("<language>{}</language>\n<lastBuildDate>{}</lastBuildDate>\n", escape(language), date(*updated));
    xml += "<generator>Seawall</generator>\n<docs>https://www.rssboard.org/rss-specification</docs>\n";
    for entry in entries {
        push_item(&mut xml, entry);
    }
    xml + "</channel>\n</rss>\n"
}

fn push_item(xml: &mut String, entry: &Entry<'_>) {
    let Entry { url, title, summary, published, updated, language, authors, tags, cover, content } = entry;
    let url = escape_with_base(url);
    *xml += &format!("<item>\n<title>{}</title>\n<link>{url}</link>\n<guid isPermaLink=\"true\">{url}</guid>\n", escape(title));
    *xml += &format!("<pubDate>{}</pubDate>\n<atom:updated>{updated:.0}</atom:updated>\n", date(*published));
    if let Some(language) = language {
        *xml += &format!("<dc:language>{}</dc:language>\n", escape(language));
    }
    for author in authors {
        *xml += &format!("<dc:creator>{}</dc:creator>\n", escape(author.name));
    }
    for tag in *tags {
        *xml += &format!("<category>{}</category>\n", escape(tag));
    }
    if !summary.is_empty() {
        *xml += &format!("<description>{}</description>\n", escape(summary));
    }
    if let Some(cover) = cover {
        let (media_type, url) = (cover.media_type, escape_with_base(&cover.url));
        // The length is required; 0 stands for one that is not known.
        *xml += &format!("<enclosure url=\"{url}\" length=\"0\" type=\"{media_type}\"/>\n");
        *xml += &format!("<media:content url=\"{url}\" medium=\"image\" type=\"{media_type}\"/>\n");
    }
    *xml += "<content:encoded>";
    push_escaped_with_base(xml, &content.html());
    *xml += "</content:encoded>\n</item>\n";
}

/// Writes a date as RFC 822 does, with the year in four digits as RSS allows.
fn date(instant: Timestamp) -> String {
    instant.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}
