//! Collapsing, seen from the pipeline: who leads, who follows, and what the followers get.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use store::{
    Broken, Follow, Joined, Lead, NobodyReads, Outcome, Purged, Reader, Record, Scope, Store, StoreOptions, Stored, WINDOW, Writer,
};

#[derive(Debug, PartialEq)]
struct Head(u16);

impl Record for Head {
    fn weight(&self) -> usize {
        0
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u16::from_le_bytes).map(Self)
    }
}

type Error = &'static str;
type TestStore = Store<Head, Error>;

fn options() -> StoreOptions {
    StoreOptions::with_memory(4 << 20)
}

fn store() -> TestStore {
    Store::new(options())
}

fn join(store: &TestStore, key: &str) -> Joined<Head, Error> {
    store.join(store.hash(key.as_bytes()), key.as_bytes())
}

fn lead(store: &TestStore, key: &str) -> Lead<Head, Error> {
    match join(store, key) {
        Joined::Lead(lead) => lead,
        other => panic!("{other:?}"),
    }
}

fn follow(store: &TestStore, key: &str) -> Follow<Head, Error> {
    match join(store, key) {
        Joined::Follow(follow) => follow,
        other => panic!("{other:?}"),
    }
}

/// Runs a future that must be ready at once.
fn now<F: Future>(future: F) -> F::Output {
    match poll_once(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready"),
    }
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn body(follow: Follow<Head, Error>) -> Reader<Error> {
    match now(follow.outcome()) {
        Outcome::Serve { body, .. } => body,
        other => panic!("{other:?}"),
    }
}

fn push(writer: &mut Writer<Head, Error>, chunk: impl Into<Bytes>) {
    now(writer.push(chunk.into())).expect("room");
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn rest(reader: &mut Reader<Error>) -> Result<Vec<u8>, Broken<Error>> {
    let mut all = Vec::new();
    while let Some(chunk) = now(reader.chunk()) {
        all.extend_from_slice(&chunk?);
    }
    Ok(all)
}

#[test]
fn one_leads_and_the_others_follow() {
    let store = store();
    let leader = lead(&store, "a");
    let followers = [follow(&store, "a"), follow(&store, "a")];
    let other = lead(&store, "b");
    assert_eq!((store.usage().flights, store.usage().followers), (2, 2));
    drop((leader, followers, other));
    assert_eq!((store.usage().flights, store.usage().followers), (0, 0));
}

#[test]
fn every_outcome_reaches_the_followers_and_ends_the_flight() {
    type Settle = fn(Lead<Head, Error>);
    type Expected = fn(&Outcome<Head, Error>) -> bool;
    let stored = |lead: Lead<Head, Error>| {
        let stored = Stored::new(Head(304), Bytes::new(), lead.begun(), Scope::default());
        lead.stored(Arc::new(stored));
    };
    let cases: [(Settle, Expected); 4] = [
        (stored, |outcome| matches!(outcome, Outcome::Stored(stored) if stored.record == Head(304))),
        (Lead::uncacheable, |outcome| matches!(outcome, Outcome::Uncacheable)),
        (|lead| lead.failed("refused"), |outcome| matches!(outcome, Outcome::Failed("refused"))),
        (drop, |outcome| matches!(outcome, Outcome::Abandoned)),
    ];
    for (settle, expected) in cases {
        let store = store();
        let leader = lead(&store, "a");
        let (own, waiting, late) = (leader.follow(), follow(&store, "a"), follow(&store, "a"));
        let mut waiting = pin!(waiting.outcome());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        settle(leader);
        for outcome in [now(own.outcome()), now(waiting), now(late.outcome())] {
            assert!(expected(&outcome), "{outcome:?}");
        }
        assert_eq!((store.usage().flights, store.usage().followers), (0, 0));
        drop(lead(&store, "a"));
    }
}

/// 100 followers on 4 threads lose their leader: one of them leads, the others follow it.
#[test]
fn when_the_leader_is_dropped_exactly_one_follower_leads() {
    let store = Arc::new(store());
    let leader = lead(&store, "a");
    let waiting: Vec<Vec<_>> = (0..4).map(|_| (0..25).map(|_| follow(&store, "a")).collect()).collect();
    let (leads, rejoined) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(5)));
    let threads: Vec<_> = waiting
        .into_iter()
        .map(|followers| {
            let (store, leads, rejoined) = (Arc::clone(&store), Arc::clone(&leads), Arc::clone(&rejoined));
            std::thread::spawn(move || {
                block_on(async {
                    let mut joined = Vec::new();
                    for follow in followers {
                        assert!(matches!(follow.outcome().await, Outcome::Abandoned));
                        joined.push(join(&store, "a"));
                    }
                    leads.fetch_add(joined.iter().filter(|joined| matches!(joined, Joined::Lead(_))).count(), Ordering::Relaxed);
                    rejoined.wait();
                });
            })
        })
        .collect();
    drop(leader);
    rejoined.wait();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(leads.load(Ordering::Relaxed), 1);
    assert_eq!((store.usage().flights, store.usage().followers), (0, 0));
}

