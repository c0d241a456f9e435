//! Conditional requests answered from a representation at hand (RFC 9110 §13, RFC 9111 §4.3.2). `If-Range` is in [`crate::range`].

use http::{
    HeaderMap, HeaderName, Method,
    header::{CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, LAST_MODIFIED, VARY},
};

use crate::{
    date::parse_http_date,
    entity_tag::{EntityTag, field_selects},
    request::{RequestFields, Slot},
    timestamp::Timestamp,
};

/// The result of evaluating the conditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Answer as if there were no conditions.
    Proceed,
    /// Answer 304, with [`not_modified_fields`].
    NotModified,
    /// Answer 412.
    Failed,
}

/// Evaluates the conditions in the order of RFC 9110 §13.2.2. Never allocates.
///
/// Call it only where the answer without conditions would be successful (§13.2.1): `*` then always finds a representation. `etag` is the
/// tag of the form that would be sent, coding included. Without `last_modified` the date conditions are ignored; RFC 9111 §4.3.2 lets a
/// cache pass the stored `Date` instead. A date that is malformed or on several lines is ignored (§13.1.3, §13.1.4).
#[must_use]
pub fn evaluate(method: &Method, fields: &RequestFields<'_>, etag: Option<&[u8]>, last_modified: Option<Timestamp>) -> Precondition {
    let etag = etag.and_then(EntityTag::parse);
    let is_read = *method == Method::GET || *method == Method::HEAD;

    if fields.if_match.is_present() {
        if !field_selects(fields.if_match, "if-match", fields.lines, etag, EntityTag::strong_eq) {
            return Precondition::Failed;
        }
    } else if modified_after(fields.if_unmodified_since, last_modified) == Some(true) {
        return Precondition::Failed;
    }

    if fields.if_none_match.is_present() {
        // If-None-Match wins over If-Modified-Since even where it is empty or malformed: the client uses tags.
        match field_selects(fields.if_none_match, "if-none-match", fields.lines, etag, EntityTag::weak_eq) {
            true if is_read => Precondition::NotModified,
            true => Precondition::Failed,
            false => Precondition::Proceed,
        }
    } else if is_read && modified_after(fields.if_modified_since, last_modified) == Some(false) {
        Precondition::NotModified
    } else {
        Precondition::Proceed
    }
}

/// Returns whether the representation changed after the date in `slot`; `None` if either side has no usable date. Field dates are whole
/// seconds.
fn modified_after(slot: Slot<'_>, last_modified: Option<Timestamp>) -> Option<bool> {
    let date = parse_http_date(slot.one()?)?;
    Some(last_modified?.as_secs() > date.as_secs())
}

