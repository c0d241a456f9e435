//! Responses that are not hits: framed, written as their content comes.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body::Body;

use super::{Call, Connection, connection_fields, interim::Interims};
#[cfg(target_os = "linux")]
use crate::send_file::{STEP_BYTES, copied, fetch, is_at_hand, poll_send, read_at_hand, try_write_before_more};
use crate::{
    connection::Phase,
    request::log_line::KeptLogLine,
    send_file::FileRegion,
    service::{CLIENT_LEFT, Service},
};

/// The way in which the end of a response is told (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Nothing follows the head.
    None,
    /// `Content-Length`.
    Length,
    /// Chunked.
    Chunked,
    /// The connection's end.
    Close,
}

impl<S: Service> Connection<S> {
    /// Has the service answer and writes its response. `Ok(true)`: the connection goes on.
    pub(super) async fn call(&mut self, call: Box<Call>) -> io::Result<bool> {
        let (keep_alive, started) = (call.keep_alive, call.started);
        self.seat.in_service();
        let interims =
            if call.line.minor_version == 1 { Some(self.interims.take().unwrap_or_else(|| Box::new(Interims::new()))) } else { None };
        let worker = Rc::clone(&self.worker);
        let interim = interims.as_ref().map(|interims| interims.open());
        // The whole is one statement, so that nothing of it takes room in this future while the response is written.
        let Some(mut answer) = ({
            let answer = pin!(worker.service.call(self.peer, call.request, started, interim));
            self.until_gone(answer, interims.as_deref()).await
        }) else {
            self.worker.service.done(&call.line.exchange(self.peer, CLIENT_LEFT, 0, started, false), &S::Note::default());
            return Err(io::ErrorKind::ConnectionAborted.into());
        };
        let (response, note) = &mut *answer;
        let unwritten = interims.as_ref().map(|interims| interims.close()).unwrap_or_default();
        self.interims = interims;
        let status = response.status().as_u16();
        let mut body_bytes = 0;
        let result = self.respond(response, &call.line, keep_alive, unwritten, &mut body_bytes).await;
        self.worker.service.done(&call.line.exchange(self.peer, status, body_bytes, started, result.is_ok()), note);
        self.seat.until(Phase::Idle, self.terms.allowances.idle);
        result
    }

