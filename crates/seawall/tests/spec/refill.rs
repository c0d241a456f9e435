//! Refill: after a soft purge the pages people read come back first, and never at the expense of readers.

use std::time::{Duration, Instant};

use store::{Hardness, PurgeTarget};
use testkit::{Gate, Origin, PATIENCE, Reply, Req, get, ok, secs, status};

use crate::site::{HOST, Site, site_with};

fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "max-age=86400")
}

/// Asks so that each request is counted, and not one in several.
async fn read(site: &Site, target: &str, times: usize) {
    for _ in 0..times {
        site.request(Req::get(target).field("cache-control", "max-age=86400")).await.status(200);
    }
}

/// Moves the clock until somebody comes to the gate for the `n`th time. Who waits looks at it ten times a second, so between two steps there is
/// time for that: moved too far, the refill is over before anybody has looked.
async fn until_arrived(site: &Site, gate: &Gate, n: usize) {
    let begun = Instant::now();
    while tokio::time::timeout(Duration::from_millis(250), gate.arrived_count(n)).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody came");
        site.clock.advance(secs(5));
    }
}

fn targets(origin: &Origin, after: usize) -> Vec<String> {
    origin.requests()[after..].iter().map(|seen| seen.target.clone()).collect()
}

#[tokio::test]
async fn the_most_read_come_back_first_a_second_after_the_purge() {
    let (origin, site) = site_with("[refill]\nconcurrency = 1").await;
    for (target, times) in [("/rare", 1), ("/post?page=2", 3), ("/home", 5)] {
        origin.on(get("/post").any_query()).reply(page("old"));
        origin.on(get(target.split('?').next().expect("a path")).any_query()).reply(page("old"));
        read(&site, target, times).await;
    }
    let before = origin.requests().len();
    let last = Gate::new();
    for target in ["/post", "/home"] {
        origin.on(get(target).any_query()).reply(page("new"));
    }
    origin.on(get("/rare")).reply(page("new").gate(&last));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(Duration::from_millis(999));
    site.has_read_all().await;
    assert_eq!(origin.requests().len(), before, "the origin may not know its new page yet");

    site.clock.advance(Duration::from_millis(1));
    last.arrived().await;
    assert_eq!(targets(&origin, before), ["/home", "/post?page=2", "/rare"]);
    // Nobody had to ask for them; and those who ask meanwhile get the old page at once.
    site.get("/home").await.body("new").x_cache("HIT");
    site.get("/post?page=2").await.body("new").x_cache("HIT");
    site.get("/rare").await.body("old").x_cache("UPDATING");
    let seen = origin.last("/home");
    assert_eq!((seen.field("host").as_deref(), seen.field("cookie")), (Some(HOST), None));
    assert!(seen.field("user-agent").expect("a name").contains("refill"));
    last.open();
}

/// Each variant is asked for as it was, and a validator saves its content.
#[tokio::test]
async fn every_variant_comes_back() {
    let (origin, site) = site_with("[refill]\nconcurrency = 1").await;
    let german = Gate::new();
    for language in ["en", "de"] {
        let reply = page(language).field("vary", "accept-language").field("etag", format!("\"{language}\""));
        origin.on(get("/home").field("accept-language", language)).reply(reply);
        site.request(Req::get("/home").field("accept-language", language)).await.body(language);
    }
    for (language, gate) in [("en", None), ("de", Some(&german))] {
        let confirmed = testkit::not_modified().field("cache-control", "max-age=86400").field("vary", "accept-language");
        let confirmed = confirmed.field("etag", format!("\"{language}\""));
        let confirmed = if let Some(gate) = gate { confirmed.gate(gate) } else { confirmed };
        let asked = get("/home").field("accept-language", language).field("if-none-match", &format!("\"{language}\""));
        origin.on(asked).reply(confirmed);
    }
    // The newest variant is asked for first: German. Behind its gate nothing else moves.
    site.purge(&PurgeTarget::Tag { site: 0, tag: "none".to_owned() }, Hardness::Hard);
    site.purge(&PurgeTarget::Site(0), Hardness::Soft);
    site.clock.advance(secs(1));
    german.arrived().await;
    assert_eq!(origin.requests().len(), 3);
    german.open();
    for _ in 0..5_000 {
        if origin.requests().len() == 4 {
            break;
        }
        site.has_read_all().await;
    }
    assert_eq!(origin.last("/home").field("accept-language").as_deref(), Some("en"));
}

