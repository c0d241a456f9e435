//! One thread's share of the front.

use std::{
    cell::RefCell,
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{Listener, accept, connection::Table, limits::Limits, service::Service};
use crate::accept::Gauges;

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
}

impl Shared {
    pub(crate) fn is_exempt(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.trusted_proxies.iter().any(|net| net.contains(&address))
    }
}

/// A worker: its service, its connections and the buffers they share. Lives on one thread, in a tokio `LocalRuntime`.
#[derive(Debug)]
pub struct Worker<S> {
    pub(crate) service: S,
    shared: RefCell<Rc<Shared>>,
    pub(crate) table: Rc<Table>,
    /// Where reads land. Borrowed between two awaits only, so one is enough for all connections, and an idle one holds none.
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    /// Where heads are written.
    pub(crate) head_buffer: RefCell<Vec<u8>>,
}

impl<S: Service> Worker<S> {
    /// A worker that has not begun.
    pub fn new(service: S, shared: Shared) -> Rc<Self> {
        Rc::new(Self {
            service,
            shared: RefCell::new(Rc::new(shared)),
            table: Table::new(),
            read_buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
            head_buffer: RefCell::new(Vec::with_capacity(4096)),
        })
    }

    /// Serves `listeners` until `stop` changes to `Some(grace)`; then accepts no more, closes idle connections, lets requests under way
    /// end, and returns when none is left or after `grace`.
    pub async fn run(self: Rc<Self>, listeners: Vec<Listener>, mut stop: watch::Receiver<Option<Duration>>) {
        let mut accepting = JoinSet::new();
        let stop_accepting = Rc::new(Notify::new());
        for listener in listeners {
            accepting.spawn_local(accept::accept(Rc::clone(&self), listener, Rc::clone(&stop_accepting)));
        }
        let mut sweep = tokio::time::interval(self.sweep_interval());
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let grace = loop {
            tokio::select! {
                _ = sweep.tick() => { self.table.sweep(Instant::now()); }
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
        let end = tokio::time::Instant::now() + grace;
        let mut step = tokio::time::interval(Duration::from_millis(10));
        while self.table.len() > 0 && tokio::time::Instant::now() < end {
            step.tick().await;
            self.table.sweep(Instant::now());
        }
    }

    /// Often enough that the shortest timeout is kept to within a quarter.
    fn sweep_interval(&self) -> Duration {
        let shared = self.shared();
        let limits = &shared.limits;
        let shortest = limits.header_timeout.min(limits.write_timeout).min(limits.idle_timeout);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_millis(500))
    }

    /// What connections accepted from now on are held to.
    pub fn reconfigure(&self, shared: Shared) {
        *self.shared.borrow_mut() = Rc::new(shared);
    }

    pub(crate) fn shared(&self) -> Rc<Shared> {
        Rc::clone(&self.shared.borrow())
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
