//! From a TCP connection to a session. A handshake costs as much as a hundred hits, so a worker does one at a time and looks after its other
//! connections in between.
//!
//! A crowd waits: whoever was turned away would come again at once, and cost more. Each client that waits is a connection, so the limits of connections, in
//! all and for each address, are the limits of the queue too, and no address can fill it. What a client has waited for its turn is not its own time: it may
//! wait for as long as a head may take, and then has that time once more for the rest of its handshake. Whoever has gone meanwhile costs nothing.

use std::{future::poll_fn, io, sync::Arc, task::Poll, time::Duration};

use futures_util::FutureExt;

use rustls::{
    ServerConnection,
    server::{Accepted, AcceptedAlert, Acceptor},
};
use tokio::{
    net::TcpStream,
    sync::{Semaphore, SemaphorePermit},
};

use super::{
    Tls,
    certificates::ACME_TLS,
    session::{Last, Session, Socket},
};

/// The most bytes that a client may send before the handshake is done. The largest honest hello (two post-quantum shares, a ticket, an
/// encrypted name) is under 4 KiB. With the default of `[limits] connections`, 320 MiB at worst, if 79 addresses or more have nothing else in mind.
const HELLO_MAX: usize = 16 * 1024;

/// The time for which a client waits for a certificate that is being ordered. The deadline of its handshake may be sooner.
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
}

/// The protocol of a session (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    /// No protocol: a certificate authority has seen the answer to its challenge.
    Challenge,
}

/// The queues for the costly parts of handshakes, first come first served, for one worker.
///
/// In TLS 1.2, a client comes twice. The second time it does not wait behind all those who come for the first time: half of the work for it has been done.
#[derive(Debug)]
pub(crate) struct Turnstile {
    first: Semaphore,
    second: Semaphore,
}

impl Turnstile {
    pub(crate) const fn new() -> Self {
        Self { first: Semaphore::const_new(1), second: Semaphore::const_new(1) }
    }
}

/// Waits for a turn. It ends when all connections that had something to do have had theirs, see [`HandshakeTurn::end`].
async fn turn(queue: &Semaphore) -> HandshakeTurn<'_> {
    HandshakeTurn(queue.acquire().await.expect("nobody closes it"))
}

/// A client's turn.
#[derive(Debug)]
struct HandshakeTurn<'a>(SemaphorePermit<'a>);

impl HandshakeTurn<'_> {
    /// Ends the turn when the event loop has been round once.
    async fn end(self) {
        tokio::task::yield_now().await;
        drop(self.0);
    }
}

