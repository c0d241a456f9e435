//! Entity tags, how they compare, and the lists they come in (RFC 9110 §8.8.3).
//!
//! Some origins send tags without quotes, and browsers return them as they came. Such a tag is kept bytewise and counts as weak: it can
//! answer `If-None-Match`, but nobody promised that it names exact bytes, so it never joins parts of a representation.

use crate::{
    list::trim_ows,
    request::{FieldLines, Slot},
};

/// One entity tag, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether the tag may stand for more than one sequence of bytes.
    pub weak: bool,
    /// The part that is compared: the quoted string with its quotes, or the whole of a malformed tag.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads the value of `ETag`; `None` only if it is empty.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let value = trim_ows(value);
        if value.is_empty() {
            return None;
        }
        let (weak, opaque) = match value {
            [b'W', b'/', opaque @ ..] => (true, opaque),
            opaque => (false, opaque),
        };
        Some(if is_opaque_tag(opaque) { Self { weak, opaque } } else { Self { weak: true, opaque: value } })
    }

    /// Returns whether the tags are equal and neither is weak (§8.8.3.2).
    #[must_use]
    pub fn strong_eq(self, other: Self) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Returns whether the tags are equal, weak or not (§8.8.3.2). A tag without quotes also equals the same tag with quotes: some clients
    /// and some origins lose them.
    #[must_use]
    pub fn weak_eq(self, other: Self) -> bool {
        self.opaque == other.opaque || (is_opaque_tag(self.opaque) != is_opaque_tag(other.opaque) && self.bare() == other.bare())
    }

    /// Returns the tag without its quotes, if it has them.
    fn bare(self) -> &'a [u8] {
        match self.opaque {
            [b'"', inner @ .., b'"'] => inner,
            whole => whole,
        }
    }
}

/// Returns whether `value` is DQUOTE *etagc DQUOTE. Anything but a quote is accepted in between: the tag is only ever compared.
fn is_opaque_tag(value: &[u8]) -> bool {
    matches!(value, [b'"', inner @ .., b'"'] if memchr::memchr(b'"', inner).is_none())
}

/// Returns whether a field such as `If-None-Match` selects a representation with the tag `etag`: by `*`, or by a tag that `same` accepts.
///
/// Every member of every line is tried. `*` selects whatever exists, even without a tag.
pub(crate) fn field_selects<'a>(
    slot: Slot<'a>,
    name: &str,
    lines: FieldLines<'a>,
    etag: Option<EntityTag<'a>>,
    same: impl Fn(EntityTag<'a>, EntityTag<'a>) -> bool,
) -> bool {
    let selects = |line: &'a [u8]| {
        let line = trim_ows(line);
        if line == b"*" {
            return true;
        }
        // The whole line comes first: that is the common case, and a tag without quotes may contain a comma.
        etag.is_some_and(|etag| {
            EntityTag::parse(line).is_some_and(|tag| same(tag, etag)) || EntityTags { rest: line }.any(|tag| same(tag, etag))
        })
    };
    match slot {
        Slot::Absent => false,
        Slot::One(line) => selects(line),
        Slot::Many => {
            let mut selected = false;
            lines.for_each(name, |line| selected = selected || selects(line));
            selected
        }
    }
}

/// An iterator over the members of one line of tags. It is not the general list: the quotes of a tag have no escapes, and a tag may end in
/// a backslash.
struct EntityTags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for EntityTags<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<EntityTag<'a>> {
        while let [b',' | b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let opens = match self.rest {
            [] => return None,
            [b'"', ..] => Some(0),
            [b'W', b'/', b'"', ..] => Some(2),
            _ => None,
        };
        // A quote that is opened and never closed makes a malformed tag, which ends at the next comma.
        let closes = opens.and_then(|at| memchr::memchr(b'"', &self.rest[at + 1..]).map(|length| at + length + 2)).unwrap_or(0);
        let end = memchr::memchr(b',', &self.rest[closes..]).map_or(self.rest.len(), |length| closes + length);
        let (tag, rest) = self.rest.split_at(end);
        self.rest = rest;
        EntityTag::parse(tag)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(value: &str) -> EntityTag<'_> {
        EntityTag::parse(value.as_bytes()).expect("not empty")
    }

    /// RFC 9110 §8.8.3.2, table 3, and malformed tags after it.
    #[test]
    fn comparison() {
        let cases = [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
            ("\"1\"", "\"2\"", false, false),
            ("\"\"", "\"\"", true, true),
            ("1", "1", false, true),
            ("1", "\"1\"", false, true),
            ("1", "W/\"1\"", false, true),
            ("1", "\"2\"", false, false),
            ("\"1", "\"1\"", false, false),
            ("W/1", "W/1", false, true),
            ("w/\"1\"", "\"1\"", false, false),
            ("\"1", "\"1", false, true),
            ("\"1\"2\"", "\"1\"2\"", false, true),
            (" \"1\"\t", "\"1\"", true, true),
        ];
        for (a, b, strong, weak) in cases {
            assert_eq!(tag(a).strong_eq(tag(b)), strong, "{a} {b}");
            assert_eq!(tag(b).strong_eq(tag(a)), strong, "{b} {a}");
            assert_eq!(tag(a).weak_eq(tag(b)), weak, "{a} {b}");
            assert_eq!(tag(b).weak_eq(tag(a)), weak, "{b} {a}");
        }
        assert_eq!(EntityTag::parse(b"  "), None);
    }

    #[test]
    fn members_of_a_line() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" , ,", &[]),
            ("\"a\"", &["\"a\""]),
            ("\"a\", W/\"b\",\"c\"", &["\"a\"", "W/\"b\"", "\"c\""]),
            ("\"a,b\" , \"c\"", &["\"a,b\"", "\"c\""]),
            ("\"a\\\", \"b\"", &["\"a\\\"", "\"b\""]),
            ("a, \"b\"", &["a", "\"b\""]),
            ("\"a, b", &["\"a", "b"]),
            ("\"a\"x, \"b\"", &["\"a\"x", "\"b\""]),
            ("\"", &["\""]),
            ("W/\"", &["W/\""]),
        ];
        for (line, expected) in cases {
            let found: Vec<_> = EntityTags { rest: line.as_bytes() }.collect();
            let expected: Vec<_> = expected.iter().map(|value| tag(value)).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b','), Just(b'W'), Just(b'/')], 0..30)) {
            if let Some(tag) = EntityTag::parse(&value) {
                prop_assert!(tag.weak_eq(tag));
                prop_assert_eq!(tag.strong_eq(tag), !tag.weak);
                let own = field_selects(Slot::One(&value), "if-none-match", FieldLines::Raw(&[]), Some(tag), EntityTag::weak_eq);
                prop_assert!(own);
            }
            let members = EntityTags { rest: &value }.count();
            prop_assert!(members <= value.len());
        }
    }
}
