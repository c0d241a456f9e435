//! An origin that says what the test scripts and fails the test when it is asked anything else.
//!
//! It runs on a thread and a runtime of its own, so it answers whatever the test's runtime is busy with, and it listens on 127.0.0.1 at a
//! port that stays its own while it is down: [`Origin::kill`] makes the port refuse, [`Origin::revive`] brings it back.

mod connection;
mod expectation;
mod record;
mod reply;

pub use expectation::{Expecting, Matcher, any, delete, get, head, method, options, post, purge, put};
pub use record::SeenRequest;
pub use reply::{Reply, not_modified, ok, raw, status};

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc as blocking};
use std::thread::{self, JoinHandle};
use std::{future, io};

use crate::patiently;
use record::{Mode, Record};

/// A scriptable HTTP/1.1 origin server. Dropping it stops it and [verifies](Self::verify) it.
#[derive(Debug)]
pub struct Origin {
    addr: SocketAddr,
    record: Arc<Record>,
    orders: mpsc::Sender<(Order, blocking::SyncSender<()>)>,
    thread: Option<JoinHandle<()>>,
    /// A socket that is bound to the port but never listens: nobody else is given the port while this origin is down, and connects are
    /// refused.
    _holder: TcpSocket,
}

/// An order to the origin's thread, which confirms each when it is done.
#[derive(Clone, Copy, Debug)]
enum Order {
    Kill,
    Refuse,
    Listen,
    Stop,
}

