//! Early Hints (RFC 8297): what stored pages named is told to browsers that have to wait, and nothing of it to anybody else.

use std::future::poll_fn;

use http::Request;
use rustls::version::TLS13;
use store::{Hardness, PurgeTarget};
use testkit::{Answer, Gate, Req, get, ok, patiently, secs};

use crate::{
    auth::{ADA, guarded},
    site::{HOST, Site, site_with},
    tls::{Authority, connect},
};

const HTTP1: &str = "[cache]\nearly_hints_http1 = true";

const NAVIGATION: [(&str, &str); 2] = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];

/// Returns what a browser asks when somebody follows a link.
fn open(target: &str) -> Req {
    NAVIGATION.into_iter().fold(Req::get(target), |request, (name, value)| request.field(name, value))
}

/// Returns a page with these style sheets.
fn page(sheets: &[&str]) -> testkit::Reply {
    let links: String = sheets.iter().map(|sheet| format!("<link rel=stylesheet href={sheet}>")).collect();
    html(format!("<!doctype html><title>A page</title>{links}<body>"))
}

fn html(text: impl Into<String>) -> testkit::Reply {
    ok(text.into()).field("content-type", "text/html; charset=utf-8").field("cache-control", "max-age=60")
}

/// Returns the `Link` fields of the hints before an answer.
fn hinted(answer: &Answer) -> Vec<String> {
    assert!(answer.interim.iter().all(|interim| interim.code == 103), "{:?}", answer.interim);
    answer.interim.iter().filter_map(|interim| interim.fields.combined("link")).collect()
}

async fn hints_of(site: &Site, target: &str) -> Vec<String> {
    hinted(&site.request(open(target)).await.status(200))
}

const A: &str = "</a.css>; rel=preload; as=style";
const B: &str = "</b.css>; rel=preload; as=style";

/// A hit has none: the page itself is there.
#[tokio::test]
async fn who_waits_for_a_page_is_told_what_it_needed_last_time() {
    let (origin, site) = site_with(HTTP1).await;
    origin.on(get("/post")).once().reply(page(&["/a.css"]));
    assert!(hints_of(&site, "/post").await.is_empty());
    assert!(hints_of(&site, "/post").await.is_empty());

    site.clock.advance(secs(61));
    let gate = Gate::new();
    origin.on(get("/post")).reply(page(&["/a.css"]).gate(&gate));
    let mut client = site.client().await;
    client.send(open("/post")).await;
    let early = format!("HTTP/1.1 103 Early Hints\r\nlink: {A}\r\n\r\n");
    assert_eq!(client.read_raw(early.len()).await, early);
    gate.open();
    client.read_answer().await.status(200).no_field("link");
}

/// Over HTTP/2 without being asked for it; that is where browsers take them.
#[tokio::test]
async fn over_http_2_they_come_of_themselves() {
    let authority = Authority::new();
    let (origin, site) = crate::tls::site(&authority, "");
    origin.on(get("/post")).once().reply(page(&["/a.css"]));
    site.get("/post").await.status(200);
    site.clock.advance(secs(61));
    let gate = Gate::new();
    origin.on(get("/post")).reply(page(&["/a.css"]).gate(&gate));

    let stream = connect(&site, &authority.client(&[&TLS13], "h2")).await.expect("a handshake");
    let (send, connection) = h2::client::handshake(stream).await.expect("a preface");
    let driver = drive(connection);
    let mut request = Request::get(format!("https://{HOST}/post"));
    for (name, value) in NAVIGATION {
        request = request.header(name, value);
    }
    let mut ready = send.ready().await.expect("room for a stream");
    let (mut response, _) = ready.send_request(request.body(()).expect("a request"), true).expect("sent");
    let early = patiently("for hints", poll_fn(|cx| response.poll_informational(cx))).await.expect("one").expect("no error");
    assert_eq!((early.status().as_u16(), early.headers()["link"].as_bytes()), (103, A.as_bytes()));
    gate.open();
    assert_eq!(patiently("for the page", response).await.expect("a response").status(), 200);
    driver.abort();
}

#[expect(clippy::disallowed_methods, reason = "ended by its test")]
fn drive(connection: impl Future<Output = Result<(), h2::Error>> + Send + 'static) -> tokio::task::JoinHandle<Result<(), h2::Error>> {
    tokio::spawn(connection)
}

