//! HTTP/1: one connection, from its first byte to its last.
//!
//! The loop here takes GET and HEAD without content; a hit is answered inside the read that brought it. Everything else is handed to
//! hyper together with the bytes already read (`handoff`), so there is one reader of request content and no second opinion about where a
//! message ends.

mod gate;
mod handoff;
mod interim;
mod respond;

use std::{
    io::{self, IoSlice},
    rc::Rc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use semantics::{RequestFields, RequestHead, Scheme};
use wire::head::{Framing, Head, Parsed, Reject, field_table, parse};

use crate::{
    accept::Share,
    connection::{Phase, Seat},
    h2,
    request::{
        log_line::{self as line, Line},
        recall::Said,
    },
    service::{Exchange, HitOf, Peer, RequestBody, Service},
    stream::Stream,
    worker::{Front, Worker},
};
pub(crate) use handoff::Content;
use interim::Interims;

/// A connection and what it owns.
struct Connection<S: Service> {
    worker: Rc<Worker<S>>,
    front: Rc<Front>,
    stream: Stream,
    peer: Peer,
    seat: Seat,
    /// Bytes read and not yet consumed: empty, and without an allocation, while idle.
    pending: Vec<u8>,
    /// Something of it was taken for HTTP/1.
    used: bool,
    /// Made when a request first has to wait for its answer.
    interims: Option<Box<Interims>>,
    _share: Share,
}

/// What a turn of the loop ended in. The variants are boxed: an idle connection pays for the largest.
enum Step<S: Service> {
    /// The client has closed, or the connection broke.
    Gone,
    /// A hit did not fit into the socket.
    Unfinished(Box<Unfinished<S>>),
    /// A request that the service must answer in its own time.
    Call(Box<Call>),
    /// A request for hyper; its bytes are in `pending`.
    HandOff,
    /// Close after what was written.
    Close,
    /// Refuse and close.
    Refuse(Reject),
}

/// The rest of a hit.
struct Unfinished<S: Service> {
    head: Vec<u8>,
    hit: HitOf<S>,
    written: usize,
    line: Line,
    keep_alive: bool,
    started: Instant,
}

/// A request taken off the wire.
struct Call {
    request: http::Request<RequestBody>,
    line: Line,
    keep_alive: bool,
    started: Instant,
}

/// Serves one connection until either side has had enough.
pub(crate) async fn serve<S: Service>(worker: Rc<Worker<S>>, front: Rc<Front>, stream: Stream, peer: Peer, seat: Seat, share: Share) {
    // The first request has to come within the time for a head; only later ones may be waited for.
    seat.until(Phase::Head, front.allowances.header);
    let mut connection = Connection { worker, front, stream, peer, seat, pending: Vec::new(), used: false, interims: None, _share: share };
    loop {
        match std::future::poll_fn(|cx| connection.poll_step(cx)).await {
            Step::Gone => return,
            Step::Close => return connection.close_unless_silent().await,
            Step::Refuse(_) if connection.begins_http2() => {
                let Connection { worker, front, stream, peer, seat, pending, _share, .. } = connection;
                return Box::pin(h2::serve(worker, front, stream, peer, seat, _share, pending)).await;
            }
            Step::Refuse(reject) => return Box::pin(connection.refuse(reject)).await,
            Step::HandOff => return Box::pin(handoff::serve(connection)).await,
            Step::Unfinished(unfinished) => {
                let keep_alive = unfinished.keep_alive;
                if Box::pin(connection.finish(unfinished)).await.is_err() {
                    return;
                }
                if !keep_alive {
                    return connection.close_unless_silent().await;
                }
            }
            Step::Call(call) => match Box::pin(connection.call(call)).await {
                Ok(true) => {}
                Ok(false) => return connection.close_unless_silent().await,
                Err(_) => return,
            },
        }
    }
}

impl<S: Service> Connection<S> {
    /// Whether the client takes it for granted that HTTP/2 is spoken (RFC 9113 §3.3), and it is. The preface was made to be no HTTP/1.
    fn begins_http2(&self) -> bool {
        self.front.h2c && !self.used && self.peer.scheme == Scheme::Http && self.pending.starts_with(b"PRI * HTTP/2.0\r\n")
    }

    /// Reads and answers as long as that needs no waiting.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step<S>> {
        let worker = Rc::clone(&self.worker);
        let mut buffer = worker.read_buffer.borrow_mut();
        loop {
            if self.pending.is_empty() {
                let n = match ready!(self.stream.poll_read(cx, &mut buffer)) {
                    Ok(0) | Err(_) => return Poll::Ready(self.gone()),
                    Ok(n) => n,
                };
                let (consumed, step) = self.answer_all(&worker, &buffer[..n]);
                self.used |= consumed > 0;
                self.pending.extend_from_slice(&buffer[consumed..n]);
                if let Some(step) = step {
                    return Poll::Ready(step);
                }
            } else {
                let mut pending = std::mem::take(&mut self.pending);
                let (consumed, step) = self.answer_all(&worker, &pending);
                self.used |= consumed > 0;
                pending.drain(..consumed);
                // An idle connection holds no buffer.
                self.pending = if pending.is_empty() { Vec::new() } else { pending };
                if let Some(step) = step {
                    return Poll::Ready(step);
                }
                if self.pending.is_empty() {
                    continue;
                }
                match ready!(self.stream.poll_read(cx, &mut buffer)) {
                    Ok(0) | Err(_) => return Poll::Ready(self.gone()),
                    Ok(n) => self.pending.extend_from_slice(&buffer[..n]),
                }
            }
        }
    }

    /// The client has closed: it needs no last word about the head that it left unfinished.
    const fn gone(&mut self) -> Step<S> {
        self.stream.head_begun = false;
        Step::Gone
    }

    /// Answers every complete request in `bytes` that can be answered at once. Returns how many bytes are done with, and what stopped it.
    fn answer_all(&mut self, worker: &Worker<S>, bytes: &[u8]) -> (usize, Option<Step<S>>) {
        let mut at = 0;
        let started = Instant::now();
        let front = Rc::clone(&self.front);
        while at < bytes.len() {
            // A client sends one head at a time and waits: what was read is the head that came before, or it has to be looked at.
            if let Some((len, answered, keep_alive)) = self.answer_again(worker, &bytes[at..], started) {
                match answered {
                    Answered::Yes if keep_alive => at += len,
                    Answered::Yes => return (at + len, Some(Step::Close)),
                    Answered::Stop(step) => return (at + len, Some(step)),
                }
                continue;
            }
            let known_host = worker.known_host();
            let mut table = field_table();
            let (head, fields) = match parse(&bytes[at..], &mut table, &known_host, &front.head_limits) {
                Ok(Parsed::Complete(head, fields)) => {
                    self.stream.head_begun = false;
                    (head, fields)
                }
                Ok(Parsed::Partial) => {
                    self.stream.head_begun = true;
                    if self.seat.watch().phase() != Phase::Head {
                        self.seat.until(Phase::Head, self.front.allowances.header);
                    }
                    return (at, None);
                }
                Err(reject) => {
                    self.stream.head_begun = false;
                    return (at, Some(Step::Refuse(reject)));
                }
            };
            if *known_host != *head.authority {
                worker.remember_host(head.authority);
            }
            let keep_alive = head.keep_alive && !self.seat.is_draining();
            let plain = head.framing == Framing::None
                && !head.negotiates
                && !fields.content_length.is_present()
                && matches!(head.method, Method::GET | Method::HEAD);
            if !plain {
                return (at, Some(Step::HandOff));
            }
            match self.answer(worker, &bytes[at..at + head.len], (&head, &fields), keep_alive, started) {
                Answered::Yes if keep_alive => at += head.len,
                Answered::Yes => return (at + head.len, Some(Step::Close)),
                Answered::Stop(step) => return (at + head.len, Some(step)),
            }
        }
        self.seat.until(Phase::Idle, self.front.allowances.idle);
        (at, None)
    }

    /// The hit path: look up, and one vectored write.
    fn answer(
        &mut self,
        worker: &Worker<S>,
        bytes: &[u8],
        (head, fields): (&Head<'_>, &RequestFields<'_>),
        keep_alive: bool,
        started: Instant,
    ) -> Answered<S> {
        let mut out = worker.head_buffer.borrow_mut();
        out.clear();
        let request = RequestHead {
            method: &head.method,
            scheme: self.peer.scheme,
            authority: head.authority,
            path: head.path,
            query: head.query,
            fields,
        };
        let Some(mut hit) = worker.service.hit(self.peer, &request, started, &mut out) else {
            return self.must_call(head, fields, keep_alive, started);
        };
        let said = Said::of(head, fields);
        if let Some(known) = hit.known.take() {
            worker.recall.borrow_mut().remember(&self.front, self.peer.scheme, bytes, &said, head.keep_alive, known);
        }
        self.send(&mut out, hit, &said, keep_alive, started)
    }

    /// The same for a head that was answered so before: nothing of it is read again. `None`: it has to be. Else also its length.
    fn answer_again(&mut self, worker: &Worker<S>, bytes: &[u8], started: Instant) -> Option<(usize, Answered<S>, bool)> {
        let recall = worker.recall.borrow();
        let repeated = recall.find(&self.front, self.peer.scheme, bytes)?;
        let mut out = worker.head_buffer.borrow_mut();
        out.clear();
        let hit = worker.service.again(self.peer, repeated.known(), started, &mut out)?;
        self.stream.head_begun = false;
        let keep_alive = repeated.keep_alive() && !self.seat.is_draining();
        Some((bytes.len(), self.send(&mut out, hit, &repeated.said(), keep_alive, started), keep_alive))
    }

    fn send(&mut self, out: &mut Vec<u8>, hit: HitOf<S>, said: &Said<'_>, keep_alive: bool, started: Instant) -> Answered<S> {
        out.extend_from_slice(connection_fields(said.minor_version, keep_alive));
        let body = hit.body.as_ref().map_or(&[][..], AsRef::as_ref);
        let total = out.len() + body.len();
        let written = match self.stream.try_write(&[IoSlice::new(out), IoSlice::new(body)]) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => return Answered::Stop(Step::Gone),
        };
        // What TLS has taken and the socket has not is as unfinished as the rest.
        if written < total || !self.stream.is_flushed() {
            let line = said.keep();
            let unfinished = Unfinished { head: out.clone(), hit, written, line, keep_alive, started };
            return Answered::Stop(Step::Unfinished(Box::new(unfinished)));
        }
        let exchange = Exchange {
            peer: self.peer,
            method: said.method.as_str(),
            target: said.target,
            version: line::version(said.minor_version),
            host: said.host,
            referer: said.referer,
            user_agent: said.user_agent,
            status: hit.status,
            body_bytes: body.len() as u64,
            started,
            ended: Instant::now(),
            complete: true,
        };
        self.worker.service.done(&exchange, hit.note);
        Answered::Yes
    }

    /// Takes the request off the wire for the service to answer in its own time.
    fn must_call(&self, head: &Head<'_>, fields: &RequestFields<'_>, keep_alive: bool, started: Instant) -> Answered<S> {
        match owned_request(head, fields) {
            Some(request) => {
                let call = Call { request, line: Said::of(head, fields).keep(), keep_alive, started };
                Answered::Stop(Step::Call(Box::new(call)))
            }
            None => Answered::Stop(Step::Refuse(Reject { status: 400, reason: "malformed request-target" })),
        }
    }

    /// Writes the rest of a hit.
    async fn finish(&mut self, rest: Box<Unfinished<S>>) -> io::Result<()> {
        let Unfinished { head, hit, mut written, line, started, .. } = *rest;
        let body = hit.body.as_ref().map_or(&[][..], AsRef::as_ref);
        let total = head.len() + body.len();
        let mut result = Ok(());
        while written < total {
            self.seat.until(Phase::Write, self.front.allowances.write);
            let slices = [IoSlice::new(head.get(written..).unwrap_or_default()), IoSlice::new(&body[written.saturating_sub(head.len())..])];
            match std::future::poll_fn(|cx| self.stream.poll_write(cx, &slices)).await {
                Ok(0) => result = Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(error) => result = Err(error),
            }
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() {
            result = self.flush().await;
        }
        let body_bytes = written.saturating_sub(head.len()) as u64;
        self.worker.service.done(&line.exchange(self.peer, hit.status, body_bytes, started, result.is_ok()), hit.note);
        self.seat.until(Phase::Idle, self.front.allowances.idle);
        result
    }

    /// Writes `bytes` whole, each step within the write timeout.
    async fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            self.seat.until(Phase::Write, self.front.allowances.write);
            match std::future::poll_fn(|cx| self.stream.poll_write(cx, slices)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => IoSlice::advance_slices(&mut slices, n),
            }
        }
        self.flush().await
    }

    /// Sees what was written off to the kernel.
    async fn flush(&mut self) -> io::Result<()> {
        if self.stream.is_flushed() {
            return Ok(());
        }
        self.seat.until(Phase::Write, self.front.allowances.write);
        std::future::poll_fn(|cx| self.stream.poll_flush(cx)).await
    }

    /// Says why, and closes.
    async fn refuse(&mut self, reject: Reject) {
        self.worker.service.refused(self.peer, reject.status, reject.reason);
        let response = respond::refusal(reject);
        if self.write_all(&mut [IoSlice::new(&response)]).await.is_ok() {
            self.close().await;
        }
    }

    /// Ends the connection after its last answer. A client that goes on sending gets it all the same (RFC 9112 §9.6); for one that is silent, as
    /// nearly all are, there is nothing to wait for.
    async fn close_unless_silent(&mut self) {
        let mut sink = [0_u8; 1];
        let mut read = std::future::poll_fn(|cx| Poll::Ready(self.stream.poll_read(cx, &mut sink))).await;
        if read.is_pending() {
            // Bytes that came since the runtime looked last are seen only after it has looked again.
            tokio::task::yield_now().await;
            read = std::future::poll_fn(|cx| Poll::Ready(self.stream.poll_read(cx, &mut sink))).await;
        }
        if !self.pending.is_empty() || matches!(read, Poll::Ready(Ok(1))) {
            Box::pin(self.close()).await;
        }
    }

    /// Closes a connection on which unread bytes may wait, so that the client still gets our last ones: our side first, then a short wait
    /// for its end. Closing at once would reset the connection and may destroy the response on its way (RFC 9112 §9.6).
    async fn close(&mut self) {
        self.seat.until(Phase::Write, self.front.allowances.linger);
        if std::future::poll_fn(|cx| self.stream.poll_shutdown(cx)).await.is_err() {
            return;
        }
        let mut sink = [0_u8; 1024];
        let mut drained = 0;
        while drained < LINGER_BYTES {
            match std::future::poll_fn(|cx| self.stream.poll_read(cx, &mut sink)).await {
                Ok(n) if n > 0 => drained += n,
                _ => return,
            }
        }
    }
}

