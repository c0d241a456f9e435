//! The end of a request's life: the response, what it says of the cache, and the note for the log.

use std::{rc::Rc, sync::Arc};

use http::{Response, StatusCode};
use semantics::{
    cache_status::{CacheStatus, Forwarded, Outcome},
    coding::Accepted,
};

use crate::{Body, Failure, Note, Pipeline, Stored, coded::best, deliver, question::Question};

impl Pipeline {
    /// Answers with what is stored. If that lies in a file that cannot be read, it was not stored after all: the origin is asked.
    pub(crate) async fn deliver(
        self: &Rc<Self>,
        question: &Rc<Question>,
        stored: &Arc<Stored>,
        outcome: Outcome,
        collapsed: bool,
    ) -> (Response<Body>, Note) {
        let status = CacheStatus { collapsed, ..CacheStatus::new(outcome) };
        let status = match outcome {
            Outcome::Revalidated => CacheStatus { fwd_status: Some(304), stored: true, ..status },
            Outcome::Hit | Outcome::Updating | Outcome::Stale { .. } | Outcome::Forwarded(_) => status,
        };
        let now = self.shared.clock.now();
        self.want_best_form(question, stored);
        if let Some(response) = self.update(question, stored, &status, now) {
            return (response, Note { collapsed, ..Note::of(outcome) });
        }
        match deliver::stored(stored, &question.method, &question.fields(), &status, now).await {
            Ok(response) => (response, Note { collapsed, ..Note::of(outcome) }),
            Err(error) => {
                tracing::warn!(site = %question.site.name, target = %question.target, %error, "the disk tier: a miss instead of a hit");
                Box::pin(self.alone(question, None, Forwarded::UriMiss)).await
            }
        }
    }

    /// What would be a better form than what is there, for the next who asks.
    pub(crate) fn want_best_form(&self, question: &Question, stored: &Arc<Stored>) {
        let fields = question.fields();
        if stored.record.codable && !fields.range.is_present() {
            let accepted = Accepted::of(&fields);
            self.shared.better_form_is_coming((question.hash, &question.key), stored, accepted, best(stored, accepted));
        }
    }

    /// The origin failed: what is stored, if it may stand in, else a plain page.
    pub(crate) async fn failed(
        &self,
        question: &Question,
        candidate: Option<Arc<Stored>>,
        failure: &Failure,
        forwarded: Forwarded,
        collapsed: bool,
    ) -> (Response<Body>, Note) {
        let now = self.shared.clock.now();
        if let Some(stored) = candidate.filter(|stored| self.stands_in(question, stored, now)) {
            let outcome = Outcome::Stale { forwarded: true };
            let status = CacheStatus { detail: Some(failure.name()), collapsed, ..CacheStatus::new(outcome) };
            if let Ok(response) = deliver::stored(&stored, &question.method, &question.fields(), &status, now).await {
                return (response, Note { collapsed, ..Note::of(outcome) });
            }
        }
        self.failed_plainly(failure, forwarded, collapsed)
    }

    pub(crate) fn failed_plainly(&self, failure: &Failure, forwarded: Forwarded, collapsed: bool) -> (Response<Body>, Note) {
        let status = CacheStatus { detail: Some(failure.name()), collapsed, ..CacheStatus::new(Outcome::Forwarded(forwarded)) };
        let mut response = failure.page();
        deliver::explain(response.headers_mut(), &status);
        (response, Note { collapsed, ..Note::of(status.outcome) })
    }
}

pub(crate) fn forwarded_status(forwarded: Forwarded, status: Option<StatusCode>, stored: bool) -> CacheStatus<'static> {
    CacheStatus { fwd_status: status.map(|status| status.as_u16()), stored, ..CacheStatus::new(Outcome::Forwarded(forwarded)) }
}