/// What was purged hard comes back when somebody asks for it.
#[tokio::test]
async fn only_what_was_purged_softly_comes_back() {
    let (origin, site) = site_with("[refill]\nconcurrency = 1").await;
    let gate = Gate::new();
    for (target, times) in [("/hard", 5), ("/fresh", 4), ("/soft", 3)] {
        origin.on(get(target)).reply(page("text"));
        read(&site, target, times).await;
    }
    origin.on(get("/soft")).reply(page("text").gate(&gate));
    let url = |path: &str| PurgeTarget::Url { site: 0, url: format!("{HOST}{path}").into_bytes() };
    site.purge(&url("/soft"), Hardness::Soft);
    site.purge(&url("/hard"), Hardness::Hard);
    site.clock.advance(secs(1));
    gate.arrived().await;
    assert_eq!((origin.count("/hard"), origin.count("/fresh"), origin.count("/soft")), (1, 1, 2), "the others are read more");
    gate.open();
}

/// Never more than a quarter of what the origin is allowed.
#[tokio::test]
async fn a_refill_keeps_within_its_part_of_the_origin() {
    let (origin, site) = site_with("[origin]\nconcurrency = 8\n[refill]\nconcurrency = 8").await;
    let gate = Gate::new();
    for n in 0..6 {
        let target = format!("/{n}");
        origin.on(get(&target)).reply(page("text"));
        read(&site, &target, 1).await;
        origin.on(get(&target)).reply(page("text").gate(&gate));
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(secs(1));
    gate.arrived_count(2).await;
    site.has_read_all().await;
    assert_eq!(gate.arrivals(), 2);
    // A reader of something else finds the origin free.
    origin.on(get("/other")).reply(ok("other"));
    site.get("/other").await.body("other");
    gate.open();
    gate.arrived_count(6).await;
    assert_eq!(origin.requests().len(), 6 + 6 + 1);
}

/// While the origin fails, it is left alone; then the refill goes on where it was.
#[tokio::test]
async fn a_refill_pauses_while_the_origin_is_down() {
    let (origin, site) = site_with("[refill]\nconcurrency = 1").await;
    let (failing, back) = (Gate::new(), Gate::new());
    for (target, times) in [("/home", 2), ("/post", 1)] {
        origin.on(get(target)).reply(page("old"));
        read(&site, target, times).await;
    }
    origin.on(get("/post")).reply(page("new").gate(&back));
    origin.on(get("/home")).reply(page("new"));
    origin.on(get("/home")).once().reply(status(503).gate(&failing));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(secs(1));
    failing.arrived().await;
    failing.open();
    for _ in 0..20 {
        site.has_read_all().await;
    }
    assert_eq!((origin.count("/home"), origin.count("/post")), (2, 1), "the clock stands still, and so does the refill");
    site.get("/home").await.body("old");

    until_arrived(&site, &back, 1).await;
    assert_eq!(origin.count("/home"), 3);
    site.get("/home").await.body("new");
    back.open();
}

/// An origin that answers slower than it usually does has something else to do.
#[tokio::test]
async fn a_refill_pauses_while_the_origin_is_slow() {
    let (origin, site) = site_with("[refill]\nconcurrency = 1").await;
    let (slow, back) = (Gate::new(), Gate::new());
    for (target, times) in [("/home", 2), ("/post", 1)] {
        origin.on(get(target)).reply(page("old"));
        read(&site, target, times).await;
    }
    origin.on(get("/home")).reply(page("new").gate(&slow));
    origin.on(get("/post")).reply(page("new").gate(&back));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(secs(1));
    slow.arrived().await;
    site.clock.advance(secs(5));
    slow.open();
    // Once its answer is there, the refill has seen how long it took.
    while site.get("/home").await.value("x-cache").as_deref() != Some("HIT") {}
    for _ in 0..20 {
        site.has_read_all().await;
    }
    assert_eq!(back.arrivals(), 0);
    until_arrived(&site, &back, 1).await;
    back.open();
}

/// What was fetched between two purges may be old already.
#[tokio::test]
async fn another_purge_begins_the_refill_anew() {
    let (origin, site) = site_with("[refill]\nconcurrency = 1").await;
    let (first, second) = (Gate::new(), Gate::new());
    for (target, times) in [("/home", 2), ("/post", 1)] {
        origin.on(get(target)).reply(page("old"));
        read(&site, target, times).await;
    }
    origin.on(get("/home")).reply(page("new"));
    origin.on(get("/home")).once().reply(page("between").gate(&first));
    origin.on(get("/post")).reply(page("new").gate(&second));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(secs(1));
    first.arrived().await;
    site.purge(&PurgeTarget::All, Hardness::Soft);
    first.open();
    site.has_read_all().await;
    assert_eq!(second.arrivals(), 0, "again it waits for a second");

    // Longer, if the second passes while the first answer is still being read: then the origin seems slow.
    until_arrived(&site, &second, 1).await;
    assert_eq!(origin.count("/home"), 3);
    site.get("/home").await.body("new").x_cache("HIT");
    second.open();
}
