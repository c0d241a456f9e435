//! `blog.toml`: the blog's name and address. Everything has a default; what the caller sets wins over the file.

mod look;

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use toml::de::{DeTable, DeValue};

pub use self::look::LookOptions;
pub(crate) use self::look::LookSettings;
use crate::{
    error::Problem,
    slug,
    words::{Words, is_language_tag},
};

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
    /// Whether pages show pictures in sizes and forms made for them, and pictures are sent without their metadata, such as where a photograph was
    /// taken. Default: yes.
    pub pictures: Option<bool>,
    /// Whether drafts and posts whose time has not come are published with the others, marked as what they are. Default: no.
    pub drafts: bool,
    /// The look of the blog.
    pub theme: LookOptions,
    /// The links at the top of each page. Default: the pages of the blog, the archive, the tags and the search.
    pub navigation: Option<Vec<NavigationLink>>,
    /// The authors, by the names that posts use for them.
    pub authors: BTreeMap<String, AuthorOptions>,
    /// The address that receives webmentions, such as that of a service. Default: none.
    pub webmention: Option<String>,
    /// The profile of the blog or its author in the fediverse, as `@ann@social.example`. Default: none.
    pub activitypub: Option<String>,
}

/// A link at the top of each page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NavigationLink {
    /// The words of the link.
    pub title: String,
    /// An address of the blog, such as `/about/`, or of another site.
    pub url: String,
}

