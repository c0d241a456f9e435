//! HTTPS: RFC 8446, RFC 9110 §4.2.2; with a client of its own (rustls), and HTTP/2 over it in `h2.rs`.

use std::{cell::Cell, net::SocketAddr, path::Path, sync::Arc};

use edge::Socket;
use rustls::{
    CipherSuite, ClientConfig, HandshakeKind, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};
use tempfile::TempDir;
use testkit::{Origin, ok, post};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    h2,
    site::{HOST, Site},
};

/// A certificate for [`HOST`] in a folder, and what trusts it.
pub(crate) struct Authority {
    folder: TempDir,
    certificate: CertificateDer<'static>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = write_pair(folder.path());
        Self { folder, certificate }
    }

    /// Puts another certificate and key in the same files.
    pub(crate) fn renew(&mut self) {
        self.certificate = write_pair(self.folder.path());
    }

    /// Returns the section that has the server listen.
    pub(crate) fn section(&self) -> String {
        let folder = self.folder.path().display();
        format!("[tls]\nlisten = [\"127.0.0.1:0\"]\ncert = \"{folder}/cert.pem\"\nkey = \"{folder}/key.pem\"\n")
    }

    /// Returns the file with the certificate.
    pub(crate) fn certificate_file(&self) -> String {
        self.folder.path().join("cert.pem").display().to_string()
    }

    pub(crate) fn client(&self, versions: &[&'static SupportedProtocolVersion], protocol: &str) -> Arc<ClientConfig> {
        self.client_with(versions, protocol, &[])
    }

    /// Returns a client that offers these cipher suites in this order; all it has, if there are none.
    fn client_with(&self, versions: &[&'static SupportedProtocolVersion], protocol: &str, suites: &[CipherSuite]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a root");
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        if !suites.is_empty() {
            provider.cipher_suites.retain(|suite| suites.contains(&suite.suite()));
            provider.cipher_suites.sort_by_key(|suite| suites.iter().position(|wanted| *wanted == suite.suite()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(versions).expect("versions");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Arc::new(config)
    }
}

fn write_pair(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("written");
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    made.cert.der().clone()
}

/// Returns the address at which TLS is spoken.
pub(crate) fn address(site: &Site) -> SocketAddr {
    let tls = site.server.listening().iter().find_map(|socket| if let Socket::Tls(address) = socket { Some(*address) } else { None });
    tls.expect("a TLS listener")
}

pub(crate) async fn connect(site: &Site, config: &Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address(site)).await?;
    TlsConnector::from(Arc::clone(config)).connect(ServerName::try_from(HOST).expect("a name"), stream).await
}

pub(crate) fn site(authority: &Authority, toml: &str) -> (Origin, Site) {
    let origin = Origin::start();
    let site = Site::start(&format!("source = \"{}\"\n{}{toml}", origin.url(), authority.section()));
    (origin, site)
}

/// Sends what closes the connection afterwards, and reads to the end.
async fn exchange(stream: &mut TlsStream<TcpStream>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    // An end without close_notify would be an error here.
    stream.read_to_end(&mut answer).await.expect("an end that is said");
    String::from_utf8(answer).expect("text")
}

/// Asks, and returns what is answered over HTTP/1.1 and TLS.
pub(crate) async fn get(site: &Site, authority: &Authority, path: &str) -> String {
    let mut stream = connect(site, &authority.client(&[&TLS13], "http/1.1")).await.expect("a handshake");
    exchange(&mut stream, &request("GET", path, "\r\n")).await
}

fn request(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n{more}")
}

/// The origin is told the scheme, and what is stored for it is not served over plain http.
#[tokio::test]
async fn a_page_over_tls_is_a_page_of_its_own() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    origin
        .on(testkit::get("/post"))
        .reply_with(|seen| ok(seen.field("x-forwarded-proto").unwrap_or_default()).field("cache-control", "max-age=60"));
    for version in [&TLS13, &TLS12] {
        let config = authority.client(&[version], "http/1.1");
        let mut stream = connect(&site, &config).await.expect("a handshake");
        let answer = exchange(&mut stream, &request("GET", "/post", "\r\n")).await;
        let status = if version.version == ProtocolVersion::TLSv1_3 { "fwd=uri-miss" } else { "hit" };
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nhttps") && answer.contains(status), "{answer}");
    }
    site.get("/post").await.body("http").cache_status("fwd=uri-miss; fwd-status=200; stored");
}

/// In both hands: our loop's, and that of the reader that takes uploads. What does not fit into a socket arrives too.
#[tokio::test]
async fn contents_pass_whole() {
    let authority = Authority::new();
    let (origin, site) = site(&authority, "");
    let page = "0123456789abcdef".repeat(1 << 17);
    origin.on(testkit::get("/large")).reply(ok(page.clone()).field("cache-control", "max-age=60"));
    origin.on(post("/form")).reply_with(|seen| ok(seen.text().to_uppercase()));
    let config = authority.client(&[&TLS13], "http/1.1");
    for _ in 0..2 {
        let mut stream = connect(&site, &config).await.expect("a handshake");
        let answer = exchange(&mut stream, &request("GET", "/large", "\r\n")).await;
        assert!(answer.ends_with(&format!("\r\n\r\n{page}")), "{} bytes", answer.len());
    }
    let mut stream = connect(&site, &config).await.expect("a handshake");
    let answer = exchange(&mut stream, &request("POST", "/form", "Content-Length: 5\r\n\r\nhello")).await;
    assert!(answer.ends_with("\r\n\r\nHELLO"), "{answer}");
}

/// RFC 8446 §2.2: a ticket is good for the next connection, on whichever worker, and after a reload; and then the new certificate is shown
/// to those who come without one.
#[tokio::test]
async fn tickets_outlive_a_reload_and_certificates_are_swapped_by_it() {
    let mut authority = Authority::new();
    let (origin, mut site) = site(&authority, "[server]\nworkers = 2\n");
    origin.on(testkit::get("/")).reply(ok("hello"));
    let config = authority.client(&[&TLS13], "http/1.1");
    let mut kinds = Vec::new();
    for round in 0..6 {
        let mut stream = connect(&site, &config).await.expect("a handshake");
        kinds.push(stream.get_ref().1.handshake_kind());
        exchange(&mut stream, &request("GET", "/", "\r\n")).await;
        if round == 2 {
            let toml = format!("source = \"{}\"\n{}[server]\nworkers = 2\n", origin.url(), authority.section());
            authority.renew();
            assert_eq!(site.reload(&toml), Ok(vec![]));
        }
    }
    let resumed = Some(HandshakeKind::Resumed);
    assert_eq!(kinds[1..], [resumed; 5]);
    let stranger = authority.client(&[&TLS13], "http/1.1");
    connect(&site, &stranger).await.expect("the new certificate");
}

/// Readers in both protocols keep their connections while settings and certificates change; who comes anew sees the new certificate.
#[tokio::test]
async fn reloads_and_new_certificates_cost_no_request_and_no_connection() {
    let mut authority = Authority::new();
    let (origin, mut site) = site(&authority, "");
    origin.on(testkit::get("/post")).reply(ok("text").field("cache-control", "max-age=600"));
    let config = authority.client(&[&TLS13], "http/1.1");
    let (one, two) = (connect(&site, &config).await.expect("a handshake"), connect(&site, &config).await.expect("a handshake"));
    let (mut streams, _connection) = h2::client(&authority, &site, 65_535).await;

    let over = Cell::new(false);
    let in_http_2 = async {
        let mut answers = 0;
        while !over.get() {
            let (response, content) = h2::answer(&mut streams, h2::request("GET", "/post", &[]), "").await;
            assert_eq!((response.status().as_u16(), content.as_str()), (200, "text"));
            answers += 1;
        }
        answers
    };
    let changes = async {
        for round in 1..=10 {
            authority.certificate = write_pair(authority.folder.path());
            let toml = format!("source = \"{}\"\n{}[cache]\nhold = \"{round}m\"\n", origin.url(), authority.section());
            // On a thread of its own, so that the readers go on meanwhile.
            let reloading = tokio::task::spawn_blocking(move || (site.reload(&toml), site));
            let reloaded;
            (reloaded, site) = reloading.await.expect("no panic");
            assert_eq!(reloaded, Ok(vec![]));
            let mut stream = connect(&site, &authority.client(&[&TLS13], "http/1.1")).await.expect("the new certificate");
            assert!(exchange(&mut stream, &request("GET", "/post", "\r\n")).await.ends_with("\r\n\r\ntext"));
        }
        over.set(true);
        site
    };
    let (first, second, third, _site) = tokio::join!(read_on(one, &over), read_on(two, &over), in_http_2, changes);
    assert!(first.min(second).min(third) > 10, "{first}, {second} and {third} answers: the test would prove nothing");
}

/// Asks again and again on one connection, until it is `over`. How many answers there were.
async fn read_on(mut stream: TlsStream<TcpStream>, over: &Cell<bool>) -> usize {
    let mut answers = 0;
    while !over.get() {
        stream.write_all(format!("GET /post HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\ntext") {
            let n = testkit::patiently("for an answer", stream.read_buf(&mut answer)).await.expect("a connection");
            assert_ne!(n, 0, "closed after {answers} answers");
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        answers += 1;
    }
    answers
}

/// RFC 8446 §4.1.1: the choice is the server's. AES with the short key, whatever the client prefers; ChaCha20 to those who put it first, as
/// they have no hardware for AES.
#[tokio::test]
async fn the_cipher_is_chosen_by_what_it_costs_both() {
    use CipherSuite::*;
    let authority = Authority::new();
    let (_origin, site) = site(&authority, "");
    let cases = [
        (&TLS13, vec![TLS13_AES_256_GCM_SHA384, TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256], TLS13_AES_128_GCM_SHA256),
        (&TLS13, vec![TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256], TLS13_AES_256_GCM_SHA384),
        (&TLS13, vec![TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256], TLS13_CHACHA20_POLY1305_SHA256),
        (
            &TLS12,
            vec![TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256],
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        (
            &TLS12,
            vec![TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256],
            TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ];
    for (version, offered, expected) in cases {
        let config = authority.client_with(&[version], "http/1.1", &offered);
        let stream = connect(&site, &config).await.expect("a handshake");
        let suite = stream.get_ref().1.negotiated_cipher_suite().map(|suite| suite.suite());
        assert_eq!(suite, Some(expected), "{offered:?}");
    }
}

/// Who does not speak TLS, says nothing, or wants a name that nobody has, is not waited for.
#[tokio::test]
async fn those_who_do_not_shake_hands_are_let_go() {
    let authority = Authority::new();
    let (_origin, site) = site(&authority, "[limits]\nheader_timeout = \"100ms\"\n");
    for bytes in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(address(&site)).await.expect("connected");
        stream.write_all(bytes).await.expect("sent");
        let mut rest = Vec::new();
        // Closed or reset, both within the test's patience.
        let _ = testkit::patiently("to be let go", stream.read_to_end(&mut rest)).await;
        assert!(!rest.starts_with(b"HTTP"));
    }
    let config = authority.client(&[&TLS13], "spdy/1");
    assert!(connect(&site, &config).await.is_err(), "no protocol in common (RFC 7301 §3.2)");
}
