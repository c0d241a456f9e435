//! Whether a response is kept, for how long, and for whom.

use std::{slice, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use semantics::{
    Timestamp,
    cache_control::{RequestDirectives, ResponseDirectives},
    coding::media_type,
    freshness::{Freshness, LifetimeSource},
    omitted::omitted,
    reference::resolve,
    request::has_any,
    storable::{NotStorable, storable},
    targeted::{SEAWALL_CACHE_CONTROL, TARGETS, directives},
};

use crate::{
    Carries, NonceSearch, Policy,
    cache_fields::{SAID_BY_SESSION, is_said_by_session},
    member::MEMBER_CACHE_TIER,
    pass::has_parameter,
    tags,
};

/// The longest lifetime of a permanent redirect. Ghost calls its redirects good for a year; a wrong one should not outlive the day, purged or
/// not.
const REDIRECT_HOLD_MAX: Duration = Duration::from_hours(24);

/// Everything the decision looks at.
#[derive(Debug)]
pub struct KeepFacts<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The `Host` that the origin was asked for.
    pub authority: &'a str,
    /// The path and query that the origin was asked for.
    pub target: &'a str,
    /// The cookies and credentials of the request that may be somebody's.
    pub carries: Carries,
    /// The directives of the request.
    pub request: &'a RequestDirectives,
    /// The response's status.
    pub status: StatusCode,
    /// The response's fields.
    pub headers: &'a HeaderMap,
    /// The time at which the request was sent.
    pub request_time: Timestamp,
    /// The time at which the head of the response arrived.
    pub response_time: Timestamp,
    /// Whether something was purged a moment ago. The origin may not know all of its new addresses yet (TryGhost/Ghost#15984).
    pub just_purged: bool,
}

/// The terms on which a response is kept.
#[derive(Debug, Clone)]
pub struct KeepTerms {
    /// The time for which it is fresh, and what may be done with it afterwards.
    pub freshness: Freshness,
    /// Whether it may answer requests that carry cookies. The origin itself has to have given it a lifetime.
    pub for_cookies: bool,
    /// Whether it may answer requests that carry `Authorization` (RFC 9111 §3.5).
    pub for_authorization: bool,
    /// The tags by which a purge finds it.
    pub tags: Vec<Box<str>>,
    /// The fields that are only for the client whose request was fetched. They are left out of what is stored (RFC 9111 §5.2.2.4, §5.2.2.7).
    pub omitted: Vec<HeaderName>,
}

/// The rule by which a response is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKept {
    /// RFC 9111 §3 forbids it.
    NotStorable(NotStorable),
    /// The response sets a cookie, so it is meant for one client (TryGhost/Ghost#27942).
    SetCookie,
    /// The request carried a cookie, and the origin did not say that the answer is for all.
    Cookie,
    /// The response redirects to itself. Stored, it would lock everybody out.
    RedirectLoop,
    /// The response is a "not found" just after a purge.
    JustPurged,
    /// The kind stores no responses with this status here.
    Status,
    /// The source forbids it in this field, which was written for another cache.
    Said(&'static str),
    /// The response may be a member's, and is not known to be the same for all members of the tier.
    Member(MemberReason),
}

impl NotKept {
    /// Returns the name of the rule for `Cache-Status` details and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotStorable(why) => why.name(),
            Self::SetCookie => "set-cookie",
            Self::Cookie => "cookie",
            Self::RedirectLoop => "redirect-loop",
            Self::JustPurged => "just-purged",
            Self::Status => "status",
            Self::Said(field) => field,
            Self::Member(reason) => reason.name(),
        }
    }

    /// Returns a sentence about a response of which this is so, for whoever asks why it is not stored.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotStorable(why) => why.words(),
            Self::SetCookie => "It sets a cookie, so it is meant for one reader.",
            Self::Cookie => "The request carried a cookie, and the origin did not say that the answer is the same for all.",
            Self::RedirectLoop => "It redirects to itself: stored, it would lock everybody out.",
            Self::JustPurged => "A \"not found\" just after a purge is not believed.",
            Self::Status => "Its status may not be stored.",
            Self::Said(_) => "The site says so in this field, which is meant for caches: a plugin, or the server in front of PHP.",
            Self::Member(reason) => reason.words(),
        }
    }

    /// Returns whether the response says that what was stored before is no longer the page. A cookie says nothing of the page, nor does a
    /// redirect to itself, nor does what concerns one request alone.
    #[must_use]
    pub const fn is_about_the_page(self) -> bool {
        !self.is_about_this_request()
            && !matches!(
                self,
                Self::SetCookie
                    | Self::RedirectLoop
                    | Self::NotStorable(NotStorable::Status | NotStorable::Partial | NotStorable::NotModified | NotStorable::Ranged)
            )
    }

    /// Returns whether the next request for the same key may fare better. If so, nothing is to be remembered of this one.
    #[must_use]
    pub const fn is_about_this_request(self) -> bool {
        matches!(
            self,
            Self::Cookie
                | Self::Member(_)
                | Self::NotStorable(
                    NotStorable::Authorization | NotStorable::RequestNoStore | NotStorable::Method | NotStorable::OfRequest
                )
        )
    }
}