/// How much a closed connection may still send.
const LINGER_BYTES: usize = 256 * 1024;

enum Answered<S: Service> {
    Yes,
    Stop(Step<S>),
}

/// The fields that belong to the connection, and the end of the head.
const fn connection_fields(minor_version: u8, keep_alive: bool) -> &'static [u8] {
    match (minor_version, keep_alive) {
        (1, true) => b"\r\n",
        (_, true) => b"Connection: keep-alive\r\n\r\n",
        (_, false) => b"Connection: close\r\n\r\n",
    }
}

/// A request that outlives its buffer: URI in origin-form, authority in `Host` (RFC 9112 §3.2.2: an absolute-form target replaces it).
pub(crate) fn owned_request(head: &Head<'_>, fields: &RequestFields<'_>) -> Option<http::Request<RequestBody>> {
    let semantics::FieldLines::Raw(lines) = fields.lines else { return None };
    let mut headers = HeaderMap::with_capacity(lines.len() + 1);
    // All values share one allocation.
    let mut values = Vec::with_capacity(lines.iter().map(|line| line.value.len()).sum());
    lines.iter().for_each(|line| values.extend_from_slice(line.value));
    let mut values = Bytes::from(values);
    for line in lines {
        let value = HeaderValue::from_maybe_shared(values.split_to(line.value.len())).ok()?;
        headers.append(HeaderName::from_bytes(line.name.as_bytes()).ok()?, value);
    }
    let host = headers.get(http::header::HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    if host != head.authority.as_bytes() {
        headers.insert(http::header::HOST, HeaderValue::from_str(head.authority).ok()?);
    }
    let mut request = http::Request::new(RequestBody::empty());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = origin_form(head)?;
    *request.version_mut() = if head.minor_version == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    *request.headers_mut() = headers;
    Some(request)
}

fn origin_form(head: &Head<'_>) -> Option<Uri> {
    match head.query {
        None => head.path.parse().ok(),
        Some(query) => format!("{}?{query}", head.path).parse().ok(),
    }
}
