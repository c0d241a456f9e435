//! Query parameters that only trackers read (hestiacp/hestiacp#5514); RFC 3986 §3.4.

use testkit::{get, ok};

use crate::site::{site, site_with};

/// 10,000 readers with 10,000 different parameters read one page, and the origin never sees the parameter.
#[tokio::test]
async fn trackers_neither_split_the_page_nor_reach_the_origin() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    let mut client = site.client().await;
    client.get("/post?fbclid=first").await.body("text").cache_status("fwd=uri-miss; stored");
    for number in 0..10_000 {
        client.get(&format!("/post?fbclid={number}")).await.status(200).cache_status("hit");
    }
    for query in ["utm_source=x&utm_medium=y", "gclid=1", "msclkid=1&mc_eid=2", "_gl=1"] {
        client.get(&format!("/post?{query}")).await.cache_status("hit");
    }
    client.get("/post").await.cache_status("hit");
    assert_eq!(origin.requests().len(), 1);
}

/// The rest of the query stays, in its order, for the key and for the origin.
#[tokio::test]
async fn other_parameters_stay_as_they_are() {
    let (origin, site) = site().await;
    origin.on(get("/search").any_query()).reply_with(|seen| ok(seen.target.clone()).field("cache-control", "max-age=60"));
    for (asked, sent, status) in [
        ("/search?s=a", "/search?s=a", "fwd=uri-miss"),
        ("/search?s=a&fbclid=1", "/search?s=a", "hit"),
        ("/search?s=b", "/search?s=b", "fwd=uri-miss"),
        ("/search?b=1&a=2", "/search?b=1&a=2", "fwd=uri-miss"),
        ("/search?a=2&b=1", "/search?a=2&b=1", "fwd=uri-miss"),
        ("/search?", "/search?", "fwd=uri-miss"),
        ("/search?S=a", "/search?S=a", "fwd=uri-miss"),
        ("/search?s=%61", "/search?s=%61", "fwd=uri-miss"),
    ] {
        site.get(asked).await.status(200).body(sent).cache_status(status);
    }
}

/// A site has the last word on which parameters matter.
#[tokio::test]
async fn a_site_may_ignore_more_and_keep_others() {
    let (origin, site) = site_with("[cache]\nignore_query = [\"ref\", \"x_*\"]\nkeep_query = [\"utm_id\"]").await;
    origin.on(get("/post").any_query()).reply_with(|seen| ok(seen.target.clone()).field("cache-control", "max-age=60"));
    site.get("/post?ref=a&x_1=2").await.body("/post").cache_status("fwd=uri-miss");
    site.get("/post?x_2=3").await.cache_status("hit");
    site.get("/post?utm_id=7&utm_source=x").await.body("/post?utm_id=7").cache_status("fwd=uri-miss");
}
