//! The fields of a client's request that may go to its origin, whatever kind of origin that is.
//!
//! Two rules. What concerns the client's connection stops here (RFC 9110 §7.6.1). And what an origin believes because "only the proxy
//! sets it" is never a stranger's word: his `X-Forwarded-Host` would end up in links, the page in the cache, and the links with everybody. What
//! a trusted proxy says beyond the client and its scheme goes through by name only, as most proxies pass on whatever their clients invent. The
//! origin is told of the client by an [`Arrival`](crate::Arrival), in words that are its own.

use http::{
    HeaderMap, HeaderValue,
    header::{CONNECTION, CONTENT_LENGTH, UPGRADE},
};
use semantics::{field_name::with_hyphens, hop_by_hop::nominated_by_connection};

/// Returns the fields of a client's request that go to its origin. `trusted_fields`, in lower case, are those in which this client may say what
/// otherwise only we do; for strangers there are none.
///
/// `Content-Length` stays: the content is the same; `Transfer-Encoding` is the next connection's affair.
#[must_use]
pub fn end_to_end(client: &HeaderMap, trusted_fields: &[String]) -> HeaderMap {
    let mut fields = spare::take(client.len() + FIELDS_ADDED);
    let mut nominates = false;
    let is_trusted = |name: &str| trusted_fields.iter().any(|trusted| trusted == name);
    for (name, value) in client {
        if is_hop_by_hop(name.as_str()) {
            nominates |= *name == CONNECTION;
        } else if frames_in_another_spelling(name.as_str()) {
            // CGI and its heirs would read it as the field that says how long this very request is.
        } else if !is_for_proxies_only(name.as_str()) || is_trusted(name.as_str()) {
            let value = if *name == CONTENT_LENGTH { without_zeros(value) } else { value.clone() };
            fields.append(name, value);
        }
    }
    // Not what decides over the answer: it would be stored for those who really ask so.
    if nominates {
        for name in nominated_by_connection(client).into_iter().filter(|name| !is_trusted(name.as_str())) {
            fields.remove(name);
        }
    }
    fields
}

/// Fields that are added to a request on its way: a host, codings, and validators.
const FIELDS_ADDED: usize = 4;

/// Removes zeros before a length, which some readers take for an octal number (RFC 9110 §8.6). That it is one has been seen to.
fn without_zeros(length: &HeaderValue) -> HeaderValue {
    match length.as_bytes() {
        [b'0', rest @ ..] if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit) => {
            let significant = rest.iter().position(|&b| b != b'0').map_or(&b"0"[..], |at| &rest[at..]);
            HeaderValue::from_bytes(significant).unwrap_or_else(|_| length.clone())
        }
        _ => length.clone(),
    }
}

/// Takes a client's wish for another protocol (RFC 9110 §7.8) over into the fields for its origin, if it has one. Whether to grant it is
/// the caller's decision.
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

/// Returns the elements of a comma-separated list (RFC 9110 §5.6.1), the empty ones left out.
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &str> {
    value.split(|&b| b == b',').filter_map(|element| std::str::from_utf8(element).ok()).map(str::trim).filter(|element| !element.is_empty())
}

/// Returns whether a field is for the connection alone, whether or not `Connection` names it. `Trailer` goes too: trailers are not passed on to origins. And
/// `Proxy`, which means nothing but that CGI turns it into the variable `HTTP_PROXY`.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(name, "connection" | "http2-settings" | "keep-alive" | "proxy" | "te" | "trailer" | "transfer-encoding" | "upgrade")
        || name.starts_with("proxy-")
}

/// Returns whether CGI and PHP would take a field for one that concerns the connection or says where the content ends, which by its name it is not.
fn frames_in_another_spelling(name: &str) -> bool {
    with_hyphens(name).is_some_and(|hyphens| hyphens == "content-length" || is_hop_by_hop(&hyphens))
}

/// Maps of requests that were sent, for the next ones: one for a dozen fields is larger than what the allocator hands out without
/// looking for room, which costs as much as filling it.
pub(crate) mod spare {
    use std::cell::RefCell;

    use ::http::HeaderMap;

    /// The number of spare maps that a thread keeps, and the most fields that one of them has room for: about 50 KB together.
    const MAPS_MAX: usize = 8;
    const FIELDS_MAX: usize = 64;

