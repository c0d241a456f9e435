//! Tags that an origin puts on its responses, in the dialects that plugins speak.

use http::{HeaderMap, HeaderName};
use semantics::{
    request::has_any,
    structured::{Value, list},
    targeted::{SEAWALL_CACHE_CONTROL, SURROGATE_CONTROL},
};

use crate::cache_fields::{X_ACCEL_EXPIRES, X_LITESPEED_VARY};

/// The most tags one response may have; further ones are ignored. RFC 9875 §2 asks for 128 groups at least.
pub const TAGS_MAX: usize = 256;

/// The longest tag; longer ones are ignored. RFC 9875 §2 asks for 32 characters at least.
const TAG_BYTES_MAX: usize = 256;

/// The fields that contain tags. In each, several are separated by spaces or commas: `Surrogate-Key` and `xkey` define spaces, `Cache-Tag`
/// commas except where nginx-helper sends it, the others commas; and no tag has either in it.
const TAG_FIELDS: [HeaderName; 5] = [
    HeaderName::from_static("surrogate-key"),
    CACHE_TAG,
    HeaderName::from_static("xkey"),
    HeaderName::from_static("x-litespeed-tag"),
    HeaderName::from_static("x-cache-tags"),
];

/// The fields that an origin writes for the cache before it. They tell visitors only how the site is built, and are removed from what
/// visitors see. They are removed for trusted proxies too: one head is stored for all.
///
/// `CDN-Cache-Control` and `Cache-Groups` stay: both are meant for every cache on the way (RFC 9213 §2.1, RFC 9875 §2), and there may be
/// one before this.
const DIALECT_FIELDS: [HeaderName; 17] = [
    HeaderName::from_static("surrogate-key"),
    CACHE_TAG,
    HeaderName::from_static("xkey"),
    HeaderName::from_static("x-litespeed-tag"),
    HeaderName::from_static("x-cache-tags"),
    HeaderName::from_static("x-litespeed-cache-control"),
    X_LITESPEED_VARY,
    X_ACCEL_EXPIRES,
    NONCE_MADE,
    TAG_WANTED,
    HeaderName::from_static("x-litespeed-purge"),
    HeaderName::from_static("x-litespeed-purge2"),
    HeaderName::from_static("lsc-cookie"),
    HeaderName::from_static("seawall-purge"),
    HeaderName::from_static("seawall-plugin"),
    SURROGATE_CONTROL,
    SEAWALL_CACHE_CONTROL,
];

/// The field in which a stored page says when it was made whose body carries a nonce: Unix time in seconds. It is Seawall's own, and removed from
/// what an origin sends.
pub const NONCE_MADE: HeaderName = HeaderName::from_static("seawall-nonce-made");

/// The field by which a response says that its validators were taken from it, and that an entity tag made from its content is to take their place. It
/// is Seawall's own, and removed from what an origin sends.
pub const TAG_WANTED: HeaderName = HeaderName::from_static("seawall-tag-wanted");

const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
const CACHE_GROUPS: HeaderName = HeaderName::from_static("cache-groups");
const CACHE_GROUP_INVALIDATION: HeaderName = HeaderName::from_static("cache-group-invalidation");

/// Removes the fields that are only for this cache.
pub fn remove_dialect(headers: &mut HeaderMap) {
    // Hardly any response has one: comparing the names that are there is cheaper than looking up each of these.
    if headers.keys().any(is_of_dialect) {
        for name in &DIALECT_FIELDS {
            headers.remove(name);
        }
    }
}

/// Returns whether a field is only for this cache. The first letter tells most others apart.
#[must_use]
pub fn is_of_dialect(name: &HeaderName) -> bool {
    match name.as_str().as_bytes().first() {
        Some(b'l' | b's' | b'x') => DIALECT_FIELDS.contains(name),
        // Of these there are many others in each response.
        Some(b'c') => *name == CACHE_TAG,
        _ => false,
    }
}

/// Returns the tags of a response of the host `authority`, each once, and its cache groups as tags.
#[must_use]
pub fn tags(authority: &str, headers: &HeaderMap) -> Vec<Box<str>> {
    let mut tags: Vec<Box<str>> = Vec::new();
    // Most responses have none.
    if !has_any(headers, &TAG_FIELDS) && !has_any(headers, &[CACHE_GROUPS]) {
        return tags;
    }
    let mut add = |tag: &str| {
        if !tag.is_empty() && tag.len() <= TAG_BYTES_MAX && tags.len() < TAGS_MAX && !tags.iter().any(|known| **known == *tag) {
            tags.push(tag.into());
        }
    };
    for name in &TAG_FIELDS {
        for line in headers.get_all(name) {
            // LiteSpeed's guide marks tags that are for everybody so, where others are for one visitor.
            line.to_str()
                .unwrap_or_default()
                .split([' ', ',', '\t'])
                .map(|tag| tag.strip_prefix("public:").unwrap_or(tag))
                .for_each(&mut add);
        }
    }
    for group in groups(authority, headers, &CACHE_GROUPS) {
        add(&group);
    }
    tags
}

