//! Listeners: one socket per worker on the same port (`SO_REUSEPORT`), so that the kernel spreads connections without a shared queue.

use std::{
    fmt, io,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::net::UnixListener,
    path::PathBuf,
};

use socket2::{Domain, Protocol, Type};

use crate::h3::endpoint::{self, Quic};

/// The connections that may wait to be accepted on each listener.
const BACKLOG: i32 = 4096;

/// A place to listen at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Socket {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// An address and port where TLS is spoken; port 0 lets the system choose.
    Tls(SocketAddr),
    /// A UDP address and port where HTTP/3 is spoken; port 0 lets the system choose.
    Quic(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) | Self::Tls(address) => write!(f, "{address}"),
            Self::Quic(address) => write!(f, "{address} (UDP)"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A bound socket that has not been given to a runtime yet.
#[derive(Debug)]
pub enum Listener {
    /// A socket of TCP, for plain HTTP.
    Tcp(TcpListener),
    /// A socket of TCP, for TLS.
    Tls(TcpListener),
    /// A socket of UDP, for QUIC.
    Quic(Quic),
    /// A Unix socket.
    Unix(UnixListener),
}

/// The error of a socket that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {socket}: {}", hint(source))]
pub struct BindError {
    /// The place.
    pub socket: Socket,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

impl BindError {
    /// Returns whether the machine has no addresses of this family at all: its IPv6 is off.
    #[must_use]
    pub fn lacks_family(&self) -> bool {
        let no_family = self.source.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
        no_family || self.source.kind() == io::ErrorKind::AddrNotAvailable && is_every_address(&self.socket)
    }
}

const fn is_every_address(socket: &Socket) -> bool {
    match socket {
        Socket::Tcp(address) | Socket::Tls(address) | Socket::Quic(address) => address.ip().is_unspecified(),
        Socket::Unix(_) => false,
    }
}

fn hint(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there already".to_owned(),
        io::ErrorKind::PermissionDenied => "not permitted (ports below 1024 need root or CAP_NET_BIND_SERVICE)".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => error.to_string(),
    }
}

impl Listener {
    /// Returns where it listens, with the port that the system chose.
    #[must_use]
    pub fn socket(&self) -> Option<Socket> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok().map(Socket::Tcp),
            Self::Tls(listener) => listener.local_addr().ok().map(Socket::Tls),
            Self::Quic(quic) => Some(Socket::Quic(quic.address())),
            Self::Unix(listener) => listener.local_addr().ok()?.as_pathname().map(|path| Socket::Unix(path.to_owned())),
        }
    }
}

/// Binds `socket` once for each of `workers`.
///
/// The first socket is bound without `SO_REUSEPORT`, to see whether somebody else has the port: with it, a second server would become a
/// silent partner that gets half of the connections. A Unix socket is bound once and cloned; a stale one left by a killed server is removed.
///
/// # Errors
/// Fails when the address is taken, not ours, or not permitted.
pub fn bind(socket: &Socket, workers: usize) -> Result<Vec<Listener>, BindError> {
    let listeners = match socket {
        Socket::Tcp(address) => bind_tcp(*address, workers, Listener::Tcp),
        Socket::Tls(address) => bind_tcp(*address, workers, Listener::Tls),
        Socket::Quic(address) => endpoint::bind(*address, workers).map(|parts| parts.into_iter().map(Listener::Quic).collect()),
        Socket::Unix(path) => bind_unix(path, workers),
    };
    listeners.map_err(|source| BindError { socket: socket.clone(), source })
}

/// A socket that another process has bound and keeps open, such as systemd over a restart.
#[derive(Debug)]
pub enum PassedSocket {
    /// A socket of TCP, with or without TLS.
    Tcp(TcpListener),
    /// A socket of UDP, for QUIC.
    Udp(UdpSocket),
    /// A Unix socket.
    Unix(UnixListener),
}

