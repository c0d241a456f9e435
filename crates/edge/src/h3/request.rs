//! One request, from its first byte to the last one of its answer.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;

use wire::{
    h3::{Code, Fault, Message, head_of_section},
    head::{Parsed, Reject, field_table, parse},
};

use super::{
    Connection,
    content::Content,
    sending::{Sending, stored_head},
    transport::Receiving,
};
use crate::{
    request::{
        content::{Incoming, RequestBody},
        head::{HALF_A_HEAD, ParsedHead, announced_length, may_be_hit, owned_request},
        interim::counted,
        log_line::{KeptLogLine, LogLine},
        recall::{HeadText, RecallHit, RecallMiss},
        refusal::Refusal,
        response::{Follows, complete_head},
    },
    service::{CLIENT_LEFT, HitOf, Interim, Service},
};

/// Says what a head led to.
enum HeadOutcome<N> {
    /// The request is answered.
    Done,
    /// A stored page is on its way.
    Hit(Unfinished<N>),
    /// The service has to be asked.
    Call(Box<Call>),
    Refused(Reject),
}

/// A hit that the transport did not take at once.
struct Unfinished<N> {
    line: KeptLogLine,
    status: u16,
    note: N,
    started: Instant,
}

/// A request for the service to answer in its own time.
struct Call {
    request: Request<RequestBody>,
    /// The length of its content, if that is known.
    expected: Option<u64>,
    /// Whether the client waits for a 100 before it sends its content.
    expects: bool,
    started: Instant,
}

/// Waits for `future`. `None` means that it took longer than `time`.
async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    // Nearly always it is there at once, and a timer would be for nothing.
    if let Poll::Ready(value) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(value);
    }
    tokio::time::timeout(time, future).await.ok()
}

/// Serves one request, on its stream.
pub(super) async fn serve<S: Service>(shared: Rc<Connection<S>>, send: quinn::SendStream, receive: quinn::RecvStream) {
    let mut sending = Sending::new(send);
    let mut message = Message::new(Receiving::new(receive), Arc::clone(&shared.purse), shared.terms.limits.header_bytes);
    match take_up(&shared, &mut sending, &mut message).await {
        Ok(HeadOutcome::Done) => {}
        Ok(HeadOutcome::Hit(rest)) => shared.finish_hit(&mut sending, rest).await,
        // In a box of its own: what only some need would make all requests larger.
        Ok(HeadOutcome::Call(call)) => return Box::pin(answer(shared, sending, message, *call)).await,
        Ok(HeadOutcome::Refused(reject)) => shared.refuse(&mut sending, reject).await,
        Err(fault) => {
            if let Fault::Stream(code) = fault {
                sending.reset(code);
                message.source().stop(code);
                shared.worker.service.refused(shared.peer, 0, "a malformed message");
            }
            return shared.fail(fault);
        }
    }
    if !message.has_ended() {
        message.source().stop(Code::NoError);
    }
    shared.delivered(&sending).await;
}

/// Reads the head, judges it, and answers it if that can be done at once.
async fn take_up<S: Service>(
    shared: &Connection<S>,
    sending: &mut Sending,
    message: &mut Message<Receiving>,
) -> Result<HeadOutcome<S::Note>, Fault> {
    const TOO_SLOW: Reject = Reject { status: 408, reason: "the request's head did not come in time" };
    const TOO_LARGE: Reject = Reject { status: 431, reason: "the head is larger than allowed" };
    let limits = &shared.terms.limits;
    let Some(section) = within(limits.header_timeout, poll_fn(|cx| message.poll_head(cx))).await else {
        return Ok(HeadOutcome::Refused(TOO_SLOW));
    };
    let Some(section) = section? else { return Ok(HeadOutcome::Refused(TOO_LARGE)) };
    let started = Instant::now();
    let mut text = shared.text.take();
    if let Some(reject) = head_of_section(&section, &mut text, &shared.terms.head_limits)? {
        return Ok(HeadOutcome::Refused(reject));
    }
    // Whether content follows is known when it does, or when the stream ends: which may be a packet later.
    let ends = match poll_fn(|cx| Poll::Ready(message.poll_ends(cx))).await {
        Poll::Ready(ends) => ends?,
        Poll::Pending if waits_for_content(text.bytes()) => {
            match within(limits.header_timeout, poll_fn(|cx| message.poll_ends(cx))).await {
                Some(ends) => ends?,
                None => return Ok(HeadOutcome::Refused(TOO_SLOW)),
            }
        }
        Poll::Pending => false,
    };
    let begun = poll_fn(|cx| Poll::Ready(shared.begin(cx, sending, text.bytes(), ends, started))).await;
    shared.text.replace(text);
    if let Ok(HeadOutcome::Call(call)) = &begun {
        message.promise(call.expected)?;
    }
    begun
}

