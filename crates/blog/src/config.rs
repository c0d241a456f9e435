//! `blog.toml`: the blog's name and address. Everything has a default; what the caller sets wins over the file.

use std::path::Path;

use serde::Deserialize;

use crate::{error::Problem, slug};

/// The name of the settings file in the blog's folder.
pub(crate) const FILE_NAME: &str = "blog.toml";

/// Settings of a blog: its name and how it is laid out. A field that is `None` is taken from `blog.toml`, then from its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlogOptions {
    /// The name in the header and the feed. Default: the folder's name.
    pub title: Option<String>,
    /// One sentence below the name on the first page, and for search engines.
    pub description: Option<String>,
    /// The author, named in the feed. Default: the title.
    pub author: Option<String>,
    /// The blog's public address, such as `https://example.org`. Default: the scheme and host of each request.
    pub base_url: Option<String>,
    /// BCP 47 language tag of the posts. Default: `en`.
    pub language: Option<String>,
    /// A line of text at the foot of every page.
    pub footer: Option<String>,
    /// The number of posts on each index page, 1 to 100. Default: 10.
    pub posts_per_page: Option<usize>,
    /// Whether drafts and posts whose time has not come are published with the others, marked as what they are. Default: no.
    pub drafts: bool,
}

/// [`BlogOptions`] as they are meant: with defaults filled in and values checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) author: String,
    /// The scheme and authority, without a slash at the end.
    pub(crate) base_url: Option<String>,
    pub(crate) language: String,
    pub(crate) footer: Option<String>,
    pub(crate) posts_per_page: usize,
    /// Whether drafts are published.
    pub(crate) drafts: bool,
}

impl Settings {
    /// Joins what the caller asked for with the text of `blog.toml`.
    pub(crate) fn new(options: &BlogOptions, file: Option<&str>, folder: &Path) -> Result<Self, Vec<Problem>> {
        let name = Path::new(FILE_NAME);
        let text = file.unwrap_or_default();
        let file: BlogOptions = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| slug::line_at(text, span.start));
            vec![Problem::new(name, line, one_line(error.message()))]
        })?;
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(name, slug::line_of_key(text, key), message));

        let base_url = options
            .base_url
            .clone()
            .or(file.base_url)
            .and_then(|url| checked_base_url(&url).map_err(|why| wrong("base_url", format!("`base_url` is {url:?}: {why}"))).ok());
        let language = options.language.clone().or(file.language).unwrap_or_else(|| "en".to_owned());
        if language.is_empty() || !language.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            wrong("language", format!("`language` is {language:?}; write a language tag such as \"en\" or \"de-AT\""));
        }
        let posts_per_page = options.posts_per_page.or(file.posts_per_page).unwrap_or(10);
        if !(1..=100).contains(&posts_per_page) {
            wrong("posts_per_page", format!("`posts_per_page` is {posts_per_page}; write a number from 1 to 100"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let title = options.title.clone().or(file.title).unwrap_or_else(|| folder_name(folder));
        Ok(Self {
            author: options.author.clone().or(file.author).unwrap_or_else(|| title.clone()),
            title,
            description: options.description.clone().or(file.description),
            base_url,
            language,
            footer: options.footer.clone().or(file.footer),
            posts_per_page,
            drafts: options.drafts || file.drafts,
        })
    }

    /// Tells whether the blog is in English. Only then are quotes curled and months named: other languages have their own rules.
    pub(crate) fn is_english(&self) -> bool {
        self.language == "en" || self.language.starts_with("en-")
    }
}

/// Returns the scheme and authority of `url`. All links of the site begin at `/`, so a URL with a path is refused.
fn checked_base_url(url: &str) -> Result<String, &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.ok_or("it must begin with https:// or http://")?.trim_end_matches('/');
    if authority.contains('/') {
        return Err("a blog lives at the root of its host; leave the path away");
    }
    if !slug::is_authority(authority) {
        return Err("write scheme and host alone, such as \"https://example.org\"");
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn folder_name(folder: &Path) -> String {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    full.file_name().map_or_else(|| "Blog".to_owned(), |name| name.to_string_lossy().into_owned())
}

pub(crate) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, String> {
        Settings::new(&BlogOptions::default(), Some(text), Path::new("/srv/notes"))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn every_key_has_a_default() {
        let settings = settings("").expect("an empty file is fine");
        assert_eq!((settings.title.as_str(), settings.author.as_str()), ("notes", "notes"));
        assert_eq!((settings.language.as_str(), settings.posts_per_page, settings.base_url), ("en", 10, None));
    }

    #[test]
    fn the_caller_wins_over_the_file() {
        let options = BlogOptions { title: Some("Flag".to_owned()), ..BlogOptions::default() };
        let settings = Settings::new(&options, Some("title = \"File\"\nauthor = \"Ann\""), Path::new("x")).expect("valid");
        assert_eq!((settings.title.as_str(), settings.author.as_str()), ("Flag", "Ann"));
    }

    #[test]
    fn wrong_values_name_line_and_remedy() {
        let cases = [
            ("title = \"A\"\ntitel = \"B\"\n", "blog.toml:2: unknown field `titel`"),
            ("\nbase_url = \"example.org\"\n", "blog.toml:2: `base_url` is \"example.org\": it must begin with https://"),
            ("base_url = \"https://example.org/blog/\"\n", "leave the path away"),
            ("base_url = \"https://exa mple.org\"\n", "write scheme and host alone"),
            ("posts_per_page = 0\n", "blog.toml:1: `posts_per_page` is 0; write a number from 1 to 100"),
            ("language = \"<b>\"\n", "write a language tag"),
            ("title = 3\n", "blog.toml:1: "),
        ];
        for (text, expected) in cases {
            let message = settings(text).expect_err(text);
            assert!(message.contains(expected), "{text:?}: {message}");
        }
    }

    #[test]
    fn a_slash_at_the_end_of_the_base_url_is_dropped() {
        let settings = settings("base_url = \"https://example.org:8443/\"").expect("valid");
        assert_eq!(settings.base_url.as_deref(), Some("https://example.org:8443"));
    }
}
