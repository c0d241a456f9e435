//! The life of a request, top to bottom: [`Pipeline::respond`].
//!
//! Admit, judge, and then one of three ways: the cache is asked ([`lookup`](crate::lookup)), the request passes ([`pass`](crate::pass)),
//! or it is a purge request or a webhook ([`purge`](crate::purge)).

use std::{
    cell::{Cell, RefCell},
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use http::{Request, Response, StatusCode, header, request::Parts};
use ipnet::IpNet;
use policy::{MEMBER_CACHE_TIER, Silent};
use semantics::{
    Scheme, Timestamp,
    coding::Coding,
    request::{FieldLines, has_any},
};
use store::HotPages;
use tokio_util::task::TaskTracker;

use crate::{
    Body, Class, Client, Counters, Interim, Note, Record, Router, Shared, Site, Tracing,
    admission::{
        Admission, FirstStep, IncomingRequest, admit, challenge,
        password::{self, Entry, make_members, make_private},
    },
    answer::{self, Answer, OwnAnswer},
    failure::{self, ErrorReason},
    identity::RequestGuard,
    in_vain::Spent,
    judge::{Judgement, judge},
    learnt::popularity::Sampler,
    proof::Proving,
    question, redirect,
};

/// One worker's pipeline, which lives on its thread.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tasks: TaskTracker,
    pub(crate) config: RefCell<Rc<Config>>,
    /// The number of times that this worker was reconfigured.
    pub(crate) configured: Cell<u64>,
    pub(crate) hot: RefCell<HotPages<Record>>,
    pub(crate) key: RefCell<Vec<u8>>,
    pub(crate) sampler: Sampler,
    /// The two-visitor proofs that this worker makes.
    pub(crate) proving: Proving,
    /// The rules by which requests are traced; `None`: they are not.
    pub(crate) tracing: RefCell<Option<Rc<Tracing>>>,
    /// Whether plain hits are traced. No head is answered by [`Pipeline::again`] then.
    pub(crate) traces_hits: Cell<bool>,
    /// Whether there is a limit for requests of one address.
    pub(crate) limits_requests: Cell<bool>,
    /// The note of the last request that nobody waited for any more.
    pub(crate) left: Cell<Option<Note>>,
    /// The cost of the last request whose client left while the origin was asked for it alone.
    pub(crate) spent: Cell<Option<Spent>>,
}

/// The configuration of a worker.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) router: Router,
    pub(crate) trusted_proxies: Vec<IpNet>,
}

/// A request that was taken in, for [`Pipeline::respond`].
#[derive(Debug)]
pub struct IncomingCall {
    /// The configuration when the request arrived. A reload does not change it.
    config: Rc<Config>,
    // What is known of it is boxed: all of it lies in the future of each request, and in those that wait for that one.
    incoming: Box<IncomingRequest>,
    body: origins::Body,
}

impl Pipeline {
    /// Takes a request in: finds out who asks, over which scheme and for which host.
    ///
    /// Interim responses of the origin go to `interim` before [`Pipeline::respond`] is ready, and none afterwards.
    pub fn receive(&self, peer: Option<IpAddr>, scheme: Scheme, request: Request<origins::Body>, interim: Option<Interim>) -> IncomingCall {
        let (parts, body) = request.into_parts();
        self.receive_parts(peer, scheme, parts, body, interim)
    }

    /// Takes a request in as [`Pipeline::receive`] does, when it has been taken apart already.
    pub fn receive_parts(
        &self,
        peer: Option<IpAddr>,
        scheme: Scheme,
        mut parts: Parts,
        body: origins::Body,
        interim: Option<Interim>,
    ) -> IncomingCall {
        let config = Rc::clone(&self.config.borrow());
        let client = Client::of(peer, scheme, FieldLines::Map(&parts.headers), &config.trusted_proxies);
        let identity = self.identify(client.trusted, FieldLines::Map(&parts.headers));
        identity.withhold(&mut parts.headers);
        let authority = question::settle_host(client.scheme, &mut parts.headers);
        // It is put together in its box: `Box::new` would copy it there.
        let incoming = Box::write(Box::new_uninit(), IncomingRequest { client, identity, authority, parts, interim });
        IncomingCall { config, incoming, body }
    }

    /// Answers a request: this is its life, from its arrival to the response that its client gets.
    pub async fn respond(self: &Rc<Self>, received: IncomingCall) -> Box<(Response<Body>, Note)> {
        let IncomingCall { config, incoming, body } = received;
        let mut awaited = RequestGuard::new(self, &incoming, config.router.site(&incoming.authority).map(|site| site.id));
        let mut answer = self.take_through(&config, incoming, body).await;
        let (response, note) = &mut *answer;
        awaited.answered();
        awaited.identity().tell_client(response.headers_mut());
        awaited.note(note);
        // A response without content, as a 304, is of the class of what it is about.
        if let Some(media_type) = response.headers().get(header::CONTENT_TYPE) {
            note.class = Class::of_media_type(media_type.as_bytes());
        }
        if has_any(response.headers(), &[header::CONTENT_ENCODING]) {
            note.coding = response.headers().get(header::CONTENT_ENCODING).and_then(|coding| Coding::of_token(coding.as_bytes()));
        }
        answer
    }

