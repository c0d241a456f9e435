//! Members of a Ghost whose tier is known: a verified cookie says what they have paid for, and then the tier is part of the key.
//!
//! Ghost gives a member two cookies that last an hour (`cacheMembersContent` in its configuration): `ghost-access` is `<tier>:<unix seconds>`,
//! and `ghost-access-hmac` is the HMAC-SHA256 of that text in hexadecimal digits. It never reads them itself: they are for the cache in front of
//! it. It writes them without quotes and escapes, so nothing else is accepted here. In whatever is not as Ghost writes it, the request passes,
//! as all requests of members do without the secret.
//!
//! Absent from here: a clock (the time is asked for only when a signature is to be judged), and what is remembered of other members' answers.

use std::{fmt, time::Duration};

use aws_lc_rs::{digest, hmac};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use semantics::{
    RequestFields, Timestamp,
    cache_control::ResponseDirectives,
    hex, percent,
    request::{RequestHead, Slot},
};

use crate::{
    Carries, KeepFacts, KeepTerms, MemberReason, NotKept, PassRule, Policy, Settings, Verdict,
    key::{is_tier, write_tier},
    trace::{Silent, Trace},
};

/// The field in which Ghost says for which tier it has made a page.
pub const MEMBER_CACHE_TIER: HeaderName = HeaderName::from_static("x-member-cache-tier");

/// The name of the rule by which members of a tier share pages, to show to people.
pub const TIER_RULE: &str = "ghost-tier";

/// The cookies of a member, each of which there must be once.
const COOKIES: [&str; 4] = [SESSION, "ghost-members-ssr.sig", ACCESS, ACCESS_HMAC];
const SESSION: &str = "ghost-members-ssr";
const ACCESS: &str = "ghost-access";
const ACCESS_HMAC: &str = "ghost-access-hmac";

/// The time for which Ghost lets the cookie live. A browser drops it then; whoever copied it does not.
const SECS_MAX: u64 = 3600;
/// The most that Ghost's clock may be ahead of ours.
const SKEW_SECS_MAX: u64 = 60;

/// The most marks that are looked for in a page. A request whose cookies have more of them gets no stored answer.
const MARKS_MAX: usize = 16;

/// The response fields that differ from answer to answer although the page is the same.
const INCIDENTAL: [HeaderName; 6] = [
    header::DATE,
    header::AGE,
    header::VIA,
    HeaderName::from_static("server-timing"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-response-time"),
];

/// A member whose tier is verified.
#[derive(Clone)]
pub struct Member {
    tier: Box<str>,
    session: Box<[u8]>,
    cookies: HeaderValue,
    /// The marks in the cookies that name a person, in lower case. `None`: there is too much of it.
    marks: Option<Box<[Box<[u8]>]>>,
}

/// Never shows what is in the cookies.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("tier", &self.tier).finish_non_exhaustive()
    }
}

/// The reason why a member's tier is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    NotOptedIn,
    Cookies,
    Authorization,
    BadSignature,
    Expired,
    FromTheFuture,
}

impl Unknown {
    const fn in_words(self) -> &'static str {
        match self {
            Self::NotOptedIn => "not opted in: no member_secret is set",
            Self::Cookies => {
                "the request has not each of the four cookies of a member once, as Ghost writes them, and no other cookie of Ghost's"
            }
            Self::Authorization => "the request carries Authorization",
            Self::BadSignature => "bad signature",
            Self::Expired => "expired",
            Self::FromTheFuture => "from the future",
        }
    }
}

/// Makes the key by which tiers are verified. An empty secret is none: Ghost signs nothing with it.
pub(crate) fn key(settings: &Settings) -> Option<hmac::Key> {
    let secret = settings.member_secret.as_deref().filter(|secret| !secret.is_empty())?;
    Some(hmac::Key::new(hmac::HMAC_SHA256, secret))
}

