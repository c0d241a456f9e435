//! What an author changes about the look: templates, styles and settings. A mistake in them never costs a reader a page.

use blog::{Blog, SiteResource};

use crate::folder::{Folder, lines, page, rebuilt};

const POST: &str = "---\ndate: 2026-01-01\ntags: [sea]\n---\n# Good\n\nText.";

/// Returns the style that the front page names.
fn style(blog: &Blog) -> String {
    let front = page(blog, "/");
    let address = front.split("<link rel=\"stylesheet\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a style");
    asset(blog, address)
}

fn asset(blog: &Blog, address: &str) -> String {
    let site = blog.site();
    let Some(SiteResource::Page(page)) = site.find(address, "http://blog.test") else { panic!("nothing at {address}") };
    String::from_utf8(page.body.to_vec()).expect("text")
}

#[test]
fn a_template_of_the_blog_replaces_the_built_in_one_and_shows_at_once() {
    let folder = Folder::of(&[("a.md", POST)]);
    let blog = folder.blog();
    folder.write("theme/post.html", "{% extends \"base.html\" %}{% block content %}<h1>Mine: {{ post.title }}</h1>{% endblock %}");
    let changed = rebuilt(&blog);
    assert!(page(&blog, "/a/").contains("<h1>Mine: Good</h1>"));
    assert!(changed.paths.contains(&"/a/".to_owned()) && changed.problems.is_empty(), "{changed:?}");
    folder.remove("theme/post.html");
    rebuilt(&blog);
    assert!(!page(&blog, "/a/").contains("Mine"), "without it, the built-in one is back");
}

#[test]
fn a_part_of_a_template_can_be_replaced_alone() {
    let folder = Folder::of(&[("a.md", POST), ("theme/meta.html", "<p>by hand</p>"), ("theme/_parts/x.html", "<i>part</i>")]);
    folder.write("theme/brand.html", "{% include \"_parts/x.html\" %}");
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()), Vec::<String>::new());
    assert!(page(&blog, "/a/").contains("<p>by hand</p>") && page(&blog, "/").contains("<i>part</i>"));
}

/// Every way in which a template can be wrong, and the beginning of what is told.
const WRONG: [(&str, &str); 10] = [
    ("one\n{% if %}", "theme/post.html:2: syntax error"),
    ("one\n\n{% block content %}", "theme/post.html:3: syntax error"),
    ("one\n{{ post.titel }}", "theme/post.html:2: `post.titel`: nothing has this name here"),
    ("{{ unheard }}", "theme/post.html:1: `unheard`: nothing has this name here"),
    ("\n{% include \"gone.html\" %}", "theme/post.html:2: there is no such template (tried to include non-existing template"),
    ("{% include \"../../../../etc/passwd\" %}", "theme/post.html:1: there is no such template"),
    ("{% include \"/etc/passwd\" %}", "theme/post.html:1: there is no such template"),
    ("{% include \"post.html\" %}", "theme/post.html:1: "),
    (
        "{% for a in range(2000) %}{% for b in range(2000) %}{{ a }}{% endfor %}{% endfor %}",
        "theme/post.html:1: takes more than 2000000 steps",
    ),
    ("\n{{ asset('gone.png') }}", "theme/post.html:2: invalid operation (there is no file theme/gone.png"),
];

#[test]
fn a_wrong_template_names_its_line_and_leaves_the_last_good_one() {
    for (wrong, told) in WRONG {
        let folder = Folder::of(&[("a.md", POST), ("theme/post.html", "First: {{ post.title }}")]);
        let blog = folder.blog();
        folder.write("theme/post.html", wrong);
        let broken = rebuilt(&blog);
        let problems = lines(&broken.problems);
        assert!(problems.len() == 1 && problems[0].starts_with(told), "{wrong:?}: {problems:?}");
        assert!(page(&blog, "/a/").contains("First: Good"), "{told}");
        // Still, after an edit elsewhere.
        folder.write("b.md", POST);
        assert!(rebuilt(&blog).problems.is_empty() && page(&blog, "/a/").contains("First: Good"), "{told}");
        folder.write("theme/post.html", "Second: {{ post.title }}");
        let mended = rebuilt(&blog);
        assert_eq!(lines(&mended.mended), problems, "{told}");
        assert!(page(&blog, "/a/").contains("Second: Good"), "{told}");
    }
}

