//! The making of a response from a stored one: whole, a part, a confirmation, or only its head.

use std::{cell::RefCell, collections::VecDeque, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use origins::FileBody;
use semantics::{
    RequestFields, Timestamp,
    cache_status::{CacheStatus, Outcome},
    coding::{AcceptedCodings, Coding, evaluate_forms},
    conditional::{Precondition, evaluate},
    date::parse_http_date,
    decimal,
    freshness::Freshness,
    range::{Part, Ranges, content_range, multipart, multipart_content_type, plan, unsatisfied_range},
};

use store::{Content, OpenBody, Unreadable};

use crate::{
    Body, Record, Shared, Stored,
    body::disk::DiskStream,
    coded::best,
    failure::{self, ErrorReason},
    packed,
    question::Question,
    record::Form,
};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

/// Makes the response that `stored` gives to a request. Waits only for a file to be opened, or content to be unpacked, and fails only if that
/// cannot be.
pub(crate) async fn stored(
    shared: &Shared,
    stored: &Arc<Stored>,
    question: &Question,
    status: &CacheStatus<'static>,
    now: Timestamp,
) -> Result<Response<Body>, Unreadable> {
    let (record, method, fields) = (&stored.record, &question.method, &question.fields());
    // A range is one of the content itself: its forms come and go.
    let chosen = if record.codable && !fields.range.is_present() { best(stored, AcceptedCodings::of(fields)) } else { None };
    let (precondition, coding) = precondition(record, method, fields, chosen);
    let form = Form::of(stored, coding);
    let mut response = match precondition {
        Precondition::NotModified => not_modified(record, coding),
        Precondition::Failed => failure::page(StatusCode::PRECONDITION_FAILED, ErrorReason::Precondition),
        Precondition::Proceed if method == Method::HEAD => whole(record, form, Body::empty()),
        Precondition::Proceed => match (form, coding.and_then(|coding| stored.forms().get(coding as usize))) {
            (Some(form), Some(content)) => whole(record, Some(form), Body::Full(Bytes::clone(content))),
            _ => {
                let unpacked;
                let source = match &stored.body {
                    Content::Memory(bytes) => {
                        stored.forms().read_beside();
                        Source::Memory(bytes)
                    }
                    Content::Packed { .. } => {
                        unpacked = packed::content(shared, question.hashed_key(), stored).await?;
                        Source::Memory(&unpacked)
                    }
                    Content::Disk(body) => Source::Disk(body.open().await?),
                };
                whole_or_part(record, &source, fields)
            }
        },
    };
    with_status(&mut response, record, status, now);
    Ok(response)
}

/// Adds what is not stored: the age, and what the cache did.
pub(crate) fn with_status(response: &mut Response<Body>, record: &Record, status: &CacheStatus<'static>, now: Timestamp) {
    let status = CacheStatus { ttl: ttl(&record.freshness, status.outcome, now), ..*status };
    let headers = response.headers_mut();
    headers.insert(header::AGE, HeaderValue::from(record.freshness.age(now).as_secs()));
    explain(headers, &status);
}

/// Returns the seconds that are left of the lifetime of a stored response that is served with this outcome.
///
/// What is served as stale before its lifetime is over was purged softly: nothing of that lifetime is left, and since when nobody knows
/// (RFC 9211 §2.4).
pub(crate) fn ttl(freshness: &Freshness, outcome: Outcome, now: Timestamp) -> Option<i64> {
    let ttl = freshness.seconds_left(now);
    let is_stale = matches!(outcome, Outcome::Updating | Outcome::Stale { .. });
    Some(ttl).filter(|ttl| !is_stale || *ttl <= 0)
}

/// Content that is ready to be cut.
pub(crate) enum Source<'a> {
    Memory(&'a Bytes),
    Disk(OpenBody),
    File(FileBody),
}

impl Source<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(open) => open.len(),
            Self::File(file) => file.left(),
        }
    }

    fn whole(&self) -> Body {
        match self {
            Self::Memory(bytes) => Body::Full(Bytes::clone(bytes)),
            Self::Disk(open) => Body::Disk(Box::new(DiskStream::of_range(open.clone(), 0..open.len()))),
            Self::File(file) => of_file(file, [Part::Slice(0..file.left())]),
        }
    }

    fn part(&self, range: &std::ops::Range<u64>) -> Body {
        match self {
            Self::Memory(bytes) => Body::Full(slice(bytes, range)),
            Self::Disk(open) => Body::Disk(Box::new(DiskStream::of_range(open.clone(), range.clone()))),
            Self::File(file) => of_file(file, [Part::Slice(range.clone())]),
        }
    }

    fn parts(&self, parts: Vec<Part>) -> Body {
        match self {
            Self::Memory(bytes) => {
                let pieces = parts.into_iter().map(|part| match part {
                    Part::Text(text) => Bytes::from(text),
                    Part::Slice(range) => slice(bytes, &range),
                });
                Body::Pieces(pieces.collect::<VecDeque<_>>())
            }
            Self::Disk(open) => Body::Disk(Box::new(DiskStream::new(open.clone(), parts))),
            Self::File(file) => of_file(file, parts),
        }
    }
}

