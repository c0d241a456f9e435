//! Validating a stored response with its origin, and what a 304 does to it (RFC 9111 §3.2, §4.3).

use http::{
    HeaderMap, HeaderName,
    header::{
        AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
        IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE, SET_COOKIE,
    },
};

use crate::{
    date::parse_http_date,
    entity_tag::EntityTag,
    hop_by_hop::{is_hop_by_hop, nominated_by_connection},
};

/// Makes `request` ask whether `stored` is still current (RFC 9111 §4.3.1); returns whether `stored` has a validator to ask with.
///
/// The client's own conditions are removed in any case: they are about the client's copy, and are evaluated on the answer. `Range` is
/// removed with them. The whole response is validated, and a range without its `If-Range` could join parts of two versions.
pub fn add_validators(stored: &HeaderMap, request: &mut HeaderMap) -> bool {
    for name in [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE] {
        request.remove(name);
    }
    let etag = stored.get(ETAG).filter(|value| EntityTag::parse(value.as_bytes()).is_some());
    let last_modified = stored.get(LAST_MODIFIED).filter(|value| parse_http_date(value.as_bytes()).is_some());
    if let Some(value) = etag {
        request.insert(IF_NONE_MATCH, value.clone());
    }
    if let Some(value) = last_modified {
        request.insert(IF_MODIFIED_SINCE, value.clone());
    }
    etag.is_some() || last_modified.is_some()
}

/// Returns whether the 304 is about the stored representation: its validators, where it has any, are those of `stored` (RFC 9111 §4.3.4).
///
/// Tags decide before dates, since an origin may touch a file without changing it. They are compared weakly even where the 304's tag is
/// strong, against the letter of §4.3.4: nginx weakens the tag of a page it compresses but not the tag of the 304 for it, and would be
/// asked for the whole page each time. [`freshen`] keeps the weak tag then, so nothing becomes stronger than it was.
#[must_use]
pub fn same_representation(stored: &HeaderMap, not_modified: &HeaderMap) -> bool {
    if let Some(theirs) = not_modified.get(ETAG) {
        let tags = EntityTag::parse(theirs.as_bytes()).zip(stored.get(ETAG).and_then(|ours| EntityTag::parse(ours.as_bytes())));
        return tags.is_some_and(|(theirs, ours)| theirs.weak_eq(ours));
    }
    match (not_modified.get(LAST_MODIFIED), stored.get(LAST_MODIFIED)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(theirs), Some(ours)) => {
            let dates = parse_http_date(theirs.as_bytes()).zip(parse_http_date(ours.as_bytes()));
            theirs == ours || dates.is_some_and(|(theirs, ours)| theirs == ours)
        }
    }
}

/// The result of comparing a 200 to HEAD with the stored response to GET (RFC 9111 §4.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadSays {
    /// The stored response is the same: its fields are to be updated.
    Same,
    /// The stored response has changed: it is stale.
    Changed,
    /// The answer says neither. By the letter, fields that do not contradict are enough to update the stored response. But without a
    /// validator, a program that sends HEAD every minute would prolong a page forever that its origin rewrote long ago.
    Nothing,
}

/// Compares the fields of a 200 to HEAD with the stored response to GET, whose content has `length` bytes.
#[must_use]
pub fn head_says(stored: &HeaderMap, length: u64, head: &HeaderMap) -> HeadSays {
    let told_length = head.get(CONTENT_LENGTH).map(|told| told.to_str().ok().and_then(|told| told.parse::<u64>().ok()));
    if told_length.is_some_and(|told| told != Some(length)) {
        return HeadSays::Changed;
    }
    let etag = head.get(ETAG).map(|theirs| {
        let tags = EntityTag::parse(theirs.as_bytes()).zip(stored.get(ETAG).and_then(|ours| EntityTag::parse(ours.as_bytes())));
        tags.is_some_and(|(theirs, ours)| theirs.weak_eq(ours))
    });
    let date = head.get(LAST_MODIFIED).map(|theirs| stored.get(LAST_MODIFIED) == Some(theirs));
    match (etag, date) {
        (None, None) => HeadSays::Nothing,
        (Some(false), _) | (_, Some(false)) => HeadSays::Changed,
        (Some(true), _) | (_, Some(true)) => HeadSays::Same,
    }
}

