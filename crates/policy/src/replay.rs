//! A key taken apart again: the request that has it.

use http::HeaderName;
use semantics::request::Scheme;

use crate::{AcceptClass, forward::trusted_fields_of, request::HEADER};

/// What a request has to be like to have a key. It may be more than one: let [`Policy::verdict`](crate::Policy::verdict) confirm it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay<'a> {
    /// The number of the site.
    pub site: u16,
    /// The scheme.
    pub scheme: Scheme,
    /// The host and port, in lower case.
    pub authority: &'a str,
    /// The path and query.
    pub target: &'a str,
    /// An `Accept` field of the key's class. `None`: no single field stands for all of the class.
    pub accept: Option<&'static str>,
    /// What a trusted proxy said in the fields that are part of the key.
    pub trusted_fields: Vec<(HeaderName, &'a [u8])>,
}

impl<'a> Replay<'a> {
    /// Takes apart a key that [`Policy::verdict`](crate::Policy::verdict) wrote.
    #[must_use]
    pub fn of(key: &'a [u8]) -> Option<Self> {
        let ([site_high, site_low, scheme, class, host_high, host_low], rest) = key.split_first_chunk::<HEADER>()?;
        let host = usize::from(u16::from_be_bytes([*host_high, *host_low]));
        let (authority, target) = rest.split_at_checked(host)?;
        let (target, trusted_fields) = match target.iter().position(|&b| b == b'\n') {
            Some(at) => (&target[..at], trusted_fields_of(&target[at + 1..])?),
            None => (target, Vec::new()),
        };
        Some(Self {
            site: u16::from_be_bytes([*site_high, *site_low]),
            scheme: [Scheme::Http, Scheme::Https].into_iter().find(|known| *known as u8 == *scheme)?,
            authority: std::str::from_utf8(authority).ok()?,
            target: std::str::from_utf8(target).ok()?,
            accept: AcceptClass::example(*class),
            trusted_fields,
        })
    }
}

impl AcceptClass {
    /// Returns a field that a client of the class with this number sends.
    const fn example(class: u8) -> Option<&'static str> {
        const HTML: u8 = AcceptClass::Html as u8;
        const ACTIVITY_PUB: u8 = AcceptClass::ActivityPub as u8;
        const MARKDOWN: u8 = AcceptClass::Markdown as u8;
        const FEED: u8 = AcceptClass::Feed as u8;
        const OTHER: u8 = AcceptClass::Other as u8;
        match class {
            HTML => Some("*/*"),
            ACTIVITY_PUB => Some("application/activity+json"),
            MARKDOWN => Some("text/markdown"),
            FEED => Some("application/rss+xml"),
            OTHER => Some("application/json"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use semantics::{RequestFields, RequestHead};

    use super::*;
    use crate::{Kind, Policy, Settings};

    #[test]
    fn a_key_tells_its_request() {
        let policy = Policy::new(Settings::preset(Kind::Generic));
        let key = |scheme, authority: &str, path: &str, query, accept: &str| {
            let fields = HeaderMap::from_iter([(http::header::ACCEPT, accept.parse().expect("a value"))]);
            let head = RequestHead { method: &Method::GET, scheme, authority, path, query, fields: &RequestFields::from_map(&fields) };
            let mut key = Vec::new();
            policy.verdict(258, &head, &mut key);
            key
        };
        for (scheme, accept) in [
            (Scheme::Http, "text/html,*/*"),
            (Scheme::Https, "application/ld+json"),
            (Scheme::Http, "text/markdown, */*"),
            (Scheme::Https, "application/atom+xml"),
            (Scheme::Http, "application/json"),
        ] {
            let before = key(scheme, "blog.example:8080", "/a", Some("b=1&utm_source=x"), accept);
            let replay = Replay::of(&before).expect("a key");
            assert_eq!((replay.site, replay.scheme, replay.authority, replay.target), (258, scheme, "blog.example:8080", "/a?b=1"));
            assert_eq!(key(scheme, replay.authority, "/a", Some("b=1"), replay.accept.expect("an example")), before);
        }
        assert_eq!(Replay::of(&key(Scheme::Http, "h", "/", None, "text/html, application/json")).expect("a key").accept, None);
        assert_eq!(Replay::of(b"short"), None);
        let policy =
            Policy::new(Settings { trusted_fields: vec!["x-country".into(), "x-prefix".into()], ..Settings::preset(Kind::Generic) });
        let mut trusted = key(Scheme::Http, "h", "/a", Some("b"), "*/*");
        let lines = [("x-prefix", "/a: b"), ("x-country", "NL"), ("x-prefix", "/c")];
        let fields: HeaderMap =
            lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect();
        policy.key_trusted_fields(&RequestFields::from_map(&fields), &mut trusted);
        let replay = Replay::of(&trusted).expect("a key");
        let said: Vec<_> = replay.trusted_fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!((replay.target, said), ("/a?b", vec![("x-country", &b"NL"[..]), ("x-prefix", b"/a: b"), ("x-prefix", b"/c")]));
    }
}
