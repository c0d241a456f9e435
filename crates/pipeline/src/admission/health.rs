//! The answer to a platform that asks whether this server is there: for whatever host, and over plain http as well.

use http::{Response, StatusCode};
use policy::Trace;

use crate::{
    Body, Router,
    admission::{FirstStep, IncomingRequest},
    own_response::{TEXT, own_response},
};

/// Answers a request for the path of health checks.
pub(crate) fn answer(router: &Router, incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    if !router.is_health(incoming.path()) {
        return None;
    }
    trace.decides(FirstStep::Health.name(), true, || "this path only tells that the server is there".to_owned());
    Some(own_response(StatusCode::OK, TEXT, "ok\n"))
}
