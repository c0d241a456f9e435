//! Who may ask: the checks before any route.
//!
//! Two strangers can reach a loopback listener. Another user of this machine must not purge, hence the token. And so must no web page in
//! a browser on this machine: a page can send requests to 127.0.0.1 (CSRF), but not with an `Authorization` field unless the answer to a
//! preflight allows it, and nothing here ever does; it can also give its own name the address 127.0.0.1 (DNS rebinding) and then read
//! the answers, but its requests name that host, and without a token only names of this machine are answered.

use std::net::{IpAddr, SocketAddr};

use axum::http::{
    HeaderMap, Method, Uri, Version,
    header::{AUTHORIZATION, HOST},
    request::Parts,
    uri::Authority,
};

use crate::{Token, refusal::Refusal};

/// Holds the rules of one listener.
#[derive(Debug)]
pub(crate) struct Guard {
    token: Token,
    loopback: bool,
}

impl Guard {
    pub(crate) fn new(token: Token, listener: SocketAddr) -> Self {
        Self { token, loopback: listener.ip().to_canonical().is_loopback() }
    }

    /// Lets a request through to its route, or refuses it.
    ///
    /// With the token everything is allowed. Without it, only safe methods, on a loopback listener, under a name of this machine. That
    /// covers the listener's own address too: on a loopback listener it is a loopback address, on others the token is needed anyway.
    pub(crate) fn admit(&self, request: &Parts) -> Result<(), Refusal> {
        let host = host(request)?;
        let given = bearer(&request.headers);
        if given.is_some_and(|given| self.token.matches(given)) {
            return Ok(());
        }
        if !self.loopback {
            return Err(Refusal::unauthorized(given.is_some()));
        }
        // A client of HTTP/1.0 that names no host is a probe, never a browser.
        if host.is_some_and(|host| !is_of_this_machine(host.host())) {
            return Err(Refusal::misdirected());
        }
        if request.method.is_safe() {
            return Ok(());
        }
        Err(Refusal::unauthorized(given.is_some()))
    }
}

/// Finds the host that a request is for: of its target if that is in absolute form, else of its one `Host` field (RFC 9112 §3.2).
fn host(request: &Parts) -> Result<Option<Authority>, Refusal> {
    let mut fields = request.headers.get_all(HOST).iter();
    let (field, further) = (fields.next(), fields.next());
    if further.is_some() || (field.is_none() && request.version != Version::HTTP_10) {
        return Err(Refusal::bad_host());
    }
    let in_target = (request.method != Method::CONNECT).then(|| Uri::authority(&request.uri)).flatten();
    let authority = match (in_target, field) {
        (Some(authority), _) => Some(authority.clone()),
        (None, Some(field)) => Some(Authority::try_from(field.as_bytes()).map_err(|_| Refusal::bad_host())?),
        (None, None) => None,
    };
    match authority {
        // "localhost@evil.example" is not a host with an optional port.
        Some(authority) if authority.as_str().contains('@') => Err(Refusal::bad_host()),
        authority => Ok(authority),
    }
}

