//! A request that passes: its site's rules want it to go to the origin as it came.

use std::rc::Rc;

use http::{HeaderValue, Request, Response, StatusCode, header};
use policy::{PassRule, purge::WriteSubject};
use semantics::{
    cache_status::{Forwarded, Outcome},
    invalidation::is_safe,
};

use crate::{
    Body, Failure, Pipeline,
    answer::{Answer, Ending, failed_plainly},
    body::storing::StoredAs,
    fence::PendingPurges,
    forward,
    in_vain::Expense,
    learnt::early_hints,
    note::DecidingCookie,
    purge::{
        signal::SaidEverything,
        writes::{SpeaksForItself, Writing},
    },
    question::Question,
};

impl Pipeline {
    /// Passes a request on. What an unsafe method may have changed is purged before its answer is seen (RFC 9111 §4.4).
    pub(crate) async fn pass(self: &Rc<Self>, question: Rc<Question>, body: origins::Body, rule: PassRule) -> Answer {
        let (why, cookie) = (passed_because(rule), rule.cookie().map(DecidingCookie::Carried));
        if let Some(cookie) = cookie {
            self.shared.cookies.passed(question.site.id, cookie.name());
        }
        if rule == PassRule::Direct {
            self.counters.went_direct();
        }
        let fetching = self.shared.store.begin();
        let begun = fetching.begun();
        early_hints::tell(self, &question);
        let policy = &question.site.policy;
        let writing = Writing::of(&question);
        let body = match &writing {
            Some(writing) => writing.overhear(body),
            None => body,
        };
        let written = policy.written(&question.method, question.uri.path());
        let is_read =
            matches!(written, Some(WriteSubject::Post | WriteSubject::Schedule)) || writing.as_ref().is_some_and(Writing::reads_answer);
        let request = if is_read { to_be_read(forward::passed(&question, body)) } else { forward::passed(&question, body) };
        let is_unsafe = !is_safe(&question.method);
        let tells = policy.signal_field().is_some() && is_unsafe;
        let caused = Rc::new(PendingPurges::default());
        let is_written = tells || writing.is_some();
        let must_count = tells || writing.as_ref().is_some_and(|writing| writing.must_count(&question));
        let expense = Expense::of(self, &question, rule.name(), cookie).that_goes_on(must_count);
        let answered = if is_written {
            Box::pin(self.write(&question, request, writing, must_count, &caused)).await
        } else {
            self.ask(&question, request, question.interim.as_ref()).await
        };
        expense.answered();
        // A scheduler that tries again after this one status, and after no other.
        let is_scheduler = written == Some(WriteSubject::Schedule);
        let failed = async |failure: &Failure| {
            caused.known().await;
            failed_plainly(failure, Ending::of(Outcome::Forwarded(why)).by_cookie(cookie))
        };
        let fetched = match answered {
            Ok(fetched) if is_scheduler && is_of_a_gateway(fetched.response.status()) => {
                return failed(&Failure::of_status(fetched.response.status()).to_be_tried_again()).await;
            }
            Ok(fetched) => fetched,
            // Nothing was asked yet, so whoever wrote something may send it again.
            Err(failure) if is_scheduler || (is_unsafe && failure.is_unreachable()) => return failed(&failure.to_be_tried_again()).await,
            Err(failure) => return failed(&failure).await,
        };
        let status = fetched.response.status();
        let now = self.shared.store.generation();
        let posted = self.posted(&question, fetched.head(), fetched.times, begun);
        self.look_for_editor(&question, status, fetched.response.headers());
        let speaks = fetched.response.extensions().get::<SpeaksForItself>().is_some();
        let since = self.invalidate(&question, status, fetched.response.headers(), speaks, now, &caused);
        caused.known().await;
        let ending = Ending::forwarded(why, status).asked_for(rule.name()).took(fetched.took).by_cookie(cookie);
        let (parts, body) = fetched.response.into_parts();
        let (body, is_stored) = match posted.zip(since) {
            Some(((get, kept), begun)) => {
                let stored_as = StoredAs { question: Rc::new(get), status, headers: parts.headers.clone(), kept, begun };
                (stored_as.body(&self.shared, body, fetching), true)
            }
            None if speaks && is_unsafe => (Body::Origin(self.watch(&question, body)), false),
            None if matches!(written, Some(WriteSubject::Post | WriteSubject::Schedule))
                && parts.extensions.get::<SaidEverything>().is_some() =>
            {
                (Body::Origin(self.overhear(&question, body)), false)
            }
            None => (Body::Origin(body), false),
        };
        let ending = if is_stored { ending.stored_unless(None) } else { ending.because(rule.name()) };
        ending.with_coded(&question, Response::from_parts(parts, body))
    }
}

/// Asks for no coding, as the answer is read in passing.
fn to_be_read(mut request: Box<Request<origins::Body>>) -> Box<Request<origins::Body>> {
    request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    request
}

/// Returns whether a proxy between here and the origin says that the origin failed.
pub(crate) const fn is_of_a_gateway(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
}

/// Returns why a request that passes by this rule is forwarded (RFC 9211 §2.2).
pub(crate) const fn passed_because(rule: PassRule) -> Forwarded {
    match rule {
        PassRule::Method => Forwarded::Method,
        PassRule::Upgrade
        | PassRule::Content
        | PassRule::Route
        | PassRule::Direct
        | PassRule::Path(_)
        | PassRule::Parameter(_)
        | PassRule::Field(_)
        | PassRule::Cookie { .. } => Forwarded::Bypass,
    }
}
