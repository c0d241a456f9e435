//! The words that the theme and the texts need, in the language of the blog.

use serde::Serialize;

/// The words of one language. Templates see them as `words`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Words {
    pub(crate) skip: &'static str,
    pub(crate) pages: &'static str,
    pub(crate) posts: &'static str,
    pub(crate) tags: &'static str,
    pub(crate) archive: &'static str,
    pub(crate) authors: &'static str,
    pub(crate) search: &'static str,
    pub(crate) feed: &'static str,
    pub(crate) updated: &'static str,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    pub(crate) newer: &'static str,
    pub(crate) older: &'static str,
    pub(crate) related: &'static str,
    pub(crate) series: &'static str,
    pub(crate) contents: &'static str,
    pub(crate) footnotes: &'static str,
    pub(crate) back: &'static str,
    pub(crate) section: &'static str,
    pub(crate) table: &'static str,
    pub(crate) note: &'static str,
    pub(crate) tip: &'static str,
    pub(crate) important: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) caution: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) untagged: &'static str,
    pub(crate) not_found: &'static str,
    pub(crate) not_found_text: &'static str,
    pub(crate) all_posts: &'static str,
    pub(crate) nothing_found: &'static str,
    pub(crate) draft: &'static str,
    /// The kind of a card that leads to a video elsewhere.
    pub(crate) video: &'static str,
    /// The kind of a card that leads to a message on a social network.
    pub(crate) message: &'static str,
    /// The kind of a card that leads to code elsewhere.
    pub(crate) code: &'static str,
}

const ENGLISH: Words = Words {
    skip: "Skip to the text",
    pages: "Pages",
    posts: "Posts",
    tags: "Tags",
    archive: "Archive",
    authors: "Authors",
    search: "Search",
    feed: "Feed",
    updated: "updated",
    before: "Before this",
    after: "After this",
    newer: "Newer",
    older: "Older",
    related: "Related",
    series: "Series",
    contents: "Contents",
    footnotes: "Footnotes",
    back: "Back to the text",
    section: "Link to this section",
    table: "Table",
    note: "Note",
    tip: "Tip",
    important: "Important",
    warning: "Warning",
    caution: "Caution",
    empty: "Nothing is published yet. The first Markdown file in this folder will appear here.",
    untagged: "No post has a tag yet.",
    not_found: "There is nothing at this address",
    not_found_text: "It may have moved, or it was never here.",
    all_posts: "All posts",
    nothing_found: "Nothing was found.",
    draft: "Draft",
    video: "Video",
    message: "Post",
    code: "Code",
};

impl Words {
    /// Returns the words of the language with this tag (BCP 47), or English ones.
    pub(crate) fn of(_language: &str) -> &'static Self {
        &ENGLISH
    }

    /// Says how long a text takes to read.
    pub(crate) fn minutes(&self, minutes: usize) -> String {
        format!("{minutes} min read")
    }

    /// Says which page of how many this is.
    pub(crate) fn page_of(&self, number: usize, count: usize) -> String {
        format!("Page {number} of {count}")
    }
}
