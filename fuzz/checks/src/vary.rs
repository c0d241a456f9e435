//! Choosing among variants (RFC 9111 §4.1).

use http::HeaderMap;
use httparse::Header;
use semantics::{
    RequestFields,
    vary::{Vary, canonical_accept_encoding},
};

use crate::input::{blocks, field, field_lines, fields, values};

/// Blocks: the lines of `Vary`; the fields of the request it was stored for; those of another one. A stored response is selected for the
/// request it was stored for, and for another exactly when their secondary keys are equal, however the fields were parsed.
pub fn vary(data: &[u8]) {
    let [nominating, stored_for, presented] = blocks(data);
    let response = field("vary", &values(nominating));
    let (first, second) = (fields(stored_for), fields(presented));
    let raw: Vec<Header<'_>> = field_lines(presented).into_iter().map(|(name, value)| Header { name, value }).collect();
    let (first, second, raw) = (RequestFields::from_map(&first), RequestFields::from_map(&second), RequestFields::from_raw(&raw));

    let vary = Vary::of(&response, &first);
    let matches = vary.matches(&second);
    assert_eq!(vary.matches(&raw), matches, "parsed lines and collected ones differ");
    assert_eq!(Vary::of(&response, &second), Vary::of(&response, &raw));
    if vary == Vary::Star {
        assert!(!matches && !vary.matches(&first), "`*` was selected");
    } else {
        assert!(vary.matches(&first), "not selected for the request it was stored for");
        assert_eq!(key_for(&vary, &first), key(&vary));
        assert_eq!(key_for(&vary, &second) == key(&vary), matches);
        assert_eq!(key_for(&vary, &second), key(&Vary::of(&response, &second)));
        assert_eq!(Vary::of(&response, &second).matches(&first), matches, "selects one way only");
        assert!(!vary.is_unconditional() || matches);
    }

    let canonical = canonical_accept_encoding(&second);
    assert!(["br, gzip", "br", "gzip", ""].contains(&canonical));
    let mut forwarded = HeaderMap::new();
    if !canonical.is_empty() {
        forwarded.insert("accept-encoding", http::HeaderValue::from_static(canonical));
    }
    assert_eq!(canonical_accept_encoding(&RequestFields::from_map(&forwarded)), canonical, "the canonical form is not its own");
}

fn key(vary: &Vary) -> Vec<u8> {
    let mut key = Vec::new();
    vary.secondary_key(&mut key);
    key
}

fn key_for(vary: &Vary, request: &RequestFields<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    vary.secondary_key_for(request, &mut key);
    key
}
