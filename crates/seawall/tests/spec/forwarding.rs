//! What the origin is sent: RFC 9110 §7.6 (hop-by-hop fields, Via), RFC 7239 (Forwarded), and the X-Forwarded fields.

use testkit::{Req, get, method, ok, post, raw};

use crate::site::{HOST, site, site_with};

/// The origin learns who asked, for which host, over what.
#[tokio::test]
async fn the_origin_learns_who_asked() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200);
    let seen = origin.last("/post");
    assert_eq!(seen.version, "HTTP/1.1");
    for (name, value) in [
        ("host", HOST),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", HOST),
        ("x-forwarded-proto", "http"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1;host=blog.example;proto=http"),
        ("via", "1.1 seawall"),
    ] {
        assert_eq!(seen.field(name).as_deref(), Some(value), "{name}");
    }
}

/// A stranger's word about these things is not passed on: an origin would build its links of it, and everybody would get them.
#[tokio::test]
async fn what_only_a_proxy_may_say_is_not_taken_from_strangers() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text"));
    let lies = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-port", "1"),
        ("x-forwarded-prefix", "/evil"),
        ("forwarded", "for=203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
        ("x_forwarded_host", "evil.example"),
        ("x-original-url", "/admin"),
        ("x-rewrite-url", "/admin"),
        ("x-host", "evil.example"),
        ("x-lscache", "on"),
        ("x-litespeed-purge", "*"),
        ("x-cache-invalidate", "/*"),
        ("surrogate-capability", "x"),
        ("true-client-ip", "203.0.113.9"),
        ("cf-connecting-ip", "203.0.113.9"),
        ("proxy", "http://evil.example"),
    ];
    site.request(lies.iter().fold(Req::get("/post"), |request, (name, value)| request.field(name, *value))).await.status(200);
    let seen = origin.last("/post");
    for (name, lie) in lies {
        let kept = seen.field(name).unwrap_or_default();
        assert!(!kept.contains(lie), "{name}: {kept}");
    }
    assert_eq!(seen.field("x-forwarded-for").as_deref(), Some("127.0.0.1"));
}

/// A proxy that is named in the settings may speak for its client, and we add our part.
#[tokio::test]
async fn a_trusted_proxy_names_the_client() {
    let (origin, site) = site_with("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]").await;
    origin.on(get("/post")).reply(ok("text"));
    let request = Req::get("/post").field("x-forwarded-for", "203.0.113.9").field("x-forwarded-proto", "https");
    site.request(request.field("forwarded", "for=203.0.113.9").field("via", "2 edge")).await.status(200);
    let seen = origin.last("/post");
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.9, 127.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "203.0.113.9"),
        ("forwarded", "for=203.0.113.9, for=127.0.0.1;host=blog.example;proto=https"),
        ("via", "2 edge, 1.1 seawall"),
    ] {
        assert_eq!(seen.field(name).as_deref(), Some(value), "{name}");
    }
}

/// Http and https are different pages where a trusted proxy says which it was.
#[tokio::test]
async fn the_scheme_is_part_of_the_page() {
    let (origin, site) = site_with("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]").await;
    origin.on(get("/post")).reply_with(|seen| ok(seen.field("x-forwarded-proto").unwrap_or_default()).field("cache-control", "max-age=60"));
    for status in ["fwd=uri-miss", "hit"] {
        for scheme in ["http", "https"] {
            site.request(Req::get("/post").field("x-forwarded-proto", scheme)).await.body(scheme).cache_status(status);
        }
    }
}

/// RFC 9110 §7.6.1: what concerns one connection stays there, in both directions.
#[tokio::test]
async fn hop_by_hop_fields_stop_here() {
    let (origin, site) = site().await;
    let reply = ok("text").field("connection", "keep-alive, x-hop").field("keep-alive", "timeout=5").field("x-hop", "1");
    origin.on(get("/post")).reply(reply.field("proxy-authenticate", "Basic").field("x-end", "1").field("cache-control", "max-age=60"));
    let request = Req::get("/post").field("connection", "x-private").field("x-private", "1").field("te", "trailers");
    let request = request.field("keep-alive", "timeout=1").field("proxy-authorization", "Basic eA==").field("x-end", "2");
    site.request(request).await.status(200).field("x-end", "1").no_field("x-hop").no_field("keep-alive").no_field("proxy-authenticate");
    let seen = origin.last("/post");
    for name in ["x-private", "te", "keep-alive", "proxy-authorization", "upgrade"] {
        assert_eq!(seen.field(name), None, "{name}");
    }
    assert_eq!(seen.field("x-end").as_deref(), Some("2"));
    site.get("/post").await.cache_status("hit").no_field("x-hop").no_field("keep-alive");
}

