//! HTTP/2: RFC 9113; a client of its own (h2) for what is well-formed, raw frames for what is not.

use std::{future::poll_fn, thread};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Response};
use rustls::version::TLS13;
use testkit::{Gate, get, ok, patiently, post, secs, status};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::{
    site::{HOST, Site, site_with},
    tls::{Authority, connect, site},
};

async fn raw(authority: &Authority, site: &Site) -> TlsStream<TcpStream> {
    connect(site, &authority.client(&[&TLS13], "h2")).await.expect("a handshake")
}

/// Returns a client whose windows are this large.
#[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
pub(crate) async fn client(
    authority: &Authority,
    site: &Site,
    window: u32,
) -> (SendRequest<Bytes>, tokio::task::JoinHandle<Result<(), h2::Error>>) {
    let stream = raw(authority, site).await;
    let (send, connection) = h2::client::Builder::new().initial_window_size(window).handshake(stream).await.expect("a preface");
    (send, tokio::spawn(connection))
}

pub(crate) fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(format!("https://{HOST}{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

pub(crate) async fn answer(send: &mut SendRequest<Bytes>, request: Request<()>, body: &'static str) -> (Response<()>, String) {
    let mut ready = send.clone().ready().await.expect("room for a stream");
    let (response, mut stream) = ready.send_request(request, body.is_empty()).expect("sent");
    if !body.is_empty() {
        stream.send_data(Bytes::from_static(body.as_bytes()), true).expect("sent");
    }
    let (parts, mut incoming) = patiently("for a response", response).await.expect("a response").into_parts();
    let mut content = Vec::new();
    while let Some(data) = patiently("for content", incoming.data()).await {
        let data = data.expect("content");
        let _ = incoming.flow_control().release_capacity(data.len());
        content.extend_from_slice(&data);
    }
    (Response::from_parts(parts, ()), String::from_utf8(content).expect("text"))
}

/// A request goes through the same pipeline: a miss, then a hit; and the origin gets a request as HTTP/1 has it.
#[tokio::test]
async fn a_request_is_what_it_would_be_in_http_1() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    origin.on(post("/form")).reply_with(|seen| ok(seen.text().to_uppercase()));
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    for status in ["uri-miss", "hit"] {
        let (response, content) = answer(&mut send, request("GET", "/post", &[]), "").await;
        assert_eq!((response.status().as_u16(), content.as_str()), (200, "text"));
        assert!(response.headers()["cache-status"].to_str().expect("text").contains(status), "{response:?}");
    }
    let (response, content) = answer(&mut send, request("HEAD", "/post", &[]), "").await;
    assert_eq!((response.headers()["content-length"].as_bytes(), content.as_str()), (&b"4"[..], ""));

    let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("content-length", "5")];
    let (response, content) = answer(&mut send, request("POST", "/form", &fields), "hello").await;
    assert_eq!((response.status().as_u16(), content.as_str()), (200, "HELLO"));
    let requests = origin.requests();
    let seen = requests.iter().find(|seen| seen.method == "POST").expect("it came");
    let field = |name| seen.field(name).unwrap_or_default();
    assert_eq!([field("cookie"), field("host"), field("x-forwarded-proto"), field("te")], ["a=1; b=2", HOST, "https", ""]);
    assert_eq!(field("via"), "2 seawall");
}

/// RFC 9110 §15.5.6: a refusal says the same over every version of HTTP, and a 405 names the methods that are allowed.
#[tokio::test]
async fn a_refusal_is_what_it_would_be_in_http_1() {
    let authority = Authority::new();
    let (_origin, site) = site(&authority, "");
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    let tunnel = Request::builder().method("CONNECT").uri(format!("{HOST}:443")).body(()).expect("a request");
    let (response, content) = answer(&mut send, tunnel, "").await;
    assert_eq!((response.status().as_u16(), content.as_str()), (405, "405 Method Not Allowed: this is not a tunnel\n"));
    assert_eq!(response.headers()["allow"], "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
}

/// RFC 9113 §5.2: a page goes out as the client's window allows, a stored one too.
#[tokio::test]
async fn small_windows_get_everything_in_small_pieces() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let page = "0123456789abcdef".repeat(1 << 13);
    origin.on(get("/large")).reply(ok(page.clone()).field("cache-control", "max-age=60"));
    let (mut send, _connection) = client(&authority, &site, 1_000).await;
    for _ in 0..2 {
        let (_, content) = answer(&mut send, request("GET", "/large", &[]), "").await;
        assert_eq!(content.len(), page.len());
    }
    assert_eq!(origin.requests().len(), 1);
}

