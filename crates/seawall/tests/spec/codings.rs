//! Content codings (RFC 9110 §8.4, §12.5.3): the smallest bytes that each client takes, made once.

use std::io::Read;

use testkit::{Answer, Gate, Reply, Req, get, not_modified, ok, post, secs};

use crate::site::{Site, site, site_with};

const BROWSER: &str = "gzip, deflate, br, zstd";

/// Returns a page that is worth coding: 4 KB of text.
fn text(name: &str) -> String {
    (0..100).map(|n| format!("<p>{name}, paragraph {n}, some more words</p>\n")).collect()
}

fn page(name: &str) -> Reply {
    ok(text(name))
        .field("content-type", "text/html; charset=utf-8")
        .field("cache-control", "max-age=60")
        .field("etag", format!("\"{name}\""))
}

fn taking(codings: &str) -> Req {
    Req::get("/post").field("accept-encoding", codings)
}

/// Returns what a client makes of an answer.
fn decoded(answer: &Answer) -> String {
    decoded_as(answer.value("content-encoding").as_deref(), &answer.content)
}

fn decoded_as(coding: Option<&str>, content: &[u8]) -> String {
    let mut text = String::new();
    let read = match coding {
        None => (&*content).read_to_string(&mut text),
        Some("gzip") => flate2::read::GzDecoder::new(content).read_to_string(&mut text),
        Some("br") => brotli::Decompressor::new(content, 4096).read_to_string(&mut text),
        Some("zstd") => zstd::stream::read::Decoder::new(content).expect("a decoder").read_to_string(&mut text),
        Some(other) => panic!("the coding {other}"),
    };
    read.expect("content that can be decoded");
    text
}

/// Checks that the content, its coding, its length and its tag belong together.
#[track_caller]
fn coded(answer: Answer, coding: &str, name: &str) -> Answer {
    let answer = answer.status(200).field("content-encoding", coding).field("etag", &format!("\"{name}-{coding}\""));
    let length = answer.content.len().to_string();
    let answer = answer.field("content-length", &length).field("vary", "accept-encoding");
    assert_eq!(decoded(&answer), text(name), "{coding}");
    answer
}

/// Stores the page, and asks for all its forms until they are made.
async fn with_all_forms(site: &Site) {
    for codings in ["gzip", "br", "zstd", "gzip"] {
        site.request(taking(codings)).await.status(200);
        site.server.settle_codings();
    }
}

/// gzip is there right after storing for somebody who takes it; the better ones once somebody would get them.
#[tokio::test]
async fn a_stored_page_is_sent_in_the_best_form_there_is() {
    let (origin, site) = site().await;
    origin.on(get("/post").field("accept-encoding", "identity")).reply(page("one"));
    assert_eq!(decoded(&site.request(taking("gzip")).await.status(200).field("vary", "accept-encoding")), text("one"));
    site.server.settle_codings();
    coded(site.request(taking(BROWSER)).await.cache_status("hit"), "gzip", "one");
    site.server.settle_codings();
    coded(site.request(taking(BROWSER)).await.cache_status("hit"), "br", "one");
    coded(site.request(taking("gzip")).await.cache_status("hit"), "gzip", "one");
    site.request(taking("zstd")).await.body(text("one")).no_field("content-encoding");
    site.server.settle_codings();
    coded(site.request(taking("zstd")).await.cache_status("hit"), "zstd", "one");
    assert_eq!(origin.count("/post"), 1, "one page, whatever its form");
}

/// §12.5.3: weights, refusals and the identity.
#[tokio::test]
async fn the_clients_weights_decide() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    for (codings, coding) in
        [("br;q=0.5, gzip", "gzip"), ("gzip, br;q=0", "gzip"), ("*", "br"), ("x-gzip", "gzip"), ("zstd, br;q=0.9", "zstd")]
    {
        coded(site.request(taking(codings)).await.cache_status("hit"), coding, "one");
    }
    for codings in ["identity", "", "gzip;q=0", "identity, gzip;q=0.5", "deflate", "identity;q=0"] {
        let answer = site.request(taking(codings)).await.status(200).body(text("one")).cache_status("hit");
        answer.no_field("content-encoding").field("etag", "\"one\"").field("vary", "accept-encoding");
    }
}

