//! A request as the pipeline sees it: the site, the target, and the client.

use std::{borrow::Cow, net::IpAddr, rc::Rc};

use http::{HeaderMap, HeaderValue, Method, Uri, header, request::Parts};
use ipnet::IpNet;
use origins::is_for_proxies_only;
use policy::{Carries, Member, Trace, Verdict, purge::is_for_sources_only, settle_forms_for_scripts};
use semantics::{
    FieldLines, RequestFields, RequestHead, Scheme, Timestamp,
    cache_control::RequestDirectives,
    request::{Slot, has_any},
    shown,
    target::canonical_authority,
    vary::{Vary, canonical_accept_encoding},
};
use store::KeyHash;

use crate::{Interim, Site, direct::is_direct_field, identity::Identity};

/// The sender of a request: the peer of the connection, and the client behind it where the peer is trusted to name one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// The connection's other end; `None`: a Unix socket.
    pub peer: Option<IpAddr>,
    /// Whether its word about the client counts. A Unix socket's does: whoever may open it is of this machine and was let in.
    pub trusted: bool,
    /// The client: the peer, or whom a trusted peer names.
    pub address: Option<IpAddr>,
    /// The scheme the client used.
    pub scheme: Scheme,
    /// Whether a trusted peer said that this is http; silence is not.
    pub said_http: bool,
}

impl Client {
    /// Finds out who sent a request, by the peer and scheme of its connection and by its fields.
    pub(crate) fn of(peer: Option<IpAddr>, scheme: Scheme, lines: FieldLines<'_>, trusted_proxies: &[IpNet]) -> Self {
        let peer = peer.map(|address| address.to_canonical());
        let is_trusted = |address: IpAddr| trusted_proxies.iter().any(|net| net.contains(&address));
        let trusted = peer.is_none_or(is_trusted);
        let mut client = Self { peer, trusted, address: peer, scheme, said_http: false };
        if !trusted {
            return client;
        }
        let (mut http, mut https, mut other) = (false, false, false);
        lines.for_each("x-forwarded-proto", |line| {
            for scheme in line.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                let is = |name: &[u8]| scheme.eq_ignore_ascii_case(name);
                // Some name the protocol that is spoken after an upgrade.
                let (plain, encrypted) = (is(b"http") || is(b"ws"), is(b"https") || is(b"wss"));
                http |= plain;
                https |= encrypted;
                other |= !plain && !encrypted;
            }
        });
        // Of several proxies in a row, one alone may have seen the encryption.
        client.scheme = if https {
            Scheme::Https
        } else if http {
            Scheme::Http
        } else {
            scheme
        };
        client.said_http = http && !https && !other;
        if let Some(address) = vouched(&forwarded_for(lines), trusted_proxies).last() {
            client.address = Some(address);
        }
        client
    }

    /// Returns the client and the trusted proxies on its way to the peer, as far as those vouch for each other. Empty if the peer is the
    /// client.
    pub(crate) fn way(&self, lines: FieldLines<'_>, trusted_proxies: &[IpNet]) -> Vec<IpAddr> {
        if !self.trusted {
            return Vec::new();
        }
        let mut way: Vec<IpAddr> = vouched(&forwarded_for(lines), trusted_proxies).collect();
        way.reverse();
        way
    }

    /// Returns the address of the client, if its peer is trusted.
    pub(crate) fn named(&self) -> Option<IpAddr> {
        self.address.filter(|_| self.trusted)
    }
}

/// Reads the addresses in `X-Forwarded-For`, as they stand there; there is none for what cannot be read.
fn forwarded_for(lines: FieldLines<'_>) -> Vec<Option<IpAddr>> {
    let mut named = Vec::new();
    lines.for_each("x-forwarded-for", |line| {
        let address = |member: &[u8]| Some(std::str::from_utf8(member.trim_ascii()).ok()?.parse::<IpAddr>().ok()?.to_canonical());
        named.extend(line.split(|&b| b == b',').map(address));
    });
    named
}

/// Returns the addresses that are vouched for, from the right: each trusted proxy vouches for the one before it. What stands before the
/// first address that is none of theirs, or that cannot be read, anybody may have written: it is left out.
fn vouched<'a>(named: &'a [Option<IpAddr>], trusted_proxies: &'a [IpNet]) -> impl Iterator<Item = IpAddr> + 'a {
    let mut is_vouched_for = true;
    named.iter().rev().copied().map_while(move |address| {
        let address = address.filter(|_| is_vouched_for)?;
        is_vouched_for = trusted_proxies.iter().any(|net| net.contains(&address));
        Some(address)
    })
}

