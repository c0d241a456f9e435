//! As many requests are made as were ordered, over as many connections, and no more.

use std::time::Duration;

use judges::{Delay, Speaks, Truth};
use load::{Plan, Protocol, Schedule, Stop};

use super::{HTTP1, HTTP2, HTTP3, clients, even, plan, run};
use load::schedule::{Profile, Spacing};

const ALL: [(Speaks, Protocol); 5] =
    [(Speaks::Http1, HTTP1), (Speaks::Http1Tls, HTTP1), (Speaks::Http2, HTTP2), (Speaks::Http2Tls, HTTP2), (Speaks::Http3, HTTP3)];

const AT_ONCE: Delay = Delay::Fixed(Duration::ZERO);

#[test]
fn a_number_of_requests_is_made_exactly_with_any_number_of_workers() {
    for (speaks, protocol) in ALL {
        for workers in [1, 2, 3] {
            let server = Truth::start(speaks, AT_ONCE);
            let plan = Plan { workers, stop: Stop { requests: Some(333), after: None }, ..plan(&server.url(), protocol, clients(10)) };
            let found = run(&plan);
            assert_eq!((found.requests, found.answered, server.requests()), (333, 333, 333), "{speaks:?}, {workers} workers");
        }
    }
}

#[test]
fn a_rate_over_a_time_makes_their_product() {
    for (speaks, protocol) in ALL {
        let server = Truth::start(speaks, AT_ONCE);
        let plan = Plan { workers: 2, ..plan(&server.url(), protocol, even(100.0, 1, 8)) };
        let found = run(&plan);
        assert_eq!((found.requests, server.requests(), found.missed), (100, 100, 0), "{speaks:?}");
    }
}

#[test]
fn each_arrival_has_a_connection_of_its_own() {
    for (speaks, protocol) in ALL {
        let server = Truth::start(speaks, AT_ONCE);
        let rate = Profile::constant(60.0, Some(Duration::from_secs(1)));
        let found = run(&plan(&server.url(), protocol, Schedule::Arrivals { rate, spacing: Spacing::Even }));
        assert_eq!((found.requests, server.requests(), found.connect.count), (60, 60, 60), "{speaks:?}");
    }
}

#[test]
fn without_keep_alive_each_request_has_a_connection_of_its_own() {
    for (speaks, protocol) in ALL {
        let server = Truth::start(speaks, AT_ONCE);
        let mut plan = Plan { stop: Stop { requests: Some(50), after: None }, ..plan(&server.url(), protocol, clients(5)) };
        plan.connections.no_keepalive = true;
        let found = run(&plan);
        assert_eq!((found.answered, found.connect.count), (50, 50), "{speaks:?}");
    }
}

#[test]
fn clients_that_stay_use_one_connection_each() {
    for (speaks, protocol) in ALL {
        let server = Truth::start(speaks, Delay::Fixed(Duration::from_millis(2)));
        let found = run(&Plan { stop: Stop { requests: Some(200), after: None }, ..plan(&server.url(), protocol, clients(7)) });
        assert_eq!((found.connect.count, found.clients), (7, 7), "{speaks:?}");
    }
}

/// Four requests at a time on each of two connections, each answered after 50 ms: 160 a second, so 80 take half a second.
#[test]
fn streams_and_pipelined_requests_are_under_way_together() {
    let cases = [
        (Speaks::Http1, Protocol::Http1 { pipeline: 4 }, 1),
        (Speaks::Http2Tls, Protocol::Http2 { streams: 4 }, 4),
        (Speaks::Http3, Protocol::Http3 { streams: 4 }, 4),
    ];
    for (speaks, protocol, together) in cases {
        let server = Truth::start(speaks, Delay::Fixed(Duration::from_millis(50)));
        let found = run(&Plan { stop: Stop { requests: Some(80), after: None }, ..plan(&server.url(), protocol, clients(2)) });
        assert_eq!((found.answered, found.connect.count), (80, 2), "{speaks:?}");
        let least = 80.0 / f64::from(2 * together) * 0.05;
        assert!(found.duration > least * 0.98, "{speaks:?}: {:.3} s, at least {least:.3} s", found.duration);
    }
}

#[test]
fn a_run_of_a_time_ends_after_it() {
    for (speaks, protocol) in ALL {
        let server = Truth::start(speaks, Delay::Fixed(Duration::from_millis(5)));
        let found =
            run(&Plan { stop: Stop { requests: None, after: Some(Duration::from_secs(1)) }, ..plan(&server.url(), protocol, clients(4)) });
        assert!((0.99..1.5).contains(&found.duration), "{speaks:?}: {}", found.duration);
        assert!(found.answered > 200 && found.answered <= server.requests(), "{speaks:?}: {}", found.answered);
    }
}

#[test]
fn the_seconds_add_up_to_the_whole() {
    let server = Truth::start(Speaks::Http1, AT_ONCE);
    let found = run(&Plan { workers: 2, ..plan(&server.url(), HTTP1, even(200.0, 3, 8)) });
    assert_eq!(found.seconds.iter().map(|second| second.requests).sum::<u64>(), found.requests);
    assert_eq!(found.requests, 600);
}
