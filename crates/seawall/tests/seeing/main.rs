//! What Seawall shows of itself, read by the programs that operators read it with: an OpenTelemetry Collector, and others.
//!
//! `make spec-seeing` (`SEAWALL_SEEING_LONG=1`) runs what takes minutes.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod collector;

/// Whether tests run that take minutes.
fn long() -> bool {
    std::env::var_os("SEAWALL_SEEING_LONG").is_some()
}