/// Asks a site's policy for its verdict on a request, and writes the key. What a trusted proxy says in the fields that the settings name is
/// part of it.
pub(crate) fn verdict(site: &Site, is_trusted: bool, head: &RequestHead<'_>, key: &mut Vec<u8>, trace: &mut impl Trace) -> Verdict {
    let verdict = site.policy.verdict_traced(site.id, head, key, trace);
    if is_trusted && matches!(verdict, Verdict::Lookup(_)) {
        site.policy.key_trusted_fields(head.fields, key);
    }
    verdict
}

/// Asks a site's policy as [`verdict`] does, and whether the request is a member's whose tier is known. `now` is asked for only if there is a
/// signature to judge.
pub(crate) fn verdict_with_member(
    site: &Site,
    is_trusted: bool,
    head: &RequestHead<'_>,
    headers: &HeaderMap,
    key: &mut Vec<u8>,
    now: impl FnOnce() -> Timestamp,
    trace: &mut impl Trace,
) -> (Verdict, Option<Member>) {
    let (verdict, member) = site.policy.verdict_with_member(site.id, head, headers, key, now, trace);
    if is_trusted && matches!(verdict, Verdict::Lookup(_)) {
        site.policy.key_trusted_fields(head.fields, key);
    }
    (verdict, member)
}

/// Removes the fields that the origin must not see, so that they do not select a variant either.
///
/// Fields that only proxies may write are removed, but for those that the settings trust from a trusted proxy; such a field is removed in every spelling
/// that CGI takes for it. If the cache is asked, only these fields remain: those in the key, those that decide whether the answer may be shared, and those
/// that `Vary` may nominate. Cookies that do not change the page are none of these.
pub(crate) fn remove_unsent_fields(headers: &mut HeaderMap, site: &Site, is_trusted: bool, carries: Option<Carries>) {
    let policy = &site.policy;
    let goes = |name: &str| {
        (is_trusted && policy.is_trusted_field(name))
            || !(is_for_proxies_only(name)
                || is_direct_field(name)
                || policy.is_spelling_of_trusted_field(name)
                || policy.signal_field().is_some_and(|signal| signal.as_str() == name)
                || is_for_sources_only(name)
                || (carries.is_some() && !policy.shares_field(name)))
    };
    while let Some(name) = headers.keys().find(|name| !goes(name.as_str())).cloned() {
        headers.remove(name);
    }
    let Some(carries) = carries else { return };
    if !carries.cookie && has_any(headers, &[header::COOKIE]) {
        headers.remove(header::COOKIE);
    }
    settle_forms_for_scripts(headers);
}

/// Returns the client's `Host`. It is empty if an HTTP/1.0 client sent none.
pub(crate) fn authority(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Gives `Host` its one spelling ([`canonical_authority`]), by which everything goes from here on: routing, key, origin, and what is
/// written of our own. Returns it.
pub(crate) fn settle_host(scheme: Scheme, headers: &mut HeaderMap) -> String {
    let said = authority(headers);
    let canonical = canonical_authority(scheme, said);
    if canonical == said {
        return said.to_owned();
    }
    let canonical = canonical.into_owned();
    match HeaderValue::from_str(&canonical) {
        Ok(host) => {
            headers.insert(header::HOST, host);
            canonical
        }
        Err(_) => said.to_owned(),
    }
}

/// A request on its way, after the policy has judged it.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) site: Rc<Site>,
    pub(crate) client: Client,
    /// The id of the request, and its place in a trace.
    pub(crate) identity: Identity,
    /// The client and the proxies between it and the peer; empty if the peer is the client.
    pub(crate) way: Vec<IpAddr>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// The version of HTTP in which the client asked.
    pub(crate) version: http::Version,
    /// The client's `Host` in its one spelling.
    pub(crate) authority: String,
    /// Path and query as the origin is asked for them.
    pub(crate) target: String,
    /// The query parameters that the origin is not told.
    pub(crate) left_out: Option<String>,
    /// Path and query as a URI.
    pub(crate) uri: Uri,
    /// The cookies and credentials that may make its answer somebody's.
    pub(crate) carries: Carries,
    /// The member who asks, where the key has the member's tier. The answer is this member's alone until another one has got the same.
    pub(crate) member: Option<Rc<Member>>,
    pub(crate) wants: Wants,
    pub(crate) key: Vec<u8>,
    pub(crate) hash: KeyHash,
    /// Takes the interim responses of the origin.
    pub(crate) interim: Option<Interim>,
    /// Whether hints of our own may be among them.
    pub(crate) takes_hints: bool,
}

