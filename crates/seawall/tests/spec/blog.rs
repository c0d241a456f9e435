//! A folder of Markdown as a site: readers see an edit at once, and only what changed is made anew; a form for programs; the author's own rules;
//! drafts that nobody finds; pages that reload themselves for their author alone.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use testkit::{Answer, Req, secs};

use crate::site::Site;

const CHROME: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8";
const FIREFOX: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

const VALIDATED: &str = "public, max-age=0, must-revalidate";

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join("blog").join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(file, text).expect("written");
}

/// Returns a site whose source is the folder `blog` beside its settings, filled before the start.
fn site_of(files: &[(&str, &str)], settings: &str) -> (tempfile::TempDir, Site) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    let site = Site::start(&format!("source = \"{}\"\n{settings}", folder.path().join("blog").display()));
    (folder, site)
}

/// Asks until `seen`, as the system tells of a change when it likes.
async fn until(site: &Site, request: impl Fn() -> Req, seen: impl Fn(&Answer) -> bool) -> Answer {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = site.request(request()).await;
        if seen(&answer) {
            return answer;
        }
        assert!(Instant::now() < patience, "it is still {answer:?}");
    }
}

fn post(title: &str, text: &str) -> String {
    format!("---\ntitle: {title}\ndate: 2025-01-10\n---\n{text}\n")
}

/// Returns the address of the style, which changes with its content.
async fn style(site: &Site) -> String {
    let page = site.get("/").await.text();
    let from = page.find("/theme/").expect("a style");
    page[from..].split(['"', '\'', ' ', '>']).next().expect("an address").to_owned()
}

/// RFC 9110 §8.8: a page is asked for again each time, by a tag of its own; what has a fingerprint in its address is kept.
#[tokio::test]
async fn browsers_ask_for_pages_each_time_and_keep_what_never_changes() {
    let (_folder, site) = site_of(&[("posts/hello.md", &post("Hello", "text")), ("cat.png", "png")], "");
    for target in ["/", "/hello/", "/tags/", "/feed.xml", "/sitemap.xml", "/robots.txt", "/cat.png"] {
        for status in ["fwd=uri-miss; stored", "hit"] {
            let answer =
                site.get(target).await.status(200).field("cache-control", VALIDATED).no_field("last-modified").cache_status(status);
            let tag = answer.value("etag").expect("a tag");
            site.request(Req::get(target).field("if-none-match", tag)).await.status(304).body("");
            // What is between Seawall and the blog is nobody else's business.
            answer.no_field("seawall-cache-control").no_field("surrogate-key");
        }
    }
    site.get("/nothing/").await.status(404).field("cache-control", VALIDATED).no_field("etag");
    site.get("/hello").await.status(301).field("cache-control", VALIDATED).field("location", "/hello/");
    let style = style(&site).await;
    site.get(&style).await.status(200).field("cache-control", "public, max-age=31536000, immutable");
}

/// Every form of a changed page goes: each coding, each host, with and without a query, as Markdown. What did not change stays stored.
#[tokio::test]
async fn an_edit_is_seen_at_once_in_every_form_and_nothing_else_is_made_anew() {
    let long = "words ".repeat(500);
    let (folder, site) = site_of(&[("a.md", &post("A", &format!("{long} before"))), ("b.md", &post("B", "other"))], "");
    let forms = || {
        [
            Req::get("/a/"),
            Req::get("/a/?utm_source=x&y=1"),
            Req::get("/a/").field("host", "other.example"),
            Req::get("/a/").field("accept", "text/markdown"),
            Req::get("/a/index.md"),
        ]
    };
    let coded = || Req::get("/a/").field("accept-encoding", "gzip");
    for _ in 0..2 {
        for request in forms().into_iter().chain([coded()]) {
            site.request(request).await.status(200);
        }
        site.get("/b/").await.body_contains("other");
    }
    site.server.settle_codings();
    let old = site.get("/a/").await.value("etag").expect("a tag");
    write(folder.path(), "a.md", &post("A", &format!("{long} after")));
    until(&site, || Req::get("/a/"), |answer| answer.text().contains("after")).await;
    site.request(Req::get("/a/").field("if-none-match", old)).await.status(200).body_contains("after");
    for request in forms() {
        let answer = site.request(request).await.status(200);
        assert!(answer.text().contains("after") && !answer.text().contains("before"), "{answer:?}");
    }
    let new = site.get("/a/").await.value("etag").expect("a tag");
    let tag = site.request(coded()).await.status(200).value("etag").expect("a tag");
    assert!(tag.starts_with(new.trim_end_matches('"')), "{tag} is a form of {new}");
    site.get("/b/").await.body_contains("other").cache_status("hit");
    site.get("/tags/").await.status(200);
}

