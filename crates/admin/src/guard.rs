//! Decides who may ask: the checks before any route.
//!
//! Two strangers can reach a loopback listener. Another user of this machine must not purge, hence the token. And so must no web page in
//! a browser on this machine: a page can send requests to 127.0.0.1 (CSRF), but not with an `Authorization` field unless the answer to a
//! preflight allows it, and nothing here ever does; it can also give its own name the address 127.0.0.1 (DNS rebinding) and then read
//! the answers, but its requests name that host, and without a token only names of this machine are answered.
//!
//! A browser may show a session instead of the token (see [`crate::session`]). Then a third stranger must be kept out: a page of another
//! origin, for which the browser sends the cookie along. So whatever changes something must say that it comes from a page of this very listener, by `Origin` and,
//! where the browser sends it, by `Sec-Fetch-Site`, and must bring the key that only that page has.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Instant,
};

use axum::http::{
    HeaderMap, Method, Uri, Version,
    header::{ACCEPT, AUTHORIZATION, COOKIE, HOST, ORIGIN},
    request::Parts,
    uri::Authority,
};

use crate::{
    Token,
    dashboard::{self, SESSION},
    places::Seat,
    refusal::Refusal,
    session::{AGE_MAX, NewSession, Sessions},
};

/// The field with the key of a session.
pub(crate) const KEY_FIELD: &str = "seawall-session";

/// The most cookies of our name that are looked at. A server at another port of the same host can add some.
const COOKIES_MAX: usize = 4;

/// The address of the client that a connection comes from, as an extension of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Holds the rules of one listener.
#[derive(Debug)]
pub(crate) struct Guard {
    token: Token,
    loopback: bool,
    /// The name of the cookie. Cookies know no ports, and another Seawall may listen at another one.
    cookie: String,
    sessions: Sessions,
}

impl Guard {
    pub(crate) fn new(token: Token, listener: SocketAddr) -> Self {
        Self {
            token,
            loopback: listener.ip().to_canonical().is_loopback(),
            cookie: format!("seawall-{}", listener.port()),
            sessions: Sessions::default(),
        }
    }

    /// Lets a request through to its route, or refuses it.
    ///
    /// With the token everything is allowed. Without it, only safe methods, on a loopback listener, under a name of this machine. That
    /// covers the listener's own address too: on a loopback listener it is a loopback address, on others the token is needed anyway. A session stands for
    /// the token; and the page that asks for the token is there for everybody who may ask at all.
    pub(crate) fn admit(&self, request: &Parts, now: Instant) -> Result<(), Refusal> {
        let host = host(request)?;
        let given = bearer(&request.headers);
        if given.is_some_and(|given| self.token.matches(given)) {
            keeps_its_place(request);
            return Ok(());
        }
        // A client of HTTP/1.0 that names no host is a probe, never a browser.
        if self.loopback && host.as_ref().is_some_and(|host| !is_of_this_machine(host.host())) {
            return Err(Refusal::misdirected());
        }
        // A page of somebody else could not read the answers, but have them made: a list that is searched costs time.
        let is_from_elsewhere = request.headers.get_all("sec-fetch-site").iter().any(|site| site == "cross-site" || site == "same-site");
        if is_from_elsewhere && request.method.is_safe() && !says_nothing(request) {
            return Err(Refusal::cross_site());
        }
        let cookie = self.cookies(&request.headers).find(|cookie| self.sessions.knows(cookie, now));
        if cookie.is_some() {
            keeps_its_place(request);
        }
        if request.method.is_safe() {
            return match self.loopback || cookie.is_some() || says_nothing(request) {
                true => Ok(()),
                false => Err(Refusal::unauthorized(given.is_some())),
            };
        }
        // Whoever shows the token there, or ends a session, is judged by the route.
        if request.uri.path() == SESSION {
            return from_own_page(&request.headers, host.as_ref()).map(drop).ok_or_else(Refusal::other_origin);
        }
        let Some(cookie) = cookie else { return Err(Refusal::unauthorized(given.is_some())) };
        let origin = from_own_page(&request.headers, host.as_ref()).ok_or_else(Refusal::other_origin)?;
        let key = request.headers.get(KEY_FIELD).map_or(&b""[..], |key| key.as_bytes());
        if self.sessions.commands(cookie, key, origin, now) { Ok(()) } else { Err(Refusal::no_key()) }
    }

