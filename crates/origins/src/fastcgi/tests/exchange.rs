//! A request and its response.

use http_body_util::StreamBody;

use super::*;

#[test]
fn a_response_has_the_fields_and_the_content_that_php_said() {
    on_a_worker(async {
        let server = Server::start();
        let response = exchange(&client(&server), &server, get("/"), async |peer| {
            peer.answer("Status: 404 Not Found\r\nContent-Type: text/html\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nhello").await;
        })
        .await
        .expect("a response");
        assert_eq!(response.status(), 404);
        assert_eq!(response.headers()["content-type"], "text/html");
        assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
        assert_eq!(content(response).await.expect("whole"), "hello");
    });
}

#[test]
fn each_piece_is_handed_on_when_it_comes() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.stdout("Content-Type: text/event-stream\r\n\r\n").await;
            peer
        };
        let (response, mut peer) = futures_util::future::join(ask(&client, get("/events")), says).await;
        let mut body = response.expect("the head comes before any content").into_body();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            peer.stdout(event).await;
            assert_eq!(body.frame().await.expect("more").expect("good").into_data().expect("data"), event);
        }
        // A record of which only the beginning has come.
        peer.raw(b"\x01\x06\x00\x01\x10\x00\x00\x00data").await;
        assert_eq!(body.frame().await.expect("more").expect("good").into_data().expect("data"), "data");
        drop(body);
        peer.closed().await;
    });
}

#[test]
fn a_client_that_leaves_before_the_response_closes_the_connection() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let mut asking = Box::pin(ask(&client, get("/slow")));
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer
        };
        let peer = match futures_util::future::select(&mut asking, Box::pin(says)).await {
            futures_util::future::Either::Right((peer, _)) => peer,
            futures_util::future::Either::Left(_) => panic!("nothing was said"),
        };
        drop(asking);
        peer.closed().await;
    });
}

#[test]
fn an_answer_that_ends_early_is_never_whole() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        for (says, fault) in [
            // Closed without an end.
            (&b"\x01\x06\x00\x01\x00\x07\x00\x00\r\nhello"[..], Fault::ConnectionTerminated),
            // Half a record.
            (b"\x01\x06\x00\x01\x00\x70\x00\x00\r\nhello", Fault::ConnectionTerminated),
            // The end of the stream, but not of the request.
            (b"\x01\x06\x00\x01\x00\x07\x00\x00\r\nhello\x01\x06\x00\x01\x00\x00\x00\x00", Fault::ConnectionTerminated),
            // Exit status 1; no room; an unknown role.
            (b"\x01\x06\x00\x01\x00\x07\x00\x00\r\nhello\x01\x03\x00\x01\x00\x08\x00\x00\0\0\0\x01\0\0\0\0", Fault::ConnectionTerminated),
            (b"\x01\x06\x00\x01\x00\x07\x00\x00\r\nhello\x01\x03\x00\x01\x00\x08\x00\x00\0\0\0\0\x02\0\0\0", Fault::Overloaded),
            (b"\x01\x06\x00\x01\x00\x07\x00\x00\r\nhello\x01\x03\x00\x01\x00\x08\x00\x00\0\0\0\0\x03\0\0\0", Fault::ProtocolError),
            // Less and more than was announced.
            (
                b"\x01\x06\x00\x01\x00\x19\x00\x00Content-Length:6\r\n\r\nhello\x01\x03\x00\x01\x00\x08\x00\x00\0\0\0\0\0\0\0\0",
                Fault::ConnectionTerminated,
            ),
            (
                b"\x01\x06\x00\x01\x00\x19\x00\x00Content-Length:4\r\n\r\nhello\x01\x03\x00\x01\x00\x08\x00\x00\0\0\0\0\0\0\0\0",
                Fault::ProtocolError,
            ),
        ] {
            // With the head, if all of it has come by then, or with the content.
            let answered = exchange(&client, &server, request(&Method::POST, "/", Body::Empty), async |peer| peer.raw(says).await).await;
            let error = match answered {
                Ok(response) => content(response).await.expect_err("not whole"),
                Err(error) => error,
            };
            assert_eq!(error.fault, fault, "{says:?}: {error}");
        }
    });
}

#[test]
fn an_announced_length_is_no_end() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.stdout("Content-Length: 5\r\n\r\nhello").await;
            peer
        };
        let (response, peer) = futures_util::future::join(ask(&client, get("/")), says).await;
        let mut body = response.expect("a head").into_body();
        assert_eq!(body.frame().await.expect("some").expect("good").into_data().expect("data"), "hello");
        drop(peer);
        // The connection is closed: nobody said that this was all.
        assert!(body.frame().await.expect("an error").is_err());
    });
}

#[test]
fn a_response_without_a_head_has_a_name() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let long = format!("X: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
        for (says, fault) in [
            ("", Fault::ProtocolError),
            ("Content-Type: text/html\r\n", Fault::ProtocolError),
            ("PHP Fatal error in line 3\r\n\r\n", Fault::ProtocolError),
            ("Status: 101 Switching Protocols\r\n\r\n", Fault::ProtocolError),
            (&long, Fault::ResponseTooLarge),
        ] {
            let answered = exchange(&client, &server, request(&Method::POST, "/", Body::Empty), async |peer| {
                peer.stdout(says).await;
                let _ = peer.end().await;
            });
            assert_eq!(answered.await.expect_err("no head").fault, fault, "{says:.30}");
        }
        let answered = exchange(&client, &server, get("/"), async |peer| peer.end_with(0, 2).await).await;
        assert_eq!(answered.expect_err("no room").fault.status(), StatusCode::SERVICE_UNAVAILABLE);
    });
}

