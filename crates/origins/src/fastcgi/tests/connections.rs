//! Connections, and the children that they hold.

use futures_util::{FutureExt, future::join_all};

use super::*;

async fn whole(response: Result<Response<Body>, OriginError>) -> Bytes {
    content(response.expect("a response")).await.expect("whole")
}

#[test]
fn a_connection_is_kept_and_used_again_when_its_child_is_free() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut peer = server.accept().await;
            for number in ["1", "2", "3"] {
                assert!(peer.request().await.keep);
                peer.answer(format!("\r\n{number}")).await;
                peer.question().await;
                peer.free().await;
            }
            assert!(server.is_idle().await);
            peer
        };
        let asks = async {
            for number in ["1", "2", "3"] {
                assert_eq!(whole(ask(&client, get("/")).await).await, number);
                // Its answer to the question arrives.
                while client.pool.addresses().any(|address| address.idle == 0) {
                    tokio::task::yield_now().await;
                }
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
            }
        };
        futures_util::future::join(says, asks).await;
    });
}

/// php-src issue 10335: a script that ends its response and goes on working keeps its connection, and who asks over it waits.
#[test]
fn a_child_that_goes_on_working_behind_its_response_makes_nobody_wait() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut busy = server.accept().await;
            busy.request().await;
            busy.answer("\r\n1").await;
            busy.question().await;
            // It does not answer: it works.
            let mut other = server.accept().await;
            other.request().await;
            other.answer("\r\n2").await;
            busy
        };
        let asks = async {
            assert_eq!(whole(ask(&client, get("/")).await).await, "1");
            assert_eq!(whole(ask(&client, get("/")).await).await, "2");
        };
        futures_util::future::join(says, asks).await;
    });
}

#[test]
fn an_idle_connection_is_closed_within_a_second() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.answer("\r\n1").await;
            peer.question().await;
            peer.free().await;
            let began = Instant::now();
            peer.closed().await;
            began.elapsed()
        };
        let (response, idle) = futures_util::future::join(async { whole(ask(&client, get("/")).await).await }, says).await;
        assert_eq!(response, "1");
        // A machine that does much else is late by a little.
        assert!(idle < Duration::from_millis(1_500), "{idle:?}");
    });
}

#[test]
fn whoever_needs_a_child_ends_the_idle_connections_of_all_workers() {
    on_a_worker(async {
        let server = Server::start();
        let shared = shared(options(&server));
        let (one, other) = (FastCgi::new(Arc::clone(&shared), None), FastCgi::new(shared, None));
        // One child: it takes a connection when the one before is closed.
        let says = async {
            for number in ["1", "2", "3"] {
                let mut peer = server.accept().await;
                peer.request().await;
                peer.answer(format!("\r\n{number}")).await;
                peer.question().await;
                if number != "3" {
                    peer.closed().await;
                }
            }
        };
        let began = Instant::now();
        let asks = async {
            assert_eq!(whole(ask(&one, get("/")).await).await, "1");
            assert_eq!(whole(ask(&other, get("/")).await).await, "2");
            // Not over an idle connection: it must not be sent twice.
            let post = request(&Method::POST, "/", Body::Empty);
            assert_eq!(whole(ask(&other, post).await).await, "3");
        };
        futures_util::future::join(says, asks).await;
        assert!(began.elapsed() < IDLE_MAX, "nobody waited for an idle connection to grow old");
    });
}

#[test]
fn a_connection_is_not_kept_while_somebody_waits_for_a_child() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut first = server.accept().await;
            first.request().await;
            // The second one has connected and sent all it has. It waits.
            let mut second = server.accept().await;
            second.request().await;
            first.answer("\r\n1").await;
            first.closed().await;
            second.answer("\r\n2").await;
            second.question().await;
        };
        let asks = async { whole(ask(&client, get("/1")).await).await };
        let asks_too = async { whole(ask(&client, get("/2")).await).await };
        let (one, two, ()) = futures_util::future::join3(asks, asks_too, says).await;
        assert_eq!((one, two), ("1".into(), "2".into()));
    });
}

