//! WordPress's own schedule, `wp-cron.php`: run from here, and by nobody's request; and what it publishes is live.

use std::time::Instant;

use seawall::recognition::{Finding, Findings, Question, Software};
use testkit::{Gate, Origin, PATIENCE, Reply, Req, get, head, ok, status};

use crate::{operator::Operator, site::Site};

const RUN: &str = "/wp-cron.php";
const COUNTED: &str = "/?rest_route=/wp/v2/search&per_page=1&doing_wp_cron";
const CHANGED: &str = "/?feed=comments-rss2&doing_wp_cron";

/// The time between two runs.
const PERIOD: u64 = 60;

/// Returns what is said when it is known that a WordPress is behind the site.
fn known_as(origin: &Origin, url: &str) -> impl FnOnce(&seawall::config::Settings) -> Findings {
    let question = Question { source: origin.url(), host: None };
    let software = Software::wordpress(Some("6.8.7"), url).expect("a WordPress");
    move |_| {
        let mut known = Findings::default();
        known.take(question, Finding::Recognised { software, remembered: false });
        known
    }
}

fn query_of(target: &str) -> &str {
    target.trim_start_matches("/?")
}

/// Scripts what WordPress says of the number of its posts, and of the last change.
fn lists(origin: &Origin, total: u32, changed: &str) {
    origin.on(head("/").query(query_of(CHANGED))).reply(ok("").field("last-modified", changed));
    origin.on(head("/").query(query_of(COUNTED))).reply(ok("").field("x-wp-total", total.to_string()));
}

const BEFORE: &str = "Mon, 30 Jun 2025 16:30:00 GMT";

/// Returns a page as WordPress sends it.
fn page(text: &'static str) -> Reply {
    ok(text).field("content-type", "text/html; charset=UTF-8")
}

/// Returns a WordPress that has been looked at once, and whose schedule has not run yet.
async fn wordpress(more: &str) -> (Origin, Site) {
    let origin = Origin::start();
    lists(&origin, 60, BEFORE);
    let site = begun(&origin, more).await;
    (origin, site)
}

async fn begun(origin: &Origin, more: &str) -> Site {
    origin.on(get(RUN)).reply(ok(""));
    origin.on(get("/hello/")).reply(page("old"));
    let toml = format!("source = \"{}\"\n[cache]\ntwo_visitor_proof = false\n{more}", origin.url());
    let site = Site::start_knowing(&toml, known_as(origin, "http://blog.example"));
    origin.until_count(COUNTED, 1).await;
    site.get("/hello/").await.status(200).body("old");
    site.get("/hello/").await.x_cache("HIT");
    site
}

/// Moves the clock until the condition holds: the thread that runs the schedule looks at it now and then.
async fn after(site: &Site, seconds: u64, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    site.clock.advance(testkit::secs(seconds));
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::task::yield_now().await;
    }
}

async fn run(site: &Site, origin: &Origin, n: usize, seconds: u64) {
    after(site, seconds, "a run", async || origin.count(RUN) >= n && runs(site) >= n as u64).await;
    assert_eq!(origin.count(RUN), n);
}

fn schedule(site: &Site) -> admin::ScheduleHealth {
    site.server.console().health().sites[0].schedule.clone().expect("a schedule")
}

fn runs(site: &Site) -> u64 {
    let schedule = schedule(site);
    schedule.runs + schedule.failures
}

#[tokio::test]
async fn the_schedule_is_run_bare_once_in_each_period_as_the_site_is_called() {
    let (origin, site) = wordpress("").await;
    run(&site, &origin, 1, 1).await;
    run(&site, &origin, 2, PERIOD).await;
    run(&site, &origin, 3, PERIOD).await;
    let seen = origin.last(RUN);
    assert_eq!(seen.field("host").as_deref(), Some("blog.example"));
    assert!(seen.field("user-agent").expect("a name").contains("(wp-cron)"));
    let schedule = schedule(&site);
    assert_eq!((schedule.every_seconds, schedule.runs, schedule.failures, schedule.trouble), (60, 3, 0, None));
    assert!(schedule.ran_seconds_ago.is_some());
}

