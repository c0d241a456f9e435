//! Sentinels choose another primary.

use std::time::Duration;

use crate::{
    engine::{Engine, Sentinels},
    long,
    machine::Setup,
    network::{Network, NetworkHost},
    process::{rest, until},
    scene::{ENGINE, Promise, Scene, lease_and_hold},
};

const SENTINELS: [(&str, u8); 3] = [("sentinel1", 31), ("sentinel2", 32), ("sentinel3", 33)];

/// Starts three machines, a primary, replicas and three Sentinels.
fn watched(name: &'static str, replicas: u8, more: &str) -> (Scene, Sentinels) {
    let mut network = Network::new();
    let primary = Engine::start(network.engine("valkey0", ENGINE));
    let mut engines = vec![primary];
    for number in 1..=replicas {
        let replica = Engine::start_replica(network.engine(&format!("valkey{number}"), ENGINE + number), &engines[0]);
        engines.push(replica);
    }
    until("the replicas follow", || engines[0].info("connected_slaves") == Some(replicas.to_string()));
    let places: Vec<NetworkHost> = SENTINELS.iter().map(|(name, number)| network.engine(name, *number)).collect();
    let sentinels = Sentinels::watch(&engines[0], places);
    let url = sentinels.url();
    let (lease, hold) = lease_and_hold();
    let scene = Scene::around(name, network, engines, lease, hold, |_| {
        let mut setup = Setup::joined(&url, lease, hold);
        setup.cluster.as_mut().expect("joined").push_str(more);
        setup
    });
    (scene, sentinels)
}

/// The replica that takes over has not got the last second.
#[test]
fn a_failover_loses_writes() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let (mut scene, sentinels) = watched("failed over by Sentinel, with writes lost", 1, "");
    scene.is_loaded();
    let before = sentinels.primary();
    scene.engines[1].freeze();
    rest(Duration::from_millis(900));
    scene.breaks();
    scene.engines[0].kill();
    scene.engines[1].thaw();
    until("another primary is named", || sentinels.primary() != before);
    scene.is_mended();
    let promise = scene.promised();
    scene.ends(&promise);
}

/// The old primary lives on with one machine, apart from everything else. The machines want each write at a replica.
#[test]
fn two_primaries() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let (mut scene, sentinels) = watched("two primaries, each write at a replica", 2, "replicas = 1\n");
    scene.is_loaded();
    let before = sentinels.primary();
    let apart = [scene.engines[0].place.clone(), scene.machines[2].place.clone()];
    let others: Vec<NetworkHost> = sentinels
        .places()
        .chain(scene.engines[1..].iter().map(|engine| &engine.place))
        .chain(scene.machines[..2].iter().map(|machine| &machine.place))
        .cloned()
        .collect();
    let pairs = || apart.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    scene.breaks();
    for (one, other) in pairs() {
        one.mute_towards(other);
        other.mute_towards(one);
    }
    until("another primary is named", || sentinels.primary() != before);
    scene.goes_on_for(Duration::from_secs(10));
    for (one, other) in pairs() {
        one.unmute_towards(other);
        other.unmute_towards(one);
    }
    scene.is_mended();
    // The machine that was apart could tell nobody.
    scene.ends(&Promise::default());
}
