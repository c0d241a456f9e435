//! The waiting connection: what wakes it, and what does not.

use std::time::Duration;

use cluster::stream::EntryId;
use testkit::{Software, Valkey};

use super::{DEADLINE, confirmation, engine, engine_of_others, entry, round};

#[tokio::test]
async fn an_entry_wakes_it_and_is_told_once() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let seen = round(&link, None).await.end.id;
        let mut waiter = engine.waiter().await.expect("a waiter");
        let (woken, appended) = tokio::join!(waiter.wait(seen, DEADLINE), async {
            let entry = entry(&engine, "b0b", 1);
            link.append(&[entry]).await
        });
        assert!(woken.expect("woken").entries);
        assert_eq!(appended.expect("appended").ids.len(), 1);
        let woken = waiter.wait(seen, Duration::from_millis(1)).await.expect("nothing");
        assert!(!woken.entries, "whoever has not read it yet is not woken by it again and again");
    }
}

#[tokio::test]
async fn entries_that_were_seen_do_not_wake_it() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        round(&link, None).await;
        let appended = link.append(&[entry(&engine, "b0b", 1)]).await.expect("appended");
        let mut waiter = engine.waiter().await.expect("a waiter");
        let woken = waiter.wait(appended.ids[0], Duration::from_millis(1)).await.expect("nothing");
        assert!(!woken.entries && woken.confirmations.is_empty());
    }
}

#[tokio::test]
async fn confirmations_wake_it_with_who_confirmed_what() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let id = EntryId { millis: 5, sequence: 6 };
        link.confirm(&confirmation("early/5e55", id)).await.expect("confirmed");
        let seen = round(&link, None).await.end.id;
        let mut waiter = engine.waiter().await.expect("a waiter");
        for field in ["a/5e55", "a machine with spaces/5e55"] {
            let confirmation = confirmation(field, id);
            let (woken, confirmed) = tokio::join!(waiter.wait(seen, DEADLINE), link.confirm(&confirmation));
            confirmed.expect("confirmed");
            let woken = woken.expect("woken");
            assert_eq!(woken.confirmations, [confirmation], "what was confirmed before it began is not told");
            assert!(!woken.entries);
        }
    }
}

#[tokio::test]
async fn confirmations_without_the_seal_are_not_told() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let seen = round(&link, None).await.end.id;
        let mut waiter = engine.waiter().await.expect("a waiter");
        let others = engine_of_others(&server).connect().await.expect("a link");
        others.confirm(&confirmation("a/5e55", seen)).await.expect("confirmed");
        server.ask(&["XADD", "seawall:{seawall}:confirmed", "*", "c", "1 garbage"]);
        server.ask(&["XADD", "seawall:{seawall}:confirmed", "*", "other", "field"]);
        assert!(waiter.wait(seen, DEADLINE).await.expect("woken").confirmations.is_empty());
        link.confirm(&confirmation("a/5e55", seen)).await.expect("confirmed");
        assert_eq!(waiter.wait(seen, DEADLINE).await.expect("woken").confirmations.len(), 1, "it goes on after them");
    }
}

#[tokio::test]
async fn more_confirmations_than_one_waking_brings_come_with_the_next() {
    let server = Valkey::start(Software::any());
    let engine = engine(&server);
    let link = engine.connect().await.expect("a link");
    let seen = round(&link, None).await.end.id;
    let mut waiter = engine.waiter().await.expect("a waiter");
    for number in 0..100 {
        link.confirm(&confirmation("a/5e55", EntryId { millis: number, sequence: 0 })).await.expect("confirmed");
    }
    let mut told = Vec::new();
    while told.len() < 100 {
        told.extend(waiter.wait(seen, DEADLINE).await.expect("woken").confirmations.into_iter().map(|told| told.confirmed.id.millis));
    }
    assert_eq!(told, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_lost_connection_ends_it() {
    for software in Software::installed() {
        let mut server = Valkey::start(software);
        let engine = engine(&server);
        let mut waiter = engine.waiter().await.expect("a waiter");
        server.kill();
        assert!(waiter.wait(EntryId::default(), DEADLINE).await.expect_err("cut").ends_link());
    }
}
