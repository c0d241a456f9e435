//! Whether a shared cache may store a response, and whether that would be of any use (RFC 9111 §3, §3.5).
//!
//! Only complete responses to GET are stored here, under the key of their GET: a HEAD has no content to keep, and 206 and 304 are parts of
//! another response. Narrower than the RFC also in refusing answers to one request's own precondition or range, and `private` of fields that are
//! not there. What [`crate::omitted`] names is to be left out of what is stored.

use http::{
    HeaderMap, Method, StatusCode,
    header::{ETAG, EXPIRES, HeaderName, LAST_MODIFIED, VARY},
};

use crate::{
    cache_control::{Qualified, RequestDirectives, ResponseDirectives},
    date::parse_http_date,
    entity_tag::EntityTag,
    freshness::{Freshness, LifetimeSource, heuristically_cacheable},
    list::members,
    omitted::can_be_omitted,
};

/// The reason why a response is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotStorable {
    /// The request was not a GET.
    Method,
    /// An interim response, or a status whose definition forbids storing (RFC 6585), or lets no cache that does not know it (RFC 3229).
    Status,
    /// The response has `must-understand` with a status that this cache does not understand (§5.2.2.3).
    NotUnderstood,
    /// The response is a 206, which is a part of another response (§3.3).
    Partial,
    /// The response is a 304, which freshens another response (§4.3.4).
    NotModified,
    /// The response is a 412, 416 or 417. It is true only for the request's own precondition, range or expectation, and a stored copy would
    /// answer everyone with it.
    Ranged,
    /// A status that is about what this one request said or how it came: its fields were too long or not acceptable, its content had no
    /// length, its connection was the wrong one (RFC 9110 §15.5.7, §15.5.9, §15.5.12, §15.5.14, §15.5.16, §15.5.20, §15.5.22; RFC 8470 §5.2).
    /// Nothing of that is in the key, so a cached copy would answer everyone with it.
    OfRequest,
    /// The request said `no-store` (§5.2.1.5).
    RequestNoStore,
    /// The response said `no-store` (§5.2.2.5).
    NoStore,
    /// The response said `private` (§5.2.2.7).
    Private,
    /// The response said `private` for fields that it does not have, or that it is useless without: see [`crate::omitted`].
    PrivateFields,
    /// The request had `Authorization`, and nothing in the response permits sharing (§3.5).
    Authorization,
    /// The response has `Vary: *`: no request can ever select it (§4.1).
    VaryStar,
    /// The response is not fresh, cannot be validated, and may not be served stale: it could never be reused.
    Unfresh,
}

impl NotStorable {
    /// Returns the name for logs and `Cache-Status` details.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::NotUnderstood => "must-understand",
            Self::Partial => "partial",
            Self::NotModified => "not-modified",
            Self::Ranged => "ranged",
            Self::OfRequest => "of-request",
            Self::RequestNoStore => "request-no-store",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::PrivateFields => "private-fields",
            Self::Authorization => "authorization",
            Self::VaryStar => "vary-star",
            Self::Unfresh => "unfresh",
        }
    }

    /// Returns a sentence about a response of which this is so, for whoever asks why it is not stored.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Method => "Only answers to GET and HEAD are stored.",
            Self::Status => "Its status may not be stored.",
            Self::NotUnderstood => "It says must-understand, and caches do not know its status.",
            Self::Partial => "It is a part of another response.",
            Self::NotModified => "It only confirms what a client has already.",
            Self::Ranged => "It is about the range or the condition that this one request had.",
            Self::OfRequest => "It is about this one request, and would be wrong for others.",
            Self::RequestNoStore => "The request said no-store.",
            Self::NoStore => "It says no-store.",
            Self::Private => "It says private.",
            Self::PrivateFields => "It says private for fields that it needs.",
            Self::Authorization => "The request carried Authorization, and nothing in the answer permits sharing.",
            Self::VaryStar => "Its Vary names what no other request can match.",
            Self::Unfresh => "It is neither fresh nor could it be validated: it could never be used again.",
        }
    }
}

