//! TLS over a socket that is read and written elsewhere.

use std::{
    io::{self, Read as _, Write},
    os::fd::OwnedFd,
    sync::Arc,
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{SendFlags, send},
};
use rustls::{ClientConnection, HandshakeKind};

use crate::{engine::Tls, record::Handshake};

/// Says what became of the bytes that a session was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// The session gave so many bytes of plain text.
    Bytes(usize),
    /// The session has no plain text until more comes over the socket.
    NoMore,
    /// The server has said that it will send no more.
    Closed,
}

/// The peer does not keep to TLS, or refuses, or cannot be trusted.
#[derive(Debug)]
pub(super) struct Failed;

/// A TLS session, from its handshake on.
#[derive(Debug)]
pub(super) struct Session {
    tls: ClientConnection,
    began: Duration,
}

impl Session {
    /// Begins a session with an origin. `number` counts the connections of a worker.
    pub(super) fn begin(tls: &Tls, origin: u16, number: u64, now: Duration) -> Result<Self, Failed> {
        let mut tls = ClientConnection::new(Arc::clone(tls.config(number)), tls.name(origin).clone()).map_err(|_| Failed)?;
        // What is sent is one request, whole; a limit would cut it.
        tls.set_buffer_limit(None);
        Ok(Self { tls, began: now })
    }

    /// Returns the handshake, if it is done. It took until `now`.
    pub(super) fn handshake(&self, now: Duration) -> Option<Handshake> {
        let resumed = self.tls.handshake_kind() == Some(HandshakeKind::Resumed);
        (!self.tls.is_handshaking()).then(|| Handshake { took: now.saturating_sub(self.began), resumed })
    }

    /// Sends `bytes`, and keeps what the system does not take.
    pub(super) fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
        self.keep(bytes)?;
        self.flush(socket)
    }

    /// Keeps `bytes` for [`Self::flush`].
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        self.tls.writer().write_all(bytes).map_err(|_| Errno::PIPE)
    }

    /// Sends what was kept, as far as the system takes it.
    pub(super) fn flush(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::PIPE)),
            }
        }
        Ok(())
    }

    /// Takes a part of what came over the socket. What is plain in it must be read before the next part is taken.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> Result<(), Failed> {
        self.tls.read_tls(bytes).map_err(|_| Failed)?;
        self.tls.process_new_packets().map_err(|_| Failed)?;
        Ok(())
    }

    /// Reads plain text.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Plain {
        match self.tls.reader().read(buffer) {
            Ok(0) => Plain::Closed,
            Ok(length) => Plain::Bytes(length),
            Err(_) => Plain::NoMore,
        }
    }
}

/// A socket to write to.
struct Socket<'a>(&'a OwnedFd);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
