//! Hostile and broken origins.

use super::*;

/// Returns the whole response, head and body, or the fault, for what an origin says before it closes.
async fn hear(said: &[u8]) -> Result<(StatusCode, String), Fault> {
    let script = Script::new().await;
    let origin = origin(&[script.address()]);
    let asked = ask(&origin, get("/"));
    let mut wire = script.accept().await;
    wire.request().await;
    // We may have hung up before all was said.
    let _ = wire.0.write_all(said).await;
    let _ = wire.0.shutdown().await;
    let response = asked.await.expect("no panic").map_err(|e| e.fault)?;
    let status = response.status();
    Ok((status, content(response).await.map_err(|e| e.fault)?))
}

#[test]
fn what_is_not_http_is_a_protocol_error_and_what_is_too_much_is_too_large() {
    let many = |n: usize| format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "x: y\r\n".repeat(n));
    let long = |n: usize| format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "y".repeat(n));
    let fine = Ok((StatusCode::OK, String::new()));
    for (said, expected) in [
        ("".to_owned(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 200 OK\r\ncontent-le".into(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 100 Continue\r\n\r\n".into(), Err(Fault::ConnectionTerminated)),
        ("<html>hello</html>".into(), Err(Fault::ProtocolError)),
        ("SSH-2.0-OpenSSH_9.2p1\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/2.0 200 OK\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 20 OK\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 099 No\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\nspace : x\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\na: \0\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2, 3\r\n\r\nok".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nok".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\ncontent-length: 2\r\n\r\nok".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\nto the end".into(), Ok((StatusCode::OK, "to the end".into()))),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n".into(), Err(Fault::ProtocolError)),
        (many(99), fine.clone()),
        (many(100), Err(Fault::ResponseTooLarge)),
        (long(60_000), fine),
        (long(70_000), Err(Fault::ResponseTooLarge)),
        // Bodies.
        ("HTTP/1.1 200 OK\r\n\r\nto the end".into(), Ok((StatusCode::OK, "to the end".into()))),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok, and more".into(), Ok((StatusCode::OK, "ok".into()))),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok".into(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".into(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n".into(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok".into(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n".into(), Err(Fault::ConnectionTerminated)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nok\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nok\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokay\r\n".into(), Err(Fault::ProtocolError)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n".into(), Err(Fault::ProtocolError)),
    ] {
        assert_eq!(on_a_worker(hear(said.as_bytes())), expected, "{:?}", &said[..said.len().min(90)]);
    }
}

#[test]
fn bytes_that_nobody_asked_for_end_the_connection_and_never_answer_the_next_request() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let asked = ask(&origin, get("/first"));
        let mut bad = script.accept().await;
        bad.answer(format!("{OK}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")).await;
        assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("a body"), "ok");
        bad.closed().await;
        let asked = ask(&origin, get("/second"));
        let mut good = script.accept().await;
        assert!(good.answer(OK).await.starts_with("GET /second "));
        assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("a body"), "ok");
    });
}

/// Whoever finds a request over which an origin hangs up may send it again and again. That says nothing about what others ask for.
#[test]
fn an_origin_that_hangs_up_is_not_down() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = with(&[script.address()], None, |o| o.health.failures = 1);
        for said in ["", "nonsense\r\n\r\n"] {
            let (feed, coming) = upload();
            let requests = [get("/"), request(Method::POST, "/", coming), request(Method::POST, "/", Body::Full("abc".into()))];
            for request in requests {
                let asked = ask(&origin, request);
                let mut wire = script.accept().await;
                wire.answer(said).await;
                drop(wire);
                let fault = asked.await.expect("no panic").expect_err("hung up").fault;
                assert_eq!(fault, if said.is_empty() { Fault::ConnectionTerminated } else { Fault::ProtocolError });
                assert!(origin.addresses().all(|status| status.up), "{said:?}");
            }
            drop(feed);
        }
    });
}

#[test]
fn a_request_body_that_breaks_off_is_the_clients_fault() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = with(&[script.address()], None, |o| o.health.failures = 1);
        for fault in [Fault::RequestBody, Fault::RequestTimeout, Fault::RequestTooLarge] {
            let (feed, body) = upload();
            let asked = ask(&origin, request(Method::POST, "/", body));
            let mut wire = script.accept().await;
            assert!(wire.request().await.contains("transfer-encoding: chunked\r\n"));
            feed.send(Ok("abc".into())).await.expect("listening");
            let mut heard = [0; 8];
            wire.0.read_exact(&mut heard).await.expect("a chunk");
            assert_eq!(&heard, b"3\r\nabc\r\n");
            feed.send(Err(OriginError::new(fault, "the client left"))).await.expect("listening");
            assert_eq!(asked.await.expect("no panic").expect_err("broken off").fault, fault);
            wire.closed().await;
        }
        assert!(origin.addresses().all(|status| status.up));
    });
}

#[test]
fn a_response_that_overtakes_its_request_is_delivered_and_its_connection_closed() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let (feed, body) = upload();
        let asked = ask(&origin, request(Method::POST, "/", body));
        let mut wire = script.accept().await;
        wire.answer("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno").await;
        let response = asked.await.expect("no panic").expect("a response");
        assert_eq!(response.status(), 413);
        assert_eq!(content(response).await.expect("a body"), "no");
        assert_eq!(idle(&origin), 0);
        wire.closed().await;
        drop(feed);
    });
}

#[test]
fn a_finished_upload_leaves_its_connection_to_the_next_request() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let (feed, body) = upload();
        let mut post = request(Method::POST, "/", body);
        post.headers_mut().insert("content-length", HeaderValue::from_static("6"));
        let asked = ask(&origin, post);
        let mut wire = script.accept().await;
        feed.send(Ok("abc".into())).await.expect("listening");
        feed.send(Ok("def".into())).await.expect("listening");
        drop(feed);
        assert!(wire.answer(OK).await.ends_with("\r\n\r\nabcdef"));
        assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("a body"), "ok");
        assert_eq!(idle(&origin), 1);
    });
}

#[test]
fn a_request_without_a_host_gets_the_addresss_own_and_connect_is_refused() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let mut bare = get("/");
        bare.headers_mut().clear();
        *bare.version_mut() = Version::HTTP_2;
        let asked = ask(&origin, bare);
        let heard = script.accept().await.answer(OK).await;
        assert_eq!(heard, format!("GET / HTTP/1.1\r\nhost: {}\r\nx-forwarded-proto: http\r\n\r\n", script.address().authority()));
        assert!(asked.await.expect("no panic").is_ok());
        let tunnel = request(Method::CONNECT, "blog.example:443", Body::Empty);
        assert_eq!(fetch(&origin, tunnel).await.expect_err("not for origins").fault, Fault::Internal);
    });
}
