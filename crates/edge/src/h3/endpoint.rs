//! Where QUIC is spoken (RFC 9000): one socket for each address, and all workers behind it.
//!
//! A connection may move from one address of its client to another, so the kernel cannot tell by addresses whose it is, as it does for TCP.
//! One worker reads the socket and looks no further than at the ids in packets; connections are handed to the worker that has fewest, which
//! shakes hands, encrypts and sends by itself.
//!
//! Two things are the library's and not ours to bound. Packets wait for their connection's worker in a queue that has no limit; what honest
//! clients send is limited by windows, and a worker empties the queue whenever it has its turn. And an address that has not been validated may
//! be sent a part of a datagram beyond the three times of RFC 9000 §8.1, as whole datagrams are counted (quinn's issue 1082).

use std::{
    future::Future,
    io,
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use quinn::{
    AsyncTimer, AsyncUdpSocket, Endpoint, EndpointConfig, IdleTimeout, Incoming, Runtime, ServerConfig, TokioRuntime, TransportConfig,
};
use socket2::{Domain, Protocol, Type};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::{CONNECTION_WINDOW, SEND_WINDOW, STREAM_WINDOW, STREAMS_MAX, UNIDIRECTIONAL_MAX};
use crate::{limits::Limits, tls::Tls};

/// Connections that may wait for each worker to take them up.
const ARRIVALS: usize = 256;

/// The number of handshakes under way, of all workers together, from which a new client must prove its address before anything is computed for it
/// (RFC 9000 §8.1.2): one round trip more for those who come, and nothing to be had for those who only pretend.
const RETRY_FROM: usize = 64;

/// The most handshakes under way on one worker; further ones are refused.
const HANDSHAKES_MAX: usize = 512;

/// The number of bytes that the socket may buffer in either direction while its worker does something else, if the system allows as much.
const SOCKET_BUFFER: usize = 4 << 20;

/// The most bytes of packets that are kept for connections which no worker has taken up yet: for one connection, and for all.
const EARLY_BYTES: u64 = 32 << 10;
const EARLY_BYTES_ALL: u64 = 4 << 20;

/// Runs what drives connections, so that it is known when all of them have ended.
#[derive(Debug, Clone, Default)]
struct Drivers(TaskTracker);

impl Runtime for Drivers {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }
}

/// One worker's part of an address where QUIC is spoken.
#[derive(Debug)]
pub struct Quic {
    address: SocketAddr,
    pub(super) arrivals: mpsc::Receiver<NewConnection>,
    pub(super) door: Option<Door>,
    drivers: Drivers,
}

impl Quic {
    /// Returns the address where QUIC is spoken.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the tasks that drive the connections, so that a shutdown can wait for them.
    pub(super) fn drivers(&self) -> TaskTracker {
        self.drivers.0.clone()
    }
}

/// Binds `address` for so many workers; one of them gets the socket with its part.
///
/// # Errors
/// When the address is taken, not ours, or not permitted.
pub(crate) fn bind(address: SocketAddr, workers: usize) -> io::Result<Vec<Quic>> {
    share(quic_socket(address)?, workers)
}

/// Binds a socket where QUIC is to be spoken. It is public for `examples/http3_floor.rs`, which measures QUIC alone on such a socket.
///
/// # Errors
/// Fails when the address is taken, not ours, or not permitted.
pub fn quic_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // As much as there is: with less, it is slower.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Shares a socket that is bound among so many workers; one of them gets it with its part.
///
/// # Errors
/// When the system does not say where it is bound.
pub(crate) fn share(socket: UdpSocket, workers: usize) -> io::Result<Vec<Quic>> {
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let drivers = Drivers::default();
    let (desks, arrivals): (Vec<_>, Vec<_>) = (0..workers)
        .map(|_| {
            let (sender, arrivals) = mpsc::channel(ARRIVALS);
            (Desk { sender, connections: Arc::default() }, arrivals)
        })
        .unzip();
    let mut door = Some(Door { socket, desks, handshakes: Arc::default(), drivers: drivers.clone() });
    let part = |arrivals| Quic { address, arrivals, door: door.take(), drivers: drivers.clone() };
    Ok(arrivals.into_iter().map(part).collect())
}

/// The socket, and whom its connections are handed to.
#[derive(Debug)]
pub(super) struct Door {
    socket: UdpSocket,
    desks: Vec<Desk>,
    handshakes: Arc<AtomicUsize>,
    drivers: Drivers,
}

/// A worker, as the endpoint sees it that gives connections to workers.
#[derive(Debug)]
struct Desk {
    sender: mpsc::Sender<NewConnection>,
    connections: Arc<AtomicUsize>,
}

/// Counted while it lives.
#[derive(Debug)]
pub(super) struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A connection that a worker is to take up. Dropped, it is refused.
#[derive(Debug)]
pub(super) struct NewConnection {
    pub(super) incoming: Incoming,
    /// Counts the handshake until it is done.
    pub(super) handshake: ConnectionCount,
    /// Counts the connection for its worker until it ends.
    pub(super) connection: ConnectionCount,
}

impl Door {
    /// Lets clients in until it is dropped. Connections go on afterwards.
    pub(super) async fn open(self, config: ServerConfig) -> io::Result<()> {
        let Self { socket, desks, handshakes, drivers } = self;
        let handshakes_max = HANDSHAKES_MAX * desks.len();
        let endpoint = OpenEndpoint(Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(drivers))?);
        while let Some(incoming) = endpoint.0.accept().await {
            let under_way = handshakes.load(Relaxed);
            if under_way >= RETRY_FROM && !incoming.remote_address_validated() {
                // It may always, as it has not been validated.
                let _ = incoming.retry();
            } else if under_way >= handshakes_max {
                incoming.refuse();
            } else if let Some(desk) = desks.iter().min_by_key(|desk| desk.connections.load(Relaxed)) {
                let (handshake, connection) = (ConnectionCount::new(&handshakes), ConnectionCount::new(&desk.connections));
                // A worker that has fewest and takes none up is stuck: whoever is turned away tries again.
                drop(desk.sender.try_send(NewConnection { incoming, handshake, connection }));
            }
        }
        Ok(())
    }
}

/// An endpoint; dropped, it lets nobody in any more.
struct OpenEndpoint(Endpoint);

impl Drop for OpenEndpoint {
    fn drop(&mut self) {
        self.0.set_server_config(None);
    }
}

/// Returns the settings with which QUIC is spoken under these limits. It is public for `examples/http3_floor.rs`, which measures QUIC alone with
/// the same settings.
#[must_use]
pub fn quic_settings(tls: &Tls, limits: &Limits) -> ServerConfig {
    config(tls.quic(), limits)
}

/// Makes the configuration of QUIC for these limits.
pub(super) fn config(base: &ServerConfig, limits: &Limits) -> ServerConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(STREAMS_MAX.into())
        .max_concurrent_uni_streams(UNIDIRECTIONAL_MAX.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(silence_max(limits)).ok());
    let mut config = base.clone();
    config
        .transport_config(Arc::new(transport))
        .max_incoming(ARRIVALS)
        .incoming_buffer_size(EARLY_BYTES)
        .incoming_buffer_size_total(EARLY_BYTES_ALL);
    config
}

/// Returns how long a client may send nothing at all before it counts as gone. One that waits for an answer says nothing either: so it is longer
/// than a connection without requests is kept.
fn silence_max(limits: &Limits) -> Duration {
    limits.idle_timeout.max(limits.write_timeout) + limits.write_timeout
}
