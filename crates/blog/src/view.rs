//! The pages that the theme draws.
//!
//! A template sees its [`Context`] and nothing else. So the fingerprint of a context, with that of the theme, tells whether the page would
//! differ: which pages depend on a file follows from what they are given, and is written down nowhere else.

use std::sync::Arc;

use crate::{
    context::{
        Content, Context, Entry, Frame, Item, Line, Pages, Part, Person, PostContent, Relative, SeriesBox, Translation, YearList, page_path,
    },
    digest::fingerprint,
    error::Problem,
    head::{About, Head},
    model::{Group, Model, year_path},
    post::{Post, Visibility},
    search,
    slug::{self, encode_path},
    theme::{Link, Mistake, Tag},
    words::Words,
};

/// The number of lines on a page of a list that shows titles alone: the posts of a tag, a year, an author, a series, and the authors.
pub(crate) const LIST_LINES: usize = 100;

/// The number of tags on a page of the list of tags.
pub(crate) const LIST_TAGS: usize = 500;

/// The number of posts on the page of the archive. Years with more are continued on their own pages.
const ARCHIVE_LINES: usize = 200;

/// The number of parts in the box of a series, around the post on whose page it is.
const SERIES_PARTS: usize = 12;

const RECENT: usize = 5;

/// A page with everything that it needs: its template, and what the template is given.
#[derive(Debug)]
pub(crate) struct Drawable<'m> {
    pub(crate) template: &'static str,
    pub(crate) context: Context<'m>,
}

/// A page of the site that the theme draws. Numbers of pages count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// A page of the index.
    Index(usize),
    /// A post, by its place in [`Model::posts`].
    Post(usize),
    /// A page, by its place in [`Model::pages`].
    Page(usize),
    /// A text that is not published yet, by its place in [`Model::drafts`].
    Draft(usize),
    /// The list of all years.
    Archive,
    /// A page of the posts of a year.
    Year(i16, usize),
    /// A page of the list of all tags.
    Tags(usize),
    /// A page of the posts of the tag whose first page has this address.
    Tag(String, usize),
    /// A page of the list of all authors.
    Authors(usize),
    /// A page of the posts of the author whose first page has this address.
    Author(String, usize),
    /// A page of the posts of the series whose first page has this address, in their order.
    Series(String, usize),
    /// The page on which readers search.
    Search,
    /// The answer for addresses that do not exist.
    NotFound,
}