/// Whoever has just activated the plugin looks whether Seawall sees it.
#[tokio::test]
async fn the_last_page_says_whether_the_plugin_is_there() {
    let (origin, site) = wordpress("").await;
    let api = "<http://blog.example/wp-json/>; rel=\"https://api.w.org/\"";
    assert_eq!(schedule(&site).plugin, None);
    origin.on(get("/with/")).reply(page("with").field("link", api).field("seawall-plugin", "wordpress/1.0.0"));
    site.get("/with/").await.status(200);
    assert_eq!(schedule(&site).plugin.as_deref(), Some("wordpress/1.0.0"));
    origin.on(get("/style.css")).reply(ok("a{}").field("content-type", "text/css"));
    site.get("/style.css").await.status(200);
    assert_eq!(schedule(&site).plugin.as_deref(), Some("wordpress/1.0.0"), "a file says nothing of it");
    origin.on(get("/without/")).reply(page("without").field("link", api));
    site.get("/without/").await.status(200);
    assert_eq!(schedule(&site).plugin, None);
}

/// A page that comes while a look waits for its answers is newer than what the look has asked for.
#[tokio::test]
async fn a_look_takes_back_only_what_pages_said_before_it_began() {
    let origin = Origin::start();
    lists(&origin, 60, BEFORE);
    origin.on(head("/").query(query_of(COUNTED))).reply(ok("").field("x-wp-total", "60").field("seawall-plugin", "wordpress/0.9.0"));
    let site = begun(&origin, "").await;
    let plugin = || schedule(&site).plugin;
    after(&site, 0, "the first look counts", async || plugin().as_deref() == Some("wordpress/0.9.0")).await;

    // The second one finds another post, and no plugin.
    let gate = Gate::new();
    origin.on(head("/").query(query_of(COUNTED))).reply(ok("").field("x-wp-total", "61").gate(&gate));
    origin.on(get("/hello/")).reply(page("new"));
    after(&site, PERIOD, "a second look", async || origin.count(COUNTED) == 2).await;
    let api = "<http://blog.example/wp-json/>; rel=\"https://api.w.org/\"";
    origin.on(get("/with/")).reply(page("with").field("link", api).field("seawall-plugin", "wordpress/1.0.0"));
    site.get("/with/").await.status(200);
    gate.open();
    after(&site, 0, "the second look counts", async || site.get("/hello/").await.text() == "new").await;
    assert_eq!(plugin().as_deref(), Some("wordpress/1.0.0"));

    after(&site, PERIOD, "a look that began after the page counts", async || plugin().is_none()).await;
}

/// A queue of visitors, or of a stranger's requests, must not start a process each.
#[tokio::test]
async fn nobodys_request_runs_the_schedule() {
    let (origin, site) = wordpress("").await;
    for request in [
        Req::get(RUN),
        Req::get("/wp-cron.php?doing_wp_cron=1"),
        Req::get("/%77p-cron.php"),
        Req::get("/wp-cron.php/x"),
        Req::post("/wp-cron.php?doing_wp_cron").body("a=1"),
    ] {
        site.request(request).await.status(200).body("");
    }
    assert_eq!(origin.requests().iter().filter(|seen| seen.target.contains("cron.php")).count(), 0);
}

/// WordPress's lock keeps bare calls out for a minute. Its own request, which opens it, is answered by Seawall.
#[tokio::test]
async fn the_value_of_wordpresss_own_lock_is_handed_on_once() {
    let (origin, site) = wordpress("").await;
    let locked = format!("{}.1234560012817382812500", site.clock.secs());
    let handed_on = format!("/wp-cron.php?doing_wp_cron={locked}");
    origin.on(get(RUN).query(&format!("doing_wp_cron={locked}"))).reply(ok(""));
    for _ in 0..3 {
        site.request(Req::post(&handed_on)).await.status(200).body("");
    }
    origin.until_count(&handed_on, 1).await;
    // The value was wrong, for all that is known: a bare run comes as soon as the lock has ended in any case.
    run_after_lock(&site, &origin).await;
    assert_eq!(origin.count(&handed_on), 1);
}

async fn run_after_lock(site: &Site, origin: &Origin) {
    after(site, 0, "the first one is counted", async || runs(site) == 1).await;
    after(site, 1, "the regular run", async || origin.count(RUN) == 1 && runs(site) == 2).await;
    after(site, 60, "both runs that are due by now", async || runs(site) >= 3).await;
}

