//! The UDP sockets of a worker, and how connections are made with them.

use std::{
    cell::RefCell,
    collections::{HashMap, hash_map::Entry},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use quinn::{
    ClientConfig, Connecting, ConnectionError, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt,
    crypto::rustls::QuicClientConfig,
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use crate::{engine::Tls, plan::Plan, record::ErrorClass};

/// The most sockets of a worker. A server with several sockets on one port chooses among them by the client's address and port, so that all
/// connections of one socket would meet one thread of it.
const SOCKETS_MAX: u64 = 64;

/// The windows for a stream and for a connection: answers never wait for us.
pub(super) const WINDOW: u32 = 1 << 30;

/// The bytes that a socket may buffer in either direction, if the system allows as much (`net.core.rmem_max`). A server that answers thousands of requests
/// in one moment, after a stall, sends more than the usual 208 KiB: what is lost then comes a second later, and would be counted as the server's.
const SOCKET_BUFFER: usize = 8 << 20;

/// The time by which a connection may be idle for longer than a request may take.
const IDLE: Duration = Duration::from_secs(30);

/// H3_NO_ERROR (RFC 9114 §8.1).
pub(super) const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// CRYPTO_ERROR (RFC 9000 §20.1): an alert of TLS is added to it. No_application_protocol is the alert 120.
const CRYPTO_ERRORS: std::ops::Range<u64> = 0x100..0x200;
const NO_APPLICATION_PROTOCOL: u64 = 0x178;

/// The sockets of a worker, each of which is made when the first connection needs it.
pub(super) struct Endpoints {
    resuming: ClientConfig,
    full: ClientConfig,
    sources: Vec<IpAddr>,
    by_address: RefCell<HashMap<(IpAddr, u64), Endpoint>>,
}

impl Endpoints {
    /// Makes the sockets of a worker; none is open yet.
    ///
    /// # Errors
    /// Says why QUIC cannot be spoken.
    pub(super) fn new(plan: &Plan, tls: Option<&Tls>) -> Result<Self, String> {
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into());
        let idle =
            (plan.timeout + IDLE).try_into().map_err(|_| format!("a timeout of {} s is too long for QUIC", plan.timeout.as_secs()))?;
        transport.max_idle_timeout(Some(idle));
        let transport = Arc::new(transport);
        let configs = tls.ok_or("HTTP/3 needs https URLs")?.configs();
        let config = |tls: &Arc<rustls::ClientConfig>| {
            let crypto = QuicClientConfig::try_from(Arc::clone(tls)).map_err(|error| error.to_string())?;
            let mut config = ClientConfig::new(Arc::new(crypto));
            config.transport_config(Arc::clone(&transport));
            Ok::<_, String>(config)
        };
        let sources = plan.connections.sources.clone();
        Ok(Self { resuming: config(configs[0])?, full: config(configs[1])?, sources, by_address: RefCell::default() })
    }

    /// Begins to connect. Fails with what the system says, if it is the system that has no socket.
    pub(super) fn connect(&self, address: SocketAddr, host: &str, number: u64, resumes: bool) -> Result<Connecting, Option<io::Error>> {
        let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let count = self.sources.len().max(1) as u64;
        let source = usize::try_from(number % count).ok().and_then(|at| self.sources.get(at).copied()).unwrap_or(any);
        let mut endpoints = self.by_address.borrow_mut();
        let key = (source, number / count % SOCKETS_MAX);
        let endpoint = match endpoints.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(client(source).map_err(Some)?),
        };
        let config = if resumes { &self.resuming } else { &self.full };
        endpoint.connect_with(config.clone(), address, host).map_err(|_| None)
    }

    /// Ends all connections.
    pub(super) fn close(&self) {
        for endpoint in self.by_address.borrow().values() {
            endpoint.close(NO_ERROR, b"");
        }
    }
}

/// Makes an endpoint with a socket of this address.
fn client(source: IpAddr) -> io::Result<Endpoint> {
    let socket = UdpSocket::bind(SocketAddr::new(source, 0))?;
    // The system cuts what is more than it allows.
    let _ = set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
    let _ = set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
    Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))
}

/// Tells whether the server has said that it does not offer HTTP/3.
pub(super) fn lacks_http3(error: &ConnectionError) -> bool {
    code(error) == Some(NO_APPLICATION_PROTOCOL)
}

/// Returns the class of a connection that could not be made.
pub(super) fn class(error: &ConnectionError) -> ErrorClass {
    match (error, code(error)) {
        (ConnectionError::VersionMismatch, _) | (_, Some(NO_APPLICATION_PROTOCOL)) => ErrorClass::Protocol,
        (_, Some(code)) if CRYPTO_ERRORS.contains(&code) => ErrorClass::Tls,
        (ConnectionError::TransportError(_), _) => ErrorClass::Protocol,
        (ConnectionError::ConnectionClosed(_), Some(CONNECTION_REFUSED)) => ErrorClass::Refused,
        (ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) | ConnectionError::Reset, _) => ErrorClass::Reset,
        (ConnectionError::TimedOut, _) => ErrorClass::Timeout,
        (ConnectionError::LocallyClosed | ConnectionError::CidsExhausted, _) => ErrorClass::Connect,
    }
}

/// CONNECTION_REFUSED (RFC 9000 §20.1).
const CONNECTION_REFUSED: u64 = 2;

fn code(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::TransportError(error) => Some(error.code.into()),
        ConnectionError::ConnectionClosed(close) => Some(close.error_code.into()),
        _ => None,
    }
}
