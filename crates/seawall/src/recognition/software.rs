//! The software that was recognised, as it names itself.

use std::fmt;

use http::Uri;
use policy::Kind;
use serde::{Deserialize, Serialize};

use super::name_of;
use crate::config::routes::RoutePath;

/// The longest address and the longest version that are believed.
const TEXT_BYTES_MAX: usize = 512;

/// Holds what a server has said of itself: its software, its version, and the address that its readers use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SoftwareRecord", into = "SoftwareRecord")]
pub struct Software {
    kind: Kind,
    version: Option<String>,
    url: String,
    authority: String,
    base_path: String,
    /// The address of its own files, if that is another one.
    core_url: Option<String>,
}

/// The form in which it is written down.
#[derive(Serialize, Deserialize)]
struct SoftwareRecord {
    /// The name of the kind. Nobody else was recognised when there was no such key.
    #[serde(default = "ghost_name")]
    kind: String,
    #[serde(default)]
    version: Option<String>,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    core_url: Option<String>,
}

fn ghost_name() -> String {
    Kind::Ghost.name().to_owned()
}

impl TryFrom<SoftwareRecord> for Software {
    type Error = String;

    fn try_from(SoftwareRecord { kind, version, url, core_url }: SoftwareRecord) -> Result<Self, String> {
        let kind = Kind::of_products().find(|known| known.name() == kind).ok_or("its kind is unknown")?;
        let software = Self::new(kind, version.as_deref(), &url)?;
        match core_url {
            Some(core_url) => software.with_core(&core_url),
            None => Ok(software),
        }
    }
}

impl From<Software> for SoftwareRecord {
    fn from(Software { kind, version, url, core_url, .. }: Software) -> Self {
        Self { kind: kind.name().to_owned(), version, url, core_url }
    }
}

/// The parts of an address that readers can use.
struct Address {
    authority: String,
    base_path: String,
}

impl Address {
    fn of(url: &str) -> Result<Self, String> {
        let odd = || "its url is not an address of a site".to_owned();
        let uri: Uri = url.parse().ok().filter(|_| url.len() <= TEXT_BYTES_MAX).ok_or_else(odd)?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(odd()) };
        if authority.host().is_empty() || authority.as_str().contains('@') || uri.query().is_some() {
            return Err(odd());
        }
        let path = uri.path().trim_end_matches('/');
        let base_path = if path.is_empty() { String::new() } else { path.parse::<RoutePath>().map_err(|_| odd())?.0 };
        Ok(Self { authority: authority.as_str().to_ascii_lowercase(), base_path })
    }
}

impl Software {
    /// Makes it of what a server says.
    ///
    /// # Errors
    /// When the version is none, or the address is none that readers could use.
    pub fn new(kind: Kind, version: Option<&str>, url: &str) -> Result<Self, String> {
        if !version.is_none_or(is_version) {
            return Err("its version is not a version".to_owned());
        }
        let Address { authority, base_path } = Address::of(url)?;
        Ok(Self { kind, version: version.map(str::to_owned), url: url.to_owned(), authority, base_path, core_url: None })
    }

    /// Makes the software of a Ghost.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub fn ghost(version: &str, url: &str) -> Result<Self, String> {
        Self::new(Kind::Ghost, Some(version), url)
    }

    /// Makes the software of a WordPress.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub fn wordpress(version: Option<&str>, url: &str) -> Result<Self, String> {
        Self::new(Kind::WordPress, version, url)
    }

    /// Adds the address of its own files: `https://example.org/wp` for a WordPress in a folder of its own.
    ///
    /// # Errors
    /// When readers could not use that address.
    pub fn with_core(mut self, core_url: &str) -> Result<Self, String> {
        Address::of(core_url)?;
        self.core_url = Some(core_url.to_owned()).filter(|core| core.trim_end_matches('/') != self.url.trim_end_matches('/'));
        Ok(self)
    }

    /// Returns the kind of site that it makes.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the address of its own files, without a slash at the end.
    #[must_use]
    pub fn core_url(&self) -> &str {
        self.core_url.as_deref().unwrap_or(&self.url).trim_end_matches('/')
    }

    /// Returns its version, such as `6.65`. `None`: it does not say.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the address that its readers use.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the host that its readers use, in lower case, with the port if the address has one.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
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

/// Returns whether this is a version: some numbers, and a word about how finished it is.
fn is_version(text: &str) -> bool {
    let (numbers, rest) = text.split_once('-').unwrap_or((text, ""));
    let is_number = |part: &str| !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
    let is_word = rest.len() <= 40 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    (2..=4).contains(&numbers.split('.').count()) && numbers.split('.').all(is_number) && is_word
}

impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        write!(f, "{}{version} at {}", name_of(self.kind), self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_has_a_version_and_an_address() {
        let ghost = Software::ghost("6.65", "https://Example.org:8443/blog/").expect("a Ghost");
        assert_eq!((ghost.host(), ghost.port(), ghost.is_https(), ghost.base_path()), ("example.org", 8443, true, "/blog"));
        assert_eq!(Software::ghost("5.9", "http://[::1]:2368/").expect("a Ghost").host(), "[::1]");
        assert_eq!(Software::ghost("5.9", "http://a").expect("a Ghost").base_path(), "");
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
            assert!(Software::ghost(version, url).is_err(), "{version} {url}");
        }
    }

    #[test]
    fn a_wordpress_may_be_silent_about_its_version_and_have_its_files_elsewhere() {
        let plain = Software::wordpress(None, "https://a.example/blog").expect("a WordPress");
        assert_eq!((plain.to_string().as_str(), plain.core_url()), ("WordPress at https://a.example/blog", "https://a.example/blog"));
        let own = Software::wordpress(Some("6.9-beta1-61000"), "https://a.example").expect("a WordPress");
        let own = own.with_core("https://a.example/wp").expect("an address");
        assert_eq!((own.to_string().as_str(), own.core_url()), ("WordPress 6.9-beta1-61000 at https://a.example", "https://a.example/wp"));
        let written = serde_json::to_string(&own).expect("JSON");
        assert_eq!(serde_json::from_str::<Software>(&written).expect("the same"), own);
    }
}
