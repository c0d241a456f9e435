//! Software is recognised by itself: at the start, later, when it was upgraded, and when it is away. Most of this is shown with a Ghost.

use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    process::{ChildStderr, Stdio},
    thread,
};

use testkit::{Origin, Reply, get as request, ok, status};

use super::running::{Running, TestFolder, get};

const SITE: &str = "/ghost/api/admin/site/";

/// Returns what Ghost 6.65 says of itself, as it says it.
fn ghost(version: &str, url: &str) -> Reply {
    ok(format!(
        r##"{{"site":{{"title":"The Slow Almanac","description":"Gardens, bread, bicycles and one small network.","logo":null,"icon":null,"cover_image":null,"accent_color":"#FF1A75","locale":"en","timezone":"Etc/UTC","url":"{url}","version":"{version}","allow_external_signup":true,"site_uuid":"91e42c58-6160-48c2-bcaa-45f4e116a00e"}}}}"##
    ))
    .field("x-powered-by", "Express")
    .field("content-version", format!("v{version}"))
    .field("vary", "Accept-Version, Accept-Encoding")
    .field("cache-control", "no-cache, private, no-store, must-revalidate, max-stale=0, post-check=0, pre-check=0")
    .field("content-type", "application/json; charset=utf-8")
}

/// Returns a page as Ghost sends it.
fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "public, max-age=0").field("content-type", "text/html; charset=utf-8").field("etag", "W/\"1\"")
}

/// A server, and what it says on standard error.
pub(crate) struct Talking {
    pub(crate) running: Running,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Talking {
    pub(crate) fn start(place: &TestFolder, arguments: &[&str]) -> Self {
        let mut command = place.serve(arguments);
        let mut running = Running::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        let lines = BufReader::new(running.stderr()).lines();
        Self { running, lines }
    }

    /// Reads everything up to a line with this text.
    pub(crate) fn says(&mut self, text: &str) -> String {
        let mut said = String::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            said += &format!("{line}\n");
            if line.contains(text) {
                return said;
            }
        }
        panic!("it never says {text}: {said}");
    }

    /// Reads the banner.
    pub(crate) fn banner(&mut self) -> String {
        let said = self.says("Try next:");
        self.running.told("READY=1");
        said
    }

    pub(crate) fn stop(self) {
        let Self { running, lines } = self;
        thread::spawn(move || lines.for_each(drop));
        assert_eq!(running.stop().code(), Some(0));
    }
}

#[test]
fn a_ghost_is_recognised_and_what_follows_is_said() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    let banner = Talking::start(&place, &[&origin.url()]).banner();
    assert!(banner.contains("(ghost)"), "{banner}");
    assert!(banner.contains("Ghost 6.65 at https://blog.example/: pages are kept until Ghost says that they changed"), "{banner}");
    assert!(!banner.contains("past Seawall"), "who knows where that name leads: {banner}");
}

/// Ghost is as its own command line sets it up. Without a word, each page would be a redirect to a name that nobody serves.
#[test]
fn a_ghost_that_sends_everybody_to_https_where_there_is_none_is_told() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    let hint = "its url begins with https, and Seawall has no https here: Ghost redirects every reader there. Use --domain NAME, or name \
                the proxy that ends TLS in --trusted-proxies";
    let listen = ["--listen", "127.0.0.1:0"];
    let banner = Talking::start(&place, &[&[&*origin.url()], &listen[..]].concat()).banner();
    assert!(banner.contains(hint), "{banner}");
    let mut server = Talking::start(&place, &[&[&*origin.url(), "--trusted-proxies", "127.0.0.1"], &listen[..]].concat());
    assert!(!server.banner().contains("has no https here"));
    let curl = server.says("curl");
    assert!(curl.contains("-H 'Host: blog.example' -H 'X-Forwarded-Proto: https' http://127.0.0.1:"), "{curl}");
}

