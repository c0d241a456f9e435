//! What an origin says by itself about what has changed: obeyed before its answer goes out.
//!
//! A signal counts in the answer to a write, and before the writer learns that the write succeeded: whoever asks afterwards sees the change.
//! An origin that sends everybody to a password page says so once, and loses all that was public.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    rc::Rc,
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use policy::{
    AcceptClass, Silent, Verdict,
    purge::{Maker, Order, Signal, What, WriteSubject},
};
use semantics::{RequestFields, RequestHead, Scheme, Timestamp, invalidation::is_safe};
use store::Generation;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Receipt,
    once::UsedSignatures,
    webhook::Reading,
    writes::{Editors, Writing},
};
use crate::{
    Client, Failure, Pipeline, Shared, Site,
    ask::Fetched,
    fence::PendingPurges,
    forward,
    identity::Identity,
    pass::is_of_a_gateway,
    question::{self, Question, Wants},
};

/// The time within which an origin has to show that it is still public after a change of its settings.
const PUBLIC_WITHIN: Duration = Duration::from_secs(2);

/// The time after which an origin may be asked again whether it is public because a page of it looks as if it were not.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The time between two purges because writes were not answered: who sends such writes keeps no page colder than that.
const UNANSWERED_EVERY: Duration = Duration::from_secs(10);

/// The time between two such purges for those who were not seen to be editors: every user of the site, or everybody, can send such writes.
const UNANSWERED_BY_OTHERS_EVERY: Duration = Duration::from_secs(60);

/// The interval at which a purge that is put off looks whether the server stops.
const LOOKS_WHILE_PUT_OFF: Duration = Duration::from_millis(200);

/// The most sites of which signals are remembered. There are as many as the configuration has; only those that it had before count beyond.
const SITES_MAX: usize = 4_096;

/// The lines of the field in which an origin says what has changed, taken off its answer to a write.
#[derive(Debug, Clone)]
struct SignalLines(Vec<HeaderValue>);

/// Marks the answer to a write after which everything was purged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SaidEverything;

/// Takes the field off an answer in which an origin says what has changed. It is kept for whoever handles the answer, if it may count.
pub(crate) fn take(question: &Question, response: &mut Response<origins::Body>) {
    let Some(name) = question.site.policy.signal_field() else { return };
    let lines: Vec<HeaderValue> = response.headers().get_all(&name).iter().cloned().collect();
    if lines.is_empty() {
        return;
    }
    response.headers_mut().remove(&name);
    if !is_safe(&question.method) && response.status().is_success() {
        response.extensions_mut().insert(SignalLines(lines));
    }
}

/// The signals that arrived, by site.
#[derive(Debug, Default)]
pub struct SignalLog {
    sites: Mutex<BTreeMap<String, SiteSignals>>,
    pub(super) reading: Reading,
    pub(super) once: UsedSignatures,
    pub(super) editors: Editors,
}

/// The signals of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteSignals {
    /// The last purge by a field of an answer.
    pub in_path: Option<Publication>,
    /// The last purge by a webhook.
    pub webhook: Option<Publication>,
    /// The time of the last webhook, whatever it said.
    pub webhook_at: Option<Timestamp>,
    /// The number of pages that were fetched again since the last of these purges, before anybody asked for them.
    pub refilled: u64,
    /// The word of the last page of the origin on its plugin, such as `wordpress/1.0.0`. `None`: the plugin is not there, or nothing was seen.
    pub plugin: Option<String>,
    privacy: Privacy,
    unanswered: UncertainWrites,
}

/// The time of the last purge of a site whose reason was a write with an unknown outcome. If that is in the future, it is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UncertainWrites {
    by_known: Option<Timestamp>,
    by_others: Option<Timestamp>,
}

/// The sender of a write with an unknown outcome. Those who are not known cannot defer a purge for those who are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    Known,
    Other,
}

/// A purge that a signal caused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The time at which it was carried out.
    pub at: Timestamp,
    /// A description of what it covered, in words.
    pub covered: String,
    /// Whether what it covered is never served again.
    pub hard: bool,
}

