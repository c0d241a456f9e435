//! An encrypted byte stream: a TCP connection and its keys.

use std::{
    io::{self, IoSlice, Read, Write},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustls::ServerConnection;
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The most encrypted bytes that may wait for the socket; more is taken only when that has left. With the bytes that one read leaves
/// undecrypted (16 KiB and a bit), this is the worst case of a connection.
const SENDABLE_MAX: usize = 64 * 1024;

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct Session {
    io: TcpStream,
    tls: ServerConnection,
    /// Whether the client has said, or shown, that it sends no more.
    ended: bool,
}

impl Session {
    pub(super) fn new(io: TcpStream, mut tls: ServerConnection) -> Self {
        tls.set_buffer_limit(Some(SENDABLE_MAX));
        Self { io, tls, ended: false }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(buf) {
                Ok(n) => {
                    self.ended |= n == 0;
                    return Poll::Ready(Ok(n));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client is gone without a goodbye. Its own framing tells whether a message was cut off (RFC 9112 §9.8).
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.ended = true;
                    return Poll::Ready(Ok(0));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            if self.poll_receive(cx)?.is_pending() {
                // Waiting data leaves while we wait: tickets, and the rest of what was written.
                let _ = self.poll_flush(cx)?;
                return Poll::Pending;
            }
        }
    }

    /// Reads once from the socket and decrypts what came.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.tls.read_tls(&mut Socket { io: &mut self.io, cx }) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
        if let Err(error) = self.tls.process_new_packets() {
            // The client gets its alert, if that can leave at once.
            self.send_now();
            self.ended = true;
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        // Waiting data goes first: with a nearly full buffer, records would be of any length but a good one.
        ready!(self.poll_flush(cx))?;
        let written = self.tls.writer().write_vectored(slices)?;
        let _ = self.poll_flush(cx)?;
        Poll::Ready(Ok(written))
    }

    /// Encrypts some of `slices` and keeps it for the next flush, as long as there is room.
    pub(crate) fn poll_keep(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let kept = self.tls.writer().write_vectored(slices)?;
        if kept > 0 {
            return Poll::Ready(Ok(kept));
        }
        self.poll_write(cx, slices)
    }

    /// Takes some of `slices`, encrypts it and sends what the socket takes. [`Session::is_flushed`] says whether that was all.
    pub(crate) fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.tls.writer().write_vectored(slices)?;
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Ready(&self.io)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Returns whether everything that was written has been given to the socket.
    pub(crate) fn is_flushed(&self) -> bool {
        !self.tls.wants_write()
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket { io: &mut self.io, cx }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ends our direction: sends close_notify, then shuts down the socket's.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.say_goodbye();
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    /// Sends the bytes that fit now.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) {
        if self.tls.writer().write_all(bytes).is_ok() {
            self.send_now();
        }
    }

    /// Resolves when the client has gone. Data that comes is decrypted and kept for the next read, one piece at most: beyond it nothing can
    /// be seen.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_flush(cx).map_err(drop) == Poll::Ready(Err(())) {
            return Poll::Ready(());
        }
        loop {
            match self.tls.process_new_packets() {
                Ok(state) if state.peer_has_closed() => return Poll::Ready(()),
                Ok(state) if state.plaintext_bytes_to_read() > 0 => return Poll::Pending,
                Ok(_) => {}
                Err(_) => return Poll::Ready(()),
            }
            match self.tls.read_tls(&mut Socket { io: &mut self.io, cx }) {
                Ok(0) => return Poll::Ready(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(_) => return Poll::Ready(()),
            }
        }
    }

    fn say_goodbye(&mut self) {
        if !self.ended {
            self.ended = true;
            self.tls.send_close_notify();
        }
    }

    fn send_now(&mut self) {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Last(&self.io)) {
                Ok(n) if n > 0 => {}
                _ => return,
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Without close_notify a client cannot tell an end from an attacker's cut (RFC 8446 §6.1).
        if !self.ended {
            self.say_goodbye();
            self.send_now();
        }
    }
}

/// The socket, as rustls reads and writes it. It returns `WouldBlock` after it has registered the task to be woken.
pub(super) struct Socket<'a, 'cx> {
    pub(super) io: &'a mut TcpStream,
    pub(super) cx: &'a mut Context<'cx>,
}

fn blocking<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl Read for Socket<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(buf);
        blocking(Pin::new(&mut *self.io).poll_read(self.cx, &mut buf))?;
        Ok(buf.filled().len())
    }
}

impl Write for Socket<'_, '_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        blocking(Pin::new(&mut *self.io).poll_write(self.cx, buf))
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        blocking(Pin::new(&mut *self.io).poll_write_vectored(self.cx, bufs))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The socket as written to during a read, when no task has to be woken.
struct Ready<'a>(&'a TcpStream);

impl Write for Ready<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.try_write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The socket without tokio, for the last bytes.
pub(super) struct Last<'a>(pub(super) &'a TcpStream);

impl Write for Last<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        SockRef::from(self.0).send(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
