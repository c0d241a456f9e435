//! The shelf and single values: sealed, bounded, in time, with locks whose late holders are refused.

use std::time::Duration;

use cluster::{
    link::{Engine, EngineOptions, LinkError, Value, Values},
    shelf::{Shelf, ShelfError, VALUE_BYTES_MAX},
};
use testkit::{Software, Valkey};
use tokio::runtime::Handle;

use super::{DEADLINE, engine, engine_of_others, options, rounds::until};

const HOUR: Duration = Duration::from_secs(3600);

fn shelf(server: &Valkey) -> Shelf {
    engine(server).shelf(Handle::current())
}

fn values(server: &Valkey) -> Values {
    engine(server).values(Handle::current())
}

#[tokio::test]
async fn what_is_put_is_found_by_everybody_with_the_secret_and_nobody_else() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let own = shelf(&server);
        assert_eq!(own.get("certificate/blog.example").await, Ok(None));
        let version = own.put("certificate/blog.example", b"-----BEGIN PRIVATE KEY-----", HOUR).await.expect("put");
        let kept = shelf(&server).get("certificate/blog.example").await.expect("an answer").expect("it is there");
        assert_eq!((&kept.value[..], kept.version), (&b"-----BEGIN PRIVATE KEY-----"[..], version));

        let others = engine_of_others(&server).shelf(Handle::current());
        assert!(matches!(others.get("certificate/blog.example").await, Err(ShelfError::Refused { .. })));
        assert_eq!((own.refused(), others.refused()), (0, 1));

        server.ask(&["SAVE"]);
        let dump = std::fs::read(server.folder().join("dump.rdb")).expect("a dump");
        let shows = |text: &[u8]| dump.windows(text.len()).any(|window| window == text);
        assert!(shows(b"certificate/blog.example") && !shows(b"PRIVATE KEY"), "the dump has the name and no key");

        assert_eq!(own.remove("certificate/blog.example").await, Ok(true));
        assert_eq!(own.remove("certificate/blog.example").await, Ok(false));
        assert_eq!(own.get("certificate/blog.example").await, Ok(None));
    }
}

#[tokio::test]
async fn what_is_put_expires() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let shelf = shelf(&server);
        shelf.put("ticket", b"1", HOUR).await.expect("put");
        let lives: u64 = server.ask(&["PTTL", "seawall:{seawall}:shelf:ticket"]).parse().expect("a lifetime");
        assert!((3_500_000..=3_600_000).contains(&lives), "{lives}");
        shelf.put("ticket", b"1", Duration::from_millis(1)).await.expect("put");
        until(|| server.ask(&["EXISTS", "seawall:{seawall}:shelf:ticket"]) == "0");
        assert_eq!(shelf.get("ticket").await, Ok(None));
    }
}

#[tokio::test]
async fn a_value_is_put_once_or_in_place_of_the_version_that_was_seen() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let shelf = shelf(&server);
        let first = shelf.put_if_absent("tickets", b"1", HOUR).await.expect("an answer").expect("there was none");
        assert_eq!(shelf.put_if_absent("tickets", b"2", HOUR).await, Ok(None));
        let second = shelf.put_instead_of("tickets", first, b"2", HOUR).await.expect("an answer").expect("it was the first");
        assert_eq!(shelf.put_instead_of("tickets", first, b"3", HOUR).await, Ok(None), "somebody was sooner");
        let kept = shelf.get("tickets").await.expect("an answer").expect("it is there");
        assert_eq!((&kept.value[..], kept.version), (&b"2"[..], second));
        shelf.remove("tickets").await.expect("removed");
        assert_eq!(shelf.put_instead_of("tickets", second, b"3", HOUR).await, Ok(None), "there is none");
    }
}

#[tokio::test]
async fn a_value_of_one_mebibyte_is_kept_and_a_longer_one_is_not() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let shelf = shelf(&server);
        let value = vec![7; VALUE_BYTES_MAX];
        shelf.put("long", &value, HOUR).await.expect("put");
        assert_eq!(shelf.get("long").await.expect("an answer").expect("there").value, value);
        shelf.put("empty", b"", HOUR).await.expect("put");
        assert_eq!(shelf.get("empty").await.expect("an answer").expect("there").value, b""[..]);
        let longer = vec![7; VALUE_BYTES_MAX + 1];
        assert!(matches!(shelf.put("long", &longer, HOUR).await, Err(ShelfError::TooLong(_))));
        assert!(matches!(shelf.put(&"n".repeat(600), b"1", HOUR).await, Err(ShelfError::TooLong(_))));
        assert!(matches!(shelf.lock(&"n".repeat(600), HOUR).await, Err(ShelfError::TooLong(_))));
    }
}

