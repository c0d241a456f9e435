//! Connections: kept, tried again, failed over, closed (RFC 9112 §9, RFC 9110 §9.2.2).

use super::*;

#[test]
fn a_connection_is_used_again_whatever_ends_the_response() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let mut wire = None;
        for (method, response, expected) in [
            (Method::GET, OK, "ok"),
            (Method::GET, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok"),
            (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n", ""),
            (Method::GET, "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", ""),
            (Method::HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", ""),
            (Method::GET, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ""),
            (
                Method::GET,
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                "ok",
            ),
            (Method::POST, OK, "ok"),
            (Method::GET, OK, "ok"),
        ] {
            let asked = ask(&origin, request(method.clone(), "/a?b=c", Body::Empty));
            if wire.is_none() {
                wire = Some(script.accept().await);
            }
            let heard = wire.as_mut().expect("connected").answer(response).await;
            assert!(heard.starts_with(&format!("{method} /a?b=c HTTP/1.1\r\nhost: blog.example\r\n")), "{heard}");
            let response = asked.await.expect("no panic").expect("a response");
            assert!(!response.headers().contains_key("transfer-encoding"));
            assert_eq!(content(response).await.expect("a body"), expected);
            assert_eq!(idle(&origin), 1);
        }
        assert!(script.idle().await, "one connection is enough");
    });
}

#[test]
fn a_connection_the_origin_will_close_is_not_kept() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        for response in [
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nkeep-alive: timeout=0\r\ncontent-length: 2\r\n\r\nok",
        ] {
            let asked = ask(&origin, get("/"));
            let mut wire = script.accept().await;
            wire.answer(response).await;
            let response = asked.await.expect("no panic").expect("a response");
            assert!(!response.headers().contains_key("connection") && !response.headers().contains_key("keep-alive"));
            assert_eq!(content(response).await.expect("a body"), "ok");
            assert_eq!(idle(&origin), 0);
            wire.closed().await;
        }
    });
}

/// RFC 9110 §15.3.5, §15.2, §8.6; RFC 9112 §6.1, §6.3: the response ends with its head, but its head says that content follows. If it does, the
/// next request must not take it for its answer, whenever it comes.
#[test]
fn a_connection_on_which_content_may_follow_a_response_that_has_none_is_not_kept() {
    const NOT_YOURS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nnot yours";
    let length = NOT_YOURS.len();
    let chunked = "transfer-encoding: chunked";
    for (is_upload, head, kept) in [
        (false, format!("HTTP/1.1 204 No Content\r\ncontent-length: {length}"), false),
        (false, format!("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\ncontent-length: {length}"), false),
        (false, format!("HTTP/1.1 204 No Content\r\n{chunked}"), false),
        (false, format!("HTTP/1.1 304 Not Modified\r\n{chunked}"), false),
        (false, format!("HTTP/1.1 103 Early Hints\r\ncontent-length: {length}\r\n\r\nHTTP/1.1 204 No Content"), false),
        (false, format!("HTTP/1.1 103 Early Hints\r\n{chunked}\r\n\r\nHTTP/1.1 204 No Content"), false),
        (true, format!("HTTP/1.1 204 No Content\r\ncontent-length: {length}"), false),
        (true, format!("HTTP/1.1 204 No Content\r\n{chunked}"), false),
        (true, format!("HTTP/1.1 304 Not Modified\r\n{chunked}"), false),
        // What they say of other messages is true.
        (false, "HTTP/1.1 204 No Content\r\ncontent-length: 0".to_owned(), true),
        (false, format!("HTTP/1.1 304 Not Modified\r\ncontent-length: {length}"), true),
        (true, "HTTP/1.1 204 No Content\r\ncontent-length: 0".to_owned(), true),
        (true, format!("HTTP/1.1 304 Not Modified\r\ncontent-length: {length}"), true),
    ] {
        on_a_worker(async {
            let script = Script::new().await;
            let origin = origin(&[script.address()]);
            let first = || if is_upload { short_upload() } else { get("/first") };
            let asked = ask(&origin, first());
            let mut wire = script.accept().await;
            wire.answer(format!("{head}\r\n\r\n")).await;
            let response = asked.await.expect("no panic").expect("a response");
            assert_eq!(content(response).await.expect("no content"), "");
            assert_eq!(idle(&origin), usize::from(kept), "{head}");
            if !kept {
                // Later than the next request, if that were sent here.
                let asked = ask(&origin, first());
                let mut next = script.accept().await;
                let _ = wire.0.write_all(NOT_YOURS.as_bytes()).await;
                next.answer(OK).await;
                assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("content"), "ok", "{head}");
            }
        });
    }
}

