//! `seawall warm`: what is asked for, how, and what is said about it (sitemaps.org 0.9, RFC 9309 for robots.txt).

use std::{future::pending, io::Write as _};

use ::operator::warm::{Options, Outcome, Progress, Summary, warm};
use flate2::{Compression, write::GzEncoder};
use seawall::recognition::{Finding, Findings, Question, Software};
use store::{Hardness, PurgeTarget};
use testkit::{Gate, Origin, Req, get, not_modified, ok, secs, status};

use crate::{
    operator::Operator,
    site::{HOST, Site, site},
    tls::Authority,
};

const NOTHING: Options = Options { urls: Vec::new(), sitemaps: Vec::new(), stored: false, host: None, concurrency: 2, rate: None };

/// Remembers what was said.
#[derive(Default)]
struct Heard {
    pages: usize,
    lines: Vec<String>,
}

impl Progress for Heard {
    fn begin(&mut self, pages: usize) {
        self.pages = pages;
    }

    fn done(&mut self, url: &str, outcome: &Outcome) {
        self.lines.push(outcome.line(url, false));
    }

    fn say(&mut self, words: &str) {
        self.lines.push(words.to_owned());
    }
}

async fn run(operator: &Operator, options: Options) -> (Summary, Heard) {
    let mut heard = Heard::default();
    let summary = warm(&operator.client(), &options, &mut heard, pending()).await.expect("it was asked");
    (summary, heard)
}

fn urlset(addresses: &[&str]) -> String {
    let urls: String = addresses.iter().map(|address| format!("<url><loc>{address}</loc></url>")).collect();
    format!("<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{urls}</urlset>")
}

fn page() -> testkit::Reply {
    ok("text").field("cache-control", "max-age=600").field("vary", "accept-encoding")
}

/// Returns a site with a host of its own, so that its sitemap can be found.
fn named_site() -> (Origin, Site) {
    let origin = Origin::start();
    let site = Site::start(&format!("[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n", origin.url()));
    (origin, site)
}

/// A Ghost has its sitemap below its path, and under the name that its readers use: what it says to another name is not a failure.
#[tokio::test]
async fn a_ghosts_sitemap_is_read_where_it_says_that_it_is() {
    let origin = Origin::start();
    let url = format!("http://{HOST}/blog/");
    let question = Question { source: origin.url(), host: Some("old.example".to_owned()) };
    let software = Software::ghost("6.65", &url).expect("a Ghost");
    let toml = format!(
        "[[site]]\nhosts = [\"old.example\", \"{HOST}\"]\nsource = \"{}\"\n[site.cache]\ntwo_visitor_proof = false\n",
        origin.url()
    );
    let site = Site::start_knowing(&toml, |_| {
        let mut known = Findings::default();
        known.take(question, Finding::Recognised { software, remembered: false });
        known
    });
    let operator = Operator::of(&site);
    for path in ["/robots.txt", "/blog/sitemap.xml"] {
        origin.on(get(path)).reply(status(404));
    }
    origin.on(get("/blog/sitemap.xml").field("host", HOST)).reply(ok(urlset(&[&format!("{url}hello/")])));
    origin.on(get("/blog/hello/")).reply(page());
    let (summary, heard) = run(&operator, NOTHING).await;
    assert_eq!((summary.of(&Outcome::Stored), summary.is_success()), (1, true), "{:?}", heard.lines);
}

