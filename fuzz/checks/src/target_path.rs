//! Request targets and the normal form of a path (RFC 9112 §3.2, RFC 3986 §6.2.2).

use std::borrow::Cow;

use semantics::target::{Target, host_without_port, normal_path, parse_target, valid_authority};

use crate::input::text;

/// The input is a request-target. Its path has one normal form that is its own normal form, has no dot segments however they were
/// written, no byte that no path contains, and means what was sent.
pub fn target_path(data: &[u8]) {
    let target = text(data);
    match parse_target(&target) {
        Err(_) => {
            if let Ok(path) = normal_path(&target) {
                panic!("{path:?} is a path but no target");
            }
        }
        Ok(Target::Origin { path, query }) => {
            assert_eq!(query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")), target);
            normal(path);
        }
        Ok(Target::Absolute { authority, path, .. }) => {
            authority_is_plain(authority);
            // Something like `http://host?query` has no path of its own.
            normal(path);
        }
        Ok(Target::Authority(authority)) => authority_is_plain(authority),
        Ok(Target::Asterisk) => assert_eq!(target, "*"),
    }
}

fn authority_is_plain(authority: &str) {
    assert!(valid_authority(authority));
    assert!(authority.len() <= 255 && !authority.contains(['@', '/', '?', '#', '\\', '%', ' ']), "{authority:?}");
    let host = host_without_port(authority);
    assert!(!host.is_empty() && authority.starts_with(host));
}

fn normal(path: &str) {
    let normal = normal_path(path).expect("the path of a target");
    assert!(normal.starts_with('/'));
    assert!(normal.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'?')));
    assert_eq!(normal_path(&normal).as_deref(), Ok(&*normal), "not its own normal form");
    assert!(matches!(normal, Cow::Borrowed(_)) == (normal == path), "an allocation for nothing");
    assert!(normal.len() <= path.len(), "longer than what was sent");
    for segment in normal.split('/') {
        let decoded = decoded(segment);
        assert!(decoded != b"." && decoded != b"..", "{normal:?} has a dot segment");
    }
    // Without dot segments nothing is taken away: both are the same octets.
    if !path.split('/').any(|segment| matches!(&*decoded(segment), b"." | b"..")) {
        assert_eq!(decoded(&normal), decoded(path), "{path:?} and {normal:?} mean different things");
    }
}

/// Percent-decoded once; what is not an escape stays.
fn decoded(path: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let [first, tail @ ..] = rest {
        let octet = tail.get(..2).filter(|_| *first == b'%').filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let octet = octet.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(octet.unwrap_or(*first));
        rest = if octet.is_some() { &tail[2..] } else { tail };
    }
    bytes
}
