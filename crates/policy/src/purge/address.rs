//! Addresses and hosts as people write them. What they are in keys is found when an order is carried out.

use std::{fmt, str::FromStr};

use http::Uri;
use semantics::{Scheme, target::valid_authority};
use serde::{Deserialize, Serialize};

use super::BadWhat;

/// The address of a page, as it was written. Where no scheme was written, http and https are meant, and the default ports of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Address {
    scheme: Option<Scheme>,
    authority: String,
    target: String,
}

impl Address {
    /// Makes an address under one scheme.
    #[must_use]
    pub fn over(scheme: Scheme, authority: &str, target: &str) -> Self {
        Self { scheme: Some(scheme), authority: authority.to_owned(), target: target.to_owned() }
    }

    /// Makes an address under http and https alike.
    #[must_use]
    pub fn over_either(authority: &str, target: &str) -> Self {
        Self { scheme: None, authority: authority.to_owned(), target: target.to_owned() }
    }

    /// Returns the scheme; `None`: both.
    #[must_use]
    pub const fn scheme(&self) -> Option<Scheme> {
        self.scheme
    }

    /// Returns the host, with its port if one was written.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the path, without the query: a purge covers a page with every query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Takes apart `//host/path`, which is how an address without a scheme is written.
    fn without_scheme(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("//")?;
        let (authority, target) = rest.split_at(rest.find('/')?);
        valid_authority(authority).then(|| Self::over_either(authority, target))
    }
}

/// Reads what an operator writes: the scheme must be there.
impl FromStr for Address {
    type Err = BadWhat;

    fn from_str(text: &str) -> Result<Self, BadWhat> {
        if text.is_empty() {
            return Err(BadWhat::Empty);
        }
        let bad = || BadWhat::Address(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(bad()),
        };
        let authority = uri.authority().map(http::uri::Authority::as_str).filter(|authority| valid_authority(authority)).ok_or_else(bad)?;
        Ok(Self::over(scheme, authority, uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = self.scheme {
            write!(f, "{}:", scheme.as_str())?;
        }
        write!(f, "//{}{}", self.authority, self.target)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for Address {
    type Error = BadWhat;

    fn try_from(text: String) -> Result<Self, BadWhat> {
        Self::without_scheme(&text).map_or_else(|| text.parse(), Ok)
    }
}

/// A host, with or without a port, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HostName(String);

impl HostName {
    /// Returns the host as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = BadWhat;

    fn from_str(text: &str) -> Result<Self, BadWhat> {
        match text {
            "" => Err(BadWhat::Empty),
            text if valid_authority(text) => Ok(Self(text.to_owned())),
            text => Err(BadWhat::Host(text.to_owned())),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<HostName> for String {
    fn from(host: HostName) -> Self {
        host.0
    }
}

impl TryFrom<String> for HostName {
    type Error = BadWhat;

    fn try_from(text: String) -> Result<Self, BadWhat> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::What;

    #[test]
    fn an_operator_writes_addresses_and_hosts_as_visitors_see_them() {
        let over = |scheme, authority: &str, target: &str| Ok(Address::over(scheme, authority, target));
        let bad = |text: &str| Err(BadWhat::Address(text.to_owned()));
        for (text, expected) in [
            ("http://blog.example/hello/", over(Scheme::Http, "blog.example", "/hello/")),
            ("https://Blog.example:8443", over(Scheme::Https, "Blog.example:8443", "/")),
            ("https://[2001:db8::1]/a?b=c", over(Scheme::Https, "[2001:db8::1]", "/a?b=c")),
            ("", Err(BadWhat::Empty)),
            ("foo", bad("foo")),
            ("/hello/", bad("/hello/")),
            ("blog.example/hello/", bad("blog.example/hello/")),
            ("//blog.example/hello/", bad("//blog.example/hello/")),
            ("ftp://blog.example/", bad("ftp://blog.example/")),
            ("http:///hello/", bad("http:///hello/")),
            // RFC 9110 §4.2.4.
            ("http://me@blog.example/", bad("http://me@blog.example/")),
        ] {
            assert_eq!(text.parse::<Address>(), expected, "{text}");
        }
        for text in ["blog.example", "Blog.example.", "blog.example:8080", "[2001:DB8::1]", "127.0.0.1:80"] {
            assert_eq!(text.parse::<HostName>().map(|host| host.to_string()), Ok(text.to_owned()));
        }
        for text in ["https://blog.example", "blog.example/hello", "me@blog.example", "a b", "*.example", ":80", "[::1"] {
            assert_eq!(text.parse::<HostName>(), Err(BadWhat::Host(text.to_owned())));
        }
        assert_eq!((What::host(""), What::url(""), What::tag("")), (Err(BadWhat::Empty), Err(BadWhat::Empty), Err(BadWhat::Empty)));
    }
}
