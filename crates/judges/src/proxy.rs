//! A proxy that hands bytes on, later: the distance between two machines.

use std::{
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
};

use crate::{
    alarm::Alarm,
    serve::{Serving, listener},
};

/// Pieces that may be on their way in one direction of a connection, each of at most 64 KiB.
const UNDER_WAY: usize = 256;

/// A proxy of TCP in front of a server. A connection can be used after `connect`; the kernel accepts it before, so that a client sees that time with its first
/// answer. What the server says comes `reply` later.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
    _serving: Serving,
}

impl Proxy {
    /// Starts a proxy in front of `server`.
    #[must_use]
    pub fn start(server: SocketAddr, connect: Duration, reply: Duration) -> Self {
        Self::start_on(0, server, connect, reply)
    }

    /// Starts it on this port, 0 for any.
    #[must_use]
    pub fn start_on(port: u16, server: SocketAddr, connect: Duration, reply: Duration) -> Self {
        let (listener, address) = listener(port);
        let connections = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&connections);
        let serving = Serving::connections(listener, move |client, alarm| {
            counting.fetch_add(1, Ordering::Relaxed);
            async move {
                alarm.until(Instant::now() + connect).await;
                let Ok(server) = TcpStream::connect(server).await else { return };
                let _ = server.set_nodelay(true);
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::join!(carry(from_client, to_server, Duration::ZERO, Rc::clone(&alarm)), carry(from_server, to_client, reply, alarm));
            }
        });
        Self { address, connections, _serving: serving }
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections were made.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Carries bytes from one to the other, each `later` than it came. Many can be under way: a distance takes time and no bandwidth.
async fn carry(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf, later: Duration, alarm: Rc<Alarm>) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let read = async move {
        loop {
            let mut piece = Vec::with_capacity(64 << 10);
            match from.read_buf(&mut piece).await {
                Ok(1..) => {}
                _ => break,
            }
            if sender.send((Instant::now() + later, piece)).await.is_err() {
                break;
            }
        }
    };
    let write = async move {
        while let Some((due, piece)) = receiver.recv().await {
            if !later.is_zero() {
                alarm.until(due).await;
            }
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}
