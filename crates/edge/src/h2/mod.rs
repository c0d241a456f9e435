//! HTTP/2 (RFC 9113): one connection, and all its streams in one task.
//!
//! Our own layer, as a hit is to cost little here, too: `core` is the protocol without a socket; here bytes are read and written, hits
//! answered where their request is taken up, and everything else is a future of its own beside the others, without a task. All that is ready
//! leaves together, when every stream has had its turn.

mod respond;
mod tunnel;

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use futures_util::{Stream as _, stream::FuturesUnordered};
use http::{Method, Version, header};
use tokio::time::Sleep;
use wire::{
    h2::{self, Core, Event, Fault, OUTPUT_MAX, Piece, SLICES},
    head::{Parsed, Reject, field_table, parse},
};

use crate::{
    accept::Share,
    connection::{Phase, Seat},
    request::{
        head::{HALF_A_HEAD, ParsedHead, announced_length, may_be_hit, owned_request},
        log_line::LogLine,
        recall::{HeadText, RecallHit, RecallMiss},
        refusal::Refusal,
    },
    service::{HitOf, Peer, Service},
    stream::Stream,
    worker::{Terms, Worker},
};
use respond::Handle;

/// The shortest time between two looks at streams that wait for their client.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// The longest time between two such looks.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The most tunnels of one connection: each holds a connection to the origin.
const TUNNELS_MAX: usize = 16;

/// The bytes that a client may still send after our last word.
const UNREAD_MAX: usize = 256 * 1024;

/// The number of reads that one turn has: then it is the other connections' turn.
const READS_MAX: usize = 2;

/// One connection: what all its streams share.
struct Connection<S: Service> {
    worker: Rc<Worker<S>>,
    terms: Rc<Terms>,
    peer: Peer,
    core: RefCell<Core<S::Stored>>,
    tunnels: Cell<usize>,
    /// Wakes the connection, for what is said to it from another task.
    waker: RefCell<Waker>,
}

/// Serves one connection until either side has had enough. `share` is given back then. `begun` are the bytes that were read before it was known
/// that HTTP/2 is spoken.
pub(crate) async fn serve<S: Service>(
    worker: Rc<Worker<S>>,
    terms: Rc<Terms>,
    stream: Stream,
    peer: Peer,
    seat: Seat,
    _share: Share,
    begun: Vec<u8>,
) {
    seat.until(Phase::Head, terms.allowances.header);
    let table = Rc::clone(&worker.table);
    let mut drained = pin!(table.drained());
    drained.as_mut().enable();
    let now = Instant::now();
    let core = RefCell::new(Core::new(terms.head_limits, now));
    let shared = Rc::new(Connection { worker, terms, peer, core, tunnels: Cell::new(0), waker: RefCell::new(Waker::noop().clone()) });
    let mut driver = Driver {
        stream,
        begun,
        pending: Vec::new(),
        backlog: false,
        answers: FuturesUnordered::new(),
        shared: Rc::clone(&shared),
        seat,
        phase: None,
        written: 0,
        requests: 0,
        seen: (0, 0),
        ticked: now,
        look: None,
        fault: None,
        ends: false,
        unread: 0,
    };
    let mut leaving = table.is_draining();
    if leaving {
        driver.leave();
    }
    poll_fn(|cx| {
        if !leaving && drained.as_mut().poll(cx).is_ready() {
            leaving = true;
            driver.leave();
        }
        let over = driver.poll(cx, leaving);
        if over.is_ready() {
            driver.abandon(cx);
        }
        over
    })
    .await;
    if let Some(fault) = driver.fault {
        tracing::debug!(peer = ?peer.address, reason = fault.reason, "connection ended");
        if fault.is_flood {
            shared.worker.service.refused(peer, 0, fault.reason);
        }
    }
}

/// Says what the connection's deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlineOf {
    Request,
    /// The rest of a head, or of another frame.
    Head,
    Service,
    Client,
}

type Answer = Pin<Box<dyn Future<Output = ()>>>;

struct Driver<S: Service> {
    stream: Stream,
    /// The bytes that were read before the connection was ours.
    begun: Vec<u8>,
    /// Part of a frame: empty, and without an allocation, while idle.
    pending: Vec<u8>,
    /// Whether there may be whole frames among them, because more output was ready than is kept.
    backlog: bool,
    answers: FuturesUnordered<Answer>,
    shared: Rc<Connection<S>>,
    seat: Seat,
    phase: Option<DeadlineOf>,
    /// Bytes written and requests begun, and how many there were at the last look at the time: what moves has time again.
    written: u64,
    requests: u64,
    seen: (u64, u64),
    ticked: Instant,
    /// The time when streams that wait for their client are looked at.
    look: Option<Pin<Box<Sleep>>>,
    fault: Option<Fault>,
    /// Whether our last word is on its way.
    ends: bool,
    /// The number of bytes that came after it.
    unread: usize,
}

