//! A request that asks the cache, and the origin once for all who ask the same.

use std::{rc::Rc, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Response, StatusCode, header};
use policy::Silent;
use semantics::{
    Timestamp,
    cache_status::{CacheStatus, Forwarded, Outcome},
    conditional::{Precondition, evaluate},
};
use store::Joined;

use crate::{
    Body, Failure, Note, Pipeline, Resource, Stored,
    answer::forwarded_status,
    body::file,
    coded::in_passing,
    collapse::{Aside, Followed, flight_of_those_who_say, variant_flight},
    deliver, failure,
    fetch::Told,
    next::{Found, Next},
    question::Question,
};

/// How often a request joins a fetch whose leader then gives up, before it goes alone.
const ATTEMPTS: usize = 4;

/// How long a request waits for the disk before it goes to the origin. A disk that is slower than this is slower than most origins.
const DISK_WAIT: Duration = Duration::from_secs(2);

impl Pipeline {
    /// Asks the cache; and the origin, once for all who ask the same.
    pub(crate) async fn look_up(self: &Rc<Self>, question: Rc<Question>) -> (Response<Body>, Note) {
        if question.is_shareable() {
            self.shared.popularity.asked(question.hash, &question.key);
        }
        let mut collapsed = false;
        let (mut of_variant, mut anothers) = (None, None::<Failure>);
        for attempt in 0..=ATTEMPTS {
            let now = self.shared.clock.now();
            let mut found = self.find(&question, now);
            if matches!(found, Found::Nothing(_)) && self.shared.store.may_be_on_disk(question.hash) {
                found = self.find_on_disk(&question, now).await;
            }
            let (candidate, forwarded) = match self.next(&question, found, now) {
                Next::Deliver(stored, outcome) => {
                    if matches!(outcome, Outcome::Stale { .. }) {
                        self.refresh(&question, &stored);
                    }
                    return self.deliver(&question, &stored, outcome, collapsed).await;
                }
                Next::DeliverAndRefresh(stored) => {
                    self.refresh(&question, &stored);
                    return self.deliver(&question, &stored, Outcome::Updating, collapsed).await;
                }
                Next::OnlyIfCached => return only_if_cached(),
                Next::Ask(candidate, forwarded) => (candidate, forwarded),
            };
            if attempt == 0 {
                self.tell_hints(&question);
            }
            let Some(fetched) = self.shared_fetch(&question, candidate.as_deref(), now) else {
                return self.alone(&question, candidate, forwarded).await;
            };
            let store = &self.shared.store;
            // Whoever still has nothing but others' errors asks for those who say the same: no number of others decides what they get.
            let failure = anothers.as_ref().filter(|_| attempt == ATTEMPTS);
            let flight = match failure {
                Some(_) => flight_of_those_who_say(&question.key, self.said(&fetched, candidate.as_deref())),
                None if attempt == ATTEMPTS => break,
                None => of_variant.take().unwrap_or_else(|| self.flight_key(&question)),
            };
            match store.join_for(store.hash(&flight), &flight, question.url()) {
                Joined::Full => return self.alone(&question, candidate, forwarded).await,
                // An earlier flight may have landed between looking and joining.
                Joined::Lead(lead) if matches!(self.find(&question, now), Found::Fresh(_)) => drop(lead),
                Joined::Lead(lead) => {
                    let place = Aside::of(&question.site);
                    if let Some(failure) = failure.filter(|_| place.is_none()) {
                        return self.failed(&question, candidate, failure, forwarded, collapsed).await;
                    }
                    let _place = place.filter(|_| failure.is_some());
                    let told = self.begin_fetch(fetched, lead, candidate.clone(), question.interim.clone());
                    return match self.in_time(&question, candidate.as_deref(), told).await {
                        Some(told) => self.told(&question, told, candidate, forwarded).await,
                        None => self.late(&question, candidate, forwarded, collapsed).await,
                    };
                }
                Joined::Follow(follow) => {
                    collapsed = true;
                    let outcome = match self.followed(&question, &fetched, candidate.as_ref(), follow).await {
                        Followed::By(outcome) => outcome,
                        Followed::Aside(told) => return self.told(&question, Ok(told), candidate, forwarded).await,
                        Followed::Late => return self.late(&question, candidate, forwarded, collapsed).await,
                    };
                    match outcome {
                        store::Outcome::Serve { record, body } if self.is_for(&question, &record) => {
                            let status = CacheStatus { collapsed, ..forwarded_status(forwarded, Some(record.status), true) };
                            let response = deliver::growing(&record, body, (&question.method, &question.fields()), &status);
                            return (response, Note { collapsed, ..Note::of(status.outcome) });
                        }
                        // An error that the leader may have brought on itself.
                        store::Outcome::Serve { record, .. } if record.only_for.is_some() => {
                            anothers = Some(Failure::of_status(record.status))
                        }
                        store::Outcome::Stored(stored) if self.is_for(&question, &stored.record) => {
                            return self.deliver(&question, &stored, Outcome::Revalidated, collapsed).await;
                        }
                        store::Outcome::Uncacheable => return self.alone(&question, candidate, forwarded).await,
                        // It may be the leader's own affair. Then one of those who say something else leads.
                        store::Outcome::Failed(failure)
                            if !failure.is_unreachable() && failure.is_anothers(|| self.said(&fetched, candidate.as_deref())) =>
                        {
                            anothers = Some(failure);
                        }
                        store::Outcome::Failed(failure) => return self.failed(&question, candidate, &failure, forwarded, collapsed).await,
                        // The answer is another variant's: look again, together with those who want the same one.
                        store::Outcome::Serve { record, .. } => of_variant = Some(variant_flight(&question, &record)),
                        store::Outcome::Stored(stored) => of_variant = Some(variant_flight(&question, &stored.record)),
                        store::Outcome::Abandoned => {}
                    }
                }
            }
        }
        self.alone(&question, None, Forwarded::Miss).await
    }

