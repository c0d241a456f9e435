//! Requests that go past the cache because the operator's load tester has signed them: before and after are measured at the same Seawall.

use std::fs;

use ::operator::{AdminClient, AdminError, explain};
use admin::explanation::ExplainedVerdict;
use serde_json::{Value, json};
use testkit::{Gate, Req, get, head, ok, post, secs};

use crate::{
    auth::BCRYPT,
    h2,
    operator::{Operator, TOKEN},
    site::{HOST, Site, site, site_with},
    tls::{self, Authority},
};

/// More often than it takes for a page and a head to be known.
const OFTEN: u64 = 8;

/// A field that the running server has signed.
#[derive(Debug, Clone)]
struct Signed {
    name: String,
    value: String,
    until: u64,
}

impl Signed {
    fn on(&self, request: Req) -> Req {
        request.field(&self.name, self.value.as_str())
    }
}

fn ask(client: &AdminClient, seconds: u64) -> Result<Value, AdminError> {
    client.post("/direct", &json!({"seconds": seconds}).to_string())
}

fn signed(site: &Site, seconds: u64) -> Signed {
    let answer = ask(&Operator::of(site).client(), seconds).expect("signed");
    let text = |key: &str| answer[key].as_str().expect(key).to_owned();
    Signed { name: text("field"), value: text("value"), until: answer["until"].as_u64().expect("a time") }
}

fn page(text: &'static str) -> testkit::Reply {
    ok(text).field("cache-control", "max-age=600")
}

#[tokio::test]
async fn a_signed_request_goes_past_the_cache_and_leaves_no_trace() {
    let (origin, site) = site().await;
    origin.on(get("/post").any_query()).reply(page("text"));
    origin.on(head("/post").any_query()).reply(page("text"));
    let direct = signed(&site, 60);
    assert_eq!(direct.name, "Seawall-Direct");
    let mut client = site.client().await;

    // Nothing is stored of it, and nothing is shared.
    for turn in 1..=OFTEN {
        let answer = client.request(direct.on(Req::get("/post?page=2"))).await.status(200).body("text").x_cache("BYPASS");
        answer.cache_status("fwd=bypass; fwd-status=200; detail=direct").no_cache_status("stored");
        assert_eq!(origin.count("/post?page=2") as u64, turn);
    }
    client.get("/post?page=2").await.cache_status("fwd=uri-miss; stored");

    // What is stored stays, and is not looked at.
    for turn in 1..=OFTEN {
        client.get("/post?page=2").await.x_cache("HIT");
        client.request(direct.on(Req::get("/post?page=2"))).await.x_cache("BYPASS");
        client.request(direct.on(Req::head("/post?page=2"))).await.x_cache("BYPASS");
        assert_eq!(origin.count("/post?page=2") as u64, OFTEN + 1 + 2 * turn);
    }
    assert!(origin.requests().iter().all(|seen| seen.field("seawall-direct").is_none()), "the origin never sees the field");
}

/// The origin is asked as it would be without a cache: for the whole target, with what trackers and readers add to it.
#[tokio::test]
async fn a_signed_request_asks_the_origin_for_what_it_says() {
    let (origin, site) = site().await;
    origin.on(get("/post").any_query()).reply(page("text"));
    let direct = signed(&site, 60);
    site.request(direct.on(Req::get("/post?fbclid=1")).field("cookie", "session=1")).await.x_cache("BYPASS");
    assert_eq!(origin.last("/post?fbclid=1").field("cookie").as_deref(), Some("session=1"));
}

