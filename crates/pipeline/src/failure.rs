//! Failures, and the page that a visitor gets for them: one function makes every error page.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use origins::{Fault, OriginError};

use crate::{
    Body,
    ask::{is_the_origins, is_unreachable},
};

/// The seconds after which it is worth trying again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The reasons of a 503 by which this server has too much to do, and not the one behind it.
const BUSY: [&str; 2] = [Fault::Overloaded.name(), "busy"];

/// Why there is no response from the origin. Cheap to clone: a whole crowd may share one.
#[derive(Debug, Clone)]
pub struct Failure {
    inner: Arc<Inner>,
    /// The number of what the request said that failed: see [`crate::collapse::saying`].
    saying: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    /// The proxy error type (RFC 9209 §2.3).
    name: &'static str,
    /// Words for the log, never for the visitor.
    detail: String,
    unreachable: bool,
    /// Whether the origin may have carried out what it was asked for.
    sent: bool,
}

impl Failure {
    fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), saying: None }
    }

    /// Makes it the failure of a request that said this.
    pub(crate) fn of_saying(self, saying: u64) -> Self {
        Self { saying: Some(saying), ..self }
    }

    /// Returns whether the origin could not be connected to, which concerns all requests.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.inner.unreachable
    }

    /// Returns whether the origin may have got the request, and carried it out.
    pub(crate) fn was_perhaps_sent(&self) -> bool {
        self.inner.sent
    }

    /// Returns whether the failure may concern only the request that led the fetch: it failed over one that said something else.
    pub(crate) fn is_anothers(&self, saying: impl FnOnce() -> u64) -> bool {
        self.saying.is_some_and(|failed| failed != saying())
    }

    /// Makes the failure of an origin that answered with an error of its own.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        Self::new(Inner {
            status,
            name: "http_response_status",
            detail: format!("the origin answered {status}"),
            unreachable: false,
            sent: true,
        })
    }

    /// Makes the failure of an origin that takes longer than a reader waits who can have a stale copy.
    pub(crate) fn late() -> Self {
        let detail = "the origin takes too long to be waited for".to_owned();
        Self::new(Inner { status: Fault::ReadTimeout.status(), name: "late", detail, unreachable: false, sent: true })
    }

    /// Makes the failure of a fetch that was given up while a request waited for it.
    pub(crate) fn given_up(detail: &str) -> Self {
        let (status, name) = (Fault::Internal.status(), Fault::Internal.name());
        Self::new(Inner { status, name, detail: detail.to_owned(), unreachable: false, sent: true })
    }

    /// Makes the same failure one after which a client may try again, whatever failed.
    pub(crate) fn to_be_tried_again(&self) -> Self {
        let Inner { name, detail, unreachable, sent, .. } = &*self.inner;
        let inner = Inner { status: StatusCode::SERVICE_UNAVAILABLE, name, detail: detail.clone(), unreachable: *unreachable, sent: *sent };
        Self { saying: self.saying, ..Self::new(inner) }
    }

    /// Returns the status for a visitor.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status
    }

    /// Returns the proxy error type.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Returns what was being done, for the log.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.inner.detail
    }

    /// Makes the page for a visitor.
    pub(crate) fn page(&self) -> Response<Body> {
        page(self.status(), self.name())
    }
}

impl From<&OriginError> for Failure {
    fn from(error: &OriginError) -> Self {
        Self::new(Inner {
            status: error.fault.status(),
            name: error.fault.name(),
            detail: error.detail.clone(),
            unreachable: is_unreachable(error.fault),
            sent: is_the_origins(error.fault) && !is_unreachable(error.fault),
        })
    }
}

/// Makes an error page of our own: what happened, in words for visitors, and the reason's name for whoever runs the site.
pub(crate) fn page(status: StatusCode, reason: &'static str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Error");
    let words = match status.as_u16() {
        400 => "This request could not be understood.",
        401 => "This page is for those who have a password.",
        408 => "The request took too long to arrive.",
        413 => "What was sent is larger than this site accepts.",
        421 => "No site of that name is served here.",
        429 if reason == "too-many-logins" => "Too many attempts to sign in came from your address. Please wait a little.",
        429 if reason == "too-many-logins-at-once" => "Too many people sign in right now. Please try again in a moment.",
        429 if reason == "too-many-requests" => "Too many requests came from your address. Please wait a moment.",
        429 => "Too many wrong passwords came from your address. Please wait a little.",
        503 if BUSY.contains(&reason) => "This site is very busy right now. Please try again in a moment.",
        504 if reason == "only-if-cached" => "This page is not stored here.",
        502..=504 => "The server behind this site does not answer right now. Please try again in a moment.",
        _ => "Something went wrong.",
    };
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{code} {title}</title>\
         <style>body{{font:1.1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1.5rem;color:#234}}\
         small{{color:#678}}@media(prefers-color-scheme:dark){{body{{background:#123;color:#dee}}}}</style>\
         <h1>{title}</h1><p>{words}</p><p><small>{code} · {reason}</small></p></html>\n",
        code = status.as_u16()
    );
    let mut response = Response::new(Body::Full(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status.is_server_error() {
        headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        if let Ok(value) = HeaderValue::from_str(&format!("seawall; error={reason}")) {
            headers.insert("proxy-status", value);
        }
    }
    response
}
