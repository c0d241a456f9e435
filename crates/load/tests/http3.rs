//! HTTP/3 against servers made of `quinn` and `h3` (RFC 9114): what the client sends, and as what each misbehaviour is counted.

mod streams;

use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use h3::{error::Code, server::RequestStream};
use load::{
    Protocol, Schedule,
    record::ErrorClass,
    schedule::{Profile, Spacing},
};
use quinn::crypto::rustls::QuicServerConfig;
use rustls::{ServerConfig, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use streams::{clients, errors, plan, requests, run, time};
use tokio::{
    sync::{Notify, Semaphore},
    task::LocalSet,
};

const ONE_AT_A_TIME: Protocol = Protocol::Http3 { streams: 1 };

/// Says what a server does with a request.
#[derive(Clone, Copy)]
enum Act {
    Answer,
    /// It answers when so many requests wait on the connection.
    AnswerTogether(u64),
    Status(u16),
    /// It resets the stream before the answer.
    Reset(Code),
    /// It sends a head and some content, and resets the stream when so many more requests have come on the connection.
    ResetWithin(u64),
    /// It says a larger length than it sends.
    Short,
    Silent,
    /// It closes the connection.
    Close,
    /// It ends as a process does that is killed, and is started anew on the same port.
    Killed,
    /// It is killed when something was sent that says that the request has come.
    KilledLater,
}

/// Holds what a server has seen.
#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    requests: AtomicU64,
    /// The most requests at a time on one connection.
    most: AtomicU64,
    body: AtomicU64,
    /// The ports that clients came from.
    ports: Mutex<Vec<u16>>,
    killed: Notify,
}

fn config(alpn: &str) -> quinn::ServerConfig {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let chain = vec![CertificateDer::from(key.cert.der().to_vec())];
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has it")
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::try_from(key.signing_key.serialize_der()).expect("a key"))
        .expect("they fit");
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config).expect("TLS 1.3")))
}

/// Starts a server that does as `script` says: of which number the request is on the server.
fn serve(script: impl Fn(u64) -> Act + Send + Copy + 'static) -> (SocketAddr, Arc<Seen>) {
    serve_as("h3", script)
}

fn serve_as(alpn: &'static str, script: impl Fn(u64) -> Act + Send + Copy + 'static) -> (SocketAddr, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    let to_see = Arc::clone(&seen);
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        sender.send(socket.local_addr().expect("its address")).expect("the test waits for it");
        loop {
            let socket = socket.try_clone().expect("a descriptor");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let life = accept(socket, alpn, Arc::clone(&to_see), script);
            LocalSet::new().block_on(&runtime, async {
                tokio::select! { () = life => {}, () = to_see.killed.notified() => {} }
            });
            // All tasks are gone with it, and could tell nobody.
            drop(runtime);
        }
    });
    (receiver.recv().expect("the server begins"), seen)
}

async fn accept(socket: UdpSocket, alpn: &str, to_see: Arc<Seen>, script: impl Fn(u64) -> Act + Send + Copy + 'static) {
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = quinn::Endpoint::new(quinn::EndpointConfig::default(), Some(config(alpn)), socket, runtime).expect("a socket");
    while let Some(incoming) = endpoint.accept().await {
        to_see.ports.lock().expect("nobody panics").push(incoming.remote_address().port());
        let seen = Arc::clone(&to_see);
        tokio::task::spawn_local(async move {
            let Ok(quic) = incoming.await else { return };
            seen.connections.fetch_add(1, SeqCst);
            speak(quic, seen, script).await;
        });
    }
}

async fn speak(quic: quinn::Connection, seen: Arc<Seen>, script: impl Fn(u64) -> Act) {
    let Ok(mut connection) = h3::server::Connection::<_, Bytes>::new(h3_quinn::Connection::new(quic.clone())).await else { return };
    let waiting = Arc::new((AtomicU64::new(0), Notify::new()));
    // A permit for each request behind the first.
    let (more, mut begun) = (Arc::new(Semaphore::new(0)), false);
    while let Ok(Some(resolver)) = connection.accept().await {
        let (seen, quic, waiting, more) = (Arc::clone(&seen), quic.clone(), Arc::clone(&waiting), Arc::clone(&more));
        if begun {
            more.add_permits(1);
        }
        begun = true;
        let act = script(seen.requests.fetch_add(1, SeqCst));
        let now = waiting.0.fetch_add(1, SeqCst) + 1;
        seen.most.fetch_max(now, SeqCst);
        tokio::task::spawn_local(async move {
            let (_, mut stream) = resolver.resolve_request().await.expect("a request");
            while let Ok(Some(data)) = stream.recv_data().await {
                seen.body.fetch_add(bytes::Buf::remaining(&data) as u64, SeqCst);
            }
            if let Act::AnswerTogether(all) = act {
                // Whoever completes the number lets the others go.
                if now.is_multiple_of(all) { waiting.1.notify_waiters() } else { waiting.1.notified().await }
            }
            waiting.0.fetch_sub(1, SeqCst);
            match act {
                Act::Answer | Act::AnswerTogether(_) => answer(&mut stream, 200, None).await,
                Act::Status(status) => answer(&mut stream, status, None).await,
                Act::Short => answer(&mut stream, 200, Some("100000")).await,
                Act::Reset(code) => stream.stop_stream(code),
                Act::ResetWithin(later) => {
                    let _ = stream.send_response(http::Response::new(())).await;
                    let _ = stream.send_data(Bytes::from_static(b"part")).await;
                    for _ in 0..later {
                        more.acquire().await.expect("nobody closes it").forget();
                    }
                    stream.stop_stream(Code::H3_INTERNAL_ERROR);
                }
                Act::Silent => std::future::pending().await,
                Act::Close => quic.close(0x100_u32.into(), b""),
                Act::Killed => {
                    seen.killed.notify_one();
                    std::future::pending().await
                }
                Act::KilledLater => {
                    let before = quic.stats().udp_tx.datagrams;
                    let _ = stream.send_response(http::Response::new(())).await;
                    while quic.stats().udp_tx.datagrams == before {
                        tokio::task::yield_now().await;
                    }
                    seen.killed.notify_one();
                    std::future::pending().await
                }
            }
        });
    }
}

