//! What waits to be sent by one way, and what came of what was sent.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use insight::alerts::Notice;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::sleep};

use crate::config::settings;

/// The most notices that wait or are under way. A further one is lost, and counted. At 1 KiB each, that is 64 KiB.
const WAITING_MAX: usize = 64;

/// The waits between one attempt and the next. After the last one, the notice has failed.
const RETRIES: [Duration; 5] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2), Duration::from_mins(5), Duration::from_mins(20)];

/// The longest wait that a receiver can ask for.
const ASKED_WAIT_MAX: Duration = Duration::from_mins(20);

/// A way by which notices are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Webhook,
    Command,
}

/// Both ways.
pub(super) const WAYS: [Way; 2] = [Way::Webhook, Way::Command];

impl Way {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Command => "command",
        }
    }

    /// Tells whether there is such a way in the settings.
    pub(super) const fn is_open(self, settings: &settings::Alerts) -> bool {
        match self {
            Self::Webhook => settings.webhook.is_some(),
            Self::Command => settings.command.is_some(),
        }
    }

    /// Says where it leads. The path of a webhook may be a secret, and is left out.
    pub(super) fn shown(self, settings: &settings::Alerts) -> Option<String> {
        match self {
            Self::Webhook => {
                let url = &settings.webhook.as_ref()?.url;
                let path = if url.path().len() > 1 { "/…" } else { "/" };
                Some(format!("{}://{}{path}", url.scheme_str()?, url.authority()?))
            }
            Self::Command => Some(settings.command.as_ref()?.program.display().to_string()),
        }
    }
}

/// Says why a notice was not sent.
#[derive(Debug)]
pub(super) struct Failure {
    /// The reason, without a full stop.
    pub(super) why: String,
    /// Whether it may work later, and how long the receiver wants to be left alone.
    pub(super) again: Option<Option<Duration>>,
}

impl Failure {
    /// Makes a failure that no further attempt would change.
    pub(super) const fn last(why: String) -> Self {
        Self { why, again: None }
    }

    /// Makes a failure that may pass.
    pub(super) const fn passing(why: String, wait: Option<Duration>) -> Self {
        Self { why, again: Some(wait) }
    }
}

/// An outbox.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<VecDeque<Notice>>,
    filled: Notify,
    sent: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Outbox {
    /// Puts a notice in, if there is room.
    pub(super) fn put(&self, notice: Notice, way: Way) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_MAX {
            self.lost.fetch_add(1, Relaxed);
            tracing::error!("an alert is not sent by the {}, as {WAITING_MAX} others wait: {}", way.name(), notice.id());
            return;
        }
        waiting.push_back(notice);
        self.filled.notify_one();
    }

    /// Waits until something was put in. Cancel-safe.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Returns what has waited longest. It stays in until it is [`done`](Self::done), so that the end of the process finds what is under way.
    pub(super) fn first(&self) -> Option<Notice> {
        self.waiting.lock().front().cloned()
    }

    /// Takes out what has waited longest.
    pub(super) fn done(&self) {
        self.waiting.lock().pop_front();
    }

    /// Tries to send until it succeeds or there is no hope, and counts what came of it.
    pub(super) async fn deliver(&self, way: Way, once: impl AsyncFn() -> Result<(), Failure>) {
        let mut waits = RETRIES.into_iter();
        loop {
            let Failure { why, again } = match once().await {
                Ok(()) => {
                    self.sent.fetch_add(1, Relaxed);
                    *self.last_error.lock() = None;
                    return;
                }
                Err(failure) => failure,
            };
            *self.last_error.lock() = Some(why.clone());
            let Some((asked, wait)) = again.zip(waits.next()) else {
                self.failed.fetch_add(1, Relaxed);
                tracing::error!("an alert could not be sent by the {}: {why}", way.name());
                return;
            };
            let wait = asked.unwrap_or_default().clamp(wait, ASKED_WAIT_MAX);
            tracing::warn!("an alert could not be sent by the {}, and is sent again in {wait:?}: {why}", way.name());
            sleep(wait).await;
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting.lock().len() as u64
    }

    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        [("sent", self.sent.load(Relaxed)), ("failed", self.failed.load(Relaxed)), ("lost", self.lost.load(Relaxed))]
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use insight::alerts::State;
    use semantics::Timestamp;
    use tokio::time::Instant;

    use super::*;

    fn notice() -> Notice {
        Notice::trial(State::Firing, Timestamp::from_secs(1))
    }

    #[test]
    fn an_outbox_takes_so_many_and_counts_what_it_loses() {
        let outbox = Outbox::default();
        for _ in 0..WAITING_MAX + 3 {
            outbox.put(notice(), Way::Webhook);
        }
        assert_eq!((outbox.waiting(), outbox.counts()), (64, [("sent", 0), ("failed", 0), ("lost", 3)]));
    }

    /// The clock of this test goes on by itself when everybody waits.
    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_six_times_in_half_an_hour_and_then_given_up() {
        let (outbox, times, began) = (Outbox::default(), RefCell::new(Vec::new()), Instant::now());
        let refuses = async || {
            times.borrow_mut().push(began.elapsed().as_secs());
            Err(Failure::passing("it answers 503".to_owned(), None))
        };
        outbox.deliver(Way::Webhook, refuses).await;
        assert_eq!(*times.borrow(), [0, 5, 35, 155, 455, 1_655]);
        assert_eq!((outbox.counts()[1], outbox.last_error().as_deref()), (("failed", 1), Some("it answers 503")));
    }

    #[tokio::test(start_paused = true)]
    async fn what_succeeds_later_counts_as_sent_and_a_receiver_may_ask_for_patience() {
        let (outbox, tries, began) = (Outbox::default(), Cell::new(0), Instant::now());
        let later = async || {
            tries.set(tries.get() + 1);
            let wait = Some(Duration::from_secs(if tries.get() == 1 { 60 } else { 1_000_000 }));
            if tries.get() < 3 { Err(Failure::passing("it answers 429".to_owned(), wait)) } else { Ok(()) }
        };
        outbox.deliver(Way::Webhook, later).await;
        assert_eq!((began.elapsed().as_secs(), outbox.counts()), (60 + 20 * 60, [("sent", 1), ("failed", 0), ("lost", 0)]));
        assert_eq!(outbox.last_error(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_pass_is_tried_once() {
        let (outbox, tries) = (Outbox::default(), Cell::new(0));
        let never = async || {
            tries.set(tries.get() + 1);
            Err(Failure::last("it answers 404".to_owned()))
        };
        outbox.deliver(Way::Command, never).await;
        assert_eq!((tries.get(), outbox.counts()[1]), (1, ("failed", 1)));
    }
}
