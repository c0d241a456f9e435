//! Who may wait for whose fetch, and for how long.
//!
//! One fetch for many is a gain only as long as nobody loses by it. So a follower waits a bounded time for a leader that says something else
//! than itself, an error of such a leader is not its own, and a fetch that nobody reads gives its place at the origin to one that somebody
//! waits for.

use std::{
    cell::Cell,
    future::pending,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    net::IpAddr,
    pin::pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures_util::future::{Either, select};
use http::{HeaderName, Request, header};
use origins::{LocalFuture, server::Budget};
use store::{Follow, Generation, Joined};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Failure, Pipeline, Record, Shared, Site, Store, Stored, fetch::FetchOutcome, forward, lookup::OriginRequest, proof, question::Question,
    stale::may_stand_in,
};

/// The interval at which a fetch whose place somebody waits for looks whether it is still read.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// The interval at which a follower who waits for an answer like its own looks whether that is held back for a proof.
const PROOF_LOOK: Duration = Duration::from_secs(1);

/// The part of the origin's places that second fetches of a site may take at once, on each worker.
const SECOND_FETCHES_SHARE: usize = 4;
/// The least number of second fetches that may be under way, as a few slow requests of strangers would hold up everybody else at a small origin. Its
/// places bound them still.
const SECOND_FETCHES_MIN: usize = 16;
/// The most second fetches where there is no bound on places.
const SECOND_FETCHES_MAX: usize = 64;

/// Fields that are written here for each client: no client says what they say.
const OURS: [HeaderName; 3] = [header::FORWARDED, header::VIA, HeaderName::from_static("x-forwarded-for")];
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The rules by which the requests of a site share fetches.
#[derive(Debug)]
pub struct Collapse {
    wait: Duration,
    budget: Option<Arc<Budget>>,
    second_fetches: Cell<usize>,
}

impl Collapse {
    /// Makes rules by which a follower waits for `wait`; `budget` bounds the requests at the origin, if anything does.
    #[must_use]
    pub const fn new(wait: Duration, budget: Option<Arc<Budget>>) -> Self {
        Self { wait, budget, second_fetches: Cell::new(0) }
    }

    /// Returns the most second fetches that may be under way: the origin's places may become more and fewer.
    fn second_fetches_max(&self) -> usize {
        self.budget.as_ref().map_or(SECOND_FETCHES_MAX, |budget| (budget.concurrency() / SECOND_FETCHES_SHARE).max(SECOND_FETCHES_MIN))
    }

    /// Returns how long a request waits for a fetch that is not its own, or for any where a stale copy may stand in.
    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns whether the origin has a place that nobody waits for.
    pub(crate) fn has_room(&self) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.waiting() == 0 && budget.in_flight() < budget.concurrency())
    }

    /// Returns whether requests wait for a place at the origin.
    pub(crate) fn is_crowded(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.waiting() > 0)
    }

    /// Waits until somebody waits for a place at the origin. Looks for it only after so long.
    pub(crate) async fn place_is_wanted(&self, after: Duration) {
        let Some(budget) = &self.budget else { return pending().await };
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        budget.wanted().await;
    }
}

/// A permit for a second fetch at a site, or for a follower that asks alone.
#[derive(Debug)]
pub(crate) struct SecondFetchPermit(Rc<Site>);

impl SecondFetchPermit {
    /// Takes a place, if there is one.
    pub(crate) fn of(site: &Rc<Site>) -> Option<Self> {
        let taken = &site.collapse.second_fetches;
        (taken.get() < site.collapse.second_fetches_max()).then(|| {
            taken.set(taken.get() + 1);
            Self(Rc::clone(site))
        })
    }
}

impl Drop for SecondFetchPermit {
    fn drop(&mut self) {
        let taken = &self.0.collapse.second_fetches;
        taken.set(taken.get() - 1);
    }
}

/// The end of following.
pub(crate) enum FollowOutcome {
    /// The outcome of a fetch that it followed.
    By(store::Outcome<Record, Failure>),
    /// The outcome of a second fetch that this request began.
    SecondFetch(FetchOutcome),
    /// It has waited long enough for somebody who may have a stale copy.
    Late,
    /// It has waited long enough for a proof of what others have whole, and asks alone.
    Unproven(SecondFetchPermit),
}

