//! Validation: RFC 9111 §4.3, §3.2 (updating stored fields); RFC 9110 §8.8 (validators).

use testkit::{Req, get, head, not_modified, ok, secs, status};

use crate::site::site;

/// RFC 9111 §4.3.4: a 304 freshens the stored response.
#[tokio::test]
async fn a_304_freshens_the_stored_response() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10").field("x-note", "old"));
    site.get("/post").await.status(200).body("v1").cache_status("fwd=uri-miss; stored");

    site.clock.advance(secs(11));
    let confirmed = not_modified().field("etag", "\"a\"").field("cache-control", "max-age=20").field("x-note", "new");
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(confirmed);
    let answer = site.get("/post").await.status(200).body("v1").cache_status("fwd=stale; fwd-status=304; stored").x_cache("REVALIDATED");
    answer.field("x-note", "new").field("age", "0").field("cache-control", "max-age=20");

    site.clock.advance(secs(19));
    site.get("/post").await.status(200).body("v1").field("x-note", "new").cache_status("hit; ttl=1");
    assert_eq!(origin.count("/post"), 2);
}

/// §4.3.1: a stored response is validated with every validator it has.
#[tokio::test]
async fn both_validators_are_sent() {
    let (origin, site) = site().await;
    let modified = "Thu, 01 Jan 2015 00:00:00 GMT";
    origin.on(get("/post")).reply(ok("v1").field("etag", "W/\"a\"").field("last-modified", modified).field("cache-control", "max-age=10"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    origin.on(get("/post").field("if-none-match", "W/\"a\"").field("if-modified-since", modified)).reply(not_modified());
    site.get("/post").await.status(200).body("v1").cache_status("fwd=stale; fwd-status=304");
}

/// §4.3.1: a date alone validates too.
#[tokio::test]
async fn last_modified_alone_validates() {
    let (origin, site) = site().await;
    let modified = "Thu, 01 Jan 2015 00:00:00 GMT";
    origin.on(get("/post")).reply(ok("v1").field("last-modified", modified).field("cache-control", "max-age=10"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    origin.on(get("/post").field("if-modified-since", modified).without("if-none-match")).reply(not_modified());
    site.get("/post").await.status(200).body("v1").x_cache("REVALIDATED");
}

/// §4.3.3: any other answer than a 304 takes the place of the stored response.
#[tokio::test]
async fn a_full_answer_replaces_the_stored_response() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    origin.on(get("/post")).reply(ok("v2").field("etag", "\"b\"").field("cache-control", "max-age=10"));
    site.get("/post").await.status(200).body("v2").cache_status("fwd=stale; fwd-status=200; stored");
    site.get("/post").await.body("v2").field("etag", "\"b\"").cache_status("hit");

    site.clock.advance(secs(10));
    origin.on(get("/post")).reply(status(404).body("gone").field("cache-control", "no-store"));
    site.get("/post").await.status(404).body("gone").cache_status("fwd=stale; fwd-status=404");
}

/// §4.3.4: a 304 about another representation does not freshen ours; the whole is asked for.
#[tokio::test]
async fn a_304_about_something_else_is_not_believed() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    origin.on(get("/post").without("if-none-match")).reply(ok("v2").field("etag", "\"b\"").field("cache-control", "max-age=10"));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("etag", "\"b\""));
    site.get("/post").await.status(200).body("v2").field("etag", "\"b\"");
    assert_eq!(origin.count("/post"), 3);
}

/// §3.2: the 304 may change fields, but not what describes the stored content; and it brings nobody a cookie.
#[tokio::test]
async fn a_304_leaves_what_describes_the_content() {
    let (origin, site) = site().await;
    let page = ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10").field("content-type", "text/html");
    origin.on(get("/post")).reply(page);
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    let confirmed =
        not_modified().field("content-type", "text/plain").field("set-cookie", "session=1").field("cache-control", "max-age=10");
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(confirmed);
    site.get("/post").await.status(200).body("v1").field("content-type", "text/html").field("content-length", "2").no_field("set-cookie");
    site.get("/post").await.no_field("set-cookie").cache_status("hit");
}

/// §3.2: with the same strong tag the origin vouches for these very bytes, and says what they are.
#[tokio::test]
async fn a_304_with_the_same_strong_tag_may_say_what_the_content_is() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10").field("content-type", "text/plain"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    let confirmed = not_modified().field("etag", "\"a\"").field("content-type", "text/html").field("cache-control", "max-age=10");
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(confirmed);
    for _ in 0..2 {
        site.get("/post").await.status(200).body("v1").field("content-type", "text/html").field("content-length", "2");
    }
}

