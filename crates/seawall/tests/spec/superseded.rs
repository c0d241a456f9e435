//! What the origin has said of a page ends what was stored of it before, also where the answer itself is not kept (RFC 9111 §4.3.3: a cache
//! uses what it was sent instead of what it has).

use testkit::{Origin, Reply, Req, any, get, ok, secs, status};

use crate::site::{Site, site};

/// Returns a page that is stale after a minute, and may stand in for a failing origin for days.
fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "max-age=60").field("etag", "\"a\"")
}

/// Returns an origin whose page is stored and stale.
async fn stale() -> (Origin, Site) {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("old"));
    site.get("/post").await.body("old");
    site.clock.advance(secs(61));
    (origin, site)
}

fn answers() -> Vec<(&'static str, Reply)> {
    let no_store = |field: &str| ok("mine").field("cache-control", field);
    vec![
        ("404", status(404).field("cache-control", "no-store")),
        ("410", status(410).field("cache-control", "no-store")),
        ("302", status(302).field("location", "/elsewhere")),
        ("301", status(301).field("location", "/elsewhere").field("cache-control", "no-store")),
        ("no-store", no_store("no-store")),
        ("private", no_store("private")),
        // It cannot be stored, as no request could ever be answered with it.
        ("vary", no_store("max-age=60").field("vary", "*")),
    ]
}

#[tokio::test]
async fn an_answer_that_is_not_kept_ends_the_stale_copy() {
    for (case, reply) in answers() {
        let (origin, site) = stale().await;
        origin.on(get("/post")).reply(reply);
        let seen = site.get("/post").await;
        origin.kill();
        // Nothing of the former page comes back.
        site.get("/post").await.status(502);
        assert_ne!(seen.text(), "old", "{case}");
    }
}

#[tokio::test]
async fn an_answer_to_head_that_is_not_kept_ends_the_stale_copy() {
    for (case, reply) in answers() {
        let (origin, site) = stale().await;
        origin.on(any("/post")).reply(reply);
        site.request(Req::head("/post")).await;
        origin.kill();
        let answer = site.get("/post").await;
        assert_eq!((answer.value("x-cache").as_deref(), &*answer.text() == "old"), (Some("MISS"), false), "{case}");
    }
}

/// A page that was away may be back: the copy of after that is not ended by what was said before.
#[tokio::test]
async fn a_late_answer_ends_nothing_that_was_fetched_after_it() {
    let (origin, site) = stale().await;
    let gate = testkit::Gate::new();
    origin.on(get("/post")).once().reply(status(404).field("cache-control", "no-store").gate(&gate));
    let mut early = site.client().await;
    early.send(Req::get("/post")).await;
    gate.arrived().await;
    site.purge(&store::PurgeTarget::All, store::Hardness::Soft);
    origin.on(get("/post")).reply(page("new"));
    site.get("/post").await.body("new");
    gate.open();
    early.read_answer().await.status(404);
    site.get("/post").await.body("new").x_cache("HIT");
    site.clock.advance(secs(61));
    origin.kill();
    site.get("/post").await.body("new");
}

/// An error of the origin's own, what a request may have brought on itself, and a page that only sets a cookie say nothing of the page.
#[tokio::test]
async fn what_says_nothing_of_the_page_ends_nothing() {
    for reply in [
        status(500),
        status(503),
        status(429),
        status(403).field("cache-control", "no-store"),
        ok("new").field("cache-control", "max-age=60").field("set-cookie", "a=b"),
    ] {
        let (origin, site) = stale().await;
        origin.on(get("/post")).reply(reply);
        site.get("/post").await;
        origin.kill();
        site.get("/post").await.status(200).body("old");
    }
}

/// What is answered to somebody with a cookie is theirs alone.
#[tokio::test]
async fn an_answer_to_somebody_ends_nothing() {
    for fields in [("cookie", "session=1"), ("authorization", "Basic YTpi")] {
        let (origin, site) = stale().await;
        origin.on(get("/post")).reply(status(404).field("cache-control", "no-store"));
        site.request(Req::get("/post").field(fields.0, fields.1)).await.status(404);
        origin.kill();
        site.get("/post").await.status(200).body("old");
    }
}

/// A password that is asked of everybody, where the origin sees nothing of a request but what all have in common.
#[tokio::test]
async fn where_requests_are_all_alike_a_refusal_is_about_the_page() {
    for code in [401, 403] {
        let (origin, site) = crate::site::site_with("kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false\n").await;
        origin.on(get("/post")).reply(page("old"));
        site.get("/post").await.body("old");
        site.purge(&store::PurgeTarget::All, store::Hardness::Soft);
        origin.on(get("/post")).reply(status(code).field("cache-control", "no-store"));
        site.get("/post").await.status(code);
        origin.kill();
        site.get("/post").await.status(502);
    }
}
