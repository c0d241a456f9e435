//! HTTP/3: RFC 9114, 9204 and 9000; a client of its own (quinn and h3) for what is well-formed, raw frames for what is not.

use std::{net::SocketAddr, sync::Arc, thread};

use bytes::{Buf, Bytes};
use edge::Socket;
use h3::client::SendRequest;
use http::{Request, Response};
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, crypto::rustls::QuicClientConfig};
use rustls::version::TLS13;
use testkit::{Gate, Origin, get, ok, patiently, post, secs};
use tokio::task::JoinHandle;

use crate::{
    site::{HOST, Site},
    tls::{self, Authority},
};

/// Returns a site that speaks HTTP/3; `more` stands behind `[server]`.
fn site(authority: &Authority, more: &str) -> (Origin, Site) {
    tls::site(authority, &format!("[server]\nhttp3 = true\n{more}"))
}

/// Returns the address at which HTTP/3 is spoken.
fn address(site: &Site) -> SocketAddr {
    let quic = site.server.listening().iter().find_map(|socket| if let Socket::Quic(address) = socket { Some(*address) } else { None });
    quic.expect("a QUIC listener")
}

fn config(authority: &Authority, protocol: &str) -> ClientConfig {
    let tls = authority.client(&[&TLS13], protocol);
    ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS 1.3")))
}

fn endpoint() -> Endpoint {
    Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket")
}

async fn connect(authority: &Authority, site: &Site) -> Connection {
    let connecting = endpoint().connect_with(config(authority, "h3"), address(site), HOST).expect("a valid address");
    patiently("for a handshake", connecting).await.expect("a handshake")
}

type Send = SendRequest<h3_quinn::OpenStreams, Bytes>;

/// Returns a client, and what becomes of its connection.
#[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
async fn client(authority: &Authority, site: &Site) -> (Send, JoinHandle<h3::error::ConnectionError>) {
    let connection = h3_quinn::Connection::new(connect(authority, site).await);
    let (mut driver, send) = h3::client::new(connection).await.expect("a control stream");
    (send, tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await }))
}

fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(format!("https://{HOST}{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

async fn answer(send: &mut Send, request: Request<()>, body: impl Into<Bytes>) -> (Response<()>, String) {
    let mut stream = send.send_request(request).await.expect("sent");
    let body = body.into();
    if !body.is_empty() {
        stream.send_data(body).await.expect("sent");
    }
    stream.finish().await.expect("sent");
    let response = patiently("for a response", stream.recv_response()).await.expect("a response");
    let mut content = Vec::new();
    while let Some(data) = patiently("for content", stream.recv_data()).await.expect("content") {
        content.extend_from_slice(data.chunk());
    }
    (response, String::from_utf8(content).expect("text"))
}

/// A request goes through the same pipeline: a miss, then a hit, a 304; and the origin gets a request as HTTP/1 has it.
#[tokio::test]
async fn a_request_is_what_it_would_be_in_http_1() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").field("etag", "\"a\""));
    origin.on(post("/form")).reply_with(|seen| ok(seen.text().to_uppercase()));
    let (mut send, _connection) = client(&authority, &site).await;
    for status in ["uri-miss", "hit", "hit"] {
        let (response, content) = answer(&mut send, request("GET", "/post", &[]), "").await;
        assert_eq!((response.status().as_u16(), content.as_str()), (200, "text"));
        assert!(response.headers()["cache-status"].to_str().expect("text").contains(status), "{response:?}");
    }
    let (response, content) = answer(&mut send, request("HEAD", "/post", &[]), "").await;
    assert_eq!((response.headers()["content-length"].as_bytes(), content.as_str()), (&b"4"[..], ""));
    let (response, content) = answer(&mut send, request("GET", "/post", &[("if-none-match", "\"a\"")]), "").await;
    assert_eq!((response.status().as_u16(), content.as_str()), (304, ""));

    let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("content-length", "5")];
    let (response, content) = answer(&mut send, request("POST", "/form", &fields), "hello").await;
    assert_eq!((response.status().as_u16(), content.as_str()), (200, "HELLO"));
    let requests = origin.requests();
    let seen = requests.iter().find(|seen| seen.method == "POST").expect("it came");
    let field = |name| seen.field(name).unwrap_or_default();
    assert_eq!([field("cookie"), field("host"), field("x-forwarded-proto"), field("te")], ["a=1; b=2", HOST, "https", ""]);
    assert_eq!(field("via"), "3 seawall");
}