/// The sitemap that robots.txt names is read, and every page is stored where a browser finds it.
#[tokio::test]
async fn every_page_of_the_sitemap_is_stored() {
    let (origin, site) = named_site();
    let operator = Operator::of(&site);
    origin.on(get("/robots.txt")).reply(ok(format!("User-agent: *\nSitemap: http://{HOST}/map.xml\n")));
    let addresses = ["/", "/post?a=1&amp;b=2", "/private"].map(|target| format!("http://{HOST}{target}"));
    origin.on(get("/map.xml")).reply(ok(urlset(&addresses.each_ref().map(String::as_str))));
    origin.on(get("/")).reply(page());
    origin.on(get("/post").query("a=1&b=2")).reply(page());
    origin.on(get("/private")).reply(ok("text").field("cache-control", "private"));

    let (summary, heard) = run(&operator, NOTHING).await;
    let private = Outcome::NotStored("private".to_owned());
    assert_eq!((summary.of(&Outcome::Stored), summary.of(&private), summary.is_success()), (2, 1, true), "{:?}", heard.lines);
    assert_eq!((heard.pages, heard.lines.len()), (3, 3));
    assert!(heard.lines.contains(&format!("stored      http://{HOST}/")), "{:?}", heard.lines);
    // What a browser sends: another spelling of the codings, and the same variant.
    site.request(Req::get("/").field("accept", "text/html,*/*;q=0.8").field("accept-encoding", "gzip, deflate, br")).await.x_cache("HIT");
    let asked = origin.last("/");
    assert_eq!(asked.field("host").as_deref(), Some(HOST));

    let (summary, _) = run(&operator, NOTHING).await;
    assert_eq!((summary.of(&Outcome::Hit), summary.of(&private)), (2, 1));
    assert_eq!(origin.count("/"), 1);
}

/// A page of which two visitors are given the same is stored when that is known; one of which they are not is told by its reason.
#[tokio::test]
async fn a_page_that_is_proven_counts_as_stored() {
    let origin = Origin::start();
    let site = Site::start(&format!("[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n[cache]\ntwo_visitor_proof = true", origin.url()));
    let operator = Operator::of(&site);
    let visits = std::sync::atomic::AtomicUsize::new(0);
    let html = |text: String| ok(text).field("cache-control", "max-age=600").field("content-type", "text/html");
    origin.on(get("/")).reply(html("text".to_owned()));
    origin.on(get("/cart")).reply_with(move |_| html(visits.fetch_add(1, std::sync::atomic::Ordering::SeqCst).to_string()));
    let urls = ["/", "/cart"].map(|target| format!("http://{HOST}{target}")).to_vec();
    let (summary, heard) = run(&operator, Options { urls, ..NOTHING }).await;
    let differ = Outcome::NotStored("two-visitors-differ".to_owned());
    assert_eq!((summary.of(&Outcome::Stored), summary.of(&differ)), (1, 1), "{:?}", heard.lines);
    assert_eq!(origin.count("/"), 2);
}

