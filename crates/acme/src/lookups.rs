//! Look-ups of what other machines have posted, for authorities that ask this one.
//!
//! Whoever asks waits for a look-up that began after the question did. One runs at a time, and each finds everything that is posted: so a thousand strangers
//! that ask for a thousand tokens cost what one costs, and delay nobody for longer than two of them last.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, watch};

/// The longest time that a question waits. An authority waits for ten seconds or so.
const WAIT: Duration = Duration::from_secs(3);

/// A wait for a look-up. It ends by itself.
pub type Lookup = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The look-ups, counted.
#[derive(Debug, Default)]
pub(crate) struct Lookups(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Whether somebody looks up at all.
    is_open: AtomicBool,
    begun: AtomicU64,
    done: watch::Sender<u64>,
    wake: Notify,
}

/// Somebody who looks up. When it is dropped, nobody does.
#[derive(Debug)]
pub(crate) struct Looking(Arc<State>);

impl Lookups {
    /// Asks for a look-up that begins after this call. Returns `None` if nobody looks up.
    pub(crate) fn look_up(&self) -> Option<Lookup> {
        if !self.0.is_open.load(Ordering::Acquire) {
            return None;
        }
        // One that has begun may have read before the answer was posted.
        let awaited = self.0.begun.load(Ordering::Acquire) + 1;
        let mut done = self.0.done.subscribe();
        self.0.wake.notify_one();
        Some(Box::pin(async move {
            let _ = tokio::time::timeout(WAIT, done.wait_for(|done| *done >= awaited)).await;
        }))
    }

    /// Notes that somebody will look up soon: who asks until then waits.
    pub(crate) fn announce(&self) {
        self.0.is_open.store(true, Ordering::Release);
    }

    /// Opens the look-ups.
    pub(crate) fn open(&self) -> Looking {
        // Whoever looked up before has told all who waited.
        self.0.done.send_replace(self.0.begun.load(Ordering::Acquire));
        self.0.is_open.store(true, Ordering::Release);
        Looking(Arc::clone(&self.0))
    }
}

impl Looking {
    /// Waits until somebody asks. Everybody who has asked by then waits for the look-up with this number, or an earlier one.
    pub(crate) async fn asked(&self) -> u64 {
        self.0.wake.notified().await;
        self.0.begun.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Notes that a look-up is done.
    pub(crate) fn done(&self, number: u64) {
        self.0.done.send_replace(number);
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.is_open.store(false, Ordering::Release);
        // Nobody waits in vain.
        self.0.done.send_replace(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_asks_during_a_look_up_waits_for_the_next_one_and_all_wait_for_the_same() {
        let lookups = Lookups::default();
        assert!(lookups.look_up().is_none(), "nobody looks up");
        let looking = lookups.open();
        let mut early: Vec<Lookup> = (0..1000).map(|_| lookups.look_up().expect("open")).collect();
        let first = looking.asked().await;
        let mut late = lookups.look_up().expect("open");
        assert!(early.iter_mut().all(|lookup| lookup.now_or_never().is_none()));
        looking.done(first);
        for lookup in &mut early {
            lookup.await;
        }
        assert!((&mut late).now_or_never().is_none(), "what it asks about may have been posted meanwhile");
        let second = looking.asked().await;
        looking.done(second);
        late.await;
        assert!(looking.asked().now_or_never().is_none(), "nobody asks any more");
        let last = lookups.look_up().expect("open");
        drop(looking);
        last.await;
        assert!(lookups.look_up().is_none());
    }
}
