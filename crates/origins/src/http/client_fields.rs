//! Writes what an HTTP origin is told about the client: in `X-Forwarded-Host`, `X-Forwarded-Proto`, `X-Real-IP`, `X-Forwarded-For`,
//! `Forwarded` (RFC 7239) and `Via` (RFC 9110 §7.6.3), and in `X-Forwarded-Prefix` where a prefix was taken off the path.
//!
//! The lines are text, written once for a client and kept for its next request: writing them is a tenth of what passing a request costs.
//! A request of our own comes from nobody, so that only its scheme is told.

use std::{cell::RefCell, net::IpAddr};

use http::{HeaderMap, HeaderName, HeaderValue, Version, header::VIA};
use semantics::{Scheme, decimal, request::has_any};

use crate::{Arrival, Caller};

pub(super) const X_FORWARDED_HOST: &str = "x-forwarded-host";
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Clients a thread remembers, each in the place that its address says: some 30 KB.
const CLIENTS: usize = 64;
/// The longest way that is remembered, in addresses.
const WAY_MAX: usize = 8;

/// The lines about a client, but `Via` and the prefix.
#[derive(Debug)]
struct Lines {
    peer: Option<IpAddr>,
    client: Option<IpAddr>,
    way: Box<[IpAddr]>,
    scheme: Scheme,
    authority: Box<str>,
    text: Box<[u8]>,
    /// The place where the lines behind `X-Forwarded-Host` begin.
    behind_host: usize,
}

thread_local!(static KNOWN: RefCell<[Option<Lines>; CLIENTS]> = const { RefCell::new([const { None }; CLIENTS]) });

/// Writes the lines that tell of `arrival` behind those of `fields`, in which `Via` has been left out.
///
/// Where `says_host`, a trusted proxy has said in `X-Forwarded-Host` what the settings let it say.
pub(super) fn write(arrival: &Arrival<'_>, fields: &HeaderMap, says_host: bool, out: &mut Vec<u8>) {
    let Some(caller) = &arrival.caller else {
        write_line("x-forwarded-proto", arrival.scheme.as_str().as_bytes(), out);
        return;
    };
    with_lines(arrival, caller, |lines| out.extend_from_slice(&lines.text[if says_host { lines.behind_host } else { 0 }..]));
    out.extend_from_slice(b"via: ");
    if has_any(fields, &[VIA]) {
        for line in fields.get_all(VIA).iter().filter(|line| !line.is_empty()) {
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(via(arrival.version).as_bytes());
    out.extend_from_slice(b"\r\n");
    if let Some(prefix) = arrival.prefix.filter(|prefix| is_value(prefix)) {
        write_line(X_FORWARDED_PREFIX.as_str(), prefix.as_bytes(), out);
    }
}

/// Puts what an HTTP origin is told about the client into the fields of a request, in place of what they say themselves.
pub fn tell(arrival: &Arrival<'_>, fields: &mut HeaderMap) {
    let mut text = Vec::new();
    write(arrival, fields, fields.contains_key(X_FORWARDED_HOST), &mut text);
    for line in text.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = line.windows(2).position(|pair| pair == b": ") else { continue };
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 2..])) {
            fields.insert(name, value);
        }
    }
}

fn write_line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(piece);
    }
}

/// Returns what we add to `Via`.
const fn via(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 | Version::HTTP_10 => "1.0 seawall",
        Version::HTTP_2 => "2 seawall",
        Version::HTTP_3 => "3 seawall",
        _ => "1.1 seawall",
    }
}

fn is_value(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok()
}

/// Gives the lines about a client to `then`: those that were written before, if they are about this one.
fn with_lines(arrival: &Arrival<'_>, caller: &Caller<'_>, then: impl FnOnce(&Lines)) {
    let place = match caller.client {
        None => 0,
        Some(IpAddr::V4(v4)) => v4.octets().iter().fold(0, |sum, &octet| sum + usize::from(octet)),
        Some(IpAddr::V6(v6)) => v6.octets().iter().fold(0, |sum, &octet| sum + usize::from(octet)),
    };
    KNOWN.with_borrow_mut(|known| {
        let place = &mut known[place % CLIENTS];
        match place {
            Some(lines) if lines.are_about(arrival, caller) => then(lines),
            _ if caller.way.len() > WAY_MAX => then(&Lines::new(arrival, caller)),
            _ => then(place.insert(Lines::new(arrival, caller))),
        }
    });
}