/// An index names sitemaps, some of them gzipped; a page that is listed twice is asked for once; another host's is not asked for at all.
#[tokio::test]
async fn an_index_is_followed_and_strangers_are_left_alone() {
    let (origin, site) = named_site();
    let operator = Operator::of(&site);
    let index = format!(
        "<sitemapindex><sitemap><loc>http://{HOST}/a.xml.gz</loc></sitemap><sitemap><loc>http://{HOST}/b.xml</loc></sitemap>\
         <sitemap><loc>http://evil.example/c.xml</loc></sitemap><sitemap><loc>http://{HOST}/index.xml</loc></sitemap></sitemapindex>"
    );
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(urlset(&[&format!("http://{HOST}/one"), "http://evil.example/two", "nonsense"]).as_bytes()).expect("written");
    origin.on(get("/robots.txt")).reply(status(404));
    origin.on(get("/sitemap.xml")).reply(status(301).field("location", "http://evil.example/index.xml"));
    origin.on(get("/index.xml")).reply(ok(index));
    origin.on(get("/a.xml.gz")).reply(ok(gzip.finish().expect("written")).field("content-type", "application/gzip"));
    origin.on(get("/b.xml")).reply(ok(urlset(&[&format!("http://{HOST}/one"), &format!("http://{HOST}/gone")])));
    origin.on(get("/one")).reply(page());
    origin.on(get("/gone")).reply(status(404));

    let options = Options { sitemaps: vec![format!("http://{HOST}/index.xml")], ..NOTHING };
    let (summary, heard) = run(&operator, options).await;
    let skipped = |why: &str| summary.of(&Outcome::Skipped(why.to_owned()));
    assert_eq!((summary.of(&Outcome::Stored), skipped("another host"), skipped("no address")), (1, 1, 1), "{:?}", heard.lines);
    assert_eq!(summary.of(&Outcome::Failed("status 404".to_owned())), 1);
    assert_eq!(summary.of(&Outcome::Failed("unreadable sitemap".to_owned())), 1, "{:?}", heard.lines);
    assert!(!summary.is_success());
    assert_eq!((origin.count("/one"), origin.count("/index.xml")), (1, 1));

    // Nothing to be read at all is an error that says what was tried.
    let error = warm(&operator.client(), &NOTHING, &mut Heard::default(), pending()).await.expect_err("no sitemap").to_string();
    assert!(
        error.contains("no sitemap could be read")
            && error.contains("sitemap.xml: it leads to http://evil.example/index.xml: another host"),
        "{error}"
    );
    origin.on(get("/empty.xml")).reply(ok(urlset(&[])));
    let empty = Options { sitemaps: vec![format!("http://{HOST}/empty.xml")], ..NOTHING };
    let error = warm(&operator.client(), &empty, &mut Heard::default(), pending()).await.expect_err("no page").to_string();
    assert!(error.contains("name no page"), "{error}");
}

/// What is stored and stale or purged is asked for again, by the fields that select it; what is fresh is left alone.
#[tokio::test]
async fn what_is_stored_and_stale_is_refreshed() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    let short = || ok("text").field("cache-control", "max-age=10").field("etag", "\"a\"").field("vary", "accept-language");
    origin.on(get("/short").without("if-none-match")).reply(short());
    origin
        .on(get("/short").field("if-none-match", "\"a\"").field("accept-language", "de"))
        .reply(not_modified().field("cache-control", "max-age=600"));
    origin.on(get("/feed").field("accept", "application/rss+xml")).reply(page());
    origin.on(get("/long")).reply(page());
    site.request(Req::get("/short").field("accept-language", "de")).await.status(200);
    site.request(Req::get("/feed").field("accept", "application/rss+xml")).await.status(200);
    site.get("/long").await.status(200);
    site.clock.advance(secs(20));
    let url = format!("{HOST}/feed").into_bytes();
    site.purge(&PurgeTarget::Url { site: 0, url }, Hardness::Soft);

    let stored = Options { stored: true, ..NOTHING };
    let (summary, heard) = run(&operator, stored.clone()).await;
    assert_eq!((heard.pages, summary.is_success()), (2, true), "{:?}", heard.lines);
    // The one was confirmed; the other, purged softly within its lifetime, was served while it was fetched anew.
    assert_eq!((summary.of(&Outcome::Stored), summary.of(&Outcome::Refreshing)), (1, 1), "{:?}", heard.lines);
    assert_eq!((origin.count("/short"), origin.count("/long")), (2, 1));
    site.request(Req::get("/short").field("accept-language", "de")).await.x_cache("HIT");
    site.has_read_all().await;
    site.request(Req::get("/feed").field("accept", "application/rss+xml")).await.x_cache("HIT");
    let (summary, _) = run(&operator, stored).await;
    assert_eq!((summary.table(false).as_str(), summary.is_success()), ("There is nothing to warm.\n", true));
}

