//! HTTP/2 against servers that are scripted frame by frame (RFC 9113): what the client sends, and as what each misbehaviour is counted.

mod streams;

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use load::{
    Plan, Protocol, Schedule,
    record::ErrorClass,
    schedule::{Profile, ReplayedLine, Spacing},
};
use streams::{clients, errors, get, origin, plan, requests, run, time};

const ONE_AT_A_TIME: Protocol = Protocol::Http2 { streams: 1 };

/// Says what a server does with a request.
enum Act {
    /// It writes these bytes.
    Write(Vec<u8>),
    /// It writes these bytes, and closes the connection.
    Close(Vec<u8>),
    /// It answers when nothing more comes, together with what else came by then.
    Hold,
}

/// Holds what a server has seen.
#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    requests: AtomicU64,
    /// The most requests that waited on one connection.
    held: AtomicU64,
    body: AtomicU64,
    /// The addresses that connections came from.
    sources: Mutex<Vec<IpAddr>>,
}

impl Seen {
    fn connections(&self) -> u64 {
        self.connections.load(SeqCst)
    }

    fn requests(&self) -> u64 {
        self.requests.load(SeqCst)
    }
}

/// Starts a server that does as `script` says: of which number the request is on the server, of which on its connection, and on which stream.
fn serve(script: impl Fn(u64, u64, u32) -> Act + Send + Sync + 'static) -> (SocketAddr, Arc<Seen>) {
    serve_with(&frame(4, 0, 0, &[]), script)
}

fn serve_with(settings: &[u8], script: impl Fn(u64, u64, u32) -> Act + Send + Sync + 'static) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let seen = Arc::<Seen>::default();
    let (script, to_see, settings) = (Arc::new(script), Arc::clone(&seen), settings.to_vec());
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (script, seen, settings) = (Arc::clone(&script), Arc::clone(&to_see), settings.clone());
            seen.connections.fetch_add(1, SeqCst);
            seen.sources.lock().expect("nobody panics").extend(socket.peer_addr().map(|address| address.ip()));
            thread::spawn(move || speak(socket, &settings, &seen, &*script));
        }
    });
    (address, seen)
}

/// Speaks to one client until it is gone, or the script says so.
fn speak(mut socket: TcpStream, settings: &[u8], seen: &Seen, script: &dyn Fn(u64, u64, u32) -> Act) -> Option<()> {
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).ok()?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write_all(settings).ok()?;
    let (mut held, mut nth) = (Vec::new(), 0);
    loop {
        let mut header = [0; 9];
        // A quiet moment: nothing more will come before there are answers.
        socket.set_read_timeout((!held.is_empty()).then_some(Duration::from_millis(2))).ok()?;
        match socket.read(&mut header[..1]) {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let answers: Vec<u8> = held.drain(..).flat_map(|stream| ok(stream, 10)).collect();
                socket.write_all(&answers).ok()?;
                continue;
            }
            _ => return None,
        }
        socket.set_read_timeout(None).ok()?;
        socket.read_exact(&mut header[1..]).ok()?;
        let mut payload = vec![0; usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2])];
        socket.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        match (header[3], header[4] & 1) {
            (4, 0) => socket.write_all(&frame(4, 1, 0, &[])).ok()?,
            (0, is_end) => {
                seen.body.fetch_add(payload.len() as u64, SeqCst);
                // Room for what has come, on the connection and on the stream.
                let more = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
                socket.write_all(&[frame(8, 0, 0, &more), frame(8, 0, stream, &more)].concat()).ok()?;
                if is_end == 1 {
                    socket.write_all(&ok(stream, 10)).ok()?;
                }
            }
            (1, 1) => {
                let number = seen.requests.fetch_add(1, SeqCst);
                match script(number, nth, stream) {
                    Act::Write(bytes) => socket.write_all(&bytes).ok()?,
                    Act::Close(bytes) => return socket.write_all(&bytes).ok(),
                    Act::Hold => {
                        held.push(stream);
                        seen.held.fetch_max(held.len() as u64, SeqCst);
                    }
                }
                nth += 1;
            }
            _ => {}
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns a head: `:status: 200`, and further fields.
fn head(flags: u8, stream: u32, fields: &[u8]) -> Vec<u8> {
    frame(1, flags, stream, &[&[0x88], fields].concat())
}

/// Returns a whole answer of so many bytes.
fn ok(stream: u32, length: usize) -> Vec<u8> {
    [head(4, stream, &[]), frame(0, 1, stream, &vec![b'x'; length])].concat()
}

/// `content-length: 9`, which stands in no table.
const LENGTH_9: &[u8] = &[0x0f, 0x0d, 1, b'9'];

const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
const CANCEL: [u8; 4] = [0, 0, 0, 8];

fn goaway(last: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

#[test]
fn exactly_as_many_requests_are_made_as_asked_for_and_never_more_at_a_time_than_streams() {
    let (address, seen) = serve(|_, _, _| Act::Hold);
    let mut plan = plan(Protocol::Http2 { streams: 4 }, false, address);
    (plan.schedule, plan.stop, plan.workers) = (clients(3), requests(1003), 2);
    let results = run(&plan);
    assert_eq!((results.requests, results.answered, errors(&results)), (1003, 1003, vec![]));
    assert_eq!((seen.requests(), seen.connections(), seen.held.load(SeqCst)), (1003, 3, 4));
    assert_eq!(results.clients, 3);
}

#[test]
fn a_server_that_takes_fewer_streams_gets_fewer() {
    // SETTINGS_MAX_CONCURRENT_STREAMS: 2. The first requests may be sent before it is read, so one is sent alone: the answer comes behind it.
    let settings = frame(4, 0, 0, &[0, 3, 0, 0, 0, 2]);
    let (address, seen) = serve_with(&settings, |_, nth, stream| if nth < 8 { Act::Write(ok(stream, 1)) } else { Act::Hold });
    let mut plan = plan(Protocol::Http2 { streams: 8 }, false, address);
    plan.stop = requests(100);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.held.load(SeqCst)), (100, vec![], 2));
}

