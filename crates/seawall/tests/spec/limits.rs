//! Limits and timeouts of clients: RFC 9110 §15.5.9 (408), RFC 6585 §5 (431), RFC 9110 §15.5.15 (414), §15.6.4 (503).

use std::time::Duration;

use testkit::{Gate, Req, get, ok};

use crate::site::{HOST, site_with};

/// A head that does not end in time is answered with 408, on a new connection and on a used one.
#[tokio::test]
async fn a_head_that_takes_too_long_is_408() {
    let (origin, site) = site_with("[limits]\nheader_timeout = \"200ms\"").await;
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
    let (_origin, site) = site_with("[limits]\nheader_timeout = \"200ms\"").await;
    assert!(site.client().await.is_closed().await);
}

/// So is one that waits too long for its next request, after a page and after an upload.
#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (origin, site) = site_with("[limits]\nidle_timeout = \"200ms\"").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(testkit::post("/form")).reply(ok("thanks"));
    for request in [Req::get("/post"), Req::get("/post"), Req::post("/form").body("a")] {
        let mut client = site.client().await;
        client.request(request).await.status(200);
        assert!(client.is_closed().await);
    }
}

/// Waiting for the origin is not idling, whoever reads the connection.
#[tokio::test]
async fn an_answer_may_take_longer_than_a_connection_may_idle() {
    let (origin, site) = site_with("[limits]\nidle_timeout = \"200ms\"\nheader_timeout = \"200ms\"").await;
    let gate = Gate::new();
    origin.on(get("/page")).reply(ok("text").gate(&gate));
    origin.on(testkit::post("/form")).reply(ok("thanks").gate(&gate));
    let mut waiting = Vec::new();
    for request in [Req::get("/page"), Req::post("/form").body("a"), Req::post("/form").chunks(["a"])] {
        let mut client = site.client().await;
        client.send(request).await;
        waiting.push(client);
    }
    gate.arrived_count(3).await;
    // Several connections, one after the other, live and die of idleness meanwhile.
    for _ in 0..3 {
        assert!(site.client().await.is_closed().await);
    }
    gate.open();
    for mut client in waiting {
        client.read_answer().await.status(200);
    }
}

/// A client that stops in the middle of its upload is given up, and the origin is not left waiting.
#[tokio::test]
async fn an_upload_that_stalls_is_408() {
    let (origin, site) = site_with("[limits]\nbody_timeout = \"200ms\"").await;
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

/// RFC 6585 §4: whoever sends more than its address may is told when to come again, whether the answer is stored or not. Each client that a trusted
/// proxy names is counted by itself, an IPv6 network as one.
#[tokio::test]
async fn requests_of_an_address_are_limited() {
    let limit =
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]\nhealth_path = \"/healthy\"\n[limits]\nrequests_per_second = 0.5\nrequests_burst = 3";
    let (origin, site) = site_with(limit).await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(get("/never")).reply(ok("text").field("cache-control", "no-store"));
    let from = |client: &'static str, target: &str| site.request(Req::get(target).field("x-forwarded-for", client));
    for target in ["/post", "/post", "/never"] {
        from("192.0.2.1", target).await.status(200);
    }
    for target in ["/post", "/never", "/post"] {
        // One flows in every two seconds.
        from("192.0.2.1", target).await.status(429).field("retry-after", "2");
    }
    from("192.0.2.1", "/healthy").await.status(200);
    from("192.0.2.2", "/post").await.status(200);
    for address in ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff::3"] {
        from(address, "/post").await.status(200);
    }
    from("2001:db8:0:1::4", "/post").await.status(429);
    from("2001:db8:0:2::1", "/post").await.status(200);
    // The proxy itself is exempt: many are behind it.
    for _ in 0..5 {
        site.get("/post").await.status(200);
    }
    site.clock.advance(Duration::from_secs(2));
    from("192.0.2.1", "/post").await.status(200);
    from("192.0.2.1", "/post").await.status(429);
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

/// A client that takes nothing of its response is given up: a stored page, one on its way into the store, and one for it alone.
#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let settings = "[limits]\nwrite_timeout = \"200ms\"\nheader_timeout = \"600ms\"\n[cache]\nobject_max = \"64MiB\"";
    let (origin, site) = site_with(settings).await;
    // More than the system keeps for a connection, on both sides together.
    let large = "x".repeat(32 << 20);
    origin.on(get("/stored")).reply(ok(large.clone()).field("cache-control", "max-age=60"));
    origin.on(get("/growing")).reply(ok(large.clone()).field("cache-control", "max-age=60"));
    origin.on(get("/passed")).reply(ok(large.clone()).field("cache-control", "no-store"));
    site.get("/stored").await.status(200).cache_status("stored");
    let mut waiting = Vec::new();
    for target in ["/stored", "/growing", "/passed"] {
        let mut client = site.client().await;
        client.send(Req::get(target)).await;
        client.read_head().await.status(200);
        waiting.push((client, target));
    }
    // A connection that says nothing lives three times as long.
    assert!(site.client().await.is_closed().await);
    for (mut client, target) in waiting {
        while client.read_body_chunk().await.is_some() {}
        assert!(client.is_cut_short(), "{target}");
    }
    // The page that was on its way is whole for the next reader.
    site.get("/growing").await.body(&large).cache_status("hit");
}