/// The reason why a response that may be a member's of a Ghost is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberReason {
    /// It was made for the members of a tier, and the kind of the site knows no tiers.
    Tier,
    /// The request has a cookie of a Ghost, and the kind of the site knows no tiers.
    Cookie,
    /// Its status is not 200.
    Status,
    /// It was made for another tier than the one that the cookies prove.
    AnotherTier,
    /// It is not public.
    NotPublic,
    /// It has a content coding, so what names a member in it cannot be looked for.
    Coded,
    /// It varies on who asks.
    Vary,
    /// Some of its fields are for one client alone.
    Fields,
    /// Two members of the tier got different pages a moment ago, or the page names its reader.
    Personal,
}

impl MemberReason {
    /// Returns the name of the rule for `Cache-Status` details and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tier => "member-tier",
            Self::Cookie => "member-cookie",
            Self::Status => "tier-status",
            Self::AnotherTier => "tier-differs",
            Self::NotPublic => "tier-not-public",
            Self::Coded => "tier-coded",
            Self::Vary => "tier-vary",
            Self::Fields => "tier-fields",
            Self::Personal => "tier-personal",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Tier => "Ghost made it for the members of a tier, and this site is not known to be a Ghost.",
            Self::Cookie => "The request has a Ghost's cookie, so the answer may be a member's, and this site is not known to be a Ghost.",
            Self::Status => "Members share nothing but pages (200).",
            Self::AnotherTier => "Ghost did not make it for the tier that the member's cookie names.",
            Self::NotPublic => "Ghost does not call it public.",
            Self::Coded => "It came in a coding that was not asked for, so nobody can see whether it names its reader.",
            Self::Vary => "It says that it depends on cookies.",
            Self::Fields => "It has fields that are for one reader.",
            Self::Personal => "Two members of the tier got different pages a moment ago, or it names its reader.",
        }
    }
}

/// The terms of a site's hold, beside its length.
#[derive(Debug, Clone, Copy)]
struct HoldTerms {
    /// Whether the answer is to somebody: that is never held.
    is_personal: bool,
    /// The longest hold.
    max: Option<Duration>,
}

