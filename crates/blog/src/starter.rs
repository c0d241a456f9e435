//! A small blog to start from.

const FILES: [(&str, &[u8]); 8] = [
    ("blog.toml", include_bytes!("../starter/blog.toml")),
    ("posts/2026-01-10-hello.md", include_bytes!("../starter/posts/2026-01-10-hello.md")),
    ("posts/cover.svg", include_bytes!("../starter/posts/cover.svg")),
    ("posts/2026-01-12-pictures-and-looks/index.md", include_bytes!("../starter/posts/2026-01-12-pictures-and-looks/index.md")),
    ("posts/2026-01-12-pictures-and-looks/harbour.png", include_bytes!("../starter/posts/2026-01-12-pictures-and-looks/harbour.png")),
    ("posts/2026-01-15-publish-it.md", include_bytes!("../starter/posts/2026-01-15-publish-it.md")),
    ("posts/an-idea.md", include_bytes!("../starter/posts/an-idea.md")),
    ("pages/about.md", include_bytes!("../starter/pages/about.md")),
];

/// Returns the files of an example blog, by path relative to its folder.
#[must_use]
pub fn starter() -> &'static [(&'static str, &'static [u8])] {
    &FILES
}
