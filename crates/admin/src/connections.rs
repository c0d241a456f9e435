//! The listener: accepting connections, and everything that bounds them.
//!
//! Worst case: 64 connections, each with 16 KiB of head, 16 KiB of body and one response. For one more, a connection that says nothing makes way
//! ([`places`](crate::places)); if there is none, that one waits, and all others in the system's queue. No connection outlives a minute, so not even a
//! client that never reads its response can hold a place for long. The connections of viewers, who are shown events as long as they like, are
//! excepted: they are few, and one that does not read is cut off.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension, Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{
    Token,
    console::Console,
    events::Events,
    guard::{Guard, Peer},
    places::{ConnectionPermit, Places, Seat},
    routes,
};

/// The most connections at once.
const CONNECTIONS_MAX: usize = 64;

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
    /// The time after which a stranger's answer makes way, if all places are taken.
    pub(crate) patience: Duration,
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
        patience: Duration::from_secs(10),
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
    let places = Places::new(bounds.connections, bounds.patience);
    let (ending, end) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut telling = pin!(events.tell(bounds.look));
    // A connection that has come and has no place yet.
    let mut coming: Option<(TcpStream, IpAddr)> = None;
    loop {
        // Both are cancel-safe: an accept that is dropped has accepted nobody, and a wait for a place that is dropped has taken none.
        let next = async {
            match &coming {
                None => Step::Came(listener.accept().await),
                Some((_, peer)) => Step::HasPermit(places.take(*peer).await),
            }
        };
        tokio::select! {
            () = &mut shutdown => break,
            never = &mut telling => match never {},
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            next = next => match next {
                Step::Came(Ok((stream, peer))) => coming = Some((stream, peer.ip())),
                Step::Came(Err(error)) if is_of_one_connection(&error) => {}
                Step::Came(Err(error)) => {
                    tracing::warn!(%error, "the admin listener cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                Step::HasPermit(permit) => {
                    if let Some((stream, _)) = coming.take() {
                        connections.spawn(answer(bounds, stream, permit, router.clone(), end.clone()));
                    }
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

/// The next thing that happens at the listener.
enum Step {
    Came(io::Result<(TcpStream, SocketAddr)>),
    HasPermit(ConnectionPermit),
}

/// Answers the requests of one connection until it closes, its time is up, it has to make way, or `end` says so.
async fn answer(bounds: Bounds, stream: TcpStream, permit: ConnectionPermit, router: Router, mut end: watch::Receiver<bool>) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.head).max_buf_size(HEAD_MAX);
    let seat = permit.seat();
    let viewing = seat.viewing();
    let router = router.layer(Extension(viewing.clone())).layer(Extension(Peer(seat.peer())));
    let router = router.layer(middleware::from_fn_with_state(seat.clone(), seated));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let lifetime = async {
        tokio::time::sleep(bounds.lifetime).await;
        viewing.over().await;
    };
    let served = tokio::select! {
        served = &mut connection => Some(served),
        () = seat.has_to_go() => Some(Ok(())),
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

/// Notes on a connection's seat what is being answered.
async fn seated(State(seat): State<Seat>, mut request: Request, next: Next) -> Response {
    let answering = seat.answers();
    request.extensions_mut().insert(seat);
    next.run(request).await.map(|content| answering.until_sent(content))
}
