//! What texts become.

use std::{fmt::Write as _, sync::Arc};

use super::*;
use crate::{
    error::Severity,
    feed::BASE,
    targets::{LinkTargets, Target},
    words::Words,
};

fn text(body: &str) -> Text<'_> {
    Text {
        file: Path::new("posts/a.md"),
        folder: "posts",
        body,
        body_line: 5,
        language: "en",
        words: Words::of("en"),
        title: Some("T"),
        has_math: true,
        has_toc: false,
        has_cover: false,
    }
}

fn targets() -> Targets {
    let target = |name: &str, address: &str| {
        (
            name.to_owned(),
            Target {
                address: address.to_owned(),
                is_published: address != "/later/",
                is_left_out: address == "/left-out.jpg",
                version: 0,
                picture: None,
            },
        )
    };
    let texts = [target("posts/b.md", "/b-post/"), target("pages/über.md", "/über/"), target("posts/later.md", "/later/")];
    let files = [
        target("posts/cat photo.jpg", "/posts/cat photo.jpg"),
        target("top.png", "/top.png"),
        target("left-out.jpg", "/left-out.jpg"),
        target("posts/Dog.JPG", "/posts/Dog.JPG"),
        target("posts/Fu\u{308}r.png", "/posts/Fu\u{308}r.png"),
    ];
    Targets::new(Arc::new(LinkTargets { texts: texts.into(), files: files.into() }))
}

fn rendered(body: &str) -> Rendered {
    render(&text(body), &targets()).unwrap_or_else(|problems| panic!("{body:?}: {problems:?}"))
}

fn page(body: &str) -> String {
    rendered(body).html
}

/// Asserts that each text becomes something that contains what is expected.
fn assert_pages(cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        let html = page(body);
        assert!(html.contains(expected), "{body:?}: {html}");
    }
}

#[test]
fn constructs() {
    assert_pages(&[
        ("## A *b*", "<h2 id=\"a-b\"><a class=\"anchor\" href=\"#a-b\""),
        ("## A {#own}", "<h2 id=\"own\">"),
        ("## A\n\n## A", "<h2 id=\"a-1\">"),
        ("~~x~~", "<del>x</del>"),
        ("|a|b|\n|-|-|\n|1|2|", "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>"),
        ("||b|\n|-|-|\n|1|2|", "<thead><tr><td></td><th>b</th></tr></thead>"),
        ("|a|\n|-:|\n|1|", "<td style=\"text-align:right\">1</td>"),
        ("> [!WARNING]\n> x", "<div class=\"alert warning\" role=\"note\">\n<p class=\"alert-title\">Warning</p>\n<p>x</p>\n</div>"),
        ("> [!tip] *Own* title\n> x", "<div class=\"alert tip\" role=\"note\">\n<p class=\"alert-title\"><em>Own</em> title</p>\n<p>x</p>"),
        ("> [!NOTE] See [b](b.md)\n> x", "<p class=\"alert-title\">See <a href=\"/b-post/\">b</a></p>\n<p>x</p>\n</div>"),
        (
            "> [!NOTE] `a` <https://x.test/> \\*\n> x",
            "<p class=\"alert-title\"><code>a</code> <a href=\"https://x.test/\">https://x.test/</a> *</p>",
        ),
        (
            "> [!NOTE] A[^1]\n> x\n\n[^1]: y",
            "<p class=\"alert-title\">A<sup class=\"fnref\" id=\"fnref-1\"><a href=\"#fn-1\">1</a></sup></p>",
        ),
        ("> [!NOTE] ![Top](/top.png) here\n> x", "<p class=\"alert-title\"><img src=\"/top.png\" alt=\"Top\""),
        ("> [!NOTE] Own & title\n> x\n\ny", "<p class=\"alert-title\">Own &amp; title</p>\n<p>x</p>\n</div>\n<p>y</p>"),
        ("> [!NOTE] Own\n>\n> > x\n", "<p class=\"alert-title\">Own</p>\n<blockquote>\n<p>x</p>\n</blockquote>\n</div>"),
        ("> [!WARNING]- Own\n> x", "<p class=\"alert-title\">Own</p>\n<p>x</p>\n</div>"),
        ("> [!NOTE] - Own &lt;b>", "<p class=\"alert-title\">- Own &lt;b&gt;</p>\n</div>"),
        ("> [!NOTE] Own", "<p class=\"alert-title\">Own</p>\n</div>"),
        ("> [!NOTE](b.md) x", "<blockquote>\n<p><a href=\"/b-post/\">!NOTE</a> x</p>\n</blockquote>"),
        ("> [!NOTE] *Own\n> x*", "<blockquote>\n<p>[!NOTE] <em>Own\nx</em></p>\n</blockquote>"),
        ("> [!OTHER] Own", "<blockquote>\n<p>[!OTHER] Own</p>\n</blockquote>"),
        ("> x", "<blockquote>\n<p>x</p>\n</blockquote>"),
        ("Sea\n: Much water", "<dl>\n<dt>Sea</dt>\n<dd>Much water</dd>\n</dl>"),
        ("3. x", "<ol start=\"3\">\n<li>x</li>\n</ol>"),
        ("a  \nb", "a<br>\nb"),
        ("***", "<hr>"),
        ("\"a\" -- b", "“a” – b"),
        ("<https://x.test/?a=1&b=2>", "<a href=\"https://x.test/?a=1&amp;b=2\">"),
        ("<a@x.test>", "<a href=\"mailto:a@x.test\">"),
        ("write to a@x.test.", "write to <a href=\"mailto:a@x.test\">a@x.test</a>."),
        ("a\\@x.test and `b@x.test`", "<p>a@x.test and <code>b@x.test</code></p>"),
        // A program that escapes every sign means the address of a page all the same.
        ("https://x.test/\\@ann", "<p><a href=\"https://x.test/@ann\">https://x.test/@ann</a></p>"),
        ("[a@x.test](b.md)", "<a href=\"/b-post/\">a@x.test</a>"),
        ("see https://x.test/a_b_c.", "see <a href=\"https://x.test/a_b_c\">https://x.test/a_b_c</a>."),
        ("[https://x.test](b.md)", "<a href=\"/b-post/\">https://x.test</a>"),
        ("<a href=\"/\">https://x.test</a>", "<a href=\"/\">https://x.test</a>"),
    ]);
}

