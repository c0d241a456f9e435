use super::{shown::RunFigures, *};
use crate::{
    engine::WorkerSeen,
    record::ErrorClass,
    results::{Kind, Run, Second, Times},
};

/// Makes a quiet run: 50 clients that stay, 10 s, 10,000/s, whose load tester and machine had enough of everything.
fn run() -> (Results, Observations) {
    let verdict = Verdict { limit: Limit::Server, at_least: false, reason: String::new(), hint: None };
    let mut results = Results::new(Run::default(), std::time::Duration::from_secs(10), &crate::record::Tally::new(), Vec::new(), verdict);
    results.requests = 100_000;
    results.answered = 100_000;
    results.rate = 10_000.0;
    results.good = 100_000;
    results.good_rate = 10_000.0;
    results.clients = 50;
    results.connect = Times { count: 50, min: 0.08, p50: 0.1, ..Times::default() };
    results.latency = Times { count: 100_000, min: 0.2, p50: 4.0, mean: 5.0, p99: 20.0, ..Times::default() };
    let seen = Observations {
        cpu_seconds: 3.0,
        workers: vec![WorkerSeen { wall: 10.0, cpu: 3.0, waiting: 0.1, ..WorkerSeen::default() }],
        cpus: 4,
        machine_idle_share: 0.4,
        descriptors_max: 1024,
        targets: vec!["192.168.1.5:80".to_owned()],
        ..Observations::default()
    };
    (results, seen)
}

fn rows(medians: &[f64]) -> Vec<Second> {
    let row = |(second, p50): (u64, &f64)| Second {
        second,
        requests: 100,
        answered: 100,
        latency: Times { count: 100, p50: *p50, ..Times::default() },
        ..Second::default()
    };
    (0..).zip(medians).map(row).collect()
}

/// Gives some requests a status that is an error.
fn refuse(results: &mut Results, status: u16, requests: u64) {
    results.good = results.requests - requests;
    results.good_rate = results.rate * results.good as f64 / results.requests as f64;
    results.statuses = [(200, results.good), (status, requests)].into();
    results.errors.insert(ErrorClass::Status, requests);
}

