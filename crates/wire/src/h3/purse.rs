//! Limits what costs us work and its sender nothing: streams that are given up as soon as they are opened, frames that say nothing.
//!
//! As in HTTP/2 (RFC 9114 §10.5), none of it is forbidden but all of it is counted: a client has a purse, a request answered to its end fills
//! it, time does slowly, and who empties it is cut off. What goes on below streams (acknowledgements, pings, windows) is the transport's.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// The number of coins that a purse holds at most, and at first: a page with some hundred pictures that is left while it loads passes.
const PURSE: u32 = 2_000;
/// The number of coins that a second brings.
const PER_SECOND: u32 = 50;
/// The number of coins that a request brings that was answered to its end.
const PER_ANSWER: u32 = 10;

/// The price of a frame that nobody knows, or that has nothing in it.
pub const EMPTY_FRAME: u32 = 1;
/// The price of a request that was given up before it was answered, or that was none.
pub const ABANDONED: u32 = 5;
/// The price of a stream in one direction.
pub const STREAM: u32 = 5;

/// One connection's purse: its client pays from it for what costs us work and the client nothing.
#[derive(Debug)]
pub struct Purse(Mutex<(u32, Instant)>);

impl Purse {
    /// Makes a full purse.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self(Mutex::new((PURSE, now)))
    }

    /// Pays `price`. `false` means that the client cannot, and that its connection is to be closed.
    #[must_use]
    pub fn pay(&self, price: u32, now: Instant) -> bool {
        let mut purse = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (coins, ticked) = &mut *purse;
        let seconds = now.saturating_duration_since(*ticked).as_secs();
        if seconds > 0 {
            *ticked = now;
            let earned = u32::try_from(seconds).unwrap_or(u32::MAX).saturating_mul(PER_SECOND);
            *coins = coins.saturating_add(earned).min(PURSE);
        }
        let left = coins.checked_sub(price);
        *coins = left.unwrap_or(0);
        left.is_some()
    }

    /// Notes that a request was answered to its end.
    pub fn answered(&self) {
        let mut purse = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        purse.0 = (purse.0 + PER_ANSWER).min(PURSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_only_takes_is_cut_off_and_who_waits_or_reads_is_not() {
        let began = Instant::now();
        let purse = Purse::new(began);
        assert_eq!((0..10_000).take_while(|_| purse.pay(ABANDONED, began)).count(), 400);
        assert!(!purse.pay(1, began));
        let later = began + Duration::from_secs(2);
        assert_eq!((0..10_000).take_while(|_| purse.pay(1, later)).count(), 100);
        for _ in 0..10_000 {
            purse.answered();
            assert!(purse.pay(ABANDONED, later));
        }
    }
}
