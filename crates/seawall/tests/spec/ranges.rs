//! Ranges: RFC 9110 §14, §13.1.5 (If-Range), §15.3.7 (206), §15.5.17 (416); RFC 9111 §3.3, §3.4.

use testkit::{Req, get, ok, status};

use crate::site::{Site, site};

const TEXT: &str = "0123456789abcdefghij";

async fn stored_page() -> (testkit::Origin, Site) {
    let (origin, site) = site().await;
    let page = ok(TEXT).field("etag", "\"a\"").field("last-modified", "Thu, 01 Jan 2015 00:00:00 GMT").field("cache-control", "max-age=60");
    origin.on(get("/file").without("range")).reply(page.field("content-type", "text/plain"));
    site.get("/file").await.status(200);
    (origin, site)
}

fn range(range: &str) -> Req {
    Req::get("/file").field("range", range)
}

/// §14.1.2: single ranges of twenty bytes.
#[tokio::test]
async fn a_range_is_cut_out_of_the_stored_response() {
    let (origin, site) = stored_page().await;
    for (wanted, content, content_range) in [
        ("bytes=0-4", "01234", "bytes 0-4/20"),
        ("bytes=5-5", "5", "bytes 5-5/20"),
        ("bytes=15-", "fghij", "bytes 15-19/20"),
        ("bytes=-3", "hij", "bytes 17-19/20"),
        ("bytes=-300", TEXT, "bytes 0-19/20"),
        ("bytes=18-300", "ij", "bytes 18-19/20"),
        ("Bytes=0-0", "0", "bytes 0-0/20"),
    ] {
        let answer = site.request(range(wanted)).await.status(206).body(content).field("content-range", content_range);
        answer.field("etag", "\"a\"").field("content-type", "text/plain").cache_status("hit");
    }
    assert_eq!(origin.count("/file"), 1);
}

/// §15.5.17: a range that lies behind the end is told how long the representation is.
#[tokio::test]
async fn a_range_beyond_the_end_is_416() {
    let (_origin, site) = stored_page().await;
    for wanted in ["bytes=20-", "bytes=20-30", "bytes=-0"] {
        site.request(range(wanted)).await.status(416).field("content-range", "bytes */20");
    }
}

/// §14.2: what is malformed, or in another unit, is as if it were not there.
#[tokio::test]
async fn a_range_that_is_none_is_ignored() {
    let (_origin, site) = stored_page().await;
    for wanted in ["bytes=5-2", "bytes=a-b", "bytes=", "lines=1-2", "bytes 0-4", "bytes=0-4;5-6", "bytes=--4"] {
        site.request(range(wanted)).await.status(200).body(TEXT).no_field("content-range");
    }
}

/// §14.6, §15.3.7.2: several ranges are parts of one multipart/byteranges.
#[tokio::test]
async fn several_ranges_come_as_parts() {
    let (_origin, site) = stored_page().await;
    let answer = site.request(range("bytes=0-1, 10-12, -2")).await.status(206).no_field("content-range");
    let content_type = answer.value("content-type").expect("a type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("a boundary").trim_matches('"').to_owned();
    let text = answer.text();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{text}");
    for (part, (range, content)) in parts[1..].iter().zip([("0-1", "01"), ("10-12", "abc"), ("18-19", "ij")]) {
        let (fields, body) = part.split_once("\r\n\r\n").expect("an empty line");
        assert!(fields.to_lowercase().contains(&format!("content-range: bytes {range}/20")), "{part}");
        assert!(fields.to_lowercase().contains("content-type: text/plain"), "{part}");
        assert_eq!(body, format!("{content}\r\n"));
    }
    assert!(parts[4].starts_with("--"), "{text}");
}

/// §13.1.5: If-Range asks for the part only if the whole is still the same.
#[tokio::test]
async fn if_range_decides_between_part_and_whole() {
    let (_origin, site) = stored_page().await;
    for (validator, code) in [
        ("\"a\"", 206),
        ("\"b\"", 200),
        ("W/\"a\"", 200),
        ("Thu, 01 Jan 2015 00:00:00 GMT", 206),
        ("Thu, 01 Jan 2015 00:00:01 GMT", 200),
        ("Wed, 31 Dec 2014 23:59:59 GMT", 200),
    ] {
        let answer = site.request(range("bytes=0-4").field("if-range", validator)).await;
        assert_eq!(answer.code, code, "{validator}: {answer}");
    }
}

/// §13.2.2: If-None-Match comes first.
#[tokio::test]
async fn a_condition_that_fails_comes_before_the_range() {
    let (_origin, site) = stored_page().await;
    site.request(range("bytes=0-4").field("if-none-match", "\"a\"")).await.status(304);
}

/// RFC 9111 §3.3: a part is never given out as if it were the whole.
#[tokio::test]
async fn a_part_from_the_origin_is_never_the_whole() {
    let (origin, site) = site().await;
    let part = status(206).body("23").field("content-range", "bytes 2-3/20").field("cache-control", "max-age=60");
    origin.on(get("/file").field("range", "bytes=2-3")).reply(part);
    origin.on(get("/file").without("range")).reply(ok(TEXT).field("cache-control", "max-age=60"));
    site.request(range("bytes=2-3")).await.status(206).body("23").field("content-range", "bytes 2-3/20");
    site.get("/file").await.status(200).body(TEXT).cache_status("fwd=uri-miss");
}

/// §14.2: ranges are defined for GET alone.
#[tokio::test]
async fn head_ignores_the_range() {
    let (_origin, site) = stored_page().await;
    site.request(Req::head("/file").field("range", "bytes=0-4")).await.status(200).field("content-length", "20");
}
