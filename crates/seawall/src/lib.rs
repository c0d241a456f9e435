//! The binary's own parts: command line, configuration, wiring of the rooms, workers, signals, reload.
//!
//! Absent: logic of serving; it only calls the other rooms.

mod access_log;
mod alerts;
mod automatic;
mod banner;
mod blogs;
mod certificates;
pub mod cli;
mod cluster;
mod companions;
pub mod config;
mod console;
mod fingerprint;
mod listening;
mod log_writer;
mod metrics;
mod own_process;
#[cfg(test)]
mod page;
mod passed;
mod php_server;
mod pictures;
mod plan;
mod process;
pub mod recognition;
mod seeing;
pub mod server;
mod service;
mod shared_limits;
mod shelf;
mod signals;
mod spans;
mod stderr;
mod systemd;
mod tier;
mod try_next;
mod warming;
mod wordpress;
mod worker;
mod worker_questions;
mod writer;

pub use cli::run;
