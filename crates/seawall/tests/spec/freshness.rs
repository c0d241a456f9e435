//! Freshness: RFC 9111 §3 (storing), §4.2 (lifetime and age), §5.1 (Age), §5.3 (Expires).

use testkit::{get, ok, secs, status};

use crate::site::{site, site_with};

/// §4.2: fresh as long as the lifetime is greater than the age.
#[tokio::test]
async fn max_age_is_the_lifetime() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10"));
    site.get("/post").await.status(200).body("v1").cache_status("seawall; fwd=uri-miss; fwd-status=200; stored").x_cache("MISS");

    site.clock.advance(secs(9));
    site.get("/post").await.status(200).body("v1").field("age", "9").cache_status("hit; ttl=1").x_cache("HIT");

    origin.on(get("/post")).reply(ok("v2").field("cache-control", "max-age=10"));
    site.clock.advance(secs(1));
    site.get("/post").await.status(200).body("v2").cache_status("fwd=stale; fwd-status=200; stored").x_cache("EXPIRED");
    site.get("/post").await.body("v2").field("age", "0").x_cache("HIT");
    assert_eq!(origin.count("/post"), 2);
}

/// §4.2.1: what counts when several fields say how long. Each row is fresh for ten seconds.
#[tokio::test]
async fn the_lifetime_is_the_first_that_is_given() {
    let (origin, site) = site().await;
    let date = site.clock.http_date();
    let in_ten = site.clock.http_date_in(secs(10));
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("/max-age", &[("cache-control", "max-age=10")]),
        ("/s-maxage", &[("cache-control", "max-age=3, s-maxage=10")]),
        ("/s-maxage-lower", &[("cache-control", "s-maxage=10, max-age=300")]),
        ("/two-lines", &[("cache-control", "public"), ("cache-control", "max-age=10")]),
        ("/capitals", &[("cache-control", "Max-Age=10")]),
        ("/expires", &[("expires", &in_ten), ("date", &date)]),
        ("/max-age-beats-expires", &[("cache-control", "max-age=10"), ("expires", &date), ("date", &date)]),
        // §4.2.3: what a cache nearer the origin has spent of it is gone.
        ("/age", &[("cache-control", "max-age=30"), ("age", "20")]),
        // §4.2.2: a tenth of the time since it was modified, here 100 seconds.
        ("/heuristic", &[("last-modified", "Wed, 31 Dec 2025 23:58:20 GMT"), ("date", &date)]),
        ("/status-404", &[("x-status", "404"), ("cache-control", "max-age=10")]),
        ("/status-299", &[("x-status", "299"), ("cache-control", "max-age=10")]),
    ];
    for (target, fields) in rows {
        let code = fields.iter().find(|(name, _)| *name == "x-status").map_or(200, |(_, code)| code.parse().expect("a code"));
        let reply = fields.iter().fold(status(code).body("text"), |reply, (name, value)| reply.field(name, *value));
        origin.on(get(target)).reply(reply);
        site.get(target).await.cache_status("fwd=uri-miss; stored");
    }
    site.clock.advance(secs(9));
    for (target, _) in rows {
        site.get(target).await.cache_status("hit; ttl=1");
    }
    site.clock.advance(secs(1));
    for (target, _) in rows {
        site.get(target).await.cache_status("fwd=stale");
        assert_eq!(origin.count(target), 2, "{target}");
    }
}

/// §4.2.1, §5.3: what is malformed, repeated or in the past means stale, never "some time".
#[tokio::test]
async fn what_is_not_a_lifetime_is_none() {
    let (origin, site) = site().await;
    let date = site.clock.http_date();
    let in_ten = site.clock.http_date_in(secs(10));
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("/zero", &[("cache-control", "max-age=0")]),
        ("/negative", &[("cache-control", "max-age=-10")]),
        ("/text", &[("cache-control", "max-age=ten")]),
        ("/expires-zero", &[("expires", "0")]),
        ("/expires-now", &[("expires", &date), ("date", &date)]),
        ("/expires-twice", &[("expires", &in_ten), ("expires", &date), ("date", &date)]),
        ("/no-cache", &[("cache-control", "max-age=10, no-cache")]),
        ("/old-already", &[("cache-control", "max-age=10"), ("age", "10")]),
    ];
    for (target, fields) in rows {
        let reply = fields.iter().fold(ok("text").field("etag", "\"a\""), |reply, (name, value)| reply.field(name, *value));
        origin.on(get(target)).reply(reply);
        site.get(target).await.body("text");
        site.get(target).await.body("text").no_cache_status("hit");
        assert_eq!(origin.count(target), 2, "{target}");
    }
}

