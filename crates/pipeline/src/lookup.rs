//! A request that asks the cache, and the origin once for all who ask the same.

use std::{ops::ControlFlow, pin::pin, rc::Rc, sync::Arc};

use futures_util::future::{Either, select};
use http::{HeaderValue, Method, Response, StatusCode, header};
use semantics::{
    cache_status::{Forwarded, Outcome},
    conditional::{Precondition, evaluate},
    request::has_any,
};
use store::{Follow, Joined, Lead};

use crate::{
    Body, Failure, Pipeline, Record, Stored,
    answer::{Answer, Ending, failed, only_if_cached},
    ask::Fetched,
    body::file,
    coded::in_passing,
    collapse::{
        FollowOutcome, LOOK, RequestFingerprint, SecondFetchPermit, flight_of, flight_of_fingerprint, followed, in_time, variant_flight,
    },
    deliver,
    fetch::{FetchOutcome, Grows},
    find::{AskReason, LookupResult, find, find_in_memory, is_for},
    keep::NotStored,
    learnt::early_hints,
    next::{Next, next},
    question::Question,
    stale,
};

/// The number of fetches that a request joins without an answer for it, before it goes alone.
const ATTEMPTS: usize = 4;

/// The rule by which a request is answered with a page that another machine has fetched.
const TIER: &str = "tier";

/// A request that the cache cannot answer, on its way to the origin.
pub(crate) struct OriginRequest {
    pub(crate) question: Rc<Question>,
    /// The stored response that may be confirmed, or stand in.
    pub(crate) candidate: Option<Arc<Stored>>,
    /// The reason why the origin is asked, in the words of RFC 9211 §2.2.
    pub(crate) forwarded: Forwarded,
    pub(crate) reason: AskReason,
    /// Whether it has followed another request's fetch.
    pub(crate) collapsed: bool,
}

impl OriginRequest {
    pub(crate) fn new(question: &Rc<Question>, candidate: Option<Arc<Stored>>, forwarded: Forwarded, reason: AskReason) -> Self {
        Self { question: Rc::clone(question), candidate, forwarded, reason, collapsed: false }
    }

    fn ending(&self, status: StatusCode) -> Ending {
        Ending::forwarded(self.forwarded, status).asked_for(self.reason.name())
    }
}

/// What a request has learnt from the fetches that it has followed.
#[derive(Default)]
struct FollowedFetches {
    /// Whether there was one.
    any: bool,
    /// The flight of the variant that it wants, as the last answer was another variant.
    of_variant: Option<Vec<u8>>,
    /// The last error that another request may have brought on itself.
    leaders_error: Option<Failure>,
}

impl Pipeline {
    /// Answers from the cache, or from the origin, which is asked once for all who ask the same.
    pub(crate) async fn look_up(self: &Rc<Self>, question: Rc<Question>) -> Answer {
        let shared = &self.shared;
        if question.is_shareable() {
            shared.popularity.looked_up(question.hash, &question.key);
        }
        let mut learnt = FollowedFetches::default();
        for attempt in 0..=ATTEMPTS {
            let (found, now) = find(shared, &question).await;
            let (candidate, forwarded, reason, together) = match next(shared, &question, found, now) {
                Next::Deliver(stored, outcome) => {
                    if matches!(outcome, Outcome::Stale { .. } | Outcome::Updating) {
                        stale::refresh(self, &question, &stored);
                    }
                    // What is larger than most futures of most requests is boxed: the size of this one is a cost.
                    return Box::pin(self.deliver(&question, &stored, Ending::of(outcome).collapsed(learnt.any))).await;
                }
                Next::OnlyIfCached => return only_if_cached(),
                Next::Ask { candidate, forwarded, reason, together } => (candidate, forwarded, reason, together),
            };
            if attempt == 0 {
                early_hints::tell(self, &question);
            }
            let asking = OriginRequest { collapsed: learnt.any, ..OriginRequest::new(&question, candidate, forwarded, reason) };
            let Some(fetched) = together else { return self.alone(asking).await };
            // Whoever still has nothing but others' errors asks for those who say the same: no number of others decides what they get.
            let is_last = attempt == ATTEMPTS;
            let leaders_error = learnt.leaders_error.take_if(|_| is_last);
            let flight = match &leaders_error {
                Some(_) => {
                    flight_of_fingerprint(&question.key, RequestFingerprint::of_shared(shared, &fetched, asking.candidate.as_deref()))
                }
                None if is_last => break,
                None => learnt.of_variant.take().unwrap_or_else(|| flight_of(&shared.store, &question)),
            };
            let joined = match shared.store.join_for(shared.store.hash(&flight), &flight, question.url(), shared.fence.moment(now)) {
                Joined::Full => ControlFlow::Break(self.alone(asking).await),
                // An earlier flight may have landed between looking and joining.
                Joined::Lead(_) if matches!(find_in_memory(shared, &question, now), LookupResult::Fresh(_)) => ControlFlow::Continue(()),
                Joined::Lead(lead) => ControlFlow::Break(self.lead(asking, fetched, lead, leaders_error).await),
                Joined::Follow(follow) => Box::pin(self.follow(asking, &fetched, follow, &mut learnt)).await,
            };
            if let ControlFlow::Break(answer) = joined {
                return answer;
            }
        }
        self.alone(OriginRequest::new(&question, None, Forwarded::Miss, AskReason::Cold)).await
    }