#[test]
fn streams_that_a_goaway_leaves_out_are_asked_again_on_a_new_connection() {
    // Each connection answers its first 10 requests, and says with the tenth that it was the last.
    let (address, seen) = serve(|_, nth, stream| match nth {
        0..9 => Act::Write(ok(stream, 10)),
        9 => Act::Write([goaway(stream), ok(stream, 10)].concat()),
        _ => Act::Write(vec![]),
    });
    let mut plan = plan(Protocol::Http2 { streams: 3 }, false, address);
    plan.stop = requests(100);
    let results = run(&plan);
    assert_eq!((results.requests, results.answered, errors(&results)), (100, 100, vec![]));
    assert_eq!(seen.connections(), 10);
}

#[test]
fn a_refused_stream_is_asked_again_once() {
    let refuse = |stream| Act::Write(frame(3, 0, stream, &REFUSED_STREAM));
    let (address, seen) = serve(move |number, _, stream| if number % 2 == 0 { refuse(stream) } else { Act::Write(ok(stream, 10)) });
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    plan.stop = requests(20);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.requests()), (20, vec![], 40));

    let (address, seen) = serve(move |_, _, stream| refuse(stream));
    let mut plan = streams::plan(ONE_AT_A_TIME, false, address);
    plan.stop = requests(20);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.requests()), (0, vec![(ErrorClass::Reset, 20)], 40));
}

#[test]
fn each_misbehaviour_is_counted_in_its_class() {
    let reset = |stream| frame(3, 0, stream, &CANCEL);
    let (address, seen) = serve(move |number, _, stream| match number % 10 {
        0 => Act::Write(reset(stream)),
        1 => Act::Close(vec![]),
        2 => Act::Write([head(4, stream, &[]), frame(0, 0, stream, b"part"), reset(stream)].concat()),
        3 => Act::Close([head(4, stream, &[]), frame(0, 0, stream, b"part")].concat()),
        4 => Act::Write([head(4, stream, LENGTH_9), frame(0, 1, stream, b"short")].concat()),
        5 => Act::Close(vec![0xff; 20]),
        // Content without a head.
        6 => Act::Write(frame(0, 1, stream, b"content")),
        7 => Act::Write(vec![]),
        // `:status: 404`, by its index.
        8 => Act::Write(frame(1, 5, stream, &[0x8d])),
        _ => Act::Write(ok(stream, 10)),
    });
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    (plan.stop, plan.timeout) = (requests(50), Duration::from_millis(150));
    let results = run(&plan);
    let expected = [
        (ErrorClass::Reset, 10),
        (ErrorClass::Timeout, 5),
        (ErrorClass::Truncated, 15),
        (ErrorClass::Protocol, 10),
        (ErrorClass::Status, 5),
    ];
    assert_eq!((errors(&results), results.requests, results.answered, seen.requests()), (expected.to_vec(), 50, 10, 50));
    // Timeouts stay in the distribution, with the time that they took.
    assert!((150.0..160.0).contains(&results.latency.max), "{} ms", results.latency.max);
}

