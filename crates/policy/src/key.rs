//! The key of a stored page: its one writer and its one reader.
//!
//! ```text
//! site  scheme  Accept class  length of the host | host | path | ?query | \n 1 tier: id | (\n name: value)* | ?\0parts
//! 2     1       1             2 bytes
//! ```
//!
//! What stands to the right of the path is there only where it applies. The parts are told apart by bytes that cannot be in them: no path has
//! a `?`, no target a line feed, no field value either of line feed and zero. So different parts never make equal bytes, and a reader gets
//! back exactly what was written. The bytes are on disks and in purges: whoever changes them empties every disk tier.
//!
//! What a member has paid for, the tier, is one more line in front of the trusted fields. It begins with a byte that no name of a field has (1), so
//! no trusted field is ever read as a tier, or a tier as a trusted field. A further part (what is in a cart) would be another such line, which a
//! reader of today refuses instead of misreading it.

use http::HeaderName;
use semantics::{
    request::Scheme,
    target::{canonical_authority, normal_path},
};

use crate::AcceptClass;

/// The number of bytes in front of the host.
const HEADER: usize = 6;

/// The end of the key under which the stored parts of a page are. The question mark ends the path for those who purge by it.
const PARTS: &[u8] = b"?\0parts";

/// The beginning of the line that names a member's tier.
const TIER: &[u8] = b"\x01tier: ";

/// The longest name of a tier. Ghost's have 24 characters.
const TIER_BYTES_MAX: usize = 64;

/// The parts of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key<'a> {
    /// The number of the site.
    pub site: u16,
    /// The scheme.
    pub scheme: Scheme,
    /// The class of `Accept`.
    pub class: AcceptClass,
    /// The host in its one spelling ([`canonical_authority`]), with its port if that is not the scheme's own.
    pub host: &'a str,
    /// The path in its normal form, and what is left of the query.
    pub target: &'a str,
    /// The tier of the members who are answered from what is stored under the key. `None`: it is for those who are not members.
    pub tier: Option<&'a str>,
    /// The lines that a trusted proxy sent in the fields that the settings name.
    pub trusted_fields: Vec<(HeaderName, &'a [u8])>,
    /// The kind of content that is stored under the key.
    pub holds: Holds,
}

/// The kind of content that is stored under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Whole representations.
    Whole,
    /// Parts of representations (206).
    Parts,
}

impl<'a> Key<'a> {
    /// Reads a key. `None`: these bytes are none.
    #[must_use]
    pub fn read(key: &'a [u8]) -> Option<Self> {
        let (key, holds) = match key.strip_suffix(PARTS) {
            Some(whole) => (whole, Holds::Parts),
            None => (key, Holds::Whole),
        };
        let ([site @ .., scheme, class, host_high, host_low], rest) = key.split_first_chunk::<HEADER>()?;
        let (host, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*host_high, *host_low])))?;
        let mut lines = rest.split(|&b| b == b'\n').peekable();
        let target = std::str::from_utf8(lines.next()?).ok().filter(|target| target.starts_with('/'))?;
        let tier = match lines.next_if(|line| line.starts_with(TIER)) {
            Some(line) => Some(std::str::from_utf8(&line[TIER.len()..]).ok().filter(|tier| is_tier(tier))?),
            None => None,
        };
        Some(Self {
            site: u16::from_be_bytes(*site),
            scheme: [Scheme::Http, Scheme::Https].into_iter().find(|known| *known as u8 == *scheme)?,
            class: AcceptClass::ALL.into_iter().find(|known| *known as u8 == *class)?,
            host: std::str::from_utf8(host).ok()?,
            target,
            tier,
            trusted_fields: lines.map(trusted_field).collect::<Option<_>>()?,
            holds,
        })
    }

    /// Returns the class of `Accept` in a key, without reading the rest of it.
    #[must_use]
    pub fn class_of(key: &[u8]) -> Option<AcceptClass> {
        let class = *key.get(3)?;
        AcceptClass::ALL.into_iter().find(|known| *known as u8 == class)
    }

    /// Writes the key behind what `out` has already.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_page(out, self.site, self.scheme, self.class, self.host, self.path());
        if let Some(query) = self.query() {
            write_query(out, query);
        }
        if let Some(tier) = self.tier {
            write_tier(out, tier);
        }
        for (name, value) in &self.trusted_fields {
            write_trusted_field(out, name.as_str(), value);
        }
        match self.holds {
            Holds::Whole => {}
            Holds::Parts => out.extend_from_slice(PARTS),
        }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// Returns the query, if there is one. It may be empty.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Returns the target URI.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme.as_str(), self.host, self.target)
    }
}

