//! The small responses that Seawall makes itself. Whoever sends them adds their length.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use crate::Body;

/// The media type of a sentence for people.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The media type of an answer for programs.
pub(crate) const JSON: &str = "application/json";

/// Makes a response that nobody stores.
pub(crate) fn own_response(status: StatusCode, media_type: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Full(content.into()));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Makes a redirect that may be kept as its `cache_control` says.
pub(crate) fn own_redirect(status: StatusCode, location: HeaderValue, cache_control: HeaderValue, words: &'static str) -> Response<Body> {
    let mut response = own_response(status, TEXT, words);
    let fields = response.headers_mut();
    fields.insert(header::LOCATION, location);
    fields.insert(header::CACHE_CONTROL, cache_control);
    response
}
