//! A worker: one thread with its listeners, its connections and the buffers that they share.

use std::{
    cell::RefCell,
    io,
    net::IpAddr,
    ops::Deref,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use semantics::Scheme;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use wire::HeadLimits;

use crate::{
    Listener,
    accept::{self, Acceptor, Gauges},
    connection::Table,
    h3::{self, endpoint::Quic},
    limits::{Allowances, Limits},
    request::recall::Recall,
    service::{Peer, Service},
    tls::{Tls, Turnstile},
};

/// The most bytes that one read takes. There is one such buffer per worker, not per connection.
const READ_BUFFER: usize = 64 * 1024;

/// The configuration of all workers.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The limits of what a client may ask of us.
    pub limits: Limits,
    /// The counts of who is connected.
    pub gauges: Arc<Gauges>,
    /// The networks whose connections are not counted by address, beside loopback.
    pub trusted_proxies: Vec<IpNet>,
    /// The configuration of TLS, for listeners that speak it.
    pub tls: Option<Tls>,
    /// Whether HTTP/2 is spoken without TLS to clients that begin with it (RFC 9113 §3.3).
    pub h2c: bool,
}

impl Config {
    pub(crate) fn is_exempt(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.trusted_proxies.iter().any(|net| net.contains(&address))
    }
}

/// The terms that a connection is held to: the configuration as it was when the connection was accepted, and what follows from it.
#[derive(Debug)]
pub(crate) struct Terms {
    config: Config,
    /// The part of `limits` that a request head is held to.
    pub(crate) head_limits: HeadLimits,
    pub(crate) allowances: Allowances,
    /// The configuration of QUIC, where TLS is spoken at all.
    pub(crate) quic: Option<Arc<quinn::ServerConfig>>,
}

impl Terms {
    pub(crate) fn new(config: Config) -> Rc<Self> {
        let allowances = config.limits.allowances();
        let quic = h3::quic_config(&config);
        let head_limits = config.limits.head();
        Rc::new(Self { config, head_limits, allowances, quic })
    }
}

impl Deref for Terms {
    type Target = Config;
    fn deref(&self) -> &Config {
        &self.config
    }
}

/// Listeners that belong to the runtime of one worker.
#[derive(Debug)]
pub struct Listeners {
    streams: Vec<Acceptor>,
    quic: Vec<Quic>,
}

impl Listeners {
    /// Gives listeners to the runtime that this is called in. It is a step of its own, so that a start can fail by it.
    ///
    /// # Errors
    /// Fails when the system does not let the runtime wait for one of them.
    pub fn open(listeners: Vec<Listener>) -> io::Result<Self> {
        let (mut streams, mut quic) = (Vec::with_capacity(listeners.len()), Vec::new());
        for listener in listeners {
            match listener {
                Listener::Tcp(listener) => streams.push(Acceptor::tcp(listener)?),
                Listener::Tls(listener) => streams.push(Acceptor::tls(listener)?),
                Listener::Unix(listener) => streams.push(Acceptor::unix(listener)?),
                Listener::Quic(part) => quic.push(part),
            }
        }
        Ok(Self { streams, quic })
    }
}

/// A worker: its service, its connections and the buffers they share. Lives on one thread, in a tokio `LocalRuntime`.
#[derive(Debug)]
pub struct Worker<S: Service> {
    pub(crate) service: S,
    terms: RefCell<Rc<Terms>>,
    pub(crate) table: Rc<Table>,
    /// The buffer that reads land in. It is borrowed between two awaits only, so one is enough for all connections, and an idle one holds none.
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    /// The buffer that heads of responses are written to.
    pub(crate) head_buffer: RefCell<Vec<u8>>,
    known_host: RefCell<Rc<str>>,
    pub(crate) turnstile: Turnstile,
    /// The heads that come again and again.
    pub(crate) recall: RefCell<Recall<S::HitFacts>>,
}

impl<S: Service> Worker<S> {
    /// Makes a worker that has not begun.
    pub fn new(service: S, config: Config) -> Rc<Self> {
        let terms = Terms::new(config);
        Rc::new(Self {
            service,
            recall: RefCell::new(Recall::new(&terms)),
            terms: RefCell::new(terms),
            table: Table::new(),
            read_buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
            head_buffer: RefCell::new(Vec::with_capacity(4096)),
            known_host: RefCell::new(Rc::from("")),
            turnstile: Turnstile::new(),
        })
    }

