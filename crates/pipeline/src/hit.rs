//! [`Pipeline::hit`]: the beginning of [`Pipeline::respond`] cut short, for the case in which nothing has to wait; and
//! [`Pipeline::again`], which is shorter still, for a head that was answered so before.

use std::{
    net::IpAddr,
    rc::{Rc, Weak},
    time::Instant,
};

use bytes::Bytes;
use http::{Method, StatusCode};
use policy::{Silent, Verdict};
use semantics::{
    RequestFields, RequestHead, Timestamp,
    cache_status::Outcome,
    coding::{AcceptedCodings, Coding},
    conditional::Precondition,
    dictionary,
    request::INCIDENTAL_FIELDS,
    target::canonical_authority,
};
use store::{HotOrStored, Page};

use crate::{
    Client, Note, Pipeline, Record, Stored, admission,
    coded::best,
    deliver,
    question::{self, HashedKey},
    record::Form,
};

/// A hit: its head is written, its content is here.
#[derive(Debug)]
pub struct Hit {
    /// The status written.
    pub status: StatusCode,
    /// The stored content; `None` if none is to be sent.
    pub content: Option<HitContent>,
    /// The note for the log.
    pub note: Note,
    /// The facts that [`Pipeline::again`] needs, if the head alone decides.
    pub facts: Option<HitFacts>,
    /// Whether one of the [`INCIDENTAL_FIELDS`] took part in the choice: then a head that differs in them may be answered otherwise.
    pub rests_on_incidentals: bool,
}

/// The content of a stored response, kept until it is written.
#[derive(Debug)]
pub struct HitContent {
    found: HotOrStored<Record>,
    variant: usize,
    coding: Option<Coding>,
}

impl HitContent {
    fn bytes(&self) -> Option<&Bytes> {
        let stored = self.found.resource().variants().get(self.variant)?;
        match self.coding {
            None => stored.body.memory(),
            Some(coding) => stored.forms().get(coding as usize),
        }
    }

    /// Shares the content with those who keep it until it has arrived at its client.
    #[must_use]
    pub fn share(&self) -> Bytes {
        self.bytes().cloned().unwrap_or_default()
    }
}

impl AsRef<[u8]> for HitContent {
    fn as_ref(&self) -> &[u8] {
        self.bytes().map_or(&[], AsRef::as_ref)
    }
}

/// The findings about a request whose head may come again.
///
/// The site, the key, the variant and the condition depend on the head, on the configuration and on the page; so they hold as long as
/// the other two do. Time and purges do not belong to it: they are looked at for every request.
#[derive(Debug)]
pub struct HitFacts {
    /// The page, which is not kept alive by this: what may be kept is decided by the table of hot pages.
    page: Weak<Page<Record>>,
    site: u16,
    variant: usize,
    coding: Option<Coding>,
    extent: Extent,
    configured: u64,
}

/// The extent to which a stored response is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// The head alone, to HEAD.
    Head,
    /// A 304: the client has it already.
    NotModified,
}

impl Pipeline {
    /// Answers from the store at once, or not at all: then [`Pipeline::respond`] is to be asked.
    ///
    /// Takes what is plain: a fresh response, no directives or ranges in the request. Waits for nothing, and allocates nothing unless the
    /// page is just taking its place in this worker's hot pages, or the host is not in its one spelling. The head goes to `out`, each line
    /// with its end, without the empty line.
    pub fn hit(&self, peer: Option<IpAddr>, head: &RequestHead<'_>, started: Instant, out: &mut Vec<u8>) -> Option<Hit> {
        let fields = head.fields;
        if !is_plain(fields) {
            return None;
        }
        let config = self.config.borrow();
        let client = if config.trusted_proxies.is_empty() && peer.is_some() {
            None
        } else {
            Some(Client::of(peer, head.scheme, fields.lines, &config.trusted_proxies))
        };
        let scheme = client.map_or(head.scheme, |client| client.scheme);
        let authority = canonical_authority(scheme, head.authority);
        let site = config.router.site(&authority)?;
        let head = RequestHead { scheme, authority: &authority, ..*head };
        if admission::concerns(&config.router, site, client.as_ref(), &head) {
            return None;
        }
        let site = site.part(head.path);
        if site.passes() {
            return None;
        }
        let mut key = self.key.borrow_mut();
        let is_trusted = client.is_some_and(|client| client.trusted);
        let Verdict::Lookup(carries) = question::verdict(site, is_trusted, &head, &mut key, &mut Silent) else {
            return None;
        };
        let store = &self.shared.store;
        let found = self.hot.borrow_mut().get(store, store.hash(&key), &key)?;
        let variant =
            found.resource().variants().iter().position(|stored| stored.record.only_for.is_none() && stored.record.vary.matches(fields))?;
        let stored = found.resource().variants().get(variant)?;
        let record = &stored.record;
        // Whoever is redirected takes along what the origin is not told.
        if record.status.is_redirection() && head.query.is_some() {
            return None;
        }
        let now = self.shared.clock.at(started);
        if !self.is_fresh(stored, now) || (carries.cookie && !record.for_cookies) || (carries.authorization && !record.for_authorization) {
            return None;
        }
        // Who has the version before gets what has changed, on the long way.
        if record.codable && site.policy.settings().compress.dictionaries && dictionary::is_mentioned(fields) {
            return None;
        }
        let accepted = if record.codable { AcceptedCodings::of(fields) } else { AcceptedCodings::IDENTITY };
        let chosen = best(stored, accepted);
        let conditional = fields.if_none_match.is_present() || fields.if_modified_since.is_present();
        let (precondition, coding) = if conditional && record.status.is_success() {
            deliver::precondition(record, head.method, fields, chosen)
        } else {
            (Precondition::Proceed, chosen)
        };
        let extent = match precondition {
            Precondition::NotModified => Extent::NotModified,
            Precondition::Failed => return None,
            Precondition::Proceed if *head.method == Method::GET => Extent::Whole,
            Precondition::Proceed => Extent::Head,
        };
        if extent == Extent::Whole && coding.is_none() {
            // What lies in a file is read on the long way, and what is packed is unpacked there.
            stored.body.memory()?;
            stored.forms().read_beside();
        }
        // Whoever has sent too many gets the answer on the long way. Nothing stands between this and the answer.
        let address = client.map_or(peer, |client| client.address);
        if config.router.request_limit().is_some_and(|limit| self.shared.rates.ask(limit, address, now).is_err()) {
            return None;
        }
        let settled =
            !record.codable || self.shared.better_form_is_coming(HashedKey { hash: store.hash(&key), key: &key }, stored, accepted, chosen);
        self.sampler.hit(&self.shared.popularity, &key, |key| store.hash(key));
        // Where a proxy may name the client, the answer can depend on who asks.
        let facts = match (&found, &client) {
            (HotOrStored::Hot(page), None) if settled && !self.traces_hits.get() => {
                Some(HitFacts { page: Rc::downgrade(page), site: site.id, variant, coding, extent, configured: self.configured.get() })
            }
            _ => None,
        };
        let rests_on_incidentals = found.resource().variants().iter().any(|stored| stored.record.vary.rests_on_any(&INCIDENTAL_FIELDS));
        let mut note = Note::of(Outcome::Hit);
        note.site = Some(site.id);
        note.client = client.and_then(|client| client.address);
        note.scheme = client.map(|client| client.scheme);
        note.coding = coding;
        note.class = record.class;
        if self.traces_hits.get() {
            self.identify(client.is_some_and(|client| client.trusted), fields.lines).note(&mut note);
        }
        let status = write_head(stored, extent, coding, now, out);
        let content = (extent == Extent::Whole).then_some(HitContent { found, variant, coding });
        Some(Hit { status, content, note, facts, rests_on_incidentals })
    }

