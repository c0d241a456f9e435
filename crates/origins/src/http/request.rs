//! The fields of the request that goes to the origin, built from those of the request that came.
//!
//! Two rules. What concerns the client's connection stops here (RFC 9110 §7.6.1). And what an origin believes because "only the proxy
//! sets it" is set by us, never by a stranger: his `X-Forwarded-Host` would end up in links, the page in the cache, and the links
//! with everybody. A trusted proxy in front of us is believed who its client is and which scheme that used, and both are told in words of
//! our own: most proxies pass on whatever else their clients invent. What it says beyond that goes through by name only.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Version,
    header::{CONNECTION, CONTENT_LENGTH, FORWARDED, HOST, UPGRADE, VIA},
};
use semantics::{Scheme, decimal, field_name::with_hyphens, hop_by_hop::nominated_by_connection};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Who is at an end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Ip(IpAddr),
    /// A process of this machine, through a Unix socket: it has no address that one could tell.
    Unix,
}

/// How a request came to us.
#[derive(Debug, Clone, Copy)]
pub struct Forwarding<'a> {
    /// Who sent it to us.
    pub peer: Peer,
    /// The client itself: `peer`, or whom a trusted peer names.
    pub client: Peer,
    /// The client and the trusted proxies behind it, up to the peer, which is not in it; empty if the peer itself is the client.
    pub way: &'a [IpAddr],
    /// Fields, in lower case, in which the peer may say what otherwise only we do. For strangers there are none.
    pub trusted_fields: &'a [String],
    /// The scheme of the target URI.
    pub scheme: Scheme,
    /// Its host and port; empty if an HTTP/1.0 client sent none.
    pub authority: &'a str,
    /// The protocol version that it came with.
    pub version: Version,
}

/// The fields for the origin. `Content-Length` stays: the body is the same; `Transfer-Encoding` is the next connection's affair.
#[must_use]
pub fn rebuild(client: &HeaderMap, forwarding: &Forwarding<'_>) -> HeaderMap {
    let mut fields = spare::take(client.len() + 7);
    let (mut nominates, mut continues) = (false, false);
    let is_trusted = |name: &str| forwarding.trusted_fields.iter().any(|trusted| trusted == name);
    for (name, value) in client {
        if is_hop_by_hop(name.as_str()) {
            nominates |= *name == CONNECTION;
        } else if !is_for_proxies_only(name.as_str()) || is_trusted(name.as_str()) {
            continues |= *name == VIA;
            let value = if *name == CONTENT_LENGTH { without_zeros(value) } else { value.clone() };
            fields.append(name, value);
        }
    }
    // Not what decides over the answer: it would be stored for those who really ask so. What we set below is set afterwards.
    if nominates {
        for name in nominated_by_connection(client).into_iter().filter(|name| !is_trusted(name.as_str())) {
            fields.remove(name);
        }
    }
    let told = told::of(forwarding);
    match &told.authority {
        _ if is_trusted(X_FORWARDED_HOST.as_str()) && fields.contains_key(X_FORWARDED_HOST) => {}
        Some(authority) => drop(fields.insert(X_FORWARDED_HOST, authority.clone())),
        None => drop(fields.remove(X_FORWARDED_HOST)),
    }
    fields.insert(HOST, told.authority.unwrap_or_else(|| HeaderValue::from_static("")));
    fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static(forwarding.scheme.as_str()));
    for (name, value) in [(X_REAL_IP, told.client), (X_FORWARDED_FOR, told.chain), (FORWARDED, told.forwarded)] {
        match value {
            Some(value) => drop(fields.insert(name, value)),
            None => drop(fields.remove(name)),
        }
    }
    // RFC 9110 §7.6.3.
    let via = HeaderValue::from_static(match forwarding.version {
        Version::HTTP_09 | Version::HTTP_10 => "1.0 seawall",
        Version::HTTP_2 => "2 seawall",
        Version::HTTP_3 => "3 seawall",
        _ => "1.1 seawall",
    });
    let whole = if continues { behind(&fields, &VIA, &via) } else { None };
    fields.insert(VIA, whole.unwrap_or(via));
    fields
}

/// A length without zeros before it, which some readers take for an octal number (RFC 9110 §8.6). That it is one has been seen to.
fn without_zeros(length: &HeaderValue) -> HeaderValue {
    match length.as_bytes() {
        [b'0', rest @ ..] if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit) => {
            let significant = rest.iter().position(|&b| b != b'0').map_or(&b"0"[..], |at| &rest[at..]);
            HeaderValue::from_bytes(significant).unwrap_or_else(|_| length.clone())
        }
        _ => length.clone(),
    }
}

