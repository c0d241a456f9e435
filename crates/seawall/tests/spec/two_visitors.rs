//! The two-visitor proof: what was made for one visitor is not stored for others, although no field says so.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

use ::operator::explain;
use admin::Explanation;
use store::{Hardness, PurgeTarget};
use testkit::{Client, Gate, Origin, Reply, Req, exposition, get, ok, post, secs, status};

use crate::{
    operator::Operator,
    site::{HOST, Site, site_with},
};

const PROOF: &str = "[cache]\ntwo_visitor_proof = true";

async fn site() -> (Origin, Site) {
    site_with(PROOF).await
}

/// Returns a page that an origin gives a lifetime to.
fn page(body: impl Into<bytes::Bytes>) -> Reply {
    ok(body).field("content-type", "text/html; charset=utf-8").field("cache-control", "max-age=60")
}

/// Scripts an origin that makes another page for each visit: `visit 1`, `visit 2`, and so on. From the second visit on, they wait for a
/// gate.
fn personal(origin: &Origin, target: &str, gate: &Gate) {
    let (visits, gate) = (AtomicUsize::new(1), gate.clone());
    origin.on(get(target)).reply_with(move |_| match visits.fetch_add(1, SeqCst) {
        1 => page("visit 1"),
        n => page(format!("visit {n}")).gate(&gate),
    });
}

fn open() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

async fn send(site: &Site, n: usize, request: &Req) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..n {
        let mut client = site.client().await;
        client.send(request.clone()).await;
        clients.push(client);
    }
    clients
}

/// Proofs by their result.
async fn proofs(site: &Site, result: &str) -> f64 {
    let operator = Operator::of(site);
    let mut client = Client::connect(operator.address).await.with_host("127.0.0.1");
    let families = exposition::parse(&client.get("/metrics").await.status(200).text());
    let family = families.iter().find(|family| family.name == "seawall_two_visitor_proofs_total").expect("the metric");
    family.value(&[("site", "default"), ("result", result)])
}

fn explained(site: &Site, target: &str) -> Explanation {
    let command = explain::command(&format!("http://{HOST}{target}"), "GET", &[]).expect("a command");
    explain::run(&Operator::of(site).client(), &command).expect("an explanation")
}

#[tokio::test]
async fn a_page_that_is_the_same_for_two_visitors_is_stored() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text").gate(&gate));
    origin.on(get("/post")).once().reply(page("text"));
    // Whether it will be stored is not known yet.
    site.get("/post").await.body("text").cache_status("fwd=uri-miss; detail=two-visitor-proof").no_cache_status("stored");
    gate.arrived().await;
    let waiting = send(&site, 1, &Req::get("/post")).await;
    site.has_read_all().await;
    gate.open();
    for mut client in waiting {
        client.read_answer().await.body("text").cache_status("fwd=uri-miss; fwd-status=200; stored; collapsed");
    }
    site.get("/post").await.body("text").cache_status("hit");
    assert_eq!((origin.count("/post"), proofs(&site, "same").await), (2, 1.0));
}

/// The second request is nobody's: the same page, without what the first client said of itself.
#[tokio::test]
async fn the_second_visit_is_the_same_request_without_a_cookie_a_validator_or_an_address() {
    let (origin, site) = site_with(&format!("[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{PROOF}")).await;
    origin.on(get("/post").any_query()).reply(page("text").field("etag", "\"a\""));
    let first = Req::get("/post?b=2").field("accept-language", "de").field("cookie", "_ga=1").field("if-none-match", "\"b\"");
    site.request(first.field("x-forwarded-for", "203.0.113.7")).await.status(200);
    origin.until_count("/post?b=2", 2).await;
    let second = origin.last("/post?b=2");
    assert_eq!(second.field("accept-language").as_deref(), Some("de"));
    for name in ["cookie", "if-none-match", "if-modified-since"] {
        assert_eq!(second.field(name), None, "{name}");
    }
    assert!(!second.field("x-forwarded-for").unwrap_or_default().contains("203.0.113.7"), "{second:?}");
}

