//! Content codings: stored responses get their coded forms once, in the background; responses that only pass are coded while they are sent.
//!
//! A stored response is sent in the best form that is there. The first is gzip, made as soon as the response is stored for a client that takes a
//! coding; Brotli and Zstandard are made when somebody asks for what would be sent in them. Until then the reader gets what there is. What only
//! scripts ask for that take no coding costs no coder: gzip is made when a first reader wants it, or by the next look at what is stored
//! ([`packed`](crate::packed)).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use semantics::{
    coding::{AcceptedCodings, Coding, CodingSet, has_own_tags, may_be_coded, media_type, vary_on_accept_encoding},
    request::{content_length, has_any},
};

use crate::{
    Body, Record, Shared, Stored,
    body::coded::CodedBody,
    keep::{ContentFacts, ResponseHead},
    packed::content_behind,
    question::{HashedKey, Question},
    record::Form,
};

/// The shortest lifetime, in seconds, of a response that gets forms that take long to make, if it cannot be confirmed.
const SHORT_LIVED_SECS: u64 = 10;

impl Form {
    /// Returns the form of a stored response in this coding, if it is there.
    pub(crate) fn of(stored: &Stored, coding: Option<Coding>) -> Option<Self> {
        let coding = coding?;
        let length = stored.forms().get(coding as usize)?.len() as u64;
        Some(Self { coding, length })
    }
}

/// Chooses the best of the forms of a stored response that are there.
#[inline]
pub(crate) fn best(stored: &Stored, accepted: AcceptedCodings) -> Option<Coding> {
    accepted.best(CodingSet::from_bits(stored.forms().at_hand()))
}

impl Shared {
    /// Has a better form than `chosen` made in the background. Returns whether there is none, or it is being made; otherwise those who make forms are
    /// busy, so ask again.
    #[inline]
    pub(crate) fn better_form_is_coming(
        self: &Arc<Self>,
        key: HashedKey<'_>,
        stored: &Arc<Stored>,
        accepted: AcceptedCodings,
        chosen: Option<Coding>,
    ) -> bool {
        let forms = stored.forms();
        let missing = forms.not_begun();
        if missing == 0 {
            return true;
        }
        let ideal = accepted.best(CodingSet::from_bits(forms.at_hand() | missing));
        let Some(ideal) = ideal.filter(|ideal| chosen != Some(*ideal)) else { return true };
        // Nothing is there yet, as after a restart: what is made at once bridges the time until the best is.
        let bridge = Coding::Gzip;
        if chosen.is_none() && ideal != bridge && accepted.accepts(bridge) && missing & 1 << bridge as u8 != 0 {
            let _ = self.make_form(key, stored, bridge);
        }
        self.make_form(key, stored, ideal)
    }

    /// Has a form made in the background. Returns `false` if too many wait to be made.
    #[cold]
    pub(crate) fn make_form(self: &Arc<Self>, key: HashedKey<'_>, stored: &Arc<Stored>, coding: Coding) -> bool {
        let at_once = coding == Coding::Gzip;
        let form = coding as usize;
        let lies_in_a_file = matches!(stored.body, store::Content::Disk(_));
        if lies_in_a_file || !at_once && is_short_lived(&stored.record) || !stored.forms().begin(form) {
            return true;
        }
        let HashedKey { hash, key } = key;
        let (shared, response, key) = (Arc::downgrade(self), Arc::downgrade(stored), Arc::<[u8]>::from(key));
        let job = move || {
            // What has gone meanwhile is not worth it.
            let content = || {
                let (shared, response) = (shared.upgrade()?, response.upgrade()?);
                shared.store.holds(hash, &key, &response).then(|| content_behind(&response)).flatten()
            };
            let Some(coded) = content().and_then(|content| codings::encode(coding, &content)) else { return };
            if let (Some(shared), Some(response)) = (shared.upgrade(), response.upgrade()) {
                shared.store.add_form(hash, &key, &response, form, Bytes::from(coded));
            }
        };
        let taken = self.workshop.submit(at_once, job).is_ok();
        if !taken {
            stored.forms().withdraw(form);
        }
        taken
    }
}

fn is_short_lived(record: &Record) -> bool {
    let validator = record.etag().is_some() || record.last_modified.is_some();
    !validator && record.fresh_until.since(record.born).as_secs() < SHORT_LIVED_SECS
}

/// Returns whether a stored response with this head may have forms of its content.
pub(crate) fn may_have_forms(question: &Question, head: ResponseHead<'_>, content: ContentFacts) -> bool {
    let (headers, length) = (head.headers, content.length);
    let rules = &question.site.policy.settings().compress;
    question.wants.coded
        && length.is_none_or(|length| length <= policy::COMPRESS_MAX_SIZE)
        && may_be_coded(head.status, headers)
        && (content.has_forms || rules.pays_for(&media_type(headers), length))
}

/// Codes a response on its way to one client: one that is not shared, or the first reader of one that is.
///
/// `personal` tells whether the request says who asks. What may have been coded varies on `Accept-Encoding` in either case.
pub(crate) fn in_passing(question: &Question, personal: bool, response: &mut Response<Body>) {
    let reads = question.method == Method::GET || question.method == Method::HEAD || question.method == Method::POST;
    if !question.wants.coded || !reads || !may_be_coded(response.status(), response.headers()) {
        return;
    }
    let rules = &question.site.policy.settings().compress;
    let media_type = media_type(response.headers());
    let length = content_length(response.headers());
    if !rules.pays_for(&media_type, length) || !rules.may_code_passed(&media_type, personal) {
        return;
    }
    vary_on_accept_encoding(response.headers_mut());
    // Who names no coding gets none.
    if !has_any(&question.headers, &[header::ACCEPT_ENCODING]) {
        return;
    }
    let Some(coding) = AcceptedCodings::of(&question.fields()).best(CodingSet::ALL) else { return };
    let body = std::mem::replace(response.body_mut(), Body::empty());
    match CodedBody::new(coding, body) {
        Ok(body) => {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
            headers.remove(header::CONTENT_LENGTH);
            headers.remove(header::ACCEPT_RANGES);
            weaken(headers);
            if question.method != Method::HEAD {
                *response.body_mut() = Body::Coded(Box::new(body));
            }
        }
        Err((_, body)) => *response.body_mut() = body,
    }
}

/// Makes the entity tag a weak one: coded anew each time, the bytes may differ (RFC 9110 §8.8.1).
pub(crate) fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(header::ETAG).filter(|tag| has_own_tags(tag.as_bytes())) else { return };
    if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
        headers.insert(header::ETAG, weak);
    }
}
