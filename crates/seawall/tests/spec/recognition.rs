//! A site that is known to be a Ghost: the servers beside it, and what is published past Seawall.

use std::time::{Duration, Instant};

use seawall::recognition::{Finding, Findings, Question, Software};
use store::{Hardness, PurgeTarget};
use testkit::{Gate, Origin, PATIENCE, Reply, Req, get, ok, post, secs, status};

use crate::site::{HOST, Site};

/// Returns what is said when it is known that a Ghost is behind the site, and that its readers use `url`.
fn known_as(origin: &Origin, url: &str) -> impl FnOnce(&seawall::config::Settings) -> Findings {
    let question = Question { source: origin.url(), host: None };
    let software = Software::ghost("6.65", url).expect("a Ghost");
    move |_| {
        let mut known = Findings::default();
        known.take(question, Finding::Recognised { software, remembered: false });
        known
    }
}

/// A page is stored when it is seen for the first time.
const AT_ONCE: &str = "[cache]\ntwo_visitor_proof = false\n";

/// Returns a page as Ghost sends it.
fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "public, max-age=0").field("content-type", "text/html; charset=utf-8")
}

/// Returns a Ghost with two companions, all of them scripted, at `base` of its host.
fn with_companions(base: &str, more: &str) -> (Origin, Origin, Origin, Site) {
    let (ghost, social, analytics) = (Origin::start(), Origin::start(), Origin::start());
    let path = if base.is_empty() { String::new() } else { format!("path = \"{base}\"\n") };
    let toml = format!(
        "source = \"{}\"\nkind = \"ghost\"\n[ghost]\n{path}activitypub = \"{}\"\nanalytics = \"{}\"\n{more}",
        ghost.url(),
        social.url(),
        analytics.url()
    );
    let site = Site::start(&toml);
    (ghost, social, analytics, site)
}

/// Ghost's own set-up for nginx and Caddy sends these paths elsewhere, with the host that the reader asked for.
#[tokio::test]
async fn the_paths_of_a_companion_go_to_it_and_are_not_stored() {
    for base in ["", "/blog"] {
        let (_ghost, social, analytics, site) = with_companions(base, "");
        let own = ["/.ghost/activitypub/users/index", "/.well-known/webfinger", "/.well-known/nodeinfo"];
        let below = own.map(|path| format!("{base}{path}"));
        for path in own.into_iter().chain(below.iter().map(String::as_str)) {
            social.on(get(path).any_query()).reply(ok("social").field("cache-control", "public, max-age=3600"));
            let asked = social.count(&format!("{path}?resource=acct:index@blog.example"));
            for n in 1..=2 {
                site.get(&format!("{path}?resource=acct:index@blog.example")).await.status(200).body("social").no_cache_status("hit");
                assert_eq!(social.count(&format!("{path}?resource=acct:index@blog.example")), asked + n, "{path}");
            }
            let seen = social.last(&format!("{path}?resource=acct:index@blog.example"));
            assert_eq!((seen.field("host").as_deref(), seen.field("x-forwarded-proto").as_deref()), (Some(HOST), Some("http")));
        }
        social.on(post("/.ghost/activitypub/inbox").body("{}")).reply(status(202));
        // A visitor's cookies are the Ghost's; what a request may do there is in Authorization.
        let cookies = "ghost-members-ssr=1; ghost-admin-api-session=2";
        let request = Req::post("/.ghost/activitypub/inbox").field("cookie", cookies).field("authorization", "Bearer t").body("{}");
        site.request(request).await.status(202);
        let seen = social.last("/.ghost/activitypub/inbox");
        assert_eq!((seen.field("cookie"), seen.field("authorization").as_deref()), (None, Some("Bearer t")));
        // The one for visitors' numbers is asked for what follows its path.
        analytics.on(post("/api/v1/page_hit").any_query().body("{}")).reply(status(202));
        site.request(Req::post(&format!("{base}/.ghost/analytics/api/v1/page_hit?token=1")).body("{}")).await.status(202);
    }
}

#[tokio::test]
async fn a_route_that_was_written_goes_before_a_companion_and_one_that_is_off_is_the_ghosts() {
    let (own, ghost) = (Origin::start(), Origin::start());
    let toml = format!(
        "source = \"{}\"\nkind = \"ghost\"\n[ghost]\nactivitypub = \"http://127.0.0.1:1\"\n[[route]]\npath = \"/.well-known/webfinger\"\nsource = \"{}\"\n",
        ghost.url(),
        own.url()
    );
    let site = Site::start(&toml);
    own.on(get("/.well-known/webfinger")).reply(ok("own").field("cache-control", "max-age=60"));
    site.get("/.well-known/webfinger").await.status(200).body("own");
    ghost.on(get("/.ghost/analytics/x")).reply(status(404));
    site.get("/.ghost/analytics/x").await.status(404);
}

