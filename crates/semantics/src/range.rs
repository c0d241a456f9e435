//! Parts of a representation at hand: `Range`, `If-Range`, and the 206 (RFC 9110 §13.1.5, §14, §15.3.7).
//!
//! A recipient may always ignore `Range` (§14.2), so everything odd or costly ends in [`Ranges::Whole`], which is never wrong.

use std::ops::Range;

use smallvec::SmallVec;

use crate::{
    date::parse_http_date,
    entity_tag::EntityTag,
    list::trim_ows,
    request::{RequestFields, Slot},
    timestamp::Timestamp,
};

/// The most ranges that a request may ask for; more are ignored. The worst answer then has this many parts, which together are no longer
/// than the representation.
pub const RANGES_MAX: usize = 16;

/// One range as asked for (RFC 9110 §14.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spec {
    /// `first-last`: the bytes between two positions, both inclusive.
    Between(u64, u64),
    /// `first-`: the bytes from this position to the end.
    From(u64),
    /// `-length`: that many bytes at the end.
    Suffix(u64),
}

/// The ranges of a `Range` field; a single one is kept without an allocation.
pub type Specs = SmallVec<[Spec; 2]>;

/// Reads the value of `Range`.
///
/// Returns `None`, so the field is ignored, for a unit other than `bytes`, a syntax error anywhere, a range that ends before it begins (all
/// §14.1.2 invalid), or more than [`RANGES_MAX`] ranges. Positions above 2^64 count as 2^64-1.
#[must_use]
pub fn parse(value: &[u8]) -> Option<Specs> {
    let (unit, set) = trim_ows(value).split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut specs = Specs::new();
    for member in set.split(|&b| b == b',').map(trim_ows).filter(|member| !member.is_empty()) {
        if specs.len() == RANGES_MAX {
            return None;
        }
        specs.push(spec(member)?);
    }
    (!specs.is_empty()).then_some(specs)
}

fn spec(member: &[u8]) -> Option<Spec> {
    let dash = memchr::memchr(b'-', member)?;
    match (&member[..dash], &member[dash + 1..]) {
        (b"", length) => Some(Spec::Suffix(position(length)?)),
        (first, b"") => Some(Spec::From(position(first)?)),
        (first, last) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then_some(Spec::Between(first, last))
        }
    }
}

/// Reads 1*DIGIT; a number that is too large becomes the largest.
fn position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u64, |value, digit| digit.is_ascii_digit().then(|| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

/// What to send for a request with `Range`. Every range is not empty and lies inside the representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// Send 200 with everything.
    Whole,
    /// Send 206 with [`content_range`].
    One(Range<u64>),
    /// Send 206 with [`multipart`]: at least two ranges, none overlapping or touching another, in the order they were asked for.
    Many(Vec<Range<u64>>),
    /// Send 416 with [`unsatisfied_range`].
    NotSatisfiable,
}

/// Decides what to send for a GET with these fields, out of a representation of `complete_length` bytes. Call it after
/// [`crate::conditional::evaluate`] said to proceed (§13.2.2, step 5).
///
/// `etag`, `last_modified` and `date` are those of the form that is sent. Overlapping and touching ranges become one (§15.3.7.2); more than
/// two that overlap are ignored (§14.2).
#[must_use]
pub fn plan(
    fields: &RequestFields<'_>,
    etag: Option<&[u8]>,
    last_modified: Option<Timestamp>,
    date: Option<Timestamp>,
    complete_length: u64,
) -> Ranges {
    // Range is not a list over several lines: two of them contradict each other.
    let Some(specs) = fields.range.one().and_then(parse) else { return Ranges::Whole };
    if !if_range_holds(fields.if_range, etag, last_modified, date) {
        return Ranges::Whole;
    }
    // A suffix of an empty representation is satisfiable (§14.1.2), but no Content-Range can express it.
    if complete_length == 0 && specs.iter().any(|spec| matches!(spec, Spec::Suffix(1..))) {
        return Ranges::Whole;
    }
    let mut ranges = specs.iter().filter_map(|spec| satisfy(*spec, complete_length));
    let Some(first) = ranges.next() else { return Ranges::NotSatisfiable };
    let Some(second) = ranges.next() else { return Ranges::One(first) };
    let asked: SmallVec<[Range<u64>; RANGES_MAX]> = [first, second].into_iter().chain(ranges).collect();
    if overlapping(&asked) > 2 {
        return Ranges::Whole;
    }
    let mut merged = merge(&asked);
    if merged.len() == 1 { Ranges::One(merged.swap_remove(0)) } else { Ranges::Many(merged) }
}

