//! URI references in fields, resolved against the target URI (RFC 3986 §5.2, RFC 9110 §4.1): what `Location: ../archive?page=2` means.
//!
//! Only what lies on the target's own host and port is resolved: other places are nobody's business here. Schemes are not compared, because
//! one authority is one site whether it is reached over TLS or not, and origins behind a proxy that ends TLS write `http` into their links.

use std::{borrow::Cow, fmt::Write};

use crate::{request::Scheme, target::canonical_authority};

/// Returns the path and query that `reference` means, if it is on the authority of the target; `None` if it is elsewhere or malformed.
///
/// The target is given by its authority (`host` or `host:port`) and its path and query, as the client sent them. The result begins with
/// `/`, has no dot segments and no fragment; bytes beyond ASCII are percent-encoded, as clients send them.
#[must_use]
pub fn resolve(authority: &str, path_and_query: &str, reference: &[u8]) -> Option<String> {
    let reference = ascii(reference.trim_ascii())?;
    let reference = reference.split('#').next().unwrap_or_default();
    let (scheme, rest) = split_scheme(reference);
    if let Some(from_authority) = rest.strip_prefix("//") {
        let schemes = match scheme {
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => &[Scheme::Http][..],
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => &[Scheme::Https],
            Some(_) => return None,
            None => &BOTH,
        };
        let (other, rest) = from_authority.split_at(from_authority.find(['/', '?']).unwrap_or(from_authority.len()));
        let same = !other.is_empty() && same_authority(authority, other, schemes);
        return same.then(|| absolute(rest));
    }
    if scheme.is_some() {
        return None;
    }
    let (base_path, _) = split_query(path_and_query);
    Some(match rest.as_bytes().first() {
        None => path_and_query.to_owned(),
        Some(b'/') => absolute(rest),
        Some(b'?') => format!("{base_path}{rest}"),
        Some(_) => {
            // The reference replaces the text after the last slash of the target's path (§5.2.3).
            let folder = base_path.rfind('/').map_or("/", |slash| &base_path[..=slash]);
            absolute(&format!("{folder}{rest}"))
        }
    })
}

/// Percent-encodes bytes beyond ASCII; returns `None` if there is a control or a space, which no reference contains.
fn ascii(reference: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(reference.len());
    for &byte in reference {
        match byte {
            0..=b' ' | 0x7f => return None,
            0x80.. => write!(text, "%{byte:02X}").ok()?,
            _ => text.push(char::from(byte)),
        }
    }
    Some(text)
}

/// Splits off the scheme, which ends at a colon before any slash or question mark.
fn split_scheme(reference: &str) -> (Option<&str>, &str) {
    let end = reference.find([':', '/', '?']);
    match end.map(|end| (&reference[..end], &reference[end..])) {
        Some((scheme, rest)) if rest.starts_with(':') => (Some(scheme), &rest[1..]),
        _ => (None, reference),
    }
}

fn split_query(path_and_query: &str) -> (&str, &str) {
    path_and_query.split_at(path_and_query.find('?').unwrap_or(path_and_query.len()))
}

const BOTH: [Scheme; 2] = [Scheme::Http, Scheme::Https];

/// Compares authorities by their one spelling; of the target the scheme is not known, so both default ports count as none.
fn same_authority(target: &str, other: &str, schemes: &[Scheme]) -> bool {
    let other = other.rsplit_once('@').map_or(other, |(_, host)| host);
    spelt(target, &BOTH) == spelt(other, schemes)
}

/// Returns the one spelling of an authority, without the default port of any of these schemes.
fn spelt<'a>(authority: &'a str, schemes: &[Scheme]) -> Cow<'a, str> {
    schemes.iter().fold(Cow::Borrowed(authority), |authority, scheme| match authority {
        Cow::Borrowed(authority) => canonical_authority(*scheme, authority),
        Cow::Owned(authority) => Cow::Owned(canonical_authority(*scheme, &authority).into_owned()),
    })
}