/// An author, as the settings describe one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorOptions {
    /// The name as readers see it. Default: the name by which posts call the author.
    pub name: Option<String>,
    /// One or two sentences about the author.
    pub bio: Option<String>,
    /// The author's own site.
    pub url: Option<String>,
    /// A picture of the author: a file in the folder, or an address.
    pub picture: Option<String>,
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
    /// Whether there are variants of pictures, and pictures are sent without their metadata.
    pub(crate) pictures: bool,
    /// Whether drafts are published.
    pub(crate) drafts: bool,
    pub(crate) look: LookSettings,
    /// The links at the top of each page, if the author chose them.
    pub(crate) navigation: Option<Vec<NavigationLink>>,
    /// The authors, by the addresses that their names make.
    pub(crate) authors: BTreeMap<String, AuthorOptions>,
    pub(crate) webmention: Option<String>,
    pub(crate) activitypub: Option<String>,
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
        if !is_language_tag(&language) {
            wrong("language", format!("`language` is {language:?}; write a language tag such as \"en\" or \"de-AT\""));
        }
        let posts_per_page = options.posts_per_page.or(file.posts_per_page).unwrap_or(10);
        if !(1..=100).contains(&posts_per_page) {
            wrong("posts_per_page", format!("`posts_per_page` is {posts_per_page}; write a number from 1 to 100"));
        }
        let webmention = options.webmention.clone().or(file.webmention);
        if let Some(url) = webmention.as_ref().filter(|url| !(url.starts_with("https://") || url.starts_with("http://")) || !is_target(url))
        {
            wrong(
                "webmention",
                format!(
                    "`webmention` is {url:?}; write the address that receives them, such as \"https://webmention.io/example.org/webmention\""
                ),
            );
        }
        let activitypub = options.activitypub.clone().or(file.activitypub);
        if let Some(handle) = activitypub.as_ref().filter(|handle| !is_handle(handle)) {
            wrong("activitypub", format!("`activitypub` is {handle:?}; write a profile such as \"@ann@social.example\""));
        }
        let mut wrong_at = |path: &[&str], message: String| problems.push(Problem::new(name, line_of(text, path).unwrap_or(1), message));
        let look = LookSettings::new(options.theme.clone().or(file.theme), |key, message| wrong_at(&["theme", key], message));
        let navigation = options.navigation.clone().or(file.navigation);
        for link in navigation.iter().flatten().filter(|link| !is_target(&link.url)) {
            let message = format!("`navigation` leads to {:?}; write an address such as \"/about/\" or \"https://example.org\"", link.url);
            wrong_at(&["navigation"], message);
        }
        let mut authors = BTreeMap::new();
        for (key, author) in options.authors.iter().chain(&file.authors) {
            if let Some(url) = author.url.as_ref().filter(|url| !is_target(url)) {
                let message = format!("`authors.{key}.url` is {url:?}; write an address such as \"https://example.org\"");
                wrong_at(&["authors", key, "url"], message);
            }
            for called in [Some(key), author.name.as_ref()].into_iter().flatten() {
                let known = AuthorOptions { name: author.name.clone().or_else(|| Some(key.clone())), ..author.clone() };
                authors.entry(slug::tag_slug(called)).or_insert(known);
            }
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
            pictures: options.pictures.or(file.pictures).unwrap_or(true),
            drafts: options.drafts || file.drafts,
            look,
            navigation,
            authors,
            webmention,
            activitypub,
        })
    }

    /// Returns what is known of the author whom posts call `name`.
    pub(crate) fn author_named(&self, name: &str) -> Option<&AuthorOptions> {
        self.authors.get(&slug::tag_slug(name))
    }

    /// Returns the name that readers see of the author whom posts call `name`.
    pub(crate) fn author_name<'s>(&'s self, name: &'s str) -> &'s str {
        self.author_named(name).and_then(|known| known.name.as_deref()).unwrap_or(name)
    }

    /// Returns a warning if there are no words in the language of the blog. `text` is that of `blog.toml`.
    pub(crate) fn words_warning(&self, text: Option<&str>) -> Option<Problem> {
        if Words::find(&self.language).is_some() {
            return None;
        }
        let known = Words::languages().collect::<Vec<_>>().join(", ");
        let message = format!(
            "there are no words for the `language` {:?}, so those of the theme are English; there are words for {known}",
            self.language
        );
        Some(Problem::warning(Path::new(FILE_NAME), slug::line_of_key(text.unwrap_or_default(), "language"), message))
    }

    /// Forgets files that the settings name and that are not there, and returns a warning for each. `text` is that of `blog.toml`.
    pub(crate) fn drop_missing(&mut self, text: Option<&str>, is_there: impl Fn(&str) -> bool) -> Vec<Problem> {
        let (name, text) = (Path::new(FILE_NAME), text.unwrap_or_default());
        let mut problems = Vec::new();
        let mut missing = |path: &[&str], file: &mut Option<String>| {
            if let Some(given) = file.take_if(|given| !is_there(given)) {
                let message = format!("`{}` names {given:?}, which is not in the blog's folder", path.join("."));
                problems.push(Problem::warning(name, line_of(text, path), message));
            }
        };
        for (key, file) in self.look.files_mut() {
            missing(&["theme", key], file);
        }
        for (key, author) in &mut self.authors {
            if author.picture.as_ref().is_some_and(|picture| !is_target(picture)) {
                missing(&["authors", key, "picture"], &mut author.picture);
            }
        }
        problems
    }

    /// Forgets files that the settings name and that are left out, of which is told elsewhere.
    pub(crate) fn drop_files(&mut self, is_left_out: impl Fn(&str) -> bool) {
        let pictures = self.authors.values_mut().map(|author| &mut author.picture);
        for file in self.look.files_mut().into_iter().map(|(_, file)| file).chain(pictures) {
            let _ = file.take_if(|file| is_left_out(file));
        }
    }
}

