//! Clocks that are wrong by an hour, and clocks that jump: nothing changes, as no two clocks are ever compared.

use std::{fs, time::Duration};

use crate::{
    exact::is_exact,
    long,
    process::rest,
    scene::{Promise, Scene, lease_and_hold},
};

/// The clocks of the machines: an hour behind, right, an hour ahead.
const CLOCKS: [&str; 3] = ["-1h", "+0", "+1h"];

#[test]
fn with_clocks_that_are_hours_apart_purges_are_as_exact() {
    if !crate::network::is_possible() {
        return;
    }
    let (lease, doubt_hold) = lease_and_hold();
    let scene = Scene::with("clocks at -1 h, 0, +1 h", lease, doubt_hold, |number, mut setup| {
        setup.clock = Some(CLOCKS[number].to_owned());
        setup
    });
    is_exact(&scene, if long() { 1_000 } else { 150 });
}

/// While it jumps forth and back, Valkey is away for a while, too.
#[test]
fn with_clocks_that_jump_purges_are_as_exact() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = |number: usize| folder.path().join(number.to_string());
    let says = |number: usize, clock: &str| {
        // At once: half a line would be no clock.
        let new = folder.path().join("new");
        fs::write(&new, format!("{clock}\n")).and_then(|()| fs::rename(&new, file(number))).expect("written");
    };
    for number in 0..3 {
        says(number, "+0");
    }
    let (lease, doubt_hold) = lease_and_hold();
    let mut scene = Scene::with("clocks that jump", lease, doubt_hold, |number, mut setup| {
        setup.clock = Some(format!("@{}", file(number).display()));
        setup
    });
    scene.is_loaded();
    scene.breaks();
    for (round, clock) in ["+1h", "-1h", "+3d", "+0", "-20s", "+20s", "-3d", "+0"].into_iter().enumerate() {
        says(round % 3, clock);
        rest(Duration::from_secs(2));
    }
    scene.engines[0].kill();
    says(0, "+2h");
    says(1, "-2h");
    scene.goes_on_for(Duration::from_secs(6));
    scene.engines[0].start_again();
    scene.is_mended();
    let promise = Promise { ..scene.promised() };
    scene.ends(&promise);
}
