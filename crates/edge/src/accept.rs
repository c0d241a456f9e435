//! Accepting: the limits in all and per address, shared by all workers.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr},
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use semantics::Scheme;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{Phase, Seat},
    h1, h2,
    service::{Peer, Service},
    stream::Stream,
    tls::{self, HandshakeError, Protocol},
    worker::{Config, Terms, Worker},
};

/// The pause after `EMFILE` or the like, so that connections can end before the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The answer to a connection beyond the limits.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Counts who is connected, over all workers. The map holds an entry for each address with an open connection, at most one per connection.
#[derive(Debug, Default)]
pub struct Gauges {
    open: AtomicUsize,
    refused: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

impl Gauges {
    /// Returns how many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns how many connections were turned away at a limit since the start.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection's share of the limits, given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    gauges: Arc<Gauges>,
    address: Option<IpAddr>,
}

impl Share {
    pub(crate) fn take(config: &Config, address: Option<IpAddr>) -> Option<Self> {
        let gauges = &config.gauges;
        let limits = &config.limits;
        if gauges.open.fetch_add(1, Ordering::Relaxed) >= limits.connections {
            gauges.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let counted = address.filter(|address| !config.is_exempt(*address)).map(network);
        if let Some(address) = counted {
            let mut by_address = gauges.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            let count = by_address.entry(address).or_default();
            if *count >= limits.connections_per_address {
                drop(by_address);
                gauges.open.fetch_sub(1, Ordering::Relaxed);
                return None;
            }
            *count += 1;
        }
        Some(Self { gauges: Arc::clone(gauges), address: counted })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.gauges.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(address) = self.address {
            let mut by_address = self.gauges.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = by_address.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    by_address.remove(&address);
                }
            }
        }
    }
}

/// Returns what counts as one address: a whole /64 for IPv6, since one host has that many.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

/// Accepts on one listener until `stop`, and then what had already been waiting: closing a listener resets its backlog.
///
/// `stop` is a state and not an event: it may come before this is polled for the first time, or while it waits for descriptors.
pub(crate) async fn accept<S: Service>(worker: Rc<Worker<S>>, listener: Acceptor, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => spawn(&worker, stream, peer),
            Err(error) => {
                if stop.run_until_cancelled(pause(&error)).await.is_none() {
                    break;
                }
            }
        }
    }
    while let Some(Ok((stream, peer))) = listener.accept().now_or_never() {
        spawn(&worker, stream, peer);
    }
}

/// A listener that belongs to a runtime.
#[derive(Debug)]
pub(crate) enum Acceptor {
    Tcp(TcpListener),
    Tls(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    pub(crate) fn tcp(listener: std::net::TcpListener) -> io::Result<Self> {
        TcpListener::from_std(listener).map(Self::Tcp)
    }

    pub(crate) fn tls(listener: std::net::TcpListener) -> io::Result<Self> {
        TcpListener::from_std(listener).map(Self::Tls)
    }

    pub(crate) fn unix(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        UnixListener::from_std(listener).map(Self::Unix)
    }

    async fn accept(&self) -> io::Result<(Accepted, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Heads and small bodies go out at once; a lost option is no reason to lose the connection.
                let _ = stream.set_nodelay(true);
                Ok((Accepted::Plain(Stream::tcp(stream)), Peer { address: Some(address), scheme: Scheme::Http }))
            }
            Self::Tls(listener) => {
                let (stream, address) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok((Accepted::Tls(stream), Peer { address: Some(address), scheme: Scheme::Https }))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Accepted::Plain(Stream::unix(stream)), Peer { address: None, scheme: Scheme::Http }))
            }
        }
    }
}

/// A connection that nothing has been read from.
enum Accepted {
    Plain(Stream),
    /// A TCP connection whose TLS handshake is still to come.
    Tls(TcpStream),
}