/// A box without a label says nothing to those who do not see what stands beside it.
#[test]
fn the_box_of_a_task_is_labelled_by_its_words() {
    assert_pages(&[
        ("- [x] *y*\n- z", "<li class=\"task\"><label><input type=\"checkbox\" disabled checked> <em>y</em></label></li>\n<li>z</li>"),
        ("- [ ] a\n  - [x] b", "<li class=\"task\"><label><input type=\"checkbox\" disabled> a</label>\n<ul>\n<li class=\"task\"><label>"),
        ("- [ ] a\n\n- [ ] b", "<li class=\"task\">\n<p><label><input type=\"checkbox\" disabled> a</label></p>\n</li>"),
        ("- [ ] a\n\n  > b", "a</label></p>\n<blockquote>"),
    ]);
    assert!(rendered("- [x] y\n- [ ] z").feed_html.contains("<li>☑ y</li>\n<li>☐ z</li>"));
}

#[test]
fn sections_lie_below_the_title() {
    assert_pages(&[
        ("# A\n\n## B\n\n###### C", "<h2 id=\"a\">"),
        ("# A\n\n## B", "<h3 id=\"b\">"),
        ("# A\n\n###### C", "<h6 id=\"c\">"),
        ("## B", "<h2 id=\"b\">"),
    ]);
    // The title is on the page already.
    assert!(!page("# T\n\nText").contains("T</h"));
    assert!(page("# T\n\n## B").contains("<h2 id=\"b\">"));
}

#[test]
fn an_opening_heading_can_be_the_title() {
    let untitled = |body| render(&Text { title: None, ..text(body) }, &targets()).expect("renders");
    let with_title = untitled("# Hello `x`\n\nFirst *words*.\n\nMore.");
    assert_eq!((with_title.heading.as_deref(), with_title.summary.as_str()), (Some("Hello x"), "First words."));
    assert!(!with_title.html.contains("<h") && with_title.toc.is_empty(), "{}", with_title.html);
    let later = untitled("Text\n\n## Hello");
    assert_eq!(later.heading.as_deref(), Some("Hello"));
    assert!(later.html.contains("<h2 id=\"hello\">"), "{}", later.html);
    assert_eq!(untitled("Text").heading, None);
}

#[test]
fn summaries_are_of_words() {
    let cases = [
        ("https://youtu.be/abc\n\n[TOC]\n\nWords *and* `code`", "Words and code"),
        ("> quote\n\nWords", "Words"),
        ("![alt](/top.png)\n\nWords", "Words"),
    ];
    for (body, expected) in &cases {
        assert_eq!(rendered(body).summary, *expected, "{body:?}");
    }
}

