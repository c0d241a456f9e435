//! Valkey fails.

use std::time::Duration;

use crate::{
    engine::Engine,
    long,
    machine::{Setup, url_of},
    network::Network,
    process::rest,
    scene::{ENGINE, Scene, lease_and_hold},
};

fn kill_and_start(mut scene: Scene) {
    scene.is_loaded();
    scene.breaks();
    scene.engines[0].kill();
    scene.goes_on_for_a_while();
    scene.engines[0].start_again();
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

#[test]
fn valkey_is_killed_and_starts_empty() {
    if !crate::network::is_possible() {
        return;
    }
    kill_and_start(Scene::start("Valkey killed, and started empty"));
}

/// What holds with the one server holds with the other.
#[test]
fn redis_is_killed_and_starts_empty() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let mut network = Network::new();
    let Some(engine) = Engine::start_redis(network.engine("redis", ENGINE)) else { return };
    let url = url_of(&engine.place);
    let (lease, hold) = lease_and_hold();
    let name = "Redis killed, and started empty";
    kill_and_start(Scene::around(name, network, vec![engine], lease, hold, |_| Setup::joined(&url, lease, hold)));
}

/// The connections of a stopped server stay, and nobody answers on them.
#[test]
fn valkey_is_stopped_for_a_while() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("Valkey stopped");
    scene.is_loaded();
    scene.breaks();
    scene.engines[0].freeze();
    scene.goes_on_for_a_while();
    scene.engines[0].thaw();
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// The stream, the machines and everything else are gone, in a server that goes on.
#[test]
fn valkey_is_flushed() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("Valkey flushed five times");
    scene.is_loaded();
    scene.breaks();
    for pause in [50, 300, 700, 10, 500] {
        scene.engines[0].say(&["FLUSHALL"]);
        rest(Duration::from_millis(pause));
    }
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// The stream is what it was a second ago, and ids of it may come again for other purges.
#[test]
fn valkey_is_restored_from_an_old_dump() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("Valkey restored from an old dump");
    scene.is_loaded();
    scene.engines[0].say(&["SAVE"]);
    rest(Duration::from_secs(1));
    scene.breaks();
    scene.engines[0].kill();
    scene.engines[0].start_again();
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// Whoever was away cannot know any more what was purged meanwhile.
#[test]
fn the_stream_is_trimmed_past_a_reader() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("stream trimmed past a machine that was away");
    scene.is_loaded_and_purged_at(&[0, 1]);
    let stream = scene.engines[0].key("purges");
    scene.breaks();
    scene.machines[2].place.cut();
    scene.goes_on_for(Duration::from_secs(3));
    scene.engines[0].say(&["XTRIM", &stream, "MAXLEN", "1"]);
    scene.machines[2].place.join();
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// It takes no more writes, neither purges nor machines; it can be read.
#[test]
fn valkey_is_full() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("Valkey full");
    scene.is_loaded();
    scene.breaks();
    scene.engines[0].say(&["CONFIG", "SET", "maxmemory", "1"]);
    scene.goes_on_for_a_while();
    scene.engines[0].say(&["CONFIG", "SET", "maxmemory", "0"]);
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// Somebody changes it, and it is wrong from then on.
#[test]
fn the_password_is_wrong() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("the password wrong");
    scene.is_loaded();
    let mut session = scene.engines[0].session();
    let mut say = |words: &[&str]| session.say(words).expect("this connection stays");
    scene.breaks();
    say(&["CONFIG", "SET", "requirepass", "another"]);
    say(&["CLIENT", "KILL", "TYPE", "normal"]);
    scene.goes_on_for_a_while();
    say(&["CONFIG", "SET", "requirepass", crate::engine::PASSWORD]);
    scene.is_mended();
    for machine in &scene.machines {
        assert!(!machine.said().contains(crate::engine::PASSWORD), "the password is in the log of {}", machine.place.name);
    }
    let promise = scene.promised();
    scene.ends(&promise);
}

/// Without Valkey and without the origin, what is stored stands in.
#[test]
fn valkey_and_the_origin_are_gone() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("Valkey killed, and the origin answers 503");
    // Nobody purges for good what is to stand in.
    scene.is_loaded_and_purged_at(&[]);
    // Each page is asked for once.
    for machine in scene.doors() {
        let mut client = crate::http::Client::of(machine.address, crate::machine::PORT, crate::process::PATIENCE);
        for page in 0..crate::ledger::PAGES {
            crate::load::read(&mut client, &machine, &scene.ledger, page);
        }
    }
    scene.breaks();
    scene.engines[0].kill();
    scene.origin.fails(true);
    scene.goes_on_for_a_while();
    scene.origin.fails(false);
    scene.engines[0].start_again();
    scene.is_mended();
    let normal = scene.is_normal();
    let doors = scene.doors();
    crate::load::purge_many(&doors, &scene.ledger, crate::load::Belief::Said, 20, 1, 1);
    crate::scene::tell(&format!("without Valkey and origin: normal after {:.2} s", normal.as_secs_f64()));
    let promise = scene.promised();
    scene.ends(&promise);
}
