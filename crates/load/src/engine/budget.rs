//! How many requests may still be made.

use std::sync::atomic::{AtomicU64, Ordering};

/// The most permissions that a worker takes at a time.
const BATCH_MAX: u64 = 16;

/// A worker takes such a part of what is left, so that all workers have something to do until the end.
const PART: u64 = 64;

/// The number of requests that may still be made, for all workers together.
#[derive(Debug)]
pub struct Budget {
    left: Option<AtomicU64>,
}

impl Budget {
    /// `requests` in all; none: without end.
    #[must_use]
    pub fn new(requests: Option<u64>) -> Self {
        Self { left: requests.map(AtomicU64::new) }
    }

    /// Takes permissions into `mine`, a worker's own store of them, and one out of it. Returns whether a request may be made.
    pub fn take(&self, mine: &mut u64) -> bool {
        if *mine == 0 {
            let Some(left) = &self.left else { return true };
            let batch = |left: u64| (left / PART).clamp(1, BATCH_MAX);
            let take = |left: u64| (left > 0).then(|| left - batch(left));
            let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) else { return false };
            *mine = batch(before);
        }
        *mine -= 1;
        true
    }
}
