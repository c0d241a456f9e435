//! The pages that the theme draws, and what each of them is given.
//!
//! A template sees its [`Context`] and nothing else. So the fingerprint of a context, with that of the theme, tells whether the page would
//! differ: which pages depend on a file follows from what they are given, and is written down nowhere else.

use serde::Serialize;

use crate::{
    digest::fingerprint,
    feed::BASE,
    front_matter::Moment,
    model::{Group, Model},
    post::{Post, Standing},
    slug::{self, encode_path},
    theme::{Link, Tag, long_date, tag_path},
    words::Words,
};

/// A page of the site that the theme draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// A page of the index, counted from 1.
    Index(usize),
    /// A post, by its place in [`Model::posts`].
    Post(usize),
    /// A page, by its place in [`Model::pages`].
    Page(usize),
    /// The list of all tags.
    Tags,
    /// The posts of the tag whose page has this address.
    Tag(String),
    /// A text that readers do not see yet, by its place in [`Model::drafts`].
    Draft(usize),
    /// The answer for addresses that do not exist.
    NotFound,
}

/// What every page of one site is given.
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
    icon: String,
    nav: Vec<Link>,
}

/// What one page is given.
#[derive(Debug, Hash, Serialize)]
pub(crate) struct Context<'m> {
    site: Frame<'m>,
    words: &'static Words,
    /// The title of the page, if it has another than the site.
    title: Option<String>,
    /// The address of the page, percent-encoded. The page for addresses that do not exist has none.
    path: Option<String>,
    summary: Option<&'m str>,
    #[serde(flatten)]
    content: Content<'m>,
}

#[derive(Debug, Hash, Serialize)]
#[serde(untagged)]
enum Content<'m> {
    Index { entries: Vec<Entry<'m>>, number: usize, count: usize, newer: Option<String>, older: Option<String> },
    Post { post: Box<Entry<'m>>, is_page: bool, newer: Option<Link>, older: Option<Link> },
    Tags { tags: Vec<Tag> },
    Tag { entries: Vec<Entry<'m>> },
    NotFound { recent: Vec<Link> },
}

/// A date in two forms: for people and for machines.
#[derive(Debug, Hash, Serialize)]
struct Day {
    text: String,
    iso: String,
}

/// A post as templates see it.
#[derive(Debug, Hash, Serialize)]
struct Entry<'m> {
    title: &'m str,
    url: String,
    date: Day,
    updated: Option<Day>,
    year: i16,
    /// How long the text takes to read, in words.
    reading: String,
    summary: &'m str,
    /// Whether readers do not see the post yet.
    is_draft: bool,
    /// The text. In lists it is absent: they would have to be made anew whenever a word of a text changes.
    html: Option<Html<'m>>,
    tags: Vec<Tag>,
}

/// The text of a post. Its fingerprint was made with it, as the text is long.
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

impl View {
    /// Returns the name of the template that draws this page.
    pub(crate) const fn template(&self) -> &'static str {
        match self {
            Self::Index(_) => "index.html",
            Self::Post(_) | Self::Page(_) | Self::Draft(_) => "post.html",
            Self::Tags => "tags.html",
            Self::Tag(_) => "tag.html",
            Self::NotFound => "404.html",
        }
    }

    /// Returns a number that differs if the page would differ.
    pub(crate) fn fingerprint(&self, model: &Model) -> u128 {
        fingerprint(&(model.theme.fingerprint(), self.template(), self.context(model)))
    }

    /// Draws the page. Absolute addresses in it begin with [`BASE`].
    pub(crate) fn draw(&self, model: &Model) -> String {
        model.theme.render(self.template(), &self.context(model))
    }

    fn context<'m>(&self, model: &'m Model) -> Context<'m> {
        let page = |number: usize| if number == 1 { "/".to_owned() } else { format!("/page/{number}/") };
        let link = |post: &Post| Link::new(&post.title, &post.path);
        let entry = |post: &'m Post| Box::new(Entry::whole(model, post));
        let (title, path, summary, content) = match self {
            &Self::Index(number) => {
                let (count, size) = (model.index_pages(), model.settings.posts_per_page);
                let entries = model.posts.iter().skip((number - 1) * size).take(size).map(|post| Entry::new(model, post)).collect();
                let newer = (number > 1).then(|| page(number - 1));
                let older = (number < count).then(|| page(number + 1));
                let title = (number > 1).then(|| Words::of(&model.settings.language).page_of(number, count));
                let content = Content::Index { entries, number, count, newer, older };
                (title, Some(page(number)), model.settings.description.as_deref(), content)
            }
            &Self::Post(index) => {
                let post = &model.posts[index];
                let newer = index.checked_sub(1).and_then(|newer| model.posts.get(newer)).map(|post| link(post));
                let older = model.posts.get(index + 1).map(|post| link(post));
                let content = Content::Post { post: entry(post), is_page: false, newer, older };
                (Some(post.title.clone()), Some(encode_path(&post.path)), Some(post.summary.as_str()), content)
            }
            &Self::Page(index) => {
                let post = &model.pages[index];
                let content = Content::Post { post: entry(post), is_page: true, newer: None, older: None };
                (Some(post.title.clone()), Some(encode_path(&post.path)), Some(post.summary.as_str()), content)
            }
            &Self::Draft(index) => {
                let post = &model.drafts[index];
                let content = Content::Post { post: entry(post), is_page: post.is_page, newer: None, older: None };
                (Some(post.title.clone()), Some(encode_path(&post.path)), Some(post.summary.as_str()), content)
            }
            Self::Tags => (Some("Tags".to_owned()), Some("/tags/".to_owned()), None, Content::Tags { tags: weighed(model) }),
            Self::Tag(path) => {
                let group = &model.tags[path];
                let entries = model.posts_of(group).map(|post| Entry::new(model, post)).collect();
                (Some(group.title.clone()), Some(encode_path(path)), None, Content::Tag { entries })
            }
            Self::NotFound => {
                let recent = model.posts.iter().take(5).map(|post| link(post)).collect();
                (Some("Not found".to_owned()), None, None, Content::NotFound { recent })
            }
        };
        let words = Words::of(&model.settings.language);
        Context { site: Frame::new(model), words, title, path, summary, content }
    }
}