/// Whether a site shows its pages to everybody, as far as was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Privacy {
    is_private: bool,
    /// The generation at which that was seen: what was asked for before does not count.
    since: Option<Generation>,
    /// The time when the front page was asked for because another page was behind the password.
    asked: Option<Timestamp>,
}

impl SiteSignals {
    /// Returns the last purge of which the origin told, and how it did.
    pub(crate) fn last(&self) -> Option<(Maker, &Publication)> {
        let both = [(Maker::Origin, &self.in_path), (Maker::Webhook, &self.webhook)];
        both.into_iter().filter_map(|(by, publication)| Some((by, publication.as_ref()?))).max_by_key(|(_, publication)| publication.at)
    }
}

impl SignalLog {
    /// Returns the signals of a site.
    #[must_use]
    pub fn of(&self, site: &str) -> SiteSignals {
        self.sites.lock().get(site).cloned().unwrap_or_default()
    }

    fn change<T>(&self, site: &str, change: impl FnOnce(&mut SiteSignals) -> T) -> T {
        let mut sites = self.sites.lock();
        if sites.len() >= SITES_MAX && !sites.contains_key(site) {
            sites.clear();
        }
        change(sites.entry(site.to_owned()).or_default())
    }

    /// Notes that a page of a site was fetched again before anybody asked for it.
    pub(crate) fn refilled(&self, site: &str) {
        if let Some(of_site) = self.sites.lock().get_mut(site) {
            of_site.refilled += 1;
        }
    }

    /// Notes what an answer of a site's origin said of its plugin.
    pub fn plugin_said(&self, site: &str, plugin: Option<&str>) {
        if self.sites.lock().get(site).and_then(|of_site| of_site.plugin.as_deref()) != plugin {
            self.change(site, |of_site| of_site.plugin = plugin.map(str::to_owned));
        }
    }

    /// Notes what a look has found of a site's plugin that began when `before` was known. A page that said otherwise meanwhile is newer.
    pub fn plugin_was_seen(&self, site: &str, before: Option<&str>, plugin: Option<&str>) {
        self.change(site, |of_site| {
            if of_site.plugin.as_deref() == before {
                of_site.plugin = plugin.map(str::to_owned);
            }
        });
    }

    /// Notes that a webhook of a site came, whatever it said.
    pub(super) fn webhook_came(&self, site: &str, now: Timestamp) {
        self.change(site, |of_site| of_site.webhook_at = Some(now));
    }

    /// Notes what an answer to a request of nobody's showed that began at `begun`. Returns whether the site has just become private.
    fn saw(&self, site: &str, is_private: bool, begun: Generation, now: Generation) -> bool {
        self.change(site, |of_site| {
            let known = of_site.privacy;
            if known.is_private == is_private || known.since.is_some_and(|since| begun < since) {
                return false;
            }
            of_site.privacy = Privacy { is_private, since: Some(now), asked: None };
            is_private
        })
    }

    /// Returns whether the front page is to be asked for, as an answer to a request that began at `begun` looks as if the site were private.
    fn doubts(&self, site: &str, begun: Generation, now: Timestamp) -> bool {
        self.change(site, |of_site| {
            let known = &mut of_site.privacy;
            let is_news = !known.is_private && known.since.is_none_or(|since| begun >= since);
            let asks = is_news && known.asked.is_none_or(|asked| now.since(asked) >= ASKED_AGAIN_AFTER);
            if asks {
                known.asked = Some(now);
            }
            asks
        })
    }

    /// Returns after what time a site is to be purged for a write that was not answered. `None`: a purge that is on its way covers it.
    fn unanswered(&self, site: &str, writer: Writer, now: Timestamp) -> Option<Duration> {
        self.change(site, |of_site| {
            let (last, every) = match writer {
                Writer::Known => (&mut of_site.unanswered.by_known, UNANSWERED_EVERY),
                Writer::Other => (&mut of_site.unanswered.by_others, UNANSWERED_BY_OTHERS_EVERY),
            };
            let wait = match *last {
                Some(at) if at > now => return None,
                Some(at) => every.saturating_sub(now.since(at)),
                None => Duration::ZERO,
            };
            *last = Some(now + wait);
            Some(wait)
        })
    }
}

