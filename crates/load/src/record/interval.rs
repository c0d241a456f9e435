//! What one second brought.

use std::time::Duration;

use super::Tally;

/// What one second brought to one worker.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Which second, from 0.
    pub second: u64,
    /// How much of it was recorded: the last second of a run is rarely whole.
    pub length: Duration,
    /// Its requests.
    pub tally: Tally,
}
