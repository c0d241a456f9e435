//! A part and the rest become the whole (RFC 9110 §15.3.7.3, RFC 9111 §3.4).
//!
//! Only what begins at the first byte is completed, and only with what follows it without a gap: then the whole is one after the other. Only
//! a strong entity tag joins them. A date could too, sometimes (§8.8.2.2), but a joint between two versions is seen by nobody, and no server
//! that knows ranges is without tags.

use std::ops::Range;

use http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG},
};

use crate::{cache_control::DeltaSeconds, entity_tag::EntityTag, list::trim_ows, validation::freshen};

/// The value of `Content-Range` in a 206: which bytes out of how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentRange {
    /// The range of bytes; never empty.
    pub range: Range<u64>,
    /// The length of the whole representation, if it is known.
    pub complete_length: Option<u64>,
}

impl ContentRange {
    /// Reads it from the fields of a response; `None` if there is none, there are several, or it is malformed or contradicts itself
    /// (§14.4).
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(CONTENT_RANGE).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        Self::parse(only.as_bytes())
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = trim_ows(value).split_at_checked(6)?;
        let (range, complete) = split(rest, b'/')?;
        let (first, last) = split(range, b'-')?;
        let (first, last) = (position(first)?, position(last)?);
        let complete_length = if complete == b"*" { None } else { Some(position(complete)?) };
        let sound = unit.eq_ignore_ascii_case(b"bytes ") && first <= last && complete_length.is_none_or(|length| last < length);
        sound.then(|| Self { range: first..last + 1, complete_length })
    }
}

fn split(value: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, value)?;
    Some((&value[..place], &value[place + 1..]))
}

/// Reads 1*DIGIT below 2^63: longer representations are never put together here.
fn position(digits: &[u8]) -> Option<u64> {
    DeltaSeconds::parse(digits)?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|position| *position < 1 << 63)
}

/// Returns the length of the whole representation, if a 206 with these fields and `length` bytes of content is its beginning. `None` if it
/// is not a beginning, or if there is nothing left to ask for. A 206 whose `Content-Range` does not fit its content cannot be relied on.
#[must_use]
pub fn whole_of_beginning(headers: &HeaderMap, length: u64) -> Option<u64> {
    let ContentRange { range, complete_length } = ContentRange::of(headers)?;
    complete_length.filter(|complete| range == (0..length) && length < *complete)
}

/// Returns the tag by which parts may be joined, to be sent in `If-Range`.
#[must_use]
pub fn strong_tag(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(ETAG).filter(|tag| EntityTag::parse(tag.as_bytes()).is_some_and(|tag| !tag.weak))
}

/// Returns the fields of the whole representation, of `complete_length` bytes, that consists of a stored beginning of `length` bytes and a
/// 206 with the rest. `None` if the 206 is not the rest, or not certainly of the same representation.
#[must_use]
pub fn combined(beginning: &HeaderMap, length: u64, complete_length: u64, rest: &HeaderMap) -> Option<HeaderMap> {
    let fits = ContentRange { range: length..complete_length, complete_length: Some(complete_length) };
    let tags = EntityTag::parse(strong_tag(beginning)?.as_bytes()).zip(EntityTag::parse(strong_tag(rest)?.as_bytes()));
    if ContentRange::of(rest)? != fits || !tags.is_some_and(|(ours, theirs)| ours.strong_eq(theirs)) {
        return None;
    }
    let mut whole = beginning.clone();
    freshen(&mut whole, rest);
    whole.remove(CONTENT_RANGE);
    whole.insert(CONTENT_LENGTH, HeaderValue::from(complete_length));
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fields::{lines_of, map};

    #[test]
    fn content_ranges() {
        for (value, expected) in [
            ("bytes 0-4/10", Some((0..5, Some(10)))),
            ("Bytes 9-9/10", Some((9..10, Some(10)))),
            ("bytes 0-4/*", Some((0..5, None))),
            ("bytes 4-3/10", None),
            ("bytes 0-10/10", None),
            ("bytes */10", None),
            ("bytes 0-4", None),
            ("bytes=0-4/10", None),
            ("bytes 0 - 4/10", None),
            ("bytes -4/10", None),
            ("bytes 0-4/-1", None),
            ("bytes 0-+4/10", None),
            ("lines 0-4/10", None),
            ("bytes 0-9223372036854775808/*", None),
            ("bytes 0-99999999999999999999999/*", None),
            ("", None),
        ] {
            let found = ContentRange::parse(value.as_bytes());
            assert_eq!(found.map(|found| (found.range, found.complete_length)), expected, "{value}");
        }
        assert_eq!(ContentRange::of(&map(&[("content-range", "bytes 0-4/10"), ("content-range", "bytes 0-4/10")])), None);
    }

    #[test]
    fn only_an_honest_beginning_can_be_completed() {
        for (value, length, expected) in [
            ("bytes 0-4/10", 5, Some(10)),
            // Six bytes announced, five there; and the other way round.
            ("bytes 0-5/10", 5, None),
            ("bytes 0-4/10", 6, None),
            ("bytes 1-5/10", 5, None),
            ("bytes 0-9/10", 10, None),
            ("bytes 0-4/*", 5, None),
        ] {
            assert_eq!(whole_of_beginning(&map(&[("content-range", value)]), length), expected, "{value} {length}");
        }
    }

    /// RFC 9110 §15.3.7.3.
    #[test]
    fn parts_are_joined_by_a_strong_tag_alone() {
        let beginning = |tag| map(&[("content-range", "bytes 0-4/10"), ("content-length", "5"), ("etag", tag), ("x-a", "1"), ("x-b", "1")]);
        for (ours, theirs, range, expected) in [
            ("\"a\"", "\"a\"", "bytes 5-9/10", true),
            ("\"a\"", "\"b\"", "bytes 5-9/10", false),
            ("W/\"a\"", "W/\"a\"", "bytes 5-9/10", false),
            ("\"a\"", "W/\"a\"", "bytes 5-9/10", false),
            ("a", "a", "bytes 5-9/10", false),
            ("\"a\"", "\"a\"", "bytes 4-9/10", false),
            ("\"a\"", "\"a\"", "bytes 5-8/10", false),
            ("\"a\"", "\"a\"", "bytes 5-9/11", false),
            ("\"a\"", "\"a\"", "bytes 5-9/*", false),
        ] {
            let rest = map(&[("content-range", range), ("content-length", "5"), ("etag", theirs), ("x-a", "2")]);
            let whole = combined(&beginning(ours), 5, 10, &rest);
            assert_eq!(whole.is_some(), expected, "{ours} {theirs} {range}");
            if let Some(whole) = whole {
                let fields = map(&[("content-length", "10"), ("etag", "\"a\""), ("x-a", "2"), ("x-b", "1")]);
                assert_eq!(lines_of(&whole), lines_of(&fields));
            }
        }
        assert_eq!(combined(&map(&[]), 5, 10, &map(&[("content-range", "bytes 5-9/10")])), None);
    }
}
