//! What machines share: a page that one has fetched is fetched by no other, unless a purge or its age is against it, and one at a time fetches.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use origins::{Arrival, Body, LocalFuture, OnInterim, Origin, OriginError};
use parking_lot::Mutex;
use pipeline::{
    Acknowledgement, Clock, Collapse, FetchTurn, Https, Later, Machines, OriginState, Parts, Pipeline, Refill, ResponseFields, Router,
    Shared, Site, TIER_HEAD_MAX, Tier, TierLookup, TierPage,
};
use policy::{
    Kind, Policy, Settings,
    purge::{Address, Maker, Order, What},
};
use semantics::Scheme;
use store::StoreOptions;
use tokio::sync::Notify;

/// An origin that counts, and answers what it is told to.
struct Scripted {
    asked: Cell<usize>,
    fields: RefCell<HeaderMap>,
    body: RefCell<String>,
    /// Closed: it takes its time.
    gate: Rc<Gate>,
}

#[derive(Default)]
struct Gate {
    closed: Cell<bool>,
    arrived: Notify,
    opened: Notify,
}

impl Origin for Scripted {
    fn fetch<'a>(
        &'a self,
        _: Request<Body>,
        _: &'a Arrival<'a>,
        _: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        self.asked.set(self.asked.get() + 1);
        Box::pin(async {
            if self.gate.closed.get() {
                self.gate.arrived.notify_one();
                self.gate.opened.notified().await;
            }
            let mut response = Response::new(Body::from(Bytes::from(self.body.borrow().clone())));
            *response.headers_mut() = self.fields.borrow().clone();
            Ok(response)
        })
    }
}

/// The tier that all machines share. A page is of use to everybody: `since` is said by the test.
#[derive(Default)]
struct Common {
    pages: HashMap<Vec<u8>, (u128, Bytes)>,
    locks: HashMap<Vec<u8>, usize>,
    refused: usize,
    written: usize,
    looks: usize,
    changed: Arc<Notify>,
}

struct Door {
    common: Arc<Mutex<Common>>,
    machine: usize,
    since: Arc<AtomicU64>,
    rested: Arc<Mutex<Duration>>,
}

struct Lock {
    common: Arc<Mutex<Common>>,
    machine: usize,
    name: Vec<u8>,
}

impl FetchTurn for Lock {
    fn refuse(self: Box<Self>) {
        let mut common = self.common.lock();
        if common.locks.get(&self.name) == Some(&self.machine) {
            common.refused += 1;
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut common = self.common.lock();
        if common.locks.get(&self.name) == Some(&self.machine) {
            common.locks.remove(&self.name);
            common.changed.notify_waiters();
        }
    }
}

impl Tier for Door {
    fn page_bytes_max(&self) -> usize {
        TIER_HEAD_MAX + (1 << 20)
    }

    fn look(&self, name: &[u8], known: Option<u128>, _: Duration) -> Later<TierLookup> {
        let mut common = self.common.lock();
        common.looks += 1;
        let looked = match common.pages.get(name).filter(|(mark, _)| Some(*mark) != known) {
            Some((mark, page)) => TierLookup::Found(TierPage {
                page: page.clone(),
                since: self.since.load(Relaxed),
                rested: *self.rested.lock(),
                mark: *mark,
            }),
            None if common.locks.contains_key(name) => {
                let changed = Arc::clone(&common.changed);
                let mut changed = Box::pin(changed.notified_owned());
                changed.as_mut().enable();
                TierLookup::Wait(changed)
            }
            None => {
                common.locks.insert(name.to_vec(), self.machine);
                TierLookup::Turn(Box::new(Lock { common: Arc::clone(&self.common), machine: self.machine, name: name.to_vec() }))
            }
        };
        Box::pin(std::future::ready(looked))
    }

    fn put(&self, name: &[u8], page: Bytes, _: u64, _: Duration) {
        let mut common = self.common.lock();
        common.written += 1;
        let mark = common.written as u128;
        common.pages.insert(name.to_vec(), (mark, page));
        common.locks.remove(name);
        common.changed.notify_waiters();
    }