#[tokio::test]
async fn a_page_that_differs_is_never_given_to_a_second_visitor() {
    let (origin, site) = site().await;
    personal(&origin, "/cart", &open());
    site.get("/cart").await.body("visit 1").no_cache_status("stored");
    // The second and the third visit are those of the proof.
    for n in [4, 5, 6] {
        let answer = site.get("/cart").await.body(format!("visit {n}"));
        answer.cache_status("detail=two-visitors-differ").no_cache_status("stored");
    }
    assert_eq!(proofs(&site, "differs").await, 1.0);
}

#[tokio::test]
async fn nor_when_all_come_at_once() {
    let (origin, site) = site().await;
    let (first, later) = (Gate::new(), Gate::new());
    personal(&origin, "/cart", &later);
    origin.on(get("/cart")).once().reply(page("visit 0").gate(&first));
    let during_the_first = send(&site, 10, &Req::get("/cart")).await;
    first.arrived().await;
    site.has_read_all().await;
    first.open();
    let during_the_second = send(&site, 10, &Req::get("/cart")).await;
    site.has_read_all().await;
    later.open();
    let mut seen = BTreeSet::new();
    for mut client in during_the_first.into_iter().chain(during_the_second) {
        assert!(seen.insert(client.read_answer().await.status(200).text()), "{seen:?}");
    }
    assert_eq!(seen.len(), 20);
}

/// What makes the difference is the address: that of the second visitor is nobody's. The third visit is from the address of the first, so this is
/// not taken for a page that differs the first time alone.
#[tokio::test]
async fn a_page_that_shows_the_address_of_its_visitor_is_not_stored() {
    let (origin, site) = site_with(&format!("[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{PROOF}")).await;
    origin.on(get("/whoami")).reply_with(|seen| page(seen.field("x-forwarded-for").unwrap_or_default()));
    for address in ["203.0.113.7", "203.0.113.8", "203.0.113.7"] {
        let answer = site.request(Req::get("/whoami").field("x-forwarded-for", address)).await;
        answer.body_contains(address).no_cache_status("stored");
    }
}

#[tokio::test]
async fn explain_names_what_differs() {
    let (origin, site) = site().await;
    let visits = AtomicUsize::new(1);
    let text = |n: usize| format!("<p>Hello</p><input name=\"token\" value=\"{n:04}-{n:04}\"><p>and a long text</p>");
    origin.on(get("/form")).reply_with(move |_| page(text(visits.fetch_add(1, SeqCst))));
    site.get("/form").await.status(200);
    site.get("/form").await.cache_status("detail=two-visitors-differ");
    let explained = explained(&site, "/form");
    let not_kept = explained.not_kept.as_ref().expect("a reason");
    assert_eq!((not_kept.reason.as_str(), not_kept.status), ("two-visitors-differ", Some(200)));
    let difference = not_kept.difference.as_deref().expect("the difference");
    // `<p>Hello</p><input name="token" value="000` is 42 bytes long.
    assert!(difference.starts_with("at byte 42, "), "{difference}");
    assert!(difference.ends_with("\"1-0001\" and \"2-0002\""), "{difference}");
    assert!(!difference.contains("long text"), "{difference}");
    assert!(explained.uncacheable_seconds > Some(60), "{explained:?}");
    let shown = explain::text(&explained, false);
    assert!(shown.contains("two-visitors-differ") && shown.contains(difference), "{shown}");
}

/// It is proven anew after a while.
#[tokio::test]
async fn a_page_that_is_mended_is_stored_again() {
    let (origin, site) = site().await;
    personal(&origin, "/post", &open());
    site.get("/post").await;
    site.get("/post").await.cache_status("detail=two-visitors-differ");
    origin.expect_nothing();
    origin.on(get("/post")).reply(page("text"));
    site.clock.advance(secs(599));
    site.get("/post").await.cache_status("detail=two-visitors-differ");
    site.clock.advance(secs(1));
    site.get("/post").await.cache_status("detail=two-visitor-proof");
    site.get("/post").await.body("text");
    site.get("/post").await.body("text").cache_status("hit");
    assert_eq!(explained(&site, "/post").not_kept, None);
}

