//! Refusals: the responses to messages that are not valid requests, or exceed a limit.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use wire::head::Reject;

/// The methods that are named where another one is refused (RFC 9110 §15.5.6).
const ALLOWED: &str = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS";

/// The answer to a request that is refused, the same over all protocols.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) content: Bytes,
}

impl From<Reject> for Refusal {
    fn from(reject: Reject) -> Self {
        let status = StatusCode::from_u16(reject.status).unwrap_or(StatusCode::BAD_REQUEST);
        let content = format!("{} {}: {}\n", status.as_str(), status.canonical_reason().unwrap_or_default(), reject.reason);
        let mut fields = HeaderMap::with_capacity(3);
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            fields.insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
        }
        fields.insert(header::CONTENT_LENGTH, content.len().into());
        Self { status, fields, content: content.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 §15.5.6: a 405 names the methods that are allowed.
    #[test]
    fn a_refusal_says_why_and_a_405_what_is_allowed() {
        let refusal = Refusal::from(Reject { status: 405, reason: "this is not a tunnel" });
        assert_eq!(refusal.content, "405 Method Not Allowed: this is not a tunnel\n");
        assert_eq!(refusal.fields[header::CONTENT_LENGTH], refusal.content.len().to_string());
        assert!(refusal.fields[header::ALLOW].to_str().is_ok_and(|methods| methods.starts_with("GET, HEAD")));
        let refusal = Refusal::from(Reject { status: 400, reason: "malformed Host field" });
        assert!(!refusal.fields.contains_key(header::ALLOW));
    }
}
