//! One worker's service: it hands what the edge has read to the pipeline, and adds what only the process knows. It answers nothing itself.

use std::{
    cell::{Cell, RefCell},
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use edge::{Again, CLIENT_LEFT, Exchange, HitOf, Peer, RequestBody, RequestBodyError};
use http::{HeaderValue, Request, Response, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use insight::Insight;
use origins::{Fault, OriginError};
use pipeline::{Body, HitContent, HitFacts, Interim, Note, Pipeline, Sent, Tracing};
use semantics::{RequestHead, Scheme};

use crate::{
    access_log::AccessLog,
    seeing::{facts, sample::Sampler},
    spans::Recorder,
};

/// The service that one worker answers with.
#[derive(Debug)]
pub(crate) struct SiteService {
    pipeline: Rc<Pipeline>,
    log: RefCell<Option<AccessLog>>,
    insight: Arc<Insight>,
    /// The choice of the plain hits of which more is told than that they were.
    sampler: Sampler,
    /// `Alt-Svc`, which every response over https carries and which is never stored: as a line, and as a value.
    alt_svc: RefCell<Option<(Vec<u8>, HeaderValue)>>,
    /// The recorder that makes spans of requests, if they are traced.
    recorder: RefCell<Option<Recorder>>,
    /// The note of the last request whose client has left before there was an answer, and when the request began.
    left: Cell<Option<(Instant, Note)>>,
}

impl SiteService {
    pub(crate) fn new(pipeline: Rc<Pipeline>, log: Option<AccessLog>, insight: Arc<Insight>) -> Self {
        let sampler = Sampler::new(RandomState::new().hash_one(0));
        Self {
            pipeline,
            log: RefCell::new(log),
            insight,
            sampler,
            alt_svc: RefCell::default(),
            recorder: RefCell::default(),
            left: Cell::default(),
        }
    }

    pub(crate) const fn pipeline(&self) -> &Rc<Pipeline> {
        &self.pipeline
    }

    /// Sets what clients are told about where else to come (RFC 7838 §3), in responses that begin after this call. `None`: nothing.
    pub(crate) fn tell_of(&self, alt_svc: Option<HeaderValue>) {
        let line = |value: HeaderValue| ([b"Alt-Svc: ", value.as_bytes(), b"\r\n"].concat(), value);
        *self.alt_svc.borrow_mut() = alt_svc.map(line);
    }

    /// Sets by which rules requests are traced that begin after this call, and what makes spans of those that end. `None`: nothing is traced.
    pub(crate) fn record(&self, recording: Option<(Recorder, Tracing)>) {
        let (recorder, tracing) = recording.unzip();
        *self.recorder.borrow_mut() = recorder;
        self.pipeline.trace(tracing);
    }

    /// Adds `Alt-Svc` to the head of a stored response, over https.
    fn finish_head(&self, peer: Peer, out: &mut Vec<u8>) {
        if let Some((line, _)) = self.alt_svc.borrow().as_ref().filter(|_| peer.scheme == Scheme::Https) {
            out.extend_from_slice(line);
        }
    }

    /// Takes the note of the request that began then, if its client has left before there was an answer.
    fn of_one_who_left(&self, started: Instant) -> Option<Note> {
        self.left.take().filter(|(of, _)| *of == started).map(|(_, note)| note)
    }

    /// Hands on the log lines that have not filled a piece yet, and frees what need not be kept. It is due `per_second` times a second.
    pub(crate) fn tidy(&self, per_second: u32) {
        self.pipeline.sweep();
        self.sampler.pace(per_second);
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log.flush();
        }
    }
}

impl edge::Service for SiteService {
    type Stored = HitContent;
    type Body = Body;
    type Note = Note;
    type HitFacts = HitFacts;

    fn hit(&self, peer: Peer, head: &RequestHead<'_>, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>> {
        let found = self.pipeline.hit(ip(peer), head, started, out)?;
        self.finish_head(peer, out);
        Some(hit(found))
    }

    fn again(&self, peer: Peer, known: &HitFacts, started: Instant, out: &mut Vec<u8>) -> Option<HitOf<Self>> {
        let found = self.pipeline.again(ip(peer), known, started, out)?;
        self.finish_head(peer, out);
        Some(hit(found))
    }

    fn call(
        &self,
        peer: Peer,
        request: Request<RequestBody>,
        started: Instant,
        interim: Option<edge::Interim>,
    ) -> impl Future<Output = Box<(Response<Body>, Note)>> {
        // It is taken in at once, so that the request is not part of the future.
        let (parts, body) = request.into_parts();
        let received = self.pipeline.receive_parts(ip(peer), peer.scheme, parts, content(body), interim.map(Interim::new));
        let leaving = Leaving { service: self, started };
        async move {
            let _leaving = leaving;
            let mut answer = self.pipeline.respond(received).await;
            if let Some((_, value)) = self.alt_svc.borrow().as_ref().filter(|_| peer.scheme == Scheme::Https) {
                let (response, _) = &mut *answer;
                response.headers_mut().insert(header::ALT_SVC, value.clone());
            }
            answer
        }
    }

    fn share(stored: &HitContent) -> Bytes {
        stored.share()
    }

    fn take_file(body: &mut Body) -> Option<edge::FileRegion> {
        body.take_file().map(|region| edge::FileRegion { file: region.file, range: region.range })
    }

    fn done(&self, exchange: &Exchange<'_>, note: &Note) {
        let left = if exchange.status == CLIENT_LEFT { self.of_one_who_left(exchange.started) } else { None };
        let note = left.as_ref().unwrap_or(note);
        let counters = self.pipeline.counters();
        let took = exchange.ended.saturating_duration_since(exchange.started);
        let sent = Sent { status: exchange.status, body_bytes: exchange.body_bytes, took, complete: exchange.complete };
        counters.responded(note, &sent);
        if !facts::is_plain_hit(exchange.status, note) {
            facts::tell(&self.insight, exchange, took, note, self.pipeline.wall_clock(exchange.ended));
        } else if let Some(stands_for) = self.sampler.stands_for() {
            facts::tell_hit(&self.insight, exchange, note, stands_for);
        }
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log.write(exchange, took, note, |at| self.pipeline.wall_clock(at));
        }
        if note.trace.is_some()
            && let Some(recorder) = self.recorder.borrow().as_ref()
        {
            recorder.ended(exchange, note);
        }
    }

    fn refused(&self, peer: Peer, status: u16, reason: &'static str) {
        self.pipeline.counters().refused(status, reason);
        tracing::debug!(peer = ?peer.address, status, reason, "refused");
    }
}

/// Keeps the note of a request when its client has left: the answer, which would have brought it, is dropped.
struct Leaving<'a> {
    service: &'a SiteService,
    started: Instant,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(note) = self.service.pipeline.take_left() {
            self.service.left.set(Some((self.started, note)));
        }
    }
}

fn hit(hit: pipeline::Hit) -> HitOf<SiteService> {
    let again = if hit.rests_on_incidentals { Again::SameHead } else { Again::SameEssentials };
    edge::Hit { status: hit.status.as_u16(), body: hit.content, note: hit.note, known: hit.facts.map(again) }
}

fn ip(peer: Peer) -> Option<IpAddr> {
    peer.address.map(|address| address.ip())
}

/// Makes a client's content an origin's: whatever goes wrong with it is the client's fault.
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