    /// Serves `listeners` until `stop` is `Some(grace)`; then accepts no more, closes idle connections, lets requests under way
    /// end, and returns when none is left or after `grace`.
    pub async fn run(self: Rc<Self>, listeners: Listeners, mut stop: watch::Receiver<Option<Duration>>) {
        let mut accepting = JoinSet::new();
        let stop_accepting = CancellationToken::new();
        let mut doors = JoinSet::new();
        for listener in listeners.streams {
            accepting.spawn_local(accept::accept(Rc::clone(&self), listener, stop_accepting.clone()));
        }
        for quic in listeners.quic {
            doors.spawn_local(h3::accept(Rc::clone(&self), quic, stop_accepting.clone()));
        }
        let mut sweep = tokio::time::interval(self.terms().limits.sweep_interval());
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let grace = loop {
            tokio::select! {
                _ = sweep.tick() => self.sweep(),
                told = stop.wait_for(Option::is_some) => break told.ok().and_then(|grace| *grace).unwrap_or_default(),
            }
        };
        self.table.drain();
        stop_accepting.cancel();
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

    /// Gives up connections that are too slow, and counts those that never came to a request: nobody else is left to do it.
    fn sweep(&self) {
        for _ in 0..self.table.sweep(Instant::now()) {
            self.service.refused(Peer { address: None, scheme: Scheme::Http }, 0, "no whole head in time");
        }
    }

    /// Replaces the configuration, for connections that are accepted after this call.
    pub fn reconfigure(&self, config: Config) {
        let terms = Terms::new(config);
        // What passed under the old limits need not pass under the new ones.
        *self.recall.borrow_mut() = Recall::new(&terms);
        *self.terms.borrow_mut() = terms;
    }

    /// Returns the terms for connections that are accepted now.
    pub(crate) fn terms(&self) -> Rc<Terms> {
        Rc::clone(&self.terms.borrow())
    }

    /// Returns the last `Host` that was found valid: nearly always it is the next one, too.
    pub(crate) fn known_host(&self) -> Rc<str> {
        Rc::clone(&self.known_host.borrow())
    }

    pub(crate) fn remember_host(&self, host: &str) {
        *self.known_host.borrow_mut() = Rc::from(host);
    }

    /// Returns the service.
    pub const fn service(&self) -> &S {
        &self.service
    }

    /// Returns how many connections this worker has.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Empty;
    use semantics::RequestHead;
    use tokio::runtime::{Builder, LocalOptions};

    use super::*;
    use crate::{Exchange, FileRegion, HitOf, Interim, RequestBody, Socket, bind};

    /// Answers nothing of interest.
    struct Nobody;

    impl Service for Nobody {
        type Stored = Bytes;
        type Body = Empty<Bytes>;
        type Note = ();
        type HitFacts = ();

        fn hit(&self, _: Peer, _: &RequestHead<'_>, _: Instant, _: &mut Vec<u8>) -> Option<HitOf<Self>> {
            None
        }

        fn again(&self, _: Peer, (): &(), _: Instant, _: &mut Vec<u8>) -> Option<HitOf<Self>> {
            None
        }

        async fn call(
            &self,
            _: Peer,
            _: http::Request<RequestBody>,
            _: Instant,
            _: Option<Interim>,
        ) -> Box<(http::Response<Self::Body>, ())> {
            Box::default()
        }

        fn share(stored: &Bytes) -> Bytes {
            stored.clone()
        }

        fn take_file(_: &mut Self::Body) -> Option<FileRegion> {
            None
        }

        fn done(&self, _: &Exchange<'_>, (): &()) {}

        fn refused(&self, _: Peer, _: u16, _: &'static str) {}
    }

    /// Another thread may say so at any time, also before the first connection is waited for.
    #[test]
    fn a_worker_that_is_stopped_before_it_has_begun_ends() {
        let sockets = [Socket::Tcp(([127, 0, 0, 1], 0).into()), Socket::Quic(([127, 0, 0, 1], 0).into())];
        let listeners = sockets.iter().flat_map(|socket| bind(socket, 1).expect("bound")).collect();
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).expect("a runtime");
        runtime.block_on(async {
            let (stop, stopped) = watch::channel(None);
            stop.send(Some(Duration::ZERO)).expect("it listens");
            let listeners = Listeners::open(listeners).expect("open");
            let running = Worker::new(Nobody, Config::default()).run(listeners, stopped);
            tokio::time::timeout(Duration::from_secs(30), running).await.expect("it ends");
        });
    }
}
