//! The memory tier keeps what will be read again, better than a plain LRU does. The whole table: `cargo run --release -p store --example
//! hit_ratio`.

mod traffic;

use traffic::{Traffic, lru, memory_tier};

/// A crawler walks through everything once, so everything it touches is the newest to an LRU, and the readers' pages go.
#[test]
fn with_a_crawler_among_the_readers_the_memory_tier_beats_an_lru() {
    let traffic = Traffic { seed: 1, pages: 1_500, requests: 60_000, zipf: 0.95, crawls: 6 };
    let (requests, sizes) = (traffic.requests(), traffic.sizes());
    let site: usize = sizes.iter().sum();
    for share in [20, 10, 5] {
        let memory = (site / share) as u64;
        let (ours, theirs) = (memory_tier(&requests, &sizes, memory), lru(&requests, &sizes, memory));
        assert!(ours.requests > theirs.requests + 0.01, "a {share}th of the site: {ours:?}, LRU {theirs:?}");
        // With little memory, long pages are not stored at all: there are then more hits, of fewer bytes.
        assert!(share > 5 || ours.bytes > theirs.bytes, "a {share}th of the site: {ours:?}, LRU {theirs:?}");
    }
}