impl View {
    /// Returns the name of the template that draws this page.
    const fn template(&self) -> &'static str {
        match self {
            Self::Index(_) => "index.html",
            Self::Post(_) | Self::Page(_) | Self::Draft(_) => "post.html",
            Self::Archive => "archive.html",
            Self::Tags(_) => "tags.html",
            Self::Authors(_) => "authors.html",
            Self::Year(..) | Self::Tag(..) | Self::Author(..) | Self::Series(..) => "list.html",
            Self::Search => "search.html",
            Self::NotFound => "404.html",
        }
    }

    /// Returns the kind of the page as templates know it.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Index(_) => "index",
            Self::Post(_) => "post",
            Self::Page(_) => "page",
            Self::Draft(_) => "draft",
            Self::Archive => "archive",
            Self::Year(..) => "year",
            Self::Tags(_) => "tags",
            Self::Tag(..) => "tag",
            Self::Authors(_) => "authors",
            Self::Author(..) => "author",
            Self::Series(..) => "series",
            Self::Search => "search",
            Self::NotFound => "404",
        }
    }

    /// Returns a number that differs if the page would differ.
    pub(crate) fn fingerprint(&self, model: &Model) -> u128 {
        let Drawable { template, context } = self.drawable(model);
        fingerprint(&(model.theme.fingerprint(), template, context))
    }

    /// Draws the page. Absolute addresses in it begin with [`BASE`](crate::feed::BASE).
    pub(crate) fn draw(&self, model: &Model) -> String {
        model.theme.draw(&self.drawable(model))
    }

    pub(crate) fn drawable<'m>(&self, model: &'m Model) -> Drawable<'m> {
        Drawable { template: self.template(), context: self.context(model) }
    }

    fn context<'m>(&self, model: &'m Model) -> Context<'m> {
        let words = Words::of(&model.settings.language);
        let mut context = Context {
            site: Frame::new(model),
            words,
            kind: self.kind(),
            title: None,
            path: self.path(model).map(|path| encode_path(&path)),
            summary: None,
            language: &model.settings.language,
            noindex: false,
            head: None,
            content: Content::Search { search_script: search::script_path(), search_index: search::INDEX_PATH },
        };
        match self {
            &Self::Index(number) => {
                let size = model.settings.posts_per_page;
                let pages = Pages::new("/", number, model.posts.len(), size);
                context.title = (number > 1).then(|| words.page_of(number, pages.count));
                context.summary = model.settings.description.as_deref();
                let entries = model.posts.iter().skip((number - 1) * size).take(size).map(|post| Item::new(model, post)).collect();
                context.content = Content::Index { entries, pages };
            }
            &Self::Post(index) => context.show(model, &model.posts[index], Some(index)),
            &Self::Page(index) => context.show(model, &model.pages[index], None),
            &Self::Draft(index) => context.show(model, &model.drafts[index], None),
            Self::Archive => {
                context.title = Some(words.archive.to_owned());
                context.content = Content::Archive { years: archive(model) };
            }
            &Self::Year(year, number) => context.list(model, (&year_path(year), number), year.to_string(), &model.years[&year]),
            &Self::Tags(number) => {
                context.title = Some(words.tags.to_owned());
                let pages = Pages::new("/tags/", number, model.tags.len(), LIST_TAGS);
                context.content = Content::Tags { tags: weighed(model, number), pages };
            }
            Self::Tag(path, number) => {
                let group = &model.tags[path];
                context.list(model, (path, *number), group.title.clone(), &group.posts);
                if let Content::List { feed, .. } = &mut context.content {
                    *feed = Some(encode_path(&format!("{path}feed.xml")));
                }
            }
            &Self::Authors(number) => {
                context.title = Some(words.authors.to_owned());
                let pages = Pages::new("/authors/", number, model.authors.len(), LIST_LINES);
                let authors = model.authors.iter().skip((number - 1) * LIST_LINES).take(LIST_LINES);
                let count = |group: &Group| Some(group.posts.len());
                let authors = authors.map(|(path, group)| Person { count: count(group), ..Person::new(model, path, group) }).collect();
                context.content = Content::Authors { authors, pages };
            }
            Self::Author(path, number) => {
                let group = &model.authors[path];
                context.list(model, (path, *number), group.title.clone(), &group.posts);
                if let Content::List { author, .. } = &mut context.content {
                    *author = Some(Person::new(model, path, group));
                }
            }
            Self::Series(path, number) => {
                let group = &model.series[path];
                context.list(model, (path, *number), group.title.clone(), &group.posts);
            }
            Self::Search => context.title = Some(words.search.to_owned()),
            Self::NotFound => {
                context.title = Some(words.not_found.to_owned());
                let recent = model.posts.iter().take(RECENT).map(|post| link(post)).collect();
                context.content = Content::NotFound { recent };
            }
        }
        context.head = Some(Head::new(model, self.about(model), context.title.as_deref(), context.path.as_deref(), context.summary));
        context
    }

    fn about<'m>(&self, model: &'m Model) -> About<'m> {
        match self {
            Self::Index(_) => About::Site,
            &Self::Post(index) => About::Text(&model.posts[index]),
            &Self::Page(index) => About::Text(&model.pages[index]),
            &Self::Draft(index) => About::Text(&model.drafts[index]),
            Self::Tag(path, _) => model.tags.get_key_value(path).map_or(About::List, |(path, _)| About::Tag(path)),
            Self::Author(path, _) => About::Author(&model.authors[path].title),
            Self::Archive | Self::Year(..) | Self::Tags(_) | Self::Authors(_) | Self::Series(..) => About::List,
            Self::Search | Self::NotFound => About::Nothing,
        }
    }

    fn path(&self, model: &Model) -> Option<String> {
        Some(match self {
            Self::Index(number) => page_path("/", *number),
            Self::Post(index) => model.posts[*index].path.clone(),
            Self::Page(index) => model.pages[*index].path.clone(),
            Self::Draft(index) => model.drafts[*index].path.clone(),
            Self::Archive => "/archive/".to_owned(),
            Self::Year(year, number) => page_path(&year_path(*year), *number),
            Self::Tags(number) => page_path("/tags/", *number),
            Self::Authors(number) => page_path("/authors/", *number),
            Self::Tag(path, number) | Self::Author(path, number) | Self::Series(path, number) => page_path(path, *number),
            Self::Search => "/search/".to_owned(),
            Self::NotFound => return None,
        })
    }
}

impl<'m> Context<'m> {
    /// Shows a post, or a page if it has no place among the posts.
    fn show(&mut self, model: &'m Model, post: &'m Post, index: Option<usize>) {
        self.title = Some(post.title.clone());
        self.summary = Some(&post.summary);
        self.noindex = post.front.noindex || post.standing != Visibility::Published;
        self.language = post.language(&model.settings.language);
        let neighbour = |index: Option<usize>| index.and_then(|index| model.posts.get(index)).map(|post| link(post));
        self.content = Content::Post(Box::new(PostContent {
            post: Entry::new(model, post),
            is_page: post.is_page,
            newer: neighbour(index.and_then(|index| index.checked_sub(1))),
            older: neighbour(index.map(|index| index + 1)),
            related: index.map_or_else(Vec::new, |index| model.related(index).map(|post| Relative::new(model, post)).collect()),
            series: series_box(model, post),
            translations: translations(model, post),
        }));
    }

