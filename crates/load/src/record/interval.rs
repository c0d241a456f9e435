//! What one second brought.

use super::Tally;

/// What one second brought to one worker.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Which second, from 0.
    pub second: u64,
    /// Its requests.
    pub tally: Tally,
}