/// Updates the stored fields with those of the 304: all lines of a name are replaced by all of its lines in the 304 (RFC 9111 §3.2).
///
/// `Content-Length` and the fields that concerned the connection are not changed. Departures from the letter, with their reasons:
/// - What says how to read the stored bytes (`Content-Encoding`, `-Type`, `-Range`) is replaced only where both tags are the same strong one,
///   so that the origin vouches for these very bytes. Frameworks that write their default type into every response do so into a 304 too, and
///   a page confirmed by its date or a weak tag may exist in another coding.
/// - A stored `Age` is removed if the 304 has none: it belonged to a response that is no longer the one being aged.
/// - `Set-Cookie` is taken over only if the stored response has one already, which means that the code that stored it allows that.
///   Otherwise one visitor's 304 would put a cookie into everybody's page.
/// - A weak stored tag stays weak when the 304 has the strong form of it; see [`same_representation`].
///
/// The 304 must have a `Date`, or the old one would be taken for that of the 304: a recipient adds the time of arrival where the origin
/// sent none (RFC 9110 §6.6.1). If the 304 brings a new `Vary`, the nominated request fields must be captured again.
pub fn freshen(stored: &mut HeaderMap, not_modified: &HeaderMap) {
    let nominated = nominated_by_connection(not_modified);
    let keeps_cookies = stored.contains_key(SET_COOKIE);
    let keeps_tag = stored.get(ETAG).zip(not_modified.get(ETAG)).is_some_and(|(ours, theirs)| {
        let tags = EntityTag::parse(ours.as_bytes()).zip(EntityTag::parse(theirs.as_bytes()));
        tags.is_some_and(|(ours, theirs)| ours.weak && !theirs.weak && ours.weak_eq(theirs))
    });
    let same_bytes = stored.get(ETAG).zip(not_modified.get(ETAG)).is_some_and(|(ours, theirs)| {
        let tags = EntityTag::parse(ours.as_bytes()).zip(EntityTag::parse(theirs.as_bytes()));
        tags.is_some_and(|(ours, theirs)| ours.strong_eq(theirs))
    });
    stored.remove(AGE);
    for name in not_modified.keys() {
        let excluded = *name == CONTENT_LENGTH
            || (describes_content(name) && !same_bytes)
            || is_hop_by_hop(name)
            || nominated.contains(name)
            || (*name == SET_COOKIE && !keeps_cookies)
            || (*name == ETAG && keeps_tag);
        if excluded {
            continue;
        }
        stored.remove(name);
        for value in not_modified.get_all(name) {
            stored.append(name, value.clone());
        }
    }
}

