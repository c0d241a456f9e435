//! The gate that hyper reads through: every head on the connection passes our own check first.
//!
//! hyper is lenient where a cache in front of other software must not be (it drops a `Content-Length` beside `Transfer-Encoding` and
//! goes on). So bytes are held back until they make a whole head that [`head::parse`] accepts; then the head and exactly its content go
//! through. After chunked content or an upgrade the next boundary is hyper's knowledge alone: such a request is the connection's last.
//!
//! hyper reads on while a request is being answered. A head that comes then waits here for its turn: what it says about the connection,
//! or that it is malformed, is no affair of the answer before it.

use std::{
    future::Future as _,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU16, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use semantics::invalidation::is_safe;
use tokio::time::{Sleep, sleep};
use wire::{
    HeadLimits,
    head::{self, Framing, Parsed, field_table},
};

use super::LINGER_BYTES;
use crate::{
    connection::{Phase, Watch},
    limits::Allowances,
    stream::Stream,
    worker::Terms,
};

/// The time for which an unsafe request that is here as a whole goes on although its client has closed.
const GRACE: Duration = Duration::from_secs(1);

/// The most bytes that one read through the gate takes.
const READ: usize = 16 * 1024;

/// The signals that the gate and the request's handler give each other.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Whether a request is being answered.
    busy: AtomicBool,
    /// The reader of the next request, to be woken when that is over.
    next: Mutex<Option<Waker>>,
    /// Whether the request under way is the connection's last.
    pub(super) last: AtomicBool,
    /// Whether content of the request under way has not come yet.
    unread: AtomicBool,
    /// Whether nobody wants the rest of it.
    pub(super) abandoned: AtomicBool,
    /// Whether the connection has left HTTP.
    pub(super) upgraded: AtomicBool,
    /// The status with which a head was refused; 0 if none was.
    pub(super) refused: AtomicU16,
}

impl Signals {
    /// Notes that a request has been let through, and is to be answered.
    pub(super) fn begin_answer(&self) {
        self.abandoned.store(false, Relaxed);
        self.busy.store(true, Relaxed);
    }

    /// Notes that the answer has ended, as far as the handler goes: the next request may be looked at once it is written.
    pub(super) fn end_answer(&self) {
        self.busy.store(false, Relaxed);
        self.wake_next();
    }

    /// Returns whether hyper will close the connection behind the answer, because it does not read on for content that nobody wants.
    pub(super) fn is_cut_short(&self) -> bool {
        self.abandoned.load(Relaxed) && self.unread.load(Relaxed)
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Relaxed)
    }

    fn wake_next(&self) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            next.wake();
        }
    }

    fn keep_next(&self, cx: &Context<'_>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waiting for a whole head.
    Head,
    /// A head is there, whole or malformed, and waits until the answer before it has been written.
    Turn,
    /// This number of bytes may pass.
    Pass(u64),
    /// Everything may.
    Open,
    /// Nothing more: a head was refused.
    Refused,
}

#[derive(Debug)]
pub(super) struct Gate {
    stream: Stream,
    state: State,
    /// Read and not yet let through.
    held: Vec<u8>,
    watch: Arc<Watch>,
    signals: Arc<Signals>,
    limits: HeadLimits,
    allowances: Allowances,
    writing: bool,
    /// The number of bytes that came after our direction had ended, if it has.
    unread: Option<usize>,
    /// Whether the request under way may change something: its method is not safe (RFC 9110 §9.2.1).
    is_unsafe: bool,
    /// Whether the client has closed its direction.
    has_ended: bool,
    /// The time for which an unsafe request goes on although its client has closed.
    grace: Option<Pin<Box<Sleep>>>,
}

impl Gate {
    pub(super) fn new(stream: Stream, held: Vec<u8>, watch: Arc<Watch>, signals: Arc<Signals>, terms: &Terms) -> Self {
        Self {
            stream,
            state: State::Head,
            held,
            watch,
            signals,
            limits: terms.head_limits,
            allowances: terms.allowances,
            writing: false,
            unread: None,
            is_unsafe: false,
            has_ended: false,
            grace: None,
        }
    }

    /// Returns whether the answer to an earlier request is not with the client yet. What follows that request must not touch it.
    fn is_answering(&self) -> bool {
        self.signals.is_busy() || self.writing
    }

    /// Lets a head through if it is whole and its turn has come. A refused one ends the reading.
    fn judge(&mut self) {
        if self.signals.last.load(Relaxed) {
            // Whatever follows the last request is not read.
            self.held.clear();
            return;
        }
        let mut table = field_table();
        match head::parse(&self.held, &mut table, "", &self.limits) {
            Ok(Parsed::Partial) => {
                self.stream.head_begun = !self.is_answering();
            }
            Ok(Parsed::Complete(..)) | Err(_) if self.is_answering() => {
                self.state = State::Turn;
            }
            Ok(Parsed::Complete(head, fields)) => {
                self.stream.head_begun = false;
                let open = fields.upgrade.is_present() || head.framing == Framing::Chunked;
                self.signals.last.store(open || !head.keep_alive, Relaxed);
                self.state = match head.framing {
                    _ if open => State::Open,
                    Framing::Length(length) => State::Pass(head.len as u64 + length),
                    Framing::None | Framing::Chunked => State::Pass(head.len as u64),
                };
                self.is_unsafe = !is_safe(&head.method);
                self.watch.in_service();
            }
            Err(reject) => {
                self.stream.head_begun = false;
                self.signals.refused.store(reject.status, Relaxed);
                self.stream.write_now(&super::refusal::refusal(reject));
                self.state = State::Refused;
            }
        }
    }