/// The wishes of a request: what its fields ask for, read off them once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wants {
    pub(crate) directives: RequestDirectives,
    /// Whether it has `Range`, `If-Match` or `If-Unmodified-Since`.
    needs_origin_for_part: bool,
    /// Whether it has any field of RFC 9110 §13.1 or §14.2, by which less than the whole is asked for, or nothing.
    has_condition_or_range: bool,
    /// The codings that the client takes, in their canonical form.
    codings: &'static str,
    /// Whether responses get their coding here.
    pub(crate) coded: bool,
    /// Whether it has a `Connection` field.
    pub(crate) names_hop_by_hop: bool,
}

impl Wants {
    pub(crate) fn of(site: &Site, path: &str, fields: &RequestFields<'_>) -> Self {
        let honoured = site.policy.settings().honour_request_directives;
        Self {
            directives: if honoured { RequestDirectives::of(fields) } else { RequestDirectives::NONE },
            needs_origin_for_part: fields.range.is_present() || fields.if_match.is_present() || fields.if_unmodified_since.is_present(),
            has_condition_or_range: [
                fields.if_match,
                fields.if_modified_since,
                fields.if_none_match,
                fields.if_range,
                fields.if_unmodified_since,
                fields.range,
            ]
            .into_iter()
            .any(Slot::is_present),
            codings: canonical_accept_encoding(fields),
            coded: site.policy.settings().compress.is_for(path),
            names_hop_by_hop: fields.connection.is_present(),
        }
    }
}

/// A cache key with its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub(crate) hash: KeyHash,
    pub(crate) key: &'a [u8],
}

impl Question {
    /// Returns the path as messages may have it, without the query: its values can be somebody's own, and a log keeps them for long.
    pub(crate) fn path_to_log(&self) -> Cow<'_, str> {
        shown::path(self.target.split_once('?').map_or(&*self.target, |(path, _)| path))
    }

    pub(crate) fn hashed_key(&self) -> HashedKey<'_> {
        HashedKey { hash: self.hash, key: &self.key }
    }

    /// Returns the site, and host and path, as purges name them.
    pub(crate) fn url(&self) -> (u16, &[u8]) {
        (self.site.id, policy::purge_url_of(&self.key))
    }

    pub(crate) fn fields(&self) -> RequestFields<'_> {
        RequestFields::from_map(&self.headers)
    }

    /// Returns whether a stored response may be selected for the request, as far as the fields that it nominates say.
    pub(crate) fn is_answered_by(&self, vary: &Vary) -> bool {
        // Most responses nominate nothing: then the fields need not be gathered.
        vary.is_unconditional() || vary.matches(&self.fields())
    }

    /// Makes the request that is fetched when nothing is stored: for a HEAD the whole, which then answers both methods.
    pub(crate) fn to_fetch(self: &Rc<Self>) -> Rc<Self> {
        if self.method == Method::HEAD { Rc::new(Self { method: Method::GET, ..(**self).clone() }) } else { Rc::clone(self) }
    }

    /// Returns the codings that the origin is asked for, where others may get its answer.
    ///
    /// Where we code ourselves, none. That holds for what is shared: for somebody who is known, coding is the origin's decision, as it is
    /// for what passes. And folders have ready-made forms of what is too large for us.
    pub(crate) fn codings(&self) -> &'static str {
        if self.member.is_some() {
            return "identity";
        }
        let known = self.carries.cookie || self.carries.authorization;
        if self.wants.coded && !known && !self.site.policy.is_impersonal() { "identity" } else { self.wants.codings }
    }

    /// Returns whether those who ask as this request does take a coding, so that a form of the answer is of use at once. Requests of our own are made
    /// for readers to come.
    pub(crate) const fn is_for_readers_of_forms(&self) -> bool {
        self.identity.is_own() || !self.wants.codings.is_empty()
    }

    /// Returns whether the request says who asks. The policy knows which cookies mean nothing, if it was asked.
    pub(crate) fn is_personal(&self) -> bool {
        if self.site.policy.is_impersonal() {
            false
        } else if self.key.is_empty() {
            self.headers.contains_key(header::COOKIE) || self.headers.contains_key(header::AUTHORIZATION)
        } else {
            self.carries.cookie || self.carries.authorization || self.member.is_some()
        }
    }

    /// Returns whether the request has `Range`, `If-Match` or `If-Unmodified-Since`: it asks for a part, or on a condition that only the whole can meet.
    pub(crate) fn needs_origin_for_part(&self) -> bool {
        self.wants.needs_origin_for_part
    }

    /// Returns whether the request has a condition, or asks for a part (RFC 9110 §13.1, §14.2).
    pub(crate) fn has_condition_or_range(&self) -> bool {
        self.wants.has_condition_or_range
    }

    /// Returns whether others who ask the same may be answered with what comes back for this one.
    pub(crate) fn is_shareable(&self) -> bool {
        self.unshareable().is_none()
    }

    /// Returns why others may not be answered with what comes back for this one, in words.
    pub(crate) fn unshareable(&self) -> Option<&'static str> {
        if self.method != Method::GET {
            Some("it is not a GET")
        } else if self.member.is_some() {
            Some("it is a member's")
        } else if self.carries.cookie {
            Some("it carries a cookie that may be somebody's")
        } else if self.carries.authorization {
            Some("it carries Authorization")
        } else if self.wants.directives.no_store {
            Some("it says no-store")
        } else if self.wants.needs_origin_for_part {
            Some("it asks for a part, or has a precondition that only the origin can judge")
        } else {
            None
        }
    }
}