/// A second fetch of a page, for requests that say something else to the origin than the leader of the first.
enum SecondFetch {
    Leads(oneshot::Receiver<FetchOutcome>, SecondFetchPermit),
    Follows(Follow<Record, Failure>),
}

/// Waits for the fetch that this request began at this generation. Returns `None` if it takes too long for somebody who may have a stale copy.
pub(crate) async fn in_time(
    shared: &Shared,
    asking: &OriginRequest,
    told: oneshot::Receiver<FetchOutcome>,
    begun: Generation,
) -> Option<FetchOutcome> {
    let question = &asking.question;
    let told = async { told.await.unwrap_or_else(|_| FetchOutcome::Failed(Failure::given_up("the fetch was given up"))) };
    if !has_stand_in(shared, asking) {
        return Some(told.await);
    }
    let told = timeout(question.site.collapse.wait, told).await.ok();
    if told.is_none() {
        shared.trouble.late(question.hash, shared.clock.now(), begun);
    }
    told
}

/// Waits for another request's fetch, as long as that is for this request's own good.
///
/// Whoever waits for a page that is whole already, and is being proven, waits no longer than its [patience](proof::patience), and asks alone then.
/// Whoever may have a stale copy waits no longer than `collapse_wait`. Whoever says just what the leader says would wait as long for an
/// answer of its own. Others then ask too, and take what comes first; if too many do so already, they wait on.
pub(crate) async fn followed(
    pipeline: &Rc<Pipeline>,
    asking: &OriginRequest,
    fetched: &Rc<Question>,
    follow: Follow<Record, Failure>,
) -> FollowOutcome {
    let (shared, question) = (&pipeline.shared, &asking.question);
    let wait = question.site.collapse.wait;
    let (leader_mark, begun) = (follow.mark(), follow.begun());
    let patience = follow.patience();
    let mut outcome = pin!(follow.outcome());
    if proof::is_wanted(fetched) {
        let mut waited = Duration::ZERO;
        while waited < wait {
            // A content that is not whole after so long has taken as long at least.
            let until = patience().unwrap_or_else(|| proof::patience(waited)).min(wait);
            if let Some(more) = until.checked_sub(waited).filter(|more| !more.is_zero()) {
                if let Ok(outcome) = timeout(more, outcome.as_mut()).await {
                    return FollowOutcome::By(outcome);
                }
                waited = until;
            } else if has_stand_in(shared, asking) {
                return FollowOutcome::Late;
            } else if let Some(permit) = SecondFetchPermit::of(&question.site) {
                return FollowOutcome::Unproven(permit);
            } else {
                // There are too many second fetches already.
                if let Ok(outcome) = timeout(LOOK, outcome.as_mut()).await {
                    return FollowOutcome::By(outcome);
                }
                waited += LOOK;
            }
        }
    } else if let Ok(outcome) = timeout(wait, outcome.as_mut()).await {
        return FollowOutcome::By(outcome);
    }
    if has_stand_in(shared, asking) {
        shared.trouble.late(question.hash, shared.clock.now(), begun);
        return FollowOutcome::Late;
    }
    let fingerprint = RequestFingerprint::of_shared(shared, fetched, asking.candidate.as_deref());
    if fingerprint.is_marked(leader_mark) || patience().is_some() {
        if !proof::is_wanted(fetched) {
            return FollowOutcome::By(outcome.await);
        }
        loop {
            if let Ok(outcome) = timeout(wait.min(PROOF_LOOK), outcome.as_mut()).await {
                return FollowOutcome::By(outcome);
            }
            // The page is whole, and only its proof is waited for.
            if patience().is_some()
                && let Some(permit) = SecondFetchPermit::of(&question.site)
            {
                return FollowOutcome::Unproven(permit);
            }
        }
    }
    let second = loop {
        match join_second_fetch(pipeline, asking, fetched, fingerprint) {
            Some(second) => break second,
            None => {
                if let Ok(outcome) = timeout(wait, outcome.as_mut()).await {
                    return FollowOutcome::By(outcome);
                }
            }
        }
    };
    let (own, _permit): (LocalFuture<'_, FollowOutcome>, _) = match second {
        SecondFetch::Leads(told, permit) => {
            let given_up = || FetchOutcome::Failed(Failure::given_up("the fetch was given up"));
            (Box::pin(async move { FollowOutcome::SecondFetch(told.await.unwrap_or_else(|_| given_up())) }), Some(permit))
        }
        SecondFetch::Follows(follow) => (Box::pin(async move { FollowOutcome::By(follow.outcome().await) }), None),
    };
    match select(outcome, own).await {
        Either::Left((outcome @ (store::Outcome::Serve { .. } | store::Outcome::Stored(_) | store::Outcome::Fetched(_)), _)) => {
            FollowOutcome::By(outcome)
        }
        Either::Left((_, own)) => own.await,
        Either::Right((followed, _)) => followed,
    }
}

