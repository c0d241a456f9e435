//! Each percentile is what the server's delays make it, within 1 % or 1 ms, over each version of HTTP.
//!
//! A machine that does something else meanwhile delays both sides, and it never makes an answer come early. So each case is measured again until every
//! percentile was right in one of the rounds, and none was ever too small. What is still too large in the last round may be so by the delay that a
//! thread without any work found at the same time.

use std::{
    sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use judges::{Delay, Percentiles, Speaks, Truth};
use load::{Protocol, Results, results::Times};

use super::{HTTP1, HTTP2, HTTP3, alone, even, long, plan, run};

/// Rounds until a busy machine is allowed for.
const ROUNDS: usize = 8;

const FIXED: Delay = Delay::Fixed(Duration::from_millis(20));
const BIMODAL: Delay = Delay::Bimodal { fast: Duration::from_millis(5), slow: Duration::from_millis(200), every: 50 };
/// It begins between two of the arrivals, so that it is clear which come in it.
const STALL: Delay =
    Delay::Stall { usual: Duration::from_millis(5), begins: Duration::from_millis(1505), lasts: Duration::from_millis(2000) };

/// Even arrivals, and the connections for them.
#[derive(Clone, Copy)]
struct Arrivals {
    rate: u32,
    seconds: u64,
    connections: u32,
}

fn quantiles(times: &Times) -> [(&'static str, f64, f64); 7] {
    [
        ("p50", 0.5, times.p50),
        ("p75", 0.75, times.p75),
        ("p90", 0.9, times.p90),
        ("p95", 0.95, times.p95),
        ("p99", 0.99, times.p99),
        ("p99_9", 0.999, times.p99_9),
        ("max", 1.0, times.max),
    ]
}

/// A thread that wishes to wake each millisecond, and notes how much later it does: what the machine does to everybody.
struct Witness {
    stop: SyncSender<()>,
    thread: JoinHandle<Duration>,
}

impl Witness {
    fn start() -> Self {
        let (stop, stopped) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            let pause = Duration::from_millis(1);
            let mut most = Duration::ZERO;
            loop {
                let begun = Instant::now();
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return most;
                }
                most = most.max(begun.elapsed().saturating_sub(pause));
            }
        });
        Self { stop, thread }
    }

    /// The longest that it was late, in ms.
    fn late(self) -> f64 {
        let _ = self.stop.send(());
        self.thread.join().expect("it does not panic").as_secs_f64() * 1e3
    }
}

/// Percentiles that were found in one round or another, and what they should be.
struct Judged {
    what: &'static str,
    expected: Percentiles,
    /// The least that was found of each percentile, in ms.
    least: [f64; 7],
}

impl Judged {
    fn new(what: &'static str, expected: Percentiles) -> Self {
        Self { what, expected, least: [f64::INFINITY; 7] }
    }

    /// Returns the faults of each percentile: it was too small in a round, or too large in all of them, by more than 1 % or 1 ms and by more than `late` ms.
    fn wrong(&mut self, found: &Times, late: f64) -> Vec<String> {
        let faults = quantiles(found).into_iter().zip(&mut self.least).filter_map(|((name, quantile, found), least)| {
            *least = least.min(found);
            let expected = self.expected.at(quantile).as_secs_f64() * 1e3;
            // Two digits of a thousandth are the histogram's.
            let most = (expected * 0.01).max(1.0);
            let right = *least >= expected - most && *least <= expected + most + late;
            (!right).then(|| format!("{}.{name} is {least:.2} ms at the least and should be {expected:.2} ms", self.what))
        });
        faults.collect()
    }
}

fn judge(speaks: Speaks, protocol: Protocol, delay: Delay, arrivals: Arrivals) {
    let _alone = alone();
    let Arrivals { rate, seconds, connections } = arrivals;
    let requests = u64::from(rate) * seconds;
    let (from_due, from_sent) = delay.percentiles(f64::from(rate), requests, connections as usize);
    let mut latency = Judged::new("latency", from_due);
    let mut uncorrected = Judged::new("latency_uncorrected", from_sent);
    for round in 1.. {
        let witness = Witness::start();
        let server = Truth::start(speaks, delay);
        let found: Results = run(&plan(&server.url(), protocol, even(f64::from(rate), seconds, connections)));
        assert_eq!((found.requests, found.answered, server.requests()), (requests, requests, requests), "{found:#?}");
        // A request is sent, arrives, is answered, and the answer arrives: each of these may have waited for a core.
        let late = 4.0 * witness.late().max(server.lateness().at(1.0).as_secs_f64() * 1e3).max(found.send_lag.max);
        let allowed = if round < ROUNDS { 0.0 } else { late };
        let mut faults = latency.wrong(&found.latency, allowed);
        faults.extend(uncorrected.wrong(&found.latency_uncorrected, allowed));
        if faults.is_empty() {
            return;
        }
        assert!(round < ROUNDS, "{speaks:?}, {delay:?}, after {ROUNDS} rounds, with {late:.2} ms for a busy machine: {faults:#?}");
    }
}

