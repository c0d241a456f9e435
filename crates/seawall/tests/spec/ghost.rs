//! The kind `ghost`, before an origin that answers as Ghost 6.65.0 does: what it is asked, and who shares its answers.
//!
//! Which requests pass and what is kept is in `policy/tests/ghost.rs`. The real Ghost is in `tests/ghost`.

use std::time::Duration;

use testkit::{Origin, Req, get, ok, status};

use crate::site::{Site, site_with};

/// The fields that Ghost sends with what it calls private.
const PRIVATE: &str = "no-cache, private, no-store, must-revalidate, max-stale=0, post-check=0, pre-check=0";

async fn ghost() -> (Origin, Site) {
    site_with("kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false").await
}

/// `Origin: ::::` makes any page of a Ghost a 400, a redirect's text depends on `Accept`, and so on: no client's field decides for the others.
#[tokio::test]
async fn a_ghost_is_asked_in_one_form_for_all() {
    let (origin, site) = ghost().await;
    origin.on(get("/")).reply(ok("page").field("cache-control", "public, max-age=0"));
    let mut request = Req::get("/?utm_source=x&page=2").field("cookie", "_ga=1; theme=dark").field("user-agent", "Mozilla/5.0");
    for (name, value) in [
        ("origin", "::::"),
        ("accept", "image/webp,*/*"),
        ("accept-language", "de"),
        ("accept-encoding", "br"),
        ("if-none-match", "W/\"1\""),
        ("range", "bytes=0-0"),
        ("referer", "https://elsewhere.example/"),
        ("x-requested-with", "XMLHttpRequest"),
        ("x-cache-invalidate", "/*"),
        ("x-invented", "1"),
    ] {
        request = request.field(name, value);
    }
    site.request(request).await;
    let seen = origin.last("/");
    let sent: Vec<&str> = seen.fields.iter().map(|(name, _)| name).collect();
    for name in sent {
        let ours =
            ["host", "accept", "accept-encoding", "user-agent", "connection", "via", "forwarded", "range", "if-none-match", "x-request-id"];
        assert!(ours.contains(&name) || name.starts_with("x-forwarded-") || name == "x-real-ip", "{name}");
    }
    assert_eq!(seen.field("accept").as_deref(), Some("*/*"));
    assert!(seen.field("user-agent").is_some_and(|agent| agent.starts_with("Seawall/")), "{seen:?}");
}

/// What a Ghost would answer in another form goes only to those who like that best.
#[tokio::test]
async fn ten_ways_to_accept_a_page_never_mix() {
    let (origin, site) = ghost().await;
    origin.on(get("/post/")).reply_with(|seen| {
        let form = if seen.field("accept").as_deref() == Some("text/markdown") { "# markdown" } else { "<html>" };
        ok(form).field("cache-control", "public, max-age=0").field("vary", "Accept-Encoding")
    });
    let ways = [
        (None, "<html>"),
        (Some("text/markdown"), "# markdown"),
        (Some("text/html,application/xhtml+xml,*/*;q=0.8"), "<html>"),
        (Some("text/markdown, */*;q=0.1"), "# markdown"),
        (Some("text/html, text/markdown;q=0.5"), "<html>"),
        (Some("text/markdown;q=0.9, text/html;q=0.5"), "<html>"),
        (Some("application/activity+json"), "<html>"),
        (Some("application/json"), "<html>"),
        (Some("image/webp"), "<html>"),
        (Some("text/markdown;q=0"), "<html>"),
    ];
    for first in 0..ways.len() {
        for at in 0..ways.len() {
            let (accept, form) = ways[(first + at) % ways.len()];
            let request = accept.into_iter().fold(Req::get("/post/"), |request, accept| request.field("accept", accept));
            site.request(request).await.status(200).body(form);
        }
    }
    // One request for each class, whatever the number of ways.
    assert!(origin.count("/post/") <= 4, "{}", origin.count("/post/"));
}

/// TryGhost/Ghost ships the list of parameters that matter; scripts in the page read the others from the address.
#[tokio::test]
async fn a_reader_who_is_redirected_takes_the_query_along() {
    let (origin, site) = ghost().await;
    let moved = || status(301).field("cache-control", "public, max-age=31536000");
    origin.on(get("/post")).reply(moved().field("location", "/post/"));
    origin.on(get("/away")).reply(moved().field("location", "https://elsewhere.example/"));
    site.get("/post").await.status(301).field("location", "/post/");
    for (target, location) in [
        ("/post?ref=newsletter", "/post/?ref=newsletter"),
        ("/post?ref=another&utm_source=x", "/post/?ref=another&utm_source=x"),
        ("/post", "/post/"),
    ] {
        site.get(target).await.status(301).field("location", location).cache_status("hit");
    }
    // There they are nobody's business.
    site.get("/away?ref=newsletter").await.status(301).field("location", "https://elsewhere.example/");
    assert_eq!(origin.count("/post"), 1);
}