/// A Ghost that has just started names the original of a post's picture, and from then on the smaller one.
#[tokio::test]
async fn a_page_that_differs_the_first_time_alone_is_stored_as_it_is_then() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("size/w1200/a.png").field("etag", "\"b\""));
    origin.on(get("/post")).once().reply(page("a.png").field("etag", "\"a\""));
    site.get("/post").await.body("a.png");
    site.get("/post").await.body("size/w1200/a.png").field("etag", "\"b\"");
    site.get("/post").await.body("size/w1200/a.png").cache_status("hit");
    assert_eq!((origin.count("/post"), proofs(&site, "warm-up").await), (3, 1.0));
}

/// A failure is not a difference: the page is stored, and the next storing tries again.
#[tokio::test]
async fn a_second_visit_that_fails_proves_nothing() {
    for (failure, result) in [(status(503), "failed"), (page("text").break_off_after(2), "failed")] {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply(page("text"));
        origin.on(get("/post")).once().reply(failure);
        origin.on(get("/post")).once().reply(page("text"));
        site.get("/post").await.body("text");
        site.get("/post").await.body("text").no_cache_status("detail=two-visitors-differ");
        site.get("/post").await.body("text").cache_status("hit");
        assert_eq!((origin.count("/post"), proofs(&site, result).await), (2, 1.0));
        assert_eq!(explained(&site, "/post").not_kept, None);
        site.clock.advance(secs(61));
        site.get("/post").await.body("text").cache_status("fwd=stale; detail=two-visitor-proof");
        origin.until_count("/post", 4).await;
        site.get("/post").await.body("text");
        site.get("/post").await.cache_status("hit");
        assert_eq!(proofs(&site, "same").await, 1.0);
    }
}

/// Whoever is sent to a login, is refused or finds nothing was given another page than the first visitor, whatever it is made of.
#[tokio::test]
async fn a_second_visitor_who_gets_no_page_is_a_difference() {
    let refused = |code: u16| status(code).field("content-type", "text/html").field("location", "/login/").body("refused");
    let other_type = ok("{}").field("content-type", "application/json").field("cache-control", "max-age=60");
    let cases = [401, 403, 302, 404, 410].map(|code| (refused(code), code.to_string()));
    for (second, said) in cases.into_iter().chain([(other_type, "else than HTML".to_owned())]) {
        let (origin, site) = site().await;
        let gate = Gate::new();
        origin.on(get("/post")).reply(page("for a stranger"));
        origin.on(get("/post")).once().reply(second.gate(&gate));
        origin.on(get("/post")).once().reply(page("secret"));
        site.get("/post").await.body("secret").no_cache_status("stored");
        gate.arrived().await;
        let waiting = send(&site, 2, &Req::get("/post")).await;
        site.has_read_all().await;
        gate.open();
        for mut client in waiting {
            client.read_answer().await.body("for a stranger").cache_status("detail=two-visitors-differ").no_cache_status("stored");
        }
        site.get("/post").await.body("for a stranger").cache_status("detail=two-visitors-differ");
        assert_eq!(proofs(&site, "differs").await, 1.0, "{said}");
        let difference = explained(&site, "/post").not_kept.and_then(|not_kept| not_kept.difference).expect("a difference");
        assert!(difference.contains(&said), "{difference}");
    }
}

/// An origin that wants fewer requests has not said who may see the page. Nobody is given another one's, and it is tried again soon.
#[tokio::test]
async fn a_second_visit_that_comes_too_often_for_the_origin_is_made_up_for() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/post")).once().reply(status(429).gate(&gate));
    origin.on(get("/post")).once().reply(page("text"));
    site.get("/post").await.body("text").no_cache_status("stored");
    gate.arrived().await;
    let waiting = send(&site, 2, &Req::get("/post")).await;
    site.has_read_all().await;
    gate.open();
    for mut client in waiting {
        client.read_answer().await.body("text").cache_status("detail=two-visitor-proof").no_cache_status("stored");
    }
    assert_eq!((origin.count("/post"), proofs(&site, "skipped").await), (4, 1.0));
    site.clock.advance(secs(2));
    site.get("/post").await.body("text").no_cache_status("stored");
    site.get("/post").await.body("text");
    site.get("/post").await.cache_status("hit");
    assert_eq!((origin.count("/post"), proofs(&site, "same").await), (6, 1.0));
}