/// What is remembered of a head must not outlive a better form, and must not mix forms.
#[tokio::test]
async fn the_same_request_again_gets_the_better_form() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    let mut client = site.client().await;
    let mut codings = Vec::new();
    for _ in 0..8 {
        let answer = client.request(taking(BROWSER)).await.status(200);
        assert_eq!(decoded(&answer), text("one"));
        codings.extend(answer.value("content-encoding"));
        site.server.settle_codings();
    }
    assert_eq!(codings, ["br", "gzip", "br", "br", "br", "br", "br", "br"]);
    for _ in 0..4 {
        client.request(taking("identity")).await.body(text("one"));
        coded(client.request(taking("gzip")).await, "gzip", "one");
    }
}

/// RFC 9110 §8.8.3.3, §13.1.2: each form has its tag, and a client is told that its form still holds, whichever it is.
#[tokio::test]
async fn a_condition_finds_the_form_that_the_client_has() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    for tag in ["\"one-br\"", "\"one-gzip\"", "\"one\"", "W/\"one-zstd\""] {
        for cache_control in [None, Some("max-age=600")] {
            let mut request = taking(BROWSER).field("if-none-match", tag);
            if let Some(value) = cache_control {
                request = request.field("cache-control", value);
            }
            let answer =
                site.request(request).await.status(304).field("etag", tag.trim_start_matches("W/")).field("vary", "accept-encoding");
            answer.no_field("content-encoding");
        }
    }
    coded(site.request(taking(BROWSER).field("if-none-match", "\"two-br\"")).await, "br", "one");
    // A form that it would not take is not one to hold on to.
    coded(site.request(taking("gzip").field("if-none-match", "\"one-br\"")).await, "gzip", "one");
}

/// §14.2: a range is one of the content as it is; `If-Range` with the tag of a form asks for the whole.
#[tokio::test]
async fn ranges_are_of_the_identity() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    let ranged = || taking(BROWSER).field("range", "bytes=0-9");
    let answer = site.request(ranged()).await.status(206).body(&text("one")[..10]);
    answer.no_field("content-encoding").field("etag", "\"one\"").field("content-length", "10");
    site.request(ranged().field("if-range", "\"one\"")).await.status(206).body(&text("one")[..10]);
    site.request(ranged().field("if-range", "\"one-br\"")).await.status(200).body(text("one")).no_field("content-encoding");
}

/// RFC 9110 §9.3.2: HEAD has the fields that GET would have.
#[tokio::test]
async fn head_has_the_fields_of_get() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    for codings in [BROWSER, "gzip", "identity"] {
        let got = site.request(taking(codings)).await;
        let answer = site.request(Req::head("/post").field("accept-encoding", codings)).await.status(200).body("");
        for name in ["content-encoding", "content-length", "etag", "vary", "content-type"] {
            assert_eq!(answer.value(name), got.value(name), "{name} with {codings}");
        }
    }
}

/// A script that takes no coding costs no coder. The first reader gets what there is, the next ones what was made for the first.
#[tokio::test]
async fn what_only_scripts_ask_for_is_not_coded() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    for _ in 0..2 {
        site.get("/post").await.status(200).body(text("one")).no_field("content-encoding").field("vary", "accept-encoding");
        site.server.settle_codings();
    }
    assert_eq!(site.counted_as("seawall_codings_total"), 0);
    site.request(taking("gzip")).await.cache_status("hit").body(text("one")).no_field("content-encoding");
    site.server.settle_codings();
    coded(site.request(taking("gzip")).await.cache_status("hit"), "gzip", "one");
}

