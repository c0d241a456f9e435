//! Passive health: whether an address can be connected to. Nothing is sent to find out.
//!
//! Connecting is all that counts. What happens after that is brought on by a request: whoever finds one over which a server hangs up, thinks
//! for too long or says nonsense could otherwise take the whole site away from everybody. So a server that takes connections and answers none
//! is asked all the same, and each request to it fails by itself; to tell it from one that is slow over some requests would need evidence that
//! no stranger can make, and a site that is mostly answered from the cache has too few requests for that.
//!
//! `failures` in a row mark an address down. The others are then asked before it; every `retry_after`, later at longer intervals, it has
//! its turn again. When nothing else is left it is asked whatever is known: the only address is never given up. Only connecting is shared then:
//! requests that come while one tries to connect wait for how that ends, and one that is tried for longer than [`TRIAL_SHARED`] has
//! another one begin beside it, so that whoever comes when the address is back sees it.
//!
//! All workers share one opinion. It is written when connecting fails, or succeeds again, and read where a connection is opened.

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use futures_util::future::{Either, select};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::Address;
use crate::{Fault, OriginError};

/// The longest time for which other addresses are asked first.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// The age that an attempt to connect may have for another request to wait for it. So at most `connect_timeout` divided by this are under
/// way at once.
const TRIAL_SHARED: Duration = Duration::from_secs(1);

/// The rules by which an address counts as down.
#[derive(Debug, Clone, Copy)]
pub struct HealthOptions {
    /// Connections in a row that did not come about.
    pub failures: u32,
    /// The time for which other addresses are asked first, the first time.
    pub retry_after: Duration,
    /// The advice about an address that is down, for the log; empty if nothing more is known.
    pub remedy: &'static str,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self { failures: 3, retry_after: Duration::from_secs(2), remedy: "" }
    }
}

/// The health of one address, as all workers know it.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Whether anything may be wrong. Where nothing is, which is nearly always, this is all that is read.
    suspect: AtomicBool,
    state: Mutex<State>,
    /// The number of times that it has come back: tells everybody who waits, for whichever attempt.
    back: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections that did not come about since the last one that did.
    failures: u32,
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    /// The time until which other addresses are asked first.
    until: Instant,
    backoff: Duration,
    /// The last attempt to connect, and when it began.
    trial: Option<(Instant, watch::Receiver<Option<Refused>>)>,
}

/// The reason why an attempt to connect failed.
type Refused = (Fault, String);

/// The way in which a connection may be opened.
#[derive(Debug)]
pub(super) enum Way {
    /// The connection may be opened at once, because the address is up.
    Open,
    /// The address is down: this request finds out whether it still is.
    Try(Trial),
    /// Another request is finding out.
    Wait(TrialWait),
}

/// An attempt to connect that others may wait for. Dropping it lets one of them try.
#[derive(Debug)]
pub(super) struct Trial(watch::Sender<Option<Refused>>);

/// A wait for another request's attempt to connect.
#[derive(Debug)]
pub(super) struct TrialWait {
    trial: watch::Receiver<Option<Refused>>,
    back: watch::Receiver<u64>,
}

impl TrialWait {
    /// Waits for the end of that attempt. `Ok`: look again, the address may be up now, or that request's client has left.
    pub(super) async fn end(mut self) -> Result<(), OriginError> {
        let (refused, back) = (pin!(self.trial.wait_for(Option::is_some)), pin!(self.back.changed()));
        match select(refused, back).await {
            Either::Left((Ok(refused), _)) => match refused.as_ref() {
                Some((fault, detail)) => Err(OriginError::new(*fault, detail.clone())),
                None => Ok(()),
            },
            Either::Left((Err(_), _)) | Either::Right(_) => Ok(()),
        }
    }
}

impl Health {
    pub(super) fn is_up(&self) -> bool {
        !self.suspect.load(Relaxed) || self.state.lock().down.is_none()
    }

    /// Returns whether it has its turn although others are up: it is up itself, or it is time to see whether it is.
    pub(super) fn has_its_turn(&self, now: Instant) -> bool {
        !self.suspect.load(Relaxed) || self.state.lock().down.as_ref().is_none_or(|down| down.until <= now)
    }

    pub(super) fn way(&self, now: Instant) -> Way {
        if !self.suspect.load(Relaxed) {
            return Way::Open;
        }
        let mut state = self.state.lock();
        let Some(down) = &mut state.down else { return Way::Open };
        if let Some((began, trial)) = &down.trial
            && now < *began + TRIAL_SHARED
            && trial.borrow().is_none()
            && trial.has_changed().is_ok()
        {
            return Way::Wait(TrialWait { trial: trial.clone(), back: self.back.subscribe() });
        }
        let (tell, told) = watch::channel(None);
        down.trial = Some((now, told));
        // Whoever has another address takes that one meanwhile.
        down.until = down.until.max(now + down.backoff);
        Way::Try(Trial(tell))
    }

    /// Notes that a connection came about.
    pub(super) fn connected(&self, address: &Address, trial: Option<Trial>) {
        if self.suspect.load(Relaxed) {
            let mut state = self.state.lock();
            let was_down = std::mem::take(&mut *state).down.is_some();
            self.suspect.store(false, Relaxed);
            drop(state);
            if was_down {
                tracing::info!(%address, "origin is back");
                self.back.send_modify(|times| *times += 1);
            }
        }
        drop(trial);
    }