/// With the third visit failing nobody knows; then nobody gets another one's page.
#[tokio::test]
async fn two_pages_that_differ_are_not_stored_where_the_third_visit_fails() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("third"));
    origin.on(get("/post")).once().reply(status(503));
    origin.on(get("/post")).once().reply(page("second"));
    origin.on(get("/post")).once().reply(page("first"));
    site.get("/post").await.body("first");
    site.get("/post").await.body("third").no_cache_status("stored");
    site.clock.advance(secs(61));
    site.get("/post").await.body("third");
    site.get("/post").await.body("third");
    site.get("/post").await.body("third").cache_status("hit");
}

/// The origin says of the second visitor's page that it is nobody else's.
#[tokio::test]
async fn a_second_visit_that_may_not_be_stored_is_a_difference() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/post")).once().reply(page("text").field("set-cookie", "bucket=b"));
    origin.on(get("/post")).once().reply(page("text"));
    site.get("/post").await.body("text");
    site.get("/post").await.body("text").cache_status("detail=two-visitors-differ");
    let explained = explained(&site, "/post");
    let difference = explained.not_kept.and_then(|not_kept| not_kept.difference).expect("a difference");
    assert!(difference.contains("set-cookie"), "{difference}");
}

/// An edit between the two visits is not a difference between visitors, and what was edited away does not come back.
#[tokio::test]
async fn an_edit_between_the_two_visits_leaves_nothing_old_behind() {
    for hardness in [Hardness::Soft, Hardness::Hard] {
        let (origin, site) = site().await;
        let gate = Gate::new();
        origin.on(get("/post")).reply(page("new").gate(&gate));
        origin.on(get("/post")).once().reply(page("old"));
        site.get("/post").await.body("old");
        gate.arrived().await;
        let before = send(&site, 3, &Req::get("/post")).await;
        site.has_read_all().await;
        site.purge(&PurgeTarget::Url { site: 0, url: format!("{HOST}/post").into_bytes() }, hardness);
        let after = send(&site, 3, &Req::get("/post")).await;
        site.has_read_all().await;
        gate.open();
        for mut client in before.into_iter().chain(after) {
            client.read_answer().await.status(200).body("new");
        }
        site.get("/post").await.body("new").cache_status("hit");
        assert_eq!(proofs(&site, "differs").await, 0.0);
    }
}

/// Nor is it where the page differed already, as it does the first time: the third visit brings the edit, and the page is nobody's own.
#[tokio::test]
async fn an_edit_before_the_third_visit_does_not_make_the_page_personal() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("new").gate(&gate));
    origin.on(get("/post")).once().reply(page("size/w1200/a.png"));
    origin.on(get("/post")).once().reply(page("a.png"));
    site.get("/post").await.body("a.png");
    gate.arrived().await;
    let waiting = send(&site, 3, &Req::get("/post")).await;
    site.has_read_all().await;
    site.purge(&PurgeTarget::Url { site: 0, url: format!("{HOST}/post").into_bytes() }, Hardness::Hard);
    gate.open();
    for mut client in waiting {
        client.read_answer().await.status(200).body("new").no_cache_status("detail=two-visitors-differ");
    }
    site.get("/post").await.body("new").cache_status("hit");
    assert_eq!((proofs(&site, "differs").await, proofs(&site, "overtaken").await), (0.0, 1.0));
}

#[tokio::test]
async fn a_crowd_costs_two_requests() {
    let (origin, site) = site_with(&format!("[server]\nworkers = 2\n{PROOF}")).await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text").gate(&gate));
    let crowd = send(&site, 100, &Req::get("/post")).await;
    gate.arrived().await;
    gate.open();
    for mut client in crowd {
        client.read_answer().await.status(200).body("text");
    }
    site.get("/post").await.cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

/// A proven page is proven again with one in 64 later storings.
#[tokio::test]
async fn a_proven_page_is_proven_again_as_a_sample() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    site.get("/post").await;
    origin.until_count("/post", 2).await;
    site.get("/post").await;
    for storing in 1..=63 {
        site.clock.advance(secs(61));
        site.get("/post").await.cache_status("fwd=stale; stored");
        assert_eq!(origin.count("/post"), 2 + storing);
    }
    site.clock.advance(secs(61));
    site.get("/post").await.cache_status("fwd=stale; detail=two-visitor-proof");
    site.get("/post").await.body("text");
    assert_eq!((origin.count("/post"), proofs(&site, "same").await), (2 + 63 + 2, 2.0));
}