/// Whatever the response was: nothing may be left over when the next request is sent.
#[test]
fn bytes_behind_a_response_end_its_connection() {
    for (method, head) in [
        (Method::GET, "HTTP/1.1 200 OK\r\ncontent-length: 0"),
        (Method::GET, "HTTP/1.1 204 No Content"),
        (Method::GET, "HTTP/1.1 205 Reset Content\r\ncontent-length: 0"),
        (Method::GET, "HTTP/1.1 304 Not Modified\r\ncontent-length: 9"),
        (Method::HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 9"),
        (Method::HEAD, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked"),
    ] {
        on_a_worker(async {
            let script = Script::new().await;
            let origin = origin(&[script.address()]);
            let asked = ask(&origin, request(method.clone(), "/", Body::Empty));
            let mut wire = script.accept().await;
            wire.answer(format!("{head}\r\n\r\n{OK}")).await;
            assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("no content"), "");
            let asked = ask(&origin, get("/"));
            script.accept().await.answer("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nmine").await;
            assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("content"), "mine", "{head}");
        });
    }
}

fn short_upload() -> Request<Body> {
    let (feed, body) = upload();
    feed.try_send(Ok("abc".into())).expect("room");
    let mut post = request(Method::POST, "/first", body);
    post.headers_mut().insert("content-length", HeaderValue::from_static("3"));
    post
}

/// Sends a request on an idle connection that the origin closes in the same moment.
async fn dies_of_old_age(method: Method, body: Body, said: &str) -> Result<Response<Body>, OriginError> {
    let script = Script::new().await;
    let origin = origin(&[script.address()]);
    // An upload waits for the connection of another one.
    let first = if matches!(body, Body::Stream(_)) { short_upload() } else { get("/first") };
    let asked = ask(&origin, first);
    let mut old = script.accept().await;
    old.answer(OK).await;
    content(asked.await.expect("no panic").expect("a response")).await.expect("a body");

    let asked = ask(&origin, request(method, "/second", body));
    old.answer(said).await;
    drop(old);
    let mut asked = pin!(asked);
    tokio::select! {
        biased;
        result = &mut asked => result.expect("no panic"),
        mut new = script.accept() => {
            new.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
            asked.await.expect("no panic")
        }
    }
}

#[test]
fn a_request_is_sent_again_when_an_idle_connection_dies_and_doing_it_twice_does_no_harm() {
    for (method, said, again) in [
        (Method::GET, "", true),
        (Method::HEAD, "", true),
        (Method::OPTIONS, "", true),
        (Method::PUT, "", true),
        (Method::DELETE, "", true),
        (Method::POST, "", false),
        (Method::PATCH, "", false),
        (Method::from_bytes(b"get").expect("a method"), "", false),
        (Method::GET, "H", false),
        (Method::GET, "HTTP/1.1 200 OK\r\ncontent-le", false),
    ] {
        let body = if method == Method::PUT { Body::Full("abc".into()) } else { Body::Empty };
        let result = on_a_worker(dies_of_old_age(method.clone(), body, said));
        match result {
            Ok(response) => assert!(again && response.status() == 204, "{method} after {said:?}"),
            Err(error) => assert!(!again && error.fault == Fault::ConnectionTerminated, "{method} after {said:?}: {error}"),
        }
    }
}

#[test]
fn an_upload_is_never_sent_again() {
    on_a_worker(async {
        let (feed, body) = upload();
        feed.try_send(Ok("abc".into())).expect("room");
        drop(feed);
        // PUT is idempotent, but its content is gone.
        let result = dies_of_old_age(Method::PUT, body, "").await;
        assert_eq!(result.expect_err("gone").fault, Fault::ConnectionTerminated);
    });
}

