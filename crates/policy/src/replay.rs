//! A key taken apart again: the request that has it.

use semantics::request::Scheme;

use crate::{AcceptClass, request::HEADER};

/// The parts of a request that would have a given key. They may fit more than one key: let [`Policy::verdict`](crate::Policy::verdict)
/// confirm it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

impl<'a> Replay<'a> {
    /// Takes apart a key that [`Policy::verdict`](crate::Policy::verdict) wrote.
    #[must_use]
    pub fn of(key: &'a [u8]) -> Option<Self> {
        let ([site_high, site_low, scheme, class, host_high, host_low], rest) = key.split_first_chunk::<HEADER>()?;
        let host = usize::from(u16::from_be_bytes([*host_high, *host_low]));
        let (authority, target) = rest.split_at_checked(host)?;
        Some(Self {
            site: u16::from_be_bytes([*site_high, *site_low]),
            scheme: [Scheme::Http, Scheme::Https].into_iter().find(|known| *known as u8 == *scheme)?,
            authority: std::str::from_utf8(authority).ok()?,
            target: std::str::from_utf8(target).ok()?,
            accept: AcceptClass::example(*class),
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
            let before = key(scheme, "Blog.Example:8080", "/a", Some("b=1&utm_source=x"), accept);
            let replay = Replay::of(&before).expect("a key");
            assert_eq!((replay.site, replay.scheme, replay.authority, replay.target), (258, scheme, "blog.example:8080", "/a?b=1"));
            assert_eq!(key(scheme, replay.authority, "/a", Some("b=1"), replay.accept.expect("an example")), before);
        }
        assert_eq!(Replay::of(&key(Scheme::Http, "h", "/", None, "text/html, application/json")).expect("a key").accept, None);
        assert_eq!(Replay::of(b"short"), None);
    }
}