/// Returns the groups that a response to an unsafe method invalidates (RFC 9875 §3), as the tags that [`tags`] gives to their members; at
/// most [`TAGS_MAX`].
#[must_use]
pub fn invalidated_groups(authority: &str, headers: &HeaderMap) -> Vec<String> {
    groups(authority, headers, &CACHE_GROUP_INVALIDATION).take(TAGS_MAX).filter(|group| group.len() <= TAG_BYTES_MAX).collect()
}

/// Returns the members of a list of strings; none, if it cannot be read or has other members (RFC 9651 §4.2).
///
/// A group belongs to one origin (RFC 9875 §1.1), so its tag names the host too. No other tag has a space in it, so no response can put
/// itself into another host's group by a field of another dialect.
fn groups<'a>(authority: &'a str, headers: &HeaderMap, field: &HeaderName) -> impl Iterator<Item = String> + 'a {
    let members = list(headers.get_all(field)).unwrap_or_default();
    let all_strings = members.iter().all(|member| matches!(member, Value::String(_)));
    let host = authority.strip_suffix(":80").or_else(|| authority.strip_suffix(":443")).unwrap_or(authority).to_ascii_lowercase();
    members.into_iter().filter(move |_| all_strings).filter_map(move |member| match member {
        Value::String(group) => Some(format!("group {host} {group}")),
        Value::Integer(_) | Value::Token(_) | Value::Boolean(_) | Value::Other => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect()
    }

    fn found(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        tags("Blog.example:80", &headers(lines)).into_iter().map(String::from).collect()
    }

    #[test]
    fn every_dialect_gives_tags() {
        for (lines, expected) in [
            (
                &[("surrogate-key", "front home post-43"), ("cache-tag", "post-43,term-2, feed")][..],
                &["front", "home", "post-43", "term-2", "feed"][..],
            ),
            (&[("xkey", "a b")], &["a", "b"]),
            (&[("x-litespeed-tag", "3f2_Po.12,3f2_H")], &["3f2_Po.12", "3f2_H"]),
            (&[("x-litespeed-tag", "public:a,b")], &["a", "b"]),
            (&[("x-cache-tags", "a, b")], &["a", "b"]),
            (&[("cache-groups", "\"scripts\", \"two words\";x=1")], &["group blog.example scripts", "group blog.example two words"]),
            // Malformed, or no strings.
            (&[("cache-groups", "\"a\", b")], &[]),
            (&[("cache-groups", "\"a")], &[]),
            (&[("cache-groups", "")], &[]),
        ] {
            assert_eq!(found(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn tags_are_bounded() {
        let many = (0..TAGS_MAX + 10).map(|n| format!("t{n}")).collect::<Vec<_>>().join(" ");
        let long = "x".repeat(TAG_BYTES_MAX + 1);
        let mut fields = headers(&[]);
        fields.insert("xkey", format!("{long} {many}").parse().expect("a value"));
        let tags = tags("a", &fields);
        assert_eq!((tags.len(), &*tags[0]), (TAGS_MAX, "t0"));
    }

    /// RFC 9875 §3. A group of one host is not a group of another.
    #[test]
    fn an_invalidation_names_the_tags_of_its_groups() {
        let invalidation = headers(&[("cache-group-invalidation", "\"scripts\", \"b\"")]);
        assert_eq!(invalidated_groups("blog.example", &invalidation), ["group blog.example scripts", "group blog.example b"]);
        assert_eq!(invalidated_groups("blog.example:8080", &invalidation)[0], "group blog.example:8080 scripts");
        assert!(invalidated_groups("blog.example", &headers(&[("cache-group-invalidation", "scripts")])).is_empty());
        assert!(invalidated_groups("blog.example", &headers(&[("cache-groups", "\"scripts\"")])).is_empty());
    }

    #[test]
    fn what_was_for_us_does_not_go_on() {
        let mut fields =
            headers(&[("xkey", "a"), ("surrogate-control", "max-age=1"), ("cdn-cache-control", "max-age=1"), ("cache-groups", "\"a\"")]);
        remove_dialect(&mut fields);
        let mut left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["cache-groups", "cdn-cache-control"]);
    }

    #[test]
    fn each_field_that_was_for_us_goes_when_it_is_alone() {
        for name in DIALECT_FIELDS {
            let mut fields = HeaderMap::from_iter([(name.clone(), http::HeaderValue::from_static("a"))]);
            remove_dialect(&mut fields);
            assert!(fields.is_empty(), "{name}");
        }
    }
}
