//! An origin that speaks HTTP/1.1, over TCP, TLS or a Unix socket.
//!
//! The one idea: a request goes out once. It is sent again only where nothing of it can have been acted upon (it was never written,
//! or no connection came about), or where acting twice does no harm (RFC 9110 §9.2.2) and the connection had carried a request before,
//! so that its death says nothing about this one. Not here: what the request should say ([`rebuild`] is called before), caching, and
//! any opinion on status codes.

mod address;
mod connect;
mod fault;
mod health;
mod incoming;
mod limit;
mod outgoing;
mod pool;
mod probe;
mod request;
mod response;
mod tls;

#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use ::http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::Instant;

pub use address::{Address, AddressError};
pub use health::{BACKOFF_MAX, HealthOptions};
pub use limit::{Budget, Permit};
pub use probe::{Kind, Probe, probe};
pub use request::{Forwarding, Peer, VIA_NAME, is_for_proxies_only, keep_upgrade, rebuild};
pub use tls::tls_config;

use crate::{Body, Fault, LocalFuture, Origin, OriginError};
use incoming::{Lease, ResponseBody};
use outgoing::{Outgoing, Progress};
use pool::{Connection, Pool};

/// How to reach an origin and how long to wait for it. [`HttpOptions::new`] has the defaults.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where it listens; not empty. Several take turns, and stand in for each other when one is down.
    pub addresses: Vec<Address>,
    /// For https addresses: see [`tls_config`].
    pub tls: Arc<rustls::ClientConfig>,
    /// For the name, the connection and TLS together: 5 s.
    pub connect_timeout: Duration,
    /// From the last of the request to the whole response head: 60 s. While a client pauses in its upload the time stands still.
    pub first_byte_timeout: Duration,
    /// The longest pause in a response body: 60 s. Time in which nobody reads it does not count.
    pub between_bytes_timeout: Duration,
    /// Idle connections kept per worker and address: 256, as many as requests there may be at once by default. Fewer, and a crowd on pages
    /// that are passed through opens a connection for each request; more cost the origin.
    pub pool_idle_max: usize,
    /// How long an idle connection is kept, unless the origin's `Keep-Alive` names a shorter time: 55 s, below the minute after which
    /// many servers and firewalls forget one.
    pub pool_idle_timeout: Duration,
    /// The largest response head: 64 KiB. With a read buffer of at most twice that, at least 128 KiB, per connection.
    pub response_header_bytes_max: usize,
    /// The most field lines in it: 100, which hyper reads on the stack; any other number costs two allocations per response.
    pub response_fields_max: usize,
    /// When an address counts as down.
    pub health: HealthOptions,
}

impl HttpOptions {
    /// The defaults.
    #[must_use]
    pub fn new(addresses: Vec<Address>, tls: Arc<rustls::ClientConfig>) -> Self {
        Self {
            addresses,
            tls,
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(60),
            between_bytes_timeout: Duration::from_secs(60),
            pool_idle_max: 256,
            pool_idle_timeout: Duration::from_secs(55),
            response_header_bytes_max: 64 * 1024,
            response_fields_max: 100,
            health: HealthOptions::default(),
        }
    }

    /// Larger than the head, so that it is the head's limit that is met first; and large enough for few reads of a long body.
    fn read_buffer_bytes_max(&self) -> usize {
        (self.response_header_bytes_max * 2).max(128 * 1024)
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// An HTTP origin, as one worker sees it: its own connections and its own opinion of who is up.
///
/// Runs where [`tokio::task::spawn_local`] does. Healthy addresses take turns (round robin): all are meant to be the same site.
///
/// Responses come without the fields that concern the connection (`Connection` and what it names, `Keep-Alive`, `Transfer-Encoding`,
/// `Upgrade`); only a 101 keeps them, with [`hyper::upgrade::OnUpgrade`] in its extensions. To ask for an upgrade, the caller sets
/// `Connection: upgrade` and `Upgrade` ([`keep_upgrade`]); they are sent as they are. 1xx responses other than 101 are swallowed.
#[derive(Debug)]
pub struct HttpOrigin {
    pool: Arc<Pool>,
    budget: Option<Arc<Budget>>,
    next: Cell<usize>,
    authority: HeaderValue,
}

/// One address of an origin, for metrics and the status page.
#[derive(Debug, Clone, Copy)]
pub struct AddressStatus<'a> {
    /// Where.
    pub address: &'a Address,
    /// Whether requests go there.
    pub up: bool,
    /// Connections that wait for a request.
    pub idle: usize,
}

impl HttpOrigin {
    /// An origin for one worker. The budget, if any, is shared by all of them.
    ///
    /// # Errors
    /// When there is no address.
    pub fn new(options: Arc<HttpOptions>, budget: Option<Arc<Budget>>) -> Result<Self, OriginError> {
        let first = options.addresses.first().ok_or_else(|| OriginError::new(Fault::Internal, "an origin without an address"))?;
        let authority = HeaderValue::try_from(first.authority())
            .map_err(|e| OriginError::new(Fault::Internal, "an address that no Host field can hold").because(e))?;
        Ok(Self { pool: Arc::new(Pool::new(options)), budget, next: Cell::new(0), authority })
    }

