//! The tier: what one machine has put is found by all, one at a time fetches, and nothing that others write there is believed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use cluster::{
    link::Engine,
    stream::{EntryId, EntryMaker, Run},
    tier::{LookOutcome, Page, Tier, TierOptions, Turn, bucket::BucketOptions, ring::Ring},
};
use testkit::{Software, Valkey};
use tokio::runtime::Handle;

use super::{DEADLINE, engine, engine_of_others};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// The generation of each machine's store after entry 1.
pub(crate) const NOW: u64 = 10;

/// A machine that has carried out one entry of the stream.
pub(crate) struct Machine {
    pub(crate) tier: Tier,
    pub(crate) ring: Arc<Ring>,
}

impl Machine {
    fn new(server: &Valkey) -> Self {
        Self::of(&engine(server), 100 << 20)
    }

    fn of(engine: &Engine, memory: u64) -> Self {
        Self::with(engine, TierOptions { memory, bucket: None, read_deadline: DEADLINE })
    }

    /// Makes one whose pages lie in a bucket.
    pub(crate) fn with_bucket(server: &Valkey, bucket: BucketOptions) -> Self {
        Self::with_bucket_and_deadline(server, bucket, DEADLINE)
    }

    pub(crate) fn with_bucket_and_deadline(server: &Valkey, bucket: BucketOptions, read_deadline: Duration) -> Self {
        Self::with(&engine(server), TierOptions { memory: 100 << 20, bucket: Some(bucket), read_deadline })
    }

    fn with(engine: &Engine, options: TierOptions) -> Self {
        let ring = Arc::new(Ring::default());
        let tier = Tier::start(options, engine, Arc::clone(&ring), &Handle::current()).expect("options");
        let machine = Self { tier, ring };
        machine.applied(1, NOW);
        machine
    }

    pub(crate) fn applied(&self, number: u64, generation: u64) {
        let id = EntryId { millis: number, ..EntryId::default() };
        let made = EntryMaker { session: "5e55".to_owned(), number };
        self.ring.applied(&Run("a run".to_owned()), id, Some(&made), generation, true);
    }

    pub(crate) async fn look(&self, name: &str) -> LookOutcome {
        self.tier.look(name.as_bytes(), None, Duration::ZERO).await
    }

    pub(crate) async fn found(&self, name: &str) -> Page {
        match self.look(name).await {
            LookOutcome::Found(page) => page,
            looked => panic!("{looked:?}"),
        }
    }

    pub(crate) async fn turn(&self, name: &str) -> Turn {
        match self.look(name).await {
            LookOutcome::Turn(turn) => turn,
            looked => panic!("{looked:?}"),
        }
    }

    /// Puts a page, and waits until it is there.
    pub(crate) async fn put(&self, name: &str, page: &[u8], lasts: Duration) {
        let before = self.tier.state().written;
        self.tier.put(name.as_bytes(), page, NOW, lasts);
        until(|| self.tier.state().written > before).await;
    }
}

/// Waits until something has come about that other tasks and the server do.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "it does not come about");
        tokio::task::yield_now().await;
    }
}

/// Returns the only key of the server that is named like this.
pub(crate) fn key(server: &Valkey, pattern: &str) -> String {
    let keys = server.ask(&["KEYS", pattern]);
    assert!(!keys.is_empty() && !keys.contains('\n'), "{keys}");
    keys
}

#[tokio::test]
async fn what_one_machine_has_put_is_found_by_the_others_alone() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (one, other) = (Machine::new(&server), Machine::new(&server));
        one.put("site/page", b"a page", HOUR).await;
        let page = other.found("site/page").await;
        assert_eq!((&page.page[..], page.since), (&b"a page"[..], NOW));
        assert!(page.rested < DEADLINE);
        assert!(matches!(other.look("site/page2").await, LookOutcome::Turn(_)), "another name");
        let stranger = Machine::of(&engine_of_others(&server), 100 << 20);
        assert!(matches!(stranger.look("site/page").await, LookOutcome::Turn(_)), "it looks elsewhere");
        server.ask(&["SAVE"]);
        let dump = std::fs::read(server.folder().join("dump.rdb")).expect("a dump");
        assert!(!dump.windows(9).any(|window| window == b"site/page"), "names are hashed with the secret");
    }
}

