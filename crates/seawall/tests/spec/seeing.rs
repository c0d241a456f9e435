//! What an operator sees of the traffic: every count is that of the access log, and nothing of a visitor is kept.

mod judges;

use std::{collections::BTreeMap, fs, path::Path};

use admin::{Recent, Seen};
use policy::purge::{Order, What};
use serde_json::Value as Json;
use store::{Hardness, PurgeTarget};
use testkit::{Client, Gate, Origin, Req, get, head, not_modified, ok, patiently, post, secs, status};

use crate::site::{HOST, Site, site_with};
use judges::Counted;

fn seen(site: &Site, of: Option<&str>) -> Seen {
    site.server.settle_seeing();
    site.server.console().seen(of).expect("the site is there")
}

fn recent(site: &Site) -> Recent {
    site.server.console().recent(0, None, 4_096).expect("no expression")
}

/// Returns what is shown of each request that was not a plain hit: its path, what the cache did, the rule, and which cookie it was.
fn ruled(site: &Site, wanted: impl Fn(&str) -> bool) -> Vec<[String; 4]> {
    let requests = recent(site).requests.into_iter().filter(|line| wanted(&line.path));
    requests.map(|line| [line.path, line.result, line.rule, line.detail]).collect()
}

/// Whoever reads the list learns why the origin was asked, by the names of `Cache-Status`; where that needs none, what was missing.
#[tokio::test]
async fn each_request_says_why_it_was_no_plain_hit() {
    let (origin, site) = site_with("").await;
    let html = |text: &'static str| ok(text).field("content-type", "text/html");
    origin.on(get("/post")).reply(html("post").field("cache-control", "max-age=60").field("etag", "\"a\""));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("etag", "\"a\""));
    origin.on(get("/no-store")).reply(html("mine").field("cache-control", "no-store"));
    origin.on(get("/session")).reply(html("session").field("set-cookie", "PHPSESSID=s3cret; path=/"));
    origin.on(post("/form")).reply(html("thanks"));
    let mut client = site.client().await;
    client.get("/post").await.x_cache("MISS");
    client.get("/post").await.x_cache("HIT");
    site.clock.advance(secs(61));
    client.get("/post").await.x_cache("REVALIDATED");
    client.request(Req::get("/post").field("cache-control", "no-cache")).await.x_cache("REVALIDATED");
    site.purge(&PurgeTarget::All, Hardness::Hard);
    client.get("/post").await.x_cache("MISS");
    client.get("/no-store").await.status(200);
    client.get("/session").await.status(200);
    client.request(Req::post("/form").body("a=b")).await.status(200);
    origin.kill();
    client.get("/new").await.status(502);
    site.has_read_all().await;
    let line = |path: &str, result: &str, rule: &str, detail: &str| [path, result, rule, detail].map(ToOwned::to_owned);
    assert_eq!(
        ruled(&site, |path| path != "/turn"),
        [
            line("/post", "miss", "cold", ""),
            line("/post", "revalidated", "expired", ""),
            line("/post", "revalidated", "request-no-cache", ""),
            line("/post", "miss", "purged", ""),
            line("/no-store", "miss", "no-store", ""),
            line("/session", "miss", "set-cookie", "PHPSESSID"),
            line("/form", "bypass", "method", ""),
            line("/new", "miss", "connection_refused", ""),
        ]
    );
}

