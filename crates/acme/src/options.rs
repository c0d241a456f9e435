//! The operator's choices about certificates: the authority, our account there, and how names are proven.

use std::path::PathBuf;

use crate::{demand::DemandOptions, hook::DnsHook};

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The directory of Let's Encrypt's staging environment: it has generous limits, and no browser trusts its certificates.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// A method by which we prove that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Proof by content at port 80 (RFC 8555 §8.3).
    Http01,
    /// Proof by a handshake at port 443 (RFC 8737).
    TlsAlpn01,
    /// Proof by a TXT record (RFC 8555 §8.4), which a [`DnsHook`] writes.
    Dns01,
}

impl Method {
    /// Returns the method's name in RFC 8555.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        }
    }
}

/// The data that identifies us to the authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The address that the authority may write to.
    pub email: Option<String>,
    /// An account that exists at the authority outside ACME (RFC 8555 §7.3.4): the id of its key, and the key itself.
    pub external: Option<(String, Vec<u8>)>,
}

/// The options of a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The URL of the authority's directory.
    pub directory: String,
    /// Our account at the authority.
    pub account: Account,
    /// The profile of certificates, if the authority has several (`shortlived`); `None` is its default.
    pub profile: Option<String>,
    /// The methods to prove names by, the preferred one first; after a failure the next one is tried.
    pub methods: Vec<Method>,
    /// The program that writes TXT records.
    pub hook: Option<DnsHook>,
    /// The folder where everything is stored.
    pub folder: PathBuf,
    /// The options for names that are not configured one by one.
    pub demand: Option<DemandOptions>,
}
