//! A request that asks the origin for its client alone, as others cannot share the answer. The answer may still be stored.

use std::{rc::Rc, sync::Arc};

use http::{Method, Response, StatusCode};
use policy::{KeepTerms, NotKept};
use semantics::{
    cache_status::Outcome,
    storable::NotStorable,
    validation::{HeadSays, head_says, same_representation},
};
use store::Generation;

use crate::{
    Body, Failure, Pipeline, Stored,
    answer::{Answer, Ending, failed},
    ask::Fetched,
    body::{file, storing::StoredAs},
    deliver, forward,
    in_vain::Expense,
    keep::{self, NotStored},
    learnt::{
        not_kept::{self, Cause},
        tier_proof,
    },
    lookup::OriginRequest,
    parts, proof,
    question::Question,
    stale,
};

/// Returns whether an answer with this status says of a page that it is not there any more, or not for this reader without further ado.
fn ends_the_stored(status: StatusCode) -> bool {
    status.is_redirection() || matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE)
}

impl Pipeline {
    /// Asks the origin for this client alone.
    pub(crate) async fn alone(self: &Rc<Self>, asking: OriginRequest) -> Answer {
        let asking = OriginRequest { collapsed: false, ..asking };
        let (shared, question) = (&self.shared, Rc::clone(&asking.question));
        let fetching = shared.store.begin();
        let begun = fetching.begun();
        let request = forward::alone(&question, asking.candidate.as_deref());
        let expense = Expense::of(self, &question, asking.reason.name(), None);
        let answered = self.ask(&question, request, question.interim.as_ref()).await;
        expense.answered();
        let fetched = match answered {
            Ok(fetched) => fetched,
            // What is seldom awaited is boxed: this future is a part of each request's, and its size is a cost.
            Err(failure) => return Box::pin(failed(shared, asking, &failure)).await,
        };
        let status = fetched.response.status();
        if let Some(member) = &question.member {
            tier_proof::confirm(shared, member, status, fetched.response.headers(), fetched.times.response);
        }
        let ending = Ending::forwarded(asking.forwarded, status).asked_for(asking.reason.name()).took(fetched.took);
        let ended = |fetched: &Fetched, terms: Option<&Result<KeepTerms, NotKept>>| {
            keep::end_what_was_stored(shared, &question, fetched.head(), fetched.times, begun, terms);
        };
        if let Some(candidate) = &asking.candidate {
            ended(&fetched, None);
            if status == StatusCode::NOT_MODIFIED {
                if !same_representation(&candidate.record.headers(), fetched.response.headers()) {
                    return Box::pin(self.alone(OriginRequest { candidate: None, ..asking })).await;
                }
                let confirmed =
                    Box::pin(keep::freshened(shared, &question, candidate, &fetched, begun)).await.unwrap_or_else(|| Arc::clone(candidate));
                let ending = Ending::of(Outcome::Revalidated).asked_for(asking.reason.name()).took(fetched.took);
                return Box::pin(self.deliver(&question, &confirmed, ending)).await;
            }
            if let Some(updated) = Box::pin(self.updated_by_head(&question, candidate, &fetched, begun)).await {
                let ending = ending.stored_unless(None).about(&updated.record);
                let now = shared.clock.now();
                // Of a HEAD, so no file is opened.
                if let Ok(response) = Box::pin(deliver::stored(shared, &updated, &question, &ending.status, now)).await {
                    return ending.with_explained(response);
                }
            }
            // The page is gone or needs a password. That holds for all members of the tier, also when the origin goes away.
            if question.member.is_some() && ends_the_stored(status) {
                shared.store.remove(question.hash, &question.key);
            }
            if status.is_server_error() && stale::may_stand_in(shared, &question, candidate, fetched.times.response) {
                return Box::pin(failed(shared, asking, &Failure::of_status(status))).await;
            }
        }
        if file::lies_in_a_file(fetched.response.body()) {
            ended(&fetched, None);
            let response = file::respond(&question.method, &question.fields(), fetched.response);
            return ending.stored_unless(Some(NotStored::TooLarge)).with_origins(response);
        }
        // Nobody else sees what it brings before another visitor was given the same: that is for a shared fetch to find out.
        let unproven = proof::unproven(shared, &question, fetched.head());
        let terms = keep::decide(shared, &question, fetched.head(), fetched.times);
        if asking.candidate.is_none() {
            ended(&fetched, Some(&terms));
        }
        let stored_as = match terms {
            Ok(_) if let Some(unproven) = unproven => {
                not_kept::remember(shared, &question, Cause::NotStored(unproven), Some(status), fetched.times.response);
                Err(unproven)
            }
            Ok(kept) => {
                shared.store.unmark_uncacheable(question.hash);
                Ok(StoredAs { question: Rc::clone(&question), status, headers: fetched.response.headers().clone(), kept, begun })
            }
            Err(why @ NotKept::NotStorable(NotStorable::Partial)) if unproven.is_none() => {
                parts::stored_as(shared, &question, &fetched, begun).ok_or(NotStored::Policy(why))
            }
            Err(why) => Err(NotStored::of(&question, why, fetched.response.headers())),
        };
        let (parts, body) = fetched.response.into_parts();
        // Whether a member's answer is that of the tier is known only when it is whole.
        let refused = stored_as.as_ref().err().copied().or_else(|| question.member.as_ref().map(|_| NotStored::TierUnproven));
        let body = match stored_as {
            Ok(stored_as) => stored_as.body(shared, body, fetching),
            Err(_) => Body::Origin(body),
        };
        ending.stored_unless(refused).with_coded(&question, Response::from_parts(parts, body))
    }

    /// Updates the stored response to GET by a 200 to HEAD (RFC 9111 §4.3.5), if that is about it.
    async fn updated_by_head(
        self: &Rc<Self>,
        question: &Rc<Question>,
        candidate: &Arc<Stored>,
        fetched: &Fetched,
        begun: Generation,
    ) -> Option<Arc<Stored>> {
        let statuses = (fetched.response.status(), candidate.record.status);
        if question.method != Method::HEAD || statuses != (StatusCode::OK, StatusCode::OK) {
            return None;
        }
        match head_says(&candidate.record.headers(), candidate.body.len(), fetched.response.headers()) {
            HeadSays::Same => keep::freshened(&self.shared, question, candidate, fetched, begun).await,
            HeadSays::Changed => {
                // The page is fetched again in the background. Until then the copy stays: a HEAD alone must not cost the copy that may have to stand in.
                stale::refresh(self, &Rc::new(Question { method: Method::GET, ..(**question).clone() }), candidate);
                None
            }
            HeadSays::Nothing => None,
        }
    }
}
