//! References in fields, and what an unsafe request invalidates (RFC 3986 §5.2, RFC 9111 §4.4).

use http::StatusCode;
use semantics::{
    invalidation::{invalidated, invalidates},
    reference::resolve,
    target::{Target, normal_path, parse_target, valid_authority},
};

use crate::input::{blocks, fields, text};

/// Blocks: the authority of a target; its path and query; a reference; the fields of a response. What a reference resolves to is a path on
/// the target's own host, or nothing; so no response invalidates anything elsewhere.
pub fn reference(data: &[u8]) {
    let [authority, target, reference, response] = blocks(data);
    let (authority, target) = (text(authority), text(target));
    if !valid_authority(&authority) {
        return;
    }
    let Ok(Target::Origin { path, query }) = parse_target(&target) else { return };
    // Targets reach this point in normal form.
    let Ok(path) = normal_path(path) else { return };
    let target = query.map_or_else(|| path.clone().into_owned(), |query| format!("{path}?{query}"));

    if let Some(resolved) = resolve(&authority, &target, reference) {
        local(&resolved);
        let elsewhere = names_a_host(reference).filter(|host| !host.eq_ignore_ascii_case(host_of(&authority)));
        assert_eq!(elsewhere, None, "{:?} became {resolved:?} on {authority}", text(reference));
        // A path with two slashes first would be another host.
        if !resolved.starts_with("//") {
            assert_eq!(resolve(&authority, &target, resolved.as_bytes()).as_deref(), Some(&*resolved));
        }
        let whole = format!("https://{authority}{resolved}");
        if authority == host_of(&authority) {
            assert_eq!(resolve(&authority, "/", whole.as_bytes()).as_deref(), Some(&*resolved));
        }
    }

    let response = fields(response);
    let found = invalidated(&authority, &target, &response);
    assert_eq!(found.first(), Some(&target));
    assert!(found.len() <= 3);
    for (at, uri) in found.iter().enumerate() {
        local(uri);
        assert!(!found[..at].contains(uri), "{uri:?} twice");
    }
    assert!(!invalidates(&http::Method::GET, StatusCode::OK));
}

fn local(uri: &str) {
    assert!(uri.starts_with('/') && !uri.contains('#'), "{uri:?}");
    assert!(uri.bytes().all(|byte| byte.is_ascii_graphic()), "{uri:?}");
    let path = uri.split('?').next().unwrap_or_default();
    assert!(path.split('/').all(|segment| segment != "." && segment != ".."), "{uri:?} has a dot segment");
}

/// The host that a reference names, as whoever follows it would read it.
fn names_a_host(reference: &[u8]) -> Option<String> {
    let reference = text(reference.trim_ascii()).into_owned();
    let colon =
        reference.find(':').filter(|&at| reference[..at].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)));
    let rest = colon.map_or(&*reference, |at| &reference[at + 1..]).strip_prefix("//")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(host_of(authority.rsplit('@').next().unwrap_or_default()).to_owned())
}

fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}
