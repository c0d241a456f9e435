//! After a soft purge, or a doubt: the pages people read come back first, before the next reader has to be given the old one.
//!
//! One worker asks again for what was purged, most read first, a few requests at once and never more than a quarter of what the origin is
//! allowed. Readers go before it: it waits while anybody waits for the origin, while the origin is down, and while it answers slower than it
//! usually does. Another purge begins it anew: what was asked for in between may be old already. What it misses is fetched when it is
//! asked for, as without it.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, header};
use origins::server::Budget;
use policy::{Carries, Holds, Key, Silent, Verdict};
use semantics::{RequestFields, RequestHead, Timestamp, target::canonical_authority, vary::Vary};
use store::{Generation, Hardness, Joined, KeyHash, Purged};
use tokio::sync::Notify;

use crate::{
    Client, Pipeline, Shared, Site, Stored,
    anybody::{AsReader, anybodys},
    collapse::flight_of,
    fetch::FetchOutcome,
    identity::Identity,
    learnt::trouble::{Failures, Trouble},
    purge::ripple::Ripples,
    question::{self, HashedKey, Question, Wants},
};

/// The time for which a refill waits after a purge. The origin may not know yet what it has just announced: the routes of content
/// management systems come a little later.
const DELAY: Duration = Duration::from_secs(1);

/// The longest time that a refill takes. Then it leaves the rest to its readers.
const TIME_MAX: Duration = Duration::from_secs(600);

/// The interval at which a refill that waits looks whether it is time: a clock may be moved, an origin may recover.
const LOOK: Duration = Duration::from_millis(100);

/// The number of times that one page is asked for while the origin fails.
const ATTEMPTS: u32 = 3;

/// The origin is slow if what it takes now is more than so many times what it usually takes,
const SLOW: u64 = 3;
/// and more by so much: a fast origin may treble its two milliseconds.
const SLOW_MIN: Duration = Duration::from_millis(50);

/// The time for which a slow origin is left alone: it grows from the first to the last.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The `User-Agent` of these requests.
pub(crate) const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("Seawall/", env!("CARGO_PKG_VERSION"), " (refill)"));

/// The part of refills that all workers share.
#[derive(Debug, Default)]
pub struct Refilling {
    wanted: Notify,
    /// The number of purges of either hardness: a refill begun before the last one is out of date.
    purges: AtomicU64,
    refilled: AtomicU64,
    pending: AtomicU64,
    /// The pages that publications have changed, where that is known.
    pub(crate) ripples: Ripples,
}

impl Refilling {
    pub(crate) fn purged(&self, hardness: Hardness) {
        self.purges.fetch_add(1, Relaxed);
        if hardness == Hardness::Soft {
            self.wanted.notify_one();
        }
    }

    /// Begins the refill anew, as more is known of what was purged.
    pub(crate) fn begin_anew(&self) {
        self.purged(Hardness::Soft);
    }

    /// Returns how many stored responses were fetched again before anybody asked for them.
    #[must_use]
    pub fn refilled(&self) -> u64 {
        self.refilled.load(Relaxed)
    }

    /// Pages that are still to be asked for.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.pending.load(Relaxed)
    }
}

/// The rules by which a site is refilled, and what is known of its origin.
#[derive(Debug, Default)]
pub struct Refill {
    concurrency: usize,
    budget: Option<Arc<Budget>>,
    pub(crate) pace: Pace,
    /// The failures of its own requests: none of them is a client's.
    failures: Cell<Failures>,
}

impl Refill {
    /// Allows `concurrency` requests at once, at most a quarter of what the origin's budget allows, and at least one. 0 allows none.
    #[must_use]
    pub fn new(concurrency: usize, budget: Option<Arc<Budget>>) -> Self {
        Self { concurrency, budget, pace: Pace::default(), failures: Cell::default() }
    }