/// A list with a further element, behind those that are there (RFC 9110 §5.3); none if there are none.
fn behind(fields: &HeaderMap, name: &HeaderName, part: &HeaderValue) -> Option<HeaderValue> {
    let mut list = Vec::new();
    for line in fields.get_all(name).iter().filter(|line| !line.is_empty()) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(part.as_bytes());
    HeaderValue::try_from(list).ok()
}

/// What is told about a client, in one allocation, and kept for its next request: writing it is a tenth of what passing a request costs.
mod told {
    use std::{cell::RefCell, net::IpAddr, ops::Range};

    use ::http::HeaderValue;
    use bytes::Bytes;
    use semantics::Scheme;

    use super::{Forwarding, Peer, write_chain, write_forwarded, write_ip};

    /// Clients a thread remembers, each in the place that its address says: some 30 KB.
    const CLIENTS: usize = 64;
    /// Longer ways are not remembered.
    const WAY_MAX: usize = 8;

    /// The fields that tell of a client. A process of this machine has no address to tell.
    #[derive(Debug, Clone)]
    pub(super) struct Told {
        about: (Peer, Peer, Scheme),
        way: Box<[IpAddr]>,
        /// None if there is none.
        pub(super) authority: Option<HeaderValue>,
        pub(super) client: Option<HeaderValue>,
        /// The client, the proxies, and the peer.
        pub(super) chain: Option<HeaderValue>,
        pub(super) forwarded: Option<HeaderValue>,
    }

    thread_local!(static KNOWN: RefCell<[Option<Told>; CLIENTS]> = const { RefCell::new([const { None }; CLIENTS]) });

    pub(super) fn of(forwarding: &Forwarding<'_>) -> Told {
        let place = match forwarding.client {
            Peer::Unix => 0,
            Peer::Ip(IpAddr::V4(v4)) => v4.octets().iter().fold(0, |sum, &octet| sum + usize::from(octet)),
            Peer::Ip(IpAddr::V6(v6)) => v6.octets().iter().fold(0, |sum, &octet| sum + usize::from(octet)),
        };
        KNOWN.with_borrow_mut(|known| {
            let place = &mut known[place % CLIENTS];
            match place {
                Some(told) if told.is_about(forwarding) => told.clone(),
                _ if forwarding.way.len() > WAY_MAX => Told::new(forwarding),
                _ => place.insert(Told::new(forwarding)).clone(),
            }
        })
    }

    impl Told {
        fn is_about(&self, forwarding: &Forwarding<'_>) -> bool {
            self.about == (forwarding.peer, forwarding.client, forwarding.scheme)
                && *self.way == *forwarding.way
                && self.authority.as_ref().map_or(&[][..], |authority| authority.as_bytes()) == forwarding.authority.as_bytes()
        }

        fn new(forwarding: &Forwarding<'_>) -> Self {
            let mut text = Vec::with_capacity(192);
            let mut write = |write: &dyn Fn(&mut Vec<u8>)| {
                let start = text.len();
                write(&mut text);
                start..text.len()
            };
            let client = write(&|out| match forwarding.client {
                Peer::Ip(ip) => write_ip(ip, out),
                Peer::Unix => {}
            });
            let chain = write(&|out| write_chain(forwarding, out));
            let authority = write(&|out| out.extend_from_slice(forwarding.authority.as_bytes()));
            let forwarded = write(&|out| write_forwarded(forwarding, out));
            let text = Bytes::from(text);
            let value =
                |at: Range<usize>| Some(at).filter(|at| !at.is_empty()).and_then(|at| HeaderValue::from_maybe_shared(text.slice(at)).ok());
            Self {
                about: (forwarding.peer, forwarding.client, forwarding.scheme),
                way: forwarding.way.into(),
                authority: value(authority),
                client: value(client),
                chain: value(chain),
                forwarded: value(forwarded),
            }
        }
    }
}

/// The addresses on the way, the client's first.
fn write_chain(forwarding: &Forwarding<'_>, out: &mut Vec<u8>) {
    let peer = match forwarding.peer {
        Peer::Ip(ip) => Some(ip),
        Peer::Unix => None,
    };
    for (number, address) in forwarding.way.iter().copied().chain(peer).enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_ip(address, out);
    }
}