#[test]
fn an_answer_is_understood_in_whatever_frames_it_comes() {
    let forms: [fn(u32) -> Vec<u8>; 7] = [
        long,
        // Its fields in three frames, and nothing in it.
        |stream| {
            let [first, second, third] =
                [frame(1, 1, stream, &[0x88]), frame(9, 0, stream, &LENGTH_0[..2]), frame(9, 4, stream, &LENGTH_0[2..])];
            [first, second, third].concat()
        },
        // Padding around a head with a priority, and around content; then only padding.
        |stream| {
            let head = frame(1, 0x2c, stream, &[&[3, 0, 0, 0, 0, 9][..], &[0x88], LENGTH_9, &[0; 3]].concat());
            let content = frame(0, 8, stream, b"\x02123456789\0\0");
            [head, content, frame(0, 9, stream, &[4, 0, 0, 0, 0])].concat()
        },
        // Early hints (103), then the answer, whose end is an empty frame.
        |stream| {
            let hints = frame(1, 4, stream, &[0x08, 3, b'1', b'0', b'3']);
            [hints, head(4, stream, LENGTH_9), frame(0, 0, stream, b"123456789"), frame(0, 1, stream, &[])].concat()
        },
        // Trailers.
        |stream| [head(4, stream, &[]), frame(0, 0, stream, b"content"), frame(1, 5, stream, &[0, 1, b'a', 1, b'b'])].concat(),
        // Frames of later versions, a ping, and settings in between.
        |stream| {
            [frame(0xfb, 0, 0, b"?"), head(4, stream, &[]), frame(6, 0, 0, &[7; 8]), frame(4, 0, 0, &[]), frame(0, 1, stream, b"!")]
                .concat()
        },
        // A field that enters the table, and is used from there.
        |stream| head(5, stream, &[0x40, 1, b'a', 1, b'b', 0xbe]),
    ];
    let count = forms.len() as u64;
    let (address, _) = serve(move |number, _, stream| Act::Write(forms[usize::try_from(number % count).expect("small")](stream)));
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    plan.stop = requests(4 * count);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results)), (4 * count, vec![]));
}

/// `content-length: 0`, as a literal without a table.
const LENGTH_0: &[u8] = &[0x0f, 0x0d, 1, b'0'];

/// Returns an answer in several frames, of which the first ones are full.
fn long(stream: u32) -> Vec<u8> {
    let full = frame(0, 0, stream, &[b'x'; 16_384]);
    [head(4, stream, &[]), full.clone(), full, frame(0, 1, stream, b"end")].concat()
}

#[test]
fn content_is_sent_as_fast_as_the_server_makes_room() {
    // The window is 65,535 bytes at first (§6.9.2), and this server gives back what it has read.
    let (address, seen) = serve(|_, _, _| Act::Write(vec![]));
    let mut plan = plan(Protocol::Http2 { streams: 2 }, false, address);
    plan.stop = requests(6);
    let set = Arc::make_mut(&mut plan.requests);
    (set.requests[0].method, set.requests[0].body) = ("POST".to_owned(), vec![b'x'; 200_000].into());
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.body.load(SeqCst)), (6, vec![], 1_200_000));
}

#[test]
fn what_is_under_way_at_the_end_of_the_time_is_unfinished() {
    let (address, seen) = serve(|_, _, _| Act::Write(vec![]));
    let mut plan = plan(Protocol::Http2 { streams: 5 }, false, address);
    plan.stop = time(200);
    let results = run(&plan);
    assert_eq!((results.requests, errors(&results), seen.requests()), (5, vec![(ErrorClass::Unfinished, 5)], 5));
    assert!((0.2..1.0).contains(&results.duration), "{} s", results.duration);
}

#[test]
fn who_is_refused_waits_longer_each_time() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("its address");
    let mut plan = plan(ONE_AT_A_TIME, false, closed);
    plan.stop = requests(5);
    let began = Instant::now();
    let results = run(&plan);
    assert_eq!((results.requests, errors(&results)), (5, vec![(ErrorClass::Refused, 5)]));
    // 10, 20, 40 and 80 ms lie between five attempts.
    assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
}

