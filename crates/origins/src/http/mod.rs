//! An origin that speaks HTTP/1.1, over TCP, TLS or a Unix socket.
//!
//! The one idea: a request goes out once. It is sent again only where nothing of it can have been acted upon (it was never written,
//! or no connection came about), or where acting twice does no harm (RFC 9110 §9.2.2) and the connection had carried a request before,
//! so that its death says nothing about this one. Not here: what the request should say ([`rebuild`] is called before), caching, and
//! any opinion on status codes.

mod content;
mod fault;
mod head;
mod incoming;
mod outgoing;
mod pool;
mod probe;
mod request;
mod response;
mod upload;
mod wire;

#[cfg(test)]
mod tests;

use std::{cell::Cell, fmt, sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use tokio::time::Instant;

pub use probe::{Kind, Probe, probe};
pub use request::{Forwarding, Peer, is_for_proxies_only, keep_upgrade, rebuild};

use crate::{
    Body, Fault, LocalFuture, OnInterim, Origin, OriginError,
    server::{Address, Budget, HealthOptions, Permit, health::Health},
};
use content::Content;
use head::Head;
use pool::Pool;
use wire::{Wire, WireBody, WireLease};

/// How to reach an origin and how long to wait for it. [`HttpOptions::new`] has the defaults.
#[derive(Clone)]
pub struct HttpOptions {
    addresses: Vec<Address>,
    /// What is known of each of them, by all workers together.
    known: Arc<[Health]>,
    /// For https addresses: see [`crate::server::tls_config`].
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
    /// The defaults for these addresses, of which there is to be one at least. Several take turns, and stand in for each other when one is down.
    #[must_use]
    pub fn new(addresses: Vec<Address>, tls: Arc<rustls::ClientConfig>) -> Self {
        Self {
            known: addresses.iter().map(|_| Health::default()).collect(),
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

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Each address, and whether requests go there as to any other, by what all workers know.
    pub fn known(&self) -> impl Iterator<Item = (&Address, bool)> {
        self.addresses.iter().zip(&*self.known).map(|(address, health)| (address, health.is_up()))
    }

    fn health_of(&self, address: usize) -> &Health {
        &self.known[address]
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

/// An HTTP origin, as one worker sees it: with connections of its own.
///
/// Runs where [`tokio::task::spawn_local`] does. Healthy addresses take turns (round robin): all are meant to be the same site.
///
/// Responses come without the fields that concern the connection (`Connection` and what it names, `Keep-Alive`, `Transfer-Encoding`,
/// `Upgrade`); only a 101 keeps them, with [`hyper::upgrade::OnUpgrade`] in its extensions. To ask for an upgrade, the caller sets
/// `Connection: upgrade` and `Upgrade` ([`keep_upgrade`]); they are sent as they are. Of interim responses [`Origin::fetch_with_interim`] tells,
/// unless the request's content comes as a stream.
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
        self.pool.slots.iter().enumerate().map(|(number, slot)| AddressStatus {
            address: &slot.address,
            up: self.pool.health(number).is_up(),
            idle: slot.idle(),
        })
    }

    /// The budget, for metrics.
    #[must_use]
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn would keep the request twice: as its argument and as the variable")]
    fn exchange<'a>(
        &'a self,
        mut request: Request<Body>,
        interim: Option<&'a OnInterim<'a>>,
    ) -> impl Future<Output = Result<Response<Body>, OriginError>> + 'a {
        async move {
            if *request.method() == Method::CONNECT {
                return Err(OriginError::new(Fault::Internal, "CONNECT is not for origins"));
            }
            let fields = request.headers_mut();
            if !fields.contains_key(header::HOST) {
                fields.insert(header::HOST, self.authority.clone());
            }
            let nature = Nature::of(&request);
            let permit = match &self.budget {
                Some(budget) => match budget.try_acquire() {
                    Some(permit) => Some(permit),
                    // What is seldom awaited is boxed: this future is allocated for every request, and its size is a cost.
                    None => Some(Box::pin(budget.acquire()).await?),
                },
                None => None,
            };
            if nature.upgrade || matches!(request.body(), Body::Stream(_)) {
                return Box::pin(self.exchange_both_ways(request, nature, permit)).await;
            }
            let (mut last, now) = (None, Instant::now());
            for slot in self.turns(now) {
                match self.ask(slot, (&request, nature, now), interim).await {
                    Ok((head, wire)) => {
                        request::spare::give(std::mem::take(request.headers_mut()));
                        return self.deliver(slot, (request.method(), nature), head, wire, permit);
                    }
                    Err(failed) => last = Some(failed.or_next()?),
                }
            }
            Err(last.unwrap_or_else(unasked))
        }
    }

    /// The addresses, each in its turn; those that are down after all others. Beyond the 64th they are asked in their turn whatever is known.
    fn turns(&self, now: Instant) -> impl Iterator<Item = usize> + use<> {
        let count = self.pool.slots.len();
        let start = self.next.replace((self.next.get() + 1) % count);
        let mut later = 0_u64;
        if count > 1 {
            for slot in (0..count.min(64)).filter(|&slot| !self.pool.health(slot).has_its_turn(now)) {
                later |= 1 << slot;
            }
        }
        let in_turn =
            move |is_later: bool| (start..count).chain(0..start).filter(move |&slot| (slot < 64 && later >> slot & 1 == 1) == is_later);
        in_turn(false).chain(in_turn(true))
    }

    /// Asks one address: over an idle connection if there is one, else over a new one; over a new one again if the idle one had died
    /// without anything being lost by it.
    async fn ask(
        &self,
        slot: usize,
        (request, nature, now): (&Request<Body>, Nature, Instant),
        interim: Option<&OnInterim<'_>>,
    ) -> Result<(Head, Box<Wire>), Failed> {
        let options = &*self.pool.options;
        let (mut fresh, mut asked) = (false, now);
        loop {
            let idle = if fresh { None } else { self.pool.checkout_wire(slot, !nature.idempotent, now).await };
            let mut wire = if let Some(wire) = idle {
                wire
            } else {
                // Nothing was sent: another address may serve any method.
                let opened = Box::pin(self.pool.open_wire(slot)).await.map_err(|error| Failed { error, next: true })?;
                asked = Instant::now();
                opened
            };
            wire.begin(request);
            let address = &self.pool.slots[slot].address;
            let broken = match wire.final_head(options, asked + options.first_byte_timeout, interim).await {
                Some(Ok(head)) => return Ok((head, wire)),
                Some(Err(broken)) => broken,
                None => {
                    let error = OriginError::new(Fault::ReadTimeout, format!("no response from {address}"));
                    return Err(Failed { error, next: false });
                }
            };
            // Bytes that came before anything was sent were not about this request: a 408 to an idle connection, say.
            if wire.reused && (wire.nothing_sent() || (nature.idempotent && !wire.heard)) {
                self.pool.slots[slot].forget_idle();
                fresh = true;
                continue;
            }
            let error = broken.into_error("response head from", address);
            return Err(Failed { error, next: wire.nothing_sent() });
        }
    }

    /// The response as the pipeline gets it.
    fn deliver(
        &self,
        slot: usize,
        (method, nature): (&Method, Nature),
        head: Head,
        wire: Box<Wire>,
        permit: Option<Permit>,
    ) -> Result<Response<Body>, OriginError> {
        let Head { status, version, mut fields } = head;
        let protocol = |what: &str| OriginError::new(Fault::ProtocolError, format!("{}: {what}", self.pool.slots[slot].address));
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(protocol("a 101 that nobody asked for"));
        }
        let content = Content::of(method, status, version, &fields).map_err(protocol)?;
        let keep = response::settle((status, version), &mut fields, self.pool.options.pool_idle_timeout).map_err(protocol)?;
        let keep = keep.filter(|_| content != Content::Close && !nature.bound && !challenges_connection(&fields));
        let lease = WireLease { wire, pool: Arc::clone(&self.pool), slot, _permit: permit, keep };
        let body = if content.is_over() {
            lease.end();
            Body::Empty
        } else {
            Body::stream(WireBody::new(content, lease))
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = fields;
        Ok(response)
    }
}

impl Origin for HttpOrigin {
    fn fetch(&self, request: Request<Body>) -> LocalFuture<'_, Result<Response<Body>, OriginError>> {
        Box::pin(self.exchange(request, None))
    }

    fn fetch_with_interim<'a>(
        &'a self,
        request: Request<Body>,
        interim: &'a OnInterim<'a>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        Box::pin(self.exchange(request, Some(interim)))
    }
}

