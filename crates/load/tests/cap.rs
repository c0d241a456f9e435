//! The permitted load is kept by the engines, whatever the schedule wants: a server counts.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use judges::{Delay, Proxy, Speaks, Truth};
use load::{
    Plan, Protocol, Results, Schedule, Stop,
    find_limit::{Bounds, Range, find_limit},
    permission::CAP,
    plan::Connections,
    requests::{Origin, Request, RequestOptions, RequestSet},
    schedule::{Profile, Spacing},
};

/// Holds what a server has seen.
#[derive(Debug, Default)]
struct Seen {
    requests: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// Starts a server of a page with more pictures than a second has requests, each of which takes its time.
fn server(patience: Duration) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let seen = Arc::<Seen>::default();
    let counts = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counts = Arc::clone(&counts);
            thread::spawn(move || {
                let open = counts.open.fetch_add(1, Ordering::Relaxed) + 1;
                counts.most_open.fetch_max(open, Ordering::Relaxed);
                serve(stream, &counts, patience);
                counts.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    (address, seen)
}

fn serve(mut stream: TcpStream, counts: &Seen, patience: Duration) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut page = "<!DOCTYPE html>".to_owned();
    (0..300).for_each(|n| page.push_str(&format!("<img src=/{n}.png>")));
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        if line.starts_with("GET ") {
            counts.requests.fetch_add(1, Ordering::Relaxed);
        }
        if line == "\r\n" {
            thread::park_timeout(patience);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}", page.len());
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        line.clear();
    }
}

/// Makes a plan under the cap, for so many milliseconds.
fn plan(address: SocketAddr, tls: bool, protocol: Protocol, schedule: Schedule, milliseconds: u64) -> Plan {
    let origin = Origin { tls, host: address.ip().to_string(), port: address.port() };
    let (method, target, fields) = ("GET".to_owned(), "/".to_owned(), Vec::new());
    let request = Request { origin: 0, method, target, fields, body: bytes::Bytes::new(), weight: 1 };
    Plan {
        requests: Arc::new(RequestSet { origins: vec![origin], requests: vec![request], ..RequestSet::default() }),
        schedule,
        protocol,
        stop: Stop { requests: None, after: Some(Duration::from_millis(milliseconds)) },
        connections: Connections { insecure: true, ..Connections::default() },
        timeout: Duration::from_secs(20),
        warm_up: Duration::ZERO,
        workers: 2,
        seed: 0,
        cap: Some(CAP),
    }
}

const HTTP1: Protocol = Protocol::Http1 { pipeline: 1 };

fn closed(clients: f64) -> Schedule {
    Schedule::Closed { clients: Profile::constant(clients, None) }
}

fn even(rate: f64) -> Schedule {
    Schedule::Rate { rate: Profile::constant(rate, None), spacing: Spacing::Even, clients: 1000 }
}

fn arrivals(rate: f64) -> Schedule {
    Schedule::Arrivals { rate: Profile::constant(rate, None), spacing: Spacing::Even }
}

