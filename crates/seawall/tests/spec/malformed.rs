//! Malformed messages: RFC 9112 §2.2, §3, §5, §6, §7, §11.2 (request smuggling); RFC 9110 §5, §7.2.

use testkit::{get, malformed, ok};

use crate::site::site;

/// Every row is refused, and no origin hears of it.
#[tokio::test]
async fn no_malformed_request_reaches_the_origin() {
    let (origin, site) = site().await;
    let mut failures = Vec::new();
    for row in malformed::table() {
        failures.extend(row.put_to(site.client().await).await.err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(origin.requests().is_empty(), "{:#?}", origin.requests());

    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200).body("text");
}

/// The same after a good request on the same connection, and in the hands of the reader that takes uploads.
#[tokio::test]
async fn no_malformed_request_hides_behind_a_good_one() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(testkit::post("/form")).reply(ok("thanks"));
    let mut failures = Vec::new();
    for row in malformed::table() {
        let mut used = site.client().await;
        used.get("/post").await.status(200);
        failures.extend(row.put_to(used).await.err().map(|failure| format!("after a page: {failure}")));
        let mut used = site.client().await;
        used.request(testkit::Req::post("/form").body("a=1")).await.status(200);
        failures.extend(row.put_to(used).await.err().map(|failure| format!("after an upload: {failure}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let unexpected: Vec<_> = origin.requests().into_iter().filter(|seen| seen.target != "/post" && seen.target != "/form").collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// What an origin sends in no form that HTTP knows becomes 502, or content that is visibly cut short; and is not stored.
#[tokio::test]
async fn no_malformed_response_is_passed_on_or_stored() {
    let (origin, site) = site().await;
    let mut failures = Vec::new();
    for (number, row) in malformed::responses().iter().enumerate() {
        let target = format!("/{number}");
        origin.on(get(&target)).reply(ok("good").field("cache-control", "max-age=60"));
        origin.on(get(&target)).once().reply(row.reply());
        let answer = site.get(&target).await;
        let refused = answer.code == 502;
        if !(refused || (!row.in_head && answer.is_truncated())) {
            failures.push(format!("{}: {answer}", row.name));
        }
        site.get(&target).await.status(200).body("good").cache_status("fwd=uri-miss; stored");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