/// RFC 9110 §15.5.6: a refusal says the same over every version of HTTP, and a 405 names the methods that are allowed.
#[tokio::test]
async fn a_refusal_is_what_it_would_be_in_http_1() {
    let authority = Authority::new();
    let (_origin, site) = site(&authority, "");
    let connection = connect(&authority, &site).await;
    let tunnel = section(&[(":method", "CONNECT"), (":authority", "blog.example:443")]);
    let answer = outcome(&connection, &frame(1, &tunnel)).await.expect("an answer");
    // What is written to a section is not packed.
    for text in ["GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS", "405 Method Not Allowed: this is not a tunnel\n"] {
        assert!(answer.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{text}");
    }
}

/// RFC 9000 §4: larger than any window, in both directions and several at once, from the origin and from what is stored.
#[tokio::test]
async fn contents_pass_whole() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let page = "0123456789abcdef".repeat(1 << 18);
    origin.on(get("/large")).reply(ok(page.clone()).field("cache-control", "max-age=60"));
    origin.on(post("/upload")).reply_with(|seen| ok(seen.body.len().to_string()));
    let (mut send, _connection) = client(&authority, &site).await;
    let (_, first) = answer(&mut send, request("GET", "/large", &[]), "").await;
    assert!(first == page, "{} bytes", first.len());
    let (mut one, mut other) = (send.clone(), send.clone());
    let get = |send: &mut Send| {
        let mut send = send.clone();
        async move { answer(&mut send, request("GET", "/large", &[]), "").await.1.len() }
    };
    let upload = answer(&mut send, request("POST", "/upload", &[]), page.clone());
    let (one, other, (_, uploaded)) = tokio::join!(get(&mut one), get(&mut other), upload);
    assert_eq!((one, other, uploaded), (page.len(), page.len(), page.len().to_string()));
    assert_eq!(origin.requests().iter().filter(|seen| seen.method == "GET").count(), 1);
}

/// RFC 9110 §15.5.14: said or not, content beyond the limit goes no further.
#[tokio::test]
async fn too_much_content_is_refused() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "[limits]\nbody_bytes = 1000\n");
    origin.on(post("/upload")).reply(ok("thanks"));
    let (mut send, _connection) = client(&authority, &site).await;
    let long = "x".repeat(2_000);
    for fields in [&[("content-length", "2000")][..], &[]] {
        let mut stream = send.send_request(request("POST", "/upload", fields)).await.expect("sent");
        // It may be told before everything was sent (RFC 9114 §4.1).
        let _ = stream.send_data(long.clone().into()).await;
        let _ = stream.finish().await;
        let response = patiently("for a response", stream.recv_response()).await.expect("a response");
        assert_eq!(response.status().as_u16(), 413);
    }
    let (response, _) = answer(&mut send, request("POST", "/upload", &[]), "short").await;
    assert_eq!(response.status().as_u16(), 200, "the connection goes on");
}

/// RFC 7838 §3: over TLS and nowhere else, with the port that clients can reach; not a part of what is stored; and no longer than it is wanted.
#[tokio::test]
async fn clients_are_told_where_else_to_come() {
    let authority = Authority::new();
    let (origin, mut site) = site(&authority, "");
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").field("alt-svc", "h3=\":9\""));
    let told = format!("h3=\":{}\"; ma=86400", address(&site).port());
    let (mut send, _connection) = client(&authority, &site).await;
    let https = async |site: &Site| tls::get(site, &authority, "/post").await.to_ascii_lowercase();
    for _ in 0..3 {
        let page = https(&site).await;
        assert!(page.contains(&format!("\r\nalt-svc: {told}\r\n")) && !page.contains("h3=\":9\""), "{page}");
        let (response, _) = answer(&mut send, request("GET", "/post", &[]), "").await;
        let fields: Vec<_> = response.headers().get_all("alt-svc").iter().collect();
        assert_eq!(fields, [told.as_str()]);
    }
    site.get("/post").await.no_field("alt-svc");
    let toml = |server: &str| format!("source = \"{}\"\n{}[server]\n{server}", origin.url(), authority.section());
    assert_eq!(site.reload(&toml("http3 = true\nhttp3_port = 443\n")), Ok(vec![]));
    assert!(https(&site).await.contains("\r\nalt-svc: h3=\":443\"; ma=86400\r\n"));
    assert_eq!(site.reload(&toml("")), Ok(vec!["server.http3"]));
    assert!(!https(&site).await.contains("alt-svc"), "{}", https(&site).await);
    let (response, _) = answer(&mut send, request("GET", "/post", &[]), "").await;
    assert_eq!(response.status().as_u16(), 200, "what stands goes on");
}