/// The admin, the scheduler and all links use the url, so what is published there does not come through Seawall.
#[test]
fn a_ghost_whose_url_is_its_own_address_is_told_which_one_to_have() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", &format!("{}/", origin.url())));
    let banner = Talking::start(&place, &[&origin.url(), "--listen", "127.0.0.1:0"]).banner();
    assert!(banner.contains("leads past Seawall: the admin, the scheduler and links then bypass Seawall"), "{banner}");
    let served = banner.lines().find_map(|line| line.trim().strip_prefix("listening")).expect("an address").trim().trim_end_matches('/');
    assert!(banner.contains(&format!("or its environment variable url, to {served}, and restart Ghost")), "{banner}");
}

/// A static export says "Ghost" in its pages, and so does a theme of another system.
#[test]
fn what_merely_says_ghost_stays_generic() {
    let place = TestFolder::new();
    let export = r#"<!DOCTYPE html><html><head><meta name="generator" content="Ghost 6.65"></head></html>"#;
    for (answer, why) in [
        (status(404), "/ghost/api/admin/site/ answers 404"),
        (ok(export).field("content-type", "text/html"), "it is not JSON"),
        (ghost("6.65", "https://blog.example/").field("content-version", "v5.0"), "Content-Version"),
        (
            ok("{\"site\":{\"title\":\"x\"}}").field("content-type", "application/json").field("content-version", "v6.65"),
            "its JSON says nothing",
        ),
        (status(401), "answers 401"),
        (status(501), "answers 501"),
    ] {
        let origin = Origin::start();
        origin.on(request(SITE)).reply(answer);
        origin.on(request("/blog/ghost/api/admin/site/")).reply(status(404));
        origin.on(request("/").any_query()).reply(ok(export));
        let banner = Talking::start(&place, &[&origin.url()]).banner();
        assert!(
            banner.contains("(generic)") && banner.contains("calls itself \"Ghost 6.65\", but /ghost/api/admin/site/ answers"),
            "{banner}"
        );
        assert!(banner.contains("not taken for a Ghost (--kind ghost if it is one)") && !banner.contains("neither a Ghost"), "{banner}");
        assert!(banner.contains(why), "{why}: {banner}");
    }
}

/// Ghost sends whoever does not come over https there, and whoever asks for its admin by another name to the admin's.
#[test]
fn a_ghost_is_asked_as_its_readers_ask() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    let moved =
        |host: &str| status(301).field("location", format!("https://{host}{SITE}")).field("cache-control", "public, max-age=31536000");
    origin.on(request(SITE)).reply(moved("blog.example"));
    origin.on(request(SITE).field("x-forwarded-proto", "https")).reply(moved("admin.example"));
    origin
        .on(request(SITE).field("x-forwarded-proto", "https").field("host", "admin.example"))
        .reply(ghost("6.65", "https://blog.example/"));
    let banner = Talking::start(&place, &[&origin.url()]).banner();
    assert!(banner.contains("Ghost 6.65 at https://blog.example/"), "{banner}");
}

/// Below its path alone a Ghost in a subdirectory answers; in front of it Express says 404.
#[test]
fn a_ghost_in_a_subdirectory_is_found_and_has_its_path_from_the_source_or_by_itself() {
    for (path, source) in [("/blog", ""), ("/journal", "/journal"), ("/journal", "/journal/")] {
        let (origin, place) = (Origin::start(), TestFolder::new());
        origin.on(request(&format!("{path}{SITE}"))).reply(ghost("6.65", &format!("https://blog.example{path}/")));
        origin.on(request(SITE)).reply(status(404));
        let arguments = [&format!("{}{source}", origin.url()), "--listen", "127.0.0.1:0"];
        let banner = Talking::start(&place, &arguments).banner();
        assert!(banner.contains(&format!("Ghost 6.65 at https://blog.example{path}/")), "{banner}");
    }
}

