//! A byte stream: TCP, with or without TLS, or a Unix socket.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

use crate::tls::Session;

/// An accepted connection's socket.
#[derive(Debug)]
pub(crate) struct Stream {
    io: Io,
    /// Whether part of a head has come. A connection that is given up in this state is told why: dropping it is all that the sweep can do.
    pub(crate) head_begun: bool,
}

#[derive(Debug)]
enum Io {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// A session of TLS. It is in a box: a session is a kilobyte, and most streams of a moment may be plain ones.
    Tls(Box<Session>),
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.head_begun {
            self.write_now(HEAD_TIMEOUT);
        }
    }
}

const HEAD_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

impl Stream {
    pub(crate) const fn tcp(stream: TcpStream) -> Self {
        Self { io: Io::Tcp(stream), head_begun: false }
    }

    pub(crate) const fn unix(stream: UnixStream) -> Self {
        Self { io: Io::Unix(stream), head_begun: false }
    }

    pub(crate) fn tls(session: Session) -> Self {
        Self { io: Io::Tls(Box::new(session)), head_begun: false }
    }

    /// Reads what is there. It goes through tokio's `AsyncRead`, which knows that a short read has emptied the socket and so saves the
    /// second `read` that would only say so.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Io::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buf),
            Io::Tls(session) => return session.poll_read(cx, buf.initialize_unfilled()),
        })?;
        Poll::Ready(Ok(buf.filled().len()))
    }

    /// Writes some of `slices`. Only [`Stream::poll_flush`] tells whether it has left.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match (&mut self.io, only(slices)) {
            (Io::Tcp(stream), Some(slice)) => Pin::new(stream).poll_write(cx, slice),
            (Io::Tcp(stream), None) => Pin::new(stream).poll_write_vectored(cx, slices),
            (Io::Unix(stream), Some(slice)) => Pin::new(stream).poll_write(cx, slice),
            (Io::Unix(stream), None) => Pin::new(stream).poll_write_vectored(cx, slices),
            (Io::Tls(session), _) => session.poll_write(cx, slices),
        }
    }

    /// Writes as [`Stream::poll_write`] does, but TLS keeps it for [`Stream::poll_flush`] while there is room, so that many pieces leave at once.
    pub(crate) fn poll_keep(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tls(session) => session.poll_keep(cx, slices),
            Io::Tcp(_) | Io::Unix(_) => self.poll_write(cx, slices),
        }
    }

    /// Writes some of `slices` if that needs no waiting; `WouldBlock` if it does. It is for an answer inside the read that brought its request: a
    /// socket that has just been read from can nearly always take one, and nobody has to be woken if it cannot.
    pub(crate) fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match (&mut self.io, only(slices)) {
            (Io::Tcp(stream), Some(slice)) => stream.try_write(slice),
            (Io::Tcp(stream), None) => stream.try_write_vectored(slices),
            (Io::Unix(stream), Some(slice)) => stream.try_write(slice),
            (Io::Unix(stream), None) => stream.try_write_vectored(slices),
            (Io::Tls(session), _) => session.try_write(slices),
        }
    }

    /// Returns whether everything that was written is with the kernel.
    pub(crate) fn is_flushed(&self) -> bool {
        match &self.io {
            Io::Tcp(_) | Io::Unix(_) => true,
            Io::Tls(session) => session.is_flushed(),
        }
    }

    /// Hands what was written to the kernel.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(_) | Io::Unix(_) => Poll::Ready(Ok(())),
            Io::Tls(session) => session.poll_flush(cx),
        }
    }

    /// Returns the socket, where bytes may go to it past us: it is TCP, and nothing lies between.
    pub(crate) const fn as_plain_tcp(&self) -> Option<&TcpStream> {
        if let Io::Tcp(stream) = &self.io { Some(stream) } else { None }
    }

    /// Ends our direction.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Tls(session) => session.poll_shutdown(cx),
        }
    }

    /// Writes what fits now, for a last word to a client that is being given up. It goes past tokio, which takes a socket that it has not heard of
    /// for one that cannot be written to: the newly accepted ones above all.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) {
        let _ = match &mut self.io {
            Io::Tcp(stream) => SockRef::from(&*stream).send(bytes),
            Io::Unix(stream) => SockRef::from(&*stream).send(bytes),
            Io::Tls(session) => return session.write_now(bytes),
        };
    }

    /// Resolves when the client has gone. Nothing is lost of what it has sent; once bytes of a further request wait, this can no longer be seen and the
    /// future stays pending. A Unix socket cannot be looked into: there the next write tells.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.io {
            Io::Tcp(stream) => {
                let mut byte = [0_u8; 1];
                let mut buf = ReadBuf::new(&mut byte);
                match ready!(stream.poll_peek(cx, &mut buf)) {
                    Ok(0) | Err(_) => Poll::Ready(()),
                    Ok(_) => Poll::Pending,
                }
            }
            Io::Unix(_) => Poll::Pending,
            Io::Tls(session) => session.poll_gone(cx),
        }
    }
}

/// Returns the slice with something in it, if there is one alone: sending it costs the kernel 600 instructions less than a vector of it.
fn only<'a>(slices: &'a [IoSlice<'_>]) -> Option<&'a [u8]> {
    let mut full = slices.iter().filter(|slice| !slice.is_empty());
    full.next().filter(|_| full.next().is_none()).map(|slice| &**slice)
}
