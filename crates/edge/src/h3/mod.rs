//! HTTP/3 (RFC 9114): one connection, and all its streams in one task.
//!
//! QUIC itself (RFC 9000) is the library's: packets, loss, windows, encryption. Here are its endpoints (`endpoint.rs`), what is said on the
//! streams (`frame.rs`, `qpack`, `message.rs`, `control.rs`), and how requests are answered. A client has no hold on memory beyond its windows:
//! frames are read as they are wanted, field sections are bounded before they are read, and there is no dynamic table. Not here: server push,
//! datagrams, early data.

mod content;
pub(crate) mod endpoint;
mod request;
mod sending;
mod transport;

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use semantics::Scheme;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wire::{
    h3::{
        Code, Fault, Purse,
        control::{self, Listener, UniqueStreams},
        purse,
    },
    head::HeadText,
};

use crate::{
    accept::Share,
    connection::{Phase, Seat},
    service::{Peer, Service},
    worker::{Config, Terms, Worker},
};
pub(crate) use content::Content;
use endpoint::{NewConnection, Quic};
use transport::{Receiving, varint};

/// The most requests that a client may have under way at once.
const STREAMS_MAX: u32 = 128;

/// The most streams in one direction: three that HTTP/3 needs, and some that nobody knows.
const UNIDIRECTIONAL_MAX: u32 = 8;

/// The bytes of a stream's content that a client may send before they are read.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The bytes of all streams' contents together that a client may send before they are read.
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// The bytes that may be on their way to a client, or lost, and are kept until they have come: a stored page is shared, not copied. With 100 ms
/// there and back, this is 80 Mbit/s.
const SEND_WINDOW: u64 = 1 << 20;

/// The round trips that a goodbye is given, within the two bounds below: the client has to hear it, and we what it sent before it did.
const GOODBYE_ROUND_TRIPS: u32 = 3;
const GOODBYE_MIN: Duration = Duration::from_millis(20);
const GOODBYE_MAX: Duration = Duration::from_secs(2);

/// Returns how QUIC is spoken under the limits of `config`, if TLS is spoken at all.
pub(crate) fn quic_config(config: &Config) -> Option<Arc<quinn::ServerConfig>> {
    config.tls.as_ref().map(|tls| Arc::new(endpoint::config(tls.quic(), &config.limits)))
}

/// Takes connections up until `stop`, with the door, if this worker has it. Returns what drives connections to their end.
pub(crate) async fn accept<S: Service>(worker: Rc<Worker<S>>, quic: Quic, stop: CancellationToken) -> TaskTracker {
    let (address, drivers) = (quic.address(), quic.drivers());
    let Quic { mut arrivals, door, .. } = quic;
    let config = worker.terms().quic.as_deref().cloned();
    let mut open = pin!(async {
        match door.zip(config) {
            Some((door, config)) => door.open(config).await,
            None => std::future::pending().await,
        }
    });
    let mut stopped = pin!(stop.cancelled());
    let mut is_open = true;
    loop {
        tokio::select! {
            () = &mut stopped => return drivers,
            failed = &mut open, if is_open => {
                is_open = false;
                // Clients that were told of it come over TCP again.
                let error = failed.err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
                tracing::error!(%address, %error, "HTTP/3 is not spoken any more");
            }
            Some(arrival) = arrivals.recv() => spawn(&worker, arrival),
        }
    }
}

fn spawn<S: Service>(worker: &Rc<Worker<S>>, arrival: NewConnection) {
    let terms = worker.terms();
    let address = arrival.incoming.remote_address();
    let peer = Peer { address: Some(address), scheme: Scheme::Https };
    let Some(share) = Share::take(&terms, Some(address.ip())) else {
        terms.gauges.count_refused();
        worker.service.refused(peer, 0, "too many connections");
        return;
    };
    let seat = worker.table.enter();
    let watch = Arc::clone(seat.watch());
    let task = tokio::task::spawn_local(serve(Rc::clone(worker), terms, arrival, peer, seat, share));
    watch.belongs_to(task.abort_handle());
}