async fn answer(stream: &mut RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>, status: u16, length: Option<&str>) {
    let mut head = http::Response::builder().status(status);
    if let Some(length) = length {
        head = head.header("content-length", length);
    }
    let _ = stream.send_response(head.body(()).expect("a head")).await;
    let _ = stream.send_data(Bytes::from_static(&[b'x'; 8192])).await;
    let _ = stream.finish().await;
}

#[test]
fn exactly_as_many_requests_are_made_as_asked_for() {
    let (address, seen) = serve(|_| Act::Answer);
    let mut plan = plan(Protocol::Http3 { streams: 4 }, true, address);
    (plan.schedule, plan.stop, plan.workers) = (clients(3), requests(503), 2);
    let results = run(&plan);
    assert_eq!((results.requests, results.answered, errors(&results)), (503, 503, vec![]));
    assert_eq!((seen.requests.load(SeqCst), seen.connections.load(SeqCst)), (503, 3));
    assert_eq!((results.connect.count, results.handshake.count, results.clients), (3, 3, 3));
    assert!(results.bytes >= 503 * 8192, "{} bytes", results.bytes);
    assert!(seen.most.load(SeqCst) <= 4, "{} at a time", seen.most.load(SeqCst));
}

#[test]
fn as_many_requests_are_under_way_as_there_are_streams() {
    // Nobody is answered before four wait.
    let (address, seen) = serve(|_| Act::AnswerTogether(4));
    let mut plan = plan(Protocol::Http3 { streams: 4 }, true, address);
    plan.stop = requests(4);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.most.load(SeqCst)), (4, vec![], 4));
}

#[test]
fn each_misbehaviour_is_counted_in_its_class() {
    let (address, seen) = serve(|number| match number % 8 {
        0 => Act::Reset(Code::H3_INTERNAL_ERROR),
        1 | 2 => Act::Short,
        3 => Act::Silent,
        4 => Act::Status(503),
        5 => Act::Close,
        _ => Act::Answer,
    });
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    (plan.stop, plan.timeout) = (requests(40), Duration::from_millis(300));
    let results = run(&plan);
    let expected = [(ErrorClass::Reset, 10), (ErrorClass::Timeout, 5), (ErrorClass::Truncated, 10), (ErrorClass::Status, 5)];
    assert_eq!((errors(&results), results.requests, results.answered), (expected.to_vec(), 40, 15));
    assert_eq!(seen.requests.load(SeqCst), 40);
}

#[test]
fn an_answer_that_is_reset_within_its_content_is_truncated() {
    // The client asks for the third time when it has its second answer, and by then it has read the first one's head.
    let (address, _) = serve(|number| if number == 0 { Act::ResetWithin(2) } else { Act::Answer });
    let mut plan = plan(Protocol::Http3 { streams: 2 }, true, address);
    plan.stop = requests(5);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results)), (4, vec![(ErrorClass::Truncated, 1)]));
}

#[test]
fn a_rejected_request_is_asked_again_once() {
    let (address, seen) = serve(|number| if number % 2 == 0 { Act::Reset(Code::H3_REQUEST_REJECTED) } else { Act::Answer });
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    plan.stop = requests(20);
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.requests.load(SeqCst)), (20, vec![], 40));

    let (address, seen) = serve(|_| Act::Reset(Code::H3_REQUEST_REJECTED));
    let mut plan = streams::plan(ONE_AT_A_TIME, true, address);
    plan.stop = requests(20);
    let results = run(&plan);
    assert_eq!((errors(&results), seen.requests.load(SeqCst)), (vec![(ErrorClass::Reset, 20)], 40));
}