#[test]
fn the_contents_stand_where_the_author_wants_them() {
    let nav = "<nav class=\"toc\" aria-label=\"Contents\">\n<p>Contents</p>\n<ul>\n<li><a href=\"#a\">A</a>\n<ul>\n<li><a href=\"#b\">B</a></li>\n</ul>\n</li>\n</ul>\n</nav>\n";
    let body = "## A\n\n### B\n";
    assert!(!page(body).contains("<nav"));
    let with_toc = render(&Text { has_toc: true, ..text(body) }, &targets()).expect("renders");
    assert!(with_toc.html.starts_with(nav) && !with_toc.feed_html.contains("<nav"), "{}", with_toc.html);
    for mark in ["[TOC]", "[[toc]]"] {
        let body = format!("First\n\n{mark}\n\n{body}\n{mark}\n");
        let html = render(&Text { has_toc: true, ..text(&body) }, &targets()).expect("renders").html;
        assert!(html.starts_with("<p>First</p>\n<nav") && html.matches("<nav").count() == 1 && !html.contains("TOC"), "{html}");
    }
    let toc: Vec<_> =
        rendered("## Ä & *b*\n\n> ## Quoted\n\n### C").toc.into_iter().map(|heading| (heading.level, heading.id, heading.text)).collect();
    assert_eq!(toc, [(2, "%C3%A4--b".to_owned(), "Ä & b".to_owned()), (3, "c".to_owned(), "C".to_owned())]);
}

#[test]
fn code_has_classes_a_caption_and_lines() {
    assert_pages(&[
        ("    <x>\n", "<figure class=\"code\"><pre tabindex=\"0\"><code>&lt;x&gt;\n</code></pre></figure>"),
        ("```\nx\n```", "<figure class=\"code\"><pre tabindex=\"0\"><code>x\n</code></pre></figure>"),
        (
            "```toml title=\"a<b.toml\"\n# x\n```",
            "<figcaption>a&lt;b.toml</figcaption><pre tabindex=\"0\"><code class=\"language-toml\"><span class=\"c\"># x</span>\n",
        ),
        ("```rust\nfn a() {}\n```", "<figcaption class=\"language\">rust</figcaption>"),
        ("```text\nfn\n```", "<figure class=\"code\"><pre tabindex=\"0\"><code class=\"language-text\">fn\n"),
        ("```no-such-language\nfn <x>\n```", "<code class=\"language-no-such-language\">fn &lt;x&gt;\n</code>"),
        ("```mermaid\ngraph TD;\n```", "<code class=\"language-mermaid\">graph TD;\n</code>"),
        (
            "```text linenos {2}\na\nb\n```",
            "<pre tabindex=\"0\" class=\"numbered\"><code class=\"language-text\"><span class=\"l\">a\n</span><span class=\"l x\">b\n</span></code>",
        ),
        ("```text {linenostart=9}\na\n```", "class=\"numbered\" style=\"counter-reset:line 8\">"),
        (
            "```rust {1}\n/* a\nb */\n```",
            "<span class=\"l x\"><span class=\"c\">/* a</span>\n</span><span class=\"l\"><span class=\"c\">b */</span>\n</span>",
        ),
    ]);
    let feed = rendered("```rust title=\"a.rs\" linenos\nfn a() {}\n```").feed_html;
    assert_eq!(feed, "<p>a.rs</p>\n<pre><code class=\"language-rust\">fn a() {}\n</code></pre>\n");
}

/// The reference of each language says what each word is.
#[test]
fn words_of_code_have_the_classes_of_what_they_are() {
    let cases = [
        (
            "rust",
            "fn main() { let x: u8 = 42; println!(\"a\\n\"); } // c",
            &[("fn", "k"), ("main", "f"), ("42", "n"), ("// c", "c"), ("\\n", "e")][..],
        ),
        ("rs", "struct Sea;", &[("struct", "k"), ("Sea", "t")]),
        ("js", "const x = 'a'; if (true) { f(1) } // c", &[("const", "k"), ("'a'", "s"), ("true", "n"), ("// c", "c"), ("f", "f")]),
        ("tsx", "const x: number = 1", &[("const", "k"), ("1", "n")]),
        ("python", "def f(x):\n    return x and None # c", &[("def", "k"), ("f", "f"), ("and", "k"), ("None", "n"), ("# c", "c")]),
        ("toml", "key = \"v\" # c", &[("key", "a"), ("\"v\"", "s"), ("# c", "c")]),
        ("yaml", "key: 1 # c", &[("key", "a"), ("1", "n"), ("# c", "c")]),
        ("json", "{\"k\": [1, \"v\", null]}", &[("\"k\"", "a"), ("1", "n"), ("\"v\"", "s"), ("null", "n")]),
        ("html", "<p class=\"x\">y</p>", &[("p", "t"), ("class", "a"), ("\"x\"", "s")]),
        ("css", "a { color: #fff; }", &[("color", "a"), ("#fff", "n")]),
        ("sh", "echo \"$x\" # c", &[("echo", "f"), ("# c", "c")]),
        ("console", "ls # c", &[("# c", "c")]),
        ("dockerfile", "FROM a\n# c", &[("FROM", "k"), ("# c", "c")]),
        ("diff", "-a\n+b", &[("-a", "d"), ("+b", "i")]),
        ("golang", "func f() {}", &[("func", "k"), ("f", "f")]),
        ("c++", "int f() { return 1; } // c", &[("return", "k"), ("// c", "c"), ("1", "n")]),
        ("sql", "SELECT 1 -- c", &[("SELECT", "k"), ("1", "n"), ("-- c", "c")]),
        ("make", "all:\n\techo x # c", &[]),
        ("viml", "\" c", &[("\" c", "c")]),
        ("nginx", "listen 80; # c", &[("# c", "c")]),
    ];
    for (language, code, words) in cases {
        let html = page(&format!("```{language}\n{code}\n```"));
        for (word, class) in words {
            let expected =
                format!("<span class=\"{class}\">{}</span>", crate::escape::escape(word).replace("&quot;", "\"").replace("&#39;", "'"));
            assert!(html.contains(&expected), "{language}: no {expected}: {html}");
        }
    }
}

