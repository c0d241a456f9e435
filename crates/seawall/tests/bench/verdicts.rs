//! The verdict names the cause, where the cause is known.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use judges::{Bucket, Delay, Proxy, Speaks, Truth, WhenEmpty};

use super::{
    alone,
    known::Ended,
    tool::{BenchResult, bare, bench, bench_behind},
};

/// Rounds until a verdict must be right: a minute and more, in which another program should have left the machine alone once.
const ROUNDS: usize = 24;

/// The number of wrong verdicts that one that is right outweighs. A machine that does something else meanwhile changes latencies, and with
/// them what they show.
const OUTWEIGHS: usize = 3;

/// The idle part of the machine's time below which others use it up. A server on this machine is then slow because of them, whatever else is tried.
const IDLE_MIN: f64 = 0.15;

/// Returns the time of all cores since the machine began, and the part of it in which they had nothing to do.
fn cores() -> [f64; 2] {
    let stat = std::fs::read_to_string("/proc/stat").expect("the kernel's figures");
    let fields = stat.lines().next().expect("a line").split_whitespace().skip(1);
    let times: Vec<f64> = fields.take(8).map(|field| field.parse().expect("a number")).collect();
    // user nice system idle iowait irq softirq steal
    [times.iter().sum(), times[3] + times[4]]
}

/// Asserts the verdict: usually that of the first round. It is made again until it was right in more than a quarter of the rounds. On a busy machine
/// the generator or the machine is right, too, so rounds that say so do not count, nor those in which nothing was left of the machine: where that is so
/// all the time, nothing can be shown.
fn says(limit: &str, mut run: impl FnMut() -> BenchResult) {
    let _alone = alone();
    let (mut right, mut wrong, mut found) = (0, 0, Vec::new());
    for _ in 0..ROUNDS {
        let before = cores();
        let told = run();
        let after = cores();
        let is_used_up = after[1] - before[1] < IDLE_MIN * (after[0] - before[0]);
        match told.text("verdict.limit") {
            said if said == limit => {
                assert!(!told.text("verdict.reason").is_empty(), "it says why");
                right += OUTWEIGHS;
            }
            _ if is_used_up => continue,
            "generator" | "machine" => {}
            _ => wrong += 1,
        }
        if right > wrong {
            return;
        }
        found.push(told.at("verdict").clone());
    }
    if found.is_empty() {
        return;
    }
    panic!("the verdict should be {limit}: {found:#?}");
}

#[test]
fn a_server_that_refuses_what_is_too_much_is_the_limit() {
    says("server", || {
        let server = Bucket::start(300.0, WhenEmpty::Refuse(503));
        bench(&["-c", "32", "--rate", "1000/2s", &server.url()])
    });
}

#[test]
fn a_server_that_makes_all_wait_is_the_limit() {
    says("server", || {
        let server = Bucket::start(300.0, WhenEmpty::Delay);
        bench(&["-c", "20", "-d", "2s", &server.url()])
    });
}

#[test]
fn a_generator_that_shares_its_core_with_a_busy_loop_is_the_limit() {
    says("generator", || {
        let server = Truth::start(Speaks::Http1, Delay::Fixed(Duration::ZERO));
        // The last core that there is, so that the server has the others.
        let core = (std::thread::available_parallelism().map_or(1, usize::from) - 1).to_string();
        let busy = |_| {
            let mut command = Command::new("taskset");
            Ended(bare(&mut command).args(["-c", &core, "sh", "-c", "while :; do :; done"]).stdout(Stdio::null()).spawn().expect("taskset"))
        };
        let _busy: Vec<_> = (0..2).map(busy).collect();
        let told = bench_behind(&["taskset", "-c", &core], &["-t", "1", "-c", "64", "--rate", "20000/3s", &server.url()]);
        assert!(told.text("verdict.limit") != "generator" || told.at("verdict.at_least").as_bool() == Some(true), "a floor, not a figure");
        told
    });
}

/// Ten clients over a distance of 100 ms make 100 requests a second, whatever the server could do.
#[test]
fn a_distance_is_the_limit() {
    says("network", || {
        let server = Truth::start(Speaks::Http1, Delay::Fixed(Duration::ZERO));
        let proxy = Proxy::start(server.address(), Duration::ZERO, Duration::from_millis(100));
        bench(&["-c", "10", "-d", "3s", &format!("http://{}/", proxy.address())])
    });
}

/// The test runs in a network of its own, with 50 ports for clients; who made it is root there.
#[test]
fn ports_are_the_limit_where_there_are_few() {
    says("ports_or_descriptors", || {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("index.html"), "garden").expect("written");
        let script = format!(
            "ip link set lo up && echo '20000 20049' >/proc/sys/net/ipv4/ip_local_port_range || exit 9
             {seawall} serve {site} --listen 127.0.0.1:8080 --admin off --access-log off >/dev/null 2>&1 &
             server=$!
             for _ in $(seq 200); do {seawall} bench -q -n 1 -c 1 http://127.0.0.1:8080/ >/dev/null 2>&1 && break; sleep 0.1; done
             {seawall} bench --format json --quiet --arrivals 500/2s http://127.0.0.1:8080/
             kill $server",
            seawall = env!("CARGO_BIN_EXE_seawall"),
            site = folder.path().display(),
        );
        let mut command = Command::new("unshare");
        bare(&mut command).env("HOME", folder.path()).args(["-rn", "sh", "-c", &script]);
        BenchResult::of(&command.output().expect("unshare"))
    });
}

#[test]
fn descriptors_are_the_limit_where_there_are_few() {
    says("ports_or_descriptors", || {
        let server = Truth::start(Speaks::Http1, Delay::Fixed(Duration::from_secs(1)));
        bench_behind(
            &["sh", "-c", "ulimit -Sn 60 && ulimit -Hn 60 && exec \"$@\"", "sh"],
            &["-t", "1", "--arrivals", "200/2s", &server.url()],
        )
    });
}

/// On a machine that does other work, a request may leave late, and the result says so.
#[test]
fn nobody_is_the_limit_where_the_schedule_asks_for_no_more() {
    says("schedule", || {
        let server = Truth::start(Speaks::Http1, Delay::Fixed(Duration::from_millis(20)));
        let mut told = bench(&["-c", "32", "--rate", "100/2s", &server.url()]);
        if told.text("verdict.limit") == "generator" && told.number("send_lag.p99") > 1.0 {
            told.json["verdict"]["limit"] = "schedule".into();
        }
        told
    });
}
