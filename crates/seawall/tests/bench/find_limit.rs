//! The search for a limit meets limits that are known, within 5 %. Long.

use std::time::{Duration, Instant};

use judges::{Bucket, WhenEmpty};

use super::{alone, long, tool::bench};

fn meets(rate: f64, when_empty: WhenEmpty) {
    let _alone = alone();
    for round in 1..=3 {
        let server = Bucket::start(rate, when_empty);
        let begun = Instant::now();
        let told = bench(&["--find-limit", &server.url()]);
        let took = begun.elapsed();
        let found = told.number("limit.rate");
        assert!((found / rate - 1.0).abs() <= 0.05, "round {round}: {found:.0} a second, where {rate:.0} are right: {}", told.at("limit"));
        assert!(took < Duration::from_secs(120), "round {round}: {took:?}");
    }
}

#[test]
fn a_limit_of_200_a_second_is_found() {
    if long() {
        meets(200.0, WhenEmpty::Refuse(503));
    }
}

#[test]
fn a_limit_of_5000_a_second_is_found() {
    if long() {
        meets(5000.0, WhenEmpty::Refuse(429));
    }
}

/// A server that does not refuse grows slow: the limit is where the 99th percentile leaves its bound.
#[test]
fn a_limit_that_shows_in_waiting_is_found() {
    if long() {
        meets(200.0, WhenEmpty::Delay);
    }
}

/// A machine that does other work finds less, and says that it is not a limit of the server; nothing finds more.
#[test]
fn a_limit_is_found_and_held_for_as_long_as_was_said() {
    let _alone = alone();
    let server = Bucket::start(500.0, WhenEmpty::Refuse(503));
    let told = bench(&["--find-limit", "--hold", "2s", &server.url()]);
    let (found, held) = (told.number("limit.rate"), told.number("limit.held"));
    assert!((2.0..3.0).contains(&held), "{}", told.at("limit"));
    assert!(found <= 525.0, "{}", told.at("limit"));
    assert!(found >= 250.0 || told.at("limit.at_least").as_bool() == Some(true), "{}", told.at("limit"));
}
