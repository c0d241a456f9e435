//! The notices that wait to be sent by one way, and what came of those that were sent.
//!
//! One notice is sent at a time. A notice that has failed waits for its next attempt and lets others go first, those that were never tried before all. Only
//! what is about the same alert keeps its order: nobody is told that something is over before they were told that it began.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use insight::alerts::Notice;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};

use crate::config::settings;

/// The most notices that wait or are under way. A further one is lost, and counted. At 1 KiB each, that is 64 KiB.
const WAITING_MAX: usize = 64;

/// The waits between one attempt and the next. After the last one, the notice has failed.
const RETRIES: [Duration; 5] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2), Duration::from_mins(5), Duration::from_mins(20)];

/// The longest wait that a receiver can ask for, for the notice that it did not take.
const ASKED_WAIT_MAX: Duration = Duration::from_mins(20);

/// The longest time for which a receiver that asks for a wait gets no other notice either.
const ASKED_REST_MAX: Duration = Duration::from_mins(1);

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
    /// The notices that wait, in the order in which they came.
    waiting: Mutex<Vec<WaitingNotice>>,
    /// The receiver has asked to be left alone until then.
    rests_until: Mutex<Option<Instant>>,
    filled: Notify,
    sent: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// A notice that waits, or is under way.
#[derive(Debug)]
struct WaitingNotice {
    notice: Notice,
    attempts: usize,
    /// The time of the next attempt.
    due: Instant,
}

impl WaitingNotice {
    /// Returns whether two notices are about the same alert, however often that has begun and ended.
    fn is_about_the_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.notice.alert, &other.notice.alert);
        (&one.name, &one.about) == (&two.name, &two.about)
    }
}

