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
use store::{Follow, Joined};
use tokio::{
    sync::oneshot::{self, error::RecvError},
    time::timeout,
};

use crate::{Failure, Pipeline, Record, Site, Stored, fetch::Told, forward, question::Question};

/// How often a fetch whose place somebody waits for looks whether it is still read.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// Followers of a site who ask on their own at once, on each worker: this part of the origin's places,
const ASIDE_SHARE: usize = 4;
/// and so many at least, as a few slow requests of strangers would hold up everybody else at a small origin. Its places bound them still.
const ASIDE_MIN: usize = 16;
/// Where there is no bound on places, so many.
const ASIDE_MAX: usize = 64;

/// Written by us for each client: what is said there, no client says.
const OURS: [HeaderName; 3] = [header::FORWARDED, header::VIA, HeaderName::from_static("x-forwarded-for")];
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// How the requests of a site share fetches.
#[derive(Debug)]
pub struct Collapse {
    wait: Duration,
    budget: Option<Arc<Budget>>,
    aside: Cell<usize>,
    aside_max: usize,
}

impl Collapse {
    /// A follower waits so long; `budget` bounds the requests at the origin, if anything does.
    #[must_use]
    pub fn new(wait: Duration, budget: Option<Arc<Budget>>) -> Self {
        let aside_max = budget.as_ref().map_or(ASIDE_MAX, |budget| (budget.concurrency() / ASIDE_SHARE).max(ASIDE_MIN));
        Self { wait, budget, aside: Cell::new(0), aside_max }
    }