#[test]
fn at_the_start_the_built_in_template_stands_in_for_a_wrong_one() {
    for (wrong, told) in WRONG {
        let folder = Folder::of(&[("a.md", POST), ("theme/post.html", wrong), ("theme/tags.html", "Mine")]);
        let blog = folder.blog();
        let problems = lines(blog.site().problems());
        assert!(problems.len() == 1 && problems[0].starts_with(told), "{wrong:?}: {problems:?}");
        assert!(page(&blog, "/a/").contains("<h1>Good</h1>") && page(&blog, "/tags/").contains("Mine"), "{told}");
    }
}

#[test]
fn a_mistake_in_a_part_is_told_of_the_part() {
    let folder = Folder::of(&[
        ("a.md", POST),
        ("theme/base.html", "{% block content %}{% endblock %}{{ site.title }}"),
        ("theme/chips.html", "\n{{ nobody }}"),
    ]);
    let blog = folder.blog();
    let problems = lines(blog.site().problems());
    assert!(problems.len() == 1 && problems[0].starts_with("theme/chips.html:2: "), "{problems:?}");
    assert!(page(&blog, "/a/").contains("rel=\"tag\">sea"), "the built-in part stands in");
}

/// A template that fails on one post alone is not found by trying.
#[test]
fn a_page_that_fails_later_is_drawn_with_the_built_in_templates() {
    let text = |n: usize| (format!("2026-01-{n:02}-p{n}.md"), format!("# Post {n}"));
    let texts: Vec<_> = (1..=9).map(text).collect();
    let folder = Folder::of(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    folder.write("theme/post.html", "Mine: {% if post.title == 'Post 2' %}{{ nobody }}{% endif %}");
    let blog = folder.blog();
    assert!(page(&blog, "/p3/").starts_with("Mine:"));
    assert!(page(&blog, "/p2/").contains("<h1>Post 2</h1>"));
}

#[test]
fn a_page_without_end_is_cut_off_by_its_size() {
    let long = "x".repeat(100_000);
    let folder = Folder::of(&[("a.md", POST), ("theme/post.html", &format!("{{% for a in range(1000) %}}{long}{{% endfor %}}"))]);
    let blog = folder.blog();
    let problems = lines(blog.site().problems());
    assert!(problems.len() == 1 && problems[0].starts_with("theme/post.html: makes a page of more than 16 MiB"), "{problems:?}");
    assert!(page(&blog, "/a/").contains("<h1>Good</h1>"));
}

#[test]
fn custom_css_follows_the_style_and_style_css_replaces_it() {
    let folder = Folder::of(&[("a.md", POST), ("theme/custom.css", "body { color: #010203; }")]);
    let blog = folder.blog();
    let with_custom = style(&blog);
    assert!(with_custom.ends_with("body{color:#010203}") && with_custom.contains("--paper"), "{}", &with_custom[with_custom.len() - 200..]);
    folder.write("theme/style.css", "h1 { margin: 0 }");
    rebuilt(&blog);
    assert_eq!(style(&blog), "h1{margin:0}body{color:#010203}");
}

#[test]
fn a_style_that_is_never_closed_is_told_with_its_line() {
    let folder = Folder::of(&[("a.md", POST), ("theme/custom.css", "a { b: c }\nd {\n e: f\n")]);
    let problems = lines(folder.blog().site().problems());
    assert!(problems.len() == 1 && problems[0].contains("theme/custom.css:2:") && problems[0].contains("never closed"), "{problems:?}");
}

#[test]
fn files_of_the_theme_have_addresses_that_change_with_their_content() {
    let folder = Folder::of(&[
        ("a.md", POST),
        ("theme/sea.svg", "<svg/>"),
        ("theme/x.js", "1"),
        ("theme/notes.md", "secret"),
        ("theme/README.md", "secret"),
    ]);
    folder.write("theme/custom.css", "body { background: url(sea.svg) }");
    folder.write("theme/post.html", "{{ asset('sea.svg') }} {{ asset('x.js') }}");
    let blog = folder.blog();
    let (svg, js) = page(&blog, "/a/").split_once(' ').map(|(svg, js)| (svg.to_owned(), js.to_owned())).expect("two addresses");
    assert!(svg.starts_with("/theme/sea-") && js.starts_with("/theme/x-") && js.ends_with(".js"), "{svg} {js}");
    assert!(style(&blog).contains(&format!("url(\"{svg}\")")));
    assert_eq!(asset(&blog, &svg), "<svg/>");
    folder.write("theme/sea.svg", "<svg><g/></svg>");
    rebuilt(&blog);
    assert!(!page(&blog, "/a/").contains(&svg) && !style(&blog).contains(&svg));
    let site = blog.site();
    assert!(!site.addresses().any(|(path, _)| path.ends_with(".md") && path.contains("theme")), "notes beside a theme are not published");
}

#[test]
fn settings_become_variables_of_the_style() {
    let settings = "[theme]\naccent = \"yellow\"\nfont = \"mono\"\nwidth = \"44rem\"\nfont_file = \"theme/a.woff2\"\nlogo = \"logo.svg\"\nfavicon = \"icon.svg\"\n";
    let folder = Folder::of(&[
        ("a.md", POST),
        ("blog.toml", settings),
        ("theme/a.woff2", "font"),
        ("logo.svg", "<svg width=\"9\" height=\"9\"/>"),
        ("icon.svg", "<svg/>"),
    ]);
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()), Vec::<String>::new());
    let style = style(&blog);
    assert!(style.contains("--measure:44rem") && style.contains("--text:\"blog\",ui-monospace"), "{}", &style[style.len() - 900..]);
    assert!(!style.contains("--accent:#ffff00;"), "yellow cannot be read on white paper");
    assert!(style.contains("prefers-color-scheme:dark){:root{--accent:#ffff00}}"), "on dark paper it can");
    let front = page(&blog, "/");
    assert!(front.contains("<link rel=\"preload\" href=\"/theme/a-") && front.contains("<img src=\"/logo.svg\" alt=\"\""), "{front}");
    assert!(front.contains("<link rel=\"icon\" href=\"/icon.svg\">"));
}

