//! Who a request is, for whoever reads logs and traces: its id, and its place in a trace.
//!
//! A trusted proxy may have given it both; nobody else is believed. The origin is told of both, in `X-Request-Id`, `traceparent` and
//! `tracestate`, when it is asked: not before, so that they are part of no key and of nothing that a crowd is compared by.
//!
//! Deliberately not here: what becomes of a span. [`Tracing`] has a function for that, which must not wait.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use semantics::{
    FieldLines, RequestId, TraceIds,
    field_name::is_same_variable,
    request_id::REQUEST_ID,
    trace_context::{SpanId, TraceFlags, TraceId, TraceParent, trace_state},
};
use siphasher::sip128::SipHasher13;

use crate::{Client, Note, Pipeline, Shared, admission::IncomingRequest, question::Question};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static(REQUEST_ID);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The number of values that seven bytes can have: by so many a share of traces is told.
const RANDOMNESS: u64 = 1 << 56;

/// The rules by which a worker traces requests.
pub struct Tracing {
    /// Traces whose last seven bytes are a number below this one are recorded.
    recorded_below: u64,
    hits: bool,
    report: Box<dyn Fn(&OriginAsked<'_>)>,
}

impl Tracing {
    /// Makes rules: which share of the traces that begin here is recorded, from 0 to 1; whether plain hits are among them; and what takes the requests
    /// to origins.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "it is between 0 and 2^56")]
    pub fn new(share: f64, hits: bool, report: impl Fn(&OriginAsked<'_>) + 'static) -> Self {
        let recorded_below = (share.clamp(0.0, 1.0) * RANDOMNESS as f64) as u64;
        Self { recorded_below, hits, report: Box::new(report) }
    }

    /// Returns whether plain hits are traced.
    pub(crate) const fn traces_hits(&self) -> bool {
        self.hits
    }

    fn records(&self, trace: TraceId) -> bool {
        trace.randomness() < self.recorded_below
    }
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracing").field("recorded_below", &self.recorded_below).field("hits", &self.hits).finish_non_exhaustive()
    }
}

/// A request to an origin that has ended, for whoever records spans.
#[derive(Debug)]
pub struct OriginAsked<'a> {
    /// The place of the client's request in its trace.
    pub ids: TraceIds,
    /// The span of the request to the origin.
    pub span: SpanId,
    /// Whether the trace begins with this span, as no client has asked for anything.
    pub is_own: bool,
    /// The `tracestate` that the origin was told; empty if there is none.
    pub state: &'a str,
    /// The id of the client's request, or of our own.
    pub id: RequestId,
    /// The number of the site.
    pub site: u16,
    /// The name of the site.
    pub site_name: &'a str,
    /// The path of the part of the site whose origin was asked; `None`: the site's own was.
    pub route: Option<&'a str>,
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// The time at which it was sent, and the time of the head of the response or of the failure.
    pub times: (Instant, Instant),
    /// The status of the response, or the name of the failure.
    pub outcome: Result<u16, &'static str>,
}

/// The identity of a request.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    id: RequestId,
    /// The id as the origin and the client are told it.
    text: HeaderValue,
    trace: Option<Rc<Traced>>,
    /// Whether no client has sent it.
    is_own: bool,
}

/// The place of a request in a trace.
#[derive(Debug)]
struct Traced {
    ids: TraceIds,
    /// The `tracestate` that came with it.
    state: Option<HeaderValue>,
    tracing: Rc<Tracing>,
}

impl Identity {
    fn new(id: RequestId, trace: Option<Rc<Traced>>, is_own: bool) -> Self {
        let text = HeaderValue::from_bytes(id.written().as_bytes()).expect("digits and dashes");
        Self { id, text, trace, is_own }
    }

    /// Makes the identity of a request of our own, which belongs to nobody's trace. What it asks of an origin begins one.
    pub(crate) fn of_our_own(shared: &Shared) -> Self {
        Self::new(shared.ids.request(), None, true)
    }

    /// Makes the identity of another visitor's request in the same trace.
    pub(crate) fn another(&self, shared: &Shared) -> Self {
        Self { trace: self.trace.clone(), ..Self::of_our_own(shared) }
    }

