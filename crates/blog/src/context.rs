//! The values that templates are given: the site, the page, and the posts and people on it.
//!
//! Everything here is [`Hash`]: the fingerprint of a [`Context`] tells whether a page would differ. Whatever a page is
//! given and does not show would make it anew for nothing, so lists are given [`Item`]s without texts, or [`Line`]s with little but the title.

use serde::Serialize;

use crate::{
    config::is_target,
    feed::BASE,
    front_matter::Moment,
    head::Head,
    markdown::Heading,
    model::{Group, Model, author_path},
    picture::Picture,
    post::{Post, Visibility},
    slug::{encode_path, tag_slug},
    theme::{Link, Tag, tag_path},
    words::Words,
};

/// Holds what the template of one page is given.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Context<'m> {
    pub(crate) site: Frame<'m>,
    pub(crate) words: &'static Words,
    /// The kind of the page: `index`, `post`, `page`, `draft`, `archive`, `year`, `tags`, `tag`, `authors`, `author`, `series`, `search` or `404`.
    pub(crate) kind: &'static str,
    /// The title of the page, if it has another than the site.
    pub(crate) title: Option<String>,
    /// The address of the page, percent-encoded. The page for addresses that do not exist has none.
    pub(crate) path: Option<String>,
    pub(crate) summary: Option<&'m str>,
    /// BCP 47 language tag of what the page is about: that of the post, or that of the blog.
    pub(crate) language: &'m str,
    /// Whether search engines are asked to leave the page out.
    pub(crate) noindex: bool,
    /// The data that programs read in the head of the page. It is made last, as it follows from the rest.
    pub(crate) head: Option<Head<'m>>,
    #[serde(flatten)]
    pub(crate) content: Content<'m>,
}

/// Holds what the templates of all pages of one site are given.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Frame<'m> {
    title: &'m str,
    description: Option<&'m str>,
    author: &'m str,
    /// The scheme and authority of the site, to be put before addresses that must be absolute. It is filled in when the page is sent.
    base: &'static str,
    language: &'m str,
    footer: Option<&'m str>,
    style: &'m str,
    /// The addresses of fonts that every page needs.
    fonts: Vec<String>,
    icon: String,
    /// The address of the author's logo.
    logo: Option<String>,
    /// The address of the logo as WebP, if there is one beside that.
    logo_webp: Option<String>,
    /// The width in pixels at which the logo is [`LOGO_HEIGHT`] high, if it is known.
    logo_width: Option<u32>,
    /// `ltr` or `rtl`: the direction in which the language is written.
    dir: &'static str,
    nav: Vec<Link>,
    has_tags: bool,
    has_authors: bool,
}

/// Holds what differs from kind to kind of page.
#[derive(Debug, Hash, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'m> {
    Index {
        entries: Vec<Item<'m>>,
        pages: Pages,
    },
    Post(Box<PostContent<'m>>),
    Archive {
        years: Vec<YearList<'m>>,
    },
    Tags {
        tags: Vec<Tag>,
        pages: Pages,
    },
    Authors {
        authors: Vec<Person<'m>>,
        pages: Pages,
    },
    /// The posts of a year, a tag, an author or a series.
    List {
        entries: Vec<Line<'m>>,
        pages: Pages,
        count: usize,
        /// The count in words: `12 posts`.
        posts: String,
        /// The number of the first post on the page, counted from 1.
        first: usize,
        author: Option<Person<'m>>,
        feed: Option<String>,
    },
    /// The addresses of the script and of the index that it loads.
    Search {
        search_script: String,
        search_index: &'static str,
    },
    NotFound {
        recent: Vec<Link>,
    },
}

/// A post or a page, and where it stands among the others.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct PostContent<'m> {
    pub(crate) post: Entry<'m>,
    pub(crate) is_page: bool,
    pub(crate) newer: Option<Link>,
    pub(crate) older: Option<Link>,
    pub(crate) related: Vec<Relative<'m>>,
    pub(crate) series: Option<SeriesBox>,
    pub(crate) translations: Vec<Translation>,
}

/// Says where a page stands in a list that is too long for one page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Pages {
    /// The number of this page, counted from 1.
    pub(crate) number: usize,
    /// The number of pages, at least 1.
    pub(crate) count: usize,
    /// The addresses of the pages before and after this one.
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// A year of the archive, with its newest posts.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct YearList<'m> {
    pub(crate) year: i16,
    pub(crate) url: String,
    /// The number of posts of the year, of which `entries` may be only the newest.
    pub(crate) count: usize,
    pub(crate) entries: Vec<Line<'m>>,
}

/// Somebody who writes posts.
#[derive(Debug, Clone, Hash, Serialize)]
pub(crate) struct Person<'m> {
    pub(crate) name: &'m str,
    /// The address of the page with the posts of this author.
    pub(crate) url: String,
    pub(crate) bio: Option<&'m str>,
    /// The author's own site.
    pub(crate) website: Option<&'m str>,
    /// The address of the author's picture.
    pub(crate) picture: Option<String>,
    /// The address of the picture as WebP, if there is one beside that.
    pub(crate) picture_webp: Option<String>,
    /// The number of posts, in the list of authors. Elsewhere it would change with every post.
    pub(crate) count: Option<usize>,
}

