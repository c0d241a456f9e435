//! A post: front matter and Markdown.

use blog::{BlogOptions, PageKind, build_texts};

use crate::input::text;

/// The input is a Markdown file. The blog is built or says on which line of which file it is wrong; every page has an address and is
/// text; the feed and the sitemap are XML whatever is in a post.
pub fn blog_text(data: &[u8]) {
    let text = text(data);
    let options =
        BlogOptions { title: Some("Blog <b>".to_owned()), base_url: Some("https://blog.example".to_owned()), ..BlogOptions::default() };
    let texts = [("posts/2026-01-10-fuzzed.md", &*text), ("posts/2026-01-11-other.md", "# Other\n\nSee [it](2026-01-10-fuzzed.md).\n")];
    // A fuzzed draft would leave the other post's link without a target, and that would be all that is ever seen.
    let site = match build_texts(&texts, &options) {
        Ok(site) => site,
        Err(error) => {
            assert!(!error.problems.is_empty());
            for problem in error.problems.iter().filter(|problem| problem.file.to_str() == Some(texts[0].0)) {
                assert!(problem.line.is_none_or(|line| (1..=text.lines().count().max(1)).contains(&line)), "{problem}: no such line");
                assert!(!problem.message.is_empty());
            }
            return;
        }
    };
    // Building is by far the slowest of all that is checked here, so not every input is built twice.
    if data.len().is_multiple_of(8) {
        assert!(build_texts(&texts, &options).as_ref() == Ok(&site), "two builds of the same texts differ");
    }
    for (path, page) in &site.pages {
        assert!(path.starts_with('/') && !path.starts_with("//") && !path.chars().any(char::is_control), "{path:?}");
        let body = String::from_utf8_lossy(&page.body);
        match page.kind {
            PageKind::Feed | PageKind::Sitemap => {
                if let Err(error) = roxmltree::Document::parse(&body) {
                    panic!("{path} is not XML: {error}");
                }
            }
            // These show titles, tags and summaries, which are text: no element of the author's is in them.
            PageKind::Index | PageKind::Tag | PageKind::NotFound => {
                assert!(!body.contains("<script") && !body.contains("<img") && !body.contains("<iframe"), "{path}: {body}");
            }
            PageKind::Post => {
                // The head of the page is ours, up to the text.
                let head = body.split("<main").next().unwrap_or_default();
                assert!(!head.contains("<script") && !head.contains("<img"), "{path}: {head}");
            }
            PageKind::Page | PageKind::Robots | PageKind::Asset | PageKind::File => {}
        }
    }
}