#[tokio::test]
async fn nor_does_a_server_of_any_kind_lose_what_trackers_read() {
    let (origin, site) = site_with("").await;
    origin.on(get("/post")).reply(status(301).field("cache-control", "max-age=60").field("location", "/post/?page=1"));
    site.get("/post?utm_source=x").await.status(301).field("location", "/post/?page=1&utm_source=x");
    site.get("/post?fbclid=1").await.status(301).field("location", "/post/?page=1&fbclid=1").cache_status("hit");
}

/// TryGhost/Ghost#20349: pages are hits, and still each reader's scripts ask the Ghost who they are.
#[tokio::test]
async fn who_nobody_is_is_asked_once() {
    let (origin, site) = ghost().await;
    let member = "/members/api/member/";
    origin.on(get(member)).reply(status(204).field("cache-control", PRIVATE));
    origin.on(get(member).field("cookie", "ghost-members-ssr=1")).reply(ok("{\"name\":\"Ada\"}").field("cache-control", PRIVATE));
    site.get(member).await.status(204).field("cache-control", PRIVATE);
    site.request(Req::get(member).field("cookie", "ghost-members-ssr=1")).await.status(200).body("{\"name\":\"Ada\"}");
    site.get(member).await.status(204).cache_status("hit").field("cache-control", PRIVATE);
    assert_eq!(origin.count(member), 2);
    // A token that says who asks is as good once only.
    origin.on(get("/members/api/integrity-token/")).reply_with({
        let issued = std::sync::atomic::AtomicUsize::new(0);
        move |_| ok(format!("token {}", issued.fetch_add(1, std::sync::atomic::Ordering::Relaxed))).field("cache-control", PRIVATE)
    });
    site.get("/members/api/integrity-token/").await.body("token 0");
    site.get("/members/api/integrity-token/").await.body("token 1");
}

/// With a Ghost that hangs, a page past its hold is served at once.
#[tokio::test]
async fn a_page_past_its_hold_waits_for_nobody() {
    let (origin, site) = site_with("kind = \"ghost\"\n[cache]\nhold = \"2s\"\ntwo_visitor_proof = false").await;
    origin.on(get("/")).reply(ok("page").field("cache-control", "public, max-age=0"));
    site.get("/").await.body("page");
    origin.accept_but_never_answer();
    site.clock.advance(Duration::from_secs(3));
    site.get("/").await.status(200).body("page");
}

/// TryGhost/Ghost#27942: a cookie that ends somebody's session is never replayed, and a member never gets what is for nobody.
#[tokio::test]
async fn a_members_answer_is_the_members() {
    let (origin, site) = ghost().await;
    origin.on(get("/")).reply(ok("page").field("cache-control", "public, max-age=0"));
    origin
        .on(get("/").field("cookie", "ghost-members-ssr=spoilt"))
        .reply(ok("page").field("cache-control", "public, max-age=0").field("set-cookie", "ghost-members-ssr=; path=/"));
    origin.on(get("/").field("cookie", "ghost-members-ssr=1")).reply(ok("for Ada").field("cache-control", PRIVATE));
    let with = |cookie: &str| Req::get("/").field("cookie", cookie);
    for _ in 0..2 {
        site.request(with("ghost-members-ssr=spoilt")).await.body("page").field("set-cookie", "ghost-members-ssr=; path=/");
        site.get("/").await.body("page").no_field("set-cookie");
        site.request(with("ghost-members-ssr=1")).await.body("for Ada");
    }
}

/// Readers never notice that a Ghost is away for an hour; who wants the editor is told.
#[tokio::test]
async fn a_ghost_may_be_away_for_an_hour() {
    let (origin, site) = site_with("kind = \"ghost\"\n[cache]\nhold = \"10m\"\ntwo_visitor_proof = false").await;
    let public = |text: &'static str| ok(text).field("cache-control", "public, max-age=0");
    for path in ["/", "/post/", "/rss/"] {
        origin.on(get(path)).reply(public("before"));
        site.get(path).await.body("before");
    }
    origin.on(get("/members/api/member/")).reply(status(204).field("cache-control", PRIVATE));
    site.get("/members/api/member/").await.status(204);
    origin.on(get("/ghost/")).reply(ok("editor").field("cache-control", PRIVATE));
    origin.kill();
    for _ in 0..6 {
        site.clock.advance(Duration::from_mins(10));
        for path in ["/", "/post/", "/rss/"] {
            site.get(path).await.status(200).body("before");
        }
        site.get("/members/api/member/").await.status(204);
        site.get("/ghost/").await.status(502).body_contains("does not answer right now");
    }
    origin.revive();
    for path in ["/", "/post/", "/rss/"] {
        origin.on(get(path)).reply(public("after"));
    }
    site.get("/ghost/").await.status(200).body("editor");
}
