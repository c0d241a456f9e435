//! A post as Markdown, for programs that read text rather than pages: as its author wrote it, with its title, and with links that hold elsewhere.

use std::{collections::HashMap, ops::Range};

use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::{
    feed::BASE,
    post::Post,
    slug::{decode_path, encode_path},
};

/// Returns the Markdown of a post. Addresses of this site in it begin with [`BASE`].
pub(crate) fn of(post: &Post) -> String {
    let body = with_whole_addresses(&post.markdown, |to| address(to, post));
    // A text that begins with its title has it from there.
    if post.front.title.is_some() { format!("# {}\n\n{}", post.title, body.trim_start()) } else { body }
}

/// Returns the whole address of what a link of `post` leads to; `None` if it is whole already, or leads nowhere that is known.
fn address(to: &str, post: &Post) -> Option<String> {
    if to.starts_with('/') && !to.starts_with("//") {
        return Some(format!("{BASE}{to}"));
    }
    if to.is_empty() || to.starts_with('#') {
        return Some(format!("{BASE}{}{to}", encode_path(&post.path)));
    }
    let has_scheme = to.split_once(':').is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)));
    if has_scheme || to.starts_with("//") {
        return None;
    }
    let end = to.find(['?', '#']).unwrap_or(to.len());
    let (path, suffix) = to.split_at(end);
    let name = join(post.name.rsplit_once('/').map_or("", |(folder, _)| folder), &decode_path(path)?)?;
    // The page has the same: its links were made of these answers.
    let target = post.asked.get(&name).and_then(Option::as_ref);
    let path = target.map_or_else(|| format!("/{name}"), |target| target.address.clone());
    Some(format!("{BASE}{}{suffix}", encode_path(&path)))
}

/// Joins a relative path to a folder. Returns `None` if it leads out of the blog.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// Replaces the targets of links and pictures by what `whole` makes of them. Everything else stays as it was written.
fn with_whole_addresses(markdown: &str, whole: impl Fn(&str) -> Option<String>) -> String {
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_ext(markdown, options);
    let definitions: HashMap<String, Range<usize>> =
        parser.reference_definitions().iter().map(|(_, definition)| (definition.dest.to_string(), definition.span.clone())).collect();
    let mut note = |to: &str, span: Range<usize>, whole: &str| {
        // The target stands behind the text of the link, which may have the same words.
        if let Some(at) = markdown[span.clone()].rfind(to).filter(|_| !to.is_empty()) {
            let at = span.start + at;
            changes.push((at..at + to.len(), whole.to_owned()));
        }
    };
    for (event, span) in parser.into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event
            && let Some(whole) = whole(&dest_url)
        {
            let is_inline = markdown[span.clone()].ends_with(')');
            match definitions.get(&*dest_url).filter(|_| !is_inline) {
                Some(definition) => note(&dest_url, definition.clone(), &whole),
                None => note(&dest_url, span, &whole),
            }
        }
    }
    changes.sort_by_key(|(span, _)| span.start);
    changes.dedup_by_key(|(span, _)| span.start);
    let (mut text, mut at) = (String::with_capacity(markdown.len()), 0);
    for (span, whole) in changes {
        // A picture within a link stands within the link's span, but not within its target.
        if span.start >= at {
            text.push_str(&markdown[at..span.start]);
            text.push_str(&whole);
            at = span.end;
        }
    }
    text.push_str(&markdown[at..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_hold_elsewhere_and_nothing_else_changes() {
        let whole = |to: &str| (!to.contains(':')).then(|| format!("https://a.test/{to}"));
        for (markdown, expected) in [
            ("[b](b.md) and ![c](cat.png \"A cat\")", "[b](https://a.test/b.md) and ![c](https://a.test/cat.png \"A cat\")"),
            ("[b.md](b.md)", "[b.md](https://a.test/b.md)"),
            ("[![c](cat.png)](b.md)", "[![c](https://a.test/cat.png)](https://a.test/b.md)"),
            ("[a][1], [b][1]\n\n[1]: b.md\n", "[a][1], [b][1]\n\n[1]: https://a.test/b.md\n"),
            ("<https://x.test/> [m](mailto:a@b.test)", "<https://x.test/> [m](mailto:a@b.test)"),
            ("`[b](b.md)`\n\n    [b](b.md)\n", "`[b](b.md)`\n\n    [b](b.md)\n"),
        ] {
            assert_eq!(with_whole_addresses(markdown, whole), expected);
        }
    }

    #[test]
    fn a_path_leads_from_its_folder_and_not_out_of_the_blog() {
        for (folder, path, expected) in [
            ("posts", "b.md", Some("posts/b.md")),
            ("posts/a", "../b.md", Some("posts/b.md")),
            ("", "./b.md", Some("b.md")),
            ("posts", "../../b.md", None),
        ] {
            assert_eq!(join(folder, path).as_deref(), expected, "{folder} {path}");
        }
    }
}
