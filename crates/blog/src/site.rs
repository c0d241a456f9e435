//! The site: every address with its answer, built whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::StatusCode;
use semantics::Timestamp;

use crate::{
    config::{BlogOptions, Settings},
    error::{BuildError, Problem},
    feed,
    folder::{self, Folder, Source, StaticFile},
    large_file::LargeFile,
    post::{self, Post},
    slug,
    theme::{self, Link, Tag, Theme},
};

/// Kinds of pages. Callers decide by them how long a page is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// A list of posts: the front page and those that continue it.
    Index,
    /// A post.
    Post,
    /// A page in the navigation of the header, which the index does not list.
    Page,
    /// The posts of a tag, or the list of tags.
    Tag,
    /// The feed, `/feed.xml`.
    Feed,
    /// The sitemap, `/sitemap.xml`.
    Sitemap,
    /// The rules for crawlers, `/robots.txt`.
    Robots,
    /// A part of the theme. Its address changes with its content, so what is at one address never changes.
    Asset,
    /// A file of the author.
    File,
    /// The answer for addresses that do not exist.
    NotFound,
}

/// An answer, ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status: 404 for the page that says so, 200 for all others.
    pub status: StatusCode,
    /// The media type, with its charset.
    pub content_type: &'static str,
    /// The whole content.
    pub body: Bytes,
    /// A strong entity tag with its quotes, made from the content (RFC 9110 §8.8.3).
    pub etag: String,
    /// The time of the last change in the folder. Pages link to each other, so each may change with any other. A rebuild keeps the date of
    /// a page that it did not change.
    pub last_modified: Timestamp,
    /// The kind of the page.
    pub kind: PageKind,
    /// Whether `body` still has placeholders for scheme and host, because no `base_url` is set. [`crate::Blog`] fills them per request.
    pub per_authority: bool,
}

impl Page {
    fn new(kind: PageKind, content_type: &'static str, body: impl Into<Bytes>, last_modified: Timestamp) -> Self {
        let body = body.into();
        let etag = format!("\"{}\"", theme::digest(&body));
        Self { status: StatusCode::OK, content_type, body, etag, last_modified, kind, per_authority: false }
    }
}

/// A whole site. Two builds of an unchanged folder are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The pages by path. A path is percent-decoded and begins with `/`.
    pub pages: BTreeMap<String, Page>,
    /// Files that are too large to hold in memory, by path like `pages`.
    pub files: BTreeMap<String, LargeFile>,
    /// The answer for every other path.
    pub not_found: Page,
}

impl Site {
    /// Returns every path that answers differently in `other`, in order. A difference in dates alone does not count.
    ///
    /// A page that came or went is named without its slash as well: that address redirects to it, or did.
    #[must_use]
    pub fn changed_paths(&self, other: &Self) -> Vec<String> {
        let (old, new) = (self.etags(), other.etags());
        let mut paths = BTreeSet::new();
        for path in old.keys().chain(new.keys()).filter(|path| old.get(*path) != new.get(*path)) {
            if let Some(bare) = path.strip_suffix('/').filter(|bare| !bare.is_empty())
                && old.contains_key(path) != new.contains_key(path)
            {
                paths.insert(bare.to_owned());
            }
            paths.insert((*path).to_owned());
        }
        paths.into_iter().collect()
    }

    fn etags(&self) -> BTreeMap<&str, &str> {
        let pages = self.pages.iter().map(|(path, page)| (path.as_str(), page.etag.as_str()));
        pages.chain(self.files.iter().map(|(path, file)| (path.as_str(), file.etag.as_str()))).collect()
    }

    /// Gives every page that did not change since `old` its date from there.
    pub(crate) fn keep_dates(&mut self, old: &Self) {
        for (path, page) in &mut self.pages {
            if let Some(before) = old.pages.get(path).filter(|before| before.etag == page.etag) {
                page.last_modified = before.last_modified;
            }
        }
    }
}