/// The address in its usual form; an IPv4 address inside an IPv6 one is shown as what it is.
fn write_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match plain(ip) {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            decimal::write(a.into(), out);
            for octet in [b, c, d] {
                out.push(b'.');
                decimal::write(octet.into(), out);
            }
        }
        IpAddr::V6(v6) => out.extend_from_slice(v6.to_string().as_bytes()),
    }
}

/// Takes a client's wish for another protocol (RFC 9110 §7.8) over into rebuilt fields, if it has one. Whether to grant it is the
/// caller's decision.
pub fn keep_upgrade(client: &HeaderMap, fields: &mut HeaderMap) -> bool {
    let wished = client.get_all(CONNECTION).iter().any(|line| elements(line.as_bytes()).any(|name| name.eq_ignore_ascii_case("upgrade")));
    let mut protocols = client.get_all(UPGRADE).iter();
    match (wished, protocols.next(), protocols.next()) {
        (true, Some(protocol), None) => {
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(UPGRADE, protocol.clone());
            true
        }
        _ => false,
    }
}

/// Whether a challenge or credentials are of a scheme that logs a connection in, against RFC 9110 §11.
pub(super) fn binds_connection(value: &HeaderValue) -> bool {
    let scheme = value.as_bytes().split(|&b| b == b' ' || b == b',').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate")
}

/// Whether doing it twice is the same as doing it once (RFC 9110 §9.2.2).
pub(super) fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE | Method::TRACE)
}

/// The elements of a comma-separated list (RFC 9110 §5.6.1), the empty ones left out.
pub(super) fn elements(value: &[u8]) -> impl Iterator<Item = &str> {
    value.split(|&b| b == b',').filter_map(|element| std::str::from_utf8(element).ok()).map(str::trim).filter(|element| !element.is_empty())
}

/// For the connection alone, whether or not `Connection` names it. `Trailer` goes too: trailers are not passed on to origins. And
/// `Proxy`, which means nothing but that CGI turns it into the variable `HTTP_PROXY`.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(name, "connection" | "http2-settings" | "keep-alive" | "proxy" | "te" | "trailer" | "transfer-encoding" | "upgrade")
        || name.starts_with("proxy-")
}

/// Maps of requests that were sent, for the next ones: one for a dozen fields is larger than what the allocator hands out without
/// looking for room, which costs as much as filling it.
pub(super) mod spare {
    use std::cell::RefCell;

    use ::http::HeaderMap;

    /// How many a thread keeps, and the most fields that one of them has room for: about 50 KB together.
    const MAPS_MAX: usize = 8;
    const FIELDS_MAX: usize = 64;

    thread_local!(static SPARE: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) });

    /// An empty map with room for `fields`.
    pub(in crate::http) fn take(fields: usize) -> HeaderMap {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let mut map = spare.unwrap_or_default();
        map.reserve(fields);
        map
    }

    /// Takes a map back whose fields are not needed any more.
    pub(in crate::http) fn give(mut map: HeaderMap) {
        map.clear();
        if map.capacity() <= FIELDS_MAX {
            SPARE.with_borrow_mut(|spare| {
                if spare.len() < MAPS_MAX {
                    spare.push(map);
                }
            });
        }
    }
}

/// What origins take for the word of a proxy in front of them, in lower case: who the client is, which URI it meant, what to do to a cache or with a
/// file. `CDN-Loop` is not among them: it must get through unchanged (RFC 8586 §2).
#[must_use]
pub fn is_for_proxies_only(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "cf-connecting-ip",
        "cf-visitor",
        "client-ip",
        "forwarded",
        "front-end-https",
        "true-client-ip",
        "x-cache-invalidate",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-forwarded",
        "x-host",
        "x-scheme",
        "x-sendfile-type",
        "x-url-scheme",
    ];
    const PREFIXES: &[&str] = &[
        "fastly-",
        "surrogate-",
        "x-accel-",
        "x-envoy-",
        "x-forward-",
        "x-forwarded-",
        "x-litespeed-",
        "x-lscache",
        "x-original-",
        "x-real-",
        "x-rewrite-",
    ];
    // All of them, whichever way they are spelled, begin with one of these.
    if !name.starts_with(['c', 'f', 's', 't', 'x']) {
        return false;
    }
    if let Some(dashed) = with_hyphens(name) {
        return is_for_proxies_only(&dashed);
    }
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || (name.starts_with("cdn-") && name != "cdn-loop")
}

