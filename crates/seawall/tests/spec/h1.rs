//! HTTP/1.1 and HTTP/1.0 on the wire: RFC 9112 §3, §6, §7, §9; RFC 9110 §7.8 (Upgrade), §9.3.2 (HEAD), §10.1.1 (Expect).

use testkit::{Client, Gate, Req, get, ok, post, status};

use crate::site::{HOST, Site, site, site_with};

fn page(text: &'static str) -> testkit::Reply {
    ok(text).field("cache-control", "max-age=60")
}

/// RFC 9112 §9.3: a connection goes on, through hits, misses, errors and uploads.
#[tokio::test]
async fn a_connection_is_kept_alive() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/passed")).reply(ok("passed").field("cache-control", "no-store"));
    origin.on(post("/form")).reply(ok("thanks"));
    let mut client = site.client().await;
    for _ in 0..2 {
        client.get("/post").await.status(200).body("text").no_field("connection");
        client.get("/passed").await.status(200).body("passed");
        client.head("/post").await.status(200);
        client.request(Req::post("/form").body("a=1")).await.status(200).body("thanks");
        client.get("/post").await.status(200).body("text").cache_status("hit");
    }
}

/// RFC 9112 §9.3.2: answers come in the order of their requests, whether they are hits or not.
#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (origin, site) = site().await;
    for target in ["/a", "/b", "/c"] {
        origin.on(get(target)).reply(ok(target).field("cache-control", "max-age=60"));
    }
    origin.on(get("/slow")).reply(ok("/slow").field("cache-control", "no-store"));
    site.get("/a").await;
    let mut client = site.client().await;
    let targets = ["/a", "/b", "/a", "/slow", "/a", "/a", "/c", "/slow", "/b"];
    let all: Vec<u8> = targets.iter().flat_map(|target| Req::get(target).to_bytes(HOST)).collect();
    client.send_raw(all).await;
    for target in targets {
        client.read_answer().await.status(200).body(target);
    }
    client.get("/a").await.body("/a").cache_status("hit");
}

/// Also when uploads are among them, and the connection has changed hands for that.
#[tokio::test]
async fn uploads_may_be_pipelined_between_pages() {
    let (origin, site) = site().await;
    origin.on(get("/a")).reply(page("a"));
    origin.on(post("/form")).reply_with(|seen| ok(seen.body.clone()));
    let mut client = site.client().await;
    let requests = [Req::get("/a"), Req::post("/form").body("one"), Req::get("/a"), Req::post("/form").body("two"), Req::get("/a")];
    client.send_raw(requests.iter().flat_map(|request| request.to_bytes(HOST)).collect::<Vec<u8>>()).await;
    for body in ["a", "one", "a", "two", "a"] {
        client.read_answer().await.status(200).body(body);
    }
}

/// RFC 9112 §9.6: who says close is answered and closed, on a hit, a miss and an upload.
#[tokio::test]
async fn connection_close_closes_after_the_answer() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(post("/form")).reply(ok("thanks"));
    for (request, body) in [(Req::get("/post"), "text"), (Req::get("/post"), "text"), (Req::post("/form").body("a"), "thanks")] {
        let mut client = site.client().await;
        let answer = client.request(request.field("connection", "close")).await.status(200).body(body);
        assert!(answer.fields.lists("connection", "close"), "{answer}");
        assert!(client.is_closed().await);
    }
}

/// RFC 9112 §9.3: HTTP/1.0 closes unless it asks not to; it gets no chunked coding (§6.1).
#[tokio::test]
async fn http_1_0_is_spoken() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/stream")).reply(testkit::status(200).chunks(["one ", "two"]).field("cache-control", "no-store"));
    let old = |target: &str| Req::get(target).version("HTTP/1.0");
    for _ in 0..2 {
        let mut client = site.client().await;
        client.request(old("/post")).await.status(200).body("text");
        assert!(client.is_closed().await);

        let mut client = site.client().await;
        for _ in 0..2 {
            client.request(old("/post").field("connection", "keep-alive")).await.status(200).body("text").field("connection", "keep-alive");
        }
        // What has no length ends with the connection.
        client.request(old("/stream").field("connection", "keep-alive")).await.body("one two").no_field("transfer-encoding");
        assert!(client.is_closed().await);
    }
    let mut client = site.client().await;
    client.request(old("/post").no_host()).await.status(200);
    assert!(origin.requests().iter().all(|seen| seen.version == "HTTP/1.1"));
}

