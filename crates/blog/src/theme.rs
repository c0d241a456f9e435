//! The look: templates and style, embedded in the binary.

use std::fmt;

use bytes::Bytes;
use jiff::civil::Date;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::{
    digest::{digest, fingerprint},
    escape::escape,
    feed::BASE,
    slug::{encode_path, tag_slug},
    view::Context,
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

/// A link with its text and its percent-encoded address.
#[derive(Debug, Clone, Hash, Serialize)]
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
#[derive(Debug, Clone, Hash, Serialize)]
pub(crate) struct Tag {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) count: usize,
    /// The size in which the tag is drawn among the others, 1 to 4.
    pub(crate) weight: usize,
}

impl Tag {
    /// Makes a tag whose page is at `path`.
    pub(crate) fn new(title: &str, path: &str) -> Self {
        Self { title: title.to_owned(), url: encode_path(path), count: 0, weight: 1 }
    }
}

/// Returns the address of a tag's page.
pub(crate) fn tag_path(tag: &str) -> String {
    format!("/tags/{}/", tag_slug(tag))
}

/// The templates and the assets of one look, ready to draw pages.
pub(crate) struct Theme {
    environment: Environment<'static>,
    fingerprint: u128,
    /// The addresses of the style and of the mark, which change with their content.
    style: String,
    mark: String,
}

impl fmt::Debug for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Theme").field("style", &self.style).finish_non_exhaustive()
    }
}

impl Theme {
    /// Returns the theme that is embedded in the binary.
    pub(crate) fn embedded() -> Self {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // Ours, because minijinja's escapes every slash of an address as well.
        environment.set_formatter(|out, state, value| match value.as_str() {
            // Escaping would drop it; nobody else can write it.
            Some(BASE) => out.write_str(BASE).map_err(minijinja::Error::from),
            Some(text) if !value.is_safe() => out.write_str(&escape(text)).map_err(minijinja::Error::from),
            _ => minijinja::escape_formatter(out, state, value),
        });
        for (name, source) in TEMPLATES {
            environment.add_template(name, source).expect("embedded templates are well-formed: every test renders them");
        }
        let style = format!("/theme/style-{}.css", &digest(STYLE.as_bytes())[..12]);
        let mark = format!("/theme/mark-{}.svg", &digest(MARK.as_bytes())[..12]);
        Self { environment, fingerprint: fingerprint(&(TEMPLATES, STYLE, MARK)), style, mark }
    }

    /// Returns a number that differs for themes that draw pages differently.
    pub(crate) const fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// Returns the address of the style.
    pub(crate) fn style(&self) -> &str {
        &self.style
    }

    /// Returns the address of the mark of Seawall, the icon of a blog that has none of its own.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Returns the assets of the theme: address, media type, content. The addresses change with the content.
    pub(crate) fn assets(&self) -> [(String, &'static str, Bytes); 2] {
        [
            (self.style.clone(), "text/css; charset=utf-8", Bytes::from_static(STYLE.as_bytes())),
            (self.mark.clone(), "image/svg+xml", Bytes::from_static(MARK.as_bytes())),
        ]
    }

    /// Draws a page with the template of this name.
    pub(crate) fn render(&self, template: &str, context: &Context<'_>) -> String {
        let template = self.environment.get_template(template).expect("embedded templates are all added");
        template.render(context).expect("embedded templates use what they are given: every test renders them")
    }
}

/// Formats a date as `1 March 2026`, or by ISO 8601 if the blog is not in English.
pub(crate) fn long_date(day: Date, is_english: bool) -> String {
    if is_english { day.strftime("%-d %B %Y").to_string() } else { day.to_string() }
}
