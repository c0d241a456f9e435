//! A post: front matter and Markdown.

use blog::{BlogOptions, PageKind, SiteResource, build_texts};
use semantics::Timestamp;

use crate::input::text;

/// Every date of the fuzzer lies before or after it.
const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

/// The input is a Markdown file. The blog is built or says on which line of which file it is wrong; every page has an address and is
/// text; the feed and the sitemap are XML whatever is in a post. A post without HTML of its author becomes elements that are closed in order,
/// and nothing in it runs.
pub fn blog_text(data: &[u8]) {
    let text = text(data);
    let options =
        BlogOptions { title: Some("Blog <b>".to_owned()), base_url: Some("https://blog.example".to_owned()), ..BlogOptions::default() };
    let texts = [("posts/2026-01-10-fuzzed.md", &*text), ("posts/2026-01-11-other.md", "# Other\n\nSee [it](2026-01-10-fuzzed.md).\n")];
    // A fuzzed draft would leave the other post's link without a target, and that would be all that is ever seen.
    let site = build_texts(&texts, &options, NOW).expect("a text that is wrong is left out");
    for problem in site.problems().iter().filter(|problem| problem.file.to_str() == Some(texts[0].0)) {
        assert!(problem.line.is_none_or(|line| (1..=text.lines().count().max(1)).contains(&line)), "{problem}: no such line");
        assert!(!problem.message.is_empty());
    }
    // Building is by far the slowest of all that is checked here, so not every input is built twice.
    if data.len().is_multiple_of(8) {
        let again = build_texts(&texts, &options, NOW).expect("as before");
        assert!(again.changed_paths(&site).is_empty(), "two builds of the same texts differ");
    }
    for (path, _) in site.addresses() {
        let Some(SiteResource::Page(page)) = site.find(path, "https://blog.example") else { continue };
        assert!(path.starts_with('/') && !path.starts_with("//") && !path.chars().any(char::is_control), "{path:?}");
        let body = String::from_utf8_lossy(&page.body);
        match page.kind {
            PageKind::Feed | PageKind::Sitemap => {
                if page.content_type.contains("xml")
                    && let Err(error) = roxmltree::Document::parse(&body)
                {
                    panic!("{path} is not XML: {error}");
                }
            }
            // These show titles, tags and summaries, which are text: no element of the author's is in them. A cover is a picture of ours.
            PageKind::Index | PageKind::Tag | PageKind::List | PageKind::NotFound => {
                let body = without_own_scripts(path, &body);
                assert!(!body.contains("<script") && !body.contains("onerror=\"") && !body.contains("<iframe"), "{path}: {body}");
            }
            PageKind::Post => {
                // The head of the page is ours, up to the text.
                let head = without_own_scripts(path, body.split("<main").next().unwrap_or_default());
                assert!(!head.contains("<script") && !head.contains("<img"), "{path}: {head}");
                if !text.contains('<') {
                    assert_closed(path, &body);
                    let lower = body.to_ascii_lowercase();
                    assert!(!lower.contains("=\"javascript:") && !lower.contains("=\"vbscript:"), "{path}: {body}");
                }
            }
            _ => {}
        }
    }
}

/// Returns a page without the scripts of the theme: what it says to search engines, in which nothing can end it, and its own files.
fn without_own_scripts(path: &str, html: &str) -> String {
    let mut parts = html.split("<script type=\"application/ld+json\">");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (json, after) = part.split_once("</script>").unwrap_or_else(|| panic!("{path}: a script without end: {html}"));
        assert!(!json.contains('<'), "{path}: {json}");
        rest.push_str(after);
    }
    rest.replace("<script src=\"/theme/", "<theme-script src=\"/theme/")
}

/// Elements that have no end (HTML, 13.1.2).
const VOID: [&str; 13] = ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Asserts that every element of a page is closed, in order.
fn assert_closed(path: &str, html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').unwrap_or_else(|| panic!("{path}: a tag without end: {html}"));
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default();
        if tag.starts_with('!') || VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{path}: closed out of order: {html}");
        } else if matches!(name, "script" | "style") {
            rest = rest.split_once(&format!("</{name}>")).map_or("", |(_, rest)| rest);
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{path}: never closed: {open:?}: {html}");
}
