//! Exact: no answer that was begun after an acknowledgement shows what it covered.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    ledger::Tally,
    load::{Belief, Crowd, purge_many},
    long,
    process::rest,
    scene::{Scene, tell},
};

/// The requests that readers send to each machine in a second.
pub(crate) const READS_PER_SECOND: u32 = 300;

/// A thousand purges of every kind at random machines, while readers ask all of them. Every answer counts as an acknowledgement, also that to a
/// write: an editor who has it in hand asks another machine, and sees the change.
#[test]
fn no_answer_shows_what_an_acknowledged_purge_has_covered() {
    if !crate::network::is_possible() {
        return;
    }
    let scene = Scene::start_as_by_default("1,000 purges");
    is_exact(&scene, if long() { 5_000 } else { 1_000 });
}

/// Purges, reads, and judges.
pub(crate) fn is_exact(scene: &Scene, purges: usize) {
    let doors = scene.doors();
    scene.origin.takes(Duration::from_millis(2));
    // Whoever has just joined waits for a lease, as there may be machines of which it does not know yet.
    rest(scene.lease + scene.is_normal());
    let mut crowd = Crowd::default();
    for (number, door) in (0_u64..).zip(&doors) {
        crowd.reads(door, &scene.ledger, READS_PER_SECOND, 100 * number);
    }
    purge_many(&doors, &scene.ledger, Belief::EveryAnswer, purges, 4, 0x5eed);
    crowd.end();
    let tally = scene.ledger.tally();
    shows(&tally, scene);
    assert!(tally.wrong == 0, "{} wrong answers, such as:\n  {}", tally.wrong, tally.wrong_in_words.join("\n  "));
    assert!(tally.errors.is_empty(), "readers met errors: {:?}", tally.errors);
    assert!(tally.refused_why.is_empty(), "purges and writes had no good answer: {:?}", tally.refused_why);
    assert!(tally.everywhere > 0, "nothing was said to hold everywhere");
    assert!(scene.origin.asked() < tally.served, "nothing was stored");
}

fn shows(tally: &Tally, scene: &Scene) {
    let mut kinds: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for (kind, took) in &tally.took {
        kinds.entry(kind).or_default().push(*took);
        kinds.entry("all").or_default().push(*took);
    }
    tell(&format!(
        "{} answers, {} wrong; {} purges held everywhere, {} not known, {} writes; {} requests at the origin, {} of them confirmations",
        tally.served,
        tally.wrong,
        tally.everywhere,
        tally.not_known,
        tally.writes,
        scene.origin.asked(),
        scene.origin.confirmed()
    ));
    for (kind, mut took) in kinds {
        took.sort_unstable();
        let at = |share: usize| took[(took.len() * share / 100).min(took.len() - 1)].as_secs_f64() * 1e3;
        tell(&format!("  {kind:<14} {:>5}   p50 {:>7.2} ms   p99 {:>7.2} ms   max {:>7.2} ms", took.len(), at(50), at(99), at(100)));
    }
}