impl Policy {
    /// Returns whether the kind's rules know members of a Ghost.
    #[must_use]
    pub fn knows_members(&self) -> bool {
        self.preset.rules.passes.cookies.iter().any(|rule| rule.of.have(SESSION))
    }

    /// Judges a request as [`Policy::verdict_traced`] does; but where it would pass only because of a member's cookies, and those prove the
    /// member's tier, the cache is asked under a key with the tier.
    ///
    /// `headers` are those of `head`. `now` is asked for only if there is a signature to judge.
    pub fn verdict_with_member(
        &self,
        site: u16,
        head: &RequestHead<'_>,
        headers: &HeaderMap,
        key: &mut Vec<u8>,
        now: impl FnOnce() -> Timestamp,
        trace: &mut impl Trace,
    ) -> (Verdict, Option<Member>) {
        let member = match self.member(head.fields, now) {
            None => return (self.verdict_traced(site, head, key, trace), None),
            Some(Err(unknown)) => {
                let verdict = self.verdict_traced(site, head, key, trace);
                if matches!(verdict, Verdict::Pass(PassRule::Cookie { .. })) {
                    trace.notes(TIER_RULE, || unknown.in_words().to_owned());
                }
                return (verdict, None);
            }
            Some(Ok(member)) => member,
        };
        let with_cookies = self.verdict_traced(site, head, key, &mut Silent);
        let is_page = semantics::target::normal_path(head.path).is_ok_and(|path| self.is_page_for_tiers(&path));
        if !matches!(with_cookies, Verdict::Pass(PassRule::Cookie { .. })) || !is_page {
            let verdict = self.verdict_traced(site, head, key, trace);
            if matches!(verdict, Verdict::Pass(PassRule::Cookie { .. })) {
                trace.notes(TIER_RULE, || "no page that members of a tier share".to_owned());
            }
            return (verdict, None);
        }
        // The key is that of the same request without cookies, and the tier.
        let mut without = headers.clone();
        without.remove(header::COOKIE);
        let fields = RequestFields::from_map(&without);
        let verdict = self.verdict_traced(site, &RequestHead { fields: &fields, ..*head }, key, trace);
        if verdict != Verdict::Lookup(Carries::default()) {
            return (self.verdict_traced(site, head, key, &mut Silent), None);
        }
        trace.notes(TIER_RULE, || format!("verified: {}; else judged as without a member's cookies", member.tier));
        write_tier(key, &member.tier);
        (verdict, Some(member))
    }

    /// Returns the member who asks. `None`: the request does not say so in a way that a tier could be known by.
    fn member(&self, fields: &RequestFields<'_>, now: impl FnOnce() -> Timestamp) -> Option<Result<Member, Unknown>> {
        // Most readers are not members, and most sites have none.
        if fields.cookie == Slot::Absent || !self.knows_members() {
            return None;
        }
        let mut lines: Vec<&[u8]> = Vec::new();
        fields.lines.for_each("cookie", |line| lines.push(line));
        let mut values: [Option<&[u8]>; COOKIES.len()] = [None; COOKIES.len()];
        let mut says_access = false;
        let mut is_odd = false;
        for pair in lines.iter().flat_map(|line| line.split(|&b| b == b';')) {
            let name = pair.split(|&b| b == b'=').next().unwrap_or_default().trim_ascii();
            let Ok(name) = std::str::from_utf8(name) else { continue };
            says_access |= name == ACCESS;
            if !COOKIES.contains(&name) && !self.preset.rules.passes.cookies.iter().any(|rule| rule.of.have(name)) {
                continue;
            }
            // As Ghost reads it: spaces in front of the name, none behind it, and everything up to the semicolon.
            let value = pair.trim_ascii_start().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            match (COOKIES.iter().position(|known| *known == name), value.filter(|value| is_plain(value))) {
                (Some(at), Some(value)) if values[at].is_none() => values[at] = Some(value),
                _ => is_odd = true,
            }
        }
        if !says_access {
            return None;
        }
        let Some(secret) = &self.member_key else { return Some(Err(Unknown::NotOptedIn)) };
        let [Some(session), Some(session_sig), Some(access), Some(access_hmac)] = values else {
            return Some(Err(Unknown::Cookies));
        };
        if is_odd {
            return Some(Err(Unknown::Cookies));
        }
        if fields.authorization.is_present() {
            return Some(Err(Unknown::Authorization));
        }
        let tier = match verified(secret, access, access_hmac, now) {
            Ok(tier) => tier.into(),
            Err(unknown) => return Some(Err(unknown)),
        };
        let cookies =
            COOKIES.iter().zip([session, session_sig, access, access_hmac]).map(|(name, value)| [name.as_bytes(), value].join(&b'='));
        let cookies = HeaderValue::from_bytes(&cookies.collect::<Vec<_>>().join(&b"; "[..]));
        let Ok(mut cookies) = cookies else { return Some(Err(Unknown::Cookies)) };
        cookies.set_sensitive(true);
        Some(Ok(Member { tier, session: session.into(), cookies, marks: marks(&lines) }))
    }

