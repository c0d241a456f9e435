//! A request that asks the origin for its client alone, as others cannot share the answer.

use std::{rc::Rc, sync::Arc};

use http::{Method, Response, StatusCode};
use policy::NotKept;
use semantics::{
    cache_status::{CacheStatus, Forwarded, Outcome},
    storable::NotStorable,
    validation::{HeadSays, head_says, same_representation},
};
use store::Generation;

use crate::{
    Body, Failure, Note, Pipeline, Stored, answer::forwarded_status, ask::Answer, body::file, coded::in_passing, deliver, forward,
    question::Question,
};

impl Pipeline {
    /// Asks the origin for this client alone. The answer may still be stored.
    pub(crate) async fn alone(
        self: &Rc<Self>,
        question: &Rc<Question>,
        candidate: Option<Arc<Stored>>,
        forwarded: Forwarded,
    ) -> (Response<Body>, Note) {
        let fetching = self.shared.store.begin();
        let begun = fetching.begun();
        let answer = match self.ask(question, forward::alone(question, candidate.as_deref()), question.interim.as_ref()).await {
            Ok(answer) => answer,
            Err(failure) => return self.failed(question, candidate, &failure, forwarded, false).await,
        };
        let took = Some(answer.took);
        let status = answer.response.status();
        if let Some(candidate) = candidate {
            if status == StatusCode::NOT_MODIFIED {
                if !same_representation(&candidate.record.headers(), answer.response.headers()) {
                    return Box::pin(self.alone(question, None, forwarded)).await;
                }
                let confirmed = self.freshened(question, &candidate, &answer, begun).unwrap_or(candidate);
                let (response, note) = self.deliver(question, &confirmed, Outcome::Revalidated, false).await;
                return (response, Note { origin_time: took, ..note });
            }
            if let Some(updated) = self.looked_at(question, &candidate, &answer, begun) {
                let explained = forwarded_status(forwarded, Some(status), true);
                let now = self.shared.clock.now();
                // Of a HEAD, so no file is opened.
                if let Ok(response) = deliver::stored(&updated, &question.method, &question.fields(), &explained, now).await {
                    return (response, Note { origin_time: took, ..Note::of(explained.outcome) });
                }
            }
            if status.is_server_error() && self.stands_in(question, &candidate, answer.response_time) {
                return self.failed(question, Some(candidate), &Failure::of_status(status), forwarded, false).await;
            }
        }
        if file::lies_in_a_file(answer.response.body()) {
            let mut response = file::respond(&question.method, &question.fields(), answer.response);
            policy::remove_dialect(response.headers_mut());
            let explained = CacheStatus { detail: Some("too-large"), ..forwarded_status(forwarded, Some(status), false) };
            deliver::explain(response.headers_mut(), &explained);
            return (response, Note { origin_time: took, ..Note::of(explained.outcome) });
        }
        let times = (answer.request_time, answer.response_time);
        let (parts, body) = answer.response.into_parts();
        let (body, detail) = match self.judge(question, status, &parts.headers, times) {
            Ok(kept) => {
                self.shared.store.unmark_uncacheable(question.hash);
                (self.kept_body(Rc::clone(question), (status, parts.headers.clone()), body, kept, begun, fetching), None)
            }
            Err(NotKept::NotStorable(NotStorable::Partial)) => match self.judge_part(question, &parts.headers, times) {
                Some((question, headers, kept)) => {
                    (self.kept_body(Rc::new(question), (status, headers), body, kept, begun, fetching), None)
                }
                None => (Body::Origin(body), Some(NotStorable::Partial.name())),
            },
            Err(why) => (Body::Origin(body), Some(why.name())),
        };
        let explained = CacheStatus { detail, ..forwarded_status(forwarded, Some(status), detail.is_none()) };
        let mut response = Response::from_parts(parts, body);
        policy::remove_dialect(response.headers_mut());
        deliver::explain(response.headers_mut(), &explained);
        let response = in_passing(question, question.is_personal(), response);
        (response, Note { origin_time: took, ..Note::of(explained.outcome) })
    }

    /// What a 200 to HEAD makes of the stored response to GET (RFC 9111 §4.3.5): the updated one, if it is about that.
    pub(crate) fn looked_at(
        self: &Rc<Self>,
        question: &Rc<Question>,
        candidate: &Arc<Stored>,
        answer: &Answer,
        begun: Generation,
    ) -> Option<Arc<Stored>> {
        if question.method != Method::HEAD || answer.response.status() != StatusCode::OK || candidate.record.status != StatusCode::OK {
            return None;
        }
        match head_says(&candidate.record.headers(), candidate.body.len(), answer.response.headers()) {
            HeadSays::Same => self.freshened(question, candidate, answer, begun),
            HeadSays::Changed => {
                // It is fetched anew behind. Till then it stays what it is: a HEAD alone must not cost the copy that may have to stand in.
                self.refresh(&Rc::new(Question { method: Method::GET, ..(**question).clone() }), candidate);
                None
            }
            HeadSays::Nothing => None,
        }
    }
}