/// RFC 9114 §5.2: a stop lets requests under way end, and says so; nobody else is let in.
#[tokio::test]
async fn a_stop_says_goodbye() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "workers = 2\n");
    let gate = Gate::new();
    let page = "0123456789abcdef".repeat(1 << 16);
    origin.on(get("/slow")).reply(ok(page.clone()).gate(&gate));
    let (mut send, connection) = client(&authority, &site).await;
    let (_idle, idle_connection) = client(&authority, &site).await;
    let mut stream = send.send_request(request("GET", "/slow", &[])).await.expect("sent");
    stream.finish().await.expect("sent");
    gate.arrived().await;
    let address = address(&site);
    let stopping = thread::spawn(move || site.stop(secs(30)));
    let end = patiently("for the end of the idle one", idle_connection).await.expect("no panic");
    assert!(end.is_h3_no_error(), "{end:?}");
    assert!(!stopping.is_finished());
    gate.open();
    patiently("for the response", stream.recv_response()).await.expect("a response");
    let mut length = 0;
    while let Some(data) = patiently("for content", stream.recv_data()).await.expect("content") {
        length += data.remaining();
    }
    assert_eq!(length, page.len());
    drop(stream);
    let end = patiently("for the end", connection).await.expect("no panic");
    assert!(end.is_h3_no_error(), "{end:?}");
    stopping.join().expect("stopped");
    assert!(std::net::UdpSocket::bind(address).is_ok(), "nobody is there any more");
}

/// Fields without compression (RFC 9204 §4.5.6), so that anything can be said.
fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut whole = vec![0, 0];
    for (name, value) in fields {
        match u8::try_from(name.len()).expect("a short name") {
            length @ ..7 => whole.push(0x20 | length),
            length => whole.extend([0x27, length - 7]),
        }
        whole.extend_from_slice(name.as_bytes());
        whole.push(u8::try_from(value.len()).expect("under 127"));
        whole.extend_from_slice(value.as_bytes());
    }
    whole
}

/// Returns a frame (RFC 9114 §7.1) with a length in two bytes.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a short frame") | 0x4000;
    [&[kind][..], &length.to_be_bytes(), payload].concat()
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":path", "/bad"), (":authority", HOST)];
const POST: [(&str, &str); 4] = [(":method", "POST"), (":scheme", "https"), (":path", "/bad"), (":authority", HOST)];

