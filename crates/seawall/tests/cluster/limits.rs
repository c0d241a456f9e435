//! Limits that machines share: real clients at three real machines are counted.
//!
//! What is judged are counts over the time that was measured, not how fast anything is. The processor is shared with other tests. So a time in which a
//! machine was too busy to hear of the others for a second is not judged, and another one is taken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    engine::Reply,
    http::Client,
    ledger::path_of,
    machine::{Door, Machine, PORT, Setup, url_of},
    process::{PATIENCE, rest, until},
    scene::{Scene, tell},
};

/// The number of a fourth machine in the network.
const FOURTH: u8 = 14;
/// The limit for one address, in a second.
const LIMIT: f64 = 100.0;
/// The requests of all clients together, in a second.
const ASKED: usize = 300;
/// The time during which requests are counted.
const COUNTED: Duration = Duration::from_secs(4);
/// The times that are taken until one is found in which no machine was apart.
const TRIES: usize = 6;

fn scene(name: &'static str, own: &str) -> Scene {
    let (lease, doubt_hold) = crate::scene::lease_and_hold();
    let scene = Scene::with(name, lease, doubt_hold, |_, setup| Setup { own: own.to_owned(), ..setup });
    until("all machines share their limits", || {
        scene.doors().iter().all(|door| {
            let limits = limits_of(door);
            limits["machines"] == 3 && limits["apart"] == false
        })
    });
    scene
}

fn limits_of(door: &Door) -> Value {
    door.cluster().map(|state| state["limits"].clone()).unwrap_or_default()
}

/// Clients that come at a rate, until they are stopped.
struct Clients {
    stops: Arc<AtomicBool>,
    admitted: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Lets so many requests a second come, shared by these doors.
    fn come_to(doors: &[Door]) -> Self {
        let (stops, admitted, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        const THREADS: usize = 3;
        let pause = Duration::from_secs(1).mul_f64((THREADS * doors.len()) as f64 / ASKED as f64);
        let one = |door: Door| {
            let (stops, admitted, asked) = (Arc::clone(&stops), Arc::clone(&admitted), Arc::clone(&asked));
            move || {
                let mut client = Client::of(door.address, PORT, PATIENCE);
                let request = format!("GET {} HTTP/1.1\r\nhost: blog.example\r\n\r\n", path_of(1));
                let mut next = Instant::now();
                while !stops.load(Relaxed) {
                    let answer = client.ask(&request).expect("an answer");
                    asked.fetch_add(1, Relaxed);
                    match answer.status {
                        200 => drop(admitted.fetch_add(1, Relaxed)),
                        429 => assert!(answer.field("retry-after").is_some_and(|after| after.parse::<u64>().is_ok_and(|after| after > 0))),
                        status => panic!("{status}: {}", answer.text()),
                    }
                    // Whoever was held up does not make up for it.
                    next = (next + pause).max(Instant::now());
                    rest(next.saturating_duration_since(Instant::now()));
                }
            }
        };
        let threads = doors.iter().flat_map(|door| (0..THREADS).map(|_| thread::spawn(one(door.clone())))).collect();
        Self { stops, admitted, asked, threads }
    }

    /// Returns how many requests were admitted in a second, and how many came.
    fn count(&self) -> (f64, f64) {
        let (begun, admitted, asked) = (Instant::now(), self.admitted.load(Relaxed), self.asked.load(Relaxed));
        rest(COUNTED);
        let took = begun.elapsed().as_secs_f64();
        let since = |now: &AtomicUsize, before| (now.load(Relaxed) - before) as f64 / took;
        (since(&self.admitted, admitted), since(&self.asked, asked))
    }

    fn end(self) {
        self.stops.store(true, Relaxed);
        for thread in self.threads {
            assert!(thread.join().is_ok(), "a client panicked");
        }
    }
}

/// Judges what is admitted in a second of a time in which nobody was apart, and more came than was admitted.
fn admits(what: &str, clients: &Clients, doors: &[Door], expected: f64) {
    let failed = |door: &Door| limits_of(door)["failed"].as_u64().unwrap_or(0);
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let before: Vec<u64> = doors.iter().map(failed).collect();
        let (admitted, asked) = clients.count();
        let is_apart = doors.iter().any(|door| limits_of(door)["apart"] == true);
        let missed: u64 = doors.iter().zip(before).map(|(door, before)| failed(door) - before).sum();
        tell(&format!("{what}: {admitted:.1} of {asked:.1} a second are admitted, {expected} are right; {missed} exchanges failed"));
        seen.push(admitted);
        if asked >= 1.3 * expected && !is_apart && (0.95..=1.10).contains(&(admitted / expected)) {
            return;
        }
    }
    panic!("{what}: {seen:?} were admitted in a second, and {expected} are right");
}

