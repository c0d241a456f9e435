//! What many cores cost each other when all of them hit one page: lookups per second and thread, from the store and from fronts.
//!
//! `cargo run --release -p store --example contention`. Threads beyond the machine's cores take turns, so only the rows up to its number of
//! cores show contention.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::{HotPages, Record, Scope, Store, StoreOptions, Stored};

struct Head;

impl Record for Head {
    fn weight(&self) -> usize {
        400
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
}

type Pages = Store<Head, ()>;

const KEY: &[u8] = b"0\0blog.example/the-post-on-the-front-page/";
const LOOKUPS: u32 = 4_000_000;

fn main() -> io::Result<()> {
    let store: Arc<Pages> = Arc::new(Store::new(StoreOptions::with_memory(64 << 20)));
    let page = Stored::new(Head, Bytes::from(vec![b'x'; 8192]), store.generation(), Scope::default());
    store.insert(store.hash(KEY), KEY, page, |_| true);
    let mut out = io::stdout().lock();
    let cores = thread::available_parallelism()?;
    writeln!(out, "One page, {cores} cores; million lookups per second and thread\n")?;
    writeln!(out, "| threads | store | hot pages | |\n|---:|---:|---:|---:|")?;
    for threads in [1, 2, 4, 8, 16] {
        let shared = measure(threads, || {
            let store = Arc::clone(&store);
            let hash = store.hash(KEY);
            move || drop(black_box(store.get(black_box(hash), KEY)))
        });
        let fronts = measure(threads, || {
            let (store, mut hot) = (Arc::clone(&store), HotPages::new(1 << 20));
            let hash = store.hash(KEY);
            move || drop(black_box(hot.get(&store, black_box(hash), KEY)))
        });
        let rate = |time: Duration| f64::from(LOOKUPS) / time.as_secs_f64() / 1e6;
        writeln!(out, "| {threads} | {:.1} | {:.1} | {:.1} x |", rate(shared), rate(fronts), rate(fronts) / rate(shared))?;
    }
    Ok(())
}

/// Returns how long it takes until all threads have made their lookups. Each thread makes its own closure.
fn measure<F: FnMut()>(threads: usize, make: impl Fn() -> F + Sync) -> Duration {
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut lookup = make();
                barrier.wait();
                for _ in 0..LOOKUPS {
                    lookup();
                }
            });
        }
        barrier.wait();
        // The scope joins its threads before the time is measured.
        Instant::now()
    })
    .elapsed()
}