    /// Waits for the service's answer; returns `None` if the client leaves first.
    async fn until_gone<A>(&mut self, mut answer: Pin<&mut impl Future<Output = A>>, interims: Option<&Interims>) -> Option<A> {
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            if let Some(interims) = interims {
                let wrote = interims.write(cx, |cx, bytes| match self.stream.poll_write(cx, &[IoSlice::new(bytes)]) {
                    Poll::Ready(written) => written,
                    Poll::Pending => Ok(0),
                });
                if wrote.is_err() {
                    return Poll::Ready(None);
                }
            }
            self.stream.poll_gone(cx).map(|()| None)
        })
        .await
    }

    async fn respond(
        &mut self,
        response: &mut http::Response<S::Body>,
        line: &KeptLogLine,
        keep_alive: bool,
        mut head: Vec<u8>,
        body_bytes: &mut u64,
    ) -> io::Result<bool> {
        let length = response.headers().get(header::CONTENT_LENGTH);
        let framing = framing(&line.method, response.status(), length.is_some(), response.body(), line.minor_version);
        let mut left = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let keep_alive = keep_alive && framing != Framing::Close && !self.seat.is_draining();
        head.reserve(512);
        let unsaid = length.is_none().then(|| response.body().size_hint().exact().unwrap_or_default());
        write_status_line(&mut head, response.status());
        write_fields(&mut head, response.headers());
        write_framing(&mut head, framing, unsaid);
        head.extend_from_slice(connection_fields(line.minor_version, keep_alive));
        if framing == Framing::None {
            self.write_all(&mut [IoSlice::new(&head)]).await?;
            return Ok(keep_alive);
        }
        let body = response.body_mut();
        let sends_files = framing == Framing::Length && cfg!(target_os = "linux") && self.stream.as_plain_tcp().is_some();
        // The first piece goes out with the head if it is there already; otherwise the head does not wait for it.
        let first = std::future::poll_fn(|cx| match poll_piece::<S>(body, sends_files, cx) {
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(piece) => Poll::Ready(Some(piece)),
        })
        .await;
        let mut next = match first {
            None => {
                self.write_all(&mut [IoSlice::new(&head)]).await?;
                head.clear();
                self.next_piece(body, sends_files).await?
            }
            Some(piece) => piece,
        };
        loop {
            let piece = match next {
                None => break,
                Some(Ok(piece)) => piece,
                Some(Err(error)) => {
                    // The head promised more: only a broken connection tells the client that this is not the end.
                    self.write_all(&mut [IoSlice::new(&head)]).await?;
                    return Err(io::Error::other(error));
                }
            };
            if let Some(left) = &mut left {
                let Some(rest) = left.checked_sub(piece.len()) else {
                    return Err(io::Error::other("more content than Content-Length says"));
                };
                *left = rest;
            }
            match piece {
                Piece::Bytes(data) if data.is_empty() => {}
                Piece::Bytes(data) => {
                    self.write_piece(&head, &data, framing).await?;
                    head.clear();
                    *body_bytes += data.len() as u64;
                }
                Piece::File(region) => {
                    self.send_file(&mut head, region, body_bytes).await?;
                    head.clear();
                }
            }
            if body.is_end_stream() {
                break;
            }
            next = self.next_piece(body, sends_files).await?;
        }
        if left.is_some_and(|left| left > 0) {
            self.write_all(&mut [IoSlice::new(&head)]).await?;
            return Err(io::Error::other("less content than Content-Length says"));
        }
        if framing == Framing::Chunked {
            head.extend_from_slice(b"0\r\n\r\n");
        }
        self.write_all(&mut [IoSlice::new(&head)]).await?;
        Ok(keep_alive)
    }

    async fn next_piece(&mut self, body: &mut S::Body, sends_files: bool) -> io::Result<NextPiece<S>> {
        self.seat.in_service();
        std::future::poll_fn(|cx| {
            if let Poll::Ready(piece) = poll_piece::<S>(body, sends_files, cx) {
                return Poll::Ready(Ok(piece));
            }
            self.stream.poll_gone(cx).map(|()| Err(io::ErrorKind::ConnectionAborted.into()))
        })
        .await
    }

    /// Writes `head`, and then what lies in a file. A file that has become shorter than was promised ends the connection.
    ///
    /// The beginning of the file's bytes leaves with the head (see [`copied`]); the kernel takes the rest from the file itself.
    #[cfg(target_os = "linux")]
    async fn send_file(&mut self, head: &mut Vec<u8>, FileRegion { file, mut range }: FileRegion, body_bytes: &mut u64) -> io::Result<()> {
        let beginning = copied(&range);
        let is_copied = read_at_hand(&file, &beginning, head);
        if is_copied {
            range.start = beginning.end;
        }
        if !head.is_empty() {
            let followed = self.stream.as_plain_tcp().filter(|_| range.start < range.end);
            let written = followed.and_then(|socket| try_write_before_more(socket, head).ok()).unwrap_or(0);
            self.write_all(&mut [IoSlice::new(head.get(written..).unwrap_or_default())]).await?;
        }
        if is_copied {
            *body_bytes += beginning.end - beginning.start;
        }
        let mut first_is_at_hand = is_copied;
        let mut step = range.start..range.start;
        while range.start < range.end {
            if step.is_empty() {
                step.end = range.end.min(range.start + STEP_BYTES);
                if !(first_is_at_hand || is_at_hand(&file, step.start)) || !is_at_hand(&file, step.end - 1) {
                    self.seat.in_service();
                    fetch(&file, step.clone()).await?;
                }
                first_is_at_hand = false;
            }
            self.seat.until(Phase::Write, self.terms.allowances.write);
            let sent = std::future::poll_fn(|cx| match self.stream.as_plain_tcp() {
                Some(socket) => poll_send(socket, cx, &file, &step),
                None => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
            })
            .await?;
            if sent == 0 {
                return Err(io::Error::other("a file ended before its length"));
            }
            range.start += sent;
            step.start = range.start;
            *body_bytes += sent;
            // A client on a fast line could take a whole film without ever making us wait.
            if step.is_empty() && range.start < range.end {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    async fn send_file(&mut self, _: &mut Vec<u8>, _: FileRegion, _: &mut u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn write_piece(&mut self, head: &[u8], data: &Bytes, framing: Framing) -> io::Result<()> {
        if framing == Framing::Chunked {
            let size = format!("{:x}\r\n", data.len());
            self.write_all(&mut [IoSlice::new(head), IoSlice::new(size.as_bytes()), IoSlice::new(data), IoSlice::new(b"\r\n")]).await
        } else {
            self.write_all(&mut [IoSlice::new(head), IoSlice::new(data)]).await
        }
    }
}

/// A piece of content.
enum Piece {
    Bytes(Bytes),
    File(FileRegion),
}

/// `None`: there are no more.
type NextPiece<S> = Option<Result<Piece, <<S as Service>::Body as Body>::Error>>;

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(data) => data.len() as u64,
            Self::File(region) => region.range.end - region.range.start,
        }
    }
}

fn poll_piece<S: Service>(body: &mut S::Body, sends_files: bool, cx: &mut Context<'_>) -> Poll<NextPiece<S>> {
    if sends_files && let Some(region) = S::take_file(body) {
        return Poll::Ready(Some(Ok(Piece::File(region))));
    }
    let frame = ready!(Pin::new(body).poll_frame(cx));
    Poll::Ready(frame.map(|frame| frame.map(|frame| Piece::Bytes(frame.into_data().unwrap_or_default()))))
}

/// Returns how the end of a response is told that has this status, and perhaps says its length itself.
fn framing(method: &Method, status: StatusCode, says_length: bool, body: &impl Body, minor_version: u8) -> Framing {
    if *method == Method::HEAD || status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        Framing::None
    } else if says_length || body.size_hint().exact().is_some() {
        Framing::Length
    } else if minor_version == 1 {
        Framing::Chunked
    } else {
        Framing::Close
    }
}

pub(super) fn write_status_line(head: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(status.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    head.extend_from_slice(b"\r\n");
}

pub(super) fn write_fields(head: &mut Vec<u8>, fields: &HeaderMap) {
    for (name, value) in fields {
        if name == header::CONNECTION || name == header::TRANSFER_ENCODING {
            continue;
        }
        let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
        // Room for the line at once, so that each piece is only a copy.
        head.reserve(name.len() + value.len() + 4);
        head.extend_from_slice(name);
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
}

/// Writes how the end of the response is told. `unsaid` is the length of the content if no field says it.
fn write_framing(head: &mut Vec<u8>, framing: Framing, unsaid: Option<u64>) {
    match (framing, unsaid) {
        (Framing::Length, Some(length)) => head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes()),
        (Framing::Chunked, _) => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        (Framing::Length | Framing::None | Framing::Close, _) => {}
    }
}
