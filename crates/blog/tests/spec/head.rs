//! The head of a page: what search engines, other sites and feed readers are told.

use std::collections::BTreeMap;

use blog::{BlogOptions, SiteResource};
use serde_json::Value;

use crate::folder::{Folder, page};

fn options() -> BlogOptions {
    BlogOptions { base_url: Some("https://blog.test".to_owned()), ..BlogOptions::default() }
}

/// Returns the attributes of every element of this name in the head, in order.
fn elements(html: &str, name: &str) -> Vec<BTreeMap<String, String>> {
    let head = html.split_once("</head>").expect("a head").0;
    let mut found = Vec::new();
    for rest in head.split(&format!("<{name} ")).skip(1) {
        let mut rest = rest.split_once('>').expect("closed").0.trim();
        let mut attributes = BTreeMap::new();
        while let Some((key, value)) = rest.split_once("=\"") {
            let (value, more) = value.split_once('"').expect("quoted");
            attributes.insert(
                key.trim().to_owned(),
                value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'").replace("&amp;", "&"),
            );
            rest = more;
        }
        found.push(attributes);
    }
    found
}

/// Returns the values of a property of Open Graph, or of a named datum.
fn metas(html: &str, name: &str) -> Vec<String> {
    let is_it = |meta: &BTreeMap<String, String>| meta.get("property").or_else(|| meta.get("name")).is_some_and(|other| other == name);
    elements(html, "meta").into_iter().filter(is_it).map(|mut meta| meta.remove("content").unwrap_or_default()).collect()
}

fn links(html: &str, rel: &str) -> Vec<BTreeMap<String, String>> {
    elements(html, "link").into_iter().filter(|link| link.get("rel").is_some_and(|other| other == rel)).collect()
}

/// Returns the nodes of the JSON-LD by their types.
fn json_ld(html: &str) -> BTreeMap<String, Value> {
    let Some((_, rest)) = html.split_once("<script type=\"application/ld+json\">") else { return BTreeMap::new() };
    let json: Value = serde_json::from_str(rest.split_once("</script>").expect("closed").0).expect("JSON");
    assert_eq!(json["@context"], "https://schema.org");
    let nodes = json["@graph"].as_array().expect("nodes").iter();
    nodes.map(|node| (node["@type"].as_str().expect("a type").to_owned(), node.clone())).collect()
}

const POST: &str = "+++\ntitle = \"</script><script>alert(1)</script> & \\\"quotes\\\"\"\ndate = 2026-03-01T10:00:00+01:00\nupdated = 2026-04-01\n\
                    tags = [\"sea\", \"</script>\"]\nsummary = \"It's <short>\"\n+++\nText.";

#[test]
fn a_post_tells_open_graph_what_it_is() {
    let folder = Folder::of(&[("blog.toml", "title = \"By the sea\"\nlanguage = \"de-AT\"\n"), ("a.md", POST)]);
    let html = page(&folder.blog_with(options()), "/a/");
    // ogp.me: the four that are required, and those that describe an article.
    let expected = [
        ("og:title", "</script><script>alert(1)</script> & \"quotes\""),
        ("og:type", "article"),
        ("og:url", "https://blog.test/a/"),
        ("og:description", "It's <short>"),
        ("og:site_name", "By the sea"),
        ("og:locale", "de_AT"),
        ("og:image:width", "1200"),
        ("og:image:height", "630"),
        ("og:image:type", "image/png"),
        ("article:published_time", "2026-03-01T09:00:00Z"),
        ("article:modified_time", "2026-04-01T00:00:00Z"),
        ("twitter:card", "summary_large_image"),
        ("description", "It's <short>"),
    ];
    for (name, value) in expected {
        assert_eq!(metas(&html, name), [value], "{name}");
    }
    assert_eq!(metas(&html, "article:tag"), ["sea", "</script>"]);
    assert_eq!(links(&html, "canonical")[0]["href"], "https://blog.test/a/");
    assert!(metas(&html, "robots").is_empty());
}

