//! A Ghost says what has changed, and the next reader sees it: what was purged is validated before anybody sees it, the signals in its
//! answers, and what its answers end by themselves.

use std::time::Duration;

use policy::purge::{Maker, Order, What};
use store::{Hardness, PurgeTarget};
use testkit::{Gate, Origin, Reply, Req, get, head, not_modified, ok, post, put, secs, status};

use crate::site::{HOST, Site, site_with};

/// A Ghost. The proof that a page is the same for two visitors would ask for each page twice, and is not the subject here.
const GHOST: &str = "kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false\n[refill]\nconcurrency = 0\n";

/// What Ghost says with each of its public pages.
fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "public, max-age=0").field("content-type", "text/html; charset=utf-8").field("etag", format!("\"{text}\""))
}

async fn ghost() -> (Origin, Site) {
    site_with(GHOST).await
}

fn url(path: &str) -> PurgeTarget {
    PurgeTarget::Url { site: 0, url: format!("{HOST}{path}").into_bytes() }
}

/// The reader after an edit waits for the origin, whatever the page's lifetime and its windows say.
#[tokio::test]
async fn what_was_purged_softly_is_validated_before_anybody_sees_it() {
    // Within its hold of a day, and a day after it, when it may be shown while it is refreshed.
    for age in [0, 30 * 3600] {
        let (origin, site) = ghost().await;
        origin.on(get("/post/")).reply(page("old"));
        site.get("/post/").await.body("old");
        site.clock.advance(secs(age));
        origin.on(get("/post/")).reply(page("new"));
        site.purge(&url("/post/"), Hardness::Soft);
        site.get("/post/").await.status(200).body("new").cache_status("fwd=stale; fwd-status=200");
        site.get("/post/").await.body("new").x_cache("HIT");
    }
}

/// RFC 9111 §4.3: an origin that has nothing new says so in a few bytes.
#[tokio::test]
async fn what_was_purged_softly_and_has_not_changed_is_confirmed() {
    let (origin, site) = ghost().await;
    origin.on(get("/post/")).reply(page("same"));
    site.get("/post/").await.body("same");
    origin.on(get("/post/").field("if-none-match", "\"same\"")).reply(not_modified().field("etag", "\"same\""));
    site.purge(&url("/post/"), Hardness::Soft);
    site.get("/post/").await.status(200).body("same").cache_status("fwd=stale; fwd-status=304");
    site.get("/post/").await.body("same").x_cache("HIT");
}

/// Without a purge, a page past its hold is still shown at once, and refreshed behind its reader.
#[tokio::test]
async fn what_is_merely_old_is_shown_while_it_is_refreshed() {
    let (origin, site) = ghost().await;
    origin.on(get("/post/")).reply(page("old"));
    site.get("/post/").await.body("old");
    site.clock.advance(secs(25 * 3600));
    let gate = Gate::new();
    origin.on(get("/post/")).reply(page("new").gate(&gate));
    site.get("/post/").await.body("old").x_cache("UPDATING");
    gate.open();
}

/// An origin that does not answer, or answers with an error, is no reason to show nothing.
#[tokio::test]
async fn what_was_purged_softly_stands_in_for_an_origin_that_fails() {
    let (origin, site) = site_with(&format!("{GHOST}[origin]\ncollapse_wait = \"100ms\"\n")).await;
    for path in ["/refused/", "/error/", "/hangs/"] {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    origin.on(get("/error/")).reply(status(500));
    site.get("/error/").await.status(200).body("old").x_cache("STALE");
    let never = Gate::new();
    origin.on(get("/hangs/")).reply(page("new").gate(&never));
    site.get("/hangs/").await.status(200).body("old").x_cache("STALE");
    // Whoever comes next need not wait for the same.
    let asked = origin.count("/hangs/");
    site.get("/hangs/").await.status(200).body("old").x_cache("STALE");
    assert!(origin.count("/hangs/") <= asked + 1);
    origin.kill();
    site.get("/refused/").await.status(200).body("old").x_cache("STALE");
    never.open();
}

/// What failed before an edit says nothing about the page after it: readers wait for the origin again.
#[tokio::test]
async fn trouble_from_before_an_edit_keeps_no_page_old_after_it() {
    let (origin, site) = site_with(&format!("{GHOST}[origin]\ncollapse_wait = \"100ms\"\n")).await;
    for path in ["/error/", "/hangs/", "/refused/"] {
        origin.on(get(path)).reply(page("old"));
        site.get(path).await.body("old");
    }
    site.purge(&PurgeTarget::All, Hardness::Soft);
    let never = Gate::new();
    origin.on(get("/error/")).reply(status(500));
    origin.on(get("/hangs/")).reply(page("older").gate(&never));
    site.get("/error/").await.body("old").x_cache("STALE");
    site.get("/hangs/").await.body("old").x_cache("STALE");
    origin.kill();
    site.get("/refused/").await.body("old").x_cache("STALE");
    origin.revive();
    for path in ["/error/", "/hangs/", "/refused/"] {
        origin.on(get(path)).reply(page("new"));
    }
    // The edit.
    site.purge(&PurgeTarget::All, Hardness::Soft);
    for path in ["/error/", "/hangs/", "/refused/"] {
        site.get(path).await.status(200).body("new");
        site.get(path).await.body("new").x_cache("HIT");
    }
    never.open();
}
