//! The address at which a server listens.

use std::{fmt, path::PathBuf, str::FromStr};

/// The address of a server: `http://host[:port]`, `https://host[:port]` or `unix:/path/to/socket`. [`fmt::Display`] gives back what parses to
/// the same address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP, with or without TLS.
    Tcp {
        /// Whether to speak TLS and verify the certificate against `host`.
        tls: bool,
        /// A name or an address; IPv6 without brackets. Names are resolved at every connect: they may change.
        host: String,
        /// The port, filled in from the scheme when the text has none.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// The reason why a text is not an [`Address`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Another scheme, or none.
    #[error("an origin's address begins with http://, https:// or unix:/, not {0:?}")]
    Scheme(String),
    /// A path, query or fragment after the host.
    #[error("an origin's address ends with the host and port; the request brings the path: remove {0:?}")]
    Path(String),
    /// `user:password@`.
    #[error("an origin's address has no user and password")]
    UserInfo,
    /// No host, or characters that no host has.
    #[error("{0:?} is not a host name or an IP address")]
    Host(String),
    /// The port is not a number from 1 to 65535.
    #[error("{0:?} is not a port")]
    Port(String),
    /// The path of the Unix socket is not absolute.
    #[error("the path of a Unix socket is absolute: unix:/run/site.sock")]
    Socket,
}

impl Address {
    /// Returns host and port as they stand in a `Host` field (RFC 9110 §7.2); `localhost` for a Unix socket.
    #[must_use]
    pub fn authority(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp { tls, host, port } => {
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                if *port == default_port(*tls) { format!("{open}{host}{close}") } else { format!("{open}{host}{close}:{port}") }
            }
        }
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { tls, .. } => write!(f, "{}://{}", if *tls { "https" } else { "http" }, self.authority()),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            // `unix:///run/x.sock` is the same socket in URL clothes.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') && path.len() > 1 { Ok(Self::Unix(path.into())) } else { Err(AddressError::Socket) };
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| AddressError::Scheme(text.to_owned()))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(AddressError::Scheme(text.to_owned())),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if !matches!(path, "" | "/") {
            return Err(AddressError::Path(path.to_owned()));
        }
        if authority.contains('@') {
            return Err(AddressError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None => default_port(tls),
            Some(digits) => match digits.parse() {
                Ok(port) if port != 0 && digits.bytes().all(|b| b.is_ascii_digit()) => port,
                _ => return Err(AddressError::Port(digits.to_owned())),
            },
        };
        Ok(Self::Tcp { tls, host, port })
    }
}

fn split_port(authority: &str) -> Result<(String, Option<&str>), AddressError> {
    let bad = || AddressError::Host(authority.to_owned());
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or_else(bad)?;
        let host: std::net::Ipv6Addr = host.parse().map_err(|_| bad())?;
        let port = match port {
            "" => None,
            port => Some(port.strip_prefix(':').ok_or_else(bad)?),
        };
        return Ok((host.to_string(), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if host.is_empty() || !host.bytes().all(plain) {
        return Err(bad());
    }
    Ok((host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_parses_and_prints_the_same_address() {
        for (text, printed, authority) in [
            ("http://127.0.0.1:2368", "http://127.0.0.1:2368", "127.0.0.1:2368"),
            ("http://blog.example/", "http://blog.example", "blog.example"),
            ("HTTP://Blog.Example:80", "http://blog.example", "blog.example"),
            ("https://blog.example", "https://blog.example", "blog.example"),
            ("https://blog.example:80", "https://blog.example:80", "blog.example:80"),
            ("http://[::1]:8080", "http://[::1]:8080", "[::1]:8080"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]", "[2001:db8::1]"),
            ("unix:/run/site.sock", "unix:/run/site.sock", "localhost"),
            ("unix:///run/site.sock", "unix:/run/site.sock", "localhost"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), printed);
            assert_eq!(address.authority(), authority);
            assert_eq!(printed.parse::<Address>().as_ref(), Ok(&address));
        }
    }

    #[test]
    fn what_is_not_an_address_says_why() {
        for (text, error) in [
            ("blog.example", AddressError::Scheme("blog.example".into())),
            ("ftp://blog.example", AddressError::Scheme("ftp://blog.example".into())),
            ("http://blog.example/blog", AddressError::Path("/blog".into())),
            ("http://blog.example?x", AddressError::Path("?x".into())),
            ("http://me:secret@blog.example", AddressError::UserInfo),
            ("http://", AddressError::Host(String::new())),
            ("http://:80", AddressError::Host(":80".into())),
            ("http://a b", AddressError::Host("a b".into())),
            ("http://[::1", AddressError::Host("[::1".into())),
            ("http://[blog]", AddressError::Host("[blog]".into())),
            ("http://::1", AddressError::Host("::1".into())),
            ("http://blog.example:", AddressError::Port(String::new())),
            ("http://blog.example:+80", AddressError::Port("+80".into())),
            ("http://blog.example:0", AddressError::Port("0".into())),
            ("http://blog.example:65536", AddressError::Port("65536".into())),
            ("unix:run/site.sock", AddressError::Socket),
            ("unix:", AddressError::Socket),
        ] {
            assert_eq!(text.parse::<Address>(), Err(error), "{text}");
        }
    }
}