    /// Returns whether no client has sent the request.
    pub(crate) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Returns the id of the request.
    pub(crate) const fn request_id(&self) -> RequestId {
        self.id
    }

    /// Returns the ids of the request in its trace.
    fn trace(&self) -> Option<TraceIds> {
        self.trace.as_ref().map(|traced| traced.ids)
    }

    /// Takes out of a request's fields what its identity was read off, in every spelling that CGI takes for the same name: what is in the identity goes
    /// on, and what a stranger says does not. Without tracing, a trace is nobody's business here, and its fields go on as they came.
    pub(crate) fn withhold(&self, fields: &mut HeaderMap) {
        let is_of_trace = |name: &HeaderName| self.trace.is_some() && (*name == TRACEPARENT || *name == TRACESTATE);
        let is_id = |name: &HeaderName| *name == X_REQUEST_ID || is_same_variable(REQUEST_ID, name.as_str());
        while let Some(name) = fields.keys().find(|name| is_of_trace(name) || is_id(name)).cloned() {
            fields.remove(name);
        }
    }

    /// Puts both into the note.
    pub(crate) fn note(&self, note: &mut Note) {
        (note.id, note.trace) = (Some(self.id), self.trace());
    }

    /// Puts the id into the fields of a response: a reader of an error can name it.
    pub(crate) fn tell_client(&self, fields: &mut HeaderMap) {
        fields.insert(X_REQUEST_ID, self.text.clone());
    }

    /// Puts id and place into the fields of a request to the origin. Returns its place and the span that the origin was told, if there is a trace.
    fn tell_origin(&self, pipeline: &Pipeline, fields: &mut HeaderMap) -> Option<(Rc<Traced>, SpanId)> {
        fields.insert(X_REQUEST_ID, self.text.clone());
        let traced = match &self.trace {
            Some(traced) => Rc::clone(traced),
            None if self.is_own => pipeline.begin_trace()?,
            None => return None,
        };
        let span = pipeline.shared.ids.span();
        fields.insert(TRACEPARENT, ascii(traced.ids.under(span)));
        if let Some(state) = &traced.state {
            fields.insert(TRACESTATE, state.clone());
        }
        Some((traced, span))
    }
}

/// Makes a field's value of what is written in ASCII.
fn ascii(value: impl fmt::Display) -> HeaderValue {
    HeaderValue::from_str(&value.to_string()).expect("digits, letters and dashes")
}

/// Makes the bits of ids: nobody can tell beforehand which come next, and none come twice.
#[derive(Debug)]
pub(crate) struct Ids {
    secret: SipHasher13,
    made: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        let word = |nonce: u64| RandomState::new().hash_one(nonce);
        Self { secret: SipHasher13::new_with_keys(word(0), word(1)), made: AtomicU64::default() }
    }
}

impl Ids {
    fn bits(&self) -> [u8; 16] {
        self.secret.hash(&self.made.fetch_add(1, Relaxed).to_le_bytes()).as_bytes()
    }

    fn request(&self) -> RequestId {
        RequestId::new(self.bits())
    }

    fn span(&self) -> SpanId {
        loop {
            let [a, b, c, d, e, f, g, h, ..] = self.bits();
            if let Some(span) = SpanId::new(u64::from_be_bytes([a, b, c, d, e, f, g, h])) {
                return span;
            }
        }
    }

    fn trace(&self) -> TraceId {
        loop {
            if let Some(trace) = TraceId::new(self.bits()) {
                return trace;
            }
        }
    }
}

impl Pipeline {
    /// Gives a request its identity: what a trusted proxy says, else what is made here.
    pub(crate) fn identify(&self, is_trusted: bool, lines: FieldLines<'_>) -> Identity {
        let shared = &self.shared;
        let said = if is_trusted { RequestId::of(lines) } else { None };
        let id = said.unwrap_or_else(|| shared.ids.request());
        let parent = if is_trusted && self.tracing.borrow().is_some() { TraceParent::of(lines) } else { None };
        let trace = match parent {
            Some(TraceParent { trace, span: parent, flags }) => self.tracing.borrow().as_ref().map(|tracing| {
                let state = trace_state(lines).and_then(|state| HeaderValue::try_from(state).ok());
                let ids = TraceIds { trace, span: shared.ids.span(), parent: Some(parent), flags };
                Rc::new(Traced { ids, state, tracing: Rc::clone(tracing) })
            }),
            None => self.begin_trace(),
        };
        Identity::new(id, trace, false)
    }