impl Origin {
    /// Starts an origin that expects nothing yet.
    ///
    /// # Panics
    /// Panics if the machine has no port or no thread left.
    #[must_use]
    pub fn start() -> Self {
        let holder = reusing_socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let addr = holder.local_addr().expect("a bound socket has an address");
        let record = Arc::new(Record::default());
        let (orders, received) = mpsc::channel(1);
        let on_thread = Arc::clone(&record);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(work(addr, received, on_thread));
        };
        let thread = thread::Builder::new().name("origin".to_owned()).spawn(run).expect("a thread");
        let origin = Self { addr, record, orders, thread: Some(thread), _holder: holder };
        origin.order(Order::Listen);
        origin
    }

    /// Returns the address where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `http://127.0.0.1:` and the port, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Begins an expectation, which counts once it has a reply. The most recent one that matches a request answers it.
    pub fn on(&self, matcher: Matcher) -> Expecting<'_> {
        Expecting::new(&self.record, matcher)
    }

    /// Drops all expectations: every later request is unexpected.
    pub fn expect_nothing(&self) {
        self.record.forget_expectations();
    }

    /// Returns every request read completely so far, expected or not, in the order in which they ended.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.record.seen(|_| true)
    }

    /// Returns how many requests for exactly `target` have been read, whatever the method.
    #[must_use]
    pub fn count(&self, target: &str) -> usize {
        self.record.seen(|seen| seen.target == target).len()
    }

    /// Returns the last request for exactly `target`.
    ///
    /// # Panics
    /// Panics if there was none.
    #[must_use]
    #[track_caller]
    pub fn last(&self, target: &str) -> SeenRequest {
        let last = self.record.seen(|seen| seen.target == target).pop();
        last.unwrap_or_else(|| panic!("the origin saw no request for {target}, only:\n{}", self.record.listing()))
    }

    /// Waits until `n` requests for `target` have been read: for fetches that no client waits for.
    ///
    /// # Panics
    /// Panics if that does not happen within [`PATIENCE`](crate::PATIENCE).
    pub async fn until_count(&self, target: &str, n: usize) {
        let what = format!("for the origin to see {n} requests for {target}");
        patiently(&what, self.record.until(|| self.count(target) >= n)).await;
    }

    /// Returns how many connections have been opened so far; fewer than requests if they were kept alive.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.record.connections().opened
    }

    /// Returns how many connections are open now, as far as this side has noticed.
    #[must_use]
    pub fn connections_open(&self) -> usize {
        self.record.connections().open
    }

    /// Waits until exactly `n` connections are open: for a fetch that ends because its client left. A connection that waits at a
    /// [`Gate`](crate::Gate) notices, too, when its peer leaves.
    ///
    /// # Panics
    /// Panics if that does not happen within [`PATIENCE`](crate::PATIENCE).
    pub async fn until_connections_open(&self, n: usize) {
        let what = format!("for the origin to have {n} open connections");
        patiently(&what, self.record.until(|| self.connections_open() == n)).await;
    }

    /// Closes every connection and stops listening: connects are refused until [`revive`](Self::revive).
    pub fn kill(&self) {
        self.order(Order::Kill);
    }

    /// Refuses new connections until [`revive`](Self::revive). Open ones stay and are answered.
    pub fn refuse(&self) {
        self.order(Order::Refuse);
    }

    /// Goes on accepting connections and reading requests, but answers none until [`revive`](Self::revive). Requests that were read
    /// before that are never answered.
    pub fn accept_but_never_answer(&self) {
        self.record.set_mode(Mode::Silent);
    }

    /// Listens again, on the same port, and answers.
    pub fn revive(&self) {
        self.record.set_mode(Mode::Answering);
        self.order(Order::Listen);
    }

    /// Returns what the test did not expect, one text each, and forgets it, so that [`verify`](Self::verify) does not fail: for tests of
    /// that.
    #[must_use]
    pub fn take_unexpected(&self) -> Vec<String> {
        self.record.take_unexpected()
    }

    /// Fails the test if the origin saw a request that no expectation matches, or anything that is not a request.
    ///
    /// # Panics
    /// Panics then, with what was expected and what was seen.
    #[track_caller]
    pub fn verify(&self) {
        if let Some(complaint) = self.record.complaint() {
            panic!("{complaint}");
        }
    }

    /// Blocks until the origin's thread has followed the order. That takes microseconds, and a test relies on the port's state afterwards.
    fn order(&self, order: Order) {
        let (done, wait) = blocking::sync_channel(1);
        // Each caller has one order at a time, and the thread does little else; a full channel is a few microseconds old.
        let mut message = (order, done);
        while let Err(mpsc::error::TrySendError::Full(back)) = self.orders.try_send(message) {
            message = back;
            thread::yield_now();
        }
        // A missing confirmation means that the thread has ended: after a panic of its own, which `stop` reports.
        let _ = wait.recv();
    }

    fn stop(&mut self) -> thread::Result<()> {
        self.order(Order::Stop);
        self.thread.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let stopped = self.stop();
        if !thread::panicking() {
            assert!(stopped.is_ok(), "the origin's own thread panicked");
            self.verify();
        }
    }
}

/// Runs the origin's thread: accepts connections and follows orders until told to stop.
async fn work(addr: SocketAddr, mut orders: mpsc::Receiver<(Order, blocking::SyncSender<()>)>, record: Arc<Record>) {
    let mut listener = None;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept(listener.as_ref()) => if let Ok((stream, _)) = accepted {
                connections.spawn(connection::serve(stream, Arc::clone(&record)));
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => if let Err(error) = ended && error.is_panic() {
                record.complain(format!("a connection of the origin panicked: {error}"));
            },
            order = orders.recv() => {
                let Some((order, done)) = order else { return };
                match order {
                    Order::Listen => listener = Some(listener.take().unwrap_or_else(|| listen(addr).expect("the port is held for us"))),
                    Order::Refuse => listener = None,
                    Order::Kill => {
                        listener = None;
                        connections.shutdown().await;
                    }
                    Order::Stop => return,
                }
                // Nobody waits if the test's thread is unwinding.
                let _ = done.send(());
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => future::pending().await,
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    reusing_socket(addr)?.listen(1024)
}

/// Creates a socket with `SO_REUSEADDR`, which lets the holder and one listener share the port, and lets the port be listened on again at
/// once after a kill.
fn reusing_socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