/// Only a browser that opens a page does anything with them; a client of HTTP/1.1 may be old software that takes a 103 for the answer.
#[tokio::test]
async fn nobody_else_is_told() {
    let others = [
        Req::get("/post"),
        Req::get("/post").field("sec-fetch-mode", "navigate").field("sec-fetch-dest", "iframe"),
        Req::get("/post").field("sec-fetch-mode", "cors").field("sec-fetch-dest", "empty"),
        open("/post").field("sec-purpose", "prefetch;prerender"),
        open("/post").field("range", "bytes=0-1"),
        open("/post").version("HTTP/1.0"),
    ];
    for request in others {
        let (origin, site) = site_with(HTTP1).await;
        origin.on(get("/post")).reply(page(&["/a.css"]));
        site.get("/post").await.status(200);
        site.clock.advance(secs(61));
        assert!(hinted(&site.request(request).await).is_empty());
        site.clock.advance(secs(61));
        assert_eq!(hints_of(&site, "/post").await, [A]);
    }
    for toml in ["", "[cache]\nearly_hints = false\nearly_hints_http1 = true"] {
        let (origin, site) = site_with(toml).await;
        origin.on(get("/post")).reply(page(&["/a.css"]));
        site.get("/post").await.status(200);
        site.clock.advance(secs(61));
        assert!(hints_of(&site, "/post").await.is_empty(), "{toml}");
    }
}

/// A page that is not known yet needs what the site's pages have in common; an address that is not a page needs nothing.
#[tokio::test]
async fn a_new_page_is_told_what_the_others_have_in_common() {
    let (origin, site) = site_with(HTTP1).await;
    for (path, sheets) in [("/one", &["/a.css", "/one.css"][..]), ("/two", &["/two.css", "/a.css"])] {
        origin.on(get(path)).reply(page(sheets));
        site.get(path).await.status(200);
    }
    for path in ["/three", "/three?s=x"] {
        origin.on(get(path)).reply(page(&["/a.css"]));
        assert_eq!(hints_of(&site, path).await, [A], "{path}");
    }
    origin.on(get("/film.mp4")).reply(ok("x"));
    assert!(hints_of(&site, "/film.mp4").await.is_empty());
    // Another host may be another site.
    origin.on(get("/four")).reply(page(&["/a.css"]));
    let elsewhere = site.request(open("/four").field("host", "other.example")).await.status(200);
    assert!(hinted(&elsewhere).is_empty());
}

/// What is hinted is what the page's last version needs.
#[tokio::test]
async fn a_new_version_replaces_what_was_known() {
    let (origin, site) = site_with(HTTP1).await;
    for (sheet, expected) in [("/a.css", vec![]), ("/b.css", vec![A]), ("/b.css", vec![B]), ("", vec![B]), ("/a.css", vec![])] {
        let sheets = if sheet.is_empty() { vec![] } else { vec![sheet] };
        origin.on(get("/post")).once().reply(page(&sheets));
        assert_eq!(hints_of(&site, "/post").await, expected, "{sheet}");
        site.clock.advance(secs(61));
    }
}

/// A 304 says that the page is what it was.
#[tokio::test]
async fn what_was_confirmed_is_known_anew() {
    let (origin, site) = site_with(HTTP1).await;
    origin.on(get("/post")).once().reply(page(&["/a.css"]).field("etag", "\"1\""));
    site.get("/post").await.status(200);
    for _ in 0..3 {
        site.clock.advance(secs(50_000));
        origin.on(get("/post")).once().reply(testkit::not_modified().field("cache-control", "max-age=60"));
        assert_eq!(hints_of(&site, "/post").await, [A]);
    }
    // After a day nobody knows.
    site.clock.advance(secs(86_400));
    origin.on(get("/post")).reply(page(&["/a.css"]));
    assert!(hints_of(&site, "/post").await.is_empty());
}

/// After a purge of a page, what it had in common with the others still counts; after one of the site, nothing does.
#[tokio::test]
async fn a_purge_takes_hints_with_it() {
    let (origin, site) = site_with(HTTP1).await;
    for path in ["/one", "/two"] {
        origin.on(get(path)).reply(page(&["/a.css", if path == "/one" { "/b.css" } else { "/c.css" }]));
        site.get(path).await.status(200);
    }
    let url = |path: &str| PurgeTarget::Url { site: 0, url: format!("{HOST}{path}").into_bytes() };
    site.purge(&url("/one"), Hardness::Hard);
    assert_eq!(hints_of(&site, "/one").await, [A]);
    site.clock.advance(secs(61));
    assert_eq!(hints_of(&site, "/one").await, [format!("{A}, {B}")]);
    for target in [PurgeTarget::All, PurgeTarget::Site(0), PurgeTarget::Prefix { site: 0, url: format!("{HOST}/").into_bytes() }] {
        for hardness in [Hardness::Hard, Hardness::Soft] {
            site.purge(&target, hardness);
            for path in ["/one", "/new"] {
                origin.on(get("/new")).reply(ok("no page"));
                assert!(hints_of(&site, path).await.is_empty(), "{target:?} {hardness:?} {path}");
            }
            site.get("/two").await.status(200);
            site.clock.advance(secs(61));
            assert_eq!(hints_of(&site, "/one").await, [format!("{A}, {B}")]);
        }
    }
}