/// Makes the head of a request whose parts are collected already.
pub(crate) fn head<'a>(parts: &'a Parts, fields: &'a RequestFields<'a>, authority: &'a str, scheme: Scheme) -> RequestHead<'a> {
    RequestHead { method: &parts.method, scheme, authority, path: parts.uri.path(), query: parts.uri.query(), fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, fields: &[(&'static str, &str)]) -> Client {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().expect("a value"));
        }
        let trusted: [IpNet; 2] = ["10.0.0.0/8".parse().expect("a net"), "2001:db8::/32".parse().expect("a net")];
        Client::of(peer.parse().ok(), Scheme::Http, FieldLines::Map(&headers), &trusted)
    }

    #[test]
    fn only_a_trusted_peer_names_the_client() {
        let xff = [("x-forwarded-for", "198.51.100.7, 10.0.0.9"), ("x-forwarded-proto", "https")];
        let stranger = client("203.0.113.5", &xff);
        assert_eq!((stranger.address, stranger.scheme), ("203.0.113.5".parse().ok(), Scheme::Http));
        let proxy = client("10.0.0.1", &xff);
        assert_eq!((proxy.address, proxy.scheme), ("198.51.100.7".parse().ok(), Scheme::Https));
        // A forged member to the left of the first untrusted address does not count.
        let forged = client("10.0.0.1", &[("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "198.51.100.7")]);
        assert_eq!(forged.address, "198.51.100.7".parse().ok());
        let garbage = client("10.0.0.1", &[("x-forwarded-for", "1.2.3.4, unknown")]);
        assert_eq!(garbage.address, "10.0.0.1".parse().ok());
    }

    /// https if any proxy on the way saw it; http only if all that spoke agree.
    #[test]
    fn silence_about_the_scheme_is_not_http() {
        let cases: [(&[&str], Scheme, bool); 10] = [
            (&[], Scheme::Http, false),
            (&["http"], Scheme::Http, true),
            (&["HTTP, http"], Scheme::Http, true),
            (&["https"], Scheme::Https, false),
            (&["https, http"], Scheme::Https, false),
            (&["http", "https"], Scheme::Https, false),
            (&["wss"], Scheme::Https, false),
            (&["ws"], Scheme::Http, true),
            (&[""], Scheme::Http, false),
            (&["quic", "http"], Scheme::Http, false),
        ];
        for (lines, scheme, said_http) in cases {
            let fields: Vec<_> = lines.iter().map(|line| ("x-forwarded-proto", *line)).collect();
            let proxy = client("10.0.0.1", &fields);
            assert_eq!((proxy.scheme, proxy.said_http), (scheme, said_http), "{lines:?}");
            let stranger = client("203.0.113.5", &fields);
            assert_eq!((stranger.scheme, stranger.said_http), (Scheme::Http, false), "{lines:?}");
        }
    }
}
