//! A post or page: a Markdown file with its title, date, address and HTML.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{Timestamp, civil::Date};

use crate::{
    config::Settings,
    digest::fingerprint,
    error::Problem,
    front_matter::{self, FrontMatter, Moment, Split},
    markdown::{self, Heading, OutLink, Rendered, Text, Unpublished},
    markup,
    picture::Picture,
    slug,
    targets::{ResolvedLinks, Targets},
    words::Words,
};

/// First segments of addresses that the site needs for itself.
const RESERVED: [&str; 17] = [
    "archive",
    "authors",
    "cards",
    "feed.json",
    "feed.xml",
    "llms.txt",
    "page",
    "pictures",
    "preview",
    "robots.txt",
    "rss.xml",
    "search",
    "search.json",
    "series",
    "sitemap.xml",
    "tags",
    "theme",
];

/// The codes of languages that a file name can have before its extension (ISO 639-1).
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es \
    et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks \
    ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn \
    ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo \
    za zh zu";

/// Says whether readers see a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Visibility {
    Published,
    /// Its author has not finished it.
    Draft,
    /// Its time has not come.
    Due(Timestamp),
}

impl Visibility {
    /// Returns the standing at `now`, if nothing but time has gone by.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        if matches!(self, Self::Due(due) if due <= now) { Self::Published } else { self }
    }
}

/// A text that can be shown.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    /// The address, not percent-encoded. It begins with a slash, and ends with one unless the author chose it.
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) date: Moment,
    pub(crate) updated: Option<Moment>,
    pub(crate) tags: Vec<String>,
    pub(crate) summary: String,
    pub(crate) html: String,
    pub(crate) feed_html: String,
    pub(crate) minutes: usize,
    /// The picture at the head of the post.
    pub(crate) cover: Option<Picture>,
    /// The headings of the text.
    pub(crate) toc: Vec<Heading>,
    /// The anchors of the text, to which links may lead.
    pub(crate) anchors: Vec<String>,
    /// The links of the text to addresses of this site.
    pub(crate) links: Vec<OutLink>,
    /// The Markdown of the text, without its front matter.
    pub(crate) markdown: Arc<str>,
    /// The path of the file in the folder, with `/` between names.
    pub(crate) name: String,
    pub(crate) is_page: bool,
    pub(crate) standing: Visibility,
    /// BCP 47 language tag of the text, if it is another than the blog's: as the front matter or the name (`hello.de.md`) says.
    pub(crate) lang: Option<String>,
    /// The key that joins translations: as the front matter says, or the path of the file without its language.
    pub(crate) translation: String,
    /// The pictures in the text. The addresses of those of this site begin with [`BASE`](crate::feed::BASE).
    pub(crate) pictures: Vec<String>,
    /// A number that differs if [`Post::html`] or [`Post::markdown`] does: both are answers at the address of the post.
    pub(crate) html_fingerprint: u128,
    /// A number that differs if [`Post::feed_html`] does.
    pub(crate) feed_fingerprint: u128,
    /// A number that differs if the words of the text do.
    pub(crate) words_fingerprint: u128,
    /// Lists what is at the end of the links of the text.
    pub(crate) asked: Arc<ResolvedLinks>,
    /// The other settings of the author.
    pub(crate) front: FrontMatter,
    /// A number that differs if anything in the post does.
    pub(crate) fingerprint: u128,
}

impl Post {
    /// Returns when the post last changed, as the author says.
    pub(crate) fn changed(&self) -> Timestamp {
        self.updated.map_or(self.date.instant, |updated| updated.instant.max(self.date.instant))
    }

    /// Returns the authors: those whom the post names, or the blog's own.
    pub(crate) fn authors<'p>(&'p self, settings: &'p Settings) -> Vec<&'p str> {
        if self.front.authors.is_empty() { vec![&settings.author] } else { self.front.authors.iter().map(String::as_str).collect() }
    }

