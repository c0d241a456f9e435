//! Reads URLs as people type them, and references as pages write them.
//!
//! The reader is stricter than a browser's: what a browser mends in silence (a missing scheme, a name in another script, a password) would here decide
//! which server is loaded, so it is an error that says what to write instead.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Origin;

/// The longest URL, as most servers take no longer one.
const LENGTH_MAX: usize = 8 << 10;

/// A URL of http or https, without its fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Url {
    /// The server.
    pub origin: Origin,
    /// Path and query.
    pub target: String,
}

/// The reason why a text is not a URL that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is empty.
    #[error("the URL is empty")]
    Empty,
    /// It does not begin with a scheme.
    #[error("{0:?} has no scheme: write http://{0} or https://{0}")]
    NoScheme(String),
    /// Its scheme is another one.
    #[error("{0}: is not supported: a URL begins with http:// or https://")]
    Scheme(String),
    /// It names no host.
    #[error("{0:?} names no host")]
    NoHost(String),
    /// It carries a name and perhaps a password.
    #[error("a URL cannot carry a name and a password: leave out what is before the @, and send them with -H 'Authorization: Basic ...'")]
    Userinfo,
    /// Its host is written in another script than ASCII.
    #[error("the host {0:?} is not ASCII: write it in its xn-- form, as the browser's certificate view shows it")]
    NotAscii(String),
    /// Its host is neither a name nor an address.
    #[error("{0:?} is not a host: a name or an IPv4 address, or an IPv6 address in brackets")]
    Host(String),
    /// Its port is none.
    #[error("{0:?} is not a port: 1 to 65535")]
    Port(String),
    /// A placeholder stands before the path.
    #[error("a placeholder can stand in path and query alone, not in {0:?}")]
    PlaceholderInHost(String),
    /// It has a character that no URL has.
    #[error("the URL has a control character at byte {0}")]
    Control(usize),
    /// It is too long.
    #[error("the URL has {0} bytes: {LENGTH_MAX} are the most")]
    TooLong(usize),
}

impl Url {
    /// Reads a URL. Braces in it are percent-encoded.
    ///
    /// # Errors
    /// When the text is not an absolute URL of http or https.
    pub fn read(text: &str) -> Result<Self, UrlError> {
        Self::read_as(text, false)
    }

    /// Reads a URL in whose path and query `{` and `}` belong to placeholders, and stay.
    ///
    /// # Errors
    /// When the text is not an absolute URL of http or https.
    pub fn read_with_placeholders(text: &str) -> Result<Self, UrlError> {
        Self::read_as(text, true)
    }