/// §3: without a lifetime of any kind nothing is reused.
#[tokio::test]
async fn a_page_without_a_lifetime_is_not_reused() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("etag", "\"a\""));
    for _ in 0..2 {
        site.get("/post").await.body("text").no_cache_status("hit");
    }
    assert_eq!(origin.count("/post"), 2);
}

/// §4.2.2: the heuristic is not for every status, an explicit lifetime is.
#[tokio::test]
async fn a_status_that_is_not_cacheable_by_itself_needs_the_origins_word() {
    let (origin, site) = site().await;
    let modified = "Thu, 01 Jan 2015 00:00:00 GMT";
    origin.on(get("/guess")).reply(status(302).field("location", "/a").field("last-modified", modified));
    origin.on(get("/word")).reply(status(302).field("location", "/a").field("cache-control", "max-age=60"));
    for target in ["/guess", "/word"] {
        site.get(target).await.status(302);
    }
    site.get("/guess").await.status(302).no_cache_status("hit");
    site.get("/word").await.status(302).field("location", "/a").cache_status("hit");
}

/// §5.1, §4.2.3: Age says how old the response is, including what it brought along.
#[tokio::test]
async fn age_includes_the_time_in_caches_nearer_the_origin() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=100").field("age", "40"));
    site.get("/post").await.field("age", "40");
    site.clock.advance(secs(5));
    site.get("/post").await.field("age", "45").cache_status("hit; ttl=55");
}

/// RFC 9110 §6.6.1: a recipient with a clock adds the Date that is missing, and a stored response keeps it.
#[tokio::test]
async fn a_response_without_a_date_gets_that_of_its_arrival() {
    let (origin, site) = site().await;
    let arrived = site.clock.http_date();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=100"));
    site.get("/post").await.field("date", &arrived);
    site.clock.advance(secs(50));
    site.get("/post").await.field("date", &arrived).field("age", "50");
}

/// A hold keeps what the origin calls stale at once; what it tells browsers stays, and what it forbids stays forbidden.
#[tokio::test]
async fn a_hold_lengthens_the_lifetime_here_and_not_in_browsers() {
    let (origin, site) = site_with("[cache]\nhold = \"60s\"").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "public, max-age=0"));
    origin.on(get("/no-cache")).reply(ok("text").field("cache-control", "no-cache").field("etag", "\"a\""));
    origin.on(get("/no-store")).reply(ok("text").field("cache-control", "no-store"));
    for target in ["/post", "/no-cache", "/no-store"] {
        site.get(target).await.body("text");
    }
    site.clock.advance(secs(59));
    site.get("/post").await.body("text").field("cache-control", "public, max-age=0").cache_status("hit; ttl=1");
    for target in ["/no-cache", "/no-store"] {
        site.get(target).await.body("text").no_cache_status("hit");
        assert_eq!(origin.count(target), 2, "{target}");
    }
}

/// RFC 9211 §2: what caches nearer the origin said stays, ours comes last.
#[tokio::test]
async fn the_cache_status_of_inner_caches_stays_in_front() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").field("cache-status", "inner; hit; ttl=5"));
    let fields = site.get("/post").await.value("cache-status").expect("a field");
    assert!(fields.starts_with("inner; hit; ttl=5, seawall; fwd=uri-miss"), "{fields}");
}

/// §3: what is larger than a site allows is passed on whole and not stored, whether or not its length is known beforehand.
#[tokio::test]
async fn what_is_too_large_is_not_stored() {
    let (origin, site) = site_with("[cache]\nobject_max = \"1KiB\"").await;
    let piece = "x".repeat(1_024);
    let chunks = |n: usize| status(200).chunks(vec![piece.clone(); n]).field("cache-control", "max-age=60");
    origin.on(get("/fits")).reply(chunks(1));
    origin.on(get("/chunked")).reply(chunks(4));
    origin.on(get("/sized")).reply(ok(piece.repeat(4)).field("cache-control", "max-age=60"));
    for (target, n, stored) in [("/fits", 1, true), ("/chunked", 4, false), ("/sized", 4, false)] {
        site.get(target).await.body(piece.repeat(n));
        let again = site.get(target).await.body(piece.repeat(n));
        if stored {
            again.cache_status("hit")
        } else {
            again.no_cache_status("hit")
        };
    }
}

/// RFC 9112 §6.3: content that ends with the connection is whole when it does.
#[tokio::test]
async fn content_without_a_length_is_stored_with_one() {
    let (origin, site) = site().await;
    origin.on(get("/old")).reply(status(200).until_close("text").field("cache-control", "max-age=60"));
    site.get("/old").await.body("text");
    site.get("/old").await.body("text").field("content-length", "4").cache_status("hit");
}