/// Returns how fresh the final response is, if it may be stored; `authorization` says whether the request that it answers had that field.
/// `freshness` is asked for only if nothing else is against it.
///
/// # Errors
/// Returns the first reason against storing, in the order of [`NotStorable`].
pub fn storable(
    method: &Method,
    request: &RequestDirectives,
    authorization: bool,
    status: StatusCode,
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    freshness: impl FnOnce() -> Freshness,
) -> Result<Freshness, NotStorable> {
    if *method != Method::GET {
        return Err(NotStorable::Method);
    }
    status_permits(status, directives)?;
    if request.no_store {
        return Err(NotStorable::RequestNoStore);
    }
    // With must-understand, no-store is only for caches that do not know the status (§5.2.2.3).
    if directives.no_store && !directives.must_understand {
        return Err(NotStorable::NoStore);
    }
    match &directives.private {
        Qualified::Absent => {}
        Qualified::Whole => return Err(NotStorable::Private),
        Qualified::Fields(names) if can_be_omitted(names, headers) => {}
        Qualified::Fields(_) => return Err(NotStorable::PrivateFields),
    }
    if authorization && !(directives.public || directives.must_revalidate || directives.s_maxage.is_some()) {
        return Err(NotStorable::Authorization);
    }
    if varies_on_everything(headers) {
        return Err(NotStorable::VaryStar);
    }
    let freshness = freshness();
    if permitted(status, headers, directives, &freshness) && useful(headers, &freshness) {
        Ok(freshness)
    } else {
        Err(NotStorable::Unfresh)
    }
}

fn status_permits(status: StatusCode, directives: &ResponseDirectives) -> Result<(), NotStorable> {
    match status.as_u16() {
        206 => Err(NotStorable::Partial),
        304 => Err(NotStorable::NotModified),
        412 | 416 | 417 => Err(NotStorable::Ranged),
        406 | 408 | 411 | 413 | 415 | 421 | 425 | 426 => Err(NotStorable::OfRequest),
        // RFC 6585 §3 to §6: "MUST NOT be stored by a cache". RFC 3229 §10.4.1: a 226 is the difference from what one client has.
        0..200 | 226 | 428 | 429 | 431 | 511 => Err(NotStorable::Status),
        _ if directives.must_understand && !understood(status) => Err(NotStorable::NotUnderstood),
        _ => Ok(()),
    }
}

/// Returns whether this cache does all that the definition of the status asks of a cache: it knows those of RFC 9110 §15, and some that ask
/// nothing.
fn understood(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=411 | 413..=415 | 421 | 422 | 426 | 451 | 500..=505)
}

/// Returns whether a request may have brought this status on itself by a field that is in no key and in no `Vary`: an error that is not plainly
/// about the target. RFC 9111 §3 lets a cache store it, if it says for how long; whom it then answers is another question (§4: "MAY").
#[must_use]
pub fn may_be_brought_on(status: StatusCode) -> bool {
    (status.is_client_error() || status.is_server_error()) && !matches!(status.as_u16(), 404 | 405 | 410 | 414 | 451)
}

/// Returns whether any line of `Vary` has `*` as a member (RFC 9110 §12.5.5); a member that is not a field name counts as that, as it does in
/// `vary`. So does one that a proxy writes anew for each client: no request, as it came, can select such a response.
fn varies_on_everything(headers: &HeaderMap) -> bool {
    const WRITTEN_BY_US: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];
    let star = |member: &[u8]| {
        let name = HeaderName::from_bytes(member);
        !member.is_empty() && (member == b"*" || name.map_or(true, |name| WRITTEN_BY_US.contains(&name.as_str())))
    };
    headers.get_all(VARY).iter().any(|line| members(line.as_bytes()).any(star))
}

/// Returns whether the last condition of §3 is met: something says that the response may be stored, even if it is only its status.
fn permitted(status: StatusCode, headers: &HeaderMap, directives: &ResponseDirectives, freshness: &Freshness) -> bool {
    directives.public
        || directives.max_age.is_some()
        || directives.s_maxage.is_some()
        || (headers.contains_key(EXPIRES) && !directives.targeted)
        || heuristically_cacheable(status)
        || freshness.source == LifetimeSource::Hold
}

/// Returns whether the response can ever be reused: as it is, after validation, or stale.
fn useful(headers: &HeaderMap, freshness: &Freshness) -> bool {
    let arrival = freshness.response_time;
    let stale_window = freshness.stale_while_revalidate.max(freshness.stale_if_error.unwrap_or_default());
    freshness.is_fresh(arrival) || has_validator(headers) || (freshness.stale_allowed && freshness.staleness(arrival) < stale_window)
}

