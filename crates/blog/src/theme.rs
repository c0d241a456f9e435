//! The look: templates and style, embedded in the binary.

use std::{fmt, hash::Hasher};

use bytes::Bytes;
use jiff::civil::Date;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::{
    config::Settings,
    escape::escape,
    front_matter::Moment,
    post::Post,
    slug::{encode_path, tag_slug},
};

const STYLE: &str = include_str!("../theme/style.css");
const MARK: &str = include_str!("../theme/mark.svg");
const TEMPLATES: [(&str, &str); 7] = [
    ("base.html", include_str!("../theme/base.html")),
    ("chips.html", include_str!("../theme/chips.html")),
    ("index.html", include_str!("../theme/index.html")),
    ("post.html", include_str!("../theme/post.html")),
    ("tags.html", include_str!("../theme/tags.html")),
    ("tag.html", include_str!("../theme/tag.html")),
    ("404.html", include_str!("../theme/404.html")),
];

/// Returns a strong validator of `content`. The same bytes have the same validator on every machine, so that restarts and replicas do not
/// invalidate readers' caches.
pub(crate) fn digest(content: &[u8]) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(content);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Returns the assets of the theme: address, media type, content. The addresses change with the content.
pub(crate) fn assets() -> [(String, &'static str, Bytes); 2] {
    [
        (style_path(), "text/css; charset=utf-8", Bytes::from_static(STYLE.as_bytes())),
        (mark_path(), "image/svg+xml", Bytes::from_static(MARK.as_bytes())),
    ]
}

fn style_path() -> String {
    format!("/theme/style-{}.css", &digest(STYLE.as_bytes())[..12])
}

fn mark_path() -> String {
    format!("/theme/mark-{}.svg", &digest(MARK.as_bytes())[..12])
}

/// A link with its text and its percent-encoded address.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Link {
    title: String,
    url: String,
}

impl Link {
    pub(crate) fn new(title: &str, path: &str) -> Self {
        Self { title: title.to_owned(), url: encode_path(path) }
    }
}

/// A tag and the number of its posts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Tag {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) count: usize,
    /// The size in which the tag is drawn among the others, 1 to 4.
    pub(crate) weight: usize,
}

impl Tag {
    pub(crate) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), url: encode_path(&tag_path(title)), count: 0, weight: 1 }
    }
}

/// Returns the address of a tag's page.
pub(crate) fn tag_path(tag: &str) -> String {
    format!("/tags/{}/", tag_slug(tag))
}

/// A date in two forms: for people and for machines.
#[derive(Debug, Serialize)]
struct Day {
    text: String,
    iso: String,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    title: &'a str,
    url: String,
    date: Day,
    updated: Option<Day>,
    year: i16,
    minutes: usize,
    summary: &'a str,
    html: &'a str,
    tags: Vec<Tag>,
}

/// The data that every page of one site shares.
pub(crate) struct Theme<'a> {
    environment: Environment<'static>,
    settings: &'a Settings,
    nav: Vec<Link>,
    /// The author's `favicon.svg` or `favicon.ico`, or else the mark of Seawall.
    icon: String,
}

impl fmt::Debug for Theme<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Theme").field("nav", &self.nav).finish_non_exhaustive()
    }
}

impl<'a> Theme<'a> {
    pub(crate) fn new(settings: &'a Settings, nav: Vec<Link>, icon: Option<&str>) -> Self {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // Ours, because minijinja's escapes every slash of an address as well.
        environment.set_formatter(|out, state, value| match value.as_str() {
            Some(text) if !value.is_safe() => out.write_str(&escape(text)).map_err(minijinja::Error::from),
            _ => minijinja::escape_formatter(out, state, value),
        });
        for (name, source) in TEMPLATES {
            environment.add_template(name, source).expect("embedded templates are well-formed: every test renders them");
        }
        Self { environment, settings, nav, icon: icon.map_or_else(mark_path, encode_path) }
    }

    /// Renders the index page `number` of `count`.
    pub(crate) fn index(&self, posts: &[Post], number: usize, count: usize) -> String {
        let page = |number: usize| if number == 1 { "/".to_owned() } else { format!("/page/{number}/") };
        let entries: Vec<_> = posts.iter().map(|post| self.entry(post)).collect();
        let newer = (number > 1).then(|| page(number - 1));
        let older = (number < count).then(|| page(number + 1));
        let title = (number > 1).then(|| format!("Page {number}"));
        let extra = context! { entries, number, count, newer, older, title, path => page(number), summary => self.settings.description };
        self.render("index.html", extra)
    }

    /// Renders a post with links to its neighbours in time. A page has no neighbours and no date.
    pub(crate) fn post(&self, post: &Post, is_page: bool, newer: Option<&Post>, older: Option<&Post>) -> String {
        let link = |post: &Post| Link::new(&post.title, &post.path);
        let extra = context! {
            post => self.entry(post), is_page, newer => newer.map(link), older => older.map(link),
            title => post.title, path => encode_path(&post.path), summary => post.summary,
        };
        self.render("post.html", extra)
    }

    /// Renders the list of all tags.
    pub(crate) fn tags(&self, tags: &[Tag]) -> String {
        self.render("tags.html", context! { tags, title => "Tags", path => "/tags/", summary => () })
    }

    /// Renders the posts of one tag.
    pub(crate) fn tag(&self, tag: &str, posts: &[&Post]) -> String {
        let entries: Vec<_> = posts.iter().map(|post| self.entry(post)).collect();
        self.render("tag.html", context! { entries, title => tag, path => encode_path(&tag_path(tag)), summary => () })
    }

    /// Renders the page for addresses that do not exist.
    pub(crate) fn not_found(&self, recent: &[Post]) -> String {
        let recent: Vec<_> = recent.iter().take(5).map(|post| Link::new(&post.title, &post.path)).collect();
        self.render("404.html", context! { recent, title => "Not found", path => (), summary => () })
    }

    fn render(&self, template: &str, extra: minijinja::Value) -> String {
        let Settings { title, description, author, base_url, language, footer, .. } = self.settings;
        let site =
            context! { title, description, author, base_url, language, footer, style => style_path(), icon => self.icon, nav => self.nav };
        let template = self.environment.get_template(template).expect("embedded templates are all added");
        template.render(context! { site, ..extra }).expect("embedded templates use what they are given: every test renders them")
    }

    fn entry<'p>(&self, post: &'p Post) -> Entry<'p> {
        Entry {
            title: &post.title,
            url: encode_path(&post.path),
            date: self.day(post.date),
            updated: post.updated.filter(|updated| updated.day > post.date.day).map(|updated| self.day(updated)),
            year: post.date.day.year(),
            minutes: post.minutes,
            summary: &post.summary,
            html: &post.html,
            tags: post.tags.iter().map(|tag| Tag::new(tag)).collect(),
        }
    }

    fn day(&self, moment: Moment) -> Day {
        Day { text: long_date(moment.day, self.settings.is_english()), iso: moment.day.to_string() }
    }
}

/// Formats a date as `1 March 2026`, or by ISO 8601 if the blog is not in English.
fn long_date(day: Date, is_english: bool) -> String {
    if is_english { day.strftime("%-d %B %Y").to_string() } else { day.to_string() }
}