    /// Hands out what may pass of the bytes held. Returns whether any did.
    fn let_through(&mut self, to: &mut hyper::rt::ReadBufCursor<'_>) -> bool {
        let allowed = match self.state {
            State::Head | State::Turn | State::Refused => 0,
            State::Pass(left) => usize::try_from(left).unwrap_or(usize::MAX),
            State::Open => usize::MAX,
        };
        let n = self.held.len().min(allowed).min(to.remaining());
        to.put_slice(&self.held[..n]);
        self.held.drain(..n);
        if self.held.is_empty() {
            self.held = Vec::new();
        }
        if let State::Pass(left) = &mut self.state {
            *left -= n as u64;
            self.signals.unread.store(*left > 0, Relaxed);
            if *left == 0 {
                self.state = State::Head;
            }
        }
        n > 0
    }

    fn waits_for_client(&self) {
        if self.signals.upgraded.load(Relaxed) {
            self.watch.until(Phase::Service, self.allowances.tunnel);
        } else if self.is_answering() {
            // The handler and the writing side keep the time.
        } else if self.held.is_empty() {
            if self.watch.phase() != Phase::Idle {
                self.watch.until(Phase::Idle, self.allowances.idle);
            }
        } else if self.watch.phase() != Phase::Head {
            self.watch.until(Phase::Head, self.allowances.header);
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut piece = [0_u8; READ];
        let n = match self.stream.poll_read(cx, &mut piece) {
            Poll::Ready(read) => read?,
            Poll::Pending => {
                self.waits_for_client();
                return Poll::Pending;
            }
        };
        if n == 0 {
            // The client has closed: it needs no last word about the head that it left unfinished.
            self.stream.head_begun = false;
            self.has_ended = true;
        }
        self.held.extend_from_slice(&piece[..n]);
        Poll::Ready(Ok(n))
    }

    /// Tells hyper that the client has closed, for which it drops the request under way. If that may change something and is here as a whole, it goes on for
    /// a moment: programs send a purge and close without waiting for an answer.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_unsafe && self.state == State::Head && self.signals.is_busy() {
            let grace = self.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
            if grace.as_mut().poll(cx).is_pending() {
                self.signals.keep_next(cx);
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn wrote<T>(&mut self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &poll {
            Poll::Pending => {
                if !self.writing {
                    self.writing = true;
                    self.watch.until(Phase::Write, self.allowances.write);
                }
            }
            Poll::Ready(_) => {
                self.writing = false;
                if self.signals.upgraded.load(Relaxed) {
                    self.watch.until(Phase::Service, self.allowances.tunnel);
                } else if self.signals.is_busy() || self.state == State::Turn {
                    self.watch.in_service();
                } else {
                    // The last of a response: what comes next is the client's affair, whether or not hyper reads on from here.
                    self.watch.until(Phase::Idle, self.allowances.idle);
                }
                if self.state == State::Turn && !self.signals.is_busy() {
                    self.signals.wake_next();
                }
            }
        }
        poll
    }
}

impl hyper::rt::Read for Gate {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: hyper::rt::ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.has_ended && this.held.is_empty() {
                return this.poll_end(cx);
            }
            if this.state == State::Turn {
                if this.is_answering() {
                    // Not read from either: a client that asks for more before it has read anything waits.
                    this.signals.keep_next(cx);
                    return Poll::Pending;
                }
                this.state = State::Head;
            }
            if !this.held.is_empty() {
                if this.state == State::Head {
                    this.judge();
                }
                if this.let_through(&mut buf) {
                    return Poll::Ready(Ok(()));
                }
                match this.state {
                    State::Turn => continue,
                    // The end, for hyper.
                    State::Refused => return Poll::Ready(Ok(())),
                    State::Head | State::Pass(_) | State::Open => {}
                }
            }
            if ready!(this.poll_fill(cx))? == 0 {
                return this.poll_end(cx);
            }
        }
    }
}

impl hyper::rt::Write for Gate {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = self.stream.poll_write(cx, &[IoSlice::new(buf)]);
        self.wrote(poll)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let poll = self.stream.poll_write(cx, bufs);
        self.wrote(poll)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.stream.poll_flush(cx);
        if flushed.is_pending() || self.writing { self.wrote(flushed) } else { flushed }
    }

    /// Ends our direction, and reads on for a while: with bytes of the client's left unread, the kernel would reset the connection and may
    /// take our last answer back (RFC 9112 §9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.unread.is_none() {
            this.watch.until(Phase::Write, this.allowances.linger);
            ready!(this.stream.poll_shutdown(cx))?;
        }
        let unread = this.unread.get_or_insert(0);
        let mut piece = [0_u8; READ];
        while *unread < LINGER_BYTES {
            match ready!(this.stream.poll_read(cx, &mut piece)) {
                Ok(n) if n > 0 => *unread += n,
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
