//! A certificate with its chain and its key, as it is kept and as it is served.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use instant_acme::CertificateIdentifier;
use rustls::{crypto::aws_lc_rs::sign::any_supported_type, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use semantics::Timestamp;
use x509_parser::{extensions::GeneralName, parse_x509_certificate, time::ASN1Time};

use crate::schedule::Validity;

/// A certificate, its chain and its key.
#[derive(Clone)]
pub struct Certificate {
    /// The names that the certificate itself says it is for.
    pub names: Vec<String>,
    /// The time in which it is valid.
    pub validity: Validity,
    /// The chain and key in the form that the server uses.
    pub key: Arc<CertifiedKey>,
    /// The key and then the chain, PEM: the form in which it is stored.
    pem: String,
}

/// The reason why a text cannot be used as a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The text is not valid PEM.
    #[error("it holds no certificate chain and key in PEM")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// The chain is empty.
    #[error("it holds no certificate")]
    Empty,
    /// The certificate cannot be read.
    #[error("its certificate cannot be read: {0}")]
    X509(String),
    /// The key does not belong to the certificate, or is of a kind that we cannot use.
    #[error("its key does not fit")]
    Key(#[from] rustls::Error),
}

impl Certificate {
    /// Reads a key and a chain from PEM, in either order, from one text or joined from two.
    ///
    /// # Errors
    /// Fails when one is missing or unreadable, or they do not belong together.
    pub fn from_pem(pem: String) -> Result<Self, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())?;
        let leaf = chain.first().ok_or(CertificateError::Empty)?;
        let (_, parsed) = parse_x509_certificate(leaf).map_err(|error| CertificateError::X509(error.to_string()))?;
        let alternative = parsed.subject_alternative_name().ok().flatten();
        let names = alternative.iter().flat_map(|names| &names.value.general_names).filter_map(general_name).collect();
        let validity = Validity { not_before: timestamp(parsed.validity().not_before), not_after: timestamp(parsed.validity().not_after) };
        let signer = any_supported_type(&key)?;
        let key = CertifiedKey::new(chain.clone(), signer);
        key.keys_match()?;
        Ok(Self { names, validity, key: Arc::new(key), pem })
    }

    /// Returns the key and chain as they are stored.
    #[must_use]
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the identifier by which the authority knows the certificate (RFC 9773 §4.1); `None` if the certificate does not name its
    /// issuer.
    #[must_use]
    pub(crate) fn identifier(&self) -> Option<CertificateIdentifier<'static>> {
        self.key.cert.first().and_then(|leaf| CertificateIdentifier::try_from(leaf).ok())
    }

    /// Returns whether the certificate is for exactly this name.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Returns how long the certificate is still valid.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Duration {
        self.validity.not_after.since(now)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("names", &self.names).field("validity", &self.validity).finish_non_exhaustive()
    }
}

/// Returns until when a certificate is valid (DER); `None` if it cannot be read.
#[must_use]
pub fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    Some(timestamp(parsed.validity().not_after))
}

fn general_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    }
}

fn timestamp(time: ASN1Time) -> Timestamp {
    Timestamp::from_secs(u64::try_from(time.timestamp()).unwrap_or_default())
}
