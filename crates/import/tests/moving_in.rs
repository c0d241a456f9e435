//! Exports become blogs, and the blog itself is the judge: it accepts every text, answers at every address, and shows no draft.
//!
//! `fixtures/ghost.json` and `fixtures/wordpress.xml` are parts of what a Ghost 6 and a WordPress 6.8 have exported.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use blog::{BlogOptions, Site, build};
use import::{Engine, ImportError, Options, Outcome, Report, TextEntry, import, recognise};
use semantics::Timestamp;
use tempfile::TempDir;

/// A day in November 2026: after every date of the fixtures but those of scheduled posts.
const NOW: Timestamp = Timestamp::from_secs(1_795_500_000);

/// The smallest picture that is one.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

fn options() -> Options {
    Options::at(jiff::Timestamp::from_second(i64::try_from(NOW.as_secs()).unwrap()).unwrap())
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Writes files into a new folder.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

/// Returns what the blog has against its texts. The exports are parts of larger ones, so that some of their links lead to nothing; and
/// which letters can be drawn depends on the machine.
fn problems(site: &Site) -> Vec<String> {
    let passed_over = ["there is nothing at", "has the anchor", "no font on this machine"];
    let is_passed_over = |problem: &String| passed_over.iter().any(|known| problem.contains(known));
    site.problems().iter().map(ToString::to_string).filter(|problem| !is_passed_over(problem)).collect()
}

/// Holds what has moved in.
struct Moved {
    report: Report,
    blog: TempDir,
    site: Site,
}

impl Moved {
    fn new(exports: &[PathBuf], options: &Options) -> Self {
        let blog = tempfile::tempdir().unwrap();
        let report = import(exports, blog.path(), options).expect("imported");
        let site = build(blog.path(), &BlogOptions::default(), NOW).unwrap_or_else(|error| panic!("{error}"));
        let moved = Self { report, blog, site };
        moved.assert_sound();
        moved
    }

    fn of(exports: &[PathBuf]) -> Self {
        Self::new(exports, &options())
    }

    /// Checks that every text that was written is where the report says, and nothing that was hidden is.
    fn assert_sound(&self) {
        assert_eq!(problems(&self.site), Vec::<String>::new());
        for text in &self.report.texts {
            let new = text.new.as_deref().unwrap_or_default();
            let is_due = !self.file(text).contains("2037-");
            match text.outcome {
                Outcome::Written => assert_eq!(self.site.contains(new), is_due || text.kind == "page", "{text:?}"),
                Outcome::Draft => assert!(!self.site.contains(new), "{text:?}"),
                Outcome::LeftOut => assert!(!text.notes.is_empty() && text.file.is_none(), "{text:?}"),
            }
        }
        for file in &self.report.files {
            let there = file.new.as_ref().is_some_and(|new| self.blog.path().join(new.trim_start_matches('/')).is_file());
            assert_eq!(there, file.outcome == Outcome::Written, "{file:?}");
            assert!(there || file.why.is_some(), "{file:?}");
        }
    }

    fn file(&self, text: &TextEntry) -> String {
        text.file.as_ref().map(|file| fs::read_to_string(self.blog.path().join(file)).expect("there")).unwrap_or_default()
    }

    fn text(&self, title: &str) -> &TextEntry {
        self.report.texts.iter().find(|text| text.title == title).unwrap_or_else(|| panic!("no {title}"))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.blog.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the states of all texts, counted.
    fn counts(&self) -> BTreeMap<(&str, &str), usize> {
        let mut counts = BTreeMap::new();
        for text in &self.report.texts {
            let outcome = match text.outcome {
                Outcome::Written => "written",
                Outcome::Draft => "draft",
                Outcome::LeftOut => "left out",
            };
            *counts.entry((text.status.as_str(), outcome)).or_default() += 1;
        }
        counts
    }
}

#[test]
fn a_ghost_moves_in() {
    let content = folder(&[
        ("content/images/2026/11/scene-05.jpg", PNG),
        ("content/images/2026/11/scene-19.jpg", PNG),
        ("content/images/2026/11/scene-19_o.jpg", PNG),
        ("content/images/size/w600/2026/11/scene-05.jpg", PNG),
        ("content/images/2026/11/note.exe", b"x"),
    ]);
    let options = Options { content: Some(content.path().to_owned()), ..options() };
    let moved = Moved::new(&[fixture("ghost.json")], &options);
    let expected = [
        (("draft", "draft"), 1),
        (("published", "written"), 5),
        (("published, members", "draft"), 1),
        (("published, paid", "draft"), 1),
        (("scheduled", "written"), 1),
    ];
    assert_eq!(moved.counts(), BTreeMap::from(expected));

    let post = moved.file(moved.text("Café stops ranked by their chairs"));
    assert!(post.contains("](../content/images/2026/11/scene-") && !post.contains("__GHOST_URL__"), "{post}");
    assert!(post.contains("<th>Try</th>") && post.contains("](/creme-patissiere-four-failures-in/)"), "{post}");
    // Its HTML was never made: the text of the editor stands for it.
    assert!(moved.file(moved.text("Reading a tithe map slowly")).contains("```bash\n# keep the old copy"));
    assert_eq!(moved.text("What a five-second timeout hides").new.as_deref(), Some("/what-a-five-second-timeout-hides/"));

    let toml = moved.read("blog.toml");
    assert!(
        toml.starts_with("title = \"The Slow Almanac\"") && toml.contains("{ title = \"Gardening\", url = \"/tags/gardening/\" }"),
        "{toml}"
    );
    assert!(toml.contains("[authors.\"mira-holloway\"]") && !toml.contains('@'), "{toml}");
    let rules = moved.read("_redirects");
    for rule in ["/rss/ /feed.xml 301", "/tag/:tag/* /tags/:tag/ 301", "/content/images/size/:size/* /content/images/:splat 301"] {
        assert!(rules.lines().any(|line| line == rule), "{rule}: {rules}");
    }
    let files: BTreeMap<&str, Outcome> = moved.report.files.iter().map(|file| (file.name.as_str(), file.outcome)).collect();
    assert_eq!(files["content/images/2026/11/scene-05.jpg"], Outcome::Written);
    for left in
        ["content/images/2026/11/scene-19_o.jpg", "content/images/2026/11/note.exe", "content/images/size/w600/2026/11/scene-05.jpg"]
    {
        assert_eq!(files[left], Outcome::LeftOut, "{left}");
    }
    assert!(moved.report.tags.iter().any(|tag| tag.name == "#internal" && tag.outcome == Outcome::LeftOut));
}

/// What only members could read must not become public by moving.
#[test]
fn texts_for_members_are_public_only_where_one_asks_for_it() {
    let hidden = Moved::of(&[fixture("ghost.json")]);
    let gated: Vec<&TextEntry> = hidden.report.texts.iter().filter(|text| text.status.contains(", ")).collect();
    assert_eq!(gated.len(), 2);
    assert!(gated.iter().all(|text| text.outcome == Outcome::Draft && text.notes[0].contains("--include-paid")), "{gated:?}");
    assert!(hidden.report.text().contains("Kept from readers, as drafts"));
    let open = Moved::new(&[fixture("ghost.json")], &Options { include_paid: true, ..options() });
    assert!(open.report.texts.iter().filter(|text| text.status.contains(", ")).all(|text| text.outcome == Outcome::Written));
}

#[test]
fn comments_are_kept_and_not_published() {
    for (export, count) in [("ghost.json", 2), ("wordpress.xml", 2)] {
        let moved = Moved::of(&[fixture(export)]);
        assert!(moved.report.comments.count >= count, "{export}: {:?}", moved.report.comments);
        let of_texts: usize = moved.report.texts.iter().map(|text| text.comments).sum();
        let kept = moved.read(".import/comments.jsonl");
        assert_eq!((of_texts, kept.lines().count()), (moved.report.comments.count, moved.report.comments.count), "{export}");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(moved.blog.path().join(".import/comments.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "addresses of people are for the owner alone");
        assert!(!moved.site.addresses().any(|(path, _)| path.contains(".import")), "{export}");
    }
}

#[test]
fn a_wordpress_moves_in() {
    let uploads = folder(&[("2026/11/scene-24.jpg", PNG), ("2026/11/scene-24-300x225.jpg", PNG), ("2026/11/page.php", b"<?php")]);
    let options = Options { content: Some(uploads.path().to_owned()), ..options() };
    let moved = Moved::new(&[fixture("wordpress.xml")], &options);
    let expected = [
        (("draft", "draft"), 1),
        (("future", "written"), 1),
        (("private", "draft"), 1),
        (("publish", "written"), 5),
        (("publish, password", "draft"), 1),
    ];
    assert_eq!(moved.counts(), BTreeMap::from(expected));

    let entry = moved.text("An evening with a marking gauge");
    assert_eq!(
        (entry.old.as_deref(), entry.new.as_deref()),
        (Some("/2024/03/an-evening-with-a-marking-gauge/"), Some("/2024/03/an-evening-with-a-marking-gauge/"))
    );
    let post = moved.file(entry);
    assert!(!post.contains("<!-- wp:") && post.contains("| Try | Hours | Result |\n| --- | --- | --- |\n| 1 | 28 | burnt |"), "{post}");
    assert!(post.contains("- A split board, at the bench\n- A stool in ash, in the lean-to"), "{post}");
    // Nobody has read it: it gets the address that WordPress would have given it.
    let later = moved.report.texts.iter().find(|text| text.status == "future").expect("one");
    assert!(later.new.as_deref().is_some_and(|new| new.starts_with("/2037/")), "{later:?}");
    assert!(moved.report.texts.iter().any(|text| text.new.as_deref().is_some_and(|new| new.contains("湖のほとり"))));
    let hidden = moved.report.texts.iter().filter(|text| text.outcome == Outcome::Draft && text.status != "draft");
    assert!(hidden.clone().count() == 2 && hidden.clone().all(|text| text.notes[0].contains("would be open to everybody")));
    assert!(moved.report.left_out.iter().any(|left| left.what.contains("wp_navigation") && left.count == 1));
    let rules = moved.read("_redirects");
    assert!(rules.contains("/feed/ /feed.xml 301") && rules.contains("/category/:tag/* /tags/:tag/ 301"), "{rules}");
    assert!(!moved.read("blog.toml").contains('@'));
}

/// A plain site of the earlier editor, with what its shortcodes and line ends mean.
#[test]
fn texts_of_wordpress_s_earlier_editor() {
    let item = |id: u32, kind: &str, fields: &str, content: &str| {
        format!(
            "<item><title>Item {id}</title><link>http://old.example/item-{id}/</link><content:encoded><![CDATA[{content}]]></content:encoded>\
             <wp:post_id>{id}</wp:post_id><wp:post_date_gmt>2019-05-01 10:00:00</wp:post_date_gmt><wp:post_name>item-{id}</wp:post_name>\
             <wp:status>publish</wp:status><wp:post_type>{kind}</wp:post_type>{fields}</item>"
        )
    };
    let content = "First line\nsecond line\n\nSee <a href=\"http://old.example/?p=2\">two</a> &amp; <strong>bold</strong>.\n\n<!--more-->\n\n\
        [caption id=\"a\" width=\"300\"]<a href=\"http://old.example/x.jpg\"><img src=\"http://old.example/wp-content/uploads/a-300x200.jpg\" alt=\"A\" /></a> The <em>caption</em>[/caption]\n\n\
        <blockquote>Quoted</blockquote>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\nhttps://www.youtube.com/watch?v=abc\n\n[gallery ids=\"3\"]\n\n\
        [contact-form-7 id=\"9\"]\n\n<pre>a [caption] b\n\nc</pre>\n[[caption]] is a shortcode";
    let picture = "<wp:attachment_url>http://old.example/wp-content/uploads/a.jpg</wp:attachment_url>";
    let cover = "<wp:postmeta><wp:meta_key>_thumbnail_id</wp:meta_key><wp:meta_value>3</wp:meta_value></wp:postmeta>\
                 <wp:postmeta><wp:meta_key>_wp_old_slug</wp:meta_key><wp:meta_value>older</wp:meta_value></wp:postmeta>";
    let shared = "<!-- wp:block {\"ref\":4} /--><!-- wp:html --><marquee>x</marquee><!-- /wp:html --><!-- wp:latest-posts /-->";
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss xmlns:wp=\"http://wordpress.org/export/1.2/\" xmlns:content=\"c\"><channel><title>T</title>\
         <link>http://old.example</link>{}{}{}{}{}</channel></rss>",
        item(1, "post", cover, content),
        item(2, "post", "<wp:post_password></wp:post_password>", shared),
        item(3, "attachment", picture, ""),
        item(4, "wp_block", "", "<!-- wp:paragraph --><p>Shared words</p><!-- /wp:paragraph -->"),
        item(5, "post", "", "").replace("<wp:status>publish", "<wp:status>trash"),
    );
    let files = folder(&[("export.xml", xml.as_bytes()), ("wp-content/uploads/a.jpg", PNG), ("wp-content/uploads/a-300x200.jpg", PNG)]);
    let moved = Moved::of(&[files.path().join("export.xml")]);
    let post = moved.file(moved.text("Item 1"));
    let parts = [
        "summary = \"First line second line See two & bold.\"",
        "cover = \"../wp-content/uploads/a.jpg\"",
        "aliases = [\"/older/\"]",
        "First line\\\nsecond line\n\nSee [two](/item-2/) & **bold**.",
        "<figure>\n\n![A](../wp-content/uploads/a.jpg)\n\n<figcaption>The <em>caption</em></figcaption>\n</figure>",
        "> Quoted\n\n- one\n- two\n\nhttps://www.youtube.com/watch?v=abc\n\n![](../wp-content/uploads/a.jpg)",
        "\\[contact-form-7 id=\"9\"\\]",
        "```\na [caption] b\n\nc\n```\n\n\\[caption\\] is a shortcode",
    ];
    for part in parts {
        assert!(post.contains(part), "{part}\n---\n{post}");
    }
    assert!(moved.text("Item 1").notes.iter().any(|note| note.contains("[contact-form-7]")));
    let second = moved.file(moved.text("Item 2"));
    assert!(second.contains("Shared words") && second.contains("<marquee>x</marquee>"), "{second}");
    assert!(moved.text("Item 2").notes.iter().any(|note| note.contains("latest-posts")));
    assert_eq!(moved.text("Item 5").notes, ["was in the trash"]);
    let rules = moved.read("_redirects");
    assert!(
        rules.contains("/item-3/ /wp-content/uploads/a.jpg 301")
            && rules.contains("/wp-content/uploads/a-300x200.jpg /wp-content/uploads/a.jpg 301"),
        "{rules}"
    );
}

#[test]
fn a_jekyll_site_moves_in() {
    let site = folder(&[
        ("_config.yml", b"title: Notes\nurl: https://notes.example\nbaseurl: /n\nauthor:\n  name: Ann Lee\ncollections:\n  recipes:\n    output: true\n"),
        ("_posts/2019-05-01-hello.md", b"---\ntitle: Hello\ncategories: [life]\ntags: a b\ndate: 2019-05-01 12:00:00 +0200\nimage: /assets/a.png\n---\nSee [two]({% post_url 2019-05-02-two %}), [about]({{ site.baseurl }}/about.html) and ![x]({{ '/assets/a.png' | relative_url }}){: .big}\n{: .lead}\n\n{% highlight ruby %}\nputs 1\n{% endhighlight %}\n\n{% include form.html %}\n"),
        ("_posts/2019-05-02-two.markdown", b"---\ntitle: Two\npermalink: /two.html\nredirect_from: /zwei/\n---\n* TOC\n{:toc}\n\n## Part\n{: #own .x}\n\nText $$x$$ [gone](missing.md) ![gone](gone.png)\n"),
        ("_drafts/later.md", b"---\ntitle: Later\n---\nx\n"),
        ("_recipes/soup.md", b"---\ntitle: Soup\n---\nx\n"),
        ("about.md", b"---\ntitle: About\n---\nSee [hello](_posts/2019-05-01-hello.md)\n"),
        ("index.html", b"---\nlayout: home\n---\n{% for post in site.posts %}{{ post.title }}{% endfor %}\n"),
        ("assets/a.png", PNG),
        ("assets/main.css", b"---\n---\n@import 'x';\n"),
        ("_layouts/default.html", b"x"),
        ("_posts/2019-05-03-broken.md", b"---\ntitle: [\n---\nx\n"),
        ("Gemfile", b"x"),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let hello = moved.text("Hello");
    assert_eq!(
        (hello.old.as_deref(), hello.new.as_deref()),
        (Some("/n/life/2019/05/01/hello.html"), Some("/n/life/2019/05/01/hello.html"))
    );
    let text = moved.file(hello);
    for part in [
        "date = 2019-05-01T10:00:00Z",
        "tags = [\"life\", \"a\", \"b\"]",
        "cover = \"../n/assets/a.png\"",
        "See [two](/n/two.html), [about](/n/about.html) and ![x](../n/assets/a.png)\n",
        "```ruby\nputs 1\n```",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    assert!(hello.notes.iter().any(|note| note.starts_with("_posts/2019-05-01-hello.md:")), "{:?}", hello.notes);
    let two = moved.file(moved.text("Two"));
    assert!(
        two.contains("aliases = [\"/zwei/\"]")
            && two.contains("math = true")
            && two.contains("## Part {#own}")
            && two.contains("\n\n[TOC]\n\n"),
        "{two}"
    );
    assert_eq!(moved.text("Later").outcome, Outcome::Draft);
    assert_eq!(moved.text("Soup").new.as_deref(), Some("/n/recipes/soup.html"));
    let left: Vec<&str> = moved.report.texts.iter().filter(|text| text.outcome == Outcome::LeftOut).map(|text| text.id.as_str()).collect();
    assert_eq!(left, ["_posts/2019-05-03-broken.md", "index.html"]);
}

#[test]
fn a_hugo_site_moves_in() {
    let site = folder(&[
        ("hugo.toml", b"title = 'Notes'\nbaseURL = 'https://notes.example/'\n[permalinks]\nblog = '/:year/:slug/'\n[[menus.main]]\nname = 'About'\npageRef = '/about'\nweight = 1\n"),
        ("content/posts/2019-05-01-hello.md", b"+++\ntitle = 'Hello'\ndate = 2019-05-01\ntags = ['a']\ncategories = ['b']\naliases = ['/old/', 'older']\n+++\nSee [t]({{< ref \"trip\" >}}) and [about]({{% relref \"/about.md#x\" %}}).\n\n{{< figure src=\"/img/a.png\" alt=\"A\" caption=\"Cap\" >}}\n\n{{< youtube abc >}}\n\n{{< warning >}}\nHot {{< param \"colour\" >}}\n{{< /warning >}}\n\n{{< chart 3 >}}\n\n`{{</* x */>}}`\n"),
        ("content/posts/trip/index.md", b"---\ntitle: Trip\ndate: 2020-01-02\ncover:\n  image: cover.png\n  alt: Hills\n---\n![p](cover.png) [f](files/a.pdf)\n"),
        ("content/posts/trip/cover.png", PNG),
        ("content/posts/trip/files/a.pdf", b"%PDF"),
        ("content/blog/x.md", b"{\"title\": \"X\", \"date\": \"2021-02-03\", \"slug\": \"ex\"}\nText\n"),
        ("content/about.md", b"---\ntitle: About\n---\nUs\n"),
        ("content/posts/_index.md", b"---\ntitle: Posts\n---\n"),
        ("content/posts/draft.md", b"---\ntitle: Draft\ndraft: true\n---\nx\n"),
        ("static/img/a.png", PNG),
        ("static/_redirects", b"/a /b\n"),
        ("layouts/index.html", b"x"),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let hello = moved.text("Hello");
    assert_eq!(hello.new.as_deref(), Some("/posts/2019-05-01-hello/"));
    let text = moved.file(hello);
    for part in [
        "tags = [\"b\", \"a\"]",
        "aliases = [\"/old/\", \"/posts/older/\"]",
        "See [t](/posts/trip/) and [about](/about/#x).",
        "<figure>\n\n![A](../img/a.png)\n\n<figcaption>Cap</figcaption>\n</figure>",
        "https://www.youtube.com/watch?v=abc",
        "> [!WARNING]\n> Hot {{< param \"colour\" >}}",
        "{{< chart 3 >}}",
        "`{{< x >}}`",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    assert_eq!(hello.notes.len(), 2, "{:?}", hello.notes);
    let trip = moved.text("Trip");
    assert_eq!((trip.file.as_deref(), trip.new.as_deref()), (Some("posts/2020-01-02-trip/index.md"), Some("/posts/trip/")));
    let text = moved.file(trip);
    assert!(text.contains("![p](cover.png) [f](/posts/2020-01-02-trip/files/a.pdf)") && text.contains("cover = \"cover.png\""), "{text}");
    assert_eq!(moved.text("X").new.as_deref(), Some("/2021/ex/"));
    assert_eq!(moved.text("Draft").outcome, Outcome::Draft);
    assert!(moved.read("blog.toml").contains("{ title = \"About\", url = \"/about/\" }"));
}

/// Hugo's documentation, "Configuration directory": `languages.en.toml` is the table `languages.en`, and `menus.en.toml` its menus. Seen at
/// github.com/letsencrypt/website.
#[test]
fn a_hugo_site_with_a_file_of_settings_for_each_language_moves_in() {
    let site = folder(&[
        ("config/_default/hugo.toml", b"baseURL = 'https://a.example/'\ndefaultContentLanguage = 'en'\n"),
        ("config/_default/languages.en.toml", b"title = 'Notes'\ncontentDir = 'content/en'\n[params]\ndescription = 'By the sea'\n"),
        ("config/_default/languages.de.toml", b"title = 'Notizen'\ncontentDir = 'content/de'\n"),
        ("config/_default/menu.en.toml", b"[[main]]\nname = 'About'\nurl = '/about/'\n"),
        ("content/en/post/one.md", b"---\ntitle: One\ndate: 2020-01-02\n---\nSee [there](#16-terms-and-more).\n\n## 1.6 Terms, and more\n"),
        ("content/en/about.md", b"---\ntitle: About\n---\nUs\n"),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let settings = moved.read("blog.toml");
    for part in ["title = \"Notes\"", "description = \"By the sea\"", "{ title = \"About\", url = \"/about/\" }"] {
        assert!(settings.contains(part), "{part}\n---\n{settings}");
    }
    assert_eq!(moved.site.problems(), [], "the link leads to its section");
}

/// Ghost and WordPress show no page before its time, other than the blog, in which the date of a page says nothing.
#[test]
fn pages_whose_time_has_not_come_are_drafts() {
    let post = |kind: &str| {
        format!(
            "{{\"id\":\"{kind}\",\"slug\":\"{kind}\",\"title\":\"A {kind}\",\"type\":\"{kind}\",\"status\":\"scheduled\",\"published_at\":\"2037-01-01T00:00:00.000Z\",\"html\":\"<p>x</p>\"}}"
        )
    };
    let ghost = format!("{{\"db\":[{{\"data\":{{\"posts\":[{},{}]}}}}]}}", post("page"), post("post"));
    let item = |kind: &str| {
        format!(
            "<item><title>A {kind}</title><link>http://old.example/{kind}/</link><content:encoded><![CDATA[x]]></content:encoded><wp:post_id>{}</wp:post_id>\
             <wp:post_date_gmt>2037-01-01 10:00:00</wp:post_date_gmt><wp:post_name>{kind}</wp:post_name><wp:status>future</wp:status><wp:post_type>{kind}</wp:post_type></item>",
            kind.len() + usize::from(kind == "post")
        )
    };
    let wordpress = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss xmlns:wp=\"http://wordpress.org/export/1.2/\" xmlns:content=\"c\"><channel><title>T</title>\
         <link>http://old.example</link>{}{}</channel></rss>",
        item("page"),
        item("post")
    );
    for (name, export) in [("export.json", ghost), ("export.xml", wordpress)] {
        let files = folder(&[(name, export.as_bytes())]);
        let moved = Moved::of(&[files.path().join(name)]);
        let (page, post) = (moved.text("A page"), moved.text("A post"));
        assert_eq!((page.kind, page.outcome, post.outcome), ("page", Outcome::Draft, Outcome::Written), "{name}");
        assert!(page.notes[0].starts_with("waits for its time"), "{:?}", page.notes);
    }
}

/// Hugo's documentation, "Front matter" (`expiryDate`, `draft`, `headless`) and "Build options". What Hugo shows to nobody, or lists nowhere, stays
/// hidden, wherever the front matter begins and however it is written.
#[test]
fn what_was_hidden_in_hugo_stays_hidden() {
    let site = folder(&[
        ("hugo.toml", b"title = 'Notes'\nbaseURL = 'https://notes.example/'\n"),
        ("content/posts/below.md", b"\n\xef\xbb\xbf\n---\ntitle: Below\ndraft: true\n---\nSecret\n"),
        ("content/posts/json.md", b"\n{\"title\": \"Json\", \"draft\": true}\nSecret\n"),
        ("content/posts/broken.md", b"{\"title\": \"Broken\", \"draft\": true,}\nSecret\n"),
        ("content/posts/written.md", b"---\ntitle: Written\nDraft: yes\n---\nSecret\n"),
        ("content/posts/unpublished.md", b"---\ntitle: Unpublished\npublished: false\ndate: 2020-01-02\n---\nSecret\n"),
        ("content/posts/gone.md", b"---\ntitle: Gone\ndate: 2020-01-02\nexpiryDate: 2021-01-01\n---\nSecret\n"),
        ("content/posts/going.md", b"+++\ntitle = 'Going'\ndate = 2020-01-02\nunpublishdate = 2037-01-01\n+++\nText\n"),
        ("content/posts/silent.md", b"---\ntitle: Silent\n_build:\n  list: never\n---\nSecret\n"),
        ("content/posts/local.md", b"---\ntitle: Local\nbuild:\n  list: local\n---\nSecret\n"),
        ("content/posts/parts/index.md", b"---\ntitle: Parts\nheadless: true\n---\nSecret\n"),
        ("content/posts/parts/plan.png", PNG),
        ("content/soon.md", b"---\ntitle: Soon\ndate: 2037-01-01\n---\nSecret\n"),
        ("content/open.md", b"---\ntitle: Open\nbuild:\n  render: always\n  list: always\n---\nText\n"),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let expected = [
        (("", "left out"), 1),
        (("draft", "draft"), 4),
        (("expired", "draft"), 1),
        (("headless", "draft"), 1),
        (("published", "written"), 2),
        (("scheduled", "draft"), 1),
        (("unlisted", "draft"), 2),
    ];
    assert_eq!(moved.counts(), BTreeMap::from(expected));
    assert!(moved.file(moved.text("Unpublished")).contains("date = 2020-01-02T00:00:00Z\n"));
    assert_eq!(moved.text("Gone").notes, ["has expired on 2021-01-01T00:00:00Z: Hugo does not show it any more"]);
    assert_eq!(moved.text("Going").notes, ["has a date on which it expires, which the blog does not know"]);
    // Published again, it is where it was.
    assert!(moved.file(moved.text("Gone")).contains("permalink = \"/posts/gone/\"\n"), "{}", moved.file(moved.text("Gone")));
    let account = moved.report.text();
    assert!(account.contains("Kept from readers, as drafts:\n") && account.contains("Hugo makes no page of it"), "{account}");
    // Nor is a file beside a text that nobody sees sent to anybody.
    assert_eq!(moved.text("Parts").file.as_deref(), Some("posts/drafts/parts/index.md"));
    assert!(moved.site.addresses().all(|(path, _)| !path.contains("plan") && !path.contains("parts")));
    assert!(moved.text("Below").notes.is_empty() && moved.file(moved.text("Below")).ends_with("+++\n\nSecret\n"));
}

/// Hugo's documentation, "Front matter", "Cascade", and "Configure cascade": a text's own value counts, then that of the nearest section, then that of
/// the configuration.
#[test]
fn what_sections_hand_down_in_hugo_reaches_their_texts() {
    let site = folder(&[
        (
            "hugo.toml",
            b"title = 'Notes'\n[[cascade]]\n[cascade.params]\nauthor = 'Ann Lee'\n[[cascade]]\n[cascade.build]\nrender = 'never'\n[cascade.target]\npath = '/parts/**'\n\
              [[cascade]]\ndraft = true\n[cascade._target]\nkind = 'page'\nenvironment = 'staging'\n",
        ),
        ("content/posts/_index.md", b"---\ntitle: Posts\ncascade:\n  - tags: [sea]\n    _target:\n      path: '/posts/**'\n  - draft: true\n    target: {roles: x}\n---\n"),
        ("content/posts/one.md", b"---\ntitle: One\ndraft: false\n---\nText\n"),
        ("content/posts/two.md", b"Secret\n"),
        ("content/posts/2024/_index.md", b"+++\n[cascade]\ntags = ['land']\nexpiryDate = 2021-01-01\n+++\n"),
        ("content/posts/2024/three.md", b"---\ntitle: Three\ndraft: false\nauthor: Bo\n---\nSecret\n"),
        ("content/parts/a.md", b"---\ntitle: Part\n---\nSecret\n"),
        ("content/partsmen.md", b"---\ntitle: Partsmen\n---\nText\n"),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let of = |title: &str| (moved.text(title).outcome, moved.file(moved.text(title)));
    for (title, outcome, parts) in [
        ("One", Outcome::Written, ["tags = [\"sea\"]", "authors = [\"ann-lee\"]"]),
        ("Two", Outcome::Draft, ["tags = [\"sea\"]", "draft = true"]),
        ("Three", Outcome::Draft, ["tags = [\"land\"]", "authors = [\"bo\"]"]),
        ("Part", Outcome::Draft, ["authors = [\"ann-lee\"]", "draft = true"]),
        ("Partsmen", Outcome::Written, ["title = \"Partsmen\"", "authors = [\"ann-lee\"]"]),
    ] {
        let (found, file) = of(title);
        assert_eq!(found, outcome, "{title}");
        assert!(parts.iter().all(|part| file.contains(part)), "{parts:?}\n{file}");
    }
    assert_eq!(
        moved.report.notes,
        ["posts/_index.md: `cascade`: the target's `roles` is not understood, so its values are for all texts below"]
    );
}

/// Hugo's `targetPathAlias` in `hugolib/alias.go`, and `renderAliases`: an alias that is not an HTML file is a folder with one, below the site's own path; a
/// relative one is on the level of the text.
#[test]
fn aliases_are_where_hugo_has_them() {
    let text = |title: &str, aliases: &str| format!("---\ntitle: {title}\naliases: {aliases}\n---\nText\n");
    let pretty = text(
        "Pretty",
        "[/old/one, /old/two/, /old/three.html, four, ../five, ./a/../six.html, '/../seven', /eight/index.html, /nine.php, /, '']",
    );
    let section = text("Section", "[ten]");
    let site = folder(&[
        ("hugo.toml", b"baseURL = 'https://a.example/n/'\n"),
        ("content/posts/deep/pretty.md", pretty.as_bytes()),
        ("content/docs/_index.md", section.as_bytes()),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let file = moved.file(moved.text("Pretty"));
    let expected = "aliases = [\"/n/old/one/\", \"/n/old/two/\", \"/n/old/three.html\", \"/n/posts/deep/four/\", \"/n/posts/five/\", \"/n/posts/deep/six.html\", \
                    \"/n/seven/\", \"/n/eight/\", \"/n/eight/index.html\", \"/n/nine.php/\"]";
    assert!(file.contains(expected), "{file}");
    for path in ["/n/old/one/", "/n/old/three.html", "/n/posts/five/"] {
        assert!(moved.site.contains(path), "{path}");
    }
    assert!(moved.file(moved.text("Section")).contains("aliases = [\"/n/ten/\"]"), "{}", moved.file(moved.text("Section")));

    let ugly = text("Ugly", "[/old/one, two]");
    let site = folder(&[("hugo.toml", b"uglyURLs = true\n"), ("content/posts/ugly.md", ugly.as_bytes())]);
    let moved = Moved::of(&[site.path().to_owned()]);
    assert!(moved.file(moved.text("Ugly")).contains("aliases = [\"/old/one.html\", \"/posts/two.html\"]"));
}

/// Jekyll reads front matter at the first byte alone (`Utils.has_yaml_header?`, `Document::YAML_FRONT_MATTER_REGEXP`), shows no text of a collection before
/// its date (`Publisher#hidden_in_the_future?`), and takes the switches of YAML 1.1.
#[test]
fn what_was_hidden_in_jekyll_stays_hidden() {
    let site = folder(&[
        ("_config.yml", b"title: Notes\ncollections:\n  recipes:\n    output: true\n"),
        ("_posts/2019-05-01-below.md", b"\n---\ntitle: Below\npublished: false\n---\nText\n"),
        ("_posts/2019-05-02-written.md", b"---\ntitle: Written\npublished: no\n---\nText\n"),
        ("_posts/2019-05-03-unmapped.md", b"---\ntitle: Unmapped\nsitemap: false\n---\nText\n"),
        ("_drafts/bare.md", b"Text\n"),
        ("_recipes/later.md", b"---\ntitle: Later\ndate: 2037-01-01\n---\nText\n"),
        ("below.md", b"\n---\ntitle: Page\n---\nText\n"),
        ("marks.md", b"---\ntitle: Marks\n---\nText\n{: .lead}\n\n{::comment}\nSecret\n{:/comment}\n\n![a](https://b.example/c.png){: .wide} {% highlight ruby linenos %}\nputs 1\n{% endhighlight %}\n"),
    ]);
    let moved = Moved::of(&[site.path().to_owned()]);
    let drafts: Vec<&str> =
        moved.report.texts.iter().filter(|text| text.outcome == Outcome::Draft).map(|text| text.title.as_str()).collect();
    assert_eq!(drafts, ["Bare", "Below", "Written", "Later"]);
    assert!(moved.text("Below").notes[0].contains("below an empty line") && moved.text("Later").notes[0].starts_with("appears on 2037-"));
    let left: Vec<&str> = moved.report.texts.iter().filter(|text| text.outcome == Outcome::LeftOut).map(|text| text.id.as_str()).collect();
    assert_eq!(left, ["below.md"]);

    let unmapped = moved.text("Unmapped");
    assert!(moved.file(unmapped).contains("noindex = true\n") && unmapped.notes[0].contains("sitemap"), "{:?}", unmapped.notes);
    let marks = moved.file(moved.text("Marks"));
    assert!(marks.contains("```ruby linenos\nputs 1\n```") && !marks.contains("{:") && !marks.contains("Secret"), "{marks}");
    let gone = moved.report.left_out.iter().find(|left| left.what.contains("kramdown")).expect("counted");
    assert_eq!(gone.count, 2);
}

#[test]
fn what_is_given_is_recognised() {
    let places = folder(&[
        ("jekyll/_config.yml", b"title: x"),
        ("hugo/config.toml", b"title = 'x'"),
        ("hugo/content/a.md", b"x"),
        ("ghost/data/export.json", b"{\"db\": []}"),
        ("feed.xml", b"<?xml version=\"1.0\"?><rss><channel/></rss>"),
        ("a.zip", b"PK\x03\x04..."),
        ("a.txt", b"hello"),
        ("empty/x.txt", b"x"),
        ("wp/wp-config.php", b"<?php"),
    ]);
    let of = |name: &str| recognise(&[places.path().join(name)]);
    assert_eq!(of("jekyll").unwrap(), Engine::Jekyll);
    assert_eq!(of("hugo").unwrap(), Engine::Hugo);
    assert_eq!(of("ghost").unwrap(), Engine::Ghost);
    assert_eq!(recognise(&[fixture("ghost.json")]).unwrap(), Engine::Ghost);
    assert_eq!(recognise(&[fixture("wordpress.xml")]).unwrap(), Engine::WordPress);
    for (name, remedy) in [
        ("feed.xml", "Tools > Export"),
        ("a.zip", "unzip"),
        ("a.txt", "Ghost's JSON"),
        ("empty", "_config.yml"),
        ("wp", "--content"),
        ("gone", "cannot read"),
    ] {
        let message = of(name).expect_err(name).to_string();
        assert!(message.contains(remedy), "{name}: {message}");
    }
}

fn refused(name: &str, content: &[u8]) -> String {
    let source = folder(&[(name, content)]);
    let target = tempfile::tempdir().unwrap();
    let error = import(&[source.path().join(name)], &target.path().join("blog"), &options()).expect_err(name);
    let left = fs::read_dir(target.path()).unwrap().count();
    assert!(left == 0 || matches!(error, ImportError::HalfWay { .. }), "{error}");
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text += &format!("; {inner}");
        cause = inner.source();
    }
    text
}

/// Broken and hostile exports: place and remedy, and nothing written.
#[test]
fn broken_exports_are_refused_with_their_place() {
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss xmlns:wp=\"http://wordpress.org/export/1.2/\">\n<channel>\n";
    let deep = format!("{head}{}", "<a>".repeat(100_000));
    let bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE rss [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>\n<rss xmlns:wp=\"http://wordpress.org/export/1.2/\"><channel><title>&b;</title></channel></rss>";
    let latin = head.replace("UTF-8", "ISO-8859-1");
    let cut = format!("{head}<item><title>x");
    let crossed = format!("{head}<item><title>x</item></title></channel></rss>");
    let mut bytes = format!("{head}<title>x").into_bytes();
    bytes.extend(b"\xff\xfe</title></channel></rss>");
    let xml: [(&[u8], &str); 6] = [
        (deep.as_bytes(), "export.xml:4: elements are nested more than 16 deep"),
        (bomb.as_bytes(), "export.xml:2: declares a document type"),
        (latin.as_bytes(), "iconv -f ISO-8859-1"),
        (cut.as_bytes(), "export it again"),
        (crossed.as_bytes(), "export.xml:4: "),
        (&bytes, "iconv"),
    ];
    for (content, expected) in xml {
        let message = refused("export.xml", content);
        assert!(message.contains(expected), "{expected}\n{message}");
    }
    let nested = format!("{{\"db\":{}", "[".repeat(100_000));
    let mut broken = b"{\"db\":[{\"data\":{\"posts\":[{\"title\":\"".to_vec();
    broken.extend(b"\xff\"}]}}]}");
    let json: [(&[u8], &str); 6] = [
        (nested.as_bytes(), "nested too deeply"),
        (b"{\"db\":[{\"data\":{\"posts\":[{\"title\":\n\"a", "export.json:2: "),
        (&broken, "must be UTF-8"),
        (b"{\"db\":[{\"data\":{\"posts\":\n}}]}", "export.json:2: "),
        (b"{\"db\":[]}", "has no posts and no settings"),
        (b"{}", "has no posts and no settings"),
    ];
    for (content, expected) in json {
        let message = refused("export.json", content);
        assert!(message.contains(expected), "{expected}\n{message}");
    }
}

/// Nothing that an export says leads out of the folder.
#[test]
fn no_name_in_an_export_leads_out_of_the_folder() {
    let names = [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "a/../../b",
        "con\\..\\x",
        "\u{0}x",
        "-",
        "",
        ".",
        "index",
        "tags",
        "%2e%2e%2f%2e%2e%2fx",
    ];
    let posts: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(id, name)| {
            let name = serde_json::to_string(name).unwrap();
            format!("{{\"id\":\"{id}\",\"slug\":{name},\"title\":{name},\"status\":\"published\",\"feature_image\":\"__GHOST_URL__/content/images/../../../etc/passwd\",\"html\":\"<img src='../../../etc/passwd'><a href='file:///etc/passwd'>x</a>\"}}")
        })
        .collect();
    let json = format!(
        "{{\"db\":[{{\"data\":{{\"posts\":[{}],\"users\":[{{\"id\":\"u\",\"slug\":\"../x\",\"name\":\"[a]\\n[b]\"}}],\"settings\":[{{\"key\":\"title\",\"value\":\"\\\"\\n[x]\"}}]}}}}]}}",
        posts.join(",")
    );
    let source = folder(&[("export.json", json.as_bytes())]);
    let outer = tempfile::tempdir().unwrap();
    let target = outer.path().join("a/b/blog");
    let report = import(&[source.path().join("export.json")], &target, &options()).expect("imported");
    assert_eq!(report.texts.len(), names.len());
    assert!(report.texts.iter().all(|text| text.outcome == Outcome::Written), "{:?}", report.texts);
    let mut open = vec![outer.path().to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                assert!(path.starts_with(&target), "{}", path.display());
            }
        }
    }
    let site = build(&target, &BlogOptions::default(), NOW).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(problems(&site), Vec::<String>::new());
}

#[test]
fn a_folder_with_something_in_it_stays_as_it_is() {
    let target = folder(&[("keep.md", b"mine")]);
    let error = import(&[fixture("ghost.json")], target.path(), &options()).expect_err("refused");
    assert!(error.to_string().contains("is not empty"), "{error}");
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
}

/// A large export costs the memory of its largest text, not of the whole.
#[test]
fn a_large_export_is_read_piece_by_piece() {
    use std::io::Write as _;
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("export.xml");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    write!(file, "<rss xmlns:wp=\"http://wordpress.org/export/1.2/\"><channel><title>T</title><link>http://old.example</link>").unwrap();
    let words = "<p>words and words and words</p>\n".repeat(600);
    for id in 0..300 {
        write!(
            file,
            "<item><title>Item {id}</title><link>http://old.example/item-{id}/</link><content:encoded><![CDATA[<!-- wp:html -->{words}<!-- /wp:html -->]]></content:encoded>\
             <wp:post_id>{id}</wp:post_id><wp:post_date_gmt>2019-05-01 10:00:00</wp:post_date_gmt><wp:post_name>item-{id}</wp:post_name>\
             <wp:status>draft</wp:status><wp:post_type>post</wp:post_type></item>"
        )
        .unwrap();
    }
    write!(file, "</channel></rss>").unwrap();
    drop(file);
    let target = tempfile::tempdir().unwrap();
    let report = import(&[path], target.path(), &options()).expect("imported");
    assert_eq!(report.counted("post"), (0, 300, 0));
}
