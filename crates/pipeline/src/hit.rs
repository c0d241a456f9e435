//! [`Pipeline::hit`]: the beginning of [`Pipeline::respond`] cut short, for the case in which nothing has to wait.

use std::{net::IpAddr, sync::Arc, time::Instant};

use http::{Method, StatusCode};
use policy::Verdict;
use semantics::{
    RequestFields, RequestHead,
    cache_status::Outcome,
    conditional::{Precondition, evaluate},
};
use store::Purged;

use crate::{Client, Note, Pipeline, Stored, deliver};

/// A hit: its head is written, its content is here.
#[derive(Debug)]
pub struct Hit {
    /// The status written.
    pub status: StatusCode,
    /// The stored response; `None` if no content is to be sent.
    pub stored: Option<Arc<Stored>>,
    /// For the log.
    pub note: Note,
}

impl Pipeline {
    /// Answers from the store at once, or not at all: then [`Pipeline::respond`] is to be asked.
    ///
    /// Takes what is plain: a fresh response, no directives or ranges in the request. Allocates nothing and waits for nothing. The head goes to
    /// `out`, each line with its end, without the empty line.
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
            Some(Client::of(peer, fields.lines, &config.trusted_proxies))
        };
        let head = RequestHead { scheme: client.map_or(head.scheme, |client| client.scheme), ..*head };
        let mut key = self.key.borrow_mut();
        let Verdict::Lookup(asked) = site.policy.verdict(site.id, &head, &mut key) else {
            return None;
        };
        let store = &self.shared.store;
        let resource = store.get(store.hash(&key), &key)?;
        let stored = resource.variants().iter().find(|stored| stored.record.vary.matches(fields))?;
        let record = &stored.record;
        let now = self.shared.clock.at(started);
        if now >= record.fresh_until
            || store.verdict(stored) != Purged::No
            || (asked.cookie && !record.for_cookies)
            || (asked.authorization && !record.for_authorization)
        {
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
        let mut note = Note::of(Outcome::Hit);
        note.client = client.and_then(|client| client.address);
        if confirmed {
            out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
            out.extend_from_slice(record.confirming());
            deliver::write_hit_fields(record, now, out);
            return Some(Hit { status: StatusCode::NOT_MODIFIED, stored: None, note });
        }
        out.extend_from_slice(record.head());
        deliver::write_hit_fields(record, now, out);
        let stored = (*head.method == Method::GET).then(|| Arc::clone(stored));
        Some(Hit { status: record.status, stored, note })
    }
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
