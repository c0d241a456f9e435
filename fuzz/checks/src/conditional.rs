//! Conditional requests and entity tags (RFC 9110 §8.8.3, §13).

use http::{HeaderMap, HeaderValue, Method};
use semantics::{
    RequestFields, Timestamp,
    conditional::{Precondition, evaluate, not_modified_fields},
    date::{format_http_date, parse_http_date},
    entity_tag::EntityTag,
};

use crate::input::{blocks, fields};

const PRECONDITIONS: [&str; 4] = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

/// Blocks: the stored entity tag; the stored `Last-Modified`; the fields of a request. Nobody is told "not modified" or "failed" who did not
/// ask; and whoever sends back what was sent is told that nothing changed.
pub fn conditional(data: &[u8]) {
    let [etag, last_modified, request] = blocks(data);
    let etag = HeaderValue::from_bytes(etag).ok();
    let etag = etag.as_ref().map(HeaderValue::as_bytes);
    let last_modified = parse_http_date(last_modified);
    let asked = fields(request);
    for method in [Method::GET, Method::HEAD, Method::PUT] {
        let judged = evaluate(&method, &RequestFields::from_map(&asked), etag, last_modified);
        let has = |name: &str| asked.contains_key(name);
        match judged {
            Precondition::Proceed => {}
            Precondition::NotModified => {
                assert!(method != Method::PUT, "304 to an unsafe method");
                assert!(has("if-none-match") || has("if-modified-since"));
            }
            Precondition::Failed => {
                assert!(has("if-match") || has("if-unmodified-since") || (method == Method::PUT && has("if-none-match")))
            }
        }
        let mut unconditional = asked.clone();
        for name in PRECONDITIONS {
            unconditional.remove(name);
        }
        assert_eq!(evaluate(&method, &RequestFields::from_map(&unconditional), etag, last_modified), Precondition::Proceed);
    }
    echoed(etag, last_modified);
    compared(etag, &asked);

    let stored = not_modified_fields(&asked);
    assert!(!stored.contains_key("set-cookie") && !stored.contains_key("content-length") && !stored.contains_key("content-type"));
}

fn echoed(etag: Option<&[u8]>, last_modified: Option<Timestamp>) {
    let ask = |name: &'static str, value: &[u8]| {
        let mut request = HeaderMap::new();
        request.insert(name, HeaderValue::from_bytes(value).expect("came from a field"));
        evaluate(&Method::GET, &RequestFields::from_map(&request), etag, last_modified)
    };
    if let Some((value, tag)) = etag.and_then(|value| Some((value, EntityTag::parse(value)?))) {
        assert_eq!(ask("if-none-match", value), Precondition::NotModified);
        // `*` matches what exists, whatever its tag (§13.1.1).
        let strong = !tag.weak || value.trim_ascii() == b"*";
        assert_eq!(ask("if-match", value) == Precondition::Proceed, strong, "a weak tag is compared strongly");
    }
    if let Some(at) = last_modified {
        let date = format_http_date(at);
        assert_eq!(ask("if-modified-since", &date), Precondition::NotModified);
        assert_eq!(ask("if-unmodified-since", &date), Precondition::Proceed);
    }
}

fn compared(etag: Option<&[u8]>, asked: &HeaderMap) {
    let Some(own) = etag.and_then(EntityTag::parse) else { return };
    assert!(own.weak_eq(own) && own.strong_eq(own) != own.weak);
    for other in asked.values().filter_map(|value| EntityTag::parse(value.as_bytes())) {
        assert_eq!(own.weak_eq(other), other.weak_eq(own));
        assert_eq!(own.strong_eq(other), other.strong_eq(own));
        assert!(!own.strong_eq(other) || own.weak_eq(other));
    }
}
