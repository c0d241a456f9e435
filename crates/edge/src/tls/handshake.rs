//! From a TCP connection to a session. A handshake costs as much as a hundred hits, so a worker does one at a time and looks after its other
//! connections in between.

use std::{cell::Cell, future::poll_fn, io, sync::Arc, task::Poll, time::Duration};

use rustls::{
    ServerConnection,
    server::{Accepted, AcceptedAlert, Acceptor},
};
use tokio::{net::TcpStream, sync::Semaphore};

use super::{
    Tls,
    certificates::ACME_TLS,
    session::{Last, Session, Socket},
};

/// The most bytes that a client may send before the handshake is done. The largest honest hello (two post-quantum shares, a ticket, an
/// encrypted name) is under 4 KiB.
const HELLO_MAX: usize = 16 * 1024;

/// The most clients of one worker that may wait for their turn. Further ones are turned away at once, while there is still time to serve
/// the others. With [`HELLO_MAX`], 8 MiB at worst.
const WAITING_MAX: usize = 512;

/// How long a client waits for a certificate that is being ordered. The deadline of its handshake may be sooner.
const AWAITED_MAX: Duration = Duration::from_secs(9);

/// The reason why there is no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The client hung up.
    #[error("the client has gone")]
    Gone(#[source] io::Error),
    /// The two sides cannot agree, the name has no certificate, or the client does not speak TLS at all.
    #[error("{0}")]
    Refused(#[source] rustls::Error),
    /// The client sends too much.
    #[error("a handshake of more than 16 KiB")]
    TooLong,
    /// Too many other clients wait.
    #[error("too many handshakes at once")]
    Busy,
}

/// The protocol of a session (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    /// No protocol: a certificate authority has seen the answer to its challenge.
    Challenge,
}

/// A queue for the costly part of handshakes, one for each worker.
#[derive(Debug)]
pub(crate) struct Turnstile {
    turn: Semaphore,
    waiting: Cell<usize>,
}

impl Turnstile {
    pub(crate) const fn new() -> Self {
        Self { turn: Semaphore::const_new(1), waiting: Cell::new(0) }
    }

    /// Does `work` when it is its turn. The turn ends when all connections that had something to do have had theirs.
    async fn pass<T>(&self, work: impl FnOnce() -> T) -> Result<T, HandshakeError> {
        if self.waiting.get() >= WAITING_MAX {
            return Err(HandshakeError::Busy);
        }
        let _waiting = Waiting::new(&self.waiting);
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await.map_err(|_| HandshakeError::Busy)?;
        let done = work();
        tokio::task::yield_now().await;
        Ok(done)
    }
}

/// Counts a waiting client while it lives: a client that is given up leaves the queue too.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a Cell<usize>) -> Self {
        waiting.set(waiting.get() + 1);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Performs the handshake. The caller sets the time limit.
pub(crate) async fn shake(mut io: TcpStream, tls: &Tls, turnstile: &Turnstile) -> Result<(Session, Protocol), HandshakeError> {
    let mut received = 0;
    let accepted = hello(&mut io, &mut received).await?;
    let awaited = tls.certificates().awaited(&accepted.client_hello());
    if let Some(decided) = awaited {
        // This happens before its turn, so that nobody waits with it. The result is seen when the certificate is chosen.
        let _ = tokio::time::timeout(AWAITED_MAX, decided).await;
    }
    let config = Arc::clone(tls.config_for(&accepted.client_hello()));
    let begun = turnstile.pass(|| accepted.into_connection(config)).await?;
    let mut tls = begun.map_err(|(error, alert)| refuse(&io, error, alert))?;
    loop {
        flush(&mut io, &mut tls).await?;
        if !tls.is_handshaking() {
            break;
        }
        receive(&mut received, poll_fn(|cx| poll(tls.read_tls(&mut Socket { io: &mut io, cx }))).await)?;
        // In TLS 1.3 the costly part has been done by now; in TLS 1.2 half of it is still to come.
        let processed = if tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2) {
            turnstile.pass(|| tls.process_new_packets()).await?
        } else {
            tls.process_new_packets()
        };
        if let Err(error) = processed {
            let _ = tls.write_tls(&mut Last(&io));
            return Err(HandshakeError::Refused(error));
        }
    }
    let protocol = match tls.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        Some(ACME_TLS) => Protocol::Challenge,
        _ => Protocol::Http1,
    };
    Ok((Session::new(io, tls), protocol))
}

/// Reads until the client's hello is complete: that much costs next to nothing.
async fn hello(io: &mut TcpStream, received: &mut usize) -> Result<Accepted, HandshakeError> {
    let mut acceptor = Acceptor::default();
    loop {
        receive(received, poll_fn(|cx| poll(acceptor.read_tls(&mut Socket { io, cx }))).await)?;
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err((error, alert)) => return Err(refuse(io, error, alert)),
        }
    }
}

fn receive(received: &mut usize, read: io::Result<usize>) -> Result<(), HandshakeError> {
    match read {
        Ok(0) => return Err(HandshakeError::Gone(io::ErrorKind::UnexpectedEof.into())),
        Ok(n) => *received += n,
        Err(error) => return Err(HandshakeError::Gone(error)),
    }
    if *received > HELLO_MAX { Err(HandshakeError::TooLong) } else { Ok(()) }
}

fn refuse(io: &TcpStream, error: rustls::Error, mut alert: AcceptedAlert) -> HandshakeError {
    let _ = alert.write_all(&mut Last(io));
    HandshakeError::Refused(error)
}

async fn flush(io: &mut TcpStream, tls: &mut ServerConnection) -> Result<(), HandshakeError> {
    while tls.wants_write() && tls.is_handshaking() {
        poll_fn(|cx| poll(tls.write_tls(&mut Socket { io, cx }))).await.map_err(HandshakeError::Gone)?;
    }
    Ok(())
}

fn poll<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}