/// RFC 9112 §3: however its bytes arrive, a request is a request.
#[tokio::test]
async fn a_request_may_arrive_byte_by_byte() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(post("/form")).reply_with(|seen| ok(seen.body.clone()));
    let mut client = site.client().await;
    for request in
        [Req::get("/post"), Req::get("/post"), Req::post("/form").body("a=1"), Req::get("/post"), Req::post("/form").chunks(["b", "=2"])]
    {
        client.send_byte_by_byte(request.to_bytes(HOST)).await;
        client.read_answer().await.status(200);
    }
    assert_eq!(origin.last("/form").text(), "b=2");
}

/// RFC 9112 §2.2: an empty line before a request is overlooked.
#[tokio::test]
async fn an_empty_line_before_the_request_is_overlooked() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text"));
    let mut client = site.client().await;
    for _ in 0..2 {
        client.send_raw("\r\n").await;
        client.get("/post").await.status(200).body("text");
    }
}

/// RFC 9110 §9.3.2: HEAD is GET without content, from the store and from the origin.
#[tokio::test]
async fn head_has_the_fields_of_get_and_no_content() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text").field("etag", "\"a\""));
    origin.on(get("/private")).reply(ok("secret").field("cache-control", "no-store"));
    let mut client = site.client().await;
    // What is not stored is fetched whole, so that whoever looks with HEAD finds what GET would.
    client.head("/post").await.status(200).field("content-length", "4").field("etag", "\"a\"").cache_status("fwd=uri-miss; stored");
    client.head("/private").await.status(200).field("content-length", "6");
    client.get("/post").await.status(200).body("text").cache_status("hit");
    assert_eq!(origin.count("/post"), 1);
    client.head("/post").await.status(200).field("content-length", "4").field("etag", "\"a\"").cache_status("hit");
    client.get("/post").await.status(200).body("text").cache_status("hit");
}

/// RFC 9110 §9.3.1, §9.3.2: content of a GET has no meaning of its own, but whoever means something by it gets it, and no stored page.
#[tokio::test]
async fn content_of_a_get_reaches_the_origin() {
    let (origin, site) = site().await;
    origin
        .on(testkit::any("/search"))
        .reply_with(|seen| ok(format!("{} {}", seen.method, seen.text())).field("cache-control", "max-age=60"));
    site.get("/search").await.body("GET ").cache_status("fwd=uri-miss; stored");
    for method in ["GET", "HEAD", "DELETE"] {
        for request in [Req::new(method, "/search").body("query"), Req::new(method, "/search").chunks(["que", "ry"])] {
            let answer = site.request(request).await.status(200);
            assert!(method == "HEAD" || answer.text() == format!("{method} query"), "{answer}");
            let seen = origin.last("/search");
            assert_eq!((&*seen.method, &*seen.text()), (method, "query"));
        }
    }
    assert_eq!(origin.count("/search"), 7);
}

/// RFC 9112 §7.1: an upload whose length nobody knows.
#[tokio::test]
async fn a_chunked_upload_arrives_whole() {
    let (origin, site) = site().await;
    origin.on(post("/upload")).reply_with(|seen| ok(seen.body.len().to_string()));
    let chunks: Vec<Vec<u8>> = (1..=100).map(|n| vec![b'x'; n * 100]).collect();
    site.request(Req::post("/upload").chunks(chunks)).await.status(200).body("505000");
    site.request(Req::post("/upload").chunks([""; 0])).await.status(200).body("0");
}

/// Large uploads and large pages pass through in pieces.
#[tokio::test]
async fn large_contents_pass_in_both_directions() {
    let (origin, site) = site().await;
    let large: Vec<u8> = (0_u32..2_000_000).flat_map(u32::to_le_bytes).collect();
    origin.on(post("/echo")).reply_with(|seen| ok(seen.body.clone()));
    let mut client = site.client().await;
    let bytes = Req::post("/echo").body(large.clone()).to_bytes(HOST);
    client.send_raw(bytes).await;
    client.read_answer().await.status(200).body(&large);
    client.request(Req::post("/echo").body("small")).await.body("small");
}