/// RFC 9111 §4.3.4: confirmed, a page keeps its forms; replaced, it loses them.
#[tokio::test]
async fn a_304_keeps_the_forms() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    site.clock.advance(secs(61));
    origin
        .on(get("/post").field("if-none-match", "\"one\""))
        .reply(not_modified().field("etag", "\"one\"").field("cache-control", "max-age=60"));
    coded(site.request(taking(BROWSER)).await.x_cache("REVALIDATED"), "br", "one");
    site.clock.advance(secs(61));
    origin.on(get("/post")).reply(page("two"));
    let answer = site.request(taking("gzip")).await;
    assert_eq!(decoded(&answer), text("two"));
    site.server.settle_codings();
    coded(site.request(taking(BROWSER)).await.cache_status("hit"), "gzip", "two");
}

/// Many origins know no 304: the same content once more need not be coded once more.
#[tokio::test]
async fn the_same_content_fetched_again_keeps_its_forms() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    site.clock.advance(secs(61));
    site.request(taking("identity")).await.cache_status("fwd=stale");
    coded(site.request(taking(BROWSER)).await.cache_status("hit"), "br", "one");
}

/// A purge takes the page with all its forms.
#[tokio::test]
async fn a_purge_takes_all_forms() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    with_all_forms(&site).await;
    origin.on(get("/post")).reply(page("two"));
    site.purge(&store::PurgeTarget::All, store::Hardness::Hard);
    for codings in ["br", "gzip", "zstd", "identity"] {
        assert_eq!(decoded(&site.request(taking(codings)).await), text("two"), "{codings}");
    }
    assert_eq!(origin.count("/post"), 2);
}

/// RFC 9111 §5.2.2.6, and what is not worth it: no coding, and no word of it.
#[tokio::test]
async fn what_is_not_to_be_coded_is_not() {
    let (origin, site) = site().await;
    let plain = |body: String| ok(body).field("cache-control", "max-age=60");
    let cases = [
        ("/short", plain("short".to_owned()).field("content-type", "text/html")),
        ("/no-transform", plain(text("a")).field("content-type", "text/html").field("cache-control", "no-transform")),
        ("/picture", plain(text("a")).field("content-type", "image/png")),
        ("/untyped", plain(text("a"))),
        ("/digest", plain(text("a")).field("content-type", "text/html").field("content-digest", "sha-256=:AAAA:")),
    ];
    for (target, reply) in cases {
        origin.on(get(target)).reply(reply);
        for _ in 0..3 {
            let answer = site.request(Req::get(target).field("accept-encoding", BROWSER)).await.status(200);
            answer.no_field("content-encoding").no_field("vary");
            site.server.settle_codings();
        }
    }
}

/// An origin that codes although it was asked not to is not coded twice, and its coding is given to those who take it alone.
#[tokio::test]
async fn what_the_origin_coded_stays_as_it_is() {
    let (origin, site) = site().await;
    let reply = || ok("coded").field("content-type", "text/html").field("content-encoding", "gzip").field("cache-control", "max-age=60");
    origin.on(get("/post")).reply(reply());
    for status in ["fwd=uri-miss; stored", "hit"] {
        site.request(taking(BROWSER)).await.body("coded").field("content-encoding", "gzip").cache_status(status);
        site.server.settle_codings();
    }
    site.get("/post").await.body("coded").cache_status("fwd=vary-miss");
}

/// The first reader of a page does not wait for it, and gets it coded all the same; a crowd beside it gets it plain.
#[tokio::test]
async fn the_first_reader_gets_it_coded_on_its_way() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("one").gate_after(2_000, &gate));
    let (mut first, mut second) = (site.client().await, site.client().await);
    first.send(taking("gzip")).await;
    gate.arrived().await;
    second.send(taking("gzip")).await;
    site.has_read_all().await;
    gate.open();
    let answer =
        first.read_answer().await.status(200).field("content-encoding", "gzip").field("vary", "accept-encoding").field("etag", "W/\"one\"");
    assert_eq!(decoded(&answer.no_field("content-length").cache_status("stored")), text("one"));
    second.read_answer().await.status(200).body(text("one")).no_field("content-encoding").cache_status("collapsed");
    assert_eq!(origin.count("/post"), 1);
}

