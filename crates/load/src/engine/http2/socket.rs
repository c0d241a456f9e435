//! Sockets of HTTP/2: TCP or Unix, plain or with TLS.

use std::{
    io,
    os::fd::OwnedFd,
    pin::Pin,
    task::{Context, Poll},
};

use rustls::{AlertDescription, HandshakeKind};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    engine::{Clock, Tls, target::Target},
    record::Handshake,
};

/// A connected socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connected socket with or without TLS.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

/// The reason why there is no HTTP/2 over TLS.
#[derive(Debug)]
pub(super) enum NotSecured {
    /// The server does not offer HTTP/2.
    NoHttp2,
    /// The handshake has failed.
    Handshake,
    /// The connection was reset within the handshake: a server that is killed does so.
    Reset,
}

/// Waits until a connection that was begun is made.
pub(super) async fn connected(socket: OwnedFd, target: &Target) -> io::Result<Socket> {
    match target {
        Target::Address(_) => {
            let stream = TcpStream::from_std(socket.into())?;
            stream.writable().await?;
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
            stream.set_nodelay(true)?;
            Ok(Socket::Tcp(stream))
        }
        // These are made at once, or not at all.
        Target::Unix(_) => UnixStream::from_std(socket.into()).map(Socket::Unix),
    }
}

/// Makes a TLS handshake, and checks that the server will speak HTTP/2.
pub(super) async fn secure(socket: Socket, tls: &Tls, origin: u16, number: u64, clock: &Clock) -> Result<(Stream, Handshake), NotSecured> {
    let began = clock.now();
    let connector = TlsConnector::from(std::sync::Arc::clone(tls.config(number)));
    let stream = connector.connect(tls.name(origin).clone(), socket).await.map_err(|error| {
        let alert = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match alert {
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => NotSecured::NoHttp2,
            None if error.kind() == io::ErrorKind::ConnectionReset => NotSecured::Reset,
            _ => NotSecured::Handshake,
        }
    })?;
    let session = stream.get_ref().1;
    if session.alpn_protocol() != Some(b"h2") {
        return Err(NotSecured::NoHttp2);
    }
    let resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    let took = clock.now().saturating_sub(began);
    Ok((Stream::Tls(Box::new(stream)), Handshake { took, resumed }))
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Sockets keep nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Stream {
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buffer),
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }
}
