//! The records of requests: distributions and counts, for each worker its own.
//!
//! An engine tells its [`Recorder`] what happened. The recorder keeps two [`Tally`]s, one of the whole run and one of the second that is going on,
//! which it hands on when the second is over ([`Interval`]). Nothing is kept for a request or a connection, so a run's length costs no memory.

mod interval;
mod tally;

use std::{
    sync::mpsc::{SyncSender, TrySendError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

pub use self::{
    interval::Interval,
    tally::{Distribution, Tally},
};
use crate::answer::Outcome;

/// The reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The name leads nowhere.
    Resolve,
    /// Nobody listens: the connection was refused.
    Refused,
    /// The connection could not be made for another reason: no route, no port, no descriptor left.
    Connect,
    /// The TLS handshake failed: by the certificate, the version, an alert, because what came is not TLS, or because the server closed the connection.
    Tls,
    /// The server reset or closed the connection before the answer began, or reset it within the TLS handshake.
    Reset,
    /// The answer did not come, or not whole, within the time that the plan gives.
    Timeout,
    /// The answer had not come, or not whole, when the run ended and for a while after it.
    Unfinished,
    /// The answer ended before its end.
    Truncated,
    /// What came is not HTTP.
    Protocol,
    /// The status is not an expected one.
    Status,
    /// The content is not the expected one.
    Body,
    /// A field is not the expected one.
    Field,
    /// The answer carries what belongs to another client.
    Leak,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [Self; 13] = [
        Self::Resolve,
        Self::Refused,
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::Timeout,
        Self::Unfinished,
        Self::Truncated,
        Self::Protocol,
        Self::Status,
        Self::Body,
        Self::Field,
        Self::Leak,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Refused => "refused",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Unfinished => "unfinished",
            Self::Truncated => "truncated",
            Self::Protocol => "protocol",
            Self::Status => "status",
            Self::Body => "body",
            Self::Field => "field",
            Self::Leak => "leak",
        }
    }
}

/// A request that has ended. All moments are times from the beginning of the run.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The time at which the schedule wanted it sent. In closed schedules: the time at which its client wanted to send it, so that the time
    /// to connect is part of the latency.
    pub intended: Duration,
    /// The time at which its first byte was given to the system.
    pub sent: Duration,
    /// The time at which the first byte of the answer came; none: none came.
    pub first_byte: Option<Duration>,
    /// The time at which it ended: with the last byte, or the failure.
    pub ended: Duration,
    /// The status; 0: there is no answer.
    pub status: u16,
    /// Bytes that came: heads and contents as they crossed the connection, without TLS.
    pub bytes: u64,
    /// The outcome at the cache.
    pub outcome: Outcome,
    /// Whether the origin behind the cache was asked, if the answer says so.
    pub origin_reached: Option<bool>,
    /// The time that the page took that this request completed, from the intended moment of its first request.
    pub page: Option<Duration>,
    /// The reason why it failed, if it did. An answer may be whole, and an error all the same (`Status`, `Body`, `Field`, `Leak`).
    pub error: Option<ErrorClass>,
}

/// The recorder of one worker.
#[derive(Debug)]
pub struct Recorder {
    whole: Tally,
    second: Tally,
    /// The end of the second that is going on.
    until: Duration,
    warm_up: Duration,
    /// The time at which the run ends, if that is known. What ends later belongs to its last second.
    ends: Option<Duration>,
    /// Whether a request belongs to the warm-up that was meant to be sent in it, however late it ended.
    counts_by_beginning: bool,
    worker: u32,
    intervals: SyncSender<Interval>,
}

/// The reason why a connection could not be made, where that was not the server's doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// No port was free at the address that it would come from.
    Ports,
    /// No descriptor was free.
    Descriptors,
}

/// The length of an interval.
const SECOND: Duration = Duration::from_secs(1);

/// The shortest time that requests under way get to end when the run has ended.
const GRACE_MIN: Duration = Duration::from_millis(250);

/// The longest time that requests under way get to end when the run has ended.
const GRACE_MAX: Duration = Duration::from_secs(10);

impl Recorder {
    /// Makes a recorder of a worker, which hands what each second brought to `intervals`. Requests that end within `warm_up` are not counted.
    #[must_use]
    pub fn new(worker: u32, warm_up: Duration, intervals: SyncSender<Interval>) -> Self {
        Self {
            whole: Tally::new(),
            second: Tally::of_a_second(),
            until: SECOND,
            warm_up,
            ends: None,
            counts_by_beginning: false,
            worker,
            intervals,
        }
    }

