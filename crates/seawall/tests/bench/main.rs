//! `seawall bench` as people run it, judged: its counts against the logs of the servers that it loads, its verdicts against causes that are known, its
//! search for a limit against limits that are known.
//!
//! `make test` runs what takes seconds; `make spec-bench` (`SEAWALL_BENCH_LONG=1`) also what takes minutes. `bring-up` installs nginx, h2o and Caddy.

mod cache;
mod compare;
mod ends;
mod every;
mod failures;
mod find_limit;
mod known;
mod leak;
mod report;
mod servers;
mod targets;
mod tool;
mod verdicts;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Times are measured by one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells whether tests run that take minutes.
fn long() -> bool {
    std::env::var_os("SEAWALL_BENCH_LONG").is_some()
}
