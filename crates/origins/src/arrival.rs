//! The arrival of a request: what an origin is told about the client, beside the request itself.
//!
//! It is a value, and not text in fields, because each kind of origin has words of its own for it: an HTTP server reads `X-Forwarded-For`, a
//! FastCGI server the variable `REMOTE_ADDR`, and the built-in blog writes the scheme into its feeds.

use std::net::IpAddr;

use http::Version;
use semantics::{Scheme, target::host_without_port};

/// Says how a request arrived: from whom, and for which address of the site.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Says who sent the request; `None` if Seawall sends it for no client.
    pub caller: Option<Caller<'a>>,
    /// The scheme of the target URI: what the client used, whatever a proxy in between used.
    pub scheme: Scheme,
    /// The host of the target URI, with its port if that is not the scheme's own; empty if an HTTP/1.0 client named none.
    pub authority: &'a str,
    /// The beginning that was taken off the path, as the origin serves what follows it; `None`: the path is whole.
    pub prefix: Option<&'a str>,
    /// The version of HTTP in which it came.
    pub version: Version,
}

/// Says who sent a request, and over which proxies it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The other end of the connection; `None`: a process of this machine, through a Unix socket. That has no address to be told.
    pub peer: Option<IpAddr>,
    /// The client itself: the peer, or whom a trusted peer names.
    pub client: Option<IpAddr>,
    /// The client and the trusted proxies behind it, up to the peer, which is not in it; empty if the peer itself is the client.
    pub way: &'a [IpAddr],
}

impl<'a> Arrival<'a> {
    /// Describes a request of our own, which comes from no client.
    #[must_use]
    pub const fn of_our_own(scheme: Scheme, authority: &'a str) -> Self {
        Self { caller: None, scheme, authority, prefix: None, version: Version::HTTP_11 }
    }

    /// Returns the port to which the client came: that of the authority, or the scheme's own.
    ///
    /// Where proxies stand in between, this is the port that belongs into links, and not the one on which we listen.
    #[must_use]
    pub fn port(&self) -> u16 {
        let port = self.authority[host_without_port(self.authority).len()..].strip_prefix(':');
        port.and_then(|port| port.parse().ok()).unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_one_that_the_client_used() {
        for (scheme, authority, port) in [
            (Scheme::Http, "blog.example", 80),
            (Scheme::Https, "blog.example", 443),
            (Scheme::Https, "blog.example:8443", 8443),
            (Scheme::Http, "[2001:db8::1]", 80),
            (Scheme::Http, "[2001:db8::1]:8080", 8080),
            (Scheme::Http, "", 80),
        ] {
            assert_eq!(Arrival::of_our_own(scheme, authority).port(), port, "{authority}");
        }
    }
}
