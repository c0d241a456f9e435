//! The stream: rounds, appended entries, and what breaks the continuity.

use std::time::Duration;

use cluster::{
    link::{Append, Ask, ENTRIES_AT_ONCE_MAX, ENTRY_BYTES_MAX, Engine, EngineOptions, LinkError},
    stream::{ENTRIES_MAX, EntryContent, EntryId, EntryMaker},
};
use testkit::{Software, Valkey};

use super::{DEADLINE, at_end_of, confirmation, engine, entry, member, options, order, round};

#[tokio::test]
async fn the_first_round_begins_the_stream_and_registers_the_machine() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        let first = round(&link, None).await;
        assert_eq!(first.end.said, EntryContent::Begun);
        assert!(!first.continuous);
        assert_eq!(first.entries, std::slice::from_ref(&first.end), "without a position it shows the beginning");
        assert_eq!(first.members.into_iter().collect::<Vec<_>>(), [("a".to_owned(), member("5e55", 1))]);
        assert!(first.replicated, "none are wanted");

        let second = round(&link, None).await;
        assert_eq!((&second.run, &second.born, &second.end), (&first.run, &first.born, &first.end), "nothing was begun again");
        assert_eq!(server.ask(&["XLEN", "seawall:{seawall}:purges"]), "1");
    }
}

#[tokio::test]
async fn the_address_of_the_server_and_its_software_are_known() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        assert_eq!(link.server().address, format!("redis://127.0.0.1:{}", server.port()));
        let expected = if software == Software::Valkey { "valkey" } else { "redis" };
        assert_eq!(link.server().software, expected);
        assert!(link.server().version.starts_with(|c: char| c.is_ascii_digit()), "{:?}", link.server());
    }
}

#[tokio::test]
async fn appended_entries_are_found_in_order_after_a_position() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let (reader, writer) = (engine.connect().await.expect("a link"), engine.connect().await.expect("a link"));
        let begun = round(&reader, None).await;
        let appended = writer.append(&[entry(&engine, "b0b", 1), entry(&engine, "b0b", 2)]).await.expect("appended");
        assert_eq!((appended.ids.len(), &appended.run, &appended.born), (2, &begun.run, &begun.born));
        assert!(appended.members.contains_key("a"), "the step that appends knows who is there");

        let found = round(&reader, Some(&at_end_of(&begun))).await;
        assert!(found.continuous);
        assert_eq!(found.entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), appended.ids);
        assert_eq!(found.entries[1].said, EntryContent::Purge(order(2)));
        assert_eq!(found.entries[1].made, Some(EntryMaker { session: "b0b".to_owned(), number: 2 }));
        assert_eq!(found.end, found.entries[1]);

        let nothing = round(&reader, Some(&at_end_of(&found))).await;
        assert!(nothing.continuous && nothing.entries.is_empty());
    }
}

#[tokio::test]
async fn a_round_brings_no_more_entries_than_were_asked_for() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let begun = round(&link, None).await;
        // Entries as long as they may be: so many of them fit into one reply.
        let long = |number| {
            let tag = "t".repeat(ENTRY_BYTES_MAX - 300);
            let made = EntryMaker { session: "b0b".to_owned(), number };
            let what = vec![policy::purge::What::Tag(tag)];
            let by = policy::purge::Maker::Operator;
            let order = policy::purge::Order { sites: policy::purge::Sites::All, what, hard: true, by };
            engine.seals().purge(made, &order).expect("just short enough")
        };
        for batch in 0..2 {
            let numbers = 0..ENTRIES_AT_ONCE_MAX as u64;
            let entries: Vec<_> = numbers.map(|number| long(batch * 1000 + number)).collect();
            link.append(&entries).await.expect("appended");
        }
        let member = member("5e55", 2);
        let position = at_end_of(&begun);
        for (asked, got) in [(3, 3), (usize::MAX, ENTRIES_AT_ONCE_MAX), (0, 1)] {
            let ask = Ask { field: "a", member: &member, position: Some(&position), entries_max: asked };
            let found = link.round(ask).await.expect("a round");
            assert_eq!(found.entries.len(), got, "{asked} were asked for");
            assert!(found.end.id > found.entries.last().expect("one").id, "the end is told, too");
        }
    }
}

