//! Connections of one worker to the addresses of one origin, and who gets them.
//!
//! Idle connections are taken last in, first out: the warmest is used, the others grow old and are closed. The locks are never
//! contended while a worker keeps to itself; they are here because a response body may be dropped on another thread.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{Builder, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{task::AbortHandle, time::Instant};

use super::{HttpOptions, outgoing::Outgoing, wire::Wire};
use crate::{
    Fault, OriginError,
    server::{
        Address,
        connect::{self, Stream},
        health::{Health, Way},
    },
};

/// An open connection that hyper serves: for content that is still coming from its client, and for upgrades. Dropping it closes it, whatever is still on its way.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    heard: Arc<AtomicBool>,
    /// The task that reads and writes; none once the connection belongs to an upgraded protocol.
    task: Option<AbortHandle>,
    /// Whether it has carried a request before: only then may it have died of old age.
    pub(super) reused: bool,
}

impl Connection {
    async fn open(stream: Stream, address: &Address, options: &HttpOptions) -> Result<Self, OriginError> {
        let (stream, heard) = connect::Watched::new(stream);
        let mut builder = Builder::new();
        builder.max_header_size(options.response_header_bytes_max).max_buf_size(options.read_buffer_bytes_max());
        if options.response_fields_max != HYPER_FIELDS_MAX {
            builder.max_headers(options.response_fields_max);
        }
        let (sender, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|e| OriginError::new(Fault::Internal, format!("HTTP/1.1 on {address}")).because(e))?;
        // What goes wrong on a connection is told to the request it carries; an idle one that ends is no event.
        let task = tokio::task::spawn_local(async move {
            let _ = connection.with_upgrades().await;
        });
        Ok(Self { sender, heard, task: Some(task.abort_handle()), reused: false })
    }

    /// Sends. The error carries the request when nothing of it was written.
    pub(super) fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Outgoing>>>> + use<> {
        self.heard.store(false, Ordering::Relaxed);
        self.sender.try_send_request(request)
    }

    /// Whether any byte came since the request was sent.
    pub(super) fn heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Leaves the socket to the upgraded protocol.
    pub(super) fn hand_over(mut self) {
        self.task = None;
    }
}

/// What hyper reads without allocating for it.
const HYPER_FIELDS_MAX: usize = 100;

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// One address, and the connections that wait for a request.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) address: Address,
    idle: Mutex<Vec<Idle<Connection>>>,
    idle_wires: Mutex<Vec<Idle<Box<Wire>>>>,
}

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    expires: Instant,
}

/// Every address of one origin, as one worker knows them.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) slots: Vec<Slot>,
    pub(super) options: Arc<HttpOptions>,
    reaping: AtomicBool,
}

impl Pool {
    pub(super) fn new(options: Arc<HttpOptions>) -> Self {
        let slot = |address: &Address| Slot { address: address.clone(), idle: Mutex::default(), idle_wires: Mutex::default() };
        Self { slots: options.addresses().iter().map(slot).collect(), options, reaping: AtomicBool::new(false) }
    }

    /// Opens a connection; from the first one on, idle ones that grew too old are closed as long as the pool lives.
    pub(super) async fn open(self: &Arc<Self>, slot: usize) -> Result<Connection, OriginError> {
        let stream = self.connect(slot).await?;
        let connection = Connection::open(stream, &self.slots[slot].address, &self.options).await?;
        self.begin_reaping();
        Ok(connection)
    }

    /// Opens a connection for requests whose content is at hand.
    pub(super) async fn open_wire(self: &Arc<Self>, slot: usize) -> Result<Box<Wire>, OriginError> {
        let stream = self.connect(slot).await?;
        self.begin_reaping();
        Ok(Box::new(Wire::new(stream)))
    }

    /// What all workers know of an address.
    pub(super) fn health(&self, slot: usize) -> &Health {
        self.options.health_of(slot)
    }

    /// Connects, and remembers how that went. Takes as long as two attempts at most: one that another request began, and one of its own.
    async fn connect(&self, slot: usize) -> Result<Stream, OriginError> {
        let (address, health) = (&self.slots[slot].address, self.health(slot));
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
        connected
    }

    fn begin_reaping(self: &Arc<Self>) {
        if !self.reaping.swap(true, Ordering::Relaxed) {
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

    /// The warmest idle connection that is still good. With `careful`, the event loop is let in once more, so that an end of the
    /// connection that has already arrived is seen: for requests that must not be sent twice.
    pub(super) async fn checkout(&self, slot: usize, careful: bool) -> Option<Connection> {
        loop {
            let Idle { mut connection, expires } = self.slots[slot].idle.lock().pop()?;
            if expires <= Instant::now() {
                continue;
            }
            if careful || !connection.is_ready() {
                tokio::task::yield_now().await;
            }
            if connection.is_ready() {
                connection.reused = true;
                return Some(connection);
            }
        }
    }

    /// The same, for requests whose content is at hand.
    pub(super) async fn checkout_wire(&self, slot: usize, careful: bool, now: Instant) -> Option<Box<Wire>> {
        let mut careful = careful;
        loop {
            let Idle { connection: mut wire, expires } = self.slots[slot].idle_wires.lock().pop()?;
            if expires <= now {
                continue;
            }
            if std::mem::take(&mut careful) {
                tokio::task::yield_now().await;
            }
            // Not within the task's budget: when that is spent, every connection would seem to be at rest.
            let is_good = std::future::poll_fn(|cx| Poll::Ready(wire.poll_is_good(cx)));
            if tokio::task::unconstrained(is_good).await {
                wire.reused = true;
                return Some(wire);
            }
        }
    }

    /// Takes a connection back whose response has ended. `keep` is for how long it may stay.
    pub(super) fn put_wire(&self, slot: usize, wire: Box<Wire>, keep: Duration) {
        let mut idle = self.slots[slot].idle_wires.lock();
        if idle.len() < self.options.pool_idle_max {
            idle.push(Idle { connection: wire, expires: Instant::now() + keep });
        }
    }

    /// Takes a connection back whose response has ended. `keep` is for how long it may stay.
    pub(super) fn put(&self, slot: usize, connection: Connection, keep: Duration) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.slots[slot].idle.lock();
        if idle.len() < self.options.pool_idle_max {
            idle.push(Idle { connection, expires: Instant::now() + keep });
        }
    }

    fn close_expired(&self, now: Instant) {
        for slot in &self.slots {
            slot.idle.lock().retain(|idle| idle.expires > now && !idle.connection.sender.is_closed());
            // Nobody waits for what an idle connection brings, so nobody has noticed its end.
            let mut cx = Context::from_waker(Waker::noop());
            slot.idle_wires.lock().retain_mut(|idle| idle.expires > now && idle.connection.poll_is_good(&mut cx));
        }
    }
}

impl Slot {
    pub(super) fn idle(&self) -> usize {
        self.idle.lock().len() + self.idle_wires.lock().len()
    }

    /// After an idle connection turned out dead the others are suspect too: the origin was restarted.
    pub(super) fn forget_idle(&self) {
        self.idle.lock().clear();
        self.idle_wires.lock().clear();
    }
}
