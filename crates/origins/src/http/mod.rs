//! An origin that speaks HTTP/1.1, over TCP, TLS or a Unix socket.
//!
//! The one idea: a request goes out once. It is sent again only where nothing of it can have been acted upon (it was never written,
//! or no connection came about), or where acting twice does no harm (RFC 9110 §9.2.2) and the connection had carried a request before,
//! so that its death says nothing about this one. Not here: what the request should say (the pipeline says it), caching, and
//! any opinion on status codes.

mod client_fields;
mod content;
mod fault;
mod head;
mod hyper_connection;
mod idle;
mod incoming;
mod outgoing;
mod probe;
mod request;
mod response;
mod upload;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use semantics::request::has_any;
use tokio::time::Instant;

pub use client_fields::tell;
pub(crate) use content::settle_length;
pub use probe::{Probe, Software, probe};

use crate::{
    Arrival, Body, Fault, LocalFuture, OnInterim, Origin, OriginError,
    request::spare,
    server::{AddressStatus, Budget, Failed, Lease, Permit, Pool, ServerOptions},
};
use content::Content;
use head::Head;
use idle::Idle;
use request::Nature;
use wire::{Wire, WireBody};

/// Returns the size of hyper's read buffer. It is larger than the head, so that it is the head's limit that is met first; and large enough for
/// few reads of a long body.
fn read_buffer_bytes_max(options: &ServerOptions) -> usize {
    (options.response_header_bytes_max * 2).max(128 * 1024)
}

/// An HTTP origin, as one worker sees it: with connections of its own.
///
/// Runs where [`tokio::task::spawn_local`] does. Healthy addresses take turns (round robin): all are meant to be the same site.
///
/// Responses come without the fields that concern the connection (`Connection` and what it names, `Keep-Alive`, `Transfer-Encoding`,
/// `Upgrade`); only a 101 keeps them, with [`hyper::upgrade::OnUpgrade`] in its extensions. To ask for an upgrade, the caller sets
/// `Connection: upgrade` and `Upgrade` ([`crate::keep_upgrade`]); they are sent as they are. It tells of interim
/// responses, unless the request's content comes as a stream.
#[derive(Debug)]
pub struct HttpOrigin {
    pool: Arc<Pool<Idle>>,
    budget: Option<Arc<Budget>>,
    authority: HeaderValue,
}

impl HttpOrigin {
    /// Makes an origin for one worker. The budget, if any, is shared by all of them.
    ///
    /// # Errors
    /// Fails when there is no address.
    pub fn new(options: Arc<ServerOptions>, budget: Option<Arc<Budget>>) -> Result<Self, OriginError> {
        let first = options.addresses().first().ok_or_else(|| OriginError::new(Fault::Internal, "an origin without an address"))?;
        let authority = HeaderValue::try_from(first.authority())
            .map_err(|e| OriginError::new(Fault::Internal, "an address that no Host field can hold").because(e))?;
        Ok(Self { pool: Arc::new(Pool::new(options)), budget, authority })
    }

