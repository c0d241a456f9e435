//! Purges by the operator: by URL, prefix, tag, site and everything; soft and hard.

use policy::purge::What;
use store::{Hardness, PurgeTarget};
use testkit::{Gate, Req, get, not_modified, ok};

use crate::{
    operator::{Operator, TOKEN},
    site::{HOST, Site, site, site_with},
};

fn url(path: &str) -> PurgeTarget {
    PurgeTarget::Url { site: 0, url: format!("{HOST}{path}").into_bytes() }
}

fn prefix(path: &str) -> PurgeTarget {
    PurgeTarget::Prefix { site: 0, url: format!("{HOST}{path}").into_bytes() }
}

fn tag(tag: &str) -> PurgeTarget {
    PurgeTarget::Tag { site: 0, tag: tag.to_owned() }
}

const ALL: [&str; 5] = ["/", "/post", "/post?page=2", "/tag/rust", "/tag/rust/2"];

async fn stored_site() -> (testkit::Origin, Site) {
    let (origin, site) = site().await;
    for target in ALL {
        let tag = if target.starts_with("/post") { "post-7" } else { "list" };
        let page = ok("text").field("cache-control", "max-age=600").field("etag", "\"a\"").field("surrogate-key", format!("all {tag}"));
        origin.on(get(target).without("if-none-match")).reply(page);
        site.get(target).await.status(200);
    }
    (origin, site)
}

/// What each purge covers; everything else stays a hit.
#[tokio::test]
async fn a_purge_covers_what_it_names_and_nothing_else() {
    for (target, covered) in [
        (url("/post"), &["/post", "/post?page=2"][..]),
        (url("/tag"), &[]),
        (prefix("/tag/"), &["/tag/rust", "/tag/rust/2"]),
        (prefix("/tag/rust/"), &["/tag/rust/2"]),
        (tag("post-7"), &["/post", "/post?page=2"]),
        (tag("list"), &["/", "/tag/rust", "/tag/rust/2"]),
        (tag("all"), &ALL),
        (PurgeTarget::Site(0), &ALL),
        (PurgeTarget::Site(1), &[]),
        (PurgeTarget::All, &ALL),
    ] {
        let (origin, site) = stored_site().await;
        site.purge(&target, Hardness::Hard);
        for page in ALL {
            let answer = site.get(page).await.status(200).body("text");
            if covered.contains(&page) {
                answer.cache_status("fwd=uri-miss")
            } else {
                answer.cache_status("hit")
            };
        }
        assert_eq!(origin.requests().len(), ALL.len() + covered.len(), "{target:?}");
    }
}

/// Hard: never served again, not even when the origin is down.
#[tokio::test]
async fn what_was_purged_hard_does_not_come_back() {
    let (origin, site) = stored_site().await;
    site.purge(&url("/post"), Hardness::Hard);
    origin.kill();
    site.get("/post").await.status(502);
    site.get("/").await.status(200).cache_status("hit");
}

/// Soft: served while it is refreshed, and there when the origin is not.
#[tokio::test]
async fn what_was_purged_softly_may_be_served_once_more() {
    let (origin, site) = stored_site().await;
    let gate = Gate::new();
    let confirmed = not_modified().field("cache-control", "max-age=600").gate(&gate);
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(confirmed);
    site.purge(&url("/post"), Hardness::Soft);
    for _ in 0..2 {
        // RFC 9211 §2.4: what is stale has no lifetime left.
        let answer = site.get("/post").await.status(200).body("text").x_cache("UPDATING").cache_status("hit");
        assert!(!answer.value("cache-status").is_some_and(|status| status.contains("ttl=")), "{answer}");
    }
    gate.arrived().await;
    gate.open();
    site.request(Req::get("/post").field("cache-control", "max-age=600")).await.status(200).body("text");
    site.get("/post").await.x_cache("HIT");
    assert_eq!(origin.count("/post"), 2);

    site.purge(&url("/post"), Hardness::Soft);
    origin.kill();
    let answer = site.get("/post").await.status(200).body("text");
    assert!(!answer.value("cache-status").is_some_and(|status| status.contains("ttl=")), "{answer}");
}

/// A fetch begun before the purge is answered to those who asked before it, and never served after it.
#[tokio::test]
async fn a_fetch_begun_before_the_purge_is_not_served_after_it() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let page = |text: &'static str| ok(text).field("cache-control", "max-age=600");
    origin.on(get("/post")).reply(page("new"));
    origin.on(get("/post")).once().reply(page("old").gate(&gate));
    let mut before = site.client().await;
    before.send(Req::get("/post")).await;
    gate.arrived().await;

    site.purge(&url("/post"), Hardness::Hard);
    // While the old fetch is still under way.
    site.get("/post").await.body("new");
    gate.open();
    before.read_answer().await.body("old");
    site.get("/post").await.body("new");
}

