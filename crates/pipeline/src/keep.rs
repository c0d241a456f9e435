//! What becomes of an origin's answer in the store: whether it is kept, as what, and in whose place.

use std::{borrow::Cow, cell::LazyCell, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use policy::{AcceptClass, CookieName, KeepFacts, KeepTerms, Key, MemberReason, NONCE_MADE, NotKept, TAG_WANTED, capped_by_nonce};
use semantics::{
    Timestamp,
    coding::{Coding, vary_on_accept_encoding},
    request::has_any,
    storable::may_be_brought_on,
    validation::{freshen, same_representation},
    vary::Vary,
};
use store::{Forms, Generation, Scope};

use crate::{
    Record, Shared, Stored,
    ask::{Fetched, Times},
    body::file::lies_in_a_file,
    coded::may_have_forms,
    collapse::ErrorScope,
    learnt::{
        cookies::{self, RefusedCookie},
        dictionaries::{AVAILABLE_DICTIONARY, offer},
        early_hints,
        not_kept::{self, Cause},
        tier_proof,
    },
    packed, proof,
    question::Question,
    tier,
};

/// The time after a purge for which a "not found" is not believed.
const JUST_PURGED: Duration = Duration::from_secs(5);

/// The head of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseHead<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
}

/// The properties of the content of a response that is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentFacts {
    /// Its length in bytes, if that is known by now.
    pub(crate) length: Option<u64>,
    /// Whether forms of it are at hand.
    pub(crate) has_forms: bool,
    /// Whether it carries a nonce, which ends sooner than the page.
    pub(crate) has_nonce: bool,
    /// The entity tag that it gets from us.
    pub(crate) tag: Option<ContentTag>,
}

/// An entity tag made from content: the first half of its SHA-256. So it is a strong one (RFC 9110 §8.8.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentTag(u128);

impl ContentTag {
    /// Returns the tag of a response that is to have one. `whole` is its content, if that is at hand.
    pub(crate) fn of(headers: &HeaderMap, whole: Option<&[u8]>) -> Option<Self> {
        let whole = whole.filter(|_| headers.contains_key(TAG_WANTED))?;
        let digest = digest::digest(&digest::SHA256, whole);
        digest.as_ref().first_chunk().map(|half| Self(u128::from_be_bytes(*half)))
    }

    fn value(self) -> HeaderValue {
        HeaderValue::try_from(format!("\"{:032x}\"", self.0)).expect("quotes and hexadecimal digits are a field's value")
    }
}

/// The reason why a response of the origin is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotStored {
    /// The policy forbids it.
    Policy(NotKept),
    /// It sets this cookie.
    SetCookie(&'static RefusedCookie),
    /// It is longer than what is stored or proven, or lies in a file.
    TooLarge,
    /// It is not known yet whether the page is the same for two visitors.
    Unproven,
    /// The page is not the same for two visitors.
    Differs,
    /// It is not known yet whether the page is the same for two members of the tier.
    TierUnproven,
}

impl NotStored {
    /// Adds to the policy's reason the cookie that the response sets, if that is the reason.
    pub(crate) fn of(question: &Question, why: NotKept, headers: &HeaderMap) -> Self {
        let cookie = if why == NotKept::SetCookie { question.site.policy.refused_cookie(headers) } else { None };
        cookie.map_or(Self::Policy(why), |name| Self::SetCookie(cookies::refused_cookie(name)))
    }

    /// Returns the cookie that the response sets, if that is the reason.
    pub(crate) const fn cookie(self) -> Option<CookieName> {
        if let Self::SetCookie(cookie) = self { Some(cookie.name) } else { None }
    }

    /// Returns the name of the rule, which is the name of the reason without a cookie.
    pub(crate) const fn rule(self) -> &'static str {
        if let Self::SetCookie(_) = self { NotKept::SetCookie.name() } else { self.name() }
    }

    /// Returns the name of the reason, as `Cache-Status`, logs and metrics have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Policy(why) => why.name(),
            Self::SetCookie(cookie) => cookie.detail,
            Self::TooLarge => "too-large",
            Self::Unproven => "two-visitor-proof",
            Self::Differs => "two-visitors-differ",
            Self::TierUnproven => "tier-proof",
        }
    }

    /// Returns a sentence about a response of which this is so, for whoever asks why it is not stored.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Policy(why) => why.words(),
            Self::SetCookie(_) => NotKept::SetCookie.words(),
            Self::TooLarge => "It is longer than one stored response may be.",
            Self::Unproven => "It is stored once another visitor was given the same page.",
            Self::Differs => "A second visitor was given another page, so it may be made for one reader.",
            Self::TierUnproven => "A member's page is stored when two members of the tier have got the same.",
        }
    }
}