impl Shared {
    /// Purges for a signal, and remembers it for the operator. Returns `false` if the order was not understood.
    pub(crate) fn publish(&self, order: &Order, caused: &PendingPurges) -> bool {
        match self.purge_telling(order) {
            Ok((receipt, elsewhere)) => {
                caused.add(elsewhere);
                self.remember_publication(order, &receipt);
                true
            }
            Err(why) => {
                tracing::warn!(by = order.by.name(), %why, "a signal could not be obeyed as it was written");
                false
            }
        }
    }

    /// Remembers for the operator what a signal purged; other purges are not publications.
    pub(super) fn remember_publication(&self, order: &Order, receipt: &Receipt) {
        let policy::purge::Sites::Named(site) = &order.sites else { return };
        // A comment is not a publication.
        if !order.by.is_signal() || order.what.iter().all(policy::Policy::is_aside) {
            return;
        }
        let publication = Publication { at: self.clock.now(), covered: receipt.in_words(), hard: order.hard };
        self.signalled.change(site, |of_site| {
            of_site.refilled = 0;
            match order.by {
                Maker::Webhook => of_site.webhook = Some(publication),
                _ => of_site.in_path = Some(publication),
            }
        });
    }

    pub(super) fn publish_everything(&self, site: &Site, hard: bool, by: Maker, caused: &PendingPurges) {
        self.publish(&Order::for_site(&site.name, vec![What::Everything], hard, by), caused);
    }
}

impl Pipeline {
    /// Sends a write to an origin that says what has changed or shows it by what it accepts, and purges for it. What that has `caused` is for the
    /// caller to wait for. If it `must_count`, it does so whether or not the client stays to see the answer; otherwise a client that leaves ends it.
    pub(crate) async fn write(
        self: &Rc<Self>,
        question: &Rc<Question>,
        request: Box<Request<origins::Body>>,
        writing: Option<Writing>,
        must_count: bool,
        caused: &Rc<PendingPurges>,
    ) -> Result<Box<Fetched>, Failure> {
        let caused = Rc::clone(caused);
        let (pipeline, question, interim) = (Rc::clone(self), Rc::clone(question), question.interim.clone());
        let written = async move {
            let mut answered = pipeline.ask(&question, request, interim.as_ref()).await;
            match (&mut answered, &writing) {
                (Ok(fetched), Some(writing)) => pipeline.judge_write(&question, writing, fetched, &caused).await,
                (Ok(fetched), None) if is_of_a_gateway(fetched.response.status()) => pipeline.may_have_written(&question, &caused),
                (Ok(fetched), None) => pipeline.obey(&question, fetched, &caused).await,
                (Err(failure), Some(writing)) if failure.was_perhaps_sent() => {
                    pipeline.may_be_accepted(&question, writing, failure.status(), &caused);
                }
                (Err(failure), None) if failure.was_perhaps_sent() => pipeline.may_have_written(&question, &caused),
                (Err(_), _) => {}
            }
            answered
        };
        if must_count {
            self.tasks.spawn_local(written).await.unwrap_or_else(|_| Err(Failure::given_up("the write was given up")))
        } else {
            written.await
        }
    }

    /// Purges for a write that the origin may have carried out, although no answer says so: everything may have changed.
    ///
    /// Anybody can send such a write. Those that carry nothing by which an editor is known are refused by the origin, and count for nothing;
    /// others purge now and then at most, and the last one is never lost.
    fn may_have_written(self: &Rc<Self>, question: &Question, caused: &PendingPurges) {
        let site = &question.site;
        let Some(written) = site.policy.written(&question.method, question.uri.path()) else { return };
        if site.policy.may_be_of_editor(written, &question.headers) {
            self.purge_for_unanswered(site, Writer::Known, Maker::Origin, caused);
        }
    }