/// Returns what becomes of a stream: the first HEADERS that answer it, or the code with which it or the connection ended.
async fn outcome(connection: &Connection, bytes: &[u8]) -> Result<Vec<u8>, u64> {
    let (mut send, mut receive) = connection.open_bi().await.expect("room");
    // It may be refused before it was all sent.
    let _ = send.write_all(bytes).await;
    let _ = send.finish();
    let answer = patiently("for an answer", receive.read_to_end(1 << 20)).await;
    match answer {
        Ok(answer) => Ok(answer),
        Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => Err(code.into_inner()),
        Err(quinn::ReadToEndError::Read(quinn::ReadError::ConnectionLost(ConnectionError::ApplicationClosed(close)))) => {
            Err(close.error_code.into_inner())
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// RFC 9114 §8.1.
const REQUEST_CANCELLED: u64 = 0x10c;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const REQUEST_INCOMPLETE: u64 = 0x10d;
const MESSAGE_ERROR: u64 = 0x10e;
const DECOMPRESSION_FAILED: u64 = 0x200;

/// A client that takes nothing is waited for as long as it may, and no longer.
#[tokio::test]
async fn a_window_that_stays_shut_is_not_waited_for() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "[limits]\nwrite_timeout = \"100ms\"\n");
    let page = "0123456789abcdef".repeat(1 << 18);
    origin.on(get("/large")).reply(ok(page).field("cache-control", "max-age=60"));
    let connection = connect(&authority, &site).await;
    let large = [GET[0], GET[1], (":path", "/large"), GET[3]];
    for _ in 0..2 {
        let (mut send, mut receive) = connection.open_bi().await.expect("room");
        send.write_all(&frame(1, &section(&large))).await.expect("sent");
        send.finish().expect("once");
        let reset = patiently("for a reset", receive.received_reset()).await.expect("the connection goes on");
        assert_eq!(reset, Some(REQUEST_CANCELLED.try_into().expect("a code")));
    }
    let head = [(":method", "HEAD"), GET[1], large[2], GET[3]];
    let answer = outcome(&connection, &frame(1, &section(&head))).await.expect("an answer");
    assert_eq!(answer[..2], [1, 0x80], "HEADERS, as the connection goes on");
    assert_eq!(origin.requests().len(), 1);
}

/// RFC 9114 §4.1.2, §4.2, §4.3, §7.1, §7.2, §10.3: what is malformed is reset or refused, and no origin hears of it.
#[tokio::test]
async fn no_malformed_request_reaches_the_origin() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let with = |base: &[(&'static str, &'static str)], more: &[(&'static str, &'static str)]| section(&[base, more].concat());
    let get = |more: &[(&'static str, &'static str)]| frame(1, &with(&GET, more));
    let only = |fields: &[(&'static str, &'static str)]| frame(1, &section(fields));
    let upload = |more: &[(&'static str, &'static str)], body: &[u8]| [frame(1, &with(&POST, more)), frame(0, body)].concat();
    let many = vec![("a", "b"); 120];
    let malformed = Some(MESSAGE_ERROR);
    // `None`: answered with an error.
    let rows: Vec<(&str, Vec<u8>, Option<u64>)> = vec![
        ("CR LF in a value", get(&[("x", "a\r\ntransfer-encoding: chunked")]), malformed),
        ("LF in a value", get(&[("x", "a\nb: c")]), malformed),
        ("NUL in a value", get(&[("x", "a\0b")]), malformed),
        ("a blank before a value", get(&[("x", " a")]), None),
        ("a blank after a value", get(&[("x", "a ")]), None),
        ("a name in capitals", get(&[("X-Name", "a")]), malformed),
        ("a colon in a name", get(&[("x:y", "a")]), malformed),
        ("a line end in a name", get(&[("x\r\ny", "a")]), malformed),
        ("a name that is empty", get(&[("", "a")]), malformed),
        ("connection", get(&[("connection", "close")]), malformed),
        ("transfer-encoding", upload(&[("transfer-encoding", "chunked")], b"0\r\n\r\n"), malformed),
        ("upgrade", get(&[("upgrade", "h2c")]), malformed),
        ("keep-alive", get(&[("keep-alive", "1")]), malformed),
        ("proxy-connection", get(&[("proxy-connection", "close")]), malformed),
        ("te other than trailers", get(&[("te", "gzip")]), malformed),
        ("two lengths", upload(&[("content-length", "5"), ("content-length", "6")], b"hello"), None),
        ("a length with a sign", upload(&[("content-length", "+5")], b"hello"), None),
        ("a length and nothing else", frame(1, &with(&POST, &[("content-length", "5")])), malformed),
        ("a GET with a length and nothing else", get(&[("content-length", "5")]), malformed),
        ("a HEAD with a length and nothing else", only(&[(":method", "HEAD"), GET[1], GET[2], GET[3], ("content-length", "5")]), malformed),
        ("more content than its length", upload(&[("content-length", "1")], b"hello"), malformed),
        ("content where none was promised", upload(&[("content-length", "0")], b"hello"), malformed),
        ("content of a GET that promised none", [get(&[("content-length", "0")]), frame(0, b"hello")].concat(), malformed),
        ("more content than a GET's length", [get(&[("content-length", "1")]), frame(0, b"hello")].concat(), malformed),
        ("a host that differs", get(&[("host", "other.example")]), None),
        ("two hosts", get(&[("host", HOST), ("host", HOST)]), None),
        ("more fields than allowed", get(&many), None),
        ("an unknown pseudo-field", get(&[(":x", "a")]), malformed),
        ("a pseudo-field of responses", get(&[(":status", "200")]), malformed),
        ("two methods", get(&[(":method", "GET")]), malformed),
        ("two paths", get(&[(":path", "/")]), malformed),
        ("a pseudo-field after a field", only(&[("x", "a"), GET[0], GET[1], GET[2], GET[3]]), malformed),
        ("no method", only(&GET[1..]), malformed),
        ("no scheme", only(&[GET[0], GET[2], GET[3]]), malformed),
        ("no path", only(&[GET[0], GET[1], GET[3]]), malformed),
        ("no authority", only(&GET[..3]), None),
        ("an empty path", only(&[GET[0], GET[1], (":path", ""), GET[3]]), malformed),
        ("a path without a slash", only(&[GET[0], GET[1], (":path", "bad"), GET[3]]), None),
        ("a blank in the path", only(&[GET[0], GET[1], (":path", "/bad HTTP/1.1"), GET[3]]), None),
        ("a line end in the path", only(&[GET[0], GET[1], (":path", "/bad\r\nx: y"), GET[3]]), malformed),
        ("a method in small letters", only(&[(":method", "get"), GET[1], GET[2], GET[3]]), None),
        ("a user in the authority", only(&[GET[0], GET[1], GET[2], (":authority", "u@blog.example")]), None),
        ("a path in the authority", only(&[GET[0], GET[1], GET[2], (":authority", "blog.example/x")]), None),
        ("CONNECT", only(&[(":method", "CONNECT"), (":authority", "blog.example:443")]), None),
        ("an extended CONNECT", only(&[(":method", "CONNECT"), (":protocol", "websocket"), GET[1], GET[2], GET[3]]), malformed),
        ("an asterisk for GET", only(&[GET[0], GET[1], (":path", "*"), GET[3]]), None),
        ("nothing at all", vec![], Some(REQUEST_INCOMPLETE)),
        ("half a frame", frame(1, &section(&GET))[..20].to_vec(), Some(FRAME_ERROR)),
        ("half a frame's head", vec![0x01, 0x40], Some(FRAME_ERROR)),
        ("content before its head", frame(0, b"hello"), Some(FRAME_UNEXPECTED)),
        ("settings", [get(&[]), frame(4, &[])].concat(), Some(FRAME_UNEXPECTED)),
        ("a push promise", [get(&[]), frame(5, &[0])].concat(), Some(FRAME_UNEXPECTED)),
        ("a ping of HTTP/2", [get(&[]), frame(6, &[0; 8])].concat(), Some(FRAME_UNEXPECTED)),
        ("a section that is none", frame(1, &[0, 0, 0x51]), Some(DECOMPRESSION_FAILED)),
        ("a table that is not there", frame(1, &[1, 0, 0x80]), Some(DECOMPRESSION_FAILED)),
        ("a head of a gigabyte", vec![0x01, 0xc0, 0, 0, 0, 0x40, 0, 0, 0], None),
    ];
    let mut failures = Vec::new();
    for (name, bytes, expected) in rows {
        let connection = connect(&authority, &site).await;
        let outcome = outcome(&connection, &bytes).await;
        let as_expected = match &outcome {
            Ok(answer) => {
                // HEADERS, and a section that begins with a status: 200 would be 0xd9 (RFC 9204 appendix A).
                let has_status = answer.first() == Some(&1) && answer.get(7).is_some_and(|&status| status != 0xd9);
                has_status && expected.is_none()
            }
            Err(code) => expected == Some(*code),
        };
        if !as_expected {
            failures.push(format!("{name}: {outcome:x?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(origin.requests().is_empty());
}

/// RFC 8446 §2.2, RFC 9001 §4.6: a ticket is good for the next connection, also after a reload, and none of them is for early data; a new
/// certificate is shown to those who come without one, and connections that stand go on.
#[tokio::test]
async fn tickets_outlive_a_reload_and_certificates_are_swapped_by_it() {
    let mut authority = Authority::new();
    let (origin, mut site) = site(&authority, "");
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(get("/bad")).reply(ok("text"));
    let known = config(&authority, "h3");
    let endpoint = endpoint();
    let (mut standing, _connection) = client(&authority, &site).await;
    for round in 0..4 {
        let connecting = endpoint.connect_with(known.clone(), address(&site), HOST).expect("a valid address");
        match connecting.into_0rtt() {
            Ok(_) => panic!("early data is not taken"),
            Err(connecting) => {
                let connected = patiently("for a handshake", connecting).await;
                let connection = connected.unwrap_or_else(|error| panic!("round {round}: {error}"));
                // Tickets come with the first answer.
                outcome(&connection, &frame(1, &section(&GET))).await.expect("an answer");
            }
        }
        if round == 1 {
            authority.renew();
            let toml = format!("source = \"{}\"\n{}[server]\nhttp3 = true\n", origin.url(), authority.section());
            assert_eq!(site.reload(&toml), Ok(vec![]));
        }
    }
    // Who knows only the old one gets no further without a ticket; who knows the new one does.
    connect(&authority, &site).await;
    let (response, _) = answer(&mut standing, request("GET", "/post", &[]), "").await;
    assert_eq!(response.status().as_u16(), 200);
}

/// RFC 7301 §3.2, RFC 9114 §3.1: nothing but `h3` is spoken, and nobody is shown a certificate for a name that is not theirs.
#[tokio::test]
async fn those_who_want_something_else_are_let_go() {
    let authority = Authority::new();
    let (_origin, site) = site(&authority, "");
    for protocol in ["h2", "hq-interop"] {
        let connecting = endpoint().connect_with(config(&authority, protocol), address(&site), HOST).expect("a valid address");
        let error = patiently("for an end", connecting).await.expect_err("no protocol in common");
        // no_application_protocol, 120, as QUIC carries alerts (RFC 9001 §4.8).
        assert!(matches!(&error, ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0x178), "{error:?}");
    }
}

/// Takes what clients send to it to `server`, and brings nothing back. Counts, in datagrams and bytes: there, and what came back.
struct OneWay {
    address: SocketAddr,
    counted: Arc<[std::sync::atomic::AtomicUsize; 2]>,
    _task: tokio_util::task::AbortOnDropHandle<()>,
}

impl OneWay {
    #[expect(clippy::disallowed_methods, reason = "it ends with its handle")]
    async fn to(server: SocketAddr) -> Self {
        let front = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let back = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let (address, counted) = (front.local_addr().expect("bound"), Arc::<[std::sync::atomic::AtomicUsize; 2]>::default());
        let there = Arc::clone(&counted);
        let task = tokio::spawn(async move {
            let (mut one, mut other) = ([0; 2048], [0; 2048]);
            let add = |at: usize, bytes: usize| there[at].fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
            loop {
                tokio::select! {
                    Ok(bytes) = front.recv(&mut one) => {
                        add(0, bytes);
                        back.send_to(&one[..bytes], server).await.expect("sent");
                    }
                    Ok(bytes) = back.recv(&mut other) => { add(1, bytes); }
                }
            }
        });
        Self { address, counted, _task: tokio_util::task::AbortOnDropHandle::new(task) }
    }

    /// Bytes to the server, and bytes from it.
    fn counted(&self) -> (usize, usize) {
        let [there, back] = &*self.counted;
        (there.load(std::sync::atomic::Ordering::Relaxed), back.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// Returns the type of the packet with which a client's first one is answered (RFC 9000 §17.2). The bit that RFC 9287 lets vary is left
/// out.
async fn first_answer(authority: &Authority, server: SocketAddr) -> u8 {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let endpoint = endpoint();
    let connecting = endpoint.connect_with(config(authority, "h3"), socket.local_addr().expect("bound"), HOST).expect("a valid address");
    let mut datagram = [0; 2048];
    loop {
        let (length, from) = patiently("for a datagram", socket.recv_from(&mut datagram)).await.expect("a datagram");
        if from == server {
            drop(connecting);
            return datagram[0] >> 4 & 0b1011;
        }
        socket.send_to(&datagram[..length], server).await.expect("sent");
    }
}

/// RFC 9000 §8.1: an address that never answers is sent at most three times what came from it; and with many such handshakes under way, the
/// next client has to show that it is where it says, and is served then.
#[tokio::test]
async fn those_who_only_pretend_get_little_and_others_are_served_meanwhile() {
    const PRETENDERS: usize = 80;
    const INITIAL: u8 = 0b1000;
    const RETRY: u8 = 0b1011;
    let authority = Authority::new();
    let (origin, site) = site(&authority, "[limits]\nheader_timeout = \"30s\"\n");
    origin.on(get("/post")).reply(ok("text"));
    assert_eq!(first_answer(&authority, address(&site)).await, INITIAL);
    let one_way = OneWay::to(address(&site)).await;
    let (endpoint, config) = (endpoint(), config(&authority, "h3"));
    let connect_one = |_| endpoint.connect_with(config.clone(), one_way.address, HOST).expect("a valid address");
    let pretenders: Vec<_> = (0..PRETENDERS).map(connect_one).collect();
    let asked = async { while first_answer(&authority, address(&site)).await != RETRY {} };
    patiently("for a Retry", asked).await;
    let connection = connect(&authority, &site).await;
    let answer = outcome(&connection, &frame(1, &section(&[GET[0], GET[1], (":path", "/post"), GET[3]]))).await.expect("an answer");
    assert_eq!(answer[7], 0xd9, "200");
    let (there, back) = one_way.counted();
    assert!(there >= PRETENDERS * 1_200 && back > 0 && back <= 3 * there, "{there} bytes there, {back} back");
    drop(pretenders);
}

/// RFC 9110 §15.2, §10.1.1: what is told before the answer comes before the answer.
#[tokio::test]
async fn interim_responses_arrive_before_the_final_one() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("text").interim(103, &[("link", "</style.css>; rel=preload")]).gate(&gate));
    origin.on(testkit::any("/form")).reply_with(|seen| ok(seen.text().to_uppercase()).field("cache-control", "no-store"));
    let connection = connect(&authority, &site).await;
    let (mut send, mut receive) = connection.open_bi().await.expect("room");
    send.write_all(&frame(1, &section(&[GET[0], GET[1], (":path", "/post"), GET[3]]))).await.expect("sent");
    send.finish().expect("once");
    // HEADERS with a length in four bytes, no table, and a status: 103 is 0xd8, 100 is 0xff 0x00, 200 is 0xd9 (RFC 9204 appendix A).
    let mut head = [0; 8];
    patiently("for hints", receive.read_exact(&mut head)).await.expect("hints");
    assert_eq!((head[0], head[7]), (1, 0xd8), "{head:x?}");
    gate.open();
    let rest = patiently("for the rest", receive.read_to_end(4_096)).await.expect("a response");
    assert!(rest.ends_with(b"\0\x04text"), "{rest:x?}");

    for (base, more) in [(&POST, &[("content-length", "5")][..]), (&POST, &[]), (&GET, &[])] {
        let (mut send, mut receive) = connection.open_bi().await.expect("room");
        let to_form = [base[0], base[1], (":path", "/form"), base[3], ("expect", "100-continue")];
        send.write_all(&frame(1, &section(&[&to_form[..], more].concat()))).await.expect("sent");
        let mut head = [0; 9];
        patiently("for a 100", receive.read_exact(&mut head)).await.expect("a 100");
        assert_eq!(head[7..], [0xff, 0x00], "{head:x?}");
        send.write_all(&frame(0, b"hello")).await.expect("sent");
        send.finish().expect("once");
        let rest = patiently("for the rest", receive.read_to_end(4_096)).await.expect("a response");
        assert!(rest[7] == 0xd9 && rest.ends_with(b"\0\x05HELLO"), "{rest:x?}");
    }
}

/// RFC 9114 §4.1: what comes around the content is left out, what comes behind a request's end is not waited for, and a client that takes its
/// request back costs the origin no more.
#[tokio::test]
async fn messages_end_where_they_end() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    origin.on(post("/form")).reply_with(|seen| ok(seen.text()));
    let connection = connect(&authority, &site).await;
    let form = section(&[POST[0], POST[1], (":path", "/form"), POST[3]]);
    let unknown = frame(0x21, b"what nobody knows");
    let whole =
        [&unknown, &frame(1, &form), &unknown, &frame(0, b"a"), &unknown, &frame(0, b"b"), &frame(1, &section(&[("x", "y")])), &unknown];
    let answer = outcome(&connection, &whole.map(Vec::as_slice).concat()).await.expect("an answer");
    assert!(answer.ends_with(b"\0\x02ab"), "{answer:x?}");
    let pseudo_in_trailers = [frame(1, &form), frame(0, b"a"), frame(1, &section(&[(":path", "/")]))].concat();
    let refused = outcome(&connection, &pseudo_in_trailers).await;
    assert!(refused.as_ref().is_ok_and(|answer| answer[7] != 0xd9), "{refused:x?}");

    let (mut send, mut receive) = connection.open_bi().await.expect("room");
    send.write_all(&frame(1, &section(&[GET[0], GET[1], (":path", "/slow"), GET[3]]))).await.expect("sent");
    send.finish().expect("once");
    gate.arrived().await;
    receive.stop(0x10c_u32.into()).expect("once");
    // What is given back is a stream: with all of them taken, the next one waits for it.
    let answer = outcome(&connection, &frame(1, &section(&[GET[0], GET[1], (":path", "*"), GET[3]]))).await.expect("an answer");
    assert_ne!(answer[7], 0xd9);
    gate.open();
}

/// RFC 9114 §4.1.2: a message is malformed also if the frame that makes it so comes late, or never. Until its end it must not have gone on as a
/// whole one.
#[tokio::test]
async fn content_is_not_passed_on_as_whole_before_its_end() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(post("/bad")).reply(ok("taken"));
    origin.on(get("/bad")).reply(ok("taken"));
    origin.on(get("/other")).reply(ok("text"));
    let connection = connect(&authority, &site).await;
    let whole = |base: &[(&'static str, &'static str)], length| frame(1, &section(&[base, &[("content-length", length)]].concat()));
    let other = frame(1, &section(&[GET[0], GET[1], (":path", "/other"), GET[3]]));
    for base in [&POST, &GET] {
        for (length, first, rest) in [
            ("5", frame(0, b"hello"), frame(0, b"!")),
            ("5", [frame(0, b"hel"), frame(0, b"lo")].concat(), frame(0, b"!")),
            ("0", vec![], frame(0, b"!")),
            ("5", frame(0, b"hell"), vec![]),
            ("5", frame(0, b"hell"), frame(1, &section(&[("x", "y")]))),
        ] {
            let (mut send, mut receive) = connection.open_bi().await.expect("room");
            send.write_all(&[whole(base, length), first].concat()).await.expect("sent");
            // It has been looked at when one that was sent later is answered.
            outcome(&connection, &other).await.expect("an answer");
            let _ = send.write_all(&rest).await;
            let _ = send.finish();
            // An error, or a reset; 200 would be 0xd9.
            let answer = patiently("for an end", receive.read_to_end(4_096)).await;
            assert!(answer.as_ref().map_or(true, |answer| answer[7] != 0xd9), "{length}, {rest:x?}: {answer:x?}");
        }
    }
    assert!(origin.requests().iter().all(|seen| seen.target == "/other"), "{:#?}", origin.requests());

    let good = [whole(&POST, "5"), frame(0, b"hel"), frame(0, b"lo"), frame(0, b""), frame(1, &section(&[("x", "y")]))].concat();
    assert_eq!(outcome(&connection, &good).await.expect("an answer")[7], 0xd9);
    assert_eq!(origin.last("/bad").text(), "hello");
}

/// RFC 9110 §9.3.1: whoever means something by the content of a GET gets it, and no stored page, whether or not its length is said. An empty frame
/// is not content.
#[tokio::test]
async fn content_of_a_get_reaches_the_origin() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(testkit::any("/bad")).reply_with(|seen| ok(format!("{} {}", seen.method, seen.text())).field("cache-control", "max-age=60"));
    let (mut send, _connection) = client(&authority, &site).await;
    assert_eq!(answer(&mut send, request("GET", "/bad", &[]), "").await.1, "GET ");
    for method in ["GET", "HEAD", "OPTIONS"] {
        for fields in [&[][..], &[("content-length", "5")]] {
            let (response, content) = answer(&mut send, request(method, "/bad", fields), "query").await;
            assert_eq!(response.status().as_u16(), 200);
            assert!(method == "HEAD" || content == format!("{method} query"), "{content}");
            let seen = origin.last("/bad");
            assert_eq!((&*seen.method, &*seen.text()), (method, "query"));
        }
    }
    assert_eq!(origin.count("/bad"), 7);
    let connection = connect(&authority, &site).await;
    let empty = [frame(1, &section(&GET)), frame(0, b"")].concat();
    assert_eq!(outcome(&connection, &empty).await.expect("an answer")[7], 0xd9);
    assert_eq!(origin.count("/bad"), 7, "it is a hit");
}

/// The limits are those of all connections: in number, in time, and for heads.
#[tokio::test]
async fn limits_are_kept() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "[limits]\nconnections = 2\nheader_timeout = \"100ms\"\nidle_timeout = \"300ms\"\n");
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    origin.on(get("/bad")).reply(ok("text"));
    let slow = frame(1, &section(&[GET[0], GET[1], (":path", "/slow"), GET[3]]));
    let first = connect(&authority, &site).await;
    let (mut send, mut receive) = first.open_bi().await.expect("room");
    send.write_all(&frame(1, &section(&GET))[..20]).await.expect("sent");
    let answer = patiently("for a 408", receive.read_to_end(4_096)).await.expect("an answer");
    // A literal status with the name at 24 (RFC 9204 §4.5.4).
    assert_eq!(answer[7..13], *b"\x5f\x09\x03408", "{answer:x?}");
    let second = connect(&authority, &site).await;
    // While they wait for answers, neither is idle.
    let waiting = [&first, &second].map(|connection| outcome(connection, &slow));
    let waiting = futures_util::future::join_all(waiting);
    let third = endpoint().connect_with(config(&authority, "h3"), address(&site), HOST).expect("a valid address");
    let refused = async {
        gate.arrived().await;
        let refused = patiently("to be refused", third).await.expect_err("one too many");
        gate.open();
        refused
    };
    let (answers, refused) = tokio::join!(waiting, refused);
    assert!(answers.iter().flatten().all(|answer| answer[7] == 0xd9), "{answers:x?}");
    // CONNECTION_REFUSED (RFC 9000 §20.1).
    assert!(matches!(&refused, ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0x2), "{refused:?}");
    for idle in [first, second] {
        match patiently("for an idle connection to be closed", idle.closed()).await {
            ConnectionError::ApplicationClosed(close) => assert_eq!(u64::from(close.error_code), 0x100, "H3_NO_ERROR"),
            other => panic!("{other:?}"),
        }
    }
    let third = connect(&authority, &site).await;
    assert!(outcome(&third, &frame(1, &section(&GET))).await.is_ok_and(|answer| answer[7] == 0xd9));
}