#[test]
fn an_idle_connection_that_ended_is_noticed_before_a_post_is_sent_on_it() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let asked = ask(&origin, get("/"));
        let mut old = script.accept().await;
        old.answer(OK).await;
        content(asked.await.expect("no panic").expect("a response")).await.expect("a body");
        assert_eq!(idle(&origin), 1);
        drop(old);
        let asked = ask(&origin, request(Method::POST, "/", Body::Full("abc".into())));
        let mut new = script.accept().await;
        assert!(new.answer(OK).await.ends_with("\r\n\r\nabc"));
        assert_eq!(asked.await.expect("no panic").expect("a response").status(), 200);
    });
}

#[test]
fn a_new_connection_that_dies_is_not_tried_again() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let asked = ask(&origin, get("/"));
        let mut wire = script.accept().await;
        wire.request().await;
        drop(wire);
        assert_eq!(asked.await.expect("no panic").expect_err("died").fault, Fault::ConnectionTerminated);
        assert!(script.idle().await);
    });
}

#[test]
fn any_method_fails_over_where_nobody_listens_and_the_dead_address_is_left_alone() {
    on_a_worker(async {
        let dead = "unix:/nonexistent/site.sock".parse().expect("an address");
        let script = Script::new().await;
        let origin = with(&[dead, script.address()], None, |o| o.health.failures = 2);
        for _ in 0..4 {
            let asked = ask(&origin, request(Method::POST, "/", Body::Full("abc".into())));
            let mut wire = script.accept().await;
            wire.answer("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            assert_eq!(asked.await.expect("no panic").expect("a response").status(), 200);
        }
        let up: Vec<_> = origin.addresses().map(|status| status.up).collect();
        assert_eq!(up, [false, true]);
    });
}

#[test]
fn healthy_addresses_take_turns() {
    on_a_worker(async {
        let scripts = [Script::new().await, Script::new().await];
        let origin = origin(&[scripts[0].address(), scripts[1].address()]);
        for turn in 0..4 {
            let asked = ask(&origin, get("/"));
            let mut wire = scripts[turn % 2].accept().await;
            wire.answer("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            assert_eq!(asked.await.expect("no panic").expect("a response").status(), 200);
        }
    });
}

/// There is nobody else to ask.
#[test]
fn when_every_address_is_down_all_are_asked_and_a_recovery_is_seen_at_once() {
    on_a_worker(async {
        // Sockets with names of their own: a port that was given up might be given to another test.
        let folder = tempfile::TempDir::new().expect("a folder");
        let paths = ["a.sock", "b.sock"].map(|name| folder.path().join(name));
        for addresses in [&paths[..1], &paths[..]] {
            let addresses: Vec<_> = addresses.iter().cloned().map(Address::Unix).collect();
            let origin = origin(&addresses);
            for _ in 0..20 {
                assert_eq!(fetch(&origin, get("/")).await.expect_err("down").fault, Fault::ConnectionRefused);
            }
            assert!(origin.addresses().all(|status| !status.up));
            let listener = tokio::net::UnixListener::bind(&paths[0]).expect("bound");
            for _ in 0..2 {
                let asked = ask(&origin, get("/"));
                let mut wire = Wire(listener.accept().await.expect("a connection").0);
                wire.answer("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
                assert_eq!(asked.await.expect("no panic").expect("a response").status(), 200);
            }
            assert!(origin.addresses().next().is_some_and(|status| status.up));
            std::fs::remove_file(&paths[0]).expect("removed");
        }
    });
}

/// What one worker has learnt, the others know.
#[test]
fn workers_share_what_is_known_of_an_address() {
    on_a_worker(async {
        let options = Arc::new(ServerOptions::new(vec!["unix:/nonexistent/site.sock".parse().expect("an address")], no_tls()));
        let [one, other] = [(); 2].map(|()| HttpOrigin::new(Arc::clone(&options), None).expect("an address"));
        for _ in 0..3 {
            assert_eq!(fetch(&one, get("/")).await.expect_err("down").fault, Fault::ConnectionRefused);
        }
        assert!(other.addresses().all(|status| !status.up));
    });
}

#[test]
fn a_response_that_is_dropped_closes_its_connection() {
    on_a_worker(async {
        let script = Script::new().await;
        let budget = Arc::new(Budget::new(1, 0, Duration::ZERO));
        let origin = with(&[script.address()], Some(Arc::clone(&budget)), |_| {});
        let asked = ask(&origin, get("/"));
        let mut wire = script.accept().await;
        wire.answer("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nbegin").await;
        let mut response = asked.await.expect("no panic").expect("a response");
        let frame = response.body_mut().frame().await.expect("a frame").expect("bytes");
        assert_eq!(frame.into_data().expect("data"), "begin");
        assert_eq!(budget.in_flight(), 1, "held while the body comes");
        assert_eq!(fetch(&origin, get("/")).await.expect_err("no place").fault, Fault::Overloaded);
        drop(response);
        assert_eq!((budget.in_flight(), idle(&origin)), (0, 0));
        wire.closed().await;
    });
}

#[test]
fn a_request_that_is_given_up_closes_its_connection_and_leaves_its_place() {
    on_a_worker(async {
        let script = Script::new().await;
        let budget = Arc::new(Budget::new(1, 0, Duration::ZERO));
        let origin = with(&[script.address()], Some(Arc::clone(&budget)), |_| {});
        let asked = ask(&origin, get("/"));
        let mut wire = script.accept().await;
        wire.request().await;
        asked.abort();
        wire.closed().await;
        assert_eq!(budget.in_flight(), 0);
        assert!(origin.addresses().all(|status| status.up), "a client that leaves is not the origin's fault");
    });
}

#[test]
fn a_place_in_the_budget_is_free_when_the_body_has_been_read() {
    on_a_worker(async {
        let script = Script::new().await;
        let budget = Arc::new(Budget::new(1, 1, Duration::from_secs(5)));
        let origin = with(&[script.address()], Some(Arc::clone(&budget)), |_| {});
        let first = ask(&origin, get("/first"));
        let mut wire = script.accept().await;
        wire.answer(OK).await;
        let first = first.await.expect("no panic").expect("a response");
        let second = ask(&origin, get("/second"));
        assert!(script.idle().await);
        assert_eq!((budget.in_flight(), budget.waiting()), (1, 1));
        assert_eq!(content(first).await.expect("a body"), "ok");
        assert!(wire.answer("HTTP/1.1 204 No Content\r\n\r\n").await.starts_with("GET /second "), "on the same connection");
        assert_eq!(second.await.expect("no panic").expect("a response").status(), 204);
        assert_eq!((budget.in_flight(), budget.waiting()), (0, 0));
    });
}

#[test]
fn a_connection_belongs_to_the_protocol_it_was_upgraded_to() {
    on_a_worker(async {
        let script = Script::new().await;
        let budget = Arc::new(Budget::new(1, 0, Duration::ZERO));
        let origin = with(&[script.address()], Some(Arc::clone(&budget)), |_| {});
        let mut wish = get("/socket");
        wish.headers_mut().insert("connection", HeaderValue::from_static("upgrade"));
        wish.headers_mut().insert("upgrade", HeaderValue::from_static("echo"));
        let asked = ask(&origin, wish);
        let mut wire = script.accept().await;
        let heard = wire.answer("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello").await;
        assert!(heard.contains("connection: upgrade\r\n") && heard.contains("upgrade: echo\r\n"), "{heard}");
        let response = asked.await.expect("no panic").expect("a response");
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["upgrade"], "echo");
        assert_eq!(budget.in_flight(), 0, "held no longer than the handshake");
        let upgraded = hyper::upgrade::on(response).await.expect("upgraded");
        let mut ours = hyper_util::rt::TokioIo::new(upgraded);
        let mut five = [0; 5];
        ours.read_exact(&mut five).await.expect("bytes");
        assert_eq!(&five, b"hello");
        ours.write_all(b"world").await.expect("written");
        wire.0.read_exact(&mut five).await.expect("bytes");
        assert_eq!(&five, b"world");
        drop(ours);
        wire.closed().await;
    });
}

#[test]
fn idle_connections_are_few_and_the_warmest_is_used() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = with(&[script.address()], None, |o| o.pool_idle_max = 2);
        let log = Log::default();
        let mut asked = Vec::new();
        let mut wires = Vec::new();
        for n in 0..3 {
            asked.push(ask(&origin, get(&format!("/{n}"))));
            wires.push(script.accept().await);
            wires[n].request().await;
        }
        for (n, asked) in asked.into_iter().enumerate() {
            wires[n].say(OK).await;
            content(asked.await.expect("no panic").expect("a response")).await.expect("a body");
            log.borrow_mut().push(format!("{n} idle {}", idle(&origin)));
        }
        assert_eq!(*log.borrow(), ["0 idle 1", "1 idle 2", "2 idle 2"]);
        wires.pop().expect("three").closed().await;
        let asked = ask(&origin, get("/again"));
        wires[1].answer(OK).await;
        assert_eq!(asked.await.expect("no panic").expect("a response").status(), 200);
    });
}

