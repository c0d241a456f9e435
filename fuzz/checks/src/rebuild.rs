//! The fields that go to an origin (RFC 9110 §7.6.1).

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;
use origins::{Arrival, Caller, end_to_end, http::tell};
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
    let fields = end_to_end(&sent, &[]);
    for name in fields.keys() {
        assert!(!is_hop_by_hop(name) && name != "proxy", "{name} got through");
    }
    assert_eq!(fields.get_all("via"), sent.get_all("via"));
    kept(&sent, &fields);
    not_invented(&fields);
    let way = [IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9))];
    for (client, way) in [(PEER, &[][..]), (way[0], &way[..])] {
        let caller = Caller { peer: Some(PEER), client: Some(client), way };
        let arrival = Arrival { caller: Some(caller), ..Arrival::of_our_own(Scheme::Https, &authority) };
        let mut told = fields.clone();
        tell(&arrival, &mut told);
        let is_proxy = !way.is_empty();
        only(&told, "x-real-ip", if is_proxy { "198.51.100.9" } else { "192.0.2.7" });
        only(&told, "x-forwarded-for", if is_proxy { "198.51.100.9, 192.0.2.7" } else { "192.0.2.7" });
        only(&told, "x-forwarded-proto", "https");
        if authority.is_empty() {
            assert!(!told.contains_key("x-forwarded-host"));
        } else {
            only(&told, "x-forwarded-host", &authority);
        }
        assert_eq!(told.get_all("via").iter().count(), 1);
        assert!(told["via"].as_bytes().ends_with(b"1.1 seawall"));
        assert_eq!(told.get_all("forwarded").iter().count(), 1);
        let forwarded = told["forwarded"].as_bytes();
        let begin: &[u8] = if is_proxy { b"for=198.51.100.9, for=192.0.2.7;" } else { b"for=192.0.2.7;" };
        assert!(forwarded.starts_with(begin) && forwarded.ends_with(b";proto=https"), "{:?}", told["forwarded"]);
    }
    let mut stripped = sent;
    strip_hop_by_hop(&mut stripped);
    assert!(!stripped.keys().any(is_hop_by_hop));
}

fn only(fields: &HeaderMap, name: &str, value: &str) {
    let found: Vec<_> = fields.get_all(name).iter().collect();
    assert_eq!(found, [value], "{name}");
}

fn not_invented(fields: &HeaderMap) {
    for name in fields.keys() {
        let as_cgi = name.as_str().replace('_', "-");
        assert!(!PROXYS_WORD.contains(&&*as_cgi) && !as_cgi.starts_with("x-forwarded-"), "a client's {name}");
        assert!(!["x-real-ip", "forwarded"].contains(&&*as_cgi), "a client's {name}");
    }
}

/// `Connection` cannot take away what decides over the answer: it would be stored for those whose requests still say it.
fn kept(sent: &HeaderMap, fields: &HeaderMap) {
    let ours = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];
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