/// RFC 9114 §6.2, §10.5: streams that are opened for nothing are counted, and whoever opens too many is cut off; others are served.
#[tokio::test]
async fn floods_are_cut_off() {
    const EXCESSIVE_LOAD: u64 = 0x107;
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/post")).reply(ok("text"));
    let flood = async |connection: &Connection, what: &str| -> Option<()> {
        match what {
            "requests that are given up" => {
                let (mut send, mut receive) = connection.open_bi().await.ok()?;
                send.write_all(&frame(1, &section(&GET))[..10]).await.ok()?;
                send.reset(0x10c_u32.into()).ok()?;
                receive.stop(0x10c_u32.into()).ok()?;
            }
            "malformed requests" => {
                let (mut send, mut receive) = connection.open_bi().await.ok()?;
                send.write_all(&frame(1, &section(&GET[..1]))).await.ok()?;
                send.finish().ok()?;
                let _ = receive.read_to_end(10).await;
            }
            "streams that nobody knows" => {
                let mut send = connection.open_uni().await.ok()?;
                send.write_all(&[0x21]).await.ok()?;
                let _ = send.stopped().await;
            }
            _ => {
                let (mut send, _receive) = connection.open_bi().await.ok()?;
                send.write_all(&frame(1, &section(&POST))).await.ok()?;
                for _ in 0..200 {
                    send.write_all(&frame(0, b"").repeat(50)).await.ok()?;
                }
            }
        }
        Some(())
    };
    for what in ["requests that are given up", "malformed requests", "streams that nobody knows", "content of nothing"] {
        let connection = connect(&authority, &site).await;
        let flooding = async { while flood(&connection, what).await.is_some() {} };
        patiently(what, flooding).await;
        match patiently(what, connection.closed()).await {
            ConnectionError::ApplicationClosed(close) => assert_eq!(u64::from(close.error_code), EXCESSIVE_LOAD, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
    let (mut send, _connection) = client(&authority, &site).await;
    let (response, _) = answer(&mut send, request("GET", "/post", &[]), "").await;
    assert_eq!(response.status().as_u16(), 200);
}

/// HTTP/3 is always encrypted: without anything that brings a certificate, the start fails and says what to do.
#[test]
fn without_https_there_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let errors =
        crate::site::settings(folder.path(), "source = \"http://127.0.0.1:9\"\n[server]\nhttp3 = true\n").expect_err("no certificate");
    let errors = errors.to_string();
    assert!(errors.contains("HTTP/3 is always encrypted") && errors.contains("--domain NAME"), "{errors}");
}