/// `Forwarded` (RFC 7239 §4): an element for each on the way, the last with what we know ourselves.
fn write_forwarded(forwarding: &Forwarding<'_>, out: &mut Vec<u8>) {
    for address in forwarding.way {
        write_node(Peer::Ip(*address), out);
        out.extend_from_slice(b", ");
    }
    write_node(forwarding.peer, out);
    let authority = forwarding.authority;
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let quote: &[u8] = if authority.bytes().all(token) { b"" } else { b"\"" };
    if !authority.is_empty() && !authority.contains(['"', '\\']) {
        for piece in [b";host=", quote, authority.as_bytes(), quote] {
            out.extend_from_slice(piece);
        }
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(forwarding.scheme.as_str().as_bytes());
}

/// A node of `Forwarded` (RFC 7239 §6).
fn write_node(node: Peer, out: &mut Vec<u8>) {
    out.extend_from_slice(b"for=");
    match node {
        Peer::Ip(ip) if plain(ip).is_ipv6() => {
            out.extend_from_slice(b"\"[");
            write_ip(ip, out);
            out.extend_from_slice(b"]\"");
        }
        Peer::Ip(ip) => write_ip(ip, out),
        Peer::Unix => out.extend_from_slice(b"unknown"),
    }
}

/// An IPv4 client on a dual-stack socket is an IPv4 client.
fn plain(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Peer = Peer::Ip(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)));

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(HeaderName::try_from(*name).expect("a name"), HeaderValue::from_static(value));
        }
        map
    }

    fn sorted(fields: &HeaderMap) -> Vec<(String, String)> {
        let text = |value: &HeaderValue| value.to_str().expect("text").to_owned();
        let mut all: Vec<_> = fields.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        all.sort();
        all
    }

    fn stranger() -> Forwarding<'static> {
        Forwarding {
            peer: V4,
            client: V4,
            way: &[],
            trusted_fields: &[],
            scheme: Scheme::Https,
            authority: "blog.example",
            version: Version::HTTP_11,
        }
    }

    const OURS: &[(&str, &str)] = &[
        ("forwarded", "for=192.0.2.7;host=blog.example;proto=https"),
        ("host", "blog.example"),
        ("via", "1.1 seawall"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-host", "blog.example"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "192.0.2.7"),
    ];

    #[test]
    fn a_stranger_can_say_nothing_that_only_a_proxy_may_say() {
        for name in [
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-forwarded-port",
            "x-forwarded-server",
            "x-forwarded-prefix",
            "x-forwarded",
            "x_forwarded_host",
            "x-real-ip",
            "x_real_ip",
            "x.real.ip",
            "x.forwarded.host",
            "forwarded",
            "x-original-url",
            "x-rewrite-url",
            "x-lscache",
            "x-lscache-vary-cookie",
            "x-cache-invalidate",
            "x-litespeed-purge",
            "x-litespeed-tag",
            "surrogate-control",
            "surrogate-key",
            "surrogate-capability",
            "proxy",
            "proxy-authorization",
            "proxy-connection",
            "fastly-client-ip",
            "fastly-soft-purge",
            "cdn-cache-control",
            "true-client-ip",
            "cf-connecting-ip",
            "x-accel-mapping",
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ] {
            let fields = rebuild(&map(&[(name, "evil.example")]), &stranger());
            assert_eq!(sorted(&fields), sorted(&map(OURS)), "{name}");
        }
    }

    #[test]
    fn what_is_end_to_end_goes_through_unchanged() {
        let sent = [
            ("accept", "text/html"),
            ("authorization", "Basic eDp5"),
            ("cdn-loop", "other"),
            ("content-length", "3"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("expect", "100-continue"),
            ("range", "bytes=0-1"),
            ("x-ghost-preview", "1"),
            ("x-wp-nonce", "abc"),
        ];
        let fields = rebuild(&map(&sent), &stranger());
        assert_eq!(sorted(&fields), sorted(&map(&[&sent[..], OURS].concat())));
    }

    #[test]
    fn connection_takes_with_it_what_it_names_but_not_what_we_set() {
        let sent = [
            ("connection", "close, X-Hop"),
            ("connection", ",host, x-forwarded-for, via,, no such name"),
            ("x-hop", "1"),
            ("x-hop", "2"),
            ("accept", "*/*"),
        ];
        let fields = rebuild(&map(&sent), &stranger());
        assert_eq!(sorted(&fields), sorted(&map(&[&[("accept", "*/*")], OURS].concat())));
    }

    /// Else `Accept-Language: de` with `Connection: accept-language` would have the English page stored for all who ask for German.
    #[test]
    fn connection_takes_nothing_away_that_decides_over_the_answer() {
        let sent = [("accept", "application/activity+json"), ("accept-language", "de"), ("authorization", "Basic eDp5"), ("cookie", "a=1")];
        let connection = ("connection", "close, accept, Accept-Language, authorization, cookie");
        let fields = rebuild(&map(&[&sent[..], &[connection]].concat()), &stranger());
        assert_eq!(sorted(&fields), sorted(&map(&[&sent[..], OURS].concat())));
    }

    /// Who the client is, is told in our words; what else a proxy lets through, its client may have invented.
    #[test]
    fn of_a_proxys_word_only_the_way_is_told() {
        let way = ["198.51.100.9", "2001:db8::5"].map(|address| address.parse().expect("an address"));
        let proxy =
            Forwarding { peer: Peer::Ip("10.0.0.1".parse().expect("an address")), client: Peer::Ip(way[0]), way: &way, ..stranger() };
        let sent = [
            ("x-forwarded-for", "6.6.6.6, 198.51.100.9, 2001:db8::5"),
            ("x-forwarded-host", "other.example"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-port", "6666"),
            ("x-forwarded-prefix", "/evil"),
            ("x-original-url", "/evil"),
            ("x-real-ip", "6.6.6.6"),
            ("forwarded", "for=6.6.6.6"),
            ("via", "2 front"),
        ];
        let mut expected = vec![
            ("forwarded", "for=198.51.100.9, for=\"[2001:db8::5]\", for=10.0.0.1;host=blog.example;proto=https"),
            ("host", "blog.example"),
            ("via", "2 front, 1.1 seawall"),
            ("x-forwarded-for", "198.51.100.9, 2001:db8::5, 10.0.0.1"),
            ("x-forwarded-host", "blog.example"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "198.51.100.9"),
        ];
        assert_eq!(sorted(&rebuild(&map(&sent), &proxy)), sorted(&map(&expected)));
        // What is named in the settings goes through.
        let named = ["x-forwarded-host".to_owned(), "x-forwarded-prefix".to_owned()];
        expected[4] = ("x-forwarded-host", "other.example");
        expected.push(("x-forwarded-prefix", "/evil"));
        assert_eq!(sorted(&rebuild(&map(&sent), &Forwarding { trusted_fields: &named, ..proxy })), sorted(&map(&expected)));
        assert_eq!(sorted(&rebuild(&map(&[]), &Forwarding { trusted_fields: &named, ..stranger() })), sorted(&map(OURS)));
    }

    #[test]
    fn forwarded_quotes_what_is_no_token() {
        let ip = |text: &str| Peer::Ip(text.parse().expect("an address"));
        for (peer, authority, element, for_, real) in [
            (ip("2001:db8::1"), "blog.example", "for=\"[2001:db8::1]\";host=blog.example;proto=https", Some("2001:db8::1"), "2001:db8::1"),
            (ip("192.0.2.7"), "a.example:8080", "for=192.0.2.7;host=\"a.example:8080\";proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (ip("::ffff:192.0.2.7"), "[::1]", "for=192.0.2.7;host=\"[::1]\";proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (ip("192.0.2.7"), "", "for=192.0.2.7;proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (Peer::Unix, "a.example", "for=unknown;host=a.example;proto=https", None, ""),
        ] {
            let fields = rebuild(&HeaderMap::new(), &Forwarding { peer, client: peer, authority, ..stranger() });
            let text = |name: &str| fields.get(name).map(|value| value.to_str().expect("text"));
            assert_eq!(text("forwarded"), Some(element));
            assert_eq!(text("host"), Some(authority), "RFC 9110 §7.2: empty when there is none, but there");
            assert_eq!(text("x-forwarded-host"), Some(authority).filter(|a| !a.is_empty()));
            assert_eq!(text("x-forwarded-for"), for_);
            assert_eq!(text("x-real-ip").unwrap_or_default(), real);
        }
    }

    #[test]
    fn an_upgrade_is_kept_only_when_connection_names_it() {
        for (sent, kept) in [
            (&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")][..], true),
            (&[("upgrade", "websocket")], false),
            (&[("connection", "upgrade")], false),
            (&[("connection", "upgrade"), ("upgrade", "a"), ("upgrade", "b")], false),
        ] {
            let mut fields = HeaderMap::new();
            assert_eq!(keep_upgrade(&map(sent), &mut fields), kept, "{sent:?}");
            let expected = if kept { &[("connection", "upgrade"), ("upgrade", "websocket")][..] } else { &[] };
            assert_eq!(sorted(&fields), sorted(&map(expected)));
        }
    }
}