impl Policy {
    /// Decides whether a response may be kept, and on which terms.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn keep(&self, facts: &KeepFacts<'_>) -> Result<KeepTerms, NotKept> {
        // A Ghost calls a member's page public, and means the members of one tier. It may be behind any site: before it was recognised, too.
        if !self.is_impersonal() {
            if has_any(facts.headers, &[MEMBER_CACHE_TIER]) {
                return Err(NotKept::Member(MemberReason::Tier));
            }
            if facts.carries.ghost_cookie {
                return Err(NotKept::Member(MemberReason::Cookie));
            }
        }
        self.keep_whatever_tier(facts)
    }

    /// Decides as [`keep`](Self::keep) does about an answer of which it is known for which members it is.
    pub(crate) fn keep_whatever_tier(&self, facts: &KeepFacts<'_>) -> Result<KeepTerms, NotKept> {
        let (path, query) = facts.target.split_once('?').map_or((facts.target, None), |(path, query)| (path, Some(query)));
        let keeps = &self.rules_for(path).keeps;
        // A part, or a confirmation, is about the page that is there: it is not a page of another status.
        let is_page = !matches!(facts.status, StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED);
        if is_page && keeps.statuses.is_some_and(|statuses| !statuses.contains(&facts.status.as_u16())) {
            return Err(NotKept::Status);
        }
        // What is known to be the same for everybody who is nobody in particular, whatever the source calls it.
        let held_anyway = keeps.held_anyway.iter().find(|(status, _)| *status == facts.status.as_u16()).map(|(_, hold)| *hold);
        let held_anyway = held_anyway.filter(|_| !facts.carries.is_personal() && *facts.method == Method::GET);
        let said = self.directives(facts.headers, facts.response_time)?;
        // What forbids it to caches alone was said with them in mind.
        let held_anyway = held_anyway.filter(|_| !(said.targeted && (said.no_store || said.private.is_present())));
        let directives = if held_anyway.is_some() { ResponseDirectives::default() } else { said };
        let omitted = omitted(facts.headers, &directives);
        let briefly = keeps.briefly.iter().find(|(names, _)| has_parameter(query, names)).map(|(_, most)| *most);
        let hold_max = [keeps.hold_max, briefly].into_iter().flatten().min();
        // An origin that says `private="set-cookie"` has said itself that the rest is for all.
        let cookie_stays = has_any(facts.headers, &[header::SET_COOKIE]) && !omitted.contains(&header::SET_COOKIE);
        if cookie_stays && !self.settings().store_set_cookie {
            // Where the settings take its cookies off, it is something else that keeps it out.
            let another = self.reduced(facts).and_then(|headers| self.keep(&KeepFacts { headers: &headers, ..*facts }).err());
            return Err(another.unwrap_or(NotKept::SetCookie));
        }
        if self.redirects_to_itself(facts) {
            return Err(NotKept::RedirectLoop);
        }
        let freshness = || match held_anyway {
            Some(hold) => self.held(facts, hold),
            None => self.freshness(facts, &directives, hold_max, briefly),
        };
        let storable =
            storable(facts.method, facts.request, facts.carries.authorization, facts.status, facts.headers, &directives, freshness);
        let freshness = storable.map_err(|why| {
            // Without the cookie the site's hold would have kept it.
            let without_cookie = HoldTerms { is_personal: false, max: hold_max };
            let is_held_for_others =
                why == NotStorable::Unfresh && facts.carries.cookie && self.hold(facts, &directives, without_cookie).is_some();
            if is_held_for_others { NotKept::Cookie } else { NotKept::NotStorable(why) }
        })?;
        // A lifetime of nothing, or a guess, does not say that an answer is for all: it would come out again when the origin is down. RFC 9111 §3.5
        // would let it be stored after `Authorization`.
        let by_origin = freshness.source == LifetimeSource::Explicit && freshness.lifetime > freshness.initial_age;
        let is_for_all = by_origin && !(directives.targeted && own_word_is_stricter(facts));
        if facts.carries.is_personal() && !is_for_all {
            return Err(if facts.carries.cookie { NotKept::Cookie } else { NotKept::NotStorable(NotStorable::Authorization) });
        }
        // A folder or a blog has just said what it has.
        if facts.status == StatusCode::NOT_FOUND && facts.just_purged && !self.is_impersonal() {
            return Err(NotKept::JustPurged);
        }
        let mut tags = tags(facts.authority, facts.headers);
        if let Some(tag) = self.signal_tag(facts.target.split('?').next().unwrap_or_default()) {
            tags.push(tag);
        }
        let shared = directives.public || directives.must_revalidate || directives.s_maxage.is_some();
        Ok(KeepTerms {
            for_cookies: by_origin || self.is_impersonal(),
            for_authorization: (by_origin && shared) || self.is_impersonal(),
            tags,
            omitted,
            freshness,
        })
    }

    /// Returns the fields of an answer as others may get it, if nothing but cookies that the settings name keeps it from them: without these
    /// cookies, and without what PHP says of its own accord when a script begins a session.
    ///
    /// `None`: it is somebody's for another reason, or nobody's anyhow, and stays as it is.
    #[must_use]
    pub fn without_dropped_cookies(&self, facts: &KeepFacts<'_>) -> Option<HeaderMap> {
        let headers = self.reduced(facts)?;
        // An answer to HEAD says what the answer to GET would be.
        let would_be_kept = self.keep(&KeepFacts { method: &Method::GET, headers: &headers, ..*facts }).is_ok();
        would_be_kept.then_some(headers)
    }

    /// Returns the fields of an answer without its cookies, if the settings take all of them off.
    fn reduced(&self, facts: &KeepFacts<'_>) -> Option<HeaderMap> {
        if self.settings().drop_set_cookies.is_empty() || !facts.headers.contains_key(header::SET_COOKIE) {
            return None;
        }
        let is_read = *facts.method == Method::GET || *facts.method == Method::HEAD;
        if !is_read || facts.carries.is_personal() || self.refused_cookie(facts.headers).is_some() {
            return None;
        }
        let mut headers = facts.headers.clone();
        headers.remove(header::SET_COOKIE);
        if is_said_by_session(&headers) {
            for name in &SAID_BY_SESSION {
                headers.remove(name);
            }
        }
        Some(headers)
    }

    /// Returns the name of the first cookie that a response sets and that the settings do not take off.
    #[must_use]
    pub fn refused_cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut names = headers.get_all(header::SET_COOKIE).iter().map(|line| {
            let line = line.as_bytes();
            let end = line.iter().position(|&b| b == b'=' || b == b';').unwrap_or(line.len());
            std::str::from_utf8(&line[..end]).unwrap_or_default().trim()
        });
        names.find(|name| !self.cookies.is_dropped(name))
    }

    /// Tells browsers what to do with an answer to a request that asked the cache, where the source says nothing to them and the kind says what
    /// they are to be told. For this cache, nothing changes.
    pub fn tell_browsers(&self, path: &str, headers: &mut HeaderMap) {
        let Some(told) = self.rules_for(path).keeps.for_browsers else { return };
        if has_any(headers, &[header::CACHE_CONTROL, header::EXPIRES, header::PRAGMA]) {
            return;
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(told));
        // A targeted field takes the place of `Cache-Control` (RFC 9213 §2.2), also in what is stored. This one says nothing.
        if !has_any(headers, &TARGETS) {
            headers.insert(SEAWALL_CACHE_CONTROL, HeaderValue::from_static("public"));
        }
    }

    /// Begins the search for nonces in the body of a response with these fields. `None`: nobody minds if there are any.
    #[must_use]
    pub fn nonce_search(&self, headers: &HeaderMap) -> Option<NonceSearch> {
        self.preset.responses.nonce_tick?;
        let is_page = matches!(&*media_type(headers), "text/html" | "application/xhtml+xml" | "application/json");
        let coding = headers.get(header::CONTENT_ENCODING).filter(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
        is_page.then(|| if coding.is_some() { NonceSearch::in_what_cannot_be_read() } else { NonceSearch::default() })
    }

    /// Returns whether the validators of a response with these fields may stay the same when its content changes: then they are not validators
    /// (RFC 9110 §8.8.1).
    #[must_use]
    pub fn mistakes_validators(&self, headers: &HeaderMap) -> bool {
        let types = self.preset.responses.mistaken_validators;
        !types.is_empty() && {
            let media_type = media_type(headers);
            types.iter().any(|mistaken| media_type.eq_ignore_ascii_case(mistaken))
        }
    }

    /// Returns the period in which pages of the source get new nonces.
    #[must_use]
    pub const fn nonce_tick(&self) -> Option<Duration> {
        self.preset.responses.nonce_tick
    }

    /// Returns the lifetime of an answer that is held for so long whatever the source says. It is refreshed behind its readers for as long
    /// again, but for a "not found": what is published there must be seen.
    fn held(&self, facts: &KeepFacts<'_>, hold: Duration) -> Freshness {
        let hold = self.settings().hold.map_or(hold, |most| hold.min(most));
        let freshness =
            Freshness::of(facts.status, &HeaderMap::new(), &ResponseDirectives::default(), facts.request_time, facts.response_time);
        Freshness {
            stale_while_revalidate: if facts.status == StatusCode::NOT_FOUND { Duration::ZERO } else { hold },
            stale_if_error: self.settings().stale_if_error,
            ..freshness.with_hold(hold)
        }
    }

    /// Returns the lifetime that the origin gave, or the site's hold if that is longer; where the hold is for silence, the hold only if the origin gave
    /// none to caches. `briefly` is the longest lifetime of all.
    fn freshness(
        &self,
        facts: &KeepFacts<'_>,
        directives: &ResponseDirectives,
        hold_max: Option<Duration>,
        briefly: Option<Duration>,
    ) -> Freshness {
        let mut freshness = Freshness::of(facts.status, facts.headers, directives, facts.request_time, facts.response_time);
        let is_for_silence = self.preset.responses.hold_is_for_silence;
        let is_given = is_for_silence && directives.targeted && freshness.source == LifetimeSource::Explicit;
        if let Some(hold) = self.hold(facts, directives, HoldTerms { is_personal: facts.carries.is_personal(), max: hold_max }) {
            let is_guess = is_for_silence && freshness.source == LifetimeSource::Heuristic;
            if is_guess || !is_given && freshness.lifetime.saturating_sub(freshness.initial_age) < hold {
                freshness = freshness.with_hold(hold);
            }
        }
        if let Some(briefly) = briefly {
            freshness.lifetime = freshness.lifetime.min(freshness.initial_age + briefly);
        }
        if matches!(facts.status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT) {
            freshness.lifetime = freshness.lifetime.min(REDIRECT_HOLD_MAX);
        }
        // What is to be looked at again soon (a file that may have changed) is not shown for long after that.
        let window_max = if is_given { Some(freshness.lifetime) } else { hold_max };
        if let Some(window) = self.settings().stale_while_revalidate.map(|window| window_max.map_or(window, |most| window.min(most)))
            && freshness.stale_allowed
            && freshness.stale_while_revalidate.is_zero()
        {
            freshness.stale_while_revalidate = window;
        }
        if freshness.stale_if_error.is_none() && freshness.stale_allowed {
            freshness.stale_if_error = self.settings().stale_if_error;
        }
        freshness
    }

    /// Returns how long the site wants to keep such an answer beyond the origin's word. It never does so against `no-cache`, nor for an answer
    /// to somebody: a hold is our promise, not the origin's.
    fn hold(&self, facts: &KeepFacts<'_>, directives: &ResponseDirectives, terms: HoldTerms) -> Option<Duration> {
        let hold = self.settings().hold.map(|hold| terms.max.map_or(hold, |most| hold.min(most)))?;
        if directives.no_cache.is_present() || terms.is_personal {
            return None;
        }
        match facts.status.as_u16() {
            200 | 203 | 301 | 308 | 410 => Some(hold),
            404 => Some(self.preset.not_found_hold_max.map_or(hold, |max| hold.min(max))),
            _ => None,
        }
    }

    /// Returns whether the response sends its client back to the key under which it would be stored. What counts is what the reference means, and
    /// not how it is written: whoever follows it asks for that in the form in which the key has it. The scheme does not count
    /// ([`resolve`]): where it does, as on the way from http to https, a redirect that is not stored costs a request, one that goes round costs the page.
    fn redirects_to_itself(&self, facts: &KeepFacts<'_>) -> bool {
        if !facts.status.is_redirection() || facts.status == StatusCode::NOT_MODIFIED {
            return false;
        }
        let Some(reference) =
            facts.headers.get(header::LOCATION).and_then(|location| resolve(facts.authority, facts.target, location.as_bytes()))
        else {
            return false;
        };
        let (path, query) = reference.split_once('?').map_or((&*reference, None), |(path, query)| (path, Some(query)));
        self.forwarded_target(path, query).is_some_and(|target| target == facts.target)
    }
}

