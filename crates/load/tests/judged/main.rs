//! The load tester, judged by servers whose every answer is known (crate `judges`): are its numbers true?
//!
//! `truth` injects delays and computes each percentile, `errors` fails in each way that is told apart and counts, `counts` asks whether as many
//! requests are made as were ordered, at the moments that were ordered. Tests that take minutes run with `SEAWALL_BENCH_LONG=1` (`make spec-bench`).

mod counts;
mod errors;
mod truth;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use load::{
    Plan, Protocol, Results, Schedule, Stop,
    plan::Connections,
    requests::{Origin, Request, RequestSet},
    schedule::{Profile, Spacing},
};

/// Times are measured by one test at a time: two at once would judge each other.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether tests run that take minutes.
fn long() -> bool {
    std::env::var_os("SEAWALL_BENCH_LONG").is_some()
}

const HTTP1: Protocol = Protocol::Http1 { pipeline: 1 };
const HTTP2: Protocol = Protocol::Http2 { streams: 1 };
const HTTP3: Protocol = Protocol::Http3 { streams: 1 };

/// Makes a plan that asks a URL again and again, with one worker.
fn plan(url: &str, protocol: Protocol, schedule: Schedule) -> Plan {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (authority, path) = rest.split_once('/').expect("a path");
    let (host, port) = authority.split_once(':').expect("a port");
    let origin = Origin { tls: scheme == "https", host: host.to_owned(), port: port.parse().expect("a number") };
    let request = Request {
        origin: 0,
        method: "GET".to_owned(),
        target: format!("/{path}"),
        fields: Vec::new(),
        body: bytes::Bytes::new(),
        weight: 1,
    };
    Plan {
        requests: Arc::new(RequestSet { origins: vec![origin], requests: vec![request], ..RequestSet::default() }),
        schedule,
        protocol,
        stop: Stop::default(),
        connections: Connections { insecure: true, ..Connections::default() },
        timeout: Duration::from_secs(30),
        warm_up: Duration::ZERO,
        workers: 1,
        seed: 0,
        cap: None,
    }
}

/// Makes a schedule of requests at a rate, evenly, for a time.
fn even(rate: f64, seconds: u64, clients: u32) -> Schedule {
    Schedule::Rate { rate: Profile::constant(rate, Some(Duration::from_secs(seconds))), spacing: Spacing::Even, clients }
}

/// Clients that stay.
fn clients(count: u32) -> Schedule {
    Schedule::Closed { clients: Profile::constant(f64::from(count), None) }
}

fn run(plan: &Plan) -> Results {
    load::run(plan, &mut ()).expect("the plan can be run")
}
