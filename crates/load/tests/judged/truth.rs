//! Each percentile is what the server's delays make it, within 1 % or 1 ms, over each version of HTTP.
//!
//! A machine that does something else meanwhile delays both sides, and it never makes an answer come early. So each case is measured again until a round
//! has no percentile that is too small, and each percentile was not too large in that round or an earlier one. From round [`ROUNDS`] on, a percentile may
//! be larger by how late the machine was in that round: server, load tester, and a thread without any work. One that is too small by more than that is a
//! fault at once.
//!
//! Connections are opened by requests that are not measured: a handshake of QUIC takes a debug build several milliseconds, which requests wait for.

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

/// Rounds until even that does not help.
const ROUNDS_MAX: usize = 24;

/// A round in which the generator sent later than this, in ms, proves nothing.
const LAG_MAX: f64 = 100.0;

/// The number of seconds during which requests are made that are not measured.
const WARM_UP: u64 = 1;

/// Requests at a time on a connection of HTTP/2 and HTTP/3.
const STREAMS: u16 = 25;

const FIXED: Delay = Delay::Fixed(Duration::from_millis(20));
const BIMODAL: Delay = Delay::Bimodal { fast: Duration::from_millis(5), slow: Duration::from_millis(200), every: 50 };
/// It begins between two of the arrivals, so that it is clear which come in it.
const STALL: Delay =
    Delay::Stall { usual: Duration::from_millis(5), begins: Duration::from_millis(1505), lasts: Duration::from_millis(2000) };

/// Even arrivals.
#[derive(Clone, Copy)]
struct Arrivals {
    rate: u32,
    /// The number of seconds for which they are measured.
    seconds: u64,
    /// The number of requests that can be under way.
    room: u32,
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

    /// Returns the longest that it was late, in ms.
    fn late(self) -> f64 {
        let _ = self.stop.send(());
        self.thread.join().expect("it does not panic").as_secs_f64() * 1e3
    }
}

/// Percentiles that were found in one round or another, and what they should be.
struct Judged {
    what: &'static str,
    expected: Percentiles,
    /// The least that was found of each percentile, in ms, less what was allowed for a busy machine. Values that were too small are not among them.
    least: [f64; 7],
}

impl Judged {
    fn new(what: &'static str, expected: Percentiles) -> Self {
        Self { what, expected, least: [f64::INFINITY; 7] }
    }

    /// Returns the faults of each percentile by more than 1 % or 1 ms: it is too small in this round, by more than `early` ms too, or it was too large
    /// in all rounds, by more than what was `allowed` in each, in ms.
    ///
    /// # Panics
    /// When one is so small that `late` does not explain it: how late the machine was, in ms.
    fn wrong(&mut self, found: &Times, early: f64, allowed: f64, late: f64) -> Vec<String> {
        let faults = quantiles(found).into_iter().zip(&mut self.least).filter_map(|((name, quantile, found), least)| {
            let expected = self.expected.at(quantile).as_secs_f64() * 1e3;
            // Two digits of a thousandth are the histogram's.
            let most = (expected * 0.01).max(1.0);
            let is_too_small = found < expected - most - early;
            if !is_too_small {
                *least = least.min(found - allowed);
            }
            let fault = || format!("{}.{name} is {found:.2} ms, {least:.2} at the least, and should be {expected:.2} ms", self.what);
            assert!(found >= expected - most - early - late, "{}, although the machine was late by {late:.2} ms at most", fault());
            (is_too_small || *least > expected + most).then(fault)
        });
        faults.collect()
    }
}

fn judge(speaks: Speaks, protocol: Protocol, delay: Delay, arrivals: Arrivals) {
    let _alone = alone();
    let Arrivals { rate, seconds, room } = arrivals;
    let (unjudged, requests) = (u64::from(rate) * WARM_UP, u64::from(rate) * seconds);
    let (protocol, connections) = match protocol {
        Protocol::Http1 { .. } => (protocol, room),
        Protocol::Http2 { .. } => (Protocol::Http2 { streams: STREAMS }, room.div_ceil(STREAMS.into())),
        Protocol::Http3 { .. } => (Protocol::Http3 { streams: STREAMS }, room.div_ceil(STREAMS.into())),
    };
    let (from_due, from_sent) = delay.percentiles(f64::from(rate), requests, room as usize);
    let mut latency = Judged::new("latency", from_due);
    let mut uncorrected = Judged::new("latency_uncorrected", from_sent);
    let mut faults = Vec::new();
    for round in 1..=ROUNDS_MAX {
        let witness = Witness::start();
        let server = Truth::start_warmed(speaks, delay, unjudged);
        let mut plan = plan(&server.url(), protocol, even(f64::from(rate), WARM_UP + seconds, connections));
        plan.warm_up = Duration::from_secs(WARM_UP);
        plan.stop.requests = Some(requests);
        let found: Results = run(&plan);
        assert_eq!((found.requests, found.answered, server.requests()), (requests, requests, unjudged + requests), "{found:#?}");
        // A request is sent, arrives, is answered, and the answer arrives: each of these may have waited for a core.
        let late = 4.0 * witness.late().max(server.lateness().at(1.0).as_secs_f64() * 1e3).max(found.send_lag.max);
        if found.send_lag.max > LAG_MAX {
            faults = vec![format!("requests were sent {:.2} ms late", found.send_lag.max)];
            continue;
        }
        let allowed = if round < ROUNDS { 0.0 } else { late };
        faults = latency.wrong(&found.latency, 0.0, allowed, late);
        // A request that is sent late waits for less of the delay.
        faults.extend(uncorrected.wrong(&found.latency_uncorrected, found.send_lag.max, allowed, late));
        if faults.is_empty() {
            return;
        }
    }
    panic!("{speaks:?}, {delay:?}, after {ROUNDS_MAX} rounds, the least less what was allowed for a busy machine: {faults:#?}");
}

#[test]
fn a_percentile_that_was_too_small_once_is_not_right_later() {
    // All answers take 20 ms, so 1 ms is the tolerance.
    let expected = || FIXED.percentiles(200.0, 400, 100).0;
    let times = |ms: f64| Times { count: 400, p50: ms, p75: ms, p90: ms, p95: ms, p99: ms, p99_9: ms, max: ms, ..Times::default() };
    let mut judged = Judged::new("latency", expected());
    assert_eq!(judged.wrong(&times(15.0), 0.0, 0.0, 8.0).len(), 7, "too small");
    assert_eq!(judged.wrong(&times(30.0), 0.0, 0.0, 8.0).len(), 7, "too large in all rounds that were not too small");
    assert_eq!(judged.wrong(&times(30.0), 0.0, 8.0, 8.0).len(), 7, "by 9 ms, of which 8 are allowed");
    assert_eq!(judged.wrong(&times(20.5), 0.0, 0.0, 0.0), Vec::<String>::new());
    assert_eq!(judged.wrong(&times(30.0), 0.0, 0.0, 8.0), Vec::<String>::new(), "each was right before");
}

const STEADY: Arrivals = Arrivals { rate: 200, seconds: 2, room: 100 };
const THROUGH_A_STALL: Arrivals = Arrivals { rate: 100, seconds: 5, room: 300 };

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
    judge(Speaks::Http1, HTTP1, stall, Arrivals { rate: 100, seconds: 5, room: 1 });
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
        for (delay, room) in [(FIXED, 200), (BIMODAL, 400), (stall, 2500)] {
            judge(speaks, protocol, delay, Arrivals { rate: 1000, seconds: 10, room });
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
