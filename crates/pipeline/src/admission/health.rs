//! The answer to a platform that asks whether this server is there: for whatever host, and over plain http as well.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use policy::Trace;

use crate::{
    Body, Router,
    admission::{FirstStep, IncomingRequest},
};

/// Answers a request for the path of health checks.
pub(crate) fn answer(router: &Router, incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    if !router.is_health(incoming.path()) {
        return None;
    }
    trace.decides(FirstStep::Health.name(), true, || "this path only tells that the server is there".to_owned());
    let mut response = Response::new(Body::Full(Bytes::from_static(b"ok\n")));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}