fn of_file(file: &FileBody, parts: impl IntoIterator<Item = Part>) -> Body {
    Body::Origin(origins::Body::File(Box::new(file.cut(parts))))
}

/// Evaluates the preconditions of a request. They concern representations that would be sent with success (RFC 9110 §13.2.1), in whichever
/// form: `chosen`, unless the client has another one.
pub(crate) fn precondition(
    record: &Record,
    method: &Method,
    fields: &RequestFields<'_>,
    chosen: Option<Coding>,
) -> (Precondition, Option<Coding>) {
    let validators = (record.etag(), record.last_modified);
    if !record.status.is_success() {
        (Precondition::Proceed, chosen)
    } else if record.codable {
        evaluate_forms(method, fields, validators, chosen, AcceptedCodings::of(fields))
    } else {
        (evaluate(method, fields, validators.0, validators.1), None)
    }
}

/// Makes the response to a request whose content is still arriving, with these fields. Its head may confirm what the client has; ranges are not
/// cut out of what is not there yet (RFC 9110 §14.2 lets a server ignore `Range`).
pub(crate) fn growing(
    record: &Record,
    fields: HeaderMap,
    body: store::Reader<crate::Failure>,
    question: &Question,
    status: &CacheStatus<'static>,
) -> Response<Body> {
    let method = &question.method;
    let (precondition, coding) = if question.has_condition_or_range() {
        precondition(record, method, &question.fields(), None)
    } else {
        (Precondition::Proceed, None)
    };
    let mut response = match precondition {
        Precondition::NotModified => not_modified(record, coding),
        Precondition::Failed => failure::page(StatusCode::PRECONDITION_FAILED, ErrorReason::Precondition),
        Precondition::Proceed => {
            let mut response = Response::new(if method == Method::HEAD { Body::empty() } else { Body::Growing(body) });
            *response.status_mut() = record.status;
            *response.headers_mut() = fields;
            response
        }
    };
    // What caches nearer the origin have spent of its lifetime: a response that lost it would live too long in the next cache.
    let age = record.freshness.initial_age.as_secs();
    if age > 0 {
        response.headers_mut().insert(header::AGE, HeaderValue::from(age));
    }
    explain(response.headers_mut(), status);
    response
}

thread_local! {
    /// The last status and the value that it was written as: a site says the same of most of its requests.
    static SAID: RefCell<Option<(CacheStatus<'static>, HeaderValue)>> = const { RefCell::new(None) };
}

/// Says what the cache did: after what caches nearer the origin have said (RFC 9211 §2).
pub(crate) fn explain(headers: &mut HeaderMap, status: &CacheStatus<'static>) {
    let value = SAID.with_borrow_mut(|said| match said {
        Some((of, value)) if of == status => Some(value.clone()),
        Some(_) | None => {
            let mut text = Vec::with_capacity(64);
            status.write(&mut text);
            let value = HeaderValue::from_bytes(&text).ok()?;
            *said = Some((*status, value.clone()));
            Some(value)
        }
    });
    if let Some(value) = value {
        headers.append(CACHE_STATUS, value);
    }
    headers.insert(X_CACHE, HeaderValue::from_static(status.x_cache()));
}

/// Writes the fields of a hit that are not stored, after the stored lines.
pub(crate) fn write_hit_fields(record: &Record, now: Timestamp, out: &mut Vec<u8>) {
    let age = now.since(record.born).as_secs();
    let ttl = record.fresh_until.since(now).as_secs();
    // Room for everything at once, so that each piece is only a copy.
    out.reserve(128);
    out.extend_from_slice(b"age: ");
    decimal::write(age, out);
    out.extend_from_slice(b"\r\ncache-status: seawall; hit; ttl=");
    decimal::write(ttl, out);
    out.extend_from_slice(b"\r\nx-cache: HIT\r\n");
}

fn not_modified(record: &Record, coding: Option<Coding>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    *response.headers_mut() = semantics::conditional::not_modified_fields(&record.headers());
    record.tag_as(coding, response.headers_mut());
    response
}

fn whole(record: &Record, form: Option<Form>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = record.status;
    *response.headers_mut() = record.headers_of(form);
    response
}

fn whole_or_part(record: &Record, content: &Source<'_>, fields: &RequestFields<'_>) -> Response<Body> {
    let validators = Validators { etag: record.etag(), last_modified: record.last_modified };
    cut(whole(record, None, Body::empty()), validators, content, fields)
}

/// The validators of a response (RFC 9110 §8.8).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'a> {
    pub(crate) etag: Option<&'a [u8]>,
    pub(crate) last_modified: Option<Timestamp>,
}