    /// Opens a session for whoever shows the token.
    pub(crate) fn sign_in(&self, request: &Parts, token: &str, now: Instant) -> Result<SignedIn, Refusal> {
        let origin = from_own_page(&request.headers, host(request)?.as_ref()).ok_or_else(Refusal::other_origin)?;
        let Peer(peer) = request.extensions.get().copied().unwrap_or_else(|| Peer(Ipv4Addr::UNSPECIFIED.into()));
        if !self.token.matches(token.as_bytes()) {
            // Only who is wrong waits: everybody on this machine has one address, and nobody may shut the operator out.
            if let Some(wait) = self.sessions.must_wait(peer, now) {
                return Err(Refusal::too_many_tokens(wait));
            }
            self.sessions.was_wrong(peer, now);
            return Err(Refusal::unauthorized(true));
        }
        self.sessions.was_right(peer);
        let NewSession { cookie, key } = self.sessions.begin(origin, now).map_err(|_| Refusal::no_randomness())?;
        // Whether there is TLS in front is known to the browser alone.
        let secure = if origin.starts_with("https:") { "; Secure" } else { "" };
        let (name, age) = (&self.cookie, AGE_MAX.as_secs());
        Ok(SignedIn { cookie: format!("{name}={cookie}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict{secure}"), key, seconds: age })
    }

    /// Ends the session of a request, and returns the cookie that makes the browser forget it.
    pub(crate) fn sign_out(&self, request: &Parts, now: Instant) -> String {
        self.cookies(&request.headers).for_each(|cookie| self.sessions.close(cookie, now));
        format!("{}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict", self.cookie)
    }

    /// Says what the page may do: whether it has a session, and whether it may read without one.
    pub(crate) fn standing(&self, request: &Parts, now: Instant) -> PageRights {
        let signed_in = self.cookies(&request.headers).any(|cookie| self.sessions.knows(cookie, now));
        PageRights { signed_in, reads: self.loopback || signed_in }
    }

    /// Lists the values of our cookie in a request (RFC 6265 §5.4).
    fn cookies<'a>(&'a self, fields: &'a HeaderMap) -> impl Iterator<Item = &'a [u8]> {
        let pairs = fields.get_all(COOKIE).iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
        let ours = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?.strip_prefix(b"="));
        ours.take(COOKIES_MAX)
    }
}

/// Holds what a browser gets that has shown the token.
#[derive(Debug)]
pub(crate) struct SignedIn {
    /// The value of `Set-Cookie`.
    pub(crate) cookie: String,
    pub(crate) key: String,
    /// The time until the session ends, in seconds.
    pub(crate) seconds: u64,
}

/// Says what a page may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct PageRights {
    pub(crate) signed_in: bool,
    pub(crate) reads: bool,
}

/// Keeps the connection of a request from making way for others, as long as the request is answered.
fn keeps_its_place(request: &Parts) {
    if let Some(seat) = request.extensions.get::<Seat>() {
        seat.obeys();
    }
}

/// Returns whether the answer to a safe request is the same for everybody and says nothing of this server: the page and its parts. With them, the token
/// is asked for.
fn says_nothing(request: &Parts) -> bool {
    match request.uri.path() {
        "/" => wants_page(&request.headers),
        SESSION => true,
        path => dashboard::part(path).is_some(),
    }
}

/// Returns whether a client asks for a page rather than for text: a browser does, curl does not.
pub(crate) fn wants_page(fields: &HeaderMap) -> bool {
    let accepts = fields.get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok());
    accepts.flat_map(|field| field.split(',')).any(|member| {
        let mut parts = member.split(';').map(str::trim);
        let refused = |weight: &str| weight.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/html")) && !parts.any(refused)
    })
}

/// Returns the origin of the page that a request comes from, if that is a page of this listener: `Origin` names the host and the port that the request is
/// for. `None`: it comes from elsewhere, or does not say from where.
fn from_own_page<'a>(fields: &'a HeaderMap, host: Option<&Authority>) -> Option<&'a str> {
    let mut origins = fields.get_all(ORIGIN).iter();
    let origin = origins.next()?.to_str().ok()?;
    if origins.next().is_some() || fields.get_all("sec-fetch-site").iter().any(|site| site != "same-origin") {
        return None;
    }
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
    authority.eq_ignore_ascii_case(host?.as_str()).then_some(origin)
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

