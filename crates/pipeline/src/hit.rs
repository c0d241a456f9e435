//! [`Pipeline::hit`]: the beginning of [`Pipeline::respond`] cut short, for the case in which nothing has to wait; and
//! [`Pipeline::again`], which is shorter still, for a head that was answered so before.

use std::{
    net::IpAddr,
    rc::{Rc, Weak},
    time::Instant,
};

use http::{Method, StatusCode};
use policy::Verdict;
use semantics::{
    RequestFields, RequestHead, Timestamp,
    cache_status::Outcome,
    conditional::{Precondition, evaluate},
};
use store::{Found, Page, Purged};

use crate::{Client, Note, Pipeline, Record, Stored, deliver};

/// A hit: its head is written, its content is here.
#[derive(Debug)]
pub struct Hit {
    /// The status written.
    pub status: StatusCode,
    /// The stored content; `None` if none is to be sent.
    pub content: Option<Content>,
    /// For the log.
    pub note: Note,
    /// For [`Pipeline::again`], if the bytes of the head alone decide.
    pub known: Option<Known>,
}

/// The content of a stored response, kept until it is written.
#[derive(Debug)]
pub struct Content {
    found: Found<Record>,
    variant: usize,
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        self.found.resource().variants().get(self.variant).and_then(|stored| stored.body.memory()).map_or(&[], AsRef::as_ref)
    }
}

/// What was found out about a request whose head may come again.
///
/// The site, the key, the variant and the condition depend on the head, on the configuration and on the page; so they hold as long as
/// the other two do. Time and purges do not belong to it: they are looked at for every request.
#[derive(Debug)]
pub struct Known {
    /// Not kept alive: what may be kept is the front's decision.
    page: Weak<Page<Record>>,
    variant: usize,
    form: Form,
    configured: u64,
}

/// What is sent of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    /// To HEAD.
    Head,
    /// That the client has it already.
    NotModified,
}

impl Pipeline {
    /// Answers from the store at once, or not at all: then [`Pipeline::respond`] is to be asked.
    ///
    /// Takes what is plain: a fresh response, no directives or ranges in the request. Waits for nothing, and allocates nothing unless the
    /// page is just taking its place in this worker's front. The head goes to `out`, each line with its end, without the empty line.
    pub fn hit(&self, peer: Option<IpAddr>, head: &RequestHead<'_>, started: Instant, out: &mut Vec<u8>) -> Option<Hit> {
        let fields = head.fields;
        if !is_plain(fields) {
            return None;
        }
        let config = self.config.borrow();
        let site = config.router.site(head.authority)?;
        let client = if config.trusted_proxies.is_empty() && peer.is_some() {
            None
        } else {
            Some(Client::of(peer, head.scheme, fields.lines, &config.trusted_proxies))
        };
        let head = RequestHead { scheme: client.map_or(head.scheme, |client| client.scheme), ..*head };
        if site.https.concerns(client.as_ref(), head.scheme) || site.auth.as_ref().is_some_and(|auth| !auth.is_open(&head)) {
            return None;
        }
        let mut key = self.key.borrow_mut();
        let Verdict::Lookup(asked) = site.policy.verdict(site.id, &head, &mut key) else {
            return None;
        };
        let store = &self.shared.store;
        let found = self.front.borrow_mut().get(store, store.hash(&key), &key)?;
        let variant = found.resource().variants().iter().position(|stored| stored.record.vary.matches(fields))?;
        let stored = found.resource().variants().get(variant)?;
        let record = &stored.record;
        let now = self.shared.clock.at(started);
        if !self.is_fresh(stored, now) || (asked.cookie && !record.for_cookies) || (asked.authorization && !record.for_authorization) {
            return None;
        }
        let conditional = fields.if_none_match.is_present() || fields.if_modified_since.is_present();
        let confirmed = conditional
            && record.status.is_success()
            && match evaluate(head.method, fields, record.etag(), record.last_modified) {
                Precondition::Proceed => false,
                Precondition::NotModified => true,
                Precondition::Failed => return None,
            };
        let form = if confirmed {
            Form::NotModified
        } else if *head.method == Method::GET {
            Form::Whole
        } else {
            Form::Head
        };
        // What lies in a file is read on the long way.
        if form == Form::Whole && stored.body.memory().is_none() {
            return None;
        }
        self.sampler.hit(&self.shared.popularity, &key, |key| store.hash(key));
        // Where a proxy may name the client, the answer can depend on who asks.
        let known = match (&found, &client) {
            (Found::Front(page), None) => Some(Known { page: Rc::downgrade(page), variant, form, configured: self.configured.get() }),
            _ => None,
        };
        let mut note = Note::of(Outcome::Hit);
        note.client = client.and_then(|client| client.address);
        let status = write_head(record, form, now, out);
        let content = (form == Form::Whole).then_some(Content { found, variant });
        Some(Hit { status, content, note, known })
    }

    /// Answers a request whose head is, byte for byte, the one that this was found out about; at once, or not at all: then
    /// [`Pipeline::hit`] is to be asked.
    ///
    /// Takes no lock and writes to nothing that another worker reads.
    pub fn again(&self, peer: Option<IpAddr>, known: &Known, started: Instant, out: &mut Vec<u8>) -> Option<Hit> {
        if peer.is_none() || known.configured != self.configured.get() {
            return None;
        }
        let page = known.page.upgrade()?;
        if !page.is_current(&self.shared.store) {
            return None;
        }
        let stored = page.resource().variants().get(known.variant)?;
        let now = self.shared.clock.at(started);
        if !self.is_fresh(stored, now) {
            return None;
        }
        let store = &self.shared.store;
        self.sampler.hit(&self.shared.popularity, page.resource().key(), |key| store.hash(key));
        let status = write_head(&stored.record, known.form, now, out);
        let content = (known.form == Form::Whole).then_some(Content { found: Found::Front(page), variant: known.variant });
        Some(Hit { status, content, note: Note::of(Outcome::Hit), known: None })
    }

    fn is_fresh(&self, stored: &Stored, now: Timestamp) -> bool {
        now < stored.record.fresh_until && self.shared.store.verdict(stored) == Purged::No
    }
}

fn write_head(record: &Record, form: Form, now: Timestamp, out: &mut Vec<u8>) -> StatusCode {
    let status = if form == Form::NotModified {
        out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
        out.extend_from_slice(record.confirming());
        StatusCode::NOT_MODIFIED
    } else {
        out.extend_from_slice(record.head());
        record.status
    };
    deliver::write_hit_fields(record, now, out);
    status
}

/// Requests with directives, ranges or strong conditions take the long way.
const fn is_plain(fields: &RequestFields<'_>) -> bool {
    !(fields.cache_control.is_present()
        || fields.pragma.is_present()
        || fields.range.is_present()
        || fields.if_match.is_present()
        || fields.if_unmodified_since.is_present()
        || fields.upgrade.is_present())
}