/// The name of an author above a post.
#[derive(Debug, Clone, Hash, Serialize)]
pub(crate) struct Byline<'m> {
    pub(crate) name: &'m str,
    pub(crate) url: String,
}

/// The series of a post, with the parts around this one.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct SeriesBox {
    pub(crate) title: String,
    pub(crate) url: String,
    /// The number of the post's part, counted from 1, and the number of all parts.
    pub(crate) number: usize,
    pub(crate) count: usize,
    /// The number and the count in words: `Part 2 of 5`.
    pub(crate) part: String,
    pub(crate) parts: Vec<Part>,
}

/// A part of a series.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Part {
    pub(crate) number: usize,
    pub(crate) title: String,
    pub(crate) url: String,
    /// Whether it is the post on whose page the list is.
    pub(crate) is_this: bool,
}

/// A translation of a text.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Translation {
    pub(crate) language: String,
    /// The language's own name for itself.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) url: String,
}

/// A date in two forms: for people and for machines.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Day {
    pub(crate) text: String,
    pub(crate) iso: String,
}

/// A post in a list.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Item<'m> {
    title: &'m str,
    url: String,
    date: Day,
    updated: Option<Day>,
    year: i16,
    /// The time that the text takes to read, in words.
    reading: String,
    summary: &'m str,
    cover: Option<&'m Picture>,
    tags: Vec<Tag>,
    /// The authors, if the blog has several.
    authors: Vec<Byline<'m>>,
    /// BCP 47 language tag, if it is another than that of the blog.
    language: Option<&'m str>,
    is_draft: bool,
}

/// A post in a list of titles.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Line<'m> {
    title: &'m str,
    url: String,
    date: Day,
    /// BCP 47 language tag, if it is another than that of the blog.
    language: Option<&'m str>,
    is_draft: bool,
}

/// A post below another one that has to do with it.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Relative<'m> {
    #[serde(flatten)]
    line: Line<'m>,
    cover: Option<&'m Picture>,
}

/// A post on its own page: what a list shows, and the text.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Entry<'m> {
    #[serde(flatten)]
    pub(crate) item: Item<'m>,
    html: Html<'m>,
    /// The words of the theme in the language of the post.
    words: &'static Words,
    /// The headings of the text.
    toc: &'m [Heading],
    /// The authors of the post.
    people: Vec<Person<'m>>,
}

/// The text of a post. Its fingerprint is kept by the post, as the text is long.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Html<'m> {
    html: &'m str,
    #[serde(skip)]
    fingerprint: u128,
}

impl std::hash::Hash for Html<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

/// The height in pixels at which the theme shows the logo.
pub(crate) const LOGO_HEIGHT: u32 = 36;

/// The largest side in pixels at which the theme shows the picture of an author.
pub(crate) const FACE_SIDE: u32 = 72;

/// Languages that are written from right to left (CLDR, `characterOrder`).
const RIGHT_TO_LEFT: [&str; 9] = ["ar", "ckb", "dv", "fa", "he", "ps", "sd", "ur", "yi"];

impl<'m> Frame<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        let (settings, theme) = (&model.settings, &model.theme);
        let words = Words::of(&settings.language);
        let nav = match &settings.navigation {
            Some(links) => links.iter().map(|link| Link::to(&link.title, &link.url)).collect(),
            None => {
                let pages = model.pages.iter().map(|page| Link::new(&page.title, &page.path));
                let tags = (!model.tags.is_empty()).then(|| Link::new(words.tags, "/tags/"));
                let lists = [Link::new(words.archive, "/archive/")].into_iter().chain(tags);
                pages.chain(lists).chain([Link::new(words.search, "/search/")]).collect()
            }
        };
        let icon = settings.look.favicon.as_deref().map(|name| theme.address(name));
        let icon = icon.or_else(|| model.icon.as_deref().map(encode_path)).unwrap_or_else(|| theme.mark().to_owned());
        let logo = settings.look.logo.as_deref().and_then(|name| model.pictures.get(name));
        let first_subtag = settings.language.split('-').next().unwrap_or_default();
        Self {
            title: &settings.title,
            description: settings.description.as_deref(),
            author: &settings.author,
            base: BASE,
            language: &settings.language,
            footer: settings.footer.as_deref(),
            style: theme.style(),
            fonts: theme.fonts(),
            icon,
            logo: settings.look.logo.as_deref().map(|name| logo.map_or_else(|| theme.address(name), |logo| logo.src.clone())),
            logo_webp: logo.and_then(webp),
            logo_width: logo.and_then(logo_width),
            dir: if RIGHT_TO_LEFT.contains(&first_subtag) { "rtl" } else { "ltr" },
            nav,
            has_tags: !model.tags.is_empty(),
            has_authors: model.has_authors(),
        }
    }
}

