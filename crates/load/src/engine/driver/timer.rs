//! Wakes a task at a moment, to the microsecond.
//!
//! The runtime's own timers are rounded to a millisecond, so that requests would leave up to a millisecond late. A `timerfd` is not.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use tokio::io::unix::AsyncFd;

/// A timer of the system that a runtime watches.
#[derive(Debug)]
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
    set: Option<Duration>,
}

impl Timer {
    #[expect(
        deprecated,
        reason = "what is deprecated is unsound for descriptors that others close; this one is owned. What replaces it is unsafe"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { fd: AsyncFd::new(fd)?, set: None })
    }

    /// Waits until `at`. It may wake too early, but never too late. Cancel-safe.
    pub(super) async fn wait(&mut self, at: Duration, now: Duration) {
        if self.set != Some(at) {
            // Zero would disarm it.
            let wait = at.saturating_sub(now).max(Duration::from_nanos(1));
            let value = Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(wait.subsec_nanos()) };
            let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            if timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &spec).is_ok() {
                self.set = Some(at);
            }
        }
        if let Ok(mut ready) = self.fd.readable().await {
            // Setting the timer anew takes the expiration back, so it needs not be read.
            ready.clear_ready();
        }
        self.set = None;
    }
}