#[tokio::test]
async fn what_is_too_long_or_too_much_is_not_appended() {
    let server = Valkey::start(Software::any());
    let engine = engine(&server);
    let link = engine.connect().await.expect("a link");
    let many: Vec<_> = (0..=ENTRIES_AT_ONCE_MAX as u64).map(|number| entry(&engine, "b0b", number)).collect();
    let long = Append { made: EntryMaker { session: "b0b".to_owned(), number: 1 }, sealed: vec![b'x'; ENTRY_BYTES_MAX + 1].into() };
    for entries in [many, vec![long]] {
        assert!(matches!(link.append(&entries).await, Err(LinkError::TooLong { .. })));
    }
    assert_eq!(server.ask(&["EXISTS", "seawall:{seawall}:purges"]), "0");
}

/// A purge of the time between could be missing, although the last entry that was applied is there.
#[tokio::test]
async fn a_restarted_server_breaks_the_continuity_although_it_has_kept_everything() {
    for software in Software::installed() {
        let mut server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let before = round(&link, None).await;
        server.ask(&["SAVE"]);
        server.start_again();
        assert!(
            link.round(Ask { field: "a", member: &member("5e55", 2), position: None, entries_max: 1 }).await.expect_err("cut").ends_link()
        );
        let link = engine.connect().await.expect("a link");
        let after = round(&link, Some(&at_end_of(&before))).await;
        assert_eq!(after.end, before.end, "the entry is there");
        assert_ne!(after.run, before.run);
        assert!(!after.continuous);
    }
}

/// A primary that was replaced and is the primary again is still the same process, and has what another one wrote meanwhile.
#[tokio::test]
async fn a_server_that_was_a_replica_meanwhile_breaks_the_continuity() {
    for software in Software::installed() {
        let (server, other) = (Valkey::start(software), Valkey::start(software));
        let link = engine(&server).connect().await.expect("a link");
        let before = round(&link, None).await;
        other.ask(&["REPLICAOF", "127.0.0.1", &server.port().to_string()]);
        until(|| other.ask(&["INFO", "replication"]).contains("master_link_status:up"));
        other.ask(&["REPLICAOF", "NO", "ONE"]);
        server.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
        until(|| server.ask(&["INFO", "replication"]).contains("master_link_status:up"));
        server.ask(&["REPLICAOF", "NO", "ONE"]);
        let link = engine(&server).connect().await.expect("a link");
        let after = round(&link, Some(&at_end_of(&before))).await;
        assert_eq!(after.end, before.end, "the entry is there");
        assert!(!after.continuous, "{:?} and {:?}", before.run, after.run);
    }
}

#[tokio::test]
async fn a_flushed_server_breaks_the_continuity_and_forgets_who_made_the_hash() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        let before = round(&link, None).await;
        server.ask(&["FLUSHALL"]);
        let after = round(&link, Some(&at_end_of(&before))).await;
        assert!(!after.continuous);
        assert_eq!(after.end.said, EntryContent::Begun, "it is begun again");
        assert_ne!(after.born, before.born);
        assert_eq!(after.run, before.run);
    }
}

/// Whoever reads on after its position must find that the stream is another one.
#[tokio::test]
async fn appending_does_not_begin_a_stream_that_was_lost() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        round(&link, None).await;
        server.ask(&["DEL", "seawall:{seawall}:purges"]);
        let error = link.append(&[entry(&engine, "b0b", 1)]).await.expect_err("there is none");
        assert!(matches!(&error, LinkError::Refused { .. }) && !error.ends_link(), "{error}");
        assert_eq!(server.ask(&["EXISTS", "seawall:{seawall}:purges"]), "0");
    }
}

/// What machines have confirmed of the stream before says nothing of this one.
#[tokio::test]
async fn with_a_new_stream_begins_a_new_list_of_machines() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        let before = round(&link, None).await;
        let other = member("b0b", 1);
        link.round(Ask { field: "b", member: &other, position: None, entries_max: 1 }).await.expect("a round");
        server.ask(&["DEL", "seawall:{seawall}:purges"]);
        let after = round(&link, None).await;
        assert_ne!(after.born, before.born);
        assert_eq!(after.members.keys().collect::<Vec<_>>(), ["a"], "the other one comes back with its next round");
    }
}