    /// Answers a request whose head equals one that was a hit before, if the page is still fresh and nothing was configured anew. Returns `None` otherwise:
    /// then call [`Pipeline::hit`].
    ///
    /// The caller compares the heads. Where [`Hit::rests_on_incidentals`] was `false`, they may differ in [`INCIDENTAL_FIELDS`].
    ///
    /// Takes no lock and writes to nothing that another worker reads.
    pub fn again(&self, peer: Option<IpAddr>, facts: &HitFacts, started: Instant, out: &mut Vec<u8>) -> Option<Hit> {
        if peer.is_none() || facts.configured != self.configured.get() {
            return None;
        }
        let page = facts.page.upgrade()?;
        if !page.is_current(&self.shared.store) {
            return None;
        }
        let stored = page.resource().variants().get(facts.variant)?;
        let now = self.shared.clock.at(started);
        if !self.is_fresh(stored, now) || (self.limits_requests.get() && !self.admits(peer, now)) {
            return None;
        }
        if facts.extent == Extent::Whole && facts.coding.is_none() {
            stored.forms().read_beside();
        }
        let store = &self.shared.store;
        self.sampler.hit(&self.shared.popularity, page.resource().key(), |key| store.hash(key));
        let status = write_head(stored, facts.extent, facts.coding, now, out);
        let note = Note { site: Some(facts.site), coding: facts.coding, class: stored.record.class, ..Note::of(Outcome::Hit) };
        let content = (facts.extent == Extent::Whole).then_some(HitContent {
            found: HotOrStored::Hot(page),
            variant: facts.variant,
            coding: facts.coding,
        });
        Some(Hit { status, content, note, facts: None, rests_on_incidentals: true })
    }

    /// Counts a request of a client that no proxy named.
    #[cold]
    fn admits(&self, peer: Option<IpAddr>, now: Timestamp) -> bool {
        let config = self.config.borrow();
        config.router.request_limit().is_none_or(|limit| self.shared.rates.ask(limit, peer, now).is_ok())
    }

    fn is_fresh(&self, stored: &Stored, now: Timestamp) -> bool {
        now < stored.record.fresh_until && self.shared.is_current(stored, now)
    }
}

fn write_head(stored: &Stored, extent: Extent, coding: Option<Coding>, now: Timestamp, out: &mut Vec<u8>) -> StatusCode {
    let record = &stored.record;
    let status = if extent == Extent::NotModified {
        out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
        record.write_confirming(coding, out);
        StatusCode::NOT_MODIFIED
    } else {
        record.write_head(Form::of(stored, coding), out);
        record.status
    };
    deliver::write_hit_fields(record, now, out);
    status
}

/// Requests with directives, ranges or strong conditions take the long way, and so do those that may be meant to go past the cache.
const fn is_plain(fields: &RequestFields<'_>) -> bool {
    !(fields.cache_control.is_present()
        || fields.pragma.is_present()
        || fields.range.is_present()
        || fields.if_match.is_present()
        || fields.if_unmodified_since.is_present()
        || fields.upgrade.is_present()
        || fields.seawall_direct.is_present())
}
