//! The record of one second.

use std::time::Duration;

use super::Tally;

/// Holds what one second brought to one worker.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The number of the worker.
    pub worker: u32,
    /// The number of the second, from 0.
    pub second: u64,
    /// The length of the second: the last one of a run is shorter, and may have no length at all.
    pub length: Duration,
    /// The requests of that second.
    pub tally: Tally,
    /// Whether the worker has ended with it.
    pub last: bool,
}
