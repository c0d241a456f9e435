//! The hit ratio of the memory tier beside that of a plain LRU with the same bytes, as a table in Markdown.
//!
//! `cargo run --release -p store --example hit_ratio`. The traffic is the same in every run; the store's secret is not, and with it which
//! pages share a shard: the last digit may differ.

#[path = "../tests/traffic/mod.rs"]
mod traffic;

use std::io::{self, Write};

use traffic::{Traffic, lru, memory_tier};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "| traffic | memory, of the site | hit ratio | of an LRU | byte hit ratio | of an LRU |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|")?;
    for (name, zipf, crawls) in [("readers only", 0.95, 0), ("Zipf 0.9, 10 crawls", 0.9, 10), ("Zipf 1.0, 10 crawls", 1.0, 10)] {
        let traffic = Traffic { seed: 2026, pages: 5_000, requests: 500_000, zipf, crawls };
        let (requests, sizes) = (traffic.requests(), traffic.sizes());
        let site: usize = sizes.iter().sum();
        for percent in [2, 5, 10, 20, 40] {
            let memory = (site * percent / 100) as u64;
            let (ours, theirs) = (memory_tier(&requests, &sizes, memory), lru(&requests, &sizes, memory));
            writeln!(
                out,
                "| {name} | {:.1} MiB, {percent} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
                memory as f64 / f64::from(1 << 20),
                ours.requests * 100.0,
                theirs.requests * 100.0,
                ours.bytes * 100.0,
                theirs.bytes * 100.0,
            )?;
        }
    }
    Ok(())
}
