//! Requests whose content is still coming from the client, and upgrades: both directions at once, which is hyper's affair.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{
    HttpOrigin, Nature, challenges_connection,
    client_fields::tell,
    fault,
    hyper_connection::HyperConnection,
    idle::Idle,
    incoming::{ResponseBody, UploadLease},
    outgoing::{Outgoing, Progress},
    response, unasked,
};
use crate::{
    Arrival, Body, Fault, OriginError,
    server::{Failed, Lease, Permit},
};

impl HttpOrigin {
    pub(super) async fn exchange_both_ways(
        &self,
        (mut request, arrival): (Request<Body>, &Arrival<'_>),
        nature: Nature,
        mut permit: Option<Permit>,
    ) -> Result<Response<Body>, OriginError> {
        tell(arrival, request.headers_mut());
        let mut attempt = Attempt::new(request, nature);
        let mut last = None;
        for slot in self.pool.turns(Instant::now()) {
            match self.ask_both_ways(slot, &mut attempt).await {
                Ok((response, connection)) => {
                    return self.deliver_both_ways(slot, &attempt, response, connection, permit.take());
                }
                Err(failed) => last = Some(failed.or_next()?),
            }
        }
        Err(last.unwrap_or_else(unasked))
    }

    /// Asks one address: over an idle connection if there is one, else over a new one; over a new one again if the idle one had died
    /// without anything being lost by it.
    async fn ask_both_ways(&self, slot: usize, attempt: &mut Attempt) -> Result<(Response<Incoming>, HyperConnection), Failed> {
        let options = self.pool.options();
        let mut fresh = false;
        loop {
            let idle = if fresh {
                None
            } else {
                let is_hyper = |idle: &Idle| matches!(idle, Idle::Hyper(_));
                self.pool.checkout(slot, is_hyper, !attempt.nature.idempotent, Instant::now()).await
            };
            let mut connection = if let Some(Idle::Hyper(mut connection)) = idle {
                connection.reused = true;
                connection
            } else {
                // Nothing was sent: another address may serve any method.
                self.open(slot).await.map_err(|error| Failed { error, next: true })?
            };
            let address = self.pool.address(slot);
            let Some(request) = attempt.take(connection.reused) else {
                let error = OriginError::new(Fault::Internal, "a request that was already sent");
                return Err(Failed { error, next: false });
            };
            let sent = connection.send(request);
            let Some(outcome) = head_in_time(sent, options.first_byte_timeout, attempt.progress.as_deref()).await else {
                let error = OriginError::new(Fault::ReadTimeout, format!("no response from {address}"));
                return Err(Failed { error, next: false });
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
                self.pool.forget_idle(slot);
                fresh = true;
                continue;
            }
            let error = fault::of_head(failed.into_error(), address);
            return Err(Failed { error, next: nothing_sent });
        }
    }

    async fn open(&self, slot: usize) -> Result<HyperConnection, OriginError> {
        let stream = self.pool.connect(slot).await?;
        HyperConnection::open(stream, self.pool.address(slot), self.pool.options()).await
    }

    /// Makes the response that the pipeline gets.
    fn deliver_both_ways(
        &self,
        slot: usize,
        attempt: &Attempt,
        response: Response<Incoming>,
        connection: HyperConnection,
        permit: Option<Permit>,
    ) -> Result<Response<Body>, OriginError> {
        let (mut head, incoming) = response.into_parts();
        let protocol = |what: &str| OriginError::new(Fault::ProtocolError, format!("{}: {what}", self.pool.address(slot)));
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            if !attempt.nature.upgrade {
                return Err(protocol("a 101 that nobody asked for"));
            }
            connection.hand_over();
            return Ok(Response::from_parts(head, Body::Empty));
        }
        let said =
            response::settle((head.status, head.version), &mut head.headers, self.pool.options().pool_idle_timeout).map_err(protocol)?;
        let keep = said.keep.filter(|_| !attempt.nature.bound && !challenges_connection(&head.headers));
        let uploading = attempt.progress.is_some();
        let lease = Lease { connection, pool: Arc::clone(&self.pool), address: slot, _permit: permit, keep };
        let lease = UploadLease { lease, uploading };
        let body = if incoming.is_end_stream() {
            lease.end();
            Body::Empty
        } else {
            Body::stream(ResponseBody::new(incoming, lease))
        };
        Ok(Response::from_parts(head, body))
    }
}

/// A request on its way, and what may be done with it.
struct Attempt {
    request: Option<Request<Outgoing>>,
    progress: Option<Arc<Progress>>,
    nature: Nature,
}

impl Attempt {
    fn new(request: Request<Body>, nature: Nature) -> Self {
        let (mut head, body) = request.into_parts();
        head.version = Version::HTTP_11;
        let (body, progress) = Outgoing::new(body);
        if progress.is_some() && matches!(head.method, Method::GET | Method::HEAD) && !head.headers.contains_key(header::CONTENT_LENGTH) {
            // hyper sends no content of unknown length with these, unless it is told to.
            head.headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        Self { request: Some(Request::from_parts(head, body)), progress, nature }
    }

    /// Takes the request, to be sent. Another one is kept back if it may come to be needed: on a new connection it may not, which saves the copy.
    fn take(&mut self, reused: bool) -> Option<Request<Outgoing>> {
        let request = self.request.take()?;
        if reused
            && self.nature.idempotent
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
