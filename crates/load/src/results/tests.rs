//! The names that scripts read, and that results can be read and added again.

use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::{
    plan::{Connections, Plan, Protocol, Stop, TIMEOUT},
    record::{Recorder, Sample},
    requests::{Origin, Request, RequestSet},
    schedule::{Profile, Schedule},
};

fn plan() -> Plan {
    let request =
        Request { origin: 0, method: "GET".to_owned(), target: "/post".to_owned(), fields: vec![], body: bytes::Bytes::new(), weight: 1 };
    let origin = Origin { tls: true, host: "localhost".to_owned(), port: 8443 };
    Plan {
        requests: Arc::new(RequestSet { origins: vec![origin], requests: vec![request], ..RequestSet::default() }),
        schedule: Schedule::Closed { clients: Profile::constant(500.0, None) },
        protocol: Protocol::Http2 { streams: 10 },
        stop: Stop { requests: Some(5000), after: None },
        connections: Connections::default(),
        timeout: TIMEOUT,
        warm_up: Duration::from_secs(2),
        workers: 2,
        seed: 7,
        cap: None,
    }
}

fn tally(warm_up: Duration) -> Tally {
    let (sender, _receiver) = std::sync::mpsc::sync_channel(64);
    let mut recorder = Recorder::new(0, warm_up, sender);
    for n in 0..100 {
        let intended = Duration::from_millis(n * 100);
        let sent = intended + Duration::from_micros(50);
        recorder.sent(intended, sent);
        recorder.ended(&Sample {
            intended,
            sent,
            first_byte: Some(sent + Duration::from_millis(n)),
            ended: sent + Duration::from_millis(n + 1),
            status: if n == 99 { 500 } else { 200 },
            bytes: 1000,
            origin_reached: (n < 90).then_some(n % 2 == 1),
            page: (n % 10 == 0).then_some(Duration::from_millis(n)),
            outcome: if n % 2 == 0 { Outcome::Hit } else { Outcome::Miss },
            error: (n == 99).then_some(ErrorClass::Status),
        });
    }
    recorder.connected(Duration::from_secs(3), Duration::from_millis(3), None);
    recorder.missed(4);
    recorder.clients(500);
    recorder.finish(Duration::from_secs(10))
}