#[test]
fn formulas_are_mathml() {
    assert_pages(&[
        ("Let $x^2$ be.", "<p>Let <math"),
        ("$$\n\\frac{a}{b}\n$$", "<div class=\"math\" tabindex=\"0\"><math"),
        ("```math\nx\n```", "<div class=\"math\" tabindex=\"0\"><math"),
        ("a $$x$$ b", "<p>a <math"),
        ("It costs $5 and $6.", "<p>It costs $5 and $6.</p>"),
        ("$5/$6, US$5 and CA$7", "<p>$5/$6, US$5 and CA$7</p>"),
        ("`$x$` and \\$x$", "<p><code>$x$</code> and $x$</p>"),
    ]);
    let plain = render(&Text { has_math: false, ..text("$x$ $$y$$") }, &targets()).expect("renders");
    assert_eq!(plain.html, "<p>$x$ $$y$$</p>\n");
    assert_eq!(rendered("$x<y$").feed_html, "<p><code>$x&lt;y$</code></p>\n");
}

#[test]
fn a_wrong_formula_is_shown_and_told_with_its_line() {
    for body in ["Text\n\n$\\nosuch$", "Text\n\n$$\\frac{1}$$", "Text\n\n```math\n{\n```"] {
        let rendered = rendered(body);
        let told: Vec<_> = rendered.warnings.iter().map(|warning| (warning.severity, warning.line)).collect();
        assert_eq!(told, [(Severity::Warning, Some(7))], "{body:?}");
        assert!(rendered.html.contains("<code") && !rendered.html.contains("<math"), "{}", rendered.html);
    }
}

#[test]
fn an_address_alone_becomes_a_card_without_anything_from_there() {
    for body in
        ["https://youtu.be/abc", "<https://youtu.be/abc>", "![](https://youtu.be/abc)", "![Talk](https://www.youtube.com/watch?v=abc)"]
    {
        let Rendered { html, feed_html, .. } = rendered(body);
        assert!(html.starts_with("<p class=\"embed\"><a href=\"https://") && html.contains("Video · YouTube"), "{html}");
        assert!(feed_html.starts_with("<p><a href=\"https://"), "{feed_html}");
        for part in ["<iframe", "<script", "<img", " src="] {
            assert!(!html.contains(part) && !feed_html.contains(part), "{html}");
        }
    }
    for body in ["![Talk](https://youtu.be/abc)", "[Talk](https://youtu.be/abc)", "[*Talk*][t]\n\n[t]: https://youtu.be/abc"] {
        assert!(page(body).contains("<span class=\"embed-title\">Talk</span>"), "{body}");
    }
    assert!(!page("[a](https://youtu.be/abc) and [b](https://youtu.be/abc)").contains("embed"));
    // Within a sentence it is a link like others.
    assert!(!page("See https://youtu.be/abc there").contains("embed"));
    assert!(!page("https://youtu.be/abc\nhttps://youtu.be/def").contains("embed"));
}