/// Prepares the origin's answer for everybody who may get it, if its request asked the cache: removes cookies that the settings drop and validators that do
/// not change with the content, and adds `Cache-Control` for browsers where the kind has one.
pub(crate) fn prepare_for_sharing(shared: &Shared, question: &Question, response: &mut Response<origins::Body>, times: Times) {
    // This is said by nobody but us, to ourselves.
    if has_any(response.headers(), &[NONCE_MADE, TAG_WANTED]) {
        for name in [NONCE_MADE, TAG_WANTED] {
            response.headers_mut().remove(name);
        }
    }
    if question.key.is_empty() {
        return;
    }
    let policy = &question.site.policy;
    let status = response.status();
    let head = ResponseHead { status, headers: response.headers() };
    let shareable = policy.without_dropped_cookies(&keep_facts(shared, &question.method, question, head, times));
    if let Some(headers) = shareable {
        *response.headers_mut() = headers;
    }
    policy.tell_browsers(question.uri.path(), response.headers_mut());
    // Those of a file are ours.
    if policy.mistakes_validators(response.headers()) && !lies_in_a_file(response.body()) {
        let taken = [header::ETAG, header::LAST_MODIFIED].map(|name| response.headers_mut().remove(name));
        if taken.iter().any(Option::is_some) {
            response.headers_mut().insert(TAG_WANTED, HeaderValue::from_static("1"));
        }
    }
}

/// Returns whether the content of a response that is here as a whole carries a nonce.
pub(crate) fn has_nonce(question: &Question, headers: &HeaderMap, whole: &[u8]) -> bool {
    question.site.policy.nonce_search(headers).is_some_and(|mut search| {
        search.read(whole);
        search.has_found()
    })
}

/// Decides whether the answer to a question is kept, and on which terms. Remembers the reason if it is not.
pub(crate) fn decide(shared: &Shared, question: &Question, head: ResponseHead<'_>, times: Times) -> Result<KeepTerms, NotKept> {
    let (policy, facts) = (&question.site.policy, keep_facts(shared, &question.method, question, head, times));
    let terms = match &question.member {
        None => policy.keep(&facts),
        Some(member) if tier_proof::is_personal(shared, question, member, times.response) => Err(NotKept::Member(MemberReason::Personal)),
        Some(member) => policy.keep_for_tier(member, &facts),
    };
    match &terms {
        Ok(_) => shared.not_kept.forget(question.hash),
        Err(why) => {
            let why = NotStored::of(question, *why, head.headers);
            if let Some(cookie) = why.cookie() {
                shared.cookies.refused(question.site.id, cookie);
            }
            not_kept::remember(shared, question, Cause::NotStored(why), Some(head.status), times.response);
        }
    }
    terms
}

/// Collects what the policy looks at.
fn keep_facts<'a>(shared: &Shared, method: &'a Method, question: &'a Question, head: ResponseHead<'a>, times: Times) -> KeepFacts<'a> {
    let purged_at = shared.purged_at();
    KeepFacts {
        method,
        authority: &question.authority,
        target: &question.target,
        carries: question.carries,
        request: &question.wants.directives,
        status: head.status,
        headers: head.headers,
        request_time: times.request,
        response_time: times.response,
        just_purged: times.response.since(purged_at) < JUST_PURGED && purged_at != Timestamp::default(),
    }
}

