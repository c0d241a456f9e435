//! Between the front and the pipeline: one worker's service.

use std::{cell::RefCell, net::IpAddr, rc::Rc, time::Instant};

use edge::{Exchange, HitOf, Peer, RequestBody, RequestBodyError};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use origins::{Fault, OriginError};
use pipeline::{Body, Content, Interim, Known, Note, Pipeline};
use semantics::RequestHead;

use crate::access_log::AccessLog;

/// What one worker answers with.
#[derive(Debug)]
pub(crate) struct SiteService {
    pipeline: Rc<Pipeline>,
    log: RefCell<Option<AccessLog>>,
}

impl SiteService {
    pub(crate) fn new(pipeline: Rc<Pipeline>, log: Option<AccessLog>) -> Self {
        Self { pipeline, log: RefCell::new(log) }
    }

    pub(crate) const fn pipeline(&self) -> &Rc<Pipeline> {
        &self.pipeline
    }

    /// What is due several times a second: hands on the log lines that have not filled a piece yet, and frees what need not be kept.
    pub(crate) fn tidy(&self) {
        self.pipeline.sweep();
        if let Some(log) = self.log.borrow_mut().as_mut() {
            self.pipeline.counters().lost(log.flush());
        }
    }
}

impl edge::Service for SiteService {
    type Stored = Content;
    type Body = Body;
    type Note = Note;
    type Known = Known;

    fn hit(&self, peer: Peer, head: &RequestHead<'_>, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>> {
        self.pipeline.hit(ip(peer), head, started, out).map(hit)
    }

    fn again(&self, peer: Peer, known: &Known, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>> {
        self.pipeline.again(ip(peer), known, started, out).map(hit)
    }

    async fn call(
        &self,
        peer: Peer,
        request: Request<RequestBody>,
        _started: Instant,
        interim: Option<edge::Interim>,
    ) -> (Response<Body>, Note) {
        self.pipeline.respond(ip(peer), peer.scheme, request.map(content), interim.map(Interim::new)).await
    }

    fn take_file(body: &mut Body) -> Option<edge::FileRegion> {
        body.take_file().map(|region| edge::FileRegion { file: region.file, range: region.range })
    }

    fn done(&self, exchange: &Exchange<'_>, note: Note) {
        let counters = self.pipeline.counters();
        counters.responded(exchange.status, exchange.body_bytes, note.outcome, note.collapsed, exchange.complete);
        if let Some(coding) = note.coding {
            counters.coded(coding);
        }
        if let Some(log) = self.log.borrow_mut().as_mut() {
            let lost = log.write(exchange, &note, |at| self.pipeline.wall_clock(at));
            if lost > 0 {
                counters.lost(lost);
            }
        }
    }

    fn refused(&self, peer: Peer, status: u16, reason: &'static str) {
        self.pipeline.counters().refused(status);
        tracing::debug!(peer = ?peer.address, status, reason, "refused");
    }
}

fn hit(hit: pipeline::Hit) -> HitOf<SiteService> {
    edge::Hit { status: hit.status.as_u16(), body: hit.content, note: hit.note, known: hit.known }
}

fn ip(peer: Peer) -> Option<IpAddr> {
    peer.address.map(|address| address.ip())
}

/// A client's content as an origin's: whatever goes wrong with it is the client's fault.
fn content(body: RequestBody) -> origins::Body {
    if body.is_end_stream() {
        return origins::Body::Empty;
    }
    origins::Body::stream(body.map_err(|error| {
        let fault = match error {
            RequestBodyError::TooLarge => Fault::RequestTooLarge,
            RequestBodyError::Timeout => Fault::RequestTimeout,
            RequestBodyError::Broken(_) => Fault::RequestBody,
        };
        OriginError::new(fault, "reading the request's content").because(error)
    }))
}