/// A stranger gains nothing, and nothing of it reaches the origin; whoever makes a copy of a signed field has it until it expires.
#[tokio::test]
async fn a_field_that_is_not_valid_is_as_good_as_none() {
    let (origin, site) = site().await;
    let (_, other) = self::site().await;
    origin.on(get("/post")).reply(page("text").field("vary", "Seawall-Direct"));
    origin.on(get("/new").any_query()).reply(page("new"));
    let good = signed(&site, 60);
    site.get("/post").await.cache_status("stored");

    let (begin, hex) = good.value.split_at(good.value.len() - 64);
    assert_eq!(begin, format!("until={}, sha256=", good.until));
    let flipped = if hex.starts_with('0') { "1" } else { "0" };
    let wrong: Vec<String> = vec![
        String::new(),
        "1".to_owned(),
        TOKEN.to_owned(),
        format!("{begin}{}", "0".repeat(64)),
        format!("{begin}{flipped}{}", &hex[1..]),
        format!("{begin}{}", hex.to_ascii_uppercase()),
        format!("{begin}{}", &hex[..62]),
        format!("{begin}{hex}00"),
        format!("until={}, sha256={hex}", good.until + 1),
        format!("until={}, sha256={hex}", u64::MAX),
        format!("until=0{}, sha256={hex}", good.until),
        format!("sha256={hex}, until={}", good.until),
        // Another Seawall, or this one before it was restarted, has another key.
        signed(&other, 60).value,
    ];
    for (number, value) in wrong.iter().enumerate() {
        for _ in 0..OFTEN {
            site.request(Req::get("/post").field("Seawall-Direct", value.as_str())).await.status(200).x_cache("HIT");
        }
        let target = format!("/new?page={number}");
        site.request(Req::get(&target).field("Seawall-Direct", value.as_str())).await.x_cache("MISS").cache_status("stored");
        site.get(&target).await.x_cache("HIT");
    }
    // Two such fields are none, even if both are right.
    site.request(good.on(good.on(Req::get("/post")))).await.x_cache("HIT");
    // A script would read this as the same variable.
    site.request(Req::get("/new?page=x").field("Seawall_Direct", good.value.as_str())).await.x_cache("MISS");
    assert!(origin.requests().iter().all(|seen| seen.field("seawall-direct").or_else(|| seen.field("seawall_direct")).is_none()));
    assert_eq!(origin.count("/post"), 1);

    site.request(good.on(Req::get("/post"))).await.x_cache("BYPASS");
    // At its last second it counts, afterwards no longer, even on a connection on which it did.
    let mut client = site.client().await;
    site.clock.advance(secs(59));
    for _ in 0..OFTEN {
        client.request(good.on(Req::get("/post"))).await.x_cache("BYPASS");
    }
    site.clock.advance(secs(1));
    for _ in 0..OFTEN {
        client.request(good.on(Req::get("/post"))).await.x_cache("HIT");
    }
}

/// Each one that is asked for past the cache costs the origin a request, whoever asks for the same at the same time.
#[tokio::test]
async fn signed_requests_are_not_collapsed_with_each_other_or_with_readers() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text").gate(&gate));
    let direct = signed(&site, 60);
    let mut crowd = Vec::new();
    for request in [Req::get("/post"), direct.on(Req::get("/post")), direct.on(Req::get("/post")), Req::get("/post")] {
        let mut client = site.client().await;
        client.send(request).await;
        crowd.push(client);
    }
    gate.arrived_count(3).await;
    gate.open();
    for client in &mut crowd {
        client.read_answer().await.status(200).body("text");
    }
    assert_eq!(origin.count("/post"), 3, "the readers share one");
}

/// The origin gets no more at once than it can bear: what finds no place is refused, and readers have what is stored.
#[tokio::test]
async fn signed_requests_keep_to_the_limits_of_the_origin() {
    let (origin, site) = site_with("[origin]\nconcurrency = 1\nqueue = 1\n").await;
    let gate = Gate::new();
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    site.get("/post").await.cache_status("stored");
    let direct = signed(&site, 60);
    let mut busy = site.client().await;
    busy.send(direct.on(Req::get("/slow"))).await;
    gate.arrived().await;
    let mut waiting = site.client().await;
    waiting.send(direct.on(Req::get("/slow"))).await;
    site.has_read_all().await;
    site.request(direct.on(Req::get("/post"))).await.status(503);
    site.get("/post").await.x_cache("HIT");
    gate.open();
    busy.read_answer().await.status(200);
    waiting.read_answer().await.status(200);
}

/// The field lets a request past the cache, and past nothing else: what passes by another rule keeps that, and a closed site stays closed.
#[tokio::test]
async fn a_signed_request_gets_past_the_cache_and_nothing_else() {
    let (origin, site) = site().await;
    origin.on(post("/post")).reply(ok("thanks"));
    let direct = signed(&site, 60);
    site.request(direct.on(Req::post("/post").body("a=1"))).await.cache_status("fwd=method");
    assert_eq!(origin.last("/post").field("seawall-direct"), None);

    let mut locked = site;
    fs::write(locked.folder().join("users"), format!("ada:{BCRYPT}\n")).expect("written");
    locked.reload(&format!("source = \"{}\"\n[auth]\nfile = \"users\"\n", origin.url())).expect("reloaded");
    locked.request(direct.on(Req::get("/post"))).await.status(401);
}