    /// Returns whether a path in its normal form can be that of a page which members of a tier share: what has rules of its own is an API, acts, or
    /// leads a person on.
    fn is_page_for_tiers(&self, path: &str) -> bool {
        let is_below = self.settings().base_path.is_empty() || self.below_base(path).len() < path.len();
        is_below && self.area(path).is_none()
    }

    /// Decides whether the answer to a member could be the answer to all members of the tier, and on which terms it would be kept. That it is the
    /// same for two of them is for the caller to see.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub fn keep_for_tier(&self, member: &Member, facts: &KeepFacts<'_>) -> Result<KeepTerms, NotKept> {
        if facts.headers.contains_key(header::SET_COOKIE) {
            return Err(NotKept::SetCookie);
        }
        let own = ResponseDirectives::of(facts.headers);
        let is_public = own.public && !own.no_store && !own.private.is_present() && !own.no_cache.is_present();
        for (is_so, why) in [
            (facts.status == StatusCode::OK, MemberReason::Status),
            // A member with two subscriptions has no tier; for one with a gift, cookie and response name different ones.
            (member.is_of_tier(facts.headers), MemberReason::AnotherTier),
            (is_public, MemberReason::NotPublic),
            // Marks could not be looked for.
            (!facts.headers.contains_key(header::CONTENT_ENCODING), MemberReason::Coded),
            (!varies_on_person(facts.headers), MemberReason::Vary),
        ] {
            if !is_so {
                return Err(NotKept::Member(why));
            }
        }
        let mut kept = self.keep_whatever_tier(facts)?;
        // It is never refreshed in the background.
        kept.freshness.stale_while_revalidate = Duration::ZERO;
        if kept.omitted.is_empty() { Ok(kept) } else { Err(NotKept::Member(MemberReason::Fields)) }
    }
}

impl Member {
    /// Returns the name of the tier.
    #[must_use]
    pub fn tier(&self) -> &str {
        &self.tier
    }

    /// Returns what stands for the member: the value of the session cookie. It must be kept as a keyed hash only.
    #[must_use]
    pub fn session(&self) -> &[u8] {
        &self.session
    }

    /// Returns `Cookie` as the origin is to see it: the member's four cookies.
    #[must_use]
    pub const fn cookies(&self) -> &HeaderValue {
        &self.cookies
    }

    /// Returns whether a response says, once, that it was made for the member's tier.
    #[must_use]
    pub fn is_of_tier(&self, headers: &HeaderMap) -> bool {
        let mut said = headers.get_all(MEMBER_CACHE_TIER).iter();
        said.next().is_some_and(|tier| tier.as_bytes() == self.tier.as_bytes()) && said.next().is_none()
    }