    /// Lists the posts with these indexes: the page `number` of a list whose first page is at `path`.
    fn list(&mut self, model: &'m Model, (path, number): (&str, usize), title: String, posts: &[usize]) {
        let pages = Pages::new(path, number, posts.len(), LIST_LINES);
        let entries = posts.iter().skip((number - 1) * LIST_LINES).take(LIST_LINES).map(|&post| Line::new(model, &model.posts[post]));
        self.title = Some(title);
        self.content = Content::List {
            entries: entries.collect(),
            pages,
            count: posts.len(),
            posts: self.words.posts_count(posts.len()),
            first: (number - 1) * LIST_LINES + 1,
            author: None,
            feed: None,
        };
    }
}

/// Draws pages of every kind, so that a template of the blog that is wrong is found before a reader does. Puts the last good version in the
/// place of each, or the embedded one, and returns the mistakes.
pub(crate) fn try_theme(model: &mut Model) -> Vec<Problem> {
    let mut problems = Vec::new();
    // Each turn takes a template of the blog away, or puts its last good version there: it ends.
    while let Some(mistake) = first_mistake(model) {
        problems.push(mistake.problem());
        match Arc::get_mut(&mut model.theme) {
            Some(theme) => theme.withdraw(&mistake),
            None => break,
        }
    }
    problems
}

fn first_mistake(model: &Model) -> Option<Mistake> {
    if !model.theme.has_own_templates() {
        return None;
    }
    let middle = model.posts.len() / 2;
    let posts = [0, middle].into_iter().filter(|post| *post < model.posts.len()).map(View::Post);
    let pages = (!model.pages.is_empty()).then_some(View::Page(0));
    let drafts = (!model.drafts.is_empty()).then_some(View::Draft(0));
    let year = model.years.keys().next().map(|year| View::Year(*year, 1));
    let tag = model.tags.keys().next().map(|path| View::Tag(path.clone(), 1));
    let author = model.authors.keys().next().map(|path| View::Author(path.clone(), 1));
    let series = model.series.keys().next().map(|path| View::Series(path.clone(), 1));
    let always = [View::Index(1), View::Archive, View::Tags(1), View::Authors(1), View::Search, View::NotFound];
    let of_some = pages.into_iter().chain(drafts).chain(year).chain(tag).chain(author).chain(series);
    always.into_iter().chain(posts).chain(of_some).find_map(|view| model.theme.try_page(&view.drawable(model)).err())
}

fn link(post: &Post) -> Link {
    Link::new(&post.title, &post.path)
}

/// Lists the years, newest first, with as many of their posts as one page holds.
fn archive(model: &Model) -> Vec<YearList<'_>> {
    let mut left = ARCHIVE_LINES;
    let list = |(&year, posts): (&i16, &Vec<usize>)| {
        let entries: Vec<_> = posts.iter().take(left).map(|&post| Line::new(model, &model.posts[post])).collect();
        left -= entries.len();
        YearList { year, url: year_path(year), count: posts.len(), entries }
    };
    model.years.iter().rev().map(list).collect()
}

fn series_box(model: &Model, post: &Post) -> Option<SeriesBox> {
    let (path, group, place) = model.series_of(post)?;
    let count = group.posts.len();
    let first = place.saturating_sub(SERIES_PARTS / 2).min(count.saturating_sub(SERIES_PARTS));
    let part = |(at, post): (usize, &Arc<Post>)| Part {
        number: at + 1,
        title: post.title.clone(),
        url: encode_path(&post.path),
        is_this: at == place,
    };
    let parts = model.posts_of(group).enumerate().skip(first).take(SERIES_PARTS).map(part).collect();
    let part = post.words(&model.settings).part_of(place + 1, count);
    Some(SeriesBox { title: group.title.clone(), url: encode_path(path), number: place + 1, count, part, parts })
}

/// Lists the other languages in which there is this text.
fn translations(model: &Model, post: &Post) -> Vec<Translation> {
    let language = &model.settings.language;
    let others = model.translations(post).iter().filter(|other| other.name != post.name);
    let one = |other: &Arc<Post>| Translation {
        language: other.language(language).to_owned(),
        name: Words::find(other.language(language)).map_or_else(|| other.language(language), |words| words.name).to_owned(),
        title: other.title.clone(),
        url: encode_path(&other.path),
    };
    others.map(one).collect()
}

fn weighed(model: &Model, number: usize) -> Vec<Tag> {
    let most = model.tags.values().map(|group| group.posts.len()).max().unwrap_or(1);
    let mut all: Vec<_> = model.tags.iter().map(|(path, group)| (slug::slugify(&group.title), path, group)).collect();
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let tag = |(_, path, Group { title, posts }): (String, &String, &Group)| Tag {
        count: posts.len(),
        weight: (posts.len() * 4).div_ceil(most),
        ..Tag::new(title, path)
    };
    all.into_iter().skip((number - 1) * LIST_TAGS).take(LIST_TAGS).map(tag).collect()
}