/// The social web is another server's business: what it suffers, no reader of the blog does.
#[tokio::test]
async fn a_companion_that_is_down_or_hangs_harms_nothing_else() {
    let (ghost, social, analytics, site) = with_companions("", AT_ONCE);
    ghost.on(get("/hello/")).reply(page("hello"));
    ghost.on(get("/new/")).reply(page("new"));
    site.get("/hello/").await.status(200);
    social.kill();
    let hanging = Gate::new();
    analytics.on(get("/x")).reply(ok("late").gate(&hanging));
    let mut waiting = site.client().await;
    waiting.send(Req::get("/.ghost/analytics/x")).await;
    hanging.arrived().await;
    for _ in 0..5 {
        site.get("/.ghost/activitypub/users/index").await.status(502);
    }
    site.get("/hello/").await.status(200).x_cache("HIT");
    site.get("/new/").await.status(200).body("new");
    let health = site.server.console().health();
    assert_eq!(health.sites[0].origin_up, Some(true));
    hanging.open();
    waiting.read_answer().await.status(200).body("late");
}

/// Nothing is known of a server that nobody has asked.
#[tokio::test]
async fn a_companion_that_was_never_asked_is_not_called_up() {
    let (_ghost, social, _analytics, site) = with_companions("", "");
    social.on(get("/.well-known/webfinger")).reply(ok("social"));
    let asked = || {
        let origins = site.server.console().origins();
        origins.into_iter().filter(|origin| origin.address == social.url()).map(|origin| origin.asked).collect::<Vec<_>>()
    };
    assert!(!asked().is_empty() && asked().iter().all(|asked| !asked));
    site.get("/.well-known/webfinger").await.status(200);
    assert!(asked().iter().any(|asked| *asked));
}

/// What the path of the blog is, a Ghost itself knows best.
#[tokio::test]
async fn the_path_that_a_ghost_reports_goes_before_the_one_that_was_written() {
    let (ghost, social) = (Origin::start(), Origin::start());
    ghost.on(get("/journal/sitemap.xml")).reply(status(404));
    let toml = format!("source = \"{}/blog\"\n[ghost]\nactivitypub = \"{}\"\n", ghost.url(), social.url());
    let site = Site::start_knowing(&toml, known_as(&ghost, "https://blog.example/journal/"));
    social.on(get("/journal/.well-known/webfinger")).reply(ok("social"));
    site.get("/journal/.well-known/webfinger").await.status(200).body("social");
}

const INDEX: &str = "<sitemapindex><sitemap><loc>http://blog.example/sitemap-pages.xml</loc><lastmod>2026-11-23T00:36:15.270Z</lastmod></sitemap><sitemap><loc>http://blog.example/sitemap-posts.xml</loc></sitemap></sitemapindex>";

fn pages(started: &str) -> Reply {
    ok(format!(
        "<urlset><url><loc>http://blog.example/</loc><lastmod>{started}</lastmod></url><url><loc>http://blog.example/about/</loc><lastmod>2026-01-01T00:00:00.000Z</lastmod></url></urlset>"
    ))
}

fn posts(changed: &str) -> Reply {
    ok(format!("<urlset><url><loc>http://blog.example/hello/</loc><lastmod>{changed}</lastmod></url></urlset>"))
}

/// Returns a Ghost that is watched, and has been looked at once.
async fn watched(url: &str) -> (Origin, Site) {
    let origin = Origin::start();
    origin.on(get("/sitemap.xml")).reply(ok(INDEX));
    origin.on(get("/sitemap-pages.xml")).reply(pages("2026-11-23T00:36:15.270Z"));
    origin.on(get("/sitemap-posts.xml")).reply(posts("2026-01-01T00:00:00.000Z"));
    origin.on(get("/hello/")).reply(page("old"));
    let site = Site::start_knowing(&format!("source = \"{}\"\n{AT_ONCE}", origin.url()), known_as(&origin, url));
    origin.until_count("/sitemap-posts.xml", 1).await;
    site.get("/hello/").await.status(200).body("old");
    site.get("/hello/").await.x_cache("HIT");
    (origin, site)
}

/// The interval at which a Ghost is looked at, and the time that a change waits for the signal that may belong to it.
const LOOK: u64 = 50;
const GRACE: u64 = 5;

/// Moves the clock, and waits until the Ghost has been looked at for the `n`th time.
async fn looked_after(seconds: u64, origin: &Origin, site: &Site, n: usize) {
    site.clock.advance(secs(seconds));
    origin.until_count("/sitemap-posts.xml", n).await;
}

fn remarks(site: &Site) -> String {
    site.server.console().health().sites[0].remarks.join("\n")
}

