//! The same request, again and again: what is remembered of it saves work and changes nothing. Whatever comes in between counts for the
//! very next request, on every connection and every worker.

use semantics::request::INCIDENTAL_FIELDS;
use store::{Hardness, PurgeTarget};
use testkit::{Client, Gate, Req, get, head, not_modified, ok, post, secs};

use crate::site::{HOST, Site, site, site_with};

/// More often than it takes for a page and a head to be known.
const OFTEN: usize = 8;

fn page(text: &'static str) -> testkit::Reply {
    ok(text).field("cache-control", "max-age=60").field("etag", format!("\"{text}\""))
}

async fn hits(client: &mut Client, request: impl Fn() -> Req, code: u16, text: &str) {
    for _ in 0..OFTEN {
        client.request(request()).await.status(code).body(text).cache_status("hit").x_cache("HIT");
    }
}

/// Returns a page that is hit again and again over one connection, and then differs at the origin.
async fn well_known() -> (testkit::Origin, Site, Client) {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("v1"));
    let mut client = site.client().await;
    client.get("/post").await.body("v1").cache_status("stored");
    hits(&mut client, || Req::get("/post"), 200, "v1").await;
    origin.on(get("/post")).reply(page("v2"));
    (origin, site, client)
}

fn url() -> PurgeTarget {
    PurgeTarget::Url { site: 0, url: format!("{HOST}/post").into_bytes() }
}

#[tokio::test]
async fn a_purge_counts_for_the_next_request() {
    for target in [url(), PurgeTarget::Prefix { site: 0, url: HOST.into() }, PurgeTarget::Site(0), PurgeTarget::All] {
        let (_origin, site, mut client) = well_known().await;
        site.purge(&target, Hardness::Hard);
        client.get("/post").await.body("v2").cache_status("fwd=uri-miss; stored");
        hits(&mut client, || Req::get("/post"), 200, "v2").await;
    }
}

/// Purged softly, it is served while it is validated, and as what it is; confirmed, it is a hit again.
#[tokio::test]
async fn a_soft_purge_counts_for_the_next_request() {
    let (origin, site, mut client) = well_known().await;
    let gate = Gate::new();
    origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(not_modified().gate(&gate));
    site.purge(&PurgeTarget::All, Hardness::Soft);
    for _ in 0..OFTEN {
        client.get("/post").await.body("v1").x_cache("UPDATING");
    }
    gate.arrived().await;
    gate.open();
    site.request(Req::get("/post").field("cache-control", "max-age=600")).await.body("v1");
    hits(&mut client, || Req::get("/post"), 200, "v1").await;
}

/// RFC 9111 §4.4: an unsafe method that succeeds invalidates what is stored.
#[tokio::test]
async fn an_unsafe_method_counts_for_the_next_request() {
    let (origin, site, mut client) = well_known().await;
    origin.on(post("/post")).reply(ok("thanks"));
    site.request(Req::post("/post").body("comment=1")).await.status(200);
    client.get("/post").await.body("v2");
    hits(&mut client, || Req::get("/post"), 200, "v2").await;
}

/// Somebody who reloads his page fetches it for all.
#[tokio::test]
async fn what_replaces_it_counts_for_the_next_request() {
    let (_origin, site, mut client) = well_known().await;
    site.request(Req::get("/post").field("cache-control", "no-cache")).await.body("v2");
    hits(&mut client, || Req::get("/post"), 200, "v2").await;
}

/// RFC 9111 §5.1, §4.2: it ages with every answer, and is fresh for as long as it is and no longer.
#[tokio::test]
async fn it_grows_older_and_expires() {
    let (_origin, site, mut client) = well_known().await;
    for age in 1..60 {
        site.clock.advance(secs(1));
        let answer = client.get("/post").await.body("v1").field("age", &age.to_string());
        answer.cache_status(&format!("hit; ttl={}", 60 - age));
    }
    site.clock.advance(secs(1));
    client.get("/post").await.body("v2").cache_status("fwd=stale");
}

/// RFC 9110 §13.1.2: the same condition holds for one version and not for the next.
#[tokio::test]
async fn a_condition_is_evaluated_against_what_is_stored_now() {
    let (_origin, site, mut client) = well_known().await;
    let condition = || Req::get("/post").field("if-none-match", "\"v1\"");
    hits(&mut client, condition, 304, "").await;
    site.request(Req::get("/post").field("cache-control", "no-cache")).await.body("v2");
    hits(&mut client, condition, 200, "v2").await;
}