/// A client that opens no window keeps its stream for the time that it may take nothing, and no longer.
#[tokio::test]
async fn a_window_that_stays_shut_is_not_waited_for() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "[limits]\nwrite_timeout = \"100ms\"\n");
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/post").await;
    let (mut send, _connection) = client(&authority, &site, 0).await;
    let mut other = send.clone().ready().await.expect("room");
    let (response, _) = other.send_request(request("GET", "/post", &[]), true).expect("sent");
    let mut incoming = patiently("for a head", response).await.expect("a head").into_body();
    let reset = patiently("for a reset", incoming.data()).await.expect("an end").expect_err("no content fits");
    assert_eq!(reset.reason(), Some(h2::Reason::CANCEL));
    let (response, _) = answer(&mut send, request("HEAD", "/post", &[]), "").await;
    assert_eq!(response.status().as_u16(), 200, "the connection goes on");
}

/// RFC 9113 §6.8: a stop lets requests under way end, and says so.
#[tokio::test]
async fn a_stop_says_goodbye() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    let (send, connection) = client(&authority, &site, 65_535).await;
    let (_idle, idle_connection) = client(&authority, &site, 65_535).await;
    let mut ready = send.ready().await.expect("room");
    let (response, _) = ready.send_request(request("GET", "/slow", &[]), true).expect("sent");
    gate.arrived().await;
    let stopping = thread::spawn(move || site.stop(secs(30)));
    patiently("for the end of the idle one", idle_connection).await.expect("no panic").expect("GOAWAY without an error");
    gate.open();
    let mut incoming = patiently("for the response", response).await.expect("a response").into_body();
    assert_eq!(incoming.data().await.expect("content").expect("content"), "slow");
    drop(incoming);
    patiently("for the end", connection).await.expect("no panic").expect("GOAWAY without an error");
    stopping.join().expect("stopped");
}

/// RFC 9113 §3.3: without TLS to those who begin with it, if that is wanted; never in the middle of a connection.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
async fn without_tls_to_those_who_know_if_it_is_wanted() {
    let (origin, site) = site_with("[server]\nh2c = true\n").await;
    origin.on(get("/post")).reply_with(|seen| ok(seen.field("x-forwarded-proto").unwrap_or_default()));
    let stream = TcpStream::connect(site.address()).await.expect("connected");
    let (mut send, connection) = h2::client::handshake(stream).await.expect("a preface");
    tokio::spawn(connection);
    let (response, content) = answer(&mut send, request("GET", "/post", &[]), "").await;
    assert_eq!((response.status().as_u16(), content.as_str()), (200, "http"));
    site.get("/post").await.status(200).body("http");

    let mut used = site.client().await;
    used.get("/post").await.status(200);
    used.send_raw(PREFACE).await;
    used.read_answer().await.status(505);
    let (_origin, site) = site_with("").await;
    let mut client = site.client().await;
    client.send_raw(PREFACE).await;
    client.read_answer().await.status(505);
}

