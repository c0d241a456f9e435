//! A connection to a FastCGI server, driven by whoever waits for the response: one request after the other, never two at once.

use std::{
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWrite},
    time::{Instant, Sleep},
};

use super::{
    head::Refused,
    messages::Messages,
    record::{self, Kind, Piece, Records, Verdict},
    spool::Content,
};
use crate::{
    Fault, OriginError,
    server::{self, Address, Stream},
};

/// Room for the records of a page in one read. A connection keeps it while it is idle.
const READ_BYTES: usize = 32 * 1024;
/// Content up to this length is copied, to be sent together with the parameters.
const SMALL_BYTES: usize = 16 * 1024;

/// An open connection. Dropping it closes it, which ends what PHP does for it at its next output.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    read: BytesMut,
    records: Records,
    /// The bytes that are written next: records, and behind them a piece of content without its copy.
    front: BytesMut,
    piece: Bytes,
    content: Content,
    sending: Sending,
    /// Whether any byte of the request has left.
    sent: bool,
    /// The time at which the last bytes of the request left.
    pub(super) sent_at: Instant,
    messages: Option<Messages>,
    /// The timer, made at the first wait; when it rings early it is set anew.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Whether it has carried a request before: only then may it have died of old age.
    pub(super) reused: bool,
    /// Whether any byte came since the request was sent.
    pub(super) heard: bool,
    /// Whether something was read, and more of it is waited for.
    acknowledges: bool,
    /// Whether the question for the next request leaves together with this one.
    asks_along: bool,
    /// Whether the child has answered the question that is asked before each request.
    free: bool,
    /// The time at which a child took it, by all that is known: it answered its first question then.
    taken_at: Option<Instant>,
}

/// The progress of sending a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Content follows what is being written.
    Content,
    /// The last piece of the request is being written.
    Last,
    /// It has left whole.
    Done,
    /// The server does not take the rest.
    Torn,
}

/// The reason why there is no response, or no more of it.
#[derive(Debug)]
pub(super) struct Broken {
    fault: Fault,
    what: &'static str,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Broken {
    pub(super) const fn new(fault: Fault, what: &'static str) -> Self {
        Self { fault, what, source: None }
    }

    fn io(what: &'static str, error: io::Error) -> Self {
        Self { fault: Fault::ConnectionTerminated, what, source: Some(error.into()) }
    }

    /// Makes the error of an exchange with `address`; `what` was being done.
    pub(super) fn into_error(self, what: &str, address: &Address) -> OriginError {
        let error = OriginError::new(self.fault, format!("{what} {address}: {}", self.what));
        match self.source {
            Some(source) => error.because(source),
            None => error,
        }
    }
}