    /// Returns the language of the text in a blog whose language is `default`.
    pub(crate) fn language<'p>(&'p self, default: &'p str) -> &'p str {
        self.lang.as_deref().unwrap_or(default)
    }

    /// Returns the words of the theme for what belongs to the post.
    pub(crate) fn words(&self, settings: &Settings) -> &'static Words {
        Words::of_text(self.language(&settings.language), &settings.language)
    }

    /// Returns the post as it is at this address, with this standing and date. It is the same one if nothing differs.
    pub(crate) fn at(self: &Arc<Self>, path: &str, standing: Visibility, date: Moment) -> Arc<Self> {
        if (self.path.as_str(), self.standing, self.date) == (path, standing, date) {
            return Arc::clone(self);
        }
        Arc::new(Self { path: path.to_owned(), standing, date, ..Self::clone(self) }.fingerprinted())
    }

    fn fingerprinted(mut self) -> Self {
        let Self { path, title, date, updated, tags, summary, html, feed_html, minutes, toc, anchors, links, .. } = &self;
        let Self { markdown, cover, name, is_page, standing, lang, translation, front, .. } = &self;
        let text = (title, summary, html, feed_html, minutes, toc, anchors, links, markdown, cover);
        self.fingerprint = fingerprint(&(text, (path, date, updated, tags, name, is_page, standing, lang, translation, front)));
        self
    }
}

/// Holds what rendering is given of the settings. A text is rendered again if this differs, and not because of any other setting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Manner {
    /// The language of texts that name none.
    language: String,
}

impl Manner {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { language: settings.language.clone() }
    }
}

/// A text before it is rendered. Texts are rendered when all addresses are known.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) front: FrontMatter,
    /// The address at which the text will be.
    pub(crate) path: String,
    pub(crate) is_page: bool,
    is_draft: bool,
    /// The date in the front matter or in the name.
    date: Option<Moment>,
    lang: Option<String>,
    translation: String,
    body: Arc<str>,
    /// The line of the file on which `body` begins.
    body_line: usize,
    /// Problems that do not keep the text from being published.
    pub(crate) warnings: Vec<Problem>,
}

/// A head with which no text can be published.
#[derive(Debug, Default)]
pub(crate) struct WrongHead {
    pub(crate) problems: Vec<Problem>,
    /// The part that could be read of it, if it is known where the text begins: the text is rendered to tell what else is wrong in it.
    pub(crate) rest: Option<Arc<Head>>,
}

impl From<Vec<Problem>> for WrongHead {
    fn from(problems: Vec<Problem>) -> Self {
        Self { problems, rest: None }
    }
}

impl Head {
    /// Reads the head of the text in the file `name`, which may lie in a folder for drafts.
    pub(crate) fn read(name: &str, text: &str, is_draft: bool) -> Result<Self, WrongHead> {
        let file = Path::new(name);
        let Split { mut front, body, body_line, mut warnings, errors: mut problems } = front_matter::split(file, text)?;
        let is_read = problems.is_empty();
        if !is_read {
            // Nobody knows whether it has a title.
            front.title = Some(String::new());
        }
        let Name { day, stem, lang, key } = Name::of(file);
        if is_read && day.is_none() && front.date.is_none() && is_like_a_date(&stem) {
            let message = "the name begins like a date, but that is not a date, so the text has the date of its file; begin it with a date such as 2026-03-01-";
            warnings.push(Problem::warning(file, None, message));
        }
        let path = match &front.permalink {
            Some(permalink) => of_permalink(permalink),
            None => {
                let slug = front.slug.clone().unwrap_or_else(|| slug::slugify(&stem));
                if slug.is_empty() && is_read {
                    problems.push(Problem::new(file, 1, "the file name has no letters to make an address of; set `slug`"));
                }
                format!("/{slug}/")
            }
        };
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        if problems.is_empty() && (first.is_empty() || RESERVED.contains(&first)) {
            let key = if front.permalink.is_some() { "permalink" } else { "slug" };
            problems.push(Problem::new(file, 1, format!("the address {path} is taken by the blog itself; set another `{key}`")));
        }
        let head = Self {
            path,
            is_page: front.page || name.starts_with("pages/"),
            is_draft: front.draft || is_draft,
            date: front.date.or_else(|| day.and_then(|day| Moment::parse(&day.to_string()))),
            lang: front.lang.clone().or(lang),
            translation: front.translation.as_ref().map_or(key, |key| format!("={key}")),
            body: body.into(),
            body_line,
            warnings,
            front,
        };
        if problems.is_empty() { Ok(head) } else { Err(WrongHead { problems, rest: Some(Arc::new(head)) }) }
    }

