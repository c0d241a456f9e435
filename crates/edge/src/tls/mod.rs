//! TLS (RFC 8446, and 5246 with forward secrecy): certificates by name, handshakes, and what is encrypted with their keys.

mod certificates;
mod handshake;
mod pair;
mod session;
mod tickets;

use std::{fmt, sync::Arc};

use quinn::crypto::rustls::QuicServerConfig;
use rustls::{
    CipherSuite, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{ClientHello, NoServerSessionStorage},
};

pub use certificates::{Bundle, Certificates, Challenged, Missed, Wait};
pub(crate) use handshake::{HandshakeError, Protocol, Turnstile, shake};
pub use pair::{CertificateError, certified_key, names_of, read_pair};
pub(crate) use session::Session;
use tickets::Tickets;
pub use tickets::{TICKET_KEY_LEN, TICKET_KEY_NAME_LEN, TicketKey, TicketKeys};

/// The TLS configuration, shared by all workers: a ticket from one is valid for the others and, as long as this value is kept, after a
/// reload.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// The configuration for clients without AES in hardware.
    without_aes: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    tickets: Arc<Tickets>,
    quic: quinn::ServerConfig,
}

impl Tls {
    /// Creates a configuration for TLS 1.2 and 1.3 with these certificates.
    ///
    /// # Errors
    /// Fails when the system has no randomness for the keys of tickets.
    pub fn new(certificates: Arc<Certificates>) -> Result<Self, rustls::Error> {
        let tickets = Tickets::new()?;
        let config = |first| {
            let mut config = ServerConfig::builder_with_provider(suites_from(first))
                .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
                .with_no_client_auth()
                .with_cert_resolver(Arc::clone(&certificates) as _);
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec(), certificates::ACME_TLS.to_vec()];
            config.ticketer = Arc::clone(&tickets) as _;
            // One ticket is enough: every connection brings the next one's, and each costs 2 % of a full handshake, 4 % of a resumed one
            // (callgrind).
            config.send_tls13_tickets = 1;
            // Tickets keep the sessions with the clients; a second store would only serve clients that do not support them.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.ignore_client_order = true;
            Ok::<_, rustls::Error>(config)
        };
        let (config, without_aes) = (config(Cipher::Aes128)?, config(Cipher::ChaCha20)?);
        let quic = quic(config.clone())?;
        Ok(Self { config: Arc::new(config), without_aes: Arc::new(without_aes), certificates, tickets, quic })
    }

    /// Seals the tickets of sessions with keys that other machines have too, and accepts those machines' tickets. `None`: with keys of its own,
    /// as from the beginning.
    pub fn share_tickets(&self, keys: Option<&TicketKeys>) {
        self.tickets.share(keys);
    }

    /// Returns the certificates.
    #[must_use]
    pub const fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// Returns the configuration for QUIC, with the same tickets and with the keys of address validation, for as long as this is kept.
    pub(crate) const fn quic(&self) -> &quinn::ServerConfig {
        &self.quic
    }

    /// Returns the configuration for a client. A client that puts ChaCha20 first shows that AES is slow there; otherwise our own order
    /// counts.
    pub(crate) fn config_for(&self, hello: &ClientHello<'_>) -> &Arc<ServerConfig> {
        // Some lists begin with a value that means nothing (RFC 8701 §2).
        let first = hello.cipher_suites().iter().find(|suite| !is_grease(u16::from(**suite)));
        if first.is_some_and(|suite| Cipher::of(*suite) == Cipher::ChaCha20) { &self.without_aes } else { &self.config }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// Creates the configuration for TLS within QUIC (RFC 9001): 1.3 alone, for HTTP/3 alone. It has no early data, which could be replayed.
fn quic(mut config: ServerConfig) -> Result<quinn::ServerConfig, rustls::Error> {
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.max_early_data_size = 0;
    // There is only one configuration here, and a client without hardware for AES must not be made to use it.
    config.ignore_client_order = false;
    let crypto = QuicServerConfig::try_from(config).map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(quinn::ServerConfig::with_crypto(Arc::new(crypto)))
}

/// Returns the one crypto library, with the hybrid key exchange first, so that future machines cannot read what is recorded today.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    let kx_groups = vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1];
    Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() })
}

/// The ciphers in our order of preference: with 8 KiB pieces, a core with AES in hardware encrypts 2.7, 2.6 and 2.0 GB/s (`openssl speed
/// -bytes 8192 -evp`, on an EPYC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cipher {
    Aes128,
    Aes256,
    ChaCha20,
}

impl Cipher {
    const fn of(suite: CipherSuite) -> Self {
        use CipherSuite as S;
        match suite {
            S::TLS13_AES_128_GCM_SHA256 | S::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 | S::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => {
                Self::Aes128
            }
            S::TLS13_CHACHA20_POLY1305_SHA256
            | S::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
            | S::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => Self::ChaCha20,
            _ => Self::Aes256,
        }
    }
}

fn suites_from(first: Cipher) -> Arc<CryptoProvider> {
    let mut provider = CryptoProvider::clone(&provider());
    provider.cipher_suites.sort_by_key(|suite| (Cipher::of(suite.suite()) != first, Cipher::of(suite.suite())));
    Arc::new(provider)
}

const fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_known() {
        // RFC 8701 §2.
        for value in [0x0a0a, 0x1a1a, 0x9a9a, 0xfafa] {
            assert!(is_grease(value), "{value:04x}");
        }
        // Real ones: TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256, and two that look alike.
        for value in [0x1301, 0x1303, 0x0a1a, 0x0b0b] {
            assert!(!is_grease(value), "{value:04x}");
        }
    }

    #[test]
    fn only_the_order_of_the_suites_is_changed() {
        for first in [Cipher::Aes128, Cipher::ChaCha20] {
            let ordered = suites_from(first);
            assert_eq!(ordered.cipher_suites.len(), provider().cipher_suites.len());
            assert_eq!(ordered.cipher_suites.first().map(|suite| Cipher::of(suite.suite())), Some(first));
        }
    }
}