impl<'m> Item<'m> {
    pub(crate) fn new(model: &'m Model, post: &'m Post) -> Self {
        let language = post.language(&model.settings.language);
        let words = post.words(&model.settings);
        let day = |moment: Moment| Day { text: words.long_date(moment.day), iso: moment.day.to_string() };
        Self {
            title: &post.title,
            url: encode_path(&post.path),
            date: day(post.date),
            updated: post.updated.filter(|updated| updated.day > post.date.day).map(day),
            year: post.date.day.year(),
            reading: words.minutes(post.minutes),
            summary: &post.summary,
            cover: post.cover.as_ref(),
            tags: post.tags.iter().map(|tag| Tag::new(tag, &tag_path(tag))).collect(),
            authors: authors_of(model, post).map(|(path, group)| Person::new(model, path, group).byline()).collect(),
            language: Some(language).filter(|language| *language != model.settings.language),
            is_draft: post.standing != Visibility::Published,
        }
    }
}

impl<'m> Line<'m> {
    pub(crate) fn new(model: &'m Model, post: &'m Post) -> Self {
        let language = post.language(&model.settings.language);
        Self {
            title: &post.title,
            url: encode_path(&post.path),
            date: Day { text: Words::of(language).long_date(post.date.day), iso: post.date.day.to_string() },
            language: Some(language).filter(|language| *language != model.settings.language),
            is_draft: post.standing != Visibility::Published,
        }
    }
}

impl<'m> Relative<'m> {
    pub(crate) fn new(model: &'m Model, post: &'m Post) -> Self {
        Self { line: Line::new(model, post), cover: post.cover.as_ref() }
    }
}

impl<'m> Entry<'m> {
    pub(crate) fn new(model: &'m Model, post: &'m Post) -> Self {
        Self {
            item: Item::new(model, post),
            html: Html { html: &post.html, fingerprint: post.html_fingerprint },
            words: post.words(&model.settings),
            toc: &post.toc,
            people: authors_of(model, post).map(|(path, group)| Person::new(model, path, group)).collect(),
        }
    }
}

/// Returns the authors of a post, with the addresses of their pages. A blog that is written by one has none: all posts are by the same.
fn authors_of<'m>(model: &'m Model, post: &'m Post) -> impl Iterator<Item = (&'m str, &'m Group)> {
    let names = if model.has_authors() { post.authors(&model.settings) } else { Vec::new() };
    names.into_iter().filter_map(|name| model.authors.get_key_value(&author_path(name))).map(|(path, group)| (path.as_str(), group))
}

impl<'m> Person<'m> {
    /// Describes the author whose page is at `path`.
    pub(crate) fn new(model: &'m Model, path: &str, group: &'m Group) -> Self {
        let known = model.settings.authors.get(&tag_slug(&group.title));
        let picture = known.and_then(|known| known.picture.as_deref());
        let of_folder = picture.and_then(|picture| model.pictures.get(picture));
        let elsewhere = |picture: &str| if is_target(picture) { picture.to_owned() } else { model.theme.address(picture) };
        Self {
            name: known.and_then(|known| known.name.as_deref()).unwrap_or(&group.title),
            url: encode_path(path),
            bio: known.and_then(|known| known.bio.as_deref()),
            website: known.and_then(|known| known.url.as_deref()),
            picture: picture.map(|picture| of_folder.map_or_else(|| elsewhere(picture), |picture| picture.src.clone())),
            picture_webp: of_folder.and_then(webp),
            count: None,
        }
    }

    fn byline(self) -> Byline<'m> {
        Byline { name: self.name, url: self.url }
    }
}

/// Returns the address of the picture as WebP, if there is one beside its own.
fn webp(picture: &Picture) -> Option<String> {
    Some(picture.webp.clone()).filter(|webp| !webp.is_empty())
}

/// Returns the width at which a logo is [`LOGO_HEIGHT`] high.
fn logo_width(logo: &Picture) -> Option<u32> {
    let (width, height) = (u64::from(logo.width), u64::from(logo.height));
    u32::try_from((width * u64::from(LOGO_HEIGHT) + height / 2).checked_div(height)?).ok().filter(|&width| width > 0)
}

impl Pages {
    /// Returns where page `number` of a list of `items` stands, whose first page is at `path`.
    pub(crate) fn new(path: &str, number: usize, items: usize, size: usize) -> Self {
        let count = pages_of(items, size);
        Self {
            number,
            count,
            before: (number > 1).then(|| encode_path(&page_path(path, number - 1))),
            after: (number < count).then(|| encode_path(&page_path(path, number + 1))),
        }
    }
}

/// Returns the number of pages of a list; at least one.
pub(crate) fn pages_of(items: usize, size: usize) -> usize {
    items.div_ceil(size).max(1)
}

/// Returns the address of page `number` of the list whose first page is at `path`.
pub(crate) fn page_path(path: &str, number: usize) -> String {
    if number == 1 { path.to_owned() } else { format!("{path}page/{number}/") }
}
