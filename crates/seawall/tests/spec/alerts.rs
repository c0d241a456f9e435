//! What an operator is told without asking: when something begins to be wrong and when it is over, each of them once; by a webhook and by a
//! program.

use std::{fs, thread};

use ::operator::{AdminError, alerts};
use admin::{AlertsState, AlertsTested};
use serde_json::{Value, json};
use testkit::{Gate, Origin, Req, get, ok, post, raw, secs, status};

use crate::{
    operator::Operator,
    site::{Site, site_with},
};

/// Returns a server that tells `receiver` of alerts, in front of an origin with a page. It watches from the start on.
fn watched(origin: &Origin, receiver: &Origin, keys: &str) -> Site {
    let webhook = format!("webhook = \"{}/hook\"\nserver = \"web1\"", receiver.url());
    let mut site = Site::start(&format!("source = \"{}\"\n[alerts]\n{webhook}\n{keys}", origin.url()));
    site.server.keep_watching().expect("a thread");
    site
}

/// Returns a page that is there, and a receiver that takes everything.
fn origin_and_receiver() -> (Origin, Origin) {
    let (origin, receiver) = (Origin::start(), Origin::start());
    origin.on(get("/post").any_query()).reply(ok("text"));
    receiver.on(post("/hook")).reply(ok("thanks"));
    (origin, receiver)
}

/// Lets time pass, and has the server look around.
fn pass(site: &Site, seconds: u64) {
    site.clock.advance(secs(seconds));
    site.server.look_for_alerts();
}

/// Ends the origin, and asks for it until it counts as down: one connection can fail for another reason.
async fn kill(origin: &Origin, site: &Site) {
    origin.kill();
    let console = site.server.console();
    testkit::patiently("it is down", async {
        while console.health().sites[0].origin_up != Some(false) {
            site.get("/post?gone").await.status(502);
        }
    })
    .await;
}

/// Returns the JSON of the last message to the receiver, when so many have come.
async fn message(receiver: &Origin, number: usize) -> Value {
    receiver.until_count("/hook", number).await;
    serde_json::from_slice(&receiver.last("/hook").body).expect("JSON")
}

/// Returns the alerts of this site. All alerts of a test are about it.
fn state(site: &Site) -> AlertsState {
    site.server.console().alerts()
}

#[tokio::test]
async fn an_origin_that_is_gone_is_told_once_after_a_minute_and_once_when_it_is_back() {
    let (origin, receiver) = origin_and_receiver();
    let site = watched(&origin, &receiver, "");
    site.get("/post").await.status(200);
    kill(&origin, &site).await;
    pass(&site, 1);
    // The server looks by itself, too, in real seconds. If it did so just now, it has found this a second earlier.
    pass(&site, 58);
    assert_eq!((state(&site).standing, receiver.count("/hook")), (vec![], 0), "it has been gone for less than a minute");
    pass(&site, 2);
    let told = message(&receiver, 1).await;
    assert_eq!((&told["name"], &told["about"], &told["state"]), (&json!("origin-down"), &json!("default"), &json!("firing")), "{told}");
    // The simulated clock begins on 1 January 2026.
    assert!([json!(1_767_225_600_000_u64), json!(1_767_225_601_000_u64)].contains(&told["from"]), "{told}");
    assert_eq!((&told["until"], &told["server"]), (&json!(null), &json!("web1")), "{told}");
    let text = told["text"].as_str().expect("a text");
    assert!(text.starts_with("web1: ") && text.contains(&origin.url()), "{text}");
    let request = receiver.last("/hook");
    assert_eq!((request.method.as_str(), request.field("content-type").as_deref()), ("POST", Some("application/json")));
    pass(&site, 3_600);
    assert_eq!(state(&site).standing.len(), 1, "it stands");

    origin.revive();
    site.get("/post?back").await.status(200);
    pass(&site, 1);
    pass(&site, 298);
    assert_eq!((state(&site).standing.len(), receiver.count("/hook")), (1, 1), "it has been back for less than five minutes");
    pass(&site, 2);
    let over = message(&receiver, 2).await;
    assert_eq!((&over["state"], &over["id"], &over["from"]), (&json!("resolved"), &told["id"], &told["from"]), "{over}");
    let (standing, ended) = (state(&site).standing, state(&site).ended);
    assert_eq!((standing.len(), ended.len(), json!(ended[0].until)), (0, 1, over["until"].clone()));
}

