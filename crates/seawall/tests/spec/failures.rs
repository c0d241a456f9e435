//! What one request brings on itself says nothing about others: an origin that fails over one address, one field or one client is there for
//! everybody else. RFC 5861 §4, RFC 9111 §4.

use testkit::{Client, Gate, Reply, Req, get, ok, patiently, raw, secs, status};

use crate::site::{Site, site, site_with};

/// Not this test's subject: a wait that is over soon.
const IMPATIENT: &str = "[origin]\ncollapse_wait = \"50ms\"";

fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "max-age=10")
}

async fn sent(site: &Site, request: Req) -> Client {
    let mut client = site.client().await;
    client.send(request).await;
    client
}

/// nginx's `return 444`, a worker that is killed over one page, an application that writes a control byte into a field.
#[tokio::test]
async fn an_address_over_which_the_origin_hangs_up_takes_nothing_else_away() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("v1"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post")).reply(page("v2"));
    origin.on(get("/new")).reply(ok("new"));
    let nothings = ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nx: \0\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"];
    for (number, nothing) in nothings.iter().enumerate() {
        origin.on(get(&format!("/{number}"))).reply(raw(*nothing));
        for _ in 0..4 {
            site.get(&format!("/{number}")).await.status(502);
        }
    }
    site.get("/new").await.status(200).body("new");
    site.get("/post").await.body("v2").x_cache("EXPIRED");
}