/// Makes a client of a server whose times are set.
fn client_with(server: &Server, set: impl FnOnce(&mut Times)) -> FastCgi {
    let mut shared = FastCgiServer::new(Arc::new(options(server)));
    (shared.times.free, shared.times.handed) = (A_LONG_TIME, A_LONG_TIME);
    set(&mut shared.times);
    FastCgi::new(Arc::new(shared), None)
}

const A_LONG_TIME: Duration = Duration::from_hours(1);

/// Checks that a connection that nobody needs hears a question, and then its end: nothing is left for a child that gets to it.
async fn carries_nothing(mut peer: FastCgiPeer) {
    peer.question().await;
    assert!(peer.is_at_end().await, "nothing follows the question");
}

/// A crowd then costs no more connections than a few readers.
#[test]
fn a_child_that_ends_a_request_is_handed_to_whoever_has_waited_longest() {
    on_a_worker(async {
        let server = Server::start();
        let client = client_with(&server, |_| {});
        let says = async {
            let mut peer = server.accept().await;
            assert_eq!(peer.request().await.param("REQUEST_URI"), "/1");
            // The others stand in the queue. No child gets to them.
            let standing = [server.accept().await, server.accept().await];
            peer.answer("\r\n1").await;
            for number in ["2", "3"] {
                peer.question().await;
                peer.free().await;
                assert_eq!(peer.request().await.param("REQUEST_URI"), format!("/{number}"));
                peer.answer(format!("\r\n{number}")).await;
            }
            for standing in standing {
                carries_nothing(standing).await;
            }
            assert!(server.is_idle().await);
        };
        // A form may come this way as well: the child has said just now that it is there.
        let asks =
            join_all([get("/1"), request(&Method::POST, "/2", Body::Empty), get("/3")].map(async |it| whole(ask(&client, it).await).await));
        assert_eq!(futures_util::future::join(asks, says).await.0, ["1", "2", "3"]);
    });
}

/// Another worker, another site or another program may stand there.
#[test]
fn a_child_that_has_served_one_worker_for_a_while_takes_the_next_connection_of_all() {
    on_a_worker(async {
        let server = Server::start();
        let client = client_with(&server, |times| times.handed = Duration::ZERO);
        let says = async {
            let mut first = server.accept().await;
            first.request().await;
            let mut second = server.accept().await;
            first.answer("\r\n1").await;
            carries_nothing(first).await;
            assert_eq!(second.request().await.param("REQUEST_URI"), "/2");
            second.answer("\r\n2").await;
        };
        let asks = join_all([get("/1"), get("/2")].map(async |it| whole(ask(&client, it).await).await));
        assert_eq!(futures_util::future::join(asks, says).await.0, ["1", "2"]);
    });
}

/// There may be others in the server's queue whom this server does not know of.
#[test]
fn a_connection_that_has_held_a_child_for_long_is_not_kept_though_nobody_is_known_to_wait() {
    on_a_worker(async {
        let server = Server::start();
        let client = client_with(&server, |times| times.held = Duration::ZERO);
        for _ in 0..2 {
            let says = async {
                let mut peer = server.accept().await;
                peer.request().await;
                peer.answer("\r\n1").await;
                carries_nothing(peer).await;
            };
            let (response, ()) = futures_util::future::join(async { whole(ask(&client, get("/")).await).await }, says).await;
            assert_eq!(response, "1");
        }
    });
}

#[test]
fn nothing_is_run_for_whoever_has_left_the_line() {
    on_a_worker(async {
        let server = Server::start();
        let client = client_with(&server, |_| {});
        let first = async { whole(ask(&client, get("/1")).await).await };
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            let mut leaves = Box::pin(ask(&client, get("/2")));
            assert!((&mut leaves).now_or_never().is_none(), "waits");
            let mut stays = Box::pin(ask(&client, get("/3")));
            assert!((&mut stays).now_or_never().is_none(), "waits");
            drop(leaves);
            let says = async {
                peer.answer("\r\n1").await;
                peer.question().await;
                peer.free().await;
                assert_eq!(peer.request().await.param("REQUEST_URI"), "/3");
                peer.answer("\r\n3").await;
            };
            assert_eq!(futures_util::future::join(stays, says).await.0.map(|response| response.status()).ok(), Some(StatusCode::OK));
            // What has come into the queue before stands there for nobody.
            for _ in 0..2 {
                carries_nothing(server.accept().await).await;
            }
        };
        assert_eq!(futures_util::future::join(first, says).await.0, "1");
    });
}

