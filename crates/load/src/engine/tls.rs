//! TLS as clients speak it: whom they trust, which protocol they offer, and whether they resume an earlier session.
//!
//! A run has one [`Tls`], which all its workers share. Resumption differs from rustls' own in one point: its store keeps 8 tickets of a server,
//! and a ticket is used once, so of 1,000 clients that come at a time 992 would make a full handshake. Ours keeps enough for a crowd.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, NamedGroup, RootCertStore, SignatureScheme,
    client::{
        ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};

use crate::{
    plan::{Connections, Plan, Protocol},
    requests::Origin,
};

/// The most tickets that are kept of one server: one for each of 10,000 clients. With the chain of certificates in it a ticket takes some 3 KB, so
/// all of them take 30 MB.
const TICKETS_MAX: usize = 10_240;

/// The reason why TLS cannot be spoken as the plan says.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of certificates cannot be read.
    #[error("{}: the certificates cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] rustls_pki_types::pem::Error),
    /// The file has no certificate in it.
    #[error("{}: there is no certificate in it", .0.display())]
    Empty(PathBuf),
    /// The file has something in it that is not a root certificate.
    #[error("{}: there is something in it that is not a root certificate", .0.display())]
    NoRoot(PathBuf, #[source] rustls::Error),
    /// There is nothing to trust.
    #[error("this system has no root certificates: name a file of them, or accept any certificate")]
    NoRoots,
    /// A certificate cannot be for such a host.
    #[error("{0:?} is neither a name nor an address that a certificate could be for")]
    Host(String),
    /// The provider of cryptography cannot do what is asked of it.
    #[error("the provider of cryptography lacks a version of TLS")]
    Provider(#[source] rustls::Error),
}

/// The client side of TLS of a run.
#[derive(Debug)]
pub struct Tls {
    resuming: Arc<ClientConfig>,
    full: Arc<ClientConfig>,
    /// The share of connections that try to resume.
    resumed: f64,
    /// The names of the origins, in their order.
    names: Vec<ServerName<'static>>,
}

impl Tls {
    /// Makes the client side of TLS for a plan; none if no origin of the plan is asked over TLS. It reads the system's root certificates, which takes
    /// milliseconds, so it is made once.
    ///
    /// # Errors
    /// Fails when the file of certificates is unusable, when nothing would be trusted, and when a host can have no certificate.
    pub fn new(plan: &Plan) -> Result<Option<Self>, TlsError> {
        let (alpn, quic) = match plan.protocol {
            Protocol::Http1 { .. } => (b"http/1.1".as_slice(), false),
            Protocol::Http2 { .. } => (b"h2".as_slice(), false),
            Protocol::Http3 { .. } => (b"h3".as_slice(), true),
        };
        if !quic && !plan.requests.origins.iter().any(|origin| origin.tls) {
            return Ok(None);
        }
        let mut full = config(&plan.connections, quic)?;
        full.alpn_protocols = vec![alpn.to_vec()];
        full.resumption = Resumption::disabled();
        let mut resuming = full.clone();
        resuming.resumption = Resumption::store(Arc::new(Sessions::default()));
        let names = plan.requests.origins.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Some(Self { resuming: Arc::new(resuming), full: Arc::new(full), resumed: plan.connections.resumed, names }))
    }

    /// Returns the configuration for a worker's connection of this number. In each stretch of numbers the plan's share of them try to resume a
    /// session, and a number makes the same choice in each run.
    #[must_use]
    pub fn config(&self, number: u64) -> &Arc<ClientConfig> {
        if resumes(self.resumed, number) { &self.resuming } else { &self.full }
    }

    /// Returns both configurations: that of clients that try to resume a session, and that of those that do not.
    #[must_use]
    pub const fn configs(&self) -> [&Arc<ClientConfig>; 2] {
        [&self.resuming, &self.full]
    }

    /// Returns whether a worker's connection of this number tries to resume a session.
    #[must_use]
    pub fn resumes(&self, number: u64) -> bool {
        resumes(self.resumed, number)
    }

    /// Returns the name that the certificate of an origin must be for. `origin` is an index into the plan's origins.
    #[must_use]
    pub fn name(&self, origin: u16) -> &ServerName<'static> {
        &self.names[usize::from(origin)]
    }
}

/// Returns whether the connection of this number is one of the share: whenever the sum of shares passes a whole number.
#[expect(clippy::cast_precision_loss, reason = "a number of connections is far below 2^53")]
fn resumes(share: f64, number: u64) -> bool {
    ((number + 1) as f64 * share).floor() > (number as f64 * share).floor()
}