#[tokio::test]
async fn how_long_a_page_has_rested_is_told_by_the_servers_clock() {
    let server = Valkey::start(Software::any());
    let machine = Machine::new(&server);
    machine.put("page", b"a page", HOUR).await;
    server.ask(&["PEXPIRE", &key(&server, "*:tier:*"), "600000"]);
    let rested = machine.found("page").await.rested;
    assert!(rested >= Duration::from_secs(3000) && rested < Duration::from_secs(3000) + DEADLINE, "{rested:?}");
}

/// The position decides: of a page from one that this machine has forgotten, or that is not of this stream, nobody knows what has purged it.
#[tokio::test]
async fn a_page_from_a_position_that_is_not_known_is_fetched_anew() {
    let server = Valkey::start(Software::any());
    let (one, other) = (Machine::new(&server), Machine::new(&server));
    one.put("page", b"a page", HOUR).await;
    other.applied(2, NOW + 5);
    assert_eq!(other.found("page").await.since, NOW, "what was purged since then is judged here");
    other.ring.clear();
    other.applied(2, NOW + 5);
    drop(other.turn("page").await);
    // One that this machine has not come to yet is waited for.
    one.applied(3, NOW);
    one.put("page", b"a newer one", HOUR).await;
    assert!(matches!(other.look("page").await, LookOutcome::Wait(_)));
    other.applied(3, NOW + 6);
    assert_eq!(other.found("page").await.since, NOW + 6);
}

#[tokio::test]
async fn one_machine_fetches_and_the_others_wait() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (one, other) = (Machine::new(&server), Machine::new(&server));
        let turn = one.turn("page").await;
        assert!(matches!(other.look("page").await, LookOutcome::Wait(_)));
        assert!(matches!(one.look("page").await, LookOutcome::Away), "nobody waits for a fetch of the same machine");
        one.put("page", b"a page", HOUR).await;
        assert_eq!(&other.found("page").await.page[..], b"a page");
        drop(turn);
        assert_eq!(server.ask(&["KEYS", "*:lock:*"]), "");
        // What was found to be of no use is passed over, and its place is taken.
        let mark = other.found("page").await.mark;
        let looked = other.tier.look(b"page", Some(mark), Duration::ZERO).await;
        assert!(matches!(looked, LookOutcome::Turn(_)), "{looked:?}");
    }
}

#[tokio::test]
async fn a_turn_that_is_given_back_is_the_next_ones() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (one, other) = (Machine::new(&server), Machine::new(&server));
        drop(one.turn("page").await);
        until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
        let turn = other.turn("page").await;
        turn.refuse();
        until(|| server.ask(&["GET", &key(&server, "*:lock:*")]) == "-").await;
        assert!(matches!(one.look("page").await, LookOutcome::Away), "it is not for everybody, so nobody waits");
        // A page that is for everybody after all ends that.
        one.put("page", b"a page", HOUR).await;
        assert_eq!(server.ask(&["KEYS", "*:lock:*"]), "");
    }
}

/// A look that is late does not say whether the lock was given. The first one counts as if it were, so that others wait; whoever waits for another machine goes
/// on waiting, until the tier counts as away.
#[tokio::test]
async fn a_crowd_that_a_slow_server_holds_up_asks_the_origin_once() {
    let server = Valkey::start(Software::any());
    let machine = || {
        let options = TierOptions { memory: 1 << 20, bucket: None, read_deadline: Duration::from_millis(50) };
        Machine::with(&engine(&server), options)
    };
    let (one, other) = (machine(), machine());
    // Each has a connection.
    for machine in [&one, &other] {
        until_answered(machine).await;
    }
    server.freeze();
    let turn = one.turn("page").await;
    server.thaw();
    let waits = |looked: &LookOutcome| matches!(looked, LookOutcome::Wait(_));
    until(|| server.ask(&["KEYS", "*:lock:*"]).contains("lock")).await;
    assert!(waits(&other.look("page").await), "the lock was given late");
    server.freeze();
    let again = || other.tier.look(b"page", None, Duration::from_millis(10));
    assert!(waits(&again().await) && waits(&again().await), "the other machine fetches it still, as far as is known");
    assert!(!waits(&again().await) && other.tier.state().open, "three in a row");
    server.thaw();
    one.put("page", b"a page", HOUR).await;
    drop(turn);
    until_answered(&other).await;
    assert_eq!(&other.found("page").await.page[..], b"a page");
    until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
}