/// RFC 8441: a stream becomes a tunnel to an origin that speaks HTTP/1 (here one that echoes); others go on beside it.
#[tokio::test]
async fn a_websocket_is_carried_by_a_stream() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/live")).upgrade_echo("websocket");
    origin.on(get("/post")).reply(ok("text"));
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    answer(&mut send, request("GET", "/post", &[]), "").await;
    assert!(send.is_extended_connect_protocol_enabled());
    let mut connect = request("CONNECT", "/live", &[("sec-websocket-version", "13")]);
    connect.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let mut ready = send.clone().ready().await.expect("room for a stream");
    let (response, mut out) = ready.send_request(connect, false).expect("sent");
    let response = patiently("for the tunnel", response).await.expect("a response");
    assert_eq!(response.status().as_u16(), 200);
    let mut incoming = response.into_body();
    for message in ["one", "two"] {
        out.send_data(Bytes::from_static(message.as_bytes()), false).expect("sent");
        assert_eq!(patiently("for the echo", incoming.data()).await.expect("content").expect("content"), message);
        answer(&mut send, request("GET", "/post", &[]), "").await;
    }
    out.send_data(Bytes::new(), true).expect("sent");
    assert!(patiently("for the end", incoming.data()).await.is_none_or(|data| data.is_ok_and(|data| data.is_empty())));
    let seen = origin.requests().into_iter().find(|seen| seen.target == "/live").expect("it came");
    let field = |name| seen.field(name).unwrap_or_default();
    assert_eq!([seen.method.as_str(), &field("upgrade"), &field("sec-websocket-version")], ["GET", "websocket", "13"]);
    assert_eq!(field("sec-websocket-key").len(), 24, "16 bytes in base64 (RFC 6455 §4.1)");
}

/// RFC 8441 §5: an origin that will have none of it is asked as always, and what it says is the answer.
#[tokio::test]
async fn a_declined_websocket_is_an_ordinary_answer() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/live")).reply(status(403).body("no"));
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    let mut connect = request("CONNECT", "/live", &[]);
    // What the server can, it says in its settings: known once an answer has come.
    answer(&mut send, request("GET", "/live", &[]), "").await;
    connect.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let mut ready = send.ready().await.expect("room for a stream");
    let (response, _out) = ready.send_request(connect, false).expect("sent");
    let mut response = patiently("for the answer", response).await.expect("a response");
    assert_eq!(response.status().as_u16(), 403);
    assert_eq!(response.body_mut().data().await.expect("content").expect("content"), "no");
}

/// RFC 8441 §5: a 200 to a CONNECT is the tunnel. A page that an origin sends instead must not come out of one; nor has a tunnel a length, by
/// which an origin would take the next request for content.
#[tokio::test]
async fn no_page_is_taken_for_a_tunnel_and_no_request_for_content() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/page")).reply(ok("text").field("cache-control", "max-age=60"));
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    answer(&mut send, request("GET", "/page", &[]), "").await;
    let mut connect = request("CONNECT", "/page", &[]);
    connect.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let mut ready = send.clone().ready().await.expect("room for a stream");
    let (response, _out) = ready.send_request(connect, false).expect("sent");
    assert_eq!(patiently("for the answer", response).await.expect("a response").status().as_u16(), 502);
    let seen = origin.requests().len();
    let connect = [(":method", "CONNECT"), (":protocol", "websocket"), GET[1], (":path", "/page"), GET[3], ("content-length", "300")];
    let mut stream = raw(&authority, &site).await;
    stream.write_all(&[PREFACE, &frame(1, 4, 1, &block(&connect))].concat()).await.expect("sent");
    assert_eq!(outcome(&mut stream).await, None, "it is reset");
    assert_eq!(origin.requests().len(), seen);
}

/// RFC 8297: hints come before the page is there.
#[tokio::test]
async fn interim_responses_come_before_the_answer() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let gate = Gate::new();
    let hints = [("link", "</style.css>; rel=preload; as=style")];
    origin.on(get("/post")).reply(ok("text").interim(103, &hints).gate(&gate));
    let (send, _connection) = client(&authority, &site, 65_535).await;
    let mut ready = send.ready().await.expect("room for a stream");
    let (mut response, _) = ready.send_request(request("GET", "/post", &[]), true).expect("sent");
    let interim = patiently("for the hints", poll_fn(|cx| response.poll_informational(cx))).await.expect("hints").expect("hints");
    assert_eq!((interim.status().as_u16(), interim.headers()["link"].as_bytes()), (103, hints[0].1.as_bytes()));
    gate.open();
    assert_eq!(patiently("for the answer", response).await.expect("a response").status().as_u16(), 200);
}

