//! The judge, judged: it finds what machines show that tell each other nothing, or hope that all have heard; and it finds nothing where
//! nothing is wrong.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    engine::{Engine, say_to, subscribe},
    http::Client,
    ledger::{Ledger, PAGES, path_of},
    load::{Belief, Crowd, purge_many, read},
    machine::{Door, Machine, PORT, Setup},
    network::Network,
    origin::Origin,
    process::{PATIENCE, rest, until},
    scene::{ENGINE, MACHINES, Scene, tell},
};

const NOWHERE: Duration = Duration::ZERO;

fn alone(name: &'static str) -> Scene {
    Scene::around(name, Network::new(), Vec::new(), NOWHERE, NOWHERE, |_| Setup::alone())
}

/// Reads every page once everywhere, so that it is stored.
fn is_stored(doors: &[Door], ledger: &Ledger) {
    for door in doors {
        let mut client = Client::of(door.address, PORT, PATIENCE);
        for page in 0..PAGES {
            read(&mut client, door, ledger, page);
        }
    }
}

/// A machine that stands alone keeps what it says: each kind of purge holds from its answer on.
#[test]
fn the_judge_finds_nothing_wrong_with_one_machine() {
    if !crate::network::is_possible() {
        return;
    }
    let mut network = Network::new();
    let ledger = Arc::new(Ledger::new());
    let origin = Origin::start(&ledger);
    origin.takes(Duration::from_millis(3));
    let (name, number) = MACHINES[0];
    let machine = Machine::start(network.machine(name, number), &Setup::alone());
    let doors = [machine.door()];
    let mut crowd = Crowd::default();
    crowd.reads(&doors[0], &ledger, 300, 1);
    purge_many(&doors, &ledger, Belief::EveryAnswer, 200, 3, 2);
    crowd.end();
    let tally = ledger.tally();
    assert_eq!((tally.wrong, tally.refused, tally.errors.len()), (0, 0, 0), "{tally:?}");
    assert!(tally.everywhere > 100 && tally.writes > 20 && tally.served > 100, "{tally:?}");
    assert!(origin.asked() < tally.served, "nothing was stored");
}

/// Machines without leases that tell each other nothing.
#[test]
fn the_judge_finds_machines_that_do_not_tell_each_other() {
    if !crate::network::is_possible() {
        return;
    }
    let scene = alone("machines that stand alone");
    let doors = scene.doors();
    is_stored(&doors, &scene.ledger);
    purge_many(&doors, &scene.ledger, Belief::EveryAnswer, 60, 1, 3);
    let tally = scene.ledger.tally();
    assert!(tally.wrong > 5, "the judge is blind: {tally:?}");
}

/// Machines without leases that are told of purges by pub/sub, as other caches are: whoever is away for a moment never hears of what was
/// purged meanwhile, and whoever is slow hears of it after the purge was acknowledged.
#[test]
fn the_judge_finds_what_a_broadcast_forgets() {
    if !crate::network::is_possible() {
        return;
    }
    let mut network = Network::new();
    let engine = Engine::start(network.engine("valkey", ENGINE));
    let mut scene = Scene::around("a broadcast instead of the stream", network, vec![engine], NOWHERE, NOWHERE, |_| Setup::alone());
    let server = scene.engines[0].place.back();
    let doors = scene.doors();
    // Each machine has a relay beside it, which hears the broadcast and purges there.
    for door in doors.clone() {
        let mut hears = subscribe(server, "purges").expect("a subscription");
        thread::spawn(move || {
            while let Ok(what) = hears() {
                door.admin("POST /purge", &what);
            }
        });
    }
    let broadcast = |what: &str| say_to(server, crate::engine::PORT, &["PUBLISH", "purges", what]).expect("it is there").number();
    assert_eq!(broadcast(&json!({"url": "http://blog.example/nothing"}).to_string()), 3);
    let purge = |page: usize| {
        let change = scene.ledger.change([page]);
        broadcast(&json!({"url": format!("http://blog.example{}", path_of(page))}).to_string());
        scene.ledger.holds_everywhere(&change);
    };
    is_stored(&doors, &scene.ledger);
    let mut crowd = Crowd::default();
    for (number, door) in (0..).zip(&doors) {
        crowd.reads(door, &scene.ledger, 200, number);
    }
    for page in 0..30 {
        purge(page);
    }
    rest(Duration::from_millis(500));
    let at_once = scene.ledger.tally().wrong;
    // One subscriber loses its connection, and knows nothing of what is said meanwhile.
    let Ok(crate::engine::Reply::Number(1..)) = say_to(server, crate::engine::PORT, &["CLIENT", "KILL", "TYPE", "pubsub"]) else {
        panic!("the relays are cut off")
    };
    purge(31);
    let before = scene.ledger.tally().wrong;
    let begun = Instant::now();
    until("somebody is shown what was purged, and goes on to be", || scene.ledger.tally().wrong > before + 10);
    tell(&format!(
        "A broadcast without leases: {at_once} wrong answers after 30 purges; of a purge that one connection missed: {} in {:.1} s, and no end",
        scene.ledger.tally().wrong - before,
        begun.elapsed().as_secs_f64()
    ));
    crowd.end();
    scene.machines.clear();
}