/// Looks for something else until the tier answers, and gives the lock of that back.
async fn until_answered(machine: &Machine) {
    let begun = Instant::now();
    while !matches!(machine.look("something else").await, LookOutcome::Turn(_)) || machine.tier.state().open {
        assert!(begun.elapsed() < DEADLINE, "it does not answer");
        tokio::task::yield_now().await;
    }
}

/// Two fetches of one page at one machine, one after the other: the end of the first does not give back the lock of the second.
#[tokio::test]
async fn a_turn_gives_back_its_own_lock_alone() {
    let server = Valkey::start(Software::any());
    let (one, other) = (Machine::new(&server), Machine::new(&server));
    let first = one.turn("page").await;
    one.put("page", b"a page", Duration::from_millis(1)).await;
    until(|| server.ask(&["KEYS", "*:tier:*"]).is_empty()).await;
    let second = one.turn("page").await;
    drop(first);
    assert!(matches!(other.look("page").await, LookOutcome::Wait(_)));
    // What is carried out after it has been: so the lock was not given back meanwhile.
    one.put("something else", b"a page", HOUR).await;
    assert!(matches!(other.look("page").await, LookOutcome::Wait(_)));
    drop(second);
    until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
    other.turn("page").await;
}

/// What somebody has put in the place of a lock ends soon, or is none.
#[tokio::test]
async fn nobody_waits_for_a_lock_that_is_none() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let machine = Machine::new(&server);
        let name = {
            let held = machine.turn("another").await;
            let name = key(&server, "*:lock:*");
            drop(held);
            name
        };
        until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
        for (number, write) in (1..).zip([
            &["SET", &name, "theirs"][..],
            &["SET", &name, "-"],
            &["SET", &name, "theirs", "EX", "3600"],
            &["HSET", &name, "a", "b"],
        ]) {
            server.ask(write);
            let turn = machine.turn("another").await;
            assert_eq!(machine.tier.state().refused, number, "{write:?}");
            let lives: i64 = server.ask(&["PTTL", &name]).parse().expect("a number");
            assert!((1..=2_000).contains(&lives), "it is a lock of ours now: {lives}");
            drop(turn);
            until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
        }
    }
}

/// The lock of a machine that has died expires. Until then it is renewed.
#[tokio::test]
async fn a_lock_lives_as_long_as_its_holder_and_no_longer() {
    let server = Valkey::start(Software::any());
    let (one, other) = (Machine::new(&server), Machine::new(&server));
    let turn = one.turn("page").await;
    let lock = key(&server, "*:lock:*");
    let lives = || server.ask(&["PTTL", &lock]).parse::<i64>().expect("a number");
    assert!((1..=2_000).contains(&lives()));
    server.ask(&["PEXPIRE", &lock, "1500"]);
    until(|| lives() > 1_500).await;
    std::mem::forget(turn);
    drop(one);
    server.ask(&["PEXPIRE", &lock, "1"]);
    until(|| lives() == -2).await;
    other.turn("page").await;
}

#[tokio::test]
async fn whatever_others_write_there_is_refused_and_replaced() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (one, other) = (Machine::new(&server), Machine::new(&server));
        one.put("page", b"a page", HOUR).await;
        one.put("page2", b"another page", HOUR).await;
        let keys = server.ask(&["KEYS", "*:tier:*"]);
        let (first, second) = keys.split_once('\n').expect("two");
        let (page, another) = if other.found("page").await.page.len() == 6 { (first, second) } else { (second, first) };
        let mut refused = other.tier.state().refused;
        for write in [
            // Under another name, garbage, a piece, nothing, a hundred megabytes, and something that is not text.
            vec!["COPY", another, page, "REPLACE"],
            vec!["SET", page, "garbage", "PX", "60000"],
            vec!["SET", page, "SWT", "PX", "60000"],
            vec!["SETRANGE", page, "104857600", "x"],
            vec!["PERSIST", page],
        ] {
            for key in [page, another] {
                if write[0] == "COPY" && key == another {
                    continue;
                }
                server.ask(&write.iter().map(|word| if *word == page { key } else { word }).collect::<Vec<_>>());
            }
            let (turn, other_turn) = (other.look("page").await, other.look("page2").await);
            let turns = [&turn, &other_turn].into_iter().filter(|looked| matches!(looked, LookOutcome::Turn(_))).count();
            assert!(turns > 0, "{write:?}: {turn:?} {other_turn:?}");
            assert!(other.tier.state().refused > refused, "{write:?}");
            drop((turn, other_turn));
            until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
            for (name, content) in [("page", &b"a page"[..]), ("page2", b"another page")] {
                other.put(name, content, HOUR).await;
                assert_eq!(one.found(name).await.page, Bytes::copy_from_slice(content), "{write:?}");
            }
            refused = other.tier.state().refused;
        }
        server.ask(&["DEL", page]);
        server.ask(&["LPUSH", page, "x"]);
        let looked = (other.look("page").await, other.look("page2").await);
        assert!(matches!(looked, (LookOutcome::Turn(_), _) | (_, LookOutcome::Turn(_))), "a list is not a page: {looked:?}");
        other.put("page", b"a page", HOUR).await;
        other.put("page2", b"another page", HOUR).await;
        assert_eq!(&other.found("page").await.page[..], b"a page");
    }
}