/// What was not there is looked for again when it comes, and what is gone is gone; the slash too.
#[tokio::test]
async fn posts_come_and_go() {
    let (folder, site) = site_of(&[("a.md", &post("A", "text"))], "");
    for target in ["/new/", "/new", "/new/index.md", "/elsewhere/"] {
        for status in ["fwd=uri-miss; stored", "hit"] {
            site.get(target).await.status(404).cache_status(status);
        }
    }
    write(folder.path(), "new.md", &post("New", "it is here"));
    until(&site, || Req::get("/new/"), |answer| answer.code == 200).await.body_contains("it is here");
    site.get("/new").await.status(301).field("location", "/new/");
    site.get("/new/index.md").await.status(200).body_contains("it is here");
    // The answer for what does not exist lists the newest posts.
    site.get("/elsewhere/").await.status(404).body_contains("/new/");
    fs::remove_file(folder.path().join("blog/new.md")).expect("removed");
    until(&site, || Req::get("/new/"), |answer| answer.code == 404).await;
    site.get("/new").await.status(404);
}

/// RFC 9110 §12.5.1: what a client weighs highest. All browsers share one stored page.
#[tokio::test]
async fn a_post_is_markdown_for_whoever_prefers_that_and_one_page_for_all_browsers() {
    let text = "Some *words*, [a link](b.md#part) and ![a cat](cat.png).";
    let files = [("posts/a.md", post("A title", text)), ("posts/b.md", post("B", "other")), ("posts/cat.png", "png".to_owned())];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let (_folder, site) = site_of(&files, "");
    let ask = |accept: &str| site.request(Req::get("/a/").field("accept", accept));
    ask(CHROME).await.field_contains("content-type", "text/html").cache_status("fwd=uri-miss; stored").field_contains("vary", "accept");
    for accept in [
        FIREFOX,
        "*/*",
        "text/html",
        "application/json",
        "text/html, text/markdown;q=0.9",
        "text/markdown;q=0, */*",
        "text/markdown;q=0.1, text/*",
    ] {
        ask(accept).await.field_contains("content-type", "text/html").cache_status("hit");
    }
    site.get("/a/").await.field_contains("content-type", "text/html").cache_status("hit");
    let expected = "# A title\n\nSome *words*, [a link](http://blog.example/b/#part) and ![a cat](http://blog.example/posts/cat.png).\n";
    let first = ask("text/markdown").await.body(expected).cache_status("fwd=uri-miss; stored").field_contains("vary", "accept");
    assert_ne!(first.value("etag"), site.get("/a/").await.value("etag"));
    for accept in ["text/markdown, text/html, */*", "text/markdown, */*;q=0.1", "text/html;q=0.5, text/markdown;q=0.9"] {
        ask(accept).await.body(expected).field("content-location", "/a/index.md").cache_status("hit");
    }
    site.get("/a/index.md").await.status(200).field("content-type", "text/markdown; charset=utf-8").body(expected);
    // A list has one form alone.
    let list = site.request(Req::get("/").field("accept", "text/markdown")).await.field_contains("content-type", "text/html");
    assert!(list.value("vary").is_none_or(|vary| !vary.split(',').any(|name| name.trim().eq_ignore_ascii_case("accept"))), "{list:?}");
    site.get("/index.md").await.status(404);
}

/// A query means nothing to a blog, so it makes no second copy; scripts find it in the reader's address, through a redirect too.
#[tokio::test]
async fn a_query_makes_no_second_page() {
    let (_folder, site) = site_of(&[("a.md", &post("A", "text"))], "");
    site.get("/a/").await.cache_status("fwd=uri-miss; stored");
    site.get("/a/?x=1").await.status(200).cache_status("hit");
    site.get("/a?x=1&y").await.status(301).field("location", "/a/?x=1&y");
    site.get("/a?z=2").await.status(301).field("location", "/a/?z=2").cache_status("hit");
}

