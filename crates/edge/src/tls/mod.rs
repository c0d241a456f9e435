//! TLS (RFC 8446, and 5246 with forward secrecy): certificates by name, handshakes, and what is encrypted with their keys.

mod certificates;
mod handshake;
mod pair;
mod session;

use std::{fmt, sync::Arc};

use quinn::crypto::rustls::QuicServerConfig;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::NoServerSessionStorage,
};

pub use certificates::{Bundle, Certificates, Missed};
pub(crate) use handshake::{HandshakeError, Protocol, Turnstile, shake};
pub use pair::{CertificateError, certified_key, names_of, read_pair};
pub(crate) use session::Session;

/// How TLS is spoken, by all workers alike: a ticket of one is good for the others, and, as long as this is kept, after a reload.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    quic: quinn::ServerConfig,
}

impl Tls {
    /// TLS 1.2 and 1.3 with these certificates.
    ///
    /// # Errors
    /// When the system has no randomness to make keys for tickets of.
    pub fn new(certificates: Arc<Certificates>) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificates) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec(), certificates::ACME_TLS.to_vec()];
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        // Tickets keep the sessions with the clients; a second store would only serve those who understand none.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        let quic = quic(config.clone())?;
        Ok(Self { config: Arc::new(config), certificates, quic })
    }

    /// Its certificates.
    #[must_use]
    pub const fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// The same over QUIC: the same tickets, and the keys of address validation, for as long as this is kept.
    pub(crate) const fn quic(&self) -> &quinn::ServerConfig {
        &self.quic
    }

    pub(crate) const fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// TLS within QUIC (RFC 9001): 1.3 alone, for HTTP/3 alone. No early data: it could be replayed.
fn quic(mut config: ServerConfig) -> Result<quinn::ServerConfig, rustls::Error> {
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(config).map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(quinn::ServerConfig::with_crypto(Arc::new(crypto)))
}

/// The one crypto library, with the hybrid key exchange first: what is recorded today is not to be read by tomorrow's machines.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    let kx_groups = vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1];
    Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() })
}
