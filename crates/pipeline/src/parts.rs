//! Stored parts: a 206 answers whoever asks for the very same range, and the beginning of a representation saves asking for it again
//! (RFC 9111 §3.3, §3.4).
//!
//! A part is stored beside the whole, under a key of its own, so no request for the whole ever finds one. All parts of a resource are
//! variants under that key, the `Range` that was asked among their fields: so there are never more of them than variants of a page. A part is
//! replayed byte by byte as it came, for the same value of `Range` alone. Cutting a part out of a part, or joining several, would rest on
//! `Content-Range` being right, and origins get it wrong; what is not the beginning of the whole is of no other use here.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::OriginError;
use policy::{Kept, parts_key};
use semantics::{
    Timestamp,
    cache_control::RequestDirectives,
    combine::{ContentRange, combined, strong_tag, whole_of_beginning},
    range,
    reuse::{Reuse, reuse},
};
use store::Purged;

use crate::{Failure, Pipeline, Stored, ask::Answer, forward, question::Question};

/// A longer `Range` is not worth remembering.
const RANGE_BYTES_MAX: usize = 64;

/// The stored beginning of a representation of known length.
pub(crate) struct Beginning {
    stored: Arc<Stored>,
    complete_length: u64,
}

impl Pipeline {
    /// The stored answer to the very same range, if it is fresh.
    pub(crate) fn part(&self, question: &Question, now: Timestamp) -> Option<Arc<Stored>> {
        let asked = range_asked(question)?;
        self.parts(question, now, &question.asks.directives).find(|stored| stored.record.part().as_deref() == Some(asked))
    }

    /// The longest fresh beginning of what a question asks for the whole of.
    pub(crate) fn beginning(&self, question: &Question) -> Option<Beginning> {
        let now = self.shared.clock.now();
        let beginnings = self.parts(question, now, &RequestDirectives::NONE).filter_map(|stored| {
            let complete_length = whole_of_beginning(&stored.record.headers(), stored.body.len())?;
            let fits = complete_length <= question.site.object_max && stored.body.memory().is_some();
            fits.then_some(Beginning { stored, complete_length })
        });
        beginnings.max_by_key(|beginning| beginning.stored.body.len())
    }

    fn parts(&self, question: &Question, now: Timestamp, directives: &RequestDirectives) -> impl Iterator<Item = Arc<Stored>> {
        let store = &self.shared.store;
        let key = parts_key(&question.key);
        let resource = store.get(store.hash(&key), &key);
        let usable = |stored: &&Arc<Stored>| {
            let record = &stored.record;
            record.vary.matches(&question.fields())
                && store.verdict(stored) == Purged::No
                && (!question.asked.cookie || record.for_cookies)
                && (!question.asked.authorization || record.for_authorization)
                && reuse(directives, &record.freshness, false, now) == Reuse::Fresh
        };
        let usable: Vec<_> = resource.iter().flat_map(|resource| resource.variants()).filter(usable).cloned().collect();
        usable.into_iter()
    }

    /// The question under which a 206 is stored, its fields, and how it is kept; `None` if it is not.
    pub(crate) fn judge_part(
        &self,
        question: &Question,
        headers: &HeaderMap,
        times: (Timestamp, Timestamp),
    ) -> Option<(Question, HeaderMap, Kept)> {
        let asked = range_asked(question)?;
        ContentRange::of(headers)?;
        // A part has the metadata of the whole (RFC 9110 §15.3.7.1), and is stored if the whole would be.
        let kept = self.judge(question, StatusCode::OK, headers, times).ok()?;
        if !kept.freshness.is_fresh(times.1) {
            return None;
        }
        let mut headers = headers.clone();
        headers.insert(header::RANGE, HeaderValue::from_bytes(asked).ok()?);
        let key = parts_key(&question.key);
        let hash = self.shared.store.hash(&key);
        Some((Question { key, hash, ..question.clone() }, headers, kept))
    }

    /// What to ask for when the beginning is here: the rest, if it is the rest of the same.
    pub(crate) fn rest(question: &Question, beginning: &Beginning) -> Request<origins::Body> {
        let mut request = forward::shared(question, None);
        let fields = request.headers_mut();
        fields.insert(header::RANGE, range_from(beginning.stored.body.len()));
        if let Some(tag) = strong_tag(&beginning.stored.record.headers()) {
            fields.insert(header::IF_RANGE, tag.clone());
        }
        request
    }

    /// Makes the whole of the beginning and what the origin answered, or asks for it once more: a 206 that does not fit, byte by byte and
    /// by its strong tag, is thrown away, and so is the beginning, which will not be tried again.
    pub(crate) async fn completed(&self, question: &Question, beginning: Beginning, mut answer: Answer) -> Result<Answer, Failure> {
        let status = answer.response.status();
        if status != StatusCode::PARTIAL_CONTENT && status != StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(answer);
        }
        let Beginning { stored, complete_length } = beginning;
        let key = parts_key(&question.key);
        self.shared.store.remove(self.shared.store.hash(&key), &key);
        let length = stored.body.len();
        let rest_length = answer.response.body().size_hint().exact();
        let whole = (status == StatusCode::PARTIAL_CONTENT && rest_length == Some(complete_length - length))
            .then(|| combined(&stored.record.all_headers(), length, complete_length, answer.response.headers()))
            .flatten();
        let Some(mut headers) = whole else {
            return self.ask(question, forward::shared(question, None), None).await;
        };
        headers.remove(header::RANGE);
        for name in stored.record.omitted() {
            if !answer.response.headers().contains_key(&name) {
                headers.remove(name);
            }
        }
        *answer.response.status_mut() = StatusCode::OK;
        *answer.response.headers_mut() = headers;
        answer.response = answer.response.map(|rest| origins::Body::stream(OneAfterOther { first: stored.body.memory().cloned(), rest }));
        Ok(answer)
    }
}

/// The value of `Range`, if a part may be stored or found by it: a GET with one line that can be read, on no condition that concerns the range.
fn range_asked(question: &Question) -> Option<&[u8]> {
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

/// The beginning, and then the rest.
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