    /// Returns what this worker knows of each address.
    pub fn addresses(&self) -> impl Iterator<Item = AddressStatus<'_>> {
        self.pool.addresses()
    }

    /// Returns the budget, for metrics.
    #[must_use]
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn would keep the request twice: as its argument and as the variable")]
    fn exchange<'a>(
        &'a self,
        mut request: Request<Body>,
        arrival: &'a Arrival<'a>,
        interim: Option<&'a OnInterim<'a>>,
    ) -> impl Future<Output = Result<Response<Body>, OriginError>> + 'a {
        async move {
            if *request.method() == Method::CONNECT {
                return Err(OriginError::new(Fault::Internal, "CONNECT is not for origins"));
            }
            let fields = request.headers_mut();
            if !has_any(fields, &[header::HOST]) {
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
                return Box::pin(self.exchange_both_ways((request, arrival), nature, permit)).await;
            }
            let (mut last, now) = (None, Instant::now());
            for slot in self.pool.turns(now) {
                match self.ask(slot, (&request, arrival), (nature, now), interim).await {
                    Ok((head, wire)) => {
                        spare::give(std::mem::take(request.headers_mut()));
                        return self.deliver(slot, (request.method(), nature), head, wire, permit);
                    }
                    Err(failed) => last = Some(failed.or_next()?),
                }
            }
            Err(last.unwrap_or_else(unasked))
        }
    }

    /// Asks one address: over an idle connection if there is one, else over a new one; over a new one again if the idle one had died
    /// without anything being lost by it.
    async fn ask(
        &self,
        slot: usize,
        asked: ArrivedRequest<'_>,
        (nature, now): (Nature, Instant),
        interim: Option<&OnInterim<'_>>,
    ) -> Result<(Head, Box<Wire>), Failed> {
        let options = self.pool.options();
        let (mut fresh, mut began) = (false, now);
        loop {
            let is_wire = |idle: &Idle| matches!(idle, Idle::Wire(_));
            let idle = if fresh { None } else { self.pool.checkout(slot, is_wire, !nature.idempotent, now).await };
            let mut wire = if let Some(Idle::Wire(mut wire)) = idle {
                wire.reused = true;
                wire
            } else {
                // Nothing was sent: another address may serve any method.
                let stream = Box::pin(self.pool.connect(slot)).await.map_err(|error| Failed { error, next: true })?;
                began = Instant::now();
                Box::new(Wire::new(stream))
            };
            wire.begin(asked);
            let address = self.pool.address(slot);
            let broken = match wire.final_head(options, began + options.first_byte_timeout, interim).await {
                Some(Ok(head)) => return Ok((head, wire)),
                Some(Err(broken)) => broken,
                None => {
                    let error = OriginError::new(Fault::ReadTimeout, format!("no response from {address}"));
                    return Err(Failed { error, next: false });
                }
            };
            // Bytes that came before anything was sent were not about this request: a 408 to an idle connection, say.
            if wire.reused && (wire.nothing_sent() || (nature.idempotent && !wire.heard)) {
                self.pool.forget_idle(slot);
                fresh = true;
                continue;
            }
            let error = broken.into_error("response head from", address);
            return Err(Failed { error, next: wire.nothing_sent() });
        }
    }

    /// Makes the response that the pipeline gets.
    fn deliver(
        &self,
        slot: usize,
        (method, nature): (&Method, Nature),
        head: Head,
        wire: Box<Wire>,
        permit: Option<Permit>,
    ) -> Result<Response<Body>, OriginError> {
        let Head { status, version, mut fields } = head;
        let protocol = |what: &str| OriginError::new(Fault::ProtocolError, format!("{}: {what}", self.pool.address(slot)));
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(protocol("a 101 that nobody asked for"));
        }
        let said = response::settle((status, version), &mut fields, self.pool.options().pool_idle_timeout).map_err(protocol)?;
        let content = Content::of(method, (status, version), said.coding, said.length).map_err(protocol)?;
        let keep = said.keep.filter(|_| content != Content::Close && !nature.bound && !challenges_connection(&fields));
        let lease = Lease { connection: wire, pool: Arc::clone(&self.pool), address: slot, _permit: permit, keep };
        let body = if content.is_over() {
            wire::end(lease);
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
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        arrival: &'a Arrival<'a>,
        interim: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        // It is made in its box: `Box::pin` would copy all of it there.
        let exchange = Box::write(Box::new_uninit(), self.exchange(request, arrival, interim));
        Box::into_pin(exchange)
    }
}

/// A request, and what its origin is told about where it came from.
type ArrivedRequest<'a> = (&'a Request<Body>, &'a Arrival<'a>);

/// Returns whether a response asks for a login that is bound to its connection (NTLM, Negotiate): that must not be the next client's.
fn challenges_connection(fields: &HeaderMap) -> bool {
    has_any(fields, &[header::WWW_AUTHENTICATE]) && fields.get_all(header::WWW_AUTHENTICATE).iter().any(request::binds_connection)
}

/// Makes the error for an origin without an address, which [`HttpOrigin::new`] excludes.
fn unasked() -> OriginError {
    OriginError::new(Fault::Internal, "an origin without an address")
}