/// The child may have ended, or a script goes on working behind its response.
#[test]
fn whoever_was_handed_a_child_that_is_none_keeps_its_place() {
    on_a_worker(async {
        for works_on in [true, false] {
            let server = Server::start();
            let client = client_with(&server, |times| times.free = if works_on { Duration::ZERO } else { A_LONG_TIME });
            let says = async {
                let mut peer = server.accept().await;
                peer.request().await;
                let (mut second, third) = (server.accept().await, server.accept().await);
                peer.answer("\r\n1").await;
                peer.question().await;
                if works_on {
                    assert!(peer.is_at_end().await, "it is not waited for");
                }
                drop(peer);
                assert_eq!(second.request().await.param("REQUEST_URI"), "/2");
                // It is alone now, and serves the last one too, over this connection or that one.
                second.answer("\r\n2").await;
                drop(second);
                let mut third = third;
                assert_eq!(third.request().await.param("REQUEST_URI"), "/3");
                third.answer("\r\n3").await;
            };
            let asks = join_all([get("/1"), get("/2"), get("/3")].map(async |it| whole(ask(&client, it).await).await));
            assert_eq!(futures_util::future::join(asks, says).await.0, ["1", "2", "3"]);
        }
    });
}

/// It was sent, and nobody knows what became of it.
#[test]
fn a_form_that_was_handed_a_child_is_sent_once() {
    on_a_worker(async {
        let server = Server::start();
        let client = client_with(&server, |_| {});
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            let standing = server.accept().await;
            peer.answer("\r\n1").await;
            peer.question().await;
            peer.free().await;
            assert_eq!(peer.request().await.stdin, b"a=1");
            drop(peer);
            carries_nothing(standing).await;
            assert!(server.is_idle().await);
        };
        let post = request(&Method::POST, "/", Body::from(Bytes::from_static(b"a=1")));
        let asks = futures_util::future::join(ask(&client, get("/1")), ask(&client, post));
        let ((first, form), ()) = futures_util::future::join(asks, says).await;
        assert_eq!(whole(first).await, "1");
        assert_eq!(form.expect_err("closed").fault, Fault::ConnectionTerminated);
    });
}

/// The connections of other workers, sites and programs come into the queue as well.
#[test]
fn a_crowd_does_not_fill_the_queue_of_the_server() {
    on_a_worker(async {
        let server = Server::start();
        let client = client_with(&server, |_| {});
        let crowd = 3 * line::STANDING_MAX;
        let says = async {
            let mut served = 0;
            let mut standing = Vec::new();
            while served < crowd {
                while standing.len() < line::STANDING_MAX.min(crowd - served) {
                    standing.push(server.accept().await);
                }
                assert!(server.is_idle().await);
                let mut peer = standing.remove(0);
                assert_eq!(peer.request().await.param("REQUEST_URI"), format!("/{served}"));
                // Closed before its end says that it may be kept: a child that serves one request.
                peer.raw([&[1, 6, 0, 1, 0, 3, 0, 0][..], b"\r\nx", &[1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat()).await;
                drop(peer);
                served += 1;
            }
        };
        let asks = join_all((0..crowd).map(|number| {
            let client = &client;
            async move { whole(ask(client, get(&format!("/{number}"))).await).await }
        }));
        let (answers, ()) = futures_util::future::join(asks, says).await;
        assert!(answers.iter().all(|answer| answer == "x"));
    });
}

#[test]
fn a_get_is_tried_again_once_when_a_kept_connection_turns_out_dead() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.answer("\r\n1").await;
            peer.question().await;
            peer.free().await;
            peer.request().await;
            drop(peer);
            let mut peer = server.accept().await;
            peer.request().await;
            drop(peer);
        };
        let asks = async {
            assert_eq!(whole(ask(&client, get("/")).await).await, "1");
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            let error = ask(&client, get("/")).await.expect_err("the second connection had carried nothing before");
            assert_eq!(error.fault, Fault::ConnectionTerminated);
        };
        futures_util::future::join(says, asks).await;
        assert!(server.is_idle().await);
    });
}

