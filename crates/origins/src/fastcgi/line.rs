//! The requests of one worker that wait for a child of a server, and the connections that stand in the server's own queue for them.
//!
//! The one idea: the two are not tied together. A child that has taken a connection is for the request that has waited longest, and so is a child that has
//! just ended another request of this worker: its connection is handed over, and the one that stood in the queue stays there for whoever comes next. So a
//! crowd costs no more connections than a few readers. But whoever else is in the server's queue, another worker, another site or another program, is not
//! passed by for longer than [`Times::handed`] by each child: then the connection is closed, and its child takes the next one of all.
//!
//! A request leaves only when a child has said that it is free for it. Nothing is written for those who wait, so whoever leaves leaves nothing behind.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{
    connection::Connection,
    is_full,
    server::{Connections, FastCgiServer},
};
use crate::{Fault, OriginError, server::Stream};

/// The most connections of a worker that stand in the server's queue. When a child takes one, the next request has its own made.
pub(super) const STANDING_MAX: usize = 16;
/// The time that a connection stands in the server's queue when nobody waits: the next request of a crowd is there sooner than a new
/// connection.
const SPARE_MAX: Duration = Duration::from_millis(5);
/// The number of times that a connection is made anew that was closed before a child had taken it: php-fpm was restarted.
pub(super) const AGAIN_MAX: u32 = 2;
/// The time between two attempts to connect to a server whose queue is full.
const FULL_RETRY: Duration = Duration::from_millis(10);

/// A child for a request: a connection to one that is free, or that is asked whether it is; or the reason why there is none.
type Child = Result<Box<Connection>, OriginError>;

/// A line of requests, first come first served, at one address of a server.
#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// The lock that is held by whoever tries to connect to a server whose queue is full: the others wait in line.
    full: tokio::sync::Mutex<()>,
    /// Whether any connection stands in the queue, so that the server is there, and busy.
    stands: AtomicBool,
    /// Tells that nobody waits any more.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The requests that wait, by the numbers that they drew.
    waiting: BTreeMap<u64, oneshot::Sender<Child>>,
    drawn: u64,
    /// Connections that stand in the server's queue, or are being made for that.
    standing: usize,
}

/// The ticket of a request that waits in a line. It leaves the line when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    line: Arc<Line>,
    number: u64,
}

impl Line {
    /// Returns whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }

    /// Takes a place at the end.
    pub(super) fn join(self: &Arc<Self>) -> Ticket {
        let mut state = self.state.lock();
        state.drawn += 1;
        Ticket { line: Arc::clone(self), number: state.drawn }
    }

    /// Gives a child to whoever has waited longest. Returns it if nobody waits.
    pub(super) fn give(&self, mut child: Child) -> Result<(), Child> {
        loop {
            let (next, is_last) = {
                let mut state = self.state.lock();
                let Some((_, next)) = state.waiting.pop_first() else { return Err(child) };
                (next, state.waiting.is_empty())
            };
            if is_last {
                self.emptied.notify_waiters();
            }
            match next.send(child) {
                Ok(()) => return Ok(()),
                // It has left at this moment.
                Err(back) => child = back,
            }
        }
    }

    /// Has as many connections stand in the server's queue as requests wait, up to a limit.
    fn stand(self: &Arc<Self>, pool: &Arc<Connections>, address: usize) {
        loop {
            let mut state = self.state.lock();
            if state.standing >= state.waiting.len().min(STANDING_MAX) {
                return;
            }
            state.standing += 1;
            drop(state);
            let (line, pool) = (Arc::clone(self), Arc::clone(pool));
            tokio::task::spawn_local(async move {
                let standing = QueuedConnection(&line);
                let child = line.queue(&pool, address).await;
                drop(standing);
                if let Some(child) = child {
                    // If nobody waits any more it is closed, and the child is free at once.
                    let _ = line.give(child);
                }
                line.stand(&pool, address);
            });
        }
    }

    /// Returns when nobody has waited for a moment.
    async fn is_not_needed(&self) {
        loop {
            let emptied = self.emptied.notified();
            if !self.is_empty() {
                emptied.await;
            }
            tokio::time::sleep(SPARE_MAX).await;
            if self.is_empty() {
                return;
            }
        }
    }

    /// Connects, and waits until a child has taken the connection, or until nobody needs it.
    async fn queue(&self, pool: &Arc<Connections>, address: usize) -> Option<Child> {
        for _ in 0..=AGAIN_MAX {
            let mut connection = match self.connect(pool, address).await? {
                Ok(stream) => Box::new(Connection::new(stream)),
                Err(error) => return Some(Err(error)),
            };
            self.stands.store(true, Relaxed);
            if connection.ask_whether_free() {
                let is_free = tokio::select! {
                    biased;
                    is_free = connection.is_free() => is_free,
                    () = self.is_not_needed() => return None,
                };
                if is_free {
                    return Some(Ok(connection));
                }
            }
            if self.is_empty() {
                return None;
            }
        }
        let detail = format!("{}: closed before a child had taken the connection", pool.address(address));
        Some(Err(OriginError::new(Fault::ConnectionTerminated, detail)))
    }

    /// Connects to a child of php-fpm. A server whose queue is full (`listen.backlog` of php-fpm, on a Unix socket) is not a failure:
    /// it is tried again as long as somebody waits.
    async fn connect(&self, pool: &Arc<Connections>, address: usize) -> Option<Result<Stream, OriginError>> {
        if self.full.try_lock().is_ok() {
            match pool.connect(address).await {
                Err(error) if is_full(&error) => {}
                connected => return Some(connected),
            }
        }
        let _first = self.full.lock().await;
        while !self.is_empty() {
            match pool.connect(address).await {
                Err(error) if is_full(&error) => tokio::time::sleep(FULL_RETRY).await,
                connected => return Some(connected),
            }
        }
        None
    }
}

/// Counts a connection that stands in the server's queue, while it lives.
struct QueuedConnection<'a>(&'a Line);

impl Drop for QueuedConnection<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.standing -= 1;
        if state.standing == 0 {
            self.0.stands.store(false, Relaxed);
        }
    }
}

impl Ticket {
    /// Waits for a child until then; a server that is only being connected to has its own time for that. Whoever comes back, because its child was none,
    /// stands where it stood.
    ///
    /// # Errors
    /// Fails as connecting does, and when no child was free in time.
    pub(super) async fn child(&self, server: &Arc<FastCgiServer>, pool: &Arc<Connections>, address: usize, until: Instant) -> Child {
        let (sender, mut receiver) = oneshot::channel();
        self.line.state.lock().waiting.insert(self.number, sender);
        let _waiting = server.wait_for_child(address);
        self.line.stand(pool, address);
        let connecting_until = until.max(Instant::now() + pool.options().connect_timeout);
        let mut given = tokio::time::timeout_at(until, &mut receiver).await;
        if given.is_err() && !self.line.stands.load(Relaxed) {
            given = tokio::time::timeout_at(connecting_until, receiver).await;
        }
        match given {
            Ok(Ok(child)) => child,
            Ok(Err(_)) | Err(_) => {
                Err(OriginError::new(Fault::Overloaded, format!("{}: no child was free in time", pool.address(address))))
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.line.state.lock();
            state.waiting.remove(&self.number).is_some() && state.waiting.is_empty()
        };
        if is_last {
            self.line.emptied.notify_waiters();
        }
    }
}
