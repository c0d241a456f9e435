//! HTTP/1: one connection, from its first byte to its last.
//!
//! The loop here takes GET and HEAD without content; a hit is answered inside the read that brought it. Everything else is handed to
//! hyper together with the bytes already read (`handoff`), so there is one reader of request content and no second opinion about where a
//! message ends.

mod gate;
mod handoff;
mod interim;
mod refusal;
mod respond;

use std::{
    io::{self, IoSlice},
    rc::Rc,
    task::{Context, Poll, ready},
    time::Instant,
};

use http::Version;
use semantics::Scheme;
use wire::head::{Parsed, Reject, field_table, parse};

use crate::{
    accept::Share,
    connection::{Phase, Seat},
    request::{
        content::RequestBody,
        head::{ParsedHead, http1_version, may_be_hit, own_into},
        log_line::{KeptLogLine, LogLine},
        recall::{HeadText, RecallMiss},
    },
    service::{HitOf, Peer, Service},
    stream::Stream,
    worker::{Terms, Worker},
};
pub(crate) use handoff::Content;
use interim::Interims;

/// One connection and what it owns.
struct Connection<S: Service> {
    worker: Rc<Worker<S>>,
    terms: Rc<Terms>,
    stream: Stream,
    peer: Peer,
    seat: Seat,
    /// Bytes read and not yet consumed: empty, and without an allocation, while idle.
    pending: Vec<u8>,
    /// Whether something of it was taken for HTTP/1.
    used: bool,
    /// The interim responses; made when a request first has to wait for its answer.
    interims: Option<Box<Interims>>,
    _share: Share,
}

/// Says what a turn of the loop ended in. The variants are boxed: an idle connection pays for the largest.
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
    line: KeptLogLine,
    keep_alive: bool,
    started: Instant,
}

/// A request taken off the wire.
struct Call {
    request: http::Request<RequestBody>,
    line: KeptLogLine,
    keep_alive: bool,
    started: Instant,
}

/// A connection on which the client takes it for granted that HTTP/2 is spoken, and the bytes that have been read from it.
pub(crate) struct BeginsHttp2<S: Service> {
    pub(crate) worker: Rc<Worker<S>>,
    pub(crate) terms: Rc<Terms>,
    pub(crate) stream: Stream,
    pub(crate) peer: Peer,
    pub(crate) seat: Seat,
    pub(crate) share: Share,
    pub(crate) read: Vec<u8>,
}

/// Serves one connection until either side has had enough, or until it turns out to be one of HTTP/2.
pub(crate) async fn serve<S: Service>(
    worker: Rc<Worker<S>>,
    terms: Rc<Terms>,
    stream: Stream,
    peer: Peer,
    seat: Seat,
    share: Share,
) -> Option<BeginsHttp2<S>> {
    // The first request has to come within the time for a head; only later ones may be waited for.
    seat.until(Phase::Head, terms.allowances.header);
    let mut connection = Connection { worker, terms, stream, peer, seat, pending: Vec::new(), used: false, interims: None, _share: share };
    loop {
        match std::future::poll_fn(|cx| connection.poll_step(cx)).await {
            Step::Gone => return None,
            Step::Close => {
                connection.close_unless_silent().await;
                return None;
            }
            Step::Refuse(_) if connection.begins_http2() => {
                let Connection { worker, terms, stream, peer, seat, pending: read, _share: share, .. } = connection;
                return Some(BeginsHttp2 { worker, terms, stream, peer, seat, share, read });
            }
            Step::Refuse(reject) => {
                Box::pin(connection.refuse(reject)).await;
                return None;
            }
            Step::HandOff => {
                Box::pin(handoff::serve(connection)).await;
                return None;
            }
            Step::Unfinished(unfinished) => {
                let keep_alive = unfinished.keep_alive;
                if Box::pin(connection.finish(unfinished)).await.is_err() {
                    return None;
                }
                if !keep_alive {
                    connection.close_unless_silent().await;
                    return None;
                }
            }
            // The future is made in its box: `Box::pin` would copy all of it there, for every request.
            Step::Call(call) => match Box::into_pin(Box::write(Box::new_uninit(), connection.call(call))).await {
                Ok(true) => {}
                Ok(false) => {
                    connection.close_unless_silent().await;
                    return None;
                }
                Err(_) => return None,
            },
        }
    }
}