#[tokio::test]
async fn heads_that_differ_in_what_varies_have_answers_of_their_own() {
    let (origin, site) = site().await;
    for language in ["en", "de"] {
        origin.on(get("/post").field("accept-language", language)).reply(page(language).field("vary", "accept-language"));
    }
    let in_language = |language: &str| Req::get("/post").field("accept-language", language);
    let mut client = site.client().await;
    for turn in 0..OFTEN {
        for language in ["en", "de"] {
            let answer = client.request(in_language(language)).await.status(200).body(language);
            if turn > 0 {
                answer.cache_status("hit");
            }
        }
    }
}

/// What a browser is called, where it comes from and which language it likes best makes no difference to a page that does not say so.
#[tokio::test]
async fn browsers_that_differ_get_the_page_that_is_known() {
    let (origin, _site, mut client) = well_known().await;
    for turn in 0..OFTEN {
        for name in INCIDENTAL_FIELDS {
            let request = Req::get("/post").field("user-agent", format!("Browser/{turn}")).field(name, format!("value {turn}"));
            client.request(request).await.status(200).body("v1").cache_status("hit").x_cache("HIT");
        }
    }
    assert_eq!(origin.count("/post"), 1);
}

/// RFC 9111 §4.1: and all the difference to one that does, whichever of them it names.
#[tokio::test]
async fn browsers_that_differ_in_what_varies_have_answers_of_their_own() {
    let (origin, site) = site().await;
    let mut client = site.client().await;
    for name in INCIDENTAL_FIELDS {
        let path = format!("/by-{name}");
        origin.on(get(&path)).reply_with(move |seen| {
            let text = seen.field(name).unwrap_or_else(|| "none".to_owned());
            ok(text).field("cache-control", "max-age=60").field("vary", name)
        });
        for turn in 0..OFTEN {
            for value in ["one", "another"] {
                let answer = client.request(Req::get(&path).field("x-same", "x").field(name, value)).await.status(200).body(value);
                if turn > 0 {
                    answer.cache_status("hit");
                }
            }
            client.get(&path).await.status(200).body("none");
        }
    }
}

/// A page that begins to vary is from then on another for everybody who differs.
#[tokio::test]
async fn what_varies_now_counts_for_the_next_request() {
    let (origin, site, mut client) = well_known().await;
    let by = |agent: &'static str| Req::get("/post").field("user-agent", agent);
    for agent in ["a", "b", "c", "d"] {
        hits(&mut client, || by(agent), 200, "v1").await;
    }
    origin.on(get("/post")).reply_with(|seen| {
        let text = seen.field("user-agent").unwrap_or_default();
        ok(text).field("cache-control", "max-age=60").field("vary", "user-agent")
    });
    site.purge(&url(), Hardness::Hard);
    for agent in ["a", "b", "c", "d"] {
        client.request(by(agent)).await.body(agent).cache_status("fwd");
    }
    for agent in ["a", "b", "c", "d"] {
        hits(&mut client, || by(agent), 200, agent).await;
    }
}

/// RFC 9110 §9.3.2: HEAD has the fields and no content; the connection goes on in step.
#[tokio::test]
async fn head_and_get_take_turns() {
    let (_origin, _site, mut client) = well_known().await;
    for _ in 0..OFTEN {
        client.request(Req::head("/post")).await.status(200).body("").field("content-length", "2").cache_status("hit");
        client.get("/post").await.body("v1").cache_status("hit");
    }
}

/// RFC 9112 §9.3: what the head says of its connection is honoured each time.
#[tokio::test]
async fn close_closes_each_time() {
    let (_origin, site, _client) = well_known().await;
    for _ in 0..OFTEN {
        let mut client = site.client().await;
        client.request(Req::get("/post").field("connection", "close")).await.body("v1").field("connection", "close");
        assert!(client.is_closed().await);
    }
    for _ in 0..OFTEN {
        let mut client = site.client().await;
        client.request(Req::get("/post").version("HTTP/1.0")).await.body("v1").cache_status("hit");
        assert!(client.is_closed().await);
    }
}

