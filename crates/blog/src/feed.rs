//! What machines read: the Atom feed (RFC 4287), the sitemap (sitemaps.org 0.9) and `robots.txt`.
//!
//! All three need absolute addresses. Where `base_url` is not set, scheme and host are known only when a request comes, so the texts are
//! built with [`BASE`] in their place and completed for each request: three short texts, and the cache in front keeps the result per host.

use std::sync::Arc;

use crate::{
    escape::{escape, push_escaped},
    model::Model,
    post::Post,
    slug::encode_path,
};

/// Placeholder for scheme and authority. XML forbids the character and [`escape`] drops it, so no text of an author can contain it.
pub(crate) const BASE: &str = "\u{1}";

/// The number of entries in the feed.
const ENTRIES_MAX: usize = 20;

/// The number of URLs that the definition of sitemaps allows.
const SITEMAP_URLS_MAX: usize = 50_000;

/// Returns the posts in the feed.
pub(crate) fn newest(model: &Model) -> impl Iterator<Item = &Arc<Post>> {
    model.posts.iter().take(ENTRIES_MAX)
}

/// Writes `/feed.xml`.
pub(crate) fn atom(model: &Model) -> String {
    let settings = &model.settings;
    let updated = newest(model).map(|post| post.changed()).max().unwrap_or_default();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    xml += &format!("<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:lang=\"{}\" xml:base=\"{BASE}/\">\n", settings.language);
    xml += &format!("<id>{BASE}/</id>\n<title>{}</title>\n", escape(&settings.title));
    if let Some(description) = &settings.description {
        xml += &format!("<subtitle>{}</subtitle>\n", escape(description));
    }
    xml += &format!("<updated>{updated:.0}</updated>\n<author><name>{}</name></author>\n", escape(&settings.author));
    xml += &format!("<link rel=\"alternate\" type=\"text/html\" href=\"{BASE}/\"/>\n");
    xml += &format!("<link rel=\"self\" type=\"application/atom+xml\" href=\"{BASE}/feed.xml\"/>\n");
    xml += "<generator>Seawall</generator>\n";
    for post in newest(model) {
        let url = format!("{BASE}{}", escape(&encode_path(&post.path)));
        xml += &format!("<entry xml:base=\"{url}\">\n<id>{url}</id>\n<title>{}</title>\n", escape(&post.title));
        xml += &format!("<link rel=\"alternate\" type=\"text/html\" href=\"{url}\"/>\n");
        xml += &format!("<published>{:.0}</published>\n<updated>{:.0}</updated>\n", post.date.instant, post.changed());
        for tag in &post.tags {
            xml += &format!("<category term=\"{}\"/>\n", escape(tag));
        }
        if !post.summary.is_empty() {
            xml += &format!("<summary>{}</summary>\n", escape(&post.summary));
        }
        xml += "<content type=\"html\">";
        for (index, part) in post.feed_html.split(BASE).enumerate() {
            if index > 0 {
                xml += BASE;
            }
            push_escaped(&mut xml, part);
        }
        xml += "</content>\n</entry>\n";
    }
    xml + "</feed>\n"
}

/// Writes `/sitemap.xml`: every address, with the day of its last change if that is known.
pub(crate) fn sitemap(model: &Model) -> String {
    let lists = ["/", "/tags/"].into_iter().chain(model.tags.keys().map(String::as_str)).map(|path| (path, None));
    let texts = model.posts.iter().chain(&model.pages).map(|post| (post.path.as_str(), Some(post.changed())));
    let addresses = lists.chain(texts);
    let mut xml =
        String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for (path, changed) in addresses.take(SITEMAP_URLS_MAX) {
        xml += &format!("<url><loc>{BASE}{}</loc>", escape(&encode_path(path)));
        if let Some(changed) = changed {
            xml += &format!("<lastmod>{changed:.0}</lastmod>");
        }
        xml += "</url>\n";
    }
    xml + "</urlset>\n"
}

/// Writes `/robots.txt`, which allows everything and names the sitemap.
pub(crate) fn robots() -> String {
    format!("User-agent: *\nAllow: /\n\nSitemap: {BASE}/sitemap.xml\n")
}