    /// Begins a trace, if requests are traced.
    fn begin_trace(&self) -> Option<Rc<Traced>> {
        let tracing = Rc::clone(self.tracing.borrow().as_ref()?);
        let ids = &self.shared.ids;
        let trace = ids.trace();
        let flags = TraceFlags { sampled: tracing.records(trace), random: false };
        Some(Rc::new(Traced { ids: TraceIds { trace, span: ids.span(), parent: None, flags }, state: None, tracing }))
    }
}

/// A request whose answer is waited for. If nobody waits any more, whoever logs that finds with the pipeline what is known of it.
pub(crate) struct RequestGuard<'a> {
    pipeline: &'a Pipeline,
    identity: Identity,
    client: Client,
    site: Option<u16>,
    is_answered: bool,
}

impl<'a> RequestGuard<'a> {
    pub(crate) fn new(pipeline: &'a Pipeline, incoming: &IncomingRequest, site: Option<u16>) -> Self {
        Self { pipeline, identity: incoming.identity.clone(), client: incoming.client, site, is_answered: false }
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Puts into a note who the request is.
    pub(crate) fn note(&self, note: &mut Note) {
        self.identity.note(note);
        (note.client, note.scheme) = (self.client.named(), Some(self.client.scheme));
    }

    /// Ends the wait: there is an answer.
    pub(crate) const fn answered(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let mut known = Note { site: self.site, ..Note::default() };
        self.note(&mut known);
        if let Some(spent) = self.pipeline.spent.take() {
            spent.note(&mut known);
        }
        self.pipeline.left.set(Some(known));
    }
}

/// A request to an origin that is under way, and is recorded when it has ended; also if nobody waits for it any more.
pub(crate) struct TracedRequest<'a> {
    question: &'a Question,
    traced: Option<(Rc<Traced>, SpanId)>,
    /// The method and the target of the request; none if it is not recorded.
    asked: Option<(Method, Uri)>,
    began: Instant,
}

impl<'a> TracedRequest<'a> {
    /// Tells the origin who the request is, and begins to measure.
    pub(crate) fn begin(pipeline: &Pipeline, question: &'a Question, request: &mut http::Request<origins::Body>, began: Instant) -> Self {
        let told = question.identity.tell_origin(pipeline, request.headers_mut());
        let traced = told.filter(|(traced, _)| traced.ids.flags.sampled);
        let asked = traced.as_ref().map(|_| (request.method().clone(), request.uri().clone()));
        Self { question, traced, asked, began }
    }

    /// Records what came of it.
    pub(crate) fn end(mut self, ended: Instant, outcome: Result<u16, &'static str>) {
        self.record(ended, outcome);
    }

    /// Records nothing, as no server was asked.
    pub(crate) fn forget(mut self) {
        self.traced = None;
    }

    fn record(&mut self, ended: Instant, outcome: Result<u16, &'static str>) {
        let (Some((traced, span)), Some((method, uri))) = (self.traced.take(), self.asked.take()) else { return };
        let question = self.question;
        (traced.tracing.report)(&OriginAsked {
            ids: traced.ids,
            span,
            is_own: question.identity.trace.is_none(),
            state: traced.state.as_ref().and_then(|state| state.to_str().ok()).unwrap_or_default(),
            id: question.identity.id,
            site: question.site.id,
            site_name: &question.site.name,
            route: question.site.route.as_ref().map(|route| route.path.as_str()),
            method: &method,
            target: uri.path_and_query().map_or("/", |target| target.as_str()),
            times: (self.began, ended),
            outcome,
        });
    }
}

impl Drop for TracedRequest<'_> {
    fn drop(&mut self) {
        // The clock is read only where somebody wants to know: nearly all have ended, or are not recorded.
        if self.traced.is_some() {
            self.record(Instant::now(), Err("cancelled"));
        }
    }
}