    /// Returns the most requests at once. The origin's places may become more and fewer.
    fn lanes(&self) -> usize {
        let quarter = self.budget.as_ref().map_or(usize::MAX, |budget| (budget.concurrency() / 4).max(1));
        self.concurrency.min(quarter)
    }

    /// Returns whether refilling pauses, because the last page failed.
    fn rests(&self, now: Timestamp) -> bool {
        self.failures.get().at(now) == Trouble::Pause
    }

    fn ended(&self, done: bool, now: Timestamp, begun: Generation) {
        let mut failures = if done { Failures::default() } else { self.failures.get() };
        if !done {
            failures.pause(now, begun);
        }
        self.failures.set(failures);
    }

    fn readers_wait(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.waiting() > 0)
    }
}

/// The pace of an origin: how fast it answers and how fast it usually does, as one worker sees it. In microseconds.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    recent: Cell<u64>,
    usual: Cell<u64>,
    pause: Cell<Duration>,
    until: Cell<Timestamp>,
}

impl Pace {
    /// Notes how long the origin took for a response's head.
    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 128);
        if self.usual.get() == 0 {
            self.usual.set(time.max(1));
            self.recent.set(time);
        } else {
            self.recent.set((self.recent.get() * 3 + time) / 4);
            self.usual.set(((self.usual.get() * 63 + time) / 64).max(1));
        }
    }

    fn is_slow(&self) -> bool {
        let slow = (self.usual.get() * SLOW).max(self.usual.get() + u64::try_from(SLOW_MIN.as_micros()).unwrap_or_default());
        self.recent.get() > slow
    }

    /// Returns whether the origin may be asked for one more page. A slow one is tried with a single request after each pause; its answer tells.
    fn allows(&self, now: Timestamp) -> bool {
        if !self.is_slow() {
            self.pause.set(Duration::ZERO);
            self.until.set(Timestamp::default());
            return true;
        }
        if now < self.until.get() {
            return false;
        }
        let first = self.pause.get().is_zero();
        let pause = (self.pause.get() * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.pause.set(pause);
        self.until.set(now + pause);
        !first
    }
}

/// A page to be asked for again.
struct Page {
    hash: KeyHash,
    key: Box<[u8]>,
    attempts: u32,
    /// The reader as whom a page is asked for that is not stored, and its path; `None`: only what is stored is asked for again.
    new: Option<(AsReader, String)>,
}

impl Page {
    fn key(&self) -> HashedKey<'_> {
        HashedKey { hash: self.hash, key: &self.key }
    }
}

/// One refill, until another purge overtakes it.
struct Run<'a> {
    pipeline: &'a Rc<Pipeline>,
    purges: u64,
    ends: Timestamp,
}

impl Pipeline {
    /// Refills after every soft purge. To be run on one worker.
    pub async fn refill(self: Rc<Self>) -> Infallible {
        let refilling = &self.shared.refilling;
        loop {
            refilling.wanted.notified().await;
            while !self.refill_once().await {}
            refilling.pending.store(0, Relaxed);
        }
    }