    /// What this worker knows of each address.
    pub fn addresses(&self) -> impl Iterator<Item = AddressStatus<'_>> {
        self.pool.slots.iter().map(|slot| AddressStatus { address: &slot.address, up: slot.is_up(), idle: slot.idle() })
    }

    /// The budget, for metrics.
    #[must_use]
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Response<Body>, OriginError> {
        let mut attempt = Attempt::new(request, &self.authority)?;
        let mut permit = match &self.budget {
            Some(budget) => Some(budget.acquire().await?),
            None => None,
        };
        let count = self.pool.slots.len();
        let start = self.next.replace((self.next.get() + 1) % count);
        let mut last = None;
        for slot in (start..count).chain(0..start) {
            let Some(turn) = self.pool.slots[slot].admit() else { continue };
            match self.ask(slot, &mut attempt).await {
                Ok((response, connection)) => {
                    turn.succeeded();
                    return self.deliver(slot, &attempt, response, connection, permit.take());
                }
                Err(Failed { error, blame, next }) => {
                    if blame {
                        turn.failed(&self.pool.options);
                    }
                    if !next {
                        return Err(error);
                    }
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| OriginError::new(Fault::Unavailable, format!("all {count} addresses are down"))))
    }

    /// Asks one address: over an idle connection if there is one, else over a new one; over a new one again if the idle one had died
    /// without anything being lost by it.
    async fn ask(&self, slot: usize, attempt: &mut Attempt) -> Result<(Response<Incoming>, Connection), Failed> {
        let options = &*self.pool.options;
        let mut fresh = false;
        loop {
            let idle = if fresh { None } else { self.pool.checkout(slot, !attempt.idempotent).await };
            let mut connection = match idle {
                Some(connection) => connection,
                // Nothing was sent: another address may serve any method.
                None => self.pool.open(slot).await.map_err(|error| Failed { error, blame: true, next: true })?,
            };
            let address = &self.pool.slots[slot].address;
            let Some(request) = attempt.take(connection.reused) else {
                let error = OriginError::new(Fault::Internal, "a request that was already sent");
                return Err(Failed { error, blame: false, next: false });
            };
            let sent = connection.send(request);
            let Some(outcome) = head_in_time(sent, options.first_byte_timeout, attempt.progress.as_deref()).await else {
                let error = OriginError::new(Fault::ReadTimeout, format!("no response from {address}"));
                return Err(Failed { error, blame: true, next: false });
            };
            let mut failed = match outcome {
                Ok(response) => return Ok((response, connection)),
                Err(failed) => failed,
            };
            let unsent = failed.take_message();
            let nothing_sent = unsent.is_some();
            if nothing_sent {
                attempt.request = unsent;
            }
            // Bytes that came before anything was sent were not about this request: a 408 to an idle connection, say.
            if connection.reused && (nothing_sent || (attempt.request.is_some() && !connection.heard())) {
                self.pool.slots[slot].forget_idle();
                fresh = true;
                continue;
            }
            let error = fault::of_head(failed.into_error(), address);
            let blame = !connection.reused && !is_ours_or_the_clients(error.fault);
            return Err(Failed { error, blame, next: nothing_sent });
        }
    }

    /// The response as the pipeline gets it.
    fn deliver(
        &self,
        slot: usize,
        attempt: &Attempt,
        response: Response<Incoming>,
        connection: Connection,
        permit: Option<Permit>,
    ) -> Result<Response<Body>, OriginError> {
        let (mut head, incoming) = response.into_parts();
        let protocol = |what: &str| OriginError::new(Fault::ProtocolError, format!("{}: {what}", self.pool.slots[slot].address));
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            if !attempt.upgrade {
                return Err(protocol("a 101 that nobody asked for"));
            }
            connection.hand_over();
            return Ok(Response::from_parts(head, Body::Empty));
        }
        let keep = response::settle(&mut head, self.pool.options.pool_idle_timeout).map_err(protocol)?;
        // A login that is bound to its connection (NTLM, Negotiate) must not be the next client's.
        let bound = attempt.bound || head.headers.get_all(header::WWW_AUTHENTICATE).iter().any(request::binds_connection);
        let keep = keep.filter(|_| !bound);
        let uploading = attempt.progress.is_some();
        let lease = Lease { connection, pool: Arc::clone(&self.pool), slot, _permit: permit, keep, uploading };
        let body = if incoming.is_end_stream() {
            lease.end();
            Body::Empty
        } else {
            Body::stream(ResponseBody::new(incoming, lease))
        };
        Ok(Response::from_parts(head, body))
    }
}