    /// The origin takes too long for somebody who may have what is stored.
    pub(crate) async fn late(
        &self,
        question: &Question,
        candidate: Option<Arc<Stored>>,
        forwarded: Forwarded,
        collapsed: bool,
    ) -> (Response<Body>, Note) {
        self.failed(question, candidate, &Failure::late(), forwarded, collapsed).await
    }

    /// What the fetch that this request began came to.
    pub(crate) async fn told(
        self: &Rc<Self>,
        question: &Rc<Question>,
        told: Result<Told, tokio::sync::oneshot::error::RecvError>,
        candidate: Option<Arc<Stored>>,
        forwarded: Forwarded,
    ) -> (Response<Body>, Note) {
        match told {
            Ok(Told::Growing { record, body, own, took }) => {
                let status = forwarded_status(forwarded, Some(record.status), true);
                let mut response = deliver::growing(&record, body, (&question.method, &question.fields()), &status);
                if response.status() == record.status {
                    response.headers_mut().extend(own);
                    // Once for a fetch this may cost a worker's time; for each of a crowd it would cost more than it saves.
                    response = in_passing(question, false, response);
                }
                (response, Note { origin_time: Some(took), ..Note::of(status.outcome) })
            }
            Ok(Told::Confirmed { stored, took }) => {
                let (response, note) = self.deliver(question, &stored, Outcome::Revalidated, false).await;
                (response, Note { origin_time: Some(took), ..note })
            }
            Ok(Told::Alone { response, why, took }) => {
                let status = CacheStatus { detail: Some(why), ..forwarded_status(forwarded, Some(response.status()), false) };
                // What lies in a file goes as it lies there.
                let in_file = file::lies_in_a_file(response.body());
                let mut response = if in_file {
                    file::respond(&question.method, &question.fields(), response)
                } else {
                    let body = |body| if question.method == Method::HEAD { Body::empty() } else { Body::Origin(body) };
                    conditional(question, response.map(body))
                };
                policy::remove_dialect(response.headers_mut());
                deliver::explain(response.headers_mut(), &status);
                let response = if in_file { response } else { in_passing(question, question.is_personal(), response) };
                (response, Note { origin_time: Some(took), ..Note::of(status.outcome) })
            }
            Ok(Told::Failed(failure)) => self.failed(question, candidate, &failure, forwarded, false).await,
            Err(_) => self.failed(question, candidate, &Failure::given_up("the fetch was given up"), forwarded, false).await,
        }
    }

    /// What is stored for a request, and whether it may be used.
    pub(crate) fn find(&self, question: &Question, now: Timestamp) -> Found {
        self.find_in(self.shared.store.get(question.hash, &question.key), question, now)
    }

    /// What the disk has. A disk that does not answer in time has nothing.
    pub(crate) async fn find_on_disk(&self, question: &Question, now: Timestamp) -> Found {
        let load = self.shared.store.load(question.hash, &question.key);
        let resource = tokio::time::timeout(DISK_WAIT, load).await.ok().flatten();
        self.find_in(resource, question, now)
    }

    pub(crate) fn find_in(&self, resource: Option<Arc<Resource>>, question: &Question, now: Timestamp) -> Found {
        match self.found_in(resource.as_deref(), question, now, &mut Silent) {
            found @ Found::Nothing(Forwarded::UriMiss | Forwarded::VaryMiss) => self.part(question, now).map_or(found, Found::Fresh),
            found => found,
        }
    }
}

/// RFC 9111 §5.2.1.7.
fn only_if_cached() -> (Response<Body>, Note) {
    let mut response = failure::page(StatusCode::GATEWAY_TIMEOUT, "only-if-cached");
    let status = CacheStatus { detail: Some("only-if-cached"), ..CacheStatus::new(Outcome::Forwarded(Forwarded::Miss)) };
    // Nothing was forwarded, so there is nothing to retry.
    response.headers_mut().remove(header::RETRY_AFTER);
    response.headers_mut().remove("proxy-status");
    deliver::explain(response.headers_mut(), &status);
    (response, Note::of(status.outcome))
}

/// The client's own conditions were held back from a shared fetch: they are honoured on its answer.
fn conditional(question: &Question, response: Response<Body>) -> Response<Body> {
    if !response.status().is_success() {
        return response;
    }
    let headers = response.headers();
    let etag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
    let last_modified = headers.get(header::LAST_MODIFIED).and_then(|value| semantics::date::parse_http_date(value.as_bytes()));
    if evaluate(&question.method, &question.fields(), etag, last_modified) != Precondition::NotModified {
        return response;
    }
    let mut confirmation = Response::new(Body::empty());
    *confirmation.status_mut() = StatusCode::NOT_MODIFIED;
    *confirmation.headers_mut() = semantics::conditional::not_modified_fields(headers);
    confirmation
}