/// §4.3.5: a 200 to HEAD with the same validators freshens the stored response to GET.
#[tokio::test]
async fn a_head_freshens_the_stored_get() {
    let (origin, site) = site().await;
    let page = ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10").field("x-old", "1").field("x-both", "1");
    origin.on(get("/post")).reply(page);
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    let looked = status(200).field("etag", "\"a\"").field("content-length", "2").field("cache-control", "max-age=20").field("x-both", "2");
    origin.on(head("/post")).reply(looked);
    let answer = site.request(Req::head("/post")).await.status(200).cache_status("fwd=stale; fwd-status=200; stored");
    answer.field("x-old", "1").field("x-both", "2").field("content-length", "2");
    site.clock.advance(secs(19));
    site.get("/post").await.body("v1").field("x-old", "1").field("x-both", "2").cache_status("hit; ttl=1");
    assert_eq!(origin.count("/post"), 2);
}

/// §4.3.5: one with other validators, or another length, says that the stored response is stale, and it is fetched anew; one without any
/// says nothing.
#[tokio::test]
async fn a_head_about_something_else_freshens_nothing() {
    for field in [("etag", "\"b\""), ("content-length", "3"), ("content-length", "2")] {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
        site.get("/post").await.body("v1");
        // Fresh, but this client wants the origin's word.
        origin.on(head("/post")).reply(status(200).field(field.0, field.1).field("cache-control", "max-age=20"));
        site.request(Req::head("/post").field("cache-control", "no-cache")).await.status(200);
        if field.1 == "2" {
            site.get("/post").await.body("v1").cache_status("hit");
            assert_eq!(origin.count("/post"), 2);
        } else {
            // Behind, and nobody waits for it: what is stored may still have to stand in for the origin.
            origin.until_count("/post", 3).await;
            assert_eq!(origin.last("/post").method, "GET");
            site.get("/post").await.body("v1").cache_status("hit");
        }
    }
}

/// §4.3.4: and so does a 304 to HEAD.
#[tokio::test]
async fn a_304_to_head_freshens_too() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(10));
    origin.on(head("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("cache-control", "max-age=10"));
    site.request(Req::head("/post")).await.status(200).cache_status("fwd-status=304");
    site.get("/post").await.body("v1").cache_status("hit");
}

/// RFC 9111 §5.2.2.4: `no-cache` is stored, and validated each time.
#[tokio::test]
async fn no_cache_means_to_validate_each_time() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "no-cache"));
    site.get("/post").await.body("v1");
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified());
    for _ in 0..2 {
        site.get("/post").await.status(200).body("v1").cache_status("fwd-status=304");
    }
    assert_eq!(origin.count("/post"), 3);
}

/// §4.3.1: the client's own conditions are about its copy and never reach the origin in a shared request.
#[tokio::test]
async fn a_clients_condition_does_not_shrink_what_is_stored() {
    let (origin, site) = site().await;
    origin.on(get("/post").without("if-none-match")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    let conditional = Req::get("/post").field("if-none-match", "\"a\"");
    site.request(conditional).await.status(304).field("etag", "\"a\"");
    // The 304 is sent as soon as the origin's head is there: the content may still be arriving, and is shared then.
    site.get("/post").await.status(200).body("v1");
    assert_eq!(origin.count("/post"), 1);
}
