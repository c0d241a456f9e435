//! The client and the origin against each other: what either of them promises, the other one sees.

use testkit::{Client, Gate, Origin, Req, any, get, head, not_modified, ok, post, raw, status};

#[tokio::test]
async fn the_most_recent_expectation_that_matches_answers() {
    let origin = Origin::start();
    let mut client = Client::connect(origin.addr()).await;
    origin.on(get("/post")).reply(ok("v1").field("etag", "\"a\"").field("cache-control", "max-age=10"));
    client.get("/post").await.status(200).body("v1").field("ETag", "\"a\"").field_contains("cache-control", "max-age").no_field("date");

    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified());
    client.request(Req::get("/post").field("If-None-Match", "\"a\"")).await.status(304).body("");
    client.get("/post").await.status(200).body("v1");

    origin.on(get("/post")).once().reply(ok("v2"));
    origin.on(get("/post")).times(2).reply_with(|seen| ok(format!("v3 on connection {}", seen.connection)));
    for expected in ["v3 on connection 1", "v3 on connection 1", "v2", "v1"] {
        client.get("/post").await.body(expected);
    }
    assert_eq!((origin.count("/post"), origin.connections()), (7, 1));
}

#[tokio::test]
async fn the_origin_shows_what_it_saw() {
    let origin = Origin::start();
    origin.on(any("*")).reply(status(204));
    let mut client = Client::connect(origin.addr()).await.with_host("blog.example");
    client
        .request(Req::post("/comment?x=1").field("X-Raw-CASE", "caf\u{e9}").field("x-two", "a").field("X-Two", "b").body("hello"))
        .await
        .status(204);
    client.request(Req::post("/chunked").chunks(["hel", "lo"])).await.status(204);

    let seen = origin.last("/comment?x=1");
    assert_eq!((seen.method.as_str(), seen.text().as_str(), seen.version.as_str()), ("POST", "hello", "HTTP/1.1"));
    let lines: Vec<_> = seen.fields.iter().take(4).collect();
    assert_eq!(lines, [("Host", "blog.example"), ("X-Raw-CASE", "caf\u{e9}"), ("x-two", "a"), ("X-Two", "b")]);
    assert_eq!(seen.field("x-two").as_deref(), Some("a, b"));
    assert_eq!(origin.last("/chunked").body, "hello");
    assert_eq!(origin.requests().len(), 2);
}

#[tokio::test]
async fn an_unexpected_request_fails_the_test() {
    let origin = Origin::start();
    origin.on(get("/post").without("cookie")).reply(ok("v1"));
    let mut client = Client::connect(origin.addr()).await;
    client.request(Req::get("/post").field("Cookie", "a=b")).await.status(500).field("connection", "close");
    assert!(client.is_closed().await);

    let dropping = tokio::task::spawn_blocking(move || drop(origin)).await.expect_err("dropping it panics");
    let message = dropping.into_panic().downcast::<String>().expect("with a text");
    for part in
        ["GET /post HTTP/1.1\nHost: ", "\nCookie: a=b\n", "expected, most recent first:\n  GET /post, without cookie (used 0 times)"]
    {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}

#[tokio::test]
async fn a_request_that_is_not_well_formed_fails_the_test_too() {
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let origin = Origin::start();
        origin.on(any("*")).reply(ok(""));
        let mut client = Client::connect(origin.addr()).await;
        client.send_raw(bytes).await;
        client.read_answer().await.status(400);
        assert!(client.is_closed().await);
        assert!(origin.requests().is_empty(), "{bytes:?}");
        assert_eq!(origin.take_unexpected().len(), 1, "{bytes:?}");
        origin.verify();
    }
}

#[tokio::test]
async fn a_gate_holds_a_reply_where_the_test_says() {
    let origin = Origin::start();
    let (before, midway) = (Gate::new(), Gate::new());
    origin.on(get("/slow")).reply(ok("hello world").gate(&before).gate_after(5, &midway));
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/slow")).await;
    before.arrived().await;
    assert_eq!(midway.arrivals(), 0);
    before.open();
    client.read_head().await.status(200).field("content-length", "11");
    assert_eq!(client.read_body_bytes(5).await, "hello");
    midway.arrived().await;
    midway.open();
    assert_eq!(client.read_body_bytes(6).await, " world");
    assert_eq!(client.read_body_chunk().await, None);
    assert!(!client.is_cut_short());
}

#[tokio::test]
async fn a_connection_that_waits_at_a_gate_notices_that_its_peer_left() {
    let origin = Origin::start();
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("never").gate(&gate));
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/slow")).await;
    gate.arrived().await;
    assert_eq!(origin.connections_open(), 1);
    client.reset();
    origin.until_connections_open(0).await;
}

#[tokio::test]
async fn chunks_arrive_one_by_one_and_interim_responses_are_kept_apart() {
    let origin = Origin::start();
    let gate = Gate::new();
    let reply = ok("").chunks(["one", "two"]).gate_after(3, &gate).interim(103, &[("link", "</a.css>")]).trailer("x-sum", "1");
    origin.on(get("/")).reply(reply.clone());
    origin.on(get("/slowly")).reply(reply.byte_by_byte());
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/")).await;
    let answer = client.read_head().await.status(200).no_field("content-length").field("transfer-encoding", "chunked");
    assert_eq!((answer.interim.len(), answer.interim[0].code, answer.interim[0].fields.first("Link")), (1, 103, Some("</a.css>")));
    assert_eq!(client.read_body_chunk().await.as_deref(), Some(b"one".as_slice()));
    gate.open();
    assert_eq!(client.read_body_chunk().await.as_deref(), Some(b"two".as_slice()));
    assert_eq!(client.read_body_chunk().await, None);
    client.get("/slowly").await.body("onetwo");
}

