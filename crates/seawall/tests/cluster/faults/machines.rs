//! A machine fails, or its way to Valkey does.

use std::time::Duration;

use serde_json::json;

use crate::{
    ledger::path_of,
    long,
    process::{rest, until},
    scene::{Promise, Scene, lease_and_hold},
};

const AWAY: usize = 2;

/// It serves on, in doubt; the others purge without it.
#[test]
fn a_machine_is_cut_off() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("a machine cut off");
    scene.is_loaded_and_purged_at(&[0, 1]);
    scene.breaks();
    scene.machines[AWAY].place.cut();
    scene.goes_on_for_a_while();
    scene.machines[AWAY].place.join();
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// The machine's words do not arrive, and those of the others reach it.
#[test]
fn a_machine_is_not_heard() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let mut scene = Scene::start("a machine cut off one way: it is not heard");
    scene.is_loaded_and_purged_at(&[0, 1]);
    scene.breaks();
    let valkey = scene.engines[0].place.clone();
    scene.machines[AWAY].place.mute_towards(&valkey);
    scene.goes_on_for_a_while();
    scene.machines[AWAY].place.unmute_towards(&valkey);
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// The machine's words arrive, its purges too, and it never gets an answer.
#[test]
fn a_machine_hears_nothing() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("a machine cut off one way: it hears nothing");
    scene.is_loaded();
    scene.breaks();
    let away = scene.machines[AWAY].place.clone();
    scene.engines[0].place.mute_towards(&away);
    scene.goes_on_for_a_while();
    scene.engines[0].place.unmute_towards(&away);
    scene.is_mended();
    // Its own purges may not get out while it is away.
    scene.ends(&Promise::default());
}

/// A purge there is not said to hold everywhere; the others are told as soon as the machine is back.
#[test]
fn what_a_machine_purges_that_is_cut_off_is_told_later() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = Scene::start("purges at a machine that is cut off");
    scene.is_loaded_and_purged_at(&[AWAY]);
    scene.breaks();
    scene.machines[AWAY].place.cut();
    // What was appended before may still be acknowledged.
    rest(scene.lease * 3);
    let (status, done) = {
        let purge = json!({"url": "http://blog.example/nothing"}).to_string();
        scene.doors()[AWAY].admin("POST /purge", &purge).expect("it answers")
    };
    assert_eq!((status, &done["spread"]["everywhere"]), (202, &json!(false)), "{done}");
    assert!(done["spread"]["why"].is_string(), "{done}");
    scene.machines[AWAY].place.join();
    scene.is_mended();
    scene.ends(&Promise::default());
}

/// It was asked for a page and asked the origin; then it froze. Meanwhile the page was purged, and the answer that it finds when it wakes is old.
#[test]
fn a_machine_is_frozen_in_the_middle_of_a_fetch_and_wakes_after_its_lease() {
    if !crate::network::is_possible() {
        return;
    }
    const PAGE: usize = 5;
    let mut scene = Scene::start("a machine frozen in the middle of a fetch");
    scene.is_loaded_and_purged_at(&[]);
    let doors = scene.doors();
    scene.breaks();
    for round in 0..if long() { 2 } else { 1 } {
        scene.origin.hold(PAGE);
        let purge = json!({"url": format!("http://blog.example{}", path_of(PAGE))}).to_string();
        let (status, _) = doors[0].admin("POST /purge", &purge).expect("an answer");
        assert_eq!(status, 200, "nothing is wrong yet, in round {round}");
        // Each machine asks the origin for it, for the first reader who comes.
        until("every machine waits for the page", || scene.origin.waiting() >= 3);
        scene.machines[AWAY].process().freeze();
        let change = scene.ledger.change([PAGE]);
        let (status, done) = doors[0].admin("POST /purge", &purge).expect("an answer");
        scene.ledger.is_answered(&change, "API, url");
        assert_eq!(status, 200, "its lease has passed, so that it cannot show the page: {done}");
        assert!(done["spread"]["expired"].as_array().is_some_and(|names| names.contains(&json!("c"))), "{done}");
        scene.ledger.holds_everywhere(&change);
        scene.ledger.count(|tally| tally.everywhere += 1);
        scene.origin.let_go();
        rest(Duration::from_millis(500));
        scene.machines[AWAY].process().thaw();
        rest(Duration::from_secs(1));
    }
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// Everybody freezes for some time, again and again, while everybody purges.
#[test]
fn machines_freeze_and_wake() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let mut scene = Scene::start("machines frozen, one after another");
    scene.is_loaded();
    scene.breaks();
    for (machine, time) in [(0, 300), (1, 1_500), (2, 2_500)] {
        scene.machines[machine].process().freeze();
        rest(Duration::from_millis(time));
        scene.machines[machine].process().thaw();
        rest(Duration::from_millis(100));
    }
    scene.is_mended();
    scene.ends(&Promise::default());
}

/// The others need not wait for it for long, and when it starts again, it knows what was purged.
#[test]
fn a_machine_is_killed_and_starts_with_its_disk() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let mut scene = with_disks("a machine killed, and started with its disk");
    scene.is_loaded_and_purged_at(&[0, 1]);
    scene.breaks();
    scene.machines[AWAY].kill();
    scene.goes_on_for(Duration::from_secs(2));
    scene.machines[AWAY].start_again();
    scene.is_mended();
    let promise = Promise { may_fail: vec!["c"], ..scene.promised() };
    scene.ends(&promise);
}

/// A disk from last week: nobody knows any more what was purged since.
#[test]
fn a_machine_comes_back_with_an_old_disk_to_an_empty_valkey() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = with_disks("a machine started with an old disk, and an empty Valkey");
    scene.is_loaded_and_purged_at(&[0, 1]);
    rest(Duration::from_secs(1));
    scene.breaks();
    scene.machines[AWAY].stop();
    scene.goes_on_for(Duration::from_secs(1));
    scene.engines[0].kill();
    scene.engines[0].start_again();
    scene.goes_on_for(Duration::from_secs(2));
    scene.machines[AWAY].start_again();
    scene.is_mended();
    let promise = Promise { may_fail: vec!["c"], ..scene.promised() };
    scene.ends(&promise);
}

fn with_disks(name: &'static str) -> Scene {
    let (lease, doubt_hold) = lease_and_hold();
    Scene::with(name, lease, doubt_hold, |_, mut setup| {
        setup.has_disk = true;
        setup
    })
}