fn name(origin: &Origin) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(origin.host.clone()).map_err(|_| TlsError::Host(origin.host.clone()))
}

/// Makes a configuration without ALPN. QUIC has TLS 1.3 alone.
pub(crate) fn config(connections: &Connections, quic: bool) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let versions: &[_] = if quic { &[&rustls::version::TLS13] } else { &[&rustls::version::TLS13, &rustls::version::TLS12] };
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions).map_err(TlsError::Provider)?;
    if connections.insecure {
        return Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))).with_no_client_auth());
    }
    Ok(builder.with_root_certificates(roots(connections.ca.as_deref())?).with_no_client_auth())
}

/// Returns the one crypto library. The classic exchange of keys comes first: servers without the hybrid one would need another round trip, and those
/// with it would be measured with three times the bytes.
fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
    Arc::new(CryptoProvider { kx_groups: vec![X25519, SECP256R1, SECP384R1, X25519MLKEM768], ..aws_lc_rs::default_provider() })
}

/// Returns the system's root certificates and those of the file.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    // Systems carry old roots that do not parse. None of those takes the others away.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca {
        let unreadable = |error| TlsError::Unreadable(path.to_owned(), error);
        let before = roots.len();
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            roots.add(certificate.map_err(unreadable)?).map_err(|error| TlsError::NoRoot(path.to_owned(), error))?;
        }
        if roots.len() == before {
            return Err(TlsError::Empty(path.to_owned()));
        }
    }
    if roots.is_empty() { Err(TlsError::NoRoots) } else { Ok(roots) }
}

/// Says in words why a certificate is not trusted, and what to do. `why` is what the verifier said; `has_ca` tells whether a file of certificates to
/// trust was named.
#[must_use]
pub fn untrusted(why: &str, has_ca: bool) -> String {
    let is = |name: &str| why.contains(name);
    let (what, remedy) = if is("CaUsedAsEndEntity") {
        let what = "it is one that signs others (it says CA:TRUE), and no server may show such a one as its own";
        (what, "Not even --ca can trust it: use --insecure, or make it with -addext basicConstraints=critical,CA:FALSE.")
    } else if is("UnknownIssuer") && has_ca {
        ("neither the system nor the file of --ca trusts who signed it", "Is it the right file? --insecure accepts any certificate.")
    } else if is("UnknownIssuer") {
        let remedy = "--ca FILE trusts a certificate of your own; --insecure accepts any.";
        ("it is signed by nobody whom this system trusts, or by itself", remedy)
    } else if is("BadSignature") {
        (
            "it was not signed with the key of who it names as its signer",
            "Is an old file given to --ca? --insecure accepts any certificate.",
        )
    } else if is("UnsupportedSignatureAlgorithm") || is("signature algorithm") {
        (
            "it is signed in a way that is not safe today, or not known here",
            "Make one with an RSA or ECDSA key and SHA-256; --insecure accepts any.",
        )
    } else if is("valid for name") || is("NotValidForName") {
        return format!(
            "its certificate is for another name: {why}\n  Use that name in the URL, with --connect-to ADDR:PORT; --insecure accepts any."
        );
    } else if is("not valid yet") || is("NotValidYet") {
        ("it is not valid yet", "Is the clock right? --insecure accepts any certificate.")
    } else if is("certificate expired") || is("Expired") {
        ("it has expired", "Is the clock right? --insecure accepts any certificate.")
    } else if is("UnsupportedCertVersion") {
        (
            "it is of an old version, without the names that it is for",
            "Make one with -addext subjectAltName=DNS:NAME; --insecure accepts any.",
        )
    } else if is("urpose") || is("key usage") || is("KeyUsage") {
        ("it is not for servers (its extended key usage)", "Make one for serverAuth; --insecure accepts any.")
    } else {
        (why, "--insecure accepts any certificate.")
    };
    format!("its certificate is not trusted: {what}\n  {remedy}")
}