fn results() -> Results {
    let verdict = Verdict { limit: Limit::Server, at_least: false, reason: "it was busy".to_owned(), hint: None };
    Results::new(Run::new(&plan()), Duration::from_secs(8), &tally(Duration::from_secs(2)), vec![Second::default()], verdict)
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Scripts read these names. One that goes, or means something else, breaks them: add names, never change one.
#[test]
fn the_names_of_the_json_form_stay() {
    let mut results = results();
    results.leaks = vec![Leak { url: String::new(), client: 1, owner: None, place: "body".to_owned() }];
    let json = serde_json::to_value(&results).expect("it can be written");
    let has = |value: &Value, expected: &str| {
        for name in expected.split(' ') {
            assert!(names(value).contains(&name), "{name} is missing in {:?}", names(value));
        }
    };
    has(
        &json,
        "requests answered rate good good_rate ended_early bytes duration errors statuses latency latency_uncorrected first_byte connect handshake resumed send_lag missed \
         cache origin_share origin_known page left_out leaks clients seconds verdict run machine generator warm_up histograms",
    );
    for times in ["latency", "latency_uncorrected", "first_byte", "connect", "handshake", "send_lag", "page"] {
        has(&json[times], "count min mean stdev p50 p75 p90 p95 p99 p99_9 max");
    }
    has(&json["errors"], "resolve refused connect tls reset timeout truncated protocol status body field leak");
    has(&json["cache"]["hit"], "requests share latency");
    has(&json["verdict"], "limit at_least reason hint");
    has(
        &json["run"],
        "command began seawall urls urls_count protocol tls no_keepalive schedule kind open stop clients requests seconds timeout warm_up workers seed",
    );
    has(&json["machine"], "cpu cores memory kernel");
    has(
        &json["generator"],
        "cpu_seconds cpu_us_per_request busiest_worker waiting_worker memory_max steal clock_jump descriptors_max descriptors_exhausted ports_exhausted resent",
    );
    has(&json["warm_up"], "seconds requests errors");
    has(&json["histograms"], "latency latency_uncorrected first_byte page connect handshake send_lag cache");
    has(&json["seconds"][0], "second length requests answered errors bytes connections clients latency cache");
    has(&json["leaks"][0], "url client owner place");
}

/// The values of names that stand for one of several things.
#[test]
fn the_words_of_the_json_form_stay() {
    let word = |value: &dyn erased::Word| value.word();
    for (limit, name) in [
        (Limit::Server, "server"),
        (Limit::Generator, "generator"),
        (Limit::Network, "network"),
        (Limit::PortsOrDescriptors, "ports_or_descriptors"),
        (Limit::Machine, "machine"),
        (Limit::Schedule, "schedule"),
        (Limit::Unknown, "unknown"),
    ] {
        assert_eq!(word(&limit), name);
    }
    for (kind, name) in [(Kind::Closed, "closed"), (Kind::Arrivals, "arrivals"), (Kind::Rate, "rate"), (Kind::Replay, "replay")] {
        assert_eq!(word(&kind), name);
    }
    for (outcome, name) in Outcome::ALL.iter().zip(["hit", "stale", "miss", "bypass", "unknown"]) {
        assert_eq!(word(outcome), name);
    }
    for class in ErrorClass::ALL {
        assert_eq!(word(&class), class.name());
    }
}

mod erased {
    pub(super) trait Word {
        fn word(&self) -> String;
    }

    impl<T: serde::Serialize> Word for T {
        fn word(&self) -> String {
            serde_json::to_value(self).expect("it can be written").as_str().expect("a string").to_owned()
        }
    }
}

#[test]
fn what_happened_in_the_warm_up_is_told_apart() {
    let results = results();
    assert_eq!((results.warm_up.requests, results.requests), (20, 80));
    assert_eq!(results.rate, 10.0, "80 answers in 8 seconds");
    assert_eq!(results.errors[&ErrorClass::Status], 1);
}

#[test]
fn an_answer_with_an_error_is_an_answer_and_no_good_one() {
    let results = results();
    assert_eq!((results.answered, results.good), (80, 79), "the last one has a wrong status");
    assert_eq!(results.good_rate, 79.0 / 8.0);
    let second = Second {
        length: 0.5,
        requests: 10,
        answered: 8,
        errors: [(ErrorClass::Status, 5), (ErrorClass::Reset, 2)].into(),
        ..Second::default()
    };
    assert_eq!((second.good(), second.good_rate()), (3, 6.0));
}

#[test]
fn the_share_that_reached_the_origin_is_of_answers_that_say_it() {
    let results = results();
    assert_eq!((results.origin_share, results.origin_known), (Some(0.5), 70));
    assert_eq!(results.page.count, 8);
}

#[test]
fn results_can_be_read_again_and_give_their_tally_back() {
    let results = results();
    let text = serde_json::to_string(&results).expect("it can be written");
    let read: Results = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(read, results);
    let tally = read.tally().expect("its histograms are ours");
    let again = Results::new(read.run, Duration::from_secs(8), &tally, read.seconds, read.verdict);
    assert_eq!(again, results);
}

#[test]
fn results_without_what_later_versions_added_can_be_read() {
    let mut json = serde_json::to_value(results()).expect("it can be written");
    let object = json.as_object_mut().expect("an object");
    for name in [
        "run",
        "machine",
        "good",
        "good_rate",
        "ended_early",
        "resumed",
        "origin_share",
        "origin_known",
        "page",
        "left_out",
        "leaks",
        "warm_up",
        "generator",
        "histograms",
    ] {
        object.remove(name);
    }
    object["verdict"].as_object_mut().expect("an object").remove("hint");
    serde_json::from_value::<Results>(json).expect("it can be read");
}

#[test]
fn what_was_run_is_said_in_words() {
    let run = Run::new(&plan());
    assert_eq!(run.urls, ["https://localhost:8443/post"]);
    assert_eq!((run.protocol.as_str(), run.tls), ("HTTP/2, 10 streams a connection", true));
    assert_eq!((run.schedule.as_str(), run.stop.as_str(), run.open), ("500 clients that stay", "5,000 requests", false));
    assert_eq!(run.began.len(), "2026-11-23T07:02:46Z".len());
}