#[test]
fn pictures_come_in_time_and_with_captions() {
    let html = page("![a](/top.png)\n\n![b](/top.png)");
    assert_eq!(html.matches("loading=\"lazy\"").count(), 1, "{html}");
    assert!(html.find("fetchpriority=\"high\"") < html.find("loading=\"lazy\""), "{html}");
    assert_pages(&[
        ("![*x*](/top.png \"A & b\")", "<figure class=\"picture\"><img src=\"/top.png\" alt=\"x\""),
        ("![x](/top.png \"A & b\")", "<figcaption>A &amp; b</figcaption></figure>"),
        ("Text ![x](/top.png \"T\")", "alt=\"x\" title=\"T\""),
        ("![a](/top.png \"T\") ![b](/top.png)", "<p><img src=\"/top.png\" alt=\"a\" title=\"T\""),
        ("[![a](/top.png)](b.md)", "<p><a href=\"/b-post/\"><img src=\"/top.png\""),
    ]);
}

#[test]
fn links_between_files_become_addresses() {
    assert_pages(&[
        ("[x](b.md)", "href=\"/b-post/\""),
        ("[x](./b.md?a=1)", "href=\"/b-post/?a=1\""),
        ("[x](/posts/b.md)", "href=\"/b-post/\""),
        ("[x](../pages/%C3%BCber.md)", "href=\"/%C3%BCber/\""),
        ("[x](../pages/u\u{308}ber.md)", "href=\"/%C3%BCber/\""),
        ("![x](Für.png)", "src=\"/posts/Fu%CC%88r.png\""),
        ("![x](<cat photo.jpg>)", "src=\"/posts/cat%20photo.jpg\" alt=\"x\""),
        ("![x](cat%20photo.jpg)", "src=\"/posts/cat%20photo.jpg\" alt=\"x\""),
        ("a ![*x*](../top.png \"T\")", "src=\"/top.png\" alt=\"x\" title=\"T\""),
        ("[x](/b-post/)", "href=\"/b-post/\""),
        ("![x](https://x.test/y.png)", "src=\"https://x.test/y.png\""),
        ("[x][r]\n\n[r]: b.md", "href=\"/b-post/\""),
    ]);
}

#[test]
fn links_to_nothing_are_problems_with_a_line() {
    let cases = [
        ("Text\n\n[x](gone.md)", "no published post or page has that name"),
        ("Text\n\n![x](gone.png)", "there is no such file to show"),
        ("Text\n\n![x](../../etc/passwd)", "there is no such file to show"),
        ("Text\n\n![x](dog.jpg)", "the file is called \"posts/Dog.JPG\"; large and small letters differ"),
        ("Text\n\n[x](B.md)", "the file is called \"posts/b.md\""),
    ];
    for (body, expected) in cases {
        let problems = render(&text(body), &targets()).expect_err(body).problems;
        assert_eq!((problems.len(), problems[0].line), (1, Some(7)), "{body:?}");
        assert!(problems[0].message.contains(expected), "{}", problems[0]);
    }
}

/// Mail addresses are not addresses of this site.
#[test]
fn mail_addresses_are_no_links_that_lead_to_nothing() {
    let rendered = rendered("a@x.test <b@x.test> [c](mailto:c@x.test) mailto:d@x.test");
    assert_eq!(rendered.html.matches("href=\"mailto:").count(), 4, "{}", rendered.html);
    assert!(rendered.links.is_empty() && rendered.warnings.is_empty(), "{:?} {:?}", rendered.links, rendered.warnings);
}

#[test]
fn a_link_to_what_is_not_published_yet_is_a_warning_with_a_line() {
    let rendered = rendered("Text\n\n[x](later.md)");
    assert!(rendered.html.contains("href=\"/later/\""), "{}", rendered.html);
    let told: Vec<_> = rendered.warnings.iter().map(|warning| (warning.severity, warning.line)).collect();
    assert_eq!(told, [(Severity::Warning, Some(7))]);
}

/// Expected values are those of Goldmark's parser with the options of Hugo, as its documentation of `autoHeadingIDType = "github"` has them.
#[test]
fn sections_have_the_anchors_that_other_engines_gave_them() {
    for (heading, anchor) in [
        ("## 1.6 Definitions and Acronyms", "16-definitions-and-acronyms"),
        ("## A.2.2. DNS TXT Record", "a22-dns-txt-record"),
        ("## What's new? (2026)", "whats-new-2026"),
        ("## Zürich, früh!", "zürich-früh"),
        ("## snake_case and a-b", "snake_case-and-a-b"),
        ("## 日本語の 見出し", "日本語の-見出し"),
        ("## `code` & more", "code--more"),
    ] {
        let html = rendered(heading).html;
        assert!(html.contains(&format!("<h2 id=\"{anchor}\">")), "{heading}: {html}");
    }
}