/// An upload is not collected first: the origin sees its head, and may answer, before the client has sent the rest.
#[tokio::test]
async fn an_upload_reaches_the_origin_before_its_end() {
    let (origin, site) = site().await;
    origin.on(post("/upload")).before_content().reply(status(403).body("not you"));
    let mut client = site.client().await;
    client.send_raw(format!("POST /upload HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1000000\r\n\r\nthe beginning")).await;
    client.read_answer().await.status(403).body("not you");
}

/// RFC 9112 §9.6: where content is not read that has not come yet, no request can be found behind it, and the answer says so.
#[tokio::test]
async fn who_is_answered_before_the_end_of_its_content_is_told_that_the_connection_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.html"), "text").expect("written");
    let site = Site::start(&format!("source = \"{}\"", folder.path().display()));
    let mut client = site.client().await;
    // Nothing reads what is sent to a folder.
    for _ in 0..2 {
        client.request(Req::post("/").body("whole")).await.status(405).no_field("connection");
    }
    client.send_raw(format!("POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1000000\r\n\r\nthe beginning")).await;
    client.read_answer().await.status(405).field("connection", "close");
    assert!(client.is_closed().await);
}

/// A page streams: its beginning is with the client before the origin has sent its end.
#[tokio::test]
async fn a_page_reaches_the_client_before_its_end() {
    let (origin, site) = site().await;
    for (target, cache_control) in [("/stored", "max-age=60"), ("/passed", "no-store")] {
        let gate = Gate::new();
        let reply = status(200).chunks(["first ", "second"]).field("cache-control", cache_control).gate_after(6, &gate);
        origin.on(get(target)).reply(reply);
        let mut client = site.client().await;
        client.send(Req::get(target)).await;
        client.read_head().await.status(200);
        assert_eq!(client.read_body_bytes(6).await, "first ", "{target}");
        gate.open();
        assert_eq!(client.read_body_bytes(6).await, "second", "{target}");
        assert!(client.read_body_chunk().await.is_none() && !client.is_cut_short(), "{target}");
    }
}