/// Waits where an error calls for it: a lack of descriptors does, a connection that broke before it was accepted does not.
async fn pause(error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted) {
        tracing::warn!(%error, "cannot accept a connection; trying again");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

fn spawn<S: Service>(worker: &Rc<Worker<S>>, accepted: Accepted, peer: Peer) {
    let terms = worker.terms();
    let Some(share) = Share::take(&terms, peer.address.map(|address| address.ip())) else {
        terms.gauges.count_refused();
        worker.service.refused(peer, 503, "too many connections");
        // Whoever has no session yet could not read it.
        if let Accepted::Plain(mut stream) = accepted {
            stream.write_now(BUSY);
        }
        return;
    };
    let seat = worker.table.enter();
    let watch = Arc::clone(seat.watch());
    let worker = Rc::clone(worker);
    let task = match accepted {
        // Chained, and not awaited in a future around it: that would keep the arguments beside what they have become.
        Accepted::Plain(stream) => tokio::task::spawn_local(h1::serve(worker, terms, stream, peer, seat, share).then(go_on)),
        Accepted::Tls(stream) => tokio::task::spawn_local(encrypted(worker, terms, stream, peer, seat, share)),
    };
    watch.belongs_to(task.abort_handle());
}

/// Serves a connection of HTTP/2 that was taken for one of HTTP/1, as nothing was agreed on (RFC 9113 §3.3).
async fn go_on<S: Service>(begun: Option<h1::BeginsHttp2<S>>) {
    let Some(h1::BeginsHttp2 { worker, terms, stream, peer, seat, share, read }) = begun else { return };
    Box::pin(h2::serve(worker, terms, stream, peer, seat, share, read)).await;
}

/// Shakes hands, and serves in the protocol that was agreed on.
async fn encrypted<S: Service>(worker: Rc<Worker<S>>, terms: Rc<Terms>, stream: TcpStream, peer: Peer, seat: Seat, share: Share) {
    let Some(tls) = terms.tls.clone() else { return };
    let begin_time = || seat.until(Phase::Head, terms.allowances.header);
    begin_time();
    match Box::pin(tls::shake(stream, &tls, &worker.turnstile, begin_time)).await {
        // Over TLS it was agreed on that this is not HTTP/2.
        Ok((session, Protocol::Http1)) => drop(h1::serve(worker, terms, Stream::tls(session), peer, seat, share).await),
        Ok((session, Protocol::Http2)) => h2::serve(worker, terms, Stream::tls(session), peer, seat, share, Vec::new()).await,
        Ok((_, Protocol::Challenge)) => tracing::debug!(peer = ?peer.address, "a certificate authority has looked at its challenge"),
        Err(error @ HandshakeError::Gone(_)) => tracing::debug!(peer = ?peer.address, %error, "no handshake"),
        Err(error) => {
            tracing::debug!(peer = ?peer.address, %error, "no handshake");
            worker.service.refused(peer, 0, "TLS handshake failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let net = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(net("2001:db8:1:2:3:4:5:6"), net("2001:db8:1:2:ffff::1"));
        assert_ne!(net("2001:db8:1:2::1"), net("2001:db8:1:3::1"));
        assert_eq!(net("::ffff:192.0.2.1"), net("192.0.2.1"));
    }

    #[test]
    fn shares_are_given_back() {
        let mut config = Config::default();
        config.limits.connections = 3;
        config.limits.connections_per_address = 2;
        let address = "192.0.2.1".parse().ok();
        let first = Share::take(&config, address);
        let second = Share::take(&config, address);
        assert!(first.is_some() && second.is_some());
        assert!(Share::take(&config, address).is_none(), "a third from one address");
        let loopback = Share::take(&config, "127.0.0.1".parse().ok());
        assert!(loopback.is_some());
        assert!(Share::take(&config, "127.0.0.1".parse().ok()).is_none(), "a fourth in all");
        drop((first, second, loopback));
        assert_eq!(config.gauges.open(), 0);
        assert!(config.gauges.by_address.lock().expect("not poisoned").is_empty());
    }
}