    fn remove(&self, name: &[u8]) {
        self.common.lock().pages.remove(name);
    }
}

struct Nobody;

impl Machines for Nobody {
    fn purged(&self, _: &Order) -> Acknowledgement {
        Box::pin(std::future::ready(Default::default()))
    }
}

/// A machine: a pipeline with a store of its own, and a clock of its own.
struct Machine {
    pipeline: Rc<Pipeline>,
    shared: Arc<Shared>,
    now: Arc<AtomicU64>,
    since: Arc<AtomicU64>,
    rested: Arc<Mutex<Duration>>,
}

/// A response as a client sees it.
struct Seen {
    status: u16,
    fields: HeaderMap,
    body: String,
}

impl Seen {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// Two machines before one origin.
struct World {
    origin: Rc<Scripted>,
    common: Arc<Mutex<Common>>,
    machines: Vec<Machine>,
}

/// The time on the clock of the first machine: 2024-07-03.
const NOW: u64 = 1_720_000_000_000;

impl World {
    fn new() -> Self {
        Self::of(Kind::Generic, Duration::from_secs(5))
    }

    fn of(kind: Kind, collapse_wait: Duration) -> Self {
        let fields = [("cache-control", "max-age=60"), ("content-type", "text/html"), ("etag", "\"a\"")];
        let fields = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let gate = Rc::default();
        let origin = Rc::new(Scripted { asked: Cell::new(0), fields: RefCell::new(fields), body: RefCell::new("v1".to_owned()), gate });
        let common = Arc::new(Mutex::new(Common::default()));
        let machines = (0..2).map(|machine| Machine::new(machine, kind, collapse_wait, &origin, &common)).collect();
        Self { origin, common, machines }
    }

    fn says(&self, name: &'static str, value: &'static str) {
        self.origin.fields.borrow_mut().insert(name, value.parse().unwrap());
    }

    fn asked(&self) -> usize {
        self.origin.asked.get()
    }

    /// Looks at the tier, pages written there, and turns that brought nothing for all.
    fn counts(&self) -> (usize, usize, usize) {
        let common = self.common.lock();
        (common.looks, common.written, common.refused)
    }
}

impl Machine {
    fn new(machine: usize, kind: Kind, collapse_wait: Duration, origin: &Rc<Scripted>, common: &Arc<Mutex<Common>>) -> Self {
        let now = Arc::new(AtomicU64::new(NOW));
        let shared = Arc::new(Shared::open(StoreOptions::with_memory(32 << 20), None, Clock::Simulated(Arc::clone(&now))));
        let (since, rested) = (Arc::new(AtomicU64::new(shared.store.generation().number())), Arc::default());
        let door = Door { common: Arc::clone(common), machine, since: Arc::clone(&since), rested: Arc::clone(&rested) };
        shared.join_tier(Box::new(door));
        // Its sites have other numbers than those of the other machine.
        let id = u16::try_from(7 + machine).unwrap();
        let site = Site {
            id,
            name: "site".to_owned(),
            hosts: Vec::new(),
            policy: Policy::new(Settings::preset(kind)),
            origin: Rc::clone(origin) as Rc<dyn Origin>,
            origin_host: None,
            object_max: 64 << 10,
            disk_object_max: 0,
            on_disk: false,
            is_shared: true,
            reader_wait_max: Duration::from_secs(60),
            origin_state: OriginState::default(),
            collapse: Collapse::new(collapse_wait, None),
            refill: Refill::default(),
            https: Https::default(),
            auth: None,
            logins: None,
            webhook_secret: None,
            schedule: None,
            fields: ResponseFields::default(),
            route: None,
            parts: Parts::default(),
        };
        let pipeline = Pipeline::new(Arc::clone(&shared), Arc::default(), Router::new(vec![site]), Vec::new());
        Self { pipeline, shared, now, since, rested }
    }

    async fn get(&self, fields: &[(&str, &str)]) -> Seen {
        self.send(Method::GET, fields).await
    }

