//! A folder of Markdown becomes a site in memory, and the site an [`Origin`](origins::Origin).
//!
//! [`build`] reads a folder once and returns the site ([`Site`]), whose pages are drawn when they are asked for; [`Blog`] holds the current site
//! and answers requests from it; [`watch`] rebuilds when the folder changes, or when the time of a post comes, and swaps the site whole, so that
//! a reader sees either the old site or the new one. A rebuild reads and renders what has changed. A mistake concerns the file that it is in: its
//! last good version stays, or it is left out.
//!
//! Authors are trusted: raw HTML in a post is published as it stands. Everything else (titles, tags, file names) is escaped.
//!
//! Absent from this room: sockets and caching.

mod answer;
mod blog;
mod card;
mod config;
mod context;
mod digest;
mod error;
mod escape;
mod export;
mod feed;
mod folder;
mod front_matter;
mod gallery;
mod head;
mod json;
mod large_file;
mod links;
mod llms;
mod machine;
mod markdown;
mod markdown_form;
mod markup;
mod memory;
mod model;
mod parallel;
mod picture;
mod post;
mod preview;
mod related;
mod reload;
mod search;
mod site;
mod sitemap;
mod slug;
mod starter;
mod static_file;
mod targets;
mod texts;
mod theme;
mod view;
mod watch;
mod words;

pub use blog::{Blog, PrivateText, Rebuilt};
pub use card::Card;
pub use config::{AuthorOptions, BlogOptions, LookOptions, NavigationLink};
pub use error::{BuildError, Problem, Severity};
pub use export::{ExportError, Exported, check_export};
pub use gallery::WantedVariant;
pub use large_file::LargeFile;
pub use pictures::{Shelf, Workshop};
pub use site::{Draft, Page, PageKind, Site, SiteResource, build, build_texts};
pub use starter::starter;
pub use theme::{looks, theme_files};
pub use watch::{Change, WatchError, Watcher, watch};

/// Files up to this size are held in memory; larger ones are read from disk, 64 KiB at a time, for each request.
pub const HELD_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The size of all files that are held in memory together. Further files are read from disk, however small they are.
pub const HELD_BYTES_MAX: u64 = 64 * 1024 * 1024;