/// RFC 9110 §10.1.1: a client that asks first is told to go on, and only then sends.
#[tokio::test]
async fn expect_100_continue_is_answered_before_the_content() {
    let (origin, site) = site().await;
    origin.on(post("/upload")).reply_with(|seen| ok(seen.body.clone()));
    let mut client = site.client().await;
    let head = format!("POST /upload HTTP/1.1\r\nHost: {HOST}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    client.send_raw(head).await;
    let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(client.read_raw(go_on.len()).await, &go_on[..]);
    client.send_raw("hello").await;
    client.read_answer().await.status(200).body("hello");
}

/// RFC 9110 §15.5.14: more than the limit is refused, by its announced length at once, else where it exceeds.
#[tokio::test]
async fn an_upload_beyond_the_limit_is_413() {
    let (origin, site) = site_with("[limits]\nbody_bytes = \"1KiB\"").await;
    origin.on(post("/upload")).reply(ok("thanks"));
    site.request(Req::post("/upload").body(vec![b'x'; 1024])).await.status(200);
    site.request(Req::post("/upload").body(vec![b'x'; 1025])).await.status(413);
    site.request(Req::post("/upload").chunks([vec![b'x'; 512], vec![b'x'; 512]])).await.status(200);
    site.request(Req::post("/upload").chunks([vec![b'x'; 1024], vec![b'x'; 1]])).await.status(413);
    assert_eq!(origin.count("/upload"), 2);
}

/// RFC 9110 §7.8: an upgrade is carried to the origin, and the bytes after it both ways.
#[tokio::test]
async fn an_upgrade_becomes_a_tunnel() {
    let (origin, site) = site().await;
    origin.on(get("/live")).upgrade_echo("websocket");
    let mut client = site.client().await;
    client.send(Req::get("/live").field("connection", "Upgrade").field("upgrade", "websocket")).await;
    client.read_head().await.status(101).field("upgrade", "websocket");
    for message in ["hello", "and more", "\0\u{1}"] {
        client.send_raw(message).await;
        assert_eq!(client.read_raw(message.len()).await, message.as_bytes());
    }
    client.half_close().await;
    assert!(client.is_closed().await);
}

/// A tunnel is not idle for being silent, and may begin on a connection that was used before.
#[tokio::test]
async fn a_tunnel_outlives_the_idle_timeout() {
    let (origin, site) = site_with("[limits]\nidle_timeout = \"200ms\"\nheader_timeout = \"600ms\"").await;
    origin.on(get("/post")).reply(page("text"));
    origin.on(get("/live")).upgrade_echo("websocket");
    let mut client = site.client().await;
    client.get("/post").await.status(200);
    client.send(Req::get("/live").field("connection", "Upgrade").field("upgrade", "websocket")).await;
    client.read_head().await.status(101);
    for _ in 0..2 {
        client.send_raw("hello").await;
        assert_eq!(client.read_raw(5).await, "hello");
        // A connection that says nothing lives three times as long as one that is idle.
        assert!(site.client().await.is_closed().await);
    }
    client.send_raw("still here").await;
    assert_eq!(client.read_raw(10).await, "still here");
}

/// An origin may decline; the connection stays HTTP.
#[tokio::test]
async fn a_declined_upgrade_is_an_ordinary_answer() {
    let (origin, site) = site().await;
    origin.on(get("/live")).reply(ok("no"));
    let mut client = site.client().await;
    client.request(Req::get("/live").field("connection", "upgrade").field("upgrade", "websocket")).await.status(200).body("no");
}

/// A Unix socket is listened on like a port.
#[tokio::test]
async fn a_unix_socket_serves_too() {
    let origin = testkit::Origin::start();
    origin.on(get("/post")).reply(page("text"));
    let settings = format!("source = \"{}\"\n[server]\nlisten = [\"unix:FOLDER/seawall.sock\"]", origin.url());
    let site = Site::start(&settings);
    let path = site.folder().join("seawall.sock");
    let mut client = Client::connect_unix(&path).await.with_host(HOST);
    client.get("/post").await.status(200).cache_status("fwd=uri-miss");
    client.get("/post").await.status(200).cache_status("hit");
    drop(client);
    let folder = site.stop(testkit::secs(5));
    assert!(!path.exists(), "left behind in {}", folder.path().display());
}

/// RFC 9110 §9.3.7: OPTIONS for the server as a whole is the origin's to answer.
#[tokio::test]
async fn options_for_the_whole_server_is_passed_on() {
    let (origin, site) = site().await;
    origin.on(testkit::options("*")).reply(status(204).field("allow", "GET, HEAD"));
    site.request(Req::new("OPTIONS", "*")).await.status(204).field("allow", "GET, HEAD");
}

/// RFC 9110 §15.2: interim responses of the origin (103) do not confuse what follows.
#[tokio::test]
async fn interim_responses_of_the_origin_are_swallowed() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page("text").interim(103, &[("link", "</style.css>; rel=preload")]));
    site.get("/post").await.status(200).body("text");
    site.get("/post").await.status(200).body("text").cache_status("hit");
}

/// 204 and 304 of the origin have no content and no length.
#[tokio::test]
async fn answers_without_content_have_none() {
    let (origin, site) = site().await;
    origin.on(get("/stored")).reply(status(204).field("cache-control", "max-age=60"));
    // Some origins send a length all the same.
    origin.on(get("/passed")).reply(status(204).field("content-length", "0").field("cache-control", "no-store"));
    let mut client = site.client().await;
    for _ in 0..2 {
        client.get("/stored").await.status(204).body("").no_field("content-length");
        client.get("/passed").await.status(204).body("").no_field("content-length");
    }
}

