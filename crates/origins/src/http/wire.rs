//! A connection to an origin that is ours from its first byte to its last: for requests whose content is at hand, which are nearly all.
//!
//! Request and response are driven by whoever waits for them. hyper's client hands both through channels to a task per connection, which
//! is needed where content is still coming from the client while the response comes from the origin, and for upgrades: those take that
//! way ([`super::hyper_connection`]). Everything else need not pay for it.

use std::{
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{StatusCode, header::CONTENT_LENGTH};
use http_body::{Body as HttpBody, Frame, SizeHint};
use semantics::hop_by_hop::strip_hop_by_hop;
use tokio::{
    io::{AsyncReadExt, AsyncWrite},
    time::{Instant, Sleep},
};

use super::{
    ArrivedRequest,
    content::{Content, ContentStep},
    head::{self, Head},
    idle::Idle,
    response::is_misleading,
};
use crate::{
    Body, Fault, OnInterim, OriginError,
    server::{Address, Lease, ServerOptions, Stream},
};

/// Room for a response head and a page in one read. A connection keeps it while it is idle.
const READ_MIN: usize = 16 * 1024;
/// Interim responses before a final one. Whoever sends more never means to end.
const INTERIMS_MAX: usize = 64;
/// The most that is read at once, for content of many reads.
const READ_MAX: usize = 64 * 1024;

/// An open connection. Dropping it closes it, whatever is still on its way.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    read: BytesMut,
    read_next: usize,
    /// The request's head, how much of it has been written, and the content behind it.
    head: Vec<u8>,
    written: usize,
    content: Bytes,
    sending: Sending,
    /// The timer, made at the first wait; when it rings early it is set anew, so that a request does not touch the timer wheel.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Whether it has carried a request before: only then may it have died of old age.
    pub(super) reused: bool,
    /// Whether any byte came since the request was sent.
    pub(super) heard: bool,
    /// Whether what came says that more follows, which cannot be: nothing that comes later is to be believed.
    misled: bool,
}

/// The progress of sending a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// It is being written.
    Begun,
    /// It has left whole.
    Done,
    /// The origin does not take the rest.
    Torn,
}

/// The reason why there is no response, or no more of it.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) fault: Fault,
    pub(super) what: &'static str,
    pub(super) source: Option<io::Error>,
}

impl Broken {
    const fn new(fault: Fault, what: &'static str) -> Self {
        Self { fault, what, source: None }
    }

    fn io(what: &'static str, error: io::Error) -> Self {
        let garbage = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
        Self { fault: if garbage { Fault::ProtocolError } else { Fault::ConnectionTerminated }, what, source: Some(error) }
    }
}

impl Broken {
    /// Makes the error of an exchange with `address`; `what` was being done.
    pub(super) fn into_error(self, what: &str, address: &Address) -> OriginError {
        let error = OriginError::new(self.fault, format!("{what} {address}: {}", self.what));
        match self.source {
            Some(source) => error.because(source),
            None => error,
        }
    }
}

