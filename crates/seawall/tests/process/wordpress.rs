//! A WordPress is recognised by itself: in a folder, and behind a server.

use std::{fs, os::unix::net::UnixListener, process::Command};

use testkit::{Origin, Reply, get as request, head, ok, status};

use super::{
    recognition::Talking,
    running::{TestFolder, get},
};

/// The question for a WordPress, as its query.
const ROOT: &str = "rest_route=/&_fields=name,url,home,namespaces&doing_wp_cron";

/// Returns what WordPress 6.8.7 says of itself, as it says it.
fn wordpress(home: &str, core: &str) -> Reply {
    let text = |url: &str| url.replace('/', "\\/");
    ok(format!(
        r#"{{"name":"The Slow Almanac","url":"{}","home":"{}","namespaces":["oembed\/1.0","wp\/v2","wp-site-health\/v1","wp-block-editor\/v1"]}}"#,
        text(core),
        text(home)
    ))
    .field("x-robots-tag", "noindex")
    .field("link", format!("<{home}/wp-json/>; rel=\"https://api.w.org/\""))
    .field("content-type", "application/json; charset=UTF-8")
}

/// Returns a page that is not there, as WordPress sends it.
fn not_found(home: &str) -> Reply {
    status(404).field("link", format!("<{home}/wp-json/>; rel=\"https://api.w.org/\"")).field("content-type", "text/html; charset=UTF-8")
}

fn says_version(origin: &Origin, path: &str) {
    let opml = "<?xml version=\"1.0\"?>\n<opml version=\"1.0\">\n<head><!-- generator=\"WordPress/6.8.7\" --></head></opml>";
    origin.on(request(path).query("doing_wp_cron")).reply(ok(opml).field("content-type", "text/xml; charset=UTF-8"));
}

/// Scripts what the schedule and the watch ask for.
fn runs(origin: &Origin, base: &str) {
    origin.on(request(&format!("{base}/wp-cron.php"))).reply(ok(""));
    origin.on(head(&format!("{base}/")).any_query()).reply(ok(""));
}

/// A reader who comes under an address that WordPress does not know is sent to its own: that is said with the remedy, and the commands to try ask under it.
#[test]
fn an_address_that_wordpress_does_not_know_is_said_and_tried_around() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(GHOST)).reply(not_found("http://blog.example"));
    origin.on(request("/").query(ROOT)).reply(wordpress("http://blog.example", "http://blog.example"));
    says_version(&origin, "/wp-links-opml.php");
    runs(&origin, "");
    let mut talking = Talking::start(&place, &[&origin.url()]);
    let banner = talking.banner() + &talking.says("grep -i cache");
    let said = "readers are redirected to http://blog.example: if that does not lead to Seawall, set both addresses in WordPress (Settings, General;";
    assert!(banner.contains(said), "{banner}");
    assert!(banner.contains(" -H 'Host: blog.example' http://"), "{banner}");
}

#[test]
fn a_server_that_is_no_wordpress_though_its_owner_says_so_is_told_in_plain_words() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request("/").any_query()).reply(ok("{}"));
    runs(&origin, "");
    let banner = Talking::start(&place, &[&origin.url(), "--kind", "wordpress"]).banner();
    assert!(banner.contains("You say that this is a WordPress, but it does not answer as one ("), "{banner}");
    assert!(banner.contains("Leave --kind out, or look at the address: pages are kept for an hour at most"), "{banner}");
    assert!(!banner.contains("members"), "{banner}");
}

const GHOST: &str = "/ghost/api/admin/site/";

#[test]
fn a_wordpress_behind_a_server_is_recognised_with_few_questions() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(GHOST)).reply(not_found("https://blog.example"));
    origin.on(request("/").query(ROOT)).reply(wordpress("https://blog.example", "https://blog.example"));
    says_version(&origin, "/wp-links-opml.php");
    runs(&origin, "");
    let banner = Talking::start(&place, &[&origin.url()]).banner();
    assert!(banner.contains("(wordpress)"), "{banner}");
    assert!(banner.contains("WordPress 6.8.7 at https://blog.example: pages are kept until WordPress changes them"), "{banner}");
    assert!(banner.contains("Seawall has no https here: its links and pictures lead there."), "{banner}");
    let asked: Vec<_> =
        origin.requests().iter().filter(|seen| seen.method == "GET" && !seen.target.contains("cron.php")).cloned().collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    // A question without this would have WordPress lock its schedule for a minute, and tell the lock's value to a Seawall that does not listen yet.
    assert!(asked[1..].iter().all(|seen| seen.target.ends_with("doing_wp_cron")), "{asked:?}");
}