/// Joins the second fetch of those who say the same, or begins it. Returns `None` if there are too many second fetches already.
fn join_second_fetch(
    pipeline: &Rc<Pipeline>,
    asking: &OriginRequest,
    fetched: &Rc<Question>,
    fingerprint: RequestFingerprint,
) -> Option<SecondFetch> {
    let (store, question) = (&pipeline.shared.store, &asking.question);
    let flight = flight_of_fingerprint(&question.key, fingerprint);
    let moment = pipeline.shared.fence.moment(pipeline.shared.clock.now());
    match store.join_for(store.hash(&flight), &flight, question.url(), moment) {
        Joined::Lead(lead) => {
            let permit = SecondFetchPermit::of(&question.site)?;
            let told =
                pipeline.begin_fetch(Rc::clone(fetched), lead, asking.candidate.clone(), Some(asking.reason), question.interim.clone());
            Some(SecondFetch::Leads(told, permit))
        }
        Joined::Follow(follow) => Some(SecondFetch::Follows(follow)),
        Joined::Full => None,
    }
}

fn has_stand_in(shared: &Shared, asking: &OriginRequest) -> bool {
    asking.candidate.as_ref().is_some_and(|stored| may_stand_in(shared, &asking.question, stored, shared.clock.now()))
}

/// Returns the key of the flight that a question joins: that of the resource, and of the variant if it is known what the resource varies on.
pub(crate) fn flight_of(store: &Store, question: &Question) -> Vec<u8> {
    let resource = store.peek(question.hash, &question.key);
    let newest = resource.as_ref().and_then(|resource| resource.variants().first());
    newest.map_or_else(|| question.key.clone(), |newest| variant_flight(question, &newest.record))
}

/// Returns the key of the flight for those alone who say the same to the origin.
pub(crate) fn flight_of_fingerprint(key: &[u8], fingerprint: RequestFingerprint) -> Vec<u8> {
    // A variant's flight goes on with a zero: see `variant_flight`.
    [key, &[0xff], &fingerprint.0.to_be_bytes()].concat()
}

/// Returns the key of the flight for the variant that `question` wants, where `record` is another variant or the same one.
pub(crate) fn variant_flight(question: &Question, record: &Record) -> Vec<u8> {
    let mut flight = question.key.clone();
    flight.push(0);
    record.vary.secondary_key_for(&question.fields(), &mut flight);
    flight
}

/// Identifies what a request says to the origin. Two requests with the same value differ in the client's address at most.
///
/// The address is left out, as else no two clients would be alike. Method, target and host are those of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestFingerprint(u64);

impl RequestFingerprint {
    /// Makes that of a request as it goes to the origin.
    pub(crate) fn of_request<B>(secret: &RandomState, request: &Request<B>) -> Self {
        let mut hasher = secret.build_hasher();
        for (name, value) in request.headers() {
            if !OURS.contains(name) && *name != X_REAL_IP {
                hasher.write(name.as_str().as_bytes());
                hasher.write_u8(0);
                hasher.write(value.as_bytes());
                hasher.write_u8(b'\n');
            }
        }
        Self(hasher.finish())
    }

    /// Returns the mark of a flight whose leader says this.
    pub(crate) const fn mark(self) -> u64 {
        self.0
    }

    /// Returns whether the leader of a flight with this mark says the same.
    const fn is_marked(self, mark: u64) -> bool {
        self.0 == mark
    }

    /// Makes that of the shared request of a question.
    pub(crate) fn of_shared(shared: &Shared, fetched: &Question, candidate: Option<&Stored>) -> Self {
        Self::of_request(&shared.secret, &forward::shared(fetched, candidate))
    }
}

