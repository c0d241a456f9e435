//! A small blog to start from.

const FILES: [(&str, &[u8]); 5] = [
    ("blog.toml", include_bytes!("../starter/blog.toml")),
    ("posts/2026-01-10-hello.md", include_bytes!("../starter/posts/2026-01-10-hello.md")),
    ("posts/2026-01-12-writing-in-markdown.md", include_bytes!("../starter/posts/2026-01-12-writing-in-markdown.md")),
    ("posts/2026-01-15-before-you-publish.md", include_bytes!("../starter/posts/2026-01-15-before-you-publish.md")),
    ("pages/about.md", include_bytes!("../starter/pages/about.md")),
];

/// Returns the files of an example blog, by path relative to its folder.
#[must_use]
pub fn starter() -> &'static [(&'static str, &'static [u8])] {
    &FILES
}
