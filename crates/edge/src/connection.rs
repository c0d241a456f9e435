//! What every connection has: a deadline, a place in the worker's table, and a share of the limits.
//!
//! One timer sweeps all connections of a worker instead of one timer each, and its ticks are the clock of all deadlines: a request then
//! costs two plain stores, not two visits to the timer wheel and a look at the time. A deadline is kept to within two sweeps, never early.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, futures::Notified},
    task::AbortHandle,
};

/// Says what a connection is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// The next request.
    Idle,
    /// The rest of a head.
    Head,
    /// The answer of the service: no deadline of ours, the service has its own.
    Service,
    /// The client, to take what is being written.
    Write,
    /// The next request, of a client that is told when there will be none: it is not cut off while the worker drains.
    Quiet,
}

impl Phase {
    const fn from_u8(phase: u8) -> Self {
        match phase {
            0 => Self::Idle,
            1 => Self::Head,
            2 => Self::Service,
            3 => Self::Write,
            _ => Self::Quiet,
        }
    }
}

/// A connection's entry in the table. Only its own thread touches it; it is atomic because an upgraded connection has to be `Send`.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The table's time: milliseconds at the last sweep.
    now: Arc<AtomicU64>,
    phase: AtomicU8,
    /// The deadline on the same scale; `u64::MAX` is none.
    deadline: AtomicU64,
    task: OnceLock<AbortHandle>,
}

impl Watch {
    pub(crate) fn phase(&self) -> Phase {
        Phase::from_u8(self.phase.load(Relaxed))
    }

    /// Enters a phase that may last `limit` from now.
    pub(crate) fn until(&self, phase: Phase, limit: Allowance) {
        self.phase.store(phase as u8, Relaxed);
        self.deadline.store(self.now.load(Relaxed).saturating_add(limit.0), Relaxed);
    }

    /// Enters the phase in which others keep the time.
    pub(crate) fn in_service(&self) {
        self.phase.store(Phase::Service as u8, Relaxed);
        self.deadline.store(u64::MAX, Relaxed);
    }

    /// Says which task is to be aborted when time is up.
    pub(crate) fn belongs_to(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }
}

/// The time that a phase may last, in milliseconds: a limit, and one sweep more, because the table's time may be that old.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance(u64);

impl Allowance {
    pub(crate) fn new(limit: Duration, sweep: Duration) -> Self {
        Self(u64::try_from((limit + sweep).as_millis()).unwrap_or(u64::MAX / 2))
    }
}

/// All connections of one worker.
#[derive(Debug)]
pub(crate) struct Table {
    began: Instant,
    now: Arc<AtomicU64>,
    watches: RefCell<Vec<Option<Arc<Watch>>>>,
    free: RefCell<Vec<usize>>,
    draining: Cell<bool>,
    drained: Notify,
}

/// A place in the table; leaving it happens on drop.
#[derive(Debug)]
pub(crate) struct Seat {
    table: Rc<Table>,
    watch: Arc<Watch>,
    at: usize,
}

impl Table {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            began: Instant::now(),
            now: Arc::default(),
            watches: RefCell::default(),
            free: RefCell::default(),
            draining: Cell::new(false),
            drained: Notify::new(),
        })
    }

    /// Takes a place. The task is told later: it does not exist yet.
    pub(crate) fn enter(self: &Rc<Self>) -> Seat {
        let watch = Arc::new(Watch {
            now: Arc::clone(&self.now),
            phase: AtomicU8::new(Phase::Service as u8),
            deadline: AtomicU64::new(u64::MAX),
            task: OnceLock::new(),
        });
        let mut watches = self.watches.borrow_mut();
        let at = self.free.borrow_mut().pop().unwrap_or(watches.len());
        if at == watches.len() {
            watches.push(None);
        }
        watches[at] = Some(Arc::clone(&watch));
        Seat { table: Rc::clone(self), watch, at }
    }

    /// Gives up every connection whose deadline has passed; returns how many of them had not said what they want.
    pub(crate) fn sweep(&self, now: Instant) -> usize {
        let now = u64::try_from(now.duration_since(self.began).as_millis()).unwrap_or(u64::MAX - 1);
        self.now.store(now, Relaxed);
        let mut speechless = 0;
        for watch in self.watches.borrow().iter().flatten() {
            let idle_while_draining = self.draining.get() && watch.phase() == Phase::Idle;
            if (watch.deadline.load(Relaxed) <= now || idle_while_draining)
                && let Some(task) = watch.task.get()
            {
                task.abort();
                speechless += usize::from(watch.phase() == Phase::Head);
            }
        }
        speechless
    }

    /// Ends keeping connections alive, and tells those who wait for that.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        self.drained.notify_waiters();
    }

    /// Resolves when [`Table::drain`] is called after this.
    pub(crate) fn drained(&self) -> Notified<'_> {
        self.drained.notified()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    pub(crate) fn len(&self) -> usize {
        self.watches.borrow().len() - self.free.borrow().len()
    }
}

impl Seat {
    pub(crate) const fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Enters a phase: see [`Watch::until`].
    pub(crate) fn until(&self, phase: Phase, limit: Allowance) {
        self.watch.until(phase, limit);
    }

    /// Enters the phase in which others keep the time: see [`Watch::in_service`].
    pub(crate) fn in_service(&self) {
        self.watch.in_service();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.table.is_draining()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.watches.borrow_mut()[self.at] = None;
        self.table.free.borrow_mut().push(self.at);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn who_has_not_said_in_time_what_it_wants_is_counted() {
        let table = Table::new();
        let mut tasks = JoinSet::new();
        let allowance = Allowance::new(Duration::ZERO, Duration::ZERO);
        let seats = [Phase::Head, Phase::Idle, Phase::Write, Phase::Quiet, Phase::Head].map(|phase| {
            let seat = table.enter();
            seat.watch().belongs_to(tasks.spawn(std::future::pending::<()>()));
            seat.until(phase, allowance);
            seat
        });
        seats[4].in_service();
        assert_eq!(table.sweep(Instant::now()), 1);
        drop(seats);
        assert_eq!(table.sweep(Instant::now()), 0);
    }
}