fn describes_content(name: &HeaderName) -> bool {
    *name == CONTENT_ENCODING || *name == CONTENT_TYPE || *name == CONTENT_RANGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fields::{lines_of, map};

    type Lines = &'static [(&'static str, &'static str)];
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    #[test]
    fn validators_replace_the_clients_conditions() {
        let cases: &[(Lines, Lines, Lines, bool)] = &[
            (&[], &[("accept", "a")], &[("accept", "a")], false),
            (&[("etag", "\"a\"")], &[], &[("if-none-match", "\"a\"")], true),
            (&[("etag", "W/\"a\"")], &[("if-none-match", "\"b\""), ("if-none-match", "\"c\"")], &[("if-none-match", "W/\"a\"")], true),
            (&[("etag", "unquoted")], &[], &[("if-none-match", "unquoted")], true),
            (&[("etag", "")], &[], &[], false),
            (&[("last-modified", DATE)], &[("if-none-match", "\"b\"")], &[("if-modified-since", DATE)], true),
            (&[("last-modified", "never")], &[("if-modified-since", DATE)], &[], false),
            (
                &[("etag", "\"a\""), ("last-modified", DATE)],
                &[("range", "bytes=0-1"), ("if-range", "\"b\""), ("if-match", "*"), ("if-unmodified-since", DATE), ("cookie", "c")],
                &[("if-none-match", "\"a\""), ("if-modified-since", DATE), ("cookie", "c")],
                true,
            ),
        ];
        for (stored, request, expected, validator) in cases {
            let mut request = map(request);
            assert_eq!(add_validators(&map(stored), &mut request), *validator, "{stored:?}");
            assert_eq!(lines_of(&request), lines_of(&map(expected)), "{stored:?}");
        }
    }

    #[test]
    fn a_304_speaks_of_the_stored_representation_if_its_validators_do() {
        let cases: &[(Lines, Lines, bool)] = &[
            (&[("etag", "\"a\"")], &[], true),
            (&[], &[], true),
            (&[("etag", "\"a\"")], &[("etag", "\"a\"")], true),
            (&[("etag", "\"a\"")], &[("etag", "\"b\"")], false),
            (&[("etag", "\"a\"")], &[("etag", "W/\"a\"")], true),
            (&[("etag", "W/\"a\"")], &[("etag", "\"a\"")], true),
            (&[], &[("etag", "\"a\"")], false),
            (&[("etag", "\"a\""), ("last-modified", DATE)], &[("etag", "\"a\""), ("last-modified", "Mon, 07 Nov 1994 08:49:37 GMT")], true),
            (&[("last-modified", DATE)], &[("last-modified", DATE)], true),
            (&[("last-modified", DATE)], &[("last-modified", "Sunday, 06-Nov-94 08:49:37 GMT")], true),
            (&[("last-modified", DATE)], &[("last-modified", "Sun, 06 Nov 1994 08:49:38 GMT")], false),
            (&[("etag", "\"a\"")], &[("last-modified", DATE)], false),
            (&[("last-modified", "odd")], &[("last-modified", "odd")], true),
        ];
        for (stored, not_modified, expected) in cases {
            assert_eq!(same_representation(&map(stored), &map(not_modified)), *expected, "{stored:?} {not_modified:?}");
        }
    }

    /// RFC 9111 §4.3.5.
    #[test]
    fn a_head_updates_what_it_is_about_and_gives_the_lie_to_the_rest() {
        use HeadSays::{Changed, Nothing, Same};
        let stored = map(&[("etag", "\"a\""), ("last-modified", DATE)]);
        let cases: &[(Lines, HeadSays)] = &[
            (&[("etag", "\"a\"")], Same),
            (&[("last-modified", DATE)], Same),
            (&[("etag", "\"a\""), ("last-modified", DATE), ("content-length", "5")], Same),
            (&[("etag", "\"b\"")], Changed),
            (&[("etag", "\"a\""), ("last-modified", "Mon, 07 Nov 1994 08:49:37 GMT")], Changed),
            (&[("etag", "\"a\""), ("content-length", "6")], Changed),
            (&[("etag", "\"a\""), ("content-length", "x")], Changed),
            (&[("content-length", "6")], Changed),
            (&[("content-length", "5")], Nothing),
            (&[], Nothing),
        ];
        for (head, expected) in cases {
            assert_eq!(head_says(&stored, 5, &map(head)), *expected, "{head:?}");
        }
        assert_eq!(head_says(&map(&[]), 5, &map(&[("etag", "\"a\"")])), Changed);
    }

    /// RFC 9111 §3.2 and §4.3.4.
    #[test]
    fn a_304_replaces_stored_fields() {
        let cases: &[(Lines, Lines, Lines)] = &[
            (&[("x-a", "1"), ("x-b", "1")], &[("x-a", "2"), ("x-c", "3")], &[("x-a", "2"), ("x-b", "1"), ("x-c", "3")]),
            (&[("x-a", "1"), ("x-a", "2")], &[("x-a", "3")], &[("x-a", "3")]),
            (&[("x-a", "1")], &[("x-a", "2"), ("x-b", "0"), ("x-a", "3")], &[("x-a", "2"), ("x-a", "3"), ("x-b", "0")]),
            (&[("cache-control", "max-age=1")], &[("cache-control", "max-age=2")], &[("cache-control", "max-age=2")]),
            (&[("content-language", "de")], &[("content-language", "en")], &[("content-language", "en")]),
            (&[("etag", "\"a\"")], &[("etag", "\"a\"")], &[("etag", "\"a\"")]),
            (&[("etag", "W/\"a\"")], &[("etag", "\"a\"")], &[("etag", "W/\"a\"")]),
            (
                &[("content-length", "5"), ("content-type", "text/html"), ("content-encoding", "gzip")],
                &[("content-length", "0"), ("content-type", "text/plain"), ("content-encoding", "br"), ("content-range", "bytes 0-1/2")],
                &[("content-length", "5"), ("content-type", "text/html"), ("content-encoding", "gzip")],
            ),
            (
                &[("etag", "\"a\""), ("content-length", "5"), ("content-type", "text/html"), ("content-encoding", "x")],
                &[
                    ("etag", "\"a\""),
                    ("content-length", "0"),
                    ("content-type", "text/plain"),
                    ("content-encoding", "y"),
                    ("content-range", "z"),
                ],
                &[
                    ("etag", "\"a\""),
                    ("content-length", "5"),
                    ("content-type", "text/plain"),
                    ("content-encoding", "y"),
                    ("content-range", "z"),
                ],
            ),
            (
                &[("etag", "W/\"a\""), ("content-type", "text/html")],
                &[("etag", "W/\"a\""), ("content-type", "text/plain")],
                &[("etag", "W/\"a\""), ("content-type", "text/html")],
            ),
            (
                &[("x-a", "1")],
                &[
                    ("connection", "x-a, x-b"),
                    ("x-a", "2"),
                    ("x-b", "2"),
                    ("keep-alive", "1"),
                    ("transfer-encoding", "chunked"),
                    ("te", "x"),
                ],
                &[("x-a", "1")],
            ),
            (&[("age", "50")], &[], &[]),
            (&[("age", "50")], &[("age", "7")], &[("age", "7")]),
            (&[], &[("set-cookie", "a=1")], &[]),
            (&[("set-cookie", "a=1")], &[("set-cookie", "a=2"), ("set-cookie", "b=3")], &[("set-cookie", "a=2"), ("set-cookie", "b=3")]),
        ];
        for (before, not_modified, after) in cases {
            let mut stored = map(before);
            freshen(&mut stored, &map(not_modified));
            assert_eq!(lines_of(&stored), lines_of(&map(after)), "{before:?} {not_modified:?}");
        }
    }
}
