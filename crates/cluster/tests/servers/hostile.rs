//! Bad input and bad servers: another secret, garbage and gigabytes in our keys, a full server, one that is frozen, and one that is none.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use cluster::{
    link::{Ask, Engine, EngineOptions, LinkError},
    stream::EntryContent,
};
use testkit::{Software, Valkey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{at_end_of, engine, engine_of_others, entry, member, options, order, round};

const PURGES: &str = "seawall:{seawall}:purges";
const MACHINES: &str = "seawall:{seawall}:machines";

#[tokio::test]
async fn entries_of_another_secret_and_garbage_are_told_as_unreadable() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let begun = round(&link, None).await;
        let others = engine_of_others(&server);
        others.connect().await.expect("a link").append(&[entry(&others, "b0b", 1)]).await.expect("appended");
        server.ask(&["XADD", PURGES, "*", "e", "garbage"]);
        server.ask(&[b"XADD", PURGES.as_bytes(), b"*", b"e", b"\xff\x00\n"]);
        server.ask(&["XADD", PURGES, "*", "other", "field", "and", "another"]);
        link.append(&[entry(&engine, "b0b", 2)]).await.expect("appended");
        let found = round(&link, Some(&at_end_of(&begun))).await;
        assert_eq!(found.entries.len(), 5);
        for entry in &found.entries[..4] {
            assert!(entry.made.is_none() && matches!(entry.said, EntryContent::Unreadable { sealed: false, .. }), "{entry:?}");
        }
        assert_eq!(found.entries[4].said, EntryContent::Purge(order(2)), "what comes after them is read");
        // An entry that nobody could read is a position like any other.
        let refused = &found.entries[3];
        let position = cluster::stream::Position { run: found.run.clone(), id: refused.id, made: None };
        assert!(round(&link, Some(&position)).await.continuous);
    }
}

#[tokio::test]
async fn machines_of_another_secret_and_garbage_are_strangers() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        let others = engine_of_others(&server).connect().await.expect("a link");
        others.round(Ask { field: "b", member: &member("b0b", 1), position: None, entries_max: 1 }).await.expect("a round");
        server.ask(&["HSET", MACHINES, "m:c", "garbage", "other", "field"]);
        let found = round(&link, None).await;
        assert_eq!(found.members.keys().collect::<Vec<_>>(), ["a"]);
        let mut names: Vec<_> = found.strangers.iter().map(|stranger| stranger.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["b", "c", "other"]);
        assert_eq!(link.append(&[]).await.expect("a step").strangers.len(), 3, "whoever appends is told, too");

        let stranger = found.strangers.iter().find(|stranger| stranger.name == "b").expect("there");
        others.round(Ask { field: "b", member: &member("b0b", 2), position: None, entries_max: 1 }).await.expect("a round");
        assert!(!link.remove_stranger_if_unchanged(stranger).await.expect("an answer"), "it lives");
        for stranger in round(&link, None).await.strangers {
            assert!(link.remove_stranger_if_unchanged(&stranger).await.expect("an answer"));
        }
        assert!(round(&link, None).await.strangers.is_empty());
    }
}

/// 64 MiB: no reply that long is read, and the server itself removes it.
#[tokio::test]
async fn what_is_far_too_long_is_not_read_and_is_gone_for_the_next_link() {
    let long = vec![b'x'; 64 * 1024 * 1024];
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let begun = round(&link, None).await;
        link.append(&[entry(&engine, "b0b", 1)]).await.expect("appended");
        server.ask(&[b"XADD", PURGES.as_bytes(), b"*", b"e", &long]);
        link.append(&[entry(&engine, "b0b", 2)]).await.expect("appended");
        let position = at_end_of(&begun);
        let member = member("5e55", 2);
        let ask = || Ask { field: "a", member: &member, position: Some(&position), entries_max: 100 };
        let error = link.round(ask()).await.expect_err("nobody reads that");
        assert!(matches!(error, LinkError::TooLong { .. }) && error.ends_link(), "{error:?}");
        let link = engine.connect().await.expect("a link");
        let found = link.round(ask()).await.expect("a round");
        assert!(found.continuous);
        assert_eq!(
            found.entries.iter().map(|entry| &entry.said).collect::<Vec<_>>(),
            [&EntryContent::Purge(order(1)), &EntryContent::Purge(order(2))]
        );

        // Machines that are forgotten by that are known to be.
        server.ask(&[b"HSET", MACHINES.as_bytes(), b"m:b", &long]);
        assert!(matches!(link.round(ask()).await, Err(LinkError::TooLong { .. })));
        let link = engine.connect().await.expect("a link");
        let after = link.round(ask()).await.expect("a round");
        assert!(after.strangers.is_empty() && after.born != found.born);

        let mut waiter = engine.waiter().await.expect("a waiter");
        server.ask(&[b"XADD", &b"seawall:{seawall}:confirmed"[..], b"*", b"c", &long]);
        assert!(matches!(waiter.wait(after.end.id, Duration::from_secs(20)).await, Err(LinkError::TooLong { .. })));
        assert!(engine.waiter().await.is_ok(), "and so is a confirmation");
    }
}

#[tokio::test]
async fn a_key_of_another_kind_is_named() {
    for software in Software::installed() {
        for key in [PURGES, MACHINES] {
            let server = Valkey::start(software);
            let link = engine(&server).connect().await.expect("a link");
            server.ask(&["SET", key, "1"]);
            let ask = Ask { field: "a", member: &member("5e55", 1), position: None, entries_max: 1 };
            let error = link.round(ask).await.expect_err("it is a text");
            assert!(matches!(&error, LinkError::Refused { why, .. } if why.contains(key)), "{error}");
        }
    }
}

