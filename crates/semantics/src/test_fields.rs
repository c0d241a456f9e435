//! Short ways to write field maps in the tables of this crate's tests.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Returns a map with these lines, in order; names in any case.
pub(crate) fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a field name");
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a field value"));
    }
    map
}

/// Returns every line, sorted by name; lines of one name stay in order.
pub(crate) fn lines_of(map: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let mut lines: Vec<_> = map.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    lines
}
