//! Visitors who came over plain http and are sent to https.
//!
//! A redirect to an address that comes back as plain http would go round forever, and whether a request was encrypted is often known to a
//! proxy in front alone. So nobody is redirected on a guess: either somebody we trust said "http", or the connection itself ended here
//! without encryption, beside one of ours that has it. Silence is not "http".

use std::rc::Rc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request::Parts};
use policy::Trace;
use semantics::{
    Scheme,
    target::{host_without_port, normal_path},
};

use crate::{
    Body, Client, Shared, Site,
    admission::{FirstStep, IncomingRequest, challenge},
    own_response::own_redirect,
};

/// `Cache-Control` of these redirects. Private, as a cache between that knows one scheme only would answer https with it; short, as it may
/// be switched off again.
const REDIRECT_CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, max-age=3600");

/// The choice whether visitors who came over plain http are sent to https.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirect {
    /// They are served as they came.
    #[default]
    Never,
    /// They are sent to https.
    Always,
    /// They are sent there as soon as there is a certificate for the host that they ask for; see
    /// [`Shared::tell_certified`](crate::Shared::tell_certified).
    OnceCertified,
}

/// A site's rules for requests that came over plain http.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Https {
    /// The choice whether they are sent to https.
    pub redirect: Redirect,
    /// The port on which this server itself speaks TLS. `None`: only a proxy in front may, and only what it says counts.
    pub own_port: Option<u16>,
}

impl Https {
    /// Returns whether a request is to be redirected, apart from its path and its fields.
    pub(crate) fn concerns(self, client: Option<&Client>, scheme: Scheme) -> bool {
        self.redirect != Redirect::Never
            && scheme == Scheme::Http
            && match client {
                Some(client) => client.said_http || (self.own_port.is_some() && !client.trusted),
                None => self.own_port.is_some(),
            }
    }

    /// Redirects a request if it is to be redirected. `is_certified` tells whether there is a certificate for a host.
    pub(crate) fn redirect(
        self,
        client: &Client,
        parts: &Parts,
        authority: &str,
        is_certified: impl Fn(&str) -> bool,
    ) -> Option<Response<Body>> {
        if !self.concerns(Some(client), client.scheme) || authority.is_empty() || came_encrypted(&parts.headers) {
            return None;
        }
        if self.redirect == Redirect::OnceCertified && !is_certified(host_without_port(authority)) {
            return None;
        }
        let target = parts.uri.path_and_query()?;
        // Proofs of the origin's own are served over http, as authorities want. In the form in which the origin gets the path:
        // `/.well-known/acme-challenge/../` is elsewhere.
        if normal_path(target.path()).ok()?.starts_with(challenge::PATH) {
            return None;
        }
        let host = host_without_port(authority);
        let port = self.own_port.filter(|port| *port != 443).map(|port| format!(":{port}")).unwrap_or_default();
        let location = HeaderValue::from_str(&format!("https://{host}{port}{target}")).ok()?;
        Some(own_redirect(redirect_status(&parts.method), location, REDIRECT_CACHE_CONTROL, "This site is served over https.\n"))
    }

    /// Tells who is redirected, in words.
    fn in_words(self) -> String {
        let once = if self.redirect == Redirect::OnceCertified { ", once there is a certificate for the host" } else { "" };
        let who = if self.own_port.is_some() { "who came here without TLS" } else { "who came over http, as a trusted proxy says," };
        format!("visitors {who} are sent to https{once}")
    }
}

/// Sends a request to https where its site wants that.
pub(crate) fn redirect(shared: &Shared, site: &Rc<Site>, incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    let https = site.https;
    if https.redirect == Redirect::Never || incoming.client.scheme != Scheme::Http {
        return None;
    }
    let redirect = https.redirect(&incoming.client, &incoming.parts, incoming.authority(), |host| shared.is_certified(host));
    trace.decides(FirstStep::Https.name(), redirect.is_some(), || {
        let others = if redirect.is_some() { "" } else { "; the rules below are for requests that are not redirected" };
        https.in_words() + others
    });
    redirect
}