    async fn send(&self, method: Method, fields: &[(&str, &str)]) -> Seen {
        let request = Request::builder().method(method).uri("/page").header("host", "blog.example");
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let received = self.pipeline.receive(None, Scheme::Https, request.body(Body::Empty).unwrap(), None);
        let (response, _) = *self.pipeline.respond(received).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap_or_else(|_| panic!("a whole body")).to_bytes();
        Seen { status: head.status.as_u16(), fields: head.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    fn advance(&self, millis: i64) {
        self.now.store(self.now.load(Relaxed).checked_add_signed(millis).unwrap(), Relaxed);
    }

    fn purge(&self, hard: bool) {
        let address = Address::over(Scheme::Https, "blog.example", "/page");
        self.shared.purge(&Order::for_site("site", vec![What::Url(address)], hard, Maker::Operator)).expect("a purge");
    }
}

fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).expect("a runtime");
    runtime.block_on(test());
}

#[test]
fn a_page_that_one_machine_has_fetched_is_fetched_by_no_other() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        assert_eq!(one.get(&[]).await.body, "v1");
        let seen = other.get(&[]).await;
        assert_eq!((seen.status, seen.body.as_str(), seen.field("etag")), (200, "v1", "\"a\""));
        assert!(seen.field("cache-status").starts_with("seawall; hit"), "{}", seen.field("cache-status"));
        assert!(seen.field("cache-status").contains("detail=tier"), "{}", seen.field("cache-status"));
        // It is stored there now.
        let looks = world.common.lock().looks;
        assert_eq!(other.get(&[]).await.body, "v1");
        assert_eq!((world.asked(), world.common.lock().looks), (1, looks));
    });
}

/// RFC 9111 §4.2.3: the age counts from when the origin made it, wherever it was kept. No clock of another machine is believed.
#[test]
fn its_age_goes_on_whatever_the_clocks_say() {
    for skew in [-3_600_000, 0, 3_600_000] {
        run(async || {
            let world = World::new();
            let [one, other] = [&world.machines[0], &world.machines[1]];
            other.advance(skew);
            one.get(&[]).await;
            *other.rested.lock() = Duration::from_secs(40);
            let seen = other.get(&[]).await;
            assert_eq!((seen.field("age"), world.asked()), ("40", 1), "skew {skew}");
            other.advance(19_000);
            assert_eq!(other.get(&[]).await.field("age"), "59");
            other.advance(1_000);
            *other.rested.lock() = Duration::from_secs(60);
            other.get(&[]).await;
            assert_eq!(world.asked(), 2, "60 s have passed");
        });
    }
}

#[test]
fn a_purge_since_its_fetch_is_against_it() {
    for hard in [false, true] {
        run(async || {
            let world = World::new();
            let [one, other] = [&world.machines[0], &world.machines[1]];
            one.get(&[]).await;
            other.purge(hard);
            *world.origin.body.borrow_mut() = "v2".to_owned();
            assert_eq!(other.get(&[]).await.body, "v2", "hard: {hard}");
            assert_eq!(world.asked(), 2);
        });
    }
}

/// A page that was fetched after a purge is of use to a machine that has carried out that purge, too.
#[test]
fn a_purge_before_its_fetch_is_not_against_it() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        for machine in [one, other] {
            machine.purge(true);
        }
        one.get(&[]).await;
        other.since.store(other.shared.store.generation().number(), Relaxed);
        assert_eq!(other.get(&[]).await.body, "v1");
        assert_eq!(world.asked(), 1);
        // What comes later is against it as it is against all that is stored.
        other.purge(true);
        *world.origin.body.borrow_mut() = "v2".to_owned();
        assert_eq!(other.get(&[]).await.body, "v2");
    });
}

/// RFC 9111 §4.4: what an unsafe method invalidated is not brought back by another machine's copy, although nothing is stored here.
#[test]
fn what_was_invalidated_is_not_brought_back() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        one.get(&[]).await;
        other.send(Method::POST, &[]).await;
        *world.origin.body.borrow_mut() = "v2".to_owned();
        assert_eq!(other.get(&[]).await.body, "v2");
    });
}

#[test]
fn a_doubt_about_what_is_stored_says_nothing_about_what_others_have_fetched() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        one.get(&[]).await;
        other.shared.store.doubt();
        assert_eq!(other.get(&[]).await.body, "v1");
        assert_eq!(other.get(&[]).await.body, "v1");
        assert_eq!(world.asked(), 1);
    });
}

#[test]
fn in_doubt_nothing_is_read_or_written() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        one.get(&[]).await;
        other.shared.fence.join(Box::new(Nobody), Duration::from_secs(5));
        let before = world.common.lock().looks;
        assert_eq!(other.get(&[]).await.body, "v1");
        assert_eq!((world.asked(), world.counts()), (2, (before, 1, 0)));
    });
}

