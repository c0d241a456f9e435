//! Network addresses as people write them: where to listen, whom to trust, where an origin is.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use ipnet::IpNet;

use super::{
    error::Mistake,
    settings::{Listen, OriginAddress},
    suggest::closest,
    words::host_name,
};

impl FromStr for Listen {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(Self::Unix(unix_path(text, path)?)),
            None => socket_address(text, "8080").map(Self::Tcp),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn unix_path(text: &str, path: &str) -> Result<PathBuf, Mistake> {
    // Relative paths would depend on the folder the process was started in, and two slashes after the colon look like a host.
    if path.starts_with("//") || !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
        let mistake =
            Mistake::new(format!("\"{text}\" is not a Unix socket"), "write the socket's whole path, such as \"unix:/run/seawall.sock\"");
        let name = path.trim_matches('/');
        let guess = if path.starts_with("//") { format!("unix:/{name}") } else { format!("unix:/run/{name}") };
        return Err(if name.is_empty() { mistake } else { mistake.meant(guess) });
    }
    Ok(PathBuf::from(path))
}

/// Parses an IP address and a port. For the ways in which people abbreviate them, the error has a suggestion.
fn socket_address(text: &str, port: &str) -> Result<SocketAddr, Mistake> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mistake = Mistake::new(
        format!("\"{text}\" is not an address to listen on"),
        "write an IP address and a port: \"127.0.0.1:8080\" (this machine only), \"0.0.0.0:8080\" (every IPv4 address) or \"[::]:8080\" (every IPv6 address)",
    );
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/');
    let guess = match bare.rsplit_once(':') {
        Some(("" | "*", port)) => format!("0.0.0.0:{port}"),
        Some(("localhost", port)) => format!("127.0.0.1:{port}"),
        _ if bare.parse::<u16>().is_ok() => format!("127.0.0.1:{bare}"),
        _ if bare == "localhost" => format!("127.0.0.1:{port}"),
        _ => match bare.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => format!("{address}:{port}"),
            Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            Err(_) => bare.to_owned(),
        },
    };
    Err(if guess.parse::<SocketAddr>().is_ok() { mistake.meant(guess) } else { mistake })
}

/// The address of the admin API, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminAddress(pub Option<SocketAddr>);

impl FromStr for AdminAddress {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "off" {
            return Ok(Self(None));
        }
        socket_address(text, "9180").map(|address| Self(Some(address))).map_err(|mut mistake| {
            mistake.remedy = "write an IP address and a port, such as \"127.0.0.1:9180\", or \"off\"".to_owned();
            if closest(text, ["off"]).is_some() || ["none", "no", "false", "disabled"].contains(&text) {
                mistake.meant("off")
            } else {
                mistake
            }
        })
    }
}

/// Networks of trusted proxies: one network, or all private ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxy(pub Vec<IpNet>);

/// Addresses that nobody has on the internet (RFC 1918, 6598, 4193, 3927, 4291 §2.5.3 and §2.5.6, 1122 §3.2.1.3). A peer with one is a
/// neighbour: this machine, its containers, or the platform's router.
const PRIVATE: [&str; 9] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8", "fc00::/7", "fe80::/10", "::1/128"];

impl FromStr for TrustedProxy {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = Mistake::new(
            format!("\"{text}\" is not a network"),
            "write an address such as \"192.0.2.7\", or one with the length of its prefix, such as \"10.0.0.0/8\"; \"private\" is every private one",
        );
        if text == "private" {
            return Ok(Self(PRIVATE.iter().filter_map(|network| network.parse().ok()).collect()));
        }
        // One machine is a network of one.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(vec![IpNet::from(address)]));
        }
        let Ok(network) = text.parse::<IpNet>() else {
            return Err(match closest(text, ["private"]) {
                _ if text == "localhost" => mistake.meant("127.0.0.1/32"),
                Some(word) => mistake.meant(word),
                None => mistake,
            });
        };
        if network.prefix_len() == 0 {
            return Err(Mistake::new(
                format!("\"{text}\" trusts everybody: any client could say that it is somebody else"),
                "write the addresses of your own proxies",
            ));
        }
        // Bits beyond the prefix mean nothing; without them equal networks are equal.
        Ok(Self(vec![network.trunc()]))
    }
}

