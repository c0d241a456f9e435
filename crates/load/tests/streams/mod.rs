//! Plans of a few lines, for the tests of protocols that have several requests under way on a connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use load::{
    Plan, Protocol, Results, Schedule, Stop,
    plan::Connections,
    record::ErrorClass,
    requests::{Origin, Request, RequestSet},
    schedule::Profile,
};

/// Makes a plan for one request of one origin: one client that stays, one stream, one worker.
pub(crate) fn plan(protocol: Protocol, tls: bool, address: SocketAddr) -> Plan {
    let set = RequestSet { origins: vec![origin(tls, address)], requests: vec![get(0, "/")], ..RequestSet::default() };
    Plan {
        requests: Arc::new(set),
        schedule: clients(1),
        protocol,
        stop: Stop::default(),
        connections: Connections { insecure: true, ..Connections::default() },
        timeout: Duration::from_secs(20),
        warm_up: Duration::ZERO,
        workers: 1,
        seed: 0,
        cap: None,
    }
}

pub(crate) fn origin(tls: bool, address: SocketAddr) -> Origin {
    Origin { tls, host: address.ip().to_string(), port: address.port() }
}

pub(crate) fn get(origin: u16, target: &str) -> Request {
    let (method, target, fields) = ("GET".to_owned(), target.to_owned(), Vec::new());
    Request { origin, method, target, fields, body: bytes::Bytes::new(), weight: 1 }
}

/// Clients that stay.
pub(crate) fn clients(count: u32) -> Schedule {
    Schedule::Closed { clients: Profile::constant(f64::from(count), None) }
}

/// Returns the end of a run after so many requests.
pub(crate) fn requests(count: u64) -> Stop {
    Stop { requests: Some(count), after: None }
}

/// Returns the end of a run after so much time.
pub(crate) fn time(milliseconds: u64) -> Stop {
    Stop { requests: None, after: Some(Duration::from_millis(milliseconds)) }
}

/// Runs a plan that can be run.
pub(crate) fn run(plan: &Plan) -> Results {
    load::run(plan, &mut ()).expect("the plan can be run")
}

/// Returns the errors that occurred.
pub(crate) fn errors(results: &Results) -> Vec<(ErrorClass, u64)> {
    results.errors.iter().map(|(class, count)| (*class, *count)).filter(|(_, count)| *count > 0).collect()
}