impl<S: Service> Connection<S> {
    /// Returns whether the client takes it for granted that HTTP/2 is spoken (RFC 9113 §3.3), and it is. The preface was chosen to be invalid in HTTP/1.
    fn begins_http2(&self) -> bool {
        self.terms.h2c && !self.used && self.peer.scheme == Scheme::Http && self.pending.starts_with(b"PRI * HTTP/2.0\r\n")
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
                let Progress { consumed, step } = self.answer_all(&worker, &buffer[..n]);
                self.used |= consumed > 0;
                self.pending.extend_from_slice(&buffer[consumed..n]);
                if let Some(step) = step {
                    return Poll::Ready(step);
                }
            } else {
                let mut pending = std::mem::take(&mut self.pending);
                let Progress { consumed, step } = self.answer_all(&worker, &pending);
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

    /// Notes that the client has closed: it needs no last word about the head that it left unfinished.
    const fn gone(&mut self) -> Step<S> {
        self.stream.head_begun = false;
        Step::Gone
    }

    /// Answers every complete request in `bytes` that can be answered at once.
    fn answer_all(&mut self, worker: &Worker<S>, bytes: &[u8]) -> Progress<S> {
        let mut at = 0;
        let started = Instant::now();
        let terms = Rc::clone(&self.terms);
        while at < bytes.len() {
            // A client sends one head at a time and waits: what was read is the head that came before, or it has to be looked at.
            let unrecognised = match self.answer_again(worker, &terms, &bytes[at..], started) {
                Ok(AnsweredAgain { head_len, answered, keep_alive }) => {
                    at += head_len;
                    match answered {
                        Answered::Yes if keep_alive => continue,
                        Answered::Yes => return Progress::stopped(at, Step::Close),
                        Answered::Stop(step) => return Progress::stopped(at, step),
                    }
                }
                Err(unrecognised) => unrecognised,
            };
            let known_host = worker.known_host();
            let mut table = field_table();
            // It stays where it is parsed to: head and fields are half a kilobyte.
            let parsed = parse(&bytes[at..], &mut table, &known_host, &terms.head_limits);
            let (head, fields) = match &parsed {
                Ok(Parsed::Complete(head, fields)) => {
                    worker.remember_host_of(head, &known_host);
                    self.stream.head_begun = false;
                    (head, fields)
                }
                Ok(Parsed::Partial) => {
                    self.stream.head_begun = true;
                    if self.seat.watch().phase() != Phase::Head {
                        self.seat.until(Phase::Head, self.terms.allowances.header);
                    }
                    return Progress { consumed: at, step: None };
                }
                Err(reject) => {
                    self.stream.head_begun = false;
                    return Progress::stopped(at, Step::Refuse(*reject));
                }
            };
            let keep_alive = head.keep_alive && !self.seat.is_draining();
            if !may_be_hit(head, fields) {
                return Progress::stopped(at, Step::HandOff);
            }
            let text = HeadText { bytes: &bytes[at..at + head.len], unrecognised };
            match self.answer(worker, &terms, text, ParsedHead { head, fields }, keep_alive, started) {
                Answered::Yes if keep_alive => at += head.len,
                Answered::Yes => return Progress::stopped(at + head.len, Step::Close),
                Answered::Stop(step) => return Progress::stopped(at + head.len, step),
            }
        }
        self.seat.until(Phase::Idle, self.terms.allowances.idle);
        Progress { consumed: at, step: None }
    }

    /// Answers from the store, if that can be done at once, with one vectored write.
    fn answer(
        &mut self,
        worker: &Worker<S>,
        terms: &Rc<Terms>,
        text: HeadText<'_>,
        parsed: ParsedHead<'_>,
        keep_alive: bool,
        started: Instant,
    ) -> Answered<S> {
        let answered =
            worker.hit(terms, self.peer, text, parsed, started, |out, hit, line| self.send(out, hit, &line, keep_alive, started));
        answered.unwrap_or_else(|| self.must_call(parsed, keep_alive, started))
    }

    /// Answers a head like one that was a hit before, without parsing it.
    ///
    /// # Errors
    /// When the head has to be read.
    fn answer_again(
        &mut self,
        worker: &Worker<S>,
        terms: &Rc<Terms>,
        bytes: &[u8],
        started: Instant,
    ) -> Result<AnsweredAgain<S>, RecallMiss> {
        worker.hit_again(terms, self.peer, bytes, started, |out, hit, recognised| {
            self.stream.head_begun = false;
            let keep_alive = recognised.keep_alive() && !self.seat.is_draining();
            let answered = self.send(out, hit, &recognised.log_line(), keep_alive, started);
            AnsweredAgain { head_len: recognised.head_len(), answered, keep_alive }
        })
    }

    /// Writes a hit, and tells of it if all of it left.
    fn send(&mut self, out: &mut Vec<u8>, hit: HitOf<S>, line: &LogLine<'_>, keep_alive: bool, started: Instant) -> Answered<S> {
        out.extend_from_slice(connection_fields(u8::from(line.version != Version::HTTP_10), keep_alive));
        let body = hit.body.as_ref().map_or(&[][..], AsRef::as_ref);
        let total = out.len() + body.len();
        let written = match self.stream.try_write(&[IoSlice::new(out), IoSlice::new(body)]) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => return Answered::Stop(Step::Gone),
        };
        // What TLS has taken and the socket has not is as unfinished as the rest.
        if written < total || !self.stream.is_flushed() {
            let line = line.keep();
            let unfinished = Unfinished { head: out.clone(), hit, written, line, keep_alive, started };
            return Answered::Stop(Step::Unfinished(Box::new(unfinished)));
        }
        self.worker.service.done(&line.exchange(self.peer, hit.status, body.len() as u64, started, true), &hit.note);
        Answered::Yes
    }