impl Lines {
    fn are_about(&self, arrival: &Arrival<'_>, caller: &Caller<'_>) -> bool {
        (self.peer, self.client, self.scheme) == (caller.peer, caller.client, arrival.scheme)
            && *self.way == *caller.way
            && *self.authority == *arrival.authority
    }

    fn new(arrival: &Arrival<'_>, caller: &Caller<'_>) -> Self {
        let mut text = Vec::with_capacity(256);
        // What no field can hold cannot be told.
        let authority = if is_value(arrival.authority) { arrival.authority } else { "" };
        if !authority.is_empty() {
            write_line(X_FORWARDED_HOST, authority.as_bytes(), &mut text);
        }
        let behind_host = text.len();
        write_line("x-forwarded-proto", arrival.scheme.as_str().as_bytes(), &mut text);
        let mut value = Vec::with_capacity(64);
        if let Some(client) = caller.client {
            write_ip(client, &mut value);
            write_line("x-real-ip", &value, &mut text);
        }
        value.clear();
        write_chain(caller, &mut value);
        if !value.is_empty() {
            write_line("x-forwarded-for", &value, &mut text);
        }
        value.clear();
        write_forwarded(caller, (arrival.scheme, authority), &mut value);
        write_line("forwarded", &value, &mut text);
        Self {
            peer: caller.peer,
            client: caller.client,
            way: caller.way.into(),
            scheme: arrival.scheme,
            authority: arrival.authority.into(),
            text: text.into(),
            behind_host,
        }
    }
}

/// Writes the addresses on the way, the client's first.
fn write_chain(caller: &Caller<'_>, out: &mut Vec<u8>) {
    for (number, address) in caller.way.iter().copied().chain(caller.peer).enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_ip(address, out);
    }
}

/// Writes `Forwarded` (RFC 7239 §4): an element for each on the way, the last with what we know ourselves.
fn write_forwarded(caller: &Caller<'_>, (scheme, authority): (Scheme, &str), out: &mut Vec<u8>) {
    for address in caller.way {
        write_node(Some(*address), out);
        out.extend_from_slice(b", ");
    }
    write_node(caller.peer, out);
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let quote: &[u8] = if authority.bytes().all(token) { b"" } else { b"\"" };
    if !authority.is_empty() && !authority.contains(['"', '\\']) {
        for piece in [b";host=", quote, authority.as_bytes(), quote] {
            out.extend_from_slice(piece);
        }
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(scheme.as_str().as_bytes());
}

/// Writes a node of `Forwarded` (RFC 7239 §6).
fn write_node(node: Option<IpAddr>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"for=");
    match node {
        Some(ip) if ip.to_canonical().is_ipv6() => {
            out.extend_from_slice(b"\"[");
            write_ip(ip, out);
            out.extend_from_slice(b"]\"");
        }
        Some(ip) => write_ip(ip, out),
        None => out.extend_from_slice(b"unknown"),
    }
}

