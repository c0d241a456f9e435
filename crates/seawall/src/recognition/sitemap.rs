//! The look at a sitemap: whether what it says of a Ghost's pages is what it said before.
//!
//! A Ghost writes every publication into its sitemaps at once. Its index has the time of the newest change of each type, but misses what is
//! deleted, and its list of pages gives the front page the time at which Ghost was started. So the lists themselves are read, without the front page.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    time::Duration,
};

use http::StatusCode;

use super::ask::Server;

/// The longest time that one look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes that are read of one list. The newest changes come first, so what is beyond them changes seldom.
const LIST_BYTES_MAX: usize = 1 << 20;

/// The lists that are read. Ghost has one for each of four types, and further ones beyond 50,000 pages.
const LISTS_MAX: usize = 8;

/// The digest of what a look has seen: equal numbers stand for equal sitemaps.
pub(crate) type ListingDigest = u64;

/// Looks at the sitemaps of a Ghost. Returns `None` if it cannot tell: then the next look may.
pub(crate) async fn look(server: &Server, base_path: &str) -> Option<ListingDigest> {
    tokio::time::timeout(PATIENCE, read(server, base_path)).await.ok()?
}

async fn read(server: &Server, base_path: &str) -> Option<ListingDigest> {
    let open = server.open().ok()?;
    let get = async |path: &str| {
        let answer = open.get(path, "application/xml,text/xml", LIST_BYTES_MAX).await.ok()?;
        (!answer.status.is_server_error()).then_some(answer)
    };
    let index = get(&format!("{base_path}/sitemap.xml")).await?;
    let mut seen = DefaultHasher::new();
    // A Ghost that has become private sends everybody to its password page.
    index.status.as_u16().hash(&mut seen);
    if index.status == StatusCode::OK {
        for path in lists(&String::from_utf8_lossy(&index.body)) {
            let list = get(&path).await?;
            path.hash(&mut seen);
            list.status.as_u16().hash(&mut seen);
            hash_list(&String::from_utf8_lossy(&list.body), base_path, &mut seen);
        }
    }
    Some(seen.finish())
}

/// Returns the paths of the lists that an index names.
fn lists(index: &str) -> Vec<String> {
    let paths = locations(index).filter_map(|url| url.parse::<http::Uri>().ok()).map(|uri| uri.path().to_owned());
    paths.filter(|path| path.ends_with(".xml")).take(LISTS_MAX).collect()
}

fn locations(xml: &str) -> impl Iterator<Item = &str> {
    xml.split("<loc>").skip(1).filter_map(|rest| Some(rest.split_once("</loc>")?.0))
}

/// Hashes the entries of a list, without that of the front page.
fn hash_list(list: &str, base_path: &str, seen: &mut DefaultHasher) {
    for entry in list.split("<url>").skip(1) {
        let path = locations(entry).next().and_then(|url| url.parse::<http::Uri>().ok());
        let is_front = path.is_some_and(|uri| uri.path().trim_end_matches('/') == base_path);
        if !is_front {
            entry.hash(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_names_its_lists() {
        let index = "<?xml version=\"1.0\"?><sitemapindex><sitemap><loc>http://127.0.0.1:2368/sitemap-pages.xml</loc><lastmod>2026-11-23T00:36:15.270Z</lastmod></sitemap><sitemap><loc>http://127.0.0.1:2368/blog/sitemap-posts.xml</loc></sitemap></sitemapindex>";
        assert_eq!(lists(index), ["/sitemap-pages.xml", "/blog/sitemap-posts.xml"]);
        assert!(lists("<html><loc>").is_empty());
    }

    #[test]
    fn a_list_has_changed_if_a_page_other_than_the_front_page_has() {
        let hash = |list: &str, base_path: &str| {
            let mut seen = DefaultHasher::new();
            hash_list(list, base_path, &mut seen);
            seen.finish()
        };
        let list =
            "<urlset><url><loc>http://a/</loc><lastmod>1</lastmod></url><url><loc>http://a/x/</loc><lastmod>1</lastmod></url></urlset>";
        assert_eq!(hash(list, ""), hash(&list.replacen(">1<", ">2<", 1), ""));
        assert_ne!(hash(list, ""), hash(&list.replace("x/</loc><lastmod>1", "x/</loc><lastmod>2"), ""));
        assert_ne!(hash(list, ""), hash(&list.replace("<url><loc>http://a/x/</loc><lastmod>1</lastmod></url>", ""), ""));
        assert_eq!(
            hash(&list.replacen("a/<", "a/blog/<", 1), "/blog"),
            hash(&list.replacen("a/<", "a/blog/<", 1).replacen(">1<", ">2<", 1), "/blog")
        );
    }
}
