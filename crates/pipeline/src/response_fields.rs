//! Fields that a site adds to its origin's responses, and those that it takes away.
//!
//! It is done once, where the response comes in, so that what is stored carries them already and a hit costs nothing for it. A field that
//! the origin sends itself is never overridden, unless it is taken away first. Fields that caching lives by are neither: the configuration
//! refuses them.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use semantics::{Scheme, coding::media_type};

/// The fields that a site adds and takes away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseFields {
    /// Taken from whatever the origin sends.
    pub remove: Vec<HeaderName>,
    /// Added where there is no such field.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Added to documents alone where there is no such field: to what a browser shows as a page of its own.
    pub set_on_documents: Vec<(HeaderName, HeaderValue)>,
    /// `Strict-Transport-Security`, which means something over https alone (RFC 6797 §7.2).
    pub hsts: Option<HeaderValue>,
}

impl ResponseFields {
    /// Makes the fields of an origin's response what the site's visitors get.
    pub(crate) fn apply(&self, status: StatusCode, headers: &mut HeaderMap, scheme: Scheme) {
        for name in &self.remove {
            headers.remove(name);
        }
        // What a 304 does not say stays as it was, also where the origin had said it itself.
        if status == StatusCode::NOT_MODIFIED {
            return;
        }
        for (name, value) in &self.set {
            add(headers, name, value);
        }
        if !self.set_on_documents.is_empty() && is_document(headers) {
            for (name, value) in &self.set_on_documents {
                add(headers, name, value);
            }
        }
        if let Some(value) = self.hsts.as_ref().filter(|_| scheme == Scheme::Https) {
            add(headers, &header::STRICT_TRANSPORT_SECURITY, value);
        }
    }
}

fn add(headers: &mut HeaderMap, name: &HeaderName, value: &HeaderValue) {
    if !headers.contains_key(name) {
        headers.insert(name, value.clone());
    }
}

/// Returns whether a response is HTML, or may hold scripts as HTML does: SVG and other XML.
fn is_document(headers: &HeaderMap) -> bool {
    let media_type = media_type(headers);
    media_type == "text/html" || media_type.ends_with("/xml") || media_type.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    }

    fn applied(fields: &[(&'static str, &'static str)], status: u16, scheme: Scheme) -> Vec<String> {
        let rules = ResponseFields {
            remove: vec![header::SERVER],
            set: vec![field("x-content-type-options", "nosniff"), field("server", "none")],
            set_on_documents: vec![field("x-frame-options", "SAMEORIGIN")],
            hsts: Some(HeaderValue::from_static("max-age=60")),
        };
        let mut headers: HeaderMap = fields.iter().map(|(name, value)| field(name, value)).collect();
        rules.apply(StatusCode::from_u16(status).expect("a status"), &mut headers, scheme);
        let mut lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("text"))).collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_the_origin_says_stays_unless_it_is_taken_away() {
        assert_eq!(applied(&[], 200, Scheme::Http), ["server: none", "x-content-type-options: nosniff"]);
        assert_eq!(
            applied(&[("server", "nginx"), ("content-type", "Text/HTML; charset=utf-8"), ("x-frame-options", "DENY")], 404, Scheme::Https),
            [
                "content-type: Text/HTML; charset=utf-8",
                "server: none",
                "strict-transport-security: max-age=60",
                "x-content-type-options: nosniff",
                "x-frame-options: DENY"
            ]
        );
        for media_type in ["image/svg+xml", "application/xml", "text/html"] {
            assert!(applied(&[("content-type", media_type)], 200, Scheme::Http).contains(&"x-frame-options: SAMEORIGIN".to_owned()));
        }
    }

    /// RFC 9111 §4.3.4: a 304 updates what it has. A default in it would take the place of what the origin said with the 200.
    #[test]
    fn a_304_only_loses_fields() {
        assert_eq!(applied(&[("server", "nginx"), ("etag", "\"a\"")], 304, Scheme::Https), ["etag: \"a\""]);
    }
}