#[test]
fn a_picture_that_is_not_there_is_told_and_the_mark_stays() {
    let folder = Folder::of(&[("a.md", POST), ("blog.toml", "title = \"T\"\n[theme]\nlogo = \"logo.svg\"\n")]);
    let blog = folder.blog();
    let problems = lines(blog.site().problems());
    assert!(
        problems.len() == 1 && problems[0].contains("blog.toml:3:") && problems[0].contains("`theme.logo` names \"logo.svg\""),
        "{problems:?}"
    );
    assert!(page(&blog, "/").contains("<svg viewBox"));
    folder.write("logo.svg", "<svg/>");
    assert_eq!(rebuilt(&blog).mended.len(), 1);
    assert!(page(&blog, "/").contains("src=\"/logo.svg\""));
}

#[test]
fn the_links_at_the_top_are_the_authors() {
    let folder = Folder::of(&[("a.md", POST), ("pages/about.md", "# About us"), ("blog.toml", "")]);
    let blog = folder.blog();
    let front = page(&blog, "/");
    for link in [
        "<a href=\"/about/\">About us</a>",
        "<a href=\"/archive/\">Archive</a>",
        "<a href=\"/tags/\">Tags</a>",
        "<a href=\"/search/\">Search</a>",
    ] {
        assert!(front.contains(link), "{link}: {front}");
    }
    folder.write("blog.toml", "navigation = [{ title = \"Elsewhere\", url = \"https://x.test/\" }]");
    rebuilt(&blog);
    let front = page(&blog, "/");
    let nav = front.split("<nav").nth(1).and_then(|rest| rest.split("</nav>").next()).expect("a menu");
    assert!(nav.contains("<a href=\"https://x.test/\">Elsewhere</a>") && nav.matches("<a").count() == 1, "{nav}");
}

#[test]
fn an_authors_page_says_what_is_known() {
    let settings = "author = \"Ann Lee\"\n[authors.\"Ann Lee\"]\nbio = \"Sails.\"\nurl = \"https://ann.test/\"\npicture = \"ann.svg\"\n[authors.bob]\nname = \"Bob Ray\"\n";
    let folder =
        Folder::of(&[("blog.toml", settings), ("ann.svg", "<svg/>"), ("a.md", POST), ("b.md", "---\nauthor: bob\n---\n# B\n\nText.")]);
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()), Vec::<String>::new());
    let ann = page(&blog, "/authors/ann-lee/");
    assert!(ann.contains("Sails.") && ann.contains("href=\"https://ann.test/\" rel=\"me\"") && ann.contains("src=\"/ann.svg\""), "{ann}");
    assert!(page(&blog, "/b/").contains("<a href=\"/authors/bob/\" rel=\"author\">Bob Ray</a>"));
    let all = page(&blog, "/authors/");
    assert!(all.contains("Ann Lee") && all.contains("Bob Ray"), "{all}");
}