#[test]
fn interim_responses_are_told_as_they_come_without_what_concerns_the_connection() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let told = Log::default();
        let asked = tokio::task::spawn_local({
            let (origin, told) = (Rc::clone(&origin), Rc::clone(&told));
            async move {
                let tell = move |status: StatusCode, fields: &HeaderMap| told.borrow_mut().push(format!("{status} {fields:?}"));
                origin.fetch(get("/"), &ARRIVAL, Some(&tell)).await
            }
        });
        let mut wire = script.accept().await;
        wire.request().await;
        wire.say("HTTP/1.1 100 Continue\r\n\r\n").await;
        wire.say("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nconnection: x-b\r\nx-b: 1\r\ncontent-length: 9\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n").await;
        while told.borrow().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(!asked.is_finished(), "the final response has not come");
        wire.say(OK).await;
        let response = asked.await.expect("no panic").expect("a response");
        assert!(!response.headers().contains_key("link"));
        assert_eq!(content(response).await.expect("a body"), "ok");
        assert_eq!(*told.borrow(), [r#"103 Early Hints {"link": "</a>"}"#, "102 Processing {}"]);
        assert_eq!(idle(&origin), 0, "a head without content that has a length is not to be trusted");
    });
}

#[test]
fn content_at_hand_is_measured_whatever_the_fields_say() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let mut wire = None;
        for (body, said, sent) in [
            (Body::Full("abc".into()), None, "content-length: 3\r\n\r\nabc"),
            (Body::Full("abc".into()), Some("3"), "content-length: 3\r\n\r\nabc"),
            (Body::Full("abc".into()), Some("7"), "content-length: 3\r\n\r\nabc"),
            (Body::Empty, Some("7"), "content-length: 0\r\n\r\n"),
            (Body::Empty, None, "host: blog.example\r\nx-forwarded-proto: http\r\n\r\n"),
        ] {
            let mut post = request(Method::POST, "/", body);
            if let Some(said) = said {
                post.headers_mut().insert("content-length", HeaderValue::from_static(said));
            }
            post.headers_mut().insert("transfer-encoding", HeaderValue::from_static("chunked"));
            let asked = ask(&origin, post);
            if wire.is_none() {
                wire = Some(script.accept().await);
            }
            let heard = wire.as_mut().expect("connected").answer(OK).await;
            assert!(heard.ends_with(sent) && !heard.contains("transfer-encoding"), "{heard}");
            content(asked.await.expect("no panic").expect("a response")).await.expect("a body");
        }
    });
}