/// Returns the fields of a 304 made from the stored fields of the 200 (RFC 9110 §15.4.5).
///
/// `Last-Modified` is included only without `ETag`, where it is the only validator left. Everything else would repeat what the client has;
/// `Set-Cookie` would do harm. The caller adds `Age` and the status fields.
#[must_use]
pub fn not_modified_fields(stored: &HeaderMap) -> HeaderMap {
    const CARRIED: [HeaderName; 6] = [CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, VARY];
    let mut fields = HeaderMap::with_capacity(CARRIED.len());
    let last_modified = (!stored.contains_key(ETAG)).then_some(LAST_MODIFIED);
    for name in CARRIED.into_iter().chain(last_modified) {
        for value in stored.get_all(&name) {
            fields.append(&name, value.clone());
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use Precondition::{Failed, NotModified, Proceed};

    use crate::test_fields::{lines_of, map};

    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const MODIFIED: Timestamp = Timestamp::from_secs(784_111_777);

    #[test]
    fn conditions_are_evaluated_in_order() {
        const INM: &str = "if-none-match";
        const IM: &str = "if-match";
        const IMS: &str = "if-modified-since";
        const IUS: &str = "if-unmodified-since";
        let strong = Some("\"a\"");
        let weak = Some("W/\"a\"");
        type Case = (Option<&'static str>, Option<Timestamp>, &'static [(&'static str, &'static str)], Precondition);
        let cases: &[Case] = &[
            (strong, Some(MODIFIED), &[], Proceed),
            // §13.1.2
            (strong, None, &[(INM, "\"a\"")], NotModified),
            (strong, None, &[(INM, "W/\"a\"")], NotModified),
            (weak, None, &[(INM, "\"a\"")], NotModified),
            (strong, None, &[(INM, "\"b\"")], Proceed),
            (strong, None, &[(INM, "\"b\", \"c\", W/\"a\"")], NotModified),
            (strong, None, &[(INM, "\"b\""), (INM, "\"c\",\"a\"")], NotModified),
            (strong, None, &[(INM, "\"b\""), (INM, "\"c\"")], Proceed),
            (strong, None, &[(INM, "*")], NotModified),
            (None, None, &[(INM, "*")], NotModified),
            (None, None, &[(INM, "\"a\"")], Proceed),
            (strong, None, &[(INM, "")], Proceed),
            (strong, None, &[(INM, "a")], NotModified),
            (Some("a"), None, &[(INM, "a")], NotModified),
            (Some("a,b"), None, &[(INM, "a,b")], NotModified),
            (Some("a"), None, &[(INM, "\"b\", a")], NotModified),
            (Some(""), None, &[(INM, "\"a\"")], Proceed),
            // §13.1.3, and the three formats of §5.6.7
            (None, Some(MODIFIED), &[(IMS, SAME)], NotModified),
            (None, Some(MODIFIED), &[(IMS, LATER)], NotModified),
            (None, Some(MODIFIED), &[(IMS, EARLIER)], Proceed),
            (None, Some(MODIFIED), &[(IMS, "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
            (None, Some(MODIFIED), &[(IMS, "Sun Nov  6 08:49:37 1994")], NotModified),
            (None, Some(MODIFIED), &[(IMS, "yesterday")], Proceed),
            (None, Some(MODIFIED), &[(IMS, SAME), (IMS, SAME)], Proceed),
            (None, None, &[(IMS, SAME)], Proceed),
            // If-None-Match wins over If-Modified-Since, both ways
            (strong, Some(MODIFIED), &[(INM, "\"b\""), (IMS, SAME)], Proceed),
            (strong, Some(MODIFIED), &[(INM, "\"a\""), (IMS, EARLIER)], NotModified),
            (None, Some(MODIFIED), &[(INM, "\"a\""), (IMS, SAME)], Proceed),
            // §13.1.1
            (strong, None, &[(IM, "\"a\"")], Proceed),
            (strong, None, &[(IM, "\"b\", \"a\"")], Proceed),
            (strong, None, &[(IM, "\"b\""), (IM, "\"a\"")], Proceed),
            (strong, None, &[(IM, "\"b\"")], Failed),
            (strong, None, &[(IM, "W/\"a\"")], Failed),
            (weak, None, &[(IM, "W/\"a\"")], Failed),
            (None, None, &[(IM, "\"a\"")], Failed),
            (None, None, &[(IM, "*")], Proceed),
            // §13.1.4; ignored beside If-Match
            (None, Some(MODIFIED), &[(IUS, SAME)], Proceed),
            (None, Some(MODIFIED), &[(IUS, LATER)], Proceed),
            (None, Some(MODIFIED), &[(IUS, EARLIER)], Failed),
            (None, Some(MODIFIED), &[(IUS, "soon")], Proceed),
            (None, None, &[(IUS, EARLIER)], Proceed),
            (strong, Some(MODIFIED), &[(IM, "\"a\""), (IUS, EARLIER)], Proceed),
            // The first two steps come before the others
            (strong, Some(MODIFIED), &[(IM, "\"b\""), (INM, "\"a\"")], Failed),
            (strong, Some(MODIFIED), &[(IM, "\"a\""), (INM, "\"a\"")], NotModified),
            (strong, Some(MODIFIED), &[(IUS, EARLIER), (INM, "\"a\"")], Failed),
            (strong, Some(MODIFIED), &[(IUS, SAME), (IMS, SAME)], NotModified),
        ];
        for (etag, last_modified, lines, expected) in cases {
            let request = map(lines);
            let fields = RequestFields::from_map(&request);
            for method in [Method::GET, Method::HEAD] {
                let found = evaluate(&method, &fields, etag.map(str::as_bytes), *last_modified);
                assert_eq!(found, *expected, "{method} {etag:?} {lines:?}");
            }
        }
    }

    #[test]
    fn other_methods_fail_where_a_read_is_not_modified() {
        let cases = [("if-none-match", "\"a\"", Failed), ("if-none-match", "\"b\"", Proceed), ("if-modified-since", SAME, Proceed)];
        for (name, value, expected) in cases {
            let request = map(&[(name, value)]);
            let fields = RequestFields::from_map(&request);
            assert_eq!(evaluate(&Method::PUT, &fields, Some(b"\"a\""), Some(MODIFIED)), expected, "{name}: {value}");
        }
    }

    #[test]
    fn milliseconds_do_not_make_a_representation_newer() {
        let request = map(&[("if-modified-since", SAME)]);
        let modified = Timestamp::from_millis(MODIFIED.as_millis() + 999);
        assert_eq!(evaluate(&Method::GET, &RequestFields::from_map(&request), None, Some(modified)), NotModified);
    }

    #[test]
    fn a_304_carries_what_rfc_9110_asks_for() {
        let stored = map(&[
            ("cache-control", "max-age=1"),
            ("cache-control", "public"),
            ("content-location", "/x"),
            ("date", SAME),
            ("etag", "\"a\""),
            ("expires", LATER),
            ("vary", "accept"),
            ("last-modified", EARLIER),
            ("set-cookie", "a=1"),
            ("content-type", "text/html"),
            ("content-length", "5"),
            ("x-other", "1"),
        ]);
        let expected = map(&[
            ("cache-control", "max-age=1"),
            ("cache-control", "public"),
            ("content-location", "/x"),
            ("date", SAME),
            ("etag", "\"a\""),
            ("expires", LATER),
            ("vary", "accept"),
        ]);
        assert_eq!(lines_of(&not_modified_fields(&stored)), lines_of(&expected));
        let untagged = map(&[("last-modified", EARLIER), ("set-cookie", "a=1")]);
        assert_eq!(lines_of(&not_modified_fields(&untagged)), lines_of(&map(&[("last-modified", EARLIER)])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(lines in prop::collection::vec((0_u8..4, prop::collection::vec(any::<u8>(), 0..30)), 0..5), etag in prop::collection::vec(any::<u8>(), 0..8)) {
            let names = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
            let lines: Vec<_> = lines.iter().map(|(name, value)| httparse::Header { name: names[usize::from(*name)], value }).collect();
            let _ = evaluate(&Method::GET, &RequestFields::from_raw(&lines), Some(&etag), Some(MODIFIED));
            let own = [httparse::Header { name: "if-none-match", value: &etag }];
            let expected = if crate::list::trim_ows(&etag).is_empty() { Proceed } else { NotModified };
            prop_assert_eq!(evaluate(&Method::GET, &RequestFields::from_raw(&own), Some(&etag), None), expected);
        }
    }
}