    /// Returns whether an answer has something in it by which the member can be told: an e-mail address or a UUID out of the cookies, or the
    /// session itself.
    #[must_use]
    pub fn is_named_in(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let Some(marks) = &self.marks else { return true };
        let has_mark = |text: &[u8]| {
            let text = text.to_ascii_lowercase();
            marks.iter().any(|mark| memchr::memmem::find(&text, mark).is_some())
        };
        headers.values().any(|value| has_mark(value.as_bytes())) || has_mark(body)
    }
}

/// Makes a number of an answer, by which two can be told apart: of all that a client sees of it, but for fields that differ each time.
#[must_use]
pub fn answer_digest(headers: &HeaderMap, body: &[u8]) -> [u8; 32] {
    let mut lines: Vec<_> = headers.iter().filter(|(name, _)| !INCIDENTAL.contains(name)).collect();
    // The order of lines counts within one field alone.
    lines.sort_by_key(|(name, _)| name.as_str());
    let mut context = digest::Context::new(&digest::SHA256);
    for (name, value) in lines {
        for part in [name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"] {
            context.update(part);
        }
    }
    context.update(b"\n");
    context.update(body);
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Returns the tier that the cookies prove.
fn verified<'a>(secret: &hmac::Key, access: &'a [u8], access_hmac: &[u8], now: impl FnOnce() -> Timestamp) -> Result<&'a str, Unknown> {
    let tag: [u8; 32] = hex::decoded_exactly(access_hmac).ok_or(Unknown::Cookies)?;
    let text = std::str::from_utf8(access).map_err(|_| Unknown::Cookies)?;
    let (tier, seconds) = text.split_once(':').ok_or(Unknown::Cookies)?;
    if !is_tier(tier) || seconds.len() > 12 || seconds.starts_with('0') || !seconds.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Unknown::Cookies);
    }
    let made: u64 = seconds.parse().map_err(|_| Unknown::Cookies)?;
    // In constant time.
    hmac::verify(secret, access, &tag).map_err(|_| Unknown::BadSignature)?;
    let now = now().as_secs();
    if made > now.saturating_add(SKEW_SECS_MAX) {
        Err(Unknown::FromTheFuture)
    } else if now.saturating_sub(made) > SECS_MAX {
        Err(Unknown::Expired)
    } else {
        Ok(tier)
    }
}

/// Returns whether the value of a cookie means the same to everybody who reads it: nothing in it is quoted, escaped or cut off.
fn is_plain(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'%' | b','))
}

/// Returns whether a response says that it depends on who asks, or on nobody knows what.
fn varies_on_person(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::VARY).iter();
    let mut names = lines.flat_map(|line| line.as_bytes().split(|&b| b == b',')).map(<[u8]>::trim_ascii);
    names.any(|name| [&b"*"[..], b"cookie", b"authorization"].iter().any(|person| name.eq_ignore_ascii_case(person)))
}

/// Collects what names a person in cookies: session, e-mail addresses and UUIDs, in lower case and in the spellings of HTML and URLs. `None`:
/// there are too many.
fn marks(lines: &[&[u8]]) -> Option<Box<[Box<[u8]>]>> {
    let mut marks: Vec<Box<[u8]>> = Vec::new();
    for line in lines {
        let line = percent::decoded(line).to_ascii_lowercase();
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || b"@.+-_".contains(b);
        for word in line.split(|b| !is_word(b)) {
            let word = word.trim_ascii();
            match word.iter().position(|&b| b == b'@') {
                Some(at) if at > 0 && word[at + 1..].contains(&b'.') => {
                    for sign in [&b"@"[..], b"%40", b"&#64;", b"&#x40;", b"\\u0040"] {
                        marks.push([&word[..at], sign, &word[at + 1..]].concat().into());
                    }
                }
                _ => marks.extend(uuids(word).map(Into::into)),
            }
            if marks.len() > MARKS_MAX * 5 {
                return None;
            }
        }
    }
    marks.sort_unstable();
    marks.dedup();
    Some(marks.into())
}

