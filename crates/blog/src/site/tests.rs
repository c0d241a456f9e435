use std::{fs, path::PathBuf};

use super::*;
use crate::{feed, slug, starter};

/// Returns what a site answers at each of its paths, asked as `http://blog.test`.
fn pages(site: &Site) -> BTreeMap<String, Page> {
    let page = |path: &str| match site.find(path, "http://blog.test")? {
        SiteResource::Page(page) => Some((path.to_owned(), page)),
        SiteResource::File(_) | SiteResource::Moved(_) | SiteResource::Card(_) | SiteResource::Picture(_) => None,
    };
    site.addresses().filter_map(|(path, _)| page(path)).collect()
}

fn built_of(folder: &Path) -> Site {
    build(folder, &BlogOptions::default(), NOW).expect("builds")
}

/// A day after the newest date in these tests.
const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/blog")
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        fs::write(path, text).expect("written");
    }
    root
}

fn built(files: &[(&str, &[u8])]) -> Site {
    built_of(folder(files).path())
}

fn text(site: &Site, path: &str) -> String {
    let Some(SiteResource::Page(page)) = site.find(path, "http://blog.test") else { panic!("no {path}") };
    String::from_utf8(page.body.to_vec()).expect("text")
}

/// Returns the values of `href` and `src` in `html`.
fn links(html: &str) -> Vec<&str> {
    let after = |mark: &'static str| html.split(mark).skip(1).filter_map(|rest| rest.split_once('"').map(|(url, _)| url));
    after(" href=\"").chain(after(" src=\"")).collect()
}

/// However a file system keeps a name, and in whatever script.
#[test]
fn addresses_and_anchors_are_whole_words_of_any_script() {
    let hindi: &[u8] = "# हिन्दी\n\n## नमस्ते दुनिया\n".as_bytes();
    let site = built(&[("हिन्दी.md", hindi), ("U\u{308}ber uns.md", b"# Us\n")]);
    assert!(text(&site, "/हिन्दी/").contains("id=\"नमस्ते-दुनिया\""));
    text(&site, "/über-uns/");
}

fn assert_links_resolve(site: &Site) {
    let (all, mut seen) = (pages(site), BTreeSet::new());
    for (path, page) in all.iter().filter(|(_, page)| page.content_type.starts_with("text/html")) {
        let html = String::from_utf8_lossy(&page.body);
        for link in links(&html).into_iter().filter(|link| link.starts_with(['/', '#'])) {
            let (target, fragment) = link.split_once('#').map_or((link, None), |(target, fragment)| (target, Some(fragment)));
            let target = if target.is_empty() { path.clone() } else { slug::decode_path(target).expect("an address") };
            // Pictures are made when they are asked for.
            if matches!(site.find(&target, "http://blog.test"), Some(SiteResource::Picture(_))) {
                continue;
            }
            let found = all.get(&target).unwrap_or_else(|| panic!("{path} links to {link}, which is not there"));
            if let Some(fragment) = fragment {
                let id = format!(" id=\"{}\"", slug::decode_path(fragment).expect("an id"));
                assert!(String::from_utf8_lossy(&found.body).contains(&id), "{path} links to {link}: no such section");
            }
            seen.insert(target);
        }
    }
    for (path, page) in &all {
        let is_linked = matches!(page.kind, PageKind::Post | PageKind::Page | PageKind::Tag | PageKind::Index);
        assert!(!is_linked || seen.contains(path), "nothing links to {path}");
    }
}

#[test]
fn every_link_of_the_example_and_the_starter_resolves() {
    let example = built_of(&example());
    assert!(pages(&example).values().filter(|page| page.kind == PageKind::Post).count() >= 12);
    assert_links_resolve(&example);
    assert_links_resolve(&built(starter::starter()));
}

#[test]
fn the_example_says_what_it_should_be_about() {
    let example = built_of(&example());
    for page in pages(&example).values().filter(|page| page.kind == PageKind::Post) {
        let html = String::from_utf8_lossy(&page.body);
        assert!(!html.contains("TODO") && !html.contains("lorem"), "{html}");
    }
}

