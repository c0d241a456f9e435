//! Connections of one worker to the addresses of one server, and who gets them.
//!
//! Idle connections are taken last in, first out: the warmest is used, the others grow old and are closed. The locks are never
//! contended while a worker keeps to itself; they are here because a response body may be dropped on another thread.
//!
//! Not here: what is said on a connection. A protocol brings its own [`Connection`], or several in one enum, which then share the bound.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Address, Permit, ServerOptions,
    connect::{self, Stream},
    health::Way,
};
use crate::OriginError;

/// A connection that may wait for its next request.
pub(crate) trait Connection: Send + 'static {
    /// Returns whether a request may be sent on it now. Bytes that came while nobody asked for any end it, as its closing does.
    fn is_ready(&mut self, cx: &mut Context<'_>) -> bool;

    /// Returns whether a request may be sent on it, when that is known.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(self.is_ready(cx))
    }

    /// Returns whether it can be closed while it waits, because the other end has closed it.
    fn has_ended(&mut self, cx: &mut Context<'_>) -> bool;
}

/// The addresses of one server, as one worker knows them, and the connections that wait there for a request.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    /// The idle connections to each address, in the order of the addresses.
    idle: Vec<Mutex<Vec<Idle<C>>>>,
    options: Arc<ServerOptions>,
    /// The address whose turn it is.
    next: AtomicUsize,
    reaping: AtomicBool,
}

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    expires: Instant,
}

/// The state of one address of a server, as one worker sees it.
#[derive(Debug, Clone, Copy)]
pub struct AddressStatus<'a> {
    /// The address.
    pub address: &'a Address,
    /// Whether requests go there.
    pub up: bool,
    /// Connections that wait for a request.
    pub idle: usize,
}

impl<C: Connection> Pool<C> {
    pub(crate) fn new(options: Arc<ServerOptions>) -> Self {
        let idle = options.addresses().iter().map(|_| Mutex::default()).collect();
        Self { idle, options, next: AtomicUsize::new(0), reaping: AtomicBool::new(false) }
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.options
    }

    pub(crate) fn address(&self, address: usize) -> &Address {
        &self.options.addresses()[address]
    }

