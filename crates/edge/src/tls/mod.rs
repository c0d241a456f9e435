//! TLS: certificates by name, and who may speak.

mod certificates;
mod pair;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

pub use certificates::{Bundle, Certificates};
pub use pair::{CertificateError, certified_key, names_of, read_pair};

/// The one crypto library, with the hybrid key exchange first: what is recorded today is not to be read by tomorrow's machines.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    let kx_groups = vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1];
    Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() })
}