/// RFC 9112 §3.2.2: a target in absolute form names the host, whatever `Host` says. The lists and the log show such a request as every other one.
#[tokio::test]
async fn a_target_in_absolute_form_is_shown_as_the_page_that_it_asks_for() {
    let origin = Origin::start();
    origin.on(get("/post*")).reply(ok("text").field("cache-control", "no-store").field("content-type", "text/html"));
    origin.on(post("/form")).reply(ok("thanks"));
    let site = Site::start(&format!("source = \"{}\"\n[log]\naccess = \"./access.log\"\nformat = \"json\"\n", origin.url()));
    let mut client = site.client().await.with_host("other.example");
    client.get("http://blog.example/post?a=b").await.status(200);
    client.request(Req::post("http://blog.example/form").body("a=b")).await.status(200);
    site.client().await.with_host("blog.example").get("/post?a=b").await.status(200);
    site.has_read_all().await;
    let shown = recent(&site).requests.into_iter().filter(|line| line.host == "blog.example" || line.host == "other.example");
    let shown: Vec<_> = shown.filter(|line| line.path != "/turn").map(|line| [line.method, line.host, line.path]).collect();
    let [page, form] = [["GET", "blog.example", "/post?a=\u{2026}"], ["POST", "blog.example", "/form"]];
    assert_eq!(shown, [page, form, page]);
    let missed = seen(&site, None).missed.into_iter().find(|line| line.url == "http://blog.example/post?a=\u{2026}");
    assert_eq!(missed.map(|line| line.requests), Some(2), "it is one page");
    let folder = site.stop(secs(5));
    let text = fs::read_to_string(folder.path().join("access.log")).expect("a log");
    let logged = text.lines().map(|line| serde_json::from_str::<Json>(line).expect(line)).filter(|line| line["target"] != "/turn");
    let logged: Vec<_> =
        logged.map(|line| ["method", "host", "target"].map(|name| line[name].as_str().expect("text").to_owned())).collect();
    let page = ["GET", "blog.example", "/post?a=b"];
    assert_eq!(logged, [page, form, page]);
}

/// A request that passes names the cookie by which it does, one that reaches no site says so, and one that is answered before the cache is asked names the
/// step that did. A health check says nothing of the traffic.
#[tokio::test]
async fn a_request_that_never_got_to_the_cache_says_why() {
    let origin = Origin::start();
    let two = "[[site]]\nhosts = [\"blog.example\"]\nkind = \"wordpress\"\nsource = \"URL\"\n\
               [[site]]\nhosts = [\"new.example\"]\nredirect_from = [\"old.example\"]\nsource = \"URL\"\n";
    let site = Site::start(&format!("{}[server]\nhealth_path = \"/up\"\n", two.replace("URL", &origin.url())));
    let cookie = "wordpress_logged_in_abc=Ada";
    origin.on(get("/hello/").field("cookie", cookie)).reply(ok("hello Ada").field("content-type", "text/html"));
    site.request(Req::get("/hello/").field("cookie", cookie)).await.status(200);
    site.client().await.with_host("nobody.example").get("/a").await.status(421);
    site.client().await.with_host("old.example").get("/b").await.status(301);
    site.request(Req::new("PURGE", "/c")).await.status(200);
    for _ in 0..2 {
        site.get("/up").await.status(200);
    }
    let line = |path: &str, result: &str, rule: &str, detail: &str| [path, result, rule, detail].map(ToOwned::to_owned);
    assert_eq!(
        ruled(&site, |_| true),
        [
            line("/hello/", "bypass", "wordpress-user-cookie", "wordpress_logged_in_*"),
            line("/a", "none", "no-such-site", ""),
            line("/b", "none", "twin host", ""),
            line("/c", "none", "purge", ""),
        ]
    );
}