/// Returns the UUIDs (RFC 9562 §4) in a word.
fn uuids(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let is_uuid =
        |text: &&[u8]| text.iter().enumerate().all(|(at, b)| if DASHES.contains(&at) { *b == b'-' } else { b.is_ascii_hexdigit() });
    word.windows(36).filter(is_uuid)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use semantics::{cache_control::RequestDirectives, request::Scheme};

    use super::*;
    use crate::{Key, Kind, Steps};

    const SECRET: &[u8] = b"a secret of thirty-two bytes, ok";
    const NOW: Timestamp = Timestamp::from_secs(1_780_000_000);

    /// A value and its signature, as another program computed it:
    /// `printf 6a5e8f1d2b3c4d5e6f708192:1780000000 | openssl dgst -sha256 -mac hmac -macopt hexkey:6120736563726574206f66207468697274792d74776f2062797465732c206f6b`
    const ACCESS_1: &str = "6a5e8f1d2b3c4d5e6f708192:1780000000";
    const HMAC_1: &str = "c13187f2f52fa982907944587fa418c2900ddf560063a657f0fc742017ebcccb";
    const VERIFIED: &str = "verified: 6a5e8f1d2b3c4d5e6f708192; else judged as without a member's cookies";
    const UUID: &str = "0d2f8a4e-5c1b-4f7a-9e36-a1b2c3d4e5f6";

    fn policy(secret: Option<&[u8]>) -> Policy {
        Policy::new(Settings { member_secret: secret.map(<[u8]>::to_vec), ..Settings::preset(Kind::Ghost) })
    }

    fn cookies(access: &str, hmac: &str) -> String {
        format!("ghost-members-ssr={UUID}; ghost-members-ssr.sig=aB-_9; ghost-access={access}; ghost-access-hmac={hmac}")
    }

    type Judged = (Verdict, Option<Member>, Vec<u8>, Vec<String>);

    fn judged(policy: &Policy, method: &Method, target: &str, fields: &[(&'static str, &str)], now: Timestamp) -> Judged {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, value.parse().expect("a value"));
        }
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let fields = RequestFields::from_map(&map);
        let head = RequestHead { method, scheme: Scheme::Https, authority: "blog.example", path, query, fields: &fields };
        let (mut key, mut steps) = (Vec::new(), Steps::default());
        let (verdict, member) = policy.verdict_with_member(1, &head, &map, &mut key, || now, &mut steps);
        let told = steps.0.into_iter().filter(|step| step.rule == TIER_RULE).map(|step| step.detail).collect();
        (verdict, member, key, told)
    }

    /// The tier and what is told of it.
    fn tier_of(policy: &Policy, cookie: &str, now: Timestamp) -> (Option<String>, String) {
        let (verdict, member, ..) = judged(policy, &Method::GET, "/post/", &[("cookie", cookie)], now);
        assert_eq!(matches!(verdict, Verdict::Lookup(_)), member.is_some(), "{cookie}");
        let told = judged(policy, &Method::GET, "/post/", &[("cookie", cookie)], now).3.join(", ");
        assert!(!told.contains(UUID) && !told.contains(HMAC_1) && !told.contains("1780000000"), "{told}");
        (member.map(|member| member.tier().to_owned()), told)
    }

    #[test]
    fn a_verified_tier_is_in_the_key_and_the_rest_of_the_key_is_that_of_everybody() {
        let policy = policy(Some(SECRET));
        let cookie = cookies(ACCESS_1, HMAC_1);
        for method in [Method::GET, Method::HEAD] {
            let (verdict, member, key, told) = judged(&policy, &method, "/post/?v=1&x=2", &[("cookie", &cookie)], NOW);
            assert_eq!((verdict, told), (Verdict::Lookup(Carries::default()), vec![VERIFIED.to_owned()]));
            let (_, nobody, others, _) = judged(&policy, &method, "/post/?v=1&x=2", &[], NOW);
            assert!(nobody.is_none());
            assert_eq!(Key::read(&key), Some(Key { tier: Some("6a5e8f1d2b3c4d5e6f708192"), ..Key::read(&others).expect("a key") }));
            let member = member.expect("a member");
            assert_eq!(member.cookies(), cookie.as_str());
            assert!(!format!("{member:?}").contains(UUID));
        }
    }

    #[test]
    fn a_cookie_counts_for_an_hour_from_when_it_was_made() {
        let policy = policy(Some(SECRET));
        let cookie = cookies(ACCESS_1, HMAC_1);
        let tier = Some("6a5e8f1d2b3c4d5e6f708192".to_owned());
        for (now, expected) in [
            (1_780_000_000, (tier.clone(), VERIFIED)),
            (1_780_003_600, (tier.clone(), VERIFIED)),
            (1_780_003_601, (None, "expired")),
            (1_779_999_940, (tier, VERIFIED)),
            (1_779_999_939, (None, "from the future")),
            (0, (None, "from the future")),
        ] {
            assert_eq!(tier_of(&policy, &cookie, Timestamp::from_secs(now)), (expected.0, expected.1.to_owned()), "{now}");
        }
    }

    #[test]
    fn what_is_not_signed_with_the_secret_says_nothing() {
        let other_tier = ACCESS_1.replace("6a5e", "6a5f");
        let later = ACCESS_1.replace("1780000000", "1780000001");
        let flipped = HMAC_1.replace("c131", "c132");
        for (access, hmac) in [(other_tier.as_str(), HMAC_1), (&later, HMAC_1), (ACCESS_1, &flipped), (ACCESS_1, &"0".repeat(64))] {
            assert_eq!(tier_of(&policy(Some(SECRET)), &cookies(access, hmac), NOW), (None, "bad signature".to_owned()), "{access} {hmac}");
        }
        let cookie = cookies(ACCESS_1, HMAC_1);
        assert_eq!(tier_of(&policy(Some(b"another secret")), &cookie, NOW), (None, "bad signature".to_owned()));
        let not_opted_in = "not opted in: no member_secret is set".to_owned();
        assert_eq!(tier_of(&policy(None), &cookie, NOW), (None, not_opted_in.clone()));
        assert_eq!(tier_of(&policy(Some(b"")), &cookie, NOW), (None, not_opted_in));
    }

    #[test]
    fn cookies_that_are_not_as_ghost_writes_them_say_nothing() {
        let good = cookies(ACCESS_1, HMAC_1);
        let with = |from: &str, to: &str| good.replace(from, to);
        let odd = [
            with(ACCESS_1, &format!("\"{ACCESS_1}\"")),
            with(ACCESS_1, &ACCESS_1.replace(':', "%3A")),
            with(ACCESS_1, &ACCESS_1.replace(":17", ":017")),
            with(ACCESS_1, &ACCESS_1.replace(":17", ":+17")),
            with(ACCESS_1, &format!("{ACCESS_1} ")),
            with(ACCESS_1, "1780000000"),
            with(ACCESS_1, ""),
            with(HMAC_1, &HMAC_1.to_uppercase()),
            with(HMAC_1, &HMAC_1[..63]),
            with(HMAC_1, &format!("{HMAC_1}00")),
            // One that is not quoted and one that is are the same member to Ghost.
            with(UUID, &format!("\"{UUID}\"")),
            with(UUID, &UUID.replace('0', "%30")),
            with("ghost-members-ssr.sig=aB-_9; ", ""),
            with(&format!("ghost-members-ssr={UUID}; "), ""),
            with(&format!("; ghost-access-hmac={HMAC_1}"), ""),
            format!("{good}; ghost-access={ACCESS_1}"),
            format!("ghost-members-ssr=other; {good}"),
            format!("{good}; ghost-members-ssr"),
            format!("{good};\tghost-access-hmac={HMAC_1}"),
            with("ghost-access=", "ghost-access ="),
            format!("{good}; ghost-admin-toolbar=1"),
            format!("{good}; ghost-private=1"),
            format!("{good}; ghost-anything=1"),
            format!("{good}; members-ssr=1"),
        ];
        let policy = policy(Some(SECRET));
        for cookie in odd {
            assert_eq!(tier_of(&policy, &cookie, NOW), (None, Unknown::Cookies.in_words().to_owned()), "{cookie}");
        }
        // Other cookies, and several lines as HTTP/2 sends them, change nothing.
        let tier =
            |fields: &[(&'static str, &str)]| judged(&policy, &Method::GET, "/", fields, NOW).1.map(|member| member.tier().to_owned());
        assert!(tier(&[("cookie", &format!("_ga=1; theme=dark; {good}; a=\"b\""))]).is_some());
        let lines: Vec<_> = good.split("; ").map(|pair| ("cookie", pair)).collect();
        assert!(tier(&lines).is_some());
        assert_eq!(tier(&[lines.as_slice(), &lines[..1]].concat()), None);
        assert_eq!(tier(&[("cookie", &good), ("authorization", "Basic eA==")]), None);
        // Without the cookie there is nothing to say of a tier.
        assert_eq!(tier_of(&policy, &format!("ghost-members-ssr={UUID}"), NOW), (None, String::new()));
    }

    #[test]
    fn a_request_that_passes_for_another_reason_passes_with_a_tier_too() {
        let policy = policy(Some(SECRET));
        let cookie = cookies(ACCESS_1, HMAC_1);
        let passes = |method: &Method, target, field: Option<(&'static str, &str)>| {
            let fields: Vec<_> = [Some(("cookie", cookie.as_str())), field].into_iter().flatten().collect();
            let (verdict, member, key, _) = judged(&policy, method, target, &fields, NOW);
            assert_eq!(matches!(verdict, Verdict::Lookup(_)), member.is_some(), "{target}");
            assert_eq!(Key::read(&key).and_then(|key| key.tier), member.as_ref().map(Member::tier), "{target}");
            member.is_none()
        };
        for target in [
            "/ghost/",
            "/members/",
            "/members/api/member/",
            "/Members/api/member/",
            "/%6dembers/x",
            "/a/../members/x",
            "/p/uuid/",
            "/r/abc",
            "/?gift=1",
        ] {
            assert!(passes(&Method::GET, target, None), "{target}");
        }
        for target in ["/", "/post/", "/membership/", "/page/2/", "/pricing/", "/tag/members/", "/rss/"] {
            assert!(!passes(&Method::GET, target, None), "{target}");
        }
        assert!(passes(&Method::POST, "/post/", None));
        assert!(passes(&Method::GET, "/post/", Some(("x-ghost-preview", "1"))));
        assert!(passes(&Method::GET, "/post/", Some(("content-length", "1"))));
    }

    #[test]
    fn a_blog_below_a_path_has_its_pages_there() {
        let settings = Settings { base_path: "/blog".into(), member_secret: Some(SECRET.to_vec()), ..Settings::preset(Kind::Ghost) };
        let policy = Policy::new(settings);
        for (path, is_page) in
            [("/blog/", true), ("/blog/post/", true), ("/blog/members/x", false), ("/blogger/", false), ("/post/", false)]
        {
            assert_eq!(policy.is_page_for_tiers(path), is_page, "{path}");
        }
    }

    fn member() -> Member {
        judged(&policy(Some(SECRET)), &Method::GET, "/", &[("cookie", &cookies(ACCESS_1, HMAC_1))], NOW).1.expect("a member")
    }

    #[test]
    fn an_answer_is_kept_for_the_tier_only_on_the_origins_word() {
        let policy = policy(Some(SECRET));
        let good =
            [("cache-control", "public, max-age=600"), ("x-member-cache-tier", "6a5e8f1d2b3c4d5e6f708192"), ("vary", "Accept-Encoding")];
        let keep = |status: u16, fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            let facts = KeepFacts {
                method: &Method::GET,
                authority: "blog.example",
                target: "/post/",
                carries: Carries::default(),
                request: &RequestDirectives::NONE,
                status: StatusCode::from_u16(status).expect("a status"),
                headers: &headers,
                request_time: NOW,
                response_time: NOW,
                just_purged: false,
            };
            policy.keep_for_tier(&member(), &facts).map(|_| ()).map_err(NotKept::name)
        };
        assert_eq!(keep(200, &good), Ok(()));
        let with = |field| [&good[..], &[field]].concat();
        let instead = |at: usize, value| {
            let mut fields = good.to_vec();
            fields[at].1 = value;
            fields
        };
        assert_eq!(keep(404, &good), Err("tier-status"));
        assert_eq!(keep(206, &good), Err("tier-status"));
        assert_eq!(keep(200, &with(("set-cookie", "a=1"))), Err("set-cookie"));
        assert_eq!(keep(200, &with(("x-member-cache-tier", "6a5e8f1d2b3c4d5e6f708192"))), Err("tier-differs"));
        assert_eq!(keep(200, &instead(1, "6a5e8f1d2b3c4d5e6f708193")), Err("tier-differs"));
        assert_eq!(keep(200, &good[..1]), Err("tier-differs"));
        for not_public in ["max-age=600", "private", "public, private", "public, no-store", "public, no-cache", "s-maxage=600"] {
            assert_eq!(keep(200, &instead(0, not_public)), Err("tier-not-public"), "{not_public}");
        }
        assert_eq!(keep(200, &with(("content-encoding", "br"))), Err("tier-coded"));
        for vary in ["Cookie", "accept, cookie", "*"] {
            assert_eq!(keep(200, &instead(2, vary)), Err("tier-vary"), "{vary}");
        }
    }

    #[test]
    fn an_answer_that_names_the_member_is_known() {
        let policy = policy(Some(SECRET));
        let cookie = format!("{}; news=Ann.B%2Bx%40example.org", cookies(ACCESS_1, HMAC_1));
        let member = judged(&policy, &Method::GET, "/", &[("cookie", &cookie)], NOW).1.expect("a member");
        let named = |body: &str| member.is_named_in(&HeaderMap::new(), body.as_bytes());
        for body in [
            UUID,
            &UUID.to_uppercase(),
            "<a href=\"mailto:ann.b+x@example.org\">",
            "ANN.B+X@EXAMPLE.ORG",
            "ann.b+x&#64;example.org",
            "ann.b+x%40example.org",
        ] {
            assert!(named(&format!("<p>Hello {body}!")), "{body}");
        }
        for body in ["Hello Ann", "b@example.org", "6a5e8f1d2b3c4d5e6f708192", "0d2f8a4e-5c1b-4f7a-9e36-a1b2c3d4e5f7"] {
            assert!(!named(body), "{body}");
        }
        let headers: HeaderMap = [(header::LINK, UUID.parse().expect("a value"))].into_iter().collect();
        assert!(member.is_named_in(&headers, b""));
        let many = (0..200).map(|n| format!("; n{n}=a{n}@example.org")).collect::<String>();
        let crowd = judged(&policy, &Method::GET, "/", &[("cookie", &(cookie + &many))], NOW).1.expect("a member");
        assert!(crowd.is_named_in(&HeaderMap::new(), b"nothing"), "nobody looks for so many");
    }

    #[test]
    fn two_answers_are_the_same_if_a_client_sees_no_difference() {
        let digest = |fields: &[(&'static str, &'static str)], body: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            answer_digest(&headers, body.as_bytes())
        };
        let page = digest(&[("etag", "\"a\""), ("link", "x")], "text");
        assert_eq!(page, digest(&[("link", "x"), ("date", "now"), ("etag", "\"a\""), ("x-request-id", "7")], "text"));
        assert_ne!(page, digest(&[("etag", "\"a\""), ("link", "y")], "text"));
        assert_ne!(page, digest(&[("etag", "\"a\""), ("link", "x")], "texts"));
        assert_ne!(page, digest(&[("etag", "\"a\"")], "link:x\ntext"));
    }
}
