//! A FastCGI server: php-fpm, nearly always.
//!
//! The one idea: a child of php-fpm is what is scarce. It is taken when all of a request is at hand, never held by a connection that somebody else could use
//! (`line.rs`, `server.rs`), and given back when the client leaves, by closing the connection: php-fpm pays no attention to the record that is meant for
//! this.
//!
//! A request goes out once. It is sent again where nothing of it has left, or where it changes nothing and the connection had carried another one before, so
//! that its death says nothing about this one. Not here: which script answers for a path, and caching.

pub mod ahead;
mod body;
mod connection;
pub mod head;
mod line;
pub mod messages;
mod params;
pub mod record;
mod server;
pub mod spool;

#[cfg(test)]
mod tests;

use std::{
    future::poll_fn,
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use ::http::{Method, Request, Response, StatusCode, header::CONTENT_LENGTH};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use semantics::request::content_length;
use tokio::time::Instant;

pub use params::Script;
pub use server::FastCgiServer;

use crate::{
    Arrival, Body, Fault, OnInterim, OriginError,
    server::{AddressStatus, Budget, Failed, Lease},
};
use body::ResponseBody;
use connection::{Broken, Connection};
use head::{HEAD_BYTES_MAX, Head};
use line::Line;
use messages::{About, Flow, Messages};
use params::Params;
use record::Piece;
use server::{Connections, HeldForRequest};
use spool::Content;

/// The time for which an idle connection may hold a child. With the time between two looks it is closed within a second.
const IDLE_MAX: Duration = Duration::from_millis(750);
/// Says how long children are waited for, and held.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// The time for which a request waits for a child to say that it is done with the request before, as it nearly always does at once.
    free: Duration,
    /// The time for which a child may serve requests that wait in this worker before it takes the next connection in the server's queue. A
    /// new connection costs some 25 us, which is little beside this; and a page of WordPress takes longer than this, so that each of them
    /// is served in the order of that queue.
    handed: Duration,
    /// The time for which a connection may hold a child, from one request to the next, while nobody is known to wait: others may use the
    /// server whom this one does not know.
    held: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { free: Duration::from_millis(2), handed: Duration::from_millis(10), held: Duration::from_secs(1) }
    }
}

/// The time between two looks for idle connections to be closed.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Interim responses before a final one.
const INTERIMS_MAX: usize = 64;

/// A FastCGI server, as one worker sees it: with connections of its own.
///
/// Runs where [`tokio::task::spawn_local`] does.
#[derive(Debug)]
pub struct FastCgi {
    server: Arc<FastCgiServer>,
    pool: Arc<Connections>,
    budget: Option<Arc<Budget>>,
    /// The requests that wait for a child, by the number of the address.
    lines: Box<[Arc<Line>]>,
    flow: Arc<Mutex<Flow>>,
    busy: Arc<()>,
    looking: Arc<AtomicBool>,
}

