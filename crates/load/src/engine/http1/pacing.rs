//! Wakes a loop at a moment, to the microsecond.
//!
//! A timeout of `epoll_wait` is rounded to milliseconds, and may be late by the thread's timer slack; a `timerfd` is neither.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};

/// A timer that is watched as a socket is.
#[derive(Debug)]
pub(super) struct Timer {
    fd: OwnedFd,
    set: Option<Duration>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?, set: None })
    }

    /// Takes note that the timer has woken the loop: it must be set again.
    pub(super) const fn has_woken(&mut self) {
        self.set = None;
    }

    /// Wakes at `at`. It costs nothing if that is what it would do anyway.
    pub(super) fn wake_at(&mut self, at: Duration, now: Duration) -> io::Result<()> {
        if self.set == Some(at) {
            return Ok(());
        }
        self.set = Some(at);
        // Zero would disarm it.
        let wait = at.saturating_sub(now).max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(wait.subsec_nanos()) };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