#[test]
fn anchors_are_checked() {
    let good = "## A\n\n<p id=\"own\">x</p>\n\n[1](#a) [2](#own) [3](#top) [4](#) [5](#fn-1) [6](#%61)[^n]\n\n[^n]: N";
    assert_eq!(rendered(good).warnings, []);
    let told = rendered("## A\n\n[x](#b)").warnings;
    assert_eq!((told.len(), told[0].line, told[0].severity), (1, Some(7), Severity::Warning));
    // Those of other texts are known when all texts are.
    let links = rendered("[x](b.md#part) [y](/tags/) [z](../other/#p%20q)").links;
    let links: Vec<_> = links.iter().map(|link| (link.path.as_str(), link.fragment.as_deref(), link.line)).collect();
    assert_eq!(links, [("/b-post/", Some("part"), 5), ("/tags/", None, 5), ("../other/", Some("p q"), 5)]);
}

#[test]
fn no_link_runs_a_script() {
    for body in [
        "[x](<javascript:alert(\"1\")>)",
        "[x](JAVASCRIPT:1)",
        "[x](java&#10;script:1)",
        "[x](&#1;javascript:1)",
        "![x](javascript:1)",
        "[x](data:text/html,y)",
    ] {
        let rendered = rendered(body);
        assert!(!rendered.html.to_lowercase().contains("script:") && !rendered.html.contains("data:"), "{}", rendered.html);
        assert_eq!(rendered.warnings.len(), 1, "{body}");
    }
    // Authors are trusted with HTML.
    assert!(page("<a href=\"javascript:1\">x</a>").contains("javascript:1"));
}

#[test]
fn the_feed_has_absolute_links_and_no_anchors() {
    let feed = rendered("## A\n\n[x](b.md) ![y](../top.png) [z](//x.test/)").feed_html;
    assert!(feed.contains(&format!("href=\"{BASE}/b-post/\"")) && feed.contains(&format!("src=\"{BASE}/top.png\"")), "{feed}");
    assert!(feed.contains("href=\"//x.test/\"") && !feed.contains("anchor"), "{feed}");
}

#[test]
fn footnotes_are_numbered_by_first_mention() {
    let html = page("A[^b] B[^a] A[^b] C[^gone]\n\n[^a]: Note a\n[^B]: Note b");
    let order = [
        "id=\"fnref-1\"",
        "id=\"fnref-2\"",
        "id=\"fnref-1-2\"",
        "[^gone]",
        "<li id=\"fn-1\">\n<p>Note b <a href=\"#fnref-1\"",
        "<a href=\"#fnref-1-2\"",
        "<li id=\"fn-2\">\n<p>Note a",
    ];
    let found: Vec<_> = order.iter().map(|part| html.find(part)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} {html}");
}

#[test]
fn a_footnote_that_is_not_defined_is_told() {
    let told = rendered("A[^a] `[^code]` \\[^typed] x[^ y]\n\nB[^gone] C[^Gone too] D[^lost]\n\n[^a]: Note").warnings;
    let told: Vec<_> = told.iter().map(ToString::to_string).collect();
    let message =
        |label: &str| format!("footnote \"[^{label}]\": nothing says what it is; write it in a paragraph that begins with [^{label}]:");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains(&message("gone")) && told[0].contains("posts/a.md:7"), "{told:?}");
    assert!(told[1].contains(&message("lost")), "{told:?}");
}

/// POSIX.1-2017, XBD 9.3.5: a class of a regular expression that begins with `^`.
#[test]
fn a_regular_expression_mentions_no_footnote() {
    for text in ["[^a-z]", "[^0-9]", "[^A-Za-z0-9_]", "[^,]*", "[^\"]", "[^/]+", "[^abc]+", "[^x]{2}", "[^[:alpha:]]", "[^ ]", "[^é-ü]"] {
        assert_eq!(rendered(&format!("The class {text} is none, as `{text}` says[^1].\n\n[^1]: Note")).warnings, [], "{text}");
    }
    for label in ["1", "12", "note", "my-note", "über_uns", "n.1"] {
        let told = rendered(&format!("Some words[^{label}], and [^{label}].")).warnings;
        assert_eq!(told.len(), 2, "{label}: {told:?}");
    }
}

/// The fault of a picture is told of the picture itself.
#[test]
fn a_picture_that_is_left_out_keeps_no_text_back() {
    let left_out = rendered("# A\n\n![A cat](/left-out.jpg)\n\n![B](/left-out.jpg \"Title\") and [the cat](/left-out.jpg)");
    assert_eq!((left_out.warnings, left_out.links), (Vec::new(), Vec::new()));
    assert!(left_out.html.contains("<p>A cat</p>") && left_out.html.contains("<a>the cat</a>"), "{}", left_out.html);
    assert!(!left_out.html.contains("left-out"), "{}", left_out.html);
}

