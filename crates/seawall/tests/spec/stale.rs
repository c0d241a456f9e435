//! Stale responses: RFC 5861 (stale-while-revalidate, stale-if-error); RFC 9111 §4.2.4, §5.2.2.2.

use testkit::{Gate, Req, get, not_modified, ok, post, raw, secs, status};

use crate::site::{site, site_with};

/// RFC 5861 §3: the stale response at once, and one request behind it.
#[tokio::test]
async fn stale_while_revalidate_serves_and_refreshes_once() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10, stale-while-revalidate=30"));
    site.get("/post").await.body("v1");

    site.clock.advance(secs(15));
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("v2").field("cache-control", "max-age=10").gate(&gate));
    for _ in 0..3 {
        site.get("/post").await.status(200).body("v1").field("age", "15").cache_status("hit; ttl=-5").x_cache("UPDATING");
    }
    gate.arrived().await;
    assert_eq!(origin.count("/post"), 2);
    gate.open();
    // Whoever cannot take the stale one waits for the refresh that is under way.
    site.request(Req::get("/post").field("cache-control", "max-age=5")).await.body("v2");
    site.get("/post").await.body("v2").x_cache("HIT");
    assert_eq!(origin.count("/post"), 2);
}

/// RFC 5861 §3: not beyond its window.
#[tokio::test]
async fn after_the_window_the_client_waits_for_the_origin() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10, stale-while-revalidate=30"));
    site.get("/post").await;
    site.clock.advance(secs(40));
    origin.on(get("/post")).reply(ok("v2").field("cache-control", "max-age=10"));
    site.get("/post").await.body("v2").cache_status("fwd=stale");
}

/// The window may come from the settings where the origin gives none.
#[tokio::test]
async fn a_sites_own_window_counts_where_the_origin_has_none() {
    let (origin, site) = site_with("[cache]\nstale_while_revalidate = \"1h\"").await;
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10").field("etag", "\"a\""));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified());
    site.get("/post").await;
    site.clock.advance(secs(3_000));
    site.get("/post").await.body("v1").x_cache("UPDATING");
    origin.until_count("/post", 2).await;
}

/// The fourth promise: the blog stays readable when the origin is down, and writing says honestly that it is.
#[tokio::test]
async fn a_killed_origin_leaves_its_pages_readable() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10"));
    site.get("/post").await.body("v1");

    origin.kill();
    site.clock.advance(secs(3_600));
    site.get("/post")
        .await
        .status(200)
        .body("v1")
        .field("age", "3600")
        .cache_status("fwd=stale; detail=connection_refused")
        .x_cache("STALE");
    // It is known to be down now, so nobody waits for a second refusal.
    site.get("/post").await.status(200).body("v1").cache_status("hit; ttl=-3590").x_cache("STALE");
    site.request(Req::post("/comment").body("hello")).await.status(503).has_field("retry-after");

    origin.revive();
    origin.on(get("/post")).reply(ok("v2").field("cache-control", "max-age=10"));
    site.clock.advance(secs(60));
    site.get("/post").await.status(200).body("v2").cache_status("fwd=stale; fwd-status=200").x_cache("EXPIRED");
    site.get("/post").await.body("v2").x_cache("HIT");
}

/// RFC 5861 §4: an origin that answers with 500, 502, 503 or 504 has failed too.
#[tokio::test]
async fn a_server_error_is_answered_with_what_is_stored() {
    let (origin, site) = site().await;
    for code in [500, 502, 503, 504] {
        let target = format!("/{code}");
        origin.on(get(&target)).reply(ok("text").field("cache-control", "max-age=10, stale-if-error=60"));
        site.get(&target).await.body("text");
        origin.on(get(&target)).reply(status(code).body("broken"));
        site.clock.advance(secs(30));
        site.get(&target).await.status(200).body("text").x_cache("STALE");
        site.clock.advance(secs(60));
        site.get(&target).await.status(code).body("broken");
        site.clock.advance(secs(60));
    }
}

