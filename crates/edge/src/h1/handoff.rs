//! Requests with content, upgrades and expectations: hyper serves the connection from here on, behind the [`Gate`].

use std::{
    cell::RefCell,
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header, uri};
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use super::{
    Connection,
    gate::{Gate, Signals},
};
use crate::{
    request::{
        content::{self, RequestBody},
        log_line::KeptLogLine,
    },
    service::{CLIENT_LEFT, Peer, Service},
    worker::{Terms, Worker},
};

/// The ends of an upgrade: both once the origin has agreed to it, the client's alone if it has declined. hyper gives the connection back either
/// way.
type Tunnel = Rc<RefCell<Option<(OnUpgrade, Option<OnUpgrade>)>>>;

/// The size of hyper's smallest buffer.
const BUFFER_MIN: usize = 8192;

/// Serves the rest of the connection.
pub(super) async fn serve<S: Service>(connection: Connection<S>) {
    let Connection { worker, terms, stream, peer, seat, pending, _share, .. } = connection;
    let signals = Arc::new(Signals::default());
    let tunnel = Tunnel::default();
    let gate = Gate::new(stream, pending, Arc::clone(seat.watch()), Arc::clone(&signals), &terms);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_headers(terms.limits.header_fields.saturating_add(1))
        .max_buf_size(terms.limits.header_bytes.saturating_mul(2).max(BUFFER_MIN));
    let handler = Rc::new(Handler {
        worker: Rc::clone(&worker),
        terms: Rc::clone(&terms),
        peer,
        signals: Arc::clone(&signals),
        tunnel: Rc::clone(&tunnel),
    });
    let service = service_fn(move |request| {
        let handler = Rc::clone(&handler);
        // Here and not in the future: hyper reads on before it first polls that, and the connection would count as idle.
        handler.signals.begin_answer();
        async move { Ok::<_, Infallible>(handler.handle(request).await) }
    });
    let served = builder.serve_connection(gate, service).with_upgrades().await;
    let refused = signals.refused.load(Relaxed);
    if refused != 0 {
        worker.service.refused(peer, refused, "malformed request");
    } else if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
    let ends = tunnel.borrow_mut().take();
    match ends {
        Some((client, Some(origin))) => {
            signals.upgraded.store(true, Relaxed);
            run(client, origin).await;
        }
        Some((client, None)) => {
            if let Ok(client) = client.await {
                let _ = TokioIo::new(client).shutdown().await;
            }
        }
        None => {}
    }
}

/// Carries bytes both ways until both sides are done.
async fn run(client: OnUpgrade, origin: OnUpgrade) {
    let (Ok(client), Ok(origin)) = (client.await, origin.await) else {
        return;
    };
    if let Err(error) = tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(origin)).await {
        tracing::debug!(%error, "upgraded connection ended");
    }
}

struct Handler<S: Service> {
    worker: Rc<Worker<S>>,
    terms: Rc<Terms>,
    peer: Peer,
    signals: Arc<Signals>,
    tunnel: Tunnel,
}

/// The log line of a request for as long as its answer is waited for. If its client leaves first, hyper drops both, and that is told.
struct PendingLogLine<'a, S: Service> {
    handler: &'a Handler<S>,
    line: Option<KeptLogLine>,
    started: Instant,
}

impl<S: Service> PendingLogLine<'_, S> {
    /// Ends the wait: there is an answer.
    fn answered(mut self) -> KeptLogLine {
        self.line.take().expect("it is taken here, once")
    }
}

impl<S: Service> Drop for PendingLogLine<'_, S> {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            let handler = self.handler;
            handler.worker.service.done(&line.exchange(handler.peer, CLIENT_LEFT, 0, self.started, false), &S::Note::default());
        }
    }
}

impl<S: Service> Handler<S> {
    async fn handle(&self, mut request: Request<Incoming>) -> Response<ReportedBody<S>> {
        let started = Instant::now();
        let line = KeptLogLine::of(&request);
        let client_upgrade = request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
        let limits = &self.terms.limits;
        let (mut parts, body) = request.into_parts();
        to_origin_form(&mut parts);
        let content = Content { body, signals: Arc::clone(&self.signals) };
        let body = RequestBody::limited(content::Incoming::Http1(content), limits.body_bytes, limits.body_timeout);
        let waiting = PendingLogLine { handler: self, line: Some(line), started };
        let (mut response, note) = *self.worker.service.call(self.peer, Request::from_parts(parts, body), started, None).await;
        let line = waiting.answered();

        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let origin_upgrade = response.extensions_mut().remove::<OnUpgrade>();
            *self.tunnel.borrow_mut() = client_upgrade.zip(Some(origin_upgrade));
        } else if self.signals.last.load(Relaxed) || self.signals.is_cut_short() || self.worker.table.is_draining() {
            self.signals.last.store(true, Relaxed);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            *self.tunnel.borrow_mut() = client_upgrade.zip(Some(None));
        }
        response.headers_mut().remove(header::TRANSFER_ENCODING);
        let status = response.status().as_u16();
        response.map(|body| ReportedBody {
            body,
            record: Some(Record {
                worker: Rc::clone(&self.worker),
                peer: self.peer,
                signals: Arc::clone(&self.signals),
                line,
                note,
                status,
            }),
            started,
            bytes: 0,
            complete: false,
        })
    }
}

/// A request's content. It tells the connection when nobody wants the rest of it.
#[derive(Debug)]
pub(crate) struct Content {
    body: Incoming,
    signals: Arc<Signals>,
}

impl Content {
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        if !self.body.is_end_stream() {
            self.signals.abandoned.store(true, Relaxed);
        }
    }
}

/// Replaces `Host` by the authority of an absolute-form target (RFC 9112 §3.2.2).
fn to_origin_form(parts: &mut http::request::Parts) {
    let Some(authority) = parts.uri.authority() else { return };
    if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
        parts.headers.insert(header::HOST, host);
    }
    let mut uri = uri::Parts::default();
    uri.path_and_query = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from_parts(uri).unwrap_or_default();
}

/// A response's content on its way out. It reports when it has ended.
struct ReportedBody<S: Service> {
    body: S::Body,
    record: Option<Record<S>>,
    started: Instant,
    bytes: u64,
    complete: bool,
}

struct Record<S: Service> {
    worker: Rc<Worker<S>>,
    peer: Peer,
    signals: Arc<Signals>,
    line: KeptLogLine,
    note: S::Note,
    status: u16,
}

impl<S: Service> Drop for ReportedBody<S> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            record.signals.end_answer();
            let complete = self.complete || self.body.is_end_stream() || record.line.method == http::Method::HEAD;
            let exchange = record.line.exchange(record.peer, record.status, self.bytes, self.started, complete);
            record.worker.service.done(&exchange, &record.note);
        }
    }
}

impl<S: Service> Unpin for ReportedBody<S> {}

impl<S: Service> Body for ReportedBody<S> {
    type Data = Bytes;
    type Error = <S::Body as Body>::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let poll = Pin::new(&mut self.body).poll_frame(cx);
        match &poll {
            Poll::Ready(Some(Ok(frame))) => self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
            Poll::Ready(None) => self.complete = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
