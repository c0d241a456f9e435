//! One thread's share of the front.

use std::{
    cell::RefCell,
    net::IpAddr,
    ops::Deref,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use semantics::Scheme;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{
    Listener,
    accept::{self, Gauges},
    connection::Table,
    h1::recall::Recall,
    h3,
    limits::{Allowances, Limits},
    service::{Peer, Service},
    tls::{Tls, Turnstile},
};

/// One read takes at most this much; one such buffer per worker, not per connection.
const READ_BUFFER: usize = 64 * 1024;

/// What the workers have in common.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    /// The bounds.
    pub limits: Limits,
    /// Who is connected.
    pub gauges: Arc<Gauges>,
    /// Networks whose connections are not counted by address, beside loopback.
    pub trusted_proxies: Vec<IpNet>,
    /// For listeners that speak it.
    pub tls: Option<Tls>,
    /// Whether HTTP/2 is spoken without TLS to clients that begin with it (RFC 9113 §3.3).
    pub h2c: bool,
}

impl Shared {
    pub(crate) fn is_exempt(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.trusted_proxies.iter().any(|net| net.contains(&address))
    }
}

/// What a connection is held to: as configured when it was accepted.
#[derive(Debug)]
pub(crate) struct Front {
    shared: Shared,
    pub(crate) allowances: Allowances,
    /// How QUIC is spoken.
    pub(crate) quic: Option<Arc<quinn::ServerConfig>>,
}

impl Front {
    pub(crate) fn new(shared: Shared) -> Rc<Self> {
        let allowances = shared.limits.allowances();
        let quic = h3::config(&shared);
        Rc::new(Self { shared, allowances, quic })
    }
}

impl Deref for Front {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// A worker: its service, its connections and the buffers they share. Lives on one thread, in a tokio `LocalRuntime`.
#[derive(Debug)]
pub struct Worker<S: Service> {
    pub(crate) service: S,
    front: RefCell<Rc<Front>>,
    pub(crate) table: Rc<Table>,
    /// Where reads land. Borrowed between two awaits only, so one is enough for all connections, and an idle one holds none.
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    /// Where heads are written.
    pub(crate) head_buffer: RefCell<Vec<u8>>,
    known_host: RefCell<Rc<str>>,
    pub(crate) turnstile: Turnstile,
    /// Heads that come again and again.
    pub(crate) recall: RefCell<Recall<S::Known>>,
}

impl<S: Service> Worker<S> {
    /// A worker that has not begun.
    pub fn new(service: S, shared: Shared) -> Rc<Self> {
        let front = Front::new(shared);
        Rc::new(Self {
            service,
            recall: RefCell::new(Recall::new(&front)),
            front: RefCell::new(front),
            table: Table::new(),
            read_buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
            head_buffer: RefCell::new(Vec::with_capacity(4096)),
            known_host: RefCell::new(Rc::from("")),
            turnstile: Turnstile::new(),
        })
    }

    /// Serves `listeners` until `stop` changes to `Some(grace)`; then accepts no more, closes idle connections, lets requests under way
    /// end, and returns when none is left or after `grace`.
    pub async fn run(self: Rc<Self>, listeners: Vec<Listener>, mut stop: watch::Receiver<Option<Duration>>) {
        let mut accepting = JoinSet::new();
        let stop_accepting = Rc::new(Notify::new());
        let mut doors = JoinSet::new();
        for listener in listeners {
            let (worker, stop) = (Rc::clone(&self), Rc::clone(&stop_accepting));
            match listener {
                Listener::Quic(quic) => drop(doors.spawn_local(h3::accept(worker, quic, stop))),
                listener => drop(accepting.spawn_local(accept::accept(worker, listener, stop))),
            }
        }
        let mut sweep = tokio::time::interval(self.front().limits.sweep_interval());
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let grace = loop {
            tokio::select! {
                _ = sweep.tick() => self.sweep(),
                changed = stop.changed() => {
                    if changed.is_err() { break Duration::ZERO; }
                    let now = *stop.borrow_and_update();
                    if let Some(grace) = now { break grace; }
                }
            }
        };
        self.table.drain();
        stop_accepting.notify_waiters();
        while accepting.join_next().await.is_some() {}
        let drivers = doors.join_all().await;
        let end = tokio::time::Instant::now() + grace;
        let mut step = tokio::time::interval(Duration::from_millis(10));
        while self.table.len() > 0 && tokio::time::Instant::now() < end {
            step.tick().await;
            self.sweep();
        }
        // The other workers' connections need this one's socket, if it has one, until they have said goodbye.
        for drivers in drivers {
            drivers.close();
            let _ = tokio::time::timeout_at(end, drivers.wait()).await;
        }
    }

    /// Gives up whoever is too slow; who never came to a request is counted here, as nobody else is left to do it.
    fn sweep(&self) {
        for _ in 0..self.table.sweep(Instant::now()) {
            self.service.refused(Peer { address: None, scheme: Scheme::Http }, 0, "no whole head in time");
        }
    }

    /// What connections accepted from now on are held to.
    pub fn reconfigure(&self, shared: Shared) {
        let front = Front::new(shared);
        // What passed under the old limits need not pass under the new ones.
        *self.recall.borrow_mut() = Recall::new(&front);
        *self.front.borrow_mut() = front;
    }

    pub(crate) fn front(&self) -> Rc<Front> {
        Rc::clone(&self.front.borrow())
    }

    /// The last `Host` that was found valid: nearly always the next one too.
    pub(crate) fn known_host(&self) -> Rc<str> {
        Rc::clone(&self.known_host.borrow())
    }

    pub(crate) fn remember_host(&self, host: &str) {
        *self.known_host.borrow_mut() = Rc::from(host);
    }

    /// The service.
    pub const fn service(&self) -> &S {
        &self.service
    }

    /// Connections of this worker.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }
}
