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

/// The largest file that is read: a larger one is not a certificate.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The reason why a certificate, or its key, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The file does not hold what it should.
    #[error("{} {problem}", path.display())]
    Content {
        /// The path of the file.
        path: PathBuf,
        /// The problem with the file.
        problem: &'static str,
    },
    /// The certificate and the key are both valid, but do not belong together.
    #[error("the key in {} is not the key of the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's.
        key: PathBuf,
    },
    /// The kind of key, or the certificate, is one that we cannot use.
    #[error("{} cannot be used: {source}", path.display())]
    Unusable {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        #[source]
        source: rustls::Error,
    },
}

/// Makes a chain (the server's own certificate first) and a key ready for handshakes.
///
/// # Errors
/// Fails when the key is of a kind that cannot be used, or does not belong to the certificate.
pub fn certified_key(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<CertifiedKey, rustls::Error> {
    CertifiedKey::from_der(chain, key, &provider())
}

/// Returns the host names that a certificate is for, in lower case: its subject alternative names. The common name does not count (RFC 9525
/// §2).
#[must_use]
pub fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    webpki::EndEntityCert::try_from(certificate)
        .map(|certificate| certificate.valid_dns_names().map(str::to_ascii_lowercase).collect())
        .unwrap_or_default()
}

/// Reads a certificate chain and its key from PEM files, which may be the same file.
///
/// # Errors
/// Fails when one cannot be read, holds something else, or they do not belong together.
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
        return Err(CertificateError::Content { path: path.to_owned(), problem: "is larger than 1 MiB: this is not a certificate" });
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
