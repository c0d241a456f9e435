//! A comparison claims a difference where there is one, and not where there is none. Long: 15 minutes.

use std::time::Duration;

use judges::{Delay, Speaks, Truth};

use super::{
    alone, long,
    tool::{BenchResult, bench},
};

fn compare(a: &Truth, b: &Truth) -> BenchResult {
    bench(&["--compare", "-c", "10", "-d", "30s", &a.url(), &b.url()])
}

/// Tells whether the interval of the ratio of rates leaves 1 out.
fn claims(told: &BenchResult) -> bool {
    let (low, high) = (told.number("ratio.rate.low"), told.number("ratio.rate.high"));
    low > 1.0 || high < 1.0
}

fn server(micros: u64) -> Truth {
    Truth::start(Speaks::Http1, Delay::Fixed(Duration::from_micros(micros)))
}

#[test]
fn of_twenty_comparisons_of_a_server_with_its_like_at_most_three_claim_a_difference() {
    if !long() {
        return;
    }
    let _alone = alone();
    let claimed = (0..20).filter(|_| claims(&compare(&server(5000), &server(5000)))).count();
    assert!(claimed <= 3, "{claimed} of 20");
}

#[test]
fn a_server_that_is_a_tenth_slower_is_found_in_nine_of_ten_comparisons() {
    if !long() {
        return;
    }
    let _alone = alone();
    let found = (0..10).filter(|_| {
        let told = compare(&server(5000), &server(5556));
        claims(&told) && told.number("ratio.rate.high") < 1.0
    });
    let found = found.count();
    assert!(found >= 9, "{found} of 10");
}

#[test]
fn a_tenth_is_found_where_answers_are_long_against_the_rounds() {
    if !long() {
        return;
    }
    let _alone = alone();
    for (a, b) in [(100_000, 110_000), (50_000, 55_000)] {
        let told = compare(&server(a), &server(b));
        let ratio = told.number("ratio.rate.ratio");
        assert!(claims(&told) && (ratio - a as f64 / b as f64).abs() < 0.02, "{a} and {b} µs: {ratio}");
    }
}
