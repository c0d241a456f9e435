//! The sitemap (sitemaps.org 0.9) with the pictures and the translations of each text, as search engines read them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    digest::fingerprint,
    escape::escape,
    feed::{BASE, push_escaped_with_base},
    head::cover,
    model::{Group, Model, year_path},
    post::Post,
    slug::encode_path,
};

/// The limits of what one sitemap holds.
#[derive(Debug, Clone, Copy)]
struct Limits {
    urls: usize,
    bytes: usize,
}

/// The limits that sitemaps.org sets.
const LIMITS: Limits = Limits { urls: 50_000, bytes: 50 * 1024 * 1024 };

/// The pictures of a text that the sitemap names. Search engines read at most a thousand.
const PICTURES_MAX: usize = 50;

/// The room for the scheme and authority of each address ([`crate::slug::is_authority`]).
const BASE_BYTES_MAX: usize = "https://".len() + 255;

/// The most bytes that surround an address.
const FRAME_BYTES: usize = 120;

/// An address that search engines are told about.
#[derive(Debug)]
enum Listed<'m> {
    List { path: String, changed: Option<Timestamp> },
    Text(&'m Post),
}

/// Returns the number of sitemaps, at least one. If there are several, `/sitemap.xml` is the index of the others.
pub(crate) fn parts(model: &Model) -> usize {
    split(model, LIMITS).len()
}

/// Returns the address of the part with this number, counted from 1.
pub(crate) fn part_path(number: usize) -> String {
    format!("/sitemap-{number}.xml")
}

/// Returns a number that differs if any sitemap would differ.
pub(crate) fn sitemap_fingerprint(model: &Model) -> u128 {
    let shown = |listed: Listed<'_>| match listed {
        Listed::List { path, changed } => fingerprint(&(path, changed)),
        Listed::Text(post) => {
            let language = &model.settings.language;
            let others: Vec<_> = model.translations(post).iter().map(|other| (other.language(language), &other.path)).collect();
            let default = Some(language).filter(|_| !others.is_empty());
            fingerprint(&(&post.path, post.changed(), others, default, cover(post).map(|cover| cover.url), &post.pictures))
        }
    };
    fingerprint(&listed(model).into_iter().map(shown).collect::<Vec<_>>())
}

/// Writes `/sitemap.xml`: all addresses, or the index of the sitemaps if there are several. It begins with [`BASE`] where absolute addresses
/// do.
pub(crate) fn write(model: &Model) -> String {
    write_within(model, LIMITS)
}

fn write_within(model: &Model, limits: Limits) -> String {
    let parts = split(model, limits);
    if let [part] = &parts[..] {
        return urls(model, part);
    }
    let mut xml =
        String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for (index, part) in parts.iter().enumerate() {
        xml += &format!("<sitemap><loc>{BASE}{}</loc>", part_path(index + 1));
        if let Some(changed) = part.iter().filter_map(Listed::changed).max() {
            xml += &format!("<lastmod>{changed:.0}</lastmod>");
        }
        xml += "</sitemap>\n";
    }
    xml + "</sitemapindex>\n"
}

/// Writes the sitemap with this number, counted from 1, of several.
pub(crate) fn write_part(model: &Model, number: usize) -> String {
    write_part_within(model, number, LIMITS)
}

fn write_part_within(model: &Model, number: usize, limits: Limits) -> String {
    urls(model, split(model, limits).get(number - 1).map_or(&[], Vec::as_slice))
}

/// Splits all addresses into sitemaps that keep the limits whatever the scheme and authority of the site.
fn split(model: &Model, limits: Limits) -> Vec<Vec<Listed<'_>>> {
    let (mut parts, mut urls, mut bytes) = (vec![Vec::new()], 0, 0);
    for listed in listed(model) {
        let size = listed.bytes_max(model);
        if urls > 0 && (urls == limits.urls || bytes + size > limits.bytes) {
            (urls, bytes) = (0, 0);
            parts.push(Vec::new());
        }
        urls += 1;
        bytes += size;
        parts.last_mut().expect("there is always one part").push(listed);
    }
    parts
}

fn listed(model: &Model) -> Vec<Listed<'_>> {
    let newest = |posts: &mut dyn Iterator<Item = usize>| posts.map(|index| model.posts[index].changed()).max();
    let all = || newest(&mut (0..model.posts.len()));
    let mut listed = vec![Listed::List { path: "/".to_owned(), changed: all() }];
    if !model.posts.is_empty() {
        listed.push(Listed::List { path: "/archive/".to_owned(), changed: all() });
    }
    for (&year, posts) in &model.years {
        listed.push(Listed::List { path: year_path(year), changed: newest(&mut posts.iter().copied()) });
    }
    let nobody = BTreeMap::new();
    let authors = if model.has_authors() { &model.authors } else { &nobody };
    for (list, groups) in [(Some("/tags/"), &model.tags), (Some("/authors/"), authors), (None, &model.series)] {
        if let Some(path) = list.filter(|_| !groups.is_empty()) {
            listed.push(Listed::List { path: path.to_owned(), changed: None });
        }
        let group =
            |(path, group): (&String, &Group)| Listed::List { path: path.clone(), changed: newest(&mut group.posts.iter().copied()) };
        listed.extend(groups.iter().map(group));
    }
    let texts = model.posts.iter().chain(&model.pages).filter(|post| !post.front.noindex);
    listed.extend(texts.map(|post| Listed::Text(post)));
    listed
}