#[test]
fn feed_and_sitemap_are_well_formed_and_absolute() {
    let post = "+++\ntitle = \"A <b> & \\\"c\\\" \\u0001\"\ndate = 2026-03-01T10:00:00+01:00\nupdated = 2026-04-01\ntags = [\"x<y\"]\n+++\n\
                Text & ![i](cat.png) [l](b.md) \u{1} ]]>\n\n```\n<&\u{1}>\n```\n";
    let options = BlogOptions { base_url: Some("https://blog.test/".to_owned()), ..BlogOptions::default() };
    let root = folder(&[("a.md", post.as_bytes()), ("b.md", b"# B\n\n<p>raw</p>"), ("cat.png", b"png")]);
    let site = build(root.path(), &options, NOW).expect("builds");

    let feed = text(&site, "/feed.xml");
    let document = roxmltree::Document::parse(&feed).expect("well-formed");
    let atom = "http://www.w3.org/2005/Atom";
    let named = |node: roxmltree::Node<'_, '_>, name: &str| -> Vec<String> {
        node.children().filter(|n| n.has_tag_name((atom, name))).map(|n| n.text().unwrap_or_default().to_owned()).collect()
    };
    // RFC 4287 §4.1.1 and §4.1.2: what a feed and an entry must have.
    let root = document.root_element();
    assert!(root.has_tag_name((atom, "feed")));
    assert_eq!(named(root, "id"), ["https://blog.test/"]);
    assert_eq!((named(root, "title").len(), named(root, "updated").len()), (1, 1));
    let entries: Vec<_> = root.children().filter(|n| n.has_tag_name((atom, "entry"))).collect();
    assert_eq!(entries.len(), 2);
    for entry in &entries {
        for name in ["id", "title", "updated", "content"] {
            assert_eq!(named(*entry, name).len(), 1, "{name}");
        }
    }
    let first = entries.iter().find(|e| named(**e, "id") == ["https://blog.test/a/"]).expect("the post");
    assert_eq!(named(*first, "title"), ["A <b> & \"c\" "]);
    assert_eq!(named(*first, "published"), ["2026-03-01T09:00:00Z"]);
    assert_eq!(named(*first, "updated"), ["2026-04-01T00:00:00Z"]);
    let content = named(*first, "content").concat();
    assert!(content.contains("src=\"https://blog.test/cat.png\"") && content.contains("href=\"https://blog.test/b/\""), "{content}");

    let sitemap = text(&site, "/sitemap.xml");
    let document = roxmltree::Document::parse(&sitemap).expect("well-formed");
    let urls: Vec<_> = document.descendants().filter(|n| n.tag_name().name() == "loc").filter_map(|n| n.text()).collect();
    assert!(urls.contains(&"https://blog.test/a/") && urls.iter().all(|url| url.starts_with("https://blog.test/")), "{urls:?}");
    assert!(text(&site, "/robots.txt").ends_with("Sitemap: https://blog.test/sitemap.xml\n"));
}

#[test]
fn what_authors_write_outside_of_texts_is_escaped() {
    let site = built(&[
        ("blog.toml", b"title = \"<script>1\"\nfooter = \"<script>2\"\ndescription = \"\\\"><script>3\""),
        ("a.md", b"---\ntitle: <script>4\nsummary: \"<script>5\"\ntags: [\"<script>6\"]\n---\nx"),
        ("pages/p.md", b"---\ntitle: <script>7\n---\nx"),
    ]);
    for (path, page) in &pages(&site) {
        let text = String::from_utf8_lossy(&page.body);
        // The JSON-LD and the script of the search have attributes. Where a text is not markup, it needs no escape.
        let is_markup = page.content_type.contains("html") || page.content_type.contains("xml");
        assert!(!is_markup || !text.contains("<script>"), "{path}");
    }
    assert!(text(&site, "/a/").contains("<h1>&lt;script&gt;4</h1>"));
}

