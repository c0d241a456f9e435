//! The end of a request's life: the response, what it says of the cache, and the note for the log.

use std::{rc::Rc, sync::Arc, time::Duration};

use http::{Response, StatusCode};
use semantics::{
    cache_status::{CacheStatus, Forwarded, Outcome},
    coding::AcceptedCodings,
    reuse::Stale,
};

use crate::{
    Body, Class, Failure, Note, Pipeline, Record, Shared, Stored,
    admission::FirstStep,
    coded::{best, in_passing},
    deliver,
    failure::{self, ErrorReason},
    find::AskReason,
    keep::NotStored,
    learnt::dictionaries,
    lookup::OriginRequest,
    note::DecidingCookie,
    question::Question,
    stale,
};

/// The reason why a stale response is served at once: its origin, or its page, failed a moment ago.
const IN_TROUBLE: &str = "in-trouble";

/// The answer to a request, and what is remembered of it. It is boxed, as it is handed back through all the futures that the request has gone into.
pub(crate) type Answer = Box<(Response<Body>, Note)>;

/// The rule by which a request is answered that never gets to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnAnswer {
    /// A step of admission answers it.
    Step(FirstStep),
    /// It orders a purge.
    Purge,
    /// It is a webhook of the site's origin.
    Webhook,
    /// An error page of our own answers it.
    Error(ErrorReason),
}

impl OwnAnswer {
    /// Returns the name of the rule, as the log and the counters have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Step(step) => step.name(),
            Self::Purge => "purge",
            Self::Webhook => "webhook",
            Self::Error(reason) => reason.name(),
        }
    }
}

/// Ends a request that never got to the cache with this response, for the site with this number if it got as far as one.
pub(crate) fn without_cache(response: Response<Body>, rule: OwnAnswer, site: Option<u16>) -> Answer {
    Box::new((response, Note { site, ..Note::ruled(rule) }))
}

/// The account of how a request was answered: its client gets it in `Cache-Status`, the log and the counters get it in a note.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) status: CacheStatus<'static>,
    /// The time from the request to the origin until the head of its response; `None` if the origin was not asked.
    took: Option<Duration>,
    /// The cookie by which the request passed, or for which the response is not stored.
    cookie: Option<DecidingCookie>,
    /// The name of the rule or the failure that decided about the response.
    rule: Option<&'static str>,
    /// The reason why the origin was asked, which counts where no rule decided about the response.
    reason: Option<&'static str>,
    /// The class of the content, where the response may not say it.
    class: Class,
}

impl Ending {
    /// Begins with what the cache did.
    pub(crate) fn of(outcome: Outcome) -> Self {
        let status = CacheStatus::new(outcome);
        let status = match outcome {
            Outcome::Revalidated => CacheStatus { fwd_status: Some(304), stored: true, ..status },
            Outcome::Hit | Outcome::Updating | Outcome::Stale { .. } | Outcome::Forwarded(_) => status,
        };
        // These say what they rest on; who asks the origin adds the rest.
        let reason = match outcome {
            Outcome::Updating => Some(Stale::Expired.name()),
            Outcome::Stale { .. } => Some(IN_TROUBLE),
            Outcome::Hit | Outcome::Revalidated | Outcome::Forwarded(_) => None,
        };
        Self { status, took: None, cookie: None, rule: None, reason, class: Class::default() }
    }

    /// Begins with a response that the origin sent with this status.
    pub(crate) fn forwarded(why: Forwarded, status: StatusCode) -> Self {
        let ending = Self::of(Outcome::Forwarded(why));
        Self { status: CacheStatus { fwd_status: Some(status.as_u16()), ..ending.status }, ..ending }
    }

    /// Adds that the response is stored, or the reason why it is not.
    pub(crate) fn stored_unless(self, refused: Option<NotStored>) -> Self {
        let status = CacheStatus { stored: refused.is_none(), detail: refused.map(NotStored::name), ..self.status };
        let cookie = self.cookie.or_else(|| refused.and_then(NotStored::cookie).map(DecidingCookie::Set));
        Self { status, rule: refused.map(NotStored::rule), cookie, ..self }
    }

    /// Adds the rule or the error that decided.
    pub(crate) fn because(self, rule: &'static str) -> Self {
        Self { status: CacheStatus { detail: Some(rule), ..self.status }, rule: Some(rule), ..self }
    }