#[test]
fn content_is_sent_whole() {
    let (address, seen) = serve(|_| Act::Answer);
    let mut plan = plan(Protocol::Http3 { streams: 2 }, true, address);
    plan.stop = requests(6);
    let set = Arc::make_mut(&mut plan.requests);
    (set.requests[0].method, set.requests[0].body) = ("POST".to_owned(), vec![b'x'; 200_000].into());
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.body.load(SeqCst)), (6, vec![], 1_200_000));
}

#[test]
fn each_visitor_who_arrives_has_a_connection_of_its_own() {
    let (address, seen) = serve(|_| Act::Answer);
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    plan.schedule = Schedule::Arrivals { rate: Profile::constant(100.0, Some(Duration::from_millis(300))), spacing: Spacing::Even };
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), results.missed), (30, vec![], 0));
    assert_eq!((seen.connections.load(SeqCst), results.connect.count), (30, 30));
    // A server may choose its thread by the port.
    let mut ports = seen.ports.lock().expect("nobody panics").clone();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 30);
}

#[test]
fn a_rate_is_kept() {
    let (address, _) = serve(|_| Act::Answer);
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    let rate = Profile::constant(100.0, Some(Duration::from_millis(500)));
    plan.schedule = Schedule::Rate { rate, spacing: Spacing::Even, clients: 4 };
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), results.missed), (50, vec![], 0));
}

#[test]
fn what_is_under_way_at_the_end_of_the_time_is_unfinished() {
    let (address, _) = serve(|_| Act::Silent);
    let mut plan = plan(Protocol::Http3 { streams: 5 }, true, address);
    plan.stop = time(300);
    let results = run(&plan);
    assert_eq!((results.requests, errors(&results)), (5, vec![(ErrorClass::Unfinished, 5)]));
}

#[test]
fn a_port_at_which_nobody_listens_is_a_timeout_because_nobody_says_so() {
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a free port").local_addr().expect("its address");
    let mut plan = plan(ONE_AT_A_TIME, true, closed);
    (plan.stop, plan.timeout) = (requests(2), Duration::from_millis(100));
    let results = run(&plan);
    assert_eq!((results.requests, errors(&results)), (2, vec![(ErrorClass::Timeout, 2)]));
}

/// Nobody tells the client of HTTP/3 that a server was killed, so the request that was under way is a timeout. The next one makes a new connection: the old
/// one is nothing that the new process knows.
#[test]
fn a_server_that_was_killed_costs_what_was_under_way_and_is_connected_to_again() {
    let (address, seen) = serve(|number| if number == 8 { Act::Killed } else { Act::Answer });
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    // A first packet that comes before the new server listens is sent again after a second.
    // The first requests are answered while both sides still look for the longest packet, and acknowledge each other's.
    (plan.stop, plan.timeout) = (requests(13), Duration::from_secs(4));
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.connections.load(SeqCst)), (12, vec![(ErrorClass::Timeout, 1)], 2));
}

/// What the server said before it was killed is no sign that it lives: it is asked for one while the request waits.
#[test]
fn a_server_that_was_killed_after_it_began_to_answer_costs_one_timeout() {
    let (address, seen) = serve(|number| if number == 8 { Act::KilledLater } else { Act::Answer });
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    (plan.stop, plan.timeout) = (requests(13), Duration::from_secs(4));
    let results = run(&plan);
    assert_eq!((results.answered, errors(&results), seen.connections.load(SeqCst)), (12, vec![(ErrorClass::Timeout, 1)], 2));
}

/// A server that lives acknowledges that it is asked for a sign of life, also where it answers nothing.
#[test]
fn a_request_that_is_never_answered_costs_no_connection() {
    for streams in [1, 2] {
        let (address, seen) = serve(|number| if number == 8 { Act::Silent } else { Act::Answer });
        let mut plan = plan(Protocol::Http3 { streams }, true, address);
        (plan.stop, plan.timeout) = (requests(13), Duration::from_secs(3));
        let results = run(&plan);
        let found = (results.answered, errors(&results), seen.connections.load(SeqCst));
        assert_eq!(found, (12, vec![(ErrorClass::Timeout, 1)], 1), "{streams} streams");
    }
}

#[test]
fn a_server_that_does_not_offer_http3_is_named_and_not_measured() {
    let (address, _) = serve_as("hq-interop", |_| Act::Answer);
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    plan.stop = time(5000);
    let error = load::run(&plan, &mut ()).expect_err("there is no HTTP/3");
    assert_eq!(error.to_string(), format!("https://{address} does not offer HTTP/3 (h3 by ALPN)"));
}

#[test]
fn a_certificate_that_is_not_trusted_is_an_error_of_tls() {
    let (address, _) = serve(|_| Act::Answer);
    let mut plan = plan(ONE_AT_A_TIME, true, address);
    let ca = tempfile::NamedTempFile::new().expect("a file");
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    std::fs::write(ca.path(), other.cert.pem()).expect("written");
    (plan.stop, plan.connections.insecure, plan.connections.ca) = (requests(3), false, Some(ca.path().to_owned()));
    let results = run(&plan);
    assert_eq!((results.requests, errors(&results)), (3, vec![(ErrorClass::Tls, 3)]));
}
