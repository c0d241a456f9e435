//! A request that passes: its site's rules want it to go to the origin as it came.

use std::rc::Rc;

use http::Response;
use policy::PassRule;
use semantics::cache_status::{Forwarded, Outcome};

use crate::{
    Body, Pipeline,
    answer::{Answer, Ending, failed_plainly},
    body::storing::StoredAs,
    forward,
    learnt::early_hints,
    question::Question,
};

impl Pipeline {
    /// Passes a request on. What an unsafe method may have changed is purged before its answer is seen (RFC 9111 §4.4).
    pub(crate) async fn pass(self: &Rc<Self>, question: Rc<Question>, body: origins::Body, rule: PassRule) -> Answer {
        let why = passed_because(rule);
        let fetching = self.shared.store.begin();
        let begun = fetching.begun();
        early_hints::tell(self, &question);
        let fetched = match self.ask(&question, forward::passed(&question, body), question.interim.as_ref()).await {
            Ok(fetched) => fetched,
            Err(failure) => return failed_plainly(&failure, Ending::of(Outcome::Forwarded(why))),
        };
        let status = fetched.response.status();
        let now = self.shared.store.generation();
        let posted = self.posted(&question, fetched.head(), fetched.times, begun);
        let since = self.invalidate(&question, status, fetched.response.headers(), now);
        let ending = Ending::forwarded(why, status).took(fetched.took);
        let (parts, body) = fetched.response.into_parts();
        let (body, refused) = match posted.zip(since) {
            Some(((get, kept), begun)) => {
                let stored_as = StoredAs { question: Rc::new(get), status, headers: parts.headers.clone(), kept, begun };
                (stored_as.body(&self.shared, body, fetching), None)
            }
            None => (Body::Origin(body), Some(rule.name())),
        };
        ending.stored_unless(refused).with_coded(&question, Response::from_parts(parts, body))
    }
}

/// Returns why a request that passes by this rule is forwarded (RFC 9211 §2.2).
pub(crate) const fn passed_because(rule: PassRule) -> Forwarded {
    match rule {
        PassRule::Method => Forwarded::Method,
        PassRule::Upgrade
        | PassRule::Content
        | PassRule::Route
        | PassRule::Path(_)
        | PassRule::Parameter(_)
        | PassRule::Field(_)
        | PassRule::Cookie(_) => Forwarded::Bypass,
    }
}