impl<S: Service> Driver<S> {
    /// Does what can be done now. It is ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>, leaving: bool) -> Poll<()> {
        self.shared.waker.borrow_mut().clone_from(cx.waker());
        if !self.begun.is_empty() {
            let begun = std::mem::take(&mut self.begun);
            let taken = self.take_up(cx, &begun);
            self.pending.extend_from_slice(&begun[taken..]);
        }
        let mut reads = 0;
        let flushed = loop {
            self.tell_time();
            while let Poll::Ready(Some(())) = Pin::new(&mut self.answers).poll_next(cx) {}
            self.shared.core.borrow_mut().collect();
            let flushed = match self.poll_write(cx) {
                Poll::Ready(Ok(())) => Poll::Ready(()),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            };
            if self.fault.is_some() || self.shared.core.borrow().is_finished() && self.answers.is_empty() {
                if flushed.is_ready() {
                    if !std::mem::replace(&mut self.ends, true) {
                        self.seat.until(Phase::Write, self.shared.terms.allowances.linger);
                    }
                    return self.poll_end(cx);
                }
                break flushed;
            }
            if self.backlog && self.shared.core.borrow().output.len() < OUTPUT_MAX {
                self.take_up_pending(cx);
                continue;
            }
            // A client that does not read what it asked for is not asked for more.
            if self.shared.core.borrow().output.len() >= OUTPUT_MAX {
                break flushed;
            }
            if reads == READS_MAX {
                cx.waker().wake_by_ref();
                break flushed;
            }
            reads += 1;
            match self.poll_read(cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false) | Err(_)) => return Poll::Ready(()),
                Poll::Pending => break flushed,
            }
        };
        self.look_at_waiting(cx);
        self.keep_time(flushed.is_pending(), leaving);
        Poll::Pending
    }

    fn tell_time(&mut self) {
        let now = Instant::now();
        let mut core = self.shared.core.borrow_mut();
        core.now = now;
        let seconds = now.duration_since(self.ticked).as_secs();
        if seconds > 0 {
            self.ticked = now;
            core.tick(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
    }

    /// Ends our direction, and waits for the client to end its own, as long as its seat allows: with bytes of its left unread, the kernel would
    /// take our last ones back.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A client that was cut off is not listened to any more.
        if ready!(self.stream.poll_shutdown(cx)).is_err() || self.fault.is_some_and(|fault| fault.is_flood) {
            return Poll::Ready(());
        }
        let worker = Rc::clone(&self.shared.worker);
        let mut buffer = worker.read_buffer.borrow_mut();
        loop {
            let read = ready!(self.stream.poll_read(cx, &mut buffer)).unwrap_or(0);
            self.unread += read;
            if read == 0 || self.unread > UNREAD_MAX {
                return Poll::Ready(());
            }
        }
    }

    /// Writes what is ready, as long as the socket takes it.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut core = self.shared.core.borrow_mut();
        loop {
            core.pump();
            if core.output.is_empty() {
                return self.stream.poll_flush(cx);
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = core.output.slices(&mut slices);
            let sent = ready!(self.stream.poll_keep(cx, &slices[..filled]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written = self.written.wrapping_add(sent as u64);
            core.left(sent);
        }
    }

    /// Reads once, and takes up what came. `false` means that the client has gone.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let worker = Rc::clone(&self.shared.worker);
        let mut buffer = worker.read_buffer.borrow_mut();
        if self.pending.is_empty() {
            let read = ready!(self.stream.poll_read(cx, &mut buffer))?;
            let taken = self.take_up(cx, &buffer[..read]);
            self.pending.extend_from_slice(&buffer[taken..read]);
            return Poll::Ready(Ok(read > 0));
        }
        let read = ready!(self.stream.poll_read(cx, &mut buffer))?;
        self.pending.extend_from_slice(&buffer[..read]);
        self.take_up_pending(cx);
        Poll::Ready(Ok(read > 0))
    }

    fn take_up_pending(&mut self, cx: &Context<'_>) {
        let mut pending = std::mem::take(&mut self.pending);
        let taken = self.take_up(cx, &pending);
        pending.drain(..taken);
        if !pending.is_empty() {
            self.pending = pending;
        }
    }

    /// Takes up every frame that is there. Returns how many bytes that were.
    fn take_up(&mut self, cx: &Context<'_>, bytes: &[u8]) -> usize {
        let mut at = 0;
        while self.fault.is_none() {
            let taken = {
                let mut core = self.shared.core.borrow_mut();
                // What is answered at once is limited by nothing else.
                self.backlog = core.output.len() >= OUTPUT_MAX;
                if self.backlog {
                    break;
                }
                core.next(&bytes[at..])
            };
            match taken {
                Ok((0, _)) => break,
                Ok((length, event)) => {
                    at += length;
                    if let Some(event) = event
                        && let Err(fault) = self.begin(cx, event)
                    {
                        self.fail(fault);
                    }
                }
                Err(fault) => self.fail(fault),
            }
        }
        at
    }

    /// Lets all answers that are under way tell their end.
    fn abandon(&mut self, cx: &mut Context<'_>) {
        self.shared.core.borrow_mut().abandon();
        while let Poll::Ready(Some(())) = Pin::new(&mut self.answers).poll_next(cx) {}
    }

    fn fail(&mut self, fault: Fault) {
        self.shared.core.borrow_mut().fail(fault);
        self.fault = Some(fault);
    }

    fn begin(&mut self, cx: &Context<'_>, event: Event) -> Result<(), Fault> {
        self.requests = self.requests.wrapping_add(1);
        match event {
            Event::Refuse { stream, reject } => {
                self.shared.refuse(stream, reject);
                Ok(())
            }
            Event::Request { stream, ends, is_websocket } => {
                let text = self.shared.core.borrow_mut().lend_text();
                let begun = self.begin_request(cx, text.bytes(), stream, ends, is_websocket);
                self.shared.core.borrow_mut().give_back(text);
                begun
            }
        }
    }

    fn begin_request(&mut self, cx: &Context<'_>, text: &[u8], id: u32, ends: bool, is_websocket: bool) -> Result<(), Fault> {
        let shared = &self.shared;
        let started = shared.core.borrow().now;
        let is_plain = ends && !is_websocket;
        let mut unrecognised = RecallMiss::default();
        if is_plain {
            match shared.hit_again(id, text, started) {
                Ok(rest) => {
                    self.answers.extend(rest);
                    return Ok(());
                }
                Err(told) => unrecognised = told,
            }
        }
        let known_host = shared.worker.known_host();
        let mut table = field_table();
        let parsed = parse(text, &mut table, &known_host, &shared.terms.head_limits);
        let (head, fields) = match &parsed {
            Ok(Parsed::Complete(head, fields)) => (head, fields),
            Ok(Parsed::Partial) => {
                shared.refuse(id, HALF_A_HEAD);
                return Ok(());
            }
            Err(reject) => {
                shared.refuse(id, *reject);
                return Ok(());
            }
        };
        shared.worker.remember_host_of(head, &known_host);
        if is_plain
            && may_be_hit(head, fields)
            && let Some(rest) = shared.hit(id, HeadText { bytes: text, unrecognised }, ParsedHead { head, fields }, started)
        {
            self.answers.extend(rest);
            return Ok(());
        }
        let expected = announced_length(head, fields);
        // Nor has a tunnel a length (RFC 8441 §5): whoever read on would take what follows for content.
        if ends && expected.is_some_and(|expected| expected > 0) || is_websocket && expected.is_some() {
            return shared.core.borrow_mut().refuse_malformed(id);
        }
        let mut request = match owned_request(head, fields, Version::HTTP_2) {
            Ok(request) => request,
            Err(reject) => {
                shared.refuse(id, reject);
                return Ok(());
            }
        };
        let expects = request.headers_mut().remove(header::EXPECT).is_some();
        let handle = Handle::new(Rc::clone(shared), id);
        if is_websocket {
            if shared.tunnels.get() >= TUNNELS_MAX {
                handle.refuse(Reject { status: 503, reason: "more tunnels than a connection may have" });
                return Ok(());
            }
            let (feed, content) = h2::content(cx.waker().clone());
            shared.core.borrow_mut().receive(id, feed, None);
            self.answers.push(Box::pin(tunnel::open(handle, request, content, started)));
            return Ok(());
        }
        if ends {
            self.answers.push(Box::pin(respond::answer(handle, request, started, false)));
            return Ok(());
        }
        let (feed, content) = h2::content(cx.waker().clone());
        shared.core.borrow_mut().receive(id, feed, expected);
        let may_be_empty = expected.map_or(matches!(head.method, Method::GET | Method::HEAD), |expected| expected == 0);
        if may_be_empty {
            self.answers.push(Box::pin(respond::answer_when_begun(handle, request, content, expected, started, expects)));
        } else {
            *request.body_mut() = handle.limited(content, expected);
            self.answers.push(Box::pin(respond::answer(handle, request, started, expects)));
        }
        Ok(())
    }

    /// Gives up streams whose client takes nothing.
    fn look_at_waiting(&mut self, cx: &mut Context<'_>) {
        if !self.shared.core.borrow().has_waiting() {
            self.look = None;
            return;
        }
        let patience = self.shared.terms.limits.write_timeout;
        let look = self.look.get_or_insert_with(|| Box::pin(tokio::time::sleep((patience / 4).clamp(LOOK_MIN, LOOK_MAX))));
        if look.as_mut().poll(cx).is_ready() {
            self.look = None;
            self.tell_time();
            self.shared.core.borrow_mut().expire(patience);
            cx.waker().wake_by_ref();
        }
    }

    fn keep_time(&mut self, blocked: bool, leaving: bool) {
        let mut core = self.shared.core.borrow_mut();
        if !core.has_begun() {
            return;
        }
        let allowances = &self.shared.terms.allowances;
        let waiting = if blocked {
            DeadlineOf::Client
        } else if self.answers.is_empty() && core.is_idle() {
            core.shrink();
            if core.is_within_head() || !self.pending.is_empty() { DeadlineOf::Head } else { DeadlineOf::Request }
        } else {
            DeadlineOf::Service
        };
        let now = (self.written, self.requests);
        let moves = match waiting {
            DeadlineOf::Request | DeadlineOf::Client => now.0 != self.seen.0,
            // Not by frames: a head may come in very many of them.
            DeadlineOf::Head => now.1 != self.seen.1,
            DeadlineOf::Service => false,
        };
        self.seen = now;
        if Some(waiting) == self.phase && !moves {
            return;
        }
        self.phase = Some(waiting);
        match waiting {
            DeadlineOf::Request if leaving => self.seat.until(Phase::Quiet, allowances.linger),
            DeadlineOf::Request => self.seat.until(Phase::Quiet, allowances.idle),
            DeadlineOf::Head => self.seat.until(Phase::Head, allowances.header),
            DeadlineOf::Service => self.seat.in_service(),
            DeadlineOf::Client => self.seat.until(Phase::Write, allowances.write),
        }
    }

    /// Says goodbye (RFC 9113 §6.8): requests under way are answered, and the client sends its next ones elsewhere.
    fn leave(&mut self) {
        self.shared.core.borrow_mut().leave();
        if self.phase == Some(DeadlineOf::Request) {
            self.seat.until(Phase::Quiet, self.shared.terms.allowances.linger);
        }
    }
}

impl<S: Service> Connection<S> {
    fn refuse(&self, id: u32, reject: Reject) {
        self.worker.service.refused(self.peer, reject.status, reject.reason);
        let Refusal { status, fields, content } = reject.into();
        let mut core = self.core.borrow_mut();
        core.send_head(id, status, &fields, false);
        core.send(id, Some(Piece::Bytes(content)), true);
    }

    /// Answers a head like one that was a hit before.
    ///
    /// # Errors
    /// When it has to be read.
    fn hit_again(self: &Rc<Self>, id: u32, text: &[u8], started: Instant) -> Result<Option<Answer>, RecallMiss> {
        let send = |out: &mut Vec<u8>, hit, recognised: &RecallHit<'_, '_, S::HitFacts>| {
            self.send_hit(id, out, hit, &recognised.log_line().over(Version::HTTP_2), started)
        };
        self.worker.hit_again(&self.terms, self.peer, text, started, send)
    }

    /// Answers from the store, if that can be done at once.
    fn hit(self: &Rc<Self>, id: u32, text: HeadText<'_>, parsed: ParsedHead<'_>, started: Instant) -> Option<Option<Answer>> {
        let send = |out: &mut Vec<u8>, hit, line: LogLine<'_>| self.send_hit(id, out, hit, &line.over(Version::HTTP_2), started);
        self.worker.hit(&self.terms, self.peer, text, parsed, started, send)
    }

    /// Sends a hit. Returns what is left to do where the client's window is too small for all of it.
    fn send_hit(self: &Rc<Self>, id: u32, text: &[u8], hit: HitOf<S>, line: &LogLine<'_>, started: Instant) -> Option<Answer> {
        let (status, note) = (hit.status, hit.note);
        let body_bytes = {
            let mut core = self.core.borrow_mut();
            let body = hit.body.filter(|body| !body.as_ref().is_empty());
            core.send_stored_head(id, status, text, body.is_none());
            let len = body.as_ref().map_or(0, |body| body.as_ref().len() as u64);
            if let Some(body) = body
                && !core.send_stored(id, body)
            {
                drop(core);
                let handle = Handle::new(Rc::clone(self), id);
                return Some(Box::pin(respond::finish(handle, line.keep(), status, note, started)));
            }
            core.answered();
            len
        };
        self.worker.service.done(&line.exchange(self.peer, status, body_bytes, started, true), &note);
        None
    }
}