fn is_of_this_machine(host: &str) -> bool {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Finds the credentials of the scheme `Bearer`, whose name is compared without case (RFC 9110 §11.1). Two fields are no credentials: who
/// forwards a request might look at one and we at the other.
fn bearer(fields: &HeaderMap) -> Option<&[u8]> {
    let mut fields = fields.get_all(AUTHORIZATION).iter();
    let field = fields.next()?.as_bytes();
    if fields.next().is_some() {
        return None;
    }
    let (scheme, credentials) = field.split_at_checked(6)?;
    let spaces = credentials.iter().take_while(|byte| **byte == b' ').count();
    (scheme.eq_ignore_ascii_case(b"bearer") && spaces > 0).then(|| &credentials[spaces..])
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// The status of the refusal, or 0.
    fn judge(listener: &str, request: &str) -> u16 {
        let guard = Guard::new(Token::new(TOKEN).expect("long enough"), listener.parse().expect(listener));
        let mut lines = request.split('|');
        let mut start = lines.next().expect("a start line").split(' ');
        let mut builder = Request::builder().method(start.next().expect("a method")).uri(start.next().expect("a target"));
        if let Some(version) = start.next() {
            assert_eq!(version, "1.0");
            builder = builder.version(Version::HTTP_10);
        }
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            builder = builder.header(name, value.replace("TOKEN", TOKEN));
        }
        let (parts, ()) = builder.body(()).expect(request).into_parts();
        guard.admit(&parts).map_or_else(|refusal| refusal.status.as_u16(), |()| 0)
    }

    #[test]
    fn only_the_token_or_this_machine_is_let_in() {
        let cases = [
            // Reading, on loopback.
            ("127.0.0.1:1", "GET /|Host: 127.0.0.1:9180", 0),
            ("127.0.0.1:1", "GET /|Host: 127.8.9.1", 0),
            ("127.0.0.1:1", "HEAD /|Host: LocalHost:9180", 0),
            ("[::1]:1", "GET /|Host: [::1]:9180", 0),
            ("[::ffff:127.0.0.1]:1", "GET /|Host: [::ffff:127.0.0.1]:9180", 0),
            ("127.0.0.1:1", "GET / 1.0", 0),
            // Rebinding: the page's own name has our address.
            ("127.0.0.1:1", "GET /|Host: evil.example:9180", 421),
            ("127.0.0.1:1", "GET / 1.0|Host: evil.example", 421),
            ("127.0.0.1:1", "GET /|Host: 127.0.0.1.evil.example", 421),
            ("127.0.0.1:1", "GET /|Host: localhost.evil.example", 421),
            ("127.0.0.1:1", "GET /|Host: 192.168.0.1:9180", 421),
            ("127.0.0.1:1", "GET /|Host: 0.0.0.0:9180", 421),
            ("127.0.0.1:1", "GET http://evil.example/|Host: 127.0.0.1", 421),
            ("127.0.0.1:1", "POST /|Host: evil.example", 421),
            ("127.0.0.1:1", "GET /|Host: evil.example|Authorization: Bearer wrong", 421),
            ("127.0.0.1:1", "GET /|Host: evil.example|Authorization: Bearer TOKEN", 0),
            // No host, or more than one (RFC 9112 §3.2).
            ("127.0.0.1:1", "GET /", 400),
            ("127.0.0.1:1", "GET /|Host: 127.0.0.1|Host: evil.example", 400),
            ("127.0.0.1:1", "GET /|Host: evil@127.0.0.1", 400),
            ("127.0.0.1:1", "GET /|Host: 127.0.0.1, evil.example", 400),
            ("127.0.0.1:1", "GET /|Authorization: Bearer TOKEN", 400),
            // Changing something.
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1", 401),
            ("127.0.0.1:1", "DELETE /|Host: 127.0.0.1", 401),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: Bearer TOKEN", 0),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: bearer  TOKEN", 0),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: BearerTOKEN", 401),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: Bearer TOKENx", 401),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: Bearer ", 401),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: Basic TOKEN", 401),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Authorization: Bearer TOKEN|Authorization: Bearer TOKEN", 401),
            ("127.0.0.1:1", "POST /|Host: 127.0.0.1|Cookie: TOKEN", 401),
            // A listener that others can reach.
            ("0.0.0.0:1", "GET /|Host: 127.0.0.1", 401),
            ("[::]:1", "GET /|Host: localhost", 401),
            ("192.168.0.1:1", "GET /|Host: 192.168.0.1:1", 401),
            ("192.168.0.1:1", "GET / 1.0", 401),
            ("192.168.0.1:1", "GET /|Host: admin.example|Authorization: Bearer TOKEN", 0),
        ];
        for (listener, request, expected) in cases {
            assert_eq!(judge(listener, request), expected, "{listener}: {request}");
        }
    }
}