/// What a client that leaves has cost the origin stands with the reason why that was asked: whether it was asked for this client alone, or goes on for
/// others.
#[tokio::test]
async fn what_the_origin_did_for_clients_that_left_has_a_reason() {
    let (origin, site) = site_with("").await;
    let (alone, shared) = (Gate::new(), Gate::new());
    origin.on(post("/form")).reply(ok("thanks").gate(&alone));
    origin.on(get("/mine")).reply(ok("mine").field("cache-control", "no-store").gate(&shared));
    for (request, gate) in [(Req::post("/form").body("a=b"), &alone), (Req::get("/mine"), &shared)] {
        let mut client = site.client().await;
        client.send(request).await;
        gate.arrived().await;
        client.reset();
    }
    let line = |path: &str| [path, "none", "client-left", ""].map(ToOwned::to_owned);
    patiently("for both to have left", async {
        while ruled(&site, |path| path != "/turn").len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut left = ruled(&site, |path| path != "/turn");
    left.sort();
    assert_eq!(left, [line("/form"), line("/mine")]);
    let reasons = |seen: &Seen| {
        let reasons = seen.reasons.iter().map(|of| (of.rule.clone(), of.requests, of.example.clone()));
        let mut reasons: Vec<_> = reasons.collect();
        reasons.sort();
        reasons
    };
    let reason = |rule: &str, path: &str| (rule.to_owned(), 1, format!("http://{HOST}{path}"));
    assert_eq!(reasons(&seen(&site, None)), [reason("method", "/form")], "the other one's fetch goes on");
    [alone, shared].iter().for_each(Gate::open);
    patiently("for the fetch to end", async {
        while seen(&site, None).reasons.len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let seen = seen(&site, None);
    assert_eq!(reasons(&seen), [reason("method", "/form"), reason("no-store", "/mine")]);
    assert_eq!(seen.totals.origin_requests, 2);
    let spent: Vec<u64> = seen.reasons.iter().map(|of| of.origin_micros).collect();
    assert!(
        spent.iter().all(|micros| *micros > 0) && spent.iter().sum::<u64>() == seen.totals.origin_micros,
        "{spent:?}: {:?}",
        seen.totals
    );
    let mut missed: Vec<_> = seen.missed.iter().map(|of| of.url.clone()).collect();
    missed.sort();
    assert_eq!(missed, [format!("http://{HOST}/form"), format!("http://{HOST}/mine")]);
}

/// A message that is refused before it is a request is none: it has no line in the log, and is not an error of a request either. It is counted as refused.
#[tokio::test]
async fn errors_of_clients_are_those_of_requests() {
    let (origin, site) = site_with("").await;
    origin.on(get("/missing")).reply(status(404));
    site.get("/missing").await.status(404);
    for malformed in ["GET / HTTP/1.1\r\n\r\n", "GET /\u{7f} HTTP/1.1\r\nhost: a\r\n\r\n", "GET / HTTP/7.1\r\n\r\n"] {
        let mut client = site.client().await;
        client.send_raw(malformed).await;
        client.read_answer().await;
    }
    site.has_read_all().await;
    // The two whose answers say when all is read ask the cache alone. A request is counted when its answer has gone out.
    let asked = 1 + 2;
    patiently("for all to be counted", async {
        while seen(&site, None).totals.requests < asked {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let seen = seen(&site, None);
    let of = |name: &str| seen.by_result.iter().find(|line| line.name == name).map_or(0, |line| line.requests);
    assert_eq!((seen.totals.requests, of("refused")), (asked, 3));
    assert_eq!((seen.totals.client_errors, seen.totals.server_errors), (1, 2));
}

/// What is shown and what is kept on the disk names paths, cookies and parameters, and has no visitor's own in it.
#[tokio::test]
async fn nothing_of_a_visitor_is_shown_or_kept() {
    let origin = Origin::start();
    let site = Site::start(&format!(
        "source = \"{}\"\n[cache]\ndir = \"FOLDER/cache\"\ndisk = \"16MiB\"\n[server]\ntrusted_proxies = [\"127.0.0.1/32\"]\n",
        origin.url()
    ));
    origin.on(get("/search*")).reply(ok("found").field("cache-control", "max-age=60"));
    origin.on(get("/session*")).reply(ok("yours").field("set-cookie", "PHPSESSID=zq-1; path=/"));
    for _ in 0..40 {
        for target in ["/search?q=zq-2&page=zq-3", "/session?token=zq-4", "/search?zq5"] {
            let request = Req::get(target).field("cookie", "a=zq-6; zq7=zq-8").field("authorization", "Bearer zq-9");
            let request = request.field("x-forwarded-for", "203.0.113.77").field("referer", "https://a.example/?from=zq-10");
            site.request(request.field("user-agent", "Reader/1.0 (zq@example.org)")).await.status(200);
            site.request(Req::get(target).field("x-forwarded-for", "203.0.113.77")).await.status(200);
        }
    }
    site.has_read_all().await;
    let console = site.server.console();
    let shown = serde_json::to_string(&(seen(&site, None), recent(&site), console.moment(), console.series(None, 1))).expect("JSON");
    assert!(shown.contains("/search?q=\u{2026}&page=\u{2026}"), "{shown}");
    let kept = kept_after_stop(site);
    for secret in ["zq-", "203.0.113.77", "127.0.0.1:", "Bearer"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        assert!(!contains(&kept, secret.as_bytes()), "{secret} is on the disk");
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Stops a site whose cache is in `FOLDER/cache`, and reads what it has kept of what it saw.
fn kept_after_stop(site: Site) -> Vec<u8> {
    let folder = site.stop(secs(5));
    fs::read(folder.path().join("cache/seen")).expect("an account")
}

/// A restart begins no count anew; a file that is damaged is told of, and does not keep Seawall from starting.
#[tokio::test]
async fn what_was_counted_outlives_a_restart() {
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600").field("content-type", "text/html"));
    let folder = tempfile::tempdir().expect("a folder");
    let toml = format!("source = \"{}\"\n[cache]\ndir = \"{}\"\ndisk = \"16MiB\"\n", origin.url(), folder.path().join("cache").display());
    let run = async |requests: usize| {
        let site = Site::start(&toml);
        for _ in 0..requests {
            site.get("/post").await.status(200);
        }
        site.has_read_all().await;
        let seen = seen(&site, None);
        site.stop(secs(5));
        seen
    };
    let first = run(10).await;
    let second = run(3).await;
    // The first request of all is a miss, and the page outlives the restart, too.
    assert_eq!((first.totals.hits, second.totals.hits), (9, 12));
    assert_eq!((first.since, second.missed.first().map(|page| page.requests)), (second.since, Some(1)));
    let path = folder.path().join("cache/seen");
    for damage in [&b""[..], b"seen", &[0; 100]] {
        fs::write(&path, damage).expect("written");
        assert_eq!(run(1).await.totals.hits, 1, "{damage:?}");
    }
    let mut torn = fs::read(&path).expect("kept");
    torn.truncate(torn.len() / 2);
    fs::write(&path, torn).expect("written");
    assert_eq!(run(1).await.totals.hits, 1);
}

/// Whoever tries one source after another has the same folder for all of them, and must not be shown the pages of the one before.
#[tokio::test]
async fn the_account_of_another_source_is_not_taken_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let hits = async |origin: &Origin| {
        origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=600").field("content-type", "text/html"));
        let cache = folder.path().join("cache");
        let site = Site::start(&format!("source = \"{}\"\n[cache]\ndir = \"{}\"\ndisk = \"16MiB\"\n", origin.url(), cache.display()));
        for _ in 0..10 {
            site.get("/post").await.status(200);
        }
        site.has_read_all().await;
        let seen = seen(&site, None);
        site.stop(secs(5));
        seen.totals.hits
    };
    let (one, two) = (Origin::start(), Origin::start());
    let (first, again, other) = (hits(&one).await, hits(&one).await, hits(&two).await);
    assert!(first >= 9 && again >= first + 9 && other < again, "{first} {again} {other}");
}

/// Who purged what, and how much of it was there.
#[tokio::test]
async fn purges_are_shown_with_who_ordered_them() {
    let (origin, site) = site_with("").await;
    for path in ["/a", "/b"] {
        origin.on(get(path)).reply(ok("text").field("cache-control", "max-age=600"));
        site.get(path).await.status(200);
    }
    origin.on(post("/a")).reply(ok("thanks"));
    site.server.console().purge(&Order::by_operator(What::url(&format!("http://{HOST}/a")).expect("an address"), true)).expect("purged");
    site.clock.advance(secs(1));
    site.request(Req::new("PURGE", "/b")).await.status(200);
    site.clock.advance(secs(1));
    for _ in 0..100 {
        site.request(Req::post("/a").body("x")).await.status(200);
    }
    site.has_read_all().await;
    let purges = seen(&site, None).purges;
    let told: Vec<_> = purges.iter().map(|purge| (purge.by.as_str(), purge.count, purge.hard)).collect();
    assert_eq!(
        told,
        [
            ("a purge request on the site's address (varnish)", Some(1), true),
            ("whoever has the admin token (dashboard, seawall purge, a program)", Some(1), true),
        ],
        "a hundred strangers do not push the others out of the list"
    );
    assert!(purges[1].covered.contains("blog.example/a"), "{purges:?}");
}

/// An outage has a beginning and an end, and both are shown.
#[tokio::test]
async fn an_outage_of_the_origin_is_shown_from_its_beginning_to_its_end() {
    let (origin, site) = site_with("").await;
    origin.on(get("/*")).reply(ok("text").field("cache-control", "no-store"));
    site.get("/1").await.status(200);
    assert_eq!((seen(&site, None).outages, site.server.console().moment().down), (vec![], vec![]));
    let began = site.clock.millis();
    origin.kill();
    site.get("/2").await.status(502);
    site.clock.advance(secs(1));
    let outages = seen(&site, None).outages;
    assert_eq!(outages.len(), 1, "{outages:?}");
    assert!((began..=began + 2_000).contains(&outages[0].from) && outages[0].until.is_none(), "{outages:?}");
    assert!(origin.url().contains(&outages[0].address.replace("http://", "")), "{outages:?}");
    assert_eq!(site.server.console().moment().down, ["default"]);
    origin.revive();
    site.clock.advance(secs(60));
    site.get("/3").await.status(200);
    site.has_read_all().await;
    let outages = seen(&site, None).outages;
    assert_eq!((outages.len(), outages[0].until), (1, Some(site.clock.millis())), "{outages:?}");
    assert_eq!(site.server.console().moment().down, Vec::<String>::new());
}

/// Sites of the long comparison, and requests in each of its rounds.
const SITES: usize = 20;
const ROUNDS: usize = 100;

/// Tells whether somebody has time for long tests.
fn long() -> bool {
    std::env::var_os("SEAWALL_SEEING_LONG").is_some()
}

/// Returns the requests of the comparison.
fn requests() -> usize {
    if long() { 200_000 } else { 4_000 }
}

/// Draws what a visitor does, by a generator that makes the same of the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Holds what the log says of some requests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Logged {
    requests: u64,
    bytes: u64,
    origin_micros: u64,
}

impl Logged {
    fn add(&mut self, line: &Json) {
        self.requests += 1;
        self.bytes += line["body_bytes"].as_u64().expect("bytes");
        self.origin_micros += origin_micros(line);
    }
}

/// Returns the time of the origin in a line, which the log has in whole microseconds.
#[expect(clippy::cast_possible_truncation, reason = "some seconds, of which none is below zero")]
fn origin_micros(line: &Json) -> u64 {
    line["origin_time"].as_f64().map_or(0, |seconds| (seconds * 1e6).round() as u64)
}

/// Returns a target as it may be shown: what the script's queries ask for is not.
fn without_values(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let names: Vec<String> = query.split('&').map(|of| format!("{}=\u{2026}", of.split('=').next().unwrap_or_default())).collect();
    format!("{path}?{}", names.join("&"))
}

/// Tells whether a request has neither a cookie nor a program of its own.
fn is_like_others(line: &Json) -> bool {
    line["user_agent"].as_str().is_some_and(|agent| agent.contains("Firefox"))
}

/// Returns the class of what the script answers to a request, and the rule by which it is not a hit, with the cookie.
fn scripted(line: &Json) -> (&'static str, (&'static str, &'static str)) {
    let path = line["target"].as_str().expect("a target");
    let cold = |class| (class, ("cold", ""));
    match path {
        _ if line["status"] == 421 => ("document", ("no-such-site", "")),
        _ if line["method"] == "POST" => ("api", ("method", "")),
        "/private" => ("document", ("no-store", "")),
        "/session" => ("document", ("set-cookie", "PHPSESSID")),
        // RFC 9111 §3: without a lifetime, and of a status to which none may be given, it is not stored.
        "/broken" => ("document", ("unfresh", "")),
        // RFC 9110 §9.3.2: what answers a HEAD has no content to store. For a HEAD without a cookie, the page itself is asked for.
        _ if line["method"] == "HEAD" && !is_like_others(line) => ("document", ("method", "")),
        "/style.css" => cold("style"),
        "/picture.webp" => cold("picture"),
        "/feed" => cold("feed"),
        _ => cold("document"),
    }
}

fn scripts(origin: &Origin) {
    let answer =
        |media_type: &str, body: &str| ok(body.to_owned()).field("content-type", media_type).field("cache-control", "max-age=100000");
    origin.on(get("/post-*")).reply(answer("text/html; charset=utf-8", "a post, and its text"));
    origin.on(get("/invented/*")).reply(answer("text/html", "x"));
    origin.on(head("/post-1")).reply(answer("text/html; charset=utf-8", ""));
    origin.on(get("/feed")).reply(answer("application/rss+xml", "<rss></rss>"));
    origin.on(get("/style.css")).reply(answer("text/css", "a{}"));
    origin.on(get("/picture.webp")).reply(answer("image/webp", "RIFF").field("etag", "\"p\""));
    origin.on(get("/missing")).reply(status(404).field("content-type", "text/html").field("cache-control", "max-age=100000").body("none"));
    origin.on(get("/broken")).reply(status(500).field("content-type", "text/html").body("oh"));
    origin.on(get("/private")).reply(ok("yours").field("content-type", "text/html").field("cache-control", "no-store"));
    origin.on(get("/session")).reply(ok("hello").field("content-type", "text/html").field("set-cookie", "PHPSESSID=1"));
    origin.on(post("/form")).reply(ok("{}").field("content-type", "application/json"));
}

fn drawn(draw: &mut Draw, n: usize) -> Req {
    let invented = draw.below(1 << 40);
    let request = match draw.below(20) {
        0..8 => Req::get(&format!("/post-{}", draw.below(8))),
        8..10 => Req::get("/picture.webp").field("if-none-match", "\"p\""),
        10 => Req::get("/picture.webp"),
        11 => Req::get("/style.css"),
        12 => Req::get("/feed"),
        13 => {
            // No number that is so long that it would be hidden.
            let name = format!("{:x}-{:x}", invented >> 20, invented % (1 << 20));
            Req::get(&format!("/invented/{name}?a={invented}&b{name}=c"))
        }
        14 => Req::get("/private"),
        15 => Req::get("/session"),
        16 => Req::post("/form").body("a=b"),
        17 => Req::get("/missing"),
        18 => Req::get("/broken"),
        _ => Req::head("/post-1"),
    };
    // Every second one has what nobody else has.
    if n.is_multiple_of(2) {
        return request.field("user-agent", "Mozilla/5.0 Firefox/140.0").field("referer", "https://search.example/");
    }
    let agent = format!("Invented-{invented}/1.0");
    request
        .field("user-agent", agent)
        .field("cookie", format!("c{invented}={invented}"))
        .field("referer", format!("https://r{invented}.example/"))
}

/// Each count that is shown is the number of lines in the access log that it stands for, though half of the requests come with addresses, cookies and
/// programs that nobody else has.
#[tokio::test]
async fn what_is_shown_is_what_the_access_log_says() {
    let origin = Origin::start();
    scripts(&origin);
    let sites: String = (0..SITES).map(|n| format!("[[site]]\nhosts = [\"s{n}.example\"]\nsource = \"{}\"\n", origin.url())).collect();
    let site = Site::start(&format!("{sites}[log]\naccess = \"./access.log\"\nformat = \"json\"\n"));
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let mut client = site.client().await;
    for n in 0..requests() {
        if n % ROUNDS == 0 {
            client = Client::connect(site.address()).await;
            site.clock.advance(secs(1));
        }
        // The first sites are those that most people read.
        let host = match draw.below(100) {
            99 => format!("stranger-{}.example", draw.below(1 << 40)),
            n => format!("s{}.example", n % (1 + draw.below(SITES as u64))),
        };
        client = client.with_host(&host);
        client.request(drawn(&mut draw, n)).await;
    }
    drop(client);
    // When it has stopped, all is counted and written.
    let console = site.server.console();
    let folder = site.stop(secs(5));
    let text = fs::read_to_string(folder.path().join("access.log")).expect("a log");
    let lines: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!(lines.len(), requests());

    let total = console.seen(None).expect("all together");
    is_as_logged(&total, &lines.iter().collect::<Vec<_>>());
    let (mut reasons, mut missed) = (Vec::new(), Vec::new());
    for n in 0..SITES {
        let host = format!("s{n}.example");
        let of_site: Vec<&Json> = lines.iter().filter(|line| line["host"] == *host).collect();
        assert!(!of_site.is_empty(), "nobody asked for {host}");
        let seen = console.seen(Some(&host)).expect("the site is there");
        is_as_logged(&seen, &of_site);
        for ((rule, detail), logged) in sums(&of_site, |line| (line["cache"] != "HIT").then(|| scripted(line).1)) {
            reasons.push((host.clone(), rule.to_owned(), detail.to_owned(), logged.requests, logged.origin_micros));
        }
        for (path, logged) in
            sums(&of_site, |line| (line["cache"] != "HIT").then(|| without_values(line["target"].as_str().expect("text"))))
        {
            missed.push((format!("http://{host}{path}"), logged.requests, logged.origin_micros));
        }
        let sessions = of_site.iter().filter(|line| line["target"] == "/session").count() as u64;
        let cookies: Vec<_> = seen.cookies.iter().map(|of| (of.name.as_str(), of.answers, of.requests, of.set_by.as_str())).collect();
        let page = format!("http://{host}/session");
        let expected = [("PHPSESSID", sessions, 0, page.as_str())];
        assert_eq!(cookies, expected[..usize::from(sessions > 0)], "{host}");
    }
    // Each request counts as a microsecond more, so that what costs the origin no time has an order, too.
    reasons.sort_by_key(|(.., requests, micros)| std::cmp::Reverse(micros + requests));
    let shown = total.reasons.iter().map(|of| (of.site.clone(), of.rule.clone(), of.detail.clone(), of.requests, of.origin_micros));
    assert_eq!(shown.take(10).collect::<Vec<_>>(), reasons[..10], "the ten costliest reasons");
    missed.sort_by_key(|(_, requests, micros)| std::cmp::Reverse(micros + requests));
    let shown: Vec<_> = total.missed.iter().map(|of| (of.url.clone(), of.requests, of.origin_micros)).take(10).collect();
    // Between pages that cost nearly the same, those that strangers invent may have taken a place for a moment.
    let least = shown.last().expect("ten pages").2;
    for page in &shown {
        assert!(missed.contains(page), "{page:?} is not as it was logged");
    }
    for page in &missed[..10] {
        assert!(shown.contains(page) || page.2 <= least + least / 10, "{page:?} is among the ten pages that cost most: {shown:?}");
    }

    let hour = console.series(None, 1).expect("all together");
    let column = hour.columns.iter().position(|name| name == "requests").expect("a column");
    let in_hour: u64 = hour.rows.iter().flatten().map(|row| row[column]).sum();
    assert_eq!(in_hour, requests() as u64, "each second has its own");
    assert!(total.memory.0 <= total.memory.1 && total.memory.1 <= 8 << 20, "{:?}", total.memory);
    if long() {
        is_as_others_count(&folder.path().join("access.log"), |host| console.seen(host).expect("it is there"));
    }
}

/// Holds that jq and GoAccess count the same in a log as Seawall shows, of all sites together and of each.
fn is_as_others_count(log: &Path, seen: impl Fn(Option<&str>) -> Seen) {
    let by_jq = judges::by_jq(log);
    for host in (0..SITES).map(|n| format!("s{n}.example")) {
        assert_eq!(Counted::shown(&seen(Some(&host))), by_jq[&host], "jq of {host}");
    }
    let hosts = (0..SITES).map(|n| Some(format!("s{n}.example"))).chain([None]);
    for host in hosts {
        let combined = log.with_extension("combined");
        judges::combined(log, host.as_deref(), &combined);
        assert_eq!(Counted::shown(&seen(host.as_deref())).with_result(), judges::by_goaccess(&combined), "GoAccess of {host:?}");
    }
}

/// Sums up lines by what they have in common. Those of which that is `None` are left out.
fn sums<'a, K: Ord>(lines: &[&'a Json], of: impl Fn(&'a Json) -> Option<K>) -> BTreeMap<K, Logged> {
    let mut sums = BTreeMap::<K, Logged>::new();
    for line in lines {
        if let Some(key) = of(line) {
            sums.entry(key).or_default().add(line);
        }
    }
    sums
}

/// Holds that everything that is shown of some requests is what the log says of them.
fn is_as_logged(seen: &Seen, lines: &[&Json]) {
    let all = sums(lines, |_| Some(())).remove(&()).expect("lines");
    let count = |wanted: &dyn Fn(&Json) -> bool| lines.iter().filter(|line| wanted(line)).count() as u64;
    let status = |line: &Json| line["status"].as_u64().expect("a status");
    let hits = sums(lines, |line| (line["cache"] == "HIT").then_some(())).remove(&()).unwrap_or_default();
    let totals = seen.totals;
    assert_eq!((totals.requests, totals.bytes, totals.origin_micros), (all.requests, all.bytes, all.origin_micros));
    assert_eq!((totals.hits, totals.hit_bytes), (hits.requests, hits.bytes));
    assert_eq!(totals.lookups, count(&|line| !line["cache"].is_null() && line["cache"] != "BYPASS"));
    assert_eq!((totals.origin_requests, totals.origin_failures), (count(&|line| !line["origin_time"].is_null()), 0));
    assert_eq!(totals.server_errors, count(&|line| status(line) >= 500));
    assert_eq!(totals.client_errors, count(&|line| (400..500).contains(&status(line))));
    let shown = |shown: &[admin::Line]| -> BTreeMap<String, Logged> {
        let with = shown.iter().filter(|line| line.requests > 0);
        with.map(|line| (line.name.clone(), Logged { requests: line.requests, bytes: line.bytes, origin_micros: line.origin_micros }))
            .collect()
    };
    assert_eq!(shown(&seen.by_result), sums(lines, |line| Some(line["cache"].as_str().unwrap_or("none").to_lowercase())));
    assert_eq!(shown(&seen.by_class), sums(lines, |line| Some(scripted(line).0.to_owned())));
    for latency in seen.latencies.iter().filter(|latency| latency.count > 0) {
        assert_eq!(latency.count, count(&|line| line["cache"].as_str().unwrap_or("none").to_lowercase() == latency.name));
        assert!(latency.p50 <= latency.p95 && latency.p95 <= latency.p99, "{latency:?}");
        let of_result = lines.iter().filter(|line| line["cache"].as_str().unwrap_or("none").to_lowercase() == latency.name);
        let slowest = of_result.map(|line| line["request_time"].as_f64().expect("seconds")).fold(0.0, f64::max);
        assert!(latency.p99 as f64 <= (slowest * 1e6).round(), "{latency:?} is longer than {slowest} s");
    }
    // A 404 of the origin is an answer like others; what Seawall itself refuses is an error.
    let is_error = |line: &Json| status(line) >= 500 || status(line) >= 400 && line["cache"].is_null();
    let errors: BTreeMap<u64, u64> =
        sums(lines, |line| is_error(line).then(|| status(line))).into_iter().map(|(status, of)| (status, of.requests)).collect();
    let mut shown = BTreeMap::<u64, u64>::new();
    for error in &seen.errors {
        *shown.entry(error.status.into()).or_default() += error.requests;
    }
    assert_eq!(shown, errors);
}