/// Returns whether it has to be known, before a request is answered, that it has content: because of what it is, or because its head says that
/// there is none. A client that waits for a 100 is not waited for.
fn waits_for_content(head: &[u8]) -> bool {
    let says = |field: &[u8]| memchr::memmem::find(head, field).is_some();
    let is_read = head.starts_with(b"GET ") || head.starts_with(b"HEAD ");
    is_read && !says(b"\r\nexpect: ") || says(b"\r\ncontent-length: 0")
}

impl<S: Service> Connection<S> {
    /// Judges a head, and answers from the store what can be answered so.
    fn begin(
        &self,
        cx: &mut Context<'_>,
        sending: &mut Sending,
        text: &[u8],
        ends: bool,
        started: Instant,
    ) -> Result<HeadOutcome<S::Note>, Fault> {
        let worker = &self.worker;
        let mut unrecognised = RecallMiss::default();
        if ends {
            let send = |out: &mut Vec<u8>, hit, recognised: &RecallHit<'_, '_, S::HitFacts>| {
                self.send_hit(cx, sending, out, hit, &recognised.log_line().over(Version::HTTP_3), started)
            };
            match worker.hit_again(&self.terms, self.peer, text, started, send) {
                Ok(begun) => return Ok(begun),
                Err(told) => unrecognised = told,
            }
        }
        let known_host = worker.known_host();
        let mut table = field_table();
        let parsed = parse(text, &mut table, &known_host, &self.terms.head_limits);
        let (head, fields) = match &parsed {
            Ok(Parsed::Complete(head, fields)) => (head, fields),
            Ok(Parsed::Partial) => return Ok(HeadOutcome::Refused(HALF_A_HEAD)),
            Err(reject) => return Ok(HeadOutcome::Refused(*reject)),
        };
        worker.remember_host_of(head, &known_host);
        let expected = announced_length(head, fields);
        // RFC 9114 §4.1.2: nothing where the head promised something, or something where it promised nothing.
        if expected.is_some_and(|expected| ends == (expected > 0)) {
            return Err(Fault::Stream(Code::MessageError));
        }
        if ends && may_be_hit(head, fields) {
            let send =
                |out: &mut Vec<u8>, hit, line: LogLine<'_>| self.send_hit(cx, sending, out, hit, &line.over(Version::HTTP_3), started);
            let text = HeadText { bytes: text, unrecognised };
            if let Some(begun) = worker.hit(&self.terms, self.peer, text, ParsedHead { head, fields }, started, send) {
                return Ok(begun);
            }
        }
        let mut request = match owned_request(head, fields, Version::HTTP_3) {
            Ok(request) => request,
            Err(reject) => return Ok(HeadOutcome::Refused(reject)),
        };
        if !ends && expected.is_none() && matches!(head.method, Method::GET | Method::HEAD) {
            // As HTTP/1.1 says that there is content of some length: it is not ours to drop (RFC 9110 §9.3.1).
            request.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let expects = request.headers_mut().remove(header::EXPECT).is_some() && !ends;
        Ok(HeadOutcome::Call(Box::new(Call { request, expected, expects, started })))
    }

    /// Sends a stored page; mostly the transport takes all of it at once.
    fn send_hit(
        &self,
        cx: &mut Context<'_>,
        sending: &mut Sending,
        text: &[u8],
        hit: HitOf<S>,
        line: &LogLine<'_>,
        started: Instant,
    ) -> HeadOutcome<S::Note> {
        let (status, note) = (hit.status, hit.note);
        let content = hit.body.as_ref().map(S::share).unwrap_or_default();
        let body_bytes = content.len() as u64;
        sending.put(stored_head(status, text, content.len()), content);
        let complete = match sending.poll_flush(cx) {
            Poll::Pending => return HeadOutcome::Hit(Unfinished { line: line.keep(), status, note, started }),
            Poll::Ready(flushed) => flushed.is_ok() && sending.finish(),
        };
        let body_bytes = if complete { body_bytes } else { sending.content_taken() };
        self.purse.answered();
        self.worker.service.done(&line.exchange(self.peer, status, body_bytes, started, complete), &note);
        HeadOutcome::Done
    }

    /// Waits for the rest of a hit to be taken.
    async fn finish_hit(&self, sending: &mut Sending, rest: Unfinished<S::Note>) {
        let Unfinished { line, status, note, started } = rest;
        let complete = sending.flush(self.terms.limits.write_timeout).await.is_ok() && sending.finish();
        self.done(sending, &line, status, note, started, complete);
    }

    fn done(&self, sending: &Sending, line: &KeptLogLine, status: u16, note: S::Note, started: Instant, complete: bool) {
        if complete {
            self.purse.answered();
        }
        self.worker.service.done(&line.exchange(self.peer, status, sending.content_taken(), started, complete), &note);
    }

    /// Tells the client why it is refused. A refusal is an answer as good as any, and costs as much.
    async fn refuse(&self, sending: &mut Sending, reject: Reject) {
        self.worker.service.refused(self.peer, reject.status, reject.reason);
        self.fail(Fault::Stream(Code::NoError));
        let Refusal { status, fields, content } = reject.into();
        sending.put_head(status, &fields);
        if sending.flush(self.terms.limits.write_timeout).await.is_ok() {
            sending.put_content(content);
            if sending.flush(self.terms.limits.write_timeout).await.is_ok() {
                sending.finish();
            }
        }
    }

    /// Waits until the client has the answer: a connection that is left before loses what is on its way.
    async fn delivered(&self, sending: &Sending) {
        let _ = tokio::time::timeout(self.terms.limits.write_timeout, sending.stopped()).await;
    }
}

/// Asks the service, and sends what it answers.
async fn answer<S: Service>(shared: Rc<Connection<S>>, mut sending: Sending, message: Message<Receiving>, call: Call) {
    let Call { mut request, expected, expects, started } = call;
    let line = KeptLogLine::of(&request);
    if !message.has_ended() {
        let limits = &shared.terms.limits;
        let content = Incoming::Http3(Box::new(Content::new(message, shared.transport.0.clone())), expected);
        *request.body_mut() = RequestBody::limited(content, limits.body_bytes, limits.body_timeout);
    }
    let interims = Rc::<Interims>::default();
    if expects {
        interims.tell(StatusCode::CONTINUE, &HeaderMap::new());
    }
    let mut stopped = pin!(sending.stopped());
    let answered = {
        let mut answer = pin!(shared.worker.service.call(shared.peer, request, started, Some(interims.interim())));
        poll_fn(|cx| {
            let answered = answer.as_mut().poll(cx);
            interims.put(&mut sending, cx);
            if let Poll::Ready(answer) = answered {
                return Poll::Ready(Some(answer));
            }
            // Whether that fails will show: the stream is stopped then.
            let _ = sending.poll_flush(cx);
            stopped.as_mut().poll(cx).map(|()| None)
        })
        .await
    };
    let Some(answer) = answered else {
        shared.fail(Fault::Gone);
        sending.reset(Code::RequestCancelled);
        return shared.worker.service.done(&line.exchange(shared.peer, CLIENT_LEFT, 0, started, false), &S::Note::default());
    };
    let (response, note) = *answer;
    let status = response.status().as_u16();
    let sent = send::<S>(&mut sending, response, &line.method, shared.terms.limits.write_timeout, stopped).await;
    if let Err(Fault::Stream(code) | Fault::Connection(code)) = sent {
        sending.reset(code);
    }
    let complete = sent.is_ok() && sending.finish();
    shared.done(&sending, &line, status, note, started, complete);
    shared.delivered(&sending).await;
}

/// Sends a response, but not its end.
async fn send<S: Service>(
    sending: &mut Sending,
    response: Response<S::Body>,
    method: &Method,
    patience: Duration,
    mut stopped: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Fault> {
    /// The fault of content that is more or less than its head promised: a reset tells the client that this is not the end.
    const BROKEN: Fault = Fault::Stream(Code::InternalError);
    let (mut parts, mut body) = response.into_parts();
    let follows = complete_head(&mut parts, &body, method).ok_or(BROKEN)?;
    sending.put_head(parts.status, &parts.headers);
    sending.flush(patience).await?;
    let Follows::Content(mut promised) = follows else { return Ok(()) };
    while !body.is_end_stream() {
        let frame = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => stopped.as_mut().poll(cx).map(|()| Err(Fault::Gone)),
        });
        let data = match frame.await? {
            None => break,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(_)) => return Err(BROKEN),
        };
        if !promised.take(data.len()) {
            return Err(BROKEN);
        }
        if !data.is_empty() {
            sending.put_content(data);
            sending.flush(patience).await?;
        }
    }
    if promised.is_kept() { Ok(()) } else { Err(BROKEN) }
}

/// Interim responses on their way from the service to the stream.
#[derive(Debug, Default)]
struct Interims {
    waiting: RefCell<Vec<(StatusCode, HeaderMap)>>,
    /// Wakes the connection: interim responses may be told from another task.
    connection: RefCell<Option<Waker>>,
}

impl Interims {
    fn tell(&self, status: StatusCode, fields: &HeaderMap) {
        self.waiting.borrow_mut().push((status, fields.clone()));
        if let Some(connection) = self.connection.take() {
            connection.wake();
        }
    }

    /// Returns the function that the service is given.
    fn interim(self: &Rc<Self>) -> Interim {
        let this = Rc::clone(self);
        counted(move |status, fields| {
            this.tell(status, fields);
            true
        })
    }

    /// Puts those in line that wait, and lets the connection be woken for the next one.
    fn put(&self, sending: &mut Sending, cx: &Context<'_>) {
        for (status, fields) in self.waiting.borrow_mut().drain(..) {
            sending.put_head(status, &fields);
        }
        self.connection.borrow_mut().get_or_insert_with(|| cx.waker().clone());
    }
}
