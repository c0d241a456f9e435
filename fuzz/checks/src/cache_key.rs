//! Cache keys: what may share a stored response.

use std::borrow::Cow;

use http::{HeaderMap, Method};
use policy::{AcceptClass, Key, Kind, Policy, Settings, Verdict, purge_url, purge_url_of};
use semantics::{
    RequestFields, RequestHead, Scheme,
    target::{Target, canonical_authority, parse_target, valid_authority},
};

use crate::input::{blocks, fields, text};

/// A request as text: `http` or `https`, authority and target on the first line, then its fields.
struct Request<'a> {
    scheme: Scheme,
    authority: Cow<'a, str>,
    path: &'a str,
    query: Option<&'a str>,
    fields: HeaderMap,
}

/// Blocks: two requests. Those with one key would ask the origin for one thing, in one form, of one host; those that would ask for the
/// same have one key. The part of the key that purges compare is what a purge of that address names.
pub fn cache_key(data: &[u8]) {
    let [first, second] = blocks::<2>(data).map(text);
    let [Some(first), Some(second)] = [request(&first), request(&second)] else { return };
    let policy = Policy::new(Settings::preset(Kind::Generic));
    let [Some(key), Some(other)] = [&first, &second].map(|request| key(&policy, 1, request)) else { return };

    assert_eq!(key == other, means(&policy, &first) == means(&policy, &second), "{}", String::from_utf8_lossy(&key));
    let elsewhere = self::key(&policy, 2, &first).expect("the verdict does not depend on the site");
    assert_ne!(key, elsewhere, "two sites share a key");
    let url = purge_url(first.scheme, &first.authority, first.path).expect("the path has a key, so it has a normal form");
    assert_eq!(purge_url_of(&key), url, "a purge would miss");
    let mut written = Vec::new();
    Key::read(&key).expect("what is written can be read").write(&mut written);
    assert_eq!(written, key, "it is read as something else");
    let forwarded = policy.forwarded_target(first.path, first.query).expect("the path has a key, so it has a normal form");
    assert!(key.ends_with(forwarded.as_bytes()), "the origin is asked for something else than the key says");
    // The origin's answer to the forwarded target is stored under the key of that target.
    let again = parse_target(&forwarded).map(|target| match target {
        Target::Origin { path, query } => (path, query),
        other => panic!("{other:?} is forwarded"),
    });
    let (path, query) = again.expect("what is forwarded is a target");
    assert_eq!(
        self::key(&policy, 1, &Request { path, query, fields: first.fields.clone(), authority: first.authority.clone(), ..first }),
        Some(key)
    );
}

fn request(text: &str) -> Option<Request<'_>> {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut words = line.split(' ');
    let scheme = if words.next()? == "https" { Scheme::Https } else { Scheme::Http };
    let authority = canonical_authority(scheme, words.next().filter(|authority| valid_authority(authority))?);
    let Ok(Target::Origin { path, query }) = parse_target(words.next()?) else { return None };
    Some(Request { scheme, authority, path, query, fields: fields(rest.as_bytes()) })
}

fn key(policy: &Policy, site: u16, request: &Request<'_>) -> Option<Vec<u8>> {
    let Request { scheme, ref authority, path, query, ref fields } = *request;
    let head = RequestHead { method: &Method::GET, scheme, authority, path, query, fields: &RequestFields::from_map(fields) };
    let mut key = b"left over".to_vec();
    matches!(policy.verdict(site, &head, &mut key), Verdict::Lookup(_)).then_some(key)
}

/// What the origin would be asked for, and for whom.
fn means<'a>(policy: &Policy, request: &Request<'a>) -> (Scheme, String, Option<Cow<'a, str>>, AcceptClass) {
    let class = AcceptClass::of(&RequestFields::from_map(&request.fields));
    (request.scheme, request.authority.clone().into_owned(), policy.forwarded_target(request.path, request.query), class)
}