    /// Purges softly for a write of which nobody knows what came of it: at once, or when the last such purge is long enough ago.
    pub(super) fn purge_for_unanswered(self: &Rc<Self>, site: &Rc<Site>, writer: Writer, by: Maker, caused: &PendingPurges) {
        let Some(wait) = self.shared.signalled.unanswered(&site.name, writer, self.shared.clock.now()) else { return };
        let order = Order::for_site(&site.name, vec![What::Everything], false, by);
        if wait.is_zero() {
            self.purge_unanswered(site, &order, caused);
        } else {
            let (pipeline, site) = (Rc::clone(self), Rc::clone(site));
            self.tasks.spawn_local(async move {
                // When the server stops it is time, as what is on the disk outlives it.
                let due = Instant::now() + wait;
                while Instant::now() < due && !pipeline.tasks.is_closed() {
                    sleep(due.saturating_duration_since(Instant::now()).min(LOOKS_WHILE_PUT_OFF)).await;
                }
                // Nobody waits for it any more.
                pipeline.purge_unanswered(&site, &order, &PendingPurges::default());
            });
        }
    }

    fn purge_unanswered(&self, site: &Site, order: &Order, caused: &PendingPurges) {
        tracing::info!(site = %site.name, "a write may have been carried out: everything may have changed");
        match self.shared.purge_telling(order) {
            Ok((_, elsewhere)) => caused.add(elsewhere),
            Err(why) => tracing::warn!(site = %site.name, %why, "could not purge for a write that may have been carried out"),
        }
        self.ripple_of_write(site, false);
    }

    /// Purges what the origin's answer to a write says.
    async fn obey(self: &Rc<Self>, question: &Question, fetched: &mut Fetched, caused: &PendingPurges) {
        let written = question.site.policy.written(&question.method, question.uri.path());
        if written == Some(WriteSubject::Keys) && fetched.response.status().is_success() {
            // The origin says nothing of keys that have ended.
            let ended = vec![question.site.policy.ended_by_keys()];
            self.shared.publish(&Order::for_site(&question.site.name, ended, true, Maker::Origin), caused);
        }
        let Some(SignalLines(lines)) = fetched.response.extensions_mut().remove::<SignalLines>() else { return };
        let site = &question.site;
        let mut hosts = BTreeSet::from([question.authority.as_str()]);
        hosts.extend(site.hosts.iter().map(String::as_str).filter(|host| !host.starts_with('*')));
        let hosts: Vec<&str> = hosts.into_iter().collect();
        let Signal { mut everything, changed } = site.policy.signalled(&hosts, &lines);
        // A site without hosts has every host, and nobody knows under which its readers are.
        everything |= site.hosts.is_empty() && changed.iter().any(|what| matches!(what, What::Url(_)));
        if !changed.is_empty() {
            // A host that is not the site's: then nobody can tell which page is meant.
            everything |= !self.shared.publish(&Order::for_site(&site.name, changed, true, Maker::Origin), caused);
        }
        if !everything {
            return;
        }
        let is_unsaid = written.is_some_and(|written| site.policy.may_withdraw_unsaid(&question.method, question.uri.path(), written));
        self.shared.publish_everything(site, is_unsaid, Maker::Origin, caused);
        self.ripple_of_write(site, matches!(written, Some(WriteSubject::Post | WriteSubject::Schedule)));
        fetched.response.extensions_mut().insert(SaidEverything);
        if written == Some(WriteSubject::Settings) && !self.is_public(site, question.client.scheme, &question.authority).await {
            self.shared.publish_everything(site, true, Maker::Origin, caused);
        }
    }