/// RFC 9111 §3.3: a stored part is not a page of its own. What asks for stale pages again does not ask for an address that nobody has.
#[tokio::test]
async fn a_stored_part_is_no_page_to_refresh() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    let part = status(206).body("01234").field("content-range", "bytes 0-4/10").field("cache-control", "max-age=10");
    origin.on(get("/file")).reply(part);
    site.request(Req::get("/file").field("range", "bytes=0-4")).await.status(206).cache_status("stored");
    site.clock.advance(secs(20));
    let (summary, heard) = run(&operator, Options { stored: true, ..NOTHING }).await;
    assert_eq!((heard.pages, summary.table(false).as_str()), (0, "There is nothing to warm.\n"), "{:?}", heard.lines);
    assert_eq!(origin.count("/file"), 1);
}

/// What a trusted proxy said is part of the key: a page is asked for again by that, too.
#[tokio::test]
async fn a_page_is_refreshed_with_what_a_trusted_proxy_said() {
    let origin = Origin::start();
    let server = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\ntrusted_fields = [\"X-Country\"]\n";
    let site = Site::start(&format!("source = \"{}\"\n{server}", origin.url()));
    let operator = Operator::of(&site);
    origin.on(get("/post").field("x-country", "NL")).reply(ok("Hallo").field("cache-control", "max-age=10"));
    site.request(Req::get("/post").field("x-country", "NL")).await.body("Hallo").cache_status("stored");
    site.clock.advance(secs(20));
    let (summary, heard) = run(&operator, Options { stored: true, ..NOTHING }).await;
    assert_eq!((summary.of(&Outcome::Stored), summary.is_success()), (1, true), "{:?}", heard.lines);
    site.request(Req::get("/post").field("x-country", "NL")).await.body("Hallo").cache_status("hit");
}

/// RFC 9110 §10.2.3, RFC 6585 §4: a server that has too much to do is asked again later, as it says; one that fails is not asked for ever.
#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    origin.on(get("/post")).reply(page());
    origin.on(get("/post")).once().reply(status(429).field("retry-after", "0"));
    origin.on(get("/broken")).reply(status(500).field("retry-after", "0"));
    let url = |target: &str| format!("http://{HOST}{target}");
    let (summary, heard) = run(&operator, Options { urls: vec![url("/post")], ..NOTHING }).await;
    assert_eq!((summary.of(&Outcome::Stored), origin.count("/post")), (1, 2), "{:?}", heard.lines);

    let broken: Vec<String> = (0..20).map(|n| url(&format!("/broken?n={n}"))).collect();
    origin.on(get("/broken").any_query()).reply(status(500).field("retry-after", "0"));
    let (summary, _) = run(&operator, Options { urls: broken, concurrency: 1, ..NOTHING }).await;
    assert_eq!(summary.of(&Outcome::Failed("status 500".to_owned())), 8);
    assert_eq!(summary.stopped, Some((12, "the server fails again and again".to_owned())));
    assert!(!summary.is_success());
}

/// Ctrl-C: nothing further is asked, and what was done is said.
#[tokio::test]
async fn a_stop_leaves_the_rest() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    let gate = Gate::new();
    origin.on(get("/one")).reply(page());
    origin.on(get("/two")).reply(page().gate(&gate));
    let urls = ["/one", "/two", "/three"].map(|target| format!("http://{HOST}{target}")).to_vec();
    let mut heard = Heard::default();
    let options = Options { urls, concurrency: 1, ..NOTHING };
    let summary = warm(&operator.client(), &options, &mut heard, gate.arrived()).await.expect("it was asked");
    assert_eq!((summary.of(&Outcome::Stored), summary.stopped), (1, Some((2, "stopped".to_owned()))), "{:?}", heard.lines);
    assert_eq!(origin.count("/three"), 0);
    gate.open();
}

/// RFC 9309 §2.3.1.2: a sitemap that has moved is read where it is.
#[tokio::test]
async fn a_sitemap_is_followed_to_where_it_has_moved() {
    let (origin, site) = named_site();
    let operator = Operator::of(&site);
    origin.on(get("/robots.txt")).reply(status(404));
    origin.on(get("/sitemap.xml")).reply(status(301).field("location", "/sitemaps/all.xml"));
    origin.on(get("/sitemaps/all.xml")).reply(ok(urlset(&[&format!("http://{HOST}/one")])));
    origin.on(get("/one")).reply(page());
    let (summary, heard) = run(&operator, NOTHING).await;
    assert_eq!((summary.of(&Outcome::Stored), summary.is_success()), (1, true), "{:?}", heard.lines);
}