/// Performs the handshake. The caller sets the time limit, and begins it anew at `its_turn`.
pub(crate) async fn shake(
    mut io: TcpStream,
    tls: &Tls,
    turnstile: &Turnstile,
    its_turn: impl Fn(),
) -> Result<(Session, Protocol), HandshakeError> {
    let mut received = 0;
    let accepted = hello(&mut io, &mut received).await?;
    let awaited = tls.certificates().awaited(&accepted.client_hello());
    if let Some(decided) = awaited {
        // This happens before its turn, so that nobody waits with it. The result is seen when the certificate is chosen.
        let _ = tokio::time::timeout(AWAITED_MAX, decided).await;
    }
    let config = Arc::clone(tls.config_for(&accepted.client_hello()));
    let turn = turn(&turnstile.first).await;
    is_there(&io)?;
    its_turn();
    let begun = accepted.into_connection(config);
    turn.end().await;
    let mut tls = begun.map_err(|(error, alert)| refuse(&io, error, alert))?;
    loop {
        flush(&mut io, &mut tls).await?;
        if !tls.is_handshaking() {
            break;
        }
        receive(&mut received, poll_fn(|cx| poll(tls.read_tls(&mut Socket { io: &mut io, cx }))).await)?;
        // In TLS 1.3 the costly part has been done by now; in TLS 1.2 half of it is still to come.
        let processed = if tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2) {
            let turn = self::turn(&turnstile.second).await;
            let processed = tls.process_new_packets();
            turn.end().await;
            processed
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

/// Fails if the client has gone while it waited, as far as the event loop knows.
fn is_there(io: &TcpStream) -> Result<(), HandshakeError> {
    match io.peek(&mut [0]).now_or_never() {
        Some(Ok(0)) => Err(HandshakeError::Gone(io::ErrorKind::UnexpectedEof.into())),
        Some(Err(error)) => Err(HandshakeError::Gone(error)),
        Some(Ok(_)) | None => Ok(()),
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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures_util::{StreamExt, stream::FuturesUnordered};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, pki_types::ServerName};
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::tls::{Certificates, provider};

    /// A crowd that reads a page which has just been linked to: whoever is turned away comes again at once, and costs more than a place in the queue.
    #[tokio::test]
    async fn a_crowd_of_ten_thousand_is_let_in_in_the_order_in_which_it_came() {
        let turnstile = Turnstile::new();
        let order = RefCell::new(Vec::new());
        let mut crowd: FuturesUnordered<_> = (0..10_000)
            .map(async |number| {
                let turn = turn(&turnstile.first).await;
                order.borrow_mut().push(number);
                turn.end().await;
            })
            .collect();
        while crowd.next().await.is_some() {}
        // The collection begins with whom it got last, which is then the first in the queue.
        let mut order = order.take();
        assert_eq!(order.len(), 10_000);
        if order[0] != 0 {
            order.reverse();
        }
        assert!(order.is_sorted(), "{:?}", &order[..10]);
    }

    /// TLS 1.2: half of the work for it has been done, and its time goes on.
    #[tokio::test]
    async fn whoever_comes_for_the_second_time_does_not_wait_behind_those_who_come_for_the_first() {
        let turnstile = Turnstile::new();
        let _first = turn(&turnstile.first).await;
        let waiting = turn(&turnstile.first);
        assert!(waiting.now_or_never().is_none());
        assert!(turn(&turnstile.second).now_or_never().is_some());
    }

    /// Two ends of a connection, with the client's first message under way to the server's.
    async fn connected() -> (TcpStream, TcpStream) {
        connected_for(&[]).await
    }

    /// Two such ends, with a client that offers these protocols.
    async fn connected_for(protocols: &[&[u8]]) -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        let (server, _) = listener.accept().await.expect("accepted");
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().expect("versions");
        let mut config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let mut says = ClientConnection::new(Arc::new(config), ServerName::try_from("blog.example").expect("a name")).expect("a client");
        let mut hello = Vec::new();
        says.write_tls(&mut hello).expect("written");
        client.write_all(&hello).await.expect("sent");
        (client, server)
    }

    /// Lets the event loop see what has come. A client that waits for its turn goes on waiting.
    async fn wait<T>(shaking: &mut (impl Future<Output = T> + Unpin)) {
        for _ in 0..100 {
            assert!((&mut *shaking).now_or_never().is_none(), "it waits");
            tokio::task::yield_now().await;
        }
    }

    /// The deadline is for what the client does, and the wait for its turn is none of that.
    #[tokio::test]
    async fn a_client_has_its_time_anew_when_its_turn_has_come() {
        let (tls, turnstile) = (Tls::new(Certificates::new()).expect("a configuration"), Turnstile::new());
        let (_client, server) = connected().await;
        let turn = turn(&turnstile.first).await;
        let begun = Cell::new(0);
        let mut shaking = Box::pin(shake(server, &tls, &turnstile, || begun.set(begun.get() + 1)));
        wait(&mut shaking).await;
        assert_eq!(begun.get(), 0);
        drop(turn);
        // There is no certificate: its turn is all that it gets.
        assert!(matches!(shaking.await, Err(HandshakeError::Refused(_))));
        assert_eq!(begun.get(), 1);
    }

    /// Impatient clients are many where there is a crowd: work for them would be time that the others wait.
    #[tokio::test]
    async fn no_work_is_done_for_a_client_that_has_gone_while_it_waited() {
        let (tls, turnstile) = (Tls::new(Certificates::new()).expect("a configuration"), Turnstile::new());
        let (client, server) = connected().await;
        let turn = turn(&turnstile.first).await;
        let begun = Cell::new(false);
        let mut shaking = Box::pin(shake(server, &tls, &turnstile, || begun.set(true)));
        wait(&mut shaking).await;
        drop(client);
        wait(&mut shaking).await;
        drop(turn);
        assert!(matches!(shaking.await, Err(HandshakeError::Gone(_))));
        assert!(!begun.get());
    }

    /// RFC 8737 §3: the authority asks a machine that did not order, and that finds the answer elsewhere first.
    #[tokio::test]
    async fn an_authority_waits_until_the_answer_of_another_machine_is_looked_up() {
        let certificates = Certificates::new();
        let pair = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["blog.example".to_owned()]).expect("a name");
        let chain = vec![params.self_signed(&pair).expect("a certificate").der().clone()];
        let answer = crate::tls::certified_key(chain, pair.serialize_der().try_into().expect("PKCS #8")).expect("they fit");
        let answer = Arc::new(answer);
        let shown = Arc::downgrade(&certificates);
        certificates.when_challenged(Some(Box::new(move |name| {
            let (shown, name, answer) = (shown.clone(), name.to_owned(), Arc::clone(&answer));
            Some(Box::pin(async move {
                tokio::task::yield_now().await;
                shown.upgrade().expect("in use").answer_challenge(&name, answer);
            }))
        })));
        let (tls, turnstile) = (Tls::new(certificates).expect("a configuration"), Turnstile::new());
        let (mut client, server) = connected_for(&[ACME_TLS]).await;
        let mut shaking = Box::pin(shake(server, &tls, &turnstile, || ()));
        // The server's first flight is sent once the answer is there; before that there would be an alert.
        let mut flight = [0; 1];
        tokio::select! {
            shaken = &mut shaking => panic!("{:?}", shaken.err()),
            read = tokio::io::AsyncReadExt::read_exact(&mut client, &mut flight) => drop(read.expect("sent")),
        }
        assert_eq!(flight, [22], "a handshake, and no alert (RFC 8446 §5.1)");
    }
}