/// 1,000 followers on 4 threads get the same bytes in order, from a leader on a fifth.
#[test]
fn a_thousand_followers_read_the_same_body() {
    let store = Arc::new(store());
    let leader = lead(&store, "a");
    let chunks: Vec<Bytes> = (0..40_u8).map(|n| Bytes::from(vec![n; 500 + 97 * usize::from(n)])).collect();
    let expected: Vec<u8> = chunks.iter().flatten().copied().collect();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let followers: Vec<_> = (0..250).map(|_| follow(&store, "a")).collect();
            let expected = expected.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                let tasks: Vec<_> = followers
                    .into_iter()
                    .map(|follow| {
                        runtime.spawn(async move {
                            let Outcome::Serve { record, mut body } = follow.outcome().await else { panic!("served") };
                            assert_eq!(*record, Head(200));
                            let mut all = Vec::new();
                            while let Some(chunk) = body.chunk().await {
                                all.extend_from_slice(&chunk.expect("unbroken"));
                            }
                            all
                        })
                    })
                    .collect();
                runtime.block_on(async {
                    for task in tasks {
                        assert!(task.await.expect("no panic") == expected);
                    }
                });
            })
        })
        .collect();
    assert_eq!(store.usage().followers, 1_000);
    let mut writer = leader.serve(Arc::new(Head(200)), None);
    let whole = block_on(async {
        for chunk in chunks {
            writer.push(chunk).await.expect("room");
            tokio::task::yield_now().await;
        }
        writer.complete().await
    });
    assert!(whole.is_some_and(|(whole, _guard)| whole.memory().is_some_and(|whole| *whole == expected)));
    for thread in threads {
        thread.join().expect("no panic");
    }
    let usage = store.usage();
    assert_eq!((usage.flights, usage.followers, usage.growing_bytes), (0, 0, 0));
}

#[test]
fn who_joins_a_growing_body_is_served_at_once_from_its_first_byte() {
    let store = store();
    let leader = lead(&store, "a");
    let own = leader.follow();
    let mut writer = leader.serve(Arc::new(Head(200)), Some(10));
    let mut own = body(own);
    assert_eq!(own.length_hint(), Some(10));
    push(&mut writer, "hello");
    let mut late = body(follow(&store, "a"));
    let mut second = writer.reader().expect("all bytes are there");
    push(&mut writer, "world");
    let (whole, guard) = now(writer.complete()).expect("short");
    assert_eq!(whole.memory().map(AsRef::as_ref), Some(&b"helloworld"[..]));
    for reader in [&mut own, &mut late, &mut second] {
        assert_eq!(rest(reader).as_deref(), Ok(&b"helloworld"[..]));
    }
    drop(guard);
}

/// There is no moment in which a request finds neither the flight nor the stored response.
#[test]
fn a_completed_flight_stays_open_until_its_response_is_stored() {
    let store = store();
    let hash = store.hash(b"a");
    let mut writer = lead(&store, "a").serve(Arc::new(Head(200)), None);
    push(&mut writer, "body");
    let (whole, guard) = now(writer.complete()).expect("short");
    assert!(store.get(hash, b"a").is_none());
    assert_eq!(rest(&mut body(follow(&store, "a"))).as_deref(), Ok(&b"body"[..]));
    let scope = Scope { site: 0, url: b"h/a".as_slice().into(), tags: [].into() };
    let stored = store.insert(hash, b"a", Stored::new(Head(200), whole, guard.begun(), scope), |_| true);
    drop(guard);
    assert_eq!(store.verdict(&stored), Purged::No);
    assert!(store.get(hash, b"a").is_some());
    assert_eq!(store.usage().flights, 0);
}