/// Reads `folder` and makes the site.
///
/// Depends on nothing but the folder's content, its modification times and `options`.
///
/// # Errors
/// When the folder cannot be read, `blog.toml` or a post is wrong: all problems at once.
pub fn build(folder: &Path, options: &BlogOptions) -> Result<Site, BuildError> {
    build_content(folder::read(folder).map_err(BuildError::new)?, folder, options)
}

/// Makes a site, as [`build`] does, from Markdown texts: pairs of a path in the folder, with `/` between names, and its text. It does not
/// touch the disk. Without a title, the blog is called `Blog`.
///
/// # Errors
/// When a text is wrong: all problems at once.
pub fn build_texts(texts: &[(&str, &str)], options: &BlogOptions) -> Result<Site, BuildError> {
    let source =
        |(name, text): &(&str, &str)| Source { name: (*name).to_owned(), text: (*text).to_owned(), modified: Timestamp::default() };
    let content = Folder { sources: texts.iter().map(source).collect(), ..Folder::default() };
    let title = options.title.clone().or_else(|| Some("Blog".to_owned()));
    build_content(content, Path::new(""), &BlogOptions { title, ..options.clone() })
}

fn build_content(content: Folder, folder: &Path, options: &BlogOptions) -> Result<Site, BuildError> {
    let settings = Settings::new(options, content.config.as_deref(), folder);
    // With a broken blog.toml the posts are still read, so that the author sees all there is to mend.
    let plain = Settings::default();
    let texts = post::read_all(&content, settings.as_ref().unwrap_or(&plain));
    match (settings, texts) {
        (Ok(settings), Ok((posts, pages))) => Builder { settings: &settings, posts, pages }.build(content),
        (settings, texts) => {
            let problems: Vec<Problem> = [settings.err(), texts.err()].into_iter().flatten().flatten().collect();
            Err(BuildError::new(problems))
        }
    }
}

struct Builder<'a> {
    settings: &'a Settings,
    posts: Vec<Post>,
    pages: Vec<Post>,
}

impl Builder<'_> {
    fn build(self, folder: Folder) -> Result<Site, BuildError> {
        let at = folder.newest;
        let icon = ["favicon.svg", "favicon.ico", "favicon.png"].iter().find(|name| folder.files.iter().any(|file| file.name == **name));
        let nav = self.pages.iter().map(|page| Link::new(&page.title, &page.path)).collect();
        let theme = Theme::new(self.settings, nav, icon.map(|name| format!("/{name}")).as_deref());
        let html = |kind, body: String| Page::new(kind, "text/html; charset=utf-8", body, at);

        let mut pages = BTreeMap::new();
        let count = self.posts.len().div_ceil(self.settings.posts_per_page).max(1);
        for number in 1..=count {
            let start = (number - 1) * self.settings.posts_per_page;
            let end = self.posts.len().min(start + self.settings.posts_per_page);
            let path = if number == 1 { "/".to_owned() } else { format!("/page/{number}/") };
            pages.insert(path, html(PageKind::Index, theme.index(&self.posts[start..end], number, count)));
        }
        for (index, post) in self.posts.iter().enumerate() {
            let newer = index.checked_sub(1).and_then(|newer| self.posts.get(newer));
            let body = theme.post(post, false, newer, self.posts.get(index + 1));
            pages.insert(post.path.clone(), html(PageKind::Post, body));
        }
        for page in &self.pages {
            pages.insert(page.path.clone(), html(PageKind::Page, theme.post(page, true, None, None)));
        }
        let tags = self.tags();
        pages.insert("/tags/".to_owned(), html(PageKind::Tag, theme.tags(&weighed(&tags))));
        for (path, (tag, posts)) in &tags {
            pages.insert(path.clone(), html(PageKind::Tag, theme.tag(tag, posts)));
        }
        for (path, content_type, body) in theme::assets() {
            pages.insert(path, Page::new(PageKind::Asset, content_type, body, at));
        }
        let built = i64::try_from(at.as_secs()).ok().and_then(|secs| jiff::Timestamp::from_second(secs).ok()).unwrap_or_default();
        let addresses = self.posts.iter().chain(&self.pages).map(|post| (post.path.as_str(), Some(post.changed())));
        let lists = ["/", "/tags/"].into_iter().chain(tags.keys().map(String::as_str)).map(|path| (path, None));
        let texts = [
            ("/feed.xml", PageKind::Feed, "application/atom+xml; charset=utf-8", feed::atom(self.settings, &self.posts, built)),
            ("/sitemap.xml", PageKind::Sitemap, "application/xml", feed::sitemap(lists.chain(addresses))),
            ("/robots.txt", PageKind::Robots, "text/plain; charset=utf-8", feed::robots()),
        ];
        for (path, kind, content_type, text) in texts {
            pages.insert(path.to_owned(), self.absolute(kind, content_type, text, at));
        }
        let not_found = Page { status: StatusCode::NOT_FOUND, ..html(PageKind::NotFound, theme.not_found(&self.posts)) };

        let mut files = BTreeMap::new();
        for file in folder.files {
            let path = format!("/{}", file.name);
            // An author's own robots.txt or feed.xml replaces ours.
            pages.remove(&path);
            insert_file(path, file, &mut pages, &mut files);
        }
        Ok(Site { pages, files, not_found })
    }

    /// Makes a page of a text with absolute addresses. It is complete if the site's own address is known.
    fn absolute(&self, kind: PageKind, content_type: &'static str, text: String, at: Timestamp) -> Page {
        match &self.settings.base_url {
            Some(base) => Page::new(kind, content_type, text.replace(feed::BASE, base), at),
            None => Page { per_authority: true, ..Page::new(kind, content_type, text, at) },
        }
    }

    /// Returns the tags by the address of their page: each as its newest post spells it, with its posts.
    fn tags(&self) -> BTreeMap<String, (&str, Vec<&Post>)> {
        let mut tags: BTreeMap<String, (&str, Vec<&Post>)> = BTreeMap::new();
        for post in &self.posts {
            for tag in &post.tags {
                tags.entry(theme::tag_path(tag)).or_insert_with(|| (tag, Vec::new())).1.push(post);
            }
        }
        tags
    }
}