/// An editor who uses the Ghost's own address sends no request through Seawall, and no signal comes.
#[tokio::test]
async fn what_is_published_past_seawall_is_live_within_a_minute_and_an_operator_is_told() {
    let (origin, site) = watched("http://blog.example/").await;
    origin.on(get("/sitemap-posts.xml")).reply(posts("2026-01-02T00:00:00.000Z"));
    origin.on(get("/hello/")).reply(page("new"));
    looked_after(LOOK, &origin, &site, 2).await;
    looked_after(GRACE, &origin, &site, 3).await;
    let begun = Instant::now();
    while site.get("/hello/").await.text() != "new" {
        assert!(begun.elapsed() < PATIENCE, "the old page stays");
    }
    assert!(remarks(&site).contains("published past Seawall: once"), "{}", remarks(&site));
}

#[tokio::test]
async fn what_was_announced_was_not_published_past_seawall() {
    let (origin, site) = watched("http://blog.example/").await;
    origin.on(get("/sitemap-posts.xml")).reply(posts("2026-01-02T00:00:00.000Z"));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    looked_after(LOOK, &origin, &site, 2).await;
    looked_after(LOOK, &origin, &site, 3).await;
    looked_after(LOOK, &origin, &site, 4).await;
    assert_eq!(remarks(&site), "");
}

/// Ghost gives its front page the time at which it was started.
#[tokio::test]
async fn a_ghost_that_was_restarted_has_published_nothing() {
    let (origin, site) = watched("http://blog.example/").await;
    origin.on(get("/sitemap.xml")).reply(ok(INDEX.replace("00:36:15", "01:00:00")));
    origin.on(get("/sitemap-pages.xml")).reply(pages("2026-11-23T01:00:00.000Z"));
    looked_after(LOOK, &origin, &site, 2).await;
    looked_after(LOOK, &origin, &site, 3).await;
    looked_after(LOOK, &origin, &site, 4).await;
    assert_eq!(remarks(&site), "");
    site.get("/hello/").await.x_cache("HIT");
}

/// What cannot be read says nothing.
#[tokio::test]
async fn a_ghost_that_fails_has_published_nothing() {
    let (origin, site) = watched("http://blog.example/").await;
    origin.on(get("/sitemap-posts.xml")).reply(status(503));
    looked_after(LOOK, &origin, &site, 2).await;
    origin.on(get("/sitemap-posts.xml")).reply(posts("2026-01-01T00:00:00.000Z"));
    looked_after(LOOK, &origin, &site, 3).await;
    looked_after(LOOK, &origin, &site, 4).await;
    assert_eq!(remarks(&site), "");
}

/// Whoever does what the banner says has opened the page before: the redirect to the address that it had is stored, and would lead in a circle.
#[tokio::test]
async fn another_url_is_noticed_soon_where_the_old_one_led_past_and_ends_redirects_to_it() {
    let origin = Origin::start();
    origin.on(get("/sitemap.xml")).reply(status(404));
    let elsewhere = format!("{}/hello/", origin.url());
    origin.on(get("/hello/")).reply(status(301).field("location", elsewhere).field("cache-control", "public, max-age=31536000"));
    let toml = format!("source = \"{}\"\n{AT_ONCE}", origin.url());
    let site = Site::start_knowing(&toml, known_as(&origin, &format!("{}/", origin.url())));
    site.get("/hello/").await.status(301);
    site.get("/hello/").await.status(301).x_cache("HIT");
    let says = format!(
        r#"{{"site":{{"title":"The Slow Almanac","url":"http://{}/","version":"6.65","site_uuid":"91e42c58-6160-48c2-bcaa-45f4e116a00e"}}}}"#,
        site.address()
    );
    origin.on(get("/ghost/api/admin/site/")).reply(ok(says).field("content-type", "application/json").field("content-version", "v6.65"));
    origin.on(get("/hello/")).reply(page("hello"));
    let (begun, mut looks) = (Instant::now(), 0_u32);
    while site.get("/hello/").await.text() != "hello" {
        assert!(begun.elapsed() < PATIENCE, "the redirect stays");
        // Ghost is asked every five seconds, counted from a moment that is not known here; for minutes at most, as the redirect is kept for a day.
        if begun.elapsed() > Duration::from_millis(100) * looks {
            site.clock.advance(secs(5));
            looks += 1;
        }
    }
}

/// Status says it without a single edit, too: everything that an editor does will bypass Seawall.
#[tokio::test]
async fn status_says_if_a_ghosts_url_is_its_own_address() {
    let origin = Origin::start();
    origin.on(get("/sitemap.xml")).reply(status(404));
    let toml = format!("source = \"{}\"\n", origin.url());
    let site = Site::start_knowing(&toml, known_as(&origin, &format!("{}/", origin.url())));
    let expected = format!(
        "which leads past Seawall: set \"url\" in Ghost's config.production.json, or its environment variable url, to http://{}",
        site.address()
    );
    assert!(remarks(&site).contains(&expected), "{}", remarks(&site));
    assert_eq!(site.server.console().health().sites[0].kind_known, Some(format!("recognised: Ghost 6.65 at {}/", origin.url())));
}