/// Returns the status of a permanent redirect. A 301 lets clients make a GET of a POST (RFC 9110 §15.4.2).
pub(crate) fn redirect_status(method: &Method) -> StatusCode {
    let is_read = method == Method::GET || method == Method::HEAD;
    if is_read { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT }
}

/// Returns whether the request shows that its client used https after all, whatever a proxy says: browsers send `Sec-Fetch-*` over https alone
/// (or to their own machine). A proxy that says "http" of each request would else send them round forever.
fn came_encrypted(headers: &HeaderMap) -> bool {
    ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"].iter().any(|name| headers.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use http::{Request, header};

    use super::*;

    const PROXY: Client = Client { peer: None, trusted: true, address: None, scheme: Scheme::Http, said_http: true };
    const SILENT: Client = Client { said_http: false, ..PROXY };
    const STRANGER: Client = Client { trusted: false, ..SILENT };
    const BEHIND: Https = Https { redirect: Redirect::Always, own_port: None };
    const BESIDE: Https = Https { redirect: Redirect::Always, own_port: Some(8443) };

    fn location(https: Https, client: Client, method: &str, target: &str, host: &str, fields: &[(&'static str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let response = https.redirect(&client, &parts, host, |host| host == "certified.example")?;
        Some(format!("{} {}", response.status().as_u16(), response.headers()[header::LOCATION].to_str().expect("text")))
    }

    /// Only what was said counts; https never is redirected.
    #[test]
    fn who_is_redirected() {
        let asks = |https, client| location(https, client, "GET", "/", "a.example", &[]).is_some();
        assert!(asks(BEHIND, PROXY) && !asks(BEHIND, SILENT) && !asks(BEHIND, STRANGER));
        // Beside a port of our own with TLS, a connection without is plain; a proxy may have encrypted it on its side.
        assert!(asks(BESIDE, PROXY) && !asks(BESIDE, SILENT) && asks(BESIDE, STRANGER));
        for client in [PROXY, SILENT, STRANGER] {
            assert!(!asks(BESIDE, Client { scheme: Scheme::Https, ..client }));
            assert!(!asks(Https { redirect: Redirect::Never, ..BESIDE }, client));
        }
    }

    /// A redirect to a warning of the browser would be worse than none.
    #[test]
    fn nobody_is_sent_to_a_host_without_a_certificate_yet() {
        let https = Https { redirect: Redirect::OnceCertified, ..BESIDE };
        let to = |host| location(https, STRANGER, "GET", "/", host, &[]);
        assert_eq!(to("a.example"), None);
        assert_eq!(to("certified.example:80").as_deref(), Some("301 https://certified.example:8443/"));
    }

    #[test]
    fn where_to() {
        let cases = [
            ("GET", "/", "a.example", "301 https://a.example/"),
            ("HEAD", "/a?b=c%20d", "a.example:80", "301 https://a.example/a?b=c%20d"),
            ("POST", "/a", "a.example:8080", "308 https://a.example/a"),
            ("PUT", "/a", "[::1]:8080", "308 https://[::1]/a"),
            // The authority before it keeps this a path.
            ("GET", "//evil.example/", "a.example", "301 https://a.example//evil.example/"),
            ("GET", "/.well-known/acme", "a.example", "301 https://a.example/.well-known/acme"),
        ];
        for (method, target, host, expected) in cases {
            assert_eq!(location(BEHIND, PROXY, method, target, host, &[]).as_deref(), Some(expected), "{method} {target}");
        }
        assert_eq!(location(BESIDE, STRANGER, "GET", "/", "a.example:8080", &[]).as_deref(), Some("301 https://a.example:8443/"));
    }

    #[test]
    fn what_is_excepted() {
        assert_eq!(location(BEHIND, PROXY, "GET", "/.well-known/acme-challenge/token", "a.example", &[]), None);
        assert_eq!(location(BEHIND, PROXY, "OPTIONS", "*", "a.example", &[]), None);
        // HTTP/1.0 without a host: nowhere to go.
        assert_eq!(location(BEHIND, PROXY, "GET", "/", "", &[]), None);
        // The proxy is wrong: this browser is on https already.
        assert_eq!(location(BEHIND, PROXY, "GET", "/", "a.example", &[("sec-fetch-mode", "navigate")]), None);
    }
}