    /// How long a request waits for a fetch that is not its own, or for any where a stale copy may stand in.
    pub(crate) const fn wait(&self) -> Duration {
        self.wait
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

/// A place among the followers of a site who ask on their own.
#[derive(Debug)]
pub(crate) struct Aside(Rc<Site>);

impl Aside {
    /// A place, if there is one.
    pub(crate) fn of(site: &Rc<Site>) -> Option<Self> {
        let aside = &site.collapse.aside;
        (aside.get() < site.collapse.aside_max).then(|| {
            aside.set(aside.get() + 1);
            Self(Rc::clone(site))
        })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let aside = &self.0.collapse.aside;
        aside.set(aside.get() - 1);
    }
}

/// What a follower comes to.
pub(crate) enum Followed {
    /// The outcome of a fetch that it followed.
    By(store::Outcome<Record, Failure>),
    /// It asked by itself, and this is what it was told.
    Aside(Told),
    /// It has waited long enough for somebody who may have a stale copy.
    Late,
}

/// A fetch for those who say the same, beside one whose leader says something else.
enum Beside {
    Leads(oneshot::Receiver<Told>, Aside),
    Follows(Follow<Record, Failure>),
}

impl Pipeline {
    /// What a shared request says to the origin.
    pub(crate) fn saying(&self, request: &Request<origins::Body>) -> u64 {
        saying(&self.shared.secret, request)
    }

    /// What the shared request of this question would say.
    pub(crate) fn said(&self, fetched: &Question, candidate: Option<&Stored>) -> u64 {
        self.saying(&forward::shared(fetched, candidate))
    }

    /// What a request has to be like to be answered with an error that this one may have brought on itself: see [`likeness`].
    pub(crate) fn likeness(&self, question: &Question) -> u64 {
        likeness(&self.shared.secret, &forward::alone(question, None), question.client.address)
    }

    /// What the fetch comes to that this request began; none, if it takes too long for somebody who may have a stale copy.
    pub(crate) async fn in_time(
        &self,
        question: &Question,
        candidate: Option<&Stored>,
        told: oneshot::Receiver<Told>,
    ) -> Option<Result<Told, RecvError>> {
        if !self.has_stand_in(question, candidate) {
            return Some(told.await);
        }
        let told = timeout(question.site.collapse.wait, told).await.ok();
        if told.is_none() {
            self.shared.trouble.late(question.hash, self.shared.clock.now());
        }
        told
    }

    /// Waits for another request's fetch, as long as that is for this request's own good.
    ///
    /// Whoever may have a stale copy waits no longer than `collapse_wait`. Whoever says just what the leader says would wait as long for an
    /// answer of its own. Others then ask too, and take what comes first; if too many do so already, they wait on.
    pub(crate) async fn followed(
        self: &Rc<Self>,
        question: &Rc<Question>,
        fetched: &Rc<Question>,
        candidate: Option<&Arc<Stored>>,
        follow: Follow<Record, Failure>,
    ) -> Followed {
        let wait = question.site.collapse.wait;
        let leader_says = follow.mark();
        let mut outcome = pin!(follow.outcome());
        if let Ok(outcome) = timeout(wait, outcome.as_mut()).await {
            return Followed::By(outcome);
        }
        if self.has_stand_in(question, candidate.map(|stored| &**stored)) {
            self.shared.trouble.late(question.hash, self.shared.clock.now());
            return Followed::Late;
        }
        let says = self.said(fetched, candidate.map(|stored| &**stored));
        if says == leader_says {
            return Followed::By(outcome.await);
        }
        let beside = loop {
            match self.beside(question, fetched, candidate, says) {
                Some(beside) => break beside,
                None => {
                    if let Ok(outcome) = timeout(wait, outcome.as_mut()).await {
                        return Followed::By(outcome);
                    }
                }
            }
        };
        let (own, _place): (LocalFuture<'_, Followed>, _) = match beside {
            Beside::Leads(told, place) => {
                let given_up = || Told::Failed(Failure::given_up("the fetch was given up"));
                (Box::pin(async move { Followed::Aside(told.await.unwrap_or_else(|_| given_up())) }), Some(place))
            }
            Beside::Follows(follow) => (Box::pin(async move { Followed::By(follow.outcome().await) }), None),
        };
        match select(outcome, own).await {
            Either::Left((outcome @ (store::Outcome::Serve { .. } | store::Outcome::Stored(_)), _)) => Followed::By(outcome),
            Either::Left((_, own)) => own.await,
            Either::Right((followed, _)) => followed,
        }
    }

    /// Joins those who say the same, or asks for them; nothing, if too many ask beside others already.
    fn beside(self: &Rc<Self>, question: &Question, fetched: &Rc<Question>, candidate: Option<&Arc<Stored>>, says: u64) -> Option<Beside> {
        let store = &self.shared.store;
        let flight = flight_of_those_who_say(&question.key, says);
        match store.join_for(store.hash(&flight), &flight, question.url()) {
            Joined::Lead(lead) => {
                let place = Aside::of(&question.site)?;
                let told = self.begin_fetch(Rc::clone(fetched), lead, candidate.cloned(), question.interim.clone());
                Some(Beside::Leads(told, place))
            }
            Joined::Follow(follow) => Some(Beside::Follows(follow)),
            Joined::Full => None,
        }
    }

    fn has_stand_in(&self, question: &Question, candidate: Option<&Stored>) -> bool {
        candidate.is_some_and(|stored| self.stands_in(question, stored, self.shared.clock.now()))
    }
}

/// The key of the flight for those alone who say the same.
pub(crate) fn flight_of_those_who_say(key: &[u8], says: u64) -> Vec<u8> {
    // A variant's flight goes on with a zero: see `variant_flight`.
    [key, &[0xff], &says.to_be_bytes()].concat()
}

/// What a request says to the origin, in a number: two that have the same are the same to it, but for the client's address.
///
/// The address is left out, as else no two clients would be alike. Method, target and host are those of the key.
pub(crate) fn saying<B>(secret: &RandomState, request: &Request<B>) -> u64 {
    let mut hasher = secret.build_hasher();
    for (name, value) in request.headers() {
        if !OURS.contains(name) && *name != X_REAL_IP {
            hasher.write(name.as_str().as_bytes());
            hasher.write_u8(0);
            hasher.write(value.as_bytes());
            hasher.write_u8(b'\n');
        }
    }
    hasher.finish()
}

/// What an error depends on that a request may have brought on itself, in a number: which fields it has, and what those say that browsers
/// send.
///
/// What another field says is left out, as it often counts or names the request alone (`X-Request-Id`, `Traceparent`), and with it nothing
/// would ever be answered twice. So who sends one is answered with errors of their own address alone.
fn likeness<B>(secret: &RandomState, request: &Request<B>, client: Option<IpAddr>) -> u64 {
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
    hasher.finish()
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
            likeness(&secret, &request.body(()).expect("a request"), client.parse().ok())
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
            saying(&secret, &request.body(()).expect("a request"))
        };
        let reader = [("host", "blog.example"), ("user-agent", "a"), ("x-forwarded-for", "192.0.2.1"), ("via", "1.1 seawall")];
        let another = [("host", "blog.example"), ("user-agent", "a"), ("x-forwarded-for", "192.0.2.2"), ("via", "2 seawall")];
        assert_eq!(said(&reader), said(&another));
        for other in [&[("user-agent", "b")][..], &[("user-agent", "a"), ("x", "y")], &[("user-agenta", "")], &[]] {
            assert_ne!(said(&reader[1..2]), said(other), "{other:?}");
        }
    }
}