impl FromStr for OriginAddress {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || {
            Mistake::new(
                format!("\"{text}\" is not the address of an origin server"),
                "write scheme, host and port, such as \"http://127.0.0.1:2368\", or \"unix:/run/ghost.sock\"",
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return unix_path(text, path).map(Self::Unix);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(match bare_authority(text) {
                Some(authority) => mistake().meant(format!("{}://{authority}", likely_scheme(authority))),
                None => mistake(),
            });
        };
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            other => {
                return Err(match closest(other, ["http", "https"]) {
                    Some(scheme) => mistake().meant(format!("{scheme}://{rest}")),
                    None => mistake(),
                });
            }
        };
        let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err(Mistake::new(
                "an origin's address cannot carry a user name",
                "leave out everything before and including the \"@\"",
            ));
        }
        if !matches!(path, "" | "/") {
            return Err(Mistake::new(
                format!("the origin is asked for the path that the client asked for, so \"{path}\" has no place in its address"),
                "leave the path out",
            )
            .meant(format!("{scheme}://{authority}")));
        }
        let (host, port) = host_and_port(authority).ok_or_else(mistake)?;
        let port = port.unwrap_or(if https { 443 } else { 80 });
        Ok(if https { Self::Https { host, port } } else { Self::Http { host, port } })
    }
}

impl fmt::Display for OriginAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Self::Http { host, port } => ("http", host, port),
            Self::Https { host, port } => ("https", host, port),
            Self::Unix(path) => return write!(f, "unix:{}", path.display()),
        };
        if host.contains(':') { write!(f, "{scheme}://[{host}]:{port}") } else { write!(f, "{scheme}://{host}:{port}") }
    }
}

/// Splits an authority into the host without brackets and the port, if there is one.
fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        _ => (authority, None),
    };
    let host = host_name(host).ok()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).map(str::to_owned).unwrap_or(host);
    Some((host, port))
}

/// Returns the authority of a text that looks like a server but has no scheme: `localhost:2368`, `127.0.0.1`, `example.org/`.
pub(super) fn bare_authority(text: &str) -> Option<&str> {
    // "http:127.0.0.1" and "http:/127.0.0.1" lost slashes, not the scheme.
    let text = text.strip_prefix("http:").or_else(|| text.strip_prefix("https:")).unwrap_or(text).trim_start_matches("//");
    let text = if text.starts_with('/') && !text.starts_with("//") { text.get(1..)? } else { text };
    let authority = text.trim_end_matches('/');
    let (host, port) = host_and_port(authority)?;
    let looks_like_a_host = port.is_some() || host == "localhost" || host.contains('.') || host.contains(':');
    looks_like_a_host.then_some(authority)
}

