//! A certificate of the loopback address that nobody has a reason to trust.

use std::sync::Arc;

use rustls::{ServerConfig, crypto::aws_lc_rs};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Makes the settings of TLS 1.3 with a certificate made now, and these protocols.
pub(crate) fn config(alpn: &[&[u8]]) -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("a certificate can be made");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key is the certificate's");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.max_early_data_size = 0;
    Arc::new(config)
}