/// Identifies the requests that may be answered with an error that one of them may have caused: those with the same fields, of which those that browsers
/// send say the same.
///
/// What another field says is left out, as it often counts or names the request alone (`X-Request-Id`, `Traceparent`), and with it nothing
/// would ever be answered twice. So who sends one is answered with errors of their own address alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorScope(u64);

impl ErrorScope {
    /// Makes that of a question.
    pub(crate) fn of(shared: &Shared, question: &Question) -> Self {
        Self::of_request(&shared.secret, &forward::alone(question, None), question.client.address)
    }

    fn of_request<B>(secret: &RandomState, request: &Request<B>, client: Option<IpAddr>) -> Self {
        let mut hasher = secret.build_hasher();
        let mut names: Vec<&HeaderName> = request.headers().keys().filter(|name| !OURS.contains(name) && **name != X_REAL_IP).collect();
        names.sort_unstable_by_key(|name| name.as_str());
        let mut of_client = false;
        for name in names {
            hasher.write(name.as_str().as_bytes());
            let is_known = OF_BROWSERS.contains(name) || BROWSERS_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
            of_client |= !is_known;
            for value in request.headers().get_all(name).iter().filter(|_| is_known) {
                hasher.write_u8(0);
                hasher.write(value.as_bytes());
            }
            hasher.write_u8(b'\n');
        }
        if of_client && let Some(client) = client {
            client.hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}

/// Fields that browsers send with requests that may be answered from a cache.
const OF_BROWSERS: [HeaderName; 26] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::ACCESS_CONTROL_REQUEST_HEADERS,
    header::ACCESS_CONTROL_REQUEST_METHOD,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DNT,
    header::FROM,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::ORIGIN,
    header::PRAGMA,
    header::RANGE,
    header::REFERER,
    header::TE,
    header::UPGRADE_INSECURE_REQUESTS,
    header::USER_AGENT,
    HeaderName::from_static("priority"),
];
const BROWSERS_PREFIXES: [&str; 3] = ["sec-", "x-forwarded-", "accept-"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_for_requests_that_are_like_the_one_that_got_it() {
        let secret = RandomState::new();
        let like = |lines: &[(&str, &str)], client: &str| {
            let request = lines.iter().fold(Request::get("/post"), |request, (name, value)| request.header(*name, *value));
            ErrorScope::of_request(&secret, &request.body(()).expect("a request"), client.parse().ok())
        };
        let reader = [("user-agent", "a"), ("accept-language", "en")];
        assert_eq!(like(&reader, "192.0.2.1"), like(&[reader[1], reader[0]], "192.0.2.2"), "browsers of one kind are alike");
        for others in [&reader[..1], &[reader[0], ("accept-language", "tlh")], &[reader[0], reader[1], ("x-bad", "1")], &[]] {
            assert_ne!(like(&reader, "192.0.2.1"), like(others, "192.0.2.1"), "{others:?}");
        }
        let numbered = |n| [reader[0], ("x-request-id", n)];
        assert_eq!(like(&numbered("1"), "192.0.2.1"), like(&numbered("2"), "192.0.2.1"));
        assert_ne!(like(&numbered("1"), "192.0.2.1"), like(&numbered("1"), "192.0.2.2"), "each to its own");
    }

    #[test]
    fn two_requests_say_the_same_whoever_sends_them() {
        let secret = RandomState::new();
        let said = |lines: &[(&str, &str)]| {
            let request = lines.iter().fold(Request::get("/post"), |request, (name, value)| request.header(*name, *value));
            RequestFingerprint::of_request(&secret, &request.body(()).expect("a request"))
        };
        let reader = [("host", "blog.example"), ("user-agent", "a"), ("x-forwarded-for", "192.0.2.1"), ("via", "1.1 seawall")];
        let another = [("host", "blog.example"), ("user-agent", "a"), ("x-forwarded-for", "192.0.2.2"), ("via", "2 seawall")];
        assert_eq!(said(&reader), said(&another));
        for other in [&[("user-agent", "b")][..], &[("user-agent", "a"), ("x", "y")], &[("user-agenta", "")], &[]] {
            assert_ne!(said(&reader[1..2]), said(other), "{other:?}");
        }
    }
}
