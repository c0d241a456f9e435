//! An alarm clock that is exact to some microseconds; tokio's own timers round to a millisecond.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::BinaryHeap,
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use tokio::{io::unix::AsyncFd, sync::oneshot};

/// An alarm clock of one thread.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<rustix::fd::OwnedFd>,
    waiting: RefCell<BinaryHeap<Reverse<Waiting>>>,
}

#[derive(Debug)]
struct Waiting {
    until: Instant,
    ring: Option<oneshot::Sender<()>>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.until == other.until
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

impl Alarm {
    /// Makes the clock, and starts its task on this thread.
    #[expect(deprecated, reason = "its heir is unsafe to call; a timer that this owns stays the timer that it is")]
    pub(crate) fn start(tasks: &mut tokio::task::JoinSet<()>) -> Rc<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC).expect("timers are there");
        let alarm = Rc::new(Self { timer: AsyncFd::new(timer).expect("the runtime has its I/O on"), waiting: RefCell::default() });
        let ringing = Rc::clone(&alarm);
        tasks.spawn_local(async move { ringing.ring().await });
        alarm
    }

    /// Waits until `until`.
    pub(crate) async fn until(&self, until: Instant) {
        let (ring, rung) = oneshot::channel();
        self.waiting.borrow_mut().push(Reverse(Waiting { until, ring: Some(ring) }));
        self.set();
        let _ = rung.await;
    }

    /// Sets the timer to the earliest moment that somebody waits for.
    fn set(&self) {
        if let Some(Reverse(first)) = self.waiting.borrow().peek() {
            // Zero would switch the timer off.
            let left = first.until.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
            let value = Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(left.subsec_nanos()) };
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: zero, it_value: value })
                .expect("the time is valid");
        }
    }

    async fn ring(&self) {
        loop {
            let Ok(mut ready) = self.timer.readable().await else { return };
            let _ = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?));
            let now = Instant::now();
            {
                let mut waiting = self.waiting.borrow_mut();
                while let Some(mut first) = waiting.peek_mut()
                    && first.0.until <= now
                {
                    let ring = first.0.ring.take();
                    std::collections::binary_heap::PeekMut::pop(first);
                    if let Some(ring) = ring {
                        let _ = ring.send(());
                    }
                }
            }
            self.set();
        }
    }
}
