//! Decides whom we trust to be an origin over TLS.

use std::{path::Path, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use crate::{Fault, OriginError};

/// Makes the client side of TLS, which trusts the system's roots, and those in the PEM file `extra_ca` if given. Build it once; it is shared
/// by all workers.
///
/// # Errors
/// Fails when `extra_ca` cannot be read or holds no certificate. A system without roots is only warned about: `extra_ca` may be all one needs.
pub fn tls_config(extra_ca: Option<&Path>) -> Result<Arc<ClientConfig>, OriginError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "a root certificate of the system cannot be read");
    }
    // Systems carry old roots that do not parse; one of those must not take the others away.
    roots.add_parsable_certificates(native.certs);
    if let Some(path) = extra_ca {
        add_file(&mut roots, path)?;
    }
    if roots.is_empty() {
        tracing::warn!("no root certificates: no https origin will be trusted");
    }
    with_roots(roots)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), OriginError> {
    let bad = |what: &str| OriginError::new(Fault::TlsError, format!("{}: {what}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| bad("cannot be read").because(e))?;
    let mut added = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| bad("is not a PEM file").because(e))?;
        roots.add(certificate).map_err(|e| bad("holds what is not a root certificate").because(e))?;
        added += 1;
    }
    if added == 0 { Err(bad("holds no certificate")) } else { Ok(()) }
}

/// Makes the client side of TLS 1.2 and 1.3, for HTTP/1.1 alone, with these roots.
pub(crate) fn with_roots(roots: RootCertStore) -> Result<Arc<ClientConfig>, OriginError> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| OriginError::new(Fault::Internal, "the crypto provider lacks TLS 1.2 or 1.3").because(e))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_extra_root_is_added_and_a_bad_file_is_an_error() {
        let key = rcgen::generate_simple_self_signed(["blog.example".to_owned()]).expect("a certificate");
        for (content, fine) in [(key.cert.pem(), true), (String::new(), false), ("hello".to_owned(), false)] {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(content.as_bytes()).expect("written");
            assert_eq!(tls_config(Some(file.path())).is_ok(), fine, "{content:?}");
        }
        let missing = tls_config(Some(Path::new("/nonexistent/ca.pem"))).expect_err("no such file");
        assert!(missing.to_string().contains("/nonexistent/ca.pem"), "{missing}");
    }
}