/// Requests of any method, and with content too, take nothing else away.
#[tokio::test]
async fn requests_that_the_origin_does_not_answer_in_time_take_nothing_else_away() {
    let (origin, site) = site_with("[origin]\nfirst_byte_timeout = \"100ms\"").await;
    let never = Gate::new();
    for method in ["GET", "POST", "OPTIONS"] {
        origin.on(testkit::method(method, "/slow").any_query()).reply(ok("late").gate(&never));
    }
    origin.on(get("/post")).reply(page("v1"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post")).reply(page("v2"));
    origin.on(get("/new")).reply(ok("new"));
    for request in [Req::get("/slow"), Req::get("/slow?a"), Req::post("/slow").body("hello"), Req::new("OPTIONS", "/slow")] {
        site.request(request).await.status(504);
    }
    site.get("/new").await.status(200).body("new");
    site.get("/post").await.body("v2").x_cache("EXPIRED");
}

/// The stale copy stands in for the one page, and for no other.
#[tokio::test]
async fn an_error_on_one_page_keeps_no_other_page_old() {
    let (origin, site) = site().await;
    let failures = [status(500), status(503), raw(""), raw("nonsense\r\n\r\n")];
    for (number, failure) in failures.into_iter().enumerate() {
        let (broken, fine) = (format!("/{number}"), format!("/{number}/fine"));
        origin.on(get(&broken)).reply(page("old"));
        origin.on(get(&fine)).reply(page("v1"));
        site.get(&broken).await.body("old");
        site.get(&fine).await.body("v1");
        site.clock.advance(secs(20));
        origin.on(get(&broken)).reply(failure);
        origin.on(get(&fine)).reply(page("v2"));
        site.get(&broken).await.body("old").x_cache("STALE");
        site.get(&fine).await.body("v2").x_cache("EXPIRED");
    }
}

/// Who reads is told what is wrong. Who writes has written nothing yet, and may do it again: clients try again after a 503, and not after a 502
/// (RFC 9110 §15.6.4). Whatever fails later may have been carried out.
#[tokio::test]
async fn who_writes_to_an_origin_that_cannot_be_reached_is_told_to_come_again() {
    for kind in ["generic", "wordpress", "ghost"] {
        let (origin, site) = site_with(&format!("kind = \"{kind}\"")).await;
        for method in ["POST", "PUT", "DELETE"] {
            origin.on(testkit::method(method, "/form")).reply(raw(""));
            site.request(Req::new(method, "/form").body("x=1")).await.status(502).has_field("retry-after");
        }
        origin.kill();
        for method in ["POST", "PUT", "DELETE"] {
            let answer = site.request(Req::new(method, "/form").body("x=1")).await.status(503).has_field("retry-after");
            answer.body_contains("does not answer right now");
        }
        site.get("/new").await.status(502).has_field("retry-after");
    }
}

/// A page whose refresh has just failed is not asked for by each of its readers; and as soon as its origin is well again, it is new.
#[tokio::test]
async fn a_failing_page_is_asked_for_now_and_then_and_behind_its_readers() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("v1"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post")).reply(status(500));
    site.get("/post").await.body("v1").cache_status("fwd=stale; detail=http_response_status").x_cache("STALE");
    for _ in 0..50 {
        site.get("/post").await.body("v1").cache_status("hit").x_cache("STALE");
    }
    origin.until_count("/post", 3).await;
    assert_eq!(origin.count("/post"), 3, "the first page, its reader's refresh, and one that is the site's own");
    origin.on(get("/post")).reply(page("v2"));
    site.clock.advance(secs(1));
    site.get("/post").await.body("v1").x_cache("STALE");
    origin.until_count("/post", 4).await;
    patiently("for the new page", async { while site.get("/post").await.text() != "v2" {} }).await;
    site.get("/post").await.body("v2").x_cache("HIT");
}

/// Whoever knows a field over which the origin fails keeps no page old with it.
#[tokio::test]
async fn a_strangers_field_does_not_keep_a_page_old() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("v1"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post")).reply(page("v2"));
    origin.on(get("/post").field("x-fail", "1")).reply(status(500));
    site.request(Req::get("/post").field("x-fail", "1")).await.body("v1").x_cache("STALE");
    // The stranger again, first after the failure: what is asked now does not say what the stranger says.
    site.request(Req::get("/post").field("x-fail", "1")).await.body("v1").x_cache("STALE");
    origin.until_count("/post", 3).await;
    patiently("for the new page", async { while site.get("/post").await.text() != "v2" {} }).await;
    site.get("/post").await.body("v2").x_cache("HIT");
}

/// There is nobody else to ask, so asking never ends: the first reader after the recovery sees it.
#[tokio::test]
async fn a_page_that_was_never_stored_is_there_the_moment_the_origin_is_back() {
    let (origin, site) = site().await;
    origin.on(get("/new")).reply(ok("new"));
    origin.on(get("/post")).reply(page("v1"));
    site.get("/post").await.body("v1");
    origin.kill();
    site.clock.advance(secs(20));
    for _ in 0..20 {
        site.get("/new").await.status(502).cache_status("detail=connection_refused");
        site.get("/post").await.body("v1").x_cache("STALE");
    }
    origin.revive();
    origin.on(get("/post")).reply(page("v2"));
    site.get("/new").await.status(200).body("new");
    // That told of the recovery, so nobody waits for the end of a pause.
    site.get("/post").await.body("v2").x_cache("EXPIRED");
}

/// An origin that takes connections and says nothing: readers get the stale copy after a short wait, and then without any.
#[tokio::test]
async fn a_silent_origin_is_not_waited_for_where_a_copy_may_stand_in() {
    let (origin, site) = site_with(IMPATIENT).await;
    let gate = Gate::new();
    for target in ["/a", "/b"] {
        origin.on(get(target)).reply(page("v1"));
        site.get(target).await.body("v1");
    }
    site.clock.advance(secs(20));
    origin.on(get("/a")).reply(page("v2").gate(&gate));
    origin.on(get("/b")).reply(page("v2"));
    let leader = sent(&site, Req::get("/a")).await;
    gate.arrived().await;
    let follower = sent(&site, Req::get("/a").field("user-agent", "another")).await;
    for mut client in [leader, follower] {
        client.read_answer().await.status(200).body("v1").x_cache("STALE");
    }
    site.get("/a").await.body("v1").cache_status("hit").x_cache("STALE");
    site.get("/b").await.body("v2").x_cache("EXPIRED");
    // What was waited for is stored when it comes.
    gate.open();
    while site.get("/a").await.text() != "v2" {}
}

/// What must not be served stale is waited for.
#[tokio::test]
async fn a_page_that_may_not_be_stale_is_waited_for() {
    let (origin, site) = site_with(IMPATIENT).await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=10, must-revalidate"));
    origin.on(get("/other")).reply(page("v1"));
    site.get("/post").await.body("v1");
    site.get("/other").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post")).reply(ok("v2").gate(&gate));
    origin.on(get("/other")).reply(page("v2").gate(&gate));
    let mut client = sent(&site, Req::get("/post")).await;
    gate.arrived().await;
    // Whoever asks later for what may be stale has waited by now, so this one has as well.
    site.get("/other").await.body("v1").x_cache("STALE");
    gate.open();
    client.read_answer().await.body("v2");
}

/// A field that makes the origin slow is that client's own affair.
#[tokio::test]
async fn a_request_that_the_origin_is_slow_over_holds_up_nobody_who_asks_otherwise() {
    for (name, value) in [("x-slow", "1"), ("user-agent", "odd"), ("referer", "https://else.example/"), ("accept-language", "tlh")] {
        let (origin, site) = site_with(IMPATIENT).await;
        let gate = Gate::new();
        origin.on(get("/post")).reply(page("text"));
        origin.on(get("/post").field(name, value)).reply(page("slow").gate(&gate));
        let mut slow = sent(&site, Req::get("/post").field(name, value)).await;
        gate.arrived().await;
        site.get("/post").await.status(200).body("text");
        site.get("/post").await.body("text").cache_status("hit");
        gate.open();
        slow.read_answer().await.status(200);
    }
}

/// Many who say the same as the leader would get nothing else by asking themselves: a slow page is asked for once.
#[tokio::test]
async fn a_slow_page_is_asked_for_once_by_all_who_say_the_same() {
    let (origin, site) = site_with(IMPATIENT).await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text").gate(&gate));
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(sent(&site, Req::get("/post")).await);
    }
    gate.arrived().await;
    let mut other = sent(&site, Req::get("/post").field("user-agent", "another")).await;
    // Whoever says something else asks as well, once for all who say that.
    gate.arrived_count(2).await;
    gate.open();
    for client in crowd.iter_mut().chain([&mut other]) {
        client.read_answer().await.status(200).body("text");
    }
    assert_eq!(origin.count("/post"), 2);
}

/// Whom it concerns gets the error; the others' requests are sent, one of them first.
#[tokio::test]
async fn an_error_over_a_strangers_field_is_not_handed_to_those_who_wait() {
    for failure in [status(500), status(503), raw(""), raw("nonsense\r\n\r\n")] {
        let (origin, site) = site().await;
        let gate = Gate::new();
        origin.on(get("/post")).reply(page("text"));
        origin.on(get("/post").field("x-fail", "1")).reply(failure.gate(&gate));
        let mut leader = sent(&site, Req::get("/post").field("x-fail", "1")).await;
        gate.arrived().await;
        let mut same = sent(&site, Req::get("/post").field("x-fail", "1")).await;
        let mut crowd = Vec::new();
        for _ in 0..20 {
            crowd.push(sent(&site, Req::get("/post")).await);
        }
        site.has_read_all().await;
        gate.open();
        for client in &mut crowd {
            client.read_answer().await.status(200).body("text");
        }
        for client in [&mut leader, &mut same] {
            assert!(client.read_answer().await.code >= 500);
        }
        assert_eq!(origin.count("/post"), 2);
    }
}

/// However many of them there are, in whichever order.
#[tokio::test]
async fn not_even_many_strangers_decide_what_another_gets() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let reply_gate = gate.clone();
    origin.on(get("/post")).reply_with(move |seen| match seen.field("x-fail") {
        Some(_) => status(500).gate(&reply_gate),
        None => page("text"),
    });
    let mut strangers = vec![sent(&site, Req::get("/post").field("x-fail", "0")).await];
    origin.until_count("/post", 1).await;
    for number in 1..20 {
        strangers.push(sent(&site, Req::get("/post").field("x-fail", number.to_string())).await);
    }
    let mut visitor = sent(&site, Req::get("/post")).await;
    site.has_read_all().await;
    gate.open();
    visitor.read_answer().await.status(200).body("text");
}

