//! Asking the origin, and making what it says fit to be passed on.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use origins::{Fault, OfFolder};
use semantics::{Timestamp, date::format_http_date, request::has_any};

use crate::{
    Failure, Interim, Pipeline,
    body::file::lies_in_a_file,
    forward,
    identity::{TracedRequest, X_REQUEST_ID},
    keep::{self, ResponseHead},
    learnt::{
        early_hints,
        not_kept::{self, Cause},
        trouble::Trouble,
    },
    question::Question,
};

/// The times between which an origin made its response: RFC 9111 §4.2.3 reckons the age of the response by them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// The time when the origin was asked.
    pub(crate) request: Timestamp,
    /// The time when the head of its response came.
    pub(crate) response: Timestamp,
}

/// A response of an origin, with its times.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) response: Response<origins::Body>,
    pub(crate) times: Times,
    /// The time from the request to the head of the response.
    pub(crate) took: Duration,
}

impl Fetched {
    pub(crate) fn head(&self) -> ResponseHead<'_> {
        ResponseHead { status: self.response.status(), headers: self.response.headers() }
    }
}

impl Pipeline {
    /// Sends a request to the question's origin.
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep the request twice: as its argument and as the variable")]
    pub(crate) fn ask<'a>(
        &'a self,
        question: &'a Question,
        mut request: Box<Request<origins::Body>>,
        interim: Option<&'a Interim>,
    ) -> impl Future<Output = Result<Box<Fetched>, Failure>> + 'a {
        async move {
            let (began, begun) = (Instant::now(), self.shared.store.generation());
            let request_time = self.shared.clock.at(began);
            question.site.origin_state.tried(request_time);
            let arrival = forward::arrival(question);
            let asking = TracedRequest::begin(self, question, &mut request, began);
            let answered = match interim {
                Some(interim) => {
                    let tell = |status: StatusCode, fields: &HeaderMap| {
                        if status == StatusCode::EARLY_HINTS {
                            early_hints::origin_hinted(&self.shared, question);
                        }
                        (interim.tell())(status, fields);
                    };
                    question.site.origin.fetch(*request, &arrival, Some(&tell)).await
                }
                None => question.site.origin.fetch(*request, &arrival, None).await,
            };
            let ended = Instant::now();
            let took = ended.saturating_duration_since(began);
            let response_time = self.shared.clock.at(ended);
            self.counters.origin_answered(question.site.id, took, answered.is_err());
            match &answered {
                Ok(response) if lies_in_a_file(response.body()) => asking.forget(),
                Ok(response) => asking.end(ended, Ok(response.status().as_u16())),
                Err(error) => asking.end(ended, Err(error.fault.name())),
            }
            match answered {
                Ok(response) => {
                    let times = Times { request: request_time, response: response_time };
                    // It is boxed, as it is handed on through several futures.
                    let mut fetched = Box::write(Box::new_uninit(), Fetched { response, times, took });
                    let response = &mut fetched.response;
                    repair_fields(response, response_time);
                    keep::prepare_for_sharing(&self.shared, question, response, times);
                    let status = response.status();
                    if question.site.policy.speaks_in_fields() {
                        Box::pin(self.obey_fields(question, response, begun)).await;
                    }
                    if status != StatusCode::SWITCHING_PROTOCOLS {
                        question.site.fields.apply(status, response.headers_mut(), question.client.scheme);
                    }
                    question.site.refill.pace.took(response_time.since(request_time));
                    if response.extensions().get::<OfFolder>().is_none() {
                        question.site.origin_state.answered();
                    }
                    Ok(fetched)
                }
                Err(error) => {
                    let is_known = is_unreachable(error.fault) && question.site.origin_state.at(response_time) != Trouble::None;
                    if is_unreachable(error.fault) {
                        question.site.origin_state.failed(response_time, begun, error.fault);
                    } else if is_the_origins(error.fault) {
                        // It took the connection.
                        question.site.origin_state.answered();
                    }
                    // What is known to be down is not reported again for every request.
                    if is_the_origins(error.fault) && !is_known {
                        tracing::warn!(site = %question.site.name, target = &*question.path_to_log(), %error, "the origin did not answer");
                    }
                    let failure = Failure::from(&error);
                    not_kept::remember(&self.shared, question, Cause::Failed(failure.reason()), None, response_time);
                    Err(failure)
                }
            }
        }
    }
}

/// Makes the fields of a response what they should have been: a recipient with a clock adds `Date` (RFC 9110 §6.6.1).
fn repair_fields(response: &mut Response<origins::Body>, now: Timestamp) {
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    let headers = response.headers_mut();
    // It was for this one request, and a stored response is for all. Each client gets its own.
    if has_any(headers, &[X_REQUEST_ID]) {
        headers.remove(X_REQUEST_ID);
    }
    if status == StatusCode::NO_CONTENT {
        // Origins send it although they must not (RFC 9110 §8.6).
        headers.remove(header::CONTENT_LENGTH);
    }
    // It is nearly always there, and among the first.
    if !has_any(headers, &[header::DATE])
        && let Ok(date) = HeaderValue::from_bytes(&format_http_date(now))
    {
        headers.insert(header::DATE, date);
    }
}

/// Returns whether the origin is at fault. It is not when a client broke off its upload, or a queue of ours is full.
pub(crate) const fn is_the_origins(fault: Fault) -> bool {
    !matches!(
        fault,
        Fault::RequestBody
            | Fault::RequestTimeout
            | Fault::RequestTooLarge
            | Fault::RequestHeadTooLarge
            | Fault::Overloaded
            | Fault::Internal
    )
}

/// Returns whether other requests fail as well, as nothing was asked yet that could be the reason.
pub(crate) const fn is_unreachable(fault: Fault) -> bool {
    matches!(fault, Fault::DnsError | Fault::ConnectionRefused | Fault::ConnectionTimeout | Fault::TlsError)
}
