//! What other programs read of a blog: readers of feeds (feedparser), those who show what is shared (open-graph-scraper), and the search in a
//! browser.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    browser::{installed, judged_by},
    long_tests_run,
    server::Server,
};

/// Returns a blog in `place`, served.
fn served(place: &Path) -> Server {
    let folder = place.join("blog");
    fs::create_dir(&folder).unwrap();
    let files = [
        ("blog.toml", "title = \"By the sea & more\"\ndescription = \"Notes from a wall\"\nauthor = \"Ann\"\nlanguage = \"de-AT\"\n"),
        (
            "2026-03-01-tides.md",
            "---\ntitle: 'Gezeiten \"heute\" & </script>'\ntags: [Meer, \"C++ & mehr\"]\n---\nErste Wörter.\n\n![Katze](cat.png) <a href=\"rest/\">Rest</a> [Wand](wall.md)",
        ),
        ("wall.md", "---\ndate: 2026-01-01\n---\n# Die Wand\n\nStraße zum Meer."),
        ("cat.png", "png"),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    Server::start(&folder, &place.join("cache"))
}

#[test]
fn feedparser_reads_every_feed_and_a_validator_saves_the_second_time() {
    if !long_tests_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = served(place.path());
    let urls = ["/feed.xml", "/rss.xml", "/tags/meer/feed.xml", "/tags/meer/rss.xml"].map(|path| server.url(path));
    let output = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blog_looks/feeds.py"))
        .args(urls)
        .env("PYTHONPATH", installed().join("python"))
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "");
}

#[test]
fn open_graph_scraper_reads_what_a_page_is() {
    if !long_tests_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = served(place.path());
    let wrong = judged_by(
        "machines.mjs",
        json!({ "cards": [
            { "url": server.url("/tides/"), "expected": {
                "ogTitle": "Gezeiten \"heute\" & </script>", "ogType": "article", "ogUrl": server.url("/tides/"), "ogSiteName": "By the sea & more",
                "ogDescription": "Erste Wörter.", "ogLocale": "de_AT", "twitterCard": "summary_large_image", "articlePublishedTime": "2026-03-01T00:00:00Z",
            } },
            { "url": server.url("/"), "expected": { "ogTitle": "By the sea & more", "ogType": "website", "ogDescription": "Notes from a wall" } },
            { "url": server.url("/tags/meer/"), "expected": { "ogTitle": "Meer", "ogType": "website", "ogUrl": server.url("/tags/meer/") } },
        ]}),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_search_finds_posts_in_a_browser() {
    if !long_tests_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = served(place.path());
    let url = server.url("/search/");
    let title = "Gezeiten \"heute\" & </script>";
    let wrong = judged_by(
        "machines.mjs",
        json!({ "searches": [
            { "url": url, "typed": "strasse", "found": ["Die Wand"], "said": "1 Treffer" },
            { "url": url, "typed": "meer", "found": [title, "Die Wand"], "said": "2 Treffer" },
            { "url": url, "typed": "gezeiten worter", "found": [title], "said": "1 Treffer" },
            { "url": url, "typed": "qqq", "found": [], "said": "Nichts gefunden." },
        ]}),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
