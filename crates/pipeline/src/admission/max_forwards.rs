//! The answer to a request that must not go on to another server: `Max-Forwards: 0` with OPTIONS or TRACE (RFC 9110 §7.6.2).

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use policy::Trace;

use crate::{
    Body,
    admission::{FirstStep, IncomingRequest},
};

const MAX_FORWARDS: HeaderName = HeaderName::from_static("max-forwards");

/// Answers such a request in place of its last recipient.
pub(crate) fn answer(incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    if left(&incoming.parts.method, &incoming.parts.headers)? > 0 {
        return None;
    }
    trace.decides(FirstStep::MaxForwards.name(), true, || "the request may not go on to another server".to_owned());
    let mut response = Response::new(Body::empty());
    // What a TRACE would show is not for everybody who can have somebody's browser send one.
    *response.status_mut() = if incoming.parts.method == Method::OPTIONS { StatusCode::NO_CONTENT } else { StatusCode::NOT_IMPLEMENTED };
    Some(response)
}

/// Takes one off the number of servers to which a request may go on, as it goes on to one.
pub(crate) fn count_down(method: &Method, fields: &mut HeaderMap) {
    if let Some(left) = left(method, fields) {
        fields.insert(MAX_FORWARDS, HeaderValue::from(left.saturating_sub(1)));
    }
}

/// Returns to how many servers a request may go on; `None`: to any number. For other methods the field means nothing.
fn left(method: &Method, fields: &HeaderMap) -> Option<u32> {
    if !matches!(*method, Method::OPTIONS | Method::TRACE) {
        return None;
    }
    let digits = fields.get(MAX_FORWARDS)?.to_str().ok()?.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u32::MAX))
}