#[test]
fn a_flight_remembers_the_generation_at_which_it_began() {
    let store = store();
    let leader = lead(&store, "a");
    let begun = store.generation();
    store.purge(&store::PurgeTarget::All, store::Hardness::Soft);
    assert_eq!(leader.begun(), begun);
    let writer = leader.serve(Arc::new(Head(200)), None);
    assert_eq!(writer.begun(), begun);
    let (whole, guard) = now(writer.complete()).expect("short");
    let stored = Stored::new(Head(200), whole, guard.begun(), Scope::default());
    assert_eq!(store.verdict(&stored), Purged::Soft);
}

/// A published change is live at once: a request that comes after a purge must not be answered by a fetch from before it.
#[test]
fn nobody_joins_a_flight_that_a_purge_has_overtaken() {
    for growing in [false, true] {
        let store = store();
        let old = lead(&store, "a");
        let before = follow(&store, "a");
        let mut writer = None;
        let mut waiting_lead = None;
        if growing {
            let mut serving = old.serve(Arc::new(Head(200)), None);
            push(&mut serving, "old");
            writer = Some(serving);
        } else {
            waiting_lead = Some(old);
        }
        store.purge(&store::PurgeTarget::Tag { site: 0, tag: "post-1".into() }, store::Hardness::Soft);
        let new = lead(&store, "a");
        let after = follow(&store, "a");

        // The old flight goes on for those who came before, and its end does not affect the new one.
        let mut writer = writer.unwrap_or_else(|| {
            let mut serving = waiting_lead.take().expect("not serving yet").serve(Arc::new(Head(200)), None);
            push(&mut serving, "old");
            serving
        });
        push(&mut writer, " page");
        drop(now(writer.complete()));
        assert_eq!(rest(&mut body(before)).as_deref(), Ok(&b"old page"[..]));
        assert_eq!(store.usage().flights, 1);
        drop(follow(&store, "a"));

        let mut writer = new.serve(Arc::new(Head(200)), None);
        push(&mut writer, "new page");
        let _stored = now(writer.complete());
        assert_eq!(rest(&mut body(after)).as_deref(), Ok(&b"new page"[..]));
    }
}

#[test]
fn a_body_that_breaks_off_reaches_readers_as_an_error_and_ends_the_flight() {
    for fails in [true, false] {
        let store = store();
        let leader = lead(&store, "a");
        let waiting = follow(&store, "a");
        let mut writer = leader.serve(Arc::new(Head(200)), None);
        push(&mut writer, "half");
        let mut reader = body(waiting);
        assert_eq!(now(reader.chunk()), Some(Ok(Bytes::from_static(b"half"))));
        let expected = if fails {
            writer.fail("reset");
            Broken::Failed("reset")
        } else {
            drop(writer);
            Broken::Abandoned
        };
        assert_eq!(rest(&mut reader), Err(expected));
        assert_eq!(now(reader.chunk()), None);
        assert_eq!(store.usage().flights, 0);
        drop(lead(&store, "a"));
    }
}

#[test]
fn followers_and_flights_are_bounded() {
    let store = Store::new(StoreOptions { followers_max: 2, flights_max: 2, ..options() });
    let leader = lead(&store, "a");
    let (one, own, two) = (follow(&store, "a"), leader.follow(), join(&store, "a"));
    assert!(matches!(two, Joined::Full), "the leader's own client and one more");
    drop(one);
    let again = follow(&store, "a");
    let second = lead(&store, "b");
    assert!(matches!(join(&store, "c"), Joined::Full));
    drop(second);
    drop(lead(&store, "c"));

    // The body's readers count as followers did.
    let writer = leader.serve(Arc::new(Head(200)), None);
    assert!(matches!(join(&store, "a"), Joined::Full));
    let reader = body(own);
    assert!(matches!(join(&store, "a"), Joined::Full));
    drop(reader);
    drop(follow(&store, "a"));
    drop((writer, again));
}

#[test]
fn a_follower_may_leave_at_any_time() {
    let store = store();
    let leader = lead(&store, "a");
    // They leave before waiting, while waiting, and after the outcome they never saw.
    drop(follow(&store, "a"));
    assert!(poll_once(follow(&store, "a").outcome()).is_pending());
    assert_eq!(store.usage().followers, 0);
    let unseen = follow(&store, "a");
    let mut writer = leader.serve(Arc::new(Head(200)), Some(u64::MAX));
    let piece = Bytes::from(vec![0; 1 << 20]);
    push(&mut writer, piece.clone());
    assert!(poll_once(writer.push(piece.clone())).is_pending(), "a follower that has not looked yet may still read from the first byte");
    drop(unseen);
    assert_eq!(store.usage().growing_bytes, 0);
    assert_eq!(now(writer.push(piece)), Err(NobodyReads));
    assert_eq!(store.usage().followers, 0);
}