    /// Refills once. Returns whether that came to its end; otherwise there was another purge.
    async fn refill_once(self: &Rc<Self>) -> bool {
        let shared = &self.shared;
        while shared.clock.now() < shared.purged_at() + DELAY {
            tokio::time::sleep(LOOK.min((shared.purged_at() + DELAY).since(shared.clock.now()))).await;
        }
        let run = Run { pipeline: self, purges: shared.refilling.purges.load(Relaxed), ends: shared.clock.now() + TIME_MAX };
        // Each origin by itself: that of a site, and those of its parts.
        let mut sites: Vec<(Rc<Site>, RefCell<VecDeque<Page>>)> = Vec::new();
        let mut changed: Vec<u16> = Vec::new();
        for (hash, key) in shared.popularity.most() {
            let Some(site) = self.origin_of(&key) else { continue };
            if let Some(paths) = shared.refilling.ripples.of(site.id) {
                // Its own order, once for the whole site.
                if !changed.contains(&site.id)
                    && let Some(whole) = self.site(site.id)
                {
                    changed.push(site.id);
                    let pages = self.changed(&whole, &paths);
                    sites.push((whole, RefCell::new(pages)));
                }
                continue;
            }
            if self.to_be_validated(hash, &key).is_empty() {
                continue;
            }
            let page = Page { hash, key, attempts: 0, new: None };
            match sites.iter().find(|(known, _)| Rc::ptr_eq(known, &site)) {
                Some((_, pages)) => pages.borrow_mut().push_back(page),
                None => sites.push((site, RefCell::new(VecDeque::from([page])))),
            }
        }
        let pending = sites.iter().filter(|(site, _)| site.refill.lanes() > 0).map(|(_, pages)| pages.borrow().len() as u64);
        shared.refilling.pending.store(pending.sum(), Relaxed);
        join_all(sites.iter().flat_map(|(site, pages)| (0..site.refill.lanes()).map(|_| run.lane(site, pages)))).await;
        !run.is_overtaken()
    }

    /// Finds the pages of a site that a publication has changed, in the order of these paths: as they are read, and under the host and in the
    /// form in which the front page is read most. The post itself is among them although nobody has read it yet.
    fn changed(&self, site: &Rc<Site>, paths: &[String]) -> VecDeque<Page> {
        let shared = &self.shared;
        let popular = shared.popularity.most();
        let reader = self.most_readers(site, &site.policy.front_page());
        let lists_of_all = site.policy.lists_of_all();
        let mut pages: VecDeque<Page> = VecDeque::new();
        for path in paths {
            let read = popular.iter().filter(|(_, key)| Key::read(key).is_some_and(|key| key.site == site.id && key.path() == path));
            let own =
                reader.as_ref().and_then(|reader| anybodys(shared, site, reader, path)).map(|own| (own.hash, own.key.into_boxed_slice()));
            for (hash, key) in read.cloned().chain(own.clone()) {
                if pages.iter().any(|page| page.key == key) {
                    continue;
                }
                let is_own = own.as_ref().is_some_and(|(_, own)| *own == key);
                let is_new = is_own && !lists_of_all.contains(path) && shared.store.get(hash, &key).is_none();
                if is_new || !self.to_be_validated(hash, &key).is_empty() {
                    let new = reader.clone().filter(|_| is_new).map(|reader| (reader, path.clone()));
                    pages.push_back(Page { hash, key, attempts: 0, new });
                }
            }
        }
        pages
    }

    /// Finds the site that a key belongs to, or the part of it.
    fn origin_of(&self, key: &[u8]) -> Option<Rc<Site>> {
        let read = Key::read(key)?;
        self.site(read.site).map(|site| Rc::clone(site.part(read.path())))
    }

    /// Returns the stored responses under a key that a soft purge or a doubt covers.
    fn to_be_validated(&self, hash: KeyHash, key: &[u8]) -> Vec<Arc<Stored>> {
        let store = &self.shared.store;
        let resource = store.get(hash, key);
        resource
            .iter()
            .flat_map(|resource| resource.variants())
            .filter(|stored| matches!(store.verdict(stored), Purged::Soft | Purged::Doubted))
            .cloned()
            .collect()
    }
}