impl PassedSocket {
    /// Names the place where it is bound, as somebody would write it. `None` means that it has no name.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Tcp(listener) => Some(listener.local_addr().ok()?.to_string()),
            Self::Udp(socket) => Some(format!("{} (UDP)", socket.local_addr().ok()?)),
            Self::Unix(listener) => Some(format!("unix:{}", listener.local_addr().ok()?.as_pathname()?.display())),
        }
    }

    /// Tells whether it is what would be bound for `socket`.
    #[must_use]
    pub fn is_for(&self, socket: &Socket) -> bool {
        match (self, socket) {
            (Self::Tcp(listener), Socket::Tcp(address) | Socket::Tls(address)) => listener.local_addr().is_ok_and(|own| own == *address),
            (Self::Udp(own), Socket::Quic(address)) => own.local_addr().is_ok_and(|own| own == *address),
            (Self::Unix(listener), Socket::Unix(path)) => listener.local_addr().is_ok_and(|own| own.as_pathname() == Some(path)),
            _ => false,
        }
    }

    /// Tells whether it is for IPv4 clients too, though its address is of IPv6: their addresses would look like others.
    #[must_use]
    pub fn mixes_families(&self) -> bool {
        let mixes = |socket: socket2::SockRef<'_>, address: io::Result<SocketAddr>| {
            address.is_ok_and(|address| address.is_ipv6() && address.ip().is_unspecified()) && socket.only_v6().is_ok_and(|only| !only)
        };
        match self {
            Self::Tcp(listener) => mixes(socket2::SockRef::from(listener), listener.local_addr()),
            Self::Udp(socket) => mixes(socket2::SockRef::from(socket), socket.local_addr()),
            Self::Unix(_) => false,
        }
    }

    /// Shares it among so many workers, as `socket`: the queue of connections that wait is one, and stays with whoever keeps the socket.
    ///
    /// # Errors
    /// Fails when the system refuses to duplicate it, or it is not a socket for this.
    pub fn share(self, socket: &Socket, workers: usize) -> Result<Vec<Listener>, BindError> {
        let listeners = match (self, socket) {
            (Self::Tcp(listener), Socket::Tcp(_)) => share_tcp(&listener, workers, Listener::Tcp),
            (Self::Tcp(listener), Socket::Tls(_)) => share_tcp(&listener, workers, Listener::Tls),
            (Self::Udp(udp), Socket::Quic(_)) => endpoint::share(udp, workers).map(|parts| parts.into_iter().map(Listener::Quic).collect()),
            (Self::Unix(listener), Socket::Unix(_)) => share_unix(listener, workers),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        };
        listeners.map_err(|source| BindError { socket: socket.clone(), source })
    }
}

fn share_tcp(listener: &TcpListener, workers: usize, kind: fn(TcpListener) -> Listener) -> io::Result<Vec<Listener>> {
    listener.set_nonblocking(true)?;
    (0..workers).map(|_| listener.try_clone().map(kind)).collect()
}

fn share_unix(first: UnixListener, workers: usize) -> io::Result<Vec<Listener>> {
    first.set_nonblocking(true)?;
    let mut listeners = Vec::with_capacity(workers);
    for _ in 1..workers {
        listeners.push(Listener::Unix(first.try_clone()?));
    }
    listeners.push(Listener::Unix(first));
    Ok(listeners)
}

fn bind_tcp(address: SocketAddr, workers: usize, kind: fn(TcpListener) -> Listener) -> io::Result<Vec<Listener>> {
    let mut address = address;
    if address.port() != 0 {
        tcp_socket(address, false)?;
    }
    let mut listeners = Vec::with_capacity(workers);
    for _ in 0..workers {
        let socket = tcp_socket(address, true)?;
        socket.listen(BACKLOG)?;
        let listener: TcpListener = socket.into();
        address = listener.local_addr()?;
        listeners.push(kind(listener));
    }
    Ok(listeners)
}

fn tcp_socket(address: SocketAddr, shared: bool) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn bind_unix(path: &PathBuf, workers: usize) -> io::Result<Vec<Listener>> {
    let first = match UnixListener::bind(path) {
        Ok(listener) => listener,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        Err(error) => return Err(error),
    };
    share_unix(first, workers)
}

/// Returns whether a socket's file is there and nobody answers on it.
fn is_stale(path: &PathBuf) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_machine_without_ipv6_is_told_from_a_wrong_address() {
        let lacks = |address: &str, errno: Errno| {
            let socket = Socket::Tcp(address.parse().expect("an address"));
            BindError { socket, source: errno.into() }.lacks_family()
        };
        assert!(lacks("[::]:80", Errno::AFNOSUPPORT) && lacks("[::]:80", Errno::ADDRNOTAVAIL));
        assert!(!lacks("[::]:80", Errno::ADDRINUSE) && !lacks("[2001:db8::1]:80", Errno::ADDRNOTAVAIL));
    }
}
