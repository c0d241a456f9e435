//! Invalidation by unsafe methods: RFC 9111 §4.4; RFC 9110 §9.2.1.

use store::{Hardness, PurgeTarget};
use testkit::{Req, get, method, ok, post, status};

use crate::site::{HOST, Site, site};

fn page(text: &'static str) -> testkit::Reply {
    ok(text).field("cache-control", "max-age=600")
}

async fn stored(site: &Site, target: &str) {
    site.get(target).await.status(200);
    site.get(target).await.cache_status("hit");
}

/// A success or a redirection of an unsafe method invalidates its target.
#[tokio::test]
async fn an_unsafe_method_invalidates_its_target() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    for (name, code) in [("POST", 200), ("PUT", 204), ("DELETE", 200), ("PATCH", 303), ("FOO", 200)] {
        stored(&site, "/post").await;
        origin.on(method(name, "/post")).reply(status(code));
        site.request(Req::new(name, "/post")).await.status(code).cache_status("fwd=method");
        site.get("/post").await.body("text").cache_status("fwd=uri-miss");
    }
}

/// An error changes nothing, and neither does a safe method.
#[tokio::test]
async fn errors_and_safe_methods_invalidate_nothing() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    stored(&site, "/post").await;
    for (name, code) in [("POST", 400), ("POST", 404), ("DELETE", 500), ("OPTIONS", 200)] {
        origin.on(method(name, "/post")).reply(status(code));
        site.request(Req::new(name, "/post")).await.status(code);
        site.get("/post").await.cache_status("hit");
    }
}

/// Location and Content-Location are invalidated too, on the same origin alone.
#[tokio::test]
async fn what_the_response_points_to_is_invalidated_on_the_same_host() {
    let (origin, site) = site().await;
    for target in ["/list", "/new", "/other", "/kept"] {
        origin.on(get(target)).reply(page("text"));
        stored(&site, target).await;
    }
    let created = status(201).field("location", format!("http://{HOST}/new")).field("content-location", "other");
    origin.on(post("/list")).reply(created);
    site.request(Req::post("/list").body("text")).await.status(201);
    for target in ["/list", "/new", "/other"] {
        site.get(target).await.cache_status("fwd=uri-miss");
    }
    site.get("/kept").await.cache_status("hit");

    origin.on(post("/list")).reply(status(201).field("location", "http://elsewhere.example/kept"));
    site.request(Req::post("/list").body("text")).await.status(201);
    site.get("/kept").await.cache_status("hit");
}

/// All variants and all forms of the query go: a comment may show in each.
#[tokio::test]
async fn every_variant_and_query_of_the_target_goes() {
    let (origin, site) = site().await;
    origin.on(get("/post").any_query()).reply(page("text").field("vary", "x-theme"));
    let dark = || Req::get("/post").field("x-theme", "dark");
    stored(&site, "/post").await;
    stored(&site, "/post?page=2").await;
    site.request(dark()).await;
    origin.on(post("/post")).reply(status(200));
    site.request(Req::post("/post")).await.status(200);
    for answer in [site.get("/post").await, site.get("/post?page=2").await, site.request(dark()).await] {
        answer.no_cache_status("hit");
    }
}

/// RFC 9110 §9.3.3: the answer to a POST that says that it is the page, and for how long, answers GET and HEAD.
#[tokio::test]
async fn the_answer_to_a_post_may_be_the_page() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("old"));
    stored(&site, "/post").await;
    origin.on(post("/post")).reply(page("new").field("content-location", "/post"));
    site.request(Req::post("/post").body("text")).await.status(200).body("new").cache_status("fwd=method; fwd-status=200; stored");
    site.get("/post").await.body("new").cache_status("hit");
    site.request(Req::head("/post")).await.status(200).cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

/// A purge while the POST is under way covers its answer, one of something else does not.
#[tokio::test]
async fn a_purge_during_a_post_covers_its_answer() {
    for (path, outcome) in [("/post", "fwd=uri-miss"), ("/other", "hit")] {
        let (origin, site) = site().await;
        let gate = testkit::Gate::new();
        origin.on(get("/post")).reply(page("newer"));
        origin.on(post("/post")).reply(page("new").field("content-location", "/post").gate(&gate));
        let mut client = site.client().await;
        client.send(Req::post("/post").body("text")).await;
        gate.arrived().await;
        site.purge(&PurgeTarget::Url { site: 0, url: format!("{HOST}{path}").into_bytes() }, Hardness::Hard);
        gate.open();
        client.read_answer().await.body("new");
        site.get("/post").await.cache_status(outcome);
    }
}

/// Without both, for somebody, or for another page, it is the answer to this request alone.
#[tokio::test]
async fn any_other_answer_to_a_post_is_not() {
    let page = page("new");
    for (reply, cookie) in [
        (page.clone(), None),
        (page.clone().field("content-location", "/other"), None),
        (page.clone().field("content-location", "/post?x"), None),
        (page.clone().field("content-location", "http://elsewhere.example/post"), None),
        (ok("new").field("content-location", "/post").field("last-modified", "Thu, 01 Jan 2015 00:00:00 GMT"), None),
        (ok("new").field("content-location", "/post").field("cache-control", "max-age=0").field("etag", "\"a\""), None),
        (page.clone().field("content-location", "/post").field("set-cookie", "a=1"), None),
        (status(201).field("cache-control", "max-age=600").field("content-location", "/post"), None),
        (page.clone().field("content-location", "/post"), Some("session=1")),
    ] {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply(ok("text"));
        origin.on(post("/post")).reply(reply);
        let request = cookie.into_iter().fold(Req::post("/post").body("text"), |request, cookie| request.field("cookie", cookie));
        site.request(request).await;
        site.get("/post").await.body("text").cache_status("fwd=uri-miss");
    }
}

/// The purge happens before the answer is seen: whoever reads after writing reads the new page.
#[tokio::test]
async fn a_fetch_begun_before_the_change_is_not_reused_after_it() {
    let (origin, site) = site().await;
    let gate = testkit::Gate::new();
    origin.on(get("/post")).reply(page("new"));
    origin.on(get("/post")).once().reply(page("old").gate(&gate));
    let mut slow = site.client().await;
    slow.send(Req::get("/post")).await;
    gate.arrived().await;

    origin.on(post("/post")).reply(status(200));
    site.request(Req::post("/post")).await.status(200);
    gate.open();
    slow.read_answer().await.body("old");
    site.get("/post").await.body("new").no_cache_status("hit");
}

/// Anybody may send unsafe methods, to as many paths as there are: nothing of it may stay behind.
#[tokio::test]
async fn an_invalidation_leaves_nothing_behind() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    stored(&site, "/post").await;
    for n in 0..10 {
        let path = format!("/{n}");
        origin.on(post(&path)).reply(status(200));
        site.request(Req::post(&path)).await.status(200);
    }
    let usage = site.server.usage();
    assert_eq!((usage.purges, usage.invalidations), (0, 0));
    site.get("/post").await.cache_status("hit");
}
