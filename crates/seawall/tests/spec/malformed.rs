//! Malformed messages: RFC 9112 §2.2, §3, §5, §6, §7, §11.2 (request smuggling); RFC 9110 §5, §7.2.

use testkit::{get, malformed, ok};

use crate::site::site;

/// Rows that RFC 9112 §7.1 lets a recipient repair, and that are: the content is read as it was meant, and goes on in chunks of our own,
/// so that no other recipient can read it in another way.
const REPAIRED: [&str; 2] = ["a chunk size with spaces after it", "a chunk extension with a NUL"];

fn rows() -> impl Iterator<Item = &'static malformed::Malformed> {
    malformed::table().iter().filter(|row| !REPAIRED.contains(&row.name))
}

/// Every row is refused, and no origin hears of it.
#[tokio::test]
async fn no_malformed_request_reaches_the_origin() {
    let (origin, site) = site().await;
    let mut failures = Vec::new();
    for row in rows() {
        failures.extend(row.put_to(site.client().await).await.err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(origin.requests().is_empty(), "{:#?}", origin.requests());

    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200).body("text");
}

/// A malformed request is refused also after a good request on the same connection, and in the hands of the reader that takes uploads.
#[tokio::test]
async fn no_malformed_request_hides_behind_a_good_one() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(testkit::post("/form")).reply(ok("thanks"));
    let mut failures = Vec::new();
    for row in rows() {
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

/// What is repaired hides nothing: one request arrives, with the content that was meant.
#[tokio::test]
async fn what_is_repaired_is_one_request() {
    let (origin, site) = site().await;
    origin.on(testkit::post(malformed::PATH)).reply(ok("thanks"));
    for (number, row) in malformed::table().iter().filter(|row| REPAIRED.contains(&row.name)).enumerate() {
        let mut client = site.client().await;
        client.send_raw(&row.bytes).await;
        client.read_answer().await.status(200);
        assert!(client.is_closed().await, "{}", row.name);
        assert_eq!(origin.requests().len(), number + 1, "{}", row.name);
        assert_eq!(origin.last(malformed::PATH).text(), "hello", "{}", row.name);
    }
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