    /// Adds the reason why the origin was asked.
    pub(crate) fn asked_for(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// Adds that the response is made of a stored one, or of one that is being stored.
    pub(crate) fn about(self, record: &Record) -> Self {
        Self { class: record.class, ..self }
    }

    /// Adds the cookie by which the request passed.
    pub(crate) fn by_cookie(self, cookie: Option<DecidingCookie>) -> Self {
        Self { cookie, ..self }
    }

    /// Adds whether the request shared another one's way to the origin.
    pub(crate) fn collapsed(self, collapsed: bool) -> Self {
        Self { status: CacheStatus { collapsed, ..self.status }, ..self }
    }

    /// Adds how long the origin took.
    pub(crate) fn took(self, took: Duration) -> Self {
        Self { took: Some(took), ..self }
    }

    /// Ends with a response of our own, which nobody stores.
    pub(crate) fn with(self, mut response: Response<Body>) -> Answer {
        deliver::explain(response.headers_mut(), &self.status);
        self.with_explained(response)
    }

    /// Ends with a response of the origin that goes to this client alone: without what the origin says to caches.
    pub(crate) fn with_origins(self, mut response: Response<Body>) -> Answer {
        policy::remove_dialect(response.headers_mut());
        self.with(response)
    }

    /// Ends with a response of the origin that goes to this client alone, and is coded on its way.
    pub(crate) fn with_coded(self, question: &Question, response: Response<Body>) -> Answer {
        let mut answer = self.with_explained(response);
        let (response, _) = &mut *answer;
        policy::remove_dialect(response.headers_mut());
        deliver::explain(response.headers_mut(), &self.status);
        // A Ghost codes what it makes for members by itself; it was asked for no coding only so that two answers can be compared.
        let personal = question.is_personal() && question.member.is_none();
        in_passing(question, personal, response);
        answer
    }

    /// Ends with a response that says already what the cache did.
    pub(crate) fn with_explained(self, response: Response<Body>) -> Answer {
        Box::write(Box::new_uninit(), (response, self.note()))
    }

    fn note(self) -> Note {
        let Self { status, took: origin_time, cookie, rule, reason, class } = self;
        Note { class, collapsed: status.collapsed, origin_time, rule: rule.or(reason), cookie, ..Note::of(status.outcome) }
    }
}

impl Pipeline {
    /// Answers with what is stored. If that lies in a file that cannot be read, or is packed and cannot be unpacked, it was not stored after all: the
    /// origin is asked.
    pub(crate) async fn deliver(self: &Rc<Self>, question: &Rc<Question>, stored: &Arc<Stored>, ending: Ending) -> Answer {
        let shared = &self.shared;
        let now = shared.clock.now();
        let ending = ending.about(&stored.record);
        want_best_form(shared, question, stored);
        if let Some(response) = dictionaries::update(shared, question, stored, &ending.status, now) {
            return ending.with_explained(response);
        }
        match deliver::stored(shared, stored, question, &ending.status, now).await {
            Ok(response) => ending.with_explained(response),
            Err(error) => {
                tracing::warn!(site = %question.site.name, target = &*question.path_to_log(), %error, "a stored response could not be read, so the origin is asked");
                Box::pin(self.alone(OriginRequest::new(question, None, Forwarded::UriMiss, AskReason::Damaged))).await
            }
        }
    }
}

/// Has a better form made than those that are there, for the next who asks.
fn want_best_form(shared: &Arc<Shared>, question: &Question, stored: &Arc<Stored>) {
    let fields = question.fields();
    if stored.record.codable && !fields.range.is_present() {
        let accepted = AcceptedCodings::of(&fields);
        shared.better_form_is_coming(question.hashed_key(), stored, accepted, best(stored, accepted));
    }
}

/// Answers when the origin failed: with what is stored, if that may stand in, else with a plain page.
pub(crate) async fn failed(shared: &Shared, asking: OriginRequest, failure: &Failure) -> Answer {
    let OriginRequest { question, candidate, forwarded, collapsed, .. } = asking;
    let now = shared.clock.now();
    if let Some(stored) = candidate.filter(|stored| stale::may_stand_in(shared, &question, stored, now)) {
        let ending = Ending::of(Outcome::Stale { forwarded: true }).because(failure.name()).collapsed(collapsed).about(&stored.record);
        if let Ok(response) = deliver::stored(shared, &stored, &question, &ending.status, now).await {
            return ending.with_explained(response);
        }
    }
    failed_plainly(failure, Ending::of(Outcome::Forwarded(forwarded)).collapsed(collapsed))
}

/// Answers with a page that says that the origin failed.
pub(crate) fn failed_plainly(failure: &Failure, ending: Ending) -> Answer {
    ending.because(failure.name()).with(failure.page())
}

/// Answers a request that wants nothing but what is stored (RFC 9111 §5.2.1.7), where nothing is.
pub(crate) fn only_if_cached() -> Answer {
    let mut response = failure::page(StatusCode::GATEWAY_TIMEOUT, ErrorReason::OnlyIfCached);
    // Nothing was forwarded, so there is nothing to retry.
    response.headers_mut().remove(http::header::RETRY_AFTER);
    response.headers_mut().remove("proxy-status");
    Ending::of(Outcome::Forwarded(Forwarded::Miss)).because(ErrorReason::OnlyIfCached.name()).with(response)
}
