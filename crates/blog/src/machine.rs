//! The answers that programs read.

use crate::{digest::fingerprint, feed, model::Model, site::PageKind};

/// A text for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Machine {
    /// The feed of all posts, in Atom.
    Atom,
    Sitemap,
    Robots,
}

impl Machine {
    /// Lists all of them, with their addresses and kinds.
    pub(crate) const fn all() -> [(&'static str, PageKind, Self); 3] {
        [
            ("/feed.xml", PageKind::Feed, Self::Atom),
            ("/sitemap.xml", PageKind::Sitemap, Self::Sitemap),
            ("/robots.txt", PageKind::Robots, Self::Robots),
        ]
    }

    pub(crate) const fn content_type(&self) -> &'static str {
        match self {
            Self::Atom => "application/atom+xml; charset=utf-8",
            Self::Sitemap => "application/xml",
            Self::Robots => "text/plain; charset=utf-8",
        }
    }

    /// Returns a number that differs if the text would differ.
    pub(crate) fn fingerprint(&self, model: &Model) -> u128 {
        match self {
            Self::Atom => {
                let posts: Vec<_> = feed::newest(model).map(|post| post.fingerprint).collect();
                fingerprint(&("atom", &model.settings, posts))
            }
            Self::Sitemap => {
                let posts: Vec<_> = model.posts.iter().chain(&model.pages).map(|post| (&post.path, post.changed())).collect();
                fingerprint(&("sitemap", posts, model.tags.keys().collect::<Vec<_>>()))
            }
            Self::Robots => 0,
        }
    }

    /// Writes the text. Absolute addresses in it begin with [`feed::BASE`].
    pub(crate) fn write(&self, model: &Model) -> String {
        match self {
            Self::Atom => feed::atom(model),
            Self::Sitemap => feed::sitemap(model),
            Self::Robots => feed::robots(),
        }
    }
}