/// Returns whether a response to a request with a cookie or `Authorization` says in `Cache-Control` or `Expires` that it may be for that client alone,
/// although a field for caches speaks instead of these (RFC 9213).
///
/// A server that writes such a field into everything does not know of the reader for whom the page was made. The page's own maker does.
fn own_word_is_stricter(facts: &KeepFacts<'_>) -> bool {
    let headers = facts.headers;
    let own = ResponseDirectives::of(headers);
    let forbids = |said: &ResponseDirectives| said.no_store || said.private.is_present();
    // Where several fields for caches disagree, the narrowest one is obeyed, and may have been written into everything.
    let is_forbidden = TARGETS.iter().map(slice::from_ref).chain([&[][..]]).any(|field| forbids(&directives(headers, field)));
    let is_old_no_cache = !headers.contains_key(header::CACHE_CONTROL)
        && headers.get_all(header::PRAGMA).iter().any(|line| line.as_bytes().trim_ascii().eq_ignore_ascii_case(b"no-cache"));
    let is_shared_for_nothing = own.s_maxage.is_some_and(|lifetime| lifetime.as_duration().is_zero());
    if forbids(&own) || is_forbidden || own.no_cache.is_present() || is_old_no_cache || is_shared_for_nothing {
        return true;
    }
    // `public, max-age=0` is for browsers, and says that the page is everybody's.
    let freshness = Freshness::of(facts.status, headers, &own, facts.request_time, facts.response_time);
    !own.public && freshness.source == LifetimeSource::Explicit && freshness.lifetime.is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Settings};

    const NOW: Timestamp = Timestamp::from_secs(1_780_000_000);

    struct Case {
        status: u16,
        fields: &'static [(&'static str, &'static str)],
        carries: Carries,
        just_purged: bool,
    }

    fn case(status: u16, fields: &'static [(&'static str, &'static str)]) -> Case {
        Case { status, fields, carries: Carries::default(), just_purged: false }
    }

    impl Case {
        fn keep(&self, settings: Settings) -> Result<KeepTerms, NotKept> {
            let mut headers = HeaderMap::new();
            for (name, value) in self.fields {
                headers.append(*name, value.parse().expect("a field value"));
            }
            Policy::new(settings).keep(&KeepFacts {
                method: &Method::GET,
                authority: "blog.example",
                target: "/post?page=2",
                carries: self.carries,
                request: &RequestDirectives::NONE,
                status: StatusCode::from_u16(self.status).expect("a status"),
                headers: &headers,
                request_time: NOW,
                response_time: NOW,
                just_purged: self.just_purged,
            })
        }

        fn lifetime(&self, settings: Settings) -> Option<u64> {
            self.keep(settings).ok().map(|kept| kept.freshness.lifetime.as_secs())
        }
    }

    fn generic() -> Settings {
        Settings::preset(Kind::Generic)
    }

    fn held(secs: u64) -> Settings {
        Settings { hold: Some(Duration::from_secs(secs)), ..generic() }
    }

    const COOKIE: Carries = Carries { cookie: true, ghost_cookie: false, authorization: false };
    const AUTHORIZATION: Carries = Carries { cookie: false, ghost_cookie: false, authorization: true };
    const GHOST_COOKIE: Carries = Carries { ghost_cookie: true, ..COOKIE };

    #[test]
    fn the_origins_word_is_taken_for_any_status() {
        for status in [200, 404, 500, 599] {
            assert_eq!(case(status, &[("cache-control", "max-age=60")]).lifetime(generic()), Some(60), "{status}");
        }
    }

    #[test]
    fn what_sets_a_cookie_is_never_kept() {
        let case = case(200, &[("cache-control", "public, max-age=60"), ("set-cookie", "a=1")]);
        assert_eq!(case.keep(generic()).expect_err("not kept"), NotKept::SetCookie);
        assert_eq!(case.keep(held(60)).expect_err("not kept"), NotKept::SetCookie);
        assert!(case.keep(Settings { store_set_cookie: true, ..generic() }).is_ok_and(|kept| kept.omitted.is_empty()));
    }

    /// RFC 9111 §5.2.2.4, §5.2.2.7.
    #[test]
    fn a_cookie_that_the_origin_holds_back_itself_is_left_out_and_the_rest_kept() {
        for cache_control in ["max-age=60, private=\"Set-Cookie\"", "max-age=60, no-cache=\"set-cookie, set-cookie2\""] {
            let fields: &'static [(&str, &str)] = Box::leak(Box::new([("cache-control", cache_control), ("set-cookie", "a=1")]));
            let kept = case(200, fields).keep(generic()).expect("kept");
            assert!(kept.omitted.contains(&header::SET_COOKIE) && !kept.freshness.validate_always, "{cache_control}");
        }
        let misspelled = case(200, &[("cache-control", "max-age=60, private=\"x-usr\""), ("x-user", "alice")]);
        assert_eq!(misspelled.keep(generic()).expect_err("not kept"), NotKept::NotStorable(NotStorable::PrivateFields));
    }

    /// A server that adds `CDN-Cache-Control` to everything does not know whose page it is; who made the page does.
    #[test]
    fn a_targeted_field_does_not_give_away_what_was_made_for_a_cookie() {
        for own in [
            ("cache-control", "no-store"),
            ("cache-control", "private"),
            ("cache-control", "private, no-store, max-age=0"),
            ("cache-control", "no-cache"),
            ("cache-control", "no-cache=\"x-user\""),
            ("cache-control", "max-age=0"),
            ("cache-control", "max-age=60, s-maxage=0"),
            // WordPress before 6.3 says this to somebody who has signed in.
            ("cache-control", "no-cache, must-revalidate, max-age=0"),
            ("expires", "Wed, 11 Jan 1984 05:00:00 GMT"),
            ("expires", "0"),
            ("pragma", "no-cache"),
            // What a server has added does not take back what the page said.
            ("cache-control", "public, no-cache, must-revalidate, max-age=0"),
            ("cache-control", "public, s-maxage=0"),
            ("surrogate-control", "no-store"),
        ] {
            for field in ["cdn-cache-control", "seawall-cache-control"] {
                let fields: &'static [(&str, &str)] = Box::leak(Box::new([own, (field, "public, max-age=600")]));
                assert!(case(200, fields).keep(generic()).is_ok(), "{own:?} {field}");
                for carries in [COOKIE, AUTHORIZATION] {
                    assert!(Case { carries, ..case(200, fields) }.keep(generic()).is_err(), "{own:?} {field} {carries:?}");
                }
            }
        }
        let disagreeing: &[_] = &[("cdn-cache-control", "private"), ("seawall-cache-control", "public, max-age=600")];
        assert!(case(200, disagreeing).keep(generic()).is_ok());
        assert!(Case { carries: COOKIE, ..case(200, disagreeing) }.keep(generic()).is_err());
        // It comes from another cache, which has had it for longer than browsers may.
        let old: &[_] = &[("cache-control", "max-age=60"), ("age", "100"), ("cdn-cache-control", "public, max-age=600")];
        assert!(Case { carries: COOKIE, ..case(200, old) }.keep(generic()).is_ok());
        for own in ["public, max-age=0", "max-age=1", "must-revalidate"] {
            let fields: &'static [(&str, &str)] =
                Box::leak(Box::new([("cache-control", own), ("cdn-cache-control", "public, max-age=600")]));
            for carries in [COOKIE, AUTHORIZATION] {
                let kept = Case { carries, ..case(200, fields) }.keep(generic());
                assert!(kept.is_ok_and(|kept| kept.for_cookies && kept.for_authorization), "{own} {carries:?}");
            }
        }
    }

    #[test]
    fn a_targeted_field_speaks_instead_of_cache_control() {
        assert_eq!(case(200, &[("cache-control", "no-store"), ("cdn-cache-control", "max-age=60")]).lifetime(generic()), Some(60));
        assert_eq!(case(200, &[("cache-control", "max-age=60"), ("cdn-cache-control", "no-store")]).lifetime(generic()), None);
        let both = [("cache-control", "max-age=1"), ("cdn-cache-control", "max-age=2"), ("seawall-cache-control", "max-age=3")];
        assert_eq!(case(200, Box::leak(Box::new(both))).lifetime(generic()), Some(3));
    }

    #[test]
    fn an_answer_to_a_cookie_is_kept_only_on_the_origins_word() {
        let guess = Case { carries: COOKIE, ..case(200, &[("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT")]) };
        assert_eq!(guess.keep(generic()).expect_err("not kept"), NotKept::Cookie);
        let word = Case { carries: COOKIE, ..case(200, &[("cache-control", "max-age=60")]) };
        assert!(word.keep(generic()).is_ok_and(|kept| kept.for_cookies));
        let hold = Case { carries: COOKIE, ..case(200, &[("cache-control", "public, max-age=0"), ("etag", "\"a\"")]) };
        assert_ne!(hold.lifetime(held(60)), Some(60));
    }

    /// Ghost calls the pages of its members public, and means the members of a tier. A site of another kind knows no tiers: a Ghost may be behind
    /// it, which was away when it was asked what it is.
    #[test]
    fn a_ghost_members_page_is_not_kept_by_a_kind_that_knows_no_tiers() {
        let fields: &[_] = &[("cache-control", "public, max-age=600"), ("x-member-cache-tier", "6a5e8f1d2b3c4d5e6f708192")];
        for kind in [Kind::Generic, Kind::Php, Kind::Ghost] {
            let settings = || Settings::preset(kind);
            assert_eq!(case(200, fields).keep(settings()).err(), Some(NotKept::Member(MemberReason::Tier)), "{kind:?}");
            for status in [200, 304] {
                let answer = Case { carries: GHOST_COOKIE, ..case(status, &[("cache-control", "public, max-age=600")]) };
                let why = answer.keep(settings()).expect_err("not kept");
                assert_eq!(why, NotKept::Member(MemberReason::Cookie), "{kind:?}");
                assert!(why.is_about_this_request() && !why.is_about_the_page(), "others may be kept");
            }
        }
        let targeted: &[_] = &[("cache-control", "private"), ("cdn-cache-control", "public, max-age=600")];
        assert!(Case { carries: GHOST_COOKIE, ..case(200, targeted) }.keep(generic()).is_err());
        assert!(case(200, fields).keep(Settings::preset(Kind::Static)).is_ok(), "who has files or a blog has no members");
    }

    /// Found by trying: alice's page, stored to be validated, was served to bob when the origin went down.
    #[test]
    fn an_answer_to_a_cookie_without_a_lifetime_is_not_kept_even_to_be_validated() {
        for cache_control in ["max-age=0", "public, max-age=0", "no-cache", "max-age=60, s-maxage=0"] {
            let fields: &'static [(&str, &str)] = Box::leak(Box::new([("cache-control", cache_control), ("etag", "\"a\"")]));
            let answer = Case { carries: COOKIE, ..case(200, fields) };
            assert_eq!(answer.keep(generic()).err(), Some(NotKept::Cookie), "{cache_control}");
            assert_eq!(answer.keep(held(60)).err(), Some(NotKept::Cookie), "{cache_control}");
        }
        let old = Case { carries: COOKIE, ..case(200, &[("cache-control", "max-age=60"), ("age", "60"), ("etag", "\"a\"")]) };
        assert_eq!(old.keep(generic()).err(), Some(NotKept::Cookie));
    }

    /// RFC 9111 §3.5 allows to store such an answer. But strangers would get what was made for somebody as soon as the origin is down, or when a 304
    /// says by its date alone that nothing has changed.
    #[test]
    fn an_answer_to_authorization_without_a_lifetime_is_not_kept_either() {
        for cache_control in
            ["public, max-age=0", "must-revalidate, max-age=0", "public, no-cache", "s-maxage=0", "public", "must-revalidate"]
        {
            let fields: &'static [(&str, &str)] =
                Box::leak(Box::new([("cache-control", cache_control), ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT")]));
            let answer = Case { carries: AUTHORIZATION, ..case(200, fields) };
            assert_eq!(answer.keep(generic()).err(), Some(NotKept::NotStorable(NotStorable::Authorization)), "{cache_control}");
        }
        for cache_control in ["public, max-age=60", "must-revalidate, max-age=60", "s-maxage=60"] {
            let fields: &'static [(&str, &str)] = Box::leak(Box::new([("cache-control", cache_control)]));
            let answer = Case { carries: AUTHORIZATION, ..case(200, fields) };
            assert!(answer.keep(generic()).is_ok_and(|kept| kept.for_authorization), "{cache_control}");
        }
    }

    #[test]
    fn a_hold_lengthens_and_never_shortens() {
        assert_eq!(case(200, &[("cache-control", "public, max-age=0")]).lifetime(held(60)), Some(60));
        assert_eq!(case(200, &[]).lifetime(held(60)), Some(60));
        assert_eq!(case(200, &[("cache-control", "max-age=600")]).lifetime(held(60)), Some(600));
        assert_eq!(case(404, &[]).lifetime(held(60)), Some(10));
        for forbidden in ["no-store", "private", "private, max-age=60", "no-store, no-cache"] {
            let fields: &'static [(&str, &str)] = Box::leak(Box::new([("cache-control", forbidden)]));
            assert!(case(200, fields).keep(held(60)).is_err(), "{forbidden}");
        }
        assert_eq!(case(500, &[]).lifetime(held(60)), None);
        assert_eq!(case(302, &[]).lifetime(held(60)), None);
    }

    /// Somebody else's answer would have been held: it is the cookie that keeps this one from being stored, and not the answer.
    #[test]
    fn an_answer_that_only_the_hold_would_keep_is_refused_for_its_cookie() {
        let with_cookie = |settings| Case { carries: COOKIE, ..case(200, &[]) }.keep(settings).err();
        assert_eq!(with_cookie(held(60)), Some(NotKept::Cookie));
        assert_eq!(with_cookie(generic()), Some(NotKept::NotStorable(NotStorable::Unfresh)));
        assert_eq!(Case { carries: COOKIE, ..case(302, &[]) }.keep(held(60)).err(), Some(NotKept::NotStorable(NotStorable::Unfresh)));
    }

    #[test]
    fn what_the_origin_did_not_share_is_not_for_cookies() {
        let kept = case(200, &[("cache-control", "public, max-age=0")]).keep(held(60)).expect("kept");
        assert!(!kept.for_cookies && !kept.for_authorization);
        let kept = case(200, &[("cache-control", "public, max-age=60")]).keep(generic()).expect("kept");
        assert!(kept.for_cookies && kept.for_authorization);
    }

    #[test]
    fn redirects_to_themselves_are_never_kept_and_permanent_ones_only_for_a_day() {
        let year = ("cache-control", "public, max-age=31536000");
        for location in ["/post?page=2", "http://blog.example/post?page=2", "https://BLOG.example/post?page=2"] {
            let fields: &'static [(&str, &str)] = Box::leak(Box::new([year, ("location", location)]));
            assert_eq!(case(301, fields).keep(generic()).expect_err("not kept"), NotKept::RedirectLoop, "{location}");
        }
        assert_eq!(case(301, &[("cache-control", "public, max-age=31536000"), ("location", "/post/")]).lifetime(generic()), Some(86_400));
    }

    #[test]
    fn a_not_found_just_after_a_purge_is_not_kept() {
        let case = Case { just_purged: true, ..case(404, &[("cache-control", "max-age=60")]) };
        assert_eq!(case.keep(generic()).expect_err("not kept"), NotKept::JustPurged);
    }
}