/// What passes is coded while it does, and what its origin has sent so far is not held back.
#[tokio::test]
async fn what_passes_is_coded_and_flushed() {
    let (origin, site) = site().await;
    for (codings, coding) in [("gzip", "gzip"), (BROWSER, "br"), ("zstd", "zstd")] {
        let gate = Gate::new();
        let reply = ok(text("one")).field("content-type", "text/html").field("cache-control", "no-store").field("etag", "\"one\"");
        origin.on(post("/post")).reply(reply.gate_after(2_000, &gate));
        let mut client = site.client().await;
        client.send(Req::post("/post").field("accept-encoding", codings).body("q=1")).await;
        let answer = client.read_head().await.status(200).field("content-encoding", coding).field("etag", "W/\"one\"");
        answer.field("vary", "accept-encoding").no_field("content-length");
        // Something has to come before the origin goes on.
        let beginning = client.read_body_chunk().await.expect("what the origin has sent so far");
        gate.open();
        let mut content = beginning.to_vec();
        while let Some(chunk) = client.read_body_chunk().await {
            content.extend_from_slice(&chunk);
        }
        assert_eq!(decoded_as(Some(coding), &content), text("one"));
    }
}

/// BREACH: what may be personal passes as the origin sends it; styles and the like are nobody's.
#[tokio::test]
async fn a_page_for_one_person_is_not_coded_without_asking() {
    let passed = |kind: &str| ok(text("one")).field("content-type", kind.to_owned()).field("cache-control", "no-store");
    type Case = (&'static str, [(&'static str, &'static str, bool); 4]);
    let cases: [Case; 3] = [
        ("", [("/page", "", true), ("/page", "session=1", false), ("/style", "session=1", true), ("/style", "", true)]),
        (
            "[compress]\npassed = \"all\"",
            [("/page", "", true), ("/page", "session=1", true), ("/style", "session=1", true), ("/style", "", true)],
        ),
        (
            "[compress]\npassed = \"off\"",
            [("/page", "", false), ("/page", "session=1", false), ("/style", "session=1", false), ("/style", "", false)],
        ),
    ];
    for (settings, requests) in cases {
        let (origin, site) = site_with(settings).await;
        origin.on(post("/page")).reply(passed("text/html"));
        origin.on(post("/style")).reply(passed("text/css"));
        for (target, cookie, expected) in requests {
            let mut request = Req::post(target).field("accept-encoding", "gzip").body("q=1");
            if !cookie.is_empty() {
                request = request.field("cookie", cookie);
            }
            let answer = site.request(request).await.status(200);
            assert_eq!(answer.value("content-encoding").is_some(), expected, "{settings} {target} {cookie}");
            assert_eq!(decoded(&answer), text("one"));
        }
    }
}

/// Events have to go out at once, each of them.
#[tokio::test]
async fn event_streams_are_left_alone() {
    let (origin, site) = site().await;
    let events = ok("data: 1\n\n".repeat(200)).field("content-type", "text/event-stream").field("cache-control", "no-store");
    origin.on(get("/events")).reply(events);
    site.request(Req::get("/events").field("accept-encoding", BROWSER))
        .await
        .status(200)
        .no_field("content-encoding")
        .body("data: 1\n\n".repeat(200));
}

/// Where it is off, the origin is asked for what its clients take, and each of its forms is stored apart.
#[tokio::test]
async fn it_can_be_turned_off() {
    let (origin, site) = site_with("[compress]\nexclude = [\"/post\"]").await;
    for off in ["[compress]\nenabled = false", "[compress]\nexclude = [\"/po*\"]"] {
        let (origin, site) = site_with(off).await;
        origin.on(get("/post").field("accept-encoding", "br, gzip")).reply(page("one"));
        for status in ["stored", "hit", "hit"] {
            site.request(taking(BROWSER)).await.body(text("one")).no_field("content-encoding").no_field("vary").cache_status(status);
            site.server.settle_codings();
        }
    }
    origin.on(get("/other")).reply(page("one"));
    site.request(Req::get("/other").field("accept-encoding", "gzip")).await.status(200);
    site.server.settle_codings();
    let answer = site.request(Req::get("/other").field("accept-encoding", "gzip")).await;
    coded(answer, "gzip", "one");
}

/// A blog and a folder are coded as servers are.
#[tokio::test]
async fn a_folder_is_coded_too() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.html"), text("one")).expect("written");
    let site = Site::start(&format!("source = \"{}\"", folder.path().display()));
    let request = |codings| Req::get("/").field("accept-encoding", codings);
    site.request(request("gzip")).await.status(200);
    site.server.settle_codings();
    let answer = site.request(request("gzip")).await.status(200).cache_status("hit").field("content-encoding", "gzip");
    assert_eq!(decoded(&answer), text("one"));
}