/// A sample that differs takes the stored page away, too: it was one visitor's all the time.
#[tokio::test]
async fn a_stored_page_that_turns_out_to_differ_does_not_come_out_again() {
    let (origin, site) = site_with("[cache]\ntwo_visitor_proof = true\nstale_while_revalidate = \"1h\"\nstale_if_error = \"1h\"").await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/post")).once().reply(status(503));
    origin.on(get("/post")).once().reply(page("text"));
    // Stored, though nothing was proven.
    site.get("/post").await;
    site.get("/post").await.body("text");
    origin.expect_nothing();
    personal(&origin, "/post", &open());
    site.clock.advance(secs(61));
    site.get("/post").await.body("text").x_cache("UPDATING");
    // Waits for the refresh behind it.
    site.request(Req::get("/post").field("cache-control", "no-cache")).await.body("visit 4");
    site.get("/post").await.cache_status("detail=two-visitors-differ").body("visit 5");
    origin.kill();
    site.get("/post").await.status(502);
}

#[tokio::test]
async fn only_pages_are_proven() {
    let (origin, site) = site().await;
    for (target, media_type, requests) in [
        ("/a.css", "text/css", 1),
        ("/a.json", "application/json", 1),
        ("/a.png", "image/png", 1),
        ("/feed", "application/rss+xml", 1),
        ("/page", "Text/HTML;charset=utf-8", 2),
        ("/xhtml", "application/xhtml+xml", 2),
    ] {
        origin.on(get(target)).reply(ok("text").field("content-type", media_type).field("cache-control", "max-age=60"));
        for _ in 0..3 {
            site.get(target).await.body("text");
        }
        site.get(target).await.cache_status("hit");
        assert_eq!(origin.count(target), requests, "{target}");
    }
    origin.on(get("/gone")).reply(status(404).field("content-type", "text/html").field("cache-control", "max-age=60"));
    site.get("/gone").await.status(404).cache_status("stored");
    assert_eq!(origin.count("/gone"), 1);
}

/// A kind that answers everybody the same needs no proof, a Ghost does; the setting goes before the kind.
#[tokio::test]
async fn a_ghost_is_proven_unless_the_setting_says_otherwise() {
    for (settings, requests) in
        [("kind = \"ghost\"", 2), ("kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false", 1), ("kind = \"generic\"", 1), (PROOF, 2)]
    {
        let (origin, site) = site_with(settings).await;
        origin.on(get("/post/")).reply(page("text"));
        for _ in 0..3 {
            site.get("/post/").await.body("text");
        }
        site.get("/post/").await.cache_status("hit");
        assert_eq!(origin.count("/post/"), requests, "{settings}");
    }
}

/// HEAD fetches the whole, which is proven like any other.
#[tokio::test]
async fn a_page_that_was_first_asked_for_with_head_is_proven() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    site.request(Req::head("/post")).await.status(200).body("");
    site.get("/post").await.body("text");
    site.get("/post").await.cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

/// A request that nobody shares stores nothing that was not proven, whether it brings the whole or a part.
#[tokio::test]
async fn a_page_that_was_asked_for_alone_is_not_stored_unproven() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("content-type", "text/html").field("cache-control", "public, max-age=60"));
    let part = status(206).body("te").field("content-type", "text/html").field("cache-control", "public, max-age=60");
    let part = part.field("content-range", "bytes 0-1/4").field("etag", "\"a\"");
    origin.on(get("/post").field("range", "bytes=0-1")).reply(part);
    site.request(Req::get("/post").field("cookie", "session=1")).await.cache_status("detail=two-visitor-proof").no_cache_status("stored");
    site.request(Req::get("/post").field("range", "bytes=0-1")).await.status(206).no_cache_status("stored");
    site.get("/post").await.cache_status("fwd=uri-miss; detail=two-visitor-proof");
    site.get("/post").await.body("text");
    site.get("/post").await.cache_status("hit");
    assert_eq!(origin.count("/post"), 4);
    // Proven, it may be stored by anybody.
    site.clock.advance(secs(61));
    site.request(Req::get("/post").field("cookie", "session=1")).await.cache_status("stored");
}

