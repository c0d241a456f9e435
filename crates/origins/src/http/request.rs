//! Tells what a request's method and credentials mean for the connection that it goes over.

use http::{HeaderValue, Method, Request, header};

use crate::Body;

/// The nature of a request: which connection it needs, and whether it may be sent twice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nature {
    pub(super) idempotent: bool,
    pub(super) upgrade: bool,
    /// Whether its credentials are for the connection, not for the request.
    pub(super) bound: bool,
}

impl Nature {
    pub(super) fn of(request: &Request<Body>) -> Self {
        let mut nature = Self { idempotent: is_idempotent(request.method()), upgrade: false, bound: false };
        for (name, value) in request.headers() {
            nature.upgrade |= *name == header::UPGRADE;
            nature.bound |= *name == header::AUTHORIZATION && binds_connection(value);
        }
        nature
    }
}

/// Returns whether a challenge or credentials are of a scheme that logs a connection in, against RFC 9110 §11.
pub(super) fn binds_connection(value: &HeaderValue) -> bool {
    let scheme = value.as_bytes().split(|&b| b == b' ' || b == b',').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate")
}

/// Returns whether doing it twice is the same as doing it once (RFC 9110 §9.2.2).
fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE | Method::TRACE)
}
