//! Responses that are not hits: sent as their content comes, and as the client's windows have room for it.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use wire::{
    h2::{Code, Content, Over, Piece},
    head::Reject,
};

use super::Connection;
use crate::{
    request::{
        content::{Incoming, RequestBody},
        interim::counted,
        log_line::KeptLogLine,
        response::{Follows, complete_head},
    },
    service::{CLIENT_LEFT, Interim, Service},
};

/// A request that is being answered. If it is given up without an end, its stream is reset.
pub(super) struct Handle<S: Service> {
    pub(super) shared: Rc<Connection<S>>,
    id: u32,
}

impl<S: Service> Handle<S> {
    pub(super) fn new(shared: Rc<Connection<S>>, id: u32) -> Self {
        shared.core.borrow_mut().hold(id);
        Self { shared, id }
    }

    fn over(&self) -> Option<Over> {
        self.shared.core.borrow().state(self.id).0
    }

    /// Returns how many bytes of content have left.
    fn sent(&self) -> u64 {
        self.shared.core.borrow().state(self.id).1
    }

    /// Resolves when the client does not want an answer any more.
    pub(super) fn poll_reset(&self, cx: &Context<'_>) -> Poll<()> {
        if self.over() == Some(Over::Reset) {
            return Poll::Ready(());
        }
        self.shared.core.borrow_mut().watch(self.id, cx.waker());
        Poll::Pending
    }

    /// Resolves when the stream has ended, to whether all of it left.
    fn poll_over(&self, cx: &Context<'_>) -> Poll<bool> {
        match self.over() {
            Some(over) => Poll::Ready(over == Over::Complete),
            None => {
                self.shared.core.borrow_mut().watch(self.id, cx.waker());
                Poll::Pending
            }
        }
    }

    /// Resolves to the number of bytes that may be sent now. `None` means that no more may be sent at all.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<Option<usize>> {
        if self.over().is_some() {
            return Poll::Ready(None);
        }
        let mut core = self.shared.core.borrow_mut();
        match core.room(self.id) {
            0 => {
                core.watch(self.id, cx.waker());
                Poll::Pending
            }
            room => Poll::Ready(Some(room)),
        }
    }

    pub(super) fn head(&self, status: StatusCode, fields: &HeaderMap, ends: bool) {
        self.shared.core.borrow_mut().send_head(self.id, status, fields, ends);
    }

    pub(super) fn send(&self, data: Bytes) {
        self.shared.core.borrow_mut().send(self.id, Some(Piece::Bytes(data)), false);
    }

    pub(super) fn end(&self) {
        self.shared.core.borrow_mut().send(self.id, None, true);
    }

    pub(super) fn refuse(&self, reject: Reject) {
        self.shared.refuse(self.id, reject);
    }

    /// Tells that the exchange has ended. Only a response that was read to its end is worth patience.
    pub(super) fn done(&self, line: &KeptLogLine, status: u16, started: Instant, complete: bool, note: S::Note) {
        if complete {
            self.shared.core.borrow_mut().answered();
        }
        self.shared.worker.service.done(&line.exchange(self.shared.peer, status, self.sent(), started, complete), &note);
    }

    /// Makes the content of this request, within the limits.
    pub(super) fn limited(&self, content: Content, expected: Option<u64>) -> RequestBody {
        let limits = &self.shared.terms.limits;
        RequestBody::limited(Incoming::Http2(content, expected), limits.body_bytes, limits.body_timeout)
    }

    pub(super) fn reset(&self, code: Code) {
        self.shared.core.borrow_mut().reset(self.id, code);
    }
}

impl<S: Service> Drop for Handle<S> {
    fn drop(&mut self) {
        self.shared.core.borrow_mut().release(self.id);
    }
}

/// Waits for the end of a stored page that is on its way.
pub(super) async fn finish<S: Service>(handle: Handle<S>, line: KeptLogLine, status: u16, note: S::Note, started: Instant) {
    let complete = poll_fn(|cx| handle.poll_over(cx)).await;
    handle.done(&line, status, started, complete, note);
}

/// Asks the service. `None` means that the client went first, which is then told.
pub(super) async fn ask<S: Service>(
    handle: &Handle<S>,
    request: Request<RequestBody>,
    line: &KeptLogLine,
    started: Instant,
    interim: Interim,
) -> Option<Box<(Response<S::Body>, S::Note)>> {
    let shared = &handle.shared;
    let service = &shared.worker.service;
    // A request that was taken back within the read that brought it asks nobody.
    let answered = if handle.over().is_some() {
        None
    } else {
        let mut answer = pin!(service.call(shared.peer, request, started, Some(interim)));
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => handle.poll_reset(cx).map(|()| None),
        })
        .await
    };
    if answered.is_none() {
        service.done(&line.exchange(shared.peer, CLIENT_LEFT, 0, started, false), &S::Note::default());
    }
    answered
}

