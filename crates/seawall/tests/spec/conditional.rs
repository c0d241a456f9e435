//! A client's conditions: RFC 9110 §13, §15.4.5; RFC 9111 §4.3.2.

use testkit::{Req, get, ok};

use crate::site::{Site, site};

const MODIFIED: &str = "Thu, 01 Jan 2015 00:00:00 GMT";
const BEFORE: &str = "Wed, 31 Dec 2014 23:59:59 GMT";
const AFTER: &str = "Thu, 01 Jan 2015 00:00:01 GMT";

async fn stored_page() -> (testkit::Origin, Site) {
    let (origin, site) = site().await;
    let page = ok("text").field("etag", "\"a\"").field("last-modified", MODIFIED).field("cache-control", "max-age=60");
    origin.on(get("/post")).reply(page.field("content-type", "text/html").field("vary", "x-theme"));
    site.get("/post").await.status(200);
    (origin, site)
}

/// §13.2.2: each row is what a client sends for a stored page with the tag `"a"`, and what it gets.
#[tokio::test]
async fn conditions_are_evaluated_in_their_order() {
    let (origin, site) = stored_page().await;
    let rows: &[(&[(&str, &str)], u16)] = &[
        (&[("if-none-match", "\"a\"")], 304),
        (&[("if-none-match", "W/\"a\"")], 304),
        (&[("if-none-match", "\"x\", \"a\"")], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", "\"b\"")], 200),
        // Some clients lose the quotes; the tag is the same.
        (&[("if-none-match", "a")], 304),
        (&[("if-modified-since", MODIFIED)], 304),
        (&[("if-modified-since", AFTER)], 304),
        (&[("if-modified-since", BEFORE)], 200),
        (&[("if-modified-since", "yesterday")], 200),
        // If-None-Match takes precedence over If-Modified-Since (§13.1.3).
        (&[("if-none-match", "\"b\""), ("if-modified-since", AFTER)], 200),
        (&[("if-none-match", "\"a\""), ("if-modified-since", BEFORE)], 304),
        (&[("if-match", "\"a\"")], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", "\"b\"")], 412),
        // If-Match compares strongly (§13.1.1).
        (&[("if-match", "W/\"a\"")], 412),
        (&[("if-unmodified-since", MODIFIED)], 200),
        (&[("if-unmodified-since", BEFORE)], 412),
        (&[("if-match", "\"a\""), ("if-unmodified-since", BEFORE)], 200),
        (&[("if-match", "\"b\""), ("if-none-match", "\"a\"")], 412),
    ];
    for method in ["GET", "HEAD"] {
        for (fields, code) in rows {
            let request = fields.iter().fold(Req::new(method, "/post"), |request, (name, value)| request.field(name, *value));
            let answer = site.request(request).await;
            assert_eq!(answer.code, *code, "{method} {fields:?}: {answer}");
        }
    }
    assert_eq!(origin.count("/post"), 1);
}

/// §15.4.5: a 304 has the fields that the 200 would have had of these, and none that describe content.
#[tokio::test]
async fn a_304_repeats_what_a_cache_needs() {
    let (_origin, site) = stored_page().await;
    let answer = site.request(Req::get("/post").field("if-none-match", "\"a\"")).await.status(304).body("");
    let answer = answer.field("etag", "\"a\"").field("cache-control", "max-age=60").field("vary", "x-theme").has_field("date");
    answer.field("age", "0").cache_status("hit").no_field("content-type").no_field("content-length");
}

/// §13.2.1: conditions are for answers that would be successful without them.
#[tokio::test]
async fn a_stored_error_is_sent_whatever_the_condition() {
    let (origin, site) = site().await;
    origin.on(get("/gone")).reply(testkit::status(404).body("gone").field("etag", "\"a\"").field("cache-control", "max-age=60"));
    site.get("/gone").await.status(404);
    site.request(Req::get("/gone").field("if-none-match", "\"a\"")).await.status(404).body("gone").cache_status("hit");
}

/// The connection goes on after a 304.
#[tokio::test]
async fn a_304_has_no_content_to_wait_for() {
    let (_origin, site) = stored_page().await;
    let mut client = site.client().await;
    client.request(Req::get("/post").field("if-none-match", "\"a\"")).await.status(304);
    client.get("/post").await.status(200).body("text");
}

/// A condition of a request that is not stored is the origin's to evaluate.
#[tokio::test]
async fn a_condition_on_an_unsafe_method_reaches_the_origin() {
    let (origin, site) = site().await;
    origin.on(testkit::put("/post").field("if-match", "\"a\"")).reply(testkit::status(412));
    site.request(Req::new("PUT", "/post").field("if-match", "\"a\"").body("new")).await.status(412);
}

/// A confirmation for one client says nothing to the others, and is not stored.
#[tokio::test]
async fn a_304_for_one_client_is_passed_on_and_not_stored() {
    let (origin, site) = site().await;
    let confirmed = testkit::not_modified().field("etag", "\"mine\"").field("cache-control", "max-age=60");
    origin.on(get("/account")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(get("/account").field("if-none-match", "\"mine\"")).reply(confirmed);
    let mine = || Req::get("/account").field("cookie", "session=1").field("if-none-match", "\"mine\"");
    site.request(mine()).await.status(304).field("etag", "\"mine\"").no_cache_status("stored");
    site.get("/account").await.status(200).body("text").cache_status("fwd=uri-miss; stored");
}

/// What cannot be shared was asked for without the client's conditions; they are honoured all the same.
#[tokio::test]
async fn a_condition_is_honoured_on_what_is_not_stored() {
    let (origin, site) = site().await;
    origin.on(get("/post").without("if-none-match")).reply(ok("text").field("etag", "\"a\"").field("cache-control", "no-store"));
    site.request(Req::get("/post").field("if-none-match", "\"a\"")).await.status(304).body("");
}