#[tokio::test]
async fn a_full_server_refuses_and_keeps_the_link() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        round(&link, None).await;
        server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
        let member = member("5e55", 2);
        let ask = || Ask { field: "a", member: &member, position: None, entries_max: 1 };
        for error in [link.round(ask()).await.expect_err("full"), link.append(&[entry(&engine, "b0b", 1)]).await.expect_err("full")] {
            assert!(matches!(&error, LinkError::Refused { why, .. } if why.starts_with("OOM") && !why.ends_with('.')), "{error}");
            assert!(!error.ends_link());
        }
        assert_eq!(server.ask(&["XLEN", PURGES]), "1", "nothing was appended");
        server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
        link.append(&[entry(&engine, "b0b", 1)]).await.expect("the link is as good as before");
    }
}

#[tokio::test]
async fn a_frozen_server_has_the_deadline_and_no_more() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let deadline = Duration::from_millis(200);
        let engine = Engine::new(EngineOptions { deadline, ..options(&server.url()) }).expect("an engine");
        let link = engine.connect().await.expect("a link");
        let mut waiter = engine.waiter().await.expect("a waiter");
        server.freeze();
        let begun = Instant::now();
        let member = member("5e55", 1);
        let ask = Ask { field: "a", member: &member, position: None, entries_max: 1 };
        let error = link.round(ask).await.expect_err("it does not answer");
        assert!(matches!(error, LinkError::TooLate { .. }) && error.ends_link(), "{error:?}");
        assert!(matches!(waiter.wait(cluster::stream::EntryId::default(), deadline).await, Err(LinkError::TooLate { .. })));
        assert!(matches!(engine.connect().await, Err(LinkError::TooLate { .. })));
        assert!(begun.elapsed() < 20 * deadline, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn what_is_no_server_of_this_kind_is_refused_in_time() {
    for says in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"$99999999999999999999\r\n", b"*1000000000\r\n", b"+OK\r\n+OK\r\n", b""] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("its address"));
        let engine = Engine::new(EngineOptions { deadline: Duration::from_millis(500), ..options(&url) }).expect("an engine");
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.read(&mut [0; 1000]).await;
            let _ = stream.write_all(says).await;
            stream
        };
        let (connected, _stream) = tokio::join!(engine.connect(), server);
        assert!(connected.is_err(), "{says:?}");
    }
}

/// A server that does not know `AUTH`, as it was renamed, repeats how the arguments of a command begin.
#[tokio::test]
async fn a_password_that_the_server_repeats_is_not_shown() {
    for (says, shown) in [
        ("-ERR unknown command 'AUTH', with args beginning with: 'correct horse battery' ", "ERR"),
        ("-ERR unknown command 'AUTH', with args beginning with: 'correct ho", "ERR"),
        ("-WRONGPASS no: correct horse battery", "WRONGPASS"),
        ("-correct horse battery", "its words"),
        ("-WRONGPASS invalid username-password pair or user is disabled.", "invalid username-password pair"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("redis://:correct%20horse%20battery@{}", listener.local_addr().expect("its address"));
        let engine = Engine::new(options(&url)).expect("an engine");
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.read(&mut [0; 1000]).await;
            stream.write_all(format!("{says}\r\n").as_bytes()).await.expect("written");
            stream
        };
        let (connected, _stream) = tokio::join!(engine.connect(), server);
        let error = connected.expect_err("it lets nobody in");
        let said = error.to_string();
        assert!(matches!(error, LinkError::Denied { .. }) && said.contains(shown), "{error:?}");
        assert!(!said.contains("correct") && !said.contains("battery"), "{said}");
    }
}

/// Each field is as long as it may be, and there are as many as there may be.
#[tokio::test]
async fn many_fields_that_are_too_long_together_are_gone_for_the_next_link() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let begun = round(&link, None).await;
        for number in 0..1000 {
            server.ask(&["HSET", MACHINES, &format!("{number:03}{}", "n".repeat(4000)), &"v".repeat(4000)]);
        }
        let (member, position) = (member("5e55", 2), at_end_of(&begun));
        let ask = || Ask { field: "a", member: &member, position: Some(&position), entries_max: 100 };
        assert!(matches!(link.round(ask()).await, Err(LinkError::TooLong { .. })), "eight megabytes");
        let link = engine.connect().await.expect("a link");
        let found = link.round(ask()).await.expect("a round");
        assert!(found.continuous && found.strangers.is_empty() && found.born != begun.born);
    }
}

/// Many gigabytes of one reply: four megabytes of them are read.
#[tokio::test]
async fn an_endless_reply_ends_the_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let engine = engine_at(&listener);
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let _ = stream.read(&mut [0; 1000]).await;
        let _ = stream.write_all(b"$4000000000\r\n").await;
        let mut sent = 0_u64;
        while stream.write_all(&[b'x'; 65536]).await.is_ok() {
            sent += 65536;
        }
        sent
    };
    let (connected, sent) = tokio::join!(engine.connect(), server);
    let error = connected.expect_err("too long");
    assert!(matches!(error, LinkError::TooLong { .. }), "{error:?}");
    assert!(sent < 64 * 1024 * 1024, "what sockets hold, and four megabytes: {sent}");
}

fn engine_at(listener: &TcpListener) -> Engine {
    Engine::new(options(&format!("redis://{}", listener.local_addr().expect("its address")))).expect("an engine")
}