impl Run<'_> {
    fn is_overtaken(&self) -> bool {
        self.pipeline.shared.refilling.purges.load(Relaxed) != self.purges
    }

    fn is_over(&self) -> bool {
        self.is_overtaken() || self.pipeline.shared.clock.now() >= self.ends
    }

    /// Sends one request after the other, until nothing is left.
    async fn lane(&self, site: &Rc<Site>, pages: &RefCell<VecDeque<Page>>) {
        let pending = &self.pipeline.shared.refilling.pending;
        while !pages.borrow().is_empty() && self.wait_for_origin(site).await {
            let Some(mut page) = pages.borrow_mut().pop_front() else { return };
            let begun = self.pipeline.shared.store.generation();
            let done = self.page(site, &page).await;
            site.refill.ended(done, self.pipeline.shared.clock.now(), begun);
            page.attempts += 1;
            if done || page.attempts >= ATTEMPTS {
                let _ = pending.fetch_update(Relaxed, Relaxed, |pages| pages.checked_sub(1));
            } else {
                pages.borrow_mut().push_front(page);
            }
        }
    }

    /// Waits until the origin has time for a refill. Returns `false` if the refill is over.
    async fn wait_for_origin(&self, site: &Site) -> bool {
        loop {
            let now = self.pipeline.shared.clock.now();
            if self.is_over() {
                return false;
            }
            if !site.origin_state.is_down(now) && !site.refill.rests(now) && !site.refill.readers_wait() && site.refill.pace.allows(now) {
                return true;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Fetches every variant of a page that was purged. Returns `false` if the origin failed.
    async fn page(&self, site: &Rc<Site>, page: &Page) -> bool {
        let (pipeline, store) = (self.pipeline, &self.pipeline.shared.store);
        if let Some((reader, path)) = &page.new
            && store.get(page.hash, &page.key).is_none()
        {
            let Some(question) = anybodys(&pipeline.shared, site, reader, path).map(Rc::new) else { return true };
            let is_still_new = || store.get(page.hash, &page.key).is_none();
            return self.fetch(question, None, is_still_new).await.unwrap_or(true);
        }
        for stored in pipeline.to_be_validated(page.hash, &page.key) {
            let Some(question) = question(&pipeline.shared, site, page.key(), &stored).map(Rc::new) else { continue };
            if store.uncacheable(question.hash, pipeline.shared.clock.now().as_millis()) {
                continue;
            }
            let is_still_purged = || pipeline.to_be_validated(page.hash, &page.key).iter().any(|still| Arc::ptr_eq(still, &stored));
            if self.fetch(question, Some(Arc::clone(&stored)), is_still_purged).await == Some(false) {
                return false;
            }
        }
        true
    }

    /// Asks the origin for a page, and reads it to its end. Returns whether the origin answered; `None` if nobody is asked.
    async fn fetch(&self, question: Rc<Question>, stored: Option<Arc<Stored>>, is_wanted: impl Fn() -> bool) -> Option<bool> {
        let (pipeline, store) = (self.pipeline, &self.pipeline.shared.store);
        let flight = flight_of(store, &question);
        // Somebody asks for it already; or, if there are too many flights, readers need them.
        let moment = pipeline.shared.fence.moment(pipeline.shared.clock.now());
        let Joined::Lead(lead) = store.join_for(store.hash(&flight), &flight, question.url(), moment) else { return None };
        if !is_wanted() {
            return None;
        }
        match pipeline.begin_fetch(Rc::clone(&question), lead, stored, None, None).await {
            Ok(FetchOutcome::Growing(mut grows)) => {
                // To its end: that is how long the origin is busy with it.
                while let Some(chunk) = grows.body.chunk().await {
                    if chunk.is_err() {
                        return Some(false);
                    }
                }
            }
            Ok(FetchOutcome::Confirmed { .. }) => {}
            // Another machine has refilled it, or it is not for all.
            Ok(FetchOutcome::Found(_) | FetchOutcome::Alone { .. }) => return None,
            Ok(FetchOutcome::Failed(_)) | Err(_) => return Some(false),
        }
        pipeline.shared.refilling.refilled.fetch_add(1, Relaxed);
        pipeline.shared.signalled.refilled(&question.site.name);
        Some(true)
    }
}

/// Makes the request that has this answer: what the key says, and the fields that the response nominates as they were. `None` if there is
/// no such request that anybody could send, and whose answer everybody may have.
pub(crate) fn question(shared: &Shared, site: &Rc<Site>, of: HashedKey<'_>, stored: &Stored) -> Option<Question> {
    // What members of a tier share is refreshed by one of them.
    let read = Key::read(of.key).filter(|key| key.holds == Holds::Whole && key.tier.is_none())?;
    // A key of a former version, which nobody asks for any more.
    if canonical_authority(read.scheme, read.host) != read.host {
        return None;
    }
    let is_trusted = !read.trusted_fields.is_empty();
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(read.host).ok()?);
    headers.insert(header::USER_AGENT, USER_AGENT);
    if let Some(accept) = read.class.plain() {
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    }
    for (name, value) in &read.trusted_fields {
        headers.append(name, HeaderValue::from_bytes(value).ok()?);
    }
    let Vary::Nominated(nominated) = &stored.record.vary else { return None };
    for (name, value) in nominated {
        match value {
            Some(value) => headers.insert(name, HeaderValue::from_bytes(value).ok()?),
            None => headers.remove(name),
        };
    }
    // Whether this is the request is for the policy to say, and not for what was made of the key.
    let mut key = Vec::new();
    let (path, query) = (read.path(), read.query());
    let fields = RequestFields::from_map(&headers);
    let head = RequestHead { method: &Method::GET, scheme: read.scheme, authority: read.host, path, query, fields: &fields };
    let verdict = question::verdict(site, is_trusted, &head, &mut key, &mut Silent);
    if verdict != Verdict::Lookup(Carries::default()) || *key != *of.key || !stored.record.vary.matches(&fields) {
        return None;
    }
    let wants = Wants::of(site, path, &fields);
    let ourselves = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let question = Question {
        site: Rc::clone(site),
        client: Client { peer: ourselves, trusted: is_trusted, address: ourselves, scheme: read.scheme, said_http: false },
        identity: Identity::of_our_own(shared),
        way: Vec::new(),
        method: Method::GET,
        version: http::Version::HTTP_11,
        authority: read.host.to_owned(),
        target: read.target.to_owned(),
        left_out: None,
        uri: read.target.parse().ok()?,
        carries: Carries::default(),
        member: None,
        wants,
        interim: None,
        takes_hints: false,
        hash: of.hash,
        key,
        headers,
    };
    question.is_shareable().then_some(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn at_most_a_quarter_of_the_budget_but_one() {
        let budget = |concurrency| Some(Arc::new(Budget::new(concurrency, 1, millis(1))));
        for (concurrency, budget, lanes) in [
            (2, budget(256), 2),
            (64, budget(256), 64),
            (64, budget(100), 25),
            (2, budget(4), 1),
            (2, budget(1), 1),
            (0, budget(256), 0),
            (2, None, 2),
        ] {
            assert_eq!(Refill::new(concurrency, budget).lanes(), lanes);
        }
    }

    #[test]
    fn a_slow_origin_is_left_alone_for_longer_each_time_and_tried_with_one() {
        let pace = Pace::default();
        let mut now = Timestamp::from_secs(1_000);
        assert!(pace.allows(now), "nothing is known of it");
        (0..20).for_each(|_| pace.took(millis(40)));
        pace.took(millis(90));
        assert!(pace.allows(now), "no two answers take the same time");
        (0..4).for_each(|_| pace.took(millis(900)));
        for pause in [1, 2, 4, 8, 16, 30, 30] {
            assert!(!pace.allows(now));
            now = now + Duration::from_secs(pause) - millis(1);
            assert!(!pace.allows(now), "{pause}");
            now = now + millis(1);
            assert!(pace.allows(now), "one to find out");
        }
        (0..12).for_each(|_| pace.took(millis(40)));
        assert!(pace.allows(now) && pace.allows(now));
    }

    #[test]
    fn a_fast_origin_may_treble_its_milliseconds() {
        let pace = Pace::default();
        pace.took(millis(2));
        (0..4).for_each(|_| pace.took(millis(20)));
        assert!(!pace.is_slow());
    }
}
