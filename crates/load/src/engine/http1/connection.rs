//! One connection.

use std::{collections::VecDeque, os::fd::OwnedFd, time::Duration};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send, sockopt},
};

use super::{
    client::PendingRequest,
    response::Reader,
    slots::Key,
    tls::{Failed, Session},
};
use crate::engine::{sources::Sources, target::Target};

/// Bytes that leave in one segment on any network.
const SMALL: usize = 1024;

/// Says how far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is being made.
    Connecting,
    /// It is made, and TLS is being agreed upon.
    Handshaking,
    /// Requests can be sent.
    Open,
}

/// One connection. It has no buffers, unless something does not fit into the system's, or is not complete.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    pub(super) tls: Option<Box<Session>>,
    pub(super) stage: Stage,
    /// The number of the origin that it leads to.
    pub(super) origin: u16,
    /// The client that uses it.
    pub(super) client: Key,
    /// Requests on their way, in the order of their answers.
    pub(super) under_way: VecDeque<PendingRequest>,
    pub(super) reader: Reader,
    /// The time at which it was begun.
    pub(super) began: Duration,
    /// The time by which what it waits for must have come; none: it waits for nothing.
    pub(super) deadline: Option<Duration>,
    /// The time at which the answer that is being read began.
    pub(super) first_byte: Option<Duration>,
    /// The time since which it has had nothing to do, after an answer.
    pub(super) idle_since: Option<Duration>,
    /// Whether the system holds nothing back.
    at_once: bool,
    /// Whether its last answer has come.
    pub(super) ends: bool,
    /// Whether the server has said that nothing comes after what is still to be read.
    pub(super) is_closing: bool,
    /// Bytes that the system has not taken yet.
    out: Vec<u8>,
}

impl Connection {
    /// Begins a connection to `target`.
    pub(super) fn begin(target: &Target, sources: &mut Sources, origin: u16, client: Key, now: Duration) -> Result<Self, Errno> {
        Ok(Self {
            socket: sources.connect(target)?,
            tls: None,
            stage: Stage::Connecting,
            origin,
            client,
            under_way: VecDeque::new(),
            reader: Reader::default(),
            began: now,
            deadline: None,
            first_byte: None,
            idle_since: None,
            at_once: matches!(target, Target::Unix(_)),
            ends: false,
            is_closing: false,
            out: Vec::new(),
        })
    }

    pub(super) const fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Returns the error that has ended the connection, if one has.
    pub(super) fn error(&self) -> Option<Errno> {
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(error),
        }
    }

    /// Asks the system not to hold back what is sent until the server has taken note of what was sent before (`TCP_NODELAY`). A connection with one
    /// small request at a time does not need it.
    pub(super) fn send_at_once(&mut self) -> Result<(), Errno> {
        if !self.at_once {
            self.at_once = true;
            sockopt::set_tcp_nodelay(&self.socket, true)?;
        }
        Ok(())
    }

    /// Sends `bytes`. What the system does not take now is kept, and sent by [`Self::flush`].
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        if let Some(tls) = &mut self.tls {
            return tls.send(&self.socket, bytes);
        }
        if bytes.len() > SMALL {
            self.send_at_once()?;
        }
        let mut sent = 0;
        if self.out.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(length) if length == bytes.len() => return Ok(()),
                Ok(length) => sent = length,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.out.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Keeps `bytes` for [`Self::flush`], so that the requests of a pipeline are sent together.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        match &mut self.tls {
            Some(tls) => tls.keep(bytes),
            None => {
                self.out.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Sends what was kept, as far as the system takes it.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        if let Some(tls) = &mut self.tls {
            return tls.flush(&self.socket);
        }
        while !self.out.is_empty() {
            match send(&self.socket, &self.out, SendFlags::NOSIGNAL) {
                Ok(length) if length == self.out.len() && length > SMALL => self.out = Vec::new(),
                Ok(length) if length == self.out.len() => self.out.clear(),
                Ok(length) => drop(self.out.drain(..length)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives a part of what came over the socket to TLS, and sends what TLS answers.
    pub(super) fn take_secured(&mut self, bytes: &mut &[u8]) -> Result<(), Failed> {
        let Some(tls) = &mut self.tls else { return Err(Failed) };
        let taken = tls.take(bytes);
        // An answer of the handshake, or the reason why there is none. If it cannot be sent, the socket says so when it is read.
        let _ = tls.flush(&self.socket);
        taken
    }

    /// Receives into `buffer` as it comes over the socket; none: nothing is there. Zero bytes are the end.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((length, _)) => return Ok(Some(length)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
