//! The answer to an address that sends too many requests.

use http::{HeaderValue, Response, StatusCode, header};
use policy::Trace;

use crate::{
    Body, Router, Shared,
    admission::{FirstStep, IncomingRequest},
    failure::{self, ErrorReason},
};

/// Counts a request, and answers it if its address has sent too many.
pub(crate) fn answer(shared: &Shared, router: &Router, incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    let limit = router.request_limit()?;
    let (address, now) = (incoming.client.address, shared.clock.now());
    let asked = shared.rates.ask(limit, address, now);
    trace.decides(FirstStep::Requests.name(), asked.is_err(), || {
        let rate = limit.rate;
        format!("one address may send {} requests in a second, and {} at once; this one is not counted", rate.per_second, rate.burst)
    });
    let wait = asked.err()?;
    shared.rates.refused(limit, address, now);
    let mut response = failure::page(StatusCode::TOO_MANY_REQUESTS, ErrorReason::TooManyRequests);
    let seconds = u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    Some(response)
}
