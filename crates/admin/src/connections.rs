//! The listener: accepting connections, and everything that bounds them.
//!
//! Worst case: 64 connections, each with 16 KiB of head, 16 KiB of body and one response. Who comes 65th waits in the system's queue. No
//! connection outlives a minute, so not even a client that never reads its response can hold a place for long. The connections of viewers, who are shown
//! events as long as they like, are excepted: they are few, and one that does not read is cut off.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};

use crate::{
    Token,
    console::Console,
    events::{Events, Viewing},
    guard::Guard,
    routes,
};

/// The most connections at once.
pub const CONNECTIONS_MAX: usize = 64;

/// The longest head of a request, in bytes; also how much is read ahead.
const HEAD_MAX: usize = 16 << 10;

/// The time to wait after `accept` failed for want of a descriptor or of memory: at once it would fail again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Holds the bounds of one listener; tests have tighter ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) connections: usize,
    /// The time for a request's head to arrive, counted from when it could have begun: an idle connection is closed after it, too.
    pub(crate) head: Duration,
    pub(crate) body: Duration,
    /// The lifetime of a connection; then it is asked to end, unless it carries events.
    pub(crate) lifetime: Duration,
    /// The time for a connection that was asked to end.
    pub(crate) grace: Duration,
    /// The interval at which the console is asked whether a second is over that viewers are to be told of: an event is late by no more than this.
    pub(crate) look: Duration,
}

impl Bounds {
    pub(crate) const DEFAULT: Self = Self {
        connections: CONNECTIONS_MAX,
        head: Duration::from_secs(10),
        body: Duration::from_secs(10),
        lifetime: Duration::from_secs(60),
        grace: Duration::from_secs(5),
        look: Duration::from_millis(100),
    };
}

/// Answers on `listener` until `shutdown` completes and the requests under way are answered, which takes at most five seconds.
///
/// Dropping the future closes all connections at once. A listener on a loopback address answers reads without a token; on any other
/// address everything needs it.
///
/// # Errors
/// When the listener does not know its own address.
pub async fn serve(listener: TcpListener, console: Arc<dyn Console>, token: Token, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    serve_within(Bounds::DEFAULT, listener, console, token, shutdown).await
}

pub(crate) async fn serve_within(
    bounds: Bounds,
    listener: TcpListener,
    console: Arc<dyn Console>,
    token: Token,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let guard = Guard::new(token, listener.local_addr()?);
    let events = Arc::new(Events::new(Arc::clone(&console)));
    let router = routes::router(console, Arc::clone(&events), guard, bounds.body);
    let places = Arc::new(Semaphore::new(bounds.connections));
    let (ending, end) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut telling = pin!(events.tell(bounds.look));
    loop {
        // Both are cancel-safe: a place that is dropped is free again, and an accept that is dropped has accepted nobody.
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => break,
            never = &mut telling => match never {},
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (place, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let (router, end) = (router.clone(), end.clone());
                    connections.spawn(async move {
                        answer(bounds, stream, router, end).await;
                        drop(place);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "the admin listener cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    ending.send_replace(true);
    events.close();
    while connections.join_next().await.is_some() {}
    Ok(())
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers the requests of one connection until it closes, its time is up, or `end` says so.
async fn answer(bounds: Bounds, stream: TcpStream, router: Router, mut end: watch::Receiver<bool>) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.head).max_buf_size(HEAD_MAX);
    let viewing = Viewing::default();
    let router = router.layer(Extension(viewing.clone()));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let lifetime = async {
        tokio::time::sleep(bounds.lifetime).await;
        viewing.over().await;
    };
    let served = tokio::select! {
        served = &mut connection => Some(served),
        () = lifetime => None,
        () = viewing.cut_off() => None,
        _ = end.wait_for(|end| *end) => None,
    };
    let served = match served {
        Some(served) => served,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(bounds.grace, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the admin listener failed");
    }
}