/// RFC 9112 §9.3.2: requests that come in one piece are answered in their order, known or not; and one that comes in two pieces as well.
#[tokio::test]
async fn a_known_head_may_come_in_any_piece() {
    let (origin, site, mut client) = well_known().await;
    origin.on(get("/other")).reply(page("other"));
    site.get("/other").await.body("other");
    let known = Req::get("/post").to_bytes(HOST);
    let other = Req::get("/other").to_bytes(HOST);
    client.send_raw([&known[..], &known, &other, &known].concat()).await;
    for text in ["v1", "v1", "other", "v1"] {
        client.read_answer().await.status(200).body(text).cache_status("hit");
    }
    client.send_byte_by_byte(&known).await;
    client.read_answer().await.body("v1").cache_status("hit");
    // Bytes that would make the known head another one.
    client.send_raw([&known[..known.len() - 2], b"range: bytes=0-0\r\n\r\n"].concat()).await;
    client.read_answer().await.status(206).body("v");
}

/// RFC 9112 §2.1: a head ends with an empty line. What a page is known by is not a head before that, whatever comes behind it.
#[tokio::test]
async fn the_lines_that_a_page_is_known_by_are_half_a_head() {
    let (_origin, site, mut client) = well_known().await;
    let begin = format!("GET /post HTTP/1.1\r\nHost: {HOST}\r\n");
    for turn in 0..OFTEN {
        client.send_raw(format!("{begin}User-Agent: {turn}\r\n\r\n").into_bytes()).await;
        client.read_answer().await.status(200).body("v1").cache_status("hit");
    }
    for at in 1..begin.len() + 30 {
        let whole = format!("{begin}User-Agent: another one\r\n\r\n").into_bytes();
        let (first, rest) = whole.split_at(at.min(whole.len() - 1));
        client.send_raw(first.to_vec()).await;
        client.send_raw(rest.to_vec()).await;
        client.read_answer().await.status(200).body("v1").cache_status("hit");
    }
    client.send_raw(begin.clone().into_bytes()).await;
    client.send_raw(b"Range: bytes=0-0\r\n\r\n".to_vec()).await;
    client.read_answer().await.status(206).body("v");
    // Another request line in the place of a field line.
    let mut client = site.client().await;
    client.send_raw(begin.into_bytes()).await;
    client.send_raw(b"POST /post HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".to_vec()).await;
    client.read_answer().await.status(400);
    assert!(client.is_closed().await);
}

/// Who connects after a reload is held to its limits, though the head was allowed before; who was connected is not.
#[tokio::test]
async fn a_known_head_is_refused_where_it_is_no_longer_allowed() {
    let (origin, mut site, mut client) = well_known().await;
    // And `Host`: nine.
    let request = || (0..8).fold(Req::get("/post"), |request, n| request.field(&format!("x-{n}"), "1"));
    hits(&mut client, request, 200, "v1").await;
    site.reload(&format!("source = \"{}\"\n[limits]\nheader_fields = 8", origin.url())).expect("reloaded");
    site.request(request()).await.status(431);
    hits(&mut client, request, 200, "v1").await;
    site.request(request()).await.status(431);
}

/// A site that is taken away is gone for known heads as well.
#[tokio::test]
async fn a_known_head_of_a_site_that_is_gone_is_misdirected() {
    let (origin, mut site, mut client) = well_known().await;
    let toml = format!("[[site]]\nhosts = [\"other.example\"]\nsource = \"{}\"\n", origin.url());
    site.reload(&toml).expect("reloaded");
    client.get("/post").await.status(421);
}

/// Each worker has its own memory, and a purge counts for all of them.
#[tokio::test]
async fn a_purge_counts_on_every_worker() {
    let (origin, site) = site_with("[server]\nworkers = 4").await;
    origin.on(get("/post")).reply(page("v1"));
    let mut clients = Vec::new();
    for _ in 0..24 {
        clients.push(site.client().await);
    }
    for client in &mut clients {
        for _ in 0..OFTEN {
            client.get("/post").await.body("v1");
        }
    }
    origin.on(get("/post")).reply(page("v2"));
    site.purge(&url(), Hardness::Hard);
    for client in &mut clients {
        client.get("/post").await.body("v2");
    }
    assert_eq!(origin.count("/post"), 2);
}

/// What is stored for GET answers HEAD, also when HEAD comes first and often.
#[tokio::test]
async fn head_first_and_often() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("v1"));
    origin.on(head("/post")).reply(page("v1"));
    let mut client = site.client().await;
    for _ in 0..OFTEN {
        client.request(Req::head("/post")).await.status(200).body("").field("content-length", "2");
    }
    // A head is known before its content: who has read that knows that it is stored.
    client.get("/post").await.body("v1");
    hits(&mut client, || Req::get("/post"), 200, "v1").await;
}