    /// Returns where the text in the file `name` would be if its head could be read. Links to it are not wrong.
    pub(crate) fn likely_path(name: &str) -> String {
        format!("/{}/", slug::slugify(&Name::of(Path::new(name)).stem))
    }

    /// Tells whether readers see the text at `now`. The date of a page is not when it is published.
    pub(crate) fn standing(&self, now: Timestamp) -> Visibility {
        match self.date.filter(|date| !self.is_page && date.instant > now) {
            _ if self.is_draft => Visibility::Draft,
            Some(date) => Visibility::Due(date.instant),
            None => Visibility::Published,
        }
    }

    /// Returns the date that the author chose, or else that of the file, which nobody chose.
    pub(crate) fn date(&self, modified: Timestamp) -> Moment {
        self.date.unwrap_or_else(|| Moment::of_instant(modified))
    }

    /// Renders the text of the file `name`. Returns warnings beside it, or all that can be said of a text that cannot be published.
    pub(crate) fn render(
        &self,
        name: &str,
        manner: &Manner,
        targets: &Targets,
        standing: Visibility,
        date: Moment,
    ) -> Result<(Post, Vec<Problem>), Unpublished> {
        let file = Path::new(name);
        let FrontMatter { title, updated, tags, summary, .. } = &self.front;
        let language = self.lang.as_ref().unwrap_or(&manner.language);
        let text = Text {
            file,
            folder: name.rsplit_once('/').map_or("", |(folder, _)| folder),
            body: &self.body,
            body_line: self.body_line,
            language,
            words: Words::of_text(language, &manner.language),
            title: title.as_deref(),
            has_math: self.front.math.unwrap_or(true),
            has_toc: self.front.toc,
            has_cover: self.front.cover.is_some(),
        };
        let rendered = markdown::render(&text, targets);
        let mut problems = Vec::new();
        let cover = self.front.cover.as_ref().map(|src| {
            let alt = self.front.cover_alt.as_deref().unwrap_or_default();
            let missing = || format!("cover {src:?}: there is no such file to show; paths are relative to this file");
            Picture::cover(src, alt, text.folder, targets).ok_or_else(missing)
        });
        let cover = cover.transpose().unwrap_or_else(|missing| {
            problems.push(Problem::new(file, 1, missing));
            None
        });
        let cover = cover.flatten();
        let has_heading = rendered.as_ref().map_or_else(|unpublished| unpublished.has_heading, |rendered| rendered.heading.is_some());
        if title.is_none() && !has_heading {
            problems.push(Problem::new(file, 1, "has no title; set `title` in the front matter or begin the text with `# A heading`"));
        }
        let Rendered { html, feed_html, heading, summary: first, minutes, toc, anchors, links, warnings } = match rendered {
            Ok(rendered) if problems.is_empty() => rendered,
            Ok(Rendered { warnings, links, anchors, .. }) => {
                problems.extend(warnings);
                return Err(Unpublished { problems, has_heading, links, anchors: Some(anchors) });
            }
            Err(unpublished) => {
                problems.extend(unpublished.problems);
                return Err(Unpublished { problems, ..unpublished });
            }
        };
        let title = title.clone().or(heading).unwrap_or_default();
        let post = Post {
            path: self.path.clone(),
            title,
            date,
            updated: *updated,
            tags: tags.clone(),
            summary: summary.clone().unwrap_or(first),
            pictures: markup::pictures(&feed_html, &self.path),
            feed_fingerprint: fingerprint(&feed_html),
            words_fingerprint: fingerprint(&markup::text(&html)),
            html_fingerprint: fingerprint(&(&html, &self.body)),
            html,
            feed_html,
            minutes,
            cover,
            toc,
            anchors,
            links,
            markdown: Arc::clone(&self.body),
            name: name.to_owned(),
            is_page: self.is_page,
            standing,
            lang: self.lang.clone(),
            translation: self.translation.clone(),
            asked: Arc::default(),
            front: self.front.clone(),
            fingerprint: 0,
        };
        Ok((post.fingerprinted(), warnings))
    }
}