#[tokio::test]
async fn a_signed_request_goes_past_the_cache_over_http_2() {
    let authority = Authority::new();
    let (origin, site) = tls::site(&authority, "");
    origin.on(get("/post")).reply(page("text"));
    let direct = signed(&site, 60);
    let (mut send, _connection) = h2::client(&authority, &site, 65_535).await;
    for (fields, expected) in
        [(&[][..], "MISS"), (&[], "HIT"), (&[("seawall-direct", direct.value.as_str())], "BYPASS"), (&[("seawall-direct", "1")], "HIT")]
    {
        // The content is read, too: a page is stored when all of it is there, and the next request is about what is stored.
        let (response, _) = h2::answer(&mut send, h2::request("GET", "/post", fields), "").await;
        assert_eq!(response.headers()["x-cache"], expected);
    }
}

/// What was measured past the cache is told apart from readers whom the cache did not help.
#[tokio::test]
async fn signed_requests_are_explained_and_counted() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    let operator = Operator::of(&site);
    site.get("/post").await.x_cache("MISS");
    let direct = signed(&site, 60);
    let explained = |value: &str| {
        let fields = [format!("Seawall-Direct: {value}")];
        let command = explain::command(&format!("http://{HOST}/post"), "GET", &fields).expect("a command");
        explain::run(&operator.client(), &command).expect("an explanation")
    };
    let past = explained(&direct.value);
    assert_eq!((past.verdict, past.now.x_cache.as_str()), (ExplainedVerdict::Pass, "BYPASS"));
    assert!(past.now.cache_status.contains("detail=direct"), "{past:?}");
    let rule = past.rules.last().expect("a rule");
    assert_eq!((rule.rule.as_str(), rule.decided), ("direct", true));
    assert!(!serde_json::to_string(&past).expect("JSON").contains("sha256"), "the signature is not shown");

    let as_usual = explained("until=1, sha256=00");
    assert_eq!((as_usual.verdict, as_usual.now.x_cache.as_str()), (ExplainedVerdict::Lookup, "HIT"));
    let rule = as_usual.rules.iter().find(|rule| rule.rule == "direct").expect("the rule was tried");
    assert!(!rule.decided && rule.detail.contains("not signed by this Seawall"), "{rule:?}");

    let counted = || {
        let status: Value = operator.client().get("/status").expect("a status");
        status["metrics"]["seawall_direct_total"]["samples"][0]["value"].as_u64()
    };
    assert_eq!(counted(), Some(0));
    for _ in 0..3 {
        site.request(direct.on(Req::get("/post"))).await.x_cache("BYPASS");
    }
    assert_eq!(counted(), Some(3));
}

/// Who may purge may measure: the token is needed, and what is signed ends within the hour.
#[tokio::test]
async fn only_the_operator_has_a_field_signed_and_for_an_hour_at_most() {
    let (_origin, mut site) = site().await;
    let operator = Operator::of(&site);
    for (seconds, allowed) in [(1, true), (3_600, true), (0, false), (3_601, false)] {
        let answer = ask(&operator.client(), seconds);
        assert_eq!(answer.is_ok(), allowed, "{seconds}: {answer:?}");
        if let Err(error) = answer {
            assert!(error.to_string().contains("3600"), "{error}");
        }
    }
    let stranger = AdminClient::new(operator.address, &TOKEN.replace('0', "9")).expect("a token");
    assert!(matches!(ask(&stranger, 60), Err(AdminError::WrongToken(_))));

    // A reload keeps what was signed.
    let (origin, _) = self::site().await;
    origin.on(get("/post")).reply(page("text"));
    let direct = signed(&site, 60);
    site.reload(&format!("source = \"{}\"\n", origin.url())).expect("reloaded");
    site.get("/post").await.x_cache("MISS");
    site.request(direct.on(Req::get("/post"))).await.x_cache("BYPASS");
}
