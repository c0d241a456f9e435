//! A request that passes: its site's rules want it to go to the origin as it came.

use std::rc::Rc;

use http::Response;
use semantics::cache_status::{CacheStatus, Forwarded};

use crate::{Body, Note, Pipeline, answer::forwarded_status, coded::in_passing, deliver, forward, question::Question};

impl Pipeline {
    /// Passes a request through. What an unsafe method may have changed is purged before its answer is seen (RFC 9111 §4.4).
    pub(crate) async fn pass(self: &Rc<Self>, question: Rc<Question>, body: origins::Body, rule: &'static str) -> (Response<Body>, Note) {
        let forwarded = passed_because(rule);
        let fetching = self.shared.store.begin();
        let begun = fetching.begun();
        self.tell_hints(&question);
        let answer = match self.ask(&question, forward::passed(&question, body), question.interim.as_ref()).await {
            Ok(answer) => answer,
            Err(failure) => return self.failed_plainly(&failure, forwarded, false),
        };
        let status = answer.response.status();
        let (parts, body) = answer.response.into_parts();
        let now = self.shared.store.generation();
        let posted = self.posted(&question, status, &parts.headers, (answer.request_time, answer.response_time), begun);
        let since = self.invalidate(&question, status, &parts.headers, now);
        let (body, detail) = match posted.zip(since) {
            Some(((get, kept), begun)) => {
                (self.kept_body(Rc::new(get), (status, parts.headers.clone()), body, kept, begun, fetching), None)
            }
            None => (Body::Origin(body), Some(rule)),
        };
        let explained = CacheStatus { detail, ..forwarded_status(forwarded, Some(status), detail.is_none()) };
        let mut response = Response::from_parts(parts, body);
        policy::remove_dialect(response.headers_mut());
        deliver::explain(response.headers_mut(), &explained);
        let response = in_passing(&question, question.is_personal(), response);
        (response, Note { origin_time: Some(answer.took), ..Note::of(explained.outcome) })
    }
}

/// Why a request that passes is forwarded (RFC 9211 §2.2).
pub(crate) fn passed_because(rule: &str) -> Forwarded {
    if rule == "method" { Forwarded::Method } else { Forwarded::Bypass }
}
