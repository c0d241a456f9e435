//! When there is nothing to give: RFC 9110 §15.6.3 (502), §15.6.4 (503), §15.6.5 (504), §10.2.3 (Retry-After); RFC 9209 (Proxy-Status).

use testkit::{Gate, Req, get, ok, secs};

use crate::site::{site, site_with};

/// A page for people, a reason for whoever runs the site, a time to come back, and nothing for caches.
#[tokio::test]
async fn an_origin_that_refuses_is_502() {
    let (origin, site) = site().await;
    origin.kill();
    let answer = site.get("/post").await.status(502).field("retry-after", "5").field("cache-control", "no-store");
    let answer = answer.field("content-type", "text/html; charset=utf-8").field("proxy-status", "seawall; error=connection_refused");
    let answer =
        answer.body_contains("does not answer right now").cache_status("fwd=uri-miss; detail=connection_refused").no_cache_status("stored");
    // Where the origin is, and what the system said, is nobody's business.
    assert!(!answer.text().contains("127.0.0.1"), "{answer}");

    origin.revive();
    origin.on(get("/post")).reply(ok("text"));
    site.get("/post").await.status(200).body("text");
}

/// An origin that takes too long is 504.
#[tokio::test]
async fn an_origin_that_says_nothing_is_504() {
    let (origin, site) = site_with("[origin]\nfirst_byte_timeout = \"200ms\"").await;
    origin.accept_but_never_answer();
    site.get("/post").await.status(504).has_field("retry-after").field("proxy-status", "seawall; error=connection_read_timeout");
    site.request(Req::post("/form").body("a=1")).await.status(504);
}

/// A pause in the middle of a response ends it: the client can tell, and nothing is stored.
#[tokio::test]
async fn a_response_that_stalls_is_cut_short() {
    let (origin, site) = site_with("[origin]\nbetween_bytes_timeout = \"200ms\"").await;
    let gate = Gate::new();
    let page = || ok("0123456789").field("cache-control", "max-age=60");
    origin.on(get("/post")).reply(page());
    origin.on(get("/post")).once().reply(page().gate_after(5, &gate));
    site.get("/post").await.status(200).truncated();
    site.get("/post").await.status(200).body("0123456789").cache_status("fwd=uri-miss");
    gate.open();
}

/// More than the origin can take is told to come back, at once; what is stored is served all the same.
#[tokio::test]
async fn a_full_queue_is_503_and_what_is_stored_is_served() {
    let (origin, site) = site_with("[origin]\nconcurrency = 1\nqueue = 0").await;
    origin.on(get("/stored")).reply(ok("text").field("cache-control", "max-age=10"));
    site.get("/stored").await.body("text");
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    let mut slow = site.client().await;
    slow.send(Req::get("/slow")).await;
    gate.arrived().await;

    let answer = site.get("/other").await.status(503).field("retry-after", "5").body_contains("very busy");
    answer.field("proxy-status", "seawall; error=connection_limit_reached");
    site.get("/stored").await.status(200).cache_status("hit");
    site.clock.advance(secs(10));
    site.get("/stored").await.status(200).body("text").x_cache("STALE");
    gate.open();
    slow.read_answer().await.status(200).body("slow");
}

/// Those who wait have their turn.
#[tokio::test]
async fn a_queue_is_worked_off_in_order() {
    let (origin, site) = site_with("[origin]\nconcurrency = 1\nqueue = 10").await;
    let gate = Gate::new();
    origin.on(get("/*")).reply(ok("text").gate(&gate));
    let mut waiting = Vec::new();
    for number in 0..5 {
        let mut client = site.client().await;
        client.send(Req::get(&format!("/{number}"))).await;
        waiting.push(client);
        gate.arrived().await;
    }
    site.has_read_all().await;
    assert_eq!(gate.arrivals(), 1);
    gate.open();
    for mut client in waiting {
        client.read_answer().await.status(200).body("text");
    }
    let targets: Vec<_> = origin.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/0", "/1", "/2", "/3", "/4"]);
}

/// What the origin itself has to say about an error is passed on as it is.
#[tokio::test]
async fn an_error_of_the_origin_is_its_own() {
    let (origin, site) = site().await;
    for code in [400, 401, 402, 403, 404, 410, 500, 503] {
        let target = format!("/{code}");
        origin.on(get(&target)).reply(testkit::status(code).body("my own words").field("cache-control", "no-store").field("x-own", "1"));
        site.get(&target).await.status(code).body("my own words").field("x-own", "1").no_cache_status("stored");
    }
}