    /// Takes a request through its life: admits it, judges it, and has the cache, the origin or the purge room answer it.
    async fn take_through(self: &Rc<Self>, config: &Config, mut incoming: Box<IncomingRequest>, body: origins::Body) -> Answer {
        challenge::look_up(&self.shared, &incoming).await;
        // Admit: a few steps may answer it before its site is asked.
        let (site, lock) = match admit(&self.shared, &config.router, &incoming, &mut Silent) {
            Admission::Admitted { site, lock } => (site, lock),
            Admission::Answered { site, response, step } => {
                return answer::without_cache(*response, OwnAnswer::Step(step), site.map(|site| site.id));
            }
            Admission::NoSite => {
                let response = failure::page(StatusCode::MISDIRECTED_REQUEST, ErrorReason::NoSuchSite);
                return answer::without_cache(response, OwnAnswer::Error(ErrorReason::NoSuchSite), None);
            }
        };
        let entry = match password::open(lock, &self.shared, &mut incoming).await {
            Ok(entry) => entry,
            Err(refusal) => return answer::without_cache(*refusal, OwnAnswer::Step(FirstStep::Password), Some(site.id)),
        };

        let (mut is_members, mut knows_members) = (false, false);
        // Judge: the site's policy says who answers it, and under which key.
        let mut answer = match judge(&self.shared, &config.trusted_proxies, &site, incoming, || self.shared.clock.now(), &mut Silent) {
            Judgement::Lookup(question) => {
                (is_members, knows_members) = (question.member.is_some(), question.site.policy.knows_members());
                let mut answer = self.look_up(Rc::clone(&question)).await;
                let (response, _) = &mut *answer;
                redirect::take_along(&question, response.status(), response.headers_mut());
                answer
            }
            Judgement::Pass(question, rule) => {
                knows_members = question.site.policy.knows_members();
                self.pass_or_guess(question, body, rule).await
            }
            Judgement::Purge { site, client, parts, authority } => {
                let response = Box::pin(self.purge_request(config, &site, &client, &parts, &authority)).await;
                answer::without_cache(response, OwnAnswer::Purge, Some(site.id))
            }
            Judgement::Webhook { site, client, parts, authority } => {
                let response = Box::pin(self.webhook(config, &site, &client, &parts, &authority, body)).await;
                answer::without_cache(response, OwnAnswer::Webhook, Some(site.id))
            }
            Judgement::Malformed(_) => {
                let response = failure::page(StatusCode::BAD_REQUEST, ErrorReason::Target);
                answer::without_cache(response, OwnAnswer::Error(ErrorReason::Target), Some(site.id))
            }
        };
        let (response, note) = &mut *answer;
        note.site = Some(site.id);
        // Who shares it is for us alone to know: a Ghost calls such pages public, and another cache, or the browser after its reader has
        // left, would show them to others.
        is_members |= knows_members && response.headers_mut().remove(MEMBER_CACHE_TIER).is_some();
        if is_members {
            make_members(response.headers_mut());
        }
        if entry == Entry::Private {
            make_private(response.headers_mut());
        }
        answer
    }

    /// Makes the pipeline of a worker.
    #[must_use]
    pub fn new(shared: Arc<Shared>, counters: Arc<Counters>, router: Router, trusted_proxies: Vec<IpNet>) -> Rc<Self> {
        shared.purging.know_first_sites(&router);
        shared.rates.set(router.request_limit().map(|limit| limit.rate));
        let limits_requests = Cell::new(router.request_limit().is_some());
        let config = RefCell::new(Rc::new(Config { router, trusted_proxies }));
        let hot = RefCell::new(HotPages::new(shared.hot_bytes));
        let (tasks, sampler) = (TaskTracker::new(), Sampler::default());
        Rc::new(Self {
            shared,
            counters,
            tasks,
            config,
            configured: Cell::new(0),
            hot,
            key: RefCell::default(),
            sampler,
            proving: Proving::default(),
            tracing: RefCell::default(),
            traces_hits: Cell::new(false),
            limits_requests,
            left: Cell::default(),
            spent: Cell::default(),
        })
    }

    /// Replaces router and trusted proxies for requests that begin after this call. Requests under way end as they began.
    pub fn reconfigure(&self, router: Router, trusted_proxies: Vec<IpNet>) {
        self.shared.rates.set(router.request_limit().map(|limit| limit.rate));
        self.limits_requests.set(router.request_limit().is_some());
        *self.config.borrow_mut() = Rc::new(Config { router, trusted_proxies });
        self.configured.set(self.configured.get() + 1);
    }

    /// Replaces the rules by which requests are traced that begin after this call. `None`: they are not.
    pub fn trace(&self, tracing: Option<Tracing>) {
        self.traces_hits.set(tracing.as_ref().is_some_and(Tracing::traces_hits));
        *self.tracing.borrow_mut() = tracing.map(Rc::new);
        self.configured.set(self.configured.get() + 1);
    }

    /// Returns, once, the note of the last request whose client left before there was an answer. It has the request's identity and, if the origin was asked for
    /// this client alone, the rule and the time that this took until the client left.
    #[must_use]
    pub fn take_left(&self) -> Option<Note> {
        self.left.take()
    }

    /// Releases the pages that this worker keeps at hand though they are no longer stored, and has packed what nobody reads as it is. Call it
    /// every second or so.
    pub fn sweep(&self) {
        self.shared.pack_unread();
        self.hot.borrow_mut().sweep(&self.shared.store);
    }

    /// Returns the fetches that no client may be waiting for. A shutdown waits for them.
    #[must_use]
    pub const fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Finds the site with this number.
    pub(crate) fn site(&self, id: u16) -> Option<Rc<Site>> {
        self.config.borrow().router.by_id(id).cloned()
    }

    /// Returns this worker's counters.
    #[must_use]
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Returns the time at an instant, for the log.
    #[must_use]
    pub fn wall_clock(&self, at: Instant) -> Timestamp {
        self.shared.clock.at(at)
    }
}
