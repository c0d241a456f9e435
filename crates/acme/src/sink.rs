//! The receiver of certificates: the server that shows them in handshakes.

use std::sync::Arc;

use rustls::sign::CertifiedKey;

/// The server that shows certificates, and answers challenges in handshakes.
pub trait Sink: Send + Sync + 'static {
    /// Shows this certificate to clients that ask for `name`, in handshakes that begin after this call.
    fn show(&self, name: &str, names: Vec<String>, key: Arc<CertifiedKey>);
    /// Shows no certificate for `name` any more.
    fn withdraw(&self, name: &str);
    /// Shows this certificate to an authority that asks for `name` by `acme-tls/1` alone (RFC 8737 §3).
    fn answer_challenge(&self, name: &str, key: Arc<CertifiedKey>);
    /// Ends the answer to a challenge for `name`.
    fn end_challenge(&self, name: &str);
}
