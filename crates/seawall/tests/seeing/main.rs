//! What Seawall shows of itself, read by the programs that operators read it with: Prometheus, and others.
//!
//! `make test` runs what takes seconds; `make spec-seeing` (`SEAWALL_SEEING_LONG=1`) also what takes minutes, and an hour of scrapes. `bring-up`
//! installs Prometheus, jq and GoAccess.

mod collector;
mod dashboards;
mod hour;
mod monitoring;
mod place;
mod programs;
mod prometheus;

/// Tells whether tests run that take minutes.
fn long() -> bool {
    std::env::var_os("SEAWALL_SEEING_LONG").is_some()
}
