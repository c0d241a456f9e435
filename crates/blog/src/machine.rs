//! The answers that programs read.

use crate::{
    digest::fingerprint,
    feed::{self, BASE, Format},
    llms,
    model::Model,
    search,
    site::PageKind,
    sitemap,
};

/// A text for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Machine {
    /// The feed of all posts, or that of the tag whose page has this address.
    Feed(Format, Option<String>),
    /// All addresses, or the index of the sitemaps if there are several.
    Sitemap,
    /// One sitemap of several, counted from 1.
    SitemapPart(usize),
    Robots,
    /// The list of what the blog has, for language models.
    Llms,
    /// The index that the search loads.
    Search,
}

impl Machine {
    /// Lists all of them, with their addresses and kinds.
    pub(crate) fn all(model: &Model) -> Vec<(String, PageKind, Self)> {
        let mut all = vec![
            ("/sitemap.xml".to_owned(), PageKind::Sitemap, Self::Sitemap),
            ("/robots.txt".to_owned(), PageKind::Robots, Self::Robots),
            ("/llms.txt".to_owned(), PageKind::Text, Self::Llms),
            (search::INDEX_PATH.to_owned(), PageKind::Text, Self::Search),
        ];
        for format in Format::ALL {
            all.push((format!("/{}", format.file_name()), PageKind::Feed, Self::Feed(format, None)));
            let of_tag = |tag: &String| (format!("{tag}{}", format.file_name()), PageKind::Feed, Self::Feed(format, Some(tag.clone())));
            all.extend(model.tags.keys().map(of_tag));
        }
        let parts = sitemap::parts(model);
        if parts > 1 {
            all.extend((1..=parts).map(|number| (sitemap::part_path(number), PageKind::Sitemap, Self::SitemapPart(number))));
        }
        all
    }

    pub(crate) const fn content_type(&self) -> &'static str {
        match self {
            Self::Feed(format, _) => format.content_type(),
            Self::Sitemap | Self::SitemapPart(_) => "application/xml",
            Self::Robots => "text/plain; charset=utf-8",
            Self::Llms => "text/markdown; charset=utf-8",
            Self::Search => "application/json",
        }
    }

    /// Tells whether the text has absolute addresses.
    pub(crate) const fn is_absolute(&self) -> bool {
        !matches!(self, Self::Search)
    }

    /// Returns a number that differs if the text would differ.
    pub(crate) fn fingerprint(&self, model: &Model) -> u128 {
        match self {
            Self::Feed(format, tag) => feed::feed_fingerprint(model, *format, tag.as_deref()),
            Self::Sitemap => sitemap::sitemap_fingerprint(model),
            Self::SitemapPart(number) => fingerprint(&(sitemap::sitemap_fingerprint(model), number)),
            Self::Robots => 0,
            Self::Llms => llms::llms_fingerprint(model),
            Self::Search => search::index_fingerprint(model),
        }
    }

    /// Writes the text. Absolute addresses in it begin with [`BASE`].
    pub(crate) fn write(&self, model: &Model) -> String {
        match self {
            Self::Feed(format, tag) => feed::write(model, *format, tag.as_deref()),
            Self::Sitemap => sitemap::write(model),
            Self::SitemapPart(number) => sitemap::write_part(model, *number),
            Self::Robots => format!("User-agent: *\nAllow: /\n\nSitemap: {BASE}/sitemap.xml\n"),
            Self::Llms => llms::write(model),
            Self::Search => search::index(model),
        }
    }
}
