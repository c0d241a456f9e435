//! What the answer to an unsafe method does to what is stored: it invalidates (RFC 9111 §4.4, RFC 9875 §3), and the answer to a POST may
//! take the place of what it invalidated (RFC 9110 §9.3.3).

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use policy::{Kept, Silent, Verdict};
use semantics::{
    RequestFields, RequestHead, Timestamp,
    freshness::LifetimeSource,
    invalidation::{invalidated, invalidates, is_safe},
    reference::resolve,
};
use store::{Generation, Hardness, PurgeReceipt, PurgeTarget, Purged};

use crate::{
    Pipeline, Stored,
    question::{self, Asks, Question},
};

/// Fields of a request that are about its content, or that a GET for the same page would not have.
const OF_CONTENT: [header::HeaderName; 6] =
    [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONTENT_TYPE, header::CONTENT_ENCODING, header::EXPECT, header::RANGE];

impl Pipeline {
    /// Purges what an unsafe method may have changed, and the groups that its answer names, whatever its status.
    ///
    /// Returns the generation after that, if nobody else has purged anything since the generation `since`: what no purge covered then is
    /// covered by none now but those that it caused itself.
    pub(crate) fn invalidate(&self, question: &Question, status: StatusCode, headers: &HeaderMap, since: Generation) -> Option<Generation> {
        let mut now = since;
        let mut alone = true;
        let mut came_to = |receipt: PurgeReceipt| {
            alone &= receipt.generation.number() == now.number() + 1;
            now = receipt.generation;
        };
        // Not `Shared::purge`: that a stranger wrote something is no word of the operator that pages are about to appear.
        let store = &self.shared.store;
        let site = question.site.id;
        if invalidates(&question.method, status) {
            for target in invalidated(&question.authority, &question.target, headers) {
                let path = target.split('?').next().unwrap_or_default();
                if let Some(url) = policy::purge_url(question.client.scheme, &question.authority, path) {
                    came_to(store.invalidate(site, &url, true));
                }
            }
        }
        if !is_safe(&question.method) {
            for tag in policy::invalidated_groups(&question.authority, headers) {
                came_to(store.purge(&PurgeTarget::Tag { site, tag }, Hardness::Hard));
            }
        }
        alone.then_some(now)
    }

    /// The GET that the answer to a POST answers as well, and how it is kept: if the origin gave it a lifetime and said by `Content-Location`
    /// that it is what is found under the target, and if no purge since `begun`, when the POST was sent, covers it. Narrower than RFC 9110 §9.3.3 in that the request must be nobody's, and the origin must have seen nothing that it would not have seen of a GET.
    pub(crate) fn posted(
        &self,
        question: &Question,
        status: StatusCode,
        headers: &HeaderMap,
        times: (Timestamp, Timestamp),
        begun: Generation,
    ) -> Option<(Question, Kept)> {
        if question.method != Method::POST || status != StatusCode::OK || question.site.passes() {
            return None;
        }
        let location = headers.get(header::CONTENT_LOCATION)?;
        if resolve(&question.authority, &question.target, location.as_bytes())? != question.target {
            return None;
        }
        let mut get = Question { method: Method::GET, ..question.clone() };
        for name in &OF_CONTENT {
            get.headers.remove(name);
        }
        let mut key = Vec::new();
        let asked = {
            let (path, query) = get.target.split_once('?').map_or((&*get.target, None), |(path, query)| (path, Some(query)));
            let fields = RequestFields::from_map(&get.headers);
            let head =
                RequestHead { method: &get.method, scheme: get.client.scheme, authority: &get.authority, path, query, fields: &fields };
            match question::verdict(&get.site, get.client.trusted, &head, &mut key, &mut Silent) {
                Verdict::Lookup(asked) if !asked.is_personal() => asked,
                Verdict::Lookup(_) | Verdict::Pass(_) | Verdict::Purge | Verdict::Malformed => return None,
            }
        };
        let sent = get.headers.len();
        question::reduce(&mut get.headers, &get.site, get.client.trusted, Some(asked));
        if get.headers.len() != sent {
            return None;
        }
        get.asked = asked;
        get.asks = Asks::of(&get.site, get.uri.path(), &get.fields());
        get.hash = self.shared.store.hash(&key);
        get.key = key;
        let kept = self.judge(&get, status, headers, times).ok()?;
        let by_origin = kept.freshness.source == LifetimeSource::Explicit && kept.freshness.is_fresh(times.1);
        // To be asked before this answer invalidates what it replaces: afterwards nobody could tell whose purge covers it.
        let (record, scope) = self.record(&get, (status, headers), (None, false), kept.clone());
        let store = &self.shared.store;
        let invalidated = store.is_invalidated(&scope, begun);
        let purged = store.verdict(&Stored::new(record, Bytes::new(), begun, scope));
        (by_origin && purged == Purged::No && !invalidated).then_some((get, kept))
    }
}
