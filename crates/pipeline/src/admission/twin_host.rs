//! Hosts that only lead to another one, such as `www.example.org` to `example.org`.

use http::{HeaderValue, Response};
use policy::Trace;
use semantics::target::host_without_port;

use crate::{
    Body, Router, Shared,
    admission::{FirstStep, IncomingRequest, https},
    own_response::own_redirect,
};

/// `Cache-Control` of these redirects. Private, as a cache between that knows one scheme only would send everybody to it; short, as the
/// name may get a site of its own.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, max-age=3600");

/// Redirects a request whose host only leads to another one. Path and query are kept.
///
/// Where the site there sends visitors to https, this redirect does so at once: nobody is redirected twice.
pub(crate) fn redirect(shared: &Shared, router: &Router, incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    let authority = incoming.authority();
    let host = router.moved_to(authority)?;
    let port = authority.get(host_without_port(authority).len()..).unwrap_or_default();
    let there = format!("{host}{port}");
    trace.decides(FirstStep::TwinHost.name(), true, || format!("this host only leads to {there}"));
    if let Some(site) = router.site(&there)
        && let Some(redirect) = site.https.redirect(&incoming.client, &incoming.parts, &there, |host| shared.is_certified(host))
    {
        return Some(redirect);
    }
    let parts = &incoming.parts;
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let location = format!("{}://{there}{}", incoming.client.scheme.as_str(), if target == "*" { "/" } else { target });
    let location = HeaderValue::from_str(&location).ok()?;
    Some(own_redirect(https::redirect_status(&parts.method), location, CACHE_CONTROL, "This site has another name.\n"))
}
