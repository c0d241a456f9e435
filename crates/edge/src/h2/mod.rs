//! HTTP/2 (RFC 9113): one connection, and all its streams in one task.
//!
//! Frames, windows and header compression are the library's. Here is what a request may be, how it is answered, and how long a client may
//! take. A hit is answered where its request is taken up; everything else is a future of its own beside the others, without a task. All that
//! is ready leaves together, when every stream has had its turn.

mod guard;
mod head;
mod io;
mod piece;
mod respond;
mod unread;

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Instant,
};

use ::h2::{
    RecvStream,
    server::{Builder, Connection, SendResponse},
};
use futures_util::{Stream as _, stream::FuturesUnordered};
use http::{Method, Request};
use semantics::{RequestFields, RequestHead};

use crate::{
    accept::Share,
    connection::{Phase, Seat},
    h1::head::Reject,
    limits::Limits,
    line::Line,
    service::{Exchange, Incoming, Peer, RequestBody, Service},
    stream::Stream,
    worker::{Front, Worker},
};
use io::Io;
use piece::Piece;
pub(crate) use unread::Unread;

/// Streams that a client may have at once.
const STREAMS_MAX: u32 = 128;

/// What a client may send of contents before they are read: for a stream, and for all of them together.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// What a stream may have waiting for its window, beyond stored pages, which wait where they are.
const SEND_BUFFER: usize = 64 * 1024;

/// What is remembered of streams that were reset: by us, and by the client before we looked at them.
const RESETS_MAX: usize = 64;

/// Malformed streams of one client, before it is cut off.
const MALFORMED_MAX: usize = 128;

type Sending<S> = SendResponse<Piece<<S as Service>::Stored>>;

/// What all streams of a connection share.
struct Shared<S: Service> {
    worker: Rc<Worker<S>>,
    front: Rc<Front>,
    peer: Peer,
    io: Io,
}

/// Serves one connection until either side has had enough. `share` is given back then.
pub(crate) async fn serve<S: Service>(
    worker: Rc<Worker<S>>,
    front: Rc<Front>,
    stream: Stream,
    peer: Peer,
    seat: Seat,
    _share: Share,
    begun: Vec<u8>,
) {
    let io = Io::new(stream, begun);
    seat.until(Phase::Head, front.allowances.header);
    let table = Rc::clone(&worker.table);
    let mut drained = pin!(table.drained());
    drained.as_mut().enable();
    let shared = Rc::new(Shared { worker, front, peer, io: io.clone() });
    let mut handshake = builder(&shared.front.limits).handshake(io.clone());
    let begun = poll_fn(|cx| {
        let begun = Pin::new(&mut handshake).poll(cx);
        let _ = io.poll_flush(cx);
        begun
    });
    let Ok(connection) = begun.await else { return };
    let mut driver =
        Driver { connection, streams: FuturesUnordered::new(), shared, seat, phase: Waiting::Service, written: 0, ticked: Instant::now() };
    let mut leaving = table.is_draining();
    if leaving {
        driver.leave();
    }
    poll_fn(|cx| {
        if !leaving && drained.as_mut().poll(cx).is_ready() {
            leaving = true;
            driver.leave();
        }
        driver.poll(cx, leaving)
    })
    .await;
    let shared = &driver.shared;
    if shared.io.is_flooded() {
        tracing::debug!(peer = ?peer.address, "a flood of frames; closed");
        shared.worker.service.refused(peer, 0, "a flood of frames");
    }
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(RESETS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(Some(MALFORMED_MAX));
    builder
}

/// What the connection's deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Request,
    Service,
    Client,
}

struct Driver<S: Service, F> {
    connection: Connection<Io, Piece<S::Stored>>,
    streams: FuturesUnordered<F>,
    shared: Rc<Shared<S>>,
    seat: Seat,
    phase: Waiting,
    /// Bytes written when the client was last seen to take any.
    written: u64,
    ticked: Instant,
}

