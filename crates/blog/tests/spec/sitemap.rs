//! The sitemap (sitemaps.org 0.9), `robots.txt` and `llms.txt`.

use blog::BlogOptions;

use crate::folder::{Folder, page};

const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

fn options() -> BlogOptions {
    BlogOptions { base_url: Some("https://blog.test".to_owned()), ..BlogOptions::default() }
}

fn blog() -> (Folder, blog::Blog) {
    let folder = Folder::of(&[
        (
            "2026-03-01-sea.md",
            "---\nupdated: 2026-05-02\ntags: [sea & wall]\ncover: wave.jpg\n---\n# Sea\n\nFirst.\n\n![cat](cat.png) ![](https://x.test/a.png?b=1&c=2)",
        ),
        ("2026-03-01-sea.de.md", "# Meer\n\nErster."),
        ("hidden.md", "---\nnoindex: true\ndate: 2026-01-01\n---\n# Hidden"),
        ("draft.md", "---\ndraft: true\n---\n# Draft"),
        ("pages/about.md", "---\ndate: 2026-02-02\n---\n# About [us]"),
        ("cat.png", "png"),
        ("wave.jpg", "jpg"),
    ]);
    let blog = folder.blog_with(options());
    (folder, blog)
}

#[test]
fn the_sitemap_names_what_can_be_found_and_nothing_else() {
    let (_folder, blog) = blog();
    let xml = page(&blog, "/sitemap.xml");
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    assert!(document.root_element().has_tag_name((SITEMAP, "urlset")));
    let locs: Vec<_> = document.descendants().filter(|node| node.has_tag_name((SITEMAP, "loc"))).filter_map(|node| node.text()).collect();
    for loc in &locs {
        let path = loc.strip_prefix("https://blog.test").expect("absolute").replace("%20", " ");
        assert!(blog.site().contains(&path), "{loc}");
    }
    let unique: std::collections::BTreeSet<_> = locs.iter().collect();
    assert_eq!(unique.len(), locs.len(), "{locs:?}");
    for path in ["/", "/sea/", "/about/", "/tags/", "/tags/sea-wall/", "/archive/", "/archive/2026/"] {
        assert!(locs.contains(&format!("https://blog.test{path}").as_str()), "{path}: {locs:?}");
    }
    assert!(!xml.contains("hidden") && !xml.contains("draft") && !xml.contains("search"), "{xml}");
}

#[test]
fn the_sitemap_tells_changes_pictures_and_translations() {
    let (_folder, blog) = blog();
    let xml = page(&blog, "/sitemap.xml");
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    let url = |loc: &str| document.descendants().find(|node| node.text() == Some(loc)).and_then(|node| node.parent()).expect("listed");
    let sea = url("https://blog.test/sea/");
    let texts = |name: &str| -> Vec<_> {
        sea.descendants().filter(|node| node.tag_name().name() == name && node.text().is_some()).filter_map(|node| node.text()).collect()
    };
    assert_eq!(texts("lastmod"), ["2026-05-02T00:00:00Z"]);
    let pictures: Vec<_> = sea
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.google.com/schemas/sitemap-image/1.1", "loc")))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(pictures, ["https://blog.test/wave.jpg", "https://blog.test/cat.png", "https://x.test/a.png?b=1&c=2"]);
    let links: Vec<_> = sea
        .children()
        .filter(|node| node.has_tag_name(("http://www.w3.org/1999/xhtml", "link")))
        .map(|node| (node.attribute("hreflang").unwrap_or_default(), node.attribute("href").unwrap_or_default()))
        .collect();
    let de = links.iter().find(|(language, _)| *language == "de").expect("the German text").1;
    assert!(links.contains(&("en", "https://blog.test/sea/")) && links.contains(&("x-default", "https://blog.test/sea/")), "{links:?}");
    assert!(blog.site().contains(de.strip_prefix("https://blog.test").expect("absolute")), "{links:?}");
}

#[test]
fn robots_find_the_sitemap() {
    let (_folder, blog) = blog();
    assert_eq!(page(&blog, "/robots.txt"), "User-agent: *\nAllow: /\n\nSitemap: https://blog.test/sitemap.xml\n");
}

/// llmstxt.org, "Format": a heading with the title, a quote that summarises, and sections of links.
#[test]
fn llms_txt_lists_the_texts_as_markdown() {
    let folder = Folder::of(&[
        ("blog.toml", "title = \"By the sea\"\ndescription = \"Notes\\nfrom a wall\"\n"),
        ("2026-03-01-sea.md", "# The [sea]\n\nFirst words."),
        ("hidden.md", "---\nnoindex: true\n---\n# Hidden"),
        ("pages/about.md", "# About"),
    ]);
    let text = page(&folder.blog_with(options()), "/llms.txt");
    let expected = "# By the sea\n\n> Notes from a wall\n\n## Posts\n\n- [The \\[sea\\]](https://blog.test/sea/index.md): First words.\n\n## Pages\n\n\
                    - [About](https://blog.test/about/index.md)\n";
    assert!(text.starts_with(expected), "{text}");
}