/// RFC 9110 §9.3.3 lets the answer to a POST answer later GETs; one visitor's answer does not.
#[tokio::test]
async fn the_answer_to_a_post_is_not_stored_unproven() {
    let (origin, site) = site().await;
    origin.on(post("/post")).reply(page("posted").field("content-location", "/post"));
    origin.on(get("/post")).reply(page("text"));
    site.request(Req::post("/post").body("a=b")).await.body("posted");
    site.get("/post").await.body("text").cache_status("fwd=uri-miss; detail=two-visitor-proof");
    site.get("/post").await.body("text");
    site.get("/post").await.cache_status("hit");
    site.request(Req::post("/post").body("a=b")).await.body("posted");
    site.get("/post").await.body("posted").cache_status("hit");
}

/// 2 MiB are more than any page; what is longer is not proven, so nobody gets another one's.
#[tokio::test]
async fn a_very_long_page_is_not_stored() {
    let (origin, site) = site().await;
    let long = "x".repeat(3 << 20);
    let chunks: Vec<String> = (0..48).map(|_| "x".repeat(64 << 10)).collect();
    let unannounced = || ok("").chunks(chunks.clone()).field("content-type", "text/html").field("cache-control", "max-age=60");
    let gate = Gate::new();
    origin.on(get("/announced")).reply(page(long.clone()));
    origin.on(get("/unannounced")).reply(unannounced());
    origin.on(get("/unannounced")).once().reply(unannounced().gate_after(1 << 20, &gate));
    site.get("/announced").await.body(&long).cache_status("detail=too-large").no_cache_status("stored");
    let mut clients = send(&site, 3, &Req::get("/unannounced")).await;
    gate.arrived().await;
    site.has_read_all().await;
    gate.open();
    for client in &mut clients {
        client.read_answer().await.status(200).body(&long);
    }
    assert_eq!(origin.count("/unannounced"), 3);
    assert_eq!(proofs(&site, "skipped").await, 2.0);
    for target in ["/announced", "/unannounced"] {
        site.get(target).await.body(&long).no_cache_status("stored");
        site.get(target).await.body(&long).cache_status("fwd=uri-miss");
        assert_eq!(explained(&site, target).not_kept.map(|it| it.status), Some(Some(200)), "{target}");
    }
}

/// On the day of the crowd, the origin's places are for readers: a page that nobody waits for is proven later, and not stored before.
#[tokio::test]
async fn a_page_that_nobody_waits_for_is_not_proven_while_requests_wait_for_the_origin() {
    let (origin, site) = site_with(&format!("[origin]\nconcurrency = 1\n{PROOF}")).await;
    let (a_comes, b_comes) = (Gate::new(), Gate::new());
    origin.on(get("/a")).reply(page("a").gate(&a_comes));
    origin.on(get("/b")).reply(page("b").gate(&b_comes));
    let mut a = send(&site, 1, &Req::get("/a")).await;
    a_comes.arrived().await;
    let mut b = send(&site, 1, &Req::get("/b")).await;
    site.has_read_all().await;
    a_comes.open();
    a[0].read_answer().await.body("a").no_cache_status("stored");
    b_comes.arrived().await;
    assert_eq!((origin.count("/a"), proofs(&site, "skipped").await), (1, 1.0));
    b_comes.open();
    b[0].read_answer().await.body("b");
    // Nobody waits any more, and one place is enough.
    for target in ["/a", "/b"] {
        for _ in 0..2 {
            site.get(target).await.status(200);
        }
        site.get(target).await.cache_status("hit");
    }
    assert_eq!((origin.count("/a"), origin.count("/b")), (3, 2));
}

/// One request for all who wait is less than one for each of them, so it waits for a place as they would.
#[tokio::test]
async fn a_page_that_a_crowd_waits_for_is_proven_while_requests_wait_for_the_origin() {
    let (origin, site) = site_with(&format!("[origin]\nconcurrency = 1\n{PROOF}")).await;
    let (a_comes, b_comes) = (Gate::new(), Gate::new());
    origin.on(get("/a")).reply(page("a").gate(&a_comes));
    origin.on(get("/b")).reply(page("b").gate(&b_comes));
    let crowd = send(&site, 20, &Req::get("/a")).await;
    a_comes.arrived().await;
    let mut b = send(&site, 1, &Req::get("/b")).await;
    site.has_read_all().await;
    a_comes.open();
    b_comes.arrived().await;
    b_comes.open();
    b[0].read_answer().await.body("b");
    for mut client in crowd {
        client.read_answer().await.body("a");
    }
    site.get("/a").await.cache_status("hit");
    assert_eq!(origin.count("/a"), 2);
}