    fn read_as(text: &str, placeholders: bool) -> Result<Self, UrlError> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        if text.len() > LENGTH_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        if let Some(at) = text.bytes().position(|byte| byte.is_ascii_control()) {
            return Err(UrlError::Control(at));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text.split_once(':') {
                // `localhost:8080` has a port, `mailto:somebody` a scheme.
                Some((scheme, rest)) if is_scheme(scheme) && !rest.starts_with(|c: char| c.is_ascii_digit()) => {
                    Err(UrlError::Scheme(scheme.to_owned()))
                }
                _ => Err(UrlError::NoScheme(text.trim_start_matches('/').to_owned())),
            };
        };
        let tls = match () {
            () if scheme.eq_ignore_ascii_case("http") => false,
            () if scheme.eq_ignore_ascii_case("https") => true,
            () if is_scheme(scheme) => return Err(UrlError::Scheme(scheme.to_owned())),
            () => return Err(UrlError::NoScheme(text.to_owned())),
        };
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        Ok(Self { origin: read_authority(authority, tls, text)?, target: target(rest, placeholders) })
    }

    /// Resolves a reference that stands in a document of this URL (RFC 3986 §5.2). Returns nothing for what no server is asked for: `data:`, `mailto:`,
    /// a fragment alone, and what is not a URL.
    #[must_use]
    pub fn join(&self, reference: &str) -> Option<Self> {
        let reference: String = reference.trim().chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).collect();
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.is_empty() || reference.len() > LENGTH_MAX {
            return None;
        }
        if reference.starts_with("//") {
            let scheme = if self.origin.tls { "https:" } else { "http:" };
            return Self::read(&format!("{scheme}{reference}")).ok().map(Self::normalized);
        }
        if let Some((scheme, _)) = reference.split_once(':')
            && is_scheme(scheme)
        {
            return Self::read(reference).ok().map(Self::normalized);
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let joined = match reference.as_bytes()[0] {
            b'/' => reference.to_owned(),
            b'?' => format!("{path}{reference}"),
            _ => format!("{}/{reference}", path.rsplit_once('/').map_or("", |(folder, _)| folder)),
        };
        if joined.bytes().any(|byte| byte.is_ascii_control()) {
            return None;
        }
        Some(Self { origin: self.origin.clone(), target: target(&joined, false) }.normalized())
    }

    /// Takes `.` and `..` out of the path (RFC 3986 §5.2.4).
    fn normalized(mut self) -> Self {
        let (path, query) = self.target.split_once('?').map_or((self.target.as_str(), None), |(path, query)| (path, Some(query)));
        if !path.contains("/.") {
            return self;
        }
        let mut kept: Vec<&str> = Vec::new();
        let segments = path.split('/').skip(1);
        let mut folder = false;
        for segment in segments {
            folder = matches!(segment, "." | "..");
            match segment {
                "." => {}
                ".." => drop(kept.pop()),
                _ => kept.push(segment),
            }
        }
        let mut target = format!("/{}", kept.join("/"));
        if folder && !target.ends_with('/') {
            target.push('/');
        }
        if let Some(query) = query {
            target.push('?');
            target.push_str(query);
        }
        self.target = target;
        self
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin, self.target)
    }
}

/// Reads an origin: a URL whose path does not matter.
///
/// # Errors
/// When the text is not a URL.
pub fn read_origin(text: &str) -> Result<Origin, UrlError> {
    Url::read(text).map(|url| url.origin)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn read_authority(authority: &str, tls: bool, url: &str) -> Result<Origin, UrlError> {
    if authority.contains('@') {
        return Err(UrlError::Userinfo);
    }
    if authority.contains(['{', '}']) {
        return Err(UrlError::PlaceholderInHost(authority.to_owned()));
    }
    let wrong = || UrlError::Host(authority.to_owned());
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or_else(wrong)?;
        let address: Ipv6Addr = address.parse().map_err(|_| wrong())?;
        (address.to_string(), if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong)?) })
    } else {
        let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
        if port.is_some_and(|port| port.contains(':')) {
            return Err(wrong());
        }
        if host.is_empty() {
            return Err(UrlError::NoHost(url.to_owned()));
        }
        if !host.is_ascii() {
            return Err(UrlError::NotAscii(host.to_owned()));
        }
        (read_host(host).ok_or_else(wrong)?, port)
    };
    let port = match port {
        None | Some("") => {
            if tls {
                443
            } else {
                80
            }
        }
        Some(text) => {
            let port = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
            port.filter(|port| *port != 0).ok_or_else(|| UrlError::Port(text.to_owned()))?
        }
    };
    Ok(Origin { tls, host, port })
}

/// Reads a name in lower case, or an IPv4 address. Names of numbers alone are addresses (or mistakes): `127.1` and `0x7f000001` are read by some and not by
/// others, so they are refused.
fn read_host(host: &str) -> Option<String> {
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if numeric {
        return host.parse::<Ipv4Addr>().ok().map(|address| address.to_string());
    }
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    let valid = |label: &str| {
        !label.is_empty() && label.len() <= 63 && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    (host.len() <= 254 && labels.clone().all(valid)).then(|| host.to_ascii_lowercase())
}

/// Returns path and query without the fragment, with everything percent-encoded that cannot stand there.
fn target(text: &str, placeholders: bool) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let mut target = String::with_capacity(text.len() + 1);
    if !text.starts_with('/') {
        target.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'{' | b'}' if placeholders => target.push(char::from(byte)),
            b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'\\' | b'^' | b'|' | 0..=b' ' | 0x7f.. => push_encoded(&mut target, byte),
            _ => target.push(char::from(byte)),
        }
    }
    target
}