/// A crowd that says the same costs a failing origin one request; one whose members each say something else a bounded number at once.
#[tokio::test]
async fn a_failing_origin_is_not_asked_by_a_whole_crowd_at_once() {
    let (origin, site) = site_with("[origin]\nconcurrency = 16").await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(status(503).body("busy").gate(&gate));
    let mut crowd = vec![sent(&site, Req::get("/post")).await];
    gate.arrived().await;
    for number in 0..300 {
        let agent = if number < 150 { "the same".to_owned() } else { format!("agent {number}") };
        crowd.push(sent(&site, Req::get("/post").field("user-agent", agent)).await);
    }
    site.has_read_all().await;
    gate.open();
    for mut client in crowd {
        client.read_answer().await.status(503);
    }
    // Those that lead after each other, and as many as may ask on their own at once.
    assert!(origin.count("/post") <= 4 + 16, "{} requests", origin.count("/post"));
}

/// A fetch that nobody reads gives its place to one that somebody waits for: before its head has come,
#[tokio::test]
async fn clients_that_have_left_hold_no_places_while_their_pages_are_waited_for() {
    let (origin, site) = site_with("[origin]\nconcurrency = 2").await;
    let gate = Gate::new();
    origin.on(get("/new")).reply(ok("new"));
    for target in ["/a", "/b", "/c"] {
        origin.on(get(target)).reply(page("late").gate(&gate));
    }
    let mut gone = Vec::new();
    for target in ["/a", "/b"] {
        gone.push(sent(&site, Req::get(target)).await);
    }
    gate.arrived_count(2).await;
    // One that still waits for its turn.
    gone.push(sent(&site, Req::get("/c")).await);
    site.has_read_all().await;
    for client in gone {
        client.reset();
    }
    site.get("/new").await.status(200).body("new");
}