#[test]
fn a_footnote_may_mention_another_and_hold_blocks() {
    let html = page("[^c]: C\n\nA[^a]\n\n[^a]: A[^c]\n\n    ```text\n    x\n    ```\n");
    assert!(
        html.contains("<li id=\"fn-1\">\n<p>A<sup class=\"fnref\" id=\"fnref-2\"><a href=\"#fn-2\">2</a></sup></p>\n<figure"),
        "{html}"
    );
    assert!(html.contains("<li id=\"fn-2\">\n<p>C "), "{html}");
    assert!(!page("[^u]: Unread").contains("Unread"));
}

#[test]
fn words_and_marks_are_those_of_the_language() {
    let german = Text { language: "de", ..text("\"a\" -- `\"b\"`\n\n\\\"c\\\" &quot;d&quot; https://x.test/a--b") };
    let html = render(&german, &targets()).expect("renders").html;
    assert!(
        html.contains("„a“ – <code>\"b\"</code>") && html.contains("\"c\" \"d\"") && html.contains(">https://x.test/a--b</a>"),
        "{html}"
    );
    let other = Text { language: "ja", ..text("\"a\" -- b") };
    assert_eq!(render(&other, &targets()).expect("renders").html, "<p>\"a\" -- b</p>\n");
    assert!(page("\"*a*\" **\"b\"**").contains("“<em>a</em>” <strong>“b”</strong>"));
}

#[test]
fn control_characters_leave_the_text() {
    assert!(!page("a\u{1}b `c\u{2}` <i>\u{3}</i>\n\n    \u{4}\n\n$\u{5}$ https://x.test/\u{6}").contains(|c: char| c < ' ' && c != '\n'));
}

#[test]
fn line_ends_do_not_matter() {
    let unix = "# A\n\n- [ ] b\n- c\n\n```text\nd\n```\n\n| e |\n|-|\n| f |\n\n\"g\n$h$\n";
    for end in ["\r\n", "\r"] {
        let other = unix.replace('\n', end);
        assert_eq!(page(&other).replace('\r', ""), page(unix), "{end:?}");
    }
}

/// Texts that mean harm, or were made by a program that went astray.
fn hostile(count: usize) -> Vec<(&'static str, String)> {
    let numbered = |part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    vec![
        ("words", "word ".repeat(count)),
        ("lines", "a\n".repeat(count)),
        ("brackets", "[".repeat(count)),
        ("links in links", "[a](".repeat(count)),
        ("pictures in pictures", "![".repeat(count) + &"](x)".repeat(count)),
        ("emphasis", "*a ".repeat(count)),
        ("strong", "**a _b ".repeat(count)),
        ("strikes", "~~a ~".repeat(count)),
        ("code", "`".repeat(count) + "a"),
        ("code of all lengths", (0..count.isqrt()).map(|n| "`".repeat(n) + " ").collect()),
        ("comments", "<!-- ".repeat(count)),
        ("elements", "<a ".repeat(count)),
        ("declarations", "<?".repeat(count) + &"<!A ".repeat(count)),
        ("entities", "&a;&#1;".repeat(count)),
        ("formulas", "$a".repeat(count) + &"$$".repeat(count)),
        ("braces", "$".to_owned() + &"{".repeat(count) + &"}".repeat(count) + "$"),
        ("small formulas", "$x$ ".repeat(count / 10)),
        ("quotes", "\"'".repeat(count)),
        ("dashes", "-.".repeat(count)),
        ("rules", "* * *\n".repeat(count)),
        ("headings", "# a\n".repeat(count)),
        ("headings that are numbered", numbered(&|n| format!("# a {n}\n# a\n"))),
        ("heading attributes", "# a {#".to_owned() + &"{ #a .b c=d ".repeat(count) + "}\n"),
        ("footnotes", numbered(&|n| format!("[^{n}]\n\n[^{n}]: x\n\n"))),
        ("mentions of one footnote", "[^a]".repeat(count) + "\n\n[^a]: x\n"),
        ("one footnote, often", "[^a]\n\n".to_owned() + &"[^a]: x\n".repeat(count)),
        ("footnotes in footnotes", "[^a]\n\n".to_owned() + &"[^a]: ".repeat(count) + "x"),
        ("references", numbered(&|n| format!("[{n}]: /x\n"))),
        ("one reference, often", "[a]: /x\n".repeat(count) + &"[a]".repeat(count)),
        ("links to nothing", "[x](gone.md)\n".repeat(count)),
        ("links to anchors", "[x](#gone)\n".repeat(count)),
        ("addresses", "https://x.test/".repeat(count)),
        ("addresses in brackets", "https://x.test/".to_owned() + &"(".repeat(count) + &")".repeat(2 * count)),
        ("addresses of many parts", "www.".repeat(count)),
        ("tables", "|a".repeat(count) + "\n" + &"|-".repeat(count) + "\n" + &"|\n".repeat(count.min(100))),
        ("rows", "|a|\n|-|\n".to_owned() + &"|b|c|\n".repeat(count)),
        ("tasks", "- [ ] a\n".repeat(count)),
        ("lists", "- a\n\n".repeat(count)),
        ("definitions", "a\n: b\n".repeat(count)),
        ("contents", "[TOC]\n\n".repeat(count) + "## a\n"),
        ("raw anchors", "<p id=\"a\"> id= id=\n".repeat(count)),
        ("code blocks", "```\na\n```\n".repeat(count)),
        ("marked lines", "```text {".to_owned() + &"1-9,".repeat(count) + "}\na\n```\n"),
        ("a fence of fences", "`".repeat(count) + "\n" + &"```\n".repeat(count)),
        ("carriage returns", "a\r".repeat(count)),
        ("nothing", "\0\u{feff}\u{200b}".repeat(count)),
        ("escapes", "\\\"\\*".repeat(count)),
        ("cards", "https://youtu.be/a\n\n".repeat(count)),
    ]
}

