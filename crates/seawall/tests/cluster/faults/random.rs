//! Anything, at any time, and several at once.

use std::time::{Duration, Instant};

use crate::{
    long,
    process::rest,
    random::Random,
    scene::{Promise, Scene, tell},
};

/// The time for which it goes on.
const TIME: Duration = Duration::from_secs(180);

/// Whatever happens, no purge is falsely said to hold everywhere. `SEAWALL_CLUSTER_SEED` repeats a run, as far as real machines do.
#[test]
fn faults_at_random() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let seed =
        std::env::var("SEAWALL_CLUSTER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
    tell(&format!("faults at random, SEAWALL_CLUSTER_SEED={seed}"));
    let mut random = Random::new(seed);
    let mut scene = Scene::with("faults at random, for 3 minutes", Duration::from_secs(1), Duration::from_secs(2), |_, mut setup| {
        setup.has_disk = true;
        setup
    });
    scene.is_loaded();
    scene.breaks();
    let begun = Instant::now();
    let valkey = scene.engines[0].place.clone();
    while begun.elapsed() < TIME {
        let time = Duration::from_millis(50 + random.below(3_000) as u64);
        let (one, other) = (random.below(3), random.below(3));
        let place = scene.machines[one].place.clone();
        match random.below(10) {
            0 => {
                scene.engines[0].kill();
                rest(time);
                scene.engines[0].start_again();
            }
            1 => {
                scene.engines[0].freeze();
                rest(time);
                scene.engines[0].thaw();
            }
            2 => {
                scene.engines[0].say(&["FLUSHALL"]);
            }
            3 => {
                scene.engines[0].say(&["SAVE"]);
                rest(time);
            }
            4 => {
                place.cut();
                rest(time);
                place.join();
            }
            5 => {
                place.mute_towards(&valkey);
                rest(time);
                place.unmute_towards(&valkey);
            }
            6 => {
                valkey.mute_towards(&place);
                rest(time);
                valkey.unmute_towards(&place);
            }
            7 => {
                scene.machines[one].process().freeze();
                rest(time);
                scene.machines[one].process().thaw();
            }
            8 => {
                scene.machines[one].kill();
                rest(time);
                scene.machines[one].start_again();
            }
            _ => {
                // Two at once, and Valkey with them.
                scene.machines[one].place.cut();
                scene.engines[0].kill();
                scene.machines[other].process().freeze();
                rest(time);
                scene.machines[other].process().thaw();
                scene.engines[0].start_again();
                scene.machines[one].place.join();
            }
        }
        rest(Duration::from_millis(random.below(2_000) as u64));
    }
    scene.is_mended();
    scene.ends(&Promise { stale_max: None, may_fail: vec!["a", "b", "c"], forgets: true });
}