#[test]
fn a_body_too_long_to_be_stored_streams_through_a_window() {
    const PIECE: usize = 64 << 10;
    let store = Arc::new(Store::<Head, Error>::new(StoreOptions { object_max: 256 << 10, ..options() }));
    let leader = lead(&store, "a");
    let readers: Vec<_> = (0..3).map(|_| follow(&store, "a")).collect();
    let mut writer = leader.serve(Arc::new(Head(200)), None);
    let threads: Vec<_> = readers
        .into_iter()
        .map(|follow| {
            std::thread::spawn(move || {
                block_on(async {
                    let Outcome::Serve { mut body, .. } = follow.outcome().await else { panic!("served") };
                    let (mut length, mut next) = (0, 0_u8);
                    while let Some(chunk) = body.chunk().await {
                        let chunk = chunk.expect("unbroken");
                        assert!(chunk.iter().all(|byte| *byte == next));
                        next = next.wrapping_add(1);
                        length += chunk.len();
                    }
                    length
                })
            })
        })
        .collect();
    let mut most = 0;
    block_on(async {
        for n in 0..200_u8 {
            writer.push(Bytes::from(vec![n; PIECE])).await.expect("readers");
            most = most.max(store.usage().growing_bytes);
        }
    });
    // There is no newcomer: one that comes now leads a flight of its own, which counts beside this one.
    let second = lead(&store, "a");
    assert_eq!(store.usage().flights, 2);
    assert!(now(writer.complete()).is_none());
    assert_eq!(store.usage().flights, 1);
    drop(follow(&store, "a"));
    drop(second);
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), 200 * PIECE);
    }
    assert!(most <= WINDOW + 2 * PIECE as u64, "{most}");
    assert_eq!((store.usage().flights, store.usage().growing_bytes), (0, 0));
}

