//! HTTP/1.1 against servers that are scripted byte by byte: framing, errors, connections, TLS.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use load::{
    Plan, Protocol, Results, Schedule, Stop, Watch,
    plan::Connections,
    record::ErrorClass,
    requests::{Origin, Request, RequestSet},
    results::Second,
    schedule::{Profile, Spacing},
};

/// A server that does with each connection what its script says. It ends with the process.
struct Scripted {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    /// Starts a server. `script` is given the number of each connection, from 0, and the connection.
    fn start(script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (counting, script) = (Arc::clone(&connections), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let number = counting.fetch_add(1, Ordering::SeqCst);
                let (stream, script) = (stream.expect("a connection"), Arc::clone(&script));
                stream.set_nodelay(true).expect("a socket");
                thread::spawn(move || script(number, stream));
            }
        });
        Self { address, connections }
    }

    /// Starts a server that answers each request with these bytes, and closes the connection after it if `closes`.
    fn answering(answer: &'static [u8], closes: bool) -> Self {
        Self::start(move |_, stream| {
            let mut stream = BufReader::new(stream);
            while request(&mut stream).is_some() && stream.get_mut().write_all(answer).is_ok() && !closes {}
        })
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads a request with its content: the lines of its head; none at the end of the connection.
fn request(stream: &mut BufReader<impl Read>) -> Option<Vec<String>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        head.push(line);
    }
    let length = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(|length| length.trim().parse()));
    let mut content = vec![0; length.unwrap_or(Ok(0)).expect("a length")];
    stream.read_exact(&mut content).ok()?;
    Some(head)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn get(target: &str) -> Request {
    Request { origin: 0, method: "GET".to_owned(), target: target.to_owned(), fields: Vec::new(), body: Bytes::new(), weight: 1 }
}

/// Makes a plan of `requests` requests by `clients` that stay.
fn plan(address: SocketAddr, clients: u32, requests: u64) -> Plan {
    let origin = Origin { tls: false, host: address.ip().to_string(), port: address.port() };
    Plan {
        requests: Arc::new(RequestSet { origins: vec![origin], requests: vec![get("/")], ..RequestSet::default() }),
        schedule: Schedule::Closed { clients: Profile::constant(f64::from(clients), None) },
        protocol: Protocol::Http1 { pipeline: 1 },
        stop: Stop { requests: Some(requests), after: None },
        connections: Connections::default(),
        timeout: Duration::from_secs(20),
        warm_up: Duration::ZERO,
        workers: 1,
        seed: 0,
        cap: None,
    }
}

fn with_request(mut plan: Plan, change: impl FnOnce(&mut Request)) -> Plan {
    change(&mut Arc::make_mut(&mut plan.requests).requests[0]);
    plan
}

fn with_connections(mut plan: Plan, change: impl FnOnce(&mut Connections)) -> Plan {
    change(&mut plan.connections);
    plan
}

fn run(plan: &Plan) -> Results {
    load::run(plan, &mut ()).expect("the plan can be run")
}

/// Returns the failures that occurred.
fn errors(results: &Results) -> BTreeMap<ErrorClass, u64> {
    results.errors.iter().filter(|(_, count)| **count > 0).map(|(class, count)| (*class, *count)).collect()
}

/// Returns the failures of a run in which nothing failed.
fn none() -> BTreeMap<ErrorClass, u64> {
    BTreeMap::new()
}

// Framing: RFC 9112 §6.

