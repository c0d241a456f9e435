//! The fields that go to an origin (RFC 9110 §7.6.1).

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, Version};
use origins::http::{Forwarding, Peer, rebuild};
use semantics::{
    Scheme,
    hop_by_hop::{END_TO_END, is_hop_by_hop, strip_hop_by_hop},
    target::valid_authority,
};

use crate::input::{blocks, fields, text};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// What origins take for the word of a proxy, in the spelling that CGI makes no difference of.
const PROXYS_WORD: [&str; 12] = [
    "x-original-url",
    "x-rewrite-url",
    "x-host",
    "x-original-host",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "x-client-ip",
    "x-forwarded-port",
    "x-forwarded-scheme",
    "x-forwarded-prefix",
    "x-accel-redirect",
];

/// Blocks: an authority; the fields of a request. Nothing that concerns the client's connection gets through, nothing that only a
/// proxy may say is a client's invention, with or without a proxy before us, and no client can make a field vanish that says what is
/// asked for, or by whom.
pub fn rebuild_fields(data: &[u8]) {
    let [authority, sent] = blocks(data);
    let authority = text(authority);
    let sent = fields(sent);
    // Nothing else gets through the front; an HTTP/1.0 client may name none.
    if !authority.is_empty() && !valid_authority(&authority) {
        return;
    }
    let peer = Peer::Ip(PEER);
    let way = [IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9))];
    for (client, way) in [(peer, &[][..]), (Peer::Ip(way[0]), &way[..])] {
        let forwarding =
            Forwarding { peer, client, way, trusted_fields: &[], scheme: Scheme::Https, authority: &authority, version: Version::HTTP_11 };
        let fields = rebuild(&sent, &forwarding);
        for name in fields.keys() {
            assert!(!is_hop_by_hop(name) && name != "proxy", "{name} got through");
        }
        let is_proxy = !way.is_empty();
        only(&fields, "x-real-ip", if is_proxy { "198.51.100.9" } else { "192.0.2.7" });
        only(&fields, "x-forwarded-proto", "https");
        assert_eq!(fields.get_all("host").iter().count(), 1);
        assert_eq!(fields.get_all("via").iter().count(), 1);
        assert!(fields["via"].as_bytes().ends_with(b"1.1 seawall"));
        kept(&sent, &fields);
        not_invented(&fields, &authority, is_proxy);
    }
    let mut stripped = sent;
    strip_hop_by_hop(&mut stripped);
    assert!(!stripped.keys().any(is_hop_by_hop));
}

fn only(fields: &HeaderMap, name: &str, value: &str) {
    let found: Vec<_> = fields.get_all(name).iter().collect();
    assert_eq!(found, [value], "{name}");
}

fn not_invented(fields: &HeaderMap, authority: &str, is_proxy: bool) {
    only(fields, "x-forwarded-for", if is_proxy { "198.51.100.9, 192.0.2.7" } else { "192.0.2.7" });
    assert_eq!(fields.get_all("forwarded").iter().count(), 1);
    let forwarded = fields["forwarded"].as_bytes();
    let begin: &[u8] = if is_proxy { b"for=198.51.100.9, for=192.0.2.7;" } else { b"for=192.0.2.7;" };
    assert!(forwarded.starts_with(begin) && forwarded.ends_with(b";proto=https"), "{:?}", fields["forwarded"]);
    if !authority.is_empty() {
        only(fields, "x-forwarded-host", authority);
        only(fields, "host", authority);
    }
    let ours = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
    for name in fields.keys().filter(|name| !ours.contains(&name.as_str())) {
        let as_cgi = name.as_str().replace('_', "-");
        assert!(!PROXYS_WORD.contains(&&*as_cgi) && !as_cgi.starts_with("x-forwarded-"), "a client's {name}");
        assert!(as_cgi == name.as_str() || !["x-real-ip", "forwarded"].contains(&&*as_cgi), "a client's {name}");
    }
}

/// `Connection` cannot take away what decides over the answer: it would be stored for those whose requests still say it.
fn kept(sent: &HeaderMap, fields: &HeaderMap) {
    let ours = ["forwarded", "host", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];
    for name in END_TO_END.iter().filter(|name| !ours.contains(name)) {
        let (before, after): (Vec<_>, Vec<_>) = (sent.get_all(*name).iter().collect(), fields.get_all(*name).iter().collect());
        if CACHES_WORD.contains(name) {
            assert!(after.is_empty(), "a client's {name}");
        } else {
            assert_eq!(before, after, "{name} was taken away");
        }
    }
}

/// What caches say to each other.
const CACHES_WORD: [&str; 3] = ["cdn-cache-control", "surrogate-control", "surrogate-key"];