fn trusted_field(line: &[u8]) -> Option<(HeaderName, &[u8])> {
    let colon = line.windows(2).position(|pair| pair == b": ")?;
    Some((HeaderName::from_bytes(&line[..colon]).ok()?, &line[colon + 2..]))
}

/// Writes a key up to its path. The host has its one spelling and the path its normal form.
pub(crate) fn write_page(key: &mut Vec<u8>, site: u16, scheme: Scheme, class: AcceptClass, host: &str, path: &str) {
    debug_assert_eq!(canonical_authority(scheme, host), host, "the host has its one spelling");
    let [high, low] = site.to_be_bytes();
    // No host is longer: see `semantics::target::valid_authority`.
    let [host_high, host_low] = u16::try_from(host.len()).unwrap_or(u16::MAX).to_be_bytes();
    key.extend_from_slice(&[high, low, scheme as u8, class as u8, host_high, host_low]);
    key.extend_from_slice(host.as_bytes());
    key.extend_from_slice(path.as_bytes());
}

/// Writes what is left of the query behind the path.
pub(crate) fn write_query(key: &mut Vec<u8>, query: &str) {
    key.push(b'?');
    key.extend_from_slice(query.as_bytes());
}

/// Returns whether this can be the name of a tier: it has nothing in it that means something in a key.
pub(crate) fn is_tier(name: &str) -> bool {
    (1..=TIER_BYTES_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Writes the line of a member's tier behind the target.
pub(crate) fn write_tier(key: &mut Vec<u8>, tier: &str) {
    debug_assert!(is_tier(tier), "it was judged before");
    for part in [&b"\n"[..], TIER, tier.as_bytes()] {
        key.extend_from_slice(part);
    }
}

/// Writes a line of a field that the settings trust behind the target.
pub(crate) fn write_trusted_field(key: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [&b"\n"[..], name.as_bytes(), b": ", value] {
        key.extend_from_slice(part);
    }
}

/// Returns the key under which the stored parts of a page are. `key` is that of the whole page, so no request for the whole finds them.
#[must_use]
pub fn parts_key(key: &[u8]) -> Vec<u8> {
    [key, PARTS].concat()
}

/// Returns host and path in the form in which keys have them: they are what a purge by URL or prefix names. `None`: the path has no normal
/// form, so nothing is stored under it.
#[must_use]
pub fn purge_url(scheme: Scheme, authority: &str, path: &str) -> Option<Vec<u8>> {
    let mut url = canonical_authority(scheme, authority).into_owned().into_bytes();
    url.extend_from_slice(normal_path(path).ok()?.as_bytes());
    Some(url)
}

/// Returns the part of a key that a purge by URL or prefix names: see [`purge_url`]. It is empty for a request that has no key.
#[must_use]
pub fn purge_url_of(key: &[u8]) -> &[u8] {
    let rest = key.get(HEADER..).unwrap_or_default();
    // A tier or a trusted field stands directly behind the path where there is no query.
    let end = rest.iter().position(|&b| b == b'?' || b == b'\n').unwrap_or(rest.len());
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use proptest::prelude::*;
    use semantics::{RequestFields, RequestHead};

    use super::*;
    use crate::{Kind, Policy, Settings, Verdict};

    /// A request that asks the cache, and what of it is in the key.
    #[derive(Debug, Clone)]
    struct Sample {
        site: u16,
        scheme: Scheme,
        class: AcceptClass,
        host: &'static str,
        path: String,
        query: Option<String>,
        tier: Option<String>,
        trusted: Vec<(&'static str, String)>,
    }

    impl Sample {
        fn key(&self) -> Vec<u8> {
            let trusted_fields = vec!["x-country".to_owned(), "x-prefix".to_owned()];
            let policy = Policy::new(Settings { trusted_fields, ..Settings::preset(Kind::Generic) });
            let mut map = HeaderMap::new();
            map.append("accept", self.class.typical().expect("a class with one field").parse().expect("a value"));
            for (name, value) in &self.trusted {
                map.append(*name, value.parse().expect("a value"));
            }
            let fields = RequestFields::from_map(&map);
            let authority = &canonical_authority(self.scheme, self.host);
            let (path, query) = (self.path.as_str(), self.query.as_deref());
            let head = RequestHead { method: &Method::GET, scheme: self.scheme, authority, path, query, fields: &fields };
            let mut key = Vec::new();
            assert!(matches!(policy.verdict(self.site, &head, &mut key), Verdict::Lookup(_)));
            if let Some(tier) = &self.tier {
                write_tier(&mut key, tier);
            }
            policy.key_trusted_fields(&fields, &mut key);
            key
        }

        /// The meaning of the request: the same host, page, form and trusted word.
        fn meaning(&self) -> impl PartialEq + std::fmt::Debug {
            let host = canonical_authority(self.scheme, self.host).into_owned();
            let path = normal_path(&self.path).expect("a path").into_owned();
            // The order of lines counts within one field alone.
            let said = |name| self.trusted.iter().filter(|(of, _)| *of == name).map(|(_, value)| value.clone()).collect::<Vec<_>>();
            let trusted = ["x-country", "x-prefix"].map(said);
            (self.site, self.scheme as u8, self.class as u8, host, path, self.query.clone(), self.tier.clone(), trusted)
        }
    }

    fn scheme() -> impl Strategy<Value = Scheme> {
        prop_oneof![Just(Scheme::Http), Just(Scheme::Https)]
    }

    fn class() -> impl Strategy<Value = AcceptClass> {
        prop::sample::select(AcceptClass::ALL.into_iter().filter(|class| class.typical().is_some()).collect::<Vec<_>>())
    }

    /// Few letters, and all that have a meaning in a key: what could collide does.
    fn asked() -> impl Strategy<Value = Sample> {
        let trusted = prop::collection::vec((prop::sample::select(vec!["x-country", "x-prefix"]), "[a:]([a:? ]{0,2}[a:?])?"), 0..3);
        let host = prop::sample::select(vec!["a", "A", "ab", "a:8", "a:80", "a:443"]);
        let (query, tier) = (prop::option::of("[ab?:=&/]{0,3}"), prop::option::of("[ab]{1,2}"));
        (0..2_u16, scheme(), class(), host, "/[ab/:]{0,3}", query, tier, trusted).prop_map(
            |(site, scheme, class, host, path, query, tier, trusted)| Sample { site, scheme, class, host, path, query, tier, trusted },
        )
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(asked in asked(), in_parts: bool) {
            let page = asked.key();
            let key = if in_parts { parts_key(&page) } else { page };
            let read = Key::read(&key).expect("a key");
            let path = normal_path(&asked.path).expect("a path").into_owned();
            prop_assert_eq!((read.site, read.scheme, read.class), (asked.site, asked.scheme, asked.class));
            let host = canonical_authority(asked.scheme, asked.host);
            prop_assert_eq!(read.host, host.as_ref());
            prop_assert_eq!((read.path(), read.query()), (path.as_str(), asked.query.as_deref()));
            prop_assert_eq!(read.tier, asked.tier.as_deref());
            prop_assert_eq!(read.holds, if in_parts { Holds::Parts } else { Holds::Whole });
            let mut said = asked.trusted.clone();
            said.sort_by_key(|(name, _)| *name);
            let lines: Vec<_> = read.trusted_fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            prop_assert_eq!(lines, said.iter().map(|(name, value)| (*name, value.as_bytes())).collect::<Vec<_>>());
            let mut again = Vec::new();
            read.write(&mut again);
            prop_assert_eq!(&again, &key);
            let purged = purge_url(asked.scheme, asked.host, &asked.path);
            prop_assert_eq!(Some(purge_url_of(&key)), purged.as_deref());
        }

        #[test]
        fn requests_that_mean_something_else_never_have_one_key(one in asked(), other in asked()) {
            prop_assert_eq!(one.key() == other.key(), one.meaning() == other.meaning());
            prop_assert_ne!(one.key(), parts_key(&other.key()));
            prop_assert_eq!(parts_key(&one.key()) == parts_key(&other.key()), one.meaning() == other.meaning());
        }

        #[test]
        fn whatever_is_read_is_written_as_it_was(bytes in prop::collection::vec(prop::sample::select(b"\0\x01\x02a/?:\n tier".to_vec()), 0..24)) {
            if let Some(key) = Key::read(&bytes) {
                let mut again = Vec::new();
                key.write(&mut again);
                prop_assert_eq!(&again, &bytes);
            }
            let _ = purge_url_of(&bytes);
        }
    }

    /// These bytes are on disks: a change empties every disk tier, and needs a line in the changelog.
    #[test]
    fn the_bytes_of_a_key_stay_as_they_are() {
        let trusted_fields = vec![(HeaderName::from_static("x-country"), &b"NL"[..])];
        let (host, target) = ("blog.example:8080", "/a?b=1");
        let key = Key {
            site: 258,
            scheme: Scheme::Https,
            class: AcceptClass::Feed,
            host,
            target,
            tier: None,
            trusted_fields,
            holds: Holds::Parts,
        };
        let written = |key: &Key<'_>| {
            let mut bytes = Vec::new();
            key.write(&mut bytes);
            bytes
        };
        assert_eq!(written(&key), b"\x01\x02\x01\x03\0\x11blog.example:8080/a?b=1\nx-country: NL?\0parts");
        let of_tier = Key { tier: Some("6a5e8f1d2b3c4d5e6f708192"), ..key.clone() };
        let bytes = b"\x01\x02\x01\x03\0\x11blog.example:8080/a?b=1\n\x01tier: 6a5e8f1d2b3c4d5e6f708192\nx-country: NL?\0parts";
        assert_eq!((written(&of_tier), Key::read(bytes)), (bytes.to_vec(), Some(of_tier)));
        assert_eq!(key.url(), "https://blog.example:8080/a?b=1");
    }

    #[test]
    fn what_is_no_key_is_not_read() {
        for bytes in [
            &b"12345"[..],
            b"\0\x01\0\x09\0\x01h/",
            b"\0\x01\x02\0\0\x01h/",
            b"\0\x01\0\0\0\x09h/",
            b"\0\x01\0\0\0\x01h",
            b"\0\x01\0\0\0\x01h/\nno field",
            b"\0\x01\0\0\0\x01h/\n\x01cart: 3",
            b"\0\x01\0\0\0\x01h/\n\x01tier: ",
            b"\0\x01\0\0\0\x01h/\n\x01tier: a b",
            b"\0\x01\0\0\0\x01h/\n\x01tier: a\n\x01tier: b",
            b"\0\x01\0\0\0\x01h/\nx-country: NL\n\x01tier: a",
        ] {
            assert_eq!(Key::read(bytes), None, "{bytes:?}");
        }
    }
}