#[test]
fn a_kind_that_was_given_decides_and_a_wrong_one_is_told() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(status(404));
    origin.on(request("/blog/ghost/api/admin/site/")).reply(status(404));
    let banner = Talking::start(&place, &[&origin.url(), "--kind", "ghost"]).banner();
    assert!(
        banner.contains("(ghost)") && banner.contains("but it does not answer as one (/ghost/api/admin/site/ answers 404)"),
        "{banner}"
    );
    assert!(banner.contains("pages are kept for a day at most, as nothing will say that they changed"), "{banner}");
    assert!(!banner.contains("until Ghost says"), "{banner}");

    let origin = Origin::start();
    // It is not even asked.
    origin.on(request("/")).reply(ok("page"));
    let banner = Talking::start(&place, &[&origin.url(), "--kind", "generic"]).banner();
    assert!(banner.contains("(generic)") && !banner.contains("neither a Ghost"), "{banner}");
}

#[test]
fn a_ghost_that_comes_up_later_is_taken_over_and_its_pages_are_kept() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.kill();
    let mut server = Talking::start(&place, &[&origin.url(), "--cache-dir", "cache"]);
    let banner = server.banner();
    assert!(banner.contains("(generic)") && banner.contains("does not answer yet"), "{banner}");
    assert!(banner.contains("if it is a Ghost or a WordPress, Seawall will see it"), "{banner}");
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    origin.on(request("/hello/")).reply(page("hello"));
    origin.on(request("/sitemap.xml")).reply(status(404));
    origin.revive();
    server.says("is recognised: Ghost 6.65 at https://blog.example/");
    server.says("pages are kept until Ghost says that they changed");
    // A generic server's page with max-age=0 would be validated each time.
    assert!(get(&place, "/hello/").ends_with("hello"));
    server.running.until("a hit", || get(&place, "/hello/").to_ascii_lowercase().contains("x-cache: hit"));
    server.stop();
}

/// Another version makes other pages of the same posts: cards and themes change with it.
#[test]
fn an_upgrade_is_noticed_and_what_was_stored_before_is_not_fresh_any_more() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    origin.on(request("/hello/")).reply(page("of 6.65"));
    origin.on(request("/sitemap.xml")).reply(status(404));
    let mut server = Talking::start(&place, &[&origin.url(), "--cache-dir", "cache"]);
    server.banner();
    assert!(get(&place, "/hello/").ends_with("of 6.65"));
    server.running.until("a hit", || get(&place, "/hello/").to_ascii_lowercase().contains("x-cache: hit"));
    origin.kill();
    // Somebody notices that it is away.
    assert!(get(&place, "/not-stored/").starts_with("HTTP/1.1 502"));
    origin.on(request(SITE)).reply(ghost("6.66", "https://blog.example/"));
    origin.on(request("/hello/")).reply(page("of 6.66").field("etag", "W/\"2\""));
    origin.revive();
    server.says("is now Ghost 6.66 at https://blog.example/; before, it was Ghost 6.65");
    server.says("pages are kept until Ghost says that they changed");
    server.running.until("the new page", || get(&place, "/hello/").ends_with("of 6.66"));
    server.stop();
}

/// Whoever restarts the machine that both run on must not lose what is stored because Seawall is faster.
#[test]
fn a_remembered_ghost_that_is_away_has_its_pages_read_from_the_disk() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    origin.on(request("/hello/")).reply(page("hello"));
    origin.on(request("/sitemap.xml")).reply(status(404));
    let arguments = [&origin.url(), "--cache-dir", "cache"];
    let mut server = Talking::start(&place, &arguments);
    server.banner();
    assert!(get(&place, "/hello/").ends_with("hello"));
    server.running.until("a hit", || get(&place, "/hello/").to_ascii_lowercase().contains("x-cache: hit"));
    server.stop();

    origin.kill();
    let mut server = Talking::start(&place, &arguments);
    let banner = server.banner();
    assert!(banner.contains("(ghost)") && banner.contains("does not answer yet; when it did, it was Ghost 6.65"), "{banner}");
    let answer = get(&place, "/hello/");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    origin.revive();
    server.says("answers, and is still Ghost 6.65 at https://blog.example/");
    server.stop();

    // An upgrade while Seawall was away counts too.
    origin.on(request(SITE)).reply(ghost("6.66", "https://blog.example/"));
    origin.on(request("/hello/")).reply(page("of 6.66").field("etag", "W/\"2\""));
    let mut server = Talking::start(&place, &arguments);
    server.banner();
    server.running.until("the new page", || get(&place, "/hello/").ends_with("of 6.66"));
    server.stop();
}