/// The place is kept beside what is stored.
#[tokio::test]
async fn a_restart_tells_nothing_again() {
    let ((origin, receiver), place) = (origin_and_receiver(), tempfile::tempdir().expect("a folder"));
    let keys =
        format!("after = \"0s\"\nclear_after = \"0s\"\n[cache]\ndir = \"{}\"\ndisk = \"64MiB\"", place.path().join("cache").display());
    let site = watched(&origin, &receiver, &keys);
    kill(&origin, &site).await;
    pass(&site, 1);
    let told = message(&receiver, 1).await;
    thread::spawn(move || site.stop(secs(5))).join().expect("stopped");

    let site = watched(&origin, &receiver, &keys);
    // Nobody has asked the origin since the start, so nobody knows.
    pass(&site, 1);
    site.get("/post").await.status(502);
    pass(&site, 1);
    let standing = state(&site).standing;
    assert_eq!((standing.len(), json!(standing[0].from)), (1, told["from"].clone()), "it stands since then");
    origin.revive();
    pass(&site, 60);
    site.get("/post").await.status(200);
    pass(&site, 1);
    let over = message(&receiver, 2).await;
    assert_eq!((&over["state"], &over["id"]), (&json!("resolved"), &told["id"]), "{over}");
}

/// A site that nobody reads: one request fails while its server restarts, and no other one comes.
#[tokio::test]
async fn one_failed_request_to_an_origin_that_is_back_is_no_alert() {
    let (origin, receiver) = origin_and_receiver();
    let site = watched(&origin, &receiver, "");
    origin.kill();
    site.get("/post").await.status(502);
    pass(&site, 5);
    let console = site.server.console();
    assert_eq!(console.health().sites[0].origin_up, Some(false));
    // The server itself connects to what counts as down, and says to all that it is there.
    origin.revive();
    testkit::patiently("it is up", async {
        while console.health().sites[0].origin_up == Some(false) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for _ in 0..100 {
        pass(&site, 5);
    }
    assert_eq!((state(&site).standing, receiver.count("/hook")), (vec![], 0));
}

#[tokio::test]
async fn server_errors_are_told_and_errors_of_clients_are_not() {
    let (origin, receiver) = origin_and_receiver();
    origin.on(get("/broken").any_query()).reply(status(500));
    origin.on(get("/absent").any_query()).reply(status(404));
    let site = watched(&origin, &receiver, "after = \"10s\"\nclear_after = \"10s\"");
    for n in 0..50 {
        site.get(&format!("/absent?{n}")).await.status(404);
    }
    // RFC 9111 §5.2.1.7: the status is that of an error, and no server has failed.
    for n in 0..50 {
        site.request(Req::get(&format!("/absent?cached={n}")).field("cache-control", "only-if-cached")).await.status(504);
    }
    site.get("/post").await.status(200);
    pass(&site, 5);
    pass(&site, 10);
    assert_eq!(state(&site).standing, []);
    for n in 0..12 {
        site.get(&format!("/broken?{n}")).await.status(500);
    }
    // The last response is counted when the next one is answered; whether that one is counted then, too, does not matter.
    site.get("/post").await.status(200);
    pass(&site, 5);
    pass(&site, 10);
    let told = message(&receiver, 1).await;
    assert_eq!((&told["name"], &told["about"], &told["state"]), (&json!("server-errors"), &json!("default"), &json!("firing")), "{told}");
    assert!(told["text"].as_str().is_some_and(|text| text.contains(" 12 of 113.") || text.contains(" 12 of 114.")), "{told}");
    pass(&site, 400);
    pass(&site, 10);
    assert_eq!(message(&receiver, 2).await["state"], "resolved");
}

/// Whoever answers with a redirect may be a stranger by now, and the content is for the receiver alone.
#[tokio::test]
async fn a_redirect_of_the_receiver_is_not_followed() {
    let (origin, receiver) = origin_and_receiver();
    receiver.on(post("/hook")).reply(status(307).field("location", "/elsewhere"));
    receiver.on(post("/elsewhere")).reply(ok("mine"));
    let site = watched(&origin, &receiver, "after = \"0s\"");
    origin.kill();
    site.get("/post").await.status(502);
    pass(&site, 1);
    receiver.until_count("/hook", 1).await;
    testkit::patiently("the failure is counted", async {
        while state(&site).ways[0].failed == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let way = state(&site).ways.remove(0);
    assert!(way.last_error.as_ref().is_some_and(|error| error.contains("307")), "{way:?}");
    assert_eq!((receiver.count("/elsewhere"), receiver.count("/hook")), (0, 1));
}

/// A receiver that takes the connection and says nothing holds up neither readers nor the stop.
#[tokio::test]
async fn a_receiver_that_hangs_holds_up_nothing() {
    let (origin, receiver) = (Origin::start(), Origin::start());
    let never = Gate::new();
    origin.on(get("/post").any_query()).reply(ok("text"));
    receiver.on(post("/hook")).reply(ok("late").gate(&never));
    let site = watched(&origin, &receiver, "after = \"0s\"\nclear_after = \"0s\"");
    for n in 0..80 {
        origin.kill();
        site.get(&format!("/post?{n}")).await.status(502);
        pass(&site, 60);
        origin.revive();
        site.get(&format!("/post?{n}")).await.status(200);
        pass(&site, 60);
    }
    receiver.until_count("/hook", 1).await;
    let way = state(&site).ways.remove(0);
    // One of them is on its way. The server connects to the origin by itself, too, in real time: in a round in which it saw it there, nothing begins.
    assert_eq!((way.waiting, way.sent), (64, 0), "{way:?}");
    assert!((150 - 64..=160 - 64).contains(&way.lost) && way.lost.is_multiple_of(2), "{way:?}");
    thread::spawn(move || site.stop(secs(5))).join().expect("stopped");
}

#[tokio::test]
async fn a_program_is_told_the_same_on_its_standard_input() {
    let origin = Origin::start();
    let mut said = std::path::PathBuf::new();
    let mut site = Site::start_with(|folder| {
        said = folder.join("said");
        testkit::write_program(&folder.join("notify"), &format!("#!/bin/sh\ncat >{0}.new && mv {0}.new {0}\n", said.display()));
        format!("source = \"{}\"\n[alerts]\ncommand = [\"notify\"]\nafter = \"0s\"", origin.url())
    });
    site.server.keep_watching().expect("a thread");
    origin.kill();
    site.get("/post").await.status(502);
    pass(&site, 1);
    testkit::patiently("the program has run", async {
        while state(&site).ways[0].sent == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let told: Value = serde_json::from_slice(&fs::read(said).expect("written")).expect("JSON");
    assert_eq!((&told["name"], &told["state"]), (&json!("origin-down"), &json!("firing")), "{told}");
}

/// A person looks at alerts through the admin API: `seawall alerts`, `seawall alerts test`.
#[tokio::test]
async fn a_person_sees_what_is_wrong_and_tries_whether_it_is_told() {
    let (origin, receiver) = origin_and_receiver();
    receiver.on(post("/well")).reply(ok("thanks"));
    let keys = format!("after = \"0s\"\nwebhook_resolved = \"{}/well\"\nwebhook_secret = \"key\"\noff = [\"disk\"]", receiver.url());
    let site = watched(&origin, &receiver, &keys);
    let operator = Operator::of(&site);
    let ask = |client, work: fn(_) -> _| thread::spawn(move || work(client)).join().expect("no panic");
    let tested: Result<(String, bool), AdminError> = ask(operator.client(), |client| alerts::test(client, false));
    let (said, arrived) = tested.expect("a test");
    assert!(arrived && said.contains("arrived"), "{said}");
    let (begun, over) = (receiver.last("/hook"), receiver.last("/well"));
    for (request, is) in [(&begun, "firing"), (&over, "resolved")] {
        let told: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!((&told["name"], &told["state"]), (&json!("test"), &json!(is)), "{told}");
        assert!(request.field("seawall-signature").is_some_and(|field| field.contains("sha256=")));
    }
    // A test is not an alert.
    assert_eq!(state(&site).standing, []);

    kill(&origin, &site).await;
    pass(&site, 1);
    receiver.until_count("/hook", 2).await;
    let listed = ask(operator.client(), |client| alerts::list(&client, false).map(|text| (text, true))).expect("a list").0;
    assert!(listed.starts_with("origin-down  The origin of this site at ") && listed.contains("/…: "), "{listed}");
    assert!(!listed.contains("/hook"), "the address may be a secret: {listed}");
    let status = ask(operator.client(), |client| ::operator::status::text(&client, false).map(|text| (text, true))).expect("a status").0;
    assert!(status.contains("alert        The origin of this site"), "{status}");
    let mut client = testkit::Client::connect(operator.address).await.with_host("127.0.0.1");
    let metrics = client.get("/metrics").await.status(200).text();
    assert!(metrics.contains("seawall_alert{name=\"origin-down\",about=\"default\"} 1\n"), "{metrics}");
    let seen: Value = serde_json::from_str(&client.get("/seen").await.status(200).text()).expect("JSON");
    assert_eq!(seen["alerts"][0]["name"], "origin-down", "{seen}");
}

#[tokio::test]
async fn a_test_that_reaches_nobody_is_refused_or_says_why() {
    let (_origin, site) = site_with("").await;
    let operator = Operator::of(&site);
    let client = operator.client();
    let refused: Result<AlertsTested, AdminError> = thread::spawn(move || client.post("/alerts/test", "")).join().expect("no panic");
    assert!(matches!(refused, Err(AdminError::Refused { status: 409, .. })), "{refused:?}");
    // Without the token, nobody sends anything.
    let mut stranger = testkit::Client::connect(operator.address).await.with_host("127.0.0.1");
    stranger.request(Req::post("/alerts/test").body("")).await.status(401);

    let (origin, receiver) = origin_and_receiver();
    receiver.on(post("/hook")).reply(raw("nonsense\r\n\r\n"));
    let site = watched(&origin, &receiver, "");
    let console = site.server.console();
    let tested = thread::spawn(move || console.test_alerts()).join().expect("no panic").expect("a test");
    assert!(tested.ways[0].error.is_some(), "{tested:?}");
}