/// A client cannot use Connection to take away what keeps its page out of the cache.
/// RFC 9110 §7.6.2: a request that may go on to no other server is answered here, and each server takes one off.
#[tokio::test]
async fn max_forwards_is_counted_down_and_ends_options_and_trace() {
    let (origin, site) = site().await;
    let request = |name: &str, left: &str| Req::new(name, "/page").field("max-forwards", left);
    site.request(request("OPTIONS", "0")).await.status(204);
    site.request(request("TRACE", "0")).await.status(501);
    assert_eq!(origin.count("/page"), 0);
    origin.on(method("OPTIONS", "/page")).reply(ok("").field("allow", "GET"));
    for (sent, told) in [("1", "0"), ("5", "4"), ("99999999999", "4294967294"), ("many", "many")] {
        site.request(request("OPTIONS", sent)).await.status(200).field("allow", "GET");
        assert_eq!(origin.last("/page").field("max-forwards").as_deref(), Some(told), "{sent}");
    }
    origin.on(get("/page")).reply(ok("text"));
    site.request(Req::get("/page").field("max-forwards", "0")).await.status(200).body("text");
}

#[tokio::test]
async fn connection_cannot_take_end_to_end_fields_away() {
    let (origin, site) = site().await;
    origin.on(get("/account")).reply_with(|seen| ok(seen.field("x-forwarded-for").unwrap_or_default()));
    let request = Req::get("/account").field("connection", "x-forwarded-for, host, via");
    site.request(request).await.status(200).body("127.0.0.1");
    let seen = origin.last("/account");
    assert_eq!(seen.field("host").as_deref(), Some(HOST));
    assert_eq!(seen.field("via").as_deref(), Some("1.1 seawall"));
}

/// The origin may be asked for a host of its own.
#[tokio::test]
async fn the_host_for_the_origin_can_be_set() {
    let (origin, site) = site_with("[origin]\nhost = \"internal.example\"").await;
    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200);
    assert_eq!(origin.last("/post").field("host").as_deref(), Some("internal.example"));
    assert_eq!(origin.last("/post").field("x-forwarded-host").as_deref(), Some(HOST));
}

/// What is end-to-end arrives as it was sent, also with content.
#[tokio::test]
async fn a_post_arrives_as_it_was_sent() {
    let (origin, site) = site().await;
    origin.on(post("/webhook")).reply(ok("thanks"));
    let body: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let request =
        Req::post("/webhook").field("content-type", "application/octet-stream").field("stripe-signature", "t=1,v1=ab").body(body.clone());
    site.request(request).await.status(200).body("thanks");
    let seen = origin.last("/webhook");
    assert_eq!(seen.body, body);
    assert_eq!(seen.field("stripe-signature").as_deref(), Some("t=1,v1=ab"));
    assert_eq!(seen.field("content-length").as_deref(), Some("10000"));
}

/// Connections to the origin are kept and used again.
#[tokio::test]
async fn origin_connections_are_reused() {
    let (origin, site) = site().await;
    origin.on(get("/*")).reply(ok("text"));
    for number in 0..10 {
        site.get(&format!("/{number}")).await.status(200);
    }
    assert_eq!(origin.connections(), 1);
}

/// RFC 9112 §6.3, rule 4: under a transfer coding that is none, content ends with the connection. It goes on without the field, in a framing
/// of our own, and the connection is not used again.
#[tokio::test]
async fn content_under_a_transfer_coding_that_is_none_ends_with_the_connection() {
    let (origin, site) = site().await;
    origin.on(get("/post")).once().reply(raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: x-own\r\n\r\nto the end"));
    site.get("/post").await.status(200).body("to the end").no_field("x-own");
    site.has_read_all().await;
    site.get("/post").await.status(200).body("to the end").cache_status("hit").no_field("transfer-encoding");
    origin.on(get("/other")).reply(ok("other"));
    site.get("/other").await.status(200).body("other");
    assert_eq!(origin.connections(), 2);
}

/// RFC 9112 §6.1, §7.4: a length beside a transfer coding, or a real coding that nobody asked for, is not passed on.
#[tokio::test]
async fn content_that_cannot_be_read_for_certain_is_refused() {
    for fields in ["Transfer-Encoding: x-own\r\nContent-Length: 4", "Transfer-Encoding: gzip", "Transfer-Encoding: x-own, chunked"] {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply(raw(format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}\r\n\r\ntext")));
        site.get("/post").await.status(502);
    }
}
