//! Fields that a stored response goes without: those named by `no-cache="..."` and `private="..."` (RFC 9111 §5.2.2.4, §5.2.2.7).
//!
//! Such a directive permits to store and reuse the rest. It also means that an origin has put something into the response that is not for
//! everybody, and a misspelled name would show just that to everybody. So it is believed only where its spelling proves itself: every field
//! named must be one of the response, or `Set-Cookie`, which is not in every response and which servers name in all of them. Otherwise the
//! directive counts as if it named none: `private` then forbids storing, and `no-cache` reuse without validation.

use http::{HeaderMap, HeaderName, header::SET_COOKIE};

use crate::{
    cache_control::{Qualified, ResponseDirectives},
    hop_by_hop::END_TO_END,
};

/// Returns the fields to leave out of what is stored, without repetition.
#[must_use]
pub fn omitted(headers: &HeaderMap, directives: &ResponseDirectives) -> Vec<HeaderName> {
    let mut names: Vec<HeaderName> = Vec::new();
    for qualified in [&directives.no_cache, &directives.private] {
        if let Qualified::Fields(fields) = qualified
            && can_be_omitted(fields, headers)
        {
            names.extend(fields.iter().cloned());
        }
    }
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}

/// Returns whether the rest of the response can be used when these fields are left out.
///
/// It cannot if one of them is needed to understand or cache the rest: its type, coding, validator, freshness, `Vary`.
pub(crate) fn can_be_omitted(fields: &[HeaderName], headers: &HeaderMap) -> bool {
    fields.iter().all(|name| {
        let is_cookie = *name == SET_COOKIE || name.as_str() == "set-cookie2";
        let is_needed = name.as_str().starts_with("content-") || END_TO_END.binary_search(&name.as_str()).is_ok();
        is_cookie || (!is_needed && headers.contains_key(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fields::map;

    #[test]
    fn only_what_is_there_and_not_needed_is_left_out() {
        for (cache_control, expected) in [
            ("max-age=60", &[][..]),
            ("no-cache, private", &[]),
            ("no-cache=\"x-a\"", &["x-a"]),
            ("private=\"X-A, x-b\", no-cache=\"x-b\"", &["x-a", "x-b"]),
            ("private=\"set-cookie, set-cookie2\"", &["set-cookie", "set-cookie2"]),
            // The field is not there, so perhaps another was meant.
            ("private=\"x-c\"", &[]),
            ("private=\"x-a, x-c\"", &[]),
            ("private=\"x-c\", no-cache=\"x-a\"", &["x-a"]),
            // The field is needed.
            ("no-cache=\"content-type\"", &[]),
            ("no-cache=\"x-a, vary\"", &[]),
            ("private=\"etag\"", &[]),
        ] {
            let headers = map(&[("cache-control", cache_control), ("x-a", "1"), ("x-b", "2"), ("etag", "\"a\""), ("content-type", "a/b")]);
            let found = omitted(&headers, &ResponseDirectives::of(&headers));
            assert_eq!(found.iter().map(HeaderName::as_str).collect::<Vec<_>>(), expected, "{cache_control}");
        }
    }
}