/// What is fetched for one client alone is given up when that client leaves.
#[tokio::test]
async fn a_passed_request_ends_with_its_client() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/account")).reply(ok("text").gate(&gate));
    origin.on(post("/form")).reply(ok("text").gate(&gate));
    for (n, request) in [Req::get("/account").field("cookie", "session=1"), Req::post("/form").body("a")].into_iter().enumerate() {
        let mut client = site.client().await;
        client.send(request).await;
        gate.arrived_count(n + 1).await;
        drop(client);
        origin.until_connections_open(0).await;
    }
}

/// RFC 9112 §9.6: a client that goes on sending after its last request gets the whole answer to it. Closing at once would reset the connection,
/// and take back what the client has not read yet.
#[tokio::test]
async fn whoever_sends_on_gets_the_last_answer_whole() {
    let (origin, site) = site().await;
    // More than two sockets hold.
    let large = vec![b'x'; 48 << 20];
    for (target, cache_control) in [("/stored", "max-age=60"), ("/passed", "no-store")] {
        origin.on(testkit::any(target)).reply(ok(large.clone()).field("cache-control", cache_control));
        for request in [
            Req::get(target),
            Req::get(target).field("connection", "close"),
            Req::get(target).field("connection", "close"),
            Req::get(target).version("HTTP/1.0"),
            Req::get(target).field("connection", "upgrade").field("upgrade", "websocket"),
            Req::post(target).body("a").field("connection", "close"),
            Req::post(target).chunks(["a"]),
        ] {
            let what = format!("{request:?}");
            let mut client = site.client().await;
            client.send(request).await;
            client.read_head().await.status(200);
            // While the answer waits for us to read it.
            client.send_raw(vec![b'x'; 100_000]).await;
            let mut read = 0;
            while let Some(piece) = client.read_body_chunk().await {
                read += piece.len();
            }
            assert_eq!(read, large.len(), "{what}");
        }
    }
}

/// Says what comes first, or behind it, on a connection: its bytes, and whether its answer must be the connection's last.
struct Sent {
    name: &'static str,
    bytes: String,
    is_last: bool,
}

fn sent(name: &'static str, head: &str, content: &str, is_last: bool) -> Sent {
    let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    Sent { name, bytes: format!("{line}\r\nHost: {HOST}\r\n{fields}\r\n{content}"), is_last }
}