/// RFC 5861 §4: the response's own limit goes before ours; a site may also have none.
#[tokio::test]
async fn stale_if_error_ends() {
    for (settings, fields, seconds) in [
        ("", "max-age=10, stale-if-error=30", 40),
        ("[cache]\nstale_if_error = \"60s\"", "max-age=10, stale-if-error=30", 40),
        ("[cache]\nstale_if_error = \"30s\"", "max-age=10", 40),
        ("[cache]\nstale_if_error = \"0s\"", "max-age=10", 10),
    ] {
        let (origin, site) = site_with(settings).await;
        origin.on(get("/post")).reply(ok("text").field("cache-control", fields));
        site.get("/post").await;
        origin.kill();
        site.clock.advance(secs(seconds - 1));
        site.get("/post").await.status(200).body("text");
        site.clock.advance(secs(1));
        site.get("/post").await.status(502);
    }
}

/// RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.8: an origin may forbid what is stale, whatever happens.
#[tokio::test]
async fn what_must_be_revalidated_is_never_stale() {
    let (origin, site) = site().await;
    let rows = ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=10"];
    for (number, directive) in rows.iter().enumerate() {
        let fields = format!("max-age=10, {directive}, stale-while-revalidate=600, stale-if-error=600");
        origin.on(get(&format!("/{number}"))).reply(ok("text").field("cache-control", fields));
        site.get(&format!("/{number}")).await.body("text");
    }
    origin.kill();
    site.clock.advance(secs(10));
    for (number, directive) in rows.iter().enumerate() {
        let answer = site.get(&format!("/{number}")).await;
        assert_eq!(answer.code, 502, "{directive}: {answer}");
    }
}

/// An origin that accepts and says nothing is down as well.
#[tokio::test]
async fn a_silent_origin_is_answered_for() {
    let (origin, site) = site_with("[origin]\nfirst_byte_timeout = \"200ms\"").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    site.get("/post").await;
    origin.accept_but_never_answer();
    site.clock.advance(secs(10));
    site.get("/post").await.status(200).body("text").cache_status("detail=connection_read_timeout").x_cache("STALE");
    site.get("/other").await.status(504);
}

/// Whoever finds content over which the origin hangs up must not keep everybody's pages old with it, or away.
#[tokio::test]
async fn an_origin_that_hangs_up_over_content_is_not_down() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10"));
    origin.on(get("/new")).reply(ok("new"));
    origin.on(post("/form")).reply(raw(""));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post")).reply(ok("v2").field("cache-control", "max-age=10"));
    for _ in 0..5 {
        site.request(Req::post("/form").body("hello")).await.status(502);
    }
    site.get("/post").await.body("v2").x_cache("EXPIRED");
    site.get("/new").await.status(200).body("new");
}

/// A stale response answers conditions and ranges like a fresh one.
#[tokio::test]
async fn a_stale_response_still_answers_conditions_and_ranges() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("0123456789").field("cache-control", "max-age=10").field("etag", "\"a\""));
    site.get("/post").await;
    origin.kill();
    site.clock.advance(secs(10));
    site.request(Req::get("/post").field("if-none-match", "\"a\"")).await.status(304).x_cache("STALE");
    site.request(Req::get("/post").field("range", "bytes=2-3")).await.status(206).body("23").x_cache("STALE");
    site.request(Req::head("/post")).await.status(200).field("content-length", "10").x_cache("STALE");
}

/// A response that breaks off is passed on as broken and never stored; the stale copy stays for the next.
#[tokio::test]
async fn a_response_that_breaks_off_is_not_stored() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("whole").field("cache-control", "max-age=10"));
    site.get("/post").await.body("whole");
    site.clock.advance(secs(10));
    origin.on(get("/post")).once().reply(ok("a longer page").field("cache-control", "max-age=10").break_off_after(5));
    site.get("/post").await.status(200).truncated();
    origin.kill();
    site.get("/post").await.status(200).body("whole").x_cache("STALE");
}

/// POST is never repeated and never answered from the store.
#[tokio::test]
async fn a_post_to_a_page_that_is_stored_reaches_the_origin() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    origin.on(post("/post")).reply(status(403).body("no"));
    site.get("/post").await;
    site.request(Req::post("/post").body("a=1")).await.status(403).body("no");
    assert_eq!(origin.last("/post").text(), "a=1");
}