#[tokio::test]
async fn what_others_wrote_is_refused_and_named_and_counted() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let shelf = shelf(&server);
        let key = |name: &str| format!("seawall:{{seawall}}:shelf:{name}");
        server.ask(&["SET", &key("garbage"), "garbage"]);
        server.ask(&["SET", &key("damaged"), "S1"]);
        server.ask(&["HSET", &key("hash"), "a", "b"]);
        // 256 MiB: only a megabyte of it is read.
        server.ask(&["SETRANGE", &key("long"), "268435456", "x"]);
        shelf.put("own", b"1", HOUR).await.expect("put");
        server.ask(&["RENAME", &key("own"), &key("renamed")]);
        for (count, name) in (1..).zip(["garbage", "damaged", "hash", "long", "renamed"]) {
            match shelf.get(name).await {
                Err(ShelfError::Refused { name: named, .. }) => assert_eq!(named, name),
                other => panic!("{name}: {other:?}"),
            }
            assert_eq!(shelf.refused(), count);
        }
        shelf.put("garbage", b"1", HOUR).await.expect("whatever is there is written over");
        assert!(shelf.get("garbage").await.expect("an answer").is_some());
    }
}

#[tokio::test]
async fn a_lock_has_one_holder_and_its_number_rises() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (one, other) = (shelf(&server), shelf(&server));
        let lock = one.lock("order/blog.example", HOUR).await.expect("an answer").expect("nobody has it");
        assert!(other.lock("order/blog.example", HOUR).await.expect("an answer").is_none());
        assert!(other.lock("order/other.example", HOUR).await.expect("an answer").is_some());
        assert_eq!(lock.renew(2 * HOUR).await, Ok(true));
        let first = lock.number();
        assert_eq!(lock.release().await, Ok(true));
        let next = other.lock("order/blog.example", HOUR).await.expect("an answer").expect("it was released");
        assert!(next.number() > first);
        for key in server.ask(&["KEYS", "*"]).lines() {
            assert!(server.ask(&["PTTL", key]).parse::<i64>().expect("a number") > 0, "{key} expires");
        }
    }
}

/// The holder of the lock was away for longer than it held the lock, and does not know that.
#[tokio::test]
async fn a_late_holder_is_refused() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (late, next) = (shelf(&server), shelf(&server));
        let old = late.lock("order", HOUR).await.expect("an answer").expect("nobody has it");
        server.ask(&["DEL", "seawall:{seawall}:lock:order"]);
        let new = next.lock("order", HOUR).await.expect("an answer").expect("it has expired");
        assert_eq!(old.renew(HOUR).await, Ok(false));
        assert_eq!(old.release().await, Ok(false));
        assert_eq!(new.release().await, Ok(true), "the late one has not released the new one's");
    }
}

#[tokio::test]
async fn many_may_ask_at_once_from_any_runtime() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let shelf = shelf(&server);
        shelf.put("value", b"1", HOUR).await.expect("put");
        let elsewhere = shelf.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { elsewhere.get("value").await })
        });
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let shelf = shelf.clone();
            asked.spawn(async move { shelf.get("value").await });
        }
        while let Some(answer) = asked.join_next().await {
            assert_eq!(answer.expect("no panic").expect("an answer").expect("there").value, b"1"[..]);
        }
        // The connection lives in this runtime, which has to run for the other one to get its answer.
        until_ended(&thread).await;
        assert!(thread.join().expect("no panic").expect("an answer").is_some());
    }
}

