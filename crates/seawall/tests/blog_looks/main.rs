//! The pages of blogs, judged: by axe for those who see little, by the HTML checker of the W3C, and by Lighthouse. And seen, as screenshots.
//!
//! It is long and needs tools of npm: `make spec-blog`. Without them, nothing here runs; crates/blog/tests/spec has what must always hold.
//!
//!   SEAWALL_BLOG_PICTURES=DIR   keeps the screenshots: every look, light and dark, on a phone and on a wide screen
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod browser;
mod demo;
mod machines;
mod server;

use std::{env, fs, path::Path};

use serde_json::json;

use crate::{browser::judged, demo::Demo, server::Server};

/// Tells whether the tests run that need the tools.
fn long_tests_run() -> bool {
    env::var_os("SEAWALL_BLOG_LONG").is_some()
}

/// Returns every page of a blog, by its name for messages.
fn pages(name: &str, folder: &Path, server: &Server) -> Vec<serde_json::Value> {
    let now = semantics::Timestamp::from_secs(4_000_000_000);
    let site = blog::build(folder, &blog::BlogOptions::default(), now).expect("builds");
    assert!(site.problems().iter().all(|problem| problem.severity == blog::Severity::Warning), "{:?}", site.problems());
    let is_html = |path: &str| matches!(site.find(path, "http://blog.test"), Some(blog::SiteResource::Page(page)) if page.content_type.starts_with("text/html"));
    let paths = site.addresses().map(|(path, _)| path.to_owned()).filter(|path| is_html(path)).chain(["/nothing/here/".to_owned()]);
    paths.map(|path| json!({ "name": format!("{name}{path}"), "url": server.url(&path) })).collect()
}

#[test]
fn axe_and_the_checker_of_the_w3c_find_nothing_on_any_page() {
    if !long_tests_run() {
        return;
    }
    let (place, demo) = (tempfile::tempdir().unwrap(), Demo::written());
    let starter = place.path().join("starter");
    for (name, content) in blog::starter() {
        let file = starter.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut folders = vec![("example".to_owned(), examples.join("blog")), ("starter".to_owned(), starter)];
    folders.extend(blog::looks().map(|look| (format!("demo, {look}"), demo.in_look(look))));
    let mut all = Vec::new();
    let mut servers = Vec::new();
    for (at, (name, folder)) in folders.iter().enumerate() {
        let server = Server::start(folder, &place.path().join(format!("cache-{at}")));
        all.extend(pages(name, folder, &server));
        servers.push(server);
    }
    let wrong = judged(json!({ "pages": all }));
    assert!(wrong.is_empty(), "{} pages: {}", all.len(), wrong.join("\n"));
}

#[test]
fn lighthouse_gives_a_hundred() {
    if !long_tests_run() {
        return;
    }
    let (place, demo) = (tempfile::tempdir().unwrap(), Demo::written());
    demo.with_photographs(10);
    let server = Server::start(&demo.in_look("seawall"), &place.path().join("cache"));
    let wrong = judged(json!({ "lighthouse": [
        { "name": "front page", "url": server.url("/"), "explained": demo::EXPLAINED },
        { "name": "post with ten photographs", "url": server.url("/photographs/"), "explained": demo::EXPLAINED },
    ]}));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_look_is_seen() {
    let Some(pictures) = env::var_os("SEAWALL_BLOG_PICTURES").filter(|_| long_tests_run()) else { return };
    let (place, demo) = (tempfile::tempdir().unwrap(), Demo::written());
    demo.with_photographs(4);
    let mut servers = Vec::new();
    let mut shots = Vec::new();
    for look in blog::looks() {
        let server = Server::start(&demo.in_look(look), &place.path().join(look));
        for (name, path) in demo::SHOTS {
            shots.push(json!({ "name": format!("{look}-{name}"), "url": server.url(path) }));
        }
        servers.push(server);
    }
    let wrong = judged(json!({ "shots": shots, "pictures": pictures.to_string_lossy() }));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
