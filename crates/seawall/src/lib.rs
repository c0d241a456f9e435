//! The binary's own parts: command line, configuration, wiring of the rooms, workers, signals, reload.
//!
//! Absent: logic of serving; it only calls the other rooms.

mod access_log;
mod banner;
pub mod cli;
mod commands;
pub mod config;
mod console;
mod log_writer;
mod plan;
pub mod purge;
pub mod server;
mod service;
mod signals;

pub use commands::run;