#[test]
fn a_wordpress_whose_url_is_its_own_address_is_told_which_one_to_have() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(GHOST)).reply(not_found(&origin.url()));
    origin.on(request("/").query(ROOT)).reply(wordpress(&origin.url(), &origin.url()));
    says_version(&origin, "/wp-links-opml.php");
    runs(&origin, "");
    let banner = Talking::start(&place, &[&origin.url(), "--listen", "127.0.0.1:0"]).banner();
    assert!(banner.contains("leads past Seawall") && banner.contains("WP_HOME and WP_SITEURL"), "{banner}");
}

/// Nginx may let no parameters through to the front page; the page says where else the API is.
#[test]
fn a_wordpress_is_found_where_its_pages_say_that_its_api_is() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(GHOST)).reply(not_found("http://blog.example"));
    let front = ok("<!DOCTYPE html>").field("content-type", "text/html");
    origin.on(request("/").query(ROOT)).reply(front.field("link", "<http://blog.example/api/>; rel=\"https://api.w.org/\""));
    origin
        .on(request("/api/").query("_fields=name,url,home,namespaces&doing_wp_cron"))
        .reply(wordpress("http://blog.example", "http://blog.example/wp"));
    says_version(&origin, "/wp/wp-links-opml.php");
    origin.on(request("/wp/wp-cron.php")).reply(ok(""));
    origin.on(head("/").any_query()).reply(ok(""));
    let banner = Talking::start(&place, &[&origin.url()]).banner();
    assert!(banner.contains("WordPress 6.8.7 at http://blog.example:"), "{banner}");
}

/// Plugins for security let nobody but users into it.
#[test]
fn a_wordpress_whose_api_is_closed_to_strangers_is_recognised() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(GHOST)).reply(not_found("http://blog.example"));
    let refusal = r#"{"code":"rest_not_logged_in","message":"You are not currently logged in.","data":{"status":401}}"#;
    let refusal = status(401).body(refusal).field("content-type", "application/json; charset=UTF-8");
    origin.on(request("/").query(ROOT)).reply(refusal.field("link", "<http://blog.example/wp-json/>; rel=\"https://api.w.org/\""));
    // Nor does it say its version.
    origin.on(request("/wp-links-opml.php").query("doing_wp_cron")).reply(status(403));
    runs(&origin, "");
    let banner = Talking::start(&place, &[&origin.url()]).banner();
    assert!(banner.contains("(wordpress)") && banner.contains("WordPress at http://blog.example: pages are kept"), "{banner}");
}

#[test]
fn a_wordpress_below_a_path_is_found_there() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.on(request(GHOST)).reply(status(404));
    origin.on(request("/news/ghost/api/admin/site/")).reply(not_found("http://blog.example/news"));
    origin.on(request("/blog/ghost/api/admin/site/")).reply(status(404));
    origin.on(request("/news/").query(ROOT)).reply(wordpress("http://blog.example/news", "http://blog.example/news"));
    says_version(&origin, "/news/wp-links-opml.php");
    runs(&origin, "/news");
    let banner = Talking::start(&place, &[&format!("{}/news/", origin.url()), "--listen", "127.0.0.1:0"]).banner();
    assert!(banner.contains("WordPress 6.8.7 at http://blog.example/news:"), "{banner}");
}