/// Finds the credentials of the scheme `Bearer`, whose name is compared without case (RFC 9110 §11.1). Two fields are not credentials: who
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

    /// Returns the status of the refusal, or 0.
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
        guard.admit(&parts, Instant::now()).map_or_else(|refusal| refusal.status.as_u16(), |()| 0)
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
    /// A listener with a session that was opened from a page of it, and the requests that refer to it.
    struct Browser {
        guard: Guard,
        origin: &'static str,
        cookie: String,
        key: String,
    }

    impl Browser {
        /// Signs in at a listener, under the origin by which the browser knows it.
        fn signed_in(listener: &str, origin: &'static str) -> Self {
            let guard = Guard::new(Token::new(TOKEN).expect("long enough"), listener.parse().expect(listener));
            let host = origin.split_once("//").expect("an origin").1;
            let parts = parts(&format!("POST /session|Host: {host}|Origin: {origin}"));
            let signed = guard.sign_in(&parts, TOKEN, Instant::now()).expect("the token");
            let cookie = signed.cookie.split(';').next().expect("a pair").to_owned();
            Self { guard, origin, cookie, key: signed.key }
        }

        fn judge(&self, request: &str) -> u16 {
            let host = self.origin.split_once("//").expect("an origin").1;
            let request =
                request.replace("COOKIE", &self.cookie).replace("KEY", &self.key).replace("ORIGIN", self.origin).replace("HOST", host);
            self.guard.admit(&parts(&request), Instant::now()).map_or_else(|refusal| refusal.status.as_u16(), |()| 0)
        }
    }

    fn parts(request: &str) -> Parts {
        let mut lines = request.split('|');
        let (method, target) = lines.next().and_then(|line| line.split_once(' ')).expect("a start line");
        let fields = lines.filter_map(|line| line.split_once(": "));
        let builder = fields.fold(Request::builder().method(method).uri(target), |builder, (name, value)| builder.header(name, value));
        builder.body(()).expect(request).into_parts().0
    }

    #[test]
    fn a_session_reads_with_its_cookie_and_commands_from_its_own_page_alone() {
        let local = Browser::signed_in("127.0.0.1:9180", "http://127.0.0.1:9180");
        let open = Browser::signed_in("0.0.0.0:9180", "https://admin.example");
        let cases = [
            // What is let through. The numbers are the refusals on loopback, and elsewhere.
            ("GET /status|Host: HOST|Cookie: COOKIE", 0, 0),
            ("GET /status|Host: HOST|Cookie: a=b; COOKIE", 0, 0),
            ("GET /status|Host: HOST|Cookie: a=b|Cookie: COOKIE", 0, 0),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Sec-Fetch-Site: same-origin|Cookie: COOKIE|Seawall-Session: KEY", 0, 0),
            // Older browsers, and every browser on plain HTTP of another machine, do not send Sec-Fetch-Site.
            ("POST /purge|Host: HOST|Origin: ORIGIN|Cookie: COOKIE|Seawall-Session: KEY", 0, 0),
            // Without a session, or with half of one.
            ("GET /status|Host: HOST", 0, 401),
            ("GET /status|Host: HOST|Cookie: seawall-9180=", 0, 401),
            ("GET /status|Host: HOST|Cookie: xCOOKIE", 0, 401),
            ("GET /status|Host: HOST|Cookie: COOKIE0", 0, 401),
            ("POST /purge|Host: HOST|Origin: ORIGIN", 401, 401),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Seawall-Session: KEY", 401, 401),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Cookie: COOKIE", 401, 401),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Cookie: COOKIE|Seawall-Session: KEY0", 401, 401),
            // Pages of others: another site, another port of this host (which is the same site for the browser), a sandboxed frame, none.
            ("POST /purge|Host: HOST|Origin: https://evil.example|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: http://127.0.0.1:3000|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: http://127.0.0.1:9180.evil.example|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: null|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Origin: ORIGIN|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Sec-Fetch-Site: same-site|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Sec-Fetch-Site: cross-site|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("POST /purge|Host: HOST|Origin: ORIGIN|Sec-Fetch-Site: none|Cookie: COOKIE|Seawall-Session: KEY", 403, 403),
            ("DELETE /session|Host: HOST|Origin: https://evil.example|Cookie: COOKIE", 403, 403),
            ("POST /session|Host: HOST|Origin: https://evil.example", 403, 403),
            ("POST /session|Host: HOST", 403, 403),
            ("POST /session|Host: HOST|Origin: ORIGIN", 0, 0),
            // Rebinding: the page of evil.example, whose name has our address now, is a page of this host by all that it says. It has no cookie of ours.
            ("GET /status|Host: evil.example", 421, 401),
            ("GET /|Host: evil.example|Accept: text/html", 421, 0),
            ("GET /session|Host: evil.example", 421, 0),
            ("POST /session|Host: evil.example|Origin: http://evil.example|Sec-Fetch-Site: same-origin", 421, 0),
            ("POST /purge|Host: evil.example|Origin: http://evil.example|Sec-Fetch-Site: same-origin", 421, 401),
            ("POST /purge|Host: evil.example|Origin: http://evil.example|Cookie: COOKIE|Seawall-Session: KEY", 421, 401),
            // What asks for the token is for everybody.
            ("GET /|Host: HOST|Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", 0, 0),
            ("GET /|Host: HOST|Accept: */*", 0, 401),
            ("GET /|Host: HOST|Accept: text/html;q=0, */*", 0, 401),
            ("GET /|Host: HOST", 0, 401),
            ("GET /assets/dashboard.js|Host: HOST", 0, 0),
            ("GET /assets/../status|Host: HOST", 0, 401),
            ("GET /assets/nothing.js|Host: HOST", 0, 401),
            ("GET /session|Host: HOST", 0, 0),
            ("PUT /|Host: HOST|Accept: text/html", 401, 401),
        ];
        for (request, on_loopback, elsewhere) in cases {
            assert_eq!((local.judge(request), open.judge(request)), (on_loopback, elsewhere), "{request}");
        }
    }

    #[test]
    fn the_cookie_is_for_this_listener_alone_and_no_script_reads_it() {
        let cookie = |listener: &str, origin: &str| {
            let guard = Guard::new(Token::new(TOKEN).expect("long enough"), listener.parse().expect(listener));
            let host = origin.split_once("//").expect("an origin").1;
            guard.sign_in(&parts(&format!("POST /session|Host: {host}|Origin: {origin}")), TOKEN, Instant::now()).expect("the token").cookie
        };
        let plain = cookie("127.0.0.1:9180", "http://localhost:9180");
        let (name, attributes) = (&plain[..13], &plain[13 + 64..]);
        assert_eq!((name, attributes), ("seawall-9180=", "; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"));
        assert!(cookie("0.0.0.0:9181", "https://admin.example").starts_with("seawall-9181="));
        assert!(cookie("0.0.0.0:9181", "https://admin.example").ends_with("; HttpOnly; SameSite=Strict; Secure"));
    }

    #[test]
    fn wrong_tokens_of_an_address_have_to_wait_and_the_right_one_never() {
        let guard = Guard::new(Token::new(TOKEN).expect("long enough"), "127.0.0.1:9180".parse().expect("an address"));
        let now = Instant::now();
        let sign_in = |peer: [u8; 4], token: &str, now: Instant| {
            let mut parts = parts("POST /session|Host: 127.0.0.1:9180|Origin: http://127.0.0.1:9180");
            parts.extensions.insert(Peer(peer.into()));
            guard.sign_in(&parts, token, now).map_or_else(|refusal| refusal.status.as_u16(), |_| 0)
        };
        let guesses: Vec<u16> = (0..8).map(|_| sign_in([192, 0, 2, 1], "wrong", now)).collect();
        assert_eq!(guesses, [401, 401, 401, 401, 401, 429, 429, 429]);
        assert_eq!(sign_in([192, 0, 2, 2], "wrong", now), 401, "others do not wait");
        // Everybody on a machine has one address: nobody can shut the operator out.
        assert_eq!(sign_in([192, 0, 2, 1], TOKEN, now), 0);
    }

    #[test]
    fn a_session_that_was_ended_is_worth_nothing() {
        let browser = Browser::signed_in("0.0.0.0:9180", "http://admin.example");
        let ending = parts(&format!("DELETE /session|Host: admin.example|Origin: http://admin.example|Cookie: {}", browser.cookie));
        assert_eq!(browser.guard.standing(&ending, Instant::now()), PageRights { signed_in: true, reads: true });
        assert!(browser.guard.sign_out(&ending, Instant::now()).starts_with("seawall-9180=; Max-Age=0; Path=/"));
        assert_eq!(browser.guard.standing(&ending, Instant::now()), PageRights { signed_in: false, reads: false });
        assert_eq!(browser.judge("GET /status|Host: HOST|Cookie: COOKIE"), 401);
    }
}
