//! Asking the origin, and making what it says fit to be passed on.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use origins::Fault;
use policy::{Kept, NotKept, Seen};
use semantics::{Timestamp, coding::vary_on_accept_encoding, date::format_http_date, storable::may_be_brought_on, vary::Vary};

use crate::{
    Failure, Interim, Pipeline, Record,
    coded::may_have_forms,
    forward,
    learnt::dictionaries::{AVAILABLE_DICTIONARY, offer},
    learnt::refusals::Refusal,
    learnt::trouble::Trouble,
    question::Question,
};

/// After a purge: how long a "not found" is not believed.
const JUST_PURGED: Duration = Duration::from_secs(5);

/// An origin's answer and its times.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<origins::Body>,
    pub(crate) request_time: Timestamp,
    pub(crate) response_time: Timestamp,
    /// From the request to the response's head.
    pub(crate) took: Duration,
}

impl Pipeline {
    /// Sends a request to the question's origin.
    pub(crate) async fn ask(
        &self,
        question: &Question,
        request: Request<origins::Body>,
        interim: Option<&Interim>,
    ) -> Result<Answer, Failure> {
        let began = Instant::now();
        let request_time = self.shared.clock.at(began);
        question.site.down.tried(request_time);
        let arrival = forward::arrival(question);
        let answered = match interim {
            Some(interim) => {
                let tell = |status: StatusCode, fields: &HeaderMap| {
                    if status == StatusCode::EARLY_HINTS {
                        self.origin_hinted(question);
                    }
                    (interim.tell())(status, fields);
                };
                question.site.origin.fetch(request, &arrival, Some(&tell)).await
            }
            None => question.site.origin.fetch(request, &arrival, None).await,
        };
        let ended = Instant::now();
        let took = ended.saturating_duration_since(began);
        let response_time = self.shared.clock.at(ended);
        self.counters.origin_answered(question.site.id, took, answered.is_err());
        match answered {
            Ok(mut response) => {
                tidy(&mut response, response_time);
                let status = response.status();
                if status != StatusCode::SWITCHING_PROTOCOLS {
                    question.site.fields.apply(status, response.headers_mut(), question.client.scheme);
                }
                question.site.refill.pace.took(response_time.since(request_time));
                question.site.down.answered();
                Ok(Answer { response, request_time, response_time, took })
            }
            Err(error) => {
                let is_known = is_unreachable(error.fault) && question.site.down.at(response_time) != Trouble::None;
                if is_unreachable(error.fault) {
                    question.site.down.failed(response_time);
                } else if is_the_origins(error.fault) {
                    // It took the connection.
                    question.site.down.answered();
                }
                // What is known to be down is not reported again for every request.
                if is_the_origins(error.fault) && !is_known {
                    tracing::warn!(site = %question.site.name, target = %question.target, %error, "the origin did not answer");
                }
                let failure = Failure::from(&error);
                self.refused(question, failure.name(), None, response_time);
                Err(failure)
            }
        }
    }

    /// Remembers, for whoever asks why, that nothing came of a lookup.
    pub(crate) fn refused(&self, question: &Question, reason: &'static str, status: Option<StatusCode>, at: Timestamp) {
        // A request that passes has no key.
        if !question.key.is_empty() {
            self.shared.refusals.note(question.hash, Refusal { reason, status: status.map(|status| status.as_u16()), at });
        }
    }

    /// Whether, and how, an answer with these fields is kept.
    pub(crate) fn judge(
        &self,
        question: &Question,
        status: StatusCode,
        headers: &HeaderMap,
        (request_time, response_time): (Timestamp, Timestamp),
    ) -> Result<Kept, NotKept> {
        let kept = question.site.policy.keep(&Seen {
            method: &question.method,
            authority: &question.authority,
            target: &question.target,
            asked: question.asked,
            request: &question.asks.directives,
            status,
            headers,
            request_time,
            response_time,
            just_purged: response_time.since(self.shared.purged_at()) < JUST_PURGED && self.shared.purged_at() != Timestamp::default(),
        });
        match &kept {
            Ok(_) => self.shared.refusals.forget(question.hash),
            Err(why) => self.refused(question, why.name(), Some(status), response_time),
        }
        kept
    }

    /// The record of an answer that is kept, and its place among the purges; `ready`: forms of its content are at hand.
    pub(crate) fn record(
        &self,
        question: &Question,
        (status, headers): (StatusCode, &HeaderMap),
        (length, ready): (Option<u64>, bool),
        mut kept: Kept,
    ) -> (Record, store::Scope) {
        let tags = std::mem::take(&mut kept.tags).into_boxed_slice();
        let parts = policy::KeyParts::of(&question.key);
        let url = question.key.get(parts.url_start..parts.url_end).unwrap_or_default().into();
        let mut vary = Vary::of(headers, &question.fields());
        // Without a coding it is for everybody: the others get forms of it.
        if question.asks.coded && !headers.contains_key(header::CONTENT_ENCODING) {
            vary = vary.without(&header::ACCEPT_ENCODING).without(&AVAILABLE_DICTIONARY);
        }
        let codable = may_have_forms(question, (status, headers), length, ready);
        let mut headers = std::borrow::Cow::Borrowed(headers);
        if codable {
            vary_on_accept_encoding(headers.to_mut());
            if question.site.policy.settings().compress.dictionaries && status == StatusCode::OK {
                offer(question.uri.path(), headers.to_mut());
            }
        }
        let mut record = Record::new(status, &headers, length, kept, vary);
        record.codable = codable;
        record.only_for = may_be_brought_on(status).then(|| self.likeness(question));
        (record, store::Scope { site: question.site.id, url, tags })
    }
}

/// What a recipient with a clock must add (RFC 9110 §6.6.1).
fn tidy(response: &mut Response<origins::Body>, now: Timestamp) {
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    let headers = response.headers_mut();
    if status == StatusCode::NO_CONTENT {
        // Origins send it although they must not (RFC 9110 §8.6).
        headers.remove(header::CONTENT_LENGTH);
    }
    if !headers.contains_key(header::DATE)
        && let Ok(date) = HeaderValue::from_bytes(&format_http_date(now))
    {
        headers.insert(header::DATE, date);
    }
}

/// A client that broke off its upload, or a queue of ours that is full, is not the origin's failure.
const fn is_the_origins(fault: Fault) -> bool {
    !matches!(fault, Fault::RequestBody | Fault::RequestTimeout | Fault::RequestTooLarge | Fault::Overloaded | Fault::Internal)
}

/// Whether other requests fail as well: nothing was asked yet that could be the reason.
pub(crate) const fn is_unreachable(fault: Fault) -> bool {
    matches!(fault, Fault::DnsError | Fault::ConnectionRefused | Fault::ConnectionTimeout | Fault::TlsError)
}