#[test]
fn a_post_is_sent_once() {
    on_a_worker(async {
        let server = Server::start();
        let post = request(&Method::POST, "/", Body::from(Bytes::from_static(b"a=1")));
        let answered = exchange(&client(&server), &server, post, async |_| {}).await;
        assert_eq!(answered.expect_err("closed").fault, Fault::ConnectionTerminated);
        assert!(server.is_idle().await);
    });
}

#[test]
fn a_server_that_is_not_there_yet_is_asked_when_it_is() {
    on_a_worker(async {
        let server = Server::start();
        let place = tempfile::TempDir::new().expect("a folder");
        let socket = place.path().join("later.sock");
        let options = ServerOptions::new(vec![Address::Unix(socket.clone())], options(&server).tls);
        let client = FastCgi::new(shared(options), None);
        for _ in 0..5 {
            let error = ask(&client, get("/")).await.expect_err("nobody is there");
            assert_eq!(error.fault, Fault::ConnectionRefused);
        }
        std::os::unix::fs::symlink(server.socket(), &socket).expect("a link");
        let response = exchange(&client, &server, get("/"), async |peer| peer.answer("\r\nhere").await).await;
        assert_eq!(whole(response).await, "here");
    });
}

/// `connect` says EAGAIN at once when the queue of a Unix socket is full.
#[test]
fn a_full_queue_is_waited_for_and_is_no_failure() {
    on_a_worker(async {
        let place = tempfile::TempDir::new().expect("a folder");
        let path = place.path().join("full.sock");
        let socket = tokio::net::UnixSocket::new_stream().expect("a socket");
        socket.bind(&path).expect("bound");
        let listener = socket.listen(1).expect("a queue");
        // Nobody accepts these.
        let mut queue = Vec::new();
        while let Ok(stream) = tokio::net::UnixStream::connect(&path).await {
            queue.push(stream);
        }
        let server = Server::start();
        let options = || ServerOptions::new(vec![Address::Unix(path.clone())], options(&server).tls);
        let mut impatient = options();
        impatient.connect_timeout = Duration::from_millis(50);
        let budget = Arc::new(Budget::new(1, 1, Duration::from_millis(50)));
        let impatient = FastCgi::new(shared(impatient), Some(budget));
        let error = ask(&impatient, get("/")).await.expect_err("full all the time");
        assert_eq!(error.fault.status(), StatusCode::SERVICE_UNAVAILABLE);

        let client = FastCgi::new(shared(options()), None);
        let mut asking = Box::pin(ask(&client, get("/")));
        assert!(futures_util::FutureExt::now_or_never(&mut asking).is_none(), "waits");
        let accepts = async {
            for _ in 0..queue.len() {
                drop(listener.accept().await.expect("from the queue"));
            }
            // The request's own: no child takes it, so it is put into the queue again, twice.
            for _ in 0..=line::AGAIN_MAX {
                let (stream, _) = listener.accept().await.expect("a connection");
                drop(stream);
            }
        };
        let (answered, ()) = futures_util::future::join(asking, accepts).await;
        assert_eq!(answered.expect_err("closed").fault, Fault::ConnectionTerminated, "it was connected");
        assert!(client.addresses().all(|address| address.up), "a busy server is not down");
    });
}

/// What is written into a connection is carried out when a child gets to it, even if nobody waits for it any more: a pool that is full would work off what
/// its clients have given up, and a form would be sent by whoever was told that it was not.
#[test]
fn a_request_that_no_child_has_taken_is_never_carried_out() {
    on_a_worker(async {
        let server = Server::start();
        let budget = Arc::new(Budget::new(4, 4, Duration::from_millis(50)));
        let client = FastCgi::new(shared(options(&server)), Some(budget));
        let error = ask(&client, request(&Method::POST, "/", Body::from(Bytes::from_static(b"a=1")))).await.expect_err("nobody accepts");
        assert_eq!((error.fault, error.fault.status()), (Fault::Overloaded, StatusCode::SERVICE_UNAVAILABLE));
        // A child gets to it.
        let mut late = server.accept().await;
        late.question().await;
        assert!(late.is_at_end().await, "nothing follows the question");
        // And who waits for a child is not waiting for the script: its own time begins when a child has taken the connection.
        let mut quick = options(&server);
        quick.first_byte_timeout = Duration::from_millis(20);
        let client = FastCgi::new(shared(quick), Some(Arc::new(Budget::new(4, 4, Duration::from_secs(10)))));
        let mut asking = Box::pin(ask(&client, get("/")));
        assert!(tokio::time::timeout(Duration::from_millis(60), &mut asking).await.is_err(), "it still waits");
        let takes = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.answer("\r\nhere").await;
        };
        let (response, ()) = futures_util::future::join(asking, takes).await;
        assert_eq!(whole(response).await, "here");
    });
}