/// Says what an outbox has to do next.
enum Next {
    Send(Notice),
    Wait(Instant),
    Nothing,
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
        waiting.push(WaitingNotice { notice, attempts: 0, due: Instant::now() });
        self.filled.notify_one();
    }

    /// Says what is to be done next. At the end of the process, nothing waits for its time.
    fn next(&self, now: Instant, is_end: bool) -> Next {
        let waiting = self.waiting.lock();
        let is_first = |at: usize| !waiting[..at].iter().any(|earlier| earlier.is_about_the_same(&waiting[at]));
        let firsts = || waiting.iter().enumerate().filter(|(at, _)| is_first(*at)).map(|(_, waiting)| waiting);
        let rests_until = self.rests_until.lock().unwrap_or(now);
        let time = |waiting: &WaitingNotice| waiting.due.max(rests_until);
        let due = firsts().filter(|waiting| is_end || time(waiting) <= now).min_by_key(|waiting| waiting.attempts);
        match (due, firsts().map(time).min()) {
            (Some(due), _) => Next::Send(due.notice.clone()),
            (None, Some(at)) => Next::Wait(at),
            (None, None) => Next::Nothing,
        }
    }

    /// Sends what comes in, until the process ends. Then each notice that is left has one more attempt, without a wait.
    ///
    /// A notice stays in until it has arrived or there is no hope, so that the end of the process finds what is under way.
    pub(super) async fn deliver(&self, way: Way, send: impl AsyncFn(&Notice) -> Result<(), Failure>, ends: &mut watch::Receiver<bool>) {
        loop {
            let is_end = *ends.borrow();
            let wait = match self.next(Instant::now(), is_end) {
                Next::Send(notice) => {
                    let outcome = send(&notice).await;
                    self.tried(&notice, outcome, way, *ends.borrow());
                    continue;
                }
                Next::Nothing if is_end => return,
                Next::Nothing => None,
                Next::Wait(until) => Some(until),
            };
            tokio::select! {
                () = self.filled.notified() => {}
                () = sleep_until(wait.unwrap_or_else(Instant::now)), if wait.is_some() => {}
                _ = ends.changed() => {}
            }
        }
    }

    /// Counts what came of an attempt, and takes the notice out or has it wait.
    fn tried(&self, notice: &Notice, outcome: Result<(), Failure>, way: Way, is_last: bool) {
        let mut waiting = self.waiting.lock();
        let Some(at) = waiting.iter().position(|waiting| waiting.notice == *notice) else { return };
        let Failure { why, again } = match outcome {
            Ok(()) => {
                waiting.remove(at);
                self.sent.fetch_add(1, Relaxed);
                *self.last_error.lock() = None;
                return;
            }
            Err(failure) => failure,
        };
        *self.last_error.lock() = Some(why.clone());
        let Some((asked, wait)) = again.zip(RETRIES.get(waiting[at].attempts)).filter(|_| !is_last) else {
            waiting.remove(at);
            self.failed.fetch_add(1, Relaxed);
            tracing::error!("an alert could not be sent by the {}: {why}", way.name());
            return;
        };
        let now = Instant::now();
        if let Some(asked) = asked {
            *self.rests_until.lock() = Some(now + asked.min(ASKED_REST_MAX));
        }
        let wait = asked.unwrap_or_default().clamp(*wait, ASKED_WAIT_MAX);
        tracing::warn!("an alert could not be sent by the {}, and is sent again in {wait:?}: {why}", way.name());
        waiting[at].attempts += 1;
        waiting[at].due = now + wait;
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

    use admin::AlertLine;
    use insight::alerts::State;
    use semantics::Timestamp;
    use tokio::time::sleep;

    use super::*;

    fn notice() -> Notice {
        Notice::trial(State::Firing, Timestamp::from_secs(1))
    }

    /// Returns a notice about something that has begun, or is over.
    fn about(about: &str, state: State) -> Notice {
        let notice = Notice::trial(state, Timestamp::from_secs(1));
        Notice { alert: AlertLine { about: about.to_owned(), ..notice.alert }, ..notice }
    }

    /// Sends what is in an outbox until it is empty. The clock of these tests goes on by itself when everybody waits.
    async fn empty(outbox: &Outbox, way: Way, send: impl AsyncFn(&Notice) -> Result<(), Failure>) {
        let (end, mut ends) = watch::channel(false);
        let stop = async {
            while outbox.waiting() > 0 {
                sleep(Duration::from_millis(100)).await;
            }
            end.send(true).expect("somebody listens");
        };
        tokio::join!(outbox.deliver(way, send, &mut ends), stop);
    }

    #[tokio::test]
    async fn an_outbox_takes_so_many_and_counts_what_it_loses() {
        let outbox = Outbox::default();
        for _ in 0..WAITING_MAX + 3 {
            outbox.put(notice(), Way::Webhook);
        }
        assert_eq!((outbox.waiting(), outbox.counts()), (64, [("sent", 0), ("failed", 0), ("lost", 3)]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_six_times_in_half_an_hour_and_then_given_up() {
        let (outbox, times, began) = (Outbox::default(), RefCell::new(Vec::new()), Instant::now());
        outbox.put(notice(), Way::Webhook);
        let refuses = async |_: &Notice| {
            times.borrow_mut().push(began.elapsed().as_secs());
            Err(Failure::passing("it answers 503".to_owned(), None))
        };
        empty(&outbox, Way::Webhook, refuses).await;
        assert_eq!(*times.borrow(), [0, 5, 35, 155, 455, 1_655]);
        assert_eq!((outbox.counts()[1], outbox.last_error().as_deref()), (("failed", 1), Some("it answers 503")));
    }

    #[tokio::test(start_paused = true)]
    async fn what_succeeds_later_counts_as_sent_and_a_receiver_may_ask_for_patience() {
        let (outbox, tries, began) = (Outbox::default(), Cell::new(0), Instant::now());
        outbox.put(notice(), Way::Webhook);
        let later = async |_: &Notice| {
            tries.set(tries.get() + 1);
            let wait = Some(Duration::from_secs(if tries.get() == 1 { 60 } else { 1_000_000 }));
            if tries.get() < 3 { Err(Failure::passing("it answers 429".to_owned(), wait)) } else { Ok(()) }
        };
        empty(&outbox, Way::Webhook, later).await;
        assert_eq!((began.elapsed().as_secs(), outbox.counts()), (60 + 20 * 60, [("sent", 1), ("failed", 0), ("lost", 0)]));
        assert_eq!(outbox.last_error(), None);
    }

    /// A receiver that chokes on one message takes the others, and of each alert the end after the beginning.
    #[tokio::test(start_paused = true)]
    async fn what_is_tried_again_holds_up_nothing_but_what_is_about_the_same_alert() {
        let (outbox, tries, began) = (Outbox::default(), RefCell::new(Vec::new()), Instant::now());
        for notice in [about("a", State::Firing), about("b", State::Firing), about("a", State::Resolved)] {
            outbox.put(notice, Way::Webhook);
        }
        let chokes = async |notice: &Notice| {
            tries.borrow_mut().push((began.elapsed().as_secs(), notice.alert.about.clone(), notice.state.name()));
            let is_too_much = notice.alert.about == "a" && notice.state == State::Firing && began.elapsed() < Duration::from_secs(30);
            if is_too_much { Err(Failure::passing("it answers 503".to_owned(), None)) } else { Ok(()) }
        };
        let later = async {
            sleep(Duration::from_secs(10)).await;
            outbox.put(about("b", State::Resolved), Way::Webhook);
        };
        tokio::join!(empty(&outbox, Way::Webhook, chokes), later);
        let tries: Vec<_> = tries.borrow().iter().map(|(time, about, state)| format!("{time} {about} {state}")).collect();
        assert_eq!(tries, ["0 a firing", "0 b firing", "5 a firing", "10 b resolved", "35 a firing", "35 a resolved"]);
        assert_eq!(outbox.counts(), [("sent", 4), ("failed", 0), ("lost", 0)]);
    }

    /// RFC 9110 §10.2.3: what a receiver asks for holds for all that it would get, but one answer does not silence it for long.
    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_asks_for_a_wait_gets_nothing_else_for_a_minute_at_most() {
        for (asked, expected) in [(7, [0, 7, 7]), (600, [0, 60, 600])] {
            let (outbox, times, began) = (Outbox::default(), RefCell::new(Vec::new()), Instant::now());
            outbox.put(about("a", State::Firing), Way::Webhook);
            outbox.put(about("b", State::Firing), Way::Webhook);
            let asks = async |_: &Notice| {
                times.borrow_mut().push(began.elapsed().as_secs());
                let is_first = times.borrow().len() == 1;
                if is_first { Err(Failure::passing("it answers 429".to_owned(), Some(Duration::from_secs(asked)))) } else { Ok(()) }
            };
            empty(&outbox, Way::Webhook, asks).await;
            assert_eq!(*times.borrow(), expected, "{asked}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_pass_is_tried_once() {
        let (outbox, tries) = (Outbox::default(), Cell::new(0));
        outbox.put(notice(), Way::Command);
        let never = async |_: &Notice| {
            tries.set(tries.get() + 1);
            Err(Failure::last("it answers 404".to_owned()))
        };
        empty(&outbox, Way::Command, never).await;
        assert_eq!((tries.get(), outbox.counts()[1]), (1, ("failed", 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_process_ends_a_wait_with_one_more_attempt() {
        let (outbox, tries, began) = (Outbox::default(), Cell::new(0), Instant::now());
        outbox.put(notice(), Way::Webhook);
        let (end, mut ends) = watch::channel(false);
        let refuses = async |_: &Notice| {
            tries.set(tries.get() + 1);
            Err(Failure::passing("it answers 503".to_owned(), None))
        };
        let stop = async {
            sleep(Duration::from_secs(10)).await;
            end.send(true).expect("somebody listens");
        };
        tokio::join!(outbox.deliver(Way::Webhook, refuses, &mut ends), stop);
        assert_eq!((tries.get(), began.elapsed().as_secs(), outbox.counts()[1]), (3, 10, ("failed", 1)));
    }
}