    /// Begins the fetch that others follow. If `leaders_error` is set, the fetch is only for requests that say the same to the origin, and needs a permit:
    /// without one, the request is answered with that error.
    async fn lead(
        self: &Rc<Self>,
        asking: OriginRequest,
        fetched: Rc<Question>,
        lead: Lead<Record, Failure>,
        leaders_error: Option<Failure>,
    ) -> Answer {
        let _permit = match leaders_error {
            Some(failure) => match SecondFetchPermit::of(&asking.question.site) {
                Some(permit) => Some(permit),
                None => return Box::pin(failed(&self.shared, asking, &failure)).await,
            },
            None => None,
        };
        let begun = lead.begun();
        let told = self.begin_fetch(fetched, lead, asking.candidate.clone(), Some(asking.reason), asking.question.interim.clone());
        match in_time(&self.shared, &asking, told, begun).await {
            Some(outcome) => self.answer_leader(asking, outcome).await,
            None => Box::pin(failed(&self.shared, asking, &Failure::late())).await,
        }
    }

    /// Asks the origin alone beside a proof, unless the page is proven and stored before the answer comes: an origin that has stopped answering
    /// keeps nobody from it.
    async fn alone_or_proven(self: &Rc<Self>, asking: OriginRequest) -> Answer {
        let (shared, question) = (&self.shared, Rc::clone(&asking.question));
        let proven = async {
            loop {
                tokio::time::sleep(LOOK).await;
                if let LookupResult::Fresh(stored) = find_in_memory(shared, &question, shared.clock.now()) {
                    return stored;
                }
            }
        };
        match select(pin!(self.alone(asking)), pin!(proven)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((stored, _)) => self.deliver(&question, &stored, Ending::of(Outcome::Hit).collapsed(true)).await,
        }
    }

