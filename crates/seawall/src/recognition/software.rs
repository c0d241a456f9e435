//! What a Ghost says of itself.

use std::fmt;

use http::Uri;
use serde::{Deserialize, Serialize};

use crate::config::routes::RoutePath;

/// The longest address and the longest version that are believed.
const TEXT_BYTES_MAX: usize = 512;

/// What a Ghost says of itself: its version, and the address that its readers use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct GhostSite {
    version: String,
    url: String,
    authority: String,
    base_path: String,
}

/// The form in which it is written down.
#[derive(Serialize, Deserialize)]
struct Written {
    version: String,
    url: String,
}

impl TryFrom<Written> for GhostSite {
    type Error = String;

    fn try_from(Written { version, url }: Written) -> Result<Self, String> {
        Self::new(&version, &url)
    }
}

impl From<GhostSite> for Written {
    fn from(GhostSite { version, url, .. }: GhostSite) -> Self {
        Self { version, url }
    }
}

impl GhostSite {
    /// Makes it of what the Ghost says.
    ///
    /// # Errors
    /// When the version is none, or the address is none that readers could use.
    pub fn new(version: &str, url: &str) -> Result<Self, String> {
        let is_number = |part: &str| !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
        if !version.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
            return Err("its version is not a version".to_owned());
        }
        let odd = || "its url is no address of a site".to_owned();
        let uri: Uri = url.parse().ok().filter(|_| url.len() <= TEXT_BYTES_MAX).ok_or_else(odd)?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(odd()) };
        if authority.host().is_empty() || authority.as_str().contains('@') || uri.query().is_some() {
            return Err(odd());
        }
        let path = uri.path().trim_end_matches('/');
        let base_path = if path.is_empty() { String::new() } else { path.parse::<RoutePath>().map_err(|_| odd())?.0 };
        Ok(Self { version: version.to_owned(), url: url.to_owned(), authority: authority.as_str().to_ascii_lowercase(), base_path })
    }

    /// Returns its version: `6.65`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the address that its readers use.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the host that its readers use, in lower case, without the port.
    #[must_use]
    pub fn host(&self) -> &str {
        semantics::target::host_without_port(&self.authority)
    }

    /// Returns the port that its readers use.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.explicit_port().unwrap_or_else(|| if self.is_https() { 443 } else { 80 })
    }

    /// Returns the port in its address, if there is one.
    #[must_use]
    pub fn explicit_port(&self) -> Option<u16> {
        self.authority[self.host().len()..].strip_prefix(':')?.parse().ok()
    }

    /// Returns whether its readers use https.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.starts_with("https")
    }

    /// Returns the path at which it is, without a slash at its end; empty if it has the whole host.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base_path
    }
}

impl fmt::Display for GhostSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ghost {} at {}", self.version, self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_has_a_version_and_an_address() {
        let ghost = GhostSite::new("6.65", "https://Example.org:8443/blog/").expect("a Ghost");
        assert_eq!((ghost.host(), ghost.port(), ghost.is_https(), ghost.base_path()), ("example.org", 8443, true, "/blog"));
        assert_eq!(GhostSite::new("5.9", "http://[::1]:2368/").expect("a Ghost").host(), "[::1]");
        assert_eq!(GhostSite::new("5.9", "http://a").expect("a Ghost").base_path(), "");
        for (version, url) in [
            ("6", "http://a/"),
            ("6.x", "http://a/"),
            ("99999.1", "http://a/"),
            ("6.65", "a"),
            ("6.65", "ftp://a/"),
            ("6.65", "http://user@a/"),
            ("6.65", "http://a/?x"),
            ("6.65", "http://a/b/../c"),
            ("6.65", "/blog/"),
        ] {
            assert!(GhostSite::new(version, url).is_err(), "{version} {url}");
        }
    }
}