impl Listed<'_> {
    fn changed(&self) -> Option<Timestamp> {
        match self {
            Self::List { changed, .. } => *changed,
            Self::Text(post) => Some(post.changed()),
        }
    }

    /// Returns more bytes than the entry takes: every byte of an address can become three, and `&` five.
    fn bytes_max(&self, model: &Model) -> usize {
        let address = |path: &str| FRAME_BYTES + BASE_BYTES_MAX + path.len() * 5;
        match self {
            Self::List { path, .. } => address(path),
            Self::Text(post) => {
                let pictures = post.pictures.len().min(PICTURES_MAX) + 1;
                let translations = model.translations(post);
                let translations = translations.iter().map(|other| address(&other.path)).sum::<usize>();
                address(&post.path) + 2 * translations + pictures * PICTURE_BYTES_MAX
            }
        }
    }
}

/// The length of an address of a picture in the sitemap. Longer ones are left out.
const PICTURE_BYTES_MAX: usize = 2048;

fn urls(model: &Model, listed: &[Listed<'_>]) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">\n",
    );
    for entry in listed {
        let path = match entry {
            Listed::List { path, .. } => path,
            Listed::Text(post) => &post.path,
        };
        xml += &format!("<url><loc>{BASE}{}</loc>", escape(&encode_path(path)));
        if let Some(changed) = entry.changed() {
            xml += &format!("<lastmod>{changed:.0}</lastmod>");
        }
        if let Listed::Text(post) = entry {
            push_translations(&mut xml, model, post);
            push_pictures(&mut xml, post);
        }
        xml += "</url>\n";
    }
    xml + "</urlset>\n"
}

/// Names every language of a text, its own included, as search engines ask.
fn push_translations(xml: &mut String, model: &Model, post: &Post) {
    let default = &model.settings.language;
    for translation in model.translations(post) {
        let language = translation.language(default);
        let url = escape(&encode_path(&translation.path));
        *xml += &format!("<xhtml:link rel=\"alternate\" hreflang=\"{}\" href=\"{BASE}{url}\"/>", escape(language));
        if language == default {
            *xml += &format!("<xhtml:link rel=\"alternate\" hreflang=\"x-default\" href=\"{BASE}{url}\"/>");
        }
    }
}

fn push_pictures(xml: &mut String, post: &Post) {
    let cover = cover(post).map(|cover| cover.url.into_owned());
    let pictures = post.pictures.iter().filter(|picture| Some(*picture) != cover.as_ref()).cloned();
    for picture in cover.iter().cloned().chain(pictures).filter(|url| url.len() < PICTURE_BYTES_MAX / 6).take(PICTURES_MAX) {
        xml.push_str("<image:image><image:loc>");
        push_escaped_with_base(xml, &picture);
        xml.push_str("</image:loc></image:image>");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{BlogOptions, build_texts};

    fn locs(xml: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(xml).expect("well-formed");
        document.descendants().filter(|node| node.tag_name().name() == "loc").filter_map(|node| node.text()).map(str::to_owned).collect()
    }

    /// sitemaps.org, "Using Sitemap index files": an index names the sitemaps, and each keeps the limits.
    #[test]
    fn a_large_blog_has_an_index_of_sitemaps_that_keep_the_limits() {
        let texts: Vec<_> = (1..=9).map(|n| (format!("p{n}.md"), format!("---\ntags: [t{n}]\n---\n# {}", "long ".repeat(n)))).collect();
        let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let site = build_texts(&texts, &BlogOptions::default(), semantics::Timestamp::from_secs(1_790_812_800)).expect("builds");
        let model = site.model();
        let whole: BTreeSet<String> = locs(&write(model).replace(BASE, "https://blog.test")).into_iter().collect();
        assert_eq!(parts(model), 1);
        // Far more than any entry here takes, and less than all of them together.
        let few_bytes = LIMITS.bytes.min(6 * (FRAME_BYTES + BASE_BYTES_MAX + PICTURE_BYTES_MAX + 100));
        for limits in [Limits { urls: 4, ..LIMITS }, Limits { bytes: few_bytes, ..LIMITS }] {
            let index = write_within(model, limits).replace(BASE, "https://blog.test");
            assert!(index.contains("<sitemapindex "), "{index}");
            let parts = locs(&index);
            let mut found = BTreeSet::new();
            for (number, url) in (1..).zip(&parts) {
                assert_eq!(*url, format!("https://blog.test{}", part_path(number)));
                // The longest scheme and authority that there can be.
                let part = write_part_within(model, number, limits).replace(BASE, &format!("https://{}", "a".repeat(255)));
                let urls = locs(&part);
                assert!(!urls.is_empty() && urls.len() <= limits.urls && part.len() <= limits.bytes, "{part}");
                found.extend(urls.into_iter().map(|url| url.replace(&"a".repeat(255), "blog.test")));
            }
            assert!(parts.len() > 1);
            assert_eq!(found, whole);
        }
    }
}