/// glibc keeps freed blocks of up to 1,032 bytes at hand for each thread; a larger one is looked for, and put away, at some 500 instructions.
#[test]
fn an_exchange_is_small_enough_to_be_allocated_without_a_search() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let bytes = size_of_val(&origin.exchange(get("/"), &ARRIVAL, None));
        assert!(bytes <= 1032, "{bytes}");
    });
}

/// The bound is on what the origin has to keep open, and does not ask which of our two clients opened it.
#[test]
fn connections_of_both_sorts_count_towards_one_bound_and_none_is_used_for_the_other() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = with(&[script.address()], None, |o| o.pool_idle_max = 1);
        let asked = ask(&origin, get("/"));
        let mut of_get = script.accept().await;
        of_get.answer(OK).await;
        content(asked.await.expect("no panic").expect("a response")).await.expect("content");
        let asked = ask(&origin, short_upload());
        let mut of_upload = script.accept().await;
        of_upload.answer(OK).await;
        content(asked.await.expect("no panic").expect("a response")).await.expect("content");
        assert_eq!(idle(&origin), 1, "the first one stays");
        of_upload.closed().await;
        let asked = ask(&origin, get("/"));
        of_get.answer(OK).await;
        content(asked.await.expect("no panic").expect("a response")).await.expect("content");
    });
}