impl<S: Service> Driver<S, Pin<Box<dyn Future<Output = ()>>>> {
    /// Does what can be done now. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>, leaving: bool) -> Poll<()> {
        let seconds = self.ticked.elapsed().as_secs();
        if seconds > 0 {
            self.ticked = Instant::now();
            self.shared.io.tick(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
        let over = loop {
            while let Poll::Ready(Some(())) = Pin::new(&mut self.streams).poll_next(cx) {}
            match self.connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, sending)))) => self.begin(request, sending),
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!(peer = ?self.shared.peer.address, %error, "connection ended");
                    break true;
                }
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
        };
        let flushed = self.shared.io.poll_flush(cx);
        if over || matches!(flushed, Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        self.keep_time(flushed.is_pending(), leaving);
        Poll::Pending
    }

    fn keep_time(&mut self, blocked: bool, leaving: bool) {
        let allowances = &self.shared.front.allowances;
        let waiting = if blocked {
            Waiting::Client
        } else if self.streams.is_empty() && !self.connection.has_streams() {
            Waiting::Request
        } else {
            Waiting::Service
        };
        let written = self.shared.io.written();
        let moves = written != self.written;
        self.written = written;
        if waiting == self.phase && !(waiting == Waiting::Client && moves) {
            return;
        }
        self.phase = waiting;
        match waiting {
            Waiting::Request if leaving => self.seat.until(Phase::Quiet, allowances.linger),
            Waiting::Request => self.seat.until(Phase::Quiet, allowances.idle),
            Waiting::Service => self.seat.in_service(),
            Waiting::Client => self.seat.until(Phase::Write, allowances.write),
        }
    }

    /// Says goodbye (RFC 9113 §6.8): requests under way are answered, and the client sends its next ones elsewhere.
    fn leave(&mut self) {
        self.connection.graceful_shutdown();
        if self.phase == Waiting::Request {
            self.seat.until(Phase::Quiet, self.shared.front.allowances.linger);
        }
    }

    fn begin(&mut self, request: Request<RecvStream>, mut sending: Sending<S>) {
        let started = Instant::now();
        let shared = &self.shared;
        let (mut parts, body) = request.into_parts();
        let judged = match head::judge(&mut parts, &shared.front.limits) {
            Ok(judged) => judged,
            Err(reject) => return shared.refuse(&mut sending, reject),
        };
        let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
        if is_read && body.is_end_stream() {
            match shared.hit(&parts, sending, started) {
                Ok(None) => return,
                Ok(Some(rest)) => return self.streams.push(Box::pin(rest)),
                Err(unanswered) => sending = unanswered,
            }
        }
        let limits = &shared.front.limits;
        let (body, left) = Unread::new(body);
        let body = RequestBody::limited(Incoming::Http2(body, judged.length), limits.body_bytes, limits.body_timeout);
        let request = Request::from_parts(parts, body);
        self.streams.push(Box::pin(Rc::clone(shared).answer(request, sending, started, (judged.expects, left))));
    }
}

/// What the log wants to know of a request.
fn said(parts: &http::request::Parts) -> (String, [&[u8]; 3]) {
    let logged = [http::header::HOST, http::header::REFERER, http::header::USER_AGENT];
    let logged = logged.map(|name| parts.headers.get(name).map(http::HeaderValue::as_bytes).unwrap_or_default());
    (parts.uri.to_string(), logged)
}

impl<S: Service> Shared<S> {
    fn refuse(&self, sending: &mut Sending<S>, reject: Reject) {
        self.worker.service.refused(self.peer, reject.status, reject.reason);
        let body = format!("{} {}\n", reject.status, reject.reason);
        let response = http::Response::builder()
            .status(reject.status)
            .header(http::header::CONTENT_TYPE, "text/plain; charset=utf-8")
            .header(http::header::CONTENT_LENGTH, body.len())
            .body(());
        if let Ok(response) = response
            && let Ok(mut stream) = sending.send_response(response, false)
        {
            let _ = stream.send_data(Piece::Bytes(body.into()), true);
        }
    }

    /// Answers from the store, if that can be done at once; then gives back what is left to send when the client's window is too small for
    /// all of it.
    fn hit(
        self: &Rc<Self>,
        parts: &http::request::Parts,
        mut sending: Sending<S>,
        started: Instant,
    ) -> Result<Option<impl Future<Output = ()> + use<S>>, Sending<S>> {
        let fields = RequestFields::from_map(&parts.headers);
        let authority = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let head = RequestHead {
            method: &parts.method,
            scheme: self.peer.scheme,
            authority,
            path: parts.uri.path(),
            query: parts.uri.query(),
            fields: &fields,
        };
        let service = &self.worker.service;
        let mut out = self.worker.head_buffer.borrow_mut();
        out.clear();
        let Some(hit) = service.hit(self.peer, &head, started, &mut out) else { return Err(sending) };
        let response = respond::head_of(hit.status, &out);
        drop(out);
        let Some(body) = hit.body else {
            let complete = sending.send_response(response, true).is_ok();
            self.done(parts, hit.status, 0, started, complete, hit.note);
            return Ok(None);
        };
        let len = body.as_ref().len();
        let Ok(mut stream) = sending.send_response(response, len == 0) else {
            self.done(parts, hit.status, 0, started, false, hit.note);
            return Ok(None);
        };
        stream.reserve_capacity(len);
        if stream.capacity() >= len {
            let complete = len == 0 || stream.send_data(Piece::Stored(body, 0), true).is_ok();
            self.done(parts, hit.status, len as u64, started, complete, hit.note);
            return Ok(None);
        }
        let (target, logged) = said(parts);
        let line = Line::new(parts.method.clone(), http::Version::HTTP_2, &target, logged);
        let (shared, note, status) = (Rc::clone(self), hit.note, hit.status);
        Ok(Some(async move {
            let body = Rc::new(body);
            let (sent, result) = respond::send_stored(&mut stream, &body, shared.front.limits.write_timeout).await;
            shared.io.answered();
            shared.worker.service.done(&line.exchange(shared.peer, status, sent, started, result), note);
        }))
    }

    /// A request has been answered at once.
    fn done(&self, parts: &http::request::Parts, status: u16, body_bytes: u64, started: Instant, complete: bool, note: S::Note) {
        self.io.answered();
        let (target, [host, referer, user_agent]) = said(parts);
        let exchange = Exchange {
            peer: self.peer,
            method: parts.method.as_str(),
            target: &target,
            version: http::Version::HTTP_2,
            host,
            referer,
            user_agent,
            status,
            body_bytes,
            started,
            ended: Instant::now(),
            complete,
        };
        self.worker.service.done(&exchange, note);
    }
}