/// and while its content is coming.
#[tokio::test]
async fn clients_that_have_left_hold_no_places_while_their_downloads_come() {
    for fields in [&[("cache-control", "max-age=60")][..], &[("cache-control", "no-store")]] {
        let (origin, site) = site_with("[origin]\nconcurrency = 2").await;
        let gate = Gate::new();
        origin.on(get("/new")).reply(ok("new"));
        for target in ["/a", "/b"] {
            let reply = ok("0123456789").gate_after(5, &gate);
            origin.on(get(target)).reply(fields.iter().fold(reply, |reply, (name, value)| reply.field(name, *value)));
            let mut client = sent(&site, Req::get(target)).await;
            client.read_head().await.status(200);
            assert_eq!(client.read_body_bytes(5).await, "01234");
            client.reset();
        }
        site.get("/new").await.status(200).body("new");
    }
}

/// Somebody else who reads it keeps it.
#[tokio::test]
async fn a_download_that_another_still_reads_keeps_its_place() {
    let (origin, site) = site_with("[origin]\nconcurrency = 1").await;
    let gate = Gate::new();
    origin.on(get("/new")).reply(ok("new"));
    origin.on(get("/a")).reply(page("0123456789").gate_after(5, &gate));
    let mut leader = sent(&site, Req::get("/a")).await;
    leader.read_head().await.status(200);
    let mut follower = sent(&site, Req::get("/a")).await;
    follower.read_head().await.status(200).cache_status("collapsed");
    leader.reset();
    let mut other = sent(&site, Req::get("/new")).await;
    site.has_read_all().await;
    gate.open();
    assert_eq!(follower.read_body_bytes(10).await, "0123456789");
    other.read_answer().await.status(200).body("new");
}