    /// Notes that no connection came about.
    pub(super) fn failed(&self, address: &Address, trial: Option<Trial>, error: &OriginError, now: Instant, options: HealthOptions) {
        // It is we who have no socket left: nothing was learnt of the address.
        if error.fault == Fault::Overloaded {
            return;
        }
        let mut state = self.state.lock();
        self.suspect.store(true, Relaxed);
        state.failures = state.failures.saturating_add(1);
        let goes_down = state.down.is_none() && state.failures >= options.failures;
        if goes_down {
            state.down = Some(Down { until: now + options.retry_after, backoff: options.retry_after, trial: None });
        } else if let Some(down) = &mut state.down
            && trial.is_some()
        {
            down.backoff = (down.backoff * 2).min(BACKOFF_MAX);
            down.until = now + down.backoff;
        }
        drop(state);
        if goes_down {
            tracing::warn!(%address, %error, "origin is down{}", options.remedy);
        }
        if let Some(Trial(tell)) = trial {
            tell.send_replace(Some((error.fault, error.detail.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const OPTIONS: HealthOptions = HealthOptions { failures: 3, retry_after: Duration::from_secs(2), remedy: "" };

    struct Seen {
        health: Health,
        address: Address,
        start: Instant,
    }

    impl Seen {
        fn new() -> Self {
            Self { health: Health::default(), address: "http://127.0.0.1:1".parse().expect("an address"), start: Instant::now() }
        }

        fn at(&self, secs: u64) -> Instant {
            self.start + Duration::from_secs(secs)
        }

        fn fail(&self, secs: u64, trial: Option<Trial>) {
            let error = OriginError::new(Fault::ConnectionRefused, "connect");
            self.health.failed(&self.address, trial, &error, self.at(secs), OPTIONS);
        }

        fn try_at(&self, secs: u64) -> Option<Trial> {
            match self.health.way(self.at(secs)) {
                Way::Try(trial) => Some(trial),
                Way::Open | Way::Wait(_) => None,
            }
        }
    }

    #[tokio::test]
    async fn failures_in_a_row_mark_an_address_down_and_its_turn_comes_again() {
        let seen = Seen::new();
        let health = &seen.health;
        seen.fail(0, None);
        seen.fail(0, None);
        health.connected(&seen.address, None);
        seen.fail(0, None);
        seen.fail(0, None);
        assert!(health.is_up(), "not in a row");
        seen.fail(0, None);
        assert!(!health.is_up() && !health.has_its_turn(seen.at(1)));
        seen.fail(1, None);
        assert!(health.has_its_turn(seen.at(2)), "a late failure does not make it longer");
        // Twice as long each time, up to the longest.
        let mut now = 2;
        for pause in [4, 8, 10, 10] {
            let trial = seen.try_at(now);
            assert!(trial.is_some() && !health.has_its_turn(seen.at(now)), "while it is tried, others are asked");
            seen.fail(now, trial);
            assert!(!health.has_its_turn(seen.at(now + pause - 1)));
            now += pause;
            assert!(health.has_its_turn(seen.at(now)));
        }
        health.connected(&seen.address, seen.try_at(now));
        assert!(health.is_up() && matches!(health.way(seen.at(now)), Way::Open));
    }

    /// It may be the only one.
    #[tokio::test]
    async fn an_address_that_is_down_is_asked_at_any_time_by_one_for_all() {
        let seen = Seen::new();
        (0..3).for_each(|_| seen.fail(0, None));
        let trial = seen.try_at(0).expect("at once");
        let Way::Wait(waiting) = seen.health.way(seen.at(0)) else { panic!("one at a time") };
        let mut end = Box::pin(waiting.end());
        assert!(end.as_mut().now_or_never().is_none(), "it is not known yet");
        seen.fail(0, Some(trial));
        assert_eq!(end.await.expect_err("refused").fault, Fault::ConnectionRefused);

        let given_up = seen.try_at(0).expect("the next one tries at once");
        let Way::Wait(waiting) = seen.health.way(seen.at(0)) else { panic!("one at a time") };
        drop(given_up);
        waiting.end().await.expect("its client has left: look again");
        let old = seen.try_at(0).expect("the next one tries");
        let Way::Wait(first) = seen.health.way(seen.at(0)) else { panic!("one at a time") };
        let young = seen.try_at(1).expect("the first one takes long");
        let Way::Wait(second) = seen.health.way(seen.at(1)) else { panic!("the young one is waited for") };
        seen.health.connected(&seen.address, Some(young));
        first.end().await.expect("connected, be it by another attempt");
        second.end().await.expect("connected");
        assert!(matches!(seen.health.way(seen.at(1)), Way::Open));
        drop(old);
    }

    #[tokio::test]
    async fn sockets_that_we_have_not_say_nothing_of_an_address() {
        let seen = Seen::new();
        let error = OriginError::new(Fault::Overloaded, "no socket");
        (0..9).for_each(|_| seen.health.failed(&seen.address, None, &error, seen.start, OPTIONS));
        assert!(seen.health.is_up());
    }
}