/// Writes an address in its usual form. An IPv4 client on a dual-stack socket is an IPv4 client.
fn write_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip.to_canonical() {
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

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)));

    fn stranger() -> Arrival<'static> {
        let caller = Caller { peer: V4, client: V4, way: &[] };
        Arrival { caller: Some(caller), ..Arrival::of_our_own(Scheme::Https, "blog.example") }
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    /// Returns what is written to an origin for a request with these fields.
    fn told(arrival: &Arrival<'_>, fields: &[(&'static str, &'static str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, HeaderValue::from_static(value));
        }
        let mut text = Vec::new();
        write(arrival, &map, map.contains_key(X_FORWARDED_HOST), &mut text);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn an_origin_is_told_who_asks_and_for_what() {
        let ours = "x-forwarded-host: blog.example\r\nx-forwarded-proto: https\r\nx-real-ip: 192.0.2.7\r\nx-forwarded-for: 192.0.2.7\r\n\
            forwarded: for=192.0.2.7;host=blog.example;proto=https\r\nvia: 1.1 seawall\r\n";
        assert_eq!(told(&stranger(), &[]), ours);
        assert_eq!(told(&Arrival { prefix: Some("/api"), ..stranger() }, &[]), format!("{ours}x-forwarded-prefix: /api\r\n"));
        for (version, via) in [(Version::HTTP_10, "1.0"), (Version::HTTP_2, "2"), (Version::HTTP_3, "3")] {
            assert!(told(&Arrival { version, ..stranger() }, &[]).ends_with(&format!("\r\nvia: {via} seawall\r\n")));
        }
    }

    #[test]
    fn a_request_of_our_own_comes_from_nobody() {
        assert_eq!(told(&Arrival::of_our_own(Scheme::Https, "blog.example"), &[]), "x-forwarded-proto: https\r\n");
    }

    #[test]
    fn the_way_over_trusted_proxies_is_told_behind_whoever_they_name() {
        let way = [ip("198.51.100.9"), ip("2001:db8::5")].map(|address| address.expect("an address"));
        let caller = Caller { peer: ip("10.0.0.1"), client: Some(way[0]), way: &way };
        let proxy = Arrival { caller: Some(caller), ..stranger() };
        assert_eq!(
            told(&proxy, &[("via", "2 front"), ("via", ""), ("via", "1.1 gate")]),
            "x-forwarded-host: blog.example\r\nx-forwarded-proto: https\r\nx-real-ip: 198.51.100.9\r\n\
             x-forwarded-for: 198.51.100.9, 2001:db8::5, 10.0.0.1\r\n\
             forwarded: for=198.51.100.9, for=\"[2001:db8::5]\", for=10.0.0.1;host=blog.example;proto=https\r\n\
             via: 2 front, 1.1 gate, 1.1 seawall\r\n"
        );
        // What the settings let it say stays what it says.
        let said = told(&proxy, &[("x-forwarded-host", "other.example")]);
        assert!(said.starts_with("x-forwarded-proto: https\r\nx-real-ip: 198.51.100.9\r\n"), "{said}");
    }

    /// Else the second client of a network would be taken for the first, or one site for another.
    #[test]
    fn what_is_remembered_of_a_client_is_told_of_no_other() {
        let way = [ip("198.51.100.9").expect("an address")];
        let long = [way[0]; WAY_MAX + 1];
        let caller = Caller { peer: V4, client: V4, way: &[] };
        let like = |caller| Arrival { caller: Some(caller), ..stranger() };
        let arrivals = [
            stranger(),
            Arrival { authority: "other.example", ..stranger() },
            Arrival { scheme: Scheme::Http, ..stranger() },
            // The sum of its octets is the same.
            like(Caller { client: ip("192.0.3.6"), ..caller }),
            like(Caller { peer: ip("10.0.0.1"), ..caller }),
            like(Caller { way: &way, ..caller }),
            like(Caller { way: &long, ..caller }),
        ];
        let first = arrivals.each_ref().map(|arrival| told(arrival, &[]));
        let again = arrivals.each_ref().map(|arrival| told(arrival, &[]));
        assert_eq!(first, again);
        for (number, one) in first.iter().enumerate() {
            assert!(!first[number + 1..].contains(one), "{one}");
        }
    }

    #[test]
    fn forwarded_quotes_what_is_no_token() {
        for (peer, authority, element, for_, real) in [
            (ip("2001:db8::1"), "blog.example", "for=\"[2001:db8::1]\";host=blog.example;proto=https", Some("2001:db8::1"), "2001:db8::1"),
            (ip("192.0.2.7"), "a.example:8080", "for=192.0.2.7;host=\"a.example:8080\";proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (ip("::ffff:192.0.2.7"), "[::1]", "for=192.0.2.7;host=\"[::1]\";proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (ip("192.0.2.7"), "", "for=192.0.2.7;proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (ip("192.0.2.7"), "a\r\nx: y", "for=192.0.2.7;proto=https", Some("192.0.2.7"), "192.0.2.7"),
            (None, "a.example", "for=unknown;host=a.example;proto=https", None, ""),
        ] {
            let caller = Caller { peer, client: peer, way: &[] };
            let mut fields = HeaderMap::new();
            tell(&Arrival { caller: Some(caller), authority, ..stranger() }, &mut fields);
            let text = |name: &str| fields.get(name).map(|value| value.to_str().expect("text"));
            assert_eq!(text("forwarded"), Some(element));
            assert_eq!(text("x-forwarded-host"), Some(authority).filter(|a| !a.is_empty() && is_value(a)));
            assert_eq!(text("x-forwarded-for"), for_);
            assert_eq!(text("x-real-ip").unwrap_or_default(), real);
        }
    }
}
