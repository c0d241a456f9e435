//! Fields that belong to one connection and are not forwarded or stored (RFC 9110 §7.6.1, RFC 9111 §3.1).
//!
//! `Connection` may name further fields, and a stranger may write `Connection`. Obeying every name would let a client delete the cookie
//! that keeps its page out of the cache, or the `X-Forwarded-For` a trusted proxy set, and let a response hide its `Set-Cookie` from the
//! decision to store it. §7.6.1 itself forbids nominating fields meant for all recipients, so a nomination of a field in
//! [`END_TO_END`] is ignored.

use http::{
    HeaderMap, HeaderName,
    header::{CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
};
use smallvec::SmallVec;

use crate::list::members;

/// Fields that `Connection` cannot remove: they concern framing, routing, what is asked for, who may see the response, or how long it may
/// be kept.
pub const END_TO_END: [&str; 44] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "age",
    "authorization",
    "cache-control",
    "cache-groups",
    "cache-status",
    "cache-tag",
    "cdn-cache-control",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "origin",
    "pragma",
    "range",
    "referer",
    "seawall-cache-control",
    "set-cookie",
    "surrogate-control",
    "surrogate-key",
    "user-agent",
    "vary",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Returns whether a field concerns the connection alone, whatever `Connection` says. `Alt-Svc` does: it names ports of the server that
/// sent it (RFC 7838 §3), which are not those of a server in front of it.
#[must_use]
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    *name == CONNECTION
        || *name == TRANSFER_ENCODING
        || *name == UPGRADE
        || *name == TE
        || *name == TRAILER
        || *name == PROXY_AUTHENTICATE
        || *name == PROXY_AUTHORIZATION
        || matches!(name.as_str(), "alt-svc" | "keep-alive" | "proxy-connection" | "proxy-authentication-info")
}

/// Returns the fields that `Connection` nominates, except those in [`END_TO_END`]. Members that cannot name a field are ignored.
#[must_use]
pub fn nominated_by_connection(fields: &HeaderMap) -> SmallVec<[HeaderName; 4]> {
    fields
        .get_all(CONNECTION)
        .into_iter()
        .flat_map(|line| members(line.as_bytes()))
        .filter_map(|member| HeaderName::from_bytes(member).ok())
        .filter(|name| END_TO_END.binary_search(&name.as_str()).is_err())
        .collect()
}

/// Removes every field that belongs to this connection alone (RFC 9110 §7.6.1), and those that `Connection` nominates.
///
/// Call it before any field of our own is added, and capture what [`crate::vary::Vary`] nominates from the stripped request. The origin
/// chose by what it was sent: a response stored under the value of a field that the origin never saw would be sent to the wrong clients. A
/// caller that tunnels an `Upgrade` puts `Connection` and `Upgrade` back itself.
pub fn strip_hop_by_hop(fields: &mut HeaderMap) {
    for name in nominated_by_connection(fields) {
        fields.remove(name);
    }
    // Most messages have one or two of them: comparing the names that are there is cheaper than looking up each of the ten.
    let there: SmallVec<[HeaderName; 4]> = fields.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in there {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fields::{lines_of, map};

    #[test]
    fn the_guard_list_is_sorted_for_its_binary_search() {
        assert!(END_TO_END.is_sorted());
    }

    #[test]
    fn what_belongs_to_the_connection_goes() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: &[(Lines, Lines)] = &[
            (&[("x-a", "1"), ("connection", "close")], &[("x-a", "1")]),
            (&[("x-a", "1"), ("x-b", "2"), ("connection", "X-A, keep-alive"), ("keep-alive", "timeout=5")], &[("x-b", "2")]),
            (&[("connection", "x-a"), ("connection", ", x-b ,"), ("x-a", "1"), ("x-b", "1"), ("x-b", "2"), ("x-c", "3")], &[("x-c", "3")]),
            (
                &[
                    ("alt-svc", "h3=\":443\""),
                    ("te", "trailers"),
                    ("trailer", "x"),
                    ("transfer-encoding", "chunked"),
                    ("upgrade", "h2c"),
                    ("proxy-connection", "close"),
                    ("proxy-authenticate", "Basic"),
                    ("proxy-authorization", "Basic x"),
                    ("proxy-authentication-info", "x"),
                    ("proxy-status", "seawall"),
                ],
                &[("proxy-status", "seawall")],
            ),
            (&[("connection", "not a name, é, x-a"), ("x-a", "1")], &[]),
        ];
        for (before, after) in cases {
            let mut fields = map(before);
            strip_hop_by_hop(&mut fields);
            assert_eq!(lines_of(&fields), lines_of(&map(after)), "{before:?}");
        }
    }

    #[test]
    fn a_stranger_cannot_take_away_what_decisions_rest_on() {
        for name in END_TO_END {
            let mut fields = map(&[("connection", name), (name, "x")]);
            strip_hop_by_hop(&mut fields);
            assert!(fields.contains_key(name), "{name}");
        }
    }

    #[test]
    fn the_predicate_and_the_removal_agree() {
        let mut fields = map(&[
            ("connection", "x"),
            ("alt-svc", "x"),
            ("keep-alive", "x"),
            ("proxy-connection", "x"),
            ("proxy-authenticate", "x"),
            ("proxy-authorization", "x"),
            ("proxy-authentication-info", "x"),
            ("te", "x"),
            ("trailer", "x"),
            ("transfer-encoding", "x"),
            ("upgrade", "x"),
            ("date", "x"),
        ]);
        let kept: Vec<_> = fields.keys().filter(|name| !is_hop_by_hop(name)).cloned().collect();
        strip_hop_by_hop(&mut fields);
        assert_eq!(kept, fields.keys().cloned().collect::<Vec<_>>());
    }
}