/// What the forms take is counted, and so is what is sent in them.
#[tokio::test]
async fn what_is_coded_is_counted() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("one"));
    site.get("/post").await.status(200);
    site.server.settle_codings();
    let before = site.server.usage().bytes;
    site.request(taking("br")).await.status(200);
    site.server.settle_codings();
    let length = site.request(taking("br")).await.field("content-encoding", "br").content.len() as u64;
    let grown = site.server.usage().bytes - before;
    assert!((length..length + 200).contains(&grown), "{grown} for {length}");
    // A response is counted when it is done with, which may be after it was read.
    site.has_read_all().await;
    assert_eq!(site.server.counted().coded, [0, 1, 0]);
}

/// RFC 9842: who has the version before is sent what has changed; who has another one, or takes no `dcz`, the whole.
#[tokio::test]
async fn the_version_before_is_a_dictionary() {
    let (origin, site) = site_with("[compress]\ndictionaries = true").await;
    let version = |name: &str| text("one").replace("paragraph 50", name);
    let page = |name: &str| {
        let page = ok(version(name)).field("content-type", "text/html").field("cache-control", "max-age=60");
        page.field("etag", format!("\"{name}\""))
    };
    let has = |before: &str, codings: &str| {
        let hash = base64(&codings::dictionary_hash(version(before).as_bytes()));
        Req::get("/post").field("accept-encoding", codings).field("available-dictionary", format!(":{hash}:"))
    };
    origin.on(get("/post")).reply(page("old"));
    let answer = site.get("/post").await.body(version("old")).field("use-as-dictionary", "match=\"/post\"");
    answer.field("vary", "accept-encoding, available-dictionary");
    origin.on(get("/post")).reply(page("new"));
    site.purge(&store::PurgeTarget::All, store::Hardness::Hard);
    site.get("/post").await.body(version("new"));
    site.server.settle_codings();

    let codings = "gzip, br, zstd, dcb, dcz";
    for _ in 0..4 {
        let answer = site.request(has("old", codings)).await.status(200).field("content-encoding", "dcz").cache_status("hit");
        let answer = answer.field("etag", "W/\"new\"").field("vary", "accept-encoding, available-dictionary");
        // 40 bytes of it are the head that names the dictionary.
        assert!(answer.content.len() < 120, "{}", answer.content.len());
        let mut decoded = String::new();
        let mut decoder =
            zstd::stream::read::Decoder::with_dictionary(&answer.content[40..], version("old").as_bytes()).expect("a decoder");
        decoder.read_to_string(&mut decoded).expect("it can be decoded");
        assert_eq!(decoded, version("new"));
    }
    for request in [has("old", "gzip"), has("other", codings), has("new", codings), taking("gzip")] {
        let answer = site.request(request).await.status(200);
        assert_ne!(answer.value("content-encoding").as_deref(), Some("dcz"));
        assert_eq!(decoded(&answer), version("new"));
        site.server.settle_codings();
    }
    site.request(has("old", codings).field("if-none-match", "W/\"new\"")).await.status(304);
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().chain(&[0, 0]).take(3).fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        text.extend((0..4).map(|at| if at <= chunk.len() { char::from(DIGITS[bits >> (18 - 6 * at) & 63]) } else { '=' }));
    }
    text
}