impl FastCgi {
    /// Makes a client for one worker. The server and the budget, if any, are shared by all of them.
    #[must_use]
    pub fn new(server: Arc<FastCgiServer>, budget: Option<Arc<Budget>>) -> Self {
        let pool = server.pool();
        let lines = pool.addresses().map(|_| Arc::default()).collect();
        Self { server, pool, budget, lines, flow: Arc::default(), busy: Arc::default(), looking: Arc::default() }
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

    /// Has a script answer a request, as [`Origin::fetch`](crate::Origin::fetch) says.
    ///
    /// # Errors
    /// Fails when no usable final response came: see [`Fault`].
    pub async fn run(
        &self,
        script: &Script,
        request: Request<Body>,
        arrival: &Arrival<'_>,
        interim: Option<&OnInterim<'_>>,
    ) -> Result<Response<Body>, OriginError> {
        let (parts, content) = request.into_parts();
        let mut out = Vec::with_capacity(4096);
        record::write_begin(&mut out);
        let mut params = Params::new(out);
        params.describe(script, &parts, arrival)?;
        let id = self.server.next_id();
        // As Apache's mod_unique_id calls it: applications write it into their logs.
        params.add("UNIQUE_ID", id.as_bytes())?;
        let content = self.server.spool.take(content).await?;
        // Always: without it PHP pays no attention to the content, and with another one a child waits for it forever.
        params.add_length(content.left())?;
        let prepared = PreparedRequest {
            records: params.end(),
            content,
            method: parts.method,
            id,
            client: arrival.caller.and_then(|caller| caller.client),
            target: parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        };
        let until = Instant::now() + self.wait_max();
        let permit = match &self.budget {
            Some(budget) => Some(budget.acquire().await?),
            None => None,
        };
        let (mut last, now) = (None, Instant::now());
        for slot in self.pool.turns(now) {
            match self.ask(slot, &prepared, until, interim).await {
                Ok((head, first, connection)) => {
                    let keep = Some(IDLE_MAX);
                    let lease = Lease { connection, pool: Arc::clone(&self.pool), address: slot, _permit: permit, keep };
                    return self.deliver(&prepared.method, head, first, lease);
                }
                Err(failed) => last = Some(failed.or_next()?),
            }
        }
        Err(last.unwrap_or_else(|| OriginError::new(Fault::Internal, "a FastCGI server without an address")))
    }

    /// Asks one address: over an idle connection if there is one and the request may be repeated, else over the next one whose child is free; and once more
    /// over such a one if a connection that had carried another request before had died.
    async fn ask(
        &self,
        slot: usize,
        prepared: &PreparedRequest,
        until: Instant,
        interim: Option<&OnInterim<'_>>,
    ) -> Result<(Head, Bytes, Box<Connection>), Failed> {
        let address = self.pool.address(slot);
        let may_repeat = params::may_be_repeated(&prepared.method);
        let mut is_first = may_repeat;
        loop {
            let takes_idle = is_first && self.lines[slot].is_empty();
            let idle = if takes_idle { self.pool.checkout_when_free(slot, self.server.times.free, Instant::now()).await } else { None };
            let mut connection = match idle {
                Some(connection) => connection,
                // Nothing was sent: another address may serve any method.
                None => self.free_child(slot, until).await.map_err(|error| Failed { error, next: true })?,
            };
            self.look_for_idle();
            connection.begin(&prepared.records, prepared.content.again(), Messages::new(prepared.about(), Arc::clone(&self.flow)));
            let broken = match self.head(&mut connection, interim).await {
                Ok(Some((head, first))) => return Ok((head, first, connection)),
                Ok(None) => {
                    let error = OriginError::new(Fault::ReadTimeout, format!("no response from {address}"));
                    return Err(Failed { error, next: false });
                }
                Err(broken) => broken,
            };
            if connection.reused && !connection.heard && is_first {
                self.pool.forget_idle(slot);
                is_first = false;
                continue;
            }
            let error = broken.into_error("response head from", address);
            return Err(Failed { error, next: connection.nothing_sent() });
        }
    }

    /// Waits for a child that has said that it is free: first come first served.
    async fn free_child(&self, slot: usize, until: Instant) -> Result<Box<Connection>, OriginError> {
        let place = self.lines[slot].join();
        loop {
            let mut connection = place.child(&self.server, &self.pool, slot, until).await?;
            if tokio::time::timeout(self.server.times.free, connection.is_free()).await.is_ok_and(|free| free) {
                return Ok(connection);
            }
        }
    }

    /// Returns how long a request may wait for a child.
    fn wait_max(&self) -> Duration {
        self.budget.as_ref().map_or(self.server.options.first_byte_timeout, |budget| budget.queue_timeout())
    }

    /// Sends the request, and waits for the final head, and what came with it; none if it has not come in time. Interim responses are told.
    async fn head(&self, connection: &mut Connection, interim: Option<&OnInterim<'_>>) -> Result<Option<(Head, Bytes)>, Broken> {
        let mut interims = 0;
        let (mut head, mut looked) = (BytesMut::new(), 0);
        let timeout = self.server.options.first_byte_timeout;
        poll_fn(|cx| {
            loop {
                if let Some(length) = head::length(&head, looked) {
                    if length > HEAD_BYTES_MAX {
                        return Poll::Ready(Err(too_large()));
                    }
                    let bytes = head.split_to(length).freeze();
                    looked = 0;
                    let read = head::read(&bytes)?;
                    if !read.status.is_informational() {
                        return Poll::Ready(Ok(Some((read, head.split().freeze()))));
                    }
                    interims += 1;
                    if interims > INTERIMS_MAX || read.status == StatusCode::SWITCHING_PROTOCOLS {
                        return Poll::Ready(Err(Broken::new(Fault::ProtocolError, "an interim response that cannot be")));
                    }
                    tell(read, interim);
                    continue;
                }
                if head.len() >= HEAD_BYTES_MAX {
                    return Poll::Ready(Err(too_large()));
                }
                looked = head.len();
                match connection.poll_piece(cx) {
                    Poll::Ready(Ok(Piece::Output(bytes))) => head.extend_from_slice(&bytes),
                    Poll::Ready(Ok(_)) => {
                        return Poll::Ready(Err(Broken::new(Fault::ProtocolError, "the request ended before the response's head")));
                    }
                    Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                    Poll::Pending => return connection.poll_alarm(cx, connection.sent_at + timeout).map(|()| Ok(None)),
                }
            }
        })
        .await
    }

    /// Makes the response that the pipeline gets.
    fn deliver(&self, method: &Method, head: Head, first: Bytes, lease: body::ConnectionLease) -> Result<Response<Body>, OriginError> {
        let Head { status, fields } = head;
        let line = Arc::clone(&self.lines[lease.address]);
        let held = HeldForRequest { server: Arc::clone(&self.server), line, _busy: Arc::clone(&self.busy) };
        let has_no_content = *method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if has_no_content {
            body::end_now(lease, held);
            Body::Empty
        } else {
            // It has been settled: one line with a number.
            let length = content_length(&fields);
            ahead::read(ResponseBody::new(first, length, lease, held), &self.server.room)?
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        Ok(response)
    }

    /// Closes connections that have been idle for too long, as long as there may be some.
    fn look_for_idle(&self) {
        if self.looking.swap(true, Relaxed) {
            return;
        }
        let (pool, busy, looking) = (Arc::downgrade(&self.pool), Arc::downgrade(&self.busy), Arc::clone(&self.looking));
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(pool) = pool.upgrade() else { return };
                pool.close_expired(Instant::now());
                // One is the worker's own.
                if busy.strong_count() <= 1 && pool.addresses().all(|address| address.idle == 0) {
                    looking.store(false, Relaxed);
                    return;
                }
            }
        });
    }
}

/// A request that is ready to be sent.
struct PreparedRequest {
    /// Everything before the content.
    records: Vec<u8>,
    content: Content,
    method: Method,
    /// Names the request to PHP, and in the log.
    id: String,
    client: Option<IpAddr>,
    target: String,
}

impl PreparedRequest {
    fn about(&self) -> About {
        About { id: self.id.as_str().into(), client: self.client, method: self.method.clone(), target: self.target.as_str().into() }
    }
}

fn tell(head: Head, interim: Option<&OnInterim<'_>>) {
    if let Some(interim) = interim.filter(|_| head.status != StatusCode::CONTINUE) {
        let mut fields = head.fields;
        // Nothing follows an interim head, whatever it says (RFC 9110 §8.6).
        fields.remove(CONTENT_LENGTH);
        interim(head.status, &fields);
    }
}

const fn too_large() -> Broken {
    Broken::new(Fault::ResponseTooLarge, "the head is larger than allowed")
}

/// Returns whether an address could not be connected to because its queue is full.
fn is_full(error: &OriginError) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<io::Error>());
    error.fault == Fault::Overloaded && source.is_some_and(|source| source.kind() == io::ErrorKind::WouldBlock)
}