/// Removes what is stored for a question where an answer to it that is not kept has ended it: what the origin said last must not be followed by
/// what it said before, not even when the origin is away. `begun` is the generation at which the request for this answer began, `terms` is what
/// [`decide`] said of the answer, if it was asked.
///
/// Only answers about the page count, and only those to requests that are nobody's: a failure of the origin, and what a request may have
/// brought on itself, end nothing.
pub(crate) fn end_what_was_stored(
    shared: &Shared,
    question: &Question,
    head: ResponseHead<'_>,
    times: Times,
    begun: Generation,
    terms: Option<&Result<KeepTerms, NotKept>>,
) {
    let status = head.status;
    let by_request = may_be_brought_on(status)
        && !(question.site.policy.makes_requests_alike() && matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN));
    // Of what members share, the page of one of them says nothing about the others'. That it has gone concerns them all.
    let is_members_own = question.member.is_some() && (status.is_success() || status == StatusCode::NOT_MODIFIED);
    let is_nobodys = !question.carries.is_personal() && !question.needs_origin_for_part() && !is_members_own;
    if question.key.is_empty() || status.is_server_error() || by_request || !is_nobodys {
        return;
    }
    // An answer to HEAD says what the answer to GET would be.
    let why = match terms {
        Some(terms) if question.method == Method::GET && question.member.is_none() => terms.as_ref().err().copied(),
        Some(_) | None => question.site.policy.keep(&keep_facts(shared, &Method::GET, question, head, times)).err(),
    };
    if why.is_some_and(NotKept::is_about_the_page) {
        // Hardly anything is stored of such a page.
        shared.store.end(question.hash, &question.key, begun, |held| held.only_for.is_none() && question.is_answered_by(&held.vary));
        tier::end(shared, question);
    }
}

/// Makes the record of an answer that is kept, and its place among the purges.
pub(crate) fn record(
    shared: &Shared,
    question: &Question,
    head: ResponseHead<'_>,
    content: ContentFacts,
    kept: KeepTerms,
) -> (Record, Scope) {
    record_in(shared, question, head.status, &mut Cow::Borrowed(head.headers), content, kept)
}

/// Makes a record as [`record`] does, and applies to `headers` every change that the record makes, so that its first client sees the same fields.
pub(crate) fn record_in(
    shared: &Shared,
    question: &Question,
    status: StatusCode,
    headers: &mut Cow<'_, HeaderMap>,
    content: ContentFacts,
    mut kept: KeepTerms,
) -> (Record, Scope) {
    let tags = std::mem::take(&mut kept.tags).into_boxed_slice();
    let (site, url) = question.url();
    let url = url.into();
    // Origins answer a mixture of forms with one or the other, and forget to say so.
    let is_mixed = Key::class_of(&question.key) == Some(AcceptClass::Mixed);
    let also: &[header::HeaderName] = if is_mixed { &[header::ACCEPT] } else { &[] };
    let mut vary = Vary::of_with(headers, &question.fields(), also);
    // It was asked for in one form for each class, and the class is in the key.
    if Key::class_of(&question.key).is_some_and(|class| question.site.policy.canonical_accept(class).is_some()) {
        vary = vary.without(&header::ACCEPT);
    }
    // Without a coding it is for everybody: the others get forms of it.
    if (question.wants.coded || question.member.is_some()) && !headers.contains_key(header::CONTENT_ENCODING) {
        vary = vary.without(&header::ACCEPT_ENCODING).without(&AVAILABLE_DICTIONARY);
    }
    let codable = may_have_forms(question, ResponseHead { status, headers }, content);
    if let Some(tick) = question.site.policy.nonce_tick() {
        let freshness = kept.freshness.clone();
        let made = match nonce_made(headers) {
            None if content.has_nonce => Some(freshness.response_time - freshness.initial_age),
            made => made,
        };
        if let Some(made) = made {
            kept.freshness = capped_by_nonce(freshness, made, tick);
            headers.to_mut().insert(NONCE_MADE, HeaderValue::from(made.as_millis() / 1000));
        }
    }
    if let Some(tag) = content.tag {
        headers.to_mut().insert(header::ETAG, tag.value());
    }
    if codable {
        vary_on_accept_encoding(headers.to_mut());
        if question.site.policy.settings().compress.dictionaries && status == StatusCode::OK {
            offer(question.uri.path(), headers.to_mut());
        }
    }
    let mut record = Record::new(status, headers, content.length, kept, vary);
    record.codable = codable;
    record.only_for = may_be_brought_on(status).then(|| ErrorScope::of(shared, question));
    (record, Scope { site, url, tags })
}

/// Returns when a stored page was made whose content carries a nonce.
fn nonce_made(headers: &HeaderMap) -> Option<Timestamp> {
    headers.get(NONCE_MADE)?.to_str().ok()?.parse().ok().map(Timestamp::from_secs)
}

