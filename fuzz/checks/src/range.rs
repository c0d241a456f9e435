//! Ranges and the 206 (RFC 9110 §14, §15.3.7).

use http::{HeaderMap, HeaderValue};
use semantics::{
    RequestFields, Timestamp,
    range::{Part, RANGES_MAX, Ranges, Spec, content_range, multipart, parse, plan},
};

use crate::input::{blocks, text};

/// Blocks: the length of the representation; the value of `Range`; that of `If-Range`. What is sent lies inside the representation, has no
/// byte twice, is what was asked for and nothing else, and the length announced for it is the length it has.
pub fn range(data: &[u8]) {
    let [length, asked, if_range] = blocks(data);
    let length = text(length).trim().parse::<u64>().unwrap_or(100);
    let mut request = HeaderMap::new();
    for (name, value) in [("range", asked), ("if-range", if_range)] {
        if let Ok(value) = HeaderValue::from_bytes(value)
            && !value.is_empty()
        {
            request.insert(name, value);
        }
    }
    let planned = plan(&RequestFields::from_map(&request), Some(b"\"a\""), Some(Timestamp::from_secs(1_000)), None, length);
    let specs = request.get("range").and_then(|value| parse(value.as_bytes()));
    let ranges = match &planned {
        Ranges::Whole => return,
        Ranges::NotSatisfiable => Vec::new(),
        Ranges::One(range) => vec![range.clone()],
        Ranges::Many(ranges) => {
            assert!(ranges.len() >= 2);
            ranges.clone()
        }
    };
    let specs = specs.expect("a part was planned, so the field could be read");
    let condition = request.get("if-range").map(HeaderValue::as_bytes).map(<[u8]>::trim_ascii);
    assert!(condition.is_none_or(|tag| tag == b"\"a\""), "a part of something else than the client has");
    assert!(ranges.len() <= RANGES_MAX && specs.len() <= RANGES_MAX);
    for (at, range) in ranges.iter().enumerate() {
        assert!(range.start < range.end && range.end <= length, "{range:?} of {length}");
        assert!(ranges[..at].iter().all(|other| other.end < range.start || range.end < other.start), "two that touch: {ranges:?}");
        let written = content_range(range, length);
        assert_eq!(written, format!("bytes {}-{}/{length}", range.start, range.end - 1));
    }
    // Byte by byte at the edges of everything that was asked for.
    let edges = specs.iter().flat_map(|spec| match *spec {
        Spec::Between(first, last) => [first, last],
        Spec::From(first) => [first, length],
        Spec::Suffix(suffix) => [length.saturating_sub(suffix), length],
    });
    for byte in edges.flat_map(|edge| [edge.saturating_sub(1), edge, edge.saturating_add(1)]).filter(|&byte| byte < length) {
        let wanted = specs.iter().any(|spec| match *spec {
            Spec::Between(first, last) => (first..=last).contains(&byte),
            Spec::From(first) => byte >= first,
            Spec::Suffix(suffix) => byte >= length.saturating_sub(suffix),
        });
        assert_eq!(ranges.iter().any(|range| range.contains(&byte)), wanted, "byte {byte} of {length}: {specs:?} became {ranges:?}");
    }

    let (parts, total) = multipart(&ranges, Some(b"text/plain"), "boundary", length);
    let sum = parts.iter().fold(0_u64, |sum, part| match part {
        Part::Text(text) => sum.saturating_add(text.len() as u64),
        Part::Slice(range) => sum.saturating_add(range.end - range.start),
    });
    assert_eq!(total, sum);
    let slices: Vec<_> = parts.iter().filter_map(|part| if let Part::Slice(range) = part { Some(range.clone()) } else { None }).collect();
    assert_eq!(slices, ranges);
}