/// `_redirects` and `_headers` are those of a folder; a change of them is a change of every page.
#[tokio::test]
async fn an_authors_own_rules_hold() {
    let files = [
        ("a.md", post("A", "text")),
        ("b.md", "---\ntitle: B\naliases: [/former/, /older.html]\n---\ntext\n".to_owned()),
        ("404.html", "nothing of this name".to_owned()),
        ("_redirects", "/old /a/ 302\n/b /a/\n/gone 410\n/forced /a/ 302!\n/moved/* https://elsewhere.example/:splat\n".to_owned()),
        ("_headers", "/a/*\n  X-Frame-Options: DENY\n  Cache-Control: public, max-age=60\n".to_owned()),
    ];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let (folder, site) = site_of(&files, "");
    for _ in 0..2 {
        site.get("/old").await.status(302).field("location", "/a/");
        site.get("/gone").await.status(410);
        site.get("/moved/x/y").await.status(301).field("location", "https://elsewhere.example/x/y");
        // What is there goes before a rule.
        site.get("/b/").await.status(200);
        site.get("/former/").await.status(301).field("location", "/b/");
        site.get("/former").await.status(301);
        site.get("/older.html").await.status(301).field("location", "/b/");
        site.get("/a/").await.field("x-frame-options", "DENY").field("cache-control", "public, max-age=60");
        site.get("/nothing").await.status(404).body("nothing of this name");
    }
    for target in ["/_redirects", "/_headers"] {
        site.get(target).await.status(404);
    }
    write(folder.path(), "_redirects", "/old /b/ 302\n");
    until(&site, || Req::get("/old"), |answer| answer.value("location").as_deref() == Some("/b/")).await;
    site.get("/moved/x").await.status(404);
    write(folder.path(), "_headers", "/a/*\n  X-Frame-Options: SAMEORIGIN\n");
    until(&site, || Req::get("/a/"), |answer| answer.value("x-frame-options").as_deref() == Some("SAMEORIGIN"))
        .await
        .field("cache-control", VALIDATED);
}

/// Drafts, and posts whose time has not come, are at no address; a wrong link is the usual 404, and nothing of it is stored.
#[tokio::test]
async fn drafts_are_found_by_nobody() {
    let draft = "---\ntitle: Secret plans\ndraft: true\n---\ntext\n";
    let later = "---\ntitle: Later\ndate: 2999-01-01\n---\ntext\n";
    let files = [("plans.md", draft), ("later.md", later), ("_drafts/idea.md", "# Idea\n"), ("a.md", "# A\n")];
    let (_folder, site) = site_of(&files, "[server]\nadmin_token_file = \"FOLDER/state/token\"");
    let guess = "/preview/00000000000000000000000000000000/plans/";
    for target in ["/plans/", "/later/", "/idea/", "/_drafts/idea/", "/plans/index.md", "/preview/", "/preview/plans/", guess] {
        let answer = site.get(target).await.status(404);
        assert!(!answer.text().contains("Secret") && !answer.text().contains("Later"), "{answer:?}");
    }
    for _ in 0..2 {
        site.get(guess).await.status(404).field("cache-control", "private, no-store").no_cache_status("stored").no_cache_status("hit");
    }
    for target in ["/", "/feed.xml", "/sitemap.xml", "/tags/"] {
        assert!(!site.get(target).await.text().contains("Secret plans"), "{target}");
    }
    let secret = site.folder().join("state/preview-secret");
    assert!(secret.is_file(), "the secret of the links lies beside the token of the admin API");
}

/// A blog that only its author sees shows its drafts with `drafts = true`.
#[tokio::test]
async fn drafts_can_be_shown_with_the_others() {
    let draft = "---\ntitle: Secret plans\ndraft: true\n---\ntext\n";
    let (_folder, site) = site_of(&[("plans.md", draft), ("a.md", "# A\n")], "[blog]\ndrafts = true");
    site.get("/plans/").await.status(200).body_contains("Secret plans");
    site.get("/").await.body_contains("Secret plans");
}

fn as_author(target: &str) -> Req {
    Req::get(target).field("host", "localhost:8080")
}

const SCRIPT: &str = "<script src=\"/.seawall/reload.js\"";