fn has_validator(headers: &HeaderMap) -> bool {
    headers.get(ETAG).is_some_and(|tag| EntityTag::parse(tag.as_bytes()).is_some())
        || headers.get(LAST_MODIFIED).is_some_and(|at| parse_http_date(at.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use std::time::Duration;

    const T: Timestamp = Timestamp::from_secs(1_700_000_000);
    const LM: &str = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";

    struct Case {
        method: Method,
        request: RequestDirectives,
        authorization: bool,
        hold: Option<Duration>,
    }

    const PLAIN: Case = Case { method: Method::GET, request: RequestDirectives::NONE, authorization: false, hold: None };

    impl Case {
        fn try_store(&self, status: u16, lines: &[&str]) -> Result<(), NotStorable> {
            let field = |line: &&str| {
                let (name, value) = line.split_once(": ").expect("a field line");
                (name.parse::<HeaderName>().expect("a field name"), value.parse().expect("a field value"))
            };
            let mut headers = HeaderMap::new();
            for (name, value) in lines.iter().map(field) {
                headers.append(name, value);
            }
            let status = StatusCode::from_u16(status).expect("a status");
            let directives = ResponseDirectives::of(&headers);
            let mut freshness = Freshness::of(status, &headers, &directives, T, T);
            if let Some(hold) = self.hold {
                freshness = freshness.with_hold(hold);
            }
            storable(&self.method, &self.request, self.authorization, status, &headers, &directives, || freshness).map(|_| ())
        }
    }

    #[test]
    fn only_get_is_stored() {
        for method in [Method::HEAD, Method::POST, Method::PUT, Method::OPTIONS] {
            let case = Case { method, ..PLAIN };
            assert_eq!(case.try_store(200, &["cache-control: max-age=60"]), Err(NotStorable::Method));
        }
    }

    #[test]
    fn any_final_status_with_explicit_freshness_is_stored() {
        for status in [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 403, 404, 410, 451, 499, 500, 502, 503, 504, 599] {
            for line in ["cache-control: max-age=60", "cache-control: s-maxage=60", "expires: Fri, 31 Dec 9999 23:59:59 GMT"] {
                assert_eq!(PLAIN.try_store(status, &[line]), Ok(()), "{status} {line}");
            }
        }
        for (status, why) in [
            (103, NotStorable::Status),
            (206, NotStorable::Partial),
            (304, NotStorable::NotModified),
            (412, NotStorable::Ranged),
            (416, NotStorable::Ranged),
            (428, NotStorable::Status),
            (429, NotStorable::Status),
            (431, NotStorable::Status),
            (511, NotStorable::Status),
        ] {
            assert_eq!(PLAIN.try_store(status, &["cache-control: public, max-age=60"]), Err(why), "{status}");
        }
    }

    #[test]
    fn what_the_directives_forbid() {
        for (lines, expected) in [
            (&["cache-control: max-age=60, no-store"][..], Err(NotStorable::NoStore)),
            (&["cache-control: max-age=60", "cache-control: no-store"], Err(NotStorable::NoStore)),
            (&["cache-control: max-age=60, private"], Err(NotStorable::Private)),
            (&["cache-control: max-age=60, public, private"], Err(NotStorable::Private)),
            (&["cache-control: max-age=60, private=\"set-cookie\""], Ok(())),
            (&["cache-control: max-age=60, private=\"x-user\"", "x-user: 1"], Ok(())),
            (&["cache-control: max-age=60, private=\"x-usr\"", "x-user: 1"], Err(NotStorable::PrivateFields)),
            (&["cache-control: max-age=60, private=\"content-type\"", "content-type: text/html"], Err(NotStorable::PrivateFields)),
            (&["cache-control: max-age=60", "vary: *"], Err(NotStorable::VaryStar)),
            (&["cache-control: max-age=60", "vary: accept, *"], Err(NotStorable::VaryStar)),
            (&["cache-control: max-age=60", "vary: ,*,"], Err(NotStorable::VaryStar)),
            (&["cache-control: max-age=60", "vary: accept", "vary: *"], Err(NotStorable::VaryStar)),
            (&["cache-control: max-age=60", "vary: a b"], Err(NotStorable::VaryStar)),
            (&["cache-control: max-age=60", "vary: , accept, x-*"], Ok(())),
            // RFC 9111 §7.3: Set-Cookie does not forbid storing; policy keeps it out.
            (&["cache-control: max-age=60", "set-cookie: a=b"], Ok(())),
            (&["cache-control: max-age=60, must-revalidate"], Ok(())),
        ] {
            assert_eq!(PLAIN.try_store(200, lines), expected, "{lines:?}");
        }
        let no_store = Case { request: RequestDirectives { no_store: true, ..RequestDirectives::NONE }, ..PLAIN };
        assert_eq!(no_store.try_store(200, &["cache-control: max-age=60"]), Err(NotStorable::RequestNoStore));
    }

    #[test]
    fn must_understand_overrides_no_store_for_a_known_status_and_forbids_an_unknown_one() {
        for (status, value, expected) in [
            (200, "max-age=60, no-store, must-understand", Ok(())),
            (404, "must-understand, no-store, max-age=60", Ok(())),
            (499, "max-age=60, no-store, must-understand", Err(NotStorable::NotUnderstood)),
            (299, "max-age=60, must-understand", Err(NotStorable::NotUnderstood)),
            (200, "max-age=60, must-understand", Ok(())),
            (200, "max-age=60, no-store, must-understand, private", Err(NotStorable::Private)),
        ] {
            assert_eq!(PLAIN.try_store(status, &[&format!("cache-control: {value}")]), expected, "{status} {value}");
        }
    }

    #[test]
    fn a_request_with_authorization_needs_permission_to_share() {
        let case = Case { authorization: true, ..PLAIN };
        for (value, expected) in [
            ("max-age=60", Err(NotStorable::Authorization)),
            ("max-age=60, proxy-revalidate", Err(NotStorable::Authorization)),
            ("max-age=60, public", Ok(())),
            ("max-age=60, must-revalidate", Ok(())),
            ("s-maxage=60", Ok(())),
        ] {
            assert_eq!(case.try_store(200, &[&format!("cache-control: {value}")]), expected, "{value}");
        }
    }

    #[test]
    fn what_could_never_be_reused_is_not_stored() {
        let unfresh = Err(NotStorable::Unfresh);
        for (status, lines, expected) in [
            (200, &[][..], unfresh),
            (200, &["etag: \"a\""], Ok(())),
            // Browsers and origins accept a tag without quotes; an empty one is none.
            (200, &["etag: unquoted"], Ok(())),
            (200, &["etag: "], unfresh),
            (200, &[LM], Ok(())),
            (200, &["last-modified: yesterday"], unfresh),
            (200, &["cache-control: max-age=0"], unfresh),
            (200, &["cache-control: max-age=0", "etag: W/\"a\""], Ok(())),
            (200, &["cache-control: max-age=0, stale-while-revalidate=60"], Ok(())),
            (200, &["cache-control: max-age=0, stale-if-error=60"], Ok(())),
            (200, &["cache-control: max-age=0, stale-while-revalidate=60, must-revalidate"], unfresh),
            (200, &["cache-control: max-age=60, no-cache"], unfresh),
            (200, &["cache-control: max-age=60, no-cache", "etag: \"a\""], Ok(())),
            (200, &["cache-control: max-age=60", "age: 60"], unfresh),
            (200, &["cache-control: max-age=60, stale-while-revalidate=60", "age: 119"], Ok(())),
            (200, &["cache-control: max-age=60, stale-while-revalidate=60", "age: 120"], unfresh),
            (200, &["expires: 0"], unfresh),
            (200, &["expires: 0", "etag: \"a\""], Ok(())),
            // §3: a validator alone permits nothing for a status that is not heuristically cacheable.
            (403, &["etag: \"a\""], unfresh),
            (302, &[LM], unfresh),
            (302, &[LM, "cache-control: public"], Ok(())),
            (404, &[LM], Ok(())),
        ] {
            assert_eq!(PLAIN.try_store(status, lines), expected, "{status} {lines:?}");
        }
        let held = Case { hold: Some(Duration::from_secs(60)), ..PLAIN };
        assert_eq!(held.try_store(302, &[]), Ok(()), "a hold is permission and freshness");
        assert_eq!(held.try_store(200, &["cache-control: no-store"]), Err(NotStorable::NoStore));
    }
}
