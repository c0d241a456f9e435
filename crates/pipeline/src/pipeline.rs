//! The life of a request, in one function: [`Pipeline::respond`].

use std::{
    cell::{Cell, RefCell},
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use ipnet::IpNet;
use policy::{NotKept, Silent, Trace, Verdict};
use semantics::{
    RequestFields, Scheme, Timestamp,
    cache_status::{CacheStatus, Forwarded, Outcome},
    coding::{Accepted, Coding},
    conditional::{Precondition, evaluate},
    hop_by_hop::nominated_by_connection,
    request::FieldLines,
    reuse::allowed_on_error,
    storable::NotStorable,
    validation::{HeadSays, head_says, same_representation},
};
use store::{Front, Generation, Joined};
use tokio_util::task::TaskTracker;

use crate::{
    Body, Client, Counters, Failure, Interim, Note, Record, Redirect, Resource, Router, Shared, Site, Stored,
    admission::password::{self, Entry, make_private},
    ask::Answer,
    body::file,
    coded::{best, in_passing},
    collapse::{Aside, Followed, flight_of_those_who_say},
    deliver, failure,
    fetch::{STALE_IF_ERROR, Told},
    forward,
    learnt::popularity::Sampler,
    learnt::refill,
    learnt::trouble::Trouble,
    next::{Found, Next},
    question::{self, Question},
};

/// How often a request joins a fetch whose leader then gives up, before it goes alone.
const ATTEMPTS: usize = 4;

/// Bytes of a key beside the host and the target, at most: so it does not grow while it is written.
const KEY_OVERHEAD: usize = 8;

/// How long a request waits for the disk before it goes to the origin. A disk that is slower than this is slower than most origins.
const DISK_WAIT: Duration = Duration::from_secs(2);

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

/// Why a request could not be judged.
pub(crate) enum Unjudged {
    /// No site has its host.
    NoSite,
    /// Its target cannot be understood.
    Target(Rc<Site>),
    /// It is for us: a purge request.
    Purge { site: Rc<Site>, parts: Box<Parts>, authority: String },
}

impl Pipeline {
    /// A worker's pipeline.
    #[must_use]
    pub fn new(shared: Arc<Shared>, counters: Arc<Counters>, router: Router, trusted_proxies: Vec<IpNet>) -> Rc<Self> {
        shared.purging.know_first_sites(&router);
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

    /// Whose request it is, and what that site's policy says to it.
    pub(crate) fn judged(
        &self,
        config: &Config,
        client: Client,
        parts: Parts,
        interim: Option<Interim>,
        trace: &mut impl Trace,
    ) -> Result<(Question, Verdict), Unjudged> {
        let authority = authority(&parts.headers).to_owned();
        let site = config.router.site(&authority).ok_or(Unjudged::NoSite)?.part(parts.uri.path());
        let target_bytes = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
        let mut key = Vec::with_capacity(KEY_OVERHEAD + authority.len() + target_bytes);
        let fields = RequestFields::from_map(&parts.headers);
        let asks = question::Asks::of(site, parts.uri.path(), &fields);
        let head = question::head(&parts, &fields, &authority, client.scheme);
        let mut verdict = question::verdict(site, client.trusted, &head, &mut key, trace);
        if let (Some(route), Verdict::Lookup(_)) = (&site.route, &verdict) {
            trace.decides(
                "route",
                !route.cache,
                || if route.cache { route.path.clone() } else { format!("{}: cache = false", route.path) },
            );
            if !route.cache {
                verdict = Verdict::Pass("route");
                key.clear();
            }
        }
        if verdict == Verdict::Purge {
            return Err(Unjudged::Purge { site: Rc::clone(site), parts: Box::new(parts), authority });
        }
        let way = client.way(fields.lines, &config.trusted_proxies);
        let question = self.question(Rc::clone(site), (client, way), parts, authority, (&verdict, key), (asks, interim));
        question.map(|question| (question, verdict)).ok_or_else(|| Unjudged::Target(Rc::clone(site)))
    }

    fn question(
        &self,
        site: Rc<Site>,
        (client, way): (Client, Vec<IpAddr>),
        parts: Parts,
        authority: String,
        (verdict, key): (&Verdict, Vec<u8>),
        (asks, interim): (question::Asks, Option<Interim>),
    ) -> Option<Question> {
        let (method, version, mut headers, uri) = (parts.method, parts.version, parts.headers, parts.uri);
        let (target, uri) = if uri.path() == "*" {
            ("*".to_owned(), uri)
        } else {
            let target = if site.passes() {
                policy::whole_target(uri.path(), uri.query())?
            } else {
                site.policy.forwarded_target(uri.path(), uri.query())?
            };
            // Nearly always what came is what goes on.
            let same = uri.path_and_query().is_some_and(|whole| whole.as_str() == target);
            let target = target.into_owned();
            let uri = if same { uri } else { target.parse().ok()? };
            (target, uri)
        };
        let asks_cache = match verdict {
            Verdict::Lookup(asked) => Some(*asked),
            Verdict::Pass(_) | Verdict::Purge | Verdict::Malformed => None,
        };
        let asked = asks_cache.unwrap_or_default();
        let hash = self.shared.store.hash(&key);
        let takes_hints = interim.is_some() && site.policy.settings().early_hints.are_for(&method, version, &headers);
        question::reduce(&mut headers, &site, client.trusted, asks_cache);
        // What the client's connection names never reaches the origin, so it must not select a variant either; but what is in the key does.
        if asks.names_hop_by_hop {
            for name in nominated_by_connection(&headers) {
                if name != header::UPGRADE && !site.policy.is_trusted_field(name.as_str()) {
                    headers.remove(name);
                }
            }
        }
        Some(Question { site, client, way, method, headers, version, authority, target, uri, asked, asks, key, hash, interim, takes_hints })
    }

    /// Asks the cache; and the origin, once for all who ask the same.
    async fn look_up(self: &Rc<Self>, question: Rc<Question>) -> (Response<Body>, Note) {
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
    async fn late(
        &self,
        question: &Question,
        candidate: Option<Arc<Stored>>,
        forwarded: Forwarded,
        collapsed: bool,
    ) -> (Response<Body>, Note) {
        self.failed(question, candidate, &Failure::late(), forwarded, collapsed).await
    }

    /// What the fetch that this request began came to.
    async fn told(
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

    /// Asks the origin for this client alone. The answer may still be stored.
    async fn alone(
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

    /// Passes a request through. What an unsafe method may have changed is purged before its answer is seen (RFC 9111 §4.4).
    async fn pass(self: &Rc<Self>, question: Rc<Question>, body: origins::Body, rule: &'static str) -> (Response<Body>, Note) {
        let forwarded = passed_because(rule);
        let fetching = self.shared.store.begin();
        let begun = fetching.begun();
        self.tell_hints(&question);
        let answer = match self.ask(&question, forward::passed(&question, body), question.interim.as_ref()).await {
            Ok(answer) => answer,
            Err(failure) => return self.failed_plainly(&failure, forwarded, false),
        };
        let status = answer.response.status();
        let (parts, body) = answer.response.into_parts();
        let now = self.shared.store.generation();
        let posted = self.posted(&question, status, &parts.headers, (answer.request_time, answer.response_time), begun);
        let since = self.invalidate(&question, status, &parts.headers, now);
        let (body, detail) = match posted.zip(since) {
            Some(((get, kept), begun)) => {
                (self.kept_body(Rc::new(get), (status, parts.headers.clone()), body, kept, begun, fetching), None)
            }
            None => (Body::Origin(body), Some(rule)),
        };
        let explained = CacheStatus { detail, ..forwarded_status(forwarded, Some(status), detail.is_none()) };
        let mut response = Response::from_parts(parts, body);
        policy::remove_dialect(response.headers_mut());
        deliver::explain(response.headers_mut(), &explained);
        let response = in_passing(&question, question.is_personal(), response);
        (response, Note { origin_time: Some(answer.took), ..Note::of(explained.outcome) })
    }

    /// What a 200 to HEAD makes of the stored response to GET (RFC 9111 §4.3.5): the updated one, if it is about that.
    fn looked_at(
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

    /// What is stored for a request, and whether it may be used.
    fn find(&self, question: &Question, now: Timestamp) -> Found {
        self.find_in(self.shared.store.get(question.hash, &question.key), question, now)
    }

    /// What the disk has. A disk that does not answer in time has nothing.
    async fn find_on_disk(&self, question: &Question, now: Timestamp) -> Found {
        let load = self.shared.store.load(question.hash, &question.key);
        let resource = tokio::time::timeout(DISK_WAIT, load).await.ok().flatten();
        self.find_in(resource, question, now)
    }

    fn find_in(&self, resource: Option<Arc<Resource>>, question: &Question, now: Timestamp) -> Found {
        match self.found_in(resource.as_deref(), question, now, &mut Silent) {
            found @ Found::Nothing(Forwarded::UriMiss | Forwarded::VaryMiss) => self.part(question, now).map_or(found, Found::Fresh),
            found => found,
        }
    }

    /// Validates a stale response behind the scenes, unless somebody does already.
    ///
    /// Where that has just failed, it is asked for now and then, and by a request of the site's own: nobody's fields keep a page old.
    fn refresh(self: &Rc<Self>, question: &Rc<Question>, stored: &Arc<Stored>) {
        let (store, now) = (&self.shared.store, self.shared.clock.now());
        let (site, page) = (question.site.down.at(now), self.shared.trouble.at(question.hash, now));
        if site == Trouble::Pause || page == Trouble::Pause || (page == Trouble::Due && !self.shared.trouble.tries(question.hash, now)) {
            return;
        }
        let own = if site == Trouble::Due || page == Trouble::Due {
            refill::question(&question.site, (question.hash, &question.key), stored).map(Rc::new)
        } else {
            None
        };
        let (question, flight) = match own {
            Some(own) => {
                let flight = flight_of_those_who_say(&own.key, self.said(&own, Some(stored)));
                (own, flight)
            }
            // Nobody's cookies go out for all; the next reader without any refreshes it.
            None if !question.is_shareable() => return,
            None => (Rc::clone(question), self.flight_key(question)),
        };
        if let Joined::Lead(lead) = store.join_for(store.hash(&flight), &flight, question.url()) {
            // Nobody waits for it who could be told of interim responses.
            let told = self.begin_fetch(Rc::clone(&question), lead, Some(Arc::clone(stored)), None);
            // For so long it is as good as read: pages would stay old if a refresh always had to make way.
            let wait = question.site.collapse.wait();
            self.tasks.spawn_local(async move { drop(tokio::time::timeout(wait, told).await) });
        }
    }

    /// The key of a flight: that of the resource, and of the variant if it is known what the resource varies on.
    pub(crate) fn flight_key(&self, question: &Question) -> Vec<u8> {
        let resource = self.shared.store.peek(question.hash, &question.key);
        let newest = resource.as_ref().and_then(|resource| resource.variants().first());
        newest.map_or_else(|| question.key.clone(), |newest| variant_flight(question, &newest.record))
    }

    /// Whether a stale response may be served because the origin failed.
    pub(crate) fn stands_in(&self, question: &Question, stored: &Stored, now: Timestamp) -> bool {
        let default = question.site.policy.settings().stale_if_error.unwrap_or(STALE_IF_ERROR);
        allowed_on_error(&question.asks.directives, &stored.record.freshness, now, default)
    }

    /// Answers with what is stored. If that lies in a file that cannot be read, it was not stored after all: the origin is asked.
    async fn deliver(
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
    fn want_best_form(&self, question: &Question, stored: &Arc<Stored>) {
        let fields = question.fields();
        if stored.record.codable && !fields.range.is_present() {
            let accepted = Accepted::of(&fields);
            self.shared.better_form_is_coming((question.hash, &question.key), stored, accepted, best(stored, accepted));
        }
    }

    /// The origin failed: what is stored, if it may stand in, else a plain page.
    async fn failed(
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

    fn failed_plainly(&self, failure: &Failure, forwarded: Forwarded, collapsed: bool) -> (Response<Body>, Note) {
        let status = CacheStatus { detail: Some(failure.name()), collapsed, ..CacheStatus::new(Outcome::Forwarded(forwarded)) };
        let mut response = failure.page();
        deliver::explain(response.headers_mut(), &status);
        (response, Note { collapsed, ..Note::of(status.outcome) })
    }
}

/// The client's `Host`; empty if an HTTP/1.0 client sent none.
pub(crate) fn authority(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Why a request that passes is forwarded (RFC 9211 §2.2).
pub(crate) fn passed_because(rule: &str) -> Forwarded {
    if rule == "method" { Forwarded::Method } else { Forwarded::Bypass }
}

pub(crate) fn forwarded_status(forwarded: Forwarded, status: Option<StatusCode>, stored: bool) -> CacheStatus<'static> {
    CacheStatus { fwd_status: status.map(|status| status.as_u16()), stored, ..CacheStatus::new(Outcome::Forwarded(forwarded)) }
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

/// The key of the flight for the variant that `question` wants of what `record` is one of.
fn variant_flight(question: &Question, record: &Record) -> Vec<u8> {
    let mut flight = question.key.clone();
    flight.push(0);
    record.vary.secondary_key_for(&question.fields(), &mut flight);
    flight
}