/// A limit of 100 a second holds for three machines together, wherever the clients come. Without the server, each machine takes its part.
#[test]
fn a_limit_for_clients_is_one_for_all_machines() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = scene("a shared limit", "[limits]\nrequests_per_second = 100\n");
    let doors = scene.doors();
    let evenly = Clients::come_to(&doors);
    // The burst is used up.
    rest(Duration::from_secs(2));
    admits("spread evenly", &evenly, &doors, LIMIT);
    evenly.end();
    let at_one = Clients::come_to(&doors[..1]);
    rest(Duration::from_secs(1));
    admits("at one machine", &at_one, &doors, LIMIT);
    at_one.end();

    // Garbage of every kind, and what a machine with another secret writes, change nothing.
    let reports = scene.engines[0].key("limits");
    scene.engines[0].say(&["XADD", &reports, "*", "r", "garbage"]);
    scene.engines[0].say(&["XADD", &reports, "*", "huge", &"x".repeat(300_000)]);
    scene.engines[0].say(&["DEL", &reports]);
    scene.engines[0].say(&["SET", &reports, "a key of another kind"]);
    let place = scene.network.machine("d", FOURTH);
    let url = url_of(&scene.engines[0].place);
    let mut setup = Setup::joined(&url, scene.lease, scene.doubt_hold);
    setup.cluster = setup.cluster.map(|cluster| cluster.replace("secret = \"what", "secret = \"not what"));
    setup.own = "[limits]\nrequests_per_second = 100\n".to_owned();
    let mut stranger = Machine::start(place, &setup);
    let strangers = Clients::come_to(&[stranger.door()]);
    until("what is not a report is counted", || {
        doors.iter().all(|door| limits_of(door)["refused"].as_u64().is_some_and(|refused| refused > 2))
    });
    let evenly = Clients::come_to(&doors);
    rest(Duration::from_secs(2));
    admits("with strangers in the keys", &evenly, &doors, LIMIT);
    assert!(scene.machines.iter().all(|machine| machine.said().contains("a report in limits is refused")), "it is named nowhere");
    strangers.end();
    stranger.stop();
    assert!(scene.engines[0].say(&["PTTL", &reports]).number() > 0, "the reports expire");

    scene.engines[0].kill();
    until("all machines are apart", || doors.iter().all(|door| limits_of(door)["apart"] == true));
    rest(Duration::from_secs(1));
    let parts = |what: &str, clients: &Clients, expected: f64| {
        let (admitted, asked) = clients.count();
        tell(&format!("{what}: {admitted:.1} of {asked:.1} a second are admitted, {expected:.1} are right"));
        // What is refused on the long way takes time, so that fewer may come.
        assert!((0.9..=1.1).contains(&(admitted / expected)), "{what}: {admitted} were admitted in a second, and {expected} are right");
    };
    parts("apart, spread evenly", &evenly, LIMIT);
    evenly.end();
    let at_one = Clients::come_to(&doors[..1]);
    rest(Duration::from_secs(1));
    parts("apart, at one machine", &at_one, LIMIT / 3.0);
    at_one.end();
}

/// Readers of pages that the origin takes its time for, until they are stopped.
fn slow_readers(door: &Door, readers: usize, stops: &Arc<AtomicBool>, served: &Arc<AtomicUsize>) -> Vec<JoinHandle<()>> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let one = |door: Door, stops: Arc<AtomicBool>, served: Arc<AtomicUsize>| {
        move || {
            let mut client = Client::of(door.address, PORT, PATIENCE);
            while !stops.load(Relaxed) {
                let number = NUMBER.fetch_add(1, Relaxed);
                let answer = client.ask(&format!("GET /slow/{number} HTTP/1.1\r\nhost: blog.example\r\n\r\n"));
                // A machine that is killed answers nobody.
                let Ok(answer) = answer else { return };
                assert_eq!(answer.status, 200, "{}", answer.text());
                served.fetch_add(1, Relaxed);
            }
        }
    };
    (0..readers).map(|_| thread::spawn(one(door.clone(), Arc::clone(stops), Arc::clone(served)))).collect()
}