#[test]
fn each_visitor_who_arrives_has_a_connection_of_its_own() {
    let (address, seen) = serve(|_, _, stream| Act::Write(ok(stream, 10)));
    let mut plan = plan(Protocol::Http2 { streams: 10 }, false, address);
    plan.schedule = Schedule::Arrivals { rate: Profile::constant(200.0, Some(Duration::from_millis(300))), spacing: Spacing::Even };
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.connections(), seen.requests()), (60, vec![], 60, 60));
    assert_eq!((results.connect.count, results.missed), (60, 0));
}

#[test]
fn a_rate_is_kept_with_as_few_connections_as_are_needed_and_no_more_than_allowed() {
    let (address, seen) = serve(|_, _, stream| Act::Write(ok(stream, 10)));
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    let rate = Profile::constant(200.0, Some(Duration::from_millis(500)));
    plan.schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 4 };
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), results.missed), (100, vec![], 0));
    assert!((1..=4).contains(&seen.connections()), "{} connections", seen.connections());
    // The first request is due at once, the last one after 495 ms.
    assert!((0.495..1.5).contains(&results.duration), "{} s", results.duration);
}

#[test]
fn requests_that_found_no_connection_before_the_end_are_missed() {
    let (address, _) = serve(|_, _, _| Act::Write(vec![]));
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    plan.schedule = Schedule::Rate { rate: Profile::constant(100.0, None), spacing: Spacing::Even, clients: 3 };
    plan.stop = time(195);
    let results = run(&plan);
    // 20 were due, 3 were sent and got no answer.
    assert_eq!((results.requests, results.missed, errors(&results)), (3, 17, vec![(ErrorClass::Unfinished, 3)]));
}

#[test]
fn clients_come_along_a_ramp_and_those_that_came_last_leave_first() {
    let (address, seen) = serve(|_, _, stream| Act::Write(ok(stream, 10)));
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    plan.schedule = Schedule::Closed { clients: Profile::ramp(0.0, 4.0, Duration::from_millis(200)) };
    plan.stop = time(300);
    let results = run(&plan);
    assert_eq!((results.clients, seen.connections(), errors(&results)), (4, 4, vec![]));
}

#[test]
fn a_log_is_replayed_by_its_visitors_against_the_origins_of_its_requests() {
    let [(first, of_first), (second, of_second)] = [(); 2].map(|()| serve(|_, _, stream| Act::Write(ok(stream, 10))));
    let mut plan = plan(Protocol::Http2 { streams: 4 }, false, first);
    let set = Arc::make_mut(&mut plan.requests);
    set.origins.push(origin(false, second));
    set.requests.push(get(1, "/other"));
    let moment = |at, request, visitor| ReplayedLine { at: Duration::from_millis(at), request, visitor };
    let moments = [moment(0, 0, 7), moment(5, 1, 7), moment(10, 0, 8), moment(90, 0, 7), moment(100, 0, 8)];
    plan.schedule = Schedule::Replay { moments: moments.into() };
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results)), (5, vec![]));
    assert_eq!((of_first.requests(), of_first.connections()), (4, 2));
    assert_eq!((of_second.requests(), of_second.connections()), (1, 1));
}

#[test]
fn a_request_that_came_too_late_for_an_idle_connection_is_sent_again() {
    // Each connection is closed when its second request comes, half a second after the first or more: that is what a server does to idle ones.
    let (address, seen) = serve(|_, nth, stream| if nth == 0 { Act::Write(ok(stream, 10)) } else { Act::Close(vec![]) });
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    let rate = Profile::constant(1.0 / 0.6, Some(Duration::from_millis(1700)));
    plan.schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 1 };
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results)), (3, vec![]));
    assert_eq!((seen.connections(), seen.requests()), (3, 5));
}

#[test]
fn connections_come_from_the_addresses_of_the_plan_in_turns() {
    let (address, seen) = serve(|_, _, stream| Act::Write(ok(stream, 10)));
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    plan.connections.sources = vec![[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
    (plan.stop, plan.schedule) = (requests(40), clients(4));
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results)), (40, vec![]));
    let mut sources = seen.sources.lock().expect("nobody panics").clone();
    sources.sort_unstable();
    assert_eq!(sources, [[127, 0, 0, 2], [127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 3]].map(IpAddr::from));
}

