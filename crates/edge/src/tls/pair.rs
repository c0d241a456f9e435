//! A certificate and its key, as operators and certificate authorities hand them over.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::sign::CertifiedKey;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};

use super::provider;

/// Larger files are no certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A certificate, or its key, is of no use.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("{} {problem}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Both are fine, but not for each other.
    #[error("the key in {} is not the key of the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's.
        key: PathBuf,
    },
    /// A kind of key, or a certificate, that we cannot use.
    #[error("{} cannot be used: {source}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
}

/// Chain (the server's own certificate first) and key, ready for handshakes.
///
/// # Errors
/// When the key is of a kind that cannot be used, or is not the certificate's.
pub fn certified_key(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<CertifiedKey, rustls::Error> {
    CertifiedKey::from_der(chain, key, &provider())
}

/// The host names that a certificate is for, in lower case (its subject alternative names; the common name has no say, RFC 9525 §2).
#[must_use]
pub fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    webpki::EndEntityCert::try_from(certificate)
        .map(|certificate| certificate.valid_dns_names().map(str::to_ascii_lowercase).collect())
        .unwrap_or_default()
}

/// Reads a certificate chain and its key from PEM files, which may be the same file.
///
/// # Errors
/// When one cannot be read, holds something else, or they do not belong together.
pub fn read_pair(certificate: &Path, key: &Path) -> Result<Arc<CertifiedKey>, CertificateError> {
    let content = |path: &Path, problem| CertificateError::Content { path: path.to_owned(), problem };
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| content(certificate, "is not a PEM file"))?;
    if chain.is_empty() {
        return Err(content(certificate, "holds no certificate (PEM: -----BEGIN CERTIFICATE-----)"));
    }
    let text = read(key)?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound if text.windows(21).any(|part| part == b"ENCRYPTED PRIVATE KEY") => {
            content(key, "is protected by a password; take it off with: openssl pkey -in FILE -out NEWFILE")
        }
        pem::Error::NoItemsFound => content(key, "holds no private key (PEM: -----BEGIN PRIVATE KEY-----)"),
        _ => content(key, "is not a PEM file"),
    })?;
    certified_key(chain, private).map(Arc::new).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => CertificateError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() },
        rustls::Error::InvalidCertificate(_) => CertificateError::Unusable { path: certificate.to_owned(), source: error },
        source => CertificateError::Unusable { path: key.to_owned(), source },
    })
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |source| CertificateError::Unreadable { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(CertificateError::Content { path: path.to_owned(), problem: "is larger than 1 MiB: this is no certificate" });
    }
    std::fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn made(names: &[&str]) -> CertifiedKey<rcgen::KeyPair> {
        generate_simple_self_signed(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).expect("a certificate")
    }

    #[test]
    fn a_certificates_names_are_its_alternative_names() {
        let made = made(&["Blog.example", "*.blog.example", "192.0.2.1"]);
        assert_eq!(names_of(made.cert.der()), ["blog.example", "*.blog.example"]);
    }

    #[test]
    fn a_pair_is_read_or_the_error_names_file_and_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (made(&["a.example"]), made(&["a.example"]));
        let files = [
            ("cert.pem", one.cert.pem()),
            ("key.pem", one.signing_key.serialize_pem()),
            ("both.pem", one.cert.pem() + &one.signing_key.serialize_pem()),
            ("other.pem", other.signing_key.serialize_pem()),
            ("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n".to_owned()),
            ("text.pem", "hello\n".to_owned()),
        ];
        for (name, content) in files {
            fs::write(folder.path().join(name), content).expect("written");
        }
        let cases = [
            ("cert.pem", "key.pem", None),
            ("both.pem", "both.pem", None),
            ("cert.pem", "other.pem", Some("other.pem is not the key of the certificate in")),
            ("text.pem", "key.pem", Some("text.pem holds no certificate")),
            ("key.pem", "key.pem", Some("key.pem holds no certificate")),
            ("cert.pem", "text.pem", Some("text.pem holds no private key")),
            ("cert.pem", "cert.pem", Some("cert.pem holds no private key")),
            ("cert.pem", "locked.pem", Some("locked.pem is protected by a password")),
            ("none.pem", "key.pem", Some("none.pem cannot be read")),
        ];
        for (certificate, key, expected) in cases {
            let message = read_pair(&folder.path().join(certificate), &folder.path().join(key)).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(message, None, "{certificate} {key}"),
                Some(part) => assert!(message.as_ref().is_some_and(|message| message.contains(part)), "{certificate} {key}: {message:?}"),
            }
        }
    }
}
