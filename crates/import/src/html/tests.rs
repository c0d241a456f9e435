use super::*;

/// Leaves addresses as they are, and notes nothing.
struct Same;

impl Targets for Same {
    fn link(&self, url: &str) -> String {
        url.to_owned()
    }
    fn picture(&self, url: &str) -> String {
        url.to_owned()
    }
    fn address(&self, url: &str) -> String {
        url.to_owned()
    }
    fn note(&self, _: String) {}
}

fn of(html: &str) -> String {
    markdown(html, &Same)
}

fn assert_all(cases: &[(&str, &str)]) {
    for (html, expected) in cases {
        assert_eq!(of(html).trim_end_matches('\n'), *expected, "{html}");
    }
}

#[test]
fn the_ordinary_becomes_markdown() {
    assert_all(&[
        ("<p>One</p><p>Two<br>three</p>", "One\n\nTwo\\\nthree"),
        ("<h2 id=\"a-b\">A b</h2><h3 id=\"own\">C</h3>", "## A b\n\n### C {#own}"),
        ("<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>", "- a\n- b\n  - c"),
        ("<ol start=\"9\"><li>a</li><li><p>b</p><p>c</p></li></ol>", "9. a\n\n10. b\n\n    c"),
        ("<ul><li>a</li></ul><ul><li>b</li></ul>", "- a\n\n* b"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<pre><code class=\"language-sh\">a\n\n```\n</code></pre>", "````sh\na\n\n```\n````"),
        ("<p>a <code>b`c</code> <kbd>d</kbd></p>", "a ``b`c`` <kbd>d</kbd>"),
        ("<p><a href=\"/x y\" title='q\"'>a</a></p>", "[a](/x%20y \"q\\\"\")"),
        ("<p><a href=\"https://x.test/\">https://x.test/</a></p>", "<https://x.test/>"),
        ("<p><img src=\"a.png\" alt=\"x\"></p><hr>", "![x](a.png)\n\n---"),
        ("a<div>b</div>c", "a\n\nb\n\nc"),
        (
            "<table><thead><tr><th>A</th><th>B|</th></tr></thead><tbody><tr><td>1</td><td style=\"text-align:right\">2<br>3</td></tr></tbody></table>",
            "| A | B\\| |\n| --- | --: |\n| 1 | 2<br>3 |",
        ),
    ]);
}

#[test]
fn what_is_text_stays_text() {
    assert_all(&[
        ("<p>1. a</p><p># b</p><p>- c</p><p>+++</p><p>&gt; d</p>", "1\\. a\n\n\\# b\n\n\\- c\n\n\\+++\n\n\\> d"),
        (
            "<p>*a* _b_ c_d [e] `f` &lt;g&gt; &amp;amp; 2 * 3 ~~x~~</p>",
            "\\*a\\* \\_b\\_ c_d \\[e\\] \\`f\\` \\<g> \\&amp; 2 * 3 \\~\\~x\\~\\~",
        ),
        ("<p>a<br>2. b<br>- c</p>", "a\\\n2\\. b\\\n\\- c"),
    ]);
}

#[test]
fn emphasis_is_seen_as_such() {
    assert_all(&[
        ("<p><strong>a </strong>b</p>", "**a** b"),
        ("<p><strong>a.</strong>b</p>", "<strong>a.</strong>b"),
        ("<p><em>a</em><strong>b</strong></p>", "*a*<strong>b</strong>"),
        ("<p>a<em>b</em>c</p>", "a*b*c"),
        ("<p>x<strong> a</strong></p>", "x **a**"),
        ("<p><strong></strong>x<em> </em>y</p>", "x y"),
        ("<p><strong><em>a</em></strong></p>", "**<em>a</em>**"),
    ]);
}