#[test]
fn ten_posts_to_a_page_newest_first() {
    let posts: Vec<_> = (1..=21).map(|n| (format!("2026-01-{n:02}-post-{n}.md"), format!("# Post {n}!"))).collect();
    let files: Vec<_> = posts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let site = built(&files);
    let indexes: Vec<_> = site.addresses().filter(|(_, kind)| *kind == PageKind::Index).map(|(path, _)| path).collect();
    assert_eq!(indexes, ["/", "/page/2/", "/page/3/"]);
    let first = text(&site, "/");
    assert!(first.find("Post 21!") < first.find("Post 12!") && first.contains("Post 12!") && !first.contains("Post 11!"));
    assert!(text(&site, "/page/3/").contains("Post 1!"));
    let post = text(&site, "/post-5/");
    assert!(post.contains("href=\"/post-4/\"") && post.contains("href=\"/post-6/\""));
    assert!(post.contains("<time datetime=\"2026-01-05\">5 January 2026</time>"));
}

#[test]
fn drafts_stay_home_and_pages_stay_out_of_the_index() {
    let site = built(&[
        ("a.md", b"# Alpha\n\n[about](pages/about.md)"),
        ("d.md", b"---\ndraft: true\n---\n# Delta"),
        ("pages/about.md", b"# About us"),
        ("contact.md", b"---\npage: true\n---\n# Contact"),
    ]);
    let kinds: Vec<_> = site.addresses().filter(|(path, _)| path.len() > 1).collect();
    assert!(kinds.contains(&("/about/", PageKind::Page)) && kinds.contains(&("/contact/", PageKind::Page)));
    assert!(pages(&site).values().all(|page| !String::from_utf8_lossy(&page.body).contains("Delta")));
    assert!(!text(&site, "/").contains("<h2><a href=\"/about/\"") && text(&site, "/").contains("<a href=\"/about/\">About us</a>"));
    assert!(!text(&site, "/feed.xml").contains("About us</title>"));
}

#[test]
fn all_problems_come_at_once() {
    let root = folder(&[
        ("a.md", b"---\ndate: soon\n---\n# A"),
        ("b.md", b"no title"),
        ("c.md", b"# C\n\n[x](gone.md)"),
        ("d/one.md", b"# D"),
        ("e/one.md", b"# E"),
        ("tags.md", b"# T"),
    ]);
    let site = built_of(root.path());
    let lines: Vec<_> = site.problems().iter().map(ToString::to_string).collect();
    let expected = ["a.md:2:", "b.md:1: has no title", "c.md:3: link to \"gone.md\"", "e/one.md:1:", "tags.md:1:"];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn an_empty_folder_is_a_blog() {
    let site = built(&[]);
    assert!(text(&site, "/").contains("Nothing is published yet"));
    assert!(roxmltree::Document::parse(&text(&site, "/feed.xml").replace(feed::BASE, "http://x.test")).is_ok());
}

#[test]
fn builds_are_repeatable_and_changes_are_named() {
    let root = folder(starter::starter());
    let options = BlogOptions::default();
    let (first, second) = (build(root.path(), &options, NOW).expect("builds"), build(root.path(), &options, NOW).expect("builds"));
    assert_eq!(pages(&first), pages(&second));
    fs::write(root.path().join("cat.png"), "x").expect("written");
    let third = build(root.path(), &options, NOW).expect("builds");
    assert_eq!(first.changed_paths(&third), ["/cat.png"]);
    fs::write(root.path().join("posts/cat.md"), "# A cat").expect("written");
    let fourth = build(root.path(), &options, NOW).expect("builds");
    let changed = third.changed_paths(&fourth);
    for path in ["/", "/cat", "/cat/", "/feed.xml", "/sitemap.xml"] {
        assert!(changed.iter().any(|other| other == path), "{path}: {changed:?}");
    }
    assert!(!changed.iter().any(|path| path == "/about/"), "{changed:?}");
}

#[test]
fn an_authors_own_robots_txt_wins() {
    assert_eq!(text(&built(&[("robots.txt", b"mine")]), "/robots.txt"), "mine");
}