fn weighed(tags: &BTreeMap<String, (&str, Vec<&Post>)>) -> Vec<Tag> {
    let most = tags.values().map(|(_, posts)| posts.len()).max().unwrap_or(1);
    let tag = |(title, posts): &(&str, Vec<&Post>)| Tag { count: posts.len(), weight: (posts.len() * 4).div_ceil(most), ..Tag::new(title) };
    let mut list: Vec<_> = tags.values().map(tag).collect();
    list.sort_by_key(|tag| slug::slugify(&tag.title));
    list
}

fn insert_file(path: String, file: StaticFile, pages: &mut BTreeMap<String, Page>, files: &mut BTreeMap<String, LargeFile>) {
    let StaticFile { path: on_disk, content_type, bytes, modified, body, .. } = file;
    if let Some(body) = body {
        pages.insert(path, Page::new(PageKind::File, content_type, body, modified.into()));
        return;
    }
    // Hashing gigabytes at every rebuild would cost more than it tells: nanoseconds and length change with the content.
    let nanos = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let etag = format!("\"{nanos:x}-{bytes:x}\"");
    files.insert(path, LargeFile { path: on_disk, content_type, bytes, etag, last_modified: SystemTime::into(modified) });
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::starter;

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
        build(folder(files).path(), &BlogOptions::default()).expect("builds")
    }

    fn text(site: &Site, path: &str) -> String {
        let page = site.pages.get(path).unwrap_or_else(|| panic!("no {path}"));
        String::from_utf8(page.body.to_vec()).expect("text")
    }

    /// The values of `href` and `src` in `html`.
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
        let mut seen = BTreeSet::new();
        for (path, page) in site.pages.iter().filter(|(_, page)| page.content_type.starts_with("text/html")) {
            let html = String::from_utf8_lossy(&page.body);
            for link in links(&html).into_iter().filter(|link| link.starts_with(['/', '#'])) {
                let (target, fragment) = link.split_once('#').map_or((link, None), |(target, fragment)| (target, Some(fragment)));
                let target = if target.is_empty() { path.clone() } else { slug::decode_path(target).expect("an address") };
                let found = site.pages.get(&target).unwrap_or_else(|| panic!("{path} links to {link}, which is not there"));
                if let Some(fragment) = fragment {
                    let id = format!(" id=\"{}\"", slug::decode_path(fragment).expect("an id"));
                    assert!(String::from_utf8_lossy(&found.body).contains(&id), "{path} links to {link}: no such section");
                }
                seen.insert(target);
            }
        }
        for (path, page) in &site.pages {
            let is_linked = matches!(page.kind, PageKind::Post | PageKind::Page | PageKind::Tag | PageKind::Index);
            assert!(!is_linked || seen.contains(path), "nothing links to {path}");
        }
    }

    #[test]
    fn every_link_of_the_example_and_the_starter_resolves() {
        let example = build(&example(), &BlogOptions::default()).expect("the example builds");
        assert!(example.pages.values().filter(|page| page.kind == PageKind::Post).count() >= 12);
        assert_links_resolve(&example);
        assert_links_resolve(&built(starter::starter()));
    }

    #[test]
    fn the_example_says_what_it_should_be_about() {
        let example = build(&example(), &BlogOptions::default()).expect("the example builds");
        for page in example.pages.values().filter(|page| page.kind == PageKind::Post) {
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
        let site = build(root.path(), &options).expect("builds");

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
        for (path, page) in &site.pages {
            assert!(!String::from_utf8_lossy(&page.body).contains("<script"), "{path}");
        }
        assert!(text(&site, "/a/").contains("<h1>&lt;script&gt;4</h1>"));
    }

    #[test]
    fn ten_posts_to_a_page_newest_first() {
        let posts: Vec<_> = (1..=21).map(|n| (format!("2026-01-{n:02}-post-{n}.md"), format!("# Post {n}!"))).collect();
        let files: Vec<_> = posts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
        let site = built(&files);
        let indexes: Vec<_> = site.pages.iter().filter(|(_, p)| p.kind == PageKind::Index).map(|(path, _)| path.as_str()).collect();
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
        let kinds: Vec<_> = site.pages.iter().filter(|(path, _)| path.len() > 1).map(|(path, page)| (path.as_str(), page.kind)).collect();
        assert!(kinds.contains(&("/about/", PageKind::Page)) && kinds.contains(&("/contact/", PageKind::Page)));
        assert!(site.pages.values().all(|page| !String::from_utf8_lossy(&page.body).contains("Delta")));
        assert!(!text(&site, "/").contains("<h2><a href=\"/about/\"") && text(&site, "/").contains("<a href=\"/about/\">About us</a>"));
        assert!(!text(&site, "/feed.xml").contains("About us</title>"));
    }

    #[test]
    fn all_problems_come_at_once() {
        let root = folder(&[
            ("blog.toml", b"titel = \"x\""),
            ("a.md", b"---\ndate: soon\n---\n# A"),
            ("b.md", b"no title"),
            ("c.md", b"# C\n\n[x](gone.md)"),
            ("d/one.md", b"# D"),
            ("e/one.md", b"# E"),
            ("tags.md", b"# T"),
        ]);
        let error = build(root.path(), &BlogOptions::default()).expect_err("seven problems");
        let lines: Vec<_> = error.problems.iter().map(ToString::to_string).collect();
        let expected = [
            "a.md:2:",
            "b.md:1: has no title",
            "blog.toml:1: unknown field `titel`",
            "c.md:3: link to \"gone.md\"",
            "e/one.md:1:",
            "tags.md:1:",
        ];
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
        let (first, second) = (build(root.path(), &options).expect("builds"), build(root.path(), &options).expect("builds"));
        assert_eq!(first, second);
        fs::write(root.path().join("cat.png"), "x").expect("written");
        let third = build(root.path(), &options).expect("builds");
        assert_eq!(first.changed_paths(&third), ["/cat.png"]);
        fs::write(root.path().join("posts/cat.md"), "# A cat").expect("written");
        let fourth = build(root.path(), &options).expect("builds");
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
}