/// Guesses the scheme of an authority: plain HTTP for local addresses, TLS for public names.
pub(super) fn likely_scheme(authority: &str) -> &'static str {
    match host_and_port(authority) {
        Some((host, None)) if host.contains('.') && host.parse::<IpAddr>().is_err() => "https",
        Some((_, Some(443))) => "https",
        _ => "http",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant<T: FromStr<Err = Mistake> + fmt::Debug>(text: &str) -> String {
        let mistake = text.parse::<T>().expect_err(text);
        mistake.meant.unwrap_or_default().trim_start_matches("did you mean \"").trim_end_matches("\"?").to_owned()
    }

    #[test]
    fn listen_addresses() {
        for text in ["127.0.0.1:8080", "[::1]:80", "0.0.0.0:0", "unix:/run/seawall.sock"] {
            assert_eq!(text.parse::<Listen>().map(|listen| listen.to_string()), Ok(text.to_owned()));
        }
        let bad = [
            ("8080", "127.0.0.1:8080"),
            (":8080", "0.0.0.0:8080"),
            ("*:80", "0.0.0.0:80"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("localhost", "127.0.0.1:8080"),
            ("192.0.2.1", "192.0.2.1:8080"),
            ("::1", "[::1]:8080"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
            ("unix:seawall.sock", "unix:/run/seawall.sock"),
            ("unix:///run/seawall.sock", "unix:/run/seawall.sock"),
            ("unix:", ""),
            ("example.org:80", ""),
            ("127.0.0.1:99999", ""),
            ("", ""),
        ];
        for (text, expected) in bad {
            assert_eq!(meant::<Listen>(text), expected, "{text}");
        }
    }

    #[test]
    fn the_admin_address_may_be_off() {
        assert_eq!("off".parse(), Ok(AdminAddress(None)));
        assert!("127.0.0.1:9180".parse::<AdminAddress>().is_ok());
        for (text, expected) in [("of", "off"), ("none", "off"), ("9180", "127.0.0.1:9180"), ("127.0.0.1", "127.0.0.1:9180")] {
            assert_eq!(meant::<AdminAddress>(text), expected, "{text}");
        }
    }

    #[test]
    fn trusted_proxies_are_networks() {
        assert_eq!("10.1.2.3/8".parse::<TrustedProxy>().map(|network| network.0), Ok(vec!["10.0.0.0/8".parse().expect("a network")]));
        for (text, network) in [("10.0.0.1", "10.0.0.1/32"), ("::1", "::1/128")] {
            assert_eq!(text.parse::<TrustedProxy>().map(|network| network.0), Ok(vec![network.parse().expect("a network")]), "{text}");
        }
        let private = "private".parse::<TrustedProxy>().expect("a word").0;
        assert_eq!(private.len(), PRIVATE.len());
        for (address, is_private) in [
            ("10.1.2.3", true),
            ("172.31.0.1", true),
            ("172.32.0.1", false),
            ("100.64.0.1", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("2001:db8::1", false),
            ("198.51.100.1", false),
        ] {
            let address: IpAddr = address.parse().expect(address);
            assert_eq!(private.iter().any(|network| network.contains(&address)), is_private, "{address}");
        }
        for (text, expected) in [("localhost", "127.0.0.1/32"), ("0.0.0.0/0", ""), ("privat", "private"), ("x", "")] {
            assert_eq!(meant::<TrustedProxy>(text), expected, "{text}");
        }
    }

    #[test]
    fn origin_addresses() {
        let good = [
            ("http://127.0.0.1:2368", "http://127.0.0.1:2368"),
            ("http://127.0.0.1:2368/", "http://127.0.0.1:2368"),
            ("HTTPS://Example.org", "https://example.org:443"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("http://ghost", "http://ghost:80"),
            ("unix:/run/ghost.sock", "unix:/run/ghost.sock"),
        ];
        for (text, expected) in good {
            assert_eq!(text.parse::<OriginAddress>().map(|address| address.to_string()), Ok(expected.to_owned()), "{text}");
        }
        let bad = [
            ("localhost:2368", "http://localhost:2368"),
            ("127.0.0.1:2368", "http://127.0.0.1:2368"),
            ("http:/127.0.0.1:2368", "http://127.0.0.1:2368"),
            ("http:127.0.0.1:2368", "http://127.0.0.1:2368"),
            ("example.org", "https://example.org"),
            ("htp://127.0.0.1", "http://127.0.0.1"),
            ("http://127.0.0.1:2368/blog", "http://127.0.0.1:2368"),
            ("http://user@example.org", ""),
            ("http://", ""),
            ("http://a:0", ""),
            ("http://a:x", ""),
            ("ftp://example.org", ""),
            ("", ""),
        ];
        for (text, expected) in bad {
            assert_eq!(meant::<OriginAddress>(text), expected, "{text}");
        }
    }
}
