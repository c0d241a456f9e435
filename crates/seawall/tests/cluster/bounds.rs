//! Bounds: many purges in a short time take no more memory than is said, on both sides.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use serde_json::json;

use crate::{
    http::Client,
    ledger::{PAGES, path_of},
    long,
    machine::ADMIN_PORT,
    process::PATIENCE,
    scene::{Scene, tell},
};

/// The purges: more than the stream keeps.
const PURGES: usize = if cfg!(debug_assertions) { 70_000 } else { 100_000 };
/// The purgers of each machine.
const PURGERS: usize = 16;
/// The most entries of the stream, with what the server may leave for later when it trims.
const ENTRIES_MAX: i64 = 65_536 + 1_024;
/// The most bytes that Valkey may have for them.
const ENGINE_BYTES_MAX: u64 = 64 << 20;
/// The most bytes by which a machine may grow.
const MACHINE_BYTES_MAX: u64 = 96 << 20;

#[test]
fn many_purges_in_a_short_time_take_bounded_memory() {
    if !crate::network::is_possible() {
        return;
    }
    if !long() {
        return;
    }
    let scene = Scene::start_as_by_default("100,000 purges in a short time");
    let stream = scene.engines[0].key("purges");
    let before: Vec<u64> = scene.machines.iter().map(|machine| machine.process().resident_bytes()).collect();
    let done = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let purgers: Vec<_> = scene
        .doors()
        .into_iter()
        .flat_map(|door| (0..PURGERS).map(move |_| door.clone()))
        .map(|door| {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                let mut client = Client::of(door.address, ADMIN_PORT, PATIENCE);
                loop {
                    let number = done.fetch_add(1, Relaxed);
                    if number >= PURGES {
                        return;
                    }
                    let what = json!({"url": format!("http://blog.example{}", path_of(number % PAGES))}).to_string();
                    let answer = client.ask(&door.admin_request("POST /purge", &what)).expect("an answer");
                    assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
                }
            })
        })
        .collect();
    for purger in purgers {
        assert!(purger.join().is_ok(), "a purger panicked");
    }
    let took = begun.elapsed();
    let entries = scene.engines[0].say(&["XLEN", &stream]).number();
    let engine = scene.engines[0].info("used_memory").and_then(|bytes| bytes.parse::<u64>().ok()).expect("a number");
    let after: Vec<u64> = scene.machines.iter().map(|machine| machine.process().resident_bytes()).collect();
    tell(&format!(
        "{PURGES} purges in {:.1} s: {entries} entries, {} MiB in Valkey, machines from {before:?} to {after:?} bytes",
        took.as_secs_f64(),
        engine >> 20
    ));
    assert!(entries <= ENTRIES_MAX, "{entries} entries");
    assert!(engine <= ENGINE_BYTES_MAX, "{engine} bytes in Valkey");
    for (before, after) in before.iter().zip(&after) {
        assert!(after.saturating_sub(*before) <= MACHINE_BYTES_MAX, "a machine grew from {before} to {after} bytes");
    }
}
