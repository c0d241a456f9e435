//! Responses whose content lies in a file: they are not stored, so conditions, ranges and the choice among its forms are answered here.

use http::{HeaderMap, HeaderValue, Method, Response, header, response::Parts};
use origins::{FileBody, FileForms};
use semantics::{
    RequestFields,
    coding::{AcceptedCodings, Coding, CodingSet, evaluate_forms, tag_of, vary_on_accept_encoding},
    conditional::{Precondition, not_modified_fields},
    date::parse_http_date,
    range::Part,
};

use crate::{
    Body,
    deliver::{Source, Validators, cut},
    failure::{self, ErrorReason},
};

/// Returns whether the content of a response lies in a file.
pub(crate) const fn lies_in_a_file(body: &origins::Body) -> bool {
    matches!(body, origins::Body::File(_))
}

/// Makes the response to a request from one whose content lies in a file. Any other passes as it is.
pub(crate) fn respond(method: &Method, fields: &RequestFields<'_>, response: Response<origins::Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let file = match body {
        origins::Body::File(file) => file,
        other => return Response::from_parts(parts, Body::Origin(other)),
    };
    if !parts.status.is_success() {
        return whole_or_part(method, fields, parts, *file);
    }
    let forms = parts.extensions.remove::<FileForms>().map(|forms| forms.0).unwrap_or_default();
    if !forms.is_empty() {
        vary_on_accept_encoding(&mut parts.headers);
    }
    let at_hand = forms.iter().fold(CodingSet::EMPTY, |set, (coding, _)| set.with(*coding));
    let accepted = AcceptedCodings::of(fields);
    let validators = (parts.headers.get(header::ETAG).map(HeaderValue::as_bytes), last_modified(&parts.headers));
    let (precondition, coding) = evaluate_forms(method, fields, validators, accepted.best(at_hand), accepted);
    tag(&mut parts.headers, coding);
    match precondition {
        Precondition::Failed => failure::page(http::StatusCode::PRECONDITION_FAILED, ErrorReason::Precondition),
        Precondition::NotModified => {
            let mut confirmation = Response::new(Body::empty());
            *confirmation.status_mut() = http::StatusCode::NOT_MODIFIED;
            *confirmation.headers_mut() = not_modified_fields(&parts.headers);
            confirmation
        }
        Precondition::Proceed => {
            let form = forms.into_iter().find(|(own, _)| Some(*own) == coding);
            let file = form.map_or(*file, |(coding, region)| {
                parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
                parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(region.range.end - region.range.start));
                FileBody::of_parts(region.file, [Part::Slice(region.range)])
            });
            whole_or_part(method, fields, parts, file)
        }
    }
}

fn whole_or_part(method: &Method, fields: &RequestFields<'_>, parts: Parts, file: FileBody) -> Response<Body> {
    let response = Response::from_parts(parts, Body::empty());
    if *method == Method::HEAD {
        return response;
    }
    let last_modified = last_modified(response.headers());
    let etag = response.headers().get(header::ETAG).cloned();
    cut(response, Validators { etag: etag.as_ref().map(HeaderValue::as_bytes), last_modified }, &Source::File(file), fields)
}

/// Gives the form in this coding its own entity tag (RFC 9110 §8.8.3.3).
fn tag(headers: &mut HeaderMap, coding: Option<Coding>) {
    let tag = headers.get(header::ETAG).map(|etag| tag_of(etag.as_bytes(), coding));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_bytes(&tag).ok()) {
        headers.insert(header::ETAG, tag);
    }
}

fn last_modified(headers: &HeaderMap) -> Option<semantics::Timestamp> {
    headers.get(header::LAST_MODIFIED).and_then(|value| parse_http_date(value.as_bytes()))
}