/// Returns whether `If-Range` is absent or names the representation at hand (RFC 9110 §13.1.5).
///
/// A tag compares strongly. A date must be exactly `Last-Modified`, and that must be a strong validator: at least a second before `Date`
/// (§8.8.2.2), or the representation could have changed again within the second.
fn if_range_holds(if_range: Slot<'_>, etag: Option<&[u8]>, last_modified: Option<Timestamp>, date: Option<Timestamp>) -> bool {
    let value = match if_range {
        Slot::Absent => return true,
        Slot::Many => return false,
        Slot::One(value) => trim_ows(value),
    };
    if let Some(asked) = parse_http_date(value) {
        let (Some(modified), Some(date)) = (last_modified, date) else { return false };
        return asked.as_secs() == modified.as_secs() && modified.as_secs() < date.as_secs();
    }
    EntityTag::parse(value).zip(etag.and_then(EntityTag::parse)).is_some_and(|(asked, own)| asked.strong_eq(own))
}

/// Returns the bytes that `spec` means, if there are any (RFC 9110 §14.1.2).
fn satisfy(spec: Spec, complete_length: u64) -> Option<Range<u64>> {
    let range = match spec {
        Spec::Between(first, last) => first..last.saturating_add(1).min(complete_length),
        Spec::From(first) => first..complete_length,
        Spec::Suffix(length) => complete_length.saturating_sub(length)..complete_length,
    };
    (range.start < range.end).then_some(range)
}

/// Returns how many ranges share a byte with another.
fn overlapping(ranges: &[Range<u64>]) -> usize {
    let shares = |(at, range): &(usize, &Range<u64>)| {
        ranges.iter().enumerate().any(|(other, b)| other != *at && range.start < b.end && b.start < range.end)
    };
    ranges.iter().enumerate().filter(shares).count()
}

/// Joins ranges that overlap or touch; a joined range stands where the first of its members stood. Quadratic in [`RANGES_MAX`].
fn merge(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let mut joined = range.clone();
        let mut place = merged.len();
        // Ranges in the list never touch each other, so one sweep finds all that the new range joins.
        let mut at = 0;
        while at < merged.len() {
            if merged[at].start <= joined.end && joined.start <= merged[at].end {
                let part = merged.remove(at);
                joined = joined.start.min(part.start)..joined.end.max(part.end);
                place = place.min(at);
            } else {
                at += 1;
            }
        }
        merged.insert(place.min(merged.len()), joined);
    }
    merged
}

/// Returns the `Content-Range` of a 206 with this part (RFC 9110 §14.4). `range` is not empty.
#[must_use]
pub fn content_range(range: &Range<u64>, complete_length: u64) -> String {
    format!("bytes {}-{}/{complete_length}", range.start, range.end.saturating_sub(1))
}

/// Returns the `Content-Range` of a 416 (RFC 9110 §15.5.17).
#[must_use]
pub fn unsatisfied_range(complete_length: u64) -> String {
    format!("bytes */{complete_length}")
}

/// A piece of a `multipart/byteranges` body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The delimiter and the part's fields.
    Text(Vec<u8>),
    /// The bytes of the representation.
    Slice(Range<u64>),
}

