//! The process as whoever runs it meets it: its streams, its signals, how it starts, what it says, and the service manager.
//!
//! The real binary. It says by itself when it serves, reloads and stops, as it does to systemd (sd_notify(3)), so nothing here guesses when
//! something is over.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod banner;
mod blog;
mod cluster;
mod recognition;
mod running;
mod service;
mod signals;
mod start;
mod stderr;
mod terminal;
mod wordpress;