    /// Says when the run ends. Answers that come later to requests that were sent before count to its last second.
    pub const fn will_end(&mut self, ends: Option<Duration>) {
        self.ends = ends;
    }

    /// Returns how long requests may still be under way when the run has ended: for longer than is normal for this server.
    #[must_use]
    pub fn grace(&self, timeout: Duration) -> Duration {
        let p99 = Duration::from_nanos(self.whole.latency_uncorrected.nanoseconds().value_at_quantile(0.99));
        (p99 * 2).clamp(GRACE_MIN, GRACE_MAX).min(timeout)
    }

    /// Sets whether a number of requests was asked for. Then requests that were meant to be sent within the warm-up are not counted, so that the number is
    /// exact; else what ends after the warm-up counts, as does not what is under way at the end.
    #[must_use]
    pub const fn counting(mut self, a_number: bool) -> Self {
        self.counts_by_beginning = a_number;
        self
    }

    /// Counts a request that has ended.
    pub fn ended(&mut self, sample: &Sample) {
        self.tick(sample.ended);
        self.second.ended(sample);
        let decides = if self.counts_by_beginning { sample.intended } else { sample.ended };
        if decides >= self.warm_up {
            self.whole.ended(sample);
        } else {
            self.whole.warm_up += 1;
            self.whole.warm_up_errors += u64::from(sample.error.is_some());
        }
    }

    /// Counts a connection that was made. `took` is the time until it could be used, `handshake` that of TLS in it.
    pub fn connected(&mut self, at: Duration, took: Duration, handshake: Option<Handshake>) {
        self.tick(at);
        self.second.connected(took, handshake);
        if at >= self.warm_up {
            self.whole.connected(took, handshake);
        }
    }

    /// Counts a send that was due at `intended` and left at `sent`: how late the generator itself was. Waiting for a free connection is not the
    /// generator's fault, and not counted here.
    pub fn sent(&mut self, intended: Duration, sent: Duration) {
        if sent >= self.warm_up {
            self.whole.lag(sent.saturating_sub(intended));
        }
    }

    /// Counts a request that was sent again, because the server had closed the connection when it came.
    pub const fn resent(&mut self) {
        self.whole.resent += 1;
    }

    /// Counts a connection that could not be made because something of this machine had run out. The request that needed it is counted by
    /// [`Self::ended`].
    pub const fn exhausted(&mut self, what: Exhausted) {
        match what {
            Exhausted::Ports => self.whole.ports_exhausted += 1,
            Exhausted::Descriptors => self.whole.descriptors_exhausted += 1,
        }
    }

    /// Counts requests that were due, and were never sent: no connection was free before the end.
    pub fn missed(&mut self, requests: u64) {
        self.whole.missed += requests;
    }

    /// Says how many clients there are.
    pub fn clients(&mut self, now: u32) {
        self.second.clients = now;
        self.whole.clients = self.whole.clients.max(now);
    }

    /// Hands the second on if it is over. Engines call it at least once a second.
    pub fn tick(&mut self, now: Duration) {
        let last = self.ends.map_or(now, |ends| ends.saturating_sub(Duration::from_nanos(1)));
        self.tick_until(now.min(last));
    }

    fn tick_until(&mut self, now: Duration) {
        while now >= self.until {
            let clients = self.second.clients;
            let next = Tally::of_a_second();
            let tally = std::mem::replace(&mut self.second, next);
            let second = self.until.as_secs() - 1;
            self.until += SECOND;
            match self.intervals.try_send(Interval { worker: self.worker, second, length: SECOND, tally, last: false }) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                // The reader is behind: the next interval has this one's counts, too.
                Err(TrySendError::Full(interval)) => self.second.add(&interval.tally),
            }
            self.second.clients = clients;
        }
    }

    /// Ends the recording at the moment at which the worker has stopped. The last second is handed on, however long it was.
    #[must_use]
    pub fn finish(mut self, now: Duration) -> Tally {
        self.tick_until(now);
        let second = self.until.as_secs() - 1;
        let length = (now + SECOND).saturating_sub(self.until);
        let _ = self.intervals.send(Interval { worker: self.worker, second, length, tally: self.second, last: true });
        self.whole.ended_at = now;
        self.whole
    }
}

/// A TLS handshake that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// The time that it took.
    pub took: Duration,
    /// Whether it resumed an earlier session.
    pub resumed: bool,
}