/// Hints are sent for what is passed, too: somebody who is logged in gets the hints of the page that all others get.
#[tokio::test]
async fn a_page_that_is_passed_needs_what_the_stored_one_needs() {
    let (origin, site) = site_with(HTTP1).await;
    origin.on(get("/post")).reply(page(&["/a.css"]));
    site.get("/post").await.status(200);
    let known = site.request(open("/post").field("authorization", "Bearer x")).await.status(200);
    assert_eq!(hinted(&known), [A]);
}

/// What one visitor's page holds is told to nobody: nothing is learnt from an answer that is not stored, or that was made for somebody.
#[tokio::test]
async fn nothing_is_learnt_from_what_is_somebodys() {
    let private: [(&str, &str, testkit::Reply); 5] = [
        ("x", "1", page(&["/secret.css"]).field("cache-control", "private")),
        ("x", "1", page(&["/secret.css"]).field("set-cookie", "id=1")),
        // Stored for those who may have it, and yet not for all to know.
        ("cookie", "session=1", page(&["/secret.css"]).field("cache-control", "public, max-age=60").field("vary", "cookie")),
        ("authorization", "Bearer x", page(&["/secret.css"]).field("cache-control", "public, max-age=60")),
        ("x-user", "anna", page(&["/secret.css"]).field("vary", "x-user")),
    ];
    for (name, value, reply) in private {
        let (origin, site) = site_with(HTTP1).await;
        for path in ["/one", "/two"] {
            origin.on(get(path)).once().reply(reply.clone());
            site.request(open(path).field(name, value)).await.status(200);
        }
        for path in ["/one", "/three"] {
            origin.on(get(path)).reply(page(&["/a.css"]));
            assert!(hints_of(&site, path).await.is_empty(), "{name}: {value}");
        }
    }
}

/// A browser looks at the first 103 alone, and an origin that sends some knows better what its pages need.
#[tokio::test]
async fn an_origin_that_sends_hints_itself_is_left_to_it() {
    let (origin, site) = site_with(HTTP1).await;
    let own = [("link", "</own.css>; rel=preload; as=style")];
    origin.on(get("/post")).reply(page(&["/a.css"]).interim(103, &own));
    for _ in 0..3 {
        assert_eq!(hints_of(&site, "/post").await, ["</own.css>; rel=preload; as=style"]);
        site.clock.advance(secs(61));
    }
}

/// Pages behind a password say nothing about those that are not.
#[tokio::test]
async fn what_is_behind_a_password_stays_there() {
    let (origin, site) = guarded(&format!("paths = [\"/inner\"]\n{HTTP1}")).await;
    for path in ["/inner/one", "/inner/two"] {
        origin.on(get(path)).reply(page(&["/inner.css"]));
        site.request(Req::get(path).field("authorization", ADA)).await.status(200);
    }
    site.clock.advance(secs(61));
    origin.on(get("/three")).reply(page(&["/a.css"]));
    assert!(hints_of(&site, "/three").await.is_empty());
    assert!(hinted(&site.request(open("/inner/one")).await.status(401)).is_empty());
    let let_in = site.request(open("/inner/one").field("authorization", ADA)).await.status(200);
    assert_eq!(hinted(&let_in), ["</inner.css>; rel=preload; as=style"]);
}

/// A `Link` field of the stored page counts like a tag, also where the content is coded by the origin.
#[tokio::test]
async fn link_fields_of_stored_pages_are_hinted() {
    let (origin, site) = site_with(HTTP1).await;
    let reply = html("<title>x</title>").field("link", "</a.css>; rel=preload; as=style, </feed>; rel=alternate");
    origin.on(get("/post")).reply(reply);
    site.get("/post").await.status(200);
    site.clock.advance(secs(61));
    assert_eq!(hints_of(&site, "/post").await, [A]);
}