    /// Takes the request off the wire for the service to answer in its own time.
    fn must_call(&self, parsed: ParsedHead<'_>, keep_alive: bool, started: Instant) -> Answered<S> {
        let ParsedHead { head, fields } = parsed;
        let request = http::Request::new(RequestBody::empty());
        let line = LogLine::of(head, fields).keep();
        // The request is made in the box: it need not be moved there.
        let mut call = Box::write(Box::new_uninit(), Call { request, line, keep_alive, started });
        match own_into(&mut call.request, head, fields, http1_version(head.minor_version)) {
            Ok(()) => Answered::Stop(Step::Call(call)),
            Err(reject) => Answered::Stop(Step::Refuse(reject)),
        }
    }

    /// Writes the rest of a hit.
    async fn finish(&mut self, rest: Box<Unfinished<S>>) -> io::Result<()> {
        let Unfinished { head, hit, mut written, line, started, .. } = *rest;
        let body = hit.body.as_ref().map_or(&[][..], AsRef::as_ref);
        let total = head.len() + body.len();
        let mut result = Ok(());
        while written < total {
            self.seat.until(Phase::Write, self.terms.allowances.write);
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
        self.worker.service.done(&line.exchange(self.peer, hit.status, body_bytes, started, result.is_ok()), &hit.note);
        self.seat.until(Phase::Idle, self.terms.allowances.idle);
        result
    }

    /// Writes `bytes` whole, each step within the write timeout.
    async fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            self.seat.until(Phase::Write, self.terms.allowances.write);
            match std::future::poll_fn(|cx| self.stream.poll_write(cx, slices)).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => IoSlice::advance_slices(&mut slices, n),
            }
        }
        self.flush().await
    }

    /// Waits until the kernel has all that was written.
    async fn flush(&mut self) -> io::Result<()> {
        if self.stream.is_flushed() {
            return Ok(());
        }
        self.seat.until(Phase::Write, self.terms.allowances.write);
        std::future::poll_fn(|cx| self.stream.poll_flush(cx)).await
    }

    /// Tells the client why it is refused, and closes.
    async fn refuse(&mut self, reject: Reject) {
        self.worker.service.refused(self.peer, reject.status, reject.reason);
        let response = refusal::refusal(reject);
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
        self.seat.until(Phase::Write, self.terms.allowances.linger);
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

/// The bytes that a client may still send when its connection is closed.
const LINGER_BYTES: usize = 256 * 1024;

/// The end of an attempt to answer a request at once.
enum Answered<S: Service> {
    /// The answer was written whole.
    Yes,
    /// Something else has to be done first.
    Stop(Step<S>),
}

/// A request that was answered, or begun to be, by what a head like its own was answered with before.
struct AnsweredAgain<S: Service> {
    head_len: usize,
    answered: Answered<S>,
    keep_alive: bool,
}

/// The bytes of what was read that are done with, and what stopped it, if anything did.
struct Progress<S: Service> {
    consumed: usize,
    step: Option<Step<S>>,
}

impl<S: Service> Progress<S> {
    const fn stopped(consumed: usize, step: Step<S>) -> Self {
        Self { consumed, step: Some(step) }
    }
}

/// Returns the fields that belong to the connection, and the end of the head.
const fn connection_fields(minor_version: u8, keep_alive: bool) -> &'static [u8] {
    match (minor_version, keep_alive) {
        (1, true) => b"\r\n",
        (_, true) => b"Connection: keep-alive\r\n\r\n",
        (_, false) => b"Connection: close\r\n\r\n",
    }
}