fn schedules() -> [(&'static str, Schedule); 3] {
    [("closed", closed(200.0)), ("rate", even(2000.0)), ("arrivals", arrivals(2000.0))]
}

/// The most requests of a second and a half, with the few that may leave at once.
const MOST: usize = 150 + 10;

fn run(plan: &Plan) -> Results {
    load::run(plan, &mut ()).expect("the plan can be run")
}

#[test]
fn every_schedule_keeps_to_a_hundred_requests_a_second_and_uses_them() {
    for (name, schedule) in schedules() {
        for protocol in [HTTP1, Protocol::Http1 { pipeline: 16 }] {
            let (address, seen) = server(Duration::ZERO);
            run(&plan(address, false, protocol, schedule.clone(), 1500));
            let (requests, open) = (seen.requests.load(Ordering::Relaxed), seen.most_open.load(Ordering::Relaxed));
            assert!((100..=MOST).contains(&requests), "{name}, {protocol:?}: {requests} requests");
            // The server's threads notice later than the client that a connection is closed.
            assert!(open <= 60, "{name}, {protocol:?}: {open} connections");
        }
        for (speaks, protocol) in [
            (Speaks::Http2, Protocol::Http2 { streams: 8 }),
            (Speaks::Http2Tls, Protocol::Http2 { streams: 1 }),
            (Speaks::Http3, Protocol::Http3 { streams: 8 }),
        ] {
            let server = Truth::start(speaks, Delay::Fixed(Duration::ZERO));
            run(&plan(server.address(), speaks != Speaks::Http2, protocol, schedule.clone(), 1500));
            let requests = usize::try_from(server.requests()).expect("few");
            assert!((100..=MOST).contains(&requests), "{name}, {speaks:?}: {requests} requests");
        }
    }
}

#[test]
fn a_slow_server_has_no_more_than_fifty_connections() {
    for (name, schedule) in schedules() {
        let (address, seen) = server(Duration::from_secs(5));
        run(&plan(address, false, HTTP1, schedule.clone(), 1500));
        let open = seen.most_open.load(Ordering::Relaxed);
        assert!((40..=50).contains(&open), "{name}: {open} connections");
        let server = Truth::start(Speaks::Http2, Delay::Fixed(Duration::from_secs(5)));
        let proxy = Proxy::start(server.address(), Duration::ZERO, Duration::ZERO);
        run(&plan(proxy.address(), false, Protocol::Http2 { streams: 1 }, schedule, 1500));
        assert!((40..=50).contains(&proxy.connections()), "{name}: {} connections", proxy.connections());
    }
}

#[test]
fn parts_of_pages_count_as_requests() {
    let (address, seen) = server(Duration::ZERO);
    let asking = RequestOptions { urls: vec![format!("http://{address}/")], page: true, run: 1, ..RequestOptions::default() };
    let set = Arc::new(asking.set().expect("a URL"));
    for schedule in [closed(20.0), arrivals(2.0), even(2.0)] {
        seen.requests.store(0, Ordering::Relaxed);
        run(&Plan { requests: Arc::clone(&set), ..plan(address, false, HTTP1, schedule.clone(), 1500) });
        let requests = seen.requests.load(Ordering::Relaxed);
        assert!((100..=MOST).contains(&requests), "{schedule:?}: {requests} requests");
    }
    assert!(seen.most_open.load(Ordering::Relaxed) <= 50);
}

#[test]
fn the_search_for_the_limit_keeps_to_the_cap() {
    let (address, seen) = server(Duration::ZERO);
    let range = Range { hold: Duration::from_secs(2), ..Range::default() };
    let began = std::time::Instant::now();
    let plan = Plan { stop: Stop::default(), ..plan(address, false, HTTP1, closed(1.0), 0) };
    let found = find_limit(&plan, Spacing::Even, Bounds::default(), range, &mut ()).expect("it can be searched");
    let seconds = began.elapsed().as_secs_f64();
    let requests = seen.requests.load(Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "few")]
    let rate = requests as f64 / seconds;
    assert!(rate <= 110.0, "{rate}: {:?}", found.0.rate);
    // The server may notice the end of a step's connections when those of the next step are there.
    let open = seen.most_open.load(Ordering::Relaxed);
    assert!(open <= 100, "{open}");
}

#[test]
fn what_the_cap_delays_counts_from_its_intended_moment() {
    for (speaks, protocol) in [(Speaks::Http1, HTTP1), (Speaks::Http2, Protocol::Http2 { streams: 8 })] {
        let server = Truth::start(speaks, Delay::Fixed(Duration::ZERO));
        // At twice the rate, the last of 150 requests was due after 0.75 s, and leaves after 1.5 s.
        let ordered = Plan { stop: Stop { requests: Some(150), after: None }, ..plan(server.address(), false, protocol, even(200.0), 0) };
        let found = run(&ordered);
        assert_eq!((found.answered, server.requests()), (150, 150));
        assert!(found.latency.max >= 500.0, "{speaks:?}: {:?}", found.latency);
        // Half of them were answered at once; on a busy machine, not all are.
        assert!(found.latency_uncorrected.p50 < 100.0, "{speaks:?}: {:?}", found.latency_uncorrected);
    }
}
