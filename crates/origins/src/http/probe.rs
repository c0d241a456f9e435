//! One look at an origin at start: is it there, and what is it?

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use semantics::Scheme;

use super::HttpOrigin;
use crate::{
    Arrival, Body, Fault, Origin, OriginError,
    server::{Address, ServerOptions},
};

/// The time that the whole look may take: the answer is wanted at start, and a CMS that sleeps may need a moment to wake.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes of the page that are read. Generators name themselves in its head.
const PAGE_BYTES_MAX: usize = 64 * 1024;

/// The software that an origin seems to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Software {
    /// Ghost.
    Ghost,
    /// WordPress.
    WordPress,
    /// It does not say.
    Unknown,
}

/// The answer of an origin to one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The status of the answer to `GET /`.
    pub status: StatusCode,
    /// The `Server` field of the answer.
    pub server: Option<String>,
    /// The generator that its pages name: `Ghost 6.65`, `WordPress 6.8.7`.
    pub generator: Option<String>,
    /// The address to which it sends who asks for `/`.
    pub location: Option<String>,
    /// The software that this speaks of.
    pub software: Software,
}

/// Asks `address` for `/`, as a browser under the name `host` (else the address's own) would.
///
/// Blogs whose own address is https send everybody there who does not seem to come by it; then it is asked once more as if.
///
/// # Errors
/// Fails when it did not answer in time, or not in HTTP. Any status is an answer.
pub async fn probe(address: &Address, host: Option<&str>, tls: &Arc<rustls::ClientConfig>) -> Result<Probe, OriginError> {
    let mut options = ServerOptions::new(vec![address.clone()], Arc::clone(tls));
    options.pool_idle_max = 1;
    let origin = HttpOrigin::new(Arc::new(options), None)?;
    let look = async {
        let first = ask(&origin, host, Scheme::Http).await?;
        if first.software == Software::Unknown && first.location.as_deref().is_some_and(|to| to.starts_with("https://")) {
            return ask(&origin, host, Scheme::Https).await;
        }
        Ok(first)
    };
    match tokio::time::timeout(PROBE_TIMEOUT, look).await {
        Ok(result) => result,
        Err(_) => Err(OriginError::new(Fault::ReadTimeout, format!("no answer from {address} within {PROBE_TIMEOUT:?}"))),
    }
}

async fn ask(origin: &HttpOrigin, host: Option<&str>, scheme: Scheme) -> Result<Probe, OriginError> {
    let mut request = Request::new(Body::Empty);
    let fields = request.headers_mut();
    fields.insert(header::ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.1"));
    fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    fields.insert(header::USER_AGENT, HeaderValue::from_static(concat!("seawall/", env!("CARGO_PKG_VERSION"))));
    if let Some(host) = host {
        let host =
            HeaderValue::from_str(host).map_err(|e| OriginError::new(Fault::Internal, "a host that no field can hold").because(e))?;
        fields.insert(header::HOST, host);
    }
    let arrival = Arrival::of_our_own(scheme, host.unwrap_or_default());
    let (head, body) = origin.fetch(request, &arrival, None).await?.into_parts();
    let page = read_some(body).await;
    Ok(describe(&Response::from_parts(head, page)))
}

/// Reads the first bytes of a body. That the rest is missing or broken is no reason not to look at them.
async fn read_some(mut body: Body) -> Vec<u8> {
    let mut page = Vec::new();
    while page.len() < PAGE_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Some(data) = frame.data_ref() {
            page.extend_from_slice(&data[..data.len().min(PAGE_BYTES_MAX - page.len())]);
        }
    }
    page
}

fn describe(response: &Response<Vec<u8>>) -> Probe {
    let fields = response.headers();
    let generator = generator(&String::from_utf8_lossy(response.body()));
    let software = guess(fields, generator.as_deref());
    Probe {
        status: response.status(),
        server: text(fields, header::SERVER.as_str()),
        location: text(fields, header::LOCATION.as_str()),
        generator,
        software,
    }
}

fn text(fields: &HeaderMap, name: &str) -> Option<String> {
    Some(fields.get(name)?.to_str().ok()?.to_owned())
}

/// Guesses what answered: by the page's own word first; plugins and themes remove it, so then the fields that only one system sends.
fn guess(fields: &HeaderMap, generator: Option<&str>) -> Software {
    match generator.and_then(|name| name.split_whitespace().next()) {
        Some("Ghost") => return Software::Ghost,
        Some("WordPress") => return Software::WordPress,
        _ => {}
    }
    let any = |name: &str, part: &str| fields.get_all(name).iter().any(|line| line.to_str().is_ok_and(|line| line.contains(part)));
    if any("link", "https://api.w.org/") || any("x-redirect-by", "WordPress") || fields.contains_key("x-pingback") {
        Software::WordPress
    } else if fields.contains_key("x-llms-txt") || fields.contains_key("x-ghost-cache-status") || any("link", "rel=\"llms-txt\"") {
        Software::Ghost
    } else {
        Software::Unknown
    }
}

/// Returns the content of the first `<meta name="generator" content="…">`, in either order of the attributes.
fn generator(page: &str) -> Option<String> {
    // ASCII lower case keeps every byte's place.
    let lower = page.to_ascii_lowercase();
    let mut from = 0;
    while let Some(start) = lower[from..].find("<meta").map(|at| from + at) {
        let end = lower[start..].find('>').map_or(lower.len(), |at| start + at);
        if attribute(&lower[start..end], "name").is_some_and(|at| &lower[start..end][at] == "generator") {
            return attribute(&lower[start..end], "content").map(|at| page[start..end][at].to_owned());
        }
        from = end;
    }
    None
}

/// Finds the value of a quoted attribute within its tag.
fn attribute(tag: &str, name: &str) -> Option<std::ops::Range<usize>> {
    for quote in ['"', '\''] {
        if let Some(at) = tag.find(&format!(" {name}={quote}")) {
            let start = at + name.len() + 3;
            return Some(start..start + tag[start..].find(quote)?);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_known_by_what_it_says_of_itself() {
        let ghost = r#"<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="generator" content="Ghost 6.65"><title>x</title>"#;
        let wordpress = "<META content='WordPress 6.8.7' name='generator' />";
        for (fields, page, generator, software) in [
            (&[][..], ghost, Some("Ghost 6.65"), Software::Ghost),
            (&[], wordpress, Some("WordPress 6.8.7"), Software::WordPress),
            (&[("link", "</llms.txt>; rel=\"llms-txt\"")], "", None, Software::Ghost),
            (&[("x-llms-txt", "/llms.txt")], "", None, Software::Ghost),
            (&[("link", "<http://b.example/wp-json/>; rel=\"https://api.w.org/\"")], "<p>", None, Software::WordPress),
            (&[("x-redirect-by", "WordPress")], "", None, Software::WordPress),
            (&[("x-powered-by", "Express")], "<meta name=\"generator\"", None, Software::Unknown),
            (&[], "<meta name=\"generator\" content=\"Hugo 0.150\">", Some("Hugo 0.150"), Software::Unknown),
            (&[], "<meta name=\"author\" content=\"Ghost\">é<meta", None, Software::Unknown),
        ] {
            let mut response = Response::new(page.as_bytes().to_vec());
            for (name, value) in fields {
                response.headers_mut().append(*name, HeaderValue::from_static(value));
            }
            let probe = describe(&response);
            assert_eq!((probe.generator.as_deref(), probe.software), (generator, software), "{page}");
        }
    }
}