/// Ids could come again, as they are of the server's clock.
#[tokio::test]
async fn an_entry_of_the_same_id_by_another_maker_breaks_the_continuity() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let before = round(&link, None).await;
        server.ask(&["FLUSHALL"]);
        let other = entry(&engine, "b0b", 1);
        server.ask(&[b"XADD", &b"seawall:{seawall}:purges"[..], before.end.id.to_string().as_bytes(), b"e", &other.sealed]);
        let after = round(&link, Some(&at_end_of(&before))).await;
        assert_eq!(after.end.id, before.end.id);
        assert!(!after.continuous);
    }
}

#[tokio::test]
async fn the_stream_is_trimmed_and_whoever_fell_behind_further_is_told() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = engine(&server);
        let link = engine.connect().await.expect("a link");
        let begun = round(&link, None).await;
        let batch: Vec<_> = (0..ENTRIES_AT_ONCE_MAX as u64).map(|number| entry(&engine, "b0b", number)).collect();
        for _ in 0..ENTRIES_MAX / ENTRIES_AT_ONCE_MAX {
            link.append(&batch).await.expect("appended");
        }
        assert_eq!(server.ask(&["XLEN", "seawall:{seawall}:purges"]), ENTRIES_MAX.to_string());
        let round = round(&link, Some(&at_end_of(&begun))).await;
        assert!(!round.continuous && round.entries.is_empty());
    }
}

#[tokio::test]
async fn all_keys_but_the_stream_expire() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        round(&link, None).await;
        link.confirm(&confirmation("a/5e55", EntryId::default())).await.expect("confirmed");
        let keys = server.ask(&["KEYS", "*"]);
        let mut keys: Vec<_> = keys.lines().collect();
        keys.sort_unstable();
        assert_eq!(keys, ["seawall:{seawall}:confirmed", "seawall:{seawall}:machines", "seawall:{seawall}:purges"]);
        for key in keys {
            let lives: i64 = server.ask(&["PTTL", key]).parse().expect("a number");
            assert_eq!(lives > 0, !key.ends_with("purges"), "{key}: {lives}");
        }
    }
}

#[tokio::test]
async fn a_machine_is_removed_only_if_nothing_was_heard_of_it_since() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let link = engine(&server).connect().await.expect("a link");
        let say = async |beat| {
            let member = member("5e55", beat);
            link.round(Ask { field: "a", member: &member, position: None, entries_max: 1 }).await.expect("a round");
        };
        say(1).await;
        say(10).await;
        assert!(!link.remove_member_if_unchanged("a", &member("5e55", 1)).await.expect("an answer"), "it lives: 1 is how 10 begins");
        assert!(!link.remove_member_if_unchanged("a", &member("5e56", 10)).await.expect("an answer"), "another session");
        assert!(!link.remove_member_if_unchanged("b", &member("5e55", 10)).await.expect("an answer"), "another name");
        assert!(link.remove_member_if_unchanged("a", &member("5e55", 10)).await.expect("an answer"));
        assert!(!link.remove_member_if_unchanged("a", &member("5e55", 10)).await.expect("an answer"), "it is gone");

        say(11).await;
        assert!(!link.remove_member_of("a", "5e56").await.expect("an answer"), "a clean stop removes its own session alone");
        assert!(link.remove_member_of("a", "5e55").await.expect("an answer"));
    }
}

#[tokio::test]
async fn so_many_replicas_as_are_wanted_have_it_or_it_is_told() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = Engine::new(EngineOptions { replicas: 1, ..options(&server.url()) }).expect("an engine");
        let link = engine.connect().await.expect("a link");
        assert!(!round(&link, None).await.replicated, "there is none");
        assert!(!link.append(&[entry(&engine, "b0b", 1)]).await.expect("appended").replicated);

        let replica = Valkey::start_with(software, &["--replicaof", "127.0.0.1", &server.port().to_string()]);
        until(|| server.ask(&["INFO", "replication"]).contains("state=online"));
        // A replica may take longer than the link waits, on a machine that does much else.
        let begun = std::time::Instant::now();
        while !link.append(&[entry(&engine, "b0b", 2)]).await.expect("appended").replicated {
            assert!(begun.elapsed() < DEADLINE, "it never had it");
        }
        while !round(&link, None).await.replicated {
            assert!(begun.elapsed() < DEADLINE, "it never had it");
        }

        replica.freeze();
        assert!(!link.append(&[entry(&engine, "b0b", 3)]).await.expect("appended").replicated);
        assert!(!round(&link, None).await.replicated);
    }
}

/// Asks again and again until it is so. Servers do not tell when they have synchronized.
pub(super) fn until(mut so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never was");
        std::thread::yield_now();
    }
}
