//! RSS 2.0 (rssboard.org), with the extensions that readers expect: `content:encoded`, `dc:creator`, `media:content` and `atom:link`.

use jiff::Timestamp;

use super::{BASE, Feed, Format, address, content, enclosure, escape_with_base, push_escaped_with_base};
use crate::escape::escape;

const OPENING: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\" \
                       xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
                       xmlns:media=\"http://search.yahoo.com/mrss/\">\n<channel>\n";

pub(super) fn write(feed: &Feed<'_>) -> String {
    let settings = &feed.model.settings;
    let mut xml = String::from(OPENING);
    // The three elements that a channel must have.
    xml += &format!("<title>{}</title>\n<link>{BASE}{}</link>\n", escape(&feed.title), escape(&feed.home));
    xml += &format!("<description>{}</description>\n", escape(settings.description.as_ref().unwrap_or(&settings.title)));
    xml += &format!("<atom:link rel=\"self\" type=\"{}\" href=\"{BASE}{}\"/>\n", Format::Rss.media_type(), escape(&feed.path));
    xml += &format!("<language>{}</language>\n<lastBuildDate>{}</lastBuildDate>\n", escape(&settings.language), date(feed.updated()));
    xml += "<generator>Seawall</generator>\n<docs>https://www.rssboard.org/rss-specification</docs>\n";
    for post in &feed.posts {
        let url = escape_with_base(&address(post));
        xml += &format!("<item>\n<title>{}</title>\n<link>{url}</link>\n<guid isPermaLink=\"true\">{url}</guid>\n", escape(&post.title));
        xml += &format!("<pubDate>{}</pubDate>\n", date(post.date.instant));
        for name in post.authors(settings) {
            xml += &format!("<dc:creator>{}</dc:creator>\n", escape(name));
        }
        for tag in &post.tags {
            xml += &format!("<category>{}</category>\n", escape(tag));
        }
        if !post.summary.is_empty() {
            xml += &format!("<description>{}</description>\n", escape(&post.summary));
        }
        if let Some((cover, media_type)) = enclosure(post) {
            let url = escape_with_base(&cover.url);
            // The length is required; 0 stands for one that is not known.
            xml += &format!("<enclosure url=\"{url}\" length=\"0\" type=\"{media_type}\"/>\n");
            xml += &format!("<media:content url=\"{url}\" medium=\"image\" type=\"{media_type}\"/>\n");
        }
        xml += "<content:encoded>";
        push_escaped_with_base(&mut xml, &content(post));
        xml += "</content:encoded>\n</item>\n";
    }
    xml + "</channel>\n</rss>\n"
}

/// Writes a date as RFC 822 does, with the year in four digits as RSS allows.
fn date(instant: Timestamp) -> String {
    instant.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}