/// A stranger who asks for many slow pages does not get others' pages stored by that, nor is one of them given to somebody else.
#[tokio::test]
async fn a_page_for_which_there_is_no_room_is_for_its_own_client_alone() {
    let (origin, site) = site().await;
    let (slow, anna) = (Gate::new(), Gate::new());
    let (mut leaders, mut waiting) = (Vec::new(), Vec::new());
    for n in 0..32 {
        let (target, comes) = (format!("/{n}"), Gate::new());
        origin.on(get(&target)).reply(page("0123456789"));
        origin.on(get(&target)).once().reply(page("0123456789").gate(&comes).gate_after(5, &slow));
        // Somebody waits for each.
        let mut leader = send(&site, 1, &Req::get(&target)).await.remove(0);
        comes.arrived().await;
        waiting.extend(send(&site, 1, &Req::get(&target)).await);
        site.has_read_all().await;
        comes.open();
        leader.read_head().await.status(200);
        leaders.push(leader);
    }
    personal(&origin, "/me", &open());
    origin.on(get("/me")).once().reply(page("for Anna").gate(&anna));
    let mut clients = send(&site, 3, &Req::get("/me")).await;
    anna.arrived().await;
    site.has_read_all().await;
    anna.open();
    clients.remove(0).read_answer().await.body("for Anna").cache_status("detail=two-visitor-proof").no_cache_status("stored");
    let mut seen = BTreeSet::from(["for Anna".to_owned()]);
    for mut client in clients {
        assert!(seen.insert(client.read_answer().await.status(200).no_cache_status("stored").text()), "{seen:?}");
    }
    site.get("/me").await.cache_status("detail=two-visitor-proof").no_cache_status("stored");
    // It is tried again after a moment.
    slow.open();
    for mut client in waiting {
        client.read_answer().await.body("0123456789");
    }
    site.clock.advance(secs(2));
    site.get("/me").await;
    site.get("/me").await.cache_status("detail=two-visitors-differ");
}

/// A crowd's page is proven before pages that nobody waits for.
#[tokio::test]
async fn the_page_that_most_wait_for_is_proven_first() {
    let (origin, site) = site().await;
    let first = Gate::new();
    for n in 0..12 {
        origin.on(get(&format!("/{n}"))).reply(page("text").gate(&first));
        origin.on(get(&format!("/{n}"))).once().reply(page("text"));
        site.get(&format!("/{n}")).await.body("text");
    }
    // Two are being proven, and ten wait for their turn.
    first.arrived_count(2).await;
    let (comes, proven) = (Gate::new(), Gate::new());
    origin.on(get("/news")).reply(page("news").gate(&proven));
    origin.on(get("/news")).once().reply(page("news").gate(&comes));
    let mut leader = send(&site, 1, &Req::get("/news")).await;
    comes.arrived().await;
    let crowd = send(&site, 9, &Req::get("/news")).await;
    site.has_read_all().await;
    comes.open();
    leader[0].read_answer().await.body("news");
    first.open();
    proven.arrived().await;
    // The second visits to the others that came before its own: the other place for proofs goes on meanwhile.
    let targets: Vec<String> = origin.requests().into_iter().map(|seen| seen.target).collect();
    let its_own = targets.iter().rposition(|target| target == "/news").expect("it arrived");
    assert!(targets[..its_own].iter().filter(|target| *target != "/news").count() < 2 * 12, "not the last");
    proven.open();
    for mut client in crowd {
        client.read_answer().await.body("news");
    }
    assert_eq!(origin.count("/news"), 2);
}