/// One connection: what all its streams share.
struct Connection<S: Service> {
    worker: Rc<Worker<S>>,
    terms: Rc<Terms>,
    peer: Peer,
    transport: Transport,
    purse: Arc<Purse>,
    /// The buffer in which heads become text. It is given up while the connection is idle.
    text: RefCell<HeadText>,
}

/// The transport's connection, which is not left open.
#[derive(Debug)]
struct Transport(quinn::Connection);

impl Drop for Transport {
    fn drop(&mut self) {
        self.0.close(varint(Code::NoError), b"");
    }
}

impl<S: Service> Connection<S> {
    /// Ends what has to end: the connection, or nothing but a stream, which costs its client something.
    fn fail(&self, fault: Fault) {
        match fault {
            Fault::Connection(code) => self.close(code),
            Fault::Gone | Fault::Stream(_) => {
                if !self.purse.pay(purse::ABANDONED, Instant::now()) {
                    self.close(Code::ExcessiveLoad);
                }
            }
        }
    }

    fn close(&self, code: Code) {
        if self.transport.0.close_reason().is_some() {
            return;
        }
        tracing::debug!(peer = ?self.peer.address, ?code, "the client breaks the protocol; closed");
        if code == Code::ExcessiveLoad {
            self.worker.service.refused(self.peer, 0, "a flood of frames");
        }
        self.transport.0.close(varint(code), b"");
    }
}

/// Performs the handshake.
async fn shake(arrival: NewConnection, terms: &Terms) -> Result<(quinn::Connection, endpoint::ConnectionCount), quinn::ConnectionError> {
    let NewConnection { incoming, handshake, connection } = arrival;
    let Some(config) = terms.quic.clone() else { return Err(quinn::ConnectionError::LocallyClosed) };
    let shaken = incoming.accept_with(config)?.await?;
    drop(handshake);
    Ok((shaken, connection))
}

/// Serves one connection until either side has had enough. `share` is given back then.
async fn serve<S: Service>(worker: Rc<Worker<S>>, terms: Rc<Terms>, arrival: NewConnection, peer: Peer, seat: Seat, _share: Share) {
    seat.until(Phase::Head, terms.allowances.header);
    let (connection, _counted) = match shake(arrival, &terms).await {
        Ok(shaken) => shaken,
        Err(error) => {
            tracing::debug!(peer = ?peer.address, %error, "no handshake");
            if matches!(error, quinn::ConnectionError::TransportError(_)) {
                worker.service.refused(peer, 0, "TLS handshake failed");
            }
            return;
        }
    };
    let table = Rc::clone(&worker.table);
    let mut drained = pin!(table.drained());
    drained.as_mut().enable();
    let purse = Arc::new(Purse::new(Instant::now()));
    let shared = Rc::new(Connection { worker, terms, peer, transport: Transport(connection.clone()), purse, text: RefCell::default() });
    let mut driver = Driver {
        shared,
        seat,
        requests: FuturesUnordered::new(),
        controls: FuturesUnordered::new(),
        opened: Rc::default(),
        control: None,
        next_id: 0,
        is_idle: None,
        leaving: table.is_draining(),
    };
    let mut opening = pin!(open_control(&connection, driver.shared.terms.limits.header_bytes));
    let (mut bidirectional, mut unidirectional) = (pin!(connection.accept_bi()), pin!(connection.accept_uni()));
    let mut opens = true;
    // When everything has been said.
    let mut goodbye = pin!(tokio::time::sleep(GOODBYE_MAX));
    if driver.leaving {
        goodbye.as_mut().reset(tokio::time::Instant::now() + goodbye_time(&connection));
    }
    loop {
        driver.keep_time();
        tokio::select! {
            biased;
            Some(()) = driver.requests.next(), if !driver.requests.is_empty() => {}
            accepted = &mut bidirectional => {
                let Ok((send, receive)) = accepted else { break };
                bidirectional.set(connection.accept_bi());
                driver.begin(send, receive);
            }
            Some(()) = driver.controls.next(), if !driver.controls.is_empty() => {}
            accepted = &mut unidirectional => {
                let Ok(receive) = accepted else { break };
                unidirectional.set(connection.accept_uni());
                driver.listen(receive);
            }
            control = &mut opening, if opens => {
                opens = false;
                driver.control = control;
                if driver.leaving { driver.say_goodbye().await; }
            }
            () = &mut drained, if !driver.leaving => {
                driver.leaving = true;
                driver.say_goodbye().await;
                goodbye.as_mut().reset(tokio::time::Instant::now() + goodbye_time(&connection));
            }
            () = &mut goodbye, if driver.leaving && driver.requests.is_empty() => break,
        }
    }
    // Those who answer find out that nobody listens, and tell the log.
    driver.seat.until(Phase::Write, driver.shared.terms.allowances.linger);
    while driver.requests.next().await.is_some() {}
    drop(driver);
    // Whoever drives the connection has to run once more, for the client to hear of its end.
    tokio::task::yield_now().await;
}

