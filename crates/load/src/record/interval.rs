//! What one second brought.

use std::time::Duration;

use super::Tally;

/// What one second brought to one worker.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Which worker.
    pub worker: u32,
    /// Which second, from 0.
    pub second: u64,
    /// How long it was: the last one of a run is shorter, and may have no length at all.
    pub length: Duration,
    /// Its requests.
    pub tally: Tally,
    /// Whether the worker has ended with it.
    pub last: bool,
}