/// Whoever waits for a proof does not wait much longer than the page takes: they ask alone, and get what is theirs.
#[tokio::test]
async fn those_who_wait_for_a_slow_proof_ask_alone_after_a_second() {
    let (origin, site) = site().await;
    let (first, second) = (Gate::new(), Gate::new());
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/post")).once().reply(page("text").gate(&second));
    origin.on(get("/post")).once().reply(page("text").gate(&first));
    let mut clients = send(&site, 1, &Req::get("/post")).await;
    first.arrived().await;
    clients.extend(send(&site, 3, &Req::get("/post")).await);
    site.has_read_all().await;
    first.open();
    second.arrived().await;
    // The proof does not come to an end.
    for mut client in clients {
        client.read_answer().await.body("text").cache_status("detail=two-visitor-proof").no_cache_status("stored");
    }
    assert_eq!((origin.count("/post"), proofs(&site, "same").await), (5, 0.0));
    second.open();
    site.get("/post").await.body("text");
    site.get("/post").await.cache_status("hit");
}

/// Their number is bounded: the others wait on.
#[tokio::test]
async fn a_crowd_that_waits_for_a_slow_proof_asks_a_few_at_a_time() {
    let (origin, site) = site_with(&format!("[origin]\nconcurrency = 32\n{PROOF}")).await;
    let (second, aside) = (Gate::new(), Gate::new());
    origin.on(get("/post")).reply(page("text").gate(&aside));
    origin.on(get("/post")).once().reply(page("text").gate(&second));
    origin.on(get("/post")).once().reply(page("text"));
    site.get("/post").await;
    second.arrived().await;
    let crowd = send(&site, 60, &Req::get("/post")).await;
    site.has_read_all().await;
    aside.arrived_count(16).await;
    second.open();
    while proofs(&site, "same").await < 1.0 {
        tokio::task::yield_now().await;
    }
    aside.open();
    for mut client in crowd {
        client.read_answer().await.body("text");
    }
    assert_eq!(origin.count("/post"), 2 + 16);
}

/// A page that breaks off leaves nobody waiting.
#[tokio::test]
async fn those_who_wait_for_a_page_that_breaks_off_are_told() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("0123456789").gate_after(5, &gate).break_off_after(5));
    let mut clients = send(&site, 3, &Req::get("/post")).await;
    gate.arrived().await;
    site.has_read_all().await;
    gate.open();
    clients.remove(0).read_answer().await.status(200).truncated();
    for mut client in clients {
        client.read_answer().await.status(502);
    }
    assert_eq!(origin.count("/post"), 1);
}

/// A worker proves two pages at once, and the others wait for their turn: all of them are proven.
#[tokio::test]
async fn many_cold_pages_are_all_proven() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let targets: Vec<String> = (0..20).map(|n| format!("/{n}")).collect();
    let mut clients = Vec::new();
    for target in &targets {
        origin.on(get(target)).reply(page("text").gate(&gate));
        clients.extend(send(&site, 1, &Req::get(target)).await);
    }
    gate.arrived_count(20).await;
    gate.open();
    for mut client in clients {
        client.read_answer().await.body("text");
    }
    for target in &targets {
        site.get(target).await.body("text");
        assert_eq!(origin.count(target), 2, "{target}");
    }
    assert_eq!(proofs(&site, "same").await, 20.0);
}

/// Its client has left: others wait for it still, and it is proven and stored.
#[tokio::test]
async fn a_proof_outlives_the_client_that_began_it() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text").gate(&gate));
    let mut clients = send(&site, 2, &Req::get("/post")).await;
    gate.arrived().await;
    site.has_read_all().await;
    clients.remove(0).reset();
    gate.open();
    clients.remove(0).read_answer().await.body("text");
    site.get("/post").await.cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

/// Nobody waits for it when the server stops.
#[tokio::test]
async fn a_stop_does_not_wait_for_a_proof() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text").gate(&gate));
    origin.on(get("/post")).once().reply(page("text"));
    site.get("/post").await.body("text");
    gate.arrived().await;
    let (stopped, ended) = std::sync::mpsc::sync_channel(1);
    thread::spawn(move || {
        site.stop(secs(600));
        let _ = stopped.send(());
    });
    // A visit may take ten seconds.
    let ended = tokio::task::spawn_blocking(move || ended.recv_timeout(secs(9))).await.expect("no panic");
    gate.open();
    ended.expect("it ends");
}