/// The classes are those of the real Ghost 6 and 5.
#[test]
fn cards_of_ghost() {
    assert_all(&[
        (
            "<figure class=\"kg-card kg-image-card kg-card-hascaption\"><img src=\"a.jpg\" alt=\"A\" width=\"9\"><figcaption>Of <em>x</em></figcaption></figure>",
            "<figure>\n\n![A](a.jpg)\n\n<figcaption>Of <em>x</em></figcaption>\n</figure>",
        ),
        (
            "<div class=\"kg-card kg-callout-card kg-callout-card-red\"><div class=\"kg-callout-emoji\">!</div><div class=\"kg-callout-text\">Hot</div></div>",
            "> [!CAUTION]\n> ! Hot",
        ),
        (
            "<div class=\"kg-card kg-toggle-card\" data-kg-toggle-state=\"close\"><div class=\"kg-toggle-heading\"><h4 class=\"kg-toggle-heading-text\"><span>More</span></h4><button><svg></svg></button></div><div class=\"kg-toggle-content\"><p>Text</p></div></div>",
            "<details>\n<summary><span>More</span></summary>\n\nText\n\n</details>",
        ),
        (
            "<figure class=\"kg-card kg-embed-card\"><iframe src=\"https://www.youtube.com/embed/abc?feature=oembed\"></iframe></figure>",
            "https://www.youtube.com/watch?v=abc",
        ),
        (
            "<figure class=\"kg-card kg-bookmark-card\"><a class=\"kg-bookmark-container\" href=\"https://x.test/\"><div class=\"kg-bookmark-content\"><div class=\"kg-bookmark-title\">X</div><div class=\"kg-bookmark-description\">About x</div></div></a></figure>",
            "> **[X](https://x.test/)**\\\n> About x",
        ),
        ("<div class=\"kg-card kg-button-card\"><a href=\"/go/\" class=\"kg-btn\">Go</a></div>", "**[Go](/go/)**"),
        (
            "<figure class=\"kg-card kg-code-card\"><pre><code class=\"language-toml\">a = 1</code></pre><figcaption>a.toml</figcaption></figure>",
            "```toml title=\"a.toml\"\na = 1\n```",
        ),
        (
            "<!--kg-card-begin: html--><marquee>x</marquee>\n\n<b>y</b><!--kg-card-end: html-->",
            "<div>\n<marquee>x</marquee>\n<b>y</b>\n</div>",
        ),
        (
            "<figure class=\"kg-card kg-gallery-card\"><div class=\"kg-gallery-container\"><div class=\"kg-gallery-row\"><div class=\"kg-gallery-image\"><img src=\"a.jpg\"></div><div class=\"kg-gallery-image\"><img src=\"b.jpg\"></div></div></div></figure>",
            "![](a.jpg)\n![](b.jpg)",
        ),
        (
            "<figure class=\"kg-card kg-video-card\"><div class=\"kg-video-container\"><video src=\"a.mp4\" poster=\"https://img.spacergif.org/v1/1x1/0a/spacer.png\"></video><div class=\"kg-video-overlay\"><button>x</button></div></div></figure>",
            "<figure>\n<video src=\"a.mp4\" controls preload=\"metadata\"></video>\n</figure>",
        ),
    ]);
}

#[test]
fn what_has_no_markdown_stays_html() {
    assert_all(&[
        ("<table><tr><td>1</td></tr></table>", "<table><tbody><tr><td>1</td></tr></tbody></table>"),
        ("<dl><dt>a</dt>\n\n<dd>b</dd></dl>", "<dl><dt>a</dt>\n<dd>b</dd></dl>"),
        ("<iframe src=\"https://maps.test/\" width=\"5\"></iframe>", "<iframe src=\"https://maps.test/\" width=\"5\"></iframe>"),
        ("<p>H<sub>2</sub>O</p>", "H<sub>2</sub>O"),
        (
            "<div><pre>a\n\nb</pre><table><tr><td><pre>c\n\nd</pre></td></tr></table></div>",
            "```\na\n\nb\n```\n\n<table><tbody><tr><td><pre>c\n&#10;\nd</pre></td></tr></tbody></table>",
        ),
    ]);
}

/// Whatever is nested: no stack and no minutes are lost.
#[test]
fn hostile_html_is_kept_and_costs_little() {
    let deep = "<div>".repeat(200_000) + "x";
    assert!(of(&deep).contains('x'));
    let deep = "<b>".repeat(200_000) + "x";
    assert!(of(&deep).contains('x'));
    let unclosed = "<p><i>a</p>".repeat(1_000);
    assert!(of(&unclosed).contains('a'));
    for html in ["<", "<p", "<a href=", "<!--", "</p></p>", "<table><table>", "\0", "<img>", "<a><a><a>"] {
        let _ = of(html);
    }
}
