//! Collapsed requests: RFC 9111 §4 ("collapse requests"), RFC 9211 §2.6. The third promise: one crowd, one origin request.

use bytes::Bytes;
use testkit::{Client, Gate, Req, get, ok, secs, status};

use crate::site::{Site, site, site_with};

/// Returns `n` connections, each of which has sent a GET for `target`.
async fn crowd(site: &Site, n: usize, target: &str) -> Vec<Client> {
    let mut crowd = Vec::with_capacity(n);
    for _ in 0..n {
        let mut client = site.client().await;
        client.send(Req::get(target)).await;
        crowd.push(client);
    }
    crowd
}

/// All of them read while it grows: the first half reaches everybody before the origin has sent the second.
#[tokio::test]
async fn a_thousand_readers_of_a_cold_page_cost_one_request() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let page = Bytes::from("a page that is read by many ".repeat(1_000));
    let half = page.len() / 2;
    origin.on(get("/post")).reply(ok(page.clone()).field("cache-control", "max-age=60").gate_after(half, &gate));
    let mut crowd = crowd(&site, 1_000, "/post").await;
    let mut collapsed = 0;
    for client in &mut crowd {
        let head = client.read_head().await.status(200).cache_status("fwd=uri-miss; stored");
        collapsed += usize::from(head.value("cache-status").is_some_and(|value| value.ends_with("collapsed")));
        assert_eq!(client.read_body_bytes(half).await, page[..half]);
    }
    gate.open();
    for client in &mut crowd {
        assert_eq!(client.read_body_bytes(page.len() - half).await, page[half..]);
        assert!(client.read_body_chunk().await.is_none() && !client.is_cut_short());
    }
    assert_eq!((origin.count("/post"), collapsed), (1, 999));
    site.get("/post").await.body(&page).cache_status("hit");
}

/// Workers share one fetch: the crowd is spread over threads, the fetch is not.
#[tokio::test]
async fn workers_share_one_fetch() {
    let (origin, site) = site_with("[server]\nworkers = 2").await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("0123456789").field("cache-control", "max-age=60").gate_after(5, &gate));
    let mut crowd = crowd(&site, 64, "/post").await;
    for client in &mut crowd {
        client.read_head().await.status(200);
        assert_eq!(client.read_body_bytes(5).await, "01234");
    }
    gate.open();
    for client in &mut crowd {
        assert_eq!(client.read_body_bytes(5).await, "56789");
    }
    assert_eq!(origin.count("/post"), 1);
}

/// A stale page is validated once for all who wait.
#[tokio::test]
async fn a_validation_is_shared() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    site.get("/post").await;
    site.clock.advance(secs(10));
    let gate = Gate::new();
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(testkit::not_modified().gate(&gate));
    let crowd = crowd(&site, 50, "/post").await;
    site.has_read_all().await;
    gate.open();
    for mut client in crowd {
        client.read_answer().await.status(200).body("text").cache_status("fwd=stale; fwd-status=304");
    }
    assert_eq!(origin.count("/post"), 2);
}

/// What turns out to be for one client alone is fetched by all the others at once, not one after the other; and remembered.
#[tokio::test]
async fn what_cannot_be_shared_is_not_queued_for() {
    let (origin, site) = site().await;
    let (first, second) = (Gate::new(), Gate::new());
    origin.on(get("/cart")).reply(ok("text").field("cache-control", "no-store").gate(&second));
    origin.on(get("/cart")).once().reply(ok("text").field("cache-control", "no-store").gate(&first));
    let waiting = crowd(&site, 10, "/cart").await;
    first.arrived().await;
    site.has_read_all().await;
    assert_eq!((first.arrivals(), origin.count("/cart")), (1, 1));
    first.open();
    // All nine stand at the origin side by side.
    second.arrived_count(9).await;
    let later = crowd(&site, 5, "/cart").await;
    second.arrived_count(14).await;
    second.open();
    for mut client in waiting.into_iter().chain(later) {
        client.read_answer().await.status(200).body("text").no_cache_status("stored");
    }
    assert_eq!(origin.count("/cart"), 15);
}

/// The fetch outlives the client that began it.
#[tokio::test]
async fn the_one_who_began_may_leave() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("0123456789").field("cache-control", "max-age=60").gate_after(5, &gate));
    let mut leader = site.client().await;
    leader.send(Req::get("/post")).await;
    gate.arrived().await;
    let mut follower = site.client().await;
    follower.send(Req::get("/post")).await;
    follower.read_head().await.status(200).cache_status("collapsed");
    leader.read_head().await.status(200);
    leader.reset();
    gate.open();
    assert_eq!(follower.read_body_bytes(10).await, "0123456789");
    site.get("/post").await.body("0123456789").cache_status("hit");
    assert_eq!(origin.count("/post"), 1);
}

