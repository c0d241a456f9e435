//! A site that one machine does not have for a while: what is purged of it meanwhile is not shown when it is back.

use serde_json::json;

use crate::{
    http::Client,
    ledger::{BLOG, host_of, path_of},
    load::read,
    machine::{PORT, Setup},
    process::PATIENCE,
    scene::{Scene, lease_and_hold},
};

/// The machine that lacks it, and one that purges.
const LACKS: usize = 1;
const PURGES: usize = 0;

fn scene(name: &'static str) -> Scene {
    let (lease, hold) = lease_and_hold();
    Scene::with(name, lease, hold, |_, setup| Setup { has_disk: true, ..setup })
}

/// Reads all pages of the blog at the machine, and has the answers judged.
fn reads(scene: &Scene) {
    let door = scene.machines[LACKS].door();
    let mut client = Client::of(door.address, PORT, PATIENCE);
    for page in BLOG {
        read(&mut client, &door, &scene.ledger, page);
    }
}

/// Changes a page, and purges it: that holds everywhere, as nobody shows it.
fn purges(scene: &Scene, page: usize) {
    let change = scene.ledger.change([page]);
    let what = json!({"url": format!("http://{}{}", host_of(page), path_of(page))}).to_string();
    let answer = scene.machines[PURGES].door().admin("POST /purge", &what);
    assert!(matches!(&answer, Some((200, done)) if done["spread"]["everywhere"] == true), "{answer:?}");
    scene.ledger.holds_everywhere(&change);
}

fn restarts(scene: &mut Scene, lacks: Option<&'static str>) {
    let machine = &mut scene.machines[LACKS];
    machine.stop();
    machine.lacks(lacks);
    machine.start_again();
    machine.is_leased();
}

fn is_right(scene: &Scene) {
    let tally = scene.ledger.tally();
    assert!(tally.wrong == 0, "{}", tally.wrong_in_words.join("\n"));
    assert!(tally.errors.is_empty(), "{:?}", tally.errors);
    assert_eq!(tally.served, 3 * BLOG.len() as u64);
}

#[test]
fn a_site_that_a_reload_brings_back_shows_nothing_that_was_purged_meanwhile() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = scene("a site is taken away and brought back by reloads");
    scene.is_normal();
    reads(&scene);
    reads(&scene);
    let door = scene.machines[LACKS].door();
    let reload = || assert!(matches!(door.admin("POST /reload", ""), Some((200, _))));
    scene.machines[LACKS].lacks(Some(host_of(BLOG.start)));
    // Twice: after the first time, purges of what was served just before are still carried out.
    reload();
    reload();
    purges(&scene, BLOG.start);
    scene.machines[LACKS].lacks(None);
    reload();
    reads(&scene);
    is_right(&scene);
}

#[test]
fn a_site_that_a_restart_brings_back_shows_nothing_that_was_purged_meanwhile() {
    if !crate::network::is_possible() {
        return;
    }
    let mut scene = scene("a site is taken away and brought back by restarts");
    scene.is_normal();
    reads(&scene);
    reads(&scene);
    restarts(&mut scene, Some(host_of(BLOG.start)));
    purges(&scene, BLOG.start);
    restarts(&mut scene, None);
    reads(&scene);
    is_right(&scene);
}