#[tokio::test]
async fn what_the_schedule_has_published_is_live_after_a_second() {
    let (origin, site) = wordpress("").await;
    run(&site, &origin, 1, 1).await;
    // A scheduled post keeps the date of its last edit; only the number tells.
    lists(&origin, 61, BEFORE);
    origin.on(get("/hello/")).reply(page("new"));
    after(&site, 1, "the new page", async || site.get("/hello/").await.text() == "new").await;
}

/// Somebody has purged everything a moment before: that says nothing of what the schedule publishes afterwards.
#[tokio::test]
async fn what_the_schedule_publishes_just_after_a_purge_is_live_all_the_same() {
    let (origin, site) = wordpress("").await;
    let operator = Operator::of(&site);
    operator.client().post::<serde_json::Value>("/purge", r#"{"all": true, "hard": false}"#).expect("purged");
    site.get("/hello/").await.body("old");
    run(&site, &origin, 1, 1).await;
    lists(&origin, 61, BEFORE);
    origin.on(get("/hello/")).reply(page("new"));
    after(&site, 1, "the new page", async || site.get("/hello/").await.text() == "new").await;
}

/// php-fpm answers before the work begins, and a busy machine takes its time for it.
#[tokio::test]
async fn what_a_slow_run_publishes_is_live_after_a_few_seconds() {
    let (origin, site) = wordpress("").await;
    run(&site, &origin, 1, 1).await;
    after(&site, 1, "the first look", async || origin.count(COUNTED) == 2).await;
    lists(&origin, 61, BEFORE);
    origin.on(get("/hello/")).reply(page("new"));
    after(&site, 5, "the new page", async || site.get("/hello/").await.text() == "new").await;
}

#[tokio::test]
async fn as_long_as_nothing_is_published_pages_stay() {
    let (origin, site) = wordpress("").await;
    for n in 1..=3 {
        run(&site, &origin, n, if n == 1 { 1 } else { PERIOD }).await;
        after(&site, 2, "a look", async || origin.count(COUNTED) > n).await;
    }
    site.get("/hello/").await.x_cache("HIT").body("old");
}

/// Nginx may keep everybody from it; whoever answers for the site should know.
#[tokio::test]
async fn a_schedule_that_does_not_run_is_told_and_tried_again() {
    let (origin, site) = wordpress("").await;
    origin.on(get(RUN)).reply(status(403));
    run(&site, &origin, 1, 1).await;
    assert_eq!(schedule(&site).trouble.as_deref(), Some("it answers 403"));
    origin.on(get(RUN)).reply(ok(""));
    // The next attempt comes after one period, and before two.
    run(&site, &origin, 2, 2 * PERIOD).await;
    assert_eq!((schedule(&site).trouble, schedule(&site).failures), (None, 1));
}

#[tokio::test]
async fn with_cron_off_wordpress_is_asked_as_ever() {
    let (origin, site) = wordpress("[wordpress]\ncron = \"off\"\n").await;
    site.clock.advance(testkit::secs(PERIOD * 2));
    site.get(RUN).await.status(200);
    assert_eq!(origin.count(RUN), 1, "the reader's");
    assert_eq!(site.server.console().health().sites[0].schedule, None);
}

/// Below its path, and with its own files in a folder of their own.
#[tokio::test]
async fn the_script_is_where_wordpress_says_that_its_files_are() {
    let origin = Origin::start();
    origin.on(get("/wp/wp-cron.php")).reply(ok(""));
    lists(&origin, 60, BEFORE);
    let question = Question { source: origin.url(), host: None };
    let software =
        Software::wordpress(None, "http://blog.example").and_then(|found| found.with_core("http://blog.example/wp")).expect("one");
    let site = Site::start_knowing(&format!("source = \"{}\"\n", origin.url()), move |_| {
        let mut known = Findings::default();
        known.take(question, Finding::Recognised { software, remembered: false });
        known
    });
    origin.until_count(COUNTED, 1).await;
    after(&site, 1, "a run", async || origin.count("/wp/wp-cron.php") == 1).await;
    site.get("/wp/wp-cron.php").await.status(200).body("");
    assert_eq!(origin.count("/wp/wp-cron.php"), 1);
}