/// Stores `candidate` again with the fields of a 304 (RFC 9111 §4.3.4). Returns `None` if the 304 is about another representation, or if it
/// may not be kept any more. It is stored unpacked: the disk takes it as it is, and so does whoever looks into it.
pub(crate) async fn freshened(
    shared: &Arc<Shared>,
    question: &Question,
    candidate: &Stored,
    fetched: &Fetched,
    begun: Generation,
) -> Option<Arc<Stored>> {
    // A stored response is the answer to GET, also where HEAD was used to look after it.
    let get;
    let question = if question.method == Method::HEAD {
        get = Question { method: Method::GET, ..question.clone() };
        &get
    } else {
        question
    };
    let mut headers = candidate.record.all_headers();
    let confirmation = fetched.response.headers();
    if !same_representation(&headers, confirmation) {
        return None;
    }
    // The stored fields name the tier already; what counts is that the origin says it again.
    if question.member.as_ref().is_some_and(|member| !member.is_of_tier(confirmation)) {
        return None;
    }
    freshen(&mut headers, confirmation);
    let status = candidate.record.status;
    let kept = decide(shared, question, ResponseHead { status, headers: &headers }, fetched.times).ok()?;
    for name in candidate.record.omitted() {
        // No longer held back, but its value was never stored.
        if !kept.omitted.contains(&name) && !confirmation.contains_key(&name) {
            headers.remove(name);
        }
    }
    let body = packed::body(candidate).await?;
    let content = ContentFacts { length: Some(body.len()), has_forms: candidate.forms().at_hand() != 0, has_nonce: false, tag: None };
    let (record, scope) = record(shared, question, ResponseHead { status, headers: &headers }, content, kept);
    // The page is the same, but its nonces have grown old.
    if nonce_made(&headers).is_some() && !record.freshness.is_fresh(fetched.times.response) {
        return None;
    }
    let stored = Stored::new(record, body, begun, scope).with_forms(candidate.forms().share());
    Some(insert(shared, question, stored))
}

/// Stores a response as [`insert_here`] does, and offers it to the other machines.
pub(crate) fn insert(shared: &Arc<Shared>, question: &Question, stored: Stored) -> Arc<Stored> {
    if !proof::is_forbidden(shared, question) {
        tier::offer(shared, question, &stored);
    }
    insert_here(shared, question, stored)
}

/// Stores a response in place of those that answer the same requests. What was found to differ from visitor to visitor is returned as it is, and
/// not stored: this is the last check, by whatever way it came.
pub(crate) fn insert_here(shared: &Arc<Shared>, question: &Question, mut stored: Stored) -> Arc<Stored> {
    if proof::is_forbidden(shared, question) {
        return Arc::new(stored);
    }
    let only_for = stored.record.only_for;
    if !question.site.on_disk || only_for.is_some() {
        stored = stored.in_memory_only();
    }
    if stored.record.codable
        && let Some(forms) = forms_of_the_same(shared, question, &stored)
    {
        stored = stored.with_forms(forms);
    }
    let part = stored.record.part();
    let fields = LazyCell::new(|| question.fields());
    let stored = shared.store.insert(question.hash, &question.key, stored, |held| match only_for {
        // One such error at most, and never in the place of what is for everybody.
        Some(_) => held.only_for.is_some(),
        None => (held.vary.is_unconditional() || held.vary.matches(&fields)) && held.part() == part,
    });
    early_hints::learn(shared, question, &stored);
    if stored.record.codable {
        if question.is_for_readers_of_forms() {
            shared.make_form(question.hashed_key(), &stored, Coding::Gzip);
        }
        if question.site.policy.settings().compress.dictionaries {
            shared.next_version(question.hash, &stored);
        }
    }
    stored
}

/// Finds the forms of a stored response with the same content: many origins know no 304 and send the same once more. `None`: there are none, or the
/// response has forms of its own.
fn forms_of_the_same(shared: &Shared, question: &Question, stored: &Stored) -> Option<Forms> {
    let resource = shared.store.peek(question.hash, &question.key);
    let same = |held: &&Arc<Stored>| stored.body.memory().is_some_and(|new| packed::is_content_of(held, new) == Some(true));
    match resource.as_deref().and_then(|resource| resource.variants().iter().find(same)) {
        Some(held) if stored.forms().at_hand() == 0 => Some(held.forms().share()),
        _ => None,
    }
}
