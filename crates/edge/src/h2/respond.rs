//! Responses: heads without what belongs to a connection, and content as the client's windows have room for it.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    task::Poll,
    time::{Duration, Instant},
};

use ::h2::{Reason, SendStream};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;

use super::{Piece, Sending, Shared, said, unread::Left};
use crate::{
    line::Line,
    service::{Interim, RequestBody, Service},
};

/// Of HTTP/1 alone (RFC 9113 §8.2.2).
const OF_THE_CONNECTION: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Interim responses that a client gets for one request.
const INTERIMS_MAX: usize = 16;

/// The head of a stored response, which is kept as HTTP/1 writes it.
pub(super) fn head_of(status: u16, text: &[u8]) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let fields = response.headers_mut();
    fields.reserve(16);
    for line in text.split(|&byte| byte == b'\n').skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            fields.append(name, value);
        }
    }
    without_connection(fields);
    response
}

fn without_connection(fields: &mut HeaderMap) {
    for name in OF_THE_CONNECTION {
        fields.remove(name);
    }
}

/// Waits until the client has room for some of `wanted` bytes. `None`: it has gone, or took nothing for `patience`.
async fn room<H: AsRef<[u8]>>(stream: &mut SendStream<Piece<H>>, wanted: usize, patience: Duration) -> Option<usize> {
    stream.reserve_capacity(wanted);
    let ready = stream.capacity();
    if ready > 0 {
        return Some(ready.min(wanted));
    }
    let room = poll_fn(|cx| match stream.poll_capacity(cx) {
        // Told again without any: a window that a setting has made smaller.
        Poll::Ready(Some(Ok(0))) => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        other => other,
    });
    match tokio::time::timeout(patience, room).await {
        Ok(Some(Ok(room))) => Some(room.min(wanted)),
        _ => None,
    }
}

/// Sends a stored page as the window allows. Returns how many bytes, and whether that was all.
pub(super) async fn send_stored<H: AsRef<[u8]>>(stream: &mut SendStream<Piece<H>>, page: &Rc<H>, patience: Duration) -> (u64, bool) {
    let len = (**page).as_ref().len();
    let mut at = 0;
    while at < len {
        let Some(room) = room(stream, len - at, patience).await else {
            stream.send_reset(Reason::CANCEL);
            return (at as u64, false);
        };
        let to = at + room;
        if stream.send_data(Piece::Part(Rc::clone(page), at, to), to == len).is_err() {
            return (at as u64, false);
        }
        at = to;
    }
    (at as u64, true)
}

async fn send_bytes<H: AsRef<[u8]>>(stream: &mut SendStream<Piece<H>>, mut data: Bytes, patience: Duration, sent: &mut u64) -> bool {
    while !data.is_empty() {
        let Some(room) = room(stream, data.len(), patience).await else { return false };
        if stream.send_data(Piece::Bytes(data.split_to(room)), false).is_err() {
            return false;
        }
        *sent += room as u64;
    }
    true
}

impl<S: Service> Shared<S> {
    /// Has the service answer, and sends what it says.
    pub(super) async fn answer(
        self: Rc<Self>,
        mut request: Request<RequestBody>,
        sending: Sending<S>,
        started: Instant,
        (expects, left): (bool, Left),
    ) {
        *request.version_mut() = Version::HTTP_2;
        let method = request.method().clone();
        let (parts, body) = request.into_parts();
        let (target, logged) = said(&parts);
        let line = Line::new(method.clone(), Version::HTTP_2, &target, logged);
        let request = Request::from_parts(parts, body);
        let sending = Rc::new(RefCell::new(sending));
        if expects {
            let _ = sending.borrow_mut().send_informational(interim(StatusCode::CONTINUE, &HeaderMap::new()));
        }
        let service = &self.worker.service;
        let answered = {
            let mut answer = pin!(service.call(self.peer, request, started, Some(telling::<S>(&sending))));
            poll_fn(|cx| match answer.as_mut().poll(cx) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => sending.borrow_mut().poll_reset(cx).map(|_| None),
            })
            .await
        };
        let Some((response, note)) = answered else {
            return service.done(&line.exchange(self.peer, 499, 0, started, false), S::Note::default());
        };
        let status = response.status().as_u16();
        let mut sent = 0;
        let complete = self.send(&sending, response, &method, &mut sent).await;
        self.io.answered();
        service.done(&line.exchange(self.peer, status, sent, started, complete), note);
        left.read().await;
    }

    /// Whether the whole response was sent.
    async fn send(&self, sending: &RefCell<Sending<S>>, response: Response<S::Body>, method: &Method, sent: &mut u64) -> bool {
        let patience = self.front.limits.write_timeout;
        let (mut parts, mut body) = response.into_parts();
        without_connection(&mut parts.headers);
        parts.version = Version::HTTP_2;
        parts.extensions.clear();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for it: there is no such thing here (RFC 9113 §8.6).
            sending.borrow_mut().send_reset(Reason::INTERNAL_ERROR);
            return false;
        }
        let no_content = *method == Method::HEAD || parts.status == StatusCode::NO_CONTENT || parts.status == StatusCode::NOT_MODIFIED;
        if let Some(exact) = body.size_hint().exact().filter(|_| !no_content && !parts.headers.contains_key(header::CONTENT_LENGTH)) {
            parts.headers.insert(header::CONTENT_LENGTH, exact.into());
        }
        let length: Option<u64> = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let ends = no_content || body.is_end_stream();
        let stream = sending.borrow_mut().send_response(Response::from_parts(parts, ()), ends);
        let Ok(mut stream) = stream else { return false };
        if ends {
            return true;
        }
        loop {
            let frame = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(Ok(frame)),
                Poll::Pending => stream.poll_reset(cx).map(|_| Err(())),
            });
            let data = match frame.await {
                Err(()) => return false,
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                // The head promised more: a reset tells the client that this is not the end.
                Ok(Some(Err(_))) => {
                    stream.send_reset(Reason::INTERNAL_ERROR);
                    return false;
                }
            };
            if length.is_some_and(|length| *sent + data.len() as u64 > length) {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return false;
            }
            if !send_bytes(&mut stream, data, patience, sent).await {
                stream.send_reset(Reason::CANCEL);
                return false;
            }
        }
        if length.is_some_and(|length| *sent < length) {
            stream.send_reset(Reason::INTERNAL_ERROR);
            return false;
        }
        stream.send_data(Piece::Bytes(Bytes::new()), true).is_ok()
    }
}

fn interim(status: StatusCode, fields: &HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields.clone();
    without_connection(response.headers_mut());
    response
}

/// Passes interim responses on as they come; what is beyond the limit is left out: they are hints.
fn telling<S: Service>(sending: &Rc<RefCell<Sending<S>>>) -> Interim {
    let sending = Rc::clone(sending);
    let left = std::cell::Cell::new(INTERIMS_MAX);
    Rc::new(move |status, fields| {
        if left.get() > 0
            && let Ok(mut sending) = sending.try_borrow_mut()
        {
            left.set(left.get() - 1);
            let _ = sending.send_informational(interim(status, fields));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_head_becomes_fields_without_those_of_the_connection() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: close\r\nAge: 3\r\n";
        let response = head_of(200, text);
        let fields: Vec<(&str, &[u8])> = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let expected: [(&str, &[u8]); 4] = [("content-type", b"text/html"), ("set-cookie", b"a=1"), ("set-cookie", b"b=2"), ("age", b"3")];
        assert_eq!(fields, expected);
    }
}
