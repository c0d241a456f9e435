//! Tags that an origin puts on its responses, in the dialects that plugins speak.

use http::HeaderMap;

/// The most tags one response may have; further ones are left out.
pub const TAGS_MAX: usize = 256;

/// Longer tags are left out.
const TAG_BYTES_MAX: usize = 256;

/// The tags of a response: `Surrogate-Key` and `xkey` are separated by spaces, `Cache-Tag` by commas or, from some plugins, spaces.
#[must_use]
pub fn tags(headers: &HeaderMap) -> Vec<Box<str>> {
    let mut tags: Vec<Box<str>> = Vec::new();
    for name in ["surrogate-key", "cache-tag", "xkey"] {
        for line in headers.get_all(name) {
            for tag in line.to_str().unwrap_or_default().split([' ', ',', '\t']) {
                if !tag.is_empty() && tag.len() <= TAG_BYTES_MAX && tags.len() < TAGS_MAX && !tags.iter().any(|known| **known == *tag) {
                    tags.push(tag.into());
                }
            }
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_gives_tags() {
        let mut headers = HeaderMap::new();
        headers.append("surrogate-key", "front home post-43".parse().expect("a value"));
        headers.append("cache-tag", "post-43,term-2, feed".parse().expect("a value"));
        assert_eq!(tags(&headers).iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["front", "home", "post-43", "term-2", "feed"]);
    }
}