pub(super) fn push_encoded(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        Url::read(text)
            .map_or_else(|error| format!("error: {error}"), |url| format!("{}:{} {}", url.origin.host, url.origin.port, url.target))
    }

    #[test]
    fn a_url_names_host_port_and_target() {
        for (text, expected) in [
            ("http://example.org", "example.org:80 /"),
            ("HTTPS://Example.ORG", "example.org:443 /"),
            ("http://example.org:8080/a?b=c#d", "example.org:8080 /a?b=c"),
            ("http://example.org?b", "example.org:80 /?b"),
            ("http://example.org#top", "example.org:80 /"),
            ("http://example.org:/", "example.org:80 /"),
            ("http://127.0.0.1:1/", "127.0.0.1:1 /"),
            ("http://[::1]/", "::1:80 /"),
            ("https://[0:0:0:0:0:0:0:1]:8443/x", "::1:8443 /x"),
            ("http://a_b.example./", "a_b.example.:80 /"),
            ("http://h/ä b", "h:80 /%C3%A4%20b"),
            ("http://h/%41?q={x}", "h:80 /%41?q=%7Bx%7D"),
            ("  http://h/  ", "h:80 /"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_what_to_write() {
        for (text, part) in [
            ("", "empty"),
            ("example.org/x", "write http://example.org/x"),
            ("localhost:8080/", "write http://localhost:8080/"),
            ("//example.org/", "write http://example.org/"),
            ("/path", "has no scheme"),
            ("ftp://example.org/", "ftp: is not supported"),
            ("mailto:a@b", "mailto: is not supported"),
            ("http://", "names no host"),
            ("http:///x", "names no host"),
            ("http://:80/", "names no host"),
            ("http://u:p@example.org/", "-H 'Authorization"),
            ("http://bücher.example/", "xn--"),
            ("http://example.org:0/", "is not a port"),
            ("http://example.org:65536/", "is not a port"),
            ("http://example.org:+80/", "is not a port"),
            ("http://::1/", "is not a host"),
            ("http://[::1/", "is not a host"),
            ("http://[::1]x/", "is not a host"),
            ("http://[fe80::1%25eth0]/", "is not a host"),
            ("http://256.1.1.1/", "is not a host"),
            ("http://127.1/", "is not a host"),
            ("http://0x7f000001/", "is not a host"),
            ("http://a..b/", "is not a host"),
            ("http://a%2eb/", "is not a host"),
            ("http://a b/", "is not a host"),
            ("http://{client}.example/", "path and query alone"),
            ("http://h/a\nb", "control character"),
        ] {
            assert!(read(text).starts_with("error: ") && read(text).contains(part), "{text:?}: {}", read(text));
        }
        assert!(read(&format!("http://h/{}", "x".repeat(9000))).contains("8192"));
    }

    /// RFC 3986 §5.4, as far as http goes.
    #[test]
    fn references_lead_where_the_rfc_says() {
        let base = Url::read("http://a/b/c/d;p?q").expect("valid");
        for (reference, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("https://x:8443/y", "https://x:8443/y"),
        ] {
            assert_eq!(base.join(reference).map(|url| url.to_string()).as_deref(), Some(expected), "{reference}");
        }
        for reference in ["", "#s", "data:image/png;base64,xx", "mailto:a@b", "javascript:void(0)", "http://u@h/"] {
            assert_eq!(base.join(reference), None, "{reference}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_can_be_sent_and_is_read_again_as_itself(text in "(https?://)?[ -~äß\\PC]{0,40}") {
            if let Ok(url) = Url::read(&text) {
                prop_assert!(url.target.starts_with('/'));
                prop_assert!(url.target.bytes().all(|byte| byte.is_ascii_graphic()), "{}", url.target);
                prop_assert_eq!(&Url::read(&url.to_string()).expect("reads again"), &url);
            }
        }

        #[test]
        fn a_reference_never_panics_and_leads_to_what_can_be_sent(reference in "\\PC{0,40}") {
            let base = Url::read("http://h/a/b?c").expect("valid");
            if let Some(url) = base.join(&reference) {
                prop_assert!(url.target.starts_with('/') && url.target.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