/// Asks the service, and sends what it answers.
pub(super) async fn answer<S: Service>(handle: Handle<S>, request: Request<RequestBody>, started: Instant, expects: bool) {
    let line = KeptLogLine::of(&request);
    if expects {
        handle.head(StatusCode::CONTINUE, &HeaderMap::new(), false);
    }
    let interim = interim_for(&handle);
    let Some(answer) = ask(&handle, request, &line, started, interim).await else { return };
    let (response, note) = *answer;
    respond(handle, response, note, &line, started).await;
}

/// Answers a request that may turn out to have no content, once that is known.
///
/// The stream of most GETs ends with their head, but it may end with an empty frame behind it. Content of a GET is not ours to drop (RFC
/// 9110 §9.3.1), and none where the head promised nothing is for others to see (RFC 9113 §8.1.1).
pub(super) async fn answer_when_begun<S: Service>(
    handle: Handle<S>,
    mut request: Request<RequestBody>,
    content: Content,
    expected: Option<u64>,
    started: Instant,
    expects: bool,
) {
    if expects {
        handle.head(StatusCode::CONTINUE, &HeaderMap::new(), false);
    }
    let begins = poll_fn(|cx| match content.poll_begins(cx) {
        Poll::Ready(begins) => Poll::Ready(begins),
        // The service is not asked then, but the log is told.
        Poll::Pending => handle.poll_reset(cx).map(|()| false),
    });
    match tokio::time::timeout(handle.shared.terms.limits.body_timeout, begins).await {
        Ok(false) => {}
        Ok(true) => {
            if expected.is_none() {
                // As HTTP/1.1 says that there is content of some length.
                request.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            *request.body_mut() = handle.limited(content, expected);
        }
        Err(_) => return handle.refuse(Reject { status: 408, reason: "the request's content did not come in time" }),
    }
    answer(handle, request, started, false).await;
}

/// Sends a response, and tells of its end.
pub(super) async fn respond<S: Service>(
    handle: Handle<S>,
    response: Response<S::Body>,
    note: S::Note,
    line: &KeptLogLine,
    started: Instant,
) {
    let status = response.status().as_u16();
    send(&handle, response, &line.method).await;
    let complete = poll_fn(|cx| handle.poll_over(cx)).await;
    handle.done(line, status, started, complete, note);
}

/// Sends a response; afterwards its end is on its way, or its stream has been reset.
async fn send<S: Service>(handle: &Handle<S>, response: Response<S::Body>, method: &Method) {
    let (mut parts, mut body) = response.into_parts();
    let Some(follows) = complete_head(&mut parts, &body, method) else { return handle.reset(Code::INTERNAL_ERROR) };
    let ends = follows == Follows::Nothing || body.is_end_stream();
    handle.head(parts.status, &parts.headers, ends);
    let Follows::Content(mut promised) = follows else { return };
    if ends {
        return;
    }
    loop {
        let frame = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => handle.poll_reset(cx).map(|()| Err(())),
        });
        let mut data = match frame.await {
            Err(()) => return,
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            // The head promised more: a reset tells the client that this is not the end.
            Ok(Some(Err(_))) => return handle.reset(Code::INTERNAL_ERROR),
        };
        if !promised.take(data.len()) {
            return handle.reset(Code::INTERNAL_ERROR);
        }
        while !data.is_empty() {
            let Some(room) = poll_fn(|cx| handle.poll_room(cx)).await else { return };
            handle.send(data.split_to(room.min(data.len())));
        }
        // With the last piece, and not in a frame of its own.
        if body.is_end_stream() {
            break;
        }
    }
    if !promised.is_kept() {
        return handle.reset(Code::INTERNAL_ERROR);
    }
    handle.end();
}

/// Makes what the service tells its interim responses to: they are passed on as they come.
pub(super) fn interim_for<S: Service>(handle: &Handle<S>) -> Interim {
    let (shared, id) = (Rc::clone(&handle.shared), handle.id);
    counted(move |status, fields| {
        let Ok(mut core) = shared.core.try_borrow_mut() else { return false };
        core.send_head(id, status, fields, false);
        shared.waker.borrow().wake_by_ref();
        true
    })
}