/// A number of posts that changes must not change every page by the same author.
#[test]
fn a_new_post_changes_no_page_that_does_not_show_it() {
    let text = |n: usize| (format!("2025-01-{n:02}-p{n}.md"), format!("---\nauthor: {}\n---\n# Post {n}\n\nText.", ["Ann", "Bob"][n % 2]));
    let texts: Vec<_> = (1..=25).map(text).collect();
    let folder = Folder::of(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    let blog = folder.blog();
    folder.write("2026-01-01-new.md", "---\nauthor: Ann\n---\n# New\n\nText.");
    let changed = rebuilt(&blog).paths;
    for path in ["/new/", "/p25/", "/", "/archive/", "/archive/2026/", "/authors/", "/authors/ann/"] {
        assert!(changed.contains(&path.to_owned()), "{path}: {changed:?}");
    }
    for path in ["/p10/", "/authors/bob/", "/archive/2025/", "/search/", "/tags/"] {
        assert!(!changed.contains(&path.to_owned()), "{path}: {changed:?}");
    }
}

#[test]
fn long_lists_have_pages_of_a_hundred() {
    let texts: Vec<_> = (0..250)
        .map(|n| {
            (
                format!("p{n}.md"),
                format!("---\ndate: 2026-01-01 00:{:02}:{:02}\ntags: [sea]\nseries: S\n---\n# Post {n}\n\nText.", n / 60, n % 60),
            )
        })
        .collect();
    let folder = Folder::of(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    let blog = folder.blog();
    for list in ["/tags/sea/", "/archive/2026/", "/series/s/"] {
        assert_eq!(page(&blog, list).matches("<li><a href=\"/p").count(), 100, "{list}");
        assert_eq!(page(&blog, &format!("{list}page/3/")).matches("<li><a href=\"/p").count(), 50, "{list}");
        assert!(!blog.site().contains(&format!("{list}page/4/")));
    }
    assert!(page(&blog, "/series/s/").find("/p0/") < page(&blog, "/series/s/").find("/p1/"), "a series is read from its beginning");
    assert!(page(&blog, "/series/s/page/2/").contains("<ol class=\"list\" start=\"101\">"));
    let archive = page(&blog, "/archive/");
    assert!(archive.matches("<li><a href=\"/p").count() == 200 && archive.contains("href=\"/archive/2026/\">"), "{archive}");
}

#[test]
fn every_look_draws_every_page() {
    for look in blog::looks() {
        let folder = Folder::of(&[
            ("blog.toml", &format!("[theme]\nlook = \"{look}\"\n")),
            ("a.md", "---\ntags: [x]\nauthor: Ann\nseries: S\n---\n# A\n\n## One\n\n## Two\n\n## Three\n\nText."),
            ("b.md", "---\ntags: [x]\nauthor: Bob\nseries: S\n---\n# B\n\nText."),
            ("pages/about.md", "# About"),
        ]);
        let blog = folder.blog();
        let site = blog.site();
        assert_eq!(lines(site.problems()), Vec::<String>::new());
        for (path, _) in site.addresses() {
            let Some(SiteResource::Page(page)) = site.find(path, "http://blog.test") else { continue };
            if page.content_type.starts_with("text/html") {
                let html = String::from_utf8(page.body.to_vec()).expect("text");
                assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "{look}, {path}: {}", &html[..200]);
            }
        }
    }
}

/// What `seawall theme export` writes draws the same pages.
#[test]
fn a_look_as_files_is_the_same_look() {
    for look in blog::looks() {
        let plain = Folder::of(&[("a.md", POST), ("blog.toml", &format!("title = \"T\"\n[theme]\nlook = \"{look}\"\n"))]);
        let exported = Folder::of(&[("a.md", POST), ("blog.toml", "title = \"T\"\n")]);
        for (name, text) in blog::theme_files(look).expect("a look") {
            exported.write(&format!("theme/{name}"), text);
        }
        let (plain, exported) = (plain.blog(), exported.blog());
        assert_eq!(lines(exported.site().problems()), Vec::<String>::new());
        for path in ["/", "/a/", "/tags/", "/tags/sea/", "/archive/", "/search/"] {
            assert_eq!(page(&plain, path), page(&exported, path), "{look}, {path}");
        }
    }
}

/// Whoever copies an example's folder `theme` has the look that is built in.
#[test]
fn the_examples_of_looks_are_blogs_that_look_so() {
    for look in ["plain", "magazine", "terminal"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/looks").join(look);
        let blog = Blog::open(&folder, blog::BlogOptions::default(), crate::folder::NOW).expect("builds");
        assert_eq!(lines(blog.site().problems()), Vec::<String>::new());
        let own = std::fs::read_to_string(folder.join("theme/custom.css")).expect("a style");
        let built_in = blog::theme_files(look).expect("a look");
        let (_, style) = built_in.iter().find(|(name, _)| *name == "style.css").expect("a style");
        assert!(style.ends_with(&own), "{look}");
    }
}