async fn until_ended<T>(thread: &std::thread::JoinHandle<T>) {
    while !thread.is_finished() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_value_that_is_longer_than_asked_for_is_not_read() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let values = values(&server);
        values.put("tier:x", b"12345", HOUR, DEADLINE).await.expect("put");
        assert_eq!(values.get("tier:x", 5, DEADLINE).await, Ok(Value::Whole((&b"12345"[..]).into())));
        assert_eq!(values.get("tier:x", 4, DEADLINE).await, Ok(Value::TooLong));
        assert_eq!(values.get("tier:y", 4, DEADLINE).await, Ok(Value::None));
        assert!(values.put_if_absent("tier:y", b"1", HOUR, DEADLINE).await.expect("an answer"));
        assert!(!values.put_if_absent("tier:y", b"2", HOUR, DEADLINE).await.expect("an answer"));
        assert!(!values.remove_if("tier:y", b"2", DEADLINE).await.expect("an answer"));
        assert!(values.remove_if("tier:y", b"1", DEADLINE).await.expect("an answer"));
        assert!(values.remove("tier:x", DEADLINE).await.expect("an answer"));
        for bad in [&b""[..], &vec![1; Values::BYTES_MAX + 1]] {
            assert!(matches!(values.put("tier:x", bad, HOUR, DEADLINE).await, Err(LinkError::TooLong { .. })));
        }
    }
}

/// A reader who waits for 50 ms alone gives up; whoever asks next is answered.
#[tokio::test]
async fn a_server_that_is_slow_for_a_moment_keeps_its_connection() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let values = values(&server);
        values.put("tier:x", b"1", HOUR, DEADLINE).await.expect("put");
        let clients = server.ask(&["CLIENT", "LIST"]).lines().count();
        server.freeze();
        let late = values.get("tier:x", 5, Duration::from_millis(50)).await;
        assert!(matches!(late, Err(LinkError::TooLate { .. })), "{late:?}");
        server.thaw();
        assert_eq!(values.get("tier:x", 5, DEADLINE).await, Ok(Value::Whole((&b"1"[..]).into())));
        assert_eq!(server.ask(&["CLIENT", "LIST"]).lines().count(), clients, "nobody connected anew");
    }
}

#[tokio::test]
async fn a_server_that_stays_silent_is_connected_to_anew() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let engine = Engine::new(EngineOptions { deadline: Duration::from_millis(200), ..options(&server.url()) }).expect("an engine");
        let values = engine.values(Handle::current());
        values.put("tier:x", b"1", HOUR, DEADLINE).await.expect("put");
        server.freeze();
        // Silent for longer than the engine's deadline, asked by callers with less patience than that.
        let begun = std::time::Instant::now();
        while !matches!(values.get("tier:x", 5, Duration::from_millis(20)).await, Err(LinkError::Unreachable { .. }))
            && begun.elapsed() < Duration::from_millis(600)
        {}
        server.thaw();
        let mut answer = values.get("tier:x", 5, DEADLINE).await;
        while answer.is_err() && begun.elapsed() < Duration::from_secs(30) {
            tokio::task::yield_now().await;
            answer = values.get("tier:x", 5, DEADLINE).await;
        }
        assert_eq!(answer, Ok(Value::Whole((&b"1"[..]).into())));
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again_and_nobody_waits_meanwhile() {
    for software in Software::installed() {
        let mut server = Valkey::start(software);
        let values = values(&server);
        values.put("tier:x", b"1", HOUR, DEADLINE).await.expect("put");
        server.kill();
        for _ in 0..100 {
            let begun = std::time::Instant::now();
            assert!(matches!(values.get("tier:x", 5, DEADLINE).await, Err(LinkError::Unreachable { .. })));
            assert!(begun.elapsed() < DEADLINE / 2, "it fails at once");
        }
        server.start_again();
        let begun = std::time::Instant::now();
        let mut answer = values.get("tier:x", 5, DEADLINE).await;
        while answer.is_err() && begun.elapsed() < DEADLINE {
            tokio::task::yield_now().await;
            answer = values.get("tier:x", 5, DEADLINE).await;
        }
        assert_eq!(answer, Ok(Value::None), "it has forgotten everything");
    }
}

/// Servers close connections that nobody has used for long.
#[tokio::test]
async fn a_connection_that_the_server_has_closed_costs_nobody_an_answer() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let values = values(&server);
        values.put("tier:x", b"1", HOUR, DEADLINE).await.expect("put");
        server.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        // The end of the connection is seen when the runtime looks at it.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(values.get("tier:x", 5, DEADLINE).await, Ok(Value::Whole((&b"1"[..]).into())));
    }
}
