//! Stored parts: a 206 answers whoever asks for the very same range, and the beginning of a representation saves asking for it again
//! (RFC 9111 §3.3, §3.4).
//!
//! A part is stored beside the whole, under a key of its own, so no request for the whole ever finds one. All parts of a resource are
//! variants under that key, the `Range` that was asked among their fields: so there are never more of them than variants of a page. A part is
//! replayed byte by byte as it came, for the same value of `Range` alone. Cutting a part out of a part, or joining several, would rest on
//! `Content-Range` being right, and origins get it wrong; what is not the beginning of the whole is of no other use here.

use std::{
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::OriginError;
use policy::parts_key;
use semantics::{
    Timestamp,
    cache_control::RequestDirectives,
    combine::{ContentRange, combined, strong_tag, whole_of_beginning},
    range,
    request::has_any,
    reuse::{Reuse, SoftPurge, reuse},
};
use store::Generation;

use crate::{
    Failure, Pipeline, Shared, Stored,
    ask::Fetched,
    body::storing::StoredAs,
    forward,
    keep::{self, ResponseHead},
    question::Question,
};

/// Bytes of the longest `Range` that is remembered.
const RANGE_BYTES_MAX: usize = 64;

/// The stored beginning of a representation of known length.
pub(crate) struct Beginning {
    stored: Arc<Stored>,
    complete_length: u64,
}

/// Finds the stored part that was fetched for the very same range, if it is fresh.
pub(crate) fn part(shared: &Shared, question: &Question, now: Timestamp) -> Option<Arc<Stored>> {
    let asked = range_asked(question)?;
    stored_parts(shared, question, || now, &question.wants.directives).find(|stored| stored.record.part().as_deref() == Some(asked))
}

/// Returns the longest fresh beginning of what a question asks for the whole of.
pub(crate) fn beginning(shared: &Shared, question: &Question) -> Option<Beginning> {
    let beginnings = stored_parts(shared, question, || shared.clock.now(), &RequestDirectives::NONE).filter_map(|stored| {
        let complete_length = whole_of_beginning(&stored.record.headers(), stored.body.len())?;
        let fits = complete_length <= question.site.object_max && stored.body.memory().is_some();
        fits.then_some(Beginning { stored, complete_length })
    });
    beginnings.max_by_key(|beginning| beginning.stored.body.len())
}

fn stored_parts(
    shared: &Shared,
    question: &Question,
    now: impl FnOnce() -> Timestamp,
    directives: &RequestDirectives,
) -> impl Iterator<Item = Arc<Stored>> {
    let store = &shared.store;
    let key = parts_key(&question.key);
    // Hardly any page has parts.
    let Some(resource) = store.get(store.hash(&key), &key) else { return Vec::new().into_iter() };
    let now = now();
    let usable = |stored: &&Arc<Stored>| {
        let record = &stored.record;
        question.is_answered_by(&record.vary)
            && shared.is_current(stored, now)
            && (!question.carries.cookie || record.for_cookies)
            && (!question.carries.authorization || record.for_authorization)
            && reuse(directives, &record.freshness, SoftPurge::None, now) == Reuse::Fresh
    };
    let usable: Vec<_> = resource.variants().iter().filter(usable).cloned().collect();
    usable.into_iter()
}

/// Decides what a 206 is stored as, under a key of its own. Returns `None` if it is not stored.
pub(crate) fn stored_as(shared: &Shared, question: &Question, fetched: &Fetched, begun: Generation) -> Option<StoredAs> {
    let asked = range_asked(question)?;
    let headers = fetched.response.headers();
    ContentRange::of(headers)?;
    // A part has the metadata of the whole (RFC 9110 §15.3.7.1), and is stored if the whole would be.
    let kept = keep::decide(shared, question, ResponseHead { status: StatusCode::OK, headers }, fetched.times).ok()?;
    if !kept.freshness.is_fresh(fetched.times.response) {
        return None;
    }
    let mut headers = headers.clone();
    headers.insert(header::RANGE, HeaderValue::from_bytes(asked).ok()?);
    let key = parts_key(&question.key);
    let question = Rc::new(Question { hash: shared.store.hash(&key), key, ..question.clone() });
    Some(StoredAs { question, status: fetched.response.status(), headers, kept, begun })
}

/// Makes the request for the rest when the beginning is here, if it is the rest of the same.
pub(crate) fn rest(question: &Question, beginning: &Beginning) -> Box<Request<origins::Body>> {
    let mut request = forward::shared(question, None);
    let fields = request.headers_mut();
    fields.insert(header::RANGE, range_from(beginning.stored.body.len()));
    if let Some(tag) = strong_tag(&beginning.stored.record.headers()) {
        fields.insert(header::IF_RANGE, tag.clone());
    }
    request
}

/// Joins the stored beginning and the rest that the origin sent, or asks for the whole once more: a 206 that does not fit, byte by byte and
/// by its strong tag, is thrown away, and so is the beginning, which will not be tried again.
pub(crate) async fn completed(
    pipeline: &Pipeline,
    question: &Question,
    beginning: Beginning,
    mut fetched: Box<Fetched>,
) -> Result<Box<Fetched>, Failure> {
    let shared = &pipeline.shared;
    let status = fetched.response.status();
    if status != StatusCode::PARTIAL_CONTENT && status != StatusCode::RANGE_NOT_SATISFIABLE {
        return Ok(fetched);
    }
    let Beginning { stored, complete_length } = beginning;
    let key = parts_key(&question.key);
    shared.store.remove(shared.store.hash(&key), &key);
    let length = stored.body.len();
    let rest_length = fetched.response.body().size_hint().exact();
    let whole = (status == StatusCode::PARTIAL_CONTENT && rest_length == Some(complete_length - length))
        .then(|| combined(&stored.record.all_headers(), length, complete_length, fetched.response.headers()))
        .flatten();
    let Some(mut headers) = whole else {
        return pipeline.ask(question, forward::shared(question, None), None).await;
    };
    headers.remove(header::RANGE);
    for name in stored.record.omitted() {
        if !fetched.response.headers().contains_key(&name) {
            headers.remove(name);
        }
    }
    *fetched.response.status_mut() = StatusCode::OK;
    *fetched.response.headers_mut() = headers;
    fetched.response = fetched.response.map(|rest| origins::Body::stream(OneAfterOther { first: stored.body.memory().cloned(), rest }));
    Ok(fetched)
}

/// Returns the value of `Range`, if a part may be stored or found by it: a GET with one line that can be read, on no condition that
/// concerns the range.
fn range_asked(question: &Question) -> Option<&[u8]> {
    if !has_any(&question.headers, &[header::RANGE]) {
        return None;
    }
    let mut lines = question.headers.get_all(header::RANGE).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?.as_bytes();
    let sound = question.method == Method::GET
        && only.len() <= RANGE_BYTES_MAX
        && !question.headers.contains_key(header::IF_RANGE)
        && range::parse(only).is_some();
    sound.then_some(only)
}

fn range_from(first: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("bytes={first}-")).expect("digits are a field value")
}

/// Content that consists of the beginning, and then of the rest.
struct OneAfterOther {
    first: Option<Bytes>,
    rest: origins::Body,
}

impl HttpBody for OneAfterOther {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, Bytes::len) as u64;
        self.rest.size_hint().exact().map_or_else(SizeHint::default, |rest| SizeHint::with_exact(first + rest))
    }
}