/// An author's own browser asks by a name of loopback. Nobody else's page has the script: the host is in the key.
#[tokio::test]
async fn a_page_reloads_itself_for_its_author_alone() {
    let (folder, site) = site_of(&[("a.md", &post("A", "before")), ("b.md", &post("B", "other"))], "");
    for host in ["localhost:8080", "127.0.0.1", "[::1]:1"] {
        for _ in 0..2 {
            site.request(Req::get("/a/").field("host", host)).await.status(200).body_contains(SCRIPT);
        }
    }
    for _ in 0..2 {
        let page = site.get("/a/").await.status(200);
        assert!(!page.text().contains("/.seawall/"), "{page:?}");
    }
    site.get("/.seawall/reload.js").await.status(404);
    site.get("/.seawall/reload?/a/").await.status(404);
    site.request(as_author("/.seawall/reload.js"))
        .await
        .status(200)
        .field_contains("content-type", "javascript")
        .field("cache-control", "no-store");

    let page = site.request(as_author("/a/")).await.text();
    let number = page.split("data-page=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a number").to_owned();
    let mut events = site.client().await;
    events.send(as_author("/.seawall/reload?/a/")).await;
    events.read_head().await.status(200).field("content-type", "text/event-stream").field("cache-control", "no-store");
    let said = events.read_body_chunk().await.expect("an event");
    assert!(
        String::from_utf8_lossy(&said).contains(&format!("data: {number}\n\n")),
        "{said:?}: the page that it has is the one that there is"
    );
    let mut others = site.client().await;
    others.send(as_author("/.seawall/reload?/b/")).await;
    others.read_head().await.status(200);
    others.read_body_chunk().await.expect("an event");

    write(folder.path(), "a.md", &post("A", "after"));
    let said = events.read_body_chunk().await.expect("an event");
    assert!(!String::from_utf8_lossy(&said).contains(&number), "{said:?}");
    // Whoever is told finds the new page.
    site.request(as_author("/a/")).await.body_contains("after");
    // The server stops without waiting for the streams, and they end.
    let started = Instant::now();
    drop(others);
    tokio::task::spawn_blocking(move || site.stop(secs(30))).await.expect("stopped");
    assert!(events.read_body_chunk().await.is_none());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Where others than people on this machine can ask, no page has the script, whatever `Host` they send.
#[tokio::test]
async fn no_page_reloads_itself_where_the_public_may_ask() {
    for settings in [
        "hosts = [\"blog.example\", \"localhost\"]",
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]",
        "[server]\nlisten = [\"127.0.0.1:0\", \"0.0.0.0:0\"]",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "a.md", "# A\n");
        let source = format!("source = \"{}\"", folder.path().join("blog").display());
        let text = match settings.strip_prefix("hosts") {
            Some(_) => format!("[[site]]\n{source}\n{settings}"),
            None => format!("{source}\n{settings}"),
        };
        let site = Site::start(&text);
        let page = site.request(as_author("/a/")).await.status(200);
        assert!(!page.text().contains("/.seawall/"), "{settings}");
        site.request(as_author("/.seawall/reload?/a/")).await.status(404);
    }
}

/// Streams are bounded, and another site in the same browser cannot take their places.
#[tokio::test]
async fn streams_of_events_are_bounded() {
    let (_folder, site) = site_of(&[("a.md", "# A\n")], "");
    site.request(as_author("/.seawall/reload?/a/").field("sec-fetch-site", "cross-site")).await.status(204);
    let mut streams = Vec::new();
    for _ in 0..32 {
        let mut client = site.client().await;
        client.send(as_author("/.seawall/reload?/a/")).await;
        client.read_head().await.status(200);
        streams.push(client);
    }
    // After 204, a browser does not ask again.
    site.request(as_author("/.seawall/reload?/a/")).await.status(204);
    // The others are served.
    site.request(as_author("/a/")).await.status(200);
}

/// A policy of the author's own that forbids scripts is obeyed: there is nothing to complain of in the browser.
#[tokio::test]
async fn an_authors_policy_may_forbid_the_script() {
    let (_folder, site) =
        site_of(&[("a.md", "# A\n"), ("_headers", "/*\n  Content-Security-Policy: default-src 'none'; style-src 'self'\n")], "");
    let page = site.request(as_author("/a/")).await.status(200);
    assert!(!page.text().contains("/.seawall/"), "{page:?}");
}