/// RFC 9218 §10: what is urgent leaves first, whatever was asked for first; what is only of use when it is whole is not mixed with others.
#[tokio::test]
async fn urgent_pages_leave_first() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    for page in ["/later", "/first", "/second", "/third"] {
        origin.on(get(page)).reply(ok("x".repeat(40_000)).field("cache-control", "max-age=60"));
        answer(&mut send, request("GET", page, &[]), "").await;
    }
    let ask = |stream: u8, path: &'static str, priority: &'static str| {
        frame(1, 5, stream, &block(&[GET[0], GET[1], (":path", path), GET[3], ("priority", priority)]))
    };
    let asked = [ask(1, "/later", "u=5"), ask(3, "/second", ""), ask(5, "/third", "u=3"), ask(7, "/first", "u=0")].concat();
    let mut stream = raw(&authority, &site).await;
    // The window of the connection stays as it is at first: not even two pages fit (RFC 9113 §6.9.2).
    stream.write_all(&[PREFACE, &asked].concat()).await.expect("sent");
    let mut order = contents(&mut stream, 65_535).await;
    // A change of mind (RFC 9218 §7.1): now the last is the most urgent.
    let more = [frame(16, 0, 0, b"\0\0\0\x01u=1"), frame(8, 0, 0, &200_000_u32.to_be_bytes())].concat();
    stream.write_all(&more).await.expect("sent");
    order.extend(contents(&mut stream, 4 * 40_000 - 65_535).await);
    order.dedup();
    assert_eq!(order, [7, 3, 1, 3, 5]);
}

/// Returns the streams whose content came, frame by frame, until there were this many bytes.
async fn contents(stream: &mut TlsStream<TcpStream>, mut bytes: usize) -> Vec<u8> {
    let mut streams = Vec::new();
    while bytes > 0 {
        let mut head = [0_u8; 9];
        patiently("for a frame", stream.read_exact(&mut head)).await.expect("a frame");
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        patiently("for its payload", stream.read_exact(&mut payload)).await.expect("a payload");
        if head[3] == 0 {
            streams.push(head[8]);
            bytes -= payload.len();
        }
    }
    streams
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&[0, length[0], length[1], kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Fields without compression (RFC 7541 §6.2.2), so that anything can be said.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut whole = Vec::new();
    for (name, value) in fields {
        // "Literal, not indexed, with a new name".
        whole.push(0);
        for text in [name, value] {
            whole.push(u8::try_from(text.len()).expect("under 127"));
            whole.extend_from_slice(text.as_bytes());
        }
    }
    whole
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":path", "/bad"), (":authority", HOST)];
const POST: [(&str, &str); 4] = [(":method", "POST"), (":scheme", "https"), (":path", "/bad"), (":authority", HOST)];

/// Returns what becomes of the first stream: its status from the first HEADERS, or nothing if it was reset or the connection was closed.
async fn outcome(stream: &mut TlsStream<TcpStream>) -> Option<Vec<u8>> {
    let mut head = [0_u8; 9];
    loop {
        if patiently("for a frame", stream.read_exact(&mut head)).await.is_err() {
            return None;
        }
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).await.is_err() {
            return None;
        }
        match (head[3], head[8]) {
            (1, 1) => return Some(payload),
            (3, 1) | (7, _) => return None,
            _ => {}
        }
    }
}