    /// Follows another request's fetch. Goes on if its outcome is not for this request: then the next attempt knows more.
    async fn follow(
        self: &Rc<Self>,
        mut asking: OriginRequest,
        fetched: &Rc<Question>,
        follow: Follow<Record, Failure>,
        learnt: &mut FollowedFetches,
    ) -> ControlFlow<Answer> {
        (asking.collapsed, learnt.any) = (true, true);
        let (shared, question) = (&self.shared, Rc::clone(&asking.question));
        let outcome = match followed(self, &asking, fetched, follow).await {
            FollowOutcome::By(outcome) => outcome,
            FollowOutcome::SecondFetch(outcome) => return ControlFlow::Break(self.answer_leader(asking, outcome).await),
            FollowOutcome::Unproven(_place) => return ControlFlow::Break(Box::pin(self.alone_or_proven(asking)).await),
            FollowOutcome::Late => return ControlFlow::Break(failed(shared, asking, &Failure::late()).await),
        };
        let answer = match outcome {
            store::Outcome::Serve { record, body } if is_for(shared, &question, &record) => {
                let ending = asking.ending(record.status).stored_unless(None).collapsed(true).about(&record);
                ending.with_explained(deliver::growing(&record, record.headers(), body, &question, &ending.status))
            }
            store::Outcome::Stored(stored) if is_for(shared, &question, &stored.record) => {
                self.deliver(&question, &stored, Ending::of(Outcome::Revalidated).asked_for(asking.reason.name()).collapsed(true)).await
            }
            store::Outcome::Fetched(stored) if is_for(shared, &question, &stored.record) => {
                let ending = asking.ending(stored.record.status).stored_unless(None).collapsed(true);
                self.deliver(&question, &stored, ending).await
            }
            store::Outcome::Uncacheable => self.alone(asking).await,
            // An error that the leader may have brought on itself.
            store::Outcome::Serve { record, .. } if record.only_for.is_some() => {
                learnt.leaders_error = Some(Failure::of_status(record.status));
                return ControlFlow::Continue(());
            }
            // It may be the leader's own affair. Then one of those who say something else leads.
            store::Outcome::Failed(failure)
                if !failure.is_unreachable()
                    && failure.is_anothers(|| RequestFingerprint::of_shared(shared, fetched, asking.candidate.as_deref())) =>
            {
                learnt.leaders_error = Some(failure);
                return ControlFlow::Continue(());
            }
            store::Outcome::Failed(failure) => failed(shared, asking, &failure).await,
            // The answer is another variant's: look again, together with those who want the same one.
            store::Outcome::Serve { record, .. } => {
                learnt.of_variant = Some(variant_flight(&question, &record));
                return ControlFlow::Continue(());
            }
            store::Outcome::Stored(stored) | store::Outcome::Fetched(stored) => {
                learnt.of_variant = Some(variant_flight(&question, &stored.record));
                return ControlFlow::Continue(());
            }
            store::Outcome::Abandoned => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(answer)
    }

    /// Answers with what the fetch came to that this request began.
    async fn answer_leader(self: &Rc<Self>, asking: OriginRequest, outcome: FetchOutcome) -> Answer {
        let question = &asking.question;
        match outcome {
            FetchOutcome::Growing(grows) => {
                let Grows { record, fields, body, took, proving } = *grows;
                let ending = asking.ending(record.status).took(took).about(&record);
                // Whether it will be stored is not known before another visitor was answered.
                let ending = if proving { ending.because(NotStored::Unproven.name()) } else { ending.stored_unless(None) };
                let mut answer = ending.with_explained(deliver::growing(&record, fields, body, question, &ending.status));
                let (response, _) = &mut *answer;
                if response.status() == record.status {
                    // Once for a fetch this may cost a worker's time; for each of a crowd it would cost more than it saves.
                    in_passing(question, false, response);
                }
                answer
            }
            FetchOutcome::Found(stored) => {
                Box::pin(self.deliver(question, &stored, Ending::of(Outcome::Hit).because(TIER).collapsed(asking.collapsed))).await
            }
            FetchOutcome::Confirmed { stored, took } => {
                let ending = Ending::of(Outcome::Revalidated).asked_for(asking.reason.name()).took(took);
                Box::pin(self.deliver(question, &stored, ending)).await
            }
            FetchOutcome::Alone { fetched, why } => {
                let Fetched { response, took, .. } = *fetched;
                let ending = asking.ending(response.status()).stored_unless(Some(why)).took(took);
                // What lies in a file goes as it lies there.
                if file::lies_in_a_file(response.body()) {
                    return ending.with_origins(file::respond(&question.method, &question.fields(), response));
                }
                let body = |body| if question.method == Method::HEAD { Body::empty() } else { Body::Origin(body) };
                let mut response = response.map(body);
                conditional(question, &mut response);
                ending.with_coded(question, response)
            }
            FetchOutcome::Failed(failure) => Box::pin(failed(&self.shared, OriginRequest { collapsed: false, ..asking }, &failure)).await,
        }
    }
}

/// Honours the client's own conditions, which were held back from a shared fetch, on the response to it.
fn conditional(question: &Question, response: &mut Response<Body>) {
    // Without a condition of these two nothing is confirmed.
    let is_conditional =
        question.has_condition_or_range() && has_any(&question.headers, &[header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE]);
    if !response.status().is_success() || !is_conditional {
        return;
    }
    let headers = response.headers();
    let etag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
    let last_modified = headers.get(header::LAST_MODIFIED).and_then(|value| semantics::date::parse_http_date(value.as_bytes()));
    if evaluate(&question.method, &question.fields(), etag, last_modified) != Precondition::NotModified {
        return;
    }
    let mut confirmation = Response::new(Body::empty());
    *confirmation.status_mut() = StatusCode::NOT_MODIFIED;
    *confirmation.headers_mut() = semantics::conditional::not_modified_fields(headers);
    *response = confirmation;
}