/// What of a request decides over its connection and whether it may be sent twice.
#[derive(Debug, Clone, Copy)]
struct Nature {
    idempotent: bool,
    upgrade: bool,
    /// Its credentials are for the connection, not for the request.
    bound: bool,
}

impl Nature {
    fn of(request: &Request<Body>) -> Self {
        let mut nature = Self { idempotent: request::is_idempotent(request.method()), upgrade: false, bound: false };
        for (name, value) in request.headers() {
            nature.upgrade |= *name == header::UPGRADE;
            nature.bound |= *name == header::AUTHORIZATION && request::binds_connection(value);
        }
        nature
    }
}

/// A login that is bound to its connection (NTLM, Negotiate) must not be the next client's.
fn challenges_connection(fields: &HeaderMap) -> bool {
    fields.get_all(header::WWW_AUTHENTICATE).iter().any(request::binds_connection)
}

/// An address did not answer.
struct Failed {
    error: OriginError,
    /// Whether another one may be asked.
    next: bool,
}

impl Failed {
    /// The error, to be kept while another address is asked; or, where none may be, to be returned.
    fn or_next(self) -> Result<OriginError, OriginError> {
        if self.next { Ok(self.error) } else { Err(self.error) }
    }
}

/// What is said when there was no address to ask, which [`HttpOrigin::new`] excludes.
fn unasked() -> OriginError {
    OriginError::new(Fault::Internal, "an origin without an address")
}
