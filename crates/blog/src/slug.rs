//! Names in URLs, and lines in texts.

use std::fmt::Write as _;

/// Letters and digits of any script in lower case, everything else a single hyphen: `Zürich, früh!` is `zürich-früh`.
pub(crate) fn slugify(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if matches!(c, '\'' | '’') {
            // "don't" reads better as `dont` than as `don-t`.
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// As [`slugify`], but `C`, `C++` and `C#` stay three tags.
pub(crate) fn tag_slug(tag: &str) -> String {
    slugify(&tag.replace('+', " plus ").replace('#', " sharp "))
}

/// `path` as it stands in a URI: what RFC 3986 §3.3 allows in a path stays, the rest is percent-encoded as UTF-8.
pub(crate) fn encode_path(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// The text a URI path stands for. `None` if it is malformed, is not UTF-8, or hides a slash or a control character.
pub(crate) fn decode_path(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        let decoded = u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?;
        if decoded == b'/' || decoded.is_ascii_control() {
            return None;
        }
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok()
}

/// Whether `text` can be a host with an optional port. What passes needs no escaping in XML or HTML.
pub(crate) fn is_authority(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:[]%".contains(&b))
}

/// The line of the byte `offset`, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&b| b == b'\n').count()
}

/// The first line that sets `key` at the top level, as `key = …` or `key: …`.
pub(crate) fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let sets = |line: &str| {
        let line = line.trim_start_matches(['"', '\'']);
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(['=', ':']))
    };
    text.lines().position(sets).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        let cases = [
            ("Hello, World!", "hello-world"),
            ("  --a--b--  ", "a-b"),
            ("Don't panic", "dont-panic"),
            ("Zürich früh", "zürich-früh"),
            ("日本 語", "日本-語"),
            ("../../etc/passwd", "etc-passwd"),
            ("<script>", "script"),
            ("!!!", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(slugify(text), expected, "{text}");
        }
        assert_eq!((tag_slug("C"), tag_slug("C++"), tag_slug("C#")), ("c".into(), "c-plus-plus".into(), "c-sharp".into()));
    }

    #[test]
    fn paths_survive_the_way_into_a_uri_and_back() {
        for path in ["/", "/a b/", "/zürich/", "/100%/", "/a?b#c/", "/\"<>/"] {
            let uri = encode_path(path);
            assert!(uri.parse::<http::Uri>().is_ok(), "{uri}");
            assert!(!uri.contains(['?', '#', '"', '<', ' ']), "{uri}");
            assert_eq!(decode_path(&uri).as_deref(), Some(path));
        }
    }

    #[test]
    fn malformed_paths_stand_for_nothing() {
        for uri in ["/%", "/%4", "/%zz", "/%00", "/%2f", "/a%2Fb", "/%ff", "/%0a"] {
            assert_eq!(decode_path(uri), None, "{uri}");
        }
    }

    #[test]
    fn keys_have_lines() {
        let text = "title = \"date: x\"\n\n\"date\": 1\ndated = 2\n";
        assert_eq!(line_of_key(text, "date"), Some(3));
        assert_eq!(line_of_key(text, "title"), Some(1));
        assert_eq!(line_of_key(text, "dat"), None);
    }
}