fn goodbye_time(connection: &quinn::Connection) -> Duration {
    (connection.rtt() * GOODBYE_ROUND_TRIPS).clamp(GOODBYE_MIN, GOODBYE_MAX)
}

/// Opens our control stream. `None` means that the client is gone, or lets us open none, which is its own loss.
async fn open_control(connection: &quinn::Connection, field_section_max: usize) -> Option<quinn::SendStream> {
    let mut control = connection.open_uni().await.ok()?;
    control.write_all(&control::opening(field_section_max)).await.ok()?;
    Some(control)
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Driver<S: Service> {
    shared: Rc<Connection<S>>,
    seat: Seat,
    requests: FuturesUnordered<Task>,
    /// The streams in one direction that are listened to: at most [`UNIDIRECTIONAL_MAX`].
    controls: FuturesUnordered<Task>,
    opened: Rc<UniqueStreams>,
    /// Our control stream: it stays open for as long as the connection.
    control: Option<quinn::SendStream>,
    /// The id after the last request that was taken up.
    next_id: u64,
    is_idle: Option<bool>,
    leaving: bool,
}

impl<S: Service> Driver<S> {
    fn begin(&mut self, mut send: quinn::SendStream, mut receive: quinn::RecvStream) {
        if self.leaving {
            // RFC 9114 §5.2: it may be sent again elsewhere.
            let _ = (receive.stop(varint(Code::RequestRejected)), send.reset(varint(Code::RequestRejected)));
            return;
        }
        self.next_id = self.next_id.max(u64::from(quinn::VarInt::from(send.id())) + 4);
        self.requests.push(Box::pin(request::serve(Rc::clone(&self.shared), send, receive)));
    }

    fn listen(&mut self, receive: quinn::RecvStream) {
        if !self.shared.purse.pay(purse::STREAM, Instant::now()) {
            return self.shared.close(Code::ExcessiveLoad);
        }
        let (shared, opened) = (Rc::clone(&self.shared), Rc::clone(&self.opened));
        self.controls.push(Box::pin(async move {
            let mut listener = Listener::new(Receiving::new(receive), opened, Arc::clone(&shared.purse));
            match poll_fn(|cx| listener.poll(cx)).await {
                Ok(()) => listener.source().stop(Code::StreamCreationError),
                Err(fault) => shared.fail(fault),
            }
        }));
    }

    /// Says goodbye: requests under way are answered, and the client sends its next ones elsewhere (RFC 9114 §5.2).
    async fn say_goodbye(&mut self) {
        let Some(control) = &mut self.control else { return };
        let goaway = control::goaway(self.next_id);
        // A few bytes, for which there is room unless the client leaves none; then it is not told.
        let mut write = pin!(control.write_all(&goaway));
        poll_fn(|cx| std::task::Poll::Ready(write.as_mut().poll(cx).is_ready())).await;
    }

    fn keep_time(&mut self) {
        let is_idle = self.requests.is_empty();
        if self.is_idle == Some(is_idle) {
            return;
        }
        self.is_idle = Some(is_idle);
        if is_idle {
            self.shared.text.take();
            self.seat.until(Phase::Quiet, self.shared.terms.allowances.idle);
        } else {
            // Each request has deadlines of its own.
            self.seat.in_service();
        }
    }
}