/// The picture that a post names is there, is a PNG file, and has another address for another title.
#[test]
fn a_post_without_a_picture_is_given_one() {
    let folder =
        Folder::of(&[("a.md", "# One\n\nText."), ("b.md", "---\ncover: cat.png\ncover_alt: A cat\n---\n# Two"), ("cat.png", "png")]);
    let blog = folder.blog_with(options());
    let image = |path: &str| metas(&page(&blog, path), "og:image").concat();
    let card = image("/a/");
    let path = card.strip_prefix("https://blog.test").expect("absolute").to_owned();
    let site = blog.site();
    let Some(SiteResource::Card(drawn)) = site.find(&path, "") else { panic!("no card at {path}") };
    assert!(drawn.draw().starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(metas(&page(&blog, "/a/"), "og:image:alt"), ["One"]);
    assert!(image("/").contains("/cards/") && image("/") != card);

    assert_eq!(
        (image("/b/").as_str(), metas(&page(&blog, "/b/"), "og:image:alt").concat().as_str()),
        ("https://blog.test/cat.png", "A cat")
    );

    folder.write("a.md", "# Another title\n\nText.");
    let changed = crate::folder::rebuilt(&blog).paths;
    assert_ne!(image("/a/"), card);
    assert!(changed.contains(&path), "{changed:?}");
}

#[test]
fn json_ld_describes_the_page_and_cannot_be_left() {
    let folder = Folder::of(&[("blog.toml", "title = \"By the sea\"\nauthor = \"Ann\"\n"), ("a.md", POST), ("pages/about.md", "# About")]);
    let blog = folder.blog_with(options());
    let html = page(&blog, "/a/");
    let nodes = json_ld(&html);
    let post = &nodes["BlogPosting"];
    assert_eq!(post["headline"], "</script><script>alert(1)</script> & \"quotes\"");
    assert_eq!(
        (&post["url"], &post["datePublished"], &post["dateModified"]),
        (&"https://blog.test/a/".into(), &"2026-03-01T09:00:00Z".into(), &"2026-04-01T00:00:00Z".into())
    );
    assert_eq!((&post["author"]["@type"], &post["author"]["name"]), (&"Person".into(), &"Ann".into()));
    assert_eq!((&post["isPartOf"]["@type"], &post["isPartOf"]["name"]), (&"Blog".into(), &"By the sea".into()));
    assert_eq!(post["image"].as_str().map(str::to_owned), metas(&html, "og:image").pop());
    let steps: Vec<_> =
        nodes["BreadcrumbList"]["itemListElement"].as_array().expect("steps").iter().map(|step| step["item"].to_string()).collect();
    assert_eq!(steps, ["\"https://blog.test/\"", "\"https://blog.test/a/\""]);
    for (path, kind) in [("/", "Blog"), ("/about/", "WebPage"), ("/tags/sea/", "CollectionPage"), ("/archive/", "CollectionPage")] {
        assert!(json_ld(&page(&blog, path)).contains_key(kind), "{path}");
    }
    let tag = json_ld(&page(&blog, "/tags/sea/"));
    let steps: Vec<_> =
        tag["BreadcrumbList"]["itemListElement"].as_array().expect("steps").iter().map(|step| step["name"].to_string()).collect();
    assert_eq!(steps, ["\"Home\"", "\"Tags\"", "\"sea\""]);
}

#[test]
fn translations_name_each_other() {
    let folder = Folder::of(&[
        ("blog.toml", "language = \"de\"\n"),
        ("sea.md", "# Meer"),
        ("sea.en.md", "# Sea"),
        ("sea.fr-CA.md", "# Mer"),
        ("alone.md", "# Allein"),
    ]);
    let blog = folder.blog_with(options());
    let site = blog.site();
    let alternates = |path: &str| -> Vec<(String, String)> {
        let links = links(&page(&blog, path), "alternate");
        links.into_iter().filter_map(|mut link| Some((link.remove("hreflang")?, link.remove("href")?))).collect()
    };
    let of_german = alternates("/sea/");
    let languages: Vec<_> = of_german.iter().map(|(language, _)| language.as_str()).collect();
    assert_eq!(languages, ["de", "en", "fr-CA", "x-default"]);
    assert_eq!(of_german[3].1, "https://blog.test/sea/");
    for (language, url) in &of_german {
        let path = url.strip_prefix("https://blog.test").expect("absolute");
        assert!(site.contains(path), "{url}");
        // Every translation names the same ones, or search engines believe none.
        assert_eq!(alternates(path), of_german);
        let expected = match language.as_str() {
            "en" => "en_US",
            "fr-CA" => "fr_CA",
            _ => "de_DE",
        };
        assert_eq!(metas(&page(&blog, path), "og:locale"), [expected]);
    }
    assert_eq!(metas(&page(&blog, "/sea/"), "og:locale:alternate"), ["en_US", "fr_CA"]);
    assert!(alternates("/alone/").is_empty());
}

#[test]
fn what_search_engines_have_no_use_for_says_so() {
    let folder = Folder::of(&[("a.md", "---\nnoindex: true\n---\n# A"), ("b.md", "# B")]);
    let blog = folder.blog_with(options());
    let is_hidden = |html: &str| metas(html, "robots").concat().contains("noindex");
    let not_found = blog.site().not_found("").body;
    assert!(is_hidden(&page(&blog, "/a/")) && is_hidden(&page(&blog, "/search/")) && is_hidden(&String::from_utf8_lossy(&not_found)));
    assert!(!is_hidden(&page(&blog, "/b/")) && !is_hidden(&page(&blog, "/")));
}

/// Whoever mistyped an address finds the newest posts, all posts, and a search, in the language of the blog and without a script.
#[test]
fn an_address_without_a_page_helps_to_find_another_one() {
    let folder = Folder::of(&[("blog.toml", "language = \"de\""), ("draft.md", "---\ndraft: true\n---\n# Draft")]);
    for day in 1..=7 {
        folder.write(&format!("2026-03-0{day}-day-{day}.md"), format!("# Tag {day} & mehr"));
    }
    let blog = folder.blog();
    let html = String::from_utf8(blog.site().not_found("").body.to_vec()).expect("text");
    let main = html.split_once("<main").and_then(|(_, rest)| rest.split_once("</main>")).expect("a page").0;
    for part in [
        "An dieser Adresse gibt es nichts",
        "<form class=\"find\" role=\"search\" action=\"/search/\" method=\"get\">",
        "<a href=\"/day-7/\">Tag 7 &amp; mehr</a>",
        "<a href=\"/day-3/\">",
        "<a href=\"/archive/\">Alle Beiträge",
    ] {
        assert!(main.contains(part), "{part}\n{main}");
    }
    assert!(!main.contains("/day-2/") && !main.contains("Draft") && !main.contains("<script"), "{main}");
}

/// A draft is seen under a private address, which nothing on its page gives away.
#[test]
fn a_draft_names_no_address() {
    let folder = Folder::of(&[("a.md", "---\ndraft: true\n---\n# Secret")]);
    let blog = folder.blog_with(options());
    let site = blog.site();
    let Some(SiteResource::Page(draft)) = site.draft("/a/", "") else { panic!("no draft") };
    let html = String::from_utf8(draft.body.to_vec()).expect("text");
    assert!(metas(&html, "robots").concat().contains("noindex"));
    assert!(metas(&html, "og:url").is_empty() && links(&html, "canonical").is_empty() && json_ld(&html).is_empty(), "{html}");
    assert!(metas(&html, "og:image").is_empty(), "its card would not be there");
}

/// W3C Webmention §3.1.2, IndieAuth's `rel=me`, and what fediverse servers look for.
#[test]
fn webmention_and_the_fediverse_are_named_if_the_author_wants() {
    let folder =
        Folder::of(&[("blog.toml", "webmention = \"https://mentions.test/blog\"\nactivitypub = \"@ann@social.test\"\n"), ("a.md", "# A")]);
    let blog = folder.blog_with(options());
    let html = page(&blog, "/a/");
    assert_eq!(links(&html, "webmention")[0]["href"], "https://mentions.test/blog");
    assert_eq!(links(&html, "me")[0]["href"], "https://social.test/@ann");
    assert_eq!(metas(&html, "fediverse:creator"), ["@ann@social.test"]);
    let front = links(&page(&blog, "/"), "alternate");
    assert!(
        front.iter().any(|link| link["type"] == "application/activity+json" && link["href"] == "https://social.test/@ann"),
        "{front:?}"
    );

    let without = Folder::of(&[("a.md", "# A")]);
    let html = page(&without.blog(), "/a/");
    assert!(links(&html, "webmention").is_empty() && links(&html, "me").is_empty());
}