/// Where the server speaks TLS itself, pages are asked for over TLS, whoever certified the name: that is where readers find them. Those that a
/// sitemap names with http, and that are sent to https, are asked for there.
#[tokio::test]
async fn a_server_that_speaks_tls_is_asked_over_tls() {
    for redirect in [false, true] {
        let authority = Authority::new();
        let origin = Origin::start();
        let section = authority.section();
        let site = Site::start(&format!(
            "{section}[https]\nredirect = {redirect}\n[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n",
            origin.url()
        ));
        let operator = Operator::of(&site);
        origin.on(get("/robots.txt")).reply(status(404));
        origin.on(get("/sitemap.xml")).reply(ok(urlset(&[&format!("https://{HOST}/one"), &format!("http://{HOST}/two")])));
        origin.on(get("/one")).reply(page());
        origin.on(get("/two")).reply(page());
        let (summary, heard) = run(&operator, NOTHING).await;
        assert_eq!((summary.of(&Outcome::Stored), summary.is_success()), (2, true), "{redirect}: {:?}", heard.lines);
        assert_eq!(origin.last("/one").field("x-forwarded-proto").as_deref(), Some("https"));
        let expected = if redirect { "https" } else { "http" };
        assert_eq!(origin.last("/two").field("x-forwarded-proto").as_deref(), Some(expected), "{redirect}");
        let hit = crate::tls::get(&site, &authority, "/one").await.to_ascii_lowercase();
        assert!(hit.contains("x-cache: hit"), "{hit}");
    }
}

/// A name that has no certificate yet is served without TLS, and so it is asked for without.
#[tokio::test]
async fn a_name_without_a_certificate_is_asked_without_tls() {
    let authority = Authority::new();
    let origin = Origin::start();
    // The only certificate is for another name, and is shown for no other: `[site.tls]`, not `[tls]`.
    let section = authority.section().replace("[tls]\n", "");
    let (listen, pair) = section.split_once('\n').expect("lines");
    let site = Site::start(&format!(
        "[tls]\n{listen}\n[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{0}\"\n[site.tls]\n{pair}[[site]]\nhosts = [\"new.example\"]\nsource = \"{0}\"\n",
        origin.url()
    ));
    let operator = Operator::of(&site);
    origin.on(get("/robots.txt")).reply(status(404));
    origin.on(get("/sitemap.xml")).reply(ok(urlset(&["http://new.example/one"])));
    origin.on(get("/one")).reply(page());
    let options = Options { host: Some("new.example".to_owned()), ..NOTHING };
    let (summary, heard) = run(&operator, options).await;
    assert_eq!((summary.of(&Outcome::Stored), summary.is_success()), (1, true), "{:?}", heard.lines);
}

/// A server that listens on a Unix socket alone.
#[tokio::test]
async fn a_unix_socket_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let socket = folder.path().join("s");
    let site = Site::start(&format!(
        "[server]\nlisten = [\"unix:{}\"]\n[[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n",
        socket.display(),
        origin.url()
    ));
    let operator = Operator::of(&site);
    origin.on(get("/one")).reply(page());
    let options = Options { urls: vec![format!("https://{HOST}/one")], ..NOTHING };
    let (summary, heard) = run(&operator, options).await;
    assert_eq!((summary.of(&Outcome::Stored), summary.is_success()), (1, true), "{:?}", heard.lines);
    // A Unix socket is trusted, also about the scheme.
    assert_eq!(origin.last("/one").field("x-forwarded-proto").as_deref(), Some("https"));
}