impl<'m> Frame<'m> {
    fn new(model: &'m Model) -> Self {
        let settings = &model.settings;
        Self {
            title: &settings.title,
            description: settings.description.as_deref(),
            author: &settings.author,
            base: BASE,
            language: &settings.language,
            footer: settings.footer.as_deref(),
            style: model.theme.style(),
            icon: model.icon.as_deref().map_or_else(|| model.theme.mark().to_owned(), encode_path),
            nav: model.pages.iter().map(|page| Link::new(&page.title, &page.path)).collect(),
        }
    }
}

impl<'m> Entry<'m> {
    /// Makes the entry of a post that is shown whole.
    fn whole(model: &Model, post: &'m Post) -> Self {
        Self { html: Some(Html { html: &post.html, fingerprint: post.html_fingerprint }), ..Self::new(model, post) }
    }

    /// Makes the entry of a post for a list.
    fn new(model: &Model, post: &'m Post) -> Self {
        let day = |moment: Moment| Day { text: long_date(moment.day, model.settings.is_english()), iso: moment.day.to_string() };
        Self {
            title: &post.title,
            url: encode_path(&post.path),
            date: day(post.date),
            updated: post.updated.filter(|updated| updated.day > post.date.day).map(day),
            year: post.date.day.year(),
            reading: Words::of(&model.settings.language).minutes(post.minutes),
            summary: &post.summary,
            is_draft: post.standing != Standing::Published,
            html: None,
            tags: post.tags.iter().map(|tag| Tag::new(tag, &tag_path(tag))).collect(),
        }
    }
}

fn weighed(model: &Model) -> Vec<Tag> {
    let most = model.tags.values().map(|group| group.posts.len()).max().unwrap_or(1);
    let tag = |(path, Group { title, posts }): (&String, &Group)| Tag {
        count: posts.len(),
        weight: (posts.len() * 4).div_ceil(most),
        ..Tag::new(title, path)
    };
    let mut list: Vec<_> = model.tags.iter().map(tag).collect();
    list.sort_by_key(|tag| slug::slugify(&tag.title));
    list
}