/// Holds what the name of a file says.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    day: Option<Date>,
    /// The part of which the address is made.
    stem: String,
    lang: Option<String>,
    /// The path without language and extension.
    key: String,
}

impl Name {
    /// Reads `2026-03-01-sea.md`, `2026-03-01-sea/index.md`, `sea.de.md` and `sea/index.de.md`.
    fn of(file: &Path) -> Self {
        let whole = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let (bare, lang) = without_language(whole);
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        let key = PathBuf::from(folder).join(bare).to_string_lossy().into_owned();
        let parent = folder.file_name().and_then(|name| name.to_str());
        let named = match (parent, lang) {
            (Some(parent), None) if bare == "index" => parent.to_owned(),
            (Some(parent), Some(lang)) if bare == "index" => format!("{parent}.{lang}"),
            _ => whole.to_owned(),
        };
        let (day, stem) = date_prefix(&named);
        Self { day, stem: stem.to_owned(), lang: lang.map(str::to_owned), key }
    }
}

/// Splits a language such as `.de` or `.pt-BR` off a name.
fn without_language(stem: &str) -> (&str, Option<&str>) {
    let is_language = |text: &str| {
        let (code, rest) = text.split_once('-').map_or((text, None), |(code, rest)| (code, Some(rest)));
        let is_region = |rest: &str| (2..=4).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        code.len() == 2 && LANGUAGES.split(' ').any(|known| known == code) && rest.is_none_or(is_region)
    };
    match stem.rsplit_once('.') {
        Some((bare, language)) if !bare.is_empty() && is_language(language) => (bare, Some(language)),
        _ => (stem, None),
    }
}

/// Splits a date such as `2026-03-01-` off a name. A name that is nothing but a date keeps it: something has to be left.
fn date_prefix(stem: &str) -> (Option<Date>, &str) {
    let Some((date, rest)) = stem.get(..10).zip(stem.get(10..)) else { return (None, stem) };
    let day = date.parse().ok().filter(|_| is_like_a_date(date));
    match rest.strip_prefix('-') {
        Some(rest) if !rest.is_empty() && day.is_some() => (day, rest),
        _ if rest.is_empty() => (day, stem),
        _ => (None, stem),
    }
}

/// Tells whether a name begins with three numbers as dates have them, with the year first or last.
fn is_like_a_date(stem: &str) -> bool {
    let (mut lengths, mut rest) = ([0; 3], stem);
    let mut separator = '-';
    for (index, length) in lengths.iter_mut().enumerate() {
        if index > 0 {
            let Some(next) = rest.chars().next().filter(|c| matches!(c, '-' | '_' | '.')) else { return false };
            (separator, rest) = (next, &rest[1..]);
        }
        *length = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest = &rest[*length..];
    }
    match lengths {
        [4, 1 | 2, 1 | 2] | [1 | 2, 1 | 2, 4] => true,
        // With dots it is a version.
        [2, 1 | 2, 1 | 2] => separator != '.',
        _ => false,
    }
}