/// An export says "WordPress" in its pages, and a page may link to somebody else's API.
#[test]
fn what_merely_says_wordpress_stays_generic() {
    let place = TestFolder::new();
    let export = r#"<!DOCTYPE html><html><head><meta name="generator" content="WordPress 6.8.7"></head></html>"#;
    let json = |text: &'static str| ok(text).field("content-type", "application/json");
    for (answer, why) in [
        (ok(export).field("content-type", "text/html"), "it is not JSON"),
        (status(404), "it answers 404"),
        (json("{}"), "its JSON says nothing"),
        (json(r#"{"name":"x","url":"http://a","home":"http://a","namespaces":[]}"#), "its API has no wp/v2"),
        (status(401), "it is not JSON"),
        (status(501), "it answers 501"),
    ] {
        let origin = Origin::start();
        for path in [GHOST, "/blog/ghost/api/admin/site/"] {
            origin.on(request(path)).reply(status(404));
        }
        origin.on(request("/").query(ROOT)).reply(answer);
        origin.on(request("/")).reply(ok(export));
        let banner = Talking::start(&place, &[&origin.url()]).banner();
        assert!(banner.contains("(generic)") && banner.contains("calls itself \"WordPress 6.8.7\", but "), "{banner}");
        assert!(banner.contains("not taken for a WordPress (--kind wordpress if it is one)") && banner.contains(why), "{why}: {banner}");
        assert_eq!(origin.requests().len(), 4, "two questions for a Ghost, one for a WordPress, and the front page");
    }
}

#[test]
fn a_wordpress_that_comes_up_later_is_taken_over_and_remembered() {
    let (origin, place) = (Origin::start(), TestFolder::new());
    origin.kill();
    let arguments = [&origin.url(), "--cache-dir", "cache"];
    let mut server = Talking::start(&place, &arguments);
    assert!(server.banner().contains("(generic)"));
    origin.on(request(GHOST)).reply(not_found("http://blog.example"));
    origin.on(request("/").query(ROOT)).reply(wordpress("http://blog.example", "http://blog.example"));
    says_version(&origin, "/wp-links-opml.php");
    runs(&origin, "");
    origin.on(request("/hello/")).reply(ok("hello").field("content-type", "text/html; charset=UTF-8"));
    origin.revive();
    server.says("is recognised: WordPress 6.8.7 at http://blog.example");
    server.says("pages are kept until WordPress changes them");
    server.running.until("a hit", || get(&place, "/hello/").to_ascii_lowercase().contains("x-cache: hit"));
    server.stop();

    origin.kill();
    let mut server = Talking::start(&place, &arguments);
    let banner = server.banner();
    assert!(banner.contains("(wordpress)") && banner.contains("when it did, it was WordPress 6.8.7"), "{banner}");
    assert!(get(&place, "/hello/").ends_with("hello"));
    server.stop();
}

/// Makes a folder with the files by which a WordPress is known.
fn folder(place: &TestFolder) {
    place.write("www/wp-includes/version.php", "<?php\n$wp_version = '6.8.7';\n");
    place.write("www/wp-load.php", "<?php");
    place.write("www/index.php", "<?php\nrequire __DIR__ . '/wp-blog-header.php';\n");
}

#[test]
fn a_wordpress_in_a_folder_is_known_before_php_is_there() {
    let place = TestFolder::new();
    folder(&place);
    let socket = format!("unix:{}", place.path().join("php.sock").display());
    let banner = Talking::start(&place, &["www", "--php", &socket]).banner();
    assert!(banner.contains("(wordpress)"), "{banner}");
    assert!(banner.contains(&format!(", PHP by {socket}: pages are kept until WordPress changes them")), "{banner}");
    assert!(
        banner.contains("WordPress 6.8.7 in ")
            && banner.contains("php.sock: start php-fpm (systemctl start php-fpm), or say where it listens with --php"),
        "{banner}"
    );
    assert!(banner.contains("it is not installed yet (there is no wp-config.php)"), "{banner}");
    let check = Command::new(env!("CARGO_BIN_EXE_seawall")).args(["check", "www", "--php", &socket]).current_dir(place.path()).output();
    let check = String::from_utf8(check.expect("seawall check").stdout).expect("text");
    assert!(check.contains("www is fine, with a warning.") && check.contains(&format!("PHP by {socket}: it cannot be reached")), "{check}");
    place.write("www/wp-config.php", "<?php");
    let banner = Talking::start(&place, &["www", "--php", &socket, "--kind", "php"]).banner();
    assert!(banner.contains("(php)") && banner.contains("www is a WordPress: --kind wordpress keeps its pages"), "{banner}");
    // An export has such paths too, and no PHP.
    place.write("export/index.html", "<meta name=generator content=\"WordPress 6.8.7\">");
    place.write("export/wp-content/themes/x/style.css", "");
    assert!(Talking::start(&place, &["export"]).banner().contains("(static)"));
}

/// What nobody may know but PHP is for the owner alone, and the same after a restart.
#[test]
fn the_secret_of_a_wordpress_is_kept_beside_its_pages() {
    use std::os::unix::fs::PermissionsExt;
    let place = TestFolder::new();
    folder(&place);
    let path = place.path().join("php.sock");
    let _php = UnixListener::bind(&path).expect("a socket");
    let kept = place.path().join("cache/wordpress-secret-default");
    let read = || fs::read_to_string(&kept).expect("a secret");
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let mut server = Talking::start(&place, &["www", "--php", &format!("unix:{}", path.display()), "--cache-dir", "cache"]);
        server.banner();
        secrets.push(read());
        server.stop();
    }
    assert_eq!(secrets[0], secrets[1]);
    assert!(secrets[0].trim().len() >= 64);
    assert_eq!(fs::metadata(&kept).expect("there").permissions().mode() & 0o777, 0o600);
}
