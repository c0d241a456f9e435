//! What an origin says by itself about what has changed: obeyed before its answer goes out.
//!
//! A signal counts in the answer to a write, and before the writer learns that the write succeeded: whoever asks afterwards sees the change.
//! An origin that sends everybody to a password page says so once, and loses all that was public.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    rc::Rc,
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use policy::{
    AcceptClass, Silent, Verdict,
    purge::{Maker, Order, Signal, What, Written},
};
use semantics::{RequestFields, RequestHead, Scheme, Timestamp, invalidation::is_safe};
use store::Generation;
use tokio::time::timeout;

use super::webhook::Reading;
use crate::{
    Client, Failure, Interim, Pipeline, Shared, Site,
    ask::Fetched,
    forward,
    question::{self, Question, Wants},
};

/// The time within which an origin has to show that it is still public after a change of its settings.
const PUBLIC_WITHIN: Duration = Duration::from_secs(2);

/// The most sites of which signals are remembered. There are as many as the configuration has; only those that it had before count beyond.
const SITES_MAX: usize = 4_096;

/// The lines of the field in which an origin says what has changed, taken off its answer to a write.
#[derive(Debug, Clone)]
struct Said(Vec<HeaderValue>);

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
        response.extensions_mut().insert(Said(lines));
    }
}

/// The signals that arrived, by site.
#[derive(Debug, Default)]
pub struct Signalled {
    sites: Mutex<BTreeMap<String, OfSite>>,
    pub(super) reading: Reading,
}

/// The signals of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfSite {
    /// The last purge by a field of an answer.
    pub in_path: Option<Publication>,
    /// The last purge by a webhook.
    pub webhook: Option<Publication>,
    /// When a webhook came last, whatever it said.
    pub webhook_at: Option<Timestamp>,
    /// The number of pages that were fetched again since the last of these purges, before anybody asked for them.
    pub refilled: u64,
    privacy: Privacy,
}

/// A purge that a signal caused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// When it was carried out.
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
}

impl OfSite {
    /// Returns the last purge of which the origin told, and how it did.
    pub(crate) fn last(&self) -> Option<(Maker, &Publication)> {
        let both = [(Maker::Origin, &self.in_path), (Maker::Webhook, &self.webhook)];
        both.into_iter().filter_map(|(by, publication)| Some((by, publication.as_ref()?))).max_by_key(|(_, publication)| publication.at)
    }
}

impl Signalled {
    /// Returns the signals of a site.
    #[must_use]
    pub fn of(&self, site: &str) -> OfSite {
        self.sites.lock().get(site).cloned().unwrap_or_default()
    }

    fn change<T>(&self, site: &str, change: impl FnOnce(&mut OfSite) -> T) -> T {
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
            of_site.privacy = Privacy { is_private, since: Some(now) };
            is_private
        })
    }
}

impl Shared {
    /// Purges for a signal, and remembers it for the operator. Returns `false` if the order was not understood.
    pub(crate) fn publish(&self, order: &Order) -> bool {
        let receipt = match self.purge(order) {
            Ok(receipt) => receipt,
            Err(why) => {
                tracing::warn!(by = order.by.name(), %why, "a signal could not be obeyed as it was written");
                return false;
            }
        };
        let policy::purge::Sites::Named(site) = &order.sites else { return true };
        let publication = Publication { at: self.clock.now(), covered: receipt.in_words(), hard: order.hard };
        self.signalled.change(site, |of_site| {
            of_site.refilled = 0;
            match order.by {
                Maker::Webhook => of_site.webhook = Some(publication),
                _ => of_site.in_path = Some(publication),
            }
        });
        true
    }

    pub(super) fn publish_everything(&self, site: &Site, hard: bool, by: Maker) {
        self.publish(&Order::for_site(&site.name, vec![What::Everything], hard, by));
    }
}

impl Pipeline {
    /// Sends a write to an origin that says what has changed, and obeys it, whether or not the client stays to see the answer.
    pub(crate) async fn write(
        self: &Rc<Self>,
        question: &Rc<Question>,
        request: Request<origins::Body>,
        interim: Option<Interim>,
    ) -> Result<Fetched, Failure> {
        let (pipeline, question) = (Rc::clone(self), Rc::clone(question));
        let written = async move {
            let mut fetched = pipeline.ask(&question, request, interim.as_ref()).await?;
            pipeline.obey(&question, &mut fetched).await;
            Ok(fetched)
        };
        self.tasks.spawn_local(written).await.unwrap_or_else(|_| Err(Failure::given_up("the write was given up")))
    }

    /// Purges what the origin's answer to a write says.
    async fn obey(self: &Rc<Self>, question: &Question, fetched: &mut Fetched) {
        let Some(Said(lines)) = fetched.response.extensions_mut().remove::<Said>() else { return };
        let site = &question.site;
        let mut hosts = BTreeSet::from([question.authority.as_str()]);
        hosts.extend(site.hosts.iter().map(String::as_str).filter(|host| !host.starts_with('*')));
        let hosts: Vec<&str> = hosts.into_iter().collect();
        let Signal { mut everything, changed } = site.policy.signalled(&hosts, &lines);
        if !changed.is_empty() {
            // A host that is not the site's: then nobody can tell which page is meant.
            everything |= !self.shared.publish(&Order::for_site(&site.name, changed, true, Maker::Origin));
        }
        if !everything {
            return;
        }
        self.shared.publish_everything(site, false, Maker::Origin);
        let written = site.policy.written(&question.method, question.uri.path());
        self.ripple_of_write(site, matches!(written, Some(Written::Post | Written::Schedule)));
        fetched.response.extensions_mut().insert(SaidEverything);
        if written == Some(Written::Settings) && !self.is_public(site, question.client.scheme, &question.authority).await {
            self.shared.publish_everything(site, true, Maker::Origin);
        }
    }

    /// Asks the origin as anybody would whether it still shows its front page.
    /// Without any reader yet, it is asked under this scheme and host.
    pub(super) async fn is_public(self: &Rc<Self>, site: &Rc<Site>, scheme: Scheme, host: &str) -> bool {
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
    pub(crate) fn look_for_privacy(&self, question: &Question, status: StatusCode, headers: &HeaderMap, begun: Generation) {
        let (site, policy) = (&question.site, &question.site.policy);
        if question.key.is_empty() || question.carries.is_personal() {
            return;
        }
        let now = self.shared.store.generation();
        if policy.says_private(&question.authority, &question.target, status, headers) {
            if self.shared.signalled.saw(&site.name, true, begun, now) {
                tracing::info!(site = %site.name, "the site has become private: nothing of what was public comes back");
                self.shared.publish_everything(site, true, Maker::Origin);
            }
        } else if policy.says_public(&question.target, status, headers) {
            self.shared.signalled.saw(&site.name, false, begun, now);
        }
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