/// The server keeps account, whoever writes and whatever is written over, removed or expired.
#[tokio::test]
async fn the_memory_of_the_tier_is_bounded() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let (one, other) = (Machine::of(&engine(&server), 100_000), Machine::of(&engine(&server), 100_000));
        let account = || {
            let keys = server.ask(&["KEYS", "*:tier:*"]);
            let lengths = keys.split_whitespace().map(|key| server.ask(&["STRLEN", key]).parse::<u64>().expect("a length") + 300);
            let said: u64 = server.ask(&["GET", "seawall:{seawall}:tier-bytes"]).parse().expect("a number");
            (lengths.sum::<u64>(), said)
        };
        for number in 0..40_u64 {
            // The later, the longer they last.
            let machine = if number % 2 == 0 { &one } else { &other };
            machine.put(&format!("page{number}"), &[b'x'; 5_000], HOUR + Duration::from_secs(number)).await;
            let (held, said) = account();
            assert!(held <= 100_000 && held == said, "{held} {said} after {number}");
        }
        one.found("page39").await;
        assert!(matches!(one.look("page0").await, LookOutcome::Turn(_)), "what expires soonest has gone");
        one.put("page39", &[b'y'; 300], HOUR).await;
        one.tier.remove(b"page38");
        until(|| account().0 < 95_000).await;
        assert_eq!(account().0, account().1);
        one.put("page1", b"x", Duration::from_millis(1)).await;
        until(|| account().0 < account().1).await;
        one.put("page2", b"x", HOUR).await;
        assert_eq!(account().0, account().1, "what has expired is taken off");
        // Every key expires.
        for key in server.ask(&["KEYS", "*"]).split_whitespace() {
            let lives = server.ask(&["PTTL", key]).parse::<i64>().expect("a number");
            assert!(lives > 0 && lives <= 90_000_000, "{key}: {lives}");
        }
    }
}

#[tokio::test]
async fn a_tier_that_does_not_answer_is_left_alone() {
    let server = Valkey::start(Software::any());
    let ring = Arc::new(Ring::default());
    let options = TierOptions { memory: 1 << 20, bucket: None, read_deadline: Duration::from_millis(50) };
    let tier = Tier::start(options, &engine(&server), ring, &Handle::current()).expect("options");
    let look = || tier.look(b"page", None, Duration::ZERO);
    server.freeze();
    let begun = Instant::now();
    for _ in 0..3 {
        assert!(matches!(look().await, LookOutcome::Turn(_)), "for all that is known");
    }
    assert!(begun.elapsed() >= Duration::from_millis(150));
    assert!(tier.state().open);
    // Nobody waits for it now: each of these returns at once, but for one in a second.
    let begun = Instant::now();
    let mut asked = 0;
    for _ in 0..1_000 {
        asked += u64::from(!matches!(look().await, LookOutcome::Away));
    }
    assert!(asked <= begun.elapsed().as_secs() + 1, "{asked} of 1,000 waited");
    server.thaw();
    let begun = Instant::now();
    while tier.state().open {
        let _ = look().await;
        assert!(begun.elapsed() < DEADLINE);
        tokio::task::yield_now().await;
    }
}