#[tokio::test]
async fn the_client_tells_whole_content_from_content_cut_short() {
    let origin = Origin::start();
    origin.on(get("/until-close")).reply(ok("").until_close("all"));
    origin.on(get("/long")).reply(ok("hello").content_length(10));
    origin.on(get("/length")).reply(ok("hello").break_off_after(3));
    origin.on(get("/chunk")).reply(ok("").chunks(["hello"]).break_off_after(3));
    origin.on(get("/chunks")).reply(ok("").chunks(["hel", "lo"]).break_off_after(3));
    let gate = Gate::new();
    origin.on(get("/reset")).reply(ok("hello").gate_after(3, &gate).reset_after(3));
    Client::connect(origin.addr()).await.get("/until-close").await.body("all");
    for (path, content) in [("/long", "hello"), ("/length", "hel"), ("/chunk", "hel"), ("/chunks", "hel")] {
        let answer = Client::connect(origin.addr()).await.get(path).await.status(200).truncated();
        assert_eq!(answer.text(), content, "{path}");
    }
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/reset")).await;
    client.read_head().await.status(200);
    assert_eq!(client.read_body_bytes(3).await, "hel");
    gate.open();
    assert_eq!(client.read_body_chunk().await, None);
    assert!(client.is_cut_short());
}

#[tokio::test]
async fn raw_replies_are_sent_byte_for_byte() {
    let origin = Origin::start();
    let bytes: &[u8] = b"HTTP/1.1 200 \xff\n no header: \0\n\r\r\n";
    origin.on(get("/")).reply(raw(bytes));
    origin.on(get("/nothing")).reply(raw(""));
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/")).await;
    assert_eq!(client.read_to_close().await, bytes);
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/nothing")).await;
    assert!(client.try_read_answer().await.is_none());
}

#[tokio::test]
async fn head_and_pipelined_requests_are_answered_in_order() {
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1"));
    origin.on(head("/post")).reply(ok("v1"));
    let mut client = Client::connect(origin.addr()).await;
    for request in [Req::head("/post"), Req::get("/post"), Req::head("/post")] {
        client.send(request).await;
    }
    client.read_answer().await.field("content-length", "2").body("");
    client.read_answer().await.body("v1");
    client.read_answer().await.body("");
    client.send_byte_by_byte(Req::get("/post").field("connection", "close").to_bytes("a")).await;
    client.read_answer().await.body("v1");
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn an_origin_dies_and_comes_back_on_its_port() {
    let origin = Origin::start();
    origin.on(get("/")).reply(ok("up"));
    let mut client = Client::connect(origin.addr()).await;
    client.get("/").await.body("up");
    origin.kill();
    assert!(client.is_closed().await);
    assert!(Client::is_refused(origin.addr()).await);
    assert_eq!(origin.connections_open(), 0);
    origin.revive();
    Client::connect(origin.addr()).await.get("/").await.body("up");
    assert_eq!(origin.connections(), 2);

    let mut open = Client::connect(origin.addr()).await;
    open.get("/").await.body("up");
    origin.refuse();
    assert!(Client::is_refused(origin.addr()).await);
    open.get("/").await.body("up");
    origin.revive();
    assert!(!Client::is_refused(origin.addr()).await);
}

#[tokio::test]
async fn a_silent_origin_reads_requests_and_answers_none() {
    let origin = Origin::start();
    origin.on(get("/")).once().reply(ok("up"));
    origin.accept_but_never_answer();
    let mut client = Client::connect(origin.addr()).await;
    client.send(Req::get("/")).await;
    client.send(Req::get("/unexpected")).await;
    origin.until_count("/", 1).await;
    origin.revive();
    Client::connect(origin.addr()).await.get("/").await.body("up");
    drop(client);
}

#[tokio::test]
async fn an_upgraded_connection_echoes() {
    let origin = Origin::start();
    origin.on(get("/socket").field("upgrade", "websocket")).upgrade_echo("websocket");
    let mut client = Client::connect(origin.addr()).await;
    let upgrade = Req::get("/socket").field("connection", "upgrade").field("upgrade", "websocket");
    client.request(upgrade).await.status(101).field("upgrade", "websocket");
    client.send_raw("ping").await;
    assert_eq!(client.read_raw(4).await, "ping");
    client.half_close().await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn content_is_asked_for_with_100_or_refused_before_it_comes() {
    let origin = Origin::start();
    origin.on(post("/upload")).reply(status(201));
    let mut client = Client::connect(origin.addr()).await;
    let head = "POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    client.send_raw(head).await;
    assert_eq!(client.read_raw(25).await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send_raw("hello").await;
    client.read_answer().await.status(201);

    origin.on(post("/upload")).before_content().reply(status(413));
    client.send_raw(head).await;
    let answer = client.read_answer().await.status(413);
    assert!(answer.interim.is_empty());
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_request_that_is_given_up_is_not_counted() {
    let origin = Origin::start();
    let mut client = Client::connect(origin.addr()).await;
    client.send_raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel").await;
    client.half_close().await;
    assert!(client.is_closed().await);
    origin.until_connections_open(0).await;
    assert_eq!(origin.requests(), []);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "awaited below")]
async fn the_client_speaks_over_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("testkit-{}.sock", std::process::id()));
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket in the temporary folder");
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.writable().await.expect("writable");
        stream.try_write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").expect("room for one answer");
        stream
    });
    let mut client = Client::connect_unix(&path).await;
    std::fs::remove_file(&path).expect("it was there");
    client.get("/").await.status(200).body("hi");
    served.await.expect("served");
}
