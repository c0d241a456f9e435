//! Who may send a purge request on a site's own address.
//!
//! Everybody can reach that address, so the question is who asks. Two answers let a request in: the admin token, or a client address that
//! is allowed, by default this machine's. A connection's peer is not that address by itself: behind a reverse proxy on this machine every
//! visitor of the world has a loopback peer. So an address counts only where nothing speaks for somebody behind it, or where a trusted
//! proxy has named it ([`vouched_address`]).

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use http::{HeaderMap, header};
use ipnet::IpNet;

use crate::Client;

/// Tells whether the given bytes are the admin token, in a time that does not tell how much of it is right.
pub type TokenCheck = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Knows who may send purge requests, and counts those that others sent.
#[derive(Default)]
pub(super) struct Permission {
    allowed: ArcSwap<Vec<IpNet>>,
    token: OnceLock<TokenCheck>,
    refused: AtomicU64,
}

impl Permission {
    /// Takes purge requests from these addresses alone, beside those with a token.
    pub(super) fn allow(&self, addresses: Vec<IpNet>) {
        self.allowed.store(Arc::new(addresses));
    }

    /// Takes purge requests from whoever has the token. Only the first call counts.
    pub(super) fn accept_token(&self, is_token: TokenCheck) {
        let _ = self.token.set(is_token);
    }

    /// Returns how many purge requests were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Lets a purge request in, or says why not.
    pub(super) fn admit(&self, headers: &HeaderMap, address: Option<IpAddr>) -> Result<(), String> {
        let given = tokens(headers);
        if let Some(is_token) = self.token.get()
            && given.iter().any(|token| is_token(token))
        {
            return Ok(());
        }
        let allowed = address.is_some_and(|address| self.allowed.load().iter().any(|network| network.contains(&address)));
        if allowed && !is_of_a_browser(headers) {
            return Ok(());
        }
        self.refused.fetch_add(1, Relaxed);
        let origin = match address {
            _ if allowed => "a web page in a browser".to_owned(),
            // Not which: it may be that of an inner proxy.
            Some(_) => "an address that is not in [purge] allow".to_owned(),
            None => "somebody behind a proxy that is not in trusted_proxies".to_owned(),
        };
        let token = if given.is_empty() {
            "sends the admin token (Authorization: Bearer ...)"
        } else {
            "sends the right token; the token of this request is wrong"
        };
        Err(format!(
            "purging is not allowed: this request comes from {origin}. Add the client's address to [purge] allow, or use a client that {token}."
        ))
    }
}

/// Returns the tokens, wherever clients of the dialects can put one.
fn tokens(headers: &HeaderMap) -> Vec<&[u8]> {
    let bearer = headers.get_all(header::AUTHORIZATION).into_iter().filter_map(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
    });
    let named = ["x-purge-token", "fastly-key"].into_iter().flat_map(|name| headers.get_all(name));
    bearer.chain(named.map(|value| value.as_bytes().trim_ascii())).collect()
}