/// Accepts every certificate. That the server has the key to it is checked nevertheless, as browsers do when somebody clicks a warning away.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Sessions that can be resumed, by server. The lock is held for a few instructions, once or twice in a handshake.
#[derive(Default)]
struct Sessions(Mutex<HashMap<ServerName<'static>, Server>>);

/// Holds what is known of a server.
#[derive(Default)]
struct Server {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    /// Tickets of TLS 1.3, the oldest first. Each is used once (RFC 8446, appendix C.4).
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Server>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.lock().entry(name).or_default().group = Some(group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.lock().entry(name).or_default().session = Some(session);
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.lock().get(name)?.session.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(server) = self.lock().get_mut(name) {
            server.session = None;
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut servers = self.lock();
        let tickets = &mut servers.entry(name).or_default().tickets;
        if tickets.len() == TICKETS_MAX {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().get_mut(name)?.tickets.pop_back()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, time::Duration};

    use super::*;
    use crate::{
        plan::{Stop, TIMEOUT},
        requests::RequestSet,
        schedule::{Profile, Schedule},
    };

    fn plan(tls: bool, connections: Connections) -> Plan {
        let origins = vec![Origin { tls, host: "127.0.0.1".to_owned(), port: 8443 }];
        Plan {
            requests: Arc::new(RequestSet { origins, ..RequestSet::default() }),
            schedule: Schedule::Closed { clients: Profile::constant(1.0, None) },
            protocol: Protocol::Http1 { pipeline: 1 },
            stop: Stop::default(),
            connections,
            timeout: TIMEOUT,
            warm_up: Duration::ZERO,
            workers: 1,
            seed: 0,
            cap: None,
        }
    }

    #[test]
    fn a_share_of_connections_tries_to_resume_and_it_is_spread_evenly() {
        let of = |share: f64, from: u64| (from..from + 100).filter(|number| resumes(share, *number)).count();
        assert_eq!([of(0.0, 0), of(0.25, 0), of(0.5, 1), of(0.9, 700), of(1.0, 3)], [0, 25, 50, 90, 100]);
    }

    /// No words of a programming language, and no flag as a remedy that was typed already, or cannot help.
    #[test]
    fn why_a_certificate_is_not_trusted_is_told_with_what_helps() {
        use rustls::{CertificateError, OtherError};
        let signs_others = CertificateError::Other(OtherError(Arc::new(std::io::Error::other("CaUsedAsEndEntity"))));
        let unknown_signature =
            CertificateError::UnsupportedSignatureAlgorithmContext { signature_algorithm_id: vec![1, 2], supported_algorithms: Vec::new() };
        for (error, has_ca, expected, remedy) in [
            (CertificateError::UnknownIssuer, false, "by itself", "--ca FILE"),
            (CertificateError::UnknownIssuer, true, "the file of --ca", "right file"),
            (signs_others.clone(), true, "CA:TRUE", "CA:FALSE"),
            (signs_others, false, "CA:TRUE", "Not even --ca"),
            (unknown_signature, true, "signed in a way", "SHA-256"),
            (CertificateError::BadSignature, true, "not signed with the key", "--insecure"),
            (CertificateError::Expired, true, "expired", "clock"),
            (CertificateError::NotValidYet, true, "not valid yet", "clock"),
            (CertificateError::NotValidForName, true, "another name", "--connect-to"),
            (CertificateError::InvalidPurpose, true, "not for servers", "serverAuth"),
        ] {
            let said = untrusted(&error.to_string(), has_ca);
            assert!(said.contains(expected) && said.contains(remedy) && said.contains("--insecure"), "{error}: {said}");
            assert!(!said.contains('(') || said.contains("(it says") || said.contains("(its") || said.contains("another name"), "{said}");
            assert!(!has_ca || !said.contains("--ca FILE"), "{said}");
        }
    }

    #[test]
    fn a_plan_without_tls_needs_no_roots() {
        assert!(Tls::new(&plan(false, Connections::default())).expect("nothing is wrong").is_none());
    }

    #[test]
    fn a_file_of_certificates_must_have_one() {
        let key = rcgen::generate_simple_self_signed(["blog.example".to_owned()]).expect("a certificate");
        for (content, fine) in [(key.cert.pem(), true), (String::new(), false), ("hello".to_owned(), false)] {
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            file.write_all(content.as_bytes()).expect("written");
            let connections = Connections { ca: Some(file.path().to_owned()), ..Connections::default() };
            assert_eq!(Tls::new(&plan(true, connections)).is_ok(), fine, "{content:?}");
        }
        let connections = Connections { ca: Some("/nonexistent/ca.pem".into()), ..Connections::default() };
        let missing = Tls::new(&plan(true, connections)).expect_err("no such file");
        assert!(missing.to_string().contains("/nonexistent/ca.pem"), "{missing}");
    }

    #[test]
    fn a_host_that_no_certificate_can_be_for_is_named() {
        let mut plan = plan(true, Connections { insecure: true, ..Connections::default() });
        Arc::make_mut(&mut plan.requests).origins[0].host = "not a host".to_owned();
        let error = Tls::new(&plan).expect_err("spaces");
        assert!(error.to_string().contains("\"not a host\""), "{error}");
    }
}