impl From<Refused> for Broken {
    fn from((fault, what): Refused) -> Self {
        Self::new(fault, what)
    }
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            records: Records::default(),
            front: BytesMut::new(),
            piece: Bytes::new(),
            content: Content::Memory(Bytes::new()),
            sending: Sending::Done,
            sent: false,
            sent_at: Instant::now(),
            messages: None,
            alarm: None,
            reused: false,
            heard: false,
            acknowledges: false,
            asks_along: false,
            free: false,
            taken_at: None,
        }
    }

    /// Makes a request ready to be sent: `records` with its parameters, and its content. A child has said that it is free for it.
    pub(super) fn begin(&mut self, records: &[u8], content: Content, messages: Messages) {
        // A server that closes the connection without having read the question would take the end of its response along, over TCP.
        self.asks_along = matches!(self.stream, Stream::Unix(_));
        self.front.clear();
        self.front.extend_from_slice(records);
        self.messages = Some(messages);
        self.sending = Sending::Content;
        self.content = match content {
            // Nearly every request leaves in one write.
            Content::Memory(bytes) if bytes.len() <= SMALL_BYTES => {
                if !bytes.is_empty() {
                    self.add(Bytes::new(), &bytes);
                }
                self.add(Bytes::new(), b"");
                Content::Memory(Bytes::new())
            }
            content => content,
        };
        (self.sent, self.heard, self.free) = (false, false, false);
        self.sent_at = Instant::now();
    }

    /// Returns whether nothing of the request has left.
    pub(super) const fn nothing_sent(&self) -> bool {
        !self.sent
    }

    /// Returns whether the request was sent whole, and nothing came behind its end but the answer to a question that was asked.
    pub(super) fn is_clean(&mut self) -> bool {
        // The last record's padding may still be there.
        let nothing_more = match self.records.take(&mut self.read) {
            Ok(None) => self.asks_along || (self.read.is_empty() && self.records.is_between()),
            Ok(Some(Piece::Values)) if self.asks_along => {
                self.is_told_free();
                matches!(self.records.take(&mut self.read), Ok(None)) && self.read.is_empty()
            }
            Ok(Some(_)) | Err(_) => false,
        };
        nothing_more && self.sending == Sending::Done
    }

    fn is_told_free(&mut self) {
        self.free = true;
        self.taken_at.get_or_insert_with(Instant::now);
    }

    /// Asks whether a child is free for a request. Returns whether the question has left.
    ///
    /// A new connection may stand in the queue of a server whose children are all busy, and what was written into it is carried out even if nobody waits for
    /// it any more. And a script may end its response and go on working (`fastcgi_finish_request`): the next request on its connection would wait for it, for
    /// ever if the script itself is who waits for that request. php-fpm reads the question when it could read a request; so it may leave before that.
    pub(super) fn ask_whether_free(&mut self) -> bool {
        if std::mem::take(&mut self.asks_along) {
            return true;
        }
        let mut question = BytesMut::new();
        record::write_question(&mut question);
        self.free = false;
        let written = Pin::new(&mut self.stream).poll_write(&mut Context::from_waker(Waker::noop()), &question);
        matches!(written, Poll::Ready(Ok(bytes)) if bytes == question.len())
    }

    /// Waits for the answer to the question. Returns whether a child is free, and not the connection closed.
    pub(super) async fn is_free(self: &mut Box<Self>) -> bool {
        // Not within the task's budget: when that is spent, every connection would seem to be at rest.
        self.free || tokio::task::unconstrained(poll_fn(|cx| server::Connection::poll_ready(self, cx))).await
    }

    /// Returns how long it has held its child.
    pub(super) fn held_for(&self) -> Duration {
        self.taken_at.map_or(Duration::ZERO, |taken| taken.elapsed())
    }

    /// Sends what the server takes, and reads the next piece of what it says.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Broken>> {
        if !matches!(self.sending, Sending::Done | Sending::Torn) {
            self.poll_send(cx)?;
        }
        loop {
            match self.records.take(&mut self.read).map_err(|what| Broken::new(Fault::ProtocolError, what))? {
                Some(Piece::Messages(message)) => {
                    if let Some(messages) = &mut self.messages {
                        messages.add(&message);
                    }
                    continue;
                }
                Some(Piece::End(status, verdict)) => {
                    self.messages = None;
                    return Poll::Ready(ended(status, verdict).map(|()| Piece::End(status, verdict)));
                }
                Some(Piece::Values) => return Poll::Ready(Err(Broken::new(Fault::ProtocolError, "an answer that nobody asked for"))),
                Some(piece @ Piece::Output(_)) => return Poll::Ready(Ok(piece)),
                None => {}
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(Err(Broken::new(Fault::ConnectionTerminated, "closed before the response's end"))),
                Ok(_) => self.heard = true,
                Err(error) => return Poll::Ready(Err(Broken::io("the response broke off", error))),
            }
        }
    }

    /// Becomes ready when `deadline` has passed.
    pub(super) fn poll_alarm(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        // One set for a shorter wait than this one rings early, one for a longer wait would ring late.
        if alarm.deadline() > deadline {
            alarm.as_mut().reset(deadline);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    /// Sends what the socket takes. An error counts only if nothing has left: PHP may have answered before it closed.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        loop {
            if self.front.is_empty() && self.piece.is_empty() {
                match self.sending {
                    Sending::Content => match self.content.poll_piece(cx, record::CONTENT_BYTES_MAX) {
                        Poll::Pending => return Ok(()),
                        Poll::Ready(Ok(piece)) => self.add(piece, b""),
                        Poll::Ready(Err(error)) => {
                            self.sending = Sending::Torn;
                            return Err(Broken { fault: error.fault, what: "the upload cannot be read again", source: Some(error.into()) });
                        }
                    },
                    Sending::Last => {
                        self.sending = Sending::Done;
                        return Ok(());
                    }
                    Sending::Done | Sending::Torn => return Ok(()),
                }
                continue;
            }
            let sent = if self.piece.is_empty() {
                Pin::new(&mut self.stream).poll_write(cx, &self.front)
            } else {
                Pin::new(&mut self.stream).poll_write_vectored(cx, &[IoSlice::new(&self.front), IoSlice::new(&self.piece)])
            };
            match sent {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(bytes)) if bytes > 0 => {
                    self.sent = true;
                    self.sent_at = Instant::now();
                    let of_front = bytes.min(self.front.len());
                    self.front.advance(of_front);
                    self.piece.advance(bytes - of_front);
                }
                Poll::Ready(result) => {
                    let error = result.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    self.sending = Sending::Torn;
                    return if self.sent { Ok(()) } else { Err(Broken::io("not sent", error)) };
                }
            }
        }
    }

    /// Adds a record with content to what is written: a piece that is shared, or one to be copied. The empty one is the last.
    fn add(&mut self, piece: Bytes, copied: &[u8]) {
        let bytes = piece.len() + copied.len();
        self.front.extend_from_slice(&record::header(Kind::Stdin, bytes));
        self.front.extend_from_slice(copied);
        if bytes == 0 {
            self.sending = Sending::Last;
            if self.asks_along {
                record::write_question(&mut self.front);
            }
        }
        self.piece = piece;
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = self.poll_read_some(cx);
        match read {
            // php-fpm leaves Nagle's algorithm on.
            Poll::Pending if std::mem::take(&mut self.acknowledges) => self.stream.acknowledge(),
            Poll::Pending => {}
            Poll::Ready(_) => self.acknowledges = true,
        }
        read
    }

    fn poll_read_some(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read.capacity() - self.read.len() < READ_BYTES / 4 {
            // The buffer is its own again when the pieces taken off it are gone: this seldom allocates.
            self.read.reserve(READ_BYTES);
        }
        pin!(self.stream.read_buf(&mut self.read)).poll(cx)
    }

    /// Reads what came while no request was under way. Returns whether the connection is as it should be.
    fn poll_is_good(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            match self.records.take(&mut self.read) {
                Ok(Some(Piece::Values)) if !self.free => self.is_told_free(),
                Ok(Some(_)) | Err(_) => return false,
                Ok(None) => match self.poll_read(cx) {
                    Poll::Pending => return !self.free || (self.read.is_empty() && self.records.is_between()),
                    Poll::Ready(Ok(bytes)) if bytes > 0 => {}
                    Poll::Ready(_) => return false,
                },
            }
        }
    }
}

fn ended(status: u32, verdict: Verdict) -> Result<(), Broken> {
    match verdict {
        Verdict::Complete if status == 0 => Ok(()),
        Verdict::Complete => Err(Broken::new(Fault::ConnectionTerminated, "the program ended with an error")),
        Verdict::Overloaded => Err(Broken::new(Fault::Overloaded, "the server has no room for the request")),
        Verdict::Refused => Err(Broken::new(Fault::ProtocolError, "the server does not answer requests")),
    }
}

impl server::Connection for Box<Connection> {
    fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_is_good(cx) && self.free
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match self.poll_is_good(cx) {
            true if !self.free => Poll::Pending,
            good => Poll::Ready(good),
        }
    }

    fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        !self.poll_is_good(cx)
    }
}