/// An origin that takes six requests at once never gets more from three machines, and six where one machine alone has need.
#[test]
fn an_origins_places_are_shared_by_need() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = scene("an origin's places", "[origin]\nconcurrency = 6\nqueue_timeout = \"60s\"\n");
    let doors = scene.doors();
    scene.origin.most_at_once();
    let run = |doors: &[Door]| {
        let (stops, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = doors.iter().flat_map(|door| slow_readers(door, 12, &stops, &served)).collect();
        (stops, served, threads)
    };
    let end = |(stops, served, threads): (Arc<AtomicBool>, Arc<AtomicUsize>, Vec<JoinHandle<()>>)| {
        stops.store(true, Relaxed);
        threads.into_iter().for_each(|thread| assert!(thread.join().is_ok(), "a reader panicked"));
        served.load(Relaxed)
    };
    let granted = |door: &Door| {
        let origins = limits_of(door)["origins"].as_array().cloned().unwrap_or_default();
        origins.iter().find(|origin| origin["origin"] == "blog.example").and_then(|origin| origin["granted"].as_u64()).unwrap_or(0)
    };

    let at_one = run(&doors[..1]);
    let took = until("one machine has all places", || granted(&doors[0]) == 6);
    until("six requests are at the origin", || scene.origin.most_at_once() == 6);
    tell(&format!("one machine had all six places after {:.2} s", took.as_secs_f64()));
    rest(Duration::from_secs(2));
    assert_eq!(scene.origin.most_at_once(), 6);

    let others = run(&doors[1..]);
    let took = until("each has its part", || doors.iter().all(|door| granted(door) == 2));
    tell(&format!("each machine had two places after {:.2} s", took.as_secs_f64()));
    rest(Duration::from_secs(2));
    assert!(doors.iter().all(|door| granted(door) == 2), "the parts are equal as long as all have need");
    assert_eq!(scene.origin.most_at_once(), 6);

    // The grant of a machine that is gone ends by itself.
    scene.machines[2].kill();
    until("the others have its part", || granted(&doors[0]) + granted(&doors[1]) == 6);
    rest(Duration::from_secs(1));
    assert_eq!(scene.origin.most_at_once(), 6);
    let served = end(others);
    assert!(served > 0);
    until("one machine has all places again", || granted(&doors[0]) == 6);

    // Garbage in the account is passed over.
    let keys = match scene.engines[0].say(&["KEYS", "seawall:*:origin:*"]) {
        Reply::List(keys) => keys,
        other => panic!("{other:?}"),
    };
    let keys: Vec<String> = keys.into_iter().filter_map(|key| if let Reply::Bulk(key) = key { key } else { None }).collect();
    let accounts = u64::try_from(keys.len()).expect("few");
    assert!(accounts >= 2, "one for each site, and for companions of the Ghost: {keys:?}");
    for key in &keys {
        assert!(scene.engines[0].say(&["PTTL", key]).number() > 0, "{key} expires");
        scene.engines[0].say(&["HSET", key, "garbage", "garbage"]);
        scene.engines[0].say(&["HSET", key, &"0".repeat(32), "6 6 99999999999999"]);
        scene.engines[0].say(&["HSET", key, &"1".repeat(32), &"9".repeat(300_000)]);
    }
    // Whoever finds it first counts it.
    let refused = || doors[..2].iter().map(|door| limits_of(door)["refused"].as_u64().unwrap_or(0)).sum::<u64>();
    until("it is counted", || refused() >= 3 * accounts);
    for key in &keys {
        scene.engines[0].say(&["DEL", key]);
        scene.engines[0].say(&["SET", key, "a key of another kind"]);
    }
    until("that is counted, too", || refused() >= 4 * accounts);
    until("one machine still has all places", || granted(&doors[0]) == 6);
    assert_eq!(scene.origin.most_at_once(), 6);

    scene.engines[0].kill();
    until("it takes its part without the server", || granted(&doors[0]) == 2 || granted(&doors[0]) == 3);
    rest(Duration::from_secs(1));
    scene.origin.most_at_once();
    rest(Duration::from_secs(1));
    assert!(scene.origin.most_at_once() <= 3);
    assert!(end(at_one) > 0);
}
