//! Limits and timeouts of clients: RFC 9110 §15.5.9 (408), RFC 6585 §5 (431), RFC 9110 §15.5.15 (414), §15.6.4 (503).

use testkit::{Req, get, ok};

use crate::site::{HOST, site_with};

/// A head that does not end in time is answered with 408, on a new connection and on a used one.
#[tokio::test]
async fn a_head_that_takes_too_long_is_408() {
    let (origin, site) = site_with("[limits]\nheader_timeout = \"40ms\"").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    let mut new = site.client().await;
    new.send_raw(format!("GET /post HTTP/1.1\r\nHost: {HOST}\r\n")).await;
    new.read_answer().await.status(408);
    assert!(new.is_closed().await);

    let mut used = site.client().await;
    used.get("/post").await.status(200);
    used.send_raw("GET /po").await;
    used.read_answer().await.status(408);
    assert!(used.is_closed().await);
}

/// A connection that never says anything is closed without a word.
#[tokio::test]
async fn a_silent_connection_is_closed() {
    let (_origin, site) = site_with("[limits]\nheader_timeout = \"40ms\"").await;
    assert!(site.client().await.is_closed().await);
}

/// So is one that waits too long for its next request, after a page and after an upload.
#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (origin, site) = site_with("[limits]\nidle_timeout = \"40ms\"").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(testkit::post("/form")).reply(ok("thanks"));
    for request in [Req::get("/post"), Req::get("/post"), Req::post("/form").body("a")] {
        let mut client = site.client().await;
        client.request(request).await.status(200);
        assert!(client.is_closed().await);
    }
}

/// A client that stops in the middle of its upload is given up, and the origin is not left waiting.
#[tokio::test]
async fn an_upload_that_stalls_is_408() {
    let (origin, site) = site_with("[limits]\nbody_timeout = \"40ms\"").await;
    let mut client = site.client().await;
    client.send_raw(format!("POST /upload HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 100\r\n\r\nhello")).await;
    client.read_answer().await.status(408);
    origin.until_connections_open(0).await;
}

/// One connection more than allowed is turned away at once, and let in when another has left.
#[tokio::test]
async fn connections_are_capped() {
    let (origin, site) = site_with("[limits]\nconnections = 2").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    let (mut first, mut second) = (site.client().await, site.client().await);
    first.get("/post").await.status(200);
    second.get("/post").await.status(200);
    let mut third = site.client().await;
    third.read_answer().await.status(503).has_field("retry-after");
    assert!(third.is_closed().await);
    // A connection that closes itself has left when its close is seen.
    second.request(Req::get("/post").field("connection", "close")).await.status(200);
    assert!(second.is_closed().await);
    first.get("/post").await.status(200);
    site.get("/post").await.status(200);
}

/// Loopback is not counted by address: behind it are proxies, and many people behind those.
#[tokio::test]
async fn loopback_is_exempt_from_the_limit_per_address() {
    let (origin, site) = site_with("[limits]\nconnections_per_address = 1").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    let mut clients = [site.client().await, site.client().await, site.client().await];
    for client in &mut clients {
        client.get("/post").await.status(200);
    }
}

/// Each limit of a head, met and exceeded by one.
#[tokio::test]
async fn heads_have_limits() {
    let (origin, site) = site_with("[limits]\nheader_bytes = \"1KiB\"\ntarget_bytes = \"256B\"\nheader_fields = 8").await;
    origin.on(get("/*")).reply(ok("text"));
    let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    site.get(&path(256)).await.status(200);
    site.get(&path(257)).await.status(414);
    // Host is one of them.
    let fields = |n: usize| (1..n).fold(Req::get("/"), |request, n| request.field(&format!("x-{n}"), "1"));
    site.request(fields(8)).await.status(200);
    site.request(fields(9)).await.status(431);
    let bytes = |n: usize| {
        let empty = Req::get("/").field("x", "").to_bytes(HOST).len();
        Req::get("/").field("x", "a".repeat(n - empty))
    };
    site.request(bytes(1024)).await.status(200);
    site.request(bytes(1025)).await.status(431);
}
