//! Stopping: nobody is let in any more, those who are being served are served.

use std::thread;

use testkit::{Client, Gate, Req, get, ok, secs};

use crate::site::{HOST, site};

/// A request under way ends, an idle connection is closed, and nobody is let in.
#[tokio::test]
async fn a_stop_lets_requests_end() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate_after(2, &gate));
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    let address = site.address();
    let (mut idle, mut slow) = (site.client().await, site.client().await);
    idle.get("/post").await.status(200);
    slow.send(Req::get("/slow")).await;
    gate.arrived().await;

    let stopping = thread::spawn(move || site.stop(secs(30)));
    assert!(idle.is_closed().await);
    assert!(Client::is_refused(address).await);
    assert!(!stopping.is_finished());
    gate.open();
    slow.read_answer().await.status(200).body("slow");
    assert!(slow.is_closed().await);
    stopping.join().expect("stopped");
}

/// Stopped before its workers have looked at their listeners for the first time, a server ends all the same.
#[tokio::test]
async fn a_server_may_be_stopped_as_soon_as_it_has_started() {
    for _ in 0..20 {
        let (_origin, site) = crate::site::site_with("[server]\nworkers = 2").await;
        let (stopped, ended) = std::sync::mpsc::sync_channel(1);
        thread::spawn(move || {
            site.stop(secs(30));
            let _ = stopped.send(());
        });
        ended.recv_timeout(testkit::PATIENCE).expect("it ends");
    }
}

/// A stop waits for an upload, too, in the hands of the other reader.
#[tokio::test]
async fn a_stop_lets_uploads_end() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(testkit::post("/upload")).reply(ok("thanks").gate(&gate));
    let (mut idle, mut upload) = (site.client().await, site.client().await);
    origin.on(testkit::post("/form")).reply(ok("thanks"));
    idle.request(Req::post("/form").body("a")).await.status(200);
    upload.send(Req::post("/upload").body("hello")).await;
    gate.arrived().await;
    let stopping = thread::spawn(move || site.stop(secs(30)));
    assert!(idle.is_closed().await);
    gate.open();
    upload.read_answer().await.status(200).body("thanks").field("connection", "close");
    assert!(upload.is_closed().await);
    stopping.join().expect("stopped");
}

/// RFC 9112 §9.6: what was sent behind a request under way is answered, or the answer before it says that it will not be.
#[tokio::test]
async fn no_pipelined_request_waits_in_vain_for_a_stop() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(testkit::any("/slow")).reply(ok("slow").gate(&gate));
    let mut clients = Vec::new();
    for first in [Req::post("/slow").body("a"), Req::get("/slow").field("cookie", "session=1")] {
        let mut client = site.client().await;
        client.send_raw([first.to_bytes(HOST), Req::get("/next").to_bytes(HOST)].concat()).await;
        clients.push(client);
    }
    gate.arrived_count(2).await;
    let mut idle = site.client().await;
    origin.on(get("/post")).reply(ok("text"));
    idle.get("/post").await.status(200);
    let stopping = thread::spawn(move || site.stop(secs(30)));
    assert!(idle.is_closed().await);
    gate.open();
    for mut client in clients {
        client.read_answer().await.status(200).body("slow").field("connection", "close");
        assert!(client.is_closed().await);
    }
    stopping.join().expect("stopped");
}

/// Who does not end within the time that is given is cut off.
#[tokio::test]
async fn a_stop_waits_no_longer_than_it_was_told() {
    let (origin, site) = site().await;
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    let mut slow = site.client().await;
    slow.send(Req::get("/slow")).await;
    gate.arrived().await;
    let stopping = thread::spawn(move || site.stop(testkit::millis(100)));
    assert!(slow.try_read_answer().await.is_none());
    stopping.join().expect("stopped");
    gate.open();
}