/// Tells whether a request has fields that browsers send with the requests of a page and that no page can leave out. An address does not
/// vouch for a page that somebody there has open. `Sec-Fetch-*` alone would not do: over plain HTTP they are not sent.
fn is_of_a_browser(headers: &HeaderMap) -> bool {
    let browsers = headers.get(header::USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"));
    browsers
        || [header::ORIGIN, header::REFERER, header::COOKIE, header::ACCEPT_LANGUAGE].iter().any(|name| headers.contains_key(name))
        || headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"))
}

/// Finds out whose request this is, as far as somebody we trust says so, and nobody says otherwise.
///
/// This is stricter than [`Client::of`]: one member that cannot be read voids the whole chain, and `Forwarded` must not contradict it.
///
/// A peer speaks for itself, unless the request carries what only proxies write; then it speaks for somebody else. A trusted proxy speaks
/// for the client that it names in `X-Forwarded-For`; every member of the chain that is looked at must be readable. A Unix socket has no
/// address to speak of.
pub(super) fn vouched_address(client: &Client, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> Option<IpAddr> {
    const NAMES: &str = "x-forwarded-for";
    let speaks_for_others = |name: &str| name == "via" || name.starts_with("x-forwarded") || NAMING.contains(&name);
    if !client.trusted {
        return client.peer.filter(|_| !headers.keys().any(|name| speaks_for_others(name.as_str())));
    }
    let lines: Vec<&str> = headers.get_all(NAMES).iter().map(|line| line.to_str().unwrap_or("?")).collect();
    if lines.is_empty() {
        return client.peer.filter(|_| !headers.keys().any(|name| speaks_for_others(name.as_str())));
    }
    let chain: Vec<&str> = lines.iter().rev().flat_map(|line| line.rsplit(',')).collect();
    let mut vouched = None;
    for member in &chain {
        let address = member.trim().parse::<IpAddr>().ok()?.to_canonical();
        vouched = Some(address);
        if !trusted_proxies.iter().any(|network| network.contains(&address)) {
            break;
        }
    }
    // In the middle of a chain, "this machine" is a proxy that somebody's request came through.
    let near = chain.len() == 1 && client.peer.is_none_or(|peer| peer.is_loopback());
    vouched.filter(|address| (near || !address.is_loopback()) && !is_denied(*address, headers, trusted_proxies))
}

/// Tells whether `Forwarded` names another client. A proxy that writes the one field passes on the other as its client invented it, and which is
/// which cannot be told from outside.
fn is_denied(address: IpAddr, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> bool {
    if !headers.contains_key(header::FORWARDED) {
        return false;
    }
    let lines = headers.get_all(header::FORWARDED).iter().map(|line| line.to_str().unwrap_or("for=?"));
    let nodes: Vec<Option<IpAddr>> = lines.flat_map(forwarded_for).collect();
    let is_proxy = |node: &Option<IpAddr>| node.is_some_and(|node| trusted_proxies.iter().any(|network| network.contains(&node)));
    // From the right, as in the other field; the leftmost if all are proxies.
    let client = nodes.iter().rev().find(|node| !is_proxy(node)).or_else(|| nodes.first());
    client != Some(&Some(address))
}

/// Returns the nodes in a line of `Forwarded` (RFC 7239 §4, §6), without their ports; none for one that is not an address. Commas and semicolons
/// within quotes part nothing: a node has none.
fn forwarded_for(line: &str) -> impl Iterator<Item = Option<IpAddr>> {
    line.split([',', ';']).filter_map(|pair| {
        let (name, node) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| {
            let node = node.trim().trim_matches('"');
            let bare = node.strip_prefix('[').and_then(|rest| rest.split(']').next());
            let address = bare.unwrap_or_else(|| node.split(':').next().unwrap_or_default());
            address.parse::<IpAddr>().ok().map(|address| address.to_canonical())
        })
    })
}

/// The fields other than `X-Forwarded-For` in which proxies name their client.
const NAMING: [&str; 7] =
    ["forwarded", "x-real-ip", "client-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "x-cluster-client-ip"];

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("allowed", &self.allowed).field("has_token", &self.token.get().is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use semantics::{FieldLines, Scheme};

    use super::*;

    type Fields<'a> = &'a [(&'static str, &'a str)];

    fn headers(fields: Fields<'_>) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn an_address_counts_only_if_nobody_is_behind_it() {
        let proxies: [IpNet; 2] = ["10.0.0.0/8".parse().expect("a net"), "127.0.0.2/32".parse().expect("a net")];
        let local = Some("127.0.0.1");
        let cases: &[(Option<&str>, Fields<'_>, Option<&str>)] = &[
            (local, &[], local),
            (Some("::ffff:127.0.0.1"), &[], local),
            (Some("203.0.113.7"), &[], Some("203.0.113.7")),
            // A proxy of this machine that was not made known: every visitor comes through it.
            (local, &[("x-forwarded-for", "203.0.113.7")], None),
            (local, &[("x-forwarded-for", "127.0.0.1")], None),
            (local, &[("forwarded", "for=203.0.113.7")], None),
            (local, &[("x-real-ip", "127.0.0.1")], None),
            (local, &[("x-forwarded-proto", "https")], None),
            (local, &[("via", "1.1 proxy")], None),
            // Forged by a stranger who has no proxy before him.
            (Some("203.0.113.7"), &[("x-forwarded-for", "127.0.0.1")], None),
            // A proxy that was made known says who it is, rightmost first.
            (Some("10.0.0.1"), &[("x-forwarded-for", "203.0.113.7")], Some("203.0.113.7")),
            (Some("10.0.0.1"), &[("x-forwarded-for", "127.0.0.1, 203.0.113.7")], Some("203.0.113.7")),
            // A tunnel on the proxy's own machine: a stranger came through it.
            (Some("10.0.0.1"), &[("x-forwarded-for", "127.0.0.1, 10.0.0.9")], None),
            (Some("10.0.0.1"), &[("x-forwarded-for", "127.0.0.1")], None),
            (None, &[("x-forwarded-for", "203.0.113.7, 127.0.0.1")], None),
            // It speaks for somebody, and does not say for whom.
            (Some("127.0.0.2"), &[("x-forwarded-proto", "https")], None),
            (Some("127.0.0.2"), &[("via", "1.1 proxy")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1")], local),
            // It named somebody, but not so that it can be read: it is not the proxy itself.
            (Some("127.0.0.2"), &[("x-forwarded-for", "unknown")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1, unknown")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "")], None),
            (Some("127.0.0.2"), &[("forwarded", "for=203.0.113.7")], None),
            (Some("127.0.0.2"), &[], Some("127.0.0.2")),
            // RFC 7239: of two clients neither is believed.
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=203.0.113.7")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=unknown")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1"), ("forwarded", "proto=http")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1, for=203.0.113.7")], None),
            (Some("127.0.0.2"), &[("x-forwarded-for", "127.0.0.1"), ("forwarded", "For=\"127.0.0.1:4711\";proto=http")], local),
            (
                Some("10.0.0.1"),
                &[("x-forwarded-for", "2001:db8::1"), ("forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:80\"")],
                Some("2001:db8::1"),
            ),
            // A Unix socket is trusted to name a client, and none by itself.
            (None, &[], None),
            (None, &[("x-forwarded-for", "127.0.0.1")], local),
        ];
        for (peer, fields, expected) in cases {
            let headers = headers(fields);
            let peer = peer.map(|peer| peer.parse().expect("an address"));
            let client = Client::of(peer, Scheme::Http, FieldLines::Map(&headers), &proxies);
            let expected = expected.map(|address| address.parse::<IpAddr>().expect("an address"));
            assert_eq!(vouched_address(&client, &headers, &proxies), expected, "{peer:?} {fields:?}");
        }
    }

    #[test]
    fn a_request_is_admitted_by_its_address_or_its_token() {
        let authority = Permission::default();
        authority.allow(vec!["127.0.0.0/8".parse().expect("a net")]);
        authority.accept_token(Box::new(|given| given == b"secret"));
        let local = Some("127.0.0.1");
        let stranger = Some("203.0.113.7");
        let cases: &[(Option<&str>, Fields<'_>, bool)] = &[
            (local, &[], true),
            (stranger, &[], false),
            (None, &[], false),
            (stranger, &[("authorization", "Bearer secret")], true),
            (stranger, &[("authorization", "bearer secret")], true),
            (stranger, &[("x-purge-token", "secret")], true),
            (None, &[("fastly-key", "secret")], true),
            (stranger, &[("authorization", "Bearer secre")], false),
            (stranger, &[("authorization", "Basic secret")], false),
            (stranger, &[("x-purge-token", "")], false),
            // An allowed address needs none, and Fastly's plugins always send one.
            (local, &[("fastly-key", "of Fastly")], true),
            // A page in a browser on this machine.
            (local, &[("origin", "https://evil.example")], false),
            (local, &[("sec-fetch-site", "cross-site")], false),
            (local, &[("origin", "https://evil.example"), ("x-purge-token", "secret")], true),
        ];
        for (address, fields, admitted) in cases {
            let address = address.map(|address| address.parse().expect("an address"));
            assert_eq!(authority.admit(&headers(fields), address).is_ok(), *admitted, "{address:?} {fields:?}");
        }
        assert_eq!(authority.refused(), cases.iter().filter(|(.., admitted)| !admitted).count() as u64);
        let why = authority.admit(&HeaderMap::new(), None).expect_err("a stranger");
        assert!(why.contains("[purge] allow") && why.contains("Bearer"), "{why}");
    }
}