    /// Returns what this worker knows of each address.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = AddressStatus<'_>> {
        self.options.known().zip(&self.idle).map(|((address, up), idle)| AddressStatus { address, up, idle: idle.lock().len() })
    }

    /// Returns the addresses, each in its turn; those that are down after all others. Beyond the 64th they are asked in their turn whatever is
    /// known.
    pub(crate) fn turns(&self, now: Instant) -> impl Iterator<Item = usize> + use<C> {
        let count = self.idle.len();
        // One worker's: there is nobody to race with.
        let start = self.next.load(Relaxed);
        self.next.store((start + 1) % count.max(1), Relaxed);
        let mut later = 0_u64;
        if count > 1 {
            for address in (0..count.min(64)).filter(|&address| !self.options.health_of(address).has_its_turn(now)) {
                later |= 1 << address;
            }
        }
        let in_turn = move |is_later: bool| {
            (start..count).chain(0..start).filter(move |&address| (address < 64 && later >> address & 1 == 1) == is_later)
        };
        in_turn(false).chain(in_turn(true))
    }

    /// Connects, and remembers how that went. It takes as long as two attempts at most: one that another request began, and one of its own.
    /// After the first one, connections that have waited for too long are closed as long as the pool lives.
    pub(crate) async fn connect(self: &Arc<Self>, address: usize) -> Result<Stream, OriginError> {
        let (health, address) = (self.options.health_of(address), self.address(address));
        let mut way = health.way(Instant::now());
        while let Way::Wait(waiting) = way {
            waiting.end().await?;
            way = health.way(Instant::now());
        }
        let trial = if let Way::Try(trial) = way { Some(trial) } else { None };
        let connected = connect::connect(address, &self.options).await;
        match &connected {
            Ok(_) => health.connected(address, trial),
            Err(error) => health.failed(address, trial, error, Instant::now(), self.options.health),
        }
        if connected.is_ok() {
            self.begin_reaping();
        }
        connected
    }

    /// Takes the warmest idle connection of a kind that is still good. With `careful`, the event loop is let in once more, so that an end of
    /// the connection that has already arrived is seen: for requests that must not be sent twice.
    pub(crate) async fn checkout(&self, address: usize, is_of_kind: fn(&C) -> bool, careful: bool, now: Instant) -> Option<C> {
        loop {
            let Idle { mut connection, expires } = self.warmest(address, is_of_kind)?;
            if expires <= now {
                continue;
            }
            let mut good = !careful && is_ready(&mut connection).await;
            if !good {
                tokio::task::yield_now().await;
                good = is_ready(&mut connection).await;
            }
            if good {
                return Some(connection);
            }
        }
    }

    /// Takes the warmest idle connection that is still good, and waits a little for the other end to say that it is free again.
    pub(crate) async fn checkout_when_free(&self, address: usize, patience: Duration, now: Instant) -> Option<C> {
        loop {
            let Idle { mut connection, expires } = self.warmest(address, |_| true)?;
            if expires <= now {
                continue;
            }
            let ready = tokio::task::unconstrained(poll_fn(|cx| connection.poll_ready(cx)));
            if tokio::time::timeout(patience, ready).await.is_ok_and(|ready| ready) {
                return Some(connection);
            }
        }
    }

    fn warmest(&self, address: usize, is_of_kind: fn(&C) -> bool) -> Option<Idle<C>> {
        let mut idle = self.idle[address].lock();
        let last = idle.iter().rposition(|idle| is_of_kind(&idle.connection))?;
        Some(idle.remove(last))
    }

    /// Takes a connection back whose response has ended. `keep` is for how long it may stay.
    pub(crate) fn put(&self, address: usize, connection: C, keep: Duration) {
        let mut idle = self.idle[address].lock();
        if idle.len() < self.options.pool_idle_max {
            idle.push(Idle { connection, expires: Instant::now() + keep });
        }
    }

    /// Closes the idle connections to an address: after one of them turned out dead the others are suspect too, as the server was restarted.
    pub(crate) fn forget_idle(&self, address: usize) {
        self.idle[address].lock().clear();
    }

    fn begin_reaping(self: &Arc<Self>) {
        if !self.reaping.swap(true, Relaxed) {
            let (pool, every) = (Arc::downgrade(self), (self.options.pool_idle_timeout / 4).max(Duration::from_secs(1)));
            tokio::task::spawn_local(async move {
                loop {
                    tokio::time::sleep(every).await;
                    let Some(pool) = pool.upgrade() else { return };
                    pool.close_expired(Instant::now());
                }
            });
        }
    }

    /// Closes the idle connections that have expired or ended: nobody waits for what they bring, so nobody has noticed their end.
    pub(crate) fn close_expired(&self, now: Instant) {
        let mut cx = Context::from_waker(Waker::noop());
        for idle in &self.idle {
            idle.lock().retain_mut(|idle| idle.expires > now && !idle.connection.has_ended(&mut cx));
        }
    }
}

/// Asks a connection whether it is ready. Not within the task's budget: when that is spent, every connection would seem to be at rest.
async fn is_ready(connection: &mut impl Connection) -> bool {
    tokio::task::unconstrained(poll_fn(|cx| Poll::Ready(connection.is_ready(cx)))).await
}

/// The hold of a response on a connection, and on a place in the budget, until its content has ended.
///
/// Read to its end, the connection goes back to the pool. Dropped before that it is closed: the rest of an abandoned response may be
/// long, and reading it only to throw it away would cost the server as much as sending it to somebody.
pub(crate) struct Lease<C, I> {
    pub(crate) connection: C,
    pub(crate) pool: Arc<Pool<I>>,
    pub(crate) address: usize,
    pub(crate) _permit: Option<Permit>,
    /// The time that the connection may be kept; none if the server closes it.
    pub(crate) keep: Option<Duration>,
}

impl<C: Into<I>, I: Connection> Lease<C, I> {
    /// Ends the lease, as the response has ended. `is_clean`: another request may follow on the connection.
    pub(crate) fn end(self, is_clean: bool) {
        if let Some(keep) = self.keep.filter(|_| is_clean) {
            self.pool.put(self.address, self.connection.into(), keep);
        }
    }

    /// Returns the address that answers.
    pub(crate) fn origin(&self) -> &Address {
        self.pool.address(self.address)
    }
}

/// The error of an address that did not answer.
pub(crate) struct Failed {
    pub(crate) error: OriginError,
    /// Whether another one may be asked.
    pub(crate) next: bool,
}

impl Failed {
    /// Returns the error, to be kept while another address is asked; or, where none may be, fails with it.
    pub(crate) fn or_next(self) -> Result<OriginError, OriginError> {
        if self.next { Ok(self.error) } else { Err(self.error) }
    }
}
