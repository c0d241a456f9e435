//! Hosts that only lead to another one, such as `www.example.org` to `example.org`.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use semantics::target::host_without_port;

use crate::{Body, Client, Pipeline, pipeline::Config};

/// Private, as a cache between that knows one scheme only would send everybody to it; short, as the name may get a site of its own.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, max-age=3600");

impl Pipeline {
    /// The redirect of a request whose host only leads to another one; path and query are kept.
    ///
    /// Where the site there sends visitors to https, it does so at once: nobody is redirected twice.
    pub(crate) fn redirect_moved(&self, config: &Config, client: &Client, parts: &Parts, authority: &str) -> Option<Response<Body>> {
        let host = config.router.moved_to(authority)?;
        let port = authority.get(host_without_port(authority).len()..).unwrap_or_default();
        let there = format!("{host}{port}");
        if let Some(site) = config.router.site(&there)
            && let Some(redirect) = site.https.redirect(client, parts, &there, |host| self.shared.is_certified(host))
        {
            return Some(redirect);
        }
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let location = format!("{}://{there}{}", client.scheme.as_str(), if target == "*" { "/" } else { target });
        let mut response = Response::new(Body::Full(Bytes::from_static(b"This site has another name.\n")));
        // A 301 lets clients make a GET of a POST (RFC 9110 §15.4.2).
        let is_read = [Method::GET, Method::HEAD].contains(&parts.method);
        *response.status_mut() = if is_read { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
        let fields = response.headers_mut();
        fields.insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        fields.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        Some(response)
    }
}