/// RFC 9113 §8.1.1, §8.2, §8.3, §10.3, §10.5: what is malformed is reset or refused, and no origin hears of it. None is answered 200, whose HPACK
/// form is one byte, 0x88 (RFC 7541 appendix A).
#[tokio::test]
async fn no_malformed_request_reaches_the_origin() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let with = |base: &[(&'static str, &'static str)], more: &[(&'static str, &'static str)]| block(&[base, more].concat());
    let get = |more: &[(&'static str, &'static str)]| vec![frame(1, 5, 1, &with(&GET, more))];
    let only = |fields: &[(&'static str, &'static str)]| vec![frame(1, 5, 1, &block(fields))];
    let upload = |more: &[(&'static str, &'static str)], body: &[u8]| vec![frame(1, 4, 1, &with(&POST, more)), frame(0, 1, 1, body)];
    let promised = frame(1, 4, 1, &with(&POST, &[("content-length", "5")]));
    let more_in_sum = vec![promised.clone(), frame(0, 0, 1, b"hel"), frame(0, 1, 1, b"low")];
    let less_then_trailers = vec![promised, frame(0, 0, 1, b"hell"), frame(1, 5, 1, &block(&[("x", "y")]))];
    let many = vec![("a", "b"); 120];
    let rows: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("CR LF in a value", get(&[("x", "a\r\ntransfer-encoding: chunked")])),
        ("LF in a value", get(&[("x", "a\nb: c")])),
        ("NUL in a value", get(&[("x", "a\0b")])),
        ("a blank before a value", get(&[("x", " a")])),
        ("a blank after a value", get(&[("x", "a ")])),
        ("a name in capitals", get(&[("X-Name", "a")])),
        ("a colon in a name", get(&[("x:y", "a")])),
        ("a line end in a name", get(&[("x\r\ny", "a")])),
        ("a name that is empty", get(&[("", "a")])),
        ("connection", get(&[("connection", "close")])),
        ("transfer-encoding", upload(&[("transfer-encoding", "chunked")], b"0\r\n\r\n")),
        ("upgrade", get(&[("upgrade", "h2c")])),
        ("keep-alive", get(&[("keep-alive", "1")])),
        ("proxy-connection", get(&[("proxy-connection", "close")])),
        ("te other than trailers", get(&[("te", "gzip")])),
        ("more content than its length", upload(&[("content-length", "1")], b"hello")),
        ("less content than its length", upload(&[("content-length", "9")], b"hello")),
        ("content where none was promised", upload(&[("content-length", "0")], b"hello")),
        ("content of a GET that promised none", vec![frame(1, 4, 1, &with(&GET, &[("content-length", "0")])), frame(0, 1, 1, b"hello")]),
        ("a length and nothing else", vec![frame(1, 5, 1, &with(&POST, &[("content-length", "5")]))]),
        ("a GET with a length and nothing else", get(&[("content-length", "5")])),
        ("a HEAD with a length and nothing else", only(&[(":method", "HEAD"), GET[1], GET[2], GET[3], ("content-length", "5")])),
        ("more content in sum", more_in_sum),
        ("less content, then trailers", less_then_trailers),
        ("content after its end", [&upload(&[], b"hello")[..], &[frame(0, 1, 1, b"hello")]].concat()),
        ("two lengths", upload(&[("content-length", "5"), ("content-length", "6")], b"hello")),
        ("a length with a sign", upload(&[("content-length", "+5")], b"hello")),
        ("a host that differs", get(&[("host", "other.example")])),
        ("two hosts", get(&[("host", HOST), ("host", HOST)])),
        ("more fields than allowed", get(&many)),
        ("an unknown pseudo-field", get(&[(":x", "a")])),
        ("a pseudo-field of responses", get(&[(":status", "200")])),
        ("two methods", get(&[(":method", "GET")])),
        ("two paths", get(&[(":path", "/")])),
        ("a pseudo-field after a field", only(&[("x", "a"), GET[0], GET[1], GET[2], GET[3]])),
        ("no method", only(&GET[1..])),
        ("no scheme", only(&[GET[0], GET[2], GET[3]])),
        ("no path", only(&[GET[0], GET[1], GET[3]])),
        ("no authority", only(&GET[..3])),
        ("an empty path", only(&[GET[0], GET[1], (":path", ""), GET[3]])),
        ("a path without a slash", only(&[GET[0], GET[1], (":path", "bad"), GET[3]])),
        ("a blank in the path", only(&[GET[0], GET[1], (":path", "/bad HTTP/1.1"), GET[3]])),
        ("a line end in the path", only(&[GET[0], GET[1], (":path", "/bad\r\nx: y"), GET[3]])),
        ("a line end in the method", only(&[(":method", "GET / HTTP/1.1\r\nx: y"), GET[1], GET[2], GET[3]])),
        ("a method in small letters", only(&[(":method", "get"), GET[1], GET[2], GET[3]])),
        ("a user in the authority", only(&[GET[0], GET[1], GET[2], (":authority", "u@blog.example")])),
        ("a path in the authority", only(&[GET[0], GET[1], GET[2], (":authority", "blog.example/x")])),
        ("CONNECT", only(&[(":method", "CONNECT"), (":authority", "blog.example:443")])),
        ("an asterisk for GET", only(&[GET[0], GET[1], (":path", "*"), GET[3]])),
        ("content before its head", vec![frame(0, 1, 1, b"hello")]),
        ("a stream of the server's", vec![frame(1, 5, 2, &block(&GET))]),
        ("a head that depends on itself", vec![frame(1, 0x25, 1, &[&[0, 0, 0, 1, 0][..], &block(&GET)].concat())]),
        ("an index that is not in the table", vec![frame(1, 5, 1, &[0xff, 0xff, 0x7f])]),
        ("a frame between head and continuation", vec![frame(1, 1, 1, &block(&GET)), frame(6, 0, 0, &[0; 8])]),
    ];
    let mut failures = Vec::new();
    for (name, frames) in rows {
        let mut stream = raw(&authority, &site).await;
        stream.write_all(&[PREFACE, &frames.concat()].concat()).await.expect("sent");
        let answered = outcome(&mut stream).await;
        if answered.as_ref().is_some_and(|head| head.first() == Some(&0x88)) {
            failures.push(format!("{name}: {answered:x?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(origin.requests().is_empty(), "{:#?}", origin.requests());
}

/// RFC 9113 §8.1.1: a message is malformed also if the frame that makes it so comes late. Until then it must not have gone on as a whole one.
#[tokio::test]
async fn content_is_not_passed_on_as_whole_before_its_end() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(post("/bad")).reply(ok("taken"));
    origin.on(get("/bad")).reply(ok("taken"));
    for (base, length, content) in [(&POST, "5", "hello"), (&POST, "0", ""), (&GET, "5", "hello"), (&GET, "0", "")] {
        let mut stream = raw(&authority, &site).await;
        let head = block(&[&base[..], &[("content-length", length)]].concat());
        let ping = frame(6, 0, 0, b"are we?!");
        stream.write_all(&[PREFACE, &frame(1, 4, 1, &head), &frame(0, 0, 1, content.as_bytes()), &ping].concat()).await.expect("sent");
        // Settings, their acknowledgement, and the ping: all before it has been looked at.
        let mut seen = Vec::new();
        while !seen.windows(8).any(|bytes| bytes == b"are we?!") {
            seen.push(patiently("for a ping", stream.read_u8()).await.expect("a byte"));
        }
        stream.write_all(&frame(0, 1, 1, b"!")).await.expect("sent");
        assert_eq!(outcome(&mut stream).await, None, "{base:?}, {length}: it is reset");
    }
    assert!(origin.requests().is_empty(), "{:#?}", origin.requests());

    let mut stream = raw(&authority, &site).await;
    let head = block(&[&POST[..], &[("content-length", "5")]].concat());
    let frames = [PREFACE, &frame(1, 4, 1, &head), &frame(0, 0, 1, b"hello"), &frame(0, 1, 1, b"")].concat();
    stream.write_all(&frames).await.expect("sent");
    assert_eq!(outcome(&mut stream).await.expect("an answer")[0], 0x88);
    assert_eq!(origin.last("/bad").text(), "hello");
}

/// RFC 9110 §9.3.1: whoever means something by the content of a GET gets it, and no stored page, whether or not its length is said. An empty frame
/// is not content.
#[tokio::test]
async fn content_of_a_get_reaches_the_origin() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(testkit::any("/bad")).reply_with(|seen| ok(format!("{} {}", seen.method, seen.text())).field("cache-control", "max-age=60"));
    let (mut send, _connection) = client(&authority, &site, 65_535).await;
    assert_eq!(answer(&mut send, request("GET", "/bad", &[]), "").await.1, "GET ");
    for method in ["GET", "HEAD", "OPTIONS"] {
        for fields in [&[][..], &[("content-length", "5")], &[("expect", "100-continue")]] {
            let (response, content) = answer(&mut send, request(method, "/bad", fields), "query").await;
            assert_eq!(response.status().as_u16(), 200);
            assert!(method == "HEAD" || content == format!("{method} query"), "{content}");
            let seen = origin.last("/bad");
            assert_eq!((&*seen.method, &*seen.text()), (method, "query"));
        }
    }
    assert_eq!(origin.count("/bad"), 10);
    let (response, content) = answer(&mut send, request("GET", "/bad", &[]), "").await;
    assert!(response.headers()["cache-status"].to_str().expect("text").contains("hit") && content == "GET ", "{response:?}");
    let mut stream = raw(&authority, &site).await;
    stream.write_all(&[PREFACE, &frame(1, 4, 1, &block(&GET)), &frame(0, 1, 1, b"")].concat()).await.expect("sent");
    assert_eq!(outcome(&mut stream).await.expect("an answer")[0], 0x88);
    assert_eq!(origin.count("/bad"), 10, "it is a hit");
}

/// CVE-2019-9512, -9515, -9518, CVE-2023-44487, CVE-2024-27316: who only keeps us busy is cut off, and others are served.
#[tokio::test]
async fn floods_are_cut_off() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/post")).reply(ok("text"));
    let ping = frame(6, 0, 0, &[0; 8]);
    let settings = frame(4, 0, 0, &[]);
    let empty = [frame(1, 4, 1, &block(&POST)), frame(0, 0, 1, &[]).repeat(100)].concat();
    let continuation = [frame(1, 0, 1, &block(&GET)), frame(9, 0, 1, &block(&[("a", "b")])).repeat(100)].concat();
    for (name, flood) in [("ping", ping), ("settings", settings), ("empty data", empty), ("continuation", continuation)] {
        let mut stream = raw(&authority, &site).await;
        stream.write_all(PREFACE).await.expect("sent");
        let (mut reading, mut writing) = tokio::io::split(stream);
        let sent = async {
            let mut frames = 0;
            while frames < 100_000 && writing.write_all(&flood).await.is_ok() {
                frames += 1;
            }
            frames
        };
        let drained = async {
            let mut sink = [0; 4096];
            while reading.read(&mut sink).await.is_ok_and(|n| n > 0) {}
        };
        let (frames, ()) = patiently(name, async { tokio::join!(sent, drained) }).await;
        assert!(frames < 100_000, "{name}");
    }
    site.get("/post").await.status(200);
}

/// CVE-2025-8671: requests that a client makes us reset cost as much as those that it resets. Enough of them, and it is told to calm down.
#[tokio::test]
async fn who_makes_us_reset_is_cut_off() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin.on(get("/bad")).reply(ok("text"));
    let mut stream = raw(&authority, &site).await;
    let mut flood = PREFACE.to_vec();
    for id in (1..800_u16).step_by(2) {
        for mut frame in [frame(1, 5, 0, &block(&GET)), frame(8, 0, 0, &[0; 4])] {
            frame[7..9].copy_from_slice(&id.to_be_bytes());
            flood.extend(frame);
        }
    }
    stream.write_all(&flood).await.expect("sent");
    let mut head = [0_u8; 9];
    let code = loop {
        patiently("for a frame", stream.read_exact(&mut head)).await.expect("a goodbye comes first");
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).await.expect("a payload");
        if head[3] == 7 {
            break payload[4..8].to_vec();
        }
    };
    assert_eq!(code, [0, 0, 0, 11], "ENHANCE_YOUR_CALM");
    assert!(patiently("for the end", stream.read_exact(&mut head)).await.is_err());
}

/// A client that goes while it is answered stands in the log as one that went.
#[tokio::test]
async fn who_goes_is_logged_as_gone() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "[log]\naccess = \"./access.log\"\n");
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").field("cache-control", "no-store").gate(&gate));
    let (mut send, connection) = client(&authority, &site, 65_535).await;
    let (_response, _) = send.send_request(request("GET", "/slow", &[]), true).expect("sent");
    gate.arrived().await;
    connection.abort();
    assert!(connection.await.expect_err("it was ended").is_cancelled());
    let is_logged =
        || std::fs::read_to_string(site.folder().join("access.log")).is_ok_and(|log| log.contains("\"GET /slow HTTP/2.0\" 499 "));
    patiently("for its line", async {
        while !is_logged() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    gate.open();
}