    /// Asks the origin as anybody would whether it still shows its front page.
    /// Without any reader yet, it is asked under this scheme and host.
    pub(super) async fn is_public(&self, site: &Rc<Site>, scheme: Scheme, host: &str) -> bool {
        let front_page = site.policy.front_page();
        // Where editors have a host of their own, readers are not there.
        let reader = || AsReader { scheme, host: host.to_owned(), accept: AcceptClass::Html.plain() };
        let reader = self.most_readers(site, &front_page).unwrap_or_else(reader);
        let Some(question) = anybodys(&self.shared, site, &reader, &front_page) else { return false };
        let asked = self.ask(&question, forward::shared(&question, None), None);
        matches!(timeout(PUBLIC_WITHIN, asked).await, Ok(Ok(fetched)) if fetched.response.status().is_success())
    }

    /// Finds out as whom readers ask for a page most.
    pub(crate) fn most_readers(&self, site: &Site, path: &str) -> Option<AsReader> {
        self.shared.popularity.most().into_iter().find_map(|(_, key)| {
            let key = policy::Key::read(&key).filter(|key| key.site == site.id && key.target == path)?;
            Some(AsReader { scheme: key.scheme, host: key.host.to_owned(), accept: key.class.plain() })
        })
    }

    /// Looks at an answer to a request that anybody could have sent: a site that has become private loses what was stored of it, once.
    ///
    /// That the front page is behind the password says so. Another page may be redirected to anywhere: then the front page is asked for, and the
    /// answer to that is looked at as well. Returns what has to be waited for until that is so.
    pub(crate) fn look_for_privacy<'a>(
        &'a self,
        question: &'a Question,
        status: StatusCode,
        headers: &HeaderMap,
        begun: Generation,
        caused: &PendingPurges,
    ) -> Option<Pin<Box<dyn Future<Output = bool> + 'a>>> {
        let (site, policy) = (&question.site, &question.site.policy);
        if question.key.is_empty() || question.carries.is_personal() {
            return None;
        }
        let now = self.shared.store.generation();
        if policy.says_private(&question.authority, &question.target, status, headers) {
            if question.target != policy.front_page() {
                let asks = self.shared.signalled.doubts(&site.name, begun, self.shared.clock.now());
                return asks.then(|| Box::pin(self.is_public(site, question.client.scheme, &question.authority)) as Pin<Box<_>>);
            }
            if self.shared.signalled.saw(&site.name, true, begun, now) {
                tracing::info!(site = %site.name, "the site has become private: nothing of what was public comes back");
                self.shared.publish_everything(site, true, Maker::Origin, caused);
            }
        } else if policy.says_public(&question.target, status, headers) {
            self.shared.signalled.saw(&site.name, false, begun, now);
        }
        None
    }
}

/// The part of a request by which one reader's page is another one's.
#[derive(Debug, Clone)]
pub(crate) struct AsReader {
    scheme: Scheme,
    host: String,
    accept: Option<&'static str>,
}

/// Makes a request of nobody's for an address. `None` if no such request asks the cache.
pub(crate) fn anybodys(shared: &Shared, site: &Rc<Site>, reader: &AsReader, target: &str) -> Option<Question> {
    let AsReader { scheme, host, accept } = reader;
    let scheme = *scheme;
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).ok()?);
    headers.insert(header::USER_AGENT, crate::learnt::refill::USER_AGENT);
    if let Some(accept) = accept {
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    }
    let uri: http::Uri = target.parse().ok()?;
    let fields = RequestFields::from_map(&headers);
    let head = RequestHead { method: &Method::GET, scheme, authority: host, path: uri.path(), query: uri.query(), fields: &fields };
    let mut key = Vec::new();
    let Verdict::Lookup(carries) = question::verdict(site, false, &head, &mut key, &mut Silent) else { return None };
    let wants = Wants::of(site, uri.path(), &fields);
    let ourselves = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Some(Question {
        site: Rc::clone(site),
        client: Client { peer: ourselves, trusted: false, address: ourselves, scheme, said_http: false },
        identity: Identity::of_our_own(shared),
        way: Vec::new(),
        method: Method::GET,
        version: http::Version::HTTP_11,
        authority: host.clone(),
        target: target.to_owned(),
        left_out: None,
        member: None,
        uri,
        carries,
        wants,
        interim: None,
        takes_hints: false,
        hash: shared.store.hash(&key),
        key,
        headers,
    })
}