/// Everything happens at once, on many threads: every request ends with an answer, and nothing is left behind.
#[test]
#[expect(clippy::disallowed_methods, reason = "awaited below")]
fn a_crowd_on_few_keys_leaves_nothing_behind() {
    let store = Arc::new(Store::<Head, Error>::new(StoreOptions { followers_max: 20, flights_max: 3, ..options() }));
    let threads: Vec<_> = (0..4_usize)
        .map(|thread| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async {
                    let requests: Vec<_> = (0..400_usize).map(|n| tokio::spawn(request(Arc::clone(&store), n * 31 + thread))).collect();
                    for request in requests {
                        request.await.expect("no panic");
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    let usage = store.usage();
    assert_eq!((usage.flights, usage.followers, usage.growing_bytes), (0, 0, 0));
}

/// Sends a request for one of four keys whose fetch ends in one of five ways.
async fn request(store: Arc<TestStore>, n: usize) {
    let key = format!("key-{}", n % 4);
    let expected = key.repeat(100);
    loop {
        match join(&store, &key) {
            Joined::Full => return,
            Joined::Lead(lead) => {
                tokio::task::yield_now().await;
                match n % 5 {
                    0 => drop(lead),
                    1 => lead.failed("refused"),
                    2 => lead.uncacheable(),
                    way => {
                        let mut writer = lead.serve(Arc::new(Head(200)), None);
                        for chunk in expected.as_bytes().chunks(37) {
                            writer.push(Bytes::copy_from_slice(chunk)).await.expect("it is short");
                            tokio::task::yield_now().await;
                        }
                        if way == 3 {
                            writer.fail("reset");
                        } else {
                            let (whole, _guard) = writer.complete().await.expect("it is short");
                            assert_eq!(whole.memory().map(AsRef::as_ref), Some(expected.as_bytes()));
                        }
                    }
                }
                return;
            }
            Joined::Follow(follow) => match follow.outcome().await {
                Outcome::Abandoned => {}
                Outcome::Failed("refused") | Outcome::Uncacheable => return,
                Outcome::Serve { mut body, .. } => {
                    let mut all = Vec::new();
                    while let Some(chunk) = body.chunk().await {
                        match chunk {
                            Ok(chunk) => all.extend_from_slice(&chunk),
                            Err(broken) => return assert_eq!(broken, Broken::Failed("reset")),
                        }
                        if n.is_multiple_of(7) {
                            return;
                        }
                    }
                    return assert!(all == expected.as_bytes());
                }
                other @ (Outcome::Stored(_) | Outcome::Fetched(_) | Outcome::Failed(_)) => panic!("{other:?}"),
            },
        }
    }
}

/// Followers who are held back see nothing of a body while it grows; then they get what became of it.
#[test]
fn followers_who_are_held_back_get_the_outcome() {
    type End = fn(store::FlightGuard<Head, Error>);
    type Expected = fn(&Outcome<Head, Error>) -> bool;
    let stored: End = |guard| {
        let stored = Stored::new(Head(200), Bytes::from_static(b"page"), guard.begun(), Scope::default());
        guard.fetched(Arc::new(stored));
    };
    let cases: [(End, Expected); 3] = [
        (stored, |outcome| matches!(outcome, Outcome::Fetched(stored) if stored.record == Head(200))),
        (store::FlightGuard::uncacheable, |outcome| matches!(outcome, Outcome::Uncacheable)),
        (drop, |outcome| matches!(outcome, Outcome::Abandoned)),
    ];
    for (end, expected) in cases {
        let store = store();
        let leader = lead(&store, "a");
        let before = follow(&store, "a");
        let mut writer = leader.serve_leader(None);
        let mut own = writer.reader().expect("the first byte is there");
        push(&mut writer, "page");
        assert_eq!(now(own.chunk()), Some(Ok(Bytes::from_static(b"page"))));
        let during = follow(&store, "a");
        let (_, guard) = now(writer.complete()).expect("whole");
        assert_eq!(now(own.chunk()), None, "its own client has all of it");
        let after = follow(&store, "a");
        let mut waiting = [before, during, after].map(|follow| Box::pin(follow.outcome()));
        assert!(waiting.iter_mut().all(|outcome| poll_once(outcome.as_mut()).is_pending()));
        end(guard);
        for outcome in waiting {
            let outcome = now(outcome);
            assert!(expected(&outcome), "{outcome:?}");
        }
        drop(lead(&store, "a"));
        assert_eq!((store.usage().flights, store.usage().followers, store.usage().growing_bytes), (0, 0, 4), "what its client still holds");
        drop(own);
        assert_eq!(store.usage().growing_bytes, 0);
    }
}

#[test]
fn followers_who_are_held_back_can_be_let_in() {
    let store = store();
    let leader = lead(&store, "a");
    let before = follow(&store, "a");
    let mut writer = leader.serve_leader(None);
    let own = writer.reader();
    push(&mut writer, "one");
    writer.let_in(Arc::new(Head(200)));
    let after = follow(&store, "a");
    push(&mut writer, "two");
    let (_, guard) = now(writer.complete()).expect("whole");
    guard.uncacheable();
    for follow in [before, after] {
        assert_eq!(rest(&mut body(follow)), Ok(b"onetwo".to_vec()), "what they read already is theirs");
    }
    drop(own);
    assert_eq!((store.usage().flights, store.usage().followers, store.usage().growing_bytes), (0, 0, 0));
}

/// Nobody waits for a body that will not come, or that cannot be stored.
#[test]
fn followers_who_are_held_back_are_told_when_the_body_ends_early() {
    type End = fn(&TestStore, Writer<Head, Error>);
    type Expected = fn(&Outcome<Head, Error>) -> bool;
    let cases: [(End, Expected); 3] = [
        (|_, writer| writer.fail("broke off"), |outcome| matches!(outcome, Outcome::Failed("broke off"))),
        (|_, writer| drop(writer), |outcome| matches!(outcome, Outcome::Abandoned)),
        (
            |store, mut writer| {
                let reader = writer.reader();
                push(&mut writer, vec![0; 1024]);
                drop(lead(store, "a"));
                drop(reader);
            },
            |outcome| matches!(outcome, Outcome::Abandoned),
        ),
    ];
    for (end, expected) in cases {
        let store = store();
        let leader = lead(&store, "a").within(512, 0);
        let waiting = follow(&store, "a");
        let mut writer = leader.serve_leader(None);
        assert!(!writer.give_up_unread(), "somebody waits for it");
        end(&store, writer);
        let outcome = now(waiting.outcome());
        assert!(expected(&outcome), "{outcome:?}");
        assert_eq!((store.usage().flights, store.usage().growing_bytes), (0, 0));
    }
}
