//! What does not belong there: two machines of one name, another cluster's secret, garbage in the keys.

use std::time::Duration;

use crate::{
    load::Crowd,
    machine::{Machine, Setup, url_of},
    process::{rest, until},
    scene::{Promise, Scene},
};

/// The number of a fourth machine in the network.
const FOURTH: u8 = 14;

/// The second gets no lease and says so. What it shows is validated, so that it can do no harm.
#[test]
fn two_machines_have_one_name() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("two machines of one name");
    scene.is_loaded();
    scene.breaks();
    let place = scene.network.machine("d", FOURTH);
    let setup = scene.machines[0].setup.clone();
    let second = Machine::start_as("a", place, &setup);
    let door = second.door();
    let mut crowd = Crowd::default();
    crowd.reads(&door, &scene.ledger, 50, 99);
    until("it says that its name is taken", || door.cluster().is_some_and(|state| state["name_is_taken"] == true));
    for _ in 0..10 {
        rest(scene.lease / 4);
        assert!(!door.is_leased(), "the second of a name has a lease");
    }
    assert!(scene.machines[0].door().is_leased() || cfg!(debug_assertions), "the first of the name has none");
    assert!(second.said().contains("name"), "{}", second.said());
    crowd.end();
    drop(second);
    scene.is_mended();
    let promise = Promise { may_fail: vec!["d"], ..scene.promised() };
    scene.ends(&promise);
}

/// The entries of a machine with another secret are refused, named and counted. It may show what the others purge, so these do not say that
/// they hold everywhere while it is there.
#[test]
fn a_machine_has_another_secret() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("a machine with another secret");
    scene.is_loaded();
    scene.breaks();
    let place = scene.network.machine("d", FOURTH);
    let url = url_of(&scene.engines[0].place);
    let mut setup = Setup::joined(&url, scene.lease, scene.doubt_hold);
    let cluster = setup.cluster.take().expect("joined");
    setup.cluster = Some(cluster.replace("secret = \"what", "secret = \"not what"));
    let mut stranger = Machine::start(place, &setup);
    let mut crowd = Crowd::default();
    crowd.purges(&[stranger.door()], &std::sync::Arc::new(crate::ledger::Ledger::new()), Duration::from_millis(100), 5);
    until("the others count what it wrote", || {
        scene.doors().iter().all(|door| door.cluster().is_some_and(|state| state["refused"].as_u64().is_some_and(|refused| refused > 0)))
    });
    // It cannot be told of a purge, so no purge holds everywhere, and whoever purges reads its name.
    let (status, done) = scene.doors()[0].admin("POST /purge", "{\"url\":\"http://blog.example/nothing\"}").expect("an answer");
    assert_eq!(status, 202, "{done}");
    assert!(done["spread"]["why"].as_str().is_some_and(|why| why.starts_with("d ")), "{done}");
    scene.goes_on_for(Duration::from_secs(1));
    assert!(scene.machines[0].said().contains("seal"), "it is not named: {}", scene.machines[0].said());
    crowd.end();
    stranger.stop();
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// Keys of ours with something else in them. What is small is left out; of what is huge nothing is read. Nobody's memory grows by it.
#[test]
fn garbage_is_in_the_keys() {
    if !crate::network::is_possible() {
        return;
    }
    const HUGE: usize = 64 << 20;
    let mut scene = Scene::start("garbage and huge values in our keys");
    scene.is_loaded();
    let valkey = &scene.engines[0];
    let (stream, machines, confirmed) = (valkey.key("purges"), valkey.key("machines"), valkey.key("confirmed"));
    let memory = |scene: &Scene| scene.machines.iter().map(|machine| machine.process().resident_bytes()).max().unwrap_or(0);
    let before = memory(&scene);
    scene.breaks();
    let valkey = &scene.engines[0];
    for key in [&stream, &confirmed] {
        valkey.say(&["XADD", key, "*", "what", "is this?", "name", "a", "session", "b", "id", "9999999999999-0"]);
    }
    valkey.say(&["HSET", &machines, "z", "{\"session\":\"x\"}"]);
    rest(Duration::from_millis(500));
    let huge = "x".repeat(HUGE);
    valkey.say(&["XADD", &stream, "*", "sealed", &huge]);
    valkey.say(&["HSET", &machines, "y", &huge]);
    scene.goes_on_for(Duration::from_secs(2));
    let valkey = &scene.engines[0];
    valkey.say(&["HDEL", &machines, "y"]);
    valkey.say(&["DEL", &stream]);
    valkey.say(&["SET", &stream, "no stream"]);
    scene.goes_on_for(Duration::from_secs(2));
    scene.engines[0].say(&["DEL", &stream]);
    let after = memory(&scene);
    assert!(after < before + (HUGE as u64) / 2, "memory grew from {before} to {after} bytes");
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}