/// Returns the pieces of a `multipart/byteranges` body, in order, and its total length (RFC 9110 §14.6).
///
/// `content_type` is that of the representation; `boundary` must not occur in the representation, so it should be long and random, of
/// letters and digits, at most 70 (RFC 2046 §5.1.1).
#[must_use]
pub fn multipart(ranges: &[Range<u64>], content_type: Option<&[u8]>, boundary: &str, complete_length: u64) -> (Vec<Part>, u64) {
    let mut parts = Vec::with_capacity(2 * ranges.len() + 1);
    let mut total = 0_u64;
    let mut text = Vec::new();
    for range in ranges {
        text.extend_from_slice(b"--");
        text.extend_from_slice(boundary.as_bytes());
        text.extend_from_slice(b"\r\n");
        if let Some(content_type) = content_type {
            text.extend_from_slice(b"Content-Type: ");
            text.extend_from_slice(content_type);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"Content-Range: ");
        text.extend_from_slice(content_range(range, complete_length).as_bytes());
        text.extend_from_slice(b"\r\n\r\n");
        total = total.saturating_add(text.len() as u64).saturating_add(range.end.saturating_sub(range.start));
        parts.push(Part::Text(std::mem::take(&mut text)));
        parts.push(Part::Slice(range.clone()));
        // The line break before a delimiter belongs to the delimiter.
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"--");
    text.extend_from_slice(boundary.as_bytes());
    text.extend_from_slice(b"--\r\n");
    total = total.saturating_add(text.len() as u64);
    parts.push(Part::Text(text));
    (parts, total)
}