/// Tells whether a link can lead to `url`: an address of the blog, or one with a scheme that does not run a script.
pub(crate) fn is_target(url: &str) -> bool {
    let is_known = ["/", "#", "https://", "http://", "mailto:", "tel:", "xmpp:"].iter().any(|start| url.starts_with(start));
    is_known && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Tells whether `text` names a profile in the fediverse: `@ann@social.example`.
fn is_handle(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    text.strip_prefix('@')
        .and_then(|rest| rest.split_once('@'))
        .is_some_and(|(name, host)| is_name(name) && host.contains('.') && slug::is_authority(host))
}

/// Returns the line of `text` that sets the value at `path`, or of the deepest table on the way that is there.
fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let (mut table, mut line) = (Some(root.get_ref()), None);
    for key in path {
        let Some((found, value)) = table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == *key)) else { break };
        line = Some(slug::line_at(text, found.span().start));
        table = match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        };
    }
    line
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
            ("language = \"de_AT\"\n", "blog.toml:1: `language` is \"de_AT\"; write a language tag"),
            ("webmention = \"mentions\"\n", "blog.toml:1: `webmention` is \"mentions\"; write the address"),
            ("\nactivitypub = \"ann@social.example\"\n", "blog.toml:2: `activitypub` is \"ann@social.example\"; write a profile such as"),
            ("activitypub = \"@ann@social.example\\\"><b>\"\n", "blog.toml:1: `activitypub`"),
            ("title = 3\n", "blog.toml:1: "),
            ("\n[theme]\naccent = \"greenish\"\n", "blog.toml:3: `theme.accent` is \"greenish\"; write a colour of CSS"),
            ("theme.accent = \"#12\"\n", "blog.toml:1: `theme.accent` is \"#12\""),
            ("theme = { accent = \"red; } body { x: y\" }\n", "blog.toml:1: `theme.accent`"),
            ("[theme]\nlook = \"plane\"\n", "blog.toml:2: `theme.look` is \"plane\"; the looks are \"seawall\", \"plain\""),
            ("[theme]\nfont = \"x}\"\n", "blog.toml:2: `theme.font` is \"x}\"; write \"serif\""),
            (
                "[theme]\nwidth = \"5rem\"\n",
                "blog.toml:2: `theme.width` is \"5rem\"; write \"narrow\", \"normal\", \"wide\", or a length from 20rem",
            ),
            ("[theme]\nwidth = \"40rem;\"\n", "blog.toml:2: `theme.width`"),
            ("[theme]\nlogo = \"../logo.svg\"\n", "blog.toml:2: `theme.logo` is \"../logo.svg\"; name a file in the blog's folder"),
            ("[theme]\nlogo = \"https://x.test/logo.svg\"\n", "blog.toml:2: `theme.logo`"),
            ("[theme]\nfont_file = \"logo.svg\"\n", "that ends in otf, ttf, woff, woff2"),
            ("[theme]\ncolor = \"red\"\n", "blog.toml:2: unknown field `color`"),
            ("\nnavigation = [{ title = \"X\", url = \"javascript:alert(1)\" }]\n", "blog.toml:2: `navigation` leads to"),
            ("navigation = [{ title = \"X\" }]\n", "blog.toml:1: missing field `url`"),
            ("[authors.ann]\nurl = \"ann\"\n", "blog.toml:2: `authors.ann.url` is \"ann\""),
        ];
        for (text, expected) in cases {
            let message = settings(text).expect_err(text);
            assert!(message.contains(expected), "{text:?}: {message}");
        }
    }

    #[test]
    fn looks_are_understood() {
        let text = "[theme]\nlook = \"plain\"\naccent = \"Tomato\"\nfont = \"Charter, 'Bitstream Charter'\"\nfont_file = \"./theme/a.woff2\"\nwidth = \"720px\"\n\
                    [authors.\"Ann Lee\"]\nbio = \"Sails.\"\n";
        let settings = settings(text).expect("valid");
        let look = &settings.look;
        assert_eq!(look.accent.map(crate::theme::Colour::css).as_deref(), Some("#ff6347"));
        assert_eq!(look.font.as_deref(), Some("\"Charter\",\"Bitstream Charter\",serif"));
        assert_eq!((look.font_file.as_deref(), look.width.as_deref()), (Some("theme/a.woff2"), Some("720px")));
        assert_eq!(settings.authors["ann-lee"].bio.as_deref(), Some("Sails."));
    }

    #[test]
    fn files_that_are_not_there_are_told_and_forgotten() {
        let text = "[theme]\nlogo = \"logo.svg\"\nfavicon = \"icon.png\"\n";
        let mut settings = settings(text).expect("valid");
        let problems = settings.drop_missing(Some(text), |name| name == "icon.png");
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("blog.toml:2:") && told[0].contains("`theme.logo` names \"logo.svg\""), "{told:?}");
        assert_eq!((settings.look.logo, settings.look.favicon.as_deref()), (None, Some("icon.png")));
    }

    #[test]
    fn a_slash_at_the_end_of_the_base_url_is_dropped() {
        let settings = settings("base_url = \"https://example.org:8443/\"").expect("valid");
        assert_eq!(settings.base_url.as_deref(), Some("https://example.org:8443"));
    }
}