/// Returns an absolute path and query without its dot segments (§5.2.4); an empty path is `/`.
fn absolute(path_and_query: &str) -> String {
    let (path, query) = split_query(path_and_query);
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if last {
            // A dot segment at the end leaves its slash.
            kept.push("");
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on_example(reference: &str) -> Option<String> {
        resolve("a.example", "/b/c/d;p?q", reference.as_bytes())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 3986 §5.4.1 and §5.4.2, with the base http://a/b/c/d;p?q; fragments are dropped.
        for (reference, expected) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("g;x", "/b/c/g;x"),
            ("g;x?y#s", "/b/c/g;x?y"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("../../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            (".g", "/b/c/.g"),
            ("g..", "/b/c/g.."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/./y", "/b/c/g;x=1/y"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/./x", "/b/c/g?y/./x"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("g#s/../x", "/b/c/g"),
        ] {
            assert_eq!(on_example(reference).as_deref(), Some(expected), "{reference}");
        }
    }

    #[test]
    fn absolute_references_to_the_same_authority() {
        for (authority, reference, expected) in [
            ("a.example", "http://a.example/x?y", Some("/x?y")),
            ("a.example", "HTTPS://A.Example/x", Some("/x")),
            ("a.example", "https://a.example", Some("/")),
            ("a.example", "https://a.example?y", Some("/?y")),
            ("a.example", "https://a.example#s", Some("/")),
            ("a.example", "https://a.example/x/../y", Some("/y")),
            ("a.example", "//a.example/x", Some("/x")),
            ("a.example", "http://a.example:80/x", Some("/x")),
            ("a.example", "https://a.example:443/x", Some("/x")),
            ("a.example", "https://a.example:/x", Some("/x")),
            ("a.example:443", "https://a.example/x", Some("/x")),
            ("a.example", "https://user@a.example/x", Some("/x")),
            ("a.example:8080", "http://a.example:8080/x", Some("/x")),
            ("[::1]:8080", "http://[::1]:8080/x", Some("/x")),
            ("[::1]", "http://[::1]:80/x", Some("/x")),
            ("a.example", "http://a.example.:0080/x", Some("/x")),
            ("a.example:8080", "//A.EXAMPLE.:08080/x", Some("/x")),
            ("[2001:db8::1]", "//[2001:DB8:0::1]/x", Some("/x")),
            ("a.example", "http://a.example:8080/x", None),
            ("a.example:8080", "http://a.example/x", None),
            ("a.example", "http://a.example:443/x", None),
            ("a.example", "http://b.example/x", None),
            ("a.example", "http://a.example.evil/x", None),
            ("a.example", "http://a.example@b.example/x", None),
            ("a.example", "//b.example/x", None),
            ("a.example", "///x", None),
            ("", "///x", None),
            ("[::1]", "http://[::2]/x", None),
        ] {
            assert_eq!(resolve(authority, "/", reference.as_bytes()).as_deref(), expected, "{authority} {reference}");
        }
    }

    #[test]
    fn what_is_no_place_on_this_site() {
        for reference in ["mailto:a@a.example", "ftp://a.example/x", "http:g", "javascript:x", "/a b", "/a\tb", "/\u{7f}"] {
            assert_eq!(on_example(reference), None, "{reference}");
        }
        assert_eq!(on_example("/caf\u{e9}").as_deref(), Some("/caf%C3%A9"));
        assert_eq!(on_example("./a:b").as_deref(), Some("/b/c/a:b"));
        assert_eq!(on_example("//").as_deref(), None);
        assert_eq!(resolve("a.example", "/x", b" //a.example//y//z ").as_deref(), Some("//y//z"), "empty segments stay");
    }

    proptest! {
        #[test]
        fn a_result_is_an_absolute_path_without_dot_segments(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            text in "[a/.?#:%]{0,20}",
        ) {
            for reference in [&bytes[..], text.as_bytes()] {
                if let Some(found) = resolve("a", "/b/c?d", reference) {
                    prop_assert!(found.starts_with('/') && found.is_ascii() && !found.contains('#'));
                    let path = split_query(&found).0;
                    prop_assert!(path.split('/').all(|segment| segment != "." && segment != ".."), "{}", found);
                }
            }
        }
    }
}
