//! Every wait ends. The clock is stopped once the script has come to the point where only time can pass; then it runs by itself.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_connection_that_does_not_come_about_times_out() {
    on_a_worker(async {
        let script = Script::new().await;
        // The socket is accepted, but nobody there speaks TLS.
        let secure = script.address().to_string().replace("http:", "https:").parse().expect("an address");
        let asked = ask(&origin(&[secure]), get("/"));
        let wire = script.accept().await;
        tokio::time::pause();
        let start = Instant::now();
        assert_eq!(asked.await.expect("no panic").expect_err("silence").fault, Fault::ConnectionTimeout);
        assert!(start.elapsed() <= Duration::from_secs(6));
        wire.closed().await;
    });
}

#[test]
fn a_response_that_does_not_come_times_out() {
    for said in ["", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nx: "] {
        on_a_worker(async {
            let script = Script::new().await;
            let origin = with(&[script.address()], None, |o| o.health.failures = 1);
            let asked = ask(&origin, get("/"));
            let mut wire = script.accept().await;
            wire.answer(said).await;
            tokio::time::pause();
            let start = Instant::now();
            assert_eq!(asked.await.expect("no panic").expect_err("silence").fault, Fault::ReadTimeout, "{said}");
            assert!(start.elapsed() > MINUTE / 2 && start.elapsed() <= MINUTE + Duration::from_secs(1));
            assert!(origin.addresses().all(|status| status.up), "one request says nothing about others");
            tokio::time::resume();
            wire.closed().await;
        });
    }
}

#[test]
fn a_pause_in_a_body_times_out_but_a_reader_that_pauses_does_not() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let asked = ask(&origin, get("/"));
        let mut wire = script.accept().await;
        wire.answer("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nab").await;
        let mut body = asked.await.expect("no panic").expect("a response").into_body();
        assert_eq!(body.frame().await.expect("a frame").expect("bytes").into_data().expect("data"), "ab");
        tokio::time::pause();
        let read = tokio::task::spawn_local(async move {
            let frame = body.frame().await;
            (frame, body)
        });
        tokio::task::yield_now().await;
        // 40 s of waiting, then two bytes: what follows has a whole minute again.
        tokio::time::advance(Duration::from_secs(40)).await;
        tokio::time::resume();
        wire.say("cd").await;
        let (frame, mut body) = read.await.expect("no panic");
        tokio::time::pause();
        assert_eq!(frame.expect("a frame").expect("bytes").into_data().expect("data"), "cd");
        tokio::time::advance(MINUTE * 10).await;
        let start = Instant::now();
        assert_eq!(body.frame().await.expect("an end").expect_err("silence").fault, Fault::BodyTimeout);
        assert!(start.elapsed() >= MINUTE && start.elapsed() <= MINUTE + Duration::from_secs(1), "{:?}", start.elapsed());
        assert!(body.frame().await.is_none());
        tokio::time::resume();
        wire.closed().await;
    });
}

#[test]
fn an_upload_may_take_its_time_as_long_as_it_is_the_client_that_pauses() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let (feed, body) = upload();
        let asked = ask(&origin, request(Method::POST, "/", body));
        let mut wire = script.accept().await;
        wire.request().await;
        tokio::time::pause();
        tokio::time::advance(MINUTE * 10).await;
        for _ in 0..3 {
            tokio::task::yield_now().await;
            assert!(!asked.is_finished(), "the client pauses");
        }
        drop(feed);
        let start = Instant::now();
        assert_eq!(asked.await.expect("no panic").expect_err("silence").fault, Fault::ReadTimeout);
        assert!(start.elapsed() >= MINUTE && start.elapsed() <= MINUTE + Duration::from_secs(1), "{:?}", start.elapsed());
    });
}

#[test]
fn an_idle_connection_is_closed_when_its_time_is_over() {
    for (fields, secs) in [("", 55), ("keep-alive: timeout=5\r\n", 4)] {
        on_a_worker(async {
            let script = Script::new().await;
            let origin = origin(&[script.address()]);
            let asked = ask(&origin, get("/"));
            let mut wire = script.accept().await;
            wire.answer(OK.replace("content", &format!("{fields}content"))).await;
            content(asked.await.expect("no panic").expect("a response")).await.expect("a body");
            assert_eq!(idle(&origin), 1);
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(secs)).await;
            tokio::time::resume();
            let asked = ask(&origin, get("/"));
            let mut new = script.accept().await;
            new.answer(OK).await;
            assert!(asked.await.expect("no panic").is_ok(), "on a new connection");
            wire.closed().await;
        });
    }
}

#[test]
fn idle_connections_are_closed_without_a_request_that_looks() {
    on_a_worker(async {
        let script = Script::new().await;
        let origin = origin(&[script.address()]);
        let asked = ask(&origin, get("/"));
        let mut wire = script.accept().await;
        wire.answer(OK).await;
        content(asked.await.expect("no panic").expect("a response")).await.expect("a body");
        tokio::time::pause();
        wire.closed().await;
        assert_eq!(idle(&origin), 0);
    });
}
