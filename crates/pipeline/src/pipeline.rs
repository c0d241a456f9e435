//! The life of a request, in one function: [`Pipeline::respond`].

use std::{
    cell::{Cell, RefCell},
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::Instant,
};

use http::{HeaderMap, Request, Response, StatusCode, header};
use ipnet::IpNet;
use policy::{Silent, Verdict};
use semantics::{Scheme, Timestamp, coding::Coding, request::FieldLines};
use store::Front;
use tokio_util::task::TaskTracker;

use crate::{
    Body, Client, Counters, Interim, Note, Record, Redirect, Router, Shared, Site,
    admission::password::{self, Entry, make_private},
    failure,
    judge::Unjudged,
    learnt::popularity::Sampler,
    question,
};

/// One worker's part. Lives on its thread.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tasks: TaskTracker,
    pub(crate) config: RefCell<Rc<Config>>,
    /// How often this worker was reconfigured.
    pub(crate) configured: Cell<u64>,
    pub(crate) front: RefCell<Front<Record>>,
    pub(crate) key: RefCell<Vec<u8>>,
    pub(crate) sampler: Sampler,
}

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) router: Router,
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Whether any site sends requests to https, or asks for a password.
    guarded: bool,
}

impl Config {
    fn new(router: Router, trusted_proxies: Vec<IpNet>) -> Self {
        let guarded = router.sites().any(|site| site.https.redirect != Redirect::Never || site.auth.is_some());
        Self { router, trusted_proxies, guarded }
    }
}

impl Pipeline {
    /// A worker's pipeline.
    #[must_use]
    pub fn new(shared: Arc<Shared>, counters: Arc<Counters>, router: Router, trusted_proxies: Vec<IpNet>) -> Rc<Self> {
        let config = RefCell::new(Rc::new(Config::new(router, trusted_proxies)));
        let front = RefCell::new(Front::new(shared.front_bytes));
        let (tasks, sampler) = (TaskTracker::new(), Sampler::default());
        Rc::new(Self { shared, counters, tasks, config, configured: Cell::new(0), front, key: RefCell::default(), sampler })
    }

    /// From now on. Requests under way end as they began.
    pub fn reconfigure(&self, router: Router, trusted_proxies: Vec<IpNet>) {
        *self.config.borrow_mut() = Rc::new(Config::new(router, trusted_proxies));
        self.configured.set(self.configured.get() + 1);
    }

    /// Lets go of what this worker keeps at hand though it is no longer stored. To be called every second or so.
    pub fn sweep(&self) {
        self.front.borrow_mut().sweep(&self.shared.store);
    }

    /// Fetches that no client may be waiting for; a shutdown waits for them.
    #[must_use]
    pub const fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// The site with this number.
    pub(crate) fn site(&self, id: u16) -> Option<Rc<Site>> {
        self.config.borrow().router.by_id(id).cloned()
    }

    /// This worker's counters.
    #[must_use]
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The time at an instant, for the log.
    #[must_use]
    pub fn wall_clock(&self, at: Instant) -> Timestamp {
        self.shared.clock.at(at)
    }

    /// The life of a request.
    ///
    /// Interim responses of the origin go to `interim` before this is ready, and none afterwards.
    pub async fn respond(
        self: &Rc<Self>,
        peer: Option<IpAddr>,
        scheme: Scheme,
        request: Request<origins::Body>,
        interim: Option<Interim>,
    ) -> (Response<Body>, Note) {
        let config = Rc::clone(&self.config.borrow());
        let (mut parts, body) = request.into_parts();
        if config.router.is_health(parts.uri.path()) {
            return (password::healthy(), Note::default());
        }
        let client = Client::of(peer, scheme, FieldLines::Map(&parts.headers), &config.trusted_proxies);
        question::settle_host(client.scheme, &mut parts.headers);
        if let Some(redirect) = self.redirect_moved(&config, &client, &parts, authority(&parts.headers)) {
            return (redirect, Note { client: client.named(), ..Note::default() });
        }
        let entry = if config.guarded { self.enter(&config, &client, &mut parts).await } else { Entry::Open };
        if let Entry::Answered(response) = entry {
            let site = config.router.site(authority(&parts.headers)).map(|site| site.id);
            return (*response, Note { site, client: client.named(), ..Note::default() });
        }
        let (question, verdict) = match self.judged(&config, client, parts, interim, &mut Silent) {
            Ok(judged) => judged,
            Err(Unjudged::NoSite) => return (failure::page(StatusCode::MISDIRECTED_REQUEST, "no-such-site"), Note::default()),
            Err(Unjudged::Target(site)) => return (failure::page(StatusCode::BAD_REQUEST, "target"), Note::for_site(site.id)),
            Err(Unjudged::Purge { site, parts, authority }) => {
                return (self.purge_request(&config, &site, &client, &parts, &authority), Note::for_site(site.id));
            }
        };
        let site = question.site.id;
        let (mut response, mut note) = match verdict {
            Verdict::Malformed | Verdict::Purge => (failure::page(StatusCode::BAD_REQUEST, "target"), Note::default()),
            Verdict::Pass(rule) => self.pass(Rc::new(question), body, rule).await,
            Verdict::Lookup(_) => self.look_up(Rc::new(question)).await,
        };
        if matches!(entry, Entry::Private) {
            make_private(response.headers_mut());
        }
        note.site = Some(site);
        note.client = client.named();
        note.coding = response.headers().get(header::CONTENT_ENCODING).and_then(|coding| Coding::of_token(coding.as_bytes()));
        (response, note)
    }
}

/// The client's `Host`; empty if an HTTP/1.0 client sent none.
pub(crate) fn authority(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}