impl Origin for HttpOrigin {
    fn fetch(&self, request: Request<Body>) -> LocalFuture<'_, Result<Response<Body>, OriginError>> {
        Box::pin(self.exchange(request))
    }
}

/// Faults that say nothing about the address.
const fn is_ours_or_the_clients(fault: Fault) -> bool {
    matches!(fault, Fault::RequestBody | Fault::RequestTimeout | Fault::RequestTooLarge | Fault::Internal)
}

/// An address did not answer.
struct Failed {
    error: OriginError,
    /// Whether it is the address's fault.
    blame: bool,
    /// Whether another one may be asked.
    next: bool,
}

/// A request on its way, and what may be done with it.
struct Attempt {
    request: Option<Request<Outgoing>>,
    progress: Option<Arc<Progress>>,
    idempotent: bool,
    upgrade: bool,
    /// Its credentials are for the connection, not for the request.
    bound: bool,
}

impl Attempt {
    fn new(request: Request<Body>, authority: &HeaderValue) -> Result<Self, OriginError> {
        let (mut head, body) = request.into_parts();
        if head.method == Method::CONNECT {
            return Err(OriginError::new(Fault::Internal, "CONNECT is not for origins"));
        }
        head.version = Version::HTTP_11;
        head.headers.entry(header::HOST).or_insert_with(|| authority.clone());
        let (body, progress) = Outgoing::new(body);
        let idempotent = request::is_idempotent(&head.method);
        let upgrade = head.headers.contains_key(header::UPGRADE);
        let bound = head.headers.get_all(header::AUTHORIZATION).iter().any(request::binds_connection);
        Ok(Self { request: Some(Request::from_parts(head, body)), progress, idempotent, upgrade, bound })
    }

    /// The request, to be sent. Another one is kept back if it may come to be needed: on a new connection it may not, which saves the copy.
    fn take(&mut self, reused: bool) -> Option<Request<Outgoing>> {
        let request = self.request.take()?;
        if reused
            && self.idempotent
            && let Some(body) = request.body().again()
        {
            let mut again = Request::new(body);
            *again.method_mut() = request.method().clone();
            *again.uri_mut() = request.uri().clone();
            *again.headers_mut() = request.headers().clone();
            self.request = Some(again);
        }
        Some(request)
    }
}

/// Waits for the response head; none if it took too long.
async fn head_in_time<T>(sending: impl Future<Output = T>, timeout: Duration, progress: Option<&Progress>) -> Option<T> {
    let mut sending = pin!(sending);
    let mut alarm = pin!(tokio::time::sleep(timeout));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(outcome) = sending.as_mut().poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        while alarm.as_mut().poll(cx).is_ready() {
            match progress.map(|progress| progress.deadline(timeout)) {
                Some(later) if later > Instant::now() => Pin::as_mut(&mut alarm).reset(later),
                _ => return Poll::Ready(None),
            }
        }
        Poll::Pending
    })
    .await
}