/// RFC 9112 §9.3.2, §9.6: a request that came whole before we said `close` is answered, in its turn, and the answer that says `close` is the
/// last one. Chunked content and upgrades are the last of their connection by themselves.
#[tokio::test]
async fn only_the_last_answer_says_close() {
    const POST: &str = "POST /first HTTP/1.1\nContent-Length: 3";
    let firsts = [
        sent("GET", "GET /first HTTP/1.1", "", false),
        sent("HEAD", "HEAD /first HTTP/1.1", "", false),
        sent("POST", POST, "a=1", false),
        sent("POST and an empty line", POST, "a=1\r\n", false),
        sent("POST, Expect", &format!("{POST}\nExpect: 100-continue"), "a=1", false),
        sent("GET with content", "GET /first HTTP/1.1\nContent-Length: 3", "a=1", false),
        sent("POST, chunked", "POST /first HTTP/1.1\nTransfer-Encoding: chunked", "3\r\na=1\r\n0\r\n\r\n", true),
        sent("upgrade, declined", "GET /first HTTP/1.1\nConnection: upgrade\nUpgrade: websocket", "", true),
    ];
    let seconds = [
        sent("GET, close", "GET /second HTTP/1.1\nConnection: close", "", true),
        sent("HEAD, close", "HEAD /second HTTP/1.1\nConnection: close", "", true),
        sent("GET of HTTP/1.0", "GET /second HTTP/1.0", "", true),
        sent("GET of HTTP/1.0, keep-alive", "GET /second HTTP/1.0\nConnection: keep-alive", "", false),
        sent("GET", "GET /second HTTP/1.1\nConnection: keep-alive", "", false),
        sent("POST", "POST /second HTTP/1.1\nContent-Length: 3", "b=2", false),
        sent("POST, close", "POST /second HTTP/1.1\nConnection: close\nContent-Length: 3", "b=2", true),
        sent("POST, chunked", "POST /second HTTP/1.1\nTransfer-Encoding: chunked", "3\r\nb=2\r\n0\r\n\r\n", true),
        sent("upgrade, declined", "GET /second HTTP/1.1\nConnection: upgrade\nUpgrade: websocket", "", true),
        sent("malformed", "GET /malformed HTTP/1.1\nno field", "", true),
        sent("two lengths", "POST /malformed HTTP/1.1\nContent-Length: 3\nTransfer-Encoding: chunked", "b=2", true),
    ];
    let third = sent("GET", "GET /third HTTP/1.1\nConnection: close", "", true);
    let (origin, site) = site().await;
    let gate = Gate::new();
    for target in ["/first", "/second", "/third"] {
        let held = (target == "/first").then(|| gate.clone());
        origin.on(testkit::any(target)).reply_with(move |seen| {
            let reply = ok(format!("{} {}", seen.target, seen.text())).field("cache-control", "no-store");
            held.iter().fold(reply, |reply, gate| reply.gate(gate))
        });
    }
    for first in &firsts {
        for second in &seconds {
            let (at, all) = (first.bytes.len(), [&*first.bytes, &second.bytes, &third.bytes].concat());
            // How much is written at once, and how much then while the first request is at the origin.
            let cuts =
                [(all.len(), all.len()), (at, all.len()), (at + 1, all.len()), (at + 9, all.len()), (3, all.len()), (at - 1, at + 20)];
            for (begin, until) in cuts {
                let what = format!("{}, then {}, cut at {begin} and {until}", first.name, second.name);
                gate.close();
                let (before, arrived) = (origin.requests().len(), gate.arrivals());
                let mut client = site.client().await;
                client.send_raw(&all[..begin]).await;
                if begin >= at {
                    gate.arrived_count(arrived + 1).await;
                }
                client.send_raw(&all[begin..until]).await;
                gate.open();
                client.send_raw(&all[until..]).await;
                let mut expected = Vec::new();
                for sent in [first, second, &third] {
                    expected.push(sent);
                    if sent.is_last {
                        break;
                    }
                }
                let answers = answers(&client.read_to_close().await, &expected);
                assert_eq!(answers.len(), expected.len(), "{what}: {answers:?}");
                for (n, (sent, (head, content))) in expected.iter().zip(&answers).enumerate() {
                    let is_last = n + 1 == expected.len();
                    assert_eq!(head.contains("connection: close"), is_last, "{what}: {head}");
                    let target = sent.bytes.split(' ').nth(1).expect("a target");
                    let status = if target == "/malformed" { "400" } else { "200" };
                    assert_eq!(head.split(' ').nth(1), Some(status), "{what}: {head}");
                    let has_content = !sent.bytes.starts_with("HEAD") && status == "200";
                    assert!(!has_content || content.starts_with(target), "{what}: {content}");
                }
                // Nobody but those who are answered has been at the origin.
                let asked: Vec<String> = origin.requests()[before..].iter().map(|seen| seen.target.clone()).collect();
                let targets: Vec<&str> = expected.iter().filter_map(|sent| sent.bytes.split(' ').nth(1)).collect();
                let targets: Vec<&str> = targets.into_iter().filter(|target| *target != "/malformed").collect();
                assert_eq!(asked, targets, "{what}");
            }
        }
    }
}

/// Returns the final answers among `bytes`, one for each of `requests` as far as they go: heads in lower case, and contents.
fn answers(bytes: &[u8], requests: &[&Sent]) -> Vec<(String, String)> {
    let mut rest = std::str::from_utf8(bytes).expect("text");
    let mut answers = Vec::new();
    while let Some((head, after)) = rest.split_once("\r\n\r\n") {
        let head = head.to_lowercase();
        rest = after;
        if head.starts_with("http/1.1 100") {
            continue;
        }
        let is_head = requests.get(answers.len()).is_some_and(|request| request.bytes.starts_with("HEAD"));
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.parse().expect("a length"));
        let (content, after) = rest.split_at(if is_head { 0 } else { length });
        answers.push((head, content.to_owned()));
        rest = after;
    }
    assert!(rest.is_empty(), "what is not an answer: {rest:?}");
    answers
}