#[test]
fn what_is_not_for_everybody_never_goes_there() {
    for (field, value, request) in [
        ("set-cookie", "session=1", None),
        ("cache-control", "private", None),
        ("cache-control", "no-store", None),
        ("cache-control", "no-cache, max-age=60", None),
        ("vary", "*", None),
        ("x-nothing", "", Some(("cookie", "session=1"))),
        ("cache-control", "public, max-age=60", Some(("authorization", "Basic dTpw"))),
        ("x-nothing", "", Some(("range", "bytes=0-0"))),
        ("x-nothing", "", Some(("cache-control", "no-store"))),
    ] {
        run(async || {
            let world = World::new();
            world.says(field, value);
            world.machines[0].get(request.as_slice()).await;
            assert_eq!(world.common.lock().written, 0, "{field}: {value}, {request:?}");
            assert!(world.common.lock().locks.is_empty(), "{field}: {value}, {request:?}");
        });
    }
}

#[test]
fn a_page_is_for_those_alone_whose_fields_it_was_chosen_by() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        world.says("vary", "x-side");
        one.get(&[("x-side", "left")]).await;
        other.get(&[("x-side", "right")]).await;
        assert_eq!(world.asked(), 2);
        assert_eq!(other.get(&[("x-side", "right")]).await.body, "v1");
        assert_eq!(world.asked(), 2);
    });
}

/// RFC 9111 §5.2.1.4: somebody who says `no-cache` wants the origin's word.
#[test]
fn whoever_wants_the_origins_word_gets_it() {
    run(async || {
        let world = World::new();
        world.machines[0].get(&[]).await;
        world.machines[1].get(&[("cache-control", "no-cache")]).await;
        assert_eq!(world.asked(), 2);
    });
}

#[test]
fn what_the_origin_says_has_ended_does_not_come_back() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        one.get(&[]).await;
        world.says("cache-control", "private");
        one.get(&[("cache-control", "no-cache")]).await;
        assert!(world.common.lock().pages.is_empty());
        other.get(&[]).await;
        assert_eq!(world.asked(), 3);
    });
}

#[test]
fn while_one_machine_fetches_the_others_wait_for_what_it_brings() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        let gate = &world.origin.gate;
        gate.closed.set(true);
        let first = async {
            let crowd = (0..20).map(|_| one.get(&[]));
            futures_util::future::join_all(crowd).await
        };
        let second = async {
            gate.arrived.notified().await;
            let crowd = (0..20).map(|_| other.get(&[]));
            let opened = async {
                while world.common.lock().looks < 2 {
                    tokio::task::yield_now().await;
                }
                gate.closed.set(false);
                gate.opened.notify_waiters();
                gate.opened.notify_one();
            };
            futures_util::future::join(futures_util::future::join_all(crowd), opened).await.0
        };
        let (first, second) = futures_util::future::join(first, second).await;
        assert!(first.iter().chain(&second).all(|seen| seen.body == "v1" && seen.status == 200));
        assert_eq!(world.asked(), 1);
    });
}

#[test]
fn what_turns_out_not_to_be_for_all_is_told_to_those_who_wait() {
    run(async || {
        let world = World::new();
        world.says("cache-control", "private");
        world.machines[0].get(&[]).await;
        assert_eq!(world.counts(), (1, 0, 1));
        assert!(world.common.lock().locks.is_empty());
    });
}

/// Whoever holds the lock may be dead or frozen: it is waited for no longer than for any other fetch.
#[test]
fn nobody_waits_longer_than_collapse_wait() {
    run(async || {
        let world = World::of(Kind::Generic, Duration::from_millis(20));
        let [one, other] = [&world.machines[0], &world.machines[1]];
        one.get(&[]).await;
        {
            let mut common = world.common.lock();
            let name = common.pages.drain().next().expect("a page").0;
            common.locks.insert(name, 99);
        }
        assert_eq!(other.get(&[]).await.body, "v1");
        assert_eq!(world.asked(), 2);
    });
}

#[test]
fn a_page_that_cannot_be_read_is_a_miss() {
    run(async || {
        let world = World::new();
        let [one, other] = [&world.machines[0], &world.machines[1]];
        one.get(&[]).await;
        let page = world.common.lock().pages.values().next().expect("a page").1.clone();
        for damaged in [page.slice(..0), page.slice(..9), page.slice(..page.len() / 2), Bytes::from_static(&[0xff; 300])] {
            world.common.lock().pages.values_mut().for_each(|(mark, page)| (*mark, *page) = (*mark + 1, damaged.clone()));
            other.shared.store.remove(other.shared.store.hash(b""), b"");
            assert_eq!(other.get(&[]).await.body, "v1");
            other.purge(true);
        }
        assert_eq!(world.asked(), 5);
    });
}