/// Whoever asks for a page whose fetch was given up begins it again.
#[tokio::test]
async fn a_fetch_that_was_given_up_can_be_begun_again() {
    let (origin, site) = site_with("[origin]\nconcurrency = 1").await;
    let gate = Gate::new();
    origin.on(get("/new")).reply(ok("new"));
    origin.on(get("/a")).reply(page("text"));
    origin.on(get("/a")).once().reply(page("text").gate_after(2, &gate));
    let mut client = sent(&site, Req::get("/a")).await;
    client.read_head().await.status(200);
    client.reset();
    site.get("/new").await.status(200);
    site.get("/a").await.status(200).body("text");
    assert_eq!(origin.count("/a"), 2);
}

/// RFC 9111 §3 lets errors be stored that say for how long; one that a request may have brought on itself is not an answer to others.
#[tokio::test]
async fn an_error_that_a_request_brought_on_itself_is_not_stored_for_others() {
    for code in [400, 403, 406, 408, 411, 413, 415, 421, 422, 425, 426, 429, 431, 499, 500, 503] {
        for (name, value) in [("x-bad", "1"), ("user-agent", "odd"), ("accept-language", "tlh"), ("range", "bytes=x"), ("if-match", "x")] {
            let (origin, site) = site().await;
            let text = || ok("text").field("cache-control", "max-age=60");
            origin.on(get("/post")).reply(text());
            origin.on(get("/post").field(name, value)).reply(status(code).field("cache-control", "max-age=60").body("bad"));
            site.request(Req::get("/post").field(name, value)).await.status(code);
            site.get("/post").await.status(200).body("text");
            site.request(Req::get("/post").field("x-other", "1")).await.status(200).body("text");
        }
    }
}

/// Nor do those who wait beside it get it,
#[tokio::test]
async fn an_error_with_a_lifetime_is_not_handed_to_those_who_wait() {
    for code in [400, 413, 500] {
        let (origin, site) = site().await;
        let gate = Gate::new();
        origin.on(get("/post")).reply(page("text"));
        origin.on(get("/post").field("x-bad", "1")).reply(status(code).field("cache-control", "max-age=60").body("bad").gate(&gate));
        let mut leader = sent(&site, Req::get("/post").field("x-bad", "1")).await;
        gate.arrived().await;
        let mut visitor = sent(&site, Req::get("/post")).await;
        site.has_read_all().await;
        gate.open();
        visitor.read_answer().await.status(200).body("text");
        leader.read_answer().await.status(code);
    }
}

/// nor does it take the place of the page.
#[tokio::test]
async fn an_error_with_a_lifetime_leaves_the_stored_page_where_it_is() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("v1"));
    site.get("/post").await.body("v1");
    site.clock.advance(secs(20));
    origin.on(get("/post").field("x-bad", "1")).reply(status(400).field("cache-control", "max-age=60").body("bad"));
    site.request(Req::get("/post").field("x-bad", "1")).await.status(400);
    origin.kill();
    site.get("/post").await.status(200).body("v1").x_cache("STALE");
}

/// Whoever asks again like that is answered from the cache, as RFC 9111 §3 has it, without the origin having to say it twice.
#[tokio::test]
async fn an_error_with_a_lifetime_answers_requests_like_the_one_that_got_it() {
    for code in [400, 403, 422, 499, 500, 502, 503, 504, 599] {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply(status(code).field("cache-control", "max-age=60").body("bad"));
        for (number, came) in [("1", "fwd=uri-miss; stored"), ("2", "hit")] {
            let request = Req::get("/post").field("user-agent", "a").field("x-number", number);
            site.request(request).await.status(code).body("bad").cache_status(came);
        }
        assert_eq!(origin.count("/post"), 1);
    }
}
