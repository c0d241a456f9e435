//! Connects a stream to an address: names, sockets, TLS.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    time::{Instant, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Address, ServerOptions};
use crate::{Fault, OriginError};

/// Connects within `connect_timeout`, which covers the name, every address behind it, and TLS.
pub(super) async fn connect(address: &Address, options: &ServerOptions) -> Result<Stream, OriginError> {
    let deadline = Instant::now() + options.connect_timeout;
    match address {
        Address::Unix(path) => {
            let connected = timeout_at(deadline, UnixStream::connect(path)).await;
            let stream = in_time(connected, address)?.map_err(|e| refused(address, e))?;
            Ok(Stream::Unix(stream))
        }
        Address::Tcp { tls, host, port } => {
            let tcp = connect_tcp(address, host, *port, deadline).await?;
            // Head and body leave in separate writes: without this the second waits for the first one's acknowledgement.
            tcp.set_nodelay(true).map_err(|e| refused(address, e))?;
            if !tls {
                return Ok(Stream::Tcp(tcp));
            }
            let name = ServerName::try_from(host.clone())
                .map_err(|e| OriginError::new(Fault::TlsError, format!("{address}: not a name a certificate can have")).because(e))?;
            let handshake = TlsConnector::from(Arc::clone(&options.tls)).connect(name, tcp);
            let stream = in_time(timeout_at(deadline, handshake).await, address)?
                .map_err(|e| OriginError::new(Fault::TlsError, format!("TLS handshake with {address}")).because(e))?;
            Ok(Stream::Tls(Box::new(stream)))
        }
    }
}

/// Tries every address of the name in turn. Each gets an equal share of the time that is left, so that a dead IPv6 route does not eat
/// the time of the IPv4 address behind it.
async fn connect_tcp(address: &Address, host: &str, port: u16, deadline: Instant) -> Result<TcpStream, OriginError> {
    let resolved = timeout_at(deadline, tokio::net::lookup_host((host, port))).await;
    let resolved: Vec<SocketAddr> =
        in_time(resolved, address)?.map_err(|e| OriginError::new(Fault::DnsError, format!("resolve {host}")).because(e))?.collect();
    let mut last = OriginError::new(Fault::DnsError, format!("{host} has no address"));
    for (tried, socket) in resolved.iter().enumerate() {
        let now = Instant::now();
        let left = u32::try_from(resolved.len() - tried).unwrap_or(u32::MAX);
        let share = now + deadline.saturating_duration_since(now) / left;
        match in_time(timeout_at(share, TcpStream::connect(socket)).await, address) {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = refused(address, e),
            Err(timeout) => last = timeout,
        }
    }
    Err(last)
}

fn in_time<T>(result: Result<T, tokio::time::error::Elapsed>, address: &Address) -> Result<T, OriginError> {
    result.map_err(|_| OriginError::new(Fault::ConnectionTimeout, format!("connect to {address}")))
}

fn refused(address: &Address, error: io::Error) -> OriginError {
    // No descriptor is left in this process or on this machine (Linux: ENFILE, EMFILE), or no port: there is nothing to connect from.
    let is_ours = matches!(error.raw_os_error(), Some(23 | 24)) || error.kind() == io::ErrorKind::AddrNotAvailable;
    let fault = match error.kind() {
        // The queue of a Unix socket is full: it is there, and busy.
        io::ErrorKind::WouldBlock => Fault::Overloaded,
        _ if is_ours => Fault::Overloaded,
        io::ErrorKind::TimedOut => Fault::ConnectionTimeout,
        _ => Fault::ConnectionRefused,
    };
    OriginError::new(fault, format!("connect to {address}")).because(error)
}

/// A connected socket of one of the three sorts. An enum, so that a read is a branch and not a virtual call.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

macro_rules! each {
    ($stream:expr, $name:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($name) => $call,
            Stream::Tls($name) => $call,
            Stream::Unix($name) => $call,
        }
    };
}

impl Stream {
    pub(crate) const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Acknowledges at once what was read over TCP. A server that leaves Nagle's algorithm on waits for that before it sends the rest, and the kernel puts it
    /// off for 40 ms where it expects that something will be sent soon.
    pub(crate) fn acknowledge(&self) {
        if let Self::Tcp(stream) = self {
            // It is not a failure where that is not to be had: the rest comes later.
            let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, s => Pin::new(s).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(&mut *self, s => Pin::new(s).poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, s => Pin::new(s).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, s => Pin::new(s).poll_shutdown(cx))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        each!(&mut *self, s => Pin::new(s).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        each!(self, s => s.is_write_vectored())
    }
}