#[test]
fn a_server_on_a_socket_of_the_system_is_asked_there() {
    let (address, seen) = serve(|_, _, stream| Act::Write(ok(stream, 10)));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a new socket");
    // What comes there is handed on.
    thread::spawn(move || {
        for mut there in listener.incoming().flatten() {
            let mut here = TcpStream::connect(address).expect("the server listens");
            let (mut from_here, mut to_there) = (here.try_clone().expect("a descriptor"), there.try_clone().expect("a descriptor"));
            thread::spawn(move || std::io::copy(&mut there, &mut here));
            thread::spawn(move || std::io::copy(&mut from_here, &mut to_there));
        }
    });
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut plan = plan(Protocol::Http2 { streams: 3 }, false, nobody);
    (plan.stop, plan.connections.unix) = (requests(100), Some(path));
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.requests()), (100, vec![], 100));
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    let (address, seen) = serve(|_, _, stream| Act::Write(ok(stream, 10)));
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    (plan.stop, plan.connections.no_keepalive, plan.schedule) = (requests(30), true, clients(2));
    let results = run(&plan);
    assert_eq!((results.answered, seen.connections(), seen.requests()), (30, 30, 30));
}

#[test]
fn a_server_that_speaks_http1_alone_is_named_and_not_measured() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            let _ = socket.read(&mut [0; 100]);
        }
    });
    let mut plan = plan(ONE_AT_A_TIME, false, address);
    plan.stop = time(5000);
    let error = load::run(&plan, &mut ()).expect_err("there is no HTTP/2");
    assert_eq!(error.to_string(), format!("http://{address} does not speak HTTP/2 without TLS: it answers with HTTP/1"));
}