/// Each form of an answer is read to its end and no further, however it is cut: the next answer on the connection begins there.
#[test]
fn every_framing_is_read_to_its_end_in_one_piece_and_byte_by_byte() {
    let forms: [(&str, u16, &'static [u8]); 15] = [
        ("GET", 200, b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"),
        ("GET", 200, OK),
        ("GET", 200, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("GET", 200, b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"),
        ("GET", 200, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        ("GET", 200, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        (
            "GET",
            200,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b;c\"\r\nhel\r\n02\r\nlo\r\n0\r\nDigest: x\r\nA: b\r\n\r\n",
        ),
        // Chunks decide: a length beside them does not count (§6.3).
        ("GET", 200, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("GET", 404, b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"),
        ("GET", 204, b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", 304, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n"),
        ("HEAD", 200, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("HEAD", 200, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (
            "GET",
            200,
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        ),
        ("GET", 200, b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"),
    ];
    for (method, status, answer) in forms {
        for piece in [answer.len(), 1, 7] {
            let server = Scripted::start(move |_, stream| {
                let mut stream = BufReader::new(stream);
                while request(&mut stream).is_some() {
                    answer.chunks(piece).for_each(|piece| stream.get_mut().write_all(piece).expect("the client reads"));
                }
            });
            let found = run(&with_request(plan(server.address, 1, 3), |request| method.clone_into(&mut request.method)));
            let said = format!("{method}, in pieces of {piece}: {:?}", String::from_utf8_lossy(answer));
            assert_eq!((found.answered, found.bytes, server.connections()), (3, 3 * answer.len() as u64, 1), "{said}");
            assert_eq!(found.statuses, BTreeMap::from([(status, 3)]), "{said}");
        }
    }
}

#[test]
fn an_answer_that_ends_a_connection_is_whole_and_the_next_request_makes_another() {
    let forms: [&'static [u8]; 4] = [
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nhello",
    ];
    for answer in forms {
        let server = Scripted::answering(answer, true);
        let found = run(&plan(server.address, 1, 4));
        let said = String::from_utf8_lossy(answer);
        assert_eq!((found.answered, found.bytes, errors(&found)), (4, 4 * answer.len() as u64, none()), "{said:?}");
        assert_eq!((server.connections(), found.connect.count), (4, 4), "{said:?}");
    }
}

#[test]
fn what_comes_behind_an_answer_ends_the_connection_and_is_no_answer_to_the_next_request() {
    let server =
        Scripted::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", false);
    let found = run(&plan(server.address, 1, 3));
    assert_eq!(found.requests, 3);
    assert_eq!(found.statuses.get(&500), None, "nobody has asked for it");
}

// Errors.

#[test]
fn every_failure_has_its_class() {
    use ErrorClass::{Protocol, Reset, Timeout, Truncated};
    let whole: &'static [u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    let cases: [(ErrorClass, &'static [u8]); 10] = [
        (Reset, b""),
        (Truncated, b"HTTP/1.1 200 OK\r\nConte"),
        (Truncated, whole),
        (Truncated, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        (Protocol, b"SSH-2.0-OpenSSH_9.2\r\n"),
        (Protocol, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        (Protocol, b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"),
        (Protocol, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello"),
        (Protocol, b"HTTP/2 200 OK\r\n\r\n"),
        (Timeout, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel"),
    ];
    for (class, answer) in cases {
        let server = Scripted::start(move |_, stream| {
            let mut stream = BufReader::new(stream);
            if request(&mut stream).is_some() {
                let _ = stream.get_mut().write_all(answer);
                if class == Timeout {
                    // The client hangs up.
                    let _ = request(&mut stream);
                }
            }
        });
        let found = run(&Plan { timeout: Duration::from_millis(200), ..plan(server.address, 2, 6) });
        assert_eq!((found.requests, errors(&found)), (6, BTreeMap::from([(class, 6)])), "{:?}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn a_connection_that_is_reset_before_within_and_after_an_answer_is_told_apart() {
    for (sent, class) in [(&b""[..], Some(ErrorClass::Reset)), (&OK[..20], Some(ErrorClass::Truncated)), (OK, None)] {
        let server = Scripted::start(move |_, stream| {
            let mut stream = BufReader::new(stream);
            if request(&mut stream).is_some() {
                let _ = stream.get_mut().write_all(sent);
                // The client's next request is not read; or it has been waited for, and comes to nobody.
                let _ = rustix::net::sockopt::set_socket_linger(stream.get_ref(), Some(Duration::ZERO));
            }
        });
        // Once each, so that nothing but what was sent decides.
        let found = run(&plan(server.address, 1, 1));
        assert_eq!(errors(&found), class.map(|class| (class, 1)).into_iter().collect(), "{sent:?}");
    }
}

#[test]
fn a_socket_that_is_not_there_is_no_connection() {
    let plan = with_connections(plan(SocketAddr::from(([127, 0, 0, 1], 80)), 1, 3), |connections| {
        connections.unix = Some("/nonexistent/socket".into());
    });
    let found = run(&plan);
    assert_eq!(errors(&found), BTreeMap::from([(ErrorClass::Connect, 3)]));
    // It rests for 10 ms and then for 20.
    assert!(found.duration >= 0.03, "{}", found.duration);
}

#[test]
fn a_client_that_is_refused_rests_longer_and_longer() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("an address");
    let found = run(&Plan { stop: Stop { requests: None, after: Some(Duration::from_millis(300)) }, ..plan(closed, 1, 0) });
    // At 0, 10, 30, 70 and 150 ms, and then at 310.
    assert!((1..=5).contains(&found.requests), "{}", found.requests);
    assert_eq!(errors(&found), BTreeMap::from([(ErrorClass::Refused, found.requests)]));
}

#[test]
fn a_timeout_is_in_the_distribution_with_its_time() {
    let server = Scripted::start(|_, stream| {
        let _ = request(&mut BufReader::new(&stream));
        let _ = (&stream).read(&mut [0]);
    });
    let found = run(&Plan { timeout: Duration::from_millis(150), ..plan(server.address, 3, 6) });
    assert_eq!(errors(&found), BTreeMap::from([(ErrorClass::Timeout, 6)]));
    assert_eq!(found.latency.count, 6);
    // The connection is part of the time; it takes no milliseconds.
    assert!((149.0..200.0).contains(&found.latency.min), "{:?}", found.latency);
}

// Connections.

#[test]
fn a_pipeline_sends_all_its_requests_before_the_first_answer() {
    let server = Scripted::start(|_, stream| {
        let mut stream = BufReader::new(stream);
        loop {
            for _ in 0..4 {
                if request(&mut stream).is_none() {
                    return;
                }
            }
            for status in [200, 201, 202, 203] {
                let answer = format!("HTTP/1.1 {status} Yes\r\nContent-Length: 2\r\n\r\nhi");
                stream.get_mut().write_all(answer.as_bytes()).expect("the client reads");
            }
        }
    });
    // Four by four, so that the server never waits for a fourth that does not come.
    let found = run(&Plan { protocol: Protocol::Http1 { pipeline: 4 }, ..plan(server.address, 1, 4) });
    assert_eq!(found.statuses, BTreeMap::from([(200, 1), (201, 1), (202, 1), (203, 1)]));
    assert_eq!(server.connections(), 1);
}

/// RFC 9112 §9.3.2: requests that follow one after which the server closes were not processed, and are made again.
#[test]
fn requests_in_a_pipeline_behind_the_last_answer_are_sent_again() {
    let server = Scripted::answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", true);
    let found = run(&Plan { protocol: Protocol::Http1 { pipeline: 8 }, ..plan(server.address, 1, 40) });
    assert_eq!((found.answered, errors(&found)), (40, none()));
    assert!(found.generator.resent > 0);
}

#[test]
fn a_request_that_meets_a_server_closing_an_idle_connection_is_sent_again_and_is_no_error() {
    // The first connection answers once, and is closed when the second request comes, two thirds of a second later.
    let server = Scripted::start(|number, stream| {
        let mut stream = BufReader::new(stream);
        while request(&mut stream).is_some() {
            stream.get_mut().write_all(OK).expect("the client reads");
            if number == 0 {
                let _ = request(&mut stream);
                return;
            }
        }
    });
    let rate = Profile::constant(1.5, Some(Duration::from_millis(1200)));
    let schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 1 };
    let found = run(&Plan { schedule, stop: Stop::default(), ..plan(server.address, 1, 0) });
    assert_eq!((found.answered, errors(&found), found.generator.resent), (2, none(), 1));
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_request_that_comes_to_nothing_twice_is_an_error() {
    let server = Scripted::start(|number, stream| {
        let mut stream = BufReader::new(stream);
        if number == 0 && request(&mut stream).is_some() {
            stream.get_mut().write_all(OK).expect("the client reads");
        }
        let _ = request(&mut stream);
    });
    let rate = Profile::constant(1.5, Some(Duration::from_millis(1200)));
    let schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 1 };
    let found = run(&Plan { schedule, stop: Stop::default(), ..plan(server.address, 1, 0) });
    assert_eq!((found.requests, found.answered, errors(&found)), (2, 1, BTreeMap::from([(ErrorClass::Reset, 1)])));
}

#[test]
fn without_keep_alive_every_request_says_so_and_has_a_connection_of_its_own() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    // It does not close: the client does.
    let server = Scripted::start(move |_, stream| {
        let mut stream = BufReader::new(stream);
        while let Some(head) = request(&mut stream) {
            seen.lock().expect("no panic").push(head);
            stream.get_mut().write_all(OK).expect("the client reads");
        }
    });
    let found = run(&with_connections(plan(server.address, 3, 12), |connections| connections.no_keepalive = true));
    assert_eq!((found.answered, found.connect.count, server.connections(), errors(&found)), (12, 12, 12, none()));
    assert!(heads.lock().expect("no panic").iter().all(|head| head.contains(&"Connection: close".to_owned())));
}

#[test]
fn a_number_of_requests_is_made_exactly_by_several_workers() {
    let server = Scripted::answering(OK, false);
    for (clients, workers) in [(1, 1), (7, 2), (7, 3), (2, 8)] {
        let found = run(&Plan { workers, ..plan(server.address, clients, 101) });
        assert_eq!((found.requests, found.answered), (101, 101), "{clients} clients, {workers} workers");
    }
}

#[test]
fn every_arrival_has_a_connection_of_its_own() {
    let server = Scripted::answering(OK, false);
    let rate = Profile::constant(100.0, Some(Duration::from_millis(200)));
    let schedule = Schedule::Arrivals { rate, spacing: Spacing::Even };
    let found = run(&Plan { schedule, stop: Stop::default(), workers: 2, ..plan(server.address, 1, 0) });
    assert_eq!((found.answered, found.connect.count, server.connections()), (20, 20, 20));
    // The last one comes at 190 ms, and is answered at once. The schedule is over at 200.
    assert!(found.duration >= 0.2 && found.rate <= 100.0, "{} a second for {} s", found.rate, found.duration);
}

#[test]
fn clients_that_leave_let_go_of_their_connections() {
    let gone = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&gone);
    let server = Scripted::start(move |_, stream| {
        let mut stream = BufReader::new(stream);
        while request(&mut stream).is_some() && stream.get_mut().write_all(OK).is_ok() {}
        counting.fetch_add(1, Ordering::SeqCst);
    });
    let schedule = Schedule::Closed { clients: Profile::ramp(3.0, 0.0, Duration::from_millis(150)) };
    let found = run(&Plan { schedule, stop: Stop::default(), ..plan(server.address, 1, 0) });
    assert_eq!((found.clients, server.connections(), errors(&found)), (3, 3, none()));
}

#[test]
fn a_socket_of_the_system_is_asked_like_a_port() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            thread::spawn(move || while request(&mut stream).is_some() && stream.get_mut().write_all(OK).is_ok() {});
        }
    });
    let plan = with_connections(plan(SocketAddr::from(([127, 0, 0, 1], 80)), 2, 10), |connections| connections.unix = Some(path));
    let found = run(&plan);
    assert_eq!((found.answered, found.connect.count, errors(&found)), (10, 2, none()));
}

#[test]
fn connections_come_from_their_sources_in_turns() {
    let peers = Arc::new(Mutex::new(BTreeMap::<IpAddr, usize>::new()));
    let seen = Arc::clone(&peers);
    let server = Scripted::start(move |_, stream| {
        *seen.lock().expect("no panic").entry(stream.peer_addr().expect("a peer").ip()).or_default() += 1;
        let mut stream = BufReader::new(stream);
        while request(&mut stream).is_some() && stream.get_mut().write_all(OK).is_ok() {}
    });
    let sources: Vec<IpAddr> = (1..=3).map(|last| IpAddr::from([127, 0, 1, last])).collect();
    let plan = with_connections(plan(server.address, 2, 30), |connections| {
        connections.sources.clone_from(&sources);
        connections.no_keepalive = true;
    });
    let found = run(&plan);
    assert_eq!((found.answered, errors(&found)), (30, none()));
    assert_eq!(*peers.lock().expect("no panic"), sources.into_iter().map(|source| (source, 10)).collect());
}

#[test]
fn an_address_that_is_not_ours_is_said_before_anything_is_sent() {
    let server = Scripted::answering(OK, false);
    let plan = with_connections(plan(server.address, 1, 2), |connections| connections.sources = vec![IpAddr::from([192, 0, 2, 1])]);
    let why = load::run(&plan, &mut ()).expect_err("it is of a network for examples").to_string();
    assert!(why.contains("192.0.2.1"), "{why}");
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_long_content_is_sent_whole_though_the_server_takes_it_slowly() {
    let length = 8 << 20;
    let server = Scripted::start(move |_, stream| {
        let mut stream = BufReader::new(stream);
        while let Some(head) = request(&mut stream) {
            assert!(head.contains(&format!("Content-Length: {length}")), "{head:?}");
            stream.get_mut().write_all(OK).expect("the client reads");
        }
    });
    let plan = with_request(plan(server.address, 1, 3), |request| {
        "POST".clone_into(&mut request.method);
        request.body = vec![b'a'; length].into();
    });
    let found = run(&plan);
    assert_eq!((found.answered, server.connections(), errors(&found)), (3, 1, none()));
}

/// A content of 64 MB is read in many turns; nothing of it is lost, and the next request follows it.
#[test]
fn a_long_answer_is_read_to_its_end_in_turns_with_the_others() {
    let length = 64 << 20;
    let server = Scripted::start(move |_, stream| {
        let mut stream = BufReader::new(stream);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let piece = vec![b'a'; 1 << 20];
        while request(&mut stream).is_some() {
            stream.get_mut().write_all(head.as_bytes()).expect("the client reads");
            (0..64).for_each(|_| stream.get_mut().write_all(&piece).expect("the client reads"));
        }
    });
    let found = run(&plan(server.address, 2, 4));
    assert_eq!((found.answered, server.connections(), errors(&found)), (4, 2, none()));
    assert!(found.bytes > 4 * length);
}

// The end of a run.

#[test]
fn requests_under_way_at_the_end_are_unfinished_and_those_never_sent_are_missed() {
    let server = Scripted::start(|_, stream| {
        let mut stream = BufReader::new(stream);
        while request(&mut stream).is_some() {}
    });
    // 20 are due, two are under way, and 18 wait for a connection.
    let rate = Profile::constant(100.0, Some(Duration::from_millis(200)));
    let schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 2 };
    let stop = Stop { requests: None, after: Some(Duration::from_millis(250)) };
    let found = run(&Plan { schedule, stop, ..plan(server.address, 1, 0) });
    assert_eq!((found.requests, found.missed, errors(&found)), (2, 18, BTreeMap::from([(ErrorClass::Unfinished, 2)])));
    assert!((0.25..0.26).contains(&found.duration), "{}", found.duration);
}

/// Stops a run as soon as it is asked.
struct StopsAtOnce;

impl Watch for StopsAtOnce {
    fn second(&mut self, _: &Second) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }

    fn stops(&mut self) -> bool {
        true
    }
}

#[test]
fn a_run_that_is_stopped_ends_at_once_though_nobody_answers() {
    let server = Scripted::start(|_, stream| {
        let mut stream = BufReader::new(stream);
        while request(&mut stream).is_some() {}
    });
    let found = load::run(&plan(server.address, 2, 5), &mut StopsAtOnce).expect("the plan can be run");
    assert_eq!((found.requests, errors(&found)), (0, none()));
    assert!(found.duration < 1.0, "{}", found.duration);
}

// TLS.

/// Starts a server that speaks TLS, answers each request, and closes as TLS does. `answer` is whole or not.
fn secured(answer: &'static [u8], says_goodbye: bool) -> Scripted {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("a certificate");
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a key");
    let config = Arc::new(config);
    Scripted::start(move |_, stream| {
        let tls = rustls::ServerConnection::new(Arc::clone(&config)).expect("a configuration");
        let mut stream = BufReader::new(rustls::StreamOwned::new(tls, stream));
        while request(&mut stream).is_some() {
            stream.get_mut().write_all(answer).expect("the client reads");
            if answer != OK {
                break;
            }
        }
        let stream = stream.get_mut();
        if says_goodbye {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let _ = stream.sock.shutdown(Shutdown::Write);
        let _ = stream.sock.read(&mut [0]);
    })
}

fn over_tls(plan: Plan) -> Plan {
    let mut plan = with_connections(plan, |connections| connections.insecure = true);
    Arc::make_mut(&mut plan.requests).origins[0].tls = true;
    plan
}

#[test]
fn over_tls_a_connection_is_kept_and_its_handshake_is_counted() {
    let server = secured(OK, true);
    let found = run(&over_tls(plan(server.address, 3, 30)));
    assert_eq!((found.answered, errors(&found)), (30, none()));
    assert_eq!((found.connect.count, found.handshake.count, server.connections()), (3, 3, 3));
    assert!(found.connect.min >= found.handshake.min, "the handshake is part of it");
}

#[test]
fn handshakes_resume_a_session_as_often_as_the_plan_says() {
    for (share, resumed) in [(0.0, 0), (1.0, 9)] {
        let server = secured(OK, true);
        let plan = with_connections(over_tls(plan(server.address, 1, 10)), |connections| {
            connections.no_keepalive = true;
            connections.resumed = share;
        });
        let found = run(&plan);
        assert_eq!((found.answered, found.handshake.count, found.resumed), (10, 10, resumed), "{share}");
    }
}

#[test]
fn an_answer_that_ends_with_its_connection_is_whole_only_if_tls_says_so() {
    let answer = b"HTTP/1.1 200 OK\r\n\r\nhello";
    let whole = run(&over_tls(plan(secured(answer, true).address, 1, 3)));
    assert_eq!((whole.answered, errors(&whole)), (3, none()));
    let cut = run(&over_tls(plan(secured(answer, false).address, 1, 3)));
    assert_eq!((cut.answered, errors(&cut)), (0, BTreeMap::from([(ErrorClass::Truncated, 3)])));
}

#[test]
fn a_certificate_that_nobody_has_signed_and_a_server_without_tls_fail_in_the_handshake() {
    let signed_by_itself = secured(OK, true);
    let plain = Scripted::start(|_, mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read(&mut [0; 4096]);
    });
    let ca = tempfile::NamedTempFile::new().expect("a file");
    let other = rcgen::generate_simple_self_signed(["other.example".to_owned()]).expect("a certificate");
    std::fs::write(ca.path(), other.cert.pem()).expect("written");
    for address in [signed_by_itself.address, plain.address] {
        let plan = with_connections(over_tls(plan(address, 1, 3)), |connections| {
            connections.insecure = false;
            connections.ca = Some(ca.path().to_owned());
        });
        assert_eq!(errors(&run(&plan)), BTreeMap::from([(ErrorClass::Tls, 3)]));
    }
}

// The end of a timed run.

/// Answers the first `answered` requests, and then reads on and says nothing.
fn falls_silent(answered: usize) -> (Scripted, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&seen);
    let server = Scripted::start(move |_, stream| {
        let mut stream = BufReader::new(stream);
        while request(&mut stream).is_some() {
            if counting.fetch_add(1, Ordering::SeqCst) < answered {
                stream.get_mut().write_all(OK).expect("the client reads");
            }
        }
    });
    (server, seen)
}

fn timed(plan: Plan, milliseconds: u64) -> Plan {
    Plan { stop: Stop { requests: None, after: Some(Duration::from_millis(milliseconds)) }, ..plan }
}

fn rate(per_second: f64, clients: u32) -> Schedule {
    Schedule::Rate { rate: Profile::constant(per_second, None), clients, spacing: Spacing::Even }
}

#[test]
fn what_a_server_that_fell_silent_has_not_answered_at_the_end_of_an_open_run_is_unfinished_and_in_the_distribution() {
    let (server, seen) = falls_silent(20);
    let found = run(&Plan { schedule: rate(100.0, 200), ..timed(plan(server.address, 1, 0), 600) });
    let all = seen.load(Ordering::SeqCst) as u64;
    assert_eq!((found.requests + found.missed, found.requests, found.answered), (60, all, 20));
    assert_eq!(errors(&found), BTreeMap::from([(ErrorClass::Unfinished, all - 20)]));
    assert_eq!(found.latency.count, all);
    // The first that was not answered was due after 200 ms of 600, and then waited for a quarter of a second.
    assert!(found.latency.max >= 600.0 && found.latency.p50 >= 250.0, "{:?}", found.latency);
    assert_eq!(found.duration, 0.6, "the time that requests get to end is not part of the run");
    assert_eq!(found.seconds.iter().map(|second| second.requests).sum::<u64>(), all);
}

#[test]
fn a_client_that_got_nothing_in_a_closed_run_has_an_unfinished_request() {
    let (server, seen) = falls_silent(0);
    let found = run(&timed(plan(server.address, 3, 0), 200));
    assert_eq!((found.requests, seen.load(Ordering::SeqCst)), (3, 3));
    assert_eq!(errors(&found), BTreeMap::from([(ErrorClass::Unfinished, 3)]));
}

#[test]
fn what_is_answered_soon_after_the_end_of_a_run_counts_as_answered_and_every_request_that_the_server_saw_is_counted() {
    for schedule in [Schedule::Closed { clients: Profile::constant(4.0, None) }, rate(100.0, 50)] {
        let seen = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&seen);
        let server = Scripted::start(move |_, stream| {
            let mut stream = BufReader::new(stream);
            while request(&mut stream).is_some() {
                counting.fetch_add(1, Ordering::SeqCst);
                thread::park_timeout(Duration::from_millis(70));
                stream.get_mut().write_all(OK).expect("the client reads");
            }
        });
        let found = run(&Plan { schedule: schedule.clone(), ..timed(plan(server.address, 4, 0), 300) });
        assert_eq!((found.answered, errors(&found)), (seen.load(Ordering::SeqCst) as u64, none()), "{schedule:?}");
        assert_eq!(found.duration, 0.3);
    }
}

#[test]
fn a_connection_that_was_not_made_by_the_end_of_a_run_is_an_unfinished_request() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let origin = listener.local_addr().expect("an address");
    let mut plan = timed(plan(origin, 2, 0), 150);
    let set = Arc::make_mut(&mut plan.requests);
    // Nobody shakes hands.
    set.origins[0].tls = true;
    plan.connections.insecure = true;
    assert_eq!(errors(&run(&plan)), BTreeMap::from([(ErrorClass::Unfinished, 2)]));
}

#[test]
fn bytes_of_answers_that_were_cut_short_are_counted() {
    let cut = &b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello"[..];
    for closes in [true, false] {
        let server = Scripted::answering(cut, closes);
        let found = run(&Plan { timeout: Duration::from_millis(150), ..plan(server.address, 1, 2) });
        assert_eq!((found.requests, found.answered, found.bytes), (2, 0, 2 * cut.len() as u64), "closes: {closes}");
    }
}

#[test]
fn a_connection_that_the_server_closed_with_its_answer_takes_no_other_request() {
    let server = Scripted::start(|_, stream| {
        // Answer and end leave in one segment.
        let mut stream = BufReader::new(stream);
        request(&mut stream);
        let socket = stream.get_mut();
        rustix::net::sockopt::set_tcp_cork(&*socket, true).expect("a socket");
        socket.write_all(OK).expect("the client reads");
        socket.shutdown(Shutdown::Write).expect("it is open");
        let _ = stream.read(&mut [0; 100]);
    });
    let found = run(&plan(server.address, 1, 50));
    assert_eq!((found.answered, errors(&found), server.connections()), (50, none(), 50));
}

#[test]
fn lengths_that_are_none_and_an_upgrade_that_nobody_asked_for_are_not_http() {
    let broken: [&'static [u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\nhello",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ];
    for answer in broken {
        let server = Scripted::answering(answer, false);
        let found = run(&plan(server.address, 1, 2));
        assert_eq!(errors(&found), BTreeMap::from([(ErrorClass::Protocol, 2)]), "{:?}", String::from_utf8_lossy(answer));
    }
}