/// Even if nobody waits any more before the head has come.
#[tokio::test]
async fn a_page_is_stored_although_its_only_reader_has_left() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").gate(&gate));
    let mut client = site.client().await;
    client.send(Req::get("/post")).await;
    gate.arrived().await;
    client.reset();
    gate.open();
    // Joins the fetch or finds what it stored.
    site.get("/post").await.status(200).body("text");
    assert_eq!(origin.count("/post"), 1);
}

/// A failing origin is not asked a thousand times.
#[tokio::test]
async fn a_server_error_is_shared() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(status(503).body("busy").gate(&gate));
    let crowd = crowd(&site, 20, "/post").await;
    site.has_read_all().await;
    gate.open();
    for mut client in crowd {
        client.read_answer().await.status(503);
    }
    assert_eq!(origin.count("/post"), 1);
}

/// A failure is shared, and so is a connection that ends without an answer.
#[tokio::test]
async fn a_failure_is_shared() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(testkit::raw("").gate(&gate));
    let crowd = crowd(&site, 20, "/post").await;
    site.has_read_all().await;
    gate.open();
    for mut client in crowd {
        client.read_answer().await.status(502).cache_status("detail=connection_terminated");
    }
    assert_eq!(origin.count("/post"), 1);
}

/// A response that breaks off under a crowd is cut short for all of them, and for nobody after.
#[tokio::test]
async fn a_broken_response_is_broken_for_all_who_read_it() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let page = || ok("0123456789").field("cache-control", "max-age=60");
    origin.on(get("/post")).reply(page());
    origin.on(get("/post")).once().reply(page().gate_after(5, &gate).break_off_after(5));
    let mut crowd = crowd(&site, 10, "/post").await;
    for client in &mut crowd {
        client.read_head().await.status(200);
    }
    gate.open();
    for mut client in crowd {
        assert_eq!(client.read_body_bytes(5).await, "01234");
        assert!(client.read_body_chunk().await.is_none() && client.is_cut_short());
    }
    site.get("/post").await.status(200).body("0123456789").cache_status("fwd=uri-miss");
}

/// Those whom the answer does not fit ask for their own.
#[tokio::test]
async fn the_answer_in_another_language_is_not_shared() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let page = |language: &'static str| ok(language).field("vary", "accept-language").field("cache-control", "max-age=60");
    origin.on(get("/post").field("accept-language", "en")).reply(page("en").gate(&gate));
    origin.on(get("/post").field("accept-language", "de")).reply(page("de"));
    let mut waiting = Vec::new();
    for language in ["en", "de", "en", "de"] {
        let mut client = site.client().await;
        client.send(Req::get("/post").field("accept-language", language)).await;
        waiting.push((client, language));
        gate.arrived().await;
    }
    site.has_read_all().await;
    gate.open();
    for (mut client, language) in waiting {
        client.read_answer().await.status(200).body(language);
    }
    assert_eq!(origin.count("/post"), 2);
}

/// Members are not collapsed with anybody: their answers are their own.
#[tokio::test]
async fn requests_with_cookies_are_not_collapsed() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let reply_gate = gate.clone();
    origin.on(get("/account")).reply_with(move |seen| ok(seen.field("cookie").unwrap_or_default()).gate(&reply_gate));
    let mut waiting = Vec::new();
    for person in ["anna", "bert"] {
        let mut client = site.client().await;
        client.send(Req::get("/account").field("cookie", format!("session={person}"))).await;
        waiting.push((client, person));
    }
    gate.arrived_count(2).await;
    gate.open();
    for (mut client, person) in waiting {
        client.read_answer().await.body(format!("session={person}"));
    }
}

/// One who does not read holds up nobody.
#[tokio::test]
async fn a_slow_reader_holds_up_nobody() {
    let (origin, site) = site_with("[cache]\nobject_max = \"64MiB\"").await;
    let gate = Gate::new();
    let page = Bytes::from("x".repeat(32 << 20));
    origin.on(get("/post")).reply(ok(page.clone()).field("cache-control", "max-age=60").gate_after(1, &gate));
    let mut crowd = crowd(&site, 4, "/post").await;
    for client in &mut crowd {
        client.read_head().await.status(200);
    }
    gate.open();
    let mut slow = crowd.remove(0);
    for mut client in crowd {
        assert_eq!(client.read_body_bytes(page.len()).await, page);
    }
    assert_eq!(slow.read_body_bytes(page.len()).await, page);
    assert_eq!(origin.count("/post"), 1);
}