/// Over TLS, with the crate `h2` as the server.
mod secure {
    use load::{permission::Permission, plan::Connections, prepare::prepare, requests::RequestOptions};
    use rustls::{HandshakeKind, ServerConfig, crypto::aws_lc_rs};
    use rustls_pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    fn config(alpn: &[&[u8]]) -> Arc<ServerConfig> {
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let chain = vec![CertificateDer::from(key.cert.der().to_vec())];
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::try_from(key.signing_key.serialize_der()).expect("a key"))
            .expect("they fit");
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// Starts a server, and returns how many sessions were resumed and how many were new.
    fn serve(alpn: &[&[u8]]) -> (SocketAddr, Arc<[AtomicU64; 2]>) {
        let acceptor = TlsAcceptor::from(config(alpn));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let handshakes = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let seen = Arc::clone(&handshakes);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, async move {
                listener.set_nonblocking(true).expect("a socket");
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((socket, _)) = listener.accept().await {
                    let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                    tokio::task::spawn_local(async move {
                        let Ok(stream) = acceptor.accept(socket).await else { return };
                        let is_new = stream.get_ref().1.handshake_kind() != Some(HandshakeKind::Resumed);
                        seen[usize::from(is_new)].fetch_add(1, SeqCst);
                        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                        while let Some(Ok((request, mut respond))) = connection.accept().await {
                            let is_page = request.uri().path() == "/page";
                            let (kind, content): (_, &[u8]) = if is_page { ("text/html", PAGE) } else { ("image/png", &[b'x'; 8192]) };
                            let head = http::Response::builder().header("content-type", kind).body(()).expect("a head");
                            let mut body = respond.send_response(head, false).expect("the client is there");
                            body.send_data(bytes::Bytes::from_static(content), true).expect("the client is there");
                        }
                    });
                }
            });
        });
        (address, handshakes)
    }

    const PAGE: &[u8] = b"<!doctype html><link rel=icon href=/e.png><link rel=stylesheet href=/a.css><script src=/b.js></script><img src=/c.png><img src=/d.png>";

    #[test]
    fn a_page_and_all_that_belongs_to_it_come_over_one_connection() {
        let (address, handshakes) = serve(&[b"h2"]);
        let asking = RequestOptions { page: true, urls: vec![format!("https://{address}/page")], run: 1, ..RequestOptions::default() };
        let connections = Connections { insecure: true, ..Connections::default() };
        let prepared = prepare(&asking, None, &connections, &Permission::default()).expect("loopback is permitted");
        let mut plan = plan(Protocol::Http2 { streams: 10 }, true, address);
        plan.requests = Arc::new(prepared.requests);
        plan.schedule = Schedule::Arrivals { rate: Profile::constant(50.0, Some(Duration::from_millis(100))), spacing: Spacing::Even };
        let results = run(&plan);
        // Five visitors, and for each the page and its five parts.
        assert_eq!((results.answered, errors(&results), results.page.count), (30, vec![], 5));
        assert_eq!(handshakes.iter().map(|count| count.load(SeqCst)).sum::<u64>(), 5);
    }

    #[test]
    fn http2_is_chosen_by_alpn_and_counts_are_exact() {
        let (address, _) = serve(&[b"h2", b"http/1.1"]);
        let mut plan = plan(Protocol::Http2 { streams: 10 }, true, address);
        (plan.schedule, plan.stop) = (clients(4), requests(1000));
        let results = run(&plan);
        assert_eq!((results.answered, errors(&results)), (1000, vec![]));
        assert_eq!((results.connect.count, results.handshake.count), (4, 4));
        assert!(results.bytes >= 1000 * (8192 + 2 * 9), "{} bytes", results.bytes);
    }

    #[test]
    fn a_server_that_does_not_offer_http2_is_named_and_not_measured() {
        for alpn in [&[b"http/1.1".as_slice()][..], &[]] {
            let (address, _) = serve(alpn);
            let mut plan = plan(ONE_AT_A_TIME, true, address);
            plan.stop = time(5000);
            let error = load::run(&plan, &mut ()).expect_err("there is no HTTP/2");
            assert_eq!(error.to_string(), format!("https://{address} does not offer HTTP/2 (h2 by ALPN): ask it with HTTP/1.1"));
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_an_error_of_tls() {
        let (address, _) = serve(&[b"h2"]);
        let mut plan = plan(ONE_AT_A_TIME, true, address);
        (plan.stop, plan.connections.insecure) = (requests(3), false);
        let ca = tempfile::NamedTempFile::new().expect("a file");
        let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        std::fs::write(ca.path(), other.cert.pem()).expect("written");
        plan.connections.ca = Some(ca.path().to_owned());
        let results = run(&plan);
        assert_eq!((results.requests, errors(&results)), (3, vec![(ErrorClass::Tls, 3)]));
    }

    #[test]
    fn the_share_of_connections_that_resume_is_as_the_plan_says() {
        // Connections come one after the other. Every second one may resume; the first of those has nothing to resume yet.
        for (share, resumed, new) in [(0.0, 0, 20), (0.5, 9, 11), (1.0, 19, 1)] {
            let (address, handshakes) = serve(&[b"h2"]);
            let mut plan = plan(ONE_AT_A_TIME, true, address);
            (plan.stop, plan.connections.no_keepalive, plan.connections.resumed) = (requests(20), true, share);
            let results = run(&plan);
            assert_eq!(errors(&results), vec![]);
            assert_eq!(handshakes.each_ref().map(|count| count.load(SeqCst)), [resumed, new], "a share of {share}");
        }
    }
}

// The end of a timed run.

#[test]
fn what_a_server_that_fell_silent_has_not_answered_at_the_end_is_unfinished_and_in_the_distribution() {
    let (address, seen) = serve(|number, _, stream| Act::Write(if number < 20 { ok(stream, 10) } else { Vec::new() }));
    let schedule = Schedule::Rate { rate: Profile::constant(100.0, None), clients: 4, spacing: Spacing::Even };
    let found = run(&Plan { schedule, stop: time(600), ..plan(Protocol::Http2 { streams: 50 }, false, address) });
    assert_eq!((found.requests + found.missed, found.requests, found.answered), (60, seen.requests(), 20));
    assert_eq!((errors(&found), found.latency.count), (vec![(ErrorClass::Unfinished, found.requests - 20)], found.requests));
    assert!(found.latency.max >= 600.0 && found.latency.p50 >= 250.0, "{:?}", found.latency);
    assert_eq!(found.duration, 0.6, "the time that requests get to end is not part of the run");
    assert_eq!(found.seconds.iter().map(|second| second.requests).sum::<u64>(), found.requests);
}

#[test]
fn what_is_answered_soon_after_the_end_counts_as_answered_and_every_request_that_the_server_saw_is_counted() {
    let (address, seen) = serve(|_, _, stream| {
        thread::park_timeout(Duration::from_millis(70));
        Act::Write(ok(stream, 10))
    });
    let found = run(&Plan { schedule: clients(4), stop: time(300), ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!((found.answered, errors(&found), found.duration), (seen.requests(), vec![], 0.3));
}

#[test]
fn bytes_of_answers_that_were_cut_by_a_timeout_are_counted() {
    let (address, _) = serve(|_, _, stream| Act::Write([head(4, stream, &[]), frame(0, 0, stream, &[0; 100])].concat()));
    let found = run(&Plan { timeout: Duration::from_millis(150), stop: requests(2), ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!((errors(&found), found.bytes), (vec![(ErrorClass::Timeout, 2)], 2 * (9 + 1 + 9 + 100)));
}

#[test]
fn the_lateness_of_the_generator_is_known_of_every_request_that_was_due_also_of_those_that_wait_for_the_server() {
    let (address, _) = serve(|_, _, stream| {
        thread::park_timeout(Duration::from_millis(20));
        Act::Write(ok(stream, 10))
    });
    let rate = Profile::constant(200.0, Some(Duration::from_millis(300)));
    let schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 1 };
    let found = run(&Plan { schedule, ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!((found.answered, found.send_lag.count), (60, 60));
    // The last one has waited for its turn for almost a second, which is the server's doing.
    assert!(found.latency.max > 500.0 && found.send_lag.p50 < 50.0, "{:?}", found.send_lag);
}

// Servers that cost more than they give.

/// Returns a block of fields that stands for 2 MB: an entry of 4,000 bytes in the table, and 500 times its index.
fn bomb() -> Vec<u8> {
    // A literal that enters the table, with a new name of one byte; 4,000 = 127 + 3,873.
    let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'b'; 4000]].concat();
    [entry, vec![0xbe; 500]].concat()
}

#[test]
fn a_server_that_floods_a_connection_and_does_not_answer_is_given_up() {
    type Flood = fn(u32) -> Vec<u8>;
    let floods: [(&str, Flood); 6] = [
        ("PING", |_| frame(6, 0, 0, &[0; 8])),
        ("SETTINGS", |_| frame(4, 0, 0, &[])),
        ("PRIORITY", |stream| frame(2, 0, stream, &[0; 5])),
        ("103", |stream| frame(1, 4, stream, &head_of(103))),
        ("unknown", |_| frame(99, 0, 0, &[])),
        ("WINDOW_UPDATE", |_| frame(8, 0, 0, &[0, 0, 0, 1])),
    ];
    for (name, flood) in floods {
        let (address, _) = serve(move |_, _, stream| Act::Write(flood(stream).repeat(20_000)));
        let found = run(&Plan { stop: requests(2), ..plan(ONE_AT_A_TIME, false, address) });
        assert_eq!(errors(&found), vec![(ErrorClass::Protocol, 2)], "{name}");
    }
}

#[test]
fn content_of_empty_frames_without_end_is_no_answer() {
    let (address, _) = serve(|_, _, stream| Act::Write([head(4, stream, &[]), frame(0, 0, stream, &[]).repeat(20_000)].concat()));
    let found = run(&Plan { stop: requests(2), ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!(errors(&found), vec![(ErrorClass::Protocol, 2)]);
}

#[test]
fn empty_continuations_without_end_are_no_answer() {
    let (address, _) = serve(|_, _, stream| Act::Write([head(0, stream, &[]), frame(9, 0, stream, &[]).repeat(20_000)].concat()));
    let found = run(&Plan { stop: requests(2), ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!(errors(&found), vec![(ErrorClass::Protocol, 2)]);
}

#[test]
fn a_few_bytes_that_stand_for_megabytes_of_fields_are_no_answer() {
    let (address, _) = serve(|_, _, stream| Act::Write(frame(1, 5, stream, &[&[0x88][..], &bomb()].concat())));
    let found = run(&Plan { stop: requests(2), ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!(errors(&found), vec![(ErrorClass::Protocol, 2)]);
}

#[test]
fn a_request_times_out_though_its_connection_never_runs_dry() {
    // Content of another stream, which nobody has asked for any more, without end.
    let (address, _) =
        serve(|_, _, stream| Act::Write([head(4, stream, &[]), frame(0, 0, stream, &[b'x'; 1000]).repeat(200_000)].concat()));
    let began = Instant::now();
    let found = run(&Plan { stop: requests(1), timeout: Duration::from_millis(200), ..plan(ONE_AT_A_TIME, false, address) });
    assert_eq!(errors(&found), vec![(ErrorClass::Timeout, 1)]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Returns the field `:status` with a value of three digits, as a literal.
fn head_of(status: u16) -> Vec<u8> {
    [&[0x08, 3][..], status.to_string().as_bytes()].concat()
}
