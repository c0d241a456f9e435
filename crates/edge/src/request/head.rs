//! A head that has been read, and the request that is made of it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use semantics::{FieldLines, RequestFields};
use wire::head::{Framing, Head, Reject};

use super::content::RequestBody;
use crate::{service::Service, worker::Worker};

impl<S: Service> Worker<S> {
    /// Remembers the host of a head that was read with this `known_host`: nearly always it is that of the next one, too, and is not validated again.
    #[inline]
    pub(crate) fn remember_host_of(&self, head: &Head<'_>, known_host: &str) {
        if *known_host != *head.authority {
            self.remember_host(head.authority);
        }
    }
}

/// A head that was read, with its fields. It stays where it was parsed to: the two are half a kilobyte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParsedHead<'a> {
    pub(crate) head: &'a Head<'a>,
    pub(crate) fields: &'a RequestFields<'a>,
}

/// The refusal of a head that the parser calls incomplete although the frames were whole (HTTP/2 and 3).
pub(crate) const HALF_A_HEAD: Reject = Reject { status: 400, reason: "malformed head" };

/// Returns whether a stored response may be the answer: to GET and HEAD without content that ask for nothing but the response.
pub(crate) fn may_be_hit(head: &Head<'_>, fields: &RequestFields<'_>) -> bool {
    head.framing == Framing::None
        && !head.negotiates
        && !fields.content_length.is_present()
        && matches!(head.method, Method::GET | Method::HEAD)
}

/// Returns how much content a head announces. `None` means that it does not say.
pub(crate) fn announced_length(head: &Head<'_>, fields: &RequestFields<'_>) -> Option<u64> {
    match head.framing {
        Framing::Length(length) => Some(length),
        Framing::None | Framing::Chunked => fields.content_length.is_present().then_some(0),
    }
}

/// Returns HTTP/1's version with this minor number.
pub(crate) const fn http1_version(minor: u8) -> Version {
    if minor == 0 { Version::HTTP_10 } else { Version::HTTP_11 }
}

/// Makes a request that outlives its buffer: its URI is in origin-form, its authority in `Host`, which an absolute-form target replaces (RFC 9112
/// §3.2.2). It has no content yet.
///
/// # Errors
/// Fails with a refusal when the request-target is not a URI.
pub(crate) fn owned_request(head: &Head<'_>, fields: &RequestFields<'_>, version: Version) -> Result<http::Request<RequestBody>, Reject> {
    let mut request = http::Request::new(RequestBody::empty());
    own_into(&mut request, head, fields, version)?;
    Ok(request)
}

/// Fills `request` where it lies: see [`owned_request`].
///
/// # Errors
/// Fails with a refusal when the request-target is not a URI.
pub(crate) fn own_into(
    request: &mut http::Request<RequestBody>,
    head: &Head<'_>,
    fields: &RequestFields<'_>,
    version: Version,
) -> Result<(), Reject> {
    owned(request, head, fields, version).ok_or(Reject { status: 400, reason: "malformed request-target" })
}

fn owned(request: &mut http::Request<RequestBody>, head: &Head<'_>, fields: &RequestFields<'_>, version: Version) -> Option<()> {
    let FieldLines::Raw(lines) = fields.lines else { return None };
    let mut headers = HeaderMap::with_capacity(lines.len() + 1);
    // All values share one allocation.
    let mut values = Vec::with_capacity(lines.iter().map(|line| line.value.len()).sum());
    lines.iter().for_each(|line| values.extend_from_slice(line.value));
    let mut values = Bytes::from(values);
    for line in lines {
        let value = HeaderValue::from_maybe_shared(values.split_to(line.value.len())).ok()?;
        headers.append(HeaderName::from_bytes(line.name.as_bytes()).ok()?, value);
    }
    if fields.host.one().unwrap_or_default() != head.authority.as_bytes() {
        headers.insert(header::HOST, HeaderValue::from_str(head.authority).ok()?);
    }
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = origin_form(head)?;
    *request.version_mut() = version;
    *request.headers_mut() = headers;
    Some(())
}

fn origin_form(head: &Head<'_>) -> Option<Uri> {
    match head.query {
        None => head.path.parse().ok(),
        Some(query) => format!("{}?{query}", head.path).parse().ok(),
    }
}