impl From<head::Refused> for Broken {
    fn from((fault, what): head::Refused) -> Self {
        Self::new(fault, what)
    }
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            read_next: READ_MIN,
            head: Vec::new(),
            written: 0,
            content: Bytes::new(),
            sending: Sending::Done,
            alarm: None,
            reused: false,
            heard: false,
            misled: false,
        }
    }

    /// Makes a request ready to be sent; [`Wire::poll_head`] sends it.
    pub(super) fn begin(&mut self, asked: ArrivedRequest<'_>) {
        self.content = if let Body::Full(content) = asked.0.body() { content.clone() } else { Bytes::new() };
        // The pieces of the response before are gone by now: its room serves this one as a whole, and not what was left of it.
        self.read.reserve(READ_MIN);
        self.head.clear();
        head::write(asked, &self.content, &mut self.head);
        self.written = 0;
        self.sending = Sending::Begun;
        self.heard = false;
    }

    /// Returns whether nothing of the request has left.
    pub(super) const fn nothing_sent(&self) -> bool {
        // What TLS refuses may have left in part.
        self.written == 0 && !self.stream.is_tls()
    }

    /// Returns whether an idle connection is as it was left. Bytes that nobody asked for end it, as its closing does.
    pub(super) fn poll_is_good(&mut self, cx: &mut Context<'_>) -> bool {
        self.read.is_empty() && self.poll_read(cx).is_pending()
    }

    /// Returns whether another request may follow: this one was sent whole, and its response ended where it said.
    pub(super) fn is_clean(&self) -> bool {
        self.read.is_empty() && self.sending == Sending::Done && !self.misled
    }

    /// Sends the request and reads the next head: an interim response's or the final one's.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>, options: &ServerOptions) -> Poll<Result<Head, Broken>> {
        if self.sending == Sending::Begun {
            self.poll_send(cx)?;
        }
        loop {
            if !self.read.is_empty()
                && let Some(head) = head::read(&mut self.read, options)?
            {
                return Poll::Ready(Ok(head));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(Err(Broken::new(Fault::ConnectionTerminated, "closed before the response"))),
                Ok(_) => self.heard = true,
                Err(error) => return Poll::Ready(Err(Broken::io("no response", error))),
            }
        }
    }

    /// Sends the request and waits for the final response's head; none if it has not come by `deadline`. Interim responses are told, save for a 100.
    pub(super) async fn final_head(
        &mut self,
        options: &ServerOptions,
        deadline: Instant,
        interim: Option<&OnInterim<'_>>,
    ) -> Option<Result<Head, Broken>> {
        let mut interims = 0;
        poll_fn(|cx| {
            loop {
                match self.poll_head(cx, options) {
                    Poll::Ready(Ok(head)) if head.is_interim() && interims >= INTERIMS_MAX => {
                        return Poll::Ready(Some(Err(Broken::new(Fault::ProtocolError, "too many interim responses"))));
                    }
                    Poll::Ready(Ok(mut head)) if head.is_interim() => {
                        interims += 1;
                        self.misled |= is_misleading(head.status, &head.fields);
                        if let Some(interim) = interim.filter(|_| head.status != StatusCode::CONTINUE) {
                            strip_hop_by_hop(&mut head.fields);
                            // Nothing follows an interim head, whatever it says (RFC 9110 §8.6).
                            head.fields.remove(CONTENT_LENGTH);
                            interim(head.status, &head.fields);
                        }
                    }
                    Poll::Ready(outcome) => return Poll::Ready(Some(outcome)),
                    Poll::Pending => return self.poll_alarm(cx, deadline).map(|()| None),
                }
            }
        })
        .await
    }

    /// Reads the next piece of a response's content; `None` at its end.
    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>, content: &mut Content) -> Poll<Result<Option<Bytes>, Broken>> {
        loop {
            match content.take(&mut self.read).map_err(|what| Broken::new(Fault::ProtocolError, what))? {
                ContentStep::Data(data) => return Poll::Ready(Ok(Some(data))),
                ContentStep::End => return Poll::Ready(Ok(None)),
                ContentStep::More => {}
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) if *content == Content::Close => {
                    *content = Content::Length(0);
                    return Poll::Ready(Ok(None));
                }
                Ok(0) => return Poll::Ready(Err(Broken::new(Fault::ConnectionTerminated, "closed before the content's end"))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(Broken::io("the content broke off", error))),
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

    /// Sends what the socket takes. An error counts only if nothing has left: the origin may have answered before it closed.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        loop {
            let head = self.head.get(self.written..).unwrap_or_default();
            let sent = if head.is_empty() && self.content.is_empty() {
                match Pin::new(&mut self.stream).poll_flush(cx) {
                    Poll::Ready(Ok(())) => {
                        self.sending = Sending::Done;
                        return Ok(());
                    }
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Pending => return Ok(()),
                }
            } else if self.content.is_empty() {
                Pin::new(&mut self.stream).poll_write(cx, head)
            } else {
                Pin::new(&mut self.stream).poll_write_vectored(cx, &[IoSlice::new(head), IoSlice::new(&self.content)])
            };
            match sent {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(n)) if n > 0 => {
                    let of_head = n.min(head.len());
                    self.written += of_head;
                    self.content.advance(n - of_head);
                }
                Poll::Ready(result) => {
                    let error = result.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    self.sending = Sending::Torn;
                    return if self.written == 0 { Err(Broken::io("not sent", error)) } else { Ok(()) };
                }
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let room = self.read.capacity() - self.read.len();
        if room < READ_MIN / 4 {
            // The buffer is its own again when the pieces taken off it are gone: this seldom allocates.
            self.read.reserve(self.read_next);
        }
        let room = self.read.capacity() - self.read.len();
        let n = ready!(pin!(self.stream.read_buf(&mut self.read)).poll(cx))?;
        if n == room {
            self.read_next = (self.read_next * 2).min(READ_MAX);
        }
        Poll::Ready(Ok(n))
    }
}

/// The hold of a response on its connection while the content comes.
pub(super) type WireLease = Lease<Box<Wire>, Idle>;

/// A streaming response body with a limit on its pauses.
pub(super) struct WireBody {
    content: Content,
    lease: Option<WireLease>,
    /// The time since which a read has been pending. Time in which nobody asks for the next frame is not the origin's.
    pending_since: Option<Instant>,
}

/// Ends the lease of a connection whose response has ended.
pub(super) fn end(lease: WireLease) {
    let is_clean = lease.connection.is_clean();
    lease.end(is_clean);
}

impl WireBody {
    pub(super) const fn new(content: Content, lease: WireLease) -> Self {
        Self { content, lease: Some(lease), pending_since: None }
    }
}

impl HttpBody for WireBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let this = &mut *self;
        let Some(lease) = &mut this.lease else { return Poll::Ready(None) };
        match lease.connection.poll_content(cx, &mut this.content) {
            Poll::Ready(Ok(data)) => {
                this.pending_since = None;
                // The end is known with the last byte of counted content: who read that may never ask again.
                if (data.is_none() || this.content.is_over())
                    && let Some(lease) = this.lease.take()
                {
                    end(lease);
                }
                Poll::Ready(data.map(|data| Ok(Frame::data(data))))
            }
            Poll::Ready(Err(broken)) => {
                let error = broken.into_error("response body from", lease.origin());
                this.lease = None;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Pending => {
                let timeout = lease.pool.options().between_bytes_timeout;
                let deadline = *this.pending_since.get_or_insert_with(Instant::now) + timeout;
                ready!(lease.connection.poll_alarm(cx, deadline));
                let detail = format!("{} paused for {timeout:?}", lease.origin());
                this.lease = None;
                Poll::Ready(Some(Err(OriginError::new(Fault::BodyTimeout, detail))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.content {
            Content::Length(left) => SizeHint::with_exact(left),
            Content::Chunked(_) | Content::Close => SizeHint::default(),
        }
    }
}
