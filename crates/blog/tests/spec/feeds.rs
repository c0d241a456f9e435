//! Feeds: Atom (RFC 4287), RSS 2.0 and JSON Feed 1.1.

use blog::BlogOptions;
use serde_json::Value;

use crate::folder::{Folder, page};

const ATOM: &str = "http://www.w3.org/2005/Atom";

fn options() -> BlogOptions {
    BlogOptions { base_url: Some("https://blog.test".to_owned()), ..BlogOptions::default() }
}

/// Returns a blog of which everything ends in a feed: two authors, tags, a cover, another language, HTML of the author's own, and what XML
/// and JSON have to escape.
fn blog() -> (Folder, blog::Blog) {
    let folder = Folder::of(&[
        ("blog.toml", "title = \"By <the> sea & more\"\ndescription = \"Notes \\\"from\\\" a wall\"\nauthor = \"Ann\"\n"),
        (
            "posts/tides.md",
            "+++\ntitle = \"Tides <b> & \\\"more\\\" \\u0001\"\ndate = 2026-03-01T10:00:00+01:00\nupdated = 2026-04-01\ntags = [\"x<y\", \"sea\"]\n\
             cover = \"wave.jpg\"\nauthor = \"Ann\"\n+++\nText & ![i](cat.png) [l](b.md) \u{1} ]]>\n\n\
             <img src=\"cat.png\" srcset=\"cat.png 1x, /big.png 2x\"><video poster='/p.jpg'></video><a href=\"#part\">p</a>\
             <script>alert(1)</script>\n\n```\n<&\u{1}>\n```\n",
        ),
        (
            "posts/b.md",
            "+++\ntitle = \"Beh\"\ndate = 2026-01-01\nlang = \"de\"\nauthor = \"Ben\"\nsummary = \"Kurz\"\ntags = [\"sea\"]\n+++\n<p>roh</p>",
        ),
        ("posts/cat.png", "png"),
        ("posts/wave.jpg", "jpg"),
        ("big.png", "png"),
        ("p.jpg", "jpg"),
        ("pages/about.md", "# About"),
    ]);
    let blog = folder.blog_with(options());
    (folder, blog)
}

type Node<'a> = roxmltree::Node<'a, 'a>;

fn named<'a>(node: Node<'a>, namespace: &'a str, name: &'a str) -> Vec<Node<'a>> {
    let is_it = |n: &Node<'_>| n.tag_name().name() == name && n.tag_name().namespace().unwrap_or_default() == namespace;
    node.children().filter(is_it).collect()
}

fn texts<'a>(node: Node<'a>, namespace: &'a str, name: &'a str) -> Vec<&'a str> {
    named(node, namespace, name).into_iter().map(|n| n.text().unwrap_or_default()).collect()
}

/// Checks that content, whatever the format, has no link that is not absolute, and no script.
fn assert_absolute(content: &str) {
    for link in ["https://blog.test/posts/cat.png", "https://blog.test/b/", "https://blog.test/big.png 2x", "https://blog.test/p.jpg"] {
        assert!(content.contains(link), "{link}: {content}");
    }
    assert!(content.contains("href=\"https://blog.test/tides/#part\""), "{content}");
    assert!(!content.contains("<script") && !content.contains('\u{1}'), "{content}");
    for mark in ["href=\"", "src=\"", "poster=\"", "srcset=\""] {
        for rest in content.split(mark).skip(1) {
            assert!(rest.starts_with("https://"), "{mark}{rest}");
        }
    }
}