/// Makes an address of the one that the author chose: a folder ends with a slash, a file with its extension.
fn of_permalink(permalink: &str) -> String {
    let path = permalink.trim_matches('/');
    let leaf = path.rsplit('/').next().unwrap_or_default();
    if path.is_empty() || leaf.contains('.') { format!("/{path}") } else { format!("/{path}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_dates_and_slugs() {
        let cases = [
            ("2026-03-01-hello.md", Some("2026-03-01"), "hello"),
            ("posts/2026-03-01-hello/index.md", Some("2026-03-01"), "hello"),
            ("2026-13-01-hello.md", None, "2026-13-01-hello"),
            ("2026-03-01.md", Some("2026-03-01"), "2026-03-01"),
            ("hello.md", None, "hello"),
            ("äöüäöüäöü.md", None, "äöüäöüäöü"),
            ("index.md", None, "index"),
            ("2026-3-1-hello.md", None, "2026-3-1-hello"),
            ("2026-03-01_hello.md", None, "2026-03-01_hello"),
        ];
        for (file, date, slug) in cases {
            let got = Name::of(Path::new(file));
            assert_eq!((got.day.map(|day| day.to_string()).as_deref(), got.stem.as_str()), (date, slug), "{file}");
        }
    }

    #[test]
    fn names_say_languages_and_which_texts_are_translations() {
        let cases = [
            ("posts/hello.md", None, "posts/hello", "hello"),
            ("posts/hello.de.md", Some("de"), "posts/hello", "hello.de"),
            ("posts/2026-03-01-hello.pt-BR.md", Some("pt-BR"), "posts/2026-03-01-hello", "hello.pt-BR"),
            ("hello/index.md", None, "hello/index", "hello"),
            ("hello/index.de.md", Some("de"), "hello/index", "hello.de"),
            ("node.js.md", None, "node.js", "node.js"),
            ("v1.0.md", None, "v1.0", "v1.0"),
            (".de.md", None, ".de", ".de"),
        ];
        for (file, lang, key, stem) in cases {
            let got = Name::of(Path::new(file));
            assert_eq!((got.lang.as_deref(), got.key.as_str(), got.stem.as_str()), (lang, key, stem), "{file}");
        }
    }

    #[test]
    fn a_name_that_begins_like_a_date_and_is_none_is_told() {
        let cases = [
            ("2026-3-1-x.md", "", true),
            ("26-03-01-x.md", "", true),
            ("2026-13-01-x.md", "", true),
            ("2026-02-30.md", "", true),
            ("2026_03_01-x.md", "", true),
            ("2026-03-01_x.md", "", true),
            ("posts/2026-3-1-x/index.md", "", true),
            ("2026-3-1-x.md", "---\ndate: 2026-03-01\n---\n", false),
            ("2026-03-01-x.md", "", false),
            ("2026-03-01.md", "", false),
            ("1984.md", "", false),
            ("10-things-i-like.md", "", false),
            ("2001-a-space-odyssey.md", "", false),
            ("192.168.0.1.md", "", false),
            ("12.1.2-is-released.md", "", false),
            ("2-3-4-trees.md", "", false),
            ("2026.03.01-x.md", "", true),
            ("01-03-2026-x.md", "", true),
        ];
        for (name, front, expected) in cases {
            let head = Head::read(name, &format!("{front}# Hi"), false).expect("published nevertheless");
            let told: Vec<_> = head.warnings.iter().map(ToString::to_string).collect();
            assert_eq!(told.len(), usize::from(expected), "{name}: {told:?}");
            assert!(told.iter().all(|line| line.starts_with(&format!("{name}: the name begins like a date"))), "{told:?}");
        }
    }

    #[test]
    fn an_address_can_be_chosen_whole() {
        let cases = [
            ("/2019/05/hello/", "/2019/05/hello/"),
            ("2019/hello", "/2019/hello/"),
            ("/2019/hello.html", "/2019/hello.html"),
            ("/Über uns/", "/Über uns/"),
        ];
        for (permalink, path) in cases {
            assert_eq!(of_permalink(permalink), path);
        }
    }
}