    thread_local!(static SPARE: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) });

    /// Returns an empty map with room for `fields`.
    pub(crate) fn take(fields: usize) -> HeaderMap {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let mut map = spare.unwrap_or_default();
        map.reserve(fields);
        map
    }

    /// Takes a map back whose fields are not needed any more.
    pub(crate) fn give(mut map: HeaderMap) {
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

/// Returns whether origins take a field, whose name is in lower case, for the word of a proxy in front of them: who the client is, which URI
/// it meant, what to do to a cache or with a file.
///
/// Every spelling that CGI or PHP makes one variable counts as the same name. `CDN-Loop` is not among them: it must get through unchanged
/// (RFC 8586 §2).
#[must_use]
pub fn is_for_proxies_only(name: &str) -> bool {
    // By the first letter, which no spelling changes: most fields are told apart by it alone.
    let (names, prefixes): (&[&str], &[&str]) = match name.as_bytes().first() {
        Some(b'c') => (&["cf-connecting-ip", "cf-visitor", "client-ip", "cloudfront-forwarded-proto", "cluster-client-ip"], &["cdn-"]),
        Some(b'f') => (&["forwarded", "front-end-https"], &["fastly-"]),
        Some(b'r') => (&["remote-user"], &[]),
        Some(b's') => (&["ssl", "ssl-https"], &["ssl-client-", "surrogate-"]),
        Some(b't') => (&["true-client-ip"], &[]),
        Some(b'x') => (
            &[
                "x-arr-ssl",
                "x-cache-invalidate",
                "x-client-ip",
                "x-cluster-client-ip",
                "x-forwarded",
                "x-host",
                "x-https",
                "x-proto",
                "x-remote-user",
                "x-scheme",
                "x-sendfile-type",
                "x-ssl",
                "x-sucuri-clientip",
                "x-url-scheme",
            ],
            &[
                "x-accel-",
                "x-auth-request-",
                "x-envoy-",
                "x-forward-",
                "x-forwarded-",
                "x-litespeed-",
                "x-lscache",
                "x-original-",
                "x-real-",
                "x-rewrite-",
            ],
        ),
        _ => return false,
    };
    if let Some(dashed) = with_hyphens(name) {
        return is_for_proxies_only(&dashed);
    }
    names.contains(&name) || (prefixes.iter().any(|prefix| name.starts_with(prefix)) && name != "cdn-loop")
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

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

    /// RFC 3875 §4.1.18: CGI makes one variable of all of these.
    #[test]
    fn what_frames_a_message_is_said_in_one_spelling() {
        for name in ["transfer_encoding", "transfer.encoding", "content_length", "content.length", "keep_alive", "proxy_connection"] {
            assert_eq!(sorted(&end_to_end(&map(&[(name, "1")]), &[])), [], "{name}");
        }
        assert_eq!(end_to_end(&map(&[("content-length", "5"), ("content_type", "text/html")]), &[]).len(), 2);
    }

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
            let fields = end_to_end(&map(&[(name, "evil.example")]), &[]);
            assert!(fields.is_empty(), "{name}");
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
        let fields = end_to_end(&map(&sent), &[]);
        assert_eq!(sorted(&fields), sorted(&map(&sent)));
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
        let fields = end_to_end(&map(&sent), &[]);
        assert_eq!(sorted(&fields), sorted(&map(&[("accept", "*/*")])));
    }

    /// Else `Accept-Language: de` with `Connection: accept-language` would have the English page stored for all who ask for German.
    #[test]
    fn connection_takes_nothing_away_that_decides_over_the_answer() {
        let sent = [("accept", "application/activity+json"), ("accept-language", "de"), ("authorization", "Basic eDp5"), ("cookie", "a=1")];
        let connection = ("connection", "close, accept, Accept-Language, authorization, cookie");
        let fields = end_to_end(&map(&[&sent[..], &[connection]].concat()), &[]);
        assert_eq!(sorted(&fields), sorted(&map(&sent)));
    }

    /// Whatever else a proxy lets through, its client may have invented.
    #[test]
    fn a_trusted_proxy_says_what_the_settings_name_and_nothing_else() {
        let sent = [
            ("x-forwarded-for", "6.6.6.6, 198.51.100.9"),
            ("x-forwarded-host", "other.example"),
            ("x-forwarded-port", "6666"),
            ("x-forwarded-prefix", "/shop"),
            ("x_forwarded_prefix", "/evil"),
            ("x-original-url", "/evil"),
            ("forwarded", "for=6.6.6.6"),
            ("via", "2 front"),
            ("connection", "x-forwarded-prefix"),
        ];
        assert_eq!(sorted(&end_to_end(&map(&sent), &[])), sorted(&map(&[("via", "2 front")])));
        let named = ["x-forwarded-host".to_owned(), "x-forwarded-prefix".to_owned()];
        let expected = [("x-forwarded-host", "other.example"), ("x-forwarded-prefix", "/shop"), ("via", "2 front")];
        assert_eq!(sorted(&end_to_end(&map(&sent), &named)), sorted(&map(&expected)));
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