/// RFC 4287 §4.1.1 and §4.1.2: what a feed and an entry must have, and have once.
#[test]
fn the_atom_feed_has_what_rfc_4287_asks() {
    let (_folder, blog) = blog();
    let xml = page(&blog, "/feed.xml");
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    let feed = document.root_element();
    assert!(feed.has_tag_name((ATOM, "feed")));
    assert_eq!(texts(feed, ATOM, "id"), ["https://blog.test/"]);
    assert_eq!(texts(feed, ATOM, "title"), ["By <the> sea & more"]);
    assert_eq!(texts(feed, ATOM, "subtitle"), ["Notes \"from\" a wall"]);
    assert_eq!(texts(feed, ATOM, "updated"), ["2026-04-01T00:00:00Z"]);
    let links = |node: Node<'_>, rel: &str| -> Vec<String> {
        let links = named(node, ATOM, "link");
        links
            .iter()
            .filter(|link| link.attribute("rel") == Some(rel))
            .filter_map(|link| link.attribute("href"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(
        (links(feed, "self"), links(feed, "alternate")),
        (vec!["https://blog.test/feed.xml".to_owned()], vec!["https://blog.test/".to_owned()])
    );

    let entries = named(feed, ATOM, "entry");
    assert_eq!(
        entries.iter().map(|entry| texts(*entry, ATOM, "id")[0]).collect::<Vec<_>>(),
        ["https://blog.test/tides/", "https://blog.test/b/"]
    );
    for entry in &entries {
        for name in ["id", "title", "updated", "published", "content", "summary", "author"] {
            assert_eq!(named(*entry, ATOM, name).len(), 1, "{name}");
        }
        assert_eq!(links(*entry, "alternate"), texts(*entry, ATOM, "id"));
    }
    let [tides, b] = entries[..] else { panic!("two entries") };
    assert_eq!(texts(tides, ATOM, "title"), ["Tides <b> & \"more\" "]);
    assert_eq!(texts(tides, ATOM, "published"), ["2026-03-01T09:00:00Z"]);
    assert_eq!(texts(tides, ATOM, "updated"), ["2026-04-01T00:00:00Z"]);
    assert_eq!(links(tides, "enclosure"), ["https://blog.test/posts/wave.jpg"]);
    assert_eq!(named(tides, ATOM, "category").iter().filter_map(|n| n.attribute("term")).collect::<Vec<_>>(), ["x<y", "sea"]);
    let author = named(tides, ATOM, "author")[0];
    assert_eq!((texts(author, ATOM, "name"), texts(author, ATOM, "uri")), (vec!["Ann"], vec!["https://blog.test/authors/ann/"]));
    assert_eq!(b.attribute(("http://www.w3.org/XML/1998/namespace", "lang")), Some("de"));
    assert_absolute(texts(tides, ATOM, "content")[0]);
}

/// RSS 2.0: a channel has title, link and description; a date is that of RFC 822; an enclosure has all three attributes.
#[test]
fn the_rss_feed_has_what_its_specification_asks() {
    let (_folder, blog) = blog();
    let xml = page(&blog, "/rss.xml");
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    let channel = named(document.root_element(), "", "channel")[0];
    assert_eq!(document.root_element().attribute("version"), Some("2.0"));
    assert_eq!(texts(channel, "", "title"), ["By <the> sea & more"]);
    assert_eq!(texts(channel, "", "link"), ["https://blog.test/"]);
    assert_eq!(texts(channel, "", "description"), ["Notes \"from\" a wall"]);
    assert_eq!(named(channel, ATOM, "link")[0].attribute("href"), Some("https://blog.test/rss.xml"));
    assert_eq!(texts(channel, "", "lastBuildDate"), ["Wed, 01 Apr 2026 00:00:00 +0000"]);
    let items = named(channel, "", "item");
    assert_eq!(items.len(), 2);
    let tides = items[0];
    assert_eq!(texts(tides, "", "guid"), ["https://blog.test/tides/"]);
    assert_eq!(texts(tides, "", "pubDate"), ["Sun, 01 Mar 2026 09:00:00 +0000"]);
    assert_eq!(texts(tides, "http://purl.org/dc/elements/1.1/", "creator"), ["Ann"]);
    assert_eq!(texts(tides, "", "category"), ["x<y", "sea"]);
    let enclosure = named(tides, "", "enclosure")[0];
    let attributes = ["url", "length", "type"].map(|name| enclosure.attribute(name).unwrap_or_default());
    assert_eq!(attributes, ["https://blog.test/posts/wave.jpg", "0", "image/jpeg"]);
    assert_absolute(texts(tides, "http://purl.org/rss/1.0/modules/content/", "encoded")[0]);
}

/// JSON Feed 1.1: `version`, `title` and `items` are required, and of each item `id` and a content.
#[test]
fn the_json_feed_has_what_its_specification_asks() {
    let (_folder, blog) = blog();
    let feed: Value = serde_json::from_str(&page(&blog, "/feed.json")).expect("JSON");
    assert_eq!(feed["version"], "https://jsonfeed.org/version/1.1");
    assert_eq!(feed["title"], "By <the> sea & more");
    assert_eq!(
        (&feed["home_page_url"], &feed["feed_url"]),
        (&Value::from("https://blog.test/"), &Value::from("https://blog.test/feed.json"))
    );
    assert_eq!((&feed["language"], &feed["authors"][0]["name"]), (&Value::from("en"), &Value::from("Ann")));
    let tides = &feed["items"][0];
    assert_eq!((&tides["id"], &tides["url"]), (&Value::from("https://blog.test/tides/"), &Value::from("https://blog.test/tides/")));
    assert_eq!(tides["title"], "Tides <b> & \"more\" ");
    assert_eq!(
        (&tides["date_published"], &tides["date_modified"]),
        (&Value::from("2026-03-01T09:00:00Z"), &Value::from("2026-04-01T00:00:00Z"))
    );
    assert_eq!((&tides["image"], &tides["tags"]), (&Value::from("https://blog.test/posts/wave.jpg"), &serde_json::json!(["x<y", "sea"])));
    assert_eq!(feed["items"][1]["language"], "de");
    assert_absolute(tides["content_html"].as_str().expect("text"));
}

#[test]
fn each_tag_has_its_own_feeds_and_its_page_names_them() {
    let (_folder, blog) = blog();
    let html = page(&blog, "/tags/sea/");
    for (name, media_type) in
        [("feed.xml", "application/atom+xml"), ("rss.xml", "application/rss+xml"), ("feed.json", "application/feed+json")]
    {
        let of_sea = page(&blog, &format!("/tags/sea/{name}"));
        assert!(
            of_sea.contains("sea · By") && of_sea.contains("https://blog.test/tides/") && of_sea.contains("https://blog.test/b/"),
            "{of_sea}"
        );
        let other = page(&blog, &format!("/tags/x-y/{name}"));
        assert!(other.contains("https://blog.test/tides/") && !other.contains("Beh"), "{other}");
        for path in ["/", "/tags/sea/"] {
            let link = format!("type=\"{media_type}\" title=");
            assert!(html.contains(&link) && html.contains(&format!("href=\"{path}{name}\"")), "{path}{name}: {html}");
        }
        assert!(page(&blog, "/").contains(&format!("href=\"/{name}\"")));
    }
}

#[test]
fn a_feed_has_the_twenty_newest() {
    let texts: Vec<_> = (1..=25).map(|n| (format!("2026-01-{n:02}-p{n}.md"), format!("# Post {n}!"))).collect();
    let files: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = Folder::of(&files);
    let blog = folder.blog_with(options());
    for (path, mark) in [("/feed.xml", "<entry "), ("/rss.xml", "<item>"), ("/feed.json", "\"content_html\"")] {
        let feed = page(&blog, path);
        assert_eq!(feed.matches(mark).count(), 20, "{path}");
        assert!(feed.contains("Post 25!") && feed.contains("Post 6!") && !feed.contains("Post 5!"), "{path}");
    }
}

#[test]
fn an_empty_blog_has_valid_feeds() {
    let folder = Folder::of(&[]);
    let blog = folder.blog_with(options());
    for path in ["/feed.xml", "/rss.xml"] {
        let xml = page(&blog, path);
        assert!(roxmltree::Document::parse(&xml).is_ok(), "{xml}");
    }
    assert!(serde_json::from_str::<Value>(&page(&blog, "/feed.json")).expect("JSON")["items"].as_array().is_some_and(Vec::is_empty));
}

/// The identifier of a post is the same after an edit: readers see a change and no new post.
#[test]
fn identifiers_stay_when_a_post_is_edited() {
    let (folder, blog) = blog();
    let ids = |blog: &blog::Blog| -> Vec<String> {
        let feed: Value = serde_json::from_str(&page(blog, "/feed.json")).expect("JSON");
        feed["items"].as_array().expect("items").iter().map(|item| item["id"].to_string()).collect()
    };
    let before = ids(&blog);
    folder.write("posts/b.md", "+++\ntitle = \"Another title\"\ndate = 2026-01-01\nupdated = 2026-05-01\n+++\nOther words.");
    crate::folder::rebuilt(&blog);
    assert_eq!(ids(&blog), before);
}