/// php-fpm was restarted, and its queue is gone.
#[test]
fn a_request_that_no_child_had_taken_is_put_into_the_queue_again_whatever_its_method() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        let post = request(&Method::POST, "/", Body::from(Bytes::from_static(b"a=1")));
        let says = async {
            drop(server.accept().await);
            let mut peer = server.accept().await;
            assert_eq!(peer.request().await.stdin, b"a=1");
            peer.answer("\r\ndone").await;
        };
        let (response, ()) = futures_util::future::join(ask(&client, post), says).await;
        assert_eq!(whole(response).await, "done");
    });
}

#[test]
fn a_client_that_reads_slowly_holds_no_child_that_is_done() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        for (length, says_first) in [(100, 50), (200_000, 10), (ahead::MEMORY_BYTES_MAX, 10), (9_000_000, 300_000)] {
            let page: Vec<u8> = (0..=250).cycle().take(length).collect();
            let says = async {
                let mut peer = server.accept().await;
                peer.request().await;
                peer.stdout([b"Set-Cookie: a=1\r\n\r\n", &page[..says_first]].concat()).await;
                peer
            };
            let (response, mut peer) = futures_util::future::join(ask(&client, request(&Method::POST, "/", Body::Empty)), says).await;
            let response = response.expect("a head");
            // Nobody reads.
            peer.answer(&page[says_first..]).await;
            peer.question().await;
            peer.closed().await;
            assert!(content(response).await.expect("whole") == page);
            assert_eq!(client.server.room.held.load(Relaxed), 0, "the room is given back");
        }
    });
}

/// The content comes in order in whatever turn the server says something and the client reads it.
#[test]
fn what_is_read_ahead_comes_in_order_and_whole_or_as_an_error() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        for ends_well in [true, false] {
            let says = async {
                let mut peer = server.accept().await;
                peer.request().await;
                peer.stdout("\r\n").await;
                peer
            };
            let (response, mut peer) = futures_util::future::join(ask(&client, request(&Method::POST, "/", Body::Empty)), says).await;
            let mut body = response.expect("a head").into_body();
            let (mut said, mut read) = (Vec::new(), Vec::new());
            // More than fits the memory, then all of it is read; and that several times over.
            for (round, size) in [(0, 700_000), (1, 10), (2, 2_000_000), (3, 40_000), (4, 900_000)] {
                let piece: Vec<u8> = (round..250).cycle().take(size).collect();
                peer.stdout(&piece).await;
                said.extend(piece);
                let until = said.len() - if round % 2 == 0 { 5_000 } else { 0 };
                while read.len() < until {
                    read.extend(body.frame().await.expect("more").expect("good").into_data().expect("data"));
                }
            }
            if ends_well {
                peer.end().await;
            }
            drop(peer);
            loop {
                match body.frame().await {
                    Some(Ok(frame)) => read.extend(frame.into_data().expect("data")),
                    Some(Err(error)) => break assert!(!ends_well && error.fault == Fault::ConnectionTerminated, "{error}"),
                    None => break assert!(ends_well),
                }
            }
            assert!(read == said);
        }
    });
}

/// No room on the disk is left for what is read ahead.
#[test]
fn what_nobody_reads_is_not_read_without_end() {
    on_a_worker(async {
        let server = Server::start();
        let client = client(&server);
        client.server.room.held.store(ahead::FILES_BYTES_MAX, Relaxed);
        let says = async {
            let mut peer = server.accept().await;
            peer.request().await;
            peer.stdout("\r\nx").await;
            peer
        };
        let (response, mut peer) = futures_util::future::join(ask(&client, get("/")), says).await;
        let response = response.expect("a head");
        let endless = async {
            loop {
                peer.stdout([b'x'; 8192]).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_millis(300), endless).await.is_err(), "it waits until somebody reads");
        drop(response);
        peer.closed().await;
    });
}
