//! A request that passes: its site's rules want it to go to the origin as it came.

use std::rc::Rc;

use http::Response;
use policy::PassRule;
use semantics::cache_status::{Forwarded, Outcome};

use crate::{
    Body, Pipeline,
    answer::{Answer, Ending, failed_plainly},
    body::storing::StoredAs,
    in_vain::Expense,
    learnt::early_hints,
    note::DecidingCookie,
    purge::write::Write,
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
        let write = Write::of(&question);
        let request = write.request(body);
        let expense = Expense::of(self, &question, rule.name(), cookie).that_goes_on(write.must_finish_without_client());
        let answered = write.send(self, request).await;
        expense.answered();
        let fetched = match answered {
            Ok(fetched) => fetched,
            Err(failure) => return failed_plainly(&failure, Ending::of(Outcome::Forwarded(why)).by_cookie(cookie)),
        };
        let status = fetched.response.status();
        let now = self.shared.store.generation();
        let posted = self.posted(&question, fetched.head(), fetched.times, begun);
        let since = write.settle(self, &fetched, now).await;
        let ending = Ending::forwarded(why, status).asked_for(rule.name()).took(fetched.took).by_cookie(cookie);
        let (parts, body) = fetched.response.into_parts();
        let (body, ending) = match posted.zip(since) {
            Some(((get, kept), begun)) => {
                let stored_as = StoredAs { question: Rc::new(get), status, headers: parts.headers.clone(), kept, begun };
                (stored_as.body(&self.shared, body, fetching), ending.stored_unless(None))
            }
            None => (Body::Origin(write.watch_answer(self, &parts, body)), ending.because(rule.name())),
        };
        ending.with_coded(&question, Response::from_parts(parts, body))
    }
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