/// A proxy's 404 while Ghost starts, a page for maintenance, a failure: a restart of both at the same time sees them. A site that turned generic for
/// that would store the pages that Ghost calls public for members.
#[test]
fn a_remembered_ghost_that_answers_otherwise_for_a_moment_stays_one() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    origin.on(request("/blog/ghost/api/admin/site/")).reply(status(404));
    origin.on(request("/sitemap.xml")).reply(status(404));
    let arguments = [&origin.url(), "--cache-dir", "cache"];
    let mut server = Talking::start(&place, &arguments);
    server.banner();
    server.stop();
    origin.on(request("/").any_query()).reply(status(404));
    for answer in [status(404), ok("<!DOCTYPE html>").field("content-type", "text/html"), status(500), status(503)] {
        origin.on(request(SITE)).reply(answer);
        let mut server = Talking::start(&place, &arguments);
        let banner = server.banner();
        assert!(banner.contains("(ghost)") && banner.contains("when it did, it was Ghost 6.65"), "{banner}");
        origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
        server.says("answers, and is still Ghost 6.65 at https://blog.example/");
        server.stop();
    }
}

/// A theme is in files, and nobody says that they were changed: it is live when its Ghost was restarted.
#[test]
fn a_ghost_that_was_away_and_is_back_has_its_pages_asked_for_again() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    origin.on(request("/hello/")).reply(page("old theme"));
    origin.on(request("/sitemap.xml")).reply(status(404));
    let mut server = Talking::start(&place, &[&origin.url()]);
    server.banner();
    assert!(get(&place, "/hello/").ends_with("old theme"));
    server.running.until("a hit", || get(&place, "/hello/").to_ascii_lowercase().contains("x-cache: hit"));
    origin.kill();
    assert!(get(&place, "/not-stored/").starts_with("HTTP/1.1 502"));
    assert!(get(&place, "/hello/").ends_with("old theme"), "it is readable meanwhile");
    origin.on(request("/hello/")).reply(page("new theme").field("etag", "W/\"2\""));
    origin.revive();
    server.says("was away, and is back");
    server.running.until("the new theme", || get(&place, "/hello/").ends_with("new theme"));
    server.stop();
}

/// Whoever publishes while Seawall is stopped must not wait a day for it: no signal is repeated.
#[test]
fn what_was_published_while_seawall_was_stopped_is_found_at_the_next_start() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    let posts =
        |changed: &str| ok(format!("<urlset><url><loc>https://blog.example/hello/</loc><lastmod>{changed}</lastmod></url></urlset>"));
    let index = "<sitemapindex><sitemap><loc>https://blog.example/sitemap-posts.xml</loc></sitemap></sitemapindex>";
    origin.on(request(SITE)).reply(ghost("6.65", "https://blog.example/"));
    origin.on(request("/sitemap.xml")).reply(ok(index));
    origin.on(request("/sitemap-posts.xml")).reply(posts("2026-01-01T00:00:00.000Z"));
    origin.on(request("/hello/")).reply(page("old"));
    let arguments = [&origin.url(), "--cache-dir", "cache"];
    let mut server = Talking::start(&place, &arguments);
    server.banner();
    assert!(get(&place, "/hello/").ends_with("old"));
    server.running.until("a hit", || get(&place, "/hello/").to_ascii_lowercase().contains("x-cache: hit"));
    let memory = place.path().join("cache/recognised.json");
    server.running.until("it is written down", || fs::read_to_string(&memory).is_ok_and(|text| !text.contains("\"seen\":null")));
    server.stop();
    origin.on(request("/sitemap-posts.xml")).reply(posts("2026-01-02T00:00:00.000Z"));
    origin.on(request("/hello/")).reply(page("new").field("etag", "W/\"2\""));
    let mut server = Talking::start(&place, &arguments);
    server.banner();
    server.says("something was published while Seawall was away");
    server.running.until("the new page", || get(&place, "/hello/").ends_with("new"));
    server.stop();
}