const STEADY: Arrivals = Arrivals { rate: 200, seconds: 2, connections: 100 };
const THROUGH_A_STALL: Arrivals = Arrivals { rate: 100, seconds: 5, connections: 300 };

#[test]
fn a_fixed_delay_is_found_over_http1() {
    judge(Speaks::Http1, HTTP1, FIXED, STEADY);
}

#[test]
fn a_fixed_delay_is_found_over_http2() {
    judge(Speaks::Http2Tls, HTTP2, FIXED, STEADY);
}

#[test]
fn a_fixed_delay_is_found_over_http3() {
    judge(Speaks::Http3, HTTP3, FIXED, STEADY);
}

#[test]
fn one_slow_answer_of_fifty_is_found_over_http1() {
    judge(Speaks::Http1, HTTP1, BIMODAL, STEADY);
}

#[test]
fn one_slow_answer_of_fifty_is_found_over_http2() {
    judge(Speaks::Http2Tls, HTTP2, BIMODAL, STEADY);
}

#[test]
fn one_slow_answer_of_fifty_is_found_over_http3() {
    judge(Speaks::Http3, HTTP3, BIMODAL, STEADY);
}

#[test]
fn a_stall_is_counted_for_all_who_came_in_it_over_http1() {
    judge(Speaks::Http1, HTTP1, STALL, THROUGH_A_STALL);
}

#[test]
fn a_stall_is_counted_for_all_who_came_in_it_over_http2() {
    judge(Speaks::Http2Tls, HTTP2, STALL, THROUGH_A_STALL);
}

#[test]
fn a_stall_is_counted_for_all_who_came_in_it_over_http3() {
    judge(Speaks::Http3, HTTP3, STALL, THROUGH_A_STALL);
}

/// The case that load testers hide: one connection waits through the stall, and the 199 requests that were due meanwhile are sent late. They waited
/// all the same.
#[test]
fn requests_that_waited_for_a_connection_count_from_their_intended_moment() {
    let stall = Delay::Stall { usual: Duration::ZERO, begins: Duration::from_millis(1505), lasts: Duration::from_millis(2000) };
    judge(Speaks::Http1, HTTP1, stall, Arrivals { rate: 100, seconds: 5, connections: 1 });
}

#[test]
fn each_delay_is_found_over_tls_and_in_plain_http2_too() {
    if !long() {
        return;
    }
    for (speaks, protocol) in [(Speaks::Http1Tls, HTTP1), (Speaks::Http2, HTTP2)] {
        judge(speaks, protocol, FIXED, STEADY);
        judge(speaks, protocol, BIMODAL, STEADY);
        judge(speaks, protocol, STALL, THROUGH_A_STALL);
    }
}

/// Ten seconds each, so that the 99.9th percentile stands for more than one request.
#[test]
fn each_delay_is_found_at_a_thousand_requests_a_second() {
    if !long() {
        return;
    }
    let stall = Delay::Stall { usual: Duration::from_millis(5), begins: Duration::from_micros(4_000_500), lasts: Duration::from_secs(2) };
    for (speaks, protocol) in [(Speaks::Http1, HTTP1), (Speaks::Http2Tls, HTTP2), (Speaks::Http3, HTTP3)] {
        for (delay, connections) in [(FIXED, 200), (BIMODAL, 400), (stall, 2500)] {
            judge(speaks, protocol, delay, Arrivals { rate: 1000, seconds: 10, connections });
        }
    }
}

/// The generator's own lateness at 1,000 requests a second: half of them leave within 100 µs of their moment, 99 of 100 within 1 ms.
#[test]
fn requests_leave_at_their_moment() {
    if !long() {
        return;
    }
    let _alone = alone();
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let server = Truth::start(Speaks::Http1, Delay::Fixed(Duration::ZERO));
        let lag = run(&plan(&server.url(), HTTP1, even(1000.0, 5, 64))).send_lag;
        if lag.p50 < 0.1 && lag.p99 < 1.0 {
            return;
        }
        found.push((lag.p50, lag.p99));
    }
    panic!("the median and the 99th percentile of the send lag in ms, in each round: {found:?}");
}
