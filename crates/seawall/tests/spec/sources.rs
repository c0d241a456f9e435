//! The sources that are not servers: a folder of files, a folder of Markdown. They go through the same cache.

use std::{fs, path::Path};

use testkit::Req;

use crate::site::Site;

/// Returns a site whose source is the folder `name` beside its settings, filled before the start.
fn site_of(name: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Site) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join(name);
    for (file, text) in files {
        write(&source.join(file), text);
    }
    let site = Site::start(&format!("source = \"{}\"", source.display()));
    (folder, site)
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(file, text).expect("written");
}

/// A folder with an index.html is served as it is: types, validators, ranges, and nothing from outside.
#[tokio::test]
async fn a_folder_of_files_is_served() {
    let (_folder, site) = site_of("public", &[("index.html", "<h1>home</h1>"), ("posts/index.html", "posts"), ("style.css", "a{}")]);
    let home = site.get("/").await.status(200).body("<h1>home</h1>").field_contains("content-type", "text/html");
    let tag = home.value("etag").expect("a validator");
    site.get("/").await.body("<h1>home</h1>").cache_status("hit");
    site.request(Req::get("/").field("if-none-match", tag)).await.status(304);
    site.request(Req::get("/style.css").field("range", "bytes=0-0")).await.field_contains("content-type", "text/css");
    site.request(Req::get("/style.css").field("range", "bytes=1-2")).await.status(206).body("{}");
    site.get("/posts/").await.status(200).body("posts");
    for target in ["/nothing", "/../seawall.toml", "/%2e%2e/seawall.toml", "/..%2fseawall.toml", "/%2fetc/passwd"] {
        assert!([400, 404].contains(&site.get(target).await.code), "{target}");
    }
    site.request(Req::post("/").body("a")).await.status(405);
    // Cookies and credentials mean nothing to a file.
    site.request(Req::get("/").field("cookie", "session=1").field("authorization", "Basic eA==")).await.cache_status("hit");
}

/// A folder of Markdown is a blog.
#[tokio::test]
async fn a_folder_of_markdown_is_a_blog() {
    let (_folder, site) = site_of("blog", &[("posts/2026-01-10-hello.md", "---\ntitle: Hello\n---\nThe *first* post.\n")]);
    for status in ["fwd=uri-miss; stored", "hit"] {
        site.get("/").await.status(200).body_contains("Hello").cache_status(status);
    }
    site.get("/hello/").await.status(200).body_contains("The <em>first</em> post.");
    site.get("/nothing/").await.status(404);
}