/// A cause, what it does to a run, the verdict, whether the figure is a lower bound, and what the reason must name.
type Case = (&'static str, fn(&mut Results, &mut Observations), Limit, bool, &'static [&'static str]);

const CASES: &[Case] = &[
    ("a server that works", |_, _| {}, Limit::Server, false, &["200 µs", "4.00 ms", "69.0 %"]),
    (
        "a server on the same cores",
        |_, seen| {
            seen.targets = vec!["127.0.0.1:80".to_owned()];
            seen.machine_idle_share = 0.02;
            seen.cpu_seconds = 5.0;
        },
        Limit::Server,
        true,
        &["ran on this machine, and no CPU was left", "12.5 %"],
    ),
    (
        "a server on a machine that somebody else uses up",
        |_, seen| {
            seen.targets = vec!["127.0.0.1:80".to_owned()];
            seen.machine_idle_share = 0.02;
            seen.cpu_seconds = 1.0;
        },
        Limit::Server,
        false,
        &["set the pace"],
    ),
    (
        "a server that refuses while the load tester is late",
        |results, _| {
            results.run.open = true;
            results.send_lag = Times { count: 100_000, p50: 0.05, p99: 14.0, ..Times::default() };
            refuse(results, 503, 60_000);
        },
        Limit::Server,
        false,
        &["60.0 %", "503"],
    ),
    (
        "a server on the same machine that has cores left",
        |_, seen| seen.targets = vec!["[::1]:80".to_owned(), "/run/seawall.sock".to_owned()],
        Limit::Server,
        false,
        &["set the pace"],
    ),
    (
        "a gateway whose server is down",
        |results, _| refuse(results, 502, 100_000),
        Limit::Unknown,
        false,
        &["None of the 100,000 requests"],
    ),
    (
        "a token bucket that refuses",
        |results, _| {
            refuse(results, 429, 60_000);
        },
        Limit::Server,
        false,
        &["60.0 %", "429", "4,000/s"],
    ),
    (
        "a server that refuses while the load tester uses its core",
        |results, seen| {
            refuse(results, 503, 99_590);
            seen.workers[0].cpu = 9.7;
            seen.targets = vec!["127.0.0.1:80".to_owned()];
            seen.machine_idle_share = 0.02;
            seen.cpu_seconds = 9.7;
        },
        Limit::Server,
        false,
        &["99.59 %", "503", "41.0/s"],
    ),
    (
        "a server that refuses, far away",
        |results, _| {
            refuse(results, 429, 60_000);
            results.connect = Times { count: 50, min: 40.0, p50: 40.0, ..Times::default() };
            results.latency = Times { count: 100_000, min: 40.1, p50: 40.4, mean: 50.5, p99: 52.0, ..Times::default() };
        },
        Limit::Server,
        false,
        &["60.0 %", "429"],
    ),
    ("a proxy whose origin fails", |results, _| refuse(results, 502, 30_000), Limit::Server, false, &["30.0 %", "502"]),
    (
        "a server that refuses as it is expected to",
        |results, _| results.statuses = [(503, 100_000)].into(),
        Limit::Server,
        false,
        &["set the pace"],
    ),
    (
        "an address where nothing is",
        |results, seen| {
            refuse(results, 404, 100_000);
            seen.workers[0].cpu = 9.7;
        },
        Limit::Unknown,
        false,
        &["None of the 100,000 requests was answered without an error"],
    ),
    (
        "a token bucket that delays clients that stay",
        |results, seen| {
            results.rate = 200.0;
            results.requests = 2_000;
            results.latency = Times { count: 2_000, min: 1.1, p50: 250.0, mean: 248.0, p99: 251.0, ..Times::default() };
            seen.workers[0].cpu = 0.02;
            seen.targets = vec!["127.0.0.1:80".to_owned()];
            seen.machine_idle_share = 0.97;
        },
        Limit::Server,
        false,
        &["1.10 ms", "250 ms"],
    ),
    (
        "a token bucket that delays a rate",
        |results, _| {
            results.run.open = true;
            results.run.kind = Kind::Rate;
            results.seconds = rows(&[50.0, 150.0, 250.0, 350.0, 450.0, 550.0, 640.0]);
        },
        Limit::Server,
        false,
        &["grew from 100 ms to 500 ms"],
    ),
    (
        "a rate with connections that all wait",
        |results, _| {
            results.run.open = true;
            results.missed = 20_000;
        },
        Limit::Server,
        false,
        &["16.7 %", "50 clients"],
    ),
    (
        "a rate that is answered too late",
        |results, _| {
            results.run.open = true;
            results.errors.insert(ErrorClass::Timeout, 5_000);
        },
        Limit::Server,
        false,
        &["5.0 %", "in time"],
    ),
    (
        "a server that refuses connections",
        |results, _| {
            results.errors.insert(ErrorClass::Refused, 50_000);
            results.good = 50_000;
        },
        Limit::Server,
        false,
        &["50.0 %", "refused or reset"],
    ),
    (
        "a server that refuses a few, and was gone for most",
        |results, _| {
            refuse(results, 503, 10_000);
            results.errors.insert(ErrorClass::Refused, 60_000);
            results.errors.insert(ErrorClass::Reset, 1_000);
            results.errors.insert(ErrorClass::Timeout, 19_000);
            results.good = 10_000;
            results.good_rate = 1_000.0;
        },
        Limit::Server,
        false,
        &[
            "90.0 % of the requests were not answered well: 10.0 % were answered with 503, 61.0 % found their connection refused or reset, 19.0 % were \
             not answered in time. The server answered 1,000/s of the others.",
        ],
    ),
    (
        "a rate whose requests were never sent, or not answered in time",
        |results, _| {
            results.run.open = true;
            results.errors.insert(ErrorClass::Timeout, 5_000);
            results.good = 95_000;
            results.missed = 100_000;
        },
        Limit::Server,
        false,
        &["52.5 % of the requests were not answered well: 2.5 % were not answered in time, 50.0 % were never sent"],
    ),
    (
        "clients that stay, whose answers are often cut short",
        |results, _| {
            results.errors.insert(ErrorClass::Truncated, 40_000);
            results.good = 60_000;
        },
        Limit::Server,
        false,
        &["set the pace", "40.0 % of the requests were not answered well."],
    ),
    (
        "a server that keeps up with a rate",
        |results, _| {
            results.run.open = true;
            results.send_lag = Times { count: 100_000, p50: 0.05, p99: 0.4, ..Times::default() };
            results.seconds = rows(&[4.0, 5.0, 4.0, 3.0, 5.0, 6.0, 5.0]);
        },
        Limit::Schedule,
        true,
        &["All 100,000 requests were answered, as fast as the schedule asked", "10,000/s", "20.0 ms"],
    ),
    (
        "a few arrivals, some of which left late",
        |results, _| {
            results.run.open = true;
            (results.requests, results.good, results.answered, results.rate) = (15, 15, 15, 1.5);
            results.latency.p99 = 8.0;
            results.send_lag = Times { count: 15, p50: 0.1, p99: 4.0, max: 6.0, ..Times::default() };
        },
        Limit::Schedule,
        true,
        &[
            "All 15 requests were answered, as fast as the schedule asked",
            "This machine was busy",
            "up to 6.00 ms of the load tester's own lateness",
        ],
    ),
    (
        "a rate with a pause in which some requests found no connection",
        |results, _| {
            results.run.open = true;
            results.missed = 200;
        },
        Limit::Schedule,
        true,
        &["kept up", "200 of the 100,200 requests that were due were never sent"],
    ),
    (
        "one client",
        |results, _| {
            results.clients = 1;
            results.latency.mean = 0.1;
        },
        Limit::Schedule,
        true,
        &["100 µs", "10,000/s"],
    ),
    (
        "a worker that uses its core",
        |_, seen| seen.workers.push(WorkerSeen { wall: 10.0, cpu: 9.6, waiting: 0.0, ..WorkerSeen::default() }),
        Limit::Generator,
        true,
        &["96.0 %"],
    ),
    (
        "a worker whose core a busy loop has",
        |_, seen| seen.workers[0] = WorkerSeen { wall: 10.0, cpu: 4.9, waiting: 5.0, ..WorkerSeen::default() },
        Limit::Generator,
        true,
        &["waited for a core for 50.0 % of the time"],
    ),
    (
        "a worker that the server leaves no core",
        |_, seen| {
            seen.workers[0] = WorkerSeen { wall: 10.0, cpu: 4.9, waiting: 5.0, ..WorkerSeen::default() };
            seen.targets = vec!["127.0.0.1:80".to_owned()];
            seen.machine_idle_share = 0.02;
            seen.cpu_seconds = 4.9;
        },
        Limit::Generator,
        true,
        &["ran on this machine, and no CPU was left"],
    ),
    (
        "a rate that a busy loop delays",
        |results, seen| {
            results.run.open = true;
            results.send_lag = Times { count: 100_000, p50: 12.0, p99: 140.0, ..Times::default() };
            seen.workers[0] = WorkerSeen { wall: 10.0, cpu: 2.0, waiting: 2.0, ..WorkerSeen::default() };
        },
        Limit::Generator,
        true,
        &["half of the requests", "12.0 ms"],
    ),
    (
        "lateness that is a large part of the latency",
        |results, _| {
            results.run.open = true;
            results.latency.p99 = 4.0;
            results.send_lag = Times { count: 100_000, p50: 0.05, p99: 2.0, max: 3.0, ..Times::default() };
        },
        Limit::Schedule,
        true,
        &["up to 3.00 ms of the load tester's own lateness"],
    ),
    (
        "a proxy that delays each answer",
        |results, _| {
            results.rate = 990.0;
            results.latency = Times { count: 10_000, min: 50.1, p50: 50.4, mean: 50.5, p99: 52.0, ..Times::default() };
        },
        Limit::Network,
        true,
        &["50.1 ms", "50 clients", "990/s"],
    ),
    (
        "a distance that connections show",
        |results, _| {
            results.rate = 990.0;
            (results.connect.min, results.connect.p50) = (39.0, 40.0);
            results.latency = Times { count: 10_000, min: 0.2, p50: 50.4, mean: 50.5, p99: 152.0, ..Times::default() };
        },
        Limit::Network,
        true,
        &["39.0 ms", "50.4 ms"],
    ),
    (
        "a server that is asked by 200 clients at once, and accepts them one after the other",
        |results, seen| {
            results.clients = 200;
            results.connect = Times { count: 200, min: 0.3, p50: 40.0, ..Times::default() };
            results.latency = Times { count: 100_000, min: 0.2, p50: 12.0, mean: 13.0, p99: 52.0, ..Times::default() };
            seen.targets = vec!["127.0.0.1:80".to_owned()];
        },
        Limit::Server,
        false,
        &["set the pace"],
    ),
    (
        "a server that uses up the cores of this machine, and whose answers all wait equally long",
        |results, seen| {
            results.latency = Times { count: 100_000, min: 10.0, p50: 12.0, mean: 13.0, p99: 14.0, ..Times::default() };
            seen.targets = vec!["127.0.0.1:80".to_owned()];
            seen.machine_idle_share = 0.02;
            seen.cpu_seconds = 5.0;
        },
        Limit::Server,
        true,
        &["no CPU was left"],
    ),
    (
        "a proxy on this machine that delays each answer",
        |results, seen| {
            results.rate = 990.0;
            results.latency = Times { count: 10_000, min: 50.1, p50: 50.4, mean: 50.5, p99: 52.0, ..Times::default() };
            seen.targets = vec!["127.0.0.1:80".to_owned()];
        },
        Limit::Network,
        true,
        &["50.1 ms"],
    ),
    (
        "twenty requests",
        |results, seen| {
            (results.requests, results.good, results.duration) = (20, 20, 0.0057);
            seen.workers[0].cpu = 9.7;
        },
        Limit::Unknown,
        false,
        &["Too short for a verdict: 20 requests in 5.70 ms."],
    ),
    (
        "thousands of requests in a moment",
        |results, _| (results.requests, results.good, results.duration) = (5_000, 5_000, 0.2),
        Limit::Unknown,
        false,
        &["5,000 requests in 200 ms"],
    ),
    (
        "a short round after its warm-up",
        |results, _| (results.requests, results.good, results.duration, results.warm_up.seconds) = (300, 300, 0.3, 0.1),
        Limit::Server,
        false,
        &["set the pace"],
    ),
    (
        "twenty requests that are refused",
        |results, _| {
            (results.requests, results.duration) = (20, 0.005);
            refuse(results, 503, 20);
        },
        Limit::Server,
        false,
        &["100 %", "503"],
    ),
    (
        "a run in which no request has ended",
        |results, _| (results.requests, results.good, results.answered) = (0, 0, 0),
        Limit::Unknown,
        false,
        &["No request has ended."],
    ),
    (
        "a small range of ports",
        |results, seen| {
            results.connect.count = 900;
            results.errors.insert(ErrorClass::Connect, 5_000);
            seen.ports_exhausted = 5_000;
        },
        Limit::PortsOrDescriptors,
        true,
        &["5,000 connections", "no port", "900 were made"],
    ),
    (
        "a small range of ports, and a server that refuses",
        |results, seen| {
            refuse(results, 503, 20_000);
            results.connect.count = 900;
            results.errors.insert(ErrorClass::Connect, 5_000);
            results.good = 75_000;
            seen.ports_exhausted = 5_000;
        },
        Limit::PortsOrDescriptors,
        true,
        &[
            "5,000 connections",
            "no port",
            "25.0 % of the requests were not answered well: 20.0 % were answered with 503, 5.0 % found no port or descriptor free.",
        ],
    ),
    (
        "clients that stay, some of whom were not answered in time",
        |results, _| {
            results.errors.insert(ErrorClass::Timeout, 5_000);
            results.good = 95_000;
        },
        Limit::Server,
        false,
        &["set the pace", "5.0 % of the requests were not answered in time."],
    ),
    (
        "a rate whose requests found no connection because the server was gone",
        |results, _| {
            results.run.open = true;
            results.errors.insert(ErrorClass::Refused, 50_000);
            results.good = 50_000;
            results.missed = 100_000;
        },
        Limit::Server,
        false,
        &[
            "75.0 % of the requests were not answered well: 25.0 % found their connection refused or reset, 50.0 % were never sent, because no \
           connection was free (of 50 clients).",
        ],
    ),
    (
        "a server that was gone for nearly all",
        |results, _| {
            results.errors.insert(ErrorClass::Refused, 99_960);
            results.good = 40;
        },
        Limit::Server,
        false,
        &["99.96 % of the requests found their connection refused or reset by the server."],
    ),
    (
        "a low limit of descriptors",
        |results, seen| {
            results.connect.count = 1_000;
            results.errors.insert(ErrorClass::Connect, 300);
            seen.descriptors_exhausted = 300;
        },
        Limit::PortsOrDescriptors,
        true,
        &["300 connections", "1,024 open files"],
    ),
    ("a host that takes the CPU", |_, seen| seen.steal_share = 0.12, Limit::Machine, true, &["12.0 %"]),
    ("a clock that jumps", |_, seen| seen.clock_jump = -3.5, Limit::Machine, true, &["3.5 s"]),
];

#[test]
fn each_cause_has_its_verdict_and_names_its_evidence() {
    for (cause, change, limit, at_least, named) in CASES {
        let (mut results, mut seen) = run();
        change(&mut results, &mut seen);
        let verdict = judge(&results, &seen);
        assert_eq!((verdict.limit, verdict.at_least), (*limit, *at_least), "{cause}: {}", verdict.reason);
        for part in *named {
            assert!(verdict.reason.contains(part), "{cause}: {part:?} is not in {:?}", verdict.reason);
        }
    }
}

#[test]
fn what_was_never_sent_is_told_once() {
    let (mut results, seen) = run();
    results.run.open = true;
    results.errors.insert(ErrorClass::Truncated, 600);
    (results.good, results.missed) = (99_400, 600);
    let verdict = judge(&results, &seen);
    // 1,200 of 100,600 are 1.19 %, and 600 are 0.596 %.
    let told = "1.2 % of the requests were not answered well: 0.60 % were never sent, because no connection was free (of 50 clients), 0.60 % failed \
                otherwise.";
    assert!(verdict.limit == Limit::Schedule && verdict.reason.ends_with(told), "{verdict:?}");
    assert_eq!(verdict.reason.matches("never sent").count(), 1, "{}", verdict.reason);
}

#[test]
fn ports_that_ran_out_are_told_once() {
    let (mut results, mut seen) = run();
    results.connect.count = 900;
    results.errors.insert(ErrorClass::Connect, 5_000);
    seen.ports_exhausted = 5_000;
    let verdict = judge(&results, &seen);
    assert!(verdict.reason.ends_with("A port rests for a minute after its connection was closed."), "{verdict:?}");
}

#[test]
fn what_ran_out_here_comes_before_what_it_leads_to() {
    let (mut results, mut seen) = run();
    results.run.open = true;
    results.missed = 50_000;
    seen.ports_exhausted = 50_000;
    seen.workers[0].cpu = 9.9;
    assert_eq!(judge(&results, &seen).limit, Limit::PortsOrDescriptors);
    seen.ports_exhausted = 0;
    assert_eq!(judge(&results, &seen).limit, Limit::Generator);
}

#[test]
fn the_last_second_of_a_run_says_nothing_about_growth() {
    let (mut results, seen) = run();
    results.seconds = rows(&[4.0, 4.0, 4.0, 400.0]);
    assert_eq!(RunFigures::new(&results, &seen).begin_end, Some((4.0, 4.0)));
    results.warm_up.seconds = 2.0;
    assert_eq!(RunFigures::new(&results, &seen).begin_end, None);
}