/// A purge covers a fetch also when the body was half here.
#[tokio::test]
async fn a_purge_in_the_middle_of_a_body_keeps_it_from_later_requests() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    let page = |text: &'static str| ok(text).field("cache-control", "max-age=600");
    origin.on(get("/post")).reply(page("new"));
    origin.on(get("/post")).once().reply(page("old page").gate_after(3, &gate));
    let mut before = site.client().await;
    before.send(Req::get("/post")).await;
    gate.arrived().await;
    before.read_head().await.status(200);
    site.purge(&PurgeTarget::All, Hardness::Hard);
    site.get("/post").await.body("new");
    gate.open();
    assert_eq!(before.read_body_bytes(8).await, "old page");
    site.get("/post").await.body("new");
}

/// TryGhost/Ghost#15984: an origin may not know a page yet that it has just announced; its "not found" is not kept.
#[tokio::test]
async fn not_found_just_after_a_purge_is_not_stored() {
    let (origin, site) = site().await;
    origin.on(get("/new")).reply(testkit::status(404).field("cache-control", "max-age=60"));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.get("/new").await.status(404).no_cache_status("stored");
    site.clock.advance(testkit::secs(6));
    site.get("/new").await.status(404).no_cache_status("hit");
    origin.on(get("/new")).reply(ok("text").field("cache-control", "max-age=60"));
    site.clock.advance(testkit::secs(60));
    site.get("/new").await.status(200).body("text");
}

/// What the operator is told is what was there: how many, or that there was nothing.
#[tokio::test]
async fn the_operator_is_told_what_a_purge_found() {
    let (_origin, site) = stored_site().await;
    let operator = Operator::of(&site);
    let run = |what: &What, hard: bool| ::operator::purge::run(operator.address, TOKEN, what, hard).expect("a purge").said;
    let url = |path: &str| format!("http://{HOST}{path}");
    for (what, hard, expected) in [
        (What::tag("nosuch"), true, "Nothing to purge: nothing stored carries the tag nosuch.".to_owned()),
        (What::url(&url("/nosuch")), true, format!("Nothing to purge: nothing is stored for http://{HOST}/nosuch.")),
        (What::prefix(&url("/nosuch/")), true, format!("Nothing to purge: nothing is stored below http://{HOST}/nosuch/.")),
        (What::host("other.example"), true, "Nothing to purge: nothing is stored for the host other.example.".to_owned()),
        (What::tag("list"), false, "Marked stale: every page with the tag list (3 stored responses).".to_owned()),
        // Softly purged is still there; purged hard is not.
        (What::url(&url("/")), true, format!("Purged: {HOST}/ in all its forms (1 stored response).")),
        (What::url(&url("/")), true, format!("Nothing to purge: nothing is stored for http://{HOST}/.")),
        (What::url(&url("/post")), true, format!("Purged: {HOST}/post in all its forms (2 stored responses).")),
        (What::prefix(&url("/tag/")), true, format!("Purged: every page below {HOST}/tag/ (2 stored responses).")),
        (Ok(What::Everything), true, "Nothing to purge: nothing is stored.".to_owned()),
    ] {
        let what = what.expect("a target");
        assert_eq!(run(&what, hard), expected, "{what:?}");
    }
}

/// With a disk tier it is told whether that may have more: of what is on the disk alone, only addresses are known.
#[tokio::test]
async fn what_only_the_disk_may_have_is_told_apart() {
    let (origin, site) = site_with("[cache]\ndir = \"FOLDER/cache\"\ndisk = \"64MiB\"").await;
    let page = || ok("text").field("cache-control", "max-age=600").field("surrogate-key", "list");
    origin.on(get("/")).reply(page());
    site.get("/").await.status(200);
    let purge = |operator: &Operator, tag: &str| {
        let what = What::tag(tag).expect("a tag");
        ::operator::purge::run(operator.address, TOKEN, &what, false).expect("a purge").said
    };
    {
        let operator = Operator::of(&site);
        assert_eq!(purge(&operator, "nosuch"), "Nothing to purge: nothing stored carries the tag nosuch.");
    }
    // After a restart, what the disk has is not in memory yet.
    let folder = site.stop(std::time::Duration::from_secs(30));
    let toml = std::fs::read_to_string(folder.path().join("seawall.toml")).expect("read");
    let site = Site::start(&toml);
    let operator = Operator::of(&site);
    assert_eq!(
        purge(&operator, "list"),
        "Marked stale: every page with the tag list (none of it is in memory; copies on disk are purged, too)."
    );
}