/// Applications that set hundreds of cookies come to 70 KB.
#[test]
fn a_large_head_gets_through() {
    on_a_worker(async {
        let server = Server::start();
        let head: String = (0..700).map(|number| format!("Set-Cookie: c{number}={}\r\n", "v".repeat(85))).collect();
        assert!(head.len() > 70_000);
        let said = format!("{head}\r\nhello");
        let client = client(&server);
        let response = exchange(&client, &server, get("/"), async |peer| {
            for piece in said.as_bytes().chunks(1000) {
                peer.stdout(piece).await;
            }
            peer.end().await;
        });
        let response = response.await.expect("a response");
        assert_eq!(response.headers().get_all("set-cookie").iter().count(), 700);
        assert_eq!(content(response).await.expect("whole"), "hello");
    });
}

#[test]
fn interim_responses_are_told_before_the_final_one() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let told = RefCell::new(Vec::new());
        let tell = |status: StatusCode, fields: &HeaderMap| told.borrow_mut().push((status.as_u16(), fields["link"].clone()));
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.answer("Status: 100\r\n\r\nStatus: 103 Early Hints\r\nLink: </a.css>\r\n\r\nStatus: 200\r\n\r\nhello").await;
        };
        let (script, arrival) = (script(), arrival());
        let (response, ()) = futures_util::future::join(client.run(&script, get("/"), &arrival, Some(&tell)), says).await;
        let response = response.expect("a response");
        assert_eq!(*told.borrow(), [(103, "</a.css>".parse().expect("a value"))]);
        assert_eq!((response.status().as_u16(), content(response).await.expect("whole")), (200, "hello".into()));
    });
}

/// RFC 9110 §9.3.2, §15.3.5, §15.4.5.
#[test]
fn there_is_no_content_where_there_can_be_none() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        for (method, says) in [
            (Method::HEAD, "Content-Length: 5\r\n\r\nhello"),
            (Method::GET, "Status: 304\r\n\r\nhello"),
            (Method::GET, "Status: 204\r\n\r\nhello"),
        ] {
            let response =
                exchange(&client, &server, request(&method, "/", Body::Empty), async |peer| peer.answer(says).await).await.expect("a head");
            assert_eq!(content(response).await.expect("nothing"), "");
            client.pool.forget_idle(0);
        }
    });
}

#[test]
fn a_child_is_taken_only_when_all_of_the_content_is_there_and_is_told_its_length() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        for (pieces, length) in [(3, 30), (30, 300_000)] {
            let (mut sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
            let frames = futures_util::stream::unfold(receiver, |mut receiver| async {
                receiver.recv().await.map(|bytes| (Ok::<_, OriginError>(http_body::Frame::data(bytes)), receiver))
            });
            let mut upload = request(&Method::POST, "/", Body::stream(StreamBody::new(frames)));
            upload.headers_mut().insert("content-type", "text/plain".parse().expect("a value"));
            let sends = async {
                for _ in 0..pieces {
                    sender.send(vec![b'x'; length / pieces].into()).await.expect("taken");
                    assert!(server.is_idle().await, "a child is held by a client that sends");
                }
                drop(std::mem::replace(&mut sender, tokio::sync::mpsc::channel(1).0));
                let mut peer = server.accept().await;
                let heard = peer.request().await;
                assert_eq!(heard.param("CONTENT_LENGTH"), length.to_string());
                assert_eq!(heard.stdin.len(), length);
                peer.answer("\r\n").await;
            };
            let (response, ()) = futures_util::future::join(ask(&client, upload), sends).await;
            response.expect("a response");
        }
    });
}

#[test]
fn an_answer_may_come_before_the_content_is_read() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut peer = server.accept().await;
            peer.parameters().await;
            peer.answer("Status: 413\r\n\r\ntoo much").await;
            peer
        };
        let upload = request(&Method::POST, "/", Body::from(Bytes::from(vec![b'x'; 4_000_000])));
        let (response, peer) = futures_util::future::join(ask(&client, upload), says).await;
        let response = response.expect("a response");
        assert_eq!(response.status(), 413);
        assert_eq!(content(response).await.expect("whole"), "too much");
        peer.closed().await;
    });
}

#[test]
fn messages_do_not_end_up_in_the_page() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let response = exchange(&client, &server, get("/"), async |peer| {
            peer.stderr("PHP Warning: first").await;
            peer.stdout("Content-Type: text/html\r\n\r\nhel").await;
            peer.stderr(vec![b'!'; 1_000]).await;
            peer.stdout("lo").await;
            peer.stderr("PHP Warning: last").await;
            peer.end().await;
        });
        assert_eq!(content(response.await.expect("a response")).await.expect("whole"), "hello");
    });
}
