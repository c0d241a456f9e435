//! `llms.txt`: what the blog has, for language models (llmstxt.org).

use std::sync::Arc;

use crate::{digest::fingerprint, feed::BASE, json::clean, model::Model, post::Post, slug::encode_path, words::Words};

/// The posts that `llms.txt` names. It is meant to fit into what a model reads at once.
const POSTS_MAX: usize = 500;

/// Writes `/llms.txt`: the title, what the blog is about, and the texts with the addresses of their Markdown.
pub(crate) fn write(model: &Model) -> String {
    let settings = &model.settings;
    let mut text = format!("# {}\n", line(&settings.title));
    if let Some(description) = &settings.description {
        text += &format!("\n> {}\n", line(description));
    }
    let mut section = |title: &str, texts: &mut dyn Iterator<Item = &Post>| {
        let mut texts = texts.filter(|post| !post.front.noindex).peekable();
        if texts.peek().is_some() {
            text += &format!("\n## {title}\n\n");
        }
        for post in texts {
            let title = escaped(&post.title);
            let url = encode_path(&markdown_path(&post.path)).replace('(', "%28").replace(')', "%29");
            let summary = escaped(&post.summary);
            let colon = if summary.is_empty() { "" } else { ": " };
            text += &format!("- [{title}]({BASE}{url}){colon}{summary}\n");
        }
    };
    let words = Words::of(&settings.language);
    section(words.posts, &mut model.posts.iter().take(POSTS_MAX).map(|post| &**post));
    section(words.pages, &mut model.pages.iter().map(|page| &**page));
    // A section of this name, in English, may be left out where room is short (llmstxt.org, "Format").
    text + &format!("\n## Optional\n\n- [{}]({BASE}/sitemap.xml)\n- [{}]({BASE}/feed.xml)\n", words.all_posts, words.feed)
}

/// Returns a number that differs if `llms.txt` would differ.
pub(crate) fn llms_fingerprint<'m>(model: &'m Model) -> u128 {
    let settings = &model.settings;
    let shown = |posts: &mut dyn Iterator<Item = &'m Arc<Post>>| -> Vec<_> {
        posts.filter(|post| !post.front.noindex).map(|post| (&post.path, &post.title, &post.summary)).collect()
    };
    let (posts, pages) = (shown(&mut model.posts.iter().take(POSTS_MAX)), shown(&mut model.pages.iter()));
    fingerprint(&(&settings.title, &settings.description, Words::of(&settings.language), posts, pages))
}

/// Returns the address of a text as Markdown.
fn markdown_path(path: &str) -> String {
    if path.ends_with('/') { format!("{path}index.md") } else { path.to_owned() }
}

/// Returns a line of text in which nothing is a link or HTML.
fn escaped(text: &str) -> String {
    line(text).replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]").replace('<', "\\<")
}

fn line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
