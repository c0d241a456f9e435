//! Failures, and the page that a visitor gets for them: one function makes every error page.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};
use origins::{Fault, OriginError};

use crate::{
    Body,
    ask::{is_the_origins, is_unreachable},
    collapse::RequestFingerprint,
    own_response::own_response,
};

/// The seconds after which it is worth trying again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The name of the reason for a 504 to a client that wants nothing but what is stored: it is the answer to a condition, and no error of a server.
pub const ONLY_IF_CACHED: &str = ErrorReason::OnlyIfCached.name();

/// The reason why a client gets an error page of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorReason {
    /// There is no response from the origin.
    Fault(Fault),
    /// The origin has answered with an error of its own.
    OriginStatus,
    /// The origin takes longer than a reader waits who can have a stale copy.
    Late,
    /// This server has too much to do.
    Busy,
    /// No site has the host of the request.
    NoSuchSite,
    /// The path of the request is none.
    Target,
    /// The address of the client has sent too many requests.
    TooManyRequests,
    /// The page is for those who have a password.
    Password,
    /// Too many wrong passwords for pages came from the address of the client.
    TooManyPasswords,
    /// Too many wrong passwords for the site's software came from the address of the client.
    TooManyLogins,
    /// Too many clients sign in at once.
    TooManyLoginsAtOnce,
    /// The client wants nothing but what is stored, and it is not.
    OnlyIfCached,
    /// A condition of the request is not met.
    Precondition,
    /// The content has none of the ranges of the request.
    Range,
}

impl ErrorReason {
    /// Returns the name in `Proxy-Status`, `Cache-Status`, logs and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.name(),
            Self::OriginStatus => "http_response_status",
            Self::Late => "late",
            Self::Busy => "busy",
            Self::NoSuchSite => "no-such-site",
            Self::Target => "target",
            Self::TooManyRequests => "too-many-requests",
            Self::Password => "password",
            Self::TooManyPasswords => "too-many-passwords",
            Self::TooManyLogins => "too-many-logins",
            Self::TooManyLoginsAtOnce => "too-many-logins-at-once",
            Self::OnlyIfCached => "only-if-cached",
            Self::Precondition => "precondition",
            Self::Range => "range",
        }
    }
}

/// The reason why there is no response from the origin. Cheap to clone: a whole crowd may share one.
#[derive(Debug, Clone)]
pub struct Failure {
    inner: Arc<Inner>,
    /// What the request said to the origin that failed.
    request: Option<RequestFingerprint>,
}

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    /// The proxy error type (RFC 9209 §2.3), where it has one.
    reason: ErrorReason,
    /// Words for the log, never for the visitor.
    detail: String,
    unreachable: bool,
    /// Whether the origin may have carried out what it was asked for.
    sent: bool,
}

impl Failure {
    fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), request: None }
    }

    /// Makes it the failure of a request that said this.
    pub(crate) fn of_request(self, request: RequestFingerprint) -> Self {
        Self { request: Some(request), ..self }
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
    pub(crate) fn is_anothers(&self, request: impl FnOnce() -> RequestFingerprint) -> bool {
        self.request.is_some_and(|failed| failed != request())
    }

    /// Makes the failure of an origin that answered with an error of its own.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        Self::new(Inner {
            status,
            reason: ErrorReason::OriginStatus,
            detail: format!("the origin answered {status}"),
            unreachable: false,
            sent: true,
        })
    }

    /// Makes the failure of an origin that takes longer than a reader waits who can have a stale copy.
    pub(crate) fn late() -> Self {
        let detail = "the origin takes too long to be waited for".to_owned();
        Self::new(Inner { status: Fault::ReadTimeout.status(), reason: ErrorReason::Late, detail, unreachable: false, sent: true })
    }

    /// Makes the failure of a fetch that was given up while a request waited for it.
    pub(crate) fn given_up(detail: &str) -> Self {
        let (status, reason) = (Fault::Internal.status(), ErrorReason::Fault(Fault::Internal));
        Self::new(Inner { status, reason, detail: detail.to_owned(), unreachable: false, sent: true })
    }

    /// Makes the same failure one after which a client may try again, whatever failed.
    pub(crate) fn to_be_tried_again(&self) -> Self {
        let Inner { reason, detail, unreachable, sent, .. } = &*self.inner;
        let inner = Inner {
            status: StatusCode::SERVICE_UNAVAILABLE,
            reason: *reason,
            detail: detail.clone(),
            unreachable: *unreachable,
            sent: *sent,
        };
        Self { request: self.request, ..Self::new(inner) }
    }

    /// Returns the status for a visitor.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status
    }

    /// Returns the reason of the page that a visitor gets.
    pub(crate) fn reason(&self) -> ErrorReason {
        self.inner.reason
    }

    /// Returns the proxy error type.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.reason.name()
    }

    /// Returns whether the origin was not asked, as it has too many requests already.
    pub(crate) fn is_overload(&self) -> bool {
        self.inner.reason == ErrorReason::Fault(Fault::Overloaded)
    }

    /// Returns what was being done, for the log.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.inner.detail
    }

    /// Makes the page for a visitor.
    pub(crate) fn page(&self) -> Response<Body> {
        page(self.status(), self.inner.reason)
    }
}

impl From<&OriginError> for Failure {
    fn from(error: &OriginError) -> Self {
        Self::new(Inner {
            status: error.fault.status(),
            reason: ErrorReason::Fault(error.fault),
            detail: error.detail.clone(),
            unreachable: is_unreachable(error.fault),
            sent: is_the_origins(error.fault) && !is_unreachable(error.fault),
        })
    }
}

/// Makes an error page of our own: what happened, in words for visitors, and the reason's name for whoever runs the site.
pub(crate) fn page(status: StatusCode, reason: ErrorReason) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Error");
    let words = match (status.as_u16(), reason) {
        (400, _) => "This request could not be understood.",
        (401, _) => "This page is for those who have a password.",
        (408, _) => "The request took too long to arrive.",
        (413, _) => "What was sent is larger than this site accepts.",
        (421, _) => "No site of that name is served here.",
        (429, ErrorReason::TooManyLogins) => "Too many attempts to sign in came from your address. Please wait a little.",
        (429, ErrorReason::TooManyLoginsAtOnce) => "Too many people sign in right now. Please try again in a moment.",
        (429, ErrorReason::TooManyRequests) => "Too many requests came from your address. Please wait a moment.",
        (429, _) => "Too many wrong passwords came from your address. Please wait a little.",
        (503, ErrorReason::Busy | ErrorReason::Fault(Fault::Overloaded)) => {
            "This site is very busy right now. Please try again in a moment."
        }
        (504, ErrorReason::OnlyIfCached) => "This page is not stored here.",
        (502..=504, _) => "The server behind this site does not answer right now. Please try again in a moment.",
        _ => "Something went wrong.",
    };
    let reason = reason.name();
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{code} {title}</title>\
         <style>body{{font:1.1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1.5rem;color:#234}}\
         small{{color:#678}}@media(prefers-color-scheme:dark){{body{{background:#123;color:#dee}}}}</style>\
         <h1>{title}</h1><p>{words}</p><p><small>{code} · {reason}</small></p></html>\n",
        code = status.as_u16()
    );
    let mut response = own_response(status, "text/html; charset=utf-8", body);
    let headers = response.headers_mut();
    if status.is_server_error() {
        headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        if let Ok(value) = HeaderValue::from_str(&format!("seawall; error={reason}")) {
            headers.insert("proxy-status", value);
        }
    }
    response
}
