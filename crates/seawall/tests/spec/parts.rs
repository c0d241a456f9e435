//! Stored parts: RFC 9111 §3.3 (storing incomplete responses), §3.4 (combining); RFC 9110 §15.3.7.3.

use store::{Hardness, PurgeTarget};
use testkit::{Req, get, ok, secs, status};

use crate::site::{HOST, Site, site};

const TEXT: &str = "0123456789";

fn range(range: &str) -> Req {
    Req::get("/file").field("range", range)
}

/// Returns a site that has been asked for the first five bytes, and stored them.
async fn with_a_beginning(etag: Option<&str>) -> (testkit::Origin, Site) {
    let (origin, site) = site().await;
    let part = status(206).body("01234").field("content-range", "bytes 0-4/10").field("cache-control", "max-age=60");
    origin.on(get("/file").field("range", "bytes=0-4")).reply(match etag {
        Some(etag) => part.field("etag", etag),
        None => part,
    });
    site.request(range("bytes=0-4")).await.status(206).body("01234").cache_status("fwd=uri-miss; fwd-status=206; stored");
    (origin, site)
}

/// The very same range is answered from what is stored, while that is fresh; no other range is.
#[tokio::test]
async fn the_same_range_is_a_hit() {
    let (origin, site) = with_a_beginning(Some("\"a\"")).await;
    let again = site.request(range("bytes=0-4")).await.status(206).body("01234").cache_status("hit");
    again.field("content-range", "bytes 0-4/10").field("content-length", "5").no_field("range");
    site.request(range("bytes=0-4").field("if-none-match", "\"a\"")).await.status(304);
    origin.on(get("/file").field("range", "bytes=0-3")).reply(status(206).body("0123").field("content-range", "bytes 0-3/10"));
    site.request(range("bytes=0-3")).await.status(206).body("0123").cache_status("fwd=uri-miss");
    site.request(range("bytes=0-4").field("if-range", "\"b\"")).await.cache_status("fwd=uri-miss");
    site.clock.advance(secs(60));
    site.request(range("bytes=0-4")).await.status(206).cache_status("fwd=uri-miss");
}

/// A purge of the address covers its parts.
#[tokio::test]
async fn a_purge_covers_the_parts() {
    let (origin, site) = with_a_beginning(None).await;
    site.purge(&PurgeTarget::Url { site: 0, url: format!("{HOST}/file").into_bytes() }, Hardness::Hard);
    site.request(range("bytes=0-4")).await.status(206).cache_status("fwd=uri-miss");
    assert_eq!(origin.count("/file"), 2);
}

/// RFC 9110 §15.3.7.3: with a strong tag, only the rest is asked for, and the whole is stored.
#[tokio::test]
async fn a_beginning_is_completed() {
    let (origin, site) = with_a_beginning(Some("\"a\"")).await;
    let rest = status(206).body("56789").field("content-range", "bytes 5-9/10").field("cache-control", "max-age=60");
    origin.on(get("/file").field("range", "bytes=5-").field("if-range", "\"a\"")).reply(rest.field("etag", "\"a\""));
    let whole = site.get("/file").await.status(200).body(TEXT).cache_status("stored");
    whole.field("content-length", "10").no_field("content-range").field("etag", "\"a\"");
    site.get("/file").await.status(200).body(TEXT).cache_status("hit").no_field("content-range");
    site.request(range("bytes=3-6")).await.status(206).body("3456").cache_status("hit");
    assert_eq!(origin.count("/file"), 2);
}

/// What is not certainly the rest of the same is thrown away, and the whole is asked for.
#[tokio::test]
async fn what_does_not_fit_is_never_joined() {
    for (ours, theirs, content_range, content) in [
        (None, None, "bytes 5-9/10", "56789"),
        (Some("W/\"a\""), Some("W/\"a\""), "bytes 5-9/10", "56789"),
        (Some("\"a\""), Some("\"b\""), "bytes 5-9/10", "56789"),
        (Some("\"a\""), None, "bytes 5-9/10", "56789"),
        (Some("\"a\""), Some("\"a\""), "bytes 4-9/10", "456789"),
        (Some("\"a\""), Some("\"a\""), "bytes 5-9/11", "56789"),
        (Some("\"a\""), Some("\"a\""), "bytes 5-9/10", "5678"),
        (Some("\"a\""), Some("\"a\""), "bytes 5-9/10", "567890"),
    ] {
        let (origin, site) = with_a_beginning(ours).await;
        let rest = status(206).body(content).field("content-range", content_range).field("cache-control", "max-age=60");
        origin.on(get("/file").field("range", "bytes=5-")).reply(match theirs {
            Some(etag) => rest.field("etag", etag),
            None => rest,
        });
        origin.on(get("/file").without("range")).reply(ok("another text").field("cache-control", "max-age=60"));
        site.get("/file").await.status(200).body("another text").no_field("content-range");
        site.get("/file").await.status(200).body("another text").cache_status("hit");
        assert_eq!(origin.count("/file"), 3, "{ours:?} {theirs:?} {content_range} {content}");
    }
}

/// RFC 9110 §13.1.5: a server whose representation has changed answers with the whole.
#[tokio::test]
async fn the_whole_in_answer_to_the_rest_is_the_whole() {
    let (origin, site) = with_a_beginning(Some("\"a\"")).await;
    origin.on(get("/file").field("range", "bytes=5-")).reply(ok("new text").field("cache-control", "max-age=60").field("etag", "\"b\""));
    site.get("/file").await.status(200).body("new text");
    site.get("/file").await.body("new text").field("etag", "\"b\"").cache_status("hit");
    assert_eq!(origin.count("/file"), 2);
}

/// A 206 that says one thing and holds another is replayed as it came, and nothing is built on it.
#[tokio::test]
async fn a_part_of_the_wrong_length_is_only_replayed() {
    let (origin, site) = site().await;
    let part = status(206).body("01234").field("content-range", "bytes 0-5/10").field("etag", "\"a\"").field("cache-control", "max-age=60");
    origin.on(get("/file").field("range", "bytes=0-5")).reply(part);
    site.request(range("bytes=0-5")).await.status(206).body("01234");
    site.request(range("bytes=0-5")).await.status(206).body("01234").cache_status("hit");
    origin.on(get("/file").without("range")).reply(ok(TEXT).field("cache-control", "max-age=60"));
    site.get("/file").await.status(200).body(TEXT);
    assert_eq!(origin.count("/file"), 2);
}