/// Four times the text makes four times the work, not sixteen: what comes out, and what is told, grows no faster.
#[test]
fn nothing_grows_faster_than_the_text() {
    for ((what, small), (_, large)) in hostile(400).into_iter().zip(hostile(1600)) {
        let size = |body: &str| match render(&text(body), &targets()) {
            Ok(rendered) => rendered.html.len() + rendered.feed_html.len() + rendered.links.len() + rendered.warnings.len(),
            Err(unpublished) => unpublished.problems.len() + unpublished.links.len(),
        };
        let (small_size, large_size) = (size(&small), size(&large));
        assert!(
            large_size <= small_size * 5 + 2_000,
            "{what}: {} bytes became {small_size}, {} became {large_size}",
            small.len(),
            large.len()
        );
        // A mark of a footnote has a hundred bytes, and is mentioned twice.
        assert!(large_size <= large.len() * 150 + 2_000, "{what}: {} bytes became {large_size}", large.len());
    }
}

/// Whatever an author writes without HTML, every element is closed in order.
#[test]
fn elements_are_closed_in_order() {
    for (what, body) in hostile(50) {
        if body.contains('<') || body.contains("gone") {
            continue;
        }
        let Ok(Rendered { html, feed_html, .. }) = render(&text(&body), &targets()) else { continue };
        for html in [html, feed_html] {
            // XML has no attributes without value, and no elements without end.
            let xml =
                html.replace(" disabled", "").replace(" checked", "").replace("<br>", "<br/>").replace("<hr>", "<hr/>").replace(BASE, "");
            let xml = xml.replace("\"checkbox\">", "\"checkbox\"/>").replace(" decoding=\"async\">", "/>");
            assert!(roxmltree::Document::parse(&format!("<x>{xml}</x>")).is_ok(), "{what}: {html}");
        }
    }
}

#[test]
fn what_nobody_could_read_is_refused_with_its_line() {
    let deep = "x\n\n".to_owned() + &"> ".repeat(10_000) + "x";
    let problems = render(&text(&deep), &targets()).expect_err("too deep").problems;
    assert_eq!((problems.len(), problems[0].line), (1, Some(7)));
    // Whichever way lines end; editors count line feeds.
    let problems = render(&text(&("x\r".to_owned() + &"> ".repeat(10_000) + "x")), &targets()).expect_err("too deep").problems;
    assert_eq!((problems.len(), problems[0].line), (1, Some(5)));
}

#[test]
fn large_blocks_of_code_are_plain() {
    let line = "let x = 1;\n";
    let body = format!("```rust linenos\n{}```\n", line.repeat(100_000 / line.len()));
    assert!(!page(&body).contains("<span"));
    let long = format!("```rust\nlet a = 1;\n{}\nlet b = 1;\n```\n", "x".repeat(5000));
    let html = page(&long);
    assert!(html.contains("<span class=\"k\">let</span> a") && html.contains("\nlet b"), "{}", &html[..200]);
    let mut many = String::new();
    for _ in 0..20 {
        let _ = write!(many, "```rust\n{}```\n", line.repeat(50_000 / line.len()));
    }
    let blocks = page(&many).split("<figure").filter(|block| block.contains("<span")).count();
    assert_eq!(blocks, 5);
}