/// Gives a response, of which all but the content is there, what of its content was asked for (RFC 9110 §14.2).
pub(crate) fn cut(
    mut response: Response<Body>,
    validators: Validators<'_>,
    content: &Source<'_>,
    fields: &RequestFields<'_>,
) -> Response<Body> {
    let length = content.len();
    let date = response.headers().get(header::DATE).and_then(|value| parse_http_date(value.as_bytes()));
    let ranges = if fields.range.is_present() && response.status() == StatusCode::OK {
        plan(fields, validators.etag, validators.last_modified, date, length)
    } else {
        Ranges::Whole
    };
    match ranges {
        Ranges::Whole => *response.body_mut() = content.whole(),
        Ranges::One(range) => {
            partial(&mut response, range.end - range.start);
            set(response.headers_mut(), header::CONTENT_RANGE, &content_range(&range, length));
            *response.body_mut() = content.part(&range);
        }
        Ranges::Many(ranges) => {
            let boundary = boundary();
            let content_type = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
            let (parts, total) = multipart(&ranges, content_type, &boundary, length);
            partial(&mut response, total);
            set(response.headers_mut(), header::CONTENT_TYPE, &multipart_content_type(&boundary));
            *response.body_mut() = content.parts(parts);
        }
        Ranges::NotSatisfiable => {
            response = failure::page(StatusCode::RANGE_NOT_SATISFIABLE, ErrorReason::Range);
            set(response.headers_mut(), header::CONTENT_RANGE, &unsatisfied_range(length));
        }
    }
    response
}

fn partial(response: &mut Response<Body>, length: u64) {
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Cuts a range out of a body. The plan lies inside the body; an empty slice would mean that it does not.
fn slice(body: &Bytes, range: &std::ops::Range<u64>) -> Bytes {
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) if start <= end && end <= body.len() => body.slice(start..end),
        _ => Bytes::new(),
    }
}

/// Makes a boundary that is different each time, so that no content can be written to contain it.
fn boundary() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(0_u8);
    format!("seawall-{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use semantics::cache_status::Forwarded;

    use super::*;

    #[test]
    fn what_was_said_last_is_said_of_no_other() {
        let said = |status: &CacheStatus<'static>| {
            let mut headers = HeaderMap::new();
            explain(&mut headers, status);
            [CACHE_STATUS, X_CACHE].map(|name| headers[name].to_str().expect("text").to_owned())
        };
        let hit = CacheStatus::new(Outcome::Hit);
        let miss = CacheStatus { fwd_status: Some(200), ..CacheStatus::new(Outcome::Forwarded(Forwarded::UriMiss)) };
        let gone = CacheStatus { fwd_status: Some(404), ..miss };
        let refused = CacheStatus { detail: Some("private"), ..miss };
        for (status, expected) in [
            (hit, ["seawall; hit", "HIT"]),
            (miss, ["seawall; fwd=uri-miss; fwd-status=200", "MISS"]),
            (miss, ["seawall; fwd=uri-miss; fwd-status=200", "MISS"]),
            (gone, ["seawall; fwd=uri-miss; fwd-status=404", "MISS"]),
            (refused, ["seawall; fwd=uri-miss; fwd-status=200; detail=private", "MISS"]),
            (hit, ["seawall; hit", "HIT"]),
        ] {
            assert_eq!(said(&status), expected);
        }
    }
}