/// Returns the `Content-Type` of a 206 whose body is [`multipart`].
#[must_use]
pub fn multipart_content_type(boundary: &str) -> String {
    format!("multipart/byteranges; boundary={boundary}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_fields::map;
    use Spec::{Between, Suffix};

    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const MODIFIED_TEXT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const MODIFIED: Timestamp = Timestamp::from_secs(784_111_777);

    fn ranges(value: &str, complete_length: u64) -> Ranges {
        let request = map(&[("range", value)]);
        plan(&RequestFields::from_map(&request), None, None, None, complete_length)
    }

    #[test]
    fn syntax() {
        let cases: &[(&str, Option<&[Spec]>)] = &[
            ("bytes=0-499", Some(&[Between(0, 499)])),
            ("bytes=9500-", Some(&[Spec::From(9500)])),
            ("bytes=-500", Some(&[Suffix(500)])),
            ("bytes= 0-999, 4500-5499, -1000", Some(&[Between(0, 999), Between(4500, 5499), Suffix(1000)])),
            ("bytes=500-600,601-999", Some(&[Between(500, 600), Between(601, 999)])),
            ("bytes=,0-0 ,\t1-1,", Some(&[Between(0, 0), Between(1, 1)])),
            ("BYTES=0-1", Some(&[Between(0, 1)])),
            ("bytes=-0", Some(&[Suffix(0)])),
            ("bytes=007-0008", Some(&[Between(7, 8)])),
            ("bytes=0-99999999999999999999999", Some(&[Between(0, u64::MAX)])),
            ("bytes=2-1", None),
            ("bytes=0-1, 3-2", None),
            ("bytes=", None),
            ("bytes=,", None),
            ("bytes", None),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("bytes=1", None),
            ("bytes=1 - 2", None),
            ("bytes=1-2-3", None),
            ("bytes=--1", None),
            ("bytes=+1-2", None),
            ("bytes =0-1", None),
            ("lines=0-1", None),
            ("0-1", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(parse(value.as_bytes()).as_deref(), *expected, "{value}");
        }
        let list = |count: usize| format!("bytes={}", vec!["0-1"; count].join(","));
        assert!(parse(list(RANGES_MAX).as_bytes()).is_some());
        assert!(parse(list(RANGES_MAX + 1).as_bytes()).is_none());
    }

    /// RFC 9110 §14.1.2, its examples first: a representation of 10000 bytes.
    #[test]
    fn ranges_of_a_representation() {
        let cases = [
            ("bytes=0-499", 10000, Ranges::One(0..500)),
            ("bytes=500-999", 10000, Ranges::One(500..1000)),
            ("bytes=-500", 10000, Ranges::One(9500..10000)),
            ("bytes=9500-", 10000, Ranges::One(9500..10000)),
            ("bytes=0-0,-1", 10000, Ranges::Many(vec![0..1, 9999..10000])),
            ("bytes= 0-999, 4500-5499, -1000", 10000, Ranges::Many(vec![0..1000, 4500..5500, 9000..10000])),
            ("bytes=500-600,601-999", 10000, Ranges::One(500..1000)),
            ("bytes=500-700,601-999", 10000, Ranges::One(500..1000)),
            ("bytes=0-", 10, Ranges::One(0..10)),
            ("bytes=5-100", 10, Ranges::One(5..10)),
            ("bytes=-100", 10, Ranges::One(0..10)),
            ("bytes=9-18446744073709551615", 10, Ranges::One(9..10)),
            ("bytes=10-", 10, Ranges::NotSatisfiable),
            ("bytes=10-20, 30-", 10, Ranges::NotSatisfiable),
            ("bytes=-0", 10, Ranges::NotSatisfiable),
            ("bytes=10-20, 3-4", 10, Ranges::One(3..5)),
            ("bytes=0-0", 0, Ranges::NotSatisfiable),
            ("bytes=-0", 0, Ranges::NotSatisfiable),
            ("bytes=-1", 0, Ranges::Whole),
            // The order asked for is kept; a joined range stands where its first member stood.
            ("bytes=8-9, 0-1", 10, Ranges::Many(vec![8..10, 0..2])),
            ("bytes=8-9, 0-1, 2-3", 10, Ranges::Many(vec![8..10, 0..4])),
            ("bytes=0-1, 8-9, 4-5, 2-3", 10, Ranges::Many(vec![0..6, 8..10])),
            ("bytes=0-1, 4-5, 2-3", 10, Ranges::One(0..6)),
            ("bytes=0-5, 3-7, 9-9", 10, Ranges::Many(vec![0..8, 9..10])),
            ("bytes=0-5, 3-7, 6-9", 10, Ranges::Whole),
            ("bytes=0-,0-,0-", 10, Ranges::Whole),
            ("bytes=2-1", 10, Ranges::Whole),
            ("items=2-1", 10, Ranges::Whole),
        ];
        for (value, complete_length, expected) in cases {
            assert_eq!(ranges(value, complete_length), expected, "{value} of {complete_length}");
        }
        assert_eq!(plan(&RequestFields::from_raw(&[]), None, None, None, 10), Ranges::Whole);
        let twice = map(&[("range", "bytes=0-1"), ("range", "bytes=2-3")]);
        assert_eq!(plan(&RequestFields::from_map(&twice), None, None, None, 10), Ranges::Whole);
    }

    /// RFC 9110 §13.1.5.
    #[test]
    fn if_range() {
        let after = Some(MODIFIED + std::time::Duration::from_secs(1));
        type Case = (&'static [&'static str], Option<&'static str>, Option<Timestamp>, Option<Timestamp>, bool);
        let cases: &[Case] = &[
            (&[], None, None, None, true),
            (&["\"a\""], Some("\"a\""), None, None, true),
            (&["\"a\""], Some("\"b\""), None, None, false),
            (&["W/\"a\""], Some("W/\"a\""), None, None, false),
            (&["\"a\""], Some("W/\"a\""), None, None, false),
            (&["W/\"a\""], Some("\"a\""), None, None, false),
            (&["\"a\""], None, None, None, false),
            (&["\"a\", \"b\""], Some("\"a\""), None, None, false),
            (&["*"], Some("\"a\""), None, None, false),
            (&["a"], Some("a"), None, None, false),
            (&[""], Some("\"a\""), Some(MODIFIED), after, false),
            (&["\"a\"", "\"a\""], Some("\"a\""), None, None, false),
            (&[MODIFIED_TEXT], None, Some(MODIFIED), after, true),
            (&[MODIFIED_TEXT], Some("\"a\""), Some(MODIFIED), after, true),
            (&[MODIFIED_TEXT], None, Some(MODIFIED), Some(MODIFIED), false),
            (&[MODIFIED_TEXT], None, Some(MODIFIED), None, false),
            (&[MODIFIED_TEXT], None, None, after, false),
            (&[EARLIER], None, Some(MODIFIED), after, false),
            (&[LATER], None, Some(MODIFIED), after, false),
        ];
        for (if_range, etag, last_modified, date, holds) in cases {
            let mut request = map(&[("range", "bytes=0-1")]);
            for value in *if_range {
                request.append("if-range", value.parse().expect("a field value"));
            }
            let found = plan(&RequestFields::from_map(&request), etag.map(str::as_bytes), *last_modified, *date, 10);
            let expected = if *holds { Ranges::One(0..2) } else { Ranges::Whole };
            assert_eq!(found, expected, "{if_range:?} {etag:?} {last_modified:?} {date:?}");
        }
    }

    #[test]
    fn content_range_fields() {
        assert_eq!(content_range(&(0..500), 1234), "bytes 0-499/1234");
        assert_eq!(content_range(&(734..1234), 1234), "bytes 734-1233/1234");
        assert_eq!(unsatisfied_range(47022), "bytes */47022");
    }

    /// RFC 9110 §14.6, the example in shape.
    #[test]
    fn a_multipart_body() {
        let (parts, total) = multipart(&[500..1000, 7000..8000], Some(b"application/pdf"), "THIS_STRING_SEPARATES", 8000);
        let text = |text: &str| Part::Text(text.as_bytes().to_vec());
        let first = "--THIS_STRING_SEPARATES\r\nContent-Type: application/pdf\r\nContent-Range: bytes 500-999/8000\r\n\r\n";
        let second = "\r\n--THIS_STRING_SEPARATES\r\nContent-Type: application/pdf\r\nContent-Range: bytes 7000-7999/8000\r\n\r\n";
        let last = "\r\n--THIS_STRING_SEPARATES--\r\n";
        assert_eq!(parts, [text(first), Part::Slice(500..1000), text(second), Part::Slice(7000..8000), text(last)]);
        assert_eq!(total, (first.len() + 500 + second.len() + 1000 + last.len()) as u64);

        let (parts, _) = multipart(std::slice::from_ref(&(0..1)), None, "b", 2);
        assert_eq!(parts[0], text("--b\r\nContent-Range: bytes 0-0/2\r\n\r\n"));
        assert_eq!(multipart_content_type("b"), "multipart/byteranges; boundary=b");
    }

    fn range_value() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![8 => b'0'..=b'9', 3 => Just(b'-'), 3 => Just(b','), 1 => Just(b' '), 1 => any::<u8>()];
        let spec = (0_u64..60, prop::option::of(0_u64..60)).prop_map(|(first, length)| {
            length.map_or_else(|| format!("{first}-"), |length| format!("{first}-{}", first + length)).into_bytes()
        });
        let list = prop::collection::vec(prop_oneof![4 => spec, 1 => (0_u64..60).prop_map(|n| format!("-{n}").into_bytes())], 0..18);
        let bytes = prop_oneof![
            prop::collection::vec(byte, 0..40),
            list.prop_map(|list| list.join(&b',')),
            prop::collection::vec(any::<u8>(), 0..40)
        ];
        bytes.prop_map(|set| [b"bytes=", set.as_slice()].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn every_range_lies_inside_and_apart(value in range_value(), complete_length in prop_oneof![0_u64..100, any::<u64>()]) {
            let raw = [httparse::Header { name: "range", value: &value }];
            match plan(&RequestFields::from_raw(&raw), None, None, None, complete_length) {
                Ranges::Whole | Ranges::NotSatisfiable => {}
                Ranges::One(range) => prop_assert!(range.start < range.end && range.end <= complete_length),
                Ranges::Many(mut ranges) => {
                    prop_assert!((2..=RANGES_MAX).contains(&ranges.len()));
                    prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= complete_length));
                    let (parts, total) = multipart(&ranges, Some(b"text/plain"), "x", complete_length);
                    let length = |part: &Part| match part { Part::Text(text) => text.len() as u64, Part::Slice(range) => range.end - range.start };
                    prop_assert_eq!(u128::from(total), parts.iter().map(|part| u128::from(length(part))).sum::<u128>().min(u64::MAX.into()));
                    ranges.sort_by_key(|range| range.start);
                    prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
                }
            }
        }

        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let raw = [httparse::Header { name: "range", value: b"bytes=0-1" }, httparse::Header { name: "if-range", value: &value }];
            let _ = parse(&value);
            let _ = plan(&RequestFields::from_raw(&raw), Some(&value), Some(MODIFIED), None, 10);
        }
    }
}
