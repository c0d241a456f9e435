//! What the answer to an unsafe method does to what is stored: it invalidates (RFC 9111 §4.4, RFC 9875 §3), and the answer to a POST may
//! take the place of what it invalidated (RFC 9110 §9.3.3).

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use policy::{
    KeepTerms, Silent, Verdict,
    purge::{Address, Maker, Order, Signals, What},
};
use semantics::{
    RequestFields, RequestHead,
    freshness::LifetimeSource,
    invalidation::{invalidated, invalidates, is_safe},
    reference::resolve,
    target::normal_path,
};
use store::{Generation, Purged};

use crate::{
    Pipeline, Stored,
    ask::Times,
    fence::PendingPurges,
    keep::{self, ContentFacts, ResponseHead},
    proof,
    question::{self, Question, Wants},
};

/// The fields of a request that are about its content, or that a GET for the same page would not have.
const OF_CONTENT: [header::HeaderName; 6] =
    [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONTENT_TYPE, header::CONTENT_ENCODING, header::EXPECT, header::RANGE];

/// Names what the answer to an unsafe method says has changed: addresses (RFC 9111 §4.4) and groups (RFC 9875 §3), all of the site's own.
///
/// An origin that says what has changed (`speaks`) is taken at its word: no stranger keeps a page cold by writing to its address.
fn changed(question: &Question, status: StatusCode, headers: &HeaderMap, speaks: bool) -> Vec<What> {
    let policy = &question.site.policy;
    let mut what = Vec::new();
    if !speaks && policy.invalidates_by_method(&question.target) && invalidates(&question.method, status) {
        // A stranger can have many a form lead to a page of his choice.
        let led_to = policy.signals() == Signals::None;
        let addresses = invalidated(&question.authority, &question.target, headers).into_iter().take(if led_to { usize::MAX } else { 1 });
        let addresses = addresses.map(|target| Address::over(question.client.scheme, &question.authority, &target));
        // What has no normal form was never stored, and must not keep the others from being invalidated.
        what.extend(addresses.filter(|address| normal_path(address.path()).is_ok()).map(What::Url));
    }
    if !is_safe(&question.method) {
        what.extend(policy::invalidated_groups(&question.authority, headers).into_iter().map(What::Tag));
    }
    what
}

impl Pipeline {
    /// Purges what an unsafe method may have changed, and the groups that its answer names, whatever its status.
    ///
    /// Returns the new generation if this call made the only purges since the generation `since`, and `None` otherwise. With `Some`, a response that was
    /// current at `since` may be stored as of the returned generation.
    pub(crate) fn invalidate(
        &self,
        question: &Question,
        status: StatusCode,
        headers: &HeaderMap,
        speaks: bool,
        since: Generation,
        caused: &PendingPurges,
    ) -> Option<Generation> {
        let what = changed(question, status, headers, speaks);
        if what.is_empty() {
            return Some(since);
        }
        let order = Order::for_site(&question.site.name, what, true, Maker::UnsafeMethod);
        let resolved = match self.shared.purging.resolve(&order) {
            Ok(resolved) => resolved,
            Err(why) => {
                // The site went away while its origin was asked: nothing of it can be found any more.
                tracing::debug!(site = %question.site.name, %why, "nothing was invalidated");
                return None;
            }
        };
        let (receipts, elsewhere) = self.shared.carry_out_and_tell_machines(&order, &resolved);
        let mut now = since;
        let mut alone = true;
        for receipt in receipts {
            alone &= receipt.generation.number() == now.number() + 1;
            now = receipt.generation;
        }
        caused.add(elsewhere);
        alone.then_some(now)
    }

    /// Finds the GET that the answer to a POST answers as well, and how it is kept: if the origin gave it a lifetime and said by
    /// `Content-Location` that it is what is found under the target, and if no purge since `begun`, when the POST was sent, covers it.
    ///
    /// This is narrower than RFC 9110 §9.3.3: the request must be nobody's, and the origin must have seen nothing that it would not have
    /// seen of a GET.
    pub(crate) fn posted(
        &self,
        question: &Question,
        head: ResponseHead<'_>,
        times: Times,
        begun: Generation,
    ) -> Option<(Question, KeepTerms)> {
        if question.method != Method::POST || head.status != StatusCode::OK || question.site.passes() {
            return None;
        }
        let location = head.headers.get(header::CONTENT_LOCATION)?;
        if resolve(&question.authority, &question.target, location.as_bytes())? != question.target {
            return None;
        }
        let mut get = Question { method: Method::GET, ..question.clone() };
        for name in &OF_CONTENT {
            get.headers.remove(name);
        }
        let mut key = Vec::new();
        let carries = {
            let (path, query) = get.target.split_once('?').map_or((&*get.target, None), |(path, query)| (path, Some(query)));
            let fields = RequestFields::from_map(&get.headers);
            let request =
                RequestHead { method: &get.method, scheme: get.client.scheme, authority: &get.authority, path, query, fields: &fields };
            match question::verdict(&get.site, get.client.trusted, &request, &mut key, &mut Silent) {
                Verdict::Lookup(carries) if !carries.is_personal() => carries,
                Verdict::Lookup(_) | Verdict::Pass(_) | Verdict::Purge | Verdict::Malformed => return None,
            }
        };
        let sent = get.headers.len();
        question::remove_unsent_fields(&mut get.headers, &get.site, get.client.trusted, Some(carries));
        if get.headers.len() != sent {
            return None;
        }
        get.carries = carries;
        get.wants = Wants::of(&get.site, get.uri.path(), &get.fields());
        get.hash = self.shared.store.hash(&key);
        get.key = key;
        let kept = keep::decide(&self.shared, &get, head, times).ok()?;
        if proof::unproven(&self.shared, &get, head).is_some() {
            return None;
        }
        let by_origin = kept.freshness.source == LifetimeSource::Explicit && kept.freshness.is_fresh(times.response);
        // To be asked before this answer invalidates what it replaces: afterwards nobody could tell whose purge covers it.
        let (record, scope) = keep::record(
            &self.shared,
            &get,
            head,
            ContentFacts { length: None, has_forms: false, has_nonce: false, tag: None },
            kept.clone(),
        );
        let store = &self.shared.store;
        let invalidated = store.is_invalidated(&scope, begun);
        let purged = store.verdict(&Stored::new(record, Bytes::new(), begun, scope));
        (by_origin && purged == Purged::No && !invalidated).then_some((get, kept))
    }
}
